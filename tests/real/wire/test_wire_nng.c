/* The wire of nng's sockets: the contract over each scheme. */
#include "tests/real/wire/wire_nng_fixture.h"

#include <signal.h>

#define FIXTURE(name, url)                                                              \
    static void *name##_setup(void)                                                     \
    {                                                                                   \
        return place_new(url);                                                          \
    }                                                                                   \
    static const struct contract_wire name##_fixture = {                                \
        name##_setup, place_free, place_open, place_close, place_url, place_run,        \
    };

FIXTURE(tcp, "tcp://127.0.0.1:0")
FIXTURE(ipc, "ipc://")
FIXTURE(inproc, "inproc://")
FIXTURE(ws, "ws://127.0.0.1:0")

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return contract_wire_run("nng over tcp", &tcp_fixture) |
           contract_wire_run("nng over ipc", &ipc_fixture) |
           contract_wire_run("nng over inproc", &inproc_fixture) |
           contract_wire_run("nng over ws", &ws_fixture);
}
