/* A barrier of threads, each with a number and a name: used again and again, with
 * timeouts, and broken for all and for good by the first thread that fails, is late or
 * leaves. Knows nothing of tasks or nodes. */
#ifndef MU_NODE_THREAD_BARRIER_H
#define MU_NODE_THREAD_BARRIER_H

#include "muster/error.h"

struct mu__thread_barrier;

enum { MU__THREAD_NAME_BYTES = 64 };

/* For exactly `count` participants, at least 1. NULL: out of memory. */
struct mu__thread_barrier *mu__thread_barrier_new(unsigned count);

/* The name of participant `i` for messages, cut at MU__THREAD_NAME_BYTES; before
 * anybody waits. */
void mu__thread_barrier_name(struct mu__thread_barrier *barrier, unsigned i,
                             const char *name);

/* Wait as participant `i` until all have come. -MU_EDEADLINE names those missing, and
 * breaks the barrier. A broken one answers with what broke it, at once.
 * -MU_EPRECONDITION: `i` is waiting already. Negative timeouts are without end. */
int mu__thread_barrier_wait(struct mu__thread_barrier *barrier, unsigned i,
                            int64_t timeout_ms, mu_error *ret_error);

/* Everybody who waits, now or later, gets this error. The first one counts. */
void mu__thread_barrier_break(struct mu__thread_barrier *barrier, const mu_error *why);

/* Participant `i` will not come any more: those that wait for it get -MU_EABORTED. */
void mu__thread_barrier_leave(struct mu__thread_barrier *barrier, unsigned i);

/* How many wait at this moment. */
unsigned mu__thread_barrier_here(struct mu__thread_barrier *barrier);

/* Nobody may be inside. NULL is fine. */
void mu__thread_barrier_free(struct mu__thread_barrier *barrier);

#endif
