/* The resolver gce in three parts: find the instance group, list its instances, make the
 * cluster. */
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
    MU__GCE_SET_API_ENDPOINT,
    MU__GCE_SET_GOOGLE /* the rows of MU__GOOGLE_SETTINGS */
};

/* ---- The instance group: gce_place.c ---- */

struct mu__gce_location {
    struct mu__google google;
    char project[MU__GOOGLE_NAME_BYTES];
    char where[MU__GOOGLE_NAME_BYTES]; /* its zone or region */
    bool is_region;
    char group[MU__GOOGLE_NAME_BYTES];
    char base[512];
    char what[512]; /* the group in words: begins all messages */
};

/* From the settings, else from the group that made this machine and from its zone. */
int mu__gce_find_location(const struct mu__pass *pass, mu_error *ret_error,
                          struct mu__gce_location *ret_location);

/* ---- Its instances: gce_instances.c ---- */

struct mu__gce_instance {
    const char *name; /* owned by the answer */
    const char *zone; /* owned by the answer or the location; zone_size bytes */
    size_t zone_size;
    const char *address; /* NULL: not known yet */
    char *host_port;     /* the address in the cluster; owned */
};

struct mu__gce_instances {
    struct mu__gce_instance *items;
    size_t count;
    size_t room;
    unsigned refused; /* how many tokens were refused while listing */
};

void mu__gce_instances_done(struct mu__gce_instances *all);

/* List the running instances, at least one, each with its address unless the zone's list
 * has none. Texts are owned by the answers. */
int mu__gce_list(const struct mu__gce_location *location, mu_error *ret_error,
                 struct mu__gce_instances *all);

/* Orders for qsort: by name and zone, by host_port. */
int mu__gce_by_name(const void *a, const void *b);
int mu__gce_by_address(const void *a, const void *b);

#endif
