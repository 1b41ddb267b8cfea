/* When to try again: the one place where pauses between tries are computed.
 *
 * Exponential backoff with jitter: pauses double from first_ms to most_ms, and half of
 * each is random, so that a thousand tasks that lost the same server do not come back
 * together. A pause is never shorter than the server has asked for (Retry-After). Near
 * the end a pause is at most half of the time left, so that the last try comes late.
 * Pure: time and random bits are passed in. */
#ifndef MU_RUNTIME_BASE_RETRY_H
#define MU_RUNTIME_BASE_RETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Defaults where a field is 0. */
enum { MU__RETRY_FIRST_MS = 100, MU__RETRY_MOST_MS = 10000 };

#define MU__RETRY_NO_END UINT64_MAX

struct mu__retry {
    uint32_t first_ms;
    uint32_t most_ms;
    unsigned tries_max; /* 0: as many as the time allows */
    uint64_t end_ms;    /* no try begins at this time or later; or MU__RETRY_NO_END */
};

/* `tries` have failed (1 or more), the last one at `now_ms`. True: try again at
 * *ret_due_ms, which is below end_ms. False: give up. `after_ms` is the pause that the
 * server has asked for (0: none), `random` 64 random bits. */
bool mu__retry_next(const struct mu__retry *retry, unsigned tries, uint64_t now_ms,
                    uint64_t random, uint32_t after_ms, uint64_t *ret_due_ms);

/* A line for people: "asking https://host/path failed (connection refused), try 3, again
 * in 0.8 s, 42 s left". `what` begins it ("asking https://host/path failed"), `reason`
 * may be NULL; the time left is omitted when there is no end. */
void mu__retry_words(const struct mu__retry *retry, const char *what, const char *reason,
                     unsigned tries, uint64_t now_ms, uint64_t due_ms, char *out,
                     size_t size);

/* A time for people: "0.8 s", "42 s", "3 min 20 s". */
void mu__retry_time(uint64_t ms, char *out, size_t size);

#endif
