/* This task's registration with the service. */
#include "actors/agent/call_handlers.h"

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
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASK_RESET);
    struct mu__task_reset *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = a->requests.token_next++;
    (void)mu__send(ctx, mu__agent_service(a), msg);
}

/* What the service does not know of the time before, again with each try: who is
 * registered has been heard, and this before it. */
static void report_earlier_end(struct mu__ctx *ctx, struct agent *a)
{
    if (a->registration.reset_unreported)
        send_earlier_reset(ctx, a);
    if (a->registration.leave_unreported)
        mu__agent_send_goodbye(ctx, a);
}

/* Its keys and barriers are gone, and the program relies on some. */
static bool has_lost_store(struct mu__ctx *ctx, struct agent *a)
{
    mu_error error = {0};

    if (a->registration.store == 0 || a->registration.store == a->hosts.store)
        return false;
    if (!a->registration.used)
        return false;
    (void)mu_error_set(&error, -MU_EABORTED,
                       "the coordination service at %s was restarted, and has lost the "
                       "keys and barriers that this task had used",
                       a->hosts.followed->task);
    mu__agent_enter_error(ctx, a, &error);
    return true;
}

void mu__agent_register(struct mu__ctx *ctx, struct agent *a)
{
    struct mu__task_register *body;
    struct mu__msg *msg;

    if (a->hosts.followed == NULL || a->registration.registered ||
        !a->registration.is_requested || a->error.code != 0 || has_lost_store(ctx, a))
        return;
    report_earlier_end(ctx, a);
    a->registration.sent_ms = mu__now_ms(ctx);
    msg = mu__msg_new(ctx, MU__TASK_REGISTER);
    if (msg == NULL)
        return;
    if (a->registration.token == 0)
        a->registration.token = a->requests.token_next++;
    body = mu__body(msg);
    *body = (struct mu__task_register){
        .token = a->registration.token,
        .devices = a->registration.devices,
        .since = a->barriers.store == a->hosts.store ? a->barriers.since : 0,
        .done = mu__agent_done_floor(a),
        .run = mu__agent_run(a),
        .run_name = mu__view_str(a->job_run.name),
    };
    if (a->registration.devices_buf != NULL)
        msg->backing = mu__buf_ref(a->registration.devices_buf);
    (void)mu__send(ctx, mu__agent_service(a), msg);
}

static void registered(struct mu__ctx *ctx, struct agent *a,
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
    mu__agent_preempt_session(ctx, a);
    mu__agent_pump_all(ctx, a);
}

/* Asked again at a tick; who waits for it hears of what will not pass by itself. A task
 * that must be reset first, since it failed while it was away or was restarted, is in
 * error here, too: so its program hears of it, and may reset it. */
static void refused(struct mu__ctx *ctx, struct agent *a, const mu_error *error)
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
        registered(ctx, a, body);
        return;
    }
    error = mu__agent_error_of(body->code, body->message, body->task, body->error_kind);
    refused(ctx, a, &error);
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
