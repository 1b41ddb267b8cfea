/* Functions that return and functions that hang, for workers, and the settings. The
 * chief's part is in plugin_chief.c. */
#include "plugin_mixed.h"

#include "../progress.h"
#include "../settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SLOW_MIN_MS = 100,
    SLOW_MAX_MS = 500,
    LOOK_MS = 5 /* interval of checks whether the run was cancelled */
};

int mu_plugin_open(mu_node *node);

int mixed_open(mu_node *node, unsigned flags, mu_error *ret_error,
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

/* ---- Helpers of the functions ---- */

/* Workers never create the variable: if the servers lost it, it would begin at 0. */
static int use_variable(struct mixed *mixed, mu_node *node, mu_error *ret_error,
                        mu_variable **ret_variable)
{
    int rv = 0;

    (void)pthread_mutex_lock(&mixed->lock);
    if (mixed->variable == NULL)
        rv = mixed_open(node, MU_VARIABLE_EXISTING, ret_error, &mixed->variable);
    *ret_variable = mixed->variable;
    (void)pthread_mutex_unlock(&mixed->lock);
    return rv;
}

/* The arguments are a list: the start that scheduled the closure, and the element to add
 * 1 to. The element is -1 when the start is another one: a chief with the journal of a
 * killed job runs the closures that were outstanding then, but the present servers do not
 * have their counts. */
static int read_args(const struct mixed *mixed, mu_run *run, int64_t *ret_element)
{
    const mu_value *args = mu_run_args(run);
    int64_t start;

    if (mu_value_get_int(mu_value_at(args, 0), &start) != 0 ||
        mu_value_get_int(mu_value_at(args, 1), ret_element) != 0 || *ret_element < 0 ||
        *ret_element >= ELEMENTS)
        return mu_run_fail(run, -MU_EINVALID, "expected a start and an element, 0 to %d",
                           ELEMENTS - 1);
    if (start != (int64_t)mixed->settings.start)
        *ret_element = -1;
    return 0;
}

/* Add 1 when this run has returned 0, once however often the closure runs. */
static int add_one(struct mixed *mixed, mu_run *run, int64_t element)
{
    int64_t delta[ELEMENTS] = {0};
    mu_variable *variable;
    mu_error error;
    int rv = use_variable(mixed, mu_run_node(run), &error, &variable);

    if (rv != 0)
        return mu_run_fail_with(run, &error);
    delta[element] = 1;
    return mu_run_add(run, variable, delta, sizeof delta);
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

static int wait_for_cancel(mu_run *run)
{
    while (!mu_run_cancelled(run))
        nap(LOOK_MS);
    return mu_run_fail(run, -MU_ECANCELLED, "%s was told to stop",
                       mu_run_closure_name(run));
}

/* ---- The functions ---- */

static int quick(mu_run *run, void *user)
{
    struct mixed *mixed = user;
    int64_t element;
    int rv = read_args(mixed, run, &element);

    return rv != 0 || element < 0 ? rv : add_one(mixed, run, element);
}

static int slow(mu_run *run, void *user)
{
    struct mixed *mixed = user;
    int64_t element;
    int rv = read_args(mixed, run, &element);

    if (rv != 0 || element < 0)
        return rv;
    nap(SLOW_MIN_MS + draw(run, SLOW_MAX_MS - SLOW_MIN_MS + 1));
    return add_one(mixed, run, element);
}

static int hang(mu_run *run, void *user)
{
    int64_t element;
    int rv = read_args(user, run, &element);

    return rv != 0 || element < 0 ? rv : wait_for_cancel(run);
}

static int stumble(mu_run *run, void *user)
{
    struct mixed *mixed = user;
    int64_t element;
    int rv = read_args(mixed, run, &element);

    if (rv != 0 || element < 0)
        return rv;
    return mu_run_attempt(run) == 1 ? wait_for_cancel(run) : add_one(mixed, run, element);
}

/* Write to the trace which worker is to be killed: each line is one write(), so that
 * lines of several workers do not mix. */
static void note_frozen(const struct mixed *mixed, const mu_run *run)
{
    char line[128];
    int size = snprintf(line, sizeof line, "%s %d %ld\n", mu_run_closure_name(run),
                        mu_run_worker(run), (long)getpid());

    if (mixed->trace >= 0 && write(mixed->trace, line, (size_t)size) != size)
        (void)fprintf(stderr, "mixed: the trace: %s\n", strerror(errno));
}

static int freeze(mu_run *run, void *user)
{
    struct mixed *mixed = user;
    int64_t element;
    int rv = read_args(mixed, run, &element);

    if (rv != 0 || element < 0)
        return rv;
    if (mu_run_attempt(run) > 1)
        return add_one(mixed, run, element);
    note_frozen(mixed, run);
    for (;;)
        (void)pause();
}

static int fail(mu_run *run, void *user)
{
    (void)user;
    return mu_run_fail(run, -MU_EINVALID, "told to fail");
}

/* ---- Loading ---- */

static int read_settings(const mu_node *node, struct settings *ret_settings)
{
    struct settings s = {.start = 1, .quick = 1000, .slow = 10, .stumble = 2, .hang = 1};
    const struct setting rows[] = {
        {"start", &s.start, NULL, 0, 999999},
        {"quick", &s.quick, NULL, 0, 999999},
        {"slow", &s.slow, NULL, 0, 999999},
        {"stumble", &s.stumble, NULL, 0, 999999},
        {"freeze", &s.freeze, NULL, 0, 999999},
        {"hang", &s.hang, NULL, 0, 999999},
        {"outstanding", &s.outstanding, NULL, 0, 999999},
        {"fails", &s.fails, NULL, 0, 999999},
    };
    int rv = settings_take_or_say(node, "mixed", rows, sizeof rows / sizeof rows[0]);

    *ret_settings = s;
    return rv;
}

/* The states of all nodes, which are never freed: a plugin is never unloaded, and
 * functions may still run while their node is being closed. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mixed *all;

static struct mixed *mixed_new(const struct settings *settings, int trace)
{
    struct mixed *mixed = calloc(1, sizeof *mixed);

    if (mixed == NULL)
        return NULL;
    if (pthread_mutex_init(&mixed->lock, NULL) != 0) {
        free(mixed);
        return NULL;
    }
    mixed->settings = *settings;
    mixed->trace = trace;
    (void)pthread_mutex_lock(&all_lock);
    mixed->next = all;
    all = mixed;
    (void)pthread_mutex_unlock(&all_lock);
    return mixed;
}

static int register_functions(mu_node *node, struct mixed *mixed)
{
    const struct {
        const char *name;
        mu_function_fn function;
    } functions[] = {
        {"quick", quick},   {"slow", slow}, {"stumble", stumble},
        {"freeze", freeze}, {"hang", hang}, {"fail", fail},
    };
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < sizeof functions / sizeof functions[0]; i++)
        rv = mu_node_register_function(node, functions[i].name, functions[i].function,
                                       mixed, 0);
    return rv;
}

MU_PLUGIN;

int mu_plugin_open(mu_node *node)
{
    struct settings settings;
    struct mixed *mixed;
    int trace;
    int rv = read_settings(node, &settings);

    if (rv == 0)
        rv = settings_open_trace(node, "mixed", &trace);
    if (rv != 0)
        return rv;
    mixed = mixed_new(&settings, trace);
    if (mixed == NULL)
        return -MU_ENOMEM;
    rv = register_functions(node, mixed);
    return rv != 0 ? rv : mu_node_register_program(node, "chief", chief_program, mixed);
}
