#include "actors/agent/agent.h"
#include "actors/agent/call_handlers.h"
#include "actors/keep.h"
#include "actors/packing.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The states of the agent that the program sees, enum mu_agent_state:
 *
 *     DISCONNECTED <------> CONNECTED        registered in the present session
 *          ^    \             /
 *       reset    '--> ERROR <'               from an error until a reset
 *          '-----------'                                                          */
void mu__agent_show_state(struct agent *a)
{
    int state = MU_AGENT_DISCONNECTED;

    if (a->is_passive)
        state = MU_AGENT_UNINITIALIZED;
    else if (a->error.code != 0)
        state = MU_AGENT_ERROR;
    else if (a->registration.registered)
        state = MU_AGENT_CONNECTED;
    atomic_store_explicit(&a->shared->state, state, memory_order_release);
}

/* ---- errors ---- */

mu_error mu__agent_error_of(uint32_t code, struct mu__view message, struct mu__view task,
                            uint32_t kind)
{
    mu_error error = {0};

    error.code = -(int)code;
    error.kind = (int)kind;
    mu__view_copy(message, error.message, sizeof error.message);
    mu__view_copy(task, error.task, sizeof error.task);
    if (error.message[0] == '\0')
        (void)snprintf(error.message, sizeof error.message, "%s",
                       mu_strerror(error.code));
    return error;
}

void mu__agent_enter_error(struct mu__ctx *ctx, struct agent *a, const mu_error *error)
{
    const mu_error saved = *error;

    if (a->error.code != 0)
        return;
    assert(saved.code < 0);
    a->error = saved;
    mu__agent_show_state(a);
    mu__log(ctx, MU__LOG_WARN, "is in error: %s: %s", mu_err_name(saved.code),
            saved.message);
    mu__agent_fail_all(ctx, a, &saved, false);
    if (a->on_error != NULL)
        a->on_error(a->on_error_user, &saved);
}

const mu_error *mu__agent_error(const void *state)
{
    const struct agent *a = state;

    return a->error.code == 0 ? NULL : &a->error;
}

bool mu__agent_admits(const struct agent *a, mu_error *ret_error)
{
    if (a->is_passive)
        (void)mu_error_set(ret_error, -MU_EPRECONDITION,
                           "there is no coordination service: option service_hosts names "
                           "no task that may host it");
    else if (a->error.code != 0)
        *ret_error = a->error;
    else if (!a->registration.is_requested)
        (void)mu_error_set(ret_error, -MU_EPRECONDITION,
                           "this task is not registered with the coordination service: "
                           "mu_agent_register registers it");
    else
        return true;
    return false;
}

/* ---- messages from the service ---- */

static void on_heard(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__task_heard *body = mu__body(msg);
    mu_error error;

    if (!mu__agent_is_from_host(a, msg))
        return;
    a->hosts.heard_ms = mu__now_ms(ctx);
    if (body->epoch != a->hosts.epoch || body->code == 0 || !a->registration.registered)
        return;
    error = mu__agent_error_of(body->code, body->message, (struct mu__view){0}, 0);
    if (error.code == -MU_EABORTED) {
        mu__agent_enter_error(ctx, a, &error);
        return;
    }
    mu__agent_end_session(a);
    mu__agent_register(ctx, a);
}

static void on_agent_answer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__tasks_answer *body = mu__body(msg);
    struct mu__agent_request *pending = mu__agent_find_answered(a, msg, body->token);
    mu_error error;

    if (mu__agent_is_from_host(a, msg) && body->token != 0 &&
        body->token == a->registration.token) {
        mu__agent_register_answered(ctx, a, body);
        return;
    }
    if (pending == NULL || pending->kind->on_answer == NULL)
        return;
    if (body->code == MU_EUNAVAILABLE && body->task.size == 0) {
        mu__agent_resend(a, pending);
        return;
    }
    error = mu__agent_error_of(body->code, body->message, body->task, body->error_kind);
    pending->kind->on_answer(ctx, a, pending, body, body->code == 0 ? NULL : &error);
}

static void on_task_error(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__task_error *body = mu__body(msg);
    mu_error error;

    if (!mu__agent_is_from_host(a, msg) || body->code == 0)
        return;
    if (body->own)
        mu__agent_finish_reports(ctx, a);
    error = mu__agent_error_of(body->code, body->message, body->task, 0);
    mu__agent_enter_error(ctx, a, &error);
}

/* ---- calls ---- */

static void call_on_error(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call)
{
    (void)ctx;
    a->on_error = call->on_error;
    a->on_error_user = call->user;
    mu__agent_complete(call, NULL);
}

static void call_state(struct mu__ctx *ctx, struct agent *a, struct mu__agent_call *call)
{
    (void)ctx;
    call->call.error = a->error;
    mu__call_complete(&call->call, 0);
}

/* The agent's own knowledge of the service; NULL: out of memory. */
static mu_value *service_value(const struct agent *a)
{
    mu_value *map = mu_value_map();
    char store[24];
    int rv;

    (void)snprintf(store, sizeof store, "%016" PRIx64, a->hosts.store);
    rv = mu_value_set(
        map, "task",
        mu_value_string(a->hosts.followed == NULL ? "" : a->hosts.followed->task));
    if (rv == 0 && a->hosts.followed != NULL)
        rv = mu_value_set(map, "epoch", mu_value_int((int64_t)a->hosts.epoch));
    if (rv == 0 && a->hosts.followed != NULL)
        rv = mu_value_set(map, "store", mu_value_string(store));
    if (rv == 0)
        rv = mu_value_set(map, "registered", mu_value_bool(a->registration.registered));
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static void call_service(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_call *call)
{
    (void)ctx;
    call->content = service_value(a);
    mu__call_complete(&call->call,
                      call->content == NULL
                          ? mu_error_set(&call->call.error, -MU_ENOMEM,
                                         "no memory for the state of the service")
                          : 0);
}

static void call_set_error(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_call *call)
{
    mu_error failure = call->failure;

    if (failure.task[0] == '\0')
        (void)snprintf(failure.task, sizeof failure.task, "/job:%s/task:%u",
                       a->config.type, a->config.index);
    mu__agent_enter_error(ctx, a, &failure);
    mu__agent_complete(call, NULL);
}

/* When a call is allowed, besides when mu__agent_admits says so. */
enum { ALWAYS = 1, IN_ERROR = 2, UNREGISTERED = 4 };

static const struct {
    agent_call_fn fn; /* NULL: the call is submitted as a request of `kind` */
    unsigned when;
    const struct mu__agent_request_kind *kind;
} operations[MU__AGENT_OPERATIONS_COUNT] = {
    [MU__AGENT_REGISTER] = {mu__agent_call_register, UNREGISTERED, NULL},
    [MU__AGENT_ON_ERROR] = {call_on_error, ALWAYS, NULL},
    [MU__AGENT_REPORT] = {mu__agent_call_report, 0, NULL},
    [MU__AGENT_SET_ERROR] = {call_set_error, UNREGISTERED, NULL},
    [MU__AGENT_STATE] = {call_state, ALWAYS, NULL},
    [MU__AGENT_SERVICE] = {call_service, IN_ERROR | UNREGISTERED, NULL},
    [MU__AGENT_RESET] = {mu__agent_call_reset, IN_ERROR | UNREGISTERED, NULL},
    [MU__AGENT_LEAVE] = {mu__agent_call_leave, IN_ERROR, NULL},
    [MU__AGENT_TASKS] = {.kind = &mu__agent_task_query},
    [MU__AGENT_LIST] = {mu__agent_call_list, 0, NULL},
    [MU__AGENT_WATCH] = {mu__agent_call_watch, 0, NULL},
    [MU__AGENT_WATCH_NEXT] = {mu__agent_call_watch_next, 0, NULL},
    [MU__AGENT_WATCH_CLOSE] = {mu__agent_call_watch_close, ALWAYS, NULL},
    [MU__AGENT_BARRIER] = {mu__agent_call_barrier, 0, NULL},
    [MU__AGENT_BARRIER_CANCEL] = {mu__agent_call_barrier_cancel, 0, NULL},
    [MU__AGENT_NOTICE] = {.kind = &mu__agent_noticing},
    [MU__AGENT_REACHED] = {mu__agent_call_reached, UNREGISTERED, NULL},
    [MU__AGENT_PREEMPTION] = {mu__agent_call_preemption, 0, NULL},
    [MU__AGENT_RUN_END] = {mu__agent_call_run_end, ALWAYS, NULL},
    [MU__AGENT_RUNS] = {.kind = &mu__agent_runs_query},
    [MU__AGENT_RUNS_CLEAR] = {.kind = &mu__agent_runs_clearing},
    [MU__AGENT_MARK] = {.kind = &mu__agent_marking},
};

static void arm_tick(struct mu__ctx *ctx, struct agent *a)
{
    if (!a->is_passive && a->heartbeat.timer == 0)
        a->heartbeat.timer = mu__timer_set(ctx, a->config.heartbeat_ms, 0);
}

static bool is_call_allowed(const struct agent *a, unsigned when, mu_error *ret_error)
{
    if ((when & ALWAYS) != 0)
        return true;
    if (!a->is_passive && ((a->error.code != 0 && (when & IN_ERROR) != 0) ||
                           (a->error.code == 0 && (when & UNREGISTERED) != 0)))
        return true;
    return mu__agent_admits(a, ret_error);
}

static void on_agent_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    struct mu__call_msg *body = mu__body(msg);
    struct mu__agent_call *call = body->call;
    size_t operation = (size_t)call->call.operation;

    assert(operation < MU__AGENT_OPERATIONS_COUNT);
    call->pending = (struct mu__agent_request){0};
    arm_tick(ctx, a);
    if (!is_call_allowed(a, operations[operation].when, &call->call.error))
        mu__call_complete(&call->call, call->call.error.code);
    else if (operations[operation].fn != NULL)
        operations[operation].fn(ctx, a, call);
    else
        (void)mu__agent_submit(ctx, a, &call->pending, operations[operation].kind,
                               call->call.timeout_ms, 0);
}

/* ---- timers ---- */

static void send_heartbeat(struct mu__ctx *ctx, struct agent *a)
{
    const struct mu__task_heartbeat body = {
        .progress = a->heartbeat.progress,
        .stuck_ms = mu__now_ms(ctx) - a->heartbeat.progress_ms,
    };

    (void)mu__send_body(ctx, mu__agent_service(a), MU__TASK_HEARTBEAT, &body,
                        sizeof body);
}

static void run_agent_tick(struct mu__ctx *ctx, struct agent *a)
{
    uint64_t progress = atomic_load_explicit(&a->shared->progress, memory_order_relaxed);

    if (progress != a->heartbeat.progress)
        a->heartbeat.progress_ms = mu__now_ms(ctx);
    a->heartbeat.progress = progress;
    if (a->registration.registered)
        send_heartbeat(ctx, a);
    else if (mu__now_ms(ctx) - a->registration.sent_ms >= AGENT_REGISTER_MS)
        mu__agent_register(ctx, a);
    mu__agent_preempt_tick(ctx, a);
    mu__agent_wait_log_tick(ctx, a);
    if (a->requests.resend)
        mu__agent_pump_all(ctx, a);
}

static void on_agent_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__timer *body = mu__body(msg);

    if (body->timer == a->heartbeat.timer) {
        a->heartbeat.timer = 0;
        run_agent_tick(ctx, a);
    }
    mu__agent_check_timeouts(ctx, a);
    arm_tick(ctx, a);
}

/* ---- beginning and end ---- */

/* Barriers over all tasks need the service from now on, even if this task was the only
 * one before. */
static void on_cluster_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__cluster_change *body = mu__body(msg);

    (void)ctx;
    a->has_joined_tasks = a->has_joined_tasks || (body->coordinated && !body->own);
}

static int own_task(struct agent *a)
{
    struct mu__task_set set = {0};
    int rv = mu__task_set_add(&set, a->config.type, a->config.index);

    if (rv == 0) {
        a->own_task = mu__task_set_text(&set);
        rv = a->own_task == NULL ? -MU_ENOMEM : 0;
    }
    mu__task_set_done(&set);
    return rv;
}

static int copy_tasks(struct agent *a)
{
    const char *tasks = a->config.tasks == NULL ? "" : a->config.tasks;
    char *copy = malloc(strlen(tasks) + 1);

    a->config.tasks = copy;
    if (copy == NULL)
        return -MU_ENOMEM;
    memcpy(copy, tasks, strlen(tasks) + 1);
    return 0;
}

static void free_state(struct agent *a)
{
    mu__agent_requests_done(a);
    mu__agent_barriers_forget(a);
    mu__text_map_done(&a->barriers.by_name);
    mu__agent_hosts_done(a);
    mu__buf_unref(a->registration.devices_buf);
    free(a->own_task);
    free((char *)a->config.tasks);
}

/* Only if some task may host a service: otherwise the agent needs no timer and no news of
 * nodes. */
static int init_active(struct mu__ctx *ctx, struct agent *a)
{
    int rv = own_task(a);

    mu__agent_name_first_host(a);
    a->barriers.by_name.secret = mu__random(ctx);
    if (rv == 0 && a->config.devices != NULL) {
        a->registration.devices_buf =
            mu__pack_value(a->config.devices, &a->registration.devices);
        rv = a->registration.devices_buf == NULL ? -MU_ENOMEM : 0;
    }
    if (rv == 0 && mu__task_set_has(&a->hosts.set, a->config.type, a->config.index) &&
        mu__agent_add_own_host(a) != 0)
        rv = -MU_ENOMEM;
    if (rv == 0)
        rv = mu__watch_nodes(ctx);
    arm_tick(ctx, a);
    return rv == 0 && a->heartbeat.timer == 0 ? -MU_ENOMEM : rv;
}

static int init_agent(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct agent *a = state;
    mu_error error;
    int rv;

    a->config = *(const struct mu__agent_config *)arg;
    a->shared = a->config.shared;
    a->requests.token_next = 1;
    a->registration.session = 1;
    a->registration.is_requested = a->config.registers_at_once;
    a->heartbeat.progress_ms = mu__now_ms(ctx);
    rv = copy_tasks(a);
    if (rv == 0)
        rv = mu__task_set_parse(mu__view_str(a->config.hosts), &error, &a->hosts.set);
    a->is_passive = a->hosts.set.count == 0;
    if (rv == 0 && !a->is_passive)
        rv = init_active(ctx, a);
    a->config.hosts = NULL;
    a->config.address = NULL;
    a->config.devices = NULL;
    if (a->config.run != NULL)
        (void)snprintf(a->job_run.name, sizeof a->job_run.name, "%s", a->config.run);
    a->config.run = NULL;
    mu__agent_show_state(a);
    if (rv != 0)
        free_state(a);
    return rv;
}

/* Pending requests fail with -MU_ECLOSED. */
static void end_agent(struct mu__ctx *ctx, void *state)
{
    struct agent *a = state;
    mu_error error = {0};

    a->hosts.followed = NULL;
    a->registration.is_requested = false;
    mu__agent_end_session(a);
    (void)mu_error_set(&error, -MU_ECLOSED, "the node is being closed");
    mu__agent_fail_all(ctx, a, &error, true);
    mu__agent_watches_done(ctx, a);
    atomic_store(&a->shared->gate, MU__GATE_OPEN);
    free_state(a);
}

static const struct mu__handler handlers[] = {
    {MU__CALL, on_agent_call},
    {MU__KEY_SUBMIT, mu__agent_on_key_submit},
    {MU__KEY_CANCEL, mu__agent_on_key_cancel},
    {MU__SERVICE_HERE, mu__agent_on_here},
    {MU__TASK_HEARD, on_heard},
    {MU__TASKS_ANSWER, on_agent_answer},
    {MU__TASK_ERROR, on_task_error},
    {MU__TASK_CLEARED, mu__agent_on_cleared},
    {MU__WAIT_NOTE, mu__agent_on_wait_note},
    {MU__BARRIER_PASSED, mu__agent_on_passed},
    {MU__PREEMPT_REQUEST, mu__agent_on_preempt_request},
    {MU__PREEMPT_STOP, mu__agent_on_preempt_stop},
    {MU__KEY_DONE, mu__agent_on_key_done},
    {MU__KEY_LISTED, mu__agent_on_listed},
    {MU__KEY_EVENT, mu__agent_on_key_event},
    {MU__TIMER, on_agent_timer},
    {MU__NODE_UP, mu__agent_on_node_up},
    {MU__NODE_DOWN, mu__agent_on_node_down},
    {MU__NODE_TROUBLE, mu__agent_on_node_trouble},
    {MU__CLUSTER_ADDED, on_cluster_added},
    {MU__CLUSTER_MOVED, mu__agent_on_cluster_moved},
};

const struct mu__behavior mu__agent = {
    .name = "agent",
    .state_size = sizeof(struct agent),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* bounded by MU__KEY_REQUESTS_MAX and by the
                                              number of threads, which wait for calls */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_agent,
    .done = end_agent,
};
