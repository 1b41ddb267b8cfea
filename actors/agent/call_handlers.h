/* Functions that the agent's files share, besides those of requests.h. */
#ifndef MU_AGENT_CALL_HANDLERS_H
#define MU_AGENT_CALL_HANDLERS_H

#include "actors/agent/internal.h"
#include "actors/agent/requests.h"

/* ---- agent.c ---- */

/* Set the state that the program reads, MU_AGENT_.... */
void mu__agent_show_state(struct agent *a);

/* Enter the error state: pending requests fail with `error`. */
void mu__agent_enter_error(struct mu__ctx *ctx, struct agent *a, const mu_error *error);

/* Whether a request may be submitted: the agent is not in the error state, and is or will
 * be registered. If not, the error for the program. */
bool mu__agent_admits(const struct agent *a, mu_error *ret_error);

/* The error in a message's fields. */
mu_error mu__agent_error_of(uint32_t code, struct mu__view message, struct mu__view task,
                            uint32_t kind);

/* ---- task_calls.c ---- */

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

/* `on_answer` of calls: complete the call with the answer's code; and, of calls that ask
 * for content, with that and its version. The program gets the version plus 1, as 0 means
 * that it has none. */
void mu__agent_answered(struct mu__ctx *ctx, struct agent *a,
                        struct mu__agent_request *pending,
                        const struct mu__tasks_answer *body, const mu_error *error);
void mu__agent_answered_content(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_request *pending,
                                const struct mu__tasks_answer *body,
                                const mu_error *error);

/* Kinds of calls that need no preparation: on_call submits them as they are. */
extern const struct mu__agent_request_kind mu__agent_task_query, mu__agent_marking,
    mu__agent_noticing, mu__agent_runs_query, mu__agent_runs_clearing;

/* Complete the REGISTER calls: the task was registered, or refused with an error. */
void mu__agent_report_registered(struct mu__ctx *ctx, struct agent *a,
                                 const mu_error *error);

/* Complete the REPORT calls: the service counts this task as failed. */
void mu__agent_finish_reports(struct mu__ctx *ctx, struct agent *a);

/* Complete the RESET calls: the link to the host is down, and the next host is told of
 * the reset instead. */
void mu__agent_finish_resets(struct mu__ctx *ctx, struct agent *a);

/* Tell the host, if there is one, that this task leaves; there is no answer. */
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

/* Forget all generations, and the barriers that no thread is at. */
void mu__agent_barriers_forget(struct agent *a);

/* ---- preemption_calls.c ---- */

void mu__agent_call_reached(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);
void mu__agent_call_preemption(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call);
void mu__agent_on_preempt_request(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_preempt_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A session has begun: send the vote of the present round again. */
void mu__agent_preempt_session(struct mu__ctx *ctx, struct agent *a);

/* The task takes no longer part in the present round: open the gate. The caller fails the
 * requests that wait for the round. */
void mu__agent_preempt_forget(struct agent *a);

/* At each tick: give up a round that has taken AGENT_ROUND_MS. */
void mu__agent_preempt_tick(struct mu__ctx *ctx, struct agent *a);

/* ---- run_calls.c ---- */

void mu__agent_call_run_end(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call);

/* The job's run that this process takes part in, in the followed host's store; 0: it has
 * not registered there yet. */
uint64_t mu__agent_run(const struct agent *a);

/* The task was registered in that run. */
void mu__agent_note_run(struct agent *a, uint64_t number);

/* ---- task_reports.c ---- */

void mu__agent_on_cleared(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- hosts.c ---- */

/* The pid of the followed service. */
mu__pid mu__agent_service(const struct agent *a);

/* Whether a message is from the followed service. */
bool mu__agent_is_from_host(const struct agent *a, const struct mu__msg *msg);

/* Write the state of the link to the service and of the registration, for messages. */
void mu__agent_host_words(struct mu__ctx *ctx, const struct agent *a, char *out,
                          size_t size);

/* Set the name and address of the first task that may host the service, for messages. */
void mu__agent_name_first_host(struct agent *a);

/* This task may host the service. -MU_ENOMEM. */
int mu__agent_add_own_host(struct agent *a);

void mu__agent_hosts_done(struct agent *a);

void mu__agent_on_here(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- host_registration.c ---- */

/* Send TASK_REGISTER if registration is requested and possible now. */
void mu__agent_register(struct mu__ctx *ctx, struct agent *a);

/* A TASK_REGISTER message; `barrier`: for a call that waits for all tasks, `timeout_ms`
 * long (0: without end). NULL: out of memory. */
struct mu__msg *mu__agent_make_registration(struct mu__ctx *ctx, struct agent *a,
                                            uint64_t token, bool barrier,
                                            uint64_t timeout_ms);

/* The answer to mu__agent_register's message. */
void mu__agent_register_answered(struct mu__ctx *ctx, struct agent *a,
                                 const struct mu__tasks_answer *body);

/* The task is no longer registered. */
void mu__agent_end_session(struct agent *a);

/* The task is neither registered nor wants to be. Pending requests fail with `error`. */
void mu__agent_withdraw(struct mu__ctx *ctx, struct agent *a, const mu_error *error);

#endif
