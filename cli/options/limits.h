/* What this machine lets the processes of one cluster have. */
#ifndef MU_CLI_LIMITS_H
#define MU_CLI_LIMITS_H

#include "muster/error.h"

#include <stddef.h>

/* Check that `tasks` processes can be started, each with so many threads for functions
 * and linked to all others, and raise the soft limit of open files, which they inherit,
 * to what they need. -MU_EEXHAUSTED: a limit that cannot be raised is too low. */
int cli_limits_prepare(size_t tasks, unsigned threads, mu_error *ret_error);

#endif
