/* Answers that may be given again (cache_ms of a request): tokens, which cost their
 * server more than what is done with them. Bounded; the one that ends first makes room.
 * Pure; whoever has it says what time it is. Zeroed memory has none. */
#ifndef MU_RESOLVER_ANSWER_CACHE_H
#define MU_RESOLVER_ANSWER_CACHE_H

#include "resolver/engine/request.h"

enum { MU__ANSWER_CACHE_MAX = 16 };

struct mu__answer_cache {
    struct mu__cached_answer {
        bool used; /* it is no free place */
        struct mu__request request;
        char *data;
        size_t size;
        uint64_t end_ms;
    } rows[MU__ANSWER_CACHE_MAX];
};

/* The answer to the same request, whatever its `again` was; NULL when there is none that
 * is still good, and for requests that want a new one. */
const struct mu__cached_answer *mu__answer_cache_find(struct mu__answer_cache *cache,
                                                      const struct mu__request *request,
                                                      uint64_t now_ms);

/* Copy an answer, in place of an earlier one. Without memory nothing is kept. */
void mu__answer_cache_put(struct mu__answer_cache *cache,
                          const struct mu__request *request, const char *data,
                          size_t size, uint64_t now_ms);

void mu__answer_cache_done(struct mu__answer_cache *cache);

#endif
