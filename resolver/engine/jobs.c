/* The jobs of tasks that only have ranks. */
#include "resolver/engine/kind.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <string.h>

enum { JOBS_MAX = 8 };

/* The count of a job with "*", until the rest is known. */
static const unsigned rest = (unsigned)-1;

static int refuse_job(const char *source, size_t position, const char *text, size_t size,
                      mu_error *ret_error)
{
    return mu__refuse(ret_error, text, size,
                      "%s: job %zu: expected TYPE=COUNT, as in \"chief=1,worker=*\"",
                      source, position);
}

static int read_job_type(const char *source, size_t position, const char *text,
                         size_t size, const struct mu__jobs *jobs, mu_error *ret_error,
                         char *ret_type)
{
    int rv = mu__task_type_read(text, size, ret_error, ret_type, "%s: job %zu", source,
                                position);

    for (unsigned i = 0; rv == 0 && i < jobs->rows_count; i++)
        if (strcmp(jobs->rows[i].type, ret_type) == 0)
            rv = mu_error_set(ret_error, -MU_EEXISTS, "%s: job %zu: \"%s\" appears twice",
                              source, position, ret_type);
    return rv;
}

bool mu__count_parse(const char *text, size_t size, unsigned *ret_count)
{
    char digits[16];
    int count;

    if (size == 0 || size >= sizeof digits)
        return false;
    memcpy(digits, text, size);
    digits[size] = '\0';
    if (mu__index_parse(digits, &count) != 0)
        return false;
    *ret_count = (unsigned)count;
    return true;
}

static int read_job_row(const char *source, const char *text, size_t size,
                        struct mu__jobs *jobs, mu_error *ret_error)
{
    const char *equals = memchr(text, '=', size);
    size_t position = jobs->rows_count + 1;
    size_t before = equals == NULL ? 0 : (size_t)(equals - text);
    unsigned count = rest;
    int rv;

    if (equals == NULL || ((size != before + 2 || equals[1] != '*') &&
                           !mu__count_parse(equals + 1, size - before - 1, &count)))
        return refuse_job(source, position, text, size, ret_error);
    if (jobs->rows_count == JOBS_MAX)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected at most %d jobs",
                            source, (int)JOBS_MAX);
    rv = read_job_type(source, position, text, before, jobs, ret_error,
                       jobs->rows[jobs->rows_count].type);
    if (rv == 0)
        jobs->rows[jobs->rows_count++].count = count;
    return rv;
}

/* Replace "*" by the number of tasks that are left, and check the sum. */
static int fill_rest_job(const char *source, unsigned tasks, struct mu__jobs *jobs,
                         mu_error *ret_error)
{
    uint64_t sum = 0;
    unsigned *open = NULL;

    for (unsigned i = 0; i < jobs->rows_count; i++) {
        if (jobs->rows[i].count != rest) {
            sum += jobs->rows[i].count;
            continue;
        }
        if (open != NULL)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: expected one job with \"*\", got several", source);
        open = &jobs->rows[i].count;
    }
    if (tasks == MU__JOBS_ANY)
        return open == NULL && sum <= MU_CLUSTER_TASKS_MAX
                   ? 0
                   : mu_error_set(ret_error, -MU_EINVALID,
                                  "%s: expected counts of at most %d tasks in sum, %s",
                                  source, MU_CLUSTER_TASKS_MAX,
                                  open == NULL ? "there are more" : "and no \"*\"");
    if (open != NULL && sum <= tasks) {
        *open = tasks - (unsigned)sum;
        return 0;
    }
    if (sum == tasks)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: the jobs have %llu tasks, but there are %u", source,
                        (unsigned long long)sum, tasks);
}

int mu__jobs_parse(const char *text, const char *source, unsigned tasks,
                   mu_error *ret_error, struct mu__jobs *ret_jobs)
{
    struct mu__jobs jobs = {.rows = {{"worker", tasks}}, .rows_count = text == NULL};
    int rv;

    for (const char *at = text; at != NULL; at += *at == ',') {
        size_t size = strcspn(at, ",");

        rv = read_job_row(source, at, size, &jobs, ret_error);
        if (rv != 0)
            return rv;
        at += size;
        if (*at == '\0')
            break;
    }
    rv = fill_rest_job(source, tasks, &jobs, ret_error);
    if (rv == 0)
        *ret_jobs = jobs;
    return rv;
}

void mu__jobs_at(const struct mu__jobs *jobs, unsigned rank, const char **ret_type,
                 int *ret_index)
{
    unsigned i = 0;

    while (i + 1 < jobs->rows_count && rank >= jobs->rows[i].count)
        rank -= jobs->rows[i++].count;
    *ret_type = jobs->rows[i].type;
    *ret_index = (int)rank;
}
