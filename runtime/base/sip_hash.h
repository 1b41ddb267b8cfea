/* SipHash-1-3: a hash of texts that others have chosen. Who does not know the secret
 * cannot choose texts of the same hash. */
#ifndef MU_RUNTIME_BASE_SIP_HASH_H
#define MU_RUNTIME_BASE_SIP_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Never 0, which a map does not take. */
uint64_t mu__sip_hash(uint64_t secret, const void *data, size_t size);

#endif
