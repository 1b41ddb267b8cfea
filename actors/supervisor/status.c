/* Reported metrics, and the status of the cluster as the supervisor knows it. */
#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/journaling.h"
#include "actors/supervisor/recall.h"
#include "actors/supervisor/roles.h"
#include "actors/supervisor/supervisor.h"
#include "actors/supervisor/unread.h"

#include "runtime/kernel/peer_process.h"
#include "runtime/message/block_pool.h"

#include <inttypes.h>
#include <string.h>

enum {
    STATUS_WAIT_MS = 1000,    /* for the parameter servers' part */
    STATUS_OF_ONE_MAX = 16,   /* that wait for them, asked for by one node */
    STATUS_COST_SECOND = 256, /* of one node: a status costs 1, and 1 more for each */
    STATUS_COST_MAX = 512,    /* COST_NODES nodes that it shows */
    STATUS_COST_NODES = 64,
    REFUSED_SAID_MS = 1000,
    IN_FLIGHT_SHOWN_MAX = 16
};

/* ---- Reported metrics ---- */

void mu__sup_on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__report *body = mu__body(msg);
    char replaced[MU__METRIC_NAME_MAX + 1];
    struct reported_metric *metric =
        mu__reported_metrics_take(&s->metrics, body->name, msg->from.node, replaced);

    if (replaced[0] != '\0')
        mu__log(ctx, MU__LOG_WARN,
                "numbers are reported under more than %d names: the "
                "one under \"%s\" is forgotten",
                MU__METRICS_MAX, replaced);
    metric->node = msg->from.node;
    metric->number = body->number;
    metric->step = body->step;
    metric->at_ms = mu__now_ms(ctx);
}

void mu__sup_on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__call_msg *body = mu__body(msg);
    struct mu__metric_call *call = body->call;
    const struct reported_metric *metric =
        mu__reported_metrics_find(&s->metrics, mu__view_str(call->name));

    (void)ctx;
    if (metric == NULL) {
        mu__call_complete(&call->call, mu_error_set(&call->call.error, -MU_ENOTFOUND,
                                                    "no number was reported under \"%s\"",
                                                    call->name));
        return;
    }
    call->number = metric->number;
    call->step = metric->step;
    mu__call_complete(&call->call, 0);
}

/* ---- Status ---- */

/* NULL: it is not known, and nothing is added. */
static void add_process(mu_value *map, const struct mu__process *process)
{
    if (process == NULL)
        return;
    if (process->version[0] != '\0')
        (void)mu_value_set(map, "version", mu_value_string(process->version));
    if (process->host[0] != '\0')
        (void)mu_value_set(map, "host", mu_value_string(process->host));
    if (process->pid != 0)
        (void)mu_value_set(map, "pid", mu_value_int((int64_t)process->pid));
}

static mu_value *peer_value(const struct mu__ctx *ctx, const struct supervisor *s,
                            const struct live_node *peer, uint64_t now_ms)
{
    const struct mu__member_worker *worker =
        mu__membership_by_node(&s->members, peer->node);
    mu_value *map = mu_value_map();
    uint32_t failures =
        strcmp(peer->type, "ps") != 0
            ? 0
            : mu__server_failures_count(s->failures.servers, peer->index, now_ms);
    uint32_t abandoned =
        worker == NULL ? 0 : s->worker_states.items[worker->number].abandoned_count;

    (void)mu_value_set(map, "type", mu_value_string(peer->type));
    (void)mu_value_set(map, "index", mu_value_int(peer->index));
    (void)mu_value_set(map, "address", mu_value_string(peer->address));
    add_process(map, mu__process_of(ctx, peer->node));
    (void)mu_value_set(map, "state", mu_value_string("up"));
    (void)mu_value_set(map, "for_ms", mu_value_int((int64_t)(now_ms - peer->since_ms)));
    if (failures > 0)
        (void)mu_value_set(map, "failures", mu_value_int(failures));
    if (worker != NULL) {
        (void)mu_value_set(map, "threads", mu_value_int(worker->threads));
        (void)mu_value_set(map, "window", mu_value_int(mu__sup_window(s, worker)));
        (void)mu_value_set(map, "in_flight", mu_value_int(worker->load - abandoned));
        (void)mu_value_set(map, "running", mu_value_int(worker->begun));
        (void)mu_value_set(map, "abandoned", mu_value_int(abandoned));
        (void)mu_value_set(map, "draining",
                           mu_value_bool((worker->holds & MU__HOLD_DRAIN) != 0));
        (void)mu_value_set(map, "building",
                           mu_value_bool((worker->holds & MU__HOLD_BUILD) != 0));
        (void)mu_value_set(map, "finished", mu_value_int((int64_t)worker->finished));
        (void)mu_value_set(map, "failed", mu_value_int((int64_t)worker->failed));
    }
    return map;
}

static mu_value *peers_value(const struct mu__ctx *ctx, const struct supervisor *s,
                             uint64_t now_ms)
{
    mu_value *list = mu_value_list();

    for (uint32_t i = 0; i < s->nodes.count; i++)
        (void)mu_value_append(list, peer_value(ctx, s, &s->nodes.items[i], now_ms));
    return list;
}

uint32_t mu__sup_waiting(const struct supervisor *s)
{
    uint32_t count = 0;

    for (uint32_t list = MU__LIST_QUEUES; list < mu__sup_waiting_lists(s); list++)
        count += mu__closures_count(&s->closures, list);
    for (uint32_t i = 1; i < s->worker_states.size; i++)
        count += mu__closures_count(&s->closures, mu__list_affine(i));
    return count;
}

uint32_t mu__sup_in_flight(const struct supervisor *s)
{
    return s->closures.count - mu__sup_waiting(s) -
           mu__closures_count(&s->closures, MU__LIST_PINNED);
}

/* How many closures at a worker are known to have begun. */
static uint32_t running_at(const struct supervisor *s, uint32_t number)
{
    const struct mu__closure *closure =
        mu__closures_first(&s->closures, mu__list_in_flight(number));
    uint32_t count = 0;

    for (; closure != NULL; closure = mu__closures_next(&s->closures, closure))
        count += (closure->marks & MU__MARK_BEGUN) != 0;
    return count;
}

uint32_t mu__sup_running(const struct supervisor *s)
{
    uint32_t count = 0;

    for (uint32_t i = 1; i < s->members.workers_size; i++)
        if (mu__membership_get(&s->members, i) != NULL && s->members.workers[i].begun > 0)
            count += running_at(s, i);
    return count;
}

/* Clients on other tasks have closures there for the functions that run on them. */
uint32_t mu__sup_blocked_workers(const struct supervisor *s)
{
    uint32_t blocked = 0;

    for (uint32_t i = 1; i < s->clients.count; i++) {
        const struct supervisor_client *client = &s->clients.items[i];
        const struct mu__member_worker *worker =
            client->present && client->closures > 0
                ? mu__membership_by_node(&s->members, client->pid.node)
                : NULL;

        blocked += worker != NULL && worker->begun >= mu__member_threads(worker);
    }
    return blocked == s->members.count ? blocked : 0;
}

static mu_value *closures_value(const struct supervisor *s)
{
    const struct {
        const char *key;
        uint64_t count;
    } counts[] = {
        {"scheduled", s->counts.scheduled},
        {"finished", s->counts.finished},
        {"failed", s->counts.failed},
        {"cancelled", s->counts.cancelled},
        {"forgotten", s->counts.forgotten},
        {"queued", mu__sup_waiting(s)},
        {"in_flight", mu__sup_in_flight(s)},
        {"running", mu__sup_running(s)},
        {"sent", mu__sup_in_flight(s) - mu__sup_running(s)},
        {"recalled", s->recalls.returned},
        {"retried", s->counts.retried},
        {"stale_results", s->counts.stale},
        {"workers_lost", s->counts.workers_lost},
        {"backups", s->backups.runs},
        {"backups_running", s->backups.count},
        {"stuck", s->counts.stuck},
        {"stalls", s->watchdog.stalls},
        {"kept", mu__closures_count(&s->closures, MU__LIST_PINNED)},
        {"recomputing",
         s->pinned.by_number.count - mu__closures_count(&s->closures, MU__LIST_PINNED)},
        {"args_bytes", s->counts.args_bytes},
        {"unread_bytes", mu__sup_unread_bytes(s)},
        {"blocked_workers", mu__sup_blocked_workers(s)},
    };
    mu_value *map = mu_value_map();

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        (void)mu_value_set(map, counts[i].key, mu_value_int((int64_t)counts[i].count));
    return map;
}

mu_value *mu__sup_running_value(const struct supervisor *s,
                                const struct mu__closure *closure, uint64_t now_ms)
{
    const struct mu__member_worker *worker =
        mu__membership_get(&s->members, mu__list_worker(closure->list));
    const struct closure_extra *extra = mu__sup_extra(s, closure);
    mu_value *map = mu_value_map();
    char text[MU__FUNCTION_NAME_MAX + 1];

    mu__view_copy(mu__names_view(&s->functions, closure->function), text, sizeof text);
    (void)mu_value_set(map, "closure", mu_value_int((int64_t)mu__closure_id(closure)));
    (void)mu_value_set(map, "function", mu_value_string(text));
    if (extra != NULL && extra->name != NULL)
        (void)mu_value_set(map, "name", mu_value_string(extra->name));
    (void)mu_value_set(map, "attempt", mu_value_int(mu__sup_runs(s, closure)));
    (void)mu_value_set(map, "state",
                       mu_value_string((closure->marks & MU__MARK_BEGUN) != 0 ? "running"
                                                                              : "sent"));
    (void)mu_value_set(map, "task", mu_value_string(mu__sup_task(s, worker).text));
    (void)mu_value_set(map, "for_ms",
                       mu_value_int((uint32_t)((uint32_t)now_ms - closure->started_ms)));
    return map;
}

/* The oldest closure in flight at each worker. */
static mu_value *in_flight_value(const struct supervisor *s, uint64_t now_ms)
{
    mu_value *list = mu_value_list();
    int left = IN_FLIGHT_SHOWN_MAX;

    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        struct mu__closure *closure =
            mu__membership_get(&s->members, i) == NULL
                ? NULL
                : mu__closures_first(&s->closures, mu__list_in_flight(i));

        if (closure != NULL && left-- > 0)
            (void)mu_value_append(list, mu__sup_running_value(s, closure, now_ms));
    }
    return list;
}

static mu_value *metrics_value(const struct supervisor *s, uint64_t now_ms)
{
    mu_value *list = mu_value_list();

    for (uint32_t i = 0; i < s->metrics.count; i++) {
        const struct reported_metric *metric = &s->metrics.items[i];
        mu_value *map = mu_value_map();

        (void)mu_value_set(map, "name", mu_value_string(metric->name));
        (void)mu_value_set(map, "number", mu_value_float(metric->number));
        (void)mu_value_set(map, "step", mu_value_int((int64_t)metric->step));
        (void)mu_value_set(map, "age_ms",
                           mu_value_int((int64_t)(now_ms - metric->at_ms)));
        (void)mu_value_append(list, map);
    }
    return list;
}

static mu_value *timers_value(const struct supervisor *s)
{
    mu_value *map = mu_value_map();

    (void)mu_value_set(map, "closure_execution",
                       mu__histogram_value(&s->counts.execution));
    (void)mu_value_set(map, "worker_recovery", mu__histogram_value(&s->counts.recovery));
    return map;
}

/* Of the chief's process: see runtime/message/block_pool.h. */
static mu_value *memory_value(void)
{
    const struct mu__block_counts counts = mu__block_pool_counts(&mu__blocks);
    mu_value *map = mu_value_map();

    (void)mu_value_set(map, "cached_bytes", mu_value_int((int64_t)counts.cached_bytes));
    (void)mu_value_set(map, "reused_total", mu_value_int((int64_t)counts.reused));
    (void)mu_value_set(map, "allocated_total", mu_value_int((int64_t)counts.allocated));
    (void)mu_value_set(map, "released_total", mu_value_int((int64_t)counts.released));
    return map;
}

void mu__sup_send_status(struct mu__ctx *ctx, mu__pid to, uint64_t token, mu_value *map)
{
    struct mu__status body = {.token = token};
    struct mu__buf *packed = mu__pack_value(map, &body.status);

    (void)mu__send_backed(ctx, to, MU__STATUS, &body, sizeof body, packed);
    mu__buf_unref(packed);
    mu_value_free(map);
}

static void answer_status(struct mu__ctx *ctx, struct supervisor *s,
                          struct status_request *request)
{
    uint64_t now_ms = mu__now_ms(ctx);
    mu_value *map = mu_value_map();
    mu_value *own = mu_value_map();

    mu__timer_cancel(ctx, request->timer);
    request->number = 0;
    add_process(own, mu__process_of(ctx, MU__NODE_SELF));
    (void)mu_value_set(map, "process", own);
    (void)mu_value_set(map, "insecure", mu_value_bool(s->config.insecure));
    if (!mu__sup_journal_is_open(s))
        (void)mu_value_set(map, "journal", mu__sup_journal_value(s));
    (void)mu_value_set(map, "tasks", peers_value(ctx, s, now_ms));
    (void)mu_value_set(map, "closures", closures_value(s));
    (void)mu_value_set(map, "in_flight", in_flight_value(s, now_ms));
    (void)mu_value_set(map, "metrics", metrics_value(s, now_ms));
    (void)mu_value_set(map, "memory", memory_value());
    (void)mu_value_set(map, "variables", request->variables);
    (void)mu_value_set(map, "servers_missing", mu_value_int(request->missing));
    if (s->config.partitions != NULL)
        (void)mu_value_set(map, "partitions",
                           s->config.partitions(s->config.partitions_owner));
    (void)mu_value_set(map, "per_worker", mu__sup_per_worker_value(s));
    (void)mu_value_set(map, "workers_missing", mu__sup_missing_value(s, now_ms));
    if (s->config.measure)
        (void)mu_value_set(map, "timers", timers_value(s));
    request->variables = NULL;
    mu__sup_send_status(ctx, request->requester, request->token, map);
}

/* The request with a number; with 0 a free entry. NULL: there is none. */
static struct status_request *find_request(struct supervisor *s, uint64_t number)
{
    for (uint32_t i = 0; i < STATUS_REQUESTS_MAX; i++)
        if (s->status.requests[i].number == number)
            return &s->status.requests[i];
    return NULL;
}

static void request_servers(struct mu__ctx *ctx, struct supervisor *s,
                            struct status_request *request)
{
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        const struct live_node *node = &s->nodes.items[i];
        const struct mu__status_get body = {.token = request->number};

        if (strcmp(node->type, "ps") == 0 &&
            mu__send_body(ctx, (mu__pid){node->node, MU__PS}, MU__STATUS_GET, &body,
                          sizeof body) == 0)
            request->missing++;
    }
}

/* ---- Too many requests for it ---- */

static uint32_t waiting_of(const struct supervisor *s, uint32_t node)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < STATUS_REQUESTS_MAX; i++)
        count += s->status.requests[i].number != 0 &&
                 s->status.requests[i].requester.node == node;
    return count;
}

/* Whether who asks may have a status, or a closure explained, and what that costs. */
static bool is_status_affordable(struct mu__ctx *ctx, struct supervisor *s, uint32_t node)
{
    struct live_node *peer = mu__live_nodes_find(&s->nodes, node);
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t less;

    if (peer == NULL)
        return true; /* this process itself */
    less = (now_ms - peer->status_ms) * STATUS_COST_SECOND / 1000;
    if (less > 0) {
        peer->status_ms = now_ms;
        peer->status_cost -= less < peer->status_cost ? less : peer->status_cost;
    }
    if (peer->status_cost >= STATUS_COST_MAX)
        return false;
    peer->status_cost += 1 + s->nodes.count / STATUS_COST_NODES;
    return true;
}

/* Whoever asks, however often: a line a second. */
static void log_refused(struct mu__ctx *ctx, struct supervisor *s)
{
    struct status_requests *status = &s->status;
    uint64_t now_ms = mu__now_ms(ctx);

    status->refused++;
    if (status->refused_ms != 0 && now_ms - status->refused_ms < REFUSED_SAID_MS)
        return;
    mu__log(ctx, MU__LOG_WARN, "too many status requests: %" PRIu32 " refused",
            status->refused);
    status->refused_ms = now_ms;
    status->refused = 0;
}

static void refuse_status(struct mu__ctx *ctx, struct supervisor *s, mu__pid to,
                          uint64_t token)
{
    static const char words[] = "too many status requests: try again in a second";
    const struct mu__status body = {
        .token = token, .code = MU_EEXHAUSTED, .message = mu__view_str(words)};

    log_refused(ctx, s);
    (void)mu__send_body(ctx, to, MU__STATUS, &body, sizeof body);
}

void mu__sup_on_status_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__status_get *body = mu__body(msg);
    bool explains = body->closure != 0 || body->slot != 0 || body->name.size > 0;
    struct status_request *request = find_request(s, 0);

    if ((!explains &&
         (request == NULL || waiting_of(s, msg->from.node) >= STATUS_OF_ONE_MAX)) ||
        !is_status_affordable(ctx, s, msg->from.node)) {
        refuse_status(ctx, s, msg->from, body->token);
        return;
    }
    if (explains && !mu__sup_journal_is_open(s)) {
        mu__hold(ctx);
        return;
    }
    if (explains) {
        mu__sup_explain(ctx, s, msg);
        return;
    }
    *request = (struct status_request){
        .requester = msg->from,
        .token = body->token,
        .number = ++s->status.next,
        .variables = mu_value_list(),
    };
    request_servers(ctx, s, request);
    if (request->missing == 0)
        answer_status(ctx, s, request);
    else
        request->timer = mu__timer_set(ctx, STATUS_WAIT_MS,
                                       timer_token(TIMER_STATUS, request->number));
}

void mu__sup_on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__status *body = mu__body(msg);
    struct status_request *request =
        body->token == 0 ? NULL : find_request(s, body->token);
    struct live_node *peer = mu__live_nodes_find(&s->nodes, msg->from.node);
    mu_value *part = NULL;
    char why[128] = "out of memory";

    if (request == NULL || peer == NULL)
        return;
    if (mu__value_unpack(&body->status, why, sizeof why, &part) == 0) {
        mu_value *map = mu_value_map();

        (void)mu_value_set(map, "ps", mu_value_int(peer->index));
        (void)mu_value_set(map, "variables", part);
        (void)mu_value_append(request->variables, map);
    }
    request->missing--;
    if (request->missing == 0)
        answer_status(ctx, s, request);
}

void mu__sup_status_timer(struct mu__ctx *ctx, struct supervisor *s, uint64_t number)
{
    struct status_request *request = find_request(s, number);

    if (request != NULL)
        answer_status(ctx, s, request);
}
