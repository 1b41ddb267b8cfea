/* Frames and nng's messages: a message is a preface (transport/wire/sp.h), then a frame.
 * On the way out a frame is copied once, with its splices: nng takes only memory of its
 * own. On the way in a frame is nng's message itself. nng has taken the first four bytes
 * of the preface for itself then, as the last ones of the message's header. */
#include "transport/wire/nng/internal.h"

#include "runtime/message/block_pool.h"

#include <string.h>

struct outgoing_frame {
    struct mu__buf buf; /* first: released by it */
    struct mu__splices splices;
};

struct nng_frame {
    struct mu__buf buf; /* first: released by it */
    nng_msg *message;
};

static void release_nng_frame(struct mu__buf *buf)
{
    mu__buf_cut_splices(buf, 0);
    mu__block_put(buf);
}

struct mu__buf *mu__nng_frame_buffer(struct mu__wire *door, size_t capacity)
{
    const size_t offset = (sizeof(struct outgoing_frame) + 15) / 16 * 16;
    struct outgoing_frame *frame;

    (void)door;
    if (capacity > MU__FRAME_BYTES_MAX)
        return NULL;
    frame = mu__block_get(offset + capacity);
    if (frame == NULL)
        return NULL;
    frame->splices.count = 0;
    frame->splices.bytes = 0;
    frame->splices.bytes_max = 0;
    frame->buf = (struct mu__buf){
        .data = (uint8_t *)frame + offset,
        .capacity = (uint32_t)capacity,
        .refs = 1,
        .splices = &frame->splices,
        .release = release_nng_frame,
    };
    return &frame->buf;
}

static uint8_t *copy_bytes_to(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size > 0)
        memcpy(to, from, size);
    return to + size;
}

static void copy_frame(uint8_t *to, const struct mu__buf *frame)
{
    const struct mu__splices *splices = frame->splices;
    uint32_t done = 0;

    for (uint32_t i = 0; splices != NULL && i < splices->count; i++) {
        const struct mu__splice *splice = &splices->items[i];

        to = copy_bytes_to(to, frame->data + done, splice->at - done);
        to = copy_bytes_to(to, splice->data, splice->size);
        done = splice->at;
    }
    (void)copy_bytes_to(to, frame->data + done, frame->size - done);
}

nng_msg *mu__nng_message_of(const struct mu__buf *frame,
                            const struct mu__sp_preface *preface)
{
    size_t size = frame == NULL ? 0 : mu__buf_total(frame);
    nng_msg *message;
    uint8_t *to;

    if (nng_msg_alloc(&message, MU__SP_PREFACE_BYTES + size) != 0)
        return NULL;
    to = nng_msg_body(message);
    mu__sp_write(to, preface);
    if (frame != NULL)
        copy_frame(to + MU__SP_PREFACE_BYTES, frame);
    return message;
}

bool mu__nng_take_preface(nng_msg *message, struct mu__sp_preface *ret_preface)
{
    enum { TAKEN = 4, LEFT = MU__SP_PREFACE_BYTES - TAKEN };
    uint8_t bytes[MU__SP_PREFACE_BYTES];
    size_t size = nng_msg_header_len(message);

    if (size < TAKEN || nng_msg_len(message) < LEFT)
        return false;
    memcpy(bytes, (uint8_t *)nng_msg_header(message) + size - TAKEN, TAKEN);
    memcpy(bytes + TAKEN, nng_msg_body(message), LEFT);
    return nng_msg_trim(message, LEFT) == 0 && mu__sp_read(bytes, ret_preface) &&
           (!ret_preface->is_note || nng_msg_len(message) == 0);
}

static void release_received(struct mu__buf *buf)
{
    nng_msg_free(((struct nng_frame *)buf)->message);
    mu__block_put(buf);
}

/* Frames are aligned to 16 bytes; what nng has elsewhere is copied. */
static struct mu__buf *copy_nng_message(nng_msg *message)
{
    uint32_t size = (uint32_t)nng_msg_len(message);
    struct mu__buf *frame = mu__buf_new(size);

    if (frame != NULL) {
        (void)copy_bytes_to(frame->data, nng_msg_body(message), size);
        frame->size = size;
    }
    nng_msg_free(message);
    return frame;
}

struct mu__buf *mu__nng_frame_of(nng_msg *message)
{
    uint32_t size = (uint32_t)nng_msg_len(message);
    uint8_t *data = nng_msg_body(message);
    struct nng_frame *received;

    if ((uintptr_t)data % 16 != 0 || data == NULL)
        return copy_nng_message(message);
    received = mu__block_get(sizeof *received);
    if (received == NULL) {
        nng_msg_free(message);
        return NULL;
    }
    received->message = message;
    received->buf = (struct mu__buf){
        .data = data,
        .size = size,
        .capacity = size,
        .refs = 1,
        .release = release_received,
    };
    return &received->buf;
}
