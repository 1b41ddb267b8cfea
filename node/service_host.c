#include "node/service_host.h"

#include "actors/coordination/store/etcd_store.h"
#include "actors/coordination/store/journal.h"
#include "actors/coordination/store/store_run.h"
#include "actors/messages.h"
#include "node/devices.h"
#include "runtime/uv/file_storage.h"

#include <stdlib.h>
#include <string.h>

/* Which stores a node knows, by name. */
static const struct mu__store_kind *const store_kinds[] = {
    &mu__store_memory,
    &mu__store_journal,
    &mu__store_etcd,
    NULL,
};

static int check_times(const mu_node_options *o, mu_error *error)
{
    if (o->suspect_ms < o->dead_ms)
        return 0;
    return mu_error_set(error, -MU_EINVALID,
                        "option suspect_ms is %u, expected less than dead_ms, which is "
                        "%u",
                        o->suspect_ms, o->dead_ms);
}

static int find_store(struct mu__service_host *host, const mu_node_options *o,
                      mu_error *error)
{
    size_t count = mu__service_hosts_count(host->hosts);
    mu_error inner;
    int rv;

    host->store = strdup(o->store == NULL ? "memory" : o->store);
    if (host->store == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    rv = mu__store_find(store_kinds, host->store, &inner, &host->kind,
                        &host->store_location);
    if (rv != 0)
        return mu_error_set(error, rv, "option store: %s", inner.message);
    if (!host->is_host || host->kind->shared || count < 2)
        return 0;
    return mu_error_set(error, -MU_EINVALID,
                        "option store is \"%.80s\", which only one host can have, and "
                        "service_hosts has %zu: expected one host, or a store that "
                        "several may share",
                        host->store, count);
}

/* Read on hosts alone: elsewhere the variables may be meant for the resolver etcd. */
static int read_access(struct mu__service_host *host, mu_error *error)
{
    mu_error inner;
    int rv;

    if (!host->is_host || !host->kind->shared)
        return 0;
    rv = mu__etcd_access_read(&host->access,
                              strstr(host->store_location, "https://") != NULL, &inner);
    return rv == 0 ? 0 : mu_error_set(error, rv, "option store: %s", inner.message);
}

static int check_run(const mu_node_options *o, mu_error *error)
{
    mu_error inner;

    if (o->run == NULL || mu__store_run_check_name(o->run, &inner) == 0)
        return 0;
    return mu_error_set(error, -MU_EINVALID, "option run: %s", inner.message);
}

static int read_texts(struct mu__service_host *host, const mu_node_options *o,
                      mu_error *error)
{
    int rv = mu__service_hosts(o->cluster, o->service_hosts, error, &host->hosts);

    if (rv == 0)
        rv = check_run(o, error);
    if (rv == 0)
        rv = mu__service_tasks(o->cluster,
                               o->coordinated_jobs == NULL ? MU__COORDINATED_JOBS
                                                           : o->coordinated_jobs,
                               error, &host->tasks);
    if (rv == 0)
        rv = mu__service_recoverable(o->recoverable == NULL ? "all" : o->recoverable,
                                     error, host->recoverable);
    if (rv != 0)
        return rv;
    host->is_host = mu__service_is_host(host->hosts, o->task_type, o->task_index);
    host->sync = o->store_sync != 0;
    rv = find_store(host, o, error);
    return rv == 0 ? read_access(host, error) : rv;
}

int mu__service_host_init(struct mu__service_host *host, const mu_node_options *options,
                          mu_error *ret_error)
{
    int rv = check_times(options, ret_error);

    *host = (struct mu__service_host){0};
    if (rv == 0)
        rv = read_texts(host, options, ret_error);
    if (rv == 0 && host->hosts[0] != '\0') {
        host->devices = mu__devices_read("");
        if (host->devices == NULL)
            rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    if (rv != 0)
        mu__service_host_done(host);
    return rv;
}

void mu__service_host_done(struct mu__service_host *host)
{
    free(host->hosts);
    free(host->tasks);
    free(host->store);
    mu__etcd_access_done(&host->access);
    mu_value_free(host->devices);
    *host = (struct mu__service_host){0};
}

/* Beside the journal. */
static int open_kept_file(struct mu__service_host *host, mu_error *ret_error)
{
    static const char suffix[] = ".kept";
    size_t size = strlen(host->store_location);
    char *path = malloc(size + sizeof suffix);
    int rv;

    if (path == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    memcpy(path, host->store_location, size);
    memcpy(path + size, suffix, sizeof suffix);
    rv = mu__storage_uv_open(path, host->sync, ret_error, &host->kept);
    free(path);
    return rv == 0 ? mu__journal_verify(host->kept, MU__JOURNAL_OF_KEEPER, UINT64_MAX,
                                        ret_error)
                   : rv;
}

int mu__service_host_open_file(struct mu__service_host *host, mu_error *ret_error)
{
    int rv;

    if (!host->is_host || host->kind != &mu__store_journal)
        return 0;
    rv = mu__storage_uv_open(host->store_location, host->sync, ret_error, &host->storage);
    if (rv == 0)
        rv = mu__journal_verify(host->storage, MU__JOURNAL_OF_STORE, UINT64_MAX,
                                ret_error);
    if (rv == 0)
        rv = open_kept_file(host, ret_error);
    if (rv != 0)
        mu__service_host_close_file(host);
    return rv;
}

void mu__service_host_close_file(struct mu__service_host *host)
{
    mu__storage_uv_close(host->storage);
    mu__storage_uv_close(host->kept);
    host->storage = host->kept = NULL;
}

int mu__service_host_open_http(struct mu__service_host *host, uv_loop_t *loop,
                               int (*post)(void *owner, struct mu__msg *msg), void *owner,
                               mu_error *ret_error)
{
    const struct mu__http_client_config config = {
        .loop = loop,
        .done_kind = MU__HTTP_DONE,
        .post = post,
        .owner = owner,
    };
    mu_error inner;
    int rv;

    if (!host->is_host || !host->kind->shared)
        return 0;
    rv = mu__http_client_open(&config, &inner, &host->http);
    return rv == 0
               ? 0
               : mu_error_set(ret_error, rv, "no HTTP for the store: %s", inner.message);
}

bool mu__service_host_close_http(struct mu__service_host *host, void (*closed)(void *arg),
                                 void *arg)
{
    struct mu__http_client *http = host->http;

    host->http = NULL;
    if (http == NULL)
        return false;
    mu__http_client_close(http, closed, arg);
    return true;
}

static uint64_t get_wall_ms(void)
{
    uv_timeval64_t now = {0};

    (void)uv_gettimeofday(&now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

void mu__service_host_config(const struct mu__service_host *host,
                             const mu_node_options *options,
                             struct mu__member_config *config)
{
    config->hosts = host->hosts;
    config->devices = host->devices;
    config->coordination = (struct mu__coordination_config){
        .store = host->kind,
        .store_location = host->store_location,
        .storage = host->storage,
        .kept = host->kept,
        .http = host->http == NULL ? NULL : mu__http_client_door(host->http),
        .access = &host->access,
        .tasks = host->tasks,
        .recoverable = host->recoverable,
        .suspect_ms = options->suspect_ms,
        .dead_ms = options->dead_ms,
        .reconnect_ms = options->reconnect_ms,
        .stuck_ms = options->stuck_ms,
        .leave_ms = options->leave_ms,
        .lease_ms = options->lease_ms,
        .wall_ms = get_wall_ms,
    };
}
