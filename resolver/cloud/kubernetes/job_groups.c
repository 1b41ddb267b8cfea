/* The groups of pods, and which pod this process is. */
#include "resolver/cloud/kubernetes/job_kind.h"

#include "resolver/spec/cluster.h"
#include "runtime/document/json.h"

#include <stdio.h>
#include <string.h>

/* ---- Groups ---- */

/* "4" or "2x4". */
static bool read_size(const char *text, size_t size, bool is_set,
                      struct mu__kube_job_group *group)
{
    char digits[16] = "";
    char *x;
    int tasks;
    int replicas = 1;

    if (size >= sizeof digits)
        return false;
    memcpy(digits, text, size);
    x = strchr(digits, 'x');
    if (x != NULL) {
        *x = '\0';
        if (!is_set || mu__index_parse(digits, &replicas) != 0)
            return false;
    }
    if (mu__index_parse(x == NULL ? digits : x + 1, &tasks) != 0 || tasks == 0 ||
        replicas == 0)
        return false;
    group->tasks = (unsigned)tasks;
    group->replicas = (unsigned)replicas;
    return true;
}

/* "worker=NAME:2x4". */
static int read_job_group(const struct mu__pass *pass, const char *text, size_t size,
                          mu_error *ret_error, struct mu__kube_job_plan *plan)
{
    struct mu__kube_job_group *group = &plan->groups[plan->groups_count];
    size_t type = strcspn(text, "=,");
    size_t name = type < size ? strcspn(text + type + 1, ":,") : size;
    size_t behind = type + name + 2;

    if (plan->groups_count == MU__KUBE_JOB_GROUPS_MAX || type + 1 >= size ||
        behind >= size || !mu__kube_job_is_label(text + type + 1, name) ||
        !read_size(text + behind, size - behind, plan->mode == MU__KUBE_MODE_JOB_SET,
                   group))
        return mu__setting_refuse(
            pass, MU__KUBE_JOB_GROUPS,
            "up to 8 of TYPE=NAME:COUNT, as in \"ps=ps:2,worker=work:4\" (of a "
            "JobSet also NAME:JOBSxCOUNT)",
            ret_error);
    if (mu__task_type_read(text, type, ret_error, group->type, "groups") != 0)
        return -MU_EINVALID;
    (void)snprintf(group->name, sizeof group->name, "%.*s", (int)name, text + type + 1);
    plan->groups_count++;
    return 0;
}

int mu__kube_job_groups(const struct mu__pass *pass, const char *text,
                        mu_error *ret_error, struct mu__kube_job_plan *plan)
{
    if (mu__setting(pass, MU__KUBE_JOB_JOBS) != NULL)
        return mu__setting_refuse(pass, MU__KUBE_JOB_JOBS, "nothing beside groups",
                                  ret_error);
    while (*text != '\0') {
        size_t size = strcspn(text, ",");
        int rv = read_job_group(pass, text, size, ret_error, plan);

        if (rv != 0)
            return rv;
        text += size;
        text += *text == ',';
    }
    return plan->groups_count > 0 ? 0
                                  : mu__setting_refuse(pass, MU__KUBE_JOB_GROUPS,
                                                       "TYPE=NAME:COUNT", ret_error);
}

/* Whether the index at the end of HOSTNAME is that of the Job: a pod in the network of
 * its host has the host's name. */
static bool is_own_job_index(const struct mu__pass *pass, int index)
{
    const char *text = mu__setting(pass, MU__KUBE_JOB_INDEX);
    int known;

    return text == NULL || mu__index_parse(text, &known) != 0 || known == index;
}

/* The name of this pod's Job, replicated job or StatefulSet. */
static int read_own_job_name(const struct mu__pass *pass,
                             const struct mu__kube_job_plan *plan, mu_error *ret_error,
                             char *ret_name)
{
    unsigned number = plan->mode == MU__KUBE_MODE_JOB_SET ? MU__KUBE_JOB_REPLICATED_JOB
                                                          : MU__KUBE_JOB_NAME;
    const char *name = mu__setting(pass, number);
    const char *host_name = mu__kube_job_host_name(pass->requests);
    size_t size = name == NULL ? 0 : strlen(name);
    int index;

    if (name == NULL && plan->mode != MU__KUBE_MODE_JOB_SET &&
        mu__kube_job_split(host_name, &size, &index) && is_own_job_index(pass, index))
        name = host_name;
    if (name == NULL || !mu__kube_job_is_label(name, size))
        return mu__setting_refuse(
            pass, number,
            plan->mode == MU__KUBE_MODE_JOB_SET
                ? "the name of the replicated job"
                : "the name of the Job or StatefulSet (HOSTNAME is not NAME-INDEX here)",
            ret_error);
    (void)snprintf(ret_name, MU__KUBE_JOB_NAME_BYTES, "%.*s", (int)size, name);
    return 0;
}

/* Without the setting groups there is one group, that of this pod. */
int mu__kube_job_one_group(const struct mu__pass *pass, mu_error *ret_error,
                           struct mu__kube_job_plan *plan)
{
    struct mu__kube_job_group *group = &plan->groups[0];
    int rv = mu__kube_job_unsigned(pass, MU__KUBE_JOB_TASKS, ret_error, &group->tasks);

    group->replicas = 1;
    if (rv == 0 && plan->mode == MU__KUBE_MODE_JOB_SET)
        rv = mu__kube_job_unsigned(pass, MU__KUBE_JOB_REPLICAS, ret_error,
                                   &group->replicas);
    if (rv != 0)
        return rv;
    if (group->tasks == 0)
        return mu__setting_refuse(
            pass, MU__KUBE_JOB_TASKS,
            "how many pods there are (the Job's completions, the StatefulSet's replicas)",
            ret_error);
    plan->groups_count = 1;
    return plan->mode == MU__KUBE_MODE_SERVICE
               ? 0
               : read_own_job_name(pass, plan, ret_error, group->name);
}

/* ---- The own pod ---- */

static int read_own_index(const struct mu__pass *pass,
                          const struct mu__kube_job_plan *plan, mu_error *ret_error,
                          unsigned *ret_index)
{
    const char *host_name = mu__kube_job_host_name(pass->requests);
    size_t size;
    int index;

    if (mu__setting(pass, MU__KUBE_JOB_INDEX) != NULL)
        return mu__kube_job_unsigned(pass, MU__KUBE_JOB_INDEX, ret_error, ret_index);
    if (plan->mode != MU__KUBE_MODE_STATEFUL_SET)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "JOB_COMPLETION_INDEX is not set; expected a Job with "
                            "completionMode: Indexed");
    if (!mu__kube_job_split(host_name, &size, &index))
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "HOSTNAME: expected NAME-INDEX, as a StatefulSet's pods "
                            "have it");
    *ret_index = (unsigned)index;
    return 0;
}

int mu__kube_job_own_index(const struct mu__pass *pass, mu_error *ret_error,
                           struct mu__kube_job_plan *plan)
{
    char name[MU__KUBE_JOB_NAME_BYTES];
    const struct mu__kube_job_group *group;
    int rv = read_own_job_name(pass, plan, ret_error, name);

    if (rv == 0)
        rv = read_own_index(pass, plan, ret_error, &plan->own_index);
    if (rv == 0 && plan->mode == MU__KUBE_MODE_JOB_SET)
        rv = mu__kube_job_unsigned(pass, MU__KUBE_JOB_JOB_INDEX, ret_error,
                                   &plan->own_replica);
    if (rv != 0)
        return rv;
    while (plan->own_group < plan->groups_count &&
           strcmp(plan->groups[plan->own_group].name, name) != 0)
        plan->own_group++;
    if (plan->own_group == plan->groups_count) {
        mu__requests_explain(pass->requests,
                             "\"%s\" is none of the groups: this process is no task",
                             name);
        return 0;
    }
    group = &plan->groups[plan->own_group];
    if (plan->own_index < group->tasks && plan->own_replica < group->replicas)
        return 0;
    return mu_error_set(ret_error, -MU_ERANGE,
                        "JOB_COMPLETION_INDEX, HOSTNAME: this is pod %u of Job %u, but "
                        "%s has %u with %u pods each; are tasks and replicas right?",
                        plan->own_index, plan->own_replica, group->name, group->replicas,
                        group->tasks);
}
