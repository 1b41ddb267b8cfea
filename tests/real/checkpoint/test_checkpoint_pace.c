/* How long the thread that writes a checkpoint rests: what the system says of it is here
 * a file of the test's. */
#include "api/checkpoint/pace.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static void say_waited(const struct mu__pace *pace, uint64_t ms)
{
    char text[80];
    int size = snprintf(text, sizeof text, "%llu %llu 12\n", 123456789ULL,
                        (unsigned long long)(ms * MS));

    assert_int_equal(pwrite(pace->file, text, (size_t)size, 0), size);
}

static struct mu__pace begin(void)
{
    char path[] = "/tmp/muster-pace-XXXXXX";
    struct mu__pace pace = {.file = mkstemp(path)};

    assert_true(pace.file >= 0);
    (void)unlink(path);
    return pace;
}

/* Looked at each 8 ms: one that waited more than a tenth of the time rests as long as
 * it worked. */
TEST(test_rests_beside_others)
{
    struct mu__pace pace = begin();

    say_waited(&pace, 1);
    assert_int_equal(mu__pace_rest_ms(&pace, 7 * MS), 0);
    assert_int_equal(pace.since_ns, 0);
    assert_int_equal(mu__pace_rest_ms(&pace, 8 * MS), 8);
    assert_int_equal(pace.since_ns, 16 * MS);
    say_waited(&pace, 2);
    assert_int_equal(mu__pace_rest_ms(&pace, 26 * MS), 0); /* 1 of 10 */
    assert_int_equal(pace.since_ns, 26 * MS);
    say_waited(&pace, 52);
    assert_int_equal(mu__pace_rest_ms(&pace, 126 * MS), 16); /* not more at a time */
    mu__pace_done(&pace);
}

/* Where the system says nothing, cores are taken for busy. */
TEST(test_rests_when_nothing_is_known)
{
    struct mu__pace pace = {.file = -1};
    struct mu__pace empty = begin();

    assert_int_equal(mu__pace_rest_ms(&pace, 10 * MS), 10);
    assert_int_equal(mu__pace_rest_ms(&empty, 10 * MS), 10);
    mu__pace_done(&pace);
    mu__pace_done(&empty);
}

/* That of the thread itself, where the system has it. */
TEST(test_this_thread)
{
    struct mu__pace pace;

    mu__pace_init(&pace, 5);
    assert_int_equal(pace.since_ns, 5);
    if (pace.file >= 0)
        assert_int_equal(mu__pace_rest_ms(&pace, UINT64_C(1) << 62), 0);
    mu__pace_done(&pace);
}

TEST_PROGRAM()
