/* Arguments and environment of the tasks of `muster run`: this command's own, without the
 * variables that would make a child another task. */
#ifndef MU_CLI_INHERITED_H
#define MU_CLI_INHERITED_H

#include "cli/options/flags.h"

enum { CLI_ARGUMENTS_MAX = 256, CLI_RUN_NAME_BYTES = 40 };

/* Borrows from the options and from our own environment. */
struct cmd_launch {
    char *arguments[CLI_ARGUMENTS_MAX];
    char **task;                /* two places among them: --task NAME */
    char **environment;
    char **tf_config;           /* the last place of the environment: the task's, too */
};

int cmd_launch_init(struct cmd_launch *launch, const struct cmd_options *options,
                    mu_error *ret_error);
void cmd_launch_done(struct cmd_launch *launch);

/* Log warnings only, unless a log flag was given: lines about tasks that start and end
 * would hide the program's output. */
bool cmd_is_quiet(const struct cmd_options *options);

#endif
