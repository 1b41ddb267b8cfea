/* Numbers for strings: the same string has one number while it is known, two strings have
 * two. */
#include "actors/supervisor/state/names.h"
#include "tests/support/test.h"

static struct mu__view name_of(uint32_t i, char *out, size_t size)
{
    (void)snprintf(out, size, "function %u", i);
    return mu__view_str(out);
}

TEST(test_numbers)
{
    static const struct {
        const char *text;
        uint32_t size;
        uint32_t number;
    } rows[] = {
        {"train", 5, 0}, {"test", 4, 1},    {"train", 5, 0},    {"", 0, 2},
        {"trai", 4, 3},  {"train\0", 6, 4}, {"train\0x", 7, 5}, {"train\0", 6, 4},
        {"", 0, 2},      {"test", 4, 1},
    };
    struct mu__names names = {0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__view view = {rows[i].text, rows[i].size};
        struct mu__view kept;

        assert_int_equal(mu__names_take(&names, view), rows[i].number);
        kept = mu__names_view(&names, rows[i].number);
        assert_int_equal(kept.size, rows[i].size);
        assert_memory_equal(kept.data, rows[i].text, rows[i].size);
    }
    mu__names_done(&names);
    assert_int_equal(names.count, 0);
}

/* What is held stays; of what nobody holds the last ones stay, and the numbers of the
 * others are given out again. */
TEST(test_those_that_nobody_holds_are_forgotten)
{
    enum { ALL = 3 * MU__NAMES_IDLE_MAX };
    struct mu__names names = {0};
    char text[32];

    assert_int_equal(mu__names_take(&names, mu__view_str("held")), 0);
    for (uint32_t i = 0; i < ALL; i++)
        mu__names_release(&names, mu__names_take(&names, name_of(i, text, sizeof text)));
    assert_int_equal(names.used, MU__NAMES_IDLE_MAX + 1);
    assert_true(names.count <= MU__NAMES_IDLE_MAX + 2);
    assert_true(mu__view_is(mu__names_view(&names, 0), "held"));
    for (uint32_t i = ALL - MU__NAMES_IDLE_MAX; i < ALL; i++) {
        struct mu__view view = name_of(i, text, sizeof text);
        uint32_t number = mu__names_take(&names, view);

        assert_false(names.added);
        assert_true(mu__view_is(mu__names_view(&names, number), text));
    }
    assert_int_equal(mu__names_take(&names, mu__view_str("held")), 0);
    (void)mu__names_take(&names, mu__view_str("function 0"));
    assert_true(names.added);
    mu__names_done(&names);
}

/* More than fit into a table of sixteen bits, all of them held. */
TEST(test_many)
{
    enum { MANY = 100000 };
    struct mu__names names = {0};
    char text[32];

    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(mu__names_take(&names, name_of(i, text, sizeof text)), i);
    for (uint32_t i = 0; i < MANY; i++) {
        struct mu__view view = name_of(i, text, sizeof text);

        assert_int_equal(mu__names_take(&names, view), i);
        assert_true(mu__view_is(mu__names_view(&names, i), text));
    }
    mu__names_done(&names);
}

TEST_PROGRAM()
