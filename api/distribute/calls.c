/* The calls of one run. Each thread holds the run's memory, so that one that does not
 * return can be left behind. */
#include "api/distribute/internal.h"

#include "node/deadline.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

/* ---- errors ---- */

void mu__distribution_failed(struct mu__distribution *run, const mu_error *why)
{
    bool first;

    uv_mutex_lock(&run->lock);
    first = run->first.code == 0;
    if (first)
        run->first = *why;
    uv_mutex_unlock(&run->lock);
    if (!first)
        return;
    atomic_store(&run->over, true);
    if (run->barrier != NULL)
        mu__thread_barrier_break(run->barrier, why);
}

int mu__distribution_error(struct mu__distribution *run, mu_error *ret_error)
{
    mu_error first;

    uv_mutex_lock(&run->lock);
    first = run->first;
    uv_mutex_unlock(&run->lock);
    if (first.code != 0 && ret_error != NULL)
        *ret_error = first;
    return first.code;
}

/* ---- one call ---- */

static void end_call(struct mu_context *context)
{
    struct mu__distribution *run = context->run;

    uv_mutex_lock(&run->lock);
    context->ended = true;
    uv_cond_broadcast(&run->moved);
    uv_mutex_unlock(&run->lock);
}

static void report_call(struct mu_context *context, int rv, const mu_error *error)
{
    struct mu__distribution *run = context->run;

    if (run->reports)
        mu__tasks_report(run, context, error);
    mu__result_keep(run, context->name, mu__result_make(rv, context->result, error));
}

/* A failed call breaks the barrier before it leaves, so that the others get its error. */
static void make_call(struct mu_context *context)
{
    struct mu__distribution *run = context->run;
    mu_error error = {0};
    int rv = mu__context_call(context, &error);

    if (rv != 0)
        mu__distribution_failed(run, &error);
    else if (run->barrier != NULL && context->plan->meets)
        mu__thread_barrier_leave(run->barrier, context->participant);
    report_call(context, rv, &error);
    end_call(context);
}

static void run_call_thread(void *arg)
{
    struct mu_context *context = arg;
    struct mu__distribution *run = context->run;

    make_call(context);
    mu__distribution_unhold(run);
}

/* ---- waiting for threads ---- */

static bool all_have_ended(const struct mu__distribution *run, bool evaluates)
{
    for (size_t i = 0; i < run->plan.runs_count; i++)
        if (run->contexts[i].started && !run->contexts[i].ended &&
            run->plan.runs[i].evaluates == evaluates)
            return false;
    return true;
}

/* Wait for the calls that evaluate, or for the others: without an error for `timeout_ms`
 * (negative: without end); from the first error on, for end_timeout_ms. Lock held. */
static void await_ends(struct mu__distribution *run, bool evaluates, int64_t timeout_ms)
{
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);

    while (!all_have_ended(run, evaluates)) {
        if (deadline_ns == MU__NO_DEADLINE && run->first.code != 0)
            deadline_ns = mu__deadline_in(run->options.end_timeout_ms);
        if (!mu__deadline_wait(deadline_ns, &run->moved, &run->lock))
            return;
    }
}

/* The workers, then the evaluator, whose function learns by `trained` to return. */
static void await_all_calls(struct mu__distribution *run)
{
    uv_mutex_lock(&run->lock);
    await_ends(run, false, -1);
    atomic_store(&run->trained, true);
    await_ends(run, true, run->options.end_timeout_ms);
    uv_mutex_unlock(&run->lock);
}

static void leave_call_behind(struct mu__distribution *run, struct mu_context *context)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_EDEADLINE,
                       "%s did not come to its end within %" PRId64 " ms", context->name,
                       run->options.end_timeout_ms);
    error.kind = MU_ERROR_LIMIT;
    (void)snprintf(error.task, sizeof error.task, "%s", context->name);
    mu__distribution_say(run, MU_LOG_ERROR, "%s, and is left behind", error.message);
    mu__result_keep(run, context->name, mu__result_make(error.code, NULL, &error));
    mu__distribution_failed(run, &error);
}

/* Join the threads that have ended; returns how many have not. */
static size_t join_call_threads(struct mu__distribution *run)
{
    size_t left = 0;

    for (size_t i = 0; i < run->plan.runs_count; i++) {
        struct mu_context *context = &run->contexts[i];
        bool ended;

        if (!context->started)
            continue;
        uv_mutex_lock(&run->lock);
        ended = context->ended;
        uv_mutex_unlock(&run->lock);
        if (ended) {
            (void)uv_thread_join(&context->thread);
            continue;
        }
        leave_call_behind(run, context);
        (void)pthread_detach(context->thread);
        left++;
    }
    return left;
}

/* ---- all calls ---- */

static int start_call_thread(struct mu_context *context, mu_error *error)
{
    struct mu__distribution *run = context->run;

    atomic_fetch_add(&run->holds, 1);
    context->started = true;
    if (uv_thread_create(&context->thread, run_call_thread, context) == 0)
        return 0;
    context->started = false;
    atomic_fetch_sub(&run->holds, 1);
    return mu_error_set(error, -MU_EEXHAUSTED, "no thread can be started for %s",
                        context->name);
}

static size_t call_in_threads(struct mu__distribution *run)
{
    mu_error error;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < run->plan.runs_count; i++)
        rv = start_call_thread(&run->contexts[i], &error);
    if (rv != 0)
        mu__distribution_failed(run, &error);
    await_all_calls(run);
    return join_call_threads(run);
}

/* The run has failed elsewhere before this call was made: it ends with that error. */
static void refuse_call(struct mu_context *context)
{
    struct mu__distribution *run = context->run;
    mu_error error = {0};

    if (run->news == NULL || mu__distribution_error(run, NULL) != 0 ||
        !mu__tasks_failure(run, &error))
        return;
    mu__distribution_failed(run, &error);
    report_call(context, error.code, &error);
}

/* One after the other, until an error. */
static void call_in_turn(struct mu__distribution *run)
{
    size_t i = 0;

    for (; i < run->plan.runs_count && !atomic_load(&run->over); i++)
        make_call(&run->contexts[i]);
    if (i < run->plan.runs_count)
        refuse_call(&run->contexts[i]);
}

int mu__distribution_call_all(struct mu__distribution *run, mu_error *ret_error,
                              size_t *ret_left)
{
    size_t left = 0;

    if (run->plan.threads)
        left = call_in_threads(run);
    else
        call_in_turn(run);
    *ret_left = left;
    return mu__distribution_error(run, ret_error);
}
