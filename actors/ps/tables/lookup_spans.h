/* The spans of a look-up: a list of partitions, with how many ids of each follow each
 * other; 16 bytes each, little-endian. */
#ifndef MU_ACTORS_PS_TABLES_LOOKUP_SPANS_H
#define MU_ACTORS_PS_TABLES_LOOKUP_SPANS_H

#include "actors/messages.h"

struct mu__lookup_span {
    uint32_t partition;
    uint32_t count;
    uint64_t generation; /* as in other requests */
};

static inline uint32_t mu__lookup_spans_count(struct mu__view bytes)
{
    return bytes.size / MU__LOOKUP_SPAN_BYTES;
}

/* Entry `i`; false: it is of no partition. */
bool mu__lookup_spans_at(struct mu__view bytes, uint32_t i,
                         struct mu__lookup_span *ret_span);
uint8_t *mu__lookup_spans_put(uint8_t *at, const struct mu__lookup_span *span);

#endif
