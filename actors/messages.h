/* The messages between nodes: number, name, the right that the sender needs
 * (runtime/message/rights.h; CHIEF: to be the chief; ..._READ: the answer may be far
 * larger), fields in wire order. Numbers are never reused; fields are only ever added at
 * the end. The structs, the codec, the trace
 * and the fuzzer are generated from this table. Messages that stay in the process are in
 * local_messages.h. */
#ifndef MU_ACTORS_MESSAGES_H
#define MU_ACTORS_MESSAGES_H

#include "actors/messages/actor_fields.h"
#include "actors/messages/closure_fields.h"
#include "actors/messages/kept_fields.h"
#include "actors/messages/key_fields.h"
#include "actors/messages/stream_fields.h"
#include "actors/messages/table_fields.h"
#include "actors/messages/task_fields.h"
#include "actors/messages/variable_fields.h"

/* Retired numbers: 41, 42, 48, 53, 58, 91, 95 to 98, 120, 121. */
#define MU__MESSAGES(M)                                                               \
    M(16, REGISTER, register, TASK, MU__REGISTER_FIELDS)                              \
    M(17, RUN, run, CHIEF, MU__RUN_FIELDS)                                            \
    M(18, RESULT, result, TASK, MU__RESULT_FIELDS)                                    \
    M(19, CANCEL, cancel, CHIEF, MU__CANCEL_FIELDS)                                   \
    M(20, SCHEDULE, schedule, USE, MU__SCHEDULE_FIELDS)                               \
    M(21, RESOLVED, resolved, CHIEF, MU__RESOLVED_FIELDS)                             \
    M(22, CANCEL_ALL, cancel_all, USE, MU__CANCEL_ALL_FIELDS)                         \
    M(23, STATUS_GET, status_get, OBSERVE_READ, MU__STATUS_GET_FIELDS)                \
    M(24, STATUS, status, TASK, MU__STATUS_FIELDS)                                    \
    M(25, REPORT, report, USE, MU__REPORT_FIELDS)                                     \
    M(26, JOB_DONE, job_done, TASK, MU__JOB_DONE_FIELDS)                              \
    M(27, CANCEL_CLOSURE, cancel_closure, USE, MU__CANCEL_CLOSURE_FIELDS)             \
    M(28, FETCH, fetch, USE_READ, MU__FETCH_FIELDS)                                   \
    M(29, FETCHED, fetched, CHIEF, MU__FETCHED_FIELDS)                                \
    M(30, RELEASE, release, USE, MU__RELEASE_FIELDS)                                  \
    M(31, FAULT, fault, USE, MU__FAULT_FIELDS)                                        \
    M(32, VAR_OPEN, var_open, USE, MU__VAR_OPEN_FIELDS)                               \
    M(33, VAR_OPENED, var_opened, TASK, MU__VAR_OPENED_FIELDS)                        \
    M(34, VAR_READ, var_read, USE_READ, MU__VAR_READ_FIELDS)                          \
    M(35, VAR_DATA, var_data, TASK, MU__VAR_DATA_FIELDS)                              \
    M(36, VAR_WRITE, var_write, USE, MU__VAR_WRITE_FIELDS)                            \
    M(37, VAR_WRITTEN, var_written, TASK, MU__VAR_WRITTEN_FIELDS)                     \
    M(38, EFFECT_WRITE, effect_write, TASK, MU__EFFECT_WRITE_FIELDS)                  \
    M(39, EFFECT_WRITTEN, effect_written, TASK, MU__EFFECT_WRITTEN_FIELDS)            \
    M(40, FENCE, fence, CHIEF, MU__FENCE_FIELDS)                                      \
    M(43, PER_WORKER_MAKE, per_worker_make, USE, MU__PER_WORKER_MAKE_FIELDS)          \
    M(44, PER_WORKER_MADE, per_worker_made, CHIEF, MU__PER_WORKER_MADE_FIELDS)        \
    M(45, INPUT, input, CHIEF, MU__INPUT_FIELDS)                                      \
    M(46, DROP, drop, CHIEF, MU__DROP_FIELDS)                                         \
    M(47, PULL, pull, CHIEF, MU__PULL_FIELDS)                                         \
    M(49, PULLED, pulled, TASK, MU__PULLED_FIELDS)                                    \
    M(50, DRAIN, drain, OPERATE, MU__DRAIN_FIELDS)                                    \
    M(51, DRAINED, drained, CHIEF, MU__DRAINED_FIELDS)                                \
    M(52, FORGET, forget, OPERATE, MU__FORGET_FIELDS)                                 \
    M(54, JOURNAL_BEGIN, journal_begin, STORED, MU__JOURNAL_BEGIN_FIELDS)             \
    M(55, JOURNAL_SCHEDULED, journal_scheduled, STORED, MU__JOURNAL_SCHEDULED_FIELDS) \
    M(56, JOURNAL_FINISHED, journal_finished, STORED, MU__JOURNAL_FINISHED_FIELDS)    \
    M(57, JOURNAL_REMOVED, journal_removed, STORED, MU__JOURNAL_REMOVED_FIELDS)       \
    M(59, SERVICE_HERE, service_here, TASK, MU__SERVICE_HERE_FIELDS)                  \
    M(60, TASK_REGISTER, task_register, OBSERVE, MU__TASK_REGISTER_FIELDS)            \
    M(61, TASK_HEARTBEAT, task_heartbeat, OBSERVE, MU__TASK_HEARTBEAT_FIELDS)         \
    M(62, TASK_HEARD, task_heard, TASK, MU__TASK_HEARD_FIELDS)                        \
    M(63, TASK_REPORT, task_report, USE, MU__TASK_REPORT_FIELDS)                      \
    M(64, TASK_RESET, task_reset, USE, MU__TASK_RESET_FIELDS)                         \
    M(65, TASK_LEAVE, task_leave, OBSERVE, MU__TASK_LEAVE_FIELDS)                     \
    M(66, TASKS_GET, tasks_get, OBSERVE_READ, MU__TASKS_GET_FIELDS)                   \
    M(67, TASKS_ANSWER, tasks_answer, TASK, MU__TASKS_ANSWER_FIELDS)                  \
    M(68, TASK_ERROR, task_error, TASK, MU__TASK_ERROR_FIELDS)                        \
    M(69, BARRIER_ARRIVE, barrier_arrive, USE, MU__BARRIER_ARRIVE_FIELDS)             \
    M(70, BARRIER_CANCEL, barrier_cancel, USE, MU__BARRIER_CANCEL_FIELDS)             \
    M(71, BARRIER_PASSED, barrier_passed, TASK, MU__BARRIER_PASSED_FIELDS)            \
    M(72, PREEMPT_NOTICE, preempt_notice, OPERATE, MU__PREEMPT_NOTICE_FIELDS)         \
    M(73, PREEMPT_REQUEST, preempt_request, TASK, MU__PREEMPT_REQUEST_FIELDS)         \
    M(74, PREEMPT_STEP, preempt_step, USE, MU__PREEMPT_STEP_FIELDS)                   \
    M(75, PREEMPT_STOP, preempt_stop, TASK, MU__PREEMPT_STOP_FIELDS)                  \
    M(76, KEY_PUT, key_put, USE, MU__KEY_PUT_FIELDS)                                  \
    M(77, KEY_GET, key_get, OBSERVE_READ, MU__KEY_GET_FIELDS)                         \
    M(78, KEY_INCREMENT, key_increment, USE, MU__KEY_INCREMENT_FIELDS)                \
    M(79, KEY_DELETE, key_delete, USE, MU__KEY_DELETE_FIELDS)                         \
    M(80, KEY_DONE, key_done, TASK, MU__KEY_DONE_FIELDS)                              \
    M(81, KEY_CANCEL, key_cancel, OBSERVE_READ, MU__KEY_CANCEL_FIELDS)                \
    M(82, KEY_LIST, key_list, OBSERVE_READ, MU__KEY_LIST_FIELDS)                      \
    M(83, KEY_LISTED, key_listed, TASK, MU__KEY_LISTED_FIELDS)                        \
    M(84, KEY_WATCH, key_watch, OBSERVE_READ, MU__KEY_WATCH_FIELDS)                   \
    M(85, KEY_UNWATCH, key_unwatch, OBSERVE_READ, MU__KEY_UNWATCH_FIELDS)             \
    M(86, KEY_EVENT, key_event, TASK, MU__KEY_EVENT_FIELDS)                           \
    M(87, STORE_BEGIN, store_begin, STORED, MU__STORE_BEGIN_FIELDS)                   \
    M(88, STORE_CHANGE, store_change, STORED, MU__STORE_CHANGE_FIELDS)                \
    M(89, STORE_RESULT, store_result, STORED, MU__STORE_RESULT_FIELDS)                \
    M(90, STORE_COMMIT, store_commit, STORED, MU__STORE_COMMIT_FIELDS)                \
    M(92, SERVER_STOP, server_stop, OPERATE, MU__SERVER_STOP_FIELDS)                  \
    M(93, SERVER_STOPPED, server_stopped, TASK, MU__SERVER_STOPPED_FIELDS)            \
    M(94, CLUSTER_OFFER, cluster_offer, OPERATE, MU__CLUSTER_OFFER_FIELDS)            \
    M(100, PEERS_GET, peers_get, OBSERVE_READ, MU__PEERS_GET_FIELDS)                  \
    M(101, PEERS_REPORT, peers_report, TASK, MU__PEERS_REPORT_FIELDS)                 \
    M(102, ROOM_ALLOW, room_allow, CHIEF, MU__ROOM_ALLOW_FIELDS)                      \
    M(103, ROOM_REQUEST, room_request, USE, MU__ROOM_REQUEST_FIELDS)                  \
    M(110, RECALL, recall, CHIEF, MU__RECALL_FIELDS)                                  \
    M(111, RECALLED, recalled, TASK, MU__RECALLED_FIELDS)                             \
    M(112, BEGUN, begun, TASK, MU__BEGUN_FIELDS)                                      \
    M(135, RUN_END, run_end, OPERATE, MU__RUN_END_FIELDS)                             \
    M(136, RUNS_GET, runs_get, OBSERVE_READ, MU__RUNS_GET_FIELDS)                     \
    M(137, RUNS_CLEAR, runs_clear, OPERATE, MU__RUNS_CLEAR_FIELDS)                    \
    M(140, WAIT_NOTE, wait_note, TASK, MU__WAIT_NOTE_FIELDS)                          \
    M(145, REGISTER_REFUSED, register_refused, CHIEF, MU__REGISTER_REFUSED_FIELDS)    \
    M(150, KEY_TXN, key_txn, USE, MU__KEY_TXN_FIELDS)                                 \
    M(160, TASK_MARK, task_mark, OPERATE, MU__TASK_MARK_FIELDS)                       \
    M(161, TASK_CLEARED, task_cleared, TASK, MU__TASK_CLEARED_FIELDS)                 \
    M(162, JOURNAL_BODY, journal_body, STORED, MU__JOURNAL_BODY_FIELDS)               \
    M(165, VIEWS_SET, views_set, CHIEF, MU__VIEWS_SET_FIELDS)                         \
    M(166, VIEWS_HELD, views_held, TASK, MU__VIEWS_HELD_FIELDS)                       \
    M(167, REPLICA_NEWS, replica_news, TASK, MU__REPLICA_NEWS_FIELDS)                 \
    M(168, SERVES, serves, TASK, MU__SERVES_FIELDS)                                   \
    M(169, CLIENT_LOST, client_lost, TASK, MU__CLIENT_LOST_FIELDS)                    \
    M(170, RECORDS_DONE, records_done, TASK, MU__RECORDS_DONE_FIELDS)                 \
    M(171, FILL_BEGIN, fill_begin, TASK, MU__FILL_BEGIN_FIELDS)                       \
    M(172, FILL_WRITER, fill_writer, TASK, MU__FILL_WRITER_FIELDS)                    \
    M(173, FILL_SHARD, fill_shard, TASK, MU__FILL_SHARD_FIELDS)                       \
    M(174, FILL_DATA, fill_data, TASK, MU__FILL_DATA_FIELDS)                          \
    M(175, FILL_END, fill_end, TASK, MU__FILL_END_FIELDS)                             \
    M(176, FILL_TAKEN, fill_taken, TASK, MU__FILL_TAKEN_FIELDS)                       \
    M(177, FENCED, fenced, TASK, MU__FENCED_FIELDS)                                   \
    M(178, REPLICA_VIEW, replica_view, TASK, MU__REPLICA_VIEW_FIELDS)                 \
    M(179, VIEWS_GET, views_get, CHIEF, MU__VIEWS_GET_FIELDS)                         \
    M(190, SNAPSHOT_OPEN, snapshot_open, USE, MU__SNAPSHOT_OPEN_FIELDS)               \
    M(191, SNAPSHOT_OPENED, snapshot_opened, TASK, MU__SNAPSHOT_OPENED_FIELDS)        \
    M(192, SNAPSHOT_READ, snapshot_read, USE_READ, MU__SNAPSHOT_READ_FIELDS)          \
    M(193, SNAPSHOT_CLOSE, snapshot_close, USE, MU__SNAPSHOT_CLOSE_FIELDS)            \
    M(194, WINDOWS_PUT, windows_put, USE, MU__WINDOWS_PUT_FIELDS)                     \
    M(195, CLOCK_SET, clock_set, USE, MU__CLOCK_SET_FIELDS)                           \
    M(196, CLOCK_PASSED, clock_passed, TASK, MU__CLOCK_PASSED_FIELDS)                 \
    M(197, CLOCK_GET, clock_get, USE_READ, MU__CLOCK_GET_FIELDS)                      \
    M(198, CLOCK_STATE, clock_state, TASK, MU__CLOCK_STATE_FIELDS)                    \
    M(199, FILL_CLOCK, fill_clock, TASK, MU__FILL_CLOCK_FIELDS)                       \
    M(200, PS_BEGIN, ps_begin, STORED, MU__PS_BEGIN_FIELDS)                           \
    M(201, PS_VIEW, ps_view, STORED, MU__PS_VIEW_FIELDS)                              \
    M(210, TABLE_LOOKUP, table_lookup, USE_READ, MU__TABLE_LOOKUP_FIELDS)             \
    M(211, TABLE_ROWS, table_rows, TASK, MU__TABLE_ROWS_FIELDS)                       \
    M(212, FILL_TABLE, fill_table, TASK, MU__FILL_TABLE_FIELDS)                       \
    M(213, FILL_ROWS, fill_rows, TASK, MU__FILL_ROWS_FIELDS)                          \
    M(214, OWN_WRITE, own_write, USE, MU__EFFECT_WRITE_FIELDS)                        \
    M(215, OWN_WRITES, own_writes, USE, MU__EFFECT_WRITES_FIELDS)                     \
    M(216, EFFECT_WRITES, effect_writes, TASK, MU__EFFECT_WRITES_FIELDS)              \
    M(217, EFFECTS_WRITTEN, effects_written, TASK, MU__EFFECTS_WRITTEN_FIELDS)        \
    M(218, TABLE_SWEEP, table_sweep, TASK, MU__TABLE_SWEEP_FIELDS)                    \
    M(219, ACTOR_MESSAGE, actor_message, USE, MU__ACTOR_MESSAGE_FIELDS)               \
    M(220, ACTOR_ANSWER, actor_answer, USE, MU__ACTOR_ANSWER_FIELDS)                  \
    M(221, ACTOR_CANCEL, actor_cancel, USE, MU__ACTOR_CANCEL_FIELDS)                  \
    M(222, ACTOR_ROOM, actor_room, USE, MU__ACTOR_ROOM_FIELDS)                        \
    M(223, ACTOR_START, actor_start, OPERATE, MU__ACTOR_START_FIELDS)                 \
    M(224, ACTOR_STOP, actor_stop, OPERATE, MU__ACTOR_STOP_FIELDS)                    \
    M(225, ACTOR_WATCH, actor_watch, USE, MU__ACTOR_WATCH_FIELDS)                     \
    M(226, ACTOR_UNWATCH, actor_unwatch, USE, MU__ACTOR_UNWATCH_FIELDS)               \
    M(227, ACTOR_DOWN, actor_down, USE, MU__ACTOR_DOWN_FIELDS)                        \
    M(228, NAME_MAKE, name_make, OPERATE, MU__NAME_MAKE_FIELDS)                       \
    M(229, NAME_FIND, name_find, USE, MU__NAME_FIND_FIELDS)                           \
    M(230, NAME_NEWS, name_news, TASK, MU__NAME_NEWS_FIELDS)                          \
    M(231, NAME_OFFER, name_offer, TASK, MU__NAME_OFFER_FIELDS)                       \
    M(232, NAME_START, name_start, TASK, MU__NAME_START_FIELDS)                       \
    M(233, NAME_STATE, name_state, TASK, MU__NAME_STATE_FIELDS)                       \
    M(234, NAME_HOLD, name_hold, TASK, MU__NAME_HOLD_FIELDS)                          \
    M(235, NAME_STOP, name_stop, OPERATE, MU__NAME_STOP_FIELDS)                       \
    M(236, KEEP_FENCE, keep_fence, TASK, MU__KEEP_FENCE_FIELDS)                       \
    M(237, KEEP_ITEM, keep_item, TASK, MU__KEEP_ITEM_FIELDS)                          \
    M(238, KEPT_ITEM, kept_item, TASK, MU__KEEP_ITEM_FIELDS)                          \
    M(239, KEPT, kept, TASK, MU__KEPT_FIELDS)                                         \
    M(240, KEPT_CALL, kept_call, USE, MU__KEPT_CALL_FIELDS)                           \
    M(241, KEPT_AWAY, kept_away, TASK, MU__KEPT_AWAY_FIELDS)                          \
    M(242, ACTOR_RELAY, actor_relay, USE, MU__ACTOR_RELAY_FIELDS)                     \
    M(243, STREAM_BEGIN, stream_begin, USE, MU__STREAM_BEGIN_FIELDS)                  \
    M(244, STREAM_ITEM, stream_item, USE, MU__STREAM_ITEM_FIELDS)                     \
    M(245, STREAM_END, stream_end, USE, MU__STREAM_END_FIELDS)                        \
    M(246, STREAM_TAKEN, stream_taken, USE, MU__STREAM_TAKEN_FIELDS)                  \
    M(247, STREAM_CLOSE, stream_close, USE, MU__STREAM_CLOSE_FIELDS)

enum mu__kind {
    MU__KINDS_END = MU__LOCAL_KINDS_BEGIN,
#define MU__KIND(number, NAME, name, RIGHT, FIELDS) MU__##NAME = number,
    MU__MESSAGES(MU__KIND)
#undef MU__KIND
};

#define MU__BODY(number, NAME, name, RIGHT, FIELDS) MU__MESSAGE_STRUCT(name, FIELDS)
MU__MESSAGES(MU__BODY)
#undef MU__BODY

/* Local, from the program to its own client: a closure, and its future (NULL: the result
 * is not needed). With MU__CLOSURE_HOLDS the inputs are pointers
 * (actors/client/holds.h). The body begins with the fields of SCHEDULE, as the client
 * sends the same message on to the supervisor under that kind. */
struct mu__submit {
    MU__SCHEDULE_FIELDS(MU__STRUCT_FIELD, schedule)
    struct mu_remote_value *future;
};

/* Both tables, with the kernel's own messages. */
extern const struct mu__schema mu__messages;

#endif
