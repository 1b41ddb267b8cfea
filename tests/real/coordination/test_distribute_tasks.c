/* The distribute coordinator over real nodes: independent tasks, a client that is a
 * worker, a client of servers. Each task is a thread here, with a node of its own. */
#include "tests/real/nodes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

enum { TASKS_MAX = 8, ROUNDS = 5, LARGE_BYTES = 2 << 20 };

struct world;

/* One process of the job. */
struct process {
    struct world *world;
    const char *type;
    int index;
    mu_distribute_options options;
    uv_thread_t thread;
    int rv;
    mu_error error;
    mu_value *results;
};

struct world {
    struct nodes_log log;
    char json[1024];
    mu_cluster *cluster;
    struct process processes[TASKS_MAX];
    int count;
    atomic_int calls;
    atomic_int rounds;
    atomic_int evaluated;
    atomic_int opened;
    const char *fails;          /* this task does, before the barrier */
    const char *returns;        /* this task ends well before the barrier */
    bool large;                 /* results are */
    int64_t timeout_ms;
    const char *lasts_until;    /* its work: words in the log; NULL: it just ends */
};

/* ---- the cluster ---- */

static void write_cluster(struct world *world, int chiefs, int workers, int servers,
                          int evaluators)
{
    const struct {
        const char *type;
        int count;
    } jobs[] = {
        {"chief", chiefs},
        {"worker", workers},
        {"ps", servers},
        {"evaluator", evaluators},
    };
    int sockets[TASKS_MAX];
    int count = 0;
    size_t at = 0;

    for (size_t i = 0; i < 4; i++) {
        if (jobs[i].count == 0)
            continue;
        at += (size_t)snprintf(world->json + at, sizeof world->json - at, "%s\"%s\":[",
                               at == 0 ? "{" : ",", jobs[i].type);
        for (int j = 0; j < jobs[i].count; j++)
            at += (size_t)snprintf(world->json + at, sizeof world->json - at,
                                   "%s\"127.0.0.1:%d\"", j == 0 ? "" : ",",
                                   nodes_free_port(&sockets[count++]));
        at += (size_t)snprintf(world->json + at, sizeof world->json - at, "]");
    }
    (void)snprintf(world->json + at, sizeof world->json - at, "}");
    while (count > 0)
        (void)close(sockets[--count]);
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    (void)unsetenv("TF_CONFIG");
    (void)pthread_mutex_init(&world->log.lock, NULL);
    world->timeout_ms = SOON_MS;
    *state = world;
    return 0;
}

static void make_cluster(struct world *world, int chiefs, int workers, int servers,
                         int evaluators)
{
    mu_error error;

    write_cluster(world, chiefs, workers, servers, evaluators);
    if (mu_cluster_parse(world->json, strlen(world->json), "test", &error,
                         &world->cluster) != 0)
        fail_msg("%s", error.message);
}

static int teardown(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < world->count; i++)
        mu_value_free(world->processes[i].results);
    mu_cluster_free(world->cluster);
    (void)pthread_mutex_destroy(&world->log.lock);
    free(world);
    return 0;
}

/* ---- the program ---- */

/* A job that ends before a server has looked again is over for it. */
static void wait_until_told(struct world *world)
{
    bool told = world->lasts_until == NULL;

    for (int i = 0; i < SOON_MS && !told; i++) {
        (void)pthread_mutex_lock(&world->log.lock);
        told = strstr(world->log.text, world->lasts_until) != NULL;
        (void)pthread_mutex_unlock(&world->log.lock);
        nodes_pause();
    }
}

static int work(mu_context *c, void *user)
{
    struct world *world = user;
    int workers = (int)mu_context_num_workers(c);
    mu_error error = {0};
    int rv = 0;

    atomic_fetch_add(&world->calls, 1);
    if (world->fails != NULL && strcmp(world->fails, mu_context_task(c)) == 0)
        return mu_context_fail(c, -MU_EDATALOSS, "%s lost it", mu_context_task(c));
    if (world->returns != NULL && strcmp(world->returns, mu_context_task(c)) == 0)
        return 0;
    for (int round = 0; mu_context_has_barrier(c) && rv == 0 && round < ROUNDS; round++) {
        atomic_fetch_add(&world->rounds, 1);
        rv = mu_context_wait_for_others(c, world->timeout_ms, &error);
        if (rv == 0 && atomic_load(&world->rounds) < (round + 1) * workers)
            rv = mu_error_set(&error, -MU_EINTERNAL, "round %d began too early", round);
    }
    if (rv != 0)
        return mu_context_fail_with(c, &error);
    wait_until_told(world);
    mu_context_return(c, world->large
                             ? mu_value_tensor(MU_U8, 1, (uint64_t[]){LARGE_BYTES}, NULL)
                             : mu_value_int(mu_context_task_index(c) + 100));
    return 0;
}

static int eval(mu_context *c, void *user)
{
    struct world *world = user;

    while (!mu_context_cancelled(c))
        uv_sleep(1);
    atomic_fetch_add(&world->evaluated, 1);
    mu_context_return(c, mu_value_string("good"));
    return 0;
}

/* ---- processes ---- */

static struct process *add(struct world *world, int mode, const char *type, int index)
{
    struct process *p = &world->processes[world->count++];

    p->world = world;
    p->type = type;
    p->index = index;
    mu_distribute_options_init(&p->options);
    p->options.mode = mode;
    p->options.worker = work;
    p->options.eval = eval;
    p->options.worker_user = p->options.eval_user = world;
    p->options.strategy = p->options.eval_strategy = mu_strategy_parameter_server();
    p->options.cluster = world->cluster;
    p->options.task_type = type;
    p->options.task_index = index;
    p->options.end_timeout_ms = SOON_MS;
    p->options.node_options.log = nodes_note;
    p->options.node_options.log_user = &world->log;
    p->options.node_options.heartbeat_ms = 200;
    p->options.node_options.silence_ms = 4000;
    return p;
}

/* All tasks of the cluster. */
static void add_all(struct world *world, int mode, const mu_strategy *strategy)
{
    const char *type;
    const char *address;
    int index;

    for (size_t i = 0;
         mu_cluster_task_at(world->cluster, i, &type, &index, &address) == 0; i++)
        add(world, mode, type, index)->options.strategy = strategy;
}

static void run_process(void *arg)
{
    struct process *p = arg;

    p->rv = mu_distribute_run(&p->options, &p->error, &p->results);
}

static void run_all(struct world *world)
{
    for (int i = 0; i < world->count; i++)
        assert_int_equal(uv_thread_create(&world->processes[i].thread, run_process,
                                          &world->processes[i]),
                         0);
    for (int i = 0; i < world->count; i++)
        (void)uv_thread_join(&world->processes[i].thread);
}

static struct process *find(struct world *world, const char *type, int index)
{
    for (int i = 0; i < world->count; i++)
        if (strcmp(world->processes[i].type, type) == 0 &&
            world->processes[i].index == index)
            return &world->processes[i];
    fail_msg("there is no %s:%d", type, index);
    return NULL;
}

static void check_fine(struct world *world)
{
    for (int i = 0; i < world->count; i++) {
        const struct process *p = &world->processes[i];

        if (p->rv != 0)
            fail_msg("%s:%d: %d %s\n%s", p->type, p->index, p->rv, p->error.message,
                     world->log.text);
    }
}

static int64_t number_of(const struct process *p, const char *task, const char *key)
{
    int64_t number = -999;

    if (mu_value_get_int(mu_value_find(mu_value_find(p->results, task), key), &number) !=
        0)
        fail_msg("%s:%d has no %s of %s", p->type, p->index, key, task);
    return number;
}

static const char *text_of(const struct process *p, const char *task, const char *key)
{
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(mu_value_find(p->results, task), key), &text,
                              &size);
    return text;
}

/* ---- independent ---- */

static void test_between_graph(void **state)
{
    struct world *world = *state;
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

static void test_in_graph(void **state)
{
    struct world *world = *state;

    make_cluster(world, 1, 1, 1, 0);
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_default());
    run_all(world);
    check_fine(world);
    assert_int_equal(atomic_load(&world->calls), 1);
    assert_int_equal(number_of(find(world, "chief", 0), "worker_fn", "value"), 99);
    assert_null(find(world, "worker", 0)->results);
}

/* Worker 0 leads where there is no chief, and servers hear of the end all the same. */
static void test_without_chief(void **state)
{
    struct world *world = *state;

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
static void test_failure_at_the_barrier(void **state)
{
    struct world *world = *state;

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
    assert_int_equal(
        number_of(find(world, "chief", 0), "/job:worker/task:0", "code"), -MU_EDATALOSS);
}

/* The same when it ends well, a worker or the chief: it does not come, and nobody waits
 * for it for ever. */
static void test_end_before_the_barrier(void **state)
{
    static const char *const tasks[] = {"/job:worker/task:1", "/job:chief/task:0"};
    struct world *world = *state;

    make_cluster(world, 1, 2, 0, 0);
    world->timeout_ms = -1;
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    for (size_t i = 0; i < 2; i++) {
        char expected[160];

        world->returns = tasks[i];
        run_all(world);
        (void)snprintf(expected, sizeof expected,
                       "%s has ended, and does not come to the barrier of chief and "
                       "workers", tasks[i]);
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

static void test_chief_fails(void **state)
{
    struct world *world = *state;

    make_cluster(world, 1, 1, 0, 0);
    world->fails = "/job:chief/task:0";
    world->timeout_ms = -1;
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    run_all(world);
    assert_int_equal(find(world, "chief", 0)->rv, -MU_EDATALOSS);
    assert_int_equal(find(world, "worker", 0)->rv, -MU_EDATALOSS);
    assert_string_equal(find(world, "worker", 0)->error.task, "/job:chief/task:0");
    assert_int_equal(
        number_of(find(world, "chief", 0), "/job:worker/task:0", "code"), -MU_EDATALOSS);
}

static void test_large_results(void **state)
{
    struct world *world = *state;
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
static void test_missing_worker(void **state)
{
    struct world *world = *state;
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
    options.scaffold.init = init_parameters;
    options.scaffold.user = user;
    if (mu_context_node(c, &error, &node) != 0 ||
        mu_context_session(c, &options, &error, &session) != 0 ||
        mu_context_session(c, NULL, &error, &again) != 0 ||
        mu_context_wait_for_others(c, SOON_MS, &error) != 0)
        return mu_context_fail_with(c, &error);
    if (session != again)
        return mu_context_fail(c, -MU_EINTERNAL, "a second session was opened");
    return check_session(c, node, session);
}

static void test_sessions(void **state)
{
    struct world *world = *state;

    make_cluster(world, 1, 2, 1, 0);
    add_all(world, MU_MODE_INDEPENDENT, mu_strategy_parameter_server());
    for (int i = 0; i < world->count; i++) {
        world->processes[i].options.worker = open_session;
        world->processes[i].options.config.inter_op_threads = SESSION_THREADS;
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
    options.scaffold.init = no_parameters;
    if (mu_context_session(c, &options, &error, &session) != 0)
        return mu_context_fail_with(c, &error);
    return mu_context_fail(c, -MU_EINTERNAL, "there is a session");
}

/* The chief has no session: nobody waits for it to the end of the limit, which is hours
 * away. */
static void test_no_session(void **state)
{
    struct world *world = *state;

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

    p->options.keep_server = 1;
    run_process(p);
    mu_value_free(p->results);
    t->second_rv = mu_distribute_run(&p->options, &p->error, &p->results);
    t->other = p->options;
    t->other.config.inter_op_threads = 3;
    t->other_rv = mu_distribute_run(&t->other, &t->other_error, NULL);
    t->end_rv = mu_distribute_end(SOON_MS, &p->error);
}

static void test_server_is_kept(void **state)
{
    struct world *world = *state;
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

static void test_client_worker(void **state)
{
    struct world *world = *state;
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

static void test_a_wait_is_ended_by_another_thread(void **state)
{
    struct world *world = *state;

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
static void test_standalone(void **state)
{
    struct world *world = *state;
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

static void test_functions_are_registered_before_a_worker_serves(void **state)
{
    struct world *world = *state;

    make_cluster(world, 1, 2, 1, 0);
    add_all_with_a_function(world, MU_MODE_CLIENT_WORKER);
    run_all(world);
    check_fine(world);
    assert_int_equal(atomic_load(&world->opened), 4);
    assert_int_equal(number_of(find(world, "chief", 0), "worker_fn", "value"), 42);
}

static void test_a_node_that_the_program_refuses_ends_the_run(void **state)
{
    struct world *world = *state;
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

static void test_a_client_s_node_that_is_refused_is_an_error_of_the_call(void **state)
{
    struct world *world = *state;
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

static void test_google(void **state)
{
    struct world *world = *state;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- resolvers ---- */

/* Nobody lists an address: each task listens, says where in a folder, and finds the
 * others there. Indices of workers are those that are free. */
static void test_found_in_a_folder(void **state)
{
    static const struct {
        const char *type;
        int index;
    } tasks[] = {{"chief", 0}, {"worker", -1}, {"worker", -1}, {"ps", 0}};
    struct world *world = *state;
    mu_resolver *resolvers[4];
    char folder[] = "/tmp/muster-found-XXXXXX";
    char command[64];
    mu_error error;

    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 4; i++) {
        struct process *p = add(world, MU_MODE_INDEPENDENT, tasks[i].type,
                                tasks[i].index);

        if (mu_resolver_new("directory", &error, &resolvers[i]) != 0 ||
            mu_resolver_set(resolvers[i], "path", folder, &error) != 0 ||
            mu_resolver_set(resolvers[i], "tasks", "chief=1,worker=2,ps=1", &error) != 0)
            fail_msg("%s", error.message);
        p->options.resolver = resolvers[i];
        p->options.node_options.bind_address = "tcp://127.0.0.1:0";
        p->options.node_options.resolve_ms = SOON_MS;
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
static void test_found_and_kept(void **state)
{
    struct world *world = *state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_between_graph),
        TEST(test_in_graph),
        TEST(test_without_chief),
        TEST(test_failure_at_the_barrier),
        TEST(test_end_before_the_barrier),
        TEST(test_chief_fails),
        TEST(test_large_results),
        TEST(test_missing_worker),
        TEST(test_sessions),
        TEST(test_no_session),
        TEST(test_server_is_kept),
        TEST(test_client_worker),
        TEST(test_a_wait_is_ended_by_another_thread),
        TEST(test_standalone),
        TEST(test_functions_are_registered_before_a_worker_serves),
        TEST(test_a_node_that_the_program_refuses_ends_the_run),
        TEST(test_a_client_s_node_that_is_refused_is_an_error_of_the_call),
        TEST(test_google),
        TEST(test_found_in_a_folder),
        TEST(test_found_and_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
