/* The life of a node: its states, and how it closes.
 *
 * Closing is three steps on the loop. LEAVING: goodbye was said, peers hang up; calls
 * that wait are completed, so that functions which wait in one come to an end, and no
 * run and no call begins any more. DRAINING: functions that run are told to stop, and
 * waited for. CLOSED: all parts close, and the last close callback frees the node. */
#include "node/node.h"

#include "actors/job/job.h"
#include "actors/messages.h"
#include "actors/user/office.h"
#include "node/loop_thread.h"
#include "runtime/message/arguments.h"
#include "runtime/uv/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAVE_MS = 500, /* for peers to hang up */
    CLOSING_STEP_MS = 5
};

/* ---- states ---- */

#define TO(state) (1U << MU__NODE_##state)

static const unsigned legal_moves[] = {
    [MU__NODE_OPENING] = TO(RUNNING) | TO(CLOSED),
    [MU__NODE_RUNNING] = TO(SUPERSEDED) | TO(LEAVING),
    [MU__NODE_SUPERSEDED] = TO(LEAVING),
    [MU__NODE_LEAVING] = TO(DRAINING),
    [MU__NODE_DRAINING] = TO(CLOSED) | TO(ABANDONED),
    [MU__NODE_CLOSED] = 0,
    [MU__NODE_ABANDONED] = 0,
};

static enum mu__node_state get_node_state(const mu_node *node)
{
    return (enum mu__node_state)atomic_load(&node->lifecycle.state);
}

bool mu__node_move(mu_node *node, enum mu__node_state to)
{
    if ((legal_moves[get_node_state(node)] & 1U << to) == 0)
        return false;
    atomic_store(&node->lifecycle.state, (int)to);
    return true;
}

bool mu__node_refuses_calls(const mu_node *node)
{
    return get_node_state(node) >= MU__NODE_SUPERSEDED;
}

/* ---- memory ---- */

static void free_lists(mu_node *node)
{
    while (node->program.settings != NULL) {
        struct mu__setting *next = node->program.settings->next;

        free(node->program.settings->key);
        free(node->program.settings->value);
        free(node->program.settings);
        node->program.settings = next;
    }
    while (node->program.entries != NULL) {
        struct mu__program *next = node->program.entries->next;

        free(node->program.entries);
        node->program.entries = next;
    }
}

void mu__node_free(mu_node *node)
{
    free_lists(node);
    if (node->coordinator.unclosed != NULL)
        node->coordinator.drop(node->coordinator.unclosed);
    mu__error_data_done(&node->program.error_data);
    free(node->program.distribute);
    free(node->journal.path);
    mu__own_proof_close(node->network.proof);
    mu__service_host_done(&node->service_host);
    mu_cluster_free(node->cluster.now);
    uv_cond_destroy(&node->journal.moved);
    uv_mutex_destroy(&node->cluster.lock);
    uv_mutex_destroy(&node->lock);
    free(node);
}

void mu__node_ref(mu_node *node)
{
    atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
}

void mu__node_unref(mu_node *node)
{
    if (atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) == 1)
        mu__node_free(node);
}

mu_node *mu_node_ref(mu_node *node)
{
    if (node != NULL)
        mu__node_ref(node);
    return node;
}

void mu_node_unref(mu_node *node)
{
    if (node != NULL)
        mu__node_unref(node);
}

/* Release the node when loop, world and wire are closed. An abandoned one stays: a thread
 * that did not end may use it. */
static void drop_closed_node(mu_node *node)
{
    if (get_node_state(node) != MU__NODE_ABANDONED)
        mu__node_unref(node);
}

/* ---- teardown ---- */

static void close_left_calls(mu_node *node)
{
    for (;;) {
        struct mu__pending *pending;

        uv_mutex_lock(&node->lock);
        pending = MU__LIST_FIRST(&node->calls.pending, struct mu__pending, in_list);
        uv_mutex_unlock(&node->lock);
        if (pending == NULL)
            return;
        mu__call_complete(pending->call,
                          mu_error_set(&pending->call->error, -MU_ECLOSED,
                                       "%s is being closed", node->member.task));
    }
}

void mu__node_part_closed(void *arg)
{
    mu_node *node = arg;

    node->lifecycle.open_handles--;
    if (node->lifecycle.open_handles > 0)
        return;
    close_left_calls(node);
    if (node->loop != &node->own_loop) {
        void (*closed_cb)(void *) = node->lifecycle.closed_cb;
        void *closed_user = node->lifecycle.closed_user;

        mu__loop_thread_end();
        drop_closed_node(node);
        if (closed_cb != NULL)
            closed_cb(closed_user);
    }
}

static void on_node_handle_closed(uv_handle_t *handle)
{
    mu__node_part_closed(handle->data);
}

void mu__node_close_files(mu_node *node)
{
    mu__storage_uv_close(node->journal.storage);
    node->journal.storage = NULL;
    mu__service_host_close_file(&node->service_host);
}

void mu__node_teardown(mu_node *node)
{
    bool busy = mu__world_uv_busy(node->world) > 0;

    (void)mu__node_move(node, busy ? MU__NODE_ABANDONED : MU__NODE_CLOSED);
    mu__member_stop(&node->member);
    mu__node_close_files(node);
    node->lifecycle.open_handles = 5;
    mu__node_stop_discovery(node);
    node->lifecycle.open_handles += node->discovery.handle != NULL;
    node->lifecycle.open_handles +=
        mu__service_host_close_http(&node->service_host, mu__node_part_closed, node);
    mu__world_uv_close(node->world, mu__node_part_closed, node);
    if (busy)
        mu__world_uv_abandon(node->world);
    mu__node_wire_close(&node->network.wire, mu__node_part_closed, node);
    uv_close((uv_handle_t *)&node->lifecycle.timer, on_node_handle_closed);
    uv_close((uv_handle_t *)&node->lifecycle.stop, on_node_handle_closed);
    uv_close((uv_handle_t *)&node->lifecycle.reread, on_node_handle_closed);
}

/* ---- the steps of closing ---- */

static void *worker_state(mu_node *node)
{
    return mu__actor_state(node->member.kernel, (mu__pid){MU__NODE_SELF, MU__WORKER});
}

static void *actors_state(mu_node *node)
{
    return mu__actor_state(node->member.kernel, (mu__pid){MU__NODE_SELF, MU__ACTORS});
}

static void drain_node(mu_node *node)
{
    int64_t timeout_ms = atomic_load(&node->lifecycle.timeout_ms);
    uint64_t spent_ms = uv_now(node->loop) - node->lifecycle.began_ms;
    struct mu__kernel_counters counters;

    mu__worker_cancel_all(worker_state(node));
    (void)mu__worker_running(worker_state(node), node->lifecycle.running,
                             sizeof node->lifecycle.running);
    mu__kernel_counters(node->member.kernel, &counters);
    if ((mu__world_uv_busy(node->world) == 0 && counters.queued == 0) ||
        (timeout_ms >= 0 && spent_ms >= (uint64_t)timeout_ms))
        mu__node_teardown(node);
}

static void on_closing(uv_timer_t *timer)
{
    mu_node *node = timer->data;

    if (mu__links_count_up(node->member.links) == 0 ||
        uv_now(node->loop) - node->lifecycle.began_ms >= LEAVE_MS)
        (void)mu__node_move(node, MU__NODE_DRAINING);
    if (get_node_state(node) == MU__NODE_DRAINING)
        drain_node(node);
}

/* End the actors that hold calls, which they complete then, with -MU_ECLOSED. By
 * messages, so that it comes after all that was posted before. The office of actors ends
 * the client. False: out of memory. */
static bool end_callees(mu_node *node)
{
    static const uint32_t callees[] = {MU__ACTORS, MU__VARIABLES, MU__JOB, MU__AGENT};

    for (size_t i = 0; i < sizeof callees / sizeof callees[0]; i++) {
        struct mu__msg *msg = mu__msg_heap(MU__END, sizeof(struct mu__end));

        if (msg == NULL)
            return false;
        msg->to = (mu__pid){MU__NODE_SELF, callees[i]};
        ((struct mu__end *)mu__body(msg))->reason = mu__view_str("the node is closing");
        (void)mu__world_uv_post(node->world, msg);
    }
    return true;
}

/* Without memory for the messages it is tried again in the next step. */
static void on_leaving(uv_timer_t *timer)
{
    mu_node *node = timer->data;

    if (end_callees(node))
        (void)uv_timer_start(timer, on_closing, 0, CLOSING_STEP_MS);
}

/* Works that no thread has taken, by who gave them: closures' runs, and actors. */
static void free_unstarted(mu_node *node)
{
    struct mu__list all = mu__world_uv_start_no_work(node->world);
    struct mu__list runs = {0};
    struct mu__list actors = {0};
    struct mu__list_node *first;

    while ((first = mu__list_pop(&all)) != NULL)
        mu__list_append(MU__LIST_ENTRY(first, struct mu__work, node)->owner.actor ==
                                MU__ACTORS
                            ? &actors
                            : &runs,
                        first);
    mu__worker_leave(worker_state(node), mu__kernel_pool(node->member.kernel), runs);
    mu__actors_leave(actors_state(node), actors);
}

/* No run begins once goodbye is said: from then on other workers run the closures that
 * had not begun here. */
static void begin_closing(mu_node *node)
{
    if (!mu__node_move(node, MU__NODE_LEAVING))
        return;
    mu__node_stop_discovery(node);
    mu__node_await_posters(node);
    free_unstarted(node);
    uv_update_time(node->loop);
    node->lifecycle.began_ms = uv_now(node->loop);
    node->member.fails = atomic_load(&node->lifecycle.fails);
    mu__member_leave(&node->member, "it is closing");
    (void)uv_timer_start(&node->lifecycle.timer, on_leaving, 0, CLOSING_STEP_MS);
}

/* Calls that wait, and later ones, fail with the reason, so that the program ends, and
 * closes the node. */
void mu__node_refuse_all(mu_node *node, int code, const char *reason)
{
    if (get_node_state(node) != MU__NODE_RUNNING)
        return;
    node->lifecycle.superseded_code = code;
    (void)snprintf(node->lifecycle.superseded_by, sizeof node->lifecycle.superseded_by,
                   "%s", reason);
    (void)mu__node_move(node, MU__NODE_SUPERSEDED);
    mu__node_await_posters(node);
    if (!end_callees(node))
        mu__node_log(node, MU_LOG_ERROR, "node", "out of memory: calls that wait go on");
}

void mu__node_superseded(void *owner, const char *reason)
{
    mu__node_refuse_all(owner, -MU_EEXISTS, reason);
}

static void on_stop(uv_async_t *async)
{
    begin_closing(async->data);
}

static void on_reread(uv_async_t *async)
{
    mu_node *node = async->data;

    mu__own_proof_read_again(node->network.proof);
}

void mu__node_reread_proof(mu_node *node)
{
    (void)uv_async_send(&node->lifecycle.reread);
}

/* Only the first async of a loop can fail. */
int mu__lifecycle_open(mu_node *node, mu_error *ret_error)
{
    struct mu__lifecycle *lifecycle = &node->lifecycle;

    if (uv_async_init(node->loop, &lifecycle->stop, on_stop) != 0 ||
        uv_async_init(node->loop, &lifecycle->reread, on_reread) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "no handle left for the node's loop");
    (void)uv_timer_init(node->loop, &lifecycle->timer);
    lifecycle->stop.data = node;
    lifecycle->reread.data = node;
    lifecycle->timer.data = node;
    return 0;
}

/* ---- closing, from outside ---- */

static void detach_node_coordinator(mu_node *node, int64_t timeout_ms)
{
    void (*detach)(mu_node *, int64_t);

    uv_mutex_lock(&node->lock);
    detach = node->coordinator.detach;
    uv_mutex_unlock(&node->lock);
    if (detach != NULL)
        detach(node, timeout_ms);
}

static void end_loop_thread(mu_node *node)
{
    (void)uv_async_send(&node->lifecycle.stop);
    (void)uv_thread_join(&node->thread);
    (void)uv_loop_close(&node->own_loop);
}

void mu__node_end_opening(mu_node *node)
{
    atomic_store(&node->lifecycle.timeout_ms, 0);
    end_loop_thread(node);
}

int mu_node_close(mu_node *node, int64_t timeout_ms, mu_error *ret_error)
{
    int rv = 0;

    if (node == NULL)
        return 0;
    if (mu__node_is_forked(node)) {
        mu__node_say_closed(node, -MU_EPRECONDITION, ret_error);
        return -MU_EPRECONDITION;
    }
    if (node->loop != &node->own_loop || mu__node_on_loop(node))
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "a node on the program's loop is closed with "
                            "mu_node_close_async, and no node on its own thread");
    if (!atomic_load(&node->lifecycle.keeps_run))
        mu__node_leave_run(node);
    detach_node_coordinator(node, timeout_ms);
    atomic_store(&node->lifecycle.timeout_ms, timeout_ms);
    end_loop_thread(node);
    if (get_node_state(node) == MU__NODE_ABANDONED)
        rv = mu_error_set(ret_error, -MU_EDEADLINE,
                          "function \"%s\" on %s did not end within %lld ms",
                          node->lifecycle.running, node->member.task,
                          (long long)timeout_ms);
    drop_closed_node(node);
    return rv;
}

void mu_node_close_async(mu_node *node, void (*closed)(void *user), void *user)
{
    MU__REQUIRE_OR(, node);
    if (node->loop == &node->own_loop || !mu__node_on_loop(node)) {
        mu__node_log(node, MU_LOG_ERROR, "node",
                     "mu_node_close_async is for nodes on the program's loop, and called "
                     "on its thread: the node stays open");
        return;
    }
    node->lifecycle.closed_cb = closed;
    node->lifecycle.closed_user = user;
    atomic_store(&node->lifecycle.timeout_ms, -1);
    detach_node_coordinator(node, 0);
    /* Otherwise lifecycle.stop is sent when the store has recorded it. */
    if (!mu__node_leave_run_later(node))
        begin_closing(node);
}
