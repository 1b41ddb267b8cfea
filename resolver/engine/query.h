/* One query of a resolver: requests, runs, tries, and an end.
 *
 * The resolver's function is run; while it says MU__LATER, what it has asked is waited
 * for, and it is run again. Answers that fail for now (no connection, no answer in time,
 * HTTP 408, 429, 500, 502, 503, 504, what is missing where the request calls this
 * passing) are asked again with growing pauses. When the resolver itself concludes "not
 * now" (-MU_EUNAVAILABLE, -MU_EDEADLINE), it begins anew with fresh requests, while
 * there is time.
 *
 * At the limit each request that is still open is answered with its last failure, so
 * that the resolver itself can say what it could not find out, and nothing more is asked;
 * what it then concludes of passing failures is -MU_EDEADLINE, with how long it was
 * tried. Where a round came to its end before, it is what that one has concluded that is
 * said: "pod a-0 is Pending" tells more than that the last look was cut off. A server
 * that wants to be left alone (Retry-After) for longer than there is time for ends the
 * query at once, and no round begins before its time.
 *
 * Pure: whoever owns it calls mu__query_turn when `wake` was called and when the
 * time has come that the last turn has told. Nothing is called back within an requester's
 * answer but `wake`. */
#ifndef MU_RESOLVER_QUERY_H
#define MU_RESOLVER_QUERY_H

#include "resolver/engine/exchange.h"

/* How long a query goes on, and what its lines for people say about that. */
struct mu__query_limits {
    /* For the whole. 0: one try of everything, nothing is waited for but what each
     * request itself may take; negative: no limit. */
    int64_t timeout_ms;
    uint32_t pause_most_ms;     /* the longest pause between rounds; 0: the usual one */

    /* Of one that is a part of something longer: what lines for people tell. */
    int64_t whole_ms;           /* until the end of the whole; 0: that of timeout_ms;
                                   negative: it has none */
    unsigned rounds_before;     /* that have failed in the parts before */
};

struct mu__query_config {
    struct mu__requester *requester; /* borrowed */

    /* 0, MU__LATER, or an error with words. mu__requests_runs() of the requests is 1
 * when they * are fresh. */
    int (*run)(void *owner, struct mu__requests *requests, mu_error *ret_error);

    /* A turn is wanted: at once, but not within this call. */
    void (*wake)(void *owner);

    /* A line for people, when something is to be tried again; may be NULL. */
    void (*progress)(void *owner, const char *line);

    uint64_t (*now_ms)(void *owner);    /* monotonic */
    uint64_t (*random)(void *owner);
    void *owner;

    struct mu__query_limits limits;
};

struct mu__query;

/* Nothing is called yet: the first turn begins. -MU_ENOMEM. */
int mu__query_new(const struct mu__query_config *config, struct mu__query **ret_query);

/* Cancels what is under way. NULL is fine. */
void mu__query_free(struct mu__query *query);

/* Do what can be done now. MU__LATER: not concluded; *ret_due_ms (always written then) is
 * when the next turn is due at the latest, UINT64_MAX when only answers are waited for.
 * Otherwise the conclusion: 0 or an error. Not to be called after a conclusion. */
int mu__query_turn(struct mu__query *query, mu_error *ret_error, uint64_t *ret_due_ms);

/* A file or folder has changed that may be what is waited for: pauses before it is looked
 * at again end now, that of the round under way included; but after a round there is one
 * of four times its length. Wakes. */
void mu__query_hurry(struct mu__query *query);

/* The requests of the last round, for mu__exchange_describe and
 * mu__requests_explanation; NULL before the first turn. Owned by the query. */
struct mu__requests *mu__query_notes(struct mu__query *query);

/* So many rounds have failed. */
unsigned mu__query_rounds(const struct mu__query *query);

/* How much time is left: negative: no limit. */
int64_t mu__query_left_ms(const struct mu__query *query);

#endif
