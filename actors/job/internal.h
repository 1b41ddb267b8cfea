/* The job actor's state, and functions that its files share. */
#ifndef MU_JOB_INTERNAL_H
#define MU_JOB_INTERNAL_H

#include "actors/job/job.h"
#include "actors/messages.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"

enum {
    MU__JOB_REQUESTERS_MAX = 16, /* of this task's stop; another one is refused */
    MU__JOB_RELAYS_MAX = 64,     /* at the chief; another one is refused */
    MU__JOB_ERROR_BYTES = 256
};

/* A node whose link is up, and its task. */
struct job_peer {
    uint32_t node;
    uint32_t index;
    char type[16];
};

/* The stop of this task, which finishes its closures first. */
struct job_stop {
    bool active;
    mu__pid requesters[MU__JOB_REQUESTERS_MAX]; /* get the answer */
    uint64_t tokens[MU__JOB_REQUESTERS_MAX];    /* of their requests */
    uint32_t requesters_count;
    uint32_t chief;                 /* the node that DRAIN was sent to */
    uint64_t token;                 /* of DRAIN */
    uint64_t timer;                 /* when the task stops although it has not finished */
    char by[MU__TASK_NAME_MAX + 1]; /* the first requester */
    char reason[MU__ERROR_TEXT_MAX + 1];
};

/* A stop that the chief relays, from a client that has no link to the task. */
struct job_relay {
    struct mu__list_node list_node;
    mu__pid from;        /* the client */
    uint64_t from_token; /* of its request */
    char type[16];       /* of the task to stop */
    uint32_t index;
    uint32_t node;       /* that SERVER_STOP was sent to; 0: the task is not up */
    bool was_sent;       /* to this node or an earlier one of the task */
    uint64_t token;      /* of the relayed request */
    uint64_t timer;      /* 0: none */
    uint64_t timeout_ms; /* 0: none */
    uint64_t began_ms;
    char reason[MU__ERROR_TEXT_MAX + 1];
};

/* The offer that this server has accepted. */
struct job_offer {
    char *cluster; /* JSON; NULL: no offer was accepted */
    char type[16];
    uint32_t index;
    mu_value *config; /* NULL: none */
};

struct job_peers {
    struct job_peer *items;
    uint32_t count;
    uint32_t size;
    struct mu__map by_node; /* node + 1 -> index + 1 */
};

struct job_calls {
    struct mu__call *waiting;   /* WAIT */
    struct mu__call *ending;    /* END */
    struct mu__call *requested; /* STOP, OFFER */
    struct mu__call *taking;    /* TAKE */
};

/* The end of the job, as far as this task knows. */
struct job_end {
    bool done;
    bool is_own; /* by END of this task, which tells nodes later, too */
    int code;    /* 0, or the job's error */
    char message[MU__ERROR_TEXT_MAX + 1];
};

struct job_relays {
    struct mu__list list; /* job_relay, the latest first */
    uint32_t count;
};

/* When the next log line about pending calls is due. */
struct job_wait_log {
    uint64_t timer; /* 0: not set */
    uint64_t ms;    /* its length */
};

struct job {
    struct mu__job_config config;
    struct job_end end;
    char reported_error[MU__JOB_ERROR_BYTES]; /* why the chief, or the server that an
                                                 offer is for, cannot be reached */
    struct job_calls calls;
    struct job_peers peers;
    uint64_t token_last;
    struct job_stop stop;
    struct job_relays relays;
    struct job_offer offer;
    struct job_wait_log wait_log;
    uint64_t orphan_timer; /* 0: the task is none */
};

static inline bool mu__job_is_chief(const struct job *job)
{
    return job->config.index == job->config.chief_index &&
           mu__view_is(mu__view_str(job->config.type), job->config.chief_type);
}

/* The task whose link is up, by name; by node; and the chief. NULL: the link is down. */
const struct job_peer *mu__job_peer(const struct job *job, const char *type,
                                    uint32_t index);
const struct job_peer *mu__job_peer_at(const struct job *job, uint32_t node);
const struct job_peer *mu__job_chief(const struct job *job);

/* "/job:ps/task:0", cut to `size`. */
void mu__job_name(char *out, size_t size, const char *type, uint32_t index);

/* The answer to a node that is not among the peers, as there was no memory for it when
 * its link came up. */
#define MU__JOB_UNKNOWN_REQUESTER "no memory was left for the news of who asks"

/* The job is done for this task: complete the WAIT calls. */
void mu__job_finish(struct mu__ctx *ctx, struct job *job, int code,
                    struct mu__view words);

/* Answer SERVER_STOP or CLUSTER_OFFER with a code of 0, or a negative one and words. */
void mu__job_answer(struct mu__ctx *ctx, mu__pid to, uint64_t token, int code,
                    const char *words);

/* Take a call out of a list, and complete it. */
void mu__job_complete(struct mu__ctx *ctx, struct mu__call **list, struct mu__call *call,
                      int code, const char *words);

/* Complete a requested call which needs a message to `node` that this node has not proven
 * the right to; false: it has. */
bool mu__job_fail_forbidden(struct mu__ctx *ctx, struct job *job,
                            struct mu__job_call *call, uint32_t node, uint16_t kind);

/* ---- orphan.c ---- */

/* After each change of what it depends on: calls that wait, links. */
void mu__job_watch_orphan(struct mu__ctx *ctx, struct job *job);
void mu__job_orphan_timer(struct mu__ctx *ctx, struct job *job);

/* ---- server_stop.c ---- */

void mu__job_request_stop(struct mu__ctx *ctx, struct job *job,
                          struct mu__job_call *call);
void mu__job_on_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__job_on_drained(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__job_on_removed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Handle the answer to a relayed stop; false: the message answers something else. */
bool mu__job_relay_answered(struct mu__ctx *ctx, struct job *job,
                            const struct mu__msg *msg);

void mu__job_stop_node_up(struct mu__ctx *ctx, struct job *job);
void mu__job_stop_node_down(struct mu__ctx *ctx, struct job *job, uint32_t node);

/* False: the timer is not one of server_stop.c. */
bool mu__job_stop_timer(struct mu__ctx *ctx, struct job *job, uint64_t timer);

/* Set the error of a STOP call that has timed out. */
void mu__job_stop_missing(const struct job *job, struct mu__job_call *call);

void mu__job_stop_done(struct job *job);

/* ---- cluster_offer.c ---- */

void mu__job_make_offer(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call);
void mu__job_take(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call);
void mu__job_on_offer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__job_offer_node_up(struct mu__ctx *ctx, struct job *job, uint32_t node);

/* Set the error of an OFFER call that has timed out. */
void mu__job_offer_missing(const struct job *job, struct mu__job_call *call);
void mu__job_offer_done(struct job *job);

#endif
