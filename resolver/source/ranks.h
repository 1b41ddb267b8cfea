/* Shared by the resolvers of launchers, whose tasks have a number each: ranks. */
#ifndef MU_RESOLVER_RANKS_H
#define MU_RESOLVER_RANKS_H

#include "resolver/engine/kind.h"
#include "resolver/spec/layout.h"

/* Read a whole number of `low` to `high` from a variable. -MU_ENOTFOUND: it is not set;
 * `hint` ends the message ("; start it with srun"; may be ""). -MU_EINVALID: it is no
 * such number. */
int mu__rank_number(struct mu__requests *requests, const char *variable, const char *hint,
                    unsigned low, unsigned high, mu_error *ret_error,
                    unsigned *ret_number);

/* Read this process's rank, below `tasks`, a number from `tasks_variable`. */
int mu__rank_own(struct mu__requests *requests, const char *variable, const char *hint,
                 unsigned tasks, const char *tasks_variable, mu_error *ret_error,
                 unsigned *ret_rank);

/* Parse the jobs in a setting, for `tasks` tasks. */
int mu__rank_jobs(const struct mu__pass *pass, unsigned setting, unsigned tasks,
                  mu_error *ret_error, struct mu__jobs *ret_jobs);

/* The port of local task 0, from a setting that is a number or "auto": made of `job`, the
 * same for all tasks of a job. With one task a node it is the port that JAX takes, one of
 * 4096 from 61440 on; with up to 32 tasks a node the first of 32 that are this job's, one
 * of 625 such ranges from 10000 on. So jobs whose ids are that close have no port in
 * common. All ports of a node, with `node_tasks` tasks, are at most 65535. */
int mu__rank_port(const struct mu__pass *pass, unsigned setting, uint64_t job,
                  unsigned node_tasks, mu_error *ret_error, unsigned *ret_port);

/* Tasks whose hosts are known. */
struct mu__ranks {
    const char *source;                /* of the hosts, for messages */
    const struct mu__host_list *hosts; /* "host", or "host:port" as it stands */
    const struct mu__layout *layout;
    const struct mu__jobs *jobs;
    unsigned rank;           /* of this process */
    unsigned port;           /* of local task 0; the next ones follow */
    const char *host_suffix; /* behind each host; NULL: nothing */
};

/* The settings that launchers' resolvers have in common, by their numbers. */
struct mu__rank_settings {
    unsigned jobs;
    unsigned port;
    unsigned rpc_layer;
};

/* Add all tasks to the resolution, and set which one this is. */
int mu__ranks_add(const struct mu__ranks *ranks, mu_error *ret_error,
                  mu_resolution *resolution);

/* Fill in the resolution: ranks->jobs and ranks->port are set by the settings; `job` is
 * the job's id, for mu__rank_port. `bind_address` is where this task listens; NULL: at
 * its own address. */
int mu__ranks_resolve(const struct mu__pass *pass,
                      const struct mu__rank_settings *settings, struct mu__ranks *ranks,
                      uint64_t job, const char *bind_address, mu_error *ret_error,
                      mu_resolution *resolution);

/* Fill in the resolution when only the address of rank 0, "host:port", is known. Rank 0
 * is the chief; the others are workers, which the cluster does not list: they join by
 * calling the chief, and listen at `bind_address`; NULL: at a free port of this host.
 * The setting `jobs`, if it is set, must say one chief, and workers. */
int mu__ranks_meet(const struct mu__pass *pass, const struct mu__rank_settings *settings,
                   const char *source, const char *address, unsigned tasks, unsigned rank,
                   const char *bind_address, mu_error *ret_error,
                   mu_resolution *resolution);

/* The first address of this host's name that is not loopback's. `ret_host` has
 * MU__HOST_BYTES_MAX + 1. */
int mu__rank_host(struct mu__requests *requests, const char *source, mu_error *ret_error,
                  char *ret_host);

/* Copy a text setting into a field of the resolution: -MU_EINVALID when it does not
 * fit. */
int mu__rank_text(const struct mu__pass *pass, unsigned setting, char *field, size_t size,
                  mu_error *ret_error);

#endif
