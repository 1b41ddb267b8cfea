/* Look-ups of rows, and tables in what a learner or a journal gets. */
#include "actors/ps/tables/tables.h"

#include "actors/ps/tables/lookup_spans.h"
#include "actors/ps/tables/table_ahead.h"
#include "actors/ps/tables/table_set.h"

#include "actors/keep.h"

#include <stdlib.h>
#include <string.h>

/* ---- Look-ups ---- */

/* One that is being answered. Rows of spans whose records are acknowledged are sent
 * together; others wait for theirs. */
struct answering {
    const struct mu__table_lookup *body;
    mu__pid from;
    struct mu__buf *memory; /* of rows; NULL: there are sums */
    uint8_t *rows;          /* of all ids; or sums for all bags */
    uint32_t row_bytes;
    uint32_t first; /* ids whose rows are to be sent together, */
    uint32_t end;   /* up to this one */
};

static struct mu__table_rows rows_of(const struct answering *a, uint32_t first,
                                     uint32_t count)
{
    struct mu__table_rows body = {
        .token = a->body->token, .first = first, .count = count};

    if (a->body->bags != 0)
        body.rows = (struct mu__view){a->rows, a->body->bags * a->row_bytes};
    else
        body.rows = (struct mu__view){a->rows + (size_t)first * a->row_bytes,
                                      count * a->row_bytes};
    return body;
}

/* What comes next goes into an answer of its own. */
static void begin_answer(struct answering *a)
{
    a->first = a->end;
    if (a->body->bags != 0)
        memset(a->rows, 0, (size_t)a->body->bags * a->row_bytes);
}

/* Without a copy; nobody writes to the memory any more. */
static void send_from_memory(struct mu__ctx *ctx, const struct answering *a,
                             const struct mu__table_rows *body)
{
    int rv = mu__send_backed(ctx, a->from, MU__TABLE_ROWS, body, sizeof *body, a->memory);

    if (rv != 0)
        mu__log(ctx, mu__ps_lost_level(rv), "rows for node %u were lost: %s",
                a->from.node, mu_strerror(rv));
}

static void send_rows_together(struct mu__ctx *ctx, struct answering *a)
{
    const struct mu__table_rows body = rows_of(a, a->first, a->end - a->first);

    if (a->end > a->first && a->memory == NULL)
        mu__ps_send(ctx, a->from, MU__TABLE_ROWS, &body, sizeof body);
    else if (a->end > a->first)
        send_from_memory(ctx, a, &body);
    begin_answer(a);
}

static void refuse_lookup(struct mu__ctx *ctx, const struct answering *a, uint32_t first,
                          uint32_t count, int rv, const char *reason)
{
    const struct mu__table_rows body = {
        .token = a->body->token,
        .first = first,
        .count = count,
        .code = mu__ps_code(rv),
        .message = mu__ps_message_of(rv, reason),
    };

    mu__ps_send(ctx, a->from, MU__TABLE_ROWS, &body, sizeof body);
}

/* What is known of a span before its rows are looked at. */
struct found_span {
    uint32_t count;
    struct partition *partition; /* NULL: it is not served here */
    struct mu__named_table *table;
    const unsigned char *const *guessed; /* NULL: rows were not asked for ahead */
};

/* Why a span cannot be looked up now; 0: it can. */
static int check_span(const struct ps *ps, const struct found_span *span,
                      const struct answering *a, const char **ret_reason)
{
    const struct mu__named_table *table = span->table;

    *ret_reason = "";
    if (span->partition->ready || mu__ps_is_cut_off(ps, span->partition))
        return -MU_EAGAIN;
    if (table == NULL) {
        *ret_reason = "the server does not have the table";
        return -MU_ENOTFOUND;
    }
    if (table->part.form.dim != a->body->dim) {
        *ret_reason = "the table has rows of another size";
        return -MU_EPRECONDITION;
    }
    if (table->part.form.dtype != a->body->dtype) {
        *ret_reason = "the table has rows of another dtype";
        return -MU_EPRECONDITION;
    }
    return 0;
}

static void pool_rows(const struct answering *a, const struct mu__table *table,
                      uint32_t count)
{
    const struct mu__table_lookup *body = a->body;
    const struct mu__pooled pooled = {
        .count = count,
        .ids = (const uint8_t *)body->ids.data + (size_t)a->end * 8,
        .bags = (const uint8_t *)body->bag_of.data + (size_t)a->end * 4,
        .weights = body->weights.size == 0
                       ? NULL
                       : (const uint8_t *)body->weights.data + (size_t)a->end * 4,
    };

    mu__table_pool(table, &pooled, a->rows);
}

static void find_rows(struct answering *a, const struct found_span *span)
{
    const struct mu__table *table = &span->table->part;
    const uint8_t *ids = (const uint8_t *)a->body->ids.data + a->end * sizeof(uint64_t);
    uint8_t *rows = a->rows + (size_t)a->end * a->row_bytes;

    if (a->body->bags != 0)
        pool_rows(a, table, span->count);
    else if (span->guessed != NULL)
        mu__table_lookup_guessed(table, ids, span->count, span->guessed, rows);
    else
        mu__table_lookup(table, ids, span->count, rows);
}

static void look_up_span(struct mu__ctx *ctx, struct answering *a,
                         const struct found_span *span)
{
    struct partition *p = span->partition;
    bool is_acked = mu__stream_acked(p) >= p->record;
    struct mu__table_rows alone = rows_of(a, a->end, span->count);

    if (!is_acked)
        send_rows_together(ctx, a);
    find_rows(a, span);
    a->end += span->count;
    if (is_acked)
        return;
    mu__ps_answer(ctx, p, a->from, MU__TABLE_ROWS, &alone, sizeof alone);
    begin_answer(a);
}

static void answer_span(struct mu__ctx *ctx, const struct ps *ps, struct answering *a,
                        const struct found_span *span)
{
    const char *reason;
    int rv = span->partition == NULL ? 0 : check_span(ps, span, a, &reason);

    if (span->partition != NULL && rv == 0) {
        look_up_span(ctx, a, span);
        return;
    }
    send_rows_together(ctx, a);
    if (rv != 0)
        refuse_lookup(ctx, a, a->end, span->count, rv, reason);
    a->end += span->count;
    begin_answer(a);
}

/* Find the next spans from number `i` on, and ask for their first rows; `ids` are theirs.
 * Returns how many. */
static uint32_t find_spans(const struct ps *ps, const struct mu__table_lookup *body,
                           uint32_t i, const uint8_t *ids, struct mu__table_ahead *ahead,
                           struct found_span *ret_found)
{
    struct mu__lookup_span span;
    uint32_t count = 0;

    mu__ahead_begin(ahead, false);
    for (; count < MU__AHEAD_MAX && mu__ahead_has_room(ahead) &&
           i + count < mu__lookup_spans_count(body->spans) &&
           mu__lookup_spans_at(body->spans, i + count, &span);
         count++) {
        struct partition *p = mu__ps_find_serving(ps, span.partition, span.generation);
        struct found_span *found = &ret_found[count];

        *found = (struct found_span){.count = span.count, .partition = p};
        if (p != NULL)
            found->table = mu__tables_find(mu__store_tables(p->store), body->table);
        if (found->table != NULL)
            found->guessed = mu__ahead_add(ahead, &found->table->part, ids, span.count);
        ids += (size_t)span.count * sizeof(uint64_t);
    }
    mu__ahead_fetch(ahead, MU__AHEAD_ROWS);
    return count;
}

static void answer_spans(struct mu__ctx *ctx, const struct ps *ps, struct answering *a)
{
    uint32_t spans = mu__lookup_spans_count(a->body->spans);
    struct found_span found[MU__AHEAD_MAX];
    struct mu__table_ahead ahead;
    uint32_t count;

    for (uint32_t i = 0; i < spans; i += count) {
        count = find_spans(ps, a->body, i,
                           (const uint8_t *)a->body->ids.data + a->end * sizeof(uint64_t),
                           &ahead, found);
        for (uint32_t k = 0; k < count; k++) {
            mu__ahead_fetch(&ahead, 1);
            answer_span(ctx, ps, a, &found[k]);
        }
    }
    send_rows_together(ctx, a);
}

/* Whether each id has a bag, and a weight, if any has. */
static bool are_bags_right(const struct mu__table_lookup *body, uint64_t count)
{
    uint32_t bag;

    if (body->bags == 0)
        return true;
    if (body->bag_of.size != count * sizeof bag ||
        (body->weights.size != 0 && body->weights.size != count * sizeof(float)))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&bag, (const uint8_t *)body->bag_of.data + i * sizeof bag, sizeof bag);
        if (bag >= body->bags)
            return false;
    }
    return true;
}

/* Of a row in an answer, or of a sum. */
static uint32_t answer_row_bytes(const struct mu__table_lookup *body)
{
    bool is_narrow = body->dtype != 0 && body->bags == 0;

    return body->dim * (uint32_t)(is_narrow ? sizeof(uint16_t) : sizeof(float));
}

/* The number of ids; -MU_EINVALID: the spans are not those of the ids, or their rows are
 * too many for one answer. */
static int count_ids(const struct mu__table_lookup *body, uint32_t *ret_count)
{
    uint32_t spans = mu__lookup_spans_count(body->spans);
    uint64_t count = 0;
    struct mu__lookup_span span;

    for (uint32_t i = 0; i < spans; i++) {
        if (!mu__lookup_spans_at(body->spans, i, &span))
            return -MU_EINVALID;
        count += span.count;
    }
    if (body->spans.size % MU__LOOKUP_SPAN_BYTES != 0 || count == 0 || body->dim == 0 ||
        count * sizeof(uint64_t) != body->ids.size ||
        (body->bags == 0 ? count : body->bags) * answer_row_bytes(body) >
            MU__PIECE_BYTES_MAX ||
        !are_bags_right(body, count))
        return -MU_EINVALID;
    *ret_count = (uint32_t)count;
    return 0;
}

/* Memory for the rows, or for the sums, which are 0. Rows are sent from where they are;
 * sums begin anew behind each answer. */
static bool make_rows(struct answering *a, uint32_t count)
{
    if (a->body->bags != 0) {
        a->rows = calloc(a->body->bags, a->row_bytes);
        return a->rows != NULL;
    }
    a->memory = mu__buf_new((size_t)count * a->row_bytes);
    if (a->memory == NULL)
        return false;
    a->memory->size = count * a->row_bytes;
    a->rows = a->memory->data;
    return true;
}

static void free_rows(struct answering *a)
{
    if (a->memory == NULL)
        free(a->rows);
    mu__buf_unref(a->memory);
}

void mu__ps_on_table_lookup(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__table_lookup *body = mu__body(msg);
    struct answering a = {.body = body, .from = msg->from};
    uint32_t count = 0;

    if (count_ids(body, &count) != 0) {
        refuse_lookup(ctx, &a, 0, body->ids.size / sizeof(uint64_t), -MU_EINVALID,
                      "the request's spans are not those of its ids");
        return;
    }
    a.row_bytes = answer_row_bytes(body);
    if (!make_rows(&a, count)) {
        refuse_lookup(ctx, &a, 0, count, -MU_ENOMEM, "the server is out of memory");
        return;
    }
    answer_spans(ctx, state, &a);
    free_rows(&a);
}

/* ---- Copies ---- */

bool mu__ps_put_tables(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                       mu__fill_put_fn put)
{
    const struct mu__table_set *set = mu__store_tables(p->store);

    for (const struct mu__named_table *table = mu__tables_first(set); table != NULL;
         table = mu__tables_next(table)) {
        const struct mu__table_open open = {
            .mode = MU__TABLE_RECREATE,
            .sealed = table->sealed,
            .form = table->part.form,
            .name = {table->name, table->name_size},
        };
        uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];
        const struct mu__fill_table body = {
            .partition = p->view.partition,
            .view = p->view.number,
            .open = {bytes, mu__table_open_pack(&open, bytes)},
            .state = {(const uint8_t *)&table->part.state, sizeof table->part.state},
        };

        if (!put(ctx, ps, p, MU__FILL_TABLE, &body, sizeof body))
            return false;
    }
    return true;
}

bool mu__ps_next_rows(const struct partition *p, struct mu__table_cursor *cursor,
                      struct mu__fill_rows *ret_body)
{
    struct mu__table_piece piece;

    if (!mu__tables_next_piece(mu__store_tables(p->store), cursor, &piece))
        return false;
    *ret_body = (struct mu__fill_rows){.partition = p->view.partition,
                                       .view = p->view.number,
                                       .table = piece.table,
                                       .piece = piece.kind,
                                       .rows = piece.bytes};
    return true;
}

int mu__ps_take_fill_table(struct partition *p, const struct mu__fill_table *body,
                           mu_error *ret_error)
{
    struct mu__table_open open;
    int rv = mu__table_open_unpack(body->open, &open, ret_error);

    return rv == 0
               ? mu__tables_put(mu__store_tables(p->store), &open, body->state, ret_error)
               : rv;
}

int mu__ps_take_fill_rows(struct partition *p, const struct mu__fill_rows *body,
                          mu_error *ret_error)
{
    const struct mu__table_piece piece = {body->table, body->piece, body->rows};

    return mu__tables_put_piece(mu__store_tables(p->store), &piece, ret_error);
}
