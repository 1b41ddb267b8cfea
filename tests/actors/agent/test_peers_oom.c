/* Memory runs out while nodes are asked whom they reach: who has none does not answer, or
 * says so, and once there is memory again all is told. */
#include "tests/support/alloc_failure.h"
#include "tests/support/story.h"
#include "tests/support/wrap_malloc.h"

static bool malloc_fails(void)
{
    return alloc_failure_due();
}

static void expect_whole(struct cluster *cluster)
{
    struct cluster_call *call = cluster_peers(cluster->chief, MU__PEERS_ALL, 2000);

    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(mu_value_count(call->of.peers.found), 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(mu_value_count(mu_value_find(mu_value_at(call->of.peers.found, i),
                                                 "peers")) > 0);
    mu_value_free(call->of.peers.found);
}

TEST(test_alloc_failures)
{
    unsigned failed = 0;

    alloc_failure.percent = 10;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct cluster *cluster = BEGIN(.workers = 1, .servers = 1, .allocs_fail = true);
        struct cluster_task *const victims[] = {cluster->chief, cluster->workers[0]};

        alloc_failure.random = sim_stream(seed, 7);
        alloc_failure_begin(victims[seed % 2]);
        for (int i = 0; i < 4; i++) {
            struct cluster_call *call = cluster_peers(
                cluster->chief, i % 2 == 0 ? MU__PEERS_ALL : MU__PEERS_OWN, 300);
            int rv = cluster_wait(call);

            assert_true(rv == 0 || rv == -MU_ENOMEM);
            failed += rv != 0;
            if (rv == 0)
                mu_value_free(call->of.peers.found);
        }
        alloc_failure_end();
        run_for(cluster, 5000);
        expect_whole(cluster);
        end(cluster);
    }
    assert_true(alloc_failure.failed > 100);
    assert_true(failed > 10);
}

TEST_PROGRAM()
