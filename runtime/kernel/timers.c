#include "runtime/kernel/timers.h"

#include "runtime/kernel/system_messages.h"

#include <assert.h>
#include <stdlib.h>

enum { CAPACITY_FIRST = 64 };

void mu__timers_init(struct mu__timers *timers, uint32_t capacity_max)
{
    *timers = (struct mu__timers){.capacity_max = capacity_max};
}

void mu__timers_done(struct mu__timers *timers, struct mu__pool *pool)
{
    for (uint32_t i = 0; i < timers->count; i++)
        mu__pool_put(pool, timers->slots[timers->heap[i]].msg);
    free(timers->slots);
    free(timers->heap);
}

static bool before(const struct mu__timers *timers, uint32_t a, uint32_t b)
{
    const struct mu__timer_slot *x = &timers->slots[a];
    const struct mu__timer_slot *y = &timers->slots[b];

    if (x->due_ms != y->due_ms)
        return x->due_ms < y->due_ms;
    return x->order < y->order;
}

static void heap_index(struct mu__timers *timers, uint32_t i, uint32_t slot)
{
    timers->heap[i] = slot;
    timers->slots[slot].heap_index = i;
}

static void sift_up(struct mu__timers *timers, uint32_t i)
{
    uint32_t slot = timers->heap[i];

    while (i > 0 && before(timers, slot, timers->heap[(i - 1) / 2])) {
        heap_index(timers, i, timers->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_index(timers, i, slot);
}

static void sift_down(struct mu__timers *timers, uint32_t i)
{
    uint32_t slot = timers->heap[i];

    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= timers->count)
            break;
        if (child + 1 < timers->count &&
            before(timers, timers->heap[child + 1], timers->heap[child]))
            child++;
        if (!before(timers, timers->heap[child], slot))
            break;
        heap_index(timers, i, timers->heap[child]);
        i = child;
    }
    heap_index(timers, i, slot);
}

static bool grow(struct mu__timers *timers)
{
    uint32_t capacity = timers->capacity == 0 ? CAPACITY_FIRST : timers->capacity * 2;
    struct mu__timer_slot *slots;
    uint32_t *heap;

    if (capacity > timers->capacity_max)
        capacity = timers->capacity_max;
    if (capacity <= timers->capacity)
        return false;
    slots = realloc(timers->slots, capacity * sizeof *slots);
    if (slots == NULL)
        return false;
    timers->slots = slots;
    heap = realloc(timers->heap, capacity * sizeof *heap);
    if (heap == NULL)
        return false;
    timers->heap = heap;
    for (uint32_t i = timers->capacity; i < capacity; i++)
        slots[i] = (struct mu__timer_slot){.generation = 1, .heap_index = i + 2};
    slots[capacity - 1].heap_index = timers->free_first;
    timers->free_first = timers->capacity + 1;
    timers->capacity = capacity;
    return true;
}

uint64_t mu__timers_set(struct mu__timers *timers, uint64_t due_ms, struct mu__msg *msg)
{
    struct mu__timer_slot *slot;
    struct mu__timer *body = (void *)msg->body;
    uint32_t index;

    if (timers->free_first == 0 && !grow(timers))
        return 0;
    index = timers->free_first - 1;
    slot = &timers->slots[index];
    timers->free_first = slot->heap_index;
    slot->due_ms = due_ms;
    slot->order = timers->order_next++;
    slot->msg = msg;
    timers->heap[timers->count] = index;
    timers->count++;
    sift_up(timers, timers->count - 1);
    body->timer = (uint64_t)slot->generation << 32 | index;
    return body->timer;
}

static struct mu__msg *take_timer_message(struct mu__timers *timers, uint32_t index)
{
    struct mu__timer_slot *slot = &timers->slots[index];
    struct mu__msg *msg = slot->msg;
    uint32_t i = slot->heap_index;
    uint32_t last = timers->heap[timers->count - 1];

    timers->count--;
    if (last != index) {
        heap_index(timers, i, last);
        sift_down(timers, i);
        sift_up(timers, timers->slots[last].heap_index);
    }
    slot->msg = NULL;
    slot->generation++;
    if (slot->generation == 0)
        slot->generation = 1;
    slot->heap_index = timers->free_first;
    timers->free_first = index + 1;
    return msg;
}

struct mu__msg *mu__timers_cancel(struct mu__timers *timers, uint64_t timer)
{
    uint32_t index = (uint32_t)timer;

    if (index >= timers->capacity || timers->slots[index].msg == NULL ||
        timers->slots[index].generation != (uint32_t)(timer >> 32))
        return NULL;
    return take_timer_message(timers, index);
}

struct mu__msg *mu__timers_fire(struct mu__timers *timers, uint64_t now_ms,
                                uint64_t order_limit)
{
    uint32_t index;

    if (timers->count == 0)
        return NULL;
    index = timers->heap[0];
    if (timers->slots[index].due_ms > now_ms || timers->slots[index].order >= order_limit)
        return NULL;
    return take_timer_message(timers, index);
}

uint64_t mu__timers_next_ms(const struct mu__timers *timers)
{
    return timers->count == 0 ? UINT64_MAX : timers->slots[timers->heap[0]].due_ms;
}

void mu__timers_drop(struct mu__timers *timers, uint32_t actor, struct mu__pool *pool)
{
    for (uint32_t i = 0; i < timers->capacity && timers->count > 0; i++)
        if (timers->slots[i].msg != NULL && timers->slots[i].msg->to.actor == actor)
            mu__pool_put(pool, take_timer_message(timers, i));
}
