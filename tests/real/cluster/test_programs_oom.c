/* Running a program when memory is short: an error, and nothing is left behind. */
#include "resolver/engine/uv/run_program.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#include <sys/wait.h>

static int run_once(void)
{
    static const char words[] = "a-c\0aecho one; echo two >&2; exit $CODE\0vCODE=0";
    atomic_bool unwanted = false;
    mu_error error = {0};
    char *data = NULL;
    size_t size = 0;
    int rv =
        mu__run_program("sh", words, sizeof words, 1000, &unwanted, &error, &data, &size);

    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    assert_int_equal(rv, error.code);
    if (rv == 0)
        assert_string_equal(data, "one\n");
    else
        assert_null(data);
    free(data);
    return rv;
}

TEST(test_every_allocation)
{
    bool failed = true;

    for (long n = 0; failed; n++) {
        int rv;

        assert_true(n < 100);
        fault_arm(n);
        rv = run_once();
        failed = fault_disarm();
        assert_int_equal(rv, failed ? -MU_ENOMEM : 0);
    }
}

TEST_PROGRAM()
