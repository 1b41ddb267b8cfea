/* Questions about names (MU__ASK_ADDRESSES, MU__ASK_SERVICES), answered on threads of
 * libuv's pool, since the system's look-ups block. Loop thread. */
#ifndef MU_RESOLVER_DNS_UV_H
#define MU_RESOLVER_DNS_UV_H

#include "resolver/ask.h"

#include <uv.h>

/* Look up; mu__note_answer follows on the loop, never within this call. note->own is the
 * look-up's until then. Its limit is the question's (limit_ms). */
void mu__dns_uv_ask(uv_loop_t *loop, struct mu__note *note);

/* Nobody wants the answer; the note may be freed. The look-up ends by itself: the loop
 * has to be run until it has. */
void mu__dns_uv_cancel(struct mu__note *note);

#endif
