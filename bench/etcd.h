/* An etcd for benchmarks: one server, with its data in a new folder beside the running
 * executable, so on the disk that has the build. It ends with this process. */
#ifndef MUSTER_BENCH_ETCD_H
#define MUSTER_BENCH_ETCD_H

#include "bench/bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { ETCD_TRIES = 200 };

struct etcd {
    char folder[BENCH_PATH_MAX];
    unsigned port; /* for clients, on 127.0.0.1 */
    pid_t pid;
};

/* A new directory on the disk of the build, since /tmp is often in memory. */
static inline int bench_folder(char *ret_folder, size_t capacity)
{
    char dir[BENCH_PATH_MAX];

    if (bench_own_dir(dir, sizeof dir) != 0 ||
        (size_t)snprintf(ret_folder, capacity, "%s/kept-XXXXXX", dir) >= capacity)
        return -1;
    return mkdtemp(ret_folder) == NULL ? -1 : 0;
}

static inline void bench_folder_remove(const char *folder)
{
    char command[BENCH_PATH_MAX + 16];

    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    if (system(command) != 0)
        fprintf(stderr, "%s is left behind\n", folder);
}

/* Returns a socket, or -1 when nothing listens. */
static inline int etcd_connect(unsigned port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static inline unsigned etcd_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        abort();
    close(fd);
    return ntohs(at.sin_port);
}

static inline void etcd_run(const struct etcd *etcd, unsigned peer_port)
{
    char url[64];
    char peer[64];
    char cluster[80];

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", etcd->port);
    (void)snprintf(peer, sizeof peer, "http://127.0.0.1:%u", peer_port);
    (void)snprintf(cluster, sizeof cluster, "default=%s", peer);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (freopen("/dev/null", "w", stderr) != NULL)
        execlp("etcd", "etcd", "--data-dir", etcd->folder, "--listen-client-urls", url,
               "--advertise-client-urls", url, "--listen-peer-urls", peer,
               "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster,
               (char *)NULL);
    _exit(1);
}

static inline void etcd_end(struct etcd *etcd)
{
    (void)kill(etcd->pid, SIGKILL);
    (void)waitpid(etcd->pid, NULL, 0);
    bench_folder_remove(etcd->folder);
}

/* Returns 0 when it listens; -1, with nothing left behind, when it cannot be started. */
static inline int etcd_begin(struct etcd *etcd)
{
    const struct timespec moment = {.tv_nsec = 50000000};
    unsigned peer_port;

    if (bench_folder(etcd->folder, sizeof etcd->folder) != 0)
        return -1;
    etcd->port = etcd_free_port();
    peer_port = etcd_free_port();
    etcd->pid = fork();
    if (etcd->pid == 0)
        etcd_run(etcd, peer_port);
    for (int i = 0; etcd->pid > 0 && i < ETCD_TRIES; i++) {
        int fd = etcd_connect(etcd->port);

        if (fd >= 0) {
            close(fd);
            return 0;
        }
        (void)nanosleep(&moment, NULL);
    }
    if (etcd->pid > 0)
        etcd_end(etcd);
    else
        bench_folder_remove(etcd->folder);
    return -1;
}

#endif
