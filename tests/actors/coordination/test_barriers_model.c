/* The table of barriers against a naive model. */
#include "tests/actors/coordination/barrier_notation.h"
#include "tests/support/test.h"

#include <inttypes.h>

/* ---- against a naive model ----
 *
 * The model has, of each name, what each task was asked for and told, in full. Tasks
 * play as agents do: each has a count, which goes up with each outcome; one that arrives
 * waits; restarted ones begin at 0. */

enum { NOT_TOLD = 1 };

struct model_task {
    uint64_t incarnation;
    uint64_t token;
    uint64_t generation; /* its own count */
    bool waits;          /* has arrived, was not told */
    bool heard_late;     /* the outcome was lost: it will ask again */
    bool recoverable;
};

struct model {
    struct mu__barriers barriers;
    struct sim_random random;
    uint64_t now_ms;
    uint64_t incarnation;
    struct model_task tasks[NAMES][SLOTS];
    bool counted[NAMES][SLOTS]; /* is there, for the generation that runs */
    int outcomes[NAMES][STEPS]; /* of generations; NOT_TOLD: not over */
    uint64_t begun[NAMES];      /* how many generations have begun */
    uint64_t ended, failed, again;
};

static const char *const model_names[NAMES] = {"a", "b/c", "step"};

static void model_told(struct model *m, unsigned n, uint32_t slot, uint64_t generation,
                       int code)
{
    struct model_task *task = &m->tasks[n][slot];

    if (m->outcomes[n][generation] != code)
        fail_msg("%s %" PRIu64 ": slot %u is told %d, others %d", model_names[n],
                 generation, slot, code, m->outcomes[n][generation]);
    task->waits = false;
    task->generation = generation + 1;
}

static void model_end(struct model *m, unsigned n, struct mu__barrier *barrier, int code)
{
    const mu_error error = {.code = code};
    uint64_t generation = barrier->generation;

    assert_int_equal(m->outcomes[n][generation], NOT_TOLD);
    for (uint32_t i = 0; code == 0 && i < SLOTS; i++)
        assert_true(m->counted[n][i]);
    (void)mu__barriers_end(&m->barriers, barrier, code == 0 ? NULL : &error, 0,
                           m->now_ms);
    m->outcomes[n][generation] = code;
    m->ended++;
    m->failed += code != 0;
    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        uint32_t slot = barrier->seats[i].slot;

        assert_int_equal(barrier->seats[i].arrived, m->counted[n][slot]);
        if (barrier->seats[i].arrived &&
            barrier->seats[i].token == m->tasks[n][slot].token) {
            if (sim_chance(&m->random, 20))
                m->tasks[n][slot].heard_late = true;
            else
                model_told(m, n, slot, generation, code);
        }
        m->counted[n][slot] = false;
    }
}

static void model_arrive(struct model *m, unsigned n, uint32_t slot, bool is_again)
{
    static const uint32_t slots[SLOTS] = {0, 1, 2, 3, 4, 5};
    struct model_task *task = &m->tasks[n][slot];
    const struct mu__barrier_outcome *outcome = NULL;
    struct mu__barrier *barrier;
    struct mu__barrier_arrival arrival;
    uint64_t replaced = 0;
    enum mu__arrived how;

    task->token += !is_again;
    task->waits = true;
    task->heard_late = false;
    arrival = (struct mu__barrier_arrival){.name = mu__view_str(model_names[n]),
                                           .generation = task->generation,
                                           .set = "worker:0-5",
                                           .slot = slot,
                                           .recoverable = task->recoverable,
                                           .incarnation = task->incarnation,
                                           .token = task->token};
    how = mu__barriers_arrive(&m->barriers, &arrival, &outcome, &replaced);
    if (how == MU__ARRIVED_FIRST) {
        assert_int_equal(mu__barriers_begin(&m->barriers, &arrival, slots, SLOTS, 0,
                                            m->now_ms, NULL, &barrier),
                         0);
        assert_int_equal(barrier->generation, m->begun[n]);
        m->begun[n]++;
        how = mu__barriers_arrive(&m->barriers, &arrival, &outcome, &replaced);
    }
    barrier = mu__barriers_find(&m->barriers, arrival.name);
    if (how == MU__ARRIVED_AGAIN) {
        m->again++;
        model_told(m, n, slot, outcome->generation, outcome->code);
        return;
    }
    /* Nobody here is out of order, but those who have missed more than is remembered,
     * or are new and not recoverable. */
    if (how == MU__ARRIVED_SLOW) {
        assert_false(task->recoverable);
        if (barrier->running)
            model_end(m, n, barrier, -MU_EINTERNAL);
        task->waits = false;
        task->generation = barrier->generation;
        return;
    }
    assert_true(how == MU__ARRIVED_WAITS || how == MU__ARRIVED_LAST);
    assert_int_equal(replaced, 0);
    m->counted[n][slot] = true;
    if (how == MU__ARRIVED_LAST)
        model_end(m, n, barrier, 0);
}

static void model_step(struct model *m)
{
    unsigned n = (unsigned)sim_between(&m->random, 0, NAMES - 1);
    uint32_t slot = (uint32_t)sim_between(&m->random, 0, SLOTS - 1);
    struct model_task *task = &m->tasks[n][slot];
    struct mu__barrier *barrier =
        mu__barriers_find(&m->barriers, mu__view_str(model_names[n]));
    bool runs = barrier != NULL && barrier->running;
    uint64_t what = sim_between(&m->random, 0, 99);

    m->now_ms++;
    if (what < 3 && runs) {
        model_end(m, n, barrier, -MU_EDEADLINE);
    } else if (what < 8 && task->recoverable) {
        /* It dies, and another one begins. */
        assert_int_equal(runs && mu__barrier_uncount(barrier, slot), m->counted[n][slot]);
        m->counted[n][slot] = false;
        *task = (struct model_task){.incarnation = ++m->incarnation, .recoverable = true};
    } else if (what < 14 && task->recoverable && runs) {
        /* Its link is down for too long; it asks again when it is back. */
        assert_int_equal(mu__barrier_uncount(barrier, slot), m->counted[n][slot]);
        m->counted[n][slot] = false;
    } else if (task->waits) {
        if (task->heard_late || !m->counted[n][slot] || what < 30)
            model_arrive(m, n, slot, true);
    } else {
        model_arrive(m, n, slot, false);
    }
    assert_true(mu__barriers_check(&m->barriers));
}

static void model_run(struct model *m, uint64_t seed)
{
    *m = (struct model){.random = {seed}, .incarnation = 1};
    for (unsigned n = 0; n < NAMES; n++) {
        for (uint32_t i = 0; i < SLOTS; i++)
            m->tasks[n][i] = (struct model_task){
                .incarnation = ++m->incarnation,
                .recoverable = seed % 3 != 0 || i % 2 == 0,
            };
        for (unsigned i = 0; i < STEPS; i++)
            m->outcomes[n][i] = NOT_TOLD;
    }
    for (unsigned i = 0; i < STEPS; i++)
        model_step(m);
}

TEST(test_model)
{
    static struct model m;
    uint64_t ended = 0;
    uint64_t failed = 0;
    uint64_t again = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        model_run(&m, seed);
        ended += m.ended;
        failed += m.failed;
        again += m.again;
        mu__barriers_done(&m.barriers);
    }
    assert_true(ended - failed > SEEDS && failed > SEEDS && again > SEEDS);
}

TEST_PROGRAM()
