/* Requests to the chief: per-worker values, explanations, leaving. */
#include "api/internal.h"

#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/references.h"
#include "resolver/spec/cluster.h"
#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { EXPLAIN_MS = 2000 };

/* ---- requests ---- */

/* Send `request` to the chief and wait; takes it, NULL gives -MU_ENOMEM. The answer is in
 * the call. */
static int request_chief(mu_node *node, struct mu__client_call *call,
                         struct mu__msg *request, int64_t timeout_ms, mu_error *ret_error)
{
    int rv;

    if (request == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a request");
    call->call.operation = MU__CLIENT_REQUEST;
    call->request = request;
    rv = mu__client_call(node, call, timeout_ms, ret_error);
    mu__node_drop_msg(call->request);
    return rv;
}

/* ---- per-worker values ---- */

static int request_to_make(mu_node *node, struct mu__msg *request, int64_t timeout_ms,
                           mu_error *ret_error, mu_per_worker **ret_per_worker)
{
    mu_per_worker *per_worker = mu__per_worker_new(&node->future_owner);
    struct mu__client_call call = {0};
    int rv;

    if (per_worker == NULL) {
        mu__node_drop_msg(request);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a per-worker value");
    }
    rv = request_chief(node, &call, request, timeout_ms, ret_error);
    if (rv == 0 && (call.input & MU__PER_WORKER_BIT) == 0)
        rv = mu_error_set(
            ret_error, -MU_EINTERNAL,
            "the chief gave a per-worker value the number %llu, which is not valid",
            (unsigned long long)call.input);
    if (rv != 0) {
        mu__held_free(&per_worker->held);
        return rv;
    }
    per_worker->held.chief_epoch = call.chief_epoch;
    per_worker->held.number = call.input;
    *ret_per_worker = per_worker;
    return 0;
}

/* What a per-worker value is made from. */
struct per_worker_request {
    const char *function; /* "": none, `args` are the values */
    const mu_value *args;
    bool is_shared;
};

/* A request with the function's name, if there is one, behind its body. */
static struct mu__msg *make_request(const struct per_worker_request *making,
                                    const struct mu__packed *sizes, mu_error *ret_error)
{
    struct mu__view name = mu__view_str(making->function);
    struct mu__msg *msg =
        mu__msg_heap(MU__PER_WORKER_MAKE, sizeof(struct mu__per_worker_make) + name.size);
    struct mu__per_worker_make *body;

    if (msg == NULL) {
        (void)mu_error_set(ret_error, -MU_ENOMEM, "no memory for a per-worker value");
        return NULL;
    }
    body = mu__body(msg);
    if (name.size > 0) {
        memcpy(body + 1, name.data, name.size);
        body->function = (struct mu__view){body + 1, name.size};
    }
    body->by_content = making->is_shared;
    body->args = *sizes;
    if (mu__pack_args(msg, making->args, &body->args, ret_error) == 0)
        return msg;
    mu__node_drop_msg(msg);
    return NULL;
}

static int open_per_worker_value(mu_coordinator *c,
                                 const struct per_worker_request *making,
                                 int64_t timeout_ms, mu_error *ret_error,
                                 mu_per_worker **ret_per_worker)
{
    mu_node *node = mu__coordinator_reach(c, ret_error);
    struct mu__msg *request;
    struct mu__packed sizes;
    int rv;

    if (node == NULL)
        return -MU_ECLOSED;
    rv = mu__measure_args(making->args, &sizes, ret_error);
    if (rv != 0)
        return rv;
    if (making->args != NULL && mu__has_references(making->args))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a per-worker value is not made from references");
    request = make_request(making, &sizes, ret_error);
    return request == NULL
               ? -MU_ENOMEM
               : request_to_make(node, request, timeout_ms, ret_error, ret_per_worker);
}

int mu_per_worker_open(mu_coordinator *c, const char *function, const mu_value *args,
                       int64_t timeout_ms, mu_error *ret_error,
                       mu_per_worker **ret_per_worker)
{
    MU__REQUIRE_AS(ret_error, "coordinator, function, ret_per_worker", c, function,
                   ret_per_worker);

    const struct per_worker_request making = {function, args, false};
    int rv = mu__check_function_name(function, ret_error);

    return rv != 0
               ? rv
               : open_per_worker_value(c, &making, timeout_ms, ret_error, ret_per_worker);
}

int mu_per_worker_open_shared(mu_coordinator *c, const char *function,
                              const mu_value *args, int64_t timeout_ms,
                              mu_error *ret_error, mu_per_worker **ret_per_worker)
{
    MU__REQUIRE_AS(ret_error, "coordinator, function, ret_per_worker", c, function,
                   ret_per_worker);

    const struct per_worker_request making = {function, args, true};
    int rv = mu__check_function_name(function, ret_error);

    return rv != 0
               ? rv
               : open_per_worker_value(c, &making, timeout_ms, ret_error, ret_per_worker);
}

int mu_per_worker_open_values(mu_coordinator *c, const mu_value *values,
                              int64_t timeout_ms, mu_error *ret_error,
                              mu_per_worker **ret_per_worker)
{
    MU__REQUIRE_AS(ret_error, "coordinator, values, ret_per_worker", c, values,
                   ret_per_worker);

    const struct per_worker_request making = {"", values, false};

    if (mu_value_type(values) != MU_VALUE_LIST && mu_value_type(values) != MU_VALUE_MAP)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a per-worker value is made from a list, with an item for "
                            "each worker, or from a map of such lists by task type");
    return open_per_worker_value(c, &making, timeout_ms, ret_error, ret_per_worker);
}

int mu_per_worker_check(const mu_coordinator *c, const mu_per_worker *per_worker,
                        mu_error *ret_error)
{
    MU__REQUIRE_AS(ret_error, "coordinator, per_worker", c, per_worker);
    if (per_worker->held.chief_epoch == (uint16_t)atomic_load(&c->session.chief_epoch))
        return 0;
    return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                        "the per-worker value was opened for a chief that is lost");
}

void mu_per_worker_close(mu_per_worker *per_worker)
{
    if (per_worker != NULL)
        mu__held_unref(&per_worker->held);
}

/* ---- explanations ---- */

static struct mu__msg *status_request(uint64_t closure, const char *name)
{
    struct mu__view view = mu__view_str(name);
    struct mu__msg *msg =
        mu__msg_heap(MU__STATUS_GET, sizeof(struct mu__status_get) + view.size);
    struct mu__status_get *body;

    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    body->closure = closure;
    if (view.size > 0) {
        memcpy(body + 1, view.data, view.size);
        body->name = (struct mu__view){body + 1, view.size};
    }
    return msg;
}

static bool is_value_known(const mu_value *reasons)
{
    const char *state = "unknown";
    size_t size;

    (void)mu_value_get_string(mu_value_find(reasons, "state"), &state, &size);
    return strcmp(state, "unknown") != 0;
}

static int not_known(uint64_t closure, const char *name, mu_error *ret_error)
{
    if (closure != 0)
        return mu_error_set(ret_error, -MU_ENOTFOUND, "the chief knows no closure %llu",
                            (unsigned long long)closure);
    return mu_error_set(ret_error, -MU_ENOTFOUND,
                        "the chief knows no closure named \"%s\"", name);
}

int mu_node_explain(mu_node *node, uint64_t closure, const char *name, int64_t timeout_ms,
                    mu_error *ret_error, mu_value **ret_reasons)
{
    MU__REQUIRE(ret_error, node, ret_reasons);

    struct mu__client_call call = {0};
    int rv;

    if (closure == 0 &&
        (name == NULL || name[0] == '\0' || strlen(name) > MU__CLOSURE_NAME_MAX))
        return mu_error_set(ret_error, -MU_EINVALID, "a closure's name has 1 to %d bytes",
                            MU__CLOSURE_NAME_MAX);
    rv = request_chief(node, &call, status_request(closure, closure == 0 ? name : ""),
                       timeout_ms, ret_error);
    if (rv == 0 && !is_value_known(call.status))
        rv = not_known(closure, name, ret_error);
    if (rv == 0)
        *ret_reasons = call.status;
    else
        mu_value_free(call.status);
    return rv;
}

/* The call does not change the value. */
static int explain_value(mu_node *node, const mu_remote_value *value, int64_t timeout_ms,
                         mu_error *ret_error, mu_value **ret_reasons)
{
    struct mu__client_call call = {
        .call.operation = MU__CLIENT_EXPLAIN,
        .future = (mu_remote_value *)(uintptr_t)value,
    };
    int rv = mu__client_call(node, &call, timeout_ms, ret_error);

    if (rv == 0)
        *ret_reasons = call.status;
    else
        mu_value_free(call.status);
    return rv;
}

int mu_coordinator_explain(mu_coordinator *c, const mu_remote_value *value,
                           const char *name, int64_t timeout_ms, mu_error *ret_error,
                           mu_value **ret_reasons)
{
    MU__REQUIRE_AS(ret_error, "coordinator, ret_reasons", c, ret_reasons);

    mu_node *node = mu__coordinator_reach(c, ret_error);

    if (node == NULL)
        return -MU_ECLOSED;
    if (value == NULL)
        return mu_node_explain(node, 0, name, timeout_ms, ret_error, ret_reasons);
    if (value->held.owner != &node->future_owner)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the value is not of this coordinator");
    return explain_value(node, value, timeout_ms, ret_error, ret_reasons);
}

/* ---- leaving ---- */

static bool is_ps_type(const char *type)
{
    return strcmp(type, "ps") == 0;
}

static int64_t number_in(const mu_value *map, const char *key)
{
    int64_t number = 0;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

/* How many servers are there for what a drained one has. */
static int64_t count_takers(const mu_value *servers)
{
    int64_t count = 0;

    for (size_t i = 0; i < mu_value_count(servers); i++) {
        const mu_value *server = mu_value_at(servers, i);
        int is_up = 0;

        (void)mu_value_get_bool(mu_value_find(server, "up"), &is_up);
        count += is_up != 0 && mu_value_find(server, "draining") == NULL;
    }
    return count;
}

static const mu_value *find_server(const mu_value *servers, int index)
{
    for (size_t i = 0; i < mu_value_count(servers); i++)
        if (number_in(mu_value_at(servers, i), "ps") == index)
            return mu_value_at(servers, i);
    return NULL;
}

/* What a server still has at the timeout, if the chief says so. */
static void explain_drain(mu_node *node, int index, mu_error *error)
{
    mu_value *status = NULL;
    const mu_value *partitions;
    const mu_value *servers;
    const mu_value *server;
    int64_t needed;
    int64_t takers;

    if (mu_node_status(node, EXPLAIN_MS, NULL, &status) != 0)
        return;
    partitions = mu_value_find(status, "partitions");
    servers = mu_value_find(partitions, "servers");
    server = find_server(servers, index);
    needed = 1 + number_in(partitions, "backups");
    takers = count_takers(servers);
    if (server != NULL)
        (void)mu_error_set(error, -MU_EDEADLINE,
                           "/job:ps/task:%d still has %" PRId64 " primaries and %" PRId64
                           " backups%s",
                           index, number_in(server, "primary"),
                           number_in(server, "backup"),
                           takers < needed ? ": there are too few other servers to take "
                                             "them"
                                           : "; it gives them away as before");
    mu_value_free(status);
}

/* `worker`: its task index + 1, 0 for this node's own. */
static int request_drain(mu_node *node, const char *type, uint32_t worker,
                         int64_t timeout_ms, mu_error *ret_error)
{
    size_t size = sizeof(struct mu__drain) + strlen(type);
    struct mu__msg *request = mu__msg_heap(MU__DRAIN, size);
    char late[128];
    struct mu__client_call call = {.late = late, .at_once = worker == 0};

    if (worker == 0)
        (void)snprintf(late, sizeof late, "this worker still has closures to finish");
    else if (is_ps_type(type))
        (void)snprintf(late, sizeof late, "/job:ps/task:%u still has partitions",
                       worker - 1);
    else
        (void)snprintf(late, sizeof late,
                       "/job:%s/task:%u still has closures to "
                       "finish; it gets no more, and leaves then",
                       type, worker - 1);
    if (request != NULL) {
        struct mu__drain *body = mu__body(request);

        body->worker = worker;
        body->worker_type = mu__view_str(type);
        (void)mu__pack_view((uint8_t *)(body + 1), &body->worker_type);
    }
    return request_chief(node, &call, request, timeout_ms, ret_error);
}

int mu_coordinator_drain(mu_coordinator *c, int worker, int64_t timeout_ms,
                         mu_error *ret_error)
{
    MU__REQUIRE_AS(ret_error, "coordinator", c);
    return mu_coordinator_drain_task(c, "worker", worker, timeout_ms, ret_error);
}

int mu_coordinator_drain_task(mu_coordinator *c, const char *type, int index,
                              int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE_AS(ret_error, "coordinator, type", c, type);

    mu_node *node = mu__coordinator_reach(c, ret_error);
    int rv;

    if (node == NULL)
        return -MU_ECLOSED;
    if (mu__task_type_check(type, ret_error) != 0)
        return -MU_EINVALID;
    if (index < 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a worker has a task index of 0 or more, got %d", index);
    rv = request_drain(node, type, (uint32_t)index + 1, timeout_ms, ret_error);
    if (rv == -MU_EDEADLINE && is_ps_type(type) && ret_error != NULL)
        explain_drain(node, index, ret_error);
    return rv;
}

int mu_node_drain(mu_node *node, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node);
    return request_drain(node, "", 0, timeout_ms, ret_error);
}

int mu_coordinator_forget(mu_coordinator *c, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE_AS(ret_error, "coordinator", c);

    mu_node *node = mu__coordinator_reach(c, ret_error);
    struct mu__client_call call = {0};

    if (node == NULL)
        return -MU_ECLOSED;
    return request_chief(node, &call, mu__msg_heap(MU__FORGET, sizeof(struct mu__forget)),
                         timeout_ms, ret_error);
}
