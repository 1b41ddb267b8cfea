/* How Cloud TPUs are, and what is asked of their hosts. Run by api/tpu_calls.c, as resolvers
 * are: MU__LATER means to be called again. */
#ifndef MU_RESOLVER_TPU_STATE_H
#define MU_RESOLVER_TPU_STATE_H

#include "resolver/cloud/google/tpu.h"

#include <muster/tpu.h>

/* As mu_tpu_describe. */
int mu__tpu_describe(struct mu__requests *requests, const struct mu__settings *settings,
                     mu_error *ret_error, mu_tpu_state *ret_states, size_t room,
                     size_t *ret_count);

/* 0 when all are healthy; -MU_EUNAVAILABLE with the first that is not yet;
 * -MU_EPRECONDITION when one never will be. */
int mu__tpu_check_health(const mu_tpu_state *states, size_t count, mu_error *ret_error);

/* As mu_tpu_request_version. */
int mu__tpu_request_version(struct mu__requests *requests,
                            const struct mu__settings *settings, const char *version,
                            const char *restart_type, mu_error *ret_error);

#endif
