/* Tasks of the coordination service. */
#ifndef MU_TESTS_SERVICE_TASKS_H
#define MU_TESTS_SERVICE_TASKS_H

#include "tests/support/service/service.h"

/* What one task sees of another: "connected". */
static inline void expect_state(struct service_agent *agent, const char *task,
                                const char *state)
{
    uint64_t token = service_tasks_get(agent, MU__TASKS_STATES, task, 0, 0);
    mu_value *states = service_content(agent, token);
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(mu_value_at(states, 0), "state"), &text,
                              &size);
    assert_string_equal(text, state);
    mu_value_free(states);
    service_take(agent, MU__TASKS_ANSWER, token);
}

#endif
