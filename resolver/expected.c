#include "resolver/expected.h"

#include "resolver/cluster.h"

#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 5, WORDS_BYTES = 320 };

int mu__expected_parse(const char *text, const char *source, mu_error *ret_error,
                    struct mu__jobs *ret_shape)
{
    *ret_shape = (struct mu__jobs){0};
    return text == NULL ? 0
                        : mu__jobs_parse(text, source, MU__JOBS_ANY, ret_error,
                                         ret_shape);
}

unsigned mu__expected_count(const struct mu__jobs *shape, const char *type)
{
    for (unsigned i = 0; i < shape->rows_count; i++)
        if (strcmp(shape->rows[i].type, type) == 0)
            return shape->rows[i].count;
    return 0;
}

/* Those who are missing, the first of them by name. */
struct missing {
    unsigned tasks;
    unsigned count;
    char words[WORDS_BYTES];
};

static void note_missing(struct missing *missing, const char *type, unsigned index)
{
    size_t used = strlen(missing->words);
    char name[MU_CLUSTER_TASK_BYTES];

    missing->count++;
    if (missing->count > NAMED_MAX)
        return;
    mu__task_name(name, sizeof name, type, (int)index);
    (void)snprintf(missing->words + used, sizeof missing->words - used, "%s%s",
                   used == 0 ? "" : ", ", name);
}

static void look(const struct mu__jobs *shape, const mu_cluster *cluster,
                 struct missing *missing)
{
    for (unsigned i = 0; i < shape->rows_count; i++)
        for (unsigned j = 0; j < shape->rows[i].count; j++) {
            missing->tasks++;
            if (mu_cluster_address(cluster, shape->rows[i].type, (int)j) == NULL)
                note_missing(missing, shape->rows[i].type, j);
        }
}

int mu__expected_check(const struct mu__jobs *shape, const char *source,
                    const mu_cluster *cluster, mu_error *ret_error)
{
    struct missing missing = {0};

    look(shape, cluster, &missing);
    if (missing.count > 0)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "%s: %u of %u tasks %s not there yet: %s%s", source,
                            missing.count, missing.tasks,
                            missing.count == 1 ? "is" : "are", missing.words,
                            missing.count > NAMED_MAX ? ", ..." : "");
    if (mu_cluster_is_empty(cluster))
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "%s: no task is there yet", source);
    return 0;
}

int mu__task_setting(struct mu__notes *notes, const struct mu__settings *settings,
                     unsigned type_number, mu_error *ret_error,
                     mu_resolution *ret_resolution)
{
    const char *name = mu__setting(notes, settings, type_number);
    long index = ret_resolution->task_index;
    char origin[128];
    mu_error inner;
    int type;
    int rv = mu__setting_number(notes, settings, type_number + 1, ret_error, &index);

    if (rv != 0 || name == NULL)
        return rv;
    rv = mu__task_type_find(name, &inner, &type);
    if (rv != 0) {
        mu__setting_origin(notes, settings, type_number, origin);
        return mu_error_set(ret_error, rv, "%s: %s", origin, inner.message);
    }
    (void)snprintf(ret_resolution->task_type, sizeof ret_resolution->task_type, "%s",
                   mu__task_type_name(type));
    ret_resolution->task_index = (int)index;
    return 0;
}

int mu__task_announced(struct mu__notes *notes, const struct mu__settings *settings,
                       unsigned type_number, const mu_announcement *announcement,
                       mu_error *ret_error, mu_resolution *ret_task)
{
    int rv;

    mu_resolution_init(ret_task);
    if (announcement->type[0] != '\0') {
        (void)snprintf(ret_task->task_type, sizeof ret_task->task_type, "%s",
                       announcement->type);
        ret_task->task_index = announcement->index;
        return 0;
    }
    rv = mu__task_setting(notes, settings, type_number, ret_error, ret_task);
    if (rv != 0)
        return rv;
    if (announcement->index >= 0)
        ret_task->task_index = announcement->index;
    return ret_task->task_type[0] != '\0'
               ? 0
               : mu_error_set(ret_error, -MU_EINVALID,
                              "%s: nobody says which task this process is; expected "
                              "setting task_type (variable MUSTER_TYPE)",
                              settings->resolver);
}
