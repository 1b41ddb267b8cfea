/* Fields of the messages between the coordination service and its agents (tasks, runs of
 * the job, barriers, preemption), about servers, and about the links of nodes. */
#ifndef MU_ACTORS_MESSAGES_TASK_FIELDS_H
#define MU_ACTORS_MESSAGES_TASK_FIELDS_H

#include "actors/messages/limits.h"

/* -- coordination service and its agents: registration and states of tasks --
 *
 * No message names its sender's task and incarnation, as the link has them. A token is
 * the agent's number of a request, never used twice by one incarnation: an unanswered
 * request is sent again under the same token when another host leads the service. */

/* To each agent, when its link comes up and at each change: whether this host leads the
 * service. Of two leaders the one with the higher epoch counts. `store` identifies the
 * content of its store: with another number all earlier keys and barriers are lost.
 * `reason`: why it does not lead. */
#define MU__SERVICE_HERE_FIELDS(F, S) \
    F(S, REQUIRED, flag, leads, 0)    \
    F(S, REQUIRED, u64, epoch, 0)     \
    F(S, REQUIRED, u64, store, 0)     \
    F(S, OPTIONAL, str, reason, MU__ERROR_TEXT_MAX)

/* With `barrier`, answered when all tasks of the coordinated jobs have registered.
 * `devices`: of the machine. `since`: from the first answer without `barrier` that this
 * process got in this store, from any host; absent: there was none yet. `done`: the task
 * has the answers to its requests with lower tokens. `run`: the number of the job's run
 * that this process takes part in; absent: it has not registered in this store yet.
 * `run_name`: the run that it was started for; absent: any. */
#define MU__TASK_REGISTER_FIELDS(F, S)              \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, OPTIONAL, flag, barrier, 0)                \
    F(S, OPTIONAL, u64, timeout_ms, 0)              \
    F(S, OPTIONAL, value, devices, MU__DEVICES_MAX) \
    F(S, OPTIONAL, u64, since, 0)                   \
    F(S, OPTIONAL, u64, done, 0)                    \
    F(S, OPTIONAL, u64, run, 0)                     \
    F(S, OPTIONAL, str, run_name, 63)

/* `progress`: the last count that the task's program has reported; `stuck_ms`: the time
 * since it changed. */
#define MU__TASK_HEARTBEAT_FIELDS(F, S) \
    F(S, OPTIONAL, u64, progress, 0)    \
    F(S, OPTIONAL, u64, stuck_ms, 0)

/* Answers a heartbeat: 0, or why the task is not counted as connected. */
#define MU__TASK_HEARD_FIELDS(F, S) \
    F(S, REQUIRED, u64, epoch, 0)   \
    F(S, OPTIONAL, u32, code, 255)  \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* The sender's program reports that its task is in error. */
#define MU__TASK_REPORT_FIELDS(F, S)                 \
    F(S, REQUIRED, u64, token, 0)                    \
    F(S, REQUIRED, u32, code, 255)                   \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX) \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)

/* The sender's task goes from ERROR back to DISCONNECTED. */
#define MU__TASK_RESET_FIELDS(F, S) F(S, REQUIRED, u64, token, 0)

/* The task shuts down: with `timeout_ms`, together with all others. `now`: the process
 * ends at once, without waiting for other tasks or an answer. */
#define MU__TASK_LEAVE_FIELDS(F, S)    \
    F(S, REQUIRED, u64, token, 0)      \
    F(S, OPTIONAL, u64, timeout_ms, 0) \
    F(S, OPTIONAL, flag, now, 0)

/* A query about the set `tasks`: `what` is enum mu__tasks_what. `version`: the one that
 * the requester has, plus 1; 0: none. */
#define MU__TASKS_GET_FIELDS(F, S)                 \
    F(S, REQUIRED, u64, token, 0)                  \
    F(S, REQUIRED, u32, what, 255)                 \
    F(S, OPTIONAL, str, tasks, MU__TASKS_TEXT_MAX) \
    F(S, OPTIONAL, u64, version, 0)                \
    F(S, OPTIONAL, u64, timeout_ms, 0)

/* Answers all requests of this section. `content`: of a query. For TASK_REGISTER, `since`
 * is the revision of the store when the process registered first: lower revisions are
 * older than the process; `run` is the number of the job's run that it takes part in. */
#define MU__TASKS_ANSWER_FIELDS(F, S)                     \
    F(S, REQUIRED, u64, token, 0)                         \
    F(S, OPTIONAL, u32, code, 255)                        \
    F(S, OPTIONAL, value, content, MU__TASKS_CONTENT_MAX) \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)      \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)          \
    F(S, OPTIONAL, u32, error_kind, 255)                  \
    F(S, OPTIONAL, u64, version, 0)                       \
    F(S, OPTIONAL, u64, since, 0)                         \
    F(S, OPTIONAL, u64, run, 0)

/* -- runs of the job -- */

/* The end of the present run: the chief ends the job, with `code` and `message` if it has
 * failed; or (`closing`) the node that hosts the service is being closed, which ends the
 * run if no other task is connected. Answered by TASKS_ANSWER. */
#define MU__RUN_END_FIELDS(F, S)     \
    F(S, REQUIRED, u64, token, 0)    \
    F(S, OPTIONAL, flag, closing, 0) \
    F(S, OPTIONAL, u32, code, 255)   \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* List the runs in the store and the content of each. Answered by TASKS_ANSWER. */
#define MU__RUNS_GET_FIELDS(F, S) F(S, REQUIRED, u64, token, 0)

/* Delete parts of the store (`what`: bits of enum mu__runs_clear_what), or the run of
 * that name. Answered by TASKS_ANSWER, whose version is the number of deleted entries. */
#define MU__RUNS_CLEAR_FIELDS(F, S) \
    F(S, REQUIRED, u64, token, 0)   \
    F(S, OPTIONAL, u32, what, 255)  \
    F(S, OPTIONAL, str, name, 63)

/* From any task: another task is in error, as if it had reported that itself; with code
 * 0: it is reset, and registers again. `task` is a set of one, "worker:1". Answered by
 * TASKS_ANSWER. */
#define MU__TASK_MARK_FIELDS(F, S)               \
    F(S, REQUIRED, u64, token, 0)                \
    F(S, REQUIRED, str, task, MU__TASK_NAME_MAX) \
    F(S, OPTIONAL, u32, code, 255)               \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* To the agent of a task that another one has reset. */
#define MU__TASK_CLEARED_FIELDS(F, S) F(S, OPTIONAL, str, by, MU__TASK_NAME_MAX)

/* From the host to an agent whose request of that token has waited for a while: the tasks
 * that are missing, for its log. There is no answer. From a thread of the agent's own
 * node, which waits with several requests, the token is 0. */
#define MU__WAIT_NOTE_FIELDS(F, S) \
    F(S, REQUIRED, u64, token, 0)  \
    F(S, REQUIRED, str, message, MU__ERROR_TEXT_MAX)

/* To connected tasks: another task has failed and is not recoverable; or, with `own`, the
 * service counts the receiver's task as failed. The agent enters ERROR. */
#define MU__TASK_ERROR_FIELDS(F, S)                  \
    F(S, REQUIRED, u32, code, 255)                   \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX) \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)     \
    F(S, OPTIONAL, flag, own, 0)

/* -- barriers -- */

/* The task has arrived at the `generation`-th meeting of a barrier, from 0. `tasks`: the
 * participants; "": all of the coordinated jobs. */
#define MU__BARRIER_ARRIVE_FIELDS(F, S)             \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, REQUIRED, str, name, MU__BARRIER_NAME_MAX) \
    F(S, REQUIRED, u64, generation, 0)              \
    F(S, OPTIONAL, str, tasks, MU__TASKS_TEXT_MAX)  \
    F(S, OPTIONAL, u64, timeout_ms, 0)

/* Answered by TASKS_ANSWER. */
#define MU__BARRIER_CANCEL_FIELDS(F, S)             \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, REQUIRED, str, name, MU__BARRIER_NAME_MAX) \
    F(S, REQUIRED, u64, generation, 0)

/* Answers an arrival: 0, or the error that all participants get. `stays`: only this
 * arrival has failed, and the generation goes on. `generation`: the one of the arrival,
 * so that the next is one more; or, with `stays`, the next one. */
#define MU__BARRIER_PASSED_FIELDS(F, S)              \
    F(S, REQUIRED, u64, token, 0)                    \
    F(S, OPTIONAL, u32, code, 255)                   \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX) \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)     \
    F(S, OPTIONAL, u32, error_kind, 255)             \
    F(S, OPTIONAL, flag, stays, 0)                   \
    F(S, OPTIONAL, u64, generation, 0)

/* -- preemption -- */

/* The task will be preempted in `grace_ms`. Answered by TASKS_ANSWER once all tasks have
 * the PREEMPT_REQUEST. */
#define MU__PREEMPT_NOTICE_FIELDS(F, S)             \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, OPTIONAL, u64, grace_ms, 0)                \
    F(S, OPTIONAL, str, reason, MU__ERROR_TEXT_MAX) \
    F(S, OPTIONAL, u64, timeout_ms, 0)

/* To every task: `task` will be preempted. Each task answers with the step it has
 * reached, and begins no further one until PREEMPT_STOP. */
#define MU__PREEMPT_REQUEST_FIELDS(F, S)         \
    F(S, REQUIRED, u64, round, 0)                \
    F(S, REQUIRED, str, task, MU__TASK_NAME_MAX) \
    F(S, OPTIONAL, u64, grace_ms, 0)             \
    F(S, OPTIONAL, str, reason, MU__ERROR_TEXT_MAX)

/* `counts`: the task has steps, and has reached `step`. */
#define MU__PREEMPT_STEP_FIELDS(F, S) \
    F(S, REQUIRED, u64, round, 0)     \
    F(S, REQUIRED, flag, counts, 0)   \
    F(S, OPTIONAL, u64, step, 0)

/* All tasks stop at `step`; or, with a code, the round has failed. */
#define MU__PREEMPT_STOP_FIELDS(F, S) \
    F(S, REQUIRED, u64, round, 0)     \
    F(S, REQUIRED, u64, step, 0)      \
    F(S, OPTIONAL, u32, code, 255)    \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* -- servers -- */

/* To the job actor: end this task, as if the job was done; or, to the chief, relay this
 * to `task`. Answered by SERVER_STOPPED. A worker finishes its closures first, for at
 * most half of `timeout_ms`; 0: without a bound. */
#define MU__SERVER_STOP_FIELDS(F, S)                \
    F(S, REQUIRED, u64, token, 0)                   \
    F(S, OPTIONAL, str, reason, MU__ERROR_TEXT_MAX) \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)    \
    F(S, OPTIONAL, u64, timeout_ms, 0)

#define MU__SERVER_STOPPED_FIELDS(F, S) \
    F(S, REQUIRED, u64, token, 0)       \
    F(S, OPTIONAL, u32, code, 255)      \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* To the job actor of a server that was started without a cluster spec: the spec, as
 * JSON, and the server's task in it. Answered by SERVER_STOPPED. */
#define MU__CLUSTER_OFFER_FIELDS(F, S)                 \
    F(S, REQUIRED, u64, token, 0)                      \
    F(S, REQUIRED, str, cluster, MU__CLUSTER_TEXT_MAX) \
    F(S, REQUIRED, str, type, 15)                      \
    F(S, REQUIRED, u32, index, 0)                      \
    F(S, OPTIONAL, value, config, 1 << 20)

/* -- links between nodes -- */

/* Answered by PEERS_REPORT: a list of maps, see peers.h. */
#define MU__PEERS_GET_FIELDS(F, S) F(S, REQUIRED, u64, token, 0)

#define MU__PEERS_REPORT_FIELDS(F, S) \
    F(S, REQUIRED, u64, token, 0)     \
    F(S, REQUIRED, value, peers, MU__PEERS_CONTENT_MAX)

#endif
