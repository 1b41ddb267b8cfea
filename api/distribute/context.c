/* What one call of a program's function sees. */
#include "api/compat/compat.h"
#include "api/distribute/internal.h"
#include "node/node.h"
#include "runtime/message/arguments.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local mu_context *current;

/* ---- life ---- */

static int make_strategy(struct mu_context *context, mu_error *ret_error)
{
    const struct mu__plan_run *plan = context->plan;
    const mu_strategy_task task = {
        .cluster = plan->evaluates ? NULL : context->cluster,
        .type = plan->type,
        .index = plan->type == NULL ? -1 : plan->index,
        .is_chief = mu_context_is_chief(context),
    };

    return mu__strategy_copy_make(&context->run->options, plan->evaluates, &task,
                                  ret_error, &context->strategy);
}

/* The session_master of TF_CONFIG is the target of this process alone, not of threads
 * that stand for other tasks. */
static void set_context_target(struct mu_context *context)
{
    const struct mu__distribution *run = context->run;
    const struct mu__plan_run *plan = context->plan;

    mu__plan_target(context->cluster, run->spec.rpc_layer, plan->type, plan->index,
                    context->master_target, sizeof context->master_target);
    if (run->spec.session_master[0] != '\0' && context->cluster != NULL &&
        !plan->evaluates && (plan->type == NULL || !run->plan.threads))
        (void)snprintf(context->master_target, sizeof context->master_target, "%s",
                       run->spec.session_master);
}

int mu__context_init(struct mu__distribution *run, size_t i, mu_error *ret_error)
{
    struct mu_context *context = &run->contexts[i];

    context->run = run;
    context->plan = &run->plan.runs[i];
    mu__plan_run_name(context->plan, context->name, sizeof context->name);
    if (context->plan->type != NULL)
        mu__plan_run_name(context->plan, context->task, sizeof context->task);
    if (run->cluster != NULL) {
        context->cluster = mu_cluster_copy(run->cluster);
        if (context->cluster == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a context");
    }
    set_context_target(context);
    return make_strategy(context, ret_error);
}

void mu__context_done(struct mu_context *context)
{
    mu__strategy_copy_drop(&context->strategy);
    mu_cluster_free(context->cluster);
    mu_value_free(context->result);
    context->cluster = NULL;
    context->result = NULL;
}

/* The error of a function's code: as the function has set it, if it has for this code. */
static int set_function_error(struct mu_context *context, int rv, mu_error *ret_error)
{
    mu_error *own = &context->error;

    if (rv == 0)
        return 0;
    if (rv > 0)
        rv = -MU_EUNKNOWN;
    if (own->code != rv)
        (void)mu_error_set(own, rv, "the %s function of %s ended with %s (%d)",
                           context->plan->evaluates ? "eval" : "worker", context->name,
                           mu_err_name(rv), rv);
    if (own->task[0] == '\0')
        (void)snprintf(own->task, sizeof own->task, "%s", context->name);
    *ret_error = *own;
    return rv;
}

int mu__context_call(struct mu_context *context, mu_error *ret_error)
{
    const mu_distribute_options *o = &context->run->options;
    bool eval = context->plan->evaluates && o->eval != NULL;
    mu_worker_fn function = eval ? o->eval : o->worker;
    int rv;

    current = context;
    rv = function(context, eval ? o->eval_user : o->worker_user);
    current = NULL;
    mu_session_close(context->session);
    context->session = NULL;
    return set_function_error(context, rv, ret_error);
}

/* ---- the task ---- */

mu_context *mu_context_current(void)
{
    return current;
}

const char *mu_context_task_type(const mu_context *context)
{
    MU__REQUIRE_OR(NULL, context);
    return context->plan->type;
}

int mu_context_task_index(const mu_context *context)
{
    MU__REQUIRE_OR(-1, context);
    return context->plan->type == NULL ? -1 : context->plan->index;
}

const char *mu_context_task(const mu_context *context)
{
    MU__REQUIRE_OR(NULL, context);
    return context->task;
}

const mu_cluster *mu_context_cluster(const mu_context *context)
{
    MU__REQUIRE_OR(NULL, context);
    return context->cluster;
}

size_t mu_context_num_workers(const mu_context *context)
{
    MU__REQUIRE_OR(0, context);
    return mu_cluster_task_count(context->cluster, "chief") +
           mu_cluster_task_count(context->cluster, "worker");
}

int mu_context_is_chief(const mu_context *context)
{
    MU__REQUIRE_OR(0, context);
    return mu__plan_is_chief(context->cluster, context->plan->type, context->plan->index);
}

int mu_context_is_evaluation(const mu_context *context)
{
    MU__REQUIRE_OR(0, context);
    return context->plan->evaluates;
}

int mu_context_distributed_mode(const mu_context *context)
{
    MU__REQUIRE_OR(0, context);
    return context->cluster != NULL && !context->plan->evaluates;
}

const char *mu_context_master_target(const mu_context *context)
{
    MU__REQUIRE_OR(NULL, context);
    return context->master_target;
}

/* ---- the strategy ---- */

static int call_strategy(const mu_context *context, int (*should)(void *copy))
{
    return should == NULL ? mu_context_is_chief(context)
                          : should(context->strategy.copy) != 0;
}

int mu_context_should_init(const mu_context *context)
{
    MU__REQUIRE_OR(0, context);
    return call_strategy(context, context->strategy.strategy->should_init);
}

int mu_context_should_checkpoint(const mu_context *context)
{
    MU__REQUIRE_OR(0, context);
    return call_strategy(context, context->strategy.strategy->should_checkpoint);
}

int mu_context_should_save_summary(const mu_context *context)
{
    MU__REQUIRE_OR(0, context);
    return call_strategy(context, context->strategy.strategy->should_save_summary);
}

void *mu_context_strategy(const mu_context *context)
{
    MU__REQUIRE_OR(NULL, context);
    return context->strategy.copy;
}

const mu_session_config *mu_context_session_config(const mu_context *context)
{
    MU__REQUIRE_OR(NULL, context);
    return &context->strategy.config;
}

/* ---- the other calls and tasks ---- */

int mu_context_has_barrier(const mu_context *context)
{
    MU__REQUIRE_OR(0, context);
    if (!context->plan->meets)
        return 0;
    return context->run->barrier != NULL || context->run->reports;
}

int mu_context_wait_for_others(mu_context *context, int64_t timeout_ms,
                               mu_error *ret_error)
{
    MU__REQUIRE(ret_error, context);

    struct mu__distribution *run = context->run;

    if (!mu_context_has_barrier(context)) {
        if (run->options.barrier_optional)
            return 0;
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s has nobody to wait for: there is no barrier",
                            context->name);
    }
    if (run->barrier != NULL)
        return mu__thread_barrier_wait(run->barrier, context->participant, timeout_ms,
                                       ret_error);
    return mu__tasks_meet(run, timeout_ms, ret_error);
}

int mu_context_abort_waits(mu_context *context, const mu_error *error)
{
    MU__REQUIRE(NULL, context, error);

    mu_error why = *error;

    if (why.code >= 0)
        why.code = -MU_EUNKNOWN;
    if (why.task[0] == '\0')
        (void)snprintf(why.task, sizeof why.task, "%s", context->task);
    if (context->run->reports)
        mu__tasks_end_waits(context->run, &why);
    mu__distribution_failed(context->run, &why);
    return why.code;
}

int mu_context_cancelled(const mu_context *context)
{
    MU__REQUIRE_OR(0, context);
    return atomic_load(&context->run->over) ||
           (context->plan->evaluates && atomic_load(&context->run->trained));
}

/* A client's node, for all threads of the run. */
static int open_client(struct mu__distribution *run, mu_error *ret_error)
{
    mu_node_options options = run->node_options;
    int rv;

    options.cluster = run->spec.cluster;
    options.task_type = "client";
    options.task_index = run->options.client_index;
    rv = mu_node_open(&options, ret_error, &run->node);
    if (rv != 0)
        return rv;
    rv = mu__distribution_opened(run, run->node, ret_error);
    if (rv == 0) {
        run->owns_node = true;
        return 0;
    }
    (void)mu_node_close(run->node, run->options.end_timeout_ms, NULL);
    run->node = NULL;
    return rv;
}

int mu_context_node(mu_context *context, mu_error *ret_error, mu_node **ret_node)
{
    MU__REQUIRE(ret_error, context, ret_node);

    struct mu__distribution *run = context->run;
    int rv = 0;

    uv_mutex_lock(&run->lock);
    if (run->node == NULL) {
        if (run->plan.client && run->server == NULL)
            rv = open_client(run, ret_error);
        else
            rv = mu_error_set(ret_error, -MU_EPRECONDITION, "%s has no node: %s",
                              context->name,
                              run->plan.local ? "it runs locally"
                                              : "its environment starts no servers");
    }
    if (rv == 0)
        *ret_node = run->node;
    uv_mutex_unlock(&run->lock);
    return rv;
}

/* Once another task has failed, its error is this one's. */
static int open_as_worker(mu_context *context, mu_node *node,
                          const mu_session_options *options, mu_error *ret_error)
{
    mu_error error = {0};
    int rv = mu__session_open_worker(node, options, &context->run->over, &error,
                                     &context->session);

    if (rv == 0)
        return 0;
    if (atomic_load(&context->run->over) && context->run->news != NULL)
        (void)mu__tasks_failure(context->run, &error);
    if (ret_error != NULL)
        *ret_error = error;
    return error.code != 0 ? error.code : rv;
}

int mu_context_session(mu_context *context, const mu_session_options *options,
                       mu_error *ret_error, mu_session **ret_session)
{
    MU__REQUIRE(ret_error, context, ret_session);

    mu_session_options chosen;
    mu_node *node;
    int rv = 0;

    if (context->session == NULL) {
        rv = mu_context_node(context, ret_error, &node);
        if (rv != 0)
            return rv;
        rv = MU__OPTIONS_READ(mu_session_options, options, ret_error, &chosen);
        if (rv != 0)
            return rv;
        chosen.config = &context->strategy.config;
        rv = mu_context_should_init(context)
                 ? mu_session_open_chief(node, &chosen, ret_error, &context->session)
                 : open_as_worker(context, node, &chosen, ret_error);
    }
    if (rv == 0)
        *ret_session = context->session;
    return rv;
}

/* ---- the result ---- */

void mu_context_return(mu_context *context, mu_value *value)
{
    if (context == NULL) {
        mu_value_free(value);
        return;
    }
    mu_value_free(context->result);
    context->result = value;
}

int mu_context_fail(mu_context *context, int code, const char *format, ...)
{
    MU__REQUIRE(NULL, context);

    char words[sizeof context->error.message];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format == NULL ? "" : format, args);
    va_end(args);
    return mu_error_set(&context->error, code, "%s", words);
}

int mu_context_fail_with(mu_context *context, const mu_error *error)
{
    MU__REQUIRE(NULL, context, error);
    context->error = *error;
    if (error->code >= 0)
        context->error.code = -MU_EUNKNOWN;
    return context->error.code;
}
