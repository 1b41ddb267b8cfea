/* What reads values of a kubeconfig file: for kubeconfig.c and kube_exec.c. */
#ifndef MU_RESOLVER_KUBECONFIG_INNER_H
#define MU_RESOLVER_KUBECONFIG_INNER_H

#include <muster/error.h>

#include <cjson/cJSON.h>

/* A text by its key; absent, null and "" are NULL. What it is instead is not said: it
 * might be a token without quotes. -MU_EINVALID. */
int mu__kubeconfig_text(const cJSON *body, const char *where, const char *key,
                        mu_error *ret_error, const char **ret_text);

/* A path as the file `path` has it: what is relative begins at that file's folder. NULL:
 * out of memory. */
char *mu__kubeconfig_path(const char *path, const char *text);

#endif
