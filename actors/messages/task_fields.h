/* Fields of the messages between the coordination service and its agents (tasks, runs of
 * the job, barriers, preemption), about servers, and about who reaches whom. */
#ifndef MU_ACTORS_MESSAGES_TASK_FIELDS_H
#define MU_ACTORS_MESSAGES_TASK_FIELDS_H

#include "actors/messages/limits.h"

/* -- coordination service and its agents: who is there --
 *
 * A link says which task the other side is, and its incarnation; so no message does. A
 * token is the agent's own number for what it asks, never used twice by one incarnation:
 * what was asked and not answered is asked again, under the same token, when the service
 * is elsewhere. */

/* To each agent, when its link comes up and when this changes: whether the service is
 * here. Of two leaders the one with the higher epoch counts. `store` is the number of
 * what is kept in its store: another one means that all keys and barriers of before are
 * gone. `reason`: why it is not here. */
#define MU__SERVICE_HERE_FIELDS(F, S)                                       \
    F(S, REQUIRED, flag, leads, 0)                                          \
    F(S, REQUIRED, u64, epoch, 0)                                           \
    F(S, REQUIRED, u64, store, 0)                                           \
    F(S, OPTIONAL, str, reason, MU__ERROR_TEXT_MAX)

/* With `barrier`, answered when all tasks of the coordinated jobs have registered.
 * `devices`: what the machine has. `since`: what the first answer without `barrier` said
 * that this process got in this store, at this or another host; none: it got none yet.
 * `done`: what it asked under lower tokens was answered. `run`: the number of the job's
 * run that this process takes part in; none: it has not registered in this store yet.
 * `run_name`: the run that it was started for; none: any. */
#define MU__TASK_REGISTER_FIELDS(F, S)                                      \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, flag, barrier, 0)                                        \
    F(S, OPTIONAL, u64, timeout_ms, 0)                                        \
    F(S, OPTIONAL, value, devices, MU__DEVICES_MAX)                         \
    F(S, OPTIONAL, u64, since, 0)                                           \
    F(S, OPTIONAL, u64, done, 0)                                            \
    F(S, OPTIONAL, u64, run, 0)                                             \
    F(S, OPTIONAL, str, run_name, 63)

/* `progress` counts what the task's program says it has done, `stuck_ms` how long ago. */
#define MU__TASK_HEARTBEAT_FIELDS(F, S)                                     \
    F(S, OPTIONAL, u64, progress, 0)                                        \
    F(S, OPTIONAL, u64, stuck_ms, 0)

/* Answers a heartbeat: 0, or why the task is not counted as connected. */
#define MU__TASK_HEARD_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, epoch, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* The asking task is in error, by its own word. */
#define MU__TASK_REPORT_FIELDS(F, S)                                        \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)

/* From ERROR back to DISCONNECTED. */
#define MU__TASK_RESET_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)

/* Shut down: with `timeout_ms`, together with all others. `now`: the process ends, and
 * waits for nobody, nor for an answer. */
#define MU__TASK_LEAVE_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u64, timeout_ms, 0)                                        \
    F(S, OPTIONAL, flag, now, 0)

/* What somebody wants to know about tasks: enum mu__tasks_what. `tasks` is a set,
 * `version` the one that is known already, plus 1; 0: none. */
#define MU__TASKS_GET_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u32, what, 255)                                          \
    F(S, OPTIONAL, str, tasks, MU__TASKS_TEXT_MAX)                          \
    F(S, OPTIONAL, u64, version, 0)                                         \
    F(S, OPTIONAL, u64, timeout_ms, 0)

/* Answers everything about tasks. `content` is the answer of a question. `since`, of a
 * TASK_REGISTER: what has a lower revision in the store was there before its process;
 * `run`: the number of the job's run that it takes part in from now on. */
#define MU__TASKS_ANSWER_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, content, MU__TASKS_CONTENT_MAX)                   \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)                            \
    F(S, OPTIONAL, u32, error_kind, 255)                                    \
    F(S, OPTIONAL, u64, version, 0)                                         \
    F(S, OPTIONAL, u64, since, 0)                                           \
    F(S, OPTIONAL, u64, run, 0)

/* -- runs of the job -- */

/* The present run has come to its end: the leading task says that the job is done, with
 * `code` and `message` when it has failed; or (`closing`) the host of the service is
 * being closed, which is the run's end unless other tasks are there. Answered by
 * TASKS_ANSWER. */
#define MU__RUN_END_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, flag, closing, 0)                                        \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* What the store has: its runs, and what each holds. Answered by TASKS_ANSWER. */
#define MU__RUNS_GET_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)

/* Forget what `what` (bits of enum mu__runs_clear_what) says, or the run of that name.
 * Answered by TASKS_ANSWER, with the number of what was deleted as its version. */
#define MU__RUNS_CLEAR_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, what, 255)                                          \
    F(S, OPTIONAL, str, name, 63)

/* From any task: another one is in error, as if it had said so itself; with code 0: it
 * is not any more, and registers again. `task` is a set of one, "worker:1". Answered by
 * TASKS_ANSWER. */
#define MU__TASK_MARK_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, task, MU__TASK_NAME_MAX)                            \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* To the agent of a task that another one has reset. */
#define MU__TASK_CLEARED_FIELDS(F, S)                                       \
    F(S, OPTIONAL, str, by, MU__TASK_NAME_MAX)

/* From the service's host to an agent that waits with a question of that token for a
 * while: who is missing, for its log. Is not answered, and answers nothing. From a thread
 * of the node's own, which waits with several questions, the token is 0. */
#define MU__WAIT_NOTE_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, message, MU__ERROR_TEXT_MAX)

/* To connected tasks: another one failed, and is not recoverable; or, with `own`, the
 * service counts this one as failed. The agent is in ERROR from then on. */
#define MU__TASK_ERROR_FIELDS(F, S)                                         \
    F(S, REQUIRED, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)                            \
    F(S, OPTIONAL, flag, own, 0)

/* -- barriers -- */

/* One task has arrived at the `generation`-th barrier of a name, from 0; `tasks` "" means
 * all of the coordinated jobs. */
#define MU__BARRIER_ARRIVE_FIELDS(F, S)                                     \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, name, MU__BARRIER_NAME_MAX)                         \
    F(S, REQUIRED, u64, generation, 0)                                      \
    F(S, OPTIONAL, str, tasks, MU__TASKS_TEXT_MAX)                          \
    F(S, OPTIONAL, u64, timeout_ms, 0)

/* Answered by TASKS_ANSWER. */
#define MU__BARRIER_CANCEL_FIELDS(F, S)                                     \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, name, MU__BARRIER_NAME_MAX)                         \
    F(S, REQUIRED, u64, generation, 0)

/* Answers an arrival: 0, or the error that all participants get. `stays`: the arrival
 * alone was wrong, and its generation is not over by it. `generation`: the one that it
 * counted for, so that the next is one more; or, with `stays`, the one that is next. */
#define MU__BARRIER_PASSED_FIELDS(F, S)                                     \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)                            \
    F(S, OPTIONAL, u32, error_kind, 255)                                    \
    F(S, OPTIONAL, flag, stays, 0)                                          \
    F(S, OPTIONAL, u64, generation, 0)

/* -- preemption -- */

/* A task will be gone in `grace_ms`. Answered by TASKS_ANSWER once all were told. */
#define MU__PREEMPT_NOTICE_FIELDS(F, S)                                     \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u64, grace_ms, 0)                                        \
    F(S, OPTIONAL, str, reason, MU__ERROR_TEXT_MAX)                         \
    F(S, OPTIONAL, u64, timeout_ms, 0)

/* To every task: `task` will be gone; which step have you reached? No step is begun until
 * PREEMPT_STOP says where to stop. */
#define MU__PREEMPT_REQUEST_FIELDS(F, S)                                        \
    F(S, REQUIRED, u64, round, 0)                                           \
    F(S, REQUIRED, str, task, MU__TASK_NAME_MAX)                            \
    F(S, OPTIONAL, u64, grace_ms, 0)                                        \
    F(S, OPTIONAL, str, reason, MU__ERROR_TEXT_MAX)

/* `counts`: this task has steps, and has reached that one. */
#define MU__PREEMPT_STEP_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, round, 0)                                           \
    F(S, REQUIRED, flag, counts, 0)                                         \
    F(S, OPTIONAL, u64, step, 0)

/* All stop at `step`; or, with a code, the round came to nothing. */
#define MU__PREEMPT_STOP_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, round, 0)                                           \
    F(S, REQUIRED, u64, step, 0)                                            \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* -- servers -- */

/* To the job actor: end this task, as if its job was done. Answered by SERVER_STOPPED.
 * With `task` the chief has that other one ended. A worker finishes what it has, for half
 * of `timeout_ms`; 0: for however long. */
#define MU__SERVER_STOP_FIELDS(F, S)                                        \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, str, reason, MU__ERROR_TEXT_MAX)                         \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)                            \
    F(S, OPTIONAL, u64, timeout_ms, 0)

#define MU__SERVER_STOPPED_FIELDS(F, S)                                     \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* To the job actor of a server that was started without a cluster spec: this is the spec,
 * as JSON, and the task that it plays. Answered by SERVER_STOPPED. */
#define MU__CLUSTER_OFFER_FIELDS(F, S)                                      \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, cluster, MU__CLUSTER_TEXT_MAX)                      \
    F(S, REQUIRED, str, type, 15)                                           \
    F(S, REQUIRED, u32, index, 0)                                           \
    F(S, OPTIONAL, value, config, 1 << 20)

/* -- who reaches whom -- */

/* Answered by PEERS_REPORT: a list of maps, see peers.h. */
#define MU__PEERS_GET_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)

#define MU__PEERS_REPORT_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, value, peers, MU__PEERS_CONTENT_MAX)

#endif
