/* Who answers questions from the real world, in a given loop: variables, the host's name,
 * the clock; files, folders, names, signatures and functions of the program's own on
 * threads (runtime/uv/errands.h); HTTP through libcurl, which is loaded at the first
 * request. Loop thread only.
 *
 * Files may be anything that can be read, but not longer than the question's bytes_max,
 * so a pipe or a device that never ends is an error and not a wait. What hangs (a look-up
 * of a name, a file on a server that is away) cannot be ended: it is left to its thread
 * when the question's limit has passed, or when the asker closes. */
#ifndef MU_RESOLVER_ASKER_UV_H
#define MU_RESOLVER_ASKER_UV_H

#include "resolver/engine/ask.h"

#include <uv.h>

struct mu__asker_uv;

/* -MU_ENOMEM. An asker that is asked nothing does not keep the loop alive. */
int mu__asker_uv_open(uv_loop_t *loop, struct mu__asker_uv **ret_asker);

/* To be given to notes. Valid until close. */
struct mu__asker *mu__asker_uv_asker(struct mu__asker_uv *asker);

/* Closing then waits for functions of the program's own that still run, for
 * `timeout_ms` at most: what they use may go when the program's call has returned.
 * `left` is told which one was left behind, before the asker is closed. Without this
 * they are left at once. */
void mu__asker_uv_wait_for_calls(struct mu__asker_uv *asker, uint64_t timeout_ms,
                                 void (*left)(void *owner, const char *line),
                                 void *owner);

/* All notes were freed. `closed` is the last that is heard, from the loop. To be called
 * once. */
void mu__asker_uv_close(struct mu__asker_uv *asker, void (*closed)(void *arg), void *arg);

#endif
