/* What independent tasks report to each other. All of it goes through the coordination
 * service: results and the first failure as keys, which stay for tasks that read them
 * late, and a barrier of the chief and all workers.
 *
 *     muster/distribute/RUN/failed            the first failure, as a result
 *     muster/distribute/RUN/gone              the first of chief and workers to end well
 *     muster/distribute/RUN/result/job:T/...  the result of each call
 *     muster/distribute/RUN/trained           the evaluator may return
 *     muster/distribute/ended                 the job is done, in clusters without a
 *                                             chief
 *
 * "failed" and "gone" are requested when a run begins, and each barrier waits for their
 * answers, too: no task waits there for one that has failed, or has ended and will not
 * come, whichever was first. */
#include "api/distribute/independent.h"
#include "actors/agent/calls.h"
#include "actors/job/job.h"
#include "actors/messages.h"
#include "api/internal.h"
#include "node/deadline.h"
#include "node/node.h"

#include "muster/coordination.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REGISTER_MS = 3600000, /* for the service's host to be there */
    FAILED_MS = 1000,      /* for a look at the key "failed", even after a timeout */
    RESULT_BYTES_MAX = 1 << 20
};

/* A get that waits for a key of another task; `about` is an index of news->heard. */
struct news_request {
    struct mu__task_news *news;
    int about;
};

/* ---- life ---- */

static struct mu__task_news *hold_news(struct mu__task_news *news)
{
    atomic_fetch_add(&news->holds, 1);
    return news;
}

static void release_news(struct mu__task_news *news)
{
    if (atomic_fetch_sub(&news->holds, 1) != 1)
        return;
    mu__lock_destroy(&news->lock, &news->moved);
    free(news->tasks);
    free(news);
}

static struct mu__task_news *news_new(struct mu__distribution *run)
{
    struct mu__task_news *news = calloc(1, sizeof *news);

    if (news == NULL)
        return NULL;
    news->tasks = mu__plan_tasks(run->cluster);
    if (news->tasks == NULL || mu__lock_init(&news->lock, &news->moved) != 0) {
        free(news->tasks);
        free(news);
        return NULL;
    }
    atomic_init(&news->holds, 1);
    news->run = run;
    (void)snprintf(news->prefix, sizeof news->prefix, "muster/distribute/%u",
                   run->number);
    return news;
}

void mu__tasks_key(const struct mu__task_news *news, const char *what, char *out)
{
    (void)snprintf(out, KEY_BYTES, "%s/%s", news->prefix, what);
}

/* ---- keys of other tasks ---- */

/* The error in a key's value; when it has none, of code `otherwise` (0: no error). */
static void read_result_error(const mu_kv_response *answer, int otherwise,
                              mu_error *ret_error)
{
    mu_value *result = NULL;

    *ret_error = (mu_error){0};
    if (mu__result_unpack(answer->value, answer->size, NULL, &result) == 0) {
        mu__result_error(result, ret_error);
        mu_value_free(result);
    }
    if (ret_error->code == 0 && otherwise != 0)
        (void)mu_error_set(ret_error, otherwise, "another task has failed");
}

static void note_failed(struct mu__task_news *news, const mu_kv_response *answer)
{
    read_result_error(answer, -MU_EABORTED, &news->why);
    if (news->run != NULL)
        atomic_store(&news->run->over, true);
}

static void note_trained(struct mu__task_news *news, const mu_kv_response *answer)
{
    (void)answer;
    if (news->run != NULL)
        atomic_store(&news->run->trained, true);
}

static void note_ended(struct mu__task_news *news, const mu_kv_response *answer)
{
    read_result_error(answer, 0, &news->job);
}

static void note_lost(struct mu__task_news *news, const mu_kv_response *answer)
{
    (void)snprintf(news->lost_task, sizeof news->lost_task, "%.*s",
                   (int)(answer->size < sizeof news->lost_task
                             ? answer->size
                             : sizeof news->lost_task - 1),
                   (const char *)answer->value);
}

/* On the loop's thread. A request that ends with an error counts for nothing: its node is
 * closing, or its agent in error, which the wait for the job shows, too. */
static void on_news_answer(void *user, const mu_kv_response *answer)
{
    static void (*const notes[NEWS_COUNT])(struct mu__task_news *,
                                           const mu_kv_response *) = {
        [NEWS_FAILED] = note_failed,
        [NEWS_TRAINED] = note_trained,
        [NEWS_ENDED] = note_ended,
        [NEWS_LOST] = note_lost,
    };
    struct news_request *request = user;
    struct mu__task_news *news = request->news;

    uv_mutex_lock(&news->lock);
    if (answer->code == 0 && !news->job_done) {
        news->heard[request->about] = true;
        notes[request->about](news, answer);
        uv_cond_broadcast(&news->moved);
    }
    uv_mutex_unlock(&news->lock);
    release_news(news);
    free(request);
}

static int listen_to(struct mu__distribution *run, const char *key, int about,
                     mu_error *ret_error)
{
    const mu_kv_request get = {
        .operation = MU_KV_GET,
        .flags = MU__KV_NEWS,
        .key = key,
        .timeout_ms = -1,
    };
    struct news_request *request = malloc(sizeof *request);
    int rv;

    if (request == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to hear of other tasks");
    *request = (struct news_request){hold_news(run->news), about};
    rv = mu__kv_post(run->node, &get, on_news_answer, request, NULL,
                     &run->news->requests[about]);
    if (rv == 0)
        return 0;
    release_news(request->news);
    free(request);
    return mu_error_set(ret_error, rv, "key \"%s\" cannot be asked for: %s", key,
                        mu_strerror(rv));
}

struct job_wait {
    struct mu__pending pending;
    struct mu__job_call call;
    struct mu__task_news *news;
};

/* Calls that still run are not needed any more; if the node is closing, their waits for
 * each other end, too. On the loop's thread. */
static void on_job_wait(struct mu__pending *pending)
{
    struct job_wait *wait = (struct job_wait *)pending;
    struct mu__task_news *news = wait->news;
    const mu_error *error = &wait->call.call.error;

    uv_mutex_lock(&news->lock);
    if (!news->heard[NEWS_ENDED])
        news->job = *error;
    news->job_done = true;
    uv_cond_broadcast(&news->moved);
    if (news->run != NULL)
        atomic_store(&news->run->over, true);
    if (news->run != NULL && error->code == -MU_ECLOSED)
        mu__distribution_failed(news->run, error);
    uv_mutex_unlock(&news->lock);
    release_news(news);
    free(wait);
}

int mu__tasks_begin_job_wait(struct mu__distribution *run, mu_error *ret_error)
{
    struct job_wait *wait = calloc(1, sizeof *wait);
    int rv;

    if (wait == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to wait for the job");
    wait->news = hold_news(run->news);
    wait->call.call.operation = MU__JOB_WAIT;
    wait->call.call.timeout_ms = -1;
    rv = mu__node_call_later(run->node, MU__JOB, &wait->pending, &wait->call.call,
                             on_job_wait);
    if (rv == 0)
        return 0;
    release_news(wait->news);
    free(wait);
    return mu_error_set(ret_error, rv, "the job cannot be waited for: %s",
                        mu_strerror(rv));
}

bool mu__tasks_have_service(mu_node *node)
{
    return node != NULL && mu_agent_state(node, NULL) != MU_AGENT_UNINITIALIZED;
}

int mu__tasks_open(struct mu__distribution *run, mu_error *ret_error)
{
    char key[KEY_BYTES];
    int rv;

    if (!mu__tasks_have_service(run->node))
        return 0;
    rv = mu_agent_register(run->node, 0, REGISTER_MS, ret_error);
    if (rv != 0)
        return rv;
    run->news = news_new(run);
    if (run->news == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to hear of other tasks");
    if (run->plan.joins) {
        rv = listen_to(run, MU__TASKS_ENDED_KEY, NEWS_ENDED, ret_error);
    } else {
        mu__tasks_key(run->news, "failed", key);
        rv = listen_to(run, key, NEWS_FAILED, ret_error);
        mu__tasks_key(run->news, "trained", key);
        if (rv == 0)
            rv = listen_to(run, key, NEWS_TRAINED, ret_error);
        mu__tasks_key(run->news, "gone", key);
        if (rv == 0)
            rv = listen_to(run, key, NEWS_LOST, ret_error);
    }
    return rv;
}

int mu__tasks_watch_node(struct mu__distribution *run, mu_error *ret_error)
{
    if (run->node == NULL || run->options.keep_server)
        return 0;
    if (run->news == NULL)
        run->news = news_new(run);
    if (run->news == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to watch a node");
    return mu__tasks_begin_job_wait(run, ret_error);
}

/* Requests that are under way get an answer, now or when the node is closed. */
void mu__tasks_close(struct mu__distribution *run)
{
    struct mu__task_news *news = run->news;

    if (news == NULL)
        return;
    uv_mutex_lock(&news->lock);
    news->run = NULL;
    uv_mutex_unlock(&news->lock);
    run->news = NULL;
    for (int i = 0; i < NEWS_COUNT; i++)
        if (news->requests[i] != 0)
            (void)mu_kv_cancel(run->node, news->requests[i]);
    release_news(news);
}

/* ---- the barrier ---- */

/* One wait at the barrier: of the thread, and of the callback. */
struct meeting {
    struct mu__task_news *news; /* held; its lock guards the rest */
    unsigned holds;
    bool over;
    int code;
    mu_error error;
};

/* Called with the lock, which it releases. */
static void release_meeting(struct meeting *meeting)
{
    struct mu__task_news *news = meeting->news;
    bool last = --meeting->holds == 0;

    uv_mutex_unlock(&news->lock);
    if (!last)
        return;
    free(meeting);
    release_news(news);
}

static void on_met(void *user, int code, const mu_error *error)
{
    struct meeting *meeting = user;

    uv_mutex_lock(&meeting->news->lock);
    meeting->over = true;
    meeting->code = code;
    if (code != 0 && error != NULL)
        meeting->error = *error;
    uv_cond_broadcast(&meeting->news->moved);
    release_meeting(meeting);
}

/* The job has ended with an error. Then the host of the key "failed" may have left. */
static bool job_failed(struct mu__task_news *news, mu_error *ret_why)
{
    bool failed;

    uv_mutex_lock(&news->lock);
    failed = news->job_done && news->job.code != 0 && news->job.code != -MU_ECLOSED;
    if (failed)
        *ret_why = news->job;
    uv_mutex_unlock(&news->lock);
    return failed;
}

bool mu__tasks_failure(struct mu__distribution *run, mu_error *ret_why)
{
    struct mu__task_news *news = run->news;
    char key[KEY_BYTES];
    mu_value *result = NULL;
    mu_kv_item item;
    bool heard;

    uv_mutex_lock(&news->lock);
    heard = news->heard[NEWS_FAILED];
    if (heard)
        *ret_why = news->why;
    uv_mutex_unlock(&news->lock);
    mu__tasks_key(news, "failed", key);
    if (heard)
        return true;
    if (mu_kv_try_get(run->node, key, FAILED_MS, NULL, &item) != 0)
        return job_failed(news, ret_why);
    if (mu__result_unpack(item.value, item.size, NULL, &result) == 0) {
        mu__result_error(result, ret_why);
        heard = ret_why->code != 0;
        mu_value_free(result);
    }
    mu_kv_item_clear(&item);
    return heard;
}

/* Wait until the barrier has answered, or a task has failed or has ended: then the
 * barrier is cancelled, unless all had come before that. Lock held. */
static void await_meeting(struct mu__distribution *run, struct meeting *meeting,
                          const char *name)
{
    struct mu__task_news *news = meeting->news;

    while (!meeting->over && !news->heard[NEWS_FAILED] && !news->heard[NEWS_LOST] &&
           news->interrupted.code == 0)
        uv_cond_wait(&news->moved, &news->lock);
    if (meeting->over || news->interrupted.code != 0)
        return;
    uv_mutex_unlock(&news->lock);
    (void)mu_barrier_cancel(run->node, name, MU__SERVICE_MS, NULL);
    uv_mutex_lock(&news->lock);
    while (!meeting->over && !news->heard[NEWS_FAILED] &&
           uv_cond_timedwait(&news->moved, &news->lock,
                             (uint64_t)MU__SERVICE_MS * MS_NS) == 0)
        ;
}

/* The error of a barrier that was cancelled since a task has ended. */
static void explain_lost_task(struct mu__task_news *news, int code, mu_error *error)
{
    uv_mutex_lock(&news->lock);
    if (news->heard[NEWS_LOST] && (code == -MU_ECANCELLED || code == -MU_EABORTED)) {
        (void)mu_error_set(error, -MU_EINTERNAL,
                           "%s has ended, and does not come to the barrier of chief and "
                           "workers",
                           news->lost_task);
        error->kind = MU_ERROR_WORKER;
        (void)snprintf(error->task, sizeof error->task, "%s", news->lost_task);
    }
    uv_mutex_unlock(&news->lock);
}

int mu__tasks_meet(struct mu__distribution *run, int64_t timeout_ms, mu_error *ret_error)
{
    struct mu__task_news *news = run->news;
    struct meeting *meeting = calloc(1, sizeof *meeting);
    mu_barrier_options options;
    char name[KEY_BYTES];
    mu_error error = {0};
    bool interrupted;
    int rv;

    if (meeting == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a barrier");
    *meeting = (struct meeting){.news = hold_news(news), .holds = 2};
    mu_barrier_options_init(&options);
    options.tasks = news->tasks;
    options.timeout_ms = timeout_ms;
    mu__tasks_key(news, "barrier", name);
    rv = mu_barrier_wait_async(run->node, name, &options, on_met, meeting);
    if (rv != 0) {
        release_news(news);
        free(meeting);
        return mu_error_set(ret_error, rv, "the barrier of chief and workers: %s",
                            mu_strerror(rv));
    }
    uv_mutex_lock(&news->lock);
    await_meeting(run, meeting, name);
    rv = meeting->over ? meeting->code : -MU_EABORTED;
    error = meeting->error;
    interrupted = rv != 0 && news->interrupted.code != 0;
    if (interrupted)
        error = news->interrupted;
    release_meeting(meeting);
    if (rv == 0)
        return 0;
    if (!interrupted && !mu__tasks_failure(run, &error))
        explain_lost_task(news, rv, &error);
    if (error.code == 0)
        (void)mu_error_set(&error, rv, "the barrier of chief and workers: %s",
                           mu_strerror(rv));
    if (ret_error != NULL)
        *ret_error = error;
    return error.code;
}

void mu__tasks_end_waits(struct mu__distribution *run, const mu_error *why)
{
    struct mu__task_news *news = run->news;

    uv_mutex_lock(&news->lock);
    if (news->interrupted.code == 0)
        news->interrupted = *why;
    uv_cond_broadcast(&news->moved);
    uv_mutex_unlock(&news->lock);
}

/* ---- reporting ---- */

/* How long a service that is away may hold up the end of a run. */
static int64_t report_timeout_ms(const struct mu__distribution *run)
{
    int64_t timeout_ms = run->options.end_timeout_ms;

    return timeout_ms < 0 || timeout_ms > MU__SERVICE_MS ? MU__SERVICE_MS : timeout_ms;
}

int mu__tasks_put(mu_node *node, const char *key, const mu_value *result, unsigned flags,
                  int64_t timeout_ms, mu_error *ret_error)
{
    void *bytes;
    size_t size;
    int rv = mu__result_pack(result, ret_error, &bytes, &size);

    if (rv != 0)
        return rv;
    if (size > RESULT_BYTES_MAX)
        rv = mu_error_set(ret_error, -MU_EEXHAUSTED,
                          "a result of %zu bytes was not sent; at most %d travel", size,
                          RESULT_BYTES_MAX);
    else
        rv = mu_kv_put(node, key, bytes, size, flags, 0, timeout_ms, ret_error, NULL);
    free(bytes);
    return rv;
}

static void report_run_failure(struct mu__distribution *run, const mu_error *error)
{
    mu_value *result = mu__result_make(error->code, NULL, error);
    char key[KEY_BYTES];
    mu_error inner = {0};
    int rv = -MU_ENOMEM;

    mu__tasks_key(run->news, "failed", key);
    if (result != NULL)
        rv = mu__tasks_put(run->node, key, result, 0, report_timeout_ms(run), &inner);
    mu_value_free(result);
    if (rv != 0 && rv != -MU_EEXISTS)
        mu__distribution_say(run, MU_LOG_WARN, "its error was not sent to the others: %s",
                             inner.message);
}

/* Tasks that wait for this one at the barrier learn that it does not come. The first
 * task's name stays. */
static void report_end(struct mu__distribution *run, const struct mu_context *context)
{
    char key[KEY_BYTES];
    mu_error error = {0};
    int rv;

    mu__tasks_key(run->news, "gone", key);
    rv = mu_kv_put(run->node, key, context->name, strlen(context->name), 0, 0,
                   report_timeout_ms(run), &error, NULL);
    if (rv != 0 && rv != -MU_EEXISTS)
        mu__distribution_say(run, MU_LOG_WARN, "the others do not hear of its end: %s",
                             error.message);
}

/* In place of a value that is too large or cannot be packed, an error is put. */
static void report_result(struct mu__distribution *run, const struct mu_context *context,
                          const mu_error *error)
{
    mu_value *result = mu__result_make(error->code, context->result, error);
    char what[KEY_BYTES / 2];
    char key[KEY_BYTES];
    mu_error inner = {0};
    int rv = -MU_ENOMEM;

    (void)snprintf(what, sizeof what, "result%s%s", context->name[0] == '/' ? "" : "/",
                   context->name);
    mu__tasks_key(run->news, what, key);
    if (result != NULL)
        rv = mu__tasks_put(run->node, key, result, MU_KV_OVERWRITE,
                           report_timeout_ms(run), &inner);
    mu_value_free(result);
    if (rv != 0 && rv != -MU_EDEADLINE) {
        (void)snprintf(inner.task, sizeof inner.task, "%s", context->name);
        result = mu__result_make(rv, NULL, &inner);
        if (result != NULL)
            rv = mu__tasks_put(run->node, key, result, MU_KV_OVERWRITE,
                               report_timeout_ms(run), &inner);
        mu_value_free(result);
    }
    if (rv != 0)
        mu__distribution_say(run, MU_LOG_WARN, "its result was not sent: %s",
                             inner.message);
}

/* The leading task still needs its agent, which reporting an error would end. The other
 * tasks leave the service. */
void mu__tasks_report(struct mu__distribution *run, const struct mu_context *context,
                      const mu_error *error)
{
    if (error->code != 0)
        report_run_failure(run, error);
    else if (context->plan->meets)
        report_end(run, context);
    if (run->plan.leads)
        return;
    report_result(run, context, error);
    if (error->code != 0)
        (void)mu_agent_report_error(run->node, mu__known_code(error->code),
                                    error->message, report_timeout_ms(run), NULL);
    else if (!run->options.keep_server)
        (void)mu_agent_leave(run->node, report_timeout_ms(run), NULL);
}
