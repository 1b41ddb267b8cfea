/* Shared by the files of the TLS layer. */
#ifndef MU_TRANSPORT_TLS_INTERNAL_H
#define MU_TRANSPORT_TLS_INTERNAL_H

#include "transport/wire/tls/endpoint.h"

#include <openssl/ssl.h>

struct mu__tls_identity {
    SSL_CTX *ssl;
    struct mu__key key; /* right MU__RIGHT_NONE: it proves itself by certificates */
    bool any_task;
    enum mu__right right; /* that it proves */
    char name[128];
};

struct mu__tls {
    SSL *ssl;
    struct mu__key key; /* that is shown, or whose peers are accepted */
    char key_name[MU__KEY_NAME_BYTES];
    bool any_task;
    enum mu__right own_right;
    bool is_open;
    bool failed;
    struct mu__proof proof;
    const uint8_t *input; /* borrowed, or `retained` */
    size_t input_size;
    uint8_t *retained;
    struct mu__buf *output;
    char why[256];
};

/* The callbacks by which OpenSSL finds the key of a handshake. */
int mu__tls_on_psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **ret_id,
                       size_t *ret_id_size, SSL_SESSION **ret_session);
int mu__tls_on_psk_find(SSL *ssl, const unsigned char *id, size_t id_size,
                        SSL_SESSION **ret_session);

/* The task that a certificate names, and its right: proof. False: it says neither, or
 * two. */
bool mu__tls_proof_of(X509 *certificate, bool any_task, struct mu__proof *ret_proof,
                      char *ret_why, size_t why_size);

#endif
