/* What the files of the public API share. */
#ifndef MU_API_INTERNAL_H
#define MU_API_INTERNAL_H

#include "actors/agent/agent.h"
#include "actors/client/client.h"
#include "actors/ps/initial/initial.h"
#include "actors/variables/opened_variable.h"
#include "actors/variables/variables.h"
#include "node/node.h"
#include "node/run_end.h"

#include "muster/coordination.h"
#include "muster/coordinator.h"
#include "muster/variable.h"

/* ---- coordinator ---- */

/* Raising a closure's error to a program on the loop's thread, which cannot wait: the
 * first call requests it from the client actor, a later one returns the answer. */
enum mu__raising { MU__RAISING_NOTHING, MU__RAISING_REQUESTED, MU__RAISING_ANSWERED };

struct mu_coordinator {
    mu_node *node;        /* held: see mu__node_ref */
    atomic_bool detached; /* the node is being closed */
    struct mu__session session;
    struct mu__error_entry *errors; /* taken from the session and not read yet, the oldest
                                       first; guarded by the node's lock */
    struct mu__error_entry *errors_last;
    enum mu__raising raising; /* this and the rest: loop thread only */
    int raised;
    mu_error raised_error;
};

/* The coordinator's node. NULL, with an error, when `coordinator` is NULL or its node is
 * being closed. */
mu_node *mu__coordinator_reach(mu_coordinator *coordinator, mu_error *ret_error);

/* mu__session.keep_data of a coordinator's session. */
void mu__coordinator_keep_data(struct mu__session *session, uint32_t number,
                               mu_value *data);

/* Wait until there is room for a closure with `bytes` of arguments and no error of
 * another closure is pending (with `own_error` those do not count). After 0 the closure
 * is admitted: the caller sends it, or calls mu__admission_withdraw. */
int mu__coordinator_admit(mu_coordinator *coordinator, uint64_t bytes, bool own_error,
                          int64_t timeout_ms, mu_error *ret_error);

/* Post a call to the node's client actor and wait until it is completed. */
int mu__client_call(mu_node *node, struct mu__client_call *call, int64_t timeout_ms,
                    mu_error *ret_error);

/* Pack arguments (NULL: none) into the buffer of a message. *packed has their sizes
 * already. */
int mu__pack_args(struct mu__msg *msg, const mu_value *args, struct mu__packed *packed,
                  mu_error *ret_error);

/* Sizes of arguments, which may be NULL; an error when they are beyond the bounds. */
int mu__measure_args(const mu_value *args, struct mu__packed *ret_sizes,
                     mu_error *ret_error);

/* The timeout of a call to an actor. */
int mu__check_actor_timeout(int64_t timeout_ms, mu_error *ret_error);

int mu__check_function_name(const char *function, mu_error *ret_error);

/* ---- coordination ---- */

/* A call to the agent that no thread waits for; pending.finished frees it with
 * mu__agent_detached_free. */
struct mu__agent_detached {
    struct mu__pending pending; /* first */
    struct mu__agent_call call;
    mu_barrier_done_fn done;
    void *user;
    struct mu_kv_watch *watch;
    char *tasks;
    char name[];
};

/* `name` is copied. NULL: no memory. */
struct mu__agent_detached *mu__agent_detached_new(int operation, const char *name);
void mu__agent_detached_free(struct mu__agent_detached *detached);

/* The code of an error, -MU_EUNKNOWN for one that is no MU_E... code. */
int mu__known_code(int code);

/* Check a key and write it normalized, as messages carry it; `out` has 1024 bytes. */
int mu__check_key(const char *key, bool may_be_empty, mu_error *ret_error, char *out);

/* ---- key-values ---- */

/* mu_kv_request_async for a request that was checked and whose key is normalized. */
int mu__kv_post(mu_node *node, const mu_kv_request *kv_request, mu_kv_done_fn done,
                void *user, mu_error *ret_error, uint64_t *ret_request);

/* A thread's wait for the answer to one request, on its stack. */
struct mu__kv_wait {
    uv_sem_t woken;
    bool needs_value;
    int code;
    mu_error error;
    mu_kv_item item;
    uint64_t revision;
    int64_t number;
};

/* Make the request `what` with `begins` and wait for the answer, which is then in
 * `wait`. */
typedef int (*mu__kv_begin_fn)(mu_node *node, const void *what, mu_kv_done_fn done,
                               void *user, mu_error *ret_error);
int mu__kv_wait_for(mu_node *node, mu__kv_begin_fn begins, const void *what,
                    mu_error *ret_error, struct mu__kv_wait *wait);

/* ---- variable ---- */

/* Any thread. */
struct mu_variable {
    atomic_uint refs; /* the program's, and one for each request that nobody waits for; */
    atomic_ullong bytes_under_way;      /* of these (under_way.h) */
    mu_node *node;                      /* held: see mu__node_ref */
    struct mu__opened_variable *opened; /* held by writes of runs, too */
    struct mu__variable_cache *cache;
};

/* Whether a buffer fits the variable, and its dtype the operation: enum
 * mu__variable_operation. */
int mu__variable_check(const mu_variable *variable, int operation, const void *buffer,
                       size_t bytes, mu_error *ret_error);

/* ---- initializer ---- */

/* What servers generate by an initializer for a variable of this shape; or they do not
 * (MU_INITIALIZER_ORTHOGONAL), and *ret_content is the content, which the caller frees.
 * -MU_EINVALID, -MU_ERANGE, -MU_ENOMEM. */
int mu__initializer_prepare(const mu_initializer *initializer, const char *name,
                            const struct mu__shape *shape, mu_error *ret_error,
                            struct mu__initial *ret_initial, void **ret_content);

/* What the rows of a table begin as; still to be checked. -MU_EINVALID: not for rows. */
int mu__initializer_of_rows(const mu_initializer *initializer, uint64_t table,
                            uint32_t dim, mu_error *ret_error,
                            struct mu__initial *ret_initial);

/* The shape of a checked spec with so many shards (0: as mu_variable_spec says). */
int mu__variable_make_shape(const mu_variable_spec *spec, uint32_t servers_count,
                            mu_error *ret_error, struct mu__shape *ret_shape);

/* The call of an operation; and let the actor do it. */
struct mu__variable_call mu__variable_make_call(const mu_variable *variable,
                                                int operation, int64_t timeout_ms);
int mu__variable_run_call(mu_variable *variable, struct mu__variable_call *call,
                          mu_error *ret_error);

/* The error of a call that has ended with `code`, which is not 0. */
int mu__variable_take_error(const mu_variable *variable,
                            const struct mu__variable_call *call, int code,
                            mu_error *ret_error);

/* An optimizer's rule for a dtype, checked and packed into `bytes` (MU__RULE_BYTES_MAX),
 * which `ret_rule` borrows. */
int mu__optimizer_pack(const mu_optimizer *optimizer, int dtype, uint8_t *bytes,
                       mu_error *ret_error, struct mu__view *ret_rule);

/* The same, with the variable's name in the error. */
int mu__variable_rule(const mu_variable *variable, const mu_optimizer *optimizer,
                      uint8_t *bytes, mu_error *ret_error, struct mu__view *ret_rule);

/* Restore a slot, or the steps, of an optimizer: MU__VARIABLE_SLOT and so on. `shape` is
 * that of the slot, cut like the variable. */
int mu__variable_write_slot(mu_variable *variable, int operation,
                            const struct mu__shape *shape, struct mu__view rule,
                            const void *content, int64_t timeout_ms, mu_error *ret_error);

#endif
