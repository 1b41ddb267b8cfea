/* A request as a value: a copy of it, and whether two are one and the same. Pure. */
#ifndef MU_RESOLVER_REQUEST_H
#define MU_RESOLVER_REQUEST_H

#include "resolver/engine/request_table.h"

/* Whether one answer is right for both: all of their fields are the same, secret ones,
 * too. A default counts as what it stands for: no method as "GET", a limit of 0 as
 * MU__REQUEST_TIMEOUT_MS. */
bool mu__request_same(const struct mu__request *a, const struct mu__request *b);

/* Of what mostly differs: kind, name and `again`. Equal for requests that are the
 * same. */
uint64_t mu__request_hash(const struct mu__request *request);

/* With all its texts. On success the caller calls mu__request_free_copy. -MU_ENOMEM. */
int mu__request_copy(const struct mu__request *request, struct mu__request *ret_copy);
void mu__request_free_copy(struct mu__request *copy);

/* What a request may take, and the bytes that its answer may have: where it has 0, the
 * defaults. */
uint32_t mu__request_timeout_ms(const struct mu__request *request);
size_t mu__request_bytes_max(const struct mu__request *request);

#endif
