/* A real etcd server of a test's own, on loopback and in a fresh folder. It dies with the
 * test; every wait has a limit. */
#ifndef MUSTER_TESTS_REAL_ETCD_H
#define MUSTER_TESTS_REAL_ETCD_H

#include "tests/real/needs.h"
#include "tests/real/nodes.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

struct etcd {
    char folder[64];
    int port;
    int peer_port;
    pid_t pid;
    const char *certificate; /* "DIR/NAME" of NAME.pem and NAME.key: it takes https */
    const char *client_ca;   /* a file: only of clients with a certificate of these */
    const char *token_ttl_s; /* of its users' tokens; NULL: as it comes */
};

/* The arguments that say how it is reached and by whom. */
static inline void etcd_secure(const struct etcd *etcd, char *files, size_t size,
                               const char **arguments)
{
    char *key = files + size / 2;

    if (etcd->certificate != NULL) {
        (void)snprintf(files, size / 2, "%s.pem", etcd->certificate);
        (void)snprintf(key, size / 2, "%s.key", etcd->certificate);
        *arguments++ = "--cert-file";
        *arguments++ = files;
        *arguments++ = "--key-file";
        *arguments++ = key;
    }
    if (etcd->client_ca != NULL) {
        *arguments++ = "--client-cert-auth";
        *arguments++ = "--trusted-ca-file";
        *arguments++ = etcd->client_ca;
    }
    if (etcd->token_ttl_s != NULL) {
        *arguments++ = "--auth-token-ttl";
        *arguments++ = etcd->token_ttl_s;
    }
}

static inline void etcd_exec(const struct etcd *etcd)
{
    const char *arguments[32] = {"etcd", "--data-dir", "data", "--log-level", "error"};
    size_t count = 5;
    char files[512];
    char client[64];
    char peer[64];
    char cluster[80];
    char log[96];
    int file;

#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    (void)snprintf(client, sizeof client, "%s://127.0.0.1:%d",
                   etcd->certificate == NULL ? "http" : "https", etcd->port);
    (void)snprintf(peer, sizeof peer, "http://127.0.0.1:%d", etcd->peer_port);
    (void)snprintf(cluster, sizeof cluster, "default=%s", peer);
    (void)snprintf(log, sizeof log, "%s/log", etcd->folder);
    file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || chdir(etcd->folder) != 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0)
        _exit(126);
    arguments[count++] = "--listen-client-urls";
    arguments[count++] = client;
    arguments[count++] = "--advertise-client-urls";
    arguments[count++] = client;
    arguments[count++] = "--listen-peer-urls";
    arguments[count++] = peer;
    arguments[count++] = "--initial-advertise-peer-urls";
    arguments[count++] = peer;
    arguments[count++] = "--initial-cluster";
    arguments[count++] = cluster;
    etcd_secure(etcd, files, sizeof files, arguments + count);
    (void)execvp("etcd", (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static inline bool etcd_answers(const struct etcd *etcd)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool up;

    address.sin_port = htons((uint16_t)etcd->port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    up = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    (void)close(fd);
    return up;
}

static inline void etcd_start(struct etcd *etcd)
{
    etcd->pid = fork();
    assert_true(etcd->pid >= 0);
    if (etcd->pid == 0)
        etcd_exec(etcd);
    for (int i = 0; i < SOON_MS && !etcd_answers(etcd); i++) {
        if (waitpid(etcd->pid, NULL, WNOHANG) != 0)
            fail_msg("etcd has ended; see %s/log", etcd->folder);
        nodes_pause();
    }
    assert_true(etcd_answers(etcd));
}

static inline void etcd_kill(struct etcd *etcd)
{
    if (etcd->pid <= 0)
        return;
    assert_int_equal(kill(etcd->pid, SIGKILL), 0);
    assert_int_equal(waitpid(etcd->pid, NULL, 0), etcd->pid);
    etcd->pid = 0;
}

static inline void etcd_open(struct etcd *etcd)
{
    (void)snprintf(etcd->folder, sizeof etcd->folder, "/tmp/muster-etcd-XXXXXX");
    assert_non_null(mkdtemp(etcd->folder));
    etcd->port = ports_free();
    etcd->peer_port = ports_free();
    etcd_start(etcd);
}

static inline void etcd_close(struct etcd *etcd)
{
    char command[128];

    etcd_kill(etcd);
    (void)snprintf(command, sizeof command, "rm -r %s", etcd->folder);
    assert_int_equal(system(command), 0);
}

#endif
