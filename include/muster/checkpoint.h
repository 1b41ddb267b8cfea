/* Checkpoints: files with the content of variables and tables.
 *
 * A checkpoint is a directory "NAME-STEP" in a directory. It is written atomically:
 * after a crash it is complete or absent; one of the same step is replaced in one step
 * (on file systems that cannot exchange two names, with a moment in which there is none).
 * In it are
 *
 *   NNNNN-of-MMMMM.safetensors    the variables, as tensors of their names
 *   model.safetensors.index.json  which tensor is in which file, as torch's tools read it
 *   manifest.json                 step, values, and checksums of all bytes; it makes the
 *                                 directory a checkpoint: without one it is never
 *                                 counted, replaced or removed
 *   values.safetensors            values that JSON cannot hold, such as tensors, packed
 *   windows.safetensors           which writes of closures and programs are in it
 *
 * What optimizers keep (optimizer.h) are tensors beside the variable, and come back with
 * it: "w#adam.momentum", "w#adam.velocity", and "w#adam.step", the updates so far, for
 * "w" and Adam. A restored optimizer goes on bit by bit. A variable whose shards have not
 * all slots of the same kind is saved without any.
 *
 * Tables (table.h) are tensors, too, with one entry for each row, in the same order: of
 * "emb" the ids "emb#ids", I64; "emb#pushes", I64, how often each was pushed to; the rows
 * "emb", [rows, dim]; and what the optimizer keeps of each, say
 * "emb#adagrad.accumulator". The manifest has their forms. Restored, they go on bit by
 * bit, on any number of servers.
 *
 * An increment (option `base`) has only what has changed in tables since another one, for
 * mu_table_reader. It is not restored (-MU_EPRECONDITION), mu_checkpoint_latest passes it
 * over, and with it no older ones are removed. Give a chain of them a name of its own:
 * a full checkpoint of the same tables by another one makes the next increment whole.
 *
 * Dtypes are those of the variables: MU_F32 is "F32". The reader of torch's distributed
 * checkpoints takes BOOL, U16, U32 and U64 for floats.
 *
 * mu_checkpoint_read and mu_checkpoint_restore also take safetensors files of other
 * programs: the path of one, or of a directory of them without a manifest. These have no
 * checksums, and their step is 0. A tensor that cannot be a variable (BF16, no elements)
 * is -MU_EUNIMPLEMENTED. Any thread except a loop's.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_CHECKPOINT_H
#define MUSTER_CHECKPOINT_H

#include "table.h"
#include "variable.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_checkpoint_options {
    size_t size;             /* set by mu_checkpoint_options_init */
    const char *directory;   /* created when absent; required */
    const char *name;        /* 1 to 63 letters, digits, "_", "-" or "."; default
                                "model" */
    unsigned max_to_keep;    /* number of checkpoints of this name to keep, the newest
                                ones; default 5, 0: all */
    int64_t timeout_ms;      /* for reading all variables and tables; default -1 */
    mu_table *const *tables; /* that are saved, too; of the variables' node; default
                                NULL */
    size_t tables_count;
    const char *base; /* the path of a checkpoint with tables: of these only what has
                         changed since it is written (table_reader.h). NULL: all */
} mu_checkpoint_options;

/* Fill in the defaults. */
MU_EXPORT void mu_checkpoint_options_init_sized(mu_checkpoint_options *options,
                                                size_t size);
#define mu_checkpoint_options_init(options) \
    mu_checkpoint_options_init_sized(options, sizeof(mu_checkpoint_options))

/* Read the variables, which are of one node, and write the checkpoint of `step`, with
 * `values` (may be NULL) in it. A checkpoint of the same step is replaced. The variables
 * are read as by mu_variables_read: what one closure wrote to one partition of the
 * servers is in it as a whole or not at all, while training goes on. Shards of one
 * variable are in several partitions, and each is as it was at its own position in the
 * manifest. Variables that are not saved in the same partitions are not looked at. Tables
 * are read in the same way, and in pieces: no more than a few are in memory.
 *
 * Errors: those of mu_variables_read, with the variable's name; -MU_EINVALID (a name
 * twice, a bad directory or name); -MU_EEXHAUSTED (disk full), -MU_EPERMISSION,
 * -MU_ENOTFOUND, -MU_EEXISTS (the directory is there and is no checkpoint), with path and
 * reason. On failure the earlier checkpoints are unchanged.
 * The caller frees *ret_path with free(); ret_path may be NULL. */
MU_EXPORT int mu_checkpoint_save(const mu_checkpoint_options *options, uint64_t step,
                                 mu_variable *const *variables, size_t count,
                                 const mu_value *values, mu_error *ret_error,
                                 char **ret_path);

/* The newest undamaged checkpoint of a name (NULL: "model") in a directory: all its bytes
 * are read and checked. Damaged ones are skipped; when all are damaged, -MU_EDATALOSS
 * says what is wrong with the newest. -MU_ENOTFOUND: there is no checkpoint, or no
 * directory. The caller frees *ret_path with free(). ret_step may be NULL. */
MU_EXPORT int mu_checkpoint_latest(const char *directory, const char *name,
                                   mu_error *ret_error, char **ret_path,
                                   uint64_t *ret_step);

/* Describe a checkpoint, as a map: step, values (as saved, or nil), variables (a list of
 * maps: name, dtype, shape, shards, bytes), tables (maps: name, dim, initializer, initial
 * (its two numbers), optimizer, rows). All its files are checked; -MU_EDATALOSS says
 * where they are damaged. */
MU_EXPORT int mu_checkpoint_read(const char *path, mu_error *ret_error,
                                 mu_value **ret_content);

/* Write variables and tables of a checkpoint to the parameter servers: those of `names`
 * (-MU_ENOTFOUND when one is not in it), or with `names` NULL all. A variable that is not
 * on the servers is created; one that has lost shards with their servers is created
 * anew. With all variables, in the numbers of shards that were saved, servers also learn
 * which writes are in them: a closure that is run again, or a write that is sent again,
 * is not applied twice. Those of another job never count as such. All files are checked
 * before anything is written. Each variable gets as many shards as it had when it was
 * saved, also on another number of servers; mu_variable_open with `shards` 0 accepts any
 * number. One of another program's file gets as many as the library chooses. A table has
 * the rows of the checkpoint then, and no others; -MU_EPRECONDITION: the one on the
 * servers has rows of another size, another initializer or kind of optimizer. */
MU_EXPORT int mu_checkpoint_restore(mu_node *node, const char *path,
                                    const char *const *names, size_t count,
                                    int64_t timeout_ms, mu_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
