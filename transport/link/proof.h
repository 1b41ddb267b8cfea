/* The rights that peers have proven, and what they may send with them. */
#ifndef MU_TRANSPORT_LINK_PROOF_H
#define MU_TRANSPORT_LINK_PROOF_H

#include "transport/link/internal.h"

/* Read what the other end of greeting->connection has proven, and where it is. */
void mu__link_read_proof(const struct mu__links *links, struct mu__greeting *greeting);

/* Whether a HELLO says what its sender has not proven: to be a task, with a key or
 * certificate for clients, or another task than that of its certificate. */
bool mu__link_is_unproven(const struct mu__proof *proof, const struct mu__hello *hello,
                          char *why, size_t size);

/* Keep what the peer of a link that comes up has proven. */
void mu__link_keep_proof(const struct mu__links *links, struct mu__link *link,
                         const struct mu__proof *proof);

/* Whether the peer has not proven the right that the message needs; logged. */
bool mu__link_is_forbidden(struct mu__links *links, const struct mu__link *link,
                           const struct mu__msg *msg);

#endif
