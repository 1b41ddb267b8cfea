/* A node in the real world: the member, a libuv loop (its own or the program's), an nng
 * wire, and the way from birth to death.
 *
 * Closing goes through three states on the loop. LEAVING: goodbye was said, peers hang
 * up; calls that wait are completed, so that functions which wait in one come to an end,
 * and no run and no call begins any more. DRAINING: functions that run are told to stop,
 * and waited for. GONE: everything is freed, handles close, and the last close callback
 * ends it. */
#include "node/node.h"

#include "actors/coordination/store/journal.h"
#include "actors/job/job.h"
#include "actors/messages.h"
#include "node/call_loop.h"
#include "node/member/service_options.h"
#include "node/options.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/printable.h"
#include "runtime/message/arguments.h"
#include "runtime/uv/process.h"
#include "runtime/uv/thread.h"

#include "muster.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAVE_MS = 500,         /* for peers to hang up */
    CLOSING_STEP_MS = 5,
    WORKERS_PER_TIMEOUT = 10,   /* of -MU_EDEADLINE results that are retried */
    LOG_TEXT_BYTES = 1536
};

static const char default_bind[] = "tcp://127.0.0.1:0";

/* ---- log ---- */

/* One write for each line, so that lines of several nodes and programs stay whole. */
void mu__log_text(void *user, int level, const char *task, const char *who,
                  const char *line)
{
    static const char *const names[] = {"ERROR", "WARN ", "INFO ", "DEBUG"};
    uv_timeval64_t now = {0};
    char text[LOG_TEXT_BYTES];
    int size;

    (void)user;
    (void)uv_gettimeofday(&now);
    size = snprintf(text, sizeof text - 1, "%02d:%02d:%02d.%03d %s %s %s: %s",
                    (int)(now.tv_sec / 3600 % 24), (int)(now.tv_sec / 60 % 60),
                    (int)(now.tv_sec % 60), (int)(now.tv_usec / 1000), names[level], task,
                    who, line);
    if (size < 0)
        return;
    if (size > LOG_TEXT_BYTES - 2)
        size = LOG_TEXT_BYTES - 2;
    text[size] = '\n';
    (void)fwrite(text, 1, (size_t)size + 1, stderr);
}

/* The world's owner is the member, which is a node's first field. */
static void on_log(void *owner, enum mu__log_level level, const char *who,
                   const char *line)
{
    mu_node *node = owner;
    char shown[LOG_TEXT_BYTES];

    if ((int)level > node->log_level)
        return;
    mu__printable(line, shown, sizeof shown);
    node->log(node->log_user, (int)level, node->member.task, who, shown);
}

/* ---- death ---- */

static void free_lists(mu_node *node)
{
    while (node->settings != NULL) {
        struct mu__setting *next = node->settings->next;

        free(node->settings->key);
        free(node->settings->value);
        free(node->settings);
        node->settings = next;
    }
    while (node->programs != NULL) {
        struct mu__program *next = node->programs->next;

        free(node->programs);
        node->programs = next;
    }
}

static void node_free(mu_node *node)
{
    free_lists(node);
    mu__coordinator_drop(node->orphan);
    free(node->distribute);
    free(node->journal);
    mu__service_host_done(&node->service_host);
    mu_cluster_free(node->cluster);
    uv_mutex_destroy(&node->cluster_lock);
    uv_mutex_destroy(&node->lock);
    free(node);
}

void mu__node_ref(mu_node *node)
{
    atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
}

void mu__node_unref(mu_node *node)
{
    if (atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) == 1)
        node_free(node);
}

mu_node *mu_node_ref(mu_node *node)
{
    if (node != NULL)
        mu__node_ref(node);
    return node;
}

void mu_node_unref(mu_node *node)
{
    if (node != NULL)
        mu__node_unref(node);
}

/* No loop, world or wire is left. An abandoned node stays: a thread that did not end may
 * look at it. */
static void let_go(mu_node *node)
{
    if (!node->abandoned)
        mu__node_unref(node);
}

static void close_left_calls(mu_node *node)
{
    for (;;) {
        struct mu__pending *pending;

        uv_mutex_lock(&node->lock);
        pending = node->pending;
        uv_mutex_unlock(&node->lock);
        if (pending == NULL)
            return;
        mu__call_complete(pending->call,
                          mu_error_set(&pending->call->error, -MU_ECLOSED,
                                       "%s is being closed", node->member.task));
    }
}

void mu__node_part_closed(mu_node *node)
{
    node->open_handles--;
    if (node->open_handles > 0)
        return;
    close_left_calls(node);
    if (!node->owns_loop) {
        void (*closed_cb)(void *) = node->closed_cb;
        void *closed_user = node->closed_user;

        mu__loop_thread_end();
        let_go(node);
        if (closed_cb != NULL)
            closed_cb(closed_user);
    }
}

static void part_closed(void *arg)
{
    mu__node_part_closed(arg);
}

static void handle_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

static void close_files(mu_node *node)
{
    mu__storage_uv_close(node->storage);
    node->storage = NULL;
    mu__service_host_close_file(&node->service_host);
}

/* Everything goes. */
static void teardown(mu_node *node)
{
    node->state = MU__NODE_GONE;
    node->abandoned = mu__world_uv_busy(node->world) > 0;
    mu__member_stop(&node->member);
    close_files(node);
    node->open_handles = 4;
    mu__node_stop_finder(node);
    node->open_handles += node->finder != NULL;
    node->open_handles +=
        mu__service_host_close_http(&node->service_host, part_closed, node);
    mu__world_uv_close(node->world, part_closed, node);
    if (node->abandoned)
        mu__world_uv_abandon(node->world);
    mu__wire_uv_close(node->wire, part_closed, node);
    uv_close((uv_handle_t *)&node->closing_timer, handle_closed);
    uv_close((uv_handle_t *)&node->stop, handle_closed);
}

static void *worker_state(mu_node *node)
{
    return mu__actor_state(node->member.kernel, (mu__pid){MU__NODE_SELF, MU__WORKER});
}

static void drain(mu_node *node)
{
    int64_t timeout_ms = atomic_load(&node->close_timeout_ms);
    uint64_t spent_ms = uv_now(node->loop) - node->closing_ms;
    struct mu__kernel_counters counters;

    mu__worker_cancel_all(worker_state(node));
    (void)mu__worker_running(worker_state(node), node->running, sizeof node->running);
    mu__kernel_counters(node->member.kernel, &counters);
    if ((mu__world_uv_busy(node->world) == 0 && counters.queued == 0) ||
        (timeout_ms >= 0 && spent_ms >= (uint64_t)timeout_ms))
        teardown(node);
}

static void on_closing(uv_timer_t *timer)
{
    mu_node *node = timer->data;

    if (node->state == MU__NODE_LEAVING &&
        (mu__links_count_up(node->member.links) == 0 ||
         uv_now(node->loop) - node->closing_ms >= LEAVE_MS))
        node->state = MU__NODE_DRAINING;
    if (node->state == MU__NODE_DRAINING)
        drain(node);
}

/* End the actors that hold calls, which they complete then, with -MU_ECLOSED. By
 * messages, so that it comes after all that was posted before. False: out of memory. */
static bool end_callees(mu_node *node)
{
    static const uint32_t callees[] = {MU__CLIENT, MU__VARIABLES, MU__JOB, MU__AGENT};

    for (size_t i = 0; i < sizeof callees / sizeof callees[0]; i++) {
        struct mu__msg *msg = mu__msg_heap(MU__END, sizeof(struct mu__end));

        if (msg == NULL)
            return false;
        msg->to = (mu__pid){MU__NODE_SELF, callees[i]};
        ((struct mu__end *)mu__body(msg))->reason = mu__view_str("the node is closing");
        (void)mu__world_uv_post(node->world, msg);
    }
    return true;
}

/* Without memory for it, in the next step. */
static void on_leaving(uv_timer_t *timer)
{
    mu_node *node = timer->data;

    if (end_callees(node))
        (void)uv_timer_start(timer, on_closing, 0, CLOSING_STEP_MS);
}

/* No run begins once goodbye is said: from then on others run what had not begun here. */
static void begin_closing(mu_node *node)
{
    if (node->state != MU__NODE_RUNNING)
        return;
    node->state = MU__NODE_LEAVING;
    mu__node_stop_finder(node);
    mu__node_refuse_calls(node);
    mu__worker_leave(worker_state(node), mu__kernel_pool(node->member.kernel),
                     mu__world_uv_start_no_work(node->world));
    uv_update_time(node->loop);
    node->closing_ms = uv_now(node->loop);
    node->member.fails = atomic_load(&node->fails);
    mu__member_leave(&node->member, "it is closing");
    (void)uv_timer_start(&node->closing_timer, on_leaving, 0, CLOSING_STEP_MS);
}

/* Another process plays this task: calls that wait, and later ones, fail with the reason,
 * so that the program ends, and closes the node. */
static void on_taken(void *owner, const char *reason)
{
    mu_node *node = owner;

    if (atomic_load(&node->closed))
        return;
    (void)snprintf(node->taken, sizeof node->taken, "%s", reason);
    mu__node_refuse_calls(node);
    if (!end_callees(node))
        on_log(node, MU__LOG_ERROR, "node", "out of memory: calls that wait go on");
}

static void on_stop(uv_async_t *async)
{
    begin_closing(async->data);
}

/* ---- birth ---- */

/* A worker that the cluster does not list says where it listens: one without an address
 * of its own is more likely one with a wrong index. */
static int check_task(const mu_node_options *o, mu_error *ret_error)
{
    struct mu__worker_types types;
    int rv = mu__read_worker_types(o->worker_types, ret_error, &types);

    if (rv != 0)
        return rv;
    if (o->bind_address != NULL && mu__worker_types_has(&types, o->task_type) &&
        mu__cluster_may_join(o->cluster, "worker", o->task_index))
        return 0;
    return mu_cluster_validate(o->cluster, o->task_type, o->task_index, ret_error);
}

static int check_options(const mu_node_options *o, bool is_extra, mu_error *ret_error)
{
    int rv;

    if (o->cluster == NULL || o->task_type == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a node needs a cluster and a task type, or a resolver");
    if (o->cluster_name == NULL || o->cluster_name[0] == '\0' ||
        strlen(o->cluster_name) > 63)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a cluster name has 1 to 63 bytes, got \"%.80s\"",
                            o->cluster_name == NULL ? "" : o->cluster_name);
    if (o->journal != NULL && o->journal[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option journal is \"\", expected a file's path or NULL");
    rv = mu__options_check(o, ret_error);
    if (rv == 0 && o->silence_ms < 2 * o->heartbeat_ms)
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "option silence_ms is %u, expected at least twice "
                          "heartbeat_ms, which is %u",
                          o->silence_ms, o->heartbeat_ms);
    if (rv != 0 || is_extra)
        return rv;
    return check_task(o, ret_error);
}

static const char *own_url(const mu_node_options *o)
{
    return mu__cluster_url(o->cluster, o->task_type, o->task_index);
}

static const char *bind_url(const mu_node_options *o)
{
    const char *url = own_url(o);

    if (o->bind_address != NULL)
        return o->bind_address;
    return url == NULL ? default_bind : url;
}

static bool has_free_port(const char *url)
{
    size_t length = strlen(url);

    return length > 2 && strcmp(url + length - 2, ":0") == 0;
}

static void set_address(mu_node *node, const mu_node_options *o)
{
    const char *url = own_url(o);
    const char *words = NULL;

    if (o->advertise_address != NULL || url == NULL || has_free_port(url))
        words = mu__advertised(mu__wire_uv_url(node->wire), o->advertise_address,
                               node->address);
    else
        (void)snprintf(node->address, sizeof node->address, "%s", url);
    if (words != NULL)
        on_log(node, MU__LOG_WARN, "node", words);
    node->offer_urls = (struct mu__offer_urls){mu__wire_uv_url(node->wire),
                                                 node->address};
}

/* Tasks of the cluster that run closures. */
static uint32_t count_workers(const mu_node_options *o)
{
    struct mu__worker_types types = {0};
    size_t count = 0;

    (void)mu__worker_types_parse(o->worker_types, NULL, &types);
    for (uint32_t i = 0; i < types.count; i++)
        count += mu_cluster_task_count(o->cluster, types.rows[i].name);
    return (uint32_t)count;
}

static uint32_t timeouts_of(const mu_node_options *o)
{
    return o->timeouts != MU_TIMEOUTS_OF_WORKERS
               ? o->timeouts
               : count_workers(o) / WORKERS_PER_TIMEOUT;
}

/* What others are told of this process. */
struct process_names {
    char host[UV_MAXHOSTNAMESIZE];
    char listens[MU__OWN_ADDRESS_BYTES];
};

/* The port of the socket; where that listens everywhere, at the host that others use. */
static void write_listens(const mu_node *node, char *out)
{
    const char *url = mu__wire_uv_url(node->wire);
    const char *colon = strrchr(node->address, ':');
    bool is_any = strstr(url, "//0.0.0.0:") != NULL || strstr(url, "//[::]:") != NULL ||
                  strstr(url, "//*:") != NULL;
    char host[MU__OWN_ADDRESS_BYTES];

    (void)snprintf(host, sizeof host, "%.*s:0",
                   colon == NULL ? 0 : (int)(colon - node->address), node->address);
    if (is_any)
        (void)mu__advertised(url, host, out);
    else
        (void)snprintf(out, MU__OWN_ADDRESS_BYTES, "%s", url);
}

static void name_process(const mu_node *node, struct process_names *names)
{
    size_t size = sizeof names->host;

    if (uv_os_gethostname(names->host, &size) != 0)
        names->host[0] = '\0';
    names->host[63] = '\0';
    write_listens(node, names->listens);
}

static int start_member(mu_node *node, const mu_node_options *o,
                        const struct mu__node_extra *extra, mu_error *ret_error)
{
    struct process_names names;
    struct mu__member_config config = {
        .cluster = o->cluster,
        .cluster_name = o->cluster_name,
        .task_type = o->task_type,
        .task_index = (uint32_t)o->task_index,
        .address = node->address,
        .listens = names.listens,
        .host = names.host,
        .pid = (uint64_t)uv_os_getpid(),
        .threads = o->threads,
        .window = o->window,
        .queue_max = o->queue_max,
        .attempts_max = o->attempts_max,
        .supervisor = {
            .queue_bytes_max = o->queue_bytes_max,
            .retries_max = o->retries_max,
            .recovery_ms = o->recovery_ms,
            .start_delay_ms = o->start_delay_ms,
            .start_delay_max_ms = o->start_delay_max_ms,
            .server_failures = o->server_failures,
            .server_failures_ms = o->server_failures_ms,
            .timeouts = timeouts_of(o),
            .unknown_is_worker = o->unknown_is_worker != 0,
            .backup_percent = o->backup_percent,
            .watchdog_ms = o->watchdog_ms,
            .measure = o->measure != 0,
            .journal = node->storage,
        },
        .heartbeat_ms = o->heartbeat_ms,
        .silence_ms = o->silence_ms,
        .server_lost_ms = o->server_lost_ms,
        .effect_wait_ms = o->effect_wait_ms,
        .offer_check = mu__offer_check_own,
        .offer_owner = &node->offer_own,
        .node = node,
        .post = mu__node_post,
        .news = mu__node_cluster_news,
        .news_owner = node,
        .taken = on_taken,
        .taken_owner = node,
        .coordinated_jobs = o->coordinated_jobs,
        .worker_types = o->worker_types,
    };

    name_process(node, &names);
    mu__service_host_config(&node->service_host, o, &config);
    if (extra != NULL) {
        config.hosts = extra->hosts != NULL ? extra->hosts : config.hosts;
        config.only = extra->only;
        config.only_why = extra->only_why;
        config.dials_any = extra->dials_any;
        config.dials_each = extra->dials_each;
        config.offer_check = extra->takes_offer ? mu__offer_check_new : NULL;
        config.offer_owner = &node->offer_urls;
        config.takes_offer = extra->takes_offer;
        config.coordination.only_looks = extra->only_looks;
    }
    return mu__member_start(&node->member, &config, mu__world_uv_world(node->world),
                            mu__wire_uv_wire(node->wire), ret_error);
}

static void nothing(void *arg)
{
    (void)arg;
}

static int open_handles(mu_node *node, mu_error *ret_error)
{
    if (uv_async_init(node->loop, &node->stop, on_stop) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "no handle left for the node's loop");
    (void)uv_timer_init(node->loop, &node->closing_timer);
    node->stop.data = node;
    node->closing_timer.data = node;
    return 0;
}

/* Only the chief has a supervisor, whose journal it is. */
static int open_journal(mu_node *node, const mu_node_options *o, mu_error *ret_error)
{
    if (node->journal == NULL || strcmp(o->task_type, "chief") != 0)
        return 0;
    return mu__storage_uv_open(node->journal, node->journal_sync, ret_error,
                               &node->storage);
}

/* A file that is damaged, or something else, is refused before anything begins. */
static int open_files(mu_node *node, const mu_node_options *o, mu_error *ret_error)
{
    int rv = open_journal(node, o, ret_error);

    if (rv == 0 && node->storage != NULL)
        rv = mu__journal_verify(node->storage, MU__JOURNAL_OF_CHIEF, ret_error);
    if (rv == 0)
        rv = mu__service_host_open_file(&node->service_host, ret_error);
    if (rv != 0)
        close_files(node);
    return rv;
}

/* Where this task was told to be, a socket listens already. */
static int open_wire(mu_node *node, const mu_node_options *o, struct mu__found *found,
                     mu_error *ret_error)
{
    if (found->listening.fd >= 0)
        return mu__wire_uv_adopt(node->loop, &found->listening, &mu__member_events,
                                 &node->member, ret_error, &node->wire);
    return mu__wire_uv_open(node->loop, bind_url(o), &mu__member_events, &node->member,
                            ret_error, &node->wire);
}

static int post_to_world(void *world, struct mu__msg *msg)
{
    return mu__world_uv_post(world, msg);
}

/* World, wire, member, in this order; what was opened is closed by running the loop. */
static int open_parts(mu_node *node, const mu_node_options *o,
                      const struct mu__node_extra *extra, struct mu__found *found,
                      mu_error *ret_error)
{
    const struct mu__world_hooks hooks = mu__member_hooks(&node->member);
    int rv = open_files(node, o, ret_error);

    if (rv != 0)
        return rv;
    rv = mu__world_uv_open(node->loop, o->threads, &hooks, on_log, &node->world);
    if (rv != 0) {
        (void)mu_error_set(ret_error, rv, "the node's threads cannot be started: %s",
                           mu_strerror(rv));
        goto err_files;
    }
    rv = mu__service_host_open_http(&node->service_host, node->loop, post_to_world,
                                    node->world, ret_error);
    if (rv != 0)
        goto err_world;
    rv = open_wire(node, o, found, ret_error);
    if (rv != 0)
        goto err_http;
    set_address(node, o);
    rv = start_member(node, o, extra, ret_error);
    if (rv != 0)
        goto err_wire;
    rv = mu__node_start_finder(node, o, found, ret_error);
    if (rv != 0)
        goto err_member;
    rv = open_handles(node, ret_error);
    if (rv != 0)
        goto err_finder;
    return 0;

err_finder:
    if (node->finder != NULL)
        mu__finder_close(node->finder, false, 0, nothing, NULL);
err_member:
    mu__member_stop(&node->member);
err_wire:
    mu__wire_uv_close(node->wire, nothing, NULL);
err_http:
    (void)mu__service_host_close_http(&node->service_host, nothing, NULL);
err_world:
    mu__world_uv_close(node->world, nothing, NULL);
err_files:
    close_files(node);
    return rv;
}

/* libuv writes to a connection that broke a moment ago as to any other, and the system
 * answers with SIGPIPE, which ends a process that did not think of it. */
static void block_sigpipe(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void *run_loop(void *arg)
{
    mu_node *node = arg;

    mu__loop_thread_begin();
    (void)uv_run(node->loop, UV_RUN_DEFAULT);
    return NULL;
}

static mu_node *node_new(const mu_node_options *o)
{
    mu_node *node = calloc(1, sizeof *node);

    if (node == NULL)
        return NULL;
    node->cluster = mu_cluster_copy(o->cluster);
    node->journal = o->journal == NULL ? NULL : strdup(o->journal);
    node->journal_sync = o->journal_sync != 0;
    if (node->cluster == NULL || (o->journal != NULL && node->journal == NULL) ||
        uv_mutex_init(&node->lock) != 0) {
        mu_cluster_free(node->cluster);
        free(node->journal);
        free(node);
        return NULL;
    }
    if (uv_mutex_init(&node->cluster_lock) != 0) {
        uv_mutex_destroy(&node->lock);
        mu_cluster_free(node->cluster);
        free(node->journal);
        free(node);
        return NULL;
    }
    atomic_init(&node->refs, 1);
    mu__process_watch();
    node->forks = mu__process_forks();
    mu__node_init_home(node);
    node->plugin_timeout_ms = o->plugin_timeout_ms;
    node->log = o->log == NULL ? mu__log_text : o->log;
    node->log_user = o->log_user;
    node->log_level = o->log_level;
    node->queue_max = o->queue_max;
    node->queue_bytes_max = o->queue_bytes_max;
    node->ps_count = mu_cluster_task_count(o->cluster, "ps");
    mu__task_name(node->member.task, sizeof node->member.task, o->task_type,
                  o->task_index);
    node->offer_own = (struct mu__offer_own){node->cluster, node->member.type,
                                             o->task_index};
    return node;
}

static int open_on_loop(mu_node *node, const mu_node_options *o,
                        const struct mu__node_extra *extra, struct mu__found *found,
                        mu_error *ret_error)
{
    int rv;

    node->loop = o->loop;
    node->thread = uv_thread_self();
    block_sigpipe();
    rv = open_parts(node, o, extra, found, ret_error);
    if (rv == 0)
        mu__loop_thread_begin();
    return rv;
}

/* The loop's thread starts when everything is in place, so nothing here races with it. */
static int open_on_thread(mu_node *node, const mu_node_options *o,
                          const struct mu__node_extra *extra, struct mu__found *found,
                          mu_error *ret_error)
{
    int rv;

    if (uv_loop_init(&node->own_loop) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "no loop can be made");
    node->loop = &node->own_loop;
    node->owns_loop = true;
    rv = open_parts(node, o, extra, found, ret_error);
    if (rv == 0 && mu__thread_start(run_loop, node, &node->thread) == 0)
        return 0;
    if (rv == 0) {
        rv = mu_error_set(ret_error, -MU_EEXHAUSTED, "no thread can be started");
        teardown(node);
    }
    (void)uv_run(&node->own_loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&node->own_loop);
    return rv;
}

int mu__node_open_found(const mu_node_options *options,
                        const struct mu__node_extra *extra, struct mu__found *found,
                        mu_error *ret_error, mu_node **ret_node)
{
    mu_node *node;
    int rv = check_options(options, extra != NULL, ret_error);

    if (rv != 0)
        return rv;
    node = node_new(options);
    if (node == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a node");
    (void)snprintf(node->visible_devices, sizeof node->visible_devices, "%s",
                   found->visible_devices);
    rv = mu__service_host_init(&node->service_host, options, ret_error);
    if (rv == 0)
        rv = options->loop != NULL
                 ? open_on_loop(node, options, extra, found, ret_error)
                 : open_on_thread(node, options, extra, found, ret_error);
    if (rv != 0) {
        node_free(node);
        return rv;
    }
    *ret_node = node;
    return 0;
}

static int find_and_open(const mu_node_options *options,
                         const struct mu__node_extra *extra, struct mu__find_stop *stop,
                         mu_error *ret_error, mu_node **ret_node)
{
    mu_node_options found_options = *options;
    struct mu__found found;
    int rv = mu__options_check(options, ret_error);

    if (rv != 0)
        return rv;
    if (extra != NULL)
        found_options.resolver = NULL;
    rv = mu__find(&found_options, stop, ret_error, &found);
    if (rv == 0)
        rv = mu__node_open_found(&found_options, extra, &found, ret_error, ret_node);
    mu__found_done(&found, &found_options, rv != 0);
    return rv;
}

int mu__node_open(const mu_node_options *options, const struct mu__node_extra *extra,
                  mu_error *ret_error, mu_node **ret_node)
{
    return find_and_open(options, extra, NULL, ret_error, ret_node);
}

int mu__node_open_until(const mu_node_options *options, struct mu__find_stop *stop,
                        mu_error *ret_error, mu_node **ret_node)
{
    return find_and_open(options, NULL, stop, ret_error, ret_node);
}

int mu_node_open(const mu_node_options *options, mu_error *ret_error, mu_node **ret_node)
{
    MU__REQUIRE(ret_error, options, ret_node);
    return find_and_open(options, NULL, NULL, ret_error, ret_node);
}

/* ---- closing, from outside ---- */

int mu_node_close(mu_node *node, int64_t timeout_ms, mu_error *ret_error)
{
    int rv = 0;

    if (node == NULL)
        return 0;
    if (mu__node_is_forked(node)) {
        mu__node_say_closed(node, -MU_EPRECONDITION, ret_error);
        return -MU_EPRECONDITION;
    }
    if (!node->owns_loop || mu__node_on_loop(node))
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "a node on the program's loop is closed with "
                            "mu_node_close_async, and no node on its own thread");
    if (!atomic_load(&node->keeps_run))
        mu__node_leave_run(node);
    mu__coordinator_detach(node, timeout_ms);
    atomic_store(&node->close_timeout_ms, timeout_ms);
    (void)uv_async_send(&node->stop);
    (void)uv_thread_join(&node->thread);
    (void)uv_loop_close(&node->own_loop);
    if (node->abandoned)
        rv = mu_error_set(ret_error, -MU_EDEADLINE,
                          "function \"%s\" on %s did not end within %lld ms",
                          node->running, node->member.task, (long long)timeout_ms);
    let_go(node);
    return rv;
}

void mu_node_close_async(mu_node *node, void (*closed)(void *user), void *user)
{
    MU__REQUIRE_OR(, node);
    if (node->owns_loop || !mu__node_on_loop(node)) {
        node->log(node->log_user, MU_LOG_ERROR, node->member.task, "node",
                  "mu_node_close_async is for nodes on the program's loop, and called on "
                  "its thread: the node stays open");
        return;
    }
    node->closed_cb = closed;
    node->closed_user = user;
    atomic_store(&node->close_timeout_ms, -1);
    mu__coordinator_detach(node, 0);
    /* The stop is asked for when the store has heard of it. */
    if (!mu__node_leave_run_later(node))
        begin_closing(node);
}

/* ---- looking ---- */

const char *mu_node_address(const mu_node *node)
{
    MU__REQUIRE_OR(NULL, node);
    return node->address;
}

const char *mu_node_task(const mu_node *node)
{
    MU__REQUIRE_OR(NULL, node);
    return node->member.task;
}

const char *mu_version(void)
{
    return "0.1.0";
}
