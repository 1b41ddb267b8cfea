/* A frame is a small struct beside the message. The message's bytes are aligned to 16
 * bytes by nng: seen for all sizes, made here or received (docs/decisions/0001). */
#include "transport/frame_nng.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MAX = 256 };    /* frames without a message, kept for the next ones */

struct mu__frames {
    struct frame *kept;
    unsigned kept_count;
    uint64_t live;
    bool closed;            /* the last frame to come back frees this */
};

struct frame {
    struct mu__buf buf;     /* first: release casts */
    struct mu__frames *frames;
    struct frame *next;     /* in frames->kept */
    nng_msg *msg;
};

struct mu__frames *mu__frames_new(void)
{
    return calloc(1, sizeof(struct mu__frames));
}

static void frames_free(struct mu__frames *frames)
{
    while (frames->kept != NULL) {
        struct frame *frame = frames->kept;

        frames->kept = frame->next;
        free(frame);
    }
    free(frames);
}

void mu__frames_close(struct mu__frames *frames)
{
    frames->closed = true;
    if (frames->live == 0)
        frames_free(frames);
}

/* The struct only: its message is gone or was never there. */
static void frame_free(struct frame *frame)
{
    struct mu__frames *frames = frame->frames;

    frames->live--;
    if (frames->kept_count < KEPT_MAX && !frames->closed) {
        frame->next = frames->kept;
        frames->kept = frame;
        frames->kept_count++;
    } else {
        free(frame);
    }
    if (frames->closed && frames->live == 0)
        frames_free(frames);
}

static void frame_release(struct mu__buf *buf)
{
    struct frame *frame = (struct frame *)buf;

    nng_msg_free(frame->msg);
    frame_free(frame);
}

struct mu__buf *mu__frame_of_msg(struct mu__frames *frames, nng_msg *msg)
{
    struct frame *frame = frames->kept;

    if (frame != NULL) {
        frames->kept = frame->next;
        frames->kept_count--;
    } else {
        frame = malloc(sizeof *frame);
        if (frame == NULL)
            return NULL;
    }
    frames->live++;
    *frame = (struct frame){.frames = frames, .msg = msg};
    frame->buf.data = nng_msg_body(msg);
    frame->buf.capacity = (uint32_t)nng_msg_len(msg);
    frame->buf.refs = 1;
    frame->buf.release = frame_release;
    assert((uintptr_t)frame->buf.data % 16 == 0);
    return &frame->buf;
}

struct mu__buf *mu__frame_new(struct mu__frames *frames, size_t capacity)
{
    nng_msg *msg;
    struct mu__buf *buf;

    if (nng_msg_alloc(&msg, capacity) != 0)
        return NULL;
    buf = mu__frame_of_msg(frames, msg);
    if (buf == NULL)
        nng_msg_free(msg);
    return buf;
}

/* Is it an nng message inside, and nobody else's? Then it needs no copy. */
static bool is_ours_alone(const struct mu__buf *buf)
{
    return buf->release == frame_release && buf->refs == 1;
}

nng_msg *mu__frame_to_msg(struct mu__buf *buf)
{
    nng_msg *msg;

    if (is_ours_alone(buf)) {
        msg = ((struct frame *)buf)->msg;
        (void)nng_msg_chop(msg, buf->capacity - buf->size);
        return msg;
    }
    if (nng_msg_alloc(&msg, buf->size) != 0)
        return NULL;
    if (buf->size > 0)
        memcpy(nng_msg_body(msg), buf->data, buf->size);
    return msg;
}

/* Growing back to the capacity moves no memory and so cannot fail. */
void mu__frame_take_back(struct mu__buf *buf, nng_msg *msg)
{
    if (!is_ours_alone(buf)) {
        nng_msg_free(msg);
        return;
    }
    (void)nng_msg_realloc(msg, buf->capacity);
    assert(nng_msg_body(msg) == buf->data && nng_msg_len(msg) == buf->capacity);
}

void mu__frame_give_away(struct mu__buf *buf)
{
    if (is_ours_alone(buf))
        frame_free((struct frame *)buf);
    else
        mu__buf_unref(buf);
}
