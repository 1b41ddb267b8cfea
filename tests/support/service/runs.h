/* A service over a store that lasts, and runs of its job. */
#ifndef MU_TESTS_SERVICE_RUNS_H
#define MU_TESTS_SERVICE_RUNS_H

#include "actors/coordination/job_runs.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/store/journal.h"
#include "actors/coordination/tasks.h"
#include "tests/support/service/service.h"

static const char *wanted; /* the name that hosts are started for */

static struct mu__own_run own; /* what their agents were told */

static inline void configure(struct service_host *host,
                             struct mu__coordination_config *config)
{
    (void)host;
    config->run = wanted;
    config->own_run = &own;
}

static inline int forget(void **state)
{
    (void)state;
    wanted = NULL;
    own = (struct mu__own_run){0};
    return 0;
}

struct job {
    struct service *s;
    struct service_agent *chief;
    struct service_agent *w0;
    struct service_agent *w1;
};

static inline struct job begin(void)
{
    struct job job = {.s = SERVICE(.store = &mu__store_journal, .configure = configure)};

    job.chief = service_task(job.s, "chief", 0);
    job.w0 = service_task(job.s, "worker", 0);
    job.w1 = service_task(job.s, "worker", 1);
    return job;
}

static inline const struct mu__store_run *present(const struct job *job)
{
    return mu__coord_run(service_state(job->s, 0));
}

/* The host's process is another one; its agent is, too. */
static inline void restart_host(struct job *job)
{
    service_crash(job->s, 0);
    service_start(job->s, 0);
    job->chief->incarnation = job->s->hosts[0].incarnation;
    job->s->hosts[0].at_home = job->chief;
    job->chief->since = 0;
    service_forget_said(job->chief);
}

static inline void restart_task(struct service_agent *agent)
{
    if (agent->home < 0)
        service_agent_restart(agent);
    expect_ok(agent, service_register(agent, false, 0));
    agent->beats = true;
}

/* A process that lives finds its host again. */
static inline void come_back(struct service_agent *agent)
{
    service_link_up(agent, 0);
    expect_ok(agent, service_register(agent, false, 0));
}

/* All processes are new. */
static inline void restart_all(struct job *job)
{
    restart_host(job);
    restart_task(job->chief);
    restart_task(job->w0);
    restart_task(job->w1);
}

static inline uint64_t end_run(struct service_agent *agent, int code, const char *message)
{
    TELL(agent, RUN_END, run_end, .token = ++agent->token, .code = (uint32_t)-code,
         .message = mu__view_str(message));
    return agent->token;
}

static inline uint64_t arrive(struct service_agent *agent, const char *name,
                              uint64_t timeout_ms)
{
    TELL(agent, BARRIER_ARRIVE, barrier_arrive, .token = ++agent->token,
         .name = mu__view_str(name), .timeout_ms = timeout_ms);
    return agent->token;
}

static inline void expect_passed(struct service_agent *agent, uint64_t token, int code)
{
    const struct service_said *said = service_answer(agent, MU__BARRIER_PASSED, token);

    assert_non_null(said);
    assert_int_equal(
        ((const struct mu__barrier_passed *)(const void *)said->msg->body)->code, -code);
}

#define expect_stays(agent, token) \
    assert_null(service_answer(agent, MU__BARRIER_PASSED, token))

static inline void pass(struct job *job, const char *name)
{
    uint64_t chief = arrive(job->chief, name, 0);
    uint64_t w0 = arrive(job->w0, name, 0);

    expect_stays(job->chief, chief);
    expect_stays(job->w0, w0);
    expect_passed(job->w1, arrive(job->w1, name, 0), 0);
    expect_passed(job->w0, w0, 0);
    expect_passed(job->chief, chief, 0);
}

static inline uint64_t put(struct service_agent *agent, const char *key,
                           const char *value)
{
    TELL(agent, KEY_PUT, key_put, .token = ++agent->token, .key = mu__view_str(key),
         .value = mu__view_str(value), .flags = MU__PUT_OVERWRITE);
    assert_non_null(service_answer(agent, MU__KEY_DONE, agent->token));
    return agent->token;
}

static inline bool has_key(const struct job *job, const char *key)
{
    struct mu__key_value entry;

    return mu__coord_keys_get_own((struct coordination *)service_state(job->s, 0), key,
                                  &entry);
}

static inline uint64_t count_below(const struct job *job, const char *directory)
{
    uint64_t count;
    uint64_t bytes;

    mu__coord_keys_measure(service_state(job->s, 0), mu__view_str(directory), &count,
                           &bytes);
    return count;
}

static inline void preempt(struct job *job)
{
    struct service_agent *agents[] = {job->chief, job->w0, job->w1};

    TELL(job->w0, PREEMPT_NOTICE, preempt_notice, .token = ++job->w0->token,
         .reason = mu__view_str("maintenance"), .grace_ms = 30000);
    for (int i = 0; i < 3; i++)
        TELL(agents[i], PREEMPT_STEP, preempt_step, .round = 1, .counts = true,
             .step = 28);
    assert_non_null(service_next(job->w1, MU__PREEMPT_STOP));
}

#endif
