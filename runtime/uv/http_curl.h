/* The door to HTTP as libcurl's multi interface in a libuv loop: its sockets are polled
 * and its one timer run by the loop. Connections are kept and used again; a request that
 * meets one which the server has just closed is sent once more by itself, so a server may
 * see a request twice.
 *
 * Only http and https. A redirect is not followed: its status is the answer. What the
 * environment says about proxies does not count, unless the request says so. Names are
 * looked up by libcurl, on a thread that ends with the look-up; nothing waits for it.
 *
 * Lazy: libcurl is not even loaded before the first request, which waits for the loader.
 * Where it cannot be loaded, requests end with -MU_EUNAVAILABLE. The loop's thread has
 * SIGPIPE blocked, or the process ignores it. */
#ifndef MU_RUNTIME_HTTP_CURL_H
#define MU_RUNTIME_HTTP_CURL_H

#include "runtime/kernel/http.h"

#include <uv.h>

#ifdef MUSTER_TINY
enum { MU__HTTP_REQUESTS_MAX = 8 };
#else
enum { MU__HTTP_REQUESTS_MAX = 256 };   /* under way; one more is -MU_EEXHAUSTED */
#endif

struct mu__http_curl;

struct mu__http_curl_config {
    uv_loop_t *loop;
    uint16_t done_kind;     /* HTTP_DONE: a message whose body is the request's pointer */

    /* How HTTP_DONE goes to its owner: as mu__world_uv_post, so that it arrives in
     * another round of the loop and a turn follows. Takes msg when 0 is returned. */
    int (*post)(void *owner, struct mu__msg *msg);
    void *owner;
};

int mu__http_curl_open(const struct mu__http_curl_config *config,
                       struct mu__http_curl **ret_http);

/* The door. Valid until close. */
struct mu__http *mu__http_curl_door(struct mu__http_curl *http);

/* Whether libcurl was needed so far. */
bool mu__http_curl_was_used(const struct mu__http_curl *http);

/* Requests under way are dropped, and nothing is posted any more. What was told
 * (ops->tell) may end, for a second at most. `closed` is the last that is heard, from the
 * loop. To be called once. */
void mu__http_curl_close(struct mu__http_curl *http, void (*closed)(void *arg),
                         void *arg);

#endif
