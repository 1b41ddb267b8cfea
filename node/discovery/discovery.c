#include "node/discovery/discovery.h"

#include "node/discovery/failure_log.h"
#include "node/discovery/path_watch.h"
#include "node/discovery/run_query.h"
#include "resolver/engine/resolver.h"
#include "runtime/base/retry.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROGRESS_MS = 3000,     /* between log lines that say what is waited for */
    SLICE_FIRST_MS = 3000,  /* of one look, where other tasks come one by one */
    SLICE_MOST_MS = 30000,
    LOOK_MOST_MS = 1000,    /* pause in a look, while other tasks are waited for */
    LATE_MS = 300,          /* too short for a look that says who is missing */
    AGAIN_MS = 1000,        /* until the next try after a failure */
    SETTLE_MS = 50,         /* after a change was noticed: more may follow */
    BETWEEN_MS = 1000,      /* between looks, however often something changes */
    HURRIED_MS = 100        /* between two ends of a look's pause by a change */
};

enum phase {
    SEARCHING,  /* the cluster is not known */
    WATCHING,   /* it is: changes are looked for */
    FAILED,     /* it could not be found: nothing more is tried */
    CLOSING,    /* the announcement is withdrawn */
    CLOSED,     /* handles are closing */
    PHASES
};

/* Whether this task is announced. */
enum telling {
    SILENT,     /* no: the resolver takes no announcements, as far as is known */
    ANNOUNCING, /* not yet */
    ANNOUNCED
};

/* By the loop's clock; 0: not. */
struct discovery_times {
    uint64_t began_ms;
    uint64_t announce_ms;   /* when to announce again */
    uint64_t look_ms;       /* when to look again */
    uint64_t looked_ms;     /* when the last look ended */
    uint64_t hurry_ms;      /* when to end the pause of the look under way: a watched path
                               has changed */
    uint64_t hurried_ms;    /* when that was done last */
    uint64_t progress_ms;   /* when a line of progress was logged last */
};

/* A query on a thread, one after the other. */
struct query_slot {
    struct mu__sources_uv *sources;
    bool runs;
};

struct mu__discovery {
    struct mu__discovery_config config;
    struct query_slot looking;
    struct query_slot announcing;   /* or withdrawing */
    uv_timer_t timer;
    struct mu__path_watch watches[MU__WATCHED_PATHS_MAX];
    mu_announcement announcement;
    char type[16];
    char address[288];
    char incarnation[40];
    char cluster_name[64];
    enum phase phase;
    enum telling telling;
    bool has_changed;       /* a watched path, since the look under way began */
    struct discovery_times times;
    int64_t slice_ms;       /* of the last look, while the cluster was not known */
    unsigned rounds;        /* that have failed in all looks so far */
    mu_error last;          /* why the cluster was not known at the last look */
    struct mu__failure_log failures;
    unsigned handles;
    bool withdraws;
    int64_t withdraw_ms;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void next(struct mu__discovery *discovery);

static uint64_t now_ms(const struct mu__discovery *discovery)
{
    return uv_now(discovery->config.loop);
}

/* The one place that changes the phase. */
static void move(struct mu__discovery *discovery, enum phase to)
{
    static const bool moves[PHASES][PHASES] = {
        [SEARCHING] = {[WATCHING] = true, [FAILED] = true, [CLOSING] = true},
        [WATCHING] = {[WATCHING] = true, [CLOSING] = true},
        [FAILED] = {[CLOSING] = true},
        [CLOSING] = {[CLOSED] = true},
    };

    assert(moves[discovery->phase][to]);
    discovery->phase = to;
}

static void on_timer(uv_timer_t *timer)
{
    next(timer->data);
}

static void wait_until(struct mu__discovery *discovery, uint64_t due_ms)
{
    uint64_t now = now_ms(discovery);

    (void)uv_timer_start(&discovery->timer, on_timer, due_ms > now ? due_ms - now : 0, 0);
}

static int64_t left_ms(const struct mu__discovery *discovery)
{
    uint64_t spent_ms = now_ms(discovery) - discovery->times.began_ms;

    if (discovery->config.timeout_ms < 0)
        return -1;
    return spent_ms >= (uint64_t)discovery->config.timeout_ms
               ? 0
               : discovery->config.timeout_ms - (int64_t)spent_ms;
}

/* ---- Log ---- */

static void log_line(struct mu__discovery *discovery, int level, const char *line)
{
    discovery->config.log(discovery->config.owner, level, line);
}

static void on_progress(void *owner, const char *line)
{
    struct mu__discovery *discovery = owner;

    if (discovery->times.progress_ms != 0 &&
        now_ms(discovery) - discovery->times.progress_ms < PROGRESS_MS)
        return;
    discovery->times.progress_ms = now_ms(discovery);
    log_line(discovery, discovery->phase == SEARCHING ? MU_LOG_INFO : MU_LOG_DEBUG, line);
}

static void on_left_behind(void *owner, const char *line)
{
    log_line(owner, MU_LOG_WARN, line);
}

/* ---- One query ---- */

static void stop(const struct query_slot *slot)
{
    if (slot->runs)
        mu__sources_uv_stop(slot->sources);
}

static void fail(struct mu__discovery *discovery, const mu_error *error)
{
    if (discovery->phase == FAILED)
        return;
    move(discovery, FAILED);
    stop(&discovery->looking);
    discovery->config.failed(discovery->config.owner, error);
}

static int start(struct mu__discovery *discovery, enum mu__query_operation what,
                 int64_t timeout_ms,
                 void (*done)(void *owner, struct mu__query_result *resolved),
                 struct query_slot *slot)
{
    const struct mu__run_query_config config = {
        .loop = discovery->config.loop,
        .sources = slot->sources,
        .resolver = discovery->config.resolver,
        .what = what,
        .announcement = &discovery->announcement,
        .limits =
            {
                .timeout_ms = timeout_ms,
                .pause_most_ms = discovery->telling != SILENT ? LOOK_MOST_MS : 0,
                .whole_ms = discovery->phase == SEARCHING ? left_ms(discovery) : 0,
                .rounds_before = what == MU__QUERY_RESOLVE ? discovery->rounds : 0,
            },
        .done = done,
        .progress = what == MU__QUERY_LEAVE ? on_left_behind : on_progress,
        .owner = discovery,
    };

    assert(!slot->runs);
    slot->runs = mu__run_query_start(&config) == 0;
    return slot->runs ? 0 : -MU_ENOMEM;
}

/* Returns when to try again. While the cluster is not known, the discovery fails. */
static uint64_t without_memory(struct mu__discovery *discovery)
{
    mu_error error;

    if (discovery->phase == WATCHING)
        return now_ms(discovery) + AGAIN_MS;
    (void)mu_error_set(&error, -MU_ENOMEM, "no memory to ask the resolver");
    fail(discovery, &error);
    return 0;
}

/* The error of the last look says how long that look was tried: replaced by the time of
 * the whole search. */
static void fail_late(struct mu__discovery *discovery)
{
    char *tried = strstr(discovery->last.message, "; tried for ");
    char spent[48];
    mu_error error;

    if (tried != NULL)
        *tried = '\0';
    mu__retry_time(now_ms(discovery) - discovery->times.began_ms, spent, sizeof spent);
    (void)mu_error_set(&error, -MU_EDEADLINE, "%s; tried for %s", discovery->last.message,
                       spent);
    fail(discovery, &error);
}

static bool is_passing(int code)
{
    return code == -MU_EUNAVAILABLE || code == -MU_EDEADLINE;
}

/* ---- Watching a path ---- */

static uint64_t latest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* While other tasks are waited for, a look is a sequence of rounds with pauses: end the
 * pause. */
static void hurry_soon(struct mu__discovery *discovery)
{
    uint64_t now = now_ms(discovery);

    if (!discovery->looking.runs || discovery->times.hurry_ms != 0)
        return;
    discovery->times.hurry_ms =
        latest(now + SETTLE_MS, discovery->times.hurried_ms + HURRIED_MS);
    next(discovery);
}

static void on_change(void *owner)
{
    struct mu__discovery *discovery = owner;
    uint64_t due_ms =
        latest(now_ms(discovery) + SETTLE_MS, discovery->times.looked_ms + BETWEEN_MS);

    if (discovery->phase != SEARCHING && discovery->phase != WATCHING)
        return;
    discovery->has_changed = true;
    if (discovery->phase == SEARCHING) {
        hurry_soon(discovery);
        return;
    }
    if (discovery->times.look_ms == 0 || due_ms >= discovery->times.look_ms)
        return;
    discovery->times.look_ms = due_ms;
    next(discovery);
}

/* Watch the resolver's paths, before each look: later changes cause another one. */
static void watch(struct mu__discovery *discovery)
{
    const char *path;
    size_t count = 0;

    for (; (path = mu__resolver_watched_path(discovery->config.resolver, count)) != NULL;
         count++)
        mu__path_watch_start(&discovery->watches[count], path);
    for (size_t i = count; i < MU__WATCHED_PATHS_MAX; i++)
        mu__path_watch_stop(&discovery->watches[i]);
}

static void hurry(struct mu__discovery *discovery)
{
    watch(discovery);
    discovery->times.hurry_ms = 0;
    discovery->times.hurried_ms = now_ms(discovery);
    mu__sources_uv_hurry(discovery->looking.sources);
}

/* ---- Steps ---- */

/* Whether this task was announced, and the cluster does not have it. */
static bool is_forgotten(const struct mu__discovery *discovery,
                         const mu_resolution *found)
{
    const char *type = discovery->type[0] != '\0' ? discovery->type : found->task_type;

    return discovery->telling == ANNOUNCED && type[0] != '\0' &&
           discovery->announcement.index >= 0 && found->cluster != NULL &&
           mu_cluster_address(found->cluster, type, discovery->announcement.index) ==
               NULL;
}

/* A path that has changed during a look may have been read before the change. */
static void look_again_soon(struct mu__discovery *discovery)
{
    uint64_t due_ms = discovery->times.looked_ms + BETWEEN_MS;

    if (discovery->has_changed && discovery->phase == WATCHING &&
        discovery->times.look_ms > due_ms)
        discovery->times.look_ms = due_ms;
}

/* This task's announcement has expired, since this process or the registry stood still
 * for a while. It is announced anew, and until then the last cluster stands: a task that
 * lives is not removed by its own silence. */
static void announce_anew(struct mu__discovery *discovery, mu_resolution *found)
{
    mu_cluster_free(found->cluster);
    (void)mu_error_set(&discovery->last, -MU_EUNAVAILABLE,
                       "this task is not there any more, and is told anew");
    if (discovery->phase == WATCHING)
        mu__failure_log_note(&discovery->failures, MU__LOOK_FAILURE, &discovery->last);
    else
        on_progress(discovery, discovery->last.message);
    discovery->times.announce_ms = now_ms(discovery);
    discovery->times.look_ms = now_ms(discovery) + AGAIN_MS;
}

/* Nobody waits for this look any more. */
static bool was_stopped(struct mu__discovery *discovery,
                        struct mu__query_result *resolved)
{
    discovery->looking.runs = false;
    if (discovery->phase != FAILED && discovery->phase != CLOSING)
        return false;
    if (resolved->code == 0)
        mu_cluster_free(resolved->resolution.cluster);
    next(discovery);
    return true;
}

static void on_looked(void *owner, struct mu__query_result *resolved)
{
    struct mu__discovery *discovery = owner;
    uint32_t watch_ms = mu__resolver_watch_ms(discovery->config.resolver);

    if (was_stopped(discovery, resolved))
        return;
    discovery->times.looked_ms = now_ms(discovery);
    discovery->rounds += resolved->rounds;
    if (resolved->code == 0 && is_forgotten(discovery, &resolved->resolution)) {
        announce_anew(discovery, &resolved->resolution);
    } else if (resolved->code == 0) {
        move(discovery, WATCHING);
        mu__failure_log_recovered(&discovery->failures, MU__LOOK_FAILURE);
        discovery->times.look_ms = watch_ms == 0 ? 0 : now_ms(discovery) + watch_ms;
        discovery->config.found(discovery->config.owner, &resolved->resolution);
    } else if (discovery->phase == WATCHING) {
        mu__failure_log_note(&discovery->failures, MU__LOOK_FAILURE, &resolved->error);
        discovery->times.look_ms =
            now_ms(discovery) + (watch_ms == 0 ? AGAIN_MS : watch_ms);
    } else if (is_passing(resolved->code) && discovery->telling != SILENT) {
        discovery->last = resolved->error;
        on_progress(discovery, resolved->error.message);
    } else {
        fail(discovery, &resolved->error);
    }
    look_again_soon(discovery);
    next(discovery);
}

/* Announcing works again after announcing and looking had failed: look at once. */
static void look_when_back(struct mu__discovery *discovery)
{
    if (discovery->phase == WATCHING &&
        mu__failure_log_has(&discovery->failures, MU__ANNOUNCE_FAILURE) &&
        mu__failure_log_has(&discovery->failures, MU__LOOK_FAILURE))
        discovery->times.look_ms = now_ms(discovery);
}

static void on_announced(void *owner, struct mu__query_result *resolved)
{
    struct mu__discovery *discovery = owner;

    discovery->announcing.runs = false;
    if (resolved->code == 0) {
        look_when_back(discovery);
        mu__failure_log_recovered(&discovery->failures, MU__ANNOUNCE_FAILURE);
        discovery->announcement.index = resolved->task_index;
        discovery->telling = ANNOUNCED;
        discovery->times.announce_ms =
            resolved->again_ms == 0 ? 0 : now_ms(discovery) + resolved->again_ms;
    } else if (discovery->telling == ANNOUNCED &&
               (discovery->phase == WATCHING || is_passing(resolved->code))) {
        mu__failure_log_note(&discovery->failures, MU__ANNOUNCE_FAILURE,
                             &resolved->error);
        discovery->times.announce_ms = now_ms(discovery) + AGAIN_MS;
    } else if (discovery->phase != CLOSING) {
        fail(discovery, &resolved->error);
    }
    next(discovery);
}

/* Find out where this task listens, and then announce it. */
static void begin_announcing(struct mu__discovery *discovery)
{
    mu_error error;

    if (discovery->address[0] == '\0' &&
        discovery->config.listen(discovery->config.owner, &error, discovery->address) !=
            0) {
        fail(discovery, &error);
        return;
    }
    discovery->telling = ANNOUNCING;
    discovery->times.announce_ms = now_ms(discovery);
}

static void on_detected(void *owner, struct mu__query_result *resolved)
{
    struct mu__discovery *discovery = owner;

    if (was_stopped(discovery, resolved))
        return;
    if (resolved->code != 0)
        fail(discovery, &resolved->error);
    else if (mu__resolver_announces(discovery->config.resolver))
        begin_announcing(discovery);
    next(discovery);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct mu__discovery *discovery = handle->data;
    void (*closed)(void *arg) = discovery->closed;
    void *arg = discovery->closed_arg;

    if (--discovery->handles > 0)
        return;
    free(discovery);
    closed(arg);
}

static void close_all(struct mu__discovery *discovery)
{
    move(discovery, CLOSED);
    discovery->handles = 1 + MU__WATCHED_PATHS_MAX;
    mu__sources_uv_free(discovery->announcing.sources);
    mu__sources_uv_free(discovery->looking.sources);
    uv_close((uv_handle_t *)&discovery->timer, on_handle_closed);
    for (size_t i = 0; i < MU__WATCHED_PATHS_MAX; i++)
        uv_close((uv_handle_t *)&discovery->watches[i].event, on_handle_closed);
}

static void on_withdrawn(void *owner, struct mu__query_result *resolved)
{
    struct mu__discovery *discovery = owner;

    discovery->announcing.runs = false;
    if (resolved->code != 0)
        mu__failure_log_note(&discovery->failures, MU__ANNOUNCE_FAILURE,
                             &resolved->error);
    next(discovery);
}

static void on_nothing_left(void *owner, struct mu__query_result *resolved)
{
    struct mu__discovery *discovery = owner;

    (void)resolved;
    discovery->looking.runs = discovery->announcing.runs = false;
    next(discovery);
}

/* When a node closes, functions of the program's own are waited for: what they use may be
 * freed after that. What else was left behind ends soon. */
static bool wait_for_left(struct mu__discovery *discovery)
{
    int64_t calls_ms = discovery->config.is_known ? MU_RESOLVER_CLOSE_TIMEOUT_MS : 0;
    struct query_slot *slot = mu__sources_uv_has_left(discovery->looking.sources)
                                  ? &discovery->looking
                                  : &discovery->announcing;

    return mu__sources_uv_has_left(slot->sources) &&
           start(discovery, MU__QUERY_LEAVE, calls_ms, on_nothing_left, slot) == 0;
}

/* Short at first, so that the pauses within one do not grow; then longer, since a source
 * may need its time: an endpoint that hangs may be tried before one that answers. */
static int64_t next_slice(int64_t last_ms)
{
    if (last_ms == 0)
        return SLICE_FIRST_MS;
    return 2 * last_ms < SLICE_MOST_MS ? 2 * last_ms : SLICE_MOST_MS;
}

static void look(struct mu__discovery *discovery)
{
    int64_t timeout_ms = discovery->phase == SEARCHING ? left_ms(discovery) : 0;

    watch(discovery);
    discovery->has_changed = false;
    discovery->times.hurry_ms = 0;
    if (discovery->phase == SEARCHING && discovery->telling != SILENT) {
        if (discovery->last.code != 0 && timeout_ms >= 0 && timeout_ms < LATE_MS) {
            fail_late(discovery);
            return;
        }
        discovery->slice_ms = next_slice(discovery->slice_ms);
        if (timeout_ms < 0 || timeout_ms > discovery->slice_ms)
            timeout_ms = discovery->slice_ms;
    }
    if (start(discovery, MU__QUERY_RESOLVE, timeout_ms, on_looked, &discovery->looking) !=
        0)
        discovery->times.look_ms = without_memory(discovery);
}

static void announce(struct mu__discovery *discovery)
{
    if (start(discovery, MU__QUERY_ANNOUNCE,
              discovery->phase == SEARCHING ? left_ms(discovery) : 0, on_announced,
              &discovery->announcing) != 0)
        discovery->times.announce_ms = without_memory(discovery);
}

static void close_next(struct mu__discovery *discovery)
{
    bool withdraws = discovery->withdraws && discovery->telling == ANNOUNCED;

    discovery->withdraws = false;
    (void)uv_timer_stop(&discovery->timer);
    if (withdraws && start(discovery, MU__QUERY_WITHDRAW, discovery->withdraw_ms,
                           on_withdrawn, &discovery->announcing) == 0)
        return;
    if (!wait_for_left(discovery))
        close_all(discovery);
}

/* Announcing does not wait for a look, however long that takes: leases end. The first
 * look waits until this task is announced, since it may be the only one that is. */
static void go_on(struct mu__discovery *discovery)
{
    uint64_t now = now_ms(discovery);

    if (discovery->telling != SILENT && !discovery->announcing.runs &&
        discovery->times.announce_ms != 0 && discovery->times.announce_ms <= now)
        announce(discovery);
    if (discovery->looking.runs && discovery->times.hurry_ms != 0 &&
        discovery->times.hurry_ms <= now)
        hurry(discovery);
    if (discovery->phase == FAILED || discovery->phase == CLOSING ||
        discovery->looking.runs || discovery->telling == ANNOUNCING)
        return;
    if ((discovery->phase == SEARCHING || discovery->times.look_ms != 0) &&
        discovery->times.look_ms <= now)
        look(discovery);
}

static void wait_for_next(struct mu__discovery *discovery)
{
    uint64_t due_ms = UINT64_MAX;

    if (discovery->telling != SILENT && !discovery->announcing.runs &&
        discovery->times.announce_ms != 0)
        due_ms = discovery->times.announce_ms;
    if (!discovery->looking.runs && discovery->times.look_ms != 0 &&
        discovery->times.look_ms < due_ms)
        due_ms = discovery->times.look_ms;
    if (discovery->looking.runs && discovery->times.hurry_ms != 0 &&
        discovery->times.hurry_ms < due_ms)
        due_ms = discovery->times.hurry_ms;
    if (due_ms != UINT64_MAX)
        wait_until(discovery, due_ms);
}

/* Do what is due, and set the timer for the rest. */
static void next(struct mu__discovery *discovery)
{
    if (discovery->phase == CLOSING && !discovery->announcing.runs &&
        !discovery->looking.runs)
        close_next(discovery);
    if (discovery->phase != SEARCHING && discovery->phase != WATCHING)
        return;
    go_on(discovery);
    if (discovery->phase == SEARCHING || discovery->phase == WATCHING)
        wait_for_next(discovery);
}

/* ---- Life ---- */

static void begin(uv_timer_t *timer)
{
    struct mu__discovery *discovery = timer->data;

    if (start(discovery, MU__QUERY_DETECT,
              discovery->phase == SEARCHING ? left_ms(discovery) : 0, on_detected,
              &discovery->looking) != 0)
        (void)without_memory(discovery);
}

/* The task was announced before: its lease is to be renewed. The first look finds out the
 * paths to watch. */
static void begin_known(uv_timer_t *timer)
{
    struct mu__discovery *discovery = timer->data;

    discovery->times.announce_ms = now_ms(discovery);
    discovery->times.look_ms =
        mu__resolver_watch_ms(discovery->config.resolver) == 0 ? 0 : now_ms(discovery);
    next(discovery);
}

static void copy_announcement(struct mu__discovery *discovery,
                              const mu_announcement *from)
{
    (void)snprintf(discovery->type, sizeof discovery->type, "%s", from->type);
    (void)snprintf(discovery->address, sizeof discovery->address, "%s", from->address);
    (void)snprintf(discovery->incarnation, sizeof discovery->incarnation, "%s",
                   from->incarnation);
    (void)snprintf(discovery->cluster_name, sizeof discovery->cluster_name, "%s",
                   from->cluster_name);
    discovery->announcement = (mu_announcement){
        .cluster_name = discovery->cluster_name,
        .type = discovery->type,
        .index = from->index,
        .address = discovery->address,
        .incarnation = discovery->incarnation,
    };
}

int mu__discovery_open(const struct mu__discovery_config *config, mu_error *ret_error,
                       struct mu__discovery **ret_discovery)
{
    struct mu__discovery *discovery = calloc(1, sizeof *discovery);

    if (discovery == NULL ||
        mu__sources_uv_new(NULL, &discovery->looking.sources) != 0 ||
        mu__sources_uv_new(discovery->looking.sources,
                           &discovery->announcing.sources) != 0) {
        if (discovery != NULL)
            mu__sources_uv_free(discovery->looking.sources);
        free(discovery);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a resolver's sources");
    }
    discovery->config = *config;
    discovery->config.announcement = NULL;
    discovery->failures.log = config->log;
    discovery->failures.owner = config->owner;
    copy_announcement(discovery, config->announcement);
    discovery->phase = config->is_known ? WATCHING : SEARCHING;
    if (config->is_known && discovery->address[0] != '\0')
        discovery->telling = ANNOUNCED;
    uv_update_time(config->loop);
    discovery->times.began_ms = now_ms(discovery);
    (void)uv_timer_init(config->loop, &discovery->timer);
    for (size_t i = 0; i < MU__WATCHED_PATHS_MAX; i++)
        mu__path_watch_init(&discovery->watches[i], config->loop, on_change, discovery);
    discovery->timer.data = discovery;
    (void)uv_timer_start(&discovery->timer, config->is_known ? begin_known : begin, 0, 0);
    *ret_discovery = discovery;
    return 0;
}

int mu__discovery_index(const struct mu__discovery *discovery)
{
    return discovery->announcement.index;
}

static void on_announce_timeout(uv_timer_t *timer)
{
    struct mu__discovery *discovery = timer->data;

    log_line(discovery, MU_LOG_WARN,
             "what was told last is not taken back, since nothing was answered to it: "
             "others may look for this task for a while");
    stop(&discovery->announcing);
}

/* An announcement that is under way ends first: what it writes last would otherwise stay
 * after the withdrawal. */
void mu__discovery_close(struct mu__discovery *discovery, bool withdraws,
                         int64_t timeout_ms, void (*closed)(void *arg), void *arg)
{
    move(discovery, CLOSING);
    discovery->withdraws = withdraws;
    discovery->withdraw_ms = timeout_ms;
    discovery->closed = closed;
    discovery->closed_arg = arg;
    stop(&discovery->looking);
    if (discovery->announcing.runs && withdraws) {
        (void)uv_timer_start(&discovery->timer, on_announce_timeout, (uint64_t)timeout_ms,
                             0);
        return;
    }
    stop(&discovery->announcing);
    wait_until(discovery, now_ms(discovery));
}
