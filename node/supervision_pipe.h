/* The pipe between a task and `muster run`, if that has started it: a socket pair, with
 * lines in both directions. */
#ifndef MU_NODE_SUPERVISION_PIPE_H
#define MU_NODE_SUPERVISION_PIPE_H

/* The process finds its end at this descriptor, as the variable MUSTER_PARENT_FD says
 * ("3:PID", with the pid of `muster run`). Each line that it writes begins with one of
 * these. */
enum mu__supervision_event {
    MU__SUPERVISION_LOADING =
        'L',                      /* the plugin that is being loaded; "": none any more */
    MU__SUPERVISION_REASON = 'R', /* why the process ends with an error */
    MU__SUPERVISION_JOB_FAILED = 'J' /* it does because the job has failed, elsewhere */
};

#define MU__SUPERVISION_VARIABLE "MUSTER_PARENT_FD"

/* Each line that it reads says that the process of another task has ended, and that
 * `muster run` will not start it again: "worker:1 was killed by signal 9 (Killed)". */
enum { MU__SUPERVISION_LINE_BYTES = 256 };

/* Does nothing in a process that `muster run` has not started. */
void mu__supervision_report(enum mu__supervision_event what, const char *text);

/* The descriptor to read from; -1 in such a process. */
int mu__supervision_fd(void);

#endif
