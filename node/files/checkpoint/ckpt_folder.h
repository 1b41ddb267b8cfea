/* The directory of a checkpoint, "NAME-STEP": how it is found, published and removed as a
 * whole. What has a manifest is a checkpoint; nothing else is touched, whatever its name.
 * Nothing here knows of nodes. */
#ifndef MU_NODE_FILES_CHECKPOINT_CKPT_FOLDER_H
#define MU_NODE_FILES_CHECKPOINT_CKPT_FOLDER_H

#include "muster/error.h"

#include <stddef.h>
#include <stdint.h>

enum { MU__CKPT_PATH_BYTES = 4096 };

/* 1 to 63 letters, digits, "_", "-" or "."; -MU_EINVALID. */
int mu__ckpt_name_check(const char *name, mu_error *ret_error);

/* "DIRECTORY/NAME-STEP"; -MU_EINVALID when it is too long. */
int mu__ckpt_path(const char *directory, const char *name, uint64_t step,
                  mu_error *ret_error, char out[MU__CKPT_PATH_BYTES]);

/* The steps of which there are checkpoints with this name, the largest first; the caller
 * frees them with mu__free_array(). -MU_ENOTFOUND when there is no such directory. */
int mu__ckpt_steps(const char *directory, const char *name, mu_error *ret_error,
                   uint64_t **ret_steps, size_t *ret_count);

/* Make a directory and those above it; one that is there is fine. */
int mu__ckpt_make_directory(const char *directory, mu_error *ret_error);

/* ---- Publishing. An errno, or 0. ---- */

/* Make an empty directory beside `path`, and lock it until *ret_fd is closed: by that
 * others tell it from what a writer left when it died. */
int mu__ckpt_folder_make(const char *path, char ret_under[MU__CKPT_PATH_BYTES],
                         int *ret_fd);

/* Flush it, and give it the name `path`. A checkpoint that has this name is replaced in
 * one step, and removed; anything else there is ENOTEMPTY or ENOTDIR. */
int mu__ckpt_folder_publish(const char *under, int fd, const char *path);

/* Delete a directory that was made, instead. */
void mu__ckpt_folder_discard(const char *under, int fd);

/* Remove a checkpoint: as a whole at first, by its name. */
void mu__ckpt_folder_remove(const char *path);

/* Remove what writers of this checkpoint left behind when they died, of all its steps. */
void mu__ckpt_folder_clean(const char *path);

#endif
