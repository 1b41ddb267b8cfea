/* `muster drain`: has a worker finish its closures and leave, or a parameter server give
 * away all that it has. */
#include "cli/chief_client.h"
#include "cli/resolve/cluster_flags.h"
#include "cli/verbs.h"
#include "runtime/base/text.h"

#include "muster/coordinator.h"

#include <stdio.h>
#include <string.h>

static bool is_server(const char *type)
{
    return strcmp(type, "ps") == 0;
}

static int read_drained(const char *text, mu_error *error, char type[CMD_TYPE_BYTES],
                        int *ret_index)
{
    char shown[MU__QUOTE_BYTES];

    if (cmd_task_parse(text, type, ret_index) &&
        (cmd_is_worker_type(type) || is_server(type)))
        return 0;
    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID,
                        "%s: expected a worker or a parameter server, as worker:1 or "
                        "/job:ps/task:1",
                        shown);
}

int cmd_drain(struct cmd_client *client, mu_error *error)
{
    mu_coordinator *coordinator;
    char type[CMD_TYPE_BYTES];
    int index = 0;
    int rv = read_drained(client->options->operands[0], error, type, &index);

    if (rv != 0)
        return CMD_USAGE;
    rv = mu_coordinator_open(client->node, cmd_timeout_ms(client), error, &coordinator);
    if (rv != 0)
        return cmd_exit_code(rv);
    rv = mu_coordinator_drain_task(coordinator, type, index, cmd_wait_timeout_ms(client),
                                   error);
    if (rv == 0)
        (void)printf("/job:%s/task:%d %s\n", type, index,
                     is_server(type) ? "may be stopped: nothing is lost with it"
                                     : "has left");
    mu_coordinator_close(coordinator);
    return cmd_exit_code(rv);
}
