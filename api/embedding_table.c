/* The public calls about tables: checks, then calls to the variables actor. */
#include "api/internal.h"

#include "actors/ps/tables/table_writes.h"
#include "actors/variables/table_calls.h"
#include "actors/variables/variables.h"
#include "api/tables/table_lookups.h"
#include "node/deadline.h"
#include "node/node.h"
#include "runtime/message/arguments.h"

#include "muster/table.h"

#include <stdlib.h>
#include <string.h>

/* Any thread. */
struct mu_table {
    mu_node *node; /* held */
    uint64_t id;
    struct mu__table_form form;
    uint32_t home; /* the partition that knows whether all of it was made */
    char name[];
};

_Static_assert((int)MU_TABLE_NORMAL == (int)MU__ROW_INITIAL_NORMAL &&
                   (int)MU_TABLE_DIM_MAX == (int)MU__TABLE_DIM_MAX,
               "the same numbers here and there");

/* ---- Optimizers ---- */

#define DEFAULT_RATE 0.01

/* -MU_EINVALID. */
static int rule_of(const mu_optimizer *optimizer, mu_error *ret_error,
                   struct mu__rule *ret_rule)
{
    uint8_t bytes[MU__RULE_BYTES_MAX];
    struct mu__view packed;
    int rv = mu__optimizer_pack(optimizer, MU_F32, bytes, ret_error, &packed);

    if (rv == 0)
        (void)mu__rule_unpack(bytes, packed.size, ret_rule);
    return rv;
}

/* ---- Calls ---- */

static struct mu__table_call make_table_call(const mu_table *table, int operation,
                                             int64_t timeout_ms)
{
    return (struct mu__table_call){
        .call = {.operation = operation, .timeout_ms = timeout_ms},
        .name = table->name,
        .servers_count = (uint32_t)table->node->ps_count,
        .table = table->id,
        .dim = table->form.dim,
    };
}

static int run_table_call(const mu_table *table, struct mu__table_call *call,
                          mu_error *ret_error)
{
    int rv = mu__node_call(table->node, MU__VARIABLES, &call->call, NULL);

    if (rv == 0)
        return 0;
    if (call->call.error.code == 0)
        return mu_error_set(ret_error, rv, "table %s: %s", table->name, mu_strerror(rv));
    if (ret_error != NULL)
        *ret_error = call->call.error;
    return rv;
}

/* Apply what was appended to call->run.effects, with `rv`. */
static int send_writes(const mu_table *table, struct mu__table_call *call, int rv,
                       mu_error *ret_error)
{
    if (rv == -MU_EEXHAUSTED)
        (void)mu_error_set(ret_error, rv, "table %s: a push has more than %d bytes",
                           table->name, MU__EFFECTS_BYTES_MAX);
    else if (rv != 0)
        (void)mu_error_set(ret_error, rv, "table %s: %s", table->name, mu_strerror(rv));
    else
        rv = run_table_call(table, call, ret_error);
    mu__effects_clear(&call->run.effects);
    return rv;
}

static int check_ids_count(const char *name, size_t count, mu_error *ret_error)
{
    if (count <= INT32_MAX)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "table %s: %zu ids: expected at most 2^31", name, count);
}

/* ---- Opening ---- */

static int open_table_parts(const mu_table *table, enum mu__table_open_mode mode,
                            uint64_t deadline_ns, mu_error *ret_error)
{
    struct mu__table_call call =
        make_table_call(table, MU__TABLE_WRITE_CALL, mu__deadline_left_ms(deadline_ns));
    bool is_home = mode == MU__TABLE_FIND || mode == MU__TABLE_SEAL;
    const struct mu__table_open open = {
        .mode = mode, .form = table->form, .name = mu__view_str(table->name)};
    int rv =
        mu__effects_add_table_open(&call.run.effects, &open, is_home ? table->home : 0,
                                   is_home ? table->home + 1 : MU__PARTITIONS);

    return send_writes(table, &call, rv, ret_error);
}

static int create_table(const mu_table *table, unsigned flags, uint64_t deadline_ns,
                        mu_error *ret_error)
{
    bool recreates = (flags & MU_TABLE_RECREATE) != 0;
    int rv;

    if ((flags & MU_TABLE_EXISTING) != 0)
        return mu_error_set(ret_error, -MU_ENOTFOUND, "table %s: there is none",
                            table->name);
    rv = open_table_parts(table, recreates ? MU__TABLE_RECREATE : MU__TABLE_CREATE,
                          deadline_ns, ret_error);
    return rv == 0 ? open_table_parts(table, MU__TABLE_SEAL, deadline_ns, ret_error) : rv;
}

enum { OPEN_TRIES = 3 };

/* Another one may have made the table meanwhile, and pushed to it: then it is found at
 * the next try. */
static int find_or_create(const mu_table *table, unsigned flags, uint64_t deadline_ns,
                          mu_error *ret_error)
{
    bool recreates = (flags & MU_TABLE_RECREATE) != 0;
    int rv = -MU_EAGAIN;

    for (int i = 0; i < OPEN_TRIES && (rv == -MU_EAGAIN || rv == -MU_EDATALOSS); i++) {
        rv = open_table_parts(table, MU__TABLE_FIND, deadline_ns, ret_error);
        if (rv == -MU_EAGAIN)
            rv = create_table(table, flags, deadline_ns, ret_error);
        else if (rv == 0)
            return open_table_parts(table,
                                    recreates ? MU__TABLE_RECREATE : MU__TABLE_EXISTING,
                                    deadline_ns, ret_error);
    }
    return rv;
}

static int check_table_spec(const mu_node *node, const mu_table_spec *spec,
                            mu_error *ret_error)
{
    const unsigned all = MU_TABLE_EXISTING | MU_TABLE_RECREATE;

    if (spec->name == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "a table's name is NULL");
    if (strlen(spec->name) > MU__VARIABLE_NAME_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "table %.32s...: the name has %zu bytes: expected 1 to %d",
                            spec->name, strlen(spec->name), MU__VARIABLE_NAME_MAX);
    if ((spec->flags & ~all) != 0 || spec->flags == all)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "table %s: flags %u: expected 0, MU_TABLE_EXISTING (%d) or "
                            "MU_TABLE_RECREATE (%d)",
                            spec->name, spec->flags, MU_TABLE_EXISTING,
                            MU_TABLE_RECREATE);
    if (node->ps_count == 0)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "table %s: the cluster has no parameter server (ps)",
                            spec->name);
    return mu__variable_name_check(mu__view_str(spec->name), ret_error);
}

static int make_form(const mu_table_spec *spec, uint64_t id, mu_error *ret_error,
                     struct mu__table_form *ret_form)
{
    const mu_optimizer plain = mu_optimizer_make(MU_OPTIMIZER_SGD, DEFAULT_RATE);
    struct mu__table_form form = {
        .dim = spec->dim,
        .initial = {.kind = (uint32_t)spec->initializer,
                    .a = spec->initial_a,
                    .b = spec->initial_b,
                    .seed = mu__mix64(spec->seed + id)},
    };
    mu_error error;
    int rv =
        rule_of(spec->optimizer == NULL ? &plain : spec->optimizer, &error, &form.rule);

    if (rv == 0)
        rv = mu__table_form_check(&form, &error);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "table %s: %s", spec->name, error.message);
    *ret_form = form;
    return 0;
}

static int table_new(mu_node *node, const mu_table_spec *spec, mu_error *ret_error,
                     mu_table **ret_table)
{
    uint64_t id = mu__table_id(mu__view_str(spec->name));
    struct mu__table_form form;
    int rv = make_form(spec, id, ret_error, &form);
    size_t size = strlen(spec->name) + 1;
    mu_table *table;

    if (rv != 0)
        return rv;
    table = malloc(sizeof *table + size);
    if (table == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "table %s: out of memory", spec->name);
    *table = (mu_table){node, id, form, mu__partition_of(mu__view_str(spec->name), 0)};
    memcpy(table->name, spec->name, size);
    mu__node_ref(node);
    *ret_table = table;
    return 0;
}

int mu_table_open(mu_node *node, const mu_table_spec *spec, int64_t timeout_ms,
                  mu_error *ret_error, mu_table **ret_table)
{
    MU__REQUIRE(ret_error, node, spec, ret_table);

    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    mu_table *table = NULL;
    int rv = check_table_spec(node, spec, ret_error);

    if (rv == 0)
        rv = table_new(node, spec, ret_error, &table);
    if (rv != 0)
        return rv;
    rv = find_or_create(table, spec->flags, deadline_ns, ret_error);
    if (rv != 0)
        mu_table_close(table);
    else
        *ret_table = table;
    return rv;
}

void mu_table_close(mu_table *table)
{
    if (table == NULL)
        return;
    mu__node_unref(table->node);
    free(table);
}

unsigned mu_table_dim(const mu_table *table)
{
    MU__REQUIRE_OR(0, table);
    return table->form.dim;
}

/* ---- Look-ups ---- */

struct mu__table_call mu__table_lookup_call(const mu_table *table, int64_t timeout_ms)
{
    return make_table_call(table, MU__TABLE_LOOKUP_CALL, timeout_ms);
}

int mu__table_look_up(const mu_table *table, struct mu__table_call *call,
                      mu_error *ret_error)
{
    return run_table_call(table, call, ret_error);
}

const mu_node *mu__table_node(const mu_table *table)
{
    return table->node;
}

int mu_table_lookup(mu_table *table, const uint64_t *ids, size_t count, float *rows,
                    int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, ids, rows);

    struct mu__table_call call =
        make_table_call(table, MU__TABLE_LOOKUP_CALL, timeout_ms);
    struct mu__sorted_ids sorted;
    int rv;

    if (count == 0)
        return 0;
    rv = check_ids_count(table->name, count, ret_error);
    if (rv != 0)
        return rv;
    rv = mu__ids_sort(ids, (uint32_t)count, &sorted);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "table %s: out of memory", table->name);
    call.ids = &sorted;
    call.rows = rows;
    rv = run_table_call(table, &call, ret_error);
    mu__sorted_ids_done(&sorted);
    return rv;
}

/* ---- Pushes and deletes ---- */

struct table_push {
    const mu_table *table;
    const uint64_t *ids;
    const float *gradients; /* NULL: a delete */
    size_t count;
    const mu_optimizer *optimizer;
};

/* Check it, and append it to what is written. */
static int add_table_push(struct mu__effects *effects, const struct table_push *push,
                          mu_error *ret_error)
{
    const mu_table *table = push->table;
    struct mu__rule rule = table->form.rule;
    const struct mu__table_batch batch = {
        .table = table->id,
        .dim = push->gradients == NULL ? 0 : table->form.dim,
        .rule = &rule,
        .ids = push->ids,
        .gradients = push->gradients,
        .count = (uint32_t)push->count,
    };
    int rv = push->optimizer == NULL ? 0 : rule_of(push->optimizer, ret_error, &rule);

    return rv == 0 ? mu__effects_add_table(effects, &batch) : rv;
}

static int push_now(const struct table_push *push, int64_t timeout_ms,
                    mu_error *ret_error)
{
    struct mu__table_call call =
        make_table_call(push->table, MU__TABLE_WRITE_CALL, timeout_ms);
    mu_error error = {.code = 0};
    int rv = check_ids_count(push->table->name, push->count, ret_error);

    if (rv != 0 || push->count == 0)
        return rv;
    rv = add_table_push(&call.run.effects, push, &error);
    if (error.code != 0)
        return mu_error_set(ret_error, rv, "table %s: %s", push->table->name,
                            error.message);
    return send_writes(push->table, &call, rv, ret_error);
}

int mu_table_apply(mu_table *table, const uint64_t *ids, const float *gradients,
                   size_t count, const mu_optimizer *optimizer, int64_t timeout_ms,
                   mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, ids, gradients);

    const struct table_push push = {table, ids, gradients, count, optimizer};

    return push_now(&push, timeout_ms, ret_error);
}

int mu_table_delete(mu_table *table, const uint64_t *ids, size_t count,
                    int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, ids);

    const struct table_push push = {table, ids, NULL, count, NULL};

    return push_now(&push, timeout_ms, ret_error);
}

/* ---- Writes of a run; on the thread that runs the function ---- */

static int check_run_push(mu_run *run, const struct table_push *push, const void *rows)
{
    mu_error error;
    int rv;

    if (push->table == NULL)
        return mu_run_fail(run, -MU_EINVALID, "a push to no table");
    if (push->table->node != run->node)
        return mu_run_fail(run, -MU_EINVALID,
                           "table %s was opened on another node than the run's",
                           push->table->name);
    if (push->ids == NULL || rows == NULL)
        return mu_run_fail(run, -MU_EINVALID, "table %s: %s is NULL", push->table->name,
                           push->ids == NULL ? "ids" : "gradients");
    rv = check_ids_count(push->table->name, push->count, &error);
    return rv == 0 ? 0 : mu_run_fail(run, rv, "%s", error.message);
}

/* All of it, or nothing. */
static int push_in_run(mu_run *run, const struct table_push *push, const void *rows)
{
    struct mu__effect *last = run->effects.last;
    uint64_t before = run->effects.bytes;
    mu_error error = {.code = 0};
    int rv = check_run_push(run, push, rows);

    if (rv != 0 || push->count == 0)
        return rv;
    rv = add_table_push(&run->effects, push, &error);
    if (rv == 0)
        return 0;
    mu__effects_cut(&run->effects, last, before);
    return mu_run_fail(run, rv, "table %s: %zu ids: %s", push->table->name, push->count,
                       error.code != 0 ? error.message : mu_strerror(rv));
}

int mu_run_table_apply(mu_run *run, mu_table *table, const uint64_t *ids,
                       const float *gradients, size_t count,
                       const mu_optimizer *optimizer)
{
    MU__REQUIRE(NULL, run);

    const struct table_push push = {table, ids, gradients, count, optimizer};

    return push_in_run(run, &push, gradients);
}

int mu_run_table_delete(mu_run *run, mu_table *table, const uint64_t *ids, size_t count)
{
    MU__REQUIRE(NULL, run);

    const struct table_push push = {table, ids, NULL, count, NULL};

    return push_in_run(run, &push, ids);
}
