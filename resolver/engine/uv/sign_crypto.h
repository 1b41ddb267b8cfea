/* RS256 by OpenSSL's libcrypto, which is loaded when it is first needed, as libcurl
 * is. */
#ifndef MU_RESOLVER_SIGN_CRYPTO_H
#define MU_RESOLVER_SIGN_CRYPTO_H

#include <muster/error.h>

/* Sign: RSASSA-PKCS1-v1_5 with SHA-256. `key` is the text of a private key as PEM. On
 * success the caller frees *ret_signature. -MU_EINVALID: the key is none, or not RSA;
 * -MU_EUNAVAILABLE: the library cannot be loaded; nothing of the key is in the words. Any
 * thread. */
int mu__sign_rs256(const char *key, const void *data, size_t size, mu_error *ret_error,
                   unsigned char **ret_signature, size_t *ret_size);

#endif
