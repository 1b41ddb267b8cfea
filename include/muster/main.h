/* The command `muster` as a function, for programs that embed it: `python3 -m muster`
 * adds its own interpreter this way. And what `muster node` does, for programs that are
 * one task. */
#ifndef MUSTER_MAIN_H
#define MUSTER_MAIN_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_main_options {
    size_t size;                /* set by mu_main_options_init */
    const char *const *command; /* the command line that starts this program again, for
                                   the tasks of `muster run`: a path and the arguments
                                   before the verb, ended by NULL. NULL: this executable
                                   without arguments */
    int (*load)(mu_node *node, const char *module, void *user, mu_error *ret_error);
    /* for `muster node`: called before the node serves, on
       the thread that called mu_main_with(): first with "",
       then for each module of --python, in order. Returns 0,
       or a negative code with ret_error set. NULL: with
       --python the command replaces itself (exec) by an
       interpreter (MUSTER_PYTHON, or python3) with the same
       arguments */
    void *user; /* for `load` */
} mu_main_options;

/* Fill in the defaults: all NULL. */
MU_EXPORT void mu_main_options_init_sized(mu_main_options *options, size_t size);
#define mu_main_options_init(options) \
    mu_main_options_init_sized(options, sizeof(mu_main_options))

/* Run the command with these arguments (arguments[0] is its name) and return its exit
 * code. `arguments` ends with a NULL and is not kept. The command installs signal
 * handlers (see its manual page), opens standard files that are closed, and may set
 * environment variables. So call it once in a process, on the main thread, while no other
 * thread forks. */
MU_EXPORT int mu_main(int count, char **arguments);

/* The same with options of the embedding program; NULL: as mu_main. */
MU_EXPORT int mu_main_with(const mu_main_options *options, int count, char **arguments);

/* ---- One task as a process ---- */

/* Exit codes of a task's process; a program may have others. */
enum mu_exit_code {
    MU_EXIT_FINE = 0,
    MU_EXIT_FAILED = 1,  /* the job, or the task's program */
    MU_EXIT_USAGE = 2,   /* wrong options, or a plugin that cannot be loaded */
    MU_EXIT_ADDRESS = 3, /* the address, or the task, belongs to another process */
    MU_EXIT_UNENDED = 5, /* a function did not end in time */
    MU_EXIT_SIGNAL = 128 /* plus the signal's number */
};

typedef struct mu_task_options {
    size_t size;                 /* set by mu_task_options_init */
    const mu_node_options *node; /* of the node, which has a loop thread of its own */
    int mode;                    /* enum mu_mode, of a program that a plugin sets with
                                    mu_node_set_distribute */
    int ignore_environment;      /* 1: and TF_CONFIG does not count for it */
    unsigned grace_ms;           /* how long a task may take to end */
    unsigned preempt_on_sigterm; /* 1: the first SIGTERM is a preemption notice */
    int restart_exit_code;       /* of a chief whose program ends because a parameter
                                    server is unavailable, and which is started again:
                                    the job goes on; -1: none, the job has failed */
    unsigned wait_cluster;       /* 1: wait at bind_address until a client assigns a
                                    cluster and a task (mu_server_assign_cluster) */
    const char *no_cluster;      /* the error when the resolver finds no cluster; NULL:
                                    the resolver's own words */
    int (*prepare)(mu_node *node, void *user, mu_error *ret_error);
    /* called before the node serves, to load plugins; may
       be NULL */
    int (*reopen_log)(void *user); /* called at SIGHUP, on another thread: returns 0 or
                                      an errno; may be NULL */
    int stacks_fd;                 /* where SIGQUIT writes stacks */
    void *user;                    /* for these functions */
} mu_task_options;

/* Fill in the defaults: no restart_exit_code, stacks on standard error, all else 0. */
MU_EXPORT void mu_task_options_init_sized(mu_task_options *options, size_t size);
#define mu_task_options_init(options) \
    mu_task_options_init_sized(options, sizeof(mu_task_options))

/* Open a node, run its task (mu_node_main), on the chief end the job, and close the node.
 * Handles SIGTERM, SIGINT, SIGQUIT, SIGHUP and others as the manual page of `muster node`
 * says, follows a supervisor (admin.h), and logs what it does. Returns the exit code. So
 * call it once in a process, on the main thread. */
MU_EXPORT int mu_task_main(const mu_task_options *options);

#ifdef __cplusplus
}
#endif

#endif
