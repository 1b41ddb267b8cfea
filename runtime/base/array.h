/* Arrays that grow by doubling: room for one more item behind `count`.
 *
 *     if (!MU__ARRAY_RESERVE(&list->items, &list->room, list->count, 16))
 *         return -MU_ENOMEM; */
#ifndef MU_RUNTIME_BASE_ARRAY_H
#define MU_RUNTIME_BASE_ARRAY_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Make room for one more item. `items` is the address of the array's pointer, `first` the
 * capacity of its first allocation, in items. False: out of memory; nothing changed. */
#define MU__ARRAY_RESERVE(items, room, count, first) \
    mu__array_reserve((items), sizeof **(items), (room), (count), (first))

static inline bool mu__array_reserve(void *items, size_t item_size, size_t *room,
                                     size_t count, size_t first)
{
    size_t larger = *room == 0 ? first : 2 * *room;
    void *array;

    if (count < *room)
        return true;
    memcpy(&array, items, sizeof array);
    array = realloc(array, larger * item_size);
    if (array == NULL)
        return false;
    memcpy(items, &array, sizeof array);
    *room = larger;
    return true;
}

#endif
