#include "actors/ps/tables/table_set.h"

#include "actors/partitions.h"
#include "actors/ps/tables/copies/row_writes.h"
#include "actors/ps/variable_store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void mu__tables_init(struct mu__table_set *set, const struct mu__table_memory *memory,
                     uint64_t secret)
{
    *set = (struct mu__table_set){.memory = *memory, .secret = mu__mix64(secret)};
}

void mu__tables_done(struct mu__table_set *set)
{
    struct mu__list_node *node;

    while ((node = mu__list_pop(&set->tables)) != NULL) {
        struct mu__named_table *table =
            MU__LIST_ENTRY(node, struct mu__named_table, node);

        mu__table_done(&table->part);
        free(table);
    }
}

struct mu__named_table *mu__tables_find(const struct mu__table_set *set, uint64_t id)
{
    struct mu__named_table *table = mu__tables_first(set);

    while (table != NULL && table->id != id)
        table = mu__tables_next(table);
    return table;
}

static int need_table(const struct mu__table_set *set, uint64_t id, mu_error *ret_error,
                      struct mu__named_table **ret_table)
{
    struct mu__named_table *table = mu__tables_find(set, id);

    if (table == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "the server does not have the table");
    *ret_table = table;
    return 0;
}

/* ---- Opens ---- */

static bool is_same_number(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* Hyperparameters may change from push to push; the rule's slots may not. */
static bool is_same_form(const struct mu__table_form *a, const struct mu__table_form *b)
{
    return a->dim == b->dim && a->dtype == b->dtype && a->rule.kind == b->rule.kind &&
           a->initial.kind == b->initial.kind && a->initial.seed == b->initial.seed &&
           is_same_number(a->initial.a, b->initial.a) &&
           is_same_number(a->initial.b, b->initial.b) &&
           mu__table_policy_equals(&a->policy, &b->policy);
}

static int check_form(const struct mu__named_table *table,
                      const struct mu__table_open *open, mu_error *ret_error)
{
    if (open->name.size != table->name_size ||
        memcmp(table->name, open->name.data, table->name_size) != 0)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "its name gives the number that table %s has: use another "
                            "name",
                            table->name);
    if (!is_same_form(&table->part.form, &open->form))
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "the table has rows of %" PRIu32
                            " numbers and %s, its initial rows and its policies: "
                            "expected the same",
                            table->part.form.dim,
                            mu__rule_kind(table->part.form.rule.kind)->name);
    return 0;
}

static int make_table(struct mu__table_set *set, const struct mu__table_open *open,
                      mu_error *ret_error)
{
    struct mu__named_table *table = NULL;
    int rv;

    if (set->count == MU__TABLES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "a partition has %d tables, at most", MU__TABLES_MAX);
    table = calloc(1, sizeof *table + open->name.size + 1);
    if (table == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    table->id = mu__table_id(open->name);
    table->sealed = open->sealed;
    table->name_size = open->name.size;
    memcpy(table->name, open->name.data, open->name.size);
    mu__table_init(&table->part, &open->form, &set->memory, set->secret);
    rv = mu__table_make_candidates(&table->part, ret_error);
    if (rv != 0) {
        free(table);
        return rv;
    }
    mu__list_append(&set->tables, &table->node);
    set->count++;
    return 0;
}

int mu__tables_need(struct mu__table_set *set, const struct mu__table_open *open,
                    mu_error *ret_error)
{
    const struct mu__named_table *table = mu__tables_find(set, mu__table_id(open->name));

    return table == NULL ? make_table(set, open, ret_error)
                         : check_form(table, open, ret_error);
}

static int refuse_unsealed(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EAGAIN, "the table was not made");
}

static int refuse_lost(const char *what, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EDATALOSS, "%s: rows were lost with their server",
                        what);
}

static int check_table_open(struct mu__table_set *set,
                            const struct mu__table_write *write, mu_error *ret_error)
{
    struct mu__named_table *table = mu__tables_find(set, write->id);
    struct mu__table_open open;
    int rv = mu__table_open_unpack(write->data, &open, ret_error);

    if (rv == 0 && mu__table_id(open.name) != write->id)
        rv = mu_error_set(ret_error, -MU_EINVALID, "the number is not that of the name");
    if (rv == 0 && table != NULL)
        rv = check_form(table, &open, ret_error);
    if (rv != 0)
        return rv;
    switch (open.mode) {
    case MU__TABLE_FIND:
        return table != NULL && table->sealed ? 0 : refuse_unsealed(ret_error);
    case MU__TABLE_SEAL:
        return table != NULL ? 0 : refuse_unsealed(ret_error);
    case MU__TABLE_EXISTING:
        return table != NULL ? 0 : refuse_lost("a part of the table is gone", ret_error);
    case MU__TABLE_CREATE:
        if (table != NULL && table->part.rows > 0)
            return refuse_lost("only a part of the table is there", ret_error);
        break;
    default:
        break;
    }
    open.sealed = false;
    return table != NULL ? 0 : make_table(set, &open, ret_error);
}

static void apply_table_open(struct mu__named_table *table, struct mu__view data)
{
    struct mu__table_open open;

    table->last = 0;
    if (mu__table_open_unpack(data, &open, NULL) == 0 && open.mode == MU__TABLE_SEAL)
        table->sealed = true;
}

/* ---- Pushes and deletes ---- */

static int check_push_rule(const struct mu__named_table *table,
                           const struct mu__table_push *push, mu_error *ret_error)
{
    if (memcmp(&push->rule, &table->part.form.rule, sizeof push->rule) == 0)
        return 0;
    if (push->rule.kind != table->part.form.rule.kind)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "table %s is trained with %s, and not with another rule",
                            table->name, mu__rule_kind(table->part.form.rule.kind)->name);
    return mu__rule_check(&push->rule, MU_F32, ret_error);
}

static int check_gradients(struct mu__named_table *table,
                           const struct mu__table_push *push, mu_error *ret_error)
{
    size_t count = (size_t)push->count * table->part.form.dim;
    size_t found;
    uint64_t id;

    if ((push->rule.flags & MU__RULE_ANY_NUMBER) != 0)
        return 0;
    found = mu__rule_find_nonfinite(MU_F32, push->gradients, count);
    if (found == count)
        return 0;
    table->part.state.refused++;
    memcpy(&id, push->ids + found / table->part.form.dim * sizeof id, sizeof id);
    return mu_error_set(ret_error, -MU_EINVALID,
                        "table %s: the gradient of id %" PRIu64
                        " is NaN or infinite in column %zu",
                        table->name, id, found % table->part.form.dim);
}

static int check_push(struct mu__table_set *set, const struct mu__table_write *write,
                      mu_error *ret_error)
{
    struct mu__named_table *table = NULL;
    struct mu__table_push *push = &set->checked;
    int rv = need_table(set, write->id, ret_error, &table);

    set->checked_data = NULL;
    if (rv == 0)
        rv = mu__table_push_unpack(write->data, table->part.form.dim, push, ret_error);
    if (rv == 0)
        rv = check_push_rule(table, push, ret_error);
    if (rv == 0)
        rv = check_gradients(table, push, ret_error);
    if (rv == 0)
        rv = mu__table_reserve(&table->part, push->ids, push->count, ret_error);
    if (rv == 0)
        set->checked_data = write->data.data;
    return rv;
}

static int check_delete(struct mu__table_set *set, const struct mu__table_write *write,
                        mu_error *ret_error)
{
    struct mu__named_table *table = NULL;
    struct mu__table_push push;
    int rv = need_table(set, write->id, ret_error, &table);

    return rv == 0 ? mu__table_push_unpack(write->data, 0, &push, ret_error) : rv;
}

static int check_expire(struct mu__table_set *set, const struct mu__table_write *write,
                        mu_error *ret_error)
{
    struct mu__named_table *table = NULL;
    const struct mu__table_policy *policy;
    uint32_t before;
    int rv = need_table(set, write->id, ret_error, &table);

    if (rv == 0)
        rv = mu__table_expire_unpack(write->data, &before, ret_error);
    if (rv != 0)
        return rv;
    policy = &table->part.form.policy;
    if (policy->eviction != MU__EVICT_NONE || mu__table_policy_has_time(policy))
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "table %s has no policy by which rows expire", table->name);
}

void mu__tables_begin_batch(struct mu__table_set *set)
{
    for (struct mu__named_table *table = mu__tables_first(set); table != NULL;
         table = mu__tables_next(table))
        mu__table_unreserve(&table->part);
}

int mu__tables_check(struct mu__table_set *set, const struct mu__table_write *write,
                     mu_error *ret_error)
{
    switch (write->operation) {
    case MU__WRITE_TABLE_OPEN:
        return check_table_open(set, write, ret_error);
    case MU__WRITE_TABLE_PUSH:
        return check_push(set, write, ret_error);
    case MU__WRITE_TABLE_EXPIRE:
        return check_expire(set, write, ret_error);
    case MU__WRITE_TABLE_CLEAR:
    case MU__WRITE_TABLE_ROWS:
    case MU__WRITE_TABLE_INSERT:
        return mu__row_write_check(mu__tables_find(set, write->id), write, ret_error);
    default:
        assert(write->operation == MU__WRITE_TABLE_DELETE);
        return check_delete(set, write, ret_error);
    }
}

/* A push alone in its batch is the one that was checked. */
static uint64_t apply_push(struct mu__table_set *set, struct mu__named_table *table,
                           struct mu__view data)
{
    const struct mu__table_push *push = &set->checked;

    if (data.data != set->checked_data &&
        mu__table_push_unpack(data, table->part.form.dim, &set->checked, NULL) != 0)
        return 0;
    set->checked_data = NULL;
    table->part.is_alone = set->is_alone;
    return mu__table_push_at(&table->part, push->time, push->ids, push->gradients,
                             push->count, &push->rule);
}

static uint64_t apply_delete(struct mu__named_table *table, struct mu__view data)
{
    struct mu__table_push push;
    uint64_t deleted = 0;
    uint64_t id;

    if (mu__table_push_unpack(data, 0, &push, NULL) != 0)
        return 0;
    for (uint32_t i = 0; i < push.count; i++) {
        memcpy(&id, push.ids + i * sizeof id, sizeof id);
        deleted += mu__table_delete(&table->part, id);
    }
    return deleted;
}

static uint64_t apply_expire(struct mu__named_table *table, struct mu__view data)
{
    struct mu__table_bound bound = {.reason = MU__SWEEP_REQUESTED};

    if (mu__table_expire_unpack(data, &bound.score, NULL) != 0)
        return 0;
    return mu__table_sweep(&table->part, &bound);
}

void mu__tables_apply(struct mu__table_set *set, const struct mu__table_write *write)
{
    struct mu__named_table *table = mu__tables_find(set, write->id);

    assert(table != NULL);
    switch (write->operation) {
    case MU__WRITE_TABLE_OPEN:
        apply_table_open(table, write->data);
        break;
    case MU__WRITE_TABLE_PUSH:
        table->last = apply_push(set, table, write->data);
        set->may_sweep |= mu__table_policy_sweeps(&table->part.form.policy);
        break;
    case MU__WRITE_TABLE_EXPIRE:
        table->last = apply_expire(table, write->data);
        break;
    case MU__WRITE_TABLE_CLEAR:
    case MU__WRITE_TABLE_ROWS:
    case MU__WRITE_TABLE_INSERT:
        table->last = mu__row_write_apply(table, write);
        set->may_sweep |= mu__table_policy_sweeps(&table->part.form.policy);
        break;
    default:
        table->last = apply_delete(table, write->data);
        break;
    }
}

/* ---- Sweeps ---- */

bool mu__tables_sweep_due(const struct mu__table_set *set, uint64_t *ret_table,
                          struct mu__table_bound *ret_bound)
{
    const struct mu__named_table *table = mu__tables_first(set);

    while (table != NULL && !mu__table_sweep_due(&table->part, ret_bound))
        table = mu__tables_next(table);
    if (table != NULL)
        *ret_table = table->id;
    return table != NULL;
}

uint64_t mu__tables_sweep(struct mu__table_set *set, uint64_t id,
                          const struct mu__table_bound *bound)
{
    struct mu__named_table *table = mu__tables_find(set, id);

    return table == NULL ? 0 : mu__table_sweep(&table->part, bound);
}

static uint64_t sample_state(const struct mu__table_state *state)
{
    const uint64_t words[] = {state->pushes,  state->latest,  state->swept,
                              state->made,    state->dropped, state->refused,
                              state->expired, state->evicted};
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        sum = sum * UINT64_C(0x9E3779B97F4A7C15) + words[i];
    return sum;
}

uint64_t mu__tables_sample(const struct mu__table_set *set, uint64_t id)
{
    const struct mu__named_table *table = mu__tables_find(set, id);

    if (table == NULL)
        return 0;
    return table->last + table->part.rows + sample_state(&table->part.state);
}
