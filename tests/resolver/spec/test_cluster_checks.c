/* Cluster specs: whether they hold together, and who is in them. */
#include "tests/resolver/spec/cluster_fixture.h"

#include <stdio.h>
#include <stdlib.h>

/* Which task may be part of which cluster. */
static const struct {
    const char *what;
    const char *json;
    const char *type;
    int index;
    int rv;
    const char *parts[PARTS_MAX];
} checks[] = {
    {"cluster alone", "{\"worker\":[\"a:1\"]}", NULL, 0, 0, {0}},
    {"no cluster", "{}", NULL, 0, 0, {0}},
    {"chief", "{\"chief\":[\"a:1\"]}", "chief", 0, 0, {0}},
    {"sparse", "{\"ps\":{\"7\":\"a:1\"}}", "ps", 7, 0, {0}},
    {"evaluator inside", "{\"evaluator\":[\"a:1\"]}", "evaluator", 0, 0, {0}},
    {"evaluator outside", "{\"worker\":[\"a:1\"]}", "evaluator", 0, 0, {0}},
    {"client outside", "{\"worker\":[\"a:1\"]}", "client", 12, 0, {0}},
    {"two chiefs",
     "{\"chief\":[\"a:1\",\"b:1\"]}",
     NULL,
     0,
     -MU_EINVALID,
     {"\"chief\" has 2 tasks", "expected at most 1"}},
    {"chief 1",
     "{\"chief\":{\"1\":\"a:1\"}}",
     NULL,
     0,
     -MU_EINVALID,
     {"\"chief\" has index 1", "expected index 0"}},
    {"two evaluators",
     "{\"evaluator\":[\"a:1\",\"b:1\"]}",
     "evaluator",
     0,
     -MU_EINVALID,
     {"\"evaluator\" has 2 tasks", "expected at most 1"}},
    {"second evaluator outside", "{\"worker\":[\"a:1\"]}", "evaluator", 1, 0, {0}},
    {"evaluator beside the one inside",
     "{\"evaluator\":[\"a:1\"]}",
     "evaluator",
     1,
     -MU_ERANGE,
     {"index 1", "\"evaluator\" with its 1 task;", "expected 0"}},
    {"client not among them",
     "{\"client\":[\"a:1\"]}",
     "client",
     1,
     -MU_ERANGE,
     {"index 1", "\"client\" with its 1 task;", "expected 0"}},
    {"unknown type", "{}", "Worker", 0, -MU_EINVALID, {"\"Worker\"", "mean \"worker\"?"}},
    {"job without tasks",
     "{\"worker\":[],\"ps\":[\"a:1\"],\"chief\":[\"b:1\"]}",
     "worker",
     0,
     -MU_ENOTFOUND,
     {"\"worker\"", "expected", "chief (1), ps (1)"}},
    {"empty cluster", "{}", "worker", 0, -MU_ENOTFOUND, {"\"worker\"", "no task at all"}},
    {"negative", "{\"ps\":[\"a:1\"]}", "ps", -1, -MU_ERANGE, {"index -1", "0 to 999999"}},
    {"beyond a dense job",
     "{\"worker\":[\"a:1\",\"b:1\",\"c:1\"]}",
     "worker",
     3,
     -MU_ERANGE,
     {"index 3", "\"worker\" with its 3 tasks", "expected 0 to 2"}},
    {"in a gap",
     "{\"ps\":{\"0\":\"a:1\",\"4\":\"b:1\",\"9\":\"c:1\"}}",
     "ps",
     5,
     -MU_ERANGE,
     {"index 5", "\"ps\" with its 3 tasks", "expected 0, 4, 9"}},
};

TEST(test_checks)
{
    for (size_t i = 0; i < COUNT(checks); i++) {
        mu_cluster *cluster = parse(checks[i].json);
        mu_error error = {0};
        int rv = mu_cluster_validate(cluster, checks[i].type, checks[i].index, &error);

        check_error(checks[i].what, rv, &error, checks[i].rv, checks[i].parts);
        assert_int_equal(mu_cluster_validate(cluster, checks[i].type, checks[i].index,
                                             NULL),
                         checks[i].rv);
        mu_cluster_free(cluster);
    }
}

/* A long list of indices is cut, and still tells the last. */
TEST(test_long_list_of_indices)
{
    mu_cluster *cluster = mu_cluster_new();
    mu_error error;

    for (int i = 0; i < 100; i++) {
        char address[32];

        (void)snprintf(address, sizeof address, "h%d:1", i);
        assert_int_equal(mu_cluster_add(cluster, "ps", 999999 - 2 * i, address, NULL), 0);
    }
    assert_int_equal(mu_cluster_validate(cluster, "ps", 1, &error), -MU_ERANGE);
    assert_non_null(strstr(error.message, "expected 999801, 999803, "));
    assert_non_null(strstr(error.message, ", ... 999999"));
    mu_cluster_free(cluster);
}

static const struct {
    const char *json;
    const char *type;
    int index;
    int chief;
} chiefs[] = {
    {"{\"chief\":[\"a:1\"],\"worker\":[\"b:1\"]}", "chief", 0, 1},
    {"{\"chief\":[\"a:1\"],\"worker\":[\"b:1\"]}", "worker", 0, 0},
    {"{\"worker\":[\"a:1\",\"b:1\"]}", "worker", 0, 1},
    {"{\"worker\":[\"a:1\",\"b:1\"]}", "worker", 1, 0},
    {"{\"worker\":[\"a:1\"],\"ps\":[\"b:1\"]}", "ps", 0, 0},
    {"{\"worker\":[\"a:1\"]}", "evaluator", 0, 1},
    {"{\"worker\":[\"a:1\"]}", "client", 0, 0},
    {"{\"worker\":[\"a:1\"]}", "nobody", 0, 0},
};

TEST(test_who_is_chief)
{
    for (size_t i = 0; i < COUNT(chiefs); i++) {
        mu_cluster *cluster = parse(chiefs[i].json);

        assert_int_equal(mu_cluster_is_chief(cluster, chiefs[i].type, chiefs[i].index),
                         chiefs[i].chief);
        mu_cluster_free(cluster);
    }
}

static const struct {
    const char *name;
    const char *type;
} suggestions[] = {
    {"workers", "worker"},
    {"Worker", "worker"},
    {"WORKER", "worker"},
    {"worker0", "worker"},
    {"wroker", "worker"},
    {"ps_hosts", "ps"},
    {"pss", "ps"},
    {"PS", "ps"},
    {"worker_hosts", "worker"},
    {"parameter_server", "ps"},
    {"master", "chief"},
    {"Master", "chief"},
    {"chef", "chief"},
    {"cheif", "chief"},
    {"eval", "evaluator"},
    {"evaluater", "evaluator"},
    {"clients", "client"},
    {"coordinator", NULL},
    {"banana", NULL},
    {"", NULL},
    {"tpu_worker", NULL},
    {LABEL_64, NULL},
};

/* Types of a program's own: in the order of the alphabet among the others, in every form
 * that a spec has. */
TEST(test_types_of_ones_own)
{
    static const char json[] = "{\"coordinator\":[\"a:1\"],\"custom\":{\"3\":\"b:1\"},"
                               "\"ps\":[\"c:1\"],\"tpu_worker\":[\"d:1\",\"e:1\"]}";
    mu_cluster *cluster = parse(json);
    mu_cluster *copy = mu_cluster_copy(cluster);
    char *text = mu_cluster_to_json(copy);
    mu_error error;

    assert_string_equal(text, json);
    free(text);
    assert_true(mu_cluster_equal(cluster, copy));
    assert_string_equal(mu_cluster_job_at(cluster, 1), "custom");
    assert_null(mu_cluster_job_at(cluster, 4));
    assert_int_equal(mu_cluster_task_count(cluster, "tpu_worker"), 2);
    assert_int_equal(mu_cluster_validate(cluster, "tpu_worker", 1, &error), 0);
    assert_int_equal(mu_cluster_validate(cluster, "other", 0, &error), -MU_ENOTFOUND);
    assert_string_equal(mu_cluster_address(cluster, "custom", 3), "b:1");
    mu_cluster_free(copy);
    mu_cluster_free(cluster);
}

/* A type that no task came in with does not count. */
TEST(test_bound_of_types)
{
    mu_cluster *cluster = mu_cluster_new();
    char type[16];
    char address[16];
    mu_error error;

    for (int i = 0; i < 2 * MU_CLUSTER_TYPES_MAX; i++) {
        (void)snprintf(type, sizeof type, "bad%d", i);
        assert_int_equal(mu_cluster_add(cluster, type, 0, "x", &error), -MU_EINVALID);
    }
    for (int i = 0; i < MU_CLUSTER_TYPES_MAX; i++) {
        (void)snprintf(type, sizeof type, "type%d", i);
        (void)snprintf(address, sizeof address, "a:%d", i + 1);
        assert_int_equal(mu_cluster_add(cluster, type, 0, address, &error), 0);
    }
    assert_int_equal(mu_cluster_add(cluster, "another", 0, "b:1", &error),
                     -MU_EEXHAUSTED);
    assert_non_null(strstr(error.message, "32 task types already"));
    mu_cluster_free(cluster);
}

TEST(test_suggestions)
{
    for (size_t i = 0; i < COUNT(suggestions); i++) {
        const char *type = mu__task_type_suggest(suggestions[i].name);

        if (type != NULL)
            assert_false(mu__task_type_is_valid(suggestions[i].name));
        if (suggestions[i].type == NULL && type != NULL)
            fail_msg("%s -> %s", suggestions[i].name, type);
        if (suggestions[i].type != NULL && type == NULL)
            fail_msg("%s -> nothing", suggestions[i].name);
        if (type != NULL)
            assert_string_equal(type, suggestions[i].type);
    }
    assert_true(mu__task_type_is_valid("evaluator"));
}

/* Readers take NULL for an empty spec. */
TEST(test_null_is_empty)
{
    mu_cluster *copy = mu_cluster_copy(NULL);
    char *json = mu_cluster_to_json(NULL);
    const char *type;
    const char *address;
    int index;

    assert_int_equal(mu_cluster_task_count(NULL, NULL), 0);
    assert_int_equal(mu_cluster_task_count(NULL, "ps"), 0);
    assert_null(mu_cluster_address(NULL, "ps", 0));
    assert_null(mu_cluster_url(NULL, "ps", 0));
    assert_int_equal(mu_cluster_task_at(NULL, 0, &type, &index, &address), -MU_ERANGE);
    assert_int_equal(mu_cluster_validate(NULL, NULL, 0, NULL), 0);
    assert_int_equal(mu_cluster_validate(NULL, "ps", 0, NULL), -MU_ENOTFOUND);
    assert_int_equal(mu_cluster_is_chief(NULL, "worker", 0), 1);
    assert_string_equal(json, "{}");
    assert_int_equal(mu_cluster_task_count(copy, NULL), 0);
    free(json);
    mu_cluster_free(copy);
    mu_cluster_free(NULL);
}

/* Only a worker may join that the cluster does not list, and only where a chief is. */
TEST(test_who_may_join)
{
    mu_cluster *cluster = parse("{\"chief\":[\"a:1\"],\"worker\":[\"a:2\"]}");
    mu_cluster *chiefless = parse("{\"worker\":[\"a:2\"]}");
    mu_cluster *wrong = parse("{\"chief\":[\"a:1\",\"a:2\"]}");

    assert_true(mu__cluster_may_join(cluster, "worker", 1));
    assert_true(mu__cluster_may_join(cluster, "worker", MU_CLUSTER_INDEX_MAX));
    assert_false(mu__cluster_may_join(cluster, "worker", MU_CLUSTER_INDEX_MAX + 1));
    assert_false(mu__cluster_may_join(cluster, "worker", -1));
    assert_false(mu__cluster_may_join(cluster, "ps", 1));
    assert_false(mu__cluster_may_join(cluster, "banana", 1));
    assert_false(mu__cluster_may_join(chiefless, "worker", 1));
    assert_false(mu__cluster_may_join(wrong, "worker", 1));
    assert_false(mu__cluster_may_join(NULL, "worker", 1));
    mu_cluster_free(cluster);
    mu_cluster_free(chiefless);
    mu_cluster_free(wrong);
}

/* Asking for what is not there. */
TEST(test_unknown_tasks)
{
    mu_cluster *cluster = parse("{\"ps\":{\"3\":\"a:1\"}}");

    assert_string_equal(mu_cluster_address(cluster, "ps", 3), "a:1");
    assert_null(mu_cluster_address(cluster, "ps", 0));
    assert_null(mu_cluster_address(cluster, "ps", -1));
    assert_null(mu_cluster_address(cluster, "banana", 3));
    assert_int_equal(mu_cluster_task_count(cluster, "banana"), 0);
    assert_int_equal(mu_cluster_task_count(cluster, "worker"), 0);
    mu_cluster_free(cluster);
}

TEST_PROGRAM()
