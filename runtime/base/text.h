/* Text that somebody else wrote: is it UTF-8, and how is it shown in a message. */
#ifndef MU_RESOLVER_TEXT_H
#define MU_RESOLVER_TEXT_H

#include <muster/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    MU__QUOTE_BYTES = 100,      /* room for a quoted value inside a message */
    MU__DISTANCE_BYTES_MAX = 64 /* of a word that is compared */
};

/* Bytes of the UTF-8 character at `at`, 1 to 4; 0 when there is none before `end`, or
 * when the bytes are none (overlong forms and surrogates are none). */
size_t mu__utf8_length(const char *at, const char *end);

/* Write `text` in double quotes into `out`, printable whatever it holds: other bytes
 * become \xHH, and what does not fit becomes "...". `size` is at least 16. */
void mu__quote(char *out, size_t size, const char *text, size_t length);

/* An error of bad input, -MU_EINVALID: what the format says, which ends with what was
 * expected, and ", got" with the text that was there instead. */
int mu__refuse(mu_error *ret_error, const char *text, size_t size, const char *format,
               ...) MU_PRINTF(4, 5);

/* Copy a text into an array, as much as there is room for. */
#define MU__COPY_TEXT(array, text) \
    ((void)snprintf((array), sizeof(array), "%s", (text)))

/* Is there a control character, which would move a terminal's cursor or worse? */
bool mu__has_control(const char *text);

/* Put '?' in the place of each byte of a control character. */
void mu__hide_control(char *text);

/* How many letters must be added, taken away or changed to make `b` of `a`; UINT_MAX when
 * one of them is longer than MU__DISTANCE_BYTES_MAX. */
unsigned mu__text_distance(const char *a, const char *b);

/* Whether a url is one with http of this machine alone: only there may a token be sent in
 * the clear. "http://127.example.org" is somebody else's. */
bool mu__is_loopback_url(const char *url);

#endif
