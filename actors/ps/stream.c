/* Records to the other replica, answers that wait until it has them, and the replica's
 * side of it. */
#include "actors/ps/stream.h"

#include "actors/keep.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETRY_MS = 2,       /* after a link had no room */
    LINK_WAIT_MS = 1000 /* a replica without a link is lost then */
};

/* ---- What waits ---- */

static struct held_message *first_held(const struct mu__list *list)
{
    return MU__LIST_FIRST(list, struct held_message, node);
}

/* Takes `msg`. */
static void keep_message(struct mu__ctx *ctx, struct mu__list *list, uint64_t record,
                         mu__pid to, struct mu__msg *msg)
{
    struct held_message *held = msg == NULL ? NULL : calloc(1, sizeof *held);

    if (held == NULL) {
        mu__log(ctx, MU__LOG_ERROR,
                "out of memory: a message of node %" PRIu32 " is lost", to.node);
        if (msg != NULL)
            mu__msg_free(ctx, msg);
        return;
    }
    held->record = record;
    held->to = to;
    held->msg = msg;
    mu__list_append(list, &held->node);
}

static void drop_messages(struct mu__ctx *ctx, struct mu__list *list)
{
    struct held_message *held;

    while ((held = first_held(list)) != NULL) {
        mu__list_remove(list, &held->node);
        mu__msg_free(ctx, held->msg);
        free(held);
    }
}

void mu__stream_drop(struct mu__ctx *ctx, struct partition *p)
{
    drop_messages(ctx, &p->stream.held);
    drop_messages(ctx, &p->stream.deferred);
}

void mu__stream_hold(struct mu__ctx *ctx, struct partition *p, mu__pid to, uint16_t kind,
                     const void *body, size_t size)
{
    struct mu__msg *msg = mu__msg_backed(ctx, kind, body, size, NULL);

    if (msg != NULL && mu__msg_keep(mu__kernel_schema(ctx->kernel), msg) != 0) {
        mu__msg_free(ctx, msg);
        msg = NULL;
    }
    keep_message(ctx, &p->stream.held, p->record, to, msg);
}

void mu__stream_release(struct mu__ctx *ctx, struct partition *p)
{
    struct held_message *held;

    while ((held = first_held(&p->stream.held)) != NULL &&
           (!p->stream.needed || held->record <= p->stream.acked) &&
           held->record <= p->safe) {
        mu__list_remove(&p->stream.held, &held->node);
        if (mu__send(ctx, held->to, held->msg) != 0)
            mu__log(ctx, MU__LOG_WARN, "an answer to node %" PRIu32 " was lost",
                    held->to.node);
        free(held);
    }
}

/* The timer that is due first counts. */
static void arm_retry(struct mu__ctx *ctx, struct ps *ps, uint64_t delay_ms)
{
    uint64_t due_ms = mu__now_ms(ctx) + delay_ms;

    if (ps->retry_timer != 0 && ps->retry_due_ms <= due_ms)
        return;
    mu__timer_cancel(ctx, ps->retry_timer);
    ps->retry_timer = mu__timer_set(ctx, delay_ms, 0);
    ps->retry_due_ms = due_ms;
}

void mu__stream_arm(struct mu__ctx *ctx, struct ps *ps)
{
    arm_retry(ctx, ps, RETRY_MS);
}

void mu__stream_defer(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                      struct mu__msg *msg)
{
    keep_message(ctx, &p->stream.deferred, 0, msg->from, msg);
    arm_retry(ctx, ps, RETRY_MS);
}

void mu__stream_drain(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    struct held_message *held;

    while ((held = first_held(&p->stream.deferred)) != NULL) {
        if (!mu__ps_begin_deferred(ctx, ps, p, held->msg)) {
            arm_retry(ctx, ps, RETRY_MS);
            return;
        }
        mu__list_remove(&p->stream.deferred, &held->node);
        mu__msg_free(ctx, held->msg);
        free(held);
    }
}

/* ---- The primary: beginning and end ---- */

static const struct mu__replica *other_replica(const struct partition *p)
{
    return p->view.backup.incarnation != 0 ? &p->view.backup : &p->view.learner;
}

static bool need_sums(struct partition *p)
{
    if (p->stream.sums == NULL)
        p->stream.sums = calloc(STREAM_RECORDS_MAX, sizeof *p->stream.sums);
    return p->stream.sums != NULL;
}

static void send_replica_view(struct mu__ctx *ctx, const struct mu__partition_view *view,
                              uint32_t node)
{
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__replica_view body = {.view = {bytes, sizeof bytes}};

    (void)mu__views_put(bytes, view);
    mu__ps_send(ctx, (mu__pid){node, MU__PS}, MU__REPLICA_VIEW, &body, sizeof body);
}

void mu__stream_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    const struct mu__replica *replica = other_replica(p);
    const struct ps_node *node = mu__ps_replica_node(ps, replica);
    struct stream *stream = &p->stream;

    if (replica->incarnation == 0)
        return;
    stream->needed = p->view.backup.incarnation != 0;
    if (node == NULL) {
        if (stream->wait_until_ms == 0)
            stream->wait_until_ms = mu__now_ms(ctx) + LINK_WAIT_MS;
        arm_retry(ctx, ps, LINK_WAIT_MS);
        return;
    }
    if (!need_sums(p)) {
        mu__stream_lose(ps, p, MU__REPLICA_LOST);
        return;
    }
    stream->wait_until_ms = 0;
    stream->node = node->node;
    stream->acked = p->record;
    stream->checked_from = stream->needed ? p->record + 1 : UINT64_MAX;
    send_replica_view(ctx, &p->view, node->node);
    if (stream->needed)
        mu__stream_drain(ctx, ps, p);
    else
        mu__fill_begin(ctx, ps, p);
}

/* A learner cannot be filled in a generation that has begun: there may be requests under
 * way of which it would know only the rest. */
void mu__stream_linked(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    if (p->stream.needed)
        mu__stream_begin(ctx, ps, p);
    else
        mu__stream_lose(ps, p, MU__REPLICA_LOST);
}

void mu__stream_lose(struct ps *ps, struct partition *p, enum mu__replica_fate fate)
{
    p->stream.node = 0;
    p->stream.wait_until_ms = 0;
    p->stream.fate = fate;
    mu__fill_end(ps, p);
    ps->news_due = true;
}

void mu__stream_end(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    p->stream.node = 0;
    p->stream.needed = false;
    p->stream.wait_until_ms = 0;
    mu__fill_end(ps, p);
    mu__stream_release(ctx, p);
    mu__stream_drain(ctx, ps, p);
}

void mu__stream_tick(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    uint64_t until_ms = p->stream.wait_until_ms;

    if (until_ms != 0 && until_ms <= mu__now_ms(ctx))
        mu__stream_lose(ps, p, MU__REPLICA_LOST);
    else if (until_ms != 0)
        arm_retry(ctx, ps, until_ms - mu__now_ms(ctx));
    mu__fill_go_on(ctx, ps, p);
    mu__stream_drain(ctx, ps, p);
}

/* ---- The primary: records ---- */

bool mu__stream_is_blocked(struct mu__ctx *ctx, const struct partition *p)
{
    const struct stream *stream = &p->stream;

    if (stream->node == 0)
        return stream->needed;
    return p->record - stream->acked >= STREAM_RECORDS_MAX ||
           mu__is_behind(ctx, stream->node);
}

void mu__stream_fill_record(const struct partition *p, const struct mutation *mutation,
                            const struct mu__msg *msg,
                            uint8_t ret_body[MU__RECORD_BODY_MAX])
{
    memcpy(ret_body, (const void *)msg->body, mutation->size);
    memcpy(ret_body + mutation->partition, &p->view.partition, sizeof(uint32_t));
    memcpy(ret_body + mutation->generation, &p->view.number, sizeof(uint64_t));
    memcpy(ret_body + mutation->record, &p->record, sizeof(uint64_t));
    if (msg->kind != MU__CLIENT_LOST)
        memcpy(ret_body + mutation->writer, &msg->from.node, sizeof(uint32_t));
}

bool mu__stream_send(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                     const struct mutation *mutation, const struct mu__msg *msg)
{
    union {
        max_align_t align;
        uint8_t bytes[MU__RECORD_BODY_MAX];
    } copy;
    int rv;

    if (p->stream.node == 0)
        return true;
    mu__stream_fill_record(p, mutation, msg, copy.bytes);
    rv = mu__send_backed(ctx, (mu__pid){p->stream.node, MU__PS}, msg->kind, copy.bytes,
                         mutation->size, msg->backing);
    if (rv != 0 && mu__send_is_transient(rv))
        return false;
    if (rv != 0)
        mu__stream_lose(ps, p, MU__REPLICA_LOST);
    return true;
}

void mu__stream_applied(struct partition *p)
{
    if (p->stream.node != 0)
        p->stream.sums[p->record % STREAM_RECORDS_MAX] = p->sum;
}

void mu__stream_note(struct partition *p, uint64_t outcome)
{
    p->sum = ((p->sum ^ outcome) + 1) * UINT64_C(0x9e3779b97f4a7c15);
    p->sum ^= p->sum >> 29;
}

/* Whether the replica has come to another result. */
static bool has_diverged(const struct partition *p, const struct mu__record_mark *mark)
{
    return mark->record >= p->stream.checked_from && mark->record <= p->record &&
           p->record - mark->record < STREAM_RECORDS_MAX &&
           p->stream.sums[mark->record % STREAM_RECORDS_MAX] != mark->sum;
}

static void lose_diverged(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                          const char *what)
{
    const struct mu__replica *replica = other_replica(p);

    mu__log(ctx, MU__LOG_WARN,
            "the copy of partition %" PRIu32 " on /job:ps/task:%" PRIu32
            " %s: it is filled anew",
            p->view.partition, replica->task, what);
    mu__stream_lose(ps, p, MU__REPLICA_DIVERGED);
}

static void take_mark(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                      const struct mu__record_mark *mark)
{
    if (mark->verdict != MU__RECORDS_APPLIED) {
        lose_diverged(ctx, ps, p, "lacks a record");
        return;
    }
    if (has_diverged(p, mark)) {
        lose_diverged(ctx, ps, p, "differs");
        return;
    }
    if (mark->record > p->stream.acked && mark->record <= p->record)
        p->stream.acked = mark->record;
    mu__fill_check_level(ps, p);
    mu__stream_release(ctx, p);
    mu__stream_drain(ctx, ps, p);
}

void mu__stream_on_records_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__records_done *body = mu__body(msg);
    struct mu__record_mark mark;

    for (uint32_t i = 0; i < mu__record_marks_count(body->marks); i++) {
        struct partition *p;

        if (!mu__record_marks_at(body->marks, i, &mark))
            continue;
        p = ps->partitions[mark.partition];
        if (p != NULL && p->role == SERVING && p->stream.node == msg->from.node)
            take_mark(ctx, ps, p, &mark);
    }
}

/* ---- The replica ---- */

void mu__stream_mark(struct ps *ps, struct partition *p)
{
    if (!p->mark_due)
        ps->marks_due++;
    p->mark_due = true;
}

struct partition *mu__stream_replica_of(struct mu__ctx *ctx, struct ps *ps,
                                        uint32_t partition, uint64_t view, uint32_t node)
{
    struct partition *p = ps->partitions[partition];
    const struct ps_node *primary =
        p == NULL ? NULL : mu__ps_replica_node(ps, &p->view.primary);

    if (p == NULL || p->role == SERVING || primary == NULL || primary->node != node) {
        if (view < ps->newest[partition].number)
            send_replica_view(ctx, &ps->newest[partition], node);
        return NULL;
    }
    return p->broken ? NULL : p;
}

void mu__stream_take(struct mu__ctx *ctx, struct ps *ps, const struct mutation *mutation,
                     struct mu__msg *msg)
{
    const uint8_t *body = mu__body(msg);
    struct partition *p;
    uint32_t partition;
    uint64_t view;
    uint64_t record;
    mu__pid writer = {0, MU__VARIABLES};

    memcpy(&partition, body + mutation->partition, sizeof partition);
    memcpy(&view, body + mutation->generation, sizeof view);
    memcpy(&record, body + mutation->record, sizeof record);
    memcpy(&writer.node, body + mutation->writer, sizeof writer.node);
    p = mu__stream_replica_of(ctx, ps, partition, view, msg->from.node);
    if (p == NULL || (p->role == LEARNING && !p->filling.active))
        return;
    mu__stream_mark(ps, p);
    if (record != p->record + 1) {
        p->broken = true;
        return;
    }
    p->record = record;
    mutation->apply(ctx, ps, p, msg, writer);
}

/* The marks that are due for the primary at `node`. */
static void send_marks_to(struct mu__ctx *ctx, struct ps *ps, uint32_t node)
{
    uint8_t bytes[MU__PARTITIONS * MU__RECORD_MARK_BYTES];
    uint8_t *at = bytes;
    struct mu__records_done body;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        struct partition *p = ps->partitions[i];
        const struct ps_node *primary =
            p == NULL || !p->mark_due ? NULL : mu__ps_replica_node(ps, &p->view.primary);

        if (primary == NULL || primary->node != node)
            continue;
        p->mark_due = false;
        ps->marks_due--;
        at = mu__record_marks_put(
            at, &(struct mu__record_mark){.partition = i,
                                          .verdict = p->broken ? MU__RECORDS_BROKEN
                                                               : MU__RECORDS_APPLIED,
                                          .view = p->view.number,
                                          .record = p->record,
                                          .sum = p->sum});
    }
    body.marks = (struct mu__view){bytes, (uint32_t)(at - bytes)};
    if (at > bytes)
        mu__ps_send(ctx, (mu__pid){node, MU__PS}, MU__RECORDS_DONE, &body, sizeof body);
}

void mu__stream_send_marks(struct mu__ctx *ctx, struct ps *ps)
{
    for (uint32_t i = 0; ps->marks_due > 0 && i < ps->nodes_count; i++)
        if (ps->nodes[i].is_server)
            send_marks_to(ctx, ps, ps->nodes[i].node);
}
