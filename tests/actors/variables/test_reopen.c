/* Handles that outlive their servers: what was opened on a server that was restarted is
 * found again by its name, once somebody has restored it. */
#include "tests/support/packed_rule.h"
#include "tests/support/test.h"
#include "tests/support/var_net.h"

/* Six numbers, two on each of the three servers; "v" has its home on server 0. */
static const struct mu__shape spread = {MU_F32, 1, {6}, 3};
static const float former[6] = {1, 2, 3, 4, 5, 6};
static const float restored[6] = {11, 12, 13, 14, 15, 16};

/* Somebody else restores it, as from a checkpoint. */
static void restore(struct var_net *f, struct mu__shape shape, const float *content)
{
    struct var_request r = var_asked(f->bob, shape, MU_VARIABLE_RECREATE, content);

    var_aim(&r);
    var_ask_ok(f->bob, &r, MU__VARIABLE_OPEN);
    r.call.source = content;
    var_ask_ok(f->bob, &r, MU__VARIABLE_ASSIGN);
}

static int read_code(struct var_net *f, struct var_request *r)
{
    float buffer[6];

    r->call.target = buffer;
    return var_ask(f->alice, r, MU__VARIABLE_READ, VAR_NEVER);
}

/* ---- What is there again ---- */

TEST_ON(test_a_handle_goes_on_after_a_restore, struct var_net *f, var_set_up,
        var_tear_down)
{
    struct var_request r = var_opened(f->alice, "v", spread, former);
    uint64_t ids[3];

    var_aim(&r);
    memcpy(ids, r.ids, sizeof ids);
    net_restart(f->servers[1]);
    net_settle(&f->net);
    assert_int_equal(read_code(f, &r), -MU_ENOTFOUND);
    var_assert_fails(&r, -MU_ENOTFOUND,
                     "variable v: read: on /job:ps/task:1: the server was restarted, or "
                     "the variable created anew: it does not have it");
    assert_string_equal(r.call.call.error.task, "/job:ps/task:1");
    restore(f, spread, restored);

    var_assert_reads(f->alice, &r, restored);
    assert_true(r.call.reopened);
    for (int i = 0; i < 3; i++)
        assert_true(r.ids[i] != ids[i]);

    /* What was found is used from then on, without another look. */
    f->net.counts[MU__VAR_OPEN] = 0;
    var_assert_reads(f->alice, &r, restored);
    assert_false(r.call.reopened);
    assert_int_equal(f->net.counts[MU__VAR_OPEN], 0);
}

/* One that was opened for its content alone does not. */
TEST_ON(test_a_handle_of_the_same_content_does_not, struct var_net *f, var_set_up,
        var_tear_down)
{
    static const int operations[] = {MU__VARIABLE_READ, MU__VARIABLE_ASSIGN,
                                     MU__VARIABLE_ADD, MU__VARIABLE_APPLY};
    struct var_request r = var_opened(f->alice, "v", spread, former);
    float buffer[6] = {0};

    var_aim(&r);
    r.call.flags = MU_VARIABLE_SAME;
    var_assert_reads(f->alice, &r, former);
    net_restart(f->servers[1]);
    net_settle(&f->net);
    restore(f, spread, restored);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        r.call.target = buffer;
        r.call.source = buffer;
        assert_int_equal(var_ask(f->alice, &r, operations[i], VAR_NEVER), -MU_ENOTFOUND);
        assert_false(r.call.reopened);
    }
    r.call.flags = 0;
    var_assert_reads(f->alice, &r, restored);
}

static const struct row {
    int operation;
    float expected[6];
} rows[] = {
    {MU__VARIABLE_ASSIGN, {1, 2, 3, 4, 5, 6}},
    {MU__VARIABLE_ADD, {12, 14, 16, 18, 20, 22}},
    {MU__VARIABLE_APPLY, {10, 10, 10, 10, 10, 10}},
};

/* Writes too, each of them once. */
TEST_ON(test_writes_go_on_after_a_restore, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request handles[3];
    struct var_request version;

    for (size_t i = 0; i < 3; i++)
        handles[i] = var_opened(f->alice, "v", spread, former);
    for (size_t i = 0; i < 3; i++) {
        net_restart(f->servers[i]);
        net_settle(&f->net);
        restore(f, spread, restored);
        var_aim(&handles[i]);
        handles[i].call.source = former;
        handles[i].call.rule = packed_momentum(1, 0);
        var_ask_ok(f->alice, &handles[i], rows[i].operation);
        assert_true(handles[i].call.reopened);
        version = handles[i];
        var_aim(&version);
        var_ask_ok(f->alice, &version, MU__VARIABLE_VERSION);
        assert_int_equal(version.call.version, handles[i].call.version);
        var_assert_reads(f->alice, &handles[i], rows[i].expected);
    }
}

/* Several pieces for each shard. */
TEST_ON(test_large_ones_go_on, struct var_net *f, var_set_up, var_tear_down)
{
    float *one = var_numbers(VAR_LARGE_COUNT, 1);
    float *two = var_numbers(VAR_LARGE_COUNT, 2);
    struct var_request reads = var_opened(f->alice, "v", var_large, one);
    struct var_request adds = reads;
    struct var_request assigns = reads;

    var_aim(&reads);
    var_aim(&adds);
    var_aim(&assigns);
    for (size_t i = 0; i < 3; i++)
        net_restart(f->servers[i]);
    net_settle(&f->net);
    restore(f, var_large, two);
    var_assert_reads(f->alice, &reads, two);
    adds.call.source = one;
    var_ask_ok(f->alice, &adds, MU__VARIABLE_ADD);
    for (size_t i = 0; i < VAR_LARGE_COUNT; i++)
        two[i] += one[i];
    var_assert_reads(f->alice, &reads, two);
    assigns.call.source = one;
    var_ask_ok(f->alice, &assigns, MU__VARIABLE_ASSIGN);
    var_assert_reads(f->alice, &reads, one);
    free(one);
    free(two);
}

/* While it is being restored, a call waits for that. */
TEST_ON(test_who_restores_is_waited_for, struct var_net *f, var_set_up, var_tear_down)
{
    float *content = var_numbers(VAR_LARGE_COUNT, 4);
    struct var_request r = var_opened(f->alice, "v", var_large, NULL);
    struct var_request creator =
        var_asked(f->bob, var_large, MU_VARIABLE_RECREATE, content);

    var_aim(&r);
    var_aim(&creator);
    for (size_t i = 0; i < 3; i++)
        net_restart(f->servers[i]);
    net_settle(&f->net);
    var_begin(f->bob, &creator, MU__VARIABLE_OPEN, 12);
    var_assert_reads(f->alice, &r, content);
    assert_true(creator.done);
    free(content);
}

/* ---- What is not there, or is another one ---- */

TEST_ON(test_another_shape_is_another_variable, struct var_net *f, var_set_up,
        var_tear_down)
{
    const struct mu__shape other = {MU_F32, 1, {5}, 3};
    struct var_request r = var_opened(f->alice, "v", spread, former);

    var_aim(&r);
    for (size_t i = 0; i < 3; i++)
        net_restart(f->servers[i]);
    net_settle(&f->net);
    restore(f, other, var_ones);
    assert_int_equal(read_code(f, &r), -MU_EPRECONDITION);
    var_assert_fails(&r, -MU_EPRECONDITION,
                     "variable v: read: on /job:ps/task:0: it is float32[5] in 3 shards; "
                     "opened as float32[6] in 3 shards");
    assert_int_equal(r.call.call.error.kind, MU_ERROR_SERVER);
}

/* An add that a former shard has taken is not made good by another on the new ones. */
TEST_ON(test_an_add_in_two_lives_is_told, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_opened(f->alice, "v", spread, former);

    var_aim(&r);
    r.call.source = former;
    net_restart(f->servers[1]);
    net_settle(&f->net);
    net_link_down(f->alice, f->servers[1]); /* its part is sent */
    var_post(f->alice, &r, MU__VARIABLE_ADD, VAR_NEVER);
    net_settle(&f->net);
    assert_false(r.done);
    restore(f, spread, restored); /* after all was made anew */
    net_link_up(f->alice, f->servers[1]);
    net_settle(&f->net);
    var_assert_fails(&r, -MU_EUNAVAILABLE,
                     "variable v: add: the variable was created anew on /job:ps/task:0 "
                     "(tcp://ps0:1) before all of it was written: the outcome is "
                     "unknown");
    var_assert_reads(f->alice, &r, restored);
}

/* The operation's own limit ends it while it looks. */
TEST_ON(test_the_limit_counts_while_it_looks, struct var_net *f, var_set_up,
        var_tear_down)
{
    struct var_request r = var_opened(f->alice, "v", spread, former);
    float buffer[6];

    var_aim(&r);
    r.call.target = buffer;
    for (size_t i = 0; i < 3; i++)
        net_restart(f->servers[i]);
    net_settle(&f->net);
    net_cut(f->servers[0]);
    net_settle(&f->net);
    var_post(f->alice, &r, MU__VARIABLE_READ, 700);
    net_run_for(&f->net, 699);
    assert_false(r.done);
    net_run_for(&f->net, 1);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, -MU_EUNAVAILABLE);
    assert_string_equal(r.call.call.error.task, "/job:ps/task:0");
    net_heal(f->servers[0]);
    net_settle(&f->net);
    restore(f, spread, restored);
    var_assert_reads(f->alice, &r, restored);
}

TEST_PROGRAM()
