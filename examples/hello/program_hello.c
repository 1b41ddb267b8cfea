/* A whole cluster in one process: a worker, and a chief that has squares computed. */
#include <muster.h>
#include <stdio.h>

static int square(mu_run *run, void *user)
{
    int64_t x = 0;

    (void)user;
    if (mu_value_get_int(mu_run_args(run), &x) != 0)
        return mu_run_fail(run, -MU_EINVALID, "square expects a whole number");
    mu_run_return(run, mu_value_int(x * x));
    return 0;
}

/* Add a task to the cluster, on a free port, and open its node. */
static int play(mu_cluster *cluster, const char *type, mu_error *error, mu_node **node)
{
    mu_node_options options;

    mu_node_options_init(&options);
    options.cluster = cluster;
    options.task_type = type;
    options.log_level = MU_LOG_ERROR;
    return mu_cluster_add(cluster, type, 0, "127.0.0.1:0", error) != 0 ||
           mu_node_open(&options, error, node) != 0;
}

static int squares(mu_node *chief, mu_error *error)
{
    mu_coordinator *coordinator;
    int64_t number = 0;

    if (mu_coordinator_open(chief, 5000, error, &coordinator) != 0)
        return 1;
    for (int i = 0; i < 10; i++) {
        mu_value *x = mu_value_int(i), *result;
        mu_remote_value *square;

        if (mu_coordinator_schedule(coordinator, "square", x, -1, error, &square) != 0 ||
            mu_remote_value_fetch(square, 5000, error, &result) != 0)
            return 1;
        (void)mu_value_get_int(result, &number);
        printf("%d squared is %lld\n", i, (long long)number);
        mu_value_free(x);
        mu_value_free(result);
        mu_remote_value_free(square);
    }
    mu_coordinator_close(coordinator);
    return 0;
}

int main(void)
{
    mu_cluster *first = mu_cluster_new(), *whole = mu_cluster_new();
    mu_node *worker, *chief;
    mu_error error;

    if (play(first, "worker", &error, &worker) != 0 ||
        mu_node_register_function(worker, "square", square, NULL, 0) != 0 ||
        mu_node_serve(worker) != 0 ||
        mu_cluster_add(whole, "worker", 0, mu_node_address(worker), &error) != 0 ||
        play(whole, "chief", &error, &chief) != 0 || squares(chief, &error) != 0) {
        fprintf(stderr, "hello: %s\n", error.message);
        return 1;
    }
    (void)mu_node_close(chief, 5000, &error);
    (void)mu_node_close(worker, 5000, &error);
    mu_cluster_free(first);
    mu_cluster_free(whole);
    return 0;
}
