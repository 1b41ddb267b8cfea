/* Discovery in a loop, without blocking it: announces where this task listens if its
 * resolver takes announcements, resolves the cluster, and keeps doing both, since leases
 * end and clusters change. Loop thread only.
 *
 * The two do not wait for each other, so that a lease does not end while other tasks are
 * waited for, or a source is slow. */
#ifndef MU_NODE_DISCOVERY_H
#define MU_NODE_DISCOVERY_H

#include <muster/node.h>
#include <muster/resolver.h>

#include <stdbool.h>
#include <uv.h>

struct mu__discovery_config {
    uv_loop_t *loop;
    mu_resolver *resolver;               /* borrowed, until it is closed */
    const mu_announcement *announcement; /* copied. Type "": the resolver says it.
                                            Address "": `listen` gives it; with
                                            is_known nothing is announced then */
    bool is_known;                       /* the cluster is, and this task was announced */
    int64_t timeout_ms; /* until the cluster is known; negative: no end */

    /* The cluster was resolved, once more. `resolution->cluster` is the callback's. */
    void (*found)(void *owner, mu_resolution *resolution);

    /* The cluster could not be found; nothing more is tried. Not when is_known. */
    void (*failed)(void *owner, const mu_error *error);

    /* The resolver takes announcements: write where this task listens to `ret_address`,
     * which has 288 bytes. Called once, when `address` is "". */
    int (*listen)(void *owner, mu_error *ret_error, char *ret_address);

    /* A line for the log; `level` is one of enum mu_log_level. */
    void (*log)(void *owner, int level, const char *line);
    void *owner;
};

struct mu__discovery;

/* -MU_ENOMEM. Nothing is called within it. */
int mu__discovery_open(const struct mu__discovery_config *config, mu_error *ret_error,
                       struct mu__discovery **ret_discovery);

/* This task's index: the one that the resolver gave it, or that of the announcement. */
int mu__discovery_index(const struct mu__discovery *discovery);

/* Stop. With `withdraws` the announcement is withdrawn first, for `timeout_ms` at most,
 * after waiting as long for an announcement that is under way. With is_known, functions
 * of the program's own resolver are then waited for, MU_RESOLVER_CLOSE_TIMEOUT_MS at
 * most, and those that have not returned are logged. `closed` is the last callback, from
 * the loop. To be called once, also inside of a callback. */
void mu__discovery_close(struct mu__discovery *discovery, bool withdraws,
                         int64_t timeout_ms, void (*closed)(void *arg), void *arg);

#endif
