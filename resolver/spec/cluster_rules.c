/* Rules over a cluster spec that every task applies by itself: who leads, the numbers
 * of workers, and the spec as a whole. */
#include "resolver/spec/cluster.h"

#include "resolver/spec/address.h"
#include "runtime/message/arguments.h"

#include <muster/compat/cluster_rules.h>

#include <string.h>

/* ---- Leaders ---- */

static bool has_job(const mu_cluster *cluster, const char *type)
{
    return mu_cluster_task_count(cluster, type) > 0;
}

/* The first of `types` (NULL ends them) that has a task. */
static int find_leader(const mu_cluster *cluster, const char *const *types,
                       mu_error *ret_error, char *ret_task)
{
    int rv = mu_cluster_validate(cluster, NULL, 0, ret_error);

    if (rv != 0)
        return rv;
    if (mu_cluster_is_empty(cluster)) {
        ret_task[0] = '\0';
        return 0;
    }
    for (; *types != NULL; types++)
        if (has_job(cluster, *types)) {
            mu__task_name(ret_task, MU_CLUSTER_TASK_BYTES, *types,
                          mu__cluster_job_index(cluster, *types, 0));
            return 0;
        }
    return mu_error_set(ret_error, -MU_EINVALID,
                        "nobody leads this cluster: expected a chief or a worker");
}

int mu_cluster_collective_leader(const mu_cluster *cluster, const char *type,
                                 mu_error *ret_error, char *ret_task)
{
    MU__REQUIRE(ret_error, ret_task);

    static const char *const types[] = {"chief", "worker", NULL};
    int rv;

    if (type != NULL) {
        rv = mu__task_type_check(type, ret_error);
        if (rv != 0)
            return rv;
        if (strcmp(type, "evaluator") == 0) {
            ret_task[0] = '\0';
            return 0;
        }
    }
    return find_leader(cluster, types, ret_error, ret_task);
}

int mu_cluster_coordination_leader(const mu_cluster *cluster, mu_error *ret_error,
                                   char *ret_task)
{
    MU__REQUIRE(ret_error, ret_task);

    static const char *const types[] = {"ps", "chief", "worker", NULL};

    return find_leader(cluster, types, ret_error, ret_task);
}

int mu_cluster_service_host(const mu_cluster *cluster, mu_error *ret_error,
                            char *ret_task)
{
    MU__REQUIRE(ret_error, ret_task);

    static const char *const types[] = {"chief", "ps", "worker", NULL};

    return find_leader(cluster, types, ret_error, ret_task);
}

/* ---- Numbers of workers ---- */

static int check_type_given(const char *type, mu_error *ret_error)
{
    if (type != NULL && type[0] != '\0')
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "there is no task type; expected chief, client, evaluator, ps, "
                        "worker or one of the program's own");
}

/* A type that works: a chief, a worker or an evaluator. */
static int check_working(const mu_cluster *cluster, const char *type, mu_error *ret_error)
{
    int rv = check_type_given(type, ret_error);

    if (rv == 0)
        rv = mu_cluster_validate(cluster, NULL, 0, ret_error);
    if (rv == 0)
        rv = mu__task_type_check(type, ret_error);
    if (rv != 0)
        return rv;
    if (strcmp(type, "chief") == 0 || strcmp(type, "worker") == 0 ||
        strcmp(type, "evaluator") == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "a task of type \"%s\" has no number among those that work; "
                        "expected chief, worker or evaluator",
                        type);
}

int mu_cluster_worker_count(const mu_cluster *cluster, const char *type,
                            mu_error *ret_error, size_t *ret_count)
{
    MU__REQUIRE(ret_error, type, ret_count);

    size_t evaluators = mu_cluster_task_count(cluster, "evaluator");
    bool is_evaluator;
    int rv = check_working(cluster, type, ret_error);

    if (rv != 0)
        return rv;
    is_evaluator = strcmp(type, "evaluator") == 0;
    if (!is_evaluator && mu_cluster_task_count(cluster, type) == 0)
        return mu__cluster_check_task(cluster, type, 0, ret_error);
    if (is_evaluator)
        *ret_count = evaluators > 0 ? evaluators : 1;
    else
        *ret_count = mu_cluster_task_count(cluster, "chief") +
                     mu_cluster_task_count(cluster, "worker");
    return 0;
}

int mu_cluster_id_in_cluster(const mu_cluster *cluster, const char *type, int index,
                             mu_error *ret_error, int *ret_id)
{
    MU__REQUIRE(ret_error, type, ret_id);

    int rv = check_working(cluster, type, ret_error);

    if (rv == 0)
        rv = mu_cluster_validate(cluster, type, index, ret_error);
    if (rv != 0)
        return rv;
    *ret_id = strcmp(type, "worker") == 0
                  ? index + (int)mu_cluster_task_count(cluster, "chief")
                  : index;
    return 0;
}

int mu_cluster_job_count(const mu_cluster *cluster, const char *type, mu_error *ret_error,
                         size_t *ret_count)
{
    MU__REQUIRE(ret_error, type, ret_count);

    int rv = check_type_given(type, ret_error);

    if (rv == 0)
        *ret_count = mu_cluster_task_count(cluster, type);
    return rv;
}

int mu_cluster_check_chief(const mu_cluster *cluster, const char *type, int index,
                           mu_error *ret_error, int *ret_chief)
{
    MU__REQUIRE(ret_error, type, ret_chief);

    int rv = check_type_given(type, ret_error);

    if (rv == 0)
        rv = mu_cluster_validate(cluster, type, index, ret_error);
    if (rv == 0)
        *ret_chief = mu_cluster_is_chief(cluster, type, index);
    return rv;
}

/* ---- The spec as a whole ---- */

int mu_cluster_is_empty(const mu_cluster *cluster)
{
    return mu_cluster_task_count(cluster, NULL) == 0;
}

/* Both are sorted, so one walk over both is enough. */
int mu_cluster_equal(const mu_cluster *a, const mu_cluster *b)
{
    const char *a_type;
    const char *b_type;
    const char *address;
    int a_index;
    int b_index;

    if (mu_cluster_task_count(a, NULL) != mu_cluster_task_count(b, NULL))
        return 0;
    for (size_t i = 0; mu_cluster_task_at(a, i, &a_type, &a_index, &address) == 0; i++) {
        (void)mu_cluster_task_at(b, i, &b_type, &b_index, &address);
        if (strcmp(a_type, b_type) != 0 || a_index != b_index ||
            !mu__urls_are_same(mu_cluster_url(a, a_type, a_index),
                               mu_cluster_url(b, b_type, b_index)))
            return 0;
    }
    return 1;
}

const char *mu_cluster_job_at(const mu_cluster *cluster, size_t i)
{
    const char *type;
    const char *address;
    int index;

    for (size_t at = 0; mu_cluster_task_at(cluster, at, &type, &index, &address) == 0;
         at += mu_cluster_task_count(cluster, type)) {
        if (i == 0)
            return type;
        i--;
    }
    return NULL;
}

int mu_cluster_job_end(const mu_cluster *cluster, const char *type)
{
    MU__REQUIRE_OR(0, type);

    size_t count = mu_cluster_task_count(cluster, type);

    return count == 0 ? 0 : mu__cluster_job_index(cluster, type, count - 1) + 1;
}

mu_cluster *mu_cluster_split(const mu_cluster *cluster, const char *type)
{
    bool alone = type != NULL && strcmp(type, "evaluator") == 0;
    mu_cluster *part = mu_cluster_new();
    const char *type_at;
    const char *address;
    int index;

    if (part == NULL)
        return NULL;
    for (size_t i = 0; mu_cluster_task_at(cluster, i, &type_at, &index, &address) == 0;
         i++) {
        if ((strcmp(type_at, "evaluator") == 0) != alone)
            continue;
        if (mu_cluster_add(part, type_at, index, address, NULL) != 0) {
            mu_cluster_free(part);
            return NULL;
        }
    }
    return part;
}
