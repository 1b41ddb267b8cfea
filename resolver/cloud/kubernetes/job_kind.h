/* The resolver kubernetes_job in three parts: job_plan.c reads its settings, job_groups.c
 * finds out which pods there are and which one this is, job_kind.c makes the cluster.
 * Pure. */
#ifndef MU_RESOLVER_KUBERNETES_JOB_H
#define MU_RESOLVER_KUBERNETES_JOB_H

#include "resolver/engine/kind.h"

enum {
    MU__KUBE_JOB_GROUPS_MAX = 8,
    MU__KUBE_JOB_NAME_BYTES = 64, /* a DNS label and a zero */
    MU__KUBE_JOB_HOST_BYTES = 256
};

/* The settings, in the order of their table. */
enum {
    MU__KUBE_JOB_MODE,
    MU__KUBE_JOB_TASKS,
    MU__KUBE_JOB_REPLICAS,
    MU__KUBE_JOB_JOBS,
    MU__KUBE_JOB_GROUPS,
    MU__KUBE_JOB_SERVICE,
    MU__KUBE_JOB_NAME,
    MU__KUBE_JOB_JOBSET,
    MU__KUBE_JOB_REPLICATED_JOB,
    MU__KUBE_JOB_JOB_INDEX,
    MU__KUBE_JOB_INDEX,
    MU__KUBE_JOB_NAMESPACE,
    MU__KUBE_JOB_DOMAIN,
    MU__KUBE_JOB_PORT,
    MU__KUBE_JOB_ADDRESS,
    MU__KUBE_JOB_WAIT_FOR,
    MU__KUBE_JOB_RPC_LAYER
};

extern const struct mu__setting_spec mu__kube_job_settings[];

/* Pods that are numbered together. */
struct mu__kube_job_group {
    char type[16];                      /* "": the types are those of the setting jobs */
    char name[MU__KUBE_JOB_NAME_BYTES]; /* of the Job, replicated job or StatefulSet */
    unsigned replicas;                  /* Jobs of a JobSet's replicated job; else 1 */
    unsigned tasks;                     /* pods of each replica */
};

enum mu__kube_job_mode {
    MU__KUBE_MODE_JOB,
    MU__KUBE_MODE_JOB_SET,
    MU__KUBE_MODE_STATEFUL_SET,
    MU__KUBE_MODE_SERVICE /* all addresses behind a headless service */
};

struct mu__kube_job_plan {
    enum mu__kube_job_mode mode;
    struct mu__kube_job_group groups[MU__KUBE_JOB_GROUPS_MAX];
    size_t groups_count;
    const char *jobset;
    char suffix[MU__KUBE_JOB_HOST_BYTES]; /* ".service.namespace.svc.domain" */
    unsigned port;
    bool by_ip;
    unsigned waits_for; /* so many names, from the first on, need addresses */
    size_t own_group;   /* groups_count: this process is in none */
    unsigned own_replica;
    unsigned own_index;
};

/* Read all settings into a zeroed plan. -MU_EINVALID and others, naming the setting or
 * variable. */
int mu__kube_job_read(const struct mu__pass *pass, mu_error *ret_error,
                      struct mu__kube_job_plan *plan);

/* Find the groups of pods: those of the text `groups`, or this pod's own Job. */
int mu__kube_job_groups(const struct mu__pass *pass, const char *text,
                        mu_error *ret_error, struct mu__kube_job_plan *plan);
int mu__kube_job_one_group(const struct mu__pass *pass, mu_error *ret_error,
                           struct mu__kube_job_plan *plan);

/* Find out which pod of them this is. */
int mu__kube_job_own_index(const struct mu__pass *pass, mu_error *ret_error,
                           struct mu__kube_job_plan *plan);

/* A setting that is a number; *number_found stays when it has no value. */
int mu__kube_job_unsigned(const struct mu__pass *pass, unsigned number,
                          mu_error *ret_error, unsigned *number_found);

/* Whether the first `size` bytes are a DNS label. */
bool mu__kube_job_is_label(const char *text, size_t size);

/* Split the HOSTNAME of a pod, "name-3": *ret_size is 4, the bytes before "-3", and
 * *ret_index 3. False: it has no such index. */
bool mu__kube_job_split(const char *host_name, size_t *ret_size, int *ret_index);

/* HOSTNAME, else the system's host name; NULL: neither is known. */
const char *mu__kube_job_host_name(struct mu__requests *requests);

#endif
