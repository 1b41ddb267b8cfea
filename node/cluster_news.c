/* The cluster of a node as programs see it, which changes while they run. */
#include "node/node.h"
#include "runtime/message/arguments.h"

#include <string.h>

size_t mu_node_task_count(const mu_node *node, const char *type)
{
    MU__REQUIRE_OR(0, node);

    uv_mutex_t *lock = &((mu_node *)node)->cluster.lock;
    size_t count;

    uv_mutex_lock(lock);
    count = mu_cluster_task_count(node->cluster.now, type);
    uv_mutex_unlock(lock);
    return count;
}

mu_cluster *mu__node_cluster(mu_node *node)
{
    mu_cluster *copy;

    uv_mutex_lock(&node->cluster.lock);
    copy = mu_cluster_copy(node->cluster.now);
    uv_mutex_unlock(&node->cluster.lock);
    return copy;
}

void mu_node_on_cluster_change(mu_node *node, mu_cluster_change_fn callback, void *user)
{
    MU__REQUIRE_OR(, node);

    uv_mutex_lock(&node->cluster.lock);
    node->cluster.changed = callback;
    node->cluster.user = user;
    uv_mutex_unlock(&node->cluster.lock);
}

static void report_cluster_change(mu_node *node, const struct mu__change *change)
{
    static const int events[] = {
        [MU__CHANGE_ADDED] = MU_CLUSTER_TASK_ADDED,
        [MU__CHANGE_REMOVED] = MU_CLUSTER_TASK_REMOVED,
        [MU__CHANGE_MOVED] = MU_CLUSTER_TASK_MOVED,
    };
    const mu_cluster_change public_change = {
        .event = events[change->kind],
        .type = change->type,
        .index = change->index,
        .address = change->address,
        .is_own = change->index == (int)node->member.index &&
                  strcmp(change->type, node->member.type) == 0,
    };
    mu_cluster_change_fn callback;
    void *user;

    uv_mutex_lock(&node->cluster.lock);
    callback = node->cluster.changed;
    user = node->cluster.user;
    uv_mutex_unlock(&node->cluster.lock);
    if (callback != NULL)
        callback(node, &public_change, user);
}

void mu__node_cluster_news(void *owner, const struct mu__changes *changes,
                           const mu_cluster *cluster)
{
    mu_node *node = owner;
    mu_cluster *copy = mu_cluster_copy(cluster);
    mu_cluster *former;

    if (copy == NULL) {
        mu__node_log(node, MU_LOG_ERROR, "cluster",
                     "out of memory: the program sees the cluster as it was");
        return;
    }
    uv_mutex_lock(&node->cluster.lock);
    former = node->cluster.now;
    node->cluster.now = copy;
    node->offer.own.cluster = copy;
    uv_mutex_unlock(&node->cluster.lock);
    mu_cluster_free(former);
    for (size_t i = 0; i < changes->count; i++)
        if (changes->rows[i].refused == NULL)
            report_cluster_change(node, &changes->rows[i]);
}
