/* A task that leaves, or is reset, while it does not reach its host, and registers again
 * before the host has missed it: what it had before is not there. In a whole cluster with
 * the real service, in virtual time. */
#include "actors/agent/internal.h"
#include "tests/support/story.h"

#define CALL(kind, limit) \
    (&(struct mu__agent_call){.call = {.operation = (kind), .timeout_ms = (limit)}})

/* AWAY_MS: longer than links wait, and shorter than it takes until a task is lost. */
enum { BEGIN_MS = 200, AWAY_MS = 700 };

static struct cluster_call *ask_key(struct cluster_task *task, int operation)
{
    return cluster_key(task,
                       &(mu_kv_request){.operation = operation,
                                        .flags = operation == MU_KV_PUT ? MU_KV_LEASE : 0,
                                        .key = "lease",
                                        .value = "mine",
                                        .size = 4,
                                        .timeout_ms = 3000});
}

/* The worker has a lease, and its host stands still. */
static struct cluster *begin(void)
{
    struct cluster *cluster =
        cluster_new(1, &(struct cluster_options){.hosts = "chief:0",
                                                 .workers = 2,
                                                 .coordination = {.reconnect_ms = 1000}});

    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    run_until(cluster, BEGIN_MS);
    assert_int_equal(cluster_wait(ask_key(cluster->workers[0], MU_KV_PUT)), 0);
    sim_pause(cluster->chief->node, AWAY_MS);
    return cluster;
}

static void expect_no_lease(struct cluster *cluster)
{
    struct cluster_task *worker = cluster->workers[0];

    assert_int_equal(cluster_wait(cluster_agent(worker, CALL(MU__AGENT_REGISTER, 5000))),
                     0);
    assert_int_equal(cluster_wait(ask_key(cluster->workers[1], MU_KV_TRY_GET)),
                     -MU_ENOTFOUND);
    assert_int_equal(cluster_wait(ask_key(worker, MU_KV_PUT)), 0);
    run_for(cluster, 5000);
    assert_int_equal(cluster_wait(ask_key(cluster->workers[1], MU_KV_TRY_GET)), 0);
}

TEST(test_leaves_while_the_host_stands_still)
{
    struct cluster *cluster = begin();

    run_for(cluster, 550);
    assert_int_equal(
        cluster_wait(cluster_agent(cluster->workers[0], CALL(MU__AGENT_LEAVE, 50))),
        -MU_EDEADLINE);
    expect_no_lease(cluster);
    end(cluster);
}

/* And once more, without having been registered between. */
TEST(test_leaves_twice_while_the_host_stands_still)
{
    struct cluster *cluster = begin();
    struct cluster_task *worker = cluster->workers[0];

    run_for(cluster, 550);
    assert_int_equal(cluster_wait(cluster_agent(worker, CALL(MU__AGENT_LEAVE, 50))),
                     -MU_EDEADLINE);
    assert_int_equal(cluster_wait(cluster_agent(worker, CALL(MU__AGENT_REGISTER, 20))),
                     -MU_EDEADLINE);
    assert_int_equal(cluster_wait(cluster_agent(worker, CALL(MU__AGENT_LEAVE, 50))), 0);
    expect_no_lease(cluster);
    end(cluster);
}

TEST(test_is_reset_while_the_host_stands_still)
{
    struct cluster *cluster = begin();
    struct cluster_task *worker = cluster->workers[0];
    struct mu__agent_call *wrong = CALL(MU__AGENT_SET_ERROR, -1);

    (void)mu_error_set(&wrong->failure, -MU_EDATALOSS, "bad disk");
    run_for(cluster, 550);
    assert_int_equal(cluster_wait(cluster_agent(worker, wrong)), 0);
    assert_int_equal(cluster_wait(cluster_agent(worker, CALL(MU__AGENT_RESET, 50))), 0);
    expect_no_lease(cluster);
    end(cluster);
}

TEST_PROGRAM()
