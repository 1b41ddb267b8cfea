/* Cluster specs: adding, parsing, checking, and what their errors say. */
#include <muster/cluster.h>

#include "resolver/spec/cluster.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Parts that an error's message must contain; NULL ends the list. */
#define PARTS_MAX 5

static void check_error(const char *what, int rv, const mu_error *error, int expected,
                        const char *const *parts)
{
    if (rv != expected)
        fail_msg("%s: returned %s, expected %s: %s", what, mu_err_name(rv),
                 mu_err_name(expected), error->message);
    assert_int_equal(error->code, expected);
    for (size_t i = 0; i < PARTS_MAX && parts[i] != NULL; i++) {
        if (strstr(error->message, parts[i]) == NULL)
            fail_msg("%s: no <%s> in <%s>", what, parts[i], error->message);
    }
}

static mu_cluster *parse(const char *json)
{
    mu_cluster *cluster = NULL;
    mu_error error;

    if (mu_cluster_parse(json, strlen(json), "spec", &error, &cluster) != 0)
        fail_msg("%s: %s", json, error.message);
    return cluster;
}

/* Addresses: what is accepted, and the url that it stands for. */
static const struct {
    const char *address;
    const char *url;
} good_addresses[] = {
    {"host:2222", "tcp://host:2222"},
    {"tcp://host:2222", "tcp://host:2222"},
    {"Host.Example.COM:80", "tcp://host.example.com:80"},
    {"host.:80", "tcp://host.:80"},
    {"my_job-0.svc:1", "tcp://my_job-0.svc:1"},
    {"a--b:1", "tcp://a--b:1"},
    {"10.0.0.7:65535", "tcp://10.0.0.7:65535"},
    {"localhost:0", "tcp://localhost:0"},
    {"[::1]:80", "tcp://[::1]:80"},
    {"tcp://[FE80:0:0::1]:80", "tcp://[fe80::1]:80"},
    {"ipc:///run/muster/w0", "ipc:///run/muster/w0"},
    {"ipc:///run/\xC3\xA9/\"w0\"", "ipc:///run/\xC3\xA9/\"w0\""},
};

static void test_good_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good_addresses); i++) {
        mu_cluster *cluster = mu_cluster_new();
        mu_error error;

        if (mu_cluster_add(cluster, "ps", 4, good_addresses[i].address, &error) != 0)
            fail_msg("%s", error.message);
        assert_string_equal(mu_cluster_address(cluster, "ps", 4),
                            good_addresses[i].address);
        assert_string_equal(mu__cluster_url(cluster, "ps", 4), good_addresses[i].url);
        mu_cluster_free(cluster);
    }
}

#define LABEL_64 "a234567890123456789012345678901234567890123456789012345678901234"
#define LABELS_128 LABEL_64 LABEL_64
#define LABEL_60 "a23456789012345678901234567890123456789012345678901234567890"
#define HOST_254 LABEL_60 "." LABEL_60 "." LABEL_60 "." LABEL_60 ".abcdefghij"

static const struct {
    const char *address;
    const char *why;
} bad_addresses[] = {
    {"", "it is empty"},
    {"host", "the port is missing"},
    {"host:", "the port is missing"},
    {"tcp://host", "the port is missing"},
    {"tcp://", "the port is missing"},
    {":80", "the host is missing"},
    {"host:http", "the port is not a number"},
    {"host:-1", "the port is not a number"},
    {"host:80/x", "the port is not a number"},
    {"host: 80", "the port is not a number"},
    {"host:65536", "the port is above 65535"},
    {"host:99999999999999999999", "the port is above 65535"},
    {"host:080", "the port has a leading zero"},
    {"::1:80", "an IPv6 address stands in brackets"},
    {"a:1:2", "several colons"},
    {"[::1:80", "the bracket is not closed"},
    {"[::1]", "the port is missing"},
    {"[::1]80", "the port is missing"},
    {"[::1]:x", "the port is not a number"},
    {"[fe80::1%eth0]:80", "with a zone says nothing to other machines"},
    {"[host]:80", "no IPv6 address in the brackets"},
    {"[" LABEL_64 "]:80", "no IPv6 address in the brackets"},
    {"1.2.3:80", "the host is not an IPv4 address"},
    {"1.2.3.256:80", "the host is not an IPv4 address"},
    {"a..b:80", "an empty part between dots"},
    {"-a:80", "a part that begins or ends with a hyphen"},
    {"a.b-:80", "a part that begins or ends with a hyphen"},
    {"a-.b:80", "a part that begins or ends with a hyphen"},
    {"-:80", "a part that begins or ends with a hyphen"},
    {".a:80", "an empty part between dots"},
    {"ho st:80", "a character that no host name has"},
    {"h\xC3\xA9:80", "a letter beyond ASCII: write it as DNS has it, xn--..."},
    {"h\xFF:80", "\"h\\xff:80\""},
    {LABEL_64 ":80", "a part of more than 63 bytes"},
    {HOST_254 ":80", "longer than 253 bytes"},
    {LABELS_128 LABELS_128 LABELS_128, "longer than any address"},
    {"grpc://host:80", "neither tcp nor ipc"},
    {"TCP://host:80", "neither tcp nor ipc"},
    {"ipc://run/w0", "the path is not absolute"},
    {"ipc:///", "the path is not absolute"},
    {"ipc:///" LABELS_128, "longer than 107 bytes"},
    {"ipc:///a\nb", "a control character"},
    {"ipc:///a\xC3", "not UTF-8"},
    {"ipc:///a\xED\xA0\x80", "not UTF-8"},
    {"ipc:///a\xC0\x80", "not UTF-8"},
};

static void test_bad_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad_addresses); i++) {
        const char *const parts[PARTS_MAX] = {"/job:worker/task:3: address \"",
                                              bad_addresses[i].why,
                                              "expected \"host:port\""};
        mu_cluster *cluster = mu_cluster_new();
        mu_error error;
        int rv = mu_cluster_add(cluster, "worker", 3, bad_addresses[i].address, &error);

        check_error(bad_addresses[i].address, rv, &error, -MU_EINVALID, parts);
        assert_int_equal(mu_cluster_task_count(cluster, NULL), 0);
        mu_cluster_free(cluster);
    }
}

/* What is added to a cluster that has worker 0 at "a:1" and worker 2 at "b:0". */
static const struct {
    const char *what;
    const char *type;
    int index;
    const char *address;
    int rv;
    const char *parts[PARTS_MAX];
} bad_adds[] = {
    {"unknown type", "wroker", 0, "c:1", -MU_EINVALID, {"\"wroker\"", "\"worker\"?"}},
    {"no type at all", "", 0, "c:1", -MU_EINVALID, {"\"\" is not a task type; expected"}},
    {"negative index", "ps", -1, "c:1", -MU_ERANGE, {"index -1", "0 to 999999"}},
    {"huge index", "ps", 1000000, "c:1", -MU_ERANGE, {"index 1000000", "0 to 999999"}},
    {"same task", "worker", 2, "c:1", -MU_EEXISTS, {"worker/task:2:", "index 2"}},
    {"same address", "ps", 0, "a:1", -MU_EEXISTS, {"ps/task:0:", "worker/task:0"}},
    {"same, in capitals", "ps", 0, "tcp://A:1", -MU_EEXISTS, {"\"tcp://A:1\""}},
};

static void test_bad_adds_change_nothing(void **state)
{
    mu_cluster *cluster = mu_cluster_new();

    (void)state;
    assert_int_equal(mu_cluster_add(cluster, "worker", 2, "b:0", NULL), 0);
    assert_int_equal(mu_cluster_add(cluster, "worker", 0, "a:1", NULL), 0);
    for (size_t i = 0; i < COUNT(bad_adds); i++) {
        mu_error error;
        int rv = mu_cluster_add(cluster, bad_adds[i].type, bad_adds[i].index,
                                bad_adds[i].address, &error);

        check_error(bad_adds[i].what, rv, &error, bad_adds[i].rv, bad_adds[i].parts);
        assert_int_equal(mu_cluster_task_count(cluster, NULL), 2);
    }
    /* Port 0 stands for a port chosen at start, so that this is another address. */
    assert_int_equal(mu_cluster_add(cluster, "worker", 3, "b:0", NULL), 0);
    assert_int_equal(mu_cluster_task_count(cluster, "worker"), 3);
    mu_cluster_free(cluster);
}

static void test_tasks_are_bounded(void **state)
{
    static const char *const parts[PARTS_MAX] = {"/job:ps/task:70000", "65536 tasks"};
    mu_cluster *cluster = mu_cluster_new();
    mu_error error;
    int rv;

    (void)state;
    for (int i = 0; i < MU_CLUSTER_TASKS_MAX; i++) {
        char address[32];

        (void)snprintf(address, sizeof address, "host%d:1", i);
        assert_int_equal(mu_cluster_add(cluster, "worker", i, address, NULL), 0);
    }
    rv = mu_cluster_add(cluster, "ps", 70000, "h:1", &error);
    check_error("full", rv, &error, -MU_EEXHAUSTED, parts);
    mu_cluster_free(cluster);
}

/* The order is by type, then by index, however the tasks came. */
static void test_order(void **state)
{
    static const char *const names[] = {"/job:chief/task:0",   "/job:client/task:5",
                                        "/job:ps/task:1",      "/job:worker/task:0",
                                        "/job:worker/task:10", "/job:worker/task:30"};
    mu_cluster *cluster =
        parse("{\"worker\":{\"30\":\"a:1\",\"0\":\"b:1\",\"10\":\"c:1\"},"
              "\"ps\":{\"1\":\"d:1\"},\"client\":{\"5\":\"e:1\"},"
              "\"chief\":[\"f:1\"]}");
    const char *type = "untouched";
    const char *address = "untouched";
    int index = 77;

    (void)state;
    assert_int_equal(mu_cluster_task_at(cluster, COUNT(names), &type, &index, &address),
                     -MU_ERANGE);
    assert_string_equal(type, "untouched");
    assert_int_equal(index, 77);
    for (size_t i = 0; i < COUNT(names); i++) {
        char name[64];

        assert_int_equal(mu_cluster_task_at(cluster, i, &type, &index, &address), 0);
        mu__task_name(name, sizeof name, type, index);
        assert_string_equal(name, names[i]);
        assert_string_equal(address, mu_cluster_address(cluster, type, index));
    }
    mu_cluster_free(cluster);
}

/* What parses, and how it is written again. */
static const struct {
    const char *what;
    const char *json;
    const char *written;
    size_t tasks;
} good_specs[] = {
    {"nothing", "{}", "{}", 0},
    {"one job", "{\"worker\":[\"a:1\",\"b:1\"]}", "{\"worker\":[\"a:1\",\"b:1\"]}", 2},
    {"byte order mark", "\xEF\xBB\xBF {\"ps\":[\"a:1\"]}\n", "{\"ps\":[\"a:1\"]}", 1},
    {"job without tasks", "{\"worker\":[],\"ps\":{}}", "{}", 0},
    {"sparse", "{\"ps\":{\"3\":\"a:1\"}}", "{\"ps\":{\"3\":\"a:1\"}}", 1},
    {"an object that is dense", "{\"ps\":{\"1\":\"b:1\",\"0\":\"a:1\"}}",
     "{\"ps\":[\"a:1\",\"b:1\"]}", 2},
    {"escapes", "{\"\\u0070s\":[\"ipc:///\\u00e9\\ud83d\\ude00\\\\\"]}",
     "{\"ps\":[\"ipc:///\xC3\xA9\xF0\x9F\x98\x80\\\\\"]}", 1},
    {"all types",
     "{\"worker\":[\"a:1\"],\"ps\":[\"b:1\"],\"evaluator\":[\"c:1\"],"
     "\"client\":[\"d:1\"],\"chief\":[\"e:1\"]}",
     "{\"chief\":[\"e:1\"],\"client\":[\"d:1\"],\"evaluator\":[\"c:1\"],"
     "\"ps\":[\"b:1\"],\"worker\":[\"a:1\"]}",
     5},
};

static void test_good_specs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good_specs); i++) {
        mu_cluster *cluster = parse(good_specs[i].json);
        char *written = mu_cluster_to_json(cluster);
        mu_cluster *again = parse(written);
        mu_cluster *copy = mu_cluster_copy(again);
        char *of_copy = mu_cluster_to_json(copy);

        assert_string_equal(written, good_specs[i].written);
        assert_string_equal(of_copy, good_specs[i].written);
        assert_int_equal(mu_cluster_task_count(copy, NULL), good_specs[i].tasks);
        free(of_copy);
        mu_cluster_free(copy);
        mu_cluster_free(again);
        free(written);
        mu_cluster_free(cluster);
    }
}

/* What was refused before is refused by the copy, and it has room for more. */
static void test_copy_goes_on(void **state)
{
    mu_cluster *cluster = parse("{\"worker\":[\"a:1\",\"b:0\",\"c:1\"]}");
    mu_cluster *copy = mu_cluster_copy(cluster);
    char address[32];

    (void)state;
    mu_cluster_free(cluster);
    assert_int_equal(mu_cluster_add(copy, "worker", 1, "d:1", NULL), -MU_EEXISTS);
    assert_int_equal(mu_cluster_add(copy, "worker", 3, "A:1", NULL), -MU_EEXISTS);
    assert_int_equal(mu_cluster_add(copy, "worker", 3, "b:0", NULL), 0);
    for (int i = 4; i < 100; i++) {
        (void)snprintf(address, sizeof address, "host-%d:1", i);
        assert_int_equal(mu_cluster_add(copy, "worker", i, address, NULL), 0);
        assert_int_equal(mu_cluster_add(copy, "ps", i, address, NULL), -MU_EEXISTS);
    }
    assert_int_equal(mu_cluster_task_count(copy, "worker"), 100);
    assert_string_equal(mu__cluster_url(copy, "worker", 2), "tcp://c:1");
    mu_cluster_free(copy);
}

#define FIVE(x) x x x x x
#define TEN(x) FIVE(x) FIVE(x)
#define EURO "\xE2\x82\xAC"
#define DEEP TEN("[") TEN("[") TEN("[") TEN("[") TEN("]") TEN("]") TEN("]") TEN("]")

static const struct {
    const char *what;
    const char *json;
    int rv;
    const char *parts[PARTS_MAX];
} bad_specs[] = {
    /* Syntax: line, column, expectation, what was there, excerpt. */
    {"empty", "", -MU_EINVALID, {"spec: the text is empty", "JSON object"}},
    {"blank", " \r\n\t ", -MU_EINVALID, {"spec: the text is empty"}},
    {"a list", "[\"a:1\"]", -MU_EINVALID, {"line 1, column 1: expected an object"}},
    {"a word", "worker", -MU_EINVALID, {"expected an object", "got \"w\""}},
    {"cut short",
     "{\"worker\":[\"a:1\"",
     -MU_EINVALID,
     {"line 1, column 17: expected JSON, got the end of the text",
      "near \"{\\\"worker\\\":[\\\"a:1\\\"\""}},
    {"second line",
     "{\"worker\":\n  [\"a:1\" \"b:1\"]}",
     -MU_EINVALID,
     {"line 2, column 10: expected JSON, got \"\\\"\"", "near \"  [\\\"a:1"}},
    {"column counts characters", "{\"\xC3\xA9\" 1}", -MU_EINVALID, {"column 6", "\"1\""}},
    {"garbage after", "{} x", -MU_EINVALID, {"column 4: expected nothing", "\"x\""}},
    {"second object", "{}{}", -MU_EINVALID, {"column 3: expected nothing", "\"{\""}},
    {"Python quotes",
     "{'worker': []}",
     -MU_EINVALID,
     {"column 2: expected a key in double quotes, got \"'\""}},
    {"trailing comma in an object",
     "{\"worker\": [], }",
     -MU_EINVALID,
     {"column 16: expected a key in double quotes, got \"}\""}},
    {"behind an empty object", "{\"worker\":[1,{}x]}", -MU_EINVALID, {"column 16"}},
    {"behind a number", "{\"worker\":[1,2x]}", -MU_EINVALID, {"column 15"}},
    {"bad escape behind a comma", "{\"a\":\",b\\q\"}", -MU_EINVALID, {"column 9"}},
    {"trailing comma",
     "{\"worker\":[\"a:1\",]}",
     -MU_EINVALID,
     {"column 18: expected JSON, got \"]\""}},
    {"no colon", "{\"worker\" [1]}", -MU_EINVALID, {"column 11", "got \"[\""}},
    {"wrong bracket", "{\"worker\":[1}", -MU_EINVALID, {"column 13", "got \"}\""}},
    {"too deep", "{\"worker\":" DEEP "}", -MU_EINVALID, {"at most 32 lists and objects"}},
    {"only a minus", "{\"worker\":[-]}", -MU_EINVALID, {"column 12", "got \"-\""}},
    {"half an exponent", "{\"worker\":[1e+]}", -MU_EINVALID, {"column 13", "got \"e\""}},
    {"half a word", "{\"worker\":nul}", -MU_EINVALID, {"column 11", "got \"n\""}},
    {"a zero byte as escape", "{\"worker\\u0000\":[]}", -MU_EINVALID, {"zero byte"}},
    {"half an escape", "{\"worker\\u00g0\":[]}", -MU_EINVALID, {"four hexadecimal"}},
    {"an escape behind a backslash",
     "{\"worker\\\\u0000\":[]}",
     -MU_EINVALID,
     {"\"worker\\\\u0000\""}},
    {"unknown escape", "{\"worker\\x\":[]}", -MU_EINVALID, {"column 9", "got \"\\\\\""}},
    {"lone high surrogate", "{\"\\ud83dx\":[]}", -MU_EINVALID, {"column 3"}},
    {"lone low surrogate", "{\"\\ude00\":[]}", -MU_EINVALID, {"column 3"}},
    {"half a pair", "{\"\\ud83d\\uDe\":[]}", -MU_EINVALID, {"column 3"}},
    {"two high surrogates", "{\"\\ud83d\\ud83d\":[]}", -MU_EINVALID, {"column 3"}},
    {"half a character at the end",
     "{\"worker\":[\"h\xE2\x82",
     -MU_EINVALID,
     {"column 13: expected JSON, got \"h\""}},
    {"half a character in a text",
     "{\"worker\":[\"h\xE2\x82\"]}",
     -MU_EINVALID,
     {"column 14: expected UTF-8, got \"\\xe2\""}},
    {"invalid UTF-8 in a key",
     "{\"w\xFF\":[]}",
     -MU_EINVALID,
     {"column 4: expected UTF-8, got \"\\xff\""}},
    /* 20 bytes before and after: five characters of three bytes, and a part of one. */
    {"excerpt cut in characters",
     "{\"" TEN(EURO) "\"  1 \"" TEN(EURO) "\"}",
     -MU_EINVALID,
     {"got \"1\"", "near \"" FIVE(EURO) "\\\"  1 \\\"" FIVE(EURO) "\""}},
    {"invalid UTF-8",
     "{\"worker\":[\"h\xFF:1\"]}",
     -MU_EINVALID,
     {"column 14: expected UTF-8, got \"\\xff\""}},
    {"open text", "{\"worker", -MU_EINVALID, {"column 3: expected JSON, got \"w\""}},

    /* cJSON takes these with the meaning that they seem to have, so what they say is
     * judged and not how they are written. */
    {"leading zero",
     "{\"worker\":[03]}",
     -MU_EINVALID,
     {"worker[0]: expected", "number 3"}},
    {"half a number",
     "{\"worker\":[1.]}",
     -MU_EINVALID,
     {"worker[0]: expected", "number 1"}},
    {"long number",
     "{\"worker\":[" TEN("12345") "]}",
     -MU_EINVALID,
     {"number 1.234512345"}},
    {"line end in a text", "{\"worker\n\":[]}", -MU_EINVALID, {"\"worker\\x0a\""}},

    /* Jobs. */
    {"null job",
     "{\"worker\":null}",
     -MU_EINVALID,
     {"spec: worker: expected a list", "got null"}},
    {"text job",
     "{\"worker\":\"a:1\"}",
     -MU_EINVALID,
     {"spec: worker: expected a list", "got text \"a:1\""}},
    {"number job", "{\"worker\":3}", -MU_EINVALID, {"spec: worker:", "got number 3"}},
    {"true job", "{\"ps\":true}", -MU_EINVALID, {"spec: ps:", "got true"}},
    {"job twice",
     "{\"ps\":[],\"worker\":[],\"ps\":[]}",
     -MU_EEXISTS,
     {"spec: the key \"ps\" stands twice"}},
    {"ps_hosts",
     "{\"ps_hosts\":[\"a:1\"]}",
     -MU_EINVALID,
     {"spec: \"ps_hosts\" is not a task type", "did you mean \"ps\"?"}},
    {"master",
     "{\"master\":[\"a:1\"]}",
     -MU_EINVALID,
     {"spec: \"master\" is not a task type", "called \"chief\""}},
    {"nothing near",
     "{\"Banana\":[\"a:1\"]}",
     -MU_EINVALID,
     {"\"Banana\" is not a task type; expected chief, client"}},
    {"too long for a type",
     "{\"a234567890123456\":[\"a:1\"]}",
     -MU_EINVALID,
     {"at most 15 small letters, digits and _"}},
    {"a digit first", "{\"1a\":[\"a:1\"]}", -MU_EINVALID, {"\"1a\" is not a task type"}},
    {"a hyphen", "{\"a-b\":[\"a:1\"]}", -MU_EINVALID, {"\"a-b\" is not a task type"}},

    /* Addresses. */
    {"number",
     "{\"worker\":[\"a:1\",\"b:1\",7]}",
     -MU_EINVALID,
     {"spec: worker[2]: expected \"host:port\", got number 7"}},
    {"null", "{\"worker\":[null]}", -MU_EINVALID, {"spec: worker[0]:", "got null"}},
    {"list", "{\"worker\":[[]]}", -MU_EINVALID, {"spec: worker[0]:", "got a list"}},
    {"sparse object",
     "{\"ps\":{\"4\":{}}}",
     -MU_EINVALID,
     {"spec: ps[\"4\"]: expected \"host:port\", got an object"}},
    {"bad address",
     "{\"ps\":{\"4\":\"h\"}}",
     -MU_EINVALID,
     {"spec: ps[\"4\"]: address \"h\": the port is missing", "expected \"host:port\""}},
    {"address twice",
     "{\"ps\":[\"a:1\"],\"worker\":[\"b:1\",\"A:1\"]}",
     -MU_EEXISTS,
     {"spec: worker[1]: address \"A:1\"", "/job:ps/task:0"}},

    {"address twice, once with a dot",
     "{\"worker\":[\"host.:80\",\"host:80\"]}",
     -MU_EEXISTS,
     {"spec: worker[1]: address \"host:80\"", "/job:worker/task:0"}},

    /* Sparse keys. */
    {"key twice",
     "{\"ps\":{\"4\":\"a:1\",\"4\":\"b:1\"}}",
     -MU_EEXISTS,
     {"spec: ps[\"4\"]:", "index 4", "expected it once"}},
    {"key with zero",
     "{\"ps\":{\"03\":\"a:1\"}}",
     -MU_EINVALID,
     {"spec: ps: expected an index of 0 to 999999", "got \"03\""}},
    {"key with space",
     "{\"ps\":{\" 3\":\"a:1\"}}",
     -MU_EINVALID,
     {"spec: ps:", "\" 3\""}},
    {"key with plus", "{\"ps\":{\"+3\":\"a:1\"}}", -MU_EINVALID, {"spec: ps:", "\"+3\""}},
    {"empty key", "{\"ps\":{\"\":\"a:1\"}}", -MU_EINVALID, {"spec: ps:", "got \"\""}},
    {"negative key", "{\"ps\":{\"-1\":\"a:1\"}}", -MU_ERANGE, {"spec: ps:", "\"-1\""}},
    {"only a minus", "{\"ps\":{\"-\":\"a:1\"}}", -MU_EINVALID, {"spec: ps:", "\"-\""}},
    {"key beyond", "{\"ps\":{\"1000000\":\"a:1\"}}", -MU_ERANGE, {"\"1000000\""}},
    {"key far beyond",
     "{\"ps\":{\"99999999999999999999\":\"a:1\"}}",
     -MU_ERANGE,
     {"0 to 999999", "\"99999999999999999999\""}},
};

static void test_bad_specs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad_specs); i++) {
        mu_cluster *cluster = NULL;
        mu_error error;
        int rv = mu_cluster_parse(bad_specs[i].json, strlen(bad_specs[i].json), "spec",
                                  &error, &cluster);

        check_error(bad_specs[i].what, rv, &error, bad_specs[i].rv, bad_specs[i].parts);
        assert_null(cluster);
    }
}

/* Bytes that no C string holds. */
static void test_zero_bytes(void **state)
{
    static const char inside[] = "{\"worker\":[\"a:1\0\"]}";
    static const char between[] = "{\"worker\":\0[\"a:1\"]}";
    static const char after[] = "{}\0";
    static const char *const parts[3][PARTS_MAX] = {
        {"column 16", "expected no zero byte", "\"\\x00\""},
        {"column 11", "expected no zero byte", "\"\\x00\""},
        {"column 3", "expected no zero byte", "\"\\x00\""},
    };
    mu_cluster *cluster = NULL;
    mu_error error;
    int rv;

    (void)state;
    rv = mu_cluster_parse(inside, sizeof inside - 1, "spec", &error, &cluster);
    check_error("inside a text", rv, &error, -MU_EINVALID, parts[0]);
    rv = mu_cluster_parse(between, sizeof between - 1, "spec", &error, &cluster);
    check_error("between tokens", rv, &error, -MU_EINVALID, parts[1]);
    rv = mu_cluster_parse(after, sizeof after - 1, "spec", &error, &cluster);
    check_error("after the object", rv, &error, -MU_EINVALID, parts[2]);
    assert_null(cluster);
}

/* Far deeper than cJSON itself goes. */
static void test_depth_is_bounded(void **state)
{
    static const char *const parts[PARTS_MAX] = {"spec: line 1, column ", "got \"[\""};
    enum { SIZE = 100000 };
    char *text = malloc(SIZE);
    mu_cluster *cluster = NULL;
    mu_error error;
    int rv;

    (void)state;
    assert_non_null(text);
    memset(text, '[', SIZE);
    memcpy(text, "{\"ps\":", 6);
    rv = mu_cluster_parse(text, SIZE, "spec", &error, &cluster);
    check_error("too deep", rv, &error, -MU_EINVALID, parts);
    assert_null(cluster);
    free(text);
}

static void test_text_is_bounded(void **state)
{
    static const char *const parts[PARTS_MAX] = {"spec:", "8388609 bytes", "8388608"};
    size_t size = MU_CLUSTER_JSON_BYTES_MAX + 1;
    char *text = malloc(size);
    mu_cluster *cluster = NULL;
    mu_error error;
    int rv;

    (void)state;
    assert_non_null(text);
    memset(text, ' ', size);
    memcpy(text, "{}", 2);
    rv = mu_cluster_parse(text, size, "spec", &error, &cluster);
    check_error("too long", rv, &error, -MU_EEXHAUSTED, parts);
    rv = mu_cluster_parse(text, size - 1, "spec", &error, &cluster);
    assert_int_equal(rv, 0);
    mu_cluster_free(cluster);
    free(text);
}

/* Ten thousand tasks: all there, and one address that stands twice is found. */
static void test_many_tasks(void **state)
{
    enum { TASKS = 10000 };
    char *text = malloc(TASKS * 32);
    mu_cluster *cluster = NULL;
    mu_error error;
    size_t used = 0;

    (void)state;
    assert_non_null(text);
    used += (size_t)snprintf(text, TASKS * 32, "{\"worker\":{");
    for (int i = TASKS - 1; i >= 0; i--)
        used += (size_t)snprintf(text + used, TASKS * 32 - used,
                                 "\"%d\":\"host-%d:2222\"%s", i, i, i > 0 ? "," : "}}");
    assert_int_equal(mu_cluster_parse(text, used, "spec", &error, &cluster), 0);
    assert_int_equal(mu_cluster_task_count(cluster, "worker"), TASKS);
    assert_string_equal(mu_cluster_address(cluster, "worker", 9999), "host-9999:2222");
    assert_null(mu_cluster_address(cluster, "worker", TASKS));
    assert_int_equal(mu_cluster_add(cluster, "ps", 0, "host-4321:2222", &error),
                     -MU_EEXISTS);
    assert_non_null(strstr(error.message, "/job:worker/task:4321"));
    mu_cluster_free(cluster);
    free(text);
}

/* Which task may be part of which cluster. */
static const struct {
    const char *what;
    const char *json;
    const char *type;
    int index;
    int rv;
    const char *parts[PARTS_MAX];
} checks[] = {
    {"cluster alone", "{\"worker\":[\"a:1\"]}", NULL, 0, 0, {0}},
    {"no cluster", "{}", NULL, 0, 0, {0}},
    {"chief", "{\"chief\":[\"a:1\"]}", "chief", 0, 0, {0}},
    {"sparse", "{\"ps\":{\"7\":\"a:1\"}}", "ps", 7, 0, {0}},
    {"evaluator inside", "{\"evaluator\":[\"a:1\"]}", "evaluator", 0, 0, {0}},
    {"evaluator outside", "{\"worker\":[\"a:1\"]}", "evaluator", 0, 0, {0}},
    {"client outside", "{\"worker\":[\"a:1\"]}", "client", 12, 0, {0}},
    {"two chiefs",
     "{\"chief\":[\"a:1\",\"b:1\"]}",
     NULL,
     0,
     -MU_EINVALID,
     {"\"chief\" has 2 tasks", "expected at most 1"}},
    {"chief 1",
     "{\"chief\":{\"1\":\"a:1\"}}",
     NULL,
     0,
     -MU_EINVALID,
     {"\"chief\" has index 1", "expected index 0"}},
    {"two evaluators",
     "{\"evaluator\":[\"a:1\",\"b:1\"]}",
     "evaluator",
     0,
     -MU_EINVALID,
     {"\"evaluator\" has 2 tasks", "expected at most 1"}},
    {"second evaluator outside", "{\"worker\":[\"a:1\"]}", "evaluator", 1, 0, {0}},
    {"evaluator beside the one inside",
     "{\"evaluator\":[\"a:1\"]}",
     "evaluator",
     1,
     -MU_ERANGE,
     {"index 1", "\"evaluator\" with its 1 task;", "expected 0"}},
    {"client not among them",
     "{\"client\":[\"a:1\"]}",
     "client",
     1,
     -MU_ERANGE,
     {"index 1", "\"client\" with its 1 task;", "expected 0"}},
    {"unknown type", "{}", "Worker", 0, -MU_EINVALID, {"\"Worker\"", "mean \"worker\"?"}},
    {"job without tasks",
     "{\"worker\":[],\"ps\":[\"a:1\"],\"chief\":[\"b:1\"]}",
     "worker",
     0,
     -MU_ENOTFOUND,
     {"\"worker\"", "expected", "chief (1), ps (1)"}},
    {"empty cluster", "{}", "worker", 0, -MU_ENOTFOUND, {"\"worker\"", "no task at all"}},
    {"negative", "{\"ps\":[\"a:1\"]}", "ps", -1, -MU_ERANGE, {"index -1", "0 to 999999"}},
    {"beyond a dense job",
     "{\"worker\":[\"a:1\",\"b:1\",\"c:1\"]}",
     "worker",
     3,
     -MU_ERANGE,
     {"index 3", "\"worker\" with its 3 tasks", "expected 0 to 2"}},
    {"in a gap",
     "{\"ps\":{\"0\":\"a:1\",\"4\":\"b:1\",\"9\":\"c:1\"}}",
     "ps",
     5,
     -MU_ERANGE,
     {"index 5", "\"ps\" with its 3 tasks", "expected 0, 4, 9"}},
};

static void test_checks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(checks); i++) {
        mu_cluster *cluster = parse(checks[i].json);
        mu_error error = {0};
        int rv = mu_cluster_validate(cluster, checks[i].type, checks[i].index, &error);

        check_error(checks[i].what, rv, &error, checks[i].rv, checks[i].parts);
        assert_int_equal(
            mu_cluster_validate(cluster, checks[i].type, checks[i].index, NULL),
            checks[i].rv);
        mu_cluster_free(cluster);
    }
}

/* A long list of indices is cut, and still tells the last. */
static void test_long_list_of_indices(void **state)
{
    mu_cluster *cluster = mu_cluster_new();
    mu_error error;

    (void)state;
    for (int i = 0; i < 100; i++) {
        char address[32];

        (void)snprintf(address, sizeof address, "h%d:1", i);
        assert_int_equal(mu_cluster_add(cluster, "ps", 999999 - 2 * i, address, NULL), 0);
    }
    assert_int_equal(mu_cluster_validate(cluster, "ps", 1, &error), -MU_ERANGE);
    assert_non_null(strstr(error.message, "expected 999801, 999803, "));
    assert_non_null(strstr(error.message, ", ... 999999"));
    mu_cluster_free(cluster);
}

static const struct {
    const char *json;
    const char *type;
    int index;
    int chief;
} chiefs[] = {
    {"{\"chief\":[\"a:1\"],\"worker\":[\"b:1\"]}", "chief", 0, 1},
    {"{\"chief\":[\"a:1\"],\"worker\":[\"b:1\"]}", "worker", 0, 0},
    {"{\"worker\":[\"a:1\",\"b:1\"]}", "worker", 0, 1},
    {"{\"worker\":[\"a:1\",\"b:1\"]}", "worker", 1, 0},
    {"{\"worker\":[\"a:1\"],\"ps\":[\"b:1\"]}", "ps", 0, 0},
    {"{\"worker\":[\"a:1\"]}", "evaluator", 0, 1},
    {"{\"worker\":[\"a:1\"]}", "client", 0, 0},
    {"{\"worker\":[\"a:1\"]}", "nobody", 0, 0},
};

static void test_who_is_chief(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(chiefs); i++) {
        mu_cluster *cluster = parse(chiefs[i].json);

        assert_int_equal(mu_cluster_is_chief(cluster, chiefs[i].type, chiefs[i].index),
                         chiefs[i].chief);
        mu_cluster_free(cluster);
    }
}

static const struct {
    const char *name;
    const char *type;
} suggestions[] = {
    {"workers", "worker"},
    {"Worker", "worker"},
    {"WORKER", "worker"},
    {"worker0", "worker"},
    {"wroker", "worker"},
    {"ps_hosts", "ps"},
    {"pss", "ps"},
    {"PS", "ps"},
    {"worker_hosts", "worker"},
    {"parameter_server", "ps"},
    {"master", "chief"},
    {"Master", "chief"},
    {"chef", "chief"},
    {"cheif", "chief"},
    {"eval", "evaluator"},
    {"evaluater", "evaluator"},
    {"clients", "client"},
    {"coordinator", NULL},
    {"banana", NULL},
    {"", NULL},
    {"tpu_worker", NULL},
    {LABEL_64, NULL},
};

/* Types of a program's own: in the order of the alphabet among the others, in every form
 * that a spec has. */
static void test_types_of_ones_own(void **state)
{
    static const char json[] = "{\"coordinator\":[\"a:1\"],\"custom\":{\"3\":\"b:1\"},"
                               "\"ps\":[\"c:1\"],\"tpu_worker\":[\"d:1\",\"e:1\"]}";
    mu_cluster *cluster = parse(json);
    mu_cluster *copy = mu_cluster_copy(cluster);
    char *text = mu_cluster_to_json(copy);
    mu_error error;

    (void)state;
    assert_string_equal(text, json);
    free(text);
    assert_true(mu_cluster_equal(cluster, copy));
    assert_string_equal(mu_cluster_job_at(cluster, 1), "custom");
    assert_null(mu_cluster_job_at(cluster, 4));
    assert_int_equal(mu_cluster_task_count(cluster, "tpu_worker"), 2);
    assert_int_equal(mu_cluster_validate(cluster, "tpu_worker", 1, &error), 0);
    assert_int_equal(mu_cluster_validate(cluster, "other", 0, &error), -MU_ENOTFOUND);
    assert_string_equal(mu_cluster_address(cluster, "custom", 3), "b:1");
    mu_cluster_free(copy);
    mu_cluster_free(cluster);
}

/* A type that no task came in with does not count. */
static void test_bound_of_types(void **state)
{
    mu_cluster *cluster = mu_cluster_new();
    char type[16];
    char address[16];
    mu_error error;

    (void)state;
    for (int i = 0; i < 2 * MU_CLUSTER_TYPES_MAX; i++) {
        (void)snprintf(type, sizeof type, "bad%d", i);
        assert_int_equal(mu_cluster_add(cluster, type, 0, "x", &error), -MU_EINVALID);
    }
    for (int i = 0; i < MU_CLUSTER_TYPES_MAX; i++) {
        (void)snprintf(type, sizeof type, "type%d", i);
        (void)snprintf(address, sizeof address, "a:%d", i + 1);
        assert_int_equal(mu_cluster_add(cluster, type, 0, address, &error), 0);
    }
    assert_int_equal(mu_cluster_add(cluster, "another", 0, "b:1", &error),
                     -MU_EEXHAUSTED);
    assert_non_null(strstr(error.message, "32 task types already"));
    mu_cluster_free(cluster);
}

static void test_suggestions(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(suggestions); i++) {
        const char *type = mu__task_type_suggest(suggestions[i].name);

        if (type != NULL)
            assert_false(mu__task_type_is_valid(suggestions[i].name));
        if (suggestions[i].type == NULL && type != NULL)
            fail_msg("%s -> %s", suggestions[i].name, type);
        if (suggestions[i].type != NULL && type == NULL)
            fail_msg("%s -> nothing", suggestions[i].name);
        if (type != NULL)
            assert_string_equal(type, suggestions[i].type);
    }
    assert_true(mu__task_type_is_valid("evaluator"));
}

/* Readers take NULL for an empty spec. */
static void test_null_is_empty(void **state)
{
    mu_cluster *copy = mu_cluster_copy(NULL);
    char *json = mu_cluster_to_json(NULL);
    const char *type;
    const char *address;
    int index;

    (void)state;
    assert_int_equal(mu_cluster_task_count(NULL, NULL), 0);
    assert_int_equal(mu_cluster_task_count(NULL, "ps"), 0);
    assert_null(mu_cluster_address(NULL, "ps", 0));
    assert_null(mu__cluster_url(NULL, "ps", 0));
    assert_int_equal(mu_cluster_task_at(NULL, 0, &type, &index, &address), -MU_ERANGE);
    assert_int_equal(mu_cluster_validate(NULL, NULL, 0, NULL), 0);
    assert_int_equal(mu_cluster_validate(NULL, "ps", 0, NULL), -MU_ENOTFOUND);
    assert_int_equal(mu_cluster_is_chief(NULL, "worker", 0), 1);
    assert_string_equal(json, "{}");
    assert_int_equal(mu_cluster_task_count(copy, NULL), 0);
    free(json);
    mu_cluster_free(copy);
    mu_cluster_free(NULL);
}

/* Only a worker may join that the cluster does not list, and only where a chief is. */
static void test_who_may_join(void **state)
{
    mu_cluster *cluster = parse("{\"chief\":[\"a:1\"],\"worker\":[\"a:2\"]}");
    mu_cluster *chiefless = parse("{\"worker\":[\"a:2\"]}");
    mu_cluster *wrong = parse("{\"chief\":[\"a:1\",\"a:2\"]}");

    (void)state;
    assert_true(mu__cluster_may_join(cluster, "worker", 1));
    assert_true(mu__cluster_may_join(cluster, "worker", MU_CLUSTER_INDEX_MAX));
    assert_false(mu__cluster_may_join(cluster, "worker", MU_CLUSTER_INDEX_MAX + 1));
    assert_false(mu__cluster_may_join(cluster, "worker", -1));
    assert_false(mu__cluster_may_join(cluster, "ps", 1));
    assert_false(mu__cluster_may_join(cluster, "banana", 1));
    assert_false(mu__cluster_may_join(chiefless, "worker", 1));
    assert_false(mu__cluster_may_join(wrong, "worker", 1));
    assert_false(mu__cluster_may_join(NULL, "worker", 1));
    mu_cluster_free(cluster);
    mu_cluster_free(chiefless);
    mu_cluster_free(wrong);
}

/* Asking for what is not there. */
static void test_unknown_tasks(void **state)
{
    mu_cluster *cluster = parse("{\"ps\":{\"3\":\"a:1\"}}");

    (void)state;
    assert_string_equal(mu_cluster_address(cluster, "ps", 3), "a:1");
    assert_null(mu_cluster_address(cluster, "ps", 0));
    assert_null(mu_cluster_address(cluster, "ps", -1));
    assert_null(mu_cluster_address(cluster, "banana", 3));
    assert_int_equal(mu_cluster_task_count(cluster, "banana"), 0);
    assert_int_equal(mu_cluster_task_count(cluster, "worker"), 0);
    mu_cluster_free(cluster);
}

/* Let cJSON's allocation 0 fail, then 1, then 2, until a run sees no failure; the leak
 * checker is the assertion. */
static long allocations_left = -1;

static void *failing_malloc(size_t size)
{
    if (allocations_left == 0) {
        errno = ENOMEM; /* as malloc sets it */
        return NULL;
    }
    if (allocations_left > 0)
        allocations_left--;
    return malloc(size);
}

static void test_every_json_allocation_can_fail(void **state)
{
    static const char json[] = "{\"ps\":{\"3\":\"a:1\"},\"worker\":[\"b:1\"]}";
    cJSON_Hooks hooks = {failing_malloc, free};
    mu_cluster *cluster = NULL;
    char *written = NULL;
    mu_error error;
    long n;

    (void)state;
    cJSON_InitHooks(&hooks);
    for (n = 0; cluster == NULL && n < 100; n++) {
        int rv;

        allocations_left = n;
        rv = mu_cluster_parse(json, strlen(json), "spec", &error, &cluster);
        allocations_left = -1;
        assert_true(rv == 0 || rv == -MU_ENOMEM);
        if (rv != 0)
            assert_string_equal(error.message, "spec: out of memory");
    }
    assert_in_range(n, 5, 99);
    for (n = 0; written == NULL && n < 100; n++) {
        allocations_left = n;
        written = mu_cluster_to_json(cluster);
        allocations_left = -1;
    }
    cJSON_InitHooks(NULL);
    assert_in_range(n, 5, 99);
    assert_string_equal(written, json);
    free(written);
    mu_cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_addresses),
        cmocka_unit_test(test_bad_addresses),
        cmocka_unit_test(test_bad_adds_change_nothing),
        cmocka_unit_test(test_tasks_are_bounded),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_good_specs),
        cmocka_unit_test(test_copy_goes_on),
        cmocka_unit_test(test_bad_specs),
        cmocka_unit_test(test_zero_bytes),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_text_is_bounded),
        cmocka_unit_test(test_many_tasks),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_long_list_of_indices),
        cmocka_unit_test(test_who_is_chief),
        cmocka_unit_test(test_types_of_ones_own),
        cmocka_unit_test(test_bound_of_types),
        cmocka_unit_test(test_suggestions),
        cmocka_unit_test(test_null_is_empty),
        cmocka_unit_test(test_who_may_join),
        cmocka_unit_test(test_unknown_tasks),
        cmocka_unit_test(test_every_json_allocation_can_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
