/* Counted byte buffers: the plain kind, one malloc for the struct and its bytes. */
#include "runtime/buf.h"

#include <stdalign.h>
#include <stdlib.h>

enum { DATA_ALIGN = 16 };

_Static_assert(alignof(max_align_t) >= DATA_ALIGN, "malloc aligns buffers and tensors");

/* Bytes from the struct's begin to the data's. */
static const size_t data_offset =
    (sizeof(struct mu__buf) + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;

static void release(struct mu__buf *buf)
{
    free(buf);
}

struct mu__buf *mu__buf_new(size_t capacity)
{
    struct mu__buf *buf;

    if (capacity > UINT32_MAX)
        return NULL;
    buf = malloc(data_offset + capacity);
    if (buf == NULL)
        return NULL;
    *buf = (struct mu__buf){
        .data = (uint8_t *)buf + data_offset,
        .capacity = (uint32_t)capacity,
        .refs = 1,
        .release = release,
    };
    return buf;
}
