/* Slots of optimizers in checkpoints: beside the tensor "w" there is "w#adam.momentum"
 * for each of its slots, by names of the rule and of the slot (actors/ps/rules/rules.h),
 * and "w#adam.step", I64, for each shard how many updates it has seen. */
#ifndef MU_API_CHECKPOINT_SLOTS_H
#define MU_API_CHECKPOINT_SLOTS_H

#include "actors/ps/tables/copies/table_columns.h"
#include "api/checkpoint/snapshot_reader.h"
#include "node/files/checkpoint/ckpt_reader.h"
#include "runtime/document/manifest.h"

enum { MU__SAVED_STEP = 1 + MU__RULE_SLOTS_MAX, MU__SAVED_REGIONS };

/* Behind the columns of a table, of an increment: ids that were deleted. */
enum { MU__SAVED_DELETED = MU__TABLE_COLUMNS_MAX, MU__SAVED_COLUMNS };

/* A tensor to be saved: a region of a variable (snapshot_reader.h), or the steps; or a
 * column of a table. */
struct mu__saved_tensor {
    char name[MU__MANIFEST_NAME_MAX + 1];
    struct mu__shape shape;
    bool is_column;
    size_t variable; /* or the table */
    unsigned region; /* or the column */
};

struct mu__saved_tensors {
    struct mu__saved_tensor *tensors; /* by name */
    size_t count;
    size_t (*indices)[MU__SAVED_REGIONS]; /* of a variable's region among these */
    size_t (*columns)[MU__SAVED_COLUMNS]; /* of a table's column */
};

/* All tensors of what was opened by the reader. -MU_EINVALID: a name that is too long, or
 * is there twice. The caller frees them with mu__saved_tensors_done. */
int mu__saved_tensors_init(struct mu__saved_tensors *saved,
                           const struct mu__snapshot_sources *sources,
                           const struct mu__snapshot_reader *reader, mu_error *ret_error);
void mu__saved_tensors_done(struct mu__saved_tensors *saved);

/* Whether a tensor of a checkpoint is a slot of, or the steps of, another one. */
bool mu__ckpt_is_slot(const struct mu__ckpt_reader *reader,
                      const struct mu__manifest_variable *tensor);

/* Write a variable's slots to its servers; if the checkpoint has none, those on the
 * servers are dropped. */
int mu__ckpt_restore_slots(mu_variable *variable, const struct mu__ckpt_reader *reader,
                           const struct mu__manifest_variable *saved,
                           uint64_t deadline_ns, mu_error *ret_error);

#endif
