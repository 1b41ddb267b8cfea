/* Exchanges: one request each, with its answer. The view of the request table that the
 * query has, which retries, and the sources, which answer. */
#ifndef MU_RESOLVER_EXCHANGE_H
#define MU_RESOLVER_EXCHANGE_H

#include "resolver/engine/request_table.h"
#include "resolver/engine/sources.h"
#include "runtime/base/hash_table.h"

/* One request and its answer. */
struct mu__exchange {
    struct mu__hash_node node;  /* by what is requested */
    struct mu__request request; /* a copy, with all its texts */
    struct mu__answer answer;
    bool is_sent;         /* the sources are to answer it */
    bool settled;         /* the answer is final */
    unsigned tries;       /* how often it was answered */
    uint64_t due_ms;      /* of the query: when it is sent again */
    uint64_t answered_ms; /* of the query: when it was answered last */
    char reason[160];     /* why the last try failed, when it was tried again */
    const char *who;      /* the resolver that requested it first; static */
};

/* The one that settles requests: the query, which tries them again. */
struct mu__settler {
    /* Send the exchanges of the batch, and settle all of them. */
    void (*settle)(struct mu__settler *settler, struct mu__exchange *const *batch,
                   size_t count);

    /* The time that is left, ms; negative: no limit. */
    int64_t (*left_ms)(struct mu__settler *settler);
};

/* Both are borrowed. `settler` NULL: the first answer is final, and no time is left. */
int mu__requests_new(struct mu__sources *sources, struct mu__settler *settler,
                     struct mu__requests **ret_requests);

/* NULL is fine. */
void mu__requests_free(struct mu__requests *requests);

/* The settler ends: from now on only what never waits may be requested. */
void mu__requests_end(struct mu__requests *requests);

/* Drop the answer so far: the request is to be sent once more. */
void mu__exchange_send(struct mu__exchange *exchange);

/* Called by the sources after they have filled in exchange->answer. */
void mu__exchange_answered(struct mu__exchange *exchange);

/* The time is over: settle the exchange with the answer that it has, else with
 * -MU_EDEADLINE and the reason of the last failure. */
void mu__exchange_give_up(struct mu__exchange *exchange);

/* Why the last try failed, without the request's name: "Connection refused", "status
 * 503". */
void mu__exchange_reason(const struct mu__exchange *exchange, char *out, size_t size);

/* The following requests and explanations are those of this resolver (static). */
void mu__requests_begin_pass(struct mu__requests *requests, const char *who);

/* Whether there was no memory for a request. What was found is then discarded, since a
 * variable that could not be requested looks as if it were not set. */
bool mu__requests_out_of_memory(const struct mu__requests *requests);

/* The time that is left for the resolver, ms; negative: no limit; 0: one try. */
int64_t mu__requests_left_ms(const struct mu__requests *requests);

/* The i-th exchange in the order of requesting; NULL past the end. */
struct mu__exchange *mu__requests_at(const struct mu__requests *requests, size_t i);

/* The i-th line of the explanation (mu__requests_explain): "RESOLVER: text". NULL past
 * the end. */
const char *mu__requests_explanation(const struct mu__requests *requests, size_t i);

/* Describe a request and its result for people: `variable TF_CONFIG: not set`,
 * `https://host/path: status 403, 211 bytes, after 3 tries`. Nothing secret: urls
 * without user and query. */
void mu__exchange_describe(const struct mu__exchange *exchange, char *out, size_t size);

#endif
