/* The blocking search: a discovery in a loop of its own, which is run until the cluster
 * is found. */
#include "node/discovery/discover.h"

#include "node/options.h"
#include "resolver/spec/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WITHDRAW_MS = 2000 };

struct search {
    uv_loop_t loop;
    const mu_node_options *options;
    struct mu__discovered *found;
    struct mu__discovery *discovery;
    mu_resolution resolution;
    mu_error error;
    bool has_ended;
    struct mu__discover_stop *stop; /* NULL: no other thread can end it */
    uv_async_t stopped;             /* open with `stop` */
    bool announces; /* guarded by stop->lock: there may be an announcement */
};

static struct search *search_new(const mu_node_options *options,
                                 struct mu__discovered *found)
{
    struct search *search = calloc(1, sizeof *search);

    if (search != NULL)
        *search = (struct search){.options = options, .found = found};
    return search;
}

/* ---- Callbacks of the discovery ---- */

static void name_searching_task(const struct search *search, char *out, size_t size)
{
    const mu_node_options *o = search->options;

    if (o->task_type == NULL)
        (void)snprintf(out, size, "(a task)");
    else if (o->task_index < 0)
        (void)snprintf(out, size, "/job:%s", o->task_type);
    else
        mu__task_name(out, size, o->task_type, o->task_index);
}

static void on_search_log(void *owner, int level, const char *line)
{
    struct search *search = owner;
    const mu_node_options *o = search->options;
    char task[MU_CLUSTER_TASK_BYTES];

    if (level > o->log_level)
        return;
    name_searching_task(search, task, sizeof task);
    (o->log == NULL ? mu__log_text : o->log)(o->log_user, level, task, "resolver", line);
}

static void on_search_closed(void *arg)
{
    (void)arg;
}

static void end_search(struct search *search, bool withdraws)
{
    search->has_ended = true;
    search->found->index = mu__discovery_index(search->discovery);
    mu__discovery_close(search->discovery, withdraws, WITHDRAW_MS, on_search_closed,
                        NULL);
}

static void on_search_found(void *owner, mu_resolution *resolution)
{
    struct search *search = owner;

    search->resolution = *resolution;
    end_search(search, false);
}

static void on_search_failed(void *owner, const mu_error *error)
{
    struct search *search = owner;

    search->error = *error;
    end_search(search, true);
    search->found->address[0] = '\0';
}

static void log_search_warning(struct search *search, const char *line)
{
    if (line != NULL)
        on_search_log(search, MU_LOG_WARN, line);
}

static void set_announces(struct search *search)
{
    if (search->stop == NULL)
        return;
    pthread_mutex_lock(&search->stop->lock);
    search->announces = true;
    pthread_mutex_unlock(&search->stop->lock);
}

/* Without a bind_address, at this machine's own address alone, not at any. */
static int on_search_listen(void *owner, mu_error *ret_error, char *ret_address)
{
    struct search *search = owner;
    const mu_node_options *o = search->options;
    struct mu__discovered *found = search->found;
    char host[MU__OWN_HOST_BYTES];
    char url[MU__OWN_ADDRESS_BYTES];
    int rv;

    if (o->bind_address == NULL) {
        log_search_warning(search, mu__own_host(host));
        (void)snprintf(url, sizeof url,
                       strchr(host, ':') == NULL ? "tcp://%s:0" : "tcp://[%s]:0", host);
    }
    rv = mu__listen(o->bind_address == NULL ? url : o->bind_address, ret_error,
                    &found->listening);
    if (rv != 0)
        return rv;
    set_announces(search);
    log_search_warning(search, mu__advertised(found->listening.text, o->advertise_address,
                                              found->address));
    (void)snprintf(ret_address, MU__OWN_ADDRESS_BYTES, "%s",
                   mu__discovered_announcement(found, o).address);
    return 0;
}

/* ---- Searching ---- */

static void write_incarnation(char *out, size_t size)
{
    uint64_t number[2] = {uv_hrtime(), 0};

    (void)uv_random(NULL, NULL, number, sizeof number, 0, NULL);
    (void)snprintf(out, size, "%016" PRIx64 "%016" PRIx64, number[0], number[1]);
}

mu_announcement mu__discovered_announcement(const struct mu__discovered *found,
                                            const mu_node_options *options)
{
    bool is_tcp = strncmp(found->address, "tcp://", 6) == 0;

    return (mu_announcement){
        .cluster_name = options->cluster_name == NULL ? "" : options->cluster_name,
        .type = options->task_type == NULL ? "" : options->task_type,
        .index = options->task_type == NULL ? -1 : options->task_index,
        .address = found->address + (is_tcp ? 6 : 0),
        .incarnation = found->incarnation,
    };
}

/* ---- Ending it from another thread ---- */

static void on_search_stopped(uv_async_t *stopped)
{
    struct search *search = stopped->data;
    const mu_error error = {.code = -MU_ECANCELLED, .message = "the search was ended"};

    if (!search->has_ended)
        on_search_failed(search, &error);
}

static void attach_stop(struct search *search, struct mu__discover_stop *stop)
{
    if (stop == NULL ||
        uv_async_init(&search->loop, &search->stopped, on_search_stopped) != 0)
        return;
    search->stopped.data = search;
    search->stop = stop;
    pthread_mutex_lock(&stop->lock);
    stop->search = search;
    pthread_mutex_unlock(&stop->lock);
}

static void detach_stop(struct search *search)
{
    if (search->stop == NULL)
        return;
    pthread_mutex_lock(&search->stop->lock);
    search->stop->search = NULL;
    search->stop->has_announced = search->announces;
    pthread_mutex_unlock(&search->stop->lock);
    uv_close((uv_handle_t *)&search->stopped, NULL);
}

bool mu__discover_stop(struct mu__discover_stop *stop)
{
    bool has_announced;

    pthread_mutex_lock(&stop->lock);
    has_announced = stop->search == NULL ? stop->has_announced : stop->search->announces;
    if (has_announced && stop->search != NULL)
        (void)uv_async_send(&stop->search->stopped);
    pthread_mutex_unlock(&stop->lock);
    return has_announced;
}

/* ---- Searching to the end ---- */

/* The discovery may still be withdrawing its announcement, which has a timeout; its
 * threads end at once. */
static void finish_search(struct search *search)
{
    (void)uv_run(&search->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&search->loop);
    free(search);
}

/* Takes `search`. */
static int run_search(struct search *search, struct mu__discover_stop *stop,
                      mu_error *ret_error, mu_resolution *ret_resolution)
{
    const mu_announcement announcement =
        mu__discovered_announcement(search->found, search->options);
    const struct mu__discovery_config config = {
        .loop = &search->loop,
        .resolver = search->options->resolver,
        .announcement = &announcement,
        .timeout_ms = search->options->resolve_ms,
        .found = on_search_found,
        .failed = on_search_failed,
        .listen = on_search_listen,
        .log = on_search_log,
        .owner = search,
    };
    int rv;

    if (uv_loop_init(&search->loop) != 0) {
        free(search);
        return mu_error_set(ret_error, -MU_ENOMEM, "no loop can be made");
    }
    attach_stop(search, stop);
    rv = mu__discovery_open(&config, ret_error, &search->discovery);
    while (rv == 0 && !search->has_ended)
        (void)uv_run(&search->loop, UV_RUN_ONCE);
    detach_stop(search);
    if (rv == 0 && search->error.code != 0) {
        rv = search->error.code;
        if (ret_error != NULL)
            *ret_error = search->error;
    }
    if (rv == 0)
        *ret_resolution = search->resolution;
    finish_search(search);
    return rv;
}

/* The index of a task which is the only one of its type, or the first that joins; -1: it
 * may be several. */
static int get_only_index(const mu_node_options *options)
{
    const char *address;
    const char *type;
    int index;

    if (mu_cluster_task_count(options->cluster, options->task_type) == 0)
        return 0;
    if (mu_cluster_task_count(options->cluster, options->task_type) > 1)
        return -1;
    for (size_t i = 0;
         mu_cluster_task_at(options->cluster, i, &type, &index, &address) == 0; i++)
        if (strcmp(type, options->task_type) == 0)
            return index;
    return -1;
}

/* Type and index of the options win over the resolver's. */
static void take_resolved_task(const mu_resolution *resolution,
                               struct mu__discovered *found, mu_node_options *options)
{
    if (options->task_type == NULL && resolution->task_type[0] != '\0') {
        (void)snprintf(found->type, sizeof found->type, "%s", resolution->task_type);
        options->task_type = found->type;
        options->task_index = resolution->task_index;
    }
    if (options->task_type == NULL)
        return;
    if (options->task_index < 0 && found->index >= 0)
        options->task_index = found->index;
    if (options->task_index < 0 && strcmp(resolution->task_type, options->task_type) == 0)
        options->task_index = resolution->task_index;
    if (options->task_index < 0)
        options->task_index = get_only_index(options);
}

static int take_discovered_resolution(const mu_resolution *resolution,
                                      struct mu__discovered *found,
                                      mu_node_options *options, mu_error *ret_error)
{
    found->resolution = *resolution;
    found->resolution.cluster = NULL;
    found->cluster = resolution->cluster;
    if (found->cluster == NULL)
        found->cluster = mu_cluster_new();
    if (found->cluster == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a cluster");
    (void)snprintf(found->bind_address, sizeof found->bind_address, "%s",
                   resolution->bind_address);
    (void)snprintf(found->visible_devices, sizeof found->visible_devices, "%s",
                   resolution->visible_devices);
    if (options->bind_address == NULL && found->bind_address[0] != '\0')
        options->bind_address = found->bind_address;
    if (found->address[0] != '\0')
        options->advertise_address = found->address;
    options->cluster = found->cluster;
    mu__options_name_cluster(options, found->resolution.cluster_name);
    take_resolved_task(resolution, found, options);
    return 0;
}

/* Resolvers whose keys have a cluster's name use the node's. */
static void set_cluster_name(const mu_node_options *options)
{
    if (options->cluster_name == NULL)
        return;
    (void)mu_resolver_set(options->resolver, "cluster_name", options->cluster_name, NULL);
    (void)mu_resolver_set(options->resolver, "etcd.cluster_name", options->cluster_name,
                          NULL);
}

int mu__discover_any(mu_node_options *options, struct mu__discover_stop *stop,
                     mu_error *ret_error, struct mu__discovered *ret_found)
{
    struct search *search;
    mu_resolution resolution;
    int rv;

    *ret_found = (struct mu__discovered){.index = -1, .listening.fd = -1};
    if (options->resolver == NULL || options->cluster != NULL)
        return 0;
    set_cluster_name(options);
    write_incarnation(ret_found->incarnation, sizeof ret_found->incarnation);
    search = search_new(options, ret_found);
    if (search == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to ask the resolver");
    rv = run_search(search, stop, ret_error, &resolution);
    return rv != 0
               ? rv
               : take_discovered_resolution(&resolution, ret_found, options, ret_error);
}

static void withdraw_discovered(struct mu__discovered *found,
                                const mu_node_options *options)
{
    const mu_announcement announcement = mu__discovered_announcement(found, options);
    struct search *search = search_new(options, found);
    const struct mu__discovery_config config = {
        .resolver = options->resolver,
        .announcement = &announcement,
        .is_known = true,
        .log = on_search_log,
        .owner = search,
        .loop = search == NULL ? NULL : &search->loop,
    };

    if (search == NULL || uv_loop_init(&search->loop) != 0) {
        free(search);
        return;
    }
    if (mu__discovery_open(&config, NULL, &search->discovery) == 0)
        end_search(search, true);
    finish_search(search);
}

int mu__discover(mu_node_options *options, struct mu__discover_stop *stop,
                 mu_error *ret_error, struct mu__discovered *ret_found)
{
    int rv = mu__discover_any(options, stop, ret_error, ret_found);

    if (rv != 0 || ret_found->cluster == NULL)
        return rv;
    if (options->task_type == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "resolver %s does not say which task this process is; "
                            "expected task_type and task_index in the options or in the "
                            "resolver",
                            ret_found->resolution.source);
    if (options->task_index < 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "resolver %s does not say which %s this process is, of %zu; "
                            "expected task_index in the options or in the resolver",
                            ret_found->resolution.source, options->task_type,
                            mu_cluster_task_count(options->cluster, options->task_type));
    return 0;
}

void mu__discovered_done(struct mu__discovered *found, const mu_node_options *options,
                         bool withdraws)
{
    if (withdraws && found->address[0] != '\0')
        withdraw_discovered(found, options);
    mu__listening_close(&found->listening);
    mu_cluster_free(found->cluster);
    found->cluster = NULL;
}
