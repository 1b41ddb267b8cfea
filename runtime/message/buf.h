/* Counted byte buffers: frames, the arguments of closures, pieces of tensors.
 *
 * The count is not atomic. A buffer belongs to one thread at a time: its maker passes it
 * to the loop with a message, and from then on only the loop counts. */
#ifndef MU_RUNTIME_BUF_H
#define MU_RUNTIME_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mu__splices;

struct mu__buf {
    uint8_t *data; /* aligned to 16 bytes */
    uint32_t size; /* bytes in use */
    uint32_t capacity;
    uint32_t refs;
    struct mu__splices *splices; /* of an outgoing frame; NULL: it can have none */
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

/* A splice is a large piece of another buffer that a frame refers to instead of copying
 * it: the frame's content is its own bytes, with the splices between them. */
enum {
    MU__SPLICE_BYTES_MIN = 8 << 10, /* smaller pieces are copied */
    MU__SPLICES_MAX = 32            /* of one frame */
};

struct mu__splice {
    const uint8_t *data;
    struct mu__buf *owner; /* a reference */
    uint32_t size;
    uint32_t at; /* the frame's own bytes before it */
};

struct mu__splices {
    uint32_t count;
    uint32_t bytes;     /* of all */
    uint32_t bytes_max; /* of the whole frame; 0: MU__ENCODED_BYTES_MAX */
    struct mu__splice items[MU__SPLICES_MAX];
};

/* Bytes of a frame's content: its own, and those of its splices. */
static inline uint32_t mu__buf_total(const struct mu__buf *buf)
{
    return buf->size + (buf->splices == NULL ? 0 : buf->splices->bytes);
}

/* Whether all these bytes are inside the buffer, so that a reference keeps them alive. */
static inline bool mu__buf_has(const struct mu__buf *buf, const void *data, size_t size)
{
    uintptr_t at = (uintptr_t)data;
    uintptr_t begin = (uintptr_t)buf->data;

    return at >= begin && at - begin <= buf->capacity &&
           size <= buf->capacity - (at - begin);
}

/* Drops the splices behind the first `count`. */
void mu__buf_cut_splices(struct mu__buf *frame, uint32_t count);

#endif
