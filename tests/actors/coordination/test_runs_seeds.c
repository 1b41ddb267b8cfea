/* A job that is run again and again over one store, in virtual time, with real agents:
 * runs end, fail, are killed and go on, or are begun by name, while hosts are killed. All
 * of it follows from a seed. What must be:
 *
 *   - a run that begins has no outcome, notice or result of another one, and one that
 *     goes on has all of its own;
 *   - keys that were put are there in all later runs;
 *   - of dead runs nothing stays but a short history;
 *   - a task that is left over from a former run is told so, and not taken. */
#include "actors/coordination/job_runs.h"
#include "sim/world/random.h"
#include "tests/sim/cluster/lasting.h"
#include "tests/support/seeds.h"

#include "actors/coordination/keys/keys.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    SEEDS = 150,
    WORKERS = 3,
    TASKS = WORKERS + 1,
    KEYS = 4,
    BARRIERS = 3,
    SOON_MS = 60 * 1000 /* virtual: longer than anything takes */
};

enum reached {
    RUNS,
    CONTINUED,
    NAMED,
    LEFTOVERS,
    TAKEN_OVER,
    PREEMPTED,
    PASSED,
    REACHED
};

struct job {
    struct cluster *cluster;
    struct lasting lasting;
    struct sim_random random;
    uint64_t *reached;
    struct cluster_task *tasks[TASKS];
    struct cluster_task *leftover; /* that was not killed at the end of its run */
    char name[2][32];              /* what tasks are started for, in turn; "": nothing */
    unsigned names;

    /* What must be in the store. */
    uint64_t number;
    bool over; /* the present run has ended */
    bool passed[BARRIERS];
    bool preempted;
    int keys[KEYS]; /* 0: not there */
};

static bool is_broken(const struct job *job)
{
    return job->cluster->broken[0] != '\0';
}

#define EXPECT(job, condition, ...)                     \
    do {                                                \
        if (!(condition))                               \
            cluster_break((job)->cluster, __VA_ARGS__); \
    } while (0)

/* ---- who leads ---- */

static struct coordination *service_of(struct cluster_task *task)
{
    if (!task->runs || !sim_alive(task->node))
        return NULL;
    return mu__actor_state(task->member.kernel,
                           (mu__pid){MU__NODE_SELF, MU__COORDINATION});
}

static struct coordination *leader(struct job *job)
{
    struct coordination *best = NULL;

    for (int i = 0; i < TASKS; i++) {
        struct coordination *c = service_of(job->tasks[i]);

        if (c != NULL && c->leads && (best == NULL || c->epoch > best->epoch))
            best = c;
    }
    return best;
}

static int state_of(struct cluster_task *task)
{
    return task->runs ? atomic_load(&task->member.agent.state) : MU_AGENT_UNINITIALIZED;
}

static bool all_are_here(const struct job *job)
{
    for (int i = 0; i < TASKS; i++)
        if (job->tasks[i] != job->leftover &&
            state_of(job->tasks[i]) != MU_AGENT_CONNECTED)
            return false;
    return true;
}

static void run_ms(struct job *job, uint64_t ms)
{
    sim_run_until(job->cluster->sim, sim_now_ms(job->cluster->sim) + ms);
}

static void await_all(struct job *job)
{
    uint64_t timeout_ms = sim_now_ms(job->cluster->sim) + SOON_MS;

    while (!all_are_here(job) && sim_now_ms(job->cluster->sim) < timeout_ms)
        run_ms(job, 50);
    EXPECT(job, all_are_here(job), "not all tasks have registered for run %" PRIu64,
           job->number);
}

/* ---- what must be in the store ---- */

static void check_keys(struct job *job, struct coordination *c)
{
    for (int i = 0; i < KEYS; i++) {
        struct mu__key_value entry;
        char key[16];
        bool there;

        (void)snprintf(key, sizeof key, "k%d", i);
        there = mu__coord_keys_get_own(c, key, &entry);
        EXPECT(job, there == (job->keys[i] != 0), "%s is %sthere in run %" PRIu64, key,
               there ? "" : "not ", job->number);
        if (there && !is_broken(job))
            EXPECT(job, atoi((const char *)entry.value.data) == job->keys[i],
                   "%s is not %d in run %" PRIu64, key, job->keys[i], job->number);
    }
}

static uint64_t count_below(const struct coordination *c, const char *directory)
{
    uint64_t count;
    uint64_t bytes;

    mu__coord_keys_measure(c, mu__view_str(directory), &count, &bytes);
    return count;
}

static void check_outcomes(struct job *job, struct coordination *c)
{
    struct mu__key_value entry;
    char key[MU__RUN_KEY_MAX];
    uint64_t own = 0;

    for (int i = 0; i < BARRIERS; i++) {
        char what[24];
        bool there;

        (void)snprintf(what, sizeof what, "barrier/b%d", i);
        (void)mu__coord_run_key(c, what, key);
        there = mu__coord_keys_get_own(c, key, &entry);
        own += there;
        EXPECT(job, there == job->passed[i], "run %" PRIu64 " has %s outcome of b%d",
               job->number, there ? "an" : "no", i);
    }
    (void)mu__coord_run_key(c, "preemption", key);
    EXPECT(job, mu__coord_keys_get_own(c, key, &entry) == job->preempted,
           "run %" PRIu64 " has %s notice", job->number, job->preempted ? "no" : "a");
    own += job->preempted;
    EXPECT(job, count_below(c, "_muster") <= own + MU__RUN_HISTORY_MAX + 1,
           "%" PRIu64 " keys of the service's own pile up", count_below(c, "_muster"));
}

/* Before any program has done anything. */
static void check_store(struct job *job)
{
    struct coordination *c = leader(job);

    if (is_broken(job) || c == NULL)
        return;
    EXPECT(job, mu__coord_run(c)->number == job->number,
           "run %" PRIu64 " is the present one, expected %" PRIu64,
           mu__coord_run(c)->number, job->number);
    EXPECT(job, count_below(c, "muster/distribute") == 0 || !job->over,
           "results of a former run");
    check_keys(job, c);
    check_outcomes(job, c);
}

/* ---- processes ---- */

static void start(struct job *job, struct cluster_task *task)
{
    const char *name = job->name[job->names % 2];

    if (sim_alive(task->node))
        return;
    task->run = name[0] == '\0' ? NULL : name;
    cluster_start(task);
}

static void kill_task(struct cluster_task *task)
{
    if (sim_alive(task->node))
        sim_crash(task->node);
}

static void restart_all(struct job *job)
{
    for (int i = 0; i < TASKS; i++)
        start(job, job->tasks[i]);
    await_all(job);
}

/* ---- what programs do ---- */

#define CALL(...) (&(struct mu__agent_call){__VA_ARGS__})
#define CALL_OF(kind, limit) .call = {.operation = (kind), .timeout_ms = (limit)}

static struct cluster_task *any_task(struct job *job)
{
    struct cluster_task *task = job->tasks[sim_between(&job->random, 0, TASKS - 1)];

    return task == job->leftover ? job->tasks[0] : task;
}

static void put(struct job *job, const char *key, int number)
{
    char value[16];
    const mu_kv_request ask = {
        .operation = MU_KV_PUT,
        .key = key,
        .value = value,
        .size = (size_t)snprintf(value, sizeof value, "%d", number) + 1,
        .flags = MU_KV_OVERWRITE,
        .timeout_ms = SOON_MS,
    };
    int rv = cluster_wait(cluster_key(any_task(job), &ask));

    EXPECT(job, rv == 0, "%s was not put: %s", key, mu_err_name(rv));
}

static void put_some(struct job *job)
{
    int i = (int)sim_between(&job->random, 0, KEYS - 1);
    int number = (int)sim_between(&job->random, 1, 1000000);
    char key[16];

    (void)snprintf(key, sizeof key, "k%d", i);
    put(job, key, number);
    job->keys[i] = number;
}

/* All who are here: nobody is told that it passed before the last has come. */
static void meet(struct job *job)
{
    int i = (int)sim_between(&job->random, 0, BARRIERS - 1);
    struct cluster_call *calls[TASKS] = {NULL};
    static const char *const names[BARRIERS] = {"b0", "b1", "b2"};
    int last = (int)sim_between(&job->random, 0, TASKS - 1);

    if (job->passed[i] || job->leftover != NULL)
        return;
    for (int at = 0; at < TASKS; at++)
        if (at != last)
            calls[at] =
                cluster_agent(job->tasks[at], CALL(CALL_OF(MU__AGENT_BARRIER, SOON_MS),
                                                   .name = names[i], .tasks = ""));
    run_ms(job, 300);
    for (int at = 0; at < TASKS; at++)
        EXPECT(job, at == last || !calls[at]->done,
               "%s has passed %s in run %" PRIu64 " before all were there",
               job->tasks[at]->name, names[i], job->number);
    calls[last] =
        cluster_agent(job->tasks[last], CALL(CALL_OF(MU__AGENT_BARRIER, SOON_MS),
                                             .name = names[i], .tasks = ""));
    for (int at = 0; at < TASKS && !is_broken(job); at++) {
        int rv = cluster_wait(calls[at]);

        EXPECT(job, rv == 0, "%s did not pass %s: %s", job->tasks[at]->name, names[i],
               mu_err_name(rv));
    }
    job->passed[i] = true;
    job->reached[PASSED]++;
}

static void preempt(struct job *job)
{
    int rv = cluster_wait(cluster_agent(job->tasks[1],
                                        CALL(CALL_OF(MU__AGENT_NOTICE, SOON_MS),
                                             .name = "maintenance", .version = 60000)));

    EXPECT(job, rv == 0, "a notice came to %s", mu_err_name(rv));
    job->preempted = true;
    job->reached[PREEMPTED]++;
}

/* A host is killed, and comes back, or all do. The run goes on. */
static void hurt(struct job *job)
{
    bool all = sim_chance(&job->random, 40);
    int host = (int)sim_between(&job->random, 0, TASKS - 1);

    for (int i = 0; i < TASKS; i++)
        if ((all || i == host) && job->tasks[i] != job->leftover)
            kill_task(job->tasks[i]);
    job->reached[TAKEN_OVER] += !all;
    if (sim_chance(&job->random, 50))
        run_ms(job, sim_between(&job->random, 0, 8000));
    restart_all(job);
    run_ms(job, 3000); /* another one may lead yet */
    check_store(job);
    job->reached[CONTINUED]++;
}

static void work(struct job *job)
{
    unsigned steps = (unsigned)sim_between(&job->random, 1, 8);

    for (unsigned i = 0; i < steps && !is_broken(job); i++) {
        uint64_t what = sim_between(&job->random, 0, 9);

        if (what < 3)
            put_some(job);
        else if (what < 6)
            meet(job);
        else if (what < 7 && !job->preempted)
            preempt(job);
        else if (what < 8)
            hurt(job);
        else
            run_ms(job, sim_between(&job->random, 1, 1500));
    }
}

/* ---- the end of a run, and what follows ---- */

static void end_run(struct job *job, int code)
{
    struct mu__agent_call call = {CALL_OF(MU__AGENT_RUN_END, SOON_MS)};
    int rv;

    if (code != 0)
        (void)mu_error_set(&call.failure, code, "it did not work");
    rv = cluster_wait(cluster_agent(job->tasks[0], &call));
    EXPECT(job, rv == 0, "the run's end was not stored: %s", mu_err_name(rv));
    job->over = true;
}

static void end(struct job *job)
{
    uint64_t how = sim_between(&job->random, 0, 9);

    if (how < 3) {
        end_run(job, 0);
    } else if (how < 5) {
        end_run(job, -MU_EABORTED);
    } else if (how < 7) {
        put(job, "muster/distribute/0/failed", 1);
        job->over = true; /* it has come to that */
    }
    job->leftover = sim_chance(&job->random, 30) ? job->tasks[TASKS - 1] : NULL;
    for (int i = 0; i < TASKS; i++)
        if (job->tasks[i] != job->leftover)
            kill_task(job->tasks[i]);
    run_ms(job, sim_between(&job->random, 0, 6000));
}

/* What a start without or with a name comes to. */
static void choose_next(struct job *job)
{
    bool named = sim_chance(&job->random, 40);

    job->names++;
    job->name[job->names % 2][0] = '\0';
    if (named) {
        (void)snprintf(job->name[job->names % 2], sizeof job->name[0], "n%u", job->names);
        job->reached[NAMED]++;
    }
    if (!named && !job->over)
        return;
    job->number++;
    job->over = false;
    job->preempted = false;
    memset(job->passed, 0, sizeof job->passed);
    job->reached[RUNS]++;
}

/* Who was left over belongs to the present run, or is told that it does not. */
static void check_leftover(struct job *job, bool belongs)
{
    uint64_t timeout_ms = sim_now_ms(job->cluster->sim) + SOON_MS;
    int wanted = belongs ? MU_AGENT_CONNECTED : MU_AGENT_ERROR;

    if (job->leftover == NULL || is_broken(job))
        return;
    while (state_of(job->leftover) != wanted &&
           sim_now_ms(job->cluster->sim) < timeout_ms)
        run_ms(job, 50);
    EXPECT(job, state_of(job->leftover) == wanted, "%s, of a former process, %s",
           job->leftover->name,
           belongs ? "is not taken" : "is not told that its run is over");
    job->reached[LEFTOVERS]++;
    if (belongs) {
        job->leftover = NULL;
        return;
    }
    kill_task(job->leftover);
    start(job, job->leftover);
    job->leftover = NULL;
    await_all(job);
}

static void run_again(struct job *job)
{
    uint64_t before = job->number;

    end(job);
    choose_next(job);
    restart_all(job);
    check_store(job);
    if (job->number != before && !is_broken(job))
        EXPECT(job, mu__coord_keys_results(leader(job)) == 0,
               "run %" PRIu64 " has results of agents of a former one", job->number);
    check_leftover(job, job->number == before);
}

/* ---- all of it ---- */

static void begin(struct job *job, uint64_t seed, uint64_t *reached)
{
    job->random = sim_stream(seed, 77);
    job->reached = reached;
    job->lasting = lasting_new(seed, WORKERS, sim_chance(&job->random, 50));
    job->cluster = job->lasting.cluster;
    job->tasks[0] = job->cluster->chief;
    for (int i = 0; i < WORKERS; i++)
        job->tasks[i + 1] = job->cluster->workers[i];
    job->number = 0;
    job->over = true;
    choose_next(job);
    restart_all(job);
    check_store(job);
}

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    uint64_t reached[REACHED] = {0};
    struct job job = {.number = 0};
    uint64_t *all = sum;

    begin(&job, seed, reached);
    for (int i = 0; i < 6 && !is_broken(&job); i++) {
        work(&job);
        if (!is_broken(&job))
            run_again(&job);
    }
    *ret_verdict = (struct seeds_verdict){.digest = sim_digest(job.cluster->sim)};
    (void)snprintf(ret_verdict->broken, sizeof ret_verdict->broken, "%s",
                   job.cluster->broken);
    if (show)
        (void)fputs(sim_trace(job.cluster->sim), stdout);
    lasting_free(&job.lasting);
    for (int i = 0; i < REACHED && all != NULL; i++)
        all[i] += reached[i];
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of runs --seed",
    .count = SEEDS,
    .repeat_every = 25,
    .seconds_max = 60,
    .run = run_one,
};

TEST(test_seeds)
{
    static const char *const words[REACHED] = {
        "runs", "went on", "named", "leftovers", "taken over", "preempted", "passed"};
    uint64_t sum[REACHED] = {0};

    seeds_expect_well(&seeds, sum);
    for (int i = 0; i < REACHED; i++) {
        print_message("%s: %" PRIu64 "\n", words[i], sum[i]);
        if (seeds_count() >= SEEDS)
            assert_true(sum[i] >= SEEDS / 10);
    }
}

SEEDS_PROGRAM(seeds)
