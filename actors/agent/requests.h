/* The agent's pending requests: tokens, timeouts, sending and sending again.
 *
 * A request is a call of a program's thread, a key request, a watch or the arrival at a
 * barrier: each has a struct mu__agent_request (calls.h). It is in one list, in the order
 * of tokens, from its submission until it is removed. Requests to the service are sent in
 * that order once the task is registered, and sent again in each later session. A session
 * is one registration of the task with one host; it ends with the link to that host. */
#ifndef MU_AGENT_REQUESTS_H
#define MU_AGENT_REQUESTS_H

#include "actors/agent/internal.h"

/* How the requests of one kind are sent, answered, failed and named. */
struct mu__agent_request_kind {
    /* The message to the service; NULL: out of memory. A kind without this is never sent:
     * the agent itself completes its requests. */
    struct mu__msg *(*make_message)(struct mu__ctx *ctx, struct agent *a,
                                    struct mu__agent_request *pending);

    /* Handles the TASKS_ANSWER; NULL: other messages answer this kind. `error` is NULL
     * when body->code is 0. */
    void (*on_answer)(struct mu__ctx *ctx, struct agent *a,
                      struct mu__agent_request *pending,
                      const struct mu__tasks_answer *body, const mu_error *error);

    /* The subject of messages about the request: "this task"; or, where that is NULL, a
     * function that writes it: "key \"a/b\"". */
    const char *what;
    void (*name)(struct mu__agent_request *pending, char *out, size_t size);

    /* Removes the request and completes it with `error`. */
    void (*fail)(struct mu__ctx *ctx, struct agent *a, struct mu__agent_request *pending,
                 const mu_error *error);

    /* The predicate of the timeout error, behind the subject: "was not answered". */
    const char *late;

    /* It changes state of the service; without an answer it may have been applied. */
    bool changes;

    /* The service knows the timeout, and its answer then names what is missing. */
    bool is_limited;

    /* Several tasks must get the same outcome, so the service decides it. After the
     * timeout the agent waits as long as a host may be paused (dead_ms), since the
     * service does not count the time of a pause. */
    bool is_shared;

    /* Stays pending when the agent enters the error state. */
    bool survives_error;

    /* And is sent in it. */
    bool is_own;

    /* Waits for an action of other tasks, and the service cannot say which task is
     * missing: wait_log.c reports it. */
    bool is_open;
};

/* Give the request a token and start its timeout (negative: none); it is sent in its
 * turn. `bytes`: its estimated size, for the bound of bytes in flight. False: out of
 * memory; the request has failed. */
bool mu__agent_submit(struct mu__ctx *ctx, struct agent *a,
                      struct mu__agent_request *pending,
                      const struct mu__agent_request_kind *kind, int64_t timeout_ms,
                      uint32_t bytes);

/* Submit a pending request again under a new token; its timeout continues. */
bool mu__agent_resubmit(struct mu__ctx *ctx, struct agent *a,
                        struct mu__agent_request *pending);

/* Take the request out of all lists. One that is in none is fine. */
void mu__agent_remove(struct mu__ctx *ctx, struct agent *a,
                      struct mu__agent_request *pending);

/* The pending request with that token; NULL: there is none. */
struct mu__agent_request *mu__agent_find_request(const struct agent *a, uint64_t token);

/* Whether the request was sent in the present session. Answers to an earlier sending are
 * ignored, as they may say no more than that the service did not know this task: the
 * request is sent again. */
bool mu__agent_is_current(const struct agent *a, const struct mu__agent_request *pending);

/* The request that `msg` answers by its `token`; NULL: there is none, it was not sent in
 * this session, or the message is not from the host. */
struct mu__agent_request *mu__agent_find_answered(
    const struct agent *a, const struct mu__msg *msg, uint64_t token);

/* Whether the service may have applied the request: it was sent at least once. */
bool mu__agent_may_be_done(const struct mu__agent_request *pending);

/* A message to the followed service with a copy of `body`, the struct of its kind, which
 * has `size` bytes. For a service on this node it also has copies of the strings in it,
 * as the call that owns them may end before the service reads it. NULL: out of memory. */
struct mu__msg *mu__agent_message(struct mu__ctx *ctx, const struct agent *a,
                                  uint16_t kind, const void *body, size_t size);

/* Send the request again at the next tick, as the service could not take it now. */
void mu__agent_resend(struct agent *a, struct mu__agent_request *pending);

/* Send every request that was not sent in this session. */
void mu__agent_pump_all(struct mu__ctx *ctx, struct agent *a);

/* Fail all pending requests; those that survive errors only if `all`. */
void mu__agent_fail_all(struct mu__ctx *ctx, struct agent *a, const mu_error *error,
                        bool all);

/* Fail the requests whose timeout has passed. */
void mu__agent_check_timeouts(struct mu__ctx *ctx, struct agent *a);

/* Write the subject of messages about the request. */
void mu__agent_request_name(struct mu__agent_request *pending, char *out, size_t size);

/* The rest of the timeout, for the service; 0: it has none. */
uint64_t mu__agent_left_ms(struct mu__ctx *ctx, const struct mu__agent_request *pending);

/* Every change under a token below this one has been answered. */
uint64_t mu__agent_done_floor(const struct agent *a);

/* Let the request wait without a timeout from now on. */
void mu__agent_clear_timeout(struct agent *a, struct mu__agent_request *pending);

/* Frees the tables. No request is pending. */
void mu__agent_requests_done(struct agent *a);

/* The pending request with the lowest token; NULL: there is none. */
static inline struct mu__agent_request *agent_first_request(const struct agent *a)
{
    return MU__LIST_FIRST(&a->requests.pending, struct mu__agent_request, node);
}

static inline struct mu__agent_request *agent_next_request(
    const struct mu__agent_request *pending)
{
    return MU__LIST_NEXT(pending, struct mu__agent_request, node);
}

/* ---- requests that are calls of the program's threads ---- */

static inline struct mu__agent_call *agent_call_of(struct mu__agent_request *pending)
{
    return (struct mu__agent_call *)(void *)((char *)pending -
                                             offsetof(struct mu__agent_call, pending));
}

/* A string of a call for a message; NULL travels as the empty string. */
static inline struct mu__view agent_text(const char *text)
{
    return mu__view_str(text == NULL ? "" : text);
}

/* Complete a call that is in no list. `error` NULL: with success. */
void mu__agent_complete(struct mu__agent_call *call, const mu_error *error);

/* The `fail` of kinds whose requests are calls; `error` NULL: with success. */
void mu__agent_call_fail(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_request *pending, const mu_error *error);

/* ---- wait_log.c ---- */

/* WAIT_NOTE: the host names the tasks that a request waits for; the agent logs that. */
void mu__agent_on_wait_note(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* At each tick: logs the oldest open request, at growing intervals. */
void mu__agent_wait_log_tick(struct mu__ctx *ctx, struct agent *a);

#endif
