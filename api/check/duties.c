/* What each task of a cluster does, and whom it dials. */
#include "api/check/cluster_check.h"

#include "node/member/member.h"
#include "node/member/service_options.h"

#include <stdio.h>
#include <string.h>

/* Types that may be dialled, besides those that run closures. */
static const char *const types[] = {"chief", "evaluator", "ps"};

static void add_words(char *out, const char *comma, const char *words)
{
    size_t used = strlen(out);

    (void)snprintf(out + used, CHECK_DOES_BYTES - used, "%s%s", used == 0 ? "" : comma,
                   words);
}

static void add_work(const struct cluster_check *check, const struct check_task *task,
                     char *out)
{
    static const char *const works[][2] = {
        {"chief", "schedules closures"},
        {"ps", "serves variables"},
        {"evaluator", "evaluates"},
        {"client", "is a client of the chief"},
    };

    if (mu__worker_types_has(&check->worker_types, task->type))
        add_words(out, ", ", "runs closures, trains");
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        if (strcmp(works[i][0], task->type) == 0)
            add_words(out, ", ", works[i][1]);
}

static bool is_service_host(const struct cluster_check *check,
                            const struct check_task *task)
{
    return check->hosts != NULL && check->hosts[0] != '\0' &&
           mu__service_is_host(check->hosts, task->type, task->index);
}

/* Whether a task dials tasks of a type, and there are any. */
static bool dials_type(const struct cluster_check *check, const struct check_task *task,
                       const char *type)
{
    return mu_cluster_task_count(check->cluster, type) > 0 &&
           mu__member_dials(check->cluster, &check->worker_types, task->type, task->index,
                            type);
}

/* The i-th type that may be dialled; NULL past the end. */
static const char *type_at(const struct cluster_check *check, size_t i)
{
    size_t others = sizeof types / sizeof types[0];
    const struct mu__worker_types *own = &check->worker_types;

    if (i < others)
        return types[i];
    return i - others < own->count ? own->rows[i - others].name : NULL;
}

void mu__check_describe(const struct cluster_check *check, const struct check_task *task,
                        char *out)
{
    bool dials_any = false;
    const char *type;

    out[0] = '\0';
    add_work(check, task, out);
    if (mu__member_ends_job(check->cluster, task->type, task->index))
        add_words(out, ", ", "ends the job");
    if (is_service_host(check, task))
        add_words(out, ", ", "hosts the coordination service");
    for (size_t i = 0; (type = type_at(check, i)) != NULL; i++) {
        if (!dials_type(check, task, type))
            continue;
        add_words(out, dials_any ? ", " : "; dials ", type);
        dials_any = true;
    }
    if (check->hosts != NULL && check->hosts[0] != '\0' && !is_service_host(check, task))
        add_words(out, dials_any ? ", " : "; dials ", "the service's host");
}
