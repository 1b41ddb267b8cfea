/* The tasks of a simulator: their processes are members, as those of a node are. */
#include "sim/internal.h"

#include "sim/world/inner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Faster than a node's defaults: more happens in a second of virtual time. */
enum { HEARTBEAT_MS = 100, SILENCE_MS = 500 };

/* ---- Failing ---- */

void mu_sim_fail(mu_sim *sim, const char *format, ...)
{
    va_list arguments;

    if (sim == NULL || format == NULL || sim->failure[0] != '\0')
        return;
    va_start(arguments, format);
    (void)vsnprintf(sim->failure, sizeof sim->failure, format, arguments);
    va_end(arguments);
    if (sim->failure[0] == '\0')
        (void)snprintf(sim->failure, sizeof sim->failure, "the story has failed");
    sim->failed_ms = sim_now_ms(sim->world);
    sim_note(sim->world, MU__LOG_ERROR, "failed: %s", sim->failure);
}

const char *mu_sim_failure(const mu_sim *sim)
{
    return sim == NULL || sim->failure[0] == '\0' ? NULL : sim->failure;
}

int sim_verdict(const mu_sim *sim)
{
    return sim->failure[0] == '\0' ? 0 : -MU_EABORTED;
}

/* ---- Processes ---- */

struct office *sim_office(const struct sim_task *task)
{
    return task->runs && sim_alive(task->node)
               ? mu__actor_state(task->member.kernel,
                                 (mu__pid){MU__NODE_SELF, MU__ACTORS})
               : NULL;
}

static int start_process(void *arg, struct sim_node *node, struct mu__world *world,
                         struct mu__wire *wire)
{
    struct sim_task *task = arg;
    const mu_node_options options = {
        .cluster = task->sim->cluster,
        .cluster_name = "sim",
        .task_type = task->type,
        .task_index = (int)task->index,
        .threads = 1,
        .window = 4,
        .queue_max = 4096,
        .attempts_max = 10,
        .heartbeat_ms = HEARTBEAT_MS,
        .silence_ms = SILENCE_MS,
    };
    struct mu__member_config config = {
        .options = &options, .address = task->address, .serves_at_once = true};
    struct mu__world_hooks hooks;
    mu_error error = {0};
    int rv;

    sim_service_join(task, &config);
    rv = mu__member_start(&task->member, &config, world, wire, &error);
    if (rv != 0) {
        mu_sim_fail(task->sim, "%s does not start: %s", task->name, error.message);
        return rv;
    }
    task->runs = true;
    hooks = mu__member_hooks(&task->member);
    sim_attach(node, &hooks, &mu__member_events, &task->member);
    return 0;
}

static void stop_process(void *arg)
{
    struct sim_task *task = arg;
    struct office *office =
        mu__actor_state(task->member.kernel, (mu__pid){MU__NODE_SELF, MU__ACTORS});

    task->runs = false;
    mu__actors_forget_works(office);
    mu__member_stop(&task->member);
    sim_service_crash(task);
}

static const struct sim_program program = {start_process, stop_process};

/* ---- Adding ---- */

/* "worker:0-2", or "worker:1" with the same first and last. */
static bool read_tasks(const char *text, char type[16], unsigned *ret_first,
                       unsigned *ret_last)
{
    int size = 0;

    if (sscanf(text, "%15[a-z_0-9]:%4u%n", type, ret_first, &size) != 2)
        return false;
    *ret_last = *ret_first;
    text += size;
    size = 0;
    if (*text == '-' && sscanf(text, "-%4u%n", ret_last, &size) == 1)
        text += size;
    return *text == '\0' && *ret_first <= *ret_last;
}

static bool add_types(struct sim_task *task, const mu_actor_type *const *types)
{
    for (size_t i = 0; types != NULL && types[i] != NULL; i++) {
        if (i == SIM_TYPES_MAX) {
            mu_sim_fail(task->sim, "mu_sim_add: %s has more than %d types", task->name,
                        SIM_TYPES_MAX);
            return false;
        }
        task->types[i] = sim_type_new(task, types[i]);
        task->types_count++;
    }
    return true;
}

static void add_one(mu_sim *sim, const char *type, unsigned index,
                    const struct sim_task *like, const mu_actor_type *const *types)
{
    struct sim_task *task;
    mu_error error = {0};

    if (sim->tasks_count == MU_SIM_TASKS_MAX) {
        mu_sim_fail(sim, "mu_sim_add: more than %d tasks", MU_SIM_TASKS_MAX);
        return;
    }
    task = sim_alloc(sizeof *task);
    *task = *like;
    sim->tasks[sim->tasks_count++] = task;
    task->sim = sim;
    task->index = index;
    (void)snprintf(task->type, sizeof task->type, "%s", type);
    (void)snprintf(task->name, sizeof task->name, "%s:%u", type, index);
    (void)snprintf(task->address, sizeof task->address, "tcp://%s-%u:1", type, index);
    for (char *at = task->address; *at != '\0'; at++)
        if (*at == '_')
            *at = '-';
    if (!add_types(task, types))
        return;
    if (mu_cluster_add(sim->cluster, type, (int)index, task->address, &error) != 0)
        mu_sim_fail(sim, "mu_sim_add: %s", error.message);
    task->node = sim_node_add(sim->world, task->name, task->address, &program, task);
}

int mu_sim_add(mu_sim *sim, const char *tasks, const mu_actor_type *const *types,
               mu_sim_begin_fn begin, void *user)
{
    const struct sim_task like = {.begin = begin, .user = user};
    char type[16];
    unsigned first = 0;
    unsigned last = 0;

    if (sim == NULL)
        return -MU_EINVALID;
    if (tasks == NULL || !read_tasks(tasks, type, &first, &last))
        mu_sim_fail(sim,
                    "mu_sim_add: \"%.60s\" is no task: expected \"worker:1\" or "
                    "\"worker:0-2\"",
                    tasks == NULL ? "" : tasks);
    else if (sim->is_started)
        mu_sim_fail(sim, "mu_sim_add: %.60s is added after time has passed", tasks);
    for (unsigned i = first; sim_verdict(sim) == 0 && i <= last; i++)
        add_one(sim, type, i, &like, types);
    return sim_verdict(sim);
}

struct sim_task *sim_task_find(mu_sim *sim, const char *call, const char *name)
{
    for (size_t i = 0; name != NULL && i < sim->tasks_count; i++)
        if (strcmp(sim->tasks[i]->name, name) == 0)
            return sim->tasks[i];
    mu_sim_fail(sim, "%s: there is no task \"%.60s\"", call, name == NULL ? "" : name);
    return NULL;
}

/* ---- A run begins ---- */

/* New processes get their types; then the story hears of them. */
static void begin_task(struct sim_task *task)
{
    struct office *office = sim_office(task);
    mu_error error = {0};

    if (office == NULL || task->begun == sim_lives(task->node))
        return;
    task->begun = sim_lives(task->node);
    for (size_t i = 0; i < task->types_count; i++)
        if (mu__types_add(office, &task->types[i]->own, &error) != 0) {
            mu_sim_fail(task->sim, "%s: %s", task->name, error.message);
            return;
        }
    if (task->begin != NULL)
        task->begin(task->sim, task->name, task->user);
}

/* After each event. */
static void look_at_all(struct sim *world, void *arg)
{
    mu_sim *sim = arg;

    (void)world;
    sim->is_within = true;
    for (size_t i = 0; i < sim->tasks_count; i++)
        begin_task(sim->tasks[i]);
    if (sim->check != NULL && sim_verdict(sim) == 0)
        sim->check(sim, sim->check_user);
    sim->is_within = false;
}

void sim_begin_all(mu_sim *sim)
{
    if (sim->is_started || sim_verdict(sim) != 0)
        return;
    if (sim->tasks_count == 0) {
        mu_sim_fail(sim, "there is no task: mu_sim_add comes first");
        return;
    }
    sim->is_started = true;
    if (!sim->is_calm && !sim->plan.is_calm)
        sim_settings_draw(sim->world);
    sim_set_check(sim->world, look_at_all, sim);
    for (size_t i = 0; i < sim->tasks_count && sim_verdict(sim) == 0; i++)
        (void)sim_start(sim->tasks[i]->node);
    if (sim_verdict(sim) == 0)
        look_at_all(sim->world, sim);
}

int mu_sim_calm(mu_sim *sim)
{
    if (sim == NULL)
        return -MU_EINVALID;
    if (sim->is_started)
        mu_sim_fail(sim, "mu_sim_calm: time has passed");
    sim->is_calm = true;
    return sim_verdict(sim);
}

/* ---- Simulators ---- */

mu_sim *sim_user_new(uint64_t seed, const struct sim_plan *plan)
{
    mu_sim *sim = calloc(1, sizeof *sim);
    mu_cluster *cluster = mu_cluster_new();

    if (sim == NULL || cluster == NULL) {
        free(sim);
        mu_cluster_free(cluster);
        return NULL;
    }
    sim->seed = seed;
    sim->cluster = cluster;
    sim->plan = *plan;
    sim->random = sim_stream(seed, 113);
    sim->world = sim_new(seed);
    if (plan->draw != 0)
        sim->world->random = sim_stream(seed, 1000 + plan->draw);
    return sim;
}

mu_sim *mu_sim_new(uint64_t seed)
{
    return sim_user_new(seed, &(struct sim_plan){0});
}

void mu_sim_free(mu_sim *sim)
{
    if (sim == NULL)
        return;
    sim_free(sim->world);
    for (size_t i = 0; i < sim->tasks_count; i++) {
        for (size_t j = 0; j < sim->tasks[i]->types_count; j++)
            free(sim->tasks[i]->types[j]);
        free(sim->tasks[i]);
    }
    mu_cluster_free(sim->cluster);
    sim_service_done(&sim->service);
    while (sim->story_faults != NULL) {
        struct sim_story_fault *next = sim->story_faults->next;

        free(sim->story_faults);
        sim->story_faults = next;
    }
    free(sim->planned);
    free(sim->turns.items);
    free(sim);
}
