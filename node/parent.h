/* What a process tells `muster run`, if that has started it. */
#ifndef MU_NODE_PARENT_H
#define MU_NODE_PARENT_H

/* The process finds a pipe at this descriptor, as the variable MUSTER_PARENT_FD says
 * ("3:PID", with the pid of `muster run`). Each line in it begins with one of these. */
enum mu__told {
    MU__TOLD_LOADING = 'L',     /* the plugin that is being loaded; "": none any more */
    MU__TOLD_REASON = 'R',      /* why the process ends with an error */
    MU__TOLD_JOB_FAILED = 'J'   /* it does because the job has failed, elsewhere */
};

#define MU__PARENT_VARIABLE "MUSTER_PARENT_FD"

/* Where there is nobody to be told, nothing happens. */
void mu__tell_parent(enum mu__told what, const char *text);

#endif
