#include "runtime/base/build.h"

#include "runtime/base/base64.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 256 };

/* Overwrite a text. A compiler may leave out memset() before free(), but not this. */
static void wipe_build(char *text, size_t size)
{
    volatile char *at = text;

    while (size-- > 0)
        *at++ = 0;
}

void mu__build_done(struct mu__build *build)
{
    if (build->text != NULL)
        wipe_build(build->text, build->size);
    free(build->text);
    *build = (struct mu__build){0};
}

/* Make room for `size` bytes and a zero behind them, and return where they go; NULL: out
 * of memory. */
static char *reserve_build(struct mu__build *build, size_t size)
{
    size_t room = build->room == 0 ? FIRST_BYTES : build->room;
    char *text;

    while (room - build->size < size + 1)
        room *= 2;
    if (room == build->room || build->failed)
        return build->failed ? NULL : build->text + build->size;
    text = malloc(room);
    if (text == NULL) {
        build->failed = true;
        return NULL;
    }
    if (build->text != NULL) {
        memcpy(text, build->text, build->size);
        wipe_build(build->text, build->size);
    }
    free(build->text);
    build->text = text;
    build->room = room;
    return text + build->size;
}

void mu__build_bytes(struct mu__build *build, const void *data, size_t size)
{
    char *out = reserve_build(build, size);

    if (out == NULL)
        return;
    if (size > 0)
        memcpy(out, data, size);
    out[size] = '\0';
    build->size += size;
}

void mu__build_add(struct mu__build *build, const char *text)
{
    mu__build_bytes(build, text, strlen(text));
}

void mu__build_format(struct mu__build *build, const char *format, ...)
{
    va_list arguments;
    char *out;
    int size;

    va_start(arguments, format);
    size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    out = size < 0 ? NULL : reserve_build(build, (size_t)size);
    if (out == NULL) {
        build->failed = true;
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(out, (size_t)size + 1, format, arguments);
    va_end(arguments);
    build->size += (size_t)size;
}

static bool is_url_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c) != NULL);
}

void mu__build_escaped(struct mu__build *build, const char *text)
{
    for (; *text != '\0'; text++) {
        if (is_url_letter((unsigned char)*text))
            mu__build_bytes(build, text, 1);
        else
            mu__build_format(build, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

void mu__build_base64(struct mu__build *build, const void *data, size_t size)
{
    size_t count = mu__base64_size(size);
    char *out = reserve_build(build, count);

    if (out == NULL)
        return;
    mu__base64_encode(data, size, out);
    out[count] = '\0';
    build->size += count;
}

void mu__build_base64url(struct mu__build *build, const void *data, size_t size)
{
    size_t from = build->size;

    mu__build_base64(build, data, size);
    if (build->failed)
        return;
    while (build->size > from && build->text[build->size - 1] == '=')
        build->text[--build->size] = '\0';
    for (char *at = build->text + from; *at != '\0'; at++) {
        if (*at == '+')
            *at = '-';
        else if (*at == '/')
            *at = '_';
    }
}

void mu__build_json(struct mu__build *build, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    mu__build_add(build, "\"");
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] < ' ' || bytes[i] == '"' || bytes[i] == '\\')
            mu__build_format(build, "\\u%04x", (unsigned)bytes[i]);
        else
            mu__build_bytes(build, &bytes[i], 1);
    }
    mu__build_add(build, "\"");
}

bool mu__build_whole(struct mu__build *build)
{
    if (build->text == NULL)
        mu__build_add(build, "");
    return !build->failed;
}
