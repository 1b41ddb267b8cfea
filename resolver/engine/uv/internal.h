/* What the parts of the requester share; for resolver/engine/uv/ only.
 *
 * A request that is not answered at once is a blocking job (requester_work.c), look-ups
 * of a DNS server (dns.c) or a request over HTTP (requester_http.c). */
#ifndef MU_RESOLVER_ENGINE_UV_REQUESTER_INTERNAL_H
#define MU_RESOLVER_ENGINE_UV_REQUESTER_INTERNAL_H

#include "resolver/engine/answer_cache.h"
#include "resolver/engine/uv/requester.h"
#include "runtime/base/list.h"
#include "runtime/uv/blocking.h"

#include <stdatomic.h>

struct mu__requester_uv {
    struct mu__requester requester; /* first: operations cast */
    uv_loop_t *loop;
    struct mu__blocking_jobs *blocking_jobs;
    struct mu__list jobs; /* struct mu__pending_request: the blocking jobs */
    struct mu__http_client *http;   /* NULL until the first request */
    uv_idle_t idle;                   /* runs while `done` has messages */
    struct mu__msg *done;             /* what the HTTP client has posted, in order */
    struct mu__msg **done_last;
    struct mu__list waiting;      /* struct mu__flight: they wait for others, in order */
    struct mu__list dns;          /* struct mu__dns_channel: one for each server */
    unsigned flights;             /* HTTP requests in flight */
    struct mu__answer_cache cache; /* of HTTP and programs */
    uint64_t calls_ms;            /* how long closing waits for calls */
    void (*left)(void *owner, const char *line);
    void *left_owner;
    unsigned holds;            /* blocking jobs and handles that must end before the
                                  requester does */
    void (*closed)(void *arg); /* NULL: it is open */
    void *closed_arg;
};

/* Drop one hold; the last one ends a requester that closes. */
void mu__requester_release(struct mu__requester_uv *requester);

/* ---- Answering ---- */

/* Answer with an error; the message is the request's description and `words`. */
void mu__requester_fail(struct mu__exchange *exchange, int code, const char *words);

/* Answer with `data`, which is taken; NULL: out of memory. */
void mu__requester_answer(struct mu__exchange *exchange, char *data, size_t size);

/* Put an answer into the cache, if the request permits it. */
void mu__requester_cache(struct mu__requester_uv *requester,
                         const struct mu__exchange *exchange, const char *data,
                         size_t size);

/* ---- Blocking jobs ---- */

/* The thread's side of a job: the loop does not touch it while it runs, but for
 * is_cancelled. */
struct mu__request_work {
    struct mu__blocking_job blocking;        /* first: it casts */
    struct mu__pending_request *job; /* the loop's side */
    struct mu__request request;      /* a copy */
    int (*run)(struct mu__request_work *task);
    atomic_bool is_cancelled; /* the result is not wanted any more */
    char *data;               /* what was found, */
    size_t size;
    size_t room;
    int code; /* or why not */
    mu_error error;
};

/* How a kind of request runs as a blocking job. */
struct mu__work_kind {
    enum mu__blocking_pool pool;
    int (*run)(struct mu__request_work *task);
    bool names_itself; /* its errors name the request */
    bool ends_soon;    /* it ends soon once it is cancelled, so closing waits for it */
};

/* Run a request as a blocking job; the exchange is answered when it has run or its
 * timeout has passed. exchange->own is the struct mu__pending_request until then. */
void mu__requester_send_work(struct mu__requester_uv *requester,
                             struct mu__exchange *exchange,
                             const struct mu__work_kind *kind);
void mu__requester_cancel_work(struct mu__exchange *exchange);

/* For a requester that closes: wait for functions of the program's own, at most for
 * calls_ms. */
void mu__requester_close_work(struct mu__requester_uv *requester);

/* For the functions of jobs: set the error and return its code; make room for `size`
 * bytes of content with a zero byte behind them (-MU_ENOMEM). */
int mu__work_fail(struct mu__request_work *task, int code, const char *words);
int mu__work_reserve(struct mu__request_work *task, size_t size);

/* The functions of jobs: they write data and size, or the error, and return its code. */
int mu__work_file(struct mu__request_work *task);
int mu__work_folder(struct mu__request_work *task);
int mu__work_write(struct mu__request_work *task);
int mu__work_remove(struct mu__request_work *task);
int mu__work_names(struct mu__request_work *task);

/* Answer a request for the addresses of an IP address, which is its own, at once:
 * look-ups on threads may hang. False: it is another request. */
bool mu__requester_answer_number(struct mu__exchange *exchange);

/* ---- DNS ---- */

void mu__requester_send_dns(struct mu__requester_uv *requester,
                            struct mu__exchange *exchange);
void mu__requester_cancel_dns(struct mu__exchange *exchange);

/* ---- HTTP ---- */

void mu__requester_send_http(struct mu__requester_uv *requester,
                             struct mu__exchange *exchange);
void mu__requester_cancel_http(struct mu__requester_uv *requester,
                               struct mu__exchange *exchange);
void mu__requester_init_http(struct mu__requester_uv *requester);
void mu__requester_close_http(struct mu__requester_uv *requester);

#endif
