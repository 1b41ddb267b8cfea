/* How Cloud TPUs are, and versions for them, by rows. */
#include "resolver/cloud/google/tpu.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

#define NODES "https://tpu.googleapis.com/v2/projects/p/locations/z/nodes/"

/* ---- Running ---- */

struct requested {
    const char *tpu;     /* the setting */
    const char *version; /* NULL: describe */
    const char *restart_type;
    mu_tpu_state states[4];
    size_t count;
};

static int run_once(struct requested *requested, const struct mu__pass *pass,
                    mu_error *ret_error)
{
    if (requested->version == NULL)
        return mu__tpu_describe(pass, ret_error, requested->states, 4, &requested->count);
    return mu__tpu_request_version(pass, requested->version, requested->restart_type,
                                   ret_error);
}

static int run(const struct script_row *rows, struct requested *requested,
               mu_error *ret_error)
{
    const char *const pairs[][2] = {{"project", "p"},
                                    {"zone", "z"},
                                    {"access_token", "secret"},
                                    {"tpu", requested->tpu}};
    struct mu__settings settings;
    struct mu__requests *requests;
    struct script script;
    int rv;

    script_init(&script, rows);
    *ret_error = (mu_error){0};
    assert_int_equal(mu__requests_new(&script.sources.base, NULL, &requests), 0);
    assert_int_equal(mu__settings_init(&settings, "tpu", mu__tpu_settings), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(mu__settings_set(&settings, pairs[i][0], pairs[i][1], NULL), 0);
    rv = run_once(requested, &(struct mu__pass){requests, &settings}, ret_error);
    assert_int_equal(ret_error->code, rv);
    mu__requests_free(requests);
    mu__settings_done(&settings);
    return rv;
}

static void expect_error(const struct script_row *rows, struct requested requested,
                         int code, const char *words)
{
    mu_error error;

    assert_int_equal(run(rows, &requested, &error), code);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
}

/* ---- State ---- */

TEST(test_state)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = NODES "n",
               .text = "{\"name\": \"projects/p/locations/z/nodes/n\", "
                       "\"state\": \"READY\", \"health\": \"UNHEALTHY_TENSORFLOW\", "
                       "\"healthDescription\": \"it is not well\", "
                       "\"acceleratorType\": \"v4-8\", \"runtimeVersion\": \"tpu-vm-x\", "
                       "\"acceleratorConfig\": {\"topology\": \"2x2x1\"}, "
                       "\"networkEndpoints\": [{\"ipAddress\": \"a\"}, "
                       "{\"ipAddress\": \"b\"}]}"),
        SCRIPT_END,
    };
    struct requested requested = {.tpu = "n"};
    const mu_tpu_state *one = &requested.states[0];
    mu_error error;

    assert_int_equal(run(rows, &requested, &error), 0);
    assert_int_equal(requested.count, 1);
    assert_string_equal(one->name, "n");
    assert_string_equal(one->project, "p");
    assert_string_equal(one->zone, "z");
    assert_string_equal(one->state, "READY");
    assert_string_equal(one->health, "UNHEALTHY_TENSORFLOW");
    assert_string_equal(one->health_description, "it is not well");
    assert_string_equal(one->accelerator_type, "v4-8");
    assert_string_equal(one->runtime_version, "tpu-vm-x");
    assert_string_equal(one->topology, "2x2x1");
    assert_int_equal(one->endpoints, 2);
    assert_int_equal(one->recoverable, 1);
    assert_int_equal(mu__tpu_check_health(one, 1, &error), -MU_EUNAVAILABLE);
    assert_string_equal(error.message,
                        "TPU \"n\" (project p, zone z) is not healthy: state \"READY\", "
                        "health \"UNHEALTHY_TENSORFLOW\": it is not well");
}

TEST(test_old_version_and_symptoms)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = NODES "n",
               .text = "{\"state\": \"READY\", \"health\": \"HEALTHY\", "
                       "\"tensorflowVersion\": \"2.1\", \"symptoms\": "
                       "[{\"symptomType\": \"OUT_OF_MEMORY\", "
                       "\"createTime\": \"2023-11-14T22:13:00Z\"}]}"),
        SCRIPT_END,
    };
    struct requested requested = {.tpu = "n"};
    mu_error error;

    assert_int_equal(run(rows, &requested, &error), 0);
    assert_string_equal(requested.states[0].runtime_version, "2.1");
    assert_int_equal(requested.states[0].recoverable, 0);
    assert_string_equal(requested.states[0].why, "it was out of memory 20 s ago");
    assert_int_equal(requested.states[0].endpoints, 0);
    assert_int_equal(mu__tpu_check_health(requested.states, 1, &error), 0);
}

TEST(test_several)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = NODES "n",
               .text = "{\"state\": \"CREATING\", \"health\": \"\"}"),
        SCRIPT(HTTP, .name = NODES "m", .text = "{\"state\": \"PREEMPTED\"}"),
        SCRIPT(HTTP, .name = "http://10.0.0.1:8475/requestversion",
               .text = "{\"currentVersion\": \"1.15\"}"),
        SCRIPT_END,
    };
    struct requested requested = {.tpu = "n,m,grpc://10.0.0.1:8470,10.0.0.2"};
    mu_error error;

    assert_int_equal(run(rows, &requested, &error), 0);
    assert_int_equal(requested.count, 3);
    assert_string_equal(requested.states[2].name, "10.0.0.1");
    assert_string_equal(requested.states[2].runtime_version, "1.15");
    assert_int_equal(requested.states[2].endpoints, 2);
    assert_int_equal(requested.states[1].recoverable, 0);
    assert_int_equal(mu__tpu_check_health(requested.states, 1, &error), -MU_EUNAVAILABLE);
    assert_int_equal(mu__tpu_check_health(requested.states, 2, &error),
                     -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "TPU \"m\""));
    assert_int_equal(mu__tpu_check_health(requested.states + 2, 1, &error),
                     -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "it is only known by its address"));
}

/* Each node of a queued resource has a state of its own. */
TEST(test_queued_resource)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP,
               .name = "https://tpu.googleapis.com/v2/projects/p/locations/z/"
                       "queuedResources/q",
               .text = "{\"state\": {\"state\": \"ACTIVE\"}, \"tpu\": {\"nodeSpec\": "
                       "[{\"multisliceParams\": {\"nodeCount\": 2, "
                       "\"nodeIdPrefix\": \"s\"}}]}}"),
        SCRIPT(HTTP, .name = NODES "s-0",
               .text = "{\"state\": \"READY\", \"health\": \"HEALTHY\", "
                       "\"networkEndpoints\": [{\"ipAddress\": \"10.0.0.1\"}]}"),
        SCRIPT(HTTP, .name = NODES "s-1", .text = "{\"state\": \"PREEMPTED\"}"),
        SCRIPT_END,
    };
    struct requested requested = {.tpu = "projects/p/locations/z/queuedResources/q"};
    mu_error error;

    assert_int_equal(run(rows, &requested, &error), 0);
    assert_int_equal(requested.count, 2);
    assert_string_equal(requested.states[0].name, "s-0");
    assert_string_equal(requested.states[1].state, "PREEMPTED");
    assert_int_equal(requested.states[1].recoverable, 0);
    assert_int_equal(mu__tpu_check_health(requested.states, 2, &error),
                     -MU_EPRECONDITION);
    expect_error(rows,
                 (struct requested){.tpu = "projects/p/locations/z/queuedResources/q",
                                    .version = "2.9",
                                    .restart_type = "always"},
                 -MU_EPRECONDITION, "TPU \"s-1\" (project p, zone z) is not ready");
}

TEST(test_no_state)
{
    static const struct script_row silent[] = {
        SCRIPT(HTTP, .name = "http://[fd00::1]:8475/requestversion", .status = 404),
        SCRIPT_END,
    };
    static const struct script_row forbidden[] = {
        SCRIPT(HTTP, .name = NODES "n", .status = 403, .text = "{}"), SCRIPT_END};
    static const struct script_row ready[] = {
        SCRIPT(HTTP, .name = NODES "n",
               .text = "{\"state\": \"READY\", \"networkEndpoints\": "
                       "[{\"ipAddress\": \"10.0.0.1\"}]}"),
        SCRIPT_END};
    struct requested requested = {.tpu = "grpc://fd00::1"};
    mu_error error;

    assert_int_equal(run(silent, &requested, &error), 0);
    assert_string_equal(requested.states[0].runtime_version, "");
    expect_error(NULL, (struct requested){.tpu = "local"}, -MU_EPRECONDITION,
                 "setting tpu: expected names or addresses of Cloud TPUs");
    expect_error(forbidden, (struct requested){.tpu = "n"}, -MU_EPERMISSION,
                 "TPU \"n\" (project p, zone z): status 403");
    expect_error(ready, (struct requested){.tpu = "n,n,n,n,n"}, -MU_EEXHAUSTED,
                 "setting tpu: there are more TPUs than 4");
}

/* ---- Versions ---- */

TEST(test_request_version)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = NODES "n",
               .text = "{\"state\": \"READY\", \"networkEndpoints\": "
                       "[{\"ipAddress\": \"10.0.0.1\"}, {\"ipAddress\": \"10.0.0.2\"}]}"),
        SCRIPT(HTTP, .method = "POST", .content_type = "text/plain",
               .name = "http://10.0.0.1:8475/requestversion/2.9?restartType=always"),
        SCRIPT(HTTP, .method = "POST", .content_type = "text/plain",
               .name = "http://10.0.0.2:8475/requestversion/2.9?restartType=always"),
        SCRIPT(HTTP, .method = "POST", .content_type = "text/plain",
               .name = "http://10.0.0.9:8475/requestversion/2.9?restartType=ifNeeded"),
        SCRIPT_END,
    };
    struct requested named = {.tpu = "n", .version = "2.9", .restart_type = "always"};
    struct requested address = {
        .tpu = "grpc://10.0.0.9:8470", .version = "2.9", .restart_type = "ifNeeded"};
    mu_error error;

    assert_int_equal(run(rows, &named, &error), 0);
    assert_int_equal(run(rows, &address, &error), 0);
}

TEST(test_bad_versions)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .method = "POST",
               .name = "http://10.0.0.1:8475/requestversion/2.9?restartType=always"),
        SCRIPT(HTTP, .method = "POST", .status = 404,
               .name = "http://10.0.0.2:8475/requestversion/2.9?restartType=always"),
        SCRIPT(HTTP, .method = "POST", .code = -MU_EUNAVAILABLE,
               .text = "connection refused",
               .name = "http://10.0.0.3:8475/requestversion/2.9?restartType=always"),
        SCRIPT(HTTP, .name = NODES "n", .text = "{\"state\": \"STOPPED\"}"),
        SCRIPT_END,
    };

    expect_error(rows,
                 (struct requested){.tpu = "grpc://10.0.0.1,10.0.0.2",
                                    .version = "2.9",
                                    .restart_type = "always"},
                 -MU_ENOTFOUND, "TPU host 10.0.0.2: there is no version \"2.9\" for it");
    expect_error(rows,
                 (struct requested){.tpu = "grpc://10.0.0.1,10.0.0.3",
                                    .version = "2.9",
                                    .restart_type = "always"},
                 -MU_EUNAVAILABLE, "TPU host 10.0.0.3: connection refused");
    expect_error(
        rows, (struct requested){.tpu = "n", .version = "2.9", .restart_type = "always"},
        -MU_EPRECONDITION, "is not ready: state \"STOPPED\"");
    expect_error(
        rows, (struct requested){.tpu = "n", .version = "2/9", .restart_type = "always"},
        -MU_EINVALID, "the version: expected a name");
    expect_error(
        rows, (struct requested){.tpu = "n", .version = "2.9", .restart_type = "never"},
        -MU_EINVALID, "expected \"always\" or \"ifNeeded\", got \"never\"");
}

TEST_PROGRAM()
