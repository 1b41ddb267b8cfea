#include "actors/task_set.h"

#include "actors/messages.h"
#include "actors/packing.h"

#include "muster/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE_TEXT_MAX = 48, TYPE_BYTES = sizeof((struct mu__task_range *)0)->type };

void mu__task_set_done(struct mu__task_set *set)
{
    mu__free_array(set->ranges);
    *set = (struct mu__task_set){0};
}

/* ---- adding ---- */

/* Whether a cluster spec may have a task type of that name. */
static bool is_task_type(const char *type)
{
    size_t length = strspn(type, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return type[length] == '\0' && type[0] >= 'a' && type[0] <= 'z' &&
           length < TYPE_BYTES;
}

/* Below 0: the whole range is before the task; above 0: behind it; 0: it has the task. */
static int compare_range(const struct mu__task_range *range, const char *type,
                         uint32_t index)
{
    int order = strcmp(range->type, type);

    if (order != 0)
        return order;
    return range->last < index ? -1 : range->first > index;
}

/* The first range that is not before the task. */
static uint32_t position_of(const struct mu__task_set *set, const char *type,
                            uint32_t index)
{
    uint32_t low = 0;
    uint32_t high = set->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (compare_range(&set->ranges[middle], type, index) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool reserve_range(struct mu__task_set *set)
{
    return mu__grow_for_one((void **)&set->ranges, &set->size, set->count,
                            sizeof *set->ranges);
}

/* Add a range, and merge it with those it overlaps or touches. */
static int add_task_range(struct mu__task_set *set, const char *type, uint32_t first,
                          uint32_t last)
{
    struct mu__task_range range = {.first = first, .last = last};
    uint32_t begin = position_of(set, type, first == 0 ? 0 : first - 1);
    uint32_t end = begin;

    (void)snprintf(range.type, sizeof range.type, "%s", type);
    while (end < set->count && strcmp(set->ranges[end].type, type) == 0 &&
           set->ranges[end].first <= last + 1) {
        if (set->ranges[end].first < range.first)
            range.first = set->ranges[end].first;
        if (set->ranges[end].last > range.last)
            range.last = set->ranges[end].last;
        end++;
    }
    if (begin == end && !reserve_range(set))
        return -MU_ENOMEM;
    if (end != begin + 1)
        memmove(&set->ranges[begin + 1], &set->ranges[end],
                (set->count - end) * sizeof *set->ranges);
    set->ranges[begin] = range;
    set->count = set->count - (end - begin) + 1;
    return 0;
}

int mu__task_set_add(struct mu__task_set *set, const char *type, uint32_t index)
{
    if (!is_task_type(type))
        return -MU_EINVALID;
    if (index > MU_CLUSTER_INDEX_MAX)
        return -MU_ERANGE;
    return add_task_range(set, type, index, index);
}

/* ---- taking out ---- */

int mu__task_set_remove(struct mu__task_set *set, const char *type, uint32_t index)
{
    uint32_t position = position_of(set, type, index);
    struct mu__task_range *range;

    if (!mu__task_set_has(set, type, index))
        return 0;
    range = &set->ranges[position];
    if (range->first == index && range->last == index) {
        set->count--;
        memmove(range, range + 1, (set->count - position) * sizeof *range);
    } else if (range->first == index) {
        range->first++;
    } else if (range->last == index) {
        range->last--;
    } else {
        if (!reserve_range(set))
            return -MU_ENOMEM;
        range = &set->ranges[position];
        memmove(range + 1, range, (set->count - position) * sizeof *range);
        set->count++;
        range[0].last = index - 1;
        range[1].first = index + 1;
    }
    return 0;
}

/* ---- reading ---- */

struct reader {
    const char *at; /* the rest of the text is from here to `end` */
    const char *end;
    const char *item; /* begin of the present item, for messages */
    mu_error *error;
};

static int refuse_task_set_item(const struct reader *reader, int code,
                                const char *expected)
{
    const char *end = reader->item;

    while (end < reader->end && *end != ',' && end - reader->item < RANGE_TEXT_MAX)
        end++;
    return mu_error_set(reader->error, code, "task set: \"%.*s\" is %s",
                        (int)(end - reader->item), reader->item, expected);
}

static bool accept_prefix(struct reader *reader, const char *text)
{
    size_t size = strlen(text);

    if ((size_t)(reader->end - reader->at) < size || memcmp(reader->at, text, size) != 0)
        return false;
    reader->at += size;
    return true;
}

/* `ret_type`: an array of TYPE_BYTES. */
static bool parse_task_type(struct reader *reader, char *ret_type)
{
    size_t size = 0;

    while (reader->at + size < reader->end && size < TYPE_BYTES &&
           reader->at[size] != ':' && reader->at[size] != '/')
        size++;
    if (size == TYPE_BYTES)
        return false;
    memcpy(ret_type, reader->at, size);
    ret_type[size] = '\0';
    reader->at += size;
    return is_task_type(ret_type);
}

static int parse_task_index(struct reader *reader, uint32_t *ret_index)
{
    const char *begin = reader->at;
    uint32_t index = 0;

    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9') {
        index = index * 10 + (uint32_t)(*reader->at++ - '0');
        if (index > MU_CLUSTER_INDEX_MAX)
            return refuse_task_set_item(reader, -MU_ERANGE,
                                        "beyond the largest index, 999999");
    }
    if (reader->at == begin)
        return refuse_task_set_item(reader, -MU_EINVALID,
                                    "no task: expected TYPE:INDEX or TYPE:FIRST-LAST");
    *ret_index = index;
    return 0;
}

static int parse_task_range(struct reader *reader, struct mu__task_set *set)
{
    bool is_long = accept_prefix(reader, "/job:");
    char type[TYPE_BYTES];
    uint32_t first;
    uint32_t last;
    int rv;

    if (!parse_task_type(reader, type) ||
        !accept_prefix(reader, is_long ? "/task:" : ":"))
        return refuse_task_set_item(
            reader, -MU_EINVALID,
            "no task: expected a task type, as worker, a colon, and an index or "
            "FIRST-LAST");
    rv = parse_task_index(reader, &first);
    last = first;
    if (rv == 0 && accept_prefix(reader, "-"))
        rv = parse_task_index(reader, &last);
    if (rv != 0)
        return rv;
    if (last < first)
        return refuse_task_set_item(reader, -MU_ERANGE,
                                    "a range whose end is before its begin");
    rv = add_task_range(set, type, first, last);
    return rv == 0 ? 0 : mu_error_set(reader->error, rv, "no memory for a task set");
}

static int parse_task_ranges(struct reader *reader, struct mu__task_set *set)
{
    while (reader->at < reader->end) {
        int rv;

        if (accept_prefix(reader, " ") || accept_prefix(reader, ","))
            continue;
        reader->item = reader->at;
        rv = parse_task_range(reader, set);
        if (rv != 0)
            return rv;
        if (reader->at < reader->end && *reader->at != ',' && *reader->at != ' ')
            return refuse_task_set_item(reader, -MU_EINVALID,
                                        "followed by something that is no comma");
    }
    return 0;
}

int mu__task_set_parse(struct mu__view text, mu_error *ret_error,
                       struct mu__task_set *ret_set)
{
    struct reader reader = {.at = text.data, .error = ret_error};
    struct mu__task_set set = {0};
    int rv;

    if (text.size > MU__TASKS_TEXT_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "task set: %" PRIu32 " bytes, expected at most %d", text.size,
                            MU__TASKS_TEXT_MAX);
    if (text.size > 0) {
        reader.end = reader.at + text.size;
        rv = parse_task_ranges(&reader, &set);
        if (rv != 0) {
            mu__task_set_done(&set);
            return rv;
        }
    }
    *ret_set = set;
    return 0;
}

/* ---- writing and queries ---- */

char *mu__task_set_text(const struct mu__task_set *set)
{
    size_t size = (size_t)set->count * RANGE_TEXT_MAX + 1;
    char *text = malloc(size);
    size_t used = 0;

    if (text == NULL)
        return NULL;
    text[0] = '\0';
    for (uint32_t i = 0; i < set->count; i++) {
        const struct mu__task_range *range = &set->ranges[i];

        used += (size_t)snprintf(text + used, size - used, "%s%s:%" PRIu32,
                                 i == 0 ? "" : ",", range->type, range->first);
        if (range->last > range->first)
            used += (size_t)snprintf(text + used, size - used, "-%" PRIu32, range->last);
    }
    return text;
}

bool mu__task_set_has(const struct mu__task_set *set, const char *type, uint32_t index)
{
    uint32_t position = position_of(set, type, index);

    return position < set->count &&
           compare_range(&set->ranges[position], type, index) == 0;
}

uint64_t mu__task_set_count(const struct mu__task_set *set)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < set->count; i++)
        count += set->ranges[i].last - set->ranges[i].first + 1;
    return count;
}
