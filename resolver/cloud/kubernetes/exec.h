/* Programs that make credentials: `exec` of a kubeconfig's user, as Kubernetes has it in
 * client.authentication.k8s.io. What they are told, and what they print. Pure. */
#ifndef MU_RESOLVER_KUBE_EXEC_H
#define MU_RESOLVER_KUBE_EXEC_H

#include "resolver/engine/build.h"
#include "resolver/engine/requests.h"

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MU__KUBE_EXEC_TIMEOUT_MS = 60000,
    MU__KUBE_EXEC_BYTES_MAX = 1 << 20, /* of what it prints */
    MU__KUBE_EXEC_CACHE_MS = 3600000
};

/* All texts are owned; NULL: not given. */
struct mu__kube_exec {
    char *where;                /* "FILE: user "u": exec", for messages */
    char *version;              /* "client.authentication.k8s.io/v1" */
    char *command;              /* a path with a slash, or a name */
    char *hint;                 /* how to install it, one line */
    char *config;               /* JSON that the cluster has for it */
    struct mu__build words; /* arguments and variables, as MU__REQUEST_PROGRAM has them */
    bool tells_cluster;
};

/* Read {"apiVersion": ..., "command": ...} of the user `where` in the kubeconfig `path`;
 * `cluster` has the extension that is for the program, and may be NULL. On success the
 * caller frees *ret_exec. -MU_EINVALID, -MU_EUNIMPLEMENTED, -MU_ENOMEM. */
int mu__kube_exec_read(const cJSON *exec, const cJSON *cluster, const char *path,
                       const char *where, mu_error *ret_error,
                       struct mu__kube_exec **ret_exec);

/* NULL is fine. */
void mu__kube_exec_free(struct mu__kube_exec *exec);

/* What a program may be told of the cluster. */
struct mu__kube_exec_cluster {
    const char *server;
    const char *server_name;    /* NULL */
    const char *ca;             /* PEM; NULL */
    bool insecure;
};

/* The words for MU__REQUEST_PROGRAM: those of `exec`, and KUBERNETES_EXEC_INFO. The
 * caller calls mu__build_done() and asks mu__build_whole(). */
void mu__kube_exec_words(const struct mu__kube_exec *exec,
                         const struct mu__kube_exec_cluster *cluster,
                         struct mu__build *words);

struct mu__kube_credential {
    char *token;                /* NULL: none */
    char *certificate;          /* PEM; NULL: none */
    char *key;                  /* with the certificate */
    int64_t until_s;            /* since 1970; 0: it does not say */
};

/* An ExecCredential as JSON or YAML. On success the caller frees *ret_credential.
 * -MU_EINVALID, -MU_EEXISTS, -MU_EEXHAUSTED, -MU_ENOMEM; nothing of what the program has
 * printed is in the words. */
int mu__kube_credential_parse(const struct mu__kube_exec *exec, const char *text,
                              size_t size, mu_error *ret_error,
                              struct mu__kube_credential **ret_credential);

/* Have the program run, or take what it printed before as long as that is good (at most
 * MU__KUBE_EXEC_KEEP_MS, when it does not say). `again`: how often its credential was
 * refused, since then it is run anew. *ret_credential is the requests'. MU__LATER, the
 * errors of MU__REQUEST_PROGRAM and those of above. */
int mu__kube_exec_request(struct mu__requests *requests, const struct mu__kube_exec *exec,
                          const struct mu__kube_exec_cluster *cluster, unsigned again,
                          mu_error *ret_error,
                          const struct mu__kube_credential **ret_credential);

/* Overwrites what is secret. Of a struct mu__kube_credential as void, so that it can be
 * kept with an answer. NULL is fine. */
void mu__kube_credential_free(void *credential);

#endif
