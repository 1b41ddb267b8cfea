/* SipHash-1-3, a keyed hash for texts that peers choose: without the secret they cannot
 * find texts of the same hash. */
#ifndef MU_RUNTIME_BASE_SIP_HASH_H
#define MU_RUNTIME_BASE_SIP_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Never 0, so that it can be a key of a mu__map. */
uint64_t mu__sip_hash(uint64_t secret, const void *data, size_t size);

#endif
