/* The real world: turns, posts from other threads, executor threads, closing. */
#include "tests/real/wire/world_uv_fixture.h"

/* ---- Set-up ---- */

static bool had_posts(struct fixture *f)
{
    return f->posts >= f->wanted_posts && !f->turn_due;
}

static struct mu__msg *post_new(uint32_t producer, uint32_t number)
{
    struct mu__msg *msg = mu__msg_heap(KIND_POST, sizeof(struct post));

    if (msg != NULL)
        *(struct post *)(void *)msg->body = (struct post){producer, number};
    return msg;
}

/* ---- The inbox alone ---- */

TEST(test_inbox)
{
    struct mu__inbox inbox;
    struct mu__msg *a = post_new(0, 0);
    struct mu__msg *b = post_new(0, 1);
    struct mu__msg *c = post_new(0, 2);

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

TEST_ON(test_opening_is_checked, struct fixture *f, setup, teardown)
{
    struct mu__world_hooks hooks = {f, deliver, turn, transmit};
    struct mu__world_uv *untouched = NULL;

    assert_int_equal(mu__world_uv_open(&f->loop, 0, &hooks, NULL, &untouched),
                     -MU_EINVALID);
    assert_int_equal(mu__world_uv_open(&f->loop, MU__EXECUTOR_THREADS_MAX + 1, &hooks,
                                       NULL, &untouched),
                     -MU_EINVALID);
    assert_null(untouched);
}

TEST_ON(test_turn_now_and_later, struct fixture *f, setup, teardown)
{
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
TEST_ON(test_one_turn_answers_all, struct fixture *f, setup, teardown)
{
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
TEST_ON(test_turns_do_not_starve_the_loop, struct fixture *f, setup, teardown)
{
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
TEST_ON(test_idle_world_sleeps, struct fixture *f, setup, teardown)
{
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

TEST_ON(test_transmit_log_and_chance, struct fixture *f, setup, teardown)
{
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

static void *produce(void *arg)
{
    struct producer *producer = arg;

    for (uint32_t i = 0; i < POSTS_EACH; i++) {
        struct mu__msg *msg = post_new(producer->number, i);

        producer->rv =
            msg == NULL ? -MU_ENOMEM : mu__world_uv_post(producer->fixture->world, msg);
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
        assert_int_equal(
            pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
}

TEST_ON(test_posts_of_many_threads, struct fixture *f, setup, teardown)
{
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
TEST_ON(test_close_against_posts, struct fixture *f, setup, teardown)
{
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

TEST_ON(test_close_inside_a_hook, struct fixture *f, setup, teardown)
{
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(mu__world_uv_post(f->world, post_new(0, i)), 0);
    f->close_in_deliver = true;
    run_until(f, is_closed);
    assert_int_equal(f->posts, 1);
    assert_int_equal(f->turns, 0);
}

TEST_PROGRAM()
