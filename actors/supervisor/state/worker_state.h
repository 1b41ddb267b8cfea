/* What the supervisor keeps about each worker besides its membership, by the worker's
 * number: timers, estimates, attempts that were abandoned there. Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_WORKER_STATE_H
#define MU_ACTORS_SUPERVISOR_WORKER_STATE_H

#include "actors/supervisor/state/membership.h"
#include "runtime/kernel/kernel.h"

enum { MU__DRAIN_REQUESTERS_MAX = 4 };

/* An attempt that was given up, and that its worker has not answered: it takes one of the
 * worker's slots until then. */
struct abandoned_attempt {
    uint64_t closure;
    uint32_t attempt;
    uint64_t bytes;
    struct mu__charge charge;
};

/* A requester that waits for DRAINED; token 0: none. */
struct drain_requester {
    mu__pid pid;
    uint64_t token;
};

struct worker_state {
    uint64_t timer;         /* present: staggered start; away: end of recovery_ms */
    uint64_t lost_ms;       /* away: since when */
    bool was_here;          /* it has been present before */
    uint32_t round_trip_ms; /* the least that was seen; UINT32_MAX: none was */
    uint64_t estimate_us;   /* mean time of a function here; for the status */
    bool has_estimate;
    uint64_t recalled_ms; /* when a RECALL was sent that is not answered; or 0 */
    uint64_t build_timer; /* for builds that take long */
    struct abandoned_attempt *abandoned;
    uint32_t abandoned_count;
    uint32_t abandoned_size;
    bool drained_by_itself;
    uint32_t cut_off_server; /* that it reported last, task index + 1; 0: none */
    uint64_t cut_off_ms;     /* when */
    struct drain_requester drain_requesters[MU__DRAIN_REQUESTERS_MAX];
};

/* By number; zeroed memory is empty. */
struct worker_states {
    struct worker_state *items;
    uint32_t size;
    bool job_is_done;    /* workers leave, and are not expected back */
    char none_left[320]; /* why no worker is left, nor waited for; "": there is
                            one, or it is not known that none comes */
};

/* The size that the table needs to hold `number`; at least its present one. */
uint32_t mu__worker_states_size_for(const struct worker_states *states, uint32_t number);

/* Room for so many; false: out of memory. */
bool mu__worker_states_grow(struct worker_states *states, uint32_t size);
void mu__worker_states_done(struct worker_states *states);

/* False: out of memory. */
bool mu__abandoned_add(struct worker_state *state, const struct abandoned_attempt *was);

/* NULL: there is none such. */
struct abandoned_attempt *mu__abandoned_find(const struct worker_state *state,
                                             uint64_t closure, uint32_t attempt);

/* `abandoned` is one of `state`; returned as it was. */
struct abandoned_attempt mu__abandoned_remove(struct worker_state *state,
                                              struct abandoned_attempt *abandoned);

#endif
