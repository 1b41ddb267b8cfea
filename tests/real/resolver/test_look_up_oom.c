/* Listening at a name, where each allocation fails once: there is an error, and nothing
 * is left behind. */
#include "tests/real/hanging_dns.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"
#include "transport/wire/uv/listen.h"

enum { STEPS_MAX = 100 };

TEST(test_every_allocation_can_fail)
{
    static const char url[] = "tcp://away.test:7000";
    struct mu__listening listening;
    long n = 0;

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

TEST_PROGRAM()
