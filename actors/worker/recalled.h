/* What a worker tells a chief about its runs: which have begun, and which it gives back.
 * Functions over lists of runs; the worker actor owns the runs. */
#ifndef MU_ACTORS_WORKER_RECALLED_H
#define MU_ACTORS_WORKER_RECALLED_H

#include "actors/packing.h"
#include "actors/worker/function_run.h"
#include "runtime/kernel/kernel.h"

/* The answer to one RECALL, while it is put together. */
struct mu__recall_answer {
    struct mu__msg *msg;
    uint8_t *returned; /* where the next entry goes, in the message's backing */
    uint8_t *begun;
    uint8_t *begun_first;
};

/* Room for an answer about `count` attempts. False: out of memory. */
bool mu__recall_answer_begin(struct mu__ctx *ctx, struct mu__recall_answer *answer,
                             uint32_t count);
void mu__recall_answer_returned(struct mu__recall_answer *answer,
                                const struct mu_run *run);
void mu__recall_answer_begun(struct mu__recall_answer *answer, struct mu_run *run,
                             uint64_t now_ms);
int mu__recall_answer_send(struct mu__ctx *ctx, struct mu__recall_answer *answer,
                           mu__pid to);

/* The run of an attempt in a list; NULL when it is not there. Looks from `*at` on, which
 * is then the one behind: attempts that are named in the list's order cost one step each.
 * `*at` NULL: from the list's first. */
struct mu_run *mu__recall_find(const struct mu__list *list, struct mu_run **at,
                               mu__pid requester, const struct mu__attempt *target);

/* Whether a thread has taken the run. */
static inline bool mu__run_has_begun(const struct mu_run *run)
{
    return atomic_load_explicit(&run->work.begun_ms, memory_order_relaxed) != 0;
}

/* Report to chiefs the runs of `running` that have been with a thread for `least_ms` and
 * were not reported. Returns whether to check again: some have been for less, or one of
 * the `threads` is about to take one (the system may be slow to wake it). Runs begin in
 * the list's order. */
bool mu__recall_report_begun(struct mu__ctx *ctx, const struct mu__list *running,
                             uint32_t threads, uint64_t least_ms);

#endif
