/* Running a program for what it prints. Blocking: for a thread that may wait.
 *
 * Not by uv_spawn, which takes the process's handler of SIGCHLD: that is the host
 * program's. The host may also reap all children, ours too; what the program has
 * printed then counts as if it had succeeded. */
#ifndef MU_RESOLVER_RUN_UV_H
#define MU_RESOLVER_RUN_UV_H

#include <muster/error.h>

#include <stdatomic.h>
#include <stddef.h>

/* Run `program`: a path when it has a slash, else a name that is looked for in PATH.
 * `words` are its arguments and variables as MU__REQUEST_PROGRAM has them; it has the
 * environment of this process, no input, and a process group of its own. It may print
 * `bytes_max` bytes. When *cancelled becomes true, it is killed with its group.
 *
 * Owns:    the caller frees *ret_data, behind which stands a zero byte.
 * Returns: -MU_ENOTFOUND, -MU_EPERMISSION, -MU_EINVALID: it cannot be run;
 *          -MU_EPRECONDITION: it has failed, with the last line that it wrote to its
 *          standard error; -MU_EEXHAUSTED, -MU_ECANCELLED, -MU_EUNAVAILABLE,
 *          -MU_ENOMEM. Nothing of what it printed is in the words. */
int mu__run_program(const char *program, const void *words, size_t words_size,
                    size_t bytes_max, const atomic_bool *cancelled, mu_error *ret_error,
                    char **ret_data, size_t *ret_size);

#endif
