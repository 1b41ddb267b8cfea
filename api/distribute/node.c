/* The program of a node that runs the same in every mode: what a plugin has set, run on
 * the node that is there. */
#include "api/distribute/distribute.h"
#include "node/node.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mu_node_set_distribute(mu_node *node, const mu_distribute_options *options)
{
    MU__REQUIRE(NULL, node, options, options->worker);
    if (node->program.distribute != NULL)
        return -MU_EEXISTS;
    node->program.distribute = malloc(sizeof *node->program.distribute);
    if (node->program.distribute == NULL)
        return -MU_ENOMEM;
    *node->program.distribute = *options;
    return 0;
}

void mu__node_set_mode(mu_node *node, int mode, bool ignore_environment)
{
    if (node->program.distribute == NULL)
        return;
    node->program.distribute->mode = mode;
    node->program.distribute->ignore_environment = ignore_environment;
}

/* Errors are told here, too: of a run that failed, only the first is returned. */
static void log_results(mu_node *node, const mu_value *results)
{
    char line[768];

    for (size_t i = 0; i < mu_value_count(results); i++) {
        mu_error error;

        mu__result_error(mu_value_at(results, i), &error);
        (void)snprintf(line, sizeof line, "%s ended with %d%s%s",
                       mu_value_key(results, i), error.code,
                       error.code == 0 ? "" : ": ", error.message);
        if (node->log.level >= MU_LOG_INFO)
            node->log.write(node->log.user, MU_LOG_INFO, mu_node_task(node), "distribute",
                            line);
    }
}

int mu__node_run_distributed(mu_node *node, mu_error *ret_error)
{
    mu_distribute_options options = *node->program.distribute;
    mu_value *results = NULL;
    mu_cluster *cluster;
    char type[16] = "";
    int rv;

    (void)sscanf(node->member.task, "/job:%15[^/]/task:%d", type, &options.task_index);
    options.task_type = type;
    cluster = mu__node_cluster(node);
    if (cluster == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a cluster");
    options.cluster = cluster;
    options.node = node;
    options.keep_server = 0;
    rv = mu_distribute_run(&options, ret_error, &results);
    log_results(node, results);
    mu_value_free(results);
    mu_cluster_free(cluster);
    return rv;
}
