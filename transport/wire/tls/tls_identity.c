#include "transport/wire/tls/internal.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two ciphers whose hash is that of the keys, one of them for machines without AES. */
static const char ciphers[] = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";

/* All are quick: who asks for a large field instead would have a handshake take a hundred
 * times as long. */
static const char groups[] = "X25519:P-256:P-384";

static int fail_identity(struct mu__tls_identity *identity, const char *what,
                         mu_error *ret_error)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);
    int rv = mu_error_set(ret_error, -MU_EINVALID, "TLS: %s%s%s", what,
                          reason == NULL ? "" : ": ", reason == NULL ? "" : reason);

    ERR_clear_error();
    mu__tls_identity_free(identity);
    return rv;
}

/* Of a peer that has not proven itself yet: OpenSSL takes as much memory as it says that
 * they have. */
enum { CERTIFICATES_BYTES_MAX = 16 << 10 };

static struct mu__tls_identity *identity_new(void)
{
    struct mu__tls_identity *identity = calloc(1, sizeof *identity);

    if (identity == NULL)
        return NULL;
    identity->ssl = SSL_CTX_new(TLS_method());
    if (identity->ssl == NULL ||
        SSL_CTX_set_min_proto_version(identity->ssl, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(identity->ssl, ciphers) != 1 ||
        SSL_CTX_set1_groups_list(identity->ssl, groups) != 1 ||
        SSL_CTX_set_num_tickets(identity->ssl, 0) != 1) {
        mu__tls_identity_free(identity);
        return NULL;
    }
    (void)SSL_CTX_set_options(identity->ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_mode(identity->ssl, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(identity->ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(identity->ssl, CERTIFICATES_BYTES_MAX);
    return identity;
}

void mu__tls_identity_free(struct mu__tls_identity *identity)
{
    if (identity == NULL)
        return;
    SSL_CTX_free(identity->ssl);
    mu__key_clear(&identity->key);
    free(identity);
}

const char *mu__tls_identity_name(const struct mu__tls_identity *identity)
{
    return identity->name;
}

/* ---- keys ---- */

int mu__tls_identity_of_key(const struct mu__key *key, mu_error *ret_error,
                            struct mu__tls_identity **ret_identity)
{
    struct mu__tls_identity *identity = identity_new();

    if (identity == NULL)
        return fail_identity(NULL, "no memory for a identity", ret_error);
    identity->key = *key;
    identity->right = key->right;
    SSL_CTX_set_psk_use_session_callback(identity->ssl, mu__tls_on_psk_use);
    SSL_CTX_set_psk_find_session_callback(identity->ssl, mu__tls_on_psk_find);
    (void)snprintf(identity->name, sizeof identity->name, "%s key %s",
                   mu__right_name(key->right), key->fingerprint);
    *ret_identity = identity;
    return 0;
}

/* ---- certificates ---- */

static BIO *text_bio(const char *text)
{
    return BIO_new_mem_buf(text, -1);
}

static bool use_ca(SSL_CTX *ssl, const char *text)
{
    BIO *bio = text_bio(text);
    X509_STORE *store = SSL_CTX_get_cert_store(ssl);
    X509 *certificate;
    unsigned count = 0;

    while (bio != NULL &&
           (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        count += X509_STORE_add_cert(store, certificate) == 1;
        X509_free(certificate);
    }
    BIO_free(bio);
    ERR_clear_error(); /* the end of the text is one */
    return count > 0;
}

/* One that peers do not accept is refused by them, with the reason. */
static void set_right(struct mu__tls_identity *identity, X509 *certificate)
{
    struct mu__proof proof = {.right = MU__RIGHT_NONE};
    char why[128];

    identity->right =
        mu__tls_proof_of(certificate, identity->any_task, &proof, why, sizeof why)
            ? proof.right
            : MU__RIGHT_ALL;
}

/* The first is this node's, those behind it lead to the CA. */
static bool use_chain(struct mu__tls_identity *identity, const char *text)
{
    BIO *bio = text_bio(text);
    X509 *certificate = bio == NULL ? NULL : PEM_read_bio_X509(bio, NULL, NULL, NULL);
    bool ok =
        certificate != NULL && SSL_CTX_use_certificate(identity->ssl, certificate) == 1;
    X509 *next;

    if (ok) {
        char subject[100] = "";

        (void)X509_NAME_oneline(X509_get_subject_name(certificate), subject,
                                sizeof subject);
        (void)snprintf(identity->name, sizeof identity->name, "certificate of %s",
                       subject);
        set_right(identity, certificate);
    }
    X509_free(certificate);
    while (ok && (next = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        ok = SSL_CTX_add1_chain_cert(identity->ssl, next) == 1;
        X509_free(next);
    }
    BIO_free(bio);
    if (ok)
        ERR_clear_error();
    return ok;
}

/* A key that asks for a passphrase has none here. */
static int refuse_passphrase(char *buffer, int size, int writes, void *user)
{
    (void)buffer;
    (void)size;
    (void)writes;
    (void)user;
    return 0;
}

static bool use_private_key(SSL_CTX *ssl, const char *text)
{
    BIO *bio = text_bio(text);
    EVP_PKEY *key =
        bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, NULL);
    bool ok = key != NULL && SSL_CTX_use_PrivateKey(ssl, key) == 1 &&
              SSL_CTX_check_private_key(ssl) == 1;

    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok;
}

int mu__tls_identity_of_pem(const struct mu__tls_pem *pem, mu_error *ret_error,
                            struct mu__tls_identity **ret_identity)
{
    struct mu__tls_identity *identity = identity_new();

    if (identity == NULL)
        return fail_identity(NULL, "no memory for a identity", ret_error);
    identity->any_task = pem->any_task;
    if (!use_ca(identity->ssl, pem->ca))
        return fail_identity(identity, "the CA's text has no certificate in PEM",
                             ret_error);
    if (!use_chain(identity, pem->certificate))
        return fail_identity(identity, "this node's certificate cannot be read as PEM",
                             ret_error);
    if (!use_private_key(identity->ssl, pem->key == NULL ? pem->certificate : pem->key))
        return fail_identity(
            identity,
            "this node's private key cannot be read as PEM without a passphrase, "
            "or is not that of its certificate",
            ret_error);
    SSL_CTX_set_verify(identity->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       NULL);
    *ret_identity = identity;
    return 0;
}
