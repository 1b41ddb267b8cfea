/* The named closures that have finished, against a model: which ones are known. */
#include "actors/packing.h"
#include "actors/supervisor/state/finished_closures.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

enum { COUNT = 40000, RESULT_MAX = 1500 };

struct fixture {
    struct mu__names functions;
    struct finished_closures finished;
    uint32_t function;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->functions.secret = 5;
    f->finished.functions = &f->functions;
    f->function = mu__names_take(&f->functions, mu__view_str("square"));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu__finished_done(&f->finished);
    mu__names_done(&f->functions);
    free(f);
    return 0;
}

static struct mu__view name_of(uint64_t i)
{
    static char name[64];

    (void)snprintf(name, sizeof name, "%s %llu", i % 3 == 0 ? "a longer name" : "n",
                   (unsigned long long)i);
    return mu__view_str(name);
}

/* Some are nil, most are small, some have a tail or are too long for the chunk. */
static struct mu__packed result_of(uint64_t i)
{
    static _Alignas(16) uint8_t bytes[RESULT_MAX];
    struct mu__packed result = {.head = bytes, .head_size = (uint32_t)(i % 20)};

    memset(bytes, (int)(i & 0xFF), sizeof bytes);
    if (i % 97 == 0)
        result.head_size = RESULT_MAX;
    if (i % 89 == 0) {
        result.tail = bytes;
        result.tail_size = 100;
    }
    return result;
}

static void add(struct fixture *f, uint64_t i, uint64_t now_ms)
{
    struct mu__packed result = result_of(i);

    assert_int_equal(
        mu__finished_add(&f->finished, i, f->function, name_of(i), &result, now_ms), 0);
}

static void expect_known(const struct fixture *f, uint64_t i, bool is_known)
{
    const struct finished_closure *closure = mu__finished_find(&f->finished, name_of(i));
    struct mu__packed wanted = result_of(i);
    struct mu__packed result;
    struct mu__buf *buf;

    if (!is_known) {
        assert_null(closure);
        return;
    }
    assert_non_null(closure);
    assert_int_equal(closure->number, i);
    result = mu__finished_result(closure, &buf);
    assert_int_equal(result.head_size, wanted.head_size);
    assert_int_equal(result.tail_size, wanted.tail_size);
    if (wanted.head_size > 0)
        assert_memory_equal(result.head, wanted.head, wanted.head_size);
    if (wanted.tail_size > 0)
        assert_memory_equal(result.tail, wanted.tail, wanted.tail_size);
}

/* The walk gives numbers from `first` to `last`. */
static void expect_walk(const struct fixture *f, uint64_t first, uint64_t last)
{
    mu__finished_ref at = f->finished.head;
    const struct finished_closure *closure;

    while ((closure = mu__finished_walk(&f->finished, &at, f->finished.tail)) != NULL)
        assert_int_equal(closure->number, first++);
    assert_int_equal(first, last + 1);
}

TEST_ON(test_the_oldest_are_forgotten_beyond_a_number, struct fixture *f, set_up,
        tear_down)
{
    for (uint64_t i = 1; i <= COUNT; i++) {
        add(f, i, 0);
        mu__finished_keep(&f->finished, COUNT / 4);
        mu__finished_sweep(&f->finished, (unsigned)(i % 3));
        if (i % 1000 == 0) {
            uint64_t first = i < COUNT / 4 ? 1 : i - COUNT / 4 + 1;

            expect_walk(f, first, i);
            expect_known(f, first, true);
            expect_known(f, i, true);
            if (first > 1)
                expect_known(f, first - 1, false);
        }
    }
    for (uint64_t i = 1; i <= COUNT; i++)
        expect_known(f, i, i > COUNT - COUNT / 4);
    mu__finished_sweep(&f->finished, COUNT);
    assert_false(mu__finished_has_forgotten(&f->finished));
    assert_int_equal(f->functions.names[f->function]->holders, 1 + COUNT / 4);
}

/* After the last place comes the first one. */
TEST_WITH(test_places_begin_again, set_up, tear_down)
{
    const mu__finished_ref last_chunks = 0U - (4U << 13);
    struct fixture *f = *state;

    f->finished.head = f->finished.known = f->finished.tail = last_chunks;
    test_the_oldest_are_forgotten_beyond_a_number(state);
    assert_true(f->finished.tail < last_chunks);
}

/* One each millisecond: those of the last 1,000 are there, and none of 1,200 ms ago. */
TEST_ON(test_the_old_are_forgotten, struct fixture *f, set_up, tear_down)
{
    for (uint64_t i = 1; i <= 5000; i++) {
        add(f, i, i);
        mu__finished_forget_old(&f->finished, i, 1000);
        mu__finished_sweep(&f->finished, 2);
        if (i > 1000)
            expect_known(f, i - 1000, true);
        if (i > 1200)
            expect_known(f, i - 1200, false);
    }
    mu__finished_forget_old(&f->finished, 9000, 1000);
    assert_int_equal(f->finished.count, 0);
    expect_known(f, 5000, false);
    add(f, 5000, 9000);
    expect_known(f, 5000, true);
}

/* At random: adding, removing one, forgetting all, sweeping. */
TEST_ON(test_as_a_model, struct fixture *f, set_up, tear_down)
{
    struct sim_random random = sim_stream(7, 7);
    static bool is_known[COUNT];
    uint64_t known = 0;

    for (uint64_t i = 1; i < COUNT; i++) {
        uint64_t other = sim_between(&random, 1, i);

        add(f, i, i);
        is_known[i] = true;
        known++;
        if (sim_chance(&random, 30) && is_known[other]) {
            mu__finished_remove(&f->finished,
                                mu__finished_find(&f->finished, name_of(other)));
            is_known[other] = false;
            known--;
        }
        if (sim_between(&random, 0, 9999) == 0) {
            mu__finished_forget_all(&f->finished);
            memset(is_known, 0, sizeof is_known);
            known = 0;
        }
        mu__finished_sweep(&f->finished, (unsigned)sim_between(&random, 0, 3));
        assert_int_equal(f->finished.count, known);
    }
    for (uint64_t i = 1; i < COUNT; i++)
        expect_known(f, i, is_known[i]);
}

TEST_PROGRAM()
