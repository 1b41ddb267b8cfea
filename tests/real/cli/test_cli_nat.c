/* Clients and a worker that can dial and cannot be dialled: they are in a network of
 * their own, whose one way out is a relay to the chief's port, as of NAT or `ssh -L`. */
#define _GNU_SOURCE
#include "tests/real/cli.h"
#include "tests/real/machine.h"
#include "tests/real/nodes.h"

enum { WAYS_MAX = 64 }; /* connections of all programs here to the chief */

static struct cli chief;
static struct cli worker;
static struct cli asked;
static struct cli watcher;
static char folder[64];
static char plugin[96];
static char cluster[128];
static char address[64];
static int port;

static const char plugin_text[] =
    "#include <muster.h>\n"
    "static int square(mu_run *run, void *user)\n"
    "{\n"
    "    int64_t x = 0;\n"
    "    (void)user;\n"
    "    mu_value_get_int(mu_run_args(run), &x);\n"
    "    mu_run_return(run, mu_value_int(x * x));\n"
    "    return 0;\n"
    "}\n"
    "MU_PLUGIN;\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    return mu_node_register_function(node, \"square\", square, NULL, 0);\n"
    "}\n";

/* ---- the way out ---- */

/* Sockets of the network outside, made before this process left it. */
static int outside[WAYS_MAX];
static int listener;

struct pump {
    int from;
    int to;
};

static void *pump(void *arg)
{
    struct pump *pump = arg;
    char bytes[1 << 14];
    ssize_t size;

    while ((size = recv(pump->from, bytes, sizeof bytes, 0)) > 0)
        if (send(pump->to, bytes, (size_t)size, MSG_NOSIGNAL) != size)
            break;
    (void)shutdown(pump->to, SHUT_WR);
    (void)shutdown(pump->from, SHUT_RD);
    free(pump);
    return NULL;
}

static void start_pump(int from, int to)
{
    struct pump *pump_of = malloc(sizeof *pump_of);
    pthread_t thread;

    if (pump_of == NULL)
        return;
    *pump_of = (struct pump){from, to};
    if (pthread_create(&thread, NULL, pump, pump_of) == 0)
        (void)pthread_detach(thread);
    else
        free(pump_of);
}

static void *relay(void *arg)
{
    struct sockaddr_in there = {.sin_family = AF_INET};

    (void)arg;
    there.sin_port = htons((uint16_t)port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < WAYS_MAX;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            break;
        if (connect(outside[i], (struct sockaddr *)&there, sizeof there) != 0) {
            (void)close(fd); /* the chief does not listen yet */
            continue;
        }
        start_pump(fd, outside[i]);
        start_pump(outside[i], fd);
        i++;
    }
    return NULL;
}

/* Leave the network in which the chief is. NULL, or why that cannot be. */
static const char *leave(void)
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    const char *reason;
    pthread_t thread;

    for (int i = 0; i < WAYS_MAX; i++)
        outside[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    reason = machine_make();
    if (reason != NULL)
        return reason;
    own.sin_port = htons((uint16_t)port);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&own, sizeof own) != 0 ||
        listen(listener, 64) != 0 || pthread_create(&thread, NULL, relay, NULL) != 0)
        return "no relay can be opened";
    (void)pthread_detach(thread);
    return NULL;
}

/* ---- programs inside ---- */

LISTED_TEST(test_verbs)
{
    cli_start(&asked, NULL, "status", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    assert_non_null(strstr(asked.text, "chief"));
    cli_start(&watcher, NULL, "kv", "watch", "a", "--address", address, NULL);
    cli_start(&asked, NULL, "kv", "put", "a", "first", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    (void)cli_expect(&watcher, NULL, "first");
    cli_start(&asked, NULL, "kv", "get", "a", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    assert_string_equal(asked.text, "first");
    cli_stop(&watcher);
}

static void open_client(mu_node **ret_node, mu_coordinator **ret_coordinator)
{
    mu_node_options options;
    mu_cluster *spec;
    mu_error error;

    mu_node_options_init(&options);
    if (mu_cluster_parse(cluster, strlen(cluster), "test", &error, &spec) != 0)
        fail_msg("%s", error.message);
    options.cluster = spec;
    options.task_type = "client";
    options.log_level = MU_LOG_ERROR;
    if (mu_node_open(&options, &error, ret_node) != 0 ||
        mu_coordinator_open(*ret_node, CLI_SOON_MS, &error, ret_coordinator) != 0)
        fail_msg("%s", error.message);
    mu_cluster_free(spec);
}

/* The worker is here, too: what it runs and returns goes over the connection that it has
 * dialled. */
LISTED_TEST(test_worker_and_client)
{
    mu_remote_value *value;
    mu_coordinator *coordinator;
    mu_value *result;
    mu_value *args;
    mu_error error;
    mu_node *node;
    int64_t number;

    cli_start(&worker, NULL, "node", "--cluster", cluster, "--task", "worker:0", "--bind",
              "none", "--plugin", plugin, NULL);
    open_client(&node, &coordinator);
    for (int64_t i = 1; i <= 20; i++) {
        args = mu_value_int(i);
        if (mu_coordinator_schedule(coordinator, "square", args, CLI_SOON_MS, &error,
                                    &value) != 0 ||
            mu_remote_value_fetch(value, CLI_SOON_MS, &error, &result) != 0)
            fail_msg("%s", error.message);
        assert_int_equal(mu_value_get_int(result, &number), 0);
        assert_int_equal(number, i * i);
        mu_value_free(result);
        mu_value_free(args);
        mu_remote_value_free(value);
    }
    cli_start(&asked, NULL, "drain", "worker:0", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    cli_expect_code(&worker, 0);
    mu_coordinator_close(coordinator);
    assert_int_equal(mu_node_close(node, CLI_SOON_MS, &error), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verbs),
        cmocka_unit_test(test_worker_and_client),
    };
    char command[128];
    const char *reason;
    int failed;

    cli_folder(folder, sizeof folder);
    if (cli_compile(folder, plugin_text, plugin, sizeof plugin) != 0)
        return 1;
    port = ports_free();
    (void)snprintf(cluster, sizeof cluster,
                   "{\"chief\":[\"127.0.0.1:%d\"],\"worker\":[\"127.0.0.1:%d\"]}", port,
                   ports_free());
    (void)snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    cli_start(&chief, NULL, "node", "--cluster", cluster, "--task", "chief:0", NULL);
    reason = leave();
    failed =
        reason != NULL ? needs_skip(reason) : cmocka_run_group_tests(tests, NULL, NULL);
    cli_kill(&chief, SIGTERM);
    (void)cli_wait(&chief);
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) != 0 ? 1 : failed;
}
