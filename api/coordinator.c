/* The public coordinator: a thin layer over the client actor. */
#include "api/internal.h"

#include "actors/messages.h"
#include "node/deadline.h"
#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CLOSE_MS = 5000, DONE_MS = 60000 };

/* A call that nobody waits for, made on the loop's own thread. */
struct detached {
    struct mu__pending pending;
    struct mu__client_call call;
    mu_coordinator *coordinator;
};

/* ---- life ---- */

int mu__client_call(mu_node *node, struct mu__client_call *call, int64_t timeout_ms,
                    mu_error *ret_error)
{
    call->call.timeout_ms = timeout_ms;
    return mu__node_call(node, MU__CLIENT, &call->call, ret_error);
}

mu_node *mu__coordinator_reach(mu_coordinator *c, mu_error *ret_error)
{
    if (c == NULL) {
        (void)mu_error_set(ret_error, -MU_EINVALID, "no coordinator was given");
        return NULL;
    }
    if (mu__node_is_forked(c->node)) {
        mu__node_say_closed(c->node, -MU_ECLOSED, ret_error);
        return NULL;
    }
    if (!atomic_load_explicit(&c->detached, memory_order_acquire))
        return c->node;
    (void)mu_error_set(ret_error, -MU_ECLOSED, "the coordinator's node is closed");
    return NULL;
}

static void free_errors(struct mu__error_entry *entry)
{
    while (entry != NULL) {
        struct mu__error_entry *next = entry->next;

        free(entry);
        entry = next;
    }
}

static void drop_coordinator(mu_coordinator *c)
{
    free_errors(c->errors);
    free_errors(atomic_load(&c->session.errors));
    free(c);
}

/* True when the client actor has let go of the session. */
static bool close_session(mu_node *node, int64_t timeout_ms)
{
    struct mu__client_call call = {.call.operation = MU__CLIENT_CLOSE};

    return mu__client_call(node, &call, timeout_ms, NULL) == 0;
}

static void detach_open_coordinator(mu_node *node, int64_t timeout_ms)
{
    bool is_open;

    /* Outside of the lock its owner may free it. */
    uv_mutex_lock(&node->lock);
    is_open = node->coordinator.open != NULL &&
              node->coordinator.open != node->coordinator.unclosed;
    if (is_open)
        atomic_store_explicit(&node->coordinator.open->detached, true,
                              memory_order_release);
    uv_mutex_unlock(&node->lock);

    if (is_open && !mu__node_on_loop(node))
        (void)close_session(node, timeout_ms < 0 || timeout_ms > CLOSE_MS ? CLOSE_MS
                                                                          : timeout_ms);
}

/* Make it the node's coordinator; false: the node has one. */
static bool enlist_coordinator(mu_coordinator *c)
{
    bool is_free;

    uv_mutex_lock(&c->node->lock);
    is_free = c->node->coordinator.open == NULL;
    if (is_free)
        c->node->coordinator = (struct mu__node_coordinator){
            .open = c,
            .unclosed = c->node->coordinator.unclosed,
            .detach = detach_open_coordinator,
            .drop = drop_coordinator,
        };
    uv_mutex_unlock(&c->node->lock);
    return is_free;
}

/* From now on closing the node does not detach it. */
static void unlist_coordinator(mu_coordinator *c)
{
    uv_mutex_lock(&c->node->lock);
    if (c->node->coordinator.open == c)
        c->node->coordinator.open = NULL;
    uv_mutex_unlock(&c->node->lock);
}

static void coordinator_free(mu_coordinator *c)
{
    mu_node *node = c->node;

    unlist_coordinator(c);
    drop_coordinator(c);
    mu__node_unref(node);
}

/* ---- calls that nobody waits for ---- */

static int start_detached(mu_coordinator *c, mu_node *node, int operation, bool at_once,
                          void (*finished)(struct mu__pending *pending))
{
    struct detached *detached = calloc(1, sizeof *detached);
    int rv;

    if (detached == NULL)
        return -MU_ENOMEM;
    detached->coordinator = c;
    detached->call.call.operation = operation;
    detached->call.call.timeout_ms = -1;
    detached->call.session = &c->session;
    detached->call.at_once = at_once;
    rv = mu__node_call_later(node, MU__CLIENT, &detached->pending, &detached->call.call,
                             finished);
    if (rv != 0)
        free(detached);
    return rv;
}

static void finished_opening(struct mu__pending *pending)
{
    free(pending);
}

static void finished_closing(struct mu__pending *pending)
{
    struct detached *detached = (struct detached *)pending;

    coordinator_free(detached->coordinator);
    free(detached);
}

static void finished_raising(struct mu__pending *pending)
{
    struct detached *detached = (struct detached *)pending;
    mu_coordinator *c = detached->coordinator;

    c->raising = MU__RAISING_ANSWERED;
    c->raised = detached->call.call.code;
    c->raised_error = detached->call.call.error;
    free(detached);
}

/* The error once all other closures are cancelled, -MU_EAGAIN until then, 0 when there is
 * none any more. */
static int raise_on_loop(mu_coordinator *c, mu_node *node, mu_error *ret_error)
{
    if (c->raising == MU__RAISING_ANSWERED) {
        c->raising = MU__RAISING_NOTHING;
        if (c->raised != 0 && ret_error != NULL)
            *ret_error = c->raised_error;
        return c->raised;
    }
    if (c->raising == MU__RAISING_NOTHING &&
        start_detached(c, node, MU__CLIENT_RAISE, false, finished_raising) == 0)
        c->raising = MU__RAISING_REQUESTED;
    return mu_error_set(ret_error, -MU_EAGAIN,
                        "a closure failed: the others are being cancelled");
}

/* ---- opening and closing ---- */

static int open_session(mu_coordinator *c, mu_node *node, int64_t timeout_ms,
                        mu_error *ret_error)
{
    struct mu__client_call call = {
        .call.operation = MU__CLIENT_OPEN,
        .session = &c->session,
    };
    int rv;

    if (!mu__node_on_loop(node) || timeout_ms != 0)
        return mu__client_call(node, &call, timeout_ms, ret_error);
    rv = start_detached(c, node, MU__CLIENT_OPEN, true, finished_opening);
    return rv == 0 ? 0
                   : mu_error_set(ret_error, rv, "%s is %s", mu_node_task(node),
                                  mu_strerror(rv));
}

int mu_coordinator_open(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                        mu_coordinator **ret_coordinator)
{
    mu_coordinator *c;
    int rv;

    if (node == NULL || ret_coordinator == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "no %s was given",
                            node == NULL ? "node" : "place for the coordinator");
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a coordinator");
    c->node = node;
    c->session.closures_max = node->limits.queue_max;
    c->session.bytes_max = node->limits.queue_bytes_max;
    c->session.keep_data = mu__coordinator_keep_data;
    if (!enlist_coordinator(c)) {
        free(c);
        return mu_error_set(ret_error, -MU_EEXISTS,
                            "the coordinator of %s is open already", mu_node_task(node));
    }
    mu__node_ref(node);
    rv = open_session(c, node, timeout_ms, ret_error);
    if (rv != 0) {
        coordinator_free(c);
        return rv;
    }
    *ret_coordinator = c;
    return 0;
}

/* The client actor may still write to the session: it is freed with the node. */
static void leave_coordinator_to_node(mu_coordinator *c)
{
    mu_node *node = c->node;

    uv_mutex_lock(&node->lock);
    node->coordinator.unclosed = c;
    uv_mutex_unlock(&node->lock);
    mu__node_unref(node);
}

/* On the loop's thread nothing can be waited for: it is freed when all closures were
 * cancelled. */
static void close_later(mu_coordinator *c)
{
    if (start_detached(c, c->node, MU__CLIENT_CLOSE, false, finished_closing) == 0)
        unlist_coordinator(c);
    else
        leave_coordinator_to_node(c);
}

/* True when nothing refers to the session any more. */
static bool end_coordinator_session(mu_coordinator *c)
{
    if (!atomic_load(&c->detached) && close_session(c->node, CLOSE_MS))
        return true;
    return c->node->lifecycle.state >= MU__NODE_CLOSED;
}

void mu_coordinator_close(mu_coordinator *c)
{
    if (c == NULL || mu__node_is_forked(c->node))
        return;
    if (mu__node_on_loop(c->node) && !atomic_load(&c->detached)) {
        close_later(c);
        return;
    }
    if (end_coordinator_session(c))
        coordinator_free(c);
    else
        leave_coordinator_to_node(c);
}

/* ---- raising, and room ---- */

static int request_session_error(mu_node *node, int64_t timeout_ms, mu_error *ret_error)
{
    struct mu__client_call call = {
        .call.operation = MU__CLIENT_RAISE,
        .at_once = timeout_ms == 0,
    };

    return mu__client_call(node, &call, timeout_ms == 0 ? -1 : timeout_ms, ret_error);
}

/* An error that was requested on the loop is pending until the program has got it,
 * although the session is fine again by then. */
static bool has_pending_error(const mu_coordinator *c, const mu_node *node)
{
    return atomic_load_explicit(&c->session.phase, memory_order_acquire) !=
               MU__SESSION_FINE ||
           (mu__node_on_loop(node) && c->raising != MU__RAISING_NOTHING);
}

static int raise_pending(mu_coordinator *c, mu_node *node, int64_t timeout_ms,
                         mu_error *ret_error)
{
    return mu__node_on_loop(node) ? raise_on_loop(c, node, ret_error)
                                  : request_session_error(node, timeout_ms, ret_error);
}

static int describe_full(const mu_coordinator *c, uint64_t bytes, mu_error *ret_error)
{
    const struct mu__session *session = &c->session;
    uint64_t closures = mu__admission_closures(session);

    if (bytes > 0 && closures < session->closures_max &&
        !mu__admission_fits(mu__admission_bytes(session), bytes, session->bytes_max))
        return mu_error_set(ret_error, -MU_EAGAIN,
                            "closures with %" PRIu64 " bytes of arguments are scheduled "
                            "and not resolved, %" PRIu64 " is the most",
                            mu__admission_bytes(session), session->bytes_max);
    return mu_error_set(ret_error, -MU_EAGAIN,
                        "%" PRIu64 " closures are scheduled and not resolved, %" PRIu64
                        " is the most%s",
                        closures, session->closures_max,
                        closures < session->closures_max ? "; others wait for room" : "");
}

/* Queues behind all threads that wait already. *ret_admitted is false when an error is to
 * be raised first. */
static int wait_for_client_room(mu_coordinator *c, mu_node *node, uint64_t bytes,
                                bool raises, int64_t timeout_ms, mu_error *ret_error,
                                bool *ret_admitted)
{
    struct mu__client_call call = {.call.operation = MU__CLIENT_ROOM,
                                   .bytes = bytes,
                                   .admits = true,
                                   .raises = raises};
    int rv;

    *ret_admitted = false;
    if (timeout_ms == 0)
        return describe_full(c, bytes, ret_error);
    (void)atomic_fetch_add(&c->session.waiting, 1);
    rv = mu__client_call(node, &call, timeout_ms, ret_error);
    (void)atomic_fetch_sub(&c->session.waiting, 1);
    *ret_admitted = rv == 0 && call.admitted;
    return rv;
}

/* A closure with `own_error` raises no error of another one: -MU_EAGAIN instead. */
static int raise_or_wait(mu_coordinator *c, mu_node *node, uint64_t bytes, bool own_error,
                         int64_t timeout_ms, mu_error *ret_error)
{
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    bool is_admitted = false;

    while (!is_admitted) {
        int64_t left_ms = mu__deadline_wait_ms(deadline_ns, timeout_ms);
        int rv = 0;

        if (own_error && mu__admission_try(&c->session, bytes))
            is_admitted = true;
        else if (own_error && has_pending_error(c, node))
            rv = mu_error_set(ret_error, -MU_EAGAIN,
                              "there is no room, and an error of "
                              "another closure is to be raised first");
        else if (has_pending_error(c, node))
            rv = raise_pending(c, node, left_ms, ret_error);
        else if (mu__admission_try(&c->session, bytes))
            is_admitted = true;
        else
            rv = wait_for_client_room(c, node, bytes, !own_error, left_ms, ret_error,
                                      &is_admitted);
        if (rv != 0)
            return rv;
    }
    return 0;
}

int mu__coordinator_admit(mu_coordinator *c, uint64_t bytes, bool own_error,
                          int64_t timeout_ms, mu_error *ret_error)
{
    if (!has_pending_error(c, c->node) && mu__admission_try(&c->session, bytes))
        return 0;
    return raise_or_wait(c, c->node, bytes, own_error, timeout_ms, ret_error);
}

/* ---- waiting ---- */

static int wait_for_client_call(mu_coordinator *c, int operation, int64_t timeout_ms,
                                mu_error *ret_error)
{
    struct mu__client_call call = {.call.operation = operation};
    mu_node *node = mu__coordinator_reach(c, ret_error);

    if (node == NULL)
        return c == NULL ? -MU_EINVALID : -MU_ECLOSED;
    return mu__client_call(node, &call, timeout_ms, ret_error);
}

int mu_coordinator_wait_for_chief(mu_coordinator *c, int64_t timeout_ms,
                                  mu_error *ret_error)
{
    return wait_for_client_call(c, MU__CLIENT_REACH, timeout_ms, ret_error);
}

int mu_coordinator_join(mu_coordinator *c, int64_t timeout_ms, mu_error *ret_error)
{
    return wait_for_client_call(c, MU__CLIENT_JOIN, timeout_ms, ret_error);
}

int mu_coordinator_done(mu_coordinator *c, mu_error *ret_error, int *ret_done)
{
    mu_node *node = mu__coordinator_reach(c, ret_error);
    int rv = 0;

    if (node == NULL)
        return c == NULL ? -MU_EINVALID : -MU_ECLOSED;
    if (ret_done == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "ret_done is NULL");
    if (has_pending_error(c, node))
        rv = raise_pending(c, node, DONE_MS, ret_error);
    if (rv == 0)
        *ret_done = atomic_load_explicit(&c->session.scheduled, memory_order_relaxed) ==
                    atomic_load_explicit(&c->session.resolved, memory_order_acquire);
    return rv;
}

void mu_coordinator_get_stats(mu_coordinator *c, mu_coordinator_stats *ret_counts)
{
    MU__REQUIRE_OR(, c, ret_counts);

    const struct mu__session *s = &c->session;
    mu_coordinator_stats counts;

    counts.finished = atomic_load_explicit(&s->finished, memory_order_acquire);
    counts.failed = atomic_load_explicit(&s->failed, memory_order_acquire);
    counts.cancelled = atomic_load_explicit(&s->cancelled, memory_order_acquire);
    counts.retried = atomic_load_explicit(&s->retried, memory_order_acquire);
    counts.scheduled = atomic_load_explicit(&s->scheduled, memory_order_acquire);
    counts.outstanding =
        counts.scheduled - counts.finished - counts.failed - counts.cancelled;
    *ret_counts = counts;
}

/* ---- errors ---- */

/* Append the session's errors, which are the latest first, to those taken before. */
static void take_session_errors(mu_coordinator *c)
{
    struct mu__error_entry *entry =
        atomic_exchange_explicit(&c->session.errors, NULL, memory_order_acquire);
    struct mu__error_entry *last = entry;
    struct mu__error_entry *first = NULL;

    if (entry == NULL)
        return;
    while (entry != NULL) {
        struct mu__error_entry *next = entry->next;

        entry->next = first;
        first = entry;
        entry = next;
    }
    if (c->errors == NULL)
        c->errors = first;
    else
        c->errors_last->next = first;
    c->errors_last = last;
}

size_t mu_coordinator_take_errors(mu_coordinator *c, mu_error *errors, size_t max,
                                  uint64_t *ret_lost)
{
    size_t count = 0;

    if (c == NULL || (errors == NULL && max > 0))
        return 0;
    uv_mutex_lock(&c->node->lock);
    take_session_errors(c);
    while (count < max && c->errors != NULL) {
        struct mu__error_entry *entry = c->errors;

        c->errors = entry->next;
        errors[count++] = entry->error;
        free(entry);
    }
    uv_mutex_unlock(&c->node->lock);
    (void)atomic_fetch_sub_explicit(&c->session.errors_stored, (unsigned)count,
                                    memory_order_relaxed);
    if (ret_lost != NULL)
        *ret_lost =
            atomic_exchange_explicit(&c->session.errors_lost, 0, memory_order_relaxed);
    return count;
}
