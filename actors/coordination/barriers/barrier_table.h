/* Barriers by name, and the outcomes of their generations. Plain data: knows no messages,
 * no clock; the participants are slots of the roster.
 *
 *   a name:   (unknown) --> running --> over --> running --> ... --> over --> (dropped)
 *
 * Each run of a name is one generation, counted from 0. All tasks that take part in one
 * get the same outcome, which is remembered for repeated and late arrivals.
 *
 * A task counts the generations of each name itself, and sends its count when it arrives.
 * Another count than the table's means that the task was too quick or too slow, with two
 * exceptions, which join the generation that runs or is next: a task that took part in no
 * generation since, and a recoverable one, which may have been restarted.
 *
 * The participants are not stored. A later host gives the outcomes of a former one to the
 * processes of that time: an outcome has the revision of the store that it is stored
 * with, an arrival (`since`) the revision that was next when its process registered
 * first. A process that is younger than an outcome joins, too.
 *
 * A success of a former host may be held back from younger processes: the name runs, at
 * the generation that is over, until they are told that same outcome. When, is decided in
 * barrier_holds.c. */
#ifndef MU_ACTORS_BARRIERS_H
#define MU_ACTORS_BARRIERS_H

#include "muster/error.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"
#include "runtime/message/message.h"

/* Bounds. At each of them the names that are over longest are dropped, with their
 * outcomes, if they were over for MU__BARRIER_KEEP_MS: longer than a request whose answer
 * was lost is repeated. Else a new name is refused. */
#ifdef MUSTER_TINY
enum { MU__BARRIERS_MAX = 16, MU__BARRIER_SEATS_MAX = 256 };
enum { MU__BARRIERS_BEGUN_MAX = 12 };
#else
enum { MU__BARRIERS_MAX = 1 << 16, MU__BARRIER_SEATS_MAX = 1 << 22 };
enum { MU__BARRIERS_BEGUN_MAX = 1 << 14 }; /* by one task, of those that run */
#endif
enum {
    MU__BARRIER_OUTCOMES_MAX = 8, /* of one name that are remembered: the last ones */
    MU__BARRIER_KEEP_MS = 60000,
    MU__BARRIER_JOINED_MAX = 8, /* of one generation that are remembered */
    MU__BARRIER_TEXT_MAX = MU__BARRIER_OUTCOMES_MAX * 900
};

/* The outcome of one generation, for all that took part. */
struct mu__barrier_outcome {
    struct mu__barrier_outcome *next; /* of the generation before */
    uint64_t generation;
    uint64_t revision; /* of the store, with which it is stored */
    int code;          /* 0, or negative */
    int kind;          /* enum mu_error_kind */
    char task[64];
    char *message; /* NULL: none */

    /* Marks (see mark_of) of arrivals that counted although they named another
     * generation: repeated at another host, they still belong to this one. */
    uint32_t joined_count;
    uint64_t joined[MU__BARRIER_JOINED_MAX];
};

/* A task at one name, from its first generation on. */
struct mu__barrier_seat {
    uint64_t incarnation; /* of its last arrival; 0: there was none */
    uint64_t token;       /* of that arrival */
    uint64_t awaited;     /* the generation that it named then, */
    uint64_t generation;  /* and the one that the arrival counted for */
    uint32_t slot;
    uint64_t over_end; /* one more than the last generation that it took part in and
                          that is over */
    uint16_t past;     /* bit i: took part in the i-th generation before the last
                          that began; bit 0: in that one itself */
    bool arrived;      /* at the generation that began last */
};

struct mu__barrier {
    struct mu__barrier *chain; /* of the same hash */
    struct mu__list_node link; /* in `running` or `over` */
    bool running;
    bool held;              /* runs at a generation that a former host has passed */
    uint64_t here_ms;       /* while held: since when all missing ones are registered;
                               0: they are not */
    uint64_t generation;    /* that runs, or is the next to run */
    uint64_t read_end;      /* outcomes below it are of a former host: their
                               participants are not known here */
    uint64_t read_revision; /* of the last of these; 0: there are none */
    struct mu__barrier_outcome *outcomes; /* the last one first */
    struct mu__barrier_outcome *spare;    /* for the one that runs */
    struct mu__barrier_seat *seats;
    uint32_t seats_count;
    uint32_t seats_size;
    struct mu__map by_slot; /* slot + 1 -> index among the seats + 1 */
    uint32_t expected;      /* participants of the generation that began last, */
    uint32_t arrived;       /* and how many of them have arrived */
    uint32_t first;         /* the slot of the first that arrived */
    uint32_t beginner;      /* while it runs: the slot that it is counted for */
    char *set;              /* canonical, as it was when it began last; NULL: not
                               known */
    bool of_all;            /* the first arrival named no tasks: the participants
                               change with the cluster */
    uint64_t since_ms;      /* when that generation began; or when it was over */
    uint64_t timeout_ms;    /* 0: none */
    uint64_t note_ms;       /* when the next note on missing tasks is due */
    uint32_t name_size;
    char name[]; /* with a zero */
};

struct mu__barrier_list {
    struct mu__list list;
    uint32_t count;
};

struct mu__barriers {
    struct mu__map names; /* hash -> the first of a chain */
    uint64_t secret;      /* of the hash: agents choose names */
    struct mu__barrier_list running;
    struct mu__barrier_list over; /* longest first */
    struct mu__map begun;         /* slot + 1 -> how many run that this task began */
    uint64_t seats;               /* of all names */
    uint64_t quiet_revision;      /* outcomes up to it are not given to younger processes;
                                     0: there are none */

    /* A name is about to be dropped; may be NULL. */
    void (*dropped)(void *user, const struct mu__barrier *barrier);
    void *user;
};

struct mu__barrier_arrival {
    struct mu__view name;
    uint64_t generation;
    const char *set; /* canonical; the task is in it */
    bool of_all;     /* it names no tasks, and means all */
    const char *all; /* the canonical set of all, now */
    uint32_t slot;
    bool recoverable;
    bool anew;            /* an incarnation does not continue a former one: a client */
    bool is_held;         /* the last outcome is held back from it; see is_late */
    uint64_t since;       /* outcomes with a lower revision were over before this
                             incarnation began */
    uint64_t incarnation; /* not 0 */
    uint64_t token;
};

enum mu__arrived {
    MU__ARRIVED_FIRST, /* no generation runs: mu__barriers_begin, then again */
    MU__ARRIVED_WAITS,
    MU__ARRIVED_LAST,  /* all have arrived: mu__barriers_end */
    MU__ARRIVED_AGAIN, /* for a generation that is over, with ret_outcome */
    MU__ARRIVED_SLOW,  /* out of order, or (DIFFERENT) with other tasks than the
                          first arrival: the generation that runs must end for all.
                          When none runs, this arrival alone is wrong */
    MU__ARRIVED_QUICK,
    MU__ARRIVED_DIFFERENT
};

/* Zeroed memory is an empty table. */
void mu__barriers_done(struct mu__barriers *barriers);

/* Drop all names that do not run. Returns how many. */
uint64_t mu__barriers_forget_over(struct mu__barriers *barriers);

/* NULL: there is none of this name. */
struct mu__barrier *mu__barriers_find(const struct mu__barriers *barriers,
                                      struct mu__view name);

/* A task arrives. *ret_token is set to the token of an earlier call of the same task that
 * this one replaces, *ret_outcome with MU__ARRIVED_AGAIN; else they stay as they are. */
enum mu__arrived mu__barriers_arrive(struct mu__barriers *barriers,
                                     const struct mu__barrier_arrival *arrival,
                                     const struct mu__barrier_outcome **ret_outcome,
                                     uint64_t *ret_token);

/* Begin the next generation of a name that does not run; an unknown name begins with the
 * arrival's generation. `slots` has no slot twice. -MU_EEXHAUSTED with a message,
 * -MU_ENOMEM: nothing has changed, but for names that were dropped. */
int mu__barriers_begin(struct mu__barriers *barriers,
                       const struct mu__barrier_arrival *arrival, const uint32_t *slots,
                       uint32_t count, uint64_t timeout_ms, uint64_t now_ms,
                       mu_error *ret_error, struct mu__barrier **ret_barrier);

/* Whether the last outcome is a success of a former host, and the arrival is for it and
 * younger: it may be held. */
bool mu__barrier_is_late(const struct mu__barriers *barriers,
                         const struct mu__barrier *barrier,
                         const struct mu__barrier_arrival *arrival);

/* A younger process was given the last outcome, which is stored anew. */
void mu__barrier_renew(struct mu__barrier *barrier, uint64_t revision);

/* End the generation that runs, with `error` or (NULL) success; one that is held, with
 * the outcome that it has. The outcome is stored with this revision. Seats stay `arrived`
 * until the next generation begins. Never fails: without memory a message is missing. */
const struct mu__barrier_outcome *mu__barriers_end(struct mu__barriers *barriers,
                                                   struct mu__barrier *barrier,
                                                   const mu_error *error,
                                                   uint64_t revision, uint64_t now_ms);

/* A task that has arrived is waited for again. False: it had not. */
bool mu__barrier_uncount(struct mu__barrier *barrier, uint32_t slot);

/* Add a participant to the generation that runs, or remove one. -MU_ENOMEM,
 * -MU_EEXHAUSTED: nothing has changed. Afterwards it may be full: mu__barriers_end. */
int mu__barrier_join(struct mu__barriers *barriers, struct mu__barrier *barrier,
                     uint32_t slot);
void mu__barrier_part(struct mu__barrier *barrier, uint32_t slot);
bool mu__barrier_is_full(const struct mu__barrier *barrier);

/* The seat of a participant of the generation that began last; NULL: it is none. */
struct mu__barrier_seat *mu__barrier_seat(const struct mu__barrier *barrier,
                                          uint32_t slot);

/* Whether a task may cancel the generation that runs: it has arrived at it, and named
 * this generation. */
bool mu__barrier_may_cancel(const struct mu__barrier *barrier, uint32_t slot,
                            uint64_t incarnation, uint64_t generation);

/* The outcome of a generation; NULL: it is not over, or not remembered. */
const struct mu__barrier_outcome *mu__barrier_outcome(const struct mu__barrier *barrier,
                                                      uint64_t generation);

/* All outcomes of a name as text, for a store; its size. And back, for an unknown name.
 * -MU_EINVALID (text of another form), -MU_EEXHAUSTED, -MU_ENOMEM. */
size_t mu__barrier_write(const struct mu__barrier *barrier,
                         char out[MU__BARRIER_TEXT_MAX]);
int mu__barriers_read(struct mu__barriers *barriers, struct mu__view name,
                      struct mu__view text, uint64_t now_ms);

/* Whether the table is consistent. For tests. */
bool mu__barriers_check(const struct mu__barriers *barriers);

static inline struct mu__view mu__barrier_name(const struct mu__barrier *barrier)
{
    return (struct mu__view){.data = barrier->name, .size = barrier->name_size};
}

static inline struct mu__barrier *mu__barrier_first(const struct mu__barrier_list *list)
{
    return MU__LIST_FIRST(&list->list, struct mu__barrier, link);
}

static inline struct mu__barrier *mu__barrier_next(const struct mu__barrier *barrier)
{
    return MU__LIST_NEXT(barrier, struct mu__barrier, link);
}

#endif
