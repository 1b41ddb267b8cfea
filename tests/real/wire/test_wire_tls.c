/* The real wire over TLS: the contract, wrong keys, strangers, and identities that
 * change. */
#include "tests/real/wire/wire_uv_fixture.h"

#include "tests/real/wire/identities.h"
#include "transport/wire/tls/endpoint.h"

static void *key_setup(void)
{
    struct place *place = place_new(false);

    place->identities[0] = place->identities[1] = new_key();
    return place;
}

static void *certificate_setup(void)
{
    struct place *place = place_new(false);
    struct certified ca;

    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    place->identities[0] = of_certified(&ca, "URI:muster:/job:chief/task:0");
    place->identities[1] = of_certified(&ca, "URI:muster:/job:worker/task:0");
    certified_free(&ca);
    return place;
}

static void secured_free(void *arg)
{
    struct place *place = arg;
    struct mu__tls_identity *identities[2] = {place->identities[0], NULL};

    if (place->identities[1] != identities[0])
        identities[1] = place->identities[1];
    place_free(place);
    mu__tls_identity_free(identities[0]);
    mu__tls_identity_free(identities[1]);
}

static const struct contract_wire key_fixture = {
    key_setup, secured_free, place_open, place_close, place_url, place_run,
};

static const struct contract_wire certificate_fixture = {
    certificate_setup, secured_free, place_open, place_close, place_url, place_run,
};

/* ---- who is refused ---- */

/* Two wires with these identities, which they do not own; the first dials the second. */
struct dialled {
    struct place *place;
    struct counts counts[2];
    uv_timer_t look;
    const char *words; /* wanted in the last error of the dialling one */
};

static void on_look(uv_timer_t *timer)
{
    (void)timer;
}

static void dialled_open(struct dialled *dialled, struct mu__tls_identity *from,
                         struct mu__tls_identity *to)
{
    struct mu__wire *wire;

    *dialled = (struct dialled){.place = place_new(false)};
    dialled->place->identities[0] = from;
    dialled->place->identities[1] = to;
    for (unsigned i = 0; i < 2; i++)
        dialled->counts[i].wire =
            place_open(dialled->place, i, &count_events, &dialled->counts[i]);
    (void)uv_timer_init(&dialled->place->loop, &dialled->look);
    (void)uv_timer_start(&dialled->look, on_look, 5, 5);
    wire = dialled->counts[0].wire;
    dialled->counts[0].greets = true;
    assert_int_equal(wire->ops->dial(wire, 1, place_url(dialled->place, 1)), 0);
}

static void dialled_close(struct dialled *dialled)
{
    uv_close((uv_handle_t *)&dialled->look, NULL);
    place_close(dialled->place, 0);
    place_close(dialled->place, 1);
    place_free(dialled->place);
}

static bool has_words(void *arg)
{
    struct dialled *dialled = arg;
    struct mu__wire *wire = dialled->counts[0].wire;
    const char *words = wire->ops->last_error(wire, 1);

    return words != NULL && strstr(words, dialled->words) != NULL;
}

static void assert_refused(struct mu__tls_identity *from, struct mu__tls_identity *to,
                           const char *words)
{
    struct dialled dialled;

    dialled_open(&dialled, from, to);
    dialled.words = words;
    if (!place_run(dialled.place, has_words, &dialled))
        fail_msg("expected \"%s\", got \"%s\"", words,
                 dialled.counts[0].wire->ops->last_error(dialled.counts[0].wire, 1));
    assert_int_equal(dialled.counts[0].ups, 0);
    assert_int_equal(dialled.counts[1].frames, 0);
    assert_int_equal(dialled.counts[1].in_downs, 0);
    dialled_close(&dialled);
}

LISTED_TEST(test_who_is_refused)
{
    struct mu__tls_identity *key = new_key();
    struct mu__tls_identity *other = new_key();
    struct mu__tls_identity *certificate;
    struct certified ca;

    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    certificate = of_certified(&ca, "URI:muster:/job:chief/task:0");
    assert_refused(key, other, "the peer has another key");
    assert_refused(key, certificate, "");
    assert_refused(certificate, key, "the peer has another key, or proves itself by");
    assert_refused(key, NULL, "speaks without TLS");
    assert_refused(NULL, key, "speaks TLS, and this node does not");
    certified_free(&ca);
    mu__tls_identity_free(key);
    mu__tls_identity_free(other);
    mu__tls_identity_free(certificate);
}

static bool has_frame(void *arg)
{
    return ((struct dialled *)arg)->counts[1].frames > 0;
}

/* A peer that was given the key later is let in by the dialling that goes on. */
LISTED_TEST(test_key_comes_later)
{
    struct mu__tls_identity *key = new_key();
    struct mu__tls_identity *other = new_key();
    struct dialled dialled;

    dialled_open(&dialled, key, other);
    dialled.words = "the peer has another key";
    assert_true(place_run(dialled.place, has_words, &dialled));
    dialled.place->identities[1] = key;
    mu__tls_identity_free(other);
    assert_true(place_run(dialled.place, has_frame, &dialled));
    dialled_close(&dialled);
    mu__tls_identity_free(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_refused),
        cmocka_unit_test(test_key_comes_later),
    };
    int failed = 0;

    (void)signal(SIGPIPE, SIG_IGN);
    failed += contract_wire_run("wire contract: TLS with a key", &key_fixture);
    failed +=
        contract_wire_run("wire contract: TLS with certificates", &certificate_fixture);
    failed += cmocka_run_group_tests_name("wire over TLS", tests, NULL, NULL);
    return failed;
}
