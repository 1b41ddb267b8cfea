/* Programs of tests over a plugin that is compiled before them, as its author would:
 * against the public headers alone. */
#ifndef MUSTER_TESTS_REAL_PLUGIN_H
#define MUSTER_TESTS_REAL_PLUGIN_H

#include "tests/real/cli.h"

static struct cli run; /* what the tests start */
static char folder[64];
static char plugin[96]; /* its path */

/* Nothing else is left in the folder. */
static inline int plugin_remove(void **state)
{
    (void)state;
    (void)unlink(plugin);
    return rmdir(folder);
}

/* Runs the tests over the plugin with this text. */
#define PLUGIN_PROGRAM(text)                                     \
    static int plugin_compile(void **state)                      \
    {                                                            \
        (void)state;                                             \
        cli_folder(folder, sizeof folder);                       \
        return cli_compile(folder, text, plugin, sizeof plugin); \
    }                                                            \
    TEST_PROGRAM_WITH(plugin_compile, plugin_remove)

#endif
