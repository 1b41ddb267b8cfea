/* `muster drain`: has a worker finish its closures and leave. */
#include "actors/worker_types.h"
#include "cli/chief_client.h"
#include "cli/verbs.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

#include "muster/coordinator.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TYPE_BYTES = 16 };

/* Parse "worker:1" or "/job:worker/task:1", of any type that may run closures. */
static int read_worker(const char *text, mu_error *error, char type[TYPE_BYTES],
                       int *ret_index)
{
    static const char job[] = "/job:";
    static const char middle[] = "/task:";
    bool is_long = strncmp(text, job, sizeof job - 1) == 0;
    const char *at = is_long ? text + sizeof job - 1 : text;
    const char *end = is_long ? strstr(at, middle) : strchr(at, ':');
    struct mu__worker_types types;
    char shown[MU__QUOTE_BYTES];

    if (end != NULL && end - at < TYPE_BYTES) {
        (void)snprintf(type, TYPE_BYTES, "%.*s", (int)(end - at), at);
        if (mu__worker_types_parse(type, NULL, &types) == 0 && types.count == 1 &&
            mu__index_parse(end + (is_long ? sizeof middle - 1 : 1), ret_index) == 0)
            return 0;
    }
    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID,
                        "%s: expected a worker, as worker:1 or /job:worker/task:1",
                        shown);
}

static int drain_with(struct cmd_client *client, mu_coordinator *coordinator,
                      const char *type, int index, mu_error *error)
{
    bool is_limited =
        client->options->values[CMD_FLAG_TIMEOUT_MS].source != CMD_FROM_DEFAULT;
    int64_t timeout_ms =
        is_limited ? (int64_t)cmd_number(client->options, CMD_FLAG_TIMEOUT_MS) : -1;
    int rv = mu_coordinator_drain_task(coordinator, type, index, timeout_ms, error);

    if (rv == 0)
        (void)printf("/job:%s/task:%d has left\n", type, index);
    return cmd_exit_code(rv);
}

int cmd_drain(struct cmd_client *client, mu_error *error)
{
    int64_t timeout_ms = cmd_number(client->options, CMD_FLAG_TIMEOUT_MS);
    mu_coordinator *coordinator;
    char type[TYPE_BYTES];
    int index = 0;
    int rv = read_worker(client->options->operands[0], error, type, &index);

    if (rv != 0)
        return CMD_USAGE;
    rv = mu_coordinator_open(client->node, timeout_ms, error, &coordinator);
    if (rv != 0)
        return cmd_exit_code(rv);
    rv = drain_with(client, coordinator, type, index, error);
    mu_coordinator_close(coordinator);
    return rv;
}
