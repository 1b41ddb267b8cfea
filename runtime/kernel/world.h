/* The only door between the kernel and everything it cannot compute.
 *
 * There are two worlds. runtime/uv/loop_world.c is a libuv loop with executor threads
 * and real entropy; tests/sim/ is a sorted list of events with a counter for a clock
 * and a seeded generator. Nothing else in runtime/ and nothing in actors/ may ask the
 * system for time, random numbers or bytes. What every world must do is tested by
 * tests/support/contract/world.h.
 *
 * All operations are called on the loop thread. */
#ifndef MU_RUNTIME_WORLD_H
#define MU_RUNTIME_WORLD_H

#include "runtime/base/list.h"
#include "runtime/message/message.h"

#include <stdatomic.h>
#include <stdbool.h>

enum mu__log_level { MU__LOG_ERROR, MU__LOG_WARN, MU__LOG_INFO, MU__LOG_DEBUG };

/* A piece of work for an executor thread. Embedded in the actor's state; from submit
 * until its WORK_DONE message arrives, it belongs to the world. */
struct mu__work {
    struct mu__list_node node;      /* in a queue of the world */
    bool queued;                    /* in the executor's: no thread has taken it */
    atomic_uint_least64_t begun_ms; /* now_ms() when a thread took it; 0: none has yet */
    uint32_t ran_us; /* how long run() took; valid once WORK_DONE has come */
    void (*begin)(struct mu__work *work); /* on that thread, as soon as it takes the work;
                                             may be NULL */
    void (*run)(struct mu__work *work);   /* on an executor thread; may block */
    mu__pid owner; /* gets WORK_DONE with the pointer; set by mu__submit */
};

struct mu__world {
    const struct mu__world_ops *ops;
};

/* What a world calls, on the loop thread. Given when the world is opened. */
struct mu__world_hooks {
    void *owner;

    /* A message from another thread or a finished piece of work. Takes msg. A turn
     * follows after each burst. */
    void (*deliver)(void *owner, struct mu__msg *msg);

    /* Take a turn: one was requested with wake_at, or follows a burst. */
    void (*turn)(void *owner);

    /* Called by transmit(): send a message over this node's links. Takes msg. */
    int (*transmit)(void *owner, struct mu__msg *msg);
};

struct mu__world_ops {
    /* Monotonic, in milliseconds. Does not move while a turn is running. */
    uint64_t (*now_ms)(struct mu__world *world);

    /* 64 random bits. Same seed, same sequence, in the simulated world. */
    uint64_t (*random)(struct mu__world *world);

    /* Arrange one turn at `due_ms` or later; a time already past means as soon as
     * possible. The earliest of several requests wins, and the turn answers them all. */
    void (*wake_at)(struct mu__world *world, uint64_t due_ms);

    /* Give `msg` to the node msg->to.node. Takes msg, whatever is returned.
     * Returns -MU_EUNAVAILABLE when there is no such node any more; 0 promises nothing
     * about arrival: a lost peer is reported as NODE_DOWN. */
    int (*transmit)(struct mu__world *world, struct mu__msg *msg);

    /* Run `work` on an executor thread, then deliver WORK_DONE to its owner. */
    void (*submit)(struct mu__world *world, struct mu__work *work);

    /* Take back work that no thread has taken: true, and it is the caller's again;
     * neither begin() nor run() is called, and no WORK_DONE comes. False: it has
     * begun. */
    bool (*withdraw)(struct mu__world *world, struct mu__work *work);

    void (*log)(struct mu__world *world, enum mu__log_level level, const char *who,
                const char *line);

    /* 64 bits that no peer knows, the same for the life of the process: seeds of hash
     * tables whose keys peers choose. NULL: there is no peer. */
    uint64_t (*secret)(struct mu__world *world);

    /* As now_ms, but it moves while a turn is running, a few milliseconds coarse: to find
     * handlers that take long. NULL: nobody looks for them. */
    uint64_t (*moving_ms)(struct mu__world *world);
};

#endif
