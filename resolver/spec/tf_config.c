/* TF_CONFIG: the cluster and the task of this process, as TensorFlow's tools write it. */
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <string.h>

static const char source[] = "TF_CONFIG";

/* An item of a wrong type. */
static int wrong_type(const cJSON *item, const char *path, const char *expected,
                      mu_error *error)
{
    return mu__json_refuse(error, -MU_EINVALID, item, "%s: %s: expected %s", source, path,
                           expected);
}

/* Copy a text item into a field of `size` bytes. */
static int read_config_text(const cJSON *item, const char *path, mu_error *error,
                            char *ret_text, size_t size)
{
    size_t length;

    if (!cJSON_IsString(item))
        return wrong_type(item, path, "a text", error);
    length = strlen(item->valuestring);
    if (length >= size) {
        return mu__refuse(error, item->valuestring, length,
                          "%s: %s: expected a text of at most %zu bytes", source, path,
                          size - 1);
    }
    memcpy(ret_text, item->valuestring, length + 1);
    return 0;
}

static int read_rpc_layer(const cJSON *item, mu_tf_config *config, mu_error *error)
{
    return read_config_text(item, "rpc_layer", error, config->rpc_layer,
                            sizeof config->rpc_layer);
}

static int read_environment(const cJSON *item, mu_tf_config *config, mu_error *error)
{
    return read_config_text(item, "environment", error, config->environment,
                            sizeof config->environment);
}

static int read_session_master(const cJSON *item, mu_tf_config *config, mu_error *error)
{
    return read_config_text(item, "session_master", error, config->session_master,
                            sizeof config->session_master);
}

/* A program that runs alone may get an empty object: no cluster. */
static int read_config_cluster(const cJSON *item, mu_tf_config *config, mu_error *error)
{
    mu_error inner;
    int rv;

    if (!cJSON_IsObject(item))
        return wrong_type(item, "cluster", "an object of job -> addresses", error);
    if (item->child == NULL)
        return 0;
    rv = mu__cluster_from_json(item, source, "cluster", error, &config->cluster);
    if (rv != 0)
        return rv;
    rv = mu__cluster_check(config->cluster, &inner);
    if (rv != 0)
        return mu_error_set(error, rv, "%s: cluster: %s", source, inner.message);
    return 0;
}

/* The index of a task whose text gives none: that of the job's only task. */
static int read_only_index(const mu_tf_config *config, const char *name, mu_error *error,
                           int *ret_index)
{
    size_t count = mu_cluster_task_count(config->cluster, name);

    if (count == 0 && strcmp(name, "evaluator") == 0) {
        *ret_index = 0;
        return 0;
    }
    if (count != 1)
        return mu_error_set(error, -MU_EINVALID,
                            "%s: task.index is missing; expected an index: the cluster "
                            "has %zu tasks of type \"%s\"",
                            source, count, name);
    *ret_index = mu__cluster_job_index(config->cluster, name, 0);
    return 0;
}

static int read_config_index(const cJSON *item, const mu_tf_config *config,
                             const char *type, mu_error *error, int *ret_index)
{
    mu_error inner;
    int index;
    int rv;

    if (item == NULL)
        return read_only_index(config, type, error, ret_index);
    rv = mu__json_index(item, &index);
    if (rv != 0) {
        return mu__json_refuse(error, rv, item,
                               "%s: task.index: expected a whole number of 0 to %d",
                               source, MU_CLUSTER_INDEX_MAX);
    }
    if (config->cluster != NULL) {
        rv = mu__cluster_check_task(config->cluster, type, index, &inner);
        if (rv != 0)
            return mu_error_set(error, rv, "%s: task.%s: %s", source,
                                rv == -MU_ENOTFOUND ? "type" : "index", inner.message);
    }
    *ret_index = index;
    return 0;
}

static int read_config_type(const cJSON *item, mu_error *error, const char **ret_type)
{
    mu_error inner;
    int rv;

    if (!cJSON_IsString(item))
        return wrong_type(item, "task.type", "a text", error);
    rv = mu__task_type_check(item->valuestring, &inner);
    if (rv != 0)
        return mu_error_set(error, rv, "%s: task.type: %s", source, inner.message);
    *ret_type = item->valuestring;
    return 0;
}

static int read_config_task(const cJSON *item, mu_tf_config *config, mu_error *error)
{
    const cJSON *type_item = cJSON_GetObjectItemCaseSensitive(item, "type");
    const cJSON *index_item = cJSON_GetObjectItemCaseSensitive(item, "index");
    const char *type;
    int rv;

    if (!cJSON_IsObject(item))
        return wrong_type(item, "task", "an object with type and index", error);
    rv = mu__json_check_keys(item, "TF_CONFIG: task", error);
    if (rv != 0 || (type_item == NULL && index_item == NULL))
        return rv;
    if (type_item == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "%s: task.type is missing; expected it beside task.index",
                            source);

    rv = read_config_type(type_item, error, &type);
    if (rv != 0)
        return rv;
    rv = read_config_index(index_item, config, type, error, &config->task_index);
    if (rv != 0)
        return rv;
    MU__COPY_TEXT(config->task_type, type);
    return 0;
}

/* Read in this order: the task is checked against the cluster. */
static const struct {
    const char *name;
    int (*read)(const cJSON *item, mu_tf_config *config, mu_error *error);
} keys[] = {
    {"cluster", read_config_cluster},        {"task", read_config_task},
    {"rpc_layer", read_rpc_layer},           {"environment", read_environment},
    {"session_master", read_session_master},
};

int mu_tf_config_parse(const char *json, size_t size, mu_error *ret_error,
                       mu_tf_config *ret_config)
{
    MU__REQUIRE(ret_error, json, ret_config);

    mu_tf_config config = {.task_index = -1};
    cJSON *root;
    int rv;

    rv = mu__json_parse(json, size, source, ret_error, &root);
    if (rv != 0)
        return rv;

    rv = mu__json_check_keys(root, source, ret_error);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && rv == 0; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, keys[i].name);

        if (item != NULL)
            rv = keys[i].read(item, &config, ret_error);
    }
    cJSON_Delete(root);
    if (rv != 0) {
        mu_cluster_free(config.cluster);
        return rv;
    }
    *ret_config = config;
    return 0;
}
