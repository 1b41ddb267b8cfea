#include "node/cmd_spec.h"

#include "resolver/cluster.h"
#include "resolver/json.h"
#include "resolver/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the cluster ---- */

static int read_file(const char *path, const char *origin, mu_error *error,
                     char **ret_text, size_t *ret_size)
{
    const size_t most = MU_CLUSTER_JSON_BYTES_MAX + 1;
    FILE *file = fopen(path, "re");
    char *text;

    if (file == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "%s: expected JSON or a file of it; \"%.200s\": %s", origin,
                            path, strerror(errno));
    text = malloc(most);
    if (text != NULL)
        *ret_size = fread(text, 1, most, file);
    if (text == NULL || ferror(file) != 0) {
        free(text);
        (void)fclose(file);
        return mu_error_set(error, -MU_EINVALID, "%s: \"%.200s\" cannot be read", origin,
                            path);
    }
    (void)fclose(file);
    *ret_text = text;
    return 0;
}

static int cluster_of_flag(const struct cmd_options *options, mu_error *error,
                           mu_cluster **ret_cluster)
{
    const char *text = cmd_text(options, CMD_FLAG_CLUSTER);
    const char *path = text + (text[0] == '@');
    char origin[64];
    char *content = NULL;
    size_t size = 0;
    int rv;

    (void)cmd_origin(options, CMD_FLAG_CLUSTER, origin, sizeof origin);
    if (text[strspn(text, " \t\r\n")] == '{')
        return mu_cluster_parse(text, strlen(text), origin, error, ret_cluster);
    rv = read_file(path, origin, error, &content, &size);
    if (rv != 0)
        return rv;
    rv = mu_cluster_parse(content, size, path, error, ret_cluster);
    free(content);
    return rv;
}

static int read_tf_config(mu_error *error, mu_tf_config *ret_config)
{
    const char *text = getenv("TF_CONFIG");

    if (text != NULL && text[0] != '\0')
        return mu_tf_config_parse(text, strlen(text), error, ret_config);
    *ret_config = (mu_tf_config){.task_index = -1};
    return 0;
}

int cmd_spec_cluster(const struct cmd_options *options, mu_error *ret_error,
                     mu_cluster **ret_cluster)
{
    mu_tf_config config;
    int rv;

    if (cmd_text(options, CMD_FLAG_CLUSTER) != NULL)
        return cluster_of_flag(options, ret_error, ret_cluster);
    rv = read_tf_config(ret_error, &config);
    if (rv == 0)
        *ret_cluster = config.cluster;
    return rv;
}

/* ---- the task ---- */

static int set_type(struct cmd_spec *spec, const char *name, const char *origin,
                    mu_error *error)
{
    mu_error inner;
    int type;
    int rv = mu__task_type_find(name, &inner, &type);

    if (rv != 0)
        return mu_error_set(error, rv, "%s: %s", origin, inner.message);
    (void)snprintf(spec->type, sizeof spec->type, "%s", mu__task_type_name(type));
    return 0;
}

/* "worker:1", or "chief" alone for index 0. */
static int read_task(struct cmd_spec *spec, const char *text, const char *origin,
                     mu_error *error)
{
    const char *colon = strchr(text, ':');
    size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    char shown[MU__QUOTE_BYTES];
    char name[64];
    int rv;

    (void)snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), text);
    rv = set_type(spec, name, origin, error);
    if (rv != 0)
        return rv;
    spec->index = 0;
    if (colon == NULL || mu__index_parse(colon + 1, &spec->index) == 0)
        return 0;
    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID,
                        "%s: expected TYPE:INDEX, as worker:1, with an index of 0 to %d, "
                        "got %s",
                        origin, MU_CLUSTER_INDEX_MAX, shown);
}

/* What the flags say about the task; spec->type stays "" when they say nothing. The
 * command line's --type wins over the variable of --task, and the other way round. */
static int task_of_flags(const struct cmd_options *options, struct cmd_spec *spec,
                         mu_error *error)
{
    const struct cmd_value *task = &options->values[CMD_FLAG_TASK];
    const struct cmd_value *type = &options->values[CMD_FLAG_TYPE];
    const struct cmd_value *index = &options->values[CMD_FLAG_INDEX];
    char origin[64];
    int rv;

    if (task->text != NULL && task->source >= type->source) {
        if (task->source == type->source)
            return mu_error_set(error, -MU_EINVALID,
                                "--task and --type say the same: expected one of them");
        (void)cmd_origin(options, CMD_FLAG_TASK, origin, sizeof origin);
        return read_task(spec, task->text, origin, error);
    }
    if (type->text == NULL) {
        if (index->source == CMD_FROM_LINE)
            return mu_error_set(error, -MU_EINVALID,
                                "--index: expected --type beside it");
        return 0;
    }
    rv = set_type(spec, type->text,
                  cmd_origin(options, CMD_FLAG_TYPE, origin, sizeof origin), error);
    if (rv == 0)
        spec->index = (int)index->number;
    return rv;
}

static int check(const struct cmd_options *options, const struct cmd_spec *spec,
                 mu_error *error)
{
    mu_error inner;
    int rv;

    if (spec->cluster == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "there is no cluster: expected --cluster, or TF_CONFIG with "
                            "a cluster");
    if (spec->type[0] == '\0')
        return mu_error_set(error, -MU_EINVALID,
                            "there is no task: expected --task, or TF_CONFIG with a "
                            "task");
    if (cmd_text(options, CMD_FLAG_BIND) != NULL &&
        mu__cluster_may_join(spec->cluster, spec->type, spec->index))
        return 0;
    rv = mu_cluster_validate(spec->cluster, spec->type, spec->index, &inner);
    if (rv != 0)
        return mu_error_set(error, rv, "the task %s:%d does not fit the cluster: %s",
                            spec->type, spec->index, inner.message);
    return 0;
}

int cmd_mode(const struct cmd_options *options)
{
    static const int modes[] = {
        MU_MODE_INDEPENDENT,
        MU_MODE_STANDALONE,
        MU_MODE_LOCAL,
        MU_MODE_CLIENT_WORKER,
    };

    return modes[cmd_number(options, CMD_FLAG_MODE)];
}

/* Where a plugin's functions are registered when there is no cluster for them. */
static int read_local(mu_error *error, struct cmd_spec *ret_spec)
{
    struct cmd_spec spec = {.cluster = mu_cluster_new(), .type = "chief"};
    int rv = -MU_ENOMEM;

    if (spec.cluster != NULL)
        rv = mu_cluster_add(spec.cluster, "chief", 0, "127.0.0.1:0", error);
    if (rv != 0) {
        mu_cluster_free(spec.cluster);
        return mu_error_set(error, rv, "no memory for a cluster");
    }
    *ret_spec = spec;
    return 0;
}

/* TF_CONFIG is looked at only for what the flags leave open. */
int cmd_spec_read(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec)
{
    bool has_cluster = cmd_text(options, CMD_FLAG_CLUSTER) != NULL;
    struct cmd_spec spec = {0};
    mu_tf_config config = {0};
    int rv;

    if (cmd_mode(options) == MU_MODE_LOCAL)
        return read_local(ret_error, ret_spec);
    rv = task_of_flags(options, &spec, ret_error);
    if (rv == 0 && has_cluster)
        rv = cluster_of_flag(options, ret_error, &spec.cluster);
    if (rv == 0 && (!has_cluster || spec.type[0] == '\0'))
        rv = read_tf_config(ret_error, &config);
    if (rv == 0 && !has_cluster)
        spec.cluster = config.cluster;
    else
        mu_cluster_free(config.cluster);
    if (rv == 0 && spec.type[0] == '\0') {
        (void)snprintf(spec.type, sizeof spec.type, "%s", config.task_type);
        spec.index = config.task_index;
    }
    if (spec.type[0] == '\0' && cmd_mode(options) == MU_MODE_STANDALONE)
        spec = (struct cmd_spec){.cluster = spec.cluster, .type = "client"};
    if (rv == 0)
        rv = check(options, &spec, ret_error);
    if (rv != 0) {
        mu_cluster_free(spec.cluster);
        return rv;
    }
    *ret_spec = spec;
    return 0;
}
