/* Cloud TPUs: found by names, addresses, variables and metadata, and described by their
 * API. docs/resolvers/tpu.md has the order in which these are read. */
#ifndef MU_RESOLVER_TPU_H
#define MU_RESOLVER_TPU_H

#include "resolver/cloud/google/metadata.h"
#include "resolver/engine/settings.h"

#include <muster/compat/tpu.h>

enum {
    MU__TPU_PORT = 8470,         /* of a TPU's own server */
    MU__TPU_HOST_PORT = 8482,    /* of a task on a TPU's host, as in JAX */
    MU__TPU_VERSION_PORT = 8475, /* where versions are requested */
    MU__TPU_OOM_S = 90,          /* for so long a node is not used after a lack of
                                    memory */
    MU__TPU_NODES_MAX = 256,     /* in one session */
    MU__TPU_ENDPOINTS_MAX = 16384
};

struct mu__tpu_endpoint {
    char host[MU__GOOGLE_HOST_BYTES];
    unsigned port;
};

struct mu__tpu_endpoints {
    struct mu__tpu_endpoint *items;
    size_t count;
    size_t room;
};

void mu__tpu_endpoints_done(struct mu__tpu_endpoints *endpoints);

/* Add one: "host", "host:port", "[v6]", "[v6]:port", each also behind "grpc://". `port`
 * is the default. `source` and `number` begin messages: "TPU_NAME[3]". */
int mu__tpu_endpoint_add(struct mu__tpu_endpoints *endpoints, const char *text,
                         size_t size, unsigned port, const char *source, size_t number,
                         mu_error *ret_error);

/* ---- Nodes, as the API describes them ---- */

/* Texts are owned by the answer, "" when absent. */
struct mu__tpu_node {
    const char *name;
    const char *state;  /* "READY" */
    const char *health; /* "HEALTHY" */
    const char *health_description;
    const char *accelerator_type; /* "v2-8" */
    const char *runtime_version;
    const char *topology; /* "2x2x1" */
    const char *chip;     /* "V4" */
    const cJSON *root;
};

/* `what` begins messages. -MU_EINVALID: a member is of another type. */
int mu__tpu_node_read(const cJSON *root, const char *what, mu_error *ret_error,
                      struct mu__tpu_node *ret_node);

/* 0 when it is READY; -MU_EUNAVAILABLE in a state that may become READY, else
 * -MU_EPRECONDITION. */
int mu__tpu_node_check(const struct mu__tpu_node *node, const char *what,
                       mu_error *ret_error);

/* Its endpoints, [{ipAddress, port}] or, of old nodes, one ipAddress and port. `port`
 * counts in place of what the API says; 0: it does not. */
int mu__tpu_node_endpoints(const struct mu__tpu_node *node, const char *what,
                           unsigned port, mu_error *ret_error,
                           struct mu__tpu_endpoints *endpoints);

/* Whether the node can be used again after a while: not when it was terminated or
 * preempted, nor for MU__TPU_OOM_S after a lack of memory. `now_s`: since 1970. When it
 * cannot, *ret_why, which has 256 bytes, gets the reason. */
bool mu__tpu_node_recoverable(const struct mu__tpu_node *node, int64_t now_s,
                              char *ret_why);

/* Devices of each task, by the accelerator's type: "v2-32" on 4 tasks: 8. -1: the type
 * does not say. */
int mu__tpu_devices(const char *accelerator_type, size_t tasks);

/* The same from the kind of chip and the topology: "V4" and "2x2x4" on 4 tasks: 4. */
int mu__tpu_chip_devices(const char *chip, const char *topology, size_t tasks);

/* ---- Choice of TPUs ---- */

enum mu__tpu_source {
    MU__TPU_NONCLOUD, /* "", "local", "localhost:...", "/bns...": used as it is */
    MU__TPU_LIST,     /* names and addresses */
    MU__TPU_HOSTS,    /* hosts of the slice that this task is on */
    MU__TPU_METADATA  /* the same, from the metadata server */
};

struct mu__tpu_choice {
    enum mu__tpu_source source;
    const char *text; /* owned by the requests or settings, or `name` */
    char origin[128]; /* "TPU_NAME" */
    char name[MU__GOOGLE_NAME_BYTES * 3];
    char project[MU__GOOGLE_NAME_BYTES]; /* of TPU_CONFIG; "": it has none */
    char zone[MU__GOOGLE_NAME_BYTES];
    char *expanded;   /* see mu__tpu_expand */
    unsigned refused; /* tokens refused so far in this pass */
};

/* Find out which TPUs are to be used. -MU_EPRECONDITION: nothing names any.
 * `probes`: the metadata server is asked once, for a second at most. */
int mu__tpu_choose(const struct mu__pass *pass, bool probes, mu_error *ret_error,
                   struct mu__tpu_choice *ret_choice);

/* Replace each queued resource ("projects/p/locations/z/queuedResources/q") by the full
 * names of its nodes; nothing else is changed. -MU_EUNAVAILABLE: one has no nodes yet.
 * mu__tpu_choice_done() after it, whatever it returns. */
int mu__tpu_expand(const struct mu__pass *pass, mu_error *ret_error,
                   struct mu__tpu_choice *choice);
void mu__tpu_choice_done(struct mu__tpu_choice *choice);

/* Whether the metadata server must not be asked for this machine's TPU: on GKE it has
 * another one. */
bool mu__tpu_skips_metadata(struct mu__requests *requests);

/* One entry of a list. */
struct mu__tpu_entry {
    const char *text;
    size_t size;
    size_t number;
    bool is_address;
};

/* The next entry from *at on, false at the end. All entries behind one with "grpc://" are
 * addresses. *entry is zeroed before the first call. */
bool mu__tpu_next(const char **at, struct mu__tpu_entry *entry);

/* ---- Asking the API ---- */

struct mu__tpu_location {
    struct mu__google google;
    unsigned *refused; /* that of the choice */
    char name[MU__GOOGLE_NAME_BYTES];
    char project[MU__GOOGLE_NAME_BYTES];
    char zone[MU__GOOGLE_NAME_BYTES];
    char what[512]; /* TPU "a" (project p, zone z) */
};

/* The node of an entry that is a name, or a full one
 * ("projects/p/locations/z/nodes/n"). */
int mu__tpu_send(const struct mu__pass *pass, struct mu__tpu_choice *choice,
                 const struct mu__tpu_entry *entry, mu_error *ret_error,
                 struct mu__tpu_location *ret_location, struct mu__tpu_node *ret_node);

/* Take project, zone and name from a full name; `kind` is "nodes/" or
 * "queuedResources/". */
int mu__tpu_full_name(const struct mu__tpu_choice *choice,
                      const struct mu__tpu_entry *entry, const char *kind,
                      mu_error *ret_error, struct mu__tpu_location *location);

/* `choice` is borrowed. */
void mu__tpu_location_init(const struct mu__pass *pass, struct mu__tpu_choice *choice,
                           struct mu__tpu_location *ret_location);

/* GET a path behind ".../projects/P/locations/Z/". `tries` as in struct mu__request. */
int mu__tpu_get(const struct mu__tpu_location *location, const char *rest, unsigned tries,
                mu_error *ret_error, const cJSON **ret_root);

/* Of a node that the API does not have: whether a queued resource in the list is to
 * create it. 0: none is; else an error, -MU_EUNAVAILABLE when the node may still be
 * created. */
int mu__tpu_queue_find(const struct mu__tpu_location *location, const cJSON *list,
                       mu_error *ret_error);

/* ---- Settings ---- */

enum {
    MU__TPU_SET_TPU,
    MU__TPU_SET_ZONE,
    MU__TPU_SET_PROJECT,
    MU__TPU_SET_JOB_NAME,
    MU__TPU_SET_COORDINATOR_NAME,
    MU__TPU_SET_COORDINATOR_ADDRESS,
    MU__TPU_SET_COORDINATOR_PORT,
    MU__TPU_SET_PORT,
    MU__TPU_SET_API_ENDPOINT,
    MU__TPU_SET_API_VERSION,
    MU__TPU_SET_DISCOVERY_URL,
    MU__TPU_SET_VERSION_PORT,
    MU__TPU_SET_GOOGLE /* the rows of MU__GOOGLE_SETTINGS */
};

extern const struct mu__setting_spec mu__tpu_settings[];

/* The error when nothing names a TPU. */
#define MU__TPU_UNTOLD                                              \
    "neither the setting tpu nor KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS, " \
    "TPU_WORKER_HOSTNAMES, TPU_NAME or TPU_CONFIG says which TPU"

/* ---- State of TPUs: tpu_state.c; api/tpu_calls.c runs these as resolvers ---- */

/* As mu_tpu_describe. */
int mu__tpu_describe(const struct mu__pass *pass, mu_error *ret_error,
                     mu_tpu_state *ret_states, size_t room, size_t *ret_count);

/* 0 when all are healthy; -MU_EUNAVAILABLE with the first that is not yet;
 * -MU_EPRECONDITION when one never will be. */
int mu__tpu_check_health(const mu_tpu_state *states, size_t count, mu_error *ret_error);

/* As mu_tpu_request_version. */
int mu__tpu_request_version(const struct mu__pass *pass, const char *version,
                            const char *restart_type, mu_error *ret_error);

#endif
