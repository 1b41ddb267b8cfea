/* A machine of the test's own: a network with nothing but loopback, and a file system in
 * which files can be replaced without anybody else noticing. Define _GNU_SOURCE before
 * the first include. */
#ifndef MUSTER_TESTS_REAL_MACHINE_H
#define MUSTER_TESTS_REAL_MACHINE_H

#include "tests/real/dnsmasq.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

static inline bool machine_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t size = strlen(text);
    bool whole = fd >= 0 && write(fd, text, size) == (ssize_t)size;

    if (fd >= 0)
        (void)close(fd);
    return whole;
}

/* A user who is nobody elsewhere may be root there. */
static inline bool machine_leave(void)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    char text[64];

    if (user == 0)
        return unshare(CLONE_NEWNET | CLONE_NEWNS) == 0;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0)
        return false;
    (void)machine_write("/proc/self/setgroups", "deny");
    (void)snprintf(text, sizeof text, "0 %u 1", (unsigned)user);
    if (!machine_write("/proc/self/uid_map", text))
        return false;
    (void)snprintf(text, sizeof text, "0 %u 1", (unsigned)group);
    return machine_write("/proc/self/gid_map", text);
}

static inline bool machine_lift_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool done = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0;

    request.ifr_flags = (short)(request.ifr_flags | IFF_UP | IFF_RUNNING);
    done = done && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    if (fd >= 0)
        (void)close(fd);
    return done;
}

/* The file at `path`, which there is, is another one from now on. */
static inline bool machine_put_file(const char *path, const char *text)
{
    char own[] = "/tmp/muster-names-XXXXXX";
    int fd = mkstemp(own);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
                fchmod(fd, 0644) == 0 && mount(own, path, NULL, MS_BIND, NULL) == 0;

    if (fd >= 0)
        (void)close(fd);
    (void)unlink(own);
    return done;
}

/* NULL, or what is not permitted here. */
static inline const char *machine_make(void)
{
    if (!machine_leave())
        return "namespaces are not permitted";
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return "mounts are not permitted";
    return machine_lift_loopback() ? NULL : "the loopback interface cannot be lifted";
}

/* The same, with the names that a server of the test at 127.0.0.1:53 knows. */
static inline const char *machine_make_names(void)
{
    const char *reason = machine_make();

    if (reason != NULL)
        return reason;
    if (!machine_put_file("/etc/resolv.conf",
                          "nameserver 127.0.0.1\noptions timeout:1\n") ||
        !machine_put_file("/etc/nsswitch.conf", "hosts: dns\n"))
        return "files in /etc cannot be replaced";
    return NULL;
}

#endif
