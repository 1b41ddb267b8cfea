/* Calls about tasks. */
#include "actors/agent/agent.h"
#include "actors/agent/call_handlers.h"

#include "actors/keep.h"
#include "runtime/message/codec.h"

#include <stdio.h>
#include <string.h>

void mu__agent_complete(struct mu__agent_call *call, const mu_error *error)
{
    if (error != NULL)
        call->call.error = *error;
    mu__call_complete(&call->call, error == NULL ? 0 : error->code);
}

void mu__agent_call_fail(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_request *pending, const mu_error *error)
{
    mu__agent_remove(ctx, a, pending);
    mu__agent_complete(agent_call_of(pending), error);
}

void mu__agent_answered(struct mu__ctx *ctx, struct agent *a,
                        struct mu__agent_request *pending,
                        const struct mu__tasks_answer *body, const mu_error *error)
{
    (void)body;
    mu__agent_call_fail(ctx, a, pending, error);
}

static struct mu__agent_request *find_request_of_kind(
    const struct agent *a, const struct mu__agent_request_kind *kind)
{
    struct mu__agent_request *pending = agent_first_request(a);

    while (pending != NULL && pending->kind != kind)
        pending = agent_next_request(pending);
    return pending;
}

/* Completes all calls of a kind. One at a time, since completing one may end others. */
static void end_calls_of_kind(struct mu__ctx *ctx, struct agent *a,
                              const struct mu__agent_request_kind *kind,
                              const mu_error *error)
{
    struct mu__agent_request *pending;

    while ((pending = find_request_of_kind(a, kind)) != NULL)
        mu__agent_call_fail(ctx, a, pending, error);
}

/* ---- registering ---- */

static struct mu__msg *make_register(struct mu__ctx *ctx, struct agent *a,
                                     struct mu__agent_request *pending)
{
    return mu__agent_make_registration(ctx, a, pending->token, true,
                                       mu__agent_left_ms(ctx, pending));
}

static const struct mu__agent_request_kind registering = {
    .what = "this task",
    .fail = mu__agent_call_fail,
    .late = "was not registered",
};

static const struct mu__agent_request_kind registering_all = {
    .make_message = make_register,
    .on_answer = mu__agent_answered,
    .what = "registering of all tasks",
    .fail = mu__agent_call_fail,
    .late = "was not over",
    .is_limited = true,
};

void mu__agent_call_register(struct mu__ctx *ctx, struct agent *a,
                             struct mu__agent_call *call)
{
    if (a->is_passive || a->error.code != 0) {
        (void)mu__agent_admits(a, &call->call.error);
        mu__call_complete(&call->call, call->call.error.code);
        return;
    }
    if (a->registration.registered && !call->barrier) {
        mu__agent_complete(call, NULL);
        return;
    }
    a->registration.is_requested = true;
    if (mu__agent_submit(ctx, a, &call->pending,
                         call->barrier ? &registering_all : &registering,
                         call->call.timeout_ms, 0) &&
        a->registration.token == 0)
        mu__agent_register(ctx, a);
}

void mu__agent_report_registered(struct mu__ctx *ctx, struct agent *a,
                                 const mu_error *error)
{
    end_calls_of_kind(ctx, a, &registering, error);
    if (error != NULL)
        end_calls_of_kind(ctx, a, &registering_all, error);
}

/* ---- errors ---- */

static struct mu__msg *make_report(struct mu__ctx *ctx, struct agent *a,
                                   struct mu__agent_request *pending)
{
    const mu_error *failure = &agent_call_of(pending)->failure;
    const struct mu__task_report body = {
        .token = pending->token,
        .code = (uint32_t)-failure->code,
        .message = mu__view_str(failure->message),
        .task = mu__view_str(failure->task),
    };

    return mu__agent_message(ctx, a, MU__TASK_REPORT, &body, sizeof body);
}

static void answered_report(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_request *pending,
                            const struct mu__tasks_answer *body, const mu_error *error)
{
    struct mu__agent_call *call = agent_call_of(pending);

    (void)body;
    mu__agent_remove(ctx, a, pending);
    if (error == NULL)
        mu__agent_enter_error(ctx, a, &call->failure);
    mu__agent_complete(call, error);
}

static const struct mu__agent_request_kind reporting = {
    .make_message = make_report,
    .on_answer = answered_report,
    .what = "the report of this task's error",
    .fail = mu__agent_call_fail,
    .late = "was not answered",
    .changes = true,
};

void mu__agent_call_report(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_call *call)
{
    mu_error error = {0};

    if (a->registration.registered) {
        if (call->failure.task[0] == '\0')
            (void)snprintf(call->failure.task, sizeof call->failure.task,
                           "/job:%s/task:%u", a->config.type, a->config.index);
        (void)mu__agent_submit(ctx, a, &call->pending, &reporting, call->call.timeout_ms,
                               0);
        return;
    }
    (void)mu_error_set(&error, -MU_EPRECONDITION,
                       "an error is reported by a task that is connected: ");
    mu__agent_host_words(ctx, a, error.message + strlen(error.message), AGENT_WORDS_MAX);
    mu__agent_complete(call, &error);
}

void mu__agent_finish_reports(struct mu__ctx *ctx, struct agent *a)
{
    end_calls_of_kind(ctx, a, &reporting, NULL);
}

/* ---- reset ---- */

/* The agent is reset all the same; the service is told when the task registers again. */
static void fail_reset(struct mu__ctx *ctx, struct agent *a,
                       struct mu__agent_request *pending, const mu_error *error)
{
    a->registration.reset_unreported = true;
    mu__agent_call_fail(ctx, a, pending, error->code == -MU_ECLOSED ? error : NULL);
}

/* The service refuses a reset if it does not count the task as failed: that is fine. */
static void answered_reset(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_request *pending,
                           const struct mu__tasks_answer *body, const mu_error *error)
{
    (void)body;
    (void)error;
    mu__agent_call_fail(ctx, a, pending, NULL);
}

static const struct mu__agent_request_kind resetting = {
    .on_answer = answered_reset,
    .what = "the reset",
    .fail = fail_reset,
    .late = "was not answered",
};

/* Sends the message itself: pending requests are sent only while the task is
 * registered. */
static void send_reset(struct mu__ctx *ctx, struct agent *a, struct mu__agent_call *call)
{
    mu__pid service = mu__agent_service(a);
    struct mu__task_reset body;
    mu_error error = {0};

    if (!mu__agent_submit(ctx, a, &call->pending, &resetting, call->call.timeout_ms, 0))
        return;
    body.token = call->pending.token;
    if (mu__send_is_forbidden(ctx, service.node, MU__TASK_RESET, &error))
        mu__agent_call_fail(ctx, a, &call->pending, &error);
    else if (mu__send_body(ctx, service, MU__TASK_RESET, &body, sizeof body) != 0)
        fail_reset(ctx, a, &call->pending, &a->error);
}

void mu__agent_call_reset(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call)
{
    mu_error error = {0};

    if (a->error.code == 0) {
        mu__call_complete(&call->call,
                          mu_error_set(&call->call.error, -MU_EPRECONDITION,
                                       "a task is reset from being in error, and this "
                                       "one is not"));
        return;
    }
    a->error = (mu_error){.code = 0};
    (void)mu_error_set(&error, -MU_EABORTED, "this task was reset");
    mu__agent_withdraw(ctx, a, &error);
    if (a->hosts.followed != NULL) {
        send_reset(ctx, a, call);
        return;
    }
    a->registration.reset_unreported = true;
    mu__agent_complete(call, NULL);
}

void mu__agent_finish_resets(struct mu__ctx *ctx, struct agent *a)
{
    if (find_request_of_kind(a, &resetting) == NULL)
        return;
    a->registration.reset_unreported = true;
    end_calls_of_kind(ctx, a, &resetting, NULL);
}

/* ---- leaving ---- */

static struct mu__msg *make_leave(struct mu__ctx *ctx, struct agent *a,
                                  struct mu__agent_request *pending)
{
    const struct mu__task_leave body = {
        .token = pending->token,
        .timeout_ms = mu__agent_left_ms(ctx, pending),
    };

    return mu__agent_message(ctx, a, MU__TASK_LEAVE, &body, sizeof body);
}

/* `heard`: the service has confirmed that the task has left. */
static void leave_service(struct mu__ctx *ctx, struct agent *a, bool heard)
{
    mu_error error = {0};

    a->registration.leave_unreported =
        !heard && (a->registration.leave_unreported || a->registration.store != 0);
    (void)mu_error_set(&error, -MU_EPRECONDITION, "this task has left");
    mu__agent_withdraw(ctx, a, &error);
}

static struct mu__task_leave make_goodbye(struct agent *a)
{
    return (struct mu__task_leave){.token = a->requests.token_next++, .now = true};
}

void mu__agent_send_goodbye(struct mu__ctx *ctx, struct agent *a)
{
    struct mu__task_leave body;

    if (a->hosts.followed == NULL)
        return;
    body = make_goodbye(a);
    (void)mu__send_body(ctx, mu__agent_service(a), MU__TASK_LEAVE, &body, sizeof body);
}

struct mu__msg *mu__agent_goodbye(void *state, struct mu__pool *pool)
{
    struct agent *a = state;
    struct mu__msg *msg;

    if (!a->registration.registered || a->error.code != 0 ||
        a->hosts.followed->node == MU__NODE_SELF)
        return NULL;
    msg = mu__pool_get(pool, MU__TASK_LEAVE, sizeof(struct mu__task_leave));
    if (msg == NULL)
        return NULL;
    *(struct mu__task_leave *)mu__body(msg) = make_goodbye(a);
    msg->from = (mu__pid){MU__NODE_SELF, MU__AGENT};
    msg->to = mu__agent_service(a);
    return msg;
}

/* The task leaves even if the service answers with an error, as when other tasks did not
 * come to leave together: then the service is told that this one leaves alone. */
static void answered_leave(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_request *pending,
                           const struct mu__tasks_answer *body, const mu_error *error)
{
    struct mu__agent_call *call = agent_call_of(pending);

    (void)body;
    mu__agent_remove(ctx, a, pending);
    if (error != NULL)
        mu__agent_send_goodbye(ctx, a);
    leave_service(ctx, a, error == NULL);
    mu__agent_complete(call, error);
}

/* After its timeout the task leaves all the same. If the agent has entered the error
 * state instead, it does not. */
static void fail_leave_call(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_request *pending, const mu_error *error)
{
    struct mu__agent_call *call = agent_call_of(pending);
    const mu_error why = *error;

    mu__agent_remove(ctx, a, pending);
    if (why.code == -MU_EDEADLINE && a->error.code == 0) {
        mu__agent_send_goodbye(ctx, a);
        leave_service(ctx, a, false);
    }
    mu__agent_complete(call, &why);
}

static const struct mu__agent_request_kind leaving = {
    .make_message = make_leave,
    .on_answer = answered_leave,
    .what = "leaving",
    .fail = fail_leave_call,
    .late = "was not answered",
    .changes = true,
    .is_limited = true,
};

/* The task leaves, and the call fails with the agent's error. */
static void leave_in_error_state(struct mu__ctx *ctx, struct agent *a,
                                 struct mu__agent_call *call)
{
    mu_error *error = &call->call.error;

    (void)mu_error_set(error, -MU_EPRECONDITION, "this task leaves in error: %s: %s",
                       mu_err_name(a->error.code), a->error.message);
    (void)snprintf(error->task, sizeof error->task, "%s", a->error.task);
    a->error = (mu_error){.code = 0};
    mu__agent_send_goodbye(ctx, a);
    leave_service(ctx, a, false);
    mu__call_complete(&call->call, error->code);
}

void mu__agent_call_leave(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call)
{
    if (a->error.code != 0) {
        leave_in_error_state(ctx, a, call);
        return;
    }
    if (a->registration.store != 0) {
        (void)mu__agent_submit(ctx, a, &call->pending, &leaving, call->call.timeout_ms,
                               0);
        return;
    }
    leave_service(ctx, a, false);
    mu__agent_complete(call, NULL);
}

/* ---- queries ---- */

static void name_tasks(struct mu__agent_request *pending, char *out, size_t size)
{
    static const char *const names[] = {"states", "devices",  "wait for",
                                        "watch",  "alive of", "actors of"};
    const struct mu__agent_call *call = agent_call_of(pending);
    bool is_set = call->tasks != NULL && call->tasks[0] != '\0';

    (void)snprintf(out, size, "the query about tasks (%s %.100s)",
                   call->what <= MU__TASKS_ACTORS ? names[call->what] : "?",
                   is_set ? call->tasks : "all");
}

static struct mu__msg *make_tasks(struct mu__ctx *ctx, struct agent *a,
                                  struct mu__agent_request *pending)
{
    const struct mu__agent_call *call = agent_call_of(pending);
    const struct mu__tasks_get body = {
        .token = pending->token,
        .what = call->what,
        .tasks = agent_text(call->tasks),
        .version = call->version,
        .timeout_ms = mu__agent_left_ms(ctx, pending),
    };

    return mu__agent_message(ctx, a, MU__TASKS_GET, &body, sizeof body);
}

void mu__agent_answered_content(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_request *pending,
                                const struct mu__tasks_answer *body,
                                const mu_error *error)
{
    struct mu__agent_call *call = agent_call_of(pending);
    mu_error bad = {0};
    char why[128] = "";
    int rv = 0;

    if (error == NULL) {
        rv = mu__value_unpack(&body->content, why, sizeof why, &call->content);
        call->version = body->version + 1;
    }
    if (rv != 0) {
        (void)mu_error_set(&bad, rv, "the coordination service's answer: %s",
                           rv == -MU_ENOMEM ? "no memory" : why);
        error = &bad;
    }
    mu__agent_call_fail(ctx, a, pending, error);
}

const struct mu__agent_request_kind mu__agent_task_query = {
    .make_message = make_tasks,
    .on_answer = mu__agent_answered_content,
    .name = name_tasks,
    .fail = mu__agent_call_fail,
    .late = "was not answered",
    .is_limited = true,
};
