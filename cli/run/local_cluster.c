#include "cli/run/processes.h"

#include "cli/resolve/cluster_flags.h"
#include "runtime/base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TYPES_MAX = 26,
    TASKS_MAX = 1000,
    ADDRESS_BYTES = 128,
    FILES_PER_PEER = 3,    /* in `muster run` the pipes, and a port or one pipe more;
                              in a task a connection, another while it is lost */
    FILES_OF_PROGRAM = 64, /* of the node, a journal, plugins */
    THREADS_OF_NODE = 3    /* main thread, loop thread, signal thread */
};

/* Number of tasks of a type. */
struct task_count {
    const char *type;
    int count;
};

/* ---- free addresses ---- */

/* A socket that is bound and does not listen lets the task listen there, if both have
 * SO_REUSEADDR, and keeps the system from giving the port to anybody else. */
static int reserve_port(struct cmd_ports *ports, char *ret_address)
{
    const int on = 1;
    struct sockaddr_in own = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof own;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    ports->fds[ports->count++] = fd;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&own, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &size) != 0)
        return -1;
    (void)snprintf(ret_address, ADDRESS_BYTES, "127.0.0.1:%d", ntohs(own.sin_port));
    return 0;
}

static void release_ports(struct cmd_ports *ports)
{
    for (int i = 0; i < ports->count; i++)
        (void)close(ports->fds[i]);
    free(ports->fds);
    *ports = (struct cmd_ports){NULL, 0};
}

static int assign_address(mu_cluster *cluster, struct cmd_ports *ports,
                          const char *folder, const char *type, int index,
                          mu_error *error)
{
    char address[ADDRESS_BYTES];

    if (folder[0] != '\0')
        (void)snprintf(address, sizeof address, "ipc://%s/%s-%d", folder, type, index);
    else if (reserve_port(ports, address) != 0)
        return mu_error_set(error, -MU_EEXHAUSTED, "no free port for %s/%d: %s", type,
                            index, strerror(errno));
    return mu_cluster_add(cluster, type, index, address, error);
}

static int make_folder(char *ret_folder, mu_error *error)
{
    const char *base = getenv("TMPDIR");

    if (base == NULL || base[0] != '/' || strlen(base) > CMD_FOLDER_BYTES - 20)
        base = "/tmp";
    (void)snprintf(ret_folder, CMD_FOLDER_BYTES, "%s/muster-XXXXXX", base);
    if (mkdtemp(ret_folder) != NULL)
        return 0;
    ret_folder[0] = '\0';
    return mu_error_set(error, -MU_EUNAVAILABLE, "no folder can be made in %s: %s", base,
                        strerror(errno));
}

static size_t total_of(const struct task_count *counts)
{
    size_t total = 0;

    for (; counts->type != NULL; counts++)
        total += (size_t)counts->count;
    return total;
}

static int assign_addresses(const struct task_count *counts, int ipc, mu_error *ret_error,
                            char *ret_folder, struct cmd_ports *ret_ports,
                            mu_cluster **ret_cluster)
{
    struct cmd_ports ports = {.fds = calloc(total_of(counts) + 1, sizeof *ports.fds)};
    mu_cluster *cluster = mu_cluster_new();
    int rv = 0;

    ret_folder[0] = '\0';
    if (cluster == NULL || ports.fds == NULL) {
        mu_cluster_free(cluster);
        free(ports.fds);
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    if (ipc)
        rv = make_folder(ret_folder, ret_error);
    for (; rv == 0 && counts->type != NULL; counts++)
        for (int index = 0; rv == 0 && index < counts->count; index++)
            rv = assign_address(cluster, &ports, ret_folder, counts->type, index,
                                ret_error);
#ifndef __linux__
    release_ports(&ports); /* elsewhere they would keep the tasks away, too */
#endif
    if (rv != 0) {
        cmd_local_cluster_done(ret_folder, cluster, &ports);
        mu_cluster_free(cluster);
        return rv;
    }
    *ret_ports = ports;
    *ret_cluster = cluster;
    return 0;
}

/* Tasks remove their sockets, except those that were killed. */
void cmd_local_cluster_done(const char *folder, const mu_cluster *cluster,
                            struct cmd_ports *ports)
{
    const char *type;
    const char *address;
    int index;

    release_ports(ports);
    if (folder[0] == '\0')
        return;
    for (size_t i = 0; mu_cluster_task_at(cluster, i, &type, &index, &address) == 0; i++)
        (void)unlink(address + strlen("ipc://"));
    (void)rmdir(folder);
}

/* ---- resource limits ---- */

static int prepare_files(size_t tasks, mu_error *error)
{
    const rlim_t need = (rlim_t)tasks * FILES_PER_PEER + FILES_OF_PROGRAM;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return 0;
    if (limit.rlim_max < need)
        return mu_error_set(
            error, -MU_EEXHAUSTED,
            "%zu tasks need %llu open files in a process, and at most "
            "%llu are allowed (ulimit -Hn): expected at most %llu tasks, "
            "or a higher limit",
            tasks, (unsigned long long)need, (unsigned long long)limit.rlim_max,
            limit.rlim_max < FILES_OF_PROGRAM
                ? 0ULL
                : (unsigned long long)(limit.rlim_max - FILES_OF_PROGRAM) /
                      FILES_PER_PEER);
    limit.rlim_cur = need;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    return mu_error_set(error, -MU_EEXHAUSTED,
                        "%zu tasks need %llu open files in a process: that limit cannot "
                        "be set: %s",
                        tasks, (unsigned long long)need, strerror(errno));
}

/* Other processes of this user count, too, but are not known here. Root has no limit. */
static int check_threads(size_t tasks, unsigned threads, mu_error *error)
{
    const rlim_t need = (rlim_t)tasks * (THREADS_OF_NODE + threads);
    struct rlimit limit;

    if (geteuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur >= need)
        return 0;
    return mu_error_set(error, -MU_EEXHAUSTED,
                        "%zu tasks have %llu threads, and this user may have %llu "
                        "(ulimit -u): expected fewer tasks, or a higher limit",
                        tasks, (unsigned long long)need,
                        (unsigned long long)limit.rlim_cur);
}

/* Check that `tasks` processes can be started, each with `threads` executor threads and
 * linked to all others, and raise the soft limit of open files, which they inherit.
 * -MU_EEXHAUSTED: a hard limit is too low. */
static int prepare_limits(size_t tasks, unsigned threads, mu_error *error)
{
    int rv = check_threads(tasks, threads, error);

    return rv != 0 ? rv : prepare_files(tasks, error);
}

/* ---- --counts: task types of the program ---- */

struct own_types {
    char names[TYPES_MAX][16];
    struct task_count counts[TYPES_MAX + 1]; /* the type NULL ends them */
    size_t count;
};

/* Whether a name is valid for a type of the program: not one of muster's types. */
static bool is_own_type_name(const char *name)
{
    return strcmp(name, "worker") != 0 && cmd_is_worker_type(name);
}

static bool has_own_type(const struct own_types *own, const char *name)
{
    for (size_t i = 0; i < own->count; i++)
        if (strcmp(own->names[i], name) == 0)
            return true;
    return false;
}

/* Parse one "gpu=2". Returns false when it is not valid. */
static bool parse_type_count(struct own_types *own, const char *text, size_t size)
{
    size_t length = strcspn(text, "=");
    char *name = own->names[own->count];
    char *end;
    unsigned long count;

    if (length >= size || length >= sizeof own->names[0] || own->count == TYPES_MAX ||
        text[length + 1] < '0' || text[length + 1] > '9')
        return false;
    (void)snprintf(name, sizeof own->names[0], "%.*s", (int)length, text);
    count = strtoul(text + length + 1, &end, 10);
    if (end != text + size || count < 1 || count > TASKS_MAX || !is_own_type_name(name) ||
        has_own_type(own, name))
        return false;
    own->counts[own->count++] = (struct task_count){name, (int)count};
    return true;
}

static int parse_type_counts(const struct cmd_options *options, mu_error *error,
                             struct own_types *own)
{
    const char *text = cmd_text(options, CMD_FLAG_COUNTS);
    char origin[64];
    char got[MU__QUOTE_BYTES];

    for (const char *at = text; at != NULL; at = strchr(at, ',')) {
        at += at != text;
        if (parse_type_count(own, at, strcspn(at, ",")))
            continue;
        mu__quote(got, sizeof got, text, strlen(text));
        return mu_error_set(error, -MU_EINVALID,
                            "%s: expected how many tasks there are of at most %d types "
                            "of your own, each once, as in gpu=2,cpu=3, and 1 to %d of "
                            "each, got %s",
                            cmd_origin(options, CMD_FLAG_COUNTS, origin, sizeof origin),
                            TYPES_MAX, TASKS_MAX, got);
    }
    return 0;
}

/* ---- All tasks ---- */

/* The default types, then the types of --counts. */
static int add_counts(const struct cmd_options *o, const struct own_types *own,
                      struct task_count *counts, mu_error *error)
{
    const struct task_count defaults[] = {
        {"chief", cmd_mode(o) == MU_MODE_LOCAL ? 1 : (int)cmd_number(o, CMD_FLAG_CHIEF)},
        {"evaluator", (int)cmd_number(o, CMD_FLAG_EVALUATOR)},
        {"ps", (int)cmd_number(o, CMD_FLAG_PS)},
        {"worker", (int)cmd_number(o, CMD_FLAG_WORKERS)},
        {"client", cmd_mode(o) == MU_MODE_STANDALONE},
    };
    bool is_local = cmd_mode(o) == MU_MODE_LOCAL;
    size_t defaults_count = is_local ? 1 : sizeof defaults / sizeof defaults[0];
    size_t own_count = is_local ? 0 : own->count;
    unsigned processes = cmd_number(o, CMD_FLAG_PROCESSES);

    memcpy(counts, defaults, defaults_count * sizeof *counts);
    memcpy(counts + defaults_count, own->counts, own_count * sizeof *counts);
    counts[defaults_count + own_count] = (struct task_count){NULL, 0};
    if (total_of(counts) == 0)
        return mu_error_set(error, -MU_EINVALID,
                            "there is nothing to run: expected a task at least");
    return prepare_limits(total_of(counts),
                          processes > 0 ? 2 * processes /* each has a thread here */
                                        : cmd_number(o, CMD_FLAG_THREADS),
                          error);
}

int cmd_local_cluster_new(const struct cmd_options *options, mu_error *ret_error,
                          char *ret_folder, struct cmd_ports *ret_ports,
                          mu_cluster **ret_cluster)
{
    struct task_count counts[TYPES_MAX + 8];
    struct own_types own = {.count = 0};
    int rv = cmd_worker_types_check(options, ret_error);

    if (rv == 0)
        rv = parse_type_counts(options, ret_error, &own);
    if (rv == 0)
        rv = add_counts(options, &own, counts, ret_error);
    return rv != 0
               ? rv
               : assign_addresses(counts, cmd_number(options, CMD_FLAG_TRANSPORT) == 0,
                                  ret_error, ret_folder, ret_ports, ret_cluster);
}
