/* Handles of variables, and their calls to the variables actor. */
#include "api/internal.h"
#include "api/variables/variable_cache.h"

#include "actors/ps/optimizer.h"
#include "actors/variables/variables.h"
#include "node/deadline.h"
#include "node/node.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>
#include <string.h>

/* Variables up to this many bytes have one shard, unless asked otherwise. */
enum { ONE_SHARD_BYTES_MAX = 64 << 10 };

enum { OPENS_MAX = 4 }; /* tries, while others recreate it with other shards */

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

int mu__variable_make_shape(const mu_variable_spec *spec, uint32_t servers_count,
                            mu_error *ret_error, struct mu__shape *ret_shape)
{
    struct mu__shape shape = {
        .dtype = (uint32_t)spec->dtype, .rank = spec->rank, .shards = 1};
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
        shape.shards =
            spec->shards < shape.dims[0] ? spec->shards : (uint32_t)shape.dims[0];
    rv = mu__shape_check(&shape, ret_error);
    if (rv == 0)
        *ret_shape = shape;
    return rv;
}

static int check_flags(const mu_variable_spec *spec, mu_error *ret_error)
{
    const unsigned both = MU_VARIABLE_EXISTING | MU_VARIABLE_RECREATE;
    const unsigned flags = spec->flags & ~(unsigned)MU_VARIABLE_SAME;

    if ((flags & ~both) == 0 && flags != both)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "variable %s: flags %u: expected 0, MU_VARIABLE_EXISTING (%d) or "
                        "MU_VARIABLE_RECREATE (%d), and MU_VARIABLE_SAME (%d)",
                        spec->name, spec->flags, MU_VARIABLE_EXISTING,
                        MU_VARIABLE_RECREATE, MU_VARIABLE_SAME);
}

static int check_spec(mu_node *node, const mu_variable_spec *spec, mu_error *ret_error,
                      struct mu__shape *ret_shape)
{
    unsigned servers_count = (unsigned)node->ps_count;
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
    rv = mu__variable_make_shape(spec, servers_count, &error, ret_shape);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "variable %s: %s", spec->name, error.message);
    return 0;
}

/* ---- Calling ---- */

enum { IDS_NEAR = 16 }; /* ids on the stack; more are on the heap */

struct mu__variable_call mu__variable_make_call(const mu_variable *variable,
                                                int operation, int64_t timeout_ms)
{
    return (struct mu__variable_call){
        .call = {.operation = operation, .timeout_ms = timeout_ms},
        .name = variable->opened->name,
        .shape = &variable->opened->shape,
        .servers_count = variable->opened->servers_count,
        .flags = variable->opened->is_same ? MU_VARIABLE_SAME : 0,
    };
}

/* The call has a copy of the ids, since other threads use the handle too. */
static int call_with(mu_variable *variable, struct mu__variable_call *call, uint64_t *ids)
{
    int rv;

    mu__opened_variable_load(variable->opened, ids);
    call->ids = ids;
    rv = mu__node_call(variable->node, MU__VARIABLES, &call->call, NULL);
    if (call->reopened || (rv == 0 && call->call.operation == MU__VARIABLE_OPEN))
        mu__opened_variable_store(variable->opened, ids);
    return rv;
}

static int call_actor(mu_variable *variable, struct mu__variable_call *call)
{
    uint32_t count = variable->opened->shape.shards;
    uint64_t near[IDS_NEAR];
    uint64_t *ids = count <= IDS_NEAR ? near : calloc(count, sizeof *ids);
    int rv;

    if (ids == NULL)
        return -MU_ENOMEM;
    rv = call_with(variable, call, ids);
    if (ids != near)
        free(ids);
    return rv;
}

int mu__variable_take_error(const mu_variable *variable,
                            const struct mu__variable_call *call, int code,
                            mu_error *ret_error)
{
    if (call->call.error.code == 0)
        return mu_error_set(ret_error, code, "variable %s: %s", variable->opened->name,
                            mu_strerror(code));
    if (ret_error != NULL)
        *ret_error = call->call.error;
    return code;
}

int mu__variable_run_call(mu_variable *variable, struct mu__variable_call *call,
                          mu_error *ret_error)
{
    int rv = call_actor(variable, call);

    return rv == 0 ? 0 : mu__variable_take_error(variable, call, rv, ret_error);
}

static int check_buffer_bytes(const mu_variable *variable, const void *buffer,
                              size_t bytes, mu_error *ret_error)
{
    if (bytes != mu_variable_bytes(variable))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "variable %s: a buffer of %zu bytes: expected %zu",
                            variable->opened->name, bytes, mu_variable_bytes(variable));
    if (buffer == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "variable %s: the buffer is NULL",
                            variable->opened->name);
    return 0;
}

static int check_dtype(const mu_variable *variable, bool fits, const char *what,
                       mu_error *ret_error)
{
    if (fits)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID, "variable %s is %s, which %s",
                        variable->opened->name,
                        mu_dtype_name((int)variable->opened->shape.dtype), what);
}

int mu__variable_check(const mu_variable *variable, int operation, const void *buffer,
                       size_t bytes, mu_error *ret_error)
{
    int dtype = (int)variable->opened->shape.dtype;
    int rv = check_buffer_bytes(variable, buffer, bytes, ret_error);

    if (rv == 0 && operation == MU__VARIABLE_ADD)
        rv = check_dtype(variable, mu__optimizer_adds(dtype), "does not add", ret_error);
    return rv;
}

int mu__variable_rule(const mu_variable *variable, const mu_optimizer *optimizer,
                      uint8_t *bytes, mu_error *ret_error, struct mu__view *ret_rule)
{
    mu_error error;
    int rv = mu__optimizer_pack(optimizer, (int)variable->opened->shape.dtype, bytes,
                                &error, ret_rule);

    if (rv == 0)
        return 0;
    return mu_error_set(ret_error, rv, "variable %s: %s", variable->opened->name,
                        error.message);
}

int mu__variable_write_slot(mu_variable *variable, int operation,
                            const struct mu__shape *shape, struct mu__view rule,
                            const void *content, int64_t timeout_ms, mu_error *ret_error)
{
    struct mu__variable_call call =
        mu__variable_make_call(variable, operation, timeout_ms);

    call.shape = shape;
    call.rule = rule;
    call.source = content;
    return mu__variable_run_call(variable, &call, ret_error);
}

/* ---- Handles ---- */

static mu_variable *variable_new(mu_node *node, const char *name,
                                 const struct mu__shape *shape)
{
    mu_variable *variable = malloc(sizeof *variable);
    struct mu__variable_cache *cache = mu__variable_cache_new();
    struct mu__opened_variable *opened =
        mu__opened_variable_new(name, shape, (uint32_t)node->ps_count);

    if (variable == NULL || opened == NULL || cache == NULL) {
        free(variable);
        mu__variable_cache_free(cache);
        mu__opened_variable_unref(opened);
        return NULL;
    }
    *variable = (mu_variable){.node = node, .opened = opened, .cache = cache};
    atomic_init(&variable->refs, 1);
    mu__node_ref(node);
    return variable;
}

void mu_variable_close(mu_variable *variable)
{
    if (variable == NULL || atomic_fetch_sub(&variable->refs, 1) != 1)
        return;
    mu__node_unref(variable->node);
    mu__opened_variable_unref(variable->opened);
    mu__variable_cache_free(variable->cache);
    free(variable);
}

static int open_initialized(mu_variable *variable, struct mu__variable_call *call,
                            const mu_initializer *initializer, mu_error *ret_error)
{
    struct mu__initial initial;
    void *content = NULL;
    mu_error error;
    int rv;

    if (initializer == NULL)
        return mu__variable_run_call(variable, call, ret_error);
    rv = mu__initializer_prepare(initializer, variable->opened->name,
                                 &variable->opened->shape, &error, &initial, &content);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "variable %s: %s", variable->opened->name,
                            error.message);
    call->source = content;
    call->initial = content == NULL ? &initial : NULL;
    rv = mu__variable_run_call(variable, call, ret_error);
    free(content);
    return rv;
}

/* *ret_found: the number of shards of the variable that is there, when only that number
 * is another one; else 0. */
static int open_as(mu_node *node, const mu_variable_spec *spec,
                   const struct mu__shape *shape, int64_t timeout_ms, mu_error *ret_error,
                   uint32_t *ret_found, mu_variable **ret_variable)
{
    mu_variable *variable = variable_new(node, spec->name, shape);
    struct mu__variable_call call;
    int rv;

    if (variable == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "variable %s: out of memory",
                            spec->name);
    variable->opened->is_same = (spec->flags & MU_VARIABLE_SAME) != 0;
    call = mu__variable_make_call(variable, MU__VARIABLE_OPEN, timeout_ms);
    call.source = spec->initial;
    call.flags = spec->flags;
    rv = open_initialized(variable, &call, spec->initializer, ret_error);
    *ret_found = rv == -MU_EPRECONDITION ? call.found_shards : 0;
    if (rv != 0) {
        mu_variable_close(variable);
        return rv;
    }
    *ret_variable = variable;
    return 0;
}

/* A number of shards that the library has chosen gives way to that which is there: it may
 * have been restored from a checkpoint of a cluster of another size. */
int mu_variable_open(mu_node *node, const mu_variable_spec *spec, int64_t timeout_ms,
                     mu_error *ret_error, mu_variable **ret_variable)
{
    MU__REQUIRE(ret_error, node, spec, ret_variable);

    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    struct mu__shape shape;
    uint32_t found = 0;
    int rv = check_spec(node, spec, ret_error, &shape);

    if (rv != 0)
        return rv;
    for (int i = 0; i < OPENS_MAX; i++) {
        rv = open_as(node, spec, &shape, mu__deadline_left_ms(deadline_ns), ret_error,
                     &found, ret_variable);
        if (found == 0 || spec->shards != 0)
            return rv;
        shape.shards = found;
        if (mu__shape_check(&shape, NULL) != 0)
            return rv;
    }
    return rv;
}

size_t mu_variable_bytes(const mu_variable *variable)
{
    MU__REQUIRE_OR(0, variable);
    return (size_t)mu__shape_bytes(&variable->opened->shape);
}

int mu_variable_version(mu_variable *variable, int64_t timeout_ms, mu_error *ret_error,
                        uint64_t *ret_version)
{
    MU__REQUIRE(ret_error, variable, ret_version);

    struct mu__variable_call call =
        mu__variable_make_call(variable, MU__VARIABLE_VERSION, timeout_ms);
    int rv = mu__variable_run_call(variable, &call, ret_error);

    if (rv == 0)
        *ret_version = call.version;
    return rv;
}
