/* What writing and reading a manifest have in common. */
#ifndef MU_RUNTIME_DOCUMENT_MANIFEST_FORMAT_H
#define MU_RUNTIME_DOCUMENT_MANIFEST_FORMAT_H

#include "runtime/document/manifest.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    MU__MANIFEST_VERSION = 1,
    MU__MANIFEST_END_BYTES = 64 /* of what is behind the sum's bytes, at most */
};

#define MU__MANIFEST_FORMAT "muster checkpoint"

/* The manifest's end, with the sum; its length is always the same. */
static inline size_t mu__manifest_end(uint32_t sum, char out[MU__MANIFEST_END_BYTES])
{
    return (size_t)snprintf(out, MU__MANIFEST_END_BYTES,
                            "\"manifest_crc32c\": \"%08" PRIx32 "\"}\n", sum);
}

#endif
