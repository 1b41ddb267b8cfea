#include "cli/output/print_json.h"
#include "cli/run/processes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MAX_MS = 3600000, KILL_DEFAULT_MS = 3000 };

/* Errors are ignored: a parent that has ended has also closed standard input. */
void cmd_event_send(const char *kind, const char *task, const char *name, cJSON *item,
                    const char *second_name, cJSON *second)
{
    cJSON *event = cJSON_CreateObject();

    cmd_json_add_text(event, "event", kind);
    cmd_json_add_text(event, "task", task);
    (void)cJSON_AddItemToObject(event, name, item);
    if (second != NULL)
        (void)cJSON_AddItemToObject(event, second_name, second);
    (void)cmd_json_line(event);
    (void)fflush(stdout);
}

/* A member that may be absent. */
static bool read_wait_ms(const cJSON *map, const char *name, unsigned *ret_ms)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(map, name);

    if (cJSON_IsNumber(item) && item->valuedouble >= 0 &&
        item->valuedouble <= WAIT_MAX_MS)
        *ret_ms = (unsigned)item->valuedouble;
    else if (item != NULL)
        return false;
    return true;
}

static void read_command(const struct cmd_commands *commands, const char *line)
{
    cJSON *map = cJSON_ParseWithOpts(line, NULL, true);
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(map, "command");
    unsigned kill_ms = KILL_DEFAULT_MS;
    unsigned leave_ms = 0;
    const char *expected = NULL;

    if (!cJSON_IsString(name) || strcmp(name->valuestring, "stop") != 0)
        expected = "expected {\"command\": \"stop\"}";
    else if (!read_wait_ms(map, "leave_ms", &leave_ms))
        expected = "leave_ms: expected 0 to 3600000";
    else if (!read_wait_ms(map, "kill_ms", &kill_ms))
        expected = "kill_ms: expected 0 to 3600000";
    cJSON_Delete(map);
    if (expected == NULL)
        commands->on_stop(commands->user, leave_ms, kill_ms);
    else
        cmd_event_send("refused", NULL, "line", cmd_json_text(line, strlen(line)),
                       "message", cJSON_CreateString(expected));
}

bool cmd_commands_read(struct cmd_commands *commands)
{
    char bytes[CMD_COMMAND_BYTES];
    ssize_t size = read(commands->fd, bytes, sizeof bytes);

    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        commands->fd = -1;
    for (ssize_t i = 0; i < size; i++) {
        bool is_end = bytes[i] == '\n';

        commands->line[commands->used] = is_end ? '\0' : bytes[i];
        if (is_end)
            read_command(commands, commands->line);
        commands->used += commands->used + 1 < sizeof bytes;
        if (is_end)
            commands->used = 0;
    }
    return commands->fd >= 0;
}
