/* Opening sessions, for node/ only. */
#ifndef MU_COMPAT_SESSION_H
#define MU_COMPAT_SESSION_H

#include "muster/compat/session.h"

#include <stdatomic.h>

/* mu_session_open_worker that ends with -MU_EABORTED once *over is true: the run that it
 * is for has failed. NULL: there is none. */
int mu__session_open_worker(mu_node *node, const mu_session_options *options,
                            const atomic_bool *over, mu_error *ret_error,
                            mu_session **ret_session);

#endif
