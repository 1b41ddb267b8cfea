#include "tests/sim/swarm/swarm.h"

#include "actors/coordination/store/etcd_store.h"
#include "node/member/service_options.h"
#include "sim/world/chaos.h"
#include "tests/support/test.h"

enum { CHANGES_EVERY = 3 }; /* seeds, of which one has changes of the cluster */

static void add_to_set(struct mu__task_set *set, const struct cluster_task *task)
{
    assert_int_equal(mu__task_set_add(set, task->type, task->index), 0);
}

static void take_text(struct mu__task_set *set, char *out, size_t size)
{
    char *text = mu__task_set_text(set);

    assert_non_null(text);
    (void)snprintf(out, size, "%s", text);
    free(text);
    mu__task_set_done(set);
}

static bool is_client(const struct cluster_task *task)
{
    return strcmp(task->type, "client") == 0;
}

/* Who takes part: all, and some; of the last two names it is the same two or three. */
static void draw_sets(struct swarm *run)
{
    struct cluster *cluster = run->cluster;

    for (unsigned name = 0; name < NAMES; name++) {
        struct mu__task_set set = {0};
        unsigned most = name == 0 ? TASKS_MAX : name == 1 ? 6 : 3;
        unsigned count = 0;

        run->threads[name] =
            sim_chance(&run->random, 70) ? 1 : (unsigned)sim_between(&run->random, 2, 3);
        for (unsigned i = 0; i < cluster->tasks_count && count < most; i++) {
            if (is_client(&cluster->tasks[i]) || run->programs[i].plays != i ||
                (name > 0 && count > 1 && sim_chance(&run->random, 50)))
                continue;
            run->takes_part[name][i] = true;
            add_to_set(&set, &cluster->tasks[i]);
            count++;
        }
        take_text(&set, run->sets[name], sizeof run->sets[name]);
        for (unsigned i = 0; i < run->programs_count; i++)
            run->takes_part[name][i] = run->takes_part[name][run->programs[i].plays];
    }
    if (sim_chance(&run->random, 50) || run->plan.changes)
        run->sets[0][0] = '\0';
}

static struct swarm_plan draw_plan(struct sim_random *random)
{
    static const unsigned paces_ms[] = {20, 60, 200};
    uint64_t store = sim_between(random, 0, 9);

    return (struct swarm_plan){
        .store = store < 4   ? &mu__store_etcd
                 : store < 8 ? &mu__store_journal
                             : &mu__store_memory,
        .hosts = store < 4 ? (unsigned)sim_between(random, 1, 3) : 1,
        .full_disk = sim_chance(random, 30),
        .etcd_faults = sim_chance(random, 50),
        .long_pauses = sim_chance(random, 40),
        .barriers = sim_chance(random, 70),
        .steps = sim_chance(random, 50),
        .trouble = sim_chance(random, 40),
        .watches = sim_chance(random, 60),
        .leases = sim_chance(random, 60),
        .pace_ms = paces_ms[sim_between(random, 0, 2)],
    };
}

/* Hosts are among the first three tasks: the chief and the first workers. */
static void draw_hosts(struct swarm *run, unsigned workers)
{
    struct mu__task_set set = {0};
    unsigned first = (unsigned)sim_between(&run->random, 0, 1);

    for (unsigned i = 0; i < run->plan.hosts; i++) {
        unsigned host = first + i;

        if (host == 0)
            assert_int_equal(mu__task_set_add(&set, "chief", 0), 0);
        else if (host <= workers)
            assert_int_equal(mu__task_set_add(&set, "worker", host - 1), 0);
    }
    take_text(&set, run->hosts, sizeof run->hosts);
}

static void draw_options(struct swarm *run, struct cluster_options *ret_options)
{
    static const char *const recoverable[] = {"all", "all", "all", "none", "worker"};
    struct sim_random *random = &run->random;
    bool wide = sim_chance(random, 20);
    unsigned workers = (unsigned)sim_between(random, 1, wide ? 15 : 6);

    draw_hosts(run, workers);
    *ret_options = (struct cluster_options){
        .workers = workers,
        .gpus = run->plan.gpus,
        .servers = (unsigned)sim_between(random, 0, 2),
        .clients = (unsigned)sim_between(random, 0, 2),
        .hosts = run->hosts,
        .coordination =
            {
                .store = run->plan.store,
                .store_location = run->plan.store->shared ? SIM_ETCD_PLACE : "store",
                .cluster_name = "test",
                .recoverable = recoverable[sim_between(random, 0, 4)],
                .reconnect_ms = (uint32_t)sim_between(random, 100, 1000),
                .leave_ms = sim_chance(random, 20) ? 1000 : 0,
                .lease_ms = (uint32_t)sim_between(random, 2000, 5000),
            },
    };
}

static void start_task(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    (void)sim;
    if (!sim_alive(task->node))
        cluster_start(task);
}

static unsigned home_of(const struct swarm *run, const struct cluster_task *task)
{
    for (unsigned i = 0; i < run->programs_count; i++)
        if (run->programs[i].task->index == task->index &&
            strcmp(run->programs[i].task->type, task->type) == 0)
            return i;
    return run->programs_count;
}

/* As a node learns of it. Its former lives knew otherwise. */
static void note_learned(void *user, struct cluster_task *task, const mu_cluster *before,
                         const mu_cluster *after)
{
    static const enum swarm_reached places[] = {
        [MU__CHANGE_ADDED] = ADDED,
        [MU__CHANGE_REMOVED] = REMOVED,
        [MU__CHANGE_MOVED] = MOVED,
    };
    struct swarm *run = user;
    struct mu__changes changes;

    if (!sim_alive(task->node))
        return;
    assert_int_equal(mu__changes_find(before, after, &changes), 0);
    for (size_t i = 0; i < changes.count; i++) {
        const struct mu__change *change = &changes.rows[i];

        run->removals[home_of(run, task)][change->index] = (struct swarm_removal){
            change->kind == MU__CHANGE_REMOVED ? sim_lives(task->node) : 0, now_ms(run)};
        run->reached[places[change->kind]] += task == run->cluster->chief;
    }
    mu__changes_done(&changes);
}

static void begin_changes(struct swarm *run, uint64_t seed)
{
    cluster_changing_begin(&run->changing, &(struct cluster_changing){
                                               .cluster = run->cluster,
                                               .random = sim_stream(seed, 201),
                                               .fixed = FIXED,
                                               .until_ms = CHAOS_MS,
                                               .learned = note_learned,
                                               .user = run,
                                           });
}

static void add_program(struct swarm *run, struct cluster_task *task)
{
    struct swarm_program *program = &run->programs[run->programs_count];

    assert_true(run->programs_count < TASKS_MAX);
    *program = (struct swarm_program){
        .run = run,
        .task = task,
        .number = run->programs_count,
        .plays = home_of(run, task),
        .is_host = mu__service_is_host(run->hosts, task->type, (int)task->index),
        .random = sim_stream(sim_draw(&run->random), run->programs_count),
    };
    run->programs_count++;
    sim_at(run->cluster->sim, 1 + sim_between(&run->random, 0, 500), swarm_step, program);
}

static void begin(struct swarm *run, uint64_t seed)
{
    struct cluster_options options;
    struct cluster *cluster;
    struct sim_chaos chaos;

    run->random = sim_stream(seed, 200);
    run->plan = draw_plan(&run->random);
    swarm_draw_types(&run->plan, seed);
    draw_options(run, &options);
    cluster = cluster_new(seed, &options);
    run->cluster = cluster;
    sim_settings_draw(cluster->sim);
    sim_trace_level(cluster->sim, MU__LOG_DEBUG);
    run->plan.changes = seed % CHANGES_EVERY == 0 && options.workers > FIXED;
    swarm_draw_trouble(&run->plan, seed);
    if (run->plan.changes)
        begin_changes(run, seed);
    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        uint64_t start_ms = sim_between(&run->random, 0, 1000);

        add_program(run, &cluster->tasks[i]);
        if (run->programs[i].plays == i)
            sim_at(cluster->sim, start_ms, start_task, &cluster->tasks[i]);
    }
    draw_sets(run);
    swarm_give_store(run, seed);
    swarm_plan_faults(run);
    swarm_begin_trouble(run, seed);
    sim_set_check(cluster->sim, swarm_look, run);
    sim_run_until(cluster->sim, 1000);
    sim_chaos_draw(cluster->sim, &chaos);
    sim_chaos_start(cluster->sim, &chaos, CHAOS_MS);
}

struct swarm *swarm_new(uint64_t seed, uint64_t *reached)
{
    struct swarm *run = calloc(1, sizeof *run);

    assert_non_null(run);
    run->reached = reached;
    run->number = 1;
    begin(run, seed);
    return run;
}

void swarm_free(struct swarm *run)
{
    for (unsigned i = 0; i < run->programs_count; i++)
        if (run->programs[i].watch != NULL)
            mu__agent_watch_unref(run->programs[i].watch);
    cluster_free(run->cluster);
    cluster_changing_free(&run->changing);
    sim_etcd_free(run->etcd);
    if (run->storage != NULL)
        sim_storage_free(run->storage);
    free(run->records);
    free(run->visits);
    free(run->writes);
    free(run->rounds);
    free(run->leaders);
    free(run);
}
