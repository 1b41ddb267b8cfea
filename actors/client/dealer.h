/* Deals out the shards of a dataset: each one once per epoch, and again only when it was
 * given back. Keeps a record of which closure consumed which shard. Plain data; no thread
 * safety of its own.
 *
 *     FREE --deal--> DEALT --consume--> CONSUMED
 *       ^--give back---'
 *
 * An epoch begins when every shard of the one before is consumed. Shards that were given
 * back are dealt first, in the order in which they came.
 *
 * Memory: 24 bytes for each shard and each epoch of the record, taken when it is made;
 * nothing that is done with it later can fail for lack of memory. */
#ifndef MU_ACTORS_DEALER_H
#define MU_ACTORS_DEALER_H

#include "muster/value.h"

#include <stdbool.h>

enum {
    MU__DEALER_SHARDS_MAX = 1 << 20,
    MU__DEALER_RECORDS_MAX = 1 << 24    /* shards times epochs on record */
};

struct mu__dealer_options {
    uint32_t shards;    /* at least 1 */
    uint32_t epochs;    /* 0: endless */
    uint32_t records;   /* epochs on record, the current one included; at least 1 */
    uint64_t seed;      /* of a new order for each epoch; 0: in order */
};

/* One shard that is out. `ticket` is this dealing's own. */
struct mu__dealt {
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

enum mu__dealer_answer {
    MU__DEALER_DEALT,
    MU__DEALER_NONE_FREE,   /* some are out, and may come back */
    MU__DEALER_OVER         /* every shard of every epoch is consumed */
};

struct mu__dealer;

/* -MU_EINVALID names the option, -MU_ENOMEM. */
int mu__dealer_new(const struct mu__dealer_options *options, mu_error *ret_error,
                   struct mu__dealer **ret_dealer);
void mu__dealer_free(struct mu__dealer *dealer);

enum mu__dealer_answer mu__dealer_deal(struct mu__dealer *dealer,
                                       struct mu__dealt *ret_dealt);

/* A shard comes back unused: it is the next one to be dealt. False when it is not out
 * under this ticket. */
bool mu__dealer_give_back(struct mu__dealer *dealer, const struct mu__dealt *dealt);

/* A shard is consumed. False when it is not out under this ticket. */
bool mu__dealer_consume(struct mu__dealer *dealer, const struct mu__dealt *dealt,
                        const struct mu__consumer *consumer);

/* What is open to see. */
struct mu__dealer_counts {
    uint64_t epoch;     /* the current one, from 1; the last one when all is over */
    uint64_t consumed;  /* shards, of all epochs */
    uint32_t shards;
    uint32_t out;
};

void mu__dealer_counts(const struct mu__dealer *dealer,
                       struct mu__dealer_counts *ret_counts);

/* The lowest shard that is out; how many there are when none is. */
uint32_t mu__dealer_first_out(const struct mu__dealer *dealer);

/* Everything, but for what is out, as a map:
 *
 *     format    "muster deal"
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
mu_value *mu__dealer_value(const struct mu__dealer *dealer);

/* The other way; shards that were out are free. -MU_EDATALOSS with the place and what was
 * expected, -MU_ENOMEM. */
int mu__dealer_read(const mu_value *value, mu_error *ret_error,
                    struct mu__dealer **ret_dealer);

#endif
