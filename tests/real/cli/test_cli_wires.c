/* Clusters of real processes on both wires: they mix, addresses choose a wire by
 * themselves, and what a wire does not have is refused with words. */
#include "tests/real/cli.h"
#include "tests/real/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { TASKS = 3 };

static const char *const names[TASKS] = {"chief:0", "worker:0", "worker:1"};
static struct cli tasks[TASKS];
static struct cli asked;
static char spec[512];
static char chief[128];

/* Ports that are free now, of loopback. */
static void find_ports(int *ret_ports)
{
    for (int i = 0; i < TASKS; i++)
        ret_ports[i] = ports_free();
}

static void make_spec(const char *scheme)
{
    int ports[TASKS];

    find_ports(ports);
    (void)snprintf(spec, sizeof spec,
                   "{\"chief\":[\"%s://127.0.0.1:%d\"],"
                   "\"worker\":[\"%s://127.0.0.1:%d\",\"%s://127.0.0.1:%d\"]}",
                   scheme, ports[0], scheme, ports[1], scheme, ports[2]);
    (void)snprintf(chief, sizeof chief, "%s://127.0.0.1:%d", scheme, ports[0]);
}

static void start_task(int which, const char *wire)
{
    if (wire != NULL)
        cli_start(&tasks[which], NULL, "node", "--cluster", spec, "--task", names[which],
                  "--wire", wire, NULL);
    else
        cli_start(&tasks[which], NULL, "node", "--cluster", spec, "--task", names[which],
                  NULL);
}

static void expect_cluster(void)
{
    (void)cli_expect(&tasks[0], NULL, "/job:worker/task:0 takes closures");
    (void)cli_expect(&tasks[0], NULL, "/job:worker/task:1 takes closures");
}

static void stop_all(void)
{
    for (int i = TASKS - 1; i >= 0; i--) {
        cli_kill(&tasks[i], SIGTERM);
        cli_expect_code(&tasks[i], 0);
    }
}

/* A worker that dies is missed, and comes back on the other wire. */
static void check_mixed(const char *of_chief, const char *of_first, const char *of_second)
{
    const char *from;

    make_spec("tcp");
    start_task(0, of_chief);
    start_task(1, of_first);
    start_task(2, of_second);
    expect_cluster();
    cli_start(&asked, NULL, "status", "--address", chief, "--wire", of_first, NULL);
    cli_expect_code(&asked, 0);
    cli_kill(&tasks[1], SIGKILL);
    from = cli_expect(&tasks[0], NULL, "/job:worker/task:0 is lost");
    cli_expect_code(&tasks[1], 128 + SIGKILL);
    start_task(1, of_second);
    (void)cli_expect(&tasks[0], from, "/job:worker/task:0 takes closures");
    stop_all();
}

TEST(test_chief_on_nng)
{
    check_mixed("nng", "uv", "nng");
}

TEST(test_chief_on_uv)
{
    check_mixed("uv", "nng", "uv");
}

/* The address says which wire, of the client, too. */
TEST(test_ws_by_its_address)
{
    make_spec("ws");
    for (int i = 0; i < TASKS; i++)
        start_task(i, NULL);
    expect_cluster();
    cli_start(&asked, NULL, "status", "--address", chief, NULL);
    cli_expect_code(&asked, 0);
    assert_non_null(strstr(asked.text, chief));
    cli_start(&asked, NULL, "check", "--cluster", spec, NULL);
    (void)cli_expect(&asked, NULL, "only nng's sockets have its scheme");
    cli_expect_code(&asked, 4);
    stop_all();
}

static void expect_refusal(const char *flag, const char *value, const char *words)
{
    cli_start(&tasks[0], NULL, "node", "--cluster", spec, "--task", names[0], "--wire",
              "nng", flag, value, NULL);
    (void)cli_expect(&tasks[0], NULL, words);
    assert_int_not_equal(cli_wait(&tasks[0]), 0);
}

TEST(test_refusals)
{
    assert_int_equal(unsetenv("MUSTER_INSECURE"), 0);
    make_spec("ws");
    start_task(0, NULL);
    (void)cli_expect(&tasks[0], NULL, "proves itself by certificates, not by a key");
    assert_int_not_equal(cli_wait(&tasks[0]), 0);
    start_task(0, "uv");
    (void)cli_expect(&tasks[0], NULL, "the wire \"uv\" has tcp:// and ipc://");
    assert_int_not_equal(cli_wait(&tasks[0]), 0);
    start_task(0, "zmq");
    (void)cli_expect(&tasks[0], NULL, "expected \"uv\" or \"nng\"");
    assert_int_not_equal(cli_wait(&tasks[0]), 0);
    expect_refusal("--key-file", "/dev/null",
                   "proves itself by certificates, not by a key");
    expect_refusal("--tls-ca", "/dev/null", "does not learn which task");
}

/* Of the clusters that mix, since nng's sockets have no keys. */
static int speak_plain(void **state)
{
    (void)state;
    return setenv("MUSTER_INSECURE", "1", 1);
}

TEST_PROGRAM_WITH(speak_plain, NULL)
