/* The public calls about the content of variables: each is a request, which is checked,
 * made by the variables actor, and awaited or not. */
#include "api/variables/variable_requests.h"

#include "api/under_way.h"
#include "api/variables/variable_cache.h"

#include "actors/ps/rows/row_list.h"
#include "node/node.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>
#include <uv.h>

/* ---- Checks ---- */

static int prepare_gradient(const mu_variable *variable,
                            const mu_variable_request *request,
                            struct mu__variable_request *made, mu_error *ret_error)
{
    if (request->optimizer == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "variable %s: a gradient without an optimizer",
                            variable->opened->name);
    if (request->rows != NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "variable %s: a gradient is not of rows",
                            variable->opened->name);
    return mu__variable_rule(variable, request->optimizer, made->rule, ret_error,
                             &made->call.rule);
}

static int prepare_whole(const mu_variable *variable, const mu_variable_request *request,
                         struct mu__variable_request *made, mu_error *ret_error)
{
    static const int operations[] = {
        [MU_VARIABLE_READ] = MU__VARIABLE_READ,
        [MU_VARIABLE_ASSIGN] = MU__VARIABLE_ASSIGN,
        [MU_VARIABLE_ADD] = MU__VARIABLE_ADD,
        [MU_VARIABLE_APPLY] = MU__VARIABLE_APPLY,
    };

    if (request->operation == MU_VARIABLE_UPDATE)
        return mu_error_set(ret_error, -MU_EINVALID, "variable %s: an update is of rows",
                            variable->opened->name);
    made->call.call.operation = operations[request->operation];
    return mu__variable_check(variable, made->call.call.operation,
                              request->operation == MU_VARIABLE_READ ? request->target
                                                                     : request->source,
                              request->bytes, ret_error);
}

/* A read that may be some time old: what was kept is taken, or what comes is kept. */
static void prepare_kept(const mu_variable *variable, const mu_variable_request *request,
                         struct mu__variable_request *made)
{
    made->began_ns = uv_hrtime();
    made->is_kept =
        !mu__variable_cache_get(variable->cache, request->max_age_ms, request->target,
                                request->bytes, &made->writes);
    if (!made->is_kept)
        made->call.call.operation = MU__VARIABLE_NOTHING;
}

static int check_operation(const mu_variable *variable,
                           const mu_variable_request *request, mu_error *ret_error)
{
    if (request->operation >= MU_VARIABLE_READ &&
        request->operation <= MU_VARIABLE_UPDATE)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID, "variable %s: no operation %d",
                        variable->opened->name, request->operation);
}

static int prepare_request(const mu_variable *variable,
                           const mu_variable_request *request,
                           struct mu__variable_request *made, mu_error *ret_error)
{
    bool reads = request->operation == MU_VARIABLE_READ;
    int rv = check_operation(variable, request, ret_error);

    *made = (struct mu__variable_request){.bytes = request->bytes};
    made->call =
        mu__variable_make_call(variable, MU__VARIABLE_NOTHING, request->timeout_ms);
    made->call.target = reads ? request->target : NULL;
    made->call.source = reads ? NULL : request->source;
    if (rv == 0 && request->operation == MU_VARIABLE_APPLY)
        rv = prepare_gradient(variable, request, made, ret_error);
    if (rv == 0)
        rv = request->rows != NULL
                 ? mu__variable_prepare_rows(variable, request, made, ret_error)
                 : prepare_whole(variable, request, made, ret_error);
    if (rv == 0 && reads && request->rows == NULL && request->is_cached != 0)
        prepare_kept(variable, request, made);
    return rv;
}

/* Of one that was prepared, whatever came of that. */
static void finish_request(const mu_variable *variable, struct mu__variable_request *made,
                           int code)
{
    if (made->call.target == NULL)
        mu__variable_cache_drop(variable->cache);
    else if (code == 0 && made->is_kept)
        mu__variable_cache_put(variable->cache, made->call.target, made->bytes,
                               made->began_ns, made->writes);
    free(made->packed);
    mu__row_list_done(&made->list);
}

int mu_variable_request_wait(mu_variable *variable, const mu_variable_request *request,
                             mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, request);

    struct mu__variable_request made;
    int rv = prepare_request(variable, request, &made, ret_error);

    if (rv == 0 && made.call.call.operation != MU__VARIABLE_NOTHING)
        rv = mu__variable_run_call(variable, &made.call, ret_error);
    finish_request(variable, &made, rv);
    return rv;
}

/* ---- Without waiting ---- */

/* One that is under way. */
struct request_later {
    struct mu__pending pending; /* first */
    struct mu__variable_request made;
    mu_variable *variable; /* held */
    uint64_t counted;
    mu_variable_done_fn done;
    void *user;
    uint64_t ids[]; /* of the shards */
};

static void free_request_later(struct request_later *later)
{
    mu__under_way_end(&later->variable->bytes_under_way, later->counted);
    mu_variable_close(later->variable);
    free(later);
}

/* On the loop. */
static void on_request_done(struct mu__pending *pending)
{
    struct request_later *later = (struct request_later *)(void *)pending;
    struct mu__variable_call *call = &later->made.call;
    int code = call->call.code;

    if (call->reopened)
        mu__opened_variable_store(later->variable->opened, later->ids);
    finish_request(later->variable, &later->made, code);
    if (code != 0)
        (void)mu__variable_take_error(later->variable, call, code, &call->call.error);
    later->done(later->user, code, code == 0 ? NULL : &call->call.error);
    free_request_later(later);
}

/* What is copied of rows. */
static uint64_t bytes_of_rows(const struct mu__variable_request *made)
{
    uint64_t bytes = made->list.count * (sizeof(uint64_t) + MU__ROW_NUMBER_BYTES);

    return made->packed == NULL ? bytes : bytes + made->bytes;
}

static struct request_later *request_later_new(mu_variable *variable)
{
    uint32_t count = variable->opened->shape.shards;
    struct request_later *later = calloc(1, sizeof *later + count * sizeof later->ids[0]);

    if (later == NULL)
        return NULL;
    atomic_fetch_add(&variable->refs, 1);
    later->variable = variable;
    return later;
}

static int begin_variable_request(struct request_later *later)
{
    mu_variable *variable = later->variable;
    int rv = mu__under_way_begin(&variable->bytes_under_way, bytes_of_rows(&later->made),
                                 &later->counted);

    if (rv != 0)
        return rv;
    mu__opened_variable_load(variable->opened, later->ids);
    later->made.call.ids = later->ids;
    return mu__node_call_later(variable->node, MU__VARIABLES, &later->pending,
                               &later->made.call.call, on_request_done);
}

int mu_variable_request_async(mu_variable *variable, const mu_variable_request *request,
                              mu_variable_done_fn done, void *user, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, request, done);

    struct request_later *later = request_later_new(variable);
    int rv;

    if (later == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "variable %s: no memory",
                            variable->opened->name);
    later->done = done;
    later->user = user;
    rv = prepare_request(variable, request, &later->made, ret_error);
    if (rv == 0) {
        rv = begin_variable_request(later);
        if (rv == 0)
            return 0;
        if (rv == -MU_ECLOSED)
            mu__node_say_closed(variable->node, rv, ret_error);
        else
            (void)mu_error_set(ret_error, rv, "variable %s: %s", variable->opened->name,
                               mu_strerror(rv));
    }
    finish_request(variable, &later->made, rv);
    free_request_later(later);
    return rv;
}

/* ---- One call for each ---- */

int mu_variable_read(mu_variable *variable, void *buffer, size_t bytes,
                     int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, buffer);

    const mu_variable_request request = {
        .operation = MU_VARIABLE_READ,
        .target = buffer,
        .bytes = bytes,
        .timeout_ms = timeout_ms,
    };

    return mu_variable_request_wait(variable, &request, ret_error);
}

int mu_variable_read_cached(mu_variable *variable, void *buffer, size_t bytes,
                            uint64_t max_age_ms, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, buffer);

    const mu_variable_request request = {
        .operation = MU_VARIABLE_READ,
        .target = buffer,
        .bytes = bytes,
        .is_cached = 1,
        .max_age_ms = max_age_ms,
        .timeout_ms = timeout_ms,
    };

    return mu_variable_request_wait(variable, &request, ret_error);
}

int mu_variable_assign(mu_variable *variable, const void *buffer, size_t bytes,
                       int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, buffer);

    const mu_variable_request request = {
        .operation = MU_VARIABLE_ASSIGN,
        .source = buffer,
        .bytes = bytes,
        .timeout_ms = timeout_ms,
    };

    return mu_variable_request_wait(variable, &request, ret_error);
}

int mu_variable_add(mu_variable *variable, const void *delta, size_t bytes,
                    int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, delta);

    const mu_variable_request request = {
        .operation = MU_VARIABLE_ADD,
        .source = delta,
        .bytes = bytes,
        .timeout_ms = timeout_ms,
    };

    return mu_variable_request_wait(variable, &request, ret_error);
}

int mu_variable_apply(mu_variable *variable, const void *gradient, size_t bytes,
                      const mu_optimizer *optimizer, int64_t timeout_ms,
                      mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, gradient, optimizer);

    const mu_variable_request request = {
        .operation = MU_VARIABLE_APPLY,
        .source = gradient,
        .optimizer = optimizer,
        .bytes = bytes,
        .timeout_ms = timeout_ms,
    };

    return mu_variable_request_wait(variable, &request, ret_error);
}

int mu_variable_read_rows(mu_variable *variable, const mu_rows *rows, void *buffer,
                          size_t bytes, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, rows, buffer);

    const mu_variable_request request = {
        .operation = MU_VARIABLE_READ,
        .rows = rows,
        .target = buffer,
        .bytes = bytes,
        .timeout_ms = timeout_ms,
    };

    return mu_variable_request_wait(variable, &request, ret_error);
}

int mu_variable_assign_rows(mu_variable *variable, const mu_rows *rows,
                            const void *buffer, size_t bytes, int64_t timeout_ms,
                            mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, rows, buffer);

    const mu_variable_request request = {
        .operation = MU_VARIABLE_ASSIGN,
        .rows = rows,
        .source = buffer,
        .bytes = bytes,
        .timeout_ms = timeout_ms,
    };

    return mu_variable_request_wait(variable, &request, ret_error);
}

int mu_variable_add_rows(mu_variable *variable, const mu_rows *rows, const void *delta,
                         size_t bytes, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, rows, delta);

    const mu_variable_request request = {
        .operation = MU_VARIABLE_ADD,
        .rows = rows,
        .source = delta,
        .bytes = bytes,
        .timeout_ms = timeout_ms,
    };

    return mu_variable_request_wait(variable, &request, ret_error);
}

int mu_variable_update_rows(mu_variable *variable, int update, const mu_rows *rows,
                            const void *buffer, size_t bytes, int64_t timeout_ms,
                            mu_error *ret_error)
{
    MU__REQUIRE(ret_error, variable, rows, buffer);

    const mu_variable_request request = {
        .operation = MU_VARIABLE_UPDATE,
        .update = update,
        .rows = rows,
        .source = buffer,
        .bytes = bytes,
        .timeout_ms = timeout_ms,
    };

    return mu_variable_request_wait(variable, &request, ret_error);
}
