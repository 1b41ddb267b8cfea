#include "actors/supervisor.h"

#include "actors/closures.h"
#include "actors/membership.h"
#include "actors/messages.h"
#include "actors/names.h"
#include "actors/packing.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What it hears. */
static void on_schedule(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_cancel_all(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_register(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_result(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_status_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__SCHEDULE, on_schedule},     {MU__CANCEL_ALL, on_cancel_all},
    {MU__REGISTER, on_register},     {MU__RESULT, on_result},
    {MU__NODE_UP, on_node_up},       {MU__NODE_DOWN, on_node_down},
    {MU__REPORT, on_report},         {MU__STATUS_GET, on_status_get},
    {MU__STATUS, on_status},         {MU__TIMER, on_timer},
    {MU__CALL, on_call},
};

/* What it remembers. */
enum {
    CLIENTS_MAX = 4096,
    METRICS_MAX = 256,
    QUESTIONS_MAX = 64,         /* status questions under way */
    STATUS_WAIT_MS = 1000,      /* for the parameter servers' part */
    SERVERS_MAX = 1024,
    IN_FLIGHT_SHOWN_MAX = 16,
    COPY_SLACK_BYTES = 512
};

/* Who schedules. A place is used again when its client has gone and none of its closures
 * is left. */
struct client {
    mu__pid pid;
    bool present;
    uint32_t closures;
    uint64_t scheduled;
};

/* The names stand in metric_names, in the same order. */
struct metric {
    double number;
    uint64_t step;
    uint64_t at_ms;
};

/* Someone who wants the status, and what the servers have answered so far. */
struct question {
    bool open;
    mu__pid asker;
    uint64_t token;
    uint64_t number;
    uint64_t timer;
    uint32_t missing;
    mu_value *variables;
};

/* Every node that is up. */
struct peer {
    uint32_t node;
    uint32_t index;
    uint64_t since_ms;
    char type[16];
    char address[256];
};

struct supervisor {
    struct mu__supervisor_config config;
    struct mu__closures closures;
    struct mu__membership members;
    struct mu__names functions;
    struct mu__names metric_names;
    struct client *clients;
    uint32_t clients_count;
    uint32_t client_last;       /* most closures in a row come from one client */
    struct peer *peers;
    uint32_t peers_count;
    uint32_t peers_size;
    struct metric metrics[METRICS_MAX];
    uint32_t metrics_count;
    struct question questions[QUESTIONS_MAX];
    uint64_t question_next;
    uint64_t scheduled;
    uint64_t finished;
    uint64_t failed;
    uint64_t cancelled;
    uint64_t retried;
    uint64_t forgotten;         /* of clients that went away */
    uint64_t stale;             /* results of attempts that nobody waits for */
    uint64_t workers_lost;
};

/* ---- answers to clients ---- */

/* What a closure came to. Strings may be empty; `result` borrows from `backing`. */
struct outcome {
    int code;           /* negative, or 0 */
    struct mu__packed result;
    struct mu__buf *backing;
    struct mu__view message;
    struct mu__view task;
};

static void count_outcome(struct supervisor *s, int code)
{
    if (code == 0)
        s->finished++;
    else if (code == -MU_ECANCELLED)
        s->cancelled++;
    else
        s->failed++;
}

/* Words of an error that are not in a backing buffer of their own get one. */
static void back_words(struct mu__msg *msg, struct mu__resolved *body,
                       const struct outcome *outcome)
{
    size_t size = (size_t)body->message.size + body->task.size + body->function.size;
    uint8_t *at;

    if (outcome->backing != NULL)
        msg->backing = mu__buf_ref(outcome->backing);
    if (size == 0)
        return;
    if (msg->backing != NULL)
        mu__buf_unref(msg->backing);
    msg->backing = mu__buf_new(size);
    if (msg->backing == NULL) {
        body->message.size = body->task.size = body->function.size = 0;
        return;
    }
    at = msg->backing->data;
    at = mu__pack_view(at, &body->message);
    at = mu__pack_view(at, &body->task);
    (void)mu__pack_view(at, &body->function);
}

/* The closure ends here, whatever becomes of the answer. */
static void resolve(struct mu__ctx *ctx, struct supervisor *s,
                    struct mu__closure *closure, const struct outcome *outcome)
{
    struct client *client = &s->clients[closure->client];
    struct mu__msg *msg = client->present ? mu__msg_new(ctx, MU__RESOLVED) : NULL;
    struct mu__resolved *body;

    client->closures--;
    if (!client->present) {
        s->forgotten++;
        mu__closures_remove(&s->closures, closure);
        return;
    }
    count_outcome(s, outcome->code);
    if (msg != NULL) {
        body = mu__body(msg);
        body->token = closure->token;
        body->closure = mu__closure_id(closure);
        body->attempt = closure->attempt;
        body->code = (uint32_t)-outcome->code;
        if (outcome->code == 0 && !closure->drop_result)
            body->result = outcome->result;
        if (outcome->code != 0) {
            body->message = outcome->message;
            body->task = outcome->task;
            body->function = mu__names_view(&s->functions, closure->function);
        }
        if (body->result.head != NULL || outcome->code != 0)
            back_words(msg, body, outcome);
    }
    mu__closures_remove(&s->closures, closure);
    if (mu__send(ctx, client->pid, msg) != 0)
        mu__log(ctx, MU__LOG_WARN, "an answer could not be sent to its client");
}

static void resolve_words(struct mu__ctx *ctx, struct supervisor *s,
                          struct mu__closure *closure, int code, const char *words)
{
    const struct outcome outcome = {
        .code = code,
        .message = mu__view_str(words),
        .task = mu__view_str("/job:chief/task:0"),
    };

    resolve(ctx, s, closure, &outcome);
}

/* ---- giving out ---- */

static int send_run(struct mu__ctx *ctx, struct supervisor *s, uint32_t node,
                    const struct mu__closure *closure)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RUN);
    struct mu__run *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    body->closure = mu__closure_id(closure);
    body->attempt = closure->attempt;
    body->function = mu__names_view(&s->functions, closure->function);
    body->args = mu__closure_args(closure);
    if (closure->backing != NULL)
        msg->backing = mu__buf_ref(closure->backing);
    return mu__send(ctx, (mu__pid){node, MU__WORKER}, msg);
}

/* Give out closures while there are any and a worker has room. */
static void dispatch(struct mu__ctx *ctx, struct supervisor *s)
{
    struct mu__closure *closure;
    uint32_t number;

    while ((closure = mu__closures_first(&s->closures, MU__LIST_QUEUE)) != NULL &&
           (number = mu__membership_pick(&s->members)) != 0) {
        struct mu__member_worker *worker = mu__membership_get(&s->members, number);

        closure->attempt++;
        closure->started_ms = (uint32_t)mu__now_ms(ctx);
        mu__closures_move_last(&s->closures, closure, number);
        mu__membership_load(&s->members, number, mu__closure_bytes(closure));
        if (send_run(ctx, s, worker->node, closure) == 0)
            continue;
        /* The news that this worker has gone is on its way. */
        mu__membership_unload(&s->members, number, mu__closure_bytes(closure));
        mu__closures_move_first(&s->closures, closure, MU__LIST_QUEUE);
        closure->attempt--;
        return;
    }
}

/* ---- clients ---- */

static bool client_is(const struct client *client, mu__pid pid)
{
    return client->present && mu__pid_equal(client->pid, pid);
}

static struct client *client_new(struct supervisor *s, mu__pid pid)
{
    uint32_t i;

    for (i = 0; i < s->clients_count; i++)
        if (!s->clients[i].present && s->clients[i].closures == 0)
            break;
    if (i == CLIENTS_MAX)
        return NULL;
    if (i == s->clients_count && !mu__grow_array((void **)&s->clients, i + 1,
                                                 sizeof *s->clients))
        return NULL;
    if (i == s->clients_count)
        s->clients_count++;
    s->clients[i] = (struct client){.pid = pid, .present = true};
    return &s->clients[i];
}

static struct client *client_of(struct supervisor *s, mu__pid pid)
{
    if (s->client_last < s->clients_count && client_is(&s->clients[s->client_last], pid))
        return &s->clients[s->client_last];
    for (uint32_t i = 0; i < s->clients_count; i++)
        if (client_is(&s->clients[i], pid)) {
            s->client_last = i;
            return &s->clients[i];
        }
    return client_new(s, pid);
}

/* Nobody waits for these any more; what is in flight ends when its worker answers. */
static void forget_client(struct supervisor *s, struct client *client)
{
    uint32_t number = (uint32_t)(client - s->clients);
    struct mu__closure *closure = mu__closures_first(&s->closures, MU__LIST_QUEUE);

    client->present = false;
    while (closure != NULL) {
        struct mu__closure *next = mu__closures_next(&s->closures, closure);

        if (closure->client == number) {
            client->closures--;
            s->forgotten++;
            mu__closures_remove(&s->closures, closure);
        }
        closure = next;
    }
}

/* ---- scheduling ---- */

/* Arguments stay where they came from, unless that is much larger than they are: one
 * small closure must not keep a whole frame of them alive. */
static bool keep_args(struct mu__closure *closure, struct mu__msg *msg,
                      const struct mu__packed *args)
{
    uint64_t size = (uint64_t)args->head_size + args->tail_size;
    struct mu__packed copied;
    struct mu__buf *copy;

    if (msg->backing != NULL && msg->backing->capacity <= 2 * size + COPY_SLACK_BYTES) {
        mu__closure_set_args(closure, args, msg->backing);
        return true;
    }
    if (size == 0)
        return true;
    copy = mu__pack_copy(args, &copied);
    if (copy == NULL)
        return false;
    mu__closure_set_args(closure, &copied, copy);
    mu__buf_unref(copy);
    return true;
}

static struct mu__closure *enqueue(struct supervisor *s, struct client *client,
                                   struct mu__msg *msg)
{
    struct mu__schedule *body = mu__body(msg);
    uint32_t function = mu__names_number(&s->functions, body->function);
    struct mu__closure *closure;

    if (function == MU__NAME_NONE || s->closures.count >= s->config.queue_max)
        return NULL;
    closure = mu__closures_add(&s->closures);
    if (closure == NULL)
        return NULL;
    if (!keep_args(closure, msg, &body->args)) {
        mu__closures_remove(&s->closures, closure);
        return NULL;
    }
    closure->token = body->token;
    closure->function = function;
    closure->client = (uint32_t)(client - s->clients);
    closure->drop_result = body->drop_result;
    client->closures++;
    client->scheduled++;
    s->scheduled++;
    return closure;
}

static void answer_exhausted(struct mu__ctx *ctx, struct mu__msg *msg)
{
    struct mu__schedule *asked = mu__body(msg);
    struct mu__msg *answer = mu__msg_new(ctx, MU__RESOLVED);
    struct mu__resolved *body;

    if (answer == NULL)
        return;
    body = mu__body(answer);
    body->token = asked->token;
    body->code = MU_EEXHAUSTED;
    body->message = mu__view_str("the chief holds as many closures as it may");
    (void)mu__send(ctx, msg->from, answer);
}

static void on_schedule(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct client *client = client_of(s, msg->from);

    if (client == NULL || enqueue(s, client, msg) == NULL) {
        answer_exhausted(ctx, msg);
        return;
    }
    dispatch(ctx, s);
}

static void send_cancel(struct mu__ctx *ctx, uint32_t node,
                        const struct mu__closure *closure)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__CANCEL);
    struct mu__cancel *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->closure = mu__closure_id(closure);
    body->attempt = closure->attempt;
    (void)mu__send(ctx, (mu__pid){node, MU__WORKER}, msg);
}

static void cancel_in_flight(struct mu__ctx *ctx, struct supervisor *s, uint32_t client)
{
    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        struct mu__member_worker *worker = mu__membership_get(&s->members, i);
        struct mu__closure *closure;

        if (worker == NULL)
            continue;
        closure = mu__closures_first(&s->closures, i);
        for (; closure != NULL; closure = mu__closures_next(&s->closures, closure)) {
            if (closure->client != client || closure->cancelled)
                continue;
            closure->cancelled = true;
            send_cancel(ctx, worker->node, closure);
        }
    }
}

static void on_cancel_all(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct client *client = client_of(s, msg->from);
    struct mu__closure *closure;
    uint32_t number;

    if (client == NULL)
        return;
    number = (uint32_t)(client - s->clients);
    closure = mu__closures_first(&s->closures, MU__LIST_QUEUE);
    while (closure != NULL) {
        struct mu__closure *next = mu__closures_next(&s->closures, closure);

        if (closure->client == number)
            resolve_words(ctx, s, closure, -MU_ECANCELLED,
                          "cancelled before it ran, after another closure's error");
        closure = next;
    }
    cancel_in_flight(ctx, s, number);
}

/* ---- workers ---- */

static struct peer *peer_of(const struct supervisor *s, uint32_t node)
{
    for (uint32_t i = 0; i < s->peers_count; i++)
        if (s->peers[i].node == node)
            return &s->peers[i];
    return NULL;
}

static void on_register(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__register *body = mu__body(msg);
    struct peer *peer = peer_of(s, msg->from.node);
    uint32_t window = s->config.window;
    uint32_t number;

    if (peer == NULL || strcmp(peer->type, "worker") != 0 ||
        mu__membership_by_node(&s->members, msg->from.node) != NULL)
        return;
    if (window == 0)
        window = body->threads < 2 ? 4 : body->threads * 2;
    number = mu__membership_add(&s->members, msg->from.node, peer->index, body->threads,
                                window);
    if (number == 0 || mu__closures_make_list(&s->closures, number) != 0) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: /job:worker/task:%" PRIu32
                " gets no closures", peer->index);
        if (number != 0)
            mu__membership_remove(&s->members, number);
        return;
    }
    mu__membership_get(&s->members, number)->since_ms = mu__now_ms(ctx);
    mu__log(ctx, MU__LOG_INFO, "/job:worker/task:%" PRIu32
            " takes closures (%" PRIu32 " threads, window %" PRIu32 ")",
            peer->index, body->threads, window);
    dispatch(ctx, s);
}

static void worker_task(char *out, size_t size, const struct mu__member_worker *worker)
{
    (void)snprintf(out, size, "/job:worker/task:%" PRIu32, worker->index);
}

/* The closure whose attempt this result is of; NULL when nobody waits for it. */
static struct mu__closure *attempt_of(struct supervisor *s, const struct mu__msg *msg,
                                      const struct mu__result *body)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, body->closure);
    struct mu__member_worker *worker;

    if (closure == NULL || closure->list == MU__LIST_QUEUE ||
        closure->attempt != body->attempt)
        return NULL;
    worker = mu__membership_get(&s->members, closure->list);
    return worker != NULL && worker->node == msg->from.node ? closure : NULL;
}

static void on_result(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__result *body = mu__body(msg);
    struct mu__closure *closure = attempt_of(s, msg, body);
    struct mu__member_worker *worker;
    char task[MU__TASK_NAME_MAX + 1] = "";
    struct outcome outcome;

    if (closure == NULL) {
        s->stale++;
        return;
    }
    worker = mu__membership_get(&s->members, closure->list);
    outcome = (struct outcome){
        .code = -(int)body->code,
        .result = body->result,
        .backing = msg->backing,
        .message = body->message,
    };
    if (body->code != 0) {
        worker_task(task, sizeof task, worker);
        outcome.task = mu__view_str(task);
        worker->failed++;
    } else {
        worker->finished++;
    }
    mu__membership_unload(&s->members, worker->number, mu__closure_bytes(closure));
    resolve(ctx, s, closure, &outcome);
    dispatch(ctx, s);
}

/* A closure whose worker was lost: cancelled, given up, or back to the front. */
static void take_back(struct mu__ctx *ctx, struct supervisor *s,
                      struct mu__closure *closure, const struct mu__member_worker *worker)
{
    char words[192];
    struct mu__view name = mu__names_view(&s->functions, closure->function);

    if (closure->cancelled || !s->clients[closure->client].present) {
        resolve_words(ctx, s, closure, -MU_ECANCELLED,
                      "cancelled; its worker was lost");
        return;
    }
    if (closure->attempt >= s->config.attempts_max) {
        (void)snprintf(words, sizeof words,
                       "function \"%.*s\" lost its worker %u times, last "
                       "/job:worker/task:%" PRIu32 "; given up",
                       (int)name.size, (const char *)name.data, closure->attempt,
                       worker->index);
        resolve_words(ctx, s, closure, -MU_EABORTED, words);
        return;
    }
    s->retried++;
    mu__closures_move_first(&s->closures, closure, MU__LIST_QUEUE);
}

static void log_lost(struct mu__ctx *ctx, uint32_t index, uint32_t count)
{
    if (count == 0)
        mu__log(ctx, MU__LOG_INFO, "/job:worker/task:%" PRIu32
                " is lost; nothing was in flight", index);
    else if (count == 1)
        mu__log(ctx, MU__LOG_WARN, "/job:worker/task:%" PRIu32
                " is lost with 1 closure in flight: it runs again elsewhere", index);
    else
        mu__log(ctx, MU__LOG_WARN, "/job:worker/task:%" PRIu32 " is lost with %" PRIu32
                " closures in flight: they run again elsewhere", index, count);
}

static void lose_worker(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__member_worker *worker)
{
    uint32_t number = worker->number;
    const struct mu__member_worker lost = *worker;
    struct mu__closure *closure;

    s->workers_lost++;
    mu__membership_remove(&s->members, number);
    log_lost(ctx, lost.index, mu__closures_count(&s->closures, number));
    /* From the last one on, so that at the queue's front they keep their order. */
    while ((closure = mu__closures_last(&s->closures, number)) != NULL)
        take_back(ctx, s, closure, &lost);
    dispatch(ctx, s);
}

/* ---- node news ---- */

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__node_up *body = mu__body(msg);
    struct peer *peer;

    if (s->peers_count == s->peers_size) {
        uint32_t size = s->peers_size == 0 ? 16 : s->peers_size * 2;

        if (!mu__grow_array((void **)&s->peers, size, sizeof *s->peers)) {
            mu__log(ctx, MU__LOG_ERROR, "out of memory: a node goes unnoticed");
            return;
        }
        s->peers_size = size;
    }
    peer = &s->peers[s->peers_count++];
    *peer = (struct peer){.node = body->node, .index = body->index,
                          .since_ms = mu__now_ms(ctx)};
    mu__view_copy(body->type, peer->type, sizeof peer->type);
    mu__view_copy(body->address, peer->address, sizeof peer->address);
}

static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__node_down *body = mu__body(msg);
    struct peer *peer = peer_of(s, body->node);
    struct mu__member_worker *worker = mu__membership_by_node(&s->members, body->node);

    if (peer != NULL)
        *peer = s->peers[--s->peers_count];
    for (uint32_t i = 0; i < s->clients_count; i++)
        if (s->clients[i].present && s->clients[i].pid.node == body->node)
            forget_client(s, &s->clients[i]);
    if (worker != NULL)
        lose_worker(ctx, s, worker);
}

/* ---- reports ---- */

static struct metric *metric_find(struct supervisor *s, struct mu__view name)
{
    for (uint32_t i = 0; i < s->metrics_count; i++) {
        struct mu__view known = mu__names_view(&s->metric_names, i);

        if (known.size == name.size && memcmp(known.data, name.data, name.size) == 0)
            return &s->metrics[i];
    }
    return NULL;
}

static struct metric *metric_of(struct supervisor *s, struct mu__view name)
{
    struct metric *metric = metric_find(s, name);

    if (metric != NULL || s->metrics_count == METRICS_MAX ||
        mu__names_number(&s->metric_names, name) == MU__NAME_NONE)
        return metric;
    return &s->metrics[s->metrics_count++];
}

static void on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__report *body = mu__body(msg);
    struct metric *metric = metric_of(s, body->name);

    if (metric == NULL) {
        mu__log(ctx, MU__LOG_WARN, "a report under one name too many was dropped");
        return;
    }
    metric->number = body->number;
    metric->step = body->step;
    metric->at_ms = mu__now_ms(ctx);
}

static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__call_msg *body = mu__body(msg);
    struct mu__metric_call *call = body->call;
    const struct metric *metric = metric_find(s, mu__view_str(call->name));

    (void)ctx;
    if (metric == NULL) {
        mu__call_complete(&call->call,
                          mu_error_set(&call->call.error, -MU_ENOTFOUND,
                                       "no number was reported under \"%s\"",
                                       call->name));
        return;
    }
    call->number = metric->number;
    call->step = metric->step;
    mu__call_complete(&call->call, 0);
}

/* ---- status ---- */

static mu_value *peer_value(const struct supervisor *s, const struct peer *peer,
                            uint64_t now_ms)
{
    const struct mu__member_worker *worker =
        mu__membership_by_node(&s->members, peer->node);
    mu_value *map = mu_value_map();

    (void)mu_value_set(map, "type", mu_value_string(peer->type));
    (void)mu_value_set(map, "index", mu_value_int(peer->index));
    (void)mu_value_set(map, "address", mu_value_string(peer->address));
    (void)mu_value_set(map, "state", mu_value_string("up"));
    (void)mu_value_set(map, "for_ms", mu_value_int((int64_t)(now_ms - peer->since_ms)));
    if (worker != NULL) {
        (void)mu_value_set(map, "threads", mu_value_int(worker->threads));
        (void)mu_value_set(map, "window", mu_value_int(worker->window));
        (void)mu_value_set(map, "in_flight", mu_value_int(worker->load));
        (void)mu_value_set(map, "finished", mu_value_int((int64_t)worker->finished));
        (void)mu_value_set(map, "failed", mu_value_int((int64_t)worker->failed));
    }
    return map;
}

static mu_value *peers_value(const struct supervisor *s, uint64_t now_ms)
{
    mu_value *list = mu_value_list();

    for (uint32_t i = 0; i < s->peers_count; i++)
        (void)mu_value_append(list, peer_value(s, &s->peers[i], now_ms));
    return list;
}

static uint32_t in_flight(const struct supervisor *s)
{
    return s->closures.count - mu__closures_count(&s->closures, MU__LIST_QUEUE);
}

static mu_value *closures_value(const struct supervisor *s)
{
    const struct {
        const char *key;
        uint64_t count;
    } counts[] = {
        {"scheduled", s->scheduled},
        {"finished", s->finished},
        {"failed", s->failed},
        {"cancelled", s->cancelled},
        {"forgotten", s->forgotten},
        {"queued", mu__closures_count(&s->closures, MU__LIST_QUEUE)},
        {"in_flight", in_flight(s)},
        {"retried", s->retried},
        {"stale_results", s->stale},
        {"workers_lost", s->workers_lost},
    };
    mu_value *map = mu_value_map();

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        (void)mu_value_set(map, counts[i].key, mu_value_int((int64_t)counts[i].count));
    return map;
}

static mu_value *running_value(const struct supervisor *s,
                               const struct mu__closure *closure, uint64_t now_ms)
{
    const struct mu__member_worker *worker =
        mu__membership_get(&s->members, closure->list);
    mu_value *map = mu_value_map();
    char text[MU__FUNCTION_NAME_MAX + 1];

    mu__view_copy(mu__names_view(&s->functions, closure->function), text, sizeof text);
    (void)mu_value_set(map, "closure", mu_value_int((int64_t)mu__closure_id(closure)));
    (void)mu_value_set(map, "function", mu_value_string(text));
    (void)mu_value_set(map, "attempt", mu_value_int(closure->attempt));
    worker_task(text, sizeof text, worker);
    (void)mu_value_set(map, "task", mu_value_string(text));
    (void)mu_value_set(map, "for_ms",
                       mu_value_int((uint32_t)((uint32_t)now_ms - closure->started_ms)));
    return map;
}

/* The first few of each worker, the longest under way first. */
static mu_value *in_flight_value(const struct supervisor *s, uint64_t now_ms)
{
    mu_value *list = mu_value_list();
    int left = IN_FLIGHT_SHOWN_MAX;

    for (uint32_t i = 1; i < s->members.workers_size; i++) {
        struct mu__closure *closure = mu__membership_get(&s->members, i) == NULL
                                          ? NULL
                                          : mu__closures_first(&s->closures, i);

        if (closure != NULL && left-- > 0)
            (void)mu_value_append(list, running_value(s, closure, now_ms));
    }
    return list;
}

static mu_value *metrics_value(const struct supervisor *s, uint64_t now_ms)
{
    mu_value *list = mu_value_list();

    for (uint32_t i = 0; i < s->metrics_count; i++) {
        const struct metric *metric = &s->metrics[i];
        mu_value *map = mu_value_map();
        char name[64];

        mu__view_copy(mu__names_view(&s->metric_names, i), name, sizeof name);
        (void)mu_value_set(map, "name", mu_value_string(name));
        (void)mu_value_set(map, "number", mu_value_float(metric->number));
        (void)mu_value_set(map, "step", mu_value_int((int64_t)metric->step));
        (void)mu_value_set(map, "age_ms",
                           mu_value_int((int64_t)(now_ms - metric->at_ms)));
        (void)mu_value_append(list, map);
    }
    return list;
}

static void answer(struct mu__ctx *ctx, struct supervisor *s, struct question *question)
{
    uint64_t now_ms = mu__now_ms(ctx);
    mu_value *map = mu_value_map();
    struct mu__msg *msg = mu__msg_new(ctx, MU__STATUS);

    mu__timer_cancel(ctx, question->timer);
    question->open = false;
    (void)mu_value_set(map, "tasks", peers_value(s, now_ms));
    (void)mu_value_set(map, "closures", closures_value(s));
    (void)mu_value_set(map, "in_flight", in_flight_value(s, now_ms));
    (void)mu_value_set(map, "metrics", metrics_value(s, now_ms));
    (void)mu_value_set(map, "variables", question->variables);
    (void)mu_value_set(map, "servers_missing", mu_value_int(question->missing));
    question->variables = NULL;
    if (msg != NULL) {
        struct mu__status *body = mu__body(msg);

        body->token = question->token;
        msg->backing = mu__pack_value(map, &body->status);
    }
    mu_value_free(map);
    (void)mu__send(ctx, question->asker, msg);
}

static struct question *question_new(struct supervisor *s)
{
    for (uint32_t i = 0; i < QUESTIONS_MAX; i++)
        if (!s->questions[i].open)
            return &s->questions[i];
    return NULL;
}

static void ask_servers(struct mu__ctx *ctx, struct supervisor *s,
                        struct question *question)
{
    for (uint32_t i = 0; i < s->peers_count; i++) {
        struct mu__msg *msg;
        struct mu__status_get *body;

        if (strcmp(s->peers[i].type, "ps") != 0)
            continue;
        msg = mu__msg_new(ctx, MU__STATUS_GET);
        if (msg == NULL)
            continue;
        body = mu__body(msg);
        body->token = question->number;
        if (mu__send(ctx, (mu__pid){s->peers[i].node, MU__PS}, msg) == 0)
            question->missing++;
    }
}

static void on_status_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__status_get *body = mu__body(msg);
    struct question *question = question_new(s);

    if (question == NULL) {
        mu__log(ctx, MU__LOG_WARN, "one question for the status too many was dropped");
        return;
    }
    *question = (struct question){
        .open = true,
        .asker = msg->from,
        .token = body->token,
        .number = ++s->question_next,
        .variables = mu_value_list(),
    };
    ask_servers(ctx, s, question);
    if (question->missing == 0)
        answer(ctx, s, question);
    else
        question->timer = mu__timer_set(ctx, STATUS_WAIT_MS, question->number);
}

static struct question *question_of(struct supervisor *s, uint64_t number)
{
    for (uint32_t i = 0; i < QUESTIONS_MAX; i++)
        if (s->questions[i].open && s->questions[i].number == number)
            return &s->questions[i];
    return NULL;
}

static void on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__status *body = mu__body(msg);
    struct question *question = question_of(s, body->token);
    struct peer *peer = peer_of(s, msg->from.node);
    mu_value *part = NULL;
    char why[128];

    if (question == NULL || peer == NULL)
        return;
    if (mu__value_unpack(&body->status, why, sizeof why, &part) == 0) {
        mu_value *map = mu_value_map();

        (void)mu_value_set(map, "ps", mu_value_int(peer->index));
        (void)mu_value_set(map, "variables", part);
        (void)mu_value_append(question->variables, map);
    }
    question->missing--;
    if (question->missing == 0)
        answer(ctx, s, question);
}

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    struct mu__timer *body = mu__body(msg);
    struct question *question = question_of(s, body->token);

    if (question != NULL)
        answer(ctx, s, question);
}

/* ---- life ---- */

void mu__supervisor_counts(const void *state, uint32_t *ret_queued,
                           uint32_t *ret_in_flight)
{
    const struct supervisor *s = state;

    *ret_queued = mu__closures_count(&s->closures, MU__LIST_QUEUE);
    *ret_in_flight = in_flight(s);
}

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct supervisor *s = state;

    s->config = *(const struct mu__supervisor_config *)arg;
    assert(s->config.attempts_max > 0 && s->config.attempts_max < UINT16_MAX &&
           s->config.queue_max > 0 && s->config.window <= MU__WINDOW_MAX);
    if (mu__closures_init(&s->closures) != 0)
        return -MU_ENOMEM;
    return mu__watch_nodes(ctx);
}

static void done(struct mu__ctx *ctx, void *state)
{
    struct supervisor *s = state;

    (void)ctx;
    for (uint32_t i = 0; i < QUESTIONS_MAX; i++)
        mu_value_free(s->questions[i].variables);
    mu__closures_done(&s->closures);
    mu__membership_done(&s->members);
    mu__names_done(&s->functions);
    mu__names_done(&s->metric_names);
    mu__free_array(s->clients);
    mu__free_array(s->peers);
}

const struct mu__behavior mu__supervisor = {
    .name = "supervisor",
    .state_size = sizeof(struct supervisor),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* a lost SCHEDULE would be a lost closure */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
