/* The worker's state, and what its files call of each other. For this folder only.
 *
 *     worker.c         the actor: chiefs, runs from RUN to RESULT, RECALL
 *     run_inputs.c     inputs of runs, values that stay here (pinned.c)
 *     run_results.c    RESULT messages
 *     functions.c      the registered functions
 *     function_run.c   one run on its thread; recalled.c: RECALLED and BEGUN */
#ifndef MU_ACTORS_WORKER_INTERNAL_H
#define MU_ACTORS_WORKER_INTERNAL_H

#include "actors/worker/functions.h"

enum { MU__WORKER_CHIEFS_MAX = 16 };

struct worker {
    struct mu__worker_config config;
    struct function_table functions;
    bool serving;
    uint32_t chiefs[MU__WORKER_CHIEFS_MAX]; /* nodes; 0: none */
    struct mu__list running;                /* with the executor */
    struct mu__list waiting;  /* for inputs; the supervisor's window bounds them */
    struct mu__list ready;    /* with all inputs, or with an error in `code`; empty
                                 between messages */
    struct mu__list sending;  /* with the variables actor */
    struct mu__pinned pinned; /* values that stay here between runs */
    struct mu__list spare;    /* memory of runs that have ended */
    uint32_t spare_count;
    uint64_t look_timer; /* for the next check for BEGUN reports; 0: not set */
    uint64_t runs_bytes; /* of all runs; see mu_run.bytes */
    bool leaving;        /* starts no run any more */
    bool full;           /* it was logged that an input was dropped */
};

/* ---- worker.c ---- */

void mu__worker_list_run(struct mu__list *list, struct mu_run *run);
void mu__worker_unlist_run(struct mu_run *run);

/* Start the runs in `ready`; at the end of each handler that may have made some ready.
 * Runs that end at once may make others ready, which join the list. */
void mu__worker_start_ready(struct mu__ctx *ctx, struct worker *w);

/* ---- run_inputs.c ---- */

/* Put a run that has inputs, or whose result stays here, into `waiting` or `ready`. */
void mu__worker_prepare(struct worker *w, struct mu_run *run);

/* The run has ended: its result stays here, or the error does, unless it was dropped,
 * begun anew or sent by the chief meanwhile. */
void mu__worker_settle(struct worker *w, struct mu_run *run);

/* Let a run wait for no input any more. */
void mu__worker_forget_inputs(struct worker *w, struct mu_run *run);

/* No function is registered for a build: runs that wait for its value get an error. */
void mu__worker_fail_unknown(struct mu__ctx *ctx, struct worker *w, mu__pid requester,
                             const struct mu__run *request, const char *text);

void mu__worker_on_input(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__worker_on_drop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__worker_on_pull(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- run_results.c ---- */

/* RESULT with an error that is not a function's. `text` NULL: the code's text. */
int mu__worker_send_refusal(struct mu__ctx *ctx, mu__pid to,
                            const struct mu__run *request, int code, const char *text);
void mu__worker_fill_error(struct mu__result *body, const struct mu_run *run);
void mu__worker_send_outcome(struct mu__ctx *ctx, struct mu_run *run);

#endif
