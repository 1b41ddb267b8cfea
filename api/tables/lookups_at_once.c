/* Look-ups of several tables at once. */
#include "api/internal.h"
#include "api/tables/opened_table.h"

#include "node/deadline.h"
#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <stdlib.h>

/* One of them. */
struct one_lookup {
    struct mu__table_call call;
    struct mu__sorted_ids sorted;
};

static int check_lookups(const mu_table_ids *lookups, size_t count, mu_error *ret_error)
{
    for (size_t i = 0; i < count; i++) {
        if (lookups[i].table == NULL || lookups[i].ids == NULL || lookups[i].rows == NULL)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "look-up %zu has no table, ids or rows", i);
        if (lookups[i].table->node != lookups[0].table->node)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "look-up %zu is of a table of another node", i);
        if (lookups[i].count > INT32_MAX)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "look-up %zu has %zu ids: expected at most 2^31", i,
                                lookups[i].count);
    }
    return 0;
}

static int sort_all(const mu_table_ids *lookups, size_t count, int64_t timeout_ms,
                    struct one_lookup *ones)
{
    for (size_t i = 0; i < count; i++) {
        int rv =
            mu__ids_sort(lookups[i].ids, (uint32_t)lookups[i].count, &ones[i].sorted);

        if (rv != 0) {
            ones[i].sorted = (struct mu__sorted_ids){.count = 0};
            return rv;
        }
        ones[i].call = mu__table_make_call(lookups[i].table, MU__TABLE_LOOKUP_CALL,
                                           mu__deadline_in(timeout_ms));
        ones[i].call.ids = &ones[i].sorted;
        ones[i].call.rows = lookups[i].rows;
        if (i > 0)
            ones[i - 1].call.others = &ones[i].call;
    }
    return 0;
}

/* Without those that have no ids. */
static size_t copy_lookups(const mu_table_ids *lookups, size_t count,
                           mu_table_ids *ret_lookups)
{
    size_t copied = 0;

    for (size_t i = 0; i < count; i++)
        if (lookups[i].count > 0)
            ret_lookups[copied++] = lookups[i];
    return copied;
}

static int look_up_all(const mu_table_ids *lookups, size_t count, int64_t timeout_ms,
                       mu_error *ret_error)
{
    struct one_lookup *ones = calloc(count, sizeof *ones);
    int rv = ones == NULL ? -MU_ENOMEM : sort_all(lookups, count, timeout_ms, ones);

    if (rv == 0)
        rv = mu__table_run_call(lookups[0].table, &ones[0].call, ret_error);
    else
        (void)mu_error_set(ret_error, rv, "look-ups of %zu tables: %s", count,
                           mu_strerror(rv));
    for (size_t i = 0; ones != NULL && i < count; i++)
        mu__sorted_ids_done(&ones[i].sorted);
    free(ones);
    return rv;
}

int mu_tables_lookup(const mu_table_ids *lookups, size_t count, int64_t timeout_ms,
                     mu_error *ret_error)
{
    MU__REQUIRE(ret_error, lookups);

    int rv = check_lookups(lookups, count, ret_error);
    mu_table_ids *some;

    if (rv != 0 || count == 0)
        return rv;
    some = malloc(count * sizeof *some);
    if (some == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "look-ups of %zu tables: no memory",
                            count);
    count = copy_lookups(lookups, count, some);
    if (count > 0)
        rv = look_up_all(some, count, timeout_ms, ret_error);
    free(some);
    return rv;
}
