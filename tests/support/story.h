/* What stories in virtual time share. A frame takes 10 ms, a dial 20 ms, news of a broken
 * connection 10 ms; heartbeats come every 100 ms, silence of 500 ms is death. A cluster
 * is up at 160 ms; what a program schedules then begins 10 ms later on a worker, and 20
 * ms later if the program is a client's. Functions take 10 ms unless the story says so,
 * and do what they do at the end of that time. */
#ifndef MU_TESTS_STORY_H
#define MU_TESTS_STORY_H

#include "actors/client/future.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/references.h"
#include "tests/sim/cluster.h"
#include "tests/support/test.h"

#define BEGIN(...) story_begin(&(struct cluster_options){__VA_ARGS__})
#define MAKE(...) cluster_new(1, &(struct cluster_options){__VA_ARGS__})
#define ASK(...) (&(struct cluster_ask){__VA_ARGS__})

/* Turns of two messages change what happens first in one millisecond; stories that tell
 * that order are not told in a tiny build. */
#ifdef MUSTER_TINY
#define NEEDS_LONG_TURNS(cluster) \
    do {                          \
        cluster_free(cluster);    \
        skip();                   \
    } while (0)
#else
#define NEEDS_LONG_TURNS(cluster) ((void)(cluster))
#endif

/* When the trace begins: all are linked by then. */
enum { STORY_BEGINS_MS = 160 };

/* Start all, until they are linked; the trace begins then. */
static inline void story_settle(struct cluster *cluster)
{
    struct sim_range usual = sim_settings(cluster->sim)->connect;

    sim_settings(cluster->sim)->connect = (struct sim_range){15000, 15000};
    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    sim_settings(cluster->sim)->connect = usual;
    sim_run_until(cluster->sim, STORY_BEGINS_MS);
    sim_trace_level(cluster->sim, MU__LOG_DEBUG);
    (void)sim_trace(cluster->sim);
}

static inline struct cluster *story_begin(const struct cluster_options *options)
{
    struct cluster *cluster = cluster_new(1, options);

    story_settle(cluster);
    return cluster;
}

/* Every story ends with nothing left over and nothing broken. */
static inline void end(struct cluster *cluster)
{
    sim_run_until(cluster->sim, sim_now_ms(cluster->sim) + 20000);
    assert_string_equal(cluster_check_rest(cluster), "");
    cluster_free(cluster);
}

static inline void run_for(struct cluster *cluster, uint64_t ms)
{
    sim_run_until(cluster->sim, sim_now_ms(cluster->sim) + ms);
}

static inline void run_until(struct cluster *cluster, uint64_t ms)
{
    assert_true(sim_now_ms(cluster->sim) <= ms);
    sim_run_until(cluster->sim, ms);
}

static inline void set_work_ms(struct cluster *cluster, uint64_t ms)
{
    sim_settings(cluster->sim)->work = (struct sim_range){ms * 1000, ms * 1000};
}

static inline void open_at(struct cluster_task *task)
{
    assert_int_equal(cluster_wait(cluster_open(task, -1)), 0);
}

static inline void schedule(struct cluster_task *task, const char *function, size_t count,
                            struct cluster_closure **ret_closures)
{
    for (size_t i = 0; i < count; i++)
        ret_closures[i] = cluster_schedule(task, function);
}

/* A closure whose only argument is a number. */
static inline struct cluster_closure *call_with(struct cluster_task *task,
                                                const char *function, int64_t number,
                                                const struct cluster_ask *ask)
{
    return cluster_schedule_args(task, function, mu_value_int(number), ask);
}

static inline int join(struct cluster_task *task)
{
    return cluster_wait(cluster_ask(task, MU__CLIENT_JOIN, -1));
}

/* The error that a join raises; none: its code is 0. */
static inline mu_error raised(struct cluster_task *task)
{
    struct cluster_call *call = cluster_ask(task, MU__CLIENT_JOIN, -1);
    mu_error none = {.code = 0};

    return cluster_wait(call) == 0 ? none : call->of.call.error;
}

/* Joins, and says how long after `since_ms` that was over. */
static inline uint64_t joined_after(struct cluster_task *task, uint64_t since_ms)
{
    struct cluster_call *call = cluster_ask(task, MU__CLIENT_JOIN, -1);

    assert_int_equal(cluster_wait(call), 0);
    return call->done_ms - since_ms;
}

static inline void expect_squares(struct cluster_closure *const *closures, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(cluster_result(closures[i]), cluster_square(closures[i]->key));
}

static inline bool is_resolved(const struct cluster_closure *closure)
{
    return mu_remote_value_state(closure->future) != MU_REMOTE_NOT_READY;
}

/* The error of a closure that has one. */
static inline const mu_error *error_of(const struct cluster_closure *closure)
{
    assert_true(is_resolved(closure));
    assert_non_null(closure->future->error);
    return closure->future->error;
}

static inline void expect_counts(const struct cluster_task *task, uint64_t finished,
                                 uint64_t failed, uint64_t cancelled)
{
    const struct mu__session *shared = &task->session->shared;

    assert_int_equal(cluster_count(&shared->finished), finished);
    assert_int_equal(cluster_count(&shared->failed), failed);
    assert_int_equal(cluster_count(&shared->cancelled), cancelled);
}

static inline uint64_t retried(const struct cluster_task *task)
{
    return cluster_count(&task->session->shared.retried);
}

/* The chief's status, checked; the caller's. */
static inline mu_value *status_of(struct cluster_task *task)
{
    struct cluster_call *call = cluster_ask(task, MU__CLIENT_STATUS, 1000);

    assert_int_equal(cluster_wait(call), 0);
    cluster_check_status(task->cluster, call->of.client.status);
    return call->of.client.status;
}

/* A number in it, "closures.forgotten". */
static inline int64_t status_number(struct cluster_task *task, const char *part,
                                    const char *key)
{
    mu_value *status = status_of(task);
    int64_t number = -1;

    (void)mu_value_get_int(mu_value_find(mu_value_find(status, part), key), &number);
    mu_value_free(status);
    return number;
}

/* A number of one worker in it; -1 when that worker is not up. */
static inline int64_t worker_number(struct cluster_task *task, int64_t worker,
                                    const char *key)
{
    mu_value *status = status_of(task);
    const mu_value *tasks = mu_value_find(status, "tasks");
    int64_t number = -1;

    for (size_t i = 0; i < mu_value_count(tasks); i++) {
        const mu_value *at = mu_value_at(tasks, i);
        int64_t index = -1;

        (void)mu_value_get_int(mu_value_find(at, "index"), &index);
        if (mu_value_find(at, "window") != NULL && index == worker)
            (void)mu_value_get_int(mu_value_find(at, key), &number);
    }
    mu_value_free(status);
    return number;
}

static inline void expect_text(const mu_value *map, const char *key, const char *text)
{
    const char *found = "";
    size_t size;

    assert_int_equal(mu_value_get_string(mu_value_find(map, key), &found, &size), 0);
    assert_string_equal(found, text);
}

/* What the chief says about a closure: its state, and what it waits for. */
static inline void expect_explained(struct cluster_closure *closure, const char *state,
                                    const char *waits_for)
{
    struct cluster_call *call = cluster_explain(closure->task, closure, NULL);

    assert_int_equal(cluster_wait(call), 0);
    expect_text(call->of.client.status, "state", state);
    expect_text(call->of.client.status, "waits_for", waits_for);
    mu_value_free(call->of.client.status);
}

/* A message that is in an actor's mailbox, as if `from` had sent it. */
static inline void forge(struct cluster_task *task, mu__pid from, uint32_t to,
                         uint16_t kind, const void *body, size_t size)
{
    struct mu__world *world = task->member.world;
    struct mu__msg *msg = mu__msg_heap(kind, size);

    assert_non_null(msg);
    memcpy(msg->body, body, size);
    msg->from = from;
    msg->to.actor = to;
    assert_int_equal(mu__kernel_deliver(task->member.kernel, msg), 0);
    world->ops->wake_at(world, 0);
}

#define expect_trace(cluster, text) assert_string_equal(sim_trace((cluster)->sim), text)

/* ---- Functions ---- */

/* The argument of a run that has one number. */
static inline int64_t number_of(mu_run *run)
{
    int64_t number = -1;

    (void)mu_value_get_int(mu_run_args(run), &number);
    return number;
}

static inline void note_run(struct cluster_task *task, const char *function,
                            int64_t number)
{
    sim_note(task->cluster->sim, MU__LOG_DEBUG, "%s runs %s %lld", task->name, function,
             (long long)number);
}

#endif
