/* Dates, by rows. */
#include "runtime/base/date.h"
#include "tests/support/test.h"

#include <muster/error.h>

TEST(test_dates)
{
    static const struct {
        const char *text;
        int64_t s;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2000-02-29T12:00:00Z", 951825600},
        {"2023-11-14T22:13:20.123456789Z", 1700000000},
        {"2024-03-01T00:00:00", 1709251200},
        {"2100-12-31T23:59:60+00:00", 4133980800},
        {"2023-11-15T00:13:20+02:00", 1700000000},
        {"2023-11-14T18:43:20.5-03:30", 1700000000},
        {"1970-01-01T01:00:00+01:00", 0},
    };
    int64_t s;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(mu__date_parse(rows[i].text, &s), 0);
        assert_int_equal(s, rows[i].s);
    }
}

TEST(test_none)
{
    static const char *const rows[] = {"",
                                       "2023",
                                       "2023-13-01T00:00:00Z",
                                       "2023-00-01T00:00:00Z",
                                       "2023-01-32T00:00:00Z",
                                       "2023-01-01 00:00:00Z",
                                       "2023-01-01T24:00:00Z",
                                       "1960-01-01T00:00:00Z",
                                       "2023-01-01T00:61:00Z",
                                       "1970-01-01T00:59:59+01:00",
                                       "2023-01-01T00:00:00+24:00",
                                       "2023-01-01T00:00:00+01",
                                       "2023-01-01T00:00:00 Z",
                                       "2023-01-01T00:00:00+01:00Z",
                                       "2023-01-01T00:00:00+01:60"};
    int64_t s = 7;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(mu__date_parse(rows[i], &s), -MU_EINVALID);
    assert_int_equal(s, 7);
}

TEST_PROGRAM()
