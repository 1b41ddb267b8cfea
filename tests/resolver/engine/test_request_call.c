/* A function of the program's own: called once, dropped when nobody has it any more. */
#include "resolver/engine/request_call.h"
#include "tests/support/test.h"

static unsigned runs;
static unsigned frees;

/* Its thread and who asked have it. */
static void on_run(struct mu__request_call *call)
{
    assert_true(mu__request_call_has_begun(call));
    assert_true(mu__request_call_is_running(call));
    runs++;
}

static void on_free(struct mu__request_call *call)
{
    (void)call;
    frees++;
}

TEST(test_runs_and_is_dropped)
{
    struct mu__request_call call;

    mu__request_call_init(&call, on_run, on_free);
    mu__request_call_ref(&call);
    assert_false(mu__request_call_has_begun(&call));
    assert_true(mu__request_call_is_running(&call)); /* a thread is about to */
    mu__request_call_run(&call);
    assert_int_equal(runs, 1);
    assert_false(mu__request_call_is_running(&call));
    mu__request_call_unref(&call);
    assert_int_equal(frees, 0);
    mu__request_call_unref(&call);
    assert_int_equal(frees, 1);
    mu__request_call_unref(NULL);
}

/* Its thread has dropped it before it began. */
TEST(test_never_runs)
{
    struct mu__request_call call;

    mu__request_call_init(&call, on_run, on_free);
    mu__request_call_ref(&call);
    mu__request_call_unref(&call);
    assert_false(mu__request_call_is_running(&call));
}

TEST_PROGRAM()
