/* The resolver open_mpi: the variables that Open MPI's mpirun gives each task. */
#include "resolver/source/mpi.h"

#include <muster/cluster.h>

static const struct mu__setting_spec settings_of[] = {
    MU__MPI_SETTINGS("OPEN_MPI"),
    {.name = NULL},
};

static const char rank_variable[] = "OMPI_COMM_WORLD_RANK";
static const char hint[] = ": mpirun sets it for each task";

static int detect(struct mu__notes *notes, const struct mu__settings *settings,
                  mu_error *ret_why)
{
    (void)settings;
    return mu__variable_detect(notes, rank_variable, ret_why);
}

/* Up to Open MPI 4 the variables of ORTE are there; in Open MPI 5 PRRTE is in its
 * place. */
static int read_nodes(struct mu__notes *notes, mu_error *ret_error,
                      struct mu__mpi_task *task)
{
    static const char nodes_variable[] = "OMPI_MCA_orte_num_nodes";
    unsigned nodes = 0;
    int rv;

    if (mu__ask_variable(notes, nodes_variable) == NULL)
        return 0;
    rv = mu__rank_number(notes, nodes_variable, "", 1, MU_CLUSTER_TASKS_MAX, ret_error,
                         &nodes);
    if (rv == 0 && nodes == 1)
        task->one_node = true;
    return rv;
}

static int resolve(struct mu__notes *notes, const struct mu__settings *settings,
                   mu_error *ret_error, mu_resolution *ret_resolution)
{
    struct mu__mpi_task task = {
        .local_is_loose = mu__ask_variable(notes, "PRTE_LAUNCHED") != NULL,
        .host_file = mu__ask_variable(notes, "OMPI_MCA_orte_default_hostfile")};
    int rv = mu__rank_number(notes, "OMPI_COMM_WORLD_SIZE", hint, 1, MU_CLUSTER_TASKS_MAX,
                             ret_error, &task.size);

    if (rv == 0)
        rv = mu__rank_own(notes, rank_variable, hint, task.size, "OMPI_COMM_WORLD_SIZE",
                          ret_error, &task.rank);
    if (rv == 0)
        rv = mu__mpi_local(notes, "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_COMM_WORLD_LOCAL_SIZE", ret_error, &task);
    if (rv == 0)
        rv = read_nodes(notes, ret_error, &task);
    if (rv == 0)
        rv = mu__mpi_resolve(notes, settings, &task, ret_error, ret_resolution);
    return rv;
}

const struct mu__resolver_kind mu__resolver_open_mpi = {
    .name = "open_mpi",
    .summary = "the variables that Open MPI's mpirun gives each task",
    .settings = settings_of,
    .detect = detect,
    .resolve = resolve,
};
