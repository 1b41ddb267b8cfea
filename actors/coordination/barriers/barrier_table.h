/* Barriers by name, and what became of their generations. Plain data: knows no messages,
 * no clock; who takes part is a list of slots of the roster.
 *
 *   a name:   (unknown) --> running --> over --> running --> ... --> over --> (dropped)
 *
 * Each time that a name runs is one generation, counted from 0. All who take part in one
 * get the same outcome, which is remembered: whoever asks again for it, or comes too
 * late, gets it, too.
 *
 * A task keeps its own count for each name, and says it when it arrives. One that counts
 * otherwise has been too quick or too slow; but one that took no part in any generation
 * since has missed nothing, and one that is recoverable may not have heard of what it has
 * missed (it was restarted): these join the generation that runs or comes next.
 *
 * Who took part is not stored. A later host tells what a former one ended to those who
 * were there when it ended: an outcome has the revision of the store that it is stored
 * with, an arrival the first one after its process came to the service. What is older was
 * not for this process: it joins, too. */
#ifndef MU_ACTORS_BARRIERS_H
#define MU_ACTORS_BARRIERS_H

#include "muster/error.h"
#include "runtime/base/map.h"
#include "runtime/message/message.h"

/* Bounds. At each of them the names that are over longest go, with their outcomes, if
 * they were over for MU__BARRIER_KEEP_MS: longer than anybody asks again for an outcome
 * that was lost on its way. Else a new one is refused. */
#ifdef MUSTER_TINY
enum { MU__BARRIERS_MAX = 16, MU__BARRIER_SEATS_MAX = 256 };
#else
enum { MU__BARRIERS_MAX = 1 << 16, MU__BARRIER_SEATS_MAX = 1 << 22 };
#endif
enum {
    MU__BARRIER_OUTCOMES_MAX = 8,   /* of one name that are remembered: the last ones */
    MU__BARRIER_KEEP_MS = 60000,
    MU__BARRIER_JOINED_MAX = 8,     /* of one generation that are remembered */
    MU__BARRIER_TEXT_MAX = MU__BARRIER_OUTCOMES_MAX * 900
};

/* What everybody gets who takes part in one generation. */
struct mu__barrier_outcome {
    struct mu__barrier_outcome *next;   /* of the generation before */
    uint64_t generation;
    uint64_t revision;      /* of the store, with which it is stored */
    int code;               /* 0, or negative */
    int kind;               /* enum mu_error_kind */
    char task[64];
    char *message;          /* NULL: none */

    /* Arrivals that counted although they had said another generation, of tasks that were
     * restarted: when they are repeated elsewhere, they are still this one's. */
    uint32_t joined_count;
    uint64_t joined[MU__BARRIER_JOINED_MAX];
};

/* A task at one name, from the first generation on that it takes part in. */
struct mu__barrier_seat {
    uint64_t incarnation;   /* of its last arrival; 0: there was none */
    uint64_t token;         /* of that arrival */
    uint64_t awaited;         /* the generation that it said then, */
    uint64_t generation;    /* and the one that this counted for */
    uint32_t slot;
    uint64_t over_end;      /* all generations that it took part in, and that are over,
                               are below it */
    uint16_t past;          /* bit i: took part in the i-th generation before the last
                               that began; bit 0 is that one itself */
    bool arrived;           /* at the generation that began last */
};

struct mu__barrier {
    struct mu__barrier *chain;  /* of the same hash */
    struct mu__barrier *prev;   /* in its list */
    struct mu__barrier *next;
    bool running;
    uint64_t generation;        /* that runs, or is the next to run */
    uint64_t read_end;          /* outcomes below it are of a former host: who took part
                                   is not known here */
    uint64_t read_revision;     /* of the last of these; 0: there are none */
    struct mu__barrier_outcome *outcomes;   /* the last one first */
    struct mu__barrier_outcome *spare;      /* for the one that runs */
    struct mu__barrier_seat *seats;
    uint32_t seats_count;
    uint32_t seats_size;
    struct mu__map by_slot;     /* slot + 1 -> place among the seats + 1 */
    uint32_t expected;          /* how many take part in the last that began, */
    uint32_t arrived;           /* and how many of them are here */
    uint32_t first;             /* the slot of the first that came to it */
    char *set;                  /* canonical, as it was when it began last; NULL: not
                                   known */
    bool of_all;                /* the first who came named none: who takes part changes
                                   with the cluster */
    uint64_t since_ms;          /* that generation's begin; or when it was over */
    uint64_t timeout_ms;        /* 0: none */
    uint64_t note_ms;           /* when those who are here are told next who is missing */
    uint32_t name_size;
    char name[];                /* with a zero */
};

struct mu__barrier_list {
    struct mu__barrier *first;
    struct mu__barrier *last;
    uint32_t count;
};

struct mu__barriers {
    struct mu__map names;       /* hash -> the first of a chain */
    uint64_t secret;            /* of the hash: agents choose names */
    struct mu__barrier_list running;
    struct mu__barrier_list over;       /* longest first */
    uint64_t seats;             /* of all */
    uint64_t quiet_revision;    /* outcomes up to it are told to nobody whose process came
                                   after them; 0: there are none */

    /* A name was dropped; may be NULL. */
    void (*dropped)(void *user, const struct mu__barrier *barrier);
    void *user;
};

struct mu__barrier_arrival {
    struct mu__view name;
    uint64_t generation;
    const char *set;        /* canonical; the task is in it */
    bool of_all;            /* it names none, and means all */
    const char *all;        /* the canonical set of all, now */
    uint32_t slot;
    bool recoverable;
    bool anew;              /* a later incarnation does not go on where this one was: a
                               client's processes have nothing to do with each other */
    uint64_t since;         /* what is stored with a lower revision was over before this
                               incarnation began */
    uint64_t incarnation;   /* not 0 */
    uint64_t token;
};

enum mu__arrived {
    MU__ARRIVED_FIRST,      /* nothing runs: mu__barriers_begin, then again */
    MU__ARRIVED_WAITS,
    MU__ARRIVED_LAST,       /* all are here: mu__barriers_end */
    MU__ARRIVED_AGAIN,      /* for a generation that is over, with ret_outcome */
    MU__ARRIVED_SLOW,       /* out of order: what runs must end for everybody, */
    MU__ARRIVED_QUICK,
    MU__ARRIVED_DIFFERENT   /* as when it names other tasks than the first who came. When
                               nothing runs, this arrival alone is wrong */
};

/* Zeroed memory is an empty table. */
void mu__barriers_done(struct mu__barriers *barriers);

/* Drop all names that do not run: how many. */
uint64_t mu__barriers_forget_over(struct mu__barriers *barriers);

/* NULL: there is none of this name. */
struct mu__barrier *mu__barriers_find(const struct mu__barriers *barriers,
                                      struct mu__view name);

/* A task arrives. *ret_token: an earlier call of the same task that this one replaces, or
 * 0. Both outputs may be left as they are: see above. */
enum mu__arrived mu__barriers_arrive(struct mu__barriers *barriers,
                                     const struct mu__barrier_arrival *arrival,
                                     const struct mu__barrier_outcome **ret_outcome,
                                     uint64_t *ret_token);

/* Begin the next generation of a name, which does not run: the arrival's if the name is
 * unknown. `slots` has no slot twice. -MU_EEXHAUSTED with a message, -MU_ENOMEM:
 * nothing has changed, but for names that were dropped. */
int mu__barriers_begin(struct mu__barriers *barriers,
                       const struct mu__barrier_arrival *arrival, const uint32_t *slots,
                       uint32_t count, uint64_t timeout_ms, uint64_t now_ms,
                       mu_error *ret_error, struct mu__barrier **ret_barrier);

/* The generation that runs is over, with `error` or (NULL) well, which is stored with
 * this revision. Seats that have arrived stay marked so until the next one begins. Never
 * fails: without memory the words are missing. */
const struct mu__barrier_outcome *mu__barriers_end(struct mu__barriers *barriers,
                                                   struct mu__barrier *barrier,
                                                   const mu_error *error,
                                                   uint64_t revision,
                                                   uint64_t now_ms);

/* Who was here is not any more, and is waited for. False: it was not. */
bool mu__barrier_uncount(struct mu__barrier *barrier, uint32_t slot);

/* A task more takes part in the generation that runs, or one less, which is then not
 * waited for. -MU_ENOMEM, -MU_EEXHAUSTED: nothing has changed. Afterwards all may be
 * here: mu__barriers_end. */
int mu__barrier_join(struct mu__barriers *barriers, struct mu__barrier *barrier,
                     uint32_t slot);
void mu__barrier_part(struct mu__barrier *barrier, uint32_t slot);
bool mu__barrier_is_full(const struct mu__barrier *barrier);

/* Whether a task takes part in the generation that began last; NULL: it does not. */
struct mu__barrier_seat *mu__barrier_seat(const struct mu__barrier *barrier,
                                          uint32_t slot);

/* Whether a task may end what runs by mu_barrier_cancel: it has arrived, and means it. */
bool mu__barrier_may_cancel(const struct mu__barrier *barrier, uint32_t slot,
                            uint64_t incarnation, uint64_t generation);

/* The outcome of a generation; NULL: it is not over, or not remembered. */
const struct mu__barrier_outcome *
mu__barrier_outcome(const struct mu__barrier *barrier, uint64_t generation);

/* All outcomes of a name as text, for a store: at most MU__BARRIER_TEXT_MAX bytes. And
 * back: the name must be unknown. -MU_EINVALID (text of another form), -MU_EEXHAUSTED,
 * -MU_ENOMEM. */
size_t mu__barrier_write(const struct mu__barrier *barrier,
                         char out[MU__BARRIER_TEXT_MAX]);
int mu__barriers_read(struct mu__barriers *barriers, struct mu__view name,
                      struct mu__view text, uint64_t now_ms);

/* What all parts of it must say of each other; false: they do not. For tests. */
bool mu__barriers_check(const struct mu__barriers *barriers);

/* ---- barrier_table.c ---- */

void mu__barrier_append(struct mu__barrier_list *list, struct mu__barrier *barrier);

/* A name of which nothing is known yet, in no list. */
struct mu__barrier *mu__barrier_new_barrier(struct mu__barriers *barriers,
                                            struct mu__view name);

/* One that is in no list. */
void mu__barrier_discard(struct mu__barriers *barriers, struct mu__barrier *barrier);

int mu__barrier_make_room(struct mu__barriers *barriers, const struct mu__barrier *but,
                          uint32_t seats, uint64_t now_ms, mu_error *ret_error);

void mu__barrier_describe(struct mu__barrier_outcome *outcome, const mu_error *error);

#endif
