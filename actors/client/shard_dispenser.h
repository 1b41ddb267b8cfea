/* Dispenses the shards of a dataset: each one once per epoch, and again only when it was
 * given back. Records which closure consumed which shard. Plain data, without locks.
 *
 *     FREE --next--> OUT --consume--> CONSUMED
 *       ^--give back---'
 *
 * An epoch begins when every shard of the one before is consumed. Shards that were given
 * back are dispensed first, in the order in which they came back.
 *
 * Memory: 24 bytes for each shard and each epoch of the record, allocated by
 * mu__dispenser_new. Dispensing, giving back and consuming allocate nothing. */
#ifndef MU_CLIENT_SHARD_DISPENSER_H
#define MU_CLIENT_SHARD_DISPENSER_H

#include "muster/value.h"

#include <stdbool.h>

enum {
    MU__DISPENSER_SHARDS_MAX = 1 << 20,
    MU__DISPENSER_RECORDS_MAX = 1 << 24 /* shards times epochs on record */
};

struct mu__dispenser_options {
    uint32_t shards;  /* at least 1 */
    uint32_t epochs;  /* 0: endless */
    uint32_t records; /* epochs on record, the current one included; at least 1 */
    uint64_t seed;    /* of the random order of each epoch; 0: in order */
};

/* One shard that is out. */
struct mu__dispensed {
    uint64_t epoch;  /* from 1 */
    uint64_t ticket; /* unique for each time that a shard is dispensed */
    uint32_t shard;  /* from 0 */
};

/* The closure that consumed a shard. */
struct mu__consumer {
    uint64_t closure; /* 0: not known */
    uint32_t attempt; /* 0: not known */
    int32_t worker;   /* task index; -1: not known */
};

enum mu__dispenser_outcome {
    MU__SHARD_DISPENSED,
    MU__SHARD_NONE_FREE,   /* some are out, and may be given back */
    MU__SHARD_ALL_CONSUMED /* every shard of every epoch is consumed */
};

struct mu__dispenser;

/* -MU_EINVALID names the option, -MU_ENOMEM. */
int mu__dispenser_new(const struct mu__dispenser_options *options, mu_error *ret_error,
                      struct mu__dispenser **ret_dispenser);
void mu__dispenser_free(struct mu__dispenser *dispenser);

enum mu__dispenser_outcome mu__dispenser_next(struct mu__dispenser *dispenser,
                                              struct mu__dispensed *ret_shard);

/* Give back an unused shard, to be dispensed before those that were not dispensed yet.
 * False: it is not out under this ticket. */
bool mu__dispenser_give_back(struct mu__dispenser *dispenser,
                             const struct mu__dispensed *dispensed);

/* Mark a shard as consumed. False: it is not out under this ticket. */
bool mu__dispenser_consume(struct mu__dispenser *dispenser,
                           const struct mu__dispensed *dispensed,
                           const struct mu__consumer *consumer);

struct mu__dispenser_counts {
    uint64_t epoch;    /* the current one, from 1; in the end the last one */
    uint64_t consumed; /* shards, of all epochs */
    uint32_t shards;
    uint32_t out;
};

void mu__dispenser_counts(const struct mu__dispenser *dispenser,
                          struct mu__dispenser_counts *ret_counts);

/* The lowest shard that is out; the number of shards when none is. */
uint32_t mu__dispenser_first_out(const struct mu__dispenser *dispenser);

/* The state as a map, in which shards that are out count as free:
 *
 *     format    "muster dataset"
 *     version   1
 *     shards, epochs, records, seed    the options
 *     epoch     the current one
 *     consumed  shards that are consumed, of all epochs
 *     record    a list of maps, the oldest epoch first, the current one last:
 *                   epoch
 *                   shard, closure, attempt, worker    tensors of int64 with an element
 *                       for each consumed shard, in the order of consumption
 *
 * The caller owns it; NULL: out of memory. */
mu_value *mu__dispenser_value(const struct mu__dispenser *dispenser);

/* A dispenser with the state of such a map. -MU_EDATALOSS names the path in the map and
 * the expected content; -MU_ENOMEM. */
int mu__dispenser_read(const mu_value *value, mu_error *ret_error,
                       struct mu__dispenser **ret_dispenser);

#endif
