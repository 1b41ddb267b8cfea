/* Sets of tasks as text: canonical form, bad texts, membership. */
#include "actors/task_set.h"
#include "tests/support/test.h"

TEST(test_canonical)
{
    static const struct {
        const char *text;
        const char *canonical;
        uint64_t count;
    } rows[] = {
        {"", "", 0},
        {"worker:3", "worker:3", 1},
        {"worker:0-2", "worker:0-2", 3},
        {"/job:worker/task:3", "worker:3", 1},
        {"worker:1,worker:0", "worker:0-1", 2},
        {"worker:2,ps:1,worker:0,ps:0", "ps:0-1,worker:0,worker:2", 4},
        {"worker:0-5,worker:3-9", "worker:0-9", 10},
        {"worker:0,worker:2,worker:4,worker:1-3", "worker:0-4", 5},
        {"worker:5-9, worker:0-4 ,chief:0", "chief:0,worker:0-9", 11},
        {"worker:7,worker:7", "worker:7", 1},
        {"worker:0-999999", "worker:0-999999", 1000000},
        {"evaluator:0,client:4", "client:4,evaluator:0", 2},
        {"ps:9,worker:0", "ps:9,worker:0", 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__task_set set = {0};
        char *text;

        assert_int_equal(mu__task_set_parse(mu__view_str(rows[i].text), NULL, &set), 0);
        text = mu__task_set_text(&set);
        assert_string_equal(text, rows[i].canonical);
        assert_int_equal(mu__task_set_count(&set), rows[i].count);
        free(text);
        mu__task_set_done(&set);
    }
}

TEST(test_bad)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"worker", -MU_EINVALID, "\"worker\" is no task"},
        {"Wroker:1", -MU_EINVALID, "\"Wroker:1\" is no task"},
        {"worker:", -MU_EINVALID, "expected TYPE:INDEX"},
        {"worker:1-", -MU_EINVALID, "expected TYPE:INDEX"},
        {"worker:-1", -MU_EINVALID, "expected TYPE:INDEX"},
        {"worker:3-1", -MU_ERANGE, "end is before its begin"},
        {"worker:1000000", -MU_ERANGE, "largest index"},
        {"worker:99999999999999999999", -MU_ERANGE, "largest index"},
        {"ps:0,worker:1x", -MU_EINVALID, "\"worker:1x\" is followed by"},
        {"/job:worker:1", -MU_EINVALID, "no task"},
        {"worker/task:1", -MU_EINVALID, "no task"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__task_set set = {.count = 77};
        mu_error error;

        assert_int_equal(mu__task_set_parse(mu__view_str(rows[i].text), &error, &set),
                         rows[i].code);
        assert_non_null(strstr(error.message, rows[i].words));
        assert_int_equal(set.count, 77);
    }
}

TEST(test_has)
{
    struct mu__task_set set = {0};

    assert_false(mu__task_set_has(&set, "worker", 0));
    assert_int_equal(mu__task_set_add(&set, "worker", 4), 0);
    assert_int_equal(mu__task_set_add(&set, "worker", 2), 0);
    assert_int_equal(mu__task_set_add(&set, "worker", 3), 0);
    assert_int_equal(mu__task_set_add(&set, "chief", 0), 0);
    assert_int_equal(mu__task_set_add(&set, "wr-oker", 0), -MU_EINVALID);
    assert_int_equal(mu__task_set_add(&set, "worker", 1000000), -MU_ERANGE);
    assert_int_equal(set.count, 2);
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(mu__task_set_has(&set, "worker", i), i >= 2 && i <= 4);
    assert_true(mu__task_set_has(&set, "chief", 0));
    assert_false(mu__task_set_has(&set, "chief", 1));
    assert_false(mu__task_set_has(&set, "ps", 0));
    mu__task_set_done(&set);
}

/* Ranges shrink, split and go; against a plain list of what is in. */
TEST(test_remove)
{
    static const struct {
        uint32_t index;
        const char *text;
    } rows[] = {
        {9, "chief:0,worker:0-6"},
        {3, "chief:0,worker:0-2,worker:4-6"},
        {0, "chief:0,worker:1-2,worker:4-6"},
        {6, "chief:0,worker:1-2,worker:4-5"},
        {5, "chief:0,worker:1-2,worker:4"},
        {4, "chief:0,worker:1-2"},
        {4, "chief:0,worker:1-2"},
        {2, "chief:0,worker:1"},
        {1, "chief:0"},
    };
    struct mu__task_set set = {0};

    assert_int_equal(mu__task_set_parse(mu__view_str("chief:0,worker:0-6"), NULL, &set),
                     0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text;

        assert_int_equal(mu__task_set_remove(&set, "worker", rows[i].index), 0);
        text = mu__task_set_text(&set);
        assert_string_equal(text, rows[i].text);
        free(text);
    }
    mu__task_set_done(&set);
}

TEST_PROGRAM()
