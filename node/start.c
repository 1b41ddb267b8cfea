/* Opens a node in the real world: the member, a libuv loop (its own or the program's),
 * world, files, the discovery of its cluster, and a wire: libuv streams that speak the
 * protocol of nng's sockets, or those sockets. closing.c closes it. */
#include "node/node.h"

#include "actors/coordination/store/journal.h"
#include "node/loop_thread.h"
#include "node/member/service_options.h"
#include "node/options.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/printable.h"
#include "runtime/message/arguments.h"
#include "runtime/uv/process.h"
#include "runtime/uv/thread.h"

#include "muster.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOG_TEXT_BYTES = 1536,
    VERIFIED_BYTES = 8 << 20, /* of a journal, before the node begins: some ms */
    JOURNAL_STILL_S = 60      /* no more of it was read for so long: that is an error */
};

static const char bind_none[] = "none";

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

void mu__node_log(const mu_node *node, int level, const char *who, const char *format,
                  ...)
{
    char line[LOG_TEXT_BYTES];
    char shown[LOG_TEXT_BYTES];
    va_list args;

    if (level > node->log.level)
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    mu__printable(line, shown, sizeof shown);
    node->log.write(node->log.user, level, node->member.task, who, shown);
}

/* The world's owner is the member, which is a node's first field. */
static void on_node_log(void *owner, enum mu__log_level level, const char *who,
                        const char *line)
{
    mu_node *node = owner;
    char shown[LOG_TEXT_BYTES];

    if ((int)level > node->log.level)
        return;
    mu__printable(line, shown, sizeof shown);
    node->log.write(node->log.user, (int)level, node->member.task, who, shown);
}

/* ---- options ---- */

/* A worker that the cluster does not list says where it listens, or that it does not: one
 * that says nothing is more likely one with a wrong index. */
static int check_node_task(const mu_node_options *o, mu_error *ret_error)
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

static int check_node_options(const mu_node_options *o, bool is_extra,
                              mu_error *ret_error)
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
    if (o->ps_journal != NULL && o->ps_journal[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option ps_journal is \"\", expected a folder or NULL");
    rv = mu__options_check(o, ret_error);
    if (rv == 0 && o->silence_ms < 2 * o->heartbeat_ms)
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "option silence_ms is %u, expected at least twice "
                          "heartbeat_ms, which is %u",
                          o->silence_ms, o->heartbeat_ms);
    if (rv != 0 || is_extra)
        return rv;
    return check_node_task(o, ret_error);
}

static bool is_ipc_url(const char *url)
{
    return strncmp(url, "ipc://", strlen("ipc://")) == 0;
}

static const char *own_url(const mu_node_options *o)
{
    return mu_cluster_url(o->cluster, o->task_type, o->task_index);
}

/* Where to listen; NULL: nowhere. Who has no address is dialled by nobody, and only
 * dials. */
static const char *bind_url(const mu_node_options *o)
{
    const char *url = o->bind_address != NULL ? o->bind_address : own_url(o);

    return url == NULL || strcmp(url, bind_none) == 0 ? NULL : url;
}

/* Whether unix sockets lead to all nodes that are known, and to this one. */
static bool is_on_one_machine(const mu_node_options *o,
                              const struct mu__node_wire_urls *urls)
{
    const char *const *each = urls->dials_each;
    bool is_so = urls->dials_any == NULL || is_ipc_url(urls->dials_any);
    const char *type;
    const char *url;
    int index;

    if (urls->bind != NULL)
        return is_ipc_url(urls->bind);
    for (; each != NULL && *each != NULL; each++)
        is_so = is_so && is_ipc_url(*each);
    for (size_t i = 0; mu_cluster_task_at(o->cluster, i, &type, &index, &url) == 0; i++)
        is_so = is_so && is_ipc_url(url);
    return is_so;
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

    if (mu__node_wire_url(&node->network.wire)[0] == '\0')
        return; /* it has none */
    if (o->advertise_address != NULL || url == NULL || has_free_port(url))
        words = mu__advertised(mu__node_wire_url(&node->network.wire),
                               o->advertise_address, node->address);
    else
        (void)snprintf(node->address, sizeof node->address, "%s", url);
    if (words != NULL)
        on_node_log(node, MU__LOG_WARN, "node", words);
    node->offer.urls =
        (struct mu__offer_urls){mu__node_wire_url(&node->network.wire), node->address};
}

/* What peers are told of this process; "": nothing. */
static void name_host(char out[UV_MAXHOSTNAMESIZE])
{
    size_t size = UV_MAXHOSTNAMESIZE;

    if (uv_os_gethostname(out, &size) != 0)
        out[0] = '\0';
    out[63] = '\0';
}

/* Of the machine's memory, or of what the container may use. */
static uint64_t half_of_memory(void)
{
    uint64_t total = uv_get_total_memory();
    uint64_t constrained = uv_get_constrained_memory();

    return (constrained > 0 && constrained < total ? constrained : total) / 2;
}

/* The supervisor's news of a journal that is read over many turns. Loop thread, or before
 * it runs. */
static void on_journal(void *owner, uint64_t bytes, uint64_t bytes_all,
                       const mu_error *error)
{
    mu_node *node = owner;
    struct mu__node_journal *journal = &node->journal;

    uv_mutex_lock(&node->lock);
    journal->bytes = bytes;
    journal->bytes_all = bytes_all;
    journal->is_read = error != NULL;
    if (error != NULL)
        journal->error = *error;
    uv_cond_broadcast(&journal->moved);
    uv_mutex_unlock(&node->lock);
    if (error != NULL && error->code != 0)
        mu__node_refuse_all(node, error->code, error->message);
}

static int start_member(mu_node *node, const mu_node_options *o,
                        const struct mu__node_extra *extra, mu_error *ret_error)
{
    char host[UV_MAXHOSTNAMESIZE];
    struct mu__member_config config = {
        .options = o,
        .address = node->address,
        .software = mu_version(),
        .host = host,
        .pid = (uint64_t)uv_os_getpid(),
        .journal = node->journal.storage,
        .journal_news = on_journal,
        .journal_owner = node,
        .offer_check = mu__offer_check_own,
        .offer_owner = &node->offer.own,
        .retained_bytes_max = half_of_memory(),
        .node = node,
        .post = mu__node_post,
        .upcalls = {mu__node_cluster_news, node, mu__node_superseded, node},
    };

    name_host(host);
    mu__service_host_config(&node->service_host, o, &config);
    if (extra != NULL) {
        config.hosts = extra->hosts != NULL ? extra->hosts : config.hosts;
        config.only = extra->only;
        config.only_why = extra->only_why;
        config.dials_any = extra->dials_any;
        config.dials_each = extra->dials_each;
        config.offer_check = extra->takes_offer ? mu__offer_check_new : NULL;
        config.offer_owner = &node->offer.urls;
        config.takes_offer = extra->takes_offer;
        config.coordination.only_looks = extra->only_looks;
    }
    return mu__member_start(&node->member, &config, mu__world_uv_world(node->world),
                            mu__node_wire_door(&node->network.wire), ret_error);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

static bool is_server_task(const mu_node_options *o)
{
    return strcmp(o->task_type, "ps") == 0;
}

/* Only the chief has a supervisor, whose journal it is, and servers have their own. */
static bool has_journal(const mu_node_options *o)
{
    return is_server_task(o) ? o->ps_journal != NULL
                             : o->journal != NULL && strcmp(o->task_type, "chief") == 0;
}

/* NULL: out of memory. The caller frees it. */
static char *make_journal_path(const mu_node_options *o)
{
    size_t size;
    char *path;

    if (!is_server_task(o))
        return strdup(o->journal);
    size = strlen(o->ps_journal) + sizeof "/ps-4294967295.journal";
    path = malloc(size);
    if (path != NULL)
        (void)snprintf(path, size, "%s/ps-%u.journal", o->ps_journal, o->task_index);
    return path;
}

/* A file that is damaged in its first part, or something else, is refused before anything
 * begins. */
static int open_files(mu_node *node, const mu_node_options *o, mu_error *ret_error)
{
    struct mu__node_journal *journal = &node->journal;
    int rv = journal->path == NULL ? 0
                                   : mu__storage_uv_open(journal->path, journal->sync,
                                                         ret_error, &journal->storage);

    if (rv == 0 && journal->storage != NULL)
        rv = mu__journal_verify(journal->storage,
                                is_server_task(o) ? MU__JOURNAL_OF_SERVER
                                                  : MU__JOURNAL_OF_CHIEF,
                                VERIFIED_BYTES, ret_error);
    if (rv == 0)
        rv = mu__service_host_open_file(&node->service_host, ret_error);
    if (rv != 0)
        mu__node_close_files(node);
    return rv;
}

/* A chief on a thread of its own is open when its journal is read; its loop runs
 * meanwhile. Without one nothing was ever said. */
static int await_journal(mu_node *node, mu_error *ret_error)
{
    struct mu__node_journal *journal = &node->journal;
    int rv = 0;

    uv_mutex_lock(&node->lock);
    while (journal->bytes_all > 0 && !journal->is_read && rv == 0) {
        uint64_t bytes = journal->bytes;

        if (uv_cond_timedwait(&journal->moved, &node->lock,
                              (uint64_t)JOURNAL_STILL_S * 1000000000) != 0 &&
            !journal->is_read && journal->bytes == bytes)
            rv = mu_error_set(ret_error, -MU_EDEADLINE,
                              "%s: read up to byte %" PRIu64 " of %" PRIu64
                              ", and no further within %d s",
                              journal->path, bytes, journal->bytes_all,
                              (int)JOURNAL_STILL_S);
    }
    if (rv == 0 && journal->error.code != 0)
        rv = mu_error_set(ret_error, journal->error.code, "%s", journal->error.message);
    uv_mutex_unlock(&node->lock);
    return rv;
}

static void log_proof(void *owner, const char *line)
{
    mu__node_log(owner, MU_LOG_WARN, "wire", "%s", line);
}

/* Said by tasks; a client is gone before anybody could make use of it. */
static void warn_if_insecure(mu_node *node, const mu_node_options *o)
{
    const char *url = mu__node_wire_url(&node->network.wire);

    if (node->network.proof != NULL || strcmp(o->task_type, "client") == 0)
        return;
    if (url[0] == '\0')
        mu__node_log(node, MU_LOG_WARN, "wire", "insecure: nothing is encrypted");
    else
        mu__node_log(node, MU_LOG_WARN, "wire",
                     "insecure: nothing is encrypted, and whoever reaches %s may do "
                     "everything",
                     url);
}

static int open_wire(mu_node *node, const mu_node_options *o,
                     const struct mu__node_extra *extra, struct mu__discovered *found,
                     mu_error *ret_error)
{
    const struct mu__own_proof_log log = {log_proof, node};
    struct mu__own_proof_texts texts = {{NULL}, {0}};
    struct mu__tls_pem pem = {NULL, NULL, NULL, false};
    const struct mu__node_wire_urls urls = {bind_url(o),
                                            extra == NULL ? NULL : extra->dials_any,
                                            extra == NULL ? NULL : extra->dials_each};
    bool late =
        found->listening.fd >= 0 ? found->listening.url.ipc : is_on_one_machine(o, &urls);
    bool is_nng;
    int rv = mu__node_wire_choose(o, &urls, ret_error, &is_nng);

    if (rv == 0)
        rv = mu__own_proof_open(o, late, &log, ret_error, &node->network.proof);
    if (rv == 0 && is_nng && node->network.proof != NULL)
        rv = mu__own_proof_pem(node->network.proof, ret_error, &texts, &pem);
    if (rv == 0)
        rv = mu__node_wire_open(is_nng, urls.bind, &found->listening,
                                pem.ca == NULL ? NULL : &pem, node->loop,
                                &mu__member_events, &node->member, ret_error,
                                &node->network.wire);
    mu__own_proof_texts_free(&texts);
    if (rv == 0 && node->network.proof != NULL)
        mu__node_wire_secure(&node->network.wire,
                             mu__own_proof_source(node->network.proof));
    if (rv == 0)
        warn_if_insecure(node, o);
    return rv;
}

static int post_to_world(void *world, struct mu__msg *msg)
{
    return mu__world_uv_post(world, msg);
}

/* A program that runs the loop itself has to ask for a loop that spins. */
static void start_spinning(mu_node *node, const mu_node_options *o)
{
    bool is_own = o->loop == NULL;

    mu__spin_init(&node->calls.spin, o->spin_us);
    if (is_own)
        mu__world_uv_own_loop(node->world);
    if (is_own || o->spin_us != MU_SPIN_BY_CORES)
        mu__world_uv_spin(node->world, o->spin_us);
}

/* World, wire, member, in this order. After a failure the caller runs the loop, so that
 * their handles close. */
static int open_parts(mu_node *node, const mu_node_options *o,
                      const struct mu__node_extra *extra, struct mu__discovered *found,
                      mu_error *ret_error)
{
    const struct mu__world_hooks hooks = mu__member_hooks(&node->member);
    int rv = open_files(node, o, ret_error);

    if (rv != 0)
        return rv;
    rv = mu__world_uv_open(node->loop, o->threads, &hooks, on_node_log, &node->world);
    if (rv != 0) {
        (void)mu_error_set(ret_error, rv, "the node's threads cannot be started: %s",
                           mu_strerror(rv));
        goto err_files;
    }
    start_spinning(node, o);
    rv = mu__service_host_open_http(&node->service_host, node->loop, post_to_world,
                                    node->world, ret_error);
    if (rv != 0)
        goto err_world;
    rv = open_wire(node, o, extra, found, ret_error);
    if (rv != 0)
        goto err_http;
    set_address(node, o);
    rv = start_member(node, o, extra, ret_error);
    if (rv != 0)
        goto err_wire;
    rv = mu__node_start_discovery(node, o, found, ret_error);
    if (rv != 0)
        goto err_member;
    rv = mu__lifecycle_open(node, ret_error);
    if (rv != 0)
        goto err_discovery;
    return 0;

err_discovery:
    if (node->discovery.handle != NULL)
        mu__discovery_close(node->discovery.handle, false, 0, do_nothing, NULL);
err_member:
    mu__member_stop(&node->member);
err_wire:
    mu__node_wire_close(&node->network.wire, do_nothing, NULL);
err_http:
    (void)mu__service_host_close_http(&node->service_host, do_nothing, NULL);
err_world:
    mu__world_uv_close(node->world, do_nothing, NULL);
err_files:
    mu__node_close_files(node);
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

/* Nobody could go on in its place: whatever it was in the middle of stays half done. */
static void on_exit_of_loop(void *arg)
{
    (void)arg;
    (void)fputs("muster: an inline function or a callback has ended the thread of the "
                "loop (pthread_exit): the process ends\n",
                stderr);
    abort();
}

static void *run_loop(void *arg)
{
    mu_node *node = arg;

    (void)mu__node_move(node, MU__NODE_RUNNING);
    mu__loop_thread_begin();
    pthread_cleanup_push(on_exit_of_loop, NULL);
    (void)uv_run(node->loop, UV_RUN_DEFAULT);
    pthread_cleanup_pop(0);
    return NULL;
}

static mu_node *node_new(const mu_node_options *o)
{
    mu_node *node = calloc(1, sizeof *node);

    if (node == NULL)
        return NULL;
    node->cluster.now = mu_cluster_copy(o->cluster);
    node->journal.path = has_journal(o) ? make_journal_path(o) : NULL;
    node->journal.sync = o->journal_sync != 0;
    if (node->cluster.now == NULL || (has_journal(o) && node->journal.path == NULL) ||
        uv_mutex_init(&node->lock) != 0)
        goto err_texts;
    if (uv_mutex_init(&node->cluster.lock) != 0)
        goto err_lock;
    if (uv_cond_init(&node->journal.moved) != 0)
        goto err_cluster_lock;
    atomic_init(&node->refs, 1);
    mu__process_watch();
    node->forks = mu__process_forks();
    mu__node_init_future_owner(node);
    node->program.plugin_timeout_ms = o->plugin_timeout_ms;
    node->log.write = o->log == NULL ? mu__log_text : o->log;
    node->log.user = o->log_user;
    node->log.level = o->log_level;
    node->limits.queue_max = o->queue_max;
    node->limits.queue_bytes_max = o->queue_bytes_max;
    node->ps_count = mu_cluster_task_count(o->cluster, "ps");
    mu__task_name(node->member.task, sizeof node->member.task, o->task_type,
                  o->task_index);
    node->offer.own =
        (struct mu__offer_own){node->cluster.now, node->member.type, o->task_index};
    return node;

err_cluster_lock:
    uv_mutex_destroy(&node->cluster.lock);
err_lock:
    uv_mutex_destroy(&node->lock);
err_texts:
    mu_cluster_free(node->cluster.now);
    free(node->journal.path);
    free(node);
    return NULL;
}

static int open_on_loop(mu_node *node, const mu_node_options *o,
                        const struct mu__node_extra *extra, struct mu__discovered *found,
                        mu_error *ret_error)
{
    int rv;

    node->loop = o->loop;
    node->thread = uv_thread_self();
    block_sigpipe();
    rv = open_parts(node, o, extra, found, ret_error);
    if (rv == 0) {
        (void)mu__node_move(node, MU__NODE_RUNNING);
        mu__loop_thread_begin();
    }
    return rv;
}

/* The loop's thread starts when all parts are open, so nothing here races with it. */
static int open_on_thread(mu_node *node, const mu_node_options *o,
                          const struct mu__node_extra *extra,
                          struct mu__discovered *found, mu_error *ret_error)
{
    int rv;

    if (uv_loop_init(&node->own_loop) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "no loop can be made");
    node->loop = &node->own_loop;
    rv = open_parts(node, o, extra, found, ret_error);
    if (rv == 0 && mu__thread_start(run_loop, node, &node->thread) == 0) {
        rv = await_journal(node, ret_error);
        if (rv != 0)
            mu__node_end_opening(node);
        return rv;
    }
    if (rv == 0) {
        rv = mu_error_set(ret_error, -MU_EEXHAUSTED, "no thread can be started");
        mu__node_teardown(node);
    }
    (void)uv_run(&node->own_loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&node->own_loop);
    return rv;
}

int mu__node_open_discovered(const mu_node_options *options,
                             const struct mu__node_extra *extra,
                             struct mu__discovered *found, mu_error *ret_error,
                             mu_node **ret_node)
{
    mu_node *node;
    int rv = check_node_options(options, extra != NULL, ret_error);

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
        mu__node_free(node);
        return rv;
    }
    *ret_node = node;
    return 0;
}

int mu__node_open(const mu_node_options *options, const struct mu__node_extra *extra,
                  struct mu__discover_stop *stop, mu_error *ret_error, mu_node **ret_node)
{
    mu_node_options found_options = *options;
    struct mu__discovered found;
    int rv = mu__options_check(options, ret_error);

    if (rv != 0)
        return rv;
    if (extra != NULL)
        found_options.resolver = NULL;
    rv = mu__discover(&found_options, stop, ret_error, &found);
    if (rv == 0)
        rv = mu__node_open_discovered(&found_options, extra, &found, ret_error, ret_node);
    mu__discovered_done(&found, &found_options, rv != 0);
    return rv;
}

int mu_node_open(const mu_node_options *options, mu_error *ret_error, mu_node **ret_node)
{
    MU__REQUIRE(ret_error, options, ret_node);

    mu_node_options own;
    int rv = MU__OPTIONS_READ(mu_node_options, options, ret_error, &own);

    return rv == 0 ? mu__node_open(&own, NULL, NULL, ret_error, ret_node) : rv;
}

/* ---- address and task ---- */

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

#define TEXT_OF(number) #number
#define VERSION_OF(major, minor, patch) \
    TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *mu_version(void)
{
    return VERSION_OF(MU_VERSION_MAJOR, MU_VERSION_MINOR, MU_VERSION_PATCH);
}
