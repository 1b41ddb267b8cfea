/* The coordination service and its tasks, in virtual time: registering, heartbeats,
 * failures, resets, leaving, questions. A host answers at once; limits of tasks are 300
 * ms of silence until suspicion, 900 until death, 600 with a broken link. */
#include "tests/service.h"

static void test_register(void **state)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_agent(s, "worker", 0);

    (void)state;
    expect_ok(w0, service_register(w0, false, 0));
    service_end(s);
}

static void test_silence(void **state)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);

    (void)state;
    service_run_until(s, 1000);
    assert_string_equal(service_text(w0), "");
    w0->beats = false;
    service_run_until(s, 3000);
    expect_said(w0, "[ 1900] task_error code=14 message=\"/job:worker/task:0 has not been "
                    "heard for 900 ms\" task=\"/job:worker/task:0\" own=yes\n");
    service_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_register),
        cmocka_unit_test(test_silence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
