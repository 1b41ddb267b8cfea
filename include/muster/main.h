/* The command `muster` as a function, for a program that is the command with something of
 * its own inside: an interpreter, say. */
#ifndef MUSTER_MAIN_H
#define MUSTER_MAIN_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_main_options {
    const char *const *command; /* the words that start this program again, for the tasks
                                   of `muster run`, ended by NULL: a path, and what comes
                                   before the verb. NULL: this executable, alone */
    int (*load)(mu_node *node, const char *module, void *user, mu_error *ret_error);
                                /* `muster node`: called before the node serves, on the
                                   thread that called mu_main_with(): first with "", then
                                   for each module of --python, in order; 0 or a negative
                                   code with words in ret_error. NULL: with --python the
                                   command starts an interpreter in its own place
                                   (MUSTER_PYTHON, or python3), with the same
                                   arguments */
    void *user;                 /* for `load` */
} mu_main_options;

/* Do what the command does with these arguments, arguments[0] being its name, and return
 * its exit code. `arguments` ends with a NULL and is not kept. It takes over signals, as
 * the command's manual says, opens what is closed of the standard files, and may set
 * environment variables: once in a process, on its main thread, and with no other thread
 * that forks. */
MU_EXPORT int mu_main(int count, char **arguments);

/* The same, inside of a host; NULL: as mu_main. */
MU_EXPORT int mu_main_with(const mu_main_options *options, int count, char **arguments);

#ifdef __cplusplus
}
#endif

#endif
