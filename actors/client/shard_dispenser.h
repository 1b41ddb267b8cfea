/* Hands out the shards of a dataset: each one once per epoch, and again only when it was
 * given back. Keeps a record of which closure consumed which shard. Plain data; no thread
 * safety of its own.
 *
 *     FREE --next--> OUT --consume--> CONSUMED
 *       ^--give back---'
 *
 * An epoch begins when every shard of the one before is consumed. Shards that were given
 * back are handed out first, in the order in which they came.
 *
 * Memory: 24 bytes for each shard and each epoch of the record, taken when it is made;
 * nothing that is done with it later can fail for lack of memory. */
#ifndef MU_CLIENT_SHARD_DISPENSER_H
#define MU_CLIENT_SHARD_DISPENSER_H

#include "muster/value.h"

#include <stdbool.h>

enum {
    MU__DISPENSER_SHARDS_MAX = 1 << 20,
    MU__DISPENSER_RECORDS_MAX = 1 << 24    /* shards times epochs on record */
};

struct mu__dispenser_options {
    uint32_t shards;    /* at least 1 */
    uint32_t epochs;    /* 0: endless */
    uint32_t records;   /* epochs on record, the current one included; at least 1 */
    uint64_t seed;      /* of a new order for each epoch; 0: in order */
};

/* One shard that is out. `ticket` is this hand-out's own. */
struct mu__dispensed {
    uint64_t epoch;     /* from 1 */
    uint64_t ticket;
    uint32_t shard;     /* from 0 */
};

/* Who consumed a shard. */
struct mu__consumer {
    uint64_t closure;   /* 0: not known */
    uint32_t attempt;   /* 0: not known */
    int32_t worker;     /* task index; -1: not known */
};

enum mu__dispenser_outcome {
    MU__SHARD_DISPENSED,
    MU__SHARD_NONE_FREE,   /* some are out, and may come back */
    MU__SHARD_ALL_CONSUMED         /* every shard of every epoch is consumed */
};

struct mu__dispenser;

/* -MU_EINVALID names the option, -MU_ENOMEM. */
int mu__dispenser_new(const struct mu__dispenser_options *options, mu_error *ret_error,
                   struct mu__dispenser **ret_dispenser);
void mu__dispenser_free(struct mu__dispenser *dispenser);

enum mu__dispenser_outcome mu__dispenser_next(struct mu__dispenser *dispenser,
                                       struct mu__dispensed *ret_shard);

/* A shard comes back unused: it is the next one to be handed out. False when it is not
 * out under this ticket. */
bool mu__dispenser_give_back(struct mu__dispenser *dispenser,
                             const struct mu__dispensed *dispensed);

/* A shard is consumed. False when it is not out under this ticket. */
bool mu__dispenser_consume(struct mu__dispenser *dispenser,
                           const struct mu__dispensed *dispensed,
                           const struct mu__consumer *consumer);

/* What is open to see. */
struct mu__dispenser_counts {
    uint64_t epoch;     /* the current one, from 1; the last one when all is over */
    uint64_t consumed;  /* shards, of all epochs */
    uint32_t shards;
    uint32_t out;
};

void mu__dispenser_counts(const struct mu__dispenser *dispenser,
                       struct mu__dispenser_counts *ret_counts);

/* The lowest shard that is out; how many there are when none is. */
uint32_t mu__dispenser_first_out(const struct mu__dispenser *dispenser);

/* Everything, but for what is out, as a map:
 *
 *     format    "muster dataset"
 *     version   1
 *     shards, epochs, records, seed    the options
 *     epoch     the current one
 *     consumed  shards that are consumed, of all epochs
 *     record    a list of maps, the oldest epoch first, the current one last:
 *                   epoch
 *                   shard, closure, attempt, worker    tensors of int64, an element for
 *                       each shard that was consumed, in the order of that
 *
 * The caller's; NULL: out of memory. */
mu_value *mu__dispenser_value(const struct mu__dispenser *dispenser);

/* The other way; shards that were out are free. -MU_EDATALOSS with the place and what was
 * expected, -MU_ENOMEM. */
int mu__dispenser_read(const mu_value *value, mu_error *ret_error,
                    struct mu__dispenser **ret_dispenser);

#endif
