/* The actor kernel of one node: actors, mailboxes, timers, monitors, turns.
 *
 * A kernel has one thread, the loop's. It has no clock, no network and no threads of its
 * own: it reaches everything outside through its world. There is no global state. */
#ifndef MU_RUNTIME_KERNEL_H
#define MU_RUNTIME_KERNEL_H

#include "muster/error.h"
#include "runtime/kernel/system_messages.h"
#include "runtime/kernel/world.h"
#include "runtime/message/pool.h"

struct mu__kernel;

/* What a handler is called with. Valid during the call only. */
struct mu__ctx {
    struct mu__kernel *kernel;
    mu__pid self;
    struct mu__msg *current; /* the message being handled; see mu__claim */
};

typedef void (*mu__handle_fn)(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

struct mu__handler {
    uint16_t kind;
    mu__handle_fn handle;
};

/* A handler for messages that an actor has no use for. */
void mu__ignore(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A kind of actor: its handlers and functions, shared by all actors of the kind. */
struct mu__behavior {
    const char *name;
    size_t state_size;               /* zeroed before init */
    size_t (*more)(const void *arg); /* zeroed bytes behind the state; may be NULL */
    uint32_t mailbox_max;            /* 0: MU__MAILBOX_MAX */
    const struct mu__handler *handlers;
    size_t handlers_count;
    int (*init)(struct mu__ctx *ctx, void *state, const void *arg); /* may be NULL */

    /* Called after init, and each time that the actor has handled some of its messages,
     * before another actor runs; not when it is stopping. What it sends is handled as
     * what a handler sends. May be NULL. */
    void (*after_batch)(struct mu__ctx *ctx, void *state);
    void (*done)(struct mu__ctx *ctx, void *state); /* may be NULL */
};

/* Bounds. A full mailbox refuses: the sender gets -MU_EEXHAUSTED and the message counts
 * as a dead letter. Messages of the kernel itself (timers, downs, node news, finished
 * work) are exempt, since their number is bounded by the actor's own requests. */
#ifdef MUSTER_TINY
enum {
    MU__MAILBOX_MAX = 64,
    MU__TURN_MESSAGES = 2,
    MU__ACTOR_BATCH = 1,
    MU__HELD_MAX = 64,
    MU__ACTORS_MAX = 64,
    MU__TIMERS_MAX = 64,
    MU__READS_FULL = 8,
    MU__READS_MAX = 1 << 10
};
#else
enum {
    MU__MAILBOX_MAX = 1 << 20,
    MU__TURN_MESSAGES = 4096, /* handled in one turn, over all actors */
    MU__ACTOR_BATCH = 64,     /* handled of one actor before the next one runs */
    MU__HELD_MAX = 1 << 16,   /* messages that one actor holds back */
    MU__ACTORS_MAX = 1 << 20,
    MU__TIMERS_MAX = 1 << 20,
    MU__READS_FULL = 1024,  /* with so many reads of a node that is behind, or frames
                               of MU__READS_BYTES, its link is not read, */
    MU__READS_MAX = 1 << 16 /* and further ones are dropped: the wire reads on */
};
#endif

/* A mailbox_max for actors whose senders limit themselves: by windows and queues, and by
 * the links, which stop reading while MU__QUEUED_PAUSE messages wait in mailboxes. */
#define MU__MAILBOX_BY_SENDERS UINT32_MAX

enum { MU__QUEUED_PAUSE = 1 << 16 };

enum {
    MU__READS_BYTES = 16 << 20,
    MU__READS_BYTES_MAX = 64 << 20, /* as MU__READS_MAX, in frames; one may be larger */
    MU__OWED_BYTES = 4 << 20        /* a node to which actors owe more is behind */
};

/* Numbers below this one are for actors that other nodes address by number. */
enum { MU__ACTOR_NAMED_MAX = 16 };

struct mu__kernel_counters {
    uint64_t turns;
    uint64_t messages;     /* handled */
    uint64_t dead_letters; /* no such actor, no handler, or a full mailbox */
    uint32_t actors;
    uint32_t timers;
    uint32_t queued; /* in mailboxes now */
};

/* `schema` describes every message and outlives the kernel, as `world` does. */
int mu__kernel_new(struct mu__world *world, const struct mu__schema *schema,
                   struct mu__kernel **ret_kernel);

/* Ends every actor (its done() runs), frees everything. Loop thread, outside of turns.
 * Work that is still with the executor must have come back before. */
void mu__kernel_free(struct mu__kernel *kernel);

/* Whether this is inside of a turn: no other one can be taken. Loop thread. */
bool mu__kernel_is_in_turn(const struct mu__kernel *kernel);

/* Handle what is due: timers first, then at most MU__TURN_MESSAGES messages round robin.
 * Asks the world for another turn when work or timers are left. A timer set inside a
 * handler never fires in the same turn. */
void mu__kernel_turn(struct mu__kernel *kernel);

/* Put a message that came from outside (a link, another thread's inbox) into its actor's
 * mailbox. Takes msg. -MU_ENOTFOUND, -MU_EEXHAUSTED. Does not wake the world: call
 * mu__kernel_turn afterwards. */
int mu__kernel_deliver(struct mu__kernel *kernel, struct mu__msg *msg);

/* Notify the actors that watch nodes. Node numbers are never used again. The strings are
 * copied. `node_down` also notifies the monitors of actors on that node; `left`: the node
 * said goodbye. */
void mu__kernel_node_up(struct mu__kernel *kernel, uint32_t node, const char *type,
                        uint32_t index, uint64_t incarnation, const char *address);
void mu__kernel_node_down(struct mu__kernel *kernel, uint32_t node, const char *reason,
                          bool left);

/* What this node has proven to a node that is up; until then everything. */
void mu__kernel_node_right(struct mu__kernel *kernel, uint32_t node,
                           enum mu__right right);

/* A node is behind: more waits to be sent to it than is good. Its reads, by the column of
 * the message table, are not handled until it has caught up, and then in their order; so
 * who asks for more than it reads takes no memory but for what it asks. */
void mu__kernel_node_behind(struct mu__kernel *kernel, uint32_t node, bool is_behind);

/* After a turn: the next node whose link is not to be read from now on, or is again.
 * False: there is none. */
bool mu__kernel_next_full(struct mu__kernel *kernel, uint32_t *ret_node,
                          bool *ret_is_full);

/* Notify the same actors of a task that cannot be reached (it refused us, it does not
 * answer). */
void mu__kernel_node_trouble(struct mu__kernel *kernel, const char *type, uint32_t index,
                             const char *reason);

/* The same of a task that has refused this node for good. */
void mu__kernel_node_refused(struct mu__kernel *kernel, const char *type, uint32_t index,
                             const char *reason);

void mu__kernel_counters(const struct mu__kernel *kernel,
                         struct mu__kernel_counters *ret_counters);

struct mu__pool *mu__kernel_pool(struct mu__kernel *kernel);
const struct mu__schema *mu__kernel_schema(const struct mu__kernel *kernel);
struct mu__world *mu__kernel_world(struct mu__kernel *kernel);

/* Start an actor. `number` 0 takes the next free one; 1 to MU__ACTOR_NAMED_MAX - 1 is
 * that one (-MU_EEXISTS when taken). `arg` is passed to init and not stored. */
int mu__spawn(struct mu__kernel *kernel, const struct mu__behavior *behavior,
              uint32_t number, const void *arg, mu__pid *ret_pid);

/* End an actor from outside or (with ctx->self) from inside: after the current message.
 * Its messages and timers are dropped, its monitors are notified. */
void mu__stop(struct mu__kernel *kernel, mu__pid pid);

/* The state of a living actor; NULL when it has ended. For tests and for the member that
 * owns the kernel; actors talk by messages. */
void *mu__actor_state(struct mu__kernel *kernel, mu__pid pid);

/* ---- What an actor may do, inside a handler ---- */

/* A fresh message with a zeroed body; NULL when out of memory. mu__send takes NULL and
 * answers -MU_ENOMEM, so that the answer can be passed on after filling in. */
struct mu__msg *mu__msg_new(struct mu__ctx *ctx, uint16_t kind);

/* Queue `msg` for `to`, on this node or another.
 *
 * Owns:    takes `msg`, whatever is returned.
 * Returns: 0; -MU_ENOTFOUND, -MU_EEXHAUSTED, -MU_EUNAVAILABLE or -MU_EPERMISSION (see
 *          below) if it was dropped here.
 *          0 promises nothing about delivery: peers and links may fail later. */
int mu__send(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg);

/* Whether `node` would drop messages of this kind, since this node has not proven the
 * right to them; then *ret_error (NULL is fine) says so: -MU_EPERMISSION. */
bool mu__send_is_forbidden(const struct mu__ctx *ctx, uint32_t node, uint16_t kind,
                           mu_error *ret_error);

/* Keep the message being handled: the caller now owns it and must send it on, or free it
 * with mu__msg_free. At most once in a handler. */
struct mu__msg *mu__claim(struct mu__ctx *ctx);
void mu__msg_free(struct mu__ctx *ctx, struct mu__msg *msg);

/* This actor keeps back so many bytes of answers to a node (negative: not any longer).
 * They count as if they waited in its link. */
void mu__owe(struct mu__ctx *ctx, uint32_t node, int64_t bytes);

/* Whether nothing more should be sent to a node for now (mu__kernel_node_behind). */
bool mu__is_behind(const struct mu__ctx *ctx, uint32_t node);

/* From the next message on this actor has the handlers of another behavior, with the same
 * state; the other's `done` ends it. -MU_ENOMEM, but not for one that the actor has had
 * before. */
int mu__become(struct mu__ctx *ctx, const struct mu__behavior *behavior);

/* Hold back the message being handled, until mu__release_held: then all that were held
 * are handled in their order, before all that came meanwhile. Of one beyond MU__HELD_MAX
 * nothing is left: it counts as a dead letter. */
void mu__hold(struct mu__ctx *ctx);
void mu__release_held(struct mu__ctx *ctx);

/* Handle a claimed message later once more, with its sender. Takes it. */
void mu__handle_again(struct mu__ctx *ctx, struct mu__msg *msg);

/* One TIMER message with `token` after `delay_ms` (0: in the next turn). Returns a number
 * for mu__timer_cancel, 0 when there are MU__TIMERS_MAX timers already. */
uint64_t mu__timer_set(struct mu__ctx *ctx, uint64_t delay_ms, uint64_t token);

/* No TIMER message of it arrives any more, unless it is in the mailbox already. 0 and the
 * number of a timer that has fired are fine. */
void mu__timer_cancel(struct mu__ctx *ctx, uint64_t timer);

/* One DOWN message when `pid` ends or its node is lost; at once when it is not there. */
int mu__monitor(struct mu__ctx *ctx, mu__pid pid);

/* NODE_UP, NODE_DOWN and NODE_TROUBLE from now on; NODE_UP at once for the nodes that
 * are up. */
int mu__watch_nodes(struct mu__ctx *ctx);

uint64_t mu__now_ms(struct mu__ctx *ctx);
uint64_t mu__turn(const struct mu__ctx *ctx); /* the number of the present one */
uint64_t mu__random(struct mu__ctx *ctx);
uint64_t mu__secret(struct mu__ctx *ctx);
void mu__submit(struct mu__ctx *ctx, struct mu__work *work);

/* Take back work that has not begun: true, and no WORK_DONE comes for it. */
bool mu__withdraw(struct mu__ctx *ctx, struct mu__work *work);
void mu__log(struct mu__ctx *ctx, enum mu__log_level level, const char *format, ...)
    MU_PRINTF(3, 4);

/* The body of a message, as the struct that its table row made. */
static inline void *mu__body(struct mu__msg *msg)
{
    return msg->body;
}

#endif
