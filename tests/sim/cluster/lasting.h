/* A cluster whose coordination service has a store that lasts: a journal of the chief, or
 * an etcd that the chief and the first worker share. */
#ifndef MU_TESTS_LASTING_H
#define MU_TESTS_LASTING_H

#include "sim/world/random.h"
#include "sim/world/storage.h"
#include "tests/sim/cluster.h"
#include "tests/sim/etcd.h"

struct lasting {
    struct cluster *cluster;
    struct sim_etcd *etcd;       /* NULL: it is a journal */
    struct sim_storage *storage; /* NULL: it is an etcd */
};

/* The chief and so many workers, none started. And what is left once the cluster is
 * freed, by this too. */
struct lasting lasting_new(uint64_t seed, unsigned workers, bool is_shared);
void lasting_free(struct lasting *lasting);

/* What a process has that writes to the storage. */
struct cluster_journal lasting_journal(struct sim_storage *storage);

/* Until then the disk under a host's store may be full for a while, once or twice. */
void lasting_fill_store(struct cluster_task *host, struct sim_random *random,
                        uint64_t until_ms);

/* Give a server a journal. Until then its disk may be full for a while, once or twice.
 * The storage is the test's. */
struct sim_storage *lasting_server_journal(struct cluster_task *server,
                                           struct sim_random *random, uint64_t until_ms);

#endif
