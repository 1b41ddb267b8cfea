/* Listening at a name, where each allocation fails once: there is an error, and nothing
 * is left behind. */
#include "tests/real/hanging_dns.h"
#include "tests/support/fault.h"
#include "transport/wire/uv/listen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { STEPS_MAX = 100 };

static void test_every_allocation_can_fail(void **state)
{
    static const char url[] = "tcp://away.test:7000";
    struct mu__listening listening;
    long n = 0;

    (void)state;
    dns_answer(true);
    for (;; n++) {
        mu_error error = {0};
        int rv;

        assert_true(n < STEPS_MAX);
        fault_arm(n);
        rv = mu__listen(url, &error, &listening);
        if (!fault_disarm()) {
            assert_int_equal(rv, -MU_EUNAVAILABLE);
            break;
        }
        assert_int_equal(rv, -MU_ENOMEM);
        assert_int_not_equal(error.message[0], '\0');
    }
    assert_true(n >= 2);
    dns_wait(&dns.left, dns_count(&dns.entered));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_can_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
