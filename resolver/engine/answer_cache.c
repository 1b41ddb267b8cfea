#include "resolver/engine/answer_cache.h"

#include <stdlib.h>
#include <string.h>

static void drop_cached_answer(struct mu__cached_answer *row)
{
    if (row->used)
        mu__request_free_copy(&row->request);
    free(row->data);
    *row = (struct mu__cached_answer){0};
}

/* The request without `again`, under which its answer is stored. */
static struct mu__request without_again(const struct mu__request *request)
{
    struct mu__request any = *request;

    any.again = 0;
    return any;
}

static struct mu__cached_answer *find_cached_answer(struct mu__answer_cache *cache,
                                                    const struct mu__request *request)
{
    const struct mu__request any = without_again(request);

    for (size_t i = 0; i < MU__ANSWER_CACHE_MAX; i++)
        if (cache->rows[i].used && mu__request_same(&cache->rows[i].request, &any))
            return &cache->rows[i];
    return NULL;
}

const struct mu__cached_answer *mu__answer_cache_find(
    struct mu__answer_cache *cache, const struct mu__request *request, uint64_t now_ms)
{
    struct mu__cached_answer *row;

    if (request->cache_ms == 0 || request->again != 0)
        return NULL;
    row = find_cached_answer(cache, request);
    return row != NULL && now_ms < row->end_ms ? row : NULL;
}

/* A free row, else the one that expires first. */
static struct mu__cached_answer *make_cache_room(struct mu__answer_cache *cache)
{
    struct mu__cached_answer *first = &cache->rows[0];

    for (size_t i = 0; i < MU__ANSWER_CACHE_MAX; i++) {
        if (!cache->rows[i].used)
            return &cache->rows[i];
        if (cache->rows[i].end_ms < first->end_ms)
            first = &cache->rows[i];
    }
    drop_cached_answer(first);
    return first;
}

void mu__answer_cache_put(struct mu__answer_cache *cache,
                          const struct mu__request *request, const char *data,
                          size_t size, uint64_t now_ms)
{
    const struct mu__request any = without_again(request);
    struct mu__cached_answer *row = find_cached_answer(cache, request);

    if (row == NULL)
        row = make_cache_room(cache);
    else
        drop_cached_answer(row);
    row->used = mu__request_copy(&any, &row->request) == 0;
    row->data = malloc(size + 1);
    if (!row->used || row->data == NULL) {
        drop_cached_answer(row);
        return;
    }
    if (size > 0)
        memcpy(row->data, data, size);
    row->data[size] = '\0';
    row->size = size;
    row->end_ms = now_ms + request->cache_ms;
}

void mu__answer_cache_done(struct mu__answer_cache *cache)
{
    for (size_t i = 0; i < MU__ANSWER_CACHE_MAX; i++)
        drop_cached_answer(&cache->rows[i]);
}
