/* The types of the tasks that run closures: "worker", if nothing else was said. The place
 * of a type in this list is its role: what the supervisor knows of it. Plain data. */
#ifndef MU_ACTORS_WORKER_TYPES_H
#define MU_ACTORS_WORKER_TYPES_H

#include "runtime/message/message.h"

#include "muster/cluster.h"

#include <stdbool.h>

#define MU__WORKER_TYPES "worker"       /* by default */

enum {
    MU__WORKER_TYPES_MAX = MU_CLUSTER_TYPES_MAX,
    MU__WORKER_TYPES_TEXT_MAX = 16 * MU__WORKER_TYPES_MAX,
    MU__ROLE_NONE = MU__WORKER_TYPES_MAX    /* no task of that type runs closures */
};

struct mu__worker_type {
    char name[16];
    uint32_t tasks;         /* of this type: 0 to that - 1 are listed in the cluster */
};

struct mu__worker_types {
    uint32_t count;
    struct mu__worker_type rows[MU__WORKER_TYPES_MAX];
};

/* Read a text, types with commas between; NULL: the default. -MU_EINVALID, saying what is
 * wrong with option worker_types: one that is missing, no type, there twice, or of tasks
 * that have work of their own. */
int mu__worker_types_parse(const char *text, mu_error *ret_error,
                           struct mu__worker_types *ret_types);

/* The role of a type; MU__ROLE_NONE. */
uint32_t mu__worker_types_find(const struct mu__worker_types *types,
                               struct mu__view name);

static inline bool mu__worker_types_has(const struct mu__worker_types *types,
                                        const char *name)
{
    return mu__worker_types_find(types, mu__view_str(name)) != MU__ROLE_NONE;
}

/* "worker,gpu" into `out`, of MU__WORKER_TYPES_TEXT_MAX bytes. */
void mu__worker_types_text(const struct mu__worker_types *types, char *out, size_t size);

#endif
