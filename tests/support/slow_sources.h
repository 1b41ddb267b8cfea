/* Sources in virtual time, and a query that runs on them to its end. Each request
 * is answered after a while, by a list of outcomes for its tries. */
#ifndef MU_TESTS_SLOW_SOURCES_H
#define MU_TESTS_SLOW_SOURCES_H

#include "resolver/engine/query.h"

/* Outcomes in order, the last one again and again: a number is an HTTP status, "refused"
 * no connection, "missing" what is not there, "wait:N" status 503 with Retry-After of N
 * ms, "denied" -MU_EPERMISSION, "never" no answer at all, "ok" a file. */
struct slow_row {
    const char *name;
    const char *outcomes;
    uint32_t takes_ms; /* each answer; 0: it comes within the request */
};

struct slow_sources {
    struct mu__sources base;     /* first: operations cast */
    const struct slow_row *rows; /* ended by a NULL name */
    unsigned requested;
    unsigned pauses;
    unsigned cut_off; /* requests that the end came before */
    uint64_t now_ms;
    char lines[4096]; /* of progress, "[NOW] LINE\n" */
    int (*run)(struct slow_sources *sources, struct mu__requests *requests,
               mu_error *ret_error);
    unsigned runs;
    struct mu__query_notes notes;
};

/* How long each reading of the clock takes; 0 unless a test sets it. */
extern uint64_t slow_reading_ms;

/* The query's pause_most_ms. */
extern uint32_t slow_pause_most_ms;

/* Its whole_ms and rounds_before: 0 unless a test sets them. */
extern int64_t slow_whole_ms;
extern unsigned slow_rounds_before;

/* When a watched path changes, once, after so long; 0: never. */
extern uint64_t slow_hurry_ms;

/* Evaluate `run`; what comes of it. slow_done frees the notes. */
int slow_query(struct slow_sources *sources, const struct slow_row *rows,
               int (*run)(struct slow_sources *sources, struct mu__requests *requests,
                          mu_error *ret_error),
               int64_t timeout_ms, mu_error *ret_error);
void slow_done(struct slow_sources *sources);

#endif
