#include "tests/sim/cluster/table_model.h"

#include "actors/ps/server.h"
#include "actors/ps/tables/narrow_rows.h"
#include "tests/sim/cluster/internal.h"

#include <inttypes.h>
#include <string.h>

/* ---- Rows that are expected ---- */

static void look_up_wide(const struct mu__table *table, uint64_t id, float *ret_row)
{
    const struct mu__table_form *form = &table->form;
    uint16_t narrow[CLUSTER_TABLE_DIM_MAX];

    mu__table_lookup(table, &id, 1, form->dtype == 0 ? (void *)ret_row : narrow);
    if (form->dtype != 0)
        mu__narrow_row_widen(form->dtype, narrow, form->dim, ret_row);
}

/* By the library's own table: that it is right by itself is for other tests. */
static float *expect_rows(const struct cluster_table_model *model, unsigned table)
{
    const struct mu__table_form *form = &model->forms[table];
    float *rows =
        cluster__get((size_t)CLUSTER_TABLE_PUSHES_MAX * form->dim * sizeof *rows);
    uint64_t bytes_used = 0;
    const struct mu__table_memory memory = {1 << 22, &bytes_used, NULL};
    float gradient[CLUSTER_TABLE_DIM_MAX];
    const uint64_t id = 1;
    struct mu__table alone;
    int rv;

    cluster_table_gradient(model, 1, gradient);
    mu__table_init(&alone, form, &memory, 0);
    rv = mu__table_reserve(&alone, &id, 1, NULL);
    assert(rv == 0);
    (void)rv;
    for (uint32_t i = 0; i < CLUSTER_TABLE_PUSHES_MAX; i++) {
        look_up_wide(&alone, id, rows + (size_t)i * form->dim);
        (void)mu__table_push(&alone, &id, gradient, 1, &form->rule);
    }
    mu__table_done(&alone);
    return rows;
}

/* Whole numbers: sums of all pushes are exact in halves. */
void cluster_table_gradient(const struct cluster_table_model *model, float part,
                            float *ret_gradient)
{
    for (uint32_t i = 0; i < model->forms[0].dim; i++)
        ret_gradient[i] = part * (float)(i % 3 + 1);
}

static void set_tables(struct cluster_table_model *model, uint32_t dim)
{
    static const char *const names[CLUSTER_TABLES] = {"plain", "adam"};
    static const uint32_t kinds[CLUSTER_TABLES] = {MU__RULE_SGD, MU__RULE_ADAM};

    for (unsigned i = 0; i < CLUSTER_TABLES; i++) {
        model->names[i] = names[i];
        model->ids[i] = mu__table_id(mu__view_str(names[i]));
        model->forms[i] = (struct mu__table_form){
            .dim = dim,
            .dtype = i == 0 ? MU_F16 : 0,
            .initial = {.kind = MU__INITIAL_CONSTANT, .a = 10},
            .rule = mu__rule_defaults(kinds[i]),
        };
        model->forms[i].rule.numbers[MU__RATE] = i == 0 ? 1 : 0.125;
    }
}

void cluster_table_model_init(struct cluster_table_model *model, struct cluster *cluster,
                              uint32_t dim)
{
    *model = (struct cluster_table_model){.cluster = cluster};
    set_tables(model, dim);
    for (unsigned i = 0; i < CLUSTER_TABLES; i++)
        model->expected[i] = expect_rows(model, i);
    while (model->rows_count < CLUSTER_TABLE_SHARED)
        (void)cluster_table_model_add(model);
}

void cluster_table_model_free(struct cluster_table_model *model)
{
    for (unsigned i = 0; i < CLUSTER_TABLES; i++)
        free(model->expected[i]);
}

uint32_t cluster_table_model_add(struct cluster_table_model *model)
{
    struct cluster_table_row *row = &model->rows[model->rows_count];

    assert(model->rows_count < CLUSTER_TABLE_ROWS_MAX);
    do {
        model->id_last++;
    } while (mu__partition_of_id(model->id_last) >= CLUSTER_TABLE_PARTITIONS);
    row->id = model->id_last;
    row->partition = mu__partition_of_id(row->id);
    return model->rows_count++;
}

/* ---- How often a row was pushed ---- */

static bool is_shared(uint32_t row)
{
    return row < CLUSTER_TABLE_SHARED;
}

/* The fewest pushes that a row may have from now on. */
static uint64_t least_pushes(const struct cluster_table_row *row)
{
    if (row->doubt == CLUSTER_DOUBT_DELETE)
        return 0;
    return row->pushes > row->seen ? row->pushes : row->seen;
}

static bool own_may_be(const struct cluster_table_row *row, uint64_t pushes)
{
    return pushes == row->pushes ||
           (row->doubt == CLUSTER_DOUBT_PUSH && pushes == row->pushes + 1) ||
           (row->doubt == CLUSTER_DOUBT_DELETE && pushes == 0);
}

static bool could_be(const struct cluster_table_model *model, uint32_t row,
                     const struct cluster_table_row *then, uint64_t pushes)
{
    if (is_shared(row))
        return pushes >= least_pushes(then) && pushes <= model->rows[row].begun;
    return own_may_be(then, pushes);
}

/* Whether that was so at a time since `since_ms`, but is not known of now. */
static bool was_before(const struct cluster_table_model *model, uint32_t row,
                       uint64_t since_ms, uint64_t pushes)
{
    const struct cluster_table_history *history = &model->histories[row];

    for (uint64_t i = 1; i <= CLUSTER_TABLE_CHANGES && i <= history->count; i++) {
        unsigned at = (unsigned)((history->count - i) % CLUSTER_TABLE_CHANGES);

        if (history->until_ms[at] < since_ms)
            return false;
        if (could_be(model, row, &history->rows[at], pushes))
            return true;
    }
    return false;
}

void cluster_table_keep(struct cluster_table_model *model, uint32_t row)
{
    struct cluster_table_history *history = &model->histories[row];
    unsigned at = (unsigned)(history->count++ % CLUSTER_TABLE_CHANGES);

    history->rows[at] = model->rows[row];
    history->until_ms[at] = sim_now_ms(model->cluster->sim);
}

static uint64_t find_pushes(const struct cluster_table_model *model, unsigned table,
                            const float *content)
{
    uint32_t dim = model->forms[table].dim;
    uint64_t pushes = 0;

    while (pushes < CLUSTER_TABLE_PUSHES_MAX &&
           memcmp(content, model->expected[table] + pushes * dim,
                  dim * sizeof *content) != 0)
        pushes++;
    return pushes;
}

uint64_t cluster_table_pushes(const struct cluster_table_model *model,
                              const struct cluster_table_shown *shown)
{
    const struct cluster_table_row *now = &model->rows[shown->row];
    uint64_t pushes = find_pushes(model, shown->table, shown->content);

    if (pushes == CLUSTER_TABLE_PUSHES_MAX)
        cluster_break(model->cluster,
                      "%s: table %s: id %" PRIu64
                      ": no number of pushes makes a row that "
                      "begins with %g",
                      shown->who, model->names[shown->table], now->id,
                      (double)shown->content[0]);
    else if (!could_be(model, shown->row, now, pushes) &&
             !was_before(model, shown->row, shown->since_ms, pushes))
        cluster_break(model->cluster,
                      "%s: table %s: id %" PRIu64 " was pushed %" PRIu64
                      " times: acknowledged %" PRIu64 ", seen %" PRIu64 ", begun %" PRIu64
                      ", doubt %d",
                      shown->who, model->names[shown->table], now->id, pushes,
                      now->pushes, now->seen, now->begun, (int)now->doubt);
    return pushes;
}

void cluster_table_see(struct cluster_table_model *model,
                       const struct cluster_table_shown *shown, uint64_t pushes)
{
    struct cluster_table_row *row = &model->rows[shown->row];
    bool raises = pushes > row->seen && row->begun > 0;
    bool settles = row->doubt != CLUSTER_DOUBT_NONE && pushes != row->pushes;

    if (was_before(model, shown->row, shown->since_ms, pushes) || !(raises || settles))
        return;
    cluster_table_keep(model, shown->row);
    if (raises)
        row->seen = pushes;
    if (settles) {
        row->pushes = pushes;
        row->doubt = CLUSTER_DOUBT_NONE;
    }
}

/* ---- Members ---- */

static const struct mu__named_table *table_of(const struct cluster_table_model *model,
                                              const struct partition *p, unsigned table)
{
    return mu__tables_find(mu__store_tables(p->store), model->ids[table]);
}

static void check_row(const struct cluster_table_model *model, const struct partition *p,
                      unsigned table, uint32_t row, const char *who)
{
    const struct mu__named_table *at = table_of(model, p, table);
    const struct cluster_table_row *now = &model->rows[row];
    float content[CLUSTER_TABLE_DIM_MAX];
    const struct cluster_table_shown shown = {table, row, sim_now_ms(model->cluster->sim),
                                              content, who};

    if (at != NULL) {
        look_up_wide(&at->part, now->id, content);
        (void)cluster_table_pushes(model, &shown);
    } else if (least_pushes(now) > 0) {
        cluster_break(model->cluster, "%s of partition %" PRIu32 " has no table %s", who,
                      p->view.partition, model->names[table]);
    }
}

static uint32_t count_rows(const struct cluster_table_model *model,
                           const struct partition *p, unsigned table)
{
    const struct mu__named_table *at = table_of(model, p, table);

    return at == NULL ? 0 : at->part.rows;
}

void cluster_table_check_member(const struct cluster_table_model *model,
                                const struct partition *p, uint32_t partition,
                                const char *who)
{
    for (uint32_t i = 0; i < model->rows_count; i++)
        for (unsigned k = 0; k < CLUSTER_TABLES; k++)
            if (model->rows[i].partition == partition)
                check_row(model, p, k, i, who);
    if (count_rows(model, p, 0) != count_rows(model, p, 1))
        cluster_break(model->cluster,
                      "%s of partition %" PRIu32 " has %" PRIu32
                      " rows of %s and %" PRIu32 " of %s",
                      who, partition, count_rows(model, p, 0), model->names[0],
                      count_rows(model, p, 1), model->names[1]);
}

/* In any order: a copy may number its rows otherwise. Rows are of whole words. */
static uint64_t sum_rows(const struct mu__named_table *table, struct mu__view rows)
{
    uint32_t each = mu__table_row_bytes(&table->part.form);
    const uint8_t *bytes = rows.data;
    uint64_t sum = 0;
    uint32_t word;

    assert(each % sizeof word == 0);

    for (uint32_t at = 0; at < rows.size; at += each) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (uint32_t i = 0; i < each; i += sizeof word) {
            memcpy(&word, bytes + at + i, sizeof word);
            hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        }
        sum += hash;
    }
    return sum;
}

static void sum_tables(const struct partition *p, uint64_t *ret_sum, uint64_t *ret_rows)
{
    const struct mu__table_set *set = mu__store_tables(p->store);
    struct mu__table_cursor cursor = {.table = 0};
    struct mu__table_piece piece;

    *ret_sum = 0;
    *ret_rows = 0;
    while (mu__tables_next_piece(set, &cursor, &piece)) {
        const struct mu__named_table *at = mu__tables_find(set, piece.table);

        if (piece.kind != MU__PIECE_ROWS)
            continue;
        *ret_sum += sum_rows(at, piece.bytes) * (piece.table | 1);
        *ret_rows += piece.bytes.size / mu__table_row_bytes(&at->part.form);
    }
}

void cluster_table_check_alike(const struct cluster_table_model *model,
                               const struct partition *a, const struct partition *b,
                               uint32_t partition)
{
    uint64_t sums[2];
    uint64_t rows[2];

    sum_tables(a, &sums[0], &rows[0]);
    sum_tables(b, &sums[1], &rows[1]);
    if (sums[0] != sums[1] || rows[0] != rows[1])
        cluster_break(model->cluster,
                      "two members of partition %" PRIu32
                      " have other rows at record %" PRIu64 ": %" PRIu64 " and %" PRIu64,
                      partition, a->record, rows[0], rows[1]);
}
