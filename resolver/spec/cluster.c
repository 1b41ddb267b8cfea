/* The cluster spec: jobs, sorted by type; in each an array of tasks, sorted by index; and
 * a hash table of the addresses in use. Tasks are added in any order, but ascending
 * indices cost least. */
#include "resolver/spec/cluster.h"

#include "resolver/spec/address.h"
#include "runtime/base/array.h"
#include "runtime/base/hash_table.h"
#include "runtime/base/text.h"
#include "runtime/message/arguments.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    JOB_TASKS_MIN = 8,      /* capacity of a job's first array */
    LISTED_INDICES_MAX = 12 /* indices that a message lists of a sparse job */
};

struct cluster_task {
    struct mu__hash_node node; /* by the canonical url, where the address is fixed */
    const struct cluster_job *job;
    int index;
    uint32_t url_at; /* where the url begins in `text` */
    char text[];     /* the address as it was given, zero, the url, zero */
};

struct cluster_job {
    char type[MU__TASK_TYPE_BYTES];
    struct cluster_task **tasks; /* sorted by index; owned */
    size_t count;
    size_t capacity;
};

struct mu_cluster {
    struct cluster_job *jobs[MU_CLUSTER_TYPES_MAX]; /* sorted by type; owned */
    size_t jobs_count;
    size_t tasks_count;
    struct mu__hash_table urls; /* of the tasks with a fixed address */
};

static const struct mu_cluster empty;

mu_cluster *mu_cluster_new(void)
{
    return calloc(1, sizeof(mu_cluster));
}

void mu_cluster_free(mu_cluster *cluster)
{
    if (cluster == NULL)
        return;

    for (size_t i = 0; i < cluster->jobs_count; i++) {
        for (size_t k = 0; k < cluster->jobs[i]->count; k++)
            free(cluster->jobs[i]->tasks[k]);
        free(cluster->jobs[i]->tasks);
        free(cluster->jobs[i]);
    }
    mu__hash_table_done(&cluster->urls);
    free(cluster);
}

/* The index of a type's job, or where it would be inserted. */
static size_t find_job_position(const mu_cluster *cluster, const char *type)
{
    size_t i = 0;

    while (i < cluster->jobs_count && strcmp(cluster->jobs[i]->type, type) < 0)
        i++;
    return i;
}

/* NULL when the cluster has none. */
static const struct cluster_job *find_job(const mu_cluster *cluster, const char *type)
{
    size_t i = find_job_position(cluster, type);

    return i < cluster->jobs_count && strcmp(cluster->jobs[i]->type, type) == 0
               ? cluster->jobs[i]
               : NULL;
}

/* The job of a type, made when there is none. */
static int need_job(mu_cluster *cluster, const char *type, mu_error *ret_error,
                    struct cluster_job **ret_job)
{
    size_t i = find_job_position(cluster, type);
    struct cluster_job *job;

    if (i < cluster->jobs_count && strcmp(cluster->jobs[i]->type, type) == 0) {
        *ret_job = cluster->jobs[i];
        return 0;
    }
    if (cluster->jobs_count == MU_CLUSTER_TYPES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "the cluster has %d task types already; expected no more",
                            MU_CLUSTER_TYPES_MAX);
    job = calloc(1, sizeof *job);
    if (job == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    MU__COPY_TEXT(job->type, type);
    memmove(&cluster->jobs[i + 1], &cluster->jobs[i],
            (cluster->jobs_count - i) * sizeof(struct cluster_job *));
    cluster->jobs[i] = job;
    cluster->jobs_count++;
    *ret_job = job;
    return 0;
}

/* The position of the task `index` in the job, or where it would be inserted. */
static size_t find_position(const struct cluster_job *job, int index)
{
    size_t low = 0;
    size_t high = job->count;

    if (high > 0 && job->tasks[high - 1]->index < index)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (job->tasks[middle]->index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct cluster_task *find_cluster_task(const mu_cluster *cluster,
                                                    const char *type, int index)
{
    const struct cluster_job *job;
    size_t i;

    assert(type != NULL);
    job = cluster == NULL ? NULL : find_job(cluster, type);
    if (job == NULL)
        return NULL;
    i = find_position(job, index);
    return i < job->count && job->tasks[i]->index == index ? job->tasks[i] : NULL;
}

static const char *url_of(const struct cluster_task *task)
{
    return task->text + task->url_at;
}

/* FNV-1a. */
static uint64_t hash_url(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return h ^ h >> 32;
}

/* NULL when none has it. */
static const struct cluster_task *find_url(const mu_cluster *cluster, uint64_t url_hash,
                                           const char *url)
{
    struct mu__hash_node *node = mu__hash_table_find(&cluster->urls, url_hash);

    while (node != NULL && !mu__urls_are_same(url_of((struct cluster_task *)node), url))
        node = mu__hash_next(node);
    return (struct cluster_task *)node;
}

static struct cluster_task *new_cluster_task(const struct cluster_job *job, int index,
                                             const char *address, const char *url)
{
    size_t address_size = strlen(address) + 1;
    size_t url_size = strlen(url) + 1;
    struct cluster_task *task = malloc(sizeof *task + address_size + url_size);

    if (task == NULL)
        return NULL;
    task->job = job;
    task->index = index;
    memcpy(task->text, address, address_size);
    memcpy(task->text + address_size, url, url_size);
    task->url_at = (uint32_t)address_size;
    return task;
}

static int address_taken(const struct cluster_task *task, const char *address,
                         mu_error *ret_error)
{
    char shown[MU__QUOTE_BYTES];
    char name[64];

    mu__quote(shown, sizeof shown, address, strlen(address));
    mu__task_name(name, sizeof name, task->job->type, task->index);
    return mu_error_set(ret_error, -MU_EEXISTS,
                        "address %s is already that of %s; expected one address per task",
                        shown, name);
}

/* Whether a task with this index can be added, and at which position. */
static int check_index(const mu_cluster *cluster, const struct cluster_job *job,
                       int index, mu_error *ret_error, size_t *ret_position)
{
    size_t position;

    if (index < 0 || index > MU_CLUSTER_INDEX_MAX)
        return mu_error_set(ret_error, -MU_ERANGE, "index %d; expected 0 to %d", index,
                            MU_CLUSTER_INDEX_MAX);
    if (cluster->tasks_count == MU_CLUSTER_TASKS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "the cluster has %d tasks already; expected no more",
                            MU_CLUSTER_TASKS_MAX);

    position = find_position(job, index);
    if (position < job->count && job->tasks[position]->index == index)
        return mu_error_set(ret_error, -MU_EEXISTS,
                            "the job \"%s\" has index %d already; expected it once",
                            job->type, index);
    *ret_position = position;
    return 0;
}

static int insert_into(mu_cluster *cluster, struct cluster_job *job, int index,
                       const char *address, mu_error *ret_error)
{
    char url[MU__URL_BYTES];
    char canonical[MU__URL_BYTES];
    const struct cluster_task *same = NULL;
    struct cluster_task *task = NULL;
    size_t position = 0;
    uint64_t url_hash;
    bool fixed;
    int rv;

    rv = check_index(cluster, job, index, ret_error, &position);
    if (rv == 0)
        rv = mu__address_url(address, ret_error, url);
    if (rv != 0)
        return rv;
    mu__url_canonical(url, canonical);
    url_hash = hash_url(canonical);
    fixed = !mu__url_has_any_port(url);
    if (fixed)
        same = find_url(cluster, url_hash, url);
    if (same != NULL)
        return address_taken(same, address, ret_error);

    if (MU__ARRAY_RESERVE(&job->tasks, &job->capacity, job->count, JOB_TASKS_MIN))
        task = new_cluster_task(job, index, address, url);
    if (task == NULL ||
        (fixed && mu__hash_table_add(&cluster->urls, url_hash, &task->node) != 0)) {
        free(task);
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    memmove(job->tasks + position + 1, job->tasks + position,
            (job->count - position) * sizeof(struct cluster_task *));
    job->tasks[position] = task;
    job->count++;
    cluster->tasks_count++;
    return 0;
}

/* Remove the job that was made for a task which was then refused. */
static void drop_empty_job(mu_cluster *cluster, struct cluster_job *job)
{
    size_t i = find_job_position(cluster, job->type);

    cluster->jobs_count--;
    memmove(&cluster->jobs[i], &cluster->jobs[i + 1],
            (cluster->jobs_count - i) * sizeof(struct cluster_job *));
    free(job->tasks);
    free(job);
}

int mu__cluster_insert(mu_cluster *cluster, const char *type, int index,
                       const char *address, mu_error *ret_error)
{
    struct cluster_job *job = NULL;
    int rv = need_job(cluster, type, ret_error, &job);

    if (rv != 0)
        return rv;
    rv = insert_into(cluster, job, index, address, ret_error);
    if (job->count == 0)
        drop_empty_job(cluster, job);
    return rv;
}

/* Without checks: the tasks of a cluster have passed them. */
static int copy_job(mu_cluster *copy, const struct cluster_job *from)
{
    struct cluster_job *job;
    int rv;

    if (from->count == 0)
        return 0;
    rv = need_job(copy, from->type, NULL, &job);
    if (rv != 0)
        return rv;
    job->tasks = malloc(from->count * sizeof(struct cluster_task *));
    if (job->tasks == NULL)
        return -MU_ENOMEM;
    job->capacity = from->count;
    for (; job->count < from->count; job->count++) {
        const struct cluster_task *task = from->tasks[job->count];
        const char *url = url_of(task);
        struct cluster_task *same = new_cluster_task(job, task->index, task->text, url);

        if (same == NULL)
            return -MU_ENOMEM;
        job->tasks[job->count] = same;
        if (!mu__url_has_any_port(url) &&
            mu__hash_table_add(&copy->urls, task->node.hash, &same->node) != 0) {
            job->count++; /* is freed with the others */
            return -MU_ENOMEM;
        }
    }
    return 0;
}

static int copy_cluster_tasks(mu_cluster *copy, const mu_cluster *from)
{
    int rv = 0;

    copy->tasks_count = from->tasks_count;
    for (size_t i = 0; rv == 0 && i < from->jobs_count; i++)
        rv = copy_job(copy, from->jobs[i]);
    return rv;
}

mu_cluster *mu_cluster_copy(const mu_cluster *cluster)
{
    mu_cluster *copy = mu_cluster_new();

    if (copy == NULL || cluster == NULL)
        return copy;
    if (copy_cluster_tasks(copy, cluster) == 0)
        return copy;
    mu_cluster_free(copy);
    return NULL;
}

int mu_cluster_add(mu_cluster *cluster, const char *type, int index, const char *address,
                   mu_error *ret_error)
{
    MU__REQUIRE(ret_error, cluster, type, address);

    mu_error inner;
    char name[64];
    int rv;

    rv = mu__task_type_check(type, ret_error);
    if (rv != 0)
        return rv;
    rv = mu__cluster_insert(cluster, type, index, address, &inner);
    if (rv == 0)
        return 0;
    mu__task_name(name, sizeof name, type, index);
    return mu_error_set(ret_error, rv, "%s: %s", name, inner.message);
}

int mu__cluster_check(const mu_cluster *cluster, mu_error *ret_error)
{
    const struct cluster_job *chief;

    if (cluster == NULL)
        return 0;
    for (size_t i = 0; i < cluster->jobs_count; i++) {
        const struct cluster_job *job = cluster->jobs[i];

        if (job->count > 1 && mu__task_type_is_single(job->type))
            return mu_error_set(ret_error, -MU_EINVALID,
                                "the job \"%s\" has %zu tasks; expected at most 1",
                                job->type, job->count);
    }
    chief = find_job(cluster, "chief");
    if (chief == NULL)
        return 0;
    if (chief->count == 1 && chief->tasks[0]->index != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the job \"chief\" has index %d; expected index 0",
                            chief->tasks[0]->index);
    return 0;
}

/* "chief (1), worker (3)", or "no task at all". */
static void list_jobs(const mu_cluster *cluster, char *out, size_t size)
{
    size_t used = 0;

    (void)snprintf(out, size, "no task at all");
    for (size_t i = 0; i < cluster->jobs_count && used + 1 < size; i++) {
        if (cluster->jobs[i]->count == 0)
            continue;
        (void)snprintf(out + used, size - used, "%s%s (%zu)", used > 0 ? ", " : "",
                       cluster->jobs[i]->type, cluster->jobs[i]->count);
        used = strlen(out);
    }
}

/* "0 to 2" for a dense job, "0, 4, 9" for a sparse one. */
static void list_indices(const struct cluster_job *job, char *out, size_t size)
{
    int last = job->tasks[job->count - 1]->index;
    size_t used = 0;

    if ((size_t)last == job->count - 1) {
        (void)snprintf(out, size, last > 0 ? "0 to %d" : "%d", last);
        return;
    }
    for (size_t i = 0; i < job->count && i < LISTED_INDICES_MAX; i++) {
        (void)snprintf(out + used, size - used, "%s%d", i > 0 ? ", " : "",
                       job->tasks[i]->index);
        used = strlen(out);
    }
    if (job->count > LISTED_INDICES_MAX)
        (void)snprintf(out + used, size - used, ", ... %d", last);
}

/* A task of a type that the cluster has no task of. */
static int check_outsider(const mu_cluster *cluster, const char *type,
                          mu_error *ret_error)
{
    char jobs[128];

    if (strcmp(type, "client") == 0 || strcmp(type, "evaluator") == 0)
        return 0;
    list_jobs(cluster, jobs, sizeof jobs);
    return mu_error_set(ret_error, -MU_ENOTFOUND,
                        "the cluster has no task of type \"%s\"; expected one of what it "
                        "has: %s",
                        type, jobs);
}

int mu__cluster_check_task(const mu_cluster *cluster, const char *type, int index,
                           mu_error *ret_error)
{
    const mu_cluster *spec = cluster != NULL ? cluster : &empty;
    const struct cluster_job *job = find_job(spec, type);
    char indices[LISTED_INDICES_MAX * 10];
    size_t position;

    if (index < 0 || index > MU_CLUSTER_INDEX_MAX)
        return mu_error_set(ret_error, -MU_ERANGE, "index %d; expected 0 to %d", index,
                            MU_CLUSTER_INDEX_MAX);
    if (job == NULL || job->count == 0)
        return check_outsider(spec, type, ret_error);
    position = find_position(job, index);
    if (position < job->count && job->tasks[position]->index == index)
        return 0;

    list_indices(job, indices, sizeof indices);
    return mu_error_set(ret_error, -MU_ERANGE,
                        "index %d is not in the job \"%s\" with its %zu task%s; "
                        "expected %s",
                        index, type, job->count, job->count == 1 ? "" : "s", indices);
}

int mu_cluster_validate(const mu_cluster *cluster, const char *type, int index,
                        mu_error *ret_error)
{
    int rv;

    rv = mu__cluster_check(cluster, ret_error);
    if (rv != 0 || type == NULL)
        return rv;
    rv = mu__task_type_check(type, ret_error);
    return rv != 0 ? rv : mu__cluster_check_task(cluster, type, index, ret_error);
}

bool mu__cluster_may_join(const mu_cluster *cluster, const char *type, int index)
{
    return mu__cluster_check(cluster, NULL) == 0 && strcmp(type, "worker") == 0 &&
           index >= 0 && index <= MU_CLUSTER_INDEX_MAX &&
           mu_cluster_task_count(cluster, "chief") > 0;
}

size_t mu_cluster_task_count(const mu_cluster *cluster, const char *type)
{
    const struct cluster_job *job;

    if (cluster == NULL)
        return 0;
    if (type == NULL)
        return cluster->tasks_count;
    job = find_job(cluster, type);
    return job == NULL ? 0 : job->count;
}

const char *mu_cluster_address(const mu_cluster *cluster, const char *type, int index)
{
    MU__REQUIRE_OR(NULL, type);

    const struct cluster_task *task = find_cluster_task(cluster, type, index);

    return task != NULL ? task->text : NULL;
}

const char *mu_cluster_url(const mu_cluster *cluster, const char *type, int index)
{
    MU__REQUIRE_OR(NULL, type);

    const struct cluster_task *task = find_cluster_task(cluster, type, index);

    return task != NULL ? url_of(task) : NULL;
}

int mu__cluster_job_index(const mu_cluster *cluster, const char *type, size_t i)
{
    const struct cluster_job *job = cluster == NULL ? NULL : find_job(cluster, type);

    return job == NULL || i >= job->count ? -1 : job->tasks[i]->index;
}

int mu_cluster_task_at(const mu_cluster *cluster, size_t i, const char **ret_type,
                       int *ret_index, const char **ret_address)
{
    MU__REQUIRE(NULL, ret_type, ret_index, ret_address);

    const mu_cluster *spec = cluster != NULL ? cluster : &empty;

    for (size_t k = 0; k < spec->jobs_count; k++) {
        const struct cluster_job *job = spec->jobs[k];

        if (i < job->count) {
            *ret_type = job->type;
            *ret_index = job->tasks[i]->index;
            *ret_address = job->tasks[i]->text;
            return 0;
        }
        i -= job->count;
    }
    return -MU_ERANGE;
}

int mu_cluster_is_chief(const mu_cluster *cluster, const char *type, int index)
{
    MU__REQUIRE_OR(0, type);
    if (strcmp(type, "chief") == 0 || strcmp(type, "evaluator") == 0)
        return 1;
    return strcmp(type, "worker") == 0 && index == 0 &&
           mu_cluster_task_count(cluster, "chief") == 0;
}
