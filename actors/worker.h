/* Runs functions for supervisors. One on every node, because functions are registered on
 * every node; only on workers does it offer itself.
 *
 * Hears:  RUN and CANCEL from the supervisor; WORK_DONE from the executor; CALL from the
 *         node's own program, to register functions and to begin; node news
 * Says:   REGISTER to a chief that comes up, RESULT for each RUN
 * Owns:   its runs, until their RESULT is sent; those that are with the executor when the
 *         actor ends are left to it, with their functions
 * Fails:  never by itself; a function's error is a RESULT like any other */
#ifndef MU_ACTORS_WORKER_H
#define MU_ACTORS_WORKER_H

#include "actors/call.h"
#include "runtime/kernel.h"

#include "muster/node.h"

struct mu__worker_config {
    bool serves;            /* offers itself to chiefs, */
    bool serves_at_once;    /* without waiting for MU__WORKER_SERVE */
    uint32_t threads;       /* executor threads of this node */
    const char *task;       /* "/job:worker/task:1", for messages; outlives the actor */
    mu_node *node;          /* for mu_run_node; not looked into */
};

enum mu__worker_operation {
    MU__WORKER_REGISTER,    /* a struct mu__function_call */
    MU__WORKER_SERVE        /* the functions are there: offer this worker to chiefs */
};

/* The program registers a function. */
struct mu__function_call {
    struct mu__call call;
    const char *name;
    mu_function_fn function;
    void *user;
    unsigned flags;
};

extern const struct mu__behavior mu__worker;    /* init takes the config */

/* The name of a function that is running, NULL when none is: for messages at shutdown. */
const char *mu__worker_running(const void *state);

/* Tell every run that nobody wants it any more. */
void mu__worker_cancel_all(void *state);

/* The node said goodbye, so others run what it has not begun: no run is started any
 * more, and those of `unstarted`, the works that the executor gave back, are freed.
 * Messages go to the kernel's `pool`. */
void mu__worker_leave(void *state, struct mu__pool *pool, struct mu__work *unstarted);

/* Free the runs of an executor that has forgotten its works and will not touch them any
 * more, as one whose process was killed. Messages go to the kernel's `pool`. */
void mu__worker_forget_runs(void *state, struct mu__pool *pool);

#endif
