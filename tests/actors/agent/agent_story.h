/* Clusters with the real service, and calls of their agents, for tests/actors/agent/.
 *
 * The chief hosts the service. Everybody is registered at 200 ms, when stories begin;
 * agents say that they live every 166 ms. A request of a worker takes 20 ms there and
 * back, one of the chief none. A host that does not answer for 500 ms is lost. */
#ifndef TESTS_AGENT_STORY_H
#define TESTS_AGENT_STORY_H

#include "actors/agent/internal.h"
#include "sim/world/storage.h"
#include "tests/support/story.h"

#define CALL(...) (&(struct mu__agent_call){__VA_ARGS__})
#define KEY(...) (&(mu_kv_request){__VA_ARGS__})

#define SERVICE(...) begin(&(struct cluster_options){.hosts = "chief:0", __VA_ARGS__})

static inline void started(struct cluster *cluster)
{
    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    run_until(cluster, 200);
    sim_trace_level(cluster->sim, MU__LOG_DEBUG);
    (void)sim_trace(cluster->sim);
}

static inline struct cluster *begin(const struct cluster_options *options)
{
    struct cluster *cluster = cluster_new(1, options);

    started(cluster);
    return cluster;
}

static inline struct cluster_call *ask(struct cluster_task *task, int operation,
                                       int64_t timeout_ms)
{
    return cluster_agent(
        task, CALL(.call = {.operation = operation, .timeout_ms = timeout_ms}));
}

static inline struct cluster_call *put(struct cluster_task *task, const char *key,
                                       const char *value, unsigned flags,
                                       int64_t timeout_ms)
{
    return cluster_key(task, KEY(.operation = MU_KV_PUT, .key = key, .value = value,
                                 .size = strlen(value), .flags = flags,
                                 .timeout_ms = timeout_ms));
}

static inline struct cluster_call *key_call(struct cluster_task *task, int operation,
                                            const char *key, int64_t timeout_ms)
{
    return cluster_key(task, KEY(.operation = operation, .key = key, .by = 1,
                                 .timeout_ms = timeout_ms));
}

static inline void expect_done(struct cluster_call *call, int code, uint64_t after_ms)
{
    uint64_t began_ms = sim_now_ms(call->task->cluster->sim);
    int rv = cluster_wait(call);

    if (rv != code)
        fail_msg("%s: %s", mu_err_name(rv), call->of.call.error.message);
    assert_int_equal(call->done_ms - began_ms, after_ms);
}

static inline void expect_failed(struct cluster_call *call, int code, const char *words)
{
    assert_int_equal(cluster_wait(call), code);
    assert_string_equal(call->of.call.error.message, words);
    assert_int_equal(call->of.call.error.code, code);
}

static inline void expect_key(struct cluster_task *task, const char *key,
                              const char *value)
{
    struct cluster_call *call = key_call(task, MU_KV_TRY_GET, key, 1000);

    assert_int_equal(cluster_wait(call), 0);
    assert_string_equal(call->of.key.value, value);
}

static inline int state_of(const struct cluster_task *task)
{
    return atomic_load(&task->member.agent.state);
}

/* What a task is told about another one. */
static inline void expect_shown(struct cluster_task *task, const char *tasks,
                                const char *shown)
{
    struct cluster_call *call = cluster_agent(
        task, CALL(.call = {.operation = MU__AGENT_TASKS, .timeout_ms = 1000},
                   .tasks = tasks, .what = MU__TASKS_STATES));

    assert_int_equal(cluster_wait(call), 0);
    expect_text(mu_value_at(call->of.agent.content, 0), "state", shown);
    mu_value_free(call->of.agent.content);
}

static inline struct cluster_call *register_with_all(struct cluster_task *task)
{
    return cluster_agent(task,
                         CALL(.call = {.operation = MU__AGENT_REGISTER, .timeout_ms = -1},
                              .barrier = true));
}

static inline struct cluster_call *fail_with(struct cluster_task *task, int operation,
                                             int code, const char *words)
{
    struct mu__agent_call call = {.call = {.operation = operation, .timeout_ms = 1000}};

    (void)mu_error_set(&call.failure, code, "%s", words);
    return cluster_agent(task, &call);
}

static inline const struct agent *agent_of(struct cluster_task *task)
{
    return mu__actor_state(task->member.kernel, (mu__pid){MU__NODE_SELF, MU__AGENT});
}

static inline void is_gone(struct mu__storage *base)
{
    sim_storage_crash((struct sim_storage *)base);
}

static inline struct cluster *begin_journal(struct sim_storage **ret_storage)
{
    struct cluster *cluster =
        cluster_new(1, &(struct cluster_options){
                           .hosts = "chief:0",
                           .workers = 2,
                           .coordination = {.store = &mu__store_journal},
                       });

    *ret_storage = sim_storage_new("store", 5);
    cluster->chief->store =
        (struct cluster_journal){&(*ret_storage)->base, NULL, is_gone, NULL, NULL};
    started(cluster);
    return cluster;
}

static inline void end_journal(struct cluster *cluster, struct sim_storage *storage)
{
    end(cluster);
    sim_storage_free(storage);
}

static inline struct cluster_call *meet(struct cluster_task *task, const char *name,
                                        const char *tasks, unsigned threads,
                                        int64_t timeout_ms)
{
    return cluster_agent(
        task, CALL(.call = {.operation = MU__AGENT_BARRIER, .timeout_ms = timeout_ms},
                   .name = name, .tasks = tasks, .threads = threads));
}

#endif
