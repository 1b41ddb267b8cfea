/* Values as JSON and back; what JSON does not hold is said. */
#include "runtime/document/value_json.h"

#include "tests/support/test.h"

#include <math.h>

static char *write_text(const mu_value *value)
{
    struct mu__build out = {0};

    if (!mu__value_to_json(value, &out) || !mu__build_whole(&out)) {
        mu__build_done(&out);
        return NULL;
    }
    return out.text;
}

/* In an object, as in a manifest. */
static int read_text(const char *text, mu_error *error, mu_value **ret_value)
{
    char json[512];
    cJSON *root = NULL;
    int rv;

    (void)snprintf(json, sizeof json, "{\"values\":%s}", text);
    assert_int_equal(mu__json_parse(json, strlen(json), "text", error, &root), 0);
    rv = mu__value_from_json(root->child, error, ret_value);
    cJSON_Delete(root);
    return rv;
}

/* Takes `value`. */
static void expect_text(mu_value *value, const char *expected)
{
    char *text = write_text(value);
    mu_value *again = NULL;
    mu_error error = {0};

    if (text == NULL || strcmp(text, expected) != 0)
        fail_msg("got %s, expected %s", text == NULL ? "nothing" : text, expected);
    if (read_text(text, &error, &again) != 0)
        fail_msg("%s: %s", text, error.message);
    if (!mu_value_equal(again, value))
        fail_msg("%s is read as another value", text);
    mu_value_free(again);
    mu_value_free(value);
    free(text);
}

TEST(test_round_trip)
{
    static const char raw[] = {0, 'x', 1};
    mu_value *map = mu_value_map();
    mu_value *list = mu_value_list();

    expect_text(mu_value_nil(), "null");
    expect_text(mu_value_bool(1), "true");
    expect_text(mu_value_bool(0), "false");
    expect_text(mu_value_int(-3), "-3");
    expect_text(mu_value_int(INT64_C(9007199254740992)), "9007199254740992");
    expect_text(mu_value_float(0.1), "0.1");
    expect_text(mu_value_float(0.1 + 0.2), "0.30000000000000004");
    expect_text(mu_value_float(1e300), "1e+300");
    expect_text(mu_value_float(5e-324), "4.94065645841247e-324");
    expect_text(mu_value_float(-3), "{\"$float\": -3}");
    expect_text(mu_value_float(0), "{\"$float\": 0}");
    expect_text(mu_value_string("a\"\n\xc3\xa9"), "\"a\\u0022\\u000a\xc3\xa9\"");
    expect_text(mu_value_bytes(raw, sizeof raw), "{\"$bytes\": \"AHgB\"}");
    expect_text(mu_value_bytes("", 0), "{\"$bytes\": \"\"}");
    assert_int_equal(mu_value_append(list, mu_value_int(1)), 0);
    assert_int_equal(mu_value_append(list, mu_value_list()), 0);
    assert_int_equal(mu_value_set(map, "b", list), 0);
    assert_int_equal(mu_value_set(map, "a", mu_value_map()), 0);
    expect_text(map, "{\"b\": [1, []], \"a\": {}}");
}

/* Takes `value`. */
static void expect_not_held(mu_value *value)
{
    assert_non_null(value);
    assert_null(write_text(value));
    mu_value_free(value);
}

TEST(test_not_held)
{
    mu_value *map = mu_value_map();
    mu_value *deep = mu_value_nil();

    expect_not_held(mu_value_int(INT64_C(9007199254740993)));
    expect_not_held(mu_value_int(INT64_MIN));
    expect_not_held(mu_value_float(NAN));
    expect_not_held(mu_value_float(-INFINITY));
    expect_not_held(mu_value_float(-0.0));
    expect_not_held(mu_value_tensor(MU_F32, 0, NULL, NULL));
    assert_int_equal(mu_value_set(map, "$x", mu_value_nil()), 0);
    expect_not_held(map);
    for (int i = 0; i < 25; i++) {
        mu_value *list = mu_value_list();

        assert_int_equal(mu_value_append(list, deep), 0);
        deep = list;
    }
    expect_not_held(deep);
}

TEST(test_refused)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"1e999", "\"values\": a number is too large"},
        {"{\"$float\": 1e999}", "\"values\": a key with \"$\" has no known meaning"},
        {"{\"$float\": \"1\"}", "\"values\": a key with \"$\" has no known meaning"},
        {"{\"$else\": 1}", "\"values\": a key with \"$\" has no known meaning"},
        {"{\"$bytes\": 1}", "\"values\": \"$bytes\" is no text"},
        {"{\"$bytes\": \"a\"}", "\"values\": \"$bytes\" is not base64"},
        {"{\"$float\": 1, \"a\": 1}",
         "\"values\": there is more beside a key with \"$\""},
        {"{\"a\": 1, \"$float\": 1}",
         "\"values\": there is more beside a key with \"$\""},
        {"[[{\"a\": 1, \"a\": 1}]]", "\"values\": a key is there twice"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_value *value = NULL;
        mu_error error = {0};

        assert_int_equal(read_text(rows[i].text, &error, &value), -MU_EDATALOSS);
        assert_string_equal(error.message, rows[i].words);
        assert_null(value);
    }
}

TEST_PROGRAM()
