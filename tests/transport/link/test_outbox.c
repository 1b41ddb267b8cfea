/* What waits on a link: messages of a turn in one frame, nothing lost and nothing out of
 * order when the wire takes nothing for a while, large records in pieces. The wire here
 * writes down what it is given; all tests run with a wire whose frames can have splices,
 * too. */
#include "actors/messages.h"
#include "muster/error.h"
#include "runtime/message/codec.h"
#include "tests/sim/random.h"
#include "transport/link/outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FRAMES_MAX = 4096, OUT = 3 };

struct recorder {
    struct mu__wire wire;
    struct mu__buf *frames[FRAMES_MAX];
    size_t count;
    size_t room;        /* frames that it still takes */
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

static struct mu__buf *recorder_buffer(struct mu__wire *wire, size_t capacity)
{
    (void)wire;
    return mu__buf_new(capacity);
}

/* A frame that can have splices. */
struct spliced {
    struct mu__buf buf;     /* first: released by it */
    struct mu__splices splices;
    uint8_t *data;
};

static void spliced_release(struct mu__buf *buf)
{
    mu__buf_cut_splices(buf, 0);
    free(((struct spliced *)buf)->data);
    free(buf);
}

static struct mu__buf *spliced_buffer(struct mu__wire *wire, size_t capacity)
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

static void append(struct mu__buf *flat, const void *data, size_t size)
{
    assert_true(size <= flat->capacity - flat->size);
    memcpy(flat->data + flat->size, data, size);
    flat->size += (uint32_t)size;
}

/* What the peer reads; takes `frame`. */
static struct mu__buf *flatten(struct recorder *recorder, struct mu__buf *frame)
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

static int recorder_send(struct mu__wire *wire, uint32_t out, struct mu__buf *frame)
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

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    f->recorder.wire.ops = &recorder_ops;
    f->recorder.room = SIZE_MAX;
    f->recorder.when_full = -MU_EAGAIN;
    f->route = (struct mu__outbox_route){&f->recorder.wire, OUT, 11, 22, 0};
    mu__pool_init(&f->pool);
    *state = f;
    return 0;
}

static int setup_spliced(void **state)
{
    struct fixture *f;

    if (setup(state) != 0)
        return -1;
    f = *state;
    f->recorder.wire.ops = &spliced_ops;
    return 0;
}

static void forget_frames(struct fixture *f)
{
    for (size_t i = 0; i < f->recorder.count; i++)
        mu__buf_unref(f->recorder.frames[i]);
    f->recorder.count = 0;
}

static int teardown(void **state)
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
static void release_backing(struct mu__buf *buf)
{
    memset(buf->data, 0xdd, buf->capacity);
    free(buf->data);
    free(buf);
}

static struct mu__buf *backing_new(uint32_t size)
{
    struct mu__buf *buf = malloc(sizeof *buf);

    assert_non_null(buf);
    *buf = (struct mu__buf){.data = malloc(size + 1), .size = size, .capacity = size,
                            .refs = 1, .release = release_backing};
    assert_non_null(buf->data);
    return buf;
}

static int add(struct fixture *f, uint64_t number, uint32_t size)
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

static int flush(struct fixture *f)
{
    return mu__outbox_send(&f->outbox, &f->route, &f->frames, &f->bytes);
}

static uint64_t check_run(struct fixture *f, struct mu__buf *buf, size_t *offset)
{
    struct mu__msg *msg = NULL;
    struct mu__run *run;
    uint64_t number;

    assert_int_equal(
        mu__decode(&mu__messages, &f->pool, buf, offset, NULL, 0, &msg), 0);
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

static struct mu__frame_header header_of(struct fixture *f, size_t i)
{
    struct mu__frame_header header;

    assert_true(i < f->recorder.count);
    assert_int_equal(mu__frame_read(f->recorder.frames[i], &header), 0);
    assert_int_equal(header.version, MU__FRAME_VERSION);
    assert_true(header.from == 11 && header.to == 22);
    return header;
}

static void expect_type(struct fixture *f, size_t i, uint8_t type, uint32_t count)
{
    struct mu__frame_header header = header_of(f, i);

    assert_int_equal(header.type, type);
    assert_int_equal(header.count, count);
}

static void expect_done(const struct fixture *f)
{
    assert_true(mu__outbox_is_empty(&f->outbox));
    assert_int_equal(f->outbox.waiting_bytes, 0);
    assert_int_equal(f->frames, f->recorder.count);
}

/* ---- Tests ---- */

static void test_nothing(void **state)
{
    struct fixture *f = *state;

    assert_true(mu__outbox_is_empty(&f->outbox));
    assert_int_equal(flush(f), 0);
    assert_int_equal(f->recorder.count, 0);
}

static void test_one_frame_for_a_turn(void **state)
{
    struct fixture *f = *state;
    size_t offset = MU__FRAME_HEADER_BYTES;

    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(add(f, i, 10), 0);
    assert_int_equal(f->recorder.count, 0);
    assert_int_equal(flush(f), 0);
    assert_int_equal(f->recorder.count, 1);
    expect_type(f, 0, MU__FRAME_DATA, 100);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(check_run(f, f->recorder.frames[0], &offset), i);
    assert_int_equal(offset, f->recorder.frames[0]->size);
    assert_int_equal(f->bytes, offset);
    expect_done(f);

    /* A lone message is in a frame of its own, and a small one. */
    assert_int_equal(add(f, 100, 10), 0);
    assert_int_equal(flush(f), 0);
    expect_type(f, 1, MU__FRAME_DATA, 1);
    assert_true(f->recorder.frames[1]->size < 128);
}

/* What the protocol itself says keeps its place among messages. */
static void test_control(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(add(f, 1, 10), 0);
    assert_int_equal(mu__outbox_control(&f->outbox, &f->route, MU__FRAME_PING, NULL), 0);
    assert_int_equal(add(f, 2, 10), 0);
    assert_int_equal(flush(f), 0);
    expect_type(f, 0, MU__FRAME_DATA, 1);
    expect_type(f, 1, MU__FRAME_PING, 0);
    expect_type(f, 2, MU__FRAME_DATA, 1);
    assert_int_equal(f->recorder.frames[1]->size, MU__FRAME_HEADER_BYTES);
    expect_done(f);
}

static void test_many_frames(void **state)
{
    struct fixture *f = *state;
    uint64_t next = 0;

    for (uint64_t i = 0; i < 3000; i++)
        assert_int_equal(add(f, i, 1000), 0);
    assert_int_equal(flush(f), 0);
    assert_true(f->recorder.count > 10 && f->recorder.count < 20);
    for (size_t i = 0; i < f->recorder.count; i++) {
        size_t offset = MU__FRAME_HEADER_BYTES;

        while (offset < f->recorder.frames[i]->size)
            assert_int_equal(check_run(f, f->recorder.frames[i], &offset), next++);
    }
    assert_int_equal(next, 3000);
    expect_done(f);
}

/* One of 3 MiB fits a frame, but not the one that is being filled. */
static void test_single_large_frame(void **state)
{
    struct fixture *f = *state;
    size_t offset = MU__FRAME_HEADER_BYTES;

    assert_int_equal(add(f, 1, 10), 0);
    assert_int_equal(add(f, 2, 3 << 20), 0);
    assert_int_equal(add(f, 3, 1000), 0);
    assert_int_equal(flush(f), 0);
    assert_int_equal(f->recorder.count, 3);
    expect_type(f, 0, MU__FRAME_DATA, 1);
    expect_type(f, 1, MU__FRAME_DATA, 1);
    expect_type(f, 2, MU__FRAME_DATA, 1);
    assert_int_equal(check_run(f, f->recorder.frames[1], &offset), 2);
    expect_done(f);
}

static void test_full_wire(void **state)
{
    struct fixture *f = *state;

    f->recorder.room = 1;
    assert_int_equal(add(f, 1, 10), 0);
    assert_int_equal(mu__outbox_control(&f->outbox, &f->route, MU__FRAME_PING, NULL), 0);
    assert_int_equal(flush(f), 0);
    assert_int_equal(f->recorder.count, 1);
    assert_false(mu__outbox_is_empty(&f->outbox));
    assert_int_equal(f->outbox.waiting_bytes, MU__FRAME_HEADER_BYTES);
    assert_true(mu__outbox_has_one(&f->outbox));
    assert_int_equal(add(f, 2, 10), 0);
    assert_int_equal(flush(f), 0);
    assert_false(mu__outbox_has_one(&f->outbox));
    f->recorder.room = SIZE_MAX;
    assert_int_equal(flush(f), 0);
    expect_type(f, 1, MU__FRAME_PING, 0);
    expect_type(f, 2, MU__FRAME_DATA, 1);
    expect_done(f);
}

/* Not connected is the wire's error, and everything is kept. */
static void test_not_connected(void **state)
{
    struct fixture *f = *state;

    f->recorder.room = 0;
    f->recorder.when_full = -MU_EUNAVAILABLE;
    assert_int_equal(add(f, 1, 10), 0);
    assert_int_equal(flush(f), -MU_EUNAVAILABLE);
    assert_false(mu__outbox_is_empty(&f->outbox));
    mu__outbox_clear(&f->outbox);
    assert_true(mu__outbox_is_empty(&f->outbox));
    assert_int_equal(f->outbox.waiting_bytes, 0);
}

/* A message beyond a bound is refused, and those around it travel. */
static void test_refused(void **state)
{
    struct fixture *f = *state;
    struct mu__msg *msg = mu__msg_heap(MU__RUN, sizeof(struct mu__run));
    char name[MU__FUNCTION_NAME_MAX + 2] = {0};
    size_t offset = MU__FRAME_HEADER_BYTES;

    assert_non_null(msg);
    memset(name, 'a', sizeof name - 1);
    ((struct mu__run *)(void *)msg->body)->function = mu__view_str(name);
    assert_int_equal(mu__outbox_add(&f->outbox, &f->route, &mu__messages, msg),
                     -MU_ERANGE);
    assert_int_equal(add(f, 1, 10), 0);
    assert_int_equal(mu__outbox_add(&f->outbox, &f->route, &mu__messages, msg),
                     -MU_ERANGE);
    assert_int_equal(add(f, 2, 10), 0);
    assert_int_equal(flush(f), 0);
    expect_type(f, 0, MU__FRAME_DATA, 2);
    assert_int_equal(check_run(f, f->recorder.frames[0], &offset), 1);
    assert_int_equal(check_run(f, f->recorder.frames[0], &offset), 2);
    expect_done(f);
    free(msg);
}

/* ---- Splices ---- */

/* Bytes of another buffer than the message's own, which may be gone soon, are copied, as
 * are small ones. */
static void large_bytes_are_spliced_only_if_the_message_holds_them(void **state)
{
    struct fixture *f = *state;
    struct mu__msg *msg = mu__msg_heap(MU__RUN, sizeof(struct mu__run));
    struct mu__buf *borrowed = backing_new(100000);
    struct mu__buf *own = backing_new(100000);
    struct mu__run *run = (void *)msg->body;

    assert_int_equal(add(f, 1, 100000), 0);
    assert_int_equal(add(f, 2, MU__SPLICE_BYTES_MIN - 1), 0);
    memset(borrowed->data, 7, 100000);
    run->function = mu__view_str("f");
    run->args.head = borrowed->data;
    run->args.head_size = 100000;
    msg->backing = own;
    assert_int_equal(mu__outbox_add(&f->outbox, &f->route, &mu__messages, msg), 0);
    mu__buf_unref(own);
    mu__buf_unref(borrowed);
    free(msg);
    assert_int_equal(flush(f), 0);
    assert_int_equal(f->recorder.spliced_bytes, 100000);
    expect_done(f);
}

/* Of more large messages than a frame has splices for, none is lost. */
static void frame_without_a_splice_left_is_followed_by_another(void **state)
{
    struct fixture *f = *state;
    uint64_t next = 0;

    for (uint64_t i = 0; i < 4 * MU__SPLICES_MAX; i++)
        assert_int_equal(add(f, i, MU__SPLICE_BYTES_MIN), 0);
    assert_int_equal(flush(f), 0);
    for (size_t i = 0; i < f->recorder.count; i++) {
        size_t offset = MU__FRAME_HEADER_BYTES;

        while (offset < f->recorder.frames[i]->size)
            assert_int_equal(check_run(f, f->recorder.frames[i], &offset), next++);
    }
    assert_int_equal(next, 4 * MU__SPLICES_MAX);
    expect_done(f);
}

/* The largest message that fits a frame, and one that just does not. */
static void message_as_large_as_a_frame_is_not_lost(void **state)
{
    struct fixture *f = *state;
    const uint32_t sizes[] = {(4 << 20) - 4096, (4 << 20) - 100, 4 << 20};

    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(add(f, 10, 10), 0);
        assert_int_equal(add(f, i, sizes[i]), 0);
    }
    assert_int_equal(flush(f), 0);
    for (size_t i = 0; i < f->recorder.count; i++)
        assert_true(f->recorder.frames[i]->size <= MU__FRAME_BYTES_MAX);
    expect_done(f);
}

/* While a turn goes on, full frames leave, and the one that is being filled does not. */
static void full_frames_are_sent_early_until_the_wire_is_full(void **state)
{
    struct fixture *f = *state;

    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(add(f, i, 300000), 0);
    assert_int_equal(add(f, 4, 10), 0);
    f->recorder.room = 2;
    assert_int_equal(mu__outbox_send_early(&f->outbox, &f->route, &f->frames, &f->bytes),
                     0);
    assert_int_equal(f->recorder.count, 2);
    f->recorder.room = SIZE_MAX;
    assert_int_equal(mu__outbox_send_early(&f->outbox, &f->route, &f->frames, &f->bytes),
                     0);
    assert_int_equal(f->recorder.count, 2);     /* the wire has not said `writable` */
    assert_int_equal(flush(f), 0);
    assert_int_equal(f->recorder.count, 5);
    expect_type(f, 4, MU__FRAME_DATA, 1);
    expect_done(f);
}

/* ---- Pieces ---- */

/* Put pieces together as the receiver does. */
struct assembly {
    struct mu__buf *whole;
    uint64_t total;
};

/* The number of the message that is whole now; 0 when none is. */
static uint64_t take_piece(struct fixture *f, struct assembly *assembly,
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

/* A heartbeat and a small message do not wait until six MiB are sent. */
static void test_pieces(void **state)
{
    struct fixture *f = *state;
    struct assembly assembly = {NULL, 0};
    uint64_t whole = 0;

    assert_int_equal(add(f, 7, 6 << 20), 0);
    assert_true(mu__outbox_has_one(&f->outbox));
    assert_true(f->outbox.waiting_bytes > 6 << 20);
    f->recorder.room = 2;
    assert_int_equal(flush(f), 0);
    assert_true(mu__outbox_has_one(&f->outbox));
    assert_int_equal(add(f, 8, 10), 0);
    assert_int_equal(mu__outbox_control(&f->outbox, &f->route, MU__FRAME_PING, NULL), 0);
    f->recorder.room = SIZE_MAX;
    assert_int_equal(flush(f), 0);
    expect_type(f, 2, MU__FRAME_PIECE, 1);
    expect_type(f, 3, MU__FRAME_DATA, 1);
    expect_type(f, 4, MU__FRAME_PING, 0);
    for (size_t i = 0; i < f->recorder.count; i++)
        if (header_of(f, i).type == MU__FRAME_PIECE)
            whole = take_piece(f, &assembly, f->recorder.frames[i]);
    assert_int_equal(whole, 7);
    assert_int_equal(f->recorder.count, 7 + 2);
    expect_done(f);
}

/* Seen by what is written into them after the message was given: until it is sent the
 * bytes are the message's own. */
static void bytes_of_a_large_message_are_not_copied_before_they_are_sent(void **state)
{
    enum { BYTES = 6 << 20 };
    struct fixture *f = *state;
    struct assembly assembly = {NULL, 0};
    struct mu__msg *msg = mu__msg_heap(MU__RUN, sizeof(struct mu__run));
    struct mu__buf *backing = backing_new(BYTES);
    struct mu__run *run = (void *)msg->body;
    uint64_t whole = 0;

    memset(backing->data, 0, BYTES);
    msg->backing = backing;
    run->closure = 9;
    run->attempt = BYTES;
    run->function = mu__view_str("f");
    run->args.head = backing->data;
    run->args.head_size = BYTES;
    assert_int_equal(mu__outbox_add(&f->outbox, &f->route, &mu__messages, msg), 0);
    free(msg);
    assert_true(f->outbox.waiting_bytes > BYTES);
    for (uint32_t i = 0; i < BYTES; i++)
        backing->data[i] = (uint8_t)(i * 7 + 9);
    mu__buf_unref(backing);
    assert_int_equal(flush(f), 0);
    for (size_t i = 0; i < f->recorder.count; i++)
        whole = take_piece(f, &assembly, f->recorder.frames[i]);
    assert_int_equal(whole, 9);
    expect_done(f);
}

static void test_clear_with_pieces(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(add(f, 1, 5 << 20), 0);
    assert_int_equal(add(f, 2, 5 << 20), 0);
    assert_false(mu__outbox_has_one(&f->outbox));
    f->recorder.room = 3;
    assert_int_equal(flush(f), 0);
    assert_int_equal(add(f, 3, 10), 0);
    mu__outbox_clear(&f->outbox);
    assert_true(mu__outbox_is_empty(&f->outbox));
    assert_int_equal(f->outbox.waiting_bytes, 0);
    forget_frames(f);

    /* What comes later begins anew. */
    f->recorder.room = SIZE_MAX;
    assert_int_equal(add(f, 4, 10), 0);
    assert_int_equal(flush(f), 0);
    expect_type(f, 0, MU__FRAME_DATA, 1);
}

/* ---- Chance ---- */

/* Small ones arrive in their order and large ones in theirs. */
static void check_frames(struct fixture *f, struct assembly *assembly, uint64_t *small,
                         uint64_t *large)
{
    for (size_t i = 0; i < f->recorder.count; i++) {
        struct mu__buf *frame = f->recorder.frames[i];
        size_t offset = MU__FRAME_HEADER_BYTES;
        uint64_t number;

        if (header_of(f, i).type == MU__FRAME_PIECE) {
            number = take_piece(f, assembly, frame);
            assert_true(number == 0 || number == *large + 2);
            *large = number == 0 ? *large : number;
            continue;
        }
        while (header_of(f, i).type == MU__FRAME_DATA && offset < frame->size) {
            number = check_run(f, frame, &offset);
            assert_int_equal(number, *small + 2);
            *small = number;
        }
    }
    forget_frames(f);
}

static void test_chance(void **state)
{
    struct fixture *f = *state;
    struct sim_random random = sim_stream(1, 5);
    struct assembly assembly = {NULL, 0};
    uint64_t added[2] = {0, 1};     /* even numbers are small, odd ones large */
    uint64_t seen[2] = {0, 1};

    for (int i = 0; i < 3000; i++) {
        unsigned kind = sim_chance(&random, 1);

        if (sim_chance(&random, 70)) {
            added[kind] += 2;
            assert_int_equal(
                add(f, added[kind],
                    (uint32_t)(kind == 1 ? (4 << 20) + sim_between(&random, 0, 3 << 20)
                                         : sim_between(&random, 0, 3000))),
                0);
        } else if (sim_chance(&random, 20)) {
            assert_int_equal(
                mu__outbox_control(&f->outbox, &f->route, MU__FRAME_PING, NULL), 0);
        }
        f->recorder.room = sim_between(&random, 0, 3);
        assert_int_equal(flush(f), 0);
        check_frames(f, &assembly, &seen[0], &seen[1]);
    }
    f->recorder.room = SIZE_MAX;
    assert_int_equal(flush(f), 0);
    check_frames(f, &assembly, &seen[0], &seen[1]);
    assert_true(mu__outbox_is_empty(&f->outbox));
    assert_int_equal(seen[0], added[0]);
    assert_int_equal(seen[1], added[1]);
    assert_true(added[1] > 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define SPLICED(name) cmocka_unit_test_setup_teardown(name, setup_spliced, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_nothing),       TEST(test_one_frame_for_a_turn),
        TEST(test_control),       TEST(test_many_frames),
        TEST(test_full_wire),     TEST(test_single_large_frame),
        TEST(test_not_connected), TEST(test_refused),
        TEST(test_pieces),        TEST(test_clear_with_pieces),
        TEST(test_chance),
        TEST(bytes_of_a_large_message_are_not_copied_before_they_are_sent),
        TEST(message_as_large_as_a_frame_is_not_lost),
        TEST(full_frames_are_sent_early_until_the_wire_is_full),
        SPLICED(test_one_frame_for_a_turn),
        SPLICED(test_many_frames),
        SPLICED(test_single_large_frame),
        SPLICED(test_full_wire),
        SPLICED(test_refused),
        SPLICED(test_pieces),
        SPLICED(test_clear_with_pieces),
        SPLICED(bytes_of_a_large_message_are_not_copied_before_they_are_sent),
        SPLICED(test_chance),
        SPLICED(large_bytes_are_spliced_only_if_the_message_holds_them),
        SPLICED(frame_without_a_splice_left_is_followed_by_another),
        SPLICED(message_as_large_as_a_frame_is_not_lost),
        SPLICED(full_frames_are_sent_early_until_the_wire_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
