#include "node/member/service_options.h"

#include "actors/messages.h"
#include "actors/task_set.h"
#include "resolver/spec/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The canonical text of a set, which is freed. */
static int finish_task_set(struct mu__task_set *set, const char *option, mu_error *error,
                           char **ret_text)
{
    char *text = mu__task_set_text(set);

    mu__task_set_done(set);
    if (text == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    if (strlen(text) > MU__TASKS_TEXT_MAX) {
        int rv = mu_error_set(error, -MU_EINVALID,
                              "option %s: a set of tasks has at most %d bytes as text, "
                              "and this one has %zu: its indices have too many gaps",
                              option, MU__TASKS_TEXT_MAX, strlen(text));

        free(text);
        return rv;
    }
    *ret_text = text;
    return 0;
}

int mu__read_worker_types(const char *text, mu_error *ret_error,
                          struct mu__worker_types *ret_types)
{
    int rv = mu__worker_types_parse(text, ret_error, ret_types);
    mu_error inner;

    for (uint32_t i = 0; rv == 0 && i < ret_types->count; i++)
        if (mu__task_type_check(ret_types->rows[i].name, &inner) != 0)
            rv = mu_error_set(ret_error, -MU_EINVALID, "option worker_types: %s",
                              inner.message);
    return rv;
}

/* ---- hosts ---- */

static int add_default(const mu_cluster *cluster, struct mu__task_set *set)
{
    static const char *const types[] = {"chief", "ps", "worker"};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (mu_cluster_address(cluster, types[i], 0) != NULL)
            return mu__task_set_add(set, types[i], 0);
    return 0;
}

static int check_service_hosts(const mu_cluster *cluster, const struct mu__task_set *set,
                               mu_error *error)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct mu__task_range *range = &set->ranges[i];

        for (uint32_t index = range->first; index <= range->last; index++)
            if (mu_cluster_address(cluster, range->type, (int)index) == NULL)
                return mu_error_set(error, -MU_EINVALID,
                                    "option service_hosts names %s:%u, and the cluster "
                                    "has no such task",
                                    range->type, (unsigned)index);
    }
    return 0;
}

static int read_host_set(const mu_cluster *cluster, const char *text, mu_error *error,
                         struct mu__task_set *ret_set)
{
    mu_error inner;
    int rv = mu__task_set_parse(mu__view_str(text), &inner, ret_set);

    if (rv != 0)
        return mu_error_set(error, rv, "option service_hosts: %s", inner.message);
    if (ret_set->count == 0)
        return mu_error_set(error, -MU_EINVALID,
                            "option service_hosts is \"%.40s\", expected a set of tasks, "
                            "as chief:0 or ps:0-1, or none",
                            text);
    return check_service_hosts(cluster, ret_set, error);
}

int mu__service_hosts(const mu_cluster *cluster, const char *text, mu_error *ret_error,
                      char **ret_hosts)
{
    struct mu__task_set set = {0};
    int rv = 0;

    if (text == NULL)
        rv = add_default(cluster, &set);
    else if (strcmp(text, "none") != 0)
        rv = read_host_set(cluster, text, ret_error, &set);
    if (rv != 0) {
        mu__task_set_done(&set);
        return rv == -MU_ENOMEM ? mu_error_set(ret_error, rv, "out of memory") : rv;
    }
    return finish_task_set(&set, "service_hosts", ret_error, ret_hosts);
}

bool mu__service_is_host(const char *hosts, const char *type, int index)
{
    struct mu__task_set set = {0};
    bool is_host = mu__task_set_parse(mu__view_str(hosts), NULL, &set) == 0 &&
                   mu__task_set_has(&set, type, (uint32_t)index);

    mu__task_set_done(&set);
    return is_host;
}

size_t mu__service_hosts_count(const char *hosts)
{
    struct mu__task_set set = {0};
    size_t count = 0;

    if (mu__task_set_parse(mu__view_str(hosts), NULL, &set) == 0)
        count = (size_t)mu__task_set_count(&set);
    mu__task_set_done(&set);
    return count;
}

/* ---- types ---- */

/* Types, each once, in the order of the alphabet. */
struct types {
    char names[MU_CLUSTER_TYPES_MAX][MU__TASK_TYPE_BYTES];
    size_t count;
};

static bool has_type(const struct types *types, const char *name)
{
    for (size_t i = 0; i < types->count; i++)
        if (strcmp(types->names[i], name) == 0)
            return true;
    return false;
}

/* A type that is not in `types` yet. */
static void insert_type(struct types *types, const char *name)
{
    size_t i = types->count++;

    for (; i > 0 && strcmp(types->names[i - 1], name) > 0; i--)
        memcpy(types->names[i], types->names[i - 1], sizeof types->names[i]);
    (void)snprintf(types->names[i], sizeof types->names[i], "%.15s", name);
}

/* One type; spaces around it do not count. */
static int read_filter_type(const char *option, const char *at, size_t length,
                            mu_error *error, struct types *types)
{
    char name[32];
    mu_error inner;
    int rv;

    while (length > 0 && *at == ' ') {
        at++;
        length--;
    }
    while (length > 0 && at[length - 1] == ' ')
        length--;
    (void)snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), at);
    rv = mu__task_type_check(name, &inner);
    if (rv != 0)
        return mu_error_set(error, rv, "option %s: %s", option, inner.message);
    if (has_type(types, name))
        return 0;
    if (types->count == MU_CLUSTER_TYPES_MAX)
        return mu_error_set(error, -MU_EEXHAUSTED, "option %s: more than %d types",
                            option, MU_CLUSTER_TYPES_MAX);
    insert_type(types, name);
    return 0;
}

static int read_types(const char *option, const char *text, mu_error *error,
                      struct types *ret_types)
{
    *ret_types = (struct types){.count = 0};
    while (text != NULL) {
        size_t length = strcspn(text, ",");
        int rv = read_filter_type(option, text, length, error, ret_types);

        if (rv != 0)
            return rv;
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return 0;
}

int mu__service_tasks(const mu_cluster *cluster, const char *jobs, mu_error *ret_error,
                      char **ret_tasks)
{
    struct mu__task_set set = {0};
    struct types types;
    const char *type;
    const char *address;
    int index;
    int rv = read_types("coordinated_jobs", jobs, ret_error, &types);

    if (rv != 0)
        return rv;
    for (size_t i = 0;
         rv == 0 && mu_cluster_task_at(cluster, i, &type, &index, &address) == 0; i++)
        if (has_type(&types, type))
            rv = mu__task_set_add(&set, type, (uint32_t)index);
    if (rv != 0) {
        mu__task_set_done(&set);
        return mu_error_set(ret_error, rv, "out of memory");
    }
    return finish_task_set(&set, "coordinated_jobs", ret_error, ret_tasks);
}

int mu__service_recoverable(const char *text, mu_error *ret_error, char *out)
{
    struct types types;
    size_t used = 0;
    int rv;

    if (strcmp(text, "all") == 0 || strcmp(text, "none") == 0) {
        (void)snprintf(out, MU__SERVICE_TYPES_BYTES, "%s", text);
        return 0;
    }
    rv = read_types("recoverable", text, ret_error, &types);
    if (rv != 0)
        return rv;
    for (size_t i = 0; i < types.count; i++)
        used += (size_t)snprintf(out + used, MU__SERVICE_TYPES_BYTES - used, "%s%s",
                                 used == 0 ? "" : ",", types.names[i]);
    return 0;
}
