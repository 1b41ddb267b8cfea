/* What a coordinator is made of; for node/ only. */
#ifndef MU_API_COORDINATOR_H
#define MU_API_COORDINATOR_H

#include "actors/client/client.h"
#include "node/node.h"

#include "muster/coordinator.h"

/* The raising of an error for a program that cannot wait, because it is on the loop. */
enum mu__raising { MU__RAISING_NOTHING, MU__RAISING_ASKED, MU__RAISING_ANSWERED };

struct mu_coordinator {
    mu_node *node;              /* held: see mu__node_ref */
    atomic_bool detached;       /* the node is being closed */
    struct mu__session session;
    struct mu__error_entry *errors; /* taken from the session and not read yet, the oldest
                                       first; guarded by the node's lock */
    struct mu__error_entry *errors_last;
    enum mu__raising raising;   /* loop's thread only, as what follows */
    int raised;
    mu_error raised_error;
};

/* Its node; NULL, and an error, when that is being closed. */
mu_node *mu__coordinator_reach(mu_coordinator *coordinator, mu_error *ret_error);

/* Wait until there is room for a closure with `bytes` of arguments and no error is
 * pending (which does not matter to one with `own_error`); 0: it is admitted, and is to
 * be sent or withdrawn (actors/client/admission.h); or why nothing can be scheduled. */
int mu__coordinator_admit(mu_coordinator *coordinator, uint64_t bytes, bool own_error,
                          int64_t timeout_ms, mu_error *ret_error);

/* Post a call to the node's client actor and wait until it is completed. */
int mu__client_call(mu_node *node, struct mu__client_call *call, int64_t timeout_ms,
                    mu_error *ret_error);

/* Ask the chief something; takes `request`, NULL gives -MU_ENOMEM. The answer is in the
 * call. */
int mu__ask_chief(mu_node *node, struct mu__client_call *call, struct mu__msg *request,
                  int64_t timeout_ms, mu_error *ret_error);

/* Pack arguments (NULL: none) behind a message. *packed has their sizes before. */
int mu__pack_args(struct mu__msg *msg, const mu_value *args, struct mu__packed *packed,
                  mu_error *ret_error);

/* Sizes of arguments, which may be NULL; an error when they are beyond the bounds. */
int mu__measure_args(const mu_value *args, struct mu__packed *ret_sizes,
                     mu_error *ret_error);

int mu__check_function_name(const char *function, mu_error *ret_error);

#endif
