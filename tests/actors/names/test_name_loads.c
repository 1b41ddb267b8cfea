/* What a process says of the mailboxes of its names. */
#include "actors/coordination/names/coord_names.h"
#include "tests/support/test.h"

#include <string.h>

static struct coord_names names;
static struct coordination service;
static struct name_host first;
static struct name_host second;

static int begin_names(void **state)
{
    static const char *const texts[] = {"a", "b", "c"};

    (void)state;
    memset(&names, 0, sizeof names);
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    service.names = &names;
    for (size_t i = 0; i < 3; i++)
        mu__coord_name_give(mu__coord_name_get(&service, mu__view_str(texts[i])),
                            i < 2 ? &first : &second);
    return 0;
}

static int end_names(void **state)
{
    struct mu__text_node *node;

    (void)state;
    while ((node = mu__text_map_next(&names.names, NULL)) != NULL)
        mu__coord_name_free(&service, (struct coord_name *)(void *)node);
    mu__text_map_done(&names.names);
    return 0;
}

static uint32_t mailbox_of(const char *text)
{
    return mu__coord_name_find(&service, mu__view_str(text))->load.mailbox;
}

static void say_loads(const char *loads)
{
    mu__coord_names_loads(&service, &first, mu__view_str(loads));
}

TEST_ON(test_loads, void *none, begin_names, end_names)
{
    (void)none;
    say_loads("3 1200 a\n1 5 b\n");
    assert_int_equal(mailbox_of("a"), 3);
    assert_int_equal(mailbox_of("b"), 1);
    assert_int_equal(mu__coord_name_find(&service, mu__view_str("a"))->load.oldest_ms,
                     1200);
    say_loads("2 7 b\n");
    assert_int_equal(mailbox_of("a"), 0);
    assert_int_equal(mailbox_of("b"), 2);
    say_loads("");
    assert_int_equal(mailbox_of("b"), 0);
}

TEST_ON(test_bad_loads, void *none, begin_names, end_names)
{
    static const char *const bad[] = {
        "a\n",      "3\n",      "3 4\n",    "3 4 \n",  "3 4 a",      "-3 4 a\n",
        "3 -4 a\n", " 3 4 a\n", "3  4 a\n", "x 4 a\n", "3 4 none\n", "\n\n3 4 a\n"};
    char all[MU__NAME_LOADS_MAX];

    (void)none;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        say_loads(bad[i]);
        assert_int_equal(mailbox_of("a"), 0);
    }
    say_loads("3 4 c\n"); /* another process has it */
    assert_int_equal(mailbox_of("c"), 0);
    mu__coord_names_loads(&service, &first, (struct mu__view){"3 4 a\0\n", 7});
    assert_int_equal(mailbox_of("a"), 0);
    memset(all, '9', sizeof all);
    mu__coord_names_loads(&service, &first, (struct mu__view){all, sizeof all});
    assert_int_equal(mailbox_of("a"), 0);
}

TEST_PROGRAM()
