#include "cli/service_client.h"

#include "cli/verbs.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- sets of tasks ---- */

int cmd_tasks_check(const struct cmd_options *options, mu_error *ret_error)
{
    const char *tasks = cmd_text(options, CMD_FLAG_TASKS);
    char origin[CMD_ORIGIN_BYTES];
    mu_task_range range;
    mu_error inner;
    int rv = mu_tasks_range_at(tasks, 0, &inner, &range);

    if (rv == 0 || rv == -MU_ENOTFOUND)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID, "%s: %s",
                        cmd_origin(options, CMD_FLAG_TASKS, origin, sizeof origin),
                        inner.message);
}

bool cmd_tasks_have_task(const char *tasks, const char *type, int index)
{
    mu_task_range range;

    for (size_t i = 0; mu_tasks_range_at(tasks, i, NULL, &range) == 0; i++)
        if (strcmp(range.type, type) == 0 && index >= range.first && index <= range.last)
            return true;
    return false;
}

/* ---- tasks that have not registered yet ---- */

enum { KNOWN_STEP_MS = 50, KNOWN_PRINT_MS = 2000 };

int cmd_await_known(const struct cmd_client *client, const char *tasks,
                    mu_error *ret_error, int64_t *ret_left_ms)
{
    const struct timespec step = {0, KNOWN_STEP_MS * 1000000};
    int64_t timeout_ms = cmd_wait_timeout_ms(client);
    int64_t waited_ms = 0;
    mu_error why;
    int rv;

    for (;;) {
        mu_value *states = NULL;

        rv = mu_tasks_states(client->node, tasks, cmd_timeout_ms(client), &why, &states);
        mu_value_free(states);
        if (rv != -MU_ENOTFOUND ||
            (timeout_ms >= 0 && waited_ms + KNOWN_STEP_MS > timeout_ms))
            break;
        (void)nanosleep(&step, NULL);
        waited_ms += KNOWN_STEP_MS;
        if (waited_ms == KNOWN_PRINT_MS)
            (void)fprintf(stderr, "muster %s: waiting: %s\n", client->options->verb->name,
                          why.message);
    }
    *ret_left_ms = timeout_ms < 0 ? -1 : timeout_ms - waited_ms;
    if (rv == -MU_ENOTFOUND)
        return mu_error_set(ret_error, -MU_EDEADLINE, "after %lld ms: %s",
                            (long long)timeout_ms, why.message);
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "%s", why.message);
}

/* ---- the hosts ---- */

/* The task at --address: the first of --service-hosts, or without these any task that may
 * host the service. */
static int target_by_address(struct cmd_client *client, const char *hosts,
                             mu_error *error)
{
    mu_task_range first;
    char host[32];
    int rv;

    client->is_any = hosts == NULL;
    if (hosts == NULL) {
        client->hosts = strdup("chief:0");
        return cmd_target_address(client, "chief", 0, error);
    }
    rv = mu_tasks_range_at(hosts, 0, error, &first);
    if (rv == -MU_ENOTFOUND)
        rv = mu_error_set(error, -MU_EINVALID, "expected a task in --service-hosts");
    if (rv != 0)
        return rv;
    (void)snprintf(host, sizeof host, "%s:%d", first.type, first.first);
    client->hosts = strdup(host);
    return cmd_target_address(client, first.type, first.first, error);
}

static int add_host(struct cmd_client *client, const char *type, int index,
                    mu_error *error)
{
    const char *address = mu_cluster_address(client->spec, type, index);
    int rv;

    if (address == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "option service_hosts names %s:%d, and the cluster has no "
                            "such task",
                            type, index);
    rv = mu_cluster_add(client->targets, type, index, address, error);
    if (rv == 0 && client->address == NULL)
        client->address = mu_cluster_url(client->targets, type, index);
    return rv;
}

static int target_in_cluster(struct cmd_client *client, const char *hosts,
                             mu_error *error)
{
    char task[MU_CLUSTER_TASK_BYTES] = "";
    mu_task_range range;
    mu_error inner;
    int rv = 0;

    if (hosts == NULL)
        (void)mu_cluster_service_host(client->spec, NULL, task);
    client->hosts = strdup(hosts == NULL ? task : hosts);
    for (size_t i = 0; rv == 0 && client->hosts != NULL; i++) {
        rv = mu_tasks_range_at(client->hosts, i, &inner, &range);
        if (rv == -MU_ENOTFOUND && i > 0)
            return 0;
        if (rv == -MU_ENOTFOUND)
            return mu_error_set(error, -MU_EINVALID,
                                "the cluster has no task that hosts "
                                "the coordination service");
        if (rv != 0)
            return mu_error_set(error, rv, "option service_hosts: %s", inner.message);
        for (int index = range.first; rv == 0 && index <= range.last; index++)
            rv = add_host(client, range.type, index, error);
    }
    return rv == 0 ? -MU_ENOMEM : rv;
}

static int target_hosts(struct cmd_client *client, mu_error *error)
{
    const char *hosts = cmd_text(client->options, CMD_FLAG_SERVICE_HOSTS);
    char origin[CMD_ORIGIN_BYTES];

    if (hosts != NULL && strcmp(hosts, "none") == 0)
        return mu_error_set(
            error, -MU_EINVALID, "%s=none disables the coordination service",
            cmd_origin(client->options, CMD_FLAG_SERVICE_HOSTS, origin, sizeof origin));
    if (cmd_text(client->options, CMD_FLAG_ADDRESS) != NULL)
        return target_by_address(client, hosts, error);
    if (client->spec == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "there is no coordination service to ask: expected "
                            "--address of a host of it, --cluster, or TF_CONFIG with a "
                            "cluster");
    return target_in_cluster(client, hosts, error);
}

/* ---- signals ---- */

/* A thread that waits for signals: at the first one the client leaves the service, and
 * the node is closed, so that every call returns; the second one ends the process. */
struct watcher {
    mu_node *node;
    sigset_t signals;
    pthread_t thread;
    atomic_bool done;        /* the next signal only ends the thread */
    pthread_mutex_t holding; /* locked: signals wait; guards child */
    int child;               /* pid of the command that gets the signals; 0: none */
    atomic_int number;       /* the first signal, 0: none */
};

/* The next signal that is not forwarded to a command; 0: the thread ends. Signals that a
 * terminal sent (si_code above 0) have reached the command already. */
static int next_watched_signal(struct watcher *watcher)
{
    for (;;) {
        siginfo_t info;
        int number = sigwaitinfo(&watcher->signals, &info);
        bool forwards;

        if (number < 0)
            continue;
        if (atomic_load(&watcher->done))
            return 0;
        (void)pthread_mutex_lock(&watcher->holding);
        forwards = watcher->child != 0;
        if (forwards && number != SIGURG && info.si_code <= 0)
            (void)kill(watcher->child, number);
        (void)pthread_mutex_unlock(&watcher->holding);
        if (!forwards)
            return number;
    }
}

static void *watch_client_signals(void *arg)
{
    struct watcher *watcher = arg;
    int number = next_watched_signal(watcher);

    if (number == 0)
        return NULL;
    atomic_store(&watcher->number, number);
    (void)mu_agent_leave(watcher->node, CMD_LEAVE_MS, NULL);
    (void)mu_node_close(watcher->node, CMD_LEAVE_MS, NULL);
    (void)sigwait(&watcher->signals, &number);
    if (!atomic_load(&watcher->done))
        _exit(CMD_SIGNAL + number);
    return NULL;
}

/* SIGURG only wakes the watcher's thread. */
static void unwatch_client_signals(struct watcher *watcher)
{
    atomic_store(&watcher->done, true);
    (void)pthread_kill(watcher->thread, SIGURG);
    (void)pthread_join(watcher->thread, NULL);
}

/* ---- requests ---- */

/* State of a service client, which cmd_client.user points to. */
struct service {
    cmd_request_fn request;
    int index; /* task index of the client; -1: any */
    struct watcher watcher;
};

void cmd_hold_signals(struct cmd_client *client)
{
    struct service *service = client->user;

    (void)pthread_mutex_lock(&service->watcher.holding);
}

void cmd_forward_signals(struct cmd_client *client, int pid)
{
    struct service *service = client->user;

    service->watcher.child = pid;
    (void)pthread_mutex_unlock(&service->watcher.holding);
}

static int target_service(struct cmd_client *client, mu_error *error)
{
    const struct service *service = client->user;

    if (service->index >= 0)
        client->own_index = service->index;
    return target_hosts(client, error);
}

static int request_registered(struct cmd_client *client, mu_error *error)
{
    const struct service *service = client->user;
    mu_error why;
    int rv = mu_agent_register(client->node, 0, cmd_timeout_ms(client), &why);
    int code;

    if (rv != 0)
        return cmd_exit_code(mu_error_set(error, rv, "no coordination service at %s: %s",
                                          client->address, why.message));
    code = service->request(client, error);
    (void)mu_agent_leave(client->node, CMD_LEAVE_MS, NULL);
    return code;
}

static int request_watched(struct cmd_client *client, mu_error *error)
{
    struct service *service = client->user;
    struct watcher *watcher = &service->watcher;
    int number;
    int code;

    watcher->node = mu_node_ref(client->node);
    if (pthread_create(&watcher->thread, NULL, watch_client_signals, watcher) != 0) {
        mu_node_unref(watcher->node);
        return mu_error_set(error, CMD_FAILED, "no thread can be started");
    }
    code = request_registered(client, error);
    unwatch_client_signals(watcher);
    mu_node_unref(watcher->node);
    number = atomic_load(&watcher->number);
    if (number == 0)
        return code;
    client->node = NULL; /* the watcher has closed it */
    error->message[0] = '\0';
    return CMD_SIGNAL + number;
}

int cmd_service_request_as(const struct cmd_options *options, int index,
                           cmd_request_fn request)
{
    struct service service = {
        .request = request, .index = index, .watcher.holding = PTHREAD_MUTEX_INITIALIZER};
    sigset_t *signals = &service.watcher.signals;

    cmd_block_signals(signals);
    (void)sigaddset(signals, SIGURG);
    (void)pthread_sigmask(SIG_BLOCK, signals, NULL);
    return cmd_with_client(options, target_service, request_watched, &service);
}

int cmd_service_request(const struct cmd_options *options, cmd_request_fn request)
{
    return cmd_service_request_as(options, -1, request);
}

int cmd_service_verb(struct cmd_options *options)
{
    return cmd_service_request(options, options->verb->request);
}
