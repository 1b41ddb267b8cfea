/* `muster kv watch`: prints a line for each change. */
#include "cli/keys/kv_condition.h"
#include "cli/output/print_json.h"
#include "cli/service_client.h"
#include "cli/verbs.h"
#include "runtime/base/text.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const event_names[] = {"put", "deleted", "synced"};

static void print_event_text(const mu_kv_event *event)
{
    char shown[MU__QUOTE_BYTES];

    (void)printf("%s", event_names[event->type]);
    if (event->type != MU_KV_EVENT_SYNCED)
        (void)printf(" %s", event->key);
    if (event->type == MU_KV_EVENT_PUT) {
        mu__quote(shown, sizeof shown, event->item.value, event->item.size);
        (void)printf(" %" PRIu64 " %s", event->item.revision, shown);
    }
    (void)printf("\n");
}

static int print_event_json(const mu_kv_event *event)
{
    cJSON *map = cJSON_CreateObject();

    (void)cJSON_AddStringToObject(map, "event", event_names[event->type]);
    if (event->type != MU_KV_EVENT_SYNCED)
        cmd_json_add_text(map, "key", event->key);
    if (event->type == MU_KV_EVENT_PUT) {
        cmd_json_add_value(map, event->item.value, event->item.size);
        cmd_json_add_int(map, "revision", (int64_t)event->item.revision);
    }
    return cmd_json_line(map);
}

/* Print an event and flush, so that the reader of a pipe gets it at once. A closed pipe
 * ends the verb. */
static int print_kv_event(const struct cmd_client *client, const mu_kv_event *event)
{
    int rv = 0;

    if (cmd_is_json(client))
        rv = print_event_json(event);
    else
        print_event_text(event);
    return rv != 0 || fflush(stdout) != 0 ? -MU_ECANCELLED : 0;
}

static int next_kv_event(mu_kv_watch *watch, int64_t until_ms, mu_error *error,
                         mu_kv_event *ret_event)
{
    int64_t left_ms = until_ms < 0 ? -1 : until_ms - (int64_t)cmd_now_ms();

    return mu_kv_watch_next(watch, until_ms >= 0 && left_ms < 0 ? 0 : left_ms, error,
                            ret_event);
}

/* Print events until --count changes were printed, not counting the initial content. */
static int follow_kv_watch(const struct cmd_client *client, mu_kv_watch *watch,
                           mu_error *error)
{
    unsigned count_max = cmd_number(client->options, CMD_FLAG_COUNT);
    int64_t patience_ms = cmd_wait_timeout_ms(client);
    int64_t until_ms = patience_ms < 0 ? -1 : (int64_t)cmd_now_ms() + patience_ms;
    bool is_current = false;
    unsigned count = 0;

    while (count_max == 0 || count < count_max) {
        mu_kv_event event;
        int rv = next_kv_event(watch, until_ms, error, &event);

        if (rv == -MU_EEXHAUSTED) {
            is_current = false;
            continue;
        }
        if (rv != 0)
            return rv;
        rv = print_kv_event(client, &event);
        count += is_current;
        is_current = is_current || event.type == MU_KV_EVENT_SYNCED;
        mu_kv_event_clear(&event);
        if (rv != 0)
            return mu_error_set(error, rv, "standard output cannot be written");
    }
    return 0;
}

int cmd_kv_watch(struct cmd_client *client, mu_error *error)
{
    mu_kv_watch *watch;
    int rv = mu_kv_watch_open(client->node, client->options->operands[0],
                              cmd_kv_is_directory(client), cmd_timeout_ms(client), error,
                              &watch);

    if (rv != 0)
        return cmd_kv_code(rv);
    rv = follow_kv_watch(client, watch, error);
    mu_kv_watch_close(watch);
    return cmd_exit_code(rv);
}
