/* A function of the program's own: begun once, over once, and dropped when nobody waits
 * for it. */
#include "resolver/engine/request_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct {
    unsigned begun;
    unsigned finished;
    unsigned cancelled;
    unsigned freed;
    bool finishes_in_cancel;
} seen;

static void on_begin(struct mu__request_call *call)
{
    assert_true(mu__request_call_is_running(call));
    seen.begun++;
}

static void on_cancel(struct mu__request_call *call)
{
    seen.cancelled++;
    if (seen.finishes_in_cancel)
        mu__request_call_finish(call);
}

static void on_free(struct mu__request_call *call)
{
    (void)call;
    seen.freed++;
}

static void on_finished(void *owner)
{
    assert_ptr_equal(owner, &seen);
    seen.finished++;
}

static const struct mu__request_call_ops blocking = {.run = on_begin, .free = on_free};
static const struct mu__request_call_ops async = {
    .start = on_begin, .cancel = on_cancel, .free = on_free};

static int set_up(void **state)
{
    static struct mu__request_call call;

    seen.begun = seen.finished = seen.cancelled = seen.freed = 0;
    seen.finishes_in_cancel = false;
    mu__request_call_init(&call, &async);
    *state = &call;
    return 0;
}

static int tear_down(void **state)
{
    mu__request_call_unref(*state);
    return seen.freed == 1 ? 0 : -1;
}

static void start(struct mu__request_call *call)
{
    mu__request_call_start(call, on_finished, &seen);
}

static void test_blocking(void **state)
{
    struct mu__request_call *call = *state;

    mu__request_call_init(call, &blocking);
    assert_false(mu__request_call_is_async(call));
    assert_false(mu__request_call_has_begun(call));
    mu__request_call_run(call);
    mu__request_call_run(call);
    assert_int_equal(seen.begun, 1);
    assert_true(mu__request_call_has_returned(call));
    assert_false(mu__request_call_cancel(call));
    assert_true(mu__request_call_has_returned(call));
}

static void test_finished(void **state)
{
    struct mu__request_call *call = *state;

    assert_true(mu__request_call_is_async(call));
    start(call);
    assert_true(mu__request_call_is_running(call));
    assert_false(mu__request_call_has_returned(call));
    assert_int_equal(seen.finished, 0);
    mu__request_call_finish(call);
    assert_int_equal(seen.finished, 1);
    assert_true(mu__request_call_has_returned(call));
    assert_false(mu__request_call_cancel(call));
    assert_int_equal(seen.cancelled, 0);
}

/* Two queries may have asked for the same call: the second one is told at once. */
static void test_started_twice(void **state)
{
    struct mu__request_call *call = *state;

    start(call);
    start(call);
    assert_int_equal(seen.begun, 1);
    assert_int_equal(seen.finished, 1);
    assert_true(mu__request_call_is_running(call));
    mu__request_call_finish(call);
    assert_int_equal(seen.finished, 2);
}

static void test_cancelled_before_it_begins(void **state)
{
    struct mu__request_call *call = *state;

    assert_false(mu__request_call_cancel(call));
    start(call);
    assert_int_equal(seen.begun, 0);
    assert_int_equal(seen.cancelled, 0);
    assert_int_equal(seen.finished, 1);
    assert_false(mu__request_call_has_begun(call));
}

static void test_cancelled_once(void **state)
{
    struct mu__request_call *call = *state;

    start(call);
    assert_true(mu__request_call_cancel(call));
    assert_true(mu__request_call_cancel(call));
    assert_int_equal(seen.cancelled, 1);
    assert_true(mu__request_call_is_running(call));
    mu__request_call_finish(call);
    assert_int_equal(seen.finished, 1);
    assert_false(mu__request_call_is_running(call));
    assert_false(mu__request_call_has_returned(call));
    assert_true(mu__request_call_has_begun(call));
}

static void test_finished_within_cancel(void **state)
{
    struct mu__request_call *call = *state;

    seen.finishes_in_cancel = true;
    start(call);
    assert_false(mu__request_call_cancel(call));
    assert_int_equal(seen.finished, 1);
    assert_false(mu__request_call_has_returned(call));
}

int main(void)
{
#define CALL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CALL(test_blocking),
        CALL(test_finished),
        CALL(test_started_twice),
        CALL(test_cancelled_before_it_begins),
        CALL(test_cancelled_once),
        CALL(test_finished_within_cancel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
