/* The functions that a node's program has registered, by name. */
#ifndef MU_ACTORS_WORKER_FUNCTIONS_H
#define MU_ACTORS_WORKER_FUNCTIONS_H

#include "actors/worker/worker.h"

/* Zeroed memory is empty. */
struct function_table {
    struct mu__text_map by_name;
};

/* The function with a closure's function name, or with the part of it before the first
 * colon; NULL: there is none. */
struct mu__registered *mu__functions_find(const struct function_table *functions,
                                          struct mu__view name);

/* Register what the call names, for runs of this worker. 0, or an error that is in the
 * call. `is_serving`: it is refused, since registering must come before serving. */
int mu__functions_add(struct function_table *functions,
                      const struct mu__worker_config *config, bool is_serving,
                      struct mu__function_call *call);

/* Frees the functions that no run of `running` uses; threads still use the others. */
void mu__functions_done(struct function_table *functions, const struct mu__list *running);

#endif
