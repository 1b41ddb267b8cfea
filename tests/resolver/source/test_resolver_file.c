/* The resolver file, by rows. */
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

static const struct mu__resolver_kind *const kind = &mu__resolver_file;

#define HERE SCRIPT_VARIABLE("MUSTER_CLUSTER_FILE", "/x/c.json")

static const struct {
    const char *what;
    const char *text;
    const char *cluster;
    const char *task;
} good[] = {
    {"a cluster", "{\"worker\":[\"a:1\",\"b:1\"]}", "{\"worker\":[\"a:1\",\"b:1\"]}", ""},
    {"a sparse one", "{\"worker\":{\"7\":\"a:1\"}}", "{\"worker\":{\"7\":\"a:1\"}}", ""},
    {"as TF_CONFIG",
     "{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":\"0\"}}",
     "{\"ps\":[\"a:1\"]}", "ps:0"},
    {"a task alone", "{\"task\":{\"type\":\"chief\",\"index\":0}}", "", "chief:0"},
};

TEST(test_good)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct script_row rows[] = {HERE, SCRIPT_FILE("/x/c.json", good[i].text),
                                          SCRIPT_END};

        print_message("%s\n", good[i].what);
        script_expect(kind, rows, NULL, good[i].cluster, good[i].task);
    }
}

static const struct {
    const char *text;
    int code;
    const char *words;
} bad[] = {
    {"", -MU_EUNAVAILABLE, "/x/c.json: the file is empty"},
    {" \n", -MU_EUNAVAILABLE, "/x/c.json: the file is empty"},
    {"[]", -MU_EINVALID, "/x/c.json"},
    {"{\"worker\": 7}", -MU_EINVALID, "/x/c.json: worker: expected a list of addresses"},
    {"{\"workers\": []}", -MU_EINVALID, "worker"},
    {"{\"chief\": [\"a:1\", \"b:1\"]}", -MU_EINVALID, "/x/c.json: "},
    {"{\"cluster\": 7}", -MU_EINVALID, "/x/c.json: cluster: expected an object"},
    {"{\"cluster\": {}, \"task\": []}", -MU_EINVALID, "/x/c.json: task: expected"},
};

TEST(test_bad)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct script_row rows[] = {HERE, SCRIPT_FILE("/x/c.json", bad[i].text),
                                          SCRIPT_END};

        script_expect_error(kind, rows, NULL, bad[i].code, bad[i].words);
    }
}

TEST(test_who_this_is)
{
    static const char *const settings[] = {"path=/y", "task_index=0", NULL};
    static const char *const none[] = {"path=/y", "task_type=wrker", NULL};
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("MUSTER_TYPE", "worker"),
        SCRIPT_VARIABLE("MUSTER_INDEX", "3"),
        SCRIPT_FILE("/y", "{\"worker\":[\"a:1\"]}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, settings, "{\"worker\":[\"a:1\"]}", "worker:0");
    script_expect_error(kind, rows, none, -MU_EINVALID, "worker");
}

TEST(test_not_there)
{
    static const struct script_row here[] = {HERE, SCRIPT_END};
    mu_error why;

    script_expect_error(kind, here, NULL, -MU_ENOTFOUND, "/x/c.json");
    script_expect_error(kind, NULL, NULL, -MU_EINVALID, "MUSTER_CLUSTER_FILE");
    assert_int_equal(script_detect(kind, here, NULL, &why), 1);
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_string_equal(why.message, "MUSTER_CLUSTER_FILE is not set");
}

TEST_PROGRAM()
