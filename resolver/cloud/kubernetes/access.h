/* Access to a cluster's API: from within, by the variables and files of every pod, or
 * from outside, by kubeconfig. Pure. */
#ifndef MU_RESOLVER_KUBERNETES_ACCESS_H
#define MU_RESOLVER_KUBERNETES_ACCESS_H

#include "resolver/cloud/kubernetes/kubeconfig.h"
#include "resolver/engine/settings.h"

/* The settings of the resolver kubernetes, in the order of their table. */
enum {
    MU__KUBE_SET_SELECTORS,
    MU__KUBE_SET_NAMESPACE,
    MU__KUBE_SET_PORT,
    MU__KUBE_SET_PORT_NAME,
    MU__KUBE_SET_ADDRESS,
    MU__KUBE_SET_TASKS,
    MU__KUBE_SET_RPC_LAYER,
    MU__KUBE_SET_LOCATION,
    MU__KUBE_SET_API_SERVER,
    MU__KUBE_SET_TOKEN,
    MU__KUBE_SET_TOKEN_FILE,
    MU__KUBE_SET_TOKEN_COMMAND,
    MU__KUBE_SET_CA_FILE,
    MU__KUBE_SET_KUBECONFIG,
    MU__KUBE_SET_CONTEXT
};

struct mu__kubernetes_access {
    bool within;
    char *name_space;           /* NULL: not known */
    char *server;               /* "https://10.0.0.1:443" */
    char *authorization;        /* a header; NULL: without a token */
    bool token_is_new;          /* a larger `again` gives a new token */
    struct mu__kube_access tls; /* without server and name_space, which are above */
};

/* `again`: how often the token was refused before: its file is read again, or its
 * command run again.
 *
 * Owns:    the caller calls mu__kubernetes_access_done() after success.
 * Returns: -MU_EINVALID, -MU_ENOTFOUND and others, naming the setting,
 *          variable or file; -MU_ENOMEM. */
int mu__kubernetes_access(const struct mu__pass *pass, unsigned again,
                          mu_error *ret_error, struct mu__kubernetes_access *ret_access);

/* A zeroed one is fine. */
void mu__kubernetes_access_done(struct mu__kubernetes_access *access);

/* Whether the setting executable_location and the variables say that this is a pod. */
int mu__kubernetes_is_within(const struct mu__pass *pass, mu_error *ret_error,
                             bool *ret_within);

#endif
