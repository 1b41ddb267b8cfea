/* A task's entry in a registry (a file of a directory, a key of etcd): three lines. A
 * person who writes one needs only the first.
 *
 *     worker-3.example:40123
 *     5d2c81f07a9be634        who wrote it: the process, in its present life
 *     until 1700000030        seconds since 1970; after that it counts as gone */
#ifndef MU_RESOLVER_ENTRY_H
#define MU_RESOLVER_ENTRY_H

#include "resolver/engine/kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MU__ENTRY_WHO_BYTES = 40, MU__ENTRY_BYTES_MAX = 512 };

struct mu__task_entry {
    char address[MU_CLUSTER_ADDRESS_BYTES_MAX + 1];
    char who[MU__ENTRY_WHO_BYTES]; /* "": a person */
    uint64_t until_s;              /* 0: for ever */
};

/* Parse an entry; messages begin with `source`. -MU_EINVALID with line and expectation;
 * the address is only checked for its length and for bytes that no address has. */
int mu__entry_parse(const char *text, size_t size, const char *source,
                    mu_error *ret_error, struct mu__task_entry *ret_entry);

/* Format an entry; `out` has MU__ENTRY_BYTES_MAX. */
void mu__entry_write(const struct mu__task_entry *entry, char *out);

/* Parse the name of an entry: "worker-3", with '-' as `between`. -MU_EINVALID with what
 * was probably meant. ret_type has 16 bytes. */
int mu__entry_task(const char *name, size_t size, char between, const char *source,
                   mu_error *ret_error, char *ret_type, int *ret_index);

/* Add the task to the resolution. -MU_EUNAVAILABLE when another task has the same
 * address: one of the two is gone and its entry has not expired yet; unless persons
 * wrote both. */
int mu__entry_add(const struct mu__task_entry *entry, const char *source,
                  const char *type, int index, mu_error *ret_error,
                  mu_resolution *resolution);

#endif
