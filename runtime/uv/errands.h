/* Functions that may hang, on threads that nobody has to wait for.
 *
 * libuv's pool has four threads for all that a process does, and a loop cannot be closed
 * before what it has in the pool has returned. Who looks up a name or reads a file may
 * wait for a machine that is away, and a function of the program's own may never come
 * back: such errands have threads of their own. They run in lanes, so that what hangs in
 * one keeps nobody from another. A lane has MU__LANE_THREADS_MAX threads at most, for the
 * whole process; what is beyond that waits in order. A thread ends when its lane has
 * nothing more to do, and takes no signals.
 *
 * Who has a limit drops its errand: one that has not begun is taken back, one that runs
 * goes on, finds nobody, and is freed by its thread. Loops can be closed meanwhile, and a
 * program may end. In a child that was forked there is none of these threads: it begins
 * with empty lanes, for loops of its own. */
#ifndef MU_RUNTIME_ERRANDS_UV_H
#define MU_RUNTIME_ERRANDS_UV_H

#include <uv.h>

enum { MU__LANE_THREADS_MAX = 8 };

enum mu__lane {
    MU__LANE_FILES,
    MU__LANE_NAMES,     /* what the system looks up */
    MU__LANE_SUMS,      /* signatures: they never hang */
    MU__LANE_CALLS,     /* functions of the program's own */
    MU__LANE_PROGRAMS,  /* other programs */
    MU__LANES
};

struct mu__errands;

/* A member of what it is about; the first four fields are filled in by its owner. */
struct mu__errand {
    enum mu__lane lane;

    /* On a thread. */
    void (*run)(struct mu__errand *errand);

    /* It has run, and was not dropped: it is the callee's again. In the loop. */
    void (*done)(struct mu__errand *errand);

    /* It was dropped, and does not run any more: free it. Within the dropping, or on its
     * thread. */
    void (*dropped)(struct mu__errand *errand);

    /* Ours, under our lock. */
    struct mu__errands *home;   /* NULL: it was dropped */
    struct mu__errand *next;    /* that waits, or has run */
    enum { MU__ERRAND_WAITS, MU__ERRAND_RUNS, MU__ERRAND_HAS_RUN } phase;
};

/* Those of one loop. -MU_ENOMEM. They do not keep the loop alive: whoever starts an
 * errand has a timer for its limit, which does. */
int mu__errands_open(uv_loop_t *loop, struct mu__errands **ret_errands);

/* Loop thread, as the two that follow. -MU_EEXHAUSTED: no thread can be started, and the
 * errand is as it was. */
int mu__errands_start(struct mu__errands *errands, struct mu__errand *errand);

/* Of one that was started, and is not done: 0 when it has begun; else how many threads of
 * its lane have not come to their end. */
unsigned mu__errand_waits_for(struct mu__errand *errand);

/* The same. */
void mu__errand_drop(struct mu__errand *errand);

/* All of them are done or dropped. `closed` is the last that is heard, from the loop. */
void mu__errands_close(struct mu__errands *errands, void (*closed)(void *arg),
                       void *arg);

#endif
