/* The resolver kubernetes_job: an Indexed Job, a JobSet, a StatefulSet or everything
 * behind a headless service, from variables and the cluster's DNS, without its API.
 *
 * Kubernetes numbers the pods, and a headless service gives each a name:
 *
 *     Indexed Job, StatefulSet    NAME-INDEX.SERVICE
 *     JobSet                      JOBSET-REPLICATED_JOB-JOB_INDEX-INDEX.SERVICE */
#include "resolver/cloud/kubernetes/job_kind.h"
#include "resolver/cloud/resolvers.h"
#include "runtime/base/text.h"

#include <muster/resolver.h>

#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 10000 };

/* ---- Names ---- */

static unsigned group_size(const struct mu__kube_job_group *group)
{
    return group->replicas * group->tasks;
}

static unsigned count_tasks(const struct mu__kube_job_plan *plan)
{
    unsigned count = 0;

    for (size_t i = 0; i < plan->groups_count; i++)
        count += group_size(&plan->groups[i]);
    return count;
}

static int make_host(const struct mu__kube_job_plan *plan,
                     const struct mu__kube_job_group *group, unsigned i,
                     mu_error *ret_error, char *ret_host)
{
    int size;

    if (plan->mode == MU__KUBE_MODE_JOB_SET)
        size = snprintf(ret_host, MU__KUBE_JOB_HOST_BYTES, "%s-%s-%u-%u%s", plan->jobset,
                        group->name, i / group->tasks, i % group->tasks, plan->suffix);
    else
        size = snprintf(ret_host, MU__KUBE_JOB_HOST_BYTES, "%s-%u%s", group->name, i,
                        plan->suffix);
    if (size > 0 && size < MU__KUBE_JOB_HOST_BYTES)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the name of pod %u of %s: expected fewer than %d bytes", i,
                        group->name, (int)MU__KUBE_JOB_HOST_BYTES);
}

static int no_such_host(const char *host, const char *words, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                        "%.150s has no address (%.80s). Does the pod run, is there a "
                        "headless service (clusterIP: None) with this name that selects "
                        "it, with publishNotReadyAddresses: true, and is it the pod's "
                        "subdomain?",
                        host, words);
}

/* The addresses of a name; *ret_lines is owned by the requests. */
static int look_up_pod(struct mu__requests *requests, const char *host,
                       mu_error *ret_error, const char **ret_lines)
{
    const struct mu__request request = {.kind = MU__REQUEST_ADDRESSES,
                                        .name = host,
                                        .timeout_ms = WAIT_MS,
                                        .retry_missing = true};
    const struct mu__answer *answer = mu__requests_get(requests, &request);

    if (answer->code == -MU_ENOTFOUND || (answer->code == 0 && answer->size == 0))
        return no_such_host(
            host, answer->code == 0 ? "the answer is empty" : answer->error.message,
            ret_error);
    if (answer->code != 0)
        return mu__answer_check(answer, host, ret_error);
    *ret_lines = answer->data;
    return 0;
}

/* ---- The cluster ---- */

/* The next task: by type for groups with a type of their own, else by rank over all
 * jobs. */
struct cursor {
    struct mu__jobs jobs;
    unsigned rank;
};

static void find_pod_task(const struct cursor *cursor,
                          const struct mu__kube_job_group *group,
                          const mu_resolution *resolution, const char **ret_type,
                          int *ret_index)
{
    if (group->type[0] == '\0') {
        mu__jobs_at(&cursor->jobs, cursor->rank, ret_type, ret_index);
        return;
    }
    *ret_type = group->type;
    *ret_index = (int)mu_cluster_task_count(resolution->cluster, group->type);
}

static int add_job_pod(struct mu__requests *requests,
                       const struct mu__kube_job_plan *plan,
                       const struct mu__kube_job_group *group, unsigned i,
                       struct cursor *cursor, mu_error *ret_error,
                       mu_resolution *resolution)
{
    char host[MU__KUBE_JOB_HOST_BYTES];
    char ip[64];
    const char *lines = NULL;
    const char *type;
    int index;
    int rv = make_host(plan, group, i, ret_error, host);

    if (rv == 0 && (plan->by_ip || cursor->rank < plan->waits_for))
        rv = look_up_pod(requests, host, ret_error, &lines);
    if (rv != 0)
        return rv;
    find_pod_task(cursor, group, resolution, &type, &index);
    if (group == &plan->groups[plan->own_group] &&
        i == plan->own_replica * group->tasks + plan->own_index) {
        MU__COPY_TEXT(resolution->task_type, type);
        resolution->task_index = index;
    }
    if (plan->by_ip)
        (void)snprintf(ip, sizeof ip, "%.*s", (int)strcspn(lines, "\n"), lines);
    cursor->rank++;
    return mu__resolution_add_host(resolution, host, type, index, plan->by_ip ? ip : host,
                                   plan->port, ret_error);
}

/* Request all names that are needed, before waiting for the first. */
static void request_ahead(struct mu__requests *requests,
                          const struct mu__kube_job_plan *plan)
{
    unsigned rank = 0;

    for (size_t k = 0; k < plan->groups_count; k++) {
        for (unsigned i = 0; i < group_size(&plan->groups[k]); i++) {
            char host[MU__KUBE_JOB_HOST_BYTES];
            const char *lines;

            if (rank++ < plan->waits_for &&
                make_host(plan, &plan->groups[k], i, NULL, host) == 0)
                (void)look_up_pod(requests, host, NULL, &lines);
        }
    }
}

static int add_job_groups(const struct mu__pass *pass,
                          const struct mu__kube_job_plan *plan, mu_error *ret_error,
                          mu_resolution *resolution)
{
    struct cursor cursor = {.rank = 0};
    const char *origin = mu__setting_origin(pass, MU__KUBE_JOB_JOBS);
    int rv = 0;

    if (plan->groups[0].type[0] == '\0')
        rv = mu__jobs_parse(mu__setting(pass, MU__KUBE_JOB_JOBS), origin,
                            count_tasks(plan), ret_error, &cursor.jobs);
    if (rv == 0)
        request_ahead(pass->requests, plan);
    for (size_t k = 0; rv == 0 && k < plan->groups_count; k++)
        for (unsigned i = 0; rv == 0 && i < group_size(&plan->groups[k]); i++)
            rv = add_job_pod(pass->requests, plan, &plan->groups[k], i, &cursor,
                             ret_error, resolution);
    return rv;
}

/* ---- All addresses behind a service ---- */

/* The own addresses: POD_IP, else those of the own host name; NULL. */
static const char *own_addresses(struct mu__requests *requests)
{
    const char *host_name = mu__kube_job_host_name(requests);
    const struct mu__request request = {
        .kind = MU__REQUEST_ADDRESSES, .name = host_name, .tries = 1};
    const char *lines = mu__request_variable(requests, "POD_IP");
    const struct mu__answer *answer;

    if (lines != NULL || host_name == NULL)
        return lines;
    answer = mu__requests_get(requests, &request);
    return answer->code == 0 ? answer->data : NULL;
}

static unsigned count_lines(const char *lines)
{
    unsigned count = 0;
    const char *line;
    size_t size;

    while (mu__next_line(&lines, &line, &size))
        count++;
    return count;
}

static int add_lines(const char *lines, const char *own, const struct mu__jobs *jobs,
                     const struct mu__kube_job_plan *plan, mu_error *ret_error,
                     mu_resolution *resolution)
{
    unsigned rank = 0;
    const char *at;
    size_t size;

    while (mu__next_line(&lines, &at, &size)) {
        const char *type;
        char ip[64];
        int index;
        int rv;

        mu__jobs_at(jobs, rank++, &type, &index);
        (void)snprintf(ip, sizeof ip, "%.*s", (int)size, at);
        rv = mu__resolution_add_host(resolution, plan->suffix + 1, type, index, ip,
                                     plan->port, ret_error);
        if (rv != 0)
            return rv;
        if (own != NULL && mu__has_line(own, at, size)) {
            MU__COPY_TEXT(resolution->task_type, type);
            resolution->task_index = index;
        }
    }
    return 0;
}

static int add_service(const struct mu__pass *pass, const struct mu__kube_job_plan *plan,
                       mu_error *ret_error, mu_resolution *resolution)
{
    unsigned expected = plan->groups[0].tasks;
    const char *lines = NULL;
    struct mu__jobs jobs;
    unsigned found;
    int rv = look_up_pod(pass->requests, plan->suffix + 1, ret_error, &lines);

    if (rv != 0)
        return rv;
    found = count_lines(lines);
    if (found != expected)
        return mu_error_set(ret_error,
                            found < expected ? -MU_EUNAVAILABLE : -MU_EPRECONDITION,
                            "%s: expected %u addresses (tasks), but there are %u",
                            plan->suffix + 1, expected, found);
    rv = mu__jobs_parse(mu__setting(pass, MU__KUBE_JOB_JOBS),
                        mu__setting_origin(pass, MU__KUBE_JOB_JOBS), found, ret_error,
                        &jobs);
    return rv == 0 ? add_lines(lines, own_addresses(pass->requests), &jobs, plan,
                               ret_error, resolution)
                   : rv;
}

int mu__kube_job_resolve(const struct mu__pass *pass, mu_error *ret_error,
                         mu_resolution *ret_resolution)
{
    struct mu__kube_job_plan plan = {.own_group = 0};
    int rv = mu__kube_job_read(pass, ret_error, &plan);

    MU__COPY_TEXT(ret_resolution->rpc_layer, mu__setting(pass, MU__KUBE_JOB_RPC_LAYER));
    if (rv != 0)
        return rv;
    if (plan.mode == MU__KUBE_MODE_SERVICE)
        return add_service(pass, &plan, ret_error, ret_resolution);
    return add_job_groups(pass, &plan, ret_error, ret_resolution);
}
