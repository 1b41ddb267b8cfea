/* Clusters of several resolvers as one. */
#include "resolver/engine/internal.h"
#include "resolver/spec/cluster.h"

#include <string.h>

/* Whether the indices of a job have no gaps. */
static bool is_list(const mu_cluster *cluster, const char *type)
{
    return (size_t)mu_cluster_job_end(cluster, type) ==
           mu_cluster_task_count(cluster, type);
}

static int add_one(mu_cluster *whole, const char *type, int index, const char *address,
                   size_t member, mu_error *ret_error)
{
    mu_error inner;
    int rv;

    if (mu_cluster_address(whole, type, index) != NULL)
        return mu_error_set(ret_error, -MU_EEXISTS,
                            "union: member %zu: task %s:%d (%s) is in a member before "
                            "it, too (%s)",
                            member, type, index, address,
                            mu_cluster_address(whole, type, index));
    rv = mu_cluster_add(whole, type, index, address, &inner);
    return rv == 0 ? 0
                   : mu_error_set(ret_error, rv, "union: member %zu: %s", member,
                                  inner.message);
}

static int add_member_job(mu_cluster *whole, const mu_cluster *cluster, const char *type,
                          int offset, size_t member, mu_error *ret_error)
{
    int index;
    int rv = 0;

    for (size_t i = 0; rv == 0 && (index = mu__cluster_job_index(cluster, type, i)) >= 0;
         i++)
        rv = add_one(whole, type, index + offset,
                     mu_cluster_address(cluster, type, index), member, ret_error);
    return rv;
}

static int merge_job(const mu_cluster *const *clusters, size_t count, const char *type,
                     mu_cluster *whole, mu_error *ret_error)
{
    bool lists = true;
    int offset = 0;
    int rv = 0;

    for (size_t i = 0; i < count; i++)
        lists = lists && is_list(clusters[i], type);
    for (size_t i = 0; rv == 0 && i < count; i++) {
        rv = add_member_job(whole, clusters[i], type, lists ? offset : 0, i, ret_error);
        offset += mu_cluster_job_end(clusters[i], type);
    }
    return rv;
}

static int merge_members(const mu_cluster *const *clusters, size_t count,
                         mu_cluster *whole, mu_error *ret_error)
{
    const char *type;
    int rv = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; rv == 0 && (type = mu_cluster_job_at(clusters[i], k)) != NULL;
             k++)
            if (mu_cluster_task_count(whole, type) == 0)
                rv = merge_job(clusters, count, type, whole, ret_error);
    return rv;
}

int mu__union_clusters(const mu_cluster *const *clusters, size_t count,
                       mu_error *ret_error, mu_cluster **ret_cluster)
{
    mu_cluster *whole;
    bool none = true;
    int rv;

    for (size_t i = 0; i < count; i++)
        none = none && clusters[i] == NULL;
    if (none) {
        *ret_cluster = NULL;
        return 0;
    }
    whole = mu_cluster_new();
    if (whole == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "union: out of memory");
    rv = merge_members(clusters, count, whole, ret_error);
    if (rv == 0)
        *ret_cluster = whole;
    else
        mu_cluster_free(whole);
    return rv;
}
