/* The resolver open_mpi: the variables that Open MPI's mpirun gives each task. */
#include "resolver/source/mpi.h"

#include <muster/cluster.h>

static const struct mu__setting_spec settings_of[] = {
    MU__MPI_SETTINGS("OPEN_MPI"),
    {.name = NULL},
};

static const char rank_variable[] = "OMPI_COMM_WORLD_RANK";
static const char hint[] = ": mpirun sets it for each task";

static int detect_open_mpi(const struct mu__pass *pass, mu_error *ret_why)
{
    return mu__variable_detect(pass->requests, rank_variable, ret_why);
}

/* Whether all tasks are on one node. Only ORTE, up to Open MPI 4, has the variable;
 * PRRTE of Open MPI 5 does not. */
static int read_nodes(struct mu__requests *requests, mu_error *ret_error,
                      struct mu__mpi_task *task)
{
    static const char nodes_variable[] = "OMPI_MCA_orte_num_nodes";
    unsigned nodes = 0;
    int rv;

    if (mu__request_variable(requests, nodes_variable) == NULL)
        return 0;
    rv = mu__rank_number(requests, nodes_variable, "", 1, MU_CLUSTER_TASKS_MAX, ret_error,
                         &nodes);
    if (rv == 0 && nodes == 1)
        task->one_node = true;
    return rv;
}

static int resolve_open_mpi(const struct mu__pass *pass, mu_error *ret_error,
                            mu_resolution *ret_resolution)
{
    struct mu__mpi_task task = {
        .local_is_loose = mu__request_variable(pass->requests, "PRTE_LAUNCHED") != NULL,
        .host_file =
            mu__request_variable(pass->requests, "OMPI_MCA_orte_default_hostfile")};
    int rv = mu__rank_number(pass->requests, "OMPI_COMM_WORLD_SIZE", hint, 1,
                             MU_CLUSTER_TASKS_MAX, ret_error, &task.size);

    if (rv == 0)
        rv = mu__rank_own(pass->requests, rank_variable, hint, task.size,
                          "OMPI_COMM_WORLD_SIZE", ret_error, &task.rank);
    if (rv == 0)
        rv = mu__mpi_local(pass->requests, "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_COMM_WORLD_LOCAL_SIZE", ret_error, &task);
    if (rv == 0)
        rv = read_nodes(pass->requests, ret_error, &task);
    if (rv == 0)
        rv = mu__mpi_resolve(pass, &task, ret_error, ret_resolution);
    return rv;
}

const struct mu__resolver_kind mu__resolver_open_mpi = {
    .name = "open_mpi",
    .summary = "the variables that Open MPI's mpirun gives each task",
    .settings = settings_of,
    .detect = detect_open_mpi,
    .resolve = resolve_open_mpi,
};
