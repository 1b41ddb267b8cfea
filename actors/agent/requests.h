/* Requests that wait: their tokens, timeouts, sending and sending again. Part of the
 * agent.
 *
 * Everything that waits is a struct mu__agent_request (agent.h), in one list in the
 * order of tokens, from its arrival until it is removed. What is to be sent is sent in
 * that order, once the task is registered, and again in each later session: a time of
 * being registered. */
#ifndef MU_AGENT_REQUESTS_H
#define MU_AGENT_REQUESTS_H

#include "actors/agent/internal.h"

/* What is done with a request. */
struct mu__agent_request_kind {
    /* The message to the service; NULL: out of memory. A kind without this waits for
     * something here. */
    struct mu__msg *(*make_message)(struct mu__ctx *ctx, struct agent *a,
                                    struct mu__agent_request *pending);

    /* A TASKS_ANSWER has come; NULL: it is answered otherwise. The code is not 0 when
     * `error` is there. */
    void (*on_answer)(struct mu__ctx *ctx, struct agent *a,
                      struct mu__agent_request *pending,
                      const struct mu__tasks_answer *body, const mu_error *error);

    /* What it is, for messages: "this task"; or (NULL) a function that says it:
     * "key \"a/b\"". */
    const char *what;
    void (*name)(const struct mu__agent_request *pending, char *out, size_t size);

    /* It ends with this error. Removes it. */
    void (*fail)(struct mu__ctx *ctx, struct agent *a, struct mu__agent_request *pending,
                 const mu_error *error);

    /* What did not happen at its timeout, words behind the name. */
    const char *late;

    /* It changes something, which may have happened although it was not answered. */
    bool changes;

    /* The service was told the timeout and says what is missing at its end. */
    bool is_limited;

    /* It comes to the same for several tasks, by the service's word alone: that is waited
     * for as long as the host may be paused, which counts for no timeout there. */
    bool is_shared;

    /* It goes on when the agent goes into error. */
    bool survives_error;

    /* It may wait for what others do, without anybody being able to say who. */
    bool is_open;
};

/* Give it a token and a timeout (negative: none), and send it when its turn comes.
 * `bytes` is about what it takes. False: no memory; it has ended then. */
bool mu__agent_submit(struct mu__ctx *ctx, struct agent *a,
                      struct mu__agent_request *pending,
                      const struct mu__agent_request_kind *kind, int64_t timeout_ms,
                      uint32_t bytes);

/* The same under a new token, at the end of the list, with its timeout going on. */
bool mu__agent_resubmit(struct mu__ctx *ctx, struct agent *a,
                        struct mu__agent_request *pending);

/* It is in no list any more. */
void mu__agent_remove(struct mu__ctx *ctx, struct agent *a,
                      struct mu__agent_request *pending);

/* The request of a token; NULL: there is none. */
struct mu__agent_request *mu__agent_find_request(const struct agent *a, uint64_t token);

/* Whether an answer is to what was sent in this session. What the service says of a
 * former one, which may be that it does not know this task, does not count: it is sent
 * again. */
bool mu__agent_is_current(const struct agent *a, const struct mu__agent_request *pending);

/* Whether the service may have done it, for all that is known here. */
bool mu__agent_may_be_done(const struct mu__agent_request *pending);

/* Something was not sent, or the service wants it sent again. */
void mu__agent_resend(struct agent *a, struct mu__agent_request *pending);

/* Look through all at the next pump: at a tick, and when a session begins. */
void mu__agent_pump_all(struct mu__ctx *ctx, struct agent *a);

/* End everything with an error. `all`: those that stay, too. */
void mu__agent_fail_all(struct mu__ctx *ctx, struct agent *a, const mu_error *error,
                        bool all);

/* Fail those whose timeout has passed. */
void mu__agent_check_timeouts(struct mu__ctx *ctx, struct agent *a);

/* What it is, for messages. */
void mu__agent_request_name(const struct mu__agent_request *pending, char *out,
                            size_t size);

/* What is left of a timeout, for the service; 0: none. */
uint64_t mu__agent_left_ms(struct mu__ctx *ctx, const struct mu__agent_request *pending);

/* All changes below this were answered. */
uint64_t mu__agent_done_floor(const struct agent *a);

/* It has no timeout any more. */
void mu__agent_clear_timeout(struct agent *a, struct mu__agent_request *pending);

void mu__agent_requests_done(struct agent *a);

/* ---- of calls: requests of the program's threads ---- */

static inline struct mu__agent_call *agent_call_of(struct mu__agent_request *pending)
{
    return (struct mu__agent_call *)(void *)((char *)pending -
                                             offsetof(struct mu__agent_call, pending));
}

static inline const struct mu__agent_call *agent_call_in(
    const struct mu__agent_request *pending)
{
    return (const struct mu__agent_call *)(const void *)((const char *)pending -
                                                         offsetof(struct mu__agent_call,
                                                                  pending));
}

/* Complete a call that is in no list. `error` NULL: 0. */
void mu__agent_complete(struct mu__agent_call *call, const mu_error *error);

/* The common fail() of calls. */
void mu__agent_call_fail(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_request *pending, const mu_error *error);

/* ---- wait_log.c ---- */

/* The host says who is missing: a line for the log. */
void mu__agent_on_wait_note(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A line about what waits for long, from time to time. */
void mu__agent_wait_log_tick(struct mu__ctx *ctx, struct agent *a);

#endif
