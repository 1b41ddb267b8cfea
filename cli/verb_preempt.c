/* `muster preempt`: gives a preemption notice, by which all tasks agree on a step to stop
 * at. */
#include "cli/output/print_json.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>

static int print_agreed(const struct cmd_client *client, const mu_preemption *preemption)
{
    cJSON *map;

    if (!cmd_is_json(client)) {
        if (preemption->step == 0)
            (void)printf("every task knows; none of them counts steps\n");
        else
            (void)printf("the tasks stop at step %" PRIu64 "\n", preemption->step);
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "reason", preemption->reason);
    cmd_json_add_int(map, "left_ms", preemption->left_ms);
    cmd_json_add_int(map, "step", (int64_t)preemption->step);
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

/* Wait for the round of this notice. It is the latest one once the notice is answered,
 * unless the grace period is so long that the round has not begun: then it is the next
 * one. */
static int wait_round(struct cmd_client *client, int64_t grace_ms, mu_error *error,
                      mu_preemption *ret_preemption)
{
    mu_preemption last = {.round = 0};

    if (grace_ms > MU_PREEMPTION_EARLY_MS)
        (void)mu_preemption_wait(client->node, 0, 0, 0, NULL, &last);
    return mu_preemption_wait(client->node, last.round, 1, cmd_timeout_ms(client), error,
                              ret_preemption);
}

/* Whether the tasks agree after this verb's timeout, so that it does not wait for
 * that. */
static bool agrees_later(const struct cmd_client *client, int64_t grace_ms)
{
    return grace_ms - MU_PREEMPTION_EARLY_MS >= cmd_timeout_ms(client);
}

static int print_later(const struct cmd_client *client, int64_t grace_ms)
{
    int64_t wait_ms = grace_ms - MU_PREEMPTION_EARLY_MS;
    cJSON *map;

    if (!cmd_is_json(client)) {
        (void)printf("the notice was taken; the tasks agree on a step to stop at in "
                     "%" PRId64 " s, 15 minutes before the end\n",
                     wait_ms / 1000);
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "reason", client->options->operands[0]);
    cmd_json_add_int(map, "left_ms", grace_ms);
    cmd_json_add_int(map, "agrees_in_ms", wait_ms);
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

int cmd_preempt(struct cmd_client *client, mu_error *error)
{
    int64_t grace_ms = (int64_t)cmd_number(client->options, CMD_FLAG_GRACE_MS);
    mu_preemption preemption;
    int rv = mu_preemption_notify(client->node, client->options->operands[0], grace_ms,
                                  cmd_timeout_ms(client), error);

    if (rv == 0 && agrees_later(client, grace_ms))
        return print_later(client, grace_ms);
    if (rv == 0)
        rv = wait_round(client, grace_ms, error, &preemption);
    return rv == 0 ? print_agreed(client, &preemption) : cmd_exit_code(rv);
}
