#include "resolver/engine/expected.h"

#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 5, RUN_MIN = 3, WORDS_BYTES = 320 };

/* Refuse a shape that no cluster can have: it would be waited for in vain. */
static int check_single_jobs(const struct mu__jobs *shape, const char *source,
                             mu_error *ret_error)
{
    for (unsigned i = 0; i < shape->rows_count; i++)
        if (shape->rows[i].count > 1 && mu__task_type_is_single(shape->rows[i].type))
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: the job \"%s\" has %u tasks; expected at most 1",
                                source, shape->rows[i].type, shape->rows[i].count);
    return 0;
}

int mu__expected_parse(const struct mu__pass *pass, unsigned setting, mu_error *ret_error,
                       struct mu__jobs *ret_shape)
{
    const char *text = mu__setting(pass, setting);
    const char *source = mu__setting_origin(pass, setting);
    struct mu__jobs shape = {0};
    int rv = 0;

    if (text != NULL && strcmp(text, "any") != 0)
        rv = mu__jobs_parse(text, source, MU__JOBS_ANY, ret_error, &shape);
    if (rv == 0)
        rv = check_single_jobs(&shape, source, ret_error);
    if (rv == 0)
        *ret_shape = shape;
    return rv;
}

unsigned mu__expected_count(const struct mu__jobs *shape, const char *type)
{
    for (unsigned i = 0; i < shape->rows_count; i++)
        if (strcmp(shape->rows[i].type, type) == 0)
            return shape->rows[i].count;
    return 0;
}

/* The missing tasks; the first of them are named. */
struct missing {
    unsigned tasks;
    unsigned count;
    unsigned named; /* names and runs of them */
    char words[WORDS_BYTES];
};

static void name_missing(struct missing *missing, const char *type, unsigned first,
                         unsigned last)
{
    size_t used = strlen(missing->words);
    char name[MU_CLUSTER_TASK_BYTES];

    missing->named++;
    if (missing->named > NAMED_MAX)
        return;
    mu__task_name(name, sizeof name, type, (int)first);
    used += (size_t)snprintf(missing->words + used, sizeof missing->words - used, "%s%s",
                             used == 0 ? "" : ", ", name);
    if (last > first)
        (void)snprintf(missing->words + used, sizeof missing->words - used, " to %u",
                       last);
}

/* Several in a row are named by the first and the last. */
static void record_missing(struct missing *missing, const char *type, unsigned first,
                           unsigned end)
{
    missing->count += end - first;
    if (end - first >= RUN_MIN) {
        name_missing(missing, type, first, end - 1);
        return;
    }
    for (unsigned index = first; index < end; index++)
        name_missing(missing, type, index, index);
}

static void find_missing_tasks(const struct mu__jobs *shape, const mu_cluster *cluster,
                               struct missing *missing)
{
    for (unsigned i = 0; i < shape->rows_count; i++) {
        const char *type = shape->rows[i].type;
        unsigned count = shape->rows[i].count;
        unsigned end;

        missing->tasks += count;
        for (unsigned first = 0; first < count; first = end + 1) {
            end = first;
            while (end < count && mu_cluster_address(cluster, type, (int)end) == NULL)
                end++;
            record_missing(missing, type, first, end);
        }
    }
}

int mu__expected_check(const struct mu__jobs *shape, const char *source,
                       const mu_cluster *cluster, mu_error *ret_error)
{
    struct missing missing = {0};

    find_missing_tasks(shape, cluster, &missing);
    if (missing.count > 0)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "%s: %u of %u tasks %s not there yet: %s%s", source,
                            missing.count, missing.tasks,
                            missing.count == 1 ? "is" : "are", missing.words,
                            missing.named > NAMED_MAX ? ", ..." : "");
    if (mu_cluster_is_empty(cluster))
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, "%s: no task is there yet",
                            source);
    return 0;
}

int mu__task_setting(const struct mu__pass *pass, unsigned type_number,
                     mu_error *ret_error, mu_resolution *ret_resolution)
{
    const char *name = mu__setting(pass, type_number);
    long index = ret_resolution->task_index;
    int rv = mu__setting_number(pass, type_number + 1, ret_error, &index);

    if (rv != 0 || name == NULL)
        return rv;
    rv = mu__task_type_read(name, strlen(name), ret_error, ret_resolution->task_type,
                            "%s", mu__setting_origin(pass, type_number));
    if (rv == 0)
        ret_resolution->task_index = (int)index;
    return rv;
}

int mu__task_announced(const struct mu__pass *pass, unsigned type_number,
                       const mu_announcement *announcement, mu_error *ret_error,
                       mu_resolution *ret_task)
{
    int rv;

    mu_resolution_init(ret_task);
    if (announcement->type[0] != '\0') {
        MU__COPY_TEXT(ret_task->task_type, announcement->type);
        ret_task->task_index = announcement->index;
        return 0;
    }
    rv = mu__task_setting(pass, type_number, ret_error, ret_task);
    if (rv != 0)
        return rv;
    if (announcement->index >= 0)
        ret_task->task_index = announcement->index;
    return ret_task->task_type[0] != '\0'
               ? 0
               : mu_error_set(ret_error, -MU_EINVALID,
                              "%s: nobody says which task this process is; expected "
                              "setting task_type (variable MUSTER_TYPE)",
                              pass->settings->resolver);
}
