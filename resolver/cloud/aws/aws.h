/* Shared by the parts of the resolver sagemaker: its settings, and the hosts of a
 * training job with the instance groups that they are in. */
#ifndef MU_RESOLVER_AWS_H
#define MU_RESOLVER_AWS_H

#include "resolver/engine/kind.h"
#include "resolver/spec/host_list.h"

#include <cjson/cJSON.h>

enum {
    MU__SAGEMAKER_GROUPS_MAX = 16, /* SageMaker has 5 at most */
    MU__SAGEMAKER_PARTS_MAX = 8    /* of the setting groups */
};

/* The settings, in the order of their table. */
enum {
    MU__SAGEMAKER_SET_PORT,
    MU__SAGEMAKER_SET_JOBS,
    MU__SAGEMAKER_SET_GROUPS,
    MU__SAGEMAKER_SET_RPC_LAYER
};

#define MU__SAGEMAKER_CONFIG "/opt/ml/input/config/resourceconfig.json"

struct mu__sagemaker_groups {
    const char *source; /* static, for messages */
    cJSON *root;
    struct mu__sagemaker_group {
        const char *name;           /* owned by `root` */
        struct mu__host_list hosts; /* sorted */
        size_t taken;               /* how many of the hosts are already in a job */
    } items[MU__SAGEMAKER_GROUPS_MAX];
    size_t count;
};

/* Append a JSON list of names. -MU_EINVALID with the place, -MU_EEXHAUSTED,
 * -MU_ENOMEM. */
int mu__sagemaker_hosts(const cJSON *list, const char *source, mu_error *ret_error,
                        struct mu__host_list *hosts);

/* Sort them by name. -MU_EEXISTS: one appears twice. */
int mu__sagemaker_sort(struct mu__host_list *hosts, const char *source,
                       mu_error *ret_error);

/* Read the groups from SM_INSTANCE_GROUPS_DICT, else SM_RESOURCE_CONFIG, else the file
 * that both are made from. `origin` is the setting that needs them, for messages. Over
 * zeroed memory; to be followed by mu__sagemaker_groups_done, whatever is returned.
 * -MU_ENOTFOUND: none of them is there. */
int mu__sagemaker_groups_find(struct mu__requests *requests, const char *origin,
                              mu_error *ret_error, struct mu__sagemaker_groups *groups);
void mu__sagemaker_groups_done(struct mu__sagemaker_groups *groups);

/* Make jobs of the groups by a text such as "chief=gpu:1,worker=gpu,ps=cpu": so many
 * hosts of a group, or all that are left of it. A job may have hosts of several groups.
 * Appends the hosts to `hosts`, in the order of the jobs. `origin` is where the text is
 * from. */
int mu__sagemaker_groups_plan(struct mu__sagemaker_groups *groups, const char *text,
                              const char *origin, mu_error *ret_error,
                              struct mu__host_list *hosts, struct mu__jobs *ret_jobs);

#endif
