/* A parameter server that does nothing but hold and report the newest views that it hears
 * of, and the loss of other servers, in a process of a net (net.h). */
#ifndef MU_TESTS_VIEWS_REPORTER_H
#define MU_TESTS_VIEWS_REPORTER_H

#include "actors/partitions.h"
#include "tests/support/net.h"

struct view_reporter {
    struct mu__partition_view views[MU__PARTITIONS]; /* number 0: none was heard */
    uint32_t sets;                                   /* VIEWS_SET that came with views, */
    uint32_t empty_sets;                             /* and without */
    uint32_t chief;                                  /* node; 0: there is none */
    uint32_t task;
    bool draining; /* a chief has said so */
    bool is_ready; /* it says at once that a learner is level, or a handover ready */
    uint32_t nodes[NET_PROCESSES_MAX]; /* of the other servers, by their tasks */
};

/* As net_add() takes it. */
int view_reporter_spawn(struct net_process *p);

const struct view_reporter *view_reporter_of(const struct net_process *p);

/* All members of a view that run have heard of it; a mu__view_fn. `user` is the net. */
void view_reporter_check(void *user, const struct mu__partition_view *view);

#endif
