/* A node that has a resolver in place of a cluster: what is to be known before it can
 * open, and what goes on while it is open. */
#ifndef MU_NODE_DISCOVER_H
#define MU_NODE_DISCOVER_H

#include "node/discovery/discovery.h"
#include "node/discovery/own_address.h"
#include "transport/wire/uv/listen.h"

#include <pthread.h>

/* The result of a search, and what this task has announced. Options of a node point into
 * it. */
struct mu__discovered {
    mu_resolution resolution; /* the source's, without its cluster */
    mu_cluster *cluster;      /* NULL: nothing was looked for */
    char type[16];
    int index;
    char bind_address[288];              /* the source's; "": it does not say */
    char visible_devices[512];           /* the source's; "": it does not say */
    struct mu__listening listening;      /* fd -1: the node opens its own */
    char address[MU__OWN_ADDRESS_BYTES]; /* that was announced; "": none */
    char incarnation[40];
};

/* Lets another thread end a search. */
struct mu__discover_stop {
    pthread_mutex_t lock;
    struct search *search; /* while one runs */
    bool has_announced;    /* the last search has announced this task */
};

/* End a search that has announced this task, with -MU_ECANCELLED: it withdraws the
 * announcement. When it has ended already, its caller withdraws. False: nothing was
 * announced, and nothing is ended. Any thread. */
bool mu__discover_stop(struct mu__discover_stop *stop);

/* Block until the resolver of `options` knows the cluster, resolve_ms at most; then fill
 * in cluster, task and bind address where `options` does not say them. Does nothing
 * without a resolver, or with a cluster. Also after a failure the caller calls
 * mu__discovered_done. `stop` may be NULL. */
int mu__discover(mu_node_options *options, struct mu__discover_stop *stop,
                 mu_error *ret_error, struct mu__discovered *ret_found);

/* The same, where the task may stay unknown: task_type is NULL then. */
int mu__discover_any(mu_node_options *options, struct mu__discover_stop *stop,
                     mu_error *ret_error, struct mu__discovered *ret_found);

/* This task's announcement; it points into `found` and `options`. Its address is "" when
 * nothing was announced. */
mu_announcement mu__discovered_announcement(const struct mu__discovered *found,
                                            const mu_node_options *options);

/* `withdraws`: the announcement is withdrawn, which may block for a moment. */
void mu__discovered_done(struct mu__discovered *found, const mu_node_options *options,
                         bool withdraws);

/* Write a log line to standard error: a mu_log_fn for nodes that were given none. */
void mu__log_text(void *user, int level, const char *task, const char *who,
                  const char *line);

#endif
