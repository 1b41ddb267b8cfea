/* What every world must do, written once. A test file fills in a struct contract_world,
 * which says how to make a world and how to let it run, and gets the whole suite:
 *
 *     return contract_world_run("sim", &sim_fixture);
 *
 * Include it after cmocka.h. */
#ifndef MU_TESTS_CONTRACT_WORLD_H
#define MU_TESTS_CONTRACT_WORLD_H

#include "muster/error.h"
#include "runtime/kernel/system_messages.h"
#include "runtime/kernel/world.h"
#include "runtime/message/pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct contract_world {
    /* A place with one world that is open, with two executor threads. */
    void *(*open)(const struct mu__world_hooks *hooks);

    /* Take it away; what was submitted has come back. */
    void (*close)(void *place);

    struct mu__world *(*world)(void *place);

    /* A message from another thread. Takes msg. */
    void (*post)(void *place, struct mu__msg *msg);

    /* Let things happen until done(arg): true; false when that is not so after for_ms. */
    bool (*run)(void *place, bool (*done)(void *arg), void *arg, uint64_t for_ms);
};

enum { CONTRACT_WORKS = 50, CONTRACT_POSTS = 200, CONTRACT_LONG_MS = 10000 };

struct contract_work {
    struct mu__work work;
    unsigned begins;
    unsigned runs;
    unsigned done;
};

struct contract_state {
    const struct contract_world *fixture;
    void *place;
    struct mu__world *world;
    struct mu__pool pool;
    unsigned turns;        /* all that were taken */
    unsigned turns_wanted; /* for contract_has_turns */
    uint64_t turn_ms;      /* when the last one was */
    bool clock_stood;      /* during every turn */
    bool inside;           /* a hook is running */
    unsigned spins;        /* to make a turn last longer than a millisecond */
    unsigned wakes_left;   /* turns that ask for another one */
    struct contract_work works[CONTRACT_WORKS];
    unsigned works_done;
    unsigned works_wanted; /* for contract_works_are_done */
    unsigned works_again;  /* more to submit when one comes back */
    unsigned delivered;
    unsigned undelivered_turn; /* messages that no turn has followed */
    unsigned next_post;        /* the kind's number that must come next */
    struct mu__msg *transmitted;
    int transmit_answer;
};

enum { CONTRACT_HELD = 2 }; /* works that hold both threads */

/* Those do not end before it is false. */
static atomic_bool contract_hold;
static atomic_uint contract_begun;

/* ---- The hooks ---- */

static void contract_on_work_done(struct contract_state *s, struct mu__msg *msg)
{
    struct mu__work_done *body = (void *)msg->body;
    struct contract_work *done = (struct contract_work *)body->work;

    assert_true(done >= s->works && done < s->works + CONTRACT_WORKS);
    assert_int_equal(done->runs, done->done + 1);
    assert_int_equal(msg->to.node, MU__NODE_SELF);
    assert_int_equal(msg->to.actor, 100 + (done - s->works));
    done->done++;
    s->works_done++;
    if (s->works_again == 0)
        return;
    s->works_again--;
    s->world->ops->submit(s->world, &done->work);
}

static void contract_deliver(void *owner, struct mu__msg *msg)
{
    struct contract_state *s = owner;

    assert_false(s->inside);
    s->inside = true;
    s->delivered++;
    s->undelivered_turn++;
    if (msg->kind == MU__WORK_DONE)
        contract_on_work_done(s, msg);
    else
        assert_int_equal(msg->kind, MU__SYSTEM_KINDS_END + s->next_post++);
    mu__pool_put(&s->pool, msg);
    s->inside = false;
}

static void contract_turn(void *owner)
{
    struct contract_state *s = owner;
    uint64_t before_ms = s->world->ops->now_ms(s->world);
    volatile unsigned spin = s->spins;

    assert_false(s->inside);
    s->inside = true;
    s->turns++;
    s->turn_ms = before_ms;
    s->undelivered_turn = 0;
    while (spin > 0)
        spin--;
    if (s->wakes_left > 0) {
        s->wakes_left--;
        s->world->ops->wake_at(s->world, before_ms);
    }
    if (s->world->ops->now_ms(s->world) != before_ms)
        s->clock_stood = false;
    s->inside = false;
}

static int contract_transmit(void *owner, struct mu__msg *msg)
{
    struct contract_state *s = owner;

    assert_null(s->transmitted);
    s->transmitted = msg;
    return s->transmit_answer;
}

/* ---- What to wait for ---- */

static bool contract_has_turns(void *arg)
{
    struct contract_state *s = arg;

    return s->turns >= s->turns_wanted;
}

static bool contract_works_are_done(void *arg)
{
    struct contract_state *s = arg;

    return s->works_done >= s->works_wanted && s->undelivered_turn == 0;
}

static bool contract_posts_are_here(void *arg)
{
    struct contract_state *s = arg;

    return s->delivered >= CONTRACT_POSTS && s->undelivered_turn == 0;
}

static bool contract_never(void *arg)
{
    (void)arg;
    return false;
}

static void contract_expect_turns(struct contract_state *s, unsigned turns)
{
    s->turns_wanted = turns;
    assert_true(s->fixture->run(s->place, contract_has_turns, s, CONTRACT_LONG_MS));
    assert_int_equal(s->turns, turns);
}

static void contract_let_pass(struct contract_state *s, uint64_t ms)
{
    assert_false(s->fixture->run(s->place, contract_never, s, ms));
}

/* ---- The suite ---- */

LISTED_TEST(contract_clock_goes_on)
{
    struct contract_state *s = *state;
    uint64_t begin_ms = s->world->ops->now_ms(s->world);
    uint64_t end_ms;

    s->world->ops->wake_at(s->world, begin_ms + 30);
    contract_expect_turns(s, 1);
    end_ms = s->world->ops->now_ms(s->world);
    assert_true(s->turn_ms >= begin_ms + 30);
    assert_true(end_ms >= s->turn_ms);
}

LISTED_TEST(contract_clock_stands_in_a_turn)
{
    struct contract_state *s = *state;

    s->spins = 3000000;
    s->wakes_left = 5;
    s->world->ops->wake_at(s->world, 0);
    contract_expect_turns(s, 6);
    assert_true(s->clock_stood);
}

LISTED_TEST(contract_chance_differs)
{
    struct contract_state *s = *state;
    uint64_t seen[64];
    uint64_t ones = 0, zeros = 0;

    for (size_t i = 0; i < 64; i++) {
        seen[i] = s->world->ops->random(s->world);
        ones |= seen[i];
        zeros |= ~seen[i];
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    }
    assert_true(ones == UINT64_MAX && zeros == UINT64_MAX);
}

/* A request never runs the turn itself. */
LISTED_TEST(contract_wake_is_not_a_call)
{
    struct contract_state *s = *state;

    s->world->ops->wake_at(s->world, 0);
    assert_int_equal(s->turns, 0);
    contract_expect_turns(s, 1);
}

LISTED_TEST(contract_turns_are_not_nested)
{
    struct contract_state *s = *state;

    s->wakes_left = 5;
    s->world->ops->wake_at(s->world, 0);
    contract_expect_turns(s, 6);
    contract_let_pass(s, 30);
    assert_int_equal(s->turns, 6);
}

/* The earliest request wins, and its turn answers the others as well. */
LISTED_TEST(contract_earliest_wake_wins)
{
    struct contract_state *s = *state;
    uint64_t now_ms = s->world->ops->now_ms(s->world);

    s->world->ops->wake_at(s->world, now_ms + 60000);
    s->world->ops->wake_at(s->world, now_ms + 20);
    s->world->ops->wake_at(s->world, now_ms + 40);
    contract_expect_turns(s, 1);
    assert_true(s->turn_ms >= now_ms + 20);
    assert_true(s->turn_ms < now_ms + 60000);
    contract_let_pass(s, 60);
    assert_int_equal(s->turns, 1);
}

/* Far away is not now, however the numbers are computed with. */
LISTED_TEST(contract_far_wakes_do_not_overflow)
{
    struct contract_state *s = *state;

    s->world->ops->wake_at(s->world, UINT64_MAX);
    s->world->ops->wake_at(s->world, UINT64_MAX / 2);
    contract_let_pass(s, 30);
    assert_int_equal(s->turns, 0);
    s->world->ops->wake_at(s->world, 0);
    contract_expect_turns(s, 1);
}

LISTED_TEST(contract_nothing_asked_nothing_done)
{
    struct contract_state *s = *state;

    contract_let_pass(s, 50);
    assert_int_equal(s->turns, 0);
    assert_int_equal(s->delivered, 0);
}

static void contract_work_begin(struct mu__work *work)
{
    ((struct contract_work *)(void *)work)->begins++;
}

/* The begin comes first. */
static void contract_work_run(struct mu__work *work)
{
    struct contract_work *own = (struct contract_work *)(void *)work;

    own->runs += own->begins == own->runs + 1;
}

static void contract_work_run_alone(struct mu__work *work)
{
    ((struct contract_work *)(void *)work)->runs++;
}

static void contract_submit_all(struct contract_state *s)
{
    s->works_wanted = CONTRACT_WORKS + s->works_again;
    for (unsigned i = 0; i < CONTRACT_WORKS; i++) {
        s->works[i].work.begin = i % 2 == 0 ? contract_work_begin : NULL;
        s->works[i].work.run = i % 2 == 0 ? contract_work_run : contract_work_run_alone;
        s->works[i].work.owner = (mu__pid){MU__NODE_SELF, 100 + i};
        s->world->ops->submit(s->world, &s->works[i].work);
    }
}

/* Each piece runs once and comes back once, and a turn follows. */
LISTED_TEST(contract_work_comes_back_once)
{
    struct contract_state *s = *state;

    contract_submit_all(s);
    assert_int_equal(s->works_done, 0);
    assert_true(s->fixture->run(s->place, contract_works_are_done, s, CONTRACT_LONG_MS));
    contract_let_pass(s, 30);
    assert_int_equal(s->works_done, CONTRACT_WORKS);
    for (size_t i = 0; i < CONTRACT_WORKS; i++)
        assert_int_equal(s->works[i].runs, 1);
    assert_true(s->turns >= 1);
}

/* What has come back may be submitted at once, from inside the hook. */
LISTED_TEST(contract_work_may_go_again)
{
    struct contract_state *s = *state;

    s->works_again = 100;
    contract_submit_all(s);
    assert_true(s->fixture->run(s->place, contract_works_are_done, s, CONTRACT_LONG_MS));
    contract_let_pass(s, 30);
    assert_int_equal(s->works_done, CONTRACT_WORKS + 100);
}

static void contract_work_run_held(struct mu__work *work)
{
    const struct timespec moment = {0, 100000};

    while (atomic_load(&contract_hold))
        (void)nanosleep(&moment, NULL);
    ((struct contract_work *)(void *)work)->runs++;
}

static void contract_work_begin_held(struct mu__work *work)
{
    (void)work;
    (void)atomic_fetch_add(&contract_begun, 1);
}

static void contract_submit_one(struct contract_state *s, unsigned i)
{
    s->works[i].work = (struct mu__work){
        .begin = i < CONTRACT_HELD ? contract_work_begin_held : NULL,
        .run = i < CONTRACT_HELD ? contract_work_run_held : contract_work_run_alone,
        .owner = {MU__NODE_SELF, 100 + i},
    };
    s->world->ops->submit(s->world, &s->works[i].work);
}

static bool contract_withdraw_one(struct contract_state *s, unsigned i)
{
    return s->world->ops->withdraw(s->world, &s->works[i].work);
}

/* So many are queued behind two that have begun, and do not end before
 * contract_hold is false. */
static void contract_submit_behind_held(struct contract_state *s, unsigned count)
{
    const struct timespec moment = {0, 100000};

    atomic_store(&contract_hold, true);
    atomic_store(&contract_begun, 0);
    for (unsigned i = 0; i < CONTRACT_HELD + count; i++)
        contract_submit_one(s, i);
    while (atomic_load(&contract_begun) < CONTRACT_HELD)
        (void)nanosleep(&moment, NULL);
}

static void contract_expect_works(struct contract_state *s, unsigned done)
{
    atomic_store(&contract_hold, false);
    s->works_wanted = done;
    assert_true(s->fixture->run(s->place, contract_works_are_done, s, CONTRACT_LONG_MS));
    contract_let_pass(s, 30);
    assert_int_equal(s->works_done, done);
}

/* First, last and in the middle: what was not withdrawn runs all the same. */
LISTED_TEST(contract_withdrawn_work_never_runs)
{
    static const unsigned taken[] = {2, 3, 6, 9, 11};
    struct contract_state *s = *state;
    bool is_taken[12] = {false};

    contract_submit_behind_held(s, 10);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        assert_true(contract_withdraw_one(s, taken[i]));
        is_taken[taken[i]] = true;
    }
    contract_submit_one(s, 12); /* behind the last, which is gone */
    contract_expect_works(s, 8);
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(s->works[i].runs, !is_taken[i]);
    assert_int_equal(s->works[12].runs, 1);
}

/* When all are taken, the next one is the first again. */
LISTED_TEST(contract_all_may_be_withdrawn)
{
    struct contract_state *s = *state;

    contract_submit_behind_held(s, 3);
    for (unsigned i = CONTRACT_HELD + 3; i-- > CONTRACT_HELD;)
        assert_true(contract_withdraw_one(s, i));
    contract_submit_one(s, 2);
    contract_expect_works(s, CONTRACT_HELD + 1);
    assert_int_equal(s->works[2].runs, 1);
    assert_int_equal(s->works[3].runs + s->works[4].runs, 0);
}

/* It comes back as if nobody had asked for it. */
LISTED_TEST(contract_begun_work_is_not_withdrawn)
{
    struct contract_state *s = *state;

    contract_submit_behind_held(s, 0);
    for (unsigned i = 0; i < CONTRACT_HELD; i++)
        assert_false(contract_withdraw_one(s, i));
    contract_expect_works(s, CONTRACT_HELD);
    for (unsigned i = 0; i < CONTRACT_HELD; i++) {
        assert_int_equal(s->works[i].runs, 1);
        assert_false(contract_withdraw_one(s, i));
    }
}

/* It is the caller's, who may submit it again. */
LISTED_TEST(contract_withdrawn_work_may_go_again)
{
    struct contract_state *s = *state;

    contract_submit_behind_held(s, 5);
    for (unsigned i = CONTRACT_HELD; i < CONTRACT_HELD + 5; i++) {
        assert_true(contract_withdraw_one(s, i));
        contract_submit_one(s, i);
    }
    contract_expect_works(s, CONTRACT_HELD + 5);
    for (unsigned i = 0; i < CONTRACT_HELD + 5; i++)
        assert_int_equal(s->works[i].runs, 1);
}

LISTED_TEST(contract_posts_keep_their_order)
{
    struct contract_state *s = *state;

    for (unsigned i = 0; i < CONTRACT_POSTS; i++) {
        struct mu__msg *msg = mu__msg_heap((uint16_t)(MU__SYSTEM_KINDS_END + i), 40);

        assert_non_null(msg);
        s->fixture->post(s->place, msg);
    }
    assert_int_equal(s->delivered, 0);
    assert_true(s->fixture->run(s->place, contract_posts_are_here, s, CONTRACT_LONG_MS));
    assert_int_equal(s->delivered, CONTRACT_POSTS);
    assert_true(s->turns >= 1);
}

LISTED_TEST(contract_transmit_hands_through)
{
    struct contract_state *s = *state;
    static const int answers[] = {0, -MU_EUNAVAILABLE};

    for (size_t i = 0; i < 2; i++) {
        struct mu__msg *msg = mu__pool_get(&s->pool, MU__SYSTEM_KINDS_END, 0);

        assert_non_null(msg);
        s->transmit_answer = answers[i];
        assert_int_equal(s->world->ops->transmit(s->world, msg), answers[i]);
        assert_ptr_equal(s->transmitted, msg);
        s->transmitted = NULL;
        mu__pool_put(&s->pool, msg);
    }
}

/* A line may have any length and any bytes. */
LISTED_TEST(contract_log_takes_any_line)
{
    struct contract_state *s = *state;
    char line[5000];

    memset(line, '%', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    for (int level = MU__LOG_ERROR; level <= MU__LOG_DEBUG; level++)
        s->world->ops->log(s->world, (enum mu__log_level)level, "contract", line);
    contract_let_pass(s, 10);
    assert_int_equal(s->turns, 0);
}

/* ---- Running it ---- */

static int contract_world_setup(void **state)
{
    const struct contract_world *fixture = *state;
    struct contract_state *s = calloc(1, sizeof *s);
    struct mu__world_hooks hooks = {s, contract_deliver, contract_turn,
                                    contract_transmit};

    if (s == NULL)
        return -1;
    s->fixture = fixture;
    s->clock_stood = true;
    mu__pool_init(&s->pool);
    s->place = fixture->open(&hooks);
    s->world = fixture->world(s->place);
    *state = s;
    return 0;
}

static int contract_world_teardown(void **state)
{
    struct contract_state *s = *state;

    s->fixture->close(s->place);
    mu__pool_done(&s->pool);
    free(s);
    return 0;
}

#define CONTRACT_WORLD_TEST(name)                                        \
    {                                                                    \
#name, name, contract_world_setup, contract_world_teardown, NULL \
    }

static int contract_world_run(const char *name, const struct contract_world *fixture)
{
    struct CMUnitTest tests[] = {
        CONTRACT_WORLD_TEST(contract_clock_goes_on),
        CONTRACT_WORLD_TEST(contract_clock_stands_in_a_turn),
        CONTRACT_WORLD_TEST(contract_chance_differs),
        CONTRACT_WORLD_TEST(contract_wake_is_not_a_call),
        CONTRACT_WORLD_TEST(contract_turns_are_not_nested),
        CONTRACT_WORLD_TEST(contract_earliest_wake_wins),
        CONTRACT_WORLD_TEST(contract_far_wakes_do_not_overflow),
        CONTRACT_WORLD_TEST(contract_nothing_asked_nothing_done),
        CONTRACT_WORLD_TEST(contract_work_comes_back_once),
        CONTRACT_WORLD_TEST(contract_work_may_go_again),
        CONTRACT_WORLD_TEST(contract_withdrawn_work_never_runs),
        CONTRACT_WORLD_TEST(contract_all_may_be_withdrawn),
        CONTRACT_WORLD_TEST(contract_begun_work_is_not_withdrawn),
        CONTRACT_WORLD_TEST(contract_withdrawn_work_may_go_again),
        CONTRACT_WORLD_TEST(contract_posts_keep_their_order),
        CONTRACT_WORLD_TEST(contract_transmit_hands_through),
        CONTRACT_WORLD_TEST(contract_log_takes_any_line),
    };

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tests[i].initial_state = (void *)(uintptr_t)fixture;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

#endif
