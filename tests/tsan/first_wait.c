/* The thread sanitizer (of gcc 12) makes a thread's place for signals at its first call
 * that may wait, and loses a signal that comes while it does. So the first such call of a
 * program's main thread is made here, before there is a handler. */
#include <time.h>

__attribute__((constructor)) static void wait_once(void)
{
    static const struct timespec at_once;

    (void)nanosleep(&at_once, NULL);
}
