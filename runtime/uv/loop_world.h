/* The real world: a libuv loop, executor threads and real entropy.
 *
 * Threads: the loop thread is the one that runs the loop. Everything here is for the loop
 * thread, except mu__world_uv_post, which any thread may call from mu__world_uv_open on
 * until `closed` of mu__world_uv_close is called; the owner ensures that no thread calls
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

/* The loop is run by uv_run(UV_RUN_DEFAULT) and nothing else until the world is closed,
 * so posts need not wake it while it does not sleep. Before it runs. */
void mu__world_uv_own_loop(struct mu__world_uv *world);

/* Let the loop and the executor's threads spin before they sleep, as mu__spin_init has
 * it. Without this they do not. Before the loop runs. */
void mu__world_uv_spin(struct mu__world_uv *world, uint32_t spin_us);

/* The operations for the kernel. Valid until `closed` is called. */
struct mu__world *mu__world_uv_world(struct mu__world_uv *world);

/* Hand a message of mu__msg_heap() to hooks->deliver. Messages of one thread arrive in
 * its order.
 *
 * Owns:    takes `msg` when 0 is returned.
 * Returns: 0; -MU_ECLOSED once closing has begun.
 * Thread:  any. */
int mu__world_uv_post(struct mu__world_uv *world, struct mu__msg *msg);

/* Take a turn now, with all that was posted, for a caller on the loop's thread that waits
 * for it. False: nothing was done, since this is inside a turn, or the world is being
 * closed. */
bool mu__world_uv_turn(struct mu__world_uv *world);

/* How much work was submitted and has not come back as WORK_DONE. While closing: how much
 * still runs on a thread, or has ended and was not yet noticed. */
unsigned mu__world_uv_busy(const struct mu__world_uv *world);

/* Start no more work, for an owner that will close the world soon. Returns the work that
 * was queued, the oldest first (a list of mu__work.node); no WORK_DONE comes for it.
 * Running work goes on and comes back; work that is submitted from now on is dropped. */
struct mu__list mu__world_uv_start_no_work(struct mu__world_uv *world);

/* Begin to close: no hook is called any more, posts are refused, queued messages are
 * freed, queued work is never started. Running work is waited for, for as long as it
 * takes (see mu__world_uv_abandon), and no WORK_DONE comes. `closed` is called last,
 * once, from the loop, when the world's memory has been freed. To be called once;
 * allowed inside a hook. */
void mu__world_uv_close(struct mu__world_uv *world, void (*closed)(void *arg), void *arg);

/* After mu__world_uv_close: do not wait any longer for running work. Its threads are left
 * behind, and all that they use must stay in memory: the owner of such work must not free
 * it. The process may exit meanwhile. */
void mu__world_uv_abandon(struct mu__world_uv *world);

#endif
