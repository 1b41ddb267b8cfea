/* The resolver directory, by rows. The clock says 1700000000. */
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

static const struct mu__resolver_kind *const kind = &mu__resolver_directory;

#define HERE                                                                           \
    {                                                                                  \
        .kind = MU__REQUEST_VARIABLE, .name = "MUSTER_CLUSTER_DIRECTORY", .text = "/d" \
    }
#define NAMES(names)                                              \
    {                                                             \
        .kind = MU__REQUEST_FOLDER, .name = "/d", .text = (names) \
    }

TEST(test_who_is_there)
{
    static const struct script_row rows[] = {
        HERE,
        NAMES(".worker-9.x1\nchief-0\nworker-0\nworker-1\nworker-2\nworker-3\n"
              "worker-4~\nworker-5.tmp\n"),
        SCRIPT_FILE("/d/chief-0", "c:1\n"),
        SCRIPT_FILE("/d/worker-0", "a:1  \r\n0123\nuntil 1700000000\n"),
        SCRIPT_FILE("/d/worker-1", "b:1\n0124\nuntil 1699999999\n"),
        SCRIPT_FILE("/d/worker-2", ""),
        SCRIPT_END,
    };

    /* 1 is gone, 2 is not written yet, 3 went away meanwhile. */
    script_expect(kind, rows, NULL, "{\"chief\":[\"c:1\"],\"worker\":[\"a:1\"]}", "");
}

TEST(test_shape)
{
    static const char *const settings[] = {"tasks=chief=1,worker=2", NULL};
    static const char *const bad[] = {"tasks=chief=1,worker=*", NULL};
    static const char *const chiefs[] = {"tasks=worker=2,chief=2", NULL};
    static const char *const evaluators[] = {"tasks=evaluator=2", NULL};
    static const struct script_row rows[] = {
        HERE, NAMES("worker-0\nworker-7\n"), SCRIPT_FILE("/d/worker-0", "a:1"),
        SCRIPT_FILE("/d/worker-7", "b:1"), SCRIPT_END};

    script_expect_error(kind, rows, settings, -MU_EUNAVAILABLE,
                        "directory /d: 2 of 3 tasks are not there yet: "
                        "/job:chief/task:0, /job:worker/task:1");
    script_expect_error(kind, rows, bad, -MU_EINVALID, "setting tasks");
    script_expect_error(kind, rows, chiefs, -MU_EINVALID,
                        "setting tasks of resolver directory: the job \"chief\" has 2 "
                        "tasks; expected at most 1");
    script_expect_error(kind, rows, evaluators, -MU_EINVALID, "the job \"evaluator\"");
}

/* Who was there is told from who has not come yet. */
TEST(test_gone)
{
    static const char *const settings[] = {"tasks=chief=1,worker=2", NULL};
    static const struct script_row rows[] = {
        HERE,
        NAMES("chief-0\nworker-0\nworker-1\n"),
        SCRIPT_FILE("/d/chief-0", "c:1"),
        SCRIPT_FILE("/d/worker-0", "a:1\n0123\nuntil 1699999960\n"),
        SCRIPT_FILE("/d/worker-1", "b:1\n0124\nuntil 1699999995\n"),
        SCRIPT_END,
    };
    static const struct script_row one[] = {
        HERE, NAMES("worker-0\n"),
        SCRIPT_FILE("/d/worker-0", "a:1\n0123\nuntil 1699999960\n"), SCRIPT_END};

    script_expect_error(kind, rows, settings, -MU_EUNAVAILABLE,
                        "/job:worker/task:1; 2 were there and are not heard of any more: "
                        "/d/worker-1 for 5 s");
    script_expect_error(kind, one, NULL, -MU_EUNAVAILABLE,
                        "no task is there yet; 1 was there and is not heard of any more: "
                        "/d/worker-0 for 40 s");
}

TEST(test_nobody)
{
    static const struct script_row rows[] = {HERE, NAMES(""), SCRIPT_END};
    static const struct script_row missing[] = {HERE, SCRIPT_END};
    mu_error why;

    script_expect_error(kind, rows, NULL, -MU_EUNAVAILABLE,
                        "directory /d: no task is there yet");
    script_expect_error(kind, missing, NULL, -MU_EUNAVAILABLE, "/d");
    script_expect_error(kind, NULL, NULL, -MU_EINVALID, "MUSTER_CLUSTER_DIRECTORY");
    assert_int_equal(script_detect(kind, rows, NULL, &why), 1);
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
}

static const struct {
    const char *name;
    const char *path;
    const char *text;
    const char *words;
} bad[] = {
    {"wroker-0", "/d/wroker-0", "a:1", "directory /d: \"wroker-0\": expected TYPE-INDEX"},
    {"wroker-0", "/d/wroker-0", "a:1", "worker"},
    {"worker", "/d/worker", "a:1", "expected worker- and an index of 0 to 999999"},
    {"worker-01", "/d/worker-01", "a:1", "expected worker- and an index"},
    {"worker-1000000", "/d/worker-1000000", "a:1", "expected worker- and an index"},
    {"worker-0-a-name-that-is-very-long-indeed", "", "", "expected worker- and an index"},
    {"A-1-name-that-is-longer-than-any-that-a-task-has-and-goes-on-without-any-end", "",
     "", "end\": expected TYPE-INDEX, as in \"worker-0\": \"A\" is not a task type"},
    {"a_name_that_is_longer_than_any_that_a_task_has_and_goes_on_without_any_end", "", "",
     "end\": expected TYPE-INDEX, as in \"worker-0\""},
    {"worker-0", "/d/worker-0", "\na:1\n", "/d/worker-0: line 1: expected the task's"},
    {"worker-0", "/d/worker-0", "a\x01", "/d/worker-0: line 1: expected the task's"},
    {"worker-0", "/d/worker-0", "a", "/d/worker-0: "},
    {"worker-0", "/d/worker-0", "a:1\n\n", "/d/worker-0: line 2: expected a process"},
    {"worker-0", "/d/worker-0", "a:1\nb\nsoon\n", "line 3: expected \"until SECONDS\""},
    {"worker-0", "/d/worker-0", "a:1\nb\nuntil 0\n", "line 3: expected \"until"},
    {"worker-0", "/d/worker-0", "a:1\nb\nuntil 9\nc\n", "line 4: expected the end"},
};

TEST(test_bad)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct script_row rows[] = {
            HERE, NAMES(bad[i].name), SCRIPT_FILE(bad[i].path, bad[i].text), SCRIPT_END};

        script_expect_error(kind, rows, NULL, -MU_EINVALID, bad[i].words);
    }
}

/* People's mistake is an error; a task that came back elsewhere is only early. */
TEST(test_same_address_twice)
{
    static const struct script_row people[] = {
        HERE, NAMES("worker-0\nworker-1\n"), SCRIPT_FILE("/d/worker-0", "a:1"),
        SCRIPT_FILE("/d/worker-1", "a:1"), SCRIPT_END};
    static const struct script_row tasks[] = {
        HERE, NAMES("worker-0\nworker-1\n"), SCRIPT_FILE("/d/worker-0", "a:1"),
        SCRIPT_FILE("/d/worker-1", "a:1\nb\nuntil 1700000001\n"), SCRIPT_END};

    script_expect_error(kind, people, NULL, -MU_EEXISTS, "/d/worker-1");
    script_expect_error(kind, tasks, NULL, -MU_EUNAVAILABLE, "/d/worker-1");
}

/* ---- Telling ---- */

static const mu_announcement one = {"muster", "worker", 1, "me:1", "0abc"};
static const mu_announcement any = {"muster", "worker", -1, "me:1", "0abc"};

#define WRITES(path, content)                                        \
    {                                                                \
        .kind = MU__REQUEST_WRITE, .name = (path), .body = (content) \
    }
#define MINE "me:1\n0abc\nuntil 1700000030\n"

static int announce(const struct script_row *rows, const char *const *settings,
                    const mu_announcement *announcement, void **own, mu_error *error,
                    int *index)
{
    uint32_t again_ms = 0;
    int rv =
        script_announce(kind, rows, settings, announcement, own, error, index, &again_ms);

    assert_int_equal(again_ms, rv == 0 ? 10000 : 0);
    return rv;
}

TEST(test_takes_a_place)
{
    static const struct script_row rows[] = {HERE, WRITES("/d/worker-1", MINE),
                                             SCRIPT_END};
    static const struct script_row again[] = {
        HERE,
        SCRIPT_FILE("/d/worker-1", "me:1\n0abc\nuntil 1700000010\n"),
        WRITES("/d/worker-1", MINE),
        {.kind = MU__REQUEST_REMOVE, .name = "/d/worker-1", .text = ""},
        SCRIPT_END};
    void *own = NULL;
    mu_error error;
    int index;

    assert_int_equal(announce(rows, NULL, &one, &own, &error, &index), 0);
    assert_int_equal(index, 1);
    assert_int_equal(announce(again, NULL, &one, &own, &error, &index), 0);
    assert_int_equal(script_withdraw(kind, again, NULL, &one, &own, &error), 0);
    assert_int_equal(script_withdraw(kind, rows, NULL, &one, &own, &error), 0);
    free(own);
}

TEST(test_first_free_place)
{
    static const char *const settings[] = {"tasks=worker=3", NULL};
    static const char *const small[] = {"tasks=worker=1", NULL};
    static const struct script_row rows[] = {
        HERE,
        NAMES("worker-0\nworker-10\nworker-1\n"),
        SCRIPT_FILE("/d/worker-0", "a:1\nx\nuntil 1700000010\n"),
        SCRIPT_FILE("/d/worker-1", "b:1\ny\nuntil 1600000000\n"),
        WRITES("/d/worker-1", MINE),
        SCRIPT_END};
    void *own = NULL;
    mu_error error;
    int index = -1;

    assert_int_equal(announce(rows, settings, &any, &own, &error, &index), 0);
    assert_int_equal(index, 1);
    assert_int_equal(announce(rows, small, &any, &own, &error, &index), -MU_EUNAVAILABLE);
    assert_non_null(strstr(error.message, "all 1 places of type worker are taken"));
    free(own);
}

/* Who writes while we look lives; who does not is gone at his time. */
TEST(test_taken_place)
{
    static const struct script_row first[] = {
        HERE, SCRIPT_FILE("/d/worker-1", "a:1\nx\nuntil 1700000010\n"), SCRIPT_END};
    static const struct script_row later[] = {
        HERE, SCRIPT_FILE("/d/worker-1", "a:1\nx\nuntil 1700000011\n"), SCRIPT_END};
    static const struct script_row gone[] = {
        HERE, SCRIPT_FILE("/d/worker-1", "a:1\nx\nuntil 1699999999\n"),
        WRITES("/d/worker-1", MINE), SCRIPT_END};
    static const struct script_row people[] = {HERE, SCRIPT_FILE("/d/worker-1", "a:1\n"),
                                               SCRIPT_END};
    void *own = NULL;
    mu_error error;
    int index;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(announce(first, NULL, &one, &own, &error, &index),
                         -MU_EUNAVAILABLE);
        assert_non_null(strstr(error.message,
                               "/d/worker-1: is another process's, at a:1: it is not "
                               "known yet whether it lives, for 11 s at most"));
    }
    assert_int_equal(announce(later, NULL, &one, &own, &error, &index), -MU_EEXISTS);
    assert_non_null(strstr(error.message, "at a:1, which lives"));
    assert_int_equal(announce(people, NULL, &one, &own, &error, &index), -MU_EEXISTS);
    assert_non_null(strstr(error.message, "by hand"));
    assert_int_equal(announce(gone, NULL, &one, &own, &error, &index), 0);
    assert_int_equal(announce(first, NULL, &one, &own, &error, &index), -MU_EEXISTS);
    assert_non_null(strstr(error.message, "has taken this one's place"));
    free(own);
}

/* Where the announcement does not say who it is, the settings do. */
TEST(test_who_announces)
{
    static const mu_announcement unknown = {"muster", "", -1, "me:1", "0abc"};
    static const char *const settings[] = {"task_type=worker", "task_index=1", NULL};
    static const struct script_row rows[] = {HERE, WRITES("/d/worker-1", MINE),
                                             SCRIPT_END};
    void *own = NULL;
    mu_error error;
    int index;

    assert_int_equal(announce(rows, settings, &unknown, &own, &error, &index), 0);
    assert_int_equal(index, 1);
    assert_int_equal(announce(rows, NULL, &unknown, &own, &error, &index), -MU_EINVALID);
    assert_string_equal(error.message,
                        "directory: nobody says which task this process is; expected "
                        "setting task_type (variable MUSTER_TYPE)");
    free(own);
}

TEST(test_lost_race_and_failures)
{
    static const struct script_row race[] = {
        HERE,
        {.kind = MU__REQUEST_WRITE, .name = "/d/worker-1", .code = -MU_EEXISTS},
        SCRIPT_END};
    static const struct script_row full[] = {HERE,
                                             {.kind = MU__REQUEST_WRITE,
                                              .name = "/d/worker-1",
                                              .code = -MU_EEXHAUSTED,
                                              .text = "no room"},
                                             SCRIPT_END};
    void *own = NULL;
    mu_error error;
    int index;

    assert_int_equal(announce(race, NULL, &one, &own, &error, &index), -MU_EUNAVAILABLE);
    assert_int_equal(announce(full, NULL, &one, &own, &error, &index), -MU_EEXHAUSTED);
    assert_non_null(strstr(error.message, "no room"));
    free(own);
}

TEST_PROGRAM()
