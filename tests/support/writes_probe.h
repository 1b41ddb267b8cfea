/* The worker of tests of variables: it hears that the writes of a run were sent, once for
 * each run. */
#ifndef MUSTER_TESTS_SUPPORT_WRITES_PROBE_H
#define MUSTER_TESTS_SUPPORT_WRITES_PROBE_H

#include "actors/messages.h"
#include "actors/variables/effects.h"
#include "actors/worker/function_run.h"
#include "tests/support/test.h"

struct writes {
    struct mu_run run; /* first: the actors know it by that */
    bool sent;
};

static inline void on_sent(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__effects_sent *body = mu__body(msg);
    struct writes *writes = (struct writes *)body->run;

    (void)ctx;
    (void)state;
    assert_false(writes->sent);
    writes->sent = true;
}

static const struct mu__handler probe_handlers[] = {{MU__EFFECTS_SENT, on_sent}};

static const struct mu__behavior probe = {
    .name = "probe",
    .state_size = 1,
    .handlers = probe_handlers,
    .handlers_count = 1,
};

#endif
