/* Counted byte buffers: the plain kind, one block for the struct and its bytes. */
#include "runtime/message/buf.h"

#include "runtime/message/block_pool.h"

enum { DATA_ALIGN = 16 };

/* Bytes from the struct's begin to the data's. */
static const size_t data_offset =
    (sizeof(struct mu__buf) + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;

static void release_buf(struct mu__buf *buf)
{
    mu__block_put(buf);
}

struct mu__buf *mu__buf_new(size_t capacity)
{
    struct mu__buf *buf;

    if (capacity > UINT32_MAX)
        return NULL;
    buf = mu__block_get(data_offset + capacity);
    if (buf == NULL)
        return NULL;
    *buf = (struct mu__buf){
        .data = (uint8_t *)buf + data_offset,
        .capacity = (uint32_t)capacity,
        .refs = 1,
        .release = release_buf,
    };
    return buf;
}

void mu__buf_cut_splices(struct mu__buf *frame, uint32_t count)
{
    struct mu__splices *splices = frame->splices;

    while (splices != NULL && splices->count > count) {
        struct mu__splice *last = &splices->items[--splices->count];

        splices->bytes -= last->size;
        mu__buf_unref(last->owner);
    }
}
