/* The bytes of a name's record: a checksum of all that follows and of the name, the sizes
 * of head and tail, and the packed value, a map. Pure. */
#ifndef MU_COORDINATION_NAME_RECORD_BYTES_H
#define MU_COORDINATION_NAME_RECORD_BYTES_H

#include "runtime/base/crc32c.h"
#include "runtime/base/view.h"

#include "muster/value.h"

/* The caller frees *ret_bytes. -MU_ENOMEM, or as mu__value_measure. */
int mu__name_record_pack(const struct mu__crc32c *crc, const mu_value *map,
                         struct mu__view name, uint8_t **ret_bytes, size_t *ret_size);

/* -MU_EDATALOSS: a byte of it is another one, or it is of another name. */
int mu__name_record_unpack(const struct mu__crc32c *crc, struct mu__view record,
                           struct mu__view name, mu_value **ret_map);

#endif
