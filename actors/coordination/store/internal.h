/* The state of the etcd store, and the functions that its parts share.
 *
 *   etcd_store.c    requests, the lease, operations of the owner, opening and closing
 *   etcd_hold.c     coming to hold the store: election, recovery, reading
 *   etcd_login.c    the token of a user
 *   etcd_write.c    transactions that only the holder can make
 *   etcd_form.c     how they are written: for gRPC, or for the gateway
 *   etcd_queue.c    the batches that they write */
#ifndef MU_ACTORS_STORE_ETCD_INTERNAL_H
#define MU_ACTORS_STORE_ETCD_INTERNAL_H

#include "actors/coordination/store/etcd_queue.h"
#include "actors/coordination/store/etcd_store.h"
#include "actors/messages.h"
#include "runtime/document/etcd.h"
#include "runtime/message/codec.h"

enum {
    ETCD_ENDPOINTS_MAX = 16,
    ETCD_URL_MAX = 255,
    ETCD_PREFIX_MAX = 256,
    ETCD_KEY_MAX = ETCD_PREFIX_MAX + 16 + MU__KEY_MAX,
    ETCD_TOKEN_MAX = 4096, /* bytes; a JWT has some hundreds */
    ETCD_LEADER_MAX = 128
};

/* A request. Its body is kept until the request has succeeded. */
struct etcd_flight {
    struct mu__http_request http;
    struct mu__build body;
    char url[ETCD_URL_MAX + 32];
    size_t endpoint;
    uint64_t sent_ms;
    bool busy;
    bool grpc;             /* the body is a transaction for etcd's gRPC interface */
    bool void_answer;      /* the request was abandoned while it was busy */
    unsigned token_number; /* of the token that it was sent with; 0: none */
};

struct etcd_endpoint {
    char url[ETCD_URL_MAX + 1];
    bool bad; /* it failed the last time, and that was logged */
};

/* See the table in etcd_hold.c. */
enum etcd_phase {
    ETCD_RESTING,
    ETCD_DROPPING,
    ETCD_LOOKING,
    ETCD_GRANTING,
    ETCD_ELECTING,
    ETCD_SURVEYING,
    ETCD_GATHERING,
    ETCD_SETTLING,
    ETCD_READING,
    ETCD_HOLDING
};

/* Where requests go: to the next endpoint after one that failed. */
struct etcd_endpoints {
    struct etcd_endpoint list[ETCD_ENDPOINTS_MAX];
    size_t count;
    size_t next;
    char failure[ETCD_REASON_MAX]; /* which one failed last, and why; "": one has
                                      answered since */
};

/* When a failed request is repeated. */
struct etcd_retry {
    uint64_t due_ms; /* nothing is sent before */
    uint32_t backoff_ms;
};

/* A user's token. */
struct etcd_login {
    struct etcd_flight flight;
    char token[ETCD_TOKEN_MAX]; /* "Authorization: ..."; "": none */
    unsigned token_number;      /* of the last one that there was */
    bool token_works;           /* etcd has taken it */
    bool has_no_users;          /* authentication is off in etcd: no token is
                                   needed */
    uint64_t due_ms;
};

/* The lease of the leader's key, which is kept alive in every phase. */
struct etcd_lease {
    uint64_t id; /* 0: none */
    uint32_t ttl_ms;
    uint64_t sent_ms; /* when the last successful keep-alive was sent */
    struct etcd_flight keeping;
    uint64_t due_ms; /* when the next one is due */
};

/* The leader's key, when it is this node's. */
struct etcd_leader {
    uint64_t created;
    uint64_t version;
    uint64_t writes;             /* number of the transaction that is built next */
    char value[ETCD_LEADER_MAX]; /* the last one that was put */
};

/* The content of etcd. */
struct etcd_content {
    uint64_t number;
    bool is_new;     /* the number is not written yet */
    uint64_t staged; /* how many changes a former holder has staged */
};

/* Reading, page by page. */
struct etcd_pages {
    size_t section;
    char from[ETCD_KEY_MAX + 1];
    uint32_t from_size;
    uint64_t entries; /* of a page, at most */
};

/* The last log lines, each of which is logged once. */
struct etcd_logged {
    char trouble[ETCD_REASON_MAX];
    char leader[ETCD_LEADER_MAX]; /* another holder */
};

struct etcd_store {
    struct mu__store base;
    const struct mu__schema *schema;
    struct mu__pool *pool;
    struct mu__http *http;
    const struct mu__store_access *access; /* may be NULL */
    struct mu__store_upcalls up;
    uint32_t lease_ms; /* requested */
    uint64_t incarnation;
    char task[64];
    char prefix[ETCD_PREFIX_MAX];
    bool started;
    bool hearing; /* an answer is being handled: nothing is sent */
    enum etcd_phase phase;
    struct etcd_flight main; /* the request of that phase */
    struct etcd_retry retry;
    struct etcd_endpoints endpoints;
    struct etcd_login login;
    struct etcd_lease lease;
    struct etcd_leader leader;
    struct etcd_content content;
    struct etcd_pages pages;
    struct etcd_queue queue;
    uint64_t grpc_due_ms; /* before that, all goes through the gateway */
    struct etcd_logged logged;
};

/* ---- etcd_store.c ---- */

/* "PREFIX/rest" as a view of `out`. */
struct mu__view mu__etcd_key(const struct etcd_store *store, const char *rest,
                             char out[ETCD_KEY_MAX + 1]);
struct mu__view mu__etcd_key_of(const struct etcd_store *store, struct mu__view rest,
                                char out[ETCD_KEY_MAX + 1]);

/* Whether no other node can be the holder now, by this node's clock. */
bool mu__etcd_is_certain(const struct etcd_store *store, struct mu__ctx *ctx);

/* Stop holding the store, or trying to: all is forgotten, and begins again later. */
void mu__etcd_abandon(struct etcd_store *store, struct mu__ctx *ctx, const char *format,
                      ...) MU_PRINTF(3, 4);

/* Send the body of `flight` to the present endpoint. */
void mu__etcd_send(struct etcd_store *store, struct mu__ctx *ctx,
                   struct etcd_flight *flight, const char *path);

/* The answer of a flight that is done. Returns the code of the request, or of the
 * answer's content. */
int mu__etcd_read(const struct etcd_flight *flight, mu_error *ret_error,
                  struct mu__etcd_answer **ret_answer);

/* An endpoint did not answer, or not as etcd does: the next one is used. */
void mu__etcd_endpoint_failed(struct etcd_store *store, struct mu__ctx *ctx,
                              const struct etcd_flight *flight, const char *reason);

/* ---- etcd_login.c ---- */

/* Whether a request can be sent now. False: a token is requested first. */
bool mu__etcd_may_send(struct etcd_store *store, struct mu__ctx *ctx);

/* To be called for each answer. True: etcd did not accept the token any more, and the
 * request is to be repeated with another one. */
bool mu__etcd_token_ended(struct etcd_store *store, const struct etcd_flight *flight,
                          int code, const mu_error *error);

void mu__etcd_on_login(struct etcd_store *store, struct mu__ctx *ctx);

/* What may help after a refusal of etcd: "" or "; expected ...". */
const char *mu__etcd_advice(const struct etcd_store *store, int code,
                            const mu_error *error);

/* ---- etcd_hold.c ---- */

/* The request of a phase, and the handler of its answer. An answer that cannot be read
 * gives a negative code with a message and changes nothing: the request is repeated. */
struct etcd_phase_row {
    const char *path;
    const char *reason; /* "cannot ..." */
    void (*build)(struct etcd_store *store);
    int (*answered)(struct etcd_store *store, struct mu__ctx *ctx,
                    const struct mu__etcd_answer *answer, mu_error *ret_error);
};

extern const struct etcd_phase_row mu__etcd_phases[];

/* Whether there is something to send in this phase; may go on to the next one. */
bool mu__etcd_next(struct etcd_store *store, struct mu__ctx *ctx);

/* A page of entries was too large. True: the next request is for fewer. */
bool mu__etcd_shrink_pages(struct etcd_store *store);

/* ---- etcd_write.c ---- */

/* The transaction under way was applied. */
void mu__etcd_write_applied(struct etcd_store *store, struct mu__ctx *ctx);

void mu__etcd_write_build(struct etcd_store *store);
int mu__etcd_write_answered(struct etcd_store *store, struct mu__ctx *ctx,
                            const struct mu__etcd_answer *answer, mu_error *ret_error);

void mu__etcd_leader_value(struct etcd_store *store);

int mu__etcd_write(struct mu__store *base, struct mu__ctx *ctx,
                   const struct mu__msg *record);
void mu__etcd_commit(struct mu__store *base, struct mu__ctx *ctx, uint64_t revision,
                     uint64_t sequence);

/* Send the request of the present phase, if it can be sent now. */
void mu__etcd_step(struct etcd_store *store, struct mu__ctx *ctx);

#endif
