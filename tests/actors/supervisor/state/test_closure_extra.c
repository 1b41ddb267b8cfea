/* The rarely used fields of closures. */
#include "actors/supervisor/state/closure_extra.h"

#include "actors/packing.h"
#include "tests/support/test.h"

TEST(test_closure_has_one_entry)
{
    struct closure_extras extras = {0};
    struct mu__closure closure = {.generation = 1, .index = 7};
    struct closure_extra *extra = mu__closure_extras_take(&extras, &closure);

    assert_non_null(extra);
    assert_int_equal(extra->closure, mu__closure_id(&closure));
    assert_int_equal(extra->options.priority, MU__PRIORITY_DEFAULT);
    assert_ptr_equal(mu__closure_extras_take(&extras, &closure), extra);
    assert_ptr_equal(mu__closure_extras_at(&extras, closure.extra - 1), extra);
    mu__closure_extras_done(&extras);
}

TEST(test_released_entry_is_used_again_and_empty)
{
    struct closure_extras extras = {0};
    struct mu__closure a = {.generation = 1};
    struct mu__closure b = {.generation = 1, .index = 1};
    struct closure_extra *extra = mu__closure_extras_take(&extras, &a);

    assert_true(mu__grow_array((void **)&extra->name, 5, 1));
    memcpy(extra->name, "name", 5);
    extra->effect = 3;
    extra->inputs.has_many = true;
    assert_true(mu__grow_array((void **)&extra->inputs.many, 2, 8));
    mu__closure_extras_release(&extras, &a);
    assert_int_equal(a.extra, 0);
    assert_ptr_equal(mu__closure_extras_take(&extras, &b), extra);
    assert_null(extra->name);
    assert_int_equal(extra->effect, 0);
    assert_false(extra->inputs.has_many);
    mu__closure_extras_done(&extras);
}

TEST(test_entries_stay_where_they_are)
{
    enum { COUNT = 3 * MU__EXTRAS_CHUNK };
    struct closure_extras extras = {0};
    struct mu__closure closures[COUNT] = {{0}};
    struct closure_extra *first = NULL;

    for (uint32_t i = 0; i < COUNT; i++) {
        struct closure_extra *extra;

        closures[i] = (struct mu__closure){.generation = 1, .index = i};
        extra = mu__closure_extras_take(&extras, &closures[i]);
        assert_non_null(extra);
        first = i == 0 ? extra : first;
    }
    assert_int_equal(mu__closure_extras_count(&extras), COUNT);
    assert_ptr_equal(mu__closure_extras_at(&extras, closures[0].extra - 1), first);
    assert_null(mu__closure_extras_at(&extras, COUNT));
    mu__closure_extras_done(&extras);
}

TEST_PROGRAM()
