#include "resolver/spec/distribute_plan.h"

#include "resolver/spec/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TASK_TEXT_BYTES = 24 /* room for "worker:999999," */
};

static const char tcp[] = "tcp://";

static bool is_planned_type(const char *type, const char *name)
{
    return type != NULL && strcmp(type, name) == 0;
}

static bool is_training_type(const char *type)
{
    return is_planned_type(type, "chief") || is_planned_type(type, "worker");
}

/* ---- calls ---- */

static int add_run(struct mu__plan *plan, const char *type, int index, bool evaluates,
                   mu_error *error)
{
    struct mu__plan_run *runs;

    if (plan->runs_count == MU__PLAN_RUNS_MAX)
        return mu_error_set(error, -MU_EEXHAUSTED,
                            "the chief and the workers are more than %d tasks; expected "
                            "no more in threads of one process",
                            MU__PLAN_RUNS_MAX);
    runs = realloc(plan->runs, (plan->runs_count + 1) * sizeof *runs);
    if (runs == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    plan->runs = runs;
    runs[plan->runs_count++] = (struct mu__plan_run){
        .type = type,
        .index = index,
        .evaluates = evaluates,
        .meets = !evaluates && plan->barrier != MU__BARRIER_NONE,
    };
    return 0;
}

/* A call for each task of one type, which is static. */
static int add_job_runs(struct mu__plan *plan, const mu_cluster *cluster,
                        const char *type, bool evaluates, mu_error *error)
{
    int index;
    int rv = 0;

    for (size_t i = 0; rv == 0 && (index = mu__cluster_job_index(cluster, type, i)) >= 0;
         i++)
        rv = add_run(plan, type, index, evaluates, error);
    return rv;
}

static unsigned eval_warnings(const struct mu__plan_request *request)
{
    return (request->has_eval ? 0U : MU__PLAN_NO_EVAL) |
           (request->has_eval_strategy ? 0U : MU__PLAN_NO_EVAL_STRATEGY);
}

/* ---- modes ---- */

static int plan_local(const struct mu__plan_request *request, struct mu__plan *plan,
                      mu_error *error)
{
    int rv = add_run(plan, NULL, -1, false, error);

    plan->local = true;
    if (!request->has_eval) {
        plan->warnings = MU__PLAN_EVAL_LEFT_OUT;
        return rv;
    }
    plan->warnings = eval_warnings(request);
    return rv != 0 ? rv : add_run(plan, NULL, -1, true, error);
}

static int plan_server(struct mu__plan *plan)
{
    plan->serves = true;
    plan->joins = true;
    return 0;
}

/* The calls of all tasks, in threads of this process. */
static int plan_client(const struct mu__plan_request *request, struct mu__plan *plan,
                       mu_error *error)
{
    char leader[MU_CLUSTER_TASK_BYTES];
    int rv = mu_cluster_collective_leader(request->cluster, NULL, error, leader);

    if (rv != 0)
        return rv;
    plan->client = true;
    plan->threads = true;
    if (mu_cluster_task_count(request->cluster, "evaluator") > 0)
        plan->warnings = eval_warnings(request);
    if (!request->between_graph) {
        rv = add_run(plan, NULL, -1, false, error);
    } else {
        plan->barrier = MU__BARRIER_THREADS;
        rv = add_job_runs(plan, request->cluster, "chief", false, error);
        if (rv == 0)
            rv = add_job_runs(plan, request->cluster, "worker", false, error);
    }
    return rv != 0 ? rv : add_job_runs(plan, request->cluster, "evaluator", true, error);
}

/* Modes in which this process has to know which task it is. */
static int check_planned_task(const struct mu__plan_request *request, mu_error *error)
{
    int rv;

    if (request->type == NULL || request->type[0] == '\0')
        return mu_error_set(error, -MU_EINVALID,
                            "there is no task: expected its type and its index, from "
                            "TF_CONFIG or the options");
    rv = mu_cluster_validate(request->cluster, request->type, request->index, error);
    if (rv == 0 && is_planned_type(request->type, "client"))
        rv = mu_error_set(error, -MU_EINVALID,
                          "unexpected task type \"client\": expected chief, evaluator, "
                          "ps or worker, or the standalone mode");
    return rv;
}

static bool is_leader(const struct mu__plan_request *request)
{
    char leader[MU_CLUSTER_TASK_BYTES] = "";
    char own[MU_CLUSTER_TASK_BYTES];

    (void)mu_cluster_collective_leader(request->cluster, NULL, NULL, leader);
    mu__task_name(own, sizeof own, request->type, request->index);
    return strcmp(own, leader) == 0;
}

static int plan_standalone(const struct mu__plan_request *request, struct mu__plan *plan,
                           mu_error *error)
{
    int rv;

    if (request->type == NULL || request->type[0] == '\0' ||
        is_planned_type(request->type, "client"))
        return plan_client(request, plan, error);
    rv = mu_cluster_validate(request->cluster, request->type, request->index, error);
    return rv != 0 ? rv : plan_server(plan);
}

static int plan_independent(const struct mu__plan_request *request, struct mu__plan *plan,
                            mu_error *error)
{
    const char *type = request->type;
    int rv = check_planned_task(request, error);

    if (rv != 0)
        return rv;
    plan->serves = true;
    plan->leads = is_leader(request);
    if (is_planned_type(type, "evaluator")) {
        plan->warnings = eval_warnings(request);
        return add_run(plan, type, request->index, true, error);
    }
    if (!is_training_type(type) || (!request->between_graph && !plan->leads))
        return plan_server(plan);
    if (!request->between_graph)
        return add_run(plan, NULL, -1, false, error);
    plan->barrier = MU__BARRIER_SERVICE;
    return add_run(plan, type, request->index, false, error);
}

/* An evaluator that the cluster does not list is not known to the client: it works for
 * itself. */
static int plan_client_worker(const struct mu__plan_request *request,
                              struct mu__plan *plan, mu_error *error)
{
    int rv = check_planned_task(request, error);

    if (rv != 0)
        return rv;
    if (is_planned_type(request->type, "evaluator") &&
        mu_cluster_task_count(request->cluster, "evaluator") == 0)
        return plan_independent(request, plan, error);
    if (!is_leader(request))
        return plan_server(plan);
    plan->serves = true;
    plan->leads = true;
    return plan_client(request, plan, error);
}

int mu__plan_make(const struct mu__plan_request *request, mu_error *ret_error,
                  struct mu__plan *ret_plan)
{
    static int (*const modes[])(const struct mu__plan_request *, struct mu__plan *,
                                mu_error *) = {
        [MU_MODE_STANDALONE] = plan_standalone,
        [MU_MODE_INDEPENDENT] = plan_independent,
        [MU_MODE_LOCAL] = plan_local,
        [MU_MODE_CLIENT_WORKER] = plan_client_worker,
    };
    struct mu__plan plan = {0};
    int mode = request->mode;
    int rv;

    if (mode < 0 || (size_t)mode >= sizeof modes / sizeof modes[0])
        return mu_error_set(ret_error, -MU_EINVALID,
                            "unexpected mode %d; expected one of enum mu_mode, 0 to %d",
                            mode, MU_MODE_CLIENT_WORKER);
    if (mu_cluster_is_empty(request->cluster))
        mode = MU_MODE_LOCAL;
    rv = mode == MU_MODE_LOCAL
             ? 0
             : mu_cluster_validate(request->cluster, NULL, 0, ret_error);
    if (rv == 0)
        rv = modes[mode](request, &plan, ret_error);
    if (rv != 0) {
        mu__plan_done(&plan);
        return rv;
    }
    *ret_plan = plan;
    return 0;
}

void mu__plan_done(struct mu__plan *plan)
{
    free(plan->runs);
    *plan = (struct mu__plan){0};
}

/* ---- Arguments of a call ---- */

void mu__plan_run_name(const struct mu__plan_run *run, char *out, size_t size)
{
    if (run->type != NULL)
        mu__task_name(out, size, run->type, run->index);
    else
        (void)snprintf(out, size, "%s", run->evaluates ? "eval_fn" : "worker_fn");
}

bool mu__plan_is_chief(const mu_cluster *cluster, const char *type, int index)
{
    return type == NULL || mu_cluster_is_empty(cluster) ||
           mu_cluster_is_chief(cluster, type, index) != 0;
}

void mu__plan_target(const mu_cluster *cluster, const char *layer, const char *type,
                     int index, char *out, size_t size)
{
    char leader[MU_CLUSTER_TASK_BYTES] = "";
    const char *url;

    out[0] = '\0';
    if (mu_cluster_is_empty(cluster) || is_planned_type(type, "evaluator"))
        return;
    if (type == NULL) {
        if (mu_cluster_collective_leader(cluster, NULL, NULL, leader) != 0)
            return;
        type = strncmp(leader, "/job:chief/", strlen("/job:chief/")) == 0 ? "chief"
                                                                          : "worker";
        index = (int)strtol(strrchr(leader, ':') + 1, NULL, 10);
    }
    url = mu_cluster_url(cluster, type, index);
    if (url == NULL)
        return;
    if (strncmp(url, tcp, strlen(tcp)) == 0)
        url += strlen(tcp);
    (void)snprintf(out, size, "%s%s%s", layer, layer[0] == '\0' ? "" : "://", url);
}

/* The tasks for which `is_member` is true, as "chief:0,worker:2". */
static char *list_planned_tasks(
    const mu_cluster *cluster,
    bool (*is_member)(const void *arg, const char *type, int index), const void *arg)
{
    size_t size = mu_cluster_task_count(cluster, NULL) * TASK_TEXT_BYTES + 1;
    char *text = calloc(1, size);
    const char *type;
    const char *address;
    size_t used = 0;
    int index;

    for (size_t i = 0;
         text != NULL && mu_cluster_task_at(cluster, i, &type, &index, &address) == 0;
         i++) {
        if (!is_member(arg, type, index))
            continue;
        (void)snprintf(text + used, size - used, "%s%s:%d", used > 0 ? "," : "", type,
                       index);
        used += strlen(text + used);
    }
    return text;
}

static bool needs_training(const void *arg, const char *type, int index)
{
    (void)arg;
    (void)index;
    return is_training_type(type);
}

char *mu__plan_tasks(const mu_cluster *cluster)
{
    return list_planned_tasks(cluster, needs_training, NULL);
}

struct leader {
    const struct mu__plan *plan;
    const char *type;
    int index;
};

/* Whether the leader must tell a task that the job is done: a task that makes calls
 * itself ends without it. */
static bool needs_joining(const void *arg, const char *type, int index)
{
    const struct leader *leader = arg;

    if (is_planned_type(type, "client") ||
        (is_planned_type(type, leader->type) && index == leader->index))
        return false;
    if (leader->plan->client)
        return true;
    if (is_planned_type(type, "evaluator"))
        return false;
    return !is_training_type(type) || leader->plan->barrier != MU__BARRIER_SERVICE;
}

char *mu__plan_joining(const struct mu__plan *plan, const mu_cluster *cluster,
                       const char *type, int index)
{
    const struct leader leader = {plan, type, index};

    return list_planned_tasks(cluster, needs_joining, &leader);
}
