/* The resolvers lsf and pbs: tasks that blaunch or pbsdsh start on the hosts that a batch
 * system has given to their job, in the order in which it lists them. */
#include "resolver/source/mpi.h"

#include "runtime/base/text.h"

#include <muster/cluster.h>

#include <stdlib.h>
#include <string.h>

enum { JOBS, HOSTS, PORT_BASE, BIND_ADDRESS, RPC_LAYER };

/* Rows of the table, with the variables of a resolver: MUSTER_<PREFIX>_... */
#define SETTINGS(PREFIX) \
    MU__SETTING(JOBS, "jobs", "MUSTER_" PREFIX "_JOBS", NULL,                           \
                "what the tasks are, by rank: \"chief=1,ps=2,worker=*\"; without it "   \
                "all are workers"),                                                     \
    MU__SETTING(PORT_BASE, "port_base", "MUSTER_" PREFIX "_PORT_BASE", "auto",          \
                "port of the first task of a host, the next ones follow; \"auto\": "    \
                "made of the job's id"),                                                \
    MU__SETTING(BIND_ADDRESS, "bind_address", "MUSTER_" PREFIX "_BIND_ADDRESS", NULL,   \
                "where this task listens, HOST:PORT"),                                  \
    MU__SETTING(RPC_LAYER, "rpc_layer", "MUSTER_" PREFIX "_RPC_LAYER", "grpc",          \
                "in front of the master")

static const struct mu__setting_spec lsf_settings[] = {
    MU__SETTING(HOSTS, "hosts", "MUSTER_LSF_HOSTS", NULL,
                "one host for each task, as for blaunch -z; without it those of "
                "LSB_MCPU_HOSTS, a task for each slot"),
    SETTINGS("LSF"),
    {.name = NULL},
};

static const struct mu__setting_spec pbs_settings[] = {
    MU__SETTING(HOSTS, "hostfile", "MUSTER_PBS_HOSTFILE", NULL,
                "a copy of the file PBS_NODEFILE that all tasks can read; an absolute "
                "path"),
    SETTINGS("PBS"),
    {.name = NULL},
};

/* One host for each task. */
struct batch_job {
    const char *source;
    char origin[MU__ORIGIN_BYTES];
    struct mu__host_list hosts;
    unsigned rank;
};

static int add_hosts(struct batch_job *found, const char *name, unsigned count,
                     mu_error *ret_error)
{
    int rv = 0;

    for (unsigned i = 0; rv == 0 && i < count; i++)
        rv = mu__host_list_add(&found->hosts, name);
    if (rv == 0)
        return 0;
    return mu_error_set(ret_error, rv, "%s: more tasks than memory or the limit of %d",
                        found->source, (int)MU_CLUSTER_TASKS_MAX);
}

/* ---- LSF ---- */

static const char lsf_rank[] = "LSF_PM_TASKID";

static int lsf_detect(const struct mu__pass *pass, mu_error *ret_why)
{
    if (mu__request_variable(pass->requests, lsf_rank) != NULL)
        return 1;
    (void)mu_error_set(ret_why, -MU_ENOTFOUND, "%s is not set%s", lsf_rank,
                       mu__request_variable(pass->requests, "LSB_JOBID") == NULL
                           ? ""
                           : ", though LSB_JOBID is; start it with blaunch");
    return 0;
}

static int bad_pair(const char *source, const char *text, const char *at,
                    mu_error *ret_error)
{
    return mu__refuse(ret_error, at, strlen(at),
                      "%s: at %zu: expected HOST and how many slots it has", source,
                      (size_t)(at - text) + 1);
}

/* "n1 4 n2 2" */
static int read_pairs(const char *text, mu_error *ret_error, struct batch_job *found)
{
    const char *at = text + strspn(text, " ");
    int rv = 0;

    while (rv == 0 && *at != '\0') {
        size_t size = strcspn(at, " ");
        const char *digits = at + size + strspn(at + size, " ");
        size_t length = strspn(digits, "0123456789");
        char name[MU__HOST_BYTES_MAX + 1];
        unsigned long count = length < 8 ? strtoul(digits, NULL, 10) : 0;

        if (size > MU__HOST_BYTES_MAX || length == 0 || count == 0 ||
            count > MU_CLUSTER_TASKS_MAX ||
            (digits[length] != ' ' && digits[length] != '\0'))
            return bad_pair(found->source, text, at, ret_error);
        memcpy(name, at, size);
        name[size] = '\0';
        rv = add_hosts(found, name, (unsigned)count, ret_error);
        at = digits + length + strspn(digits + length, " ");
    }
    return rv;
}

static int lsf_find(const struct mu__pass *pass, mu_error *ret_error,
                    struct batch_job *found)
{
    static const char hint[] = ": blaunch sets it for each task";
    const char *text = mu__setting(pass, HOSTS);
    int rv;

    if (text != NULL) {
        mu__setting_origin(pass, HOSTS, found->origin);
        found->source = found->origin;
        rv = mu__host_list_parse(text, strlen(text), found->source, ret_error,
                                 &found->hosts);
    } else {
        found->source = "LSB_MCPU_HOSTS";
        text = mu__request_variable(pass->requests, found->source);
        rv = text != NULL ? read_pairs(text, ret_error, found)
                          : mu_error_set(ret_error, -MU_ENOTFOUND,
                                         "%s is not set: LSF sets it in its jobs, "
                                         "whose tasks blaunch starts",
                                         found->source);
    }
    if (rv == 0 && found->hosts.count == 0)
        rv = mu_error_set(ret_error, -MU_EINVALID, "%s: expected a host at least",
                          found->source);
    if (rv == 0)
        rv = mu__rank_number(pass->requests, lsf_rank, hint, 1,
                             (unsigned)found->hosts.count, ret_error, &found->rank);
    if (rv == 0)
        found->rank--;
    return rv;
}

/* ---- PBS ---- */

static const char pbs_file[] = "PBS_NODEFILE";
static const char pbs_rank[] = "PBS_VNODENUM";

/* The number of the host, for a PBS without the number of the task's place. */
static const char pbs_node[] = "PBS_NODENUM";

static int pbs_detect(const struct mu__pass *pass, mu_error *ret_why)
{
    bool has_file = mu__request_variable(pass->requests, pbs_file) != NULL ||
                    mu__setting_given(pass, HOSTS);

    if (has_file && (mu__request_variable(pass->requests, pbs_rank) != NULL ||
                     mu__request_variable(pass->requests, pbs_node) != NULL))
        return 1;
    (void)mu_error_set(ret_why, -MU_ENOTFOUND, "%s is not set",
                       has_file ? pbs_rank : pbs_file);
    return 0;
}

static int read_file(struct mu__requests *requests, const char *path, mu_error *ret_error,
                     struct batch_job *found)
{
    const struct mu__answer *answer = mu__request_file(requests, path);
    struct mu__host_list hosts = {0};
    unsigned *slots = NULL;
    mu_error inner;
    int rv;

    if (answer == NULL)
        return MU__LATER;
    rv = mu__answer_check(answer, found->source, &inner);
    if (rv != 0)
        return mu_error_set(ret_error, rv,
                            "%.400s; PBS has it on the first host alone: copy it to "
                            "where all tasks see it, and set hostfile",
                            inner.message);
    rv = mu__host_file_parse(answer->data, answer->size, found->source, ret_error, &hosts,
                             &slots);
    for (size_t i = 0; rv == 0 && i < hosts.count; i++)
        rv = add_hosts(found, hosts.names[i], slots[i] == 0 ? 1 : slots[i], ret_error);
    mu__host_list_done(&hosts);
    free(slots);
    return rv;
}

static int check_unique(const struct batch_job *found, mu_error *ret_error)
{
    struct mu__layout layout = {0};
    int rv = mu__layout_listed(&found->hosts, &found->hosts, found->source, ret_error,
                               &layout);

    for (unsigned i = 0; rv == 0 && i < layout.tasks; i++)
        if (layout.locals[i] > 0)
            rv = mu_error_set(ret_error, -MU_ENOTFOUND,
                              "%s is not set, and by %s alone the tasks of \"%.80s\", "
                              "which %s has more than once, cannot be told apart",
                              pbs_rank, pbs_node, found->hosts.names[i], found->source);
    mu__layout_done(&layout);
    return rv;
}

static int pbs_find(const struct mu__pass *pass, mu_error *ret_error,
                    struct batch_job *found)
{
    const char *path = mu__setting(pass, HOSTS);
    const char *rank = pbs_rank;
    int rv;

    found->source = pbs_file;
    if (path == NULL)
        path = mu__request_variable(pass->requests, pbs_file);
    else
        mu__setting_origin(pass, HOSTS, found->origin);
    if (found->origin[0] != '\0')
        found->source = found->origin;
    if (path == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "%s is not set: PBS sets it in its jobs, whose tasks "
                            "pbsdsh starts; elsewhere set hostfile", pbs_file);
    rv = read_file(pass->requests, path, ret_error, found);
    if (rv == 0 && mu__request_variable(pass->requests, rank) == NULL &&
        mu__request_variable(pass->requests, pbs_node) != NULL) {
        rank = pbs_node;
        rv = check_unique(found, ret_error);
    }
    if (rv == 0)
        rv = mu__rank_own(pass->requests, rank, ": pbsdsh sets it for each task",
                          (unsigned)found->hosts.count, found->source, ret_error,
                          &found->rank);
    return rv;
}

/* ---- Both ---- */

/* Check the listed host against this machine's name, which may have another form. */
static int compare(struct mu__requests *requests, const struct batch_job *found,
                   mu_error *ret_error)
{
    const char *own = mu__request_host_name(requests);
    const char *listed = found->hosts.names[found->rank];

    if (own == NULL || mu__host_same(own, listed) ||
        !mu__host_list_has(&found->hosts, own))
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "%s: task %u is on \"%.80s\" there, but this is \"%.80s\": "
                        "expected a host for each task, in the order in which they were "
                        "started",
                        found->source, found->rank, listed, own);
}

static int conclude(const struct mu__pass *pass, const struct batch_job *found,
                    const char *job, mu_error *ret_error, mu_resolution *resolution)
{
    static const struct mu__rank_settings settings = {JOBS, PORT_BASE, RPC_LAYER};
    const char *id = mu__request_variable(pass->requests, job);
    struct mu__layout layout = {0};
    struct mu__ranks ranks = {.source = found->source,
                              .hosts = &found->hosts,
                              .layout = &layout,
                              .rank = found->rank};
    int rv = mu__layout_listed(&found->hosts, &found->hosts, found->source, ret_error,
                               &layout);

    if (rv == 0)
        rv = mu__ranks_resolve(pass, &settings, &ranks, id == NULL ? 0 : mu__mpi_id(id),
                               mu__setting(pass, BIND_ADDRESS), ret_error, resolution);
    mu__layout_done(&layout);
    return rv;
}

typedef int (*find_fn)(const struct mu__pass *pass, mu_error *ret_error,
                       struct batch_job *found);

static int resolve(const struct mu__pass *pass, find_fn find, const char *job,
                   mu_error *ret_error, mu_resolution *resolution)
{
    struct batch_job found = {.source = NULL};
    int rv = find(pass, ret_error, &found);

    if (rv == 0)
        rv = compare(pass->requests, &found, ret_error);
    if (rv == 0)
        rv = conclude(pass, &found, job, ret_error, resolution);
    mu__host_list_done(&found.hosts);
    return rv;
}

static int lsf_resolve(const struct mu__pass *pass, mu_error *ret_error,
                       mu_resolution *ret_resolution)
{
    return resolve(pass, lsf_find, "LSB_JOBID", ret_error, ret_resolution);
}

static int pbs_resolve(const struct mu__pass *pass, mu_error *ret_error,
                       mu_resolution *ret_resolution)
{
    return resolve(pass, pbs_find, "PBS_JOBID", ret_error, ret_resolution);
}

const struct mu__resolver_kind mu__resolver_lsf = {
    .name = "lsf",
    .summary = "the variables that LSF's blaunch gives each task",
    .settings = lsf_settings,
    .detect = lsf_detect,
    .resolve = lsf_resolve,
};

const struct mu__resolver_kind mu__resolver_pbs = {
    .name = "pbs",
    .summary = "the file of hosts of a PBS job, and what pbsdsh gives each task",
    .settings = pbs_settings,
    .detect = pbs_detect,
    .resolve = pbs_resolve,
};
