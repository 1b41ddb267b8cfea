/* One program for every mode: the tasks add up the numbers from 1 to N (--set numbers=N),
 * each a part of them, step by step, in a variable on the parameter servers. When one
 * call stands for all tasks, it adds up all numbers. */
#include "../progress.h"
#include "../settings.h"

#include <muster.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_MS = 50 };

MU_PLUGIN;

int mu_plugin_open(mu_node *node);

struct program {
    uint64_t numbers;
    uint64_t steps;
    uint64_t pause_ms;   /* pause of each step */
    uint64_t timeout_ms; /* of each wait */
    const char *fails;   /* a task that fails in the middle; NULL: none */
};

/* A call's part of the work. */
struct part {
    uint64_t id; /* of `count` */
    uint64_t count;
    mu_variable *sum; /* NULL: there are no other parts */
    int64_t own;
};

static const char *name_of(const mu_context *context)
{
    const char *task = mu_context_task(context);

    return task[0] == '\0' ? "one call for all" : task;
}

/* ---- the variable ---- */

static int open_sum(const struct program *p, mu_context *context, mu_error *error,
                    mu_variable **ret_sum)
{
    const uint64_t dims[] = {1};
    const mu_variable_spec spec = {
        .name = "sum",
        .dtype = MU_I64,
        .rank = 1,
        .dims = dims,
        .flags = mu_context_should_init(context) ? 0 : MU_VARIABLE_EXISTING,
    };
    mu_node *node;
    int rv = mu_context_node(context, error, &node);

    return rv != 0
               ? rv
               : mu_variable_open(node, &spec, (int64_t)p->timeout_ms, error, ret_sum);
}

/* Determine the part of this call; a call that stands for all tasks has all numbers. */
static int open_part(const struct program *p, mu_context *context, mu_error *error,
                     struct part *part)
{
    const mu_cluster *cluster = mu_context_cluster(context);
    const char *type = mu_context_task_type(context);
    int id = 0;
    int rv;

    *part = (struct part){.count = 1};
    if (type == NULL)
        return 0;
    rv = mu_cluster_id_in_cluster(cluster, type, mu_context_task_index(context), error,
                                  &id);
    part->id = (uint64_t)id;
    part->count = mu_context_num_workers(context);
    return rv != 0 ? rv : open_sum(p, context, error, &part->sum);
}

/* ---- the worker function ---- */

/* The sum of this part's numbers in one step. */
static int64_t sum_of_step(const struct program *p, const struct part *part,
                           uint64_t step)
{
    int64_t sum = 0;

    for (uint64_t n = step + 1; n <= p->numbers; n += p->steps)
        if (n / p->steps % part->count == part->id)
            sum += (int64_t)n;
    return sum;
}

static int do_step(const struct program *p, mu_context *context, struct part *part,
                   uint64_t step, mu_error *error)
{
    int64_t sum = sum_of_step(p, part, step);
    int rv = 0;

    nap(p->pause_ms);
    if (p->fails != NULL && strcmp(p->fails, mu_context_task(context)) == 0 &&
        step == p->steps / 2)
        return mu_error_set(error, -MU_EABORTED, "%s was told to fail in step %" PRIu64,
                            p->fails, step);
    part->own += sum;
    if (part->sum != NULL)
        rv = mu_variable_add(part->sum, &sum, sizeof sum, (int64_t)p->timeout_ms, error);
    if (rv == 0 && mu_context_has_barrier(context))
        rv = mu_context_wait_for_others(context, (int64_t)p->timeout_ms, error);
    return rv;
}

/* The chief returns the whole sum, the others what they added. */
static int give_result(const struct program *p, mu_context *context, struct part *part,
                       mu_error *error)
{
    int64_t sum = part->own;
    int rv = 0;

    if (part->sum != NULL && mu_context_is_chief(context)) {
        rv = mu_variable_read(part->sum, &sum, sizeof sum, (int64_t)p->timeout_ms, error);
        if (rv != 0)
            return rv;
    }
    (void)printf("%s: %" PRId64 "\n", name_of(context), sum);
    mu_context_return(context, mu_value_int(sum));
    return 0;
}

static int work(mu_context *context, void *user)
{
    const struct program *p = user;
    struct part part;
    mu_error error;
    int rv = open_part(p, context, &error, &part);

    (void)printf("%s begins\n", name_of(context));
    for (uint64_t step = 0; rv == 0 && step < p->steps; step++)
        rv = do_step(p, context, &part, step, &error);
    if (rv == 0)
        rv = give_result(p, context, &part, &error);
    mu_variable_close(part.sum);
    return rv == 0 ? 0 : mu_context_fail_with(context, &error);
}

/* ---- the eval function ---- */

/* Reads the sum until the workers have ended. */
static int eval(mu_context *context, void *user)
{
    const struct program *p = user;
    mu_variable *sum = NULL;
    int64_t last = 0;
    mu_error error;
    int rv;

    if (mu_context_task_type(context) == NULL)
        return 0;
    rv = open_sum(p, context, &error, &sum);
    while (rv == 0 && !mu_context_cancelled(context)) {
        rv = mu_variable_read(sum, &last, sizeof last, (int64_t)p->timeout_ms, &error);
        nap(LOOK_MS);
    }
    mu_variable_close(sum);
    if (rv != 0 && !mu_context_cancelled(context))
        return mu_context_fail_with(context, &error);
    mu_context_return(context, mu_value_int(last));
    return 0;
}

/* ---- loading ---- */

static int read_strategy(const mu_node *node, const mu_strategy **ret_strategy)
{
    const char *name = mu_node_get_setting(node, "strategy");

    *ret_strategy = mu_strategy_parameter_server();
    if (name == NULL || strcmp(name, "parameter_server") == 0)
        return 0;
    *ret_strategy = mu_strategy_default();
    if (strcmp(name, "default") == 0)
        return 0;
    (void)fprintf(stderr,
                  "distribute: setting strategy is \"%.80s\", expected "
                  "parameter_server or default\n",
                  name);
    return -MU_EINVALID;
}

int mu_plugin_open(mu_node *node)
{
    static struct program program = {
        .numbers = 1000,
        .steps = 10,
        .timeout_ms = 60000,
    };
    static const struct setting rows[] = {
        {"numbers", &program.numbers, NULL, 1, 1000000},
        {"steps", &program.steps, NULL, 1, 1000000},
        {"pause_ms", &program.pause_ms, NULL, 0, 1000000},
        {"timeout_ms", &program.timeout_ms, NULL, 1, 1000000},
    };
    mu_distribute_options options;

    mu_distribute_options_init(&options);
    if (settings_take_or_say(node, "distribute", rows, sizeof rows / sizeof rows[0]) !=
            0 ||
        read_strategy(node, &options.strategy) != 0)
        return -MU_EINVALID;
    program.fails = mu_node_get_setting(node, "fails");
    options.end_timeout_ms = (int64_t)program.timeout_ms;
    options.worker = work;
    options.worker_user = &program;
    options.eval = eval;
    options.eval_user = &program;
    options.eval_strategy = options.strategy;
    return mu_node_set_distribute(node, &options);
}
