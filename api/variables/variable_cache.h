/* What a handle of a variable has read last. */
#ifndef MU_API_VARIABLE_CACHE_H
#define MU_API_VARIABLE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL: it keeps nothing, as there is no memory. */
struct mu__variable_cache *mu__variable_cache_new(void);
void mu__variable_cache_free(struct mu__variable_cache *cache);

/* Copy what is not older than `max_age_ms`; false: there is nothing. *ret_writes is for
 * mu__variable_cache_put. */
bool mu__variable_cache_get(struct mu__variable_cache *cache, uint64_t max_age_ms,
                            void *buffer, size_t bytes, uint64_t *ret_writes);

/* Keep what was read from `began_ns` on, unless a write has ended meanwhile. */
void mu__variable_cache_put(struct mu__variable_cache *cache, const void *buffer,
                            size_t bytes, uint64_t began_ns, uint64_t writes);

/* A write has ended, however: nothing from before is given any more. */
void mu__variable_cache_drop(struct mu__variable_cache *cache);

#endif
