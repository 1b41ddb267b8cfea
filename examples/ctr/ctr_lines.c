/* The reader of lines. A category of up to 16 hexadecimal digits is the number that they
 * are, so "0a" and "a" are one category. */
#include "ctr_lines.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_SHIFT = 56 };

enum kind { KIND_EMPTY, KIND_NUMBER, KIND_CATEGORY };

uint64_t ctr_mix(uint64_t bits)
{
    bits += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* ---- Features ---- */

static uint64_t feature_id(unsigned field, enum kind kind, uint64_t content)
{
    const uint64_t hash = ctr_mix(ctr_mix(content + (uint64_t)kind) + field);

    return (uint64_t)field << FIELD_SHIFT | hash >> (64 - FIELD_SHIFT);
}

uint64_t ctr_number_id(unsigned field, int64_t number)
{
    const double log_of = number > 2 ? log((double)number) : 0;
    const int64_t bucket = number > 2 ? (int64_t)(log_of * log_of) + 3 : number;

    return feature_id(field, KIND_NUMBER, (uint64_t)bucket << 2);
}

uint64_t ctr_category_id(unsigned field, uint64_t category)
{
    return feature_id(field, KIND_CATEGORY, ctr_mix(category) << 2);
}

uint64_t ctr_empty_id(unsigned field)
{
    return feature_id(field, KIND_EMPTY, 0);
}

/* ---- One line ---- */

/* A column of a line. */
struct column {
    const char *text;
    size_t length;
};

static bool parse_number(struct column column, int64_t *ret_number)
{
    const bool negative = column.text[0] == '-';
    int64_t number = 0;

    if (column.length > CTR_DIGITS_MAX || column.length == (size_t)negative)
        return false;
    for (size_t i = negative; i < column.length; i++) {
        if (column.text[i] < '0' || column.text[i] > '9')
            return false;
        number = number * 10 + (column.text[i] - '0');
    }
    *ret_number = negative ? -number : number;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool parse_category(struct column column, uint64_t *ret_category)
{
    uint64_t category = 0;

    if (column.length > CTR_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < column.length; i++) {
        const int digit = hex_digit(column.text[i]);

        if (digit < 0)
            return false;
        category = category << 4 | (uint64_t)digit;
    }
    *ret_category = category;
    return true;
}

static bool parse_field(unsigned field, struct column column, uint64_t *ret_id)
{
    uint64_t category;
    int64_t number;

    if (column.length == 0) {
        *ret_id = ctr_empty_id(field);
        return true;
    }
    if (field < CTR_NUMBERS) {
        if (!parse_number(column, &number))
            return false;
        *ret_id = ctr_number_id(field, number);
        return true;
    }
    if (!parse_category(column, &category))
        return false;
    *ret_id = ctr_category_id(field, category);
    return true;
}

/* Cut off the next column. */
static struct column next_column(const char **at, const char *end)
{
    struct column column = {.text = *at};
    const char *tab = memchr(*at, '\t', (size_t)(end - *at));

    column.length = (size_t)((tab == NULL ? end : tab) - *at);
    *at = tab == NULL ? NULL : tab + 1;
    return column;
}

/* What is in a column that is not as it should be; columns are numbered from 1. */
static const char *bad_column(unsigned number, struct column column, const char *expected,
                              char ret_text[128])
{
    char shown[24];
    size_t i;

    for (i = 0; i < column.length && i + 1 < sizeof shown; i++)
        shown[i] = column.text[i] >= ' ' && column.text[i] <= '~' ? column.text[i] : '?';
    shown[i] = '\0';
    (void)snprintf(ret_text, 128, "column %u is \"%s\", expected %s", number, shown,
                   expected);
    return ret_text;
}

static const char *bad_count(const char *what, char ret_text[128])
{
    (void)snprintf(ret_text, 128, "%s columns, expected %d", what, CTR_FIELDS + 1);
    return ret_text;
}

const char *ctr_line_parse(const char *line, size_t bytes, uint8_t *ret_label,
                           uint64_t ret_ids[CTR_FIELDS], char ret_text[128])
{
    const char *end = line + bytes;
    const char *at = line;
    struct column column = next_column(&at, end);

    if (column.length != 1 || (column.text[0] != '0' && column.text[0] != '1'))
        return bad_column(1, column, "0 or 1", ret_text);
    *ret_label = column.text[0] == '1';
    for (unsigned field = 0; field < CTR_FIELDS; field++) {
        if (at == NULL)
            return bad_count("too few", ret_text);
        column = next_column(&at, end);
        if (!parse_field(field, column, &ret_ids[field]))
            return bad_column(field + 2, column,
                              field < CTR_NUMBERS ? "a whole number or nothing"
                                                  : "hexadecimal digits or nothing",
                              ret_text);
    }
    return at == NULL ? NULL : bad_count("too many", ret_text);
}

/* ---- All lines ---- */

static size_t count_ends(const char *text, size_t bytes)
{
    const char *end = text + bytes;
    size_t count = 0;

    for (const char *at = text; at < end; at++) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at == NULL)
            break;
        count++;
    }
    return count;
}

static int make_room(size_t most, struct ctr_lines *lines)
{
    *lines = (struct ctr_lines){
        .labels = malloc(most),
        .ids = malloc(most * CTR_FIELDS * sizeof *lines->ids),
    };
    if (lines->labels != NULL && lines->ids != NULL)
        return 0;
    ctr_lines_done(lines);
    return -ENOMEM;
}

static void take_line(struct ctr_lines *lines, const char *line, size_t bytes,
                      uint64_t number)
{
    uint64_t *ids = lines->ids + lines->count * CTR_FIELDS;
    char text[128];
    const char *wrong;

    if (bytes > 0 && line[bytes - 1] == '\r')
        bytes--;
    wrong = ctr_line_parse(line, bytes, &lines->labels[lines->count], ids, text);
    if (wrong == NULL)
        lines->count++;
    else if (lines->damaged++ == 0)
        (void)snprintf(lines->first_bad, sizeof lines->first_bad, "line %llu: %s",
                       (unsigned long long)number, wrong);
}

int ctr_lines_read(const char *text, size_t bytes, uint64_t first_line,
                   struct ctr_lines *ret_lines)
{
    const char *end = text + bytes;
    struct ctr_lines lines;

    if (make_room(count_ends(text, bytes) + 1, &lines) != 0)
        return -ENOMEM;
    for (const char *at = text; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        if (stop == NULL)
            stop = end;
        take_line(&lines, at, (size_t)(stop - at), first_line++);
        at = stop + 1;
    }
    *ret_lines = lines;
    return 0;
}

void ctr_lines_done(struct ctr_lines *lines)
{
    free(lines->labels);
    free(lines->ids);
    *lines = (struct ctr_lines){0};
}
