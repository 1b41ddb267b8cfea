/* Untrusted text: checked for UTF-8, quoted in messages, parsed, compared. */
#ifndef MU_RUNTIME_BASE_TEXT_H
#define MU_RUNTIME_BASE_TEXT_H

#include <muster/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    MU__QUOTE_BYTES = 100,      /* room for a quoted value inside a message */
    MU__DISTANCE_BYTES_MAX = 64 /* longest word that mu__text_distance compares */
};

/* Bytes of the UTF-8 character at `at`, 1 to 4; 0 at `end`, and when the bytes are not
 * one (also when they are cut off at `end`, overlong, or a surrogate). */
size_t mu__utf8_length(const char *at, const char *end);

/* The first byte before `end` that is not UTF-8; NULL: all are. */
const char *mu__utf8_find_bad(const char *text, const char *end);

/* Whether all of `size` bytes are UTF-8. */
bool mu__utf8_valid(const void *data, size_t size);

/* Replace bytes of a text that are not UTF-8 by question marks, so that they do not get
 * into JSON, messages and logs. */
void mu__make_utf8(char *text);

/* Write `text` in double quotes into `out`, printable whatever it holds: other bytes
 * become \xHH, and what does not fit becomes "...". `size` is at least 16. */
void mu__quote(char *out, size_t size, const char *text, size_t length);

/* Copy a text into an array, as much as there is room for. */
#define MU__COPY_TEXT(array, text) ((void)snprintf((array), sizeof(array), "%s", (text)))

/* Whether there is a control character, which could control a terminal. */
bool mu__has_control(const char *text);

/* Replace each byte of a control character by '?'. */
void mu__hide_control(char *text);

/* The next line of a text that is not empty, without its end, from *at on, which moves
 * past it; false: there is none. */
bool mu__next_line(const char **at, const char **ret_line, size_t *ret_size);

/* Whether one of the lines is this one. */
bool mu__has_line(const char *text, const char *line, size_t size);

/* The number that a text of decimal digits alone stands for; -1: there is another
 * character or none, or the number is above `high`. */
int64_t mu__decimal(const char *text, size_t size, int64_t high);

/* The Levenshtein distance in bytes; UINT_MAX when one of the words is longer than
 * MU__DISTANCE_BYTES_MAX. */
unsigned mu__text_distance(const char *a, const char *b);

/* Write a url without its user and its query, which may be secret. */
void mu__show_url(const char *url, char *out, size_t size);

/* Whether a URL is plain http to a loopback address, which is the only place to send a
 * token unencrypted. "http://127.example.org" is not one. */
bool mu__is_loopback_url(const char *url);

#endif
