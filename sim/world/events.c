/* The queue of events: a binary heap that knows where each event stands. */
#include "sim/world/events.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUEUE_FIRST_CAPACITY = 256 };

volatile unsigned sim_own_memory;

void *sim_alloc(size_t size)
{
    void *memory;

    sim_own_memory++;
    memory = calloc(1, size);
    sim_own_memory--;
    if (memory == NULL) {
        fputs("sim: out of memory\n", stderr);
        abort();
    }
    return memory;
}

void sim_queue_init(struct sim_queue *queue)
{
    queue->count = 0;
    queue->capacity = QUEUE_FIRST_CAPACITY;
    queue->slots = sim_alloc(queue->capacity * sizeof queue->slots[0]);
}

void sim_queue_done(struct sim_queue *queue)
{
    free(queue->slots);
    queue->slots = NULL;
}

static bool slot_before(const struct sim_queue_slot *a, const struct sim_queue_slot *b)
{
    if (a->due_us != b->due_us)
        return a->due_us < b->due_us;
    return a->order < b->order;
}

static void put(struct sim_queue *queue, size_t index, struct sim_queue_slot slot)
{
    queue->slots[index] = slot;
    slot.event->index = index;
}

static void sift_up(struct sim_queue *queue, size_t index, struct sim_queue_slot slot)
{
    while (index > 0) {
        size_t parent = (index - 1) / 2;

        if (!slot_before(&slot, &queue->slots[parent]))
            break;
        put(queue, index, queue->slots[parent]);
        index = parent;
    }
    put(queue, index, slot);
}

static void sift_down(struct sim_queue *queue, size_t index, struct sim_queue_slot slot)
{
    for (;;) {
        size_t child = 2 * index + 1;

        if (child >= queue->count)
            break;
        if (child + 1 < queue->count &&
            slot_before(&queue->slots[child + 1], &queue->slots[child]))
            child++;
        if (!slot_before(&queue->slots[child], &slot))
            break;
        put(queue, index, queue->slots[child]);
        index = child;
    }
    put(queue, index, slot);
}

static void grow(struct sim_queue *queue)
{
    size_t capacity = queue->capacity * 2;
    struct sim_queue_slot *slots = sim_alloc(capacity * sizeof slots[0]);

    for (size_t i = 0; i < queue->count; i++)
        slots[i] = queue->slots[i];
    free(queue->slots);
    queue->slots = slots;
    queue->capacity = capacity;
}

void sim_queue_push(struct sim_queue *queue, struct sim_event *event)
{
    struct sim_queue_slot slot = {event->due_us, event->order, event};

    assert(event->place == SIM_EVENT_IDLE);
    if (queue->count == queue->capacity)
        grow(queue);
    event->place = SIM_EVENT_QUEUED;
    sift_up(queue, queue->count++, slot);
}

void sim_queue_remove(struct sim_queue *queue, struct sim_event *event)
{
    size_t index = event->index;
    struct sim_queue_slot last;

    assert(event->place == SIM_EVENT_QUEUED && queue->slots[index].event == event);
    event->place = SIM_EVENT_IDLE;
    last = queue->slots[--queue->count];
    if (index == queue->count)
        return;
    if (index > 0 && slot_before(&last, &queue->slots[(index - 1) / 2]))
        sift_up(queue, index, last);
    else
        sift_down(queue, index, last);
}

struct sim_event *sim_queue_pop(struct sim_queue *queue)
{
    struct sim_event *event;

    assert(queue->count > 0);
    event = queue->slots[0].event;
    sim_queue_remove(queue, event);
    return event;
}
