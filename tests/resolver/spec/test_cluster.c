/* Cluster specs: adding and parsing, and what their errors say. */
#include "tests/resolver/spec/cluster_fixture.h"

#include "resolver/spec/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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

TEST(test_good_addresses)
{
    for (size_t i = 0; i < COUNT(good_addresses); i++) {
        mu_cluster *cluster = mu_cluster_new();
        mu_error error;

        if (mu_cluster_add(cluster, "ps", 4, good_addresses[i].address, &error) != 0)
            fail_msg("%s", error.message);
        assert_string_equal(mu_cluster_address(cluster, "ps", 4),
                            good_addresses[i].address);
        assert_string_equal(mu_cluster_url(cluster, "ps", 4), good_addresses[i].url);
        mu_cluster_free(cluster);
    }
}

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
    {"grpc://host:80", "none of tcp, ipc"},
    {"TCP://host:80", "none of tcp, ipc"},
    {"ipc://run/w0", "the path is not absolute"},
    {"ipc:///", "the path is not absolute"},
    {"ipc:///" LABELS_128, "longer than 107 bytes"},
    {"ipc:///a\nb", "a control character"},
    {"ipc:///a\xC3", "not UTF-8"},
    {"ipc:///a\xED\xA0\x80", "not UTF-8"},
    {"ipc:///a\xC0\x80", "not UTF-8"},
};

TEST(test_bad_addresses)
{
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

TEST(test_bad_adds_change_nothing)
{
    mu_cluster *cluster = mu_cluster_new();

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

TEST(test_tasks_are_bounded)
{
    static const char *const parts[PARTS_MAX] = {"/job:ps/task:70000", "65536 tasks"};
    mu_cluster *cluster = mu_cluster_new();
    mu_error error;
    int rv;

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
TEST(test_order)
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

TEST(test_good_specs)
{
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
TEST(test_copy_goes_on)
{
    mu_cluster *cluster = parse("{\"worker\":[\"a:1\",\"b:0\",\"c:1\"]}");
    mu_cluster *copy = mu_cluster_copy(cluster);
    char address[32];

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
    assert_string_equal(mu_cluster_url(copy, "worker", 2), "tcp://c:1");
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
     {"spec: the key \"ps\" appears twice"}},
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

TEST(test_bad_specs)
{
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
TEST(test_zero_bytes)
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

    rv = mu_cluster_parse(inside, sizeof inside - 1, "spec", &error, &cluster);
    check_error("inside a text", rv, &error, -MU_EINVALID, parts[0]);
    rv = mu_cluster_parse(between, sizeof between - 1, "spec", &error, &cluster);
    check_error("between tokens", rv, &error, -MU_EINVALID, parts[1]);
    rv = mu_cluster_parse(after, sizeof after - 1, "spec", &error, &cluster);
    check_error("after the object", rv, &error, -MU_EINVALID, parts[2]);
    assert_null(cluster);
}

/* Far deeper than cJSON itself goes. */
TEST(test_depth_is_bounded)
{
    static const char *const parts[PARTS_MAX] = {"spec: line 1, column ", "got \"[\""};
    enum { SIZE = 100000 };
    char *text = malloc(SIZE);
    mu_cluster *cluster = NULL;
    mu_error error;
    int rv;

    assert_non_null(text);
    memset(text, '[', SIZE);
    memcpy(text, "{\"ps\":", 6);
    rv = mu_cluster_parse(text, SIZE, "spec", &error, &cluster);
    check_error("too deep", rv, &error, -MU_EINVALID, parts);
    assert_null(cluster);
    free(text);
}

TEST(test_text_is_bounded)
{
    static const char *const parts[PARTS_MAX] = {"spec:", "8388609 bytes", "8388608"};
    size_t size = MU_CLUSTER_JSON_BYTES_MAX + 1;
    char *text = malloc(size);
    mu_cluster *cluster = NULL;
    mu_error error;
    int rv;

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

/* Ten thousand tasks: all there, and one address that appears twice is found. */
TEST(test_many_tasks)
{
    enum { TASKS = 10000 };
    char *text = malloc(TASKS * 32);
    mu_cluster *cluster = NULL;
    mu_error error;
    size_t used = 0;

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

TEST(test_every_json_allocation_can_fail)
{
    static const char json[] = "{\"ps\":{\"3\":\"a:1\"},\"worker\":[\"b:1\"]}";
    cJSON_Hooks hooks = {failing_malloc, free};
    mu_cluster *cluster = NULL;
    char *written = NULL;
    mu_error error;
    long n;

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

TEST_PROGRAM()
