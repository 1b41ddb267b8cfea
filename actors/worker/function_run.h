/* One run of a function, from RUN to RESULT. The executor thread that runs it has it to
 * itself from submit to WORK_DONE, but for `cancelled`. */
#ifndef MU_ACTORS_WORKER_FUNCTION_RUN_H
#define MU_ACTORS_WORKER_FUNCTION_RUN_H

#include "actors/messages.h"
#include "actors/variables/effects.h"
#include "actors/worker/pinned.h"
#include "runtime/base/list.h"
#include "runtime/base/text_map.h"
#include "runtime/kernel/world.h"
#include "runtime/message/codec.h"

#include "muster/node.h"

#include <stdatomic.h>

/* Puts a message into an actor's mailbox from any thread. Takes it, whatever is
 * returned. */
typedef int (*mu__post_fn)(mu_node *node, uint32_t actor_number, struct mu__msg *msg);

/* Lines of one function that wait for the loop; more are dropped, and counted. */
enum { MU__RUN_LINES_MAX = 256 };

/* A function, and all that its runs need of their worker. It stays in memory while a run
 * does not end, even after the worker. */
struct mu__registered {
    struct mu__text_node named; /* first: in the table of functions */
    mu_function_fn function;
    void *user;
    unsigned flags;
    int worker;              /* task index, */
    const char *worker_type; /* and type */
    mu__post_fn post;        /* NULL: lines go into the errors' detail only */
    atomic_uint lines_waiting;
    atomic_uint lines_lost;
    char name[64];
};

/* One input of a run. */
struct mu__run_input {
    struct mu__pinned_wait wait; /* first: the store's pointer is ours */
    struct mu_run *run;
    uint64_t number;
    mu_value *value; /* NULL until it is there */
};

struct mu__run_inputs {
    uint32_t count;
    uint32_t missing;
    struct mu__run_input items[]; /* sorted by number, each once */
};

/* Optional fields, allocated on demand. */
struct mu__run_extra {
    char name[MU__CLOSURE_NAME_MAX + 1];
    char stack[MU__DETAIL_BYTES_MAX + 1];
    char lines[MU__DETAIL_BYTES_MAX + 1]; /* the last lines logged, each with its line
                                             end */
    size_t lines_size;
    void *error_data; /* of a failure; NULL: none */
    uint32_t error_data_size;
};

/* A run's code while its function runs. */
enum { MU__RUN_NOT_RETURNED = 1 };

struct mu_run {
    struct mu__work work; /* first: the executor's pointer is ours */
    struct mu__list_node listed;
    struct mu__list *list; /* the list that it is in; NULL: none */
    struct mu__registered *registered;
    mu_node *node;
    mu__pid requester;
    uint64_t closure;
    uint32_t attempt;
    int code;             /* 0, negative, or MU__RUN_NOT_RETURNED */
    struct mu__msg *msg;  /* the RUN message */
    uint64_t bytes;       /* of itself and its arguments */
    mu_value *args_value; /* unpacked by the thread that runs; NULL: nil */
    mu_value *result;
    struct mu__buf *result_buf;      /* the packed result; NULL: nil, or it stays here */
    struct mu__packed result_packed; /* what is in there; if it stays: its sizes */
    char *text;                      /* of the error of mu_run_fail */
    struct mu__effects effects;      /* what it writes when it has returned 0 */
    mu_error *failure;               /* with mu_run_fail_with, or of its writes; NULL: the
                                        function's own error, if any */
    struct mu__run_inputs *inputs;   /* NULL: none */
    struct mu__run_extra *extra;     /* NULL: none */
    atomic_bool cancelled;
    bool reported_begun; /* the chief was told that it has begun */
    bool skipped;        /* it was cancelled when its thread took it */
    bool began;          /* the function was called */
    bool no_memory;      /* for its return value */
};

static inline struct mu_run *mu__run_first(const struct mu__list *list)
{
    return MU__LIST_FIRST(list, struct mu_run, listed);
}

static inline struct mu_run *mu__run_next(const struct mu_run *run)
{
    return MU__LIST_NEXT(run, struct mu_run, listed);
}

/* The RUN message's body. */
static inline const struct mu__run *mu__run_request(const struct mu_run *run)
{
    return (const struct mu__run *)(const void *)run->msg->body;
}

/* Whether its result stays on this worker. */
static inline bool mu__run_makes(const struct mu_run *run)
{
    return (mu__run_request(run)->flags & (MU__CLOSURE_KEEP | MU__CLOSURE_BUILD)) != 0;
}

/* A thread has taken the run of this work. If it is cancelled already, its function will
 * not be called. */
void mu__run_begin(struct mu__work *work);

/* Unpack the arguments, call the function, pack its result. On the executor thread, or on
 * the loop for inline functions. */
void mu__run_execute(struct mu__work *work);

/* The work is done and run->code is MU__RUN_NOT_RETURNED: set the error. */
void mu__run_not_returned(struct mu_run *run);

/* Free what the run holds, but not the run and its message. Nothing of it waits. */
void mu__run_clear(struct mu_run *run);

/* Read the numbers of RUN's `inputs`. -MU_EINVALID (not a list of valid numbers),
 * -MU_ENOMEM. */
int mu__run_take_inputs(struct mu_run *run);

/* A stack, or the last lines logged; empty when there is neither. Valid as long as the
 * run. */
struct mu__view mu__run_detail(const struct mu_run *run);

/* Let the run fail with an error that is not its function's. */
void mu__run_set_failure(struct mu_run *run, const mu_error *error);

/* mu_run_return_object, for one of `kind`: mu__run_find_object then finds it, and
 * mu_run_object does not. NULL is the kind of the program's own objects. `drop` may be
 * NULL. -MU_ENOMEM: `object` was dropped, and the run will fail. */
int mu__run_keep_object(struct mu_run *run, void *object, void (*drop)(void *object),
                        const void *kind);
void *mu__run_find_object(const mu_value *argument, const void *kind);

/* Whether there is an object in a value, which therefore cannot travel. */
bool mu__run_has_object(const mu_value *value);

#endif
