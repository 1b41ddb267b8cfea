/* A task's way to the others, in a loop and without blocking it: says where this task
 * listens if its resolver takes that, finds out who is in the cluster, and keeps doing
 * both, since leases end and clusters change. Loop thread only.
 *
 * Looking for the others and saying where this task is do not wait for each other, so
 * that a lease does not end while others are waited for, or a slow source is asked. */
#ifndef MU_NODE_DISCOVERY_H
#define MU_NODE_DISCOVERY_H

#include <muster/node.h>
#include <muster/resolver.h>

#include <stdbool.h>
#include <uv.h>

struct mu__discovery_config {
    uv_loop_t *loop;
    mu_resolver *resolver;          /* borrowed, until it is closed */
    const mu_announcement *announcement;    /* copied. Type "": the resolver says it.
                                               Address "": `listen` is asked; or, where
                                               the cluster is known, nothing is told */
    bool is_known;                  /* the cluster is, and this task was told: go on */
    int64_t timeout_ms;               /* until the cluster is known; negative: no limit */

    /* What was found, each time. `resolution->cluster` is the callback's. */
    void (*found)(void *owner, mu_resolution *resolution);

    /* The cluster could not be found; nothing more is tried. Not when is_known. */
    void (*failed)(void *owner, const mu_error *error);

    /* Where this task listens is needed, since the resolver takes it: write it to
     * `ret_address`, which has 288 bytes. Asked once, when `address` is "". */
    int (*listen)(void *owner, mu_error *ret_error, char *ret_address);

    /* A line for the log; `level` is one of enum mu_log_level. */
    void (*log)(void *owner, int level, const char *line);
    void *owner;
};

struct mu__discovery;

/* -MU_ENOMEM. Nothing is called within it. */
int mu__discovery_open(const struct mu__discovery_config *config, mu_error *ret_error,
                       struct mu__discovery **ret_discovery);

/* The index that was taken; that of the announcement as long as none was. */
int mu__discovery_index(const struct mu__discovery *discovery);

/* Whether others may know by now where this task is. */
bool mu__discovery_may_have_announced(const struct mu__discovery *discovery);

/* Stop. With `withdraws` what others were told is taken back first, for `timeout_ms` at
 * most, and as long before it for an announcement that is under way. One that goes on
 * (is_known) then waits for functions of the program's own,
 * MU_RESOLVER_CLOSE_TIMEOUT_MS at most, and logs which one it has left behind. `closed`
 * is the last that is heard, from the loop. To be called once, also inside of a
 * callback. */
void mu__discovery_close(struct mu__discovery *discovery, bool withdraws,
                         int64_t timeout_ms, void (*closed)(void *arg), void *arg);

#endif
