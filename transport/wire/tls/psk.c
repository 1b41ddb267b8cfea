/* The key of a handshake: shown by the side that connected, found by the side that
 * listens. */
#include "transport/wire/tls/internal.h"

#include <stdio.h>
#include <string.h>

/* A session of TLS 1.3 whose secret is the key. */
static SSL_SESSION *session_of(SSL *ssl, const struct mu__key *key)
{
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    SSL_SESSION *session = SSL_SESSION_new();

    if (session != NULL && cipher != NULL &&
        SSL_SESSION_set1_master_key(session, key->bytes, sizeof key->bytes) == 1 &&
        SSL_SESSION_set_cipher(session, cipher) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

int mu__tls_on_psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **ret_id,
                       size_t *ret_id_size, SSL_SESSION **ret_session)
{
    struct mu__tls *tls = SSL_get_app_data(ssl);

    *ret_session = NULL;
    if (md != NULL && EVP_MD_get_type(md) != NID_sha256)
        return 1; /* of another hash it has none */
    mu__key_name(&tls->key, tls->key_name);
    *ret_id = (const unsigned char *)tls->key_name;
    *ret_id_size = strlen(tls->key_name);
    *ret_session = session_of(ssl, &tls->key);
    tls->proof.right = tls->key.right;
    return *ret_session != NULL;
}

static void refuse_psk(struct mu__tls *tls, enum mu__right right, const char *fingerprint)
{
    (void)snprintf(tls->why, sizeof tls->why,
                   "it has the %s key %s, and this node the %s key %s; every node of a "
                   "cluster needs the same key (`muster key show`)",
                   mu__right_name(right), fingerprint, mu__right_name(tls->key.right),
                   tls->key.fingerprint);
}

/* Returning 1 without a session lets OpenSSL go on to certificates, of which there are
 * none, and tell the peer so. */
int mu__tls_on_psk_find(SSL *ssl, const unsigned char *id, size_t id_size,
                        SSL_SESSION **ret_session)
{
    struct mu__tls *tls = SSL_get_app_data(ssl);
    char fingerprint[MU__KEY_FINGERPRINT_BYTES];
    enum mu__right right;
    struct mu__key key;

    *ret_session = NULL;
    if (mu__key_name_parse((const char *)id, id_size, &right, fingerprint) != 0)
        return 1;
    if (strcmp(fingerprint, tls->key.fingerprint) != 0 ||
        mu__key_derive(&tls->key, right, NULL, &key) != 0) {
        refuse_psk(tls, right, fingerprint);
        return 1;
    }
    *ret_session = session_of(ssl, &key);
    mu__key_clear(&key);
    tls->proof.right = right;
    return *ret_session != NULL;
}
