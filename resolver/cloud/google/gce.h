/* The resolver gce in three parts: which group is meant, who is in it, and the cluster
 * that comes of it. */
#ifndef MU_RESOLVER_GCE_H
#define MU_RESOLVER_GCE_H

#include "resolver/cloud/google/metadata.h"

enum {
    MU__GCE_SET_PROJECT,
    MU__GCE_SET_ZONE,
    MU__GCE_SET_REGION,
    MU__GCE_SET_INSTANCE_GROUP,
    MU__GCE_SET_PORT,
    MU__GCE_SET_TASK_TYPE,
    MU__GCE_SET_TASK_INDEX,
    MU__GCE_SET_RPC_LAYER,
    MU__GCE_SET_ORDER,
    MU__GCE_SET_CREDENTIALS,
    MU__GCE_SET_ACCESS_TOKEN,
    MU__GCE_SET_ACCESS_TOKEN_FILE,
    MU__GCE_SET_TOKEN_COMMAND,
    MU__GCE_SET_API_ENDPOINT,
    MU__GCE_SET_CA_FILE
};

/* ---- Which group: gce_place.c ---- */

struct mu__gce_location {
    struct mu__google google;
    char project[MU__GOOGLE_NAME_BYTES];
    char where[MU__GOOGLE_NAME_BYTES]; /* its zone or region */
    bool is_region;
    char group[MU__GOOGLE_NAME_BYTES];
    char base[512];
    char what[512]; /* begins all messages */
};

/* By the settings, else by what made this machine and where it is. MU__LATER. */
int mu__gce_find_location(const struct mu__pass *pass, mu_error *ret_error,
                          struct mu__gce_location *ret_location);

/* ---- Who is in it: gce_instances.c ---- */

struct mu__gce_instance {
    const char *name; /* of the answer */
    const char *zone; /* of the answer or place, as far as zone_size */
    size_t zone_size;
    const char *address; /* NULL: not known yet */
    char *host_port;     /* the address in the cluster, of malloc */
};

struct mu__gce_instances {
    struct mu__gce_instance *items;
    size_t count;
    size_t room;
    unsigned refused; /* tokens, while they were listed */
};

void mu__gce_instances_done(struct mu__gce_instances *all);

/* Those that are running, at least one, each with its address unless the zone's list has
 * none. Texts are the answers'. MU__LATER. */
int mu__gce_list(const struct mu__gce_location *location, mu_error *ret_error,
                 struct mu__gce_instances *all);

/* Orders for qsort: by name and zone, by host_port. */
int mu__gce_by_name(const void *a, const void *b);
int mu__gce_by_address(const void *a, const void *b);

#endif
