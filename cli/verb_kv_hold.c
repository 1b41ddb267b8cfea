/* `muster kv hold`: puts a key as a lease, and deletes it when a command has ended. */
#include "cli/keys/held_command.h"
#include "cli/keys/kv_condition.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DELETE_MS = 2000 };

/* The key, and the revision by which this process recognises its own put. */
struct held {
    const char *key;
    uint64_t revision;
    mu_kv_watch *watch;
    bool seen;
};

static bool is_key_held(struct held *held, const mu_kv_event *event)
{
    if (event->type == MU_KV_EVENT_PUT && event->item.revision <= held->revision)
        held->seen = true;
    else if (event->type != MU_KV_EVENT_SYNCED)
        held->seen = false;
    return held->seen;
}

static int wait_key_lost(void *user, int64_t timeout_ms, mu_error *error)
{
    struct held *held = user;
    bool ours = true;

    while (ours) {
        mu_kv_event event;
        int rv = mu_kv_watch_next(held->watch, timeout_ms, error, &event);

        if (rv != 0)
            return rv;
        ours = is_key_held(held, &event);
        mu_kv_event_clear(&event);
    }
    return mu_error_set(error, -MU_EABORTED,
                        "the key %.200s was lost: this client was declared lost, or "
                        "somebody changed the key",
                        held->key);
}

static int run_held_key(struct cmd_client *client, struct held *held, mu_error *error)
{
    static const char *const variables[] = {NULL};
    const struct cmd_command command = {.arguments = client->options->command,
                                        .variables = variables,
                                        .lost = wait_key_lost,
                                        .held = held};
    int rv = mu_kv_watch_open(client->node, held->key, 0, cmd_timeout_ms(client), error,
                              &held->watch);

    if (rv != 0)
        return cmd_kv_code(rv);
    if (command.arguments != NULL)
        return cmd_command_run(client, &command, error);
    (void)printf("%" PRIu64 "\n", held->revision);
    (void)fflush(stdout);
    return cmd_command_none(&command, error);
}

/* Delete the key, unless another client has put it meanwhile. */
static void delete_held_key(struct cmd_client *client, const struct held *held)
{
    const mu_kv_check check = {
        .type = MU_KV_IF_REVISION, .key = held->key, .revision = held->revision};
    const mu_kv_change change = {.operation = MU_KV_DELETE, .key = held->key};
    const mu_kv_transaction transaction = {&check, 1, &change, 1};

    (void)mu_kv_transact(client->node, &transaction, DELETE_MS, NULL, NULL);
}

int cmd_kv_hold(struct cmd_client *client, mu_error *error)
{
    const char *value = client->options->operands[1];
    struct held held = {.key = client->options->operands[0]};
    const mu_kv_change change = {.operation = MU_KV_PUT,
                                 .flags = MU_KV_LEASE,
                                 .key = held.key,
                                 .value = value,
                                 .size = strlen(value)};
    int rv = cmd_kv_put_if(client, &change, error, &held.revision);

    if (rv != 0)
        return rv;
    rv = run_held_key(client, &held, error);
    mu_kv_watch_close(held.watch);
    delete_held_key(client, &held);
    return rv;
}
