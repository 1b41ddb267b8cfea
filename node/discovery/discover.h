/* A node that has a resolver in place of a cluster: what is to be known before it can
 * open, and what goes on while it is open. */
#ifndef MU_NODE_DISCOVER_H
#define MU_NODE_DISCOVER_H

#include "node/discovery/discovery.h"
#include "node/discovery/own_address.h"
#include "transport/wire/uv/listen.h"

#include <pthread.h>

/* What was found out, and what this task has told. Options of a node point into it. */
struct mu__discovered {
    mu_resolution resolution;       /* all that the source said, but for its cluster */
    mu_cluster *cluster;            /* NULL: nothing was looked for */
    char type[16];
    int index;
    char bind_address[288];         /* the source's; "": it does not say */
    char visible_devices[512];      /* the source's; "": it does not say */
    struct mu__listening listening; /* fd -1: the node opens its own */
    char address[MU__OWN_ADDRESS_BYTES];    /* that was told; "": none */
    char incarnation[40];
};

/* By which another thread ends a search. */
struct mu__discover_stop {
    pthread_mutex_t lock;
    struct search *search;          /* while one runs */
    bool has_announced;             /* the last one, of this task */
};

/* The search that runs ends with -MU_ECANCELLED, and takes back what it has told. One
 * that has ended meanwhile leaves that to who has searched. False: nothing was told, and
 * nothing is ended. Any thread. */
bool mu__discover_stop(struct mu__discover_stop *stop);

/* Block until the resolver of `options` knows the cluster, resolve_ms at most; then fill
 * in cluster, task and bind address where `options` does not say them. Does nothing
 * without a resolver, or with a cluster. Also after a failure the caller calls
 * mu__discovered_done. `stop` may be NULL. */
int mu__discover(mu_node_options *options, struct mu__discover_stop *stop,
                 mu_error *ret_error, struct mu__discovered *ret_found);

/* The same, where the task may stay unknown: task_type is NULL then. */
int mu__discover_any(mu_node_options *options, mu_error *ret_error,
                     struct mu__discovered *ret_found);

/* Who this task is for the others, as it was told: it points into `found` and
 * `options`. Its address is "" when nothing was. */
mu_announcement mu__discovered_announcement(const struct mu__discovered *found,
                                            const mu_node_options *options);

/* `withdraws`: what was told is taken back; it may block for a moment. */
void mu__discovered_done(struct mu__discovered *found, const mu_node_options *options,
                         bool withdraws);

/* The words of a log line, as a node writes them where nobody takes them. */
void mu__log_text(void *user, int level, const char *task, const char *who,
                  const char *line);

#endif
