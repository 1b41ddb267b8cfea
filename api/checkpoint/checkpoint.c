/* Checkpoints of variables: a snapshot of their partitions is read into the files, in
 * pieces; one variable after the other is read from the files to the servers. */
#include "muster/checkpoint.h"

#include "actors/packing.h"
#include "actors/ps/windows.h"
#include "actors/variables/variables.h"
#include "api/checkpoint/checkpoint_tables.h"
#include "api/checkpoint/pace.h"
#include "api/checkpoint/snapshot_reader.h"
#include "api/internal.h"
#include "node/deadline.h"
#include "node/files/checkpoint/ckpt_reader.h"
#include "node/files/checkpoint/ckpt_writer.h"
#include "node/files/direct_file.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { KEEP = 5, SAVES_MAX = 8 };

/* A file ends with the variable that reaches it. */
#define FILE_BYTES (UINT64_C(4) << 30)

static const char default_name[] = "model";

void mu_checkpoint_options_init_sized(mu_checkpoint_options *options, size_t size)
{
    const mu_checkpoint_options defaults = {
        .name = default_name, .max_to_keep = KEEP, .timeout_ms = -1};

    mu__options_init(options, size, &defaults, sizeof defaults);
}

/* ---- saving ---- */

static int compare_table_names(const void *a, const void *b)
{
    const mu_table *const *one = a;
    const mu_table *const *two = b;

    return strcmp((*one)->name, (*two)->name);
}

/* The tables by name; that each is there once is checked when they are read. The caller
 * frees *ret_sorted. */
static int sort_tables(mu_table *const *tables, size_t count, mu_error *ret_error,
                       mu_table ***ret_sorted)
{
    mu_table **sorted = malloc((count + 1) * sizeof(mu_table *));

    if (sorted == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to save a checkpoint");
    for (size_t i = 0; i < count; i++)
        sorted[i] = tables[i];
    if (count > 1)
        qsort(sorted, count, sizeof(mu_table *), compare_table_names);
    *ret_sorted = sorted;
    return 0;
}

static int compare_variable_names(const void *a, const void *b)
{
    const mu_variable *const *one = a;
    const mu_variable *const *two = b;

    return strcmp((*one)->opened->name, (*two)->opened->name);
}

/* The variables by name, each once. The caller frees *ret_sorted. */
static int sort_variables(mu_variable *const *variables, size_t count,
                          mu_error *ret_error, mu_variable ***ret_sorted)
{
    mu_variable **sorted = NULL;

    if (count > MU__MANIFEST_VARIABLES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%zu variables: a checkpoint has at most %d", count,
                            MU__MANIFEST_VARIABLES_MAX);
    sorted = malloc((count + 1) * sizeof(mu_variable *));
    if (sorted == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to save a checkpoint");
    for (size_t i = 0; i < count; i++)
        sorted[i] = variables[i];
    if (count > 1)
        qsort(sorted, count, sizeof(mu_variable *), compare_variable_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->opened->name, sorted[i]->opened->name) == 0) {
            int rv = mu_error_set(ret_error, -MU_EINVALID,
                                  "variable %s appears twice among those to save",
                                  sorted[i]->opened->name);

            free(sorted);
            return rv;
        }
    *ret_sorted = sorted;
    return 0;
}

/* A checkpoint that is being written. */
struct save {
    struct mu__ckpt_writer *writer;
    const struct mu__snapshot_sources *sources; /* by name */
    struct mu__saved_tensors tensors; /* this and below: once the snapshots are open */
    struct mu__saved_tables *tables;
    struct mu__set_copies_marks marks;
    struct mu__pace pace;
};

/* Whole tensors, in files of some FILE_BYTES. */
static int declare_tensors(void *owner, const struct mu__snapshot_reader *reader,
                           mu_error *ret_error)
{
    struct save *save = owner;
    uint64_t bytes = 0;
    uint32_t file = 0;
    int rv = mu__saved_tensors_init(&save->tensors, save->sources, reader, ret_error);

    if (rv == 0)
        rv = mu__saved_tables_new(save->writer, save->sources, reader, ret_error,
                                  &save->tables);
    for (size_t i = 0; rv == 0 && i < save->tensors.count; i++) {
        const struct mu__shape *shape = &save->tensors.tensors[i].shape;
        const struct mu__ckpt_part part = {
            .file = file,
            .name = save->tensors.tensors[i].name,
            .shape = shape,
            .end_row = shape->rank == 0 ? 1 : shape->dims[0],
        };

        rv = mu__ckpt_writer_declare(save->writer, &part, ret_error);
        bytes += mu__shape_bytes(shape);
        if (bytes >= FILE_BYTES) {
            bytes = 0;
            file++;
        }
    }
    return rv == 0 ? mu__ckpt_writer_begin(save->writer, ret_error) : rv;
}

_Static_assert((int)MU__SNAPSHOT_ALIGN == (int)MU__DIRECT_ALIGN,
               "pieces lie in memory as in the file");

static uint32_t saved_phase(void *owner, size_t variable, unsigned region,
                            uint64_t offset)
{
    const struct save *save = owner;
    size_t tensor = save->tensors.indices[variable][region];

    return (uint32_t)((mu__ckpt_writer_offset(save->writer, tensor) + offset) %
                      MU__DIRECT_ALIGN);
}

/* Training goes on meanwhile. */
static void rest(struct save *save)
{
    unsigned ms = mu__pace_rest_ms(&save->pace, uv_hrtime());

    if (ms > 0)
        uv_sleep(ms);
}

static int put_saved(void *owner, size_t variable, unsigned region, uint64_t offset,
                     const void *data, uint32_t size, mu_error *ret_error)
{
    struct save *save = owner;
    int rv =
        mu__ckpt_writer_write_at(save->writer, save->tensors.indices[variable][region],
                                 offset, data, size, ret_error);

    rest(save);
    return rv;
}

static int put_saved_rows(void *owner, size_t table, uint32_t partition, uint32_t first,
                          const void *copies, uint32_t count, mu_error *ret_error)
{
    struct save *save = owner;
    int rv = mu__saved_tables_put(save->tables, table, save->tensors.columns[table],
                                  partition, first, copies, count, ret_error);

    rest(save);
    return rv;
}

static int put_saved_deleted(void *owner, size_t table, uint32_t partition,
                             const void *ids, uint32_t count, mu_error *ret_error)
{
    struct save *save = owner;

    return mu__saved_tables_put_deleted(save->tables, table,
                                        save->tensors.columns[table][MU__SAVED_DELETED],
                                        partition, ids, count, ret_error);
}

/* How many updates each shard's slots had seen. */
static int save_steps(struct save *save, const struct mu__snapshot_reader *reader,
                      size_t i, mu_error *ret_error)
{
    const struct mu__saved_tensor *tensor = &save->tensors.tensors[i];
    uint64_t *steps = calloc(tensor->shape.shards, sizeof *steps);
    int rv;

    if (steps == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to save a checkpoint");
    for (uint32_t k = 0; k < tensor->shape.shards; k++)
        steps[k] = mu__snapshot_step(reader, tensor->variable, k);
    rv = mu__ckpt_writer_write(save->writer, i, steps, ret_error);
    free(steps);
    return rv;
}

static int end_tensors(struct save *save, const struct mu__snapshot_reader *reader,
                       mu_error *ret_error)
{
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < save->tensors.count; i++) {
        const struct mu__saved_tensor *tensor = &save->tensors.tensors[i];

        if (tensor->is_column)
            mu__ckpt_writer_end_part(save->writer, i,
                                     mu__saved_tables_sum(save->tables, tensor->variable,
                                                          tensor->region));
        else if (tensor->region == MU__SAVED_STEP)
            rv = save_steps(save, reader, i, ret_error);
        else
            mu__ckpt_writer_end_part(save->writer, i,
                                     mu__snapshot_sum(reader, tensor->variable,
                                                      tensor->region));
    }
    return rv;
}

static int save_partitions(struct mu__ckpt_writer *writer,
                           const struct mu__snapshot_reader *reader, mu_error *ret_error)
{
    struct mu__ckpt_partition partitions[MU__PARTITIONS];
    struct mu__snapshot_partition read;
    size_t count = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (mu__snapshot_partition_at(reader, i, &read))
            partitions[count++] = (struct mu__ckpt_partition){
                i, read.record, read.sum, read.windows, read.windows_bytes};
    return mu__ckpt_writer_write_partitions(writer, partitions, count, ret_error);
}

static int save_variables(struct save *save, int64_t timeout_ms, mu_error *ret_error)
{
    const struct mu__snapshot_target target = {.put = put_saved,
                                               .phase = saved_phase,
                                               .put_rows = put_saved_rows,
                                               .put_deleted = put_saved_deleted,
                                               .since = save->marks.since,
                                               .mark = save->marks.mark,
                                               .owner = save,
                                               .crc = mu__ckpt_writer_crc(save->writer),
                                               .begin = declare_tensors};
    struct mu__snapshot_reader *reader;
    int rv =
        mu__snapshot_read_all(save->sources, timeout_ms, &target, ret_error, &reader);

    if (rv != 0)
        return rv;
    rv = end_tensors(save, reader, ret_error);
    if (rv == 0)
        rv = save_partitions(save->writer, reader, ret_error);
    mu__snapshot_reader_free(reader);
    return rv;
}

/* The number of the checkpoint of which this is an increment. */
static int read_base(struct save *save, const char *base, mu_error *ret_error)
{
    const char *slash = strrchr(base, '/');
    struct mu__ckpt_reader *reader;
    int rv = mu__ckpt_reader_open_manifest(base, ret_error, &reader);

    if (rv != 0)
        return rv;
    save->marks.since = reader->manifest.mark;
    mu__ckpt_writer_set_marks(save->writer, save->marks.mark,
                              slash == NULL ? base : slash + 1, save->marks.since);
    mu__ckpt_reader_close(reader);
    if (save->marks.since != 0)
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "\"%.200s\" has no tables: there is no increment of it", base);
}

static int choose_marks(struct save *save, const char *base, mu_error *ret_error)
{
    uint64_t *mark = &save->marks.mark;

    if (uv_random(NULL, NULL, mark, sizeof *mark, 0, NULL) != 0)
        return mu_error_set(ret_error, -MU_EUNKNOWN, "no random number");
    *mark |= 1; /* not 0 */
    mu__ckpt_writer_set_marks(save->writer, *mark, "", 0);
    return base == NULL ? 0 : read_base(save, base, ret_error);
}

static int save_parts(struct mu__ckpt_writer *writer,
                      const struct mu__snapshot_sources *sources, const mu_value *values,
                      const char *base, int64_t timeout_ms, mu_error *ret_error)
{
    struct save save = {.writer = writer, .sources = sources};
    int rv = 0;

    mu__pace_init(&save.pace, uv_hrtime());
    if (sources->tables_count > 0 || base != NULL)
        rv = choose_marks(&save, base, ret_error);
    if (rv == 0 && values != NULL)
        rv = mu__ckpt_writer_write_value(writer, values, ret_error);
    if (rv == 0)
        rv = save_variables(&save, timeout_ms, ret_error);
    mu__saved_tensors_done(&save.tensors);
    mu__saved_tables_free(save.tables);
    mu__pace_done(&save.pace);
    return rv == 0 ? mu__ckpt_writer_finish(writer, ret_error) : rv;
}

/* Remove all but the newest and the one that was just saved, whose step may be older. */
static void remove_old_checkpoints(const mu_checkpoint_options *o, uint64_t saved)
{
    char path[MU__CKPT_PATH_BYTES];
    uint64_t *steps;
    size_t count;

    if (o->max_to_keep == 0 || o->base != NULL ||
        mu__ckpt_steps(o->directory, o->name, NULL, &steps, &count) != 0)
        return;
    for (size_t i = o->max_to_keep; i < count; i++)
        if (steps[i] != saved &&
            mu__ckpt_path(o->directory, o->name, steps[i], NULL, path) == 0)
            mu__ckpt_folder_remove(path);
    mu__free_array(steps);
}

static int save_once(const char *path, uint64_t step,
                     const struct mu__snapshot_sources *sources, const mu_value *values,
                     const char *base, int64_t timeout_ms, mu_error *ret_error)
{
    struct mu__ckpt_writer *writer;
    int rv = mu__ckpt_writer_open(path, step, ret_error, &writer);

    if (rv != 0)
        return rv;
    rv = save_parts(writer, sources, values, base, timeout_ms, ret_error);
    mu__ckpt_writer_free(writer);
    return rv;
}

/* Files begin with the sizes of what is in them; after a server was lost tables may have
 * other numbers of rows than those. */
static int save_folder(const mu_checkpoint_options *o, const char *path, uint64_t step,
                       const struct mu__snapshot_sources *sources, const mu_value *values,
                       mu_error *ret_error)
{
    uint64_t deadline_ns = mu__deadline_in(o->timeout_ms);
    int rv = -MU_EABORTED;

    for (int i = 0; i < SAVES_MAX && rv == -MU_EABORTED; i++)
        rv = save_once(path, step, sources, values, o->base,
                       mu__deadline_left_ms(deadline_ns), ret_error);
    return rv;
}

static int prepare_save(const mu_checkpoint_options *o, uint64_t step,
                        mu_error *ret_error, char path[MU__CKPT_PATH_BYTES])
{
    int rv;

    if (o->directory == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "a checkpoint needs a directory");
    rv = mu__ckpt_name_check(o->name, ret_error);
    if (rv == 0)
        rv = mu__ckpt_path(o->directory, o->name, step, ret_error, path);
    return rv == 0 ? mu__ckpt_make_directory(o->directory, ret_error) : rv;
}

int mu_checkpoint_save(const mu_checkpoint_options *options, uint64_t step,
                       mu_variable *const *variables, size_t count,
                       const mu_value *values, mu_error *ret_error, char **ret_path)
{
    MU__REQUIRE(ret_error, options);
    MU__REQUIRE_MANY(ret_error, variables, count);

    char path[MU__CKPT_PATH_BYTES];
    mu_variable **sorted = NULL;
    mu_table **sorted_tables = NULL;
    mu_checkpoint_options o;
    char *copy = NULL;
    int rv = MU__OPTIONS_READ(mu_checkpoint_options, options, ret_error, &o);

    if (rv == 0)
        rv = prepare_save(&o, step, ret_error, path);
    if (rv != 0)
        return rv;
    MU__REQUIRE_MANY(ret_error, o.tables, o.tables_count);
    rv = sort_variables(variables, count, ret_error, &sorted);
    if (rv != 0)
        return rv;
    rv = sort_tables(o.tables, o.tables_count, ret_error, &sorted_tables);
    if (rv == 0 && ret_path != NULL) {
        copy = strdup(path);
        if (copy == NULL)
            rv = mu_error_set(ret_error, -MU_ENOMEM, "no memory to save a checkpoint");
    }
    if (rv == 0) {
        const struct mu__snapshot_sources sources = {sorted, count, sorted_tables,
                                                     o.tables_count};

        rv = save_folder(&o, path, step, &sources, values, ret_error);
    }
    free(sorted);
    free(sorted_tables);
    if (rv != 0) {
        free(copy);
        return rv;
    }
    remove_old_checkpoints(&o, step);
    if (ret_path != NULL)
        *ret_path = copy;
    return 0;
}

/* ---- the newest ---- */

/* 0 when that one is whole. */
static int check_checkpoint(const char *path, mu_error *ret_error)
{
    struct mu__ckpt_reader *reader;
    int rv = mu__ckpt_reader_open(path, ret_error, &reader);

    if (rv != 0)
        return rv;
    if (reader->manifest.base_mark != 0)
        rv = mu__ckpt_refuse_increment(reader, ret_error);
    mu__ckpt_reader_close(reader);
    return rv;
}

static int first_whole(const char *directory, const char *name, const uint64_t *steps,
                       size_t count, mu_error *ret_error, size_t *ret_at,
                       char path[MU__CKPT_PATH_BYTES])
{
    mu_error first = {.code = -MU_ENOTFOUND};

    (void)mu_error_set(&first, -MU_ENOTFOUND,
                       "there is no checkpoint \"%s\" in \"%.200s\"", name, directory);
    for (size_t i = 0; i < count; i++) {
        mu_error error;
        int rv = mu__ckpt_path(directory, name, steps[i], &error, path);

        if (rv == 0)
            rv = check_checkpoint(path, &error);
        if (rv == 0) {
            *ret_at = i;
            return 0;
        }
        if (first.code == -MU_ENOTFOUND)
            first = error;
    }
    if (ret_error != NULL)
        *ret_error = first;
    return first.code;
}

int mu_checkpoint_latest(const char *directory, const char *name, mu_error *ret_error,
                         char **ret_path, uint64_t *ret_step)
{
    MU__REQUIRE(ret_error, directory, ret_path);

    char path[MU__CKPT_PATH_BYTES];
    uint64_t *steps = NULL;
    size_t count = 0;
    size_t at = 0;
    char *copy;
    int rv;

    if (name == NULL)
        name = default_name;
    rv = mu__ckpt_name_check(name, ret_error);
    if (rv == 0)
        rv = mu__ckpt_steps(directory, name, ret_error, &steps, &count);
    if (rv == 0)
        rv = first_whole(directory, name, steps, count, ret_error, &at, path);
    if (rv == 0) {
        copy = strdup(path);
        if (copy == NULL) {
            rv = mu_error_set(ret_error, -MU_ENOMEM, "no memory for a checkpoint's path");
        } else {
            *ret_path = copy;
            if (ret_step != NULL)
                *ret_step = steps[at];
        }
    }
    mu__free_array(steps);
    return rv;
}

/* ---- looking inside ---- */

static mu_value *make_shape_value(const struct mu__shape *shape)
{
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (uint32_t i = 0; rv == 0 && i < shape->rank; i++)
        rv = mu_value_append(list, mu_value_int((int64_t)shape->dims[i]));
    if (rv == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

static mu_value *describe_saved(const struct mu__manifest_variable *variable)
{
    const struct mu__shape shape = mu__ckpt_shape(variable);
    mu_value *map = mu_value_map();
    int rv = map == NULL ? -MU_ENOMEM : 0;

    if (rv == 0)
        rv = mu_value_set(map, "name", mu_value_string(variable->name));
    if (rv == 0)
        rv = mu_value_set(map, "dtype", mu_value_string(mu_dtype_name((int)shape.dtype)));
    if (rv == 0)
        rv = mu_value_set(map, "shape", make_shape_value(&shape));
    if (rv == 0)
        rv = mu_value_set(map, "shards", mu_value_int(shape.shards));
    if (rv == 0)
        rv = mu_value_set(map, "bytes", mu_value_int((int64_t)mu__shape_bytes(&shape)));
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static mu_value *describe_all_saved(const struct mu__ckpt_reader *reader)
{
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (size_t i = 0; rv == 0 && i < reader->manifest.variables_count; i++)
        if (mu__ckpt_is_variable(reader, &reader->manifest.variables[i]))
            rv = mu_value_append(list, describe_saved(&reader->manifest.variables[i]));
    if (rv == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

/* Takes values. */
static int make_content(const struct mu__ckpt_reader *reader, mu_value *values,
                        mu_error *ret_error, mu_value **ret_content)
{
    mu_value *map = mu_value_map();
    int rv;

    if (map == NULL) {
        mu_value_free(values);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to read a checkpoint");
    }
    rv = mu_value_set(map, "values", values);
    if (rv == 0)
        rv = mu_value_set(map, "step", mu_value_int((int64_t)reader->manifest.step));
    if (rv == 0)
        rv = mu_value_set(map, "variables", describe_all_saved(reader));
    if (rv == 0)
        rv = mu_value_set(map, "tables", mu__ckpt_describe_tables(reader));
    if (rv == 0) {
        *ret_content = map;
        return 0;
    }
    mu_value_free(map);
    return mu_error_set(ret_error, rv, "no memory to read a checkpoint");
}

int mu_checkpoint_read(const char *path, mu_error *ret_error, mu_value **ret_content)
{
    MU__REQUIRE(ret_error, path, ret_content);

    struct mu__ckpt_reader *reader;
    mu_value *values = NULL;
    int rv = mu__ckpt_reader_open(path, ret_error, &reader);

    if (rv != 0)
        return rv;
    rv = mu__ckpt_check_tables(reader, ret_error);
    if (rv == 0)
        rv = mu__ckpt_reader_value(reader, ret_error, &values);
    if (rv == 0)
        rv = make_content(reader, values, ret_error, ret_content);
    mu__ckpt_reader_close(reader);
    return rv;
}
