/* Counters that are kept actors: each worker may have some, and all of them call all. */
#ifndef ROUNDS_TALLY_H
#define ROUNDS_TALLY_H

#include <muster.h>

/* Starts with 0. Methods: add takes a whole number, and answers what there is then; get
 * answers what there is. */
extern const mu_actor_type tally_type;

/* The tally of a name: it is made, or it is there. */
int tally_open(mu_node *node, const char *name, int64_t timeout_ms, mu_error *error);

/* Begin a call of one: "add" 1, or "get". Its end: the answer. */
int tally_begin(mu_node *node, const char *name, const char *method, int64_t timeout_ms,
                mu_error *error, mu_remote_value **ret_call);
int tally_end(mu_remote_value *call, mu_error *error, int64_t *ret_number);

#endif
