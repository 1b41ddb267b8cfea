/* `muster check` against real nodes, and against what is at an address in place of one.
 * Nothing but loopback is contacted: the name that does not resolve is one that no name
 * server is asked for. */
#define _GNU_SOURCE /* unshare */
#include "tests/real/cli.h"
#include "tests/real/needs.h"
#include "tests/real/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

enum { NODES_MAX = 4, CLUSTER_BYTES = 1024 };

static struct cli checked;
static struct cli asked;
static struct cli nodes[NODES_MAX];
static int nodes_count;

/* ---- ports ---- */

/* Ports that nobody has now, all different. */
static void free_ports(int count, int *ret_ports)
{
    for (int i = 0; i < count; i++)
        ret_ports[i] = ports_free();
}

/* Connections are taken by the system, and nobody reads them. */
static int mute_port(int *ret_port)
{
    int fd = ports_bound(ret_port);

    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

/* Attempts to connect are not answered: the queue is full. */
static int silent_port(int *ret_port, int *ret_fillers, int count)
{
    struct sockaddr_in there = {.sin_family = AF_INET};
    int fd = ports_bound(ret_port);

    assert_int_equal(listen(fd, 0), 0);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons((uint16_t)*ret_port);
    for (int i = 0; i < count; i++) {
        ret_fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        assert_true(ret_fillers[i] >= 0);
        (void)connect(ret_fillers[i], (struct sockaddr *)&there, sizeof there);
    }
    return fd;
}

/* A server that says `words` to everybody, in a process of its own. */
static pid_t other_server(const char *words, int *ret_port)
{
    int fd = mute_port(ret_port);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0) {
        (void)close(fd);
        return pid;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int connection = accept(fd, NULL, NULL);

        (void)!write(connection, words, strlen(words));
        (void)close(connection);
    }
}

/* ---- nodes ---- */

static void start_node(const char *cluster, const char *task, const char *more,
                       const char *value)
{
    assert_true(nodes_count < NODES_MAX);
    cli_start(&nodes[nodes_count++], NULL, "node", "--cluster", cluster, "--task", task,
              more, value, NULL);
    (void)cli_expect(&nodes[nodes_count - 1], NULL, "is up at tcp://");
}

static int end_nodes(void **state)
{
    (void)state;
    for (; nodes_count > 0; nodes_count--) {
        cli_kill(&nodes[nodes_count - 1], SIGKILL);
        (void)cli_wait(&nodes[nodes_count - 1]);
    }
    return 0;
}

/* ---- what is expected ---- */

static void expect_words(const char *words)
{
    if (strstr(checked.text, words) == NULL)
        fail_msg("no \"%s\" in:\n%s", words, checked.text);
}

/* Links come up in their own time: until it ends with that code. */
static void check_until(int code, const char *cluster, const char *more)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    do {
        cli_start(&checked, NULL, "check", "--cluster", cluster, "--task", "chief:0",
                  more, NULL);
        if (cli_wait(&checked) == code)
            return;
        cli_pause();
    } while (cli_now_ms() < deadline_ms);
    fail_msg("not exit code %d: %d\n%s", code, checked.code, checked.text);
}

static cJSON *check_json(const char *cluster, int code)
{
    cli_start(&checked, NULL, "check", "--cluster", cluster, "--task", "chief:0", "-o",
              "json", NULL);
    cli_expect_code(&checked, code);
    return cli_json(checked.text);
}

/* ---- tests ---- */

TEST_WITH(test_all_is_well, NULL, end_nodes)
{
    char cluster[CLUSTER_BYTES];
    int ports[3];
    cJSON *root;

    free_ports(3, ports);
    (void)snprintf(cluster, sizeof cluster,
                   "{\"chief\": [\"127.0.0.1:%d\"], \"worker\": [\"127.0.0.1:%d\"], "
                   "\"ps\": [\"localhost:%d\"]}",
                   ports[0], ports[1], ports[2]);
    start_node(cluster, "chief:0", NULL, NULL);
    start_node(cluster, "worker:0", NULL, NULL);
    start_node(cluster, "ps:0", NULL, NULL);
    check_until(0, cluster, NULL);
    expect_words("this task is /job:chief/task:0\n");
    expect_words("/job:chief/task:0: schedules closures, ends the job, hosts the "
                 "coordination service; dials ps, worker\n");
    expect_words("/job:worker/task:0: runs closures, trains; dials ps, the service's");
    expect_words("localhost:");
    expect_words(": answers (");
    expect_words("all that answer reach whom they dial\n");
    expect_words("\nall is well\n");
    root = check_json(cluster, 0);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(root, "well")));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "tasks")), 3);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "unreached")), 0);
    cJSON_Delete(root);

    /* The cluster was not disturbed: no task has lost another one. */
    cli_start(&asked, NULL, "status", "--cluster", cluster, NULL);
    cli_expect_code(&asked, 0);
    for (int i = 0; i < nodes_count; i++) {
        cli_read(&nodes[i]);
        assert_null(strstr(nodes[i].text, "/job:worker/task:0 is lost"));
        assert_null(strstr(nodes[i].text, "/job:ps/task:0 is lost"));
        assert_null(strstr(nodes[i].text, "/job:chief/task:0 is lost"));
        assert_null(strstr(nodes[i].text, " ERROR "));
    }
}

/* A line for each thing that may be at an address. */
TEST_WITH(test_what_is_at_an_address, NULL, end_nodes)
{
    char cluster[CLUSTER_BYTES];
    char words[160];
    int fillers[8];
    int mute_fd, silent_fd;
    int mute, silent, other, refused, http;
    pid_t server = other_server("220 hello\r\n", &other);
    pid_t web = other_server("HTTP/1.1 400 Bad Request\r\n\r\n", &http);

    mute_fd = mute_port(&mute);
    silent_fd = silent_port(&silent, fillers, 8);
    free_ports(1, &refused);
    (void)snprintf(cluster, sizeof cluster,
                   "{\"chief\": [\"127.0.0.1:%d\"], \"worker\": [\"127.0.0.1:%d\", "
                   "\"127.0.0.1:%d\", \"127.0.0.1:%d\", \"127.0.0.1:0\"], "
                   "\"ps\": [\"127.0.0.1:%d\"]}",
                   mute, silent, other, refused, http);
    cli_start(&checked, NULL, "check", "--cluster", cluster, "--task", "chief:0",
              "--wait-ms", "400", NULL);
    cli_expect_code(&checked, 4);
    (void)snprintf(words, sizeof words,
                   "chief/task:0 at 127.0.0.1:%d: it is connected, but says nothing",
                   mute);
    expect_words(words);
    (void)snprintf(words, sizeof words,
                   "worker/task:0 at 127.0.0.1:%d: no answer: is the machine up", silent);
    expect_words(words);
    (void)snprintf(words, sizeof words,
                   "worker/task:1 at 127.0.0.1:%d: what answers there is not muster",
                   other);
    expect_words(words);
    (void)snprintf(words, sizeof words,
                   "worker/task:2 at 127.0.0.1:%d: connection "
                   "refused: nothing listens there",
                   refused);
    expect_words(words);
    expect_words("worker/task:3 at 127.0.0.1:0: not tried");
    (void)snprintf(words, sizeof words,
                   "ps/task:0 at 127.0.0.1:%d: what answers there "
                   "is not muster (it speaks HTTP)",
                   http);
    expect_words(words);
    expect_words("0 errors in the configuration; 6 of 6 tasks do not answer");
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
    (void)kill(web, SIGKILL);
    (void)waitpid(web, NULL, 0);
    (void)close(mute_fd);
    (void)close(silent_fd);
    for (int i = 0; i < 8; i++)
        (void)close(fillers[i]);
}

/* In a network of its own, where no name server can be asked. */
TEST(test_name_that_does_not_resolve)
{
    int ends[2];
    int status = 0;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
            _exit(77);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl(cli_variable("MUSTER_BIN"), "muster", "check", "--cluster",
                    "{\"worker\": [\"nowhere.invalid:1\"]}", "--wait-ms", "15000", NULL);
        _exit(126);
    }
    (void)close(ends[1]);
    checked.size = 0;
    for (ssize_t size = 1; size > 0; checked.size += (size_t)size) {
        size = read(ends[0], checked.text + checked.size, 4096);
        assert_true(size >= 0);
    }
    checked.text[checked.size] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        needs_skip_test("network namespaces are not permitted");
    expect_words("worker/task:0 at nowhere.invalid:1: its name does not resolve (");
    assert_int_equal(WEXITSTATUS(status), 4);
}

/* Long lists are short, and JSON has all of them. */
TEST(test_many_tasks)
{
    enum { MANY = 1000, ROW = 32 };
    char *cluster = malloc((MANY + 2) * ROW);
    size_t used = 0;
    cJSON *root;

    assert_non_null(cluster);
    used += (size_t)snprintf(cluster, ROW, "{\"worker\": [");
    for (int i = 0; i < MANY; i++)
        used += (size_t)snprintf(cluster + used, ROW, "%s\"127.77.%d.%d:9\"",
                                 i == 0 ? "" : ",", i / 200, i % 200 + 1);
    (void)snprintf(cluster + used, ROW, "]}");
    cli_start(&checked, NULL, "check", "--cluster", cluster, "--task", "worker:0", NULL);
    cli_expect_code(&checked, 4);
    expect_words("/job:worker/task:4 at 127.77.0.5:9: connection refused");
    assert_null(strstr(checked.text, "/job:worker/task:5 at"));
    expect_words("and 995 more, /job:worker/task:5 to /job:worker/task:999: connection "
                 "refused: nothing listens there\n");
    expect_words("1000 of 1000 tasks do not answer");
    cli_start(&checked, NULL, "check", "--cluster", cluster, "--task", "worker:0", "-o",
              "json", NULL);
    cli_expect_code(&checked, 4);
    root = cJSON_Parse(checked.text);
    assert_non_null(root);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "tasks")), MANY);
    cJSON_Delete(root);
    free(cluster);
}

/* Tasks make themselves known one by one: those who have are tried, the others named. */
TEST(test_who_is_missing)
{
    char folder[64];
    char path[96];
    char variable[96];
    const char *const variables[] = {variable, "MUSTER_TASKS=chief=1,worker=4", NULL};
    FILE *file;
    int port;

    free_ports(1, &port);
    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/chief-0", folder);
    (void)snprintf(variable, sizeof variable, "MUSTER_CLUSTER_DIRECTORY=%s", folder);
    cli_start(&checked, variables, "check", NULL);
    cli_expect_code(&checked, 4);
    expect_words("5 of 5 tasks are not there yet: /job:chief/task:0, "
                 "/job:worker/task:0 to 3\n");

    file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "127.0.0.1:%d\n", port);
    assert_int_equal(fclose(file), 0);
    cli_start(&checked, variables, "check", "--task", "chief:0", NULL);
    cli_expect_code(&checked, 4);
    expect_words("warning: directory /tmp/");
    expect_words("4 of 5 tasks are not there yet: /job:worker/task:0 to 3\n");
    expect_words("/job:chief/task:0 at 127.0.0.1:");
    expect_words("; not all tasks are there\n");

    /* Whoever is there is all that are expected; another resolver says it, too. */
    cli_start(&checked, variables, "check", "--task", "chief:0", "--resolver",
              "directory", "--resolver-set", "tasks=any", NULL);
    cli_expect_code(&checked, 4);
    assert_null(strstr(checked.text, "not there"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A node that waits for the others listens, and greets nobody yet. */
TEST(test_a_node_that_waits_for_others)
{
    char folder[64];
    char path[96];
    char variable[96];
    const char *const variables[] = {variable, "MUSTER_TASKS=chief=1,worker=1", NULL};

    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/worker-0", folder);
    (void)snprintf(variable, sizeof variable, "MUSTER_CLUSTER_DIRECTORY=%s", folder);
    cli_start(&nodes[0], variables, "node", "--task", "worker:0", "--bind",
              "tcp://127.0.0.1:0", NULL);
    (void)cli_expect(&nodes[0], NULL, "/job:chief/task:0");
    cli_start(&checked, variables, "check", "--wait-ms", "300", NULL);
    cli_expect_code(&checked, 4);
    expect_words("does it wait for tasks of the cluster that are missing");
    cli_kill(&nodes[0], SIGKILL);
    (void)cli_wait(&nodes[0]);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Two addresses are the wrong way round: who is there is said. */
TEST_WITH(test_wrong_task, NULL, end_nodes)
{
    char cluster[CLUSTER_BYTES];
    char wrong[CLUSTER_BYTES];
    char words[160];
    int ports[2];

    free_ports(2, ports);
    (void)snprintf(cluster, sizeof cluster,
                   "{\"worker\": [\"127.0.0.1:%d\", \"127.0.0.1:%d\"]}", ports[0],
                   ports[1]);
    (void)snprintf(wrong, sizeof wrong,
                   "{\"worker\": [\"127.0.0.1:%d\", \"127.0.0.1:%d\"]}", ports[1],
                   ports[0]);
    start_node(cluster, "worker:0", NULL, NULL);
    start_node(cluster, "worker:1", NULL, NULL);
    cli_start(&checked, NULL, "check", "--cluster", wrong, NULL);
    cli_expect_code(&checked, 1);
    (void)snprintf(words, sizeof words,
                   "/job:worker/task:0 at 127.0.0.1:%d: it is "
                   "/job:worker/task:1 of this cluster",
                   ports[1]);
    expect_words(words);
    (void)snprintf(words, sizeof words,
                   "/job:worker/task:1 at 127.0.0.1:%d: it is "
                   "/job:worker/task:0 of this cluster",
                   ports[0]);
    expect_words(words);
}

TEST_WITH(test_another_cluster, NULL, end_nodes)
{
    char cluster[CLUSTER_BYTES];
    int port;

    free_ports(1, &port);
    (void)snprintf(cluster, sizeof cluster, "{\"worker\": [\"127.0.0.1:%d\"]}", port);
    start_node(cluster, "worker:0", "--cluster-name", "other");
    cli_start(&checked, NULL, "check", "--cluster", cluster, NULL);
    cli_expect_code(&checked, 1);
    expect_words("it refused us: cluster name \"muster\", but /job:worker/task:0 belongs "
                 "to cluster \"other\"");
    (void)cli_expect(&nodes[0], NULL,
                     "(`muster check` or another client, no task) at 127.0.0.1:");
    cli_start(&checked, NULL, "check", "--cluster", cluster, "--cluster-name", "other",
              NULL);
    cli_expect_code(&checked, 0);
}

/* The worker has another idea of where the server is. Both answer, and do not find each
 * other. */
TEST_WITH(test_who_cannot_reach_whom, NULL, end_nodes)
{
    char cluster[CLUSTER_BYTES];
    char own[CLUSTER_BYTES];
    char words[200];
    int ports[4];
    cJSON *root;
    const cJSON *pair;

    free_ports(4, ports);
    (void)snprintf(cluster, sizeof cluster,
                   "{\"chief\": [\"127.0.0.1:%d\"], \"worker\": [\"127.0.0.1:%d\"], "
                   "\"ps\": [\"127.0.0.1:%d\"]}",
                   ports[0], ports[1], ports[2]);
    (void)snprintf(own, sizeof own,
                   "{\"chief\": [\"127.0.0.1:%d\"], \"worker\": [\"127.0.0.1:%d\"], "
                   "\"ps\": [\"127.0.0.1:%d\"]}",
                   ports[0], ports[1], ports[3]);
    start_node(cluster, "chief:0", NULL, NULL);
    start_node(own, "worker:0", NULL, NULL);
    start_node(cluster, "ps:0", NULL, NULL);
    (void)snprintf(words, sizeof words,
                   "  /job:worker/task:0 cannot reach "
                   "/job:ps/task:0 at tcp://127.0.0.1:%d: connection refused (for ",
                   ports[3]);
    do
        check_until(1, cluster, NULL);
    while (strstr(checked.text, words) == NULL ||
           strstr(checked.text, "; 1 connection is missing\n") == NULL);
    expect_words("; 0 of 3 tasks do not answer as they should; 1 connection is");
    expect_words("/job:worker/task:0           ok     NO      .");
    root = check_json(cluster, 1);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(root, "well")));
    pair = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "unreached"), 0);
    assert_string_equal(cJSON_GetObjectItem(pair, "from")->valuestring,
                        "/job:worker/task:0");
    assert_string_equal(cJSON_GetObjectItem(pair, "to")->valuestring, "/job:ps/task:0");
    assert_string_equal(cJSON_GetObjectItem(pair, "why")->valuestring,
                        "connection refused");
    cJSON_Delete(root);
}

/* All that is wrong at once, and what is right is tried all the same. */
TEST_WITH(test_wrong_configuration, NULL, end_nodes)
{
    char cluster[CLUSTER_BYTES];
    int ports[2];

    free_ports(2, ports);
    (void)snprintf(cluster, sizeof cluster,
                   "{\"wroker\": [\"127.0.0.1:%d\"], \"worker\": [\"127.0.0.1:%d\", 7, "
                   "\"127.0.0.1:%d\"]}",
                   ports[0], ports[1], ports[1]);
    cli_start(&checked, NULL, "check", "--cluster", cluster, "--task", "worker:0", NULL);
    cli_expect_code(&checked, 2);
    expect_words("error: --cluster: \"wroker\" is not a task type; did you mean "
                 "\"worker\"?");
    expect_words("error: --cluster: worker[1]: expected \"host:port\"");
    expect_words("error: --cluster: worker[2]: ");
    expect_words("3 errors in the configuration; 1 of 1 tasks do not answer");
}

static const struct refusal {
    const char *arguments[8];
    const char *variable;
    const char *words;
} refusals[] = {
    {{"--cluster", "{\"worker\": [\"127.0.0.1:1\"]}", "--service-hosts", "ps:0"},
     NULL,
     "error: option service_hosts names ps:0, and the cluster has no such task"},
    {{"--cluster", "{\"worker\": [\"127.0.0.1:1\"]}", "--task", "ps:0"},
     NULL,
     "error: /job:ps/task:0, this task, does not fit the cluster"},
    {{"--cluster", "{\"worker\": ["}, NULL, "error: --cluster: line 1"},
    {{"--cluster", "nofile.json"}, NULL, "muster check: --cluster: expected JSON or a"},
    {{NULL},
     "TF_CONFIG={\"cluster\": {\"wroker\": [\"127.0.0.1:1\"]}}",
     "error: TF_CONFIG: cluster: \"wroker\" is not a task type"},
    {{"--resolver", "slrum"}, NULL, "--resolver: "},
    {{"--wait-ms", "0"}, NULL, "--wait-ms: expected a whole number of 1 to"},
    {{"--watch"}, NULL, "no flag \"watch\""},
    {{NULL}, NULL, "there is no cluster: expected --cluster"},
};

TEST(test_refusals)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const char *const *a = refusals[i].arguments;
        const char *const variables[] = {refusals[i].variable, NULL};

        cli_start(&checked, variables, "check", a[0], a[1], a[2], a[3], a[4], NULL);
        cli_expect_code(&checked, 2);
        expect_words(refusals[i].words);
    }
}

TEST_PROGRAM_WITH(NULL, end_nodes)
