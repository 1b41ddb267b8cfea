/* What a worker keeps: states, notes, waiting, bytes. */
#include "actors/worker/pinned.h"
#include "tests/support/test.h"

enum { CHIEF = 7, OTHER = 8 };

static struct mu__pinned_item *expect_item(struct mu__pinned *kept, uint64_t number)
{
    struct mu__pinned_item *item = mu__pinned_expect(kept, CHIEF, number);

    assert_non_null(item);
    return item;
}

static void keep_int(struct mu__pinned *kept, uint32_t owner, uint64_t number, int64_t n,
                     uint64_t bytes)
{
    struct mu__pinned_item *item = mu__pinned_expect(kept, owner, number);

    assert_non_null(item);
    mu__pinned_succeed(kept, item, mu_value_int(n), bytes);
}

static int64_t int_of(const struct mu__pinned *kept, uint32_t owner, uint64_t number)
{
    const struct mu__pinned_item *item = mu__pinned_find(kept, owner, number);
    int64_t n = -1;

    if (item != NULL && item->state == MU__PINNED_READY)
        (void)mu_value_get_int(item->value, &n);
    return n;
}

/* The same number of two chiefs is two things. */
TEST(test_owners_are_apart)
{
    struct mu__pinned kept = {0};

    keep_int(&kept, CHIEF, 1, 11, 100);
    keep_int(&kept, OTHER, 1, 22, 1000);
    assert_int_equal(int_of(&kept, CHIEF, 1), 11);
    assert_int_equal(int_of(&kept, OTHER, 1), 22);
    assert_null(mu__pinned_find(&kept, CHIEF, 2));
    assert_null(mu__pinned_find(&kept, CHIEF, 0));
    assert_int_equal(kept.bytes, 1100);
    mu__pinned_drop_owner(&kept, CHIEF);
    mu__pinned_drop_owner(&kept, CHIEF);
    assert_null(mu__pinned_find(&kept, CHIEF, 1));
    assert_int_equal(int_of(&kept, OTHER, 1), 22);
    assert_int_equal(kept.bytes, 1000);
    mu__pinned_done(&kept);
    assert_int_equal(kept.bytes, 0);
}

TEST(test_many)
{
    struct mu__pinned kept = {0};

    for (uint64_t i = 1; i <= 5000; i++)
        keep_int(&kept, CHIEF, i << 32, (int64_t)i, 8);
    for (uint64_t i = 2; i <= 5000; i += 2)
        mu__pinned_drop(&kept, CHIEF, i << 32);
    for (uint64_t i = 1; i <= 5000; i++)
        assert_int_equal(int_of(&kept, CHIEF, i << 32), i % 2 == 0 ? -1 : (int64_t)i);
    assert_int_equal(kept.bytes, 2500 * 8);
    mu__pinned_done(&kept);
}

/* From each state to each other: what was there is freed, the bytes are right. */
TEST(test_states)
{
    static const mu_error error = {.code = -MU_EINVALID, .message = "bad"};
    struct mu__pinned kept = {0};
    struct mu__pinned_item *item = expect_item(&kept, 5);
    int builder;

    for (int i = 0; i < 16; i++) {
        int to = i % 4 ^ i / 4; /* all pairs come up */

        if (to == 0 || to == MU__PINNED_BUILDING) {
            mu__pinned_build(&kept, item, &builder);
            assert_ptr_equal(item->builder, &builder);
            assert_int_equal(item->state, MU__PINNED_BUILDING);
        } else if (to == MU__PINNED_READY) {
            mu__pinned_succeed(&kept, item, mu_value_string("x"), 3);
            assert_int_equal(item->state, MU__PINNED_READY);
        } else {
            mu__pinned_fail(&kept, item, &error);
            assert_string_equal(item->error->message, "bad");
        }
        assert_int_equal(kept.bytes, item->state == MU__PINNED_READY ? 3 : 0);
        assert_int_equal(item->value != NULL, item->state == MU__PINNED_READY);
        assert_int_equal(item->error != NULL, item->state == MU__PINNED_FAILED);
        assert_int_equal(item->builder != NULL, item->state == MU__PINNED_BUILDING);
    }
    mu__pinned_forget(&kept, item);
    assert_null(mu__pinned_find(&kept, CHIEF, 5));
    mu__pinned_done(&kept);
}

/* In the order of coming; one that is only expected goes with the last who waits. */
TEST(test_waiting)
{
    struct mu__pinned kept = {0};
    struct mu__pinned_item *item = expect_item(&kept, 1);
    struct mu__pinned_wait waits[4] = {0};

    for (size_t i = 0; i < 4; i++)
        mu__pinned_wait(item, &waits[i]);
    mu__pinned_unwait(&kept, &waits[1]);
    mu__pinned_unwait(&kept, &waits[1]);
    mu__pinned_unwait(&kept, &waits[3]);
    mu__pinned_wait(item, &waits[1]);
    assert_ptr_equal(mu__pinned_take_wait(item), &waits[0]);
    assert_ptr_equal(mu__pinned_take_wait(item), &waits[2]);
    assert_null(waits[2].item);
    mu__pinned_unwait(&kept, &waits[2]);
    assert_non_null(mu__pinned_find(&kept, CHIEF, 1));
    mu__pinned_unwait(&kept, &waits[1]);
    assert_null(mu__pinned_find(&kept, CHIEF, 1));

    item = expect_item(&kept, 1);
    mu__pinned_wait(item, &waits[0]);
    mu__pinned_succeed(&kept, item, mu_value_nil(), 1);
    assert_ptr_equal(mu__pinned_take_wait(item), &waits[0]);
    assert_null(mu__pinned_take_wait(item));
    assert_non_null(mu__pinned_find(&kept, CHIEF, 1));
    mu__pinned_done(&kept);
}

/* What somebody waits for is expected again. */
TEST(test_drop_while_waited_for)
{
    struct mu__pinned kept = {0};
    struct mu__pinned_item *item = expect_item(&kept, 1);
    struct mu__pinned_wait wait;
    int builder;

    mu__pinned_build(&kept, item, &builder);
    mu__pinned_wait(item, &wait);
    mu__pinned_drop(&kept, CHIEF, 1);
    assert_ptr_equal(mu__pinned_find(&kept, CHIEF, 1), item);
    assert_int_equal(item->state, MU__PINNED_EXPECTED);
    assert_null(item->builder);
    assert_false(mu__pinned_take_note(&kept, CHIEF, 1));
    mu__pinned_drop(&kept, CHIEF, 1);
    assert_true(mu__pinned_take_note(&kept, CHIEF, 1));
    mu__pinned_unwait(&kept, &wait);
    assert_null(mu__pinned_find(&kept, CHIEF, 1));
    mu__pinned_done(&kept);
}

/* Only drops of what is not there are noted; a note is good for one time; who expects the
 * number again takes it back; old ones make room. */
TEST(test_notes)
{
    struct mu__pinned kept = {0};

    keep_int(&kept, CHIEF, 1, 1, 1);
    mu__pinned_drop(&kept, CHIEF, 1);
    assert_false(mu__pinned_take_note(&kept, CHIEF, 1));
    mu__pinned_drop(&kept, CHIEF, 0);
    mu__pinned_drop(&kept, CHIEF, 1);
    mu__pinned_drop(&kept, CHIEF, 1);
    assert_false(mu__pinned_take_note(&kept, OTHER, 1));
    assert_true(mu__pinned_take_note(&kept, CHIEF, 1));
    assert_false(mu__pinned_take_note(&kept, CHIEF, 1));
    mu__pinned_drop(&kept, CHIEF, 2);
    keep_int(&kept, CHIEF, 2, 2, 1);
    assert_false(mu__pinned_take_note(&kept, CHIEF, 2));
    for (uint64_t i = 10; i < 10 + MU__PINNED_NOTES_MAX + 1; i++)
        mu__pinned_drop(&kept, CHIEF, i);
    assert_false(mu__pinned_take_note(&kept, CHIEF, 10));
    assert_true(mu__pinned_take_note(&kept, CHIEF, 11));
    mu__pinned_drop_owner(&kept, CHIEF);
    assert_false(mu__pinned_take_note(&kept, CHIEF, 12));
    mu__pinned_done(&kept);
}

/* Who has the content keeps it when the item goes. */
TEST(test_content_is_shared)
{
    struct mu__pinned kept = {0};
    mu_value *held;
    int64_t n = 0;

    keep_int(&kept, CHIEF, 1, 42, 9);
    held = mu_value_ref(mu__pinned_find(&kept, CHIEF, 1)->value);
    mu__pinned_done(&kept);
    assert_int_equal(mu_value_get_int(held, &n), 0);
    assert_int_equal(n, 42);
    mu_value_free(held);
}

TEST_PROGRAM()
