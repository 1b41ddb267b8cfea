/* What the public calls of coordination.h share; for node/ only. */
#ifndef MU_NODE_COORDINATION_H
#define MU_NODE_COORDINATION_H

#include "actors/agent/agent.h"
#include "node/node.h"

#include "muster/coordination.h"

/* A call that nobody waits for; `finished` frees it with mu__agent_async_call_free. */
struct mu__agent_async_call {
    struct mu__pending pending;     /* first */
    struct mu__agent_call call;
    mu_barrier_done_fn done;
    void *user;
    struct mu_kv_watch *watch;
    char *tasks;
    char name[];
};

/* `name` is copied. NULL: no memory. */
struct mu__agent_async_call *mu__agent_async_call_new(int operation, const char *name);
void mu__agent_async_call_free(struct mu__agent_async_call *async);

/* Ask the node's agent and wait for its answer. */
int mu__agent_ask_node(mu_node *node, struct mu__agent_call *call, int operation,
                       int64_t timeout_ms, mu_error *ret_error);

/* The canonical text of a set of tasks; NULL is "". The caller frees it with free(). */
int mu__canonical_tasks(const char *tasks, mu_error *ret_error, char **ret_text);

/* A key as it travels; `out` has 1024 bytes. */
int mu__check_key(const char *key, bool may_be_empty, mu_error *ret_error, char *out);

#endif
