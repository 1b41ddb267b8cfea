/* What runs write to the servers, applied once: the actors of workers and parameter
 * servers as they are, on several kernels. */
#include "tests/support/effects_net.h"
#include "tests/support/test.h"

/* ---- Ordinary life ---- */

/* A small write is one message, and one that answers. */
TEST_ON(test_small, struct fixture *f, set_up, tear_down)
{
    struct var_request v;
    struct writes *writes;

    open_variable(f->workers[0], &v, 4, 1);
    writes = post_add(f->workers[0], &v, 0, 0);
    assert_false(writes->sent);
    net_settle(&f->net);
    assert_fine(writes);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITE], 1);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITTEN], 1);
    assert_all(f->workers[1], &v, 1);
    writes = run_of(0, 0);
    post(f->workers[0], writes);
    net_settle(&f->net);
    assert_fine(writes);
}

/* Plain writes are applied as often as they come. */
TEST_ON(test_plain_is_repeated, struct fixture *f, set_up, tear_down)
{
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 2);
    for (int i = 0; i < 3; i++) {
        struct writes *writes = post_add(f->workers[0], &v, 7, 0);

        net_settle(&f->net);
        assert_fine(writes);
    }
    assert_all(f->workers[1], &v, 3);
}

TEST_ON(test_order, struct fixture *f, set_up, tear_down)
{
    struct writes *writes = run_of(0, 0);
    struct var_request v;

    open_variable(f->workers[0], &v, 5, 4);
    write_all(writes, &v, MU__WRITE_ADD, 100);
    write_all(writes, &v, MU__WRITE_ASSIGN, 5);
    write_all(writes, &v, MU__WRITE_ADD, 2);
    write_all(writes, &v, MU__WRITE_ADD, 3);
    post(f->workers[0], writes);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[1], &v, 10);
}

/* Several shards of several pieces. What is under way is bounded. */
TEST_ON(test_large, struct fixture *f, set_up, tear_down)
{
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 3 << 20, 4);
    f->net.bytes_peak = 0;
    writes = post_add(f->workers[0], &v, 0, 0);
    net_settle(&f->net);
    assert_fine(writes);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITE], 24);
    assert_true(f->net.bytes_peak > MU__WINDOW_BYTES);
    assert_true(f->net.bytes_peak < 2 * (MU__WINDOW_BYTES + (1 << 20) + (1 << 16)));
    assert_all(f->workers[1], &v, 1);
}

/* A small run does not wait for the large ones before it. */
TEST_ON(test_fair, struct fixture *f, set_up, tear_down)
{
    struct writes *large[6];
    struct writes *small = run_of(0, 0);
    struct var_request v;

    open_variable(f->workers[0], &v, 2 << 20, 1);
    for (size_t i = 0; i < 6; i++)
        large[i] = post_add(f->workers[0], &v, 0, 0);
    assert_int_equal(mu__effects_add(&small->run.effects,
                                     &(struct mu__effect){.partition = partition_of(0),
                                                          .operation = MU__WRITE_ASSIGN,
                                                          .variable = v.ids[0],
                                                          .size = 8},
                                     &(int64_t){0}),
                     0);
    post(f->workers[0], small);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    for (int i = 0; !small->sent && i < 40; i++)
        assert_true(net_step(&f->net));
    assert_fine(small);
    assert_false(large[0]->sent);
    net_settle(&f->net);
    for (size_t i = 0; i < 6; i++)
        assert_fine(large[i]);
    assert_all(f->workers[0], &v, 6);
}

/* A link without room is tried again. */
TEST_ON(test_full_link, struct fixture *f, set_up, tear_down)
{
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 19, 2);
    f->servers[0]->full = f->servers[1]->full = true;
    writes = post_add(f->workers[0], &v, 0, 0);
    net_run_for(&f->net, 100);
    assert_false(writes->sent);
    f->servers[0]->full = f->servers[1]->full = false;
    net_run_for(&f->net, 10);
    assert_fine(writes);
    assert_all(f->workers[1], &v, 1);
}

/* More than windows and slots hold at first, all at once. */
TEST_ON(test_many, struct fixture *f, set_up, tear_down)
{
    enum { MANY = 40000 };
    struct writes **writes = calloc(MANY, sizeof(struct writes *));
    struct var_request v;

    assert_non_null(writes);
    open_variable(f->workers[0], &v, 1, 1);
    fence(f, 7);
    for (uint64_t i = 0; i < MANY; i++)
        writes[i] = post_add(f->workers[i % 2], &v, 7, i / 2 + 1);
    net_settle(&f->net);
    for (size_t i = 0; i < MANY; i++)
        assert_fine(writes[i]);
    assert_all(f->workers[0], &v, MANY / 2);
    free(writes);
}

/* ---- Once ---- */

TEST_ON(test_once, struct fixture *f, set_up, tear_down)
{
    struct writes *a;
    struct writes *b;
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 19, 2);
    fence(f, 7);
    a = post_add(f->workers[0], &v, 7, 1);
    b = post_add(f->workers[1], &v, 7, 1);
    net_settle(&f->net);
    assert_fine(a);
    assert_fine(b);
    a = post_add(f->workers[1], &v, 7, 1);
    net_settle(&f->net);
    assert_fine(a);
    assert_all(f->workers[0], &v, 1);
    a = post_add(f->workers[1], &v, 7, 2);
    net_settle(&f->net);
    assert_fine(a);
    assert_all(f->workers[0], &v, 2);
    assert_int_equal(effects_of(f->servers[0]).origin, 7);
    assert_int_equal(effects_of(f->servers[0]).batches, 2);
    assert_true(effects_of(f->servers[0]).repeated >= 2);
    assert_int_equal(effects_of(f->servers[0]).span, 2);
    assert_int_equal(effects_of(f->servers[0]).staged_bytes, 0);
}

TEST_ON(test_finished_with, struct fixture *f, set_up, tear_down)
{
    struct writes *writes = run_of(7, 20);
    struct var_request v;

    open_variable(f->workers[0], &v, 2, 1);
    fence(f, 7);
    writes->run.effects.effects_done = 10;
    write_all(writes, &v, MU__WRITE_ADD, 1);
    post(f->workers[0], writes);
    net_settle(&f->net);
    assert_fine(writes);
    writes = post_add(f->workers[1], &v, 7, 9);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
    writes = post_add(f->workers[1], &v, 7, 10);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 2);
}

/* A server that knows no supervisor yet is asked again. */
TEST_ON(test_no_fence, struct fixture *f, set_up, tear_down)
{
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 19, 2);
    writes = post_add(f->workers[0], &v, 7, 1);
    net_run_for(&f->net, 220);
    assert_false(writes->sent);
    assert_all(f->workers[0], &v, 0);
    fence(f, 7);
    net_run_for(&f->net, 50);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
    net_crash(f->servers[0]);
    net_start(f->servers[0]);
    writes = post_add(f->workers[0], &v, 7, 2);
    net_run_for(&f->net, TIMEOUT_MS);
    assert_ended(writes, -MU_EUNAVAILABLE, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://ps0:1) knows no supervisor "
                 "and has refused it for 2.0 s");
}

TEST_ON(test_former_supervisor, struct fixture *f, set_up, tear_down)
{
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 2, 1);
    fence(f, 7);
    fence(f, 8);
    writes = post_add(f->workers[0], &v, 7, 1);
    net_settle(&f->net);
    assert_ended(writes, -MU_EABORTED, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://ps0:1) refused it: it is "
                 "from a previous incarnation of the chief");
    assert_all(f->workers[0], &v, 0);
    writes = post_add(f->workers[0], &v, 8, 1);
    net_settle(&f->net);
    assert_fine(writes);
    fence(f, 8);
    writes = post_add(f->workers[0], &v, 8, 1);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* In the middle of a batch. The run of the one server takes nothing of the other back. */
TEST_ON(test_fenced_midway, struct fixture *f, set_up, tear_down)
{
    struct writes *writes;
    struct writes *plain;
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 20, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    plain = post_add(f->workers[1], &v, 7, 0);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    fence(f, 8);
    net_settle(&f->net);
    assert_int_equal(writes->run.code, -MU_EABORTED);
    run_free(writes);
    assert_fine(plain);
    assert_all(f->workers[0], &v, 1);
}

/* Only a chief fences, and what it said lasts when it is gone. */
TEST_ON(test_who_fences, struct fixture *f, set_up, tear_down)
{
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 2, 1);
    fence_server(f->workers[1], f->servers[0], 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    net_run_for(&f->net, 200);
    assert_false(writes->sent);
    fence(f, 7);
    net_crash(f->chief);
    fence_server(f->chief, f->servers[0], 9);
    fence_server(f->workers[1], f->servers[0], 9);
    net_run_for(&f->net, 50);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* ---- A run's writes ---- */

TEST(test_bound_of_run)
{
    struct mu__effects effects = {.first = NULL};
    char *data = calloc(1, MU__EFFECTS_BYTES_MAX);
    struct mu__effect *last;
    uint64_t bytes;

    assert_non_null(data);
    assert_int_equal(
        mu__effects_add(&effects,
                        &(struct mu__effect){.size = MU__EFFECTS_BYTES_MAX - 64}, data),
        0);
    last = effects.last;
    bytes = effects.bytes;
    assert_int_equal(mu__effects_add(&effects, &(struct mu__effect){.size = 65}, data),
                     -MU_EEXHAUSTED);
    assert_int_equal(mu__effects_add(&effects, &(struct mu__effect){.size = 1}, data), 0);
    assert_int_equal(mu__effects_add(&effects, &(struct mu__effect){.size = 1}, data),
                     -MU_EEXHAUSTED);
    mu__effects_cut(&effects, last, bytes);
    assert_ptr_equal(effects.last, last);
    assert_int_equal(mu__effects_add(&effects, &(struct mu__effect){.size = 64}, data),
                     0);
    mu__effects_clear(&effects);
    assert_null(effects.first);
    assert_int_equal(mu__effects_add(&effects,
                                     &(struct mu__effect){.size = MU__EFFECTS_BYTES_MAX},
                                     data),
                     0);
    mu__effects_clear(&effects);
    free(data);
}

TEST_PROGRAM()
