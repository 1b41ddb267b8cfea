/* `muster explain`: prints what the chief knows about one closure, as sentences or
 * JSON. */
#include "cli/chief_client.h"
#include "cli/output/print_json.h"
#include "cli/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Parse a decimal number; 0 when `text` is not one. */
static uint64_t parse_closure_number(const char *text)
{
    unsigned long long number;
    char *end;

    errno = 0;
    number = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 ? number : 0;
}

/* Find the closure by its id, else by its name, which may consist of digits, too. */
static int find_closure(struct cmd_client *client, mu_error *error,
                        mu_value **ret_reasons)
{
    int64_t timeout_ms = cmd_timeout_ms(client);
    const char *text = client->options->operands[0];
    uint64_t number = parse_closure_number(text);
    int rv = -MU_ENOTFOUND;

    if (number != 0)
        rv = mu_node_explain(client->node, number, NULL, timeout_ms, error, ret_reasons);
    if (rv != -MU_ENOTFOUND)
        return rv;
    rv = mu_node_explain(client->node, 0, text, timeout_ms, error, ret_reasons);
    if (rv != -MU_ENOTFOUND)
        return rv;
    return mu_error_set(error, rv,
                        "the chief at %s knows no closure with the number or name %s: "
                        "it is resolved, or was never scheduled there",
                        client->address, text);
}

static void print_closure_state(const mu_value *reasons)
{
    const char *name = cmd_map_text(reasons, "name");
    const char *task = cmd_map_text(reasons, "task");
    int64_t number = cmd_map_number(reasons, "closure");
    char duration[32];

    (void)printf("Closure");
    if (number != 0)
        (void)printf(" %" PRId64, number);
    if (name[0] != '\0')
        (void)printf(" \"%s\"", name);
    (void)printf(", function \"%s\", is %s", cmd_map_text(reasons, "function"),
                 cmd_map_text(reasons, "state"));
    if (task[0] != '\0')
        (void)printf(" on %s for %s", task,
                     cmd_duration(cmd_map_number(reasons, "for_ms"), duration,
                                  sizeof duration));
    (void)printf(".\n");
}

static void print_past(const mu_value *reasons)
{
    int64_t attempts = cmd_map_number(reasons, "attempt");
    int64_t crashes = cmd_map_number(reasons, "crashes");
    const char *last = cmd_map_text(reasons, "last_error");
    const char *backup = cmd_map_text(reasons, "backup_task");

    if (attempts == 0)
        (void)printf("It was not given to a worker yet.\n");
    else if (attempts > 1)
        (void)printf("It was given to workers %" PRId64 " times.\n", attempts);
    if (crashes == 1)
        (void)printf("1 worker was lost while it ran there.\n");
    else if (crashes > 1)
        (void)printf("%" PRId64 " workers were lost while it ran there.\n", crashes);
    if (last[0] != '\0')
        (void)printf("Its last run ended with: %s.\n", last);
    if (backup[0] != '\0')
        (void)printf("It takes long, so %s runs it, too.\n", backup);
}

int cmd_explain(struct cmd_client *client, mu_error *error)
{
    mu_value *reasons = NULL;
    int rv = find_closure(client, error, &reasons);

    if (rv != 0)
        return rv == -MU_EINVALID ? CMD_USAGE : cmd_exit_code(rv);
    if (cmd_is_json(client)) {
        rv = cmd_json_print(cmd_json_value(reasons));
    } else {
        print_closure_state(reasons);
        if (cmd_map_number(reasons, "closure") != 0)
            print_past(reasons);
        (void)printf("It waits %s.\n", cmd_map_text(reasons, "waits_for"));
    }
    mu_value_free(reasons);
    return rv == 0 ? CMD_FINE : CMD_FAILED;
}
