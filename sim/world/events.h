/* What is going to happen, in a total order: due time, then the order of queueing. No two
 * events are ever equal.
 *
 * An event is part of whatever it is about (a connection, a node, an executor's slot), so
 * queueing allocates nothing and what vanishes takes its events out of the queue. */
#ifndef MU_SIM_WORLD_EVENTS_H
#define MU_SIM_WORLD_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_node;

/* How an event stands to the loop of its process. */
enum sim_context {
    SIM_CONTEXT_LOOP, /* the loop does something else: an open burst ends before it */
    SIM_CONTEXT_WIRE, /* part of a burst of the wire */
    SIM_CONTEXT_ASIDE /* not on the loop */
};

enum sim_event_place { SIM_EVENT_IDLE, SIM_EVENT_QUEUED, SIM_EVENT_PARKED };

struct sim_event {
    uint64_t due_us;
    uint64_t order;
    void (*fire)(void *owner);
    void *owner;
    struct sim_node *node; /* the process it happens in; NULL: in none */
    size_t index;          /* in the queue or the parking list */
    enum sim_event_place place;
    enum sim_context context;
};

struct sim_queue_slot {
    uint64_t due_us;
    uint64_t order;
    struct sim_event *event;
};

struct sim_queue {
    struct sim_queue_slot *slots;
    size_t count;
    size_t capacity;
};

void sim_queue_init(struct sim_queue *queue);
void sim_queue_done(struct sim_queue *queue);

/* The event is idle, with due_us and order set. */
void sim_queue_push(struct sim_queue *queue, struct sim_event *event);

/* The first one, which is idle then. The queue is not empty. */
struct sim_event *sim_queue_pop(struct sim_queue *queue);

/* The event is queued; afterwards it is idle. */
void sim_queue_remove(struct sim_queue *queue, struct sim_event *event);

/* Above 0 while the simulator itself allocates, or a function that it runs: a test that
 * lets a process run out of memory must not take it from them. Volatile, since compilers
 * know that calloc() looks at no variable of ours. */
extern volatile unsigned sim_own_memory;

/* Zeroed memory; ends the test program when there is none. */
void *sim_alloc(size_t size);

#endif
