/* Runs of a story: each seed twice, and what is said of one that fails. */
#include "sim/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One run ---- */

static uint32_t place_of(const mu_sim *sim, const struct sim_node *node)
{
    uint32_t place = 0;

    while (place + 1 < sim->tasks_count && sim->tasks[place]->node != node)
        place++;
    return place;
}

static void copy_faults(const mu_sim *sim, struct sim_run *run)
{
    const struct sim_fault_told *list = sim_chaos_noted(sim->world, &run->faults_count);

    if (run->faults_count == 0)
        return;
    run->faults = sim_alloc(run->faults_count * sizeof run->faults[0]);
    for (size_t i = 0; i < run->faults_count; i++)
        run->faults[i] = (struct sim_planned){list[i], place_of(sim, list[i].a),
                                              place_of(sim, list[i].b)};
}

static void copy_names(const mu_sim *sim, struct sim_names *names)
{
    names->count = sim->tasks_count;
    for (size_t i = 0; i < sim->tasks_count; i++)
        memcpy(names->names[i], sim->tasks[i]->name, sizeof names->names[i]);
}

static char *copy_trace(mu_sim *sim)
{
    const char *trace = sim_trace(sim->world);
    const size_t size = strlen(trace) + 1;

    return memcpy(sim_alloc(size), trace, size);
}

void sim_run_story(const struct sim_told *told, const struct sim_plan *plan,
                   struct sim_run *ret_run)
{
    mu_sim *sim = sim_user_new(told->seed, plan);
    int rv;

    *ret_run = (struct sim_run){0};
    if (sim == NULL) {
        (void)snprintf(ret_run->failure, sizeof ret_run->failure, "out of memory");
        return;
    }
    rv = told->story(sim, told->user);
    if (rv != 0)
        mu_sim_fail(sim, "the story returned %s", mu_err_name(rv));
    ret_run->digest = sim_digest(sim->world);
    ret_run->failed_ms = sim->failed_ms;
    memcpy(ret_run->failure, sim->failure, sizeof ret_run->failure);
    copy_faults(sim, ret_run);
    copy_names(sim, &ret_run->names);
    if (plan->keeps_trace)
        ret_run->trace = copy_trace(sim);
    ret_run->turns = sim->turns;
    sim->turns = (struct sim_turns){0};
    mu_sim_free(sim);
}

void sim_run_done(struct sim_run *run)
{
    free(run->faults);
    free(run->turns.items);
    free(run->trace);
}

/* ---- Two runs that differ ---- */

enum { COMPARED_MAX = 5 };

static size_t first_difference(const struct sim_turns *a, const struct sim_turns *b)
{
    size_t i = 0;

    while (i < a->count && i < b->count && a->items[i].digest == b->items[i].digest &&
           a->items[i].at_us == b->items[i].at_us &&
           strcmp(a->items[i].who, b->items[i].who) == 0)
        i++;
    return i;
}

static void write_turn(const struct sim_turns *turns, size_t i, char *out, size_t size)
{
    if (i < turns->count)
        (void)snprintf(out, size, "at %" PRIu64 " ms %s", turns->items[i].at_us / 1000,
                       turns->items[i].who);
    else
        (void)snprintf(out, size, "nobody took a turn any more");
}

static void say_difference(const struct sim_turns *a, const struct sim_turns *b,
                           mu_error *ret_error)
{
    const size_t i = first_difference(a, b);
    char first[256];
    char then[256];

    write_turn(a, i, first, sizeof first);
    write_turn(b, i, then, sizeof then);
    if (strcmp(first, then) == 0)
        (void)mu_error_set(ret_error, -MU_EDATALOSS,
                           "two runs are not equal: %s did something else the second "
                           "time",
                           first);
    else
        (void)mu_error_set(ret_error, -MU_EDATALOSS,
                           "two runs are not equal after turn %zu: %s, and the second "
                           "time %s",
                           i, first, then);
}

/* Run it with all turns noted until two of these runs differ, and name the first turn
 * that does. */
static void find_difference(const struct sim_told *told, mu_error *ret_error)
{
    const struct sim_plan plan = {.notes_turns = true};
    struct sim_run first;
    bool is_found = false;

    sim_run_story(told, &plan, &first);
    for (int i = 0; !is_found && i < COMPARED_MAX; i++) {
        struct sim_run again;

        sim_run_story(told, &plan, &again);
        is_found = first_difference(&first.turns, &again.turns) <
                   (first.turns.count > again.turns.count ? first.turns.count
                                                          : again.turns.count);
        if (is_found)
            say_difference(&first.turns, &again.turns, ret_error);
        sim_run_done(&again);
    }
    if (!is_found)
        (void)mu_error_set(ret_error, -MU_EDATALOSS,
                           "two runs are not equal, though all turns of actors are: the "
                           "story, or what actors log, has another clock or chance");
    sim_run_done(&first);
}

/* ---- A seed ---- */

int sim_try_seed(const struct sim_told *told, mu_error *ret_error,
                 struct sim_words *words, char **ret_trace)
{
    const struct sim_plan plan = {.keeps_trace = ret_trace != NULL};
    struct sim_run run;
    struct sim_run again;
    int rv = 0;

    sim_run_story(told, &plan, &run);
    sim_run_story(told, &(struct sim_plan){0}, &again);
    if (run.digest != again.digest || strcmp(run.failure, again.failure) != 0) {
        rv = -MU_EDATALOSS;
        find_difference(told, ret_error);
    } else if (run.failure[0] != '\0') {
        rv = mu_error_set(ret_error, -MU_EABORTED, "at %" PRIu64 " ms: %s", run.failed_ms,
                          run.failure);
        sim_tell_shortest(told, &run, words);
    }
    if (ret_trace != NULL) {
        *ret_trace = run.trace;
        run.trace = NULL;
    }
    sim_run_done(&run);
    sim_run_done(&again);
    return rv;
}

int mu_sim_try(uint64_t seed, mu_sim_story_fn story, void *user, mu_error *ret_error,
               char **ret_words)
{
    const struct sim_told told = {seed, story, user};
    struct sim_words words = {0};
    int rv;

    if (story == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "mu_sim_try: story is NULL");
    rv = sim_try_seed(&told, ret_error, &words, NULL);
    if (ret_words != NULL)
        *ret_words = words.bytes;
    else
        free(words.bytes);
    return rv;
}

void mu_sim_words_free(char *words)
{
    free(words);
}
