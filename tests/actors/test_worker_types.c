/* Option worker_types, as text: what it says, and what is wrong with it. */
#include "actors/worker_types.h"
#include "tests/support/test.h"

TEST(test_lists)
{
    static const char *const texts[] = {"worker", "gpu", "worker,gpu", "gpu,worker,t_9"};
    struct mu__worker_types types;
    char out[MU__WORKER_TYPES_TEXT_MAX];
    mu_error error;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(mu__worker_types_parse(texts[i], &error, &types), 0);
        mu__worker_types_text(&types, out, sizeof out);
        assert_string_equal(out, texts[i]);
    }
    assert_int_equal(mu__worker_types_find(&types, mu__view_str("gpu")), 0);
    assert_int_equal(mu__worker_types_find(&types, mu__view_str("t_9")), 2);
    assert_int_equal(mu__worker_types_find(&types, mu__view_str("t_")), MU__ROLE_NONE);
    assert_int_equal(mu__worker_types_parse(NULL, &error, &types), 0);
    assert_true(mu__worker_types_has(&types, "worker"));
    assert_int_equal(types.count, 1);
}

TEST(test_as_many_as_a_cluster_has)
{
    char text[MU__WORKER_TYPES_TEXT_MAX + 32] = "";
    char out[MU__WORKER_TYPES_TEXT_MAX];
    struct mu__worker_types types;
    mu_error error;

    for (int i = 0; i < MU__WORKER_TYPES_MAX; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       "%sa234567890123%02d", i == 0 ? "" : ",", i);
    assert_int_equal(mu__worker_types_parse(text, &error, &types), 0);
    mu__worker_types_text(&types, out, sizeof out);
    assert_string_equal(out, text);
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), ",more");
    assert_int_equal(mu__worker_types_parse(text, &error, &types), -MU_EINVALID);
    assert_string_equal(error.message, "option worker_types names more than 32 types");
}

TEST(test_what_is_wrong)
{
#define EXPECTED "; expected task types with commas between, as \"worker,gpu\""
#define BUSY                                                            \
    ": tasks of that type have work of their own and run no closures; " \
    "expected \"worker\" and types of your own"
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"", "option worker_types is \"\", where a task type is missing" EXPECTED},
        {"gpu,",
         "option worker_types is \"gpu,\", where a task type is missing" EXPECTED},
        {"gpu,,cpu",
         "option worker_types is \"gpu,,cpu\", where a task type is missing" EXPECTED},
        {"Gpu", "option worker_types names \"Gpu\", which is no task type" EXPECTED},
        {"worker, gpu",
         "option worker_types names \" gpu\", which is no task type" EXPECTED},
        {"9gpu", "option worker_types names \"9gpu\", which is no task type" EXPECTED},
        {"a234567890123456",
         "option worker_types names \"a234567890123456\", which is no task "
         "type" EXPECTED},
        {"worker:0",
         "option worker_types names \"worker:0\", which is no task type" EXPECTED},
        {"gpu,worker,gpu", "option worker_types names \"gpu\" twice" EXPECTED},
        {"chief", "option worker_types names \"chief\"" BUSY},
        {"worker,ps", "option worker_types names \"ps\"" BUSY},
        {"evaluator,worker", "option worker_types names \"evaluator\"" BUSY},
        {"client", "option worker_types names \"client\"" BUSY},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__worker_types types = {.count = 99};
        mu_error error;

        assert_int_equal(mu__worker_types_parse(rows[i].text, &error, &types),
                         -MU_EINVALID);
        assert_string_equal(error.message, rows[i].words);
        assert_int_equal(types.count, 99);
    }
}

TEST_PROGRAM()
