/* A whole cluster in one process: two workers, and a chief that has squares computed. */
#include <muster.h>
#include <stdio.h>
#include <stdlib.h>

static int square(mu_run *run, void *user)
{
    int64_t x;

    (void)user;
    if (mu_value_get_int(mu_run_args(run), &x) != 0)
        return mu_run_fail(run, -MU_EINVALID, "square expects a whole number");
    mu_run_return(run, mu_value_int(x * x));
    return 0;
}

static void check(int rv, const mu_error *error)
{
    if (rv == 0)
        return;
    (void)fprintf(stderr, "hello: %s\n", error->message);
    exit(EXIT_FAILURE);
}

/* Add the task to the cluster and start its node, on any free port. */
static mu_node *start(mu_cluster *cluster, const char *type, int index)
{
    mu_node_options options;
    mu_error error;
    mu_node *node;

    check(mu_cluster_add(cluster, type, index, "127.0.0.1:0", &error), &error);
    mu_node_options_init(&options);
    options.cluster = cluster;
    options.task_type = type;
    options.task_index = index;
    options.log_level = MU_LOG_ERROR;
    check(mu_node_open(&options, &error, &node), &error);
    return node;
}

int main(void)
{
    mu_cluster *workers = mu_cluster_new(), *cluster = mu_cluster_new();
    mu_coordinator *coordinator;
    mu_remote_value *squares[10];
    mu_node *nodes[3];
    mu_error error;

    for (int i = 0; i < 2; i++) {
        nodes[i] = start(workers, "worker", i);
        (void)mu_node_register(nodes[i], "square", square, NULL, 0);
        check(mu_cluster_add(cluster, "worker", i, mu_node_address(nodes[i]), &error),
              &error);
    }
    nodes[2] = start(cluster, "chief", 0);
    check(mu_coordinator_open(nodes[2], 5000, &error, &coordinator), &error);

    for (int i = 0; i < 10; i++) {
        mu_value *x = mu_value_int(i);

        check(mu_coordinator_schedule(coordinator, "square", x, 5000, &error,
                                      &squares[i]), &error);
        mu_value_free(x);
    }
    check(mu_coordinator_join(coordinator, 5000, &error), &error);

    for (int i = 0; i < 10; i++) {
        int64_t number = 0;
        mu_value *result;

        check(mu_remote_value_fetch(squares[i], 5000, &error, &result), &error);
        (void)mu_value_get_int(result, &number);
        (void)printf("%d squared is %lld\n", i, (long long)number);
        mu_value_free(result);
        mu_remote_value_free(squares[i]);
    }

    mu_coordinator_close(coordinator);
    for (int i = 2; i >= 0; i--)
        check(mu_node_close(nodes[i], 5000, &error), &error);
    mu_cluster_free(workers);
    mu_cluster_free(cluster);
    return 0;
}
