/* `muster resolve --watch`: polls the source, and at once when a watched file or
 * directory changes, and prints the changes. */
#include "cli/resolve/resolve.h"

#include "cli/output/print_json.h"
#include "cli/verbs.h"
#include "node/discovery/path_watch.h"
#include "resolver/engine/resolver.h"

#include <stdio.h>
#include <string.h>

enum {
    DEFAULT_MS = 5000,    /* polling interval, unless the resolver has one */
    SETTLE_MS = 50,     /* delay after a change, since more may follow */
    BETWEEN_MS = 250    /* least interval between two polls */
};

/* Waits for the next poll: for the interval, or a change of a watched path. */
struct pause {
    uv_loop_t loop;
    uv_timer_t timer;
    struct mu__path_watch watches[MU__WATCHED_PATHS_MAX];
    uint64_t looked_ms;
};

static void on_time(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

/* Poll soon, and no later than without the change. */
static void on_change(void *owner)
{
    struct pause *pause = owner;
    uint64_t now = uv_now(&pause->loop);
    uint64_t ms = SETTLE_MS;

    if (now + ms < pause->looked_ms + BETWEEN_MS)
        ms = pause->looked_ms + BETWEEN_MS - now;
    if (ms < uv_timer_get_due_in(&pause->timer))
        (void)uv_timer_start(&pause->timer, on_time, ms, 0);
}

static int open_pause(struct pause *pause)
{
    if (uv_loop_init(&pause->loop) != 0)
        return -MU_ENOMEM;
    (void)uv_timer_init(&pause->loop, &pause->timer);
    for (size_t i = 0; i < MU__WATCHED_PATHS_MAX; i++)
        mu__path_watch_init(&pause->watches[i], &pause->loop, on_change, pause);
    return 0;
}

static void close_pause(struct pause *pause)
{
    uv_close((uv_handle_t *)&pause->timer, NULL);
    for (size_t i = 0; i < MU__WATCHED_PATHS_MAX; i++)
        uv_close((uv_handle_t *)&pause->watches[i].event, NULL);
    (void)uv_run(&pause->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&pause->loop);
}

static void watch(struct pause *pause, const struct resolve *resolve)
{
    const char *path;
    size_t count = 0;

    for (; (path = mu__resolver_watched_path(resolve->resolver, count)) != NULL; count++)
        mu__path_watch_start(&pause->watches[count], path);
    for (size_t i = count; i < MU__WATCHED_PATHS_MAX; i++)
        mu__path_watch_stop(&pause->watches[i]);
}

static void wait(struct pause *pause, const struct resolve *resolve)
{
    uint32_t step_ms = mu__resolver_watch_ms(resolve->resolver);

    uv_update_time(&pause->loop);
    pause->looked_ms = uv_now(&pause->loop);
    (void)uv_timer_start(&pause->timer, on_time, step_ms == 0 ? DEFAULT_MS : step_ms, 0);
    (void)uv_run(&pause->loop, UV_RUN_DEFAULT);
    watch(pause, resolve);
}

static int print_event(const struct resolve *resolve, const char *event,
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
            rv = print_event(resolve, event, type, index, address);
        else if (moved != NULL && strcmp(there, address) != 0)
            rv = print_event(resolve, moved, type, index, address);
    }
    return rv;
}

static int print_task(const struct resolve *resolve, const mu_resolution *before)
{
    const mu_resolution *found = &resolve->found;
    const char *address = mu_cluster_address(found->cluster, found->task_type,
                                             found->task_index);

    if (strcmp(before->task_type, found->task_type) == 0 &&
        before->task_index == found->task_index)
        return 0;
    return print_event(resolve, "this task is", found->task_type, found->task_index,
                       address == NULL ? "no address" : address);
}

static int print_changes(const struct resolve *resolve, const mu_resolution *before)
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
        rv = print_task(resolve, before);
    return rv;
}

/* Print an error on standard error, unless it is the same as the last one. */
static void say_once(const mu_error *error, char *said, size_t size)
{
    if (strcmp(said, error->message) == 0)
        return;
    (void)snprintf(said, size, "%s", error->message);
    (void)fprintf(stderr, "muster resolve: %s\n", error->message);
}

int resolve_watch(struct resolve *resolve)
{
    char said[sizeof(((mu_error *)0)->message)] = "";
    struct pause pause;
    int rv = open_pause(&pause);

    if (rv != 0)
        return CMD_FAILED;
    watch(&pause, resolve);
    while (rv == 0 && fflush(stdout) == 0) {
        mu_resolution before = resolve->found;
        mu_error error;

        wait(&pause, resolve);
        mu_resolution_init(&resolve->found);
        if (resolve_find(resolve, &error) != 0) {
            say_once(&error, said, sizeof said);
            resolve->found = before;
            continue;
        }
        said[0] = '\0';
        rv = print_changes(resolve, &before);
        mu_cluster_free(before.cluster);
    }
    close_pause(&pause);
    return CMD_FAILED;
}
