#include "api/variables/variable_cache.h"

#include "muster/variable.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct mu__variable_cache {
    uv_mutex_t lock; /* of all below */
    void *data;      /* NULL: nothing was kept */
    bool is_valid;
    uint64_t began_ns; /* when it was read */
    uint64_t writes;   /* that have ended */
};

struct mu__variable_cache *mu__variable_cache_new(void)
{
    struct mu__variable_cache *cache = calloc(1, sizeof *cache);

    if (cache != NULL && uv_mutex_init(&cache->lock) == 0)
        return cache;
    free(cache);
    return NULL;
}

void mu__variable_cache_free(struct mu__variable_cache *cache)
{
    if (cache == NULL)
        return;
    uv_mutex_destroy(&cache->lock);
    free(cache->data);
    free(cache);
}

bool mu__variable_cache_get(struct mu__variable_cache *cache, uint64_t max_age_ms,
                            void *buffer, size_t bytes, uint64_t *ret_writes)
{
    bool found;

    uv_mutex_lock(&cache->lock);
    found = cache->is_valid && (uv_hrtime() - cache->began_ns) / 1000000 < max_age_ms;
    if (found)
        memcpy(buffer, cache->data, bytes);
    *ret_writes = cache->writes;
    uv_mutex_unlock(&cache->lock);
    return found;
}

/* Without memory nothing is kept. */
void mu__variable_cache_put(struct mu__variable_cache *cache, const void *buffer,
                            size_t bytes, uint64_t began_ns, uint64_t writes)
{
    if (bytes > MU_VARIABLE_CACHED_BYTES_MAX)
        return;
    uv_mutex_lock(&cache->lock);
    if (cache->data == NULL)
        cache->data = malloc(bytes == 0 ? 1 : bytes);
    cache->is_valid = cache->data != NULL && cache->writes == writes;
    if (cache->is_valid) {
        memcpy(cache->data, buffer, bytes);
        cache->began_ns = began_ns;
    }
    uv_mutex_unlock(&cache->lock);
}

void mu__variable_cache_drop(struct mu__variable_cache *cache)
{
    uv_mutex_lock(&cache->lock);
    cache->is_valid = false;
    cache->writes++;
    uv_mutex_unlock(&cache->lock);
}
