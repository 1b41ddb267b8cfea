#include "resolver/engine/uv/sign_crypto.h"

#include <dlfcn.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libcrypto.so.3"

/* Only its header is compiled with: whoever signs nothing does not load it. */
#define FUNCTIONS(X)                \
    X(BIO_new_mem_buf)              \
    X(BIO_free)                     \
    X(PEM_read_bio_PrivateKey)      \
    X(EVP_PKEY_is_a)                \
    X(EVP_PKEY_free)                \
    X(EVP_MD_CTX_new)               \
    X(EVP_MD_CTX_free)              \
    X(EVP_sha256)                   \
    X(EVP_DigestSignInit)           \
    X(EVP_DigestSign)               \
    X(ERR_clear_error)

static struct crypto {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} crypto;

static const char *const names[] = {
#define NAME(name) #name,
    FUNCTIONS(NAME)
#undef NAME
};

/* As in runtime/uv/load_curl.c: what dlsym gives is copied as bytes. */
_Static_assert(sizeof(struct crypto) == sizeof names / sizeof names[0] * sizeof(void *),
               "pointers to functions have the size of others");

static int load_all(mu_error *ret_error)
{
    void *functions[sizeof names / sizeof names[0]];
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library != NULL && i < sizeof names / sizeof names[0]; i++) {
        functions[i] = dlsym(library, names[i]);
        if (functions[i] == NULL)
            library = NULL;
    }
    if (library == NULL)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, LIBRARY " cannot be loaded: %s",
                            dlerror());
    memcpy(&crypto, functions, sizeof functions);
    return 0;
}

/* Once loaded it stays; what failed is tried again by the next call. */
static int load(mu_error *ret_error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool loaded;
    int rv = 0;

    (void)pthread_mutex_lock(&lock);
    if (!loaded)
        rv = load_all(ret_error);
    loaded = rv == 0;
    (void)pthread_mutex_unlock(&lock);
    return rv;
}

/* Nobody is asked for a passphrase: without this OpenSSL reads from the terminal. */
static int no_passphrase(char *out, int size, int writes, void *user)
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
    text = crypto.BIO_new_mem_buf(key, (int)length);
    if (text == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    read = crypto.PEM_read_bio_PrivateKey(text, NULL, no_passphrase, NULL);
    (void)crypto.BIO_free(text);
    if (read == NULL)
        return bad_key(key, ret_error);
    if (crypto.EVP_PKEY_is_a(read, "RSA") != 1) {
        crypto.EVP_PKEY_free(read);
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the private key is of another algorithm: expected RSA");
    }
    *ret_key = read;
    return 0;
}

static bool sign(EVP_MD_CTX *context, EVP_PKEY *key, const void *data, size_t size,
                 unsigned char **ret_signature, size_t *ret_size)
{
    unsigned char *signature;
    size_t room = 0;

    if (crypto.EVP_DigestSignInit(context, NULL, crypto.EVP_sha256(), NULL, key) != 1 ||
        crypto.EVP_DigestSign(context, NULL, &room, data, size) != 1)
        return false;
    signature = malloc(room);
    if (signature == NULL)
        return false;
    if (crypto.EVP_DigestSign(context, signature, &room, data, size) != 1) {
        free(signature);
        return false;
    }
    *ret_signature = signature;
    *ret_size = room;
    return true;
}

int mu__sign_rs256(const char *key, const void *data, size_t size, mu_error *ret_error,
                   unsigned char **ret_signature, size_t *ret_size)
{
    EVP_MD_CTX *context;
    EVP_PKEY *read = NULL;
    int rv = load(ret_error);

    if (rv != 0)
        return rv;
    rv = read_key(key, ret_error, &read);
    if (rv == 0) {
        context = crypto.EVP_MD_CTX_new();
        if (context == NULL || !sign(context, read, data, size, ret_signature, ret_size))
            rv = mu_error_set(ret_error, -MU_EINTERNAL,
                              "the RSA key cannot sign: it is too small, or memory is "
                              "short");
        crypto.EVP_MD_CTX_free(context);
        crypto.EVP_PKEY_free(read);
    }
    crypto.ERR_clear_error();   /* of this thread; others may look there, too */
    return rv;
}
