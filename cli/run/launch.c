#include "cli/run/processes.h"

#include "cli/verbs.h"

#include "muster/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { HOST_WORDS_MAX = 16 };

extern char **environ;

static const char *const own_variables[] = {
    "TF_CONFIG",       "MUSTER_CLUSTER",      "MUSTER_TASK",           "MUSTER_TYPE",
    "MUSTER_INDEX",    "MUSTER_BIND",         "MUSTER_ADVERTISE",      "MUSTER_PROGRESS",
    "MUSTER_RESOLVER", "MUSTER_RESOLVER_SET", MU_SUPERVISION_VARIABLE,
};

/* Variables (names, or prefixes of names) by which launchers identify a process of
 * another cluster. They are not passed on, or every child would take itself for that
 * process. Variables that programs need to reach a service are passed on. */
static const char *const others_variables[] = {
    /* clang-format off */
    "OMPI_", "PMIX_", "PMI_", "MPI_LOCAL", "RANK=", "WORLD_SIZE=", "LOCAL_RANK=",
    "MASTER_ADDR=", "MASTER_PORT=", "JAX_", "SLURM_PROCID=", "SLURM_LOCALID=",
    "SLURM_NODEID=", "SLURM_GTIDS=", "SLURM_TASK_PID=", "SLURM_STEP", "SLURM_NTASKS",
    "SLURM_NPROCS=", "SLURM_TASKS_PER_NODE=", "SLURM_DIST", "SM_HOSTS=",
    "SM_CURRENT_HOST=", "SM_RESOURCE_CONFIG=", "JOB_COMPLETION_INDEX=", "JOB_INDEX=",
    "JOBSET_NAME=", "REPLICATED_JOB_", "TPU_CONFIG=", "TPU_NAME=",
    "TPU_WORKER_", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS=", "MUSTER_HOSTS=", "MUSTER_RANK=",
    "MUSTER_COORDINATOR_", "MUSTER_NUM_PROCESSES=", "MUSTER_PROCESS_ID=",
    "MUSTER_BIND_ADDRESS=", "MUSTER_CLUSTER_FILE=", "MUSTER_CLUSTER_DIRECTORY=",
    "MUSTER_ETCD", "MUSTER_TASKS=", "MUSTER_DNS_", "MUSTER_KUBERNETES_",
    /* clang-format on */
};

static bool is_of_others(const char *entry)
{
    for (size_t i = 0; i < sizeof others_variables / sizeof others_variables[0]; i++)
        if (strncmp(others_variables[i], entry, strlen(others_variables[i])) == 0)
            return true;
    return false;
}

static bool is_own_variable(const char *entry)
{
    size_t length = strcspn(entry, "=");

    for (size_t i = 0; i < sizeof own_variables / sizeof own_variables[0]; i++)
        if (strlen(own_variables[i]) == length &&
            strncmp(own_variables[i], entry, length) == 0)
            return true;
    return false;
}

/* Make a name for this run of the job: "20260131-235959-0123abcd". */
static void name_run(char out[CLI_RUN_NAME_BYTES])
{
    time_t now = time(NULL);
    uint32_t number = 0;
    char date[24] = "";
    struct tm parts;

    if (gmtime_r(&now, &parts) != NULL)
        (void)strftime(date, sizeof date, "%Y%m%d-%H%M%S", &parts);
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = (uint32_t)getpid();
    (void)snprintf(out, CLI_RUN_NAME_BYTES, "%s-%08" PRIx32, date, number);
}

/* This process's environment, without the variables that identify its task; the last
 * element is for each child's TF_CONFIG. */
static int make_child_environment(struct cmd_launch *launch,
                                  const struct cmd_options *options)
{
    static char progress[] = "MUSTER_PROGRESS=1";
    static char pipe_name[48];
    static char name[sizeof "MUSTER_RUN=" + CLI_RUN_NAME_BYTES];
    bool is_controlled = cmd_number(options, CMD_FLAG_CONTROL) == 1;
    char **environment;
    size_t count = 0;

    while (environ[count] != NULL)
        count++;
    environment = calloc(count + 5, sizeof *environment);
    if (environment == NULL)
        return -MU_ENOMEM;
    launch->environment = environment;
    count = 0;
    for (char **at = environ; *at != NULL; at++)
        if (!is_own_variable(*at) && (is_controlled || !is_of_others(*at)))
            environment[count++] = *at;
    (void)snprintf(pipe_name, sizeof pipe_name, MU_SUPERVISION_VARIABLE "=%d:%ld",
                   CMD_SUPERVISION_FD, (long)getpid());
    environment[count++] = pipe_name;
    if (!is_controlled)
        environment[count++] = progress;
    if (!is_controlled && cmd_text(options, CMD_FLAG_RUN) == NULL) {
        (void)snprintf(name, sizeof name, "MUSTER_RUN=");
        name_run(name + strlen(name));
        environment[count++] = name;
    }
    launch->tf_config = &environment[count];
    return 0;
}

bool cmd_is_quiet(const struct cmd_options *options)
{
    return options->values[CMD_FLAG_LOG_LEVEL].source == CMD_FROM_DEFAULT &&
           cmd_text(options, CMD_FLAG_LOG_FILE) == NULL;
}

/* Pass on the flags that `muster node` has; variables are inherited. */
static int make_child_arguments(struct cmd_launch *launch,
                                const struct cmd_options *options, mu_error *error)
{
    static char own[] = "muster";
    static char verb[] = "node";
    static char quiet[2][16] = {"--log-level", "warn"};
    const char *const *host = cmd_host()->command;
    size_t count = 0;

    for (; host != NULL && host[count] != NULL && count < HOST_WORDS_MAX; count++)
        launch->arguments[count] = (char *)(uintptr_t)host[count];
    if (count == 0)
        launch->arguments[count++] = own;
    launch->arguments[count++] = verb;
    launch->task = &launch->arguments[count];
    count += 2;
    if (cmd_is_quiet(options))
        for (int i = 0; i < 2; i++)
            launch->arguments[count++] = quiet[i];
    if (cmd_node_words(options, launch->arguments, count, CLI_ARGUMENTS_MAX - 1) == 0)
        return mu_error_set(error, -MU_EEXHAUSTED, "too many flags to pass on");
    return 0;
}

int cmd_launch_init(struct cmd_launch *launch, const struct cmd_options *options,
                    mu_error *ret_error)
{
    int rv = make_child_arguments(launch, options, ret_error);

    if (rv == 0 && make_child_environment(launch, options) != 0)
        rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    return rv;
}

static char *tf_config_of(const mu_cluster *of, const struct cmd_child *child)
{
    static const char format[] =
        "TF_CONFIG={\"cluster\": %s, \"task\": {\"type\": \"%s\", \"index\": %d}}";
    char *cluster = mu_cluster_to_json(of);
    size_t size = cluster == NULL ? 0 : strlen(cluster) + sizeof format + 32;
    char *text = cluster == NULL ? NULL : malloc(size);

    if (text != NULL)
        (void)snprintf(text, size, format, cluster, child->type, child->index);
    free(cluster);
    return text;
}

int cmd_launch_start(struct cmd_launch *launch, const mu_cluster *cluster,
                     struct cmd_child *child)
{
    static char flag[] = "--task";
    char task[CMD_NAME_BYTES];
    char *tf_config = tf_config_of(cluster, child);
    int rv = -1;

    (void)snprintf(task, sizeof task, "%s:%d", child->type, child->index);
    launch->task[0] = flag;
    launch->task[1] = task;
    *launch->tf_config = tf_config;
    if (tf_config != NULL)
        rv = cmd_child_start(child, launch->arguments, launch->environment);
    *launch->tf_config = NULL;
    launch->task[1] = NULL;
    free(tf_config);
    return rv;
}

void cmd_launch_done(struct cmd_launch *launch)
{
    free(launch->environment);
    launch->environment = NULL;
}
