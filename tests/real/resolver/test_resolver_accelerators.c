/* Accelerators, counted in what real tasks tell about their machines. */
#define _GNU_SOURCE /* unshare */

#include "tests/real/machine.h"

#include "node/devices.h"

#include <muster/resolver.h>

static mu_error error;

static int my_resolve(void *user, int64_t timeout_ms, mu_error *ret_error,
                      mu_resolution *ret_resolution)
{
    const struct nodes *nodes = user;

    (void)timeout_ms;
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
    if (mu_resolver_accelerators(resolver, node, type, -1, SOON_MS, &error, ret_counts) !=
        0)
        fail_msg("%s", error.message);
}

static void put_expected(mu_value *counts, const char *kind, const mu_value *list)
{
    if (mu_value_count(list) > 0)
        assert_int_equal(
            mu_value_set(counts, kind, mu_value_int((int64_t)mu_value_count(list))), 0);
}

/* However many cards this machine has: each task says the same. */
static void expect_own(const mu_value *counts)
{
    mu_value *devices = mu__devices_read("");
    mu_value *expected = mu_value_map();

    put_expected(expected, "GPU", mu_value_find(devices, "gpus"));
    put_expected(expected, "TPU", mu_value_find(devices, "tpus"));
    if (mu_value_count(expected) == 0)
        assert_int_equal(mu_value_set(expected, "TPU", mu_value_int(0)), 0);
    assert_true(mu_value_equal(counts, expected));
    mu_value_free(devices);
    mu_value_free(expected);
}

LISTED_TEST(test_tasks_tell)
{
    struct nodes nodes;
    mu_resolver_kind kind = {.name = "mine", .user = &nodes, .resolve = my_resolve};
    mu_resolver *resolver;
    mu_value *counts;
    mu_value *all;
    mu_node *chief;

    nodes_init(&nodes, 1, 0);
    chief = nodes_open(&nodes, "chief", 0);
    assert_int_equal(mu_resolver_register(&kind, &error), 0);
    assert_int_equal(mu_resolver_new("mine", &error, &resolver), 0);

    /* The worker is not there, and nobody asks for it: it is about this task. */
    count(resolver, chief, NULL, &all);
    mu_value_free(all);
    assert_int_equal(mu_resolver_accelerators(resolver, chief, "worker", -1, 300, &error,
                                              &counts),
                     -MU_EDEADLINE);
    assert_non_null(strstr(error.message,
                           "/job:worker/task:0 has not reported its devices yet"));

    (void)nodes_open(&nodes, "worker", 0);
    count(resolver, chief, "worker", &counts);
    count(resolver, chief, NULL, &all);
    assert_true(mu_value_equal(counts, all));
    expect_own(counts);
    mu_value_free(counts);
    mu_value_free(all);
    mu_resolver_free(resolver);
    assert_int_equal(mu_resolver_unregister("mine", &error), 0);
    nodes_done(&nodes);
}

/* ---- A machine with TPUs ---- */

static void put_line(const char *folder, const char *name, const char *line)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(line, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put_chip(const char *slot)
{
    char folder[96];

    (void)snprintf(folder, sizeof folder, "/sys/bus/pci/devices/%s", slot);
    assert_int_equal(mkdir(folder, 0755), 0);
    put_line(folder, "vendor", "0x1ae0\n");
    put_line(folder, "device", "0x0027\n");
    put_line(folder, "subsystem_device", "0x004e\n");
}

/* A bus of the test's own. Two chips of v2 are four devices. */
LISTED_TEST(test_tpus)
{
    mu_value *devices;
    const mu_value *tpus;
    int64_t number = 0;
    int64_t whole;

    needs_skip_test(machine_make());
    if (mount("none", "/sys/bus/pci/devices", "tmpfs", 0, NULL) != 0)
        needs_skip_test("/sys/bus/pci/devices cannot be replaced");
    put_chip("0000:00:05.0");
    put_chip("0000:00:06.0");
    devices = mu__devices_read("");
    tpus = mu_value_find(devices, "tpus");
    assert_int_equal(mu_value_count(tpus), 4);
    (void)mu_value_get_int(mu_value_find(mu_value_at(tpus, 3), "memory_bytes"), &number);
    whole = INT64_C(8) << 30;
    assert_int_equal(number, whole);
    mu_value_free(devices);
    test_tasks_tell(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_tell),
        cmocka_unit_test(test_tpus), /* the last: there is no way back */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
