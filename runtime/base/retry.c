#include "runtime/base/retry.h"

#include <assert.h>
#include <stdio.h>

enum { SHORTEST_MS = 20 }; /* of a pause: less is not worth a try */

static uint64_t pause_of(const struct mu__retry *retry, unsigned tries, uint64_t random)
{
    uint64_t first = retry->first_ms == 0 ? MU__RETRY_FIRST_MS : retry->first_ms;
    uint64_t most = retry->most_ms == 0 ? MU__RETRY_MOST_MS : retry->most_ms;
    uint64_t pause = first;

    for (unsigned i = 1; i < tries && pause < most; i++)
        pause *= 2;
    if (pause > most)
        pause = most;
    return pause - pause / 2 + random % (pause / 2 + 1);
}

/* Near the end pauses are half of what is left, so that the last try comes late. */
static uint64_t shorten_pause(const struct mu__retry *retry, uint64_t pause,
                              uint64_t now_ms)
{
    uint64_t left = now_ms < retry->end_ms ? retry->end_ms - now_ms : 0;

    return retry->end_ms == MU__RETRY_NO_END || pause < left ? pause : left / 2;
}

bool mu__retry_next(const struct mu__retry *retry, unsigned tries, uint64_t now_ms,
                    uint64_t random, uint32_t after_ms, uint64_t *ret_due_ms)
{
    uint64_t pause;

    assert(tries >= 1);
    if (retry->tries_max != 0 && tries >= retry->tries_max)
        return false;
    pause = pause_of(retry, tries, random);
    if (pause < after_ms)
        pause = after_ms;
    pause = shorten_pause(retry, pause, now_ms);
    if (pause < after_ms || pause < SHORTEST_MS)
        return false;
    *ret_due_ms = now_ms + pause;
    return true;
}

void mu__retry_time(uint64_t ms, char *out, size_t size)
{
    if (ms < 10000)
        (void)snprintf(out, size, "%u.%u s", (unsigned)(ms / 1000),
                       (unsigned)(ms % 1000 / 100));
    else if (ms < 120000)
        (void)snprintf(out, size, "%u s", (unsigned)(ms / 1000));
    else
        (void)snprintf(out, size, "%llu min %u s", (unsigned long long)(ms / 60000),
                       (unsigned)(ms % 60000 / 1000));
}

void mu__retry_words(const struct mu__retry *retry, const char *what, const char *reason,
                     unsigned tries, uint64_t now_ms, uint64_t due_ms, char *out,
                     size_t size)
{
    uint64_t end_ms = retry->end_ms;
    char again[32];
    char left[32] = "";

    mu__retry_time(due_ms > now_ms ? due_ms - now_ms : 0, again, sizeof again);
    if (end_ms != MU__RETRY_NO_END)
        mu__retry_time(end_ms > now_ms ? end_ms - now_ms : 0, left, sizeof left);
    (void)snprintf(out, size, "%s%s%s%s, try %u, again in %s%s%s%s", what,
                   reason == NULL ? "" : " (", reason == NULL ? "" : reason,
                   reason == NULL ? "" : ")", tries, again, left[0] == '\0' ? "" : ", ",
                   left, left[0] == '\0' ? "" : " left");
}
