/* Requests that are answered on a thread.
 *
 * The loop's side of a request is a struct mu__pending_request, with a timer; the
 * thread's side is a struct mu__request_work, a blocking job. The exchange is answered
 * once: when the job has run, or by the timer when that takes too long. The result of a
 * job that hangs is then dropped, and goes with its thread. When the requester closes,
 * it only waits for functions of the program's own, and for jobs that end soon by
 * themselves, so that nothing of those outlives this process. A call of an
 * asynchronous function has a job without a thread: it has run when the program has
 * finished its reply. */
#include "resolver/engine/uv/internal.h"

#include "resolver/engine/request.h"
#include "resolver/engine/request_call.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ROOM_FIRST_BYTES = 4096,
    WORDS_BYTES = 256,
    END_MS = 5000, /* after that a job that ends soon is left to its thread */
    NS_PER_MS = 1000000
};

struct mu__pending_request {
    uv_timer_t timer; /* first: handles cast */
    struct mu__requester_uv *requester;
    struct mu__exchange *exchange; /* NULL: answered or cancelled */
    struct mu__request_work *task; /* NULL: it has run, or is left to its thread */
    bool names_itself;
    bool ends_soon;
    struct mu__list_node node; /* of requester->jobs */
};

/* ---- The thread's side ---- */

int mu__work_fail(struct mu__request_work *task, int code, const char *words)
{
    return mu_error_set(&task->error, code, "%s", words);
}

int mu__work_reserve(struct mu__request_work *task, size_t size)
{
    size_t room = task->room == 0 ? ROOM_FIRST_BYTES : task->room;
    char *data;

    if (size + 1 <= task->room)
        return 0;
    while (room < size + 1)
        room *= 2;
    data = realloc(task->data, room);
    if (data == NULL)
        return mu__work_fail(task, -MU_ENOMEM, "out of memory");
    task->data = data;
    task->room = room;
    return 0;
}

static void task_free(struct mu__request_work *task)
{
    mu__request_free_copy(&task->request);
    free(task->data);
    free(task);
}

static void on_run(struct mu__blocking_job *blocking)
{
    struct mu__request_work *task = (struct mu__request_work *)blocking;

    task->code = task->run(task);
}

static void on_dropped(struct mu__blocking_job *blocking)
{
    task_free((struct mu__request_work *)blocking);
}

/* ---- The loop's side ---- */

static void on_timer_closed(uv_handle_t *handle)
{
    struct mu__pending_request *job = (struct mu__pending_request *)handle;
    struct mu__requester_uv *requester = job->requester;

    free(job);
    mu__requester_release(requester);
}

static void on_blocking_closed(void *arg)
{
    mu__requester_release(arg);
}

static void close_blocking_when_done(struct mu__requester_uv *requester)
{
    if (requester->closed != NULL && mu__list_is_empty(&requester->jobs))
        mu__blocking_close(requester->blocking_jobs, on_blocking_closed, requester);
}

/* The job has run, or is left to its thread. */
static void job_end(struct mu__pending_request *job)
{
    mu__list_remove(&job->requester->jobs, &job->node);
    job->task = NULL;
    uv_close((uv_handle_t *)&job->timer, on_timer_closed);
    close_blocking_when_done(job->requester);
}

/* Leave the job to its thread, which may go on for a while. */
static void leave_task(struct mu__pending_request *job)
{
    struct mu__request_work *task = job->task;

    atomic_store(&task->is_cancelled, true);
    mu__blocking_job_drop(&task->blocking);
    job_end(job);
}

static struct mu__exchange *take_exchange(struct mu__pending_request *job)
{
    struct mu__exchange *exchange = job->exchange;

    job->exchange = NULL;
    exchange->own = NULL;
    return exchange;
}

/* Cancels a call. An asynchronous one uses nothing of ours while it goes on. */
static bool is_waited_for(const struct mu__pending_request *job)
{
    struct mu__request_call *call = job->task->request.call;

    return call != NULL && mu__request_call_cancel(call) &&
           !mu__request_call_is_async(call) && job->requester->calls_ms > 0;
}

static void on_end_limit(uv_timer_t *timer)
{
    leave_task((struct mu__pending_request *)timer);
}

/* The exchange needs no answer any more. Only functions of the program's own are still
 * tracked, until the requester closes, and jobs that end soon, once they have begun,
 * until they have ended. */
static void let_go(struct mu__pending_request *job)
{
    (void)uv_timer_stop(&job->timer);
    if (job->ends_soon && mu__blocking_job_waits_for(&job->task->blocking) == 0) {
        atomic_store(&job->task->is_cancelled, true);
        (void)uv_timer_start(&job->timer, on_end_limit, END_MS, 0);
        return;
    }
    if (!is_waited_for(job))
        leave_task(job);
}

/* The message of a timeout; it says when other jobs have kept this one from beginning. */
static void write_late(struct mu__request_work *task, char *out, size_t size)
{
    const struct mu__request *request = &task->request;
    unsigned others = mu__blocking_job_waits_for(&task->blocking);
    int used = snprintf(out, size, "no answer within %u ms",
                        mu__request_timeout_ms(request));

    if (others > 0)
        (void)snprintf(out + used, size - (size_t)used,
                       ": it has not begun, since %u others have not ended", others);
}

static void on_limit(uv_timer_t *timer)
{
    struct mu__pending_request *job = (struct mu__pending_request *)timer;
    struct mu__exchange *exchange = take_exchange(job);
    char words[WORDS_BYTES];

    write_late(job->task, words, sizeof words);
    let_go(job);
    mu__requester_fail(exchange, -MU_EDEADLINE, words);
}

static void answer(struct mu__requester_uv *requester, struct mu__exchange *exchange,
                   struct mu__request_work *task, bool names_itself)
{
    char *data = task->data;

    if (task->code == 0) {
        task->data = NULL;
        mu__requester_cache(requester, exchange, data, task->size);
        mu__requester_answer(exchange, data, task->size);
    } else if (names_itself) {
        exchange->answer.error = task->error;
        exchange->answer.code = task->code;
        mu__exchange_answer(exchange);
    } else {
        mu__requester_fail(exchange, task->code, task->error.message);
    }
}

static void on_done(struct mu__blocking_job *blocking)
{
    struct mu__request_work *task = (struct mu__request_work *)blocking;
    struct mu__pending_request *job = task->job;
    struct mu__exchange *exchange = job->exchange == NULL ? NULL : take_exchange(job);
    struct mu__requester_uv *requester = job->requester;
    bool names_itself = job->names_itself;

    job_end(job);
    if (exchange != NULL)
        answer(requester, exchange, task, names_itself);
    task_free(task);
}

static struct mu__request_work *task_new(const struct mu__request *request,
                                         const struct mu__work_kind *kind)
{
    struct mu__request_work *task = calloc(1, sizeof *task);

    if (task == NULL || mu__request_copy(request, &task->request) != 0) {
        free(task);
        return NULL;
    }
    task->blocking.pool = kind->pool;
    task->blocking.run = on_run;
    task->blocking.done = on_done;
    task->blocking.dropped = on_dropped;
    task->run = kind->run;
    atomic_init(&task->is_cancelled, false);
    return task;
}

/* The turn so far may have been long: the timeout begins now. */
static void job_start(struct mu__requester_uv *requester, struct mu__pending_request *job,
                      struct mu__exchange *exchange)
{
    job->requester = requester;
    job->exchange = exchange;
    job->task->job = job;
    mu__list_prepend(&requester->jobs, &job->node);
    requester->holds++;
    uv_update_time(requester->loop);
    (void)uv_timer_init(requester->loop, &job->timer);
    (void)uv_timer_start(&job->timer, on_limit,
                         mu__request_timeout_ms(&exchange->request), 0);
    exchange->own = job;
}

static bool is_async(const struct mu__request_work *task)
{
    return task->request.call != NULL && mu__request_call_is_async(task->request.call);
}

/* Any thread. */
static void on_call_finished(void *owner)
{
    struct mu__request_work *task = owner;

    mu__blocking_job_end(&task->blocking);
}

static int task_start(struct mu__requester_uv *requester, struct mu__request_work *task)
{
    if (!is_async(task))
        return mu__blocking_start(requester->blocking_jobs, &task->blocking);
    if (mu__work_reserve(task, 0) == 0) /* without memory, the answer says so */
        task->data[0] = '\0';
    mu__blocking_adopt(requester->blocking_jobs, &task->blocking);
    return 0;
}

void mu__requester_send_work(struct mu__requester_uv *requester,
                             struct mu__exchange *exchange,
                             const struct mu__work_kind *kind)
{
    struct mu__pending_request *job = calloc(1, sizeof *job);
    struct mu__request_work *task = task_new(&exchange->request, kind);

    if (job == NULL || task == NULL) {
        free(job);
        if (task != NULL)
            task_free(task);
        mu__requester_fail(exchange, -MU_ENOMEM, "out of memory");
        return;
    }
    if (task_start(requester, task) != 0) {
        free(job);
        task_free(task);
        mu__requester_fail(exchange, -MU_EUNAVAILABLE, "no thread can be started");
        return;
    }
    job->task = task;
    job->names_itself = kind->names_itself;
    job->ends_soon = kind->ends_soon;
    job_start(requester, job, exchange);
    if (is_async(task))
        mu__request_call_start(task->request.call, on_call_finished, task);
}

void mu__requester_cancel_work(struct mu__exchange *exchange)
{
    struct mu__pending_request *job = exchange->own;

    (void)take_exchange(job);
    let_go(job);
}

/* ---- Closing ---- */

static void on_waited(uv_timer_t *timer)
{
    struct mu__pending_request *job = (struct mu__pending_request *)timer;
    struct mu__requester_uv *requester = job->requester;
    char line[WORDS_BYTES];

    (void)snprintf(line, sizeof line,
                   "resolver %.64s: its function has not returned within %u ms of the "
                   "closing, and is left to itself",
                   job->task->request.name, (unsigned)requester->calls_ms);
    leave_task(job);
    requester->left(requester->left_owner, line);
}

void mu__requester_close_work(struct mu__requester_uv *requester)
{
    uv_update_time(requester->loop);
    for (struct mu__pending_request *job =
             MU__LIST_FIRST(&requester->jobs, struct mu__pending_request, node);
         job != NULL; job = MU__LIST_NEXT(job, struct mu__pending_request, node)) {
        assert(job->exchange == NULL);
        if (!job->ends_soon)
            (void)uv_timer_start(&job->timer, on_waited, requester->calls_ms, 0);
    }
    close_blocking_when_done(requester);
}
