/* A small cluster for benchmarks: this process is one task, and child processes are the
 * others. They run the same program with a task's name as arguments, and end with their
 * parent. */
#ifndef MUSTER_BENCH_CLUSTER_H
#define MUSTER_BENCH_CLUSTER_H

#include "bench/bench.h"

#include <muster.h>

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { CLUSTER_TASKS_MAX = 128, CLUSTER_TEXT_MAX = 4096 };

struct cluster {
    char json[CLUSTER_TEXT_MAX];
    pid_t children[CLUSTER_TASKS_MAX];
    int children_count;
};

static inline void cluster_die(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

static inline void cluster_check(int rv, const mu_error *error)
{
    if (rv != 0)
        cluster_die(mu_strerror(rv), error->message);
}

static inline void cluster_pause_ms(uint64_t ms)
{
    const struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    (void)nanosleep(&time, NULL);
}

/* A port that is free now. */
static inline int cluster_free_port(int *ret_socket)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        cluster_die("port", "none is free");
    *ret_socket = fd;
    return ntohs(address.sin_port);
}

/* {"chief":[..],"worker":[..],"ps":[..]} with free ports of loopback. */
static inline void cluster_make(struct cluster *cluster, int workers, int servers)
{
    const struct {
        const char *type;
        int count;
    } jobs[] = {{"chief", 1}, {"worker", workers}, {"ps", servers}};
    int sockets[CLUSTER_TASKS_MAX];
    int sockets_count = 0;
    size_t at = 0;

    memset(cluster, 0, sizeof *cluster);
    for (size_t i = 0; i < 3; i++) {
        if (jobs[i].count == 0)
            continue;
        at += (size_t)snprintf(cluster->json + at, sizeof cluster->json - at,
                               "%s\"%s\":[", at == 0 ? "{" : ",", jobs[i].type);
        for (int j = 0; j < jobs[i].count; j++)
            at += (size_t)snprintf(cluster->json + at, sizeof cluster->json - at,
                                   "%s\"127.0.0.1:%d\"", j == 0 ? "" : ",",
                                   cluster_free_port(&sockets[sockets_count++]));
        at += (size_t)snprintf(cluster->json + at, sizeof cluster->json - at, "]");
    }
    (void)snprintf(cluster->json + at, sizeof cluster->json - at, "}");
    while (sockets_count > 0)
        close(sockets[--sockets_count]);
}

/* As `muster node` does: keep large blocks in the heap instead of mapping each anew. */
static inline void cluster_tune_malloc(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

/* Set: clusters speak TLS with the user's key; else they are insecure, so that figures of
 * the wire compare with those of programs without muster. Children inherit it. */
#define CLUSTER_TLS_VARIABLE "MUSTER_BENCH_TLS"

static inline mu_node *cluster_open(const char *json, const char *type, int index,
                                    const mu_node_options *options)
{
    mu_node_options o = *options;
    mu_cluster *spec;
    mu_node *node;
    mu_error error;

    if (mu_cluster_parse(json, strlen(json), "bench", &error, &spec) != 0)
        cluster_die("cluster", error.message);
    o.cluster = spec;
    o.task_type = type;
    o.task_index = index;
    o.log_level = MU_LOG_ERROR;
    o.insecure = getenv(CLUSTER_TLS_VARIABLE) == NULL;
    if (mu_node_open(&o, &error, &node) != 0)
        cluster_die(type, error.message);
    mu_cluster_free(spec);
    return node;
}

/* Start this program again as another task: argv is {self, "task", type, index, json}. */
static inline pid_t cluster_spawn(const struct cluster *cluster, const char *type,
                                  int index)
{
    char number[16];
    pid_t parent = getpid();
    pid_t pid;

    (void)snprintf(number, sizeof number, "%d", index);
    pid = fork();
    if (pid < 0)
        cluster_die("fork", "failed");
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            execl("/proc/self/exe", "bench", "task", type, number, cluster->json,
                  (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* The same for the first time: it is stopped with the cluster. */
static inline void cluster_start(struct cluster *cluster, const char *type, int index)
{
    cluster->children[cluster->children_count++] = cluster_spawn(cluster, type, index);
}

static inline void cluster_stop(struct cluster *cluster)
{
    for (int i = 0; i < cluster->children_count; i++)
        (void)kill(cluster->children[i], SIGKILL);
    for (int i = 0; i < cluster->children_count; i++)
        (void)waitpid(cluster->children[i], NULL, 0);
}

static inline bool cluster_is_task(int argc, char **argv)
{
    return argc == 5 && strcmp(argv[1], "task") == 0;
}

/* What a child does: it is its task until the job ends. */
static inline int cluster_play(char **argv, const mu_node_options *options)
{
    mu_node *node = cluster_open(argv[4], argv[2], atoi(argv[3]), options);

    return mu_node_wait_job(node, -1, NULL) == 0 ? 0 : 1;
}

static inline int cluster_play_server(char **argv)
{
    mu_node_options options;

    mu_node_options_init(&options);
    cluster_tune_malloc();
    return cluster_play(argv, &options);
}

/* User and system time of a process, by /proc. */
static inline double cluster_cpu_s(pid_t pid)
{
    char path[64];
    unsigned long user = 0;
    unsigned long system = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file == NULL ||
        fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
               &user, &system) != 2)
        cluster_die("processor time", path);
    (void)fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* Parameter servers in processes of their own, children 0 to `servers` - 1, and their
 * chief here. */
static inline mu_node *cluster_begin(struct cluster *cluster, int servers,
                                     const mu_node_options *options)
{
    cluster_make(cluster, 0, servers);
    for (int i = 0; i < servers; i++)
        cluster_start(cluster, "ps", i);
    return cluster_open(cluster->json, "chief", 0, options);
}

static inline void cluster_end(struct cluster *cluster, mu_node *node)
{
    mu_error error;

    cluster_check(mu_node_close(node, 1000, &error), &error);
    cluster_stop(cluster);
}

static inline void cluster_kill_server(struct cluster *cluster, int index)
{
    (void)kill(cluster->children[index], SIGKILL);
    (void)waitpid(cluster->children[index], NULL, 0);
}

static inline void cluster_restart_server(struct cluster *cluster, int index)
{
    cluster->children[index] = cluster_spawn(cluster, "ps", index);
}

/* A number of the chief's status of partitions. */
static inline int64_t cluster_count_partitions(mu_node *chief, const char *key)
{
    mu_value *status = NULL;
    int64_t count = -1;
    mu_error error;

    cluster_check(mu_node_status(chief, 10000, &error, &status), &error);
    (void)mu_value_get_int(mu_value_find(mu_value_find(status, "partitions"), key),
                           &count);
    mu_value_free(status);
    return count;
}

static inline bool cluster_is_whole(mu_node *chief)
{
    return cluster_count_partitions(chief, "placed") > 0 &&
           cluster_count_partitions(chief, "without_primary") == 0 &&
           cluster_count_partitions(chief, "degraded") == 0;
}

static inline bool cluster_is_degraded(mu_node *chief)
{
    return cluster_count_partitions(chief, "degraded") > 0;
}

/* Whether partitions that were degraded get copies, or have them. */
static inline bool cluster_is_refilled(mu_node *chief)
{
    return cluster_count_partitions(chief, "filling") > 0 || cluster_is_whole(chief);
}

/* Until the partitions are as `is` says. */
static inline void cluster_await(mu_node *chief, bool (*is)(mu_node *chief))
{
    uint64_t limit_ns = bench_now_ns() + UINT64_C(60000000000);

    while (!is(chief)) {
        if (bench_now_ns() > limit_ns)
            cluster_die("partitions", "they do not become as expected for 60 s");
        cluster_pause_ms(20); /* a status costs its servers something */
    }
}

/* The number behind `key` in a file of /proc. */
static inline uint64_t cluster_number_in(const char *path, const char *key)
{
    char line[256];
    uint64_t number = 0;
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            number = strtoull(line + strlen(key), NULL, 10);
    (void)fclose(file);
    return number;
}

/* Of a process, by /proc. */
static inline double cluster_status_of(pid_t pid, const char *key)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return (double)cluster_number_in(path, key);
}

static inline double cluster_resident_mib(pid_t pid)
{
    return cluster_status_of(pid, "VmRSS:") / 1024.0;
}

#endif
