/* The agent of the coordination service, in whole clusters with the real service: what
 * programs are told, and when.
 *
 * The chief hosts the service. Its store is held in its first turn, links are up at 60
 * ms; agents say that they live every 166 ms. A question of a worker takes 20 ms there and
 * back, one of the chief none. */
#include "tests/story.h"
#include "tests/sim/storage.h"

#define CALL(...) (&(struct mu__agent_call){__VA_ARGS__})
#define KEY(...) (&(mu_kv_ask){__VA_ARGS__})

/* A service, and what the usual story has. */
#define SERVICE .hosts = "chief:0"

static struct cluster_call *ask(struct cluster_task *task, int operation,
                                int64_t limit_ms)
{
    return cluster_agent(task, CALL(.call = {.operation = operation,
                                             .limit_ms = limit_ms}));
}

static struct cluster_call *put(struct cluster_task *task, const char *key,
                                const char *value, unsigned flags, int64_t limit_ms)
{
    return cluster_key(task, KEY(.operation = MU_KV_PUT, .key = key, .value = value,
                                 .size = strlen(value), .flags = flags,
                                 .limit_ms = limit_ms));
}

static struct cluster_call *key_call(struct cluster_task *task, int operation,
                                     const char *key, int64_t limit_ms)
{
    return cluster_key(task, KEY(.operation = operation, .key = key, .by = 1,
                                 .limit_ms = limit_ms));
}

static void expect_done(struct cluster_call *call, int code, uint64_t after_ms)
{
    uint64_t began_ms = sim_now_ms(call->task->cluster->sim);
    int rv = cluster_wait(call);

    if (rv != code)
        fail_msg("%s: %s", mu_err_name(rv), call->of.call.error.message);
    assert_int_equal(call->done_ms - began_ms, after_ms);
}

static void expect_failed(struct cluster_call *call, int code, const char *words)
{
    assert_int_equal(cluster_wait(call), code);
    assert_string_equal(call->of.call.error.message, words);
    assert_int_equal(call->of.call.error.code, code);
}

static void expect_key(struct cluster_task *task, const char *key, const char *value)
{
    struct cluster_call *call = key_call(task, MU_KV_TRY_GET, key, 1000);

    assert_int_equal(cluster_wait(call), 0);
    assert_string_equal(call->of.key.value, value);
}

static int state_of(const struct cluster_task *task)
{
    return atomic_load(&task->member.agent.state);
}

/* ---- Registering ---- */

static void test_everybody_registers(void **state)
{
    struct cluster *cluster = BEGIN(SERVICE, .workers = 2, .servers = 1, .clients = 1);

    (void)state;
    assert_int_equal(state_of(cluster->chief), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->workers[1]), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->servers[0]), MU_AGENT_CONNECTED);
    assert_int_equal(state_of(cluster->clients[0]), MU_AGENT_CONNECTED);
    expect_done(ask(cluster->workers[0], MU__AGENT_REGISTER, 0), 0, 0);
    end(cluster);
}

/* ---- Keys ---- */

static void test_keys(void **state)
{
    struct cluster *cluster = BEGIN(SERVICE, .workers = 2);
    struct cluster_call *call;

    (void)state;
    expect_done(put(cluster->chief, "a/b", "one", 0, -1), 0, 0);
    expect_key(cluster->workers[0], "a/b", "one");
    expect_done(put(cluster->workers[0], "a/b", "two", 0, 1000), -MU_EEXISTS, 20);
    expect_done(put(cluster->workers[0], "a/b", "two", MU_KV_OVERWRITE, 1000), 0, 20);
    expect_key(cluster->chief, "a/b", "two");
    call = key_call(cluster->workers[1], MU_KV_INCREMENT, "n", -1);
    expect_done(call, 0, 20);
    assert_int_equal(call->of.key.number, 1);
    call = key_call(cluster->workers[1], MU_KV_DELETE, "a", -1);
    expect_done(call, 0, 20);
    assert_int_equal(call->of.key.number, 1);
    expect_done(key_call(cluster->chief, MU_KV_TRY_GET, "a/b", -1), -MU_ENOTFOUND, 0);
    end(cluster);
}

static void test_get_waits(void **state)
{
    struct cluster *cluster = BEGIN(SERVICE, .workers = 2);
    struct cluster_call *call = key_call(cluster->workers[0], MU_KV_GET, "late", -1);

    (void)state;
    run_for(cluster, 100);
    assert_false(call->done);
    (void)put(cluster->workers[1], "late", "here", 0, -1);
    expect_done(call, 0, 20);
    assert_string_equal(call->of.key.value, "here");
    call = key_call(cluster->workers[0], MU_KV_GET, "never", 300);
    expect_done(call, -MU_EDEADLINE, 300);
    assert_string_equal(call->of.call.error.message,
                        "key \"never\" was not put within 300 ms");
    call = key_call(cluster->workers[0], MU_KV_GET, "never", -1);
    run_for(cluster, 50);
    cluster_key_cancel(call);
    expect_failed(call, -MU_ECANCELLED, "cancelled");
    end(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everybody_registers),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_get_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
