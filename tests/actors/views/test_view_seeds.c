/* Views under faults that all follow from a seed: servers crash, come back, lose their
 * links; the chief is restarted, and some servers have not heard of its last decisions;
 * primaries say that other replicas are lost or level, or that they are ready to hand
 * over; servers are added and drained. Servers write meanwhile: a write is acknowledged
 * when the primary and the backup of the same view have it.
 *
 * Looked for all the time: who becomes primary has all that was acknowledged; a partition
 * begins empty only if no server that is up has it; a number stands for one view. In the
 * end all heals, and each partition is served, with a backup; in some runs moves come to
 * an end then, load is spread, and drained servers have nothing.
 *
 * In a third of the runs servers have journals: a new process has what the former one was
 * the primary of, unless it had just got that. Without backups nothing is lost then.
 *
 * Half of the runs have a store, which keeps what was decided. In the others a restarted
 * chief cannot know (view_table.h) that the primary of the newest view, or a backup that
 * was made it, died without a report: that is told apart. */
#include "sim/world/random.h"
#include "tests/support/seeds.h"
#include "tests/support/views/model.h"
#include "tests/support/views/reached.h"

#include <inttypes.h>

enum {
    SEEDS = 1500,
    STEPS = 150,
    WATCHED = 12,
    STORES_MAX = 64,
    VIEWS_MAX = 512,
    ROUNDS_MAX = 1000,
    SPREAD_EVERY = 10 /* seeds, as it takes long */
};

/* What a server has of a partition. */
struct store {
    uint64_t store_id;
    uint64_t count; /* writes that it has */
    bool stopped;   /* as a primary: until it hears of another view */
};

/* One that began empty; and what was acknowledged of it. */
struct epoch {
    uint64_t store_id;
    uint64_t acknowledged;
    bool is_given_up; /* by a chief that could not know */
};

struct partition {
    struct store stores[MODEL_SERVERS];
    struct epoch epochs[STORES_MAX];
    uint32_t epochs_count;
    struct mu__partition_view newest;           /* of which its own primary has heard; */
    uint32_t reported_to;                       /* who has reported to this chief, last */
    struct mu__partition_view views[VIEWS_MAX]; /* that anybody has heard of */
    uint32_t views_count;
};

struct run {
    struct view_model model;
    struct sim_random random;
    uint32_t servers;
    uint32_t chiefs;
    bool crashes, cuts, restarts, news, drains;
    bool has_store;
    bool journals;
    bool draining[MODEL_SERVERS];
    bool show;
    uint64_t digest;
    uint64_t *reached;
    char *broken;
    struct partition partitions[WATCHED];
};

#define BREAK(run, ...)                                      \
    do {                                                     \
        if ((run)->broken[0] == '\0')                        \
            (void)snprintf((run)->broken, 256, __VA_ARGS__); \
    } while (0)

static uint64_t draw(struct run *run, uint64_t min, uint64_t max)
{
    return sim_between(&run->random, min, max);
}

static bool chance(struct run *run, unsigned percent)
{
    return sim_chance(&run->random, percent);
}

/* ---- What is heard ---- */

static struct epoch *epoch_of(struct partition *partition, uint64_t life)
{
    for (uint32_t i = 0; i < partition->epochs_count; i++)
        if (partition->epochs[i].store_id == life)
            return &partition->epochs[i];
    assert_true(partition->epochs_count < STORES_MAX);
    partition->epochs[partition->epochs_count].store_id = life;
    return &partition->epochs[partition->epochs_count++];
}

/* A number of a store stands for one view. */
static void check_number(struct run *run, struct partition *partition,
                         const struct mu__partition_view *view)
{
    for (uint32_t i = 0; i < partition->views_count; i++) {
        const struct mu__partition_view *other = &partition->views[i];

        if (other->number != view->number || other->store_id != view->store_id)
            continue;
        if (!model_is_same(other, view))
            BREAK(run, "partition %" PRIu32 ": two views have number %" PRIu64,
                  view->partition, view->number);
        return;
    }
    assert_true(partition->views_count < VIEWS_MAX);
    partition->views[partition->views_count++] = *view;
}

/* The primary of the newest view died, and this chief never heard of what it knew. */
static bool is_unknown(const struct run *run, const struct partition *partition)
{
    return !run->has_store && partition->newest.number != 0 &&
           partition->reported_to != run->chiefs &&
           !model_is_alive(&run->model, &partition->newest.primary);
}

static bool holds_newest(const struct run *run, const struct partition *partition,
                         const struct mu__replica *replica)
{
    const struct model_server *server = &run->model.servers[replica->task];

    return model_is_up(&run->model, replica) &&
           server->views[partition->newest.partition].number == partition->newest.number;
}

/* The server's process speaks for that one of its task, and has from their journal what
 * that had. */
static bool has_restored(const struct run *run, const struct mu__partition_view *view,
                         const struct mu__replica *replica, uint32_t task)
{
    const struct model_server *server = &run->model.servers[task];

    return server->runs && model_is_former(&run->model, replica, task) &&
           server->journaled[view->partition] == view->store_id;
}

static bool holds_restored(const struct run *run, const struct partition *partition)
{
    const struct mu__replica *primary = &partition->newest.primary;
    const struct model_server *server = &run->model.servers[primary->task];

    return has_restored(run, &partition->newest, primary, primary->task) &&
           server->has_reported &&
           server->views[partition->newest.partition].number == partition->newest.number;
}

/* Each partition is in some journal all the time. */
static bool loses_nothing(const struct run *run)
{
    return run->journals && run->model.config.backups == 0;
}

/* A store begins empty in place of another one. */
static void check_beginning(struct run *run, struct partition *partition,
                            const struct mu__partition_view *view)
{
    const struct mu__partition_view *newest = &partition->newest;

    if (newest->number == 0)
        return;
    run->reached[LOST]++;
    if (is_unknown(run, partition)) {
        run->reached[UNKNOWN_PRIMARY]++;
        epoch_of(partition, newest->store_id)->is_given_up = true;
    } else if (holds_newest(run, partition, &newest->primary) ||
               holds_newest(run, partition, &newest->backup) ||
               holds_restored(run, partition) || loses_nothing(run))
        BREAK(run, "partition %" PRIu32 ": it begins empty, and its data is there",
              view->partition);
}

/* The primary of a view has heard of it. */
static void check_primary(struct run *run, struct partition *partition,
                          const struct store *store,
                          const struct mu__partition_view *view)
{
    const struct mu__partition_view *newest = &partition->newest;
    uint32_t epochs_count = partition->epochs_count;
    struct epoch *epoch = epoch_of(partition, view->store_id);

    if (partition->epochs_count > epochs_count)
        check_beginning(run, partition, view);
    if (store->count < epoch->acknowledged) {
        run->reached[UNKNOWN_BACKUP]++;
        if (!is_unknown(run, partition) && !epoch->is_given_up)
            BREAK(run,
                  "partition %" PRIu32 ", view %" PRIu64 ": the primary has %" PRIu64
                  " writes of %" PRIu64,
                  view->partition, view->number, store->count, epoch->acknowledged);
        epoch->acknowledged = store->count;
    }
    if (view->number <= newest->number)
        return;
    run->reached[PROMOTED] +=
        view->store_id == newest->store_id && view->primary.task != newest->primary.task;
    run->reached[RESTORED] +=
        view->store_id == newest->store_id &&
        has_restored(run, view, &newest->primary, view->primary.task);
    run->reached[RESTORED_FORMER] +=
        view->store_id == newest->store_id &&
        has_restored(run, view, &newest->backup, view->primary.task);
    partition->newest = *view;
    partition->reported_to = run->chiefs;
}

/* What a server does with its store: it begins one, and drops it. */
static void take_view(const struct run *run, struct store *store,
                      const struct mu__partition_view *view, uint32_t task)
{
    uint64_t incarnation = run->model.servers[task].incarnation;
    bool is_empty = store->store_id != view->store_id ||
                    mu__replica_is(&view->learner, task, incarnation);

    if (!is_empty && (has_restored(run, view, &view->primary, task) ||
                      has_restored(run, view, &view->backup, task)))
        return; /* it may be given back */
    if (!model_is_member(view, task, incarnation))
        *store = (struct store){0};
    else if (is_empty)
        *store = (struct store){.store_id = view->store_id};
    store->stopped = false;
}

static void heard(struct view_model *model, uint32_t task,
                  const struct mu__partition_view *view)
{
    struct run *run = model->owner;
    uint64_t incarnation = model->servers[task].incarnation;
    struct partition *partition;

    run->digest = sim_mix(run->digest ^ view->number ^ view->store_id);
    if (view->partition >= WATCHED)
        return;
    if (run->show)
        print_message("  %" PRIu32 " hears of %" PRIu32 ": %" PRIu64 " (%" PRIu64
                      ") %" PRIu32 ".%" PRIu64 " %" PRIu32 ".%" PRIu64 " %" PRIu32
                      ".%" PRIu64 "\n",
                      task, view->partition, view->number, view->store_id % 1000,
                      view->primary.task, view->primary.incarnation, view->backup.task,
                      view->backup.incarnation, view->learner.task,
                      view->learner.incarnation);
    partition = &run->partitions[view->partition];
    check_number(run, partition, view);
    take_view(run, &partition->stores[task], view, task);
    if (mu__replica_is(&view->primary, task, incarnation))
        check_primary(run, partition, &partition->stores[task], view);
}

/* ---- What servers do ---- */

/* The view of a server that takes itself for the primary; NULL: it does not. */
static const struct mu__partition_view *view_as_primary(const struct run *run,
                                                        uint32_t task, uint32_t partition)
{
    const struct model_server *server = &run->model.servers[task];
    const struct mu__partition_view *view = &server->views[partition];

    return server->runs && mu__replica_is(&view->primary, task, server->incarnation)
               ? view
               : NULL;
}

/* A backup takes what is of its own view. */
static bool write_backup(struct run *run, const struct mu__partition_view *view,
                         uint64_t count)
{
    const struct model_server *backup = &run->model.servers[view->backup.task];

    if (!model_is_alive(&run->model, &view->backup) ||
        backup->views[view->partition].number != view->number)
        return false;
    run->partitions[view->partition].stores[view->backup.task].count = count;
    return true;
}

static void try_write(struct run *run, uint32_t task, uint32_t number)
{
    const struct mu__partition_view *view = view_as_primary(run, task, number);
    struct partition *partition = &run->partitions[number];
    struct store *store = &partition->stores[task];
    struct epoch *epoch;

    if (view == NULL || store->stopped)
        return;
    if (view->backup.incarnation != 0 && !write_backup(run, view, store->count + 1))
        return;
    store->count++;
    epoch = epoch_of(partition, view->store_id);
    if (store->count <= epoch->acknowledged && view->number >= partition->newest.number)
        BREAK(run,
              "partition %" PRIu32 ": %" PRIu32 " completes a write that another "
              "primary has acknowledged",
              number, task);
    epoch->acknowledged =
        store->count > epoch->acknowledged ? store->count : epoch->acknowledged;
}

/* From then on it completes nothing before it hears of another view. */
static void say_level(struct run *run, uint32_t task, uint32_t partition)
{
    const struct mu__partition_view *view = view_as_primary(run, task, partition);
    struct store *stores = partition < WATCHED ? run->partitions[partition].stores : NULL;

    if (view == NULL || !run->model.servers[task].has_reported ||
        !model_is_alive(&run->model, &view->learner) ||
        run->model.servers[view->learner.task].views[partition].number != view->number)
        return;
    if (stores != NULL) {
        stores[task].stopped = true;
        stores[view->learner.task].count = stores[task].count;
        run->reached[FILLED]++;
    }
    assert_int_equal(model_news(&run->model, task, partition, MU__REPLICA_LEVEL), 0);
}

/* It has stopped, and the backup has all. */
static void say_ready(struct run *run, uint32_t task, uint32_t partition)
{
    const struct mu__partition_view *view = view_as_primary(run, task, partition);
    struct store *stores = partition < WATCHED ? run->partitions[partition].stores : NULL;

    if (view == NULL || !view->handover || !run->model.servers[task].has_reported ||
        !model_is_alive(&run->model, &view->backup) ||
        (stores != NULL && stores[view->backup.task].count != stores[task].count))
        return;
    if (stores != NULL) {
        stores[task].stopped = true;
        run->reached[HANDED_OVER]++;
    }
    assert_int_equal(model_news(&run->model, task, partition, MU__REPLICA_READY), 0);
}

/* `journaled`: it may have all in its journal. */
static void say_done(struct run *run, uint32_t task, uint32_t partition, bool journaled)
{
    const struct mu__partition_view *view = view_as_primary(run, task, partition);

    if (journaled && view != NULL && !view->handover && view->backup.incarnation != 0)
        (void)model_news_of(&run->model, task, partition, MU__REPLICA_SPARE, false);
    say_level(run, task, partition);
    say_ready(run, task, partition);
}

static void say_lost(struct run *run, uint32_t task, uint32_t partition)
{
    const struct mu__partition_view *view = view_as_primary(run, task, partition);

    if (view == NULL || !run->model.servers[task].has_reported ||
        (view->backup.incarnation == 0 && view->learner.incarnation == 0))
        return;
    run->partitions[partition].stores[task].stopped = true;
    run->reached[DROPPED]++;
    assert_int_equal(model_news(&run->model, task, partition,
                                loses_nothing(run) || chance(run, 50)
                                    ? MU__REPLICA_LOST
                                    : MU__REPLICA_DIVERGED),
                     0);
}

static void report(struct run *run, uint32_t task)
{
    struct model_server *server = &run->model.servers[task];

    for (uint32_t i = 0; i < WATCHED; i++) {
        struct partition *partition = &run->partitions[i];

        if (!mu__replica_is(&partition->newest.primary, task, server->incarnation) &&
            !has_restored(run, &partition->newest, &partition->newest.primary, task))
            continue;
        run->reached[ADOPTED] += partition->reported_to != run->chiefs;
        partition->reported_to = run->chiefs;
    }
    assert_int_equal(model_report(&run->model, task), 0);
}

/* ---- Faults ---- */

/* It has what is in its journal. */
static void restore_server(struct run *run, uint32_t task)
{
    const struct model_server *server = &run->model.servers[task];

    model_restore(&run->model, task);
    for (uint32_t i = 0; i < WATCHED; i++)
        if (server->journaled[i] != run->partitions[i].stores[task].store_id)
            run->partitions[i].stores[task] = (struct store){0};
}

static void turn_server(struct run *run, uint32_t task)
{
    struct model_server *server = &run->model.servers[task];

    if (!server->runs)
        run->draining[task] = false;
    if (!server->runs && run->journals && server->incarnation > 0) {
        restore_server(run, task);
    } else if (!server->runs) {
        model_start(&run->model, task);
        for (uint32_t i = 0; i < WATCHED; i++)
            run->partitions[i].stores[task] = (struct store){0};
    } else if (run->crashes && chance(run, 30)) {
        model_crash(&run->model, task);
    }
}

static void turn_link(struct run *run, uint32_t task)
{
    struct model_server *server = &run->model.servers[task];

    if (run->model.table == NULL || !server->runs)
        return;
    if (server->node == 0)
        model_link(&run->model, task);
    if (!server->has_reported)
        report(run, task);
    else if (run->cuts && chance(run, 30))
        model_unlink(&run->model, task);
}

/* Some do not hear of what the chief decides just before its end. */
static void turn_chief(struct run *run)
{
    if (run->model.table == NULL) {
        run->chiefs++;
        if (!run->has_store)
            model_store_lost(&run->model);
        model_chief_start(&run->model);
        for (uint32_t i = 0; i < run->servers; i++)
            run->draining[i] = run->model.servers[i].draining;
        return;
    }
    run->model.told = (unsigned)draw(run, 0, MODEL_TO_ALL);
    model_pass(&run->model, draw(run, 0, 30));
    model_chief_crash(&run->model);
    run->model.told = MODEL_TO_ALL;
}

/* What is sent to a server is lost, as its link breaks. */
static void turn_deaf(struct run *run, uint32_t task)
{
    if (run->model.table == NULL || run->model.servers[task].node == 0)
        return;
    run->model.told = MODEL_TO_ALL & ~(1U << task);
    model_pass(&run->model, draw(run, 0, 30));
    run->model.told = MODEL_TO_ALL;
    model_unlink(&run->model, task);
}

static void turn_drain(struct run *run, uint32_t task)
{
    if (run->model.table != NULL && run->model.servers[task].node != 0)
        run->draining[task] = mu__view_table_drain(run->model.table, task);
}

static void act(struct run *run)
{
    uint32_t task = (uint32_t)draw(run, 0, run->servers - 1);
    uint32_t partition = (uint32_t)draw(run, 0, WATCHED - 1);
    unsigned what = (unsigned)draw(run, 0, 99);

    if (run->show)
        print_message("%" PRIu64 ": %u at %" PRIu32 ", %" PRIu32 "\n", run->model.now_ms,
                      what, task, partition);
    if (what < 12)
        turn_server(run, task);
    else if (what < 40)
        turn_link(run, task);
    else if (what < 44 && run->cuts)
        turn_deaf(run, task);
    else if (run->model.table == NULL ? what < 60 : what < 47 && run->restarts)
        turn_chief(run);
    else if (what < 50 && run->drains)
        turn_drain(run, task);
    else if (what >= 60 && what < 65 && run->news)
        for (uint32_t i = 0; i < run->servers && run->model.table != NULL; i++)
            say_lost(run, i, partition);
    else if (what >= 65 && run->model.table != NULL)
        for (uint32_t i = 0; i < run->servers; i++)
            say_done(run, i, partition, what >= 85 || !loses_nothing(run));
}

static void step(struct run *run)
{
    act(run);
    if (run->model.table != NULL)
        model_settle(&run->model);
    model_pass(&run->model, chance(run, 50) ? 0 : draw(run, 0, 40));
    for (uint32_t i = 0; i < WATCHED; i++)
        for (uint32_t task = 0; task < run->servers; task++)
            if (chance(run, 30))
                try_write(run, task, i);
    if (run->model.refused > 0)
        BREAK(run, "a server is told a view that is not newer than what it holds");
}

/* ---- The end ---- */

static void step_moves(struct run *run)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        for (uint32_t task = 0; task < run->servers; task++)
            say_done(run, task, i, true);
    model_settle(&run->model);
}

static void heal(struct run *run)
{
    if (run->model.table == NULL)
        turn_chief(run);
    for (uint32_t task = 0; task < run->servers; task++) {
        if (!run->model.servers[task].runs)
            turn_server(run, task);
        if (run->model.servers[task].node == 0)
            model_link(&run->model, task);
        if (!run->model.servers[task].has_reported)
            report(run, task);
        model_settle(&run->model);
    }
    model_pass(&run->model, run->model.config.recovery_ms);
    for (int round = 0; round < 3; round++)
        step_moves(run);
}

/* Of the servers that take more: the least and the most that one has. */
struct range {
    uint32_t least;
    uint32_t most;
};

static void add_to_range(struct range *range, uint32_t count)
{
    range->least = count < range->least ? count : range->least;
    range->most = count > range->most ? count : range->most;
}

static void check_spread(struct run *run)
{
    struct range primaries = {.least = UINT32_MAX};
    struct range backups = {.least = UINT32_MAX};
    struct mu__view_roles roles;

    for (uint32_t i = 0; mu__view_table_roles(run->model.table, i, &roles); i++) {
        if (!run->draining[roles.task]) {
            add_to_range(&primaries, roles.primary);
            add_to_range(&backups, roles.backup);
        } else if (roles.primary + roles.backup + roles.learner > 0)
            BREAK(run, "%" PRIu32 " has something, and should have nothing", roles.task);
    }
    if (primaries.most > primaries.least + 1 || backups.most > backups.least + 1)
        BREAK(run,
              "servers have %" PRIu32 " to %" PRIu32 " primaries, %" PRIu32 " to %" PRIu32
              " backups",
              primaries.least, primaries.most, backups.least, backups.most);
    run->reached[SPREAD]++;
}

static uint64_t sum_of_numbers(const struct run *run)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = mu__view_table_at(run->model.table, i);

        sum += view == NULL ? 0 : view->number;
    }
    return sum;
}

static void spread(struct run *run)
{
    uint64_t last = 0;
    int rounds = 0;

    for (; last != sum_of_numbers(run) && rounds < ROUNDS_MAX; rounds++) {
        last = sum_of_numbers(run);
        step_moves(run);
    }
    if (rounds == ROUNDS_MAX)
        BREAK(run, "moves do not come to an end");
    check_spread(run);
}

static uint32_t count_open(const struct run *run)
{
    uint32_t count = 0;

    for (uint32_t task = 0; task < run->servers; task++)
        count += !run->draining[task];
    return count;
}

static void check_member(struct run *run, const struct mu__replica *member,
                         const struct mu__partition_view *view)
{
    if (member->incarnation != 0 &&
        !model_is_same(&run->model.servers[member->task].views[view->partition], view))
        BREAK(run, "partition %" PRIu32 ": %" PRIu32 " was not told of its view",
              view->partition, member->task);
}

static void check_served(struct run *run, uint32_t up)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = mu__view_table_at(run->model.table, i);

        if (view == NULL || !model_is_up(&run->model, &view->primary)) {
            BREAK(run, "partition %" PRIu32 " is not served", i);
            return;
        }
        check_member(run, &view->primary, view);
        check_member(run, &view->backup, view);
        if (up > 1 && run->model.config.backups > 0 &&
            !model_is_up(&run->model, &view->backup))
            BREAK(run, "partition %" PRIu32 " has no backup", i);
    }
}

static void begin(struct run *run, uint64_t seed)
{
    struct mu__view_config config = {.grace_ms = 20, .recovery_ms = 200};

    run->random = sim_stream(seed, 1);
    run->servers = (uint32_t)draw(run, 2, MODEL_SERVERS);
    config.servers = run->servers;
    config.backups = chance(run, 85);
    run->crashes = chance(run, 80);
    run->cuts = chance(run, 70);
    run->restarts = chance(run, 60);
    run->news = chance(run, 60);
    run->has_store = chance(run, 50);
    run->drains = chance(run, 30);
    run->journals = chance(run, 33);
    config.backups &= !run->journals || chance(run, 50);
    run->chiefs = 1;
    model_init(&run->model, &config, sim_draw(&run->random));
    run->model.journals = run->journals;
    run->model.owner = run;
    run->model.heard = heard;
}

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    uint64_t again[REACHED] = {0};
    struct run *run = calloc(1, sizeof *run);

    assert_non_null(run);
    run->reached = sum == NULL ? again : sum;
    run->broken = ret_verdict->broken;
    run->show = show;
    begin(run, seed);
    for (int i = 0; i < STEPS && run->broken[0] == '\0'; i++)
        step(run);
    heal(run);
    check_served(run, count_open(run));
    if (run->broken[0] == '\0' && count_open(run) > run->model.config.backups &&
        seed % SPREAD_EVERY == 0)
        spread(run);
    ret_verdict->digest = run->digest;
    model_done(&run->model);
    free(run);
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of view --seed",
    .count = SEEDS,
    .repeat_every = 40,
    .seconds_max = 10,
    .run = run_one,
};

TEST(test_seeds)
{
    uint64_t reached[REACHED] = {0};

    seeds_expect_well(&seeds, reached);
    for (int i = 0; i < REACHED; i++) {
        print_message("%" PRIu64 " %s\n", reached[i], reached_words[i]);
        if (seeds_count() >= SEEDS)
            assert_true(reached[i] > 10);
    }
}

SEEDS_PROGRAM(seeds)
