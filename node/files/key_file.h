/* Files that hold a key: read, made, and the one that each user has.
 *
 * Without any setting a node has the key of its user,
 * $XDG_CONFIG_HOME/muster/key or ~/.config/muster/key, which is made when it is needed
 * first. */
#ifndef MU_NODE_FILES_KEY_FILE_H
#define MU_NODE_FILES_KEY_FILE_H

#include "transport/wire/tls/key.h"

#include <sys/stat.h>

enum { MU__KEY_PATH_BYTES = 512 };

/* -MU_EPERMISSION: others than the owner, and a group that it was given to, may read or
 * change the file at `path`. */
int mu__secret_check(const char *path, const struct stat *status, mu_error *ret_error);

/* Read a key file; -MU_EPERMISSION: others may read it; and as mu__key_parse and
 * mu__file_read say. */
int mu__key_file_read(const char *path, mu_error *ret_error, struct mu__key *ret_key);

/* A new file, which nobody else may read. -MU_EEXISTS: it is there already, and is not
 * changed. */
int mu__key_file_write(const char *path, const void *data, size_t size,
                       mu_error *ret_error);

/* Where the user's key is. -MU_EUNAVAILABLE: neither XDG_CONFIG_HOME nor a home is
 * known. */
int mu__user_key_path(mu_error *ret_error, char ret_path[MU__KEY_PATH_BYTES]);

/* Make the user's key, and the folders to it, if it is not there. Of several processes
 * that do so at once, all get the same one. */
int mu__user_key_make(const char *path, mu_error *ret_error);

#endif
