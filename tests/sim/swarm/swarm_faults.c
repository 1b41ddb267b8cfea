#include "tests/sim/swarm/swarm.h"

static void store_dies(struct mu__storage *storage)
{
    sim_storage_die_after((struct sim_storage *)storage, 0);
}

static void store_is_gone(struct mu__storage *storage)
{
    sim_storage_crash((struct sim_storage *)storage);
}

static bool store_is_damaged(struct mu__storage *storage)
{
    return sim_storage_is_hurt((struct sim_storage *)storage);
}

static void fill_disk(struct sim *sim, void *arg)
{
    struct swarm *run = arg;

    sim_note(sim, MU__LOG_WARN, "the disk is full");
    sim_storage_fail(run->storage, SIM_STORAGE_FLUSH,
                     (unsigned)sim_between(&run->random, 0, 5), -MU_EEXHAUSTED);
    sim_storage_fail(run->storage, SIM_STORAGE_APPEND,
                     (unsigned)sim_between(&run->random, 0, 5), -MU_EEXHAUSTED);
    sim_storage_fail(run->storage, SIM_STORAGE_REPLACE,
                     (unsigned)sim_between(&run->random, 0, 2), -MU_EEXHAUSTED);
}

static void etcd_is_back(struct sim *sim, void *arg)
{
    struct swarm *run = arg;

    sim_note(sim, MU__LOG_WARN, "etcd is back");
    sim_etcd_set_away(run->etcd, false);
    for (unsigned i = 0; i < SIM_ETCD_ENDPOINTS; i++)
        sim_etcd_set_down(run->etcd, i, false);
}

static void hurt_etcd(struct sim *sim, void *arg)
{
    struct swarm *run = arg;
    uint64_t end_ms = sim_now_ms(sim) + sim_between(&run->random, 50, 4000);
    unsigned endpoint = (unsigned)sim_between(&run->random, 0, SIM_ETCD_ENDPOINTS);

    sim_note(sim, MU__LOG_WARN, "etcd %u is away until %" PRIu64, endpoint, end_ms);
    if (endpoint == SIM_ETCD_ENDPOINTS)
        sim_etcd_set_away(run->etcd, true);
    else
        sim_etcd_set_down(run->etcd, endpoint, true);
    sim_at(sim, end_ms < CHAOS_MS ? end_ms : CHAOS_MS, etcd_is_back, run);
}

/* A leader that stands still for longer than its lease goes on as if nothing was. */
static void pause_leader(struct sim *sim, void *arg)
{
    struct swarm *run = arg;
    struct cluster_task *task;

    if (run->leaders_count == 0)
        return;
    task = run->programs[0].task;
    for (unsigned i = 0; i < run->programs_count; i++)
        if (run->programs[i].task == run->leaders[run->leaders_count - 1].task)
            task = run->programs[i].task;
    sim_note(sim, MU__LOG_WARN, "%s, which led last, stands still", task->name);
    sim_pause(task->node, sim_between(&run->random, 500, 8000));
}

void swarm_plan_faults(struct swarm *run)
{
    struct sim *sim = run->cluster->sim;

    for (unsigned i = 0; i < 4; i++) {
        if (run->plan.full_disk && run->storage != NULL)
            sim_at(sim, sim_between(&run->random, 500, CHAOS_MS), fill_disk, run);
        if (run->plan.etcd_faults && run->etcd != NULL)
            sim_at(sim, sim_between(&run->random, 500, CHAOS_MS), hurt_etcd, run);
        if (run->plan.long_pauses)
            sim_at(sim, sim_between(&run->random, 500, CHAOS_MS), pause_leader, run);
    }
}

/* Requests that are late or lost, until all is well. */
static void draw_etcd(struct swarm *run)
{
    struct sim_etcd_settings *settings = sim_etcd_settings(run->etcd);

    settings->way = (struct sim_range){500, sim_between(&run->random, 500, 20000)};
    if (!run->plan.etcd_faults)
        return;
    settings->lose_percent = (unsigned)sim_between(&run->random, 0, 10);
    settings->lose_answer_percent = (unsigned)sim_between(&run->random, 0, 20);
    settings->late_percent = (unsigned)sim_between(&run->random, 0, 10);
    settings->late = (struct sim_range){10000, 3000000};
}

void swarm_give_store(struct swarm *run, uint64_t seed)
{
    if (run->plan.store->shared) {
        run->etcd = sim_etcd_new(run->cluster->sim, seed);
        run->cluster->etcd = run->etcd;
        draw_etcd(run);
        return;
    }
    if (!run->plan.store->lasting)
        return;
    run->storage = sim_storage_new("store", seed);
    for (unsigned i = 0; i < run->programs_count; i++)
        if (run->programs[i].is_host)
            run->programs[i].task->store = (struct cluster_journal){
                &run->storage->base, store_dies, store_is_gone, store_is_damaged, NULL};
}

void swarm_draw_types(struct swarm_plan *plan, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 206);

    if (sim_chance(&random, 30))
        plan->gpus = (unsigned)sim_between(&random, 1, GPUS_MAX);
}

void swarm_draw_trouble(struct swarm_plan *plan, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 202);

    if (plan->store->lasting && !plan->store->shared) {
        if (sim_chance(&random, 40))
            plan->hurt_percent = (unsigned)sim_between(&random, 20, 100);
        plan->tight = plan->full_disk && sim_chance(&random, 50);
    }
    if (!plan->changes && sim_chance(&random, 30))
        plan->twins = (unsigned)sim_between(&random, 1, CLUSTER_TWINS_MAX);
    random = sim_stream(seed, 205);
    plan->txns = sim_chance(&random, 60);
    plan->locks = sim_chance(&random, 60);
}

static bool is_worker(const struct swarm_program *program)
{
    return strcmp(program->task->type, "worker") == 0 ||
           strcmp(program->task->type, "gpu") == 0;
}

/* No host: it has its store to itself. */
static struct cluster_task *choose_doubled(struct cluster_twins *twins)
{
    const struct swarm *run = twins->user;
    unsigned first = (unsigned)sim_between(&twins->random, 0, run->programs_count - 1);

    for (unsigned i = 0; i < run->programs_count; i++) {
        const struct swarm_program *program =
            &run->programs[(first + i) % run->programs_count];

        if (!program->is_host && is_worker(program))
            return program->task;
    }
    return NULL;
}

static void look_after_store(struct swarm *run, uint64_t seed)
{
    run->mending = (struct cluster_mending){
        .cluster = run->cluster,
        .storage = run->storage,
        .random = sim_stream(seed, 203),
        .until_ms = CHAOS_MS,
        .hurt_percent = run->plan.hurt_percent,
        .tight = run->plan.tight,
    };
    for (unsigned i = 0; i < run->programs_count; i++)
        if (run->programs[i].is_host)
            run->mending.task = run->programs[i].task;
    if (run->mending.task != NULL)
        cluster_mending_begin(&run->mending);
}

void swarm_begin_trouble(struct swarm *run, uint64_t seed)
{
    if (run->plan.hurt_percent > 0 || run->plan.tight)
        look_after_store(run, seed);
    run->twins = (struct cluster_twins){
        .cluster = run->cluster,
        .random = sim_stream(seed, 204),
        .until_ms = CHAOS_MS,
        .choose = choose_doubled,
        .user = run,
    };
    if (run->plan.twins > 0)
        cluster_twins_begin(&run->twins, run->plan.twins);
}

void swarm_end_faults(struct swarm *run)
{
    struct sim_etcd_settings *settings;

    run->reached[TIGHT] += run->mending.tight_count;
    run->reached[TWINS_TOLD] += run->twins.told;
    if (run->mending.task != NULL)
        run->reached[REFUSED] += run->mending.task->refused;
    if (run->etcd != NULL) {
        settings = sim_etcd_settings(run->etcd);
        etcd_is_back(run->cluster->sim, run);
        settings->lose_percent = 0;
        settings->lose_answer_percent = 0;
        settings->late_percent = 0;
    }
    for (int op = 0; run->storage != NULL && op < SIM_STORAGE_OPS; op++)
        sim_storage_fail(run->storage, (enum sim_storage_op)op, 0, 0);
}
