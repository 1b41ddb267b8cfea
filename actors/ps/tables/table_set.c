#include "actors/ps/tables/table_set.h"

#include "actors/partitions.h"
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
    return a->dim == b->dim && a->rule.kind == b->rule.kind &&
           a->initial.kind == b->initial.kind && a->initial.seed == b->initial.seed &&
           is_same_number(a->initial.a, b->initial.a) &&
           is_same_number(a->initial.b, b->initial.b);
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
                            " numbers and %s, and its initial rows: expected the same",
                            table->part.form.dim,
                            mu__rule_kind(table->part.form.rule.kind)->name);
    return 0;
}

static int make_table(struct mu__table_set *set, const struct mu__table_open *open,
                      mu_error *ret_error)
{
    struct mu__named_table *table = NULL;

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
    mu__list_append(&set->tables, &table->node);
    set->count++;
    return 0;
}

int mu__tables_put(struct mu__table_set *set, const struct mu__table_open *open,
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
    if (push->rule.kind != table->part.form.rule.kind)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "table %s is trained with %s, and not with another rule",
                            table->name, mu__rule_kind(table->part.form.rule.kind)->name);
    return mu__rule_check(&push->rule, MU_F32, ret_error);
}

static int check_gradients(const struct mu__named_table *table,
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
    struct mu__table_push push;
    int rv = need_table(set, write->id, ret_error, &table);

    if (rv == 0)
        rv = mu__table_push_unpack(write->data, table->part.form.dim, &push, ret_error);
    if (rv == 0)
        rv = check_push_rule(table, &push, ret_error);
    if (rv == 0)
        rv = check_gradients(table, &push, ret_error);
    if (rv == 0)
        rv = mu__table_reserve(&table->part, push.ids, push.count, ret_error);
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
    default:
        assert(write->operation == MU__WRITE_TABLE_DELETE);
        return check_delete(set, write, ret_error);
    }
}

static uint64_t apply_push(struct mu__named_table *table, struct mu__view data)
{
    struct mu__table_push push;

    if (mu__table_push_unpack(data, table->part.form.dim, &push, NULL) != 0)
        return 0;
    return mu__table_push(&table->part, push.ids, push.gradients, push.count, &push.rule);
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

void mu__tables_apply(struct mu__table_set *set, const struct mu__table_write *write)
{
    struct mu__named_table *table = mu__tables_find(set, write->id);

    assert(table != NULL);
    if (write->operation == MU__WRITE_TABLE_OPEN)
        apply_table_open(table, write->data);
    else if (write->operation == MU__WRITE_TABLE_PUSH)
        table->last = apply_push(table, write->data);
    else
        table->last = apply_delete(table, write->data);
}

uint64_t mu__tables_sample(const struct mu__table_set *set, uint64_t id)
{
    const struct mu__named_table *table = mu__tables_find(set, id);

    return table == NULL ? 0 : table->last + table->part.rows;
}

/* ---- Copies ---- */

/* The table at which a cursor is, with rows; NULL: there is none. */
static const struct mu__named_table *find_copied_table(const struct mu__table_set *set,
                                                       struct mu__table_cursor *cursor)
{
    const struct mu__named_table *table =
        cursor->table == 0 ? NULL : mu__tables_find(set, cursor->table);

    if (table != NULL && cursor->left > table->part.rows)
        cursor->left = table->part.rows;
    while (cursor->table == 0 || (table != NULL && cursor->left == 0)) {
        table = cursor->table == 0 ? mu__tables_first(set) : mu__tables_next(table);
        if (table == NULL)
            return NULL;
        cursor->table = table->id;
        cursor->left = table->part.rows;
    }
    return table;
}

bool mu__tables_next_rows(const struct mu__table_set *set,
                          struct mu__table_cursor *cursor, uint64_t *ret_table,
                          struct mu__view *ret_rows)
{
    const struct mu__named_table *table = find_copied_table(set, cursor);
    uint32_t slab_rows;
    uint32_t first;

    if (table == NULL)
        return false;
    slab_rows = table->part.slab_rows;
    first = (cursor->left - 1) / slab_rows * slab_rows;
    *ret_table = table->id;
    *ret_rows = (struct mu__view){mu__table_row_at(&table->part, first),
                                  (cursor->left - first) * table->part.row_bytes};
    cursor->left = first;
    return true;
}

int mu__tables_put_rows(struct mu__table_set *set, uint64_t id, struct mu__view rows,
                        mu_error *ret_error)
{
    struct mu__named_table *table = NULL;
    int rv = need_table(set, id, ret_error, &table);

    if (rv != 0)
        return rv;
    if (rows.size % table->part.row_bytes != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes are no rows of %" PRIu32 " bytes",
                            rows.size, table->part.row_bytes);
    for (uint32_t at = 0; at < rows.size && rv == 0; at += table->part.row_bytes)
        rv = mu__table_put_row(&table->part, (const uint8_t *)rows.data + at, ret_error);
    return rv;
}
