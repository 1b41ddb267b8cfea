/* One run of a function, from RUN to RESULT. The executor thread that runs it has it to
 * itself from submit to WORK_DONE, but for `cancelled`. */
#ifndef MU_ACTORS_RUN_H
#define MU_ACTORS_RUN_H

#include "actors/effects.h"
#include "runtime/codec.h"
#include "runtime/world.h"

#include "muster/node.h"

#include <stdatomic.h>

struct mu__registered {
    struct mu__registered *next;
    mu_function_fn function;
    void *user;
    unsigned flags;
    uint32_t hash;
    uint32_t name_size;
    char name[64];
};

struct mu_run {
    struct mu__work work;           /* first: the executor's pointer is ours */
    struct mu_run *next;            /* of the worker's runs */
    struct mu_run *prev;
    const struct mu__registered *registered;
    mu_node *node;
    mu__pid asker;
    uint64_t closure;
    uint32_t attempt;
    int code;
    struct mu__msg *msg;            /* the RUN message, which backs `args` */
    struct mu__packed args;
    mu_value *args_value;           /* unpacked when first asked for */
    mu_value *result;
    struct mu__buf *result_buf;     /* the result, packed by the thread that ran */
    struct mu__packed result_packed;
    char *words;                    /* of an error */
    struct mu__effects effects;     /* what it writes when it has returned 0 */
    mu_error *failure;              /* with mu_run_fail_with, or of its writes; NULL: the
                                       function's own error, if any */
    atomic_bool cancelled;
};

/* Unpack the arguments, call the function, pack its result. On the executor thread, or on
 * the loop for inline functions. */
void mu__run_execute(struct mu_run *run);

/* Free what the run holds, but not the run and its message. */
void mu__run_clear(struct mu_run *run);

#endif
