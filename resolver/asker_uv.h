/* Who answers questions from the real world, in a given loop: variables, the host's name,
 * the clock; files and folders on libuv's threads; HTTP through libcurl, which is loaded
 * at the first request; names and signatures. Loop thread only.
 *
 * Files may be anything that can be read, but not longer than the question's bytes_max,
 * so a pipe or a device that never ends is an error and not a wait. */
#ifndef MU_RESOLVER_ASKER_UV_H
#define MU_RESOLVER_ASKER_UV_H

#include "resolver/ask.h"

#include <uv.h>

struct mu__asker_uv;

/* -MU_ENOMEM. An asker that is asked nothing does not keep the loop alive. */
int mu__asker_uv_open(uv_loop_t *loop, struct mu__asker_uv **ret_asker);

/* To be given to notes. Valid until close. */
struct mu__asker *mu__asker_uv_asker(struct mu__asker_uv *asker);

/* All notes were freed. `closed` is the last that is heard, from the loop; a file that is
 * being read may delay it. To be called once. */
void mu__asker_uv_close(struct mu__asker_uv *asker, void (*closed)(void *arg), void *arg);

#endif
