/* All that is wrong or strange about a cluster spec, row by row. */
#include "resolver/spec/problems.h"
#include "tests/support/test.h"

enum { WORDS_MAX = 6 };

static const struct row {
    const char *text;
    const char *type; /* of this task; NULL: unknown */
    int index;
    const char *words[WORDS_MAX]; /* "error: ..." each begins, in their order */
} rows[] = {
    /* clang-format off */
    {"{\"chief\": [\"a:1\"], \"worker\": [\"b:1\"]}", "worker", 0, {NULL}},

    /* Several at once. */
    {"{\"wroker\": [\"a:1\"], \"worker\": [\"b:1\", 3, \"b:1\"], \"ps\": 7}", NULL, 0,
     {"error: T: \"wroker\" is not a task type; did you mean \"worker\"?",
      "error: T: worker[1]: expected \"host:port\", got number 3",
      "error: T: worker[2]: address \"b:1\" is already that of",
      "error: T: ps: expected a list of addresses, or an object of index -> address, "
      "got number 7",
      "note: there is no chief: /job:worker/task:0 leads", "note: which task"}},
    {"{\"worker\": {\"x\": \"a:1\", \"0\": \"nothing\"}}", "worker", 0,
     {"error: T: worker: expected an index of 0 to", "error: T: worker[\"0\"]: "}},
    {"{\"worker\": [\"a:1\"], \"worker\": [\"b:1\"]}", "worker", 0,
     {"error: T", "error: T: worker[0]: the job \"worker\" has index 0 already",
      "note: there is no chief"}},
    {"{\"worker\": [", "worker", 0, {"error: T: line 1"}},
    {"{}", "worker", 0, {"error: the cluster has no task"}},

    /* Who leads, and who is missing. */
    {"{\"worker\": [\"a:1\"]}", "worker", 0,
     {"note: there is no chief: /job:worker/task:0 leads, and ends the job"}},
    {"{\"worker\": {\"1\": \"a:1\"}}", "worker", 1,
     {"warning: the job \"worker\" has gaps: no index 0",
      "warning: there is no chief, and no worker 0 in its place"}},
    {"{\"chief\": [\"a:1\"]}", "chief", 0, {"warning: there is no worker"}},
    {"{\"ps\": [\"a:1\", \"b:1\"]}", "ps", 0,
     {"warning: there is no chief, and no worker 0",
      "warning: there are 2 parameter servers and no worker"}},
    {"{\"chief\": [\"a:1\", \"b:1\"], \"worker\": [\"c:1\"]}", "chief", 0,
     {"error: the job \"chief\" has 2 tasks; expected at most 1"}},
    {"{\"chief\": {\"1\": \"a:1\"}, \"worker\": [\"c:1\"]}", "worker", 0,
     {"error: the job \"chief\" has no task 0"}},
    {"{\"chief\": [\"a:1\"], \"worker\": [\"c:1\"], \"evaluator\": [\"d:1\", \"e:1\"]}",
     "chief", 0,
     {"error: the job \"evaluator\" has 2 tasks", "note: the evaluator is in the"}},

    /* Gaps. */
    {"{\"chief\": [\"a:1\"], \"worker\": {\"0\": \"b:1\", \"2\": \"c:1\", \"9\": "
     "\"d:1\"}}", "worker", 2,
     {"warning: the job \"worker\" has gaps: no index 1, 3, 4, 5, 6, ..."}},
    {"{\"chief\": [\"a:1\"], \"worker\": [\"b:1\"], \"ps\": {\"1\": \"c:1\"}}", "ps", 1,
     {"warning: the job \"ps\" has gaps: no index 0"}},

    /* Addresses. */
    {"{\"chief\": [\"127.0.0.1:1\"], \"worker\": [\"b:1\", \"c:0\"]}", "chief", 0,
     {"warning: /job:worker/task:1 is at c:0: others learn its port only",
      "warning: 127.0.0.1:1 is this machine only, and c:0 is not"}},

    /* This task. */
    {"{\"chief\": [\"a:1\"], \"worker\": [\"b:1\"]}", "worker", 3,
     {"warning: /job:worker/task:3, this task, is not in the cluster: it joins only"}},
    {"{\"chief\": [\"a:1\"], \"worker\": [\"b:1\"]}", "ps", 0,
     {"error: /job:ps/task:0, this task, does not fit the cluster"}},
    {"{\"chief\": [\"a:1\"], \"worker\": [\"b:1\"]}", "evaluator", 0,
     {"note: /job:evaluator/task:0, this task, is not in the cluster, and need not"}},
    {"{\"chief\": [\"a:1\"], \"worker\": [\"b:1\"]}", NULL, 0,
     {"note: which task this process is, is not said"}},
    /* clang-format on */
};

static void expect_words(const struct mu__problems *problems, size_t i,
                         const char *const *words)
{
    static const char *const grades[] = {"error", "warning", "note"};
    size_t count = 0;

    while (count < WORDS_MAX && words[count] != NULL)
        count++;
    for (size_t j = 0; j < problems->count; j++) {
        char line[1024];

        (void)snprintf(line, sizeof line, "%s: %s", grades[problems->rows[j].grade],
                       problems->rows[j].text);
        if (j >= count || strncmp(line, words[j], strlen(words[j])) != 0)
            fail_msg("row %zu: %s; expected: %s", i, line,
                     j < count ? words[j] : "nothing more");
    }
    if (problems->count != count)
        fail_msg("row %zu: %zu problems; expected %zu", i, problems->count, count);
}

TEST(test_rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__problems problems = {0};
        mu_cluster *cluster = NULL;

        assert_int_equal(mu__problems_read(&problems, rows[i].text, strlen(rows[i].text),
                                           "T", false, &cluster),
                         0);
        mu__problems_check(&problems, cluster, rows[i].type, rows[i].index);
        expect_words(&problems, i, rows[i].words);
        mu_cluster_free(cluster);
        mu__problems_done(&problems);
    }
}

TEST(test_tf_config)
{
    static const char text[] =
        "{\"cluster\": {\"wroker\": [\"a:1\"], \"ps\": [\"x\"]}, \"task\": 3}";
    static const char *const words[WORDS_MAX] = {
        "error: TF_CONFIG: cluster: \"wroker\" is not a task type",
        "error: TF_CONFIG: cluster.ps[0]: ",
    };
    struct mu__problems problems = {0};
    mu_cluster *cluster = NULL;

    assert_int_equal(
        mu__problems_read(&problems, text, strlen(text), "TF_CONFIG", true, &cluster), 0);
    expect_words(&problems, 0, words);
    mu_cluster_free(cluster);
    mu__problems_done(&problems);
}

/* Where the cluster itself is right, what a node says about the rest is said. */
TEST(test_rest_of_tf_config)
{
    static const char text[] =
        "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", "
        "\"index\": 5}}";
    static const char *const words[WORDS_MAX] = {"error: TF_CONFIG: task.index"};
    struct mu__problems problems = {0};
    mu_cluster *cluster = NULL;

    assert_int_equal(
        mu__problems_read(&problems, text, strlen(text), "TF_CONFIG", true, &cluster), 0);
    expect_words(&problems, 0, words);
    assert_string_equal(mu_cluster_address(cluster, "worker", 0), "a:1");
    mu_cluster_free(cluster);
    mu__problems_done(&problems);
}

/* What is beyond the bound is counted, and said to be missing. */
TEST(test_bound)
{
    struct mu__problems problems = {0};

    for (int i = 0; i < MU__PROBLEMS_MAX + 5; i++)
        mu__problems_add(&problems, MU__PROBLEM_ERROR, "the %d. error", i);
    assert_int_equal(problems.count, MU__PROBLEMS_MAX);
    assert_int_equal(problems.of_grade[MU__PROBLEM_ERROR], MU__PROBLEMS_MAX + 5);
    assert_true(problems.is_short);
    assert_string_equal(problems.rows[7].text, "the 7. error");
    mu__problems_done(&problems);
}

TEST_PROGRAM()
