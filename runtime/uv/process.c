#include "runtime/uv/process.h"

#include <pthread.h>
#include <stdatomic.h>

/* Global, since it is about the process and not about a node. */
static atomic_uint forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_fork(void)
{
    (void)atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void watch_descriptors(void)
{
    (void)pthread_atfork(NULL, NULL, on_fork);
}

void mu__process_watch(void)
{
    (void)pthread_once(&once, watch_descriptors);
}

unsigned mu__process_forks(void)
{
    return atomic_load_explicit(&forks, memory_order_relaxed);
}
