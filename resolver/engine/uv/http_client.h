/* An HTTP client in a loop: libcurl's, by libmuster-cloud (resolver/cloud/uv/). */
#ifndef MU_RESOLVER_HTTP_CLIENT_H
#define MU_RESOLVER_HTTP_CLIENT_H

#include "runtime/kernel/http.h"

#include <uv.h>

struct mu__http_client;

#ifdef MUSTER_TINY
enum { MU__HTTP_REQUESTS_MAX = 8 };
#else
enum { MU__HTTP_REQUESTS_MAX = 256 }; /* under way; one more is -MU_EEXHAUSTED */
#endif

struct mu__http_client_config {
    uv_loop_t *loop;
    uint16_t done_kind; /* HTTP_DONE: a message whose body is the request's pointer */

    /* Sends HTTP_DONE to the owner: as mu__world_uv_post, so that it arrives in another
     * round of the loop and a turn follows. Takes msg when it returns 0. */
    int (*post)(void *owner, struct mu__msg *msg);
    void *owner;
};

/* libcurl's multi interface in the loop. -MU_ENOMEM, the errors of mu__cloud_load. */
int mu__http_client_open(const struct mu__http_client_config *config, mu_error *ret_error,
                         struct mu__http_client **ret_client);

/* The client's interface. Valid until close. */
struct mu__http *mu__http_client_door(struct mu__http_client *client);

/* Drops the requests in flight; nothing is posted any more. One-way requests
 * (ops->tell) may still end, within a second. `closed` is the last callback, from the
 * loop. To be called once. */
void mu__http_client_close(struct mu__http_client *client, void (*closed)(void *arg),
                           void *arg);

#endif
