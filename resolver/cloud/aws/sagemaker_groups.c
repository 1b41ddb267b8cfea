/* Instance groups of a SageMaker training job, and the jobs that are made of them. */
#include "resolver/cloud/aws/aws.h"

#include "resolver/spec/address.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Hosts ---- */

int mu__sagemaker_hosts(const cJSON *list, const char *source, mu_error *ret_error,
                        struct mu__host_list *hosts)
{
    const cJSON *item;
    size_t i = 0;
    int rv;

    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item) || strlen(item->valuestring) > MU__HOST_BYTES_MAX)
            return mu__json_refuse(ret_error, -MU_EINVALID, item,
                                   "%s[%zu]: expected a host's name of at most %d bytes",
                                   source, i, (int)MU__HOST_BYTES_MAX);
        if (!mu__address_is_host(item->valuestring))
            return mu__json_refuse(ret_error, -MU_EINVALID, item,
                                   "%s[%zu]: expected the name of a host", source, i);
        rv = mu__host_list_add(hosts, item->valuestring);
        if (rv != 0)
            return mu_error_set(ret_error, rv,
                                "%s[%zu]: more hosts than memory or the limit of %d",
                                source, i, (int)MU_CLUSTER_TASKS_MAX);
        i++;
    }
    return 0;
}

static int compare_hosts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int mu__sagemaker_sort(struct mu__host_list *hosts, const char *source,
                       mu_error *ret_error)
{
    if (hosts->count > 0)
        qsort(hosts->names, hosts->count, sizeof *hosts->names, compare_hosts);
    for (size_t i = 1; i < hosts->count; i++)
        if (strcmp(hosts->names[i - 1], hosts->names[i]) == 0)
            return mu_error_set(ret_error, -MU_EEXISTS, "%s: \"%.80s\" appears twice",
                                source, hosts->names[i]);
    return 0;
}

/* ---- Reading ---- */

static struct mu__sagemaker_group *find_instance_group(
    struct mu__sagemaker_groups *groups, const char *name, size_t size)
{
    for (size_t i = 0; i < groups->count; i++)
        if (strlen(groups->items[i].name) == size &&
            memcmp(groups->items[i].name, name, size) == 0)
            return &groups->items[i];
    return NULL;
}

/* {"instance_group_name": "cpu", "instance_type": "ml.c5.xlarge", "hosts": ["algo-2"]};
 * `name` is NULL where the object names the group. */
static int read_instance_group(const cJSON *item, const char *name, mu_error *ret_error,
                               struct mu__sagemaker_groups *groups)
{
    const cJSON *hosts = cJSON_GetObjectItemCaseSensitive(item, "hosts");
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(item, "instance_group_name");
    struct mu__sagemaker_group *group = &groups->items[groups->count];
    char location[80];
    int rv;

    (void)snprintf(location, sizeof location, "%.50s: group %zu", groups->source,
                   groups->count);
    if (groups->count == MU__SAGEMAKER_GROUPS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%s: expected at most %d instance groups", groups->source,
                            (int)MU__SAGEMAKER_GROUPS_MAX);
    if (!cJSON_IsArray(hosts))
        return mu__json_refuse(ret_error, -MU_EINVALID, item,
                               "%s: expected an object with \"hosts\", a list", location);
    if (name == NULL && !cJSON_IsString(own))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected \"instance_group_name\", a text", location);
    if (name == NULL)
        name = own->valuestring;
    if (find_instance_group(groups, name, strlen(name)) != NULL)
        return mu_error_set(ret_error, -MU_EEXISTS, "%s: its name appears twice",
                            location);
    group->name = name;
    groups->count++;
    rv = mu__sagemaker_hosts(hosts, location, ret_error, &group->hosts);
    return rv != 0 ? rv : mu__sagemaker_sort(&group->hosts, groups->source, ret_error);
}

/* No host is in two groups. */
static int check_group_hosts(const struct mu__sagemaker_groups *groups,
                             mu_error *ret_error)
{
    struct mu__host_list all = {0};
    int rv = 0;

    for (size_t i = 0; i < groups->count; i++)
        for (size_t j = 0; rv == 0 && j < groups->items[i].hosts.count; j++)
            rv = mu__host_list_add(&all, groups->items[i].hosts.names[j]);
    if (rv != 0)
        (void)mu_error_set(ret_error, rv, "%s: more hosts than memory or the limit of %d",
                           groups->source, (int)MU_CLUSTER_TASKS_MAX);
    else
        rv = mu__sagemaker_sort(&all, groups->source, ret_error);
    mu__host_list_done(&all);
    return rv;
}

/* An object of groups by their names, or a list of them. */
static int read_groups(const cJSON *all, mu_error *ret_error,
                       struct mu__sagemaker_groups *groups)
{
    bool is_list = cJSON_IsArray(all);
    const cJSON *item;
    int rv;

    cJSON_ArrayForEach(item, all)
    {
        rv = read_instance_group(item, is_list ? NULL : item->string, ret_error, groups);
        if (rv != 0)
            return rv;
    }
    return check_group_hosts(groups, ret_error);
}

static int read_groups_config(const char *text, size_t size, const char *origin,
                              mu_error *ret_error, struct mu__sagemaker_groups *groups)
{
    const cJSON *list;
    int rv = mu__json_parse(text, size, groups->source, ret_error, &groups->root);

    if (rv != 0)
        return rv;
    list = cJSON_GetObjectItemCaseSensitive(groups->root, "instance_groups");
    if (list == NULL || cJSON_IsNull(list))
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "%s: it has no \"instance_groups\", which the %s is about",
                            groups->source, origin);
    if (!cJSON_IsArray(list))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: \"instance_groups\": expected a list", groups->source);
    return read_groups(list, ret_error, groups);
}

int mu__sagemaker_groups_find(struct mu__requests *requests, const char *origin,
                              mu_error *ret_error, struct mu__sagemaker_groups *groups)
{
    const char *map = mu__request_variable(requests, "SM_INSTANCE_GROUPS_DICT");
    const char *config = mu__request_variable(requests, "SM_RESOURCE_CONFIG");
    const struct mu__answer *answer;
    int rv;

    groups->source = "SM_INSTANCE_GROUPS_DICT";
    if (map != NULL) {
        rv = mu__json_parse(map, strlen(map), groups->source, ret_error, &groups->root);
        return rv != 0 ? rv : read_groups(groups->root, ret_error, groups);
    }
    groups->source = "SM_RESOURCE_CONFIG";
    if (config != NULL)
        return read_groups_config(config, strlen(config), origin, ret_error, groups);
    groups->source = MU__SAGEMAKER_CONFIG;
    answer = mu__request_file(requests, MU__SAGEMAKER_CONFIG);
    if (answer->code == 0)
        return read_groups_config(answer->data, answer->size, origin, ret_error, groups);
    return mu_error_set(ret_error, -MU_ENOTFOUND,
                        "%s: nothing says which hosts a group has: there is no %s, and "
                        "neither SM_INSTANCE_GROUPS_DICT nor SM_RESOURCE_CONFIG is set",
                        origin, MU__SAGEMAKER_CONFIG);
}

void mu__sagemaker_groups_done(struct mu__sagemaker_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        mu__host_list_done(&groups->items[i].hosts);
    cJSON_Delete(groups->root);
    *groups = (struct mu__sagemaker_groups){0};
}

/* ---- Jobs of groups ---- */

/* Some hosts of a group: a job, or a part of one. */
struct part {
    char type[16];
    const struct mu__sagemaker_group *group;
    size_t first; /* of its hosts */
    size_t count;
};

/* The part of the setting `groups` that is being read. */
struct group_reader {
    struct mu__sagemaker_groups *groups;
    const char *origin;
    size_t location; /* from 1 */
    const char *text;
    size_t size;
};

static int refuse_group_part(const struct group_reader *reading, mu_error *ret_error)
{
    return mu__refuse(ret_error, reading->text, reading->size,
                      "%s: job %zu: expected TYPE=GROUP or TYPE=GROUP:COUNT, as in "
                      "\"chief=gpu:1,worker=gpu,ps=cpu\"",
                      reading->origin, reading->location);
}

static int no_group(const struct group_reader *reading, const char *name, size_t size,
                    mu_error *ret_error)
{
    char shown[MU__QUOTE_BYTES];
    char names[300] = "";
    size_t used = 0;

    for (size_t i = 0; i < reading->groups->count && used + 110 < sizeof names; i++) {
        const char *other = reading->groups->items[i].name;

        mu__quote(shown, sizeof shown, other, strlen(other));
        used += (size_t)snprintf(names + used, sizeof names - used, "%s %s",
                                 i == 0 ? ", only" : ",", shown);
    }
    mu__quote(shown, sizeof shown, name, size);
    return mu_error_set(ret_error, -MU_ENOTFOUND, "%s: job %zu: %s has no group %s%s",
                        reading->origin, reading->location, reading->groups->source,
                        shown, names);
}

/* Take `count` hosts of the group, or (0) all that no part before has taken. */
static int take_hosts(const struct group_reader *reading,
                      struct mu__sagemaker_group *group, size_t count,
                      mu_error *ret_error, struct part *part)
{
    size_t left = group->hosts.count - group->taken;
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, group->name, strlen(group->name));
    if (count > left)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "%s: job %zu: %zu hosts are wanted of the group %s, which "
                            "has %zu left",
                            reading->origin, reading->location, count, shown, left);
    if (left == 0)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "%s: job %zu: no host is left of the group %s",
                            reading->origin, reading->location, shown);
    part->group = group;
    part->first = group->taken;
    part->count = count == 0 ? left : count;
    group->taken += part->count;
    return 0;
}

/* Cut ":COUNT" off a name, which may have colons itself. False: the count is not a
 * number. */
static bool split_count(const char *text, size_t *size, size_t *ret_count)
{
    size_t digits = 0;
    char number[16];
    int count = 0;

    *ret_count = 0;
    while (digits < *size && text[*size - digits - 1] >= '0' &&
           text[*size - digits - 1] <= '9')
        digits++;
    if (digits == 0 || digits == *size || text[*size - digits - 1] != ':')
        return true;
    (void)snprintf(number, sizeof number, "%.*s",
                   (int)(digits < sizeof number ? digits : sizeof number),
                   text + *size - digits);
    if (mu__index_parse(number, &count) != 0 || count == 0)
        return false;
    *size -= digits + 1;
    *ret_count = (size_t)count;
    return true;
}

/* "ps=cpu:2". */
static int read_group_part(const struct group_reader *reading, mu_error *ret_error,
                           struct part *ret_part)
{
    const char *equals = memchr(reading->text, '=', reading->size);
    size_t before = equals == NULL ? 0 : (size_t)(equals - reading->text);
    size_t size = equals == NULL ? 0 : reading->size - before - 1;
    struct mu__sagemaker_group *group;
    size_t count;
    int rv;

    if (size == 0 || !split_count(equals + 1, &size, &count) || size == 0)
        return refuse_group_part(reading, ret_error);
    rv = mu__task_type_read(reading->text, before, ret_error, ret_part->type,
                            "%s: job %zu", reading->origin, reading->location);
    if (rv != 0)
        return rv;
    group = find_instance_group(reading->groups, equals + 1, size);
    if (group == NULL)
        return no_group(reading, equals + 1, size, ret_error);
    return take_hosts(reading, group, count, ret_error, ret_part);
}

static int read_group_parts(struct group_reader *reading, mu_error *ret_error,
                            struct part *parts, size_t *ret_count)
{
    size_t count = 0;
    int rv;

    for (const char *at = reading->text;; at++) {
        reading->text = at;
        reading->size = strcspn(at, ",");
        reading->location = count + 1;
        if (count == MU__SAGEMAKER_PARTS_MAX)
            return mu_error_set(ret_error, -MU_EINVALID, "%s: expected at most %d jobs",
                                reading->origin, (int)MU__SAGEMAKER_PARTS_MAX);
        rv = read_group_part(reading, ret_error, &parts[count]);
        if (rv != 0)
            return rv;
        count++;
        at += reading->size;
        if (*at == '\0')
            break;
    }
    *ret_count = count;
    return 0;
}

static int add_part(const struct part *part, struct mu__host_list *hosts)
{
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < part->count; i++)
        rv = mu__host_list_add(hosts, part->group->hosts.names[part->first + i]);
    return rv;
}

static bool has_job_type(const struct mu__jobs *jobs, const char *type)
{
    for (unsigned i = 0; i < jobs->rows_count; i++)
        if (strcmp(jobs->rows[i].type, type) == 0)
            return true;
    return false;
}

/* Parts of one type become one job; jobs are in the order of their first parts. */
static int add_parts(const struct part *parts, size_t count, struct mu__host_list *hosts,
                     struct mu__jobs *jobs)
{
    int rv = 0;

    for (size_t i = 0; i < count; i++) {
        size_t before = hosts->count;

        if (has_job_type(jobs, parts[i].type))
            continue;
        for (size_t j = i; rv == 0 && j < count; j++)
            if (strcmp(parts[j].type, parts[i].type) == 0)
                rv = add_part(&parts[j], hosts);
        memcpy(jobs->rows[jobs->rows_count].type, parts[i].type, sizeof parts[i].type);
        jobs->rows[jobs->rows_count++].count = (unsigned)(hosts->count - before);
    }
    return rv;
}

int mu__sagemaker_groups_plan(struct mu__sagemaker_groups *groups, const char *text,
                              const char *origin, mu_error *ret_error,
                              struct mu__host_list *hosts, struct mu__jobs *ret_jobs)
{
    struct group_reader reading = {.groups = groups, .origin = origin, .text = text};
    struct part parts[MU__SAGEMAKER_PARTS_MAX];
    struct mu__jobs jobs = {.rows_count = 0};
    size_t count = 0;
    int rv = read_group_parts(&reading, ret_error, parts, &count);

    if (rv != 0)
        return rv;
    rv = add_parts(parts, count, hosts, &jobs);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "%s: more hosts than memory", origin);
    *ret_jobs = jobs;
    return 0;
}
