#include "runtime/base/text.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The forms of a UTF-8 character beyond ASCII: mask and value that identify its first
 * byte, its length, and the least code point that needs that length. */
static const struct form {
    unsigned char mask;
    unsigned char mark;
    size_t length;
    uint32_t least;
} forms[] = {
    {0xE0, 0xC0, 2, 0x80},
    {0xF0, 0xE0, 3, 0x800},
    {0xF8, 0xF0, 4, 0x10000},
};

static bool is_code_point(uint32_t point, uint32_t least)
{
    return point >= least && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
}

static size_t form_length(const struct form *form, const char *at, const char *end)
{
    uint32_t point = (unsigned char)*at & (unsigned char)~form->mask;

    if ((size_t)(end - at) < form->length)
        return 0;

    for (size_t i = 1; i < form->length; i++) {
        unsigned char byte = (unsigned char)at[i];

        if ((byte & 0xC0) != 0x80)
            return 0;
        point = point << 6 | (byte & 0x3FU);
    }
    return is_code_point(point, form->least) ? form->length : 0;
}

size_t mu__utf8_length(const char *at, const char *end)
{
    if (at >= end)
        return 0;
    if ((unsigned char)*at < 0x80)
        return 1;

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (((unsigned char)*at & forms[i].mask) == forms[i].mark)
            return form_length(&forms[i], at, end);
    }
    return 0;
}

static bool is_ascii8(const char *text)
{
    uint64_t word;

    memcpy(&word, text, sizeof word);
    return (word & UINT64_C(0x8080808080808080)) == 0;
}

const char *mu__utf8_find_bad(const char *text, const char *end)
{
    while (end - text >= 8 && is_ascii8(text))
        text += 8;
    while (text < end) {
        size_t length = (unsigned char)*text < 0x80 ? 1 : mu__utf8_length(text, end);

        if (length == 0)
            return text;
        text += length;
    }
    return NULL;
}

bool mu__utf8_valid(const void *data, size_t size)
{
    return mu__utf8_find_bad(data, (const char *)data + size) == NULL;
}

void mu__make_utf8(char *text)
{
    const char *end = text + strlen(text);

    while (text < end) {
        size_t length = mu__utf8_length(text, end);

        if (length == 0)
            *text = '?';
        text += length == 0 ? 1 : length;
    }
}

/* Bytes of the control character at `at`, 0 when there is none. Those above ASCII are
 * U+0080 to U+009F. */
static size_t control_length(const char *at)
{
    unsigned char byte = (unsigned char)at[0];
    unsigned char next = byte == 0xC2 ? (unsigned char)at[1] : 0;

    if (next >= 0x80 && next < 0xA0)
        return 2;
    return (byte != '\0' && byte < ' ') || byte == 0x7F ? 1 : 0;
}

bool mu__has_control(const char *text)
{
    while (*text != '\0' && control_length(text) == 0)
        text++;
    return *text != '\0';
}

void mu__hide_control(char *text)
{
    while (*text != '\0') {
        size_t length = control_length(text);

        memset(text, '?', length);
        text += length == 0 ? 1 : length;
    }
}

/* Write one character as it is shown; returns how many bytes of `at` it used up. */
static size_t show_character(char *out, size_t size, const char *at, const char *end)
{
    size_t length = mu__utf8_length(at, end);
    unsigned char byte = (unsigned char)*at;

    if (*at == '"' || *at == '\\')
        (void)snprintf(out, size, "\\%c", *at);
    else if (length == 0 || byte < ' ' || byte == 0x7F)
        (void)snprintf(out, size, "\\x%02x", byte);
    else if (length == 2 && byte == 0xC2 && (unsigned char)at[1] < 0xA0)
        (void)snprintf(out, size, "\\x%02x\\x%02x", byte, (unsigned char)at[1]);
    else
        (void)snprintf(out, size, "%.*s", (int)length, at);
    return length > 0 ? length : 1;
}

void mu__quote(char *out, size_t size, const char *text, size_t length)
{
    const char *end = text + length;
    char *to = out;
    char shown[12];

    assert(size >= 16);
    *to++ = '"';
    while (text < end) {
        text += show_character(shown, sizeof shown, text, end);
        /* After this character there is still room for dots, quote and zero byte. */
        if ((size_t)(to - out) + strlen(shown) + sizeof "...\"" > size) {
            memcpy(to, "...", 3);
            to += 3;
            break;
        }
        memcpy(to, shown, strlen(shown));
        to += strlen(shown);
    }
    memcpy(to, "\"", sizeof "\"");
}

bool mu__next_line(const char **at, const char **ret_line, size_t *ret_size)
{
    *ret_line = *at + strspn(*at, "\n");
    *ret_size = strcspn(*ret_line, "\n");
    *at = *ret_line + *ret_size;
    return *ret_size > 0;
}

bool mu__has_line(const char *text, const char *line, size_t size)
{
    const char *at;
    size_t length;

    while (mu__next_line(&text, &at, &length))
        if (length == size && memcmp(at, line, size) == 0)
            return true;
    return false;
}

int64_t mu__decimal(const char *text, size_t size, int64_t high)
{
    int64_t number = 0;

    for (size_t i = 0; i < size; i++) {
        int digit = text[i] - '0';

        if (digit < 0 || digit > 9 || number > (high - digit) / 10)
            return -1;
        number = number * 10 + digit;
    }
    return size == 0 || number > high ? -1 : number;
}

static unsigned get_smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned mu__text_distance(const char *a, const char *b)
{
    unsigned row[MU__DISTANCE_BYTES_MAX + 1];
    size_t size = strlen(b);

    if (size > MU__DISTANCE_BYTES_MAX || strlen(a) > MU__DISTANCE_BYTES_MAX)
        return UINT_MAX;
    for (unsigned j = 0; j <= size; j++)
        row[j] = j;
    for (unsigned i = 0; a[i] != '\0'; i++) {
        unsigned diagonal = row[0];

        row[0] = i + 1;
        for (unsigned j = 0; j < size; j++) {
            unsigned change = diagonal + (a[i] != b[j]);

            diagonal = row[j + 1];
            row[j + 1] = get_smaller(change, get_smaller(row[j], diagonal) + 1);
        }
    }
    return row[size];
}

void mu__show_url(const char *url, char *out, size_t size)
{
    const char *host = strstr(url, "://");
    const char *end = url + strcspn(url, "?#");
    size_t scheme;

    host = host == NULL || host > end ? url : host + 3;
    scheme = (size_t)(host - url);
    for (const char *at = host; at < end && *at != '/'; at++)
        if (*at == '@')
            host = at + 1;
    (void)snprintf(out, size, "%.*s%.*s", (int)scheme, url, (int)(end - host), host);
}

bool mu__is_loopback_url(const char *url)
{
    static const char *const starts[] = {"http://127.", "http://localhost",
                                         "http://[::1]"};

    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        size_t size = strlen(starts[i]);
        const char *end = url + size;

        if (strncmp(url, starts[i], size) != 0)
            continue;
        end += i == 0 ? strspn(end, "0123456789.") : 0;
        if (*end == '\0' || *end == '/' || *end == ':')
            return true;
    }
    return false;
}
