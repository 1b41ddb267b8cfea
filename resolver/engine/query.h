/* One query of a resolver: it runs the resolver, waits for its requests, retries, and
 * ends at a deadline.
 *
 * The resolver's function is run; while it returns MU__LATER, its requests are waited
 * for, and it is run again. Requests that fail for now (no connection, no answer in
 * time, HTTP 408, 429, 500, 502, 503, 504, and what is missing if the request has
 * retry_missing) are sent again with growing pauses. When the resolver itself concludes
 * "not now" (-MU_EUNAVAILABLE, -MU_EDEADLINE), another round begins with fresh
 * requests, while there is time.
 *
 * At the deadline each request that is still open is settled with its last failure, so
 * that the resolver itself can say what it could not find out, and no request is sent
 * any more; a passing failure that it then concludes becomes -MU_EDEADLINE, with how
 * long it was tried. When an earlier round was complete, its conclusion is reported:
 * "pod a-0 is Pending" tells more than that the last round was cut off. A Retry-After
 * that is longer than the time left ends the query at once, and no round begins before
 * a Retry-After has passed.
 *
 * Pure: the owner calls mu__query_turn after `wake` was called, and when the time is
 * due that the last turn has returned. Within an answer of the requester nothing is
 * called back but `wake`. */
#ifndef MU_RESOLVER_QUERY_H
#define MU_RESOLVER_QUERY_H

#include "resolver/engine/exchange.h"

/* How long a query may take, and what its progress lines say about that. */
struct mu__query_limits {
    /* Of the whole query. 0: one try of each request, and one round; negative: no
     * limit. */
    int64_t timeout_ms;
    uint32_t pause_most_ms;     /* the longest pause between rounds; 0: the usual one */

    /* Of a query that is a part of something longer: only for the progress lines. */
    int64_t whole_ms;           /* until the end of the whole; 0: as timeout_ms;
                                   negative: it has none */
    unsigned rounds_before;     /* rounds that failed in the parts before */
};

struct mu__query_config {
    struct mu__requester *requester; /* borrowed */

    /* One run of the resolver: 0, MU__LATER, or an error. mu__requests_runs() of the
     * requests is 1 in the first run of a round. */
    int (*run)(void *owner, struct mu__requests *requests, mu_error *ret_error);

    /* mu__query_turn is to be called soon, but not within this call. */
    void (*wake)(void *owner);

    /* A progress line for people, when something is going to be tried again; may be
     * NULL. */
    void (*progress)(void *owner, const char *line);

    uint64_t (*now_ms)(void *owner);    /* monotonic */
    uint64_t (*random)(void *owner);
    void *owner;

    struct mu__query_limits limits;
};

struct mu__query;

/* Calls nothing; the query begins with the first turn. -MU_ENOMEM. */
int mu__query_new(const struct mu__query_config *config, struct mu__query **ret_query);

/* Cancels the requests in flight. NULL is fine. */
void mu__query_free(struct mu__query *query);

/* Do what can be done now. MU__LATER: not concluded; *ret_due_ms (always written then) is
 * when the next turn is due at the latest, UINT64_MAX when only answers are waited for.
 * Otherwise the conclusion: 0 or an error. Not to be called after a conclusion. */
int mu__query_turn(struct mu__query *query, mu_error *ret_error, uint64_t *ret_due_ms);

/* A watched file or folder has changed: the pauses before files and folders are read
 * again and before the next round end now, also those of the round under way; but after
 * a round at least four times its duration passes. Calls `wake`. */
void mu__query_hurry(struct mu__query *query);

/* The requests of the last round, for mu__exchange_describe and
 * mu__requests_explanation; NULL before the first turn. Owned by the query. */
struct mu__requests *mu__query_notes(struct mu__query *query);

/* How many rounds have failed. */
unsigned mu__query_rounds(const struct mu__query *query);

/* The time left, ms; negative: no limit. */
int64_t mu__query_left_ms(const struct mu__query *query);

#endif
