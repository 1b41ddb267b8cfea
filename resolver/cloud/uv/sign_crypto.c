/* RS256 by OpenSSL. */
#include "resolver/cloud/uv/uv.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Without this callback OpenSSL asks for a passphrase on the terminal. */
static int refuse_key_passphrase(char *out, int size, int writes, void *user)
{
    (void)out;
    (void)size;
    (void)writes;
    (void)user;
    return -1;
}

static int bad_key(const char *key, mu_error *ret_error)
{
    const char *what = "is none";

    if (strstr(key, "ENCRYPTED") != NULL)
        what = "is encrypted";
    else if (strstr(key, "BEGIN PUBLIC KEY") != NULL)
        what = "is a public one";
    else if (strstr(key, "BEGIN CERTIFICATE") != NULL)
        what = "is a certificate";
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the private key %s: expected an RSA key as PEM, \"-----BEGIN "
                        "PRIVATE KEY-----\"",
                        what);
}

static int read_key(const char *key, mu_error *ret_error, EVP_PKEY **ret_key)
{
    size_t length = strlen(key);
    EVP_PKEY *read;
    BIO *text;

    if (length > INT_MAX)
        return bad_key(key, ret_error);
    text = BIO_new_mem_buf(key, (int)length);
    if (text == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    read = PEM_read_bio_PrivateKey(text, NULL, refuse_key_passphrase, NULL);
    (void)BIO_free(text);
    if (read == NULL)
        return bad_key(key, ret_error);
    if (EVP_PKEY_is_a(read, "RSA") != 1) {
        EVP_PKEY_free(read);
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the private key is of another algorithm: expected RSA");
    }
    *ret_key = read;
    return 0;
}

static bool sign_rsa(EVP_MD_CTX *context, EVP_PKEY *key, const void *data, size_t size,
                     unsigned char **ret_signature, size_t *ret_size)
{
    unsigned char *signature;
    size_t room = 0;

    if (EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) != 1 ||
        EVP_DigestSign(context, NULL, &room, data, size) != 1)
        return false;
    signature = malloc(room);
    if (signature == NULL)
        return false;
    if (EVP_DigestSign(context, signature, &room, data, size) != 1) {
        free(signature);
        return false;
    }
    *ret_signature = signature;
    *ret_size = room;
    return true;
}

int mu__crypto_sign_rs256(const char *key, const void *data, size_t size,
                          mu_error *ret_error, unsigned char **ret_signature,
                          size_t *ret_size)
{
    EVP_MD_CTX *context;
    EVP_PKEY *read = NULL;
    int rv = read_key(key, ret_error, &read);

    if (rv == 0) {
        context = EVP_MD_CTX_new();
        if (context == NULL ||
            !sign_rsa(context, read, data, size, ret_signature, ret_size))
            rv = mu_error_set(ret_error, -MU_EINTERNAL,
                              "the RSA key cannot sign: it is too small, or memory is "
                              "short");
        EVP_MD_CTX_free(context);
        EVP_PKEY_free(read);
    }
    ERR_clear_error(); /* the thread's queue, which other code reads, too */
    return rv;
}
