/* `muster node` where the name servers say nothing: it goes on without a name that it
 * does not need, and a signal ends one that waits. In a network and a file system of the
 * test's own, where this machine's DNS server is the test's. */
#define _GNU_SOURCE /* unshare */

#include "tests/real/cli.h"
#include "tests/real/machine.h"
#include "tests/real/needs.h"

/* Longer than anything here waits. */
static const char resolv_conf[] = "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n";

static struct cli cli;
static int server; /* has questions, which it does not answer */

static bool open_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(53)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return bind(server, (struct sockaddr *)&address, sizeof address) == 0;
}

static void forget_questions(void)
{
    char bytes[512];

    while (recv(server, bytes, sizeof bytes, 0) > 0)
        continue;
}

/* While its look-up waits, which is said to have begun by a question. */
static void expect_end_by(int number)
{
    struct pollfd readable = {.fd = server, .events = POLLIN};
    char line[32];

    assert_int_equal(poll(&readable, 1, CLI_SOON_MS), 1);
    cli_kill(&cli, number);
    cli_expect_code(&cli, 128 + number);
    (void)snprintf(line, sizeof line, ": signal %d (", number);
    (void)cli_expect(&cli, NULL, line);
    forget_questions();
}

TEST(test_interrupted)
{
    static const char cluster[] = "{\"chief\":[\"chief.test:7001\"]}";

    cli_start(&cli, NULL, "node", "--cluster", cluster, "--task", "chief:0", NULL);
    expect_end_by(SIGINT);
    cli_start(&cli, NULL, "node", "--cluster", cluster, "--task", "chief:0", NULL);
    expect_end_by(SIGTERM);
    cli_start(&cli, NULL, "node", "--wait-cluster", "--bind", "tcp://chief.test:7001",
              NULL);
    expect_end_by(SIGINT);
}

/* Its own host's name is not needed. */
static void expect_up(const char *who)
{
    char line[128];

    (void)snprintf(line, sizeof line, "%s: this machine's own name is not looked up",
                   who);
    (void)cli_expect(&cli, NULL, line);
    (void)cli_expect(&cli, NULL, " is up at tcp://127.0.0.1:");
    cli_stop(&cli);
}

TEST(test_own_name)
{
    static const char cluster[] =
        "{\"chief\":[\"127.0.0.1:7001\"],\"worker\":[\"127.0.0.1:7002\"]}";

    cli_start(&cli, NULL, "node", "--cluster", cluster, "--task", "worker:5", "--bind",
              "tcp://0.0.0.0:0", NULL);
    expect_up("node");
}

TEST(test_own_name_told)
{
    char folder[64];
    char setting[96];
    char command[96];

    cli_folder(folder, sizeof folder);
    (void)snprintf(setting, sizeof setting, "path=%s", folder);
    cli_start(&cli, NULL, "node", "--resolver", "directory", "--resolver-set", setting,
              "--task", "chief:0", NULL);
    expect_up("resolver");
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const char *reason = machine_make();

    if (reason == NULL && (!machine_put_file("/etc/resolv.conf", resolv_conf) ||
                           !machine_put_file("/etc/nsswitch.conf", "hosts: dns\n")))
        reason = "files in /etc cannot be replaced";
    if (reason == NULL && !open_server())
        reason = "no DNS server can be opened";
    if (reason != NULL)
        return needs_skip(reason);
    return tests_run(NULL, NULL);
}
