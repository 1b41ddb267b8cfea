/* The real world on a loop that is the node's own: nobody wakes it while it does not
 * sleep, and nothing that is left for it just then is missed, however long it and the
 * executor's threads spin. */
#define _GNU_SOURCE /* pipe2 */
#include "tests/real/wire/world_uv_fixture.h"

#include "runtime/uv/spin.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    ROUNDS = 500,
    SHORT_SPIN_US = 5,
    LONG_SPIN_US = 300,
    STALL_ROUNDS = 64, /* each thread stalls for 0 to so many units of time */
    STALL_LOOKS = 40
};

/* Threads that post one message at a time and wait until it has been delivered; and works
 * of which the owner submits the next two when both have ended. */
struct scene {
    atomic_uint delivered[PRODUCERS];
    struct mu__work works[2];
    atomic_uint met; /* works that have begun; each waits for the other */
    unsigned submitted;
    int pipe[2]; /* has a byte while the world's prepare handle runs */
};

static struct scene scene;

/* Different at each round, so that the loop is met in each state. */
static void stall(unsigned number, unsigned round)
{
    unsigned looks = (number * 7919 + round * 104729) % STALL_ROUNDS * STALL_LOOKS;

    for (unsigned i = 0; i < looks; i++)
        mu__spin_relax();
}

static bool await_delivery(uint32_t producer, unsigned round)
{
    uint64_t end_ns = uv_hrtime() + (uint64_t)WAIT_MS * 1000000;

    while (atomic_load(&scene.delivered[producer]) == round) {
        if (uv_hrtime() > end_ns)
            return false;
        (void)sched_yield();
    }
    return true;
}

static void *post_one_by_one(void *arg)
{
    struct producer *producer = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct mu__msg *msg = mu__msg_heap(KIND_POST, sizeof(struct post));

        if (msg == NULL)
            return NULL;
        *(struct post *)(void *)msg->body = (struct post){producer->number, i};
        if (mu__world_uv_post(producer->fixture->world, msg) != 0)
            return NULL;
        if (!await_delivery(producer->number, i))
            return NULL;
        stall(producer->number, i);
        producer->posted++;
    }
    return NULL;
}

static void tell_producers(struct fixture *f)
{
    for (uint32_t i = 0; i < PRODUCERS; i++)
        atomic_store(&scene.delivered[i], f->next_number[i]);
}

static void meet(struct mu__work *work)
{
    uint64_t end_ns = uv_hrtime() + (uint64_t)WAIT_MS * 1000000;
    unsigned wanted = (atomic_fetch_add(&scene.met, 1) / 2 + 1) * 2;

    (void)work;
    while (atomic_load(&scene.met) < wanted && uv_hrtime() < end_ns)
        (void)sched_yield();
}

static void submit_two(struct fixture *f)
{
    for (size_t i = 0; i < 2; i++) {
        scene.works[i] = (struct mu__work){.run = meet};
        stall((unsigned)i, scene.submitted);
        f->door->ops->submit(f->door, &scene.works[i]);
    }
    scene.submitted += 2;
}

static void close_when_over(struct fixture *f)
{
    if (f->posts < f->wanted_posts || f->dones < f->wanted_dones)
        return;
    mu__world_uv_close(f->world, on_closed, &f->closed);
}

static void on_turn(struct fixture *f)
{
    tell_producers(f);
    if (f->dones == scene.submitted && f->dones < f->wanted_dones)
        submit_two(f);
    close_when_over(f);
}

static void on_late(uv_timer_t *timer)
{
    on_limit(timer);
    uv_stop(timer->loop);
}

static void begin(struct fixture *f, uint32_t spin_us)
{
    memset(&scene, 0, sizeof scene);
    f->in_turn = on_turn;
    mu__world_uv_own_loop(f->world);
    mu__world_uv_spin(f->world, spin_us);
    (void)uv_timer_start(&f->limit, on_late, WAIT_MS, 0);
}

/* Whether the messages of so many threads were delivered in time. */
static bool run_producers(struct fixture *f, uint32_t count)
{
    struct producer producers[PRODUCERS];

    f->wanted_posts = count * ROUNDS;
    for (uint32_t i = 0; i < count; i++) {
        producers[i] = (struct producer){.fixture = f, .number = i};
        assert_int_equal(pthread_create(&producers[i].thread, NULL, post_one_by_one,
                                        &producers[i]),
                         0);
    }
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    for (uint32_t i = 0; i < count; i++)
        (void)pthread_join(producers[i].thread, NULL);
    for (uint32_t i = 0; i < count; i++)
        if (producers[i].posted != ROUNDS)
            return false;
    return !f->late && f->closed;
}

static bool run_posts(struct fixture *f, uint32_t spin_us)
{
    begin(f, spin_us);
    return run_producers(f, PRODUCERS);
}

/* Whether all have ended in time. */
static bool run_works(struct fixture *f, uint32_t spin_us)
{
    begin(f, spin_us);
    f->wanted_dones = 2 * ROUNDS;
    wake_at(f, 0);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    return !f->late && f->closed;
}

TEST_WITH(test_posts_without_spin, setup, teardown)
{
    assert_true(run_posts(*state, 0));
}

TEST_WITH(test_posts_short_spin, setup, teardown)
{
    assert_true(run_posts(*state, SHORT_SPIN_US));
}

TEST_WITH(test_posts_long_spin, setup, teardown)
{
    assert_true(run_posts(*state, LONG_SPIN_US));
}

/* ---- Events that are gone before the loop takes them ---- */

static void on_prepare_first(uv_prepare_t *prepare)
{
    (void)prepare;
    (void)!write(scene.pipe[1], "", 1);
}

static void on_prepare_last(uv_prepare_t *prepare)
{
    char byte;

    (void)prepare;
    (void)!read(scene.pipe[0], &byte, 1);
}

static void on_readable(uv_poll_t *readable, int status, int events)
{
    (void)readable;
    (void)status;
    (void)events;
}

/* What is started first runs last: the world is opened anew between the two. */
static void open_between(struct fixture *f, uv_prepare_t *first, uv_prepare_t *last)
{
    struct mu__world_hooks hooks = {f, deliver, turn, transmit};

    mu__world_uv_close(f->world, on_closed, &f->closed);
    run_until(f, is_closed);
    f->closed = false;
    (void)uv_prepare_init(&f->loop, last);
    (void)uv_prepare_start(last, on_prepare_last);
    assert_int_equal(mu__world_uv_open(&f->loop, THREADS, &hooks, log_line, &f->world),
                     0);
    f->door = mu__world_uv_world(f->world);
    (void)uv_prepare_init(&f->loop, first);
    (void)uv_prepare_start(first, on_prepare_first);
}

/* What ends the spin is gone when the loop looks for it, so that it sleeps after all:
 * messages wake it. */
TEST_ON(test_posts_after_what_vanishes, struct fixture *f, setup, teardown)
{
    uv_prepare_t prepares[2];
    uv_poll_t readable;

    open_between(f, &prepares[0], &prepares[1]);
    begin(f, MU__SPIN_US_MAX);
    assert_int_equal(pipe2(scene.pipe, O_NONBLOCK | O_CLOEXEC), 0);
    (void)uv_poll_init(&f->loop, &readable, scene.pipe[0]);
    (void)uv_poll_start(&readable, UV_READABLE, on_readable);
    uv_unref((uv_handle_t *)&prepares[0]);
    uv_unref((uv_handle_t *)&prepares[1]);
    uv_unref((uv_handle_t *)&readable);
    assert_true(run_producers(f, 1));
    uv_close((uv_handle_t *)&prepares[0], NULL);
    uv_close((uv_handle_t *)&prepares[1], NULL);
    uv_close((uv_handle_t *)&readable, NULL);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    (void)close(scene.pipe[0]);
    (void)close(scene.pipe[1]);
}

TEST_WITH(test_works_without_spin, setup, teardown)
{
    assert_true(run_works(*state, 0));
}

TEST_WITH(test_works_short_spin, setup, teardown)
{
    assert_true(run_works(*state, SHORT_SPIN_US));
}

TEST_WITH(test_works_long_spin, setup, teardown)
{
    assert_true(run_works(*state, LONG_SPIN_US));
}

TEST_PROGRAM()
