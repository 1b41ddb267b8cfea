/* A sum over a dataset, to which every shard contributes exactly once per epoch, although
 * workers may die; and other options of closures. A parameter server, two workers and a
 * chief, in one process.
 *
 *     once [JOURNAL] */
#include <muster.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHARDS = 8, EPOCHS = 3, ROWS = 100 };

/* The per-worker value: opened once on each worker, not in each run. */
struct local {
    mu_variable *sum;
    double rows[SHARDS][ROWS];
};

static void drop_local(void *object)
{
    struct local *local = object;

    mu_variable_close(local->sum);
    free(local);
}

/* Makes the per-worker value; the object that it returns stays on its worker. */
static int open_local(mu_run *run, void *user)
{
    const mu_variable_spec spec = {.name = "sum", .dtype = MU_F64};
    struct local *local = calloc(1, sizeof *local);
    mu_error error;
    int rv;

    (void)user;
    if (local == NULL)
        return mu_run_fail(run, -MU_ENOMEM, "no memory for the rows");
    rv = mu_variable_open(mu_run_node(run), &spec, 5000, &error, &local->sum);
    if (rv != 0) {
        free(local);
        return mu_run_fail_with(run, &error);
    }
    for (int i = 0; i < SHARDS * ROWS; i++)
        local->rows[i / ROWS][i % ROWS] = i;
    mu_run_return_object(run, local, drop_local);
    return 0;
}

/* Visit one shard. What it adds is sent when it has returned 0, and is applied once. */
static int visit(mu_run *run, void *user)
{
    const mu_value *args = mu_run_args(run);
    struct local *local = mu_run_object(run, mu_value_find(args, "args"));
    int64_t shard = 0;
    double sum = 0;

    (void)user;
    if (local == NULL || mu_value_get_int(mu_value_find(args, "shard"), &shard) != 0)
        return mu_run_fail(run, -MU_EINVALID, "visit expects a shard and local rows");
    for (int i = 0; i < ROWS; i++)
        sum += local->rows[shard][i];
    return mu_run_add(run, local->sum, &sum, sizeof sum);
}

/* Add two numbers, each of which may come from a remote value. */
static int add(mu_run *run, void *user)
{
    int64_t a = 0, b = 0;

    (void)user;
    if (mu_value_get_int(mu_value_at(mu_run_args(run), 0), &a) != 0 ||
        mu_value_get_int(mu_value_at(mu_run_args(run), 1), &b) != 0)
        return mu_run_fail(run, -MU_EINVALID, "add expects two whole numbers");
    mu_run_return(run, mu_value_int(a + b));
    return 0;
}

static int sum_up(mu_coordinator *coordinator, mu_error *error)
{
    mu_closure_options options;
    mu_dataset_options dataset_options;
    mu_per_worker *local;
    mu_value *args;
    mu_dataset *dataset;
    int rv;

    mu_closure_options_init(&options);
    options.flags = MU_CLOSURE_EFFECT_ONCE;
    options.run_timeout_ms = 60000; /* then it counts as stuck and runs elsewhere */
    mu_dataset_options_init(&dataset_options);
    dataset_options.shards = SHARDS;
    dataset_options.epochs = EPOCHS;
    dataset_options.seed = 1;
    rv = mu_per_worker_open(coordinator, "open_local", NULL, 5000, error, &local);
    if (rv != 0)
        return rv;
    args = mu_value_per_worker(local);
    rv = mu_dataset_open(coordinator, &dataset_options, error, &dataset);
    if (rv == 0) {
        while (rv == 0)
            rv = mu_dataset_schedule(dataset, "visit", args, &options, 30000, error);
        if (rv == -MU_ERANGE) /* all shards of all epochs */
            rv = mu_coordinator_join(coordinator, 30000, error);
        mu_dataset_close(dataset);
    }
    mu_value_free(args);
    mu_per_worker_close(local);
    return rv;
}

/* (1 + 2) + 3: the second closure runs when the result of the first is ready. */
static int chain(mu_coordinator *coordinator, mu_error *error, int64_t *ret_number)
{
    mu_value *args = mu_value_list(), *more = mu_value_list(), *result = NULL;
    mu_remote_value *three = NULL, *six = NULL;
    mu_closure_options options;
    int rv;

    mu_closure_options_init(&options);
    options.name = "one and two"; /* for `muster explain`, and the journal */
    options.priority = MU_PRIORITY_HIGHEST;
    mu_value_append(args, mu_value_int(1));
    mu_value_append(args, mu_value_int(2));
    rv = mu_coordinator_schedule_with(coordinator, "add", args, &options, -1, error,
                                      &three);
    if (rv == 0) {
        mu_value_append(more, mu_value_remote(three));
        mu_value_append(more, mu_value_int(3));
        rv = mu_coordinator_schedule(coordinator, "add", more, -1, error, &six);
    }
    if (rv == 0)
        rv = mu_remote_value_fetch(six, 30000, error, &result);
    if (rv == 0)
        (void)mu_value_get_int(result, ret_number);
    mu_value_free(args);
    mu_value_free(more);
    mu_value_free(result);
    mu_remote_value_free(three);
    mu_remote_value_free(six);
    return rv;
}

static int read_sum(mu_node *chief, mu_error *error, double *ret_sum)
{
    const mu_variable_spec spec = {.name = "sum", .dtype = MU_F64};
    mu_variable *variable;
    int rv = mu_variable_open(chief, &spec, 5000, error, &variable);

    if (rv != 0)
        return rv;
    rv = mu_variable_read(variable, ret_sum, sizeof *ret_sum, 5000, error);
    mu_variable_close(variable);
    return rv;
}

static int work(mu_node *chief, mu_error *error)
{
    mu_coordinator *coordinator;
    int64_t number = 0;
    double sum = 0;
    int rv = mu_coordinator_open(chief, 5000, error, &coordinator);

    if (rv != 0)
        return rv;
    rv = sum_up(coordinator, error);
    if (rv == 0)
        rv = chain(coordinator, error, &number);
    if (rv == 0)
        rv = read_sum(chief, error, &sum);
    if (rv == 0)
        printf("the sum is %.0f, expected %d; 1 + 2 + 3 is %lld\n", sum,
               EPOCHS * SHARDS * ROWS * (SHARDS * ROWS - 1) / 2, (long long)number);
    mu_coordinator_close(coordinator);
    return rv;
}

/* ---- a cluster in one process ---- */

/* Open the node of one more task, on a free port, and add it to the cluster. */
static int play(mu_cluster *whole, mu_node_options *options, mu_error *error,
                mu_node **node)
{
    mu_cluster *own = mu_cluster_copy(whole);
    int rv = mu_cluster_add(own, options->task_type, options->task_index, "127.0.0.1:0",
                            error);

    options->cluster = own;
    if (rv == 0)
        rv = mu_node_open(options, error, node);
    if (rv == 0)
        rv = mu_cluster_add(whole, options->task_type, options->task_index,
                            mu_node_address(*node), error);
    mu_cluster_free(own);
    return rv;
}

static int serve(mu_node *node)
{
    int rv = mu_node_register_function(node, "open_local", open_local, NULL, 0);

    if (rv == 0)
        rv = mu_node_register_function(node, "visit", visit, NULL, 0);
    if (rv == 0)
        rv = mu_node_register_function(node, "add", add, NULL, 0);
    return rv == 0 ? mu_node_serve(node) : rv;
}

/* A server, two workers, and last the chief, whose cluster spec so has all of them. */
static int play_all(const char *journal, mu_error *error, mu_node *nodes[4])
{
    static const char *const types[] = {"ps", "worker", "worker", "chief"};
    static const int indices[] = {0, 0, 1, 0};
    mu_cluster *whole = mu_cluster_new();
    int rv = 0;

    for (int i = 0; rv == 0 && i < 4; i++) {
        mu_node_options options;

        mu_node_options_init(&options);
        options.task_type = types[i];
        options.task_index = indices[i];
        options.log_level = MU_LOG_ERROR;
        if (i == 3)
            options.journal = journal; /* named closures survive a restart of the
                                          chief */
        rv = play(whole, &options, error, &nodes[i]);
        if (rv == 0 && types[i][0] == 'w')
            rv = serve(nodes[i]);
    }
    mu_cluster_free(whole);
    return rv;
}

int main(int count, char **arguments)
{
    mu_node *nodes[4] = {NULL, NULL, NULL, NULL};
    mu_error error = {0};
    int rv = play_all(count > 1 ? arguments[1] : NULL, &error, nodes);

    if (rv == 0)
        rv = work(nodes[3], &error);
    if (rv != 0)
        fprintf(stderr, "once: %s: %s\n", mu_strerror(rv), error.message);
    for (int i = 3; i >= 0; i--)
        (void)mu_node_close(nodes[i], 5000, NULL);
    return rv == 0 ? 0 : 1;
}
