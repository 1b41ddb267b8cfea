/* The public calls about clocks: checks, then one call to the variables actor. */
#include "api/internal.h"

#include "actors/variables/variables.h"
#include "runtime/message/arguments.h"

#include "muster/clock.h"

#include <stdlib.h>
#include <string.h>

struct mu_clock {
    mu_node *node; /* held */
    uint64_t member;
};

static int run_clock_call(mu_node *node, struct mu__clock_call *call, mu_error *ret_error)
{
    int rv = mu__node_call(node, MU__VARIABLES, &call->call, NULL);

    if (rv == 0)
        return 0;
    if (call->call.error.code == 0)
        return mu_error_set(ret_error, rv, "a clock: %s", mu_strerror(rv));
    if (ret_error != NULL)
        *ret_error = call->call.error;
    return rv;
}

static int check_clock_name(const mu_node *node, const char *name, mu_error *ret_error)
{
    size_t size = strlen(name);

    if (size == 0 || size > MU__VARIABLE_NAME_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "clock %.32s: the name has %zu bytes: expected 1 to %d", name,
                            size, MU__VARIABLE_NAME_MAX);
    if (node->ps_count == 0)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "clock %s: the cluster has no parameter server (ps)", name);
    return 0;
}

int mu_clock_open(mu_node *node, const char *name, uint64_t staleness, int64_t timeout_ms,
                  mu_error *ret_error, mu_clock **ret_clock)
{
    MU__REQUIRE(ret_error, node, name, ret_clock);

    struct mu__clock_call call = {
        .call = {.operation = MU__CLOCK_OPEN, .timeout_ms = timeout_ms},
        .name = name,
        .staleness = staleness,
        .servers_count = (uint32_t)node->ps_count,
    };
    mu_clock *clock;
    int rv = check_clock_name(node, name, ret_error);

    if (rv != 0)
        return rv;
    clock = malloc(sizeof *clock);
    if (clock == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "clock %s: out of memory", name);
    rv = run_clock_call(node, &call, ret_error);
    if (rv != 0) {
        free(clock);
        return rv;
    }
    *clock = (mu_clock){node, call.member};
    mu__node_ref(node);
    *ret_clock = clock;
    return 0;
}

static struct mu__clock_call make_clock_call(const mu_clock *clock, int operation,
                                             int64_t timeout_ms)
{
    return (struct mu__clock_call){
        .call = {.operation = operation, .timeout_ms = timeout_ms},
        .member = clock->member,
    };
}

void mu_clock_close(mu_clock *clock)
{
    struct mu__clock_call call;

    if (clock == NULL)
        return;
    call = make_clock_call(clock, MU__CLOCK_CLOSE, -1);
    (void)run_clock_call(clock->node, &call, NULL);
    mu__node_unref(clock->node);
    free(clock);
}

int mu_clock_tick(mu_clock *clock, int64_t timeout_ms, mu_error *ret_error,
                  uint64_t *ret_step)
{
    MU__REQUIRE(ret_error, clock);

    struct mu__clock_call call = make_clock_call(clock, MU__CLOCK_TICK, timeout_ms);
    int rv = run_clock_call(clock->node, &call, ret_error);

    if (rv == 0 && ret_step != NULL)
        *ret_step = call.step;
    return rv;
}

int mu_clock_minimum(mu_clock *clock, int64_t timeout_ms, mu_error *ret_error,
                     uint64_t *ret_minimum)
{
    MU__REQUIRE(ret_error, clock, ret_minimum);

    struct mu__clock_call call = make_clock_call(clock, MU__CLOCK_MINIMUM, timeout_ms);
    int rv = run_clock_call(clock->node, &call, ret_error);

    if (rv == 0)
        *ret_minimum = call.minimum;
    return rv;
}
