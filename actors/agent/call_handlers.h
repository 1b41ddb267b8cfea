/* What the agent's files do for each other; requests.h beside it. */
#ifndef MU_AGENT_CALL_HANDLERS_H
#define MU_AGENT_CALL_HANDLERS_H

#include "actors/agent/internal.h"
#include "actors/agent/requests.h"

/* ---- agent.c ---- */

/* The state that the program sees, from what is known. */
void mu__agent_show_state(struct agent *a);

/* Go into error: everything that waits ends with this. */
void mu__agent_enter_error(struct mu__ctx *ctx, struct agent *a, const mu_error *error);

/* A call may go on: the agent is not in error, and is or will be registered. If not, what
 * it is to be told. */
bool mu__agent_admits(const struct agent *a, mu_error *ret_error);

/* An error that a message has. */
mu_error mu__agent_error_of(uint32_t code, struct mu__view message, struct mu__view task,
                            uint32_t kind);

/* ---- task_calls.c ---- */

/* Let a message hold copies of what two of its views (NULL: one) point to: the call that
 * they are of may end before a service on this node hears it. Takes msg; NULL: no
 * memory. */
struct mu__msg *mu__agent_copy_views(struct mu__ctx *ctx, struct mu__msg *msg,
                               struct mu__view *first, struct mu__view *second);

typedef void (*agent_call_fn)(struct mu__ctx *ctx, struct agent *a,
                              struct mu__agent_call *call);
void mu__agent_call_register(struct mu__ctx *ctx, struct agent *a,
                             struct mu__agent_call *call);
void mu__agent_call_report(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_call *call);
void mu__agent_call_reset(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call);
void mu__agent_call_leave(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call);

/* Answers: the call ends with that; and: with the content that it asked for. To the
 * program a version is one more: there 0 means none. */
void mu__agent_answered(struct mu__ctx *ctx, struct agent *a,
                        struct mu__agent_request *pending,
                        const struct mu__tasks_answer *body, const mu_error *error);
void mu__agent_answered_content(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_request *pending,
                                const struct mu__tasks_answer *body,
                                const mu_error *error);

/* Kinds of requests that are a call's alone: it is submitted as it is. */
extern const struct mu__agent_request_kind mu__agent_task_query, mu__agent_marking,
    mu__agent_noticing, mu__agent_runs_query, mu__agent_runs_clearing;

/* It is registered, or (an error) was refused: those who wait for that hear so. */
void mu__agent_report_registered(struct mu__ctx *ctx, struct agent *a,
                               const mu_error *error);

/* The service counts this task as failed: whoever reported that is answered. */
void mu__agent_finish_reports(struct mu__ctx *ctx, struct agent *a);

/* The service that was to hear of a reset is lost: the next one will. */
void mu__agent_finish_resets(struct mu__ctx *ctx, struct agent *a);

/* To the host, if there is one: this task leaves, and waits for no answer. */
void mu__agent_send_goodbye(struct mu__ctx *ctx, struct agent *a);

/* ---- key_requests.c ---- */

void mu__agent_on_key_submit(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_key_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_key_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_listed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_call_list(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_call *call);

/* ---- watches.c ---- */

void mu__agent_call_watch(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call);
void mu__agent_call_watch_next(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call);
void mu__agent_call_watch_close(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_call *call);
void mu__agent_on_key_event(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_watches_done(struct mu__ctx *ctx, struct agent *a);

/* ---- barrier_calls.c ---- */

void mu__agent_call_barrier(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);
void mu__agent_call_barrier_cancel(struct mu__ctx *ctx, struct agent *a,
                                   struct mu__agent_call *call);
void mu__agent_on_passed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_barriers_forget(struct agent *a);

/* ---- preemption_calls.c ---- */

void mu__agent_call_reached(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);
void mu__agent_call_preemption(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call);
void mu__agent_on_preempt_request(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_preempt_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A session has begun: a round that goes on is told its step again. */
void mu__agent_preempt_session(struct mu__ctx *ctx, struct agent *a);

/* The task takes part in no round any more. Whoever waits for one is told otherwise. */
void mu__agent_preempt_forget(struct agent *a);

/* A round that takes too long is given up. */
void mu__agent_preempt_tick(struct mu__ctx *ctx, struct agent *a);

/* ---- run_calls.c ---- */

void mu__agent_call_run_end(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);

/* The run that this process takes part in, in the store of the host that is followed; 0:
 * none yet. And: it was registered in this one. */
uint64_t mu__agent_run(const struct agent *a);
void mu__agent_note_run(struct agent *a, uint64_t number);

/* ---- task_reports.c ---- */

void mu__agent_cleared(struct mu__ctx *ctx, struct agent *a,
                       const struct mu__task_cleared *body);

/* ---- hosts.c ---- */

/* The pid of the service that is followed. */
mu__pid mu__agent_service(const struct agent *a);

bool mu__agent_is_from_host(const struct agent *a, const struct mu__msg *msg);

/* How things are with the service, words behind a colon. */
void mu__agent_host_words(struct mu__ctx *ctx, const struct agent *a, char *out,
                          size_t size);

/* The first task of the set that may host the service, and where it is, for messages. */
void mu__agent_name_first_host(struct agent *a);

/* The host on this node. -MU_ENOMEM. */
int mu__agent_add_own_host(struct agent *a);

void mu__agent_hosts_done(struct agent *a);

void mu__agent_on_here(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- host_registration.c ---- */

/* Register if that is wanted, and possible now. */
void mu__agent_register(struct mu__ctx *ctx, struct agent *a);

/* The answer to that has come. */
void mu__agent_register_answered(struct mu__ctx *ctx, struct agent *a,
                                 const struct mu__tasks_answer *body);

/* It is registered no more. */
void mu__agent_end_session(struct agent *a);

/* Not registered, and it does not want to be. What waits ends with `error`. */
void mu__agent_withdraw(struct mu__ctx *ctx, struct agent *a, const mu_error *error);

#endif
