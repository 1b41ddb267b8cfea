/* The requests of a resolver, and their answers.
 *
 * A resolver is a function that asks and concludes: mu__requests_get() blocks until the
 * answer is there, and is never called again in the same round for what was asked
 * before: that is answered from the table, also where another resolver of a union or an
 * auto-detection has asked it. What is independent is requested together
 * (mu__requests_get_all), and then read one by one.
 *
 * One round of a query (query.h) has one table of requests: nothing is remembered from
 * one to the next. The table is also the record of what was tried with what result.
 * Tries that fail for now are made again by the query, not by the resolver. What is
 * secret (a header, a body, an answer's content) is never in a message.
 *
 * Requests are answered by a struct mu__sources: resolver/engine/uv/real_sources.c in
 * the real world, tests/support/script.h from rows. */
#ifndef MU_RESOLVER_REQUEST_TABLE_H
#define MU_RESOLVER_REQUEST_TABLE_H

#include <muster/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mu__request_kind {
    /* They never wait. */
    MU__REQUEST_VARIABLE,  /* an environment variable. Empty counts as absent */
    MU__REQUEST_HOST_NAME, /* of this machine; no name */
    MU__REQUEST_CLOCK,     /* seconds since 1970 as digits; no name */
    /* They may block. */
    MU__REQUEST_FILE,      /* the content of a file, by its path */
    MU__REQUEST_FOLDER,    /* the names in a folder, one each line, sorted by bytes */
    MU__REQUEST_ADDRESSES, /* of a host name: numeric, one each line, sorted, each once;
                              IPv4 before IPv6 */
    MU__REQUEST_SERVICES,  /* SRV records of a name: "PRIORITY WEIGHT PORT TARGET" each
                              line, by priority, then target and port */
    MU__REQUEST_HTTP,      /* a url */
    MU__REQUEST_SIGNATURE, /* RS256 of `body` with `secret`, a private key as PEM; name:
                              "RS256" */
    MU__REQUEST_WRITE,     /* make `body` the content of a file, by its path: whole or
                              not at all; its folder must be there. The answer is
                              empty */
    MU__REQUEST_REMOVE,    /* remove a file, by its path; the answer is empty */
    MU__REQUEST_PROGRAM,   /* run it, by its path or, without a slash, its name in PATH;
                              what it prints. `body`: texts with a zero byte behind each,
                              "aTEXT" an argument, "vNAME=VALUE" a variable.
                              -MU_EPRECONDITION: it has failed */
    MU__REQUEST_LIBRARY,   /* load libmuster-cloud (resolver/engine/cloud.h); the answer
                              is empty */
    MU__REQUEST_CALL,      /* run `call`, a function of the resolver `name`, on a thread;
                              the answer is empty: what was found is in the call */
    MU__REQUEST_KINDS
};

/* Of one round: one for each task of the largest cluster, and some more. */
enum { MU__REQUESTS_MAX = 70000 };

/* Defaults where a request has 0. */
enum {
    MU__REQUEST_TIMEOUT_MS = 10000, /* of one try */
    MU__REQUEST_BYTES_MAX = 8 << 20 /* of one answer */
};

struct mu__request_call;

/* TLS of an https request. Certificates and keys are PEM texts; each may be NULL. */
struct mu__request_tls {
    const char *ca;          /* trusted instead of the system's */
    const char *certificate; /* ours, */
    const char *key;         /* and its key */
    const char *server_name; /* that its certificate must have instead of the url's */
    bool insecure;           /* accept any certificate: only when a person asked for it */
};

/* All texts are the caller's, during the call. Two requests are the same, and have one
 * answer, when all of their fields are: also headers and what else is secret, and how
 * long and how often may be tried (resolver/engine/request.h). */
struct mu__request {
    enum mu__request_kind kind;
    const char *name;
    unsigned again; /* 0. Another number is another request: for a new token, say */
    uint32_t timeout_ms;
    size_t bytes_max;   /* of the answer; a larger one is -MU_EEXHAUSTED */
    unsigned tries;     /* 1: one; 0: as many as the query's time allows */
    bool retry_missing; /* what is not found (a name, a file, status 404) may appear:
                           try again */

    bool new_only; /* of WRITE: a file that is there already stays as it is:
                                   -MU_EEXISTS */

    /* Of HTTP, SIGNATURE and (the body) WRITE and PROGRAM alone. */
    const char *method;         /* NULL: "GET" */
    const char *const *headers; /* "Name: value", ended by NULL; may be NULL */
    const char *header;         /* name of one header of the answer that is wanted, too */
    const void *body;
    size_t body_size;
    const char *secret;
    const struct mu__request_tls *tls;
    uint32_t cache_ms;             /* 0. An answer with status 200, or what a program has
                                   printed, may be given again for so long, to other
                                   queries, too; `again` takes a new one */
    bool uses_proxy;               /* the environment's https_proxy counts */
    const char *dns_server;        /* ADDRESSES, SERVICES: "127.0.0.1:53" in place of the
                                   system's; NULL */
    struct mu__request_call *call; /* of CALL */
};

struct mu__answer {
    int code; /* 0; -MU_ENOTFOUND: no such variable, file, name (404 is an
                           answer); -MU_EUNAVAILABLE, -MU_EDEADLINE, -MU_EEXHAUSTED,
                           -MU_EPERMISSION, -MU_EINVALID, with words that name it */
    mu_error error;
    int status;              /* of HTTP: any that is not tried again any more */
    char content_type[64];   /* "application/json", without parameters, small letters;
                                   "" when there is none */
    uint32_t retry_after_ms; /* how long the server asks to wait; 0: it does not */
    char header[256];        /* the one that was wanted, "" when absent */
    char *data;              /* never NULL when code is 0; a zero byte stands behind it */
    size_t size;
    void *parsed; /* what the resolver has made of it: see mu__answer_set_parsed */
    void (*parsed_done)(void *parsed); /* frees it */
};

struct mu__requests;

/* The answer, owned by the requests and valid as long as they are. Out of memory: an
 * answer with -MU_ENOMEM, also to each new request later in the same round. After
 * MU__REQUESTS_MAX requests: an answer with -MU_EEXHAUSTED. */
const struct mu__answer *mu__requests_get(struct mu__requests *requests,
                                          const struct mu__request *request);

/* Make these requests at the same time: mu__requests_get then has their answers. */
void mu__requests_get_all(struct mu__requests *requests, const struct mu__request *list,
                          size_t count);

/* Short forms. The text of a variable, and this machine's name; NULL when there is
 * none. */
const char *mu__request_variable(struct mu__requests *requests, const char *name);
const char *mu__request_host_name(struct mu__requests *requests);
const struct mu__answer *mu__request_file(struct mu__requests *requests,
                                          const char *path);

/* Keep what was parsed of an answer, so that who asks the same again finds it in
 * answer->parsed; `done` frees it with the requests. Takes `parsed`; once for each
 * answer. The bytes are freed: answer->data is "", and answer->size still says how many
 * there were. */
void mu__answer_set_parsed(const struct mu__answer *answer, void *parsed,
                           void (*done)(void *parsed));

/* Add a line to the explanation of what was tried: "TF_CONFIG is not set". */
void mu__requests_explain(struct mu__requests *requests, const char *format, ...)
    MU_PRINTF(2, 3);

/* Describe a request for people: "variable TF_CONFIG", "file /x", "https://host/path".
 * Nothing secret: urls without user and query. */
void mu__request_describe(const struct mu__request *request, char *out, size_t size);

/* A problem with an answer, as an error of the resolver: if answer->code is not 0, that
 * with its words, "WHAT: " before them; for HTTP with a status other than 2xx the status,
 * what it is about (401, 403, 404, 429, 3xx each have words of their own) and the
 * server's message if the body is JSON with one. Returns 0 when there is no problem. */
int mu__answer_check(const struct mu__answer *answer, const char *what,
                     mu_error *ret_error);

#endif
