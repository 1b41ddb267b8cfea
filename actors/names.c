#include "actors/names.h"

#include "runtime/base/sip_hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 64 };

struct mu__name {
    uint32_t hash;
    uint32_t size;
    char text[];
};

void mu__names_done(struct mu__names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    free(names->slots);
    *names = (struct mu__names){0};
}

/* The slot of a name, or the empty one where it would go. */
static uint32_t *probe(const struct mu__names *names, struct mu__view name, uint32_t hash)
{
    uint32_t i = hash & (names->slots_size - 1);

    while (names->slots[i] != 0) {
        const struct mu__name *known = names->names[names->slots[i] - 1];

        if (known->hash == hash && known->size == name.size &&
            memcmp(known->text, name.data, name.size) == 0)
            break;
        i = (i + 1) & (names->slots_size - 1);
    }
    return &names->slots[i];
}

static bool grow(struct mu__names *names)
{
    uint32_t size = names->slots_size == 0 ? SLOTS_FIRST : names->slots_size * 2;
    uint32_t *slots = calloc(size, sizeof *slots);
    struct mu__name **table = realloc(names->names, size / 2 * sizeof *table);

    if (table != NULL)
        names->names = table;
    if (slots == NULL || table == NULL) {
        free(slots);
        return false;
    }
    free(names->slots);
    names->slots = slots;
    names->slots_size = size;
    for (uint32_t i = 0; i < names->count; i++) {
        struct mu__view view = mu__names_view(names, i);

        *probe(names, view, names->names[i]->hash) = i + 1;
    }
    return true;
}

/* Most closures are of the function that the one before was of. */
static bool is_last(const struct mu__names *names, struct mu__view name)
{
    const struct mu__name *last;

    if (names->last >= names->count)
        return false;
    last = names->names[names->last];
    return last->size == name.size && memcmp(last->text, name.data, name.size) == 0;
}

static uint32_t add(struct mu__names *names, struct mu__view name, uint32_t hash,
                    uint32_t *slot)
{
    struct mu__name *added;

    if (names->count >= MU__NAMES_MAX)
        return MU__NAME_NONE;
    if (names->count * 2 >= names->slots_size) {
        if (!grow(names))
            return MU__NAME_NONE;
        slot = probe(names, name, hash);
    }
    added = malloc(sizeof *added + name.size);
    if (added == NULL)
        return MU__NAME_NONE;
    added->hash = hash;
    added->size = name.size;
    memcpy(added->text, name.data, name.size);
    names->names[names->count++] = added;
    *slot = names->count;
    return names->count - 1;
}

uint32_t mu__names_number(struct mu__names *names, struct mu__view name)
{
    uint32_t hash;
    uint32_t *slot;

    if (is_last(names, name))
        return names->last;
    hash = (uint32_t)mu__sip_hash(names->secret, name.data, name.size);
    slot = names->slots_size == 0 ? NULL : probe(names, name, hash);
    names->last = slot != NULL && *slot != 0 ? *slot - 1 : add(names, name, hash, slot);
    return names->last;
}

struct mu__view mu__names_view(const struct mu__names *names, uint32_t number)
{
    assert(number < names->count);
    return (struct mu__view){names->names[number]->text, names->names[number]->size};
}
