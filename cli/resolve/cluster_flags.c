#include "cli/resolve/cluster_flags.h"

#include "cli/resolve/resolver_flags.h"
#include "cli/verbs.h"
#include "runtime/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files ---- */

enum { FILE_BYTES_MAX = MU_CLUSTER_JSON_BYTES_MAX + 1 };

/* Read up to the end; a pipe whose writer goes on, until due_ms. Returns 0 or an
 * errno. */
static int read_to_end(int fd, uint64_t due_ms, char *text, size_t *ret_size)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    size_t size = 0;
    ssize_t got = 1;

    while (got != 0 && size < FILE_BYTES_MAX) {
        uint64_t now_ms = cmd_now_ms();

        if (now_ms >= due_ms || poll(&poll_fd, 1, (int)(due_ms - now_ms)) == 0)
            return ETIMEDOUT;
        got = read(fd, text + size, FILE_BYTES_MAX - size);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return errno;
        size += got > 0 ? (size_t)got : 0;
    }
    text[size] = '\0';
    *ret_size = size;
    return 0;
}

static int read_spec_file(const struct cmd_options *options, const char *path,
                          const char *origin, mu_error *error, char **ret_text,
                          size_t *ret_size)
{
    uint64_t due_ms = cmd_now_ms() + cmd_number(options, CMD_FLAG_RESOLVE_MS);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *text = fd < 0 ? NULL : malloc(FILE_BYTES_MAX + 1);
    int number = errno;

    if (text != NULL)
        number = read_to_end(fd, due_ms, text, ret_size);
    if (fd >= 0)
        (void)close(fd);
    *ret_text = text;
    if (text != NULL && number == 0)
        return 0;
    free(text);
    return mu_error_set(
        error, -MU_EINVALID, "%s: %s\"%.200s\" cannot be read: %s", origin,
        number == ENOENT || number == ENOTDIR ? "expected JSON or a file of it; " : "",
        path,
        number == ETIMEDOUT ? "its writer has not ended in time" : strerror(number));
}

/* ---- the cluster ---- */

/* The text of --cluster, or of the file that it names. */
static int text_of_flag(const struct cmd_options *options, mu_error *error,
                        struct cmd_spec_text *ret_text)
{
    const char *text = cmd_text(options, CMD_FLAG_CLUSTER);
    const char *path = text + (text[0] == '@');
    struct cmd_spec_text found = {.text = text, .size = strlen(text)};
    int rv;

    (void)cmd_origin(options, CMD_FLAG_CLUSTER, found.source, sizeof found.source);
    if (text[strspn(text, " \t\r\n")] != '{') {
        rv = read_spec_file(options, path, found.source, error, &found.content,
                            &found.size);
        if (rv != 0)
            return rv;
        found.text = found.content;
        (void)snprintf(found.source, sizeof found.source, "%.63s", path);
    }
    *ret_text = found;
    return 0;
}

/* Parse --cluster: a cluster spec, or a whole TF_CONFIG, whose task is used when no flag
 * has one. */
static int spec_of_flag(const struct cmd_options *options, mu_error *error,
                        mu_resolution *ret_found)
{
    struct cmd_spec_text text;
    int rv = text_of_flag(options, error, &text);

    if (rv != 0)
        return rv;
    rv = mu_resolution_parse(text.text, text.size, text.source, error, ret_found);
    free(text.content);
    return rv;
}

/* The text of TF_CONFIG; NULL when it is not set, or --resolver is given. */
static const char *tf_config(const struct cmd_options *options)
{
    const char *text = getenv("TF_CONFIG");

    return text == NULL || text[0] == '\0' || cmd_resolver_is_given(options) ? NULL
                                                                             : text;
}

int cmd_spec_text(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec_text *ret_text)
{
    const char *text = tf_config(options);

    if (cmd_text(options, CMD_FLAG_CLUSTER) != NULL)
        return text_of_flag(options, ret_error, ret_text);
    *ret_text = (struct cmd_spec_text){.text = text};
    if (text != NULL) {
        ret_text->size = strlen(text);
        (void)snprintf(ret_text->source, sizeof ret_text->source, "TF_CONFIG");
    }
    return 0;
}

/* ---- TF_CONFIG and resolvers ---- */

static int parse_spec_tf_config(const char *text, mu_error *error,
                                mu_resolution *ret_found)
{
    mu_tf_config config;
    int rv = mu_tf_config_parse(text, strlen(text), error, &config);

    if (rv != 0)
        return rv;
    mu_resolution_init(ret_found);
    ret_found->cluster = config.cluster;
    ret_found->task_index = config.task_index;
    memcpy(ret_found->task_type, config.task_type, sizeof ret_found->task_type);
    memcpy(ret_found->rpc_layer, config.rpc_layer, sizeof ret_found->rpc_layer);
    memcpy(ret_found->environment, config.environment, sizeof ret_found->environment);
    (void)snprintf(ret_found->master, sizeof ret_found->master, "%s",
                   config.session_master);
    (void)snprintf(ret_found->source, sizeof ret_found->source, "TF_CONFIG");
    return 0;
}

/* -MU_ENOTFOUND is an error only with --resolver: without it, no resolver may recognise
 * this machine. */
static int run_resolver(const struct cmd_options *options, mu_error *error,
                        mu_resolution *ret_found)
{
    mu_resolver *resolver;
    int rv = cmd_resolver_open(options, error, &resolver);

    if (rv != 0)
        return rv;
    mu_resolution_init(ret_found);
    rv = mu_resolver_resolve(resolver, cmd_resolve_timeout_ms(options), error, ret_found);
    mu_resolver_free(resolver);
    return rv == -MU_ENOTFOUND && !cmd_resolver_is_given(options) ? 0 : rv;
}

/* With --address or --cluster, only TF_CONFIG and --resolver are used. */
static int resolve_cluster(const struct cmd_options *options, mu_error *error,
                           mu_resolution *ret_found)
{
    const char *text = tf_config(options);

    if (text != NULL)
        return parse_spec_tf_config(text, error, ret_found);
    if (!cmd_resolver_is_given(options) &&
        (options->values[CMD_FLAG_ADDRESS].text != NULL ||
         cmd_text(options, CMD_FLAG_CLUSTER) != NULL)) {
        mu_resolution_init(ret_found);
        return 0;
    }
    return run_resolver(options, error, ret_found);
}

/* ---- the task ---- */

int cmd_type_check(const char *type, mu_error *ret_error)
{
    mu_error inner;
    int rv = mu_cluster_validate(NULL, type, 0, &inner);

    return rv != -MU_EINVALID ? 0 : mu_error_set(ret_error, rv, "%s", inner.message);
}

bool cmd_index_parse(const char *text, int *ret_index)
{
    int64_t number = mu__decimal(text, strlen(text), MU_CLUSTER_INDEX_MAX);

    if (number < 0 || (text[0] == '0' && text[1] != '\0'))
        return false;
    *ret_index = (int)number;
    return true;
}

bool cmd_may_join(const mu_cluster *cluster, const char *type, int index)
{
    return strcmp(type, "worker") == 0 && index >= 0 && index <= MU_CLUSTER_INDEX_MAX &&
           mu_cluster_validate(cluster, NULL, 0, NULL) == 0 &&
           mu_cluster_task_count(cluster, "chief") > 0;
}

static int set_type(struct cmd_spec *spec, const char *name, const char *origin,
                    mu_error *error)
{
    mu_error inner;
    int rv = cmd_type_check(name, &inner);

    if (rv != 0)
        return mu_error_set(error, rv, "%s: %s", origin, inner.message);
    (void)snprintf(spec->type, sizeof spec->type, "%.15s", name);
    return 0;
}

/* Parse "worker:1", or "chief" for index 0. */
static int parse_task_flag(struct cmd_spec *spec, const char *text, const char *origin,
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
    if (colon == NULL || cmd_index_parse(colon + 1, &spec->index))
        return 0;
    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID,
                        "%s: expected TYPE:INDEX, as worker:1, with an index of 0 to %d, "
                        "got %s",
                        origin, MU_CLUSTER_INDEX_MAX, shown);
}

int cmd_spec_task(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec)
{
    const struct cmd_value *task = &options->values[CMD_FLAG_TASK];
    const struct cmd_value *type = &options->values[CMD_FLAG_TYPE];
    const struct cmd_value *index = &options->values[CMD_FLAG_INDEX];
    char origin[64];
    int rv;

    if (task->text != NULL && task->source >= type->source) {
        if (task->source == type->source)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "--task and --type say the same: expected one of them");
        (void)cmd_origin(options, CMD_FLAG_TASK, origin, sizeof origin);
        return parse_task_flag(ret_spec, task->text, origin, ret_error);
    }
    if (type->text == NULL) {
        if (index->source == CMD_FROM_LINE)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "--index: expected --type beside it");
        return 0;
    }
    rv = set_type(ret_spec, type->text,
                  cmd_origin(options, CMD_FLAG_TYPE, origin, sizeof origin), ret_error);
    if (rv == 0) {
        ret_spec->index = (int)index->number;
        ret_spec->index_is_open = index->source == CMD_FROM_DEFAULT;
    }
    return rv;
}

int cmd_spec_none(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID,
                        "there is no cluster: expected --cluster, or TF_CONFIG with a "
                        "cluster, or another resolver: `muster resolve --explain` says "
                        "what was tried");
}

int cmd_spec_validate(const mu_cluster *cluster, const char *type, int index,
                      mu_error *ret_error)
{
    mu_error inner;
    int rv = mu_cluster_validate(cluster, type, index, &inner);

    return rv == 0 ? 0
                   : mu_error_set(ret_error, rv,
                                  "the task %s:%d does not fit the cluster: %s", type,
                                  index, inner.message);
}

static int check_resolved_spec(const struct cmd_options *options,
                               const struct cmd_spec *spec, mu_error *error)
{
    if (spec->cluster == NULL)
        return cmd_spec_none(error);
    if (spec->type[0] == '\0')
        return mu_error_set(error, -MU_EINVALID,
                            "there is no task: expected --task, or TF_CONFIG (or another "
                            "resolver) with a task");
    if ((cmd_text(options, CMD_FLAG_BIND) != NULL ||
         spec->found.bind_address[0] != '\0') &&
        cmd_runs_closures(options, spec->type) &&
        cmd_may_join(spec->cluster, "worker", spec->index))
        return 0;
    return cmd_spec_validate(spec->cluster, spec->type, spec->index, error);
}

/* The i-th type of --worker-types, cut to its size; NULL past the end. */
static const char *worker_type(const struct cmd_options *options, size_t i, char out[32])
{
    const char *at = cmd_text(options, CMD_FLAG_WORKER_TYPES);

    for (at = at == NULL ? "worker" : at; i > 0 && at != NULL; i--) {
        at = strchr(at, ',');
        at += at != NULL;
    }
    if (at == NULL)
        return NULL;
    (void)snprintf(out, 32, "%.*s", (int)strcspn(at, ","), at);
    return out;
}

bool cmd_runs_closures(const struct cmd_options *options, const char *type)
{
    char name[32];

    for (size_t i = 0; worker_type(options, i, name) != NULL; i++)
        if (strcmp(name, type) == 0)
            return true;
    return false;
}

static int check_worker_type(const char *type, mu_error *ret_error)
{
    static const char *const others[] = {"chief", "ps", "evaluator", "client"};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(type, others[i]) == 0)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "tasks of that type have work "
                                "of their own and run no closures");
    return type[0] == '\0'
               ? mu_error_set(ret_error, -MU_EINVALID, "a task type is missing")
               : cmd_type_check(type, ret_error);
}

bool cmd_is_worker_type(const char *type)
{
    return check_worker_type(type, NULL) == 0;
}

int cmd_worker_types_check(const struct cmd_options *options, mu_error *ret_error)
{
    mu_error inner;
    char name[32];

    for (size_t i = 0; worker_type(options, i, name) != NULL; i++)
        if (check_worker_type(name, &inner) != 0)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "option worker_types names \"%s\": %s", name,
                                inner.message);
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

/* Local mode: a cluster of one chief, in which a plugin's functions are registered. */
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

void cmd_spec_done(struct cmd_spec *spec)
{
    mu_cluster_free(spec->cluster);
    mu_resolver_free(spec->resolver);
    *spec = (struct cmd_spec){0};
}

void cmd_spec_fill_in(struct cmd_spec *spec, mu_resolution *found)
{
    if (spec->cluster == NULL)
        spec->cluster = found->cluster;
    else
        mu_cluster_free(found->cluster);
    found->cluster = NULL;
    if (spec->source[0] == '\0')
        (void)snprintf(spec->source, sizeof spec->source, "%s", found->source);
    if (spec->type[0] == '\0' && found->task_type[0] != '\0' && found->task_index >= 0) {
        memcpy(spec->type, found->task_type, sizeof spec->type);
        spec->index = found->task_index;
    }
    spec->found = *found;
}

/* The resolver runs only when the flags leave something open. */
int cmd_spec_find(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec)
{
    bool has_cluster = cmd_text(options, CMD_FLAG_CLUSTER) != NULL;
    struct cmd_spec spec = {0};
    mu_resolution found;
    int rv = cmd_spec_task(options, ret_error, &spec);

    mu_resolution_init(&found);
    if (rv == 0 && has_cluster) {
        rv = spec_of_flag(options, ret_error, &found);
        spec.cluster = found.cluster;
        found.cluster = NULL;
        (void)cmd_origin(options, CMD_FLAG_CLUSTER, spec.source, sizeof spec.source);
    }
    if (rv == 0 && (!has_cluster || (spec.type[0] == '\0' && found.task_type[0] == '\0')))
        rv = resolve_cluster(options, ret_error, &found);
    if (rv != 0) {
        cmd_spec_done(&spec);
        return rv;
    }
    cmd_spec_fill_in(&spec, &found);
    *ret_spec = spec;
    return 0;
}

int cmd_spec_cluster(const struct cmd_options *options, mu_error *ret_error,
                     mu_resolution *ret_found)
{
    mu_resolution_init(ret_found);
    return cmd_text(options, CMD_FLAG_CLUSTER) != NULL
               ? spec_of_flag(options, ret_error, ret_found)
               : resolve_cluster(options, ret_error, ret_found);
}

/* Chief and evaluator have index 0. For other types the resolver provides or chooses the
 * index. */
static void open_index(struct cmd_spec *spec)
{
    if (spec->index_is_open && strcmp(spec->type, "chief") != 0 &&
        strcmp(spec->type, "evaluator") != 0)
        spec->index = -1;
}

/* The node runs the resolver itself: it announces its address through it, and watches it
 * for changes. */
static int defer_to_node_resolver(const struct cmd_options *options, mu_error *error,
                                  struct cmd_spec *ret_spec)
{
    struct cmd_spec spec = {0};
    int rv = cmd_spec_task(options, error, &spec);

    if (rv == 0)
        rv = cmd_resolver_open(options, error, &spec.resolver);
    if (rv != 0)
        return rv;
    open_index(&spec);
    if (spec.type[0] == '\0' && cmd_mode(options) == MU_MODE_STANDALONE)
        (void)snprintf(spec.type, sizeof spec.type, "client");
    *ret_spec = spec;
    return 0;
}

int cmd_spec_read(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec)
{
    struct cmd_spec spec;
    int rv;

    if (cmd_mode(options) == MU_MODE_LOCAL)
        return read_local(ret_error, ret_spec);
    if (cmd_text(options, CMD_FLAG_CLUSTER) == NULL && tf_config(options) == NULL)
        return defer_to_node_resolver(options, ret_error, ret_spec);
    rv = cmd_spec_find(options, ret_error, &spec);
    if (rv != 0)
        return rv;
    if (spec.type[0] == '\0' && cmd_mode(options) == MU_MODE_STANDALONE)
        (void)snprintf(spec.type, sizeof spec.type, "client");
    rv = check_resolved_spec(options, &spec, ret_error);
    if (rv != 0) {
        cmd_spec_done(&spec);
        return rv;
    }
    *ret_spec = spec;
    return 0;
}
