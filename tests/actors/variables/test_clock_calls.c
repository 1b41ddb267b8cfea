/* What programs ask of clocks: calls that wait, time out, and outlive servers. */
#include "tests/support/test.h"
#include "tests/support/var_net.h"

#include "muster/error.h"

struct clock_request {
    struct mu__clock_call call; /* first */
    bool done;
};

/* Their memory outlives a test that fails while a call waits. */
enum { REQUESTS_MAX = 64 };
static struct clock_request requests[REQUESTS_MAX];
static size_t requests_count;

static struct clock_request *new_request(uint64_t staleness)
{
    struct clock_request *request = &requests[requests_count++];

    assert_true(requests_count <= REQUESTS_MAX);
    request->call.staleness = staleness;
    return request;
}

static int spawn_member(struct net_process *p)
{
    char task[32];
    const struct mu__variables_options options = {.task = task,
                                                  .incarnation = p->incarnation};

    (void)snprintf(task, sizeof task, "/job:worker/task:%u", (unsigned)p->index);
    return mu__spawn(p->kernel, &mu__variables, MU__VARIABLES, &options, NULL);
}

/* Three servers with backups, two members. */
static int clocks_set_up(void **state)
{
    struct var_net *f = calloc(1, sizeof *f);

    assert_non_null(f);
    net_init(&f->net, 1);
    for (uint32_t i = 0; i < 3; i++)
        f->servers[i] = net_add(&f->net, "ps", i, var_spawn_server);
    f->alice = net_add(&f->net, "worker", 0, spawn_member);
    f->bob = net_add(&f->net, "worker", 1, spawn_member);
    for (size_t i = 0; i < f->net.processes_count; i++)
        f->net.processes[i].incarnation = 100 * (i + 1); /* each has another one */
    f->chief = var_start(&f->net, true);
    *state = f;
    return 0;
}

static void set_clock_done(struct mu__call *call)
{
    ((struct clock_request *)(void *)call)->done = true;
}

static void post_clock(struct net_process *p, struct clock_request *request,
                       int operation, int64_t timeout_ms)
{
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));

    assert_non_null(msg);
    request->done = false;
    request->call.name = "train";
    request->call.servers_count = 3;
    request->call.call.complete = set_clock_done;
    request->call.call.operation = operation;
    request->call.call.timeout_ms = timeout_ms;
    ((struct mu__call_msg *)mu__body(msg))->call = request;
    msg->to.actor = MU__VARIABLES;
    net_deliver(p, msg);
    net_settle(p->net);
}

static int clock_code(const struct clock_request *request)
{
    assert_true(request->done);
    return request->call.call.code;
}

static struct clock_request *opened(struct net_process *p, uint64_t staleness)
{
    struct clock_request *request = new_request(staleness);

    post_clock(p, request, MU__CLOCK_OPEN, 1000);
    assert_int_equal(clock_code(request), 0);
    return request;
}

static void tick_ok(struct net_process *p, struct clock_request *request, uint64_t step)
{
    post_clock(p, request, MU__CLOCK_TICK, 1000);
    assert_int_equal(clock_code(request), 0);
    assert_int_equal(request->call.step, step);
}

static uint64_t minimum_by(struct net_process *p, const struct clock_request *member)
{
    struct clock_request *request = new_request(0);

    request->call.member = member->call.member;
    post_clock(p, request, MU__CLOCK_MINIMUM, 1000);
    assert_int_equal(clock_code(request), 0);
    return request->call.minimum;
}

TEST_ON(test_bounded_staleness, struct var_net *f, clocks_set_up, var_tear_down)
{
    struct clock_request *alice = opened(f->alice, 1);
    struct clock_request *bob = opened(f->bob, 1);

    tick_ok(f->alice, alice, 1);
    post_clock(f->alice, alice, MU__CLOCK_TICK, 60000);
    assert_false(alice->done);
    assert_int_equal(minimum_by(f->alice, alice), 0);
    tick_ok(f->bob, bob, 1);
    assert_int_equal(clock_code(alice), 0);
    assert_int_equal(alice->call.step, 2);
    assert_int_equal(minimum_by(f->bob, bob), 1);
}

TEST_ON(test_unlimited_staleness_never_waits, struct var_net *f, clocks_set_up,
        var_tear_down)
{
    struct clock_request *alice = opened(f->alice, UINT64_MAX);
    struct clock_request *bob = opened(f->bob, UINT64_MAX);

    for (uint64_t step = 1; step < 20; step++)
        tick_ok(f->alice, alice, step);
    assert_int_equal(minimum_by(f->bob, bob), 0);
}

/* After the timeout the same step is waited for. */
TEST_ON(test_a_timeout_names_who_is_behind, struct var_net *f, clocks_set_up,
        var_tear_down)
{
    struct clock_request *alice = opened(f->alice, 0);
    struct clock_request *bob = opened(f->bob, 0);

    post_clock(f->alice, alice, MU__CLOCK_TICK, 1000);
    net_run_for(&f->net, 900);
    assert_false(alice->done);
    net_run_for(&f->net, 100);
    assert_int_equal(clock_code(alice), -MU_EDEADLINE);
    assert_string_equal(alice->call.call.error.message,
                        "clock train: tick: step 1 waits: /job:worker/task:1 is at step "
                        "0");
    post_clock(f->alice, alice, MU__CLOCK_TICK, 1000);
    tick_ok(f->bob, bob, 1);
    assert_int_equal(clock_code(alice), 0);
    assert_int_equal(alice->call.step, 1);
}

/* It is let through when nobody waits for that any more: no other step is done. */
TEST_ON(test_a_step_that_timed_out_is_not_skipped, struct var_net *f, clocks_set_up,
        var_tear_down)
{
    struct clock_request *alice = opened(f->alice, 0);
    struct clock_request *bob = opened(f->bob, 0);

    post_clock(f->alice, alice, MU__CLOCK_TICK, 100);
    net_run_for(&f->net, 100);
    assert_int_equal(clock_code(alice), -MU_EDEADLINE);
    tick_ok(f->bob, bob, 1);
    tick_ok(f->alice, alice, 1);
}

TEST_ON(test_another_staleness_is_refused, struct var_net *f, clocks_set_up,
        var_tear_down)
{
    struct clock_request *alice = opened(f->alice, 0);
    struct clock_request *bob = new_request(3);

    post_clock(f->bob, bob, MU__CLOCK_OPEN, 1000);
    assert_int_equal(clock_code(bob), -MU_EPRECONDITION);
    assert_string_equal(bob->call.call.error.message,
                        "clock train: open: /job:worker/task:0 has opened it with "
                        "staleness 0, and /job:worker/task:1 with 3");
    tick_ok(f->alice, alice, 1);
}

TEST_ON(test_who_closes_a_clock_is_not_waited_for, struct var_net *f, clocks_set_up,
        var_tear_down)
{
    struct clock_request *alice = opened(f->alice, 0);
    struct clock_request *bob = opened(f->bob, 0);

    post_clock(f->alice, alice, MU__CLOCK_TICK, 60000);
    assert_false(alice->done);
    post_clock(f->bob, bob, MU__CLOCK_CLOSE, -1);
    assert_int_equal(clock_code(bob), 0);
    assert_int_equal(clock_code(alice), 0);
    post_clock(f->bob, bob, MU__CLOCK_TICK, 1000);
    assert_int_equal(clock_code(bob), -MU_ECLOSED);
}

/* An open that nobody answers leaves no member behind. */
TEST_ON(test_an_open_that_times_out_leaves, struct var_net *f, clocks_set_up,
        var_tear_down)
{
    struct clock_request *alice = opened(f->alice, 0);
    struct clock_request *bob = new_request(0);

    f->bob->deaf = true;
    post_clock(f->bob, bob, MU__CLOCK_OPEN, 1000);
    net_run_for(&f->net, 1000);
    assert_int_equal(clock_code(bob), -MU_EDEADLINE);
    f->bob->deaf = false;
    net_settle(&f->net);
    tick_ok(f->alice, alice, 1);
}

/* The server of the clock dies while one waits: its backup goes on. */
TEST_ON(test_a_clock_outlives_its_server, struct var_net *f, clocks_set_up, var_tear_down)
{
    struct clock_request *alice = opened(f->alice, 0);
    struct clock_request *bob = opened(f->bob, 0);

    post_clock(f->alice, alice, MU__CLOCK_TICK, 60000);
    assert_false(alice->done);
    net_crash(var_server_of(f, "train"));
    net_run_for(&f->net, 5000);
    assert_false(alice->done);
    tick_ok(f->bob, bob, 1);
    assert_int_equal(clock_code(alice), 0);
    assert_int_equal(alice->call.step, 1);
}

TEST_ON(test_a_lost_member_is_not_waited_for, struct var_net *f, clocks_set_up,
        var_tear_down)
{
    struct clock_request *alice = opened(f->alice, 0);

    (void)opened(f->bob, 0);
    post_clock(f->alice, alice, MU__CLOCK_TICK, 60000);
    net_crash(f->bob);
    net_run_for(&f->net, 2000);
    assert_int_equal(clock_code(alice), 0);
}

/* Its link was down for so long that nobody waits for it: it is a member once more. */
TEST_ON(test_one_that_was_cut_off_joins_again, struct var_net *f, clocks_set_up,
        var_tear_down)
{
    struct clock_request *alice = opened(f->alice, 0);
    struct clock_request *bob = opened(f->bob, 0);

    net_cut(f->bob);
    post_clock(f->alice, alice, MU__CLOCK_TICK, 60000);
    net_run_for(&f->net, 2000);
    tick_ok(f->alice, alice, 2);
    net_heal(f->bob);
    net_settle(&f->net);
    post_clock(f->alice, alice, MU__CLOCK_TICK, 60000);
    net_settle(&f->net);
    assert_false(alice->done);
    post_clock(f->bob, bob, MU__CLOCK_TICK, 1000);
    assert_int_equal(clock_code(bob), 0);
    assert_int_equal(bob->call.step, 3);
    assert_int_equal(clock_code(alice), 0);
}

/* A node that is closed ends its calls. */
TEST_ON(test_calls_end_with_their_node, struct var_net *f, clocks_set_up, var_tear_down)
{
    struct clock_request *alice = opened(f->alice, 0);

    (void)opened(f->bob, 0);
    post_clock(f->alice, alice, MU__CLOCK_TICK, -1);
    net_crash(f->alice);
    assert_int_equal(clock_code(alice), -MU_ECLOSED);
    assert_string_equal(alice->call.call.error.message,
                        "clock train: tick: the node is being closed");
}

TEST_PROGRAM()
