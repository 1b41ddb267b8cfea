/* Questions about names (MU__ASK_ADDRESSES, MU__ASK_SERVICES), answered on threads of
 * libuv's pool. Loop thread.
 *
 * Addresses are what the system knows (its files, DNS and so on); with
 * question->dns_server that server alone is asked, for the name as it stands. Services
 * are asked of that server, or of those in resolv.conf, with its search list. A number
 * is its own address. */
#ifndef MU_RESOLVER_DNS_UV_H
#define MU_RESOLVER_DNS_UV_H

#include "resolver/ask.h"

#include <uv.h>

/* Look up; mu__note_answer follows on the loop, never within this call, except when there
 * is no memory. note->own is the look-up's until then. Its limit is the question's
 * (limit_ms). Codes: -MU_ENOTFOUND: no such name, or nothing of that kind under it;
 * -MU_EUNAVAILABLE: the server cannot be reached, refuses or has failed; -MU_EDEADLINE;
 * -MU_EEXHAUSTED; -MU_EINVALID: what is no name, or a malformed answer. */
void mu__dns_uv_ask(uv_loop_t *loop, struct mu__note *note);

/* Nobody wants the answer; the note may be freed. The look-up ends by itself: the loop
 * has to be run until it has. */
void mu__dns_uv_cancel(struct mu__note *note);

#endif
