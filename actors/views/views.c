#include "actors/views/views.h"

#include "actors/keep.h"
#include "actors/messages.h"
#include "actors/views/drains.h"
#include "actors/views/internal.h"

enum { RETRY_MS = 20 }; /* after a link had no room */

struct views {
    bool has_seed;
    struct mu__view_table *table;
    struct mu__view_recording recording;
    struct mu__view_drains drains;
    uint64_t timer;
    bool strict;
};

/* ---- Events ---- */

static bool is_server_type(struct mu__view type)
{
    return mu__view_is(type, "ps");
}

static void log_table_failure(struct mu__ctx *ctx, const char *what, int rv)
{
    if (rv != 0)
        mu__log(ctx, MU__LOG_ERROR, "%s: %s", what, mu_strerror(rv));
}

static void on_server_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct views *v = state;
    const struct mu__node_up *body = mu__body(msg);
    const struct mu__replica process = {body->index, body->incarnation};

    if (!is_server_type(body->type))
        return;
    if (!v->has_seed)
        mu__view_table_seed(v->table, mu__random(ctx));
    v->has_seed = true;
    log_table_failure(ctx, "a parameter server is not noted",
                      mu__view_table_up(v->table, body->node, &process, mu__now_ms(ctx)));
}

static void on_server_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct views *v = state;
    const struct mu__node_down *body = mu__body(msg);

    mu__view_table_down(v->table, body->node, mu__now_ms(ctx));
}

static void on_server_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct views *v = state;
    const struct mu__cluster_change *body = mu__body(msg);

    if (is_server_type(body->type))
        log_table_failure(ctx, "a new parameter server is not noted",
                          mu__view_table_added(v->table, body->index, mu__now_ms(ctx)));
}

static void log_ignored(struct mu__ctx *ctx, const struct mu__msg *msg, const char *what,
                        int rv)
{
    const char *why = rv == -MU_ENOTFOUND  ? "it is no parameter server that is linked"
                      : rv == -MU_EINVALID ? "they make no sense"
                                           : mu_strerror(rv);

    if (rv != 0)
        mu__log(ctx, MU__LOG_WARN, "%s from node %" PRIu32 " were ignored: %s", what,
                msg->from.node, why);
}

static void on_views_held(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct views *v = state;
    const struct mu__views_held *body = mu__body(msg);

    log_table_failure(ctx, "a journal is not noted",
                      mu__views_note_restored(v->table, msg->from.node, body->former,
                                              body->restored));
    mu__view_table_note_draining(v->table, msg->from.node, body->draining);
    log_ignored(ctx, msg, "views",
                mu__view_table_held(v->table, msg->from.node, body->views, body->known,
                                    mu__now_ms(ctx)));
}

static void on_replica_news(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct views *v = state;
    const struct mu__replica_news *body = mu__body(msg);

    log_ignored(ctx, msg, "news of replicas",
                mu__view_table_news(v->table, msg->from.node, body->news, body->learner,
                                    body->partitions));
}

static void on_server_drain(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct views *v = state;

    mu__view_drains_add(ctx, &v->drains, v->table, mu__body(msg));
}

static void on_views_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)msg;
    ((struct views *)state)->timer = 0;
}

/* ---- Decisions ---- */

static void log_lost_partitions(struct mu__ctx *ctx, struct views *v)
{
    uint32_t task;
    uint32_t count;

    while (mu__view_table_next_lost(v->table, &task, &count))
        mu__log(ctx, MU__LOG_ERROR,
                "%" PRIu32 " partition%s of /job:ps/task:%" PRIu32
                " %s lost: no other server has what was in %s",
                count, count == 1 ? "" : "s", task, count == 1 ? "is" : "are",
                count == 1 ? "it" : "them");
}

static void log_awaited_servers(struct mu__ctx *ctx, struct views *v)
{
    uint32_t task;
    uint32_t count;

    while (mu__view_table_next_awaited(v->table, mu__now_ms(ctx), &task, &count))
        mu__log(ctx, MU__LOG_WARN,
                "%" PRIu32 " partition%s wait%s for /job:ps/task:%" PRIu32
                ", which is not linked: no server that is has what is in %s",
                count, count == 1 ? "" : "s", count == 1 ? "s" : "", task,
                count == 1 ? "it" : "them");
}

/* False: the link has no room now. One that goes down is told when it is back. */
static bool send_views(struct mu__ctx *ctx, const struct views *v,
                       const struct mu__views_owed *owed)
{
    const struct mu__views_set body = {.views = {owed->bytes, owed->size},
                                       .strict = v->strict};
    int rv = mu__send_body(ctx, (mu__pid){owed->node, MU__PS}, MU__VIEWS_SET, &body,
                           sizeof body);

    if (rv != 0)
        mu__log(ctx, MU__LOG_DEBUG, "views for node %" PRIu32 " were not sent: %s",
                owed->node, mu_strerror(rv));
    return rv == 0;
}

/* False: some are to be asked later. */
static bool request_reports(struct mu__ctx *ctx, struct views *v)
{
    struct mu__views_get body = {.draining = false};
    uint32_t at = 0;
    uint32_t server;
    uint32_t node;
    bool all = true;

    while (mu__view_table_next_requested(v->table, &at, &server, &node, &body.draining))
        if (mu__send_body(ctx, (mu__pid){node, MU__PS}, MU__VIEWS_GET, &body,
                          sizeof body) == 0)
            mu__view_table_requested(v->table, server);
        else
            all = false;
    return all;
}

/* Tell servers what was decided and recorded. False: some are to be told later. */
static bool send_all_owed(struct mu__ctx *ctx, struct views *v)
{
    struct mu__views_owed owed;
    uint32_t at = 0;
    bool all = true;

    mu__view_table_recorded(v->table);
    log_lost_partitions(ctx, v);
    log_awaited_servers(ctx, v);
    while (mu__view_table_next_owed(v->table, &at, &owed))
        if (send_views(ctx, v, &owed))
            mu__view_table_sent(v->table, owed.server);
        else
            all = false;
    return all;
}

static uint64_t sooner_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What was recorded just now is told first. Returns when time alone makes more due. */
static uint64_t decide_and_record(struct mu__ctx *ctx, struct views *v)
{
    bool all = !mu__view_recording_has(&v->recording, v->table) || send_all_owed(ctx, v);
    uint64_t next_ms = mu__view_table_decide(v->table, mu__now_ms(ctx));

    if (!mu__view_recording_has(&v->recording, v->table)) {
        mu__view_recording_write(ctx, &v->recording, v->table);
    } else {
        all = send_all_owed(ctx, v);
        mu__view_drains_settle(ctx, &v->drains, v->table);
    }
    return all ? next_ms : sooner_ms(next_ms, mu__now_ms(ctx) + RETRY_MS);
}

static void decide_and_send(struct mu__ctx *ctx, void *state)
{
    struct views *v = state;
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t next_ms = UINT64_MAX;

    if (mu__view_recording_is_ready(ctx, &v->recording, v->table))
        next_ms = decide_and_record(ctx, v);
    if (!request_reports(ctx, v))
        next_ms = sooner_ms(next_ms, now_ms + RETRY_MS);
    next_ms = sooner_ms(next_ms, mu__view_recording_due_ms(&v->recording));
    mu__timer_cancel(ctx, v->timer);
    v->timer = next_ms == UINT64_MAX
                   ? 0
                   : mu__timer_set(ctx, next_ms > now_ms ? next_ms - now_ms : 0, 0);
}

/* ---- Status ---- */

void mu__views_each(const void *views_state, mu__view_fn visit, void *user)
{
    const struct views *v = views_state;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = mu__view_table_at(v->table, i);

        if (view != NULL)
            visit(user, view);
    }
}

void mu__views_totals(const void *views_state, struct mu__view_totals *ret_totals)
{
    mu__view_table_totals(((const struct views *)views_state)->table, ret_totals);
}

void mu__views_roles(const void *views_state, uint32_t task,
                     struct mu__view_roles *ret_roles)
{
    (void)mu__view_table_roles_of(((const struct views *)views_state)->table, task,
                                  ret_roles);
}

mu_value *mu__views_status(const void *views_state)
{
    return mu__views_value(((const struct views *)views_state)->table);
}

/* ---- Start and end ---- */

static int init_views(struct mu__ctx *ctx, void *state, const void *arg)
{
    const struct mu__views_options *options = arg;
    struct views *v = state;
    int rv;

    v->table = mu__view_table_new(&options->table, mu__now_ms(ctx));
    if (v->table == NULL)
        return -MU_ENOMEM;
    v->strict = options->strict;
    mu__view_recording_init(&v->recording, options->agent, options->table.recovery_ms,
                            mu__now_ms(ctx));
    rv = mu__watch_nodes(ctx);
    if (rv != 0)
        mu__view_table_free(v->table);
    return rv;
}

static void end_views(struct mu__ctx *ctx, void *state)
{
    struct views *v = state;

    (void)ctx;
    mu__view_recording_done(&v->recording);
    mu__view_table_free(v->table);
}

static const struct mu__handler handlers[] = {
    {MU__VIEWS_HELD, on_views_held},  {MU__REPLICA_NEWS, on_replica_news},
    {MU__NODE_UP, on_server_up},      {MU__NODE_DOWN, on_server_down},
    {MU__NODE_TROUBLE, mu__ignore},   {MU__CLUSTER_ADDED, on_server_added},
    {MU__VIEWS_ANSWERED, mu__ignore}, {MU__SERVER_DRAIN, on_server_drain},
    {MU__TIMER, on_views_timer},
};

const struct mu__behavior mu__views = {
    .name = "views",
    .state_size = sizeof(struct views),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_views,
    .after_batch = decide_and_send,
    .done = end_views,
};
