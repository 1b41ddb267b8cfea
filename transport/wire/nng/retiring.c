/* Peers that were parked long ago, closed while the wire is open. nng may stop for ever
 * in it: then it is not asked again, and peers stay, up to MU__NNG_PEERS_MAX. */
#include "transport/wire/nng/peers.h"

#include <stdlib.h>

enum { RETIRE_MS = 10000 };

struct mu__nng_retiring {
    struct mu__wire_nng *wire;
    unsigned count;
    struct mu__nng_peer *peers[MU__NNG_PARKED_MAX / 2];
};

/* Those that nng did not close are freed with the wire. */
static void on_done(void *owner, bool is_closed)
{
    struct mu__nng_retiring *retiring = owner;
    struct mu__wire_nng *wire = retiring->wire;

    wire->retiring = NULL;
    wire->is_stuck = wire->is_stuck || !is_closed;
    for (unsigned i = 0; is_closed && !wire->closing && i < retiring->count; i++) {
        struct mu__nng_peer *peer = retiring->peers[i];

        mu__nng_end_free(peer->end);
        mu__list_remove(&wire->peers, &peer->in_all);
        wire->peers_count--;
        mu__nng_peer_free(peer);
    }
    free(retiring);
    mu__wire_nng_drop_hold(wire);
}

static void collect(struct mu__nng_retiring *retiring, struct mu__nng_closer *closer)
{
    struct mu__wire_nng *wire = retiring->wire;

    while (retiring->count < MU__NNG_PARKED_MAX / 2) {
        struct mu__nng_peer *peer =
            MU__LIST_FIRST(&wire->parked, struct mu__nng_peer, in_parked);

        mu__list_remove(&wire->parked, &peer->in_parked);
        wire->parked_count--;
        peer->is_closing = true;
        retiring->peers[retiring->count++] = peer;
        mu__nng_closer_add(closer, peer->socket);
    }
}

void mu__nng_retire(struct mu__wire_nng *wire)
{
    struct mu__nng_retiring *retiring;
    struct mu__nng_closer *closer;

    if (wire->retiring != NULL || wire->is_stuck)
        return;
    retiring = calloc(1, sizeof *retiring);
    closer = mu__nng_closer_new(wire->news_of, MU__NNG_PARKED_MAX / 2);
    if (retiring == NULL || closer == NULL) {
        mu__nng_closer_free(closer);
        free(retiring);
        return;
    }
    retiring->wire = wire;
    collect(retiring, closer);
    wire->retiring = retiring;
    mu__wire_nng_hold(wire);
    if (!mu__nng_closer_start(closer, wire->loop, RETIRE_MS, on_done, retiring))
        on_done(retiring, false);
}
