/* What mu_node_main runs on a node. */
#ifndef MU_API_TASK_PROGRAM_H
#define MU_API_TASK_PROGRAM_H

#include "muster/node.h"

#include <stdbool.h>

/* Whether mu_node_main runs a program here; else it serves. */
bool mu__node_has_program(const mu_node *node);

/* Set the mode in which mu_node_main runs what mu_node_set_distribute has set. Does
 * nothing when that was not called. */
void mu__node_set_mode(mu_node *node, int mode, bool ignore_environment);

/* Run what mu_node_set_distribute has set, as this node's task. */
int mu__node_run_distributed(mu_node *node, mu_error *ret_error);

#endif
