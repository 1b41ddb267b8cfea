/* The barrier of threads, with real threads: generations, limits, and all that breaks
 * it. */
#include "node/thread_barrier.h"
#include "tests/support/test.h"

#include <stdatomic.h>
#include <uv.h>

enum { THREADS = 5, ROUNDS = 200, SOON_MS = 20000, SHORT_MS = 50 };

struct world {
    struct mu__thread_barrier *barrier;
    atomic_int came[ROUNDS];
    atomic_int early; /* who went through before all had come */
};

struct thread {
    struct world *world;
    uv_thread_t id;
    unsigned number;
    int rounds; /* to take part in */
    int64_t timeout_ms;
    int rv; /* of the last wait */
    mu_error error;
};

static int setup(void **state)
{
    static struct world world;
    char name[32];

    world = (struct world){.barrier = mu__thread_barrier_new(THREADS)};
    assert_non_null(world.barrier);
    for (unsigned i = 0; i < THREADS; i++) {
        (void)snprintf(name, sizeof name, "/job:worker/task:%u", i);
        mu__thread_barrier_name(world.barrier, i, name);
    }
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    mu__thread_barrier_free(world->barrier);
    return 0;
}

static void run(void *arg)
{
    struct thread *t = arg;
    struct world *w = t->world;

    for (int round = 0; t->rv == 0 && round < t->rounds; round++) {
        atomic_fetch_add(&w->came[round], 1);
        t->rv = mu__thread_barrier_wait(w->barrier, t->number, t->timeout_ms, &t->error);
        if (t->rv == 0 && atomic_load(&w->came[round]) != THREADS)
            atomic_fetch_add(&w->early, 1);
    }
}

static void start(struct world *world, struct thread *threads, unsigned count, int rounds,
                  int64_t timeout_ms)
{
    for (unsigned i = 0; i < count; i++) {
        threads[i] = (struct thread){
            .world = world,
            .number = i,
            .rounds = rounds,
            .timeout_ms = timeout_ms,
        };
        assert_int_equal(uv_thread_create(&threads[i].id, run, &threads[i]), 0);
    }
}

static void join(struct thread *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        (void)uv_thread_join(&threads[i].id);
}

/* Until so many wait inside. */
static void await(struct world *world, unsigned count)
{
    while (mu__thread_barrier_here(world->barrier) < count)
        uv_sleep(1);
}

/* ---- going through ---- */

TEST_ON(test_generations, struct world *world, setup, teardown)
{
    struct thread threads[THREADS];

    start(world, threads, THREADS, ROUNDS, SOON_MS);
    join(threads, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(threads[i].rv, 0);
    assert_int_equal(atomic_load(&world->came[ROUNDS - 1]), THREADS);
    assert_int_equal(atomic_load(&world->early), 0);
}

TEST(test_alone)
{
    struct mu__thread_barrier *barrier = mu__thread_barrier_new(1);

    for (int i = 0; i < 3; i++)
        assert_int_equal(mu__thread_barrier_wait(barrier, 0, 0, NULL), 0);
    mu__thread_barrier_free(barrier);
    mu__thread_barrier_free(NULL);
}

/* ---- limits ---- */

/* The first limit that passes is everybody's, and who comes later is told the same. */
TEST_ON(test_limit, struct world *world, setup, teardown)
{
    struct thread threads[2];
    mu_error error = {0};

    start(world, threads, 2, 1, -1);
    await(world, 2);
    assert_int_equal(mu__thread_barrier_wait(world->barrier, 4, SHORT_MS, &error),
                     -MU_EDEADLINE);
    assert_string_equal(error.message,
                        "3 of 5 had come to the barrier after 50 ms; missing: "
                        "/job:worker/task:2, /job:worker/task:3");
    assert_int_equal(error.kind, MU_ERROR_LIMIT);
    join(threads, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(threads[i].rv, -MU_EDEADLINE);
        assert_string_equal(threads[i].error.message, error.message);
    }
    assert_int_equal(mu__thread_barrier_wait(world->barrier, 2, -1, &error),
                     -MU_EDEADLINE);
}

TEST(test_many_are_missing)
{
    struct mu__thread_barrier *barrier = mu__thread_barrier_new(9);
    mu_error error = {0};

    for (unsigned i = 0; i < 9; i++)
        mu__thread_barrier_name(barrier, i, "task");
    assert_int_equal(mu__thread_barrier_wait(barrier, 0, 0, &error), -MU_EDEADLINE);
    assert_string_equal(error.message, "1 of 9 had come to the barrier after 0 ms; "
                                       "missing: task, task, task, task and 4 more");
    mu__thread_barrier_free(barrier);
}

/* ---- breaking ---- */

TEST_ON(test_broken_while_they_wait, struct world *world, setup, teardown)
{
    struct thread threads[THREADS - 1];
    mu_error why = {0};
    mu_error error = {0};

    start(world, threads, THREADS - 1, 1, -1);
    await(world, THREADS - 1);
    (void)mu_error_set(&why, -MU_EDATALOSS, "the disk is gone");
    mu__thread_barrier_break(world->barrier, &why);
    join(threads, THREADS - 1);
    for (unsigned i = 0; i < THREADS - 1; i++) {
        assert_int_equal(threads[i].rv, -MU_EDATALOSS);
        assert_string_equal(threads[i].error.message, "the disk is gone");
    }
    (void)mu_error_set(&why, -MU_EINTERNAL, "a second one");
    mu__thread_barrier_break(world->barrier, &why);
    assert_int_equal(mu__thread_barrier_wait(world->barrier, 4, -1, &error),
                     -MU_EDATALOSS);
}

/* Who has gone through is fine; the next generation is not waited for in vain. */
TEST_ON(test_leaves_between, struct world *world, setup, teardown)
{
    struct thread threads[THREADS];

    start(world, threads, THREADS, 1, SOON_MS);
    join(threads, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(threads[i].rv, 0);
    mu__thread_barrier_leave(world->barrier, 3);
    start(world, threads, 2, 1, -1);
    join(threads, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(threads[i].rv, -MU_EABORTED);
        assert_string_equal(threads[i].error.task, "/job:worker/task:3");
    }
}

TEST_ON(test_leaves_while_they_wait, struct world *world, setup, teardown)
{
    struct thread threads[THREADS - 1];

    start(world, threads, THREADS - 1, 1, -1);
    await(world, THREADS - 1);
    mu__thread_barrier_leave(world->barrier, 4);
    join(threads, THREADS - 1);
    for (unsigned i = 0; i < THREADS - 1; i++) {
        assert_int_equal(threads[i].rv, -MU_EABORTED);
        assert_string_equal(threads[i].error.message,
                            "/job:worker/task:4 has ended, and will not come to the "
                            "barrier");
    }
}

TEST_ON(test_twice, struct world *world, setup, teardown)
{
    struct thread threads[1];
    mu_error why = {0};
    mu_error error = {0};

    start(world, threads, 1, 1, -1);
    await(world, 1);
    assert_int_equal(mu__thread_barrier_wait(world->barrier, 0, -1, &error),
                     -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "/job:worker/task:0 is at the barrier"));
    (void)mu_error_set(&why, -MU_ECANCELLED, "enough");
    mu__thread_barrier_break(world->barrier, &why);
    join(threads, 1);
    assert_int_equal(threads[0].rv, -MU_ECANCELLED);
}

TEST_PROGRAM()
