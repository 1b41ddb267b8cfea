/* The rules of a cluster: who leads, who counts, equality, gaps. Each row and error. */
#include "tests/support/test.h"

#include <muster/compat/cluster_rules.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { UNTOUCHED = 77 };

static mu_cluster *parse(const char *json)
{
    mu_cluster *cluster = NULL;
    mu_error error;

    if (mu_cluster_parse(json, strlen(json), "test", &error, &cluster) != 0)
        fail_msg("%s: %s", json, error.message);
    return cluster;
}

/* Clusters by a letter for each task: c chief, w worker, p ps, e evaluator. */
#define C "\"chief\":[\"c:1\"]"
#define CC "\"chief\":[\"c:1\",\"c:2\"]"
#define W3 "\"worker\":[\"w:1\",\"w:2\",\"w:3\"]"
#define W47 "\"worker\":{\"4\":\"w:4\",\"7\":\"w:7\"}"
#define P "\"ps\":[\"p:1\",\"p:2\"]"
#define P5 "\"ps\":{\"5\":\"p:5\"}"
#define E "\"evaluator\":[\"e:1\"]"
#define EE "\"evaluator\":[\"e:1\",\"e:2\"]"

/* ---- leaders ---- */

static const struct {
    const char *json;
    const char *type;
    int rv;
    const char *collective;
    const char *coordination;
    const char *host;
} leaders[] = {
    {"{}", NULL, 0, "", "", ""},
    {"{\"worker\":[]}", "worker", 0, "", "", ""},
    {"{" C "," W3 "," P "}", "worker", 0, "/job:chief/task:0", "/job:ps/task:0",
     "/job:chief/task:0"},
    {"{" C "," W3 "}", "chief", 0, "/job:chief/task:0", "/job:chief/task:0",
     "/job:chief/task:0"},
    {"{" W3 "," P "}", "ps", 0, "/job:worker/task:0", "/job:ps/task:0", "/job:ps/task:0"},
    {"{" W3 "}", NULL, 0, "/job:worker/task:0", "/job:worker/task:0",
     "/job:worker/task:0"},
    {"{" W47 "," P5 "}", "worker", 0, "/job:worker/task:4", "/job:ps/task:5",
     "/job:ps/task:5"},
    {"{" C "," W3 "," E "}", "evaluator", 0, "", "/job:chief/task:0",
     "/job:chief/task:0"},
    {"{" P "}", NULL, -MU_EINVALID, NULL, "/job:ps/task:0", "/job:ps/task:0"},
    {"{" E "}", NULL, -MU_EINVALID, NULL, NULL, NULL},
    {"{" E "}", "evaluator", 0, "", NULL, NULL},
    {"{" CC "}", NULL, -MU_EINVALID, NULL, NULL, NULL},
    {"{" W3 "," EE "}", NULL, -MU_EINVALID, NULL, NULL, NULL},
    {"{" W3 "}", "wroker", -MU_EINVALID, NULL, "/job:worker/task:0",
     "/job:worker/task:0"},
};

/* Expected NULL: refused with words, and nothing was written. */
static void check_leader(int rv, const char *task, const char *expected,
                         const mu_error *error, const char *json)
{
    if (expected == NULL) {
        assert_int_equal(rv, -MU_EINVALID);
        assert_string_equal(task, "untouched");
        assert_true(strlen(error->message) > 10);
        return;
    }
    if (rv != 0)
        fail_msg("%s: %s", json, error->message);
    assert_string_equal(task, expected);
}

TEST(test_leaders)
{
    for (size_t i = 0; i < COUNT(leaders); i++) {
        mu_cluster *cluster = parse(leaders[i].json);
        char task[MU_CLUSTER_TASK_BYTES] = "untouched";
        mu_error error = {0};
        int rv = mu_cluster_collective_leader(cluster, leaders[i].type, &error, task);

        assert_int_equal(rv, leaders[i].rv);
        check_leader(rv, task, leaders[i].collective, &error, leaders[i].json);
        (void)snprintf(task, sizeof task, "untouched");
        rv = mu_cluster_coordination_leader(cluster, &error, task);
        check_leader(rv, task, leaders[i].coordination, &error, leaders[i].json);
        (void)snprintf(task, sizeof task, "untouched");
        rv = mu_cluster_service_host(cluster, &error, task);
        check_leader(rv, task, leaders[i].host, &error, leaders[i].json);
        mu_cluster_free(cluster);
    }
}

TEST(test_nobody_leads_nothing)
{
    char task[MU_CLUSTER_TASK_BYTES] = "x";

    assert_int_equal(mu_cluster_collective_leader(NULL, NULL, NULL, task), 0);
    assert_string_equal(task, "");
}

/* ---- counts and numbers ---- */

static const struct {
    const char *json;
    const char *type;
    int index;
    int count_rv;
    size_t count; /* of mu_cluster_worker_count */
    int id_rv;
    int id; /* of mu_cluster_id_in_cluster */
    int chief_rv;
    int chief;
} rows[] = {
    {"{" C "," W3 "," P "}", "chief", 0, 0, 4, 0, 0, 0, 1},
    {"{" C "," W3 "," P "}", "worker", 0, 0, 4, 0, 1, 0, 0},
    {"{" C "," W3 "," P "}", "worker", 2, 0, 4, 0, 3, 0, 0},
    {"{" W3 "," P "}", "worker", 0, 0, 3, 0, 0, 0, 1},
    {"{" W3 "," P "}", "worker", 2, 0, 3, 0, 2, 0, 0},
    {"{" C "," W47 "}", "worker", 7, 0, 3, 0, 8, 0, 0},
    {"{" C "," W47 "}", "worker", 5, 0, 3, -MU_ERANGE, 0, -MU_ERANGE, 0},
    {"{" W3 "," E "}", "evaluator", 0, 0, 1, 0, 0, 0, 1},
    {"{" W3 "}", "evaluator", 0, 0, 1, 0, 0, 0, 1},
    {"{" W3 "}", "evaluator", 3, 0, 1, 0, 3, 0, 1},
    {"{" W3 "," P "}", "ps", 0, -MU_EINVALID, 0, -MU_EINVALID, 0, 0, 0},
    {"{" W3 "," P "}", "client", 0, -MU_EINVALID, 0, -MU_EINVALID, 0, 0, 0},
    {"{" W3 "," P "}", "chief", 0, -MU_ENOTFOUND, 0, -MU_ENOTFOUND, 0, -MU_ENOTFOUND, 0},
    {"{" C "," P "}", "worker", 0, -MU_ENOTFOUND, 0, -MU_ENOTFOUND, 0, -MU_ENOTFOUND, 0},
    {"{}", "worker", 0, -MU_ENOTFOUND, 0, -MU_ENOTFOUND, 0, -MU_ENOTFOUND, 0},
    {"{" W3 "," P "}", "worker", 3, 0, 3, -MU_ERANGE, 0, -MU_ERANGE, 0},
    {"{" W3 "," P "}", "worker", -1, 0, 3, -MU_ERANGE, 0, -MU_ERANGE, 0},
    {"{" CC "," W3 "}", "worker", 0, -MU_EINVALID, 0, -MU_EINVALID, 0, -MU_EINVALID, 0},
    {"{" W3 "}", "wroker", 0, -MU_EINVALID, 0, -MU_EINVALID, 0, -MU_EINVALID, 0},
    {"{" W3 "}", "boss", 0, -MU_EINVALID, 0, -MU_EINVALID, 0, -MU_ENOTFOUND, 0},
    {"{" W3 "}", "", 0, -MU_EINVALID, 0, -MU_EINVALID, 0, -MU_EINVALID, 0},
    {"{" W3 "}", NULL, 0, -MU_EINVALID, 0, -MU_EINVALID, 0, -MU_EINVALID, 0},
};

TEST(test_counts)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        mu_cluster *cluster = parse(rows[i].json);
        size_t count = UNTOUCHED;
        int id = UNTOUCHED;
        int chief = UNTOUCHED;
        mu_error error = {0};

        assert_int_equal(mu_cluster_worker_count(cluster, rows[i].type, &error, &count),
                         rows[i].count_rv);
        assert_int_equal(count, rows[i].count_rv == 0 ? rows[i].count : UNTOUCHED);
        assert_int_equal(mu_cluster_id_in_cluster(cluster, rows[i].type, rows[i].index,
                                                  &error, &id),
                         rows[i].id_rv);
        assert_int_equal(id, rows[i].id_rv == 0 ? rows[i].id : UNTOUCHED);
        assert_int_equal(mu_cluster_check_chief(cluster, rows[i].type, rows[i].index,
                                                &error, &chief),
                         rows[i].chief_rv);
        assert_int_equal(chief, rows[i].chief_rv == 0 ? rows[i].chief : UNTOUCHED);
        mu_cluster_free(cluster);
    }
}

TEST(test_words)
{
    mu_cluster *cluster = parse("{" W3 "," P "}");
    mu_error error = {0};
    size_t count;

    (void)mu_cluster_worker_count(cluster, "ps", &error, &count);
    assert_string_equal(error.message,
                        "a task of type \"ps\" has no number among those that work; "
                        "expected chief, worker or evaluator");
    (void)mu_cluster_worker_count(cluster, "", &error, &count);
    assert_non_null(strstr(error.message, "there is no task type"));
    (void)mu_cluster_worker_count(cluster, "worekr", &error, &count);
    assert_non_null(strstr(error.message, "did you mean \"worker\"?"));
    mu_cluster_free(cluster);
}

TEST(test_job_count)
{
    mu_cluster *cluster = parse("{" C "," W47 "}");
    size_t count = UNTOUCHED;
    mu_error error;

    assert_int_equal(mu_cluster_job_count(cluster, "worker", &error, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(mu_cluster_job_count(cluster, "ps", &error, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(mu_cluster_job_count(cluster, "boss", &error, &count), 0);
    assert_int_equal(count, 0);
    count = UNTOUCHED;
    assert_int_equal(mu_cluster_job_count(cluster, "", &error, &count), -MU_EINVALID);
    assert_int_equal(mu_cluster_job_count(cluster, NULL, &error, &count), -MU_EINVALID);
    assert_int_equal(count, UNTOUCHED);
    mu_cluster_free(cluster);
}

/* ---- the whole ---- */

static const struct {
    const char *a;
    const char *b;
    int equal;
} pairs[] = {
    {"{}", "{}", 1},
    {"{\"worker\":[]}", "{}", 1},
    {"{" C "," W3 "}", "{" W3 "," C "}", 1},
    {"{\"ps\":[\"a:1\"]}", "{\"ps\":{\"0\":\"a:1\"}}", 1},
    {"{\"ps\":[\"Host:1\"]}", "{\"ps\":[\"tcp://host:1\"]}", 1},
    {"{\"ps\":[\"a:1\"]}", "{\"ps\":{\"1\":\"a:1\"}}", 0},
    {"{\"ps\":[\"a:1\"]}", "{\"ps\":[\"a:2\"]}", 0},
    {"{\"ps\":[\"a:1\"]}", "{\"worker\":[\"a:1\"]}", 0},
    {"{\"ps\":[\"a:1\",\"a:2\"]}", "{\"ps\":[\"a:1\"]}", 0},
    {"{\"ps\":[\"a:1\"]}", "{}", 0},
    {"{\"ps\":[\"a:1\",\"a:2\"]}", "{\"ps\":[\"a:2\",\"a:1\"]}", 0},
};

TEST(test_equal)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        mu_cluster *a = parse(pairs[i].a);
        mu_cluster *b = parse(pairs[i].b);

        if (mu_cluster_equal(a, b) != pairs[i].equal)
            fail_msg("%s and %s", pairs[i].a, pairs[i].b);
        assert_int_equal(mu_cluster_equal(b, a), pairs[i].equal);
        assert_true(mu_cluster_equal(a, a));
        assert_int_equal(mu_cluster_equal(a, NULL), mu_cluster_is_empty(a));
        mu_cluster_free(a);
        mu_cluster_free(b);
    }
    assert_true(mu_cluster_equal(NULL, NULL));
}

TEST(test_jobs_are_sorted)
{
    mu_cluster *cluster = parse("{" W3 "," P5 "," C ",\"evaluator\":[]}");

    assert_string_equal(mu_cluster_job_at(cluster, 0), "chief");
    assert_string_equal(mu_cluster_job_at(cluster, 1), "ps");
    assert_string_equal(mu_cluster_job_at(cluster, 2), "worker");
    assert_null(mu_cluster_job_at(cluster, 3));
    assert_null(mu_cluster_job_at(NULL, 0));
    mu_cluster_free(cluster);
}

TEST(test_empty)
{
    mu_cluster *empty = parse("{\"worker\":[],\"ps\":{}}");
    mu_cluster *some = parse("{" P5 "}");

    assert_true(mu_cluster_is_empty(NULL));
    assert_true(mu_cluster_is_empty(empty));
    assert_false(mu_cluster_is_empty(some));
    mu_cluster_free(empty);
    mu_cluster_free(some);
}

TEST(test_gaps)
{
    mu_cluster *cluster = parse("{" W47 "," P "}");

    assert_int_equal(mu_cluster_job_end(cluster, "worker"), 8);
    assert_int_equal(mu_cluster_job_end(cluster, "ps"), 2);
    assert_int_equal(mu_cluster_job_end(cluster, "chief"), 0);
    assert_int_equal(mu_cluster_job_end(NULL, "ps"), 0);
    for (int i = 0; i < 8; i++) {
        const char *address = mu_cluster_address(cluster, "worker", i);

        if (i == 4)
            assert_string_equal(address, "w:4");
        else if (i == 7)
            assert_string_equal(address, "w:7");
        else
            assert_null(address);
    }
    mu_cluster_free(cluster);
}

TEST(test_split)
{
    mu_cluster *whole = parse("{" C "," W47 "," E "}");
    mu_cluster *main_part = parse("{" C "," W47 "}");
    mu_cluster *own_part = parse("{" E "}");
    static const char *const others[] = {"chief", "worker", "ps", "client", NULL};

    for (size_t i = 0; i < COUNT(others); i++) {
        mu_cluster *part = mu_cluster_split(whole, others[i]);

        assert_true(mu_cluster_equal(part, main_part));
        mu_cluster_free(part);
    }
    mu_cluster_free(whole);
    whole = mu_cluster_split(main_part, "evaluator");
    assert_true(mu_cluster_is_empty(whole));
    mu_cluster_free(whole);
    whole = mu_cluster_split(own_part, "evaluator");
    assert_true(mu_cluster_equal(whole, own_part));
    mu_cluster_free(whole);
    mu_cluster_free(main_part);
    mu_cluster_free(own_part);
}

TEST_PROGRAM()
