/* What a program holds of things at the supervisor: the future of a closure (what
 * mu_remote_value points to), and a per-worker value.
 *
 * The client actor resolves a future, on the loop; any thread looks at it. Everything
 * that a reader sees is written before `state` says so, and not after. */
#ifndef MU_ACTORS_FUTURE_H
#define MU_ACTORS_FUTURE_H

#include "actors/call.h"

#include "muster/coordinator.h"

#include <stdatomic.h>

struct mu__held;

/* The node that holdings belong to, as far as they need it. Both calls come on any
 * thread. */
struct mu__future_owner {
    mu_node *node;                              /* not looked into by actors */
    void (*ref)(struct mu__future_owner *owner); /* one more holding keeps its memory, */
    void (*unref)(struct mu__future_owner *owner);  /* one less */
    void (*give_back)(struct mu__future_owner *owner, struct mu__held *held);
                                                /* nobody holds it any more: tell the
                                                   client actor, or else free it */
};

/* What futures and per-worker values have in common: they are counted, and something of
 * theirs may be kept by workers, under a number. */
struct mu__held {
    atomic_uint refs;
    bool is_per_worker;         /* a mu_per_worker; else a mu_remote_value */
    uint16_t chief_epoch;       /* of the chief that knows `number`; the client counts */
    uint64_t number;            /* 0: nothing is kept */
    struct mu__future_owner *owner;     /* NULL: none, in a test */
};

/* A state more than the program is told. */
enum { MU__REMOTE_PINNED = MU_REMOTE_READY + 1 /* ready; the result is on a worker */ };

struct mu__waiter;

struct mu_remote_value {
    struct mu__held held;
    atomic_int state;           /* enum mu_remote_value_state, or MU__REMOTE_PINNED */
    uint32_t token;             /* the client actor's, while it is not resolved */
    uint32_t attempt;           /* which run succeeded, and of which closure; 0: none */
    uint64_t closure;
    mu_value *result;           /* NULL: nil */
    const mu_error *error;      /* NULL: none; may be mu__error_lost */
    struct mu__waiter *waiters; /* the client actor's */
    void (*notify)(mu_remote_value *future, void *user);    /* once it is resolved, on the
                                                               loop; NULL: nobody */
    void *notify_user;
};

/* Stands for an error that there was no memory for. */
extern const mu_error mu__error_lost;

struct mu_per_worker {
    struct mu__held held;
};

/* Two references: the program's and the client actor's. NULL: out of memory. */
mu_remote_value *mu__future_new(struct mu__future_owner *owner);

/* One reference. Until its number is known, it is freed with mu__held_free. NULL: out of
 * memory. */
mu_per_worker *mu__per_worker_new(struct mu__future_owner *owner);

static inline void mu__held_ref(struct mu__held *held)
{
    atomic_fetch_add_explicit(&held->refs, 1, memory_order_relaxed);
}

/* One holder less. The last one gives back what is kept. */
void mu__held_unref(struct mu__held *held);

/* Free the memory, once nobody holds it and nothing is kept any more. */
void mu__held_free(struct mu__held *held);

static inline bool mu__future_is(const mu_remote_value *future, int state)
{
    return atomic_load_explicit(&future->state, memory_order_acquire) == state;
}

#endif
