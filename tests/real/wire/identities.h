/* Identities for TLS, made for a test. The caller frees them. */
#ifndef MU_TESTS_REAL_WIRE_IDENTITIES_H
#define MU_TESTS_REAL_WIRE_IDENTITIES_H

#include "tests/real/certificates.h"
#include "transport/wire/tls/tls_identity.h"

static inline struct mu__tls_identity *new_key(void)
{
    struct mu__tls_identity *identity = NULL;
    struct mu__key key;

    assert_int_equal(mu__key_new(NULL, &key), 0);
    assert_int_equal(mu__tls_identity_of_key(&key, NULL, &identity), 0);
    return identity;
}

static inline struct mu__tls_identity *of_certified(const struct certified *ca,
                                                    const char *names)
{
    struct mu__tls_identity *identity = NULL;
    struct certified own;
    struct mu__tls_pem pem = {ca->pem, own.pem, own.key_pem, false};

    certified_make(&own, ca, names, NULL, -60, 3600);
    assert_int_equal(mu__tls_identity_of_pem(&pem, NULL, &identity), 0);
    certified_free(&own);
    return identity;
}

#endif
