/* The view service of the parameter servers, on the chief: a thin actor over the table of
 * views (view_table.h), which says by what rules they change.
 *
 * Hears:  VIEWS_HELD from a server whose link came up; REPLICA_NEWS from primaries; node
 *         news; CLUSTER_ADDED; VIEWS_ANSWERED; SERVER_DRAIN
 * Says:   VIEWS_SET to the servers that have, or had, a part in a changed view: one for
 *         all changes of a batch; before, KEY_SUBMIT to the node's agent (recording.h);
 *         VIEWS_GET to servers that are to report again, or are drained;
 *         SERVER_DRAINED to the supervisor
 * Owns:   the table
 * Fails:  never by itself. Without an answer of the coordination service views wait */
#ifndef MU_ACTORS_VIEWS_H
#define MU_ACTORS_VIEWS_H

#include "actors/views/recording.h"
#include "muster/value.h"
#include "runtime/kernel/kernel.h"

struct mu__views_options {
    struct mu__view_config table;
    bool strict;                    /* partitions without a backup take no writes */
    struct mu__agent_shared *agent; /* of this node; NULL: no task may host the
                                       coordination service. Outlives the actor */
};

/* Spawned as MU__VIEWS; its argument is a struct mu__views_options. */
extern const struct mu__behavior mu__views;

/* Each view, in the order of the partitions, without those that were never placed. */
typedef void (*mu__view_fn)(void *user, const struct mu__partition_view *view);
void mu__views_each(const void *views_state, mu__view_fn visit, void *user);

void mu__views_totals(const void *views_state, struct mu__view_totals *ret_totals);

/* Of a server; all is 0 if there is none of this task. */
void mu__views_roles(const void *views_state, uint32_t task,
                     struct mu__view_roles *ret_roles);

/* What the status shows: a map of the totals, `backups` (how many there should be),
 * `servers` and `views`. An item is missing when out of memory, or all (NULL). */
mu_value *mu__views_status(const void *views_state);

#endif
