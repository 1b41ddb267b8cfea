/* What a distributed run does with its nodes: sessions, servers that are kept, clients of
 * workers and servers, and functions that are registered before a worker serves. */
#include "tests/real/coordination/distribute_tasks.h"

/* ---- sessions, and what the strategy wants of nodes ---- */

enum { SESSION_THREADS = 3 };

static int init_parameters(mu_node *node, void *user, mu_error *ret_error)
{
    struct world *world = user;

    (void)node;
    (void)ret_error;
    atomic_fetch_add(&world->rounds, 1);
    return 0;
}

/* The session config has reached the node, and the session. */
static int check_session(mu_context *c, mu_node *node, mu_session *session)
{
    const mu_session_config *config = mu_session_get_config(session);
    const char *filters = mu_node_get_setting(node, "device_filters");
    char expected[128];

    (void)snprintf(expected, sizeof expected, "%s,/job:ps", mu_context_task(c));
    if (filters == NULL || strcmp(filters, expected) != 0)
        return mu_context_fail(c, -MU_EINTERNAL, "filters of the node: %s", filters);
    if (config->inter_op_threads != SESSION_THREADS || config->device_filters_count != 2)
        return mu_context_fail(c, -MU_EINTERNAL, "the session's config is another one");
    if (mu_session_is_chief(session) != mu_context_should_init(c))
        return mu_context_fail(c, -MU_EINTERNAL, "the session is another one's");
    mu_context_return(c, mu_value_int(mu_session_is_chief(session)));
    return 0;
}

static int open_session(mu_context *c, void *user)
{
    mu_session_options options;
    mu_session *session = NULL;
    mu_session *again = NULL;
    mu_node *node = NULL;
    mu_error error = {0};

    mu_session_options_init(&options);
    options.init = init_parameters;
    options.user = user;
    if (mu_context_node(c, &error, &node) != 0 ||
        mu_context_session(c, &options, &error, &session) != 0 ||
        mu_context_session(c, NULL, &error, &again) != 0 ||
        mu_context_wait_for_others(c, SOON_MS, &error) != 0)
        return mu_context_fail_with(c, &error);
    if (session != again)
        return mu_context_fail(c, -MU_EINTERNAL, "a second session was opened");
    return check_session(c, node, session);
}

TEST_ON(test_sessions, struct world *world, setup, teardown)
{
    mu_session_config config;

    mu_session_config_init(&config);
    config.inter_op_threads = SESSION_THREADS;
    make_cluster(world, 1, 2, 1, 0);
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    for (int i = 0; i < world->count; i++) {
        world->processes[i].options.worker = open_session;
        world->processes[i].options.config = &config;
    }
    run_all(world);
    check_fine(world);
    assert_int_equal(atomic_load(&world->rounds), 1);
    assert_int_equal(number_of(find(world, "chief", 0), "/job:chief/task:0", "value"), 1);
    assert_int_equal(number_of(find(world, "chief", 0), "/job:worker/task:1", "value"),
                     0);
}

static int no_parameters(mu_node *node, void *user, mu_error *ret_error)
{
    (void)node;
    (void)user;
    return mu_error_set(ret_error, -MU_EDATALOSS, "no file");
}

static int open_no_session(mu_context *c, void *user)
{
    mu_session_options options;
    mu_session *session = NULL;
    mu_error error = {0};

    (void)user;
    mu_session_options_init(&options);
    options.init = no_parameters;
    if (mu_context_session(c, &options, &error, &session) != 0)
        return mu_context_fail_with(c, &error);
    return mu_context_fail(c, -MU_EINTERNAL, "there is a session");
}

/* The chief has no session: nobody waits for it to the end of the limit, which is hours
 * away. */
TEST_ON(test_no_session, struct world *world, setup, teardown)
{
    make_cluster(world, 1, 2, 0, 0);
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    for (int i = 0; i < world->count; i++)
        world->processes[i].options.worker = open_no_session;
    run_all(world);
    for (int i = 0; i < world->count; i++) {
        assert_int_equal(world->processes[i].rv, -MU_EDATALOSS);
        assert_string_equal(world->processes[i].error.message,
                            "session session: init: no file");
    }
}

/* ---- the server that a thread keeps ---- */

struct twice {
    struct process *first;
    mu_distribute_options other;
    int second_rv;
    int other_rv;
    mu_error other_error;
    int end_rv;
};

static void run_twice(void *arg)
{
    struct twice *t = arg;
    struct process *p = t->first;
    mu_session_config config;

    p->options.keep_server = 1;
    run_process(p);
    mu_value_free(p->results);
    t->second_rv = mu_distribute_run(&p->options, &p->error, &p->results);
    t->other = p->options;
    mu_session_config_init(&config);
    config.inter_op_threads = 3;
    t->other.config = &config;
    t->other_rv = mu_distribute_run(&t->other, &t->other_error, NULL);
    t->end_rv = mu_distribute_end(SOON_MS, &p->error);
}

TEST_ON(test_server_is_kept, struct world *world, setup, teardown)
{
    struct twice twice = {0};
    uv_thread_t thread;

    make_cluster(world, 1, 0, 1, 0);
    twice.first = add(world, MU_MODE_INDEPENDENT, "chief", 0);
    (void)add(world, MU_MODE_INDEPENDENT, "ps", 0);
    assert_int_equal(uv_thread_create(&thread, run_twice, &twice), 0);
    run_process(&world->processes[1]);
    (void)uv_thread_join(&thread);
    check_fine(world);
    assert_int_equal(twice.second_rv, 0);
    assert_int_equal(atomic_load(&world->calls), 2);
    assert_int_equal(number_of(twice.first, "/job:chief/task:0", "value"), 100);
    assert_int_equal(twice.other_rv, -MU_EPRECONDITION);
    assert_non_null(strstr(twice.other_error.message,
                           "this thread keeps a server of /job:chief/task:0"));
    assert_int_equal(twice.end_rv, 0);
}

/* ---- a client that is a worker ---- */

TEST_ON(test_client_worker, struct world *world, setup, teardown)
{
    struct process *chief;

    make_cluster(world, 1, 2, 1, 1);
    add_all(world, MU_MODE_CLIENT_WORKER, mu_strategy_parameter_server());
    run_all(world);
    check_fine(world);
    chief = find(world, "chief", 0);
    assert_int_equal(atomic_load(&world->calls), 3);
    assert_int_equal(atomic_load(&world->rounds), 3 * ROUNDS);
    assert_int_equal(mu_value_count(chief->results), 4);
    assert_int_equal(number_of(chief, "/job:worker/task:1", "value"), 101);
    assert_null(find(world, "worker", 0)->results);
    assert_null(find(world, "evaluator", 0)->results);
}

/* ---- a wait that somebody ends ---- */

static void end_waits(void *arg)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_ECANCELLED, "interrupted");
    (void)mu_context_abort_waits(arg, &error);
}

/* The chief was at the barrier: the worker may still pass that one, and no other. */
static int wait_until_interrupted(mu_context *c, void *user)
{
    struct world *world = user;
    mu_error error = {0};
    uv_thread_t thread;

    if (mu_context_is_chief(c)) {
        assert_int_equal(uv_thread_create(&thread, end_waits, c), 0);
        (void)mu_context_wait_for_others(c, -1, &error);
        (void)uv_thread_join(&thread);
        atomic_store(&world->evaluated, 1);
        return mu_context_fail_with(c, &error);
    }
    while (atomic_load(&world->evaluated) == 0)
        uv_sleep(1);
    while (mu_context_wait_for_others(c, SOON_MS, &error) == 0)
        uv_sleep(1);
    return mu_context_fail_with(c, &error);
}

TEST_ON(test_a_wait_is_ended_by_another_thread, struct world *world, setup, teardown)
{
    make_cluster(world, 1, 1, 0, 0);
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    for (int i = 0; i < world->count; i++)
        world->processes[i].options.worker = wait_until_interrupted;
    run_all(world);
    for (int i = 0; i < world->count; i++) {
        assert_int_equal(world->processes[i].rv, -MU_ECANCELLED);
        assert_non_null(strstr(world->processes[i].error.message, "interrupted"));
        assert_string_equal(world->processes[i].error.task, "/job:chief/task:0");
    }
}

/* ---- a client of servers ---- */

static int request_servers(mu_context *c, void *user)
{
    mu_error error = {0};
    mu_value *states = NULL;
    mu_node *node = NULL;
    int rv = mu_context_node(c, &error, &node);

    (void)user;
    if (rv == 0)
        rv = mu_agent_register(node, 0, SOON_MS, &error);
    if (rv == 0)
        rv = mu_tasks_wait(node, "chief:0,worker:0", SOON_MS, &error, &states);
    if (rv != 0)
        return mu_context_fail_with(c, &error);
    mu_value_free(states);
    mu_context_return(c, mu_value_string(mu_node_task(node)));
    return 0;
}

/* The client's own node is opened by who asks for it, and one for all. */
TEST_ON(test_standalone, struct world *world, setup, teardown)
{
    struct nodes nodes;
    mu_distribute_options *o;

    nodes_init(&nodes, 1, 0);
    world->cluster = mu_cluster_copy(nodes.cluster);
    (void)nodes_open(&nodes, "chief", 0);
    (void)nodes_open(&nodes, "worker", 0);
    o = &add(world, MU_MODE_STANDALONE, NULL, 0)->options;
    o->worker = request_servers;
    o->client_index = 4;
    run_process(&world->processes[0]);
    world->processes[0].type = "client";
    check_fine(world);
    assert_string_equal(text_of(&world->processes[0], "/job:chief/task:0", "value"),
                        "/job:client/task:4");
    assert_string_equal(text_of(&world->processes[0], "/job:worker/task:0", "value"),
                        "/job:client/task:4");
    nodes_done(&nodes);
}

static int resolve_named(void *user, int64_t timeout_ms, mu_error *ret_error,
                         mu_resolution *ret_resolution)
{
    (void)timeout_ms;
    (void)ret_error;
    ret_resolution->cluster = mu_cluster_copy(user);
    (void)snprintf(ret_resolution->cluster_name, sizeof ret_resolution->cluster_name,
                   "job-77");
    return 0;
}

/* Where a resolver names the cluster, as after a batch job, its servers refuse who is of
 * another one: the client takes that name as they do. */
TEST_ON(test_standalone_of_a_job, struct world *world, setup, teardown)
{
    mu_resolver_kind kind = {.name = "named", .resolve = resolve_named};
    mu_resolver *resolver = NULL;
    mu_node_options options;
    struct nodes nodes;
    mu_distribute_options *o;
    mu_error error;

    nodes_init(&nodes, 1, 0);
    kind.user = nodes.cluster;
    if (mu_resolver_register(&kind, &error) != 0 ||
        mu_resolver_new("named", &error, &resolver) != 0)
        fail_msg("%s", error.message);
    for (int i = 0; i < 2; i++) {
        nodes_options(&nodes, i == 0 ? "chief" : "worker", 0, &options);
        options.cluster_name = "job-77";
        (void)nodes_open_with(&nodes, &options);
    }
    o = &add(world, MU_MODE_STANDALONE, NULL, 0)->options;
    o->cluster = NULL;
    o->resolver = resolver;
    o->worker = request_servers;
    run_process(&world->processes[0]);
    world->processes[0].type = "client";
    check_fine(world);
    nodes_done(&nodes);
    mu_resolver_free(resolver);
    assert_int_equal(mu_resolver_unregister("named", &error), 0);
}

/* ---- nodes that a run opens ---- */

static int twice_of(mu_run *run, void *user)
{
    int64_t number = 0;

    (void)user;
    (void)mu_value_get_int(mu_run_args(run), &number);
    mu_run_return(run, mu_value_int(2 * number));
    return 0;
}

static int give_function(mu_node *node, void *user, mu_error *ret_error)
{
    struct world *world = user;

    atomic_fetch_add(&world->opened, 1);
    if (world->fails != NULL && strcmp(world->fails, mu_node_task(node)) == 0)
        return mu_error_set(ret_error, -MU_EDATALOSS, "no function for it");
    return mu_node_register_function(node, "twice", twice_of, NULL, 0);
}

static int call_twice(mu_context *c, void *user)
{
    mu_error error = {0};
    mu_value *number = mu_value_int(21);
    mu_value *result = NULL;
    mu_coordinator *coordinator = NULL;
    mu_remote_value *value = NULL;
    mu_node *node = NULL;
    int rv = mu_context_node(c, &error, &node);

    (void)user;
    if (rv == 0)
        rv = mu_coordinator_open(node, SOON_MS, &error, &coordinator);
    if (rv == 0)
        rv = mu_coordinator_schedule(coordinator, "twice", number, SOON_MS, &error,
                                     &value);
    if (rv == 0)
        rv = mu_remote_value_fetch(value, SOON_MS, &error, &result);
    mu_value_free(number);
    mu_remote_value_free(value);
    mu_coordinator_close(coordinator);
    if (rv != 0)
        return mu_context_fail_with(c, &error);
    mu_context_return(c, result);
    return 0;
}

static void add_all_with_a_function(struct world *world, int mode)
{
    add_all(world, mode, mu_strategy_default());
    for (int i = 0; i < world->count; i++) {
        world->processes[i].options.worker = call_twice;
        world->processes[i].options.opened = give_function;
        world->processes[i].options.opened_user = world;
    }
}

TEST_ON(test_functions_are_registered_before_a_worker_serves, struct world *world, setup,
        teardown)
{
    make_cluster(world, 1, 2, 1, 0);
    add_all_with_a_function(world, MU_MODE_CLIENT_WORKER);
    run_all(world);
    check_fine(world);
    assert_int_equal(atomic_load(&world->opened), 4);
    assert_int_equal(number_of(find(world, "chief", 0), "worker_fn", "value"), 42);
}

TEST_ON(test_a_node_that_the_program_refuses_ends_the_run, struct world *world, setup,
        teardown)
{
    struct process *chief;

    make_cluster(world, 1, 0, 0, 0);
    world->fails = "/job:chief/task:0";
    add_all_with_a_function(world, MU_MODE_INDEPENDENT);
    chief = find(world, "chief", 0);
    run_process(chief);
    assert_int_equal(chief->rv, -MU_EDATALOSS);
    assert_string_equal(chief->error.message,
                        "/job:chief/task:0 cannot use its node: no function for it");
    assert_null(chief->results);
}

/* A client's own node, too: the call hears of it that wanted it, and the next one tries
 * again. */
static int want_node_twice(mu_context *c, void *user)
{
    struct world *world = user;
    mu_error error = {0};
    mu_node *node = NULL;

    if (mu_context_node(c, &error, &node) != -MU_EDATALOSS)
        return mu_context_fail(c, -MU_EINTERNAL, "there is a node");
    world->fails = NULL;
    if (mu_context_node(c, &error, &node) != 0)
        return mu_context_fail_with(c, &error);
    mu_context_return(c, mu_value_string(mu_node_task(node)));
    return 0;
}

TEST_ON(test_a_client_s_node_that_is_refused_is_an_error_of_the_call, struct world *world,
        setup, teardown)
{
    struct nodes nodes;
    mu_distribute_options *o;

    nodes_init(&nodes, 1, 0);
    world->cluster = mu_cluster_copy(nodes.cluster);
    world->fails = "/job:client/task:0";
    o = &add(world, MU_MODE_STANDALONE, NULL, 0)->options;
    o->strategy = mu_strategy_default();
    o->worker = want_node_twice;
    o->opened = give_function;
    o->opened_user = world;
    run_process(&world->processes[0]);
    world->processes[0].type = "client";
    check_fine(world);
    assert_int_equal(atomic_load(&world->opened), 2);
    assert_string_equal(text_of(&world->processes[0], "worker_fn", "value"),
                        "/job:client/task:0");
    nodes_done(&nodes);
}

TEST_PROGRAM()
