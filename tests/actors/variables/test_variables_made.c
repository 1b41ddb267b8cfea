/* Who makes a variable: creators that are lost or give up, those who wait for them, and
 * shards that are lost and made anew. */
#include "tests/support/packed_rule.h"
#include "tests/support/test.h"
#include "tests/support/var_net.h"

/* ---- Creators that are lost or give up ---- */

/* The variable is as a whole what the one or the other has written. */
TEST(test_creator_dies)
{
    float *content = var_numbers(VAR_LARGE_COUNT, 1);
    float *other = var_numbers(VAR_LARGE_COUNT, 2);
    float *data = var_numbers(VAR_LARGE_COUNT, 0);
    bool in_time = true;

    for (int events = 0; in_time; events++) {
        void *fixture;
        struct var_net *f;
        struct var_request a;
        struct var_request b;

        assert_int_equal(var_set_up(&fixture), 0);
        f = fixture;
        a = var_request_of(&f->net, "v", var_large);
        b = var_request_of(&f->net, "v", var_large);
        var_aim(&a);
        var_aim(&b);
        a.call.source = content;
        b.call.source = other;
        var_post(f->alice, &a, MU__VARIABLE_OPEN, VAR_NEVER);
        for (int i = 0; i < events && !a.done; i++)
            (void)net_step(&f->net);
        in_time = !a.done;
        var_post(f->bob, &b, MU__VARIABLE_OPEN, VAR_NEVER);
        net_crash(f->alice);
        assert_true(a.done);
        net_settle(&f->net);
        assert_true(b.done);
        b.call.target = data;
        var_ask_ok(f->bob, &b, MU__VARIABLE_READ);
        assert_true(memcmp(data, content, VAR_LARGE_COUNT * sizeof *data) == 0 ||
                    memcmp(data, other, VAR_LARGE_COUNT * sizeof *data) == 0);
        assert_int_equal(var_tear_down(&fixture), 0);
    }
    free(content);
    free(other);
    free(data);
}

/* The creator cannot finish on server 1, and gives up at its limit. What it made and did
 * not fill is free for the next, although the link had no room to say so at first. */
TEST_ON(test_creator_gives_up, struct var_net *f, var_set_up, var_tear_down)
{
    float *content = var_numbers(VAR_LARGE_COUNT, 1);
    struct var_request a = var_request_of(&f->net, "v", var_large);
    struct var_request b = var_request_of(&f->net, "v", var_large);

    var_aim(&a);
    var_aim(&b);
    a.call.source = content;
    b.call.source = content;
    var_post(f->alice, &a, MU__VARIABLE_OPEN, 100);
    for (int i = 0; i < 3; i++)
        assert_true(net_step(&f->net));
    f->servers[1]->full = true;
    var_post(f->bob, &b, MU__VARIABLE_OPEN, VAR_NEVER);
    net_run_until(&f->net, 100);
    assert_true(a.done);
    assert_int_equal(a.call.call.code, -MU_EDEADLINE);
    net_run_until(&f->net, 200);
    assert_false(b.done);
    f->servers[1]->full = false;
    net_run_until(&f->net, 210);
    assert_true(b.done);
    assert_int_equal(b.call.call.code, 0);
    var_assert_reads(f->bob, &b, content);
    free(content);
}

/* More opens give up than may wait at once: each gives its place back. The creator's
 * server hears nothing from it meanwhile. */
TEST_ON(test_waiting_opens_give_up, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request a = var_request_of(&f->net, "v", var_four);

    var_aim(&a);
    var_begin(f->alice, &a, MU__VARIABLE_OPEN, 1);
    f->alice->deaf = true;
    for (int i = 0; i < MU__OPENS_MAX + 10; i++) {
        struct var_request b = var_request_of(&f->net, "v", var_four);

        var_aim(&b);
        assert_int_equal(var_ask(f->bob, &b, MU__VARIABLE_OPEN, 1), -MU_EDEADLINE);
        net_settle(&f->net);
    }
    (void)var_opened(f->bob, "x", var_four, NULL);
    f->alice->deaf = false;
    net_cut(f->alice);
    net_heal(f->alice);
    net_settle(&f->net);
    assert_true(a.done);
    assert_int_equal(a.call.call.code, 0);
}

/* Made the creator after it gave up: it hands that on. */
TEST_ON(test_creator_hears_too_late, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request a = var_request_of(&f->net, "v", var_four);

    var_aim(&a);
    var_post(f->alice, &a, MU__VARIABLE_OPEN, 10);
    assert_true(net_step(&f->net));
    f->net.now_ms = 10;
    net_settle(&f->net);
    assert_true(a.done);
    assert_int_equal(a.call.call.code, -MU_EDEADLINE);
    (void)var_opened(f->bob, "v", var_four, NULL);
}

/* What was given up is not told for ever to a server that is gone. */
TEST_ON(test_nothing_is_owed_to_the_lost, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request a = var_request_of(&f->net, "v", var_large);
    struct mu__kernel_counters counters;

    var_aim(&a);
    var_post(f->alice, &a, MU__VARIABLE_OPEN, 100);
    for (int i = 0; i < 3; i++)
        assert_true(net_step(&f->net));
    f->servers[1]->full = true;
    net_run_until(&f->net, 200);
    assert_true(a.done);
    mu__kernel_counters(f->alice->kernel, &counters);
    assert_int_equal(counters.timers, 1);
    net_crash(f->servers[1]);
    net_run_until(&f->net, 300);
    mu__kernel_counters(f->alice->kernel, &counters);
    assert_int_equal(counters.timers, 0);
}

/* ---- Who does not create, and shards that are lost ---- */

TEST_ON(test_existing_waits_for_its_creator, struct var_net *f, var_set_up, var_tear_down)
{
    float *content = var_numbers(VAR_LARGE_COUNT, 3);
    struct var_request b = var_asked(f->bob, var_large, MU_VARIABLE_EXISTING, NULL);
    struct var_request a = var_asked(f->alice, var_large, 0, content);

    var_aim(&a);
    var_aim(&b);
    var_post(f->bob, &b, MU__VARIABLE_OPEN, 60000);
    net_run_until(&f->net, 30000);
    assert_false(b.done);
    var_ask_ok(f->alice, &a, MU__VARIABLE_OPEN);
    net_settle(&f->net);
    assert_true(b.done);
    assert_int_equal(b.call.call.code, 0);
    var_assert_reads(f->bob, &b, content);
    free(content);
}

/* Each one that gives up gives its place back, here and on the server. */
TEST_ON(test_existing_gives_up, struct var_net *f, var_set_up, var_tear_down)
{
    static const struct mu__store_limits limits = {.bytes_max = 1 << 30,
                                                   .variables_max = 1,
                                                   .waiting_max = 2,
                                                   .transfers_node_max = 1};

    net_crash(f->servers[0]);
    f->servers[0]->arg = &limits;
    net_start(f->servers[0]);
    for (int i = 0; i < MU__OPENS_MAX + 10; i++) {
        struct var_request r = var_asked(f->bob, var_large, MU_VARIABLE_EXISTING, NULL);

        var_aim(&r);
        assert_int_equal(var_ask(f->bob, &r, MU__VARIABLE_OPEN, 100), -MU_EDEADLINE);
        var_assert_fails(&r, -MU_EDEADLINE,
                         "variable \"v\" does not exist on /job:ps/task:0 (it waits for "
                         "its creator)");
        assert_string_equal(r.call.call.error.task, "/job:ps/task:0");
        net_settle(&f->net);
    }
    assert_int_equal(f->net.now_ms, 100 * (MU__OPENS_MAX + 10));
}

/* More wait than may at once: the creator on their node finds room all the same. */
TEST_ON(test_existing_leave_room_for_the_creator, struct var_net *f, var_set_up,
        var_tear_down)
{
    enum { COUNT = MU__OPENS_MAX + 10 };
    struct var_request *waiting = calloc(COUNT, sizeof *waiting);

    assert_non_null(waiting);
    for (int i = 0; i < COUNT; i++) {
        waiting[i] = var_asked(f->alice, var_four, MU_VARIABLE_EXISTING, NULL);
        var_aim(&waiting[i]);
        var_post(f->alice, &waiting[i], MU__VARIABLE_OPEN, VAR_NEVER);
    }
    net_settle(&f->net);
    (void)var_opened(f->alice, "v", var_four, var_ones);
    net_settle(&f->net);
    for (int i = 0; i < COUNT; i++)
        assert_true(waiting[i].done && waiting[i].call.call.code == 0);
    free(waiting);
}

/* A server that says nothing is not taken for one that says no. */
TEST_ON(test_existing_and_a_slow_server, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_asked(f->bob, var_four, MU_VARIABLE_EXISTING, NULL);

    var_aim(&r);
    f->servers[0]->deaf = true;
    (void)var_ask(f->bob, &r, MU__VARIABLE_OPEN, 300);
    var_assert_fails(&r, -MU_EDEADLINE,
                     "variable v: open: /job:ps/task:0 (tcp://ps0:1) has not answered "
                     "for 0.3 s");
}

TEST_ON(test_existing_and_another_shape, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_asked(f->bob, var_large, MU_VARIABLE_EXISTING, NULL);

    var_aim(&r);
    var_post(f->bob, &r, MU__VARIABLE_OPEN, 60000);
    (void)var_opened(f->alice, "v", var_four, var_ones);
    net_settle(&f->net);
    var_assert_fails(&r, -MU_EPRECONDITION,
                     "variable v: open: on /job:ps/task:0: it was created with another "
                     "dtype, shape or number of shards");
}

/* The creator gives up: who does not create goes on waiting, and says for what. */
TEST_ON(test_existing_outlives_a_creator, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request a = var_asked(f->alice, var_four, 0, var_ones);
    struct var_request b = var_asked(f->bob, var_four, MU_VARIABLE_EXISTING, NULL);
    struct var_request c = b;

    var_aim(&a);
    var_aim(&b);
    var_aim(&c);
    var_begin(f->alice, &a, MU__VARIABLE_OPEN, 1);
    var_post(f->bob, &b, MU__VARIABLE_OPEN, 100);
    var_post(f->bob, &c, MU__VARIABLE_OPEN, VAR_NEVER);
    assert_true(net_step(&f->net) && net_step(&f->net));
    net_crash(f->alice);
    net_run_until(&f->net, 100);
    var_assert_fails(&b, -MU_EDEADLINE,
                     "variable \"v\" does not exist on /job:ps/task:0 (it waits for its "
                     "creator)");
    assert_false(c.done);
    net_start(f->alice);
    (void)var_opened(f->alice, "v", var_four, var_ones);
    net_settle(&f->net);
    assert_true(c.done);
    var_assert_reads(f->bob, &c, var_ones);
}

/* Whichever server comes back empty, opening says so and leaves all as it was, until
 * somebody is asked to create the variable anew; handles from before find nothing. */
TEST(test_lost_shards)
{
    static const char *const lost[] = {
        "variable \"v\" lost its shards on /job:ps/task:0 in a restart; others have "
        "theirs (MU_VARIABLE_RECREATE writes all of it anew)",
        "variable \"v\" lost its shards on /job:ps/task:1 in a restart; others have "
        "theirs (MU_VARIABLE_RECREATE writes all of it anew)",
        "variable \"v\" lost its shards on /job:ps/task:2 in a restart; others have "
        "theirs (MU_VARIABLE_RECREATE writes all of it anew)"};
    static const char *const missing[] = {
        "variable \"v\" does not exist on /job:ps/task:0 (it waits for its creator)",
        "variable \"v\" does not exist on /job:ps/task:1 (it waits for its creator)",
        "variable \"v\" does not exist on /job:ps/task:2 (it waits for its creator)"};
    float *content = var_numbers(VAR_LARGE_COUNT, 1);
    float *other = var_numbers(VAR_LARGE_COUNT, 2);
    float *data = var_numbers(VAR_LARGE_COUNT, 0);

    for (int server = 0; server < 3; server++) {
        struct var_request old;
        struct var_request r;
        struct var_request waits;
        void *fixture;
        struct var_net *f;

        assert_int_equal(var_set_up(&fixture), 0);
        f = fixture;
        old = var_opened(f->alice, "v", var_large, content);
        var_aim(&old);
        old.call.source = content;
        old.call.rule = packed_momentum(0, 0.5);
        var_ask_ok(f->alice, &old, MU__VARIABLE_APPLY);
        net_restart(f->servers[server]);
        for (int i = 0; i < 3; i++) {
            r = var_asked(f->bob, var_large, 0, other);
            var_aim(&r);
            (void)var_ask(f->bob, &r, MU__VARIABLE_OPEN, 1000);
            var_assert_fails(&r, -MU_EDATALOSS, lost[server]);
        }
        r = var_asked(f->bob, var_large, MU_VARIABLE_EXISTING, NULL);
        var_aim(&r);
        (void)var_ask(f->bob, &r, MU__VARIABLE_OPEN, 1000);
        var_assert_fails(&r, -MU_EDEADLINE, missing[server]);

        waits = var_asked(f->alice, var_large, MU_VARIABLE_EXISTING, NULL);
        var_aim(&waits);
        var_post(f->alice, &waits, MU__VARIABLE_OPEN, VAR_NEVER);
        net_settle(&f->net);
        assert_false(waits.done);
        r = var_asked(f->bob, var_large, MU_VARIABLE_RECREATE, other);
        var_aim(&r);
        var_ask_ok(f->bob, &r, MU__VARIABLE_OPEN);
        net_settle(&f->net);
        assert_true(waits.done);
        var_assert_reads(f->alice, &waits, other);
        var_assert_reads(f->bob, &r, other);
        var_ask_ok(f->bob, &r, MU__VARIABLE_VERSION);
        assert_int_equal(r.call.version, 1);
        old.call.target = data;
        var_assert_reads(f->alice, &old, other);
        var_assert_reads(f->bob, &r, other);
        assert_int_equal(var_tear_down(&fixture), 0);
    }
    free(content);
    free(other);
    free(data);
}

/* All is made anew while an open, which has found shard 0, is cut off from another one's
 * server: it does not end up with shards of both. */
TEST(test_made_anew_during_an_open)
{
    static const unsigned flags[] = {0, MU_VARIABLE_EXISTING, MU_VARIABLE_RECREATE};
    const struct mu__shape shape = {MU_F32, 1, {3}, 3};

    for (size_t i = 0; i < 3; i++) {
        struct var_request a;
        struct var_request b;
        void *fixture;
        struct var_net *f;

        assert_int_equal(var_set_up(&fixture), 0);
        f = fixture;
        (void)var_opened(f->alice, "v", shape, NULL);
        net_restart(f->servers[1]);
        net_link_down(f->bob, f->servers[1]);
        net_settle(&f->net);
        b = var_asked(f->bob, shape, flags[i], NULL);
        var_aim(&b);
        var_post(f->bob, &b, MU__VARIABLE_OPEN, VAR_NEVER);
        net_settle(&f->net);
        a = var_asked(f->alice, shape, MU_VARIABLE_RECREATE, var_ones);
        var_aim(&a);
        var_ask_ok(f->alice, &a, MU__VARIABLE_OPEN);
        assert_false(b.done);
        net_link_up(f->bob, f->servers[1]);
        net_settle(&f->net);
        assert_true(b.done);
        assert_int_equal(b.call.call.code, 0);
        var_assert_reads(f->bob, &b, var_ones);
        assert_int_equal(var_tear_down(&fixture), 0);
    }
}

/* A server takes an open for dead, and gives its creation to another one, which makes all
 * of the variable. The open hears no end of a connection: it finds shards of others,
 * which tell of no loss. */
TEST_ON(test_creation_that_was_given_away, struct var_net *f, var_set_up, var_tear_down)
{
    const struct mu__shape shape = {MU_F32, 1, {3}, 3};
    struct var_request r = var_asked(f->bob, shape, 0, NULL);

    var_aim(&r);
    for (int i = 1; i < 3; i++)
        net_link_down(f->bob, f->servers[i]);
    net_settle(&f->net);
    var_post(f->bob, &r, MU__VARIABLE_OPEN, VAR_NEVER);
    net_settle(&f->net);
    assert_false(r.done);

    net_link_anew(f->servers[0], f->bob);
    (void)var_opened(f->alice, "v", shape, var_ones);
    for (int i = 1; i < 3; i++)
        net_link_up(f->bob, f->servers[i]);
    net_settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    var_assert_reads(f->bob, &r, var_ones);
}

/* Two of three are named; and when all have lost it, it is simply created. */
TEST_ON(test_more_are_lost, struct var_net *f, var_set_up, var_tear_down)
{
    const struct mu__shape shape = {MU_F32, 1, {6}, 6}; /* two on each server */
    const float content[6] = {1, 2, 3, 4, 5, 6};
    struct var_request r = var_asked(f->alice, shape, 0, content);

    var_aim(&r);
    var_ask_ok(f->alice, &r, MU__VARIABLE_OPEN);
    net_restart(f->servers[1]);
    net_restart(f->servers[2]);
    (void)var_ask(f->alice, &r, MU__VARIABLE_OPEN, VAR_NEVER);
    var_assert_fails(&r, -MU_EDATALOSS,
                     "variable \"v\" lost its shards on /job:ps/task:1, /job:ps/task:2 "
                     "in a restart; others have theirs (MU_VARIABLE_RECREATE writes all "
                     "of it anew)");
    net_restart(f->servers[0]);
    var_ask_ok(f->alice, &r, MU__VARIABLE_OPEN);
    var_assert_reads(f->alice, &r, content);
    r.call.flags = MU_VARIABLE_RECREATE;
    r.call.source = NULL;
    var_ask_ok(f->alice, &r, MU__VARIABLE_OPEN);
    var_assert_reads(f->alice, &r, content);
}

/* More shards are lost than the tables of the program have room for, and one waits for
 * them: others read meanwhile. */
TEST_ON(test_many_are_lost, struct var_net *f, var_set_up, var_tear_down)
{
    enum { SHARDS = 2 * MU__FLIGHTS_MAX };
    const struct mu__shape shape = {MU_F32, 1, {SHARDS}, SHARDS};
    struct var_request x = var_opened(f->alice, "x", var_four, var_ones);
    struct var_request a = var_asked(f->bob, shape, 0, NULL);
    struct var_request waits = var_asked(f->alice, shape, MU_VARIABLE_EXISTING, NULL);
    uint64_t *ids = calloc(2 * SHARDS, sizeof *ids);

    assert_non_null(ids);
    var_aim(&x);
    var_aim(&a);
    var_aim(&waits);
    a.call.ids = ids;
    waits.call.ids = ids + SHARDS;
    var_ask_ok(f->bob, &a, MU__VARIABLE_OPEN);
    for (size_t i = 0; i < 3; i++)
        if (f->servers[i] != var_server_of(f, "v") &&
            f->servers[i] != var_server_of(f, "x"))
            net_restart(f->servers[i]);
    (void)var_ask(f->bob, &a, MU__VARIABLE_OPEN, VAR_NEVER);
    assert_int_equal(a.call.call.code, -MU_EDATALOSS);
    var_post(f->alice, &waits, MU__VARIABLE_OPEN, VAR_NEVER);
    net_settle(&f->net);
    var_assert_reads(f->alice, &x, var_ones);
    assert_false(waits.done);
    a.call.flags = MU_VARIABLE_RECREATE;
    var_ask_ok(f->bob, &a, MU__VARIABLE_OPEN);
    net_settle(&f->net);
    assert_true(waits.done);
    assert_int_equal(waits.call.call.code, 0);
    var_ask_ok(f->alice, &waits, MU__VARIABLE_VERSION);
    free(ids);
}

/* Two create it anew at once: one does, and both have its content. */
TEST(test_two_recreate)
{
    float *contents[2] = {var_numbers(VAR_LARGE_COUNT, 1),
                          var_numbers(VAR_LARGE_COUNT, 2)};
    float *data = var_numbers(VAR_LARGE_COUNT, 0);

    for (int i = 0; i < 3 * 40; i++) {
        struct var_request a;
        struct var_request b;
        void *fixture;
        struct var_net *f;

        assert_int_equal(var_set_up(&fixture), 0);
        f = fixture;
        (void)var_opened(f->alice, "v", var_large, NULL);
        net_restart(f->servers[i % 3]);
        a = var_asked(f->alice, var_large, MU_VARIABLE_RECREATE, contents[0]);
        b = var_asked(f->bob, var_large, MU_VARIABLE_RECREATE, contents[1]);
        var_aim(&a);
        var_aim(&b);
        var_post(f->alice, &a, MU__VARIABLE_OPEN, VAR_NEVER);
        for (int j = 0; j < i / 3; j++)
            (void)net_step(&f->net);
        var_post(f->bob, &b, MU__VARIABLE_OPEN, VAR_NEVER);
        net_settle(&f->net);
        assert_true(a.done && a.call.call.code == 0);
        assert_true(b.done && b.call.call.code == 0);
        a.call.target = data;
        var_ask_ok(f->alice, &a, MU__VARIABLE_READ);
        var_assert_reads(f->bob, &b, data);
        assert_true(memcmp(data, contents[0], VAR_LARGE_COUNT * sizeof *data) == 0 ||
                    memcmp(data, contents[1], VAR_LARGE_COUNT * sizeof *data) == 0);
        assert_int_equal(var_tear_down(&fixture), 0);
    }
    free(contents[0]);
    free(contents[1]);
    free(data);
}

TEST_PROGRAM()
