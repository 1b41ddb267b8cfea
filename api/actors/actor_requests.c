/* Actors, from threads. */
#include "actors/messages.h"
#include "actors/names/name_rules.h"
#include "actors/user/looking.h"
#include "actors/user/office.h"
#include "api/internal.h"
#include "runtime/message/arguments.h"
#include "runtime/message/codec.h"

#include <muster/actor.h>
#include <muster/coordinator.h>

#include <stdlib.h>
#include <string.h>

int mu_node_register_actor(mu_node *node, const mu_actor_type *type)
{
    MU__REQUIRE(NULL, node, type);

    struct mu__actors_call call = {
        .call.operation = MU__ACTORS_REGISTER,
        .call.timeout_ms = -1,
        .type = type,
    };

    return mu__node_call_at_once(node, MU__ACTORS, &call.call);
}

int mu__check_actor_timeout(int64_t timeout_ms, mu_error *ret_error)
{
    if (timeout_ms >= 1 && timeout_ms <= MU_ACTOR_TIMEOUT_MAX)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the timeout of a call to an actor is 1 to %d ms, not %lld",
                        MU_ACTOR_TIMEOUT_MAX, (long long)timeout_ms);
}

int mu_actor_find(mu_node *node, const char *name, mu_address *ret_address)
{
    MU__REQUIRE(NULL, node, name, ret_address);

    int rv = mu__name_check(mu__view_str(name), NULL);

    if (rv != 0)
        return rv;
    *ret_address = (mu_address){.number = 0};
    mu__view_copy(mu__view_str(name), ret_address->name, sizeof ret_address->name);
    return 0;
}

int mu_node_stop_actor(mu_node *node, const mu_address *who, int how)
{
    MU__REQUIRE(NULL, node, who);

    struct mu__actors_call call = {
        .call.operation = MU__ACTORS_STOP,
        .call.timeout_ms = -1,
        .address = *who,
        .how = how,
    };

    if (how != MU_STOP_AFTER_QUEUE && how != MU_STOP_NOW)
        return -MU_EINVALID;
    return mu__node_call_at_once(node, MU__ACTORS, &call.call);
}

/* ---- requests ---- */

static struct mu__thread_request *request_new(mu_node *node, const mu_address *to,
                                              const char *method, const mu_value *args,
                                              int64_t timeout_ms)
{
    struct mu__thread_request *request = calloc(1, sizeof *request);

    if (request == NULL)
        return NULL;
    request->to = *to;
    request->timeout_ms = timeout_ms;
    memcpy(request->method, method, strlen(method) + 1);
    request->future = mu__future_new(&node->future_owner);
    if (request->future == NULL) {
        free(request);
        return NULL;
    }
    request->args = args == NULL ? NULL : mu_value_ref(args);
    return request;
}

static int post_request(mu_node *node, struct mu__thread_request *request,
                        mu_error *ret_error)
{
    struct mu__msg *msg =
        mu__msg_heap(MU__ACTOR_REQUEST, sizeof(struct mu__actor_request));
    int rv;

    if (msg != NULL)
        ((struct mu__actor_request *)mu__body(msg))->request = request;
    rv = mu__node_post(node, MU__ACTORS, msg);
    if (rv == 0)
        return 0;
    mu__held_free(&request->future->held);
    mu_value_free(request->args);
    free(request->spawned);
    free(request);
    mu__node_say_closed(node, rv, ret_error);
    return rv;
}

/* `method` is checked. Takes `spawned`; NULL: it is a call. */
static int begin_actor_request(mu_node *node, const mu_address *to, const char *method,
                               const mu_value *args, struct mu__spawned_actor *spawned,
                               int64_t timeout_ms, mu_error *ret_error,
                               mu_remote_value **ret_value)
{
    struct mu__thread_request *request = request_new(node, to, method, args, timeout_ms);
    mu_remote_value *future;
    int rv;

    if (request == NULL) {
        free(spawned);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a call to an actor");
    }
    request->spawned = spawned;
    future = request->future;
    rv = post_request(node, request, ret_error);
    if (rv == 0)
        *ret_value = future;
    return rv;
}

/* `method` is checked. */
static int request_method(mu_node *node, const mu_address *to, const char *method,
                          const mu_value *args, int64_t timeout_ms, mu_error *ret_error,
                          mu_remote_value **ret_value)
{
    struct mu__packed sizes;
    int rv = mu__check_actor_timeout(timeout_ms, ret_error);

    *ret_value = NULL;
    if (rv == 0)
        rv = mu__measure_args(args, &sizes, ret_error);
    return rv != 0 ? rv
                   : begin_actor_request(node, to, method, args, NULL, timeout_ms,
                                         ret_error, ret_value);
}

int mu_actor_request(mu_node *node, const mu_address *to, const char *method,
                     const mu_value *args, int64_t timeout_ms, mu_error *ret_error,
                     mu_remote_value **ret_value)
{
    MU__REQUIRE(ret_error, node, to, method, ret_value);

    int rv = mu__actors_check_name("method", method, ret_error);

    *ret_value = NULL;
    return rv != 0
               ? rv
               : request_method(node, to, method, args, timeout_ms, ret_error, ret_value);
}

int mu_actor_request_state(mu_node *node, const mu_address *to, int64_t timeout_ms,
                           mu_error *ret_error, mu_remote_value **ret_value)
{
    MU__REQUIRE(ret_error, node, to, ret_value);
    return request_method(node, to, MU__METHOD_STATE, NULL, timeout_ms, ret_error,
                          ret_value);
}

int mu_actor_request_explain(mu_node *node, const mu_address *to, int64_t timeout_ms,
                             mu_error *ret_error, mu_remote_value **ret_value)
{
    MU__REQUIRE(ret_error, node, to, ret_value);
    return request_method(node, to, MU__METHOD_EXPLAIN, NULL, timeout_ms, ret_error,
                          ret_value);
}

/* ---- new actors ---- */

static int check_spawn(const char *type, const mu_value *args,
                       const mu_actor_options *options, int64_t timeout_ms,
                       mu_error *ret_error, mu_actor_options *ret_own)
{
    struct mu__packed sizes;
    int rv = mu__actors_check_name("type", type, ret_error);

    if (rv == 0)
        rv = mu__actors_read_options(options, ret_error, ret_own);
    if (rv == 0)
        rv = mu__check_actor_timeout(timeout_ms, ret_error);
    if (rv == 0)
        rv = mu__measure_args(args, &sizes, ret_error);
    if (rv == 0 && ret_own->name != NULL &&
        (uint64_t)sizes.head_size + sizes.tail_size > MU__NAME_ARGS_MAX)
        rv = mu_error_set(ret_error, -MU_ERANGE,
                          "the arguments of an actor with a name have at most %d bytes",
                          MU__NAME_ARGS_MAX);
    return rv;
}

/* NULL: out of memory. */
static struct mu__spawned_actor *spawned_new(const char *type,
                                             const mu_actor_options *options)
{
    struct mu__spawned_actor *spawned = calloc(1, sizeof *spawned);

    if (spawned == NULL)
        return NULL;
    spawned->options = *options;
    mu__view_copy(mu__view_str(type), spawned->type, sizeof spawned->type);
    mu__view_copy(mu__view_str(options->task_type), spawned->task_type,
                  sizeof spawned->task_type);
    mu__view_copy(mu__view_str(options->name), spawned->name, sizeof spawned->name);
    if (options->task_type != NULL)
        spawned->options.task_type = spawned->task_type;
    if (options->name != NULL)
        spawned->options.name = spawned->name;
    return spawned;
}

int mu_actor_request_spawn(mu_node *node, const char *type, const mu_value *args,
                           const mu_actor_options *options, int64_t timeout_ms,
                           mu_error *ret_error, mu_remote_value **ret_value)
{
    MU__REQUIRE(ret_error, node, type, ret_value);

    const mu_address no_address = {.number = 0};
    struct mu__spawned_actor *spawned;
    mu_actor_options own;
    int rv = check_spawn(type, args, options, timeout_ms, ret_error, &own);

    *ret_value = NULL;
    if (rv != 0)
        return rv;
    spawned = spawned_new(type, &own);
    return spawned == NULL
               ? mu_error_set(ret_error, -MU_ENOMEM, "no memory for an actor")
               : begin_actor_request(node, &no_address, "start", args, spawned,
                                     timeout_ms, ret_error, ret_value);
}

int mu_node_spawn(mu_node *node, const char *type, const mu_value *args,
                  const mu_actor_options *options, int64_t timeout_ms,
                  mu_error *ret_error, mu_address *ret_address)
{
    MU__REQUIRE(ret_error, node, type, ret_address);

    mu_remote_value *value;
    mu_value *address = NULL;
    int rv =
        mu_actor_request_spawn(node, type, args, options, timeout_ms, ret_error, &value);

    if (rv != 0)
        return rv;
    rv = mu_remote_value_fetch(value, -1, ret_error, &address);
    if (rv == 0 && mu_value_get_actor(address, ret_address) != 0)
        rv = mu_error_set(ret_error, -MU_EDATALOSS, "the answer is no address");
    mu_value_free(address);
    mu_remote_value_free(value);
    return rv;
}
