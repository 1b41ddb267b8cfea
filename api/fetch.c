/* Remote values: reading them, and letting go of them. A remote value holds the memory
 * of its node, so that it may be read and freed whenever, also after that was closed. */
#include "api/internal.h"

#include "actors/messages.h"
#include "actors/references.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>

int mu_remote_value_cancel(mu_remote_value *value)
{
    MU__REQUIRE(NULL, value);

    struct mu__msg *msg;
    int rv;

    if (mu_remote_value_state(value) != MU_REMOTE_NOT_READY)
        return 0;
    msg = mu__msg_heap(MU__CANCEL_FUTURE, sizeof(struct mu__cancel_future));
    if (msg == NULL)
        return -MU_ENOMEM;
    ((struct mu__cancel_future *)mu__body(msg))->future = value;
    mu__held_ref(&value->held);
    rv = mu__node_post(value->held.owner->node, MU__CLIENT, msg);
    if (rv != 0)
        mu__held_unref(&value->held);
    return rv;
}

/* ---- fetching ---- */

/* Result or error are here: the value is neither pending nor pinned on a worker. */
static bool is_value_here(const mu_remote_value *value)
{
    return mu__future_is(value, MU_REMOTE_READY) ||
           mu__future_is(value, MU_REMOTE_ABORTED);
}

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

static bool is_value_resolved(void *value)
{
    return mu_remote_value_state(value) != MU_REMOTE_NOT_READY;
}

uint64_t mu_remote_value_spin(mu_remote_value *value)
{
    uint64_t begun_ns = uv_hrtime();
    mu_node *node;

    if (value == NULL || is_value_resolved(value))
        return 0;
    node = value->held.owner->node;
    return !mu__node_on_loop(node) &&
                   mu__spin_wait(&node->calls.spin, is_value_resolved, value, &begun_ns)
               ? 0
               : begun_ns;
}

void mu_remote_value_slept(mu_remote_value *value, uint64_t since)
{
    if (value != NULL && since != 0)
        mu__spin_slept(&value->held.owner->node->calls.spin, since);
}

/* A function of its own, since a call is large on the stack of those that need none. */
static int fetch_by_call(mu_remote_value *value, bool until_ready, uint64_t spun_ns,
                         int64_t timeout_ms, mu_error *ret_error)
{
    struct mu__client_call call = {
        .call.operation = MU__CLIENT_FETCH,
        .call.spun_ns = spun_ns,
        .future = value,
        .until_ready = until_ready,
    };

    return mu__client_call(value->held.owner->node, &call, timeout_ms, ret_error);
}

/* A value that comes while the thread spins needs no call. */
static int fetch_value(mu_remote_value *value, bool until_ready, int64_t timeout_ms,
                       mu_error *ret_error)
{
    uint64_t since = timeout_ms == 0 ? 0 : mu_remote_value_spin(value);

    if (is_value_here(value) || (until_ready && is_value_resolved(value)))
        return 0;
    return fetch_by_call(value, until_ready, since, timeout_ms, ret_error);
}

int mu_remote_value_fetch(mu_remote_value *value, int64_t timeout_ms, mu_error *ret_error,
                          mu_value **ret_result)
{
    MU__REQUIRE(ret_error, value);

    int rv;

    if (!is_value_here(value) &&
        (ret_result != NULL || mu_remote_value_state(value) == MU_REMOTE_NOT_READY)) {
        rv = fetch_value(value, ret_result == NULL, timeout_ms, ret_error);
        if (rv != 0 && !is_value_here(value))
            return rv;
    }
    if (!is_value_here(value))
        return 0;
    return read_future(value, ret_error, ret_result);
}

/* One call to the client actor for all that are not here. Its error is that of value
 * call->error_at. */
static int fetch_missing(mu_remote_value *const *values, size_t count, int64_t timeout_ms,
                         struct mu__client_call *call)
{
    struct mu__waiter *waiters = calloc(count, sizeof *waiters);
    int rv;

    if (waiters == NULL)
        return mu_error_set(&call->call.error, -MU_ENOMEM, "no memory to wait");
    for (size_t i = 0; i < count; i++)
        waiters[i].future = values[i];
    call->waiters = waiters;
    call->waiters_count = count;
    rv = mu__client_call(values[0]->held.owner->node, call, timeout_ms, NULL);
    free(waiters);
    return rv;
}

/* Whether nothing is to be waited for. */
static bool is_wait_over(const mu_remote_value *value, const struct mu__client_call *call)
{
    return is_value_here(value) ||
           (call->until_ready && mu__future_is(value, MU__REMOTE_PINNED));
}

static bool all_settled(mu_remote_value *const *values, size_t count,
                        const struct mu__client_call *call)
{
    for (size_t i = 0; i < count; i++)
        if (!is_wait_over(values[i], call))
            return false;
    return true;
}

static bool same_owner(mu_remote_value *const *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i]->held.owner != values[0]->held.owner)
            return false;
    return true;
}

/* One of many. `waited` is the code of the wait for them. */
static int read_fetched_value(mu_remote_value *value, const struct mu__client_call *call,
                              int waited, mu_error *ret_error, mu_value **ret_result)
{
    if (is_value_here(value))
        return read_future(value, ret_error, ret_result);
    if (is_wait_over(value, call) || waited == 0)
        return 0;
    if (ret_error != NULL)
        *ret_error = call->call.error;
    return waited;
}

int mu_remote_value_fetch_all(mu_remote_value *const *values, size_t count,
                              int64_t timeout_ms, mu_error *ret_error, mu_value **results)
{
    for (size_t i = 0; results != NULL && i < count; i++)
        results[i] = NULL;
    MU__REQUIRE_MANY(ret_error, values, count);

    struct mu__client_call call = {
        .call.operation = MU__CLIENT_FETCH,
        .until_ready = results == NULL,
    };
    int waited = 0;
    int first = 0;

    if (!same_owner(values, count))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "values of several nodes are fetched one by one");
    if (!all_settled(values, count, &call))
        waited = fetch_missing(values, count, timeout_ms, &call);
    for (size_t i = 0; i < count; i++) {
        int rv =
            read_fetched_value(values[i], &call, waited, first == 0 ? ret_error : NULL,
                               results == NULL ? NULL : &results[i]);

        if (first == 0)
            first = rv;
    }
    return first;
}

/* ---- structures ---- */

/* The remote values of a structure and their contents, in the same order. */
struct contents {
    const struct mu__references *references;
    mu_value **results;
};

/* The content of a reference, by its index. A per-worker value has none here: its
 * reference stays. */
static mu_value *get_reference_content(void *arg, const mu_value *reference)
{
    const struct contents *contents = arg;
    struct mu__held *held = mu__reference_held(reference);

    if (held->is_per_worker)
        return mu_value_ref(reference);
    return mu_value_ref(
        contents->results[mu__references_index(contents->references, held)]);
}

/* Puts remote values in front of per-worker ones, which have no content. Returns how many
 * there are. */
static size_t sort_remote(struct mu__references *references)
{
    size_t remote = 0;

    for (size_t i = 0; i < references->count; i++)
        if (!references->held[i]->is_per_worker)
            mu__references_swap(references, i, remote++);
    return remote;
}

static int fetch_references(const mu_value *structure, struct mu__references *references,
                            int64_t timeout_ms, mu_error *ret_error, mu_value **ret_value)
{
    size_t count = sort_remote(references);
    struct contents contents = {references, calloc(count + 1, sizeof(mu_value *))};
    int rv;

    if (contents.results == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for the contents");
    rv = mu_remote_value_fetch_all((mu_remote_value *const *)(void *)references->held,
                                   count, timeout_ms, ret_error, contents.results);
    if (rv == 0) {
        *ret_value = mu__references_replace(structure, get_reference_content, &contents);
        if (*ret_value == NULL)
            rv = mu_error_set(ret_error, -MU_ENOMEM, "no memory for the structure");
    }
    for (size_t i = 0; i < count; i++)
        mu_value_free(contents.results[i]);
    free(contents.results);
    return rv;
}

int mu_coordinator_fetch(mu_coordinator *c, const mu_value *structure, int64_t timeout_ms,
                         mu_error *ret_error, mu_value **ret_value)
{
    MU__REQUIRE_AS(ret_error, "coordinator, structure, ret_value", c, structure,
                   ret_value);

    struct mu__references references;
    struct mu__packed sizes;
    int rv = mu__measure_args(structure, &sizes, NULL);

    if (rv != 0)
        return mu_error_set(ret_error, rv, "the structure is too deep or too large");
    mu__references_init(&references);
    rv = mu__references_collect(structure, &references);
    for (size_t i = 0; rv == 0 && i < references.count; i++)
        if (references.held[i]->owner != &c->node->future_owner)
            rv = -MU_EINVALID;
    if (rv == 0)
        rv = fetch_references(structure, &references, timeout_ms, ret_error, ret_value);
    else
        (void)mu_error_set(ret_error, rv,
                           "a reference in the structure is not of a value of this "
                           "coordinator");
    mu__references_done(&references);
    return rv;
}

/* ---- callbacks ---- */

/* A fetch that no thread waits for. */
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

int mu_remote_value_on_ready(mu_remote_value *value,
                             void (*notify)(mu_remote_value *value, void *user),
                             void *user)
{
    MU__REQUIRE(NULL, value, notify);

    struct notice *notice;
    int rv;

    if (mu_remote_value_state(value) != MU_REMOTE_NOT_READY) {
        notify(value, user);
        return 0;
    }
    notice = calloc(1, sizeof *notice);
    if (notice == NULL)
        return -MU_ENOMEM;
    mu__held_ref(&value->held);
    notice->notify = notify;
    notice->user = user;
    notice->call.call.operation = MU__CLIENT_FETCH;
    notice->call.call.timeout_ms = -1;
    notice->call.future = value;
    notice->call.until_ready = true;
    rv = mu__node_call_later(value->held.owner->node, MU__CLIENT, &notice->pending,
                             &notice->call.call, notice_finished);
    if (rv != 0) {
        mu_remote_value_free(value);
        free(notice);
    }
    return rv;
}
