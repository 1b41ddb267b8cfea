/* Functions of libmuster-cloud that run in loops and on threads, as its table lists them:
 * resolver/engine/uv/cloud_library.h and http_client.h. The HTTP client:
 *
 * The loop polls its sockets and runs its one timer. Connections are kept and used
 * again; a request that meets one which the server has just closed is sent once more by
 * itself, so a server may see a request twice.
 *
 * Only http and https. A redirect is not followed: its status is the answer. Proxies of
 * the environment are used only where the request says so. Names are
 * looked up by libcurl, on a thread that ends with the look-up; nothing waits for it. The
 * loop's thread has SIGPIPE blocked, or the process ignores it. */
#ifndef MU_RESOLVER_CLOUD_UV_H
#define MU_RESOLVER_CLOUD_UV_H

#include "resolver/engine/cloud.h"
#include "resolver/engine/uv/http_client.h"

int mu__curl_open(const struct mu__http_client_config *config,
                  struct mu__http_client **ret_client);
struct mu__http *mu__curl_door(struct mu__http_client *client);
void mu__curl_close(struct mu__http_client *client, void (*closed)(void *arg), void *arg);

/* Make one request: fills in its answer. Blocks, until its timeout at most; it ends soon
 * when *cancelled becomes true. */
void mu__curl_perform(struct mu__http_request *request, const atomic_bool *cancelled);

int mu__crypto_sign_rs256(const char *key, const void *data, size_t size,
                          mu_error *ret_error, unsigned char **ret_signature,
                          size_t *ret_size);

#endif
