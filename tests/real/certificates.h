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
struct certified {
    X509 *certificate;
    EVP_PKEY *key;
    char pem[CERTIFICATE_PEM_BYTES]; /* of the certificate */
    char key_pem[CERTIFICATE_PEM_BYTES];
};

static inline void certified_pem(struct certified *certified)
{
    BIO *bio = BIO_new(BIO_s_mem());
    int size;

    assert_int_equal(PEM_write_bio_X509(bio, certified->certificate), 1);
    size = BIO_read(bio, certified->pem, sizeof certified->pem - 1);
    assert_true(size > 0);
    certified->pem[size] = '\0';
    assert_int_equal(
        PEM_write_bio_PrivateKey(bio, certified->key, NULL, NULL, 0, NULL, NULL), 1);
    size = BIO_read(bio, certified->key_pem, sizeof certified->key_pem - 1);
    assert_true(size > 0);
    certified->key_pem[size] = '\0';
    BIO_free(bio);
}

static inline void certified_add(X509 *certificate, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* Signed by `ca`, NULL: a CA itself. `names` and `unit` may be NULL. It is valid from
 * `from_s` to `to_s`, from now. */
static inline void certified_make(struct certified *certified, const struct certified *ca,
                                  const char *names, const char *unit, long from_s,
                                  long to_s)
{
    const struct certified *issuer = ca == NULL ? certified : ca;
    static long serial;
    char common_name[32];
    X509_NAME *name;

    certified->key = EVP_EC_gen("P-256");
    certified->certificate = X509_new();
    assert_non_null(certified->key);
    assert_int_equal(X509_set_version(certified->certificate, 2), 1);
    assert_int_equal(
        ASN1_INTEGER_set(X509_get_serialNumber(certified->certificate), ++serial), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certified->certificate), from_s));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certified->certificate), to_s));
    assert_int_equal(X509_set_pubkey(certified->certificate, certified->key), 1);
    name = X509_get_subject_name(certified->certificate);
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
    assert_int_equal(X509_set_issuer_name(certified->certificate,
                                          X509_get_subject_name(issuer->certificate)),
                     1);
    if (ca == NULL)
        certified_add(certified->certificate, NID_basic_constraints, "critical,CA:TRUE");
    if (names != NULL)
        certified_add(certified->certificate, NID_subject_alt_name, names);
    assert_true(X509_sign(certified->certificate, issuer->key, EVP_sha256()) > 0);
    certified_pem(certified);
}

static inline void certified_free(struct certified *certified)
{
    X509_free(certified->certificate);
    EVP_PKEY_free(certified->key);
}

#endif
