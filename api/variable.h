/* A variable's handle, for the public calls about it. */
#ifndef MU_NODE_VARIABLE_H
#define MU_NODE_VARIABLE_H

#include "actors/variables/opened_variable.h"

#include "muster/variable.h"

/* Any thread. */
struct mu_variable {
    mu_node *node;              /* held: see mu__node_ref */
    struct mu__opened_variable *opened;     /* held by writes of runs, too */
};

/* Whether a buffer fits the variable, and its dtype the operation: enum
 * mu__variable_operation. */
int mu__variable_check(const mu_variable *variable, int operation, const void *buffer,
                       size_t bytes, mu_error *ret_error);

#endif
