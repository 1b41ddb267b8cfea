#include "actors/coordination/coordination.h"

#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/internal.h"
#include "actors/coordination/job_runs.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/names/coord_names.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/tasks.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TICK_BUSY_MS = 50, /* while the store is read or has not answered yet */
    TICK_IDLE_MS = 1000,
    TICK_LATE_MS = 100 /* a tick later than this: the host was paused */
};

enum service_timer { TIMER_TICK, TIMER_COMMIT };

/* Requests of agents, which only the leading host takes. */
static const mu__handle_fn request_handlers[] = {
    [MU__TASK_REGISTER - MU__TASK_REGISTER] = mu__coord_on_register,
    [MU__TASK_HEARTBEAT - MU__TASK_REGISTER] = mu__coord_on_heartbeat,
    [MU__TASK_REPORT - MU__TASK_REGISTER] = mu__coord_on_report,
    [MU__TASK_RESET - MU__TASK_REGISTER] = mu__coord_on_reset,
    [MU__TASK_LEAVE - MU__TASK_REGISTER] = mu__coord_on_leave,
    [MU__TASKS_GET - MU__TASK_REGISTER] = mu__coord_on_tasks_get,
    [MU__BARRIER_ARRIVE - MU__TASK_REGISTER] = mu__coord_on_arrive,
    [MU__BARRIER_CANCEL - MU__TASK_REGISTER] = mu__coord_on_barrier_cancel,
    [MU__PREEMPT_NOTICE - MU__TASK_REGISTER] = mu__coord_on_preempt_notice,
    [MU__PREEMPT_STEP - MU__TASK_REGISTER] = mu__coord_on_preempt_step,
    [MU__KEY_PUT - MU__TASK_REGISTER] = mu__coord_on_key_put,
    [MU__KEY_GET - MU__TASK_REGISTER] = mu__coord_on_key_read,
    [MU__KEY_INCREMENT - MU__TASK_REGISTER] = mu__coord_on_key_increment,
    [MU__KEY_DELETE - MU__TASK_REGISTER] = mu__coord_on_key_delete,
    [MU__KEY_CANCEL - MU__TASK_REGISTER] = mu__coord_on_key_cancel,
    [MU__KEY_LIST - MU__TASK_REGISTER] = mu__coord_on_key_read,
    [MU__KEY_WATCH - MU__TASK_REGISTER] = mu__coord_on_key_read,
    [MU__KEY_UNWATCH - MU__TASK_REGISTER] = mu__coord_on_key_unwatch,
};

static const mu__handle_fn later_request_handlers[] = {
    [MU__RUN_END - MU__RUN_END] = mu__coord_on_run_end,
    [MU__RUNS_GET - MU__RUN_END] = mu__coord_on_runs_get,
    [MU__RUNS_CLEAR - MU__RUN_END] = mu__coord_on_runs_clear,
    [MU__KEY_TXN - MU__RUN_END] = mu__coord_on_key_txn,
    [MU__TASK_MARK - MU__RUN_END] = mu__coord_on_task_mark,
};

/* ---- Time ---- */

uint64_t mu__coord_clock(struct mu__ctx *ctx, const struct coordination *c)
{
    uint64_t now_ms = mu__now_ms(ctx);

    /* The clock stands until a late tick has added the pause to paused_ms. */
    if (c->clock.timer != 0 && now_ms > c->clock.due_ms + TICK_LATE_MS)
        now_ms = c->clock.due_ms + TICK_LATE_MS;
    return now_ms - c->clock.paused_ms;
}

static void arm_coordination_timer(struct mu__ctx *ctx, struct coordination *c,
                                   uint64_t when_ms)
{
    uint64_t now_ms = mu__now_ms(ctx);

    mu__timer_cancel(ctx, c->clock.timer);
    c->clock.due_ms = when_ms;
    c->clock.timer = mu__timer_set(ctx, when_ms - now_ms, TIMER_TICK);
    if (c->clock.timer == 0)
        mu__log(ctx, MU__LOG_ERROR, "out of memory: timeouts are late");
}

/* ---- Peers ---- */

const struct coord_peer *mu__coord_peer(const struct coordination *c, uint32_t node)
{
    return mu__map_get(&c->peers, (uint64_t)node + 1);
}

static struct coord_peer *add_coordination_peer(struct coordination *c, uint32_t node,
                                                struct mu__view type, uint32_t index,
                                                uint64_t incarnation)
{
    struct coord_peer *peer = calloc(1, sizeof *peer);

    if (peer == NULL)
        return NULL;
    peer->node = node;
    peer->index = index;
    peer->incarnation = incarnation;
    mu__view_copy(type, peer->type, sizeof peer->type);
    if (mu__map_set(&c->peers, (uint64_t)node + 1, peer) != 0) {
        free(peer);
        return NULL;
    }
    return peer;
}

static void free_peers(struct coordination *c)
{
    for (size_t i = 0; i < c->peers.capacity; i++)
        if (c->peers.entries[i].key != 0)
            free(c->peers.entries[i].value);
    mu__map_done(&c->peers);
}

/* ---- The store ---- */

int mu__coord_write(struct mu__ctx *ctx, struct coordination *c,
                    const struct mu__msg *record)
{
    struct mu__ctx *calling = c->commits.calling;
    int rv;

    if (c->commits.broken || !c->leads)
        return -MU_EUNAVAILABLE;
    c->commits.calling = ctx;
    rv = c->store->ops->write(c->store, ctx, record);
    c->commits.calling = calling;
    if (rv != 0) {
        c->commits.broken = true;
        c->clock.at_once = true;
        mu__log(ctx, MU__LOG_ERROR, "the store cannot be written: %s", mu_strerror(rv));
        return rv;
    }
    if (c->commits.timer == 0)
        c->commits.timer = mu__timer_set(ctx, 0, TIMER_COMMIT);
    if (c->commits.timer == 0)
        c->clock.at_once = true;
    c->commits.dirty = true;
    return 0;
}

static void commit_changes(struct mu__ctx *ctx, struct coordination *c)
{
    mu__timer_cancel(ctx, c->commits.timer);
    c->commits.timer = 0;
    if (!c->commits.dirty || c->commits.broken)
        return;
    c->commits.dirty = false;
    c->commits.sequence++;
    c->commits.calling = ctx;
    c->store->ops->commit(c->store, ctx, c->revision, c->commits.sequence);
    c->commits.calling = NULL;
}

static void rewrite_store(struct mu__ctx *ctx, struct coordination *c)
{
    const struct mu__store_ops *ops = c->store->ops;

    if (!c->leads || c->commits.broken || c->commits.dirty ||
        c->commits.safe < c->commits.sequence || ops->needs_rewrite == NULL ||
        !ops->needs_rewrite(c->store, c->records))
        return;
    ops->rewrite(c->store, ctx);
    /* A rewrite with no records has a commit, too. */
    c->commits.dirty = true;
    (void)mu__coord_keys_rewrite(ctx, c);
    commit_changes(ctx, c);
}

static int visit_store_record(void *owner, struct mu__msg *record)
{
    struct coordination *c = owner;

    return mu__coord_keys_visit(c->commits.calling, c, record);
}

static void on_store_reading(void *owner)
{
    mu__coord_keys_forget(owner);
}

/* This process belongs to another run of the job than the store: another host gets it. */
static void refuse_to_lead(struct mu__ctx *ctx, struct coordination *c,
                           const mu_error *error)
{
    c->leads = false;
    c->retires = true;
    (void)snprintf(c->reason, sizeof c->reason, "%.255s", error->message);
    mu__log(ctx, MU__LOG_ERROR, "%s does not host the service: %s", c->config.task,
            error->message);
    mu__coord_names_forget(c);
    mu__coord_keys_forget(c);
    mu__coord_send_here_to_all(ctx, c);
    c->clock.at_once = true;
}

static void close_retired_store(struct mu__ctx *ctx, struct coordination *c)
{
    c->retires = false;
    c->store->ops->close(c->store, ctx);
    c->store = NULL;
}

static void on_store_held(void *owner, struct mu__ctx *ctx, uint64_t epoch,
                          uint64_t number)
{
    struct coordination *c = owner;
    mu_error error = {.code = 0};

    c->leads = true;
    c->commits.broken = false;
    c->epoch = epoch;
    c->number = number;
    c->commits.safe = c->commits.sequence;
    c->reason[0] = '\0';
    mu__log(ctx, MU__LOG_INFO, "%s leads: epoch %" PRIu64, c->config.task, epoch);
    if (mu__coord_runs_lead(ctx, c, &error) != 0) {
        refuse_to_lead(ctx, c, &error);
        return;
    }
    mu__coord_tasks_lead(ctx, c);
    mu__coord_send_here_to_all(ctx, c);
}

static void on_store_committed(void *owner, struct mu__ctx *ctx, uint64_t sequence)
{
    struct coordination *c = owner;

    if (sequence > c->commits.safe)
        c->commits.safe = sequence;
    mu__coord_send_later(ctx, c);
}

static void on_store_lost(void *owner, struct mu__ctx *ctx, const char *reason)
{
    struct coordination *c = owner;

    c->leads = false;
    c->commits.broken = false;
    c->commits.dirty = false;
    c->commits.safe = c->commits.sequence;
    mu__timer_cancel(ctx, c->commits.timer);
    c->commits.timer = 0;
    mu__coord_drop_later(ctx, c);
    (void)snprintf(c->reason, sizeof c->reason, "%s", reason);
    mu__log(ctx, MU__LOG_WARN, "%s no longer leads: %s", c->config.task, reason);
    mu__coord_preempt_lost(ctx, c);
    mu__coord_barriers_lost(ctx, c);
    mu__coord_tasks_lost(ctx, c);
    mu__coord_names_forget(c);
    mu__coord_keys_forget(c);
    mu__coord_send_here_to_all(ctx, c);
    c->clock.at_once = true;
}

/* Tell the agents that wait for a service why there is none. */
static void store_trouble(void *owner, struct mu__ctx *ctx, const char *reason_text)
{
    struct coordination *c = owner;

    (void)snprintf(c->reason, sizeof c->reason, "its store is not held yet: %s",
                   reason_text);
    mu__coord_send_here_to_all(ctx, c);
}

/* ---- The tick ---- */

static uint64_t default_tick_ms(const struct coordination *c)
{
    uint32_t lease_ms = c->config.lease_ms;

    if (c->commits.safe < c->commits.sequence || (!c->leads && !c->config.store->shared))
        return TICK_BUSY_MS;
    if (!c->config.store->shared || lease_ms / 20 > TICK_IDLE_MS)
        return TICK_IDLE_MS;
    return lease_ms / 20 < TICK_BUSY_MS ? TICK_BUSY_MS : lease_ms / 20;
}

static void tick_parts(struct mu__ctx *ctx, struct coordination *c)
{
    c->commits.calling = ctx;
    if (c->store != NULL)
        c->store->ops->tick(c->store, ctx);
    c->commits.calling = NULL;
    if (c->retires)
        close_retired_store(ctx, c);
    if (!c->leads || c->commits.broken)
        return;
    mu__coord_tasks_tick(ctx, c);
    mu__coord_barriers_tick(ctx, c);
    mu__coord_preempt_tick(ctx, c);
    mu__coord_keys_tick(ctx, c);
    mu__coord_requests_tick(ctx, c);
    mu__coord_names_tick(ctx, c);
    rewrite_store(ctx, c);
}

static void on_tick(struct mu__ctx *ctx, struct coordination *c)
{
    uint64_t now_ms = mu__now_ms(ctx);

    c->clock.timer = 0;
    if (now_ms > c->clock.due_ms + TICK_LATE_MS) {
        uint64_t late_ms = now_ms - c->clock.due_ms - TICK_LATE_MS;

        c->clock.paused_ms += late_ms;
        mu__log(ctx, MU__LOG_WARN,
                "this host was paused for %" PRIu64 " ms: no task's limit counts them",
                late_ms);
    }
    c->clock.at_once = false;
    tick_parts(ctx, c);
    if (c->commits.timer == 0)
        commit_changes(ctx, c);
}

/* When the parts need the next tick, by mu__coord_clock. */
static uint64_t parts_due_ms(const struct coordination *c)
{
    uint64_t due_ms;

    if (!c->leads || c->commits.broken)
        return UINT64_MAX;
    due_ms = mu__coord_tasks_due_ms(c);
    due_ms = mu__coord_earlier(due_ms, mu__coord_barriers_due_ms(c));
    due_ms = mu__coord_earlier(due_ms, mu__coord_preempt_due_ms(c));
    due_ms = mu__coord_earlier(due_ms, mu__coord_keys_due_ms(c));
    due_ms = mu__coord_earlier(due_ms, mu__coord_names_due_ms(c));
    return mu__coord_earlier(due_ms, mu__coord_requests_due_ms(c));
}

/* Set the timer of the next tick, unless it fires early enough already. */
static void set_tick_timer(struct mu__ctx *ctx, void *state)
{
    struct coordination *c = state;
    uint64_t clock_ms = mu__coord_clock(ctx, c);
    uint64_t due_ms = c->clock.at_once ? 0 : parts_due_ms(c);
    uint64_t delay_ms = due_ms > clock_ms ? due_ms - clock_ms : 0;
    uint64_t when_ms = mu__now_ms(ctx) + mu__coord_earlier(delay_ms, default_tick_ms(c));

    if (c->clock.timer == 0 || when_ms < c->clock.due_ms)
        arm_coordination_timer(ctx, c, when_ms);
}

/* ---- Messages ---- */

static void on_request(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;

    if (!c->leads || c->commits.broken) {
        mu__coord_send_here(ctx, c, msg->from.node);
        return;
    }
    if (msg->kind >= MU__NAME_MAKE)
        mu__coord_names_hear(ctx, c, msg);
    else if (msg->kind >= MU__RUN_END)
        later_request_handlers[msg->kind - MU__RUN_END](ctx, c, msg);
    else
        request_handlers[msg->kind - MU__TASK_REGISTER](ctx, c, msg);
}

static void on_coordination_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__node_up *body = mu__body(msg);

    if (add_coordination_peer(c, body->node, body->type, body->index,
                              body->incarnation) == NULL) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a node goes unnoticed");
        return;
    }
    mu__coord_send_here(ctx, c, body->node);
    if (c->leads)
        mu__coord_tasks_node_up(ctx, c, body);
}

static void on_coordination_node_down(struct mu__ctx *ctx, void *state,
                                      struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__node_down *body = mu__body(msg);
    char reason[MU__ERROR_TEXT_MAX + 1];

    mu__view_copy(body->reason, reason, sizeof reason);
    if (c->leads) {
        mu__coord_keys_node_down(ctx, c, body->node);
        mu__coord_names_node_down(c, body->node);
        mu__coord_tasks_node_down(ctx, c, body->node, reason);
    }
    free(mu__map_remove(&c->peers, (uint64_t)body->node + 1));
}

/* The words of a wire for an address at which nothing listens. */
static bool is_refused_address(struct mu__view reason)
{
    char text[MU__ERROR_TEXT_MAX + 1];

    mu__view_copy(reason, text, sizeof text);
    return strstr(text, "connection refused") != NULL;
}

/* Nobody listens where a task was: its process has ended. */
static void on_coordination_node_trouble(struct mu__ctx *ctx, void *state,
                                         struct mu__msg *msg)
{
    const struct mu__node_trouble *body = mu__body(msg);
    struct coordination *c = state;

    if (c->leads && is_refused_address(body->reason))
        mu__coord_names_process_ended(ctx, c, body->type, body->index);
}

static void on_http_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__http_done *body = mu__body(msg);

    if (c->store == NULL || c->store->ops->heard == NULL)
        return;
    c->commits.calling = ctx;
    (void)c->store->ops->heard(c->store, ctx, body->request);
    c->commits.calling = NULL;
}

static void on_coordination_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__timer *body = mu__body(msg);

    if (body->timer == c->clock.timer)
        on_tick(ctx, c);
    else if (body->timer == c->commits.timer)
        commit_changes(ctx, c);
}

static const struct mu__handler handlers[] = {
    {MU__TASK_REGISTER, on_request},
    {MU__TASK_HEARTBEAT, on_request},
    {MU__TASK_REPORT, on_request},
    {MU__TASK_RESET, on_request},
    {MU__TASK_LEAVE, on_request},
    {MU__TASKS_GET, on_request},
    {MU__BARRIER_ARRIVE, on_request},
    {MU__BARRIER_CANCEL, on_request},
    {MU__PREEMPT_NOTICE, on_request},
    {MU__PREEMPT_STEP, on_request},
    {MU__KEY_PUT, on_request},
    {MU__KEY_GET, on_request},
    {MU__KEY_INCREMENT, on_request},
    {MU__KEY_DELETE, on_request},
    {MU__KEY_TXN, on_request},
    {MU__KEY_CANCEL, on_request},
    {MU__KEY_LIST, on_request},
    {MU__KEY_WATCH, on_request},
    {MU__KEY_UNWATCH, on_request},
    {MU__RUN_END, on_request},
    {MU__RUNS_GET, on_request},
    {MU__RUNS_CLEAR, on_request},
    {MU__TASK_MARK, on_request},
    {MU__NAME_MAKE, on_request},
    {MU__NAME_FIND, on_request},
    {MU__NAME_OFFER, on_request},
    {MU__NAME_STATE, on_request},
    {MU__NAME_HOLD, on_request},
    {MU__NAME_STOP, on_request},
    {MU__KEEP_CHECK, mu__coord_names_on_keep_check},
    {MU__HTTP_DONE, on_http_done},
    {MU__CLUSTER_ADDED, mu__coord_on_cluster_added},
    {MU__CLUSTER_REMOVED, mu__coord_on_cluster_removed},
    {MU__TASK_ENDED, mu__coord_on_task_ended},
    {MU__NODE_UP, on_coordination_node_up},
    {MU__NODE_DOWN, on_coordination_node_down},
    {MU__NODE_TROUBLE, on_coordination_node_trouble},
    {MU__TIMER, on_coordination_timer},
};

/* ---- start and end ---- */

static int open_coordination_store(struct mu__ctx *ctx, struct coordination *c)
{
    const struct mu__store_config config = {
        .location = c->config.store_location == NULL ? "" : c->config.store_location,
        .cluster_name = c->config.cluster_name,
        .task = c->config.task,
        .incarnation = c->config.incarnation,
        .schema = mu__kernel_schema(ctx->kernel),
        .pool = mu__kernel_pool(ctx->kernel),
        .storage = c->config.storage,
        .http = c->config.http,
        .access = c->config.access,
        .lease_ms = c->config.lease_ms,
        .up =
            {
                .owner = c,
                .visit = visit_store_record,
                .held = on_store_held,
                .committed = on_store_committed,
                .lost = on_store_lost,
                .reading = on_store_reading,
                .trouble = store_trouble,
            },
    };
    mu_error error = {.code = 0};
    int rv = c->config.store->open(&config, &error, &c->store);

    if (rv != 0)
        mu__log(ctx, MU__LOG_ERROR, "the store cannot be opened: %s",
                error.code == 0 ? mu_strerror(rv) : error.message);
    return rv;
}

/* This node's own agent is a peer without a link. */
static int add_self(struct mu__ctx *ctx, struct coordination *c)
{
    struct mu__task_set set = {0};
    int rv = mu__task_set_parse(mu__view_str(c->config.task), NULL, &set);

    (void)ctx;
    if (rv != 0)
        return rv;
    if (add_coordination_peer(c, MU__NODE_SELF, mu__view_str(set.ranges[0].type),
                              set.ranges[0].first, c->config.incarnation) == NULL)
        rv = -MU_ENOMEM;
    mu__task_set_done(&set);
    return rv;
}

static void parts_done(struct mu__ctx *ctx, struct coordination *c)
{
    mu__coord_names_done(c);
    mu__coord_preempt_done(c);
    mu__coord_barriers_done(c);
    mu__coord_keys_done(c);
    mu__coord_requests_done(c);
    mu__coord_tasks_done(c);
    mu__coord_runs_done(c);
    if (c->store != NULL)
        c->store->ops->close(c->store, ctx);
    free_peers(c);
}

static int init_parts(struct mu__ctx *ctx, struct coordination *c)
{
    static int (*const inits[])(struct mu__ctx *, struct coordination *) = {
        add_self,
        mu__coord_runs_init,
        mu__coord_tasks_init,
        mu__coord_requests_init,
        mu__coord_keys_init,
        mu__coord_barriers_init,
        mu__coord_preempt_init,
        mu__coord_names_init,
        open_coordination_store,
    };

    for (size_t i = 0; i < sizeof inits / sizeof inits[0]; i++) {
        int rv = inits[i](ctx, c);

        if (rv != 0)
            return rv;
    }
    return mu__watch_nodes(ctx);
}

/* The strings of the config are for init alone, but for the task's name. */
static void forget_strings(struct coordination *c)
{
    c->config.store_location = NULL;
    c->config.cluster_name = NULL;
    c->config.run = NULL;
    c->config.tasks = NULL;
    c->config.recoverable = NULL;
}

static int init_coordination(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct coordination *c = state;
    int rv;

    c->config = *(const struct mu__coordination_config *)arg;
    (void)snprintf(c->reason, sizeof c->reason, "its store is not held yet");
    rv = init_parts(ctx, c);
    if (rv != 0) {
        parts_done(ctx, c);
        return rv;
    }
    forget_strings(c);
    c->commits.calling = ctx;
    c->store->ops->start(c->store, ctx);
    c->commits.calling = NULL;
    c->clock.at_once = true;
    return 0;
}

/* Unanswered agents repeat their requests at another host. */
static void end_coordination(struct mu__ctx *ctx, void *state)
{
    struct coordination *c = state;

    mu__coord_drop_later(ctx, c);
    c->commits.dirty = false;
    c->commits.safe = c->commits.sequence;
    if (c->leads)
        mu__coord_tasks_stop(ctx, c);
    c->leads = false;
    (void)snprintf(c->reason, sizeof c->reason, "the service at %s has stopped",
                   c->config.task);
    mu__coord_send_here_to_all(ctx, c);
    parts_done(ctx, c);
}

const struct mu__behavior mu__coordination = {
    .name = "coordination",
    .state_size = sizeof(struct coordination),
    .mailbox_max = MU__MAILBOX_BY_SENDERS,
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_coordination,
    .after_batch = set_tick_timer,
    .done = end_coordination,
};
