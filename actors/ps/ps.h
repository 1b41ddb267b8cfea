/* A parameter server: a thin actor over the partitions that it holds. Each has its
 * variables (variable_store.h), the batches that have not come to their end (staging.h),
 * and what it knows of effects and writes that are applied once (applied.h, writers.h).
 * server.h says how partitions are copied.
 *
 * Hears:  VAR_OPEN, VAR_READ, VAR_WRITE, EFFECT_WRITE and STATUS_GET from any node; FENCE
 *         and VIEWS_SET from a chief that is up; records, RECORDS_DONE, FILL_... and
 *         REPLICA_VIEW from other servers; node news
 * Says:   VAR_OPENED (perhaps later: see the store), VAR_DATA, VAR_WRITTEN,
 *         EFFECT_WRITTEN, STATUS; SERVES to all nodes; VIEWS_HELD and REPLICA_NEWS to a
 *         chief; to other servers what it hears from them
 * Owns:   the variables
 * Fails:  never by itself; a request it cannot serve is answered with an error. It does
 *         not start with a journal that is damaged, or another one's */
#ifndef MU_ACTORS_PS_H
#define MU_ACTORS_PS_H

#include "muster/value.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/storage.h"

struct mu__store_limits;

struct mu__ps_config {
    uint32_t index;       /* of this task, */
    uint64_t incarnation; /* and of its process */
    const char *leader;   /* type of the view service's task; a literal */
    const struct mu__store_limits *limits; /* NULL: the default */
    struct mu__storage *journal;           /* NULL: none. Outlives the actor */
    const char *cluster_name;              /* of the job; NULL: not known */
    const char *run;                       /* the same */
    uint64_t spare_bytes; /* the journal is written anew when it has more beyond twice
                             the variables; 0: MU__PS_SPARE_BYTES */
    mu_error *error;      /* why the journal cannot be used; NULL: it is only logged */
};

enum { MU__PS_SPARE_BYTES = 64 << 20 };

/* Spawned as MU__PS; its argument is a struct mu__ps_config. */
extern const struct mu__behavior mu__ps;

/* Most shards that a status lists, so that it fits a frame. */
enum { MU__PS_STATUS_MAX = 4096 };

/* A list of maps, one for each shard of the partitions that it is the primary of, in
 * their order, the oldest first in each: name, dtype, dims (a list), shard, shards,
 * partition, bytes, version, ready, reads, writes, bytes_read, bytes_written. Past
 * MU__PS_STATUS_MAX a last map says how many are left_out. Among them a map for each
 * clock: clock (its name), partition, staleness (a number, or "unlimited"), minimum,
 * members and how many of them are waiting, slowest (a text); and one for each table:
 * table (its name), dim, dtype, optimizer, form (a map of all else that it was made
 * with, of each partition), rows, bytes, of how many partitions that is (parts), and what
 * was counted there: pushes, made, dropped, refused, expired, evicted. NULL when out of
 * memory. */
mu_value *mu__ps_status(const void *ps_state);

/* Counts of the writes of runs. */
struct mu__ps_effects {
    uint64_t origin; /* of the supervisor that fenced last; 0: none did */
    uint64_t epoch;
    uint64_t batches;  /* applied, also those without an effect number */
    uint64_t repeated; /* of batches with a number: not applied a second time */
    uint64_t span;     /* width of the window of effect numbers: from the lowest that
                          is not settled to the highest that was applied */
    uint64_t staged_bytes;
    uint32_t staged_batches;
};

void mu__ps_effects(const void *ps_state, struct mu__ps_effects *ret_effects);

#endif
