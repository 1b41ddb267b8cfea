/* Functions of the program's own that a request calls (MU__REQUEST_CALL). */
#ifndef MU_RESOLVER_REQUEST_CALL_H
#define MU_RESOLVER_REQUEST_CALL_H

#include <stdatomic.h>
#include <stdbool.h>

struct mu__request_call;

/* One of `run` and `start`. */
struct mu__request_call_ops {
    /* On a thread, which it may block; it is over when it returns. */
    void (*run)(struct mu__request_call *call);

    /* In the requester's loop: begins, and returns at once; it is over when
     * mu__request_call_finish is called, within this or later. */
    void (*start)(struct mu__request_call *call);

    /* Of one that was started and is not over: nobody waits for it any more. In the loop;
     * it is still to be finished. */
    void (*cancel)(struct mu__request_call *call);

    void (*free)(struct mu__request_call *call); /* no holder is left; any thread */
};

/* A function of the program's own: with its arguments, and room for its results. Counted,
 * since it may go on when nobody waits for it any more. */
struct mu__request_call {
    const struct mu__request_call_ops *ops;
    atomic_uint refs;
    atomic_int phase;               /* of request_call.c */
    void (*finished)(void *owner);  /* the requester's, of one that was started */
    void *owner;
};

/* One holder, which releases it with mu__request_call_unref. Any thread, as all of
 * these. */
void mu__request_call_init(struct mu__request_call *call,
                           const struct mu__request_call_ops *ops);
void mu__request_call_ref(struct mu__request_call *call);
void mu__request_call_unref(struct mu__request_call *call);

/* Whether it is started, and not run. */
bool mu__request_call_is_async(const struct mu__request_call *call);

/* The requester's: run it, unless it was cancelled. One that another request has begun
 * is left to that one, here and in start. */
void mu__request_call_run(struct mu__request_call *call);

/* The requester's: start it. `finished` is called once, when it is over, on any thread,
 * within this or later. */
void mu__request_call_start(struct mu__request_call *call, void (*finished)(void *owner),
                            void *owner);

/* Of one that was started: its results are there. Once. */
void mu__request_call_finish(struct mu__request_call *call);

/* Nobody waits for it: if it has not begun, it never does; if it runs, its results are
 * dropped. True: it runs now. */
bool mu__request_call_cancel(struct mu__request_call *call);

/* Whether it has ever begun; whether it has begun and is not over; whether it is over,
 * and was not cancelled: only then may its results be read. */
bool mu__request_call_has_begun(const struct mu__request_call *call);
bool mu__request_call_is_running(const struct mu__request_call *call);
bool mu__request_call_has_returned(const struct mu__request_call *call);

#endif
