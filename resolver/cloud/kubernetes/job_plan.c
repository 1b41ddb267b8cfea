/* Reads the settings of the resolver kubernetes_job into a plan. */
#include "resolver/cloud/kubernetes/job_kind.h"

#include "runtime/base/text.h"
#include "runtime/document/json.h"

#include <stdio.h>
#include <string.h>

/* ---- Reading settings ---- */

int mu__kube_job_unsigned(const struct mu__pass *pass, unsigned number,
                          mu_error *ret_error, unsigned *number_found)
{
    long found = *number_found;
    int rv = mu__setting_number(pass, number, ret_error, &found);

    if (rv == 0)
        *number_found = (unsigned)found;
    return rv;
}

bool mu__kube_job_is_label(const char *text, size_t size)
{
    size_t plain = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return size > 0 && size < MU__KUBE_JOB_NAME_BYTES && plain >= size &&
           text[0] != '-' && text[size - 1] != '-';
}

bool mu__kube_job_split(const char *host_name, size_t *ret_size, int *ret_index)
{
    const char *dash = host_name == NULL ? NULL : strrchr(host_name, '-');

    if (dash == NULL || mu__index_parse(dash + 1, ret_index) != 0)
        return false;
    *ret_size = (size_t)(dash - host_name);
    return mu__kube_job_is_label(host_name, *ret_size);
}

const char *mu__kube_job_host_name(struct mu__requests *requests)
{
    const struct mu__request request = {.kind = MU__REQUEST_HOST_NAME};
    const char *variable = mu__request_variable(requests, "HOSTNAME");
    const struct mu__answer *answer;

    if (variable != NULL)
        return variable;
    answer = mu__requests_get(requests, &request);
    return answer->code == 0 ? answer->data : NULL;
}

static int read_mode(const struct mu__pass *pass, mu_error *ret_error,
                     enum mu__kube_job_mode *ret_mode)
{
    static const char *const words[] = {"job",     "jobset", "statefulset",
                                        "service", "auto",   NULL};
    unsigned position = 0;
    size_t size;
    int index;
    int rv = mu__setting_word(pass, MU__KUBE_JOB_MODE, words,
                              "job, jobset, statefulset, service or auto", ret_error,
                              &position);

    if (rv != 0)
        return rv;
    *ret_mode = (enum mu__kube_job_mode)position;
    if (position <= MU__KUBE_MODE_SERVICE)
        return 0;
    if (mu__setting(pass, MU__KUBE_JOB_JOBSET) != NULL)
        *ret_mode = MU__KUBE_MODE_JOB_SET;
    else if (mu__setting(pass, MU__KUBE_JOB_INDEX) != NULL)
        *ret_mode = MU__KUBE_MODE_JOB;
    else if (mu__kube_job_split(mu__kube_job_host_name(pass->requests), &size, &index))
        *ret_mode = MU__KUBE_MODE_STATEFUL_SET;
    else
        *ret_mode = MU__KUBE_MODE_SERVICE;
    return 0;
}

/* ".service", with namespace and domain behind it where they are wanted. */
static int read_suffix(const struct mu__pass *pass, mu_error *ret_error,
                       struct mu__kube_job_plan *plan)
{
    const char *service = mu__setting(pass, MU__KUBE_JOB_SERVICE);
    const char *name_space = mu__setting(pass, MU__KUBE_JOB_NAMESPACE);
    const char *domain = mu__setting(pass, MU__KUBE_JOB_DOMAIN);

    if (service == NULL && plan->mode == MU__KUBE_MODE_JOB_SET)
        service = plan->jobset;
    if (service == NULL || !mu__kube_job_is_label(service, strlen(service)))
        return mu__setting_refuse(
            pass, MU__KUBE_JOB_SERVICE,
            "the name of the headless service (the pods' subdomain)", ret_error);
    if (name_space != NULL && !mu__kube_job_is_label(name_space, strlen(name_space)))
        return mu__setting_refuse(pass, MU__KUBE_JOB_NAMESPACE, "the name of a namespace",
                                  ret_error);
    if (domain != NULL && name_space == NULL)
        return mu__setting_refuse(pass, MU__KUBE_JOB_NAMESPACE,
                                  "a namespace beside the domain", ret_error);
    if (domain != NULL && strlen(domain) > 100)
        return mu__setting_refuse(pass, MU__KUBE_JOB_DOMAIN,
                                  "a domain of at most 100 bytes", ret_error);
    (void)snprintf(plan->suffix, sizeof plan->suffix, ".%.63s%s%.63s%s%s%.100s", service,
                   name_space == NULL ? "" : ".", name_space == NULL ? "" : name_space,
                   name_space == NULL ? "" : ".svc", domain == NULL ? "" : ".",
                   domain == NULL ? "" : domain);
    return 0;
}
static int read_address_settings(const struct mu__pass *pass, mu_error *ret_error,
                                 struct mu__kube_job_plan *plan)
{
    static const char *const addresses[] = {"name", "ip", NULL};
    static const char *const waits[] = {"none", "first", "all", NULL};
    unsigned position = 0;
    int rv = mu__setting_word(pass, MU__KUBE_JOB_ADDRESS, addresses, "name or ip",
                              ret_error, &position);

    plan->by_ip = position == 1;
    if (rv == 0)
        rv = mu__setting_word(pass, MU__KUBE_JOB_WAIT_FOR, waits, "none, first or all",
                              ret_error, &plan->waits_for);
    if (plan->waits_for == 2 || plan->by_ip)
        plan->waits_for = MU_CLUSTER_TASKS_MAX;
    return rv == 0
               ? mu__kube_job_unsigned(pass, MU__KUBE_JOB_PORT, ret_error, &plan->port)
               : rv;
}

static int check_size(const struct mu__kube_job_plan *plan, mu_error *ret_error)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < plan->groups_count; i++)
        sum += (uint64_t)plan->groups[i].replicas * plan->groups[i].tasks;
    if (sum <= MU_CLUSTER_TASKS_MAX)
        return 0;
    return mu_error_set(ret_error, -MU_EEXHAUSTED,
                        "tasks, groups: expected at most %d tasks, got %llu",
                        MU_CLUSTER_TASKS_MAX, (unsigned long long)sum);
}

int mu__kube_job_read(const struct mu__pass *pass, mu_error *ret_error,
                      struct mu__kube_job_plan *plan)
{
    const char *groups = mu__setting(pass, MU__KUBE_JOB_GROUPS);
    int rv = read_mode(pass, ret_error, &plan->mode);

    plan->jobset = mu__setting(pass, MU__KUBE_JOB_JOBSET);
    if (rv == 0 && plan->mode == MU__KUBE_MODE_JOB_SET &&
        (plan->jobset == NULL ||
         !mu__kube_job_is_label(plan->jobset, strlen(plan->jobset))))
        rv = mu__setting_refuse(pass, MU__KUBE_JOB_JOBSET, "the name of the JobSet",
                                ret_error);
    if (rv == 0)
        rv = read_address_settings(pass, ret_error, plan);
    if (rv == 0)
        rv = read_suffix(pass, ret_error, plan);
    if (rv == 0 && groups != NULL && plan->mode == MU__KUBE_MODE_SERVICE)
        rv = mu__setting_refuse(pass, MU__KUBE_JOB_GROUPS, "no groups in mode service",
                                ret_error);
    if (rv == 0)
        rv = groups != NULL ? mu__kube_job_groups(pass, groups, ret_error, plan)
                            : mu__kube_job_one_group(pass, ret_error, plan);
    if (rv == 0)
        rv = check_size(plan, ret_error);
    if (rv == 0 && plan->mode != MU__KUBE_MODE_SERVICE)
        rv = mu__kube_job_own_index(pass, ret_error, plan);
    return rv;
}
