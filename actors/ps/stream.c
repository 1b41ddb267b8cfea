/* Records to the other replicas, answers that wait until these have them, and a replica's
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

static struct held_message *append_held(struct mu__list *list, uint64_t record,
                                        mu__pid to)
{
    struct held_message *held = calloc(1, sizeof *held);

    if (held == NULL)
        return NULL;
    held->record = record;
    held->to = to;
    mu__list_append(list, &held->node);
    return held;
}

static void log_lost_message(struct mu__ctx *ctx, mu__pid to)
{
    mu__log(ctx, MU__LOG_ERROR, "out of memory: a message of node %" PRIu32 " is lost",
            to.node);
}

/* Takes `msg`. */
static void keep_message(struct mu__ctx *ctx, struct mu__list *list, uint64_t record,
                         mu__pid to, struct mu__msg *msg)
{
    struct held_message *held = msg == NULL ? NULL : append_held(list, record, to);

    if (held != NULL) {
        held->msg = msg;
        return;
    }
    log_lost_message(ctx, to);
    if (msg != NULL)
        mu__msg_free(ctx, msg);
}

static void drop_messages(struct mu__ctx *ctx, struct mu__list *list)
{
    struct held_message *held;

    while ((held = first_held(list)) != NULL) {
        mu__list_remove(list, &held->node);
        if (held->msg != NULL)
            mu__msg_free(ctx, held->msg);
        free(held);
    }
}

void mu__stream_drop(struct mu__ctx *ctx, struct partition *p)
{
    drop_messages(ctx, &p->held);
    drop_messages(ctx, &p->deferred);
}

void mu__stream_hold(struct mu__ctx *ctx, struct partition *p, mu__pid to, uint16_t kind,
                     const void *body, size_t size)
{
    struct mu__msg *msg = mu__msg_backed(ctx, kind, body, size, NULL);

    if (msg != NULL && mu__msg_keep(mu__kernel_schema(ctx->kernel), msg) != 0) {
        mu__msg_free(ctx, msg);
        msg = NULL;
    }
    keep_message(ctx, &p->held, p->record, to, msg);
}

void mu__stream_hold_written(struct mu__ctx *ctx, struct partition *p, mu__pid to,
                             uint64_t token)
{
    struct held_message *held = append_held(&p->held, p->record, to);

    if (held == NULL)
        log_lost_message(ctx, to);
    else
        held->token = token;
}

static void send_held(struct mu__ctx *ctx, const struct partition *p,
                      const struct held_message *held)
{
    int rv = 0;

    if (held->msg == NULL)
        mu__written_add(ctx, p->written, held->to, held->token);
    else
        rv = mu__send(ctx, held->to, held->msg);
    if (rv != 0)
        mu__log(ctx, mu__ps_lost_level(rv), "an answer to node %" PRIu32 " was lost",
                held->to.node);
}

void mu__stream_release(struct mu__ctx *ctx, struct partition *p)
{
    struct held_message *held;

    while ((held = first_held(&p->held)) != NULL && held->record <= mu__stream_acked(p)) {
        mu__list_remove(&p->held, &held->node);
        send_held(ctx, p, held);
        free(held);
    }
}

/* The timer that is due first counts. */
static void arm_retry(struct mu__ctx *ctx, struct ps *ps, uint64_t delay_ms)
{
    uint64_t due_ms = mu__now_ms(ctx) + delay_ms;

    if (ps->retry.timer != 0 && ps->retry.due_ms <= due_ms)
        return;
    mu__timer_cancel(ctx, ps->retry.timer);
    ps->retry.timer = mu__timer_set(ctx, delay_ms, 0);
    ps->retry.due_ms = due_ms;
}

void mu__stream_arm(struct mu__ctx *ctx, struct ps *ps)
{
    arm_retry(ctx, ps, RETRY_MS);
}

void mu__stream_defer(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                      struct mu__msg *msg)
{
    keep_message(ctx, &p->deferred, 0, msg->from, msg);
    arm_retry(ctx, ps, RETRY_MS);
}

void mu__stream_drain(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    struct held_message *held;

    while ((held = first_held(&p->deferred)) != NULL) {
        if (!mu__ps_begin_deferred(ctx, ps, p, held->msg)) {
            arm_retry(ctx, ps, RETRY_MS);
            return;
        }
        mu__list_remove(&p->deferred, &held->node);
        mu__msg_free(ctx, held->msg);
        free(held);
    }
}

/* ---- The primary: beginning and end ---- */

const struct mu__replica *mu__stream_replica(const struct partition *p, int which)
{
    return which == TO_BACKUP ? &p->view.backup : &p->view.learner;
}

/* There may be a learner, which is not level yet. */
static bool lacks_replica(const struct partition *p)
{
    return !p->streams[TO_BACKUP].needed && !p->streams[TO_LEARNER].needed;
}

uint64_t mu__stream_replicated(const struct partition *p)
{
    uint64_t acked = p->strict && lacks_replica(p) ? p->safe : UINT64_MAX;

    for (int i = 0; i < STREAMS; i++)
        if (p->streams[i].needed && p->streams[i].acked < acked)
            acked = p->streams[i].acked;
    return acked;
}

uint64_t mu__stream_acked(const struct partition *p)
{
    uint64_t replicated = mu__stream_replicated(p);

    return replicated < p->journaled ? replicated : p->journaled;
}

static bool need_sums(struct partition *p)
{
    if (p->sums == NULL)
        p->sums = calloc(STREAM_RECORDS_MAX, sizeof *p->sums);
    return p->sums != NULL;
}

static void send_replica_view(struct mu__ctx *ctx, const struct mu__partition_view *view,
                              uint32_t node)
{
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__replica_view body = {.view = {bytes, sizeof bytes}};

    (void)mu__views_put(bytes, view);
    mu__ps_send(ctx, (mu__pid){node, MU__PS}, MU__REPLICA_VIEW, &body, sizeof body);
}

void mu__stream_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p, int which)
{
    const struct mu__replica *replica = mu__stream_replica(p, which);
    const struct ps_node *node = mu__ps_replica_node(ps, replica);
    struct stream *stream = &p->streams[which];

    if (replica->incarnation == 0)
        return;
    stream->needed = which == TO_BACKUP;
    if (node == NULL) {
        if (stream->wait_until_ms == 0)
            stream->wait_until_ms = mu__now_ms(ctx) + LINK_WAIT_MS;
        arm_retry(ctx, ps, LINK_WAIT_MS);
        return;
    }
    if (!need_sums(p)) {
        mu__stream_lose(ps, p, which, MU__REPLICA_LOST);
        return;
    }
    stream->wait_until_ms = 0;
    stream->node = node->node;
    stream->acked = p->record;
    stream->checked_from = stream->needed ? p->record + 1 : UINT64_MAX;
    send_replica_view(ctx, &p->view, node->node);
    if (stream->needed)
        mu__stream_settle(ctx, ps, p);
    else
        mu__fill_begin(ctx, ps, p);
}

/* A learner cannot be filled in a generation that has begun: there may be requests under
 * way of which it would know only the rest. */
void mu__stream_linked(struct mu__ctx *ctx, struct ps *ps, struct partition *p, int which)
{
    if (p->streams[which].needed)
        mu__stream_begin(ctx, ps, p, which);
    else
        mu__stream_lose(ps, p, which, MU__REPLICA_LOST);
}

void mu__stream_lose(struct ps *ps, struct partition *p, int which,
                     enum mu__replica_fate fate)
{
    struct stream *stream = &p->streams[which];

    stream->node = 0;
    stream->wait_until_ms = 0;
    stream->fate = fate;
    if (which == TO_LEARNER)
        mu__fill_end(ps, p);
    ps->news_due = true;
}

void mu__stream_end(struct ps *ps, struct partition *p, int which)
{
    p->streams[which] = (struct stream){.node = 0};
    if (which == TO_LEARNER)
        mu__fill_end(ps, p);
}

void mu__stream_raise(struct ps *ps, struct partition *p)
{
    p->streams[TO_BACKUP] = p->streams[TO_LEARNER];
    mu__stream_end(ps, p, TO_LEARNER);
}

/* The backup has all, and stays as it is. */
static void check_ready(struct ps *ps, struct partition *p)
{
    const struct stream *stream = &p->streams[TO_BACKUP];

    if (p->ready || !p->view.handover || !mu__ps_has_chief(ps) || stream->node == 0 ||
        stream->acked < p->record)
        return;
    p->ready = true;
    ps->news_due = true;
}

void mu__stream_settle(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    check_ready(ps, p);
    mu__stream_release(ctx, p);
    mu__stream_drain(ctx, ps, p);
}

static void check_link(struct mu__ctx *ctx, struct ps *ps, struct partition *p, int which)
{
    uint64_t until_ms = p->streams[which].wait_until_ms;

    if (until_ms != 0 && until_ms <= mu__now_ms(ctx))
        mu__stream_lose(ps, p, which, MU__REPLICA_LOST);
    else if (until_ms != 0)
        arm_retry(ctx, ps, until_ms - mu__now_ms(ctx));
}

void mu__stream_tick(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    for (int i = 0; i < STREAMS; i++)
        check_link(ctx, ps, p, i);
    mu__fill_go_on(ctx, ps, p);
    mu__stream_drain(ctx, ps, p);
}

/* ---- The primary: records ---- */

static bool is_stream_blocked(struct mu__ctx *ctx, const struct partition *p,
                              const struct stream *stream)
{
    if (stream->node == 0)
        return stream->needed;
    return p->record - stream->acked >= STREAM_RECORDS_MAX ||
           mu__is_behind(ctx, stream->node);
}

/* Once the chief may have been told that all has come to an end here, only another view
 * changes that. Before, a chief has to be there to tell. */
bool mu__stream_is_blocked(struct mu__ctx *ctx, const struct ps *ps,
                           const struct partition *p)
{
    return p->ready || (p->view.handover && mu__ps_has_chief(ps)) ||
           (p->strict && lacks_replica(p)) ||
           is_stream_blocked(ctx, p, &p->streams[TO_BACKUP]) ||
           is_stream_blocked(ctx, p, &p->streams[TO_LEARNER]);
}

bool mu__stream_is_cut_off(const struct partition *p)
{
    for (int i = 0; i < STREAMS; i++)
        if (p->streams[i].needed && p->streams[i].node == 0)
            return true;
    return false;
}

static bool hears_chief(const struct ps *ps)
{
    for (uint32_t i = 0; i < ps->nodes_count; i++)
        if (ps->nodes[i].is_heard)
            return true;
    return false;
}

bool mu__ps_is_cut_off(const struct ps *ps, const struct partition *p)
{
    return mu__stream_is_cut_off(p) && !hears_chief(ps);
}

struct stream_record {
    uint16_t kind;
    const void *body;
    size_t size;
    struct mu__buf *backing;
};

/* A record that only the first replica has is lost to the second: that is filled anew. */
static bool send_record(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                        int which, const struct stream_record *record)
{
    bool is_first = which == TO_BACKUP || p->streams[TO_BACKUP].node == 0;
    int rv;

    if (p->streams[which].node == 0)
        return true;
    rv = mu__send_backed(ctx, (mu__pid){p->streams[which].node, MU__PS}, record->kind,
                         record->body, record->size, record->backing);
    if (rv != 0 && is_first && mu__send_is_transient(rv))
        return false;
    if (rv != 0)
        mu__stream_lose(ps, p, which, MU__REPLICA_LOST);
    return true;
}

void mu__stream_fill_record(const struct partition *p, const struct mutation *mutation,
                            const struct mu__msg *msg,
                            uint8_t ret_body[MU__RECORD_BODY_MAX])
{
    memcpy(ret_body, (const void *)msg->body, mutation->size);
    memcpy(ret_body + mutation->partition, &p->view.partition, sizeof(uint32_t));
    memcpy(ret_body + mutation->generation, &p->generation, sizeof(uint64_t));
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
    const struct stream_record record = {msg->kind, copy.bytes, mutation->size,
                                         msg->backing};

    mu__stream_fill_record(p, mutation, msg, copy.bytes);
    for (int i = 0; i < STREAMS; i++)
        if (!send_record(ctx, ps, p, i, &record))
            return false;
    return true;
}

bool mu__stream_is_alone(const struct partition *p)
{
    return p->role == SERVING && !p->is_journaled && !p->is_in_snapshot &&
           lacks_replica(p) && p->streams[TO_BACKUP].node == 0 &&
           p->streams[TO_LEARNER].node == 0;
}

void mu__stream_applied(struct partition *p)
{
    if (p->sums != NULL)
        p->sums[p->record % STREAM_RECORDS_MAX] = p->sum;
}

void mu__stream_note(struct partition *p, uint64_t outcome)
{
    p->sum = ((p->sum ^ outcome) + 1) * UINT64_C(0x9e3779b97f4a7c15);
    p->sum ^= p->sum >> 29;
}

/* Whether the replica has come to another result. */
static bool has_diverged(const struct partition *p, const struct stream *stream,
                         const struct mu__record_mark *mark)
{
    return mark->record >= stream->checked_from && mark->record <= p->record &&
           p->record - mark->record < STREAM_RECORDS_MAX &&
           p->sums[mark->record % STREAM_RECORDS_MAX] != mark->sum;
}

static void lose_diverged(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                          int which, const char *what)
{
    mu__log(ctx, MU__LOG_WARN,
            "the copy of partition %" PRIu32 " on /job:ps/task:%" PRIu32
            " %s: it is filled anew",
            p->view.partition, mu__stream_replica(p, which)->task, what);
    mu__stream_lose(ps, p, which, MU__REPLICA_DIVERGED);
}

static void take_mark(struct mu__ctx *ctx, struct ps *ps, struct partition *p, int which,
                      const struct mu__record_mark *mark)
{
    struct stream *stream = &p->streams[which];

    if (mark->verdict != MU__RECORDS_APPLIED) {
        lose_diverged(ctx, ps, p, which, "lacks a record");
        return;
    }
    if (has_diverged(p, stream, mark)) {
        lose_diverged(ctx, ps, p, which, "differs");
        return;
    }
    if (mark->record > stream->acked && mark->record <= p->record)
        stream->acked = mark->record;
    mu__fill_check_level(ps, p);
    mu__stream_settle(ctx, ps, p);
}

static void take_mark_of(struct mu__ctx *ctx, struct ps *ps, uint32_t node,
                         const struct mu__record_mark *mark)
{
    struct partition *p = ps->partitions[mark->partition];

    if (p == NULL || p->role != SERVING)
        return;
    for (int i = 0; i < STREAMS; i++)
        if (p->streams[i].node == node) {
            take_mark(ctx, ps, p, i, mark);
            return;
        }
}

void mu__stream_on_records_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__records_done *body = mu__body(msg);
    struct mu__record_mark mark;

    for (uint32_t i = 0; i < mu__record_marks_count(body->marks); i++)
        if (mu__record_marks_at(body->marks, i, &mark))
            take_mark_of(ctx, ps, msg->from.node, &mark);
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
    return p->broken || p->role == RESTORED ? NULL : p;
}

void mu__stream_take(struct mu__ctx *ctx, struct ps *ps, const struct mutation *mutation,
                     struct mu__msg *msg)
{
    const uint8_t *body = mu__body(msg);
    struct partition *p;
    uint32_t partition;
    uint64_t generation;
    uint64_t record;
    mu__pid writer = {0, MU__VARIABLES};

    memcpy(&partition, body + mutation->partition, sizeof partition);
    memcpy(&generation, body + mutation->generation, sizeof generation);
    memcpy(&record, body + mutation->record, sizeof record);
    memcpy(&writer.node, body + mutation->writer, sizeof writer.node);
    p = mu__stream_replica_of(ctx, ps, partition, generation >> MU__GENERATION_BITS,
                              msg->from.node);
    if (p == NULL || (p->role == LEARNING && !p->filling.active))
        return;
    mu__stream_mark(ps, p);
    if (record != p->record + 1) {
        p->broken = true;
        return;
    }
    if (generation > p->generation)
        mu__ps_end_copied_generation(ctx, ps, p);
    p->generation = generation;
    p->record = record;
    ps->journal.is_refused = false;
    mutation->apply(ctx, ps, p, msg, writer);
    mu__ps_journal_copy(ps, p, mutation, msg);
}

/* What its journal lacks is not acknowledged. */
static bool may_mark(const struct partition *p)
{
    return p->mark_due && (p->broken || p->record <= p->journaled);
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
            p == NULL || !may_mark(p) ? NULL : mu__ps_replica_node(ps, &p->view.primary);

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
