/* Look-ups and pushes that nobody waits for. */
#include "api/internal.h"
#include "api/tables/opened_table.h"
#include "api/under_way.h"

#include "actors/variables/variables.h"
#include "node/deadline.h"
#include "node/node.h"
#include "runtime/message/arguments.h"
#include "runtime/message/block_pool.h"

/* One that is under way, in a block of the process's pool: it is freed on the loop. */
struct table_later {
    struct mu__pending pending; /* first */
    struct mu__table_call call;
    struct mu__sorted_ids sorted;
    mu_table *table; /* held */
    uint64_t bytes;
    mu_table_done_fn done;
    void *user;
};

static void free_later(struct table_later *later)
{
    mu__effects_clear(&later->call.run.effects);
    mu__sorted_ids_done(&later->sorted);
    mu__under_way_end(&later->table->bytes_under_way, later->bytes);
    mu_table_close(later->table);
    mu__block_put(later);
}

void mu__table_report(const mu_table *table, struct mu__call *call, mu_table_done_fn done,
                      void *user)
{
    if (call->code != 0 && call->error.code == 0)
        (void)mu_error_set(&call->error, call->code, "table %s: %s", table->name,
                           mu_strerror(call->code));
    done(user, call->code, call->code == 0 ? NULL : &call->error);
}

/* On the loop. */
static void on_table_done(struct mu__pending *pending)
{
    struct table_later *later = (struct table_later *)(void *)pending;

    mu__table_report(later->table, &later->call.call, later->done, later->user);
    free_later(later);
}

/* NULL and *ret_code: there is no memory, or too much is under way. */
static struct table_later *make_later(mu_table *table, int operation, uint64_t bytes,
                                      int64_t timeout_ms, int *ret_code)
{
    struct table_later *later = mu__block_get(
        sizeof *later < MU__BLOCK_BYTES_MIN ? MU__BLOCK_BYTES_MIN : sizeof *later);

    if (later == NULL) {
        *ret_code = -MU_ENOMEM;
        return NULL;
    }
    *ret_code = mu__under_way_begin(&table->bytes_under_way, bytes, &later->bytes);
    if (*ret_code != 0) {
        mu__block_put(later);
        return NULL;
    }
    mu__table_ref(table);
    later->table = table;
    later->sorted.ids = NULL;
    mu__table_init_call(table, operation, mu__deadline_in(timeout_ms), &later->call);
    return later;
}

static int begin_later(struct table_later *later, mu_table_done_fn done, void *user)
{
    int rv;

    later->done = done;
    later->user = user;
    rv = mu__node_call_later(later->table->node, MU__VARIABLES, &later->pending,
                             &later->call.call, on_table_done);
    if (rv != 0)
        free_later(later);
    return rv;
}

int mu_table_lookup_async(mu_table *table, const uint64_t *ids, size_t count, float *rows,
                          int64_t timeout_ms, mu_table_done_fn done, void *user)
{
    return mu_table_lookup_as_async(table, MU_F32, ids, count, rows, timeout_ms, done,
                                    user);
}

int mu_table_lookup_as_async(mu_table *table, int dtype, const uint64_t *ids,
                             size_t count, void *rows, int64_t timeout_ms,
                             mu_table_done_fn done, void *user)
{
    MU__REQUIRE(NULL, table, ids, rows, done);

    struct table_later *later;
    int rv = count == 0 || count > INT32_MAX
                 ? -MU_EINVALID
                 : mu__table_check_rows_dtype(table, dtype, NULL);

    if (rv != 0)
        return rv;
    later =
        make_later(table, MU__TABLE_LOOKUP_CALL, count * sizeof *ids, timeout_ms, &rv);
    if (later == NULL)
        return rv;
    rv = mu__ids_sort(ids, (uint32_t)count, &later->sorted);
    if (rv != 0) {
        free_later(later);
        return rv;
    }
    later->call.ids = &later->sorted;
    later->call.rows = rows;
    later->call.is_raw = dtype != MU_F32;
    return begin_later(later, done, user);
}

int mu_table_apply_async(mu_table *table, const uint64_t *ids, const float *gradients,
                         size_t count, const mu_optimizer *optimizer, int64_t timeout_ms,
                         mu_table_done_fn done, void *user)
{
    return mu_table_apply_at_async(table, 0, ids, gradients, count, optimizer, timeout_ms,
                                   done, user);
}

int mu_table_apply_at_async(mu_table *table, uint64_t time, const uint64_t *ids,
                            const float *gradients, size_t count,
                            const mu_optimizer *optimizer, int64_t timeout_ms,
                            mu_table_done_fn done, void *user)
{
    MU__REQUIRE(NULL, table, ids, gradients, done);

    uint64_t each = sizeof *ids + table->form.dim * sizeof *gradients;
    struct table_later *later;
    int rv = count == 0 || count > INT32_MAX ? -MU_EINVALID : 0;

    if (rv != 0)
        return rv;
    later = make_later(table, MU__TABLE_WRITE_CALL, count * each, timeout_ms, &rv);
    if (later == NULL)
        return rv;
    rv = mu__table_add_push(table, &later->call.run.effects, time, ids, gradients, count,
                            optimizer, NULL);
    if (rv != 0) {
        free_later(later);
        return rv;
    }
    return begin_later(later, done, user);
}
