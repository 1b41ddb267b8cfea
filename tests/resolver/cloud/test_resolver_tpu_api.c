/* The resolver tpu, by rows: states, bad answers, queued resources, where the API is, and
 * tokens. */
#include "tests/resolver/cloud/tpu_fixture.h"

#include <stdio.h>

/* ---- States and bad answers ---- */

TEST(test_states)
{
    static const struct {
        const char *state;
        int code;
    } rows[] = {
        {"CREATING", -MU_EUNAVAILABLE},    {"STARTING", -MU_EUNAVAILABLE},
        {"RESTARTING", -MU_EUNAVAILABLE},  {"REIMAGING", -MU_EUNAVAILABLE},
        {"REPAIRING", -MU_EUNAVAILABLE},   {"UNHIDING", -MU_EUNAVAILABLE},
        {"STOPPING", -MU_EPRECONDITION},   {"STOPPED", -MU_EPRECONDITION},
        {"DELETING", -MU_EPRECONDITION},   {"PREEMPTED", -MU_EPRECONDITION},
        {"TERMINATED", -MU_EPRECONDITION}, {"HIDING", -MU_EPRECONDITION},
        {"HIDDEN", -MU_EPRECONDITION},     {"SOMETHING", -MU_EPRECONDITION},
        {"UNKNOWN", -MU_EPRECONDITION},    {"STATE_UNSPECIFIED", -MU_EUNAVAILABLE},
    };
    char text[256];
    char words[256];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {ROW_NODE("n", .text = text), SCRIPT_END};

        (void)snprintf(text, sizeof text,
                       "{\"state\": \"%s\", \"ipAddress\": \"10.0.0.2\"}", rows[i].state);
        (void)snprintf(words, sizeof words,
                       "TPU \"n\" (project p, zone z) is not ready: state \"%s\"",
                       rows[i].state);
        script_expect_error(kind, script, named, rows[i].code, words);
    }
}

TEST(test_bad_nodes)
{
    static const struct {
        struct script_row row;
        int code;
        const char *words;
    } rows[] = {
        {ROW_NODE("n", .text = "{}"), -MU_EUNAVAILABLE, "it does not say its state"},
        {ROW_NODE("n", .text = "{\"state\": 7}"), -MU_EINVALID, "state: expected a text"},
        {ROW_NODE("n", .text = "{\"state\": \"READY\"}"), -MU_EUNAVAILABLE,
         "the API tells no network endpoints of it"},
        {ROW_NODE("n", .text = "{\"state\": \"READY\", \"networkEndpoints\": []}"),
         -MU_EUNAVAILABLE, "the API tells no network endpoints of it"},
        {ROW_NODE("n", .text = "{\"state\": \"READY\", \"networkEndpoints\": 7}"),
         -MU_EINVALID, "networkEndpoints: expected a list"},
        {ROW_NODE("n", .text = "{\"state\": \"READY\", \"networkEndpoints\": [7]}"),
         -MU_EINVALID, "networkEndpoints[0]: ipAddress: expected an address"},
        {ROW_NODE("n", .text = "{\"state\": \"READY\", \"networkEndpoints\": "
                               "[{\"ipAddress\": \"a\", \"port\": \"x\"}]}"),
         -MU_EINVALID, "networkEndpoints[0]: port: expected a number of 1 to 65535"},
        {ROW_NODE("n", .text = "{\"state\": \"READY\", \"networkEndpoints\": "
                               "[{\"ipAddress\": \"a b\"}]}"),
         -MU_EINVALID, "TPU \"n\" (project p, zone z)[0]: expected HOST"},
        {ROW_NODE("n", .text = "{\"state\": "), -MU_EINVALID, "line 1, column 11"},
        {ROW_NODE("n", .text = "[]"), -MU_EINVALID, "expected an object"},
        {ROW_NODE("n", .text = "<a>", .content_type = "text/html"), -MU_EINVALID,
         "expected an answer of type application/json, got text/html"},
        {ROW_NODE("n", .status = 403,
                  .text = "{\"error\": {\"message\": \"Permission 'tpu.nodes.get' "
                          "denied\"}}"),
         -MU_EPERMISSION, "it says \"Permission 'tpu.nodes.get' denied\""},
        {ROW_NODE("n", .status = 401, .text = "{}"), -MU_EUNAUTHENTICATED,
         "TPU \"n\" (project p, zone z): setting access_token is not accepted"},
        {ROW_NODE("n", .status = 503, .text = "{}"), -MU_EUNAVAILABLE,
         "the server has failed"},
        {ROW_NODE("n", .code = -MU_EEXHAUSTED, .text = "too large"), -MU_EEXHAUSTED,
         "TPU \"n\" (project p, zone z): too large"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {rows[i].row, SCRIPT_END};

        script_expect_error(kind, script, named, rows[i].code, rows[i].words);
    }
}

TEST(test_no_such_node)
{
    static const char *const meant[] = {"tpu=node-l", "project=p", "zone=z",
                                        "access_token=secret", NULL};
    static const struct script_row rows[] = {
        ROW_NODE("node-l", .status = 404, .text = "{}"),
        SCRIPT(HTTP, .name = NODES "?pageSize=1000",
               .text = "{\"nodes\": [{\"name\": \"projects/p/locations/z/nodes/node-1\"},"
                       "7, {\"name\": 7}]}"),
        SCRIPT(HTTP, .name = QUEUES "?pageSize=1000", .text = "{}"),
        SCRIPT_END,
    };
    static const struct script_row forbidden[] = {
        ROW_NODE("n", .status = 404, .text = "{}"),
        SCRIPT(HTTP, .name = QUEUES "?pageSize=1000", .status = 403, .text = "{}"),
        SCRIPT(HTTP, .name = NODES "?pageSize=1000", .status = 403, .text = "{}"),
        SCRIPT_END,
    };

    script_expect_error(kind, rows, meant, -MU_ENOTFOUND,
                        "TPU \"node-l\" (project p, zone z): the API knows no such TPU "
                        "there; did you mean \"node-1\"?");
    script_expect_error(kind, forbidden, named, -MU_ENOTFOUND,
                        "the API knows no such TPU there: check name, project and zone");
}

/* ---- Queued resources ---- */

#define QUEUE(name, state, specs)                                                 \
    "{\"name\": \"projects/p/locations/z/queuedResources/" name "\", \"state\": " \
    "{\"state\": \"" state "\"}, \"tpu\": {\"nodeSpec\": [" specs "]}}"
#define SPEC(node) \
    "{\"parent\": \"projects/1/locations/z\", \"nodeId\": \"" node "\", \"node\": {}}"
#define SLICES(more) \
    "{\"parent\": \"projects/1/locations/z\", \"multisliceParams\": {" more "}}"
#define READY_AT(ip) \
    "{\"state\": \"READY\", \"networkEndpoints\": [{\"ipAddress\": \"" ip "\"}]}"

static const char *const queued[] = {"tpu=projects/p/locations/z/queuedResources/q",
                                     "access_token=secret", NULL};

/* All nodes of a queued resource, which may be slices of one job. */
TEST(test_queued_resource)
{
    static const char *const mixed[] = {
        "tpu=projects/p/locations/z/nodes/n, projects/p/locations/z/queuedResources/q,"
        "grpc://10.0.0.9",
        "access_token=secret", NULL};
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = QUEUES "/q",
               .text = QUEUE("q", "ACTIVE", SLICES("\"nodeCount\": 2") "," SPEC("m"))),
        ROW_NODE("q-0", .text = READY_AT("10.0.0.1")),
        ROW_NODE("q-1", .text = READY_AT("10.0.0.2")),
        ROW_NODE("m", .text = READY_AT("10.0.0.3")),
        ROW_NODE("n", .text = READY_AT("10.0.0.4")),
        SCRIPT_END,
    };
    static const struct script_row named_slices[] = {
        SCRIPT(HTTP, .name = QUEUES "/q",
               .text = QUEUE("q", "ACTIVE",
                             SLICES("\"nodeCount\": 1, \"nodeIdPrefix\": \"slice\""))),
        ROW_NODE("slice-0", .text = READY_AT("10.0.0.1")),
        SCRIPT_END,
    };

    script_expect(kind, rows, queued,
                  "{\"worker\":[\"10.0.0.1:8470\",\"10.0.0.2:8470\","
                  "\"10.0.0.3:8470\"]}",
                  "");
    script_expect(kind, rows, mixed,
                  "{\"worker\":[\"10.0.0.4:8470\",\"10.0.0.1:8470\","
                  "\"10.0.0.2:8470\",\"10.0.0.3:8470\",\"10.0.0.9:8470\"]}",
                  "");
    script_expect(kind, named_slices, queued, "{\"worker\":[\"10.0.0.1:8470\"]}", "");
}

TEST(test_states_of_queues)
{
    static const struct {
        const char *state;
        int code;
    } rows[] = {
        {"CREATING", -MU_EUNAVAILABLE},
        {"ACCEPTED", -MU_EUNAVAILABLE},
        {"PROVISIONING", -MU_EUNAVAILABLE},
        {"WAITING_FOR_RESOURCES", -MU_EUNAVAILABLE},
        {"STATE_UNSPECIFIED", -MU_EUNAVAILABLE},
        {"", -MU_EUNAVAILABLE},
        {"FAILED", -MU_EPRECONDITION},
        {"SUSPENDING", -MU_EPRECONDITION},
        {"SUSPENDED", -MU_EPRECONDITION},
        {"DELETING", -MU_EPRECONDITION},
        {"SOMETHING", -MU_EPRECONDITION},
    };
    char words[128];
    char text[512];
    char list[600];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {
            SCRIPT(HTTP, .name = QUEUES "/q", .text = text),
            ROW_NODE("n", .status = 404, .text = "{}"),
            SCRIPT(HTTP, .name = QUEUES "?pageSize=1000", .text = list),
            SCRIPT(HTTP, .name = NODES "?pageSize=1000", .text = "{}"),
            SCRIPT_END,
        };

        (void)snprintf(text, sizeof text,
                       QUEUE("q", "%s", SPEC("nn") "," SPEC("m") "," SPEC("n")),
                       rows[i].state);
        (void)snprintf(list, sizeof list, "{\"queuedResources\": [7, {}, %s]}", text);
        (void)snprintf(words, sizeof words,
                       "queued resource \"q\" (project p, zone z): state \"%s\"",
                       rows[i].state);
        script_expect_error(kind, script, queued, rows[i].code, words);
        (void)snprintf(words, sizeof words,
                       "TPU \"n\" (project p, zone z): queued resource q: state \"%s\"",
                       rows[i].state);
        script_expect_error(kind, script, named, rows[i].code, words);
    }
}

TEST(test_bad_queues)
{
    static const struct {
        const char *text;
        int status;
        int code;
        const char *words;
    } rows[] = {
        {QUEUE("q", "ACTIVE", ""), 200, -MU_EINVALID, "it names no nodes"},
        {QUEUE("q", "ACTIVE", "{}"), 200, -MU_EINVALID, "it names no nodes"},
        {QUEUE("q", "ACTIVE", "7"), 200, -MU_EINVALID, "it names no nodes"},
        {QUEUE("q", "ACTIVE", SPEC("a/b")), 200, -MU_EINVALID,
         "queued resource \"q\" (project p, zone z): nodeId: expected a name"},
        {QUEUE("q", "ACTIVE", SLICES("")), 200, -MU_EINVALID, "nodeCount: expected"},
        {QUEUE("q", "ACTIVE", SLICES("\"nodeCount\": 257")), 200, -MU_EEXHAUSTED,
         "more than 256 TPUs are too many"},
        {QUEUE("q", "ACTIVE", SLICES("\"nodeCount\": 1, \"nodeIdPrefix\": 7")), 200,
         -MU_EINVALID, "nodeIdPrefix: expected a text"},
        {"{\"state\": {\"state\": 7}}", 200, -MU_EINVALID, "state: expected a text"},
        {"{\"state\": \"ACTIVE\"}", 200, -MU_EUNAVAILABLE, "it does not say its state"},
        {"{}", 404, -MU_ENOTFOUND,
         "queued resource \"q\" (project p, zone z): status 404"},
        {"{}", 403, -MU_EPERMISSION, "status 403"},
    };
    static const char *const bad[] = {"tpu=projects/p/queuedResources/q", NULL};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {SCRIPT(HTTP, .name = QUEUES "/q",
                                                   .text = rows[i].text,
                                                   .status = rows[i].status),
                                            SCRIPT_END};

        script_expect_error(kind, script, queued, rows[i].code, rows[i].words);
    }
    script_expect_error(kind, NULL, bad, -MU_EINVALID,
                        "setting tpu[0]: expected a name or "
                        "projects/PROJECT/locations/ZONE/queuedResources/NAME");
}

TEST(test_bad_names)
{
    static const struct {
        const char *setting;
        const char *words;
    } rows[] = {
        {"tpu=a,,b", "setting tpu[1]: expected a name or an address between commas"},
        {"tpu=,", "setting tpu[0]: expected a name or an address between commas"},
        {"tpu=a b", "TPU \"a b\": setting tpu[0]: expected a name"},
        {"tpu=a?b", "setting tpu[0]: expected a name"},
        {"tpu=grpc://", "setting tpu[0]: expected HOST"},
        {"tpu=grpc://a:b", "setting tpu[0]: expected HOST"},
        {"tpu=grpc://a,b/c", "setting tpu[1]: expected HOST"},
    };
    static const struct script_row script[] = {ROW_NODE("a", .text = TWO_ENDPOINTS),
                                               ROW_NODE("b", .text = TWO_ENDPOINTS),
                                               SCRIPT_END};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const settings[] = {rows[i].setting, "project=p", "zone=z",
                                        "access_token=secret", NULL};

        script_expect_error(kind, script, settings, -MU_EINVALID, rows[i].words);
    }
}

/* ---- Where the API is ---- */

TEST(test_discovery)
{
    static const char *const settings[] = {"tpu=n",
                                           "project=p",
                                           "zone=z",
                                           "access_token=secret",
                                           "api_version=v1",
                                           "discovery_url=https://by-setting/{api}",
                                           NULL};
    static const struct script_row by_setting[] = {
        SCRIPT(HTTP, .name = "https://by-setting/tpu",
               .text = "{\"rootUrl\": \"https://one/\"}"),
        SCRIPT(HTTP, .name = "https://one/v1/projects/p/locations/z/nodes/n",
               .text = "{\"state\": \"READY\", \"ipAddress\": \"10.0.0.1\"}"),
        SCRIPT_END,
    };
    static const struct script_row by_variable[] = {
        SCRIPT_VARIABLE("TPU_API_DISCOVERY_URL", "https://d/{api}/{apiVersion}?x=1"),
        SCRIPT(HTTP, .name = "https://d/tpu/v1?x=1",
               .text = "{\"rootUrl\": \"https://two/\", \"servicePath\": \"base/\"}"),
        SCRIPT(HTTP, .name = "https://two/base/v1/projects/p/locations/z/nodes/n",
               .text = "{\"state\": \"READY\", \"ipAddress\": \"10.0.0.2\"}"),
        SCRIPT_END,
    };

    script_expect(kind, by_setting, settings, "{\"worker\":[\"10.0.0.1:8470\"]}", "");
    script_expect(kind, by_variable, settings, "{\"worker\":[\"10.0.0.2:8470\"]}", "");
}

TEST(test_bad_discovery)
{
    static const struct {
        const char *url;
        const char *text;
        const char *words;
    } rows[] = {
        {"http://d/", "", "expected a url that begins with https://"},
        {"https://d", "{}", "discovery document: rootUrl is missing"},
        {"https://d", "{\"rootUrl\": 7}", "discovery document: rootUrl: expected a text"},
        {"https://d", "{\"rootUrl\": \"http://e/\"}",
         "expected a url that begins with https://"},
        {"https://d", "7", "discovery document: JSON: line 1, column 1"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {
            SCRIPT_VARIABLE("TPU_API_DISCOVERY_URL", rows[i].url),
            SCRIPT(HTTP, .name = "https://d", .text = rows[i].text),
            SCRIPT_END,
        };

        script_expect_error(kind, script, named, -MU_EINVALID, rows[i].words);
    }
}

TEST(test_endpoint)
{
    static const char *const settings[] = {"tpu=n",
                                           "project=p",
                                           "zone=z",
                                           "credentials=none",
                                           "api_endpoint=http://localhost:99/",
                                           NULL};
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = "http://localhost:99/v2/projects/p/locations/z/nodes/n",
               .text = "{\"state\": \"READY\", \"ipAddress\": \"10.0.0.1\"}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, settings, "{\"worker\":[\"10.0.0.1:8470\"]}", "");
}

/* ---- Small parts ---- */

TEST(test_recoverable)
{
#define SYMPTOM(type, time)                                   \
    "{\"symptoms\": [7, {}, {\"symptomType\": \"" type "\", " \
    "\"createTime\": \"" time "\"}]}"
    static const struct {
        const char *text;
        bool recoverable;
        const char *why;
    } rows[] = {
        {"{}", true, ""},
        {"{\"state\": \"READY\"}", true, ""},
        {"{\"state\": \"STOPPED\"}", true, ""},
        {"{\"state\": \"PREEMPTED\"}", false, "its state is PREEMPTED"},
        {"{\"state\": \"TERMINATED\"}", false, "its state is TERMINATED"},
        {SYMPTOM("OUT_OF_MEMORY", "2023-11-14T22:12:00.5Z"), false,
         "it was out of memory 80 s ago"},
        {SYMPTOM("HBM_OUT_OF_MEMORY", "2023-11-14T22:13:20Z"), false,
         "it was out of memory 0 s ago"},
        {SYMPTOM("OUT_OF_MEMORY", "2023-11-14T22:13:50Z"), false,
         "it was out of memory 0 s ago"},
        {SYMPTOM("OUT_OF_MEMORY", "2023-11-14T22:11:50Z"), true, ""},
        {SYMPTOM("LOW_MEMORY", "2023-11-14T22:13:20Z"), true, ""},
        {SYMPTOM("OUT_OF_MEMORY", "yesterday"), true, ""},
        {"{\"symptoms\": 7}", true, ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cJSON *root = cJSON_Parse(rows[i].text);
        struct mu__tpu_node node;
        char why[256] = "";
        mu_error error;

        assert_non_null(root);
        assert_int_equal(mu__tpu_node_read(root, "TPU", &error, &node), 0);
        assert_int_equal(mu__tpu_node_recoverable(&node, 1700000000, why),
                         rows[i].recoverable);
        assert_string_equal(why, rows[i].why);
        cJSON_Delete(root);
    }
}

/* ---- Tokens ---- */

#define NEW_TOKEN .again = 1, .has_header = "Authorization: Bearer fresh"
#define TOKENS \
    SCRIPT_FILE("/t", "stale"), SCRIPT(FILE, .name = "/t", .text = "fresh", .again = 1)

/* Whatever is asked after a refusal is asked with the new token alone: the old one would
 * be a failure of the script, which has no row for it. */
TEST(test_one_refusal_is_enough)
{
    static const char *const in_a_queue[] = {
        "tpu=projects/p/locations/z/queuedResources/q", "access_token_file=/t", NULL};
    static const char *const by_name[] = {"tpu=n", "project=p", "zone=z",
                                          "access_token_file=/t", NULL};
    static const struct script_row queue[] = {
        TOKENS,
        SCRIPT(HTTP, .name = QUEUES "/q", .status = 401, .text = "{}",
               .has_header = "Authorization: Bearer stale"),
        SCRIPT(HTTP, .name = QUEUES "/q", .text = QUEUE("q", "ACTIVE", SPEC("n")),
               NEW_TOKEN),
        SCRIPT(HTTP, .name = NODES "/n", .text = TWO_ENDPOINTS, NEW_TOKEN),
        SCRIPT_END,
    };
    static const struct script_row none[] = {
        TOKENS,
        SCRIPT(HTTP, .name = NODES "/n", .status = 401, .text = "{}",
               .has_header = "Authorization: Bearer stale"),
        SCRIPT(HTTP, .name = NODES "/n", .status = 404, .text = "{}", NEW_TOKEN),
        SCRIPT(HTTP, .name = NODES "?pageSize=1000",
               .text = "{\"nodes\": [{\"name\": \"n1\"}]}", NEW_TOKEN),
        SCRIPT(HTTP, .name = QUEUES "?pageSize=1000", .text = "{}", NEW_TOKEN),
        SCRIPT_END,
    };
    static const struct script_row twice[] = {
        TOKENS,
        SCRIPT(HTTP, .name = QUEUES "/q", .status = 401, .text = "{}",
               .has_header = "Authorization: Bearer stale"),
        SCRIPT(HTTP, .name = QUEUES "/q", .text = QUEUE("q", "ACTIVE", SPEC("n")),
               NEW_TOKEN),
        SCRIPT(HTTP, .name = NODES "/n", .status = 401, .text = "{}", NEW_TOKEN),
        SCRIPT_END,
    };

    script_expect(kind, queue, in_a_queue,
                  "{\"worker\":[\"10.0.0.2:8470\",\"10.0.0.3:8470\"]}", "");
    script_expect_error(kind, none, by_name, -MU_ENOTFOUND, "did you mean \"n1\"?");
    script_expect_error(kind, twice, in_a_queue, -MU_EUNAUTHENTICATED, "status 401");
}

TEST_PROGRAM()
