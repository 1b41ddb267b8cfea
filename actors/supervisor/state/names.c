#include "actors/supervisor/state/names.h"

#include "actors/packing.h"
#include "runtime/base/sip_hash.h"

#include <stdlib.h>
#include <string.h>

void mu__names_done(struct mu__names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    free(names->free);
    mu__hash_table_done(&names->by_text);
    *names = (struct mu__names){0};
}

/* ---- Names without a holder ---- */

static void leave_idle_list(struct mu__names *names, struct mu__name *name)
{
    mu__list_remove(&names->idle, &name->idle);
    names->idle_count--;
}

static void join_idle_list(struct mu__names *names, struct mu__name *name)
{
    mu__list_append(&names->idle, &name->idle);
    names->idle_count++;
}

/* Free a name's number. Out of memory to note that: the name stays. */
static void forget_name(struct mu__names *names, struct mu__name *name)
{
    if (!mu__grow_for_one((void **)&names->free, &names->free_size, names->free_count,
                          sizeof *names->free))
        return;
    names->free[names->free_count++] = name->number;
    leave_idle_list(names, name);
    mu__hash_table_remove(&names->by_text, &name->node);
    names->names[name->number] = NULL;
    names->used--;
    free(name);
}

/* ---- Taking ---- */

/* NULL: out of memory or of numbers. */
static struct mu__name *add_interned_name(struct mu__names *names, struct mu__view text,
                                          uint64_t hash)
{
    struct mu__name *name;

    if (names->used >= MU__NAMES_MAX ||
        (names->free_count == 0 && !mu__grow_for_one((void **)&names->names, &names->size,
                                                     names->count, sizeof *names->names)))
        return NULL;
    name = malloc(sizeof *name + text.size);
    if (name == NULL)
        return NULL;
    *name = (struct mu__name){.size = text.size};
    memcpy(name->text, text.data, text.size);
    if (mu__hash_table_add(&names->by_text, hash, &name->node) != 0) {
        free(name);
        return NULL;
    }
    name->number =
        names->free_count > 0 ? names->free[--names->free_count] : names->count++;
    names->names[name->number] = name;
    names->used++;
    join_idle_list(names, name);
    return name;
}

static bool is_name_text(const struct mu__name *name, struct mu__view text)
{
    return name->size == text.size && memcmp(name->text, text.data, text.size) == 0;
}

/* Most closures have the function of the one before. */
static bool is_last_name(const struct mu__names *names, struct mu__view text)
{
    return names->last < names->count && names->names[names->last] != NULL &&
           is_name_text(names->names[names->last], text);
}

static uint32_t find_or_add_name(struct mu__names *names, struct mu__view text)
{
    uint64_t hash = mu__sip_hash(names->secret, text.data, text.size);
    struct mu__hash_node *node = mu__hash_table_find(&names->by_text, hash);
    struct mu__name *name;

    for (; node != NULL; node = mu__hash_next(node))
        if (is_name_text((struct mu__name *)node, text))
            return ((struct mu__name *)node)->number;
    names->added = true;
    name = add_interned_name(names, text, hash);
    return name == NULL ? MU__NAME_NONE : name->number;
}

uint32_t mu__names_take(struct mu__names *names, struct mu__view name)
{
    names->added = false;
    if (!is_last_name(names, name))
        names->last = find_or_add_name(names, name);
    mu__names_hold(names, names->last);
    return names->last;
}

void mu__names_first_holder(struct mu__names *names, uint32_t number)
{
    leave_idle_list(names, names->names[number]);
}

void mu__names_last_holder(struct mu__names *names, uint32_t number)
{
    join_idle_list(names, names->names[number]);
    if (names->idle_count > MU__NAMES_IDLE_MAX)
        forget_name(names, MU__LIST_FIRST(&names->idle, struct mu__name, idle));
}
