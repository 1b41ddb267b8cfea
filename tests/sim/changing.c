#include "tests/sim/changing.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEARN_MAX_MS = 2000, /* until a node has learned of a change, */
    EXIT_MAX_MS = 500    /* and until one that was removed has ended */
};

/* One task learns of one version. */
struct cluster_lesson {
    struct cluster_lesson *next;
    struct cluster_changing *changing;
    struct cluster_task *task;
    unsigned version;
};

static const mu_cluster *truth_of(const struct cluster_changing *changing)
{
    return changing->count == 0 ? changing->cluster->spec
                                : changing->specs[changing->count - 1];
}

bool cluster_changing_lists(const struct cluster_changing *changing,
                            const struct cluster_task *task)
{
    const char *address =
        mu_cluster_address(truth_of(changing), task->type, (int)task->index);

    return address != NULL && strcmp(address, task->address) == 0;
}

static struct cluster_lesson *new_lesson(struct cluster_changing *changing,
                                         struct cluster_task *task)
{
    struct cluster_lesson *lesson = calloc(1, sizeof *lesson);

    assert(lesson != NULL);
    *lesson = (struct cluster_lesson){changing->lessons, changing, task, changing->count};
    changing->lessons = lesson;
    return lesson;
}

/* A worker's program that has found its job done ends. Something starts it again, if it
 * is to be there. */
static void start_listed(struct sim *sim, void *arg)
{
    const struct cluster_lesson *lesson = arg;

    (void)sim;
    if (cluster_changing_lists(lesson->changing, lesson->task) &&
        !sim_alive(lesson->task->node))
        cluster_start(lesson->task);
}

static void exit_removed(struct sim *sim, void *arg)
{
    struct cluster_lesson *lesson = arg;

    if (sim_alive(lesson->task->node))
        sim_crash(lesson->task->node);
    sim_at(sim, sim_now_ms(sim) + EXIT_MAX_MS, start_listed, lesson);
}

static void learn(struct sim *sim, void *arg)
{
    struct cluster_lesson *lesson = arg;
    struct cluster_changing *changing = lesson->changing;
    struct cluster_task *task = lesson->task;
    const mu_cluster *spec = changing->specs[lesson->version - 1];
    const mu_cluster *before = task->spec != NULL ? task->spec : changing->cluster->spec;
    unsigned *known = &changing->known[task - changing->cluster->tasks];
    mu_error error;

    if (*known >= lesson->version)
        return;
    *known = lesson->version;
    if (changing->learned != NULL)
        changing->learned(changing->user, task, before, spec);
    if (cluster_learn(task, spec, &error) != 0)
        cluster_break(changing->cluster, "%s: %s", task->name, error.message);
    if (strcmp(task->type, "worker") == 0 && sim_alive(task->node) &&
        mu_cluster_address(before, task->type, (int)task->index) != NULL &&
        mu_cluster_address(spec, task->type, (int)task->index) == NULL)
        sim_at(sim, sim_now_ms(sim) + sim_between(&changing->random, 0, EXIT_MAX_MS),
               exit_removed, lesson);
}

static void add_task(mu_cluster *cluster, const char *type, int index,
                     const char *address)
{
    int rv = mu_cluster_add(cluster, type, index, address, NULL);

    assert(rv == 0);
    (void)rv;
}

/* The next version: a task is at `address`, or (NULL) not in it. */
static void change_truth(struct cluster_changing *changing, const char *changed,
                         unsigned index, const char *address)
{
    const mu_cluster *before = truth_of(changing);
    mu_cluster *after = mu_cluster_new();
    const char *type;
    const char *at;
    int i_index;

    assert(after != NULL);
    for (size_t i = 0; mu_cluster_task_at(before, i, &type, &i_index, &at) == 0; i++)
        if (strcmp(type, changed) != 0 || i_index != (int)index)
            add_task(after, type, i_index, at);
    if (address != NULL)
        add_task(after, changed, (int)index, address);
    changing->specs[changing->count++] = after;
}

static void spread(struct cluster_changing *changing, uint64_t within_ms)
{
    struct sim *sim = changing->cluster->sim;

    for (unsigned i = 0; i < changing->cluster->tasks_count; i++)
        sim_at(sim, sim_now_ms(sim) + sim_between(&changing->random, 0, within_ms), learn,
               new_lesson(changing, &changing->cluster->tasks[i]));
}

void cluster_changing_list(struct cluster_changing *changing, struct cluster_task *task)
{
    change_truth(changing, task->type, task->index, task->address);
    learn(changing->cluster->sim, new_lesson(changing, task));
    spread(changing, LEARN_MAX_MS);
}

static struct cluster_task *other_place(struct cluster_changing *changing, unsigned index,
                                        const struct cluster_task *place)
{
    struct cluster_task *home = changing->cluster->workers[index];

    struct cluster_task *away = index < changing->fixed + CLUSTER_AWAY_MAX
                                    ? changing->away[index - changing->fixed]
                                    : NULL;

    return place == home && away != NULL ? away : home;
}

static struct cluster_task *listed_place(struct cluster_changing *changing,
                                         unsigned index)
{
    struct cluster_task *home = changing->cluster->workers[index];
    struct cluster_task *away = other_place(changing, index, home);

    if (cluster_changing_lists(changing, home))
        return home;
    return cluster_changing_lists(changing, away) ? away : NULL;
}

/* One comes, goes or moves. Its process goes with it, or lives on for a while. */
static void change_one(struct cluster_changing *changing, unsigned index)
{
    struct sim_random *random = &changing->random;
    struct cluster_task *before = listed_place(changing, index);
    struct cluster_task *after = before;

    if (before == NULL && sim_chance(random, 50))
        after = changing->cluster->workers[index];
    else if (before == NULL || sim_chance(random, 40))
        after = other_place(changing, index, before);
    else if (mu_cluster_task_count(truth_of(changing), "worker") > 1)
        after = NULL;
    if (after == before)
        return;
    change_truth(changing, "worker", index, after == NULL ? NULL : after->address);
    if (before != NULL && sim_alive(before->node) && sim_chance(random, 50))
        sim_crash(before->node);
    spread(changing, LEARN_MAX_MS);
    if (after != NULL)
        sim_at(changing->cluster->sim,
               sim_now_ms(changing->cluster->sim) + sim_between(random, 0, LEARN_MAX_MS),
               start_listed, new_lesson(changing, after));
}

static void change_some(struct sim *sim, void *arg)
{
    struct cluster_changing *changing = arg;
    struct sim_random *random = &changing->random;

    (void)sim;
    if (changing->count < CLUSTER_CHANGES_MAX)
        change_one(changing,
                   (unsigned)sim_between(random, changing->fixed,
                                         changing->cluster->options.workers - 1));
}

/* When all has healed, everybody is listed and runs, in one place each. */
void cluster_changing_end(struct cluster_changing *changing)
{
    struct cluster *cluster = changing->cluster;
    mu_cluster *all = mu_cluster_copy(truth_of(changing));

    assert(all != NULL);
    for (unsigned i = 0; i < cluster->options.workers; i++)
        if (mu_cluster_address(all, "worker", (int)i) == NULL)
            add_task(all, "worker", (int)i, cluster->workers[i]->address);
    changing->specs[changing->count++] = all;
    for (unsigned i = changing->fixed; i < cluster->options.workers; i++) {
        struct cluster_task *place = listed_place(changing, i);
        struct cluster_task *other = other_place(changing, i, place);

        if (other != place && sim_alive(other->node))
            sim_crash(other->node);
        if (!sim_alive(place->node))
            cluster_start(place);
    }
    spread(changing, LEARN_MAX_MS);
}

void cluster_changing_begin(struct cluster_changing *changing,
                            const struct cluster_changing *config)
{
    struct cluster *cluster = config->cluster;
    struct sim_random *random = &changing->random;
    unsigned workers = cluster->options.workers;

    assert(workers > config->fixed);
    *changing = *config;
    for (unsigned i = 0; i < CLUSTER_AWAY_MAX && config->fixed + i < workers; i++) {
        char name[24];

        (void)snprintf(name, sizeof name, "away/%u", config->fixed + i);
        changing->away[i] = cluster_add(cluster, "worker", config->fixed + i, name);
    }
    for (unsigned i = (unsigned)sim_between(random, 1, CLUSTER_CHANGES_MAX); i > 0; i--)
        sim_at(cluster->sim, sim_between(random, 500, changing->until_ms - 1),
               change_some, changing);
}

void cluster_changing_free(struct cluster_changing *changing)
{
    struct cluster_lesson *next;

    for (struct cluster_lesson *lesson = changing->lessons; lesson != NULL;
         lesson = next) {
        next = lesson->next;
        free(lesson);
    }
    for (unsigned i = 0; i < changing->count; i++)
        mu_cluster_free(changing->specs[i]);
}
