/* What a checkpoint has, back to the servers: one variable and one table after the
 * other. */
#include "muster/checkpoint.h"

#include "actors/ps/windows.h"
#include "actors/variables/variables.h"
#include "api/checkpoint/checkpoint_tables.h"
#include "api/internal.h"
#include "node/deadline.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>

/* Open with the saved number of shards; a variable that is there with another number is
 * opened with shards 0, which leaves the number to the library, as does one of another
 * program's file. */
static int open_variable(mu_node *node, const struct mu__ckpt_reader *reader,
                         const struct mu__manifest_variable *saved, const void *content,
                         uint64_t deadline_ns, mu_error *ret_error,
                         mu_variable **ret_variable)
{
    mu_variable_spec spec = {
        .name = saved->name,
        .dtype = (int)saved->dtype,
        .rank = saved->rank,
        .dims = saved->dims,
        .shards = reader->has_sums ? saved->shards : 0,
        .initial = content,
        .flags = MU_VARIABLE_RECREATE,
    };
    mu_error error;
    int rv = mu_variable_open(node, &spec, mu__deadline_left_ms(deadline_ns), &error,
                              ret_variable);

    if (rv == -MU_EPRECONDITION) {
        spec.shards = 0;
        rv = mu_variable_open(node, &spec, mu__deadline_left_ms(deadline_ns), NULL,
                              ret_variable);
        if (rv != 0)
            rv = -MU_EPRECONDITION;
    }
    if (rv != 0 && ret_error != NULL)
        *ret_error = error;
    return rv;
}

/* The content is assigned even where this call may have created the variable with it:
 * another task may have been faster. Clears *is_same unless its shards are those that
 * were saved. */
static int restore_variable(mu_node *node, const struct mu__ckpt_reader *reader,
                            const struct mu__manifest_variable *saved,
                            uint64_t deadline_ns, mu_error *ret_error, bool *is_same)
{
    const struct mu__shape shape = mu__ckpt_shape(saved);
    mu_variable *variable = NULL;
    uint8_t *content = NULL;
    int rv = mu__ckpt_reader_content(reader, saved, ret_error, &content);

    if (rv == 0)
        rv = open_variable(node, reader, saved, content, deadline_ns, ret_error,
                           &variable);
    if (rv == 0)
        rv = mu_variable_assign(variable, content, (size_t)mu__shape_bytes(&shape),
                                mu__deadline_left_ms(deadline_ns), ret_error);
    if (rv == 0 && reader->has_sums)
        rv = mu__ckpt_restore_slots(variable, reader, saved, deadline_ns, ret_error);
    if (rv == 0 && variable->opened->shape.shards != saved->shards)
        *is_same = false;
    mu_variable_close(variable);
    free(content);
    return rv;
}

static int put_windows(mu_node *node, uint32_t partition, const uint8_t *bytes,
                       uint64_t size, uint64_t deadline_ns, mu_error *ret_error)
{
    static const struct mu__shape shape = {.shards = 1};
    struct mu__snapshot_call windows = {.partition = partition,
                                        .bytes = {bytes, (uint32_t)size}};
    struct mu__variable_call call = {
        .call = {.operation = MU__VARIABLE_WINDOWS_PUT,
                 .timeout_ms = mu__deadline_left_ms(deadline_ns)},
        .name = "of a checkpoint",
        .shape = &shape,
        .servers_count = (uint32_t)node->ps_count,
        .snapshot = &windows,
    };

    return mu__node_call(node, MU__VARIABLES, &call.call, ret_error);
}

/* So many bytes of whole entries as fit into one message; 0: they are malformed. */
static uint64_t next_windows(const uint8_t *bytes, uint64_t size)
{
    uint64_t taken = 0;
    uint64_t entry;

    while (taken < size) {
        entry = mu__windows_entry_bytes(bytes + taken, size - taken);
        if (entry == 0)
            return 0;
        if (taken > 0 && taken + entry > MU__WINDOW_BYTES_MAX)
            break;
        taken += entry;
    }
    return taken;
}

static int restore_windows_of(mu_node *node, const struct mu__ckpt_reader *reader,
                              size_t i, uint64_t deadline_ns, mu_error *ret_error)
{
    uint32_t partition = reader->manifest.partitions[i].partition;
    const uint8_t *bytes;
    uint64_t left;
    int rv = 0;

    mu__ckpt_reader_windows(reader, i, &bytes, &left);
    while (rv == 0 && left > 0) {
        uint64_t size = next_windows(bytes, left);

        if (size == 0 || partition >= MU__PARTITIONS)
            return mu_error_set(ret_error, -MU_EDATALOSS,
                                "\"%.200s\": the windows of partition %u are malformed",
                                reader->path, (unsigned)partition);
        rv = put_windows(node, partition, bytes, size, deadline_ns, ret_error);
        bytes += size;
        left -= size;
    }
    return rv;
}

static int restore_one(mu_node *node, const struct mu__ckpt_reader *reader,
                       const char *name, uint64_t deadline_ns, mu_error *ret_error)
{
    const struct mu__manifest_table *table = mu__ckpt_find_table(reader, name);
    bool is_same = true;

    if (table != NULL)
        return mu__ckpt_restore_table(node, reader, table, deadline_ns, ret_error);
    return restore_variable(node, reader, mu__ckpt_reader_find(reader, name), deadline_ns,
                            ret_error, &is_same);
}

static int restore_named(mu_node *node, const struct mu__ckpt_reader *reader,
                         const char *const *names, size_t count, int64_t timeout_ms,
                         mu_error *ret_error)
{
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    int rv = 0;

    for (size_t i = 0; i < count; i++)
        if (mu__ckpt_find_table(reader, names[i]) == NULL &&
            mu__ckpt_reader_find(reader, names[i]) == NULL)
            return mu_error_set(ret_error, -MU_ENOTFOUND,
                                "there is no variable \"%.100s\" in \"%.200s\"", names[i],
                                reader->path);
    for (size_t i = 0; rv == 0 && i < count; i++)
        rv = restore_one(node, reader, names[i], deadline_ns, ret_error);
    return rv;
}

/* With what was applied to them, since an effect that is in the contents must not be
 * applied again. That is known by partition; so it holds for all shards or for none. */
static int restore_all_variables(mu_node *node, const struct mu__ckpt_reader *reader,
                                 int64_t timeout_ms, mu_error *ret_error)
{
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    bool is_same = true;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < reader->manifest.variables_count; i++)
        if (mu__ckpt_is_variable(reader, &reader->manifest.variables[i]))
            rv = restore_variable(node, reader, &reader->manifest.variables[i],
                                  deadline_ns, ret_error, &is_same);
    for (size_t i = 0; rv == 0 && i < reader->manifest.tables_count; i++)
        rv = mu__ckpt_restore_table(node, reader, &reader->manifest.tables[i],
                                    deadline_ns, ret_error);
    for (size_t i = 0; rv == 0 && is_same && i < reader->manifest.partitions_count; i++)
        rv = restore_windows_of(node, reader, i, deadline_ns, ret_error);
    return rv;
}

int mu_checkpoint_restore(mu_node *node, const char *path, const char *const *names,
                          size_t count, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node, path);
    if (names != NULL)
        MU__REQUIRE_MANY(ret_error, names, count);

    struct mu__ckpt_reader *reader;
    int rv = mu__ckpt_reader_open(path, ret_error, &reader);

    if (rv != 0)
        return rv;
    mu__node_ref(node); /* it may be closed between two calls */
    rv = reader->manifest.base_mark != 0 ? mu__ckpt_refuse_increment(reader, ret_error)
                                         : mu__ckpt_check_tables(reader, ret_error);
    if (rv == 0)
        rv = names == NULL
                 ? restore_all_variables(node, reader, timeout_ms, ret_error)
                 : restore_named(node, reader, names, count, timeout_ms, ret_error);
    mu__node_unref(node);
    mu__ckpt_reader_close(reader);
    return rv;
}
