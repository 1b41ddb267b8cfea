/* The resolver pmix: the environment variables of any launcher that speaks PMIx or PMI
 * (Hydra of MPICH and Intel MPI). */
#include "resolver/source/mpi.h"

#include <muster/cluster.h>

static const struct mu__setting_spec settings_of[] = {
    MU__MPI_SETTINGS("PMIX"),
    MU__SETTING_WITHIN(MU__MPI_TASKS, "tasks", "MUSTER_PMIX_TASKS", NULL, 1,
                       MU_CLUSTER_TASKS_MAX,
                       "how many tasks there are, where the launcher does not say it"),
    {.name = NULL},
};

/* The first one that is set; NULL. */
static const char *first_set(struct mu__requests *requests, const char *const *variables)
{
    while (*variables != NULL && mu__request_variable(requests, *variables) == NULL)
        variables++;
    return *variables;
}

/* Whether PRRTE is the launcher. Its tasks may be in a Slurm step of its daemons, one
 * for each node, so that step's size is not theirs. */
static bool is_prrte(struct mu__requests *requests)
{
    return mu__request_variable(requests, "PRTE_LAUNCHED") != NULL;
}

static const char *const ranks[] = {"PMIX_RANK", "PMI_RANK", NULL};
static const char *const sizes[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", NULL};
static const char *const steps[] = {"SLURM_STEP_NUM_TASKS", NULL};
static const char *const local_ranks[] = {"MPI_LOCALRANKID", "PMI_LOCAL_RANK",
                                          "OMPI_COMM_WORLD_LOCAL_RANK", NULL};
static const char *const local_sizes[] = {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE",
                                          "OMPI_COMM_WORLD_LOCAL_SIZE", NULL};

static int detect(const struct mu__pass *pass, mu_error *ret_why)
{
    if (first_set(pass->requests, ranks) != NULL)
        return 1;
    (void)mu_error_set(ret_why, -MU_ENOTFOUND, "neither PMIX_RANK nor PMI_RANK is set");
    return 0;
}

static int read_size(const struct mu__pass *pass, mu_error *ret_error, unsigned *ret_size,
                     const char **ret_source)
{
    const char *variable = first_set(pass->requests, sizes);
    long set = 0;
    int rv;

    if (variable == NULL && !is_prrte(pass->requests))
        variable = first_set(pass->requests, steps);
    rv = mu__setting_number(pass, MU__MPI_TASKS, ret_error, &set);

    if (rv != 0)
        return rv;
    *ret_source = set > 0 ? "the setting tasks" : variable;
    *ret_size = (unsigned)set;
    if (set > 0)
        return 0;
    if (variable == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "how many tasks there are is not known: PMI_SIZE is not set, "
                            "and PMIx has no variable for it; set tasks");
    return mu__rank_number(pass->requests, variable, "", 1, MU_CLUSTER_TASKS_MAX,
                           ret_error, ret_size);
}

/* The hosts of Hydra's daemons, one for each node: within a Slurm job they are a step
 * of their own, whose variables the tasks inherit. NULL: not known. */
static const char *find_daemons(struct mu__requests *requests)
{
    if (mu__request_variable(requests, "MPI_LOCALRANKID") == NULL)
        return NULL;
    return mu__request_variable(requests, "SLURM_STEP_NODELIST");
}

static int resolve(const struct mu__pass *pass, mu_error *ret_error,
                   mu_resolution *ret_resolution)
{
    const char *rank = first_set(pass->requests, ranks);
    struct mu__mpi_task task = {.local_is_loose = is_prrte(pass->requests),
                                .daemons = find_daemons(pass->requests)};
    const char *source;
    int rv = read_size(pass, ret_error, &task.size, &source);

    if (rv == 0)
        rv = mu__rank_own(pass->requests, rank == NULL ? ranks[0] : rank,
                          ": a launcher that speaks PMIx sets it", task.size, source,
                          ret_error, &task.rank);
    if (rv == 0)
        rv = mu__mpi_local(pass->requests, first_set(pass->requests, local_ranks),
                           first_set(pass->requests, local_sizes), ret_error, &task);
    if (rv == 0)
        rv = mu__mpi_resolve(pass, &task, ret_error, ret_resolution);
    return rv;
}

const struct mu__resolver_kind mu__resolver_pmix = {
    .name = "pmix",
    .summary = "the rank that a launcher with PMIx or PMI gives each task",
    .settings = settings_of,
    .detect = detect,
    .resolve = resolve,
};
