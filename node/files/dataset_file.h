/* The file that a dataset is saved in. */
#ifndef MU_NODE_FILES_DATASET_FILE_H
#define MU_NODE_FILES_DATASET_FILE_H

#include "muster/value.h"

/* Replace the file: after a crash at any time there is the old or the new one. */
int mu__dataset_file_write(const char *path, const mu_value *value, mu_error *ret_error);

/* -MU_EDATALOSS when it is not what was written. */
int mu__dataset_file_read(const char *path, mu_error *ret_error, mu_value **ret_value);

#endif
