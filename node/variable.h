/* A variable's handle, for the public calls about it. */
#ifndef MU_NODE_VARIABLE_H
#define MU_NODE_VARIABLE_H

#include "actors/messages.h"
#include "actors/shape.h"

#include "muster/variable.h"

/* Unchanged once opened: any thread reads it. */
struct mu_variable {
    mu_node *node;              /* held: see mu__node_ref */
    uint32_t servers_count;
    struct mu__shape shape;
    char name[MU__VARIABLE_NAME_MAX + 1];
    uint64_t ids[];             /* one for each shard */
};

/* Whether a buffer fits the variable, and its dtype the operation: enum
 * mu__variable_operation. */
int mu__variable_check(const mu_variable *variable, int operation, const void *buffer,
                       size_t bytes, mu_error *ret_error);

#endif
