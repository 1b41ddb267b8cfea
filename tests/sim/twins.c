#include "tests/sim/twins.h"

#include <stdio.h>

enum {
    PAUSE_MAX_MS = 700,
    BACK_MAX_MS = 3000,  /* until who was told to end is started again */
    LATER_MS = 30 * 1000 /* who is told after the end is started again, too */
};

static bool is_over(const struct cluster_twins *t)
{
    return sim_now_ms(t->cluster->sim) >= t->until_ms;
}

static void start_task(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    (void)sim;
    if (!sim_alive(task->node))
        cluster_start(task);
}

/* As the program `muster` does it: its process ends. */
static void end_told(struct cluster_twins *t, unsigned number)
{
    struct cluster_task *task = &t->cluster->tasks[number];
    struct sim *sim = t->cluster->sim;
    bool is_first = number < t->first;

    if (task->taken == 0)
        return;
    sim_note(sim, MU__LOG_WARN, "%s ends: another process plays its task", task->name);
    task->taken = 0;
    if (!sim_alive(task->node))
        return;
    t->told += !is_first;
    t->took_over += is_first;
    sim_crash(task->node);
    if (is_first)
        sim_at(sim, sim_now_ms(sim) + sim_between(&t->random, 1, BACK_MAX_MS), start_task,
               task);
}

/* For long enough that another process may take its place. */
static void stop_first(struct cluster_twins *t, struct cluster_task *task)
{
    struct sim *sim = t->cluster->sim;
    uint64_t silence_ms = t->cluster->options.silence_ms;
    uint64_t for_ms = sim_between(&t->random, silence_ms / 2, silence_ms * 4);
    uint64_t left_ms = t->until_ms - sim_now_ms(sim);

    sim_note(sim, MU__LOG_WARN, "%s, whose task another process plays, too, stands still",
             task->name);
    sim_pause(task->node, for_ms < left_ms ? for_ms : left_ms);
}

static void disturb(struct cluster_twins *t)
{
    struct cluster_twin *twin = &t->twins[sim_between(&t->random, 0, t->count - 1)];

    if (!sim_alive(twin->task->node)) {
        twin->task->taken = 0;
        cluster_start(twin->task);
    } else if (sim_chance(&t->random, 20)) {
        sim_crash(twin->task->node);
    } else if (sim_chance(&t->random, 30) && sim_alive(twin->of->node)) {
        stop_first(t, twin->of);
    }
}

static void step(struct sim *sim, void *arg)
{
    struct cluster_twins *t = arg;
    uint64_t now_ms = sim_now_ms(sim);

    for (unsigned i = 0; i < t->cluster->tasks_count; i++)
        end_told(t, i);
    for (unsigned i = 0; i < t->count && is_over(t); i++)
        sim_exit(t->twins[i].task->node);
    if (!is_over(t))
        disturb(t);
    if (now_ms < t->until_ms + LATER_MS)
        sim_at(sim, now_ms + sim_between(&t->random, 1, PAUSE_MAX_MS), step, t);
}

void cluster_twins_begin(struct cluster_twins *t, unsigned count)
{
    t->first = t->cluster->tasks_count;
    for (unsigned i = 0; i < count; i++) {
        struct cluster_twin *twin = &t->twins[t->count];

        twin->of = t->choose(t);
        if (twin->of == NULL)
            return;
        (void)snprintf(twin->name, sizeof twin->name, "twin-%u", i);
        twin->task = cluster_add(t->cluster, twin->of->type, twin->of->index, twin->name);
        if (sim_chance(&t->random, 50))
            twin->task->advertises = twin->of->address;
        t->count++;
    }
    sim_at(t->cluster->sim,
           sim_now_ms(t->cluster->sim) + sim_between(&t->random, 1, 3000), step, t);
}
