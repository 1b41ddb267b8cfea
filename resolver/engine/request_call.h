/* Functions of the program's own that a request calls (MU__REQUEST_CALL). */
#ifndef MU_RESOLVER_REQUEST_CALL_H
#define MU_RESOLVER_REQUEST_CALL_H

#include <stdatomic.h>
#include <stdbool.h>

/* A function of the program's own: with its arguments, and room for its results. Counted,
 * since it may go on when nobody waits for it any more. */
struct mu__request_call {
    void (*run)(struct mu__request_call *call);
    void (*free)(struct mu__request_call *call); /* no holder is left; any thread */
    atomic_uint refs;
    atomic_int phase; /* of request_call.c */
};

/* One holder, which releases it with mu__request_call_unref. Any thread, as all of
 * these. */
void mu__request_call_init(struct mu__request_call *call,
                           void (*run)(struct mu__request_call *call),
                           void (*free)(struct mu__request_call *call));
void mu__request_call_ref(struct mu__request_call *call);
void mu__request_call_unref(struct mu__request_call *call);

/* Call its function: once. */
void mu__request_call_run(struct mu__request_call *call);

/* Whether it has ever begun. */
bool mu__request_call_has_begun(const struct mu__request_call *call);

/* For the last holder but the thread that calls it: whether that thread has one, and its
 * function has not returned. */
bool mu__request_call_is_running(const struct mu__request_call *call);

#endif
