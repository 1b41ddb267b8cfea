/* Actors of the program's own: a type, a state, an address, and one message at a time.
 *
 * Actors live in a node, on its loop thread: thousands of them, with no thread of their
 * own, so no function of an actor may block; what blocks is given to mu_actor_work.
 *
 * A turn is one call of a function of the type: of a method, of `start`, `notice` or
 * `stop`. It is a transaction: what it sends, answers, spawns, monitors and stops leaves
 * when it has ended well, in that order, and not at all when a method has returned an
 * error. The state is the program's: a method that may fail decides first, and changes
 * the state at its end.
 *
 * Order: what one actor sends to another arrives as it was sent, calls and sends alike.
 * Nothing arrives twice. A send is lost with its node or with the link to it, without a
 * word; a call never is: each ends once, with an answer or an error, within its timeout.
 * `ran` of the error says whether the method ran (enum mu_ran).
 *
 * `self` is valid in the actor's own turns alone. Calls outside of one, or on another
 * thread, give -MU_EPRECONDITION. Values that are sent may be shared by many actors: do
 * not change them any more. NULL for a required argument gives -MU_EINVALID (error.h). */
#ifndef MUSTER_ACTOR_H
#define MUSTER_ACTOR_H

#include "coordinator.h"
#include "node.h"
#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The actor whose turn it is. */
typedef struct mu_actor mu_actor;

/* An answer that is given later. */
typedef struct mu_reply mu_reply;

/* An answer of many items, at the actor that gives them; */
typedef struct mu_stream mu_stream;

/* and at a thread that reads them. */
typedef struct mu_stream_reader mu_stream_reader;

enum { MU_ACTOR_NAME_MAX = 63 };

/* One actor: of one process (another process of the same task has others), or, if `name`
 * is not empty, the one in the cluster that has this name now. Plain data, to be copied;
 * compare with mu_address_equal. */
typedef struct mu_address {
    char type[16]; /* of the task, "worker" */
    uint32_t index;
    uint32_t number; /* of the actor in its process */
    uint64_t incarnation;
    char name[MU_ACTOR_NAME_MAX + 1]; /* then the members before say where it was */
} mu_address;

/* ---- Types ---- */

enum mu_notice_kind {
    MU_NOTICE_ANSWER = 1, /* a call of this actor has ended */
    MU_NOTICE_TIMER = 2,
    MU_NOTICE_DOWN = 3, /* an actor that is monitored has ended, or cannot be reached */
    MU_NOTICE_ROOM = 4, /* a send or call that was refused with -MU_EAGAIN fits now */
    MU_NOTICE_WORK = 5, /* a function of mu_actor_work has returned */
    MU_NOTICE_ITEM = 6, /* an item of a stream that answers a call of this actor */
    MU_NOTICE_STREAM_ROOM = 7,  /* an item that mu_stream_give refused fits now */
    MU_NOTICE_STREAM_CLOSED = 8 /* nobody wants more of a stream that this actor gives */
};

/* Valid during the turn. */
typedef struct mu_notice {
    int kind;              /* enum mu_notice_kind */
    int code;              /* WORK: what the function returned */
    uint64_t token;        /* of the call, timer, monitor, work or stream; of ROOM 0 */
    mu_address address;    /* ANSWER, ITEM, DOWN, ROOM: of the other one */
    const mu_value *value; /* ANSWER: the result; NULL when it is an error, or the end of
                              a stream. ITEM: the item; NULL when it is nil */
    const mu_error
        *error; /* ANSWER, DOWN: what went wrong; NULL: nothing did.
                   STREAM_CLOSED: why; NULL: the consumer closed it, or ended */
} mu_notice;

/* Returns 0, or a negative code: then the message has failed, with the text of
 * mu_actor_fail if that was called, and nothing that it sent leaves. */
typedef int (*mu_actor_method_fn)(mu_actor *self, void *state, const mu_value *args);

typedef struct mu_actor_method {
    const char *name; /* at most 63 bytes, without '#'; NULL ends the list */
    mu_actor_method_fn call;
} mu_actor_method;

/* Everything that actors of one type share. It outlives the node. */
typedef struct mu_actor_type {
    const char *name;               /* at most 63 bytes, without '#' */
    size_t state_size;              /* zeroed before `start` */
    const mu_actor_method *methods; /* ends with a NULL name; NULL: none */
    mu_actor_method_fn start;       /* the first turn; an error ends the actor. May be
                                       NULL */
    void (*notice)(mu_actor *self, void *state, const mu_notice *notice); /* may be
                                                                             NULL */
    /* The last turn: frees what the state holds. `why` NULL: it was stopped. May be
     * NULL. */
    void (*stop)(mu_actor *self, void *state, const mu_error *why);

    /* ---- For kept actors (MU_ACTOR_KEPT); NULL for others ---- */

    /* The whole state. It is kept when `start` has returned, and now and then. */
    int (*save)(void *state, mu_value **ret_saved);

    /* A later life begins, with zeroed memory: take over what `save` gave, when the type
     * had `version`. Records that are newer follow, by `replay`. A turn: timers are not
     * kept, and may be set here. */
    int (*load)(mu_actor *self, void *state, const mu_value *saved, unsigned version);

    /* Change the state by a record: in mu_actor_record, and when a later life begins. It
     * has nothing but its arguments. NULL: the type records its whole state only. */
    int (*replay)(void *state, const mu_value *record);
    unsigned version; /* of what `save` gives */
} mu_actor_type;

/* Let this node have actors of a type. -MU_EEXISTS: there is one of this name. */
MU_EXPORT int mu_node_register_actor(mu_node *node, const mu_actor_type *type);

/* ---- Making and ending actors ---- */

enum mu_actor_flag {
    MU_ACTOR_DETACHED = 1,  /* it does not end with the actor that spawned it */
    MU_ACTOR_REENTRANT = 2, /* it takes calls that belong to a call which it has not
                               answered yet: see mu_actor_call */
    MU_ACTOR_NEW = 4,       /* with a name: one that exists is an error, -MU_EEXISTS */
    MU_ACTOR_KEPT = 8       /* with a name: its state survives its process, see
                               mu_actor_record */
};

/* When an actor with a name is started again, with the same arguments, by a task that has
 * its type. It always is when its task is drained. */
enum mu_actor_restart {
    MU_RESTART_FAILED = 0, /* when it has died, or was lost with its process */
    MU_RESTART_NEVER = 1,
    MU_RESTART_ALWAYS = 2 /* also when it has stopped itself */
};

typedef struct mu_actor_options {
    size_t size; /* set by mu_actor_options_init */
    const char
        *task_type; /* mu_node_spawn: the task that is to have it; NULL: this one */
    int task_index;
    unsigned flags;             /* enum mu_actor_flag */
    unsigned mailbox_max;       /* messages that wait; 0: 10,000 */
    uint64_t mailbox_bytes_max; /* of their arguments; 0: 64 MiB. A larger one is taken
                                   when it is the only one */

    /* The one in the cluster of this name: 1 to 63 bytes of UTF-8 without '#', '/' and
     * control characters. NULL: none, and the members below are not used. It is made, if
     * there is none, on the task of type `task_type` (NULL: any) that offers the actor's
     * type and has the fewest actors with names. */
    const char *name;
    int restart;                 /* enum mu_actor_restart */
    unsigned restarts;           /* at most so many */
    unsigned restarts_within_ms; /* within so long; then it has failed for good */
} mu_actor_options;

/* Fill in the defaults. */
MU_EXPORT void mu_actor_options_init_sized(mu_actor_options *options, size_t size);
#define mu_actor_options_init(options) \
    mu_actor_options_init_sized(options, sizeof(mu_actor_options))

/* Make an actor, and wait until its `start` has returned: an error of it is returned, and
 * there is no actor. Not on a loop's thread. It ends when it is stopped, or with the
 * node. `options` NULL: the defaults.
 *
 * With options->name: get the actor of this name, or make it. Then *ret_address has the
 * name, and stays right when the actor is started elsewhere. It ends when it is stopped
 * by its name (mu_node_stop_actor), or as its `restart` says. -MU_EEXISTS: an actor of
 * another type has the name. If `start` fails more often than `restarts`, its last error
 * is returned. */
MU_EXPORT int mu_node_spawn(mu_node *node, const char *type, const mu_value *args,
                            const mu_actor_options *options, int64_t timeout_ms,
                            mu_error *ret_error, mu_address *ret_address);

/* The same without waiting: *ret_value is as that of mu_actor_request, and is the address
 * (mu_value_get_actor), or the error. */
MU_EXPORT int mu_actor_request_spawn(mu_node *node, const char *type,
                                     const mu_value *args,
                                     const mu_actor_options *options, int64_t timeout_ms,
                                     mu_error *ret_error, mu_remote_value **ret_value);

/* Make a child, on this node. Its `start` runs after this turn; what it is sent meanwhile
 * waits. It ends with this actor, unless it is detached. -MU_ENOTFOUND: there is no such
 * type.
 *
 * With options->name it is no child, and may be anywhere. That it cannot be made is
 * logged, and ends the calls that wait for it. */
MU_EXPORT int mu_actor_spawn(mu_actor *self, const char *type, const mu_value *args,
                             const mu_actor_options *options, mu_address *ret_address);

/* The address of the actor that has a name, or will have it: calls wait for it, up to
 * their timeouts, and so do sends, for 10 seconds. -MU_EINVALID: it is no name. */
MU_EXPORT int mu_actor_find(mu_node *node, const char *name, mu_address *ret_address);

/* The actors that have names, as a list of maps: name, type, task ("": it has none now),
 * state ("starting", "running", "waiting", "stopping", "failed"), due_ms (until it is
 * started, while it waits), epoch, restarts, error (the last, or why it waits; ""),
 * mailbox (how many messages wait for it) and oldest_ms (for how long the oldest), as its
 * process said some hundred milliseconds ago. The caller frees *ret_actors. */
MU_EXPORT int mu_actors_list(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                             mu_value **ret_actors);

enum mu_actor_stop_how {
    MU_STOP_AFTER_QUEUE = 0, /* once it has handled what waits for it now */
    MU_STOP_NOW = 1          /* callers of what waits get an error that says that it did
                                not run */
};

/* Stop an actor; itself, too. One that has ended already is fine. From a thread: */
MU_EXPORT int mu_actor_stop(mu_actor *self, const mu_address *who, int how);
MU_EXPORT int mu_node_stop_actor(mu_node *node, const mu_address *who, int how);

/* This actor is broken: the turn fails with `error`, and the actor ends with it. Returns
 * error->code, for the method to return. */
MU_EXPORT int mu_actor_die(mu_actor *self, const mu_error *error);

/* ---- Messages ---- */

/* Send a message that is not answered; an error of its method is logged where it runs.
 * -MU_EAGAIN: too many messages wait for that actor, or are on their way to it (1,024, or
 * 8 MiB, from each other node); a notice will say when there is room. -MU_ENOTFOUND:
 * there is no such actor or method, as far as this node knows. -MU_EUNAVAILABLE: its node
 * cannot be reached. `args` (NULL: nil) stays the caller's. */
MU_EXPORT int mu_actor_send(mu_actor *self, const mu_address *to, const char *method,
                            const mu_value *args);

/* The same, and the answer is a notice with `token`. Returns 0, and all further errors
 * are answers; or -MU_EAGAIN as above; -MU_EEXHAUSTED when 10,000 calls of this actor are
 * not answered. `timeout_ms` is 1 to MU_ACTOR_TIMEOUT_MAX; the method is not begun when
 * it is over.
 *
 * A call belongs to the one that its caller is handling, and has not answered when the
 * turn ends (mu_actor_reply_later). One that would be handled by an actor which waits for
 * it in this way ends at once with -MU_EPRECONDITION; the message has the whole chain. */
MU_EXPORT int mu_actor_call(mu_actor *self, const mu_address *to, const char *method,
                            const mu_value *args, int64_t timeout_ms, uint64_t token);

enum { MU_ACTOR_TIMEOUT_MAX = 24 * 3600 * 1000 };

/* Answer this message when the turn ends. Takes ownership of `value`; the last call
 * counts; without one the answer is nil. What is answered to a send is dropped. */
MU_EXPORT void mu_actor_reply(mu_actor *self, mu_value *value);

/* Set the error of this message; returns `code` for the method to return. */
MU_EXPORT int mu_actor_fail(mu_actor *self, int code, const char *format, ...)
    MU_PRINTF(3, 4);

/* The answer of this message is given later. Freed by mu_reply_give; when the actor ends
 * before, the caller gets an error at once. NULL: out of memory, or no method is
 * running. In the `start` of an actor without a name that a thread spawns, the answer is
 * that of mu_node_spawn: the address (mu_value_actor), or an error. */
MU_EXPORT mu_reply *mu_actor_reply_later(mu_actor *self);

/* The same for a call that has not begun: it waits for a thread, say. What it changes is
 * recorded in the turn that gives its answer, so in a kept actor it is as if it had not
 * come when this life ends before: the next one gets the call. NULL as above. */
MU_EXPORT mu_reply *mu_actor_put_off(mu_actor *self);

/* Give it, in a turn of the same actor: a value, of which it takes ownership (NULL: nil),
 * or an error. It leaves with the turn. In the turn of `stop` an error with MU_RAN_NO
 * says that the call has not begun: one to a name goes to the next owner. */
MU_EXPORT int mu_reply_give(mu_reply *reply, mu_value *value, const mu_error *error);

/* ---- Streams ---- */

/* A call may be answered by a stream of items: each comes once, in order, and behind all
 * of them the end, or an error. No stream ends without a word: one that is lost, with the
 * actor that gives it, its node or the link to it, ends with an error, of which `ran` is
 * MU_RAN_MAYBE; MU_RAN_YES is that of mu_stream_end. It is not sent again, and does not
 * go on with the next owner of a name, nor the next life of a kept actor. The timeout of
 * the call counts until the stream has begun; then it may last.
 *
 * Of one stream at most `ahead` items (0: 64; at most 1,024), and 8 MiB of them and one
 * item, are under way: given, and not handled by the consumer.
 *
 * This message is answered by a stream, when the turn ends; from any turn of the same
 * actor it gets items. `token` is that of its notices. NULL: out of memory, no method is
 * running, mu_actor_reply_later was called, or the actor gives 1,000 streams already. The
 * stream is freed by mu_stream_end, with the actor, when this turn fails, and when the
 * state of a kept actor is loaded anew. What is answered to a send is closed at once. */
MU_EXPORT mu_stream *mu_actor_stream(mu_actor *self, unsigned ahead, uint64_t token);

/* One more item (NULL: nil), which leaves with the turn; `value` stays the caller's.
 * -MU_EAGAIN: `ahead` items are under way; a STREAM_ROOM notice follows. -MU_ECANCELLED:
 * nobody wants it; a STREAM_CLOSED notice has come, or will. -MU_ERANGE, -MU_EINVALID:
 * the value is too deep or too large, or has references. */
MU_EXPORT int mu_stream_give(mu_stream *stream, const mu_value *value);

/* No more items, since there are no more, or because of an error. It leaves with the
 * turn, which frees the stream; no notice of it follows. Also after STREAM_CLOSED. */
MU_EXPORT int mu_stream_end(mu_stream *stream, const mu_error *error);

/* How an actor reads the streams that answer its calls with a token. Each item is an ITEM
 * notice, and counts as handled when the turn has ended; the end is the ANSWER. */
enum mu_read_how {
    MU_READ_GO_ON = 0,
    MU_READ_PAUSE = 1, /* no more notices, nor that of the end, until it goes on */
    MU_READ_CLOSE = 2  /* no more at all; also of calls that were not answered yet, which
                          are not begun if they have not */
};

/* When the turn has ended well. */
MU_EXPORT int mu_actor_read_stream(mu_actor *self, uint64_t token, int how);

/* ---- Kept actors ---- */

/* An actor with a name that is made with MU_ACTOR_KEPT goes on elsewhere with its state,
 * when its process has ended. Its type has `save` and `load`, and perhaps `replay`. What
 * it keeps is in a file beside the journal of the coordination service, so option `store`
 * of the service's host is "journal:PATH": the file is PATH.kept.
 *
 * Nothing leaves a turn before what it has recorded is in that file: no answer, no
 * message. Of two lives one can record, so what anybody has seen is never lost. A call
 * takes effect once, whatever is lost meanwhile; it is sent again by the library until
 * its time is over, and a repeat gets the same answer. So is a send, for an hour, as long
 * as the process of the sender lives: what cannot be delivered, or fails, is logged
 * there. Calls and sends of one process are taken in the order in which they were made.
 * At most 1,024 of one process are under way to one kept actor; then -MU_EAGAIN.
 * What is kept of an actor is dropped when it is stopped. One may have 256 MiB, and all
 * those of a file 1 GiB: then a turn that records something fails with -MU_EEXHAUSTED,
 * until some are stopped.
 * What a turn of a kept actor has sent is lost, once the turn is kept, if its process
 * ends just then: what must not be is asked for by whoever needs it.
 *
 * In a kept actor methods decide, and `replay` changes the state: C cannot roll a state
 * back. When a turn fails after it has recorded something, the state is loaded anew.
 *
 * Keep a record of this turn, and replay it. NULL: the whole state, as it is when the
 * turn ends. -MU_EPRECONDITION: this is no turn of a kept actor, or its type has no
 * `replay`; else what `replay` has returned: then the turn has to fail. */
MU_EXPORT int mu_actor_record(mu_actor *self, const mu_value *record);

/* The arguments of `start` of a kept actor, also in its later lives; valid while it
 * lives. NULL: it is not kept, or has none. */
MU_EXPORT const mu_value *mu_actor_args(const mu_actor *self);

/* ---- Notices ---- */

/* One DOWN notice with `token` when that actor ends, or its node is lost; at once when it
 * is not there any more. */
MU_EXPORT int mu_actor_monitor(mu_actor *self, const mu_address *who, uint64_t token);

/* No more DOWN of the monitors with this token. */
MU_EXPORT void mu_actor_unmonitor(mu_actor *self, uint64_t token);

/* One TIMER notice after `delay_ms`. -MU_EEXHAUSTED, -MU_ENOMEM. */
MU_EXPORT int mu_actor_timer(mu_actor *self, uint64_t delay_ms, uint64_t token);

/* No more TIMER of the timers with this token, once the turn has ended well. */
MU_EXPORT void mu_actor_timer_cancel(mu_actor *self, uint64_t token);

/* Call a function that may block on an executor thread, once the turn has ended well; a
 * WORK notice follows. It is not called when the node closes first. It outlives an actor
 * that ends, so `arg` is no part of the actor's state. */
MU_EXPORT int mu_actor_work(mu_actor *self, int (*blocking)(void *arg), void *arg,
                            uint64_t token);

/* ---- What an actor knows ---- */

/* The only clock (monotonic; it does not move during a turn) and chance: an actor that
 * has no other behaves the same in a simulation each time. */
MU_EXPORT uint64_t mu_actor_now_ms(mu_actor *self);
MU_EXPORT uint64_t mu_actor_random(mu_actor *self);

MU_EXPORT void mu_actor_log(mu_actor *self, const char *format, ...) MU_PRINTF(2, 3);

MU_EXPORT int mu_actor_self(const mu_actor *self, mu_address *ret_address);

/* ---- Addresses ---- */

MU_EXPORT int mu_address_equal(const mu_address *a, const mu_address *b);

/* An address as a value, a string that is also readable in logs:
 * "/job:worker/task:1#5d0c3a8e41f7b269.17", or "/actor:total" of a name. It travels
 * wherever values do. NULL: out of memory. */
MU_EXPORT mu_value *mu_value_actor(const mu_address *address);

/* -MU_EINVALID: the value is no address. */
MU_EXPORT int mu_value_get_actor(const mu_value *value, mu_address *ret_address);

/* ---- From threads ---- */

/* mu_actor_call from a thread, or from a closure's function. *ret_value is as that of
 * mu_coordinator_schedule: fetch it, be notified, cancel it, use it as an argument of a
 * closure; the caller frees it. `timeout_ms` as for mu_actor_call. A full mailbox is an
 * error of the value, -MU_EEXHAUSTED. */
MU_EXPORT int mu_actor_request(mu_node *node, const mu_address *to, const char *method,
                               const mu_value *args, int64_t timeout_ms,
                               mu_error *ret_error, mu_remote_value **ret_value);

/* What an actor's `save` gives, after what waits for it now. It is a call as others are;
 * -MU_EPRECONDITION: its type has no `save`. */
MU_EXPORT int mu_actor_request_state(mu_node *node, const mu_address *to,
                                     int64_t timeout_ms, mu_error *ret_error,
                                     mu_remote_value **ret_value);

/* What an actor waits for, and who waits for it, now: a map with name, actor (its
 * address), type, task, mailbox (how many messages), mailbox_bytes, oldest_ms (how long
 * the oldest has waited), calls (how many it waits for), and lists of the first 16:
 * waits_for (maps with to, method, for_ms, left_ms), owes (answers that it has put off:
 * method, chain) and queue (messages: method, chain, for_ms). `chain` has the calls that
 * wait for that one. A kept actor answers behind what waits for it. */
MU_EXPORT int mu_actor_request_explain(mu_node *node, const mu_address *to,
                                       int64_t timeout_ms, mu_error *ret_error,
                                       mu_remote_value **ret_value);

/* mu_actor_call from a thread, to read the stream that answers it; it does not wait.
 * `timeout_ms`: until the stream has begun. Errors of the method come with
 * mu_stream_next. An answer that is no stream is one of one item. The caller closes
 * *ret_reader. */
MU_EXPORT int mu_actor_open_stream(mu_node *node, const mu_address *to,
                                   const char *method, const mu_value *args,
                                   int64_t timeout_ms, mu_error *ret_error,
                                   mu_stream_reader **ret_reader);

/* Wait for the next item, which the caller frees. A thread gets items in batches, of one
 * half of those that may be under way, 32 at most; a batch counts as handled when the
 * next one is asked for. -MU_ERANGE: the stream has ended; -MU_EDEADLINE: nothing has
 * come within `timeout_ms` (negative: no timeout; 0: do not wait), call it again; else
 * the error of the stream, each time. One thread at a time, and none of a loop. */
MU_EXPORT int mu_stream_next(mu_stream_reader *reader, int64_t timeout_ms,
                             mu_error *ret_error, mu_value **ret_value);

/* No more is wanted: whoever gives the stream gets a STREAM_CLOSED notice. Never waits,
 * any thread, also after the node was closed. NULL is fine. */
MU_EXPORT void mu_stream_close(mu_stream_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
