#include "tests/sim/swarm/swarm.h"
#include "tests/support/test.h"

void *swarm_grown(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity == 0 ? 64 : 2 * *capacity;
    array = realloc(array, *capacity * size);
    assert_non_null(array);
    return array;
}

struct swarm_program *swarm_call_ended(struct cluster_call *call)
{
    struct swarm *run = call->of.agent.user;
    unsigned i = 0;

    while (run->programs[i].task != call->task)
        i++;
    if (call->done)
        cluster_break(run->cluster, "%s: a call was completed twice", call->task->name);
    call->done = true;
    call->done_ms = now_ms(run);
    return &run->programs[i];
}

static bool is_answered(const struct swarm_program *program)
{
    for (unsigned i = 0; i < OPEN_MAX; i++)
        if (program->keys[i] != NULL)
            return false;
    for (unsigned i = 0; i < THREADS_MAX; i++)
        if (program->threads[i] != NULL)
            return false;
    return program->request == NULL && program->reaching == NULL &&
           program->listing == NULL && program->lock.call == NULL &&
           program->opening == NULL && program->next == NULL;
}

static const char *waits_for(const struct swarm_program *program)
{
    if (program->request != NULL)
        return "a request";
    if (program->reaching != NULL)
        return "a step";
    if (program->listing != NULL)
        return "a list";
    if (program->lock.call != NULL)
        return "a lock";
    if (program->opening != NULL || program->next != NULL)
        return "a watch";
    return "a key or a barrier";
}

/* One who has something under way; NULL: nobody. */
static const struct swarm_program *unanswered(const struct swarm *run)
{
    for (unsigned i = 0; i < run->programs_count; i++)
        if (!is_answered(&run->programs[i]))
            return &run->programs[i];
    return NULL;
}

static bool is_over(void *arg)
{
    const struct swarm *run = arg;

    return is_broken(run) || unanswered(run) == NULL;
}

void swarm_wait(struct swarm *run, const char *what, uint64_t timeout_ms)
{
    struct sim *sim = run->cluster->sim;

    if (!sim_run_to(sim, is_over, run, sim_now_ms(sim) + timeout_ms))
        cluster_break(run->cluster, "%s: %s is not answered (%s)", what,
                      unanswered(run)->task->name, waits_for(unanswered(run)));
}
