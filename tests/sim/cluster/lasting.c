#include "tests/sim/cluster/lasting.h"

#include "actors/coordination/store/etcd_store.h"
#include "actors/coordination/store/journal.h"

static void store_dies(struct mu__storage *storage)
{
    sim_storage_die_after((struct sim_storage *)storage, 0);
}

static void store_is_gone(struct mu__storage *storage)
{
    sim_storage_crash((struct sim_storage *)storage);
}

struct lasting lasting_new(uint64_t seed, unsigned workers, bool is_shared)
{
    const struct cluster_options options = {
        .workers = workers,
        .hosts = is_shared ? "chief:0,worker:0" : "chief:0",
        .coordination =
            {
                .store = is_shared ? &mu__store_etcd : &mu__store_journal,
                .store_location = is_shared ? SIM_ETCD_PLACE : "store",
                .cluster_name = "test",
                .lease_ms = 2000,
            },
    };
    struct lasting lasting = {.cluster = cluster_new(seed, &options)};

    if (is_shared) {
        lasting.etcd = sim_etcd_new(lasting.cluster->sim, seed);
        lasting.cluster->etcd = lasting.etcd;
    } else {
        lasting.storage = sim_storage_new("store", seed);
        lasting.cluster->chief->store = (struct cluster_journal){
            &lasting.storage->base, store_dies, store_is_gone, NULL, NULL};
    }
    return lasting;
}

void lasting_free(struct lasting *lasting)
{
    cluster_free(lasting->cluster);
    sim_etcd_free(lasting->etcd);
    if (lasting->storage != NULL)
        sim_storage_free(lasting->storage);
}
