/* Programs that meet at one barrier after another, whose processes die one by one or all
 * at once, hosts with them, over a store that lasts; with real agents, in virtual time.
 * In some runs programs note what they have passed, a while after they were told, and go
 * on from there in their next process; in others they begin anew. All of it follows from
 * a seed. What must be:
 *
 *   - nobody passes a barrier that not all have ever come to;
 *   - of a barrier with a short timeout, which programs go on from in any case, everybody
 *     hears the same;
 *   - once processes stay alive, everybody passes all barriers, soon;
 *   - of programs that begin anew, killed all at once, nobody passes what not all have
 *     come to since, as long as no single one is killed. */
#include "sim/world/random.h"
#include "tests/sim/cluster/lasting.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    SEEDS = 300,
    WORKERS = 3,
    TASKS = WORKERS + 1,
    ROUNDS = 6,
    SHORT_EVERY = 3, /* rounds: one with a short timeout */
    STEP_MS = 20,
    CHAOS_MS = 25 * 1000, /* these: virtual */
    SOON_MS = 60 * 1000,
    SHORT_MS = 300,
    FOREVER_MS = 3600 * 1000
};

enum reached { PASSED, TIMED_OUT, KILLED, ALL_KILLED, PASSED_AGAIN, FINISHED, REACHED };

struct program {
    struct cluster_task *task;
    struct cluster_call *call; /* NULL: none is under way */
    bool is_reset;             /* that is what it is */
    bool leaves;
    bool has_left;
    unsigned round;          /* that it is in */
    unsigned noted;          /* where its next process goes on */
    int64_t notes_ms;        /* when it will note its round; -1: it has */
    uint64_t starts_ms;      /* when its next process starts; 0: it runs */
    bool came[ROUNDS];       /* ever, */
    bool came_since[ROUNDS]; /* since all were killed */
    bool passed[ROUNDS];
};

struct job {
    struct cluster *cluster;
    struct lasting lasting;
    struct sim_random random;
    uint64_t *reached;
    struct program programs[TASKS];
    bool notes;
    bool is_told[ROUNDS]; /* what a barrier has come to: this */
    int told[ROUNDS];
    bool is_clean;         /* no single one was killed since all were */
    unsigned kill_percent; /* in a second */
};

#define CALL(...) (&(struct mu__agent_call){__VA_ARGS__})
#define CALL_OF(kind, limit) .call = {.operation = (kind), .timeout_ms = (limit)}

static uint64_t now_ms(const struct job *job)
{
    return sim_now_ms(job->cluster->sim);
}

static int state_of(const struct cluster_task *task)
{
    return task->runs ? atomic_load(&task->member.agent.state) : MU_AGENT_UNINITIALIZED;
}

/* ---- processes ---- */

static void start(struct program *program, bool notes)
{
    program->starts_ms = 0;
    program->call = NULL;
    program->is_reset = program->leaves = program->has_left = false;
    program->notes_ms = -1;
    program->round = notes ? program->noted : 0;
    cluster_start(program->task);
}

static void kill_one(struct job *job, struct program *program)
{
    if (!sim_alive(program->task->node))
        return;
    sim_crash(program->task->node);
    program->starts_ms = now_ms(job) + sim_between(&job->random, 1, 4000);
}

static void kill_all(struct job *job)
{
    for (int i = 0; i < TASKS; i++) {
        kill_one(job, &job->programs[i]);
        memset(job->programs[i].came_since, 0, sizeof job->programs[i].came_since);
    }
    job->is_clean = true;
    job->reached[ALL_KILLED]++;
}

static void hurt(struct job *job)
{
    if (now_ms(job) > CHAOS_MS ||
        sim_between(&job->random, 0, 100 * 1000 / STEP_MS - 1) >= job->kill_percent)
        return;
    if (sim_chance(&job->random, 25)) {
        kill_all(job);
        return;
    }
    kill_one(job, &job->programs[sim_between(&job->random, 0, TASKS - 1)]);
    job->is_clean = false;
    job->reached[KILLED]++;
}

/* ---- programs ---- */

static bool is_short(const struct program *program)
{
    return program->round % SHORT_EVERY == SHORT_EVERY - 1;
}

static void check_passed(struct job *job, struct program *program)
{
    unsigned round = program->round;

    for (int i = 0; i < TASKS; i++) {
        const struct program *other = &job->programs[i];

        if (!other->came[round])
            cluster_break(job->cluster, "%s passes %u, and %s has never come to it",
                          program->task->name, round, other->task->name);
        else if (!job->notes && job->is_clean && !is_short(program) &&
                 !other->came_since[round])
            cluster_break(job->cluster,
                          "%s passes %u, and %s has not come to it since all were killed",
                          program->task->name, round, other->task->name);
    }
    job->reached[PASSED]++;
    job->reached[PASSED_AGAIN] += program->passed[round];
    program->passed[round] = true;
}

/* Whether the program goes on from its barrier. Who has found no host in time knows of no
 * outcome. */
static bool is_over(struct job *job, const struct program *program)
{
    const struct mu__call *call = &program->call->of.call;
    unsigned round = program->round;

    if (call->code != 0 && (!is_short(program) || call->code != -MU_EDEADLINE))
        return false;
    if (call->code != 0 && strstr(call->error.message, "was not passed within") != NULL)
        return true;
    if (job->is_told[round] && job->told[round] != call->code)
        cluster_break(job->cluster, "%s hears %s of %u, and others heard %s",
                      program->task->name, mu_err_name(call->code), round,
                      mu_err_name(job->told[round]));
    job->is_told[round] = true;
    job->told[round] = call->code;
    job->reached[TIMED_OUT] += call->code != 0;
    return true;
}

static void ended(struct job *job, struct program *program)
{
    bool is_well = program->call->of.call.code == 0;
    bool goes_on = !program->leaves && !program->is_reset && is_over(job, program);

    program->call = NULL;
    if (program->leaves) {
        program->has_left = is_well;
        program->leaves = false;
    } else if (program->is_reset) {
        program->is_reset = false;
    } else if (goes_on) {
        if (is_well)
            check_passed(job, program);
        program->round++;
        program->notes_ms = (int64_t)(now_ms(job) + sim_between(&job->random, 0, 400));
    }
}

static struct cluster_call *ask(struct program *program)
{
    static const char *const names[ROUNDS] = {"r0", "r1", "r2", "r3", "r4", "r5"};

    if (state_of(program->task) == MU_AGENT_ERROR) {
        program->is_reset = true;
        return cluster_agent(program->task, CALL(CALL_OF(MU__AGENT_RESET, FOREVER_MS)));
    }
    if (program->round == ROUNDS) {
        program->leaves = true;
        return cluster_agent(program->task, CALL(CALL_OF(MU__AGENT_LEAVE, FOREVER_MS)));
    }
    program->came[program->round] = program->came_since[program->round] = true;
    return cluster_agent(
        program->task,
        CALL(CALL_OF(MU__AGENT_BARRIER, is_short(program) ? SHORT_MS : FOREVER_MS),
             .name = names[program->round], .tasks = ""));
}

static void go_on(struct job *job, struct program *program)
{
    if (program->starts_ms != 0 && now_ms(job) >= program->starts_ms)
        start(program, job->notes);
    if (!sim_alive(program->task->node) || program->has_left)
        return;
    if (program->call != NULL && program->call->done)
        ended(job, program);
    if (program->notes_ms >= 0 && now_ms(job) >= (uint64_t)program->notes_ms) {
        program->noted = program->round;
        program->notes_ms = -1;
    }
    if (program->call == NULL && program->notes_ms < 0 &&
        state_of(program->task) >= MU_AGENT_CONNECTED)
        program->call = ask(program);
}

static bool all_have_left(const struct job *job)
{
    for (int i = 0; i < TASKS; i++)
        if (!job->programs[i].has_left || job->programs[i].starts_ms != 0)
            return false;
    return true;
}

/* ---- all of it ---- */

static void begin(struct job *job, uint64_t seed)
{
    job->random = sim_stream(seed, 78);
    job->notes = sim_chance(&job->random, 50);
    job->kill_percent = (unsigned)sim_between(&job->random, 5, 80);
    job->lasting = lasting_new(seed, WORKERS, sim_chance(&job->random, 50));
    job->cluster = job->lasting.cluster;
    for (int i = 0; i < TASKS; i++)
        job->programs[i].task =
            i == 0 ? job->cluster->chief : job->cluster->workers[i - 1];
    for (int i = 0; i < TASKS; i++)
        start(&job->programs[i], true);
}

static void run(struct job *job)
{
    while (!all_have_left(job) && job->cluster->broken[0] == '\0') {
        sim_run_until(job->cluster->sim, now_ms(job) + STEP_MS);
        hurt(job);
        for (int i = 0; i < TASKS; i++)
            go_on(job, &job->programs[i]);
        for (int i = 0; i < TASKS && now_ms(job) > CHAOS_MS + SOON_MS; i++)
            if (!job->programs[i].has_left)
                cluster_break(job->cluster, "%s is still in %u",
                              job->programs[i].task->name, job->programs[i].round);
    }
    job->reached[FINISHED]++;
}

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    uint64_t reached[REACHED] = {0};
    struct job job = {.reached = reached};
    uint64_t *all = sum;

    begin(&job, seed);
    run(&job);
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
    .replay = "scripts/soak --of barrier_lives --seed",
    .count = SEEDS,
    .repeat_every = 40,
    .seconds_max = 60,
    .run = run_one,
};

TEST(test_seeds)
{
    static const char *const words[REACHED] = {"passed",     "timed out",    "killed",
                                               "all killed", "passed again", "finished"};
    uint64_t sum[REACHED] = {0};

    seeds_expect_well(&seeds, sum);
    for (int i = 0; i < REACHED; i++) {
        print_message("%s: %" PRIu64 "\n", words[i], sum[i]);
        if (seeds_count() >= SEEDS)
            assert_true(sum[i] >= SEEDS / 2);
    }
}

SEEDS_PROGRAM(seeds)
