/* Calls about tasks. */
#include "actors/agent/agent.h"
#include "actors/agent/call_handlers.h"

#include "actors/packing.h"
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

struct mu__msg *mu__agent_copy_views(struct mu__ctx *ctx, struct mu__msg *msg,
                               struct mu__view *first, struct mu__view *second)
{
    uint8_t *at;

    if (msg == NULL)
        return NULL;
    msg->backing = mu__buf_new((size_t)first->size + (second == NULL ? 0 : second->size));
    if (msg->backing == NULL) {
        mu__msg_free(ctx, msg);
        return NULL;
    }
    at = mu__pack_view(msg->backing->data, first);
    if (second != NULL)
        (void)mu__pack_view(at, second);
    return msg;
}

void mu__agent_answered(struct mu__ctx *ctx, struct agent *a,
                        struct mu__agent_request *pending,
                        const struct mu__tasks_answer *body, const mu_error *error)
{
    (void)body;
    mu__agent_call_fail(ctx, a, pending, error);
}

/* Those of a kind that wait; `from` NULL begins. */
static struct mu__agent_request *next_of(const struct agent *a,
                                         const struct mu__agent_request *from,
                                         const struct mu__agent_request_kind *kind)
{
    struct mu__agent_request *pending = from == NULL ? a->requests.first : from->next;

    while (pending != NULL && pending->kind != kind)
        pending = pending->next;
    return pending;
}

/* Ends all of a kind; one at a time, since one that ends may end others. */
static void end_all(struct mu__ctx *ctx, struct agent *a,
                    const struct mu__agent_request_kind *kind, const mu_error *error)
{
    struct mu__agent_request *pending;

    while ((pending = next_of(a, NULL, kind)) != NULL)
        mu__agent_call_fail(ctx, a, pending, error);
}

/* ---- registering ---- */

static struct mu__msg *make_register(struct mu__ctx *ctx, struct agent *a,
                                    struct mu__agent_request *pending)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASK_REGISTER);

    if (msg == NULL)
        return NULL;
    *(struct mu__task_register *)mu__body(msg) = (struct mu__task_register){
        .token = pending->token,
        .barrier = true,
        .timeout_ms = mu__agent_left_ms(ctx, pending),
        .devices = a->registration.devices,
        .since = a->barriers.since,
        .done = mu__agent_done_floor(a),
        .run = mu__agent_run(a),
        .run_name = mu__view_str(a->job_run.name),
    };
    if (a->registration.devices_buf != NULL)
        msg->backing = mu__buf_ref(a->registration.devices_buf);
    return msg;
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
    mu_error error = {0};

    if (a->is_passive || a->error.code != 0) {
        (void)mu__agent_admits(a, &error);
        mu__agent_complete(call, &error);
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
    end_all(ctx, a, &registering, error);
    if (error != NULL)
        end_all(ctx, a, &registering_all, error);
}

/* ---- errors ---- */

static struct mu__msg *make_report(struct mu__ctx *ctx, struct agent *a,
                                  struct mu__agent_request *pending)
{
    const mu_error *failure = &agent_call_of(pending)->failure;
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASK_REPORT);
    struct mu__task_report *body;

    (void)a;
    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    *body = (struct mu__task_report){
        .token = pending->token,
        .code = (uint32_t)-failure->code,
        .message = mu__view_str(failure->message),
        .task = mu__view_str(failure->task),
    };
    return mu__agent_copy_views(ctx, msg, &body->message, &body->task);
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
    end_all(ctx, a, &reporting, NULL);
}

/* ---- reset ---- */

/* Here it is reset in any case. */
static void fail_reset(struct mu__ctx *ctx, struct agent *a,
                       struct mu__agent_request *pending, const mu_error *error)
{
    a->registration.reset_unreported = true;
    mu__agent_call_fail(ctx, a, pending, error->code == -MU_ECLOSED ? error : NULL);
}

/* That the service does not count it as failed is fine. */
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

/* Not by way of the pump: it is not registered any more. */
static void send_reset(struct mu__ctx *ctx, struct agent *a, struct mu__agent_call *call)
{
    struct mu__msg *msg;

    if (!mu__agent_submit(ctx, a, &call->pending, &resetting, call->call.timeout_ms, 0))
        return;
    msg = mu__msg_new(ctx, MU__TASK_RESET);
    if (msg != NULL)
        ((struct mu__task_reset *)mu__body(msg))->token = call->pending.token;
    if (mu__send(ctx, mu__agent_service(a), msg) != 0)
        fail_reset(ctx, a, &call->pending, &a->error);
}

void mu__agent_call_reset(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call)
{
    mu_error error = {0};

    if (a->error.code == 0) {
        (void)mu_error_set(&error, -MU_EPRECONDITION,
                           "a task is reset from being in error, and this one is not");
        mu__agent_complete(call, &error);
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
    if (next_of(a, NULL, &resetting) == NULL)
        return;
    a->registration.reset_unreported = true;
    end_all(ctx, a, &resetting, NULL);
}

/* ---- leaving ---- */

static struct mu__msg *make_leave(struct mu__ctx *ctx, struct agent *a,
                                 struct mu__agent_request *pending)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASK_LEAVE);

    (void)a;
    if (msg == NULL)
        return NULL;
    *(struct mu__task_leave *)mu__body(msg) = (struct mu__task_leave){
        .token = pending->token,
        .timeout_ms = mu__agent_left_ms(ctx, pending),
    };
    return msg;
}

/* `heard`: the service has said so. */
static void leave(struct mu__ctx *ctx, struct agent *a, bool heard)
{
    mu_error error = {0};

    a->registration.leave_unreported =
        !heard && (a->registration.leave_unreported || a->registration.store != 0);
    (void)mu_error_set(&error, -MU_EPRECONDITION, "this task has left");
    mu__agent_withdraw(ctx, a, &error);
}

static void fill_goodbye(struct agent *a, struct mu__msg *msg)
{
    *(struct mu__task_leave *)mu__body(msg) =
        (struct mu__task_leave){.token = a->requests.token_next++, .now = true};
}

void mu__agent_send_goodbye(struct mu__ctx *ctx, struct agent *a)
{
    struct mu__msg *msg =
        a->hosts.followed == NULL ? NULL : mu__msg_new(ctx, MU__TASK_LEAVE);

    if (msg == NULL)
        return;
    fill_goodbye(a, msg);
    (void)mu__send(ctx, mu__agent_service(a), msg);
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
    fill_goodbye(a, msg);
    msg->from = (mu__pid){MU__NODE_SELF, MU__AGENT};
    msg->to = mu__agent_service(a);
    return msg;
}

/* Whatever the service says of it: the others did not come, say. Then it may not know
 * that this task goes all the same. */
static void answered_leave(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_request *pending,
                           const struct mu__tasks_answer *body, const mu_error *error)
{
    struct mu__agent_call *call = agent_call_of(pending);

    (void)body;
    mu__agent_remove(ctx, a, pending);
    if (error != NULL)
        mu__agent_send_goodbye(ctx, a);
    leave(ctx, a, error == NULL);
    mu__agent_complete(call, error);
}

/* Its time is over, or the task is in error from now on: it leaves all the same. */
static void fail_leave(struct mu__ctx *ctx, struct agent *a,
                       struct mu__agent_request *pending, const mu_error *error)
{
    struct mu__agent_call *call = agent_call_of(pending);
    const mu_error why = *error;

    mu__agent_remove(ctx, a, pending);
    if (why.code == -MU_EDEADLINE && a->error.code == 0) {
        mu__agent_send_goodbye(ctx, a);
        leave(ctx, a, false);
    }
    mu__agent_complete(call, &why);
}

static const struct mu__agent_request_kind leaving = {
    .make_message = make_leave,
    .on_answer = answered_leave,
    .what = "leaving",
    .fail = fail_leave,
    .late = "was not answered",
    .changes = true,
    .is_limited = true,
};

/* It leaves, and hears that it does so in error. */
static void leave_in_error(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_call *call)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_EPRECONDITION, "this task leaves in error: %s: %s",
                       mu_err_name(a->error.code), a->error.message);
    (void)snprintf(error.task, sizeof error.task, "%s", a->error.task);
    a->error = (mu_error){.code = 0};
    mu__agent_send_goodbye(ctx, a);
    leave(ctx, a, false);
    mu__agent_complete(call, &error);
}

void mu__agent_call_leave(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call)
{
    if (a->error.code != 0) {
        leave_in_error(ctx, a, call);
        return;
    }
    if (a->registration.store != 0) {
        (void)mu__agent_submit(ctx, a, &call->pending, &leaving, call->call.timeout_ms,
                               0);
        return;
    }
    leave(ctx, a, false);
    mu__agent_complete(call, NULL);
}

/* ---- queries ---- */

static void name_tasks(const struct mu__agent_request *pending, char *out, size_t size)
{
    static const char *const names[] = {"states", "devices", "wait for", "watch",
                                        "alive of"};
    const struct mu__agent_call *call = agent_call_in(pending);
    bool is_set = call->tasks != NULL && call->tasks[0] != '\0';

    (void)snprintf(out, size, "the query about tasks (%s %.100s)",
                   call->what <= MU__TASKS_ALIVE ? names[call->what] : "?",
                   is_set ? call->tasks : "all");
}

static struct mu__msg *make_tasks(struct mu__ctx *ctx, struct agent *a,
                                 struct mu__agent_request *pending)
{
    const struct mu__agent_call *call = agent_call_of(pending);
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASKS_GET);
    struct mu__tasks_get *body;

    (void)a;
    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    *body = (struct mu__tasks_get){
        .token = pending->token,
        .what = call->what,
        .tasks = mu__view_str(call->tasks),
        .version = call->version,
        .timeout_ms = mu__agent_left_ms(ctx, pending),
    };
    return mu__agent_copy_views(ctx, msg, &body->tasks, NULL);
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
