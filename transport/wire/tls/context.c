#include "transport/wire/tls/internal.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two ciphers whose hash is that of the keys, one of them for machines without AES. */
static const char ciphers[] = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";

static int fail(struct mu__tls_context *context, const char *what, mu_error *ret_error)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);
    int rv = mu_error_set(ret_error, -MU_EINVALID, "TLS: %s%s%s", what,
                          reason == NULL ? "" : ": ", reason == NULL ? "" : reason);

    ERR_clear_error();
    mu__tls_context_free(context);
    return rv;
}

static struct mu__tls_context *context_new(void)
{
    struct mu__tls_context *context = calloc(1, sizeof *context);

    if (context == NULL)
        return NULL;
    context->ssl = SSL_CTX_new(TLS_method());
    if (context->ssl == NULL ||
        SSL_CTX_set_min_proto_version(context->ssl, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context->ssl, ciphers) != 1 ||
        SSL_CTX_set_num_tickets(context->ssl, 0) != 1) {
        mu__tls_context_free(context);
        return NULL;
    }
    (void)SSL_CTX_set_options(context->ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_mode(context->ssl, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
    return context;
}

void mu__tls_context_free(struct mu__tls_context *context)
{
    if (context == NULL)
        return;
    SSL_CTX_free(context->ssl);
    mu__key_clear(&context->key);
    free(context);
}

const char *mu__tls_context_name(const struct mu__tls_context *context)
{
    return context->name;
}

/* ---- keys ---- */

int mu__tls_context_of_key(const struct mu__key *key, mu_error *ret_error,
                           struct mu__tls_context **ret_context)
{
    struct mu__tls_context *context = context_new();

    if (context == NULL)
        return fail(NULL, "no memory for a context", ret_error);
    context->key = *key;
    SSL_CTX_set_psk_use_session_callback(context->ssl, mu__tls_on_psk_use);
    SSL_CTX_set_psk_find_session_callback(context->ssl, mu__tls_on_psk_find);
    (void)snprintf(context->name, sizeof context->name, "%s key %s",
                   mu__right_name(key->right), key->fingerprint);
    *ret_context = context;
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
    ERR_clear_error();      /* the end of the text is one */
    return count > 0;
}

/* The first is this node's, those behind it lead to the CA. */
static bool use_chain(struct mu__tls_context *context, const char *text)
{
    BIO *bio = text_bio(text);
    X509 *certificate = bio == NULL ? NULL : PEM_read_bio_X509(bio, NULL, NULL, NULL);
    bool ok = certificate != NULL &&
              SSL_CTX_use_certificate(context->ssl, certificate) == 1;
    X509 *next;

    if (ok) {
        char subject[100] = "";

        (void)X509_NAME_oneline(X509_get_subject_name(certificate), subject,
                                sizeof subject);
        (void)snprintf(context->name, sizeof context->name, "certificate of %s",
                       subject);
    }
    X509_free(certificate);
    while (ok && (next = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
        ok = SSL_CTX_add1_chain_cert(context->ssl, next) == 1 &&
             (X509_free(next), true);
    BIO_free(bio);
    if (ok)
        ERR_clear_error();
    return ok;
}

/* A key that asks for a passphrase has none here. */
static int no_passphrase(char *buffer, int size, int writes, void *user)
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
    EVP_PKEY *key = bio == NULL ? NULL
                                : PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    bool ok = key != NULL && SSL_CTX_use_PrivateKey(ssl, key) == 1 &&
              SSL_CTX_check_private_key(ssl) == 1;

    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok;
}

int mu__tls_context_of_pem(const struct mu__tls_pem *pem, mu_error *ret_error,
                           struct mu__tls_context **ret_context)
{
    struct mu__tls_context *context = context_new();

    if (context == NULL)
        return fail(NULL, "no memory for a context", ret_error);
    context->any_task = pem->any_task;
    if (!use_ca(context->ssl, pem->ca))
        return fail(context, "the CA's text has no certificate in PEM", ret_error);
    if (!use_chain(context, pem->certificate))
        return fail(context, "this node's certificate cannot be read as PEM", ret_error);
    if (!use_private_key(context->ssl, pem->key == NULL ? pem->certificate : pem->key))
        return fail(context,
                    "this node's private key cannot be read as PEM without a passphrase, "
                    "or is not that of its certificate",
                    ret_error);
    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       NULL);
    *ret_context = context;
    return 0;
}
