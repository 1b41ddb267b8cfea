/* The program's side of the supervisor. One on every node. A closure goes to the chief
 * when that has room for it (ROOM_ALLOW), and waits here until then.
 *
 * Hears:  SUBMIT, SCHEDULE_PENDING, CANCEL_FUTURE, RELEASE_HELD and CALL from the node's
 *         own program; RESOLVED, FETCHED, FAULT and the answers to requests (STATUS,
 *         PER_WORKER_MADE, DRAINED) and ROOM_ALLOW from the supervisor; node news; its
 *         timers
 * Says:   SCHEDULE, CANCEL_CLOSURE, CANCEL_ALL, FETCH, RELEASE, REPORT, ROOM_REQUEST and
 *         requests (STATUS_GET, PER_WORKER_MAKE, DRAIN, FORGET) to the supervisor
 * Owns:   a reference to each future that is not resolved; closures whose arguments are
 *         not there yet, and those for which the chief has no room
 * Fails:  never by itself. When the chief is lost, what was scheduled there is aborted */
#ifndef MU_ACTORS_CLIENT_H
#define MU_ACTORS_CLIENT_H

#include "actors/client/future.h"
#include "runtime/base/list.h"
#include "runtime/kernel/kernel.h"

enum { MU__ERRORS_STORED_MAX = 1024 };

struct mu__client_config {
    bool is_chief;          /* the supervisor is on this node */
    uint32_t queue_max;     /* scheduled and not resolved */
    const char *chief;      /* "/job:chief/task:0 at tcp://...", for messages */
    uint64_t queue_bytes_max;   /* of the arguments of those; 0: 1 GiB */
};

/* Where an error of a closure stands. */
enum mu__session_phase {
    MU__SESSION_FINE,
    MU__SESSION_FAILED,     /* a closure failed; nobody was told yet */
    MU__SESSION_CANCELLING, /* somebody wants to hear: the rest is being cancelled */
    MU__SESSION_RAISABLE    /* nothing is queued or in flight: the error may be raised */
};

/* An error among those that are kept for the program. */
struct mu__error_entry {
    struct mu__error_entry *next;
    mu_error error;
};

/* What the program and its client actor share: counts, written by one side each. */
struct mu__session {
    uint64_t closures_max;          /* bounds; 0: none. Set before the session begins */
    uint64_t bytes_max;
    atomic_uint waiting;            /* threads that wait for room */
    atomic_uint_fast64_t scheduled; /* admitted: see below */
    atomic_uint_fast64_t resolved;  /* by the loop, as all below */
    atomic_uint_fast64_t finished;
    atomic_uint_fast64_t failed;
    atomic_uint_fast64_t cancelled;
    atomic_uint_fast64_t retried;
    atomic_int phase;
    atomic_uint_fast64_t bytes_scheduled;   /* of arguments, admitted; by both sides */
    atomic_uint_fast64_t bytes_resolved;    /* by the loop */
    _Atomic(struct mu__error_entry *) errors; /* the latest first: put there by the loop,
                                                 taken as a whole by the program */
    atomic_uint errors_stored;        /* there, or taken and not read: by both sides */
    atomic_uint_fast64_t errors_lost;
};

/* What a program asks; `call.operation`. */
enum mu__client_operation {
    MU__CLIENT_OPEN,    /* begin a session; waits for the chief */
    MU__CLIENT_REACH,   /* until the chief is there */
    MU__CLIENT_CLOSE,   /* end it: what is under way is cancelled */
    MU__CLIENT_JOIN,    /* until nothing is outstanding; raises an error */
    MU__CLIENT_RAISE,   /* cancel the rest, then raise the error; 0 when there is none */
    MU__CLIENT_ROOM,    /* until there is room to schedule; in the order of asking */
    MU__CLIENT_FETCH,   /* until the contents of futures are here */
    MU__CLIENT_STATUS,
    MU__CLIENT_EXPLAIN, /* why a future is not resolved */
    MU__CLIENT_REQUEST, /* a request to the supervisor that the caller has written */
    MU__CLIENT_OPERATIONS_COUNT
};

struct mu__client_call;
struct mu__pending_closure;

/* Somebody who waits for a future: a call, or a closure. In the list of the future while
 * `link` is not NULL. */
struct mu__waiter {
    struct mu__waiter *next;
    struct mu__waiter **link;       /* what points to this one */
    mu_remote_value *future;
    struct mu__client_call *call;
    struct mu__pending_closure *closure;
};

struct mu__client_call {
    struct mu__call call;
    struct mu__session *session;    /* OPEN */
    struct mu__list_node node;      /* ROOM: among those that wait */
    uint64_t bytes;                 /* ROOM: for arguments of that size */
    bool admits;                    /* ROOM: admit a closure of that size */
    bool admitted;                  /* the answer: false when an error is to be raised
                                       first */
    mu_remote_value *future;        /* FETCH of one; EXPLAIN */
    struct mu__waiter *waiters;     /* FETCH of many: the caller fills in the futures; */
    size_t waiters_count;           /* NULL: of `future` */
    bool until_ready;               /* FETCH: what is kept by a worker may stay there */
    bool at_once;                   /* RAISE: -MU_EAGAIN instead of waiting; REQUEST:
                                       -MU_EUNAVAILABLE without a chief */
    const char *late;               /* REQUEST: how things are at the limit; NULL: the
                                       chief did not answer */
    struct mu__msg *request;        /* REQUEST, and EXPLAIN if it is to be passed on:
                                       begins with a token; the caller's again if it is
                                       not NULL afterwards */
    bool explains_timeout;          /* the actor's: the limit has passed, and the chief
                                       is asked whether it is there */
    mu_value *status;               /* STATUS, EXPLAIN: the answer, the caller's */
    uint64_t input;                 /* REQUEST of PER_WORKER_MAKE: the answer */
    uint16_t chief_epoch;           /* and of which chief it is */
    struct mu__waiter one;          /* the actor's, as what follows */
    size_t missing;
    size_t error_at;                /* which waiter the error is of */
    uint64_t token;                 /* of the request to the supervisor */
};

/* One of the things that a closure has references to. */
struct mu__closure_input {
    struct mu__waiter waiter;       /* of a future that is not resolved */
    struct mu__held *held;          /* a reference */
};

/* A closure that uses what is not there yet, or what workers keep. The program makes it;
 * the client actor owns it from SCHEDULE_PENDING on, until the closure is resolved. */
struct mu__pending_closure {
    struct mu__list_node node;
    struct mu__list *list;          /* that it is in; NULL: it was sent */
    struct mu__msg *msg;            /* its SUBMIT, but for arguments, inputs, future */
    uint8_t *numbers;               /* room in it for the numbers of the inputs */
    mu_value *args;
    mu_remote_value *future;        /* NULL: nobody wants the result */
    uint64_t bytes;                 /* counted for the arguments so far */
    uint64_t since_ms;              /* the actor's, as what follows */
    uint64_t timer;
    uint32_t slot;
    uint32_t missing;
    uint32_t inputs_count;
    struct mu__closure_input inputs[];      /* in the order of the arguments, each once */
};

/* NULL: out of memory. References to `held` are taken, and to `args`. */
struct mu__pending_closure *mu__pending_new(struct mu__held *const *held, uint32_t count,
                                            const mu_value *args);

/* Frees its message, too. Not its future. */
void mu__pending_free(struct mu__pending_closure *closure);

extern const struct mu__behavior mu__client;    /* init takes the config */

/* Words of the first closure in flight, from a status of the chief, or of the workers
 * that are missing. */
void mu__client_describe_status(const mu_value *status, char *out, size_t size);

/* ---- The bounds of what a program has scheduled and not resolved ----
 *
 * Closures, and bytes of their arguments. A closure is admitted before anything is sent,
 * by the thread that schedules it, or by the client actor for a thread that waits;
 * whatever was admitted ends exactly once: resolved by the actor, or withdrawn by its
 * thread.
 *
 * What is in use is the difference of two counts: one that grows with what is admitted,
 * by compare-and-swap, and one that only the loop writes. A thread reads the second one
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

/* One that is larger than the bound is admitted when it is the only one. */
static inline bool mu__admission_fits(uint64_t used, uint64_t size, uint64_t max)
{
    return max == 0 || used == 0 || (used <= max && size <= max - used);
}

/* Whether a closure with `bytes` of arguments has been admitted; false: there is no room.
 * Does not look at who waits. Any thread. */
bool mu__admission_take(struct mu__session *session, uint64_t bytes);

/* The same for a thread that has not waited: those that wait come first. */
static inline bool mu__admission_try(struct mu__session *session, uint64_t bytes)
{
    return atomic_load(&session->waiting) == 0 && mu__admission_take(session, bytes);
}

/* An admitted closure that was not sent to the client actor. */
void mu__admission_withdraw(struct mu__session *session, uint64_t bytes);

#endif
