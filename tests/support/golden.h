/* Golden bytes: lines "name = hex" in tests/golden/. What the code writes is compared
 * with them, so that the wire format cannot change unnoticed.
 *
 * To make a file anew, run its test with MUSTER_GOLDEN=write and look at the difference
 * before believing it: a line that changes is a protocol that changes. */
#ifndef MU_TESTS_GOLDEN_H
#define MU_TESTS_GOLDEN_H

#include "tests/support/hex.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { GOLDEN_TEXT_MAX = 1 << 16, GOLDEN_BYTES_MAX = 4096 };

struct golden {
    char path[1024];
    char text[GOLDEN_TEXT_MAX]; /* the file, or what will be the file */
    size_t length;
    bool writing;
};

/* 0, or -1 when the file cannot be read. The path is relative to the repository. */
static inline int golden_open(struct golden *golden, const char *path)
{
    const char *source = getenv("MUSTER_SOURCE");
    const char *wish = getenv("MUSTER_GOLDEN");
    FILE *file;

    snprintf(golden->path, sizeof golden->path, "%s/%s", source != NULL ? source : ".",
             path);
    golden->writing = wish != NULL && strcmp(wish, "write") == 0;
    golden->length = 0;
    golden->text[0] = '\0';
    if (golden->writing)
        return 0;

    file = fopen(golden->path, "r");
    if (file == NULL)
        return -1;
    golden->length = fread(golden->text, 1, sizeof golden->text - 1, file);
    golden->text[golden->length] = '\0';
    return fclose(file);
}

static inline void golden_add(struct golden *golden, const char *name, const char *hex)
{
    size_t left = sizeof golden->text - golden->length;
    int length = snprintf(golden->text + golden->length, left, "%s = %s\n", name, hex);

    if (length > 0 && (size_t)length < left)
        golden->length += (size_t)length;
}

/* The bytes under a name. False when there is no such line. */
static inline bool golden_find(const struct golden *golden, const char *name,
                               uint8_t *out, size_t capacity, size_t *ret_size)
{
    char hex[2 * GOLDEN_BYTES_MAX + 1];
    size_t name_length = strlen(name);
    const char *line = golden->text;
    size_t length;

    while (strncmp(line, name, name_length) != 0 ||
           strncmp(line + name_length, " = ", 3) != 0) {
        line = strchr(line, '\n');
        if (line == NULL)
            return false;
        line++;
    }
    line += name_length + 3;
    length = strcspn(line, "\n");
    if (length >= sizeof hex)
        return false;
    memcpy(hex, line, length);
    hex[length] = '\0';
    return hex_read(hex, out, capacity, ret_size);
}

/* Whether the golden bytes under a name are these. When writing, adds them. */
static inline bool golden_is(struct golden *golden, const char *name, const void *data,
                             size_t size)
{
    char hex[2 * GOLDEN_BYTES_MAX + 1];
    uint8_t expected[GOLDEN_BYTES_MAX];
    size_t count;

    if (size > GOLDEN_BYTES_MAX)
        return false;
    if (golden->writing) {
        hex_write(data, size, hex);
        golden_add(golden, name, hex);
    }
    return golden_find(golden, name, expected, sizeof expected, &count) &&
           count == size && memcmp(expected, data, size) == 0;
}

static inline size_t golden_lines(const struct golden *golden)
{
    size_t lines = 0;

    for (const char *at = golden->text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    return lines;
}

/* 0, or -1 when the file was to be written and could not be. */
static inline int golden_close(struct golden *golden)
{
    FILE *file;
    size_t written;

    if (!golden->writing)
        return 0;
    file = fopen(golden->path, "w");
    if (file == NULL)
        return -1;
    written = fwrite(golden->text, 1, golden->length, file);
    return fclose(file) == 0 && written == golden->length ? 0 : -1;
}

#endif
