/* Accelerators, counted in what real tasks tell about their machines. */
#include "nodes.h"

#include <muster/resolver.h>

static mu_error error;

static int my_resolve(void *user, int64_t limit_ms, mu_error *ret_error,
                      mu_resolution *ret_resolution)
{
    const struct nodes *nodes = user;

    (void)limit_ms;
    ret_resolution->cluster = mu_cluster_copy(nodes->cluster);
    if (ret_resolution->cluster == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    (void)snprintf(ret_resolution->task_type, sizeof ret_resolution->task_type, "chief");
    ret_resolution->task_index = 0;
    (void)snprintf(ret_resolution->accelerator, sizeof ret_resolution->accelerator,
                   "TPU");
    ret_resolution->accelerators = 8;
    return 0;
}

static void count(mu_resolver *resolver, mu_node *node, const char *type,
                  mu_value **ret_counts)
{
    if (mu_resolver_accelerators(resolver, node, type, -1, SOON_MS, &error,
                                 ret_counts) != 0)
        fail_msg("%s", error.message);
}

/* However many cards this machine has: each task says the same. */
static void test_tasks_tell(void **state)
{
    struct nodes nodes;
    mu_resolver_kind kind = {.name = "mine", .user = &nodes, .resolve = my_resolve};
    mu_resolver *resolver;
    mu_value *counts;
    mu_value *all;
    mu_node *chief;

    (void)state;
    nodes_init(&nodes, 1, 0);
    chief = nodes_open(&nodes, "chief", 0);
    assert_int_equal(mu_resolver_register(&kind, &error), 0);
    assert_int_equal(mu_resolver_new("mine", &error, &resolver), 0);

    /* The worker is not there, and nobody asks for it: it is about this task. */
    count(resolver, chief, NULL, &all);
    mu_value_free(all);
    assert_int_equal(
        mu_resolver_accelerators(resolver, chief, "worker", -1, 300, &error, &counts),
        -MU_EDEADLINE);
    assert_non_null(
        strstr(error.message, "/job:worker/task:0 has not told yet which devices"));

    (void)nodes_open(&nodes, "worker", 0);
    count(resolver, chief, "worker", &counts);
    count(resolver, chief, NULL, &all);
    assert_int_equal(mu_value_count(counts), 1);
    assert_true(mu_value_equal(counts, all));
    if (mu_value_find(counts, "GPU") == NULL) {
        int64_t number = -1;

        assert_int_equal(mu_value_get_int(mu_value_find(counts, "TPU"), &number), 0);
        assert_int_equal(number, 0);
    }
    mu_value_free(counts);
    mu_value_free(all);
    mu_resolver_free(resolver);
    assert_int_equal(mu_resolver_unregister("mine", &error), 0);
    nodes_done(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_tell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
