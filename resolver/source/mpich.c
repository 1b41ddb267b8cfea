/* The resolver mpich: the variables that mpirun of MPICH and of Intel MPI (their launcher
 * is Hydra) gives each task. */
#include "resolver/source/mpi.h"

#include <muster/cluster.h>

static const struct mu__setting_spec settings_of[] = {
    MU__MPI_SETTINGS("MPICH"),
    {.name = NULL},
};

static const char rank_variable[] = "PMI_RANK";
static const char size_variable[] = "PMI_SIZE";
static const char hint[] = ": mpirun sets it for each task";

static int detect_mpich(const struct mu__pass *pass, mu_error *ret_why)
{
    return mu__variable_detect(pass->requests, rank_variable, ret_why);
}

/* The hosts of Hydra's daemons, one for each node: within a Slurm job they are a step
 * of their own, whose variables the tasks inherit. NULL: not known. */
static const char *find_daemons(struct mu__requests *requests)
{
    if (mu__request_variable(requests, "MPI_LOCALRANKID") == NULL)
        return NULL;
    return mu__request_variable(requests, "SLURM_STEP_NODELIST");
}

static int resolve_mpich(const struct mu__pass *pass, mu_error *ret_error,
                         mu_resolution *ret_resolution)
{
    struct mu__mpi_task task = {.daemons = find_daemons(pass->requests)};
    int rv = mu__rank_number(pass->requests, size_variable, hint, 1, MU_CLUSTER_TASKS_MAX,
                             ret_error, &task.size);

    if (rv == 0)
        rv = mu__rank_own(pass->requests, rank_variable, hint, task.size, size_variable,
                          ret_error, &task.rank);
    if (rv == 0)
        rv = mu__mpi_local(pass->requests, "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
                           ret_error, &task);
    if (rv == 0)
        rv = mu__mpi_resolve(pass, &task, ret_error, ret_resolution);
    return rv;
}

const struct mu__resolver_kind mu__resolver_mpich = {
    .name = "mpich",
    .summary = "the variables that mpirun of MPICH or Intel MPI gives each task",
    .settings = settings_of,
    .detect = detect_mpich,
    .resolve = resolve_mpich,
};
