/* `--python MODULE`: an interpreter inside the node. */
#ifndef MU_CLI_PYTHON_H
#define MU_CLI_PYTHON_H

#include "cli/options/flags.h"

#include "muster/node.h"

/* With --python or --processes, and without an interpreter in this process, replace the
 * process by an interpreter (MUSTER_PYTHON, or python3) that runs the same command: does
 * not return then. If that cannot be started, or lacks the package muster, the process
 * ends with CMD_USAGE and a message. */
void cmd_python_become(const struct cmd_options *options);

/* Have the embedding interpreter import the modules of --python. --processes becomes the
 * node's setting "python.processes". */
int cmd_python_load(const struct cmd_options *options, mu_node *node,
                    mu_error *ret_error);

#endif
