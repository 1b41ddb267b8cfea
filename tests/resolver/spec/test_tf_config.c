/* TF_CONFIG: what is accepted, and what the errors say. */
#include "tests/support/test.h"

#include <muster/cluster.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum {
    PARTS_MAX = 4,
    NO_CLUSTER = -1 /* in `tasks`: the cluster is NULL */
};

#define CLUSTER                                                                 \
    "\"cluster\":{\"chief\":[\"c:1\"],\"worker\":[\"w0:1\",\"w1:1\",\"w2:1\"]," \
    "\"ps\":{\"4\":\"p4:1\",\"9\":\"p9:1\"}}"
#define TASK(type, index) "{" CLUSTER ",\"task\":{\"type\":" type ",\"index\":" index "}}"

static const struct {
    const char *what;
    const char *json;
    int tasks;
    const char *type;
    int index;
    const char *rpc_layer;
    const char *environment;
} good[] = {
    {"nothing", "{}", NO_CLUSTER, "", -1, "", ""},
    {"worker", TASK("\"worker\"", "2"), 6, "worker", 2, "", ""},
    {"index as text", TASK("\"worker\"", "\"1\""), 6, "worker", 1, "", ""},
    {"index with a point", TASK("\"worker\"", "1.0"), 6, "worker", 1, "", ""},
    {"sparse", TASK("\"ps\"", "9"), 6, "ps", 9, "", ""},
    {"evaluator outside", TASK("\"evaluator\"", "0"), 6, "evaluator", 0, "", ""},
    {"second evaluator outside", TASK("\"evaluator\"", "1"), 6, "evaluator", 1, "", ""},
    {"client outside", TASK("\"client\"", "3"), 6, "client", 3, "", ""},
    {"no index, one chief", "{" CLUSTER ",\"task\":{\"type\":\"chief\"}}", 6, "chief", 0,
     "", ""},
    {"no index, one sparse task",
     "{\"cluster\":{\"chief\":[\"c:1\"],\"ps\":{\"5\":\"a:1\"}},"
     "\"task\":{\"type\":\"ps\"}}",
     2, "ps", 5, "", ""},
    {"no index, evaluator", "{" CLUSTER ",\"task\":{\"type\":\"evaluator\"}}", 6,
     "evaluator", 0, "", ""},
    {"task first", "{\"task\":{\"index\":1,\"type\":\"worker\"}," CLUSTER "}", 6,
     "worker", 1, "", ""},
    {"no task", "{" CLUSTER "}", 6, "", -1, "", ""},
    {"empty task", "{" CLUSTER ",\"task\":{}}", 6, "", -1, "", ""},
    {"other keys of a task", "{\"task\":{\"trial\":\"1\"}}", NO_CLUSTER, "", -1, "", ""},
    {"empty cluster", "{\"cluster\":{}}", NO_CLUSTER, "", -1, "", ""},
    {"empty cluster, a task",
     "{\"cluster\":{},\"task\":{\"type\":\"worker\",\"index\":0}}", NO_CLUSTER, "worker",
     0, "", ""},
    {"no cluster, a task", "{\"task\":{\"type\":\"ps\",\"index\":8}}", NO_CLUSTER, "ps",
     8, "", ""},
    {"cluster without tasks", "{\"cluster\":{\"worker\":[]}}", 0, "", -1, "", ""},
    {"the rest", "{\"rpc_layer\":\"grpc\",\"environment\":\"google\"}", NO_CLUSTER, "",
     -1, "grpc", "google"},
    {"longest", "{\"rpc_layer\":\"123456789012345\"}", NO_CLUSTER, "", -1,
     "123456789012345", ""},
    {"unknown keys", "{\"job\":{\"a\":[1,null,{}]},\"Task\":7,\"CLUSTER\":7}", NO_CLUSTER,
     "", -1, "", ""},
    {"keys as escapes", "{\"\\u0074ask\":{\"type\":\"ps\",\"index\":0}}", NO_CLUSTER,
     "ps", 0, "", ""},
};

TEST(test_good)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        mu_tf_config config;
        mu_error error;

        memset(&config, 'x', sizeof config);
        if (mu_tf_config_parse(good[i].json, strlen(good[i].json), &error, &config) != 0)
            fail_msg("%s: %s", good[i].what, error.message);
        if (good[i].tasks == NO_CLUSTER)
            assert_null(config.cluster);
        else
            assert_int_equal(mu_cluster_task_count(config.cluster, NULL), good[i].tasks);
        assert_string_equal(config.task_type, good[i].type);
        assert_int_equal(config.task_index, good[i].index);
        assert_string_equal(config.rpc_layer, good[i].rpc_layer);
        assert_string_equal(config.environment, good[i].environment);
        mu_cluster_free(config.cluster);
    }
}

/* What a session connects to is taken as it stands; it fits the longest address. */
TEST(test_session_master)
{
    static const char format[] = "{\"session_master\":\"%s\"}";
    mu_tf_config config = {.session_master = "x"};
    mu_error error = {0};
    char longest[300] = "grpc://";
    char json[400];

    assert_int_equal(mu_tf_config_parse("{}", 2, &error, &config), 0);
    assert_string_equal(config.session_master, "");
    for (size_t i = strlen(longest); i < sizeof config.session_master - 1; i++)
        longest[i] = 'a';
    (void)snprintf(json, sizeof json, format, longest);
    assert_int_equal(mu_tf_config_parse(json, strlen(json), &error, &config), 0);
    assert_string_equal(config.session_master, longest);
    longest[strlen(longest)] = 'a';
    (void)snprintf(json, sizeof json, format, longest);
    assert_int_equal(mu_tf_config_parse(json, strlen(json), &error, &config),
                     -MU_EINVALID);
    assert_non_null(strstr(error.message, "session_master: expected a text of at most"));
}

static const struct {
    const char *what;
    const char *json;
    int rv;
    const char *parts[PARTS_MAX];
} bad[] = {
    {"empty", "", -MU_EINVALID, {"TF_CONFIG: the text is empty", "JSON object"}},
    {"blank", " \n", -MU_EINVALID, {"TF_CONFIG: the text is empty"}},
    {"a list", "[]", -MU_EINVALID, {"TF_CONFIG: line 1, column 1: expected an object"}},
    {"syntax",
     "{\"task\":\n{\"type\" \"ps\"}}",
     -MU_EINVALID,
     {"TF_CONFIG: line 2, column 9: expected JSON, got \"\\\"\"",
      "near \"{\\\"type\\\""}},
    {"garbage after", "{}}", -MU_EINVALID, {"column 3: expected nothing", "\"}\""}},
    {"key twice",
     "{\"task\":{},\"task\":{}}",
     -MU_EEXISTS,
     {"TF_CONFIG: the key \"task\" appears twice"}},
    {"unknown key twice", "{\"a\":1,\"a\":1}", -MU_EEXISTS, {"the key \"a\""}},
    {"type twice",
     "{\"task\":{\"type\":\"ps\",\"type\":\"ps\"}}",
     -MU_EEXISTS,
     {"TF_CONFIG: task: the key \"type\" appears twice"}},
    {"job twice",
     "{\"cluster\":{\"ps\":[],\"ps\":[]}}",
     -MU_EEXISTS,
     {"TF_CONFIG: cluster: the key \"ps\" appears twice"}},

    {"cluster null",
     "{\"cluster\":null}",
     -MU_EINVALID,
     {"TF_CONFIG: cluster: expected an object", "got null"}},
    {"cluster a list",
     "{\"cluster\":[]}",
     -MU_EINVALID,
     {"TF_CONFIG: cluster: expected an object", "got a list"}},
    {"address a number",
     "{\"cluster\":{\"worker\":[\"a:1\",\"b:1\",7]}}",
     -MU_EINVALID,
     {"TF_CONFIG: cluster.worker[2]: expected \"host:port\", got number 7"}},
    {"address without port",
     "{\"cluster\":{\"ps\":{\"3\":\"h\"}}}",
     -MU_EINVALID,
     {"TF_CONFIG: cluster.ps[\"3\"]: address \"h\"", "port", "expected \"host:port\""}},
    {"job null",
     "{\"cluster\":{\"ps\":null}}",
     -MU_EINVALID,
     {"TF_CONFIG: cluster.ps: expected a list", "got null"}},
    {"unknown job",
     "{\"cluster\":{\"ps_hosts\":[]}}",
     -MU_EINVALID,
     {"TF_CONFIG: cluster: \"ps_hosts\"", "did you mean \"ps\"?"}},
    {"master as job",
     "{\"cluster\":{\"master\":[\"a:1\"]}}",
     -MU_EINVALID,
     {"TF_CONFIG: cluster: \"master\"", "called \"chief\""}},
    {"two chiefs",
     "{\"cluster\":{\"chief\":[\"a:1\",\"b:1\"]}}",
     -MU_EINVALID,
     {"TF_CONFIG: cluster: the job \"chief\" has 2 tasks", "expected at most 1"}},

    {"task null",
     "{\"task\":null}",
     -MU_EINVALID,
     {"TF_CONFIG: task: expected an object", "got null"}},
    {"task a text",
     "{\"task\":\"worker\"}",
     -MU_EINVALID,
     {"TF_CONFIG: task: expected an object", "got text \"worker\""}},
    {"type missing",
     "{\"task\":{\"index\":0}}",
     -MU_EINVALID,
     {"TF_CONFIG: task.type is missing", "expected it"}},
    {"type null", TASK("null", "0"), -MU_EINVALID, {"task.type: expected", "got null"}},
    {"type a number", TASK("5", "0"), -MU_EINVALID, {"task.type: expected", "number 5"}},
    {"type empty",
     TASK("\"\"", "0"),
     -MU_EINVALID,
     {"TF_CONFIG: task.type: \"\" is not"}},
    {"type near",
     TASK("\"Worker\"", "0"),
     -MU_EINVALID,
     {"TF_CONFIG: task.type: \"Worker\"", "did you mean \"worker\"?"}},
    {"type master",
     TASK("\"master\"", "0"),
     -MU_EINVALID,
     {"TF_CONFIG: task.type: \"master\"", "called \"chief\""}},
    {"type not in the cluster",
     "{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"chief\",\"index\":0}}",
     -MU_ENOTFOUND,
     {"TF_CONFIG: task.type:", "\"chief\"", "worker (1)"}},

    {"index missing",
     "{" CLUSTER ",\"task\":{\"type\":\"worker\"}}",
     -MU_EINVALID,
     {"TF_CONFIG: task.index is missing", "3 tasks of type \"worker\""}},
    {"index missing, no cluster",
     "{\"task\":{\"type\":\"worker\"}}",
     -MU_EINVALID,
     {"TF_CONFIG: task.index is missing", "expected an index"}},
    {"index missing, client outside",
     "{" CLUSTER ",\"task\":{\"type\":\"client\"}}",
     -MU_EINVALID,
     {"TF_CONFIG: task.index is missing"}},
    {"index null",
     TASK("\"worker\"", "null"),
     -MU_EINVALID,
     {"TF_CONFIG: task.index: expected a whole number of 0 to 999999", "got null"}},
    {"index true", TASK("\"worker\"", "true"), -MU_EINVALID, {"task.index", "got true"}},
    {"index half", TASK("\"worker\"", "1.5"), -MU_EINVALID, {"task.index", "number 1.5"}},
    {"index tiny", TASK("\"worker\"", "1e-9"), -MU_EINVALID, {"task.index", "1e-09"}},
    {"index negative", TASK("\"worker\"", "-1"), -MU_ERANGE, {"task.index", "number -1"}},
    {"index huge", TASK("\"worker\"", "1e300"), -MU_ERANGE, {"task.index", "1e+300"}},
    {"index infinite", TASK("\"worker\"", "1e999"), -MU_ERANGE, {"task.index", "inf"}},
    {"text leading zero",
     TASK("\"worker\"", "\"01\""),
     -MU_EINVALID,
     {"TF_CONFIG: task.index: expected", "got text \"01\""}},
    {"text with space", TASK("\"worker\"", "\" 1\""), -MU_EINVALID, {"text \" 1\""}},
    {"text with point", TASK("\"worker\"", "\"1.0\""), -MU_EINVALID, {"text \"1.0\""}},
    {"text empty", TASK("\"worker\"", "\"\""), -MU_EINVALID, {"got text \"\""}},
    {"text negative", TASK("\"worker\"", "\"-1\""), -MU_ERANGE, {"got text \"-1\""}},
    {"text huge", TASK("\"worker\"", "\"1000000\""), -MU_ERANGE, {"text \"1000000\""}},
    {"beyond the job",
     TASK("\"worker\"", "3"),
     -MU_ERANGE,
     {"TF_CONFIG: task.index: index 3", "\"worker\" with its 3 tasks",
      "expected 0 to 2"}},
    {"in a gap",
     TASK("\"ps\"", "0"),
     -MU_ERANGE,
     {"TF_CONFIG: task.index: index 0", "\"ps\" with its 2 tasks", "expected 4, 9"}},
    {"second evaluator",
     "{\"cluster\":{\"evaluator\":[\"e:1\"]},"
     "\"task\":{\"type\":\"evaluator\",\"index\":1}}",
     -MU_ERANGE,
     {"TF_CONFIG: task.index: index 1", "\"evaluator\" with its 1 task;", "expected 0"}},
    {"session_master null",
     "{\"session_master\":null}",
     -MU_EINVALID,
     {"TF_CONFIG: session_master: expected a text, got null"}},

    {"rpc_layer null",
     "{\"rpc_layer\":null}",
     -MU_EINVALID,
     {"TF_CONFIG: rpc_layer: expected a text, got null"}},
    {"rpc_layer too long",
     "{\"rpc_layer\":\"1234567890123456\"}",
     -MU_EINVALID,
     {"TF_CONFIG: rpc_layer:", "at most 15 bytes", "\"1234567890123456\""}},
    {"environment a number",
     "{\"environment\":1}",
     -MU_EINVALID,
     {"TF_CONFIG: environment: expected a text, got number 1"}},
    {"after a good cluster",
     "{" CLUSTER ",\"environment\":[]}",
     -MU_EINVALID,
     {"TF_CONFIG: environment: expected a text, got a list"}},
};

TEST(test_bad)
{
    for (size_t i = 0; i < COUNT(bad); i++) {
        mu_tf_config before;
        mu_tf_config config;
        mu_error error;
        int rv;

        memset(&before, 'x', sizeof before);
        memset(&config, 'x', sizeof config);
        rv = mu_tf_config_parse(bad[i].json, strlen(bad[i].json), &error, &config);
        if (rv != bad[i].rv)
            fail_msg("%s: returned %s, expected %s: %s", bad[i].what, mu_err_name(rv),
                     mu_err_name(bad[i].rv), rv != 0 ? error.message : "");
        assert_int_equal(error.code, rv);
        for (size_t k = 0; k < PARTS_MAX && bad[i].parts[k] != NULL; k++) {
            if (strstr(error.message, bad[i].parts[k]) == NULL)
                fail_msg("%s: no <%s> in <%s>", bad[i].what, bad[i].parts[k],
                         error.message);
        }
        assert_memory_equal(&config, &before, sizeof config);
    }
}

/* Where a text that is cut short cannot be read: at its end, or where the text begins
 * whose closing quote is missing. */
static void expect_place(const char *json, size_t size, char *out, size_t room)
{
    size_t quotes = 0;
    size_t last = 0;

    for (size_t i = 0; i < size; i++) {
        if (json[i] == '"') {
            quotes++;
            last = i;
        }
    }
    if (quotes % 2 == 0 || last == size - 1)
        (void)snprintf(out, room, "column %zu: expected JSON, got the end", size + 1);
    else
        (void)snprintf(out, room, "column %zu: expected JSON, got \"%c\"", last + 2,
                       json[last + 1]);
}

/* Every prefix of a good text is bad, and says where. */
TEST(test_cut_short)
{
    static const char json[] = TASK("\"worker\"", "2");

    for (size_t size = 1; size < sizeof json - 1; size++) {
        mu_tf_config config;
        mu_error error;
        char place[64];

        assert_int_equal(mu_tf_config_parse(json, size, &error, &config), -MU_EINVALID);
        expect_place(json, size, place, sizeof place);
        assert_non_null(strstr(error.message, place));
        assert_int_equal(mu_tf_config_parse(json, size, NULL, &config), -MU_EINVALID);
    }
}

TEST_PROGRAM()
