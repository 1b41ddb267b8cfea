/* Whether a cluster spec that a client offers fits a server. Pure; the functions are the
 * job actor's (actors/job/job.h), with one of the structs below as their owner. */
#ifndef MU_NODE_MEMBER_OFFER_H
#define MU_NODE_MEMBER_OFFER_H

#include "actors/job/job.h"

#include "muster/cluster.h"

/* For a server that has its cluster: only the same one fits. Borrowed. */
struct mu__offer_own {
    const mu_cluster *cluster;
    const char *type;
    int index;
};

int mu__offer_check_own(void *owner, const struct mu__offer *offer, mu_error *ret_error);

/* For a server that waits: where it is. Borrowed. */
struct mu__offer_urls {
    const char *listens;    /* url */
    const char *advertised; /* url; NULL: no other one */
};

int mu__offer_check_new(void *owner, const struct mu__offer *offer, mu_error *ret_error);

/* The same tasks at the same addresses, however they are written. */
bool mu__cluster_same(const mu_cluster *one, const mu_cluster *two);

/* Whether a task at `url`, as a cluster spec has it, is the server that listens there. A
 * name of a machine is taken for any address. */
bool mu__offer_is_at(const char *url, const struct mu__offer_urls *urls);

#endif
