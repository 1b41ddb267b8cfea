/* The resolver tf_config, by rows; tests/resolver/spec/test_tf_config.c has the text
 * itself. */
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

static const struct mu__resolver_kind *const kind = &mu__resolver_tf_config;

TEST(test_cluster_and_task)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE(
            "TF_CONFIG",
            "{\"cluster\": {\"worker\": {\"3\": \"a:1\"}, \"ps\": [\"b:2\"]}, "
            "\"task\": {\"type\": \"worker\", \"index\": \"3\"}}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, NULL, "{\"ps\":[\"b:2\"],\"worker\":{\"3\":\"a:1\"}}",
                  "worker:3");
}

TEST(test_absent_is_alone)
{
    mu_error why;

    script_expect(kind, NULL, NULL, "", "");
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_string_equal(why.message, "TF_CONFIG is not set");
}

TEST(test_other_variable)
{
    static const char *const settings[] = {"variable=MY_CONFIG", NULL};
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("MY_CONFIG", "{\"cluster\": {\"chief\": [\"a:1\"]}}"),
        SCRIPT_END,
    };
    mu_error why;

    script_expect(kind, rows, settings, "{\"chief\":[\"a:1\"]}", "");
    assert_int_equal(script_detect(kind, rows, settings, &why), 1);
}

TEST(test_malformed)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("TF_CONFIG", "{\"cluster\": 7}"),
        SCRIPT_END,
    };

    script_expect_error(kind, rows, NULL, -MU_EINVALID,
                        "TF_CONFIG: cluster: expected an object of job -> addresses");
}

TEST_PROGRAM()
