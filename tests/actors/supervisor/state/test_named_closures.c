/* The closures that a journal knows by name. */
#include "actors/supervisor/state/named_closures.h"
#include "tests/support/test.h"

enum { COUNT = 3000 };

static struct mu__view name_of(unsigned i)
{
    static char name[32];

    (void)snprintf(name, sizeof name, "closure %u", i);
    return mu__view_str(name);
}

TEST(test_found_by_name_and_number_until_removed)
{
    struct mu__names functions = {.secret = 5};
    struct named_closures named = {.functions = &functions};
    struct named_closure *closure;

    assert_null(mu__named_closures_find(&named, name_of(1)));
    for (unsigned i = 1; i <= COUNT; i++)
        assert_non_null(mu__named_closures_add(&named, name_of(i), i));
    for (unsigned i = 1; i <= COUNT; i++) {
        closure = mu__named_closures_find(&named, name_of(i));
        assert_non_null(closure);
        assert_int_equal(closure->number, i);
        assert_ptr_equal(mu__named_closures_numbered(&named, i), closure);
    }
    for (unsigned i = 1; i <= COUNT; i += 2)
        mu__named_closures_remove(&named, mu__named_closures_numbered(&named, i));
    assert_int_equal(named.count, COUNT / 2);
    assert_null(mu__named_closures_find(&named, name_of(7)));
    assert_null(mu__named_closures_numbered(&named, 7));
    assert_non_null(mu__named_closures_find(&named, name_of(8)));
    mu__named_closures_done(&named);
}

static void expect_all_found(const struct named_closures *named, unsigned first,
                             unsigned end)
{
    for (unsigned i = first; i < end; i++)
        assert_int_equal(mu__named_closures_find(named, name_of(i))->number, i);
}

/* The table doubles while it is used: all are found at any time, those that are added or
 * removed meanwhile, too, and no addition moves more than a few buckets. */
TEST(test_grows_a_few_buckets_at_a_time)
{
    struct mu__names functions = {.secret = 5};
    struct named_closures named = {.functions = &functions};
    unsigned first = 1;
    unsigned growing = 0;

    for (unsigned i = 1; i <= COUNT; i++) {
        uint32_t moved = named.former == NULL ? 0 : named.former_moved;

        assert_non_null(mu__named_closures_add(&named, name_of(i), i));
        if (named.former == NULL)
            continue;
        assert_true(named.former_moved - moved <= 4);
        if (growing++ % 100 != 0)
            continue;
        expect_all_found(&named, first, i + 1);
        mu__named_closures_remove(&named, mu__named_closures_numbered(&named, first++));
        assert_null(mu__named_closures_find(&named, name_of(first - 1)));
    }
    assert_true(growing > COUNT / 10);
    expect_all_found(&named, first, COUNT + 1);
    mu__named_closures_done(&named);
}

TEST(test_removing_releases_the_function)
{
    struct mu__names functions = {.secret = 5};
    struct named_closures named = {.functions = &functions};
    struct named_closure *closure = mu__named_closures_add(&named, name_of(1), 1);
    uint32_t function = mu__names_take(&functions, mu__view_str("square"));

    closure->function = function;
    assert_int_equal(functions.names[function]->holders, 1);
    mu__named_closures_remove(&named, closure);
    assert_int_equal(functions.names[function]->holders, 0);
    mu__named_closures_done(&named);
    mu__names_done(&functions);
}

TEST(test_clients_join_until_forgotten)
{
    struct mu__names functions = {.secret = 5};
    struct named_closures named = {.functions = &functions};
    struct named_closure *closure = mu__named_closures_add(&named, name_of(1), 1);

    assert_true(mu__named_closure_join(closure, (mu__pid){3, 1}, 30));
    assert_true(mu__named_closure_join(closure, (mu__pid){4, 1}, 40));
    assert_int_equal(closure->joined->token, 40);
    assert_int_equal(closure->joined->next->token, 30);
    mu__named_closure_forget_joined(closure);
    assert_null(closure->joined);
    assert_true(mu__named_closure_join(closure, (mu__pid){5, 1}, 50));
    mu__named_closures_done(&named);
}

TEST_PROGRAM()
