/* Programs and parameter servers: what calls bring, while servers are slow, missing or
 * lost in the middle, and what bounds them. */
#include "tests/support/packed_rule.h"
#include "tests/support/test.h"
#include "tests/support/var_net.h"

/* ---- Ordinary life ---- */

static const struct mu__shape shapes[] = {
    {MU_F32, 0, {0}, 1},
    {MU_F32, 1, {7}, 1},
    {MU_F32, 1, {7}, 3},
    {MU_F32, 2, {8, 3}, 8},                    /* several shards on one server */
    {MU_F32, 1, {MU__PIECE_BYTES_MAX / 4}, 1}, /* one piece exactly */
    {MU_F32, 1, {MU__PIECE_BYTES_MAX / 4 + 1}, 1},
    {MU_F32, 2, {1500, 1024}, 3},
};

static void check_shape(struct var_net *f, struct mu__shape shape)
{
    size_t count = (size_t)mu__shape_bytes(&shape) / sizeof(float);
    float *first = var_numbers(count, 1);
    float *second = var_numbers(count, 5);
    struct var_request a = var_opened(f->alice, "v", shape, first);
    struct var_request b = var_opened(f->bob, "v", shape, second);

    var_aim(&a);
    var_aim(&b);
    var_assert_reads(f->bob, &b, first);
    b.call.source = second;
    var_ask_ok(f->bob, &b, MU__VARIABLE_ASSIGN);
    var_assert_reads(f->alice, &a, second);
    a.call.source = first;
    var_ask_ok(f->alice, &a, MU__VARIABLE_ADD);
    for (size_t i = 0; i < count; i++)
        second[i] += first[i];
    var_assert_reads(f->bob, &b, second);
    var_ask_ok(f->bob, &b, MU__VARIABLE_VERSION);
    assert_int_equal(b.call.version, 3);
    free(first);
    free(second);
}

TEST(test_shapes)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        void *f;

        assert_int_equal(var_set_up(&f), 0);
        check_shape(f, shapes[i]);
        assert_int_equal(var_tear_down(&f), 0);
    }
}

TEST_ON(test_zeros_and_gradients, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_opened(f->alice, "v", var_four, NULL);
    const float gradient[4] = {1, 2, 3, 4};

    var_aim(&r);
    var_assert_reads(f->alice, &r, (const float[4]){0, 0, 0, 0});
    r.call.source = gradient;
    r.call.rule = packed_momentum(0.5, 0);
    var_ask_ok(f->alice, &r, MU__VARIABLE_APPLY);
    var_assert_reads(f->alice, &r, (const float[4]){-0.5F, -1, -1.5F, -2});
    r.call.rule = packed_momentum(0.5, 0.5);
    var_ask_ok(f->alice, &r, MU__VARIABLE_APPLY);
    var_ask_ok(f->alice, &r, MU__VARIABLE_APPLY);
    var_assert_reads(f->alice, &r, (const float[4]){-1.75F, -3.5F, -5.25F, -7});
}

/* Whoever comes second waits until the first has written every piece. */
TEST_ON(test_second_waits, struct var_net *f, var_set_up, var_tear_down)
{
    float *content = var_numbers(VAR_LARGE_COUNT, 3);
    struct var_request a = var_request_of(&f->net, "v", var_large);
    struct var_request b = var_request_of(&f->net, "v", var_large);

    var_aim(&a);
    var_aim(&b);
    a.call.source = content;
    var_post(f->alice, &a, MU__VARIABLE_OPEN, VAR_NEVER);
    var_post(f->bob, &b, MU__VARIABLE_OPEN, VAR_NEVER);
    for (int i = 0; i < 8; i++) {
        assert_true(net_step(&f->net));
        assert_false(b.done);
    }
    net_settle(&f->net);
    assert_true(a.done && b.done);
    assert_int_equal(b.call.call.code, 0);
    var_assert_reads(f->bob, &b, content);
    free(content);
}

TEST_ON(test_mismatch, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r =
        var_request_of(&f->net, "v", (struct mu__shape){MU_F32, 1, {5}, 1});

    var_aim(&r);
    (void)var_opened(f->alice, "v", var_four, NULL);
    assert_int_equal(var_ask(f->bob, &r, MU__VARIABLE_OPEN, VAR_NEVER),
                     -MU_EPRECONDITION);
    assert_string_equal(r.call.call.error.message,
                        "variable v: open: on /job:ps/task:0: it is float32[4] in 1 "
                        "shard; opened as float32[5] in 1 shard");
    assert_string_equal(r.call.call.error.task, "/job:ps/task:0");
}

static int spawn_server_with_program(struct net_process *p)
{
    static const char *const addresses[1] = {"tcp://me:1"};
    const struct mu__variables_options options = {
        .addresses_count = 1, .addresses = addresses, .is_server = true};
    int rv = var_spawn_server(p);

    return rv != 0 ? rv
                   : mu__spawn(p->kernel, &mu__variables, MU__VARIABLES, &options, NULL);
}

/* The program runs on the server's node itself: no frames, but mailboxes. */
TEST(test_on_the_same_node)
{
    struct net net;
    struct net_process *p;
    float *content = var_numbers(VAR_LARGE_COUNT, 1);
    float *other = var_numbers(VAR_LARGE_COUNT, 2);
    struct var_request r = {.call = {.name = "v", .servers_count = 1},
                            .shape = {MU_F32, 2, {1500, 1024}, 1}};

    net_init(&net, 1);
    p = net_add(&net, "ps", 0, spawn_server_with_program);
    (void)var_start(&net, false);
    var_aim(&r);
    r.call.source = content;
    var_ask_ok(p, &r, MU__VARIABLE_OPEN);
    r.call.source = other;
    assert_int_equal(var_ask(p, &r, MU__VARIABLE_ASSIGN, 1000), 0);
    var_assert_reads(p, &r, other);
    net_done(&net);
    free(content);
    free(other);
}

/* ---- Servers that are missing or slow ---- */

TEST_ON(test_missing_server_is_named, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_request_of(&f->net, "v", var_large);

    var_aim(&r);
    net_crash(f->servers[1]);
    assert_int_equal(var_ask(f->alice, &r, MU__VARIABLE_OPEN, 5000), -MU_EUNAVAILABLE);
    assert_int_equal(f->net.now_ms, 5000);
    assert_string_equal(r.call.call.error.message,
                        "variable v: open: /job:ps/task:1 (tcp://ps1:1) not reached for "
                        "5.0 s (connection lost)");
    assert_string_equal(r.call.call.error.task, "/job:ps/task:1");
}

TEST_ON(test_missing_servers_are_all_named, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_request_of(&f->net, "v", var_large);

    var_aim(&r);
    net_crash(f->servers[0]);
    net_crash(f->servers[2]);
    assert_int_equal(var_ask(f->alice, &r, MU__VARIABLE_OPEN, 1250), -MU_EUNAVAILABLE);
    assert_string_equal(r.call.call.error.message,
                        "variable v: open: /job:ps/task:0 (tcp://ps0:1) not reached for "
                        "1.2 s (connection lost), /job:ps/task:2 (tcp://ps2:1) not "
                        "reached for 1.2 s (connection lost)");
}

TEST_ON(test_slow_server_is_named, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_opened(f->alice, "v", var_large, NULL);
    float *data = var_numbers(VAR_LARGE_COUNT, 0);

    var_aim(&r);
    f->servers[2]->deaf = true;
    r.call.target = data;
    assert_int_equal(var_ask(f->alice, &r, MU__VARIABLE_READ, 300), -MU_EDEADLINE);
    assert_string_equal(r.call.call.error.message,
                        "variable v: read: /job:ps/task:2 (tcp://ps2:1) has not answered "
                        "for 0.3 s");
    free(data);
}

TEST_ON(test_late_server_is_waited_for, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_request_of(&f->net, "v", var_large);

    var_aim(&r);
    net_crash(f->servers[1]);
    var_post(f->alice, &r, MU__VARIABLE_OPEN, 60000);
    net_run_until(&f->net, 30000);
    assert_false(r.done);
    net_start(f->servers[1]);
    net_settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
}

/* A link that has no room is tried again soon. */
TEST_ON(test_full_link, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_request_of(&f->net, "v", var_large);

    var_aim(&r);
    f->servers[0]->full = true;
    var_post(f->alice, &r, MU__VARIABLE_OPEN, 1000);
    net_run_until(&f->net, 500);
    assert_false(r.done);
    f->servers[0]->full = false;
    net_run_until(&f->net, 510);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
}

/* ---- Servers that are lost in the middle ---- */

/* Cut anywhere in a read or an assign: it goes on when the server is back. */
TEST(test_repeated_after_a_cut)
{
    static const int operations[] = {MU__VARIABLE_READ, MU__VARIABLE_ASSIGN,
                                     MU__VARIABLE_VERSION};
    float *content = var_numbers(VAR_LARGE_COUNT, 1);
    float *data = var_numbers(VAR_LARGE_COUNT, 0);

    for (size_t o = 0; o < sizeof operations / sizeof operations[0]; o++)
        for (int events = 0; events < (o < 2 ? 12 : 4); events++) {
            void *fixture;
            struct var_net *f;
            struct var_request r;

            assert_int_equal(var_set_up(&fixture), 0);
            f = fixture;
            r = var_opened(f->alice, "v", var_large, o == 0 ? content : NULL);
            var_aim(&r);
            r.call.source = content;
            r.call.target = data;
            var_begin(f->alice, &r, operations[o], events);
            net_cut(f->servers[events % 3]);
            net_settle(&f->net);
            net_heal(f->servers[events % 3]);
            net_settle(&f->net);
            assert_true(r.done);
            assert_int_equal(r.call.call.code, 0);
            if (o < 2)
                var_assert_reads(f->alice, &r, content);
            assert_int_equal(var_tear_down(&fixture), 0);
        }
    free(content);
    free(data);
}

/* False when the open is over before the server is lost. What a server loses after it has
 * done all that the open wants of it is found out later. */
static bool check_open_is_repeated(const float *content, int server, int events,
                                   int *ret_late)
{
    void *fixture;
    struct var_net *f;
    struct var_request r;
    float *data = var_numbers(VAR_LARGE_COUNT, 0);
    bool in_time;

    assert_int_equal(var_set_up(&fixture), 0);
    f = fixture;
    r = var_request_of(&f->net, "v", var_large);
    var_aim(&r);
    r.call.source = content;
    var_post(f->alice, &r, MU__VARIABLE_OPEN, 60000);
    for (int i = 0; i < events / 2 && !r.done; i++)
        (void)net_step(&f->net);
    in_time = !r.done;
    if (events % 2 == 0) {
        net_cut(f->servers[server]);
        net_heal(f->servers[server]);
    } else if (in_time) {
        net_crash(f->servers[server]);
        net_start(f->servers[server]);
    }
    net_settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    r.call.target = data;
    if (var_ask(f->alice, &r, MU__VARIABLE_READ, VAR_NEVER) == 0)
        assert_memory_equal(data, content, VAR_LARGE_COUNT * sizeof *data);
    else
        assert_true(events % 2 == 1 && r.call.call.code == -MU_ENOTFOUND);
    *ret_late += r.call.call.code != 0;
    free(data);
    assert_int_equal(var_tear_down(&fixture), 0);
    return in_time;
}

/* Opening goes on too, whether the server comes back with or without its memory. */
TEST(test_open_is_repeated)
{
    float *content = var_numbers(VAR_LARGE_COUNT, 1);
    int moments = 0;
    int late = 0;

    for (int server = 0; server < 3; server++)
        for (int events = 0; check_open_is_repeated(content, server, events, &late);
             events++)
            moments++;
    assert_true(moments > 3 * 2 * 20);
    assert_true(late < moments / 6);
    free(content);
}

/* A server that comes back empty is not asked for zeros. */
TEST_ON(test_restarted_server, struct var_net *f, var_set_up, var_tear_down)
{
    static const int operations[] = {MU__VARIABLE_READ, MU__VARIABLE_VERSION,
                                     MU__VARIABLE_ASSIGN, MU__VARIABLE_ADD,
                                     MU__VARIABLE_APPLY};
    struct var_request r = var_opened(f->alice, "v", var_four, NULL);
    float data[4] = {0};

    var_aim(&r);
    r.call.source = data;
    r.call.target = data;
    net_crash(var_server_of(f, "v"));
    net_start(var_server_of(f, "v"));
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        assert_int_equal(var_ask(f->alice, &r, operations[i], VAR_NEVER), -MU_ENOTFOUND);
        assert_non_null(strstr(r.call.call.error.message,
                               "on /job:ps/task:0: the server was restarted, or the "
                               "variable created anew: it does not have it"));
        assert_string_equal(r.call.call.error.task, "/job:ps/task:0");
    }
}

/* Applied, and the answer is lost: it is sent again, and counts once. */
TEST_ON(test_lost_answers, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_opened(f->alice, "v", var_four, NULL);

    var_aim(&r);
    r.call.source = var_ones;
    var_begin(f->alice, &r, MU__VARIABLE_ADD, 1);
    net_cut(var_server_of(f, "v"));
    net_settle(&f->net);
    assert_false(r.done);
    net_heal(var_server_of(f, "v"));
    net_settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    assert_int_equal(f->net.counts[MU__VAR_WRITE], 3); /* zeros, and twice the add */
    var_assert_reads(f->alice, &r, var_ones);
}

/* A server that comes anew before its loss was told has forgotten what it was asked. */
TEST_ON(test_new_link_without_loss, struct var_net *f, var_set_up, var_tear_down)
{
    float *content = var_numbers(VAR_LARGE_COUNT, 1);
    float *data = var_numbers(VAR_LARGE_COUNT, 0);
    struct var_request r = var_opened(f->alice, "v", var_large, content);

    var_aim(&r);
    r.call.target = data;
    var_begin(f->alice, &r, MU__VARIABLE_READ, 0);
    net_drop_between(f->alice, f->servers[2]);
    net_link_up(f->alice, f->servers[2]);
    net_settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    assert_memory_equal(data, content, VAR_LARGE_COUNT * sizeof *data);
    free(content);
    free(data);
}

/* Nothing was sent yet: the add waits for the server and is done once. */
TEST_ON(test_unsent_add_waits, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_opened(f->alice, "v", var_four, NULL);

    var_aim(&r);
    r.call.source = var_ones;
    net_cut(var_server_of(f, "v"));
    net_settle(&f->net);
    var_begin(f->alice, &r, MU__VARIABLE_ADD, 0);
    net_heal(var_server_of(f, "v"));
    net_settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    var_assert_reads(f->alice, &r, var_ones);
}

/* ---- Bounds, and the end ---- */

/* Reads and writes have a window of data under way, and no more. */
TEST_ON(test_window, struct var_net *f, var_set_up, var_tear_down)
{
    const struct mu__shape shape = {MU_F32, 2, {16, MU__PIECE_BYTES_MAX / 4}, 1};
    float *data = var_numbers(16 * (MU__PIECE_BYTES_MAX / 4), 1);
    struct var_request r = var_opened(f->alice, "v", shape, data);
    const uint64_t most = MU__WINDOW_BYTES + MU__PIECE_BYTES_MAX + 4096;

    var_aim(&r);
    assert_true(f->net.bytes_peak >= MU__WINDOW_BYTES);
    assert_true(f->net.bytes_peak < most);
    r.call.source = data;
    var_ask_ok(f->alice, &r, MU__VARIABLE_ASSIGN);
    assert_true(f->net.bytes_peak < most);
    var_assert_reads(f->alice, &r, data);
    assert_true(f->net.bytes_peak < most);
    free(data);
}

/* Ten shards on one server are not all staged at once: the server would refuse. */
TEST_ON(test_staged_at_once, struct var_net *f, var_set_up, var_tear_down)
{
    static const struct mu__store_limits limits = {.bytes_max = 1 << 30,
                                                   .variables_max = 100,
                                                   .waiting_max = 100,
                                                   .transfers_node_max = MU__STAGED_MAX};
    const struct mu__shape shape = {MU_F32, 2, {10, MU__PIECE_BYTES_MAX / 4 + 1}, 10};
    float *data = var_numbers((size_t)mu__shape_bytes(&shape) / sizeof(float), 1);
    struct var_request r = {.call = {.name = "v", .servers_count = 1}, .shape = shape};

    net_crash(f->servers[0]);
    f->servers[0]->arg = &limits;
    net_start(f->servers[0]);
    var_aim(&r);
    var_ask_ok(f->alice, &r, MU__VARIABLE_OPEN);
    r.call.source = data;
    var_ask_ok(f->alice, &r, MU__VARIABLE_ASSIGN);
    var_assert_reads(f->alice, &r, data);
    free(data);
}

/* Calls to one server fill the table of all: one to another server is not forgotten. */
TEST_ON(test_full_table_blocks_nobody, struct var_net *f, var_set_up, var_tear_down)
{
    enum { COUNT = MU__FLIGHTS_MAX * 2 };
    struct var_request *r = calloc(COUNT, sizeof *r);
    struct var_request w = var_opened(f->alice, "v", var_four, NULL);
    struct var_request x = var_opened(f->alice, "x", var_four, NULL);

    assert_non_null(r);
    assert_ptr_not_equal(var_server_of(f, "v"), var_server_of(f, "x"));
    for (int i = 0; i < COUNT; i++) {
        r[i] = w;
        var_aim(&r[i]);
        var_post(f->alice, &r[i], MU__VARIABLE_VERSION, VAR_NEVER);
    }
    var_aim(&x);
    var_post(f->alice, &x, MU__VARIABLE_VERSION, VAR_NEVER);
    net_settle(&f->net);
    assert_true(x.done);
    for (int i = 0; i < COUNT; i++)
        assert_true(r[i].done);
    free(r);
}

/* A thousand small calls at once, and a large one: all are done. */
TEST_ON(test_many_at_once, struct var_net *f, var_set_up, var_tear_down)
{
    enum { COUNT = 3000 };
    struct var_request *r = calloc(COUNT, sizeof *r);
    float *content = var_numbers(VAR_LARGE_COUNT, 1);
    struct var_request big = var_opened(f->alice, "b", var_large, content);
    struct var_request small = var_opened(f->alice, "v", var_four, NULL);

    assert_non_null(r);
    var_aim(&big);
    var_aim(&small);
    big.call.source = content;
    var_post(f->alice, &big, MU__VARIABLE_ASSIGN, VAR_NEVER);
    for (int i = 0; i < COUNT; i++) {
        r[i] = small;
        var_aim(&r[i]);
        r[i].call.source = var_ones;
        var_post(f->alice, &r[i], MU__VARIABLE_ADD, VAR_NEVER);
    }
    net_settle(&f->net);
    for (int i = 0; i < COUNT; i++)
        assert_true(r[i].done && r[i].call.call.code == 0);
    assert_true(big.done);
    var_assert_reads(f->alice, &small, (const float[4]){COUNT, COUNT, COUNT, COUNT});
    free(content);
    free(r);
}

TEST_ON(test_closing_completes_calls, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_request_of(&f->net, "v", var_large);

    var_aim(&r);
    var_begin(f->alice, &r, MU__VARIABLE_OPEN, 2);
    net_crash(f->alice);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, -MU_ECLOSED);
    assert_string_equal(r.call.call.error.message,
                        "variable v: open: the node is being closed");
}

TEST_PROGRAM()
