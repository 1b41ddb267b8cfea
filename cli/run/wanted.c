#include "cli/run/wanted.h"

#include "actors/worker_types.h"
#include "cli/options/limits.h"
#include "cli/resolve/spec.h"
#include "node/member/service.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES_MAX = 26, TASKS_MAX = 1000 };

/* ---- Starting again ---- */

static int policy_of(const char *text, size_t length)
{
    static const char *const names[] = {"never", "on-failure", "always"};

    for (int i = 0; i < 3; i++)
        if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0)
            return i;
    return -1;
}

/* Whether tasks of a type may be started again: those of the cluster, but for who leads
 * it, and the usual ones though there are none. */
static bool may_restart(const mu_cluster *cluster, const char *name, size_t length)
{
    static const char *const usual[] = {"worker", "ps", "evaluator"};
    char type[16];

    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (strlen(usual[i]) == length && strncmp(name, usual[i], length) == 0)
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
        if (policy < 0 || !may_restart(cluster, text, name))
            return -1;
        if (strlen(type) == name && strncmp(text, type, name) == 0)
            *ret_policy = (enum cmd_restart)policy;
        text += name + 1 + word;
        text += *text == ',';
    }
    return 0;
}

static int init_child(const struct cmd_options *options, const mu_cluster *cluster,
                      size_t number, mu_error *error, struct cmd_child *child)
{
    const char *restart = cmd_text(options, CMD_FLAG_RESTART);
    char origin[64];

    child->fd = -1;
    child->tells_fd = -1;
    child->colour = (unsigned)number + 1;
    (void)mu_cluster_task_at(cluster, number, &child->type, &child->index,
                             &child->address);
    (void)snprintf(child->name, sizeof child->name, "%s/%d", child->type, child->index);
    if (find_policy(cluster, restart, child->type, &child->policy) != 0)
        return mu_error_set(error, -MU_EINVALID,
                            "%s: expected never, on-failure, always, or for types "
                            "(worker, ps, evaluator, those of --counts) as in "
                            "worker=always,ps=never, got "
                            "\"%.100s\"",
                            cmd_origin(options, CMD_FLAG_RESTART, origin, sizeof origin),
                            restart);
    if (strcmp(child->type, "chief") == 0 || strcmp(child->type, "client") == 0)
        child->policy = CMD_RESTART_NEVER;
    return 0;
}

int cli_wanted_children(const struct cmd_options *options, const mu_cluster *cluster,
                        mu_error *ret_error, struct cmd_child **ret_children,
                        size_t *ret_count)
{
    size_t count = mu_cluster_task_count(cluster, NULL);
    struct cmd_child *children = calloc(count + 1, sizeof *children);
    int rv = 0;

    if (children == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    *ret_children = children;
    *ret_count = count;
    for (size_t i = 0; rv == 0 && i < count; i++)
        rv = init_child(options, cluster, i, ret_error, &children[i]);
    return rv;
}

/* ---- Types of one's own ---- */

struct own_types {
    char names[TYPES_MAX][16];
    struct cmd_wanted wanted[TYPES_MAX + 1];    /* the type NULL ends them */
    size_t count;
};

/* Of none of those that muster knows, nor meant for one. */
static bool is_own(const char *name)
{
    struct mu__worker_types types;

    return strcmp(name, "worker") != 0 && mu__task_type_is_valid(name) &&
           mu__worker_types_parse(name, NULL, &types) == 0;
}

static bool is_there(const struct own_types *own, const char *name)
{
    for (size_t i = 0; i < own->count; i++)
        if (strcmp(own->names[i], name) == 0)
            return true;
    return false;
}

/* One "gpu=2". False: it is no such thing. */
static bool read_count(struct own_types *own, const char *text, size_t size)
{
    size_t length = strcspn(text, "=");
    char *name = own->names[own->count];
    char *end;
    unsigned long count;

    if (length >= size || length >= sizeof own->names[0] || own->count == TYPES_MAX ||
        text[length + 1] < '0' || text[length + 1] > '9')
        return false;
    (void)snprintf(name, sizeof own->names[0], "%.*s", (int)length, text);
    count = strtoul(text + length + 1, &end, 10);
    if (end != text + size || count < 1 || count > TASKS_MAX ||
        !is_own(name) || is_there(own, name))
        return false;
    own->wanted[own->count++] = (struct cmd_wanted){name, (int)count};
    return true;
}

static int read_counts(const struct cmd_options *options, mu_error *error,
                       struct own_types *own)
{
    const char *text = cmd_text(options, CMD_FLAG_COUNTS);
    char origin[64];
    char got[MU__QUOTE_BYTES];

    for (const char *at = text; at != NULL; at = strchr(at, ',')) {
        at += at != text;
        if (read_count(own, at, strcspn(at, ",")))
            continue;
        mu__quote(got, sizeof got, text, strlen(text));
        return mu_error_set(error, -MU_EINVALID,
                            "%s: expected how many tasks there are of at most %d types "
                            "of your own, each once, as in gpu=2,cpu=3, and 1 to %d of "
                            "each, got %s",
                            cmd_origin(options, CMD_FLAG_COUNTS, origin, sizeof origin),
                            TYPES_MAX, TASKS_MAX, got);
    }
    return 0;
}

/* ---- All tasks ---- */

/* The usual ones, and behind them those of one's own types. */
static int add_wanted(const struct cmd_options *o, const struct own_types *own,
                      struct cmd_wanted *wanted, mu_error *error)
{
    const struct cmd_wanted usual[] = {
        {"chief", cmd_mode(o) == MU_MODE_LOCAL ? 1 : (int)cmd_number(o, CMD_FLAG_CHIEF)},
        {"evaluator", (int)cmd_number(o, CMD_FLAG_EVALUATOR)},
        {"ps", (int)cmd_number(o, CMD_FLAG_PS)},
        {"worker", (int)cmd_number(o, CMD_FLAG_WORKERS)},
        {"client", cmd_mode(o) == MU_MODE_STANDALONE},
    };
    bool is_local = cmd_mode(o) == MU_MODE_LOCAL;
    size_t usual_count = is_local ? 1 : sizeof usual / sizeof usual[0];
    size_t own_count = is_local ? 0 : own->count;
    unsigned processes;
    int total = 0;

    memcpy(wanted, usual, usual_count * sizeof *wanted);
    memcpy(wanted + usual_count, own->wanted, own_count * sizeof *wanted);
    wanted[usual_count + own_count] = (struct cmd_wanted){NULL, 0};
    for (size_t i = 0; wanted[i].type != NULL; i++)
        total += wanted[i].count;
    if (total == 0)
        return mu_error_set(error, -MU_EINVALID,
                            "there is nothing to run: expected a task at least");
    processes = cmd_number(o, CMD_FLAG_PROCESSES);
    return cli_limits_prepare((size_t)total,
                              processes > 0 ? 2 * processes  /* each has a thread here */
                                            : cmd_number(o, CMD_FLAG_THREADS), error);
}

int cli_wanted_place(const struct cmd_options *options, mu_error *ret_error,
                     char *ret_folder, mu_cluster **ret_cluster)
{
    struct cmd_wanted wanted[TYPES_MAX + 8];
    struct own_types own = {.count = 0};
    struct mu__worker_types types;
    int rv = mu__read_worker_types(cmd_text(options, CMD_FLAG_WORKER_TYPES), ret_error,
                                   &types);

    if (rv == 0)
        rv = read_counts(options, ret_error, &own);
    if (rv == 0)
        rv = add_wanted(options, &own, wanted, ret_error);
    return rv != 0 ? rv
                   : cmd_place(wanted, cmd_number(options, CMD_FLAG_TRANSPORT) == 1,
                               ret_error, ret_folder, ret_cluster);
}
