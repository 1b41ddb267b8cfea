/* Who may host the coordination service and whom it coordinates, by rows. */
#include "node/member/service_options.h"
#include "tests/support/test.h"

static mu_cluster *parse(const char *json)
{
    mu_cluster *cluster = NULL;
    mu_error error = {0};

    if (mu_cluster_parse(json, strlen(json), "test", &error, &cluster) != 0)
        fail_msg("%s", error.message);
    return cluster;
}

static const char large[] =
    "{\"chief\": [\"a:1\"], \"ps\": [\"b:1\", \"b:2\"],"
    " \"worker\": [\"c:1\", \"c:2\", \"c:3\"], \"evaluator\": [\"d:1\"]}";
static const char sparse[] =
    "{\"ps\": {\"1\": \"b:1\"}, \"worker\": {\"0\": \"c:1\", \"7\": \"c:2\"}}";

TEST(test_hosts)
{
    static const struct {
        const char *cluster;
        const char *text;
        const char *hosts;
        size_t count;
    } rows[] = {
        {large, NULL, "chief:0", 1},
        {"{\"ps\": [\"b:1\"], \"worker\": [\"c:1\"]}", NULL, "ps:0", 1},
        {"{\"worker\": [\"c:1\"]}", NULL, "worker:0", 1},
        {sparse, NULL, "worker:0", 1},
        {"{\"evaluator\": [\"d:1\"]}", NULL, "", 0},
        {"{}", NULL, "", 0},
        {large, "none", "", 0},
        {large, "chief:0", "chief:0", 1},
        {large, "worker:2,ps:0-1", "ps:0-1,worker:2", 3},
        {large, "/job:worker/task:1, chief:0", "chief:0,worker:1", 2},
        {large, "evaluator:0", "evaluator:0", 1},
        {sparse, "ps:1,worker:7", "ps:1,worker:7", 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_cluster *cluster = parse(rows[i].cluster);
        mu_error error = {0};
        char *hosts = NULL;

        if (mu__service_hosts(cluster, rows[i].text, &error, &hosts) != 0)
            fail_msg("row %zu: %s", i, error.message);
        assert_string_equal(hosts, rows[i].hosts);
        assert_int_equal(mu__service_hosts_count(hosts), rows[i].count);
        free(hosts);
        mu_cluster_free(cluster);
    }
}

TEST(test_bad_hosts)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"worker:3", "option service_hosts names worker:3, and the cluster has no such "
                     "task"},
        {"ps:0-999999", "option service_hosts names ps:2, and the cluster has no such "
                        "task"},
        {"client:0", "option service_hosts names client:0, and the cluster has no such "
                     "task"},
        {" , ", "option service_hosts is \" , \", expected a set of tasks, as chief:0 or "
                "ps:0-1, or none"},
        {"None", "option service_hosts: task set: \"None\""},
        {"chief", "option service_hosts: task set: \"chief\""},
        {"worker:1000000", "option service_hosts: task set: \"worker:1000000\""},
    };
    mu_cluster *cluster = parse(large);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_error error = {0};
        char *hosts = NULL;
        int rv = mu__service_hosts(cluster, rows[i].text, &error, &hosts);

        assert_true(rv == -MU_EINVALID || rv == -MU_ERANGE);
        assert_null(hosts);
        assert_int_equal(error.code, rv);
        if (strncmp(error.message, rows[i].words, strlen(rows[i].words)) != 0)
            fail_msg("row %zu: %s", i, error.message);
    }
    mu_cluster_free(cluster);
}

TEST(test_tasks)
{
    static const struct {
        const char *cluster;
        const char *jobs;
        const char *tasks;
    } rows[] = {
        {large, "chief,worker,ps", "chief:0,ps:0-1,worker:0-2"},
        {large, "worker", "worker:0-2"},
        {large, " worker , evaluator ", "evaluator:0,worker:0-2"},
        {large, "worker,worker", "worker:0-2"},
        {large, "client", ""},
        {sparse, "chief,worker,ps", "ps:1,worker:0,worker:7"},
        {"{\"client\": [\"e:1\"]}", "chief,worker,ps", ""},
        {"{\"client\": [\"e:1\"]}", "client", "client:0"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_cluster *cluster = parse(rows[i].cluster);
        mu_error error = {0};
        char *tasks = NULL;

        if (mu__service_tasks(cluster, rows[i].jobs, &error, &tasks) != 0)
            fail_msg("row %zu: %s", i, error.message);
        assert_string_equal(tasks, rows[i].tasks);
        free(tasks);
        mu_cluster_free(cluster);
    }
}

TEST(test_bad_types)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"workers", "did you mean \"worker\""},
        {"worker,", "\"\""},
        {"", "\"\""},
        {"worker;ps", "\"worker;ps\""},
        {"chief,master", "the others is called \"chief\""},
        {"worker-and-a-name-that-goes-on-and-on", "\"worker-and-a-name-that-goes-on"},
    };
    mu_cluster *cluster = parse(large);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[MU__SERVICE_TYPES_BYTES] = "as it was";
        mu_error error = {0};
        char *tasks = NULL;

        assert_int_equal(mu__service_tasks(cluster, rows[i].text, &error, &tasks),
                         -MU_EINVALID);
        assert_null(tasks);
        assert_memory_equal(error.message, "option coordinated_jobs: ", 25);
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("row %zu: %s", i, error.message);
        assert_int_equal(mu__service_recoverable(rows[i].text, &error, out),
                         -MU_EINVALID);
        assert_memory_equal(error.message, "option recoverable: ", 20);
        assert_string_equal(out, "as it was");
    }
    mu_cluster_free(cluster);
}

TEST(test_recoverable)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        {"all", "all"},
        {"none", "none"},
        {"worker", "worker"},
        {"worker, chief,worker", "chief,worker"},
        {"ps,worker,evaluator,client,chief", "chief,client,evaluator,ps,worker"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[MU__SERVICE_TYPES_BYTES];

        assert_int_equal(mu__service_recoverable(rows[i].text, NULL, out), 0);
        assert_string_equal(out, rows[i].expected);
    }
}

TEST(test_who_is_host)
{
    assert_true(mu__service_is_host("ps:0-1,worker:2", "ps", 1));
    assert_true(mu__service_is_host("ps:0-1,worker:2", "worker", 2));
    assert_false(mu__service_is_host("ps:0-1,worker:2", "worker", 1));
    assert_false(mu__service_is_host("", "chief", 0));
}

/* A set whose text is too long for a message: every second worker of many. */
TEST(test_too_many_gaps)
{
    mu_cluster *cluster = mu_cluster_new();
    mu_error error = {0};
    char *tasks = NULL;

    for (int i = 0; i < 12000; i += 2) {
        char address[32];

        (void)snprintf(address, sizeof address, "w%d:1", i);
        assert_int_equal(mu_cluster_add(cluster, "worker", i, address, NULL), 0);
    }
    assert_int_equal(mu__service_tasks(cluster, "worker", &error, &tasks), -MU_EINVALID);
    assert_non_null(strstr(error.message, "its indices have too many gaps"));
    assert_null(tasks);
    mu_cluster_free(cluster);
}

TEST_PROGRAM()
