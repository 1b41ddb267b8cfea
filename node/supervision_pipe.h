/* The pipe by which a task reports to `muster run`, if that has started it. */
#ifndef MU_NODE_SUPERVISION_PIPE_H
#define MU_NODE_SUPERVISION_PIPE_H

/* The process finds a pipe at this descriptor, as the variable MUSTER_PARENT_FD says
 * ("3:PID", with the pid of `muster run`). Each line in it begins with one of these. */
enum mu__supervision_event {
    MU__SUPERVISION_LOADING =
        'L',                      /* the plugin that is being loaded; "": none any more */
    MU__SUPERVISION_REASON = 'R', /* why the process ends with an error */
    MU__SUPERVISION_JOB_FAILED = 'J' /* it does because the job has failed, elsewhere */
};

#define MU__SUPERVISION_VARIABLE "MUSTER_PARENT_FD"

/* Does nothing in a process that `muster run` has not started. */
void mu__supervision_report(enum mu__supervision_event what, const char *text);

#endif
