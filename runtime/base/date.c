#include "runtime/base/date.h"

#include <muster/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Read `count` digits and the character `end` behind them; '\0': none is read. */
static bool read_digits(const char **at, size_t count, char end, int *ret_number)
{
    int number = 0;

    for (size_t i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        number = number * 10 + (**at - '0');
    }
    *ret_number = number;
    if (end == '\0')
        return true;
    return *(*at)++ == end;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar. Years are counted from March,
 * so that the leap day is the last day of its year. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = month <= 2 ? month + 9 : month - 3;

    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* Read "Z", "+02:00", or nothing (UTC) as seconds ahead of UTC. */
static bool read_zone(const char *text, int64_t *ret_s)
{
    int sign = *text == '-' ? -1 : 1;
    int hours;
    int minutes;

    *ret_s = 0;
    if (*text == '\0' || strcmp(text, "Z") == 0)
        return true;
    if (*text != '+' && *text != '-')
        return false;
    text++;
    if (!read_digits(&text, 2, ':', &hours) || !read_digits(&text, 2, '\0', &minutes) ||
        *text != '\0' || hours > 23 || minutes > 59)
        return false;
    *ret_s = sign * (hours * 60 + minutes) * 60;
    return true;
}

int mu__date_parse(const char *text, int64_t *ret_s)
{
    int year, month, day, hour, minute, second;
    int64_t ahead;
    int64_t s;

    if (!read_digits(&text, 4, '-', &year) || !read_digits(&text, 2, '-', &month) ||
        !read_digits(&text, 2, 'T', &day) || !read_digits(&text, 2, ':', &hour) ||
        !read_digits(&text, 2, ':', &minute) || !read_digits(&text, 2, '\0', &second))
        return -MU_EINVALID;
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 ||
        minute > 59 || second > 60)
        return -MU_EINVALID;
    if (*text == '.')
        text += 1 + strspn(text + 1, "0123456789");
    if (!read_zone(text, &ahead))
        return -MU_EINVALID;
    s = ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second - ahead;
    if (s < 0)
        return -MU_EINVALID;
    *ret_s = s;
    return 0;
}
