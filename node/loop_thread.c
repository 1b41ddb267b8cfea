#include "node/loop_thread.h"

static _Thread_local unsigned loops_here;

void mu__loop_thread_begin(void)
{
    loops_here++;
}

void mu__loop_thread_end(void)
{
    loops_here--;
}

int mu__call_may_wait(mu_error *ret_error)
{
    if (loops_here == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "this call waits, so it must not be made on a loop's thread "
                        "(nor by an inline function)");
}
