/* The resolver sagemaker: SM_HOSTS and SM_CURRENT_HOST, or the file that they are
 * from. */
#include "resolver/cloud/aws/aws.h"
#include "resolver/cloud/resolvers.h"

#include "resolver/source/ranks.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <muster/cluster.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The hosts of the job, and where they were read. */
struct found {
    const char *source;
    struct mu__host_list hosts;
    char current[MU__HOST_BYTES_MAX + 1];
};

/* ---- Reading ---- */

static int not_a_list(const char *source, const char *text, mu_error *ret_error)
{
    return mu__refuse(ret_error, text, strlen(text),
                      "%s: expected a JSON list of hosts, as in [\"algo-1\"]", source);
}

/* The text is a list alone; mu__json_parse reads objects only, so it is put into one. */
static int read_hosts_list(const char *text, const char *source, mu_error *ret_error,
                           struct mu__host_list *hosts)
{
    size_t size = strlen(text) + sizeof "{\"hosts\":}";
    char *whole = malloc(size);
    const cJSON *list;
    cJSON *root = NULL;
    int rv;

    if (whole == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
    (void)snprintf(whole, size, "{\"hosts\":%s}", text);
    rv = mu__json_parse(whole, size - 1, source, ret_error, &root);
    free(whole);
    if (rv == -MU_EINVALID)
        return not_a_list(source, text, ret_error);
    if (rv != 0)
        return rv;
    list = cJSON_GetObjectItemCaseSensitive(root, "hosts");
    rv = cJSON_IsArray(list) && list->next == NULL
             ? mu__sagemaker_hosts(list, source, ret_error, hosts)
             : not_a_list(source, text, ret_error);
    cJSON_Delete(root);
    return rv;
}

static int read_hosts_config(const char *text, size_t size, const char *source,
                             mu_error *ret_error, struct found *found)
{
    cJSON *root = NULL;
    const cJSON *current;
    const cJSON *hosts;
    int rv = mu__json_parse(text, size, source, ret_error, &root);

    if (rv != 0)
        return rv;
    current = cJSON_GetObjectItemCaseSensitive(root, "current_host");
    hosts = cJSON_GetObjectItemCaseSensitive(root, "hosts");
    if (!cJSON_IsArray(hosts) || !cJSON_IsString(current))
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "%s: expected \"hosts\", a list, and \"current_host\", a text",
                          source);
    else
        rv = mu__sagemaker_hosts(hosts, source, ret_error, &found->hosts);
    if (rv == 0)
        MU__COPY_TEXT(found->current, current->valuestring);
    cJSON_Delete(root);
    return rv;
}

/* An empty list has no current host. */
static bool is_empty_list(const char *text)
{
    static const char blanks[] = " \t\r\n";

    text += strspn(text, blanks);
    if (*text != '[')
        return false;
    text += 1 + strspn(text + 1, blanks);
    return *text == ']' && text[1 + strspn(text + 1, blanks)] == '\0';
}

static int find_sagemaker_hosts(struct mu__requests *requests, mu_error *ret_error,
                                struct found *found)
{
    const char *hosts = mu__request_variable(requests, "SM_HOSTS");
    const char *config = mu__request_variable(requests, "SM_RESOURCE_CONFIG");
    const char *current = mu__request_variable(requests, "SM_CURRENT_HOST");
    const struct mu__answer *answer;

    found->source = "SM_HOSTS";
    if (hosts != NULL && (current != NULL || is_empty_list(hosts))) {
        MU__COPY_TEXT(found->current, current == NULL ? "" : current);
        return read_hosts_list(hosts, found->source, ret_error, &found->hosts);
    }
    found->source = "SM_RESOURCE_CONFIG";
    if (config != NULL)
        return read_hosts_config(config, strlen(config), found->source, ret_error, found);
    found->source = MU__SAGEMAKER_CONFIG;
    answer = mu__request_file(requests, MU__SAGEMAKER_CONFIG);
    if (answer->code == 0)
        return read_hosts_config(answer->data, answer->size, found->source, ret_error,
                                 found);
    return mu_error_set(ret_error, -MU_ENOTFOUND,
                        "%s is not set, and there is neither SM_RESOURCE_CONFIG nor %s: "
                        "is this SageMaker?",
                        hosts == NULL ? "SM_HOSTS" : "SM_CURRENT_HOST",
                        MU__SAGEMAKER_CONFIG);
}

/* ---- The cluster ---- */

/* The hosts in the order of their ranks, and the job of each rank. */
struct plan {
    const char *source;
    const struct mu__host_list *hosts;
    struct mu__jobs jobs;
};

/* The process is on none of the hosts, which a rank cannot say. */
static void no_task(mu_resolution *resolution)
{
    resolution->task_type[0] = '\0';
    resolution->task_index = -1;
}

static int add_tasks(const struct mu__pass *pass, const struct plan *plan, size_t own,
                     mu_error *ret_error, mu_resolution *resolution)
{
    struct mu__layout layout = {0};
    struct mu__ranks ranks = {.source = plan->source,
                              .hosts = plan->hosts,
                              .layout = &layout,
                              .jobs = &plan->jobs,
                              .rank = (unsigned)own};
    int rv = mu__rank_port(pass, MU__SAGEMAKER_SET_PORT, 0, 1, ret_error, &ranks.port);

    if (rv == 0)
        rv =
            mu__layout_listed(plan->hosts, plan->hosts, plan->source, ret_error, &layout);
    if (rv == 0)
        rv = mu__ranks_add(&ranks, ret_error, resolution);
    if (rv == 0 && own == plan->hosts->count)
        no_task(resolution);
    mu__layout_done(&layout);
    return rv;
}

static size_t own_location(const struct mu__host_list *hosts, const struct found *found)
{
    return mu__host_list_find(hosts, found->current, strlen(found->current));
}

/* With several instance groups, the setting groups was probably meant to be set. */
static void explain_groups(struct mu__requests *requests, const struct found *found)
{
    struct mu__sagemaker_groups groups = {0};

    if ((mu__request_variable(requests, "SM_INSTANCE_GROUPS_DICT") != NULL ||
         mu__request_variable(requests, "SM_RESOURCE_CONFIG") != NULL ||
         strcmp(found->source, MU__SAGEMAKER_CONFIG) == 0) &&
        mu__sagemaker_groups_find(requests, "setting groups", NULL, &groups) == 0 &&
        groups.count > 1)
        mu__requests_explain(requests,
                             "%s: the hosts are in %zu instance groups; the setting "
                             "groups says what each of them is",
                             groups.source, groups.count);
    mu__sagemaker_groups_done(&groups);
}

/* All hosts are one list. */
static int add_all_hosts(const struct mu__pass *pass, struct found *found,
                         mu_error *ret_error, mu_resolution *resolution)
{
    struct plan plan = {.source = found->source, .hosts = &found->hosts};
    size_t count = found->hosts.count;
    size_t own;
    int rv = mu__sagemaker_sort(&found->hosts, found->source, ret_error);

    if (rv != 0)
        return rv;
    own = own_location(&found->hosts, found);
    if (own == count) {
        mu__requests_explain(pass->requests,
                             "%s: the current host \"%.80s\" is none of the %zu hosts: "
                             "there is no cluster",
                             found->source, found->current, count);
        return 0;
    }
    explain_groups(pass->requests, found);
    rv = mu__rank_jobs(pass, MU__SAGEMAKER_SET_JOBS, (unsigned)count, ret_error,
                       &plan.jobs);
    return rv != 0 ? rv : add_tasks(pass, &plan, own, ret_error, resolution);
}

static int check_alone(const struct mu__pass *pass, mu_error *ret_error)
{
    if (mu__setting(pass, MU__SAGEMAKER_SET_JOBS) == NULL)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: expected nothing beside the setting groups",
                        mu__setting_origin(pass, MU__SAGEMAKER_SET_JOBS));
}

static int compare_host_name(const void *name, const void *item)
{
    return strcmp(name, *(char *const *)item);
}

static bool is_listed(const struct mu__host_list *sorted, const char *name)
{
    return sorted->count > 0 && bsearch(name, sorted->names, sorted->count,
                                        sizeof *sorted->names, compare_host_name) != NULL;
}

/* Each host of a group is among the job's hosts, which are sorted, and this host is in a
 * group. */
static int check_groups(const struct mu__sagemaker_groups *groups,
                        const struct found *found, mu_error *ret_error)
{
    bool has_current = false;

    for (size_t i = 0; i < groups->count; i++) {
        const struct mu__host_list *hosts = &groups->items[i].hosts;

        has_current = has_current || is_listed(hosts, found->current);
        for (size_t j = 0; j < hosts->count; j++)
            if (!is_listed(&found->hosts, hosts->names[j]))
                return mu_error_set(ret_error, -MU_EINVALID,
                                    "%s: group \"%.80s\": expected hosts of %s alone, "
                                    "got \"%.80s\"",
                                    groups->source, groups->items[i].name, found->source,
                                    hosts->names[j]);
    }
    return has_current ? 0
                       : mu_error_set(ret_error, -MU_EINVALID,
                                      "%s: expected the current host \"%.80s\" in one of "
                                      "the %zu groups",
                                      groups->source, found->current, groups->count);
}

/* Only groups that the setting names become tasks. */
static int add_instance_groups(const struct mu__pass *pass, struct found *found,
                               mu_error *ret_error, mu_resolution *resolution)
{
    struct mu__sagemaker_groups groups = {0};
    struct mu__host_list hosts = {0};
    struct plan plan = {.hosts = &hosts};
    const char *origin = mu__setting_origin(pass, MU__SAGEMAKER_SET_GROUPS);
    int rv = check_alone(pass, ret_error);

    if (rv == 0)
        rv = mu__sagemaker_groups_find(pass->requests, origin, ret_error, &groups);
    plan.source = groups.source;
    if (rv == 0)
        rv = mu__sagemaker_groups_plan(&groups,
                                       mu__setting(pass, MU__SAGEMAKER_SET_GROUPS),
                                       origin, ret_error, &hosts, &plan.jobs);
    if (rv == 0)
        rv = mu__sagemaker_sort(&found->hosts, found->source, ret_error);
    if (rv == 0)
        rv = check_groups(&groups, found, ret_error);
    if (rv == 0 && own_location(&hosts, found) == hosts.count)
        mu__requests_explain(pass->requests,
                             "%s: the current host \"%.80s\" is in no job of the %s: "
                             "this process is no task",
                             groups.source, found->current, origin);
    if (rv == 0)
        rv = add_tasks(pass, &plan, own_location(&hosts, found), ret_error, resolution);
    mu__host_list_done(&hosts);
    mu__sagemaker_groups_done(&groups);
    return rv;
}

int mu__sagemaker_resolve(const struct mu__pass *pass, mu_error *ret_error,
                          mu_resolution *ret_resolution)
{
    struct found found = {.source = NULL};
    int rv = find_sagemaker_hosts(pass->requests, ret_error, &found);

    ret_resolution->alone_has_no_master = 1;
    if (rv == 0)
        rv = mu__setting(pass, MU__SAGEMAKER_SET_GROUPS) == NULL
                 ? add_all_hosts(pass, &found, ret_error, ret_resolution)
                 : add_instance_groups(pass, &found, ret_error, ret_resolution);
    if (rv == 0)
        rv = mu__rank_text(pass, MU__SAGEMAKER_SET_RPC_LAYER, ret_resolution->rpc_layer,
                           sizeof ret_resolution->rpc_layer, ret_error);
    mu__host_list_done(&found.hosts);
    return rv;
}
