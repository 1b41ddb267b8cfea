#include "actors/supervisor/state/named_closures.h"

#include "actors/packing.h"
#include "runtime/base/sip_hash.h"

#include <assert.h>

enum { FIRST_SIZE = 1024, MOVED_AT_ONCE = 4 };

static uint32_t hash_closure_name(const struct named_closures *named,
                                  struct mu__view name)
{
    return (uint32_t)mu__sip_hash(named->functions->secret, name.data, name.size);
}

/* A closure is in the former table until its bucket there is moved. */
static struct named_closure **named_bucket_of(const struct named_closures *named,
                                              uint32_t hash)
{
    uint32_t former_size = named->size / 2;

    if (named->former != NULL && hash % former_size >= named->former_moved)
        return &named->former[hash % former_size];
    return &named->buckets[hash % named->size];
}

struct named_closure *mu__named_closures_find(const struct named_closures *named,
                                              struct mu__view name)
{
    uint32_t hash = hash_closure_name(named, name);
    struct named_closure *at = named->size == 0 ? NULL : *named_bucket_of(named, hash);

    while (at != NULL && (at->hash != hash || !mu__view_is(name, at->name)))
        at = at->next;
    return at;
}

struct named_closure *mu__named_closures_numbered(const struct named_closures *named,
                                                  uint64_t number)
{
    return mu__map_get(&named->by_number, number);
}

static void link_closure(struct named_closures *named, struct named_closure *closure)
{
    struct named_closure **bucket = named_bucket_of(named, closure->hash);

    closure->next = *bucket;
    *bucket = closure;
}

static void move_some(struct named_closures *named)
{
    for (int i = 0; i < MOVED_AT_ONCE && named->former != NULL; i++) {
        struct named_closure *at = named->former[named->former_moved++];

        while (at != NULL) {
            struct named_closure *next = at->next;

            link_closure(named, at);
            at = next;
        }
        if (named->former_moved < named->size / 2)
            continue;
        mu__free_array(named->former);
        named->former = NULL;
    }
}

static bool grow_named_table(struct named_closures *named)
{
    uint32_t size = named->size == 0 ? FIRST_SIZE : named->size * 2;
    struct named_closure **table = NULL;

    if (!mu__grow_array((void **)&table, size, sizeof(struct named_closure *)))
        return false;
    for (uint32_t i = 0; i < size; i++)
        table[i] = NULL;
    assert(named->former == NULL);
    named->former = named->buckets;
    named->former_moved = 0;
    named->buckets = table;
    named->size = size;
    return true;
}

struct named_closure *mu__named_closures_add(struct named_closures *named,
                                             struct mu__view name, uint64_t number)
{
    struct named_closure *closure = NULL;

    if (named->count >= named->size && !grow_named_table(named))
        return NULL;
    if (!mu__grow_array((void **)&closure, 1, sizeof *closure + name.size + 1))
        return NULL;
    *closure = (struct named_closure){
        .number = number,
        .hash = hash_closure_name(named, name),
        .name_size = name.size,
        .function = MU__NAME_NONE,
    };
    mu__view_copy(name, closure->name, name.size + 1);
    if (mu__map_set(&named->by_number, number, closure) != 0) {
        mu__free_array(closure);
        return NULL;
    }
    move_some(named);
    link_closure(named, closure);
    mu__list_append(&named->all, &closure->node);
    named->count++;
    return closure;
}

bool mu__named_closure_join(struct named_closure *closure, mu__pid pid, uint64_t token)
{
    struct joined_client *joined = NULL;

    if (!mu__grow_array((void **)&joined, 1, sizeof *joined))
        return false;
    *joined = (struct joined_client){closure->joined, pid, token};
    closure->joined = joined;
    return true;
}

void mu__named_closure_forget_joined(struct named_closure *closure)
{
    while (closure->joined != NULL) {
        struct joined_client *next = closure->joined->next;

        mu__free_array(closure->joined);
        closure->joined = next;
    }
}

static void free_closure(struct named_closure *closure)
{
    mu__named_closure_forget_joined(closure);
    mu__free_array(closure);
}

void mu__named_closures_remove(struct named_closures *named,
                               struct named_closure *closure)
{
    struct named_closure **at = named_bucket_of(named, closure->hash);

    while (*at != closure)
        at = &(*at)->next;
    *at = closure->next;
    mu__list_remove(&named->all, &closure->node);
    named->count--;
    (void)mu__map_remove(&named->by_number, closure->number);
    mu__names_release(named->functions, closure->function);
    free_closure(closure);
}

void mu__named_closures_done(struct named_closures *named)
{
    struct mu__list_node *node;

    while ((node = mu__list_pop(&named->all)) != NULL)
        free_closure(MU__LIST_ENTRY(node, struct named_closure, node));
    mu__free_array(named->former);
    mu__free_array(named->buckets);
    mu__map_done(&named->by_number);
}
