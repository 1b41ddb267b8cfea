/* What the files of kept actors share. */
#ifndef MU_ACTORS_KEPT_STATE_H
#define MU_ACTORS_KEPT_STATE_H

#include "actors/keeper/kept.h"

/* ---- The owner's side ---- */

enum kept_given {
    KEPT_GIVEN,
    KEPT_OWED,   /* by this life: in the next one it is an error */
    KEPT_PUT_OFF /* the call has not begun: the next life gets it */
};

/* An answer that its sender may ask for again. */
struct kept_answer {
    struct mu__list_node node; /* of the sender's new ones */
    uint64_t number;
    mu_value *value;
    mu_error *error;
    enum kept_given given;
    bool is_new; /* it is no item */
};

/* One process that calls. */
struct kept_window {
    uint64_t id;
    uint64_t base;          /* calls below have ended */
    uint64_t end;           /* no answer from here on */
    uint64_t seen;          /* the last call that came to this life */
    uint64_t until_ms;      /* the sender's calls have ended by then, and none is still on
                               its way */
    bool is_kept;           /* some answer of it is an item */
    bool is_added;          /* in this turn its new answers are items already */
    struct mu__map answers; /* by number */
    struct mu__list fresh;  /* answers that are no items */
};

/* What a turn wants done, which waits for an item. */
struct held_turn {
    struct mu__list_node node;
    uint64_t number; /* of the item */
    struct mu__list out;
};

enum kept_phase {
    KEPT_LOADING, /* a fence was sent, or will be when its keeper is there */
    KEPT_LIVE,
    KEPT_SPOILT /* live, and it is loaded anew once nothing waits */
};

/* Items that have come, by their numbers, until all have. */
struct kept_loaded {
    struct mu__msg *first;
    struct mu__msg *last;
    uint64_t count;
    uint64_t all; /* one more than there are; 0: not known yet */
};

struct kept {
    struct mu__text_node named; /* first */
    struct office *office;
    mu_actor *actor;
    struct mu__kept_own own;
    mu_value *args;
    enum kept_phase phase;
    uint64_t number;             /* of the last item of this life, */
    uint64_t flushed;            /* and of the last that survives */
    uint64_t large;              /* one that others would overtake: they wait; 0: none */
    struct mu__msg *items_first; /* in between */
    struct mu__msg *items_last;
    uint64_t items_bytes;
    struct mu__list held;
    struct kept_loaded loaded;
    uint32_t records; /* since the last snapshot */
    bool has_windows; /* loaded once: from then on those here are the newer ones */
    bool is_held;     /* no turn begins for now */
    bool is_cut;      /* nothing that waits ever leaves */
    bool is_listed;   /* in the office's map */
    bool is_again;    /* the keeper is told again in a moment */
    bool is_full;     /* the keeper has no room: turns that record fail */
    struct mu__map windows;
    uint64_t review_ms; /* of the windows, at the next call */
    char name[];
};

/* ---- kept_life.c ---- */

struct kept *mu__kept_find(const struct office *office, struct mu__view name);

/* The life is over; NULL: it is disowned. Nothing that waits leaves. */
void mu__kept_fail(struct kept *kept, const mu_error *error);

/* Tell the keeper again in a moment what it has not taken. */
void mu__kept_again(struct kept *kept);

/* Once more to the keepers of a peer that is up; NULL: to those that are told again. */
void mu__kept_keepers_report(struct office *office, const struct peer *peer);

/* Send a message to the keeper, if it is there. Takes it. */
void mu__kept_report(struct kept *kept, struct mu__msg *msg);

/* Begin, or begin anew. */
void mu__kept_load(struct kept *kept);

/* ---- kept_turns.c ---- */

void mu__kept_drop_items(struct kept *kept);
void mu__kept_drop_held(struct kept *kept);

/* All that is not acknowledged, once more. */
void mu__kept_report_items(struct kept *kept);
void mu__kept_flushed(struct kept *kept, uint64_t number);

/* A window is dropped at the keeper, too. */
void mu__kept_forget(struct kept *kept, uint64_t sender);

/* A mail that waits for what was decided so far. Takes it. */
void mu__kept_do_later(struct kept *kept, struct mail *mail);

/* ---- kept_windows.c ---- */

void mu__kept_windows_done(struct kept *kept);

/* The state that was to answer is dropped: who waits gets an error, or, of a call that
 * has not begun, the answer of the state that is loaded. */
void mu__kept_refuse_put_off(struct kept *kept);

/* The window of an item that is loaded. -MU_ENOMEM. */
int mu__kept_window_load(struct kept *kept, const struct mu__keep_item *item);
struct kept_window *mu__kept_window_get(struct kept *kept, uint64_t sender);
struct kept_window *mu__kept_window_find(const struct kept *kept, uint64_t sender);
void mu__kept_window_raise(struct kept_window *window, uint64_t base);

/* Set an answer, which takes `value`; *ret_answer may be a former one. */
int mu__kept_answer_set(struct kept *kept, const struct kept_origin *origin,
                        mu_value *value, const mu_error *error, enum kept_given given);

/* ---- kept_calls.c ---- */

void mu__kept_arm(struct office *office);
void mu__kept_send_way(struct office *office, struct kept_way *way);

/* What is not answered there is sent again in a moment, perhaps over a new link. */
void mu__kept_ways_lost(struct office *office, const struct peer *peer);

#endif
