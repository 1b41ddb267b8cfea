/* The host of an MPI launcher, and the id of its job. */
#include "resolver/source/mpi.h"

#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Up to Open MPI 4. */
static const char uri_variable[] = "OMPI_MCA_orte_hnp_uri";

/* Open MPI 5 and PRRTE. */
static const char space_variable[] = "PMIX_NAMESPACE";

/* ---- The job ---- */

/* A leading number if no letters follow; else the text's FNV-1a hash. */
uint64_t mu__mpi_id(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    size_t digits = strspn(text, "0123456789");

    if (digits > 0 && (text[digits] == '\0' || text[digits] == '.'))
        return strtoull(text, NULL, 10);
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash >> 16;
}

/* Hydra of MPICH has none, that of Intel MPI has. */
uint64_t mu__mpi_job(struct mu__requests *requests)
{
    static const char *const others[] = {space_variable, "I_MPI_HYDRA_UUID",
                                         "SLURM_JOB_ID", "FLUX_JOB_ID"};
    const char *text = mu__request_variable(requests, uri_variable);

    if (text != NULL)
        return mu__mpi_id(text) / 4096;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        text = mu__request_variable(requests, others[i]);
        if (text != NULL)
            return mu__mpi_id(text);
    }
    return 0;
}

/* ---- The host ---- */

static int refuse_other_host(const char *source, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "rank 0 does not run on the host of mpirun (%s), so the others "
                        "would not find it; set hosts, hostfile or coordinator_address",
                        source);
}

/* "2110717952.0;tcp://10.0.0.1,10.1.0.1:54593;tcp6://[fd00::2]:47871": the first address
 * of the first scheme. */
static int read_uri(const char *uri, mu_error *ret_error, char *ret_host)
{
    const char *at = strstr(uri, ";tcp://");
    size_t length = 0;

    if (at != NULL) {
        at += strlen(";tcp://");
        length = strcspn(at, ",:;");
    } else if ((at = strstr(uri, ";tcp6://[")) != NULL) {
        at += strlen(";tcp6://[");
        length = strcspn(at, ",];");
    }
    if (length > 0 && length <= MU__HOST_BYTES_MAX) {
        (void)snprintf(ret_host, MU__HOST_BYTES_MAX + 1, "%.*s", (int)length, at);
        return 0;
    }
    return mu__refuse(ret_error, uri, strlen(uri),
                      "%s: expected JOB.0;tcp://ADDRESS:PORT", uri_variable);
}

/* "prterun-HOST-4711@1": the program, its host and process id, and the number of the
 * job. The host's name may have a "-", too. Names of other launchers have other forms,
 * and give nothing. */
static void read_space(const char *space, char *ret_host)
{
    size_t before = strcspn(space, "-");
    size_t end = strcspn(space, "@");
    size_t digits = 0;

    while (digits < end && space[end - digits - 1] >= '0' &&
           space[end - digits - 1] <= '9')
        digits++;
    if (space[end] != '@' || digits == 0 || before + 2 + digits >= end ||
        space[end - digits - 1] != '-' || end - digits - before - 2 > MU__HOST_BYTES_MAX)
        return;
    (void)snprintf(ret_host, MU__HOST_BYTES_MAX + 1, "%.*s",
                   (int)(end - digits - before - 2), space + before + 1);
}

/* Rank 0 is taken to be on the launcher's host, as is usual; rank 0 itself can check
 * it. */
int mu__mpi_launcher(struct mu__requests *requests, const struct mu__mpi_task *task,
                     mu_error *ret_error, char *ret_host, const char **ret_source)
{
    const char *uri = mu__request_variable(requests, uri_variable);
    const char *daemon = mu__request_variable(requests, "OMPI_MCA_orte_local_daemon_uri");
    const char *space = mu__request_variable(requests, space_variable);

    ret_host[0] = '\0';
    *ret_source = uri == NULL ? space_variable : uri_variable;
    if (uri != NULL) {
        if (task->rank == 0 && daemon != NULL && strcmp(daemon, uri) != 0)
            return refuse_other_host(uri_variable, ret_error);
        return read_uri(uri, ret_error, ret_host);
    }
    if (space != NULL)
        read_space(space, ret_host);
    if (task->rank == 0 && ret_host[0] != '\0' && task->host != NULL &&
        strcmp(task->host, ret_host) != 0)
        return refuse_other_host(space_variable, ret_error);
    return 0;
}
