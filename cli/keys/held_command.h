/* A command that runs while this process holds a lock or a key. */
#ifndef MU_CLI_COMMAND_H
#define MU_CLI_COMMAND_H

#include "cli/service_client.h"

struct cmd_command {
    char *const *arguments;       /* of the command, ended by NULL */
    const char *const *variables; /* for its environment: name, value, ..., NULL */

    /* Waits until the lock or key is lost. -MU_EDEADLINE: it is still held; anything
     * else: it was lost, and `error` says why. */
    int (*lost)(void *held, int64_t timeout_ms, mu_error *error);
    void *held;
};

/* Run the command and wait for its end. Returns its exit code, 128 + n after a signal;
 * CMD_FAILED with `error` when the lock or key was lost, after the command was
 * terminated; CMD_NOT_FOUND or CMD_NOT_STARTED with `error`. The kernel kills the command
 * when this process dies. */
int cmd_command_run(struct cmd_client *client, const struct cmd_command *command,
                    mu_error *error);

/* Without a command: wait until a signal ends this process, or the lock or key is
 * lost. */
int cmd_command_none(const struct cmd_command *command, mu_error *error);

#endif
