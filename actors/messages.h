/* Every message that travels: number, name, fields in wire order. Numbers are never
 * reused; fields are only ever added at the end. The struct, the codec, the trace and the
 * fuzzer all come from this table. Messages that stay in the process are in
 * local_messages.h. */
#ifndef MU_ACTORS_MESSAGES_H
#define MU_ACTORS_MESSAGES_H

#include "actors/local_messages.h"

/* Actors that other nodes know by number. */
enum mu__actor_number {
    MU__SUPERVISOR = 1,     /* on the chief */
    MU__WORKER = 2,         /* on each worker */
    MU__PS = 3,             /* on each parameter server */
    MU__CLIENT = 4,         /* on every node: the program's side of the supervisor */
    MU__VARIABLES = 5,      /* on every node: the program's side of the servers */
    MU__JOB = 6,            /* on every node: learns that the job is done */
    MU__EFFECTS = 7,        /* on every node: sends its runs' writes to the servers */
    MU__COORDINATION = 8,   /* on the tasks that may host the coordination service */
    MU__AGENT = 9,          /* on every node: its side of that service */
    MU__PEERS = 10          /* on every node: says whom it reaches, and whom not */
};

enum {
    MU__FUNCTION_NAME_MAX = 63,
    MU__VARIABLE_NAME_MAX = 255,
    MU__ERROR_TEXT_MAX = 511,
    MU__TASK_NAME_MAX = 63,
    MU__VALUE_BYTES_MAX = 1 << 30,
    MU__PIECE_BYTES_MAX = 1 << 20,  /* raw bytes of one variable piece */
    MU__CLOSURE_NAME_MAX = 127,
    MU__DETAIL_BYTES_MAX = 1023,    /* a stack, or the last lines of a log */
    MU__RECALL_MAX = 1024,          /* attempts that one message names */
    MU__INPUTS_MAX = 1024,          /* references among the arguments of one closure */
    MU__KEY_MAX = 1023,             /* of the coordination service, as what follows */
    MU__KEY_VALUE_MAX = 1 << 20,
    MU__TXN_BYTES_MAX = (2 << 20) + (1 << 16),  /* of a transaction of keys, packed */
    MU__BARRIER_NAME_MAX = 255,
    MU__TASKS_TEXT_MAX = 1 << 16,   /* a set of tasks: see task_set.h */
    MU__TASKS_CONTENT_MAX = 1 << 26,    /* what is told about tasks */
    MU__DEVICES_MAX = 1 << 16,      /* what a task says about its machine */
    MU__CLUSTER_TEXT_MAX = 1 << 20,
    MU__PEERS_CONTENT_MAX = 1 << 24,    /* what a node says about its links */
    MU__ADDRESS_MAX = 319           /* of a task, as a url */
};

/* What a closure is asked for; SCHEDULE and RUN have them in `flags`. */
enum mu__closure_flag {
    MU__CLOSURE_ONCE = 1,       /* its writes are applied once, however often it runs */
    MU__CLOSURE_KEEP = 2,       /* the result stays on the worker until it is released */
    MU__CLOSURE_NO_BACKUP = 4,  /* never runs twice at a time */
    MU__CLOSURE_BUILD = 8,      /* RUN: builds the per-worker value `closure`; what it
                                   returns stays on this worker under that number */
    MU__CLOSURE_OWN_ERROR = 16, /* from the program to its client actor only: nobody but
                                   the future has its error */
    MU__CLOSURE_HOLDS = 32      /* the same: `inputs` are pointers, see
                                   actors/client/holds.h */
};

/* Priorities run from 0, the most urgent, to 7. A priority travels as p + 1; 0 stands for
 * the usual one. */
enum { MU__PRIORITIES = 8, MU__PRIORITY_DEFAULT = 4 };

/* Numbers of per-worker values have this bit; those of closures never have. The two
 * together are the numbers of what a worker keeps. */
#define MU__PER_WORKER_BIT (UINT64_C(1) << 63)

/* What TASKS_GET asks for. */
enum mu__tasks_what {
    MU__TASKS_STATES,       /* tasks, their states, errors, incarnations */
    MU__TASKS_DEVICES,      /* what their machines have */
    MU__TASKS_WAIT,         /* STATES, once all of the set are connected */
    MU__TASKS_WATCH,        /* STATES, once their version is another one */
    MU__TASKS_ALIVE         /* those connected, once each of them has asked this or is not
                               connected */
};

/* Of what a client has too little at the chief. */
enum mu__room_lack { MU__LACKS_CLOSURES = 1, MU__LACKS_BYTES = 2 };

/* What RUNS_CLEAR forgets. */
enum mu__runs_clear_what {
    MU__RUNS_CLEAR_ENDED = 1,   /* the history */
    MU__RUNS_CLEAR_PRESENT = 2, /* what the present run has come to: outcomes, notices */
    MU__RUNS_CLEAR_KEYS = 4     /* the keys of programs */
};

/* How a key is put. */
enum mu__put_flag {
    MU__PUT_OVERWRITE = 1,  /* else the key must not be there */
    MU__PUT_COMPARE = 2,    /* `revision` must be the key's */
    MU__PUT_LEASE = 4       /* the key goes when the task that puts it does */
};

/* -- supervisor and worker -- */
#define MU__REGISTER_FIELDS(F, S)                                           \
    F(S, REQUIRED, u32, threads, 4096)                                      \
    F(S, OPTIONAL, value, functions, 1 << 20)

/* From the supervisor: a task of that type runs no closures here. */
#define MU__REGISTER_REFUSED_FIELDS(F, S)                                   \
    F(S, OPTIONAL, str, worker_types, MU__ERROR_TEXT_MAX)

#define MU__RUN_FIELDS(F, S)                                                \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)                                         \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)                        \
    F(S, OPTIONAL, u32, flags, 0)                                           \
    F(S, OPTIONAL, bytes, inputs, 8 * MU__INPUTS_MAX)                       \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)                         \
    F(S, OPTIONAL, u64, origin, 0)                                          \
    F(S, OPTIONAL, u64, effect, 0)                                          \
    F(S, OPTIONAL, u64, effects_done, 0)

#define MU__RESULT_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)                                         \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX)                      \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, u32, error_kind, 255)                                    \
    F(S, OPTIONAL, str, origin, MU__TASK_NAME_MAX)                          \
    F(S, OPTIONAL, str, detail, MU__DETAIL_BYTES_MAX)                       \
    F(S, OPTIONAL, u32, ran_us, 0)

/* `attempts`: pairs of u64, a closure and its attempt, in the order in which they were
 * sent. Each of them that has not begun is to be given back. */
#define MU__RECALL_FIELDS(F, S)                                             \
    F(S, REQUIRED, bytes, attempts, 16 * MU__RECALL_MAX)

/* The answer: those that will not run here, as they were named; and those of them that
 * have begun, as BEGUN has them. Of any other the RESULT was sent before. */
#define MU__RECALLED_FIELDS(F, S)                                           \
    F(S, OPTIONAL, bytes, returned, 16 * MU__RECALL_MAX)                    \
    F(S, OPTIONAL, bytes, begun, 24 * MU__RECALL_MAX)

/* Of attempts that have run for some time already: triples of u64, a closure, its
 * attempt, and for how many milliseconds. Each attempt is told once. */
#define MU__BEGUN_FIELDS(F, S)                                              \
    F(S, REQUIRED, bytes, begun, 24 * MU__RECALL_MAX)

#define MU__CANCEL_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)

/* -- what workers keep: results of MU__CLOSURE_KEEP, and inputs that are not there -- */

/* With a code: there is no such input on this worker, and runs that use it fail with
 * that. */
#define MU__INPUT_FIELDS(F, S)                                              \
    F(S, REQUIRED, u64, input, 0)                                           \
    F(S, OPTIONAL, value, content, MU__VALUE_BYTES_MAX)                     \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

#define MU__DROP_FIELDS(F, S)                                               \
    F(S, REQUIRED, u64, input, 0)

#define MU__PULL_FIELDS(F, S)                                               \
    F(S, REQUIRED, u64, input, 0)

#define MU__PULLED_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, input, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, content, MU__VALUE_BYTES_MAX)                     \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* -- client and supervisor -- */
#define MU__SCHEDULE_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)                        \
    F(S, OPTIONAL, flag, drop_result, 0)                                    \
    F(S, OPTIONAL, u32, flags, 0)                                           \
    F(S, OPTIONAL, u32, priority, 8)                                        \
    F(S, OPTIONAL, u64, deadline_ms, 0)                                     \
    F(S, OPTIONAL, u64, run_timeout_ms, 0)                                    \
    F(S, OPTIONAL, u32, attempts_max, 65534)                                \
    F(S, OPTIONAL, u32, worker, 0)                                          \
    F(S, OPTIONAL, u32, not_worker, 0)                                      \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)                         \
    F(S, OPTIONAL, bytes, inputs, 8 * MU__INPUTS_MAX)                       \
    F(S, OPTIONAL, str, worker_type, 15)

#define MU__RESOLVED_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, closure, 0)                                         \
    F(S, REQUIRED, u32, attempt, 0)                                         \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX)                      \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)                            \
    F(S, OPTIONAL, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, OPTIONAL, u32, error_kind, 255)                                    \
    F(S, OPTIONAL, str, detail, MU__DETAIL_BYTES_MAX)                       \
    F(S, OPTIONAL, flag, kept, 0)

/* Cancel one closure: `token` is the client's. */
#define MU__CANCEL_CLOSURE_FIELDS(F, S)                                     \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, closure, 0)

/* A result that was kept: bring it, under `token`; and let go of it. */
#define MU__FETCH_FIELDS(F, S)                                              \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, input, 0)

#define MU__FETCHED_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, input, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, content, MU__VALUE_BYTES_MAX)                     \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, u32, error_kind, 255)                                    \
    F(S, OPTIONAL, str, task, MU__TASK_NAME_MAX)

#define MU__RELEASE_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, input, 0)

/* A per-worker value: `function` runs once on each worker, and again on one that comes
 * back, or `values` is a list with one item for each worker's index. PER_WORKER_MADE
 * answers with its number. */
#define MU__PER_WORKER_MAKE_FIELDS(F, S)                                    \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, OPTIONAL, value, args, MU__VALUE_BYTES_MAX)                        \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)

#define MU__PER_WORKER_MADE_FIELDS(F, S)                                    \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, u64, input, 0)                                           \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* An error that is of no closure: a worker that did not come back, say. One of the chief
 * itself (MU_ERROR_CHIEF) cancels nothing: it goes on. */
#define MU__FAULT_FIELDS(F, S)                                              \
    F(S, REQUIRED, u32, code, 255)                                          \
    F(S, REQUIRED, u32, error_kind, 255)                                    \
    F(S, REQUIRED, str, task, MU__TASK_NAME_MAX)                            \
    F(S, REQUIRED, str, message, MU__ERROR_TEXT_MAX)

/* Let a worker finish what it has and then leave: `worker` is its task index + 1, 0 means
 * the one that asks. `worker_type` "" means "worker". The answer comes when it has
 * left. */
#define MU__DRAIN_FIELDS(F, S)                                              \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, worker, 0)                                          \
    F(S, OPTIONAL, str, worker_type, 15)

#define MU__DRAINED_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* The program has saved what its finished named closures did: forget them. */
#define MU__FORGET_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, token, 0)

#define MU__CANCEL_ALL_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)

/* What a client may have at the chief: that many closures, with so many bytes of
 * arguments, sent and not resolved. Answered by ROOM_ASK with its `number`: then the
 * client holds to it. `closures_max`, `bytes_max`: the chief's own bounds, which that
 * many `clients` share. A closure with more bytes than `bytes_max` counts as one of that
 * size. `session`: the one of ROOM_ASK; what was said to a former one counts no more. */
#define MU__ROOM_ALLOW_FIELDS(F, S)                                         \
    F(S, REQUIRED, u32, number, 0)                                          \
    F(S, REQUIRED, u64, closures, 0)                                        \
    F(S, REQUIRED, u64, bytes, 0)                                           \
    F(S, OPTIONAL, u64, closures_max, 0)                                    \
    F(S, OPTIONAL, u64, bytes_max, 0)                                       \
    F(S, OPTIONAL, u32, clients, 0)                                         \
    F(S, OPTIONAL, u32, session, 0)

/* From a client that schedules: the last ROOM_ALLOW that it heard (0: none yet), what it
 * lacks (enum mu__room_lack), and how many bytes its next closure needs when they are
 * more than it is allowed. `leaves`: it schedules no more. `session` is another one each
 * time that it begins to. */
#define MU__ROOM_ASK_FIELDS(F, S)                                           \
    F(S, REQUIRED, u32, number, 0)                                          \
    F(S, OPTIONAL, u32, lacks, 255)                                         \
    F(S, OPTIONAL, u64, need_bytes, 0)                                      \
    F(S, OPTIONAL, flag, leaves, 0)                                         \
    F(S, OPTIONAL, u32, session, 0)

/* With `closure`, `name`, or `place`, which is the asker's own token of a closure that it
 * scheduled: why that closure has not run, instead of the status. */
#define MU__STATUS_GET_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u64, closure, 0)                                         \
    F(S, OPTIONAL, str, name, MU__CLOSURE_NAME_MAX)                         \
    F(S, OPTIONAL, u64, place, 0)

#define MU__STATUS_FIELDS(F, S)                                             \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, value, status, 1 << 24)

#define MU__REPORT_FIELDS(F, S)                                             \
    F(S, REQUIRED, str, name, 63)                                           \
    F(S, REQUIRED, f64, number, 0)                                          \
    F(S, REQUIRED, u64, step, 0)

#define MU__JOB_DONE_FIELDS(F, S)                                           \
    F(S, REQUIRED, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* -- variables -- */
#define MU__VAR_OPEN_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, name, MU__VARIABLE_NAME_MAX)                        \
    F(S, REQUIRED, u32, dtype, 255)                                         \
    F(S, REQUIRED, bytes, dims, 64)                                         \
    F(S, REQUIRED, u32, shard, 65535)                                       \
    F(S, REQUIRED, u32, shards, 65535)                                      \
    F(S, REQUIRED, u64, size, 0)                                            \
    F(S, OPTIONAL, flag, existing, 0)                                       \
    F(S, OPTIONAL, u64, replaces, 0)

/* `shards` beside MU_EPRECONDITION: the number that it has, when nothing else differs. */
#define MU__VAR_OPENED_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, u64, variable, 0)                                        \
    F(S, OPTIONAL, flag, created, 0)                                        \
    F(S, OPTIONAL, u32, shards, 65535)

#define MU__VAR_READ_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, variable, 0)                                        \
    F(S, REQUIRED, u64, offset, 0)                                          \
    F(S, REQUIRED, u32, size, MU__PIECE_BYTES_MAX)

#define MU__VAR_DATA_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, u64, version, 0)                                         \
    F(S, OPTIONAL, raw, data, MU__PIECE_BYTES_MAX)                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

#define MU__VAR_WRITE_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, variable, 0)                                        \
    F(S, REQUIRED, u32, operation, 255)                                     \
    F(S, REQUIRED, u64, transfer, 0)                                        \
    F(S, REQUIRED, u64, offset, 0)                                          \
    F(S, REQUIRED, raw, data, MU__PIECE_BYTES_MAX)                          \
    F(S, OPTIONAL, f64, rate, 0)                                            \
    F(S, OPTIONAL, f64, momentum, 0)

#define MU__VAR_WRITTEN_FIELDS(F, S)                                        \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, u64, version, 0)                                         \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* -- writes of runs, applied once -- */

/* Only supervisor `origin` may have effects from now on: what runs of a former one still
 * write is refused. */
#define MU__FENCE_FIELDS(F, S)                                              \
    F(S, REQUIRED, u64, origin, 0)                                          \
    F(S, REQUIRED, u64, epoch, 0)

/* One piece of what a run writes to one server, after `before` others. Pieces of `batch`
 * are staged until the one with `last` has come; then all are applied, or none of them:
 * because `effect`, if it is not 0, was applied before. All numbers below `effects_done`
 * are finished with. Operation MU__WRITE_ABANDON forgets the batch, without answer. */
#define MU__EFFECT_WRITE_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, batch, 0)                                           \
    F(S, REQUIRED, u64, variable, 0)                                        \
    F(S, REQUIRED, u32, operation, 255)                                     \
    F(S, REQUIRED, u64, offset, 0)                                          \
    F(S, REQUIRED, raw, data, MU__PIECE_BYTES_MAX)                          \
    F(S, REQUIRED, flag, last, 0)                                           \
    F(S, OPTIONAL, u64, origin, 0)                                          \
    F(S, OPTIONAL, u64, effect, 0)                                          \
    F(S, OPTIONAL, u64, effects_done, 0)                                    \
    F(S, OPTIONAL, f64, rate, 0)                                            \
    F(S, OPTIONAL, f64, momentum, 0)                                        \
    F(S, OPTIONAL, u32, before, 0)

/* Answers the last piece, or one that ended its batch: with an error, or because it was
 * applied before. With `again` nothing was applied, and the batch may be sent again.
 * With `staged` the batch goes on: so much of it is there, by weight (effects.h). */
#define MU__EFFECT_WRITTEN_FIELDS(F, S)                                     \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, flag, again, 0)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)                        \
    F(S, OPTIONAL, u64, staged, 0)

/* -- in the supervisor's journal; packed like messages, though no actor hears them --
 *
 * A closure's `number` is its own in this journal. */
#define MU__JOURNAL_BEGIN_FIELDS(F, S)                                      \
    F(S, REQUIRED, u64, origin, 0)                                          \
    F(S, REQUIRED, u64, epoch, 0)                                           \
    F(S, REQUIRED, u64, effect_next, 0)

#define MU__JOURNAL_SCHEDULED_FIELDS(F, S)                                  \
    F(S, REQUIRED, u64, number, 0)                                          \
    F(S, REQUIRED, str, name, MU__CLOSURE_NAME_MAX)                         \
    F(S, REQUIRED, str, function, MU__FUNCTION_NAME_MAX)                    \
    F(S, REQUIRED, value, args, MU__VALUE_BYTES_MAX)                        \
    F(S, OPTIONAL, u64, effect, 0)                                          \
    F(S, OPTIONAL, u32, flags, 0)                                           \
    F(S, OPTIONAL, u32, priority, 8)                                        \
    F(S, OPTIONAL, u64, run_timeout_ms, 0)                                    \
    F(S, OPTIONAL, u32, attempts_max, 65534)                                \
    F(S, OPTIONAL, u32, worker, 0)                                          \
    F(S, OPTIONAL, u32, not_worker, 0)                                      \
    F(S, OPTIONAL, str, worker_type, 15)

#define MU__JOURNAL_FINISHED_FIELDS(F, S)                                   \
    F(S, REQUIRED, u64, number, 0)                                          \
    F(S, OPTIONAL, value, result, MU__VALUE_BYTES_MAX)

/* The closure is not wanted any more, or has failed: its name may be scheduled anew. */
#define MU__JOURNAL_REMOVED_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, number, 0)

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
#define MU__PREEMPT_ASK_FIELDS(F, S)                                        \
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

/* -- key-values --
 *
 * Keys are as mu__key_normalize makes them. Everything here is answered by KEY_DONE, but
 * for lists and watches. What changes something is applied once for each token, however
 * often it is asked; all changes that this task asked under tokens below `done` were
 * answered. */

/* `flags`: enum mu__put_flag. With MU__PUT_COMPARE only if the key's revision is
 * `revision`, where 0 means that it is not there. */
#define MU__KEY_PUT_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, done, 0)                                            \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, REQUIRED, bytes, value, MU__KEY_VALUE_MAX)                         \
    F(S, OPTIONAL, u32, flags, 255)                                         \
    F(S, OPTIONAL, u64, revision, 0)

/* With `wait` it is answered when the key is there; until KEY_CANCEL, that is. */
#define MU__KEY_GET_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, OPTIONAL, flag, wait, 0)

#define MU__KEY_INCREMENT_FIELDS(F, S)                                      \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, done, 0)                                            \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, REQUIRED, i64, by, 0)

/* The key and everything below it; `number` of the answer says how many there were. */
#define MU__KEY_DELETE_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, done, 0)                                            \
    F(S, REQUIRED, str, key, MU__KEY_MAX)

#define MU__KEY_DONE_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, u64, revision, 0)                                        \
    F(S, OPTIONAL, i64, number, 0)                                          \
    F(S, OPTIONAL, bytes, value, MU__KEY_VALUE_MAX)                         \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* What is asked under `token` is not wanted any more: a get, or a list. No answer. */
#define MU__KEY_CANCEL_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)

/* What is below `key`, in order, from behind `after` on; "" lists everything. KEY_LISTED
 * has one page; `more`: ask again, with `after` its last key. */
#define MU__KEY_LIST_FIELDS(F, S)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, OPTIONAL, str, after, MU__KEY_MAX)                                 \
    F(S, OPTIONAL, flag, names_only, 0)

/* `items` is a list of maps: key, value (bytes), revision. */
#define MU__KEY_LISTED_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, value, items, 1 << 26)                                   \
    F(S, OPTIONAL, flag, more, 0)                                           \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* Tell what happens to `key`, or with `below` to what is below it. What is there now
 * comes first, then KEY_EVENT with `complete`. Until KEY_UNWATCH of the token. */
#define MU__KEY_WATCH_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, OPTIONAL, flag, below, 0)

#define MU__KEY_UNWATCH_FIELDS(F, S)                                        \
    F(S, REQUIRED, u64, token, 0)

/* With a code the watch is over. */
#define MU__KEY_EVENT_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, OPTIONAL, str, key, MU__KEY_MAX)                                   \
    F(S, OPTIONAL, bytes, value, MU__KEY_VALUE_MAX)                         \
    F(S, OPTIONAL, u64, revision, 0)                                        \
    F(S, OPTIONAL, flag, deleted, 0)                                        \
    F(S, OPTIONAL, flag, complete, 0)                                       \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, str, message, MU__ERROR_TEXT_MAX)

/* Changes of several keys at one moment, if all comparisons hold: `content` is what
 * coordination/transaction.h says. `number` of the answer is the sum of the first
 * increment; with FAILED_PRECONDITION the comparison that does not hold, from 1, or 0. */
#define MU__KEY_TXN_FIELDS(F, S)                                            \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, done, 0)                                            \
    F(S, REQUIRED, value, content, MU__TXN_BYTES_MAX)

/* -- in the journal of the key-values: see store.h; packed like messages, no actor hears
 * them -- */
#define MU__STORE_BEGIN_FIELDS(F, S)                                        \
    F(S, REQUIRED, u64, store, 0)                                           \
    F(S, REQUIRED, u64, epoch, 0)

#define MU__STORE_CHANGE_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, revision, 0)                                        \
    F(S, REQUIRED, str, key, MU__KEY_MAX)                                   \
    F(S, OPTIONAL, bytes, value, MU__KEY_VALUE_MAX)                         \
    F(S, OPTIONAL, flag, deleted, 0)                                        \
    F(S, OPTIONAL, u64, owner, 0)

#define MU__STORE_RESULT_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, agent, 0)                                           \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, u64, done, 0)                                            \
    F(S, OPTIONAL, u32, code, 255)                                          \
    F(S, OPTIONAL, u64, revision, 0)                                        \
    F(S, OPTIONAL, i64, number, 0)

/* What was written since the last of these counts together, or not at all. */
#define MU__STORE_COMMIT_FIELDS(F, S)                                       \
    F(S, REQUIRED, u64, revision, 0)

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

/* Answered by PEERS_TOLD: a list of maps, see peers.h. */
#define MU__PEERS_GET_FIELDS(F, S)                                          \
    F(S, REQUIRED, u64, token, 0)

#define MU__PEERS_TOLD_FIELDS(F, S)                                         \
    F(S, REQUIRED, u64, token, 0)                                           \
    F(S, REQUIRED, value, peers, MU__PEERS_CONTENT_MAX)

/* Numbers that are not used any more: 41, 42, 48, 53, 58, 91, 95 to 98, 120, 121. */
#define MU__MESSAGES(M)                                                     \
    M(16, REGISTER, register, MU__REGISTER_FIELDS)                          \
    M(17, RUN, run, MU__RUN_FIELDS)                                         \
    M(18, RESULT, result, MU__RESULT_FIELDS)                                \
    M(19, CANCEL, cancel, MU__CANCEL_FIELDS)                                \
    M(20, SCHEDULE, schedule, MU__SCHEDULE_FIELDS)                          \
    M(21, RESOLVED, resolved, MU__RESOLVED_FIELDS)                          \
    M(22, CANCEL_ALL, cancel_all, MU__CANCEL_ALL_FIELDS)                    \
    M(23, STATUS_GET, status_get, MU__STATUS_GET_FIELDS)                    \
    M(24, STATUS, status, MU__STATUS_FIELDS)                                \
    M(25, REPORT, report, MU__REPORT_FIELDS)                                \
    M(26, JOB_DONE, job_done, MU__JOB_DONE_FIELDS)                          \
    M(27, CANCEL_CLOSURE, cancel_closure, MU__CANCEL_CLOSURE_FIELDS)        \
    M(28, FETCH, fetch, MU__FETCH_FIELDS)                                   \
    M(29, FETCHED, fetched, MU__FETCHED_FIELDS)                             \
    M(30, RELEASE, release, MU__RELEASE_FIELDS)                             \
    M(31, FAULT, fault, MU__FAULT_FIELDS)                                   \
    M(32, VAR_OPEN, var_open, MU__VAR_OPEN_FIELDS)                          \
    M(33, VAR_OPENED, var_opened, MU__VAR_OPENED_FIELDS)                    \
    M(34, VAR_READ, var_read, MU__VAR_READ_FIELDS)                          \
    M(35, VAR_DATA, var_data, MU__VAR_DATA_FIELDS)                          \
    M(36, VAR_WRITE, var_write, MU__VAR_WRITE_FIELDS)                       \
    M(37, VAR_WRITTEN, var_written, MU__VAR_WRITTEN_FIELDS)                 \
    M(38, EFFECT_WRITE, effect_write, MU__EFFECT_WRITE_FIELDS)              \
    M(39, EFFECT_WRITTEN, effect_written, MU__EFFECT_WRITTEN_FIELDS)        \
    M(40, FENCE, fence, MU__FENCE_FIELDS)                                   \
    M(43, PER_WORKER_MAKE, per_worker_make, MU__PER_WORKER_MAKE_FIELDS)     \
    M(44, PER_WORKER_MADE, per_worker_made, MU__PER_WORKER_MADE_FIELDS)     \
    M(45, INPUT, input, MU__INPUT_FIELDS)                                   \
    M(46, DROP, drop, MU__DROP_FIELDS)                                      \
    M(47, PULL, pull, MU__PULL_FIELDS)                                      \
    M(49, PULLED, pulled, MU__PULLED_FIELDS)                                \
    M(50, DRAIN, drain, MU__DRAIN_FIELDS)                                   \
    M(51, DRAINED, drained, MU__DRAINED_FIELDS)                             \
    M(52, FORGET, forget, MU__FORGET_FIELDS)                                \
    M(54, JOURNAL_BEGIN, journal_begin, MU__JOURNAL_BEGIN_FIELDS)           \
    M(55, JOURNAL_SCHEDULED, journal_scheduled, MU__JOURNAL_SCHEDULED_FIELDS)\
    M(56, JOURNAL_FINISHED, journal_finished, MU__JOURNAL_FINISHED_FIELDS)  \
    M(57, JOURNAL_REMOVED, journal_removed, MU__JOURNAL_REMOVED_FIELDS)     \
    M(59, SERVICE_HERE, service_here, MU__SERVICE_HERE_FIELDS)              \
    M(60, TASK_REGISTER, task_register, MU__TASK_REGISTER_FIELDS)           \
    M(61, TASK_HEARTBEAT, task_heartbeat, MU__TASK_HEARTBEAT_FIELDS)        \
    M(62, TASK_HEARD, task_heard, MU__TASK_HEARD_FIELDS)                    \
    M(63, TASK_REPORT, task_report, MU__TASK_REPORT_FIELDS)                 \
    M(64, TASK_RESET, task_reset, MU__TASK_RESET_FIELDS)                    \
    M(65, TASK_LEAVE, task_leave, MU__TASK_LEAVE_FIELDS)                    \
    M(66, TASKS_GET, tasks_get, MU__TASKS_GET_FIELDS)                       \
    M(67, TASKS_ANSWER, tasks_answer, MU__TASKS_ANSWER_FIELDS)              \
    M(68, TASK_ERROR, task_error, MU__TASK_ERROR_FIELDS)                    \
    M(69, BARRIER_ARRIVE, barrier_arrive, MU__BARRIER_ARRIVE_FIELDS)        \
    M(70, BARRIER_CANCEL, barrier_cancel, MU__BARRIER_CANCEL_FIELDS)        \
    M(71, BARRIER_PASSED, barrier_passed, MU__BARRIER_PASSED_FIELDS)        \
    M(72, PREEMPT_NOTICE, preempt_notice, MU__PREEMPT_NOTICE_FIELDS)        \
    M(73, PREEMPT_ASK, preempt_ask, MU__PREEMPT_ASK_FIELDS)                 \
    M(74, PREEMPT_STEP, preempt_step, MU__PREEMPT_STEP_FIELDS)              \
    M(75, PREEMPT_STOP, preempt_stop, MU__PREEMPT_STOP_FIELDS)              \
    M(76, KEY_PUT, key_put, MU__KEY_PUT_FIELDS)                             \
    M(77, KEY_GET, key_get, MU__KEY_GET_FIELDS)                             \
    M(78, KEY_INCREMENT, key_increment, MU__KEY_INCREMENT_FIELDS)           \
    M(79, KEY_DELETE, key_delete, MU__KEY_DELETE_FIELDS)                    \
    M(80, KEY_DONE, key_done, MU__KEY_DONE_FIELDS)                          \
    M(81, KEY_CANCEL, key_cancel, MU__KEY_CANCEL_FIELDS)                    \
    M(82, KEY_LIST, key_list, MU__KEY_LIST_FIELDS)                          \
    M(83, KEY_LISTED, key_listed, MU__KEY_LISTED_FIELDS)                    \
    M(84, KEY_WATCH, key_watch, MU__KEY_WATCH_FIELDS)                       \
    M(85, KEY_UNWATCH, key_unwatch, MU__KEY_UNWATCH_FIELDS)                 \
    M(86, KEY_EVENT, key_event, MU__KEY_EVENT_FIELDS)                       \
    M(87, STORE_BEGIN, store_begin, MU__STORE_BEGIN_FIELDS)                 \
    M(88, STORE_CHANGE, store_change, MU__STORE_CHANGE_FIELDS)              \
    M(89, STORE_RESULT, store_result, MU__STORE_RESULT_FIELDS)              \
    M(90, STORE_COMMIT, store_commit, MU__STORE_COMMIT_FIELDS)              \
    M(92, SERVER_STOP, server_stop, MU__SERVER_STOP_FIELDS)                 \
    M(93, SERVER_STOPPED, server_stopped, MU__SERVER_STOPPED_FIELDS)        \
    M(94, CLUSTER_OFFER, cluster_offer, MU__CLUSTER_OFFER_FIELDS)           \
    M(100, PEERS_GET, peers_get, MU__PEERS_GET_FIELDS)                      \
    M(101, PEERS_TOLD, peers_told, MU__PEERS_TOLD_FIELDS)                   \
    M(102, ROOM_ALLOW, room_allow, MU__ROOM_ALLOW_FIELDS)                   \
    M(103, ROOM_ASK, room_ask, MU__ROOM_ASK_FIELDS)                         \
    M(110, RECALL, recall, MU__RECALL_FIELDS)                               \
    M(111, RECALLED, recalled, MU__RECALLED_FIELDS)                         \
    M(112, BEGUN, begun, MU__BEGUN_FIELDS)                                  \
    M(135, RUN_END, run_end, MU__RUN_END_FIELDS)                            \
    M(136, RUNS_GET, runs_get, MU__RUNS_GET_FIELDS)                         \
    M(137, RUNS_CLEAR, runs_clear, MU__RUNS_CLEAR_FIELDS)                   \
    M(140, WAIT_NOTE, wait_note, MU__WAIT_NOTE_FIELDS)                      \
    M(145, REGISTER_REFUSED, register_refused, MU__REGISTER_REFUSED_FIELDS) \
    M(150, KEY_TXN, key_txn, MU__KEY_TXN_FIELDS)                            \
    M(160, TASK_MARK, task_mark, MU__TASK_MARK_FIELDS)                      \
    M(161, TASK_CLEARED, task_cleared, MU__TASK_CLEARED_FIELDS)

enum mu__kind {
#define MU__KIND(number, NAME, name, FIELDS) MU__##NAME = number,
    MU__MESSAGES(MU__KIND)
#undef MU__KIND
    MU__KINDS_END = MU__LOCAL_KINDS_BEGIN
};

#define MU__BODY(number, NAME, name, FIELDS) MU__MESSAGE_STRUCT(name, FIELDS)
MU__MESSAGES(MU__BODY)
#undef MU__BODY

/* Local, from the program to its own client: a closure, and its future (NULL: nobody
 * wants the result). With MU__CLOSURE_HOLDS the inputs are pointers
 * (actors/client/holds.h). When it leaves for the supervisor, the same message becomes a
 * SCHEDULE: the body begins as that one's. */
struct mu__submit {
    MU__SCHEDULE_FIELDS(MU__STRUCT_FIELD, schedule)
    struct mu_remote_value *future;
};

/* Both tables, the kernel's rows included. */
extern const struct mu__schema mu__messages;

#endif
