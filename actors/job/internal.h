/* What the files of the job actor share. */
#ifndef MU_JOB_INTERNAL_H
#define MU_JOB_INTERNAL_H

#include "actors/job/job.h"
#include "actors/messages.h"
#include "runtime/base/map.h"

enum {
    MU__JOB_REQUESTERS_MAX = 16, /* who wait for this task's stop; one more is refused */
    MU__JOB_RELAYS_MAX = 64,     /* stops that the chief passes on; one more is refused */
    MU__JOB_ERROR_BYTES = 256
};

struct job_peer {
    uint32_t node;
    uint32_t index;
    char type[16];
};

/* This task is to stop, and finishes what it has before. */
struct job_stop {
    bool active;
    mu__pid requesters[MU__JOB_REQUESTERS_MAX];
    uint64_t tokens[MU__JOB_REQUESTERS_MAX];
    uint32_t requesters_count;
    uint32_t chief;             /* node of the supervisor that was asked */
    uint64_t token;             /* of DRAIN */
    uint64_t timer;
    char by[MU__TASK_NAME_MAX + 1];
    char reason[MU__ERROR_TEXT_MAX + 1];
};

/* A client has the chief stop a task that the client has no link to. */
struct job_relay {
    struct job_relay *next;
    mu__pid from;
    uint64_t from_token;
    char type[16];
    uint32_t index;
    uint32_t node;              /* that was asked; 0: it is not up */
    bool was_sent;
    uint64_t token;
    uint64_t timer;
    uint64_t timeout_ms;          /* 0: none */
    uint64_t began_ms;
    char reason[MU__ERROR_TEXT_MAX + 1];
};

/* The first offer that passed. */
struct job_offer {
    char *cluster;              /* NULL: there was none */
    char type[16];
    uint32_t index;
    mu_value *config;
};

struct job_peers {
    struct job_peer *items;
    uint32_t count;
    uint32_t size;
    struct mu__map by_node;     /* node + 1 -> index + 1 */
};

struct job_calls {
    struct mu__call *waiting;   /* WAIT */
    struct mu__call *ending;    /* END */
    struct mu__call *requested; /* STOP, OFFER */
    struct mu__call *taking;    /* TAKE */
};

/* What the job came to. */
struct job_end {
    bool done;
    bool said_here;             /* by END: whoever comes later is told, too */
    int code;
    char message[MU__ERROR_TEXT_MAX + 1];
};

/* Stops that the chief passes on. */
struct job_relays {
    struct job_relay *first;
    uint32_t count;
};

/* The next line in the log about what waits. */
struct job_wait_log {
    uint64_t timer;
    uint64_t ms;                /* for how long it runs */
};

struct job {
    struct mu__job_config config;
    struct job_end end;
    char reported_error[MU__JOB_ERROR_BYTES];   /* why the chief, or who an offer is for,
                                                   cannot be reached */
    struct job_calls calls;
    struct job_peers peers;
    uint64_t token_last;
    struct job_stop stop;
    struct job_relays relays;
    struct job_offer offer;
    struct job_wait_log wait_log;
};

static inline bool mu__job_is_chief(const struct job *job)
{
    return job->config.index == job->config.chief_index &&
           mu__view_is(mu__view_str(job->config.type), job->config.chief_type);
}

/* NULL when it is not up. */
const struct job_peer *mu__job_peer(const struct job *job, const char *type,
                                    uint32_t index);
const struct job_peer *mu__job_peer_at(const struct job *job, uint32_t node);
const struct job_peer *mu__job_chief(const struct job *job);

/* "/job:ps/task:0", cut to `size`. */
void mu__job_name(char *out, size_t size, const char *type, uint32_t index);

/* Of a node that the actor knows nothing of: its coming was not noticed. */
#define MU__JOB_UNKNOWN_REQUESTER "no memory was left for the news of who asks"

/* The job is done, as far as this task knows: calls that wait return. */
void mu__job_finish(struct mu__ctx *ctx, struct job *job, int code,
                    struct mu__view words);

/* Answer a stop or an offer: 0, or negative with words. */
void mu__job_answer(struct mu__ctx *ctx, mu__pid to, uint64_t token, int code,
                    const char *words);

/* Take a call out of a list, and complete it. `error` may be the call's own. */
void mu__job_complete(struct mu__ctx *ctx, struct mu__call **list, struct mu__call *call,
                      int code, const char *words);

/* ---- server_stop.c ---- */

void mu__job_request_stop(struct mu__ctx *ctx, struct job *job,
                          struct mu__job_call *call);
void mu__job_on_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__job_on_drained(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__job_on_removed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* SERVER_STOPPED of a stop that was passed on; false: it is none. */
bool mu__job_relay_answered(struct mu__ctx *ctx, struct job *job,
                            const struct mu__msg *msg);

void mu__job_stop_node_up(struct mu__ctx *ctx, struct job *job);
void mu__job_stop_node_down(struct mu__ctx *ctx, struct job *job, uint32_t node);

/* False: the timer is none of these. */
bool mu__job_stop_timer(struct mu__ctx *ctx, struct job *job, uint64_t timer);

/* Why a STOP has not been answered, with the time that it had. */
void mu__job_stop_missing(const struct job *job, struct mu__job_call *call);

void mu__job_stop_done(struct job *job);

/* ---- cluster_offer.c ---- */

void mu__job_make_offer(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call);
void mu__job_take(struct mu__ctx *ctx, struct job *job, struct mu__job_call *call);
void mu__job_on_offer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__job_offer_node_up(struct mu__ctx *ctx, struct job *job, uint32_t node);
void mu__job_offer_missing(const struct job *job, struct mu__job_call *call);
void mu__job_offer_done(struct job *job);

#endif
