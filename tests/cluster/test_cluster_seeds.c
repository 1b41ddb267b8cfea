/* Clusters of one to fifty workers under faults that all follow from a seed: some hundred
 * closures each, scheduled by the chief and by clients, while processes crash, stand
 * still and lose each other, functions hang and queues are full. In some runs the chief
 * crashes too, and all start over. Then everything heals, and must come to its end.
 *
 * What must be is said in tests/sim/cluster.h, and looked for after every event. By hand,
 * for more seeds or others: test_cluster_seeds FIRST COUNT. */
#include "actors/messages.h"
#include "sim/world/chaos.h"
#include "tests/sim/cluster/programs.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    SEEDS = 2000,
    EVENTS_MAX = 20 * 1000 * 1000, /* of a seed; the usual is some ten thousand */
    LIVELY_MAX = 10,               /* workers of a cluster with quick heartbeats */
    CHAOS_MS = 12 * 1000,          /* all of these: virtual time */
    HEALED_MS = 300 * 1000,
    REST_MS = 10 * 1000,
    STUCK_MIN_MS = 30 * 1000,
    STUCK_MAX_MS = 600 * 1000
};

static const char *const reached_words[REACHED] = {
    [KEPT] = "results kept",
    [WITH_INPUTS] = "closures with inputs",
    [RECOMPUTED] = "seen being computed again",
    [RECALLED] = "given back by workers",
    [HANGS_RECALLED] = "of these where functions hang",
    [REFUSED] = "damaged files refused",
    [TIGHT] = "disks without room",
    [TWINS_TOLD] = "second processes told to end",
    [TOOK_OVER] = "tasks taken over",
    [SERVERS_KILLED] = "servers killed",
    [SERVERS_ADDED] = "servers added",
    [RELEASED] = "released",
    [CANCELLED] = "cancelled one by one",
    [DRAINED] = "workers that left",
    [JOURNALS] = "journals read",
    [KNOWN] = "names known to a later chief",
    [NOT_WRITTEN] = "journal errors raised",
    [BACKUPS] = "backups",
    [STUCK] = "stuck runs given up",
    [FENCES] = "chiefs of runs that write",
    [ADDED] = "workers added",
    [REMOVED] = "removed",
    [MOVED] = "moved",
    [OF_TYPE] = "closures for one type alone",
    [WAITED] = "looks at closures that waited for room",
};

/* ---- The cluster changes ---- */

/* As the chief learns of it. */
static void count_changes(void *user, struct cluster_task *task, const mu_cluster *before,
                          const mu_cluster *after)
{
    struct run *run = user;
    static const enum reached places[] = {
        [MU__CHANGE_ADDED] = ADDED,
        [MU__CHANGE_REMOVED] = REMOVED,
        [MU__CHANGE_MOVED] = MOVED,
    };
    struct mu__changes changes;

    if (task != run->cluster->chief || !sim_alive(task->node))
        return;
    assert_int_equal(mu__changes_find(before, after, &changes), 0);
    for (size_t i = 0; i < changes.count; i++)
        run->reached[places[changes.rows[i].kind]]++;
    mu__changes_done(&changes);
}

/* ---- Runs ---- */

struct verdict {
    uint64_t digest;
    uint64_t closures;
    uint64_t runs;
    uint64_t retried;
    uint64_t cancelled;
    uint64_t raised;
    uint64_t given_up;
    uint64_t chief_lost;
    uint64_t chief_lives;
    uint64_t reached[REACHED];
    uint64_t events_max;
    struct sim_counters counters;
    char broken[256];
};

/* Small ones often: there is most to be seen where few are left. */
static unsigned draw_workers(struct sim_random *random)
{
    uint64_t percent = sim_between(random, 0, 99);

    if (percent < 70)
        return (unsigned)sim_between(random, 1, 6);
    if (percent < 90)
        return (unsigned)sim_between(random, 7, 16);
    return (unsigned)sim_between(random, 17, 50);
}

/* Heartbeats are most of what there is to simulate in a wide cluster, and in one that
 * waits for minutes: they come less often there. */
static void draw_pulse(struct cluster_options *options, struct sim_random *random,
                       bool waits)
{
    bool lively = sim_chance(random, 70) && options->workers <= LIVELY_MAX && !waits;

    options->heartbeat_ms = lively ? 100 : 1000;
    options->silence_ms = lively ? 500 : 5000;
}

/* What the chief does on top, and what must not change what closures come to. */
static mu_node_options draw_supervisor(struct sim_random *random)
{
    return (mu_node_options){
        .backup_percent =
            sim_chance(random, 30) ? (unsigned)sim_between(random, 100, 400) : 0,
        .watchdog_ms =
            sim_chance(random, 20) ? (unsigned)sim_between(random, 100, 10000) : 0,
        .start_delay_ms =
            sim_chance(random, 10) ? (unsigned)sim_between(random, 1, 300) : 0,
        .start_delay_max_ms = 1000,
        .measure = sim_chance(random, 20),
        .recovery_ms =
            sim_chance(random, 15) ? (unsigned)sim_between(random, 200, 4000) : 0,
    };
}

static struct cluster_options draw_options(struct sim_random *random)
{
    static const unsigned windows[] = {0, 0, 1, 3};
    static const unsigned attempts[] = {3, 10, 1000};

    return (struct cluster_options){
        .workers = draw_workers(random),
        .servers = (unsigned)sim_between(random, 0, sim_chance(random, 80) ? 2 : 5),
        .clients = (unsigned)sim_between(random, 0, 2),
        .threads = (unsigned)sim_between(random, 1, 4),
        .window = windows[sim_between(random, 0, 3)],
        .adaptive = sim_chance(random, 50),
        .attempts_max = attempts[sim_between(random, 0, 2)],
        .queue_max =
            sim_chance(random, 15) ? (unsigned)sim_between(random, 1, 40) : QUEUE_WIDE,
        .node = draw_supervisor(random),
        .effects_add = mu__effects_add,
    };
}

static void draw_journal(struct plan *plan, struct cluster_options *options,
                         struct sim_random *random)
{
    plan->journal = plan->chief_crashes && sim_chance(random, 60);
    if (!plan->journal)
        return;
    plan->full_disk = sim_chance(random, 25);
    options->attempts_max = 1000;
}

static struct plan draw_plan(struct sim_random *random,
                             const struct cluster_options *options)
{
    bool wide = options->workers > LIVELY_MAX;
    bool stuck = sim_chance(random, 15);

    return (struct plan){
        .chaos_ms = wide ? CHAOS_MS / 3 : CHAOS_MS,
        .healed_ms = HEALED_MS + (stuck ? STUCK_MAX_MS : 0),
        .stuck_percent = stuck ? (unsigned)sim_between(random, 1, 3) : 0,
        .chief_crashes = sim_chance(random, 25),
        .asks = sim_chance(random, 50),
        .writes = sim_chance(random, 50) && options->servers > 0,
        .keeps = sim_chance(random, 40),
        .cancels = sim_chance(random, 30),
        .drains = sim_chance(random, 25),
    };
}

static void add_program(struct run *run, struct cluster_task *task,
                        struct sim_random *random)
{
    struct program *program = &run->programs[run->programs_count];

    *program = (struct program){
        .run = run,
        .task = task,
        .random = sim_stream(sim_draw(random), run->programs_count),
        .goal = sim_between(random, 50, 200),
        .waits = sim_chance(random, 30),
        .asks = run->plan.asks,
    };
    if (run->plan.journal && task == run->cluster->chief)
        program_draw_names(program);
    run->programs_count++;
    sim_at(run->cluster->sim, 1 + sim_between(random, 0, 500), program_step, program);
}

/* Tasks start in any order, some late. */
static void start_task(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    (void)sim;
    if (!sim_alive(task->node))
        cluster_start(task);
}

static void spare_crashes(struct cluster_task *task)
{
    sim_chaos_spare(task->node, SIM_FAULT_CRASH);
    sim_chaos_spare(task->node, SIM_FAULT_CRASH_MIDWAY);
}

/* Of the run that goes on now: its own stream, since a run that is repeated draws the
 * same. */
static struct sim_random mixed;

static uint64_t draw_mixed_us(const struct mu__work *work)
{
    (void)work;
    if (sim_chance(&mixed, 80))
        return sim_between(&mixed, 10, 500);
    return sim_chance(&mixed, 70) ? sim_between(&mixed, 1000, 20000)
                                  : sim_between(&mixed, 100000, 600000);
}

/* Servers have no backup: what was written would die with them. */
static void draw_world(struct run *run)
{
    struct sim_settings *settings = sim_settings(run->cluster->sim);

    sim_settings_draw(run->cluster->sim);
    settings->stuck_percent = run->plan.stuck_percent;
    settings->stuck =
        (struct sim_range){STUCK_MIN_MS * UINT64_C(1000), STUCK_MAX_MS * UINT64_C(1000)};
    settings->stuck_until_us = run->plan.chaos_ms * 1000;
    if (run->plan.mixed)
        settings->work_us = draw_mixed_us;
    if (!run->plan.chief_crashes)
        spare_crashes(run->cluster->chief);
    for (unsigned i = 0; run->plan.writes && i < run->cluster->options.servers; i++)
        spare_crashes(run->cluster->servers[i]);
}

static void journal_dies(struct mu__storage *storage)
{
    sim_storage_die_after((struct sim_storage *)storage, 0);
}

static void journal_is_gone(struct mu__storage *storage)
{
    sim_storage_crash((struct sim_storage *)storage);
}

/* For a chief that runs: one that starts would refuse. */
static void fill_disk(struct sim *sim, void *arg)
{
    struct run *run = arg;

    if (!sim_alive(run->cluster->chief->node))
        return;
    sim_note(sim, MU__LOG_WARN, "the disk is full");
    sim_storage_fail(run->journal, SIM_STORAGE_FLUSH, 5, -MU_EEXHAUSTED);
    sim_storage_fail(run->journal, SIM_STORAGE_APPEND, 5, -MU_EEXHAUSTED);
}

static bool journal_is_damaged(struct mu__storage *storage)
{
    return sim_storage_is_hurt((struct sim_storage *)storage);
}

static bool journal_is_tight(struct mu__storage *storage)
{
    return sim_storage_is_limited((struct sim_storage *)storage);
}

static void give_journal(struct run *run, uint64_t seed, struct sim_random *random)
{
    run->journal = sim_storage_new("journal", seed);
    run->cluster->chief->journal =
        (struct cluster_journal){&run->journal->base, journal_dies, journal_is_gone,
                                 journal_is_damaged, journal_is_tight};
    for (unsigned i = 0; run->plan.full_disk && i < 3; i++)
        sim_at(run->cluster->sim, sim_between(random, 500, run->plan.chaos_ms), fill_disk,
               run);
}

/* Of a stream of its own, as all below: runs without it are what they were. */
static void draw_damage(struct plan *plan, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 105);

    if (!plan->journal)
        return;
    if (sim_chance(&random, 40))
        plan->hurt_percent = (unsigned)sim_between(&random, 20, 100);
    plan->tight = plan->full_disk && sim_chance(&random, 50);
}

static void look_after_journal(struct run *run, uint64_t seed)
{
    if (run->plan.hurt_percent == 0 && !run->plan.tight)
        return;
    run->mending = (struct cluster_mending){
        .cluster = run->cluster,
        .task = run->cluster->chief,
        .storage = run->journal,
        .random = sim_stream(seed, 106),
        .until_ms = run->plan.chaos_ms,
        .hurt_percent = run->plan.hurt_percent,
        .tight = run->plan.tight,
    };
    cluster_mending_begin(&run->mending);
}

static unsigned draw_twins(const struct plan *plan, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 107);

    return plan->changes || !sim_chance(&random, 40)
               ? 0
               : (unsigned)sim_between(&random, 1, CLUSTER_TWINS_MAX);
}

/* A server that takes another one's place has nothing of what was written there. */
static struct cluster_task *choose_doubled(struct cluster_twins *twins)
{
    const struct run *run = twins->user;
    struct cluster *cluster = run->cluster;

    if (cluster->options.servers > 0 && !run->plan.writes &&
        sim_chance(&twins->random, 25))
        return cluster->servers[0];
    return cluster->workers[sim_between(&twins->random, 0, cluster->options.workers - 1)];
}

/* Servers that die, come and go, if their partitions have backups. */
static void begin_losses(struct run *run, uint64_t seed)
{
    run->losses = (struct cluster_losses){
        .cluster = run->cluster,
        .random = sim_stream(seed, 112),
        .until_ms = run->plan.chaos_ms,
        .servers = run->cluster->options.servers,
        .resizing = &run->resizing,
    };
    if (run->cluster->options.node.backups > 0)
        cluster_losses_begin(&run->losses);
}

static void begin_twins(struct run *run, uint64_t seed)
{
    run->twins = (struct cluster_twins){
        .cluster = run->cluster,
        .random = sim_stream(seed, 108),
        .until_ms = run->plan.chaos_ms,
        .choose = choose_doubled,
        .user = run,
    };
    if (run->plan.twins > 0)
        cluster_twins_begin(&run->twins, run->plan.twins);
}

/* Of a stream of its own: runs without changes are what they were. */
static bool draws_changes(uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 102);

    return sim_chance(&random, 25);
}

/* Backups of what is written. A chief that dies learns views from servers alone, and with
 * one of these some are lost. */
static void draw_backups(const struct plan *plan, struct cluster_options *options,
                         uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 111);

    if (plan->writes && options->servers > 1 && !plan->chief_crashes && !plan->changes &&
        sim_chance(&random, 60))
        options->node.backups = 1;
}

/* Of a stream of its own, too: chiefs that have little room for many. */
static void draw_room(struct cluster_options *options, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 103);

    if (sim_chance(&random, 25)) {
        options->queue_max = (unsigned)sim_between(&random, 1, 12);
        options->clients = (unsigned)sim_between(&random, 1, 2);
    }
    if (sim_chance(&random, 15))
        options->node.queue_bytes_max = sim_between(&random, 1, 100);
}

/* The same: tasks of a type of their own run closures beside the workers. */
static bool draw_types(struct cluster_options *options, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 109);

    if (!sim_chance(&random, 30))
        return false;
    options->gpus = (unsigned)sim_between(&random, 1, 4);
    return true;
}

static void begin(struct run *run, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, 100);
    struct cluster_options options = draw_options(&random);
    struct plan plan = draw_plan(&random, &options);
    struct cluster *cluster;
    struct sim_chaos chaos;

    draw_journal(&plan, &options, &random);
    draw_pulse(&options, &random, plan.stuck_percent > 0);
    plan.changes = draws_changes(seed);
    draw_backups(&plan, &options, seed);
    draw_room(&options, seed);
    plan.types = draw_types(&options, seed);
    draw_damage(&plan, seed);
    plan.twins = draw_twins(&plan, seed);
    mixed = sim_stream(seed, 104);
    plan.mixed = sim_chance(&mixed, 40);
    cluster = cluster_new(seed, &options);
    *run = (struct run){.cluster = cluster, .plan = plan, .reached = run->reached};
    if (plan.journal)
        give_journal(run, seed, &random);
    draw_world(run);
    sim_trace_level(cluster->sim, MU__LOG_DEBUG);
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        sim_at(cluster->sim, sim_between(&random, 0, 1000), start_task,
               &cluster->tasks[i]);
    add_program(run, cluster->chief, &random);
    for (unsigned i = 0; i < options.clients; i++)
        add_program(run, cluster->clients[i], &random);
    if (plan.changes)
        cluster_changing_begin(&run->changing, &(struct cluster_changing){
                                                   .cluster = cluster,
                                                   .random = sim_stream(seed, 101),
                                                   .until_ms = plan.chaos_ms,
                                                   .learned = count_changes,
                                                   .user = run,
                                               });
    look_after_journal(run, seed);
    begin_twins(run, seed);
    begin_losses(run, seed);
    sim_run_until(cluster->sim, 1000);
    sim_chaos_draw(cluster->sim, &chaos);
    sim_chaos_start(cluster->sim, &chaos, plan.chaos_ms);
}

static bool is_over(void *arg)
{
    struct run *run = arg;
    struct sim_counters counters;

    sim_counters(run->cluster->sim, &counters);
    if (counters.events > EVENTS_MAX)
        cluster_break(run->cluster, "%" PRIu64 " events: nothing comes to an end",
                      counters.events);
    if (run->cluster->broken[0] != '\0')
        return true;
    for (size_t i = 0; i < run->programs_count; i++)
        if (!run->programs[i].finished)
            return false;
    return true;
}

/* Functions that nobody waits for any more have ended too. */
static bool is_idle(void *arg)
{
    struct run *run = arg;

    for (unsigned i = 0; i < run->cluster->tasks_count; i++)
        if (sim_works(run->cluster->tasks[i].node) > 0)
            return false;
    return true;
}

static void tell_unfinished(struct run *run)
{
    for (size_t i = 0; i < run->programs_count; i++) {
        const struct program *program = &run->programs[i];

        if (!program->finished)
            cluster_break(run->cluster,
                          "%s has not finished: %" PRIu64 " of %" PRIu64
                          " scheduled, waits for %d",
                          program->task->name, program->scheduled, program->goal,
                          program->call == NULL ? -1 : program->call->of.call.operation);
    }
}

/* Whether every closure that wrote did so once. */
static void check_counter(struct run *run)
{
    int code = cluster_wait(cluster_counter_read(run->cluster->chief, 60000));

    if (code != 0)
        cluster_break(run->cluster, "the counter cannot be read: %s", mu_strerror(code));
    else
        cluster_check_writes(run->cluster, true);
}

/* After all is done the chief dies once more. Whatever has finished under a name is known
 * to the next one, and is not run again. */
static void check_restart(struct run *run)
{
    struct program *program = &run->programs[0];
    struct cluster *cluster = run->cluster;
    uint64_t runs = cluster->runs_count;

    if (sim_restart(program->task->node) != 0)
        cluster_break(cluster, "the chief does not start again");
    (void)cluster_wait(cluster_open(program->task, -1));
    for (unsigned i = 0; i < program->names_count; i++)
        program_schedule_name(program, &program->names[i]);
    if (cluster_wait(cluster_ask(program->task, MU__CLIENT_JOIN, 60000)) != 0 ||
        cluster_check(cluster)[0] != '\0')
        cluster_break(cluster, "what had finished fails after a restart");
    if (!program_all_names_finished(program))
        cluster_break(cluster, "what had finished is not known after a restart");
    if (runs != cluster->runs_count && !run->plan.full_disk)
        cluster_break(cluster, "%" PRIu64 " of what had finished ran again",
                      cluster->runs_count - runs);
    sim_run_until(cluster->sim, sim_now_ms(cluster->sim) + REST_MS);
}

static void count_events(const struct run *run, struct verdict *verdict)
{
    const struct cluster_session *session = run->cluster->sessions;

    sim_counters(run->cluster->sim, &verdict->counters);
    verdict->chief_lives = sim_lives(run->cluster->chief->node);
    verdict->closures = (uint64_t)run->cluster->key_next;
    verdict->runs = run->cluster->runs_count;
    for (; session != NULL; session = session->next) {
        verdict->retried += cluster_count(&session->shared.retried);
        verdict->cancelled += cluster_count(&session->shared.cancelled);
    }
    for (size_t i = 0; i < run->programs_count; i++) {
        verdict->raised += run->programs[i].raised;
        verdict->given_up += run->programs[i].given_up;
        verdict->chief_lost += run->programs[i].chief_lost;
        verdict->reached[NOT_WRITTEN] += run->programs[i].not_written;
    }
    cluster_note_supervisor(run->cluster);
    verdict->reached[RECOMPUTED] = run->cluster->recomputed;
    verdict->reached[RECALLED] = run->cluster->recalled;
    if (run->plan.stuck_percent > 0)
        verdict->reached[HANGS_RECALLED] = run->cluster->recalled;
    verdict->reached[REFUSED] = run->cluster->chief->refused;
    verdict->reached[TIGHT] = run->mending.tight_count;
    verdict->reached[TWINS_TOLD] = run->twins.told;
    verdict->reached[TOOK_OVER] = run->twins.took_over;
    verdict->reached[SERVERS_KILLED] = run->losses.killed;
    verdict->reached[SERVERS_ADDED] = run->resizing.added;
    verdict->reached[BACKUPS] = run->cluster->backups;
    verdict->reached[STUCK] = run->cluster->stuck;
    verdict->reached[WAITED] = run->cluster->waited;
    verdict->reached[JOURNALS] = run->plan.journal ? verdict->chief_lives : 0;
    verdict->reached[FENCES] = run->counter_ready ? verdict->chief_lives : 0;
}

static struct verdict run_seed(uint64_t seed, bool show)
{
    struct verdict verdict = {0};
    struct run run;
    struct sim *sim;

    run.reached = verdict.reached;
    begin(&run, seed);
    sim = run.cluster->sim;
    sim_run_until(sim, run.plan.chaos_ms);
    if (run.plan.changes)
        cluster_changing_end(&run.changing);
    if (!sim_run_to(sim, is_over, &run, run.plan.chaos_ms + run.plan.healed_ms))
        tell_unfinished(&run);
    if (run.cluster->broken[0] == '\0') {
        (void)sim_run_to(sim, is_idle, &run, sim_now_ms(sim) + STUCK_MAX_MS);
        (void)sim_run_to(sim, cluster_losses_are_mended, &run.losses,
                         sim_now_ms(sim) + STUCK_MAX_MS);
        sim_run_until(sim, sim_now_ms(sim) + REST_MS);
        if (run.plan.journal && run.cluster->broken[0] == '\0')
            check_restart(&run);
        if (run.counter_ready)
            check_counter(&run);
        (void)cluster_check_rest(run.cluster);
    }
    verdict.digest = sim_digest(sim);
    count_events(&run, &verdict);
    (void)snprintf(verdict.broken, sizeof verdict.broken, "%s", run.cluster->broken);
    if (show)
        fputs(sim_trace(sim), stdout);
    cluster_free(run.cluster);
    cluster_changing_free(&run.changing);
    cluster_resizing_free(&run.resizing);
    sim_storage_free(run.journal);
    return verdict;
}

static void add_up(struct verdict *sum, const struct verdict *verdict)
{
    sum->closures += verdict->closures;
    sum->runs += verdict->runs;
    sum->retried += verdict->retried;
    sum->cancelled += verdict->cancelled;
    sum->raised += verdict->raised;
    sum->given_up += verdict->given_up;
    sum->chief_lost += verdict->chief_lost;
    sum->chief_lives += verdict->chief_lives;
    for (size_t i = 0; i < REACHED; i++)
        sum->reached[i] += verdict->reached[i];
    sum->counters.events += verdict->counters.events;
    sum->events_max = verdict->counters.events > sum->events_max
                          ? verdict->counters.events
                          : sum->events_max;
    sum->counters.lives += verdict->counters.lives;
    sum->counters.stuck += verdict->counters.stuck;
    sum->counters.frames_overtaken += verdict->counters.frames_overtaken;
    sum->counters.frames_of_dead += verdict->counters.frames_of_dead;
}

/* A swarm that never comes to the rare places proves nothing about them. */
static void check_reach(const struct verdict *sum)
{
    const struct sim_counters *counters = &sum->counters;
    uint64_t count = seeds_count();

    print_message("%" PRIu64 " closures, %" PRIu64 " runs (%" PRIu64 " stuck), %" PRIu64
                  " retried, %" PRIu64 " cancelled\n",
                  sum->closures, sum->runs, counters->stuck, sum->retried,
                  sum->cancelled);
    print_message("%" PRIu64 " processes, of these %" PRIu64 " chiefs; %" PRIu64
                  " frames overtaken, %" PRIu64 " of the dead\n",
                  counters->lives, sum->chief_lives, counters->frames_overtaken,
                  counters->frames_of_dead);
    print_message("%" PRIu64 " errors raised, of these %" PRIu64 " given up, %" PRIu64
                  " chief lost\n",
                  sum->raised, sum->given_up, sum->chief_lost);
    for (size_t i = 0; i < REACHED; i++)
        print_message("%" PRIu64 " %s%s", sum->reached[i], reached_words[i],
                      i + 1 < REACHED ? ", " : "\n");
    print_message("%" PRIu64 " events, at most %" PRIu64 " in a run\n", counters->events,
                  sum->events_max);
    if (count < SEEDS)
        return;
    assert_true(sum->retried > SEEDS && sum->cancelled > SEEDS);
    assert_true(counters->lives > SEEDS && sum->chief_lives > count + SEEDS / 10);
    assert_true(counters->stuck > SEEDS / 10 && counters->frames_overtaken > SEEDS / 50 &&
                counters->frames_of_dead > SEEDS / 10);
    assert_true(sum->raised > SEEDS && sum->given_up > 0 && sum->chief_lost > 0);
    for (size_t i = 0; i < REACHED; i++)
        assert_true(sum->reached[i] > SEEDS / 100);
}

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    struct verdict verdict = run_seed(seed, show);

    if (sum != NULL)
        add_up(sum, &verdict);
    ret_verdict->digest = verdict.digest;
    (void)snprintf(ret_verdict->broken, sizeof ret_verdict->broken, "%s", verdict.broken);
}

static const struct seeds seeds = {
    .replay = "scripts/soak --seed",
    .count = SEEDS,
    .repeat_every = 40,
    .seconds_max = 30,
    .run = run_one,
};

TEST(test_seeds)
{
    struct verdict sum = {0};

    seeds_expect_well(&seeds, &sum);
    check_reach(&sum);
}

/* 205387, 2076418: a straggler's late result had the chief drop, on that worker, the copy
 * of the result that it had sent there as an input; what ran there waited for ever. */
TEST(test_seeds_that_once_failed)
{
    static const uint64_t list[] = {205387, 2076418};

    seeds_expect_well_again(&seeds, list, sizeof list / sizeof list[0]);
}

SEEDS_PROGRAM(seeds)
