#include "transport/wire/tls/key.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

static const char word[] = "muster-key ";
static const char digits[] = "0123456789abcdef";

static void write_hex(const uint8_t *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * count] = '\0';
}

static bool read_hex(const char *text, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < 2 * count; i++) {
        const char *digit = text[i] == '\0' ? NULL : strchr(digits, text[i]);

        if (digit == NULL)
            return false;
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | (digit - digits));
    }
    return true;
}

/* HKDF-SHA256 of `key`, for the purpose that `info` names. */
static int expand_key(const uint8_t key[MU__KEY_BYTES], const char *info, uint8_t *out,
                      size_t size)
{
    static char digest[] = "SHA256";
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *ctx = kdf == NULL ? NULL : EVP_KDF_CTX_new(kdf);
    uint8_t key_copy[MU__KEY_BYTES];
    char info_copy[64];
    OSSL_PARAM params[4];
    int ok;

    memcpy(key_copy, key, sizeof key_copy);
    (void)snprintf(info_copy, sizeof info_copy, "%s", info);
    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0);
    params[1] =
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key_copy, sizeof key_copy);
    params[2] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info_copy,
                                                  strlen(info_copy));
    params[3] = OSSL_PARAM_construct_end();
    ok = ctx != NULL && EVP_KDF_derive(ctx, out, size, params) == 1;
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
    OPENSSL_cleanse(key_copy, sizeof key_copy);
    return ok ? 0 : -MU_EINTERNAL;
}

static int set_fingerprint(struct mu__key *key, mu_error *ret_error)
{
    uint8_t bytes[(MU__KEY_FINGERPRINT_BYTES - 1) / 2];

    if (expand_key(key->bytes, "muster fingerprint", bytes, sizeof bytes) != 0)
        return mu_error_set(ret_error, -MU_EINTERNAL,
                            "the fingerprint of a key cannot be computed");
    write_hex(bytes, sizeof bytes, key->fingerprint);
    return 0;
}

int mu__key_new(mu_error *ret_error, struct mu__key *ret_key)
{
    *ret_key = (struct mu__key){.right = MU__RIGHT_ALL};
    if (RAND_bytes(ret_key->bytes, sizeof ret_key->bytes) != 1)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "the system gives no random numbers for a key");
    return set_fingerprint(ret_key, ret_error);
}

/* ---- as text ---- */

void mu__key_write(const struct mu__key *key, char text[MU__KEY_TEXT_BYTES])
{
    char hex[2 * MU__KEY_BYTES + 1];

    write_hex(key->bytes, sizeof key->bytes, hex);
    (void)snprintf(text, MU__KEY_TEXT_BYTES, "%s%s %s %s", word,
                   mu__right_name(key->right), key->fingerprint, hex);
    OPENSSL_cleanse(hex, sizeof hex);
}

void mu__key_name(const struct mu__key *key, char name[MU__KEY_NAME_BYTES])
{
    (void)snprintf(name, MU__KEY_NAME_BYTES, "muster %s %s", mu__right_name(key->right),
                   key->fingerprint);
}

/* "use 6c1f09ab33e0d2f7"; returns what stands behind it, NULL: it is not that. */
static const char *parse_right(const char *text, enum mu__right *ret_right,
                               char ret_fingerprint[MU__KEY_FINGERPRINT_BYTES])
{
    uint8_t bytes[(MU__KEY_FINGERPRINT_BYTES - 1) / 2];
    size_t size = strcspn(text, " ");

    *ret_right = mu__right_of(text, (unsigned)size);
    if (*ret_right == MU__RIGHT_NONE || text[size] == '\0' ||
        !read_hex(text + size + 1, sizeof bytes, bytes))
        return NULL;
    write_hex(bytes, sizeof bytes, ret_fingerprint);
    return text + size + MU__KEY_FINGERPRINT_BYTES;
}

int mu__key_name_parse(const char *name, size_t size, enum mu__right *ret_right,
                       char ret_fingerprint[MU__KEY_FINGERPRINT_BYTES])
{
    char text[MU__KEY_NAME_BYTES];
    const char *end;

    if (size >= sizeof text || size < 7 || memcmp(name, "muster ", 7) != 0)
        return -MU_EINVALID;
    memcpy(text, name, size);
    text[size] = '\0';
    end = parse_right(text + 7, ret_right, ret_fingerprint);
    return end == text + size ? 0 : -MU_EINVALID;
}

/* Ends of lines may follow, and nothing else. */
static bool parse_line(const char *text, size_t size, struct mu__key *key)
{
    const char *at = parse_right(text + sizeof word - 1, &key->right, key->fingerprint);

    if (at == NULL || key->right == MU__RIGHT_ALL || *at != ' ' ||
        !read_hex(at + 1, MU__KEY_BYTES, key->bytes))
        return false;
    at += 1 + 2 * MU__KEY_BYTES;
    return at + strspn(at, "\r\n") == text + size;
}

int mu__key_parse(const char *name, const void *data, size_t size, mu_error *ret_error,
                  struct mu__key *ret_key)
{
    char text[MU__KEY_TEXT_BYTES] = "";
    bool is_line;

    *ret_key = (struct mu__key){.right = MU__RIGHT_ALL};
    if (size == MU__KEY_BYTES) {
        memcpy(ret_key->bytes, data, size);
        return set_fingerprint(ret_key, ret_error);
    }
    is_line = size > sizeof word && size < sizeof text &&
              memcmp(data, word, sizeof word - 1) == 0;
    if (is_line) {
        memcpy(text, data, size);
        is_line = parse_line(text, size, ret_key);
        OPENSSL_cleanse(text, sizeof text);
    }
    if (is_line)
        return 0;
    mu__key_clear(ret_key);
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s is no key: expected 32 bytes, as muster key new writes them, "
                        "or a line of muster key derive; got %zu bytes",
                        name, size);
}

int mu__key_derive(const struct mu__key *key, enum mu__right right, mu_error *ret_error,
                   struct mu__key *ret_key)
{
    char info[32];

    if (key->right == right) {
        *ret_key = *key;
        return 0;
    }
    if (key->right != MU__RIGHT_ALL)
        return mu_error_set(ret_error, -MU_EPERMISSION,
                            "a key for %s cannot be made from a key for %s: that takes "
                            "the cluster key %s",
                            mu__right_name(right), mu__right_name(key->right),
                            key->fingerprint);
    *ret_key = *key;
    ret_key->right = right;
    (void)snprintf(info, sizeof info, "muster right %s", mu__right_name(right));
    if (expand_key(key->bytes, info, ret_key->bytes, MU__KEY_BYTES) == 0)
        return 0;
    mu__key_clear(ret_key);
    return mu_error_set(ret_error, -MU_EINTERNAL, "a key cannot be derived");
}

void mu__key_clear(struct mu__key *key)
{
    OPENSSL_cleanse(key, sizeof *key);
}
