#include "cli/service_client.h"

#include "actors/task_set.h"
#include "cli/verbs.h"
#include "node/member/service_options.h"
#include "node/node.h"
#include "resolver/spec/cluster.h"
#include "runtime/uv/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* All tasks that may host the service. */
static const char anybody[] = "chief:0,evaluator:0,ps:0-999999,worker:0-999999";

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
    struct mu__task_set set = {0};
    char host[32];
    int rv;

    if (hosts == NULL) {
        client->hosts_any = anybody;
        return cmd_target_address(client, "chief", 0, error);
    }
    rv = mu__task_set_parse(mu__view_str(hosts), error, &set);
    if (rv == 0 && set.count == 0)
        rv = mu_error_set(error, -MU_EINVALID, "expected a task in --service-hosts");
    if (rv == 0)
        rv = cmd_target_address(client, set.ranges[0].type, (int)set.ranges[0].first,
                                error);
    if (rv == 0) {
        (void)snprintf(host, sizeof host, "%s:%u", set.ranges[0].type,
                       (unsigned)set.ranges[0].first);
        rv = mu__service_hosts(client->targets, host, error, &client->hosts);
    }
    mu__task_set_done(&set);
    return rv;
}

static int add_hosts(struct cmd_client *client, mu_error *error)
{
    const char *type;
    const char *address;
    int index;
    int rv = 0;

    for (size_t i = 0;
         rv == 0 && mu_cluster_task_at(client->spec, i, &type, &index, &address) == 0;
         i++) {
        if (!mu__service_is_host(client->hosts, type, index))
            continue;
        rv = mu_cluster_add(client->targets, type, index, address, error);
        if (rv == 0 && client->address == NULL)
            client->address = mu__cluster_url(client->targets, type, index);
    }
    return rv;
}

static int target_in_cluster(struct cmd_client *client, const char *hosts,
                             mu_error *error)
{
    int rv = mu__service_hosts(client->spec, hosts, error, &client->hosts);

    if (rv != 0)
        return rv;
    if (client->hosts[0] == '\0')
        return mu_error_set(error, -MU_EINVALID,
                            "the cluster has no task that hosts the coordination "
                            "service");
    return add_hosts(client, error);
}

static int target_hosts(struct cmd_client *client, mu_error *error)
{
    const char *hosts = cmd_text(client->options, CMD_FLAG_SERVICE_HOSTS);
    char origin[CMD_ORIGIN_BYTES];

    if (hosts != NULL && strcmp(hosts, "none") == 0)
        return mu_error_set(error, -MU_EINVALID,
                            "%s is none: there is no coordination service to ask",
                            cmd_origin(client->options, CMD_FLAG_SERVICE_HOSTS, origin,
                                       sizeof origin));
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
 * every call returns; the second one ends the process. */
struct watcher {
    mu_node *node;
    sigset_t signals;
    pthread_t thread;
    atomic_bool done;       /* the next signal only ends the thread */
    pthread_mutex_t holding;    /* locked: signals wait; guards child */
    int child;              /* pid of the command that gets the signals; 0: none */
    atomic_int number;      /* the first signal, 0: none */
};

/* The next signal that is not forwarded to a command; 0: the thread ends. Signals that a
 * terminal sent (si_code above 0) have reached the command already. */
static int next_signal(struct watcher *watcher)
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

static void *watch(void *arg)
{
    struct watcher *watcher = arg;
    int number = next_signal(watcher);

    if (number == 0)
        return NULL;
    atomic_store(&watcher->number, number);
    (void)mu_agent_leave(watcher->node, CMD_LEAVE_MS, NULL);
    (void)uv_async_send(&watcher->node->lifecycle.stop);
    (void)sigwait(&watcher->signals, &number);
    if (!atomic_load(&watcher->done))
        _exit(CMD_SIGNAL + number);
    return NULL;
}

/* SIGURG only wakes the watcher's thread. */
static void unwatch(struct watcher *watcher)
{
    atomic_store(&watcher->done, true);
    (void)pthread_kill(watcher->thread, SIGURG);
    (void)pthread_join(watcher->thread, NULL);
}

/* ---- requests ---- */

/* State of a service client, which cmd_client.user points to. */
struct service {
    cmd_request_fn request;
    int index;              /* task index of the client; -1: any */
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

static int target(struct cmd_client *client, mu_error *error)
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

    watcher->node = client->node;
    if (mu__thread_start(watch, watcher, &watcher->thread) != 0)
        return mu_error_set(error, CMD_FAILED, "no thread can be started");
    code = request_registered(client, error);
    unwatch(watcher);
    number = atomic_load(&watcher->number);
    if (number == 0)
        return code;
    error->message[0] = '\0';
    return CMD_SIGNAL + number;
}

int cmd_service_request_as(const struct cmd_options *options, int index,
                           cmd_request_fn request)
{
    struct service service = {.request = request,
                              .index = index,
                              .watcher.holding = PTHREAD_MUTEX_INITIALIZER};
    sigset_t *signals = &service.watcher.signals;

    cmd_block_signals(signals);
    (void)sigaddset(signals, SIGURG);
    (void)pthread_sigmask(SIG_BLOCK, signals, NULL);
    return cmd_with_client(options, target, request_watched, &service);
}

int cmd_service_request(const struct cmd_options *options, cmd_request_fn request)
{
    return cmd_service_request_as(options, -1, request);
}

int cmd_service_verb(struct cmd_options *options)
{
    return cmd_service_request(options, options->verb->request);
}
