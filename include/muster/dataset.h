/* A sharded dataset: each of its shards is visited once per epoch, although
 * workers die and functions fail.
 *
 *     mu_dataset_open(coordinator, &options, &error, &dataset);
 *     while ((rv = mu_dataset_schedule(dataset, "train", args, NULL, -1, &error)) == 0)
 *         continue;
 *
 * ends with -MU_ERANGE when every shard of every epoch has been visited.
 *
 * A closure that fails, or is cancelled, gives its shard back, to be handed out next. A
 * shard counts as consumed when its closure has succeeded, and an epoch begins when
 * every shard of the one before is consumed. A closure whose worker dies runs again,
 * with the same shard: what it had done until then is done twice, unless it is
 * scheduled with MU_CLOSURE_EFFECT_ONCE. With that flag, and mu_run_add() for what it
 * adds up, the sums are exact: each shard of each epoch is in them once, although
 * workers die.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_DATASET_H
#define MUSTER_DATASET_H

#include "coordinator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_dataset mu_dataset;

typedef struct mu_dataset_options {
    unsigned shards;    /* numbered from 0; 1 to 1048576 */
    unsigned epochs;    /* numbered from 1; 0: without end */
    uint64_t seed;      /* of another order of the shards in each epoch, the same for the
                           same seed; 0: in order */
    unsigned records;   /* epochs of which is kept who consumed what, the current one
                           included; default 2. Shards times records: at most 16777216,
                           and 24 bytes of memory each */
} mu_dataset_options;

/* Fill in the defaults; `shards` is then still to be set. */
MU_EXPORT void mu_dataset_options_init(mu_dataset_options *options);

/* Begin with the first epoch. The dataset may be closed before or after its
 * coordinator, but not used after it. -MU_EINVALID names the option. */
MU_EXPORT int mu_dataset_open(mu_coordinator *coordinator,
                              const mu_dataset_options *options, mu_error *ret_error,
                              mu_dataset **ret_dataset);

/* Hand the next shard to a new closure of `function`, whose arguments are a map: shard,
 * shards (how many there are), epoch, and args (`args`; NULL: nil). `options` NULL: the
 * defaults.
 *
 * When all shards of the epoch are out, waits until one comes back or the epoch ends.
 * Waits for room as mu_coordinator_schedule does, `timeout_ms` in all: -MU_EDEADLINE,
 * with limit 0 -MU_EAGAIN. The words of -MU_EDEADLINE tell what is in flight where: the
 * chief is asked for that, for two seconds at most. -MU_ERANGE when every shard of
 * every epoch is consumed. The first error of an earlier closure is returned here too,
 * as by mu_coordinator_schedule. On any error nothing was scheduled, and the shard is
 * still to be handed out.
 *
 * Any thread; on a loop's thread only with limit 0. */
MU_EXPORT int mu_dataset_schedule(mu_dataset *dataset, const char *function,
                                  const mu_value *args, const mu_closure_options *options,
                                  int64_t timeout_ms, mu_error *ret_error);

/* Wait until no shard is out: each that was handed out is consumed, or was given back
 * by a closure that failed, whose error the coordinator raises. At the limit
 * -MU_EDEADLINE, with how many are out, and where, as above. On a loop's thread only
 * with limit 0. */
MU_EXPORT int mu_dataset_join(mu_dataset *dataset, int64_t timeout_ms,
                              mu_error *ret_error);

/* Where it stands, as a map: shards, epochs, seed, records (the options), epoch (the
 * current one), consumed (shards, of all epochs), and record, a list with a map for each
 * epoch on record, the oldest first: epoch, and tensors of int64 with an element for each
 * consumed shard, in the order of that: shard, closure (its id), attempt (which run of it
 * succeeded), worker (task index). What is not known is 0, or -1 of a worker. The caller
 * frees it; NULL: out of memory. */
MU_EXPORT mu_value *mu_dataset_record(mu_dataset *dataset);

/* Save it, to go on after a restart. The file is replaced as a whole: written beside it,
 * to PATH.new, flushed to the disk, and moved there. -MU_ENOTFOUND, -MU_EPERMISSION,
 * -MU_EEXHAUSTED and -MU_EUNKNOWN with the system's words. */
MU_EXPORT int mu_dataset_save(mu_dataset *dataset, const char *path, mu_error *ret_error);

/* Go on from a file. Shards that were out when it was saved are handed out again. The
 * same errors, and -MU_EDATALOSS when the file is no dataset, is cut short or damaged. */
MU_EXPORT int mu_dataset_load(mu_coordinator *coordinator, const char *path,
                           mu_error *ret_error, mu_dataset **ret_dataset);

/* Let go of it. Its closures run on. No thread may be inside a call of it, or begin one.
 * NULL is fine. */
MU_EXPORT void mu_dataset_close(mu_dataset *dataset);

#ifdef __cplusplus
}
#endif

#endif
