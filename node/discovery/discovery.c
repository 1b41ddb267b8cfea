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
    PROGRESS_MS = 3000,    /* between log lines that say what is waited for */
    SLICE_FIRST_MS = 3000, /* of one look, where other tasks come one by one */
    SLICE_MOST_MS = 30000,
    LOOK_MOST_MS = 1000, /* pause in a look, while other tasks are waited for */
    LATE_MS = 300,       /* too short for a look that says who is missing */
    AGAIN_MS = 1000,     /* until the next try after a failure */
    SETTLE_MS = 50,      /* after a change was noticed: more may follow */
    BETWEEN_MS = 1000,   /* between looks, however often something changes */
    HURRIED_MS = 100     /* between two ends of a look's pause by a change */
};

enum phase {
    SEARCHING, /* the cluster is not known */
    WATCHING,  /* it is: changes are looked for */
    FAILED,    /* it could not be found: nothing more is tried */
    CLOSING,   /* the announcement is withdrawn */
    CLOSED,    /* handles are closing */
    PHASES
};

/* Whether this task is announced. */
enum announce_phase {
    SILENT,     /* no: the resolver takes no announcements, as far as is known */
    ANNOUNCING, /* not yet */
    ANNOUNCED
};

/* By the loop's clock; 0: not. */
struct discovery_times {
    uint64_t began_ms;
    uint64_t announce_ms; /* when to announce again */
    uint64_t look_ms;     /* when to look again */
    uint64_t looked_ms;   /* when the last look ended */
    uint64_t hurry_ms;    /* when to end the pause of the look under way: a watched path
                               has changed */
    uint64_t hurried_ms;  /* when that was done last */
    uint64_t progress_ms; /* when a line of progress was logged last */
};

/* A query on a thread, one after the other. */
struct query_slot {
    struct mu__sources_uv *sources;
    bool runs;
};

struct mu__discovery {
    struct mu__discovery_config config;
    struct query_slot looking;
    struct query_slot announcing; /* or withdrawing */
    uv_timer_t timer;
    struct mu__path_watch watches[MU__WATCHED_PATHS_MAX];
    mu_announcement announcement;
    char type[16];
    char address[288];
    char incarnation[40];
    char cluster_name[64];
    enum phase phase;
    enum announce_phase announce_phase;
    bool has_changed; /* a watched path, since the look under way began */
    struct discovery_times times;
    int64_t slice_ms; /* of the last look, while the cluster was not known */
    unsigned rounds;  /* that have failed in all looks so far */
    mu_error last;    /* why the cluster was not known at the last look */
    struct mu__failure_log failures;
    unsigned handles;
    bool withdraws;
    int64_t withdraw_ms;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void advance_discovery(struct mu__discovery *d);

static uint64_t get_discovery_now_ms(const struct mu__discovery *d)
{
    return uv_now(d->config.loop);
}

/* The one place that changes the phase. */
static void move_discovery(struct mu__discovery *d, enum phase to)
{
    static const bool moves[PHASES][PHASES] = {
        [SEARCHING] = {[WATCHING] = true, [FAILED] = true, [CLOSING] = true},
        [WATCHING] = {[WATCHING] = true, [CLOSING] = true},
        [FAILED] = {[CLOSING] = true},
        [CLOSING] = {[CLOSED] = true},
    };

    assert(moves[d->phase][to]);
    d->phase = to;
}

static void on_discovery_timer(uv_timer_t *timer)
{
    advance_discovery(timer->data);
}

static void set_discovery_timer(struct mu__discovery *d, uint64_t due_ms)
{
    uint64_t now = get_discovery_now_ms(d);

    (void)uv_timer_start(&d->timer, on_discovery_timer, due_ms > now ? due_ms - now : 0,
                         0);
}

static int64_t get_search_left_ms(const struct mu__discovery *d)
{
    uint64_t spent_ms = get_discovery_now_ms(d) - d->times.began_ms;

    if (d->config.timeout_ms < 0)
        return -1;
    return spent_ms >= (uint64_t)d->config.timeout_ms
               ? 0
               : d->config.timeout_ms - (int64_t)spent_ms;
}

/* ---- Log ---- */

static void log_discovery(struct mu__discovery *d, int level, const char *line)
{
    d->config.log(d->config.owner, level, line);
}

static void on_look_progress(void *owner, const char *line)
{
    struct mu__discovery *d = owner;

    if (d->times.progress_ms != 0 &&
        get_discovery_now_ms(d) - d->times.progress_ms < PROGRESS_MS)
        return;
    d->times.progress_ms = get_discovery_now_ms(d);
    log_discovery(d, d->phase == SEARCHING ? MU_LOG_INFO : MU_LOG_DEBUG, line);
}

static void log_left_call(void *owner, const char *line)
{
    log_discovery(owner, MU_LOG_WARN, line);
}

/* ---- One query ---- */

static void stop_query_slot(const struct query_slot *slot)
{
    if (slot->runs)
        mu__sources_uv_stop(slot->sources);
}

static void fail_discovery(struct mu__discovery *d, const mu_error *error)
{
    if (d->phase == FAILED)
        return;
    move_discovery(d, FAILED);
    stop_query_slot(&d->looking);
    d->config.failed(d->config.owner, error);
}

static int start_discovery_query(
    struct mu__discovery *d, enum mu__query_operation what, int64_t timeout_ms,
    void (*done)(void *owner, struct mu__query_result *resolved), struct query_slot *slot)
{
    const struct mu__run_query_config config = {
        .loop = d->config.loop,
        .sources = slot->sources,
        .resolver = d->config.resolver,
        .what = what,
        .announcement = &d->announcement,
        .limits =
            {
                .timeout_ms = timeout_ms,
                .pause_most_ms = d->announce_phase != SILENT ? LOOK_MOST_MS : 0,
                .whole_ms = d->phase == SEARCHING ? get_search_left_ms(d) : 0,
                .rounds_before = what == MU__QUERY_RESOLVE ? d->rounds : 0,
            },
        .done = done,
        .progress = what == MU__QUERY_LEAVE ? log_left_call : on_look_progress,
        .owner = d,
    };

    assert(!slot->runs);
    slot->runs = mu__run_query_start(&config) == 0;
    return slot->runs ? 0 : -MU_ENOMEM;
}

/* Returns when to try again. While the cluster is not known, the discovery fails. */
static uint64_t without_memory(struct mu__discovery *d)
{
    mu_error error;

    if (d->phase == WATCHING)
        return get_discovery_now_ms(d) + AGAIN_MS;
    (void)mu_error_set(&error, -MU_ENOMEM, "no memory to ask the resolver");
    fail_discovery(d, &error);
    return 0;
}

/* The error of the last look says how long that look was tried: replaced by the time of
 * the whole search. */
static void fail_search_deadline(struct mu__discovery *d)
{
    char *tried = strstr(d->last.message, "; tried for ");
    char spent[48];
    mu_error error;

    if (tried != NULL)
        *tried = '\0';
    mu__retry_time(get_discovery_now_ms(d) - d->times.began_ms, spent, sizeof spent);
    (void)mu_error_set(&error, -MU_EDEADLINE, "%s; tried for %s", d->last.message, spent);
    fail_discovery(d, &error);
}

static bool is_passing_discovery_error(int code)
{
    return code == -MU_EUNAVAILABLE || code == -MU_EDEADLINE;
}

/* ---- Watching a path ---- */

static uint64_t get_later_ms(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* While other tasks are waited for, a look is a sequence of rounds with pauses: end the
 * pause. */
static void hurry_soon(struct mu__discovery *d)
{
    uint64_t now = get_discovery_now_ms(d);

    if (!d->looking.runs || d->times.hurry_ms != 0)
        return;
    d->times.hurry_ms = get_later_ms(now + SETTLE_MS, d->times.hurried_ms + HURRIED_MS);
    advance_discovery(d);
}

static void on_watched_path_change(void *owner)
{
    struct mu__discovery *d = owner;
    uint64_t due_ms = get_later_ms(get_discovery_now_ms(d) + SETTLE_MS,
                                   d->times.looked_ms + BETWEEN_MS);

    if (d->phase != SEARCHING && d->phase != WATCHING)
        return;
    d->has_changed = true;
    if (d->phase == SEARCHING) {
        hurry_soon(d);
        return;
    }
    if (d->times.look_ms == 0 || due_ms >= d->times.look_ms)
        return;
    d->times.look_ms = due_ms;
    advance_discovery(d);
}

/* Watch the resolver's paths, before each look: later changes cause another one. */
static void watch_resolver_paths(struct mu__discovery *d)
{
    const char *path;
    size_t count = 0;

    for (; (path = mu__resolver_watched_path(d->config.resolver, count)) != NULL; count++)
        mu__path_watch_start(&d->watches[count], path);
    for (size_t i = count; i < MU__WATCHED_PATHS_MAX; i++)
        mu__path_watch_stop(&d->watches[i]);
}

static void hurry_look(struct mu__discovery *d)
{
    watch_resolver_paths(d);
    d->times.hurry_ms = 0;
    d->times.hurried_ms = get_discovery_now_ms(d);
    mu__sources_uv_hurry(d->looking.sources);
}

/* ---- Steps ---- */

/* Whether this task was announced, and the cluster does not have it. */
static bool is_forgotten(const struct mu__discovery *d, const mu_resolution *found)
{
    const char *type = d->type[0] != '\0' ? d->type : found->task_type;

    return d->announce_phase == ANNOUNCED && type[0] != '\0' &&
           d->announcement.index >= 0 && found->cluster != NULL &&
           mu_cluster_address(found->cluster, type, d->announcement.index) == NULL;
}

/* A path that has changed during a look may have been read before the change. */
static void schedule_look_after_change(struct mu__discovery *d)
{
    uint64_t due_ms = d->times.looked_ms + BETWEEN_MS;

    if (d->has_changed && d->phase == WATCHING && d->times.look_ms > due_ms)
        d->times.look_ms = due_ms;
}

/* This task's announcement has expired, since this process or the registry stood still
 * for a while. It is announced anew, and until then the last cluster stands: a task that
 * lives is not removed by its own silence. */
static void announce_anew(struct mu__discovery *d, mu_resolution *found)
{
    mu_cluster_free(found->cluster);
    (void)mu_error_set(&d->last, -MU_EUNAVAILABLE,
                       "this task's announcement has expired, and is made again");
    if (d->phase == WATCHING)
        mu__failure_log_note(&d->failures, MU__LOOK_FAILURE, &d->last);
    else
        on_look_progress(d, d->last.message);
    d->times.announce_ms = get_discovery_now_ms(d);
    d->times.look_ms = get_discovery_now_ms(d) + AGAIN_MS;
}

/* Nobody waits for this look any more. */
static bool was_stopped(struct mu__discovery *d, struct mu__query_result *resolved)
{
    d->looking.runs = false;
    if (d->phase != FAILED && d->phase != CLOSING)
        return false;
    if (resolved->code == 0)
        mu_cluster_free(resolved->resolution.cluster);
    advance_discovery(d);
    return true;
}

static void on_looked(void *owner, struct mu__query_result *resolved)
{
    struct mu__discovery *d = owner;
    uint32_t watch_ms = mu__resolver_watch_ms(d->config.resolver);

    if (was_stopped(d, resolved))
        return;
    d->times.looked_ms = get_discovery_now_ms(d);
    d->rounds += resolved->rounds;
    if (resolved->code == 0 && is_forgotten(d, &resolved->resolution)) {
        announce_anew(d, &resolved->resolution);
    } else if (resolved->code == 0) {
        move_discovery(d, WATCHING);
        mu__failure_log_recovered(&d->failures, MU__LOOK_FAILURE);
        d->times.look_ms = watch_ms == 0 ? 0 : get_discovery_now_ms(d) + watch_ms;
        d->config.found(d->config.owner, &resolved->resolution);
    } else if (d->phase == WATCHING) {
        mu__failure_log_note(&d->failures, MU__LOOK_FAILURE, &resolved->error);
        d->times.look_ms =
            get_discovery_now_ms(d) + (watch_ms == 0 ? AGAIN_MS : watch_ms);
    } else if (is_passing_discovery_error(resolved->code) &&
               d->announce_phase != SILENT) {
        d->last = resolved->error;
        on_look_progress(d, resolved->error.message);
    } else {
        fail_discovery(d, &resolved->error);
    }
    schedule_look_after_change(d);
    advance_discovery(d);
}

/* Announcing works again after announcing and looking had failed: look at once. */
static void schedule_look_after_recovery(struct mu__discovery *d)
{
    if (d->phase == WATCHING && mu__failure_log_has(&d->failures, MU__ANNOUNCE_FAILURE) &&
        mu__failure_log_has(&d->failures, MU__LOOK_FAILURE))
        d->times.look_ms = get_discovery_now_ms(d);
}

static void on_announced(void *owner, struct mu__query_result *resolved)
{
    struct mu__discovery *d = owner;

    d->announcing.runs = false;
    if (resolved->code == 0) {
        schedule_look_after_recovery(d);
        mu__failure_log_recovered(&d->failures, MU__ANNOUNCE_FAILURE);
        d->announcement.index = resolved->task_index;
        d->announce_phase = ANNOUNCED;
        d->times.announce_ms =
            resolved->again_ms == 0 ? 0 : get_discovery_now_ms(d) + resolved->again_ms;
    } else if (d->announce_phase == ANNOUNCED &&
               (d->phase == WATCHING || is_passing_discovery_error(resolved->code))) {
        mu__failure_log_note(&d->failures, MU__ANNOUNCE_FAILURE, &resolved->error);
        d->times.announce_ms = get_discovery_now_ms(d) + AGAIN_MS;
    } else if (d->phase != CLOSING) {
        fail_discovery(d, &resolved->error);
    }
    advance_discovery(d);
}

/* Find out where this task listens, and then announce it. */
static void begin_announcing(struct mu__discovery *d)
{
    mu_error error;

    if (d->address[0] == '\0' &&
        d->config.listen(d->config.owner, &error, d->address) != 0) {
        fail_discovery(d, &error);
        return;
    }
    d->announce_phase = ANNOUNCING;
    d->times.announce_ms = get_discovery_now_ms(d);
}

static void on_detected(void *owner, struct mu__query_result *resolved)
{
    struct mu__discovery *d = owner;

    if (was_stopped(d, resolved))
        return;
    if (resolved->code != 0)
        fail_discovery(d, &resolved->error);
    else if (mu__resolver_announces(d->config.resolver))
        begin_announcing(d);
    advance_discovery(d);
}

static void on_discovery_handle_closed(uv_handle_t *handle)
{
    struct mu__discovery *d = handle->data;
    void (*closed)(void *arg) = d->closed;
    void *arg = d->closed_arg;

    if (--d->handles > 0)
        return;
    free(d);
    closed(arg);
}

static void close_discovery_handles(struct mu__discovery *d)
{
    move_discovery(d, CLOSED);
    d->handles = 1 + MU__WATCHED_PATHS_MAX;
    mu__sources_uv_free(d->announcing.sources);
    mu__sources_uv_free(d->looking.sources);
    uv_close((uv_handle_t *)&d->timer, on_discovery_handle_closed);
    for (size_t i = 0; i < MU__WATCHED_PATHS_MAX; i++)
        uv_close((uv_handle_t *)&d->watches[i].event, on_discovery_handle_closed);
}

static void on_withdrawn(void *owner, struct mu__query_result *resolved)
{
    struct mu__discovery *d = owner;

    d->announcing.runs = false;
    if (resolved->code != 0)
        mu__failure_log_note(&d->failures, MU__ANNOUNCE_FAILURE, &resolved->error);
    advance_discovery(d);
}

static void on_nothing_left(void *owner, struct mu__query_result *resolved)
{
    struct mu__discovery *d = owner;

    (void)resolved;
    d->looking.runs = d->announcing.runs = false;
    advance_discovery(d);
}

/* When a node closes, functions of the program's own are waited for: what they use may be
 * freed after that. What else was left behind ends soon. */
static bool wait_for_left(struct mu__discovery *d)
{
    int64_t calls_ms = d->config.is_known ? MU_RESOLVER_CLOSE_TIMEOUT_MS : 0;
    struct query_slot *slot =
        mu__sources_uv_has_left(d->looking.sources) ? &d->looking : &d->announcing;

    return mu__sources_uv_has_left(slot->sources) &&
           start_discovery_query(d, MU__QUERY_LEAVE, calls_ms, on_nothing_left, slot) ==
               0;
}

/* Short at first, so that the pauses within one do not grow; then longer, since a source
 * may need its time: an endpoint that hangs may be tried before one that answers. */
static int64_t next_slice(int64_t last_ms)
{
    if (last_ms == 0)
        return SLICE_FIRST_MS;
    return 2 * last_ms < SLICE_MOST_MS ? 2 * last_ms : SLICE_MOST_MS;
}

static void start_look(struct mu__discovery *d)
{
    int64_t timeout_ms = d->phase == SEARCHING ? get_search_left_ms(d) : 0;

    watch_resolver_paths(d);
    d->has_changed = false;
    d->times.hurry_ms = 0;
    if (d->phase == SEARCHING && d->announce_phase != SILENT) {
        if (d->last.code != 0 && timeout_ms >= 0 && timeout_ms < LATE_MS) {
            fail_search_deadline(d);
            return;
        }
        d->slice_ms = next_slice(d->slice_ms);
        if (timeout_ms < 0 || timeout_ms > d->slice_ms)
            timeout_ms = d->slice_ms;
    }
    if (start_discovery_query(d, MU__QUERY_RESOLVE, timeout_ms, on_looked, &d->looking) !=
        0)
        d->times.look_ms = without_memory(d);
}

static void start_announcement(struct mu__discovery *d)
{
    if (start_discovery_query(d, MU__QUERY_ANNOUNCE,
                              d->phase == SEARCHING ? get_search_left_ms(d) : 0,
                              on_announced, &d->announcing) != 0)
        d->times.announce_ms = without_memory(d);
}

static void withdraw_or_close(struct mu__discovery *d)
{
    bool withdraws = d->withdraws && d->announce_phase == ANNOUNCED;

    d->withdraws = false;
    (void)uv_timer_stop(&d->timer);
    if (withdraws && start_discovery_query(d, MU__QUERY_WITHDRAW, d->withdraw_ms,
                                           on_withdrawn, &d->announcing) == 0)
        return;
    if (!wait_for_left(d))
        close_discovery_handles(d);
}

/* Announcing does not wait for a look, however long that takes: leases end. The first
 * look waits until this task is announced, since it may be the only one that is. */
static void start_due_queries(struct mu__discovery *d)
{
    uint64_t now = get_discovery_now_ms(d);

    if (d->announce_phase != SILENT && !d->announcing.runs && d->times.announce_ms != 0 &&
        d->times.announce_ms <= now)
        start_announcement(d);
    if (d->looking.runs && d->times.hurry_ms != 0 && d->times.hurry_ms <= now)
        hurry_look(d);
    if (d->phase == FAILED || d->phase == CLOSING || d->looking.runs ||
        d->announce_phase == ANNOUNCING)
        return;
    if ((d->phase == SEARCHING || d->times.look_ms != 0) && d->times.look_ms <= now)
        start_look(d);
}

static void wait_for_next(struct mu__discovery *d)
{
    uint64_t due_ms = UINT64_MAX;

    if (d->announce_phase != SILENT && !d->announcing.runs && d->times.announce_ms != 0)
        due_ms = d->times.announce_ms;
    if (!d->looking.runs && d->times.look_ms != 0 && d->times.look_ms < due_ms)
        due_ms = d->times.look_ms;
    if (d->looking.runs && d->times.hurry_ms != 0 && d->times.hurry_ms < due_ms)
        due_ms = d->times.hurry_ms;
    if (due_ms != UINT64_MAX)
        set_discovery_timer(d, due_ms);
}

/* Do what is due, and set the timer for the rest. */
static void advance_discovery(struct mu__discovery *d)
{
    if (d->phase == CLOSING && !d->announcing.runs && !d->looking.runs)
        withdraw_or_close(d);
    if (d->phase != SEARCHING && d->phase != WATCHING)
        return;
    start_due_queries(d);
    if (d->phase == SEARCHING || d->phase == WATCHING)
        wait_for_next(d);
}

/* ---- Life ---- */

static void begin_search(uv_timer_t *timer)
{
    struct mu__discovery *d = timer->data;

    if (start_discovery_query(d, MU__QUERY_DETECT,
                              d->phase == SEARCHING ? get_search_left_ms(d) : 0,
                              on_detected, &d->looking) != 0)
        (void)without_memory(d);
}

/* The task was announced before: its lease is to be renewed. The first look finds out the
 * paths to watch. */
static void begin_known(uv_timer_t *timer)
{
    struct mu__discovery *d = timer->data;

    d->times.announce_ms = get_discovery_now_ms(d);
    d->times.look_ms =
        mu__resolver_watch_ms(d->config.resolver) == 0 ? 0 : get_discovery_now_ms(d);
    advance_discovery(d);
}

static void copy_announcement(struct mu__discovery *d, const mu_announcement *from)
{
    (void)snprintf(d->type, sizeof d->type, "%s", from->type);
    (void)snprintf(d->address, sizeof d->address, "%s", from->address);
    (void)snprintf(d->incarnation, sizeof d->incarnation, "%s", from->incarnation);
    (void)snprintf(d->cluster_name, sizeof d->cluster_name, "%s", from->cluster_name);
    d->announcement = (mu_announcement){
        .cluster_name = d->cluster_name,
        .type = d->type,
        .index = from->index,
        .address = d->address,
        .incarnation = d->incarnation,
    };
}

int mu__discovery_open(const struct mu__discovery_config *config, mu_error *ret_error,
                       struct mu__discovery **ret_discovery)
{
    struct mu__discovery *d = calloc(1, sizeof *d);

    if (d == NULL || mu__sources_uv_new(NULL, &d->looking.sources) != 0 ||
        mu__sources_uv_new(d->looking.sources, &d->announcing.sources) != 0) {
        if (d != NULL)
            mu__sources_uv_free(d->looking.sources);
        free(d);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a resolver's sources");
    }
    d->config = *config;
    d->config.announcement = NULL;
    d->failures.log = config->log;
    d->failures.owner = config->owner;
    copy_announcement(d, config->announcement);
    d->phase = config->is_known ? WATCHING : SEARCHING;
    if (config->is_known && d->address[0] != '\0')
        d->announce_phase = ANNOUNCED;
    uv_update_time(config->loop);
    d->times.began_ms = get_discovery_now_ms(d);
    (void)uv_timer_init(config->loop, &d->timer);
    for (size_t i = 0; i < MU__WATCHED_PATHS_MAX; i++)
        mu__path_watch_init(&d->watches[i], config->loop, on_watched_path_change, d);
    d->timer.data = d;
    (void)uv_timer_start(&d->timer, config->is_known ? begin_known : begin_search, 0, 0);
    *ret_discovery = d;
    return 0;
}

int mu__discovery_index(const struct mu__discovery *d)
{
    return d->announcement.index;
}

static void on_announce_timeout(uv_timer_t *timer)
{
    struct mu__discovery *d = timer->data;

    log_discovery(d, MU_LOG_WARN,
                  "the last announcement is not withdrawn, since it was not answered: "
                  "others may look for this task for a while");
    stop_query_slot(&d->announcing);
}

/* An announcement that is under way ends first: what it writes last would otherwise stay
 * after the withdrawal. */
void mu__discovery_close(struct mu__discovery *d, bool withdraws, int64_t timeout_ms,
                         void (*closed)(void *arg), void *arg)
{
    move_discovery(d, CLOSING);
    d->withdraws = withdraws;
    d->withdraw_ms = timeout_ms;
    d->closed = closed;
    d->closed_arg = arg;
    stop_query_slot(&d->looking);
    if (d->announcing.runs && withdraws) {
        (void)uv_timer_start(&d->timer, on_announce_timeout, (uint64_t)timeout_ms, 0);
        return;
    }
    stop_query_slot(&d->announcing);
    set_discovery_timer(d, get_discovery_now_ms(d));
}
