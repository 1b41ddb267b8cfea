/* How a store that is etcd reaches it: as the variables of the resolver etcd say
 * (MUSTER_ETCD_CA_FILE, _CERTIFICATE_FILE, _KEY_FILE, _SERVER_NAME, _USER, _PASSWORD,
 * _PASSWORD_FILE), read once. */
#ifndef MU_NODE_ETCD_ACCESS_H
#define MU_NODE_ETCD_ACCESS_H

#include "actors/coordination/store/store.h"

#include <stdbool.h>

/* Fill in zeroed memory, with texts of its own. Certificates are read only where
 * `has_tls`. -MU_EINVALID: a file cannot be read, or a variable is missing beside another
 * one; with its name, and never with a password. The caller calls done also after a
 * failure. */
int mu__etcd_access_read(struct mu__store_access *access, bool has_tls,
                         mu_error *ret_error);
void mu__etcd_access_done(struct mu__store_access *access);

#endif
