#include "actors/supervisor/state/names.h"

#include "runtime/base/sip_hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 64 };

void mu__names_done(struct mu__names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    free(names->slots);
    free(names->free);
    *names = (struct mu__names){0};
}

/* ---- slots ---- */

static bool is(const struct mu__name *known, struct mu__view name)
{
    return known->size == name.size && memcmp(known->text, name.data, name.size) == 0;
}

/* The slot of a name, or the empty one where it would go. */
static uint32_t probe(const struct mu__names *names, struct mu__view name, uint32_t hash)
{
    uint32_t i = hash & (names->slots_size - 1);

    while (names->slots[i] != 0) {
        const struct mu__name *known = names->names[names->slots[i] - 1];

        if (known->hash == hash && is(known, name))
            break;
        i = (i + 1) & (names->slots_size - 1);
    }
    return i;
}

static bool grow(struct mu__names *names)
{
    uint32_t size = names->slots_size == 0 ? SLOTS_FIRST : names->slots_size * 2;
    uint32_t *slots = calloc(size, sizeof *slots);
    struct mu__name **table = realloc(names->names, size / 2 * sizeof(struct mu__name *));

    if (table != NULL)
        names->names = table;
    if (slots == NULL || table == NULL) {
        free(slots);
        return false;
    }
    free(names->slots);
    names->slots = slots;
    names->slots_size = size;
    for (uint32_t i = 0; i < names->count; i++)
        if (names->names[i] != NULL)
            names->slots[probe(names, mu__names_view(names, i), names->names[i]->hash)] =
                i + 1;
    return true;
}

/* Those behind it move up, unless that were before where they begin to be looked for. */
static void empty_slot(struct mu__names *names, uint32_t slot)
{
    uint32_t mask = names->slots_size - 1;
    uint32_t i = slot;

    for (;;) {
        uint32_t home;

        names->slots[slot] = 0;
        do {
            i = (i + 1) & mask;
            if (names->slots[i] == 0)
                return;
            home = names->names[names->slots[i] - 1]->hash & mask;
        } while (((i - home) & mask) < ((i - slot) & mask));
        names->slots[slot] = names->slots[i];
        slot = i;
    }
}

/* ---- those that nobody holds ---- */

static void leave_idle(struct mu__names *names, struct mu__name *name)
{
    if (name->idle_prev == 0)
        names->idle_first = name->idle_next;
    else
        names->names[name->idle_prev - 1]->idle_next = name->idle_next;
    if (name->idle_next == 0)
        names->idle_last = name->idle_prev;
    else
        names->names[name->idle_next - 1]->idle_prev = name->idle_prev;
    name->idle_next = name->idle_prev = 0;
    names->idle_count--;
}

static void join_idle(struct mu__names *names, uint32_t number)
{
    struct mu__name *name = names->names[number];

    name->idle_next = 0;
    name->idle_prev = names->idle_last;
    if (names->idle_last == 0)
        names->idle_first = number + 1;
    else
        names->names[names->idle_last - 1]->idle_next = number + 1;
    names->idle_last = number + 1;
    names->idle_count++;
}

/* Its number can be given to another one. False: no memory to note that; it stays. */
static bool forget(struct mu__names *names, uint32_t number)
{
    struct mu__name *name = names->names[number];

    if (names->free_count == names->free_size) {
        uint32_t size = names->free_size == 0 ? SLOTS_FIRST : names->free_size * 2;
        uint32_t *numbers = realloc(names->free, size * sizeof *numbers);

        if (numbers == NULL)
            return false;
        names->free = numbers;
        names->free_size = size;
    }
    names->free[names->free_count++] = number;
    leave_idle(names, name);
    empty_slot(names, probe(names, mu__names_view(names, number), name->hash));
    names->names[number] = NULL;
    names->used--;
    free(name);
    return true;
}

/* ---- taking ---- */

static uint32_t next_number(struct mu__names *names)
{
    return names->free_count > 0 ? names->free[--names->free_count] : names->count++;
}

static uint32_t add(struct mu__names *names, struct mu__view name, uint32_t hash)
{
    struct mu__name *added;
    uint32_t number;

    if (names->used >= MU__NAMES_MAX)
        return MU__NAME_NONE;
    if (names->count * 2 >= names->slots_size && names->free_count == 0 && !grow(names))
        return MU__NAME_NONE;
    added = malloc(sizeof *added + name.size);
    if (added == NULL)
        return MU__NAME_NONE;
    *added = (struct mu__name){.hash = hash, .size = name.size};
    memcpy(added->text, name.data, name.size);
    number = next_number(names);
    names->names[number] = added;
    names->slots[probe(names, name, hash)] = number + 1;
    names->used++;
    join_idle(names, number);
    return number;
}

/* Most closures are of the function that the one before was of. */
static bool is_last(const struct mu__names *names, struct mu__view name)
{
    return names->last < names->count && names->names[names->last] != NULL &&
           is(names->names[names->last], name);
}

static uint32_t find(struct mu__names *names, struct mu__view name)
{
    uint32_t hash = (uint32_t)mu__sip_hash(names->secret, name.data, name.size);
    uint32_t slot = names->slots_size == 0 ? 0 : probe(names, name, hash);

    if (names->slots_size > 0 && names->slots[slot] != 0)
        return names->slots[slot] - 1;
    names->added = true;
    return add(names, name, hash);
}

uint32_t mu__names_take(struct mu__names *names, struct mu__view name)
{
    names->added = false;
    if (!is_last(names, name))
        names->last = find(names, name);
    mu__names_hold(names, names->last);
    return names->last;
}

void mu__names_first_holder(struct mu__names *names, uint32_t number)
{
    leave_idle(names, names->names[number]);
}

void mu__names_last_holder(struct mu__names *names, uint32_t number)
{
    join_idle(names, number);
    if (names->idle_count > MU__NAMES_IDLE_MAX)
        (void)forget(names, names->idle_first - 1);
}
