/* The public calls about variables: checks, then one call to the variables actor. */
#include "node/variable.h"

#include "actors/optimizer.h"
#include "actors/variables.h"
#include "node/node.h"

#include <stdlib.h>
#include <string.h>

/* Variables up to this many bytes have one shard, unless asked otherwise. */
enum { ONE_SHARD_BYTES_MAX = 64 << 10 };

/* ---- Opening ---- */

static uint32_t default_shards(const struct mu__shape *shape, uint32_t servers_count)
{
    uint64_t shards = servers_count;

    if (shape->rank == 0 || mu__shape_bytes(shape) <= ONE_SHARD_BYTES_MAX)
        return 1;
    if (shards > MU__VARIABLE_SHARDS_MAX)
        shards = MU__VARIABLE_SHARDS_MAX;
    return (uint32_t)(shape->dims[0] < shards ? shape->dims[0] : shards);
}

static int make_shape(const mu_variable_spec *spec, uint32_t servers_count,
                      mu_error *ret_error, struct mu__shape *ret_shape)
{
    struct mu__shape shape = {.dtype = (uint32_t)spec->dtype, .rank = spec->rank,
                              .shards = 1};
    int rv;

    if (spec->rank > 0 && spec->dims == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "dims is NULL: expected %u of them",
                            spec->rank);
    for (unsigned i = 0; i < spec->rank && i < MU_TENSOR_RANK_MAX; i++)
        shape.dims[i] = spec->dims[i];
    rv = mu__shape_check(&shape, ret_error);
    if (rv != 0)
        return rv;
    if (spec->shards == 0)
        shape.shards = default_shards(&shape, servers_count);
    else if (spec->rank > 0)
        shape.shards = spec->shards < shape.dims[0] ? spec->shards
                                                    : (uint32_t)shape.dims[0];
    rv = mu__shape_check(&shape, ret_error);
    if (rv == 0)
        *ret_shape = shape;
    return rv;
}

static int check_flags(const mu_variable_spec *spec, mu_error *ret_error)
{
    const unsigned both = MU_VARIABLE_EXISTING | MU_VARIABLE_RECREATE;

    if ((spec->flags & ~both) == 0 && spec->flags != both)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "variable %s: flags %u: expected 0, MU_VARIABLE_EXISTING (%d) or "
                        "MU_VARIABLE_RECREATE (%d)",
                        spec->name, spec->flags, MU_VARIABLE_EXISTING,
                        MU_VARIABLE_RECREATE);
}

static int check_spec(mu_node *node, const mu_variable_spec *spec, mu_error *ret_error,
                      struct mu__shape *ret_shape)
{
    unsigned servers_count = mu__node_ps_count(node);
    mu_error error;
    int rv;

    if (spec->name == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "a variable's name is NULL");
    if (strlen(spec->name) > MU__VARIABLE_NAME_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "variable %.32s...: the name has %zu bytes: expected 1 to %d",
                            spec->name, strlen(spec->name), MU__VARIABLE_NAME_MAX);
    rv = mu__variable_name_check(mu__view_str(spec->name), ret_error);
    if (rv == 0)
        rv = check_flags(spec, ret_error);
    if (rv != 0)
        return rv;
    if (servers_count == 0)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "variable %s: the cluster has no parameter server (ps)",
                            spec->name);
    rv = make_shape(spec, servers_count, &error, ret_shape);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "variable %s: %s", spec->name, error.message);
    return 0;
}

/* ---- Calling ---- */

static struct mu__variable_call call_of(mu_variable *variable, int operation,
                                        int64_t limit_ms)
{
    return (struct mu__variable_call){
        .call = {.operation = operation, .limit_ms = limit_ms},
        .name = variable->name,
        .shape = &variable->shape,
        .servers_count = variable->servers_count,
        .ids = variable->ids,
    };
}

static int run(mu_variable *variable, struct mu__variable_call *call, mu_error *ret_error)
{
    int rv = mu__node_call(variable->node, MU__VARIABLES, &call->call);

    if (rv == 0)
        return 0;
    if (call->call.error.code == 0)
        return mu_error_set(ret_error, rv, "variable %s: %s", variable->name,
                            mu_strerror(rv));
    if (ret_error != NULL)
        *ret_error = call->call.error;
    return rv;
}

static int check_bytes(const mu_variable *variable, const void *buffer, size_t bytes,
                       mu_error *ret_error)
{
    if (bytes != mu_variable_bytes(variable))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "variable %s: a buffer of %zu bytes: expected %zu",
                            variable->name, bytes, mu_variable_bytes(variable));
    if (buffer == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "variable %s: the buffer is NULL",
                            variable->name);
    return 0;
}

static int check_dtype(const mu_variable *variable, bool fits, const char *what,
                       mu_error *ret_error)
{
    if (fits)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID, "variable %s is %s, which %s",
                        variable->name, mu_dtype_name((int)variable->shape.dtype), what);
}

int mu__variable_check(const mu_variable *variable, int operation, const void *buffer,
                       size_t bytes, mu_error *ret_error)
{
    int dtype = (int)variable->shape.dtype;
    int rv = check_bytes(variable, buffer, bytes, ret_error);

    if (rv == 0 && operation == MU__VARIABLE_ADD)
        rv = check_dtype(variable, mu__optimizer_adds(dtype), "does not add", ret_error);
    if (rv == 0 && operation == MU__VARIABLE_APPLY)
        rv = check_dtype(variable, mu__optimizer_learns(dtype), "takes no gradients",
                         ret_error);
    return rv;
}

/* ---- The public calls ---- */

int mu_variable_open(mu_node *node, const mu_variable_spec *spec, int64_t limit_ms,
                     mu_error *ret_error, mu_variable **ret_variable)
{
    struct mu__variable_call call;
    struct mu__shape shape;
    mu_variable *variable;
    int rv = check_spec(node, spec, ret_error, &shape);

    if (rv != 0)
        return rv;
    variable = calloc(1, sizeof *variable + shape.shards * sizeof variable->ids[0]);
    if (variable == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "variable %s: out of memory",
                            spec->name);
    variable->node = node;
    variable->servers_count = mu__node_ps_count(node);
    variable->shape = shape;
    memcpy(variable->name, spec->name, strlen(spec->name));
    call = call_of(variable, MU__VARIABLE_OPEN, limit_ms);
    call.source = spec->initial;
    call.flags = spec->flags;
    rv = run(variable, &call, ret_error);
    if (rv != 0) {
        free(variable);
        return rv;
    }
    mu__node_ref(node);
    *ret_variable = variable;
    return 0;
}

void mu_variable_close(mu_variable *variable)
{
    if (variable == NULL)
        return;
    mu__node_unref(variable->node);
    free(variable);
}

size_t mu_variable_bytes(const mu_variable *variable)
{
    return (size_t)mu__shape_bytes(&variable->shape);
}

int mu_variable_read(mu_variable *variable, void *buffer, size_t bytes, int64_t limit_ms,
                     mu_error *ret_error)
{
    struct mu__variable_call call = call_of(variable, MU__VARIABLE_READ, limit_ms);
    int rv = mu__variable_check(variable, MU__VARIABLE_READ, buffer, bytes, ret_error);

    if (rv != 0)
        return rv;
    call.target = buffer;
    return run(variable, &call, ret_error);
}

int mu_variable_version(mu_variable *variable, int64_t limit_ms, mu_error *ret_error,
                        uint64_t *ret_version)
{
    struct mu__variable_call call = call_of(variable, MU__VARIABLE_VERSION, limit_ms);
    int rv = run(variable, &call, ret_error);

    if (rv == 0)
        *ret_version = call.version;
    return rv;
}

int mu_variable_assign(mu_variable *variable, const void *buffer, size_t bytes,
                       int64_t limit_ms, mu_error *ret_error)
{
    struct mu__variable_call call = call_of(variable, MU__VARIABLE_ASSIGN, limit_ms);
    int rv = mu__variable_check(variable, MU__VARIABLE_ASSIGN, buffer, bytes, ret_error);

    if (rv != 0)
        return rv;
    call.source = buffer;
    return run(variable, &call, ret_error);
}

int mu_variable_add(mu_variable *variable, const void *delta, size_t bytes,
                    int64_t limit_ms, mu_error *ret_error)
{
    struct mu__variable_call call = call_of(variable, MU__VARIABLE_ADD, limit_ms);
    int rv = mu__variable_check(variable, MU__VARIABLE_ADD, delta, bytes, ret_error);

    if (rv != 0)
        return rv;
    call.source = delta;
    return run(variable, &call, ret_error);
}

int mu_variable_apply(mu_variable *variable, const void *gradient, size_t bytes,
                      const mu_optimizer *optimizer, int64_t limit_ms,
                      mu_error *ret_error)
{
    struct mu__variable_call call = call_of(variable, MU__VARIABLE_APPLY, limit_ms);
    int rv = mu__variable_check(variable, MU__VARIABLE_APPLY, gradient, bytes, ret_error);

    if (rv != 0)
        return rv;
    call.source = gradient;
    call.rate = optimizer->rate;
    call.momentum = optimizer->momentum;
    return run(variable, &call, ret_error);
}
