/* Threads of the library. */
#ifndef MU_RUNTIME_THREAD_UV_H
#define MU_RUNTIME_THREAD_UV_H

#include <pthread.h>

/* Start a thread that takes no signals, which are for the program's own threads; those
 * that a thread raises itself (SIGSEGV) still reach the program's handlers. Returns as
 * pthread_create. */
int mu__thread_start(void *(*run)(void *arg), void *arg, pthread_t *ret_thread);

#endif
