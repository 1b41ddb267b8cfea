/* TLS of nng's sockets: who is refused, and the libuv wire at the other end. */
#include "tests/real/wire/wire_nng_fixture.h"

#include "tests/real/certificates.h"
#include "transport/wire/nng/nng_tls.h"

#include <nng/supplemental/tls/tls.h>
#include <signal.h>

enum { A_WHILE_MS = 400, OUT = 1 };

struct noted {
    unsigned ups;
    unsigned frames;
    uint64_t until_ms;
};

static void up(void *owner, uint32_t out)
{
    (void)out;
    ((struct noted *)owner)->ups++;
}

static void down(void *owner, uint32_t number, const char *reason)
{
    (void)owner;
    (void)number;
    (void)reason;
}

static void writable(void *owner, uint32_t out)
{
    (void)owner;
    (void)out;
}

static bool frame(void *owner, uint32_t in, struct mu__buf *buf)
{
    (void)in;
    (void)buf;
    ((struct noted *)owner)->frames++;
    return true;
}

static void burst_end(void *owner)
{
    (void)owner;
}

static const struct mu__wire_events events = {
    .up = up,
    .down = down,
    .writable = writable,
    .frame = frame,
    .burst_end = burst_end,
};

static bool has_frame(void *arg)
{
    return ((struct noted *)arg)->frames > 0;
}

static bool is_up_or_late(void *arg)
{
    const struct noted *noted = arg;

    return noted->ups > 0 || uv_hrtime() / 1000000 >= noted->until_ms;
}

/* ---- certificates ---- */

static struct certified ca;
static struct certified other_ca;
static struct certified good;
static struct certified of_other_ca;
static struct certified expired;
static struct certified of_other_host;

static int make(void **state)
{
    (void)state;
    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    certified_make(&other_ca, NULL, NULL, NULL, -60, 3600);
    certified_make(&good, &ca, "URI:muster:/job:worker/task:0,IP:127.0.0.1", NULL, -60,
                   3600);
    certified_make(&of_other_ca, &other_ca, "IP:127.0.0.1", NULL, -60, 3600);
    certified_make(&expired, &ca, "IP:127.0.0.1", NULL, -3600, -60);
    certified_make(&of_other_host, &ca, "IP:127.0.0.2", NULL, -60, 3600);
    return 0;
}

static int done(void **state)
{
    (void)state;
    certified_free(&ca);
    certified_free(&other_ca);
    certified_free(&good);
    certified_free(&of_other_ca);
    certified_free(&expired);
    certified_free(&of_other_host);
    return 0;
}

static struct mu__tls_pem pem_of(const struct certified *issuer,
                                 const struct certified *own)
{
    return (struct mu__tls_pem){issuer->pem, own->pem, own->key_pem, true};
}

/* ---- two wires ---- */

/* With these certificates, NULL: plain. The first dials the second; after a while it is
 * up, or never. */
static bool connects(const char *url, const struct mu__tls_pem *from,
                     const struct mu__tls_pem *to)
{
    struct place *place = place_new(url);
    struct noted noted[2] = {{0, 0, 0}, {0, 0, 0}};
    struct mu__proof proof;
    struct mu__wire *wire;
    struct mu__wire *listens;
    struct mu__buf *buf;
    bool is_connected;

    place->pem = from;
    wire = place_open(place, 0, &events, &noted[0]);
    place->pem = to;
    listens = place_open(place, 1, &events, &noted[1]);
    assert_int_equal(wire->ops->dial(wire, OUT, place_url(place, 1)), 0);
    noted[0].until_ms = uv_hrtime() / 1000000 + A_WHILE_MS;
    assert_true(place_run(place, is_up_or_late, &noted[0]));
    is_connected = noted[0].ups > 0;
    if (is_connected) {
        buf = wire->ops->buffer(wire, 8);
        assert_non_null(buf);
        buf->size = 8;
        assert_int_equal(wire->ops->send(wire, OUT, buf), 0);
        assert_true(place_run(place, has_frame, &noted[1]));
        listens->ops->proof(listens, MU__WIRE_ACCEPTED | 1, &proof);
        assert_int_equal(proof.right, to == NULL ? MU__RIGHT_ALL : MU__RIGHT_TASK);
        assert_false(proof.names_task);
    } else {
        assert_int_equal(noted[1].frames, 0);
        assert_non_null(wire->ops->last_error(wire, OUT));
    }
    place_close(place, 0);
    place_close(place, 1);
    place_free(place);
    return is_connected;
}

TEST(test_who_is_refused)
{
    const struct mu__tls_pem trusted = pem_of(&ca, &good);
    const struct mu__tls_pem stranger = pem_of(&other_ca, &of_other_ca);
    const struct mu__tls_pem unsigned_by_ours = pem_of(&ca, &of_other_ca);
    const struct mu__tls_pem late = pem_of(&ca, &expired);
    static const char *const urls[] = {"tcp://127.0.0.1:0", "ws://127.0.0.1:0"};

    for (size_t i = 0; i < 2; i++) {
        assert_true(connects(urls[i], &trusted, &trusted));
        assert_false(connects(urls[i], &trusted, &stranger));
        assert_false(connects(urls[i], &stranger, &trusted));
        assert_false(connects(urls[i], &unsigned_by_ours, &trusted));
        assert_false(connects(urls[i], &trusted, &unsigned_by_ours));
        assert_false(connects(urls[i], &late, &trusted));
        assert_false(connects(urls[i], &trusted, &late));
        assert_false(connects(urls[i], NULL, &trusted));
        assert_false(connects(urls[i], &trusted, NULL));
        assert_true(connects(urls[i], NULL, NULL));
    }
}

/* Compared only where nng's TLS library compares addresses. */
TEST(test_certificate_of_another_host)
{
    const struct mu__tls_pem trusted = pem_of(&ca, &good);
    const struct mu__tls_pem elsewhere = pem_of(&ca, &of_other_host);
    bool is_compared = strstr(nng_tls_engine_description(), "TLS 2.") == NULL;

    assert_int_equal(connects("tcp://127.0.0.1:0", &trusted, &elsewhere), !is_compared);
    assert_true(connects("tcp://127.0.0.1:0", &elsewhere, &trusted));
}

static void expect_no_open(const char *url, const struct mu__tls_pem *pem,
                           const char *words)
{
    struct place *place = place_new("tcp://127.0.0.1:0");
    struct mu__wire_nng *wire = NULL;
    struct noted noted = {0, 0, 0};
    mu_error error;

    assert_int_equal(mu__wire_nng_open(&place->loop, url, pem, &events, &noted, &error,
                                       &wire),
                     -MU_EINVALID);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, words);
    (void)uv_run(&place->loop, UV_RUN_NOWAIT);
    place_free(place);
}

TEST(test_what_cannot_be_listened_with)
{
    const struct mu__tls_pem nonsense = {"nonsense", "nonsense", "nonsense", true};
    const struct mu__tls_pem no_key = {ca.pem, good.pem, other_ca.pem, true};

    expect_no_open("tls+tcp://127.0.0.1:0", NULL, "it needs certificates");
    expect_no_open("wss://127.0.0.1:0", NULL, "it needs certificates");
    expect_no_open("tcp://127.0.0.1:0", &nonsense, "refuses the certificates");
    expect_no_open("tcp://127.0.0.1:0", &no_key, "refuses the certificates");
    expect_no_open("http://127.0.0.1:0", NULL, "it must begin with");
}

/* A url that needs TLS is refused where there is none. */
TEST(test_dial_without_certificates)
{
    struct place *place = place_new("tcp://127.0.0.1:0");
    struct noted noted = {0, 0, 0};
    struct mu__wire *wire = place_open(place, 0, &events, &noted);

    assert_int_equal(wire->ops->dial(wire, OUT, "tls+tcp://127.0.0.1:1"), -MU_EINVALID);
    assert_int_equal(wire->ops->dial(wire, OUT, "wss://127.0.0.1:1"), -MU_EINVALID);
    assert_int_equal(wire->ops->dial(wire, OUT, "tcp://127.0.0.1:1"), 0);
    place_close(place, 0);
    place_free(place);
}

/* ---- the libuv wire ---- */

/* The libuv wire has TLS 1.3 and nothing older; nng has what its TLS library has. */
static bool has_tls_1_3(void)
{
    nng_tls_config *config;
    bool has;

    assert_int_equal(nng_tls_config_alloc(&config, NNG_TLS_MODE_CLIENT), 0);
    has = nng_tls_config_version(config, NNG_TLS_1_3, NNG_TLS_1_3) == 0;
    nng_tls_config_free(config);
    return has;
}

static struct mu__tls_identity *identity_now(void *owner)
{
    return owner;
}

/* Which of the two is the libuv wire; whether a frame gets through. */
static bool connects_mixed(unsigned which_is_uv)
{
    const struct mu__tls_pem pem = pem_of(&ca, &good);
    struct place *place = place_new("tcp://127.0.0.1:0");
    struct noted noted[2] = {{0, 0, 0}, {0, 0, 0}};
    struct mu__tls_identity *identity;
    struct mu__tls_source source;
    struct mu__wire *wires[2];
    bool is_connected;

    assert_int_equal(mu__tls_identity_of_pem(&pem, NULL, &identity), 0);
    source = (struct mu__tls_source){identity_now, identity};
    place->pem = &pem;
    place->is_uv[which_is_uv] = true;
    for (unsigned i = 0; i < 2; i++)
        wires[i] = place_open(place, i, &events, &noted[i]);
    mu__wire_uv_secure(place->uv[which_is_uv], &source);
    assert_int_equal(wires[0]->ops->dial(wires[0], OUT, place_url(place, 1)), 0);
    noted[0].until_ms = uv_hrtime() / 1000000 + A_WHILE_MS;
    assert_true(place_run(place, is_up_or_late, &noted[0]));
    is_connected = noted[0].ups > 0;
    place_close(place, 0);
    place_close(place, 1);
    place_free(place);
    mu__tls_identity_free(identity);
    return is_connected;
}

TEST(test_with_the_libuv_wire)
{
    assert_int_equal(connects_mixed(0), has_tls_1_3());
    assert_int_equal(connects_mixed(1), has_tls_1_3());
}

static int run_tls_tests(const void *arg)
{
    (void)arg;
    return tests_run(make, done);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return passes_apart("TLS", 1, run_tls_tests, NULL) ? 0 : 1;
}
