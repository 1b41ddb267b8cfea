/* The identity of a node over TLS 1.3, and the ones that it accepts: a key, or
 * certificates.
 *
 * With a key, both ends prove that they have it by an external PSK with (EC)DHE, so that
 * what was said stays secret when the key is lost later. With certificates, both ends
 * show one of the same CA.
 *
 * An identity is for one loop. Connections that were made with it keep what they need of
 * it. */
#ifndef MU_TRANSPORT_TLS_IDENTITY_H
#define MU_TRANSPORT_TLS_IDENTITY_H

#include "transport/wire/tls/key.h"

struct mu__tls_identity;

/* PEM texts. `key` may stand behind the certificates of `certificate`, and is NULL
 * then. */
struct mu__tls_pem {
    const char *ca;
    const char *certificate; /* of this node, and those between it and the CA */
    const char *key;
    bool any_task; /* a certificate that names no task may be each task */
};

int mu__tls_identity_of_key(const struct mu__key *key, mu_error *ret_error,
                            struct mu__tls_identity **ret_identity);

/* -MU_EINVALID: the texts are none, or do not belong together. */
int mu__tls_identity_of_pem(const struct mu__tls_pem *pem, mu_error *ret_error,
                            struct mu__tls_identity **ret_identity);

/* Where a wire gets the identity for its next connection: valid until the next call. */
struct mu__tls_source {
    struct mu__tls_identity *(*now)(void *owner);
    void *owner;
};

void mu__tls_identity_free(struct mu__tls_identity *identity);

/* "key 6c1f09ab33e0d2f7", "certificate of CN=worker-3": for messages. */
const char *mu__tls_identity_name(const struct mu__tls_identity *identity);

#endif
