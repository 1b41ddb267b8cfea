/* Lists and maps. */
#include "runtime/message/value_layout.h"

#include "muster/error.h"
#include "runtime/base/text.h"

#include <stdlib.h>
#include <string.h>

enum { CONTAINER_ITEMS_FIRST = 4 };

static const struct mu__container *as_container(const mu_value *value)
{
    if (value == NULL || !mu__value_is_container(value))
        return NULL;
    return (const struct mu__container *)value;
}

/* A list or map to be changed; NULL: `value` is not of this type. */
static struct mu__container *as_own(mu_value *value, enum mu_value_type type)
{
    if (value == NULL || value->type != type)
        return NULL;
    return (struct mu__container *)value;
}

/* Make room for `capacity` items. After a failure the capacity is as before. */
static int grow_container(struct mu__container *container, uint32_t capacity)
{
    mu_value **items = realloc(container->items, capacity * sizeof *items);
    char **keys;

    if (items == NULL)
        return -MU_ENOMEM;
    container->items = items;
    if (container->head.type == MU_VALUE_MAP) {
        keys = realloc(container->keys, capacity * sizeof *keys);
        if (keys == NULL)
            return -MU_ENOMEM;
        container->keys = keys;
    }
    container->capacity = capacity;
    return 0;
}

/* Make room for one more item. */
static int reserve_item(struct mu__container *container)
{
    if (container->count < container->capacity)
        return 0;
    if (container->count >= MU_VALUE_ITEMS_MAX)
        return -MU_ERANGE;
    if (container->capacity == 0)
        return grow_container(container, CONTAINER_ITEMS_FIRST);
    return grow_container(container, 2 * container->capacity);
}

struct mu__container *mu__value_container(enum mu_value_type type, uint32_t capacity)
{
    struct mu__container *container = malloc(sizeof *container);

    if (container == NULL)
        return NULL;
    *container = (struct mu__container){.count = 0};
    atomic_init(&container->head.refs, 1);
    container->head.type = (uint8_t)type;
    if (capacity > 0 && grow_container(container, capacity) != 0) {
        mu_value_free(&container->head);
        return NULL;
    }
    return container;
}

mu_value *mu_value_list(void)
{
    return (mu_value *)mu__value_container(MU_VALUE_LIST, 0);
}

mu_value *mu_value_map(void)
{
    return (mu_value *)mu__value_container(MU_VALUE_MAP, 0);
}

/* Whether `value` is a part of `whole`. */
static bool is_part_of_value(const mu_value *value, const mu_value *whole)
{
    for (size_t i = 0; i < mu_value_count(whole); i++)
        if (mu_value_at(whole, i) == value ||
            is_part_of_value(value, mu_value_at(whole, i)))
            return true;
    return false;
}

/* Whether `item` may go into `value`, which must not become a part of itself. It can only
 * be a part of something when there is another reference to it. */
static int check_item(const mu_value *value, const mu_value *item)
{
    if (item == NULL)
        return -MU_ENOMEM;
    if (item == value)
        return -MU_EINVALID;
    return value != NULL && atomic_load(&value->refs) > 1 && is_part_of_value(value, item)
               ? -MU_EINVALID
               : 0;
}

int mu_value_append(mu_value *list, mu_value *item)
{
    struct mu__container *container = as_own(list, MU_VALUE_LIST);
    int rv = check_item(list, item);

    if (rv == 0)
        rv = container == NULL ? -MU_EINVALID : reserve_item(container);
    if (rv != 0) {
        mu_value_free(item);
        return rv;
    }
    container->items[container->count++] = item;
    return 0;
}

/* Copy the key to keys[count] and reserve room in all arrays, so that add_item cannot run
 * out of memory. */
static int add_map_key(struct mu__container *map, const void *key, size_t size)
{
    char *copy;
    int rv;

    if (size >= UINT32_MAX)
        return -MU_ERANGE;
    rv = reserve_item(map);
    if (rv == 0)
        rv = mu__key_index_reserve(&map->index, map->count);
    if (rv != 0)
        return rv;
    copy = malloc(size + 1);
    if (copy == NULL)
        return -MU_ENOMEM;

    if (size > 0)
        memcpy(copy, key, size);
    copy[size] = '\0';
    map->keys[map->count] = copy;
    return 0;
}

/* Add an item under keys[count]. -MU_EEXISTS: the map has that key. */
static int add_container_item(struct mu__container *map, mu_value *item)
{
    uint32_t position;

    if (mu__key_index_find(&map->index, map->keys, map->count, map->keys[map->count],
                           &position)) {
        free(map->keys[map->count]);
        return -MU_EEXISTS;
    }
    mu__key_index_add(&map->index, map->keys, map->count);
    map->items[map->count++] = item;
    return 0;
}

int mu__value_put(struct mu__container *map, const void *key, size_t size, mu_value *item)
{
    int rv = item == NULL ? -MU_ENOMEM : add_map_key(map, key, size);

    if (rv == 0)
        rv = add_container_item(map, item);
    if (rv != 0)
        mu_value_free(item);
    return rv;
}

static bool is_map_key(const char *key)
{
    return key != NULL && mu__utf8_valid(key, strlen(key));
}

int mu_value_set(mu_value *map, const char *key, mu_value *item)
{
    struct mu__container *container = as_own(map, MU_VALUE_MAP);
    int rv = check_item(map, item);
    uint32_t position;

    if (rv == 0 && (container == NULL || !is_map_key(key)))
        rv = -MU_EINVALID;
    if (rv != 0) {
        mu_value_free(item);
        return rv;
    }
    if (!mu__key_index_find(&container->index, container->keys, container->count, key,
                            &position))
        return mu__value_put(container, key, strlen(key), item);
    mu_value_free(container->items[position]);
    container->items[position] = item;
    return 0;
}

size_t mu_value_count(const mu_value *value)
{
    const struct mu__container *container = as_container(value);

    return container == NULL ? 0 : container->count;
}

const mu_value *mu_value_at(const mu_value *value, size_t i)
{
    const struct mu__container *container = as_container(value);

    if (container == NULL || i >= container->count)
        return NULL;
    return container->items[i];
}

const char *mu_value_key(const mu_value *map, size_t i)
{
    const struct mu__container *container = as_container(map);

    if (container == NULL || map->type != MU_VALUE_MAP || i >= container->count)
        return NULL;
    return container->keys[i];
}

const mu_value *mu_value_find(const mu_value *map, const char *key)
{
    const struct mu__container *container = as_container(map);
    uint32_t position;

    if (container == NULL || map->type != MU_VALUE_MAP || key == NULL)
        return NULL;
    if (!mu__key_index_find(&container->index, container->keys, container->count, key,
                            &position))
        return NULL;
    return container->items[position];
}
