/* The requester of the real world, in a given loop: variables, the host's name, the
 * clock; files, folders, names, signatures and functions of the program's own on
 * threads (runtime/uv/blocking.h); HTTP through libcurl, which is loaded at the first
 * request. Loop thread only.
 *
 * Files may be anything that can be read, but not longer than the request's bytes_max,
 * so a pipe or a device that never ends is an error and not a wait. A call that hangs
 * (a look-up of a name, a file on a server that is away) cannot be ended: it is left to
 * its thread when the request's timeout has passed, or when the requester closes. */
#ifndef MU_RESOLVER_ENGINE_UV_REQUESTER_H
#define MU_RESOLVER_ENGINE_UV_REQUESTER_H

#include "resolver/engine/exchange.h"

#include <uv.h>

struct mu__requester_uv;

/* -MU_ENOMEM. A requester without requests does not keep the loop alive. */
int mu__requester_uv_open(uv_loop_t *loop, struct mu__requester_uv **ret_requester);

/* For mu__requests_new. Valid until close. */
struct mu__requester *mu__requester_uv_base(struct mu__requester_uv *requester);

/* Make closing wait for functions of the program's own that still run, for `timeout_ms`
 * at most: what they use may be freed when the program's call has returned. `left` gets
 * a line that names those left behind, before the requester is closed. Without this
 * call closing does not wait for them. */
void mu__requester_uv_wait_for_calls(struct mu__requester_uv *requester,
                                     uint64_t timeout_ms,
                                     void (*left)(void *owner, const char *line),
                                     void *owner);

/* Only after all requests were freed. `closed` is the last callback, from the loop. To
 * be called once. */
void mu__requester_uv_close(struct mu__requester_uv *requester, void (*closed)(void *arg),
                            void *arg);

#endif
