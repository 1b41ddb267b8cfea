/* mu_session_config (muster/compat/server.h), as it is copied, compared, and sent to a
 * server. Pure. */
#ifndef MU_NODE_MEMBER_SESSION_CONFIG_H
#define MU_NODE_MEMBER_SESSION_CONFIG_H

#include "muster/compat/server.h"
#include "muster/value.h"

#include <stdbool.h>

enum { MU__SESSION_THREADS_MAX = 4096, MU__SESSION_FILTERS_MAX = 65536 };

/* Numbers in their range, filters that name a type or a task. -MU_EINVALID says which is
 * wrong. */
int mu__session_config_check(const mu_session_config *config, mu_error *ret_error);

/* -MU_ENOMEM. A copy is freed with mu__session_config_done; zeroed memory is fine. */
int mu__session_config_copy(const mu_session_config *config,
                            mu_session_config *ret_config);
void mu__session_config_done(mu_session_config *config);

bool mu__session_config_same(const mu_session_config *one, const mu_session_config *two);

/* A map; NULL when out of memory. */
mu_value *mu__session_config_value(const mu_session_config *config);

/* From a map that somebody sent, checked; NULL and nil are the empty config. */
int mu__session_config_read(const mu_value *value, mu_error *ret_error,
                            mu_session_config *ret_config);

/* The filters with commas between; the caller frees it. NULL when out of memory. */
char *mu__session_config_filters(const mu_session_config *config);

#endif
