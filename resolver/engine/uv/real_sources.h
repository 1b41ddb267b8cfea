/* The sources of the real world: variables, the host's name, the clock; files, folders,
 * names, HTTP, programs and functions of the program's own on threads
 * (runtime/uv/blocking.h).
 *
 * Files may be anything that can be read, but not longer than the request's bytes_max,
 * so a pipe or a device that never ends is an error and not a wait. A call that hangs
 * (a look-up of a name, a file on a server that is away) cannot be ended: it is left to
 * its thread when the request's timeout has passed, or when the sources are stopped. */
#ifndef MU_RESOLVER_ENGINE_UV_SOURCES_H
#define MU_RESOLVER_ENGINE_UV_SOURCES_H

#include "resolver/engine/sources.h"

struct mu__sources_uv;

/* `cache_of`: others whose cache they use, too, and which are freed after these; NULL:
 * they have one of their own. -MU_ENOMEM. */
int mu__sources_uv_new(struct mu__sources_uv *cache_of,
                       struct mu__sources_uv **ret_sources);

/* For mu__query. */
struct mu__sources *mu__sources_uv_base(struct mu__sources_uv *sources);

/* Any thread: whoever waits for an answer or pauses is to return at once, from now on. */
void mu__sources_uv_stop(struct mu__sources_uv *sources);

/* A query begins: they are stopped and hurried no more. Nobody uses them now. */
void mu__sources_uv_restart(struct mu__sources_uv *sources);

/* Any thread: what is read has changed, so the next pause of files or rounds ends. */
void mu__sources_uv_hurry(struct mu__sources_uv *sources);

/* Whether functions of the program's own, programs or HTTP requests have been left behind
 * that may still run. */
bool mu__sources_uv_has_left(const struct mu__sources_uv *sources);

/* Wait for them: for functions `calls_ms` at most, for the others, which end soon, 5 s.
 * What then still runs is left to itself; `left` gets a line that names a function (NULL:
 * none is wanted). */
void mu__sources_uv_wait_for_left(struct mu__sources_uv *sources, uint64_t calls_ms,
                                  void (*left)(void *owner, const char *line),
                                  void *owner);

/* Work that still runs is left to itself. NULL is fine. */
void mu__sources_uv_free(struct mu__sources_uv *sources);

#endif
