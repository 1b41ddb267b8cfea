/* The certificates of a store that is etcd: those that the variables of the resolver etcd
 * name (MUSTER_ETCD_CA_FILE, MUSTER_ETCD_CERTIFICATE_FILE, MUSTER_ETCD_KEY_FILE,
 * MUSTER_ETCD_SERVER_NAME), read once. */
#ifndef MU_NODE_ETCD_TLS_H
#define MU_NODE_ETCD_TLS_H

#include "runtime/http.h"

struct mu__etcd_tls {
    struct mu__http_tls tls;    /* its texts are ours */
};

/* -MU_EINVALID: a file cannot be read, or one is missing; with the variable. Zeroed
 * memory may be done with, also after a failure. */
int mu__etcd_tls_read(struct mu__etcd_tls *etcd, mu_error *ret_error);
void mu__etcd_tls_done(struct mu__etcd_tls *etcd);

#endif
