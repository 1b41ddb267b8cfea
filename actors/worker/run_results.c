/* RESULT messages: of runs, and of closures that could not be run. */
#include "actors/keep.h"
#include "actors/worker/internal.h"

enum { QUICK_US = 10 }; /* a shorter run is reported as one of no time */

int mu__worker_send_refusal(struct mu__ctx *ctx, mu__pid to,
                            const struct mu__run *request, int code, const char *text)
{
    const struct mu__result body = {
        .closure = request->closure,
        .attempt = request->attempt,
        .code = (uint32_t)-code,
        .error_kind = code == -MU_ENOTFOUND ? MU_ERROR_FUNCTION : MU_ERROR_OTHER,
        .message = mu__view_str(text == NULL ? mu_strerror(code) : text),
    };

    return mu__send_body(ctx, to, MU__RESULT, &body, sizeof body);
}

void mu__worker_fill_error(struct mu__result *body, const struct mu_run *run)
{
    const mu_error *failure = run->failure;
    const char *text = failure == NULL ? run->text : failure->message;

    body->code = (uint32_t)-run->code;
    body->error_kind = run->began ? MU_ERROR_FUNCTION : MU_ERROR_OTHER;
    if (text == NULL || text[0] == '\0')
        text = mu_strerror(run->code);
    body->message = mu__view_str(text);
    body->detail = mu__run_detail(run);
    if (run->extra != NULL)
        body->error_data =
            (struct mu__view){run->extra->error_data, run->extra->error_data_size};
    if (failure == NULL || failure->code != run->code)
        return;
    body->error_kind = (uint32_t)failure->kind;
    body->origin = mu__view_str(failure->task);
}

static int send_run_result(struct mu__ctx *ctx, struct mu_run *run)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RESULT);
    struct mu__result *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    body->closure = run->closure;
    body->attempt = run->attempt;
    if (run->work.ran_us >= QUICK_US)
        body->ran_us = run->work.ran_us;
    if (run->code != 0) {
        mu__worker_fill_error(body, run);
        return mu__send_borrowed(ctx, run->requester, msg);
    }
    if (run->result_buf != NULL) {
        body->result = run->result_packed;
        msg->backing = run->result_buf;
        run->result_buf = NULL;
    }
    return mu__send(ctx, run->requester, msg);
}

/* A RESULT that cannot be sent because its chief is gone is dropped. */
void mu__worker_send_outcome(struct mu__ctx *ctx, struct mu_run *run)
{
    if (send_run_result(ctx, run) == -MU_ENOMEM)
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a result is lost");
}
