#include "resolver/engine/uv/asker_inner.h"

#include "resolver/engine/question.h"
#include "resolver/engine/uv/run.h"
#include "resolver/engine/uv/sign_crypto.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS_BYTES = 256 };

/* ---- Answering ---- */

void mu__asker_give_error(struct mu__note *note, int code, const char *words)
{
    char asked[WORDS_BYTES];

    mu__question_words(&note->question, asked, sizeof asked);
    note->answer.code =
        mu_error_set(&note->answer.error, code, "%s: %s", asked, words);
    mu__note_answer(note);
}

void mu__asker_give_data(struct mu__note *note, char *data, size_t size)
{
    if (data == NULL) {
        mu__asker_give_error(note, -MU_ENOMEM, "out of memory");
        return;
    }
    note->answer.data = data;
    note->answer.size = size;
    mu__note_answer(note);
}

void mu__asker_keep(struct mu__asker_uv *asker, const struct mu__note *note,
                    const char *data, size_t size)
{
    if (note->question.keep_ms != 0)
        mu__pinned_answers_put(&asker->kept, &note->question, data, size,
                             uv_now(asker->loop));
}

/* False: nothing is kept for this question. */
static bool give_kept(struct mu__asker_uv *asker, struct mu__note *note)
{
    const struct mu__pinned_answer *kept =
        mu__pinned_answers_find(&asker->kept, &note->question, uv_now(asker->loop));
    char *data;

    if (kept == NULL)
        return false;
    data = malloc(kept->size + 1);
    if (data != NULL)
        memcpy(data, kept->data, kept->size + 1);
    note->answer.status = note->question.kind == MU__ASK_HTTP ? 200 : 0;
    mu__asker_give_data(note, data, kept->size);
    return true;
}

static void give_text(struct mu__note *note, const char *text)
{
    mu__asker_give_data(note, strdup(text), strlen(text));
}

/* ---- At once ---- */

static void answer_variable(struct mu__note *note)
{
    const char *value = getenv(note->question.name);

    if (value == NULL || value[0] == '\0')
        mu__asker_give_error(note, -MU_ENOTFOUND, "not set");
    else
        give_text(note, value);
}

static void answer_host_name(struct mu__note *note)
{
    char name[UV_MAXHOSTNAMESIZE];
    size_t size = sizeof name;
    int rv = uv_os_gethostname(name, &size);

    if (rv == 0)
        give_text(note, name);
    else
        mu__asker_give_error(note, -MU_EUNAVAILABLE, uv_strerror(rv));
}

static void answer_clock(struct mu__note *note)
{
    char digits[32];

    (void)snprintf(digits, sizeof digits, "%lld", (long long)time(NULL));
    give_text(note, digits);
}

/* ---- On a thread ---- */

static int task_signature(struct mu__ask_task *task)
{
    const struct mu__question *question = &task->question;
    unsigned char *signature;
    size_t size;
    int rv = mu__sign_rs256(question->secret == NULL ? "" : question->secret,
                            question->body, question->body_size, &task->error,
                            &signature, &size);

    if (rv != 0)
        return rv;
    rv = mu__task_reserve(task, size);
    if (rv == 0) {
        memcpy(task->data, signature, size);
        task->data[size] = '\0';
        task->size = size;
    }
    free(signature);
    return rv;
}

/* What it has found is in the call. */
static int task_call(struct mu__ask_task *task)
{
    int rv = mu__task_reserve(task, 0);

    if (rv != 0)
        return rv;
    task->data[0] = '\0';
    mu__ask_call_run(task->question.call);
    return 0;
}

static int task_program(struct mu__ask_task *task)
{
    const struct mu__question *question = &task->question;

    return mu__run_program(question->name, question->body, question->body_size,
                           mu__question_bytes_max(question), &task->is_unwanted,
                           &task->error, &task->data, &task->size);
}

/* ---- The asker ---- */

/* How each kind is answered: at once, by a task, or over HTTP. */
static const struct {
    void (*at_once)(struct mu__note *note);
    struct mu__task_kind task;
} kinds[MU__ASK_KINDS] = {
    [MU__ASK_VARIABLE] = {.at_once = answer_variable},
    [MU__ASK_HOST_NAME] = {.at_once = answer_host_name},
    [MU__ASK_CLOCK] = {.at_once = answer_clock},
    [MU__ASK_FILE] = {.task = {MU__LANE_FILES, mu__task_file, false, false}},
    [MU__ASK_FOLDER] = {.task = {MU__LANE_FILES, mu__task_folder, false, false}},
    [MU__ASK_WRITE] = {.task = {MU__LANE_FILES, mu__task_write, false, false}},
    [MU__ASK_REMOVE] = {.task = {MU__LANE_FILES, mu__task_remove, false, false}},
    [MU__ASK_SIGNATURE] = {.task = {MU__LANE_SUMS, task_signature, false, false}},
    [MU__ASK_ADDRESSES] = {.task = {MU__LANE_NAMES, mu__task_names, true, false}},
    [MU__ASK_SERVICES] = {.task = {MU__LANE_SERVERS, mu__task_names, true, false}},
    [MU__ASK_CALL] = {.task = {MU__LANE_CALLS, task_call, false, false}},
    [MU__ASK_PROGRAM] = {.task = {MU__LANE_PROGRAMS, task_program, false, true}},
    [MU__ASK_HTTP] = {.at_once = NULL},
};

static void op_ask(struct mu__asker *base, struct mu__note *note)
{
    struct mu__asker_uv *asker = (struct mu__asker_uv *)base;
    enum mu__ask_kind kind = note->question.kind;
    struct mu__task_kind task = kinds[kind].task;

    assert(asker->closed == NULL);
    if (task.run == mu__task_names && note->question.dns_server != NULL)
        task.lane = MU__LANE_SERVERS;
    if (kinds[kind].at_once != NULL)
        kinds[kind].at_once(note);
    else if (mu__asker_give_number(note) || give_kept(asker, note))
        return;
    else if (task.run != NULL)
        mu__asker_ask_task(asker, note, &task);
    else
        mu__asker_ask_http(asker, note);
}

static void op_cancel(struct mu__asker *base, struct mu__note *note)
{
    if (kinds[note->question.kind].task.run != NULL)
        mu__asker_cancel_task(note);
    else
        mu__asker_cancel_http((struct mu__asker_uv *)base, note);
}

/* ---- Life ---- */

int mu__asker_uv_open(uv_loop_t *loop, struct mu__asker_uv **ret_asker)
{
    static const struct mu__asker_ops ops = {op_ask, op_cancel};
    struct mu__asker_uv *asker = calloc(1, sizeof *asker);

    if (asker == NULL || mu__errands_open(loop, &asker->errands) != 0) {
        free(asker);
        return -MU_ENOMEM;
    }
    asker->asker.ops = &ops;
    asker->loop = loop;
    asker->holds = 1;   /* the errands */
    mu__asker_init_http(asker);
    *ret_asker = asker;
    return 0;
}

struct mu__asker *mu__asker_uv_asker(struct mu__asker_uv *asker)
{
    return &asker->asker;
}

void mu__asker_uv_wait_for_calls(struct mu__asker_uv *asker, uint64_t timeout_ms,
                                 void (*left)(void *owner, const char *line), void *owner)
{
    asker->calls_ms = timeout_ms;
    asker->left = left;
    asker->left_owner = owner;
}

void mu__asker_unhold(struct mu__asker_uv *asker)
{
    void (*closed)(void *arg) = asker->closed;
    void *arg = asker->closed_arg;

    if (--asker->holds > 0)
        return;
    mu__pinned_answers_done(&asker->kept);
    free(asker);
    closed(arg);
}

void mu__asker_uv_close(struct mu__asker_uv *asker, void (*closed)(void *arg), void *arg)
{
    assert(asker->closed == NULL && asker->waiting == NULL);
    asker->closed = closed;
    asker->closed_arg = arg;
    mu__asker_close_http(asker);
    mu__asker_close_tasks(asker);
}
