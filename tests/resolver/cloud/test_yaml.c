/* YAML as a tree, by rows: what a text is as JSON, or what is said of it. */
#include "resolver/cloud/kubernetes/yaml.h"
#include "tests/support/test.h"

static void expect_json(const char *text, const char *json)
{
    mu_error error;
    cJSON *root;
    char *got;

    if (mu__yaml_parse(text, strlen(text), "x.yaml", &error, &root) != 0)
        fail_msg("%s: %s", text, error.message);
    got = cJSON_PrintUnformatted(root);
    assert_string_equal(got, json);
    cJSON_free(got);
    cJSON_Delete(root);
}

static void expect_error_of(const char *text, size_t size, int code, const char *words)
{
    cJSON *root = NULL;
    mu_error error;

    assert_int_equal(mu__yaml_parse(text, size, "x.yaml", &error, &root), code);
    assert_int_equal(error.code, code);
    assert_null(root);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
}

static void expect_error(const char *text, int code, const char *words)
{
    expect_error_of(text, strlen(text), code, words);
}

TEST(test_trees)
{
    static const char *const rows[][2] = {
        {"", "null"},
        {"# nothing\n", "null"},
        {"\xEF\xBB\xBF"
         "a: b\n",
         "{\"a\":\"b\"}"},
        {"---\na: b\n...\n", "{\"a\":\"b\"}"},
        {"a:\n- b\n- c: d\n  e: f\n", "{\"a\":[\"b\",{\"c\":\"d\",\"e\":\"f\"}]}"},
        {"{\"a\": [1, true, null, \"x\"]}", "{\"a\":[\"1\",true,null,\"x\"]}"},
        {"{\n\t\"a\": [\n\t\t1\n\t]\n}\n", "{\"a\":[\"1\"]}"},
        {"a: &here b\n", "{\"a\":\"b\"}"},
        {"a: >\n  x\n  y\nb: |\n  x\n  y\n", "{\"a\":\"x y\\n\",\"b\":\"x\\ny\\n\"}"},
        {"7: a\ntrue: b\n", "{\"7\":\"a\",\"true\":\"b\"}"},
        {"a: {}\nb: []\nc:\n", "{\"a\":{},\"b\":[],\"c\":null}"},
        {"'it''s'", "\"it's\""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_json(rows[i][0], rows[i][1]);
}

TEST(test_scalars)
{
    static const char *const rows[][2] = {
        {"~", "null"},
        {"Null", "null"},
        {"nUll", "\"nUll\""},
        {"True", "true"},
        {"FALSE", "false"},
        {"yes", "\"yes\""},
        {"on", "\"on\""},
        {"0", "\"0\""},
        {"-12", "\"-12\""},
        {"007", "\"007\""},
        {".inf", "\".inf\""},
        {"1e999", "\"1e999\""},
        {"\"5\"", "\"5\""},
        {"'true'", "\"true\""},
        {"!!str 5", "\"5\""},
        {"! 5", "\"5\""},
        {"!!str null", "\"null\""},
        {"!!map {a: 1}", "{\"a\":\"1\"}"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_json(rows[i][0], rows[i][1]);
}

TEST(test_refused)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"a: b\n---\nc: d\n", -MU_EINVALID,
         "x.yaml: line 2, column 1: expected one document, got another"},
        {"a: &x b\nc: *x\n", -MU_EINVALID, "line 2, column 4: expected no alias"},
        {"a: 1\nb: 2\na: 3\n", -MU_EEXISTS,
         "x.yaml: line 1, column 1: the key \"a\" appears twice"},
        {"a: !own b\n", -MU_EINVALID, "line 1, column 4: expected no tag but"},
        {"a: !!int 5\n", -MU_EINVALID, "expected no tag but"},
        {"a: !own [b]\n", -MU_EINVALID, "expected no tag but"},
        {"? [a]\n: b\n", -MU_EINVALID, "line 1, column 3: expected a text as a key"},
        {"? {a: b}\n: b\n", -MU_EINVALID, "expected a text as a key"},
        {"a: \"x\\0y\"\n", -MU_EINVALID, "expected no zero byte in a text"},
        {"a: [b\n", -MU_EINVALID, "x.yaml: line 2, column 1: expected YAML: while"},
        {"a: b: c\n", -MU_EINVALID, "line 1, column 5: expected YAML"},
        {"a:\n\t- b\n", -MU_EINVALID, "line 2, column 1: expected YAML"},
        {"\xFF\xFE", -MU_EINVALID, "byte 0: expected UTF-8"},
        {"a: \x01", -MU_EINVALID, "byte 3: expected UTF-8"},
        {"%YAML 3.0\n---\na: b\n", -MU_EINVALID, "expected YAML"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_error(rows[i].text, rows[i].code, rows[i].words);
}

TEST(test_bounds)
{
    size_t size = MU__YAML_BYTES_MAX + 1;
    char *text = malloc(size);

    assert_non_null(text);
    memset(text, '[', size);
    expect_error_of(text, size, -MU_EEXHAUSTED, "expected at most 4194304");
    expect_error_of(text, MU__YAML_DEPTH_MAX + 1, -MU_EEXHAUSTED,
                    "expected fewer mappings and sequences inside each other");
    for (size_t i = 1; i < size; i += 2)
        memcpy(text + i, "1,", i + 1 < size ? 2 : 1);
    expect_error_of(text, size - 1, -MU_EEXHAUSTED, "expected fewer scalars");
    free(text);
}

TEST_PROGRAM()
