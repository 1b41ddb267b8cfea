/* What waits on a link: messages of a turn in one frame, nothing lost and nothing out of
 * order when the wire takes nothing for a while, large records in pieces. The wire here
 * writes down what it is given; all tests run with a wire whose frames can have splices,
 * too. */
#ifndef MU_TESTS_TRANSPORT_LINK_OUTBOX_FIXTURE_H
#define MU_TESTS_TRANSPORT_LINK_OUTBOX_FIXTURE_H

#include "actors/messages.h"
#include "muster/error.h"
#include "runtime/message/codec.h"
#include "sim/world/random.h"
#include "tests/support/test.h"
#include "transport/link/outbox.h"

enum { FRAMES_MAX = 4096, OUT = 3 };

struct recorder {
    struct mu__wire wire;
    struct mu__buf *frames[FRAMES_MAX];
    size_t count;
    size_t room; /* frames that it still takes */
    int when_full;
    uint64_t spliced_bytes;
};

struct fixture {
    struct recorder recorder;
    struct mu__outbox outbox;
    struct mu__outbox_route route;
    struct mu__pool pool;
    uint64_t frames;
    uint64_t bytes;
};

static inline struct mu__buf *recorder_buffer(struct mu__wire *wire, size_t capacity)
{
    (void)wire;
    return mu__buf_new(capacity);
}

/* A frame that can have splices. */
struct spliced {
    struct mu__buf buf; /* first: released by it */
    struct mu__splices splices;
    uint8_t *data;
};

static inline void spliced_release(struct mu__buf *buf)
{
    mu__buf_cut_splices(buf, 0);
    free(((struct spliced *)buf)->data);
    free(buf);
}

static inline struct mu__buf *spliced_buffer(struct mu__wire *wire, size_t capacity)
{
    struct spliced *spliced = calloc(1, sizeof *spliced);

    (void)wire;
    assert_non_null(spliced);
    spliced->data = malloc(capacity);
    assert_non_null(spliced->data);
    spliced->buf = (struct mu__buf){
        .data = spliced->data,
        .capacity = (uint32_t)capacity,
        .refs = 1,
        .splices = &spliced->splices,
        .release = spliced_release,
    };
    return &spliced->buf;
}

static inline void append(struct mu__buf *flat, const void *data, size_t size)
{
    assert_true(size <= flat->capacity - flat->size);
    memcpy(flat->data + flat->size, data, size);
    flat->size += (uint32_t)size;
}

/* What the peer reads; takes `frame`. */
static inline struct mu__buf *flatten(struct recorder *recorder, struct mu__buf *frame)
{
    struct mu__buf *flat = mu__buf_new(mu__buf_total(frame));
    uint32_t at = 0;

    assert_non_null(flat);
    for (uint32_t i = 0; i < frame->splices->count; i++) {
        const struct mu__splice *splice = &frame->splices->items[i];

        assert_true(splice->size >= MU__SPLICE_BYTES_MIN && splice->at >= at);
        append(flat, frame->data + at, splice->at - at);
        append(flat, splice->data, splice->size);
        recorder->spliced_bytes += splice->size;
        at = splice->at;
    }
    append(flat, frame->data + at, frame->size - at);
    mu__buf_unref(frame);
    return flat;
}

static inline int recorder_send(struct mu__wire *wire, uint32_t out,
                                struct mu__buf *frame)
{
    struct recorder *recorder = (struct recorder *)wire;

    assert_int_equal(out, OUT);
    assert_true(mu__buf_total(frame) <= MU__FRAME_BYTES_MAX);
    if (recorder->room == 0)
        return recorder->when_full;
    assert_true(recorder->count < FRAMES_MAX);
    recorder->room--;
    if (frame->splices != NULL)
        frame = flatten(recorder, frame);
    recorder->frames[recorder->count++] = frame;
    return 0;
}

static const struct mu__wire_ops recorder_ops = {
    .buffer = recorder_buffer,
    .send = recorder_send,
};

static const struct mu__wire_ops spliced_ops = {
    .splices = true,
    .buffer = spliced_buffer,
    .send = recorder_send,
};

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    f->recorder.wire.ops = &recorder_ops;
    f->recorder.room = SIZE_MAX;
    f->recorder.when_full = -MU_EAGAIN;
    f->route = (struct mu__outbox_route){&f->recorder.wire, OUT, 11, 22};
    mu__pool_init(&f->pool);
    *state = f;
    return 0;
}

static inline int setup_spliced(void **state)
{
    struct fixture *f;

    if (setup(state) != 0)
        return -1;
    f = *state;
    f->recorder.wire.ops = &spliced_ops;
    return 0;
}

static inline void forget_frames(struct fixture *f)
{
    for (size_t i = 0; i < f->recorder.count; i++)
        mu__buf_unref(f->recorder.frames[i]);
    f->recorder.count = 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    forget_frames(f);
    mu__outbox_done(&f->outbox);
    if (f->pool.live != 0)
        return -1;
    mu__pool_done(&f->pool);
    free(f);
    return 0;
}

/* ---- Messages: a RUN whose closure is its number, with so many bytes ---- */

/* What is used after its end is other bytes than were sent. */
static inline void release_backing(struct mu__buf *buf)
{
    memset(buf->data, 0xdd, buf->capacity);
    free(buf->data);
    free(buf);
}

static inline struct mu__buf *backing_new(uint32_t size)
{
    struct mu__buf *buf = malloc(sizeof *buf);

    assert_non_null(buf);
    *buf = (struct mu__buf){.data = malloc(size + 1),
                            .size = size,
                            .capacity = size,
                            .refs = 1,
                            .release = release_backing};
    assert_non_null(buf->data);
    return buf;
}

static inline int add(struct fixture *f, uint64_t number, uint32_t size)
{
    struct mu__msg *msg = mu__msg_heap(MU__RUN, sizeof(struct mu__run));
    struct mu__buf *backing = backing_new(size);
    uint8_t *data = backing->data;
    struct mu__run *run;
    int rv;

    assert_non_null(msg);
    for (uint32_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * 7 + number);
    msg->backing = backing;
    run = (void *)msg->body;
    run->closure = number;
    run->attempt = size;
    run->function = mu__view_str("f");
    run->args.head = data;
    run->args.head_size = size;
    rv = mu__outbox_add(&f->outbox, &f->route, &mu__messages, msg);
    mu__buf_unref(backing);
    free(msg);
    return rv;
}

static inline int flush(struct fixture *f)
{
    return mu__outbox_send(&f->outbox, &f->route, &f->frames, &f->bytes);
}

static inline uint64_t check_run(struct fixture *f, struct mu__buf *buf, size_t *offset)
{
    struct mu__msg *msg = NULL;
    struct mu__run *run;
    uint64_t number;

    assert_int_equal(mu__decode(&mu__messages, &f->pool, buf, offset, NULL, 0, &msg), 0);
    assert_int_equal(msg->kind, MU__RUN);
    run = (void *)msg->body;
    number = run->closure;
    assert_int_equal(run->args.head_size, run->attempt);
    for (uint32_t i = 0; i < run->args.head_size; i++)
        if (((const uint8_t *)run->args.head)[i] != (uint8_t)(i * 7 + number))
            fail_msg("byte %u of run %u", i, (unsigned)number);
    mu__pool_put(&f->pool, msg);
    return number;
}

static inline struct mu__frame_header header_of(struct fixture *f, size_t i)
{
    struct mu__frame_header header;

    assert_true(i < f->recorder.count);
    assert_int_equal(mu__frame_read(f->recorder.frames[i], &header), 0);
    assert_int_equal(header.version, MU__FRAME_VERSION);
    assert_true(header.from == 11 && header.to == 22);
    return header;
}

static inline void expect_type(struct fixture *f, size_t i, uint8_t type, uint32_t count)
{
    struct mu__frame_header header = header_of(f, i);

    assert_int_equal(header.type, type);
    assert_int_equal(header.count, count);
}

static inline void expect_done(const struct fixture *f)
{
    assert_true(mu__outbox_is_empty(&f->outbox));
    assert_int_equal(f->outbox.waiting_bytes, 0);
    assert_int_equal(f->frames, f->recorder.count);
}

/* ---- Pieces ---- */

/* Put pieces together as the receiver does. */
struct assembly {
    struct mu__buf *whole;
    uint64_t total;
};

/* The number of the message that is whole now; 0 when none is. */
static inline uint64_t take_piece(struct fixture *f, struct assembly *assembly,
                                  struct mu__buf *frame)
{
    size_t offset = MU__FRAME_HEADER_BYTES;
    struct mu__msg *msg = NULL;
    struct mu__piece *piece;
    uint64_t number = 0;

    assert_int_equal(
        mu__decode(&mu__frame_messages, &f->pool, frame, &offset, NULL, 0, &msg), 0);
    piece = (void *)msg->body;
    if (piece->offset == 0) {
        assert_null(assembly->whole);
        assembly->whole = mu__buf_new(piece->total);
        assembly->total = piece->total;
    }
    assert_non_null(assembly->whole);
    assert_int_equal(piece->offset, assembly->whole->size);
    assert_int_equal(piece->total, assembly->total);
    assert_true(piece->data.size > 0 && piece->data.size <= MU__LINK_PIECE_BYTES);
    memcpy(assembly->whole->data + piece->offset, piece->data.data, piece->data.size);
    assembly->whole->size += piece->data.size;
    mu__pool_put(&f->pool, msg);
    if (assembly->whole->size < assembly->total)
        return 0;
    offset = 0;
    number = check_run(f, assembly->whole, &offset);
    assert_int_equal(offset, assembly->total);
    mu__buf_unref(assembly->whole);
    assembly->whole = NULL;
    return number;
}

#endif
