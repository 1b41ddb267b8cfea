/* Runs functions for supervisors. One on every node, because functions are registered on
 * every node; only on workers does it offer itself to chiefs.
 *
 * Hears:  RUN, CANCEL and RECALL from the supervisor; INPUT, DROP and PULL about what
 *         is kept here; WORK_DONE from the executor; EFFECTS_SENT from the variables
 *         actor; RUN_LOG from functions; CALL from the node's own program, to register
 *         functions and to begin; REGISTER_REFUSED from a chief; node news
 * Says:   REGISTER to a chief that comes up, RESULT for each RUN that was not given back,
 *         RECALLED for each RECALL, BEGUN of runs that take long, PULLED for each PULL,
 *         EFFECTS_SEND for a run with writes
 * Owns:   its runs, until their RESULT is sent; those that are with the executor when the
 *         actor ends are left to it, with their functions. What it keeps for each chief
 *         (actors/worker/pinned.h), until the chief drops it or is lost
 * Fails:  never by itself; a function's error is a RESULT like any other
 *
 * A run is in one place at a time: it waits for its inputs, is with the executor, or is
 * with the variables actor, which has a pointer to it from EFFECTS_SEND to EFFECTS_SENT.
 * That actor answers each run before it obeys an END; and as actors of a kernel that is
 * freed end in the order of their numbers, the worker before it, its own end touches no
 * run any more.
 *
 * A number that was dropped does not come again, unless a RUN makes it or asks for it.
 * The supervisor drops what a RESULT says is kept and nobody wants, a stale one's too. */
#ifndef MU_ACTORS_WORKER_H
#define MU_ACTORS_WORKER_H

#include "actors/call.h"
#include "actors/worker/function_run.h"
#include "runtime/kernel/kernel.h"

#include "muster/node.h"

struct mu__worker_config {
    bool serves;                 /* offers itself to chiefs, */
    bool serves_at_once;         /* without waiting for MU__WORKER_SERVE */
    uint32_t threads;            /* executor threads of this node */
    uint64_t retained_bytes_max; /* of what one chief has here, to which it may still
                                    send inputs, and of all runs; 0: no bound */
    uint32_t index;              /* of this task */
    const char *task;            /* "/job:worker/task:1", for messages, */
    const char *type;            /* and "worker"; both outlive the actor */
    mu_node *node;               /* for mu_run_node; not looked into */
    mu__post_fn post; /* posts log lines of functions to this actor; may be NULL */
};

enum mu__worker_operation {
    MU__WORKER_REGISTER, /* a struct mu__function_call */
    MU__WORKER_SERVE     /* the functions are there: offer this worker to chiefs */
};

/* A call of the program that registers a function. */
struct mu__function_call {
    struct mu__call call;
    const char *name;
    mu_function_fn function;
    void *user;
    unsigned flags;
};

extern const struct mu__behavior mu__worker; /* init takes the config */

/* Whether a function is with the executor, and the name of one: for messages at
 * shutdown. */
bool mu__worker_running(const void *state, char *out, size_t size);

/* Cancel every run that is with the executor. */
void mu__worker_cancel_all(void *state);

/* The node leaves, and other workers run what it has not begun: no run is started any
 * more; those of `unstarted`, the works that the executor gave back (a list of
 * mu__work.node), are freed, as are those that wait for inputs. Messages go to the
 * kernel's `pool`. */
void mu__worker_leave(void *state, struct mu__pool *pool, struct mu__list unstarted);

/* Free the runs of an executor that will not touch its works any more, such as one whose
 * process was killed, and those that the variables actor has: both actors end before any
 * message is handled. Messages go to the kernel's `pool`. */
void mu__worker_forget_runs(void *state, struct mu__pool *pool);

/* Bytes of all values that are kept here, as they would be sent. Objects do not count. */
uint64_t mu__worker_pinned_bytes(const void *state);

#endif
