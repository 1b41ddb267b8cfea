/* The pipe between a task and `muster run`, if that has started it: a socket pair, with
 * lines in both directions (admin.h). */
#ifndef MU_NODE_SUPERVISION_PIPE_H
#define MU_NODE_SUPERVISION_PIPE_H

#include "muster/admin.h"

/* Does nothing in a process that `muster run` has not started. */
void mu__supervision_report(enum mu_supervision_event what, const char *text);

/* The descriptor to read from; -1 in such a process. */
int mu__supervision_fd(void);

#endif
