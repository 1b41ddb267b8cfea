/* `muster drain`: has a worker finish its closures and leave. */
#include "cli/chief_client.h"
#include "cli/resolve/cluster_flags.h"
#include "cli/verbs.h"
#include "runtime/base/text.h"

#include "muster/coordinator.h"

#include <stdio.h>
#include <string.h>

static int read_worker(const char *text, mu_error *error, char type[CMD_TYPE_BYTES],
                       int *ret_index)
{
    char shown[MU__QUOTE_BYTES];

    if (cmd_task_parse(text, type, ret_index) && cmd_is_worker_type(type))
        return 0;
    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID,
                        "%s: expected a worker, as worker:1 or /job:worker/task:1",
                        shown);
}

int cmd_drain(struct cmd_client *client, mu_error *error)
{
    mu_coordinator *coordinator;
    char type[CMD_TYPE_BYTES];
    int index = 0;
    int rv = read_worker(client->options->operands[0], error, type, &index);

    if (rv != 0)
        return CMD_USAGE;
    rv = mu_coordinator_open(client->node, cmd_timeout_ms(client), error, &coordinator);
    if (rv != 0)
        return cmd_exit_code(rv);
    rv = mu_coordinator_drain_task(coordinator, type, index, cmd_wait_timeout_ms(client),
                                   error);
    if (rv == 0)
        (void)printf("/job:%s/task:%d has left\n", type, index);
    mu_coordinator_close(coordinator);
    return cmd_exit_code(rv);
}
