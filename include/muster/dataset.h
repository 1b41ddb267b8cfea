/* A sharded dataset: each of its shards is visited once per epoch, although
 * workers die and functions fail.
 *
 *     mu_dataset_open(coordinator, &options, &error, &dataset);
 *     while ((rv = mu_dataset_schedule(dataset, "train", args, NULL, -1, &error)) == 0)
 *         continue;
 *
 * The loop ends with -MU_ERANGE when every shard of every epoch has been visited.
 *
 * A closure that fails, or is cancelled, gives its shard back, to be handed out next. A
 * shard counts as consumed when its closure has succeeded, and an epoch begins when every
 * shard of the one before is consumed. A closure whose worker dies runs again, with the
 * same shard, so its effects may happen twice. With MU_CLOSURE_EFFECT_ONCE, writes by
 * mu_run_add() are applied once: sums over the shards are exact, although workers die.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_DATASET_H
#define MUSTER_DATASET_H

#include "coordinator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_dataset mu_dataset;

typedef struct mu_dataset_options {
    size_t size;      /* set by mu_dataset_options_init */
    unsigned shards;  /* numbered from 0; 1 to 1048576 */
    unsigned epochs;  /* numbered from 1; 0: without end */
    unsigned records; /* epochs, with the current one, for which mu_dataset_record says
                         which closure consumed which shard; default 2. Takes 24 bytes
                         for each shard of each; shards times records may be 16777216 */
    uint64_t seed;    /* shuffles the shards, differently in each epoch, but the same
                         for the same seed; 0: in order of their numbers */
} mu_dataset_options;

/* Fill in the defaults; `shards` is then still to be set. */
MU_EXPORT void mu_dataset_options_init_sized(mu_dataset_options *options, size_t size);
#define mu_dataset_options_init(options) \
    mu_dataset_options_init_sized(options, sizeof(mu_dataset_options))

/* Open a dataset at its first epoch. It may be closed before or after its coordinator,
 * but not used after the coordinator is closed. -MU_EINVALID names the option. */
MU_EXPORT int mu_dataset_open(mu_coordinator *coordinator,
                              const mu_dataset_options *options, mu_error *ret_error,
                              mu_dataset **ret_dataset);

/* Schedule a closure of `function` for the next shard. Its arguments are a map: shard
 * (its number), shards (how many there are), epoch, and args (`args`; NULL: nil).
 * `options` NULL: the defaults.
 *
 * When all shards of the epoch are handed out, waits until one comes back or the epoch
 * ends, and for room as mu_coordinator_schedule does, both within `timeout_ms`:
 * -MU_EDEADLINE, or with timeout 0 -MU_EAGAIN. The message of -MU_EDEADLINE lists what is
 * in flight where (requested from the chief, for two seconds at most). -MU_ERANGE when
 * every shard of every epoch is consumed. The first error of an earlier closure is
 * returned here too, as by mu_coordinator_schedule. On any error nothing was scheduled,
 * and the shard will be handed out again.
 *
 * Any thread; on a loop's thread only with timeout 0. */
MU_EXPORT int mu_dataset_schedule(mu_dataset *dataset, const char *function,
                                  const mu_value *args, const mu_closure_options *options,
                                  int64_t timeout_ms, mu_error *ret_error);

/* Wait until each shard that was handed out is consumed, or was given back by a failed
 * closure, whose error the coordinator raises. -MU_EDEADLINE says how many shards are
 * out, and where. On a loop's thread only with timeout 0. */
MU_EXPORT int mu_dataset_join(mu_dataset *dataset, int64_t timeout_ms,
                              mu_error *ret_error);

/* The dataset's progress, as a map: shards, epochs, seed, records (the options), epoch
 * (the current one), consumed (number of shards, of all epochs), and record: a list with
 * a map for each epoch on record, the oldest first. Such a map has the epoch, and int64
 * tensors with one element for each consumed shard, in order of consumption: shard,
 * closure (id), attempt (the run that succeeded), worker (task index). Unknown numbers
 * are 0, an unknown worker is -1. The caller frees it; NULL: out of memory. */
MU_EXPORT mu_value *mu_dataset_record(mu_dataset *dataset);

/* Save the progress, to continue after a restart. The file is replaced atomically:
 * written to PATH.new, flushed to the disk, and renamed. -MU_ENOTFOUND, -MU_EPERMISSION,
 * -MU_EEXHAUSTED and -MU_EUNKNOWN with the system's message. */
MU_EXPORT int mu_dataset_save(mu_dataset *dataset, const char *path, mu_error *ret_error);

/* Continue from a saved file. Shards that were handed out and not consumed when it was
 * saved are handed out again. The errors of mu_dataset_save, and -MU_EDATALOSS when the
 * file is not a saved dataset, or is truncated or damaged. */
MU_EXPORT int mu_dataset_load(mu_coordinator *coordinator, const char *path,
                              mu_error *ret_error, mu_dataset **ret_dataset);

/* Free the dataset; its closures run on. No other thread may be inside a call on it. NULL
 * is fine. */
MU_EXPORT void mu_dataset_close(mu_dataset *dataset);

#ifdef __cplusplus
}
#endif

#endif
