/* The program's side of the supervisor. One on every node. A closure is sent to the chief
 * when the chief has room for it (ROOM_ALLOW), and waits in the client until then.
 *
 * Hears:  SUBMIT, SCHEDULE_PENDING, CANCEL_FUTURE, RELEASE_HELD and CALL from the node's
 *         own program; RESOLVED, FETCHED, FAULT and the answers to requests (STATUS,
 *         PER_WORKER_MADE, DRAINED) and ROOM_ALLOW from the supervisor; node news; its
 *         timers
 * Says:   SCHEDULE, CANCEL_CLOSURE, CANCEL_ALL, FETCH, RELEASE, REPORT, ROOM_REQUEST and
 *         requests (STATUS_GET, PER_WORKER_MAKE, DRAIN, FORGET) to the supervisor
 * Owns:   a reference to each future that is not resolved; closures whose inputs are not
 *         ready, and those for which the chief has no room
 * Fails: never by itself. When the chief is lost, all outstanding closures are aborted */
#ifndef MU_ACTORS_CLIENT_H
#define MU_ACTORS_CLIENT_H

#include "actors/client/future.h"
#include "runtime/base/list.h"
#include "runtime/kernel/kernel.h"

enum { MU__ERRORS_STORED_MAX = 1024 };

struct mu__client_config {
    bool is_chief;            /* the supervisor is on this node */
    uint32_t queue_max;       /* closures scheduled and not resolved */
    const char *chief;        /* "/job:chief/task:0 at tcp://...", for messages */
    uint64_t queue_bytes_max; /* of the arguments of those; 0: 1 GiB */
};

/* How far the error of a closure is handled. */
enum mu__session_phase {
    MU__SESSION_FINE,       /* there is none */
    MU__SESSION_FAILED,     /* a closure failed; no call has asked for the error yet */
    MU__SESSION_CANCELLING, /* one has: the outstanding closures are being cancelled */
    MU__SESSION_RAISABLE    /* no closure is outstanding: the error may be raised */
};

/* One of the errors stored for the program. */
struct mu__error_entry {
    struct mu__error_entry *next;
    mu_error error;
};

/* Counts shared by the program's threads and the client actor. Where nothing else is
 * said, only the loop thread writes them. */
struct mu__session {
    uint64_t closures_max; /* bounds; 0: none. Set before the session begins */
    uint64_t bytes_max;
    atomic_uint waiting;            /* threads that wait for room; by the program */
    atomic_uint_fast64_t scheduled; /* closures admitted: see below; by both sides */
    atomic_uint_fast64_t resolved;
    atomic_uint_fast64_t finished;
    atomic_uint_fast64_t failed;
    atomic_uint_fast64_t cancelled;
    atomic_uint_fast64_t retried;
    atomic_int phase;
    atomic_uint chief_epoch;              /* the client actor's: see struct mu__held */
    atomic_uint_fast64_t bytes_scheduled; /* of arguments, admitted; by both sides */
    atomic_uint_fast64_t bytes_resolved;
    _Atomic(struct mu__error_entry *) errors; /* the latest first: pushed by the loop,
                                                 taken as a whole by the program */
    atomic_uint errors_stored; /* in `errors`, or taken and unread; by both sides */
    atomic_uint_fast64_t errors_lost; /* not stored, as there were too many */

    /* Keep the bytes that came with an error, whose `data` is `number`; on the loop
     * thread. Takes `data`. NULL: they are dropped. */
    void (*keep_data)(struct mu__session *session, uint32_t number, mu_value *data);
};

/* The operations of calls: call.operation. */
enum mu__client_operation {
    MU__CLIENT_OPEN,    /* begin a session; waits for the chief */
    MU__CLIENT_REACH,   /* wait until the chief is connected */
    MU__CLIENT_CLOSE,   /* end the session: outstanding closures are cancelled */
    MU__CLIENT_JOIN,    /* wait until no closure is outstanding; raises an error */
    MU__CLIENT_RAISE,   /* cancel the rest, then raise the error, to all JOIN and RAISE
                           calls that wait; 0 when there is none */
    MU__CLIENT_ROOM,    /* wait until there is room to schedule, in the order of calls */
    MU__CLIENT_FETCH,   /* wait until the results of futures are here */
    MU__CLIENT_STATUS,  /* the supervisor's status */
    MU__CLIENT_EXPLAIN, /* why a future is not resolved */
    MU__CLIENT_REQUEST  /* send the caller's message to the supervisor */
};

struct mu__client_call;
struct mu__pending_closure;

/* A call or a closure that waits for a future. It is in the list of the future while
 * `link` is not NULL. */
struct mu__waiter {
    struct mu__waiter *next;
    struct mu__waiter **link; /* the pointer to this waiter in the list */
    mu_remote_value *future;
    struct mu__client_call *call; /* NULL: the closure waits */
    struct mu__pending_closure *closure;
};

struct mu__client_call {
    struct mu__call call;
    struct mu__session *session; /* OPEN */
    struct mu__list_node node;   /* ROOM: in the queue of waiting calls */
    uint64_t bytes;              /* ROOM: for arguments of that size */
    bool admits;                 /* ROOM: admit a closure of that size */
    bool raises;                 /* ROOM: becomes a RAISE when a closure fails */
    bool admitted;               /* the answer; false: an error must be raised first */
    mu_remote_value *future;     /* FETCH of one; EXPLAIN */
    struct mu__waiter *waiters;  /* FETCH of many: the caller sets the futures; NULL:
                                    FETCH of `future` */
    size_t waiters_count;
    bool until_ready;        /* FETCH: pinned results stay on their workers */
    bool at_once;            /* RAISE: -MU_EAGAIN instead of waiting; REQUEST:
                                -MU_EUNAVAILABLE without a chief */
    const char *late;        /* REQUEST: the message about a timeout while the
                                chief answers other requests; NULL: not asked */
    struct mu__msg *request; /* REQUEST: the message, whose body begins with a
                                token; if it is not NULL afterwards, the caller
                                owns it again */
    bool explains_timeout;   /* the actor's: the timeout has passed, and a status
                                request shows whether the chief answers */
    mu_value *status;        /* STATUS, EXPLAIN: the answer, the caller's */
    uint64_t input;          /* REQUEST of PER_WORKER_MAKE: the answer */
    uint16_t chief_epoch;    /* of the chief that gave `input` */

    /* The actor's. */
    struct mu__waiter one; /* FETCH of one */
    size_t missing;        /* futures that are not ready */
    size_t error_at;       /* index of the waiter whose error the call has */
    uint64_t token;        /* of the request to the supervisor */
};

/* A future or per-worker value that a closure's arguments refer to. */
struct mu__closure_input {
    struct mu__waiter waiter; /* in the list of a future that is not resolved */
    struct mu__held *held;    /* a reference */
};

/* A closure with futures or per-worker values among its arguments. The program makes it;
 * the client actor owns it from SCHEDULE_PENDING on, until the closure is sent or
 * resolved. */
struct mu__pending_closure {
    struct mu__list_node node;
    struct mu__list *list; /* that contains it; NULL: it waits for no input */
    struct mu__msg *msg;   /* its SUBMIT, without arguments, inputs and future */
    uint8_t *numbers;      /* space in `msg` for the numbers of the inputs */
    mu_value *args;
    mu_remote_value *future; /* NULL: the result is not needed */
    uint64_t bytes;          /* counted for the arguments so far */
    uint32_t inputs_count;

    /* The actor's. */
    uint32_t slot;
    uint32_t missing; /* inputs that are not ready */
    uint64_t since_ms;
    uint64_t timer; /* of its deadline; 0: none */

    struct mu__closure_input inputs[]; /* in the order of the arguments, each once */
};

/* Takes references to `args` and to each of `held`. NULL: out of memory. */
struct mu__pending_closure *mu__pending_new(struct mu__held *const *held, uint32_t count,
                                            const mu_value *args);

/* Frees its message, too, but not its future. */
void mu__pending_free(struct mu__pending_closure *closure);

extern const struct mu__behavior mu__client; /* init takes the config */

/* Describe, from a status of the chief, the first closure in flight, or the missing
 * workers if there is none. */
void mu__client_describe_status(const mu_value *status, char *out, size_t size);

/* ---- Bounds of a program's outstanding closures ----
 *
 * They bound the number of closures, and the bytes of their arguments. A closure is
 * admitted before it is sent to the client actor: by the thread that schedules it, or by
 * the actor for a thread that waits. Each admission ends exactly once: the actor resolves
 * the closure, or the thread withdraws it.
 *
 * What is in use is the difference of two counts: one that grows with each admission, by
 * compare-and-swap, and one that only the loop writes. A thread reads the second one
 * first, so that it may see less room than there is, and never more. */
static inline uint64_t mu__admission_closures(const struct mu__session *session)
{
    uint64_t resolved = atomic_load_explicit(&session->resolved, memory_order_acquire);

    return atomic_load_explicit(&session->scheduled, memory_order_acquire) - resolved;
}

static inline uint64_t mu__admission_bytes(const struct mu__session *session)
{
    uint64_t resolved =
        atomic_load_explicit(&session->bytes_resolved, memory_order_acquire);

    return atomic_load_explicit(&session->bytes_scheduled, memory_order_acquire) -
           resolved;
}

/* Whether `size` fits besides `used`. More than `max` fits when nothing else is used. */
static inline bool mu__admission_fits(uint64_t used, uint64_t size, uint64_t max)
{
    return max == 0 || used == 0 || (used <= max && size <= max - used);
}

/* Admit a closure with `bytes` of arguments, regardless of waiting threads; false: there
 * is no room. Any thread. */
bool mu__admission_take(struct mu__session *session, uint64_t bytes);

/* The same for a thread that has not waited: false also while others wait. */
static inline bool mu__admission_try(struct mu__session *session, uint64_t bytes)
{
    return atomic_load(&session->waiting) == 0 && mu__admission_take(session, bytes);
}

/* Undo the admission of a closure that was not sent to the client actor. */
void mu__admission_withdraw(struct mu__session *session, uint64_t bytes);

#endif
