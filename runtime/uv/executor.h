/* The executor threads of the libuv world: they run work that may block for an hour.
 *
 * They are our own threads and not libuv's pool, which the embedding program uses for
 * names and files. Work is started in the order of submission. Every function here is
 * for the loop thread. */
#ifndef MU_RUNTIME_EXECUTOR_UV_H
#define MU_RUNTIME_EXECUTOR_UV_H

#include "runtime/kernel/world.h"

enum { MU__EXECUTOR_THREADS_MAX = 1024 };

struct mu__executor;

/* Starts `threads` threads, 1 to MU__EXECUTOR_THREADS_MAX. `wake` is called from them, by
 * one at a time, when finished work waits to be taken and when a thread has ended. */
int mu__executor_new(unsigned threads, void (*wake)(void *owner), void *owner,
                     struct mu__executor **ret_executor);

/* Let threads without work spin before they sleep, as mu__spin_init has it. Before work
 * is submitted. */
void mu__executor_spin(struct mu__executor *executor, uint32_t spin_us);

/* The work belongs to the executor until it comes back from mu__executor_take_done. */
void mu__executor_submit(struct mu__executor *executor, struct mu__work *work);

/* Take back work that no thread has taken yet; false: it has begun, and comes back from
 * mu__executor_take_done. */
bool mu__executor_withdraw(struct mu__executor *executor, struct mu__work *work);

/* All work that has finished, in the order of finishing: a list of mu__work.node. */
struct mu__list mu__executor_take_done(struct mu__executor *executor);

/* Start no more work; threads end as soon as their work does. Returns the work that was
 * queued, in the order of submission: a list of mu__work.node. */
struct mu__list mu__executor_stop(struct mu__executor *executor);

/* Whether every thread has ended after mu__executor_stop, so that mu__executor_free does
 * not wait. */
bool mu__executor_has_ended(struct mu__executor *executor);

/* Stops, waits for every thread. `wake` is not called any more. NULL is fine. */
void mu__executor_free(struct mu__executor *executor);

/* Instead of mu__executor_free when some work does not end: leaves the threads that still
 * run to themselves. Neither `wake` nor `owner` is used any more. The last thread to end
 * frees the executor; the work they run must stay in memory until then, so its owner must
 * not free it. */
void mu__executor_abandon(struct mu__executor *executor);

#endif
