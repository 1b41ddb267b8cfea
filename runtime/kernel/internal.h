/* Shared by the files of the kernel: kernel.c has actors, mailboxes and turns, watching.c
 * the notifications of ended actors and nodes, reads.c what waits for a slow reader. */
#ifndef MU_RUNTIME_KERNEL_INTERNAL_H
#define MU_RUNTIME_KERNEL_INTERNAL_H

#include "runtime/base/list.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/peer_process.h"
#include "runtime/kernel/timers.h"

#include <stdalign.h>
#include <stddef.h>

/* One actor's wish to be notified of the end of `target`. The DOWN message is allocated
 * beforehand, so that notifying cannot fail. */
struct monitor {
    struct mu__list_node node;
    struct mu__msg *down;
    mu__pid target;
};

/* A behavior's handlers, indexed by message number. */
struct dispatch {
    struct dispatch *next;
    const struct mu__behavior *behavior;
    mu__handle_fn handle[];
};

struct actor {
    uint32_t number;
    bool ready;    /* in the list of actors with mail */
    bool stopping; /* ends after the current message */
    bool watches_nodes;
    const struct dispatch *dispatch;
    struct mu__msg *first; /* mailbox */
    struct mu__msg *last;
    struct mu__msg *held_first; /* see mu__hold */
    struct mu__msg *held_last;
    uint32_t held_count;
    uint32_t length;
    uint32_t length_max;
    struct mu__list_node ready_node;
    struct mu__list monitors;
    alignas(max_align_t) unsigned char state[];
};

/* A peer that is up. */
struct node {
    uint32_t number;
    uint32_t index;
    uint64_t incarnation;
    enum mu__right own_right; /* that this node has proven there */
    struct mu__buf *words;    /* memory of the two below; NULL: the node is lost */
    struct mu__view type;
    struct mu__view address;
    struct reads_waiting *reads; /* NULL: it has never been behind */
    struct mu__process *process; /* NULL: not known */
};

/* The reads of a node that is behind: it has not read earlier answers yet. */
struct reads_waiting {
    bool is_behind;        /* too much waits in its link */
    bool is_full;          /* its link is not to be read */
    bool is_full_reported; /* by mu__kernel_next_full */
    uint64_t owed;         /* bytes of answers that actors keep back */
    struct mu__msg *first;
    struct mu__msg *last;
    uint32_t count;
    uint64_t bytes; /* of the frames that hold them */
};

struct mu__kernel {
    struct mu__world *world;
    bool has_limits; /* this node lacks a right at some node */
    const struct mu__schema *schema;
    struct mu__pool pool;
    struct actor **table;
    uint32_t table_size; /* a power of two */
    uint32_t number_next;
    struct mu__list ready; /* actors with mail, round robin */
    struct actor *running;
    bool in_turn;
    uint64_t turn_ms; /* the time of the turn */
    struct mu__timers timers;
    struct dispatch *dispatches;
    struct node *nodes; /* ordered by number */
    size_t nodes_count;
    size_t nodes_lost; /* of these, lost and not removed from the array yet */
    size_t nodes_capacity;
    struct mu__process *own_process; /* NULL: not known */
    uint32_t behind_count;           /* nodes with `reads` */
    uint32_t reads_count;            /* that wait, of all of them */
    bool has_full_news;              /* for mu__kernel_next_full */
    struct mu__list remote_monitors;
    struct mu__kernel_counters counters;
    uint16_t kinds_end;
    uint16_t body_sizes[]; /* by kind of message; 0: there is none */
};

/* Whether `node` would drop messages of this kind for want of a right. */
bool mu__kernel_lacks_right(const struct mu__kernel *kernel, uint32_t node,
                            uint16_t kind);

static inline struct actor *mu__kernel_find(const struct mu__kernel *kernel,
                                            uint32_t number)
{
    struct actor *actor = kernel->table[number & (kernel->table_size - 1)];

    return actor != NULL && actor->number == number ? actor : NULL;
}

/* A message of the kernel's own: exempt from the mailbox's bound. */
void mu__kernel_post(struct mu__kernel *kernel, struct mu__msg *msg);

/* Request a turn at `due_ms`. A turn requests the next one itself, at its end. */
static inline void mu__kernel_wake(struct mu__kernel *kernel, uint64_t due_ms)
{
    if (!kernel->in_turn)
        kernel->world->ops->wake_at(kernel->world, due_ms);
}

/* Handle one message of an actor now. The actor may end with it. */
void mu__kernel_handle(struct mu__kernel *kernel, struct actor *actor,
                       struct mu__msg *msg);

/* ---- reads.c ---- */

/* Whether a message about to be handled is a read whose node is behind: it was taken. */
bool mu__reads_hold(struct mu__kernel *kernel, struct mu__msg *msg);

/* Handle reads of nodes that have caught up; returns how many. */
int mu__reads_run(struct mu__kernel *kernel);

/* Whether there are any. */
bool mu__reads_are_due(const struct mu__kernel *kernel);

/* The node is lost. */
void mu__reads_free(struct mu__kernel *kernel, struct node *node);

/* ---- watching.c ---- */

/* A peer that is up; NULL: there is none of this number. Valid until the next one comes
 * or goes. */
struct node *mu__kernel_find_node(const struct mu__kernel *kernel, uint32_t number);

/* Send each monitor's DOWN message and free the monitors. */
void mu__monitors_notify(struct mu__kernel *kernel, struct mu__list *monitors);

/* Free the monitors without a message. */
void mu__monitors_free(struct mu__kernel *kernel, struct mu__list *monitors);

/* Free the monitors that an ending actor has of actors on other nodes. */
void mu__monitors_drop_remote(struct mu__kernel *kernel, uint32_t watcher);

void mu__kernel_free_nodes(struct mu__kernel *kernel);

#endif
