/* Who is refused: tasks, processes of tasks, and the bound. */
#include "tests/support/test.h"
#include "transport/link/barred.h"

static const char *why(const struct mu__barred *barred, const char *type, uint32_t index,
                       uint64_t incarnation, const char *url)
{
    const char *words =
        mu__barred_why(barred, mu__view_str(type), index, incarnation, mu__view_str(url));

    return words == NULL ? "" : words;
}

TEST(test_task)
{
    struct mu__barred barred = {0};

    assert_string_equal(why(&barred, "worker", 1, 7, "u"), "");
    assert_int_equal(mu__barred_add(&barred, "worker", 1, 0, NULL, "gone"), 0);
    assert_string_equal(why(&barred, "worker", 1, 7, "u"), "gone");
    assert_string_equal(why(&barred, "worker", 2, 7, "u"), "");
    assert_string_equal(why(&barred, "ps", 1, 7, "u"), "");
    mu__barred_remove(&barred, "worker", 2);
    assert_string_equal(why(&barred, "worker", 1, 8, "v"), "gone");
    mu__barred_remove(&barred, "worker", 1);
    assert_string_equal(why(&barred, "worker", 1, 7, "u"), "");
    mu__barred_done(&barred);
}

/* By incarnation, by place, by either; the last word on a task counts. */
TEST(test_former_process)
{
    struct mu__barred barred = {0};

    assert_int_equal(mu__barred_add(&barred, "worker", 1, 7, "old", "moved"), 0);
    assert_string_equal(why(&barred, "worker", 1, 7, "new"), "moved");
    assert_string_equal(why(&barred, "worker", 1, 8, "old"), "moved");
    assert_string_equal(why(&barred, "worker", 1, 8, "new"), "");
    assert_int_equal(mu__barred_add(&barred, "worker", 1, 0, "older", "again"), 0);
    assert_int_equal(barred.by_task.count, 1);
    assert_string_equal(why(&barred, "worker", 1, 7, "old"), "");
    assert_string_equal(why(&barred, "worker", 1, 0, "older"), "again");
    mu__barred_done(&barred);
}

/* At the bound the one that is barred longest goes. */
TEST(test_bound)
{
    struct mu__barred barred = {0};

    for (uint32_t i = 0; i <= MU__BARRED_MAX; i++)
        assert_int_equal(mu__barred_add(&barred, "worker", i, 0, NULL, "gone"), 0);
    assert_int_equal(barred.by_task.count, MU__BARRED_MAX);
    assert_string_equal(why(&barred, "worker", 0, 7, "u"), "");
    assert_string_equal(why(&barred, "worker", 1, 7, "u"), "gone");
    assert_string_equal(why(&barred, "worker", MU__BARRED_MAX, 7, "u"), "gone");
    mu__barred_done(&barred);
}

TEST_PROGRAM()
