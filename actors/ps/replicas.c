/* Views: which partitions are here, and in which role; and the nodes around. */
#include "actors/ps/stream.h"

#include "actors/keep.h"
#include "actors/packing.h"
#include "actors/ps/store_snapshots.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Nodes ---- */

static struct ps_node *find_ps_node(const struct ps *ps, uint32_t node)
{
    for (uint32_t i = 0; i < ps->nodes_count; i++)
        if (ps->nodes[i].node == node)
            return &ps->nodes[i];
    return NULL;
}

bool mu__ps_is_chief(const struct ps *ps, uint32_t node)
{
    const struct ps_node *found = find_ps_node(ps, node);

    return found != NULL && found->is_chief;
}

static bool is_server_node(const struct ps *ps, uint32_t node)
{
    const struct ps_node *found = find_ps_node(ps, node);

    return found != NULL && found->is_server;
}

bool mu__ps_has_chief(const struct ps *ps)
{
    for (uint32_t i = 0; i < ps->nodes_count; i++)
        if (ps->nodes[i].is_chief)
            return true;
    return false;
}

const struct ps_node *mu__ps_replica_node(const struct ps *ps,
                                          const struct mu__replica *replica)
{
    for (uint32_t i = 0; i < ps->nodes_count; i++)
        if (ps->nodes[i].is_server &&
            mu__replica_is(replica, ps->nodes[i].index, ps->nodes[i].incarnation))
            return &ps->nodes[i];
    return NULL;
}

/* ---- What is told ---- */

/* The partitions that are served, to a node. */
static void report_serving(struct mu__ctx *ctx, const struct ps *ps, uint32_t node)
{
    uint8_t bytes[MU__PARTITIONS * MU__NUMBERED_BYTES];
    uint8_t *at = bytes;
    struct mu__serves body;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (ps->partitions[i] != NULL && ps->partitions[i]->role == SERVING)
            at = mu__numbered_put(
                at, &(struct mu__numbered){i, ps->partitions[i]->generation});
    body.partitions = (struct mu__view){bytes, (uint32_t)(at - bytes)};
    if (at > bytes)
        mu__ps_send(ctx, (mu__pid){node, MU__VARIABLES}, MU__SERVES, &body, sizeof body);
}

static void report_serving_to_all(struct mu__ctx *ctx, struct ps *ps)
{
    ps->serves_due = false;
    report_serving(ctx, ps, MU__NODE_SELF);
    for (uint32_t i = 0; i < ps->nodes_count; i++)
        report_serving(ctx, ps, ps->nodes[i].node);
}

/* Whether the primary has all in its journal, and needs no backup for that. */
static bool has_spare(const struct ps *ps, const struct partition *p)
{
    return p->view.backup.incarnation != 0 &&
           (ps->journal.file == NULL || p->is_journaled);
}

/* Whether this became of one of the other replicas; a spare one may be lost, too. */
static bool has_fate(const struct ps *ps, const struct partition *p, int which,
                     enum mu__replica_fate fate)
{
    if (fate == MU__REPLICA_SPARE)
        return which == TO_BACKUP && has_spare(ps, p);
    if (which != TO_BACKUP || p->streams[which].fate != 0)
        return p->streams[which].fate == fate;
    return p->ready && fate == MU__REPLICA_READY;
}

static void report_fate(struct mu__ctx *ctx, const struct ps *ps, int which,
                        enum mu__replica_fate fate)
{
    uint8_t bytes[MU__PARTITIONS * MU__NUMBERED_BYTES];
    uint8_t *at = bytes;
    struct mu__replica_news body = {.news = (uint32_t)fate,
                                    .learner = which == TO_LEARNER};

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct partition *p = ps->partitions[i];

        if (p != NULL && p->role == SERVING && has_fate(ps, p, which, fate))
            at = mu__numbered_put(at, &(struct mu__numbered){i, p->view.number});
    }
    body.partitions = (struct mu__view){bytes, (uint32_t)(at - bytes)};
    for (uint32_t i = 0; at > bytes && i < ps->nodes_count; i++)
        if (ps->nodes[i].is_chief)
            mu__ps_send(ctx, (mu__pid){ps->nodes[i].node, MU__VIEWS}, MU__REPLICA_NEWS,
                        &body, sizeof body);
}

static void report_fates(struct mu__ctx *ctx, struct ps *ps)
{
    ps->news_due = false;
    for (int which = 0; which < STREAMS; which++)
        for (int fate = MU__REPLICA_LOST; fate <= MU__REPLICA_SPARE; fate++)
            report_fate(ctx, ps, which, (enum mu__replica_fate)fate);
}

void mu__ps_report(struct mu__ctx *ctx, struct ps *ps)
{
    if (ps->serves_due)
        report_serving_to_all(ctx, ps);
    if (ps->news_due)
        report_fates(ctx, ps);
}

/* The newest views that were heard, to a chief. A restarted one must not count on a
 * server that has dropped a partition since, nor choose numbers below. */
static void report_held_views(struct mu__ctx *ctx, struct ps *ps, uint32_t node)
{
    uint8_t bytes[MU__PARTITIONS * MU__VIEW_BYTES];
    uint8_t *at = bytes;
    struct mu__ps_restored restored;
    struct mu__views_held body = {.draining = ps->orders.draining};

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (ps->newest[i].number != 0)
            at = mu__views_put(at, &ps->newest[i]);
    body.known = at != bytes;
    body.views = (struct mu__view){bytes, (uint32_t)(at - bytes)};
    mu__ps_journal_report(ps, &restored, &body);
    mu__ps_send(ctx, (mu__pid){node, MU__VIEWS}, MU__VIEWS_HELD, &body, sizeof body);
    report_fates(ctx, ps);
}

void mu__ps_on_views_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__views_get *body = mu__body(msg);

    if (!mu__ps_is_chief(ps, msg->from.node))
        return;
    ps->orders.draining |= body->draining;
    report_held_views(ctx, ps, msg->from.node);
}

/* ---- Partitions ---- */

void mu__ps_drop(struct mu__ctx *ctx, struct ps *ps, uint32_t partition)
{
    struct partition *p = ps->partitions[partition];

    if (p == NULL)
        return;
    mu__stream_drop(ctx, p);
    mu__fill_end(ps, p);
    if (p->mark_due)
        ps->marks_due--;
    mu__staging_done(&p->staging);
    mu__applied_done(&p->applied);
    mu__writers_done(&p->writers);
    mu__clocks_done(&p->clocks);
    mu__store_free(p->store);
    free(p->sums);
    free(p);
    ps->partitions[partition] = NULL;
}

void mu__ps_free_all(struct mu__ctx *ctx, struct ps *ps)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        mu__ps_drop(ctx, ps, i);
    mu__free_array(ps->nodes);
    mu__ps_journal_close(ps);
}

struct partition *mu__ps_partition_new(
    struct ps *ps, const struct mu__partition_view *view, enum role role)
{
    struct partition *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->store = mu__store_new(&ps->limits, view->store_id);
    if (p->store == NULL) {
        free(p);
        return NULL;
    }
    p->role = role;
    p->view = *view;
    p->strict = ps->orders.strict;
    p->journaled = UINT64_MAX;
    mu__staging_init(&p->staging, &mu__staging_limits_default);
    p->staging.used = &ps->staged_used;
    p->written = &ps->written;
    ps->partitions[view->partition] = p;
    return p;
}

void mu__ps_end_generation(struct mu__ctx *ctx, struct partition *p)
{
    mu__stream_drop(ctx, p);
    mu__staging_done(&p->staging);
    mu__store_forget_nodes(p->store);
    mu__clocks_forget_nodes(&p->clocks);
    mu__snapshots_drop(p->store);
}

void mu__ps_end_copied_generation(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    mu__ps_end_generation(ctx, p);
    if (mu__ps_is_written(p))
        mu__ps_journal_view(ctx, ps, p->view.partition, MU__PS_HELD_GENERATION);
}

static void begin_ps_generation(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    mu__ps_end_generation(ctx, p);
    p->generation = mu__generation_of(p->view.number);
    ps->serves_due = true;
    mu__ps_journal_view(ctx, ps, p->view.partition, MU__PS_HELD_GENERATION);
}

/* No record can be written: a backup that stays forgets with the first one that follows
 * what is under way. */
static void renew_alone(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    mu__ps_end_generation(ctx, p);
    p->generation++;
    ps->serves_due = true;
    mu__ps_journal_view(ctx, ps, p->view.partition, MU__PS_HELD_GENERATION);
}

void mu__ps_renew_generation(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    bool is_last = p->generation + 1 == mu__generation_of(p->view.number + 1);
    bool is_alone = mu__stream_is_cut_off(p);
    struct mu__msg *msg = is_last || is_alone ? NULL : mu__msg_new(ctx, MU__CLIENT_LOST);

    if (!is_last && is_alone)
        renew_alone(ctx, ps, p);
    if (msg == NULL)
        return;
    ((struct mu__client_lost *)mu__body(msg))->writer = MU__CLIENTS_ALL;
    if (mu__ps_begin_deferred(ctx, ps, p, msg)) {
        mu__stream_drop(ctx, p);
        p->generation++;
        ps->serves_due = true;
    }
    mu__msg_free(ctx, msg);
}

/* ---- Views ---- */

/* The role of this process in a view; false: none. */
static bool role_in(const struct ps *ps, const struct mu__partition_view *view,
                    enum role *ret_role)
{
    const struct {
        const struct mu__replica *replica;
        enum role role;
    } roles[] = {
        {&view->primary, SERVING}, {&view->backup, BACKING}, {&view->learner, LEARNING}};

    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        *ret_role = roles[i].role;
        if (mu__replica_is(roles[i].replica, ps->index, ps->incarnation))
            return true;
    }
    return false;
}

static bool is_same_replica(const struct mu__replica *a, const struct mu__replica *b)
{
    return mu__replica_is(a, b->task, b->incarnation);
}

/* The other replicas that a view has and the last one had not. */
static void begin_streams(struct mu__ctx *ctx, struct ps *ps, struct partition *p)
{
    begin_ps_generation(ctx, ps, p);
    for (int i = 0; i < STREAMS; i++)
        if (!p->streams[i].needed)
            mu__stream_begin(ctx, ps, p, i);
    mu__ps_fence(ctx, ps, p);
}

/* The backup of another view is the former one, or the former learner, or none. */
static void keep_stream(struct ps *ps, struct partition *p, bool is_raised, bool stays)
{
    struct stream *stream = &p->streams[TO_BACKUP];

    if (stream->needed)
        p->safe = mu__stream_replicated(p);
    if (is_raised)
        mu__stream_raise(ps, p);
    else if (!stays)
        mu__stream_end(ps, p, TO_BACKUP);
    mu__stream_end(ps, p, TO_LEARNER);
    stream->fate = 0;
    if (stream->needed && stream->node == 0 && stream->wait_until_ms == 0)
        mu__stream_lose(ps, p, TO_BACKUP, MU__REPLICA_LOST); /* in this view, too */
}

/* A primary stays primary, in another view. One that was to hand over may have been
 * replaced meanwhile: clients may know of a newer generation. */
static void change_replicas(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                            const struct mu__partition_view *view)
{
    bool is_raised = is_same_replica(&view->backup, &p->view.learner);
    bool stays = is_same_replica(&view->backup, &p->view.backup);
    bool is_new = view->backup.incarnation != 0 && !is_raised && !stays;
    bool is_anew = is_new || p->view.handover || view->learner.incarnation != 0;

    p->view = *view;
    p->ready = false;
    ps->news_due |= has_spare(ps, p);
    mu__ps_journal_view(ctx, ps, view->partition, MU__PS_HELD_SAME);
    keep_stream(ps, p, is_raised, stays);
    if (is_anew)
        begin_streams(ctx, ps, p);
    mu__stream_settle(ctx, ps, p);
}

/* A file that is being written anew may have left it out. */
static void check_snapshot(const struct ps *ps, struct partition *p)
{
    if (!ps->journal.snapshot.runs || p->is_in_snapshot ||
        p->view.partition >= ps->journal.snapshot.partition)
        return;
    mu__ps_leave_journal(p);
}

static void promote(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                    const struct mu__partition_view *view)
{
    if (p->role == BACKING)
        check_snapshot(ps, p);
    p->view = *view;
    p->role = SERVING;
    p->broken = false;
    ps->news_due |= has_spare(ps, p);
    p->safe = p->record;
    p->filling = (struct filling){.active = false};
    ps->marks_due -= p->mark_due; /* nobody waits for it any more */
    p->mark_due = false;
    begin_streams(ctx, ps, p);
    mu__ps_watch_clocks(ctx, ps, p);
    mu__log(ctx, MU__LOG_DEBUG,
            "partition %" PRIu32 " is served here from record %" PRIu64 " on",
            view->partition, p->record);
}

/* What a primary has that handed over is what the next one has, and may not have in its
 * journal yet: the former one's goes on. */
static void step_down(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                      const struct mu__partition_view *view)
{
    mu__ps_end_generation(ctx, p);
    for (int i = 0; i < STREAMS; i++)
        mu__stream_end(ps, p, i);
    p->view = *view;
    p->role = BACKING;
    p->ready = false;
    if (mu__ps_is_written(p))
        mu__ps_journal_view(ctx, ps, view->partition, MU__PS_HELD_GENERATION);
}

/* A primary that was taken for dead, and may have more than the next one has: it takes
 * no records, and is what is left if that one is lost. What it has cannot be taken over,
 * so a handover to it comes to an end. */
static void set_aside(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                      const struct mu__partition_view *view)
{
    step_down(ctx, ps, p, view);
    p->role = RESTORED;
    p->broken = view->handover;
    if (p->broken)
        mu__stream_mark(ps, p);
}

/* A partition that begins here: empty, or to be filled. */
static void begin_partition(struct mu__ctx *ctx, struct ps *ps,
                            const struct mu__partition_view *view, enum role role)
{
    struct partition *p;

    mu__ps_drop(ctx, ps, view->partition);
    p = mu__ps_partition_new(ps, view, role);
    if (p == NULL) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: partition %" PRIu32 " is not here",
                view->partition);
        return;
    }
    if (role != SERVING)
        return;
    mu__ps_journal_view(ctx, ps, view->partition, MU__PS_HELD_EMPTY);
    begin_streams(ctx, ps, p);
}

/* What a partition that is here becomes; false: it begins anew. */
static bool change_role(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                        const struct mu__partition_view *view, enum role role)
{
    if (p->view.store_id != view->store_id)
        return false;
    if (p->role == SERVING && role == SERVING)
        change_replicas(ctx, ps, p, view);
    else if (role == SERVING)
        promote(ctx, ps, p, view);
    else if (p->role == SERVING && role == BACKING && p->ready)
        step_down(ctx, ps, p, view);
    else if ((p->role == SERVING || p->role == RESTORED) && role == BACKING)
        set_aside(ctx, ps, p, view);
    else if ((p->role == BACKING || p->role == LEARNING) && role == BACKING) {
        p->view = *view;
        p->role = BACKING;
    } else
        return false;
    return true;
}

/* A learner that has not got the last piece lacks some of what the partition holds. One
 * that has may have become the backup without hearing of it. */
static bool is_learner_promoted(const struct partition *p,
                                const struct mu__partition_view *view, enum role role)
{
    return p != NULL && p->role == LEARNING && !p->filling.ended && role == SERVING &&
           p->view.store_id == view->store_id;
}

/* What was restored may be given back as long as nobody has taken the place of who wrote
 * it, or of who has it from that one, and not in a journal yet. */
static bool stays_restored(const struct ps *ps, const struct partition *p,
                           const struct mu__partition_view *view)
{
    return p != NULL && p->role == RESTORED && p->view.store_id == view->store_id &&
           (mu__ps_journal_is_of(ps, &view->primary) ||
            mu__ps_journal_is_of(ps, &view->backup));
}

static void take_view(struct mu__ctx *ctx, struct ps *ps,
                      const struct mu__partition_view *view)
{
    struct partition *p = ps->partitions[view->partition];
    enum role role;

    if (view->number <= ps->newest[view->partition].number)
        return;
    ps->newest[view->partition] = *view;
    if (stays_restored(ps, p, view)) {
        p->view = *view;
        mu__ps_journal_view(ctx, ps, view->partition, MU__PS_HELD_SAME);
        return;
    }
    if (!role_in(ps, view, &role)) {
        mu__ps_drop(ctx, ps, view->partition);
    } else if (is_learner_promoted(p, view, role)) {
        mu__log(ctx, MU__LOG_ERROR,
                "partition %" PRIu32 " is not complete here, and is not served",
                view->partition);
        mu__ps_drop(ctx, ps, view->partition);
    } else if (p == NULL || !change_role(ctx, ps, p, view, role)) {
        begin_partition(ctx, ps, view, role);
    }
    p = ps->partitions[view->partition];
    if (p == NULL || (p->role != SERVING && !mu__ps_is_written(p)))
        mu__ps_journal_view(ctx, ps, view->partition, MU__PS_HELD_NOT);
}

/* A primary says to its replicas the view in which they are, and who is no replica any
 * more to one that was primary. */
static bool may_say_view(const struct ps *ps, const struct mu__partition_view *view,
                         uint32_t node)
{
    const struct ps_node *primary = mu__ps_replica_node(ps, &view->primary);
    const struct partition *held = ps->partitions[view->partition];

    if (primary != NULL && primary->node == node)
        return true;
    return held != NULL && held->role == SERVING && is_server_node(ps, node);
}

static void log_refused_view(struct mu__ctx *ctx, uint32_t partition, uint32_t node)
{
    mu__log(ctx, MU__LOG_WARN,
            "a view of partition %" PRIu32 " from node %" PRIu32
            ", which may not say it: ignored",
            partition, node);
}

static void take_strictness(struct mu__ctx *ctx, struct ps *ps, bool strict)
{
    ps->orders.strict = strict;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        struct partition *p = ps->partitions[i];

        if (p == NULL || p->strict == strict)
            continue;
        p->strict = strict;
        p->safe = p->record;
        if (p->role == SERVING)
            mu__stream_settle(ctx, ps, p);
    }
}

static void log_waiting_writes(struct mu__ctx *ctx, const struct ps *ps)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        count += ps->partitions[i] != NULL && ps->partitions[i]->role == SERVING &&
                 ps->partitions[i]->view.backup.incarnation == 0;
    if (count > 0 && ps->orders.strict)
        mu__log(ctx, MU__LOG_WARN,
                "%" PRIu32 " partitions have no backup: writes to them wait until they "
                "have one (option strict)",
                count);
}

void mu__ps_on_views_set(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__views_set *body = mu__body(msg);
    bool by_chief = mu__ps_is_chief(ps, msg->from.node);
    struct mu__partition_view view;

    if (by_chief && ps->orders.strict != body->strict)
        take_strictness(ctx, ps, body->strict);
    for (uint32_t i = 0; i < mu__views_count(body->views); i++) {
        if (!mu__views_at(body->views, i, &view))
            continue;
        if (by_chief)
            take_view(ctx, ps, &view);
        else
            log_refused_view(ctx, view.partition, msg->from.node);
    }
    if (by_chief)
        find_ps_node(ps, msg->from.node)->is_heard = true;
    log_waiting_writes(ctx, ps);
}

void mu__ps_on_replica_view(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__replica_view *body = mu__body(msg);
    struct mu__partition_view view;

    if (mu__views_count(body->view) != 1 || !mu__views_at(body->view, 0, &view))
        return;
    if (may_say_view(ps, &view, msg->from.node))
        take_view(ctx, ps, &view);
    else
        log_refused_view(ctx, view.partition, msg->from.node);
}

/* ---- Node news ---- */

static bool add_ps_node(struct ps *ps, const struct mu__node_up *up)
{
    if (!mu__grow_for_one((void **)&ps->nodes, &ps->nodes_room, ps->nodes_count,
                          sizeof *ps->nodes))
        return false;
    ps->nodes[ps->nodes_count++] = (struct ps_node){
        .node = up->node,
        .is_chief = up->index == 0 &&
                    (mu__view_is(up->type, "chief") || mu__view_is(up->type, ps->leader)),
        .is_server = mu__view_is(up->type, "ps"),
        .index = up->index,
        .incarnation = up->incarnation,
    };
    return true;
}

/* Whether another replica of a partition is on this server, and no link to it was
 * there. */
static bool is_awaited(const struct ps *ps, const struct partition *p, int which,
                       const struct mu__node_up *up)
{
    const struct stream *stream = &p->streams[which];
    const struct ps_node *node;

    if (stream->node != 0 || stream->fate != 0)
        return false;
    node = mu__ps_replica_node(ps, mu__stream_replica(p, which));
    return node != NULL && node->node == up->node;
}

static void note_linked(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                        const struct mu__node_up *up)
{
    for (int i = 0; i < STREAMS; i++)
        if (is_awaited(ps, p, i, up))
            mu__stream_linked(ctx, ps, p, i);
    mu__stream_settle(ctx, ps, p); /* a chief: it may be told that all is ready */
}

void mu__ps_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__node_up *up = mu__body(msg);

    if (!add_ps_node(ps, up)) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a node goes unnoticed");
        return;
    }
    if (mu__ps_is_chief(ps, up->node))
        report_held_views(ctx, ps, up->node);
    report_serving(ctx, ps, up->node);
    mu__ps_clocks_node_up(ctx, ps, up);
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (ps->partitions[i] != NULL && ps->partitions[i]->role == SERVING)
            note_linked(ctx, ps, ps->partitions[i], up);
}

static void remove_ps_node(struct ps *ps, uint32_t node)
{
    for (uint32_t i = 0; i < ps->nodes_count; i++)
        if (ps->nodes[i].node == node) {
            ps->nodes[i] = ps->nodes[--ps->nodes_count];
            return;
        }
}

/* What a client has begun is dropped, here and at the replica. */
static void forget_client(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                          uint32_t node)
{
    struct mu__msg *msg;

    if (!mu__store_has_node(p->store, node) && !mu__staging_has_node(&p->staging, node) &&
        !mu__clocks_has_node(&p->clocks, node) && mu__list_is_empty(&p->deferred))
        return;
    msg = mu__msg_new(ctx, MU__CLIENT_LOST);
    if (msg == NULL) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: what a lost node began stays");
        return;
    }
    ((struct mu__client_lost *)mu__body(msg))->writer = node;
    mu__ps_begin(ctx, ps, p, msg);
}

static void note_unlinked(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                          uint32_t node)
{
    for (int i = 0; i < STREAMS; i++)
        if (p->streams[i].node == node)
            mu__stream_lose(ps, p, i, MU__REPLICA_LOST);
    mu__snapshots_drop_node(p->store, node);
    forget_client(ctx, ps, p, node);
}

/* Partitions that have told the chief that they are ready wait for its word. */
static void log_waiting(struct mu__ctx *ctx, const struct ps *ps)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        count += ps->partitions[i] != NULL && ps->partitions[i]->ready;
    if (count > 0)
        mu__log(ctx, MU__LOG_WARN,
                "%" PRIu32 " partitions wait for the chief, who is gone: they were "
                "being handed over",
                count);
}

void mu__ps_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__node_down *body = mu__body(msg);
    bool was_chief = mu__ps_is_chief(ps, body->node);

    mu__ps_clocks_node_down(ctx, ps, body);
    remove_ps_node(ps, body->node);
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (ps->partitions[i] != NULL && ps->partitions[i]->role == SERVING)
            note_unlinked(ctx, ps, ps->partitions[i], body->node);
    if (was_chief)
        log_waiting(ctx, ps);
}
