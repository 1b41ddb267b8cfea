/* Sockets that listen before there is a wire, addresses to tell, and files that are
 * written whole. */
#define _GNU_SOURCE /* unshare */

#include "tests/real/nodes.h"

#include "node/discovery/own_address.h"
#include "resolver/engine/uv/write.h"
#include "tests/real/needs.h"
#include "transport/wire/uv/listen.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* What connects early waits. */
TEST(test_tcp)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct mu__listening listening;
    struct mu__listening other;
    mu_error error = {0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    unsigned port = 0;

    assert_true(fd >= 0);
    assert_int_equal(mu__listen("tcp://127.0.0.1:0", &error, &listening), 0);
    assert_int_equal(sscanf(listening.text, "tcp://127.0.0.1:%u", &port), 1);
    assert_int_not_equal(port, 0);
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(mu__listen(listening.text, &error, &other), -MU_EEXISTS);
    assert_non_null(strstr(error.message, listening.text));
    assert_non_null(strstr(error.message, "another process (or node) listens there"));
    (void)close(fd);
    mu__listening_close(&listening);
    mu__listening_close(&listening);
}

TEST(test_ipc)
{
    char folder[] = "/tmp/muster-listen-XXXXXX";
    struct mu__listening listening;
    struct mu__listening other;
    char url[64];
    mu_error error = {0};

    assert_non_null(mkdtemp(folder));
    (void)snprintf(url, sizeof url, "ipc://%s/s", folder);
    assert_int_equal(mu__listen(url, &error, &listening), 0);
    assert_string_equal(listening.text, url);
    assert_int_equal(mu__listen(url, &error, &other), -MU_EEXISTS);
    /* As after a crash: the file is there, and nobody listens. */
    (void)close(listening.fd);
    assert_int_equal(mu__listen(url, &error, &listening), 0);
    mu__listening_close(&listening);
    assert_int_equal(rmdir(folder), 0);
}

TEST(test_refused)
{
    static const struct {
        const char *url;
        int code;
        const char *words;
    } rows[] = {
        {"127.0.0.1:1", -MU_EINVALID, "tcp://"},
        {"tcp://127.0.0.1", -MU_EINVALID, "port"},
        {"tcp://192.0.2.1:0", -MU_EINVALID,
         "expected an address of this machine, whose interface is up"},
        {"ipc:///no/such/folder/s", -MU_EINVALID, "no such file"},
    };
    struct mu__listening listening;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_error error = {0};

        assert_int_equal(mu__listen(rows[i].url, &error, &listening), rows[i].code);
        assert_non_null(strstr(error.message, rows[i].url));
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s", error.message);
    }
}

/* ---- What a machine can be like ---- */

/* In a process of its own, since what it gives up does not come back. Where the machine
 * cannot be made like this, nothing is tested. */
static void expect_after(bool (*prepare)(void), bool (*holds)(void))
{
    enum { CANNOT = 77 };
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(!prepare() ? CANNOT : holds() ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT)
        needs_skip_test("the machine cannot be made as the test wants it");
    assert_int_equal(WEXITSTATUS(status), 0);
}

static bool give_up_privileges(void)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");
    int first = 0;

    if (file == NULL || fscanf(file, "%d", &first) != 1 || first < 2)
        return false;
    (void)fclose(file);
    return getuid() != 0 || setuid(65534) == 0;
}

static bool is_refused_port_1(void)
{
    struct mu__listening listening;
    mu_error error = {0};

    return mu__listen("tcp://127.0.0.1:1", &error, &listening) == -MU_EPERMISSION &&
           strstr(error.message, "cannot listen at tcp://127.0.0.1:1: permission "
                                 "denied; expected a port of 1024 or more") != NULL;
}

TEST(test_privileged_port)
{
    assert_null(*state);
    expect_after(give_up_privileges, is_refused_port_1);
}

/* A network of its own has one interface, which is not up yet. */
static bool take_interfaces_down(void)
{
    return unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

static bool is_own_host_loopback(void)
{
    char host[MU__OWN_HOST_BYTES];

    mu__own_host(host);
    return strcmp(host, "127.0.0.1") == 0;
}

/* Addresses of interfaces that are down are not told. */
TEST(test_interfaces_are_down)
{
    assert_null(*state);
    expect_after(take_interfaces_down, is_own_host_loopback);
}

TEST(test_advertised)
{
    static const struct {
        const char *url;
        const char *advertise;
        const char *expected;
    } rows[] = {
        {"tcp://127.0.0.1:4000", NULL, "tcp://127.0.0.1:4000"},
        {"tcp://127.0.0.1:4000", "me.example", "tcp://me.example:4000"},
        {"tcp://127.0.0.1:4000", "me.example:0", "tcp://me.example:4000"},
        {"tcp://0.0.0.0:4000", "tcp://me.example:0", "tcp://me.example:4000"},
        {"tcp://[::]:4000", "[2001:db8::1]", "tcp://[2001:db8::1]:4000"},
        {"tcp://[::]:4000", "[2001:db8::1]:0", "tcp://[2001:db8::1]:4000"},
        {"tcp://127.0.0.1:4000", "tcp://me.example:80", "tcp://me.example:80"},
        {"tcp://[::1]:4000", NULL, "tcp://[::1]:4000"},
        {"ipc:///x/s", NULL, "ipc:///x/s"},
        {"tcp://127.0.0.1:4000", "ipc:///x/s", "ipc:///x/s"},
    };
    char out[MU__OWN_ADDRESS_BYTES];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu__advertised(rows[i].url, rows[i].advertise, out);
        assert_string_equal(out, rows[i].expected);
    }
}

/* In place of "any" stands this machine's address, at which one can listen. */
TEST(test_own_address)
{
    struct mu__listening listening;
    char host[MU__OWN_HOST_BYTES];
    char out[MU__OWN_ADDRESS_BYTES];
    char expected[MU__OWN_ADDRESS_BYTES];
    mu_error error = {0};
    bool v6;

    mu__own_host(host);
    v6 = strchr(host, ':') != NULL;
    (void)snprintf(expected, sizeof expected, v6 ? "tcp://[%s]:4000" : "tcp://%s:4000",
                   host);
    mu__advertised("tcp://0.0.0.0:4000", NULL, out);
    assert_string_equal(out, expected);
    (void)snprintf(out, sizeof out, v6 ? "tcp://[%s]:0" : "tcp://%s:0", host);
    if (mu__listen(out, &error, &listening) != 0)
        fail_msg("%s", error.message);
    mu__listening_close(&listening);
}

static void expect_content(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    (void)fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    assert_string_equal(text, expected);
}

TEST(test_files)
{
    char folder[] = "/tmp/muster-write-XXXXXX";
    struct stat about;
    char path[64];
    mu_error error = {0};

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/worker-0", folder);
    assert_int_equal(mu__file_write(path, "one", 3, true, &error), 0);
    expect_content(path, "one");
    assert_int_equal(mu__file_write(path, "two", 3, true, &error), -MU_EEXISTS);
    expect_content(path, "one");
    assert_int_equal(mu__file_write(path, "three", 5, false, &error), 0);
    expect_content(path, "three");
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0644);
    assert_int_equal(mu__file_remove(path, &error), 0);
    assert_int_equal(mu__file_remove(path, &error), -MU_ENOTFOUND);
    assert_non_null(strstr(error.message, path));
    /* Nothing of what failed is left behind. */
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mu__file_write(path, "x", 1, false, &error), -MU_ENOTFOUND);
}

TEST_PROGRAM()
