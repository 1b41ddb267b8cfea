/* This task's registration with the service. */
#include "actors/agent/call_handlers.h"

#include "actors/keep.h"

#include <string.h>

void mu__agent_end_session(struct agent *a)
{
    a->registration.registered = false;
    a->registration.token = 0;
    a->requests.in_flight_bytes = 0;
    a->registration.session++;
    mu__agent_show_state(a);
}

static void send_earlier_reset(struct mu__ctx *ctx, struct agent *a)
{
    const struct mu__task_reset body = {.token = a->requests.token_next++};

    (void)mu__send_body(ctx, mu__agent_service(a), MU__TASK_RESET, &body, sizeof body);
}

/* Tell the service of a reset or leave that it may not know of, before each attempt to
 * register. Messages keep their order, so that once it has registered the task it has
 * these, too. */
static void report_earlier_end(struct mu__ctx *ctx, struct agent *a)
{
    if (a->registration.reset_unreported)
        send_earlier_reset(ctx, a);
    if (a->registration.leave_unreported)
        mu__agent_send_goodbye(ctx, a);
}

/* Whether the host has another store than the one that this task has used keys or
 * barriers of: these are lost, and the agent enters the error state. */
static bool has_lost_store(struct mu__ctx *ctx, struct agent *a)
{
    mu_error error = {0};

    if (a->registration.store == 0 || a->registration.store == a->hosts.store ||
        !a->registration.used)
        return false;
    (void)mu_error_set(&error, -MU_EABORTED,
                       "the coordination service at %s was restarted, and has lost the "
                       "keys and barriers that this task had used",
                       a->hosts.followed->task);
    mu__agent_enter_error(ctx, a, &error);
    return true;
}

struct mu__msg *mu__agent_make_registration(struct mu__ctx *ctx, struct agent *a,
                                            uint64_t token, bool barrier,
                                            uint64_t timeout_ms)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASK_REGISTER);

    if (msg == NULL)
        return NULL;
    *(struct mu__task_register *)mu__body(msg) = (struct mu__task_register){
        .token = token,
        .barrier = barrier,
        .timeout_ms = timeout_ms,
        .devices = a->registration.devices,
        .since = a->barriers.store == a->hosts.store ? a->barriers.since : 0,
        .done = mu__agent_done_floor(a),
        .run = mu__agent_run(a),
        .run_name = mu__view_str(a->job_run.name),
    };
    if (a->registration.devices_buf != NULL)
        msg->backing = mu__buf_ref(a->registration.devices_buf);
    return msg;
}

void mu__agent_register(struct mu__ctx *ctx, struct agent *a)
{
    struct mu__msg *msg;

    if (a->hosts.followed == NULL || a->registration.registered ||
        !a->registration.is_requested || a->error.code != 0 || has_lost_store(ctx, a))
        return;
    report_earlier_end(ctx, a);
    a->registration.sent_ms = mu__now_ms(ctx);
    if (a->registration.token == 0)
        a->registration.token = a->requests.token_next++;
    msg = mu__agent_make_registration(ctx, a, a->registration.token, false, 0);
    (void)mu__send(ctx, mu__agent_service(a), msg);
}

/* The office has names by this service. */
static void report_session(struct mu__ctx *ctx, uint32_t node)
{
    const struct mu__service_session body = {node};

    (void)mu__send_body(ctx, (mu__pid){MU__NODE_SELF, MU__ACTORS}, MU__SERVICE_SESSION,
                        &body, sizeof body);
}

static void accept_registration(struct mu__ctx *ctx, struct agent *a,
                                const struct mu__tasks_answer *body)
{
    a->registration.token = 0;
    a->registration.registered = true;
    a->registration.reset_unreported = false;
    a->registration.leave_unreported = false;
    a->hosts.heard_ms = mu__now_ms(ctx);
    a->registration.store = a->hosts.store;
    if (a->barriers.store != a->registration.store) {
        mu__agent_barriers_forget(a);
        a->barriers.since = body->since;
    }
    a->barriers.store = a->registration.store;
    mu__agent_note_run(a, body->run);
    a->registration.refusal[0] = '\0';
    a->registration.session++;
    a->requests.in_flight_bytes = 0;
    mu__agent_show_state(a);
    mu__log(ctx, MU__LOG_INFO, "registered with %s", a->hosts.followed->task);
    mu__agent_report_registered(ctx, a, NULL);
    report_session(ctx, mu__agent_service(a).node);
    mu__agent_preempt_session(ctx, a);
    mu__agent_pump_all(ctx, a);
}

/* The agent tries again at a tick; errors that no retry mends complete the program's
 * REGISTER calls. ABORTED: the service counts the task as failed, since it was away too
 * long or was restarted. The agent enters the error state, so that the program learns of
 * it and may reset the task. */
static void note_registration_refusal(struct mu__ctx *ctx, struct agent *a,
                                      const mu_error *error)
{
    a->registration.token = 0;
    if (strcmp(a->registration.refusal, error->message) != 0)
        mu__log(ctx, MU__LOG_WARN, "is not registered by %s: %s", a->hosts.followed->task,
                error->message);
    mu__view_copy(mu__view_str(error->message), a->registration.refusal,
                  sizeof a->registration.refusal);
    if (error->code == -MU_EABORTED)
        mu__agent_enter_error(ctx, a, error);
    else if (error->code != -MU_EUNAVAILABLE && error->code != -MU_EINTERNAL)
        mu__agent_report_registered(ctx, a, error);
}

void mu__agent_register_answered(struct mu__ctx *ctx, struct agent *a,
                                 const struct mu__tasks_answer *body)
{
    mu_error error;

    if (body->code == 0) {
        accept_registration(ctx, a, body);
        return;
    }
    error = mu__agent_error_of(body->code, body->message, body->task, body->error_kind);
    note_registration_refusal(ctx, a, &error);
}

void mu__agent_withdraw(struct mu__ctx *ctx, struct agent *a, const mu_error *error)
{
    const mu_error saved = *error;

    a->registration.is_requested = false;
    a->registration.used = false;
    a->registration.store = 0;
    a->registration.refusal[0] = '\0';
    mu__agent_preempt_forget(a);
    mu__agent_end_session(a);
    mu__agent_fail_all(ctx, a, &saved, false);
}
