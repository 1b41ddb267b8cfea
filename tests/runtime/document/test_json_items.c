/* JSON with one large list, which is read item by item. */
#include "runtime/document/json.h"
#include "tests/support/test.h"

#include <stdbool.h>

static mu_error error;

/* The items as one text each line. */
struct lines {
    char text[256];
    unsigned count;
    unsigned fails_at; /* 0: never */
};

static int on_item(void *owner, const cJSON *item)
{
    struct lines *lines = owner;
    size_t used = strlen(lines->text);
    char written[64];

    lines->count++;
    if (lines->count == lines->fails_at)
        return -MU_ENOMEM;
    assert_true(cJSON_PrintPreallocated((cJSON *)(uintptr_t)item, written, sizeof written,
                                        0));
    (void)snprintf(lines->text + used, sizeof lines->text - used, "%s\n", written);
    return 0;
}

static int read_items(const char *text, struct lines *lines, cJSON **ret_root)
{
    memset(&error, 0, sizeof error);
    return mu__json_parse_items(text, strlen(text), "pods", "items", on_item, lines,
                                &error, ret_root);
}

TEST(test_items_and_the_rest)
{
    static const struct {
        const char *text;
        const char *items;
        const char *rest;
    } rows[] = {
        {"{}", "", "{}"},
        {" { } ", "", "{}"},
        {"{\"items\":[]}", "", "{\"items\":[]}"},
        {"{\"a\":1,\"items\":[{\"b\":[2]},null , \"c\"],\"d\":{\"e\":true}}",
         "{\"b\":[2]}\nnull\n\"c\"\n", "{\"a\":1,\"items\":[],\"d\":{\"e\":true}}"},
        {"{\"\\u0069tems\" :\n[ 1,\t2 ] }", "1\n2\n", "{\"items\":[]}"},
        {"{\"items\":null}", "", "{\"items\":null}"},
        {"{\"items\":{\"items\":[1]}}", "", "{\"items\":{\"items\":[1]}}"},
        {"{\"items\":[1],\"items\":[2]}", "1\n", "{\"items\":[],\"items\":[2]}"},
        {"\xEF\xBB\xBF{\"items\":[\"\xc3\xa4\"]}", "\"\xc3\xa4\"\n", "{\"items\":[]}"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lines lines = {.count = 0};
        cJSON *root = NULL;
        char *rest;

        if (read_items(rows[i].text, &lines, &root) != 0)
            fail_msg("%s: %s", rows[i].text, error.message);
        rest = cJSON_PrintUnformatted(root);
        assert_string_equal(rest, rows[i].rest);
        assert_string_equal(lines.text, rows[i].items);
        cJSON_free(rest);
        cJSON_Delete(root);
    }
}

TEST(test_bad_text)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"", "the text is empty"},
        {"[1]", "line 1, column 1: expected an object"},
        {"{", "column 2: expected a key in double quotes, got the end of the text"},
        {"{1:2}", "column 2: expected a key in double quotes, got \"1\""},
        {"{\"a\" 1}", "column 6: expected JSON, got \"1\""},
        {"{\"a\":1,}", "column 8: expected a key in double quotes, got \"}\""},
        {"{\"a\":1 \"b\":2}", "column 8: expected JSON, got \"\\\"\""},
        {"{\"a\":1} x", "column 9: expected nothing after the object, got \"x\""},
        {"{\"items\":[1,]}", "column 13: expected JSON, got \"]\""},
        {"{\"items\":[,1]}", "column 11: expected JSON, got \",\""},
        {"{\"items\":[1 2]}", "column 13: expected JSON, got \"2\""},
        {"{\"items\":[1", "column 12: expected JSON, got the end of the text"},
        {"{\"items\":[1}", "column 12: expected JSON, got \"}\""},
        {"{\"items\":[{'a':1}]}", "column 12: expected a key in double quotes, got "},
        {"{\"items\":[\xEF\xBB\xBF"
         "1,2,3]}",
         "column 11: expected JSON"},
        {"{\"items\":[\"\\u0000\"]}", "expected no zero byte in a text"},
        {"{\"items\":[\"123456789\xff\"]}", "column 21: expected UTF-8"},
        {"{\"1234567890\xff\":0}", "column 13: expected UTF-8"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lines lines = {.count = 0};
        cJSON *root = NULL;

        if (read_items(rows[i].text, &lines, &root) != -MU_EINVALID)
            fail_msg("%s was taken", rows[i].text);
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s: \"%s\" is not in \"%s\"", rows[i].text, rows[i].words,
                     error.message);
        assert_null(root);
    }
}

TEST(test_items_too_deep)
{
    char text[128] = "{\"items\":[";
    cJSON *root = NULL;

    for (unsigned depth = 1; depth <= MU__JSON_DEPTH_MAX; depth++) {
        size_t size = strlen("{\"items\":[") + depth;
        struct lines lines = {.count = 0};
        bool fits = depth + 1 <= MU__JSON_DEPTH_MAX;

        memset(text + strlen("{\"items\":["), '[', depth);
        memset(text + size, ']', depth);
        memcpy(text + size + depth, "]}", 3);
        assert_int_equal(read_items(text, &lines, &root), fits ? 0 : -MU_EINVALID);
        if (fits)
            cJSON_Delete(root);
        else
            assert_non_null(strstr(error.message, "inside each other"));
    }
}

TEST(test_no_memory_for_an_item)
{
    struct lines lines = {.fails_at = 2};
    cJSON *root = NULL;

    assert_int_equal(read_items("{\"items\":[1,2,3]}", &lines, &root), -MU_ENOMEM);
    assert_string_equal(error.message, "pods: out of memory");
    assert_int_equal(lines.count, 2);
    assert_null(root);
}

TEST_PROGRAM()
