/* Threads of the library. */
#ifndef MU_RUNTIME_THREAD_UV_H
#define MU_RUNTIME_THREAD_UV_H

#include <pthread.h>

/* Start a thread that takes no signals: these are for the program's own threads. But
 * those that a thread brings upon itself reach the program's handlers as everywhere. As
 * pthread_create. */
int mu__thread_start(void *(*run)(void *arg), void *arg, pthread_t *ret_thread);

#endif
