/* The program's handles of things at the supervisor: the future of a closure, which is
 * the mu_remote_value, and the per-worker value.
 *
 * The client actor resolves a future on the loop thread; any thread reads it. The result
 * and the error are written before `state`, and never after it. */
#ifndef MU_ACTORS_FUTURE_H
#define MU_ACTORS_FUTURE_H

#include "actors/call.h"

#include "muster/coordinator.h"

#include <stdatomic.h>

struct mu__held;

/* The node that the handles belong to. Its functions are called on any thread. */
struct mu__future_owner {
    mu_node *node;                               /* opaque to actors */
    void (*ref)(struct mu__future_owner *owner); /* each handle has one reference */
    void (*unref)(struct mu__future_owner *owner);

    /* `held`, whose value is kept by workers, has no holder any more: tell the client
     * actor, or free it if that is impossible. */
    void (*give_back)(struct mu__future_owner *owner, struct mu__held *held);
};

/* The common part of futures and per-worker values. Both are reference counted; workers
 * may keep a value of theirs under a number. */
struct mu__held {
    atomic_uint refs;
    bool is_per_worker;   /* it is a mu_per_worker; else a mu_remote_value */
    uint16_t chief_epoch; /* of the chief that gave `number`; see client_chief */
    uint64_t number;      /* 0: workers keep nothing */
    struct mu__future_owner *owner; /* NULL: none, in a test */
};

/* A state that the program sees as MU_REMOTE_READY: the result is pinned on a worker. */
enum { MU__REMOTE_PINNED = MU_REMOTE_READY + 1 };

struct mu__waiter;

struct mu_remote_value {
    struct mu__held held;
    atomic_int state; /* enum mu_remote_value_state, or MU__REMOTE_PINNED */
    uint32_t token;   /* the client actor's, while it is not resolved */
    uint32_t attempt; /* that succeeded; 0: none */
    uint64_t closure;
    uint64_t request;           /* of a call to an actor, its number at the office; 0: it
                                   is that of a closure */
    mu_value *result;           /* NULL: nil */
    const mu_error *error;      /* NULL: none; may be mu__error_lost */
    struct mu__waiter *waiters; /* the client actor's */
    void (*notify)(mu_remote_value *future, void *user); /* called on the loop thread
                                                            once it is resolved; may be
                                                            NULL */
    void *notify_user;
};

/* The error of a closure whose own error could not be stored: out of memory. */
extern const mu_error mu__error_lost;

struct mu_per_worker {
    struct mu__held held;
};

/* Two references: the program's and the client actor's. NULL: out of memory. */
mu_remote_value *mu__future_new(struct mu__future_owner *owner);

/* One reference. Before its number is set, mu__held_free frees it. NULL: out of
 * memory. */
mu_per_worker *mu__per_worker_new(struct mu__future_owner *owner);

static inline void mu__held_ref(struct mu__held *held)
{
    atomic_fetch_add_explicit(&held->refs, 1, memory_order_relaxed);
}

/* Drop a reference. The last one gives `held` back to its owner if workers keep a value,
 * and frees it otherwise. */
void mu__held_unref(struct mu__held *held);

/* Free the memory: there is no reference, and workers keep nothing for it. */
void mu__held_free(struct mu__held *held);

static inline bool mu__future_is(const mu_remote_value *future, int state)
{
    return atomic_load_explicit(&future->state, memory_order_acquire) == state;
}

#endif
