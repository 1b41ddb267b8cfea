/* One query of a resolver: rounds of it, until one is complete or a deadline has passed.
 * Blocks.
 *
 * Requests that fail for now (no connection, no answer in time, HTTP 408, 429, 500, 502,
 * 503, 504, and what is missing if the request has retry_missing) are sent again with
 * growing pauses. When the resolver itself concludes "not now" (-MU_EUNAVAILABLE,
 * -MU_EDEADLINE), another round begins with fresh requests, while there is time.
 *
 * At the deadline each request that is still open is settled with its last failure, so
 * that the resolver itself can say what it could not find out, and no request is sent
 * any more; a passing failure that it then concludes becomes -MU_EDEADLINE, with how
 * long it was tried. When an earlier round was complete, its conclusion is reported:
 * "pod a-0 is Pending" tells more than that the last round was cut off. A Retry-After
 * that is longer than the time left ends the query at once, and no round begins before
 * a Retry-After has passed.
 *
 * When a watched file or folder has changed, the pauses before files and folders are
 * read again and before the next round end; but after a round at least four times its
 * duration passes. */
#ifndef MU_RESOLVER_QUERY_H
#define MU_RESOLVER_QUERY_H

#include "resolver/engine/exchange.h"

/* How long a query may take, and what its progress lines say about that. */
struct mu__query_limits {
    /* Of the whole query. 0: one try of each request, and one round; negative: no
     * limit. */
    int64_t timeout_ms;
    uint32_t pause_most_ms; /* the longest pause between rounds; 0: the usual one */

    /* Of a query that is a part of something longer: only for the progress lines. */
    int64_t whole_ms;       /* until the end of the whole; 0: as timeout_ms;
                               negative: it has none */
    unsigned rounds_before; /* rounds that failed in the parts before */
};

struct mu__query_config {
    struct mu__sources *sources; /* borrowed */

    /* One round of the resolver: 0 or an error. */
    int (*run)(void *run_owner, struct mu__requests *requests, mu_error *ret_error);
    void *run_owner;

    /* A progress line for people, when something is going to be tried again; may be
     * NULL. */
    void (*progress)(void *owner, const char *line);
    void *owner;

    struct mu__query_limits limits;
};

/* Results of a query besides its outcome. */
struct mu__query_notes {
    struct mu__requests *requests; /* of the last round, for mu__exchange_describe and
                                      mu__requests_explanation; NULL: out of memory. The
                                      caller frees it */
    unsigned rounds;               /* that have failed */
};

/* 0, or the error; -MU_ECANCELLED: the sources were stopped. *ret_notes is always
 * written. */
int mu__query(const struct mu__query_config *config, mu_error *ret_error,
              struct mu__query_notes *ret_notes);

#endif
