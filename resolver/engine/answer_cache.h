/* A cache of answers, for requests with cache_ms: access tokens, which are expensive to
 * issue. Bounded; the answer that expires first is evicted. Pure: the caller passes the
 * time. Zeroed memory is an empty cache. */
#ifndef MU_RESOLVER_ANSWER_CACHE_H
#define MU_RESOLVER_ANSWER_CACHE_H

#include "resolver/engine/request.h"

enum { MU__ANSWER_CACHE_MAX = 16 };

struct mu__answer_cache {
    struct mu__cached_answer {
        bool used; /* the row has an answer */
        struct mu__request request;
        char *data;
        size_t size;
        uint64_t end_ms; /* when it expires */
    } rows[MU__ANSWER_CACHE_MAX];
};

/* The cached answer to the same request, whatever its `again` was; NULL when there is
 * none or it has expired, and for a request with `again`, which wants a new answer. */
const struct mu__cached_answer *mu__answer_cache_find(
    struct mu__answer_cache *cache, const struct mu__request *request, uint64_t now_ms);

/* Store a copy of an answer, in place of an earlier one. Out of memory: nothing is
 * stored. */
void mu__answer_cache_put(struct mu__answer_cache *cache,
                          const struct mu__request *request, const char *data,
                          size_t size, uint64_t now_ms);

void mu__answer_cache_done(struct mu__answer_cache *cache);

#endif
