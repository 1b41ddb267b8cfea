/* The node of each task of a launcher: from the numbers of tasks of the nodes,
 * and the way in which they were distributed. Pure. */
#ifndef MU_RESOLVER_LAYOUT_H
#define MU_RESOLVER_LAYOUT_H

#include "resolver/spec/host_list.h"

struct mu__layout {
    unsigned tasks;
    uint32_t *nodes;         /* by rank: its node, a place in the list of hosts, */
    uint32_t *locals;        /* and its number among the tasks there, from 0 */
    unsigned node_tasks_max; /* on one node */
};

/* How ranks are distributed over nodes. */
enum mu__distribution {
    MU__DISTRIBUTION_BLOCK,  /* a node is filled before the next one */
    MU__DISTRIBUTION_CYCLIC, /* one to each node in turn */
    MU__DISTRIBUTION_PLANE   /* `plane` to each node in turn */
};

/* Parse the numbers of tasks of `nodes` nodes: "3(x2),2,1" is 3, 3, 2, 1.
 *
 * Returns: -MU_EINVALID with place and expectation, also when there are more or fewer
 *          numbers than nodes; -MU_ENOMEM. On success the caller frees *ret_counts. */
int mu__task_counts_parse(const char *text, const char *source, size_t nodes,
                          mu_error *ret_error, unsigned **ret_counts);

/* Assign each rank its node. The sum of the counts is at most MU_CLUSTER_TASKS_MAX.
 * -MU_ENOMEM. */
int mu__layout_assign(enum mu__distribution distribution, unsigned plane,
                      const unsigned *counts, size_t nodes,
                      struct mu__layout *ret_layout);

/* The layout of a list of the ranks' hosts: rank i is on ranks->names[i], which is one
 * of `hosts`. -MU_ENOTFOUND with the name of one that is not, -MU_ENOMEM. */
int mu__layout_listed(const struct mu__host_list *ranks,
                      const struct mu__host_list *hosts, const char *source,
                      mu_error *ret_error, struct mu__layout *ret_layout);

/* Fine on a layout that is all zeros. */
void mu__layout_done(struct mu__layout *layout);

#endif
