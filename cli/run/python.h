/* `--python MODULE`: an interpreter inside the node. */
#ifndef MU_CLI_PYTHON_H
#define MU_CLI_PYTHON_H

#include "cli/options/flags.h"

#include "muster/node.h"

/* Without an interpreter in this process, become one that does the same: does not return
 * then. MUSTER_PYTHON names it, python3 by default; one that cannot be started, or has no
 * muster, ends the process with CMD_USAGE and words. */
void cmd_python_become(const struct cmd_options *options);

/* Have the host import the modules; it finds --processes as the node's setting
 * "python.processes". */
int cmd_python_load(const struct cmd_options *options, mu_node *node,
                    mu_error *ret_error);

#endif
