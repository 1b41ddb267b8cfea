/* Limits that a test compares with what happens meanwhile: longer where a sanitizer slows
 * everything down, so that a machine which is busy, too, keeps to them. */
#ifndef MUSTER_TESTS_REAL_SLOW_H
#define MUSTER_TESTS_REAL_SLOW_H

#include <stdio.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SLOW = 2 };
enum { COUNTS_MEMORY = 0 }; /* a sanitizer keeps what was freed */
#else
enum { SLOW = 1 };
enum { COUNTS_MEMORY = 1 };
#endif

/* For a command line: so many milliseconds, times SLOW. Valid for seven calls more. */
static inline const char *slow_text(int ms)
{
    static char texts[8][16];
    static unsigned next;
    char *text = texts[next++ % 8];

    (void)snprintf(text, sizeof texts[0], "%d", ms * SLOW);
    return text;
}

#endif
