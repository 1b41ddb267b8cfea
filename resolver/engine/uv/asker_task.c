/* Questions that a thread answers.
 *
 * A note has a job, the loop's side, which has a timer and a task, the thread's side. The
 * note is answered once: when the task has run, or by the timer when that takes too long.
 * A task that hangs then finds nobody who wants its answer, and goes with its thread.
 * Only calls, the program's own functions, are still waited for when the asker closes;
 * and what ends soon by itself, so that nothing of it outlives this process. */
#include "resolver/engine/uv/asker_inner.h"

#include "resolver/engine/question.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ROOM_FIRST_BYTES = 4096,
    WORDS_BYTES = 256,
    END_MS = 5000,                  /* what ends soon is left to itself after that */
    NS_PER_MS = 1000000
};

struct mu__ask_job {
    uv_timer_t timer;               /* first: handles cast */
    struct mu__asker_uv *asker;
    struct mu__note *note;          /* NULL: answered, or nobody wants it */
    struct mu__ask_task *task;      /* NULL: it has run, or is left to itself */
    bool names_itself;
    bool ends_soon;
    struct mu__ask_job *next;       /* of those with a task */
    struct mu__ask_job **before;    /* what points here */
};

/* ---- The thread's side ---- */

int mu__task_fails(struct mu__ask_task *task, int code, const char *words)
{
    return mu_error_set(&task->error, code, "%s", words);
}

int mu__task_reserve(struct mu__ask_task *task, size_t size)
{
    size_t room = task->room == 0 ? ROOM_FIRST_BYTES : task->room;
    char *data;

    if (size + 1 <= task->room)
        return 0;
    while (room < size + 1)
        room *= 2;
    data = realloc(task->data, room);
    if (data == NULL)
        return mu__task_fails(task, -MU_ENOMEM, "out of memory");
    task->data = data;
    task->room = room;
    return 0;
}

static void task_free(struct mu__ask_task *task)
{
    mu__question_done(&task->question);
    free(task->data);
    free(task);
}

static void on_run(struct mu__errand *errand)
{
    struct mu__ask_task *task = (struct mu__ask_task *)errand;

    task->code = task->run(task);
}

static void on_dropped(struct mu__errand *errand)
{
    task_free((struct mu__ask_task *)errand);
}

/* ---- The loop's side ---- */

static void on_timer_closed(uv_handle_t *handle)
{
    struct mu__ask_job *job = (struct mu__ask_job *)handle;
    struct mu__asker_uv *asker = job->asker;

    free(job);
    mu__asker_unhold(asker);
}

static void on_errands_closed(void *arg)
{
    mu__asker_unhold(arg);
}

static void close_errands_when_done(struct mu__asker_uv *asker)
{
    if (asker->closed != NULL && asker->jobs == NULL)
        mu__errands_close(asker->errands, on_errands_closed, asker);
}

/* It has no task any more. */
static void job_end(struct mu__ask_job *job)
{
    *job->before = job->next;
    if (job->next != NULL)
        job->next->before = job->before;
    job->task = NULL;
    uv_close((uv_handle_t *)&job->timer, on_timer_closed);
    close_errands_when_done(job->asker);
}

/* The thread may go on for a while. */
static void leave_task(struct mu__ask_job *job)
{
    struct mu__ask_task *task = job->task;

    atomic_store(&task->is_unwanted, true);
    mu__errand_drop(&task->errand);
    job_end(job);
}

static struct mu__note *take_note(struct mu__ask_job *job)
{
    struct mu__note *note = job->note;

    job->note = NULL;
    note->own = NULL;
    return note;
}

static bool is_waited_for(const struct mu__ask_job *job)
{
    struct mu__ask_call *call = job->task->question.call;

    return call != NULL && mu__ask_call_off(call) && job->asker->calls_ms > 0;
}

static void on_end_limit(uv_timer_t *timer)
{
    leave_task((struct mu__ask_job *)timer);
}

/* Nobody wants to know any more: only calls are kept in mind, until the asker closes, and
 * what ends soon, once it has begun, until it has ended. */
static void let_go(struct mu__ask_job *job)
{
    (void)uv_timer_stop(&job->timer);
    if (job->ends_soon && mu__errand_waits_for(&job->task->errand) == 0) {
        atomic_store(&job->task->is_unwanted, true);
        (void)uv_timer_start(&job->timer, on_end_limit, END_MS, 0);
        return;
    }
    if (!is_waited_for(job))
        leave_task(job);
}

/* That it has not begun is the fault of others: it says so. */
static void write_late(struct mu__ask_task *task, char *out, size_t size)
{
    const struct mu__question *question = &task->question;
    unsigned others = mu__errand_waits_for(&task->errand);
    int used = snprintf(out, size, "no answer%s%.64s within %u ms",
                        question->dns_server == NULL ? "" : " from DNS server ",
                        question->dns_server == NULL ? "" : question->dns_server,
                        mu__question_timeout_ms(question));

    if (others > 0)
        (void)snprintf(out + used, size - (size_t)used,
                       ": it has not begun, since %u others have not ended", others);
}

static void on_limit(uv_timer_t *timer)
{
    struct mu__ask_job *job = (struct mu__ask_job *)timer;
    struct mu__note *note = take_note(job);
    char words[WORDS_BYTES];

    write_late(job->task, words, sizeof words);
    let_go(job);
    mu__asker_give_error(note, -MU_EDEADLINE, words);
}

static void answer(struct mu__asker_uv *asker, struct mu__note *note,
                   struct mu__ask_task *task, bool names_itself)
{
    char *data = task->data;

    if (task->code == 0) {
        task->data = NULL;
        mu__asker_keep(asker, note, data, task->size);
        mu__asker_give_data(note, data, task->size);
    } else if (names_itself) {
        note->answer.error = task->error;
        note->answer.code = task->code;
        mu__note_answer(note);
    } else {
        mu__asker_give_error(note, task->code, task->error.message);
    }
}

static void on_done(struct mu__errand *errand)
{
    struct mu__ask_task *task = (struct mu__ask_task *)errand;
    struct mu__ask_job *job = task->job;
    struct mu__note *note = job->note == NULL ? NULL : take_note(job);
    struct mu__asker_uv *asker = job->asker;
    bool names_itself = job->names_itself;

    job_end(job);
    if (note != NULL)
        answer(asker, note, task, names_itself);
    task_free(task);
}

static struct mu__ask_task *task_new(const struct mu__question *question,
                                     const struct mu__task_kind *kind)
{
    struct mu__ask_task *task = calloc(1, sizeof *task);

    if (task == NULL || mu__question_copy(question, &task->question) != 0) {
        free(task);
        return NULL;
    }
    task->errand.lane = kind->lane;
    task->errand.run = on_run;
    task->errand.done = on_done;
    task->errand.dropped = on_dropped;
    task->run = kind->run;
    task->due_ns =
        uv_hrtime() + (uint64_t)mu__question_timeout_ms(question) * NS_PER_MS;
    atomic_init(&task->is_unwanted, false);
    return task;
}

/* A turn may take long: the limit begins now. */
static void job_start(struct mu__asker_uv *asker, struct mu__ask_job *job,
                      struct mu__note *note)
{
    job->asker = asker;
    job->note = note;
    job->task->job = job;
    job->next = asker->jobs;
    job->before = &asker->jobs;
    if (job->next != NULL)
        job->next->before = &job->next;
    asker->jobs = job;
    asker->holds++;
    uv_update_time(asker->loop);
    (void)uv_timer_init(asker->loop, &job->timer);
    (void)uv_timer_start(&job->timer, on_limit, mu__question_timeout_ms(&note->question),
                         0);
    note->own = job;
}

void mu__asker_ask_task(struct mu__asker_uv *asker, struct mu__note *note,
                        const struct mu__task_kind *kind)
{
    struct mu__ask_job *job = calloc(1, sizeof *job);
    struct mu__ask_task *task = task_new(&note->question, kind);

    if (job == NULL || task == NULL) {
        free(job);
        if (task != NULL)
            task_free(task);
        mu__asker_give_error(note, -MU_ENOMEM, "out of memory");
        return;
    }
    if (mu__errands_start(asker->errands, &task->errand) != 0) {
        free(job);
        task_free(task);
        mu__asker_give_error(note, -MU_EUNAVAILABLE, "no thread can be started");
        return;
    }
    job->task = task;
    job->names_itself = kind->names_itself;
    job->ends_soon = kind->ends_soon;
    job_start(asker, job, note);
}

void mu__asker_cancel_task(struct mu__note *note)
{
    struct mu__ask_job *job = note->own;

    (void)take_note(job);
    let_go(job);
}

/* ---- Closing ---- */

static void on_waited(uv_timer_t *timer)
{
    struct mu__ask_job *job = (struct mu__ask_job *)timer;
    struct mu__asker_uv *asker = job->asker;
    char line[WORDS_BYTES];

    (void)snprintf(line, sizeof line,
                   "resolver %.64s: its function has not returned within %u ms of the "
                   "closing, and is left to itself",
                   job->task->question.name, (unsigned)asker->calls_ms);
    leave_task(job);
    asker->left(asker->left_owner, line);
}

void mu__asker_close_tasks(struct mu__asker_uv *asker)
{
    uv_update_time(asker->loop);
    for (struct mu__ask_job *job = asker->jobs; job != NULL; job = job->next) {
        assert(job->note == NULL);
        if (!job->ends_soon)
            (void)uv_timer_start(&job->timer, on_waited, asker->calls_ms, 0);
    }
    close_errands_when_done(asker);
}
