/* Workers by load: the one that is picked has room, and none with room has less to do. */
#include "actors/supervisor/state/membership.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

enum { WORKERS_MAX = 40, STEPS = 40000, IN_FLIGHT_MAX = 64, ROLES = 3 };

static struct mu__worker_id worker(uint32_t index)
{
    return (struct mu__worker_id){0, index};
}

static const struct mu__charge lasting = {0, MU__STAGE_LASTING};

static struct mu__charge sent(uint32_t cost_us)
{
    return (struct mu__charge){cost_us, MU__STAGE_SENT};
}

TEST(test_least_loaded)
{
    struct mu__membership members = {0};
    uint32_t a;
    uint32_t b;

    assert_int_equal(mu__membership_pick(&members), 0);
    a = mu__membership_add(&members, 7, worker(0), 1, 2);
    assert_int_equal(mu__membership_pick(&members), a);
    mu__membership_load(&members, a, 0, 0);
    assert_int_equal(mu__membership_pick(&members), a);
    b = mu__membership_add(&members, 8, worker(1), 1, 1);
    assert_int_equal(mu__membership_pick(&members), b);
    mu__membership_load(&members, b, 0, 0);
    assert_int_equal(mu__membership_pick(&members), a);
    mu__membership_load(&members, a, 0, 0);
    assert_int_equal(mu__membership_pick(&members), 0);
    mu__membership_unload(&members, b, 0, sent(0));
    assert_int_equal(mu__membership_pick(&members), b);
    mu__membership_done(&members);
}

/* Large arguments fill a worker before its window does. */
/* Who steps back comes behind those of its load, and only those. */
TEST(test_step_back)
{
    struct mu__membership members = {0};
    uint32_t numbers[4];
    uint32_t seen[8];

    for (uint32_t i = 0; i < 4; i++)
        numbers[i] = mu__membership_add(&members, 7 + i, worker(i), 1, 2);
    mu__membership_load(&members, numbers[3], 0, 0);
    for (uint32_t i = 0; i < 6; i++) {
        seen[i] = mu__membership_pick(&members);
        mu__membership_load(&members, seen[i], 0, 0);
        mu__membership_unload(&members, seen[i], 0, sent(0));
        mu__membership_step_back(&members, seen[i]);
        assert_int_not_equal(seen[i], numbers[3]);
        for (uint32_t j = 0; j < i; j++)
            assert_int_equal(seen[i] == seen[j], (i - j) % 3 == 0);
    }
    mu__membership_step_back(&members, numbers[3]);
    for (uint32_t i = 0; i < 3; i++)
        mu__membership_load(&members, numbers[i], 0, 0);
    mu__membership_step_back(&members, numbers[0]);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t number = mu__membership_pick(&members);

        assert_int_not_equal(number, 0);
        mu__membership_load(&members, number, 0, 0);
    }
    assert_int_equal(mu__membership_pick(&members), 0);
    mu__membership_done(&members);
}

TEST(test_bytes)
{
    struct mu__membership members = {0};
    uint32_t a = mu__membership_add(&members, 7, worker(0), 1, 100);

    mu__membership_load(&members, a, MU__WORKER_BYTES_MAX, 0);
    assert_int_equal(mu__membership_pick(&members), a);
    mu__membership_load(&members, a, 1, 0);
    assert_int_equal(mu__membership_pick(&members), 0);
    mu__membership_unload(&members, a, MU__WORKER_BYTES_MAX, sent(0));
    assert_int_equal(mu__membership_pick(&members), a);
    mu__membership_done(&members);
}

TEST(test_numbers)
{
    struct mu__membership members = {0};
    uint32_t a = mu__membership_add(&members, 7, worker(3), 2, 4);
    uint32_t b = mu__membership_add(&members, 9, worker(4), 2, 4);
    uint32_t c;

    assert_true(a != 0 && b != 0 && a != b);
    assert_int_equal(members.count, 2);
    assert_int_equal(mu__membership_by_node(&members, 9)->number, b);
    assert_int_equal(mu__membership_get(&members, a)->index, 3);
    assert_null(mu__membership_by_node(&members, 8));
    assert_null(mu__membership_get(&members, 0));
    assert_null(mu__membership_get(&members, 1000));
    mu__membership_remove(&members, a);
    assert_null(mu__membership_by_node(&members, 7));
    assert_null(mu__membership_get(&members, a));
    assert_int_equal(members.count, 1);
    /* The number waits for its index, until that is forgotten. */
    assert_int_equal(mu__membership_enroll(&members, worker(3)), a);
    c = mu__membership_add(&members, 10, worker(0), 1, 4);
    assert_true(c != a && c != b);
    assert_int_equal(mu__membership_add(&members, 11, worker(3), 1, 4), a);
    assert_int_equal(mu__membership_get(&members, a)->load, 0);
    mu__membership_remove(&members, a);
    mu__membership_forget(&members, a);
    assert_int_equal(mu__membership_enroll(&members, worker(77)), a);
    assert_null(mu__membership_get(&members, a));
    mu__membership_done(&members);
}

static uint32_t pick_index(const struct mu__membership *members, uint32_t role,
                           uint32_t index);

static bool has_index(const struct mu__member_worker *worker, const void *arg)
{
    return worker->index == *(const uint32_t *)arg;
}

static uint32_t pick_index(const struct mu__membership *members, uint32_t role,
                           uint32_t index)
{
    return mu__membership_pick_fitting(members, role, has_index, &index);
}

/* Two types with the same index are two workers, and each role has its own order. */
TEST(test_roles)
{
    const struct mu__worker_id gpu = {2, 0};
    struct mu__membership members = {0};
    uint32_t a = mu__membership_add(&members, 7, worker(0), 1, 2);
    uint32_t b = mu__membership_add(&members, 8, gpu, 1, 4);

    assert_int_not_equal(a, b);
    assert_int_equal(mu__membership_find(&members, gpu), b);
    assert_int_equal(mu__membership_find(&members, worker(0)), a);
    assert_int_equal(mu__membership_find(&members, (struct mu__worker_id){1, 0}), 0);
    assert_int_equal(mu__membership_pick_role(&members, 0), a);
    assert_int_equal(mu__membership_pick_role(&members, 1), 0);
    mu__membership_load(&members, b, 0, 0);
    assert_int_equal(mu__membership_pick(&members), a);
    assert_int_equal(mu__membership_pick_role(&members, 2), b);
    assert_int_equal(pick_index(&members, 2, 0), b);
    assert_int_equal(pick_index(&members, MU__ROLE_ANY, 0), a);
    mu__membership_load(&members, a, 0, 0);
    mu__membership_load(&members, a, 0, 0);
    assert_int_equal(mu__membership_pick(&members), b);
    assert_int_equal(mu__membership_pick_role(&members, 0), 0);
    mu__membership_remove(&members, b);
    assert_int_equal(mu__membership_pick(&members), 0);
    assert_int_equal(mu__membership_add(&members, 9, gpu, 1, 4), b);
    mu__membership_done(&members);
}

TEST(test_holds)
{
    struct mu__membership members = {0};
    uint32_t a = mu__membership_add(&members, 7, worker(0), 1, 2);
    uint32_t b = mu__membership_add(&members, 8, worker(1), 1, 2);
    uint32_t index = 1;

    mu__membership_hold(&members, a, MU__HOLD_DRAIN | MU__HOLD_BUILD);
    assert_int_equal(mu__membership_pick(&members), b);
    mu__membership_release(&members, a, MU__HOLD_BUILD);
    mu__membership_load(&members, b, 0, 0);
    assert_int_equal(mu__membership_pick(&members), b);
    mu__membership_release(&members, a, MU__HOLD_DRAIN);
    assert_int_equal(mu__membership_pick(&members), a);
    assert_int_equal(pick_index(&members, MU__ROLE_ANY, index), b);
    index = 2;
    assert_int_equal(pick_index(&members, MU__ROLE_ANY, index), 0);
    mu__membership_done(&members);
}

/* Two threads that may have 4 ms each: what is known to take 3 ms goes there three times,
 * and what takes no time as often as the window says. */
TEST(test_time_bounds_what_is_given)
{
    struct mu__membership members = {0};
    uint32_t a = mu__membership_add(&members, 7, worker(0), 2, 12);
    unsigned given = 0;

    mu__membership_set_time(&members, a, 4000);
    for (; mu__membership_pick(&members) == a; given++)
        mu__membership_load(&members, a, 0, 3000);
    assert_int_equal(given, 3);
    assert_int_equal(members.crowded, 1);
    mu__membership_unload(&members, a, 0, sent(3000));
    assert_int_equal(members.crowded, 0);
    assert_int_equal(mu__membership_pick(&members), a);
    for (; given > 1; given--)
        mu__membership_unload(&members, a, 0, sent(3000));
    for (; mu__membership_pick(&members) == a; given++)
        mu__membership_load(&members, a, 0, 0);
    assert_int_equal(given, 13);
    mu__membership_done(&members);
}

/* A thread that has run something for long already is not counted on: what the worker may
 * have is for the other one, and nothing when there is no other. */
TEST(test_no_time_behind_what_is_long)
{
    struct mu__membership members = {0};
    uint32_t a = mu__membership_add(&members, 7, worker(0), 2, 12);
    unsigned given = 0;

    mu__membership_set_time(&members, a, 4000);
    mu__membership_load(&members, a, 0, 60000);
    mu__membership_recharge(&members, a, sent(60000), lasting);
    for (; mu__membership_pick(&members) == a; given++)
        mu__membership_load(&members, a, 0, 1500);
    assert_int_equal(given, 3);
    mu__membership_recharge(&members, a, sent(1500), lasting);
    mu__membership_unload(&members, a, 0, sent(1500));
    mu__membership_unload(&members, a, 0, sent(1500));
    assert_int_equal(members.workers[a].load, 2);
    assert_int_equal(mu__membership_pick(&members), 0);
    mu__membership_unload(&members, a, 0, lasting);
    assert_int_equal(mu__membership_pick(&members), a);
    mu__membership_done(&members);
}

/* A thread that runs as long as was expected is free soon: what is left of its run counts
 * as any other work. */
TEST(test_time_behind_what_is_expected)
{
    const struct mu__charge begun = {3000, MU__STAGE_BEGUN};
    const struct mu__charge ending = {500, MU__STAGE_BEGUN};
    struct mu__membership members = {0};
    uint32_t a = mu__membership_add(&members, 7, worker(0), 1, 12);

    mu__membership_set_time(&members, a, 2000);
    mu__membership_load(&members, a, 0, 10000);
    mu__membership_recharge(&members, a, sent(10000), begun);
    assert_int_equal(mu__membership_pick(&members), 0);
    mu__membership_recharge(&members, a, begun, ending);
    assert_int_equal(mu__membership_pick(&members), a);
    mu__membership_load(&members, a, 0, 1500);
    assert_int_equal(mu__membership_pick(&members), 0);
    mu__membership_unload(&members, a, 0, sent(1500));
    assert_int_equal(mu__membership_pick(&members), a);
    mu__membership_recharge(&members, a, ending, lasting);
    assert_int_equal(mu__membership_pick(&members), 0);
    mu__membership_unload(&members, a, 0, lasting);
    assert_int_equal(members.workers[a].load_us, 0);
    assert_int_equal(members.workers[a].begun, 0);
    mu__membership_done(&members);
}

/* A large window that was filled is offered again when half of it is free, and before
 * that in the turn in which it was filled. */
TEST(test_refill_by_halves)
{
    struct mu__membership members = {0};
    uint32_t a = mu__membership_add(&members, 7, worker(0), 2, 20);

    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(mu__membership_pick(&members), a);
        mu__membership_load(&members, a, 0, 0);
    }
    members.turn++;
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(mu__membership_pick(&members), 0);
        mu__membership_unload(&members, a, 0, sent(0));
    }
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(mu__membership_pick(&members), a);
        mu__membership_load(&members, a, 0, 0);
    }
    assert_int_equal(mu__membership_pick(&members), 0);
    mu__membership_unload(&members, a, 0, sent(0));
    assert_int_equal(mu__membership_pick(&members), a);
    mu__membership_done(&members);
}

/* ---- Chance ---- */

/* What is in flight at one worker, as the test knows it. */
struct known {
    bool present;
    uint32_t node;
    uint32_t window;
    bool full;            /* filled, and not half empty since, */
    uint64_t filled_turn; /* in this turn */
    uint32_t load;
    uint64_t bytes[IN_FLIGHT_MAX];
    uint64_t bytes_sum;
};

static bool has_room(const struct known *known)
{
    return known->present && !known->full && known->load < known->window &&
           known->bytes_sum <= MU__WORKER_BYTES_MAX;
}

static void note_full(struct known *known, uint64_t turn)
{
    bool has_place =
        known->load < known->window && known->bytes_sum <= MU__WORKER_BYTES_MAX;

    if (!has_place) {
        known->full = known->window >= 16;
        known->filled_turn = turn;
    } else if (known->filled_turn == turn || known->load <= 1 ||
               known->load <= known->window / 2) {
        known->full = false;
    }
}

/* Of a role, or of ROLES: any. */
static void check_pick(struct mu__membership *members, const struct known *known,
                       uint32_t role)
{
    uint32_t lowest = UINT32_MAX;
    uint32_t picked = role == ROLES ? mu__membership_pick(members)
                                    : mu__membership_pick_role(members, role);

    for (uint32_t i = 1; i <= WORKERS_MAX; i++)
        if (has_room(&known[i]) && known[i].load < lowest &&
            (role == ROLES || known[i].node % ROLES == role))
            lowest = known[i].load;
    if (lowest == UINT32_MAX) {
        assert_int_equal(picked, 0);
        return;
    }
    assert_true(picked >= 1 && picked <= WORKERS_MAX);
    assert_true(has_room(&known[picked]));
    assert_true(role == ROLES || known[picked].node % ROLES == role);
    assert_int_equal(known[picked].load, lowest);
    assert_int_equal(mu__membership_get(members, picked)->load, lowest);
}

static void give(struct mu__membership *members, struct known *known, uint32_t number,
                 uint64_t bytes)
{
    known[number].bytes[known[number].load++] = bytes;
    known[number].bytes_sum += bytes;
    note_full(&known[number], members->turn);
    mu__membership_load(members, number, bytes, 0);
}

static void take(struct mu__membership *members, struct known *known, uint32_t number)
{
    uint64_t bytes = known[number].bytes[--known[number].load];

    known[number].bytes_sum -= bytes;
    note_full(&known[number], members->turn);
    mu__membership_unload(members, number, bytes, sent(0));
}

static void come(struct mu__membership *members, struct known *known, uint32_t node,
                 uint32_t window)
{
    const struct mu__worker_id id = {node % ROLES, node};
    uint32_t number = mu__membership_add(members, node, id, 1, window);

    assert_true(number >= 1 && number <= WORKERS_MAX);
    assert_false(known[number].present);
    known[number] = (struct known){.present = true, .node = node, .window = window};
}

static void step(struct mu__membership *members, struct known *known,
                 struct sim_random *random, uint32_t node)
{
    uint32_t number = (uint32_t)sim_between(random, 1, WORKERS_MAX);
    uint32_t picked = mu__membership_pick(members);

    members->turn += sim_chance(random, 30);
    switch (sim_between(random, 0, 9)) {
    case 0:
        if (members->count < WORKERS_MAX)
            come(members, known, node, (uint32_t)sim_between(random, 1, IN_FLIGHT_MAX));
        break;
    case 1:
        if (!known[number].present || !sim_chance(random, 30))
            break;
        mu__membership_remove(members, number);
        mu__membership_forget(members, number);
        known[number].present = false;
        break;
    case 2:
    case 3:
    case 4:
        if (known[number].present && known[number].load > 0)
            take(members, known, number);
        break;
    default:
        if (picked != 0)
            give(members, known, picked,
                 sim_chance(random, 5) ? sim_between(random, 0, 20 << 20) : 100);
        break;
    }
}

TEST(test_chance)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct sim_random random = sim_stream(seed, 2);
        struct mu__membership members = {0};
        struct known known[WORKERS_MAX + 1] = {{0}};

        for (uint32_t i = 0; i < STEPS; i++) {
            step(&members, known, &random, i + 1);
            for (uint32_t role = 0; role <= ROLES; role++)
                check_pick(&members, known, role);
        }
        for (uint32_t i = 1; i <= WORKERS_MAX; i++)
            if (known[i].present)
                assert_int_equal(mu__membership_by_node(&members, known[i].node)->number,
                                 i);
        mu__membership_done(&members);
    }
}

TEST_PROGRAM()
