/* Runs of the job: all lives of all tasks are of the first, until it has ended; then all
 * processes are others, and of what the first one had there are keys alone. */
#include "actors/coordination/job_runs.h"
#include "actors/coordination/keys/keys.h"
#include "tests/sim/swarm/swarm.h"

#include <stdio.h>

enum { AGAIN_MS = 30 * 1000 };

void swarm_look_at_run(struct swarm *run, const struct coordination *c)
{
    uint64_t number = mu__coord_run(c)->number;

    if (run->storage != NULL && sim_storage_is_hurt(run->storage))
        cluster_break(run->cluster, "%s leads with a damaged store", c->config.task);
    if (run->plan.store->lasting && number != run->number)
        cluster_break(run->cluster,
                      "%s leads in run %" PRIu64 " of the job, expected %" PRIu64,
                      c->config.task, number, run->number);
}

static struct coordination *leader_of(const struct swarm *run)
{
    struct coordination *best = NULL;

    for (unsigned i = 0; i < run->programs_count; i++) {
        struct cluster_task *task = run->programs[i].task;
        struct coordination *c;

        if (!run->programs[i].is_host || !task->runs || !sim_alive(task->node))
            continue;
        c = mu__actor_state(task->member.kernel, (mu__pid){0, MU__COORDINATION});
        if (c->leads && (best == NULL || c->epoch > best->epoch))
            best = c;
    }
    return best;
}

static uint64_t count_below(const struct coordination *c, const char *directory)
{
    uint64_t count;
    uint64_t bytes;

    mu__coord_keys_measure(c, mu__view_str(directory), &count, &bytes);
    return count;
}

static bool end_run(struct swarm *run)
{
    int rv = cluster_wait(cluster_agent(run->cluster->chief,
                                        CALL(CALL_OF(MU__AGENT_RUN_END, 20000))));

    if (rv != 0)
        cluster_break(run->cluster, "the end of the run came to %s", mu_err_name(rv));
    return rv == 0;
}

static void kill_all(struct swarm *run)
{
    for (unsigned i = 0; i < run->programs_count; i++)
        if (sim_alive(run->programs[i].task->node))
            sim_crash(run->programs[i].task->node);
}

/* Those that are fixed: enough to be all hosts. */
static void start_all(struct swarm *run)
{
    for (unsigned i = 0; i < run->programs_count; i++)
        if (!is_changing(&run->programs[i]) && run->programs[i].plays == i)
            cluster_start(run->programs[i].task);
}

static struct coordination *await_leader(struct swarm *run)
{
    uint64_t timeout_ms = now_ms(run) + AGAIN_MS;
    struct coordination *c = NULL;

    while (c == NULL && now_ms(run) < timeout_ms && !is_broken(run)) {
        sim_run_until(run->cluster->sim, now_ms(run) + 100);
        c = leader_of(run);
    }
    if (c == NULL)
        cluster_break(run->cluster, "nobody leads in the next run");
    return c;
}

void swarm_run_again(struct swarm *run)
{
    struct coordination *c = leader_of(run);
    uint64_t kept;

    if (!run->plan.store->lasting || c == NULL || !end_run(run))
        return;
    kept = count_below(c, "f");
    kill_all(run);
    run->number++;
    start_all(run);
    c = await_leader(run);
    if (c == NULL || is_broken(run))
        return;
    if (count_below(c, "_muster") != 2)
        cluster_break(run->cluster,
                      "the next run begins with %" PRIu64 " of the "
                      "service's own keys, expected those of two runs",
                      count_below(c, "_muster"));
    if (count_below(c, "f") != kept || kept == 0)
        cluster_break(run->cluster, "the next run has %" PRIu64 " keys of %" PRIu64,
                      count_below(c, "f"), kept);
    /* One may be of the chief, which has recorded views. */
    if (mu__coord_keys_results(c) > 1)
        cluster_break(run->cluster, "the next run has results of agents of the last");
}
