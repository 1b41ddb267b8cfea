/* `muster task report` and `muster task reset`: put another task into the error state,
 * and reset it. */
#include "cli/output/print_json.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include "muster/coordination.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Parse a code: "EABORTED" or "ABORTED" in any case, or its number. */
static int read_code(const char *text, mu_error *error, int *ret_code)
{
    static const struct {
        const char *name;
        int code;
    } codes[] = {
#define CODE(name, number, words) {#name, number},
        MU_ERRORS(CODE)
#undef CODE
    };
    char *end;
    long number = strtol(text, &end, 10);
    bool is_number = text[0] != '\0' && *end == '\0';

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (is_number ? codes[i].code == number
                      : strcasecmp(text, codes[i].name) == 0 ||
                            strcasecmp(text, codes[i].name + 1) == 0) {
            *ret_code = codes[i].code;
            return 0;
        }
    return mu_error_set(error, -MU_EINVALID,
                        "--code: expected the name of a code, as ABORTED or DATALOSS, or "
                        "its number, got \"%.100s\"",
                        text);
}

static int get_task_exit_code(int rv)
{
    return rv == -MU_EINVALID || rv == -MU_ERANGE ? CMD_USAGE : cmd_exit_code(rv);
}

static int print_task_state(const struct cmd_client *client, const char *what)
{
    const char *task = client->options->operands[0];
    cJSON *map;

    if (!cmd_is_json(client)) {
        (void)printf("%s %s\n", task, what);
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "task", task);
    (void)cJSON_AddStringToObject(map, "state", what + strlen("is "));
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

int cmd_task_report(struct cmd_client *client, mu_error *error)
{
    const char *message = client->options->operands[1];
    int code = 0;
    int rv = read_code(cmd_text(client->options, CMD_FLAG_CODE), error, &code);

    if (rv == 0)
        rv = mu_tasks_report_error(client->node, client->options->operands[0], -code,
                                   message == NULL ? "" : message, cmd_timeout_ms(client),
                                   error);
    return rv == 0 ? print_task_state(client, "is error") : get_task_exit_code(rv);
}

int cmd_task_reset(struct cmd_client *client, mu_error *error)
{
    int rv = mu_tasks_reset(client->node, client->options->operands[0],
                            cmd_timeout_ms(client), error);

    return rv == 0 ? print_task_state(client, "is reset") : get_task_exit_code(rv);
}
