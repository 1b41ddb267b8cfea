/* kubeconfig files: the API's url, and the credentials for it. Several files are merged
 * as kubectl does it: the first one that has a name or value counts. Pure. */
#ifndef MU_RESOLVER_KUBECONFIG_H
#define MU_RESOLVER_KUBECONFIG_H

#include <muster/error.h>

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stddef.h>

enum { MU__KUBECONFIG_FILES_MAX = 16 };

/* A content that stands in the file itself (`text`) or in another file (`path`); at most
 * one of both is set. */
struct mu__kube_content {
    char *text;
    char *path;
};

/* Access to an API as the files describe it. All texts are owned, and freed by
 * mu__kube_access_done. NULL: not given. */
struct mu__kube_access {
    char *server; /* "https://host:6443", without slashes at the end */
    char *name_space;
    char *server_name;
    bool insecure;
    struct mu__kube_content ca;
    struct mu__kube_content token;
    struct mu__kube_content certificate;
    struct mu__kube_content key;
};

/* One file: its path, for messages and for paths that are relative to its folder, and its
 * tree. */
struct mu__kubeconfig_file {
    const char *path;
    const cJSON *root;
};

/* Parse one file, YAML or JSON; the caller frees *ret_root. An empty one is an empty
 * object. Errors as of mu__yaml_parse, and -MU_EINVALID when it is no mapping. */
int mu__kubeconfig_parse(const char *text, size_t size, const char *path,
                         mu_error *ret_error, cJSON **ret_root);

/* Read a context; NULL: the current one. With `signs_in` the user's token is read, too,
 * else only its certificate.
 *
 * Owns:    the caller calls mu__kube_access_done() after success.
 * Returns: -MU_ENOTFOUND: no such context, cluster or user; -MU_EINVALID: a value of the
 *          wrong kind, naming file and key; -MU_EEXISTS: a name that appears twice in a
 *          file; -MU_EUNIMPLEMENTED: a way to sign in that needs a person or that is not
 *          known here, with what to do instead; -MU_ENOMEM. Nothing of a token or key is
 *          in the words. */
int mu__kubeconfig_find(const struct mu__kubeconfig_file *files, size_t count,
                        const char *context, bool signs_in, mu_error *ret_error,
                        struct mu__kube_access *ret_access);

/* A zeroed one is fine. Keys and tokens are overwritten first. */
void mu__kube_access_done(struct mu__kube_access *access);

#endif
