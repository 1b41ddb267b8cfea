/* Barriers and waits of the coordination service while the cluster changes. */
#include "tests/cluster/specs.h"

static struct cluster_call *barrier(struct cluster_task *task, const char *name,
                                    const char *tasks)
{
    const struct mu__agent_call ask = {
        .call = {.operation = MU__AGENT_BARRIER, .timeout_ms = 5000},
        .name = name,
        .tasks = tasks,
    };

    return cluster_agent(task, &ask);
}

static void register_at(struct cluster_task *task)
{
    const struct mu__agent_call ask = {
        .call = {.operation = MU__AGENT_REGISTER, .timeout_ms = 5000}};

    assert_int_equal(cluster_wait(cluster_agent(task, &ask)), 0);
}

/* Two of three have come when the third is removed: they pass, at once. */
TEST_WITH(test_removed_during_barrier, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 2);
    struct cluster_call *all[2];
    struct cluster_call *named;

    register_at(cluster->chief);
    register_at(cluster->workers[0]);
    register_at(cluster->workers[1]);
    all[0] = barrier(cluster->chief, "all", "");
    all[1] = barrier(cluster->workers[0], "all", "");
    named = barrier(cluster->chief, "named", "chief:0,worker:1");
    run_for(cluster, 1000);
    assert_false(all[0]->done || all[1]->done || named->done);
    learn(cluster->chief, "worker", 1, NULL);
    run_for(cluster, 10);
    assert_true(all[0]->done && all[1]->done);
    assert_int_equal(all[0]->of.call.code, 0);
    assert_int_equal(all[1]->of.call.code, 0);
    assert_int_equal(cluster_wait(named), -MU_EUNAVAILABLE);
    assert_string_equal(named->of.call.error.message,
                        "barrier \"named\" names /job:worker/task:1, which was removed "
                        "from the cluster");
    end(cluster);
}

/* One that comes while others wait is waited for, too. */
TEST_WITH(test_added_during_barrier, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 1);
    struct cluster_task *late = cluster_add(cluster, "worker", 1, "late");
    struct cluster_call *all[3];

    register_at(cluster->chief);
    register_at(cluster->workers[0]);
    for (unsigned i = 0; i < 2; i++) {
        all[0] = barrier(cluster->chief, "all", "");
        all[1] = barrier(cluster->workers[0], "all", "");
        assert_int_equal(cluster_wait(all[0]), 0);
        assert_int_equal(cluster_wait(all[1]), 0);
    }
    all[0] = barrier(cluster->chief, "all", "");
    run_for(cluster, 100);
    learn(cluster->chief, "worker", 1, late->address);
    late->spec = cluster->chief->spec;
    all[1] = barrier(cluster->workers[0], "all", "");
    cluster_start(late);
    run_for(cluster, 1000);
    assert_false(all[0]->done || all[1]->done);
    register_at(late);
    all[2] = barrier(late, "all", "");
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(cluster_wait(all[i]), 0);
    end(cluster);
}

static void expect_together(struct cluster_task *const *tasks, unsigned count)
{
    struct cluster_call *calls[4];

    assert_true(count <= 4);
    for (unsigned i = 0; i < count; i++)
        calls[i] = barrier(tasks[i], "all", "");
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(cluster_wait(calls[i]), 0);
}

/* One that comes has not missed what was passed before, nor has one that was away: they
 * go through the next one, also where tasks whose counts are wrong do not. */
TEST_WITH(test_added_after_barriers, NULL, free_specs)
{
    struct cluster *cluster =
        BEGIN_SERVICE(.workers = 2, .coordination.recoverable = "none");
    struct cluster_task *late = cluster_add(cluster, "worker", 2, "late");
    struct cluster_task *tasks[] = {cluster->chief, cluster->workers[0],
                                    cluster->workers[1], late};

    for (unsigned i = 0; i < 3; i++)
        register_at(tasks[i]);
    expect_together(tasks, 3);
    learn(cluster->chief, "worker", 1, NULL);
    expect_together(tasks, 2);
    expect_together(tasks, 2);
    learn(cluster->chief, "worker", 1, cluster->workers[1]->address);
    learn(cluster->chief, "worker", 2, late->address);
    late->spec = cluster->chief->spec;
    cluster_start(late);
    register_at(cluster->workers[1]);
    register_at(late);
    expect_together(tasks, 4);
    expect_together(tasks, 4);
    end(cluster);
}

/* One that names all there are does not follow the cluster: a task that comes is not
 * waited for. */
TEST_WITH(test_added_during_named_barrier, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 1);
    struct cluster_call *all[2];

    register_at(cluster->chief);
    register_at(cluster->workers[0]);
    all[0] = barrier(cluster->chief, "named", "chief:0,worker:0");
    run_for(cluster, 100);
    learn(cluster->chief, "worker", 1, "tcp://late:1");
    run_for(cluster, 100);
    all[1] = barrier(cluster->workers[0], "named", "chief:0,worker:0");
    assert_int_equal(cluster_wait(all[0]), 0);
    assert_int_equal(cluster_wait(all[1]), 0);
    end(cluster);
}

/* Who waits until a task is connected hears at once that it never will be. */
TEST_WITH(test_removed_while_waited_for, NULL, free_specs)
{
    struct cluster *cluster = MAKE(.workers = 3, .hosts = "chief:0");
    struct mu__agent_call ask = {
        .call = {.operation = MU__AGENT_TASKS, .timeout_ms = 5000},
        .what = MU__TASKS_WAIT,
        .tasks = "worker:1-2",
    };
    struct cluster_call *named;
    struct cluster_call *others;

    cluster_start(cluster->chief);
    cluster_start(cluster->workers[0]);
    register_at(cluster->chief);
    register_at(cluster->workers[0]);
    named = cluster_agent(cluster->chief, &ask);
    ask.tasks = "worker:0,worker:2";
    others = cluster_agent(cluster->chief, &ask);
    run_for(cluster, 100);
    learn(cluster->chief, "worker", 1, NULL);
    run_for(cluster, 10);
    assert_true(named->done && !others->done);
    assert_int_equal(named->of.call.code, -MU_ENOTFOUND);
    assert_string_equal(named->of.call.error.message,
                        "waited for /job:worker/task:1, which was removed from the "
                        "cluster");
    assert_string_equal(named->of.call.error.task, "/job:worker/task:1");
    cluster_start(cluster->workers[2]);
    assert_int_equal(cluster_wait(others), 0);
    mu_value_free(others->of.agent.content);
    end(cluster);
}

/* Registering with all others does not wait for one that was removed. */
TEST_WITH(test_removed_while_registering, NULL, free_specs)
{
    const struct mu__agent_call ask = {
        .call = {.operation = MU__AGENT_REGISTER, .timeout_ms = 5000}, .barrier = true};
    struct cluster *cluster = MAKE(.workers = 2, .hosts = "chief:0");
    struct cluster_call *calls[2];

    cluster_start(cluster->chief);
    cluster_start(cluster->workers[0]);
    calls[0] = cluster_agent(cluster->chief, &ask);
    calls[1] = cluster_agent(cluster->workers[0], &ask);
    run_for(cluster, 1000);
    assert_false(calls[0]->done || calls[1]->done);
    learn(cluster->chief, "worker", 1, NULL);
    run_for(cluster, 50);
    assert_true(calls[0]->done && calls[1]->done);
    assert_int_equal(calls[0]->of.call.code, 0);
    assert_int_equal(calls[1]->of.call.code, 0);
    end(cluster);
}

/* Tasks that leave together do not wait for one that was removed; one that came shares
 * their fate, and is waited for. */
TEST_WITH(test_removed_while_leaving, NULL, free_specs)
{
    const struct mu__agent_call ask = {
        .call = {.operation = MU__AGENT_LEAVE, .timeout_ms = 5000}};
    struct cluster *cluster =
        BEGIN_SERVICE(.workers = 2, .coordination.recoverable = "none",
                      .coordination.leave_ms = 4000);
    struct cluster_call *calls[2];

    register_at(cluster->chief);
    register_at(cluster->workers[0]);
    register_at(cluster->workers[1]);
    calls[0] = cluster_agent(cluster->chief, &ask);
    run_for(cluster, 100);
    learn(cluster->chief, "worker", 1, NULL);
    run_for(cluster, 100);
    assert_false(calls[0]->done);
    learn(cluster->chief, "worker", 7, "tcp://late:1");
    calls[1] = cluster_agent(cluster->workers[0], &ask);
    run_for(cluster, 100);
    assert_false(calls[0]->done || calls[1]->done);
    learn(cluster->chief, "worker", 7, NULL);
    run_for(cluster, 100);
    assert_true(calls[0]->done && calls[1]->done);
    assert_int_equal(calls[0]->of.call.code, 0);
    assert_int_equal(calls[1]->of.call.code, 0);
    end(cluster);
}

/* It is no error of anybody that a task was removed, where tasks share their fate. */
TEST_WITH(test_removed_is_no_failure, NULL, free_specs)
{
    struct cluster *cluster =
        BEGIN_SERVICE(.workers = 2, .coordination.recoverable = "none");
    struct cluster_call *all[2];

    register_at(cluster->chief);
    register_at(cluster->workers[0]);
    register_at(cluster->workers[1]);
    learn(cluster->chief, "worker", 1, NULL);
    run_for(cluster, 5000);
    all[0] = barrier(cluster->chief, "all", "");
    all[1] = barrier(cluster->workers[0], "all", "");
    assert_int_equal(cluster_wait(all[0]), 0);
    assert_int_equal(cluster_wait(all[1]), 0);
    end(cluster);
}

TEST_PROGRAM()
