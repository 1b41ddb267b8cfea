/* Reports of failing servers, by rows: who, about whom, when, and what is made of it. */
#include "actors/ps/server_failures.h"
#include "tests/support/test.h"

enum { DECAY_MS = 1000, SAME_MS = 100, ROWS_MAX = 12 };

struct row {
    uint64_t now_ms;
    uint32_t server;
    uint32_t reporter;
    bool lasting;   /* what report() says */
    uint32_t count; /* afterwards */
};

struct story {
    const char *name;
    uint32_t ignored;
    uint32_t rows_count;
    struct row rows[ROWS_MAX];
};

static const struct story stories[] = {
    /* clang-format off */
    {"nothing is ignored", 0, 3,
     {{0, 0, 0, true, 0}, {1, 0, 0, true, 0}, {500, 1, 0, true, 0}}},
    {"one is ignored, the second is not", 1, 4,
     {{0, 0, 0, false, 1}, {1, 0, 1, true, 0}, {2, 0, 0, false, 1}, {3, 0, 2, true, 0}}},
    {"exactly three are ignored, and then the count begins anew", 3, 8,
     {{0, 0, 0, false, 1}, {1, 0, 1, false, 2}, {2, 0, 2, false, 3}, {3, 0, 3, true, 0},
      {4, 0, 0, false, 1}, {5, 0, 1, false, 2}, {6, 0, 2, false, 3}, {7, 0, 3, true, 0}}},
    {"each server by itself", 1, 5,
     {{0, 0, 0, false, 1}, {1, 7, 0, false, 1}, {2, 4000000000U, 0, false, 1},
      {3, 7, 1, true, 0}, {4, 0, 1, true, 0}}},
    {"the same trouble told twice", 1, 5,
     {{0, 0, 5, false, 1}, {1, 0, 5, false, 1}, {99, 0, 5, false, 1},
      {100, 0, 5, true, 0}, {101, 0, 5, false, 1}}},
    {"who reports all the time counts now and then", 2, 6,
     {{0, 0, 5, false, 1}, {60, 0, 5, false, 1}, {120, 0, 5, false, 2},
      {180, 0, 5, false, 2}, {240, 0, 5, true, 0}, {300, 0, 5, false, 1}}},
    {"told twice is judged before the count is", 1, 3,
     {{0, 0, 5, false, 1}, {50, 0, 5, false, 1}, {51, 0, 6, true, 0}}},
    {"old reports are forgotten, one by one", 2, 6,
     {{0, 0, 1, false, 1}, {600, 0, 2, false, 2}, {1000, 0, 3, false, 2},
      {1599, 0, 4, true, 0}, {1700, 0, 1, false, 1}, {2700, 0, 1, false, 1}}},
    {"a clock that goes backwards is no reason to forget", 1, 2,
     {{500, 0, 1, false, 1}, {400, 0, 2, true, 0}}},
    /* clang-format on */
};

TEST(test_stories)
{
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        const struct story *story = &stories[i];
        const struct mu__server_failures_options options = {
            .ignored = story->ignored,
            .decay_ms = DECAY_MS,
            .same_ms = SAME_MS,
        };
        struct mu__server_failures *failures = mu__server_failures_new(&options);

        assert_non_null(failures);
        for (uint32_t r = 0; r < story->rows_count; r++) {
            const struct row *row = &story->rows[r];
            bool lasting = mu__server_failures_report(failures, row->server,
                                                      row->reporter, row->now_ms);
            uint32_t count =
                mu__server_failures_count(failures, row->server, row->now_ms);

            if (lasting != row->lasting || count != row->count)
                fail_msg("%s, row %u: lasting %d, count %u", story->name, (unsigned)r,
                         lasting, (unsigned)count);
        }
        mu__server_failures_free(failures);
    }
}

TEST(test_count_decays_without_reports)
{
    const struct mu__server_failures_options options = {5, DECAY_MS, SAME_MS};
    struct mu__server_failures *failures = mu__server_failures_new(&options);

    assert_int_equal(mu__server_failures_count(failures, 0, 0), 0);
    assert_false(mu__server_failures_report(failures, 0, 1, 10));
    assert_false(mu__server_failures_report(failures, 0, 2, 20));
    assert_int_equal(mu__server_failures_count(failures, 0, 1009), 2);
    assert_int_equal(mu__server_failures_count(failures, 0, 1010), 1);
    assert_int_equal(mu__server_failures_count(failures, 0, 1020), 0);
    assert_int_equal(mu__server_failures_count(failures, 1, 20), 0);
    mu__server_failures_free(failures);
    mu__server_failures_free(NULL);
}

/* At the bound, the server that was silent for longest gives way. */
TEST(test_servers_are_bounded)
{
    const struct mu__server_failures_options options = {1, 1U << 30, 0};
    struct mu__server_failures *failures = mu__server_failures_new(&options);

    for (uint32_t i = 0; i < MU__SERVER_FAILURES_SERVERS_MAX; i++)
        assert_false(mu__server_failures_report(failures, i, 0, i + 1));
    assert_true(mu__server_failures_report(failures, 0, 0, 5000));
    assert_false(mu__server_failures_report(failures, 900000, 0, 5001));
    assert_int_equal(mu__server_failures_count(failures, 900000, 5001), 1);
    assert_int_equal(mu__server_failures_count(failures, 1, 5001), 0);
    assert_int_equal(mu__server_failures_count(failures, 2, 5001), 1);
    mu__server_failures_free(failures);
}

TEST_PROGRAM()
