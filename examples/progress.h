/* What the examples share while they work: the time, pauses, and large numbers as text.
 */
#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static inline uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static inline void nap(uint64_t ms)
{
    const struct timespec time = {
        .tv_sec = (time_t)(ms / 1000),
        .tv_nsec = (long)(ms % 1000) * 1000000,
    };

    if (ms > 0)
        (void)nanosleep(&time, NULL);
}

/* 1234567 as 1,234,567. */
struct grouped {
    char text[32];
};

static inline struct grouped group(uint64_t number)
{
    struct grouped grouped;
    char plain[24];
    size_t length = (size_t)snprintf(plain, sizeof plain, "%" PRIu64, number);
    char *out = grouped.text;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = plain[i];
    }
    *out = '\0';
    return grouped;
}

#endif
