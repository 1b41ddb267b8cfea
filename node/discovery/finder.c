#include "node/discovery/finder.h"

#include "node/discovery/path_watch.h"
#include "node/discovery/resolving.h"
#include "resolver/engine/resolver.h"
#include "resolver/engine/uv/asker.h"
#include "runtime/base/retry.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROGRESS_MS = 3000,     /* between lines that say what is waited for */
    SLICE_FIRST_MS = 3000,  /* of one look, where others come one by one */
    SLICE_MOST_MS = 30000,
    LOOK_MOST_MS = 1000,    /* between looks, while others are waited for */
    LATE_MS = 300,          /* too short for a look that says who is missing */
    AGAIN_MS = 1000,        /* after telling has failed */
    SETTLE_MS = 50,         /* after a change was noticed: more may follow */
    BETWEEN_MS = 1000,      /* looks, however often something changes */
    HURRIED_MS = 100        /* between looks while others are waited for; and the look
                               itself sees to it that it does not take all the time */
};

struct mu__finder {
    struct mu__finder_config config;
    struct mu__asker_uv *asker;
    struct mu__resolving *looking;      /* under way; NULL: none */
    struct mu__resolving *telling;      /* or taking back what was told */
    uv_timer_t timer;
    struct mu__path_watch watches[MU__WATCHED_PATHS_MAX];
    mu_announcement announcement;
    char type[16];
    char address[288];
    char incarnation[40];
    char cluster_name[64];
    bool tells;             /* the resolver takes where this task is */
    bool has_told;
    bool is_known;          /* the cluster is */
    bool has_failed;
    bool has_changed;       /* what is watched, since the look under way began */
    uint64_t began_ms;
    uint64_t tell_ms;       /* when to tell again; 0: not */
    uint64_t look_ms;       /* when to look again; 0: not */
    uint64_t looked_ms;     /* when it was done last */
    uint64_t hurry_ms;      /* when the look under way goes on at once, since what is
                               watched has changed; 0: not */
    uint64_t hurried_ms;    /* when it did last */
    int64_t slice_ms;       /* of the last look, while the cluster was not known */
    unsigned rounds;        /* that have failed in the slices so far */
    uint64_t said_ms;       /* when a line of progress was written */
    mu_error last;          /* why the cluster was not known at the last look */
    char trouble[2][512];   /* the failures that were logged: of looking, of telling */
    unsigned handles;
    bool closing;
    bool withdraws;
    int64_t withdraw_ms;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void next(struct mu__finder *finder);

static uint64_t now_ms(const struct mu__finder *finder)
{
    return uv_now(finder->config.loop);
}

static void on_timer(uv_timer_t *timer)
{
    next(timer->data);
}

static void wait_until(struct mu__finder *finder, uint64_t due_ms)
{
    uint64_t now = now_ms(finder);

    (void)uv_timer_start(&finder->timer, on_timer, due_ms > now ? due_ms - now : 0, 0);
}

static int64_t left_ms(const struct mu__finder *finder)
{
    uint64_t spent_ms = now_ms(finder) - finder->began_ms;

    if (finder->config.timeout_ms < 0)
        return -1;
    return spent_ms >= (uint64_t)finder->config.timeout_ms
               ? 0
               : finder->config.timeout_ms - (int64_t)spent_ms;
}

/* ---- Words ---- */

static void say(struct mu__finder *finder, int level, const char *line)
{
    finder->config.log(finder->config.owner, level, line);
}

static void on_progress(void *owner, const char *line)
{
    struct mu__finder *finder = owner;

    if (finder->said_ms != 0 && now_ms(finder) - finder->said_ms < PROGRESS_MS)
        return;
    finder->said_ms = now_ms(finder);
    say(finder, finder->is_known ? MU_LOG_DEBUG : MU_LOG_INFO, line);
}

enum { OF_LOOKING, OF_TELLING };

/* Once for each kind of failure, until it works again. Numbers in the words do not make
 * another kind. */
static bool is_same_trouble(const char *a, const char *b)
{
    for (; *a != '\0' || *b != '\0'; a += *a != '\0', b += *b != '\0') {
        while (*a >= '0' && *a <= '9')
            a++;
        while (*b >= '0' && *b <= '9')
            b++;
        if (*a != *b)
            return false;
        if (*a == '\0')
            return true;
    }
    return true;
}

static void say_trouble(struct mu__finder *finder, unsigned which, const mu_error *error)
{
    static const char *const words[] = {
        "the cluster cannot be looked at, the last one known stands",
        "the others cannot be told where this task is",
    };
    char line[640];

    if (is_same_trouble(finder->trouble[which], error->message))
        return;
    (void)snprintf(finder->trouble[which], sizeof finder->trouble[which], "%s",
                   error->message);
    (void)snprintf(line, sizeof line, "%s: %s", words[which], error->message);
    say(finder, error->code == -MU_EEXISTS ? MU_LOG_ERROR : MU_LOG_WARN, line);
}

static void forget_trouble(struct mu__finder *finder, unsigned which)
{
    static const char *const words[] = {"the cluster can be looked at again",
                                        "the others can be told again"};

    if (finder->trouble[which][0] == '\0')
        return;
    finder->trouble[which][0] = '\0';
    say(finder, MU_LOG_INFO, words[which]);
}

/* ---- One evaluation ---- */

static void fail(struct mu__finder *finder, const mu_error *error)
{
    finder->has_failed = true;
    finder->config.failed(finder->config.owner, error);
}

static int start(struct mu__finder *finder, enum mu__resolving_what what,
                 int64_t timeout_ms,
                 void (*done)(void *owner, struct mu__resolved *resolved),
                 struct mu__resolving **ret_resolving)
{
    const struct mu__resolving_config config = {
        .loop = finder->config.loop,
        .asker = mu__asker_uv_asker(finder->asker),
        .resolver = finder->config.resolver,
        .what = what,
        .announcement = &finder->announcement,
        .timeout_ms = timeout_ms,
        .pause_most_ms = finder->tells ? LOOK_MOST_MS : 0,
        .whole_ms = finder->is_known ? 0 : left_ms(finder),
        .rounds_before = what == MU__RESOLVING_RESOLVE ? finder->rounds : 0,
        .done = done,
        .progress = on_progress,
        .owner = finder,
    };

    assert(*ret_resolving == NULL);
    return mu__resolving_start(&config, ret_resolving);
}

/* When to try again: while the cluster is not known, not at all. */
static uint64_t without_memory(struct mu__finder *finder)
{
    mu_error error;

    if (finder->is_known)
        return now_ms(finder) + AGAIN_MS;
    (void)mu_error_set(&error, -MU_ENOMEM, "no memory to ask the resolver");
    fail(finder, &error);
    return 0;
}

/* Looks come in slices, each of which says how long it was tried: it is the whole that
 * counts. */
static void fail_late(struct mu__finder *finder)
{
    char *tried = strstr(finder->last.message, "; tried for ");
    char spent[48];
    mu_error error;

    if (tried != NULL)
        *tried = '\0';
    mu__retry_time(now_ms(finder) - finder->began_ms, spent, sizeof spent);
    (void)mu_error_set(&error, -MU_EDEADLINE, "%s; tried for %s", finder->last.message,
                       spent);
    fail(finder, &error);
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

/* While others are waited for a look is a row of rounds with pauses: the pause ends. */
static void hurry_soon(struct mu__finder *finder)
{
    uint64_t now = now_ms(finder);

    if (finder->looking == NULL || finder->hurry_ms != 0)
        return;
    finder->hurry_ms = latest(now + SETTLE_MS, finder->hurried_ms + HURRIED_MS);
    next(finder);
}

static void on_change(void *owner)
{
    struct mu__finder *finder = owner;
    uint64_t due_ms = latest(now_ms(finder) + SETTLE_MS, finder->looked_ms + BETWEEN_MS);

    if (finder->closing)
        return;
    finder->has_changed = true;
    if (!finder->is_known) {
        hurry_soon(finder);
        return;
    }
    if (finder->look_ms == 0 || due_ms >= finder->look_ms)
        return;
    finder->look_ms = due_ms;
    next(finder);
}

/* Before each look: what changes from now on is looked at again. */
static void watch(struct mu__finder *finder)
{
    const char *path;
    size_t count = 0;

    for (; (path = mu__resolver_watched_path(finder->config.resolver, count)) != NULL;
         count++)
        mu__path_watch_start(&finder->watches[count], path);
    for (size_t i = count; i < MU__WATCHED_PATHS_MAX; i++)
        mu__path_watch_stop(&finder->watches[i]);
}

static void hurry(struct mu__finder *finder)
{
    watch(finder);
    finder->hurry_ms = 0;
    finder->hurried_ms = now_ms(finder);
    mu__resolving_hurry(finder->looking);
}

/* ---- Steps ---- */

/* Whether the others have forgotten this task. */
static bool is_forgotten(const struct mu__finder *finder, const mu_resolution *found)
{
    const char *type = finder->type[0] != '\0' ? finder->type : found->task_type;

    return finder->tells && finder->has_told && type[0] != '\0' &&
           finder->announcement.index >= 0 && found->cluster != NULL &&
           mu_cluster_address(found->cluster, type, finder->announcement.index) == NULL;
}

/* What has changed while it was looked at may have been read before. */
static void look_again_soon(struct mu__finder *finder)
{
    uint64_t due_ms = finder->looked_ms + BETWEEN_MS;

    if (finder->has_changed && finder->is_known && finder->look_ms > due_ms)
        finder->look_ms = due_ms;
}

/* What this task told has ended, since nobody kept it for a while: it stood still, or
 * what it is told to did. It is told anew, and until then the last cluster stands: a task
 * that lives is not taken out by its own silence. */
static void tell_anew(struct mu__finder *finder, mu_resolution *found)
{
    mu_cluster_free(found->cluster);
    (void)mu_error_set(&finder->last, -MU_EUNAVAILABLE,
                       "this task is not there any more, and is told anew");
    if (finder->is_known)
        say_trouble(finder, OF_LOOKING, &finder->last);
    else
        on_progress(finder, finder->last.message);
    finder->tell_ms = now_ms(finder);
    finder->look_ms = now_ms(finder) + AGAIN_MS;
}

static void on_looked(void *owner, struct mu__resolved *resolved)
{
    struct mu__finder *finder = owner;
    uint32_t watch_ms = mu__resolver_watch_ms(finder->config.resolver);

    finder->looking = NULL;
    finder->looked_ms = now_ms(finder);
    finder->rounds += resolved->rounds;
    if (resolved->code == 0 && is_forgotten(finder, &resolved->resolution)) {
        tell_anew(finder, &resolved->resolution);
    } else if (resolved->code == 0) {
        finder->is_known = true;
        forget_trouble(finder, OF_LOOKING);
        finder->look_ms = watch_ms == 0 ? 0 : now_ms(finder) + watch_ms;
        finder->config.found(finder->config.owner, &resolved->resolution);
    } else if (finder->is_known) {
        say_trouble(finder, OF_LOOKING, &resolved->error);
        finder->look_ms = now_ms(finder) + (watch_ms == 0 ? AGAIN_MS : watch_ms);
    } else if (is_passing(resolved->code) && finder->tells) {
        finder->last = resolved->error;
        on_progress(finder, resolved->error.message);
    } else {
        fail(finder, &resolved->error);
    }
    look_again_soon(finder);
    next(finder);
}

/* What could neither be told nor looked at can be told: so it can be looked at. */
static void look_when_back(struct mu__finder *finder)
{
    if (finder->is_known && finder->trouble[OF_TELLING][0] != '\0' &&
        finder->trouble[OF_LOOKING][0] != '\0')
        finder->look_ms = now_ms(finder);
}

static void on_told(void *owner, struct mu__resolved *resolved)
{
    struct mu__finder *finder = owner;

    finder->telling = NULL;
    if (resolved->code == 0) {
        look_when_back(finder);
        forget_trouble(finder, OF_TELLING);
        finder->announcement.index = resolved->task_index;
        finder->has_told = true;
        finder->tell_ms = resolved->again_ms == 0 ? 0
                                                  : now_ms(finder) + resolved->again_ms;
    } else if (finder->has_told && (finder->is_known || is_passing(resolved->code))) {
        say_trouble(finder, OF_TELLING, &resolved->error);
        finder->tell_ms = now_ms(finder) + AGAIN_MS;
    } else if (!finder->closing) {
        fail(finder, &resolved->error);
    }
    next(finder);
}

/* Find out where this task listens, and then tell it. */
static void begin_telling(struct mu__finder *finder)
{
    mu_error error;

    if (finder->address[0] == '\0' &&
        finder->config.listen(finder->config.owner, &error, finder->address) != 0) {
        fail(finder, &error);
        return;
    }
    finder->tells = true;
    finder->tell_ms = finder->has_told ? now_ms(finder) + AGAIN_MS : now_ms(finder);
}

static void on_detected(void *owner, struct mu__resolved *resolved)
{
    struct mu__finder *finder = owner;

    finder->looking = NULL;
    if (resolved->code != 0)
        fail(finder, &resolved->error);
    else if (mu__resolver_announces(finder->config.resolver))
        begin_telling(finder);
    next(finder);
}

static void on_part_closed(struct mu__finder *finder)
{
    void (*closed)(void *arg) = finder->closed;
    void *arg = finder->closed_arg;

    if (--finder->handles > 0)
        return;
    free(finder);
    closed(arg);
}

static void on_handle_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static void on_asker_closed(void *arg)
{
    on_part_closed(arg);
}

static void close_all(struct mu__finder *finder)
{
    finder->handles = 2 + MU__WATCHED_PATHS_MAX;
    uv_close((uv_handle_t *)&finder->timer, on_handle_closed);
    for (size_t i = 0; i < MU__WATCHED_PATHS_MAX; i++)
        uv_close((uv_handle_t *)&finder->watches[i].event, on_handle_closed);
    mu__asker_uv_close(finder->asker, on_asker_closed, finder);
}

static void on_withdrawn(void *owner, struct mu__resolved *resolved)
{
    struct mu__finder *finder = owner;

    finder->telling = NULL;
    if (resolved->code != 0)
        say_trouble(finder, OF_TELLING, &resolved->error);
    close_all(finder);
}

/* Short at first, so that the pauses within one do not grow; then longer, since a source
 * may need its time: an endpoint that hangs is before one that answers. */
static int64_t next_slice(int64_t last_ms)
{
    if (last_ms == 0)
        return SLICE_FIRST_MS;
    return 2 * last_ms < SLICE_MOST_MS ? 2 * last_ms : SLICE_MOST_MS;
}

static void look(struct mu__finder *finder)
{
    int64_t timeout_ms = finder->is_known ? 0 : left_ms(finder);

    watch(finder);
    finder->has_changed = false;
    finder->hurry_ms = 0;
    if (!finder->is_known && finder->tells) {
        if (finder->last.code != 0 && timeout_ms >= 0 && timeout_ms < LATE_MS) {
            fail_late(finder);
            return;
        }
        finder->slice_ms = next_slice(finder->slice_ms);
        if (timeout_ms < 0 || timeout_ms > finder->slice_ms)
            timeout_ms = finder->slice_ms;
    }
    if (start(finder, MU__RESOLVING_RESOLVE, timeout_ms, on_looked, &finder->looking) !=
        0)
        finder->look_ms = without_memory(finder);
}

static void tell(struct mu__finder *finder)
{
    if (start(finder, MU__RESOLVING_ANNOUNCE, finder->is_known ? 0 : left_ms(finder),
              on_told, &finder->telling) != 0)
        finder->tell_ms = without_memory(finder);
}

static void close_next(struct mu__finder *finder)
{
    bool withdraws = finder->withdraws && finder->has_told;

    finder->withdraws = false;
    (void)uv_timer_stop(&finder->timer);
    if (!withdraws || start(finder, MU__RESOLVING_WITHDRAW, finder->withdraw_ms,
                            on_withdrawn, &finder->telling) != 0)
        close_all(finder);
}

/* Telling does not wait for a look, however long that takes: leases end. The first look
 * waits until this task was told, since it may be all that is there. */
static void go_on(struct mu__finder *finder)
{
    uint64_t now = now_ms(finder);

    if (finder->tells && finder->telling == NULL && finder->tell_ms != 0 &&
        finder->tell_ms <= now)
        tell(finder);
    if (finder->looking != NULL && finder->hurry_ms != 0 && finder->hurry_ms <= now)
        hurry(finder);
    if (finder->has_failed || finder->looking != NULL ||
        (finder->tells && !finder->has_told))
        return;
    if ((!finder->is_known || finder->look_ms != 0) && finder->look_ms <= now)
        look(finder);
}

static void wait_for_next(struct mu__finder *finder)
{
    uint64_t due_ms = UINT64_MAX;

    if (finder->tells && finder->telling == NULL && finder->tell_ms != 0)
        due_ms = finder->tell_ms;
    if (finder->looking == NULL && finder->look_ms != 0 && finder->look_ms < due_ms)
        due_ms = finder->look_ms;
    if (finder->looking != NULL && finder->hurry_ms != 0 && finder->hurry_ms < due_ms)
        due_ms = finder->hurry_ms;
    if (due_ms != UINT64_MAX)
        wait_until(finder, due_ms);
}

/* What is due. */
static void next(struct mu__finder *finder)
{
    if (finder->handles > 0 || (finder->has_failed && !finder->closing))
        return;
    if (finder->closing) {
        if (finder->telling == NULL)
            close_next(finder);
        return;
    }
    go_on(finder);
    if (!finder->has_failed && !finder->closing)
        wait_for_next(finder);
}

/* ---- Life ---- */

static void begin(uv_timer_t *timer)
{
    struct mu__finder *finder = timer->data;

    if (start(finder, MU__RESOLVING_DETECT, finder->is_known ? 0 : left_ms(finder),
              on_detected, &finder->looking) != 0)
        (void)without_memory(finder);
}

/* It was told before, so others wait for the next time; and the watched paths are found
 * out by looking. */
static void begin_known(uv_timer_t *timer)
{
    struct mu__finder *finder = timer->data;

    finder->tells = finder->has_told;
    finder->tell_ms = now_ms(finder);
    finder->look_ms =
        mu__resolver_watch_ms(finder->config.resolver) == 0 ? 0 : now_ms(finder);
    next(finder);
}

static void copy_announcement(struct mu__finder *finder, const mu_announcement *from)
{
    (void)snprintf(finder->type, sizeof finder->type, "%s", from->type);
    (void)snprintf(finder->address, sizeof finder->address, "%s",
                   from->address);
    (void)snprintf(finder->incarnation, sizeof finder->incarnation, "%s",
                   from->incarnation);
    (void)snprintf(finder->cluster_name, sizeof finder->cluster_name, "%s",
                   from->cluster_name);
    finder->announcement = (mu_announcement){
        .cluster_name = finder->cluster_name,
        .type = finder->type,
        .index = from->index,
        .address = finder->address,
        .incarnation = finder->incarnation,
    };
}

static void on_left_behind(void *owner, const char *line)
{
    say(owner, MU_LOG_WARN, line);
}

int mu__finder_open(const struct mu__finder_config *config, mu_error *ret_error,
                    struct mu__finder **ret_finder)
{
    struct mu__finder *finder = calloc(1, sizeof *finder);

    if (finder == NULL || mu__asker_uv_open(config->loop, &finder->asker) != 0) {
        free(finder);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a resolver's asker");
    }
    finder->config = *config;
    finder->config.announcement = NULL;
    copy_announcement(finder, config->announcement);
    if (config->is_known)
        mu__asker_uv_wait_for_calls(finder->asker, MU_RESOLVER_CLOSE_TIMEOUT_MS,
                                    on_left_behind, finder);
    finder->is_known = config->is_known;
    finder->has_told = config->is_known && finder->address[0] != '\0';
    uv_update_time(config->loop);
    finder->began_ms = now_ms(finder);
    (void)uv_timer_init(config->loop, &finder->timer);
    for (size_t i = 0; i < MU__WATCHED_PATHS_MAX; i++)
        mu__path_watch_init(&finder->watches[i], config->loop, on_change, finder);
    finder->timer.data = finder;
    (void)uv_timer_start(&finder->timer, config->is_known ? begin_known : begin, 0, 0);
    *ret_finder = finder;
    return 0;
}

int mu__finder_index(const struct mu__finder *finder)
{
    return finder->announcement.index;
}

bool mu__finder_may_have_told(const struct mu__finder *finder)
{
    return finder->has_told || finder->telling != NULL;
}

static void on_told_too_long(uv_timer_t *timer)
{
    struct mu__finder *finder = timer->data;

    say(finder, MU_LOG_WARN,
        "what was told last is not taken back, since nothing was answered to it: others "
        "may look for this task for a while");
    mu__resolving_cancel(finder->telling);
    finder->telling = NULL;
    next(finder);
}

/* An announcement that is under way comes to its end first: what it writes last would
 * stay behind what is taken back. */
void mu__finder_close(struct mu__finder *finder, bool withdraws, int64_t timeout_ms,
                      void (*closed)(void *arg), void *arg)
{
    assert(!finder->closing);
    finder->closing = true;
    finder->withdraws = withdraws;
    finder->withdraw_ms = timeout_ms;
    finder->closed = closed;
    finder->closed_arg = arg;
    mu__resolving_cancel(finder->looking);
    finder->looking = NULL;
    if (finder->telling != NULL && withdraws) {
        (void)uv_timer_start(&finder->timer, on_told_too_long, (uint64_t)timeout_ms, 0);
        return;
    }
    mu__resolving_cancel(finder->telling);
    finder->telling = NULL;
    wait_until(finder, now_ms(finder));
}
