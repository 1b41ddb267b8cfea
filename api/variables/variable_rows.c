/* Rows of variables, by range or by list: requests are prepared here, and writes of a run
 * cut into shards and pieces. */
#include "api/variables/variable_requests.h"

#include "actors/ps/optimizer.h"
#include "actors/ps/rows/row_updates.h"
#include "actors/ps/rows/rows.h"
#include "actors/worker/function_run.h"
#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <stdlib.h>

_Static_assert(MU_VARIABLE_ROW_BYTES_MAX == MU__PIECE_BYTES_MAX - MU__ROW_NUMBER_BYTES,
               "a row and its number are a piece");

/* ---- Checks ---- */

/* What is done to rows; updates are counted from the last one on. */
enum access { ROWS_ARE_READ, ROWS_ARE_ASSIGNED, ROWS_ARE_ADDED, ROWS_ARE_UPDATED };

_Static_assert(MU__VARIABLE_SCATTER_DIV - MU__VARIABLE_SCATTER_MIN ==
                       MU_ROWS_DIV - MU_ROWS_MIN &&
                   (int)MU__WRITE_SCATTER_DIV - (int)MU__WRITE_SCATTER_MIN ==
                       MU_ROWS_DIV - MU_ROWS_MIN,
               "in the same order here and there");

/* What the actor, and what a server calls it. */
static const struct row_operation {
    int call;
    int listed_call;
    uint32_t write;
    uint32_t listed_write;
} row_operations[] = {
    [ROWS_ARE_READ] = {MU__VARIABLE_ROWS_READ, MU__VARIABLE_GATHER, 0, 0},
    [ROWS_ARE_ASSIGNED] = {MU__VARIABLE_ROWS_ASSIGN, MU__VARIABLE_SCATTER_UPDATE,
                           MU__WRITE_ROWS_ASSIGN, MU__WRITE_SCATTER_UPDATE},
    [ROWS_ARE_ADDED] = {MU__VARIABLE_ROWS_ADD, MU__VARIABLE_SCATTER_ADD,
                        MU__WRITE_ROWS_ADD, MU__WRITE_SCATTER_ADD},
};

static struct row_operation row_operation_of(int access)
{
    const int update = access - ROWS_ARE_UPDATED;

    if (access < ROWS_ARE_UPDATED)
        return row_operations[access];
    return (struct row_operation){.listed_call = MU__VARIABLE_SCATTER_MIN + update,
                                  .listed_write =
                                      MU__WRITE_SCATTER_MIN + (uint32_t)update};
}

static int check_row_range(const struct mu__opened_variable *opened, const mu_rows *rows,
                           mu_error *ret_error)
{
    uint64_t size = opened->shape.dims[0];

    if (rows->list == NULL && (rows->first > size || rows->count > size - rows->first))
        return mu_error_set(ret_error, -MU_ERANGE,
                            "variable %s: %" PRIu64 " rows from %" PRIu64
                            " on: it has %" PRIu64,
                            opened->name, rows->count, rows->first, size);
    if (rows->list != NULL &&
        mu__shape_row_bytes(&opened->shape) > MU_VARIABLE_ROW_BYTES_MAX)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "variable %s: its rows have %" PRIu64
                            " bytes: those of a list have at most %d",
                            opened->name, mu__shape_row_bytes(&opened->shape),
                            MU_VARIABLE_ROW_BYTES_MAX);
    return 0;
}

static int check_rows_bytes(const struct mu__opened_variable *opened, const mu_rows *rows,
                            size_t bytes, mu_error *ret_error)
{
    uint64_t row_bytes = mu__shape_row_bytes(&opened->shape);

    if (bytes % row_bytes == 0 && bytes / row_bytes == rows->count)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "variable %s: a buffer of %zu bytes for %" PRIu64
                        " rows of %" PRIu64,
                        opened->name, bytes, rows->count, row_bytes);
}

static int check_row_access(const mu_variable *variable, int access, const mu_rows *rows,
                            size_t bytes, mu_error *ret_error)
{
    const struct mu__opened_variable *opened = variable->opened;
    int rv;

    if (opened->shape.rank == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "variable %s is a number, and has no rows", opened->name);
    if (access >= ROWS_ARE_ADDED && !mu__optimizer_adds((int)opened->shape.dtype))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "variable %s is %s, which does not %s", opened->name,
                            mu_dtype_name((int)opened->shape.dtype),
                            access == ROWS_ARE_ADDED ? "add" : "calculate");
    rv = check_row_range(opened, rows, ret_error);
    return rv == 0 ? check_rows_bytes(opened, rows, bytes, ret_error) : rv;
}

/* -MU_ERANGE, -MU_ENOMEM, with the variable's name. */
static int sort_row_list(const struct mu__opened_variable *opened, const mu_rows *rows,
                         mu_error *ret_error, struct mu__row_list *ret_list)
{
    mu_error error;
    int rv = mu__row_list_init(ret_list, &opened->shape, rows->list, rows->count, &error);

    if (rv == 0)
        return 0;
    return mu_error_set(ret_error, rv, "variable %s: %s", opened->name, error.message);
}

/* ---- Updates ---- */

/* The rows of an update as a list, which free_made_list() frees. */
static int prepare_row_update(int update, const mu_variable *variable,
                              const mu_rows *rows, size_t bytes, mu_error *ret_error,
                              mu_rows *listed)
{
    int64_t *list;
    int rv;

    if (update < MU_ROWS_MIN || update > MU_ROWS_DIV)
        return mu_error_set(ret_error, -MU_EINVALID, "variable %s: no update %d of rows",
                            variable->opened->name, update);
    rv = check_row_access(variable, ROWS_ARE_UPDATED, rows, bytes, ret_error);
    if (rv != 0)
        return rv;
    if (rows->list != NULL || rows->count == 0)
        return 0;
    list = calloc((size_t)rows->count, sizeof *list);
    if (list == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM,
                            "variable %s: no memory for %" PRIu64 " rows",
                            variable->opened->name, rows->count);
    for (uint64_t i = 0; i < rows->count; i++)
        list[i] = (int64_t)(rows->first + i);
    listed->list = list;
    return 0;
}

static void free_made_list(const mu_rows *made, const mu_rows *rows)
{
    if (made->list != rows->list)
        free((void *)(uintptr_t)made->list);
}

/* ---- Requests ---- */

static int access_of(const mu_variable_request *request)
{
    static const int accesses[] = {
        [MU_VARIABLE_READ] = ROWS_ARE_READ,
        [MU_VARIABLE_ASSIGN] = ROWS_ARE_ASSIGNED,
        [MU_VARIABLE_ADD] = ROWS_ARE_ADDED,
    };

    if (request->operation == MU_VARIABLE_UPDATE)
        return ROWS_ARE_UPDATED + request->update - MU_ROWS_MIN;
    return accesses[request->operation];
}

static int prepare_row_list(const mu_variable *variable, const mu_rows *rows,
                            struct mu__variable_request *made, mu_error *ret_error)
{
    struct mu__row_list list;
    int rv = sort_row_list(variable->opened, rows, ret_error, &list);

    if (rv != 0)
        return rv;
    made->list = list;
    made->rows.list = &made->list;
    if (made->call.source == NULL)
        return 0;
    made->packed = mu__row_list_pack(&list, &variable->opened->shape, made->call.source);
    made->call.source = made->packed;
    if (made->packed != NULL)
        return 0;
    return mu_error_set(ret_error, -MU_ENOMEM,
                        "variable %s: no memory for %" PRIu64 " rows",
                        variable->opened->name, rows->count);
}

static int check_request_rows(const mu_variable *variable,
                              const mu_variable_request *request, mu_error *ret_error,
                              mu_rows *rows)
{
    if (request->operation == MU_VARIABLE_UPDATE)
        return prepare_row_update(request->update, variable, request->rows,
                                  request->bytes, ret_error, rows);
    return check_row_access(variable, access_of(request), rows, request->bytes,
                            ret_error);
}

int mu__variable_prepare_rows(const mu_variable *variable,
                              const mu_variable_request *request,
                              struct mu__variable_request *made, mu_error *ret_error)
{
    mu_rows rows = *request->rows;
    struct row_operation operation;
    int rv;

    if (made->call.target == NULL && made->call.source == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "variable %s: the buffer is NULL",
                            variable->opened->name);
    rv = check_request_rows(variable, request, ret_error, &rows);
    if (rv != 0 || rows.count == 0)
        return rv;
    operation = row_operation_of(access_of(request));
    made->rows = (struct mu__rows){.first = rows.first, .count = rows.count};
    made->call.rows = &made->rows;
    made->call.call.operation =
        rows.list != NULL ? operation.listed_call : operation.call;
    if (rows.list != NULL)
        rv = prepare_row_list(variable, &rows, made, ret_error);
    free_made_list(&rows, request->rows);
    return rv;
}

/* ---- Writes of a run ---- */

/* One write of one shard; `data` has the rows of it. */
static int add_row_effect(mu_run *run, struct mu__opened_variable *opened, uint32_t shard,
                          struct mu__effect effect, const uint8_t *data)
{
    effect.partition = mu__partition_of(mu__view_str(opened->name), shard);
    effect.opened = opened;
    effect.shard = shard;
    effect.variable = atomic_load_explicit(&opened->ids[shard], memory_order_relaxed);
    return mu__effects_add(&run->effects, &effect, data);
}

static int add_row_range(mu_run *run, struct mu__opened_variable *opened,
                         const mu_rows *rows, int access, const uint8_t *data)
{
    uint64_t begin = rows->first * mu__shape_row_bytes(&opened->shape);
    uint64_t end = begin + rows->count * mu__shape_row_bytes(&opened->shape);
    int rv = 0;

    for (uint32_t shard = 0; shard < opened->shape.shards && rv == 0; shard++) {
        struct mu__effect effect = {.operation = row_operation_of(access).write};
        uint64_t offset;
        uint64_t bytes;
        uint64_t from;

        mu__shape_shard(&opened->shape, shard, &offset, &bytes);
        if (offset + bytes <= begin || offset >= end)
            continue;
        from = begin > offset ? begin : offset;
        effect.offset = from - offset;
        effect.size = (end < offset + bytes ? end : offset + bytes) - from;
        rv = add_row_effect(run, opened, shard, effect, data + (from - begin));
    }
    return rv;
}

/* A piece is a write of its own. */
static int add_row_group(mu_run *run, struct mu__opened_variable *opened,
                         const struct mu__row_group *group, uint32_t operation,
                         const uint8_t *packed)
{
    uint64_t each = MU__ROW_NUMBER_BYTES + mu__shape_row_bytes(&opened->shape);
    uint64_t most = mu__row_write_max(&opened->shape);
    int rv = 0;

    packed += group->first * each;
    for (uint64_t done = 0; done < group->count && rv == 0; done += most) {
        uint64_t left = group->count - done;
        const struct mu__effect effect = {.operation = operation,
                                          .size = (left < most ? left : most) * each};

        rv = add_row_effect(run, opened, group->shard, effect, packed + done * each);
    }
    return rv;
}

static int add_row_list(mu_run *run, struct mu__opened_variable *opened,
                        const struct mu__row_list *list, int access, const void *data)
{
    const uint32_t operation = row_operation_of(access).listed_write;
    uint8_t *packed = mu__row_list_pack(list, &opened->shape, data);
    int rv = packed == NULL ? -MU_ENOMEM : 0;

    for (uint32_t i = 0; i < list->groups_count && rv == 0; i++)
        rv = add_row_group(run, opened, &list->groups[i], operation, packed);
    free(packed);
    return rv;
}

/* All of them, or none. */
static int add_row_writes(mu_run *run, struct mu__opened_variable *opened,
                          const mu_rows *rows, int access, const void *data)
{
    struct mu__effect *last = run->effects.last;
    uint64_t before = run->effects.bytes;
    struct mu__row_list list;
    mu_error error;
    int rv;

    if (rows->list == NULL) {
        rv = add_row_range(run, opened, rows, access, data);
    } else {
        rv = sort_row_list(opened, rows, &error, &list);
        if (rv != 0)
            return mu_run_fail(run, rv, "%s", error.message);
        rv = add_row_list(run, opened, &list, access, data);
        mu__row_list_done(&list);
    }
    if (rv == 0)
        return 0;
    mu__effects_cut(&run->effects, last, before);
    return mu_run_fail(run, rv,
                       rv == -MU_EEXHAUSTED ? "variable %s: %" PRIu64
                                              " rows more are too many for one run, "
                                              "which may write %d bytes"
                                            : "variable %s: no memory for %" PRIu64
                                              " rows",
                       opened->name, rows->count, MU__EFFECTS_BYTES_MAX);
}

static int write_rows(mu_run *run, mu_variable *variable, int access, const mu_rows *rows,
                      const void *data, size_t bytes)
{
    mu_error error;
    int rv;

    if (variable == NULL || rows == NULL || data == NULL)
        return mu_run_fail(run, -MU_EINVALID, "a write to no rows");
    if (variable->node != run->node)
        return mu_run_fail(run, -MU_EINVALID,
                           "variable %s was opened on another node than the run's",
                           variable->opened->name);
    rv = check_row_access(variable, access, rows, bytes, &error);
    if (rv != 0)
        return mu_run_fail(run, rv, "%s", error.message);
    return rows->count == 0 ? 0
                            : add_row_writes(run, variable->opened, rows, access, data);
}

int mu_run_assign_rows(mu_run *run, mu_variable *variable, const mu_rows *rows,
                       const void *buffer, size_t bytes)
{
    MU__REQUIRE(NULL, run);
    return write_rows(run, variable, ROWS_ARE_ASSIGNED, rows, buffer, bytes);
}

int mu_run_add_rows(mu_run *run, mu_variable *variable, const mu_rows *rows,
                    const void *delta, size_t bytes)
{
    MU__REQUIRE(NULL, run);
    return write_rows(run, variable, ROWS_ARE_ADDED, rows, delta, bytes);
}

int mu_run_update_rows(mu_run *run, mu_variable *variable, int update,
                       const mu_rows *rows, const void *buffer, size_t bytes)
{
    MU__REQUIRE(NULL, run);

    const int access = ROWS_ARE_UPDATED + update - MU_ROWS_MIN;
    mu_rows listed;
    mu_error error;
    int rv;

    if (variable == NULL || rows == NULL)
        return mu_run_fail(run, -MU_EINVALID, "a write to no rows");
    listed = *rows;
    rv = prepare_row_update(update, variable, rows, bytes, &error, &listed);
    if (rv != 0)
        return mu_run_fail(run, rv, "%s", error.message);
    rv = write_rows(run, variable, access, &listed, buffer, bytes);
    free_made_list(&listed, rows);
    return rv;
}
