/* Calls and posts of a node's threads to its actors. */
#ifndef MU_NODE_NODE_CALL_H
#define MU_NODE_NODE_CALL_H

#include "actors/call.h"
#include "runtime/base/list.h"
#include "runtime/uv/spin.h"

#include "muster/node.h"

#include <stdatomic.h>
#include <uv.h>

/* A call that was posted and not completed. On the waiting thread's stack, or on the heap
 * for a call that nobody waits for. */
struct mu__pending {
    struct mu__list_node in_list; /* of the node's calls */
    struct mu__call *call;
    struct mu_node *node;
    void (*finished)(struct mu__pending *pending); /* on the loop; may free it */
    uv_sem_t woken;                                /* when somebody waits */
};

/* Posts and calls of the program's threads. */
struct mu__node_calls {
    atomic_uint posting;     /* threads that saw it open and have not posted yet */
    struct mu__list pending; /* struct mu__pending; guarded by the node's lock */
    struct mu__spin spin;    /* of the threads that wait for one */
};

bool mu__node_on_loop(const mu_node *node);

/* Whether this thread may wait for the node: -MU_EPRECONDITION on its loop's thread. */
int mu__node_may_wait(const mu_node *node, mu_error *ret_error);

/* Post `call` to an actor and wait until it is completed; returns call->code, and copies
 * call->error when that is an error. -MU_EPRECONDITION on the loop's own thread,
 * -MU_ECLOSED when the node is closed. */
int mu__node_call(mu_node *node, uint32_t actor_number, struct mu__call *call,
                  mu_error *ret_error);

/* The same for a call that its actor completes as soon as it gets it: also on the loop's
 * own thread, unless that is inside of a turn (a callback of the node). */
int mu__node_call_at_once(mu_node *node, uint32_t actor_number, struct mu__call *call);

/* Post it and return; `finished` is called on the loop, also when the node is closed
 * first. Not called after an error here. */
int mu__node_call_later(mu_node *node, uint32_t actor_number, struct mu__pending *pending,
                        struct mu__call *call,
                        void (*finished)(struct mu__pending *pending));

/* A message that was made and not posted. */
void mu__node_drop_msg(struct mu__msg *msg);

/* Post a message for an actor. Takes it, whatever is returned. Any thread. */
int mu__node_post(mu_node *node, uint32_t actor_number, struct mu__msg *msg);

/* The same, but takes it only when 0 is returned. */
int mu__node_try_post(mu_node *node, uint32_t actor_number, struct mu__msg *msg);

/* The process of another task has ended, and nobody will start it again: what waits for
 * that task on this node, or at the coordination service if this node hosts it, fails.
 * `what` is the predicate of a message: "was killed by signal 9". Any thread. */
void mu__node_task_ended(mu_node *node, const char *type, unsigned index,
                         const char *what);

#endif
