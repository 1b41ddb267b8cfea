#include "api/checkpoint/checkpoint_slots.h"

#include "actors/ps/slots/slots.h"
#include "actors/variables/variables.h"
#include "node/deadline.h"
#include "node/files/checkpoint/ckpt_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of a slot's tensor, or with `k` MU__RULE_SLOTS_MAX of the steps; false: it is
 * too long, or there is no such slot. */
static bool name_slot(const char *variable, uint32_t rule, unsigned k,
                      char out[MU__MANIFEST_NAME_MAX + 1])
{
    const struct mu__rule_kind *kind = mu__rule_kind(rule);
    const char *slot = k == MU__RULE_SLOTS_MAX ? "step" : kind->slot_names[k];
    int length;

    if (slot == NULL)
        return false;
    length =
        snprintf(out, MU__MANIFEST_NAME_MAX + 1, "%s#%s.%s", variable, kind->name, slot);
    return length > 0 && length <= MU__MANIFEST_NAME_MAX;
}

static struct mu__shape shape_of_steps(uint32_t shards)
{
    return (struct mu__shape){MU_I64, 1, {shards}, shards};
}

/* ---- Saving ---- */

static int compare_tensors_to_save(const void *a, const void *b)
{
    return strcmp(((const struct mu__saved_tensor *)a)->name,
                  ((const struct mu__saved_tensor *)b)->name);
}

static int add_slot_tensors(struct mu__saved_tensors *saved, const mu_variable *variable,
                            size_t i, uint32_t rule, mu_error *ret_error)
{
    const struct mu__shape *shape = &variable->opened->shape;

    for (unsigned k = 0; k <= MU__RULE_SLOTS_MAX; k++) {
        struct mu__saved_tensor *added = &saved->tensors[saved->count];

        *added = (struct mu__saved_tensor){
            .shape = shape_of_steps(shape->shards), .variable = i, .region = k + 1};
        if (k < MU__RULE_SLOTS_MAX && !mu__slots_shape(rule, k, shape, &added->shape))
            continue;
        if (!name_slot(variable->opened->name, rule, k, added->name))
            return mu_error_set(ret_error, -MU_EINVALID,
                                "variable %.64s...: its name is too long for one of the "
                                "tensors that an optimizer keeps",
                                variable->opened->name);
        saved->count++;
    }
    return 0;
}

static int add_variable_tensors(struct mu__saved_tensors *saved,
                                const struct mu__snapshot_sources *sources,
                                const struct mu__snapshot_reader *reader,
                                mu_error *ret_error)
{
    mu_variable *const *variables = sources->variables;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < sources->variables_count; i++) {
        struct mu__saved_tensor *added = &saved->tensors[saved->count++];
        uint32_t rule = mu__snapshot_rule(reader, i);

        *added = (struct mu__saved_tensor){.shape = variables[i]->opened->shape,
                                           .variable = i};
        (void)snprintf(added->name, sizeof added->name, "%s", variables[i]->opened->name);
        if (rule != 0)
            rv = add_slot_tensors(saved, variables[i], i, rule, ret_error);
    }
    return rv;
}

/* Without rows there is none. */
static int add_column_tensor(struct mu__saved_tensors *saved, const mu_table *table,
                             size_t i, unsigned k, const struct mu__table_column *column,
                             uint64_t rows, mu_error *ret_error)
{
    struct mu__saved_tensor *added = &saved->tensors[saved->count];

    if (rows == 0)
        return 0;
    *added = (struct mu__saved_tensor){.shape = {.dtype = column->dtype,
                                                 .rank = column->count == 0 ? 1 : 2,
                                                 .dims = {rows, column->count},
                                                 .shards = 1},
                                       .is_column = true,
                                       .variable = i,
                                       .region = k};
    if (!mu__ckpt_column_name(table->name, column, added->name))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "table %.64s...: its name is too long for one of its tensors",
                            table->name);
    saved->count++;
    return 0;
}

static int add_columns(struct mu__saved_tensors *saved, const mu_table *table, size_t i,
                       uint64_t rows, uint64_t deleted, mu_error *ret_error)
{
    struct mu__table_column columns[MU__TABLE_COLUMNS_MAX];
    unsigned count = mu__table_columns(&table->form, columns);
    int rv = 0;

    for (unsigned k = 0; rv == 0 && k < count; k++)
        rv = add_column_tensor(saved, table, i, k, &columns[k], rows, ret_error);
    if (rv == 0)
        rv = add_column_tensor(saved, table, i, MU__SAVED_DELETED,
                               &mu__ckpt_deleted_column, deleted, ret_error);
    return rv;
}

static int add_table_tensors(struct mu__saved_tensors *saved,
                             const struct mu__snapshot_sources *sources,
                             const struct mu__snapshot_reader *reader,
                             mu_error *ret_error)
{
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < sources->tables_count; i++) {
        uint64_t rows = 0;
        uint64_t deleted = 0;

        for (uint32_t p = 0; p < MU__PARTITIONS; p++) {
            rows += mu__snapshot_size(reader, i, p).rows;
            deleted += mu__snapshot_size(reader, i, p).deleted;
        }
        rv = add_columns(saved, sources->tables[i], i, rows, deleted, ret_error);
    }
    return rv;
}

static int index_saved_tensors(struct mu__saved_tensors *saved, mu_error *ret_error)
{
    qsort(saved->tensors, saved->count, sizeof saved->tensors[0],
          compare_tensors_to_save);
    for (size_t i = 0; i < saved->count; i++) {
        const struct mu__saved_tensor *at = &saved->tensors[i];

        if (i > 0 && compare_tensors_to_save(at - 1, at) == 0)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "the tensor \"%.100s\" is there twice", at->name);
        if (at->is_column)
            saved->columns[at->variable][at->region] = i;
        else
            saved->indices[at->variable][at->region] = i;
    }
    return 0;
}

int mu__saved_tensors_init(struct mu__saved_tensors *saved,
                           const struct mu__snapshot_sources *sources,
                           const struct mu__snapshot_reader *reader, mu_error *ret_error)
{
    size_t most = sources->variables_count * MU__SAVED_REGIONS +
                  sources->tables_count * MU__SAVED_COLUMNS;
    int rv;

    *saved = (struct mu__saved_tensors){
        .tensors = calloc(most + 1, sizeof saved->tensors[0]),
        .indices = calloc(sources->variables_count + 1, sizeof saved->indices[0]),
        .columns = calloc(sources->tables_count + 1, sizeof saved->columns[0]),
    };
    if (saved->tensors == NULL || saved->indices == NULL || saved->columns == NULL)
        rv = mu_error_set(ret_error, -MU_ENOMEM, "no memory to save a checkpoint");
    else
        rv = add_variable_tensors(saved, sources, reader, ret_error);
    if (rv == 0)
        rv = add_table_tensors(saved, sources, reader, ret_error);
    if (rv == 0)
        rv = index_saved_tensors(saved, ret_error);
    if (rv != 0)
        mu__saved_tensors_done(saved);
    return rv;
}

void mu__saved_tensors_done(struct mu__saved_tensors *saved)
{
    free(saved->tensors);
    free(saved->indices);
    free(saved->columns);
    *saved = (struct mu__saved_tensors){.count = 0};
}

/* ---- Restoring ---- */

static const struct mu__manifest_variable *find_slot_tensor(
    const struct mu__ckpt_reader *reader, const char *variable, uint32_t rule, unsigned k)
{
    char name[MU__MANIFEST_NAME_MAX + 1];

    return name_slot(variable, rule, k, name) ? mu__ckpt_reader_find(reader, name) : NULL;
}

/* The rule of which the checkpoint has slots; 0: of none. */
static uint32_t saved_rule(const struct mu__ckpt_reader *reader, const char *variable)
{
    for (uint32_t rule = 1; rule < MU__RULE_KINDS; rule++)
        if (find_slot_tensor(reader, variable, rule, MU__RULE_SLOTS_MAX) != NULL)
            return rule;
    return 0;
}

bool mu__ckpt_is_slot(const struct mu__ckpt_reader *reader,
                      const struct mu__manifest_variable *tensor)
{
    char name[MU__MANIFEST_NAME_MAX + 1];
    char *mark;
    uint32_t rule;

    (void)snprintf(name, sizeof name, "%s", tensor->name);
    mark = strrchr(name, '#');
    if (mark == NULL)
        return false;
    *mark = '\0';
    if (mu__ckpt_reader_find(reader, name) == NULL)
        return false;
    rule = saved_rule(reader, name);
    for (unsigned k = 0; rule != 0 && k <= MU__RULE_SLOTS_MAX; k++)
        if (find_slot_tensor(reader, name, rule, k) == tensor)
            return true;
    return false;
}

static int write_slot(mu_variable *variable, unsigned k, const struct mu__shape *shape,
                      uint32_t rule, const void *content, uint64_t deadline_ns,
                      mu_error *ret_error)
{
    const struct mu__rule kind = mu__rule_defaults(rule);
    uint8_t bytes[MU__RULE_BYTES_MAX];
    const struct mu__view packed = {bytes, (uint32_t)mu__rule_pack(&kind, bytes)};

    return mu__variable_write_slot(variable, MU__VARIABLE_SLOT + (int)k, shape, packed,
                                   content, mu__deadline_left_ms(deadline_ns), ret_error);
}

static int refuse_slot(const struct mu__ckpt_reader *reader,
                       const struct mu__manifest_variable *tensor, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EDATALOSS,
                        "\"%.200s\": the tensor \"%.100s\" does not fit its variable",
                        reader->path, tensor->name);
}

static int restore_slot(mu_variable *variable, const struct mu__ckpt_reader *reader,
                        const struct mu__manifest_variable *tensor, uint32_t rule,
                        unsigned k, uint64_t deadline_ns, mu_error *ret_error)
{
    const struct mu__shape saved = mu__ckpt_shape(tensor);
    struct mu__shape shape;
    uint8_t *content;
    int rv;

    if (!mu__slots_shape(rule, k, &variable->opened->shape, &shape) ||
        shape.dtype != saved.dtype || mu__shape_bytes(&shape) != mu__shape_bytes(&saved))
        return refuse_slot(reader, tensor, ret_error);
    rv = mu__ckpt_reader_content(reader, tensor, ret_error, &content);
    if (rv != 0)
        return rv;
    rv = write_slot(variable, k, &shape, rule, content, deadline_ns, ret_error);
    free(content);
    return rv;
}

/* Other numbers of shards all get the largest step. `steps` has room for `count`. */
static void spread_steps(uint64_t *steps, uint32_t count, const uint8_t *saved,
                         uint64_t saved_count)
{
    uint64_t most = 0;

    for (uint64_t i = 0; i < saved_count; i++) {
        uint64_t step;

        memcpy(&step, saved + i * sizeof step, sizeof step);
        most = step > most ? step : most;
    }
    if (count == saved_count)
        memcpy(steps, saved, count * sizeof *steps);
    else
        for (uint32_t i = 0; i < count; i++)
            steps[i] = most;
}

/* Without `tensor`: steps of no rule, which drop the slots that there are. */
static int restore_steps(mu_variable *variable, const struct mu__ckpt_reader *reader,
                         const struct mu__manifest_variable *tensor, uint32_t rule,
                         uint64_t deadline_ns, mu_error *ret_error)
{
    const struct mu__shape shape = shape_of_steps(variable->opened->shape.shards);
    uint64_t *steps = calloc(shape.shards, sizeof *steps);
    uint8_t *content = NULL;
    int rv = 0;

    if (steps == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to restore a checkpoint");
    if (tensor != NULL && (tensor->dtype != MU_I64 || tensor->rank != 1))
        rv = refuse_slot(reader, tensor, ret_error);
    if (rv == 0 && tensor != NULL)
        rv = mu__ckpt_reader_content(reader, tensor, ret_error, &content);
    if (rv == 0 && tensor != NULL)
        spread_steps(steps, shape.shards, content, tensor->dims[0]);
    if (rv == 0)
        rv = write_slot(variable, MU__RULE_SLOTS_MAX, &shape, rule, steps, deadline_ns,
                        ret_error);
    free(content);
    free(steps);
    return rv;
}

int mu__ckpt_restore_slots(mu_variable *variable, const struct mu__ckpt_reader *reader,
                           const struct mu__manifest_variable *saved,
                           uint64_t deadline_ns, mu_error *ret_error)
{
    uint32_t rule = saved_rule(reader, saved->name);
    int rv = 0;

    if (rule == 0)
        return restore_steps(variable, reader, NULL, MU__RULE_SGD, deadline_ns,
                             ret_error);
    for (unsigned k = 0; rv == 0 && k < MU__RULE_SLOTS_MAX; k++) {
        const struct mu__manifest_variable *tensor =
            find_slot_tensor(reader, saved->name, rule, k);

        if (tensor != NULL)
            rv = restore_slot(variable, reader, tensor, rule, k, deadline_ns, ret_error);
    }
    if (rv != 0)
        return rv;
    return restore_steps(variable, reader,
                         find_slot_tensor(reader, saved->name, rule, MU__RULE_SLOTS_MAX),
                         rule, deadline_ns, ret_error);
}
