/* What the files of the public key-values share: api/key_values.c, api/transaction.c. */
#ifndef MU_NODE_KEY_VALUES_H
#define MU_NODE_KEY_VALUES_H

#include "api/coordination.h"

/* A request as mu_kv_request_async makes it, of which all was checked: its key is
 * normalized. */
int mu__kv_post(mu_node *node, const mu_kv_request *ask, mu_kv_done_fn done, void *user,
                mu_error *ret_error, uint64_t *ret_request);

/* A thread that waits for one request. */
struct mu__kv_wait {
    uv_sem_t woken;
    bool wants_value;
    int code;
    mu_error error;
    mu_kv_item item;
    uint64_t revision;
    int64_t number;
};

/* Begin `what`, and wait for its answer; `wait` has it. */
typedef int (*mu__kv_begin_fn)(mu_node *node, const void *what, mu_kv_done_fn done,
                               void *user, mu_error *ret_error);
int mu__kv_wait_for(mu_node *node, mu__kv_begin_fn begins, const void *what,
                    mu_error *ret_error, struct mu__kv_wait *wait);

#endif
