/* Counting: the function that workers run, and the settings. The chief's part is in
 * plugin_chief.c. */
#include "plugin_counter.h"

#include "../progress.h"
#include "../settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int counter_open(mu_node *node, unsigned flags, mu_error *ret_error,
                 mu_variable **ret_variable)
{
    const size_t servers = mu_node_task_count(node, "ps");
    const uint64_t dims[] = {ELEMENTS};
    const mu_variable_spec spec = {
        .name = "counter",
        .dtype = MU_I64,
        .rank = 1,
        .dims = dims,
        .shards = servers < ELEMENTS ? (unsigned)servers : ELEMENTS,
        .flags = flags,
    };

    return mu_variable_open(node, &spec, OPEN_MS, ret_error, ret_variable);
}

int counter_open_table(mu_node *node, unsigned flags, mu_error *ret_error,
                       mu_table **ret_table)
{
    const mu_optimizer descent = mu_optimizer_make(MU_OPTIMIZER_SGD, 1);
    const mu_table_spec spec = {
        .name = "clicks",
        .dim = 1,
        .optimizer = &descent,
        .flags = flags,
    };

    return mu_table_open(node, &spec, OPEN_MS, ret_error, ret_table);
}

/* ---- One closure, on a worker ---- */

/* Workers never create the variable, nor the table: if the servers lost it, it would
 * silently begin at 0. */
static int use_counters(struct counter *counter, mu_node *node, mu_error *ret_error)
{
    int rv = 0;

    (void)pthread_mutex_lock(&counter->lock);
    if (counter->variable == NULL)
        rv = counter_open(node, MU_VARIABLE_EXISTING, ret_error, &counter->variable);
    if (rv == 0 && counter->settings.table != 0 && counter->table == NULL)
        rv = counter_open_table(node, MU_TABLE_EXISTING, ret_error, &counter->table);
    (void)pthread_mutex_unlock(&counter->lock);
    return rv;
}

/* Descent from 0 by a rate of 1: a gradient of -1 adds 1. */
static int push_one(mu_run *run, mu_table *table, int64_t number)
{
    const uint64_t id = (uint64_t)number % IDS;
    const float minus_one = -1;

    return mu_run_table_apply(run, table, &id, &minus_one, 1, NULL);
}

/* A random number below `bound`, different for each run of a closure. */
static uint64_t draw(const mu_run *run, uint64_t bound)
{
    uint64_t z = mu_run_closure_id(run) * UINT64_C(0x9e3779b97f4a7c15) +
                 mu_run_attempt(run) + (uint64_t)getpid();

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % bound;
}

/* Write a line of the trace in one write(), so that lines of several workers do not
 * mix. */
static void note_run(const struct counter *counter, const mu_run *run)
{
    char line[128];
    int size = snprintf(line, sizeof line, "%s %d %u\n", mu_run_closure_name(run),
                        mu_run_worker(run), (unsigned)mu_run_attempt(run));

    if (counter->trace >= 0 && write(counter->trace, line, (size_t)size) != size)
        (void)fprintf(stderr, "counter: the trace: %s\n", strerror(errno));
}

/* Adds 1 to an element that follows from the argument, once this run has returned 0, and
 * only once however often it runs: the closure has MU_CLOSURE_EFFECT_ONCE. */
static int count(mu_run *run, void *user)
{
    struct counter *counter = user;
    int64_t delta[ELEMENTS] = {0};
    int64_t number;
    mu_error error;
    int rv;

    if (mu_value_get_int(mu_run_args(run), &number) != 0 || number < 0)
        return mu_run_fail(run, -MU_EINVALID, "count expects a number from 0 on");
    note_run(counter, run);
    rv = use_counters(counter, mu_run_node(run), &error);
    if (rv != 0)
        return mu_run_fail_with(run, &error);
    nap(draw(run, counter->settings.work_ms + 1));
    delta[number % ELEMENTS] = 1;
    rv = mu_run_add(run, counter->variable, delta, sizeof delta);
    return rv == 0 && counter->table != NULL ? push_one(run, counter->table, number) : rv;
}

/* ---- Loading ---- */

static int read_settings(const mu_node *node, struct settings *ret_settings)
{
    struct settings s = {.closures = 1000, .outstanding = 64, .work_ms = 20};
    const struct setting rows[] = {
        {"closures", &s.closures, NULL, 1, 999999},
        {"outstanding", &s.outstanding, NULL, 1, 100000},
        {"work_ms", &s.work_ms, NULL, 0, 10000},
        {"table", &s.table, NULL, 0, 1},
    };
    int rv = settings_take_or_say(node, "counter", rows, sizeof rows / sizeof rows[0]);

    *ret_settings = s;
    return rv;
}

/* The states of all nodes, which are never freed: a plugin is never unloaded, and
 * functions may still run while their node is being closed. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter *all;

static struct counter *counter_new(const struct settings *settings, int trace)
{
    struct counter *counter = calloc(1, sizeof *counter);

    if (counter == NULL)
        return NULL;
    if (pthread_mutex_init(&counter->lock, NULL) != 0) {
        free(counter);
        return NULL;
    }
    counter->settings = *settings;
    counter->trace = trace;
    (void)pthread_mutex_lock(&all_lock);
    counter->next = all;
    all = counter;
    (void)pthread_mutex_unlock(&all_lock);
    return counter;
}

MU_PLUGIN;

int mu_plugin_open(mu_node *node);

int mu_plugin_open(mu_node *node)
{
    struct settings settings;
    struct counter *counter;
    int trace;
    int rv = read_settings(node, &settings);

    if (rv == 0)
        rv = settings_open_trace(node, "counter", &trace);
    if (rv != 0)
        return rv;
    counter = counter_new(&settings, trace);
    if (counter == NULL)
        return -MU_ENOMEM;
    rv = mu_node_register_function(node, "count", count, counter, 0);
    return rv != 0 ? rv : mu_node_register_program(node, "chief", chief_program, counter);
}
