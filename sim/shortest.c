/* The shortest story of a run that fails: faults are taken out of the list of those that
 * were drawn, many at a time and then one by one, as long as it still fails. */
#include "sim/internal.h"

#include <inttypes.h>
#include <stdlib.h>

/* A fault that is not there draws nothing, and then all that follows is drawn otherwise:
 * a few other draws show whether it was needed. */
enum { TRIES_MAX = 400, DRAWS = 4, DRAWS_FAULTS_MAX = 8 };

/* The shortest so far. */
struct shortest {
    const struct sim_told *told;
    struct sim_run run;
    bool is_calm;
    bool keeps_trace;
    unsigned tries;
};

/* If it fails with this plan, it is the shortest. */
static bool try_plan(struct shortest *shortest, const struct sim_plan *plan)
{
    struct sim_run run;
    bool fails;

    shortest->tries++;
    sim_run_story(shortest->told, plan, &run);
    fails = run.failure[0] != '\0';
    if (fails) {
        struct sim_run longer = shortest->run;

        shortest->run = run;
        shortest->is_calm = plan->is_calm;
        run = longer;
    }
    sim_run_done(&run);
    return fails;
}

/* Without the faults from `first` to `end`. */
static bool try_without(struct shortest *shortest, size_t first, size_t end, bool is_calm)
{
    const struct sim_run *before = &shortest->run;
    const size_t count = before->faults_count - (end - first);
    struct sim_planned *faults = sim_alloc((count + 1) * sizeof faults[0]);
    struct sim_plan plan = {.faults = faults,
                            .count = count,
                            .has_faults = true,
                            .is_calm = is_calm,
                            .keeps_trace = shortest->keeps_trace};
    const unsigned draws = count > DRAWS_FAULTS_MAX || is_calm ? 1 : DRAWS;
    bool fails = false;

    for (size_t i = 0, at = 0; i < before->faults_count; i++)
        if (i < first || i >= end)
            faults[at++] = before->faults[i];
    for (; !fails && plan.draw < draws && shortest->tries < TRIES_MAX; plan.draw++)
        fails = try_plan(shortest, &plan);
    free(faults);
    return fails;
}

static void take_out(struct shortest *shortest)
{
    size_t step = shortest->run.faults_count;

    while (step > 0 && shortest->tries < TRIES_MAX) {
        size_t at = 0;
        bool any = false;

        while (at < shortest->run.faults_count && shortest->tries < TRIES_MAX) {
            size_t end = at + step < shortest->run.faults_count
                             ? at + step
                             : shortest->run.faults_count;

            if (try_without(shortest, at, end, shortest->is_calm))
                any = true;
            else
                at = end;
        }
        if (step > 1 || !any)
            step /= 2;
    }
}

static void tell(const struct shortest *shortest, size_t count, struct sim_words *words)
{
    const struct sim_run *run = &shortest->run;

    sim_words_add(words,
                  "the shortest story that fails, with %zu of %zu faults, after %u more "
                  "runs:\n",
                  run->faults_count, count, shortest->tries);
    sim_words_add(words, "  the network %s\n",
                  shortest->is_calm ? "is plain" : "is as the seed draws it");
    for (size_t i = 0; i < run->faults_count; i++)
        sim_words_fault(words, &run->faults[i], &run->names);
    sim_words_add(words, "  %6" PRIu64 " ms: %s\n", run->failed_ms, run->failure);
}

void sim_tell_shortest(const struct sim_told *told, struct sim_run *failed,
                       struct sim_words *words)
{
    struct shortest shortest = {
        .told = told, .run = *failed, .keeps_trace = failed->trace != NULL};
    const size_t count = failed->faults_count;

    (void)try_without(&shortest, 0, 0, true);
    take_out(&shortest);
    if (!shortest.is_calm)
        (void)try_without(&shortest, 0, 0, true);
    tell(&shortest, count, words);
    *failed = shortest.run;
}
