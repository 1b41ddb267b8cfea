/* The public calls about tables: checks, then calls to the variables actor. */
#include "api/internal.h"

#include "actors/variables/variables.h"
#include "api/tables/opened_table.h"
#include "node/deadline.h"
#include "node/node.h"
#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)MU_TABLE_EVICT_LFU == (int)MU__EVICT_LFU,
               "the same numbers here and there");
_Static_assert((int)MU_TABLE_DIM_MAX == (int)MU__TABLE_DIM_MAX,
               "the same number here and there");

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

void mu__table_init_call(const mu_table *table, int operation, uint64_t deadline_ns,
                         struct mu__table_call *ret_call)
{
    mu__call_clear(&ret_call->call, sizeof *ret_call);
    ret_call->call.operation = operation;
    ret_call->call.timeout_ms = mu__deadline_left_ms(deadline_ns);
    ret_call->name = table->name;
    ret_call->servers_count = (uint32_t)table->node->ps_count;
    ret_call->table = table->id;
    ret_call->dim = table->form.dim;
    ret_call->dtype = table->form.dtype;
}

struct mu__table_call mu__table_make_call(const mu_table *table, int operation,
                                          uint64_t deadline_ns)
{
    struct mu__table_call call = {.name = NULL};

    mu__table_init_call(table, operation, deadline_ns, &call);
    return call;
}

int mu__table_run_call(const mu_table *table, struct mu__table_call *call,
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

int mu__table_send(const mu_table *table, struct mu__table_call *call, int rv,
                   mu_error *ret_error)
{
    if (rv == -MU_EEXHAUSTED)
        (void)mu_error_set(ret_error, rv, "table %s: a push has more than %d bytes",
                           table->name, MU__EFFECTS_BYTES_MAX);
    else if (rv != 0)
        (void)mu_error_set(ret_error, rv, "table %s: %s", table->name, mu_strerror(rv));
    else
        rv = mu__table_run_call(table, call, ret_error);
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
        mu__table_make_call(table, MU__TABLE_WRITE_CALL, deadline_ns);
    bool is_home = mode == MU__TABLE_FIND || mode == MU__TABLE_SEAL;
    const struct mu__table_open open = {
        .mode = mode, .form = table->form, .name = mu__view_str(table->name)};
    int rv =
        mu__effects_add_table_open(&call.run.effects, &open, is_home ? table->home : 0,
                                   is_home ? table->home + 1 : MU__PARTITIONS);

    return mu__table_send(table, &call, rv, ret_error);
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
    const unsigned ways = MU_TABLE_EXISTING | MU_TABLE_RECREATE;

    if (spec->name == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "a table's name is NULL");
    if (strlen(spec->name) > MU__VARIABLE_NAME_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "table %.32s...: the name has %zu bytes: expected 1 to %d",
                            spec->name, strlen(spec->name), MU__VARIABLE_NAME_MAX);
    if ((spec->flags & ~(ways | MU_TABLE_UNKNOWN_ZEROS)) != 0 ||
        (spec->flags & ways) == ways)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "table %s: flags %u: expected 0, MU_TABLE_EXISTING (%d) or "
                            "MU_TABLE_RECREATE (%d), and MU_TABLE_UNKNOWN_ZEROS (%d)",
                            spec->name, spec->flags, MU_TABLE_EXISTING, MU_TABLE_RECREATE,
                            MU_TABLE_UNKNOWN_ZEROS);
    if (node->ps_count == 0)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "table %s: the cluster has no parameter server (ps)",
                            spec->name);
    return mu__variable_name_check(mu__view_str(spec->name), ret_error);
}

/* ---- Policies, as parts of tables have them ---- */

enum { CANDIDATES_DEFAULT = 1 << 20 };

/* What a partition has of so many; rounded up. */
static uint64_t share_of(uint64_t count)
{
    return count / MU__PARTITIONS + (count % MU__PARTITIONS != 0);
}

static int check_spec_policies(const mu_table_spec *spec, mu_error *ret_error)
{
    if (!(spec->admit_probability >= 0 && spec->admit_probability <= 1))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a probability of %g: expected 0 to 1",
                            spec->admit_probability);
    if (spec->ttl > UINT32_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a time to live of %" PRIu64 ": expected less than 2^32",
                            spec->ttl);
    if (share_of(spec->capacity) > INT32_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a capacity of %" PRIu64 " rows: expected at most 2^39",
                            spec->capacity);
    if (share_of(spec->candidates) > MU__CANDIDATES_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu64 " ids that are counted: expected at most %d",
                            spec->candidates, MU__CANDIDATES_MAX * MU__PARTITIONS);
    return 0;
}

/* In 2^32 cases. Each push, of a probability of 1: as without it. */
static uint32_t chance_of(double probability)
{
    double cases = probability * 0x1p32;

    if (!(probability > 0) || cases >= 0x1p32)
        return 0;
    return cases < 1 ? 1 : (uint32_t)cases;
}

static int make_table_policy(const mu_table_spec *spec, mu_error *ret_error,
                             struct mu__table_policy *ret_policy)
{
    uint64_t candidates = spec->candidates == 0 ? CANDIDATES_DEFAULT : spec->candidates;
    int rv = check_spec_policies(spec, ret_error);

    if (rv != 0)
        return rv;
    *ret_policy = (struct mu__table_policy){
        .admit_after = spec->admit_after,
        .admit_chance = chance_of(spec->admit_probability),
        .candidates = spec->admit_after > 1 ? (uint32_t)share_of(candidates) : 0,
        .ttl = (uint32_t)spec->ttl,
        .capacity = (uint32_t)share_of(spec->capacity),
        .eviction = (uint32_t)spec->eviction,
        .unknown_zeros = (spec->flags & MU_TABLE_UNKNOWN_ZEROS) != 0,
    };
    return 0;
}

static int make_form(const mu_table_spec *spec, uint64_t id, mu_error *ret_error,
                     struct mu__table_form *ret_form)
{
    const mu_optimizer plain = mu_optimizer_make(MU_OPTIMIZER_SGD, DEFAULT_RATE);
    struct mu__table_form form = {
        .dim = spec->dim, .dtype = spec->dtype == MU_F32 ? 0 : (uint32_t)spec->dtype};
    mu_error error;
    int rv =
        rule_of(spec->optimizer == NULL ? &plain : spec->optimizer, &error, &form.rule);

    if (rv == 0 && spec->initializer != NULL)
        rv = mu__initializer_of_rows(spec->initializer, id, spec->dim, &error,
                                     &form.initial);
    if (rv == 0)
        rv = make_table_policy(spec, &error, &form.policy);
    if (rv == 0)
        rv = mu__table_form_check(&form, &error);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "table %s: %s", spec->name, error.message);
    *ret_form = form;
    return 0;
}

static int table_new(mu_node *node, const char *name, const struct mu__table_form *form,
                     mu_error *ret_error, mu_table **ret_table)
{
    size_t size = strlen(name) + 1;
    mu_table *table = malloc(sizeof *table + size);

    if (table == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "table %s: out of memory", name);
    *table = (mu_table){
        .node = node,
        .id = mu__table_id(mu__view_str(name)),
        .form = *form,
        .home = mu__partition_of(mu__view_str(name), 0),
    };
    atomic_init(&table->refs, 1);
    memcpy(table->name, name, size);
    mu__node_ref(node);
    *ret_table = table;
    return 0;
}

int mu__table_open_form(mu_node *node, const char *name,
                        const struct mu__table_form *form, unsigned flags,
                        uint64_t deadline_ns, mu_error *ret_error, mu_table **ret_table)
{
    mu_table *table = NULL;
    int rv = table_new(node, name, form, ret_error, &table);

    if (rv != 0)
        return rv;
    rv = find_or_create(table, flags, deadline_ns, ret_error);
    if (rv != 0)
        mu_table_close(table);
    else
        *ret_table = table;
    return rv;
}

int mu_table_open(mu_node *node, const mu_table_spec *spec, int64_t timeout_ms,
                  mu_error *ret_error, mu_table **ret_table)
{
    MU__REQUIRE(ret_error, node, spec, ret_table);

    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    struct mu__table_form form;
    int rv = check_table_spec(node, spec, ret_error);

    if (rv == 0)
        rv = make_form(spec, mu__table_id(mu__view_str(spec->name)), ret_error, &form);
    if (rv != 0)
        return rv;
    return mu__table_open_form(node, spec->name, &form, spec->flags, deadline_ns,
                               ret_error, ret_table);
}

void mu__table_ref(mu_table *table)
{
    atomic_fetch_add(&table->refs, 1);
}

void mu_table_close(mu_table *table)
{
    if (table == NULL || atomic_fetch_sub(&table->refs, 1) != 1)
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

int mu__table_check_rows_dtype(const mu_table *table, int dtype, mu_error *ret_error)
{
    int own = table->form.dtype == 0 ? MU_F32 : (int)table->form.dtype;

    if (dtype == MU_F32 || dtype == own)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "table %s has rows of %s, which are not given as %s", table->name,
                        mu_dtype_name(own), mu_dtype_name(dtype));
}

int mu_table_lookup(mu_table *table, const uint64_t *ids, size_t count, float *rows,
                    int64_t timeout_ms, mu_error *ret_error)
{
    return mu_table_lookup_as(table, MU_F32, ids, count, rows, timeout_ms, ret_error);
}

int mu_table_lookup_as(mu_table *table, int dtype, const uint64_t *ids, size_t count,
                       void *rows, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, ids, rows);

    struct mu__table_call call =
        mu__table_make_call(table, MU__TABLE_LOOKUP_CALL, mu__deadline_in(timeout_ms));
    struct mu__sorted_ids sorted;
    int rv;

    if (count == 0)
        return 0;
    rv = check_ids_count(table->name, count, ret_error);
    if (rv == 0)
        rv = mu__table_check_rows_dtype(table, dtype, ret_error);
    if (rv != 0)
        return rv;
    rv = mu__ids_sort(ids, (uint32_t)count, &sorted);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "table %s: out of memory", table->name);
    call.ids = &sorted;
    call.rows = rows;
    call.is_raw = dtype != MU_F32;
    rv = mu__table_run_call(table, &call, ret_error);
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
    uint64_t time; /* 0: none is given */
};

static int check_time(uint64_t time, mu_error *ret_error)
{
    if (time <= UINT32_MAX)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "time %" PRIu64 ": expected less than 2^32", time);
}

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
        .time = (uint32_t)push->time,
        .ids = push->ids,
        .gradients = push->gradients,
        .count = (uint32_t)push->count,
    };
    int rv = push->optimizer == NULL ? 0 : rule_of(push->optimizer, ret_error, &rule);

    if (rv == 0)
        rv = check_time(push->time, ret_error);
    return rv == 0 ? mu__effects_add_table(effects, &batch) : rv;
}

int mu__table_add_push(const mu_table *table, struct mu__effects *effects, uint64_t time,
                       const uint64_t *ids, const float *gradients, size_t count,
                       const mu_optimizer *optimizer, mu_error *ret_error)
{
    const struct table_push push = {table, ids, gradients, count, optimizer, time};
    int rv = check_ids_count(table->name, count, ret_error);

    return rv == 0 ? add_table_push(effects, &push, ret_error) : rv;
}

static int push_now(const struct table_push *push, int64_t timeout_ms,
                    mu_error *ret_error)
{
    struct mu__table_call call = mu__table_make_call(push->table, MU__TABLE_WRITE_CALL,
                                                     mu__deadline_in(timeout_ms));
    mu_error error = {.code = 0};
    int rv = check_ids_count(push->table->name, push->count, ret_error);

    if (rv != 0 || push->count == 0)
        return rv;
    rv = add_table_push(&call.run.effects, push, &error);
    if (error.code != 0)
        return mu_error_set(ret_error, rv, "table %s: %s", push->table->name,
                            error.message);
    return mu__table_send(push->table, &call, rv, ret_error);
}

int mu_table_apply(mu_table *table, const uint64_t *ids, const float *gradients,
                   size_t count, const mu_optimizer *optimizer, int64_t timeout_ms,
                   mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, ids, gradients);

    const struct table_push push = {table, ids, gradients, count, optimizer, 0};

    return push_now(&push, timeout_ms, ret_error);
}

int mu_table_apply_at(mu_table *table, uint64_t time, const uint64_t *ids,
                      const float *gradients, size_t count, const mu_optimizer *optimizer,
                      int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, ids, gradients);

    const struct table_push push = {table, ids, gradients, count, optimizer, time};

    return push_now(&push, timeout_ms, ret_error);
}

static int add_expire(struct mu__effects *effects, const mu_table *table, uint32_t before)
{
    uint8_t bytes[MU__TABLE_EXPIRE_BYTES];
    struct mu__effect write = {
        .operation = MU__WRITE_TABLE_EXPIRE, .variable = table->id, .size = sizeof bytes};
    int rv = 0;

    mu__table_expire_pack(before, bytes);
    for (; write.partition < MU__PARTITIONS && rv == 0; write.partition++)
        rv = mu__effects_add(effects, &write, bytes);
    return rv;
}

int mu_table_expire(mu_table *table, uint64_t before, int64_t timeout_ms,
                    mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table);

    struct mu__table_call call =
        mu__table_make_call(table, MU__TABLE_WRITE_CALL, mu__deadline_in(timeout_ms));
    mu_error error;
    int rv = check_time(before, &error);

    if (rv != 0)
        return mu_error_set(ret_error, rv, "table %s: %s", table->name, error.message);
    return mu__table_send(
        table, &call, add_expire(&call.run.effects, table, (uint32_t)before), ret_error);
}

int mu_table_delete(mu_table *table, const uint64_t *ids, size_t count,
                    int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, table, ids);

    const struct table_push push = {table, ids, NULL, count, NULL, 0};

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

    const struct table_push push = {table, ids, gradients, count, optimizer, 0};

    return push_in_run(run, &push, gradients);
}

int mu_run_table_apply_at(mu_run *run, mu_table *table, uint64_t time,
                          const uint64_t *ids, const float *gradients, size_t count,
                          const mu_optimizer *optimizer)
{
    MU__REQUIRE(NULL, run);

    const struct table_push push = {table, ids, gradients, count, optimizer, time};

    return push_in_run(run, &push, gradients);
}

int mu_run_table_delete(mu_run *run, mu_table *table, const uint64_t *ids, size_t count)
{
    MU__REQUIRE(NULL, run);

    const struct table_push push = {table, ids, NULL, count, NULL, 0};

    return push_in_run(run, &push, ids);
}
