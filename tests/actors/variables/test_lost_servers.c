/* A parameter server that goes away: calls and writes of runs wait for it for as long as
 * `server_lost_ms`, then all of them say at once that it is unavailable. */
#include "actors/variables/effects.h"
#include "actors/worker/function_run.h"
#include "tests/support/packed_rule.h"
#include "tests/support/test.h"
#include "tests/support/var_net.h"
#include "tests/support/writes_probe.h"

enum { SERVERS = 3, LOST_MS = 4000, WAIT_MS = 9000 };

/* ---- The fixture: three servers; a worker that can lose them ---- */

struct fixture {
    struct net net;
    struct net_process *servers[SERVERS];
    struct net_process *worker;
};

static int spawn_worker(struct net_process *p)
{
    const struct mu__variables_options options = {.server_lost_ms = LOST_MS,
                                                  .effect_wait_ms = WAIT_MS};
    int rv = mu__spawn(p->kernel, &probe, MU__WORKER, NULL, NULL);

    if (rv == 0)
        rv = mu__spawn(p->kernel, &mu__variables, MU__VARIABLES, &options, NULL);
    return rv;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    net_init(&f->net, 1);
    for (uint32_t i = 0; i < SERVERS; i++)
        f->servers[i] = net_add(&f->net, "ps", i, var_spawn_server);
    f->worker = net_add(&f->net, "worker", 0, spawn_worker);
    (void)var_start(&f->net, false);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    net_done(&f->net);
    free(f);
    return 0;
}

/* ---- Calls ---- */

static const struct mu__shape spread = {MU_F32, 1, {6}, SERVERS};

static void open_spread(struct fixture *f, struct var_request *r)
{
    static const float content[6] = {1, 2, 3, 4, 5, 6};

    *r = var_opened(f->worker, "w", spread, content);
    var_aim(r);
}

static void post(struct fixture *f, struct var_request *r, int operation,
                 int64_t timeout_ms)
{
    static float buffer[6];

    r->call.target = buffer;
    r->call.source = buffer;
    var_post(f->worker, r, operation, timeout_ms);
    net_settle(&f->net);
}

static void assert_unavailable(const struct var_request *r, const char *words)
{
    var_assert_fails(r, -MU_EUNAVAILABLE, words);
    assert_int_equal(r->call.call.error.kind, MU_ERROR_SERVER);
    assert_string_equal(r->call.call.error.task, "/job:ps/task:1");
}

static const struct row {
    int operation;
    const char *verb;
} rows[] = {
    {MU__VARIABLE_OPEN, "open"},
    {MU__VARIABLE_READ, "read"},
    {MU__VARIABLE_VERSION, "read of the version"},
    {MU__VARIABLE_ASSIGN, "assign"},
    {MU__VARIABLE_ADD, "add"},
    {MU__VARIABLE_APPLY, "gradient"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Every kind of call: those that wait end when the server is lost, not before; those that
 * come later end at once, and say for how long it is away by then. */
TEST_ON(test_every_call_says_that_the_server_is_lost, struct fixture *f, set_up,
        tear_down)
{
    struct var_request calls[ROWS];
    char words[160];

    for (size_t i = 0; i < ROWS; i++)
        open_spread(f, &calls[i]);
    net_crash(f->servers[1]);
    net_run_for(&f->net, 1000);
    for (size_t i = 0; i < ROWS; i++) {
        var_aim(&calls[i]);
        calls[i].call.rule = packed_momentum(1, 0);
        post(f, &calls[i], rows[i].operation, VAR_NEVER);
    }
    net_run_for(&f->net, LOST_MS - 1001);
    for (size_t i = 0; i < ROWS; i++)
        assert_false(calls[i].done);
    net_run_for(&f->net, 1);
    for (size_t i = 0; i < ROWS; i++) {
        (void)snprintf(words, sizeof words,
                       "variable w: %s: /job:ps/task:1 "
                       "(tcp://ps1:1) not reached for 4.0 s (connection lost)",
                       rows[i].verb);
        assert_unavailable(&calls[i], words);
    }
    net_run_for(&f->net, 3500);
    for (size_t i = 0; i < ROWS; i++) {
        post(f, &calls[i], rows[i].operation, VAR_NEVER);
        (void)snprintf(words, sizeof words,
                       "variable w: %s: /job:ps/task:1 "
                       "(tcp://ps1:1) not reached for 7.5 s (connection lost)",
                       rows[i].verb);
        assert_unavailable(&calls[i], words);
    }
}

/* A timeout before that ends the wait; the server is unavailable all the same. */
TEST_ON(test_a_shorter_timeout_counts, struct fixture *f, set_up, tear_down)
{
    struct var_request r;

    open_spread(f, &r);
    net_crash(f->servers[1]);
    net_run_for(&f->net, 500);
    post(f, &r, MU__VARIABLE_READ, 1200);
    net_run_for(&f->net, 1200);
    assert_unavailable(&r, "variable w: read: /job:ps/task:1 (tcp://ps1:1) not reached "
                           "for 1.7 s (connection lost)");
}

/* The link alone breaks: back in time, nobody notices; back later, calls work again. */
TEST_ON(test_who_comes_back_is_there, struct fixture *f, set_up, tear_down)
{
    struct var_request r;

    open_spread(f, &r);
    net_link_down(f->worker, f->servers[1]);
    post(f, &r, MU__VARIABLE_READ, VAR_NEVER);
    net_run_for(&f->net, LOST_MS - 1);
    assert_false(r.done);
    net_link_up(f->worker, f->servers[1]);
    net_settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);

    net_link_down(f->worker, f->servers[1]);
    net_run_for(&f->net, LOST_MS);
    post(f, &r, MU__VARIABLE_READ, VAR_NEVER);
    assert_unavailable(&r, "variable w: read: /job:ps/task:1 (tcp://ps1:1) not reached "
                           "for 4.0 s (connection lost)");
    net_link_up(f->worker, f->servers[1]);
    net_settle(&f->net);
    post(f, &r, MU__VARIABLE_READ, VAR_NEVER);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
}

/* Tasks start in any order. */
TEST_ON(test_who_was_never_there_is_waited_for, struct fixture *f, set_up, tear_down)
{
    struct var_request r = var_request_of(&f->net, "w", spread);

    net_crash(f->worker);
    net_crash(f->servers[1]);
    net_start(f->worker);
    net_settle(&f->net);
    var_aim(&r);
    post(f, &r, MU__VARIABLE_OPEN, 60000);
    net_run_for(&f->net, 59999);
    assert_false(r.done);
    net_run_for(&f->net, 1);
    var_assert_fails(&r, -MU_EDEADLINE,
                     "variable w: open: /job:ps/task:1 not reached for 60.0 s");
}

/* What needs other servers goes on. */
TEST_ON(test_others_are_not_concerned, struct fixture *f, set_up, tear_down)
{
    struct var_request r = var_opened(f->worker, "w", var_four, NULL);

    net_crash(f->servers[1]);
    net_run_for(&f->net, 2 * LOST_MS);
    var_aim(&r);
    post(f, &r, MU__VARIABLE_READ, VAR_NEVER);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
}

/* ---- Writes of runs ---- */

static struct writes *write_to(struct fixture *f, const struct var_request *r)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECTS_SEND, sizeof(struct mu__effects_send));
    struct writes *writes = calloc(1, sizeof *writes);
    const float data[2] = {1, 1};
    const struct mu__effect write = {.partition = 1,
                                     .operation = MU__WRITE_ADD,
                                     .variable = r->ids[1],
                                     .size = sizeof data};

    assert_non_null(writes);
    assert_non_null(msg);
    assert_int_equal(mu__effects_add(&writes->run.effects, &write, data), 0);
    ((struct mu__effects_send *)mu__body(msg))->run = &writes->run;
    msg->from.actor = MU__WORKER;
    msg->to.actor = MU__VARIABLES;
    net_deliver(f->worker, msg);
    net_settle(&f->net);
    return writes;
}

static void assert_failed(struct writes *writes, const char *words)
{
    assert_true(writes->sent);
    assert_int_equal(writes->run.code, -MU_EUNAVAILABLE);
    assert_non_null(writes->run.failure);
    assert_int_equal(writes->run.failure->kind, MU_ERROR_SERVER);
    assert_string_equal(writes->run.failure->task, "/job:ps/task:1");
    assert_string_equal(writes->run.failure->message, words);
    mu__effects_clear(&writes->run.effects);
    free(writes->run.failure);
    free(writes);
}

TEST_ON(test_writes_of_runs_fail_with_the_server, struct fixture *f, set_up, tear_down)
{
    struct var_request r;
    struct writes *writes;

    open_spread(f, &r);
    net_crash(f->servers[1]);
    net_run_for(&f->net, 1000);
    writes = write_to(f, &r);
    net_run_for(&f->net, LOST_MS - 1001);
    assert_false(writes->sent);
    net_run_for(&f->net, 1);
    assert_failed(writes, "what the run wrote: /job:ps/task:1 (tcp://ps1:1) not reached "
                          "for 4.0 s (connection lost)");
    net_run_for(&f->net, 2000);
    assert_failed(write_to(f, &r), "what the run wrote: /job:ps/task:1 (tcp://ps1:1) not "
                                   "reached for 6.0 s (connection lost)");
}

/* One that is there and does not answer has the time that writes wait for. */
TEST_ON(test_writes_of_runs_wait_for_a_silent_server, struct fixture *f, set_up,
        tear_down)
{
    struct var_request r;
    struct writes *writes;

    open_spread(f, &r);
    f->servers[1]->deaf = true;
    writes = write_to(f, &r);
    net_run_for(&f->net, WAIT_MS - 1);
    assert_false(writes->sent);
    net_run_for(&f->net, 1);
    assert_failed(writes, "what the run wrote: /job:ps/task:1 (tcp://ps1:1) has not "
                          "answered for 9.0 s");
}

TEST_PROGRAM()
