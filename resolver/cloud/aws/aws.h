/* What the resolvers aws and sagemaker go by; of the latter also what a training job says
 * of its hosts, and of the groups of instances that they are in. */
#ifndef MU_RESOLVER_AWS_H
#define MU_RESOLVER_AWS_H

#include "resolver/engine/kind.h"
#include "resolver/spec/host_list.h"

#include <cjson/cJSON.h>

enum {
    MU__SAGEMAKER_GROUPS_MAX = 16,  /* SageMaker takes 5 */
    MU__SAGEMAKER_PARTS_MAX = 8     /* of the setting groups */
};

/* The settings, in the order of their tables. */
enum {
    MU__BATCH_SET_JOBS,
    MU__BATCH_SET_PORT,
    MU__BATCH_SET_BIND_ADDRESS,
    MU__BATCH_SET_RPC_LAYER
};
enum {
    MU__SAGEMAKER_SET_PORT,
    MU__SAGEMAKER_SET_JOBS,
    MU__SAGEMAKER_SET_GROUPS,
    MU__SAGEMAKER_SET_RPC_LAYER
};

#define MU__BATCH_NODE_INDEX "AWS_BATCH_JOB_NODE_INDEX"
#define MU__SAGEMAKER_CONFIG "/opt/ml/input/config/resourceconfig.json"

struct mu__sagemaker_groups {
    const char *source;         /* static, for messages */
    cJSON *root;
    struct mu__sagemaker_group {
        const char *name;       /* the root's */
        struct mu__host_list hosts; /* sorted */
        size_t taken;           /* of these, by jobs */
    } items[MU__SAGEMAKER_GROUPS_MAX];
    size_t count;
};

/* Append a JSON list of names. -MU_EINVALID with the place, -MU_EEXHAUSTED,
 * -MU_ENOMEM. */
int mu__sagemaker_hosts(const cJSON *list, const char *source, mu_error *ret_error,
                        struct mu__host_list *hosts);

/* Sort them by name. -MU_EEXISTS: one stands there twice. */
int mu__sagemaker_sort(struct mu__host_list *hosts, const char *source,
                       mu_error *ret_error);

/* Which groups there are: of SM_INSTANCE_GROUPS_DICT, else of SM_RESOURCE_CONFIG, else of
 * the file that both are from. `origin` is who wants to know. Over zeroed memory; to be
 * followed by mu__sagemaker_groups_done, whatever is returned. -MU_ENOTFOUND: nothing
 * says it; MU__LATER. */
int mu__sagemaker_groups_find(struct mu__requests *requests, const char *origin,
                              mu_error *ret_error, struct mu__sagemaker_groups *groups);
void mu__sagemaker_groups_done(struct mu__sagemaker_groups *groups);

/* The hosts in the order of the jobs, and these, as "chief=gpu:1,worker=gpu,ps=cpu" has
 * it: so many hosts of a group, or all that are left of it. A job may have parts of
 * several groups. `origin` is where the text is from. Appends to `hosts`. */
int mu__sagemaker_groups_plan(struct mu__sagemaker_groups *groups, const char *text,
                              const char *origin, mu_error *ret_error,
                              struct mu__host_list *hosts, struct mu__jobs *ret_jobs);

#endif
