/* The program's side of the supervisor. One on every node.
 *
 * Hears:  SCHEDULE and CALL from the node's own program; RESOLVED and STATUS from the
 *         supervisor; node news; its timers
 * Says:   SCHEDULE, CANCEL_ALL, STATUS_GET, REPORT to the supervisor
 * Owns:   a reference to each future that is not resolved
 * Fails:  never by itself. When the chief is lost, what was scheduled there is aborted */
#ifndef MU_ACTORS_CLIENT_H
#define MU_ACTORS_CLIENT_H

#include "actors/future.h"
#include "runtime/kernel.h"

struct mu__client_config {
    bool is_chief;          /* the supervisor is on this node */
    uint32_t queue_max;     /* scheduled and not resolved */
    const char *chief;      /* "/job:chief/task:0 at tcp://...", for messages */
};

/* Where an error of a closure stands. */
enum mu__session_phase {
    MU__SESSION_FINE,
    MU__SESSION_FAILED,     /* a closure failed; nobody was told yet */
    MU__SESSION_CANCELLING, /* somebody wants to hear: the rest is being cancelled */
    MU__SESSION_RAISABLE    /* nothing is queued or in flight: the error may be raised */
};

/* What the program and its client actor share: counts, written by one side each. */
struct mu__session {
    atomic_uint_fast64_t scheduled; /* by the program's threads */
    atomic_uint_fast64_t resolved;  /* by the loop, as all below */
    atomic_uint_fast64_t finished;
    atomic_uint_fast64_t failed;
    atomic_uint_fast64_t cancelled;
    atomic_uint_fast64_t retried;
    atomic_int phase;
};

/* What a program asks; `call.operation`. */
enum mu__client_operation {
    MU__CLIENT_OPEN,    /* begin a session; waits for the chief */
    MU__CLIENT_CLOSE,   /* end it: what is under way is cancelled */
    MU__CLIENT_JOIN,    /* until nothing is outstanding; raises an error */
    MU__CLIENT_RAISE,   /* cancel the rest, then raise the error; 0 when there is none */
    MU__CLIENT_ROOM,    /* until there is room to schedule */
    MU__CLIENT_FETCH,   /* until a future is resolved */
    MU__CLIENT_STATUS,
    MU__CLIENT_OPERATIONS_COUNT
};

struct mu__client_call {
    struct mu__call call;
    struct mu__session *session;    /* OPEN */
    mu_remote_value *future;        /* FETCH */
    mu_value *status;               /* STATUS: the answer, the caller's */
    uint64_t token;                 /* of the question to the supervisor */
    bool at_once;                   /* RAISE: -MU_EAGAIN instead of waiting */
};

extern const struct mu__behavior mu__client;    /* init takes the config */

#endif
