/* The real world: turns, posts from other threads, executor threads, closing. */
#ifndef MU_TESTS_REAL_WIRE_WORLD_UV_FIXTURE_H
#define MU_TESTS_REAL_WIRE_WORLD_UV_FIXTURE_H

#include "tests/support/test.h"

#include "muster/error.h"
#include "runtime/kernel/inbox.h"
#include "runtime/kernel/system_messages.h"
#include "runtime/message/pool.h"
#include "runtime/uv/executor.h"
#include "runtime/uv/loop_world.h"

#include <pthread.h>
#include <semaphore.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#ifdef __linux__

#endif

enum {
    WAIT_MS = 20000, /* after which a test fails: far more than anything takes */
    THREADS = 2,
    PRODUCERS = 4,
    POSTS_EACH = 20000,
    WORKS = 500,
    KIND_POST = 100 /* of messages that producers post */
};

struct post {
    uint32_t producer;
    uint32_t number;
};

struct fixture {
    uv_loop_t loop;
    uv_timer_t limit;
    bool late;
    struct mu__world_uv *world;
    struct mu__world *door;
    struct mu__pool pool;

    unsigned turns;
    unsigned wanted_turns;
    unsigned posts;
    unsigned wanted_posts;
    unsigned dones;
    unsigned wanted_dones;
    uint32_t next_number[PRODUCERS];
    bool turn_due; /* something was delivered and no turn followed yet */
    struct mu__msg *transmitted;
    struct mu__work *last_done;
    mu__pid last_to;
    char logged[64];

    void (*in_turn)(struct fixture *fixture);
    bool close_in_deliver;
    bool closed;
};

/* ---- Hooks ---- */

static inline void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static inline void note_post(struct fixture *f, const struct mu__msg *msg)
{
    const struct post *post = (const void *)msg->body;

    assert_true(post->producer < PRODUCERS);
    assert_int_equal(post->number, f->next_number[post->producer]);
    f->next_number[post->producer]++;
    f->posts++;
}

static inline void note_done(struct fixture *f, struct mu__msg *msg)
{
    struct mu__work_done *done = (void *)msg->body;

    assert_int_equal(msg->kind, MU__WORK_DONE);
    f->last_done = done->work;
    f->last_to = msg->to;
    f->dones++;
}

static inline void deliver(void *owner, struct mu__msg *msg)
{
    struct fixture *f = owner;

    assert_false(f->closed);
    f->turn_due = true;
    if (msg->kind == KIND_POST)
        note_post(f, msg);
    else
        note_done(f, msg);
    mu__pool_put(&f->pool, msg);
    if (f->close_in_deliver) {
        f->close_in_deliver = false;
        mu__world_uv_close(f->world, on_closed, &f->closed);
    }
}

static inline void turn(void *owner)
{
    struct fixture *f = owner;

    f->turn_due = false;
    f->turns++;
    if (f->in_turn != NULL)
        f->in_turn(f);
}

static inline int transmit(void *owner, struct mu__msg *msg)
{
    ((struct fixture *)owner)->transmitted = msg;
    return -MU_EUNAVAILABLE;
}

static inline void log_line(void *owner, enum mu__log_level level, const char *who,
                            const char *line)
{
    struct fixture *f = owner;

    assert_int_equal(level, MU__LOG_WARN);
    (void)snprintf(f->logged, sizeof f->logged, "%s: %s", who, line);
}

/* ---- Set-up ---- */

static inline void on_limit(uv_timer_t *timer)
{
    struct fixture *f = timer->data;

    f->late = true;
}

static inline void run_until(struct fixture *f, bool (*done)(struct fixture *f))
{
    f->late = false;
    (void)uv_timer_start(&f->limit, on_limit, WAIT_MS, 0);
    while (!done(f) && !f->late)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&f->limit);
    assert_true(done(f));
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct mu__world_hooks hooks = {f, deliver, turn, transmit};

    assert_non_null(f);
    mu__pool_init(&f->pool);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(uv_timer_init(&f->loop, &f->limit), 0);
    f->limit.data = f;
    uv_unref((uv_handle_t *)&f->limit);
    assert_int_equal(mu__world_uv_open(&f->loop, THREADS, &hooks, log_line, &f->world),
                     0);
    f->door = mu__world_uv_world(f->world);
    *state = f;
    return 0;
}

static inline bool is_closed(struct fixture *f)
{
    return f->closed;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    if (!f->closed) {
        mu__world_uv_close(f->world, on_closed, &f->closed);
        run_until(f, is_closed);
    }
    uv_close((uv_handle_t *)&f->limit, NULL);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    mu__pool_done(&f->pool);
    free(f);
    return 0;
}

static inline bool had_turns(struct fixture *f)
{
    return f->turns >= f->wanted_turns;
}

static inline void wake_at(struct fixture *f, uint64_t due_ms)
{
    f->door->ops->wake_at(f->door, due_ms);
}

static inline uint64_t now_ms(struct fixture *f)
{
    return f->door->ops->now_ms(f->door);
}

/* ---- Posts ---- */

struct producer {
    pthread_t thread;
    struct fixture *fixture;
    uint32_t number;
    unsigned posted;
    int rv; /* the last one */
};

/* ---- Work ---- */

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
