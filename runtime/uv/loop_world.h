/* The real world: a libuv loop, executor threads and real entropy.
 *
 * Threads: the loop thread is the one that runs the loop. Everything here is for the loop
 * thread, except mu__world_uv_post, which any thread may call from mu__world_uv_open on
 * until `closed` of mu__world_uv_close is called; the owner sees to it that nobody calls
 * it after that. Hooks run on the loop thread, one at a time, called by the loop, never
 * inside an operation.
 *
 * An idle world makes no wakes: no timer runs unless a turn was asked for. */
#ifndef MU_RUNTIME_WORLD_UV_H
#define MU_RUNTIME_WORLD_UV_H

#include "runtime/kernel/world.h"

#include <uv.h>

struct mu__world_uv;

/* Where log lines go. `owner` is the hooks' owner. */
typedef void (*mu__world_uv_log_fn)(void *owner, enum mu__log_level level,
                                    const char *who, const char *line);

/* Open a world on `loop`, which its owner runs and which outlives the world, with
 * `threads` executor threads (1 to MU__EXECUTOR_THREADS_MAX). `hooks` is copied; `log`
 * may be NULL. Until it is closed, the world keeps the loop alive. */
int mu__world_uv_open(uv_loop_t *loop, unsigned threads,
                      const struct mu__world_hooks *hooks, mu__world_uv_log_fn log,
                      struct mu__world_uv **ret_world);

/* The door. Valid until `closed`. */
struct mu__world *mu__world_uv_world(struct mu__world_uv *world);

/* Hand a message of mu__msg_heap() to hooks->deliver. Messages of one thread arrive in
 * its order.
 *
 * Owns:    takes `msg` when 0 is returned.
 * Returns: 0; -MU_ECLOSED once closing has begun.
 * Thread:  any. */
int mu__world_uv_post(struct mu__world_uv *world, struct mu__msg *msg);

/* Work that was submitted and has not come back as WORK_DONE. While closing: work that
 * still runs on a thread, or has ended and was not yet noticed. */
unsigned mu__world_uv_busy(const struct mu__world_uv *world);

/* Work that has not started never will: it is given back, linked by `next`, and no
 * WORK_DONE comes for it. Work that runs goes on, and comes back as ever; what is
 * submitted from now on is dropped. For an owner that will close the world soon. */
struct mu__work *mu__world_uv_start_no_work(struct mu__world_uv *world);

/* Begin to close: no hook is called any more, posts are refused, messages that wait are
 * freed, work that has not started never will. Work that runs is waited for, for as long
 * as it takes (see mu__world_uv_abandon), and no WORK_DONE comes. `closed` is the last
 * that is heard, once, from the loop, when the world's memory has been freed. To be
 * called once; allowed inside a hook. */
void mu__world_uv_close(struct mu__world_uv *world, void (*closed)(void *arg), void *arg);

/* After mu__world_uv_close, when its patience has ended: do not wait for work that still
 * runs. Its threads are left behind, and what they use must stay in memory: the owner of
 * such work must not free it. The process may exit meanwhile. */
void mu__world_uv_abandon(struct mu__world_uv *world);

#endif
