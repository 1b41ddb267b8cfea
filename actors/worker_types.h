/* The types of the tasks that run closures: "worker" by default. The index of a type in
 * this list is its role, by which the supervisor has queues of its own for it. Plain
 * data. */
#ifndef MU_ACTORS_WORKER_TYPES_H
#define MU_ACTORS_WORKER_TYPES_H

#include "runtime/message/message.h"

#include "muster/cluster.h"

#include <stdbool.h>

#define MU__WORKER_TYPES "worker" /* by default */

enum {
    MU__WORKER_TYPES_MAX = MU_CLUSTER_TYPES_MAX,
    MU__WORKER_TYPES_TEXT_MAX = 16 * MU__WORKER_TYPES_MAX,
    MU__ROLE_NONE = MU__WORKER_TYPES_MAX /* no task of that type runs closures */
};

struct mu__worker_type {
    char name[16];
    uint32_t tasks; /* of this type in the cluster spec: indices 0 to tasks - 1 */
};

struct mu__worker_types {
    uint32_t count;
    struct mu__worker_type rows[MU__WORKER_TYPES_MAX];
};

/* Read a text, types with commas between; NULL: the default. -MU_EINVALID: a type is
 * missing, malformed, duplicate, or one whose tasks never run closures; the message is
 * about option worker_types. */
int mu__worker_types_parse(const char *text, mu_error *ret_error,
                           struct mu__worker_types *ret_types);

/* The role of a type; MU__ROLE_NONE: its tasks run no closures. */
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
