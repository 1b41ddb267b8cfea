/* Answers: to a call of this node, or in a message to that of the caller. */
#include "actors/keeper/hooks.h"
#include "actors/user/actions.h"
#include "actors/user/streams/stream_actions.h"

#include "actors/packing.h"
#include "runtime/message/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void mu__answer_error(const struct office *office, const mu_actor_type *type,
                      const char *method, int ran, mu_error *error)
{
    error->kind = MU_ERROR_ACTOR;
    error->ran = ran;
    (void)snprintf(error->task, sizeof error->task, "%s", office->config.task);
    (void)snprintf(error->function, sizeof error->function, "%s%s%s",
                   type == NULL ? "" : type->name, type == NULL ? "" : ".",
                   method == NULL ? "" : method);
}

mu_error *mu__error_copy(const mu_error *error)
{
    mu_error *copy = malloc(sizeof *copy);

    if (copy != NULL)
        *copy = *error;
    return copy;
}

static int pack_answer(struct mu__actor_answer *body, struct mu__msg *msg,
                       const mu_value *value, const mu_error *error)
{
    if (error != NULL) {
        body->code = (uint32_t)-error->code;
        body->error_kind = (uint32_t)error->kind;
        body->ran = (uint32_t)error->ran;
        body->task = mu__view_str(error->task);
        body->function = mu__view_str(error->function);
        body->message = mu__view_str(error->message);
        return 0;
    }
    if (value == NULL)
        return 0;
    msg->backing = mu__pack_to_send(value, true, &body->result);
    return msg->backing == NULL ? -MU_ENOMEM : 0;
}

/* It is packed when it is sent, so the error may be on the stack. */
static void answer_remote(struct office *office, const struct answer_to *to,
                          const mu_value *value, const mu_error *error)
{
    struct mu__msg *msg = mu__msg_new(&office->ctx, MU__ACTOR_ANSWER);
    struct mu__actor_answer *body;
    mu_error no_room;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->call = to->call;
    if (pack_answer(body, msg, value, error) != 0) {
        (void)mu_error_set(&no_room, -MU_ENOMEM, "no memory for the answer");
        mu__answer_error(office, NULL, NULL, MU_RAN_YES, &no_room);
        (void)pack_answer(body, msg, NULL, &no_room);
    }
    (void)mu__send(&office->ctx, (mu__pid){to->node, MU__ACTORS}, msg);
}

/* The value may be none, here as from another node: an error is the answer instead. */
__attribute__((cold)) static void refuse_value(struct office *office,
                                               const struct answer_to *to, int code)
{
    mu_error error;

    (void)mu_error_set(&error, code, "%s",
                       code == -MU_ERANGE
                           ? "the answer is too large or too deep"
                           : "an answer cannot have references to remote or per-worker "
                             "values, nor objects");
    mu__answer_error(office, NULL, NULL, MU_RAN_YES, &error);
    mu__answer(office, to, NULL, &error);
}

struct pending_call *mu__call_answered(const struct office *office, uint64_t number)
{
    struct pending_call *call = mu__map_get(&office->calls, number);

    return call != NULL && call->kept.way == NULL ? call
                                                  : mu__kept_call_find(office, number);
}

void mu__answer(struct office *office, const struct answer_to *to, mu_value *value,
                const mu_error *error)
{
    struct pending_call *call;
    uint32_t bytes;
    int rv = to->call == 0 || value == NULL ? 0 : mu__mail_measure(value, &bytes);

    if (rv != 0) {
        mu_value_free(value);
        refuse_value(office, to, rv);
        return;
    }
    if (to->call != 0 && to->node == MU__NODE_SELF) {
        call = mu__call_answered(office, to->call);
        if (call != NULL) {
            mu__call_end(office, call, value, error);
            return;
        }
        office->late_answers++;
    } else if (to->call != 0) {
        answer_remote(office, to, value, error);
    } else if (error != NULL) {
        mu__log(&office->ctx, MU__LOG_WARN, "a message that nobody waits for: %s: %s",
                error->function, error->message);
    }
    mu_value_free(value);
}

void mu__answer_refused(struct office *office, struct mail *mail,
                        const mu_actor_type *type, int code, const char *words)
{
    mu_error error;

    (void)mu_error_set(&error, code, "%s", words);
    mu__answer_error(office, type,
                     mail->kind == MAIL_START ? "start"
                     : mail->method == NULL   ? NULL
                                              : mail->method->name,
                     MU_RAN_NO, &error);
    if (code == -MU_ENOTFOUND)
        error.kind = MU__ERROR_NO_ACTOR;
    mu__answer(office, &mail->answer, NULL, &error);
    mu__mail_free(office, mail);
}
