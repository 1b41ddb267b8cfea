/* Programs with several threads that schedule on one coordinator each, with little room
 * there and at the chief: as mu_coordinator_schedule does it, step by step, with all that
 * may happen between two steps. In quiet runs nothing else happens; in the others
 * processes crash, stand still and lose each other. All of it follows from a seed. What
 * must be, looked for after every event:
 *
 *   - of several threads none goes over the bounds;
 *   - those that wait are admitted in the order in which they asked;
 *   - nobody waits while nothing is scheduled;
 *   - too much at a time is never an error;
 *   - in quiet runs clients get equal parts of the chief;
 *
 * and what cluster.h says. */
#include "actors/client/client.h"
#include "sim/world/chaos.h"
#include "sim/world/inner.h"
#include "sim/world/random.h"
#include "tests/sim/cluster.h"
#include "tests/sim/verdict.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum {
    SEEDS = 200,
    CLIENTS_MAX = 3,
    THREADS_MAX = 5,
    BEGIN_MS = 1000,
    BUSY_MS = 8 * 1000,
    CALM_MS = 120 * 1000, /* for what is left: virtual time */
    IDLE_MAX_MS = 3000,   /* somebody waits while nothing is scheduled */
    BYTES_MAX = 2000,
    FAIR_FACTOR = 3,
    FAIR_MIN = 40 /* closures, of the one that has most */
};

enum reached {
    ADMITTED_AT_ONCE,
    ADMITTED_LATER,
    TOO_LATE,
    WITHDRAWN,
    LARGE,
    RAISED,
    QUIET,
    CRASHED,
    REACHED
};

static const char *const reached_words[REACHED] = {
    "admitted at once", "admitted after waiting", "too late",
    "withdrawn",        "larger than the bound",  "errors raised",
    "quiet runs",       "clients that crashed",
};

enum step { FREE, WAITS, ADMITTED, RAISES };

struct program;

struct thread {
    struct program *program;
    enum step step;
    struct cluster_call *call;
    mu_value *args; /* of the closure to be scheduled */
    uint64_t bytes;
    uint64_t asked;    /* by number, over the program */
    uint64_t until_ms; /* then it is too late, though it may hear so later */
    bool fails;
};

struct program {
    struct run *run;
    struct cluster_task *task;
    struct thread threads[THREADS_MAX];
    unsigned threads_count;
    struct cluster_call *opening;
    uint64_t asked;
    uint64_t idle_since_ms;
};

struct run {
    struct cluster *cluster;
    struct sim_random random;
    struct program programs[CLIENTS_MAX + 1];
    unsigned programs_count;
    uint64_t bytes_max; /* of arguments; 0: all are small */
    unsigned pace_ms;
    bool quiet;
    bool errors; /* some functions fail */
    bool over;   /* nothing new is begun */
    uint64_t *reached;
};

static int run_refuse(mu_run *run, void *user)
{
    (void)user;
    return mu_run_fail(run, -MU_EINVALID, "refused");
}

static const struct cluster_function own[] = {{"refuse", run_refuse, 0}};

static uint64_t draw(struct run *run, uint64_t min, uint64_t max)
{
    return sim_between(&run->random, min, max);
}

/* Of a program that has a session. */
static struct mu__session *shared_of(const struct program *program)
{
    return &program->task->session->shared;
}

static bool is_fine(const struct program *program)
{
    return atomic_load(&shared_of(program)->phase) == MU__SESSION_FINE;
}

/* ---- A thread ---- */

/* Of the process that is gone. */
static void reset(struct thread *thread)
{
    mu_value_free(thread->args);
    *thread = (struct thread){.program = thread->program};
}

static void make_args(struct run *run, struct thread *thread)
{
    static const char data[BYTES_MAX + 1];
    uint64_t size = run->bytes_max == 0 ? 1 : draw(run, 1, run->bytes_max);
    uint64_t bound = run->cluster->options.node.queue_bytes_max;

    mu_value_free(thread->args);
    thread->args = mu_value_bytes(data, (size_t)size);
    assert_non_null(thread->args);
    thread->bytes = cluster_args_bytes(thread->args);
    thread->fails = run->errors && draw(run, 0, 99) == 0;
    run->reached[LARGE] += bound != 0 && thread->bytes > bound;
}

static void begin_waiting(struct thread *thread)
{
    struct program *program = thread->program;
    int64_t timeout_ms =
        draw(program->run, 0, 3) > 0 ? -1 : (int64_t)draw(program->run, 1, 300);

    (void)atomic_fetch_add(&shared_of(program)->waiting, 1);
    thread->asked = ++program->asked;
    thread->until_ms =
        timeout_ms < 0 ? UINT64_MAX
                       : sim_now_ms(program->run->cluster->sim) + (uint64_t)timeout_ms;
    thread->call = cluster_admit(program->task, thread->bytes, timeout_ms);
    thread->step = WAITS;
}

static void begin(struct thread *thread)
{
    struct program *program = thread->program;
    struct run *run = program->run;

    if (!is_fine(program)) {
        thread->call = cluster_ask(program->task, MU__CLIENT_RAISE, -1);
        thread->step = RAISES;
        return;
    }
    if (run->over)
        return;
    make_args(run, thread);
    if (mu__admission_try(shared_of(program), thread->bytes)) {
        run->reached[ADMITTED_AT_ONCE]++;
        thread->step = ADMITTED;
    } else {
        begin_waiting(thread);
    }
}

/* Nobody who asked before is still waiting. */
static void check_order(struct thread *thread)
{
    struct program *program = thread->program;

    for (unsigned i = 0; i < program->threads_count; i++) {
        const struct thread *other = &program->threads[i];

        if (other->step == WAITS && !other->call->done && other->asked < thread->asked &&
            sim_now_ms(program->run->cluster->sim) < other->until_ms)
            cluster_break(program->run->cluster,
                          "a thread of %s that asked as number %" PRIu64
                          " is admitted, number %" PRIu64 " waits",
                          program->task->name, thread->asked, other->asked);
    }
}

/* What threads hear is of functions, of workers or of the chief, and not of room. */
static void take_raised(struct thread *thread)
{
    struct run *run = thread->program->run;
    int code = thread->call->of.call.code;

    run->reached[RAISED] += code != 0;
    if (code != 0 && code != -MU_EINVALID && code != -MU_EABORTED &&
        (code != -MU_EUNAVAILABLE || run->quiet))
        cluster_break(run->cluster, "%s is raised: %s", mu_err_name(code),
                      thread->call->of.call.error.message);
    thread->step = FREE;
    thread->call = NULL;
}

/* A thread that waits when a closure fails gets the error. */
static void take_room(struct thread *thread)
{
    struct run *run = thread->program->run;
    int code = thread->call->of.call.code;
    bool admitted = code == 0 && thread->call->of.client.admitted;

    if (admitted)
        check_order(thread);
    (void)atomic_fetch_sub(&shared_of(thread->program)->waiting, 1);
    run->reached[ADMITTED_LATER] += admitted;
    run->reached[TOO_LATE] += code == -MU_EDEADLINE;
    if (code != -MU_EDEADLINE && thread->call->of.call.operation == MU__CLIENT_RAISE) {
        take_raised(thread);
        return;
    }
    if (code != 0 && code != -MU_EDEADLINE)
        cluster_break(run->cluster, "waiting for room came to %s: %s", mu_err_name(code),
                      thread->call->of.call.error.message);
    thread->step = admitted ? ADMITTED : FREE;
    thread->call = NULL;
}

/* Making the message may fail: then its place is given back. */
static void schedule(struct thread *thread)
{
    struct program *program = thread->program;
    struct run *run = program->run;
    mu_value *args = thread->args;

    thread->step = FREE;
    if (draw(run, 0, 19) == 0) {
        mu__admission_withdraw(shared_of(program), thread->bytes);
        run->reached[WITHDRAWN]++;
        return;
    }
    thread->args = NULL;
    (void)cluster_schedule_admitted(program->task, thread->fails ? "refuse" : "weigh",
                                    args);
}

static void go_on(struct thread *thread)
{
    switch (thread->step) {
    case FREE:
        begin(thread);
        break;
    case ADMITTED:
        schedule(thread);
        break;
    case WAITS:
        if (thread->call->done)
            take_room(thread);
        break;
    case RAISES:
        if (thread->call->done)
            take_raised(thread);
        break;
    }
}

/* ---- A program ---- */

static void forget_process(struct program *program)
{
    for (unsigned i = 0; i < program->threads_count; i++)
        reset(&program->threads[i]);
    program->opening = NULL;
}

/* The first of its threads opens the coordinator. */
static bool is_open(struct program *program)
{
    if (program->task->session == NULL) {
        forget_process(program);
        program->opening = cluster_open(program->task, -1);
        return false;
    }
    return program->opening->done && program->opening->of.call.code == 0;
}

static void step(struct sim *sim, void *arg)
{
    struct thread *thread = arg;
    struct program *program = thread->program;
    struct run *run = program->run;

    if (sim_alive(program->task->node) && is_open(program))
        go_on(thread);
    sim_at(sim, sim_now_ms(sim) + draw(run, 1, run->pace_ms), step, thread);
}

/* ---- What must be ---- */

static bool has_waiting(const struct program *program)
{
    for (unsigned i = 0; i < program->threads_count; i++)
        if (program->threads[i].step == WAITS && !program->threads[i].call->done)
            return true;
    return false;
}

static void look_at_bounds(const struct program *program)
{
    const struct mu__session *shared = shared_of(program);
    uint64_t bytes = mu__admission_bytes(shared);

    if (mu__admission_closures(shared) > shared->closures_max)
        cluster_break(program->run->cluster,
                      "%s has %" PRIu64 " closures, of at most %" PRIu64,
                      program->task->name, mu__admission_closures(shared),
                      shared->closures_max);
    if (shared->bytes_max != 0 && bytes > shared->bytes_max &&
        mu__admission_closures(shared) > 1)
        cluster_break(program->run->cluster,
                      "%s has %" PRIu64 " bytes in several "
                      "closures, of at most %" PRIu64,
                      program->task->name, bytes, shared->bytes_max);
}

/* Whoever waits is admitted when nothing else is. */
static void look_at_waiting(struct program *program)
{
    struct run *run = program->run;
    uint64_t now_ms = sim_now_ms(run->cluster->sim);

    if (!is_fine(program) || program->task->node->paused ||
        mu__admission_closures(shared_of(program)) > 0 || !has_waiting(program))
        program->idle_since_ms = now_ms;
    if (now_ms - program->idle_since_ms > IDLE_MAX_MS)
        cluster_break(run->cluster, "%s has nothing scheduled, and threads that wait",
                      program->task->name);
}

static void look(struct sim *sim, void *arg)
{
    struct run *run = arg;

    cluster_check_event(sim, run->cluster);
    for (unsigned i = 0; i < run->programs_count; i++) {
        struct program *program = &run->programs[i];

        if (program->task->session == NULL || !sim_alive(program->task->node)) {
            program->idle_since_ms = sim_now_ms(sim);
            continue;
        }
        look_at_bounds(program);
        look_at_waiting(program);
    }
}

/* All threads want the same, all the time. What the chief's own program schedules has
 * nowhere to travel to, and its equal part of the room is used faster. */
static void check_fair(struct run *run)
{
    uint64_t most = 0;
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < run->programs_count; i++) {
        uint64_t count = cluster_count(&shared_of(&run->programs[i])->finished);

        if (run->programs[i].task == run->cluster->chief)
            continue;
        most = count > most ? count : most;
        least = count < least ? count : least;
    }
    if (most > FAIR_MIN && most > FAIR_FACTOR * (least + 1))
        cluster_break(run->cluster,
                      "one of %u programs has run %" PRIu64
                      " closures, another one %" PRIu64,
                      run->programs_count, most, least);
}

/* ---- Runs ---- */

static void add_program(struct run *run, struct cluster_task *task)
{
    struct program *program = &run->programs[run->programs_count++];

    *program = (struct program){.run = run, .task = task};
    program->threads_count = (unsigned)draw(run, 2, THREADS_MAX);
    if (run->quiet)
        program->threads_count = run->programs[0].threads_count;
    for (unsigned i = 0; i < program->threads_count; i++) {
        program->threads[i].program = program;
        sim_at(run->cluster->sim, BEGIN_MS + draw(run, 1, 50), step,
               &program->threads[i]);
    }
}

static void draw_options(struct run *run, struct cluster_options *ret_options)
{
    static const unsigned paces_ms[] = {2, 10, 60};

    run->quiet = draw(run, 0, 1) == 0;
    run->errors = !run->quiet && draw(run, 0, 1) == 0;
    run->bytes_max = draw(run, 0, 1) == 0 ? 0 : draw(run, 10, BYTES_MAX);
    run->pace_ms = paces_ms[draw(run, 0, 2)];
    *ret_options = (struct cluster_options){
        .workers = (unsigned)draw(run, 1, 4),
        .clients = (unsigned)draw(run, 1, CLIENTS_MAX),
        .queue_max = (unsigned)draw(run, 1, 12),
        .attempts_max = 1000,
        .functions = own,
        .functions_count = sizeof own / sizeof own[0],
        .adaptive = draw(run, 0, 1) == 0,
    };
    if (run->bytes_max > 0)
        ret_options->node.queue_bytes_max = draw(run, 20, 3 * run->bytes_max);
}

static void begin_chaos(struct run *run)
{
    struct sim_chaos chaos;

    if (run->quiet)
        return;
    sim_chaos_spare(run->cluster->chief->node, SIM_FAULT_CRASH);
    sim_chaos_spare(run->cluster->chief->node, SIM_FAULT_CRASH_MIDWAY);
    sim_chaos_draw(run->cluster->sim, &chaos);
    sim_chaos_start(run->cluster->sim, &chaos, BEGIN_MS + BUSY_MS);
}

static void set_up(struct run *run, uint64_t seed)
{
    struct cluster_options options;
    bool chief_too;

    run->random = sim_stream(seed, 111);
    draw_options(run, &options);
    run->cluster = cluster_new(seed, &options);
    if (!run->quiet)
        sim_settings_draw(run->cluster->sim);
    cluster_start_all(run->cluster);
    sim_run_until(run->cluster->sim, BEGIN_MS);
    chief_too = draw(run, 0, 1) == 0;
    for (unsigned i = 0; i < options.clients; i++)
        add_program(run, run->cluster->clients[i]);
    if (chief_too)
        add_program(run, run->cluster->chief);
    run->reached[QUIET] += run->quiet;
    sim_set_check(run->cluster->sim, look, run);
    begin_chaos(run);
}

static bool is_over(void *arg)
{
    const struct run *run = arg;

    if (run->cluster->broken[0] != '\0')
        return true;
    for (unsigned i = 0; i < run->programs_count; i++) {
        const struct program *program = &run->programs[i];

        if (program->task->session == NULL || !sim_alive(program->task->node) ||
            !program->opening->done || !is_fine(program) ||
            mu__admission_closures(shared_of(program)) > 0)
            return false;
        for (unsigned j = 0; j < program->threads_count; j++)
            if (program->threads[j].step != FREE)
                return false;
    }
    return true;
}

static void finish(struct run *run)
{
    struct cluster *cluster = run->cluster;

    if (run->quiet && cluster->broken[0] == '\0')
        check_fair(run);
    run->over = true;
    if (!sim_run_to(cluster->sim, is_over, run, sim_now_ms(cluster->sim) + CALM_MS))
        cluster_break(cluster, "some threads still wait");
    sim_run_until(cluster->sim, sim_now_ms(cluster->sim) + 20000);
    for (unsigned i = 0; i < run->programs_count; i++)
        run->reached[CRASHED] += sim_lives(run->programs[i].task->node) - 1;
    (void)cluster_check_rest(cluster);
}

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    uint64_t again[REACHED] = {0};
    struct run run = {.reached = sum == NULL ? again : sum};

    set_up(&run, seed);
    sim_run_until(run.cluster->sim, BEGIN_MS + BUSY_MS);
    finish(&run);
    verdict_of(run.cluster, show, ret_verdict);
    for (unsigned i = 0; i < run.programs_count; i++)
        forget_process(&run.programs[i]);
    cluster_free(run.cluster);
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of admission --seed",
    .count = SEEDS,
    .repeat_every = 40,
    .seconds_max = 30,
    .run = run_one,
};

TEST(test_seeds)
{
    uint64_t reached[REACHED] = {0};

    seeds_expect_well(&seeds, reached);
    for (int i = 0; i < REACHED; i++) {
        print_message("%" PRIu64 " %s\n", reached[i], reached_words[i]);
        if (seeds_count() >= SEEDS)
            assert_true(reached[i] > SEEDS / 10);
    }
}

SEEDS_PROGRAM(seeds)
