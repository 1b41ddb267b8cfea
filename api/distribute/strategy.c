/* Strategies that are built in, and a strategy's copy for one task. */
#include "api/distribute/internal.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILTERS = 2 };

/* ---- parameter servers ---- */

struct server_copy {
    int is_chief;
    char self[MU_CLUSTER_TASK_BYTES];
    const char *filters[FILTERS];
    size_t filters_count; /* 0: the task does not train */
};

static int configure_server(void *user, const mu_strategy_task *task, mu_error *ret_error,
                            void **ret_copy)
{
    struct server_copy *copy = calloc(1, sizeof *copy);

    (void)user;
    if (copy == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a strategy");
    copy->is_chief = task->is_chief;
    if (task->cluster != NULL && task->type != NULL &&
        (strcmp(task->type, "chief") == 0 || strcmp(task->type, "worker") == 0)) {
        (void)snprintf(copy->self, sizeof copy->self, "/job:%s/task:%d", task->type,
                       task->index);
        copy->filters[0] = copy->self;
        copy->filters[1] = "/job:ps";
        copy->filters_count = FILTERS;
    }
    *ret_copy = copy;
    return 0;
}

static void server_session_config(void *arg, mu_session_config *config)
{
    struct server_copy *copy = arg;

    if (copy->filters_count == 0)
        return;
    config->device_filters = copy->filters;
    config->device_filters_count = copy->filters_count;
}

static int server_should(void *arg)
{
    const struct server_copy *copy = arg;

    return copy->is_chief;
}

const mu_strategy *mu_strategy_parameter_server(void)
{
    static const mu_strategy strategy = {
        .name = "parameter_server",
        .between_graph = 1,
        .configure = configure_server,
        .session_config = server_session_config,
        .should_init = server_should,
        .should_checkpoint = server_should,
        .should_save_summary = server_should,
        .drop = free,
    };

    return &strategy;
}

/* ---- one call for all ---- */

const mu_strategy *mu_strategy_default(void)
{
    static const mu_strategy strategy = {.name = "default"};

    return &strategy;
}

/* ---- copies ---- */

int mu__strategy_copy_make(const mu_distribute_options *options, bool evaluates,
                           const mu_strategy_task *task, mu_error *ret_error,
                           struct mu__strategy_copy *ret_copy)
{
    const mu_strategy *chosen = evaluates ? options->eval_strategy : options->strategy;
    const mu_strategy *strategy = chosen == NULL ? mu_strategy_default() : chosen;
    struct mu__strategy_copy copy = {
        .strategy = strategy,
        .copy = strategy->user,
    };
    mu_session_config config;
    mu_error inner = {0};
    int rv = MU__OPTIONS_READ(mu_session_config, options->config, ret_error, &config);

    if (rv != 0)
        return rv;
    if (strategy->configure != NULL)
        rv = strategy->configure(strategy->user, task, &inner, &copy.copy);
    if (rv != 0)
        return mu_error_set(ret_error, rv < 0 ? rv : -MU_EUNKNOWN,
                            "strategy \"%s\" cannot be configured for %s:%d: %s",
                            strategy->name == NULL ? "" : strategy->name,
                            task->type == NULL ? "no task" : task->type, task->index,
                            inner.message[0] == '\0' ? mu_strerror(rv) : inner.message);
    if (strategy->session_config != NULL)
        strategy->session_config(copy.copy, &config);
    rv = MU__OPTIONS_READ(mu_session_config, &config, ret_error, &copy.config);
    if (rv == 0)
        *ret_copy = copy;
    else
        mu__strategy_copy_drop(&copy);
    return rv;
}

void mu__strategy_copy_drop(struct mu__strategy_copy *copy)
{
    const mu_strategy *strategy = copy->strategy;

    if (strategy != NULL && strategy->configure != NULL && strategy->drop != NULL)
        strategy->drop(copy->copy);
    *copy = (struct mu__strategy_copy){0};
}
