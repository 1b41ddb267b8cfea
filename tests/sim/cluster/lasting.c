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

struct cluster_journal lasting_journal(struct sim_storage *storage)
{
    return (struct cluster_journal){&storage->base, store_dies, store_is_gone, NULL,
                                    NULL};
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
        lasting.cluster->chief->store = lasting_journal(lasting.storage);
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

/* Of a task that runs: one that starts would refuse. */
static void fill_disk(struct sim *sim, struct cluster_task *task,
                      struct mu__storage *storage)
{
    struct sim_storage *disk = (struct sim_storage *)storage;

    if (!sim_alive(task->node))
        return;
    sim_note(sim, MU__LOG_WARN, "the disk of %s is full", task->name);
    sim_storage_fail(disk, SIM_STORAGE_FLUSH, 5, -MU_EEXHAUSTED);
    sim_storage_fail(disk, SIM_STORAGE_APPEND, 5, -MU_EEXHAUSTED);
}

static void fill_journal(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    fill_disk(sim, task, task->journal.storage);
}

static void fill_store(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    fill_disk(sim, task, task->store.storage);
}

static void fill_at_times(struct cluster_task *task, struct sim_random *random,
                          uint64_t until_ms, void (*fill)(struct sim *sim, void *arg))
{
    for (int i = 0; i < 2; i++)
        if (sim_chance(random, 30))
            sim_at(task->cluster->sim, sim_between(random, 500, until_ms), fill, task);
}

void lasting_fill_store(struct cluster_task *host, struct sim_random *random,
                        uint64_t until_ms)
{
    fill_at_times(host, random, until_ms, fill_store);
}

struct sim_storage *lasting_server_journal(struct cluster_task *server,
                                           struct sim_random *random, uint64_t until_ms)
{
    struct sim_storage *storage = sim_storage_new("server.journal", sim_draw(random));

    server->journal = lasting_journal(storage);
    server->journal_spare_bytes = sim_between(random, 1 << 10, 1 << 16);
    fill_at_times(server, random, until_ms, fill_journal);
    return storage;
}
