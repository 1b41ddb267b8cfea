/* `muster resolve --watch`: polls the source, and at once when a watched file or
 * directory changes, and prints the changes. */
#include "cli/resolve/resolve.h"

#include "cli/output/print_json.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

static int print_task_event(const struct resolve *resolve, const char *event,
                            const char *type, int index, const char *address)
{
    cJSON *map;

    if (cmd_number(resolve->options, CMD_FLAG_RESOLVE_OUTPUT) == RESOLVE_TEXT)
        return printf("%s /job:%s/task:%d at %s\n", event, type, index, address) < 0;
    map = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(map, "event", event);
    (void)cJSON_AddStringToObject(map, "type", type);
    cmd_json_add_int(map, "index", index);
    cmd_json_add_text(map, "address", address);
    return cmd_json_line(map);
}

/* Print the tasks of `one` that `other` does not have, or has at another address. */
static int print_those_of(const struct resolve *resolve, const mu_cluster *one,
                          const mu_cluster *other, const char *event, const char *moved)
{
    const char *type;
    const char *address;
    int index;
    int rv = 0;

    for (size_t i = 0;
         rv == 0 && mu_cluster_task_at(one, i, &type, &index, &address) == 0; i++) {
        const char *there = mu_cluster_address(other, type, index);

        if (there == NULL)
            rv = print_task_event(resolve, event, type, index, address);
        else if (moved != NULL && strcmp(there, address) != 0)
            rv = print_task_event(resolve, moved, type, index, address);
    }
    return rv;
}

static int print_own_task(const struct resolve *resolve, const mu_resolution *before)
{
    const mu_resolution *found = &resolve->found;
    const char *address =
        mu_cluster_address(found->cluster, found->task_type, found->task_index);

    if (strcmp(before->task_type, found->task_type) == 0 &&
        before->task_index == found->task_index)
        return 0;
    return print_task_event(resolve, "this task is", found->task_type, found->task_index,
                            address == NULL ? "no address" : address);
}

static int print_cluster_changes(const struct resolve *resolve,
                                 const mu_resolution *before)
{
    const mu_cluster *cluster = resolve->found.cluster;
    int rv;

    if (cmd_number(resolve->options, CMD_FLAG_RESOLVE_OUTPUT) == RESOLVE_TF_CONFIG)
        return mu_cluster_equal(cluster, before->cluster)
                   ? 0
                   : resolve_print_tf_config(resolve);
    rv = print_those_of(resolve, before->cluster, cluster, "gone", NULL);
    if (rv == 0)
        rv = print_those_of(resolve, cluster, before->cluster, "new", "moved");
    if (rv == 0)
        rv = print_own_task(resolve, before);
    return rv;
}

/* Print an error on standard error, unless it is the same as the last one. */
static void print_error_once(const mu_error *error, char *said, size_t size)
{
    if (strcmp(said, error->message) == 0)
        return;
    (void)snprintf(said, size, "%s", error->message);
    (void)fprintf(stderr, "muster resolve: %s\n", error->message);
}

int resolve_watch(struct resolve *resolve)
{
    char said[sizeof(((mu_error *)0)->message)] = "";
    mu_resolver_watch *watch;
    mu_error error;
    int rv = mu_resolver_watch_open(resolve->resolver, &error, &watch);

    if (rv != 0)
        return CMD_FAILED;
    while (rv == 0 && fflush(stdout) == 0) {
        mu_resolution before = resolve->found;

        (void)mu_resolver_watch_wait(watch, NULL);
        mu_resolution_init(&resolve->found);
        if (resolve_find(resolve, &error) != 0) {
            print_error_once(&error, said, sizeof said);
            resolve->found = before;
            continue;
        }
        said[0] = '\0';
        rv = print_cluster_changes(resolve, &before);
        mu_cluster_free(before.cluster);
    }
    mu_resolver_watch_close(watch);
    return CMD_FAILED;
}
