/* `muster drain`: has the chief let a worker finish what it has, and leave. */
#include "node/cmd.h"
#include "node/cmd_ask.h"
#include "resolver/json.h"
#include "resolver/text.h"

#include "muster/coordinator.h"

#include <stdio.h>
#include <string.h>

/* "worker:1" or "/job:worker/task:1". */
static int read_worker(const char *text, mu_error *error, int *ret_index)
{
    static const char *const heads[] = {"worker:", "/job:worker/task:"};
    char shown[MU__QUOTE_BYTES];

    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (strncmp(text, heads[i], strlen(heads[i])) == 0 &&
            mu__index_parse(text + strlen(heads[i]), ret_index) == 0)
            return 0;
    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID,
                        "%s: expected a worker, as worker:1 or /job:worker/task:1",
                        shown);
}

static int drain_with(struct cmd_ask *ask, mu_coordinator *coordinator, int index,
                      mu_error *error)
{
    bool is_limited = ask->options->values[CMD_FLAG_LIMIT_MS].source != CMD_FROM_DEFAULT;
    int64_t limit_ms = is_limited ? (int64_t)cmd_number(ask->options, CMD_FLAG_LIMIT_MS)
                                  : -1;
    int rv = mu_coordinator_drain(coordinator, index, limit_ms, error);

    if (rv == 0)
        (void)printf("/job:worker/task:%d has left\n", index);
    return cmd_ask_code(rv);
}

static int drain(struct cmd_ask *ask, mu_error *error)
{
    int64_t limit_ms = cmd_number(ask->options, CMD_FLAG_LIMIT_MS);
    mu_coordinator *coordinator;
    int index = 0;
    int rv = read_worker(ask->options->operands[0], error, &index);

    if (rv != 0)
        return CMD_USAGE;
    rv = mu_coordinator_open(ask->node, limit_ms, error, &coordinator);
    if (rv != 0)
        return cmd_ask_code(rv);
    rv = drain_with(ask, coordinator, index, error);
    mu_coordinator_close(coordinator);
    return rv;
}

int cmd_drain(struct cmd_options *options)
{
    return cmd_ask(options, drain);
}
