#include "actors/agent/internal.h"
#include "actors/packing.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What it hears. */
static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_here(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_heard(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_answer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_task_error(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_task_cleared(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static void on_cluster_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__CALL, on_call},
    {MU__KEY_ASK, mu__agent_on_key_ask},
    {MU__KEY_CANCEL, mu__agent_on_key_cancel},
    {MU__SERVICE_HERE, on_here},
    {MU__TASK_HEARD, on_heard},
    {MU__TASKS_ANSWER, on_answer},
    {MU__TASK_ERROR, on_task_error},
    {MU__TASK_CLEARED, on_task_cleared},
    {MU__WAIT_NOTE, mu__agent_on_wait_note},
    {MU__BARRIER_PASSED, mu__agent_on_passed},
    {MU__PREEMPT_ASK, mu__agent_on_preempt_ask},
    {MU__PREEMPT_STOP, mu__agent_on_preempt_stop},
    {MU__KEY_DONE, mu__agent_on_key_done},
    {MU__KEY_LISTED, mu__agent_on_listed},
    {MU__KEY_EVENT, mu__agent_on_key_event},
    {MU__TIMER, on_timer},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
    {MU__NODE_TROUBLE, on_node_trouble},
    {MU__CLUSTER_ADDED, on_cluster_added},
    {MU__CLUSTER_MOVED, on_cluster_moved},
};

/* What it can be: enum mu_agent_state, as the program sees it, from what is known.
 *
 *     DISCONNECTED <------> CONNECTED        registered, in this session; and not
 *          ^    \             /
 *       reset    '--> ERROR <'               an error is there, until a reset
 *          '-----------'                                                          */
static void show_state(struct agent *a)
{
    int state = MU_AGENT_DISCONNECTED;

    if (a->is_passive)
        state = MU_AGENT_UNINITIALIZED;
    else if (a->error.code != 0)
        state = MU_AGENT_ERROR;
    else if (a->registered)
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

static void end_session(struct agent *a)
{
    a->registered = false;
    a->register_token = 0;
    a->flying = 0;
    a->session++;
    show_state(a);
}

void mu__agent_enter_error(struct mu__ctx *ctx, struct agent *a, const mu_error *error)
{
    const mu_error kept = *error;

    if (a->error.code != 0)
        return;
    assert(kept.code < 0);
    a->error = kept;
    show_state(a);
    mu__log(ctx, MU__LOG_WARN, "is in error: %s: %s", mu_err_name(kept.code),
            kept.message);
    mu__agent_fail_all(ctx, a, &kept, false);
    if (a->on_error != NULL)
        a->on_error(a->on_error_user, &kept);
}

void mu__agent_withdraw(struct mu__ctx *ctx, struct agent *a, const mu_error *error)
{
    const mu_error kept = *error;

    a->wants = false;
    a->used = false;
    a->store = 0;
    a->refusal[0] = '\0';
    mu__agent_preempt_forget(a);
    end_session(a);
    mu__agent_fail_all(ctx, a, &kept, false);
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
    else if (!a->wants)
        (void)mu_error_set(ret_error, -MU_EPRECONDITION,
                           "this task is not registered with the coordination service: "
                           "mu_agent_register registers it");
    else
        return true;
    return false;
}

/* ---- words ---- */

void mu__agent_host_words(struct mu__ctx *ctx, const struct agent *a, char *out,
                          size_t size)
{
    unsigned long long lost_ms = a->lost_ms == 0 ? 0 : mu__now_ms(ctx) - a->lost_ms;

    if (!a->wants)
        (void)snprintf(out, size, "this task is not registered");
    else if (a->host != NULL && a->registered)
        (void)snprintf(out, size, "%s, which hosts the service, is connected",
                       a->host->task);
    else if (a->host != NULL)
        (void)snprintf(out, size, "%s, which hosts the service, is connected, and has "
                       "%s%s", a->host->task,
                       a->refusal[0] == '\0' ? "not registered this task yet"
                                             : "not registered this task: ",
                       a->refusal);
    else if (a->linked != NULL)
        (void)snprintf(out, size, "%s is connected, but does not host the service%s%s",
                       a->linked->task, a->linked->reason[0] == '\0' ? "" : ": ",
                       a->linked->reason);
    else if (a->lost_ms != 0)
        (void)snprintf(out, size, "%s, which hosts the service, is not connected since "
                       "%llu ms: %s", a->lost_task, lost_ms,
                       a->trouble[0] == '\0' ? a->lost : a->trouble);
    else
        (void)snprintf(out, size, "%s, which hosts the service, was never connected%s%s",
                       a->first_host, a->trouble[0] == '\0' ? "" : ": ", a->trouble);
}

/* ---- registering ---- */

static void tell_reset(struct mu__ctx *ctx, struct agent *a)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASK_RESET);
    struct mu__task_reset *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = a->token_next++;
    (void)mu__send(ctx, agent_service(a), msg);
}

/* What the service does not know of the time before, again with each try: who is
 * registered has been heard, and this before it. */
static void tell_owed(struct mu__ctx *ctx, struct agent *a)
{
    if (a->reset_owed)
        tell_reset(ctx, a);
    if (a->leave_owed)
        mu__agent_say_goodbye(ctx, a);
}

/* Its keys and barriers are gone, and the program relies on some. */
static bool has_lost_store(struct mu__ctx *ctx, struct agent *a)
{
    mu_error error = {0};

    if (a->store == 0 || a->store == a->host_store)
        return false;
    if (!a->used)
        return false;
    (void)mu_error_set(&error, -MU_EABORTED,
                       "the coordination service at %s was restarted, and has lost the "
                       "keys and barriers that this task had used", a->host->task);
    mu__agent_enter_error(ctx, a, &error);
    return true;
}

void mu__agent_register(struct mu__ctx *ctx, struct agent *a)
{
    struct mu__task_register *body;
    struct mu__msg *msg;

    if (a->host == NULL || a->registered || !a->wants || a->error.code != 0 ||
        has_lost_store(ctx, a))
        return;
    tell_owed(ctx, a);
    a->register_ms = mu__now_ms(ctx);
    msg = mu__msg_new(ctx, MU__TASK_REGISTER);
    if (msg == NULL)
        return;
    if (a->register_token == 0)
        a->register_token = a->token_next++;
    body = mu__body(msg);
    *body = (struct mu__task_register){
        .token = a->register_token,
        .devices = a->devices,
        .since = a->barriers_store == a->host_store ? a->since : 0,
        .done = mu__agent_done_floor(a),
        .run = mu__agent_run(a),
        .run_name = mu__view_str(a->run_name),
    };
    if (a->devices_buf != NULL)
        msg->backing = mu__buf_ref(a->devices_buf);
    (void)mu__send(ctx, agent_service(a), msg);
}

static void registered(struct mu__ctx *ctx, struct agent *a,
                       const struct mu__tasks_answer *body)
{
    a->register_token = 0;
    a->registered = true;
    a->reset_owed = false;
    a->leave_owed = false;
    a->heard_ms = mu__now_ms(ctx);
    a->store = a->host_store;
    if (a->barriers_store != a->store) {
        mu__agent_barriers_forget(a);
        a->since = body->since;
    }
    a->barriers_store = a->store;
    mu__agent_note_run(a, body->run);
    a->refusal[0] = '\0';
    a->session++;
    a->flying = 0;
    show_state(a);
    mu__log(ctx, MU__LOG_INFO, "registered with %s", a->host->task);
    mu__agent_tell_registered(ctx, a, NULL);
    mu__agent_preempt_session(ctx, a);
    mu__agent_pump_all(ctx, a);
}

/* Asked again at a tick; who waits for it hears of what will not pass by itself. A task
 * that must be reset first, since it failed while it was away or was restarted, is in
 * error here, too: so its program hears of it, and may reset it. */
static void refused(struct mu__ctx *ctx, struct agent *a, const mu_error *error)
{
    a->register_token = 0;
    if (strcmp(a->refusal, error->message) != 0)
        mu__log(ctx, MU__LOG_WARN, "is not registered by %s: %s", a->host->task,
                error->message);
    mu__view_copy(mu__view_str(error->message), a->refusal, sizeof a->refusal);
    if (error->code == -MU_EABORTED)
        mu__agent_enter_error(ctx, a, error);
    else if (error->code != -MU_EUNAVAILABLE && error->code != -MU_EINTERNAL)
        mu__agent_tell_registered(ctx, a, error);
}

static void on_register_answer(struct mu__ctx *ctx, struct agent *a,
                               const struct mu__tasks_answer *body)
{
    mu_error error;

    if (body->code == 0) {
        registered(ctx, a, body);
        return;
    }
    error = mu__agent_error_of(body->code, body->message, body->task, body->error_kind);
    refused(ctx, a, &error);
}

/* ---- hosts ---- */

static struct agent_host *find_host(const struct agent *a, uint32_t node)
{
    struct agent_host *host = a->linked;

    while (host != NULL && host->node != node)
        host = host->next;
    return host;
}

static struct agent_host *add_host(struct agent *a, uint32_t node, const char *type,
                                   uint32_t index)
{
    struct agent_host *host;

    if (a->linked_count == AGENT_HOSTS_MAX)
        return NULL;
    host = calloc(1, sizeof *host);
    if (host == NULL)
        return NULL;
    host->node = node;
    (void)snprintf(host->task, sizeof host->task, "/job:%.15s/task:%u", type, index);
    host->next = a->linked;
    a->linked = host;
    a->linked_count++;
    return host;
}

/* The leader with the highest epoch. */
static void follow(struct mu__ctx *ctx, struct agent *a)
{
    struct agent_host *best = NULL;

    for (struct agent_host *at = a->linked; at != NULL; at = at->next)
        if (at->leads && (best == NULL || at->epoch > best->epoch))
            best = at;
    if (best == a->host && (best == NULL || (best->epoch == a->host_epoch &&
                                             best->store == a->host_store)))
        return;
    end_session(a);
    a->host = best;
    a->refusal[0] = '\0';
    if (best == NULL)
        return;
    a->host_epoch = best->epoch;
    a->host_store = best->store;
    mu__agent_register(ctx, a);
}

/* From the one that is followed: what others say is of no interest. */
bool mu__agent_is_from_host(const struct agent *a, const struct mu__msg *msg)
{
    return a->host != NULL && msg->from.node == a->host->node &&
           msg->from.actor == MU__COORDINATION;
}

static void on_here(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__service_here *body = mu__body(msg);
    struct agent_host *host = find_host(a, msg->from.node);

    if (host == NULL || msg->from.actor != MU__COORDINATION)
        return;
    host->has_said = true;
    host->leads = body->leads;
    host->epoch = body->epoch;
    host->store = body->store;
    mu__view_copy(body->reason, host->reason, sizeof host->reason);
    follow(ctx, a);
}

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__node_up *body = mu__body(msg);
    char type[16];

    (void)ctx;
    mu__view_copy(body->type, type, sizeof type);
    if (!mu__task_set_has(&a->hosts, type, body->index))
        return;
    a->trouble[0] = '\0';
    (void)add_host(a, body->node, type, body->index);
}

static void remove_host(struct agent *a, struct agent_host *host)
{
    struct agent_host **link = &a->linked;

    while (*link != host)
        link = &(*link)->next;
    *link = host->next;
    a->linked_count--;
    free(host);
}

static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__node_down *body = mu__body(msg);
    struct agent_host *host = find_host(a, body->node);
    bool was_followed = host != NULL && host == a->host;

    if (host == NULL)
        return;
    a->lost_ms = mu__now_ms(ctx);
    mu__view_copy(body->reason, a->lost, sizeof a->lost);
    (void)snprintf(a->lost_task, sizeof a->lost_task, "%s", host->task);
    if (was_followed) {
        a->host = NULL;
        end_session(a);
        mu__agent_tell_reset(ctx, a);
    }
    remove_host(a, host);
    if (was_followed)
        follow(ctx, a);
}

static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__node_trouble *body = mu__body(msg);
    char type[16];

    (void)ctx;
    mu__view_copy(body->type, type, sizeof type);
    if (mu__task_set_has(&a->hosts, type, body->index) ||
        (a->config.any != NULL && strcmp(type, a->config.any) == 0))
        mu__view_copy(body->reason, a->trouble, sizeof a->trouble);
}

/* ---- what the service says ---- */

static void on_heard(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__task_heard *body = mu__body(msg);
    mu_error error;

    if (!mu__agent_is_from_host(a, msg))
        return;
    a->heard_ms = mu__now_ms(ctx);
    if (body->epoch != a->host_epoch || body->code == 0 || !a->registered)
        return;
    error = mu__agent_error_of(body->code, body->message, (struct mu__view){0}, 0);
    if (error.code == -MU_EABORTED) {
        mu__agent_enter_error(ctx, a, &error);
        return;
    }
    end_session(a);
    mu__agent_register(ctx, a);
}

static void on_answer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__tasks_answer *body = mu__body(msg);
    struct mu__asked *asked;
    mu_error error;

    if (!mu__agent_is_from_host(a, msg))
        return;
    if (body->token == a->register_token && body->token != 0) {
        on_register_answer(ctx, a, body);
        return;
    }
    asked = mu__agent_find(a, body->token);
    if (asked == NULL || asked->kind->answered == NULL || !mu__agent_is_asked(a, asked))
        return;
    if (body->code == MU_EUNAVAILABLE && body->task.size == 0) {
        mu__agent_again(a, asked);
        return;
    }
    error = mu__agent_error_of(body->code, body->message, body->task, body->error_kind);
    asked->kind->answered(ctx, a, asked, body, body->code == 0 ? NULL : &error);
}

static void on_task_error(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__task_error *body = mu__body(msg);
    mu_error error;

    if (!mu__agent_is_from_host(a, msg) || body->code == 0)
        return;
    if (body->own)
        mu__agent_tell_reported(ctx, a);
    error = mu__agent_error_of(body->code, body->message, body->task, 0);
    mu__agent_enter_error(ctx, a, &error);
}

static void on_task_cleared(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;

    if (mu__agent_is_from_host(a, msg))
        mu__agent_cleared(ctx, a, mu__body(msg));
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

/* What is known here, without asking anybody. */
static mu_value *service_value(const struct agent *a)
{
    mu_value *map = mu_value_map();
    char store[24];
    int rv;

    (void)snprintf(store, sizeof store, "%016" PRIx64, a->host_store);
    rv = mu_value_set(map, "task",
                      mu_value_string(a->host == NULL ? "" : a->host->task));
    if (rv == 0 && a->host != NULL)
        rv = mu_value_set(map, "epoch", mu_value_int((int64_t)a->host_epoch));
    if (rv == 0 && a->host != NULL)
        rv = mu_value_set(map, "store", mu_value_string(store));
    if (rv == 0)
        rv = mu_value_set(map, "registered", mu_value_bool(a->registered));
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static void call_service(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_call *call)
{
    mu_error error;

    (void)ctx;
    call->content = service_value(a);
    if (call->content == NULL)
        (void)mu_error_set(&error, -MU_ENOMEM, "no memory for what is known");
    mu__agent_complete(call, call->content == NULL ? &error : NULL);
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

enum { ALWAYS = 1, IN_ERROR = 2, UNREGISTERED = 4 };

static const struct {
    agent_call_fn fn;
    unsigned when;      /* besides when the task is registered, or will be */
} operations[MU__AGENT_OPERATIONS_COUNT] = {
    [MU__AGENT_REGISTER] = {mu__agent_call_register, UNREGISTERED},
    [MU__AGENT_ON_ERROR] = {call_on_error, ALWAYS},
    [MU__AGENT_REPORT] = {mu__agent_call_report, 0},
    [MU__AGENT_SET_ERROR] = {call_set_error, UNREGISTERED},
    [MU__AGENT_STATE] = {call_state, ALWAYS},
    [MU__AGENT_SERVICE] = {call_service, IN_ERROR | UNREGISTERED},
    [MU__AGENT_RESET] = {mu__agent_call_reset, IN_ERROR | UNREGISTERED},
    [MU__AGENT_LEAVE] = {mu__agent_call_leave, IN_ERROR},
    [MU__AGENT_TASKS] = {mu__agent_call_tasks, 0},
    [MU__AGENT_LIST] = {mu__agent_call_list, 0},
    [MU__AGENT_WATCH] = {mu__agent_call_watch, 0},
    [MU__AGENT_WATCH_NEXT] = {mu__agent_call_watch_next, 0},
    [MU__AGENT_WATCH_CLOSE] = {mu__agent_call_watch_close, ALWAYS},
    [MU__AGENT_BARRIER] = {mu__agent_call_barrier, 0},
    [MU__AGENT_BARRIER_CANCEL] = {mu__agent_call_barrier_cancel, 0},
    [MU__AGENT_NOTICE] = {mu__agent_call_notice, 0},
    [MU__AGENT_REACHED] = {mu__agent_call_reached, UNREGISTERED},
    [MU__AGENT_PREEMPTION] = {mu__agent_call_preemption, 0},
    [MU__AGENT_RUN_END] = {mu__agent_call_run_end, 0},
    [MU__AGENT_RUNS] = {mu__agent_call_runs, 0},
    [MU__AGENT_RUNS_CLEAR] = {mu__agent_call_runs_clear, 0},
    [MU__AGENT_MARK] = {mu__agent_call_mark, 0},
};

static void arm_tick(struct mu__ctx *ctx, struct agent *a)
{
    if (!a->is_passive && a->tick_timer == 0)
        a->tick_timer = mu__timer_set(ctx, a->config.heartbeat_ms, 0);
}

static bool may_call(const struct agent *a, unsigned when, mu_error *ret_error)
{
    if ((when & ALWAYS) != 0)
        return true;
    if (!a->is_passive && ((a->error.code != 0 && (when & IN_ERROR) != 0) ||
                           (a->error.code == 0 && (when & UNREGISTERED) != 0)))
        return true;
    return mu__agent_admits(a, ret_error);
}

static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    struct mu__call_msg *body = mu__body(msg);
    struct mu__agent_call *call = body->call;
    size_t operation = (size_t)call->call.operation;
    mu_error error = {0};

    assert(operation < MU__AGENT_OPERATIONS_COUNT);
    call->asked = (struct mu__asked){0};
    arm_tick(ctx, a);
    if (may_call(a, operations[operation].when, &error))
        operations[operation].fn(ctx, a, call);
    else
        mu__agent_complete(call, &error);
}

/* ---- time ---- */

static void say_heartbeat(struct mu__ctx *ctx, struct agent *a)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASK_HEARTBEAT);
    struct mu__task_heartbeat *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->progress = a->progress;
    body->stuck_ms = mu__now_ms(ctx) - a->progress_ms;
    (void)mu__send(ctx, agent_service(a), msg);
}

static void tick(struct mu__ctx *ctx, struct agent *a)
{
    uint64_t progress =
        atomic_load_explicit(&a->shared->progress, memory_order_relaxed);

    if (progress != a->progress)
        a->progress_ms = mu__now_ms(ctx);
    a->progress = progress;
    if (a->registered)
        say_heartbeat(ctx, a);
    else if (mu__now_ms(ctx) - a->register_ms >= AGENT_REGISTER_MS)
        mu__agent_register(ctx, a);
    mu__agent_preempt_tick(ctx, a);
    mu__agent_notes_tick(ctx, a);
    if (a->again)
        mu__agent_pump_all(ctx, a);
}

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__timer *body = mu__body(msg);

    if (body->timer == a->tick_timer) {
        a->tick_timer = 0;
        tick(ctx, a);
    }
    mu__agent_limits(ctx, a);
    arm_tick(ctx, a);
}

/* ---- life ---- */

/* The task of a set that comes first, for messages, and where it is. */
static void name_first_host(struct agent *a)
{
    const struct mu__task_range *first = &a->hosts.ranges[0];

    (void)snprintf(a->first_task, sizeof a->first_task, "/job:%s/task:%u", first->type,
                   first->first);
    (void)snprintf(a->first_host, sizeof a->first_host, "%.63s%s%.200s", a->first_task,
                   a->config.address[0] == '\0' ? "" : " at ", a->config.address);
}

/* Barriers of all are the service's from now on, even where this task was all. */
static void on_cluster_added(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__cluster_change *body = mu__body(msg);

    (void)ctx;
    a->has_company = a->has_company || (body->coordinated && !body->own);
}

static void on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__cluster_change *body = mu__body(msg);
    const struct mu__task_range *first = a->hosts.ranges;
    char address[MU__ADDRESS_MAX + 1];

    (void)ctx;
    if (a->hosts.count == 0 || !mu__view_is(body->type, first->type) ||
        body->index != first->first)
        return;
    mu__view_copy(body->address, address, sizeof address);
    a->config.address = address;
    name_first_host(a);
    a->config.address = NULL;
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
    mu__agent_asked_done(a);
    mu__agent_barriers_forget(a);
    mu__text_map_done(&a->barriers);
    while (a->linked != NULL)
        remove_host(a, a->linked);
    mu__buf_unref(a->devices_buf);
    mu__task_set_done(&a->hosts);
    free(a->own_task);
    free((char *)a->config.tasks);
}

/* A node of which nobody hosts a service has no timer and hears no news. */
static int init_active(struct mu__ctx *ctx, struct agent *a)
{
    int rv = own_task(a);

    name_first_host(a);
    a->barriers.secret = mu__random(ctx);
    if (rv == 0 && a->config.devices != NULL) {
        a->devices_buf = mu__pack_value(a->config.devices, &a->devices);
        rv = a->devices_buf == NULL ? -MU_ENOMEM : 0;
    }
    if (rv == 0 && mu__task_set_has(&a->hosts, a->config.type, a->config.index) &&
        add_host(a, MU__NODE_SELF, a->config.type, a->config.index) == NULL)
        rv = -MU_ENOMEM;
    if (rv == 0)
        rv = mu__watch_nodes(ctx);
    arm_tick(ctx, a);
    return rv == 0 && a->tick_timer == 0 ? -MU_ENOMEM : rv;
}

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct agent *a = state;
    mu_error error;
    int rv;

    a->config = *(const struct mu__agent_config *)arg;
    a->shared = a->config.shared;
    a->token_next = 1;
    a->session = 1;
    a->wants = a->config.registers_at_once;
    a->progress_ms = mu__now_ms(ctx);
    rv = copy_tasks(a);
    if (rv == 0)
        rv = mu__task_set_parse(mu__view_str(a->config.hosts), &error, &a->hosts);
    a->is_passive = a->hosts.count == 0;
    if (rv == 0 && !a->is_passive)
        rv = init_active(ctx, a);
    a->config.hosts = NULL;
    a->config.address = NULL;
    a->config.devices = NULL;
    if (a->config.run != NULL)
        (void)snprintf(a->run_name, sizeof a->run_name, "%s", a->config.run);
    a->config.run = NULL;
    show_state(a);
    if (rv != 0)
        free_state(a);
    return rv;
}

/* Whoever waits hears why. */
static void done(struct mu__ctx *ctx, void *state)
{
    struct agent *a = state;
    mu_error error = {0};

    a->host = NULL;
    a->wants = false;
    end_session(a);
    (void)mu_error_set(&error, -MU_ECLOSED, "the node is being closed");
    mu__agent_fail_all(ctx, a, &error, true);
    mu__agent_watches_done(ctx, a);
    atomic_store(&a->shared->gate, MU__GATE_OPEN);
    free_state(a);
}

const struct mu__behavior mu__agent = {
    .name = "agent",
    .state_size = sizeof(struct agent),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* the bound of requests, and threads */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
