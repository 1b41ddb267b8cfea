/* The real world: turns, posts from other threads, executor threads, closing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "muster/error.h"
#include "runtime/kernel/inbox.h"
#include "runtime/kernel/system_messages.h"
#include "runtime/message/pool.h"
#include "runtime/uv/executor.h"
#include "runtime/uv/world.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum {
    WAIT_MS = 20000,        /* after which a test fails: far more than anything takes */
    THREADS = 2,
    PRODUCERS = 4,
    POSTS_EACH = 20000,
    WORKS = 500,
    KIND_POST = 100         /* of messages that producers post */
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
    bool turn_due;              /* something was delivered and no turn followed yet */
    struct mu__msg *transmitted;
    struct mu__work *last_done;
    mu__pid last_to;
    char logged[64];

    void (*in_turn)(struct fixture *fixture);
    bool close_in_deliver;
    bool closed;
};

/* ---- Hooks ---- */

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void note_post(struct fixture *f, const struct mu__msg *msg)
{
    const struct post *post = (const void *)msg->body;

    assert_true(post->producer < PRODUCERS);
    assert_int_equal(post->number, f->next_number[post->producer]);
    f->next_number[post->producer]++;
    f->posts++;
}

static void note_done(struct fixture *f, struct mu__msg *msg)
{
    struct mu__work_done *done = (void *)msg->body;

    assert_int_equal(msg->kind, MU__WORK_DONE);
    f->last_done = done->work;
    f->last_to = msg->to;
    f->dones++;
}

static void deliver(void *owner, struct mu__msg *msg)
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

static void turn(void *owner)
{
    struct fixture *f = owner;

    f->turn_due = false;
    f->turns++;
    if (f->in_turn != NULL)
        f->in_turn(f);
}

static int transmit(void *owner, struct mu__msg *msg)
{
    ((struct fixture *)owner)->transmitted = msg;
    return -MU_EUNAVAILABLE;
}

static void log_line(void *owner, enum mu__log_level level, const char *who,
                     const char *line)
{
    struct fixture *f = owner;

    assert_int_equal(level, MU__LOG_WARN);
    (void)snprintf(f->logged, sizeof f->logged, "%s: %s", who, line);
}

/* ---- Set-up ---- */

static void on_limit(uv_timer_t *timer)
{
    struct fixture *f = timer->data;

    f->late = true;
}

static void run_until(struct fixture *f, bool (*done)(struct fixture *f))
{
    f->late = false;
    (void)uv_timer_start(&f->limit, on_limit, WAIT_MS, 0);
    while (!done(f) && !f->late)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&f->limit);
    assert_true(done(f));
}

static int setup(void **state)
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

static bool is_closed(struct fixture *f)
{
    return f->closed;
}

static int teardown(void **state)
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

static bool had_turns(struct fixture *f)
{
    return f->turns >= f->wanted_turns;
}

static bool had_posts(struct fixture *f)
{
    return f->posts >= f->wanted_posts && !f->turn_due;
}

static bool had_dones(struct fixture *f)
{
    return f->dones >= f->wanted_dones && !f->turn_due;
}

static struct mu__msg *post_new(uint32_t producer, uint32_t number)
{
    struct mu__msg *msg = mu__msg_heap(KIND_POST, sizeof(struct post));

    if (msg != NULL)
        *(struct post *)(void *)msg->body = (struct post){producer, number};
    return msg;
}

static void wake_at(struct fixture *f, uint64_t due_ms)
{
    f->door->ops->wake_at(f->door, due_ms);
}

static uint64_t now_ms(struct fixture *f)
{
    return f->door->ops->now_ms(f->door);
}

/* ---- The inbox alone ---- */

static void test_inbox(void **state)
{
    struct mu__inbox inbox;
    struct mu__msg *a = post_new(0, 0);
    struct mu__msg *b = post_new(0, 1);
    struct mu__msg *c = post_new(0, 2);

    (void)state;
    mu__inbox_init(&inbox);
    assert_null(mu__inbox_drain(&inbox));
    assert_int_equal(mu__inbox_push(&inbox, a), 1);
    assert_int_equal(mu__inbox_push(&inbox, b), 0);
    assert_ptr_equal(mu__inbox_drain(&inbox), a);
    assert_ptr_equal(a->next, b);
    assert_null(b->next);
    assert_null(mu__inbox_drain(&inbox));
    assert_int_equal(mu__inbox_push(&inbox, b), 1);
    assert_int_equal(mu__inbox_push(&inbox, a), 0);
    assert_ptr_equal(mu__inbox_close(&inbox), b);
    assert_ptr_equal(b->next, a);
    assert_int_equal(mu__inbox_push(&inbox, c), -MU_ECLOSED);
    free(a);
    free(b);
    free(c);
}

/* ---- Turns ---- */

static void test_opening_is_checked(void **state)
{
    struct fixture *f = *state;
    struct mu__world_hooks hooks = {f, deliver, turn, transmit};
    struct mu__world_uv *untouched = NULL;

    assert_int_equal(mu__world_uv_open(&f->loop, 0, &hooks, NULL, &untouched),
                     -MU_EINVALID);
    assert_int_equal(mu__world_uv_open(&f->loop, MU__EXECUTOR_THREADS_MAX + 1, &hooks,
                                       NULL, &untouched), -MU_EINVALID);
    assert_null(untouched);
}

static void test_turn_now_and_later(void **state)
{
    struct fixture *f = *state;
    uint64_t begin_ms;

    f->wanted_turns = 1;
    wake_at(f, 0);
    run_until(f, had_turns);
    assert_int_equal(f->turns, 1);

    begin_ms = now_ms(f);
    wake_at(f, begin_ms + 1000000);
    wake_at(f, begin_ms + 30);
    wake_at(f, begin_ms + 500000);
    f->wanted_turns = 2;
    run_until(f, had_turns);
    assert_true(now_ms(f) >= begin_ms + 30);
    assert_true(now_ms(f) < begin_ms + WAIT_MS);
    assert_int_equal(f->turns, 2);
}

static void ask_for_two(struct fixture *f)
{
    if (f->turns > 1)
        return;
    wake_at(f, now_ms(f) + 1);
    wake_at(f, now_ms(f));
    wake_at(f, now_ms(f) + 1);
}

/* The earliest wish wins, one turn answers them all, and nothing is left after it. */
static void test_one_turn_answers_all(void **state)
{
    struct fixture *f = *state;

    f->in_turn = ask_for_two;
    f->wanted_turns = 2;
    wake_at(f, now_ms(f));
    run_until(f, had_turns);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(f->turns, 2);
    assert_int_equal(uv_backend_timeout(&f->loop), -1);
}

static void ask_again_at_once(struct fixture *f)
{
    wake_at(f, now_ms(f));
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    assert_int_equal(status, 0);
    assert_int_equal(events, UV_READABLE);
    *(bool *)poll->data = true;
    (void)uv_poll_stop(poll);
}

/* Turns without end leave the sockets their share. */
static void test_turns_do_not_starve_the_loop(void **state)
{
    struct fixture *f = *state;
    uv_file ends[2];
    uv_poll_t poll;
    bool seen = false;
    unsigned turns_before;

    f->in_turn = ask_again_at_once;
    wake_at(f, now_ms(f));
    f->wanted_turns = 10;
    run_until(f, had_turns);
    assert_int_equal(uv_pipe(ends, 0, 0), 0);
    assert_int_equal(uv_poll_init(&f->loop, &poll, ends[0]), 0);
    poll.data = &seen;
    (void)uv_poll_start(&poll, UV_READABLE, on_readable);
    turns_before = f->turns;
    {
        uv_buf_t byte = uv_buf_init("x", 1);
        uv_fs_t write;

        assert_int_equal(uv_fs_write(NULL, &write, ends[1], &byte, 1, -1, NULL), 1);
        uv_fs_req_cleanup(&write);
    }
    f->wanted_turns = turns_before + 2;
    run_until(f, had_turns);
    assert_true(seen);

    uv_close((uv_handle_t *)&poll, NULL);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    for (int i = 0; i < 2; i++) {
        uv_fs_t close_end;

        assert_int_equal(uv_fs_close(NULL, &close_end, ends[i], NULL), 0);
        uv_fs_req_cleanup(&close_end);
    }
}

static void ask_once_for_late(struct fixture *f)
{
    if (f->turns == 1)
        wake_at(f, now_ms(f) + 3600000);
}

/* A wish that a turn did not repeat is forgotten: an idle world makes no wakes. */
static void test_idle_world_sleeps(void **state)
{
    struct fixture *f = *state;

    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_backend_timeout(&f->loop), -1);
    f->in_turn = ask_once_for_late;
    f->wanted_turns = 1;
    wake_at(f, now_ms(f));
    run_until(f, had_turns);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_true(uv_backend_timeout(&f->loop) > 1000000);
    f->wanted_turns = 2;
    wake_at(f, now_ms(f));
    run_until(f, had_turns);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_backend_timeout(&f->loop), -1);
    assert_int_equal(f->turns, 2);
}

static void test_transmit_log_and_chance(void **state)
{
    struct fixture *f = *state;
    struct mu__msg *msg = post_new(0, 0);
    uint64_t bits_or = 0;
    uint64_t bits_and = UINT64_MAX;
    uint64_t last = f->door->ops->random(f->door);

    assert_int_equal(f->door->ops->transmit(f->door, msg), -MU_EUNAVAILABLE);
    assert_ptr_equal(f->transmitted, msg);
    mu__pool_put(&f->pool, msg);
    f->door->ops->log(f->door, MU__LOG_WARN, "who", "line");
    assert_string_equal(f->logged, "who: line");
    for (int i = 0; i < 200; i++) {
        uint64_t next = f->door->ops->random(f->door);

        assert_true(next != last);
        last = next;
        bits_or |= next;
        bits_and &= next;
    }
    assert_true(bits_or == UINT64_MAX && bits_and == 0);
}

/* ---- Posts ---- */

struct producer {
    pthread_t thread;
    struct fixture *fixture;
    uint32_t number;
    unsigned posted;
    int rv;                 /* the last one */
};

static void *produce(void *arg)
{
    struct producer *producer = arg;

    for (uint32_t i = 0; i < POSTS_EACH; i++) {
        struct mu__msg *msg = post_new(producer->number, i);

        producer->rv = msg == NULL ? -MU_ENOMEM
                                   : mu__world_uv_post(producer->fixture->world, msg);
        if (producer->rv != 0) {
            free(msg);
            break;
        }
        producer->posted++;
    }
    return NULL;
}

static void start_producers(struct fixture *f, struct producer *producers)
{
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){.fixture = f, .number = i};
        assert_int_equal(pthread_create(&producers[i].thread, NULL, produce,
                                        &producers[i]), 0);
    }
}

static void test_posts_of_many_threads(void **state)
{
    struct fixture *f = *state;
    struct producer producers[PRODUCERS];

    start_producers(f, producers);
    f->wanted_posts = PRODUCERS * POSTS_EACH;
    run_until(f, had_posts);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        assert_int_equal(pthread_join(producers[i].thread, NULL), 0);
        assert_int_equal(producers[i].rv, 0);
    }
    assert_int_equal(f->posts, PRODUCERS * POSTS_EACH);
    assert_true(f->turns <= f->posts);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_backend_timeout(&f->loop), -1);
}

/* Posts that come in between are taken or refused, never lost to the producer. */
static void test_close_against_posts(void **state)
{
    struct fixture *f = *state;
    struct producer producers[PRODUCERS];
    struct mu__msg *msg;

    start_producers(f, producers);
    f->wanted_posts = 1;
    run_until(f, had_posts);
    mu__world_uv_close(f->world, on_closed, &f->closed);
    msg = post_new(0, 0);
    assert_int_equal(mu__world_uv_post(f->world, msg), -MU_ECLOSED);
    mu__pool_put(&f->pool, msg);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        assert_int_equal(pthread_join(producers[i].thread, NULL), 0);
        assert_true(producers[i].rv == 0 || producers[i].rv == -MU_ECLOSED);
        assert_true(producers[i].rv != 0 || producers[i].posted == POSTS_EACH);
    }
    f->turns = 0;
    run_until(f, is_closed);
    assert_int_equal(f->turns, 0);
}

static void test_close_inside_a_hook(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(mu__world_uv_post(f->world, post_new(0, i)), 0);
    f->close_in_deliver = true;
    run_until(f, is_closed);
    assert_int_equal(f->posts, 1);
    assert_int_equal(f->turns, 0);
}

/* ---- Work ---- */

struct job {
    struct mu__work work;   /* first: run casts */
    bool ran;
    char thread_name[16];
};

static void run_job(struct mu__work *work)
{
    struct job *job = (struct job *)work;

    job->ran = true;
#ifdef __linux__
    (void)prctl(PR_GET_NAME, job->thread_name);
#endif
}

static void submit(struct fixture *f, struct mu__work *work)
{
    f->door->ops->submit(f->door, work);
}

static void test_work_comes_back(void **state)
{
    struct fixture *f = *state;
    struct job *jobs = calloc(WORKS, sizeof *jobs);

    assert_non_null(jobs);
    for (uint32_t i = 0; i < WORKS; i++) {
        jobs[i].work = (struct mu__work){.run = run_job, .owner = {0, i}};
        submit(f, &jobs[i].work);
    }
    assert_int_equal(mu__world_uv_busy(f->world), WORKS);
    f->wanted_dones = WORKS;
    run_until(f, had_dones);
    assert_int_equal(mu__world_uv_busy(f->world), 0);
    assert_true(f->turns > 0 && f->turns <= WORKS);
    for (unsigned i = 0; i < WORKS; i++) {
        assert_true(jobs[i].ran);
#ifdef __linux__
        assert_true(strcmp(jobs[i].thread_name, "mu-exec-0") == 0 ||
                    strcmp(jobs[i].thread_name, "mu-exec-1") == 0);
#endif
    }

    jobs[7].work.owner = (mu__pid){0, 4711};
    submit(f, &jobs[7].work);
    f->wanted_dones++;
    run_until(f, had_dones);
    assert_ptr_equal(f->last_done, &jobs[7].work);
    assert_int_equal(f->last_to.actor, 4711);
    free(jobs);
}

struct blocker {
    struct mu__work work;   /* first: run casts */
    sem_t started;
    sem_t go_on;
    sem_t ended;            /* the last thing that run touches */
};

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

static void run_blocker(struct mu__work *work)
{
    struct blocker *blocker = (struct blocker *)work;

    (void)sem_post(&blocker->started);
    wait_for(&blocker->go_on);
    (void)sem_post(&blocker->ended);
}

static void start_blocker(struct fixture *f, struct blocker *blocker)
{
    *blocker = (struct blocker){.work = {.run = run_blocker}};
    assert_int_equal(sem_init(&blocker->started, 0, 0), 0);
    assert_int_equal(sem_init(&blocker->go_on, 0, 0), 0);
    assert_int_equal(sem_init(&blocker->ended, 0, 0), 0);
    submit(f, &blocker->work);
    wait_for(&blocker->started);
}

static void end_blocker(struct blocker *blocker)
{
    (void)sem_destroy(&blocker->started);
    (void)sem_destroy(&blocker->go_on);
    (void)sem_destroy(&blocker->ended);
}

/* Work that blocks holds up its thread only; submissions behind it keep their order. */
static void test_blocked_work_holds_nobody_up(void **state)
{
    struct fixture *f = *state;
    struct blocker blocker;
    struct job job = {.work = {.run = run_job}};

    start_blocker(f, &blocker);
    submit(f, &job.work);
    f->wanted_dones = 1;
    run_until(f, had_dones);
    assert_ptr_equal(f->last_done, &job.work);
    f->wanted_turns = f->turns + 1;
    wake_at(f, now_ms(f));
    run_until(f, had_turns);
    assert_int_equal(mu__world_uv_busy(f->world), 1);

    (void)sem_post(&blocker.go_on);
    f->wanted_dones = 2;
    run_until(f, had_dones);
    end_blocker(&blocker);
}

/* Work that waits is given back in its order, work that runs comes back as ever, and
 * nothing starts after that. */
static void test_start_no_work(void **state)
{
    struct fixture *f = *state;
    struct blocker blockers[THREADS];
    struct job first = {.work = {.run = run_job}};
    struct job second = {.work = {.run = run_job}};
    struct job late = {.work = {.run = run_job}};
    struct mu__work *given_back;

    for (unsigned i = 0; i < THREADS; i++)
        start_blocker(f, &blockers[i]);
    submit(f, &first.work);
    submit(f, &second.work);
    given_back = mu__world_uv_start_no_work(f->world);
    assert_ptr_equal(given_back, &first.work);
    assert_ptr_equal(given_back->next, &second.work);
    assert_null(given_back->next->next);
    submit(f, &late.work);
    assert_null(mu__world_uv_start_no_work(f->world));
    assert_int_equal(mu__world_uv_busy(f->world), THREADS);

    for (unsigned i = 0; i < THREADS; i++)
        (void)sem_post(&blockers[i].go_on);
    f->wanted_dones = THREADS;
    run_until(f, had_dones);
    assert_int_equal(mu__world_uv_busy(f->world), 0);
    mu__world_uv_close(f->world, on_closed, &f->closed);
    run_until(f, is_closed);
    assert_int_equal(f->dones, THREADS);
    assert_false(first.ran || second.ran || late.ran);
    for (unsigned i = 0; i < THREADS; i++)
        end_blocker(&blockers[i]);
}

/* Closing waits for work that runs and forgets work that waits. */
static void test_close_waits_for_running_work(void **state)
{
    struct fixture *f = *state;
    struct blocker blockers[THREADS];
    struct job waiting = {.work = {.run = run_job}};

    for (unsigned i = 0; i < THREADS; i++)
        start_blocker(f, &blockers[i]);
    submit(f, &waiting.work);
    assert_int_equal(mu__world_uv_busy(f->world), THREADS + 1);
    mu__world_uv_close(f->world, on_closed, &f->closed);
    assert_int_equal(mu__world_uv_busy(f->world), THREADS);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_false(f->closed);

    for (unsigned i = 0; i < THREADS; i++)
        (void)sem_post(&blockers[i].go_on);
    run_until(f, is_closed);
    assert_int_equal(f->dones, 0);
    assert_false(waiting.ran);
    for (unsigned i = 0; i < THREADS; i++)
        end_blocker(&blockers[i]);
}

/* Work that finished and was not delivered yet is no reason to wait. */
static void test_close_with_finished_work(void **state)
{
    struct fixture *f = *state;
    struct blocker blocker;

    start_blocker(f, &blocker);
    (void)sem_post(&blocker.go_on);
    mu__world_uv_close(f->world, on_closed, &f->closed);
    run_until(f, is_closed);
    assert_int_equal(f->dones, 0);
    end_blocker(&blocker);
}

/* An abandoned thread goes on by itself, and the world is closed without it. The blocker
 * is static as the work of an abandoned thread must be: it stays. */
static void test_abandon(void **state)
{
    static struct blocker blocker;
    struct fixture *f = *state;

    start_blocker(f, &blocker);
    mu__world_uv_close(f->world, on_closed, &f->closed);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_false(f->closed);
    assert_int_equal(mu__world_uv_busy(f->world), 1);
    mu__world_uv_abandon(f->world);
    run_until(f, is_closed);

    (void)sem_post(&blocker.go_on);
    wait_for(&blocker.ended);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inbox),
        WITH_WORLD(test_opening_is_checked),
        WITH_WORLD(test_turn_now_and_later),
        WITH_WORLD(test_one_turn_answers_all),
        WITH_WORLD(test_turns_do_not_starve_the_loop),
        WITH_WORLD(test_idle_world_sleeps),
        WITH_WORLD(test_transmit_log_and_chance),
        WITH_WORLD(test_posts_of_many_threads),
        WITH_WORLD(test_close_against_posts),
        WITH_WORLD(test_close_inside_a_hook),
        WITH_WORLD(test_work_comes_back),
        WITH_WORLD(test_blocked_work_holds_nobody_up),
        WITH_WORLD(test_start_no_work),
        WITH_WORLD(test_close_waits_for_running_work),
        WITH_WORLD(test_close_with_finished_work),
        WITH_WORLD(test_abandon),
    };

    return cmocka_run_group_tests_name("libuv world", tests, NULL, NULL);
}
