#include "actors/worker/pinned.h"

#include <assert.h>
#include <stdlib.h>

/* Of one item, with its place in the map. */
enum { ITEM_BYTES = sizeof(struct mu__pinned_item) + 64 };

struct mu__pinned_owner {
    struct mu__pinned_owner *next;
    uint32_t node;
    struct mu__map items;
    uint64_t notes[MU__PINNED_NOTES_MAX]; /* 0: none */
    uint32_t notes_next;                  /* where the next one goes */
    uint64_t bytes;
};

static struct mu__pinned_owner *find_owner(const struct mu__pinned *pinned, uint32_t node)
{
    struct mu__pinned_owner *owner = pinned->owners;

    while (owner != NULL && owner->node != node)
        owner = owner->next;
    return owner;
}

static struct mu__pinned_owner *make_owner(struct mu__pinned *pinned, uint32_t node)
{
    struct mu__pinned_owner *owner = find_owner(pinned, node);

    if (owner != NULL)
        return owner;
    owner = calloc(1, sizeof *owner);
    if (owner == NULL)
        return NULL;
    owner->node = node;
    mu__map_seed(&owner->items, pinned->seed);
    owner->next = pinned->owners;
    pinned->owners = owner;
    return owner;
}

/* ---- notes ---- */

static void add_owner_note(struct mu__pinned *pinned, uint32_t node, uint64_t number)
{
    struct mu__pinned_owner *owner = make_owner(pinned, node);

    if (owner == NULL)
        return;
    owner->notes[owner->notes_next] = number;
    owner->notes_next = (owner->notes_next + 1) % MU__PINNED_NOTES_MAX;
}

static bool remove_owner_note(struct mu__pinned_owner *owner, uint64_t number)
{
    bool noted = false;

    for (size_t i = 0; i < MU__PINNED_NOTES_MAX; i++)
        if (owner->notes[i] == number) {
            owner->notes[i] = 0;
            noted = true;
        }
    return noted;
}

bool mu__pinned_take_note(struct mu__pinned *pinned, uint32_t owner, uint64_t number)
{
    struct mu__pinned_owner *found = find_owner(pinned, owner);

    assert(number != 0);
    return found != NULL && remove_owner_note(found, number);
}

/* ---- items ---- */

/* Drops an item's content. */
static void drop_item_content(struct mu__pinned *pinned, struct mu__pinned_item *item)
{
    mu_value *value = item->value;

    pinned->bytes -= item->bytes;
    item->owner->bytes -= item->bytes;
    if (item->error != NULL)
        item->owner->bytes -= sizeof *item->error;
    free(item->error);
    item->builder = NULL;
    item->value = NULL;
    item->error = NULL;
    item->bytes = 0;
    mu_value_free(value);
}

static void free_item(struct mu__pinned *pinned, struct mu__pinned_item *item)
{
    assert(mu__list_is_empty(&item->waits));
    drop_item_content(pinned, item);
    item->owner->bytes -= ITEM_BYTES;
    free(item);
}

static void remove_item(struct mu__pinned *pinned, struct mu__pinned_item *item)
{
    (void)mu__map_remove(&item->owner->items, item->number);
    free_item(pinned, item);
}

struct mu__pinned_item *mu__pinned_find(const struct mu__pinned *pinned, uint32_t owner,
                                        uint64_t number)
{
    const struct mu__pinned_owner *found = find_owner(pinned, owner);

    if (found == NULL || number == 0)
        return NULL;
    return mu__map_get(&found->items, number);
}

static struct mu__pinned_item *add_pinned_item(struct mu__pinned_owner *owner,
                                               uint64_t number)
{
    struct mu__pinned_item *item = calloc(1, sizeof *item);

    if (item == NULL)
        return NULL;
    item->owner = owner;
    item->number = number;
    if (mu__map_set(&owner->items, number, item) != 0) {
        free(item);
        return NULL;
    }
    owner->bytes += ITEM_BYTES;
    return item;
}

struct mu__pinned_item *mu__pinned_expect(struct mu__pinned *pinned, uint32_t owner,
                                          uint64_t number)
{
    struct mu__pinned_item *item = mu__pinned_find(pinned, owner, number);
    struct mu__pinned_owner *made;

    assert(number != 0);
    if (item != NULL)
        return item;
    made = make_owner(pinned, owner);
    if (made == NULL)
        return NULL;
    (void)remove_owner_note(made, number);
    return add_pinned_item(made, number);
}

void mu__pinned_build(struct mu__pinned *pinned, struct mu__pinned_item *item,
                      const void *builder)
{
    drop_item_content(pinned, item);
    item->state = MU__PINNED_BUILDING;
    item->builder = builder;
}

void mu__pinned_succeed(struct mu__pinned *pinned, struct mu__pinned_item *item,
                        mu_value *value, uint64_t bytes)
{
    assert(value != NULL);
    drop_item_content(pinned, item);
    item->state = MU__PINNED_READY;
    item->value = value;
    item->bytes = bytes;
    pinned->bytes += bytes;
    item->owner->bytes += bytes;
}

void mu__pinned_fail(struct mu__pinned *pinned, struct mu__pinned_item *item,
                     const mu_error *error)
{
    drop_item_content(pinned, item);
    item->state = MU__PINNED_FAILED;
    item->error = malloc(sizeof *item->error);
    if (item->error == NULL)
        return;
    *item->error = *error;
    item->owner->bytes += sizeof *item->error;
}

uint64_t mu__pinned_bytes_of(const struct mu__pinned *pinned, uint32_t owner)
{
    const struct mu__pinned_owner *found = find_owner(pinned, owner);

    return found == NULL ? 0 : found->bytes;
}

void mu__pinned_forget(struct mu__pinned *pinned, struct mu__pinned_item *item)
{
    if (mu__list_is_empty(&item->waits)) {
        remove_item(pinned, item);
        return;
    }
    drop_item_content(pinned, item);
    item->state = MU__PINNED_EXPECTED;
}

/* An item that is only expected may be on its way, as may an unknown one: so it is
 * noted. */
void mu__pinned_drop(struct mu__pinned *pinned, uint32_t owner, uint64_t number)
{
    struct mu__pinned_item *item = mu__pinned_find(pinned, owner, number);

    if (number == 0)
        return;
    if (item == NULL || item->state == MU__PINNED_EXPECTED)
        add_owner_note(pinned, owner, number);
    if (item != NULL)
        mu__pinned_forget(pinned, item);
}

static void free_owner(struct mu__pinned *pinned, struct mu__pinned_owner *owner)
{
    for (size_t i = 0; i < owner->items.capacity; i++)
        if (owner->items.entries[i].key != 0)
            free_item(pinned, owner->items.entries[i].value);
    mu__map_done(&owner->items);
    free(owner);
}

void mu__pinned_drop_owner(struct mu__pinned *pinned, uint32_t owner)
{
    struct mu__pinned_owner **link = &pinned->owners;
    struct mu__pinned_owner *found;

    while (*link != NULL && (*link)->node != owner)
        link = &(*link)->next;
    if (*link == NULL)
        return;
    found = *link;
    *link = found->next;
    free_owner(pinned, found);
}

void mu__pinned_done(struct mu__pinned *pinned)
{
    while (pinned->owners != NULL)
        mu__pinned_drop_owner(pinned, pinned->owners->node);
    assert(pinned->bytes == 0);
}

/* ---- waiting ---- */

void mu__pinned_wait(struct mu__pinned_item *item, struct mu__pinned_wait *wait)
{
    wait->item = item;
    mu__list_append(&item->waits, &wait->node);
}

void mu__pinned_unwait(struct mu__pinned *pinned, struct mu__pinned_wait *wait)
{
    struct mu__pinned_item *item = wait->item;

    if (item == NULL)
        return;
    mu__list_remove(&item->waits, &wait->node);
    wait->item = NULL;
    if (item->state == MU__PINNED_EXPECTED && mu__list_is_empty(&item->waits))
        remove_item(pinned, item);
}

struct mu__pinned_wait *mu__pinned_take_wait(struct mu__pinned_item *item)
{
    struct mu__pinned_wait *wait = (struct mu__pinned_wait *)mu__list_pop(&item->waits);

    if (wait != NULL)
        wait->item = NULL;
    return wait;
}
