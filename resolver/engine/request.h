/* A request as a value: a copy of it, and whether two are one and the same. Pure. */
#ifndef MU_RESOLVER_REQUEST_H
#define MU_RESOLVER_REQUEST_H

#include "resolver/engine/request_table.h"

/* Whether one answer serves both: all of their fields are equal, also secret ones. A
 * default equals what it stands for: no method is "GET", a limit of 0 is
 * MU__REQUEST_TIMEOUT_MS. */
bool mu__request_same(const struct mu__request *a, const struct mu__request *b);

/* A hash of kind, name and `again`: equal for requests that are the same. */
uint64_t mu__request_hash(const struct mu__request *request);

/* Copy a request with all its texts. On success the caller calls mu__request_free_copy.
 * -MU_ENOMEM. */
int mu__request_copy(const struct mu__request *request, struct mu__request *ret_copy);
void mu__request_free_copy(struct mu__request *copy);

/* The request's timeout, and the largest answer in bytes; the defaults where it has 0. */
uint32_t mu__request_timeout_ms(const struct mu__request *request);
size_t mu__request_bytes_max(const struct mu__request *request);

#endif
