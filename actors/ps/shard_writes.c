/* Writes to shards: assigns, whole and in pieces, adds and gradients; and batches. */
#include "actors/ps/internal.h"
#include "runtime/base/large_memory.h"

#include "actors/ps/initial/initial.h"
#include "actors/ps/optimizer.h"
#include "actors/ps/rows/row_updates.h"
#include "actors/ps/rows/rows.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Staged assigns ---- */

static struct transfer *first_transfer(const struct mu__variable_store *store)
{
    return MU__LIST_FIRST(&store->transfers, struct transfer, node);
}

static struct transfer *next_transfer(const struct transfer *transfer)
{
    return MU__LIST_NEXT(transfer, struct transfer, node);
}

static struct transfer *find_transfer(const struct mu__variable_store *store,
                                      const struct variable *v,
                                      const struct mu__store_write *write)
{
    struct transfer *transfer = first_transfer(store);

    while (transfer != NULL &&
           (transfer->variable != v || transfer->number != write->transfer ||
            !mu__pid_equal(transfer->writer, write->writer)))
        transfer = next_transfer(transfer);
    return transfer;
}

static void free_transfer(struct mu__variable_store *store, struct transfer *transfer)
{
    mu__list_remove(&store->transfers, &transfer->node);
    store->totals.transfers--;
    mu__shard_give_memory(store, transfer->data, transfer->variable->bytes);
    free(transfer);
}

void mu__shard_drop_transfers(struct mu__variable_store *store, const struct variable *v,
                              uint32_t node)
{
    struct transfer *next;

    for (struct transfer *at = first_transfer(store); at != NULL; at = next) {
        next = next_transfer(at);
        if (v == NULL ? at->writer.node == node : at->variable == v)
            free_transfer(store, at);
    }
}

static uint32_t transfers_of(const struct mu__variable_store *store, uint32_t node)
{
    uint32_t count = 0;

    for (const struct transfer *at = first_transfer(store); at != NULL;
         at = next_transfer(at))
        count += at->writer.node == node;
    return count;
}

bool mu__shard_has_transfers(const struct mu__variable_store *store, uint32_t node)
{
    return transfers_of(store, node) > 0;
}

/* Counted memory, with undefined content. */
static int get_staging(struct mu__variable_store *store, uint64_t bytes,
                       mu_error *ret_error, uint8_t **ret_data)
{
    int rv;

    if (store->spare == NULL || store->spare_bytes != bytes)
        return mu__shard_get_memory(store, bytes, ret_error, ret_data);
    rv = mu__shard_charge(store, bytes, ret_error);
    if (rv != 0)
        return rv;
    *ret_data = store->spare;
    store->spare = NULL;
    return 0;
}

/* Keep counted memory as the spare one, in place of an earlier one. */
static void save_spare(struct mu__variable_store *store, uint8_t *data, uint64_t bytes)
{
    mu__large_free(store->spare, (size_t)store->spare_bytes);
    store->spare = data;
    store->spare_bytes = bytes;
    mu__shard_discharge(store, bytes);
}

static int begin_transfer(struct mu__variable_store *store, struct variable *v,
                          const struct mu__store_write *write, mu_error *ret_error,
                          struct transfer **ret_transfer)
{
    struct transfer *transfer;
    int rv;

    if (transfers_of(store, write->writer.node) >= store->limits.transfers_node_max)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu32 " assigns of one node under way",
                            store->limits.transfers_node_max);
    transfer = calloc(1, sizeof *transfer);
    if (transfer == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    rv = get_staging(store, v->bytes, ret_error, &transfer->data);
    if (rv != 0) {
        free(transfer);
        return rv;
    }
    transfer->variable = v;
    transfer->writer = write->writer;
    transfer->number = write->transfer;
    mu__list_prepend(&store->transfers, &transfer->node);
    store->totals.transfers++;
    *ret_transfer = transfer;
    return 0;
}

int mu__shard_stage(struct mu__variable_store *store, struct variable *v,
                    const struct mu__store_write *write, mu_error *ret_error)
{
    struct transfer *transfer = find_transfer(store, v, write);
    int rv;

    if (transfer != NULL && transfer->received != write->offset) {
        free_transfer(store, transfer);
        transfer = NULL;
    }
    if (write->offset == 0) {
        rv = begin_transfer(store, v, write, ret_error, &transfer);
        if (rv != 0)
            return rv;
    }
    if (transfer == NULL)
        return mu_error_set(ret_error, -MU_EABORTED,
                            "piece at %" PRIu64 " follows none of its transfer",
                            write->offset);
    memcpy(transfer->data + write->offset, write->data.data, write->data.size);
    transfer->received += write->data.size;
    if (transfer->received == v->bytes) {
        save_spare(store, v->data, v->bytes);
        v->data = transfer->data;
        transfer->data = NULL;
        free_transfer(store, transfer);
    }
    return 0;
}

/* ---- Writing ---- */

static int assign_shard(struct mu__variable_store *store, struct variable *v,
                        const struct mu__store_write *write, mu_error *ret_error)
{
    if (write->data.size != v->bytes)
        return mu__shard_stage(store, v, write, ret_error);
    memcpy(v->data, write->data.data, write->data.size);
    return 0;
}

static int zero_shard(struct mu__variable_store *store, struct variable *v,
                      const struct mu__store_write *write, mu_error *ret_error)
{
    (void)store;
    (void)write;
    (void)ret_error;
    memset(v->data, 0, (size_t)v->bytes);
    return 0;
}

static int refuse_unready(const struct variable *v, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "variable %s has no initial content yet", v->name);
}

static int refuse_dtype(const struct variable *v, const char *what, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID, "variable %s is %s, which %s", v->name,
                        mu_dtype_name((int)v->shape.dtype), what);
}

static int add_to_shard(struct mu__variable_store *store, struct variable *v,
                        const struct mu__store_write *write, mu_error *ret_error)
{
    (void)store;
    if (!mu__optimizer_adds((int)v->shape.dtype))
        return refuse_dtype(v, "does not add", ret_error);
    mu__optimizer_add((int)v->shape.dtype, v->data + write->offset, write->data.data,
                      write->data.size);
    return 0;
}

static int write_gradient(struct mu__variable_store *store, struct variable *v,
                          const struct mu__store_write *write, mu_error *ret_error)
{
    int rv = mu__gradient_check(v, write, ret_error);

    if (rv == 0)
        rv = mu__gradient_make_slots(store, v, write, ret_error);
    if (rv == 0)
        mu__gradient_apply(v, write);
    return rv;
}

/* Once it has its content. */
static int refuse_initial(struct mu__variable_store *store, struct variable *v,
                          const struct mu__store_write *write, mu_error *ret_error)
{
    (void)store;
    (void)write;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "variable %s has its initial content already", v->name);
}

static int scatter_to_shard(struct mu__variable_store *store, struct variable *v,
                            const struct mu__store_write *write, mu_error *ret_error)
{
    if (!mu__optimizer_adds((int)v->shape.dtype))
        return refuse_dtype(v, "does not add", ret_error);
    return mu__rows_scatter_add(store, v, write, ret_error);
}

/* 0 also for a READY shard: an opener with `existing` may have come before. */
static int commit_shard(struct mu__variable_store *store, struct variable *v,
                        const struct mu__store_write *write, mu_error *ret_error)
{
    const struct mu__shard_requester writer = {write->writer, write->transfer};

    if (v->stage == FILLED && mu__opener_same_requester(&writer, &v->creator))
        mu__shard_make_ready(store, v);
    if (v->stage == READY)
        return 0;
    return refuse_unready(v, ret_error);
}

static const struct write_kind {
    int (*run)(struct mu__variable_store *store, struct variable *v,
               const struct mu__store_write *write, mu_error *ret_error);
    bool has_data;
    bool changes; /* the content; before READY only the creator may */
} operations[] = {
    [MU__WRITE_ASSIGN] = {assign_shard, true, true},
    [MU__WRITE_ZERO] = {zero_shard, false, true},
    [MU__WRITE_ADD] = {add_to_shard, true, true},
    [MU__WRITE_GRADIENT] = {write_gradient, true, true},
    [MU__WRITE_COMMIT] = {commit_shard, false, false},
    [MU__WRITE_ROWS_ASSIGN] = {mu__rows_assign, true, true},
    [MU__WRITE_ROWS_ADD] = {add_to_shard, true, true},
    [MU__WRITE_SCATTER_UPDATE] = {mu__rows_scatter_update, true, true},
    [MU__WRITE_INITIAL] = {refuse_initial, true, true},
    [MU__WRITE_SCATTER_ADD] = {scatter_to_shard, true, true},
    [MU__WRITE_SCATTER_MIN] = {mu__rows_scatter_update_by, true, true},
    [MU__WRITE_SCATTER_MAX] = {mu__rows_scatter_update_by, true, true},
    [MU__WRITE_SCATTER_MUL] = {mu__rows_scatter_update_by, true, true},
    [MU__WRITE_SCATTER_DIV] = {mu__rows_scatter_update_by, true, true},
};

static int check_write(const struct variable *v, const struct mu__store_write *write,
                       mu_error *ret_error)
{
    size_t element_bytes = mu_dtype_bytes((int)v->shape.dtype);

    if (write->operation >= sizeof operations / sizeof operations[0] ||
        operations[write->operation].run == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "no write operation %" PRIu32,
                            write->operation);
    if (!operations[write->operation].has_data && write->data.size == 0)
        return 0;
    if (mu__rows_are_listed(write->operation))
        return mu__rows_check(v, write, ret_error);
    if (write->operation == MU__WRITE_INITIAL)
        return mu__initial_check_write(v, write, ret_error);
    if (write->data.size == 0 || !operations[write->operation].has_data ||
        write->offset % element_bytes != 0 || write->data.size % element_bytes != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes at %" PRIu64
                            " are not a number of elements of variable %s",
                            write->data.size, write->offset, v->name);
    return mu__store_check_range(v, write->offset, write->data.size, ret_error);
}

/* The initial content is written in place: it cannot be read yet. */
static int write_initial(struct mu__variable_store *store, struct variable *v,
                         const struct mu__store_write *write, mu_error *ret_error)
{
    bool is_zero = write->operation == MU__WRITE_ZERO;
    bool is_generated = write->operation == MU__WRITE_INITIAL;
    struct mu__shard_requester writer = {write->writer, write->transfer};

    if (v->stage != MAKING || !mu__opener_same_requester(&writer, &v->creator) ||
        (write->operation != MU__WRITE_ASSIGN && !is_zero && !is_generated))
        return refuse_unready(v, ret_error);
    if (!is_zero && write->offset != v->received)
        return mu_error_set(ret_error, -MU_EABORTED,
                            "piece at %" PRIu64 " of variable %s: expected %" PRIu64,
                            write->offset, v->name, v->received);
    if (is_zero) {
        memset(v->data, 0, (size_t)v->received);
        v->received = v->bytes;
    } else {
        if (is_generated)
            mu__initial_write(v, write);
        else
            memcpy(v->data + write->offset, write->data.data, write->data.size);
        v->received += mu__write_bytes(write);
    }
    if (v->received == v->bytes && v->shard == 0)
        mu__shard_make_ready(store, v);
    else if (v->received == v->bytes)
        v->stage = FILLED;
    return 0;
}

bool mu__shard_has_creator(const struct variable *v)
{
    return v->stage == MAKING || v->stage == FILLED;
}

static void give_up_waiting(struct mu__variable_store *store,
                            const struct mu__shard_requester *requester)
{
    struct variable *next;

    for (struct variable *v = oldest_shard(store); v != NULL; v = next) {
        next = next_shard(v);
        mu__opener_stop_waiting(store, v, mu__opener_is_of_requester, requester,
                                mu__opener_answer_cancelled);
        mu__shard_remove_unused(store, v);
    }
}

static void abandon_transfer(struct mu__variable_store *store,
                             const struct mu__store_write *write)
{
    const struct mu__shard_requester writer = {write->writer, write->transfer};
    struct variable *v = mu__map_get(&store->by_id, write->id);
    struct transfer *transfer;

    if (write->id == 0)
        give_up_waiting(store, &writer);
    if (v == NULL)
        return;
    if (mu__shard_has_creator(v) && mu__opener_same_requester(&writer, &v->creator)) {
        mu__shard_lose_creator(store, v);
        return;
    }
    transfer = find_transfer(store, v, write);
    if (transfer != NULL)
        free_transfer(store, transfer);
}

static void count_write(struct variable *v, const struct mu__store_write *write)
{
    v->writes++;
    v->bytes_written += write->data.size;
    if (mu__rows_are_written(write->operation))
        return;
    if (write->data.size == 0 || write->offset + mu__write_bytes(write) == v->bytes)
        v->version++;
}

static int apply_write(struct mu__variable_store *store, struct variable *v,
                       const struct mu__store_write *write, mu_error *ret_error)
{
    const struct write_kind *operation = &operations[write->operation];
    int rv;

    mu__shard_will_change(store, v);
    rv = v->stage == READY || !operation->changes
             ? operation->run(store, v, write, ret_error)
             : write_initial(store, v, write, ret_error);
    if (rv == 0 && operation->changes)
        count_write(v, write);
    return rv;
}

static int restore_slots(struct mu__variable_store *store, struct variable *v,
                         const struct mu__store_write *write, mu_error *ret_error)
{
    if (v->stage != READY)
        return refuse_unready(v, ret_error);
    mu__shard_will_change(store, v);
    return mu__slots_write(store, v, write, ret_error);
}

int mu__store_write(struct mu__variable_store *store, const struct mu__store_write *write,
                    mu_error *ret_error, uint64_t *ret_version)
{
    struct variable *v;
    int rv;

    if (write->operation == MU__WRITE_ABANDON) {
        abandon_transfer(store, write);
        return 0;
    }
    v = mu__shard_find_by_id(store, write->id, ret_error);
    if (v == NULL)
        return -MU_ENOTFOUND;
    rv = mu__slots_is_write(write->operation) ? restore_slots(store, v, write, ret_error)
                                              : check_write(v, write, ret_error);
    if (rv == 0 && !mu__slots_is_write(write->operation))
        rv = apply_write(store, v, write, ret_error);
    if (rv == 0)
        *ret_version = v->version;
    return rv;
}

/* ---- Batches ---- */

/* Whether a variable allows a write of a batch. */
static int check_fit(struct variable *v, const struct mu__store_write *write,
                     mu_error *ret_error)
{
    int dtype = (int)v->shape.dtype;

    switch (write->operation) {
    case MU__WRITE_ASSIGN:
    case MU__WRITE_ROWS_ASSIGN:
    case MU__WRITE_SCATTER_UPDATE:
    case MU__WRITE_SCATTER_MIN:
    case MU__WRITE_SCATTER_MAX:
    case MU__WRITE_SCATTER_MUL:
    case MU__WRITE_SCATTER_DIV:
        return 0;
    case MU__WRITE_ADD:
    case MU__WRITE_ROWS_ADD:
    case MU__WRITE_SCATTER_ADD:
        return mu__optimizer_adds(dtype) ? 0 : refuse_dtype(v, "does not add", ret_error);
    case MU__WRITE_GRADIENT:
        return mu__gradient_check(v, write, ret_error);
    default:
        return mu_error_set(ret_error, -MU_EINVALID,
                            "write operation %" PRIu32 " is not for batches",
                            write->operation);
    }
}

/* Last of all, as it may replace those of another rule. */
static int make_all_slots(struct mu__variable_store *store,
                          const struct mu__store_write *first, mu_error *ret_error)
{
    int rv = 0;

    for (const struct mu__store_write *write = first; rv == 0 && write != NULL;
         write = write->next)
        if (write->operation == MU__WRITE_GRADIENT)
            rv = mu__gradient_make_slots(store, mu__map_get(&store->by_id, write->id),
                                         write, ret_error);
    return rv;
}

static int check_shard_write(struct mu__variable_store *store,
                             const struct mu__store_write *write, mu_error *ret_error)
{
    struct variable *v = mu__shard_find_by_id(store, write->id, ret_error);
    int rv;

    if (v == NULL)
        return -MU_ENOTFOUND;
    rv = check_write(v, write, ret_error);
    if (rv == 0 && v->stage != READY)
        rv = refuse_unready(v, ret_error);
    return rv == 0 ? check_fit(v, write, ret_error) : rv;
}

static struct mu__table_write table_write_of(const struct mu__store_write *write)
{
    return (struct mu__table_write){write->id, write->operation, write->data};
}

static int check_table_write(struct mu__variable_store *store,
                             const struct mu__store_write *write, mu_error *ret_error)
{
    const struct mu__table_write of_table = table_write_of(write);

    if (write->offset != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a write to a table is one piece: one at %" PRIu64
                            " has come",
                            write->offset);
    return mu__tables_check(&store->tables, &of_table, ret_error);
}

int mu__store_check_batch(struct mu__variable_store *store,
                          const struct mu__store_write *first, mu_error *ret_error)
{
    int rv = 0;

    mu__tables_begin_batch(&store->tables);
    for (const struct mu__store_write *write = first; write != NULL && rv == 0;
         write = write->next)
        rv = mu__write_is_of_table(write->operation)
                 ? check_table_write(store, write, ret_error)
                 : check_shard_write(store, write, ret_error);
    return rv == 0 ? make_all_slots(store, first, ret_error) : rv;
}

static void apply_shard_write(struct mu__variable_store *store,
                              const struct mu__store_write *write)
{
    struct variable *v = mu__map_get(&store->by_id, write->id);
    int rv = 0;

    assert(v != NULL && v->stage == READY);
    mu__shard_will_change(store, v);
    if (write->operation == MU__WRITE_ASSIGN)
        memcpy(v->data + write->offset, write->data.data, write->data.size);
    else if (write->operation == MU__WRITE_GRADIENT)
        mu__gradient_apply(v, write);
    else
        rv = operations[write->operation].run(store, v, write, NULL);
    assert(rv == 0);
    (void)rv;
    count_write(v, write);
}

void mu__store_apply_batch(struct mu__variable_store *store,
                           const struct mu__store_write *first)
{
    for (const struct mu__store_write *write = first; write != NULL;
         write = write->next) {
        const struct mu__table_write of_table = table_write_of(write);

        if (mu__write_is_of_table(write->operation))
            mu__tables_apply(&store->tables, &of_table);
        else
            apply_shard_write(store, write);
    }
}
