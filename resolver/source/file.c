/* The resolver file: a cluster as JSON in a file, alone or as TF_CONFIG has it. */
#include "resolver/engine/expected.h"
#include "resolver/engine/resolver.h"
#include "resolver/spec/cluster.h"
#include "runtime/document/json.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <string.h>

enum { PATH, TASK_TYPE, TASK_INDEX, SOURCE_BYTES = 280, WATCH_MS = 5000 };

static const struct mu__setting_spec settings_of[] = {
    MU__SETTING(PATH, "path", "MUSTER_CLUSTER_FILE", NULL,
                "the file: JSON of a cluster, or all that TF_CONFIG may have"),
    MU__TASK_SETTINGS(TASK_TYPE, TASK_INDEX),
    {.name = NULL},
};

static int detect_file(const struct mu__pass *pass, mu_error *ret_why)
{
    return mu__setting_detect(pass, PATH, ret_why);
}

/* Whether the text is a TF_CONFIG: its keys are no names of jobs, so one of them is
 * enough. */
static bool has_tf_config_keys(const cJSON *root)
{
    static const char *const keys[] = {"cluster", "task", "rpc_layer", "environment",
                                       "session_master"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (cJSON_GetObjectItemCaseSensitive(root, keys[i]) != NULL)
            return true;
    return false;
}

/* Replace "TF_CONFIG", with which errors of its parser begin, by `source`. */
static int rename_source(const mu_error *error, const char *source, mu_error *ret_error)
{
    static const char variable_name[] = "TF_CONFIG";
    size_t size = sizeof variable_name - 1;
    bool begins = strncmp(error->message, variable_name, size) == 0;

    return mu_error_set(ret_error, error->code, "%s%s%s", source, begins ? "" : ": ",
                        error->message + (begins ? size : 0));
}

static int read_file_tf_config(const char *text, size_t size, const char *source,
                               mu_error *ret_error, mu_resolution *ret_resolution)
{
    mu_tf_config config;
    mu_error inner;

    if (mu_tf_config_parse(text, size, &inner, &config) != 0)
        return rename_source(&inner, source, ret_error);
    mu__resolution_set_config(ret_resolution, &config);
    return 0;
}

bool mu__spec_is_tf_config(const char *text, size_t size)
{
    cJSON *root = NULL;
    bool is_tf_config =
        mu__json_parse(text, size, "", NULL, &root) == 0 && has_tf_config_keys(root);

    cJSON_Delete(root);
    return is_tf_config;
}

int mu_resolution_parse(const char *json, size_t size, const char *source,
                        mu_error *ret_error, mu_resolution *ret_resolution)
{
    MU__REQUIRE(ret_error, json, source, ret_resolution);

    cJSON *root = NULL;
    int rv = mu__json_parse(json, size, source, ret_error, &root);

    if (rv != 0)
        return rv;
    rv = has_tf_config_keys(root)
             ? read_file_tf_config(json, size, source, ret_error, ret_resolution)
             : mu__cluster_from_json(root, source, "", ret_error,
                                     &ret_resolution->cluster);
    cJSON_Delete(root);
    return rv;
}

static int read_cluster_text(const char *text, size_t size, const char *source,
                             mu_error *ret_error, mu_resolution *ret_resolution)
{
    mu_error inner;
    int rv;

    /* An empty file is being written. */
    if (strspn(text, " \t\r\n") == size)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "%s: the file is empty, expected a cluster as JSON", source);
    rv = mu_resolution_parse(text, size, source, ret_error, ret_resolution);
    if (rv != 0)
        return rv;
    rv = mu__cluster_check(ret_resolution->cluster, &inner);
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "%s: %s", source, inner.message);
}

static int resolve_file(const struct mu__pass *pass, mu_error *ret_error,
                        mu_resolution *ret_resolution)
{
    struct mu__request request = {
        .kind = MU__REQUEST_FILE,
        .bytes_max = MU_CLUSTER_JSON_BYTES_MAX,
        .retry_missing = true,
    };
    const struct mu__answer *answer;
    char source[SOURCE_BYTES];
    int rv =
        mu__setting_required(pass, PATH, "the path of a file", ret_error, &request.name);

    if (rv != 0)
        return rv;
    answer = mu__requests_get(pass->requests, &request);
    (void)snprintf(source, sizeof source, "%.270s", request.name);
    rv = mu__answer_check(answer, "resolver file", ret_error);
    if (rv == 0)
        rv = read_cluster_text(answer->data, answer->size, source, ret_error,
                               ret_resolution);
    return rv != 0 ? rv : mu__task_setting(pass, TASK_TYPE, ret_error, ret_resolution);
}

static const char *get_cluster_file_path(const struct mu__pass *pass)
{
    return mu__setting(pass, PATH);
}

const struct mu__resolver_kind mu__resolver_file = {
    .name = "file",
    .summary = "a file with the cluster as JSON",
    .settings = settings_of,
    .detect = detect_file,
    .resolve = resolve_file,
    .watch_ms = WATCH_MS,
    .watched_path = get_cluster_file_path,
};
