/* Iterators: objects of workers that give one element at a time to whoever asks. */
#include "actors/worker/run.h"

#include "muster/node.h"

#include <stdbool.h>
#include <stdlib.h>
#include <uv.h>

/* Any executor thread; the lock guards `ended` and the calling of `next`. */
struct iterator {
    uv_mutex_t lock;
    int (*next)(void *state, mu_value **ret_element);
    void (*drop)(void *state);
    void *state;
    bool ended;
};

/* What objects of this kind are known by: only its address counts. */
static const char kind[] = "iterator";

static void iterator_free(void *object)
{
    struct iterator *iterator = object;

    if (iterator->drop != NULL)
        iterator->drop(iterator->state);
    uv_mutex_destroy(&iterator->lock);
    free(iterator);
}

static struct iterator *iterator_new(void)
{
    struct iterator *iterator = calloc(1, sizeof *iterator);

    if (iterator == NULL || uv_mutex_init(&iterator->lock) == 0)
        return iterator;
    free(iterator);
    return NULL;
}

/* The run fails like one that has no memory for an object. */
static int refuse(mu_run *run, void (*drop)(void *state), void *state, int code)
{
    if (drop != NULL)
        drop(state);
    if (run == NULL)
        return code;
    mu_run_return(run, NULL);
    run->no_memory = true;
    return code;
}

int mu_run_return_iterator(mu_run *run, int (*next)(void *state, mu_value **ret_element),
                           void (*drop)(void *state), void *state)
{
    struct iterator *iterator;

    if (run == NULL || next == NULL)
        return refuse(run, drop, state, -MU_EINVALID);
    iterator = iterator_new();
    if (iterator == NULL)
        return refuse(run, drop, state, -MU_ENOMEM);
    iterator->next = next;
    iterator->drop = drop;
    iterator->state = state;
    return mu__run_keep_object(run, iterator, iterator_free, kind);
}

/* With the lock. */
static int take_next(struct iterator *iterator, mu_value **ret_element)
{
    mu_value *element = NULL;
    int rv = iterator->ended ? -MU_ERANGE : iterator->next(iterator->state, &element);

    if (rv == 0 && element == NULL)
        return -MU_ENOMEM;
    if (rv == 0)
        *ret_element = element;
    iterator->ended = rv == -MU_ERANGE;
    return rv > 0 ? -MU_EUNKNOWN : rv;
}

int mu_run_iterator_next(mu_run *run, const mu_value *iterator, mu_value **ret_element)
{
    struct iterator *found = mu__run_find_object(iterator, kind);
    int rv;

    (void)run;
    if (found == NULL)
        return -MU_EINVALID;
    uv_mutex_lock(&found->lock);
    rv = take_next(found, ret_element);
    uv_mutex_unlock(&found->lock);
    return rv;
}
