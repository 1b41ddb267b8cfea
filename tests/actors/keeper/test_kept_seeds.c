/* Kept counters of a whole cluster, while processes crash, stand still and lose each
 * other, the keeper's disk is full or cannot be flushed, and each counter gets new owners
 * at any time, whatever the former one does. All of it follows from a seed.
 *
 * What must be: each call ends once, and the history of each counter is linearizable, so
 * what was answered has taken effect once, and nobody has seen what was lost. Callers
 * that live have all their answers once the faults are over. */
#include "actors/keeper/kept_state.h"
#include "sim/world/chaos.h"
#include "sim/world/inner.h"
#include "sim/world/storage.h"
#include "tests/sim/cluster.h"
#include "tests/sim/verdict.h"
#include "tests/support/linear/linear.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"
#include "tests/support/users/kept_net.h"

#include <inttypes.h>

enum {
    SEEDS = 60,
    BEGIN_MS = 1000,
    BUSY_MS = 5000,
    CALM_MS = 10000,
    NAMES = 2,
    CALLS_MAX = 1 << 10,
    PATIENT_MS = 60000,
    UNENDED_MAX = 4, /* of one caller to one name */
    STATES_MAX = 1 << 15,
    REWRITE_BYTES = 1 << 12 /* in steps of 128 */
};

enum reached {
    ANSWERED,
    FAILED,
    UNKNOWN,
    LIVES,
    FENCED,
    FULL_DISKS,
    TORN,
    RENEWED,
    JUDGED,
    REACHED
};

static const char *const reached_words[REACHED] = {
    "calls answered",      "calls that failed", "calls of unknown fate",
    "lives of counters",   "lives cut off",     "full disks",
    "lives of the keeper", "steps of rewrites", "histories judged",
};

struct one_call {
    size_t op;
    uint64_t caller; /* process */
    int64_t timeout_ms;
    bool fails;
    bool ended;
};

struct name {
    char name[16];
    struct cluster_task *task; /* that owns it, as far as the driver knows; */
    uint64_t owner;            /* its process; 0: none */
    uint64_t epoch;
    bool is_born;
    bool has_ended;
};

struct run {
    struct cluster *cluster;
    struct sim_random random;
    struct sim_storage *storage;
    struct name names[NAMES];
    struct linear history;
    struct one_call calls[CALLS_MAX];
    unsigned calls_count;
    unsigned lives[CLUSTER_TASKS_MAX];
    uint32_t callers[CLUSTER_TASKS_MAX]; /* an actor of each process */
    uint64_t next_ms;
    bool is_over;
    uint64_t *reached;
};

static struct run *run;

static uint64_t draw(uint64_t min, uint64_t max)
{
    return sim_between(&run->random, min, max);
}

static struct office *office_at(const struct cluster_task *task)
{
    return task->runs && sim_alive(task->node)
               ? mu__actor_state(task->member.kernel,
                                 (mu__pid){MU__NODE_SELF, MU__ACTORS})
               : NULL;
}

/* ---- callers ---- */

static void on_caller_notice(mu_actor *self, void *state, const mu_notice *notice)
{
    struct one_call *call = &run->calls[notice->token];
    int64_t number = 0;

    (void)self;
    (void)state;
    if (call->ended)
        cluster_break(run->cluster, "call %" PRIu64 " has ended twice", notice->token);
    call->ended = true;
    if (notice->error == NULL) {
        (void)mu_value_get_int(notice->value, &number);
        linear_end(&run->history, call->op, 0, number, 0);
        run->reached[ANSWERED]++;
    } else if (call->fails || notice->error->ran == MU_RAN_NO) {
        linear_drop(&run->history, call->op);
        run->reached[FAILED]++;
    } else {
        run->reached[UNKNOWN]++;
    }
    if (call->fails && notice->error == NULL)
        cluster_break(run->cluster, "a call that fails was answered");
    if (notice->error != NULL && !call->fails && call->timeout_ms == PATIENT_MS)
        cluster_break(run->cluster, "a call was not answered: %s",
                      notice->error->message);
}

static const mu_actor_type caller = {.name = "caller", .notice = on_caller_notice};

static unsigned count_unended(uint64_t process)
{
    unsigned count = 0;

    for (unsigned i = 0; i < run->calls_count; i++)
        count += run->calls[i].caller == process && !run->calls[i].ended;
    return count;
}

static void begin_call(struct office *office, uint32_t by, const char *name,
                       const char *method, mu_value *args, uint64_t token)
{
    const mu_address anywhere = {.index = 0};
    struct pending_call *call =
        mu__call_new(office, &anywhere, method, run->calls[token].timeout_ms);
    struct mail *mail;
    mu_error error;

    call->owner = mu__actor_find(office, by);
    call->token = token;
    call->owner->calls_count++;
    assert_int_equal(
        mu__kept_call_make(office, name, method, args, call, 0, &error, &mail), 0);
    mu__turn_do(office, mail);
    mu_value_free(args);
}

static void call_some(struct office *office, uint32_t by)
{
    unsigned which = (unsigned)draw(0, NAMES - 1);
    unsigned kind = (unsigned)draw(0, 9);
    const struct linear_op op = {.kind = LINEAR_INCREMENT,
                                 .key = which,
                                 .value =
                                     kind < 6 ? 1 + (int64_t)draw(0, 1000000000) : 0};
    struct one_call *call = &run->calls[run->calls_count];

    if (run->calls_count >= CALLS_MAX ||
        count_unended(office->config.incarnation) >= UNENDED_MAX)
        return;
    *call = (struct one_call){
        .op = linear_begin(&run->history, &op),
        .caller = office->config.incarnation,
        .timeout_ms = draw(0, 3) == 0 ? (int64_t)draw(20, 500) : PATIENT_MS,
        .fails = kind == 9, /* and changes nothing, as "get" */
    };
    begin_call(office, by, run->names[which].name,
               kind < 6   ? "add"
               : kind < 9 ? "get"
                          : "bad",
               mu_value_int(op.value), run->calls_count++);
}

/* ---- owners ---- */

static void on_kept_news(void *owner, const char *name, enum mu__kept_news news,
                         const mu_error *error)
{
    struct name *own = owner;

    (void)name;
    own->is_born |= news == MU__KEPT_BORN;
    if (news == MU__KEPT_ENDED && error != NULL && error->code == -MU_EPERMISSION)
        run->reached[FENCED]++;
    else if (news == MU__KEPT_ENDED && error != NULL)
        cluster_break(run->cluster, "a life has ended: %s", error->message);
}

static void route_all(const struct name *name)
{
    const mu_address owner = {
        .type = "worker", .index = name->task->index, .incarnation = name->owner};

    for (unsigned i = 0; i < run->cluster->tasks_count; i++) {
        struct office *office = office_at(&run->cluster->tasks[i]);

        if (office != NULL)
            mu__kept_route(office, name->name, &owner);
    }
}

static void own_somewhere(struct name *name)
{
    struct cluster_task *task =
        run->cluster->workers[draw(0, run->cluster->options.workers - 1)];
    struct office *office = office_at(task);
    const struct mu__kept_own own = {
        .name = name->name,
        .epoch = name->epoch + 1,
        .type = &kept_counter,
        .is_born = name->is_born,
        .keeper_type = "chief",
        .news = on_kept_news,
        .owner = name,
    };

    if (office == NULL || mu__kept_own(office, &own, NULL) != 0)
        return;
    name->epoch++;
    name->task = task;
    name->owner = office->config.incarnation;
    run->reached[LIVES]++;
    route_all(name);
}

static bool is_owned(const struct name *name)
{
    const struct office *office = name->task == NULL ? NULL : office_at(name->task);

    return office != NULL && office->config.incarnation == name->owner &&
           mu__kept_find(office, mu__view_str(name->name)) != NULL;
}

/* ---- the keeper ---- */

static void start_keeper(struct cluster_task *chief)
{
    const struct mu__keeper_config config = {.storage = &run->storage->base,
                                             .bytes_max = MU__KEEPER_BYTES,
                                             .rewrite_bytes = REWRITE_BYTES};

    sim_storage_crash(run->storage);
    run->reached[TORN]++;
    assert_int_equal(
        mu__spawn(chief->member.kernel, &mu__keeper, MU__KEEPER, &config, NULL), 0);
}

static void hurt_disk(void)
{
    unsigned kind = (unsigned)draw(0, 3);

    sim_storage_limit(run->storage, 0);
    if (run->is_over)
        return;
    if (kind == 0) {
        sim_storage_limit(run->storage, run->storage->size + draw(0, 500));
        run->reached[FULL_DISKS]++;
    } else if (kind == 1) {
        sim_storage_fail(run->storage, SIM_STORAGE_FLUSH, (unsigned)draw(1, 5),
                         -MU_EUNAVAILABLE);
    }
}

/* ---- after each event ---- */

static void greet_process(unsigned i)
{
    struct cluster_task *task = &run->cluster->tasks[i];
    struct office *office = office_at(task);
    mu_actor_options options;
    struct mail *start;

    run->lives[i] = sim_lives(task->node);
    assert_int_equal(mu__actors_read_options(NULL, NULL, &options), 0);
    assert_int_equal(mu__types_add(office, &caller, NULL), 0);
    assert_int_equal(mu__spawn_user(office, mu__view_str("caller"), NULL, NULL, &options,
                                    NULL, &start),
                     0);
    run->callers[i] = start->actor;
    mu__turn_do(office, start);
    if (task == run->cluster->chief)
        start_keeper(task);
    for (unsigned j = 0; j < NAMES; j++)
        if (run->names[j].owner != 0)
            route_all(&run->names[j]);
}

static void do_something(struct sim *sim)
{
    struct cluster *cluster = run->cluster;

    run->next_ms = sim_now_ms(sim) + draw(1, 60);
    for (unsigned i = 0; i < NAMES; i++)
        if (is_owned(&run->names[i]) ? !run->is_over && draw(0, 19) == 0
                                     : draw(0, 4) == 0)
            own_somewhere(&run->names[i]);
    if (draw(0, 19) == 0 || run->is_over)
        hurt_disk();
    for (unsigned i = 0; i < cluster->tasks_count && !run->is_over; i++) {
        struct office *office = office_at(&cluster->tasks[i]);

        if (office != NULL && run->callers[i] != 0 && draw(0, 2) == 0 &&
            mu__actor_find(office, run->callers[i]) != NULL)
            call_some(office, run->callers[i]);
    }
}

static void look(struct sim *sim, void *arg)
{
    struct cluster *cluster = run->cluster;

    (void)arg;
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        if (office_at(&cluster->tasks[i]) != NULL &&
            run->lives[i] != sim_lives(cluster->tasks[i].node))
            greet_process(i);
    if (sim_now_ms(sim) >= run->next_ms)
        do_something(sim);
}

static bool process_lives(uint64_t incarnation)
{
    for (unsigned i = 0; i < run->cluster->tasks_count; i++) {
        const struct office *office = office_at(&run->cluster->tasks[i]);

        if (office != NULL && office->config.incarnation == incarnation)
            return true;
    }
    return false;
}

static void check_end(void)
{
    enum linear_verdict verdict;
    char why[1024];

    for (unsigned i = 0; i < run->calls_count; i++) {
        if (!run->calls[i].ended && process_lives(run->calls[i].caller))
            cluster_break(run->cluster, "call %u has not ended", i);
        if (!run->calls[i].ended && run->history.ops[run->calls[i].op].value == 0)
            linear_drop(&run->history, run->calls[i].op);
    }
    verdict =
        linear_judge(run->history.ops, run->history.count, STATES_MAX, why, sizeof why);
    run->reached[JUDGED] += verdict == LINEAR_GOOD;
    if (verdict == LINEAR_BAD)
        cluster_break(run->cluster, "%s", why);
}

/* ---- runs ---- */

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    uint64_t again[REACHED] = {0};
    const struct cluster_options options = {.workers = 3, .clients = 1};
    struct sim *sim;

    run = calloc(1, sizeof *run);
    assert_non_null(run);
    run->reached = sum == NULL ? again : sum;
    run->random = sim_stream(seed, 114);
    run->storage = sim_storage_new("actors.kept", seed);
    for (unsigned i = 0; i < NAMES; i++)
        (void)snprintf(run->names[i].name, sizeof run->names[i].name, "counter-%u", i);
    run->cluster = cluster_new(seed, &options);
    sim = run->cluster->sim;
    sim_settings_draw(sim);
    cluster_start_all(run->cluster);
    sim_set_check(sim, look, NULL);
    sim_run_until(sim, BEGIN_MS);
    verdict_begin_chaos(run->cluster, BEGIN_MS + BUSY_MS);
    sim_run_until(sim, BEGIN_MS + BUSY_MS);
    run->is_over = true;
    sim_run_until(sim, BEGIN_MS + BUSY_MS + CALM_MS);
    run->reached[RENEWED] += run->storage->counts[SIM_STORAGE_RENEW];
    check_end();
    verdict_of(run->cluster, show, ret_verdict);
    cluster_free(run->cluster);
    sim_storage_free(run->storage);
    linear_done(&run->history);
    free(run);
    run = NULL;
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of kept --seed",
    .count = SEEDS,
    .repeat_every = 20,
    .seconds_max = 60,
    .run = run_one,
};

TEST(test_seeds)
{
    seeds_expect_reached(&seeds, reached_words, REACHED);
}

SEEDS_PROGRAM(seeds)
