#include "tests/sim/swarm/swarm.h"

#include <stdio.h>

enum {
    CALM_MS = 25 * 1000, /* until what is under way is answered */
    SETTLED_MS = 8 * 1000,
    RELISTED_MS = 8 * 1000 /* until all have learned who is where, and are linked */
};

void swarm_calm_down(struct swarm *run)
{
    struct sim *sim = run->cluster->sim;

    run->calm = true;
    for (unsigned i = 0; i < run->programs_count; i++)
        if (runs(&run->programs[i]))
            swarm_end_locking(&run->programs[i]);
    sim_heal(sim);
    if (run->plan.changes)
        cluster_changing_end(&run->changing);
    swarm_end_faults(run);
    swarm_wait(run, "what was under way at the end", CALM_MS);
    sim_run_until(sim,
                  sim_now_ms(sim) + SETTLED_MS + (run->plan.changes ? RELISTED_MS : 0));
}

/* What a call of everybody brings, one after another posted, all waited for. */
static void expect_all(struct swarm *run, struct cluster_call *const *calls,
                       const char *what)
{
    for (unsigned i = 0; i < run->programs_count && !is_broken(run); i++) {
        int code = calls[i] == NULL ? 0 : cluster_wait(calls[i]);

        if (code != 0)
            cluster_break(run->cluster, "%s: %s of %s: %s: %s", "at the end", what,
                          run->programs[i].task->name, mu_err_name(code),
                          calls[i]->of.call.error.message);
    }
}

/* Of two processes that may play a task one does. */
static bool is_listed(const struct swarm_program *program)
{
    return !is_changing(program) ||
           cluster_changing_lists(&program->run->changing, program->task);
}

/* One may hear only now that its task is in error: by what became of the process that
 * played it before, or since nobody has heard that it left. */
static bool may_hear_of_error(const struct swarm_program *program)
{
    return is_changing(program) || !agent_of(program)->registration.is_requested;
}

static void newcomers_register(struct swarm *run)
{
    for (unsigned i = 0; i < run->programs_count; i++)
        if (is_listed(&run->programs[i]) && may_hear_of_error(&run->programs[i]))
            (void)cluster_wait(cluster_agent(run->programs[i].task,
                                             CALL(CALL_OF(MU__AGENT_REGISTER, 10000))));
}

static void everybody_registers(struct swarm *run)
{
    struct cluster_call *calls[TASKS_MAX] = {NULL};

    newcomers_register(run);
    for (unsigned i = 0; i < run->programs_count; i++)
        if (is_listed(&run->programs[i]) && agent_of(&run->programs[i])->error.code != 0)
            calls[i] = cluster_agent(run->programs[i].task,
                                     CALL(CALL_OF(MU__AGENT_RESET, 5000)));
    expect_all(run, calls, "reset");
    for (unsigned i = 0; i < run->programs_count; i++)
        if (is_listed(&run->programs[i]))
            calls[i] = cluster_agent(run->programs[i].task,
                                     CALL(CALL_OF(MU__AGENT_REGISTER, 10000)));
    expect_all(run, calls, "registering");
}

static void everybody_puts(struct swarm *run)
{
    struct cluster_call *calls[TASKS_MAX] = {NULL};
    char key[32];

    for (unsigned i = 0; i < run->programs_count; i++) {
        (void)snprintf(key, sizeof key, "f/%u", i);
        if (!is_listed(&run->programs[i]))
            continue;
        calls[i] =
            cluster_key(run->programs[i].task, &(mu_kv_request){.operation = MU_KV_PUT,
                                                                .key = key,
                                                                .value = "1",
                                                                .size = 1,
                                                                .timeout_ms = 5000});
    }
    expect_all(run, calls, "a put");
}

static void everybody_meets(struct swarm *run)
{
    struct cluster_call *calls[TASKS_MAX] = {NULL};

    for (unsigned i = 0; i < run->programs_count; i++)
        if (run->takes_part[0][i] && is_listed(&run->programs[i]))
            calls[i] = cluster_agent(run->programs[i].task,
                                     CALL(CALL_OF(MU__AGENT_BARRIER, 20000),
                                          .name = "the last"));
    expect_all(run, calls, "the last barrier");
}

void swarm_check_end(struct swarm *run)
{
    int64_t numbers[ALL_KEYS];

    for (unsigned i = 0; i < run->programs_count; i++) {
        if (!is_listed(&run->programs[i]))
            continue;
        if (run->programs[i].life == 0 && run->programs[i].task->runs)
            swarm_begin_process(&run->programs[i]);
        if (!runs(&run->programs[i]))
            cluster_break(run->cluster, "%s does not run at the end",
                          run->programs[i].task->name);
    }
    if (!is_broken(run))
        everybody_registers(run);
    if (!is_broken(run))
        everybody_puts(run);
    if (!is_broken(run))
        everybody_meets(run);
    if (!is_broken(run))
        swarm_read_keys(run, numbers);
    if (!is_broken(run))
        swarm_check_watches(run, numbers);
    if (!is_broken(run))
        swarm_check_leases(run);
    if (!is_broken(run))
        swarm_check_locks(run);
    if (!is_broken(run))
        swarm_check_histories(run, numbers);
    if (!is_broken(run))
        swarm_check_barriers(run);
}
