/* The wire of nng's sockets: the contract over each scheme, and with a wire of libuv's
 * streams at either end. */
#include "tests/real/wire/wire_nng_fixture.h"

#include "tests/real/certificates.h"

enum { TRIES = 3 };

static struct place *mixed_place(const char *url, unsigned which_is_uv)
{
    struct place *place = place_new(url);

    place->is_uv[which_is_uv] = true;
    return place;
}

#define FIXTURE(name, make)                                                      \
    static void *name##_setup(void)                                              \
    {                                                                            \
        return make;                                                             \
    }                                                                            \
    static const struct contract_wire name##_fixture = {                         \
        name##_setup, place_free, place_open, place_close, place_url, place_run, \
    };

FIXTURE(tcp, place_new("tcp://127.0.0.1:0"))
FIXTURE(ipc, place_new("ipc://"))
FIXTURE(inproc, place_new("inproc://"))
FIXTURE(ws, place_new("ws://127.0.0.1:0"))
FIXTURE(uv_to_nng, mixed_place("tcp://127.0.0.1:0", 0))
FIXTURE(nng_to_uv, mixed_place("tcp://127.0.0.1:0", 1))
FIXTURE(uv_to_nng_ipc, mixed_place("ipc://", 0))
FIXTURE(nng_to_uv_ipc, mixed_place("ipc://", 1))

/* ---- TLS ---- */

static struct certified ca;
static struct certified own;
static struct mu__tls_pem pem = {ca.pem, own.pem, own.key_pem, true};

static void make_certificates(void)
{
    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    certified_make(&own, &ca, "IP:127.0.0.1", NULL, -60, 3600);
}

static void free_certificates(void)
{
    certified_free(&own);
    certified_free(&ca);
}

static struct place *secured_place(const char *url)
{
    struct place *place = place_new(url);

    place->pem = &pem;
    return place;
}

FIXTURE(tls, secured_place("tcp://127.0.0.1:0"))
FIXTURE(wss, secured_place("ws://127.0.0.1:0"))

/* ---- all ---- */

static const struct group {
    const char *name;
    const struct contract_wire *fixture;
} groups[] = {
    {"nng over tcp", &tcp_fixture},
    {"nng over ipc", &ipc_fixture},
    {"nng over inproc", &inproc_fixture},
    {"nng over ws", &ws_fixture},
    {"libuv to nng over tcp", &uv_to_nng_fixture},
    {"nng to libuv over tcp", &nng_to_uv_fixture},
    {"libuv to nng over ipc", &uv_to_nng_ipc_fixture},
    {"nng to libuv over ipc", &nng_to_uv_ipc_fixture},
    {"nng over tls+tcp", &tls_fixture},
    {"nng over wss", &wss_fixture},
};

static int run_group(const void *arg)
{
    const struct group *group = arg;
    int failed;

    make_certificates();
    failed = contract_wire_run(group->name, group->fixture);
    free_certificates();
    return failed;
}

int main(void)
{
    unsigned failed = 0;

    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        failed += !passes_apart(groups[i].name, TRIES, run_group, &groups[i]);
    return failed > 0;
}
