/* The real world on a loop that is the node's own: nobody wakes it while it does not
 * sleep, and nothing that is left for it just then is missed, however long it and the
 * executor's threads spin. */
#include "tests/real/wire/world_uv_fixture.h"

#include "runtime/uv/spin.h"

#include <sched.h>
#include <stdatomic.h>

enum {
    ROUNDS = 500,
    SHORT_SPIN_US = 5,
    LONG_SPIN_US = 300,
    STALL_ROUNDS = 64,          /* each thread stalls for 0 to so many units of time */
    STALL_LOOKS = 40
};

/* Threads that post one message at a time and wait until it has been delivered; and works
 * of which the owner submits the next two when both have ended. */
struct scene {
    atomic_uint delivered[PRODUCERS];
    struct mu__work works[2];
    atomic_uint met;            /* works that have begun; each waits for the other */
    unsigned submitted;
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

/* Whether all were delivered in time. */
static bool run_posts(struct fixture *f, uint32_t spin_us)
{
    struct producer producers[PRODUCERS];

    begin(f, spin_us);
    f->wanted_posts = PRODUCERS * ROUNDS;
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){.fixture = f, .number = i};
        assert_int_equal(pthread_create(&producers[i].thread, NULL, post_one_by_one,
                                        &producers[i]), 0);
    }
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    for (uint32_t i = 0; i < PRODUCERS; i++)
        (void)pthread_join(producers[i].thread, NULL);
    for (uint32_t i = 0; i < PRODUCERS; i++)
        if (producers[i].posted != ROUNDS)
            return false;
    return !f->late && f->closed;
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

static void test_posts_without_spin(void **state)
{
    assert_true(run_posts(*state, 0));
}

static void test_posts_short_spin(void **state)
{
    assert_true(run_posts(*state, SHORT_SPIN_US));
}

static void test_posts_long_spin(void **state)
{
    assert_true(run_posts(*state, LONG_SPIN_US));
}

static void test_works_without_spin(void **state)
{
    assert_true(run_works(*state, 0));
}

static void test_works_short_spin(void **state)
{
    assert_true(run_works(*state, SHORT_SPIN_US));
}

static void test_works_long_spin(void **state)
{
    assert_true(run_works(*state, LONG_SPIN_US));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_posts_without_spin),
        WITH_WORLD(test_posts_short_spin),
        WITH_WORLD(test_posts_long_spin),
        WITH_WORLD(test_works_without_spin),
        WITH_WORLD(test_works_short_spin),
        WITH_WORLD(test_works_long_spin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
