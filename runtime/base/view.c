#include "runtime/base/view.h"

#include <stdlib.h>
#include <string.h>

struct mu__view mu__view_str(const char *text)
{
    if (text == NULL)
        return (struct mu__view){NULL, 0};
    return (struct mu__view){text, (uint32_t)strlen(text)};
}

/* The length of `view` cut to `limit` bytes, not in the middle of a UTF-8 character. */
static size_t cut_view(struct mu__view view, size_t limit)
{
    const unsigned char *bytes = view.data;
    size_t end = limit;

    if (view.size <= limit)
        return view.size;
    while (end > 0 && limit - end < 4 && (bytes[end] & 0xC0) == 0x80)
        end--;
    return (bytes[end] & 0xC0) == 0x80 ? limit : end;
}

void mu__view_copy(struct mu__view view, char *out, size_t size)
{
    size_t length;

    if (size == 0)
        return;
    length = cut_view(view, size - 1);
    if (length > 0)
        memcpy(out, view.data, length);
    out[length] = '\0';
}

char *mu__view_dup(struct mu__view view)
{
    char *copy = malloc((size_t)view.size + 1);

    if (copy != NULL)
        mu__view_copy(view, copy, (size_t)view.size + 1);
    return copy;
}

bool mu__view_is(struct mu__view view, const char *text)
{
    size_t length = strlen(text);

    return view.size == length && (length == 0 || memcmp(view.data, text, length) == 0);
}

uint32_t mu__view_hash(struct mu__view view)
{
    const unsigned char *at = view.data;
    uint32_t hash = UINT32_C(2166136261);

    for (uint32_t i = 0; i < view.size; i++)
        hash = (hash ^ at[i]) * UINT32_C(16777619);
    return hash;
}

uint64_t mu__task_key(struct mu__view type, uint32_t index)
{
    return (uint64_t)((mu__view_hash(type) & 0x3fffffff) | 0x40000000) << 32 | index;
}
