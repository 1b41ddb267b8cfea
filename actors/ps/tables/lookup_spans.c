#include "actors/ps/tables/lookup_spans.h"

#include "runtime/base/byte_order.h"

bool mu__lookup_spans_at(struct mu__view bytes, uint32_t i,
                         struct mu__lookup_span *ret_span)
{
    const uint8_t *at = (const uint8_t *)bytes.data + (size_t)i * MU__LOOKUP_SPAN_BYTES;

    ret_span->partition = mu__load_little32(at);
    ret_span->count = mu__load_little32(at + 4);
    ret_span->generation = mu__load_little64(at + 8);
    return ret_span->partition < MU__PARTITIONS;
}

uint8_t *mu__lookup_spans_put(uint8_t *at, const struct mu__lookup_span *span)
{
    mu__store_little32(at, span->partition);
    mu__store_little32(at + 4, span->count);
    mu__store_little(at + 8, span->generation, 8);
    return at + MU__LOOKUP_SPAN_BYTES;
}
