/* Counted byte buffers: frames, the arguments of closures, pieces of tensors.
 *
 * The count is not atomic. A buffer belongs to one thread at a time: whoever makes it
 * hands it to the loop with a message, and from then on only the loop counts. */
#ifndef MU_RUNTIME_BUF_H
#define MU_RUNTIME_BUF_H

#include <stddef.h>
#include <stdint.h>

struct mu__buf {
    uint8_t *data;          /* aligned to 16 bytes */
    uint32_t size;          /* bytes in use */
    uint32_t capacity;
    uint32_t refs;
    void (*release)(struct mu__buf *buf); /* frees data and the struct */
};

/* One allocation for the struct and `capacity` bytes; size 0, one reference. NULL when
 * out of memory or `capacity` does not fit 32 bits. */
struct mu__buf *mu__buf_new(size_t capacity);

static inline struct mu__buf *mu__buf_ref(struct mu__buf *buf)
{
    buf->refs++;
    return buf;
}

/* NULL is fine. */
static inline void mu__buf_unref(struct mu__buf *buf)
{
    if (buf != NULL && --buf->refs == 0)
        buf->release(buf);
}

#endif
