/* For targets that play with TLS: chance that is the same in each run, identities to meet
 * with, and one end of a session with what it has heard. */
#ifndef MU_TESTS_FUZZ_TLS_FUZZING_H
#define MU_TESTS_FUZZ_TLS_FUZZING_H

/* Who makes OpenSSL's random numbers can be told in no newer way. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "tests/support/test.h"

#include "tests/real/certificates.h"
#include "transport/wire/tls/internal.h"

#include <openssl/rand.h>

/* Unlike assert(), stays in every build. */
static inline void must(bool truth, const char *what)
{
    if (truth)
        return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

/* ---- Chance: each end has its own; one that is played again draws the same ---- */

static uint64_t *chance_of_now;

static inline int chance_bytes(unsigned char *out, int size)
{
    for (int i = 0; i < size; i++) {
        uint64_t z = (*chance_of_now += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        out[i] = (unsigned char)(z >> 40 ^ z >> 13);
    }
    return 1;
}

static inline int chance_ready(void)
{
    return 1;
}

/* ---- Identities ---- */

enum {
    OF_KEY,       /* the cluster's */
    OF_USE_KEY,   /* derived from it */
    OF_OTHER_KEY, /* with the fingerprint of the cluster's */
    OF_WORKER,    /* certificates: of a task */
    OF_CLIENT,    /* of a client */
    OF_NOBODY,    /* without a task's name */
    OF_OTHER_CA,
    OF_EXPIRED,
    IDENTITIES
};

static struct mu__tls_identity *identities[IDENTITIES];

static inline void add_key(int at, const struct mu__key *key)
{
    must(mu__tls_identity_of_key(key, NULL, &identities[at]) == 0, "an identity");
}

static inline void add_certificate(int at, const struct certified *ca, const char *names,
                                   const char *unit, long to_s)
{
    struct certified own;

    certified_make(&own, ca, names, unit, -7200, to_s);
    must(mu__tls_identity_of_pem(&(struct mu__tls_pem){ca->pem, own.pem, own.key_pem,
                                                       false},
                                 NULL, &identities[at]) == 0,
         "an identity");
    certified_free(&own);
}

/* Once. They stay until the process ends. */
static inline void make_identities(void)
{
    static const char worker[] = "URI:muster:/job:worker/task:0";
    static const RAND_METHOD method = {
        .bytes = chance_bytes, .pseudorand = chance_bytes, .status = chance_ready};
    static uint64_t chance = 1;
    struct certified ca;
    struct certified other;
    struct mu__key key;
    struct mu__key derived;

    if (identities[0] != NULL)
        return;
    chance_of_now = &chance;
    must(RAND_set_rand_method(&method) == 1, "chance");
    must(mu__key_new(NULL, &key) == 0, "a key");
    add_key(OF_KEY, &key);
    must(mu__key_derive(&key, MU__RIGHT_USE, NULL, &derived) == 0, "derived");
    add_key(OF_USE_KEY, &derived);
    key.bytes[7] ^= 1;
    add_key(OF_OTHER_KEY, &key);
    certified_make(&ca, NULL, NULL, NULL, -7200, 86400);
    certified_make(&other, NULL, NULL, NULL, -7200, 86400);
    add_certificate(OF_WORKER, &ca, worker, NULL, 86400);
    add_certificate(OF_CLIENT, &ca, NULL, "observe", 86400);
    add_certificate(OF_NOBODY, &ca, NULL, NULL, 86400);
    add_certificate(OF_EXPIRED, &ca, worker, NULL, -3600);
    add_certificate(OF_OTHER_CA, &other, worker, NULL, 86400);
    certified_free(&ca);
    certified_free(&other);
}

/* ---- One end ---- */

struct end {
    struct mu__tls *tls;
    uint64_t chance;
    uint32_t said; /* bytes; the n-th one is word(end, n) */
    uint32_t heard;
    bool is_over; /* it has failed, or was told the end */
    bool pauses;  /* reads once for each piece that comes */
    bool listens;
};

/* The n-th byte that an end says. */
static inline uint8_t word(bool listens, uint32_t n)
{
    return (uint8_t)(n * 7 + listens);
}

static inline void end_open(struct end *end, struct mu__tls_identity *identity,
                            bool listens)
{
    *end = (struct end){.chance = listens ? 22 : 11, .listens = listens};
    chance_of_now = &end->chance;
    end->tls = mu__tls_new(identity, listens);
    must(end->tls != NULL, "memory");
    if (!listens)
        must(mu__tls_begin(end->tls) == 0, "begun");
}

/* What has failed says why, and stays so. */
static inline void end_check_over(struct end *end, int rv)
{
    uint8_t byte;

    end->is_over = true;
    must(rv == -MU_EPERMISSION || rv == -MU_ECANCELLED, "an error of its list");
    must(rv == -MU_ECANCELLED || mu__tls_why(end->tls)[0] != '\0', "it says why");
    must(mu__tls_read(end->tls, &byte, 1) < 0, "over stays over");
    must(rv == -MU_ECANCELLED || mu__tls_write(end->tls, "x", 1) < 0, "nothing goes");
}

/* Read what there is; what is heard is what was said by the other end. */
static inline void end_read(struct end *end)
{
    uint8_t out[96];
    int rv = 1;

    while (rv > 0) {
        rv = mu__tls_read(end->tls, out, 1 + end->heard % sizeof out);
        must(rv <= 0 || mu__tls_is_open(end->tls), "nothing is read before a proof");
        for (int i = 0; i < rv; i++)
            must(out[i] == word(!end->listens, end->heard++), "as it was said");
        if (end->pauses)
            break;
    }
    if (rv < 0)
        end_check_over(end, rv);
}

/* Bytes come, `step` at a time, in memory that is gone afterwards. */
static inline void end_feed(struct end *end, const uint8_t *data, size_t size,
                            size_t step)
{
    chance_of_now = &end->chance;
    for (size_t at = 0; at < size && !end->is_over; at += step) {
        size_t part = size - at < step ? size - at : step;
        uint8_t *copy = malloc(part);

        must(copy != NULL, "memory");
        memcpy(copy, data + at, part);
        must(mu__tls_receive(end->tls, copy, part), "memory");
        end_read(end);
        must(mu__tls_keep_input(end->tls), "memory");
        free(copy);
    }
}

static inline void end_say(struct end *end, uint32_t size)
{
    uint8_t out[256];

    chance_of_now = &end->chance;
    if (end->is_over || !mu__tls_is_open(end->tls))
        return;
    for (uint32_t i = 0; i < size; i++)
        out[i] = word(end->listens, end->said + i);
    must(mu__tls_write(end->tls, out, size) == 0, "said");
    end->said += size;
}

#endif
