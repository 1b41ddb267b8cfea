#include "resolver/spec/host_list.h"

#include "runtime/base/array.h"
#include "runtime/base/text.h"

#include <muster/cluster.h>

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The digits of a number: as many as the longest name could hold, and far from the
 * bounds of 64 bits. */
enum { DIGITS_MAX = 18 };

struct number_range {
    uint64_t low;
    uint64_t high;
    int width;
};

/* A bracket, and its current number while the names are expanded. */
struct bracket {
    size_t prefix_at;   /* of the text before it, */
    size_t prefix_size; /* and its size */
    struct number_range *ranges;
    size_t count;
    size_t capacity;
    size_t hosts;   /* numbers in all ranges */
    size_t row;     /* the range of the current number, */
    uint64_t value; /* and the number */
};

struct item {
    struct bracket brackets[MU__HOST_BRACKETS_MAX];
    size_t count;
    size_t tail_at; /* the text behind the last bracket */
    size_t tail_size;
};

struct list_reader {
    const char *text;
    size_t size;
    size_t at;
    size_t item_at; /* where the item begins, for messages */
    const char *source;
    mu_error *error;
    struct mu__host_list list;
};

/* ---- The list ---- */

void mu__host_list_done(struct mu__host_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    *list = (struct mu__host_list){0};
}

static int grow_host_list(struct mu__host_list *list)
{
    if (list->count == list->capacity && list->count >= MU_CLUSTER_TASKS_MAX)
        return -MU_EEXHAUSTED;
    return MU__ARRAY_RESERVE(&list->names, &list->capacity, list->count, 16) ? 0
                                                                             : -MU_ENOMEM;
}

int mu__host_list_add(struct mu__host_list *list, const char *name)
{
    int rv = grow_host_list(list);
    char *copy;

    if (rv != 0)
        return rv;
    copy = strdup(name);
    if (copy == NULL)
        return -MU_ENOMEM;
    list->names[list->count++] = copy;
    return 0;
}

bool mu__host_same(const char *a, const char *b)
{
    size_t size = strcspn(a, ".:");

    if (strcmp(a, b) == 0)
        return true;
    return size == strcspn(b, ".:") && memcmp(a, b, size) == 0 &&
           strspn(a, "0123456789abcdefABCDEF") < size;
}

bool mu__host_list_has(const struct mu__host_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (mu__host_same(name, list->names[i]))
            return true;
    return false;
}

size_t mu__host_list_find(const struct mu__host_list *list, const char *name,
                          size_t length)
{
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->names[i], name, length) == 0 && list->names[i][length] == '\0')
            return i;
    return list->count;
}

/* ---- Messages ---- */

/* Shows the item up to and with the byte where it went wrong. */
static int refuse_host_list(const struct list_reader *reader, const char *what)
{
    size_t end = reader->at < reader->size ? reader->at + 1 : reader->size;
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, reader->text + reader->item_at, end - reader->item_at);
    return mu_error_set(reader->error, -MU_EINVALID, "%s: at %zu (%s): expected %s",
                        reader->source, reader->at + 1, shown, what);
}

static int fail_host_list(const struct list_reader *reader, int code)
{
    if (code == -MU_EEXHAUSTED)
        return mu_error_set(reader->error, code, "%s: expected at most %d hosts",
                            reader->source, (int)MU_CLUSTER_TASKS_MAX);
    return mu_error_set(reader->error, code, "%s: out of memory", reader->source);
}

/* ---- Reading ---- */

static char peek_host_list(const struct list_reader *reader)
{
    return reader->at < reader->size ? reader->text[reader->at] : '\0';
}

static bool is_host_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_host_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_host_letter(char c)
{
    return is_host_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '.' || c == '_' || c == '-' || c == ':';
}

static void skip_host_blanks(struct list_reader *reader)
{
    while (is_host_blank(peek_host_list(reader)))
        reader->at++;
}

static int read_host_number(struct list_reader *reader, uint64_t *ret_number,
                            int *ret_width)
{
    size_t start = reader->at;
    uint64_t number = 0;

    while (is_host_digit(peek_host_list(reader)) && reader->at - start < DIGITS_MAX)
        number = number * 10 + (uint64_t)(reader->text[reader->at++] - '0');
    if (reader->at == start)
        return refuse_host_list(reader, "a number");
    if (is_host_digit(peek_host_list(reader)))
        return refuse_host_list(reader, "a number of at most 18 digits");
    *ret_number = number;
    *ret_width = (int)(reader->at - start);
    return 0;
}

static int keep_range(struct list_reader *reader, struct bracket *bracket,
                      const struct number_range *range)
{
    if (range->high - range->low >= MU_CLUSTER_TASKS_MAX - bracket->hosts)
        return fail_host_list(reader, -MU_EEXHAUSTED);
    if (!MU__ARRAY_RESERVE(&bracket->ranges, &bracket->capacity, bracket->count, 8))
        return fail_host_list(reader, -MU_ENOMEM);
    bracket->ranges[bracket->count++] = *range;
    bracket->hosts += (size_t)(range->high - range->low) + 1;
    return 0;
}

static int read_range(struct list_reader *reader, struct bracket *bracket)
{
    struct number_range range;
    size_t start;
    int width;
    int rv = read_host_number(reader, &range.low, &range.width);

    if (rv != 0)
        return rv;
    range.high = range.low;
    skip_host_blanks(reader);
    if (peek_host_list(reader) == '-') {
        reader->at++;
        skip_host_blanks(reader);
        start = reader->at;
        rv = read_host_number(reader, &range.high, &width);
        if (rv != 0)
            return rv;
        if (range.high < range.low) {
            reader->at = start;
            return refuse_host_list(reader, "a number that is not below the first one");
        }
    }
    return keep_range(reader, bracket, &range);
}

/* Behind its opening bracket. Nesting is a count: what is nested is as if it stood
 * outside. */
static int read_bracket(struct list_reader *reader, struct bracket *bracket)
{
    unsigned depth = 1;
    int rv;

    for (;;) {
        skip_host_blanks(reader);
        if (peek_host_list(reader) == '[') {
            if (depth == MU__HOST_NESTING_MAX)
                return refuse_host_list(reader, "brackets of at most 8 levels");
            depth++;
            reader->at++;
            continue;
        }
        rv = read_range(reader, bracket);
        if (rv != 0)
            return rv;
        skip_host_blanks(reader);
        while (depth > 0 && peek_host_list(reader) == ']') {
            reader->at++;
            if (--depth == 0)
                return 0;
            skip_host_blanks(reader);
        }
        if (peek_host_list(reader) != ',')
            return refuse_host_list(reader, "\"]\"");
        reader->at++;
    }
}

static size_t read_host_text(struct list_reader *reader)
{
    size_t start = reader->at;

    while (is_host_letter(peek_host_list(reader)))
        reader->at++;
    return reader->at - start;
}

static int read_host_item(struct list_reader *reader, struct item *item)
{
    int rv = 0;

    reader->item_at = reader->at;
    while (rv == 0) {
        size_t start = reader->at;
        size_t size = read_host_text(reader);

        if (peek_host_list(reader) != '[') {
            item->tail_at = start;
            item->tail_size = size;
            break;
        }
        if (item->count == MU__HOST_BRACKETS_MAX)
            return refuse_host_list(reader, "at most 8 brackets in a name");
        reader->at++;
        item->brackets[item->count] =
            (struct bracket){.prefix_at = start, .prefix_size = size};
        rv = read_bracket(reader, &item->brackets[item->count++]);
    }
    if (rv == 0 && reader->at == reader->item_at)
        rv = refuse_host_list(reader, "a host's name");
    if (rv == 0 && reader->at < reader->size && peek_host_list(reader) != ',' &&
        !is_host_blank(peek_host_list(reader)))
        rv = refuse_host_list(reader,
                              "letters, digits, \".\", \"_\", \"-\", \":\" or a bracket");
    return rv;
}

/* ---- Expanding ---- */

static int put_host_text(struct list_reader *reader, size_t at, size_t size, char *name,
                         size_t *length)
{
    if (size > MU__HOST_BYTES_MAX - *length)
        return mu_error_set(reader->error, -MU_EINVALID,
                            "%s: at %zu: expected names of at most %d bytes",
                            reader->source, reader->item_at + 1, (int)MU__HOST_BYTES_MAX);
    memcpy(name + *length, reader->text + at, size);
    *length += size;
    name[*length] = '\0';
    return 0;
}

static int put_host_number(struct list_reader *reader, const struct bracket *bracket,
                           char *name, size_t *length)
{
    char digits[32];
    int size =
        snprintf(digits, sizeof digits, "%0*llu", bracket->ranges[bracket->row].width,
                 (unsigned long long)bracket->value);

    assert(size > 0 && size <= DIGITS_MAX + 1);
    if ((size_t)size > MU__HOST_BYTES_MAX - *length)
        return put_host_text(reader, 0, MU__HOST_BYTES_MAX + 1, name, length);
    memcpy(name + *length, digits, (size_t)size + 1);
    *length += (size_t)size;
    return 0;
}

static int add_expanded_host(struct list_reader *reader, const struct item *item)
{
    char name[MU__HOST_BYTES_MAX + 1] = "";
    size_t length = 0;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < item->count; i++) {
        const struct bracket *bracket = &item->brackets[i];

        rv = put_host_text(reader, bracket->prefix_at, bracket->prefix_size, name,
                           &length);
        if (rv == 0)
            rv = put_host_number(reader, bracket, name, &length);
    }
    if (rv == 0)
        rv = put_host_text(reader, item->tail_at, item->tail_size, name, &length);
    if (rv != 0)
        return rv;
    rv = mu__host_list_add(&reader->list, name);
    return rv == 0 ? 0 : fail_host_list(reader, rv);
}

/* Advance to the next number; false after the last one, when it is at the first again. */
static bool count_up_bracket(struct bracket *bracket)
{
    bool more = true;

    if (bracket->value < bracket->ranges[bracket->row].high) {
        bracket->value++;
        return true;
    }
    bracket->row++;
    if (bracket->row == bracket->count) {
        bracket->row = 0;
        more = false;
    }
    bracket->value = bracket->ranges[bracket->row].low;
    return more;
}

/* The last bracket first, then those before it from the left. */
static bool next_expanded_host(struct item *item)
{
    if (item->count == 0)
        return false;
    if (count_up_bracket(&item->brackets[item->count - 1]))
        return true;
    for (size_t i = 0; i + 1 < item->count; i++)
        if (count_up_bracket(&item->brackets[i]))
            return true;
    return false;
}

static int expand_host_item(struct list_reader *reader, struct item *item)
{
    size_t hosts = 1;
    int rv;

    for (size_t i = 0; i < item->count; i++) {
        struct bracket *bracket = &item->brackets[i];

        bracket->value = bracket->ranges[0].low;
        hosts *= bracket->hosts;
        if (hosts > MU_CLUSTER_TASKS_MAX)
            return fail_host_list(reader, -MU_EEXHAUSTED);
    }
    do
        rv = add_expanded_host(reader, item);
    while (rv == 0 && next_expanded_host(item));
    return rv;
}

/* ---- The whole ---- */

static int add_host_item(struct list_reader *reader)
{
    struct item item = {.count = 0};
    int rv = read_host_item(reader, &item);

    if (rv == 0)
        rv = expand_host_item(reader, &item);
    for (size_t i = 0; i < item.count; i++)
        free(item.brackets[i].ranges);
    return rv;
}

static int read_host_items(struct list_reader *reader)
{
    int rv;

    skip_host_blanks(reader);
    while (reader->at < reader->size) {
        rv = add_host_item(reader);
        if (rv != 0)
            return rv;
        skip_host_blanks(reader);
        if (peek_host_list(reader) != ',')
            continue;
        reader->at++;
        skip_host_blanks(reader);
        if (reader->at < reader->size)
            continue;
        reader->item_at = reader->at;
        return refuse_host_list(reader, "a host's name");
    }
    return 0;
}

int mu__host_list_parse(const char *text, size_t size, const char *source,
                        mu_error *ret_error, struct mu__host_list *ret_list)
{
    struct list_reader reader = {
        .text = text, .size = size, .source = source, .error = ret_error};
    int rv = read_host_items(&reader);

    if (rv != 0) {
        mu__host_list_done(&reader.list);
        return rv;
    }
    *ret_list = reader.list;
    return 0;
}
