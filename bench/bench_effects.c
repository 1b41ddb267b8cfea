/* What effects that happen once cost: closures that write nothing, and closures that each
 * add 1 to a counter on a parameter server, plain and with MU_CLOSURE_EFFECT_ONCE. One
 * supervisor, two worker processes, one server process, over tcp.
 *
 * Plain and once take turns, so that both are measured in the same minutes. */
#include "bench/cluster.h"

enum { WORKERS = 2, ROUNDS = 7 };

static const mu_variable_spec counter_spec = {.name = "counter", .dtype = MU_I64};

static int no_op(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    return 0;
}

static int add_one(mu_run *run, void *user)
{
    static const int64_t one = 1;

    return mu_run_add(run, user, &one, sizeof one);
}

static void check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die("effects", error->message);
}

static mu_variable *open_counter(mu_node *node)
{
    mu_variable *counter;
    mu_error error;

    check(mu_variable_open(node, &counter_spec, 10000, &error, &counter), &error);
    return counter;
}

static int play_task(char **argv)
{
    mu_node_options options;
    mu_variable *counter;
    mu_node *node;

    mu_node_options_init(&options);
    cluster_tune_malloc();
    node = cluster_open(argv[4], argv[2], atoi(argv[3]), &options);
    if (strcmp(argv[2], "ps") == 0)
        return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
    counter = open_counter(node);
    if (mu_node_register_function(node, "none", no_op, NULL, MU_FUNCTION_INLINE) != 0 ||
        mu_node_register_function(node, "add", add_one, counter, MU_FUNCTION_INLINE) != 0)
        cluster_die("worker", "cannot register");
    return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
}

/* Picoseconds for each of `count` closures. */
static uint64_t run_many(mu_coordinator *coordinator, const char *function,
                         unsigned flags, uint64_t count)
{
    mu_closure_options options;
    uint64_t start_ns = bench_now_ns();
    mu_error error;

    mu_closure_options_init(&options);
    options.flags = flags;
    for (uint64_t i = 0; i < count; i++)
        check(mu_coordinator_schedule_with(coordinator, function, NULL, &options, -1,
                                           &error, NULL),
              &error);
    check(mu_coordinator_join(coordinator, 60000, &error), &error);
    return (bench_now_ns() - start_ns) * 1000 / count;
}

/* Returns how many closures were run. */
static uint64_t compare(mu_coordinator *coordinator, const char *function,
                        const char *words, uint64_t count)
{
    uint64_t plain[ROUNDS];
    uint64_t once[ROUNDS];
    uint64_t rounds = bench_size(1, ROUNDS);
    char metric[96];
    struct bench_line line = {.bench = "effects", .metric = metric, .unit = "closures/s"};

    for (uint64_t i = 0; i < rounds; i++) {
        plain[i] = run_many(coordinator, function, 0, count);
        once[i] = run_many(coordinator, function, MU_CLOSURE_EFFECT_ONCE, count);
    }
    (void)snprintf(metric, sizeof metric, "%s, plain", words);
    line.value = 1e12 / (double)bench_median(plain, rounds);
    line.limit = 0.0;
    bench_report(&line);
    line.target = 0.7 * line.value;
    line.limit = line.value;
    (void)snprintf(metric, sizeof metric, "%s, effect once", words);
    line.value = 1e12 / (double)bench_median(once, rounds);
    bench_report(&line);
    return 2 * rounds * count;
}

/* The work was done, all of it and once. */
static void check_counter(mu_variable *counter, uint64_t expected)
{
    int64_t number = 0;
    mu_error error;

    check(mu_variable_read(counter, &number, sizeof number, 10000, &error), &error);
    if (number != (int64_t)expected)
        cluster_die("effects", "the counter has another number than was added");
}

int main(int argc, char **argv)
{
    uint64_t count = bench_size(1000, 300000);
    struct cluster cluster;
    mu_node_options options;
    mu_coordinator *coordinator;
    mu_variable *counter;
    mu_node *node;
    mu_error error;

    if (cluster_is_task(argc, argv))
        return play_task(argv);
    cluster_make(&cluster, WORKERS, 1);
    cluster_start(&cluster, "ps", 0);
    for (int i = 0; i < WORKERS; i++)
        cluster_start(&cluster, "worker", i);
    cluster_tune_malloc();
    mu_node_options_init(&options);
    options.window = 1024;
    node = cluster_open(cluster.json, "chief", 0, &options);
    check(mu_coordinator_open(node, 5000, &error, &coordinator), &error);
    counter = open_counter(node);
    (void)run_many(coordinator, "none", 0, count / 10);
    (void)compare(coordinator, "none", "inline without writes", count);
    check_counter(counter, compare(coordinator, "add", "inline, each adds 1 to a counter",
                                   count / 2));
    mu_variable_close(counter);
    mu_coordinator_close(coordinator);
    check(mu_node_close(node, 1000, &error), &error);
    cluster_stop(&cluster);
    return 0;
}
