/* What the distribute coordinator is given: strategies, the environment, resolvers, and
 * what is refused. */
#include "tests/real/coordination/distribute_fixture.h"

/* ---- strategies ---- */

struct counted {
    atomic_int configured;
    atomic_int dropped;
    char tasks[CALLS_MAX][64];
};

struct copy {
    struct counted *counted;
    int index;
    char filter[32];
    const char *filters[1];
};

static int configure(void *user, const mu_strategy_task *task, mu_error *ret_error,
                     void **ret_copy)
{
    struct counted *counted = user;
    struct copy *copy = calloc(1, sizeof *copy);
    int number = atomic_fetch_add(&counted->configured, 1);

    if (task->index == 2) {
        free(copy);
        return mu_error_set(ret_error, -MU_EUNIMPLEMENTED, "no third task");
    }
    (void)snprintf(counted->tasks[number], sizeof counted->tasks[0], "%s:%d %zu %d",
                   task->type == NULL ? "-" : task->type, task->index,
                   mu_cluster_task_count(task->cluster, NULL), task->is_chief);
    copy->counted = counted;
    copy->index = task->index;
    *ret_copy = copy;
    return 0;
}

static void want(void *arg, mu_session_config *config)
{
    struct copy *copy = arg;

    (void)snprintf(copy->filter, sizeof copy->filter, "/job:ps/task:%d", copy->index);
    copy->filters[0] = copy->filter;
    config->device_filters = copy->filters;
    config->device_filters_count = 1;
    config->inter_op_threads++;
}

static int is_first(void *arg)
{
    return ((struct copy *)arg)->index == 1;
}

static void drop(void *arg)
{
    struct copy *copy = arg;

    atomic_fetch_add(&copy->counted->dropped, 1);
    free(copy);
}

static int check_copy(mu_context *c, void *user)
{
    const struct copy *copy = mu_context_strategy(c);

    assert_int_equal(copy->index, mu_context_task_index(c));
    assert_int_equal(mu_context_session_config(c)->inter_op_threads, 8);
    return work(c, user);
}

/* Each task has its own copy, made for it and dropped with it. */
TEST_ON(test_own_strategy, struct notes *notes, setup, teardown)
{
    static const char *const lines[] = {
        "work worker:0 n=2 chief=1 distributed=1 init=0 save=1 summary=1 barrier=1 "
        "master=\"w:1\" filters=/job:ps/task:0",
        "work worker:1 n=2 chief=0 distributed=1 init=1 save=0 summary=0 barrier=1 "
        "master=\"w:2\" filters=/job:ps/task:1",
    };
    struct counted counted = {0};
    const mu_strategy strategy = {
        .name = "own",
        .between_graph = 1,
        .user = &counted,
        .configure = configure,
        .session_config = want,
        .should_init = is_first,
        .drop = drop,
    };
    mu_cluster *cluster = parse("{" W2 "," P "}");
    mu_cluster *larger = parse("{" W3 "," P "}");
    mu_session_config config;
    mu_distribute_options o;
    mu_error error = {0};

    options_of(notes, &o);
    o.cluster = cluster;
    o.rpc_layer = "";
    o.strategy = &strategy;
    o.worker = check_copy;
    mu_session_config_init(&config);
    config.inter_op_threads = 7;
    o.config = &config;
    (void)run(&o, NULL);
    check_lines(notes, lines, COUNT(lines));
    assert_int_equal(atomic_load(&counted.configured), 2);
    assert_int_equal(atomic_load(&counted.dropped), 2);
    assert_string_equal(counted.tasks[0], "worker:0 3 1");
    assert_string_equal(counted.tasks[1], "worker:1 3 0");

    o.cluster = larger;
    assert_int_equal(mu_distribute_run(&o, &error, NULL), -MU_EUNIMPLEMENTED);
    assert_string_equal(error.message, "strategy \"own\" cannot be configured for "
                                       "worker:2: no third task");
    assert_int_equal(atomic_load(&counted.dropped), 4);
    mu_cluster_free(cluster);
    mu_cluster_free(larger);
}

/* ---- the environment ---- */

static int own_spec(void *user, mu_error *ret_error, mu_tf_config *ret_config)
{
    const char *json = user;

    return mu_tf_config_parse(json, strlen(json), ret_error, ret_config);
}

TEST_ON(test_tf_config, struct notes *notes, setup, teardown)
{
    static const char *const lines[] = {
        "work -:-1 n=1 chief=1 distributed=1 init=1 save=1 summary=1 barrier=0 "
        "master=\"tcp://outside:9\"",
        "work evaluator:0 n=1 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
    };
    mu_distribute_options o;

    options_of(notes, &o);
    (void)setenv("TF_CONFIG",
                 "{\"cluster\":{" C "," E "},\"rpc_layer\":\"x\",\"environment\":\"\","
                 "\"session_master\":\"tcp://outside:9\"}",
                 1);
    (void)run(&o, NULL);
    check_lines(notes, lines, COUNT(lines));
}

static mu_resolver *static_resolver(const char *json, const char *layer)
{
    mu_cluster *cluster = json == NULL ? NULL : parse(json);
    mu_resolver *resolver = NULL;
    mu_error error;

    if (mu_resolver_new_static(cluster, NULL, NULL, -1, &error, &resolver) != 0 ||
        (layer != NULL && mu_resolver_set_rpc_layer(resolver, layer, &error) != 0))
        fail_msg("%s", error.message);
    mu_cluster_free(cluster);
    return resolver;
}

/* The caller's word, then TF_CONFIG, then the resolver's, then the strategy's. */
TEST_ON(test_precedence, struct notes *notes, setup, teardown)
{
    static const struct {
        const char *environment;
        const char *found; /* by a resolver: NULL, there is none; "": no cluster */
        const char *layer; /* that it says */
        const char *own;   /* of the strategy */
        bool given;        /* the caller says "{worker: [w:1, w:2]}" */
        const char *master;
        size_t workers;
    } rows[] = {
        {NULL, NULL, NULL, NULL, false, "", 0},
        {NULL, NULL, NULL, "{\"cluster\":{" W3 "},\"rpc_layer\":\"s\"}", false, "s://w:1",
         3},
        {"{\"cluster\":{" C "}}", NULL, NULL, "{\"cluster\":{" W3 "}}", false,
         "grpc://c:1", 1},
        {"{\"rpc_layer\":\"e\"}", NULL, NULL, "{\"cluster\":{" W3 "}}", false, "e://w:1",
         3},
        {"{\"cluster\":{" C "},\"rpc_layer\":\"e\"}", NULL, NULL,
         "{\"cluster\":{" W3 "}}", true, "e://w:1", 2},
        {"", NULL, NULL, "{}", true, "grpc://w:1", 2},
        {NULL, "{" W3 "}", NULL, NULL, false, "grpc://w:1", 3},
        {NULL, "{" W3 "}", "r", "{\"cluster\":{" C "}}", false, "r://w:1", 3},
        {"{\"rpc_layer\":\"e\"}", "{" W3 "}", NULL, NULL, false, "e://w:1", 3},
        {"{\"rpc_layer\":\"e\"}", "{" W3 "}", "r", NULL, false, "r://w:1", 3},
        {"{\"cluster\":{" C "}}", "{" W3 "}", "r", NULL, false, "grpc://c:1", 1},
        {NULL, "{" W3 "}", "r", NULL, true, "grpc://w:1", 2},
        {NULL, "", NULL, "{\"cluster\":{" C "}}", false, "grpc://c:1", 1},
        {NULL, "", NULL, NULL, false, "", 0},
    };
    mu_cluster *cluster = parse("{" W2 "}");

    for (size_t i = 0; i < COUNT(rows); i++) {
        const mu_strategy strategy = {
            .user = (void *)(uintptr_t)rows[i].own,
            .spec = rows[i].own == NULL ? NULL : own_spec,
        };
        char expected[64];
        mu_distribute_options o;

        options_of(notes, &o);
        o.strategy = &strategy;
        o.cluster = rows[i].given ? cluster : NULL;
        if (rows[i].found != NULL)
            o.resolver = static_resolver(rows[i].found[0] == '\0' ? NULL : rows[i].found,
                                         rows[i].layer);
        if (rows[i].environment == NULL)
            (void)unsetenv("TF_CONFIG");
        else
            (void)setenv("TF_CONFIG", rows[i].environment, 1);
        notes->count = 0;
        (void)run(&o, NULL);
        (void)snprintf(expected, sizeof expected, "master=\"%s\"", rows[i].master);
        if (strstr(notes->lines[0], expected) == NULL)
            fail_msg("row %zu: %s", i, notes->lines[0]);
        (void)snprintf(expected, sizeof expected, " n=%zu ", rows[i].workers);
        assert_non_null(strstr(notes->lines[0], expected));
        mu_resolver_free(o.resolver);
    }
    mu_cluster_free(cluster);
}

/* One process needs no cluster, so nothing that says which one there is can be wrong. */
TEST_ON(test_local_mode_does_not_look_at_tf_config, struct notes *notes, setup, teardown)
{
    static const char *const broken[] = {
        "{", "{\"cluster\":7}", "{\"environment\":\"moon\"}", "{\"cluster\":{" C "}}"};
    mu_distribute_options o;

    for (size_t i = 0; i < COUNT(broken); i++) {
        options_of(notes, &o);
        o.mode = MU_MODE_LOCAL;
        notes->count = 0;
        (void)setenv("TF_CONFIG", broken[i], 1);
        (void)run(&o, NULL);
        assert_int_equal(notes->count, 1);
    }
}

/* What it does not find is no local run by mistake; who wants one does not ask it. What
 * it calls the master stands, as TF_CONFIG's session_master does. */
TEST_ON(test_resolver, struct notes *notes, setup, teardown)
{
    mu_distribute_options o;
    mu_resolver *resolver = NULL;
    mu_error error;

    assert_int_equal(mu_resolver_new("file", &error, &resolver), 0);
    assert_int_equal(mu_resolver_set(resolver, "path", "/nobody/has/this", &error), 0);
    options_of(notes, &o);
    o.resolver = resolver;
    notes->node_options.resolve_ms = 200;
    assert_int_not_equal(mu_distribute_run(&o, &error, NULL), 0);
    assert_non_null(strstr(error.message, "/nobody/has/this"));
    o.mode = MU_MODE_INDEPENDENT;
    assert_int_not_equal(mu_distribute_run(&o, &error, NULL), 0);
    assert_non_null(strstr(error.message, "/nobody/has/this"));
    assert_int_equal(notes->count, 0);
    o.mode = MU_MODE_LOCAL;
    (void)run(&o, NULL);
    assert_int_equal(notes->count, 1);
    mu_resolver_free(resolver);

    assert_int_equal(mu_resolver_new("tf_config", &error, &resolver), 0);
    (void)setenv("TF_CONFIG",
                 "{\"cluster\":{" C "},\"session_master\":\"tcp://outside:9\"}", 1);
    o.resolver = resolver;
    o.mode = MU_MODE_STANDALONE;
    o.ignore_environment = 1;
    notes->count = 0;
    (void)run(&o, NULL);
    assert_non_null(strstr(notes->lines[0], "master=\"tcp://outside:9\""));
    mu_resolver_free(resolver);

    /* A cluster without a word about this process: a task has to be told. */
    o.resolver = static_resolver("{" W2 "}", NULL);
    o.mode = MU_MODE_INDEPENDENT;
    assert_int_equal(mu_distribute_run(&o, &error, NULL), -MU_EINVALID);
    assert_non_null(strstr(error.message, "there is no task"));
    mu_resolver_free(o.resolver);
}

static const struct {
    const char *environment;
    const char *type;
    int index;
    const char *layer;
    const char *where; /* the option environment */
    int mode;
    int rv;
    const char *words;
} refused[] = {
    {"{", NULL, 0, NULL, NULL, MU_MODE_STANDALONE, -MU_EINVALID, "TF_CONFIG: "},
    {"{\"cluster\":7}", NULL, 0, NULL, NULL, MU_MODE_STANDALONE, -MU_EINVALID,
     "TF_CONFIG: cluster: "},
    {"{\"cluster\":{" C "},\"task\":{\"type\":\"Boss\",\"index\":0}}", NULL, 0, NULL,
     NULL, MU_MODE_INDEPENDENT, -MU_EINVALID, "TF_CONFIG: task.type: "},
    {"{\"cluster\":{" C "},\"task\":{\"type\":\"worker\",\"index\":0}}", NULL, 0, NULL,
     NULL, MU_MODE_INDEPENDENT, -MU_ENOTFOUND, "TF_CONFIG: task.type: "},
    {"{\"cluster\":{" C "}}", NULL, 0, NULL, NULL, MU_MODE_INDEPENDENT, -MU_EINVALID,
     "there is no task"},
    {"{\"cluster\":{" C "}}", "client", 0, NULL, NULL, MU_MODE_INDEPENDENT, -MU_EINVALID,
     "unexpected task type \"client\""},
    {"{\"cluster\":{" W2 "}}", "worker", 2, NULL, NULL, MU_MODE_INDEPENDENT, -MU_ERANGE,
     "index 2"},
    {"{\"cluster\":{" P "}}", NULL, 0, NULL, NULL, MU_MODE_STANDALONE, -MU_EINVALID,
     "nobody leads"},
    {NULL, NULL, 0, NULL, NULL, 9, -MU_EINVALID, "unexpected mode 9"},
    {NULL, "a task type of many letters", 0, NULL, NULL, MU_MODE_LOCAL, -MU_EINVALID,
     "option task_type"},
    {NULL, NULL, 0, "an rpc layer of many letters", NULL, MU_MODE_LOCAL, -MU_EINVALID,
     "option rpc_layer"},
    {NULL, NULL, 0, NULL, "moon", MU_MODE_LOCAL, -MU_EINVALID, "environment \"moon\""},
    {"{\"environment\":\"moon\"}", NULL, 0, NULL, NULL, MU_MODE_STANDALONE, -MU_EINVALID,
     "environment \"moon\""},
};

TEST_ON(test_refused, struct notes *notes, setup, teardown)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        mu_value *results = (mu_value *)notes;
        mu_distribute_options o;
        mu_error error = {0};
        int rv;

        options_of(notes, &o);
        o.mode = refused[i].mode;
        o.task_type = refused[i].type;
        o.task_index = refused[i].index;
        o.rpc_layer = refused[i].layer;
        o.environment = refused[i].where;
        if (refused[i].environment == NULL)
            (void)unsetenv("TF_CONFIG");
        else
            (void)setenv("TF_CONFIG", refused[i].environment, 1);
        rv = mu_distribute_run(&o, &error, &results);
        if (rv != refused[i].rv || strstr(error.message, refused[i].words) == NULL)
            fail_msg("row %zu: %d: %s", i, rv, error.message);
        assert_null(results);
    }
    assert_int_equal(notes->count, 0);
}

TEST_WITH(test_no_function, setup, teardown)
{
    mu_distribute_options o;
    mu_error error = {0};

    options_of(*state, &o);
    o.worker = NULL;
    assert_int_equal(mu_distribute_run(&o, &error, NULL), -MU_EINVALID);
    assert_non_null(strstr(error.message, "no worker function"));
    assert_int_equal(mu_distribute_end(0, NULL), 0);
}

/* A spoilt TF_CONFIG of somebody else does not matter to who does not look at it. */
TEST_ON(test_environment_ignored, struct notes *notes, setup, teardown)
{
    mu_distribute_options o;

    options_of(notes, &o);
    o.ignore_environment = 1;
    (void)setenv("TF_CONFIG", "{", 1);
    (void)run(&o, NULL);
    assert_int_equal(notes->count, 1);
}

TEST_PROGRAM()
