/* What the coordinator does with arguments that make no sense, and what programs of
 * several threads hear. */
#include "tests/real/nodes.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { JOINERS = 4, TIMEOUT_MS = 30000 };

static int no_op(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    return 0;
}

static int fail_late(mu_run *run, void *user)
{
    atomic_bool *go = user;

    while (!atomic_load(go))
        nodes_pause();
    return mu_run_fail(run, -MU_EINVALID, "no good: \xff\xfe%s", "");
}

static mu_node *open_worker(struct nodes *nodes, atomic_bool *go)
{
    mu_node *worker = nodes_open(nodes, "worker", 0);

    assert_int_equal(mu_node_register_function(worker, "no_op", no_op, NULL, 0), 0);
    assert_int_equal(mu_node_register_function(worker, "fail_late", fail_late, go, 0), 0);
    assert_int_equal(mu_node_serve(worker), 0);
    return worker;
}

static bool is_utf8(const char *text)
{
    mu_value *value = mu_value_string(text);
    bool is = value != NULL;

    mu_value_free(value);
    return is;
}

TEST(test_arguments_that_make_no_sense)
{
    static struct nodes nodes;
    mu_coordinator *coordinator;
    mu_remote_value *value = (mu_remote_value *)(void *)&nodes;
    mu_closure_options options;
    mu_error error = {0};
    int done;

    mu_closure_options_init(&options);
    nodes_init(&nodes, 1, 0);
    coordinator = nodes_coordinator(nodes_open(&nodes, "chief", 0));
    assert_int_equal(mu_coordinator_open(NULL, 0, &error, &coordinator), -MU_EINVALID);
    assert_int_equal(mu_coordinator_schedule(NULL, "f", NULL, 0, &error, &value),
                     -MU_EINVALID);
    assert_null(value);
    value = (mu_remote_value *)(void *)&nodes;
    assert_int_equal(mu_coordinator_schedule(coordinator, NULL, NULL, 0, &error, &value),
                     -MU_EINVALID);
    assert_null(value);
    assert_int_equal(mu_coordinator_schedule(coordinator, "f\xff", NULL, 0, &error, NULL),
                     -MU_EINVALID);
    assert_string_equal(error.message, "a function's name is UTF-8, \"f?\" is not");
    assert_int_equal(mu_coordinator_schedule(coordinator, "", NULL, 0, NULL, NULL),
                     -MU_EINVALID);
    options.priority = 99;
    value = (mu_remote_value *)(void *)&nodes;
    assert_int_equal(mu_coordinator_schedule_with(coordinator, "f", NULL, &options, 0,
                                                  &error, &value),
                     -MU_EINVALID);
    assert_null(value);
    assert_int_equal(mu_coordinator_join(NULL, 0, &error), -MU_EINVALID);
    assert_int_equal(mu_coordinator_wait_for_chief(NULL, 0, &error), -MU_EINVALID);
    assert_int_equal(mu_coordinator_done(NULL, &error, &done), -MU_EINVALID);
    assert_int_equal(mu_coordinator_done(coordinator, &error, NULL), -MU_EINVALID);
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
}

struct joiner {
    mu_coordinator *coordinator;
    atomic_int *begun;
    int code;
    mu_error error;
};

static void *join_all(void *arg)
{
    struct joiner *joiner = arg;

    atomic_fetch_add(joiner->begun, 1);
    joiner->code = mu_coordinator_join(joiner->coordinator, TIMEOUT_MS, &joiner->error);
    return NULL;
}

/* A join that is over at its limit says that an error is pending; and each of several
 * threads that have joined hears of it. */
TEST(test_every_joiner_hears_of_the_error)
{
    static struct nodes nodes;
    struct joiner joiners[JOINERS];
    pthread_t threads[JOINERS];
    mu_coordinator *coordinator;
    mu_error error = {0};
    atomic_int begun;
    atomic_bool go;

    atomic_init(&begun, 0);
    atomic_init(&go, false);
    nodes_init(&nodes, 1, 0);
    (void)open_worker(&nodes, &go);
    coordinator = nodes_coordinator(nodes_open(&nodes, "chief", 0));
    assert_int_equal(
        mu_coordinator_schedule(coordinator, "fail_late", NULL, 0, &error, NULL), 0);
    for (int i = 0; i < JOINERS; i++) {
        joiners[i] = (struct joiner){.coordinator = coordinator, .begun = &begun};
        assert_int_equal(pthread_create(&threads[i], NULL, join_all, &joiners[i]), 0);
    }
    while (atomic_load(&begun) < JOINERS)
        nodes_pause();
    /* Behind the calls of those that have begun, or nearly so: this one waits as well. */
    assert_int_equal(mu_coordinator_join(coordinator, 300, &error), -MU_EDEADLINE);
    atomic_store(&go, true);
    for (int i = 0; i < JOINERS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(joiners[i].code, -MU_EINVALID);
        assert_non_null(strstr(joiners[i].error.message, "no good: ??"));
        assert_true(is_utf8(joiners[i].error.message));
    }
    assert_int_equal(mu_coordinator_join(coordinator, TIMEOUT_MS, &error), 0);
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
}

TEST(test_functions_are_registered_before_serving)
{
    static struct nodes nodes;
    atomic_bool go;

    atomic_init(&go, true);
    nodes_init(&nodes, 1, 0);
    assert_int_equal(mu_node_register_function(open_worker(&nodes, &go), "late", no_op,
                                               NULL, 0),
                     -MU_EPRECONDITION);
    nodes_done(&nodes);
}

TEST_PROGRAM()
