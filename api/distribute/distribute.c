/* The distribute coordinator: from options to a plan, from the plan to a server and
 * calls, and all of it down again. */
#include "api/compat/compat.h"
#include "api/distribute/internal.h"
#include "api/task_program.h"
#include "node/deadline.h"
#include "node/node.h"
#include "node/options.h"
#include "runtime/message/arguments.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { END_MS = 30000, LINE_BYTES = 768 };

/* The server that this thread keeps for its next run. */
struct retained {
    mu_server *server;
    bool leads;
    bool has_chief;
    unsigned runs; /* of this thread so far, with any server */
};

static _Thread_local struct retained retained;

void mu_distribute_options_init_sized(mu_distribute_options *options, size_t size)
{
    const mu_distribute_options defaults = {
        .mode = MU_MODE_STANDALONE,
        .join_timeout_ms = -1,
        .end_timeout_ms = END_MS,
    };

    mu__options_init(options, size, &defaults, sizeof defaults);
}

/* ---- log ---- */

void mu__distribution_say(struct mu__distribution *run, int level, const char *format,
                          ...)
{
    static const char who[] = "distribute";
    const mu_node_options *o = &run->node_options;
    const mu_node *node = run->options.node;
    mu_log_fn log = node != NULL ? node->log.write : o->log;
    char line[LINE_BYTES];
    va_list args;

    if (level > (node != NULL ? node->log.level : o->log_level))
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (log == NULL)
        (void)fprintf(stderr, "%s: %s\n", who, line);
    else
        log(node != NULL ? node->log.user : o->log_user, level,
            node != NULL ? mu_node_task(node) : "", who, line);
}

static void log_plan_warnings(struct mu__distribution *run)
{
    static const struct {
        unsigned bit;
        const char *words;
    } warnings[] = {
        {MU__PLAN_NO_EVAL,
         "there is no eval function: the worker function stands for it"},
        {MU__PLAN_NO_EVAL_STRATEGY,
         "there is no eval strategy: the evaluation is not distributed"},
        {MU__PLAN_EVAL_LEFT_OUT,
         "there is no eval function: nothing is evaluated in this local run"},
    };

    for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++)
        if ((run->plan.warnings & warnings[i].bit) != 0)
            mu__distribution_say(run, MU_LOG_WARN, "%s", warnings[i].words);
}

static int make_plan(const mu_distribute_options *o, const mu_tf_config *spec,
                     mu_error *error, struct mu__plan *ret_plan)
{
    const mu_strategy *strategy =
        o->strategy == NULL ? mu_strategy_default() : o->strategy;
    const struct mu__plan_request plan_request = {
        .mode = o->mode,
        .cluster = spec->cluster,
        .type = spec->task_type,
        .index = spec->task_index,
        .between_graph = strategy->between_graph != 0,
        .has_eval = o->eval != NULL,
        .has_eval_strategy = o->eval_strategy != NULL,
    };

    return mu__plan_make(&plan_request, error, ret_plan);
}

/* ---- the run's memory ---- */

static void distribution_free(struct mu__distribution *run)
{
    for (size_t i = 0; i < run->plan.runs_count; i++)
        mu__context_done(&run->contexts[i]);
    mu__strategy_copy_drop(&run->own);
    mu__thread_barrier_free(run->barrier);
    mu__plan_done(&run->plan);
    mu_cluster_free(run->spec.cluster);
    free(run->spec_origin.found);
    mu_cluster_free(run->cluster);
    mu_value_free(run->results);
    mu__lock_destroy(&run->lock, &run->moved);
    free(run);
}

void mu__distribution_unhold(struct mu__distribution *run)
{
    if (atomic_fetch_sub(&run->holds, 1) == 1)
        distribution_free(run);
}

/* The barrier of threads, with the names of its participants. */
static int make_barrier(struct mu__distribution *run)
{
    unsigned count = 0;

    if (run->plan.barrier != MU__BARRIER_THREADS)
        return 0;
    for (size_t i = 0; i < run->plan.runs_count; i++)
        if (run->plan.runs[i].meets)
            run->contexts[i].participant = count++;
    run->barrier = mu__thread_barrier_new(count);
    if (run->barrier == NULL)
        return -MU_ENOMEM;
    for (size_t i = 0; i < run->plan.runs_count; i++)
        if (run->plan.runs[i].meets)
            mu__thread_barrier_name(run->barrier, run->contexts[i].participant,
                                    run->contexts[i].name);
    return 0;
}

static int fill_run(struct mu__distribution *run, mu_error *error)
{
    int rv = 0;

    run->results = mu_value_map();
    if (!run->plan.local)
        run->cluster = mu_cluster_split(run->spec.cluster, NULL);
    if (run->results == NULL || (!run->plan.local && run->cluster == NULL))
        return mu_error_set(error, -MU_ENOMEM, "no memory for a run");
    for (size_t i = 0; rv == 0 && i < run->plan.runs_count; i++)
        rv = mu__context_init(run, i, error);
    if (rv == 0 && make_barrier(run) != 0)
        rv = mu_error_set(error, -MU_ENOMEM, "no memory for a barrier");
    return rv;
}

/* Takes the spec and the plan, whatever is returned. */
static int distribution_new(const mu_distribute_options *o, struct mu__spec *spec,
                            struct mu__plan *plan, mu_error *error,
                            struct mu__distribution **ret_run)
{
    struct mu__distribution *run =
        calloc(1, sizeof *run + plan->runs_count * sizeof(struct mu_context));
    int rv;

    if (run == NULL || mu__lock_init(&run->lock, &run->moved) != 0) {
        free(run);
        mu__spec_drop(spec);
        mu__plan_done(plan);
        return mu_error_set(error, -MU_ENOMEM, "no memory for a run");
    }
    atomic_init(&run->holds, 1);
    run->options = *o;
    run->node_options = spec->node_options;
    run->spec = spec->config;
    run->spec_origin = *spec;
    mu__options_name_cluster(&run->node_options, run->spec_origin.cluster_name);
    run->plan = *plan;
    run->number = retained.runs++;
    rv = fill_run(run, error);
    if (rv != 0) {
        mu__spec_leave(&run->spec_origin, true);
        mu__distribution_unhold(run);
        return rv;
    }
    *ret_run = run;
    return 0;
}

/* ---- the server ---- */

/* The session config of this process's server is the strategy's for its task. */
static int copy_own_strategy(struct mu__distribution *run, mu_error *error)
{
    bool evaluates = strcmp(run->spec.task_type, "evaluator") == 0;
    const mu_strategy_task task = {
        .cluster = evaluates ? NULL : run->cluster,
        .type = run->spec.task_type,
        .index = run->spec.task_index,
        .is_chief =
            mu__plan_is_chief(run->cluster, run->spec.task_type, run->spec.task_index),
    };

    return mu__strategy_copy_make(&run->options, evaluates, &task, error, &run->own);
}

static struct mu__server_request server_request(const struct mu__distribution *run)
{
    struct mu__server_request request = {
        .node = run->node_options,
        .config = run->own.config,
        .rpc_layer = run->spec.rpc_layer,
        .environment = run->spec.environment,
        .timeout_ms = -1,
    };

    request.node.cluster = run->spec.cluster;
    request.node.task_type = run->spec.task_type;
    request.node.task_index = run->spec.task_index;
    return request;
}

int mu__distribution_opened(struct mu__distribution *run, mu_node *node,
                            mu_error *ret_error)
{
    const mu_distribute_options *o = &run->options;
    mu_error error = {0};
    int rv = 0;

    if (o->opened != NULL && node != NULL)
        rv = o->opened(node, o->opened_user, &error);
    if (rv >= 0)
        return 0;
    return mu_error_set(ret_error, rv, "%s cannot use its node: %s", mu_node_task(node),
                        error.message[0] != '\0' ? error.message : mu_strerror(rv));
}

static int start_server(struct mu__distribution *run, mu_error *error)
{
    struct mu__server_request request = server_request(run);
    int rv;

    if (retained.server != NULL && !mu__server_matches(retained.server, &request))
        return mu_error_set(error, -MU_EPRECONDITION,
                            "this thread keeps a server of %s; expected the same "
                            "cluster, task, layer, environment and config, or "
                            "mu_distribute_end before",
                            mu_server_task(retained.server));
    if (retained.server != NULL) {
        run->server = retained.server;
    } else {
        rv = run->spec_origin.found == NULL
                 ? mu__server_start(&request, error, &run->server)
                 : mu__server_start_discovered(&request, run->spec_origin.found, error,
                                               &run->server);
        if (rv == 0)
            rv = mu__distribution_opened(run, mu_server_node(run->server), error);
        if (rv != 0)
            return rv;
    }
    if (run->options.keep_server) {
        retained.server = run->server;
        retained.leads = run->plan.leads;
        retained.has_chief = mu_cluster_task_count(run->spec.cluster, "chief") > 0;
    }
    run->node = mu_server_node(run->server);
    return 0;
}

/* The caller's node gets the settings of the session config; its number of threads cannot
 * change any more. */
static int use_node(struct mu__distribution *run, mu_error *error)
{
    const mu_session_config *config = &run->own.config;
    int rv;

    run->node = run->options.node;
    rv = mu__server_settings(run->node, config);
    if (rv != 0)
        return mu_error_set(error, rv, "no memory for a node's settings");
    if (config->inter_op_threads != 0)
        mu__distribution_say(run, MU_LOG_INFO,
                             "the strategy wants %u threads; a node that runs keeps "
                             "what it was opened with",
                             config->inter_op_threads);
    return 0;
}

static int prepare_distribution(struct mu__distribution *run, mu_error *error)
{
    int rv = 0;

    if (run->plan.serves)
        rv = copy_own_strategy(run, error);
    if (rv == 0 && run->options.node != NULL)
        rv = use_node(run, error);
    else if (rv == 0 && run->plan.serves)
        rv = start_server(run, error);
    if (rv != 0 || run->plan.joins)
        return rv;
    if (run->plan.serves && !run->plan.client) {
        rv = mu__tasks_open(run, error);
        run->reports = rv == 0 && run->news != NULL;
    }
    if (rv == 0)
        rv = mu__tasks_watch_node(run, error);
    return rv;
}

/* ---- the end ---- */

static int end_distributed_job(struct mu__distribution *run, const mu_error *why,
                               mu_error *error)
{
    bool has_chief = mu_cluster_task_count(run->spec.cluster, "chief") > 0;

    if (!run->plan.leads)
        return 0;
    mu__tasks_await_joining(run);
    if (run->options.keep_server || (run->options.node != NULL && has_chief))
        return 0;
    return mu__tasks_end(run->node, has_chief, why, run->options.end_timeout_ms, error);
}

/* A call that was left behind may still use its node, which then stays open. */
static int close_nodes(struct mu__distribution *run, size_t left, mu_error *error)
{
    int rv = 0;

    if (left > 0)
        return 0;
    if (run->owns_node)
        rv = mu_node_close(run->node, run->options.end_timeout_ms, error);
    if (run->server != NULL && run->server != retained.server) {
        rv = mu_server_stop(run->server, run->options.end_timeout_ms, error);
        mu_server_free(run->server);
    }
    return rv;
}

/* The first error counts; a later one is logged. */
static int pick_first_error(struct mu__distribution *run, int rv, int later,
                            const mu_error *why, mu_error *ret_error)
{
    if (later == 0 || later == -MU_ECLOSED)
        return rv;
    if (rv == 0) {
        *ret_error = *why;
        return later;
    }
    mu__distribution_say(run, MU_LOG_WARN, "%s", why->message);
    return rv;
}

static int run_plan(struct mu__distribution *run, mu_error *ret_error, size_t *ret_left)
{
    int rv;

    if (run->plan.joins)
        return mu__tasks_join(run, ret_error);
    log_plan_warnings(run);
    rv = mu__distribution_call_all(run, ret_error, ret_left);
    if (run->plan.leads && run->reports)
        rv = mu__tasks_gather(run, ret_error);
    return rv;
}

static int run_and_end(struct mu__distribution *run, mu_error *ret_error)
{
    mu_error why = {0};
    size_t left = 0;
    int rv = prepare_distribution(run, ret_error);

    if (rv == 0) {
        rv = run_plan(run, ret_error, &left);
        if (rv == 0)
            ret_error->code = 0;
        rv = pick_first_error(run, rv, end_distributed_job(run, ret_error, &why), &why,
                              ret_error);
    }
    mu__tasks_close(run);
    return pick_first_error(run, rv, close_nodes(run, left, &why), &why, ret_error);
}

static void hand_over_results(struct mu__distribution *run, mu_value **ret_results)
{
    mu_value *results;

    uv_mutex_lock(&run->lock);
    results = run->results;
    run->results = NULL;
    uv_mutex_unlock(&run->lock);
    if (mu_value_count(results) > 0 && ret_results != NULL)
        *ret_results = results;
    else
        mu_value_free(results);
}

int mu_distribute_run(const mu_distribute_options *options, mu_error *ret_error,
                      mu_value **ret_results)
{
    MU__REQUIRE(ret_error, options);

    struct mu__distribution *run = NULL;
    struct mu__plan plan;
    struct mu__spec spec;
    mu_distribute_options own;
    mu_error error = {0};
    int rv;

    if (ret_results != NULL)
        *ret_results = NULL;
    if (mu_context_current() != NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "already in a context: that of %s",
                            mu_context_current()->name);
    rv = MU__OPTIONS_READ(mu_distribute_options, options, ret_error, &own);
    if (rv != 0)
        return rv;
    if (own.worker == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "there is no worker function: expected one");
    rv = mu__spec_read(&own, retained.server, ret_error, &spec);
    if (rv != 0)
        return rv;
    rv = make_plan(&own, &spec.config, ret_error, &plan);
    if (rv != 0) {
        mu__spec_drop(&spec);
        return rv;
    }
    rv = distribution_new(&own, &spec, &plan, ret_error, &run);
    if (rv != 0)
        return rv;
    rv = run_and_end(run, &error);
    mu__spec_leave(&run->spec_origin, run->node == NULL);
    hand_over_results(run, ret_results);
    mu__distribution_unhold(run);
    if (rv != 0 && ret_error != NULL)
        *ret_error = error;
    return rv;
}

int mu_distribute_end(int64_t timeout_ms, mu_error *ret_error)
{
    const mu_error fine = {0};
    mu_server *server = retained.server;
    int rv = 0;
    int stopped;

    if (server == NULL)
        return 0;
    if (retained.leads)
        rv = mu__tasks_end(mu_server_node(server), retained.has_chief, &fine, timeout_ms,
                           ret_error);
    retained.server = NULL;
    stopped = mu_server_stop(server, timeout_ms, rv == 0 ? ret_error : NULL);
    mu_server_free(server);
    return rv != 0 ? rv : stopped;
}

/* ---- the program of a node: what a plugin has set ---- */

struct plugin_options {
    mu_distribute_options options; /* first: whoever frees them frees all */
    mu_session_config config;
};

int mu_node_set_distribute(mu_node *node, const mu_distribute_options *options)
{
    MU__REQUIRE(NULL, node, options);

    struct plugin_options *copy;
    struct plugin_options own;
    int rv = MU__OPTIONS_READ(mu_distribute_options, options, NULL, &own.options);

    if (rv == 0)
        rv = MU__OPTIONS_READ(mu_session_config, own.options.config, NULL, &own.config);
    if (rv == 0 && own.options.worker == NULL)
        rv = -MU_EINVALID;
    if (rv != 0 || node->program.distribute != NULL)
        return rv != 0 ? rv : -MU_EEXISTS;
    copy = malloc(sizeof *copy);
    if (copy == NULL)
        return -MU_ENOMEM;
    *copy = own;
    copy->options.config = &copy->config;
    copy->options.node_options = NULL;
    node->program.distribute = &copy->options;
    return 0;
}

void mu__node_set_mode(mu_node *node, int mode, bool ignore_environment)
{
    if (node->program.distribute == NULL)
        return;
    node->program.distribute->mode = mode;
    node->program.distribute->ignore_environment = ignore_environment;
}

/* Of all calls, since of their errors only the first is returned. */
static void log_results(mu_node *node, const mu_value *results)
{
    for (size_t i = 0; i < mu_value_count(results); i++) {
        mu_error error;

        mu__result_error(mu_value_at(results, i), &error);
        mu__node_log(node, MU_LOG_INFO, "distribute", "%s ended with %d%s%s",
                     mu_value_key(results, i), error.code, error.code == 0 ? "" : ": ",
                     error.message);
    }
}

int mu__node_run_distributed(mu_node *node, mu_error *ret_error)
{
    mu_distribute_options options = *node->program.distribute;
    mu_value *results = NULL;
    mu_cluster *cluster;
    char type[16] = "";
    int rv;

    (void)sscanf(node->member.task, "/job:%15[^/]/task:%d", type, &options.task_index);
    options.task_type = type;
    cluster = mu__node_cluster(node);
    if (cluster == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a cluster");
    options.cluster = cluster;
    options.node = node;
    options.keep_server = 0;
    rv = mu_distribute_run(&options, ret_error, &results);
    log_results(node, results);
    mu_value_free(results);
    mu_cluster_free(cluster);
    return rv;
}
