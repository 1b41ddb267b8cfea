/* Numbers for strings: the same string has one number for ever, two strings have two. */
#include "actors/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct mu__view name_of(uint32_t i, char *out, size_t size)
{
    (void)snprintf(out, size, "function %u", i);
    return mu__view_str(out);
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        uint32_t size;
        uint32_t number;
    } rows[] = {
        {"train", 5, 0},  {"test", 4, 1},   {"train", 5, 0},     {"", 0, 2},
        {"trai", 4, 3},   {"train\0", 6, 4}, {"train\0x", 7, 5}, {"train\0", 6, 4},
        {"", 0, 2},       {"test", 4, 1},
    };
    struct mu__names names = {0};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__view view = {rows[i].text, rows[i].size};
        struct mu__view kept;

        assert_int_equal(mu__names_number(&names, view), rows[i].number);
        kept = mu__names_view(&names, rows[i].number);
        assert_int_equal(kept.size, rows[i].size);
        assert_memory_equal(kept.data, rows[i].text, rows[i].size);
    }
    mu__names_done(&names);
    assert_int_equal(names.count, 0);
}

/* At the bound nothing new is taken, and everything old is still found. */
static void test_bound(void **state)
{
    struct mu__names names = {0};
    char text[32];

    (void)state;
    for (uint32_t i = 0; i < MU__NAMES_MAX; i++)
        assert_int_equal(mu__names_number(&names, name_of(i, text, sizeof text)), i);
    assert_int_equal(mu__names_number(&names, mu__view_str("one more")), MU__NAME_NONE);
    for (uint32_t i = 0; i < MU__NAMES_MAX; i++) {
        struct mu__view view = name_of(i, text, sizeof text);

        assert_int_equal(mu__names_number(&names, view), i);
        assert_true(mu__view_is(mu__names_view(&names, i), text));
    }
    mu__names_done(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
