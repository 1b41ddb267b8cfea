/* Borrowed bytes. */
#ifndef MU_RUNTIME_VIEW_H
#define MU_RUNTIME_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Their owner outlives the view: the buffer behind a message, mostly. */
struct mu__view {
    const void *data;
    uint32_t size;
};

/* A view of a string, without its zero; NULL gives an empty view. */
struct mu__view mu__view_str(const char *text);

/* Copy a view into a zero-terminated array, cut to fit. */
void mu__view_copy(struct mu__view view, char *out, size_t size);

/* A copy that ends with a zero, to be freed with free(). NULL: out of memory. */
char *mu__view_dup(struct mu__view view);

bool mu__view_is(struct mu__view view, const char *text);

/* FNV-1a, 32 bits: for tables of names. */
uint32_t mu__view_hash(struct mu__view view);

/* A hash of a task, for tables of tasks; never 0, and never with the top bit. */
uint64_t mu__task_key(struct mu__view type, uint32_t index);

#endif
