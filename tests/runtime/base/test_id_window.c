/* A set of numbers that are added nearly in order, against a plain array. */
#include "runtime/base/id_window.h"

#include "muster/error.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

enum step_kind { ADD, HAS, RAISE, SETTLE };

static const struct step {
    enum step_kind kind;
    uint64_t id;
    uint64_t result; /* of ADD: the code, positive; else what is returned */
} steps[] = {
    {HAS, 9, 1},
    {HAS, 10, 0},
    {SETTLE, 0, 10},
    {ADD, 9, MU_EEXISTS},
    {ADD, 12, 0},
    {ADD, 12, MU_EEXISTS},
    {SETTLE, 0, 10},
    {ADD, 10, 0},
    {SETTLE, 0, 11},
    {ADD, 11, 0},
    {SETTLE, 0, 13},
    {HAS, 12, 1},
    {HAS, 13, 0},
    {RAISE, 5, 13},
    {ADD, 200, 0},
    {RAISE, 100, 100},
    {HAS, 99, 1},
    {HAS, 100, 0},
    {HAS, 200, 1},
    {RAISE, 300, 300},
    {HAS, 200, 1},
    {HAS, 300, 0},
    {ADD, 300 + MU__ID_WINDOW_SPAN_MAX, MU_EEXHAUSTED},
    {ADD, UINT64_MAX, MU_EEXHAUSTED},
    {ADD, 300 + MU__ID_WINDOW_SPAN_MAX - 1, 0},
    {HAS, 300 + MU__ID_WINDOW_SPAN_MAX - 2, 0},
    {HAS, 300 + MU__ID_WINDOW_SPAN_MAX - 1, 1},
    {RAISE, UINT64_MAX - 70, UINT64_MAX - 70},
    {ADD, UINT64_MAX - 1, 0},
    {HAS, UINT64_MAX - 1, 1},
    {HAS, UINT64_MAX - 2, 0},
    {ADD, UINT64_MAX, MU_EEXHAUSTED},
    {RAISE, UINT64_MAX, UINT64_MAX},
    {HAS, UINT64_MAX - 2, 1},
    {ADD, UINT64_MAX, MU_EEXHAUSTED},
    {SETTLE, 0, UINT64_MAX},
};

static uint64_t take(struct mu__id_window *window, const struct step *step)
{
    switch (step->kind) {
    case ADD:
        return (uint64_t)-mu__id_window_add(window, step->id);
    case HAS:
        return mu__id_window_has(window, step->id);
    case RAISE:
        mu__id_window_raise(window, step->id);
        return window->base;
    case SETTLE:
        break;
    }
    return mu__id_window_settle(window);
}

TEST(test_steps)
{
    struct mu__id_window window;

    mu__id_window_init(&window, 10);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (take(&window, &steps[i]) != steps[i].result)
            fail_msg("step %zu", i);
    mu__id_window_done(&window);
}

/* A long window gives its memory back when it is nearly empty. */
TEST(test_memory)
{
    struct mu__id_window window;

    mu__id_window_init(&window, 1);
    assert_int_equal(window.bits_size, 0);
    assert_int_equal(mu__id_window_add(&window, 64), 0);
    assert_int_equal(window.bits_size, 128);
    assert_int_equal(mu__id_window_add(&window, 1 << 20), 0);
    assert_true(window.bits_size >= 1 << 20);
    assert_true(window.bits_size <= 1 << 21);
    mu__id_window_raise(&window, (1 << 20) - 1000);
    assert_true(window.bits_size <= 1 << 12);
    assert_true(mu__id_window_has(&window, 1 << 20));
    assert_false(mu__id_window_has(&window, (1 << 20) - 1));
    mu__id_window_done(&window);
}

/* ---- Against a plain array ---- */

enum { NUMBERS = 20000 };

struct plain {
    bool in[NUMBERS];
    uint64_t base;
};

static void plain_raise(struct plain *plain, uint64_t base)
{
    for (uint64_t i = plain->base; i < base; i++)
        plain->in[i] = true;
    if (base > plain->base)
        plain->base = base;
}

static void assert_same(const struct mu__id_window *window, const struct plain *plain)
{
    assert_int_equal(window->base, plain->base);
    for (uint64_t i = 0; i < NUMBERS; i++)
        if (mu__id_window_has(window, i) != plain->in[i])
            fail_msg("number %d", (int)i);
}

static void random_step(struct sim_random *random, struct mu__id_window *window,
                        struct plain *plain, uint64_t reach)
{
    uint64_t id = plain->base + sim_between(random, 0, reach);
    uint64_t kind = sim_between(random, 0, 99);

    if (id >= NUMBERS)
        return;
    if (kind < 90) {
        assert_int_equal(mu__id_window_add(window, id), plain->in[id] ? -MU_EEXISTS : 0);
        plain->in[id] = true;
    } else if (kind < 93) {
        mu__id_window_raise(window, id);
        plain_raise(plain, id);
    } else {
        while (plain->base < NUMBERS && plain->in[plain->base])
            plain->base++;
        assert_int_equal(mu__id_window_settle(window), plain->base);
    }
}

TEST(test_random)
{
    static const uint64_t reaches[] = {3, 63, 64, 65, 500, 9000};
    static struct plain plain;

    for (uint64_t seed = 0; seed < 60; seed++) {
        struct sim_random random = sim_stream(seed, 1);
        uint64_t base = sim_between(&random, 0, 200);
        struct mu__id_window window;

        memset(&plain, 0, sizeof plain);
        mu__id_window_init(&window, base);
        plain_raise(&plain, base);
        for (int i = 0; i < 2000; i++) {
            random_step(&random, &window, &plain, reaches[seed % 6]);
            if (i % 200 == 0)
                assert_same(&window, &plain);
        }
        assert_same(&window, &plain);
        mu__id_window_done(&window);
    }
}

TEST_PROGRAM()
