/* Ports of loopback for tests that run beside each other. */
#ifndef MUSTER_TESTS_REAL_PORTS_H
#define MUSTER_TESTS_REAL_PORTS_H

#include "tests/support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Those that the system gives to nobody who does not ask for them. */
enum { PORTS_FIRST = 10000, PORTS_LAST = 30000 };

/* Keeps a port from all other tests until this process has ended, by a name that only one
 * socket of a machine can have. False: another one has it. */
static inline bool ports_claim(int port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t length;

    assert_true(fd >= 0);
    length = (size_t)snprintf(name.sun_path + 1, sizeof name.sun_path - 1,
                              "muster-test-port-%d", port);
    length += 1 + offsetof(struct sockaddr_un, sun_path);
    if (bind(fd, (struct sockaddr *)&name, (socklen_t)length) == 0)
        return true;
    (void)close(fd);
    return false;
}

/* A socket that is bound to a port of loopback, 0: to any one. -1: it is in use. */
static inline int ports_bind(int port, int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(port == 0 ? INADDR_LOOPBACK : INADDR_ANY);
    *ret_port = port;
    assert_true(fd >= 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* A port that is in use until the returned socket is closed; it may listen. */
static inline int ports_bound(int *ret_port)
{
    int fd = ports_bind(0, ret_port);

    assert_true(fd >= 0);
    return fd;
}

/* Nobody listens there, and no other test will. */
static inline bool ports_is_free(int port)
{
    int fd = ports_bind(port, &port);

    if (fd < 0)
        return false;
    (void)close(fd);
    return ports_claim(port);
}

/* The first of `count` ports in a row that nobody has now, nor any other test until this
 * process ends; others at each call. */
static inline int ports_free_run(int count)
{
    static int next;

    if (next == 0)
        next = PORTS_FIRST + (int)(getpid() % 4000) * 4;
    for (int tries = 0; tries < 4000; tries++) {
        int port = next;
        int got = 0;

        if (port + count > PORTS_LAST)
            port = PORTS_FIRST;
        while (got < count && ports_is_free(port + got))
            got++;
        next = port + (got < count ? got + 1 : count);
        if (got == count)
            return port;
    }
    fail_msg("no %d ports in a row from %d to %d are free", count, PORTS_FIRST,
             PORTS_LAST);
    return 0;
}

static inline int ports_free(void)
{
    return ports_free_run(1);
}

#endif
