/* Requests to the sources of the real world. */
#ifndef MU_TESTS_REAL_ASKING_H
#define MU_TESTS_REAL_ASKING_H

#include "resolver/engine/exchange.h"
#include "resolver/engine/uv/real_sources.h"
#include "tests/support/test.h"

#include <pthread.h>

struct asking {
    struct mu__sources_uv *sources;
    struct mu__requests *requests;
    const struct mu__request *list; /* of asking_start */
    size_t count;
    pthread_t thread;
    bool is_started;
};

static inline void asking_begin(struct asking *a)
{
    memset(a, 0, sizeof *a);
    assert_int_equal(mu__sources_uv_new(NULL, &a->sources), 0);
    assert_int_equal(
        mu__requests_new(mu__sources_uv_base(a->sources), NULL, &a->requests), 0);
}

static inline const struct mu__answer *asking_get(struct asking *a,
                                                  const struct mu__request *request)
{
    return mu__requests_get(a->requests, request);
}

static inline void *asking_work(void *arg)
{
    const struct asking *a = arg;

    mu__requests_get_all(a->requests, a->list, a->count);
    return NULL;
}

/* Ask all of these on a thread; the list stays until asking_end. */
static inline void asking_start(struct asking *a, const struct mu__request *list,
                                size_t count)
{
    a->list = list;
    a->count = count;
    a->is_started = true;
    assert_int_equal(pthread_create(&a->thread, NULL, asking_work, a), 0);
}

/* What is under way is given up. */
static inline void asking_end(struct asking *a)
{
    if (a->is_started) {
        mu__sources_uv_stop(a->sources);
        assert_int_equal(pthread_join(a->thread, NULL), 0);
    }
    mu__requests_free(a->requests);
    mu__sources_uv_wait_for_left(a->sources, 0, NULL, NULL);
    mu__sources_uv_free(a->sources);
}

#endif
