/* The differences of two cluster specs, and what of them a job that runs can take.
 * Pure. */
#ifndef MU_RESOLVER_CHANGES_H
#define MU_RESOLVER_CHANGES_H

#include <muster/cluster.h>

enum mu__change_kind {
    MU__CHANGE_ADDED,
    MU__CHANGE_REMOVED,
    MU__CHANGE_MOVED /* the task is at another address */
};

/* One task. The strings are owned by the specs, or static. */
struct mu__change {
    enum mu__change_kind kind;
    const char *type;
    int index;
    const char *address; /* in the later spec, or, of a task that was removed, the
                            former */
    const char *url;     /* the same, as a socket takes it */
    const char *refused; /* why a job that runs cannot take it; NULL: it can */
};

/* Borrows from both specs: valid as long as both are. */
struct mu__changes {
    struct mu__change *rows; /* by type (alphabetically), then index */
    size_t count;
    size_t refused_count;
};

/* NULL stands for an empty spec. An address is the same in each of its spellings.
 * -MU_ENOMEM. */
int mu__changes_find(const mu_cluster *before, const mu_cluster *after,
                     struct mu__changes *ret_changes);
void mu__changes_done(struct mu__changes *changes);

/* The spec `after` without the refused changes: tasks that may not be added are not in
 * it, those that may not be removed are. The caller owns it. -MU_EEXISTS: a task that
 * stays has an address that another task has now; -MU_ENOMEM. */
int mu__changes_take(const mu_cluster *after, const struct mu__changes *changes,
                     mu_error *ret_error, mu_cluster **ret_cluster);

#endif
