/* libmuster-cloud in a process: loading it, and what it gives to a loop. */
#ifndef MU_RESOLVER_CLOUD_LIBRARY_H
#define MU_RESOLVER_CLOUD_LIBRARY_H

#include "resolver/engine/cloud.h"
#include "runtime/kernel/http.h"

#include <uv.h>

/* Any thread. Load the library, unless that was done: where the loader finds it, which is
 * beside the program or libmuster (their RUNPATH), or in the system's folders. Once
 * loaded it stays; what failed is tried again by the next call. It takes as long as the
 * loader takes. -MU_EPRECONDITION: it or a package that it needs is missing, or it is
 * of another build; the words name the file and the packages. */
int mu__cloud_load(mu_error *ret_error, const struct mu__cloud **ret_cloud);

/* ---- HTTP: resolver/cloud/uv/http_curl.c ---- */

#ifdef MUSTER_TINY
enum { MU__HTTP_REQUESTS_MAX = 8 };
#else
enum { MU__HTTP_REQUESTS_MAX = 256 };   /* under way; one more is -MU_EEXHAUSTED */
#endif

struct mu__http_client_config {
    uv_loop_t *loop;
    uint16_t done_kind;     /* HTTP_DONE: a message whose body is the request's pointer */

    /* How HTTP_DONE goes to its owner: as mu__world_uv_post, so that it arrives in
     * another round of the loop and a turn follows. Takes msg when 0 is returned. */
    int (*post)(void *owner, struct mu__msg *msg);
    void *owner;
};

/* libcurl's multi interface in the loop. -MU_ENOMEM, the errors of mu__cloud_load. */
int mu__http_client_open(const struct mu__http_client_config *config, mu_error *ret_error,
                         struct mu__http_client **ret_client);

/* The door. Valid until close. */
struct mu__http *mu__http_client_door(struct mu__http_client *client);

/* Requests under way are dropped, and nothing is posted any more. What was told
 * (ops->tell) may end, for a second at most. `closed` is the last that is heard, from the
 * loop. To be called once. */
void mu__http_client_close(struct mu__http_client *client, void (*closed)(void *arg),
                           void *arg);

/* ---- Signatures: resolver/cloud/uv/sign_crypto.c ---- */

/* RSASSA-PKCS1-v1_5 with SHA-256. `key` is the text of a private key as PEM. On success
 * the caller frees *ret_signature. -MU_EINVALID: the key is none, or not RSA; the errors
 * of mu__cloud_load; nothing of the key is in the words. Any thread. */
int mu__sign_rs256(const char *key, const void *data, size_t size, mu_error *ret_error,
                   unsigned char **ret_signature, size_t *ret_size);

#endif
