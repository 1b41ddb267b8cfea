/* Functions of the program's own that a request runs on a thread (MU__REQUEST_CALL). */
#ifndef MU_RESOLVER_REQUEST_CALL_H
#define MU_RESOLVER_REQUEST_CALL_H

#include <stdatomic.h>
#include <stdbool.h>

/* A function of the program's own, which may block: with what it needs, and room for what
 * it finds. Counted, since its thread may go on when nobody waits for it any more. */
struct mu__request_call {
    void (*run)(struct mu__request_call *call);
    void (*free)(struct mu__request_call *call); /* the last one has let go; any thread */
    atomic_uint refs;
    atomic_int phase; /* of request_call.c */
};

/* One holder, who lets go of it with mu__request_call_unref. Any thread, as all of
 * these. */
void mu__request_call_init(struct mu__request_call *call,
                           void (*run)(struct mu__request_call *call),
                           void (*free)(struct mu__request_call *call));
void mu__request_call_ref(struct mu__request_call *call);
void mu__request_call_unref(struct mu__request_call *call);

/* The requester's: run it, unless it was called off. */
void mu__request_call_run(struct mu__request_call *call);

/* Nobody wants it: if it has not begun, it never does. True: it runs now. */
bool mu__request_call_cancel(struct mu__request_call *call);

/* Whether it has begun, and not returned; whether it has returned: only then what it has
 * found may be looked at. */
bool mu__request_call_is_running(const struct mu__request_call *call);
bool mu__request_call_has_returned(const struct mu__request_call *call);

#endif
