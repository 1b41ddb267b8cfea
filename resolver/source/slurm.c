/* The resolver slurm: the variables that srun gives each task of a step.
 *
 * Hosts keep Slurm's order, and a rank's place on them follows from the distribution
 * that srun used; it is checked against what Slurm says of this task. */
#include "resolver/source/slurm.h"

#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <muster/cluster.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPUS_MAX = 1024 };

static const struct mu__setting_spec settings_of[] = {
    MU__SETTING(MU__SLURM_JOBS, "jobs", "MUSTER_SLURM_JOBS", NULL,
                "what the tasks are, by rank: \"chief=1,ps=2,worker=*\"; without it all "
                "are workers"),
    MU__SETTING(MU__SLURM_PORT_BASE, "port_base", "MUSTER_SLURM_PORT_BASE", "auto",
                "port of the first task of a node, the next ones follow; \"auto\": made "
                "of the job's id"),
    MU__SETTING_WITHIN(MU__SLURM_GPUS_PER_NODE, "gpus_per_node",
                       "MUSTER_SLURM_GPUS_PER_NODE", NULL, 0, GPUS_MAX,
                       "GPUs of each node; without it they are counted"),
    MU__SETTING_WITHIN(MU__SLURM_GPUS_PER_TASK, "gpus_per_task",
                       "MUSTER_SLURM_GPUS_PER_TASK", NULL, 0, GPUS_MAX,
                       "GPUs of each task; without it the node's through the tasks of "
                       "the fullest node"),
    MU__SETTING(MU__SLURM_TASKS_PER_NODE, "tasks_per_node", "MUSTER_SLURM_TASKS_PER_NODE",
                NULL,
                "tasks of each node, a number or \"host=count,...\"; without it what "
                "Slurm says"),
    MU__SETTING_FLAG(MU__SLURM_AUTO_SET_GPU, "auto_set_gpu", "MUSTER_SLURM_AUTO_SET_GPU",
                     "1", "whether each task sees its own GPUs alone"),
    MU__SETTING(MU__SLURM_RPC_LAYER, "rpc_layer", "MUSTER_SLURM_RPC_LAYER", "grpc",
                "in front of the master"),
    MU__SETTING(MU__SLURM_HOST_SUFFIX, "host_suffix", "MUSTER_SLURM_HOST_SUFFIX", NULL,
                "behind each host's name: \"-ib\", \".cluster\""),
    {.name = NULL},
};

static const char hint[] = ": it is for tasks of a Slurm step; start it with srun";

/* Names of the variables: those of the step, or of the job outside of one. */
struct step_variables {
    const char *tasks;
    const char *hosts;
    const char *counts;
    bool in_step;
};

/* The state of one pass. */
struct slurm_step {
    const struct mu__pass *pass;
    struct mu__requests *requests; /* of `pass` */
    mu_error *error;
    struct step_variables names;
    unsigned tasks;
    unsigned rank;
    struct mu__host_list hosts;
    unsigned *counts; /* of the hosts */
    struct mu__layout layout;
};

/* The variable of another launcher that runs within a Slurm job; NULL: there is none.
 * Slurm's ranks are then those of its daemons. Open MPI, PRRTE, Hydra. */
static const char *find_launcher(struct mu__requests *requests)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PRTE_LAUNCHED",
                                            "MPI_LOCALRANKID"};

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (mu__request_variable(requests, variables[i]) != NULL)
            return variables[i];
    return NULL;
}

static int detect_slurm(const struct mu__pass *pass, mu_error *ret_why)
{
    const char *launcher = find_launcher(pass->requests);

    if (mu__request_variable(pass->requests, "SLURM_PROCID") == NULL) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND, "SLURM_PROCID is not set%s",
                           mu__request_variable(pass->requests, "SLURM_JOB_ID") == NULL
                               ? ""
                               : ", though SLURM_JOB_ID is; start it with srun");
        return 0;
    }
    if (launcher != NULL) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                           "mpirun started this process (%s is set), not srun", launcher);
        return 0;
    }
    return 1;
}

/* ---- Tasks ---- */

static struct step_variables find_names(struct mu__requests *requests)
{
    static const struct step_variables step = {
        "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", true};
    static const struct step_variables job = {"SLURM_NTASKS", "SLURM_JOB_NODELIST",
                                              "SLURM_TASKS_PER_NODE", false};
    bool in_step = mu__request_variable(requests, step.tasks) != NULL ||
                   mu__request_variable(requests, step.hosts) != NULL ||
                   mu__request_variable(requests, step.counts) != NULL;

    if (!in_step && mu__request_variable(requests, job.tasks) != NULL)
        mu__requests_explain(requests,
                             "not in a step (%s is not set), so this is rank 0 of the "
                             "whole job by %s; srun starts all of its tasks",
                             step.tasks, job.tasks);
    return in_step || mu__request_variable(requests, job.tasks) == NULL ? step : job;
}

static int find_slurm_hosts(struct slurm_step *step)
{
    const char *text = mu__request_variable(step->requests, step->names.hosts);
    int rv;

    if (text == NULL)
        return mu_error_set(step->error, -MU_ENOTFOUND, "%s is not set%s",
                            step->names.hosts, hint);
    rv = mu__host_list_parse(text, strlen(text), step->names.hosts, step->error,
                             &step->hosts);
    if (rv == 0 && step->hosts.count == 0)
        rv = mu_error_set(step->error, -MU_EINVALID, "%s: expected a host at least",
                          step->names.hosts);
    return rv;
}

static int check_slurm_counts(const struct slurm_step *step, const char *source)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < step->hosts.count; i++)
        sum += step->counts[i];
    if (sum == step->tasks)
        return 0;
    return mu_error_set(step->error, -MU_EINVALID,
                        "%s: %llu tasks on %zu nodes, but %s is %u", source,
                        (unsigned long long)sum, step->hosts.count, step->names.tasks,
                        step->tasks);
}

static int find_counts(struct slurm_step *step)
{
    const char *text = mu__setting(step->pass, MU__SLURM_TASKS_PER_NODE);
    const char *source = mu__setting_origin(step->pass, MU__SLURM_TASKS_PER_NODE);
    int rv;

    if (text != NULL) {
        rv = mu__slurm_set_counts(text, source, &step->hosts, step->error, &step->counts);
        return rv != 0 ? rv : check_slurm_counts(step, source);
    }
    text = mu__request_variable(step->requests, step->names.counts);
    if (text == NULL)
        return mu_error_set(step->error, -MU_ENOTFOUND, "%s is not set%s",
                            step->names.counts, hint);
    rv = mu__task_counts_parse(text, step->names.counts, step->hosts.count, step->error,
                               &step->counts);
    return rv != 0 ? rv : check_slurm_counts(step, step->names.counts);
}

/* ---- Layout ---- */

/* Read the file with a host for each rank. A relative path starts at srun's working
 * directory. */
static int read_host_file(const struct slurm_step *step, struct mu__host_list *ret_ranks)
{
    const char *path = mu__request_variable(step->requests, "SLURM_HOSTFILE");
    const char *folder = mu__request_variable(step->requests, "SLURM_SUBMIT_DIR");
    const struct mu__answer *answer;
    char full[1024];
    mu_error inner;
    int rv;

    if (path == NULL)
        return mu_error_set(step->error, -MU_ENOTFOUND,
                            "SLURM_DISTRIBUTION is arbitrary, but SLURM_HOSTFILE, the "
                            "file with the order of the hosts, is not set");
    (void)snprintf(full, sizeof full, "%s%s%s",
                   path[0] == '/' || folder == NULL ? "" : folder,
                   path[0] == '/' || folder == NULL ? "" : "/", path);
    answer = mu__request_file(step->requests, full);
    rv = mu__answer_check(answer, "SLURM_HOSTFILE", &inner);
    if (rv != 0)
        return mu_error_set(
            step->error, rv,
            "SLURM_DISTRIBUTION is arbitrary, and the file with the order "
            "of the hosts cannot be read: %s",
            inner.message);
    return mu__host_list_parse(answer->data, answer->size, "SLURM_HOSTFILE", step->error,
                               ret_ranks);
}

/* A step may have fewer tasks than the file has lines. */
static int lay_out_listed(struct slurm_step *step)
{
    struct mu__host_list ranks = {0};
    int rv = read_host_file(step, &ranks);

    if (rv != 0)
        return rv;
    if (ranks.count < step->tasks)
        rv = mu_error_set(step->error, -MU_EINVALID,
                          "SLURM_HOSTFILE: it has %zu hosts for %u tasks", ranks.count,
                          step->tasks);
    while (ranks.count > step->tasks)
        free(ranks.names[--ranks.count]);
    if (rv == 0)
        rv = mu__layout_listed(&ranks, &step->hosts, "SLURM_HOSTFILE", step->error,
                               &step->layout);
    mu__host_list_done(&ranks);
    return rv;
}

static int lay_out_distribution(struct slurm_step *step,
                                enum mu__distribution distribution)
{
    unsigned plane = 1;
    int rv = 0;

    if (distribution == MU__DISTRIBUTION_PLANE)
        rv = mu__rank_number(step->requests, "SLURM_DIST_PLANESIZE",
                             ", though SLURM_DISTRIBUTION is plane", 1,
                             MU_CLUSTER_TASKS_MAX, step->error, &plane);
    if (rv != 0)
        return rv;
    rv = mu__layout_assign(distribution, plane, step->counts, step->hosts.count,
                           &step->layout);
    return rv == 0
               ? 0
               : mu_error_set(step->error, rv, "%s: out of memory", step->names.hosts);
}

/* The layout by SLURM_DISTRIBUTION, as in "block:cyclic,pack": the part behind ":" is
 * about the sockets of a node, that behind "," about how many tasks a node gets. */
static int lay_out_slurm(struct slurm_step *step)
{
    static const struct {
        const char *word;
        enum mu__distribution distribution;
    } distributions[] = {{"block", MU__DISTRIBUTION_BLOCK},
                         {"cyclic", MU__DISTRIBUTION_CYCLIC},
                         {"plane", MU__DISTRIBUTION_PLANE}};
    const char *text = mu__request_variable(step->requests, "SLURM_DISTRIBUTION");
    size_t size;

    if (text == NULL || step->hosts.count == 1)
        return lay_out_distribution(step, MU__DISTRIBUTION_BLOCK);
    size = strcspn(text, ":,=");
    for (size_t i = 0; i < sizeof distributions / sizeof distributions[0]; i++)
        if (strlen(distributions[i].word) == size &&
            memcmp(distributions[i].word, text, size) == 0)
            return lay_out_distribution(step, distributions[i].distribution);
    if (size == 9 && memcmp(text, "arbitrary", size) == 0)
        return lay_out_listed(step);
    return mu__refuse(step->error, text, strlen(text),
                      "SLURM_DISTRIBUTION: expected block, cyclic, plane or arbitrary");
}

/* Check this task's place against Slurm's variable: if the layout is wrong here, the
 * addresses of others are, too. */
static int compare_slurm_rank(const struct slurm_step *step, const char *variable,
                              unsigned mine)
{
    unsigned exported;
    int rv;

    if (!step->names.in_step || mu__request_variable(step->requests, variable) == NULL)
        return 0;
    rv = mu__rank_number(step->requests, variable, "", 0, MU_CLUSTER_TASKS_MAX - 1,
                         step->error, &exported);
    if (rv != 0 || exported == mine)
        return rv;
    return mu_error_set(step->error, -MU_EPRECONDITION,
                        "%s is %u, but rank %u would have %u by %s and the distribution "
                        "(%s): the addresses of the tasks are not known; start srun with "
                        "--distribution=block, or set tasks_per_node",
                        variable, exported, step->rank, mine, step->names.counts,
                        mu__request_variable(step->requests, "SLURM_DISTRIBUTION") == NULL
                            ? "SLURM_DISTRIBUTION is not set"
                            : mu__request_variable(step->requests, "SLURM_DISTRIBUTION"));
}

/* Slurm numbers the tasks of such a job component by component, and lists the hosts in
 * another order. */
static int refuse_components(const struct slurm_step *step)
{
    const char *size = mu__request_variable(step->requests, "SLURM_HET_SIZE");

    if (size == NULL || strcmp(size, "1") == 0)
        return 0;
    return mu_error_set(step->error, -MU_EPRECONDITION,
                        "SLURM_HET_SIZE is %.20s: which hosts are whose is not known in "
                        "a heterogeneous job; set MUSTER_HOSTS and MUSTER_RANK (resolver "
                        "environment), or give --cluster",
                        size);
}

static int read_slurm_step(struct slurm_step *step)
{
    int rv;

    step->names = find_names(step->requests);
    rv = mu__rank_number(step->requests, step->names.tasks, hint, 1, MU_CLUSTER_TASKS_MAX,
                         step->error, &step->tasks);
    if (rv == 0)
        rv = mu__rank_own(step->requests, "SLURM_PROCID", hint, step->tasks,
                          step->names.tasks, step->error, &step->rank);
    if (rv == 0 && step->names.in_step)
        rv = refuse_components(step);
    if (rv == 0)
        rv = find_slurm_hosts(step);
    if (rv == 0)
        rv = find_counts(step);
    if (rv == 0)
        rv = lay_out_slurm(step);
    if (rv == 0)
        rv = compare_slurm_rank(step, "SLURM_NODEID", step->layout.nodes[step->rank]);
    if (rv == 0)
        rv = compare_slurm_rank(step, "SLURM_LOCALID", step->layout.locals[step->rank]);
    return rv;
}

/* ---- The cluster ---- */

/* 0: it is unknown. */
static uint64_t job_of(struct mu__requests *requests)
{
    const char *text = mu__request_variable(requests, "SLURM_JOB_ID");

    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

/* Tasks of one user have one key: by its cluster's name a task refuses those of another
 * job. */
static void name_cluster(uint64_t job, mu_resolution *resolution)
{
    if (job != 0)
        (void)snprintf(resolution->cluster_name, sizeof resolution->cluster_name,
                       "slurm-%llu", (unsigned long long)job);
}

static int conclude_slurm(const struct slurm_step *step, mu_resolution *resolution)
{
    static const struct mu__rank_settings settings = {MU__SLURM_JOBS, MU__SLURM_PORT_BASE,
                                                      MU__SLURM_RPC_LAYER};
    uint32_t node = step->layout.nodes[step->rank];
    uint64_t job = job_of(step->requests);
    struct mu__ranks ranks = {
        .source = step->names.hosts,
        .hosts = &step->hosts,
        .layout = &step->layout,
        .rank = step->rank,
        .host_suffix = mu__setting(step->pass, MU__SLURM_HOST_SUFFIX),
    };
    int rv = mu__ranks_resolve(step->pass, &settings, &ranks, job, NULL, step->error,
                               resolution);

    if (rv != 0)
        return rv;
    name_cluster(job, resolution);
    return mu__slurm_gpus(step->pass, step->layout.locals[step->rank], step->counts[node],
                          step->layout.node_tasks_max, step->error, resolution);
}

static int resolve_slurm(const struct mu__pass *pass, mu_error *ret_error,
                         mu_resolution *ret_resolution)
{
    struct slurm_step step = {
        .pass = pass, .requests = pass->requests, .error = ret_error};
    int rv = read_slurm_step(&step);

    if (rv == 0)
        rv = conclude_slurm(&step, ret_resolution);
    mu__layout_done(&step.layout);
    mu__host_list_done(&step.hosts);
    free(step.counts);
    return rv;
}

const struct mu__resolver_kind mu__resolver_slurm = {
    .name = "slurm",
    .summary = "the variables that srun gives each task of a step",
    .settings = settings_of,
    .detect = detect_slurm,
    .resolve = resolve_slurm,
};
