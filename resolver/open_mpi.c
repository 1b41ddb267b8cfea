/* The resolver open_mpi: the variables that Open MPI's mpirun gives each task. */
#include "resolver/mpi.h"

#include "resolver/text.h"

#include <muster/cluster.h>

#include <stdio.h>
#include <string.h>

static const struct mu__setting_spec settings_of[] = {
    MU__MPI_SETTINGS("OPEN_MPI"),
    {.name = NULL},
};

static const char rank_variable[] = "OMPI_COMM_WORLD_RANK";
static const char uri_variable[] = "OMPI_MCA_orte_hnp_uri";
static const char hint[] = ": mpirun sets it for each task";

static int detect(struct mu__notes *notes, const struct mu__settings *settings,
                  mu_error *ret_why)
{
    (void)settings;
    return mu__variable_detect(notes, rank_variable, ret_why);
}

/* ---- The launcher's address ----
 *
 * "2110717952.0;tcp://10.0.0.1,10.1.0.1:54593;tcp6://[fd00::2]:47871": the first address
 * of the first scheme. */
static int read_uri(const char *uri, mu_error *ret_error, char *host, size_t size)
{
    const char *at = strstr(uri, ";tcp://");
    char shown[MU__QUOTE_BYTES];
    size_t length = 0;

    if (at != NULL) {
        at += strlen(";tcp://");
        length = strcspn(at, ",:;");
    } else if ((at = strstr(uri, ";tcp6://[")) != NULL) {
        at += strlen(";tcp6://[");
        length = strcspn(at, ",];");
    }
    if (length > 0 && length < size) {
        (void)snprintf(host, size, "%.*s", (int)length, at);
        return 0;
    }
    mu__quote(shown, sizeof shown, uri, strlen(uri));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: expected JOB.0;tcp://ADDRESS:PORT, got %s", uri_variable,
                        shown);
}

/* That rank 0 is on the launcher's host is the usual case, and rank 0 itself knows. */
static int check_rank_0(struct mu__notes *notes, const struct mu__mpi_task *task,
                        const char *uri, mu_error *ret_error)
{
    const char *daemon = mu__ask_variable(notes, "OMPI_MCA_orte_local_daemon_uri");

    if (task->rank != 0 || daemon == NULL || strcmp(daemon, uri) == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "rank 0 does not run on the host of mpirun (%s), so the others "
                        "would not find it; set hosts, hostfile or coordinator_address",
                        uri_variable);
}

static int find_launcher(struct mu__notes *notes, const struct mu__settings *settings,
                         mu_error *ret_error, struct mu__mpi_task *task, char *host,
                         size_t size)
{
    const char *uri = mu__ask_variable(notes, uri_variable);
    const char *space = mu__ask_variable(notes, "PMIX_NAMESPACE");
    int rv;

    task->launcher = "";
    if (uri == NULL) {
        task->job = space == NULL ? 0 : mu__mpi_job(space);
        return 0;
    }
    task->job = mu__mpi_job(uri) / 4096;
    task->source = uri_variable;
    if (task->one_node || task->host_file != NULL ||
        mu__setting_given(notes, settings, MU__MPI_HOSTS) ||
        mu__setting_given(notes, settings, MU__MPI_HOST_FILE) ||
        mu__setting_given(notes, settings, MU__MPI_COORDINATOR_ADDRESS))
        return 0;
    rv = check_rank_0(notes, task, uri, ret_error);
    if (rv == 0)
        rv = read_uri(uri, ret_error, host, size);
    task->launcher = host;
    return rv;
}

/* ---- The task ---- */

static int read_local(struct mu__notes *notes, mu_error *ret_error,
                      struct mu__mpi_task *task)
{
    static const char rank[] = "OMPI_COMM_WORLD_LOCAL_RANK";
    static const char size[] = "OMPI_COMM_WORLD_LOCAL_SIZE";
    unsigned nodes = 0;
    int rv = 0;

    task->local_variable = rank;
    task->has_local = mu__ask_variable(notes, rank) != NULL &&
                      mu__ask_variable(notes, size) != NULL;
    if (task->has_local)
        rv =
            mu__rank_number(notes, size, "", 1, task->size, ret_error, &task->local_size);
    if (rv == 0 && task->has_local)
        rv = mu__rank_own(notes, rank, "", task->local_size, size, ret_error,
                          &task->local_rank);
    if (rv == 0 && mu__ask_variable(notes, "OMPI_MCA_orte_num_nodes") != NULL)
        rv = mu__rank_number(notes, "OMPI_MCA_orte_num_nodes", "", 1,
                             MU_CLUSTER_TASKS_MAX, ret_error, &nodes);
    task->one_node = nodes == 1 || (task->has_local && task->local_size == task->size);
    return rv;
}

static int resolve(struct mu__notes *notes, const struct mu__settings *settings,
                   mu_error *ret_error, mu_resolution *ret_resolution)
{
    struct mu__mpi_task task = {
        .host_file = mu__ask_variable(notes, "OMPI_MCA_orte_default_hostfile")};
    char host[MU__HOST_BYTES_MAX + 1];
    int rv = mu__rank_number(notes, "OMPI_COMM_WORLD_SIZE", hint, 1, MU_CLUSTER_TASKS_MAX,
                             ret_error, &task.size);

    if (rv == 0)
        rv = mu__rank_own(notes, rank_variable, hint, task.size, "OMPI_COMM_WORLD_SIZE",
                          ret_error, &task.rank);
    if (rv == 0)
        rv = read_local(notes, ret_error, &task);
    if (rv == 0)
        rv = find_launcher(notes, settings, ret_error, &task, host, sizeof host);
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
