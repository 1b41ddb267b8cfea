/* Python objects that stay on a worker: functions and per-worker values. They are listed
 * here, to tell them from objects of C programs. */
#include "process/process.h"

#include <pthread.h>
#include <stdlib.h>

struct held {
    struct held *next;
    PyObject *object;
    int64_t number;
};

enum { BUCKETS = 4096 };

static struct held *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t last_number;

static struct held **held_bucket_of(const void *held)
{
    uintptr_t number = (uintptr_t)held;

    return &buckets[(number >> 4 ^ number >> 16) % BUCKETS];
}

void *mupy_hold(PyObject *object, int64_t *ret_number)
{
    struct held *held = malloc(sizeof *held);
    struct held **bucket = held_bucket_of(held);

    if (held == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(object);
    held->object = object;
    (void)pthread_mutex_lock(&lock);
    held->number = ++last_number;
    held->next = *bucket;
    *bucket = held;
    (void)pthread_mutex_unlock(&lock);
    if (ret_number != NULL)
        *ret_number = held->number;
    return held;
}

void mupy_let_go(void *object)
{
    struct held *held = object;
    struct held **at = held_bucket_of(held);

    (void)pthread_mutex_lock(&lock);
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    (void)pthread_mutex_unlock(&lock);
    mupy_process_dropped(held->number);
    mupy_drop_later(held->object);
    free(held);
}

static struct held *held_of(mu_run *run, const mu_value *reference)
{
    const void *object = mu_run_object(run, reference);
    struct held *at;

    if (object == NULL)
        return NULL;
    (void)pthread_mutex_lock(&lock);
    at = *held_bucket_of(object);
    while (at != NULL && at != object)
        at = at->next;
    (void)pthread_mutex_unlock(&lock);
    return at;
}

PyObject *mupy_held_object(mu_run *run, const mu_value *reference)
{
    struct held *held = held_of(run, reference);

    return held == NULL ? NULL : held->object;
}

int64_t mupy_held_number(mu_run *run, const mu_value *reference)
{
    struct held *held = held_of(run, reference);

    return held == NULL ? 0 : held->number;
}

/* Called once for each object and process. */
PyObject *mupy_held_find(int64_t number)
{
    PyObject *object = NULL;

    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; object == NULL && i < BUCKETS; i++)
        for (struct held *at = buckets[i]; at != NULL; at = at->next)
            if (at->number == number)
                object = at->object;
    Py_XINCREF(object);
    (void)pthread_mutex_unlock(&lock);
    return object;
}
