/* Which threads run a node's loop. */
#ifndef MU_NODE_LOOP_THREAD_H
#define MU_NODE_LOOP_THREAD_H

#include <muster/error.h>

/* Count the nodes' loops that run on this thread: one more, one less. */
void mu__loop_thread_begin(void);
void mu__loop_thread_end(void);

/* Whether this thread may wait: -MU_EPRECONDITION where it runs a node's loop. */
int mu__call_may_wait(mu_error *ret_error);

#endif
