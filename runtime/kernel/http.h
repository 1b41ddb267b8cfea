/* The door to HTTP: one request, one answer.
 *
 * runtime/uv/http_curl.c is libcurl in the node's loop; tests/sim/ has servers in virtual
 * time. Loop thread only. */
#ifndef MU_RUNTIME_HTTP_H
#define MU_RUNTIME_HTTP_H

#include "muster/error.h"
#include "runtime/message/message.h"

#include <stdbool.h>

/* How an https server is known, and how it knows us; each may be NULL. Texts of PEM, the
 * caller's until the request is done. */
struct mu__http_tls {
    const char *ca;             /* trusted instead of the system's */
    const char *certificate;    /* ours, */
    const char *key;            /* and its key */
    const char *server_name;    /* that its certificate must have instead of the url's */
    bool insecure;              /* whoever it is */
};

/* Embedded in what the actor owns. From send until its HTTP_DONE message arrives, or
 * until cancel, it belongs to the door. */
struct mu__http_request {
    const char *url;            /* http or https; the caller's until it is done */
    const char *method;         /* "GET", "POST", "PUT", "DELETE", "PATCH" */
    const char *const *headers; /* "Name: value", ended by NULL, copied; may be
                                   NULL */
    const void *body;           /* may be NULL; the caller's until it is done */
    size_t body_size;
    uint32_t timeout_ms;          /* for the whole */
    size_t answer_max;          /* bytes; 0: 64 MiB. A larger answer is an error */
    mu__pid owner;              /* gets HTTP_DONE */
    const struct mu__http_tls *tls;     /* may be NULL */
    const char *header_name;  /* the name of a header of the answer; NULL: none */
    bool uses_proxy;            /* what the environment says about proxies counts */

    /* The answer. */
    int code;                   /* 0: there is an answer. -MU_EUNAVAILABLE (no connection,
                                   or it broke), -MU_EDEADLINE, -MU_EINVALID (the URL),
                                   -MU_EEXHAUSTED (too large), -MU_EUNAUTHENTICATED (the
                                   server's certificate, or it refuses ours), with words
                                   in error that have neither user nor query of the
                                   url */
    mu_error error;
    int status;                 /* 200, 404 */
    struct mu__buf *answer;     /* the content; NULL when empty. The owner drops it */
    char content_type[64];      /* "application/json": without parameters, small letters;
                                   "" when there is none */
    char header[256];           /* the wanted one; "" when absent or longer */
    uint32_t retry_after_ms;    /* what the server asks to wait; 0: nothing */
    void *own;                  /* the door's */
};

struct mu__http {
    const struct mu__http_ops *ops;
};

struct mu__http_ops {
    /* Begin. HTTP_DONE follows always, never within this call. */
    void (*send)(struct mu__http *http, struct mu__http_request *request);

    /* Nobody wants the answer: no HTTP_DONE arrives any more, unless it is in the
     * mailbox already, and the request is the caller's again, with the answer if there is
     * one. Fine for a request that is done. */
    void (*cancel)(struct mu__http *http, struct mu__http_request *request);

    /* Begin, and nobody wants the answer: everything is copied, no HTTP_DONE arrives.
     * What somebody says who ends now. It may fail without a word. */
    void (*notify)(struct mu__http *http, const struct mu__http_request *request);
};

#endif
