/* Results of changes that agents asked for, so that each is made once however often it is
 * asked for. Plain data.
 *
 * An agent numbers what it asks with tokens that ascend, and says below which of them all
 * were answered; results below that are forgotten. An agent that is gone may come back
 * and ask again what was not answered, so its results are kept until many others are gone
 * after it: more than all tasks, which may all be lost at once and come back. */
#ifndef MU_ACTORS_ASKED_H
#define MU_ACTORS_ASKED_H

#include "muster/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef MUSTER_TINY
enum { MU__ASKED_MAX = 64, MU__ASKED_GONE_MAX = 4 };
#else
enum {
    MU__ASKED_MAX = 1 << 16,        /* results of one agent that are not done with */
    MU__ASKED_GONE_MAX = 1 << 16    /* agents that are gone, and have results, besides one
                                       for each task that is known */
};
#endif

struct mu__asked_result {
    uint64_t token;
    uint64_t revision;
    int64_t number;
    int code;               /* 0 or negative */
};

enum mu__asked_state {
    MU__ASKED_NEW,
    MU__ASKED_ANSWERED,     /* there is a result: the answer again */
    MU__ASKED_DONE          /* the agent has the answer: nothing is to be done */
};

struct mu__asked;
struct mu__asked_agent;

/* NULL: out of memory. */
struct mu__asked *mu__asked_new(void);

/* Agents choose their incarnations: a number that none of them knows, before there is
 * any. */
void mu__asked_seed(struct mu__asked *asked, uint64_t seed);
void mu__asked_free(struct mu__asked *asked);

/* Forget everything. */
void mu__asked_clear(struct mu__asked *asked);

/* The agent of that incarnation, which is not 0; it is not gone from now on. NULL: out of
 * memory. Valid until another one is asked for or something is forgotten. */
struct mu__asked_agent *mu__asked_agent(struct mu__asked *asked, uint64_t agent);

/* All tokens below `done` are done with. */
void mu__asked_done(struct mu__asked_agent *agent, uint64_t done);

/* What is known of a token; *ret_result with MU__ASKED_ANSWERED only. */
enum mu__asked_state mu__asked_look(const struct mu__asked_agent *agent, uint64_t token,
                                    struct mu__asked_result *ret_result);

/* Room for one more result: the mu__asked_add that follows does not fail.
 * -MU_EEXHAUSTED with words, -MU_ENOMEM. */
int mu__asked_reserve(struct mu__asked_agent *agent, mu_error *ret_error);

/* Add the result of a token that has none and is not done with. Cheap when it is the
 * highest so far. */
void mu__asked_add(struct mu__asked_agent *agent, const struct mu__asked_result *result);

/* The agent is gone. One is forgotten, and its incarnation returned: this one when it has
 * no results, or the one that has been gone for the longest time when there are more than
 * `most`. 0: none is. */
uint64_t mu__asked_gone(struct mu__asked *asked, uint64_t agent, uint32_t most);

/* It is back, if it has results; it need not ask anything. */
void mu__asked_back(struct mu__asked *asked, uint64_t agent);

/* Each result, those of one agent in order of tokens. Nonzero from `each` ends it and is
 * returned. */
typedef int (*mu__asked_each_fn)(void *user, uint64_t agent, uint64_t done,
                                 const struct mu__asked_result *result);
int mu__asked_each(const struct mu__asked *asked, mu__asked_each_fn each, void *user);

/* How many results there are in all. */
uint64_t mu__asked_count(const struct mu__asked *asked);

#endif
