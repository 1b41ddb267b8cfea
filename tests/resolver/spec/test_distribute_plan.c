/* Who runs what: a row for each mode, task and kind of strategy. */
#include "resolver/spec/distribute_plan.h"
#include "tests/support/test.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { TEXT_BYTES = 512 };

#define C "\"chief\":[\"c:1\"]"
#define W2 "\"worker\":[\"w:1\",\"w:2\"]"
#define P "\"ps\":[\"p:1\"]"
#define E "\"evaluator\":[\"e:1\"]"
#define WHOLE "{" C "," W2 "," P "," E "}"
#define WORKERS "{" W2 "," P "}"

/* What a program brings. */
enum { BETWEEN = 1, EVAL = 2, EVAL_STRATEGY = 4, ALL = 6 };

static mu_cluster *parse(const char *json)
{
    mu_cluster *cluster = NULL;
    mu_error error;

    if (mu_cluster_parse(json, strlen(json), "test", &error, &cluster) != 0)
        fail_msg("%s: %s", json, error.message);
    return cluster;
}

static int make(int mode, const mu_cluster *cluster, const char *type, int index,
                unsigned flags, mu_error *error, struct mu__plan *plan)
{
    const struct mu__plan_request request = {
        .mode = mode,
        .cluster = cluster,
        .type = type,
        .index = index,
        .between_graph = (flags & BETWEEN) != 0,
        .has_eval = (flags & EVAL) != 0,
        .has_eval_strategy = (flags & EVAL_STRATEGY) != 0,
    };

    return mu__plan_make(&request, error, plan);
}

/* A plan in a line: its bits, and behind the colon its calls ("!" evaluates, "=" meets
 * the others). */
static void describe(const struct mu__plan *plan, char *out)
{
    static const char *const barriers[] = {"", " threads-meet", " tasks-meet"};
    size_t used = (size_t)snprintf(
        out, TEXT_BYTES, "%s%s%s%s%s%s%s%s%s%s:", plan->local ? " local" : "",
        plan->serves ? " serves" : "", plan->joins ? " joins" : "",
        plan->client ? " client" : "", plan->leads ? " leads" : "",
        plan->threads ? " threads" : "", barriers[plan->barrier],
        (plan->warnings & MU__PLAN_NO_EVAL) != 0 ? " no-eval" : "",
        (plan->warnings & MU__PLAN_NO_EVAL_STRATEGY) != 0 ? " no-eval-strategy" : "",
        (plan->warnings & MU__PLAN_EVAL_LEFT_OUT) != 0 ? " left-out" : "");

    for (size_t i = 0; i < plan->runs_count; i++) {
        char name[64];

        mu__plan_run_name(&plan->runs[i], name, sizeof name);
        used += (size_t)snprintf(out + used, TEXT_BYTES - used, " %s%s%s", name,
                                 plan->runs[i].evaluates ? "!" : "",
                                 plan->runs[i].meets ? "=" : "");
    }
}

#define CHIEF "/job:chief/task:0"
#define WORKER0 "/job:worker/task:0"
#define WORKER1 "/job:worker/task:1"
#define EVALUATOR "/job:evaluator/task:0"

static const struct {
    int mode;
    const char *json;
    const char *type;
    int index;
    unsigned flags;
    const char *plan;
} rows[] = {
    /* no cluster: the mode does not matter */
    {MU_MODE_STANDALONE, "{}", NULL, 0, ALL, " local: worker_fn eval_fn!"},
    {MU_MODE_INDEPENDENT, "{}", "worker", 3, ALL, " local: worker_fn eval_fn!"},
    {MU_MODE_LOCAL, "{}", NULL, 0, 0, " local left-out: worker_fn"},
    {MU_MODE_LOCAL, "{}", NULL, 0, EVAL, " local no-eval-strategy: worker_fn eval_fn!"},
    {MU_MODE_LOCAL, WHOLE, "ps", 0, BETWEEN | ALL, " local: worker_fn eval_fn!"},
    {MU_MODE_CLIENT_WORKER, "{\"worker\":[]}", NULL, 0, BETWEEN,
     " local left-out: worker_fn"},

    /* standalone */
    {MU_MODE_STANDALONE, WHOLE, NULL, 0, BETWEEN | ALL,
     " client threads threads-meet: " CHIEF "= " WORKER0 "= " WORKER1 "= " EVALUATOR "!"},
    {MU_MODE_STANDALONE, WHOLE, "client", 7, BETWEEN,
     " client threads threads-meet no-eval no-eval-strategy: " CHIEF "= " WORKER0
     "= " WORKER1 "= " EVALUATOR "!"},
    {MU_MODE_STANDALONE, WORKERS, "", 0, BETWEEN,
     " client threads threads-meet: " WORKER0 "= " WORKER1 "="},
    {MU_MODE_STANDALONE, WHOLE, NULL, 0, ALL,
     " client threads: worker_fn " EVALUATOR "!"},
    {MU_MODE_STANDALONE, WORKERS, NULL, 0, 0, " client threads: worker_fn"},
    {MU_MODE_STANDALONE, WHOLE, "worker", 1, BETWEEN | ALL, " serves joins:"},
    {MU_MODE_STANDALONE, WHOLE, "ps", 0, ALL, " serves joins:"},
    {MU_MODE_STANDALONE, WHOLE, "evaluator", 0, ALL, " serves joins:"},

    /* independent */
    {MU_MODE_INDEPENDENT, WHOLE, "chief", 0, BETWEEN | ALL,
     " serves leads tasks-meet: " CHIEF "="},
    {MU_MODE_INDEPENDENT, WHOLE, "worker", 0, BETWEEN | ALL,
     " serves tasks-meet: " WORKER0 "="},
    {MU_MODE_INDEPENDENT, WORKERS, "worker", 0, BETWEEN,
     " serves leads tasks-meet: " WORKER0 "="},
    {MU_MODE_INDEPENDENT, WORKERS, "worker", 1, BETWEEN,
     " serves tasks-meet: " WORKER1 "="},
    {MU_MODE_INDEPENDENT, WHOLE, "chief", 0, ALL, " serves leads: worker_fn"},
    {MU_MODE_INDEPENDENT, WHOLE, "worker", 0, ALL, " serves joins:"},
    {MU_MODE_INDEPENDENT, WORKERS, "worker", 0, 0, " serves leads: worker_fn"},
    {MU_MODE_INDEPENDENT, WORKERS, "worker", 1, 0, " serves joins:"},
    {MU_MODE_INDEPENDENT, "{\"worker\":{\"3\":\"a:1\",\"5\":\"b:1\"}}", "worker", 3, 0,
     " serves leads: worker_fn"},
    {MU_MODE_INDEPENDENT, WHOLE, "evaluator", 0, BETWEEN | ALL,
     " serves: " EVALUATOR "!"},
    {MU_MODE_INDEPENDENT, WORKERS, "evaluator", 0, 0,
     " serves no-eval no-eval-strategy: " EVALUATOR "!"},
    {MU_MODE_INDEPENDENT, WHOLE, "ps", 0, BETWEEN | ALL, " serves joins:"},

    /* a client that is a worker */
    {MU_MODE_CLIENT_WORKER, WHOLE, "chief", 0, BETWEEN | ALL,
     " serves client leads threads threads-meet: " CHIEF "= " WORKER0 "= " WORKER1
     "= " EVALUATOR "!"},
    {MU_MODE_CLIENT_WORKER, WORKERS, "worker", 0, 0,
     " serves client leads threads: worker_fn"},
    {MU_MODE_CLIENT_WORKER, WHOLE, "worker", 0, BETWEEN, " serves joins:"},
    {MU_MODE_CLIENT_WORKER, WHOLE, "ps", 0, BETWEEN, " serves joins:"},
    {MU_MODE_CLIENT_WORKER, WHOLE, "evaluator", 0, BETWEEN, " serves joins:"},
    {MU_MODE_CLIENT_WORKER, WORKERS, "evaluator", 2, ALL,
     " serves: /job:evaluator/task:2!"},
};

TEST(test_plans)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        mu_cluster *cluster = parse(rows[i].json);
        struct mu__plan plan;
        char text[TEXT_BYTES];
        mu_error error = {0};

        if (make(rows[i].mode, cluster, rows[i].type, rows[i].index, rows[i].flags,
                 &error, &plan) != 0)
            fail_msg("row %zu: %s", i, error.message);
        describe(&plan, text);
        if (strcmp(text, rows[i].plan) != 0)
            fail_msg("row %zu:\nexpected%s\ngot     %s", i, rows[i].plan, text);
        mu__plan_done(&plan);
        mu_cluster_free(cluster);
    }
}

static const struct {
    int mode;
    const char *json;
    const char *type;
    int index;
    int rv;
    const char *words;
} refused[] = {
    {-1, WHOLE, NULL, 0, -MU_EINVALID, "unexpected mode -1"},
    {4, "{}", NULL, 0, -MU_EINVALID, "unexpected mode 4"},
    {MU_MODE_INDEPENDENT, WHOLE, NULL, 0, -MU_EINVALID, "there is no task"},
    {MU_MODE_INDEPENDENT, WHOLE, "", 0, -MU_EINVALID, "there is no task"},
    {MU_MODE_CLIENT_WORKER, WHOLE, NULL, 0, -MU_EINVALID, "there is no task"},
    {MU_MODE_INDEPENDENT, WHOLE, "client", 0, -MU_EINVALID,
     "unexpected task type \"client\""},
    {MU_MODE_CLIENT_WORKER, WHOLE, "client", 0, -MU_EINVALID,
     "unexpected task type \"client\""},
    {MU_MODE_INDEPENDENT, WHOLE, "Boss", 0, -MU_EINVALID, "not a task type"},
    {MU_MODE_STANDALONE, WHOLE, "Boss", 0, -MU_EINVALID, "not a task type"},
    {MU_MODE_INDEPENDENT, WHOLE, "worker", 2, -MU_ERANGE, "index 2"},
    {MU_MODE_STANDALONE, WHOLE, "worker", 2, -MU_ERANGE, "index 2"},
    {MU_MODE_INDEPENDENT, WORKERS, "chief", 0, -MU_ENOTFOUND, "no task of type"},
    {MU_MODE_STANDALONE, "{" P "}", NULL, 0, -MU_EINVALID, "nobody leads"},
    {MU_MODE_STANDALONE, "{" P "," E "}", NULL, 0, -MU_EINVALID, "nobody leads"},
    {MU_MODE_STANDALONE, "{\"chief\":[\"a:1\",\"b:1\"]}", NULL, 0, -MU_EINVALID,
     "\"chief\" has 2 tasks"},
};

TEST(test_refused)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        mu_cluster *cluster = parse(refused[i].json);
        struct mu__plan plan = {.warnings = 77};
        mu_error error = {0};
        int rv = make(refused[i].mode, cluster, refused[i].type, refused[i].index,
                      BETWEEN, &error, &plan);

        if (rv != refused[i].rv || strstr(error.message, refused[i].words) == NULL)
            fail_msg("row %zu: %d: %s", i, rv, error.message);
        assert_int_equal(plan.warnings, 77);
        mu_cluster_free(cluster);
    }
}

TEST(test_too_many_threads)
{
    mu_cluster *cluster = mu_cluster_new();
    struct mu__plan plan = {0};
    mu_error error = {0};

    for (int i = 0; i < MU__PLAN_RUNS_MAX; i++)
        assert_int_equal(mu_cluster_add(cluster, "worker", i, "h:0", NULL), 0);
    assert_int_equal(make(MU_MODE_STANDALONE, cluster, NULL, 0, BETWEEN, &error, &plan),
                     0);
    assert_int_equal(plan.runs_count, MU__PLAN_RUNS_MAX);
    mu__plan_done(&plan);
    assert_int_equal(mu_cluster_add(cluster, "chief", 0, "h:0", NULL), 0);
    assert_int_equal(make(MU_MODE_STANDALONE, cluster, NULL, 0, BETWEEN, &error, &plan),
                     -MU_EEXHAUSTED);
    assert_non_null(strstr(error.message, "more than 4096"));
    assert_int_equal(
        make(MU_MODE_INDEPENDENT, cluster, "worker", 9, BETWEEN, &error, &plan), 0);
    mu__plan_done(&plan);
    mu_cluster_free(cluster);
}

/* ---- what a call is told ---- */

static const struct {
    const char *json;
    const char *layer;
    const char *type;
    int index;
    const char *target;
    bool chief;
} targets[] = {
    {"{}", "grpc", NULL, -1, "", true},
    {"{}", "grpc", "worker", 4, "", true},
    {WHOLE, "grpc", NULL, -1, "grpc://c:1", true},
    {WORKERS, "grpc", NULL, -1, "grpc://w:1", true},
    {WORKERS, "", NULL, -1, "w:1", true},
    {WORKERS, "grpc+verbs", "worker", 1, "grpc+verbs://w:2", false},
    {WORKERS, "grpc", "worker", 0, "grpc://w:1", true},
    {WHOLE, "grpc", "worker", 0, "grpc://w:1", false},
    {WHOLE, "grpc", "chief", 0, "grpc://c:1", true},
    {WHOLE, "grpc", "ps", 0, "grpc://p:1", false},
    {WHOLE, "grpc", "evaluator", 0, "", true},
    {WORKERS, "grpc", "worker", 9, "", false},
    {"{" P "}", "grpc", NULL, -1, "", true},
    {"{\"worker\":{\"6\":\"tcp://[::1]:7\"}}", "grpc", NULL, -1, "grpc://[::1]:7", true},
};

TEST(test_targets)
{
    for (size_t i = 0; i < COUNT(targets); i++) {
        mu_cluster *cluster = parse(targets[i].json);
        char target[300] = "x";

        mu__plan_target(cluster, targets[i].layer, targets[i].type, targets[i].index,
                        target, sizeof target);
        assert_string_equal(target, targets[i].target);
        assert_int_equal(mu__plan_is_chief(cluster, targets[i].type, targets[i].index),
                         targets[i].chief);
        mu_cluster_free(cluster);
    }
}

TEST(test_tasks)
{
    mu_cluster *whole = parse(WHOLE);
    mu_cluster *sparse = parse("{\"worker\":{\"3\":\"a:1\",\"999999\":\"b:1\"}}");
    char *text = mu__plan_tasks(whole);

    assert_string_equal(text, "chief:0,worker:0,worker:1");
    free(text);
    text = mu__plan_tasks(sparse);
    assert_string_equal(text, "worker:3,worker:999999");
    free(text);
    mu_cluster_free(whole);
    mu_cluster_free(sparse);
}

/* Who has to hear of the end from the leading task. */
TEST(test_joining)
{
    static const struct {
        int mode;
        unsigned flags;
        const char *json;
        const char *type;
        const char *joining;
    } leaders[] = {
        {MU_MODE_INDEPENDENT, BETWEEN, WHOLE, "chief", "ps:0"},
        {MU_MODE_INDEPENDENT, 0, WHOLE, "chief", "ps:0,worker:0,worker:1"},
        {MU_MODE_INDEPENDENT, 0, WORKERS, "worker", "ps:0,worker:1"},
        {MU_MODE_INDEPENDENT, BETWEEN, "{" W2 "}", "worker", ""},
        {MU_MODE_CLIENT_WORKER, BETWEEN, WHOLE, "chief",
         "evaluator:0,ps:0,worker:0,worker:1"},
        {MU_MODE_CLIENT_WORKER, 0, "{" C ",\"client\":[\"x:1\"]}", "chief", ""},
    };

    for (size_t i = 0; i < COUNT(leaders); i++) {
        mu_cluster *cluster = parse(leaders[i].json);
        struct mu__plan plan;
        char *joining;

        assert_int_equal(make(leaders[i].mode, cluster, leaders[i].type, 0,
                              leaders[i].flags, NULL, &plan),
                         0);
        assert_true(plan.leads);
        joining = mu__plan_joining(&plan, cluster, leaders[i].type, 0);
        assert_string_equal(joining, leaders[i].joining);
        free(joining);
        mu__plan_done(&plan);
        mu_cluster_free(cluster);
    }
}

TEST_PROGRAM()
