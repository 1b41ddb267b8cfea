/* Pauses between tries, by rows. */
#include "runtime/base/retry.h"
#include "tests/support/test.h"

#define NO_END MU__RETRY_NO_END

TEST(test_pauses)
{
    static const struct {
        const char *what;
        struct mu__retry retry;
        unsigned tries;
        uint64_t now_ms;
        uint64_t random;
        uint32_t after_ms;
        uint64_t due_ms; /* 0: enough */
    } rows[] = {
        {"first, least", {.end_ms = NO_END}, 1, 1000, 0, 0, 1050},
        {"first, most", {.end_ms = NO_END}, 1, 1000, 50, 0, 1100},
        {"random wraps", {.end_ms = NO_END}, 1, 1000, 51, 0, 1050},
        {"second doubles", {.end_ms = NO_END}, 2, 1000, 0, 0, 1100},
        {"seventh", {.end_ms = NO_END}, 7, 1000, 0, 0, 4200},
        {"eighth is the most", {.end_ms = NO_END}, 8, 0, 0, 0, 5000},
        {"thousandth, too", {.end_ms = NO_END}, 1000, 0, 5000, 0, 10000},
        {"own first", {.first_ms = 1000, .end_ms = NO_END}, 1, 0, 0, 0, 500},
        {"own most", {.most_ms = 200, .end_ms = NO_END}, 9, 0, 100, 0, 200},
        {"asked to wait", {.end_ms = NO_END}, 1, 1000, 0, 3000, 4000},
        {"asked for less", {.end_ms = NO_END}, 8, 1000, 0, 3000, 6000},
        {"tries left", {.tries_max = 3, .end_ms = NO_END}, 2, 1000, 0, 0, 1100},
        {"no tries left", {.tries_max = 3, .end_ms = NO_END}, 3, 1000, 0, 0, 0},
        {"fits before the end", {.end_ms = 1051}, 1, 1000, 0, 0, 1050},
        {"half of what is left", {.end_ms = 1050}, 1, 1000, 0, 0, 1025},
        {"too little is left", {.end_ms = 1038}, 1, 1000, 0, 0, 0},
        {"at the end", {.end_ms = 1000}, 1, 1000, 0, 0, 0},
        {"past the end", {.end_ms = 1000}, 1, 1001, 0, 0, 0},
        {"asked for too long", {.end_ms = 2000}, 1, 1000, 0, 3000, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t due_ms = 0;
        bool again = mu__retry_next(&rows[i].retry, rows[i].tries, rows[i].now_ms,
                                    rows[i].random, rows[i].after_ms, &due_ms);

        if (again != (rows[i].due_ms != 0) || due_ms != rows[i].due_ms)
            fail_msg("%s: due %llu, expected %llu", rows[i].what,
                     (unsigned long long)due_ms, (unsigned long long)rows[i].due_ms);
    }
}

/* Whatever is drawn, a pause is between half and the whole of what it may be. */
TEST(test_jitter_is_bounded)
{
    const struct mu__retry retry = {.end_ms = NO_END};
    uint64_t differ = 0;
    uint64_t first = 0;

    for (uint64_t random = 0; random < 1000; random++) {
        uint64_t due_ms;

        assert_true(mu__retry_next(&retry, 5, 0, random * 7919, 0, &due_ms));
        assert_in_range(due_ms, 800, 1600);
        if (random == 0)
            first = due_ms;
        differ += due_ms != first;
    }
    assert_true(differ > 900);
}

TEST(test_words)
{
    const struct mu__retry limited = {.end_ms = 43000};
    const struct mu__retry endless = {.end_ms = NO_END};
    char line[200];

    mu__retry_words(&limited, "asking https://host/path failed", "connection refused", 3,
                    1000, 1800, line, sizeof line);
    assert_string_equal(line, "asking https://host/path failed (connection refused), "
                              "try 3, again in 0.8 s, 42 s left");
    mu__retry_words(&endless, "pod a-0 does not run yet", NULL, 1, 1000, 131000, line,
                    sizeof line);
    assert_string_equal(line, "pod a-0 does not run yet, try 1, again in 2 min 10 s");
}

TEST_PROGRAM()
