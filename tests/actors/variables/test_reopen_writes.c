/* Writes of runs that were made with a handle from before their server was restarted. */
#include "actors/variables/effects.h"
#include "actors/variables/opened_variable.h"
#include "actors/worker/function_run.h"
#include "tests/support/test.h"
#include "tests/support/var_net.h"
#include "tests/support/writes_probe.h"

enum { SERVERS = 2, TIMEOUT_MS = 2000 };

static const struct mu__shape spread = {MU_I64, 1, {4}, SERVERS};
static const int64_t former[4] = {1, 2, 3, 4};
static const int64_t restored[4] = {10, 20, 30, 40};

/* ---- The fixture: two servers, a worker, and one who restores ---- */

struct fixture {
    struct net net;
    struct net_process *servers[SERVERS];
    struct net_process *worker;
    struct net_process *other;
    struct mu__opened_variable *opened; /* the worker's handle of "w" */
};

static int spawn_worker(struct net_process *p)
{
    const struct mu__variables_options options = {.effect_wait_ms = TIMEOUT_MS};
    int rv = mu__spawn(p->kernel, &probe, MU__WORKER, NULL, NULL);

    if (rv == 0)
        rv = mu__spawn(p->kernel, &mu__variables, MU__VARIABLES, &options, NULL);
    return rv;
}

/* "w" has its home on server 0. */
static struct var_request request_of(const struct fixture *f, struct mu__shape shape,
                                     unsigned flags, const int64_t *content)
{
    struct var_request r = var_request_of(&f->net, "w", shape);

    r.call.flags = flags;
    r.call.source = content;
    return r;
}

static void restore(struct fixture *f, struct mu__shape shape, const int64_t *content)
{
    struct var_request r = request_of(f, shape, MU_VARIABLE_RECREATE, content);

    var_aim(&r);
    var_ask_ok(f->other, &r, MU__VARIABLE_OPEN);
    var_ask_ok(f->other, &r, MU__VARIABLE_ASSIGN);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct var_request r;

    if (f == NULL)
        return -1;
    net_init(&f->net, 1);
    for (uint32_t i = 0; i < SERVERS; i++)
        f->servers[i] = net_add(&f->net, "ps", i, var_spawn_server);
    f->worker = net_add(&f->net, "worker", 0, spawn_worker);
    f->other = net_add(&f->net, "worker", 1, var_spawn_program);
    (void)var_start(&f->net, false);
    r = request_of(f, spread, 0, former);
    var_aim(&r);
    var_ask_ok(f->worker, &r, MU__VARIABLE_OPEN);
    f->opened = mu__opened_variable_new("w", &spread, SERVERS);
    assert_non_null(f->opened);
    mu__opened_variable_store(f->opened, r.ids);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    net_done(&f->net);
    mu__opened_variable_unref(f->opened);
    free(f);
    return 0;
}

/* ---- Runs ---- */

/* One run adds one to all elements. */
static struct writes *add_one(struct fixture *f)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECTS_SEND, sizeof(struct mu__effects_send));
    struct writes *writes = calloc(1, sizeof *writes);
    const int64_t ones[2] = {1, 1};
    uint64_t ids[SERVERS];

    assert_non_null(writes);
    assert_non_null(msg);
    mu__opened_variable_load(f->opened, ids);
    for (uint32_t i = 0; i < SERVERS; i++) {
        const struct mu__effect write = {.partition =
                                             mu__partition_of(mu__view_str("w"), i),
                                         .operation = MU__WRITE_ADD,
                                         .variable = ids[i],
                                         .opened = f->opened,
                                         .shard = i,
                                         .size = sizeof ones};

        assert_int_equal(mu__effects_add(&writes->run.effects, &write, ones), 0);
    }
    ((struct mu__effects_send *)mu__body(msg))->run = &writes->run;
    msg->from.actor = MU__WORKER;
    msg->to.actor = MU__VARIABLES;
    net_deliver(f->worker, msg);
    net_settle(&f->net);
    return writes;
}

static void run_free(struct writes *writes)
{
    mu__effects_clear(&writes->run.effects);
    free(writes->run.failure);
    free(writes);
}

static void assert_fine(struct writes *writes)
{
    assert_true(writes->sent);
    if (writes->run.failure != NULL)
        fail_msg("%s", writes->run.failure->message);
    assert_int_equal(writes->run.code, 0);
    run_free(writes);
}

static void assert_failed(struct writes *writes, int code, const char *words)
{
    assert_true(writes->sent);
    assert_int_equal(writes->run.code, code);
    assert_non_null(writes->run.failure);
    assert_int_equal(writes->run.failure->kind, MU_ERROR_SERVER);
    assert_string_equal(writes->run.failure->task, "/job:ps/task:0");
    assert_string_equal(writes->run.failure->message, words);
    run_free(writes);
}

static void assert_content(struct fixture *f, const int64_t *expected)
{
    struct var_request r = request_of(f, spread, MU_VARIABLE_EXISTING, NULL);
    int64_t data[4];

    var_aim(&r);
    var_ask_ok(f->other, &r, MU__VARIABLE_OPEN);
    r.call.target = data;
    var_ask_ok(f->other, &r, MU__VARIABLE_READ);
    assert_memory_equal(data, expected, sizeof data);
}

static void restart_servers(struct fixture *f)
{
    for (int i = 0; i < SERVERS; i++)
        net_restart(f->servers[i]);
    net_settle(&f->net);
}

TEST_ON(test_writes_find_what_was_restored, struct fixture *f, set_up, tear_down)
{
    static const int64_t once[4] = {11, 21, 31, 41};
    static const int64_t twice[4] = {12, 22, 32, 42};

    restart_servers(f);
    restore(f, spread, restored);
    assert_fine(add_one(f));
    assert_content(f, once);

    /* The handle has learned it. */
    f->net.counts[MU__VAR_OPEN] = 0;
    assert_fine(add_one(f));
    assert_int_equal(f->net.counts[MU__VAR_OPEN], 0);
    assert_content(f, twice);
}

/* A handle for its content alone: what was restored is not written to. */
TEST_ON(test_writes_to_the_same_content_alone, struct fixture *f, set_up, tear_down)
{
    f->opened->is_same = true;
    assert_fine(add_one(f));
    restart_servers(f);
    restore(f, spread, restored);
    f->servers[1]->deaf = true;
    assert_failed(add_one(f), -MU_ENOTFOUND,
                  "what the run wrote: /job:ps/task:0 (tcp://ps0:1) refused it: the "
                  "server was restarted, or the variable created anew: it does not have "
                  "it");
    f->servers[1]->deaf = false;
    assert_content(f, restored);
}

TEST_ON(test_writes_to_what_was_not_restored, struct fixture *f, set_up, tear_down)
{
    net_restart(f->servers[0]);
    net_settle(&f->net);
    assert_failed(add_one(f), -MU_ENOTFOUND,
                  "what the run wrote: /job:ps/task:0 (tcp://ps0:1) refused it: the "
                  "server was restarted, or the variable created anew: it does not have "
                  "it");
    restore(f, spread, restored);
    assert_fine(add_one(f));
}

TEST_ON(test_writes_to_another_shape, struct fixture *f, set_up, tear_down)
{
    static const int64_t longer[6] = {1, 1, 1, 1, 1, 1};

    restart_servers(f);
    restore(f, (struct mu__shape){MU_I64, 1, {6}, SERVERS}, longer);
    assert_failed(add_one(f), -MU_EPRECONDITION,
                  "what the run wrote: variable w: open: on /job:ps/task:0: it is "
                  "int64[6] in 2 shards; opened as int64[4] in 2 shards");
}

/* Somebody restores it and does not come to an end: the limit of the run's writes counts,
 * and what is found after that is of no use to anybody. */
TEST_ON(test_the_limit_counts_while_it_looks, struct fixture *f, set_up, tear_down)
{
    static const int64_t once[4] = {11, 21, 31, 41};
    struct var_request creator = request_of(f, spread, MU_VARIABLE_RECREATE, restored);
    struct writes *writes;

    restart_servers(f);
    var_aim(&creator);
    var_post(f->other, &creator, MU__VARIABLE_OPEN, VAR_NEVER);
    f->other->deaf = true;
    net_settle(&f->net);
    f->net.counts[MU__VAR_OPEN] = 0;
    writes = add_one(f);
    assert_true(f->net.counts[MU__VAR_OPEN] > 0);
    net_run_for(&f->net, TIMEOUT_MS - 1);
    assert_false(writes->sent);
    net_run_for(&f->net, 1);
    assert_true(writes->sent);
    assert_true(writes->run.code == -MU_EUNAVAILABLE ||
                writes->run.code == -MU_EDEADLINE);
    assert_string_equal(writes->run.failure->task, "/job:ps/task:0");
    run_free(writes);
    f->other->deaf = false;
    net_cut(f->other);
    net_heal(f->other);
    net_settle(&f->net);
    assert_true(creator.done);
    assert_fine(add_one(f));
    assert_content(f, once);
}

TEST_PROGRAM()
