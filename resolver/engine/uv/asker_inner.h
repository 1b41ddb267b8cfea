/* What the parts of the asker share; for resolver/engine/uv/ only.
 *
 * A question that is not answered at once is a task of a thread (asker_task_uv.c) or a
 * request over HTTP (asker_http_uv.c). */
#ifndef MU_RESOLVER_ASKER_INNER_UV_H
#define MU_RESOLVER_ASKER_INNER_UV_H

#include "resolver/engine/kept_answers.h"
#include "resolver/engine/uv/asker.h"
#include "runtime/uv/errands.h"

#include <stdatomic.h>

struct mu__asker_uv {
    struct mu__asker asker;         /* first: operations cast */
    uv_loop_t *loop;
    struct mu__errands *errands;
    struct mu__ask_job *jobs;       /* that have a task */
    struct mu__http_curl *http;     /* NULL until the first request */
    uv_idle_t idle;                 /* runs while `done` has messages */
    struct mu__msg *done;           /* what the door has posted, in order */
    struct mu__msg **done_last;
    struct mu__flight *waiting;     /* requests that wait for others, in order */
    struct mu__flight **waiting_last;
    unsigned flights;               /* with the door */
    struct mu__pinned_answers kept;   /* of HTTP and programs */
    uint64_t calls_ms;              /* how long closing waits for calls */
    void (*left)(void *owner, const char *line);
    void *left_owner;
    unsigned holds;                 /* what must end before we go: errands, handles */
    void (*closed)(void *arg);      /* NULL: it is open */
    void *closed_arg;
};

/* One hold less; the last one is the asker's end. */
void mu__asker_unhold(struct mu__asker_uv *asker);

/* ---- Answering ---- */

/* What was asked comes before `words`. */
void mu__asker_give_error(struct mu__note *note, int code, const char *words);

/* Takes `data`, which may be NULL: there was no memory for it. */
void mu__asker_give_data(struct mu__note *note, char *data, size_t size);

/* For questions of later, where the question permits it. */
void mu__asker_keep(struct mu__asker_uv *asker, const struct mu__note *note,
                    const char *data, size_t size);

/* ---- Tasks of threads ---- */

/* What a thread has: nothing of it is the loop's while it runs. */
struct mu__ask_task {
    struct mu__errand errand;       /* first: errands cast */
    struct mu__ask_job *job;        /* the loop's side */
    struct mu__question question;   /* a copy */
    int (*run)(struct mu__ask_task *task);
    uint64_t due_ns;                /* of uv_hrtime(), where something can keep to it */
    atomic_bool is_unwanted;        /* nobody waits for it any more */
    char *data;                     /* what was found, */
    size_t size;
    size_t room;
    int code;                       /* or why not */
    mu_error error;
};

/* How a kind of question is a task. */
struct mu__task_kind {
    enum mu__lane lane;
    int (*run)(struct mu__ask_task *task);
    bool names_itself;              /* its errors name what was asked */
    bool ends_soon;                 /* when nobody wants it, and is waited for */
};

/* Ask with a task, and have the note answered when it has run or its limit has passed;
 * note->own is the job until then. */
void mu__asker_ask_task(struct mu__asker_uv *asker, struct mu__note *note,
                        const struct mu__task_kind *kind);
void mu__asker_cancel_task(struct mu__note *note);

/* Of an asker that closes: wait for calls, and no longer than they may be waited for. */
void mu__asker_close_tasks(struct mu__asker_uv *asker);

/* Of a task: why it has failed, and room for `size` bytes of content with a zero byte
 * behind them. -MU_ENOMEM. */
int mu__task_fails(struct mu__ask_task *task, int code, const char *words);
int mu__task_reserve(struct mu__ask_task *task, size_t size);

/* Kinds of tasks: they write data and size, or the error, and return its code. */
int mu__task_file(struct mu__ask_task *task);
int mu__task_folder(struct mu__ask_task *task);
int mu__task_write(struct mu__ask_task *task);
int mu__task_remove(struct mu__ask_task *task);
int mu__task_names(struct mu__ask_task *task);

/* Of a question for the addresses of a number, which is its own: answer it, whatever
 * hangs. False: it is another one. */
bool mu__asker_give_number(struct mu__note *note);

/* ---- HTTP ---- */

void mu__asker_ask_http(struct mu__asker_uv *asker, struct mu__note *note);
void mu__asker_cancel_http(struct mu__asker_uv *asker, struct mu__note *note);
void mu__asker_init_http(struct mu__asker_uv *asker);
void mu__asker_close_http(struct mu__asker_uv *asker);

#endif
