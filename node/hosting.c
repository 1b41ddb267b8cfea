#include "node/hosting.h"

#include "actors/coordination/store/journal.h"
#include "actors/coordination/store/store_run.h"
#include "actors/messages.h"
#include "node/devices.h"
#include "node/stores.h"
#include "runtime/uv/storage.h"

#include <stdlib.h>
#include <string.h>

static int check_times(const mu_node_options *o, mu_error *error)
{
    if (o->suspect_ms < o->dead_ms)
        return 0;
    return mu_error_set(error, -MU_EINVALID,
                        "option suspect_ms is %u, expected less than dead_ms, which is "
                        "%u",
                        o->suspect_ms, o->dead_ms);
}

static int find_store(struct mu__hosting *hosting, const mu_node_options *o,
                      mu_error *error)
{
    size_t count = mu__service_hosts_count(hosting->hosts);
    mu_error inner;
    int rv;

    hosting->store = strdup(o->store == NULL ? "memory" : o->store);
    if (hosting->store == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    rv = mu__store_find(mu__stores, hosting->store, &inner, &hosting->kind,
                        &hosting->place);
    if (rv != 0)
        return mu_error_set(error, rv, "option store: %s", inner.message);
    if (!hosting->is_host || hosting->kind->shared || count < 2)
        return 0;
    return mu_error_set(error, -MU_EINVALID,
                        "option store is \"%.80s\", which only one host can have, and "
                        "service_hosts has %zu: expected one host, or a store that "
                        "several may share",
                        hosting->store, count);
}

/* Only where it is of use: it may be that of another task's resolver. */
static int read_access(struct mu__hosting *hosting, mu_error *error)
{
    mu_error inner;
    int rv;

    if (!hosting->is_host || !hosting->kind->shared)
        return 0;
    rv = mu__etcd_access_read(&hosting->etcd,
                              strstr(hosting->place, "https://") != NULL, &inner);
    return rv == 0 ? 0 : mu_error_set(error, rv, "option store: %s", inner.message);
}

static int check_run(const mu_node_options *o, mu_error *error)
{
    mu_error inner;

    if (o->run == NULL || mu__store_run_check_name(o->run, &inner) == 0)
        return 0;
    return mu_error_set(error, -MU_EINVALID, "option run: %s", inner.message);
}

static int read_texts(struct mu__hosting *hosting, const mu_node_options *o,
                      mu_error *error)
{
    int rv = mu__service_hosts(o->cluster, o->service_hosts, error, &hosting->hosts);

    if (rv == 0)
        rv = check_run(o, error);
    if (rv == 0)
        rv = mu__service_tasks(o->cluster,
                               o->coordinated_jobs == NULL ? MU__COORDINATED_JOBS
                                                           : o->coordinated_jobs,
                               error, &hosting->tasks);
    if (rv == 0)
        rv = mu__service_recoverable(o->recoverable == NULL ? "all" : o->recoverable,
                                     error, hosting->recoverable);
    if (rv != 0)
        return rv;
    hosting->is_host = mu__service_is_host(hosting->hosts, o->task_type, o->task_index);
    hosting->sync = o->store_sync != 0;
    rv = find_store(hosting, o, error);
    return rv == 0 ? read_access(hosting, error) : rv;
}

int mu__hosting_init(struct mu__hosting *hosting, const mu_node_options *options,
                     mu_error *ret_error)
{
    int rv = check_times(options, ret_error);

    *hosting = (struct mu__hosting){0};
    if (rv == 0)
        rv = read_texts(hosting, options, ret_error);
    if (rv == 0 && hosting->hosts[0] != '\0') {
        hosting->devices = mu__devices_read("");
        if (hosting->devices == NULL)
            rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    if (rv != 0)
        mu__hosting_done(hosting);
    return rv;
}

void mu__hosting_done(struct mu__hosting *hosting)
{
    free(hosting->hosts);
    free(hosting->tasks);
    free(hosting->store);
    mu__etcd_access_done(&hosting->etcd);
    mu_value_free(hosting->devices);
    *hosting = (struct mu__hosting){0};
}

int mu__hosting_open_file(struct mu__hosting *hosting, mu_error *ret_error)
{
    int rv;

    if (!hosting->is_host || hosting->kind != &mu__store_journal)
        return 0;
    rv = mu__storage_uv_open(hosting->place, hosting->sync, ret_error, &hosting->storage);
    if (rv == 0)
        rv = mu__journal_verify(hosting->storage, MU__JOURNAL_OF_STORE, ret_error);
    if (rv != 0)
        mu__hosting_close_file(hosting);
    return rv;
}

void mu__hosting_close_file(struct mu__hosting *hosting)
{
    mu__storage_uv_close(hosting->storage);
    hosting->storage = NULL;
}

int mu__hosting_open_http(struct mu__hosting *hosting, uv_loop_t *loop,
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

    if (!hosting->is_host || !hosting->kind->shared)
        return 0;
    rv = mu__http_client_open(&config, &inner, &hosting->http);
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "no HTTP for the store: %s",
                                      inner.message);
}

bool mu__hosting_close_http(struct mu__hosting *hosting, void (*closed)(void *arg),
                            void *arg)
{
    struct mu__http_client *http = hosting->http;

    hosting->http = NULL;
    if (http == NULL)
        return false;
    mu__http_client_close(http, closed, arg);
    return true;
}

static uint64_t wall_ms(void)
{
    uv_timeval64_t now = {0};

    (void)uv_gettimeofday(&now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

void mu__hosting_config(const struct mu__hosting *hosting, const mu_node_options *options,
                        struct mu__member_config *config)
{
    config->hosts = hosting->hosts;
    config->devices = hosting->devices;
    config->run = options->run;
    config->coordination = (struct mu__coordination_config){
        .store = hosting->kind,
        .store_location = hosting->place,
        .storage = hosting->storage,
        .http = hosting->http == NULL ? NULL : mu__http_client_door(hosting->http),
        .access = &hosting->etcd.access,
        .tasks = hosting->tasks,
        .recoverable = hosting->recoverable,
        .suspect_ms = options->suspect_ms,
        .dead_ms = options->dead_ms,
        .reconnect_ms = options->reconnect_ms,
        .stuck_ms = options->stuck_ms,
        .leave_ms = options->leave_ms,
        .lease_ms = options->lease_ms,
        .wall_ms = wall_ms,
    };
}
