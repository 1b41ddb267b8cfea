/* Cluster specs from JSON and to JSON. */
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOCATION_BYTES = 256 /* source and path in front of a message */
};

/* State of the parser, while it reads a job. */
struct job_reader {
    const char *source;
    const char *path;     /* "" or "cluster" */
    const char *location; /* of the whole: "TF_CONFIG: cluster" */
    const cJSON *job;     /* the list or object, named by its key */
    const char *type;
    mu_cluster *cluster;
    mu_error *error;
    mu__cluster_report_fn *report; /* takes each error, and reading goes on; NULL: it
                                      ends */
    void *user;
};

/* One member of a sparse job. */
struct sparse_task {
    int index;
    const cJSON *item;
};

/* Pass the error in r->error to r->report: 0, so that reading goes on. Without
 * `report`, and out of memory, it is rv. */
static int end_or_report(const struct job_reader *r, int rv)
{
    if (rv == 0 || rv == -MU_ENOMEM || r->report == NULL)
        return rv;
    r->report(r->user, r->error);
    return 0;
}

static void location_of_job(const struct job_reader *r, char *out)
{
    const char *dot = r->path[0] != '\0' ? "." : "";

    (void)snprintf(out, LOCATION_BYTES, "%s: %s%s%s", r->source, r->path, dot,
                   r->job->string);
}

/* "worker[2]" in a list, `worker["2"]` in an object. */
static void location_of_item(const struct job_reader *r, const cJSON *item, int index,
                             char *out)
{
    char key[MU__QUOTE_BYTES];
    size_t used;

    location_of_job(r, out);
    used = strlen(out);
    if (item->string == NULL) {
        (void)snprintf(out + used, LOCATION_BYTES - used, "[%d]", index);
        return;
    }
    mu__quote(key, sizeof key, item->string, strlen(item->string));
    (void)snprintf(out + used, LOCATION_BYTES - used, "[%s]", key);
}

static int read_json_task(const struct job_reader *r, const cJSON *item, int index)
{
    char location[LOCATION_BYTES];
    mu_error inner;
    int rv;

    if (!cJSON_IsString(item)) {
        location_of_item(r, item, index, location);
        return mu__json_refuse(r->error, -MU_EINVALID, item, "%s: expected \"host:port\"",
                               location);
    }
    rv = mu__cluster_insert(r->cluster, r->type, index, item->valuestring, &inner);
    if (rv == 0)
        return 0;
    location_of_item(r, item, index, location);
    return mu_error_set(r->error, rv, "%s: %s", location, inner.message);
}

static int read_json_list(const struct job_reader *r)
{
    int index = 0;

    for (const cJSON *item = r->job->child; item != NULL; item = item->next) {
        int rv = end_or_report(r, read_json_task(r, item, index++));

        if (rv != 0)
            return rv;
    }
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct sparse_task *one = a;
    const struct sparse_task *two = b;

    return (one->index > two->index) - (one->index < two->index);
}

static int read_keys(const struct job_reader *r, struct sparse_task *entries,
                     size_t *ret_count)
{
    size_t count = 0;

    for (const cJSON *item = r->job->child; item != NULL; item = item->next) {
        char location[LOCATION_BYTES];
        char key[MU__QUOTE_BYTES];
        int index;
        int rv = mu__index_parse(item->string, &index);

        if (rv == 0) {
            entries[count++] = (struct sparse_task){index, item};
            continue;
        }
        location_of_job(r, location);
        mu__quote(key, sizeof key, item->string, strlen(item->string));
        rv = mu_error_set(r->error, rv, "%s: expected an index of 0 to %d as key, got %s",
                          location, MU_CLUSTER_INDEX_MAX, key);
        rv = end_or_report(r, rv);
        if (rv != 0)
            return rv;
    }
    *ret_count = count;
    return 0;
}

/* Sorted first, so that tasks come in ascending order, which costs least. An index that
 * appears twice is then refused by the cluster itself. */
static int read_json_object(const struct job_reader *r)
{
    size_t count = (size_t)cJSON_GetArraySize(r->job);
    struct sparse_task *entries = malloc((count + 1) * sizeof *entries);
    int rv;

    if (entries == NULL)
        return mu_error_set(r->error, -MU_ENOMEM, "%s: out of memory", r->source);
    rv = read_keys(r, entries, &count);
    if (rv == 0)
        qsort(entries, count, sizeof *entries, compare_entries);
    for (size_t i = 0; i < count && rv == 0; i++)
        rv = end_or_report(r, read_json_task(r, entries[i].item, entries[i].index));
    free(entries);
    return rv;
}

static int read_job(struct job_reader *r, const cJSON *job)
{
    char location[LOCATION_BYTES];
    mu_error inner;
    int rv;

    r->job = job;
    r->type = job->string;
    rv = mu__task_type_check(r->type, &inner);
    if (rv != 0)
        return mu_error_set(r->error, rv, "%s: %s", r->location, inner.message);
    if (cJSON_IsArray(job))
        return read_json_list(r);
    if (cJSON_IsObject(job))
        return read_json_object(r);

    location_of_job(r, location);
    return mu__json_refuse(
        r->error, -MU_EINVALID, job,
        "%s: expected a list of addresses, or an object of index -> address", location);
}

static int read_jobs(struct job_reader *r, const cJSON *object)
{
    char location[LOCATION_BYTES];
    int rv;

    (void)snprintf(location, sizeof location, "%s%s%s", r->source,
                   r->path[0] != '\0' ? ": " : "", r->path);
    r->location = location;
    rv = end_or_report(r, mu__json_check_keys(object, location, r->error));
    for (const cJSON *job = object->child; job != NULL && rv == 0; job = job->next)
        rv = end_or_report(r, read_job(r, job));
    return rv;
}

int mu__cluster_from_json(const cJSON *object, const char *source, const char *path,
                          mu_error *ret_error, mu_cluster **ret_cluster)
{
    struct job_reader r = {
        .source = source, .path = path, .error = ret_error, .cluster = mu_cluster_new()};
    int rv;

    if (r.cluster == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
    rv = read_jobs(&r, object);
    if (rv == 0)
        *ret_cluster = r.cluster;
    else
        mu_cluster_free(r.cluster);
    return rv;
}

int mu__cluster_read_all(mu_cluster *cluster, const cJSON *object, const char *source,
                         const char *path, mu__cluster_report_fn *report, void *user)
{
    mu_error error;
    struct job_reader r = {.source = source,
                           .path = path,
                           .error = &error,
                           .cluster = cluster,
                           .report = report,
                           .user = user};

    return read_jobs(&r, object);
}

int mu_cluster_parse(const char *json, size_t size, const char *source,
                     mu_error *ret_error, mu_cluster **ret_cluster)
{
    MU__REQUIRE(ret_error, json, source, ret_cluster);
    cJSON *root;
    int rv;

    rv = mu__json_parse(json, size, source, ret_error, &root);
    if (rv != 0)
        return rv;
    rv = mu__cluster_from_json(root, source, "", ret_error, ret_cluster);
    cJSON_Delete(root);
    return rv;
}

/* Whether the `count` tasks from `start` are one dense job. */
static bool is_dense(const mu_cluster *cluster, size_t start, size_t count)
{
    const char *type;
    const char *address;
    int index;

    (void)mu_cluster_task_at(cluster, start + count - 1, &type, &index, &address);
    return (size_t)index == count - 1;
}

/* Add the `count` tasks from `start`, which are one job. */
static bool write_job(const mu_cluster *cluster, size_t start, size_t count, cJSON *job)
{
    for (size_t i = start; i < start + count; i++) {
        const char *type;
        const char *address;
        char key[16];
        int index;
        cJSON *text;
        bool added;

        (void)mu_cluster_task_at(cluster, i, &type, &index, &address);
        (void)snprintf(key, sizeof key, "%d", index);
        text = cJSON_CreateString(address);
        added = cJSON_IsArray(job) ? cJSON_AddItemToArray(job, text)
                                   : cJSON_AddItemToObject(job, key, text);
        if (!added) {
            cJSON_Delete(text);
            return false;
        }
    }
    return true;
}

static bool write_jobs(const mu_cluster *cluster, cJSON *root)
{
    size_t start = 0;
    const char *name;

    for (size_t i = 0; (name = mu_cluster_job_at(cluster, i)) != NULL; i++) {
        size_t count = mu_cluster_task_count(cluster, name);
        cJSON *job;

        job = is_dense(cluster, start, count) ? cJSON_AddArrayToObject(root, name)
                                              : cJSON_AddObjectToObject(root, name);
        if (job == NULL || !write_job(cluster, start, count, job))
            return false;
        start += count;
    }
    return true;
}

char *mu_cluster_to_json(const mu_cluster *cluster)
{
    cJSON *root = cJSON_CreateObject();
    char *printed = NULL;
    char *text = NULL;

    if (root != NULL && write_jobs(cluster, root))
        printed = cJSON_PrintUnformatted(root);
    /* cJSON may have been given other functions than malloc() and free(). */
    if (printed != NULL)
        text = strdup(printed);
    cJSON_free(printed);
    cJSON_Delete(root);
    return text;
}
