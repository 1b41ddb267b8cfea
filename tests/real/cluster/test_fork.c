/* A process forks while it has a node: in the child every call on it comes back at once
 * and says why, the parent's node goes on, and the child may open nodes of its own. */
#include "tests/real/nodes.h"

#include <muster/coordination.h>
#include <muster/variable.h>

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { CHILD_S = 30 };

static const char words[] = "this process was forked after /job:chief/task:0 was opened";

static int add_one(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_int(1));
    return 0;
}

static mu_coordinator *open_both(struct nodes *nodes, mu_node **ret_chief)
{
    mu_node *worker;

    nodes_init(nodes, 1, 1);
    worker = nodes_open(nodes, "worker", 0);
    assert_int_equal(mu_node_register_function(worker, "add_one", add_one, NULL, 0), 0);
    assert_int_equal(mu_node_serve(worker), 0);
    *ret_chief = nodes_open(nodes, "chief", 0);
    return nodes_coordinator(*ret_chief);
}

static void expect_runs(mu_coordinator *coordinator, int count)
{
    mu_error error = {0};

    for (int i = 0; i < count; i++)
        assert_int_equal(mu_coordinator_schedule(coordinator, "add_one", NULL, SOON_MS,
                                                 &error, NULL),
                         0);
    assert_int_equal(mu_coordinator_join(coordinator, SOON_MS, &error), 0);
}

/* In the child nothing of cmocka is used: its exit code is the number of the first check
 * that does not hold. SIGALRM ends one that waits. */
static void expect_in_child(int (*child)(mu_node *chief, mu_coordinator *coordinator),
                            mu_node *chief, mu_coordinator *coordinator)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)alarm(CHILD_S);
        _exit(child(chief, coordinator));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), 0);
}

static bool is_closed(int code, const mu_error *error)
{
    return code == -MU_ECLOSED && strstr(error->message, words) != NULL;
}

static int call_everything(mu_node *chief, mu_coordinator *coordinator)
{
    mu_error error = {0};
    mu_value *value = NULL;
    mu_variable *variable = NULL;
    mu_variable_spec spec = {.name = "v", .dtype = MU_F32};

    if (!is_closed(mu_coordinator_schedule(coordinator, "add_one", NULL, -1, &error,
                                           NULL),
                   &error))
        return 1;
    if (!is_closed(mu_coordinator_join(coordinator, -1, &error), &error))
        return 2;
    if (!is_closed(mu_node_status(chief, -1, &error, &value), &error))
        return 3;
    if (!is_closed(mu_node_wait_job(chief, -1, &error), &error))
        return 4;
    if (!is_closed(mu_node_finish_job(chief, 0, NULL, -1, &error), &error))
        return 5;
    if (!is_closed(mu_agent_register(chief, 1, -1, &error), &error))
        return 6;
    if (!is_closed(mu_variable_open(chief, &spec, -1, &error, &variable), &error))
        return 7;
    mu_coordinator_close(coordinator); /* which leaves it to the parent */
    if (mu_node_close(chief, -1, &error) != -MU_EPRECONDITION ||
        strstr(error.message, words) == NULL)
        return 8;
    return 0;
}

LISTED_TEST(test_calls_come_back)
{
    struct nodes nodes;
    mu_node *chief;
    mu_coordinator *coordinator = open_both(&nodes, &chief);

    expect_runs(coordinator, 10);
    expect_in_child(call_everything, chief, coordinator);
    expect_runs(coordinator, 10);
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
}

#ifndef __SANITIZE_THREAD__

enum { THREADS = 16 };

static void *ask_status(void *arg)
{
    mu_error error = {0};
    mu_value *value = NULL;

    return is_closed(mu_node_status(arg, -1, &error, &value), &error) ? NULL : arg;
}

/* Threads of the child get the stacks, and with them the numbers, that the parent's
 * threads had, its loop among them. */
static int ask_on_threads(mu_node *chief, mu_coordinator *coordinator)
{
    pthread_t threads[THREADS];
    int failures = 0;

    (void)coordinator;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, ask_status, chief) != 0)
            return THREADS + 1;
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;

        (void)pthread_join(threads[i], &failed);
        failures += failed != NULL;
    }
    return failures;
}

LISTED_TEST(test_calls_on_new_threads_of_the_child_come_back)
{
    struct nodes nodes;
    mu_node *chief;
    mu_coordinator *coordinator = open_both(&nodes, &chief);

    expect_runs(coordinator, 10);
    expect_in_child(ask_on_threads, chief, coordinator);
    expect_runs(coordinator, 10);
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
}

/* A small cluster of the child's own: it ends with 0 when its closures have run. */
static int open_own(mu_node *chief, mu_coordinator *coordinator)
{
    static struct nodes own;
    mu_error error = {0};
    mu_node *own_chief;
    mu_coordinator *own_coordinator = open_both(&own, &own_chief);

    (void)chief;
    (void)coordinator;
    for (int i = 0; i < 10; i++)
        if (mu_coordinator_schedule(own_coordinator, "add_one", NULL, SOON_MS, &error,
                                    NULL) != 0)
            return 1;
    if (mu_coordinator_join(own_coordinator, SOON_MS, &error) != 0)
        return 2;
    mu_coordinator_close(own_coordinator);
    for (int i = 0; i < own.open_count; i++)
        if (mu_node_close(own.open[i], SOON_MS, &error) != 0)
            return 3;
    return 0;
}

LISTED_TEST(test_own_nodes)
{
    struct nodes nodes;
    mu_node *chief;
    mu_coordinator *coordinator = open_both(&nodes, &chief);

    expect_runs(coordinator, 10);
    expect_in_child(open_own, chief, coordinator);
    expect_runs(coordinator, 10);
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_come_back),
#ifndef __SANITIZE_THREAD__ /* which has no threads in a child of threads */
        cmocka_unit_test(test_calls_on_new_threads_of_the_child_come_back),
        cmocka_unit_test(test_own_nodes),
#endif
    };

    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
