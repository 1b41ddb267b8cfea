/* A real DNS server of a test's own (dnsmasq), on loopback and with a fresh folder. It
 * knows *.test alone: names of a hosts file, which it reads again when it is told to, and
 * what its configuration says. It dies with the test; every wait has a limit. */
#ifndef MUSTER_TESTS_REAL_DNSMASQ_H
#define MUSTER_TESTS_REAL_DNSMASQ_H

#include "tests/real/files.h"
#include "tests/real/needs.h"
#include "tests/real/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct dnsmasq {
    char folder[64];
    int port;
    pid_t pid;
};

static inline void dnsmasq_write(const struct dnsmasq *dnsmasq, const char *name,
                                 const char *text)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", dnsmasq->folder, name);
    files_replace(path, text);
}

static inline void dnsmasq_exec(const struct dnsmasq *dnsmasq)
{
    char configuration[96];
    char hosts[96];
    char port[32];
    char program[NEEDS_PATH_BYTES];
    char log[96];
    int file;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(configuration, sizeof configuration, "--conf-file=%s/conf",
                   dnsmasq->folder);
    (void)snprintf(hosts, sizeof hosts, "--addn-hosts=%s/hosts", dnsmasq->folder);
    (void)snprintf(port, sizeof port, "--port=%d", dnsmasq->port);
    (void)snprintf(log, sizeof log, "%s/log", dnsmasq->folder);
    file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0 ||
        !needs_find("dnsmasq", program, sizeof program))
        _exit(126);
    (void)execl(program, "dnsmasq", configuration, hosts, port, "--keep-in-foreground",
                "--log-facility=-", "--pid-file=", "--user=", "--no-resolv", "--no-hosts",
                "--no-poll", "--local=/test/", "--listen-address=127.0.0.1",
                "--bind-interfaces", "--cache-size=0", (char *)NULL);
    _exit(127);
}

/* A question for "ready.test", and whether its answer has come within 10 ms. */
static inline bool dnsmasq_answers(const struct dnsmasq *dnsmasq)
{
    static const unsigned char query[] = "\7\7\1\0\0\1\0\0\0\0\0\0\5ready\4test\0"
                                         "\0\1\0\1";
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    unsigned char bytes[512];
    bool up;

    address.sin_port = htons((uint16_t)dnsmasq->port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    up = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
         send(fd, query, sizeof query - 1, 0) > 0 && poll(&poll_fd, 1, 10) == 1 &&
         recv(fd, bytes, sizeof bytes, 0) > 12;
    (void)close(fd);
    return up;
}

static inline void dnsmasq_start(struct dnsmasq *dnsmasq)
{
    bool is_up = false;

    dnsmasq->pid = fork();
    assert_true(dnsmasq->pid >= 0);
    if (dnsmasq->pid == 0)
        dnsmasq_exec(dnsmasq);
    for (int i = 0; i < SOON_MS && !(is_up = dnsmasq_answers(dnsmasq)); i++) {
        if (waitpid(dnsmasq->pid, NULL, WNOHANG) != 0)
            fail_msg("dnsmasq has ended; see %s/log", dnsmasq->folder);
        nodes_pause();
    }
    assert_true(is_up);
}

/* `port` 0: a free one. */
static inline void dnsmasq_open(struct dnsmasq *dnsmasq, int port,
                                const char *configuration, const char *hosts)
{
    (void)snprintf(dnsmasq->folder, sizeof dnsmasq->folder, "/tmp/muster-dns-XXXXXX");
    assert_non_null(mkdtemp(dnsmasq->folder));
    assert_int_equal(chmod(dnsmasq->folder, 0755), 0);
    dnsmasq_write(dnsmasq, "conf", configuration);
    dnsmasq_write(dnsmasq, "hosts", hosts);
    dnsmasq->port = port;
    if (port == 0)
        dnsmasq->port = ports_free();
    dnsmasq_start(dnsmasq);
}

/* Other names from now on. The server is asked until it knows: it reads the file when it
 * has the time. */
static inline void dnsmasq_change(const struct dnsmasq *dnsmasq, const char *hosts)
{
    dnsmasq_write(dnsmasq, "hosts", hosts);
    assert_int_equal(kill(dnsmasq->pid, SIGHUP), 0);
}

static inline void dnsmasq_kill(struct dnsmasq *dnsmasq)
{
    if (dnsmasq->pid <= 0)
        return;
    assert_int_equal(kill(dnsmasq->pid, SIGKILL), 0);
    assert_int_equal(waitpid(dnsmasq->pid, NULL, 0), dnsmasq->pid);
    dnsmasq->pid = 0;
}

static inline void dnsmasq_close(struct dnsmasq *dnsmasq)
{
    char command[128];

    dnsmasq_kill(dnsmasq);
    (void)snprintf(command, sizeof command, "rm -r %s", dnsmasq->folder);
    assert_int_equal(system(command), 0);
}

#endif
