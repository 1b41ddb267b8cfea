/* What waits on a link: messages of a turn in one frame, nothing lost and nothing out of
 * order when the wire takes nothing for a while, large records in pieces. The wire here
 * writes down what it is given; all tests run with a wire whose frames can have splices,
 * too. */
#include "tests/transport/link/outbox_fixture.h"

/* ---- Tests ---- */

LISTED_TEST(test_nothing)
{
    struct fixture *f = *state;

    assert_true(mu__outbox_is_empty(&f->outbox));
    assert_int_equal(flush(f), 0);
    assert_int_equal(f->recorder.count, 0);
}

LISTED_TEST(test_one_frame_for_a_turn)
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
LISTED_TEST(test_control)
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

LISTED_TEST(test_many_frames)
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
LISTED_TEST(test_single_large_frame)
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

LISTED_TEST(test_full_wire)
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
LISTED_TEST(test_not_connected)
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
LISTED_TEST(test_refused)
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

LISTED_TEST(test_chance)
{
    struct fixture *f = *state;
    struct sim_random random = sim_stream(1, 5);
    struct assembly assembly = {NULL, 0};
    uint64_t added[2] = {0, 1}; /* even numbers are small, odd ones large */
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
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define SPLICED(name) cmocka_unit_test_setup_teardown(name, setup_spliced, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_nothing),        CASE(test_one_frame_for_a_turn),
        CASE(test_control),        CASE(test_many_frames),
        CASE(test_full_wire),      CASE(test_single_large_frame),
        CASE(test_not_connected),  CASE(test_refused),
        CASE(test_chance),         SPLICED(test_one_frame_for_a_turn),
        SPLICED(test_many_frames), SPLICED(test_single_large_frame),
        SPLICED(test_full_wire),   SPLICED(test_refused),
        SPLICED(test_chance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
