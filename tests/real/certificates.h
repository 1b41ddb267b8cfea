/* Certificates for tests, made in memory: a CA, and what it signs. */
#ifndef MU_TESTS_REAL_CERTIFICATES_H
#define MU_TESTS_REAL_CERTIFICATES_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { CERTIFICATE_PEM_BYTES = 4096 };

/* An identity: a certificate with its key. */
struct identity {
    X509 *certificate;
    EVP_PKEY *key;
    char pem[CERTIFICATE_PEM_BYTES];        /* of the certificate */
    char key_pem[CERTIFICATE_PEM_BYTES];
};

static inline void identity_pem(struct identity *identity)
{
    BIO *bio = BIO_new(BIO_s_mem());
    int size;

    assert_int_equal(PEM_write_bio_X509(bio, identity->certificate), 1);
    size = BIO_read(bio, identity->pem, sizeof identity->pem - 1);
    assert_true(size > 0);
    identity->pem[size] = '\0';
    assert_int_equal(
        PEM_write_bio_PrivateKey(bio, identity->key, NULL, NULL, 0, NULL, NULL), 1);
    size = BIO_read(bio, identity->key_pem, sizeof identity->key_pem - 1);
    assert_true(size > 0);
    identity->key_pem[size] = '\0';
    BIO_free(bio);
}

static inline void identity_add(X509 *certificate, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* Signed by `ca`, NULL: a CA itself. `names` and `unit` may be NULL. It is valid from
 * `from_s` to `to_s`, from now. */
static inline void identity_make(struct identity *identity, const struct identity *ca,
                                 const char *names, const char *unit, long from_s,
                                 long to_s)
{
    const struct identity *issuer = ca == NULL ? identity : ca;
    static long serial;
    char common_name[32];
    X509_NAME *name;

    identity->key = EVP_EC_gen("P-256");
    identity->certificate = X509_new();
    assert_non_null(identity->key);
    assert_int_equal(X509_set_version(identity->certificate, 2), 1);
    assert_int_equal(
        ASN1_INTEGER_set(X509_get_serialNumber(identity->certificate), ++serial), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(identity->certificate), from_s));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(identity->certificate), to_s));
    assert_int_equal(X509_set_pubkey(identity->certificate, identity->key), 1);
    name = X509_get_subject_name(identity->certificate);
    (void)snprintf(common_name, sizeof common_name, "%s %ld", ca == NULL ? "CA" : "node",
                   serial);
    assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                                (const unsigned char *)common_name, -1,
                                                -1, 0),
                     1);
    if (unit != NULL)
        assert_int_equal(X509_NAME_add_entry_by_txt(name, "OU", MBSTRING_ASC,
                                                    (const unsigned char *)unit, -1, -1,
                                                    0),
                         1);
    assert_int_equal(
        X509_set_issuer_name(identity->certificate,
                             X509_get_subject_name(issuer->certificate)),
        1);
    if (ca == NULL)
        identity_add(identity->certificate, NID_basic_constraints, "critical,CA:TRUE");
    if (names != NULL)
        identity_add(identity->certificate, NID_subject_alt_name, names);
    assert_true(X509_sign(identity->certificate, issuer->key, EVP_sha256()) > 0);
    identity_pem(identity);
}

static inline void identity_free(struct identity *identity)
{
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
}

#endif
