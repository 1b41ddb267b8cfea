/* Calls of threads to the actors of their node.
 *
 * When the node begins to close, no call is posted any more, and the actors that hold
 * calls complete them and end. A call may still be lost with the mailbox or the inbox
 * that it waits in, when the node has no time for them. So every call is in a list from
 * before it is posted, and the calls that are still in it when all else is closed are
 * completed then.
 *
 * The state in which calls are refused is entered once, on the loop. A poster announces
 * itself in `posting` before it looks at the state, and the loop enters the state
 * before it looks at `posting`; both are sequentially consistent, so either the poster
 * sees the state or the loop sees the poster, and waits for it: a matter of
 * nanoseconds. */
#include "node/node.h"

#include "actors/messages.h"
#include "actors/packing.h"
#include "runtime/uv/process.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

bool mu__node_on_loop(const mu_node *node)
{
    uv_thread_t self = uv_thread_self();

    /* In a child that was forked a new thread may have the number of the loop's. */
    return uv_thread_equal(&self, &node->thread) != 0 && !mu__node_is_forked(node);
}

static void list_add(mu_node *node, struct mu__pending *pending)
{
    uv_mutex_lock(&node->lock);
    mu__list_prepend(&node->calls.pending, &pending->in_list);
    uv_mutex_unlock(&node->lock);
}

static void list_remove(mu_node *node, struct mu__pending *pending)
{
    uv_mutex_lock(&node->lock);
    mu__list_remove(&node->calls.pending, &pending->in_list);
    uv_mutex_unlock(&node->lock);
}

static void complete_pending(struct mu__call *call)
{
    struct mu__pending *pending = call->owner;

    list_remove(pending->node, pending);
    pending->finished(pending);
}

void mu__node_drop_msg(struct mu__msg *msg)
{
    if (msg == NULL)
        return;
    mu__buf_unref(msg->backing);
    free(msg);
}

bool mu__node_is_forked(const mu_node *node)
{
    return mu__process_forks() != node->forks;
}

void mu__node_say_closed(const mu_node *node, int code, mu_error *ret_error)
{
    if (mu__node_is_forked(node))
        (void)mu_error_set(ret_error, code,
                           "this process was forked after %s was opened: the node is "
                           "that of its parent alone",
                           node->member.task);
    else
        (void)mu_error_set(ret_error, code, "%s is %s", node->member.task,
                           mu_strerror(code));
}

/* Between these two, when the first has returned true, the world is not closed. */
static bool begin_post(mu_node *node)
{
    if (mu__node_is_forked(node))
        return false;
    atomic_fetch_add(&node->calls.posting, 1);
    if (!mu__node_refuses_calls(node))
        return true;
    atomic_fetch_sub(&node->calls.posting, 1);
    return false;
}

static void end_post(mu_node *node)
{
    atomic_fetch_sub(&node->calls.posting, 1);
}

void mu__node_await_posters(mu_node *node)
{
    while (atomic_load(&node->calls.posting) > 0)
        (void)sched_yield();
}

/* Takes msg when it returns 0. */
static int post_to_actor(mu_node *node, uint32_t actor_number, struct mu__msg *msg)
{
    msg->from = (mu__pid){MU__NODE_SELF, 0};
    msg->to = (mu__pid){MU__NODE_SELF, actor_number};
    return mu__world_uv_post(node->world, msg);
}

int mu__node_try_post(mu_node *node, uint32_t actor_number, struct mu__msg *msg)
{
    int rv;

    if (!begin_post(node))
        return -MU_ECLOSED;
    rv = post_to_actor(node, actor_number, msg);
    end_post(node);
    return rv;
}

int mu__node_post(mu_node *node, uint32_t actor_number, struct mu__msg *msg)
{
    int rv;

    if (msg == NULL)
        return -MU_ENOMEM;
    rv = mu__node_try_post(node, actor_number, msg);
    if (rv != 0)
        mu__node_drop_msg(msg);
    return rv;
}

static struct mu__msg *ended_msg(const char *type, unsigned index, const char *what)
{
    struct mu__task_ended body = {
        .type = mu__view_str(type),
        .index = index,
        .what = mu__view_str(what),
    };
    struct mu__msg *msg = mu__msg_heap(MU__TASK_ENDED, sizeof body);

    if (msg == NULL)
        return NULL;
    msg->backing = mu__pack_two(&body.type, &body.what);
    if (msg->backing == NULL) {
        mu__node_drop_msg(msg);
        return NULL;
    }
    memcpy(msg->body, &body, sizeof body);
    return msg;
}

void mu__node_task_ended(mu_node *node, const char *type, unsigned index,
                         const char *what)
{
    (void)mu__node_post(node, MU__SUPERVISOR, ended_msg(type, index, what));
    (void)mu__node_post(node, MU__COORDINATION, ended_msg(type, index, what));
}

int mu__node_call_later(mu_node *node, uint32_t actor_number, struct mu__pending *pending,
                        struct mu__call *call,
                        void (*finished)(struct mu__pending *pending))
{
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));
    struct mu__call_msg *body;
    int rv;

    if (msg == NULL)
        return -MU_ENOMEM;
    pending->node = node;
    pending->call = call;
    pending->finished = finished;
    call->complete = complete_pending;
    call->owner = pending;
    body = mu__body(msg);
    body->call = call;
    if (!begin_post(node)) {
        mu__node_drop_msg(msg);
        return -MU_ECLOSED;
    }
    list_add(node, pending);
    rv = post_to_actor(node, actor_number, msg);
    if (rv != 0) {
        list_remove(node, pending);
        mu__node_drop_msg(msg);
    }
    end_post(node);
    return rv;
}

static void wake_pending(struct mu__pending *pending)
{
    uv_sem_post(&pending->woken);
}

/* On the loop's thread the call is completed by the turns that are taken here; once the
 * node is being closed there are none. */
static void await_pending(mu_node *node, struct mu__pending *pending)
{
    if (!mu__node_on_loop(node)) {
        mu__spin_sem_wait(&node->calls.spin, &pending->woken, pending->call->spun_ns);
        return;
    }
    while (uv_sem_trywait(&pending->woken) != 0)
        if (!mu__world_uv_turn(node->world)) {
            list_remove(node, pending);
            pending->call->code = -MU_ECLOSED;
            mu__node_say_closed(node, -MU_ECLOSED, &pending->call->error);
            return;
        }
}

static int wait_for_call(mu_node *node, uint32_t actor_number, struct mu__call *call)
{
    struct mu__pending pending;
    int rv;

    if (uv_sem_init(&pending.woken, 0) != 0)
        return mu_error_set(&call->error, -MU_ENOMEM, "no memory to wait");
    rv = mu__node_call_later(node, actor_number, &pending, call, wake_pending);
    if (rv == 0) {
        await_pending(node, &pending);
        rv = call->code;
        if (rv != 0)
            mu__node_note_error(node, &call->error);
    } else {
        mu__node_say_closed(node, rv, &call->error);
    }
    uv_sem_destroy(&pending.woken);
    if (rv == -MU_ECLOSED && node->lifecycle.superseded_by[0] != '\0')
        rv = mu_error_set(&call->error, node->lifecycle.superseded_code, "%s",
                          node->lifecycle.superseded_by);
    return rv;
}

int mu__node_may_wait(const mu_node *node, mu_error *ret_error)
{
    if (!mu__node_on_loop(node))
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "this call waits, so it must not be made on a loop's thread "
                        "(nor by an inline function)");
}

static int call_held(mu_node *node, uint32_t actor_number, struct mu__call *call)
{
    int rv;

    mu__node_ref(node);
    rv = wait_for_call(node, actor_number, call);
    mu__node_unref(node);
    return rv;
}

int mu__node_call(mu_node *node, uint32_t actor_number, struct mu__call *call,
                  mu_error *ret_error)
{
    int rv = mu__node_may_wait(node, &call->error);

    if (rv == 0)
        rv = call_held(node, actor_number, call);
    if (rv != 0 && ret_error != NULL)
        *ret_error = call->error;
    return rv;
}

int mu__node_call_at_once(mu_node *node, uint32_t actor_number, struct mu__call *call)
{
    if (mu__node_on_loop(node) && !mu__node_refuses_calls(node) &&
        !mu__kernel_is_in_turn(node->member.kernel) && mu__world_uv_turn(node->world))
        return call_held(node, actor_number, call);
    return mu__node_call(node, actor_number, call, NULL);
}
