/* Every allocation of a plan, and of the parts of a cluster, fails once: an error,
 * nothing written, nothing leaked. */
#include "resolver/spec/distribute_plan.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

static int setup(void **state)
{
    static const char json[] =
        "{\"chief\":[\"c:1\"],\"worker\":[\"w:1\",\"w:2\"],\"evaluator\":[\"e:1\"]}";
    mu_cluster *cluster = NULL;

    assert_int_equal(mu_cluster_parse(json, sizeof json - 1, "test", NULL, &cluster), 0);
    *state = cluster;
    return 0;
}

static int teardown(void **state)
{
    mu_cluster_free(*state);
    return 0;
}

TEST_WITH(test_plan, setup, teardown)
{
    const struct mu__plan_request request = {
        .mode = MU_MODE_STANDALONE,
        .cluster = *state,
        .between_graph = true,
    };
    bool failed = true;

    for (long n = 0; failed; n++) {
        struct mu__plan plan = {.warnings = 77};
        mu_error error = {0};
        int rv;

        fault_arm(n);
        rv = mu__plan_make(&request, &error, &plan);
        failed = fault_disarm();
        assert_int_equal(rv, failed ? -MU_ENOMEM : 0);
        assert_int_equal(error.code, rv);
        if (failed)
            assert_int_equal(plan.warnings, 77);
        else
            mu__plan_done(&plan);
        assert_true(failed || n >= 4); /* four calls: four allocations at least */
    }
}

TEST_WITH(test_lists, setup, teardown)
{
    const struct mu__plan plan = {.client = true};
    bool failed = true;

    for (long n = 0; failed; n++) {
        char *tasks;
        char *joining;

        fault_arm(n);
        tasks = mu__plan_tasks(*state);
        joining = mu__plan_joining(&plan, *state, "chief", 0);
        failed = fault_disarm();
        assert_int_equal(tasks == NULL || joining == NULL, failed);
        free(tasks);
        free(joining);
        assert_true(failed || n == 2);
    }
}

TEST_WITH(test_split, setup, teardown)
{
    bool failed = true;

    for (long n = 0; failed; n++) {
        mu_cluster *part;

        fault_arm(n);
        part = mu_cluster_split(*state, NULL);
        failed = fault_disarm();
        assert_int_equal(part == NULL, failed);
        mu_cluster_free(part);
        assert_true(failed || n >= 3);
    }
}

TEST_PROGRAM()
