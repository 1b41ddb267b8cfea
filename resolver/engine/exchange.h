/* Requests and their answers for those who run resolvers and answer: the query, which
 * says what is tried again, and the requester. */
#ifndef MU_RESOLVER_EXCHANGE_H
#define MU_RESOLVER_EXCHANGE_H

#include "resolver/engine/request_table.h"
#include "runtime/base/hash_table.h"

struct mu__exchange;

/* Who answers. `ask` may call mu__exchange_answer within it, and does so for those that
 * are answered at once; else later, on the same thread. */
struct mu__requester {
    const struct mu__requester_ops *ops;
};

struct mu__requester_ops {
    void (*request)(struct mu__requester *requester, struct mu__exchange *exchange);

    /* Nobody wants the answer any more; mu__exchange_answer is not called for it. Only of
     * what is with the requester. */
    void (*cancel)(struct mu__requester *requester, struct mu__exchange *exchange);
};

/* One request and its answer. */
struct mu__exchange {
    struct mu__hash_node node;  /* by what is requested */
    struct mu__request request; /* a copy, with all its texts */
    struct mu__answer answer;
    bool settled;              /* the answer is final */
    bool in_flight;            /* it is with the requester */
    unsigned tries;            /* how often it was answered */
    uint64_t due_ms;           /* the query's: when it is asked again; 0: not */
    uint64_t answered_ms;      /* the query's: when it was answered last */
    char reason[160];          /* why the last try failed that was not the final one */
    const char *who;           /* the resolver that asked first, static */
    void *own;                 /* the requester's */
    struct mu__requests *requests;
};

/* `requester` is borrowed. `answered` is called with each answer of those kinds that
 * may come later, and decides: mu__exchange_settle, at once or later, or
 * mu__exchange_retry to try again. NULL: all answers are final. */
int mu__requests_new(struct mu__requester *requester,
                     void (*answered)(void *owner, struct mu__exchange *exchange),
                     void *owner, struct mu__requests **ret_requests);

/* Cancels what is under way. NULL is fine. */
void mu__requests_free(struct mu__requests *requests);

/* The requester's: fill in exchange->answer first (data from malloc, now the
 * exchange's). */
void mu__exchange_answer(struct mu__exchange *exchange);

/* The answer is final: resolvers see it. */
void mu__exchange_settle(struct mu__exchange *exchange);

/* Ask once more; the answer so far is dropped. Of a exchange that is not settled. */
void mu__exchange_retry(struct mu__exchange *exchange);

/* No more time: what is under way is cancelled, and the exchange settled with the
 * answer that it has, else with -MU_EDEADLINE and the reason of the last failure. */
void mu__exchange_give_up(struct mu__exchange *exchange);

/* The same of all, and of each that is asked from now on: it reaches no requester. Who
 * then asks on and on hears that the answer is not known yet. */
void mu__requests_end(struct mu__requests *requests);

/* Why a try failed, without the name of what was asked: "Connection refused",
 * "status 503". */
void mu__exchange_reason(const struct mu__exchange *exchange, char *out, size_t size);

/* Before each run of a resolver: what was said is forgotten, what is asked from now on is
 * asked by `who` (static). */
void mu__requests_begin_pass(struct mu__requests *requests, const char *who);

/* Whether there was no memory for a request of this run, or for what is answered at
 * once: then what came of it counts for nothing, since a variable that could not be asked
 * for looks as if it were not set. */
bool mu__requests_out_of_memory(const struct mu__requests *requests);

/* How often a run has begun with these requests (mu__requests_begin_pass with NULL). */
unsigned mu__requests_runs(const struct mu__requests *requests);

/* How many are not settled; the i-th exchange in the order of asking, NULL past the
 * end. */
size_t mu__requests_pending(const struct mu__requests *requests);
struct mu__exchange *mu__requests_at(const struct mu__requests *requests, size_t i);

/* What the resolvers have said since mu__requests_begin_pass with NULL; each line is
 * "WHO: words". NULL past the end. */
const char *mu__requests_explanation(const struct mu__requests *requests, size_t i);

/* Write what a exchange asked and how it ended, for people: `variable TF_CONFIG: not
 * set`, `https://host/path: status 403, 211 bytes, after 3 tries`. Nothing secret: of
 * urls no user and no query. */
void mu__exchange_describe(const struct mu__exchange *exchange, char *out, size_t size);

#endif
