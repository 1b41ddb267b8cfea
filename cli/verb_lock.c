/* `muster lock`: holds a lock while a command runs. */
#include "cli/keys/held_command.h"
#include "cli/keys/kv_condition.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>

enum { RELEASE_MS = 2000 };

static int wait_lock_lost(void *held, int64_t timeout_ms, mu_error *error)
{
    int rv = mu_lock_wait_lost(held, timeout_ms, error);

    if (rv == 0)
        (void)mu_error_set(
            error, -MU_EABORTED,
            "the lock %s was lost: this client was declared lost, or its key was deleted",
            mu_lock_key(held));
    return rv;
}

static int hold_lock(struct cmd_client *client, mu_lock *lock, mu_error *error)
{
    char number[24];
    const char *const variables[] = {"MUSTER_LOCK_NUMBER", number, "MUSTER_LOCK_KEY",
                                     mu_lock_key(lock), NULL};
    const struct cmd_command command = {.arguments = client->options->command,
                                        .variables = variables,
                                        .lost = wait_lock_lost,
                                        .held = lock};

    (void)snprintf(number, sizeof number, "%" PRIu64, mu_lock_fencing_token(lock));
    if (command.arguments != NULL)
        return cmd_command_run(client, &command, error);
    (void)printf("%s\n", number);
    (void)fflush(stdout);
    return cmd_command_none(&command, error);
}

int cmd_lock(struct cmd_client *client, mu_error *error)
{
    mu_lock *lock;
    int rv = mu_lock_acquire(client->node, client->options->operands[0],
                             cmd_wait_timeout_ms(client), error, &lock);

    if (rv != 0)
        return cmd_kv_code(rv);
    rv = hold_lock(client, lock, error);
    (void)mu_lock_release(lock, RELEASE_MS, NULL);
    return rv;
}
