/* JSON of which only parts are wanted: what is left of it, and that it is checked as
 * strictly as the whole; tests/resolver/spec/test_tf_config.c and others have the check
 * itself. */
#include "runtime/base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct mu__json_want wants[] = {
    {"a", NULL},
    {"list", (const struct mu__json_want[]){
                 {"name", NULL},
                 {"in", (const struct mu__json_want[]){{"x", NULL}, {NULL, NULL}}},
                 {NULL, NULL}}},
    {NULL, NULL},
};

static void expect_left(const char *text, const char *json)
{
    cJSON *root;
    mu_error error;
    char *got;

    if (mu__json_parse_wanted(text, strlen(text), wants, "x", &error, &root) != 0)
        fail_msg("%s: %s", text, error.message);
    got = cJSON_PrintUnformatted(root);
    assert_string_equal(got, json);
    cJSON_free(got);
    cJSON_Delete(root);
}

static void test_what_is_left(void **state)
{
    static const char *const rows[][2] = {
        {"{}", "{}"},
        {" {\"b\": 1, \"c\": [{\"a\": 2}]} ", "{}"},
        {"{\"a\": {\"b\": [1, {}, []]}, \"b\": 2, \"a\" : \"x\\n\"}",
         "{\"a\":{\"b\":[1,{},[]]},\"a\":\"x\\n\"}"},
        {"{\"list\": [{\"name\": 1, \"name2\": 2, \"nam\": 3}, {\"in\": {\"x\": [4], "
         "\"y\": 5}, \"name\": 6}]}",
         "{\"list\":[{\"name\":1},{\"in\":{\"x\":[4]},\"name\":6}]}"},
        /* A list in a list is looked through, too; other values stay as they are. */
        {"{\"list\": [[{\"name\": 1, \"b\": 2}], 7, \"b\", null]}",
         "{\"list\":[[{\"name\":1}],7,\"b\",null]}"},
        {"{\"list\": \"b\", \"b\": \"\"}", "{\"list\":\"b\"}"},
        /* What becomes empty is left out. */
        {"{\"list\": [{\"b\": 1}, {\"in\": {\"y\": 1}}, {\"name\": 1}], \"a\": {}}",
         "{\"list\":[{\"name\":1}],\"a\":{}}"},
        {"{\"list\": []}", "{}"},
        /* A key with escapes is kept: it may be any. */
        {"{\"\\u0061\": 1, \"\\u0062\": {\"c\": \"\\\\\"}, \"b\": \"\\\"\", \"b\": 3}",
         "{\"a\":1,\"b\":{\"c\":\"\\\\\"}}"},
        {"\xEF\xBB\xBF{\"a\": \"a long text without anything special in it, \xC3\xA4, "
         "then more\"}",
         "{\"a\":\"a long text without anything special in it, \xC3\xA4, then more\"}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_left(rows[i][0], rows[i][1]);
}

/* Whatever is wrong is found in what nobody wants, too, at the same place. */
static void test_as_strict(void **state)
{
    static const char *const rows[] = {
        "",
        "[]",
        "{\"b\": 01}",
        "{\"b\": \"\t\"}",
        "{\"b\": \"0123456\t\"}",
        "{\"b\": \"01234567\t\"}",
        "{\"b\": \"0123456\x80\"}",
        "{\"b\": \"\\x\"}",
        "{\"b\": \"\\ud800\"}",
        "{\"b\": \"\\u0000\"}",
        "{\"b\": [1, 2}",
        "{\"b\": [1,]}",
        "{\"list\": [{\"in\": 1,}]}",
        "{\"list\": [1 2]}",
        "{\"a\" 1}",
        "{\"a\": 1} x",
        "{\"a\": 1",
        "{\"b\": tru}",
        ("{\"list\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
         "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cJSON *root = NULL;
        mu_error whole;
        mu_error part;

        assert_int_equal(mu__json_parse(rows[i], strlen(rows[i]), "x", &whole, &root),
                         -MU_EINVALID);
        assert_int_equal(
            mu__json_parse_wanted(rows[i], strlen(rows[i]), wants, "x", &part, &root),
            -MU_EINVALID);
        assert_null(root);
        assert_string_equal(part.message, whole.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_left),
        cmocka_unit_test(test_as_strict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
