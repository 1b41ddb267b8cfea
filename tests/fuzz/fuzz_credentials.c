/* Any bytes as what proves somebody: a file with a key, the name of a key that a peer
 * says in the clear, texts in PEM, the names in a certificate.
 *
 * What is taken is what it says that it is, and written again it is the same; what is not
 * is refused with words that do not have it in them. */
#include "tests/fuzz/tls_fuzzing.h"

#include <openssl/err.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_BYTES_MAX = 8192 };

static void try_key(const uint8_t *data, size_t size)
{
    struct mu__key key;
    struct mu__key again;
    char text[MU__KEY_TEXT_BYTES];
    mu_error error = {0};

    if (mu__key_parse("it", data, size, &error, &key) != 0) {
        must(strstr(error.message, "it is no key") != NULL, "refused with words");
        must(key.right == MU__RIGHT_NONE, "nothing of it stays");
        return;
    }
    must(strlen(key.fingerprint) == MU__KEY_FINGERPRINT_BYTES - 1, "a fingerprint");
    must(key.right > MU__RIGHT_NONE && key.right <= MU__RIGHT_ALL, "a right");
    must((key.right == MU__RIGHT_ALL) == (size == MU__KEY_BYTES), "whole by its size");
    if (key.right == MU__RIGHT_ALL)
        return;
    mu__key_write(&key, text);
    must(mu__key_parse("it", text, strlen(text), NULL, &again) == 0, "read again");
    must(memcmp(&again, &key, sizeof again) == 0, "the same");
}

static void try_name(const uint8_t *data, size_t size)
{
    struct mu__key key = {.right = MU__RIGHT_NONE};
    char name[MU__KEY_NAME_BYTES];

    if (mu__key_name_parse((const char *)data, size, &key.right, key.fingerprint) != 0)
        return;
    mu__key_name(&key, name);
    must(strlen(name) == size && memcmp(name, data, size) == 0, "the same name");
}

/* As CA, as certificate and as key; and all of them at once. */
static void try_pem(const char *text)
{
    const struct mu__tls_pem pem = {text, text, NULL, false};
    struct mu__tls_identity *identity = NULL;
    mu_error error = {0};
    int rv = mu__tls_identity_of_pem(&pem, &error, &identity);

    must(rv == 0 || (rv == -MU_EINVALID && identity == NULL), "an identity, or none");
    must(rv == 0 || strncmp(error.message, "TLS: ", 5) == 0, "refused with words");
    mu__tls_identity_free(identity);
}

static void try_proof(X509 *certificate)
{
    struct mu__proof proof = {.right = MU__RIGHT_NONE};
    char why[200] = "";

    if (certificate == NULL)
        return;
    if (!mu__tls_proof_of(certificate, true, &proof, why, sizeof why)) {
        must(strstr(why, "certificate names") != NULL, "refused with words");
        return;
    }
    must(proof.right > MU__RIGHT_NONE && proof.right <= MU__RIGHT_TASK, "a right");
    must(memchr(proof.task_type, '\0', sizeof proof.task_type) != NULL, "a text");
    must(proof.names_task == (proof.task_type[0] != '\0'), "named, or not");
}

/* A certificate with the bytes as its names: one of them, and unparsed as all. */
static void try_names(const uint8_t *data, size_t size)
{
    X509 *certificate = X509_new();
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();

    must(certificate != NULL && names != NULL && name != NULL && text != NULL, "memory");
    must(ASN1_STRING_set(text, data, (int)size) == 1, "memory");
    GENERAL_NAME_set0_value(name, GEN_URI, text);
    must(sk_GENERAL_NAME_push(names, name) == 1, "memory");
    must(X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, 0) == 1, "names");
    (void)X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "OU",
                                     MBSTRING_ASC, data, size < 64 ? (int)size : 64, -1,
                                     0);
    try_proof(certificate);
    GENERAL_NAMES_free(names);
    X509_free(certificate);
}

/* As the extension's value, which need be no list of names. */
static void try_raw_names(const uint8_t *data, size_t size)
{
    X509 *certificate = X509_new();
    ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
    X509_EXTENSION *extension = NULL;

    must(certificate != NULL && value != NULL, "memory");
    must(ASN1_OCTET_STRING_set(value, data, (int)size) == 1, "memory");
    extension = X509_EXTENSION_create_by_NID(NULL, NID_subject_alt_name, 0, value);
    must(extension != NULL && X509_add_ext(certificate, extension, -1) == 1, "names");
    try_proof(certificate);
    X509_EXTENSION_free(extension);
    ASN1_OCTET_STRING_free(value);
    X509_free(certificate);
}

static void try_der(const uint8_t *data, size_t size)
{
    const unsigned char *at = data;
    X509 *certificate = d2i_X509(NULL, &at, (long)size);

    try_proof(certificate);
    X509_free(certificate);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_BYTES_MAX + 1];

    if (size > TEXT_BYTES_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    try_key(data, size);
    try_name(data, size);
    try_pem(text);
    try_names(data, size);
    try_raw_names(data, size);
    try_der(data, size);
    ERR_clear_error();
    return 0;
}
