/* Barriers of two to thirty tasks under faults that all follow from a seed: tasks die,
 * are restarted, lose their links, report errors, cancel, call twice, name other tasks;
 * the host is restarted, with and without what its store had, and stands still. Then all
 * heals, and everybody must get through every barrier together.
 *
 * Looked for all the time: a generation releases all or none, and never before the last
 * has come; all who are told of it are told the same; no process is told of what was over
 * before it began; whoever can be answered is answered
 * within the limit. Run by hand for more seeds or others: test_barrier_seeds FIRST
 * COUNT. */
#include "tests/support/service/service.h"

#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/barriers/barrier_table.h"
#include "sim/world/random.h"
#include "tests/support/seeds.h"

enum {
    SEEDS = 1000,
    TASKS_MAX = 30,
    NAMES_MAX = 4,
    GENERATIONS_MAX = 600,
    STEPS = 500,
    HEAL_ROUNDS_MAX = 40,
    LIMIT_MAX_MS = 800,
    SLACK_MS = 120, /* of an answer, beyond its limit: what a store takes */
    RECONNECT_MS = 600
};

#define NEVER UINT64_MAX

/* What a task's agent knows of one name. */
struct place {
    uint64_t generation; /* its own count */
    uint64_t token;      /* of what waits; 0: nothing */
    uint64_t asked_ms;   /* since when it could have been answered; NEVER: it cannot */
    bool counted;        /* the service may count it, by what it was told */
};

struct player {
    struct service_agent *agent;
    bool runs;
    bool registered; /* as far as it knows */
    bool in_error;
    uint64_t register_token;
    uint64_t down_ms;  /* since when nothing reaches the host; NEVER: it does */
    uint64_t began_ms; /* when its process was started */
    struct place places[NAMES_MAX];
};

/* What all who are told of one generation are told. */
struct outcome {
    bool known;
    int code;
    uint32_t hash;     /* of the words */
    uint64_t since_ms; /* when the first one was told */
};

struct run {
    struct service *service;
    struct sim_random random;
    unsigned tasks;
    unsigned names;
    bool lasting; /* the store outlives the host */
    bool fates;   /* some are not recoverable */
    bool crashes, cuts, host_crashes, pauses, cancels, reports, mistakes, limits;
    char all[16];
    struct player players[TASKS_MAX];
    char sets[NAMES_MAX][24];    /* "": all */
    unsigned members[NAMES_MAX]; /* the first so many take part */
    struct outcome outcomes[NAMES_MAX][GENERATIONS_MAX];
    uint64_t counts[NAMES_MAX]; /* of tasks told 0 of a generation, while healing */
    bool healing;
    uint64_t *reached;
};

enum reached { PASSED, FAILED, STAYED, REPEATED, LOST_HOSTS, JOINED, REACHED };

static const char *const reached_words[REACHED] = {
    [PASSED] = "generations that all went through",
    [FAILED] = "generations that failed",
    [STAYED] = "arrivals that were wrong alone",
    [REPEATED] = "outcomes told later",
    [LOST_HOSTS] = "hosts that were lost",
    [JOINED] = "restarted tasks that joined a later generation",
};

static uint64_t seed_now;

#define broken(...)                                               \
    do {                                                          \
        print_error("seed %llu: ", (unsigned long long)seed_now); \
        fail_msg(__VA_ARGS__);                                    \
    } while (0)

static uint64_t draw(struct run *run, uint64_t min, uint64_t max)
{
    return sim_between(&run->random, min, max);
}

static bool chance(struct run *run, unsigned percent)
{
    return sim_chance(&run->random, percent);
}

static uint64_t now_ms(const struct run *run)
{
    return sim_now_ms(run->service->sim);
}

static void name_of(unsigned n, char out[16])
{
    (void)snprintf(out, 16, "name/%u", n);
}

static bool host_runs(const struct run *run)
{
    return run->service->hosts[0].kernel != NULL;
}

static bool is_linked(const struct player *player)
{
    return player->runs && player->down_ms == NEVER;
}

/* ---- what is said to tasks ---- */

/* Nobody is released before all have come. */
static void check_released(struct run *run, unsigned n, uint64_t generation)
{
    for (unsigned i = 0; i < run->members[n]; i++)
        if (!run->players[i].places[n].counted)
            broken("name %u, generation %" PRIu64 ": released before task %u came", n,
                   generation, i);
}

/* Whether a task has come to a later generation already: that of a generation nobody was
 * told of until now. */
static bool has_come_later(const struct run *run, unsigned n, uint64_t generation,
                           unsigned task)
{
    const struct mu__barrier *barrier;
    const struct mu__barrier_seat *seat;
    char name[16];

    name_of(n, name);
    barrier = mu__barriers_find(mu__coord_barriers_table(service_state(run->service, 0)),
                                mu__view_str(name));
    if (barrier == NULL || !barrier->running || barrier->generation <= generation)
        return false;
    seat = mu__barrier_seat(barrier, task);
    return seat != NULL && seat->arrived;
}

static void note_outcome(struct run *run, unsigned n, uint64_t generation, int code,
                         uint32_t hash)
{
    struct outcome *outcome;

    assert_true(generation + 1 < GENERATIONS_MAX);
    outcome = &run->outcomes[n][generation];
    if (outcome->known) {
        run->reached[REPEATED]++;
        if (outcome->code != code || outcome->hash != hash)
            broken("name %u, generation %" PRIu64 ": some are told %d, others %d", n,
                   generation, outcome->code, code);
        return;
    }
    *outcome = (struct outcome){true, code, hash, now_ms(run)};
    run->reached[code == 0 ? PASSED : FAILED]++;
    if (code == 0)
        check_released(run, n, generation);
    for (unsigned i = 0; i < run->tasks; i++)
        run->players[i].places[n].counted &= has_come_later(run, n, generation, i);
    run->counts[n] = 0;
}

/* What was passed before a process began is not passed by it, but for the very last. */
static void check_former(struct run *run, const struct player *player, unsigned n,
                         uint64_t generation)
{
    const struct outcome *outcome = &run->outcomes[n][generation];

    if (outcome->code == 0 && outcome->since_ms < player->began_ms && outcome[1].known &&
        outcome[1].since_ms < player->began_ms)
        broken("name %u: a process that began at %" PRIu64
               " ms is told of generation %" PRIu64 ", which was passed at %" PRIu64
               " ms",
               n, player->began_ms, generation, outcome->since_ms);
}

static void told(struct run *run, struct player *player,
                 const struct mu__barrier_passed *body)
{
    for (unsigned n = 0; n < run->names; n++) {
        struct place *place = &player->places[n];

        if (place->token != body->token)
            continue;
        place->token = 0;
        if (body->stays) {
            run->reached[STAYED]++;
        } else {
            run->reached[JOINED] += body->generation > place->generation;
            note_outcome(run, n, body->generation, -(int)body->code,
                         mu__view_hash(body->message));
            check_former(run, player, n, body->generation);
            run->counts[n] += body->code == 0;
        }
        place->generation = body->generation + !body->stays;
    }
}

/* Its agent is in error: what waited there has ended. */
static void in_error(struct run *run, struct player *player)
{
    player->in_error = true;
    player->registered = false;
    for (unsigned n = 0; n < run->names; n++)
        player->places[n].token = 0;
}

/* It was refused, because the service counts it as failed, or not as registered. */
static void refused(struct run *run, struct player *player,
                    const struct mu__tasks_answer *body)
{
    bool counts = body->token == player->register_token;

    for (unsigned n = 0; n < run->names; n++)
        counts |= body->token == player->places[n].token;
    if (body->code != 0 && counts)
        in_error(run, player);
}

static void listen(struct run *run)
{
    const struct service_said *said;

    for (unsigned i = 0; i < run->tasks; i++) {
        struct player *player = &run->players[i];

        while ((said = service_next(player->agent, 0)) != NULL) {
            const void *body = said->msg->body;

            if (said->msg->kind == MU__BARRIER_PASSED)
                told(run, player, body);
            else if (said->msg->kind == MU__TASKS_ANSWER)
                refused(run, player, body);
            else if (said->msg->kind == MU__TASK_ERROR)
                in_error(run, player);
        }
    }
}

static void check(struct run *run)
{
    service_settle(run->service);
    listen(run);
    if (host_runs(run) &&
        !mu__barriers_check(mu__coord_barriers_table(service_state(run->service, 0))))
        broken("the barriers do not add up");
    for (unsigned i = 0; run->limits && i < run->tasks; i++)
        for (unsigned n = 0; n < run->names; n++) {
            const struct place *place = &run->players[i].places[n];

            if (place->token != 0 && place->asked_ms != NEVER &&
                now_ms(run) > place->asked_ms + LIMIT_MAX_MS + SLACK_MS)
                broken("name %u: task %u was asked %" PRIu64 " ms ago and is not "
                       "answered",
                       n, i, now_ms(run) - place->asked_ms);
        }
}

/* ---- what tasks do ---- */

static void send_arrival(struct run *run, struct player *player, unsigned n,
                         const char *set)
{
    struct place *place = &player->places[n];
    char name[16];

    name_of(n, name);
    if (!is_linked(player) || !player->registered || !host_runs(run))
        return;
    place->counted = true;
    place->asked_ms = now_ms(run);
    TELL(player->agent, BARRIER_ARRIVE, barrier_arrive, .token = place->token,
         .name = mu__view_str(name), .generation = place->generation,
         .tasks = mu__view_str(set),
         .timeout_ms = run->limits ? draw(run, 20, LIMIT_MAX_MS) : 0);
}

static void arrive(struct run *run, struct player *player, unsigned n, const char *set)
{
    player->places[n].token = ++player->agent->token;
    player->places[n].asked_ms = NEVER;
    send_arrival(run, player, n, set);
}

/* What was not answered is asked again, in order. */
static void ask_again(struct run *run, struct player *player)
{
    uint64_t last = 0;

    for (;;) {
        struct place *next = NULL;

        for (unsigned n = 0; n < run->names; n++)
            if (player->places[n].token > last &&
                (next == NULL || player->places[n].token < next->token))
                next = &player->places[n];
        if (next == NULL)
            return;
        last = next->token;
        send_arrival(run, player, (unsigned)(next - player->places),
                     run->sets[next - player->places]);
    }
}

static void connect(struct run *run, struct player *player)
{
    if (!player->runs || !host_runs(run))
        return;
    service_link_up(player->agent, 0);
    player->down_ms = NEVER;
    if (player->in_error)
        (void)service_reset(player->agent);
    player->in_error = false;
    player->agent->beats = true;
    player->registered = true;
    player->register_token = service_register(player->agent, false, 0);
    listen(run);
    ask_again(run, player);
}

static void unreachable(struct run *run, struct player *player)
{
    player->agent->beats = false;
    player->registered = false;
    if (player->down_ms == NEVER)
        player->down_ms = now_ms(run);
    for (unsigned n = 0; n < run->names; n++)
        player->places[n].asked_ms = NEVER;
}

static void cut(struct run *run, struct player *player)
{
    service_link_down(player->agent, 0, "connection reset");
    unreachable(run, player);
}

/* It begins anew, and counts from 0. */
static void restart(struct run *run, struct player *player)
{
    service_agent_restart(player->agent);
    unreachable(run, player);
    player->runs = true;
    player->began_ms = now_ms(run);
    player->in_error = false;
    for (unsigned n = 0; n < run->names; n++) {
        player->places[n].token = 0;
        player->places[n].generation = 0;
    }
    connect(run, player);
}

static void crash(struct run *run, struct player *player)
{
    service_agent_crash(player->agent);
    unreachable(run, player);
    player->runs = false;
}

/* With its store the host knows what is over; without, nothing is left of before, and
 * agents begin anew as well. */
static void restart_host(struct run *run)
{
    run->reached[LOST_HOSTS]++;
    service_crash(run->service, 0);
    for (unsigned i = 0; i < run->tasks; i++) {
        unreachable(run, &run->players[i]);
        for (unsigned n = 0; n < run->names; n++) {
            struct place *place = &run->players[i].places[n];

            place->counted = false;
            if (!run->lasting)
                *place = (struct place){.asked_ms = NEVER};
        }
    }
    if (!run->lasting)
        memset(run->outcomes, 0, sizeof run->outcomes);
    service_run(run->service, draw(run, 0, 300));
    service_start(run->service, 0);
    service_run(run->service, 2);
}

static void cancel(struct player *player, unsigned n)
{
    char name[16];

    name_of(n, name);
    TELL(player->agent, BARRIER_CANCEL, barrier_cancel, .token = ++player->agent->token,
         .name = mu__view_str(name), .generation = player->places[n].generation);
}

/* ---- one step ---- */

static void fault(struct run *run, struct player *player)
{
    switch (draw(run, 0, 7)) {
    case 0:
        if (run->crashes)
            crash(run, player);
        break;
    case 1:
        if (run->crashes)
            restart(run, player);
        break;
    case 2:
    case 3:
        if (run->cuts && player->runs)
            cut(run, player);
        break;
    case 4:
        if (run->host_crashes && chance(run, 30))
            restart_host(run);
        break;
    case 5:
        if (run->pauses && chance(run, 30)) {
            uint64_t for_ms = draw(run, 10, 1500);

            sim_pause(run->service->hosts[0].node, for_ms);
            for (unsigned i = 0; i < run->tasks; i++)
                for (unsigned n = 0; n < run->names; n++)
                    if (run->players[i].places[n].asked_ms != NEVER)
                        run->players[i].places[n].asked_ms += for_ms;
            service_run(run->service, for_ms);
        }
        break;
    case 6:
        if (run->reports && player->registered && chance(run, 20)) {
            (void)service_report(player->agent, -MU_EDATALOSS, "a shard is corrupt");
            in_error(run, player);
        }
        break;
    default:
        if (run->mistakes && player->registered)
            arrive(run, player, (unsigned)draw(run, 0, run->names - 1u), "worker:0-99");
    }
}

static void step(struct run *run)
{
    struct player *player = &run->players[draw(run, 0, run->tasks - 1u)];
    unsigned n = (unsigned)draw(run, 0, run->names - 1u);

    if (chance(run, 20))
        service_run(run->service, draw(run, 1, 40));
    if (chance(run, 4))
        fault(run, player);
    else if (!player->runs && chance(run, 30))
        restart(run, player);
    else if (!player->registered && chance(run, 40))
        connect(run, player);
    else if (run->cancels && chance(run, 1))
        cancel(player, n);
    else if (player - run->players < (long)run->members[n] && player->registered &&
             (player->places[n].token == 0 || chance(run, 2)))
        arrive(run, player, n, run->sets[n]);
    /* Who was away for so long is not counted any more. */
    for (unsigned i = 0; i < run->tasks; i++)
        if (run->players[i].down_ms != NEVER &&
            now_ms(run) > run->players[i].down_ms + RECONNECT_MS + SLACK_MS &&
            host_runs(run))
            for (unsigned m = 0; m < run->names && !run->pauses; m++)
                run->players[i].places[m].counted = false;
    check(run);
}

/* ---- the whole ---- */

static void set_up(struct run *run, uint64_t seed)
{
    run->random = sim_stream(seed, 1);
    run->tasks = (unsigned)draw(run, 2, chance(run, 30) ? TASKS_MAX : 6);
    run->names = (unsigned)draw(run, 1, NAMES_MAX);
    run->lasting = chance(run, 70);
    run->fates = chance(run, 25);
    run->crashes = chance(run, 60);
    run->cuts = chance(run, 60);
    run->host_crashes = chance(run, 60);
    run->pauses = chance(run, 30);
    run->cancels = chance(run, 40);
    run->reports = chance(run, 30);
    run->mistakes = chance(run, 30);
    run->limits = chance(run, 70);
    for (unsigned n = 0; n < run->names; n++) {
        run->members[n] = run->tasks;
        if (chance(run, 50))
            run->members[n] = (unsigned)draw(run, 2, run->tasks);
        if (run->members[n] < run->tasks)
            (void)snprintf(run->sets[n], sizeof run->sets[n], "worker:0-%u",
                           run->members[n] - 1);
    }
    (void)snprintf(run->all, sizeof run->all, "worker:0-%u", run->tasks - 1);
    run->service = SERVICE(.tasks = run->all, .seed = seed,
                           .recoverable = run->fates ? "none" : "all",
                           .store = run->lasting ? &mu__store_journal : NULL);
    for (unsigned i = 0; i < run->tasks; i++) {
        struct player *player = &run->players[i];

        player->agent = service_agent(run->service, "worker", i);
        player->runs = true;
        player->down_ms = NEVER;
    }
    for (unsigned i = 0; i < run->tasks; i++)
        connect(run, &run->players[i]);
}

/* Everybody is there and goes through each name until all do so together. */
static void heal(struct run *run)
{
    run->healing = true;
    service_run(run->service, 2000);
    listen(run);
    for (unsigned i = 0; i < run->tasks; i++) {
        if (!run->players[i].runs)
            restart(run, &run->players[i]);
        else if (!run->players[i].registered)
            connect(run, &run->players[i]);
    }
    for (unsigned round = 0; round < HEAL_ROUNDS_MAX; round++) {
        bool all = true;

        for (unsigned n = 0; n < run->names; n++) {
            for (unsigned i = 0; i < run->members[n]; i++) {
                if (!run->players[i].registered)
                    connect(run, &run->players[i]);
                if (run->players[i].places[n].token == 0)
                    arrive(run, &run->players[i], n, run->sets[n]);
                check(run);
            }
            all &= run->counts[n] == run->members[n];
        }
        if (all)
            return;
        service_run(run->service, 50);
        check(run);
    }
    broken("all are well, and still they do not get through together");
}

/* What goes wrong fails the test at once. */
static void run_seed(uint64_t seed, bool show, void *sum,
                     struct seeds_verdict *ret_verdict)
{
    static struct run run;
    uint64_t again[REACHED] = {0};

    seed_now = seed;
    run = (struct run){.reached = sum == NULL ? again : sum};
    set_up(&run, seed);
    for (unsigned i = 0; i < STEPS; i++)
        step(&run);
    heal(&run);
    ret_verdict->digest = sim_digest(run.service->sim);
    if (show)
        fputs(sim_trace(run.service->sim), stdout);
    service_end(run.service);
}

static const struct seeds seeds = {
    .replay = "scripts/soak --of barrier --seed",
    .count = SEEDS,
    .repeat_every = 40,
    .seconds_max = 60,
    .run = run_seed,
};

TEST(test_seeds)
{
    uint64_t reached[REACHED] = {0};

    seeds_expect_well(&seeds, reached);
    for (int i = 0; i < REACHED && seeds_count() >= SEEDS; i++)
        if (reached[i] < SEEDS / 4)
            fail_msg("only %llu times: %s", (unsigned long long)reached[i],
                     reached_words[i]);
}

SEEDS_PROGRAM(seeds)
