/* Kept actors, in the office that owns one and in those that call it. Not an actor: parts
 * of the office (actors/user/office.h). Files:
 *
 *     kept_life.c     an actor is owned: its fence, what is loaded, its end
 *     kept_turns.c    records, and what waits for them
 *     kept_windows.c  calls that came, and their answers
 *     kept_calls.c    calls to kept actors, until they are answered
 *
 * Who owns which name, and with which epoch, is decided elsewhere, and told here by the
 * four functions of "Names" below. An epoch is given out once; a later owner's is higher.
 *
 * A turn of a kept actor is kept as items, of which the last has its number. What the
 * turn sends, answers, spawns and monitors waits in a list until the keeper has said that
 * all up to that number survives; turns go on meanwhile. A turn without items waits for
 * those before it, as it has seen their state. Of a life that is fenced off nothing that
 * waits ever leaves.
 *
 * A caller's office numbers its calls to one name, and sends what is not answered again,
 * in order, when the owner or the link to it changes. The owner keeps the answers of each
 * sender until its calls have ended, and gives the same one to a repeat; those that have
 * an effect, and those before them, are items of the turn. A sender whose calls must all
 * have ended, by their timeouts, is forgotten. A send is a call of the office's own. */
#ifndef MU_ACTORS_KEPT_H
#define MU_ACTORS_KEPT_H

#include "actors/keeper/hooks.h"
#include "actors/keeper/keeper.h"
#include "actors/user/actions.h"

enum {
    MU__KEPT_SNAPSHOT_RECORDS = 1000,    /* then the whole state is kept, by `save` */
    MU__KEPT_UNFLUSHED_MAX = 4096,       /* items, or */
    MU__KEPT_UNFLUSHED_BYTES = 16 << 20, /* bytes: no turn begins until it is less */
    MU__KEPT_AGAIN_MS = 50,              /* a call is sent again, or an item */
    MU__KEPT_SEND_MS = 3600 * 1000,      /* so long a send is tried */
    MU__KEPT_STRAY_MS = 11000,  /* beside the silence of a link: a call that came waits no
                                   longer to be read, as no lease of names does */
    MU__KEPT_REVIEW_MS = 1000,  /* windows are reviewed so often, at most */
    MU__KEPT_REVIEW_MAX = 256,  /* and so many of them dropped */
    MU__KEPT_WAYS_MAX = 1 << 16 /* names that one process calls */
};

/* ---- Names ---- */

enum mu__kept_news {
    MU__KEPT_BORN, /* something is kept: from now on is_born is true */
    MU__KEPT_ENDED /* the life is over */
};

/* This process owns an actor from now on. */
struct mu__kept_own {
    const char *name;
    uint64_t epoch;
    const mu_actor_type *type;
    const mu_actor_options *options; /* read at once; NULL: the defaults */
    const mu_value *args;            /* of `start`, which the first life runs */
    bool is_born;
    uint64_t made; /* what lives of lower epochs have kept is of another actor, which had
                      the name before */
    char keeper_type[16]; /* the task that keeps it */
    uint32_t keeper_index;
    void (*news)(void *owner, const char *name, enum mu__kept_news news,
                 const mu_error *error); /* in a turn of the office; may be NULL */
    void *owner;
};
int mu__kept_own(struct office *office, const struct mu__kept_own *own,
                 mu_error *ret_error);

/* It does not any more: at once, and nothing that waits leaves. */
void mu__kept_disown(struct office *office, const char *name);

/* The process that owns it, for callers here; incarnation 0: none does now. */
void mu__kept_route(struct office *office, const char *name, const mu_address *owner);

/* There is no such actor any more, or not now: the calls to it end. */
void mu__kept_way_fail(struct office *office, const char *name, const mu_error *why);

/* A call by name, as mu__message_make. */
int mu__kept_call_make(struct office *office, const char *name, const char *method,
                       const mu_value *args, struct pending_call *call, uint32_t waits,
                       mu_error *ret_error, struct mail **ret_mail);

/* The same without anybody who waits for the answer. */
int mu__kept_send_make(struct office *office, const mu_address *to, const char *method,
                       const mu_value *args, uint32_t waits, mu_error *ret_error,
                       struct mail **ret_mail);

#endif
