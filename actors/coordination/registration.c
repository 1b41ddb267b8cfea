/* Registration of tasks.
 *
 * A task is identified by the link of its messages, so that none can act for another. It
 * is CONNECTED from its registration until it is silent for dead_ms, reports a failure,
 * leaves or is reset. All times are by mu__coord_clock, so that a pause of this host
 * fails no task. */
#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/internal.h"
#include "actors/coordination/job_runs.h"
#include "actors/coordination/keys/internal.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "actors/coordination/tasks.h"
#include "runtime/message/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Registering ---- */

/* Whether the peer may register the task; a former incarnation is failed or replaced. */
static int admit_incarnation(struct mu__ctx *ctx, struct coordination *c,
                             struct mu__roster_task *task, const struct coord_peer *peer,
                             mu_error *ret_error)
{
    mu_error replaced;

    if (task->state == MU__TASK_FAILED && !task->recoverable)
        return mu_error_set(ret_error, -MU_EABORTED,
                            "%s is in error and must be reset first: %s", task->name,
                            task->failure.error.message);
    if (!mu__coord_task_is_connected(task) || task->incarnation == peer->incarnation)
        return 0;
    if (c->tasks.gathering || mu__coord_request_waits(task, COORD_REQUEST_REGISTER)) {
        (void)mu_error_set(&replaced, -MU_EEXISTS,
                           "%s has registered with another incarnation, which takes the "
                           "place of this one",
                           task->name);
        mu__coord_requests_answer(ctx, c, task, COORD_REQUEST_REGISTER, &replaced);
        mu__coord_disconnect(ctx, c, task);
        return 0;
    }
    mu__coord_fail_with(ctx, c, task, -MU_EUNAVAILABLE, "was restarted");
    if (task->recoverable)
        return 0;
    return mu_error_set(ret_error, -MU_EABORTED,
                        "%s was registered with another incarnation: it was restarted, "
                        "and must be reset first",
                        task->name);
}

static int store_task_devices(struct mu__roster_task *task,
                              const struct mu__packed *devices, mu_error *ret_error)
{
    mu_value *value = NULL;
    char why[128];
    int rv;

    if (devices->head_size == 0)
        return 0;
    rv = mu__value_unpack(devices, why, sizeof why, &value);
    if (rv == -MU_ENOMEM)
        return mu_error_set(ret_error, rv, "out of memory");
    if (rv != 0)
        return mu_error_set(ret_error, -MU_EINVALID, "devices of %s: %s", task->name,
                            why);
    if (mu_value_type(value) != MU_VALUE_MAP) {
        mu_value_free(value);
        return mu_error_set(ret_error, -MU_EINVALID, "devices of %s are no map",
                            task->name);
    }
    mu_value_free(task->devices);
    task->devices = value;
    return 0;
}

/* A link of the task's incarnation is up. */
static int set_link_up(struct mu__ctx *ctx, struct coordination *c,
                       struct mu__roster_task *task, uint32_t node)
{
    bool was_suspect = task->suspect;
    int rv = mu__roster_link_up(c->roster, task, node, mu__coord_clock(ctx, c));

    if (rv == 0 && was_suspect)
        mu__coord_requests_changed(c, task, true);
    return rv;
}

static int connect_task(struct mu__ctx *ctx, struct coordination *c,
                        struct mu__roster_task *task, const struct coord_peer *peer)
{
    int rv = set_link_up(ctx, c, task, peer->node);

    if (rv != 0)
        return rv;
    if (mu__coord_task_is_connected(task)) {
        /* While its link was down it may have missed a request. */
        mu__coord_preempt_task_joined(ctx, c, task);
        return 0;
    }
    mu__coord_leave_left(c, task, false);
    if (task->incarnation != 0 && task->incarnation != peer->incarnation) {
        free(task->failure.ended);
        task->failure.ended = NULL;
    }
    task->incarnation = peer->incarnation;
    task->notified = false;
    task->notified_count = c->tasks.notified_count;
    c->tasks.fresh++;
    task->progress.count = 0;
    task->progress.moved_ms = mu__coord_clock(ctx, c);
    mu__coord_task_move(ctx, c, task, MU__TASK_CONNECTED, NULL);
    mu__coord_keys_task_joined(c, task->incarnation);
    mu__coord_barriers_task_joined(ctx, c, task);
    mu__coord_preempt_task_joined(ctx, c, task);
    if (c->roster->connected == c->roster->coordinated)
        c->tasks.gathering = false;
    return 0;
}

static struct mu__roster_task *find_or_add_task(
    struct coordination *c, const struct coord_peer *peer, mu_error *ret_error)
{
    struct mu__roster_task *task = mu__roster_add(c->roster, peer->type, peer->index);

    if (task == NULL)
        (void)mu_error_set(ret_error, -MU_EEXHAUSTED,
                           "/job:%s/task:%" PRIu32 " cannot be registered: it is not one "
                           "of the coordinated jobs, and too many others are registered",
                           peer->type, peer->index);
    return task;
}

static int register_peer_task(struct mu__ctx *ctx, struct coordination *c,
                              const struct coord_peer *peer,
                              const struct mu__task_register *body, mu_error *ret_error)
{
    struct mu__roster_task *task;
    int rv = mu__coord_runs_admit(c, peer, body, ret_error);

    if (rv != 0)
        return rv;
    task = find_or_add_task(c, peer, ret_error);
    if (task == NULL)
        return ret_error->code;
    rv = admit_incarnation(ctx, c, task, peer, ret_error);
    if (rv == 0)
        rv = store_task_devices(task, &body->devices, ret_error);
    if (rv != 0)
        return rv;
    if (connect_task(ctx, c, task, peer) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    task->since = body->since != 0 ? body->since : mu__coord_next_revision(c);
    mu__coord_barriers_registered(ctx, c, task);
    return 0;
}

/* `run`: the one that the task reported. */
static void send_registered(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                            uint64_t token, uint64_t run)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASKS_ANSWER);
    struct mu__tasks_answer *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = token;
    body->since = mu__roster_at_node(c->roster, node)->since;
    body->run = mu__coord_runs_number_for(c, run);
    mu__coord_send(ctx, c, node, msg);
}

void mu__coord_on_register(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__task_register *body = mu__body(msg);
    const struct coord_peer *peer = mu__coord_peer(c, msg->from.node);
    mu_error error = {.code = 0};

    if (peer == NULL)
        return;
    if (register_peer_task(ctx, c, peer, body, &error) != 0) {
        mu__coord_answer(ctx, c, peer->node, body->token, &error);
        return;
    }
    if (!body->barrier) {
        send_registered(ctx, c, peer->node, body->token, body->run);
        return;
    }
    if (c->roster->connected < c->roster->coordinated)
        c->tasks.gathering = true;
    mu__coord_request_add(ctx, c, mu__roster_at_node(c->roster, peer->node),
                          &(struct coord_request){
                              .kind = COORD_REQUEST_REGISTER,
                              .node = peer->node,
                              .token = body->token,
                              .timeout_ms = body->timeout_ms,
                          });
}

/* ---- Requesters ---- */

static void note_heartbeat(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task)
{
    if (mu__roster_heard(c->roster, task, mu__coord_clock(ctx, c)))
        mu__coord_requests_changed(c, task, true);
}

/* Why a message of a node is refused, whose task is not connected, or is connected with
 * another incarnation. */
static void not_connected(const struct coordination *c, uint32_t node,
                          const struct mu__roster_task *task, mu_error *ret_error)
{
    const struct coord_peer *peer = mu__coord_peer(c, node);
    const struct mu__roster_task *other =
        peer == NULL ? NULL : mu__roster_find(c->roster, peer->type, peer->index);

    if (task != NULL && task->lost)
        (void)mu_error_set(ret_error, -MU_EUNAVAILABLE, "%s: it must register again",
                           task->state == MU__TASK_FAILED ? task->failure.error.message
                                                          : task->name);
    else if (task != NULL && task->state == MU__TASK_FAILED)
        *ret_error = task->failure.error;
    else if (task == NULL && other != NULL && other->state == MU__TASK_FAILED &&
             !other->recoverable)
        *ret_error = other->failure.error;
    else if (task == NULL && other != NULL && mu__coord_task_is_connected(other))
        (void)mu_error_set(ret_error, -MU_EABORTED,
                           "%s is registered with another incarnation", other->name);
    else if (task != NULL && task->seen)
        (void)mu_error_set(ret_error, -MU_EPRECONDITION,
                           "%s has left and is no longer registered", task->name);
    else
        (void)mu_error_set(ret_error, -MU_EPRECONDITION,
                           "/job:%s/task:%" PRIu32 " is not registered at %s",
                           peer == NULL ? "?" : peer->type,
                           peer == NULL ? 0 : peer->index, c->config.task);
}

struct mu__roster_task *mu__coord_requester(struct mu__ctx *ctx, struct coordination *c,
                                            uint32_t node, uint64_t token)
{
    struct mu__roster_task *task = mu__roster_at_node(c->roster, node);
    mu_error error;

    if (task != NULL && mu__coord_task_is_connected(task)) {
        note_heartbeat(ctx, c, task);
        return task;
    }
    if (token != 0) {
        not_connected(c, node, task, &error);
        mu__coord_answer(ctx, c, node, token, &error);
    }
    return NULL;
}

/* ---- Heartbeats ---- */

static void note_progress(struct mu__roster_task *task, uint64_t progress,
                          uint64_t now_ms)
{
    if (progress == task->progress.count)
        return;
    task->progress.count = progress;
    task->progress.moved_ms = now_ms;
}

/* A task that is heard, and whose program makes no progress. A parameter server is
 * excepted until it has reported any. */
static bool is_task_stuck(const struct coordination *c,
                          const struct mu__roster_task *task, uint64_t stuck_ms,
                          uint64_t now_ms)
{
    if (c->config.stuck_ms == 0)
        return false;
    if (task->progress.count == 0 && strcmp(task->type, "ps") == 0)
        return false;
    return now_ms - task->progress.moved_ms >= c->config.stuck_ms ||
           stuck_ms >= c->config.stuck_ms;
}

static void fail_stuck(struct mu__ctx *ctx, struct coordination *c,
                       struct mu__roster_task *task)
{
    char what[128];

    (void)snprintf(
        what, sizeof what,
        "is stuck: its node is alive, its program has made no progress for %" PRIu32
        " ms (progress %" PRIu64 ")",
        c->config.stuck_ms, task->progress.count);
    mu__coord_fail_with(ctx, c, task, -MU_EDEADLINE, what);
}

/* 0, or why a heartbeat is refused. One that was sent before its task left is taken. */
static int check_heartbeat(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                           const struct mu__roster_task *task, mu_error *ret_error)
{
    if (task != NULL && mu__coord_task_is_connected(task))
        return 0;
    not_connected(c, node, task, ret_error);
    if (task != NULL && task->state == MU__TASK_FAILED && !task->lost)
        return ret_error->code = -MU_EABORTED;
    if (task == NULL || !task->seen || task->lost)
        return ret_error->code;
    if (mu__coord_clock(ctx, c) - task->since_ms < c->config.dead_ms)
        return 0;
    return ret_error->code = -MU_EINVALID;
}

static void send_heard(struct mu__ctx *ctx, const struct coordination *c, uint32_t node,
                       const mu_error *error)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__TASK_HEARD);
    struct mu__task_heard *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->epoch = c->epoch;
    if (error != NULL) {
        body->code = (uint32_t)-error->code;
        body->message = mu__view_str(error->message);
        mu__coord_back(msg, &body->message, NULL);
    }
    mu__coord_send_now(ctx, node, msg);
}

void mu__coord_on_heartbeat(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__task_heartbeat *body = mu__body(msg);
    struct mu__roster_task *task = mu__roster_at_node(c->roster, msg->from.node);
    mu_error error;

    if (task != NULL && mu__coord_task_is_connected(task)) {
        note_heartbeat(ctx, c, task);
        note_progress(task, body->progress, task->link.heard_ms);
        if (is_task_stuck(c, task, body->stuck_ms, task->link.heard_ms))
            fail_stuck(ctx, c, task);
    }
    if (check_heartbeat(ctx, c, msg->from.node, task, &error) != 0)
        send_heard(ctx, c, msg->from.node, &error);
    else
        send_heard(ctx, c, msg->from.node, NULL);
}

/* ---- Errors that tasks report, resets ---- */

void mu__coord_on_report(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__task_report *body = mu__body(msg);
    struct mu__roster_task *task =
        mu__coord_requester(ctx, c, msg->from.node, body->token);
    mu_error error;

    if (task == NULL)
        return;
    if (body->code == 0) {
        (void)mu_error_set(&error, -MU_EINVALID, "%s reports an error with code 0",
                           task->name);
        mu__coord_answer(ctx, c, msg->from.node, body->token, &error);
        return;
    }
    (void)mu_error_set(&error, -(int)body->code, "%.*s", (int)body->message.size,
                       (const char *)body->message.data);
    mu__view_copy(body->task.size > 0 ? body->task : mu__view_str(task->name), error.task,
                  sizeof error.task);
    mu__coord_fail(ctx, c, task, &error, COORD_FAILED_OWN);
    mu__coord_answer(ctx, c, msg->from.node, body->token, NULL);
}

void mu__coord_reset(struct mu__ctx *ctx, struct coordination *c,
                     struct mu__roster_task *task)
{
    mu_error error;

    mu__coord_leave_drop(c, task);
    (void)mu_error_set(&error, -MU_EABORTED, "%s was reset", task->name);
    mu__coord_requests_answer(ctx, c, task, -1, &error);
    mu__coord_disconnect(ctx, c, task);
    mu__coord_leave_fail(ctx, c, task, "was reset");
}

void mu__coord_end_former_leases(struct mu__ctx *ctx, struct coordination *c,
                                 const struct coord_peer *peer,
                                 const struct mu__roster_task *task)
{
    if (task == NULL || !mu__coord_task_is_connected(task))
        mu__coord_key_end_leases(ctx, c, peer->incarnation);
}

/* An agent may be in error for another task's failure while its own task is not in ERROR.
 * A task in ERROR may be reset by its next incarnation. */
static int reset_failed_task(struct mu__ctx *ctx, struct coordination *c,
                             const struct coord_peer *peer, mu_error *ret_error)
{
    struct mu__roster_task *task = mu__roster_find(c->roster, peer->type, peer->index);

    if (task != NULL && mu__coord_task_is_connected(task) &&
        task->incarnation != peer->incarnation)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "%s is registered with another incarnation", task->name);
    mu__coord_end_former_leases(ctx, c, peer, task);
    if (task != NULL && task->seen)
        mu__coord_reset(ctx, c, task);
    return 0;
}

void mu__coord_on_reset(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__task_reset *body = mu__body(msg);
    const struct coord_peer *peer = mu__coord_peer(c, msg->from.node);
    mu_error error = {.code = 0};

    if (peer == NULL)
        return;
    (void)reset_failed_task(ctx, c, peer, &error);
    mu__coord_answer(ctx, c, peer->node, body->token, &error);
}

/* ---- Links ---- */

void mu__coord_tasks_node_up(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__node_up *news)
{
    const struct coord_peer *peer = mu__coord_peer(c, news->node);
    struct mu__roster_task *task = mu__roster_find(c->roster, peer->type, peer->index);

    if (task == NULL || task->incarnation != peer->incarnation)
        return;
    if (set_link_up(ctx, c, task, news->node) != 0)
        mu__log(ctx, MU__LOG_ERROR, "out of memory: %s goes unnoticed", task->name);
    else if (mu__coord_task_is_connected(task) && !task->notified &&
             task->notified_count < c->tasks.notified_count)
        mu__coord_task_notify(ctx, c, task);
}

void mu__coord_tasks_node_down(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                               const char *reason)
{
    const struct coord_peer *peer = mu__coord_peer(c, node);
    struct mu__roster_task *task =
        peer == NULL ? NULL : mu__roster_find(c->roster, peer->type, peer->index);
    uint64_t now_ms = mu__coord_clock(ctx, c);

    if (task == NULL)
        return;
    mu__coord_requests_drop(c, task, node);
    mu__coord_leave_update(c, task);
    if (!task->link.up || task->link.node != node)
        return;
    mu__roster_link_down(c->roster, task, now_ms);
    if (!mu__coord_task_is_connected(task))
        return;
    mu__log(ctx, MU__LOG_INFO, "%s: suspect: its link is down: %s", task->name, reason);
    mu__coord_requests_changed(c, task, true);
}

/* ---- Silence ---- */

static void fail_silent(struct mu__ctx *ctx, struct coordination *c,
                        struct mu__roster_task *task)
{
    char what[96];

    (void)snprintf(what, sizeof what, "has been silent for %" PRIu32 " ms",
                   c->config.dead_ms);
    mu__coord_task_lose(ctx, c, task, what);
}

static void fail_unreachable_task(struct mu__ctx *ctx, struct coordination *c,
                                  struct mu__roster_task *task)
{
    char what[96];

    (void)snprintf(what, sizeof what,
                   "is lost: its link has been down for %" PRIu32 " ms",
                   c->config.reconnect_ms);
    mu__coord_task_lose(ctx, c, task, what);
}

static void suspect_silent(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task)
{
    mu__roster_suspect(c->roster, task);
    mu__log(ctx, MU__LOG_INFO, "%s: suspect: silent for %" PRIu32 " ms", task->name,
            c->config.suspect_ms);
    mu__coord_requests_changed(c, task, true);
}

/* The first task of a list by heard_ms; NULL: it is empty. */
static struct mu__roster_task *first_heard(const struct mu__list *list)
{
    return MU__LIST_FIRST(list, struct mu__roster_task, link.by_heard);
}

static struct mu__roster_task *first_down_task(const struct mu__roster *roster)
{
    return MU__LIST_FIRST(&roster->down, struct mu__roster_task, link.by_down);
}

/* The lists are in order of time: only tasks that are due are visited. */
static void judge_silence(struct mu__ctx *ctx, struct coordination *c)
{
    const struct mu__coordination_config *config = &c->config;
    const struct mu__roster *roster = c->roster;
    uint64_t now_ms = mu__coord_clock(ctx, c);
    struct mu__roster_task *task;

    while ((task = first_heard(&roster->heard)) != NULL &&
           task->link.heard_ms + config->suspect_ms <= now_ms)
        suspect_silent(ctx, c, task);
    while ((task = first_heard(&roster->silent)) != NULL &&
           task->link.heard_ms + config->dead_ms <= now_ms)
        fail_silent(ctx, c, task);
    while ((task = first_down_task(roster)) != NULL &&
           task->link.down_ms + config->reconnect_ms <= now_ms)
        fail_unreachable_task(ctx, c, task);
}

void mu__coord_tasks_tick(struct mu__ctx *ctx, struct coordination *c)
{
    judge_silence(ctx, c);
    mu__coord_leave_tick(ctx, c);
}

uint64_t mu__coord_tasks_due_ms(const struct coordination *c)
{
    const struct mu__coordination_config *config = &c->config;
    const struct mu__roster_task *heard = first_heard(&c->roster->heard);
    const struct mu__roster_task *silent = first_heard(&c->roster->silent);
    const struct mu__roster_task *down = first_down_task(c->roster);
    uint64_t due_ms = c->leave.leaving > 0 ? c->leave.due_ms : UINT64_MAX;

    if (heard != NULL)
        due_ms = mu__coord_earlier(due_ms, heard->link.heard_ms + config->suspect_ms);
    if (silent != NULL)
        due_ms = mu__coord_earlier(due_ms, silent->link.heard_ms + config->dead_ms);
    if (down != NULL)
        due_ms = mu__coord_earlier(due_ms, down->link.down_ms + config->reconnect_ms);
    return due_ms;
}

/* ---- start and end ---- */

int mu__coord_tasks_init(struct mu__ctx *ctx, struct coordination *c)
{
    struct mu__task_set set = {0};
    int rv = mu__task_set_parse(mu__view_str(c->config.tasks), NULL, &set);

    (void)ctx;
    if (rv != 0)
        return rv;
    c->roster = mu__roster_new(&set, c->config.recoverable);
    mu__task_set_done(&set);
    if (c->roster == NULL)
        return -MU_ENOMEM;
    mu__coord_leave_init(c);
    return 0;
}

void mu__coord_tasks_done(struct coordination *c)
{
    mu__roster_free(c->roster);
    c->roster = NULL;
}

void mu__coord_tasks_lost(struct mu__ctx *ctx, struct coordination *c)
{
    mu__coord_requests_forget(c);
    mu__roster_clear(c->roster, mu__coord_clock(ctx, c));
    for (uint32_t i = 0; i < c->roster->count; i++)
        mu__coord_leave_drop(c, c->roster->tasks[i]);
    for (uint32_t i = 0; i < c->roster->count; i++)
        mu__coord_leave_left(c, c->roster->tasks[i], false);
    c->tasks.fresh = 0;
    c->tasks.gathering = false;
}

/* Versions of this epoch are higher than those of any former host. */
void mu__coord_tasks_lead(struct mu__ctx *ctx, struct coordination *c)
{
    mu__coord_tasks_lost(ctx, c);
    if (c->roster->version < c->epoch << 32)
        c->roster->version = c->epoch << 32;
    for (uint32_t i = 0; i < c->roster->count; i++)
        if (c->roster->tasks[i]->failure.ended != NULL)
            mu__coord_fail_ended(ctx, c, c->roster->tasks[i]);
}

void mu__coord_tasks_stop(struct mu__ctx *ctx, struct coordination *c)
{
    mu_error error;

    if (c->config.store->shared)
        return;
    (void)mu_error_set(&error, -MU_EUNAVAILABLE,
                       "the coordination service at %s has stopped", c->config.task);
    mu__coord_requests_stop(ctx, c, &error);
}
