/* Writes of several partitions that have come, or go to a replica, in one message.
 *
 * Each is a request, or a record, of its partition alone, as if it had come in a message
 * of its own. Only the records of those that need not wait are sent together, to each
 * server in one message; then all of these are applied. The others take the usual way. */
#include "actors/ps/tables/tables.h"

#include "actors/ps/tables/table_ahead.h"
#include "actors/ps/tables/write_frame.h"

#include "actors/keep.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>

/* What becomes of a write. */
enum way {
    NOT_HERE, /* its client sends it again */
    TOGETHER,
    IS_SENT, /* the same, and its record is on the way */
    BY_ITSELF
};

/* A frame of requests that is being taken. */
struct taking {
    const struct mu__effect_writes *frame;
    const struct mu__msg *msg;
    const struct mutation *mutation; /* of each of its writes */
    uint8_t ways[MU__FRAME_WRITES_MAX];
    bool waits[MU__PARTITIONS]; /* a write of the partition takes the usual way */
    bool is_replicated;         /* records of some go to a backup */
};

/* The message that a write stands for, in memory of the caller. */
struct framed_message {
    alignas(struct mu__msg) unsigned char memory[sizeof(struct mu__msg) +
                                                 sizeof(struct mu__effect_write)];
};

static struct mu__msg *message_of(struct framed_message *memory, const struct taking *t,
                                  const struct mu__effect_write *write)
{
    struct mu__msg *msg = (struct mu__msg *)(void *)memory->memory;

    *msg = (struct mu__msg){
        .backing = t->msg->backing, .from = t->msg->from, .kind = t->mutation->kind};
    memcpy(msg->body, write, sizeof *write);
    return msg;
}

/* ---- Rows that are needed soon ---- */

static void add_pushed_ids(const struct ps *ps, const struct mu__effect_write *write,
                           struct mu__table_ahead *ahead)
{
    const struct partition *p = ps->partitions[write->partition];
    struct mu__named_table *table =
        p == NULL || write->operation != MU__WRITE_TABLE_PUSH
            ? NULL
            : mu__tables_find(mu__store_tables(p->store), write->variable);
    uint32_t count;
    const uint8_t *ids;

    if (table == NULL)
        return;
    ids = mu__table_push_ids(write->data, table->part.form.dim, &count);
    if (ids != NULL)
        (void)mu__ahead_add(ahead, &table->part, ids, count);
}

/* Pushed rows of the next writes of a frame. */
struct rows_ahead {
    struct mu__table_ahead ahead;
    uint32_t end; /* the number of the write behind them */
};

static void begin_rows_ahead(struct rows_ahead *rows)
{
    mu__ahead_begin(&rows->ahead, true);
    rows->end = 0;
}

/* Before the next write is read: ask for more rows of it and of those behind it. */
static void fetch_pushed_rows(const struct ps *ps, struct mu__frame_reader reader,
                              struct rows_ahead *rows)
{
    struct mu__effect_write write;

    if (reader.i < rows->end) {
        mu__ahead_fetch(&rows->ahead, 1);
        return;
    }
    mu__ahead_end(&rows->ahead);
    mu__ahead_begin(&rows->ahead, true);
    while (mu__ahead_has_room(&rows->ahead) && mu__frame_next(&reader, &write))
        add_pushed_ids(ps, &write, &rows->ahead);
    rows->end = reader.i;
    mu__ahead_fetch(&rows->ahead, MU__AHEAD_ROWS);
}

static bool next_write(const struct ps *ps, struct mu__frame_reader *reader,
                       struct rows_ahead *rows, struct mu__effect_write *ret_write)
{
    fetch_pushed_rows(ps, *reader, rows);
    return mu__frame_next(reader, ret_write);
}

/* ---- Which way ---- */

static bool waits_alone(struct mu__ctx *ctx, struct ps *ps, const struct taking *t,
                        const struct mu__effect_write *write)
{
    const struct partition *p = ps->partitions[write->partition];
    struct framed_message memory;

    return t->waits[write->partition] || !mu__list_is_empty(&p->deferred) ||
           p->streams[TO_LEARNER].node != 0 || mu__stream_is_blocked(ctx, ps, p) ||
           (ps->journal.file != NULL &&
            !mu__ps_journal_has_room(ctx, ps, p, message_of(&memory, t, write)));
}

static void choose_ways(struct mu__ctx *ctx, struct ps *ps, struct taking *t)
{
    struct mu__frame_reader reader = {t->frame, 0, 0};
    struct mu__effect_write write;

    for (uint32_t i = 0; mu__frame_next(&reader, &write); i++) {
        if (mu__ps_find_serving(ps, write.partition, write.generation) == NULL)
            continue;
        t->waits[write.partition] = waits_alone(ctx, ps, t, &write);
        t->ways[i] = t->waits[write.partition] ? BY_ITSELF : TOGETHER;
        t->is_replicated |= ps->partitions[write.partition]->streams[TO_BACKUP].node != 0;
    }
}

/* ---- Records ---- */

/* The records that one server gets. */
struct framed_records {
    uint32_t node;
    uint32_t count;
    uint8_t *heads;
    uint8_t *data;
    uint32_t bytes;
    uint16_t pending[MU__PARTITIONS];
};

static bool is_for(const struct ps *ps, const struct taking *t, uint32_t i,
                   const struct mu__effect_write *write, uint32_t node)
{
    return t->ways[i] == TOGETHER &&
           ps->partitions[write->partition]->streams[TO_BACKUP].node == node;
}

static void add_framed_record(const struct ps *ps, struct framed_records *records,
                              struct mu__effect_write *write)
{
    const struct partition *p = ps->partitions[write->partition];

    write->record = p->record + ++records->pending[write->partition];
    (void)mu__frame_head_put(records->heads + records->count++ * MU__FRAME_HEAD_BYTES,
                             write);
    memcpy(records->data + records->bytes, write->data.data, write->data.size);
    records->bytes += write->data.size;
}

/* 0, or how they could not be sent. */
static int send_framed_records(struct mu__ctx *ctx, const struct taking *t,
                               const struct framed_records *records)
{
    struct mu__effect_writes body = *t->frame;
    bool is_all = records->bytes == t->frame->data.size;

    body.heads = (struct mu__view){records->heads, records->count * MU__FRAME_HEAD_BYTES};
    body.is_record = true;
    body.writer = t->msg->from.node;
    if (!is_all)
        body.data = (struct mu__view){records->data, records->bytes};
    return is_all ? mu__send_backed(ctx, (mu__pid){records->node, MU__PS}, t->msg->kind,
                                    &body, sizeof body, t->msg->backing)
                  : mu__send_body(ctx, (mu__pid){records->node, MU__PS}, t->msg->kind,
                                  &body, sizeof body);
}

/* What becomes of the writes whose records were sent, or not. */
static void note_sent_records(struct ps *ps, struct taking *t, uint32_t node, int rv)
{
    bool is_later = rv != 0 && mu__send_is_transient(rv);
    struct mu__frame_reader reader = {t->frame, 0, 0};
    struct mu__effect_write write;

    for (uint32_t i = 0; mu__frame_next(&reader, &write); i++) {
        if (!is_for(ps, t, i, &write, node))
            continue;
        t->ways[i] = is_later ? BY_ITSELF : IS_SENT;
        if (rv != 0 && !is_later)
            mu__stream_lose(ps, ps->partitions[write.partition], TO_BACKUP,
                            MU__REPLICA_LOST);
    }
}

static void send_to_backup(struct mu__ctx *ctx, struct ps *ps, struct taking *t,
                           uint32_t node)
{
    size_t heads = t->frame->heads.size;
    struct framed_records records = {.node = node,
                                     .heads = malloc(heads + t->frame->data.size + 1)};
    struct mu__frame_reader reader = {t->frame, 0, 0};
    struct mu__effect_write write;
    int rv = -MU_ENOMEM;

    if (records.heads != NULL) {
        records.data = records.heads + heads;
        for (uint32_t i = 0; mu__frame_next(&reader, &write); i++)
            if (is_for(ps, t, i, &write, node))
                add_framed_record(ps, &records, &write);
        rv = send_framed_records(ctx, t, &records);
    }
    free(records.heads);
    note_sent_records(ps, t, node, rv);
}

static void send_to_backups(struct mu__ctx *ctx, struct ps *ps, struct taking *t)
{
    struct mu__frame_reader reader = {t->frame, 0, 0};
    struct mu__effect_write write;

    for (uint32_t i = 0; t->is_replicated && mu__frame_next(&reader, &write); i++) {
        uint32_t node = t->ways[i] == TOGETHER
                            ? ps->partitions[write.partition]->streams[TO_BACKUP].node
                            : 0;

        if (node != 0)
            send_to_backup(ctx, ps, t, node);
    }
}

/* ---- Requests ---- */

static void apply_framed(struct mu__ctx *ctx, struct ps *ps, const struct taking *t,
                         const struct mu__effect_write *write)
{
    struct partition *p = ps->partitions[write->partition];
    struct framed_message memory;

    p->record++;
    mu__ps_run(ctx, ps, p, t->mutation, message_of(&memory, t, write));
}

static void begin_by_itself(struct mu__ctx *ctx, struct ps *ps, const struct taking *t,
                            const struct mu__effect_write *write)
{
    struct mu__msg *msg =
        mu__msg_backed(ctx, t->mutation->kind, write, sizeof *write, t->msg->backing);

    if (msg == NULL) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a write of node %" PRIu32 " is lost",
                t->msg->from.node);
        return;
    }
    msg->from = t->msg->from;
    mu__ps_begin(ctx, ps, ps->partitions[write->partition], msg);
}

static void take_framed_requests(struct mu__ctx *ctx, struct ps *ps, struct taking *t)
{
    struct mu__frame_reader reader = {t->frame, 0, 0};
    struct rows_ahead rows;
    struct mu__effect_write write;

    begin_rows_ahead(&rows);
    choose_ways(ctx, ps, t);
    send_to_backups(ctx, ps, t);
    for (uint32_t i = 0; next_write(ps, &reader, &rows, &write); i++) {
        if (t->ways[i] == BY_ITSELF)
            begin_by_itself(ctx, ps, t, &write);
        else if (t->ways[i] != NOT_HERE)
            apply_framed(ctx, ps, t, &write);
    }
    mu__ahead_end(&rows.ahead);
}

/* ---- Records of others ---- */

static void take_framed_records(struct mu__ctx *ctx, struct ps *ps,
                                const struct taking *t)
{
    struct mu__frame_reader reader = {t->frame, 0, 0};
    struct rows_ahead rows;
    struct mu__effect_write write;
    struct framed_message memory;

    begin_rows_ahead(&rows);
    while (next_write(ps, &reader, &rows, &write))
        mu__stream_take(ctx, ps, t->mutation, message_of(&memory, t, &write));
    mu__ahead_end(&rows.ahead);
}

void mu__ps_on_effect_writes(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct taking t = {
        .frame = mu__body(msg),
        .msg = msg,
        .mutation = mu__ps_mutation(msg->kind == MU__OWN_WRITES ? MU__OWN_WRITE
                                                                : MU__EFFECT_WRITE),
    };

    _Static_assert(sizeof(struct mu__own_writes) == sizeof(struct mu__effect_writes),
                   "the same fields");
    if (!mu__frame_is_valid(t.frame))
        mu__log(ctx, MU__LOG_WARN,
                "writes of node %" PRIu32 " are not as many as it says", msg->from.node);
    else if (t.frame->is_record)
        take_framed_records(ctx, state, &t);
    else
        take_framed_requests(ctx, state, &t);
}
