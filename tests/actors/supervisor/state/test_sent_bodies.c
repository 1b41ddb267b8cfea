/* The shared values that a journal has: how many, how large, and until when. */
#include "actors/supervisor/state/sent_bodies.h"
#include "tests/support/test.h"

#define MIB (UINT64_C(1) << 20)

TEST(test_room_by_number_and_bytes)
{
    static const struct {
        uint32_t count;
        uint64_t bytes;
        bool has_room;
    } rows[] = {
        {1, 0, true},
        {1, 156 * MIB, true},
        {1, 156 * MIB + 1, false},
        {2, UINT64_MAX, false},
        {MU__SENT_BODIES_MAX - 2, 0, true},
        {MU__SENT_BODIES_MAX - 1, 0, false},
        {UINT32_MAX, 0, false},
    };
    struct sent_bodies bodies = {0};
    struct sent_body a = {.bytes = 60 * MIB, .users = 1};
    struct sent_body b = {.bytes = 40 * MIB, .users = 1};

    mu__sent_bodies_add(&bodies, &a, 0, true);
    mu__sent_bodies_add(&bodies, &b, 0, true);
    mu__sent_bodies_add(&bodies, &b, 0, true);
    assert_int_equal(bodies.count, 2);
    assert_int_equal(bodies.bytes, 100 * MIB);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(mu__sent_bodies_make_room(&bodies, rows[i].count, rows[i].bytes),
                         rows[i].has_room);
    assert_true(a.is_written && b.is_written);
}

/* One without users is dropped for another one, and not before there is a need. */
TEST(test_room_of_those_without_users)
{
    struct sent_bodies bodies = {0};
    struct sent_body used = {.bytes = 100 * MIB, .users = 2};
    struct sent_body unused = {.bytes = 100 * MIB};

    mu__sent_bodies_add(&bodies, &unused, 0, true);
    mu__sent_bodies_add(&bodies, &used, 0, true);
    assert_true(mu__sent_bodies_make_room(&bodies, 1, 56 * MIB));
    assert_true(unused.is_written);
    assert_true(mu__sent_bodies_make_room(&bodies, 1, 57 * MIB));
    assert_false(unused.is_written);
    assert_true(used.is_written);
    assert_int_equal(bodies.count, 1);
    mu__sent_bodies_remove(&bodies, &unused);
    mu__sent_bodies_remove(&bodies, &used);
    assert_int_equal(bodies.count, 0);
    assert_int_equal(bodies.bytes, 0);
}

/* The new file of compaction 3 has one that the old one has not, and one that it has. */
TEST(test_compaction)
{
    for (int commits = 0; commits < 2; commits++) {
        struct sent_bodies bodies = {0};
        struct sent_body old = {.bytes = 1};
        struct sent_body both = {.bytes = 2};
        struct sent_body new = {.bytes = 4};

        (void)state;
        mu__sent_bodies_add(&bodies, &old, 2, true);
        mu__sent_bodies_add(&bodies, &both, 2, true);
        mu__sent_bodies_add(&bodies, &both, 3, false);
        mu__sent_bodies_add(&bodies, &new, 3, false);
        if (commits)
            mu__sent_bodies_renewed(&bodies, 3);
        else
            mu__sent_bodies_stay(&bodies);
        assert_int_equal(old.is_written, !commits);
        assert_true(both.is_written);
        assert_int_equal(new.is_written, commits);
        assert_int_equal(bodies.bytes, commits ? 6 : 3);
        assert_int_equal(bodies.count, 2);
    }
}

TEST_PROGRAM()
