/* Results as maps and as bytes: what another process wrote is believed only if it is
 * whole. And the result of a call that was never made. */
#include "api/distribute/independent.h"
#include "tests/support/test.h"

enum { MUTATIONS = 20000 };

static mu_value *make_result(void)
{
    static const float numbers[] = {1, 2, 3, 4, 5};
    mu_value *value = mu_value_list();
    mu_error error = {0};
    mu_value *result;

    assert_int_equal(mu_value_append(value, mu_value_string("text")), 0);
    assert_int_equal(
        mu_value_append(value, mu_value_tensor(MU_F32, 1, (uint64_t[]){5}, numbers)), 0);
    (void)mu_error_set(&error, -MU_EDATALOSS, "it is gone");
    (void)snprintf(error.task, sizeof error.task, "/job:worker/task:3");
    result = mu__result_make(-MU_EDATALOSS, value, &error);
    mu_value_free(value);
    assert_non_null(result);
    return result;
}

TEST(test_there_and_back)
{
    mu_value *result = make_result();
    mu_value *back = NULL;
    mu_error error = {0};
    void *bytes;
    size_t size;

    assert_int_equal(mu__result_pack(result, &error, &bytes, &size), 0);
    assert_int_equal(mu__result_unpack(bytes, size, &error, &back), 0);
    assert_true(mu_value_equal(result, back));
    mu__result_error(back, &error);
    assert_int_equal(error.code, -MU_EDATALOSS);
    assert_string_equal(error.message, "it is gone");
    assert_string_equal(error.task, "/job:worker/task:3");
    free(bytes);
    mu_value_free(result);
    mu_value_free(back);
}

TEST(test_fine_results_have_no_error)
{
    mu_value *result = mu__result_make(0, NULL, NULL);
    mu_value *list = mu_value_list();
    mu_error error = {.code = 7};

    mu__result_error(result, &error);
    assert_int_equal(error.code, 0);
    assert_null(mu_value_find(result, "message"));
    assert_int_equal(mu_value_type(mu_value_find(result, "value")), MU_VALUE_NIL);
    error.code = 7;
    mu__result_error(list, &error);
    assert_int_equal(error.code, 0);
    mu_value_free(result);
    mu_value_free(list);
}

/* A code that is none is no error: numbers from another process decide nothing else. */
TEST(test_odd_codes)
{
    static const int64_t codes[] = {1, -256, INT64_MIN, INT64_MAX};

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        mu_value *map = mu_value_map();
        mu_error error = {.code = 7};

        assert_int_equal(mu_value_set(map, "code", mu_value_int(codes[i])), 0);
        mu__result_error(map, &error);
        assert_int_equal(error.code, 0);
        mu_value_free(map);
    }
}

TEST(test_cut_short)
{
    mu_value *result = make_result();
    mu_value *back = NULL;
    mu_error error = {0};
    void *bytes;
    size_t size;

    assert_int_equal(mu__result_pack(result, &error, &bytes, &size), 0);
    for (size_t i = 0; i < size; i++) {
        char *part = malloc(i + 1);

        memcpy(part, bytes, i);
        assert_int_equal(mu__result_unpack(part, i, &error, &back), -MU_EDATALOSS);
        assert_non_null(strstr(error.message, "the bytes of a result are none"));
        assert_null(back);
        free(part);
    }
    free(bytes);
    mu_value_free(result);
}

TEST(test_no_map)
{
    mu_value *list = mu_value_list();
    mu_value *back = NULL;
    mu_error error = {0};
    void *bytes;
    size_t size;

    assert_int_equal(mu__result_pack(list, &error, &bytes, &size), 0);
    assert_int_equal(mu__result_unpack(bytes, size, &error, &back), -MU_EDATALOSS);
    assert_non_null(strstr(error.message, "expected a map"));
    free(bytes);
    mu_value_free(list);
}

/* One to four bytes of many results are others: an error or a map, never more. */
TEST(test_mutations)
{
    mu_value *result = make_result();
    uint64_t random = 1;
    int refused = 0;
    void *bytes;
    uint8_t *copy;
    size_t size;

    assert_int_equal(mu__result_pack(result, NULL, &bytes, &size), 0);
    copy = malloc(size);
    for (int i = 0; i < MUTATIONS; i++) {
        mu_value *back = NULL;
        mu_error error;

        memcpy(copy, bytes, size);
        for (int j = 0; j <= i % 4; j++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
            copy[(random >> 33) % size] = (uint8_t)(random >> 25);
        }
        if (mu__result_unpack(copy, size, &error, &back) != 0)
            refused++;
        else
            mu__result_error(back, &error);
        mu_value_free(back);
    }
    assert_in_range(refused, 1, MUTATIONS - 1);
    free(copy);
    free(bytes);
    mu_value_free(result);
}

static int count_call(mu_context *context, void *user)
{
    (void)context;
    ++*(unsigned *)user;
    return 0;
}

/* It hears that the run has failed before its own call is made: that is its error, too,
 * and not the end of a task that has done its work. */
TEST(test_a_call_that_comes_too_late)
{
    struct mu__distribution *run = calloc(1, sizeof *run + sizeof run->contexts[0]);
    struct mu__plan_run call = {.type = "worker"};
    struct mu__task_news news = {.heard[NEWS_FAILED] = true};
    unsigned calls = 0;
    mu_error error = {0};
    size_t left;

    assert_non_null(run);
    (void)mu_error_set(&news.why, -MU_EUNAVAILABLE, "worker 1 was killed");
    assert_int_equal(uv_mutex_init(&news.lock), 0);
    assert_int_equal(uv_mutex_init(&run->lock), 0);
    assert_int_equal(uv_cond_init(&run->moved), 0);
    run->news = &news;
    run->results = mu_value_map();
    run->plan.runs = &call;
    run->plan.runs_count = 1;
    run->options.worker = count_call;
    run->options.worker_user = &calls;
    run->contexts[0] =
        (struct mu_context){.run = run, .plan = &call, .name = "/job:worker/task:0"};
    atomic_store(&run->over, true);

    assert_int_equal(mu__distribution_call_all(run, &error, &left), -MU_EUNAVAILABLE);
    assert_string_equal(error.message, "worker 1 was killed");
    assert_int_equal(calls, 0);
    mu__result_error(mu_value_find(run->results, "/job:worker/task:0"), &error);
    assert_int_equal(error.code, -MU_EUNAVAILABLE);
    assert_int_equal(left, 0);

    mu_value_free(run->results);
    uv_cond_destroy(&run->moved);
    uv_mutex_destroy(&run->lock);
    uv_mutex_destroy(&news.lock);
    free(run);
}

TEST_PROGRAM()
