/* The record of a preemption round in the store, and the messages of a round. */
#include "actors/coordination/internal.h"
#include "actors/coordination/job_runs.h"
#include "actors/packing.h"

#include "actors/coordination/keys/keys.h"
#include "actors/coordination/preemption.h"
#include "actors/coordination/replies.h"
#include "muster/coordination.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the record in the store ----
 *
 * "PHASE ROUND STEP CODE GRACE_MS BY TOKEN TASK REASON": the reason is the rest. */

void mu__coord_preempt_write_record(struct mu__ctx *ctx, struct coordination *c)
{
    const struct coord_preempt *p = c->preempt;
    char key[MU__RUN_KEY_MAX];
    char text[900];
    int size;
    int rv;

    if (!c->config.store->lasting)
        return;
    (void)mu__coord_run_key(c, mu__coord_preempt_record_name, key);
    size = snprintf(text, sizeof text,
                    "%d %" PRIu64 " %" PRIu64 " %d %" PRIu64 " %" PRIu64 " %" PRIu64
                    " %s %s",
                    (int)p->phase, p->round, p->step, -p->error.code, p->grace_ms, p->by,
                    p->token, p->task, p->reason);
    rv = mu__coord_keys_put_own(ctx, c, key, text, (size_t)size);
    if (rv != 0)
        mu__log(ctx, MU__LOG_ERROR,
                "round %" PRIu64 " of preemption cannot be stored: %s", p->round,
                mu_strerror(rv));
}

bool mu__coord_preempt_read_record(struct coord_preempt *p, struct mu__view value)
{
    char text[900];
    int phase;
    int code;
    int used = 0;

    mu__view_copy(value, text, sizeof text);
    if (sscanf(text,
               "%d %" SCNu64 " %" SCNu64 " %d %" SCNu64 " %" SCNu64 " %" SCNu64
               " %63s %n",
               &phase, &p->round, &p->step, &code, &p->grace_ms, &p->by, &p->token,
               p->task, &used) != 8 ||
        phase < ROUND_EARLY || phase > ROUND_OVER || code < 0 || code > 255)
        return false;
    p->phase = (enum round_phase)phase;
    (void)snprintf(p->reason, sizeof p->reason, "%.511s", text + used);
    if (code != 0)
        (void)mu_error_set(&p->error, -code,
                           "round %" PRIu64 " of preemption came to nothing: %s",
                           p->round, mu_strerror(code));
    return true;
}

/* ---- messages ---- */

uint64_t mu__coord_preempt_grace_left(const struct coord_preempt *p, uint64_t now_ms)
{
    uint64_t elapsed_ms = now_ms - p->noticed_ms;

    return elapsed_ms >= p->grace_ms ? 0 : p->grace_ms - elapsed_ms;
}

void mu__coord_preempt_send_request(struct mu__ctx *ctx, struct coordination *c,
                                    uint32_t node)
{
    const struct coord_preempt *p = c->preempt;
    struct mu__msg *msg = mu__msg_new(ctx, MU__PREEMPT_REQUEST);
    struct mu__preempt_request *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->round = p->round;
    body->grace_ms = mu__coord_preempt_grace_left(p, mu__coord_clock(ctx, c));
    body->task = mu__view_str(p->task);
    body->reason = mu__view_str(p->reason);
    mu__coord_back(msg, &body->task, &body->reason);
    mu__coord_send(ctx, c, node, msg);
}

void mu__coord_preempt_send_stop(struct mu__ctx *ctx, struct coordination *c,
                                 uint32_t node, uint64_t round, uint64_t step,
                                 const mu_error *error)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__PREEMPT_STOP);
    struct mu__preempt_stop *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->round = round;
    body->step = step;
    if (error->code != 0) {
        body->code = (uint32_t)-error->code;
        body->message = mu__view_str(error->message);
        mu__coord_back(msg, &body->message, NULL);
    }
    mu__coord_send(ctx, c, node, msg);
}

void mu__coord_preempt_send_outcome(struct mu__ctx *ctx, struct coordination *c,
                                    uint32_t node)
{
    const struct coord_preempt *p = c->preempt;

    mu__coord_preempt_send_stop(ctx, c, node, p->round, p->step, &p->error);
}

void mu__coord_preempt_answer_notices(struct mu__ctx *ctx, struct coordination *c)
{
    const struct coord_preempt *p = c->preempt;

    for (struct preempt_notice *at = p->notices; at != NULL; at = at->next) {
        if (!at->answered && at->task->link.up &&
            at->task->incarnation == at->incarnation)
            mu__coord_answer(ctx, c, at->task->link.node, at->token,
                             p->error.code == 0 ? NULL : &p->error);
        at->answered = true;
    }
}

void mu__coord_preempt_forget_notices(struct coord_preempt *p)
{
    struct preempt_notice *next;

    for (struct preempt_notice *at = p->notices; at != NULL; at = next) {
        next = at->next;
        free(at);
    }
    p->notices = NULL;
    p->notices_count = 0;
    p->notices_due_ms = UINT64_MAX;
}
