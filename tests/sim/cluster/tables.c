#include "tests/sim/cluster/tables.h"

#include "actors/ps/tables/table_writes.h"
#include "tests/sim/cluster/internal.h"

enum {
    TIMEOUT_MS = 3000,
    END_MS = 60000,
    PAUSE_MAX_MS = 120,
    LOOK_MAX_MS = 60,
    PUSHES_MIN = 5,
    PUSHES_MAX = 40,
    PUSH_PERCENT = 50,
    DELETE_PERCENT = 20,
    LEAVE_PERCENT = 10, /* of deletes: the row is never written again */
    LARGE_PERCENT = 30, /* of runs: rows that are filled in several pieces; on a slow
                            line these would be late heartbeats */
    DIM_SMALL_MAX = 4,
    STALE_MS = 100 /* silence is noticed so much later than it could be, at most */
};

static struct cluster_table_row *row_of(const struct cluster_table_program *p, uint32_t i)
{
    return &p->tables->model.rows[p->rows[i]];
}

static bool is_shared(uint32_t row)
{
    return row < CLUSTER_TABLE_SHARED;
}

/* ---- Calls ---- */

static struct mu__table_call make_call(const struct cluster_table_program *p,
                                       int operation, int64_t timeout_ms)
{
    const struct cluster_table_model *model = &p->tables->model;

    return (struct mu__table_call){
        .call = {.operation = operation, .timeout_ms = timeout_ms},
        .name = model->names[p->table],
        .servers_count = p->tables->cluster->options.servers,
        .table = model->ids[p->table],
        .dim = model->forms[p->table].dim,
        .dtype = model->forms[p->table].dtype,
    };
}

static void open_parts(struct cluster_table_program *p)
{
    static const enum mu__table_open_mode modes[] = {
        [CLUSTER_TABLE_FIND] = MU__TABLE_FIND,
        [CLUSTER_TABLE_MAKE] = MU__TABLE_CREATE,
        [CLUSTER_TABLE_SEAL] = MU__TABLE_SEAL,
        [CLUSTER_TABLE_JOIN] = MU__TABLE_EXISTING,
    };
    const struct cluster_table_model *model = &p->tables->model;
    struct mu__table_call call;
    struct mu__table_open open;
    uint32_t home;
    int rv;

    p->table = p->opened;
    call = make_call(p, MU__TABLE_WRITE_CALL, TIMEOUT_MS);
    open = (struct mu__table_open){.mode = modes[p->step],
                                   .form = model->forms[p->table],
                                   .name = mu__view_str(model->names[p->table])};
    home = mu__partition_of(open.name, 0);
    if (p->step == CLUSTER_TABLE_FIND || p->step == CLUSTER_TABLE_SEAL)
        rv = mu__effects_add_table_open(&call.run.effects, &open, home, home + 1);
    else
        rv = mu__effects_add_table_open(&call.run.effects, &open, 0, MU__PARTITIONS);
    assert(rv == 0);
    (void)rv;
    p->call = cluster_table(p->task, &call);
}

/* Each id twice: a quarter of the gradient, and the rest. */
static void add_writes(const struct cluster_table_program *p, struct mu__effects *effects,
                       unsigned table)
{
    const struct cluster_table_model *model = &p->tables->model;
    uint32_t dim = model->forms[table].dim;
    uint64_t ids[2 * CLUSTER_TABLE_BATCH];
    float gradients[2 * CLUSTER_TABLE_BATCH * CLUSTER_TABLE_DIM_MAX];
    const struct mu__table_batch batch = {
        .table = model->ids[table],
        .dim = p->step == CLUSTER_TABLE_PUSH ? dim : 0,
        .rule = &model->forms[table].rule,
        .ids = ids,
        .gradients = p->step == CLUSTER_TABLE_PUSH ? gradients : NULL,
        .count = 2 * p->count,
    };
    int rv;

    for (uint32_t i = 0; i < batch.count; i++) {
        ids[i] = row_of(p, i % p->count)->id;
        cluster_table_gradient(model, i < p->count ? 0.25F : 0.75F, gradients + i * dim);
    }
    rv = mu__effects_add_table(effects, &batch);
    assert(rv == 0);
    (void)rv;
}

static void write_rows(struct cluster_table_program *p)
{
    struct mu__table_call call = make_call(p, MU__TABLE_WRITE_CALL, TIMEOUT_MS);

    for (unsigned i = 0; i < CLUSTER_TABLES; i++)
        add_writes(p, &call.run.effects, i);
    for (uint32_t i = 0; i < p->count; i++) {
        row_of(p, i)->begun += is_shared(p->rows[i]);
        if (!is_shared(p->rows[i]))
            row_of(p, i)->doubt =
                p->step == CLUSTER_TABLE_PUSH ? CLUSTER_DOUBT_PUSH : CLUSTER_DOUBT_DELETE;
    }
    p->call = cluster_table(p->task, &call);
}

static void look_up_rows(struct cluster_table_program *p, int64_t timeout_ms)
{
    struct mu__table_call call = make_call(p, MU__TABLE_LOOKUP_CALL, timeout_ms);
    uint64_t *ids = cluster__get(p->count * sizeof *ids);
    int rv;

    p->begun_ms = sim_now_ms(p->tables->cluster->sim);
    p->content = cluster__get((size_t)p->count * call.dim * sizeof *p->content);
    for (uint32_t i = 0; i < p->count; i++)
        ids[i] = row_of(p, i)->id;
    rv = mu__ids_sort(ids, p->count, &p->sorted);
    assert(rv == 0);
    (void)rv;
    free(ids);
    call.ids = &p->sorted;
    call.rows = p->content;
    p->call = cluster_table(p->task, &call);
}

/* ---- Which rows ---- */

/* Nobody writes it any more. */
static bool is_left(const struct cluster_tables *t, uint32_t row)
{
    for (unsigned i = 0; i < t->programs_count; i++)
        for (unsigned k = 0; k < CLUSTER_TABLE_OWN; k++)
            if (t->programs[i].own[k] == row)
                return false;
    return !is_shared(row);
}

static void take_row(struct cluster_table_program *p, uint32_t row)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->rows[i] == row)
            return;
    p->rows[p->count++] = row;
}

static void choose_written(struct cluster_table_program *p)
{
    uint64_t own = sim_between(&p->random, 1, CLUSTER_TABLE_OWN);
    uint64_t shared = sim_between(&p->random, 0, CLUSTER_TABLE_BATCH - CLUSTER_TABLE_OWN);

    for (uint64_t i = 0; i < own; i++)
        take_row(p, p->own[sim_between(&p->random, 0, CLUSTER_TABLE_OWN - 1)]);
    for (uint64_t i = 0; i < shared && p->step == CLUSTER_TABLE_PUSH; i++)
        take_row(p, (uint32_t)sim_between(&p->random, 0, CLUSTER_TABLE_SHARED - 1));
}

static void choose_looked(struct cluster_table_program *p)
{
    struct cluster_tables *t = p->tables;

    for (uint32_t i = 0; i < CLUSTER_TABLE_SHARED; i++)
        take_row(p, i);
    for (uint32_t i = 0; i < CLUSTER_TABLE_OWN; i++) {
        uint32_t any = (uint32_t)sim_between(&p->random, 0, t->model.rows_count - 1);

        take_row(p, p->own[i]);
        if (is_left(t, any))
            take_row(p, any);
    }
    p->table = (unsigned)sim_between(&p->random, 0, CLUSTER_TABLES - 1);
}

static void begin_next(struct cluster_table_program *p)
{
    uint64_t what = sim_between(&p->random, 0, 99);

    p->count = 0;
    p->step = what < PUSH_PERCENT                    ? CLUSTER_TABLE_PUSH
              : what < PUSH_PERCENT + DELETE_PERCENT ? CLUSTER_TABLE_DELETE
                                                     : CLUSTER_TABLE_LOOK;
    if (p->step == CLUSTER_TABLE_LOOK) {
        choose_looked(p);
        look_up_rows(p, TIMEOUT_MS);
        return;
    }
    choose_written(p);
    write_rows(p);
}

/* ---- Answers ---- */

/* Another one may have made it meanwhile, and pushed to it. */
static void take_opened(struct cluster_table_program *p, int code)
{
    static const enum cluster_table_step next[] = {
        [CLUSTER_TABLE_FIND] = CLUSTER_TABLE_JOIN,
        [CLUSTER_TABLE_MAKE] = CLUSTER_TABLE_SEAL,
        [CLUSTER_TABLE_SEAL] = CLUSTER_TABLE_FIND,
        [CLUSTER_TABLE_JOIN] = CLUSTER_TABLE_FIND,
    };

    if (code == -MU_EAGAIN && p->step == CLUSTER_TABLE_FIND) {
        p->step = CLUSTER_TABLE_MAKE;
        return;
    }
    p->opened += code == 0 && p->step == CLUSTER_TABLE_JOIN;
    p->step = code == 0 ? next[p->step] : CLUSTER_TABLE_FIND;
}

/* What became of a row is known: unless a look-up has seen it before. */
static void take_row_written(struct cluster_table_program *p, uint32_t i)
{
    struct cluster_table_row *row = row_of(p, i);

    cluster_table_keep(&p->tables->model, p->rows[i]);
    if (is_shared(p->rows[i]))
        row->pushes++;
    else if (row->doubt == CLUSTER_DOUBT_PUSH)
        row->pushes++;
    else if (row->doubt == CLUSTER_DOUBT_DELETE)
        row->pushes = 0;
    row->doubt = CLUSTER_DOUBT_NONE;
}

static void replace_own(struct cluster_table_program *p, uint32_t row)
{
    for (unsigned i = 0; i < CLUSTER_TABLE_OWN; i++)
        if (p->own[i] == row)
            p->own[i] = cluster_table_model_add(&p->tables->model);
}

static void take_written(struct cluster_table_program *p, int code)
{
    bool leaves =
        p->step == CLUSTER_TABLE_DELETE && sim_chance(&p->random, LEAVE_PERCENT);

    for (uint32_t i = 0; i < p->count; i++) {
        if (code == 0)
            take_row_written(p, i);
        if ((code != 0 || leaves) && !is_shared(p->rows[i]))
            replace_own(p, p->rows[i]);
    }
    p->tables->pushed += code == 0 && p->step == CLUSTER_TABLE_PUSH;
    p->tables->deleted += code == 0 && p->step == CLUSTER_TABLE_DELETE;
    p->tables->unknown += code != 0;
    p->left--;
}

static void take_looked(struct cluster_table_program *p, int code)
{
    struct cluster_tables *t = p->tables;
    uint32_t dim = t->model.forms[p->table].dim;
    uint64_t noticed_ms = t->cluster->options.silence_ms + STALE_MS;
    uint64_t since_ms = p->begun_ms > noticed_ms ? p->begun_ms - noticed_ms : 0;

    for (uint32_t i = 0; i < p->count && code == 0; i++) {
        const struct cluster_table_shown shown = {
            p->table, p->rows[i], since_ms, p->content + (size_t)i * dim, p->task->name};

        cluster_table_see(&t->model, &shown, cluster_table_pushes(&t->model, &shown));
    }
    t->looked += code == 0;
}

static void end_look(struct cluster_table_program *p)
{
    mu__sorted_ids_done(&p->sorted);
    p->sorted = (struct mu__sorted_ids){.count = 0};
    free(p->content);
    p->content = NULL;
}

static bool is_expected(const struct cluster_table_program *p, int code)
{
    if (code == -MU_EAGAIN && p->step <= CLUSTER_TABLE_SEAL)
        return true;
    if (code == -MU_EDATALOSS && p->step == CLUSTER_TABLE_MAKE)
        return true;
    return code == 0 || code == -MU_EDEADLINE || code == -MU_EUNAVAILABLE ||
           code == -MU_ECLOSED;
}

static void take_table_answer(struct cluster_table_program *p)
{
    int code = p->call->of.call.code;

    if (!is_expected(p, code))
        cluster_break(p->tables->cluster, "%s: step %d of tables: %s: %s", p->task->name,
                      (int)p->step, mu_strerror(code), p->call->of.call.error.message);
    p->call = NULL;
    if (p->step == CLUSTER_TABLE_LOOK) {
        take_looked(p, code);
        end_look(p);
    } else if (p->step == CLUSTER_TABLE_PUSH || p->step == CLUSTER_TABLE_DELETE) {
        take_written(p, code);
    } else {
        take_opened(p, code);
    }
}

/* ---- The course of a program ---- */

static void ask_next(struct cluster_table_program *p)
{
    if (p->life != sim_lives(p->task->node)) {
        p->opened = 0;
        p->step = CLUSTER_TABLE_FIND;
    }
    p->life = sim_lives(p->task->node);
    if (p->opened < CLUSTER_TABLES)
        open_parts(p);
    else if (p->left > 0)
        begin_next(p);
    else
        p->finished = true;
}

static void step_program(struct sim *sim, void *arg)
{
    struct cluster_table_program *p = arg;

    if (p->call != NULL && p->call->done)
        take_table_answer(p);
    if (p->call == NULL && sim_alive(p->task->node))
        ask_next(p);
    if (!p->finished)
        sim_at(sim, sim_now_ms(sim) + sim_between(&p->random, 1, PAUSE_MAX_MS),
               step_program, p);
}

static void add_program(struct cluster_tables *t, struct cluster_task *task)
{
    struct cluster_table_program *p = &t->programs[t->programs_count];

    *p = (struct cluster_table_program){
        .tables = t,
        .task = task,
        .random = sim_stream(sim_draw(&t->random), t->programs_count),
        .left = sim_between(&t->random, PUSHES_MIN, PUSHES_MAX),
        .rows = cluster__get(CLUSTER_TABLE_ROWS_MAX * sizeof *p->rows),
    };
    for (unsigned i = 0; i < CLUSTER_TABLE_OWN; i++)
        p->own[i] = cluster_table_model_add(&t->model);
    t->programs_count++;
    sim_at(t->cluster->sim, sim_now_ms(t->cluster->sim) + 1, step_program, p);
}

/* ---- Members ---- */

static void check_partition(struct cluster_tables *t, uint32_t partition)
{
    struct cluster_members members = cluster_members_of(t->copies, partition);

    if (members.primary != NULL)
        cluster_table_check_member(&t->model, members.primary, partition, "the primary");
    if (members.backup != NULL)
        cluster_table_check_member(&t->model, members.backup, partition, "the backup");
    if (!members.are_alike)
        return;
    t->compared++;
    cluster_table_check_alike(&t->model, members.primary, members.backup, partition);
}

static void step_looks(struct sim *sim, void *arg)
{
    struct cluster_tables *t = arg;

    check_partition(t,
                    (uint32_t)sim_between(&t->random, 0, CLUSTER_TABLE_PARTITIONS - 1));
    if (sim_now_ms(sim) < t->until_ms)
        sim_at(sim, sim_now_ms(sim) + sim_between(&t->random, 1, LOOK_MAX_MS), step_looks,
               t);
}

/* ---- A test's ---- */

void cluster_tables_begin(struct cluster_tables *t)
{
    struct cluster *cluster = t->cluster;
    bool is_large = sim_chance(&t->random, LARGE_PERCENT);

    cluster_table_model_init(&t->model, cluster,
                             (uint32_t)sim_between(&t->random, 1,
                                                   is_large ? CLUSTER_TABLE_DIM_MAX : 4));
    add_program(t, cluster->chief);
    for (unsigned i = 0; i < cluster->options.workers; i++)
        add_program(t, cluster->workers[i]);
    for (unsigned i = 0; i < cluster->options.clients; i++)
        add_program(t, cluster->clients[i]);
    sim_at(cluster->sim, sim_now_ms(cluster->sim) + 1, step_looks, t);
}

void cluster_tables_free(struct cluster_tables *t)
{
    for (unsigned i = 0; i < t->programs_count; i++) {
        end_look(&t->programs[i]);
        free(t->programs[i].rows);
    }
    cluster_table_model_free(&t->model);
}

bool cluster_tables_are_over(const struct cluster_tables *t)
{
    for (unsigned i = 0; i < t->programs_count; i++)
        if (!t->programs[i].finished)
            return false;
    return true;
}

void cluster_tables_check(struct cluster_tables *t)
{
    struct cluster_table_program *chief = &t->programs[0];

    chief->step = CLUSTER_TABLE_LOOK;
    for (chief->table = 0; chief->table < CLUSTER_TABLES; chief->table++) {
        int code;

        chief->count = t->model.rows_count;
        for (uint32_t i = 0; i < chief->count; i++)
            chief->rows[i] = i;
        look_up_rows(chief, END_MS);
        code = cluster_wait(chief->call);
        if (code != 0)
            cluster_break(t->cluster, "table %s cannot be looked up: %s",
                          t->model.names[chief->table], mu_strerror(code));
        take_looked(chief, code);
        end_look(chief);
    }
}
