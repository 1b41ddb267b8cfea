/* The discovery of a node that is open. */
#include "node/node.h"

#include <stdio.h>
#include <string.h>

enum { WITHDRAW_MS = 2000 };

static void log_node_discovery(void *owner, int level, const char *line)
{
    mu__node_log(owner, level, "resolver", "%s", line);
}

/* A change that cannot be taken is logged once: the same cluster is found again and
 * again. Changes that a running job refuses are in the log already, task by task. */
static void on_node_cluster_found(void *owner, mu_resolution *resolution)
{
    mu_node *node = owner;
    mu_error error = {0};

    if (node->lifecycle.state == MU__NODE_RUNNING && resolution->cluster != NULL &&
        mu__member_set_cluster(&node->member, resolution->cluster, &error) != 0 &&
        error.code != -MU_EPRECONDITION &&
        strcmp(error.message, node->discovery.refused_change) != 0) {
        (void)snprintf(node->discovery.refused_change,
                       sizeof node->discovery.refused_change, "%s", error.message);
        log_node_discovery(node, MU_LOG_WARN, error.message);
    }
    if (error.code == 0)
        node->discovery.refused_change[0] = '\0';
    mu_cluster_free(resolution->cluster);
}

int mu__node_start_discovery(mu_node *node, const mu_node_options *options,
                             const struct mu__discovered *found, mu_error *ret_error)
{
    const mu_announcement announcement = mu__discovered_announcement(found, options);
    const struct mu__discovery_config config = {
        .loop = node->loop,
        .resolver = options->resolver,
        .announcement = &announcement,
        .is_known = true,
        .found = on_node_cluster_found,
        .log = log_node_discovery,
        .owner = node,
    };

    if (found->cluster == NULL)
        return 0;
    return mu__discovery_open(&config, ret_error, &node->discovery.handle);
}

static void on_node_discovery_closed(void *arg)
{
    mu_node *node = arg;

    node->discovery.handle = NULL;
    if (node->lifecycle.state >= MU__NODE_CLOSED)
        mu__node_part_closed(node);
}

void mu__node_stop_discovery(mu_node *node)
{
    if (node->discovery.handle == NULL || node->discovery.stops)
        return;
    node->discovery.stops = true;
    mu__discovery_close(node->discovery.handle, true, WITHDRAW_MS,
                        on_node_discovery_closed, node);
}
