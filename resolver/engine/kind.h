/* A built-in resolver: a row of the registry in resolver/engine/kinds.c. Its functions
 * are pure: they make requests (request_table.h), which block, and conclude from the
 * answers. */
#ifndef MU_RESOLVER_KIND_H
#define MU_RESOLVER_KIND_H

#include "resolver/engine/settings.h"

#include <muster/resolver.h>

struct mu__resolver_kind {
    const char *name;    /* "slurm" */
    const char *summary; /* one line: where it looks */
    const struct mu__setting_spec *settings;

    /* Whether this process runs where the resolver applies: 1; else 0 with the reason
     * in *ret_why ("SLURM_PROCID is not set"). Cheap, and without the
     * network unless a file or variable says that this machine is of that kind. NULL:
     * it is taken only by name. */
    int (*detect)(const struct mu__pass *pass, mu_error *ret_why);

    /* Fill in what is known, over mu_resolution_init's state; `source` is set by the
     * caller. The caller frees ret_resolution->cluster, also after a failure: the
     * resolver may write there as it goes. Errors name the source, the place and what
     * was expected. -MU_EUNAVAILABLE: not now (a pod does not run yet, a task is not
     * there yet): the query begins another round while there is time. */
    int (*resolve)(const struct mu__pass *pass, mu_error *ret_error,
                   mu_resolution *ret_resolution);

    /* For registries (etcd, directory): make known where this task is, or that it still
     * is there. NULL: the resolver is no registry. It is to be called again after
     * *ret_again_ms. *ret_index is the task's index: that of the announcement, or the
     * one chosen in place of its -1; later calls have it in the announcement. `*own` is
     * the resolver's state between calls, NULL at first: at most 128 bytes, freed with
     * free(). -MU_EUNAVAILABLE: not now (another process may still hold the place);
     * -MU_EEXISTS: the task is another, living process. Another thread may be in
     * `resolve` meanwhile. */
    int (*announce)(const struct mu__pass *pass, const mu_announcement *announcement,
                    mu_error *ret_error, void **own, int *ret_index,
                    uint32_t *ret_again_ms);

    /* The task leaves: take the announcement back. May be NULL. */
    int (*withdraw)(const struct mu__pass *pass, const mu_announcement *announcement,
                    mu_error *ret_error, void **own);

    /* The task's type is a setting, and cannot be set otherwise. */
    bool type_is_setting;

    /* The source's master is the address of its first task. It is dropped when the
     * program has set another task, which is then the master. */
    bool master_is_first_task;

    /* How often to resolve again while a job runs, ms, by default; 0: the result never
     * changes, and need not be watched. */
    uint32_t watch_ms;

    /* A path whose change makes a watch resolve again at once. NULL: none. */
    const char *(*watched_path)(const struct mu__pass *pass);
};

/* Add a task to the resolution's cluster. The address may come from anywhere, and is
 * checked; messages begin with `source` ("SM_HOSTS[2]"). */
int mu__resolution_add(mu_resolution *resolution, const char *source, const char *type,
                       int index, const char *address, mu_error *ret_error);

/* The same with a host and a port: an IPv6 address gets its brackets. */
int mu__resolution_add_host(mu_resolution *resolution, const char *source,
                            const char *type, int index, const char *host, unsigned port,
                            mu_error *ret_error);

/* Fill in what TF_CONFIG says; takes its cluster. */
void mu__resolution_set_config(mu_resolution *resolution, const mu_tf_config *config);

/* ---- Jobs of tasks that only have ranks ----
 *
 * Slurm, MPI, SageMaker, Indexed Jobs: N tasks with a number each. The setting `jobs`
 * says what they are: "chief=1,ps=2,worker=5", in this order by rank; without it all are
 * workers. One job may have the rest: "ps=2,worker=*". */
struct mu__jobs {
    struct {
        char type[16];
        unsigned count;
    } rows[8];
    unsigned rows_count;
};

/* Value of `tasks` when the number of tasks is not known: it is the sum of the counts,
 * and no job may have "*". */
#define MU__JOBS_ANY ((unsigned)-1)

/* Parse a number of tasks: digits without leading zeros, up to the largest index. */
bool mu__count_parse(const char *text, size_t size, unsigned *ret_count);

/* `source` is where the text comes from. -MU_EINVALID with place and expectation; also
 * when the counts are not `tasks` in sum. `text` NULL: all are workers. */
int mu__jobs_parse(const char *text, const char *source, unsigned tasks,
                   mu_error *ret_error, struct mu__jobs *ret_jobs);

/* Type and index of a rank below the sum. The string is owned by `jobs`. */
void mu__jobs_at(const struct mu__jobs *jobs, unsigned rank, const char **ret_type,
                 int *ret_index);

#endif
