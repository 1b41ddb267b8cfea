/* The pods that are tasks, their order and their addresses. */
#include "resolver/cloud/kubernetes/pods.h"

#include "resolver/engine/kind.h"

#include <stdlib.h>
#include <string.h>

static bool is_pod_over(const struct mu__pod *pod)
{
    return strcmp(pod->phase, "Failed") == 0 || strcmp(pod->phase, "Succeeded") == 0;
}

static int compare_pod_names(const void *a, const void *b)
{
    const struct mu__pod *first = *(const struct mu__pod *const *)a;
    const struct mu__pod *second = *(const struct mu__pod *const *)b;

    return strcmp(first->name, second->name);
}

static int by_index(const void *a, const void *b)
{
    const struct mu__pod *first = *(const struct mu__pod *const *)a;
    const struct mu__pod *second = *(const struct mu__pod *const *)b;

    if (first->group != second->group)
        return first->group < second->group ? -1 : 1;
    return (first->index > second->index) - (first->index < second->index);
}

/* ---- Pods that others have replaced ---- */

static bool is_live(const struct mu__pod *pod)
{
    return !is_pod_over(pod) && !pod->deleted;
}

static int by_controller(const void *a, const void *b)
{
    const struct mu__pod *first = *(const struct mu__pod *const *)a;
    const struct mu__pod *second = *(const struct mu__pod *const *)b;

    return strcmp(first->controller, second->controller);
}

static int by_location(const void *a, const void *b)
{
    int difference = by_controller(a, b);

    return difference != 0 ? difference : by_index(a, b);
}

/* The live pods, sorted by by_location. */
struct living {
    const struct mu__pod **pods;
    size_t count;
};

static bool has_kin(const struct living *living, const struct mu__pod *pod)
{
    return bsearch(&pod, living->pods, living->count, sizeof *living->pods,
                   by_controller) != NULL;
}

/* Whether a pod that is not live is no task any more. */
static bool is_left_over(const struct living *living, const struct mu__pod *pod)
{
    if (pod->deleted)
        return true;
    if (pod->controller[0] == '\0')
        return false;
    return strcmp(pod->phase, "Failed") == 0 || !has_kin(living, pod);
}

/* An Indexed Job or a StatefulSet replaces a pod by one with the same index: until that
 * is there, a task is missing. */
static bool is_replacement_awaited(const struct living *living,
                                   const struct mu__pod *removed)
{
    return removed->index >= 0 && removed->controller[0] != '\0' &&
           strcmp(removed->phase, "Succeeded") != 0 && has_kin(living, removed) &&
           bsearch(&removed, living->pods, living->count, sizeof *living->pods,
                   by_location) == NULL;
}

static int not_running(const struct mu__pods_rule *rule, const struct mu__pod *pod,
                       const char *words, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                        "%.160s: pod %.100s is %s%s%.60s%s; expected it to be Running%s",
                        rule->source, pod->name,
                        pod->deleted            ? "being deleted"
                        : pod->phase[0] == '\0' ? "without a phase"
                                                : pod->phase,
                        pod->reason[0] == '\0' ? "" : " (", pod->reason,
                        pod->reason[0] == '\0' ? "" : ")", words);
}

static int drop_left_over_pods(const struct mu__pod **pods, size_t *count,
                               const struct living *living,
                               const struct mu__pods_rule *rule, mu_error *ret_error)
{
    size_t remaining = 0;

    for (size_t i = 0; i < *count; i++)
        if (!is_live(pods[i]) &&
            (living->count == 0 || is_replacement_awaited(living, pods[i])))
            return not_running(rule, pods[i],
                               living->count == 0 ? "" : ", or another in its place",
                               ret_error);
    for (size_t i = 0; i < *count; i++)
        if (is_live(pods[i]) || !is_left_over(living, pods[i]))
            pods[remaining++] = pods[i];
    *count = remaining;
    return 0;
}

static int drop_ended_pods(const struct mu__pod **pods, size_t *count,
                           const struct mu__pods_rule *rule, mu_error *ret_error)
{
    struct living living = {calloc(*count, sizeof *pods), 0};
    int rv;

    if (living.pods == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", rule->source);
    for (size_t i = 0; i < *count; i++)
        if (is_live(pods[i]))
            living.pods[living.count++] = pods[i];
    qsort(living.pods, living.count, sizeof *living.pods, by_location);
    rv = drop_left_over_pods(pods, count, &living, rule, ret_error);
    free(living.pods);
    return rv;
}

/* ---- Order ---- */

static int refuse_missing_pod(const struct mu__pods_rule *rule,
                              const struct mu__pod *before, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                        "%.200s: there is no pod with index %d, behind %.100s",
                        rule->source, before->index + 1, before->name);
}

/* By index, when all pods have different ones; else by name. */
static int order_pods(const struct mu__pod **pods, size_t count,
                      const struct mu__pods_rule *rule, mu_error *ret_error)
{
    bool indexed = true;

    for (size_t i = 0; i < count; i++)
        indexed &= pods[i]->index >= 0;
    qsort(pods, count, sizeof *pods, indexed ? by_index : compare_pod_names);
    for (size_t i = 1; indexed && i < count; i++)
        indexed = by_index(&pods[i - 1], &pods[i]) != 0;
    if (!indexed) {
        qsort(pods, count, sizeof *pods, compare_pod_names);
        return 0;
    }
    for (size_t i = 1; i < count; i++)
        if (pods[i]->group == pods[i - 1]->group &&
            pods[i]->index != pods[i - 1]->index + 1)
            return refuse_missing_pod(rule, pods[i - 1], ret_error);
    return 0;
}

/* ---- Addresses ---- */

/* The number of the first port with this name that has one; 0: none. */
static unsigned port_named(const struct mu__pod *pod, const char *name, bool host)
{
    for (size_t i = 0; i < pod->ports_count; i++) {
        const struct mu__pod_port *port = &pod->ports[i];
        unsigned number = host ? port->host_port : port->container_port;

        if (number != 0 && strcmp(port->name, name) == 0)
            return number;
    }
    return 0;
}

static int find_port(const struct mu__pod *pod, const struct mu__pods_rule *rule,
                     mu_error *ret_error, unsigned *ret_port)
{
    unsigned port = rule->port;

    if (rule->port_name != NULL)
        port = port_named(pod, rule->port_name, rule->host);
    if (port == 0)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "%.160s: pod %.100s: no container has a port named "
                            "\"%.63s\"%s",
                            rule->source, pod->name, rule->port_name,
                            rule->host ? " with a hostPort" : "");
    *ret_port = port;
    return 0;
}

/* Name the earlier pod that has the same address as pods[before]. */
static int same_address(const struct mu__pod *const *pods, size_t before,
                        const struct mu__pods_rule *rule, const mu_error *inner,
                        mu_error *ret_error)
{
    const struct mu__pod *pod = pods[before];

    for (size_t i = 0; i < before; i++) {
        const char *a = rule->host ? pods[i]->host_ip : pods[i]->pod_ip;
        const char *b = rule->host ? pod->host_ip : pod->pod_ip;
        unsigned first = 0;
        unsigned second = 1;

        if (strcmp(a, b) != 0 || find_port(pods[i], rule, NULL, &first) != 0 ||
            find_port(pod, rule, NULL, &second) != 0 || first != second)
            continue;
        return mu_error_set(ret_error, -MU_EEXISTS,
                            "%.140s: pods %.80s and %.80s have the same address %.40s "
                            "port %u; expected one for each%s",
                            rule->source, pods[i]->name, pod->name, a, first,
                            rule->host ? " (address=pod_ip, or ports of their own)" : "");
    }
    return mu_error_set(ret_error, -MU_EEXISTS, "pod %.100s: %.350s", pod->name,
                        inner->message);
}

static int add_pod_task(const struct mu__pod *const *pods, size_t i, size_t index,
                        const struct mu__pods_rule *rule, mu_error *ret_error,
                        mu_resolution *resolution)
{
    const struct mu__pod *pod = pods[i];
    const char *host = rule->host ? pod->host_ip : pod->pod_ip;
    mu_error inner;
    unsigned port;
    int rv;

    if (strcmp(pod->phase, "Running") != 0)
        return not_running(rule, pod, "", ret_error);
    if (host[0] == '\0')
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "%.200s: pod %.100s has no %s yet", rule->source, pod->name,
                            rule->host ? "hostIP" : "podIP");
    rv = find_port(pod, rule, ret_error, &port);
    if (rv != 0)
        return rv;
    rv = mu__resolution_add_host(resolution, rule->source, rule->type, (int)index, host,
                                 port, &inner);
    if (rv == -MU_EEXISTS)
        return same_address(pods, i, rule, &inner, ret_error);
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "%s", inner.message);
}

int mu__pods_add(const struct mu__pod **pods, size_t *count,
                 const struct mu__pods_rule *rule, mu_error *ret_error,
                 mu_resolution *resolution, size_t *ret_first)
{
    size_t first = mu_cluster_task_count(resolution->cluster, rule->type);
    int rv;

    if (*count == 0)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, "%s: there is none yet",
                            rule->source);
    rv = drop_ended_pods(pods, count, rule, ret_error);
    if (rv == 0)
        rv = order_pods(pods, *count, rule, ret_error);
    for (size_t i = 0; rv == 0 && i < *count; i++)
        rv = add_pod_task(pods, i, first + i, rule, ret_error, resolution);
    if (rv == 0)
        *ret_first = first;
    return rv;
}
