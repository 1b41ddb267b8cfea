/* The distribute coordinator over real nodes: independent tasks, how they fail, and how
 * they find each other. Each task is a thread here, with a node of its own. */
#include "tests/real/coordination/distribute_tasks.h"

/* ---- independent ---- */

TEST_ON(test_between_graph, struct world *world, setup, teardown)
{
    struct process *chief;

    make_cluster(world, 1, 2, 1, 1);
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    run_all(world);
    check_fine(world);
    assert_int_equal(atomic_load(&world->calls), 3);
    assert_int_equal(atomic_load(&world->rounds), 3 * ROUNDS);
    assert_int_equal(atomic_load(&world->evaluated), 1);
    chief = find(world, "chief", 0);
    assert_int_equal(mu_value_count(chief->results), 4);
    assert_int_equal(number_of(chief, "/job:chief/task:0", "value"), 100);
    assert_int_equal(number_of(chief, "/job:worker/task:0", "value"), 100);
    assert_int_equal(number_of(chief, "/job:worker/task:1", "value"), 101);
    assert_string_equal(text_of(chief, "/job:evaluator/task:0", "value"), "good");
    assert_int_equal(mu_value_count(find(world, "worker", 1)->results), 1);
    assert_int_equal(number_of(find(world, "worker", 1), "/job:worker/task:1", "value"),
                     101);
    assert_null(find(world, "ps", 0)->results);
}

TEST_ON(test_in_graph, struct world *world, setup, teardown)
{
    make_cluster(world, 1, 1, 1, 0);
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_default());
    run_all(world);
    check_fine(world);
    assert_int_equal(atomic_load(&world->calls), 1);
    assert_int_equal(number_of(find(world, "chief", 0), "worker_fn", "value"), 99);
    assert_null(find(world, "worker", 0)->results);
}

/* Worker 0 leads where there is no chief, and servers hear of the end all the same. */
TEST_ON(test_without_chief, struct world *world, setup, teardown)
{
    make_cluster(world, 0, 2, 1, 0);
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    run_all(world);
    check_fine(world);
    assert_int_equal(atomic_load(&world->calls), 2);
    assert_int_equal(mu_value_count(find(world, "worker", 0)->results), 2);
    assert_int_equal(number_of(find(world, "worker", 0), "/job:worker/task:1", "value"),
                     101);
}

/* The others are at the barrier, without a limit, when worker 1 fails; they get its
 * error, and the servers hear what the job came to. */
TEST_ON(test_failure_at_the_barrier, struct world *world, setup, teardown)
{
    make_cluster(world, 1, 2, 1, 0);
    world->fails = "/job:worker/task:1";
    world->timeout_ms = -1;
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    run_all(world);
    for (int i = 0; i < world->count; i++) {
        const struct process *p = &world->processes[i];

        if (p->rv != -MU_EDATALOSS)
            fail_msg("%s:%d: %d %s", p->type, p->index, p->rv, p->error.message);
        assert_string_equal(p->error.message, "/job:worker/task:1 lost it");
        if (strcmp(p->type, "ps") != 0)
            assert_string_equal(p->error.task, "/job:worker/task:1");
    }
    assert_int_equal(number_of(find(world, "chief", 0), "/job:worker/task:0", "code"),
                     -MU_EDATALOSS);
}

/* The same when it ends well, a worker or the chief: it does not come, and nobody waits
 * for it for ever. */
TEST_ON(test_end_before_the_barrier, struct world *world, setup, teardown)
{
    static const char *const tasks[] = {"/job:worker/task:1", "/job:chief/task:0"};

    make_cluster(world, 1, 2, 0, 0);
    world->timeout_ms = -1;
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    for (size_t i = 0; i < 2; i++) {
        char expected[160];

        world->returns = tasks[i];
        run_all(world);
        (void)snprintf(expected, sizeof expected,
                       "%s has ended, and does not come to the barrier of chief and "
                       "workers",
                       tasks[i]);
        for (int j = 0; j < world->count; j++) {
            struct process *p = &world->processes[j];
            char name[64];

            (void)snprintf(name, sizeof name, "/job:%s/task:%d", p->type, p->index);
            if (strcmp(name, tasks[i]) != 0 || strcmp(p->type, "chief") == 0) {
                assert_int_equal(p->rv, -MU_EINTERNAL);
                assert_string_equal(p->error.message, expected);
                assert_string_equal(p->error.task, tasks[i]);
            }
            mu_value_free(p->results);
            p->results = NULL;
        }
    }
}

TEST_ON(test_chief_fails, struct world *world, setup, teardown)
{
    make_cluster(world, 1, 1, 0, 0);
    world->fails = "/job:chief/task:0";
    world->timeout_ms = -1;
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    run_all(world);
    assert_int_equal(find(world, "chief", 0)->rv, -MU_EDATALOSS);
    assert_int_equal(find(world, "worker", 0)->rv, -MU_EDATALOSS);
    assert_string_equal(find(world, "worker", 0)->error.task, "/job:chief/task:0");
    assert_int_equal(number_of(find(world, "chief", 0), "/job:worker/task:0", "code"),
                     -MU_EDATALOSS);
}

TEST_ON(test_large_results, struct world *world, setup, teardown)
{
    struct process *chief;

    make_cluster(world, 1, 1, 0, 0);
    world->large = true;
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    run_all(world);
    chief = find(world, "chief", 0);
    assert_int_equal(chief->rv, -MU_EEXHAUSTED);
    assert_int_equal(number_of(chief, "/job:chief/task:0", "code"), 0);
    assert_non_null(strstr(text_of(chief, "/job:worker/task:0", "message"),
                           "at most 1048576 travel"));
    assert_int_equal(find(world, "worker", 0)->rv, 0);
}

/* A worker that never was there is not waited for longer than the limit. */
TEST_ON(test_missing_worker, struct world *world, setup, teardown)
{
    struct process *chief;

    make_cluster(world, 1, 1, 0, 0);
    world->timeout_ms = 300;
    chief = add(world, MU_MODE_INDEPENDENT, "chief", 0);
    chief->options.end_timeout_ms = 700;
    run_all(world);
    assert_int_equal(chief->rv, -MU_EDEADLINE);
    if (strstr(chief->error.message, "/job:worker/task:0") == NULL)
        fail_msg("%s", chief->error.message);
    assert_int_equal(number_of(chief, "/job:worker/task:0", "code"), -MU_EUNAVAILABLE);
    assert_string_equal(text_of(chief, "/job:worker/task:0", "message"),
                        "no result of /job:worker/task:0: it was away for 700 ms");
}

/* ---- servers of somebody else ---- */

static int has_no_node(mu_context *c, void *user)
{
    mu_error error = {0};
    mu_node *node = NULL;

    (void)user;
    if (mu_context_node(c, &error, &node) != -MU_EPRECONDITION ||
        mu_context_has_barrier(c))
        return mu_context_fail(c, -MU_EINTERNAL, "there is a node");
    mu_context_return(c, mu_value_string(error.message));
    return 0;
}

TEST_ON(test_google, struct world *world, setup, teardown)
{
    struct process *server;

    make_cluster(world, 1, 0, 1, 0);
    add(world, MU_MODE_INDEPENDENT, "chief", 0)->options.worker = has_no_node;
    world->processes[0].options.environment = "google";
    server = add(world, MU_MODE_INDEPENDENT, "ps", 0);
    server->options.environment = "google";
    server->options.join_timeout_ms = 100;
    run_all(world);
    assert_int_equal(world->processes[0].rv, 0);
    assert_string_equal(text_of(&world->processes[0], "/job:chief/task:0", "value"),
                        "/job:chief/task:0 has no node: its environment starts no "
                        "servers");
    assert_int_equal(server->rv, -MU_EDEADLINE);
}

/* ---- resolvers ---- */

/* Nobody lists an address: each task listens, says where in a folder, and finds the
 * others there. Indices of workers are those that are free. */
TEST_ON(test_found_in_a_folder, struct world *world, setup, teardown)
{
    static const struct {
        const char *type;
        int index;
    } tasks[] = {{"chief", 0}, {"worker", -1}, {"worker", -1}, {"ps", 0}};
    mu_resolver *resolvers[4];
    char folder[] = "/tmp/muster-found-XXXXXX";
    char command[64];
    mu_error error;

    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 4; i++) {
        struct process *p =
            add(world, MU_MODE_INDEPENDENT, tasks[i].type, tasks[i].index);

        if (mu_resolver_new("directory", &error, &resolvers[i]) != 0 ||
            mu_resolver_set(resolvers[i], "path", folder, &error) != 0 ||
            mu_resolver_set(resolvers[i], "tasks", "chief=1,worker=2,ps=1", &error) != 0)
            fail_msg("%s", error.message);
        p->options.resolver = resolvers[i];
        p->node_options.bind_address = "tcp://127.0.0.1:0";
        p->node_options.resolve_ms = SOON_MS;
    }
    world->lasts_until = "/job:ps/task:0 agent: registered with";
    run_all(world);
    check_fine(world);
    assert_int_equal(atomic_load(&world->calls), 3);
    assert_int_equal(atomic_load(&world->rounds), 3 * ROUNDS);
    assert_int_equal(number_of(&world->processes[0], "/job:worker/task:0", "value"), 100);
    assert_int_equal(number_of(&world->processes[0], "/job:worker/task:1", "value"), 101);
    for (int i = 0; i < 4; i++)
        mu_resolver_free(resolvers[i]);

    /* All have taken back what they had told. */
    (void)snprintf(command, sizeof command, "rmdir %s", folder);
    assert_int_equal(system(command), 0);
}

/* A server that is kept is not looked for again. */
TEST_ON(test_found_and_kept, struct world *world, setup, teardown)
{
    mu_resolver *resolver;
    mu_error error;
    struct process *p;

    make_cluster(world, 1, 0, 0, 0);
    if (mu_resolver_new_static(world->cluster, NULL, "chief", 0, &error, &resolver) != 0)
        fail_msg("%s", error.message);
    p = add(world, MU_MODE_INDEPENDENT, "chief", 0);
    p->options.cluster = NULL;
    p->options.task_type = NULL;
    p->options.resolver = resolver;
    p->options.keep_server = 1;
    for (int i = 0; i < 2; i++) {
        mu_value_free(p->results);
        p->results = NULL;
        run_process(p);
        check_fine(world);
    }
    assert_int_equal(atomic_load(&world->calls), 2);
    assert_int_equal(mu_distribute_end(SOON_MS, &error), 0);
    mu_resolver_free(resolver);
}

TEST_PROGRAM()
