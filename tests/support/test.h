/* What every test program is made of: cmocka, the headers that it and nearly all tests
 * need, and tests that list themselves. They run in the order in which they stand in the
 * file:
 *
 *     TEST(test_two_peers_agree)
 *     {
 *         assert_int_equal(agree(1, 2), 0);
 *     }
 *
 *     TEST_ON(test_a_peer_leaves, struct fixture *fixture, set_up, tear_down)
 *     {
 *         assert_int_equal(leave(fixture), 0);
 *     }
 *
 *     TEST_PROGRAM()
 *
 * `set_up` and `tear_down` are cmocka's; what the one leaves in `*state` is the fixture.
 * Either may be NULL. TEST_WITH() is for a test that needs them and no fixture. A main
 * that does more than run the tests returns tests_run(). */
#ifndef MUSTER_TESTS_SUPPORT_TEST_H
#define MUSTER_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TESTS_MAX = 64 }; /* of one program */

static struct CMUnitTest tests_listed[TESTS_MAX];

#define TEST(name) TEST_WITH(name, NULL, NULL)

#define TEST_WITH(name, set_up, tear_down)                                      \
    enum { name##_order = __COUNTER__ };                                        \
    _Static_assert((int)name##_order < TESTS_MAX, "more tests than TESTS_MAX"); \
    static void name(void **state);                                             \
    __attribute__((constructor)) static void name##_is_listed(void)             \
    {                                                                           \
        tests_listed[name##_order] =                                            \
            (struct CMUnitTest){#name, name, set_up, tear_down, NULL};          \
    }                                                                           \
    LISTED_TEST(name)

#define TEST_ON(name, fixture, set_up, tear_down)             \
    static void name##_on(fixture) __attribute__((noinline)); \
    TEST_WITH(name, set_up, tear_down)                        \
    {                                                         \
        name##_on(*state);                                    \
    }                                                         \
    static void name##_on(fixture)

/* A test that a table of its own lists: one of a contract, or with several fixtures. */
#define LISTED_TEST(name) static void name(__attribute__((unused)) void **state)

/* The program's exit code. `begin` and `end` are called once, around all tests; either
 * may be NULL. */
static inline int tests_run(CMFixtureFunction begin, CMFixtureFunction end)
{
    size_t count = 0;

    while (count < TESTS_MAX && tests_listed[count].test_func != NULL)
        count++;
    return count == 0 ? 1
                      : _cmocka_run_group_tests("tests", tests_listed, count, begin, end);
}

#define TEST_PROGRAM() TEST_PROGRAM_WITH(NULL, NULL)

#define TEST_PROGRAM_WITH(begin, end) \
    int main(void)                    \
    {                                 \
        return tests_run(begin, end); \
    }

#endif
