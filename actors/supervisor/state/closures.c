/* Closures live in chunks that never move; lists link them by index, which is half the
 * size of a pointer. A million of them queued is a case that is measured. */
#include "actors/supervisor/state/closures.h"

#include "actors/packing.h"
#include "muster/error.h"

#include <assert.h>
#include <stdlib.h>

enum { CHUNK = 1024, CHUNKS_MAX = 1 << 22 };

static struct mu__closure *get_closure_at(const struct mu__closures *closures,
                                          uint32_t index)
{
    return &closures->chunks[index / CHUNK][index % CHUNK];
}

static struct mu__closure *get_linked_closure(const struct mu__closures *closures,
                                              uint32_t link)
{
    return link == 0 ? NULL : get_closure_at(closures, link - 1);
}

int mu__closures_init(struct mu__closures *closures)
{
    *closures = (struct mu__closures){0};
    return mu__closures_make_list(closures, MU__LIST_WORKERS);
}

void mu__closures_done(struct mu__closures *closures)
{
    for (uint32_t i = 0; i < closures->chunks_count; i++) {
        for (uint32_t j = 0; j < CHUNK; j++)
            mu__buf_unref(closures->chunks[i][j].backing);
        free(closures->chunks[i]);
    }
    free(closures->chunks);
    free(closures->lists);
    *closures = (struct mu__closures){0};
}

int mu__closures_make_list(struct mu__closures *closures, uint32_t list)
{
    return mu__grow_zeroed((void **)&closures->lists, &closures->lists_count, list + 1,
                           sizeof *closures->lists)
               ? 0
               : -MU_ENOMEM;
}

static int add_closure_chunk(struct mu__closures *closures)
{
    struct mu__closure *chunk;
    uint32_t first = closures->chunks_count * CHUNK;

    if (closures->chunks_count == CHUNKS_MAX)
        return -MU_EEXHAUSTED;
    if (!mu__grow_array((void **)&closures->chunks, closures->chunks_count + 1,
                        sizeof *closures->chunks))
        return -MU_ENOMEM;
    chunk = calloc(CHUNK, sizeof *chunk);
    if (chunk == NULL)
        return -MU_ENOMEM;
    for (uint32_t i = 0; i < CHUNK; i++) {
        chunk[i].index = first + i;
        chunk[i].generation = 1;
        chunk[i].list = MU__LIST_NONE;
        chunk[i].next = i + 1 < CHUNK ? first + i + 2 : closures->free_first;
    }
    closures->chunks[closures->chunks_count++] = chunk;
    closures->free_first = first + 1;
    return 0;
}

static void unlink_closure(struct mu__closures *closures, struct mu__closure *closure)
{
    struct mu__closure_list *list = &closures->lists[closure->list];
    struct mu__closure *next = get_linked_closure(closures, closure->next);
    struct mu__closure *prev = get_linked_closure(closures, closure->prev);

    if (prev == NULL)
        list->first = closure->next;
    else
        prev->next = closure->next;
    if (next == NULL)
        list->last = closure->prev;
    else
        next->prev = closure->prev;
    list->count--;
}

/* `prev` and `next` are links; one of them is 0. */
static inline void link_between(struct mu__closures *closures,
                                struct mu__closure *closure, uint32_t number,
                                uint32_t prev, uint32_t next)
{
    struct mu__closure_list *list = &closures->lists[number];
    uint32_t link = closure->index + 1;

    closure->list = number;
    closure->prev = prev;
    closure->next = next;
    *(prev == 0 ? &list->first : &get_linked_closure(closures, prev)->next) = link;
    *(next == 0 ? &list->last : &get_linked_closure(closures, next)->prev) = link;
    list->count++;
    if (number < closures->urgent)
        closures->urgent = number;
}

static void link_closure_last(struct mu__closures *closures, struct mu__closure *closure,
                              uint32_t number)
{
    link_between(closures, closure, number, closures->lists[number].last, 0);
}

struct mu__closure *mu__closures_add(struct mu__closures *closures)
{
    struct mu__closure *closure;

    if (closures->free_first == 0 && add_closure_chunk(closures) != 0)
        return NULL;
    closure = get_linked_closure(closures, closures->free_first);
    closures->free_first = closure->next;
    *closure =
        (struct mu__closure){.index = closure->index, .generation = closure->generation};
    link_closure_last(closures, closure, MU__LIST_QUEUE);
    closures->count++;
    return closure;
}

void mu__closures_remove(struct mu__closures *closures, struct mu__closure *closure)
{
    assert(closure->list != MU__LIST_NONE);
    unlink_closure(closures, closure);
    mu__buf_unref(closure->backing);
    closure->backing = NULL;
    closure->list = MU__LIST_NONE;
    closure->generation++;
    if (closure->generation == 0)
        closure->generation = 1;
    closure->next = closures->free_first;
    closures->free_first = closure->index + 1;
    closures->count--;
}

struct mu__closure *mu__closures_find(const struct mu__closures *closures, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    struct mu__closure *closure;

    if (index / CHUNK >= closures->chunks_count)
        return NULL;
    closure = get_closure_at(closures, index);
    if (closure->list == MU__LIST_NONE || mu__closure_id(closure) != id)
        return NULL;
    return closure;
}

struct mu__closure *mu__closures_at(const struct mu__closures *closures, uint32_t index)
{
    if (index / CHUNK >= closures->chunks_count ||
        get_closure_at(closures, index)->list == MU__LIST_NONE)
        return NULL;
    return get_closure_at(closures, index);
}

void mu__closures_move_last(struct mu__closures *closures, struct mu__closure *closure,
                            uint32_t list)
{
    assert(list < closures->lists_count);
    unlink_closure(closures, closure);
    link_closure_last(closures, closure, list);
}

void mu__closures_move_first(struct mu__closures *closures, struct mu__closure *closure,
                             uint32_t list)
{
    assert(list < closures->lists_count);
    unlink_closure(closures, closure);
    link_between(closures, closure, list, 0, closures->lists[list].first);
}

struct mu__closure *mu__closures_first(const struct mu__closures *closures, uint32_t list)
{
    return get_linked_closure(closures, closures->lists[list].first);
}

struct mu__closure *mu__closures_first_queued(struct mu__closures *closures)
{
    while (closures->urgent < MU__LIST_QUEUES + MU__PRIORITIES) {
        uint32_t first = closures->lists[closures->urgent].first;

        if (first != 0)
            return get_linked_closure(closures, first);
        closures->urgent++;
    }
    return NULL;
}

_Static_assert(MU__LIST_QUEUES == 0, "queues come before all other lists");

struct mu__closure *mu__closures_last(const struct mu__closures *closures, uint32_t list)
{
    return get_linked_closure(closures, closures->lists[list].last);
}

struct mu__closure *mu__closures_next(const struct mu__closures *closures,
                                      const struct mu__closure *closure)
{
    return get_linked_closure(closures, closure->next);
}

struct mu__closure *mu__closures_prev(const struct mu__closures *closures,
                                      const struct mu__closure *closure)
{
    return get_linked_closure(closures, closure->prev);
}

static uint32_t get_backing_offset(const struct mu__buf *backing, const void *data,
                                   uint32_t size)
{
    const uint8_t *at = data;

    if (size == 0)
        return 0;
    assert(at >= backing->data && at + size <= backing->data + backing->size);
    return (uint32_t)(at - backing->data);
}

void mu__closure_set_args(struct mu__closure *closure, const struct mu__packed *args,
                          struct mu__buf *backing)
{
    assert(closure->backing == NULL);
    if (args->head_size == 0 && args->tail_size == 0)
        return;
    closure->backing = mu__buf_ref(backing);
    closure->head_offset = get_backing_offset(backing, args->head, args->head_size);
    closure->tail_offset = get_backing_offset(backing, args->tail, args->tail_size);
    closure->head_size = args->head_size;
    closure->tail_size = args->tail_size;
}

struct mu__packed mu__closure_args(const struct mu__closure *closure)
{
    const uint8_t *data = closure->backing == NULL ? NULL : closure->backing->data;

    if (data == NULL)
        return (struct mu__packed){0};
    return (struct mu__packed){
        .head = data + closure->head_offset,
        .tail = closure->tail_size == 0 ? NULL : data + closure->tail_offset,
        .head_size = closure->head_size,
        .tail_size = closure->tail_size,
    };
}
