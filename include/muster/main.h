/* The command `muster` as a function, for programs that embed it: `python3 -m muster`
 * adds its own interpreter this way. */
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
    void *user;                 /* for `load` */
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

#ifdef __cplusplus
}
#endif

#endif
