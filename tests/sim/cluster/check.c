/* What must be true of a cluster at any moment, and at the end. */
#include "tests/sim/cluster.h"

#include "actors/client/future.h"
#include "actors/messages.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CHECK_EVERY = 256 };

uint64_t cluster_count(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void cluster_break(struct cluster *cluster, const char *format, ...)
{
    va_list args;

    if (cluster->broken[0] != '\0')
        return;
    va_start(args, format);
    (void)vsnprintf(cluster->broken, sizeof cluster->broken, format, args);
    va_end(args);
}

/* ---- One closure ---- */

static bool returns_square(const struct cluster_closure *closure)
{
    return strcmp(closure->function, "square") == 0 ||
           strcmp(closure->function, "quick") == 0 ||
           strcmp(closure->function, "patient") == 0 ||
           strcmp(closure->function, "write") == 0 ||
           strcmp(closure->function, "sum") == 0;
}

static void check_finished(struct cluster *cluster, const struct cluster_closure *closure)
{
    if (closure->key < 0)
        return;
    if (cluster->runs[closure->key] == 0)
        cluster_break(cluster, "%s %" PRId64 " is finished but never ran",
                      closure->function, closure->key);
    if (!returns_square(closure))
        cluster_break(cluster, "%s %" PRId64 " is finished: it should have failed",
                      closure->function, closure->key);
    else if (closure->content_seen &&
             cluster_result(closure) != cluster_square(closure->key))
        cluster_break(cluster, "%s %" PRId64 " gave %" PRId64, closure->function,
                      closure->key, cluster_result(closure));
}

/* Failures that are of no function: given up, unknown there, or late. */
static bool may_fail_with(const struct cluster_closure *closure, const mu_error *error)
{
    int code = error->code;

    if (closure->task->cluster->options.allocs_fail &&
        (code == -MU_ENOMEM || code == -MU_EDATALOSS ||
         (code == -MU_EEXHAUSTED && error->attempt > 0)))
        return true;
    switch (-code) {
    case MU_EABORTED:
    case MU_ENOTFOUND:
        return true;
    case MU_EDEADLINE:
        return closure->ask.deadline_ms > 0 || closure->ask.run_timeout_ms > 0;
    case MU_EUNAVAILABLE:
        return strcmp(closure->function, "write") == 0 ||
               closure->task->cluster->options.node.recovery_ms != 0;
    default:
        return closure->refused;
    }
}

/* What a journal has no room for never ran. */
static void check_refused(struct cluster *cluster, const struct cluster_closure *closure)
{
    if (closure->refused && closure->key >= 0 && closure->ask.name == NULL &&
        cluster->runs[closure->key] != 0)
        cluster_break(cluster, "%s %" PRId64 " was refused by a full disk, but ran",
                      closure->function, closure->key);
}

static void check_failed(struct cluster *cluster, struct cluster_closure *closure)
{
    const mu_error *error = closure->future->error;
    char words[32];

    closure->refused = error->code == -MU_EEXHAUSTED && error->attempt == 0 &&
                       error->kind != MU_ERROR_LIMIT;
    check_refused(cluster, closure);
    (void)snprintf(words, sizeof words, "bad %" PRId64, closure->key);
    if (closure->key < 0 || may_fail_with(closure, error))
        return;
    if (strcmp(closure->function, "fail") != 0)
        cluster_break(cluster, "%s %" PRId64 " failed: %s", closure->function,
                      closure->key, error->message);
    else if (strcmp(error->message, words) != 0)
        cluster_break(cluster, "fail %" PRId64 " says \"%s\"", closure->key,
                      error->message);
}

/* A result that a worker keeps is not there yet. It may come later, or turn out to be
 * lost for good. */
static void look_at_content(struct cluster *cluster, struct cluster_closure *closure)
{
    if (closure->content_seen || !closure->finished ||
        mu__future_is(closure->future, MU__REMOTE_PINNED))
        return;
    closure->content_seen = true;
    if (closure->future->error == NULL)
        check_finished(cluster, closure);
    else if (closure->future->error->code != -MU_EUNAVAILABLE &&
             closure->future->error->code != -MU_EABORTED && !closure->session->over)
        cluster_break(cluster, "%s %" PRId64 " was kept, and is lost: %s",
                      closure->function, closure->key, closure->future->error->message);
}

static void check_closure(struct cluster *cluster, struct cluster_closure *closure)
{
    int state = (int)mu_remote_value_state(closure->future);

    look_at_content(cluster, closure);
    if (state == closure->state)
        return;
    if (closure->state != MU_REMOTE_NOT_READY)
        cluster_break(cluster, "%s %" PRId64 " was resolved twice: state %d, then %d",
                      closure->function, closure->key, closure->state, state);
    closure->state = state;
    if (state == MU_REMOTE_ABORTED)
        return;
    /* A kept one may have been lost since we looked last. */
    closure->finished =
        closure->future->error == NULL || closure->future->held.number != 0;
    look_at_content(cluster, closure);
    if (closure->finished && !closure->content_seen)
        check_finished(cluster, closure);
    else if (!closure->finished)
        check_failed(cluster, closure);
}

static uint64_t resolved_count(const struct mu__session *shared)
{
    return cluster_count(&shared->finished) + cluster_count(&shared->failed) +
           cluster_count(&shared->cancelled);
}

/* What the futures say against what the counters say. */
static void check_session(struct cluster *cluster, struct cluster_session *session)
{
    const struct mu__session *shared = &session->shared;
    uint64_t finished = 0;
    uint64_t failed = 0;
    uint64_t aborted = 0;
    uint64_t dropped = 0;

    for (size_t i = 0; i < session->closures_count; i++) {
        struct cluster_closure *closure = session->closures[i];

        if (closure->future == NULL) {
            dropped++;
            continue;
        }
        check_closure(cluster, closure);
        if (closure->state == MU_REMOTE_ABORTED)
            aborted++;
        else if (closure->finished)
            finished++;
        else if (closure->state == MU_REMOTE_READY)
            failed++;
    }
    if (session->over)
        return;
    if (finished > cluster_count(&shared->finished) ||
        failed > cluster_count(&shared->failed) ||
        aborted > cluster_count(&shared->cancelled) ||
        resolved_count(shared) > finished + failed + aborted + dropped)
        cluster_break(cluster,
                      "futures: %" PRIu64 " finished, %" PRIu64 " failed, %" PRIu64
                      " aborted, %" PRIu64 " dropped; counted %" PRIu64 ", %" PRIu64
                      ", %" PRIu64,
                      finished, failed, aborted, dropped,
                      cluster_count(&shared->finished), cluster_count(&shared->failed),
                      cluster_count(&shared->cancelled));
}

static void check_counts(struct cluster *cluster, struct cluster_session *session)
{
    const struct mu__session *shared = &session->shared;
    uint64_t resolved = resolved_count(shared);

    if (resolved != cluster_count(&shared->resolved))
        cluster_break(cluster,
                      "%" PRIu64 " resolved, but finished, failed and cancelled "
                      "are %" PRIu64,
                      cluster_count(&shared->resolved), resolved);
    if (atomic_load(&shared->phase) != MU__SESSION_FINE)
        session->troubled = true;
    if (resolved > cluster_count(&shared->scheduled))
        cluster_break(cluster, "%" PRIu64 " resolved, but %" PRIu64 " scheduled",
                      resolved, cluster_count(&shared->scheduled));
}

void cluster_check_event(struct sim *sim, void *arg)
{
    struct cluster *cluster = arg;

    (void)sim;
    if (cluster->checks++ % CHECK_EVERY == 0) {
        (void)cluster_check(cluster);
        return;
    }
    for (unsigned i = 0; i < cluster->programs_count; i++)
        if (cluster->programs[i]->session != NULL)
            check_counts(cluster, cluster->programs[i]->session);
    cluster_check_room(cluster);
}

const char *cluster_check(struct cluster *cluster)
{
    for (struct cluster_session *session = cluster->sessions; session != NULL;
         session = session->next) {
        if (!session->over)
            check_counts(cluster, session);
        check_session(cluster, session);
    }
    for (unsigned i = 0; i < cluster->programs_count; i++)
        cluster_check_client(cluster, cluster->programs[i]);
    cluster_check_room(cluster);
    cluster_check_supervisor(cluster, false);
    return cluster->broken;
}

/* The coordination service has two records that it writes again and again. */
static uint64_t kept_messages(const struct cluster_task *task)
{
    const mu__pid service = {MU__NODE_SELF, MU__COORDINATION};

    return mu__actor_state(task->member.kernel, service) == NULL ? 0 : 2;
}

static void check_task_rest(struct cluster *cluster, struct cluster_task *task)
{
    struct mu__kernel_counters counters;
    uint64_t live;

    if (!sim_alive(task->node))
        return;
    mu__kernel_counters(task->member.kernel, &counters);
    live = mu__kernel_pool(task->member.kernel)->live - kept_messages(task);
    if (counters.queued != 0)
        cluster_break(cluster, "%s: %" PRIu32 " messages in mailboxes", task->name,
                      counters.queued);
    if (live != counters.timers)
        cluster_break(cluster, "%s: %" PRIu64 " messages alive, %" PRIu32 " timers",
                      task->name, live, counters.timers);
    if (counters.dead_letters != 0)
        cluster_break(cluster, "%s: %" PRIu64 " dead letters", task->name,
                      counters.dead_letters);
}

/* Its program has cancelled it, or heard of an error, or is gone. */
static void check_aborted(struct cluster *cluster, const struct cluster_closure *closure)
{
    const struct cluster_session *session = closure->session;
    const mu_error *error = closure->future == NULL ? NULL : closure->future->error;

    if (closure->key < 0 || (error != NULL && error->code != -MU_ECANCELLED))
        return;
    if (closure->state == MU_REMOTE_ABORTED && !closure->cancelled && !session->over &&
        !session->closing && !session->troubled)
        cluster_break(cluster, "%s %" PRId64 " was aborted for no reason",
                      closure->function, closure->key);
}

/* An attempt runs at most once, and one that was given back does not: nothing ran more
 * often than its closure was sent. Who began anew, or ran twice at a time, is another
 * matter. */
static void check_attempts(struct cluster *cluster, const struct cluster_closure *closure)
{
    if (closure->future == NULL || closure->key < 0 || closure->ask.name != NULL ||
        closure->session->over || closure->state != MU_REMOTE_READY ||
        sim_lives(cluster->chief->node) > 1 || cluster->chief->journal.storage != NULL ||
        cluster->options.node.backup_percent != 0 ||
        (closure->ask.flags & MU__CLOSURE_KEEP) != 0 || closure->future->attempt == 0)
        return;
    if (cluster->runs[closure->key] > closure->future->attempt)
        cluster_break(cluster, "%s %" PRId64 " ran %d times in %" PRIu32 " attempts",
                      closure->function, closure->key, cluster->runs[closure->key],
                      closure->future->attempt);
}

static void check_session_rest(struct cluster *cluster,
                               const struct cluster_session *session)
{
    uint64_t scheduled = cluster_count(&session->shared.scheduled);
    uint64_t resolved = cluster_count(&session->shared.resolved);

    if (!session->over && scheduled != resolved)
        cluster_break(cluster, "%" PRIu64 " closures scheduled, %" PRIu64 " resolved",
                      scheduled, resolved);
    for (size_t i = 0; i < session->closures_count; i++) {
        check_refused(cluster, session->closures[i]);
        check_aborted(cluster, session->closures[i]);
        check_attempts(cluster, session->closures[i]);
    }
}

const char *cluster_check_rest(struct cluster *cluster)
{
    uint32_t queued;
    uint32_t in_flight;

    for (unsigned i = 0; i < cluster->tasks_count; i++)
        check_task_rest(cluster, &cluster->tasks[i]);
    for (struct cluster_session *session = cluster->sessions; session != NULL;
         session = session->next)
        check_session_rest(cluster, session);
    mu__supervisor_counts(mu__actor_state(cluster->chief->member.kernel,
                                          (mu__pid){0, MU__SUPERVISOR}),
                          &queued, &in_flight);
    if (queued != 0 || in_flight != 0)
        cluster_break(cluster,
                      "the supervisor holds %" PRIu32 " queued, %" PRIu32 " in flight",
                      queued, in_flight);
    cluster_check_supervisor(cluster, true);
    return cluster_check(cluster);
}

static void check_write(struct cluster *cluster, const struct cluster_closure *closure,
                        bool once)
{
    bool finished = closure->finished;
    int64_t runs = cluster->runs[closure->key];
    int64_t most = once && !cluster->loose[closure->key] && runs > 1 ? 1 : runs;
    int64_t item = cluster->counter.items[closure->key];

    if (item > most || item < (finished ? 1 : 0))
        cluster_break(cluster,
                      "write %" PRId64 " ran %" PRId64 " times and was%s "
                      "reported as finished: its item is %" PRId64,
                      closure->key, runs, finished ? "" : " not", item);
}

void cluster_check_writes(struct cluster *cluster, bool once)
{
    for (const struct cluster_session *session = cluster->sessions; session != NULL;
         session = session->next)
        for (size_t i = 0; i < session->closures_count; i++)
            if (strcmp(session->closures[i]->function, "write") == 0)
                check_write(cluster, session->closures[i], once);
}

static int64_t number_in(const mu_value *map, const char *key)
{
    int64_t number = 0;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

void cluster_check_status(struct cluster *cluster, const mu_value *status)
{
    static const char *const parts[] = {"finished",  "failed", "cancelled",
                                        "forgotten", "queued", "in_flight"};
    const mu_value *closures = mu_value_find(status, "closures");
    const mu_value *tasks = mu_value_find(status, "tasks");
    int64_t backups = number_in(closures, "backups_running");
    int64_t sum = 0;
    int64_t loads = 0;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        sum += number_in(closures, parts[i]);
    /* What is computed again is queued or in flight, and was finished before. */
    sum -= number_in(closures, "recomputing");
    if (sum != number_in(closures, "scheduled"))
        cluster_break(cluster,
                      "the status has %" PRId64 " scheduled, its parts are %" PRId64,
                      number_in(closures, "scheduled"), sum);
    for (size_t i = 0; i < mu_value_count(tasks); i++) {
        const mu_value *task = mu_value_at(tasks, i);

        loads += number_in(task, "in_flight");
        /* A window that follows the run times may shrink under what is in flight. */
        if (!cluster->options.adaptive &&
            number_in(task, "in_flight") > number_in(task, "window"))
            cluster_break(cluster,
                          "a worker has %" PRId64 " in flight, its window is %" PRId64,
                          number_in(task, "in_flight"), number_in(task, "window"));
    }
    if (loads != number_in(closures, "in_flight") + backups)
        cluster_break(cluster,
                      "the workers' loads are %" PRId64 ", in flight are %" PRId64
                      " and %" PRId64 " backups",
                      loads, number_in(closures, "in_flight"), backups);
}
