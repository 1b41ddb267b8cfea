/* The public coordinator: a thin layer over the client actor.
 *
 * Scheduling does not wait for the loop: it looks at two counters and the session's
 * phase, packs the arguments on the caller's thread and posts one message. */
#include "node/coordinator.h"

#include "actors/client.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "node/node.h"

#include <stdlib.h>
#include <string.h>

enum { CLOSE_MS = 5000, DONE_MS = 60000 };

/* A call that nobody waits for, made on the loop's own thread. */
struct errand {
    struct mu__pending pending;
    struct mu__client_call call;
    mu_coordinator *coordinator;
};

/* The raising of an error for a program that cannot wait, because it is on the loop. */
enum raising { RAISING_NOTHING, RAISING_ASKED, RAISING_ANSWERED };

struct mu_coordinator {
    mu_node *node;              /* held: see mu__node_ref */
    atomic_bool detached;       /* the node is being closed */
    struct mu__session session;
    enum raising raising;       /* loop's thread only, as what follows */
    int raised;
    mu_error raised_error;
};

/* ---- life ---- */

static int client_call(mu_node *node, struct mu__client_call *call, int64_t limit_ms,
                       mu_error *ret_error)
{
    int rv;

    call->call.limit_ms = limit_ms;
    rv = mu__node_call(node, MU__CLIENT, &call->call);
    if (rv != 0 && ret_error != NULL)
        *ret_error = call->call.error;
    return rv;
}

static mu_node *node_of(mu_coordinator *c, mu_error *ret_error)
{
    if (!atomic_load_explicit(&c->detached, memory_order_acquire))
        return c->node;
    (void)mu_error_set(ret_error, -MU_ECLOSED, "the coordinator's node is closed");
    return NULL;
}

mu_node *mu__coordinator_node(const mu_coordinator *coordinator)
{
    return coordinator->node;
}

/* One at a time. */
static bool enlist(mu_coordinator *c)
{
    bool is_free;

    uv_mutex_lock(&c->node->lock);
    is_free = c->node->coordinator == NULL;
    if (is_free)
        c->node->coordinator = c;
    uv_mutex_unlock(&c->node->lock);
    return is_free;
}

/* From here on its node cannot find it. */
static void unlist(mu_coordinator *c)
{
    uv_mutex_lock(&c->node->lock);
    if (c->node->coordinator == c)
        c->node->coordinator = NULL;
    uv_mutex_unlock(&c->node->lock);
}

static void coordinator_free(mu_coordinator *c)
{
    unlist(c);
    mu__node_unref(c->node);
    free(c);
}

/* ---- errands of the loop's thread ---- */

static int run_errand(mu_coordinator *c, mu_node *node, int operation, bool at_once,
                      void (*finished)(struct mu__pending *pending))
{
    struct errand *errand = calloc(1, sizeof *errand);
    int rv;

    if (errand == NULL)
        return -MU_ENOMEM;
    errand->coordinator = c;
    errand->call.call.operation = operation;
    errand->call.call.limit_ms = -1;
    errand->call.session = &c->session;
    errand->call.at_once = at_once;
    errand->pending.call = &errand->call.call;
    errand->pending.finished = finished;
    rv = mu__node_call_later(node, MU__CLIENT, &errand->pending);
    if (rv != 0)
        free(errand);
    return rv;
}

static void finished_opening(struct mu__pending *pending)
{
    free(pending);
}

static void finished_closing(struct mu__pending *pending)
{
    struct errand *errand = (struct errand *)pending;

    coordinator_free(errand->coordinator);
    free(errand);
}

static void finished_raising(struct mu__pending *pending)
{
    struct errand *errand = (struct errand *)pending;
    mu_coordinator *c = errand->coordinator;

    c->raising = RAISING_ANSWERED;
    c->raised = errand->call.call.code;
    c->raised_error = errand->call.call.error;
    free(errand);
}

/* The error once it may be told, -MU_EAGAIN until then, 0 when there is none any more. */
static int raise_on_loop(mu_coordinator *c, mu_node *node, mu_error *ret_error)
{
    if (c->raising == RAISING_ANSWERED) {
        c->raising = RAISING_NOTHING;
        if (c->raised != 0 && ret_error != NULL)
            *ret_error = c->raised_error;
        return c->raised;
    }
    if (c->raising == RAISING_NOTHING &&
        run_errand(c, node, MU__CLIENT_RAISE, false, finished_raising) == 0)
        c->raising = RAISING_ASKED;
    return mu_error_set(ret_error, -MU_EAGAIN,
                        "a closure failed: the others are being cancelled");
}

/* ---- opening and closing ---- */

static int open_session(mu_coordinator *c, mu_node *node, int64_t limit_ms,
                        mu_error *ret_error)
{
    struct mu__client_call call = {
        .call.operation = MU__CLIENT_OPEN,
        .session = &c->session,
    };
    int rv;

    if (!mu__node_on_loop(node) || limit_ms != 0)
        return client_call(node, &call, limit_ms, ret_error);
    rv = run_errand(c, node, MU__CLIENT_OPEN, true, finished_opening);
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "%s is %s", mu_node_task(node),
                                      mu_strerror(rv));
}

int mu_coordinator_open(mu_node *node, int64_t limit_ms, mu_error *ret_error,
                        mu_coordinator **ret_coordinator)
{
    mu_coordinator *c = calloc(1, sizeof *c);
    int rv;

    if (c == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a coordinator");
    c->node = node;
    if (!enlist(c)) {
        free(c);
        return mu_error_set(ret_error, -MU_EEXISTS,
                            "the coordinator of %s is open already", mu_node_task(node));
    }
    mu__node_ref(node);
    rv = open_session(c, node, limit_ms, ret_error);
    if (rv != 0) {
        coordinator_free(c);
        return rv;
    }
    *ret_coordinator = c;
    return 0;
}

/* On the node's side; true when the client actor has let go of the session. */
static bool close_session(mu_node *node, int64_t limit_ms)
{
    struct mu__client_call call = {.call.operation = MU__CLIENT_CLOSE};

    return client_call(node, &call, limit_ms, NULL) == 0;
}

/* The client actor may still write to the session: the memory goes with the node's. */
static void leave_to_node(mu_coordinator *c)
{
    mu_node *node = c->node;

    uv_mutex_lock(&node->lock);
    node->orphan = c;
    uv_mutex_unlock(&node->lock);
    mu__node_unref(node);
}

/* On the loop's thread nothing can be waited for: the memory goes when all has been
 * cancelled. */
static void close_later(mu_coordinator *c)
{
    if (run_errand(c, c->node, MU__CLIENT_CLOSE, false, finished_closing) == 0)
        unlist(c);
    else
        leave_to_node(c);
}

/* True when nothing refers to the session any more. */
static bool end_session(mu_coordinator *c)
{
    if (!atomic_load(&c->detached) && close_session(c->node, CLOSE_MS))
        return true;
    return c->node->state == MU__NODE_GONE;
}

void mu_coordinator_close(mu_coordinator *c)
{
    if (c == NULL)
        return;
    if (mu__node_on_loop(c->node) && !atomic_load(&c->detached)) {
        close_later(c);
        return;
    }
    if (end_session(c))
        coordinator_free(c);
    else
        leave_to_node(c);
}

void mu__coordinator_detach(mu_node *node, int64_t limit_ms)
{
    bool is_open;

    /* Outside of the lock its owner may free it. */
    uv_mutex_lock(&node->lock);
    is_open = node->coordinator != NULL && node->coordinator != node->orphan;
    if (is_open)
        atomic_store_explicit(&node->coordinator->detached, true, memory_order_release);
    uv_mutex_unlock(&node->lock);

    if (is_open && !mu__node_on_loop(node))
        (void)close_session(node, limit_ms < 0 || limit_ms > CLOSE_MS ? CLOSE_MS
                                                                      : limit_ms);
}

/* ---- scheduling ---- */

static int raise_error(mu_node *node, int64_t limit_ms, mu_error *ret_error)
{
    struct mu__client_call call = {
        .call.operation = MU__CLIENT_RAISE,
        .at_once = limit_ms == 0,
    };

    return client_call(node, &call, limit_ms == 0 ? -1 : limit_ms, ret_error);
}

static int wait_for_room(mu_node *node, int64_t limit_ms, mu_error *ret_error)
{
    struct mu__client_call call = {.call.operation = MU__CLIENT_ROOM};

    if (limit_ms == 0)
        return mu_error_set(ret_error, -MU_EAGAIN,
                            "%u closures are scheduled and not resolved, which is the "
                            "most", node->queue_max);
    return client_call(node, &call, limit_ms, ret_error);
}

/* An error that was asked for on the loop is pending until it was told, although the
 * session is fine again by then. */
static bool has_error(const mu_coordinator *c, const mu_node *node)
{
    return atomic_load_explicit(&c->session.phase, memory_order_acquire) !=
               MU__SESSION_FINE ||
           (mu__node_on_loop(node) && c->raising != RAISING_NOTHING);
}

static int raise_pending(mu_coordinator *c, mu_node *node, int64_t limit_ms,
                         mu_error *ret_error)
{
    return mu__node_on_loop(node) ? raise_on_loop(c, node, ret_error)
                                  : raise_error(node, limit_ms, ret_error);
}

/* Until there is room and no error is pending; 0, or why nothing can be scheduled. */
static int admit(mu_coordinator *c, mu_node *node, int64_t limit_ms, mu_error *ret_error)
{
    for (;;) {
        uint64_t scheduled;
        int rv;

        if (has_error(c, node)) {
            rv = raise_pending(c, node, limit_ms, ret_error);
            if (rv != 0)
                return rv;
            continue;
        }
        scheduled = atomic_load_explicit(&c->session.scheduled, memory_order_relaxed);
        if (scheduled - atomic_load_explicit(&c->session.resolved, memory_order_relaxed) <
            node->queue_max)
            return 0;
        rv = wait_for_room(node, limit_ms, ret_error);
        if (rv != 0)
            return rv;
    }
}

/* One buffer for the arguments' raw bytes (which are aligned, so they come first) and
 * their msgpack part. */
static int pack_args(struct mu__msg *msg, const mu_value *args, mu_error *ret_error)
{
    struct mu__schedule *body = (void *)msg->body;
    uint32_t head_size = 0;
    uint32_t tail_size = 0;

    if (args == NULL)
        return 0;
    if (mu__value_measure(args, &head_size, &tail_size) != 0)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "the arguments are too deep or too large");
    if (head_size > MU__VALUE_BYTES_MAX || tail_size > MU__VALUE_BYTES_MAX - head_size)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "the arguments have %llu bytes, at most %d are sent",
                            (unsigned long long)head_size + tail_size,
                            MU__VALUE_BYTES_MAX);
    msg->backing = mu__pack_value(args, &body->args);
    if (msg->backing == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for the arguments");
    return 0;
}

/* A SCHEDULE message, with the function's name behind its body. */
static struct mu__msg *closure_new(struct mu__view function)
{
    struct mu__msg *msg =
        mu__msg_heap(MU__SCHEDULE, sizeof(struct mu__schedule) + function.size);
    struct mu__schedule *body;

    if (msg == NULL)
        return NULL;
    body = (void *)msg->body;
    memcpy(body + 1, function.data, function.size);
    body->function = (struct mu__view){body + 1, function.size};
    return msg;
}

static void msg_drop(struct mu__msg *msg)
{
    mu__buf_unref(msg->backing);
    free(msg);
}

static int post_closure(mu_coordinator *c, mu_node *node, struct mu__msg *msg,
                        mu_error *ret_error)
{
    int rv;

    atomic_fetch_add_explicit(&c->session.scheduled, 1, memory_order_release);
    rv = mu__node_post(node, MU__CLIENT, msg);
    if (rv == 0)
        return 0;
    atomic_fetch_sub_explicit(&c->session.scheduled, 1, memory_order_release);
    return mu_error_set(ret_error, rv, "%s is %s", mu_node_task(node), mu_strerror(rv));
}

int mu_coordinator_schedule(mu_coordinator *c, const char *function, const mu_value *args,
                            int64_t limit_ms, mu_error *ret_error,
                            mu_remote_value **ret_value)
{
    struct mu__view name = mu__view_str(function);
    mu_node *node = node_of(c, ret_error);
    mu_remote_value *future = NULL;
    struct mu__msg *msg;
    int rv;

    if (node == NULL)
        return -MU_ECLOSED;
    if (name.size == 0 || name.size > MU__FUNCTION_NAME_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a function's name has 1 to %d bytes, \"%.80s\" has %u",
                            MU__FUNCTION_NAME_MAX, function, name.size);
    rv = admit(c, node, limit_ms, ret_error);
    if (rv != 0)
        return rv;
    msg = closure_new(name);
    if (msg == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a closure");
    rv = pack_args(msg, args, ret_error);
    if (rv == 0 && ret_value != NULL) {
        future = mu__future_new(node);
        if (future == NULL)
            rv = mu_error_set(ret_error, -MU_ENOMEM, "no memory for a remote value");
    }
    if (rv != 0) {
        msg_drop(msg);
        return rv;
    }
    ((struct mu__schedule *)(void *)msg->body)->token = (uint64_t)(uintptr_t)future;
    rv = post_closure(c, node, msg, ret_error);
    if (rv != 0) {
        mu_remote_value_free(future);
        mu_remote_value_free(future);
        return rv;
    }
    if (ret_value != NULL)
        *ret_value = future;
    return 0;
}

/* ---- waiting ---- */

int mu_coordinator_join(mu_coordinator *c, int64_t limit_ms, mu_error *ret_error)
{
    struct mu__client_call call = {.call.operation = MU__CLIENT_JOIN};
    mu_node *node = node_of(c, ret_error);

    return node == NULL ? -MU_ECLOSED : client_call(node, &call, limit_ms, ret_error);
}

int mu_coordinator_done(mu_coordinator *c, mu_error *ret_error, int *ret_done)
{
    mu_node *node = node_of(c, ret_error);
    int rv = 0;

    if (node == NULL)
        return -MU_ECLOSED;
    if (has_error(c, node))
        rv = raise_pending(c, node, DONE_MS, ret_error);
    if (rv == 0)
        *ret_done = atomic_load_explicit(&c->session.scheduled, memory_order_relaxed) ==
                    atomic_load_explicit(&c->session.resolved, memory_order_acquire);
    return rv;
}

void mu_coordinator_count(mu_coordinator *c, mu_coordinator_counts *ret_counts)
{
    const struct mu__session *s = &c->session;
    mu_coordinator_counts counts;

    counts.finished = atomic_load_explicit(&s->finished, memory_order_acquire);
    counts.failed = atomic_load_explicit(&s->failed, memory_order_acquire);
    counts.cancelled = atomic_load_explicit(&s->cancelled, memory_order_acquire);
    counts.retried = atomic_load_explicit(&s->retried, memory_order_acquire);
    counts.scheduled = atomic_load_explicit(&s->scheduled, memory_order_acquire);
    counts.outstanding =
        counts.scheduled - counts.finished - counts.failed - counts.cancelled;
    *ret_counts = counts;
}

/* ---- remote values ---- */

static int read_future(mu_remote_value *value, mu_error *ret_error, mu_value **ret_result)
{
    if (value->error != NULL) {
        if (ret_error != NULL)
            *ret_error = *value->error;
        return value->error->code;
    }
    if (mu_remote_value_state(value) == MU_REMOTE_ABORTED)
        return mu_error_set(ret_error, -MU_ECANCELLED, "the value was aborted");
    if (ret_result == NULL)
        return 0;
    *ret_result = value->result == NULL ? mu_value_nil() : mu_value_ref(value->result);
    return *ret_result == NULL
               ? mu_error_set(ret_error, -MU_ENOMEM, "no memory for a result")
               : 0;
}

int mu_remote_value_fetch(mu_remote_value *value, int64_t limit_ms, mu_error *ret_error,
                          mu_value **ret_result)
{
    struct mu__client_call call = {
        .call.operation = MU__CLIENT_FETCH,
        .future = value,
    };
    int rv = 0;

    if (mu_remote_value_state(value) == MU_REMOTE_NOT_READY)
        rv = client_call(value->node, &call, limit_ms, ret_error);
    if (rv != 0 && mu_remote_value_state(value) == MU_REMOTE_NOT_READY)
        return rv;
    return read_future(value, ret_error, ret_result);
}

/* A fetch that nobody waits for. */
struct notice {
    struct mu__pending pending;
    struct mu__client_call call;
    void (*notify)(mu_remote_value *value, void *user);
    void *user;
};

static void notice_finished(struct mu__pending *pending)
{
    struct notice *notice = (struct notice *)pending;

    notice->notify(notice->call.future, notice->user);
    mu_remote_value_free(notice->call.future);
    free(notice);
}

int mu_remote_value_notify(mu_remote_value *value,
                           void (*notify)(mu_remote_value *value, void *user), void *user)
{
    struct notice *notice;
    int rv;

    if (mu_remote_value_state(value) != MU_REMOTE_NOT_READY) {
        notify(value, user);
        return 0;
    }
    notice = calloc(1, sizeof *notice);
    if (notice == NULL)
        return -MU_ENOMEM;
    atomic_fetch_add_explicit(&value->refs, 1, memory_order_relaxed);
    notice->notify = notify;
    notice->user = user;
    notice->call.call.operation = MU__CLIENT_FETCH;
    notice->call.call.limit_ms = -1;
    notice->call.future = value;
    notice->pending.call = &notice->call.call;
    notice->pending.finished = notice_finished;
    rv = mu__node_call_later(value->node, MU__CLIENT, &notice->pending);
    if (rv != 0) {
        mu_remote_value_free(value);
        free(notice);
    }
    return rv;
}
