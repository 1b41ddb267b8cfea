/* The program's verbs: what is refused, what nodes say, and how it all ends. */
#include "tests/real/cli.h"
#include "tests/real/ports.h"

#include <sys/stat.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static struct cli cli;

/* ---- what is refused ---- */

#define CLUSTER "{\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:2\"]}"

static const struct refusal {
    const char *arguments[9];
    const char *variable;
    const char *words[3];
} refusals[] = {
    /* clang-format off */
    {{"stauts"}, NULL, {"no verb \"stauts\"", "did you mean status?"}},
    {{"help", "exitcodes"}, NULL, {"no topic \"exitcodes\"", "exit-codes"}},
    {{"node", "--thraeds", "2"}, NULL, {"no flag \"thraeds\"", "--threads?"}},
    {{"run", "--task", "worker:0"}, NULL, {"no flag \"task\"", "muster run --help"}},
    {{"node", "worker"}, NULL, {"\"worker\"", "expected a flag"}},
    {{"node", "--threads"}, NULL, {"--threads: expected N"}},
    {{"node", "--threads", "0"}, NULL, {"--threads", "1 to 1024", "\"0\""}},
    {{"node", "--threads=-1"}, NULL, {"--threads", "1 to 1024", "\"-1\""}},
    {{"node", "--window", "9x"}, NULL, {"--window", "0 to 65536", "\"9x\""}},
    {{"node", "--grace-ms", "99999999999999999999"}, NULL, {"--grace-ms", "0 to"}},
    {{"node", "--log-level", "loud"}, NULL, {"--log-level", "error|warn", "\"loud\""}},
    {{"node"}, "MUSTER_THREADS=many", {"MUSTER_THREADS", "1 to 1024", "\"many\""}},
    {{"node"}, "TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT=soon",
     {"TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT", "seconds", "\"soon\""}},
    {{"run"}, "TF_COORDINATOR_SCHEDULE_START_DELAY=-1",
     {"TF_COORDINATOR_SCHEDULE_START_DELAY", "0 to 86400", "\"-1\""}},
    {{"node", "--watchdog-ms", "-1"}, "MUSTER_WATCHDOG_MS=soon",
     {"--watchdog-ms", "0 to 86400000", "\"-1\""}},
    {{"node", "--watchdog-ms", "1"}, "TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT=soon",
     {"there is no cluster"}},
    {{"run"}, "MUSTER_TRANSPORT=udp", {"MUSTER_TRANSPORT", "ipc|tcp", "\"udp\""}},
    {{"node"}, NULL, {"there is no cluster", "--cluster", "TF_CONFIG"}},
    {{"node", "--cluster", CLUSTER}, NULL, {"there is no task", "--task"}},
    {{"node"}, "TF_CONFIG={\"cluster\": {\"worker\": [", {"TF_CONFIG: line 1"}},
    {{"node"},
     "TF_CONFIG={\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", "
     "\"index\": 1}}",
     {"TF_CONFIG: task.index", "index 1", "expected 0"}},
    {{"node", "--cluster", CLUSTER, "--task", "worker:2"}, NULL, {"index 2"}},
    {{"node", "--cluster", CLUSTER, "--task", "worker:x"}, NULL, {"--task", "worker:1"}},
    {{"node", "--cluster", CLUSTER, "--task", "wroker:1"}, NULL, {"\"worker\"?"}},
    {{"node", "--cluster", CLUSTER, "--type", "master"}, NULL, {"--type", "\"chief\""}},
    {{"node", "--cluster", CLUSTER, "--index", "1"}, NULL, {"--type beside it"}},
    {{"node", "--cluster", CLUSTER, "--task", "worker:0", "--type", "ps"}, NULL,
     {"--task and --type"}},
    {{"node", "--cluster", "nofile.json"}, NULL, {"--cluster", "nofile.json"}},
    {{"node", "--cluster", "{\"worker\": 3}", "--task", "worker:0"}, NULL,
     {"--cluster", "worker"}},
    {{"node"}, "MUSTER_CLUSTER=@nofile.json", {"MUSTER_CLUSTER", "nofile.json"}},
    {{"node", "--log-file", "/nofolder/log"}, NULL, {"/nofolder/log"}},
    {{"run", "--workers", "1001"}, NULL, {"--workers", "0 to 1000"}},
    {{"run", "--restart", "sometimes"}, NULL, {"--restart", "on-failure", "sometimes"}},
    {{"run", "--restart", "worker=never,chief=always"}, NULL, {"--restart", "evaluator"}},
    {{"run", "--workers", "0", "--ps", "0", "--chief", "0"}, NULL, {"nothing to run"}},
    {{"explian"}, NULL, {"no verb \"explian\"", "did you mean explain?"}},
    {{"explain"}, NULL, {"expected CLOSURE;", "muster explain --help"}},
    {{"explain", "a", "b"}, NULL, {"\"b\"", "expected CLOSURE, and had it"}},
    {{"explain", "a"}, NULL, {"there is no chief", "--address"}},
    {{"drain"}, NULL, {"expected TASK;"}},
    {{"drain", "worker:0", "-o", "json"}, NULL, {"no flag \"o\""}},
    {{"status", "worker"}, NULL, {"\"worker\"", "expected a flag"}},
    {{"status"}, NULL, {"there is no chief", "--address"}},
    {{"status", "--address", "nothing"}, NULL, {"--address", "nothing"}},
    {{"status"}, "MUSTER_CHIEF=nothing", {"MUSTER_CHIEF", "nothing"}},
    {{"node", "--cluster", CLUSTER, "--task", "worker:0", "--store", "file:x"}, NULL,
     {"option store", "\"file:x\"", "memory"}},
    {{"node", "--cluster", CLUSTER, "--task", "worker:0", "--store", "journal"}, NULL,
     {"option store", "journal"}},
    {{"node", "--cluster", CLUSTER, "--task", "worker:0", "--service-hosts",
      "worker:0-1"}, NULL, {"\"memory\", which only one host can have", "has 2"}},
    {{"node", "--cluster", CLUSTER, "--task", "worker:0", "--service-hosts", "ps:0"},
     NULL, {"service_hosts names ps:0, and the cluster has no such task"}},
    {{"node", "--cluster", CLUSTER, "--task", "worker:0", "--recoverable", "wroker"},
     NULL, {"option recoverable", "\"worker\"?"}},
    {{"node", "--cluster", CLUSTER, "--task", "worker:0", "--dead-ms", "5000"}, NULL,
     {"suspect_ms is 5000, expected less than dead_ms, which is 5000"}},
    {{"kv"}, NULL, {"kv get", "kv incr", "examples:"}},
    {{"kv", "gett"}, NULL, {"no verb \"kv gett\"", "did you mean kv get?"}},
    {{"kv", "get"}, NULL, {"muster kv get: expected KEY;", "muster kv get --help"}},
    {{"kv", "get", "a", "b"}, NULL, {"\"b\": expected KEY, and had it"}},
    {{"kv", "put", "a"}, NULL, {"expected KEY VALUE;"}},
    {{"kv", "put", "a", "1", "--wait"}, NULL, {"no flag \"wait\""}},
    {{"kv", "get", "a", "--wait=yes"}, NULL, {"--wait", "0 to 1", "\"yes\""}},
    {{"kv", "get", "a"}, "MUSTER_WAIT=2", {"MUSTER_WAIT", "0 to 1", "\"2\""}},
    {{"kv", "get", "a"}, NULL, {"there is no coordination service to ask", "--address"}},
    {{"kv", "ls", "--service-hosts", "none"}, NULL, {"--service-hosts=none"}},
    {{"kv", "ls", "--service-hosts", "worker"}, NULL, {"no coordination service"}},
    {{"kv", "ls", "--address", "nothing"}, NULL, {"--address", "nothing"}},
    {{"kv", "ls", "--address", "a:1", "--service-hosts", "x:y"}, NULL, {"\"x:y\""}},
    {{"tasks", "--cluster", CLUSTER, "--service-hosts", "worker:2"}, NULL,
     {"service_hosts names worker:2, and the cluster has no such task"}},
    {{"tasks", "--cluster", "{\"evaluator\": [\"a:1\"]}"}, NULL,
     {"no task that hosts the coordination service"}},
    {{"check", "--cluster", "@/"}, NULL,
     {"--cluster: \"/\" cannot be read: Is a directory"}},
    {{"tasks", "worker:1"}, NULL, {"\"worker:1\": expected a flag"}},
    {{"barrier", "b"}, NULL, {"expected --tasks", "client:0-1"}},
    {{"barrier", "b", "--tasks", "worker:0"}, NULL, {"--tasks have no client"}},
    {{"barrier", "b", "--tasks", "client:0-1"}, NULL, {"or several", "--as"}},
    {{"barrier", "b", "--tasks", "client:0-1", "--as", "client:2"}, NULL,
     {"--as: expected one client that is among --tasks", "\"client:2\""}},
    {{"barrier", "b", "--tasks", "client:x"}, NULL, {"--tasks: task set", "client:x"}},
    {{"preempt"}, NULL, {"expected REASON;"}},
    /* clang-format on */
};

TEST(test_refusals)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *r = &refusals[i];
        const char *const variables[] = {r->variable, NULL};

        cli_start(&cli, variables, r->arguments[0], r->arguments[1], r->arguments[2],
                  r->arguments[3], r->arguments[4], r->arguments[5], r->arguments[6],
                  r->arguments[7], r->arguments[8], NULL);
        cli_expect_code(&cli, 2);
        for (size_t j = 0; j < 3 && r->words[j] != NULL; j++)
            if (strstr(cli.text, r->words[j]) == NULL)
                fail_msg("row %zu: no \"%s\" in: %s", i, r->words[j], cli.text);
    }
}

TEST(test_line_wins_over_variable)
{
    static const char *const variables[] = {"MUSTER_OUTPUT=json", NULL};

    cli_start(&cli, variables, "version", NULL);
    cli_expect_code(&cli, 0);
    assert_int_equal(cli.text[0], '{');
    cli_start(&cli, variables, "version", "-o", "text", NULL);
    cli_expect_code(&cli, 0);
    assert_memory_equal(cli.text, "muster ", 7);
}

/* ---- nodes ---- */

/* A port of loopback, in use until the socket is closed. */
static int take_port(int *ret_port)
{
    int fd = ports_bound(ret_port);

    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

TEST(test_port_in_use)
{
    char cluster[64];
    int port;
    int fd = take_port(&port);

    (void)snprintf(cluster, sizeof cluster, "{\"worker\": [\"127.0.0.1:%d\"]}", port);
    cli_start(&cli, NULL, "node", "--cluster", cluster, "--task", "worker:0", NULL);
    cli_expect_code(&cli, 3);
    (void)cli_expect(&cli, NULL, "address already in use");
    (void)close(fd);
}

#define ANYWHERE "{\"worker\": [\"127.0.0.1:0\"]}"

TEST(test_plugin_that_does_not_load)
{
    cli_start(&cli, NULL, "node", "--cluster", ANYWHERE, "--task", "worker:0", "--plugin",
              "./nothing.so", NULL);
    cli_expect_code(&cli, 2);
    (void)cli_expect(&cli, NULL, "plugin \"./nothing.so\" does not load");
    cli_start(&cli, NULL, "node", "--cluster", ANYWHERE, "--task", "worker:0", "--plugin",
              cli_variable("MUSTER_BIN"), NULL);
    cli_expect_code(&cli, 2);
    cli_start(&cli, NULL, "node", "--cluster", ANYWHERE, "--task", "worker:0", "--set",
              "noequals", NULL);
    cli_expect_code(&cli, 2);
    (void)cli_expect(&cli, NULL, "--set: expected KEY=VALUE, got \"noequals\"");
}

/* TF_CONFIG's task gives way to the flag's, and SIGTERM ends a node in good order. */
TEST(test_task_flag_and_sigterm)
{
    static const char *const variables[] = {
        "TF_CONFIG={\"cluster\": {\"worker\": [\"127.0.0.1:0\"], \"ps\": "
        "[\"127.0.0.1:0\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}",
        "MUSTER_TYPE=worker", NULL};

    cli_start(&cli, variables, "node", "--task", "ps:0", NULL);
    (void)cli_expect(&cli, NULL, "/job:ps/task:0 node: is up at tcp://127.0.0.1:");
    cli_kill(&cli, SIGTERM);
    cli_expect_code(&cli, 0);
    (void)cli_expect(&cli, NULL, "signal 15");
}

static void check_json_line(const char *line)
{
    static const char *const keys[] = {"time", "level", "task", "who", "message"};
    cJSON *root = cJSON_Parse(line);

    if (root == NULL)
        fail_msg("no JSON: %s", line);
    for (size_t i = 0; i < 5; i++)
        assert_true(cJSON_IsString(cJSON_GetObjectItem(root, keys[i])));
    assert_int_equal(strlen(cJSON_GetObjectItem(root, "time")->valuestring), 24);
    cJSON_Delete(root);
}

static int check_json_lines(char *text)
{
    int count = 0;

    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        check_json_line(line);
        count++;
    }
    return count;
}

TEST(test_json_log)
{
    cli_start(&cli, NULL, "node", "--cluster", ANYWHERE, "--task", "worker:0",
              "--log-format", "json", "--log-level", "debug", NULL);
    (void)cli_expect(&cli, NULL, "is up at");
    cli_stop(&cli);
    assert_true(check_json_lines(cli.text) >= 2);
    cli_start(&cli, NULL, "node", "--log-format", "json", NULL);
    cli_expect_code(&cli, 2);
    assert_int_equal(check_json_lines(cli.text), 1);
}

/* Each line for people has the date, and the hour with its zone. */
TEST(test_text_log)
{
    static const char *const variables[] = {"TZ=XYZ-02:30", NULL};
    char level[8];
    int parts[7];

    cli_start(&cli, variables, "node", "--cluster", ANYWHERE, "--task", "worker:0", NULL);
    (void)cli_expect(&cli, NULL, "is up at");
    cli_stop(&cli);
    for (char *line = strtok(cli.text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (sscanf(line, "%4d-%2d-%2d %2d:%2d:%2d.%3d+0230 %7s", &parts[0], &parts[1],
                   &parts[2], &parts[3], &parts[4], &parts[5], &parts[6], level) != 8)
            fail_msg("no date, hour and zone: %s", line);
}

TEST(test_log_file)
{
    char folder[64];
    char path[96];
    char text[4096];

    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/log", folder);
    for (int i = 0; i < 2; i++) {
        cli_start(&cli, NULL, "node", "--log-format", "json", "--log-file", path, NULL);
        cli_expect_code(&cli, 2);
        assert_string_equal(cli.text, "");
    }
    cli_read_file(path, text, sizeof text);
    assert_int_equal(check_json_lines(text), 2);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- asking for the status ---- */

TEST(test_status_without_a_chief)
{
    uint64_t began_ms = cli_now_ms();
    char address[64];
    int port;

    (void)close(take_port(&port));
    (void)snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    cli_start(&cli, NULL, "status", "--address", address, "--timeout-ms", "300", NULL);
    cli_expect_code(&cli, 4);
    (void)cli_expect(&cli, NULL, "/job:chief/task:0 at tcp://127.0.0.1:");
    (void)cli_expect(&cli, NULL, "within 300 ms");
    assert_true(cli_now_ms() - began_ms < 10000);
}

/* Tens of thousands of workers of which none is there: at once, and of the missing the
 * first are named. */
TEST(test_status_of_many_that_are_missing)
{
    enum { WORKERS = 50000 };
    static char spec[WORKERS * 24];
    uint64_t began_ms;
    struct cli chief = {0};
    char folder[64];
    char path[96];
    char one[128];
    size_t used;
    int port;

    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/cluster.json", folder);
    (void)close(take_port(&port));
    used = (size_t)snprintf(spec, sizeof spec,
                            "{\"chief\": [\"127.0.0.1:%d\"], \"worker\": [", port);
    for (int i = 0; i < WORKERS; i++)
        used += (size_t)snprintf(spec + used, sizeof spec - used, "%s\"10.0.%d.%d:1\"",
                                 i == 0 ? "" : ",", i >> 8, i & 255);
    (void)snprintf(spec + used, sizeof spec - used, "]}");
    cli_write_file(path, spec);
    (void)snprintf(one, sizeof one, "{\"chief\": [\"127.0.0.1:%d\"]}", port);
    cli_start(&chief, NULL, "node", "--cluster", one, "--task", "chief:0", NULL);
    (void)cli_expect(&chief, NULL, "node: is up at");
    began_ms = cli_now_ms();
    cli_start(&cli, NULL, "status", "--cluster", path, "--timeout-ms", "5000", NULL);
    cli_expect_code(&cli, 0);
    assert_true(cli_now_ms() - began_ms < 20000);
    (void)cli_expect(&cli, NULL, "/job:worker/task:99 ");
    (void)cli_expect(&cli, NULL, "and 49900 more");
    assert_null(strstr(cli.text, "/job:worker/task:100 "));
    cli_kill(&chief, SIGTERM);
    (void)cli_wait(&chief);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A pipe that nobody writes to is waited for as long as was said, and one that somebody
 * writes to is read. */
TEST(test_cluster_in_a_pipe)
{
    static const char spec[] = "{\"worker\": [\"a.example:1\"]}";
    uint64_t began_ms = cli_now_ms();
    char folder[64];
    char path[96];
    int fd;

    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/cluster", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    cli_start(&cli, NULL, "resolve", "--cluster", path, "--resolve-ms", "400", NULL);
    cli_expect_code(&cli, 2);
    (void)cli_expect(&cli, NULL, "its writer has not ended in time");
    assert_true(cli_now_ms() - began_ms < 10000);
    cli_start(&cli, NULL, "resolve", "--cluster", path, "--resolve-ms", "20000", NULL);
    fd = open(path, O_WRONLY);
    assert_int_equal(write(fd, spec, sizeof spec - 1), sizeof spec - 1);
    (void)close(fd);
    cli_expect_code(&cli, 0);
    (void)cli_expect(&cli, NULL, "/job:worker/task:0 at a.example:1");
    cli_start(&cli, NULL, "node", "--cluster", "{\"chief\": [\"127.0.0.1:0\"]}", "--task",
              "chief:0", "--plugin", path, NULL);
    cli_expect_code(&cli, 2);
    (void)cli_expect(&cli, NULL, "it is no regular file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST_PROGRAM()
