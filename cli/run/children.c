#include "cli/run/processes.h"

#include "cli/output/print_json.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- restart policies ---- */

static int policy_of(const char *text, size_t length)
{
    static const char *const names[] = {"never", "on-failure", "always", "fail-job"};

    for (int i = 0; i < 4; i++)
        if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0)
            return i;
    return -1;
}

/* Whether --restart may name a type: one of the cluster, except chief and client, or one
 * of the default types, even if the cluster has none. */
static bool is_restartable_type(const mu_cluster *cluster, const char *name,
                                size_t length)
{
    static const char *const defaults[] = {"worker", "ps", "evaluator"};
    char type[16];

    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (strlen(defaults[i]) == length && strncmp(name, defaults[i], length) == 0)
            return true;
    if (length >= sizeof type)
        return false;
    (void)snprintf(type, sizeof type, "%.*s", (int)length, name);
    return strcmp(type, "chief") != 0 && strcmp(type, "client") != 0 &&
           mu_cluster_task_count(cluster, type) > 0;
}

/* "on-failure", or "worker=always,ps=never"; types not named are never restarted. */
static int find_policy(const mu_cluster *cluster, const char *text, const char *type,
                       enum cmd_restart *ret_policy)
{
    int policy = policy_of(text, strlen(text));

    *ret_policy = CMD_RESTART_NEVER;
    if (policy >= 0) {
        *ret_policy = (enum cmd_restart)policy;
        return 0;
    }
    while (*text != '\0') {
        size_t name = strcspn(text, "=,");
        size_t word = text[name] == '=' ? strcspn(text + name + 1, ",") : 0;

        policy = word == 0 ? -1 : policy_of(text + name + 1, word);
        if (policy < 0 || !is_restartable_type(cluster, text, name))
            return -1;
        if (strlen(type) == name && strncmp(text, type, name) == 0)
            *ret_policy = (enum cmd_restart)policy;
        text += name + 1 + word;
        text += *text == ',';
    }
    return 0;
}

bool cmd_child_needs_restart(const struct cmd_child *child)
{
    if (child->code == CMD_USAGE)
        return false;
    return child->policy == CMD_RESTART_ALWAYS ||
           (child->policy == CMD_RESTART_ON_FAILURE && child->code != CMD_FINE);
}

static int init_child(const struct cmd_options *options, const mu_cluster *cluster,
                      size_t number, mu_error *error, struct cmd_child *child)
{
    const char *restart = cmd_text(options, CMD_FLAG_RESTART);
    char origin[64];

    child->streams[0].fd = -1;
    child->streams[1].fd = -1;
    child->is_controlled = cmd_number(options, CMD_FLAG_CONTROL) == 1;
    child->supervision_fd = -1;
    child->colour = (unsigned)number + 1;
    (void)mu_cluster_task_at(cluster, number, &child->type, &child->index,
                             &child->address);
    (void)snprintf(child->name, sizeof child->name, "%s/%d", child->type, child->index);
    if (find_policy(cluster, restart, child->type, &child->policy) != 0)
        return mu_error_set(
            error, -MU_EINVALID,
            "%s: expected never, on-failure, always, fail-job, or for types "
            "(worker, ps, evaluator, those of --counts) as in "
            "worker=always,ps=never, got \"%.100s\"",
            cmd_origin(options, CMD_FLAG_RESTART, origin, sizeof origin), restart);
    if (strcmp(child->type, "chief") == 0 || strcmp(child->type, "client") == 0)
        child->policy = CMD_RESTART_NEVER;
    return 0;
}

int cmd_children_new(const struct cmd_options *options, const mu_cluster *cluster,
                     mu_error *ret_error, struct cmd_child **ret_children,
                     size_t *ret_count)
{
    size_t count = mu_cluster_task_count(cluster, NULL);
    struct cmd_child *children = calloc(count + 1, sizeof *children);
    int rv = 0;

    if (children == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    *ret_children = children;
    *ret_count = 0;
    for (size_t i = 0; rv == 0 && i < count; i++) {
        struct cmd_child *child = &children[*ret_count];

        rv = init_child(options, cluster, i, ret_error, child);
        *ret_count += !child->is_controlled || strcmp(child->type, "chief") != 0;
    }
    return rv;
}

const char *cmd_children_reason(const struct cmd_child *children, size_t count, int code)
{
    const char *reason = "";

    for (size_t i = 0; i < count && code != CMD_FINE; i++) {
        const struct cmd_child *child = &children[i];

        if (child->reason[0] == '\0')
            continue;
        if (strcmp(child->type, "chief") == 0 || strcmp(child->type, "client") == 0)
            return child->reason;
        if (child->code == code && reason[0] == '\0')
            reason = child->reason;
    }
    return reason;
}

/* ---- the status file ---- */

cJSON *cmd_child_json(const struct cmd_child *child)
{
    cJSON *map = cJSON_CreateObject();

    if (child->pid > 0)
        (void)cJSON_AddNumberToObject(map, "pid", (double)child->pid);
    else
        (void)cJSON_AddNullToObject(map, "pid");
    (void)cJSON_AddStringToObject(map, "address", child->address);
    (void)cJSON_AddStringToObject(map, "state",
                                  child->pid > 0 ? "running"
                                  : child->ended ? "ended"
                                                 : "restarting");
    (void)cJSON_AddNumberToObject(map, "restarts", (double)child->restarts_total);
    if (child->end[0] != '\0') {
        (void)cJSON_AddNumberToObject(map, "exit_code", (double)child->code);
        (void)cJSON_AddStringToObject(map, "end", child->end);
    }
    return map;
}

static cJSON *children_json(const struct cmd_child *children, size_t count)
{
    cJSON *root = cJSON_CreateObject();

    for (size_t i = 0; i < count; i++)
        (void)cJSON_AddItemToObject(root, children[i].name, cmd_child_json(&children[i]));
    return root;
}

/* Written to a temporary file and renamed, so that a reader never sees a part. Returns 0
 * or an errno. */
static int write_status_file(const char *path, const char *text)
{
    char beside[4096];
    FILE *file;
    bool good;
    int rv;

    if ((size_t)snprintf(beside, sizeof beside, "%s.new", path) >= sizeof beside)
        return ENAMETOOLONG;
    file = fopen(beside, "we");
    if (file == NULL)
        return errno;
    good = fprintf(file, "%s\n", text) > 0;
    good = fclose(file) == 0 && good;
    if (good && rename(beside, path) == 0)
        return 0;
    rv = errno;
    (void)unlink(beside);
    return rv;
}

int cmd_children_write(const struct cmd_child *children, size_t count, const char *path)
{
    cJSON *root = children_json(children, count);
    char *text = root == NULL ? NULL : cJSON_Print(root);
    int rv = text == NULL ? ENOMEM : write_status_file(path, text);

    cJSON_free(text);
    cJSON_Delete(root);
    return rv;
}
