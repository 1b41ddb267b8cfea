/* Exchanges: one request each, with its answer. The view of the request table that the
 * query has, which retries, and the requester, which answers. */
#ifndef MU_RESOLVER_EXCHANGE_H
#define MU_RESOLVER_EXCHANGE_H

#include "resolver/engine/request_table.h"
#include "runtime/base/hash_table.h"

struct mu__exchange;

/* Answers requests. `ops->request` calls mu__exchange_answer before it returns for the
 * kinds that are answered at once (enum mu__request_kind), else later, on the same
 * thread. */
struct mu__requester {
    const struct mu__requester_ops *ops;
};

struct mu__requester_ops {
    void (*request)(struct mu__requester *requester, struct mu__exchange *exchange);

    /* The answer is not wanted any more; mu__exchange_answer must not be called for it.
     * Only called for an exchange that is in flight. */
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
    uint64_t due_ms;           /* of the query: when it is sent again; 0: it is not */
    uint64_t answered_ms;      /* of the query: when it was answered last */
    char reason[160];          /* why the last try failed, when it was tried again */
    const char *who;           /* the resolver that requested it first; static */
    void *own;                 /* the requester's */
    struct mu__requests *requests;
};

/* `requester` is borrowed. `answered` is called with each answer of the kinds that may
 * come later; it calls mu__exchange_settle, at once or later, or mu__exchange_retry.
 * NULL: all answers are final. */
int mu__requests_new(struct mu__requester *requester,
                     void (*answered)(void *owner, struct mu__exchange *exchange),
                     void *owner, struct mu__requests **ret_requests);

/* Cancels the exchanges in flight. NULL is fine. */
void mu__requests_free(struct mu__requests *requests);

/* Called by the requester after it has filled in exchange->answer (data from malloc,
 * owned by the exchange from now on). */
void mu__exchange_answer(struct mu__exchange *exchange);

/* The answer is final: resolvers see it. */
void mu__exchange_settle(struct mu__exchange *exchange);

/* Send the request once more; the answer so far is dropped. Only for an exchange that
 * is neither settled nor in flight. */
void mu__exchange_retry(struct mu__exchange *exchange);

/* The time is over: cancel the exchange if it is in flight, and settle it with the
 * answer that it has, else with -MU_EDEADLINE and the reason of the last failure. */
void mu__exchange_give_up(struct mu__exchange *exchange);

/* Give up all exchanges, and each new one as it is requested: the requester gets none
 * of them. After a thousand such requests answers are NULL, not known yet: that ends a
 * resolver that requests without end. */
void mu__requests_end(struct mu__requests *requests);

/* Why the last try failed, without the request's name: "Connection refused", "status
 * 503". */
void mu__exchange_reason(const struct mu__exchange *exchange, char *out, size_t size);

/* With NULL: a run begins, and the explanation of the last one is dropped. With the
 * name of a resolver (static): the following requests and explanations are its own. */
void mu__requests_begin_pass(struct mu__requests *requests, const char *who);

/* Whether there was no memory for a request of this run. The run's result is then
 * discarded, since a variable that could not be requested looks as if it were not set. */
bool mu__requests_out_of_memory(const struct mu__requests *requests);

/* How many runs have begun with these requests (mu__requests_begin_pass with NULL). */
unsigned mu__requests_runs(const struct mu__requests *requests);

/* The i-th exchange in the order of requesting; NULL past the end. */
struct mu__exchange *mu__requests_at(const struct mu__requests *requests, size_t i);

/* The i-th line of this run's explanation (mu__requests_explain): "RESOLVER: text".
 * NULL past the end. */
const char *mu__requests_explanation(const struct mu__requests *requests, size_t i);

/* Describe a request and its result for people: `variable TF_CONFIG: not set`,
 * `https://host/path: status 403, 211 bytes, after 3 tries`. Nothing secret: urls
 * without user and query. */
void mu__exchange_describe(const struct mu__exchange *exchange, char *out, size_t size);

#endif
