/* TLS sessions with both ends in memory: who is let in with what, and what each end says
 * where it is not. */
#include "tests/real/nodes.h"

#include "tests/real/certificates.h"
#include "transport/wire/tls/internal.h"

/* Two ends; what one puts out is what the other is given. */
struct pair {
    struct mu__tls *client;
    struct mu__tls *server;
    int client_rv;
    int server_rv;
    char client_heard[64];
    char server_heard[64];
    size_t wired; /* bytes that went over */
};

static void pair_open(struct pair *pair, struct mu__tls_identity *client,
                      struct mu__tls_identity *server)
{
    *pair = (struct pair){
        .client = mu__tls_new(client, false),
        .server = mu__tls_new(server, true),
    };
    assert_non_null(pair->client);
    assert_non_null(pair->server);
    assert_int_equal(mu__tls_begin(pair->client), 0);
}

static void pair_close(struct pair *pair)
{
    mu__tls_free(pair->client);
    mu__tls_free(pair->server);
}

/* Give `to` what `from` has to say, `step` bytes at a time; true: it had something. */
static bool carry(struct pair *pair, struct mu__tls *from, struct mu__tls *to,
                  size_t step, int *rv, char heard[64])
{
    struct mu__buf *output = mu__tls_output(from);

    if (output == NULL)
        return false;
    pair->wired += output->size;
    for (size_t at = 0; at < output->size && *rv >= 0; at += step) {
        size_t size = output->size - at < step ? output->size - at : step;
        size_t used = strlen(heard);

        assert_true(mu__tls_receive(to, output->data + at, size));
        while ((*rv = mu__tls_read(to, heard + used, 63 - used)) > 0) {
            used += (size_t)*rv;
            heard[used] = '\0';
        }
    }
    mu__buf_unref(output);
    return true;
}

static void pump(struct pair *pair, size_t step)
{
    bool moved = true;

    while (moved) {
        moved = carry(pair, pair->client, pair->server, step, &pair->server_rv,
                      pair->server_heard);
        moved |= carry(pair, pair->server, pair->client, step, &pair->client_rv,
                       pair->client_heard);
    }
}

static void say(struct mu__tls *tls, const char *words)
{
    assert_int_equal(mu__tls_write(tls, words, strlen(words)), 0);
}

/* Both are let in, and hear each other. */
static void assert_talks(struct mu__tls_identity *client, struct mu__tls_identity *server,
                         struct mu__proof *ret_of_client)
{
    static const size_t steps[] = {100000, 7, 1};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct pair pair;

        pair_open(&pair, client, server);
        pump(&pair, steps[i]);
        assert_true(mu__tls_is_open(pair.client));
        assert_true(mu__tls_is_open(pair.server));
        say(pair.client, "a question");
        say(pair.server, "an answer");
        pump(&pair, steps[i]);
        assert_string_equal(pair.server_heard, "a question");
        assert_string_equal(pair.client_heard, "an answer");
        mu__tls_proof(pair.server, ret_of_client);
        pair_close(&pair);
    }
}

/* Neither hears anything; each says why. */
static void assert_refused(struct mu__tls_identity *client,
                           struct mu__tls_identity *server, const char *client_why,
                           const char *server_why)
{
    struct pair pair;

    pair_open(&pair, client, server);
    pump(&pair, 100000);
    if (mu__tls_is_open(pair.server) || pair.server_rv >= 0)
        fail_msg("the server is open: %s", mu__tls_why(pair.server));
    assert_true(pair.client_rv < 0);
    assert_string_equal(pair.server_heard, "");
    assert_string_equal(pair.client_heard, "");
    if (strstr(mu__tls_why(pair.client), client_why) == NULL ||
        strstr(mu__tls_why(pair.server), server_why) == NULL)
        fail_msg("client: \"%s\", server: \"%s\"", mu__tls_why(pair.client),
                 mu__tls_why(pair.server));
    pair_close(&pair);
}

/* ---- keys ---- */

static struct mu__tls_identity *of_key(const struct mu__key *key)
{
    struct mu__tls_identity *identity = NULL;
    mu_error error = {0};

    assert_int_equal(mu__tls_identity_of_key(key, &error, &identity), 0);
    return identity;
}

TEST(test_one_key)
{
    struct mu__key key;
    struct mu__tls_identity *identity;
    struct mu__proof proof;

    assert_int_equal(mu__key_new(NULL, &key), 0);
    identity = of_key(&key);
    assert_talks(identity, identity, &proof);
    assert_int_equal(proof.right, MU__RIGHT_ALL);
    assert_false(proof.names_task);
    mu__tls_identity_free(identity);
}

/* Who has the cluster key meets those who have a derived one with theirs. */
TEST(test_derived_keys)
{
    struct mu__tls_identity *whole;
    struct mu__key key;

    assert_int_equal(mu__key_new(NULL, &key), 0);
    whole = of_key(&key);
    for (int i = MU__RIGHT_OBSERVE; i < MU__RIGHT_ALL; i++) {
        enum mu__right right = (enum mu__right)i;
        struct mu__tls_identity *part;
        struct mu__key derived;
        struct mu__key again;
        struct mu__proof proof;
        char text[MU__KEY_TEXT_BYTES];

        assert_int_equal(mu__key_derive(&key, right, NULL, &derived), 0);
        mu__key_write(&derived, text);
        assert_int_equal(mu__key_parse("it", text, strlen(text), NULL, &again), 0);
        assert_memory_equal(&again, &derived, sizeof again);
        part = of_key(&again);
        assert_talks(part, whole, &proof);
        assert_int_equal(proof.right, right);
        assert_refused(whole, part, "the peer has another key", "it has the cluster key");
        mu__tls_identity_free(part);
    }
    mu__tls_identity_free(whole);
}

TEST(test_other_keys)
{
    struct mu__key keys[2];
    struct mu__tls_identity *identities[2];
    char words[128];

    for (int i = 0; i < 2; i++) {
        assert_int_equal(mu__key_new(NULL, &keys[i]), 0);
        identities[i] = of_key(&keys[i]);
    }
    (void)snprintf(words, sizeof words,
                   "it has the cluster key %s, and this node the cluster key %s",
                   keys[0].fingerprint, keys[1].fingerprint);
    assert_refused(identities[0], identities[1], "the peer has another key", words);
    /* The same name, and other bytes. */
    memcpy(keys[1].fingerprint, keys[0].fingerprint, sizeof keys[0].fingerprint);
    mu__tls_identity_free(identities[1]);
    identities[1] = of_key(&keys[1]);
    assert_refused(identities[0], identities[1], "", "");
    for (int i = 0; i < 2; i++)
        mu__tls_identity_free(identities[i]);
}

TEST(test_bad_keys)
{
    static const char digits[] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        const char *text;
        bool is_key;
    } rows[] = {
        {"", false},
        {"muster-key ", false},
        {"muster-key use 0123456789abcdef %s", true},
        {"muster-key use 0123456789abcdef %s\n", true},
        {"muster-key use 0123456789abcdef %s\r\n", true},
        {"muster-key use 0123456789abcdef %s more", false},
        {"muster-key use 0123456789abcdef %s\nmore", false},
        {"muster-key use 0123456789abcdef %s0", false},
        {"muster-key use 0123456789ABCDEF %s", false},
        {"muster-key use 0123456789abcde %s", false},
        {"muster-key cluster 0123456789abcdef %s", false},
        {"muster-key everything 0123456789abcdef %s", false},
        {"muster-key  0123456789abcdef %s", false},
        {"muster-key use  %s", false},
        {"%s", false},
        {"31 bytes are too few for a key.", false},
        {"33 bytes are too many for a key..", false},
        {"32 bytes of text are a key, too.", true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__key key;
        char text[256];
        mu_error error = {0};
        int rv;

        (void)snprintf(text, sizeof text, rows[i].text, digits);
        rv = mu__key_parse("file k", text, strlen(text), &error, &key);
        if (rv != (rows[i].is_key ? 0 : -MU_EINVALID))
            fail_msg("\"%s\": %d, %s", text, rv, error.message);
        if (rv != 0)
            assert_non_null(strstr(error.message, "file k is no key"));
        assert_null(strstr(error.message, digits));
    }
}

/* The name of a key, as a peer says it; behind a zero there may be more. */
TEST(test_names_of_keys)
{
#define ROW(text, is)             \
    {                             \
        text, sizeof text - 1, is \
    }
    static const struct {
        const char *name;
        size_t size;
        bool is_name;
    } rows[] = {
        ROW("muster cluster 0123456789abcdef", true),
        ROW("muster use 0123456789abcdef", true),
        ROW("muster cluster 0123456789abcdef\0", false),
        ROW("muster cluster 0123456789abcdef\0and", false),
        ROW("muster cluster 0123456789abcdef ", false),
        ROW("muster cluster 0123456789abcde", false),
        ROW("muster cluster\0"
            "0123456789abcdef",
            false),
        ROW("muster all 0123456789abcdef", false),
        ROW("muster ", false),
        ROW("", false),
    };
#undef ROW

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char fingerprint[MU__KEY_FINGERPRINT_BYTES];
        enum mu__right right;
        int rv = mu__key_name_parse(rows[i].name, rows[i].size, &right, fingerprint);

        if ((rv == 0) != rows[i].is_name)
            fail_msg("row %zu: %d", i, rv);
    }
}

/* ---- certificates ---- */

static struct mu__tls_identity *of_certified(const struct certified *ca,
                                             const struct certified *own, bool any_task)
{
    const struct mu__tls_pem pem = {ca->pem, own->pem, own->key_pem, any_task};
    struct mu__tls_identity *identity = NULL;
    mu_error error = {0};

    if (mu__tls_identity_of_pem(&pem, &error, &identity) != 0)
        fail_msg("%s", error.message);
    return identity;
}

TEST(test_certificates)
{
    static const struct {
        const char *names;
        const char *unit;
        bool any_task;
        enum mu__right right; /* MU__RIGHT_NONE: refused */
        const char *type;
        uint32_t index;
    } rows[] = {
        {"URI:muster:/job:worker/task:3", NULL, false, MU__RIGHT_TASK, "worker", 3},
        {"DNS:a.example,URI:muster:/job:ps/task:0", NULL, false, MU__RIGHT_TASK, "ps", 0},
        {"URI:muster:/job:gpu2/task:12", NULL, false, MU__RIGHT_TASK, "gpu2", 12},
        {"URI:muster:/job:worker/task:-1", NULL, false, MU__RIGHT_NONE, "", 0},
        {"URI:muster:/job:chief/task:0", "Research", false, MU__RIGHT_TASK, "chief", 0},
        {"DNS:a.example", NULL, true, MU__RIGHT_TASK, "", 0},
        {"DNS:a.example", NULL, false, MU__RIGHT_NONE, "", 0},
        {NULL, NULL, true, MU__RIGHT_TASK, "", 0},
        {NULL, "observe", false, MU__RIGHT_OBSERVE, "", 0},
        {NULL, "use", false, MU__RIGHT_USE, "", 0},
        {NULL, "operate", false, MU__RIGHT_OPERATE, "", 0},
        {NULL, "cluster", true, MU__RIGHT_TASK, "", 0},
        {"URI:muster:/job:worker/task:3,URI:muster:/job:worker/task:4", NULL, true,
         MU__RIGHT_NONE, "", 0},
        {"URI:muster:/job:worker/task:3x", NULL, false, MU__RIGHT_NONE, "", 0},
    };
    struct certified ca;
    struct certified server;

    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    certified_make(&server, &ca, "URI:muster:/job:chief/task:0", NULL, -60, 3600);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__tls_identity *identities[2];
        struct mu__proof proof;
        struct certified own;

        certified_make(&own, &ca, rows[i].names, rows[i].unit, -60, 3600);
        identities[0] = of_certified(&ca, &own, false);
        identities[1] = of_certified(&ca, &server, rows[i].any_task);
        if (rows[i].right == MU__RIGHT_NONE) {
            struct pair pair;

            pair_open(&pair, identities[0], identities[1]);
            pump(&pair, 100000);
            assert_false(mu__tls_is_open(pair.server));
            assert_non_null(strstr(mu__tls_why(pair.server), "names"));
            pair_close(&pair);
        } else {
            assert_talks(identities[0], identities[1], &proof);
            assert_int_equal(proof.right, rows[i].right);
            assert_string_equal(proof.task_type, rows[i].type);
            assert_int_equal(proof.task_index, rows[i].index);
            assert_int_equal(proof.names_task, rows[i].type[0] != '\0');
        }
        mu__tls_identity_free(identities[0]);
        mu__tls_identity_free(identities[1]);
        certified_free(&own);
    }
    certified_free(&server);
    certified_free(&ca);
}

/* A certificate with `count` more behind it. */
static struct mu__tls_identity *of_chain(const struct certified *ca,
                                         const struct certified *own, unsigned count)
{
    size_t size = strlen(own->pem) + count * strlen(ca->pem) + 1;
    char *chain = calloc(1, size);
    struct mu__tls_identity *identity = NULL;
    struct mu__tls_pem pem = {ca->pem, chain, own->key_pem, false};
    size_t used;

    assert_non_null(chain);
    used = (size_t)snprintf(chain, size, "%s", own->pem);
    for (unsigned i = 0; i < count; i++)
        used += (size_t)snprintf(chain + used, size - used, "%s", ca->pem);
    assert_int_equal(mu__tls_identity_of_pem(&pem, NULL, &identity), 0);
    free(chain);
    return identity;
}

/* What a peer shows before it has proven itself is bounded. */
TEST(test_too_many_certificates)
{
    struct mu__tls_identity *server;
    struct mu__tls_identity *client;
    struct mu__proof proof;
    struct certified ca;
    struct certified own;

    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    certified_make(&own, &ca, "URI:muster:/job:worker/task:0", NULL, -60, 3600);
    server = of_certified(&ca, &own, false);
    client = of_chain(&ca, &own, 20);
    assert_talks(client, server, &proof);
    mu__tls_identity_free(client);
    client = of_chain(&ca, &own, 80);
    assert_refused(client, server, "", "has more than 16 KiB");
    mu__tls_identity_free(client);
    mu__tls_identity_free(server);
    certified_free(&own);
    certified_free(&ca);
}

TEST(test_bad_certificates)
{
    static const char name[] = "URI:muster:/job:worker/task:0";
    struct certified ca;
    struct certified other_ca;
    struct certified good;
    struct certified expired;
    struct certified early;
    struct certified foreign;
    struct mu__tls_identity *server;
    struct mu__tls_identity *client;
    struct mu__key key;

    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    certified_make(&other_ca, NULL, NULL, NULL, -60, 3600);
    certified_make(&good, &ca, name, NULL, -60, 3600);
    certified_make(&expired, &ca, name, NULL, -3600, -60);
    certified_make(&early, &ca, name, NULL, 3600, 7200);
    certified_make(&foreign, &other_ca, name, NULL, -60, 3600);
    server = of_certified(&ca, &good, false);

    client = of_certified(&ca, &expired, false);
    assert_refused(client, server, "this node's certificate has expired",
                   "certificate has expired");
    mu__tls_identity_free(client);
    client = of_certified(&ca, &early, false);
    assert_refused(client, server, "", "certificate is not yet valid");
    mu__tls_identity_free(client);
    client = of_certified(&ca, &foreign, false);
    assert_refused(client, server, "", "the peer's certificate: ");
    mu__tls_identity_free(client);
    client = of_certified(&other_ca, &good, false);
    assert_refused(client, server, "the peer's certificate: ",
                   "the peer's CA has not signed this node's certificate");
    mu__tls_identity_free(client);
    assert_int_equal(mu__key_new(NULL, &key), 0);
    client = of_key(&key);
    assert_refused(client, server, "", "");
    assert_refused(server, client, "the peer has another key, or proves itself by",
                   "the peer proves itself by another key, or by a certificate");
    mu__tls_identity_free(client);

    mu__tls_identity_free(server);
    certified_free(&ca);
    certified_free(&other_ca);
    certified_free(&good);
    certified_free(&expired);
    certified_free(&early);
    certified_free(&foreign);
}

TEST(test_bad_pem)
{
    struct certified ca;
    struct certified own;
    struct certified other;

    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    certified_make(&own, &ca, NULL, NULL, -60, 3600);
    certified_make(&other, &ca, NULL, NULL, -60, 3600);
    {
        const struct {
            struct mu__tls_pem pem;
            const char *words;
        } rows[] = {
            {{"", own.pem, own.key_pem, false}, "the CA's text has no certificate"},
            {{"no PEM", own.pem, own.key_pem, false}, "the CA's text has no certificate"},
            {{ca.pem, "", own.key_pem, false}, "this node's certificate"},
            {{ca.pem, own.key_pem, own.key_pem, false}, "this node's certificate"},
            {{ca.pem, own.pem, "", false}, "this node's private key"},
            {{ca.pem, own.pem, other.key_pem, false}, "this node's private key"},
            {{ca.pem, own.pem, NULL, false}, "this node's private key"},
        };

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct mu__tls_identity *identity = NULL;
            mu_error error = {0};

            assert_int_equal(mu__tls_identity_of_pem(&rows[i].pem, &error, &identity),
                             -MU_EINVALID);
            assert_non_null(strstr(error.message, rows[i].words));
        }
    }
    certified_free(&ca);
    certified_free(&own);
    certified_free(&other);
}

/* ---- strangers ---- */

/* A listening side without the key that has a certificate of its own, and asks for
 * nothing: with TLS alone that would be enough. */
TEST(test_certificate_for_the_key)
{
    struct certified ca;
    struct certified own;
    struct mu__tls_identity *stranger;
    struct mu__tls_identity *identity;
    struct mu__key key;
    struct pair pair;

    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    certified_make(&own, &ca, "URI:muster:/job:chief/task:0", NULL, -60, 3600);
    stranger = of_certified(&ca, &own, false);
    SSL_CTX_set_verify(stranger->ssl, SSL_VERIFY_NONE, NULL);
    assert_int_equal(mu__key_new(NULL, &key), 0);
    identity = of_key(&key);
    pair_open(&pair, identity, stranger);
    pump(&pair, 100000);
    assert_false(mu__tls_is_open(pair.client));
    assert_int_equal(pair.client_rv, -MU_EPERMISSION);
    assert_true(mu__tls_write(pair.client, "secret", 6) < 0);
    assert_string_equal(mu__tls_why(pair.client),
                        "the peer has shown a certificate, and not that it has the key "
                        "of this node");
    pump(&pair, 100000);
    assert_string_equal(pair.server_heard, "");
    pair_close(&pair);
    mu__tls_identity_free(identity);
    mu__tls_identity_free(stranger);
    certified_free(&own);
    certified_free(&ca);
}

/* Whatever comes instead of a handshake ends it, with words; nothing is read. */
TEST(test_garbage)
{
#define ROW(text)             \
    {                         \
        text, sizeof text - 1 \
    }
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        ROW("GET / HTTP/1.1\r\n\r\n"),
        ROW("\0SP\0\0\x50\0\0 and so on, as without TLS"),
        ROW("\x16\x03\x01\0\x20 a record of garbage, 32 bytes, so"),
        ROW("\x15\x03\x03\0\x02\x02\x28"),
        ROW("SSH-2.0-OpenSSH_9.2\r\n"),
    };
#undef ROW
    struct mu__tls_identity *identity;
    struct mu__key key;

    assert_int_equal(mu__key_new(NULL, &key), 0);
    identity = of_key(&key);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__tls *server = mu__tls_new(identity, true);
        char heard[64];
        int rv;

        assert_true(mu__tls_receive(server, rows[i].bytes, rows[i].size));
        rv = mu__tls_read(server, heard, sizeof heard);
        if (rv >= 0)
            fail_msg("row %zu: %d", i, rv);
        assert_false(mu__tls_is_open(server));
        mu__tls_free(server);
    }
    mu__tls_identity_free(identity);
}

/* A recorded handshake, played again to the same server, opens nothing. */
TEST(test_replay)
{
    struct mu__tls_identity *identity;
    struct mu__key key;
    struct mu__tls *server;
    struct pair pair;
    uint8_t recorded[8192];
    size_t recorded_size = 0;
    struct mu__buf *output;
    char heard[64];

    assert_int_equal(mu__key_new(NULL, &key), 0);
    identity = of_key(&key);
    pair_open(&pair, identity, identity);
    for (int round = 0; round < 3; round++) {
        output = mu__tls_output(pair.client);
        if (output == NULL)
            continue;
        memcpy(recorded + recorded_size, output->data, output->size);
        recorded_size += output->size;
        assert_true(mu__tls_receive(pair.server, output->data, output->size));
        (void)mu__tls_read(pair.server, heard, sizeof heard);
        mu__buf_unref(output);
        (void)carry(&pair, pair.server, pair.client, 100000, &pair.client_rv,
                    pair.client_heard);
        if (round == 0)
            say(pair.client, "pay 100");
    }
    assert_true(mu__tls_is_open(pair.server));
    server = mu__tls_new(identity, true);
    assert_true(mu__tls_receive(server, recorded, recorded_size));
    assert_true(mu__tls_read(server, heard, sizeof heard) < 0);
    assert_false(mu__tls_is_open(server));
    mu__tls_free(server);
    pair_close(&pair);
    mu__tls_identity_free(identity);
}

/* One flipped bit of what was said ends the session; what came before it is heard. */
TEST(test_flipped_bit)
{
    struct mu__tls_identity *identity;
    struct mu__key key;
    struct mu__buf *output;
    struct pair pair;
    char heard[64];

    assert_int_equal(mu__key_new(NULL, &key), 0);
    identity = of_key(&key);
    pair_open(&pair, identity, identity);
    pump(&pair, 100000);
    say(pair.client, "as it was");
    pump(&pair, 100000);
    assert_string_equal(pair.server_heard, "as it was");
    say(pair.client, "changed");
    output = mu__tls_output(pair.client);
    output->data[output->size - 3] ^= 4;
    assert_true(mu__tls_receive(pair.server, output->data, output->size));
    assert_true(mu__tls_read(pair.server, heard, sizeof heard) < 0);
    if (strstr(mu__tls_why(pair.server), "bad record mac") == NULL)
        fail_msg("%s", mu__tls_why(pair.server));
    mu__buf_unref(output);
    pair_close(&pair);
    mu__tls_identity_free(identity);
}

/* What was not read stays, in front of what comes then. */
TEST(test_read_in_parts)
{
    struct mu__tls_identity *identity;
    struct mu__buf *output;
    struct mu__key key;
    struct pair pair;
    char heard[8] = "";

    assert_int_equal(mu__key_new(NULL, &key), 0);
    identity = of_key(&key);
    pair_open(&pair, identity, identity);
    pump(&pair, 100000);
    say(pair.client, "one");
    say(pair.client, "two");
    output = mu__tls_output(pair.client);
    assert_true(mu__tls_receive(pair.server, output->data, output->size));
    assert_int_equal(mu__tls_read(pair.server, heard, 3), 3);
    assert_true(mu__tls_keep_input(pair.server));
    mu__buf_unref(output);
    say(pair.client, "three");
    output = mu__tls_output(pair.client);
    assert_true(mu__tls_receive(pair.server, output->data, output->size));
    assert_int_equal(mu__tls_read(pair.server, heard, 7), 3);
    assert_memory_equal(heard, "two", 3);
    assert_int_equal(mu__tls_read(pair.server, heard, 7), 5);
    assert_memory_equal(heard, "three", 5);
    assert_int_equal(mu__tls_read(pair.server, heard, 7), 0);
    mu__buf_unref(output);
    pair_close(&pair);
    mu__tls_identity_free(identity);
}

TEST_PROGRAM()
