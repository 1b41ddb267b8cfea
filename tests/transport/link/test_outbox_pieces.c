/* Splices and pieces of an outbox. */
#include "tests/transport/link/outbox_fixture.h"

/* ---- Splices ---- */

/* Bytes of another buffer than the message's own, which may be gone soon, are copied, as
 * are small ones. */
LISTED_TEST(large_bytes_are_spliced_only_if_the_message_holds_them)
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
LISTED_TEST(frame_without_a_splice_left_is_followed_by_another)
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
LISTED_TEST(message_as_large_as_a_frame_is_not_lost)
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
LISTED_TEST(full_frames_are_sent_early_until_the_wire_is_full)
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
    assert_int_equal(f->recorder.count, 2); /* the wire has not said `writable` */
    assert_int_equal(flush(f), 0);
    assert_int_equal(f->recorder.count, 5);
    expect_type(f, 4, MU__FRAME_DATA, 1);
    expect_done(f);
}

/* ---- Pieces ---- */

/* A heartbeat and a small message do not wait until six MiB are sent. */
LISTED_TEST(test_pieces)
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
LISTED_TEST(bytes_of_a_large_message_are_not_copied_before_they_are_sent)
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

LISTED_TEST(test_clear_with_pieces)
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

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define SPLICED(name) cmocka_unit_test_setup_teardown(name, setup_spliced, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_pieces),
        CASE(test_clear_with_pieces),
        CASE(bytes_of_a_large_message_are_not_copied_before_they_are_sent),
        CASE(message_as_large_as_a_frame_is_not_lost),
        CASE(full_frames_are_sent_early_until_the_wire_is_full),
        SPLICED(test_pieces),
        SPLICED(test_clear_with_pieces),
        SPLICED(bytes_of_a_large_message_are_not_copied_before_they_are_sent),
        SPLICED(large_bytes_are_spliced_only_if_the_message_holds_them),
        SPLICED(frame_without_a_splice_left_is_followed_by_another),
        SPLICED(message_as_large_as_a_frame_is_not_lost),
        SPLICED(full_frames_are_sent_early_until_the_wire_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
