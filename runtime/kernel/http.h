/* The interface to HTTP: one request, one answer.
 *
 * resolver/cloud/uv/http_curl.c is libcurl in the node's loop; tests/sim/ has servers in
 * virtual time. Loop thread only. */
#ifndef MU_RUNTIME_HTTP_H
#define MU_RUNTIME_HTTP_H

#include "muster/error.h"
#include "runtime/message/message.h"

#include <stdbool.h>

/* How an https server is verified, and our own certificate. PEM texts, each of which
 * may be NULL; they stay the caller's, until the request is done. */
struct mu__http_tls {
    const char *ca;          /* trusted instead of the system's */
    const char *certificate; /* ours, */
    const char *key;         /* and its key */
    const char *server_name; /* that its certificate must have; NULL: the URL's */
    bool insecure;           /* the server is not verified */
};

/* Embedded in the actor's state. It belongs to struct mu__http from send until its
 * HTTP_DONE message arrives, or until cancel. */
struct mu__http_request {
    const char *url;            /* http or https; the caller's until it is done */
    const char *method;         /* "GET", "POST", "PUT", "DELETE", "PATCH" */
    const char *const *headers; /* "Name: value", ended by NULL, copied; may be
                                   NULL */
    const void *body;           /* may be NULL; the caller's until it is done */
    size_t body_size;
    uint32_t timeout_ms;            /* of the whole request */
    size_t answer_max;              /* bytes; 0: 64 MiB. A larger answer is an error */
    mu__pid owner;                  /* gets HTTP_DONE */
    const struct mu__http_tls *tls; /* may be NULL */
    const char *header_name;        /* of the answer's header to return; NULL: none */
    bool uses_proxy;                /* the environment's proxy variables apply */
    bool http2; /* HTTP/2, without asking whether an http server has it;
                   header_name is one of its trailers, too */

    /* The answer. */
    int code; /* 0: there is an answer. -MU_EUNAVAILABLE (no connection,
                 or it broke), -MU_EDEADLINE, -MU_EINVALID (the URL),
                 -MU_EEXHAUSTED (too large), -MU_EUNAUTHENTICATED (the
                 server's certificate, or it refuses ours), with a
                 message in `error` without the URL's user and query */
    mu_error error;
    int status;              /* 200, 404 */
    struct mu__buf *answer;  /* the content; NULL when empty. The owner drops it */
    char content_type[64];   /* "application/json": without parameters, small letters;
                                "" when there is none */
    char header[256];        /* value of header_name; "" when absent or longer */
    uint32_t retry_after_ms; /* of Retry-After; 0: none */
    void *own;               /* private to the implementation */
};

struct mu__http {
    const struct mu__http_ops *ops;
};

struct mu__http_ops {
    /* Begin a request. HTTP_DONE always follows, never within this call. */
    void (*send)(struct mu__http *http, struct mu__http_request *request);

    /* Give up a request: no HTTP_DONE arrives any more, unless it is in the mailbox
     * already, and the request is the caller's again, with the answer if there is one.
     * Fine for a request that is done. */
    void (*cancel)(struct mu__http *http, struct mu__http_request *request);

    /* Send a request without waiting for its answer, for an actor that ends now:
     * everything is copied, no HTTP_DONE arrives, and failures are not reported. */
    void (*notify)(struct mu__http *http, const struct mu__http_request *request);
};

#endif
