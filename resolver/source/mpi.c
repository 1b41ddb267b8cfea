#include "resolver/source/mpi.h"

#include "resolver/spec/address.h"
#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <muster/cluster.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The hosts, and how many tasks each may have; 0: not given. */
struct nodes {
    const char *source;
    struct mu__host_list hosts;
    unsigned *slots;
};

static void nodes_done(struct nodes *nodes)
{
    mu__host_list_done(&nodes->hosts);
    free(nodes->slots);
}

/* ---- Hosts ---- */

static int read_mpi_host_file(struct mu__requests *requests, const char *path,
                              mu_error *ret_error, struct nodes *nodes)
{
    const struct mu__answer *answer = mu__request_file(requests, path);
    int rv;

    rv = mu__answer_check(answer, nodes->source, ret_error);
    return rv != 0 ? rv
                   : mu__host_file_parse(answer->data, answer->size, nodes->source,
                                         ret_error, &nodes->hosts, &nodes->slots);
}

static int read_mpi_host_list(const char *text, mu_error *ret_error, struct nodes *nodes)
{
    int rv =
        mu__host_list_parse(text, strlen(text), nodes->source, ret_error, &nodes->hosts);

    if (rv == 0 && nodes->hosts.count == 0)
        rv = mu_error_set(ret_error, -MU_EINVALID, "%s: expected a host at least",
                          nodes->source);
    if (rv != 0)
        return rv;
    nodes->slots = calloc(nodes->hosts.count, sizeof *nodes->slots);
    if (nodes->slots == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", nodes->source);
    return 0;
}

/* No source lists hosts: the list stays empty. */
static int find_nodes(const struct mu__pass *pass, const struct mu__mpi_task *task,
                      mu_error *ret_error, struct nodes *nodes)
{
    const char *text = mu__setting(pass, MU__MPI_HOSTS);

    if (text != NULL) {
        nodes->source = mu__setting_origin(pass, MU__MPI_HOSTS);
        return read_mpi_host_list(text, ret_error, nodes);
    }
    text = mu__setting(pass, MU__MPI_HOST_FILE);
    if (text != NULL) {
        nodes->source = mu__setting_origin(pass, MU__MPI_HOST_FILE);
        return read_mpi_host_file(pass->requests, text, ret_error, nodes);
    }
    if (mu__setting_given(pass, MU__MPI_COORDINATOR_ADDRESS))
        return 0;
    if (task->one_node) {
        nodes->source = task->has_local ? task->local_variable : "the launcher";
        return read_mpi_host_list("127.0.0.1", ret_error, nodes);
    }
    nodes->source = "OMPI_MCA_orte_default_hostfile";
    if (task->host_file != NULL)
        return read_mpi_host_file(pass->requests, task->host_file, ret_error, nodes);
    nodes->source = "SLURM_STEP_NODELIST";
    if (task->daemons != NULL)
        return read_mpi_host_list(task->daemons, ret_error, nodes);
    return 0;
}

/* ---- Layout ---- */

/* Fill each node up to its slots, in their order, until all tasks have a place. */
static int fill_slots(const struct mu__mpi_task *task, const struct nodes *nodes,
                      mu_error *ret_error, unsigned *counts)
{
    unsigned left = task->size;

    for (size_t i = 0; i < nodes->hosts.count; i++) {
        unsigned slots = nodes->slots[i];

        if (slots == 0 && nodes->hosts.count == 1)
            slots = task->size;
        if (slots == 0 && !task->has_local)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: it does not say how many of the %u tasks are on "
                                "\"%.80s\"; expected a host for each task, or lines with "
                                "slots",
                                nodes->source, task->size, nodes->hosts.names[i]);
        if (slots == 0)
            slots = task->local_size;
        counts[i] = slots < left ? slots : left;
        left -= counts[i];
    }
    if (left == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: its %zu hosts have places for %u of the %u tasks; expected "
                        "as many, or a host for each task",
                        nodes->source, nodes->hosts.count, task->size - left, task->size);
}

static int lay_out_mpi(const struct mu__pass *pass, const struct mu__mpi_task *task,
                       const struct nodes *nodes, mu_error *ret_error,
                       struct mu__layout *ret_layout)
{
    static const char *const mappings[] = {"block", "cyclic", NULL};
    enum { BLOCK, CYCLIC };
    unsigned mapping = BLOCK;
    unsigned *counts;
    int rv = mu__setting_word(pass, MU__MPI_MAPPING, mappings, "block or cyclic",
                              ret_error, &mapping);

    if (rv != 0)
        return rv;
    if (nodes->hosts.count == task->size && nodes->slots[0] == 0)
        return mu__layout_listed(&nodes->hosts, &nodes->hosts, nodes->source, ret_error,
                                 ret_layout);
    counts = calloc(nodes->hosts.count, sizeof *counts);
    if (counts == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", nodes->source);
    rv = fill_slots(task, nodes, ret_error, counts);
    if (rv == 0) {
        rv = mu__layout_assign(mapping == CYCLIC ? MU__DISTRIBUTION_CYCLIC
                                                 : MU__DISTRIBUTION_BLOCK,
                               1, counts, nodes->hosts.count, ret_layout);
        if (rv != 0)
            rv = mu_error_set(ret_error, rv, "%s: out of memory", nodes->source);
    }
    free(counts);
    return rv;
}

/* Check this rank's host against the launcher's; it may call the hosts by other names. */
static int compare_host(const struct mu__mpi_task *task, const struct nodes *nodes,
                        const char *mine, mu_error *ret_error)
{
    if (task->host == NULL || mu__host_same(task->host, mine) ||
        !mu__host_list_has(&nodes->hosts, task->host))
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "%s: rank %u would be on \"%.80s\", but by %s it is on "
                        "\"%.80s\": expected the hosts, slots and mapping that the "
                        "launcher has",
                        nodes->source, task->rank, mine, task->host_variable, task->host);
}

/* Check this rank's place against the launcher's variables: a difference means that the
 * hosts are in another order, or mapped in another way. */
static int compare_mpi_rank(const struct mu__mpi_task *task, const struct nodes *nodes,
                            const struct mu__layout *layout, mu_error *ret_error)
{
    uint32_t node = layout->nodes[task->rank];
    unsigned there = 0;
    int rv = compare_host(task, nodes, nodes->hosts.names[node], ret_error);

    for (unsigned i = 0; i < layout->tasks; i++)
        there += layout->nodes[i] == node;
    if (rv != 0 || !task->has_local || task->local_is_loose ||
        (layout->locals[task->rank] == task->local_rank && there == task->local_size))
        return rv;
    return mu_error_set(
        ret_error, -MU_EPRECONDITION,
        "%s: rank %u would be task %u of %u on \"%.80s\", but by %s it is "
        "task %u of %u on its node: expected the hosts, slots and mapping "
        "that the launcher has",
        nodes->source, task->rank, layout->locals[task->rank], there,
        nodes->hosts.names[node], task->local_variable, task->local_rank,
        task->local_size);
}

static const struct mu__rank_settings rank_settings = {MU__MPI_JOBS, MU__MPI_PORT_BASE,
                                                       MU__MPI_RPC_LAYER};

static int list_mpi_tasks(const struct mu__pass *pass, const struct mu__mpi_task *task,
                          const struct nodes *nodes, mu_error *ret_error,
                          mu_resolution *resolution)
{
    struct mu__layout layout = {0};
    struct mu__ranks ranks = {.source = nodes->source,
                              .hosts = &nodes->hosts,
                              .layout = &layout,
                              .rank = task->rank};
    int rv = lay_out_mpi(pass, task, nodes, ret_error, &layout);

    if (rv == 0)
        rv = compare_mpi_rank(task, nodes, &layout, ret_error);
    if (rv == 0)
        rv = mu__ranks_resolve(pass, &rank_settings, &ranks, mu__mpi_job(pass->requests),
                               mu__setting(pass, MU__MPI_BIND_ADDRESS), ret_error,
                               resolution);
    mu__layout_done(&layout);
    return rv;
}

/* ---- Unknown hosts ---- */

static bool has_launcher_port(const char *address)
{
    const char *last = strrchr(address, ':');

    return last != NULL && (strchr(address, ':') == last || last[-1] == ']');
}

static int meet_at_rank_0(const struct mu__pass *pass, const struct mu__mpi_task *task,
                          const char *host, const char *source, mu_error *ret_error,
                          mu_resolution *resolution)
{
    char address[MU__HOST_BYTES_MAX + 16];
    unsigned port = 0;
    int rv = 0;

    if (strlen(host) > MU__HOST_BYTES_MAX)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected at most %d bytes",
                            source, (int)MU__HOST_BYTES_MAX);
    MU__COPY_TEXT(address, host);
    if (!has_launcher_port(host)) {
        rv = mu__rank_port(pass, MU__MPI_PORT_BASE, mu__mpi_job(pass->requests), 1,
                           ret_error, &port);
        (void)mu__address_join(host, port, address, sizeof address);
    }
    if (rv != 0)
        return rv;
    mu__requests_explain(pass->requests,
                         "the hosts of the tasks are not known: rank 0 is the chief, and "
                         "the others join it");
    return mu__ranks_meet(pass, &rank_settings, source, address, task->size, task->rank,
                          mu__setting(pass, MU__MPI_BIND_ADDRESS), ret_error, resolution);
}

static int find_rank_0(const struct mu__pass *pass, const struct mu__mpi_task *task,
                       mu_error *ret_error, mu_resolution *resolution)
{
    const char *set = mu__setting(pass, MU__MPI_COORDINATOR_ADDRESS);
    char host[MU__HOST_BYTES_MAX + 1] = "";
    const char *source = NULL;
    int rv;

    if (set != NULL)
        return meet_at_rank_0(pass, task, set, "coordinator_address", ret_error,
                              resolution);
    rv = mu__mpi_launcher(pass->requests, task, ret_error, host, &source);
    if (rv != 0)
        return rv;
    if (host[0] != '\0')
        return meet_at_rank_0(pass, task, host, source, ret_error, resolution);
    return mu_error_set(ret_error, -MU_ENOTFOUND,
                        "the launcher says that this is rank %u of %u, but not where the "
                        "others are: set hosts, hostfile or coordinator_address",
                        task->rank, task->size);
}

int mu__mpi_local(struct mu__requests *requests, const char *rank_variable,
                  const char *size_variable, mu_error *ret_error,
                  struct mu__mpi_task *task)
{
    static const char *const hosts[] = {"PMIX_HOSTNAME", "PMI_HOSTNAME",
                                        "HYDRA_BSTRAP_LOCALHOST",
                                        "MPIR_CVAR_CH3_INTERFACE_HOSTNAME"};
    int rv = 0;

    for (size_t i = sizeof hosts / sizeof hosts[0]; i-- > 0;)
        if (mu__request_variable(requests, hosts[i]) != NULL)
            task->host_variable = hosts[i];
    if (task->host_variable != NULL)
        task->host = mu__request_variable(requests, task->host_variable);
    task->local_variable = rank_variable;
    task->has_local = rank_variable != NULL && size_variable != NULL &&
                      mu__request_variable(requests, rank_variable) != NULL &&
                      mu__request_variable(requests, size_variable) != NULL;
    if (task->has_local)
        rv = mu__rank_number(requests, size_variable, "", 1, task->size, ret_error,
                             &task->local_size);
    if (rv == 0 && task->has_local)
        rv = mu__rank_own(requests, rank_variable, "",
                          task->local_is_loose ? task->size : task->local_size,
                          size_variable, ret_error, &task->local_rank);
    task->one_node =
        task->size == 1 || (task->has_local && task->local_size == task->size);
    return rv;
}

int mu__mpi_resolve(const struct mu__pass *pass, const struct mu__mpi_task *task,
                    mu_error *ret_error, mu_resolution *resolution)
{
    struct nodes nodes = {.source = NULL};
    int rv = find_nodes(pass, task, ret_error, &nodes);

    if (rv == 0)
        rv = nodes.hosts.count > 0
                 ? list_mpi_tasks(pass, task, &nodes, ret_error, resolution)
                 : find_rank_0(pass, task, ret_error, resolution);
    nodes_done(&nodes);
    return rv;
}
