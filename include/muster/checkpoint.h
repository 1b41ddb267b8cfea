/* Checkpoints: files with the content of variables.
 *
 * A checkpoint is one file, "NAME-STEP.ckpt" in a directory. It is there as a whole or
 * not at all, whatever dies or breaks while it is written. Any thread, but no loop's.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_CHECKPOINT_H
#define MUSTER_CHECKPOINT_H

#include "variable.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_checkpoint_options {
    const char *directory;      /* made when it is not there; required */
    const char *name;           /* 1 to 63 letters, digits, "_", "-" or "."; default
                                   "model" */
    unsigned max_to_keep;       /* the newest of this name that stay; default 5, 0: all */
    int64_t timeout_ms;           /* for reading all variables; default -1 */
} mu_checkpoint_options;

MU_EXPORT void mu_checkpoint_options_init(mu_checkpoint_options *options);

/* Read the variables, and write the checkpoint of `step`; `values` (may be NULL) is kept
 * with them. One of the same step is replaced. Each variable is read as mu_variable_read
 * does; there is no one moment of all.
 *
 * Errors: those of mu_variable_read, with the variable's name; -MU_EINVALID (a name
 * twice, a bad directory or name); -MU_EEXHAUSTED (disk full), -MU_EPERMISSION,
 * -MU_ENOTFOUND, with path and reason: then the checkpoints are as before. ret_path (may
 * be NULL) is the caller's, freed with free(). */
MU_EXPORT int mu_checkpoint_save(const mu_checkpoint_options *options, uint64_t step,
                                 mu_variable *const *variables, size_t count,
                                 const mu_value *values, mu_error *ret_error,
                                 char **ret_path);

/* The newest checkpoint of a name (NULL: "model") in a directory that is whole: all its
 * bytes are read and checked. Damaged ones are passed over; when no other is left,
 * -MU_EDATALOSS says what is wrong with the newest. -MU_ENOTFOUND: there is none (nor
 * perhaps a directory). The caller frees *ret_path with free(). ret_step may be NULL. */
MU_EXPORT int mu_checkpoint_latest(const char *directory, const char *name,
                                   mu_error *ret_error, char **ret_path,
                                   uint64_t *ret_step);

/* What is in a checkpoint: a map: step, values (what was saved with it, or nil),
 * variables (a list of maps: name, dtype, shape, shards, bytes). The whole file is
 * checked; -MU_EDATALOSS says where it is damaged. */
MU_EXPORT int mu_checkpoint_read(const char *path, mu_error *ret_error,
                                 mu_value **ret_content);

/* Give the variables of a checkpoint the content that they have there: those of `names`
 * (-MU_ENOTFOUND when one is not in it), or with `names` NULL all. One that is not on the
 * servers is created, one of which some servers have lost their shards is made anew. The
 * file is checked before anything is written. Each has as many shards as it had when it
 * was saved, also on another number of servers; mu_variable_open with `shards` 0 takes it
 * as it is. */
MU_EXPORT int mu_checkpoint_restore(mu_node *node, const char *path,
                                    const char *const *names, size_t count,
                                    int64_t timeout_ms, mu_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
