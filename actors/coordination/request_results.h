/* Results of changes, so that a request that is repeated changes nothing twice. Plain
 * data.
 *
 * An agent numbers its requests with ascending tokens, and reports `done`, below which
 * all were answered; results below that are forgotten. An agent whose link is closed may
 * come back and repeat its open requests, so its results are retained until many others
 * have closed after it: more than all tasks, which may all be lost at once. */
#ifndef MU_ACTORS_REQUEST_RESULTS_H
#define MU_ACTORS_REQUEST_RESULTS_H

#include "muster/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef MUSTER_TINY
enum { MU__RESULTS_MAX = 64, MU__RESULTS_CLOSED_MAX = 4 };
#else
enum {
    MU__RESULTS_MAX = 1 << 16,       /* of one agent, not acknowledged */
    MU__RESULTS_CLOSED_MAX = 1 << 16 /* closed agents with results, besides one for each
                                       known task */
};
#endif

struct mu__request_result {
    uint64_t token;
    uint64_t revision;
    int64_t number;
    int code; /* 0 or negative */
};

enum mu__request_state {
    MU__REQUEST_NEW,
    MU__REQUEST_ANSWERED,    /* its result is to be sent again */
    MU__REQUEST_ACKNOWLEDGED /* the agent has the answer: nothing is to be done */
};

struct mu__results;
struct mu__results_agent;

/* NULL: out of memory. */
struct mu__results *mu__results_new(void);

/* A secret for the hash of incarnations, which agents choose. Before the first agent. */
void mu__results_seed(struct mu__results *results, uint64_t seed);
void mu__results_free(struct mu__results *results);

/* Forget everything. */
void mu__results_clear(struct mu__results *results);

/* The agent of an incarnation (not 0), which is open from now on. NULL: out of memory.
 * Valid until an agent is forgotten. */
struct mu__results_agent *mu__results_agent(struct mu__results *results, uint64_t agent);

/* Forget the results of all tokens below `done`. */
void mu__results_acknowledge(struct mu__results_agent *agent, uint64_t done);

/* The state of a token; *ret_result is set with MU__REQUEST_ANSWERED only. */
enum mu__request_state mu__results_find(const struct mu__results_agent *agent,
                                        uint64_t token,
                                        struct mu__request_result *ret_result);

/* Room for one more result: the mu__results_add that follows does not fail.
 * -MU_EEXHAUSTED with a message, -MU_ENOMEM. */
int mu__results_reserve(struct mu__results_agent *agent, mu_error *ret_error);

/* Add the result of a token without one, not below `done`. Cheap when it is the highest
 * so far. */
void mu__results_add(struct mu__results_agent *agent,
                     const struct mu__request_result *result);

/* The link of an agent is closed. Returns the incarnation of an agent that was forgotten:
 * this one when it has no results, or the one closed longest when there are more than
 * `most`; 0: none was. */
uint64_t mu__results_agent_closed(struct mu__results *results, uint64_t agent,
                                  uint32_t most);

/* An agent with results is open again, before its first request. */
void mu__results_agent_back(struct mu__results *results, uint64_t agent);

/* Each result, those of one agent in order of tokens. Nonzero from `each` ends it and is
 * returned. */
typedef int (*mu__results_each_fn)(void *user, uint64_t agent, uint64_t done,
                                   const struct mu__request_result *result);
int mu__results_each(const struct mu__results *results, mu__results_each_fn each,
                     void *user);

/* How many results there are in all. */
uint64_t mu__results_count(const struct mu__results *results);

#endif
