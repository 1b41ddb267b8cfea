/* Arrivals at barriers of the coordination service. */
#ifndef MU_TESTS_SERVICE_BARRIERS_H
#define MU_TESTS_SERVICE_BARRIERS_H

#include "tests/support/service/service.h"

#include "actors/coordination/barriers/barrier_table.h"

#include <time.h>

/* One arrival, with a token of its own. */
static inline uint64_t arrive(struct service_agent *agent, const char *name,
                              uint64_t generation, const char *tasks, uint64_t timeout_ms)
{
    TELL(agent, BARRIER_ARRIVE, barrier_arrive, .token = ++agent->token,
         .name = mu__view_str(name), .generation = generation,
         .tasks = mu__view_str(tasks), .timeout_ms = timeout_ms);
    return agent->token;
}

/* The same one again. */
static inline void arrive_again(struct service_agent *agent, uint64_t token,
                                const char *name, uint64_t generation)
{
    TELL(agent, BARRIER_ARRIVE, barrier_arrive, .token = token,
         .name = mu__view_str(name), .generation = generation);
}

static inline uint64_t cancel(struct service_agent *agent, const char *name,
                              uint64_t generation)
{
    TELL(agent, BARRIER_CANCEL, barrier_cancel, .token = ++agent->token,
         .name = mu__view_str(name), .generation = generation);
    return agent->token;
}

/* Three tasks that are there. */
struct three {
    struct service *s;
    struct service_agent *w0;
    struct service_agent *w1;
    struct service_agent *w2;
};

#define THREE(...) \
    three_begin(   \
        &(struct service_options){.given = true, .tasks = "worker:0-2", __VA_ARGS__})

static inline struct three three_begin(const struct service_options *options)
{
    struct three t = {.s = service_begin(options)};

    t.w0 = service_task(t.s, "worker", 0);
    t.w1 = service_task(t.s, "worker", 1);
    t.w2 = service_task(t.s, "worker", 2);
    return t;
}

#endif
