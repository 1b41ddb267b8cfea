/* Kept actors with names in a whole cluster, as programs have them: the service, with a
 * journal, makes and places them, its host keeps them, and processes, the host's too,
 * crash, stand still and lose each other. All of it follows from a seed.
 *
 * What must be: the history of each counter is linearizable, and each call ends once;
 * what a process sends to a counter is taken in order, without a gap, once; what `start`
 * has done happens once. Spare counters are made and stopped all the time: in the end
 * nothing is kept of them. */
#include "actors/coordination/store/journal.h"
#include "actors/coordination/store/store.h"
#include "actors/keeper/kept_state.h"
#include "actors/user/actions.h"
#include "sim/world/chaos.h"
#include "sim/world/inner.h"
#include "sim/world/storage.h"
#include "tests/sim/cluster.h"
#include "tests/sim/verdict.h"
#include "tests/support/linear/linear.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SEEDS = 60,
    BEGIN_MS = 1000,
    BUSY_MS = 6000,
    CALM_MS = 20000,
    NAMES = 5,
    SPARES = 3,
    SLOTS_MAX = 200, /* lives of processes */
    CALLS_MAX = 1 << 11,
    PATIENT_MS = 60000,
    UNENDED_MAX = 4, /* of one process to one name */
    STATES_MAX = 1 << 15
};

enum reached {
    ANSWERED,
    FAILED,
    UNKNOWN,
    MARKED,
    BEGUN,
    LIVES,
    HOSTS,
    DROPPED,
    JUDGED,
    REACHED
};

static const char *const reached_words[REACHED] = {
    "calls answered",        "calls that failed",
    "calls of unknown fate", "marks of processes that live",
    "counters begun",        "lives of counters",
    "lives of the host",     "states dropped",
    "histories judged",
};

struct one_call {
    size_t op;
    unsigned slot;
    unsigned name;
    bool is_patient;
    bool fails;
    bool ended;
};

struct slot {
    uint64_t process;
    unsigned unended[NAMES];
    bool knows[NAMES]; /* that it is a kept actor */
    uint32_t sent[NAMES];
};

static struct run {
    struct cluster *cluster;
    struct sim_random random;
    struct sim_storage *store;
    struct sim_storage *kept;
    struct linear history;
    struct one_call calls[CALLS_MAX];
    unsigned calls_count;
    struct slot slots[SLOTS_MAX];
    unsigned slots_count;
    unsigned lives[CLUSTER_TASKS_MAX];
    unsigned begun[NAMES];
    bool is_over;
    uint64_t *reached;
} * run;

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

/* ---- counters ---- */

struct counter {
    int64_t sum;
    uint32_t marks[SLOTS_MAX]; /* the last of each process */
};

/* It is made when what `start` has kept is flushed. */
static int begin_mark(mu_actor *self, void *state, const mu_value *args)
{
    int64_t name = 0;

    (void)self;
    (void)state;
    assert_int_equal(mu_value_get_int(args, &name), 0);
    if (++run->begun[name] > 1)
        cluster_break(run->cluster, "counter %" PRId64 " has begun twice", name);
    run->reached[BEGUN]++;
    return 0;
}

static const mu_actor_type mark_type = {.name = "mark", .start = begin_mark};

static int begin_counter(mu_actor *self, void *state, const mu_value *args)
{
    mu_address mark;

    (void)state;
    return mu_actor_spawn(self, "mark", args, NULL, &mark);
}

static int keep(mu_actor *self, int64_t slot, int64_t number)
{
    mu_value *record = mu_value_list();
    int rv;

    (void)mu_value_append(record, mu_value_int(slot));
    (void)mu_value_append(record, mu_value_int(number));
    rv = mu_actor_record(self, record);
    mu_value_free(record);
    return rv;
}

static int add(mu_actor *self, void *state, const mu_value *args)
{
    int64_t number = 0;
    int rv;

    assert_int_equal(mu_value_get_int(args, &number), 0);
    rv = keep(self, -1, number);
    mu_actor_reply(self, mu_value_int(((struct counter *)state)->sum));
    return rv;
}

static int get(mu_actor *self, void *state, const mu_value *args)
{
    (void)args;
    mu_actor_reply(self, mu_value_int(((struct counter *)state)->sum));
    return 0;
}

static int change_mind(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    assert_int_equal(keep(self, -1, 100), 0);
    return mu_actor_fail(self, -MU_EABORTED, "it has changed its mind");
}

/* [slot, number] */
static int mark(mu_actor *self, void *state, const mu_value *args)
{
    const struct counter *counter = state;
    int64_t slot = 0;
    int64_t number = 0;

    assert_int_equal(mu_value_get_int(mu_value_at(args, 0), &slot), 0);
    assert_int_equal(mu_value_get_int(mu_value_at(args, 1), &number), 0);
    if (number != (int64_t)counter->marks[slot] + 1)
        cluster_break(run->cluster,
                      "mark %" PRId64 " of process %" PRId64 " comes behind %" PRIu32,
                      number, slot, counter->marks[slot]);
    return keep(self, slot, number);
}

static int save(void *state, mu_value **ret_saved)
{
    *ret_saved = mu_value_bytes(state, sizeof(struct counter));
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static int load(mu_actor *self, void *state, const mu_value *saved, unsigned version)
{
    const void *bytes;
    size_t size;

    (void)self;
    (void)version;
    if (saved == NULL)
        return 0;
    assert_int_equal(mu_value_get_bytes(saved, &bytes, &size), 0);
    assert_int_equal(size, sizeof(struct counter));
    memcpy(state, bytes, size);
    return 0;
}

static int replay(void *state, const mu_value *record)
{
    struct counter *counter = state;
    int64_t slot = 0;
    int64_t number = 0;

    assert_int_equal(mu_value_get_int(mu_value_at(record, 0), &slot), 0);
    assert_int_equal(mu_value_get_int(mu_value_at(record, 1), &number), 0);
    if (slot < 0)
        counter->sum += number;
    else
        counter->marks[slot] = (uint32_t)number;
    return 0;
}

static const mu_actor_method methods[] = {
    {"add", add}, {"get", get}, {"bad", change_mind}, {"mark", mark}, {NULL, NULL}};

static const mu_actor_type counter_type = {
    .name = "counter",
    .state_size = sizeof(struct counter),
    .methods = methods,
    .start = begin_counter,
    .save = save,
    .load = load,
    .replay = replay,
    .version = 1,
};

/* It keeps its state from the start on. */
static const mu_actor_type spare_type = {
    .name = "spare",
    .state_size = sizeof(struct counter),
    .methods = methods,
    .save = save,
    .load = load,
    .replay = replay,
    .version = 1,
};

/* ---- callers ---- */

struct caller {
    unsigned slot;
};

static mu_address address_of(unsigned name)
{
    mu_address address = {.number = 0};

    (void)snprintf(address.name, sizeof address.name, "counter-%u", name);
    return address;
}

static mu_address address_of_spare(unsigned spare)
{
    mu_address address = {.number = 0};

    (void)snprintf(address.name, sizeof address.name, "spare-%u", spare);
    return address;
}

static void want_kept(mu_actor *self, const char *type, mu_address address,
                      mu_value *args)
{
    mu_actor_options options;
    mu_address made;

    mu_actor_options_init(&options);
    options.name = address.name;
    options.flags = MU_ACTOR_KEPT;
    options.restarts = 64;
    options.restarts_within_ms = 1000;
    (void)mu_actor_spawn(self, type, args, &options, &made);
    mu_value_free(args);
}

static void want_counter(mu_actor *self, unsigned name)
{
    want_kept(self, "counter", address_of(name), mu_value_int(name));
}

static void make_or_stop_spare(mu_actor *self)
{
    const mu_address address = address_of_spare((unsigned)draw(0, SPARES - 1));

    if (draw(0, 1) == 0)
        want_kept(self, "spare", address, mu_value_int(0));
    else
        (void)mu_actor_stop(self, &address, (int)draw(0, 1));
}

static void stop_spares(mu_actor *self)
{
    for (unsigned i = 0; i < SPARES; i++) {
        const mu_address address = address_of_spare(i);

        (void)mu_actor_stop(self, &address, MU_STOP_AFTER_QUEUE);
    }
}

static void call_counter(mu_actor *self, unsigned slot, unsigned name)
{
    unsigned kind = (unsigned)draw(0, 9);
    const struct linear_op op = {.kind = LINEAR_INCREMENT,
                                 .key = name,
                                 .value =
                                     kind < 6 ? 1 + (int64_t)draw(0, 1000000000) : 0};
    const mu_address to = address_of(name);
    bool is_patient = draw(0, 3) != 0;
    int64_t timeout_ms = is_patient ? PATIENT_MS : (int64_t)draw(20, 500);
    mu_value *args = mu_value_int(op.value);
    const char *method = kind < 6 ? "add" : kind < 9 ? "get" : "bad";

    if (run->calls_count < CALLS_MAX && run->slots[slot].unended[name] < UNENDED_MAX &&
        mu_actor_call(self, &to, method, args, timeout_ms, run->calls_count) == 0) {
        run->calls[run->calls_count++] =
            (struct one_call){.op = linear_begin(&run->history, &op),
                              .slot = slot,
                              .name = name,
                              .is_patient = is_patient,
                              .fails = kind == 9};
        run->slots[slot].unended[name]++;
    }
    mu_value_free(args);
}

/* What is sent to a name that nobody has made yet waits for it, and not for ever. */
static void send_mark(mu_actor *self, unsigned slot, unsigned name)
{
    const mu_address to = address_of(name);
    mu_value *args = mu_value_list();

    (void)mu_value_append(args, mu_value_int(slot));
    (void)mu_value_append(args, mu_value_int(run->slots[slot].sent[name] + 1));
    if (run->slots[slot].knows[name] && mu_actor_send(self, &to, "mark", args) == 0)
        run->slots[slot].sent[name]++;
    mu_value_free(args);
}

static void do_something(mu_actor *self, unsigned slot)
{
    unsigned name = (unsigned)draw(0, NAMES - 1);
    uint64_t what = draw(0, 11);

    if (what < 6)
        call_counter(self, slot, name);
    else if (what < 9)
        send_mark(self, slot, name);
    else if (what < 10)
        want_counter(self, name);
    else
        make_or_stop_spare(self);
}

static void end_call(uint64_t token, const mu_notice *notice)
{
    struct one_call *call = &run->calls[token];
    int64_t number = 0;

    if (call->ended)
        cluster_break(run->cluster, "call %" PRIu64 " has ended twice", token);
    call->ended = true;
    run->slots[call->slot].unended[call->name]--;
    if (notice->error == NULL) {
        (void)mu_value_get_int(notice->value, &number);
        linear_end(&run->history, call->op, 0, number, 0);
        run->slots[call->slot].knows[call->name] = true;
        run->reached[ANSWERED]++;
    } else if (call->fails || notice->error->ran == MU_RAN_NO) {
        linear_drop(&run->history, call->op);
        run->reached[FAILED]++;
    } else {
        run->reached[UNKNOWN]++;
    }
    if (call->fails && notice->error == NULL)
        cluster_break(run->cluster, "a call that fails was answered");
    if (notice->error != NULL && !call->fails && call->is_patient)
        cluster_break(run->cluster, "a call was not answered: %s",
                      notice->error->message);
}

static int begin_caller(mu_actor *self, void *state, const mu_value *args)
{
    int64_t slot = 0;

    assert_int_equal(mu_value_get_int(args, &slot), 0);
    ((struct caller *)state)->slot = (unsigned)slot;
    return mu_actor_timer(self, draw(1, 60), 0);
}

/* In the end all are wanted by whoever lives, and the spare ones are not. */
static void hear(mu_actor *self, void *state, const mu_notice *notice)
{
    const struct caller *caller = state;

    if (notice->kind == MU_NOTICE_ANSWER)
        end_call(notice->token, notice);
    if (notice->kind != MU_NOTICE_TIMER)
        return;
    if (!run->is_over)
        do_something(self, caller->slot);
    for (unsigned i = 0; i < NAMES && run->is_over; i++)
        want_counter(self, i);
    if (run->is_over)
        stop_spares(self);
    (void)mu_actor_timer(self, run->is_over ? 1000 : draw(1, 60), 0);
}

static const mu_actor_type caller_type = {
    .name = "caller",
    .state_size = sizeof(struct caller),
    .start = begin_caller,
    .notice = hear,
};

/* ---- processes ---- */

static void greet_process(unsigned i)
{
    struct cluster_task *task = &run->cluster->tasks[i];
    struct office *office = office_at(task);
    mu_actor_options options;
    struct mail *start;

    run->lives[i] = sim_lives(task->node);
    run->reached[HOSTS] += task == run->cluster->chief;
    assert_int_equal(mu__types_add(office, &caller_type, NULL), 0);
    if (strcmp(task->type, "worker") == 0) {
        assert_int_equal(mu__types_add(office, &mark_type, NULL), 0);
        assert_int_equal(mu__types_add(office, &counter_type, NULL), 0);
        assert_int_equal(mu__types_add(office, &spare_type, NULL), 0);
    }
    if (run->slots_count >= SLOTS_MAX)
        return;
    run->slots[run->slots_count].process = office->config.incarnation;
    assert_int_equal(mu__actors_read_options(NULL, NULL, &options), 0);
    assert_int_equal(mu__spawn_user(office, mu__view_str("caller"), NULL,
                                    mu_value_int(run->slots_count++), &options, NULL,
                                    &start),
                     0);
    mu__turn_do(office, start);
}

static void look(struct sim *sim, void *arg)
{
    (void)sim;
    (void)arg;
    for (unsigned i = 0; i < run->cluster->tasks_count; i++)
        if (office_at(&run->cluster->tasks[i]) != NULL &&
            run->lives[i] != sim_lives(run->cluster->tasks[i].node))
            greet_process(i);
}

static void lose_host(struct mu__storage *base)
{
    (void)base;
    sim_storage_crash(run->store);
    sim_storage_crash(run->kept);
}

/* ---- the end ---- */

static bool process_lives(uint64_t process)
{
    for (unsigned i = 0; i < run->cluster->tasks_count; i++) {
        const struct office *office = office_at(&run->cluster->tasks[i]);

        if (office != NULL && office->config.incarnation == process)
            return true;
    }
    return false;
}

static const struct kept *find_counter(unsigned name)
{
    const mu_address address = address_of(name);

    for (unsigned i = 0; i < run->cluster->tasks_count; i++) {
        const struct office *office = office_at(&run->cluster->tasks[i]);
        const struct kept *kept =
            office == NULL ? NULL : mu__kept_find(office, mu__view_str(address.name));

        if (kept != NULL && kept->phase == KEPT_LIVE && !kept->actor->ends)
            return kept;
    }
    return NULL;
}

static void check_marks(unsigned name)
{
    const struct kept *kept = find_counter(name);
    const struct counter *counter =
        kept == NULL ? NULL : (const void *)kept->actor->state;

    if (counter == NULL) {
        cluster_break(run->cluster, "counter %u is nowhere", name);
        return;
    }
    run->reached[LIVES] += kept->own.epoch - kept->own.made;
    for (unsigned i = 0; i < run->slots_count; i++) {
        bool lives = process_lives(run->slots[i].process);

        run->reached[MARKED] += lives ? counter->marks[i] : 0;
        if (counter->marks[i] > run->slots[i].sent[name] ||
            (lives && counter->marks[i] != run->slots[i].sent[name]))
            cluster_break(run->cluster,
                          "counter %u has %" PRIu32 " marks of process %u, which has "
                          "sent %" PRIu32,
                          name, counter->marks[i], i, run->slots[i].sent[name]);
    }
}

static void check_end(void)
{
    enum linear_verdict verdict;
    char why[1024];

    for (unsigned i = 0; i < run->calls_count; i++) {
        const struct one_call *call = &run->calls[i];

        if (!call->ended && process_lives(run->slots[call->slot].process))
            cluster_break(run->cluster, "call %u has not ended", i);
        if (!call->ended && run->history.ops[call->op].value == 0)
            linear_drop(&run->history, call->op);
    }
    for (unsigned i = 0; i < NAMES; i++)
        check_marks(i);
    verdict =
        linear_judge(run->history.ops, run->history.count, STATES_MAX, why, sizeof why);
    run->reached[JUDGED] += verdict == LINEAR_GOOD;
    if (verdict == LINEAR_BAD)
        cluster_break(run->cluster, "%s", why);
}

/* ---- what is kept ---- */

struct kept_names {
    bool counters[NAMES];
    bool spares[SPARES];
};

static bool *find_kept_name(struct kept_names *names, struct mu__view text)
{
    for (unsigned i = 0; i < NAMES; i++)
        if (mu__view_is(text, address_of(i).name))
            return &names->counters[i];
    for (unsigned i = 0; i < SPARES; i++)
        if (mu__view_is(text, address_of_spare(i).name))
            return &names->spares[i];
    return NULL;
}

static int visit_kept_file(void *owner, struct mu__msg *msg)
{
    const struct mu__keep_fence *fence = mu__body(msg);

    if (msg->kind == MU__KEEP_FENCE) {
        *find_kept_name(owner, fence->name) = fence->owner != 0;
        run->reached[DROPPED] += fence->owner == 0;
    }
    return 0;
}

static void check_kept_file(void)
{
    struct mu__pool pool;
    struct mu__journal *file = NULL;
    struct kept_names names = {{false}, {false}};
    mu_error error;
    uint64_t cut;

    mu__pool_init(&pool);
    if (mu__journal_open(&run->kept->base, &mu__messages, &pool, visit_kept_file, &names,
                         &error, &cut, &file) != 0)
        cluster_break(run->cluster, "%s", error.message);
    mu__journal_close(file);
    mu__pool_done(&pool);
    for (unsigned i = 0; i < NAMES; i++)
        if (!names.counters[i])
            cluster_break(run->cluster, "nothing is kept of counter %u", i);
    for (unsigned i = 0; i < SPARES; i++)
        if (names.spares[i])
            cluster_break(run->cluster, "spare counter %u was stopped, and is kept", i);
}

/* ---- runs ---- */

static struct cluster *begin_cluster(uint64_t seed)
{
    const struct cluster_options options = {
        .workers = 3,
        .clients = 1,
        .hosts = "chief:0",
        .coordination = {.store = &mu__store_journal, .kept = &run->kept->base},
    };
    struct cluster *cluster = cluster_new(seed, &options);

    cluster->chief->store =
        (struct cluster_journal){.storage = &run->store->base, .is_gone = lose_host};
    return cluster;
}

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    uint64_t again[REACHED] = {0};
    struct sim *sim;

    run = calloc(1, sizeof *run);
    assert_non_null(run);
    run->reached = sum == NULL ? again : sum;
    run->random = sim_stream(seed, 115);
    run->store = sim_storage_new("actors", seed);
    run->kept = sim_storage_new("actors.kept", seed + 1);
    run->cluster = begin_cluster(seed);
    sim = run->cluster->sim;
    sim_settings_draw(sim);
    cluster_start_all(run->cluster);
    sim_set_check(sim, look, NULL);
    sim_run_until(sim, BEGIN_MS);
    verdict_begin_chaos(run->cluster, BEGIN_MS + BUSY_MS);
    sim_run_until(sim, BEGIN_MS + BUSY_MS);
    run->is_over = true;
    sim_run_until(sim, BEGIN_MS + BUSY_MS + CALM_MS);
    check_end();
    check_kept_file();
    verdict_of(run->cluster, show, ret_verdict);
    cluster_free(run->cluster);
    sim_storage_free(run->store);
    sim_storage_free(run->kept);
    linear_done(&run->history);
    free(run);
    run = NULL;
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of kept_name --seed",
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
