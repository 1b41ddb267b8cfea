/* Shared by the resolvers open_mpi and mpich: tasks that an MPI launcher has numbered,
 * and hosts that it does not tell. */
#ifndef MU_RESOLVER_MPI_H
#define MU_RESOLVER_MPI_H

#include "resolver/source/ranks.h"

/* The settings of both. */
enum mu__mpi_setting {
    MU__MPI_JOBS,
    MU__MPI_HOSTS,
    MU__MPI_HOST_FILE,
    MU__MPI_MAPPING,
    MU__MPI_COORDINATOR_ADDRESS,
    MU__MPI_PORT_BASE,
    MU__MPI_BIND_ADDRESS,
    MU__MPI_RPC_LAYER
};

/* Rows of the table, with the variables of a resolver: MUSTER_<PREFIX>_... */
#define MU__MPI_SETTINGS(PREFIX)                                                         \
    MU__SETTING(MU__MPI_JOBS, "jobs", "MUSTER_" PREFIX "_JOBS", NULL,                    \
                "what the tasks are, by rank: \"chief=1,worker=*\"; without it all are " \
                "workers where the hosts are known, else the chief and workers"),        \
        MU__SETTING(                                                                     \
            MU__MPI_HOSTS, "hosts", "MUSTER_" PREFIX "_HOSTS", NULL,                     \
            "the hosts in the launcher's order: \"n[1-2],m5\"; one for each task, "      \
            "or one for each node"),                                                     \
        MU__SETTING(MU__MPI_HOST_FILE, "hostfile", "MUSTER_" PREFIX "_HOSTFILE", NULL,   \
                    "the file with lines \"HOST slots=N\" that the launcher has; an "    \
                    "absolute path"),                                                    \
        MU__SETTING(                                                                     \
            MU__MPI_MAPPING, "mapping", "MUSTER_" PREFIX "_MAPPING", "block",            \
            "\"block\": a node is filled before the next one; \"cyclic\": one task "     \
            "to each node in turn"),                                                     \
        MU__SETTING(MU__MPI_COORDINATOR_ADDRESS, "coordinator_address",                  \
                    "MUSTER_" PREFIX "_COORDINATOR_ADDRESS", NULL,                       \
                    "where rank 0 is, HOST or HOST:PORT, if hosts are not known"),       \
        MU__SETTING(MU__MPI_PORT_BASE, "port_base", "MUSTER_" PREFIX "_PORT_BASE",       \
                    "auto",                                                              \
                    "port of the first task of a node, the next ones follow; \"auto\": " \
                    "made of the job's id"),                                             \
        MU__SETTING(MU__MPI_BIND_ADDRESS, "bind_address",                                \
                    "MUSTER_" PREFIX "_BIND_ADDRESS", NULL,                              \
                    "where this task listens, HOST:PORT"),                               \
        MU__SETTING(MU__MPI_RPC_LAYER, "rpc_layer", "MUSTER_" PREFIX "_RPC_LAYER",       \
                    "grpc", "in front of the master")

/* A task by its launcher's variables. */
struct mu__mpi_task {
    unsigned rank;
    unsigned size;
    bool has_local; /* the next two are known */
    unsigned local_rank;
    unsigned local_size;
    bool local_is_loose;        /* Open MPI 5: local_size is that of one node for all, and
                                   local ranks may go by processors */
    const char *local_variable; /* of local_rank, for messages */
    const char *host;           /* of this task, as the launcher calls it; NULL */
    const char *host_variable;
    bool one_node;         /* all tasks are on this one */
    const char *host_file; /* that the launcher itself has; NULL */
    const char *daemons;   /* the hosts of its daemons, as a list; NULL */
};

/* Read this node's name, and from these two variables (NULL: the launcher has none) the
 * task's local rank and the number of tasks on the node. task->rank, size and
 * local_is_loose are set before. */
int mu__mpi_local(struct mu__requests *requests, const char *rank_variable,
                  const char *size_variable, mu_error *ret_error,
                  struct mu__mpi_task *task);

/* Fill in the resolution. */
int mu__mpi_resolve(const struct mu__pass *pass, const struct mu__mpi_task *task,
                    mu_error *ret_error, mu_resolution *resolution);

/* ---- The launcher itself: mpi_launcher.c ---- */

/* The host that the launcher runs on, if its variables say so; it is taken to be rank
 * 0's. "" when they do not. `ret_host` has MU__HOST_BYTES_MAX + 1, and *ret_source is
 * the variable. -MU_EPRECONDITION: this process is rank 0, and on another host. */
int mu__mpi_launcher(struct mu__requests *requests, const struct mu__mpi_task *task,
                     mu_error *ret_error, char *ret_host, const char **ret_source);

/* The job's id as a number; 0: the launcher has none. */
uint64_t mu__mpi_job(struct mu__requests *requests);

/* An id as a number: the same text gives the same one. */
uint64_t mu__mpi_id(const char *text);

/* Parse a file of hosts: a host in each line, with "slots=N" or ":N" behind it, and "#"
 * before remarks. `ret_slots` has 0 where a line does not say. The caller calls
 * mu__host_list_done, and frees *ret_slots. */
int mu__host_file_parse(const char *text, size_t size, const char *source,
                        mu_error *ret_error, struct mu__host_list *ret_hosts,
                        unsigned **ret_slots);

#endif
