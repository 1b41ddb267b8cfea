/* The etcd of the simulator as the place of a store, for the contract of stores. */
#ifndef MU_TESTS_STORE_ETCD_H
#define MU_TESTS_STORE_ETCD_H

#include "actors/coordination/store/etcd_batch.h"
#include "actors/coordination/store/etcd_store.h"
#include "tests/sim/etcd.h"
#include "tests/support/etcd_rows.h"
#include "tests/support/test.h"

#include <cjson/cJSON.h>

#include "tests/support/contract/store.h"

enum {
    TTL_MS = 5000, /* what the contract's holders ask for */
    HELD_MS = 9000,
    FAST_MS = 100 /* an election with nobody in the way: some ten requests */
};

#define PREFIX "/muster/contract"

struct place {
    struct sim *sim;
    struct sim_etcd *etcd;
    bool visits_any; /* records that the contract does not know, too */
    struct {
        struct sim_node *node;
        struct mu__http *door;
    } doors[CONTRACT_NODES];
};

static inline void *place_open(struct sim *sim, uint64_t seed)
{
    struct place *place = calloc(1, sizeof *place);

    assert_non_null(place);
    place->sim = sim;
    place->etcd = sim_etcd_new(sim, seed);
    return place;
}

static inline void place_close(void *arg)
{
    struct place *place = arg;

    sim_etcd_free(place->etcd);
    free(place);
}

static inline int visit_any(void *owner, struct mu__msg *record)
{
    struct contract_holder *h = owner;

    assert_int_equal(record->kind, MU__STORE_CHANGE);
    h->records++;
    return 0;
}

static inline void place_begin(void *arg, struct sim_node *node,
                               struct mu__kernel *kernel, struct mu__store_config *config)
{
    struct place *place = arg;
    unsigned i = 0;

    (void)kernel;
    while (place->doors[i].node != NULL && place->doors[i].node != node)
        i++;
    assert_true(i < CONTRACT_NODES);
    place->doors[i].node = node;
    place->doors[i].door = sim_etcd_door(place->etcd, node);
    config->location = SIM_ETCD_PLACE;
    config->http = place->doors[i].door;
    if (place->visits_any)
        config->up.visit = visit_any;
}

static inline void place_end(void *arg, struct sim_node *node)
{
    struct place *place = arg;

    for (unsigned i = 0; i < CONTRACT_NODES; i++)
        if (place->doors[i].node == node)
            sim_etcd_door_end(place->doors[i].door);
}

static inline void place_set_full(void *arg, bool full)
{
    struct place *place = arg;

    etcd_data_set_full(sim_etcd_data(place->etcd), full);
}

static const struct contract_store fixture = {
    .kind = &mu__store_etcd,
    .open = place_open,
    .close = place_close,
    .begin = place_begin,
    .end = place_end,
    .set_full = place_set_full,
    .held_ms = HELD_MS,
    .safe_ms = 2000,
    .seeds = 10,
};

static inline struct sim_etcd *etcd_of(struct contract_state *s)
{
    return ((struct place *)s->place)->etcd;
}

static inline struct etcd_data *data_of(struct contract_state *s)
{
    return sim_etcd_data(etcd_of(s));
}

static inline void put_safe(struct contract_holder *h, uint64_t batch)
{
    contract_put(h, batch);
    contract_wait_safe(h, batch);
}

static inline void expect_key(struct contract_state *s, const char *key, const char *text)
{
    size_t size = 0;
    const char *value = etcd_data_value(data_of(s), key, &size);

    if (text == NULL) {
        assert_null(value);
        return;
    }
    assert_non_null(value);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(value, text, size);
}

static inline void spoil(struct contract_state *s, const char *ask)
{
    int status = 0;
    char *text = etcd_data_ask(data_of(s), "/v3/kv/txn", ask, strlen(ask), &status);

    assert_int_equal(status, 200);
    free(text);
}

#endif
