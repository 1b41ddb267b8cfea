/* libmuster-cloud: the resolvers for Kubernetes, Google's cloud and SageMaker, HTTP and
 * signatures. A library of its own, since it is linked with libcurl, libyaml and
 * libcrypto, which bring some forty others; a process loads it when one of these
 * resolvers or etcd is used. What is needed without it, the settings and the detection
 * of its resolvers, is in resolver/cloud/kinds/. */
#ifndef MU_RESOLVER_CLOUD_H
#define MU_RESOLVER_CLOUD_H

#include "resolver/engine/kind.h"

#include <muster/compat/tpu.h>

#include <stdatomic.h>

#define MU__CLOUD_LIBRARY "libmuster-cloud.so.0"

enum mu__cloud_resolver {
    MU__CLOUD_GCE,
    MU__CLOUD_KUBERNETES,
    MU__CLOUD_KUBERNETES_JOB,
    MU__CLOUD_SAGEMAKER,
    MU__CLOUD_TPU,
    MU__CLOUD_RESOLVERS
};

/* As `resolve` of struct mu__resolver_kind. */
typedef int mu__cloud_resolve_fn(const struct mu__pass *pass, mu_error *ret_error,
                                 mu_resolution *ret_resolution);

struct mu__http;
struct mu__http_request;
struct mu__http_client;
struct mu__http_client_config;

/* The library's functions. Valid as long as the process lives. */
struct mu__cloud {
    mu__cloud_resolve_fn *resolve[MU__CLOUD_RESOLVERS];

    /* Documented in resolver/cloud/resolvers.h and google/tpu.h. */
    int (*tpu_detect)(const struct mu__pass *pass, mu_error *ret_why);
    int (*tpu_describe)(const struct mu__pass *pass, mu_error *ret_error,
                        mu_tpu_state *ret_states, size_t room, size_t *ret_count);
    int (*tpu_check_health)(const mu_tpu_state *states, size_t count,
                            mu_error *ret_error);
    int (*tpu_request_version)(const struct mu__pass *pass, const char *version,
                               const char *restart_type, mu_error *ret_error);

    /* Documented in resolver/engine/uv/http_client.h and cloud_library.h. */
    int (*http_open)(const struct mu__http_client_config *config,
                     struct mu__http_client **ret_client);
    struct mu__http *(*http_door)(struct mu__http_client *client);
    void (*http_close)(struct mu__http_client *client, void (*closed)(void *arg),
                       void *arg);
    void (*http_perform)(struct mu__http_request *request, const atomic_bool *cancelled);
    int (*sign_rs256)(const char *key, const void *data, size_t size, mu_error *ret_error,
                      unsigned char **ret_signature, size_t *ret_size);
};

/* The one function that the library exports, by this name. NULL: `layout` is not the
 * library's own mu__cloud_layout(), the caller is of another build. */
typedef const struct mu__cloud *mu__cloud_open_fn(uint32_t layout);
#define MU__CLOUD_OPEN "mu__cloud_open"

/* A checksum of muster's version and of the sizes of the structs that both sides
 * share. */
uint32_t mu__cloud_layout(void);

/* The library's functions; when mu__cloud_set() has not been called, a request loads
 * the library. -MU_EPRECONDITION: it cannot be loaded. */
int mu__cloud_need(struct mu__requests *requests, mu_error *ret_error,
                   const struct mu__cloud **ret_cloud);
void mu__cloud_set(const struct mu__cloud *cloud);

/* Resolve by one of the library's resolvers. */
int mu__cloud_resolve(enum mu__cloud_resolver resolver, const struct mu__pass *pass,
                      mu_error *ret_error, mu_resolution *ret_resolution);

#endif
