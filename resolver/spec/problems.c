#include "resolver/spec/problems.h"

#include "resolver/spec/cluster.h"
#include "runtime/document/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_BYTES = 768, GAPS_SHOWN = 5 };

/* ---- the list ---- */

void mu__problems_done(struct mu__problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        free(problems->rows[i].text);
    free(problems->rows);
    *problems = (struct mu__problems){0};
}

static struct mu__problem *new_row(struct mu__problems *problems)
{
    struct mu__problem *rows;

    if (problems->count >= MU__PROBLEMS_MAX)
        return NULL;
    rows = realloc(problems->rows, (problems->count + 1) * sizeof *rows);
    if (rows == NULL)
        return NULL;
    problems->rows = rows;
    return &rows[problems->count];
}

void mu__problems_add(struct mu__problems *problems, enum mu__problem_grade grade,
                      const char *format, ...)
{
    struct mu__problem *row = new_row(problems);
    char words[WORDS_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    problems->of_grade[grade]++;
    if (row != NULL)
        *row = (struct mu__problem){grade, strdup(words)};
    if (row != NULL && row->text != NULL)
        problems->count++;
    else
        problems->is_short = true;
}

/* ---- reading ---- */

static void add_error(void *user, const mu_error *error)
{
    mu__problems_add(user, MU__PROBLEM_ERROR, "%s", error->message);
}

/* Parse the text as a node does, when no error was found so far: that applies further
 * rules. */
static int parse_as_node(struct mu__problems *problems, const char *text, size_t size,
                         const char *source, bool is_tf_config)
{
    mu_cluster *cluster = NULL;
    mu_tf_config config = {0};
    mu_error error;
    int rv;

    if (problems->of_grade[MU__PROBLEM_ERROR] > 0)
        return 0;
    rv = is_tf_config ? mu_tf_config_parse(text, size, &error, &config)
                      : mu_cluster_parse(text, size, source, &error, &cluster);
    mu_cluster_free(is_tf_config ? config.cluster : cluster);
    if (rv != 0 && rv != -MU_ENOMEM)
        add_error(problems, &error);
    return rv == -MU_ENOMEM ? rv : 0;
}

/* *ret_cluster is NULL when TF_CONFIG has no key "cluster". */
static int read_root(struct mu__problems *problems, const cJSON *root, const char *source,
                     bool is_tf_config, mu_cluster **ret_cluster)
{
    const cJSON *jobs =
        is_tf_config ? cJSON_GetObjectItemCaseSensitive(root, "cluster") : root;

    *ret_cluster = jobs == NULL ? NULL : mu_cluster_new();
    if (jobs != NULL && *ret_cluster == NULL)
        return -MU_ENOMEM;
    return !cJSON_IsObject(jobs)
               ? 0
               : mu__cluster_read_all(*ret_cluster, jobs, source,
                                      is_tf_config ? "cluster" : "", add_error, problems);
}

int mu__problems_read(struct mu__problems *problems, const char *text, size_t size,
                      const char *source, bool is_tf_config, mu_cluster **ret_cluster)
{
    mu_cluster *cluster;
    mu_error error;
    cJSON *root;
    int rv = mu__json_parse(text, size, source, &error, &root);

    if (rv == -MU_ENOMEM)
        return rv;
    if (rv != 0) {
        add_error(problems, &error);
        *ret_cluster = NULL;
        return 0;
    }
    rv = read_root(problems, root, source, is_tf_config, &cluster);
    cJSON_Delete(root);
    if (rv == 0)
        rv = parse_as_node(problems, text, size, source, is_tf_config);
    if (rv != 0) {
        mu_cluster_free(cluster);
        return rv;
    }
    *ret_cluster = cluster;
    return 0;
}

/* ---- rules ---- */

static bool has_task(const mu_cluster *cluster, const char *type, int index)
{
    return mu_cluster_address(cluster, type, index) != NULL;
}

static void check_single_job(struct mu__problems *problems, const mu_cluster *cluster,
                             const char *type)
{
    size_t count = mu_cluster_task_count(cluster, type);

    if (count > 1)
        mu__problems_add(problems, MU__PROBLEM_ERROR,
                         "the job \"%s\" has %zu tasks; expected at most 1", type, count);
    else if (count == 1 && strcmp(type, "chief") == 0 && !has_task(cluster, type, 0))
        mu__problems_add(problems, MU__PROBLEM_ERROR,
                         "the job \"chief\" has no task 0: expected index 0 for the "
                         "chief");
}

/* Warn of the indices that a job lacks below its largest one; the first of them are
 * listed. */
static void check_gaps(struct mu__problems *problems, const mu_cluster *cluster,
                       const char *type)
{
    size_t left = mu_cluster_task_count(cluster, type);
    char words[GAPS_SHOWN * 8 + 8] = "";
    unsigned shown = 0;

    for (int i = 0; left > 0 && i <= MU_CLUSTER_INDEX_MAX && shown <= GAPS_SHOWN; i++) {
        size_t used = strlen(words);

        if (has_task(cluster, type, i)) {
            left--;
            continue;
        }
        if (shown == GAPS_SHOWN)
            (void)snprintf(words + used, sizeof words - used, ", ...");
        else
            (void)snprintf(words + used, sizeof words - used, "%s%d",
                           shown == 0 ? "" : ", ", i);
        shown++;
    }
    if (shown > 0)
        mu__problems_add(problems, MU__PROBLEM_WARNING,
                         "the job \"%s\" has gaps: no index %s", type, words);
}

static void check_leader(struct mu__problems *problems, const mu_cluster *cluster)
{
    size_t workers = mu_cluster_task_count(cluster, "worker");
    size_t ps = mu_cluster_task_count(cluster, "ps");
    bool has_chief = mu_cluster_task_count(cluster, "chief") > 0;

    if (!has_chief && has_task(cluster, "worker", 0))
        mu__problems_add(problems, MU__PROBLEM_NOTE,
                         "there is no chief: /job:worker/task:0 leads, and ends the "
                         "job, and there are no closures");
    else if (!has_chief)
        mu__problems_add(problems, MU__PROBLEM_WARNING,
                         "there is no chief, and no worker 0 in its place: nobody leads, "
                         "and nobody ends the job");
    if (has_chief && workers == 0)
        mu__problems_add(problems, MU__PROBLEM_WARNING,
                         "there is no worker: closures wait until one joins");
    if (ps > 0 && workers == 0)
        mu__problems_add(problems, MU__PROBLEM_WARNING,
                         "there %s %zu parameter server%s and no worker",
                         ps == 1 ? "is" : "are", ps, ps == 1 ? "" : "s");
}

static bool is_loopback_address(const char *address)
{
    const char *colons = strstr(address, "://");
    const char *host = colons == NULL ? address : colons + 3;

    return strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost:", 10) == 0 ||
           strncmp(host, "[::1]", 5) == 0 || strncmp(address, "ipc:", 4) == 0;
}

static bool has_zero_port_address(const char *address)
{
    size_t length = strlen(address);

    return length > 2 && strcmp(address + length - 2, ":0") == 0;
}

static void check_addresses(struct mu__problems *problems, const mu_cluster *cluster)
{
    const char *near = NULL;
    const char *far = NULL;
    const char *type;
    const char *address;
    int index;

    for (size_t i = 0; mu_cluster_task_at(cluster, i, &type, &index, &address) == 0;
         i++) {
        if (has_zero_port_address(address))
            mu__problems_add(problems, MU__PROBLEM_WARNING,
                             "/job:%s/task:%d is at %s: others learn its port only "
                             "from a resolver that tasks announce themselves to",
                             type, index, address);
        if (is_loopback_address(address))
            near = address;
        else
            far = address;
    }
    if (near != NULL && far != NULL)
        mu__problems_add(problems, MU__PROBLEM_WARNING,
                         "%s is this machine only, and %s is not: from another machine "
                         "the first one is somebody else",
                         near, far);
}

static void check_own_task(struct mu__problems *problems, const mu_cluster *cluster,
                           const char *type, int index)
{
    mu_error error;

    if (type == NULL) {
        mu__problems_add(problems, MU__PROBLEM_NOTE,
                         "which task this process is, is not said: only the cluster is "
                         "checked");
        return;
    }
    if (has_task(cluster, type, index))
        return;
    if (strcmp(type, "client") == 0 || strcmp(type, "evaluator") == 0)
        mu__problems_add(problems, MU__PROBLEM_NOTE,
                         "/job:%s/task:%d, this task, is not in the cluster, and "
                         "need not be: nobody dials it",
                         type, index);
    else if (mu__cluster_may_join(cluster, type, index))
        mu__problems_add(problems, MU__PROBLEM_WARNING,
                         "/job:%s/task:%d, this task, is not in the cluster: it "
                         "joins only with --bind",
                         type, index);
    else if (mu_cluster_validate(cluster, type, index, &error) != 0)
        mu__problems_add(problems, MU__PROBLEM_ERROR,
                         "/job:%s/task:%d, this task, does not fit the cluster: %s", type,
                         index, error.message);
}

void mu__problems_check(struct mu__problems *problems, const mu_cluster *cluster,
                        const char *type, int index)
{
    if (mu_cluster_is_empty(cluster)) {
        if (problems->of_grade[MU__PROBLEM_ERROR] == 0)
            mu__problems_add(problems, MU__PROBLEM_ERROR, "the cluster has no task");
        return;
    }
    check_single_job(problems, cluster, "chief");
    check_single_job(problems, cluster, "evaluator");
    check_gaps(problems, cluster, "worker");
    check_gaps(problems, cluster, "ps");
    check_leader(problems, cluster);
    if (has_task(cluster, "evaluator", 0))
        mu__problems_add(problems, MU__PROBLEM_NOTE,
                         "the evaluator is in the cluster: the chief dials it, and waits "
                         "for it at its end");
    check_addresses(problems, cluster);
    check_own_task(problems, cluster, type, index);
}
