/* A command that runs while something is held: a lock, a key. */
#ifndef MU_CLI_COMMAND_H
#define MU_CLI_COMMAND_H

#include "cli/service_client.h"

struct cmd_command {
    char *const *arguments;     /* of the command; NULL ends them */
    const char *const *variables;   /* for its environment: name, value, ..., NULL */

    /* Waits for at most that long: -MU_EDEADLINE, it is held still; or it is not, with
     * words. */
    int (*lost)(void *held, int64_t timeout_ms, mu_error *error);
    void *held;
};

/* Run it, and wait for its end: its exit code, 128 + n after a signal. CMD_FAILED with
 * words: what was held was lost, so the command was told to end, and has. CMD_NOT_FOUND,
 * CMD_NOT_STARTED with words. It dies when this process does. */
int cmd_command_run(struct cmd_client *client, const struct cmd_command *command,
                    mu_error *error);

/* There is no command: wait until a signal ends this process, or it is lost. */
int cmd_command_none(const struct cmd_command *command, mu_error *error);

#endif
