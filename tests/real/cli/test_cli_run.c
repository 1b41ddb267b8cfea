/* `muster run` and `muster status`: clusters of real processes, and that none is left. */
#include "tests/real/cli.h"

#include "muster.h"

static struct cli run;
static struct cli asked;

enum { TASKS = 4 };

static const char *const tasks[TASKS] = {"chief/0", "ps/0", "worker/0", "worker/1"};

/* Orphans become children of this process, which so learns how they ended. */
static int adopt(void **state)
{
    (void)state;
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void find_pids(pid_t *ret_pids)
{
    for (size_t i = 0; i < TASKS; i++)
        ret_pids[i] = cli_task_pid(&run, NULL, tasks[i]);
}

/* They are no processes any more: `muster run` waited for them, so not even zombies. */
static void expect_gone(const pid_t *pids)
{
    for (size_t i = 0; i < TASKS; i++)
        if (kill(pids[i], 0) == 0 || errno != ESRCH) {
            cli_show(&run);
            fail_msg("%s is left", tasks[i]);
        }
}

static void expect_cluster(const char *from)
{
    (void)cli_expect(&run, from, "/job:worker/task:0 takes closures");
    (void)cli_expect(&run, from, "/job:worker/task:1 takes closures");
    (void)cli_expect(&run, from, "/job:chief/task:0 links: /job:ps/task:0 is up");
}

TEST(test_ctrl_c)
{
    pid_t pids[TASKS];

    cli_start(&run, NULL, "run", "--workers", "2", "--ps", "1", NULL);
    find_pids(pids);
    expect_cluster(NULL);
    cli_stop(&run);
    expect_gone(pids);
    for (size_t i = 0; i < TASKS; i++) {
        char line[64];

        (void)snprintf(line, sizeof line, "%s ended with exit code 143", tasks[i]);
        (void)cli_expect(&run, NULL, line);
    }
}

TEST(test_killed_run_leaves_no_orphan)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;
    pid_t pids[TASKS];
    int ended = 0;

    cli_start(&run, NULL, "run", "--workers", "2", "--ps", "1", NULL);
    find_pids(pids);
    expect_cluster(NULL);
    cli_kill(&run, SIGKILL);
    cli_expect_code(&run, 128 + SIGKILL);
    while (ended < TASKS && cli_now_ms() < deadline_ms) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid > 0) {
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            ended++;
        }
        cli_pause();
    }
    assert_int_equal(ended, TASKS);
    expect_gone(pids);
}

/* A task that cannot react any more is killed on the second Ctrl-C, at once. */
TEST(test_second_ctrl_c)
{
    uint64_t began_ms;
    pid_t pids[TASKS];

    cli_start(&run, NULL, "run", "--grace-ms", "600000", NULL);
    find_pids(pids);
    expect_cluster(NULL);
    assert_int_equal(kill(pids[3], SIGSTOP), 0);
    cli_kill(&run, SIGINT);
    (void)cli_expect(&run, NULL, "the tasks are stopped");
    began_ms = cli_now_ms();
    cli_stop(&run);
    assert_true(cli_now_ms() - began_ms < 10000);
    (void)cli_expect(&run, NULL, "worker/1 was killed by signal 9");
    expect_gone(pids);
}

TEST(test_task_that_does_not_end)
{
    pid_t pids[TASKS];

    cli_start(&run, NULL, "run", "--grace-ms", "100", NULL);
    find_pids(pids);
    expect_cluster(NULL);
    assert_int_equal(kill(pids[2], SIGSTOP), 0);
    cli_kill(&run, SIGTERM);
    cli_expect_code(&run, 5);
    (void)cli_expect(&run, NULL, "worker/0 did not end within");
    expect_gone(pids);
}

/* ---- restarting ---- */

static cJSON *status_of(const char *path, const char *task, const char *key)
{
    static cJSON *root;
    char text[8192];

    cli_read_file(path, text, sizeof text);
    cJSON_Delete(root);
    root = cJSON_Parse(text);
    assert_non_null(root);
    return cJSON_GetObjectItem(cJSON_GetObjectItem(root, task), key);
}

static void check_restart(const char *transport, const char *policy)
{
    const char *from;
    char folder[64];
    char path[96];
    pid_t pids[TASKS];
    pid_t again;

    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/tasks.json", folder);
    cli_start(&run, NULL, "run", "--transport", transport, "--restart", policy,
              "--status-file", path, "--heartbeat-ms", "200", "--silence-ms", "1000",
              NULL);
    find_pids(pids);
    expect_cluster(NULL);
    assert_int_equal(status_of(path, "worker/1", "pid")->valueint, pids[3]);
    assert_int_equal(kill(pids[3], SIGKILL), 0);

    from = cli_expect(&run, NULL, "worker/1 was killed by signal 9 (Killed); restart 1");
    again = cli_task_pid(&run, from, "worker/1");
    assert_true(again != pids[3]);
    (void)cli_expect(&run, from, "/job:worker/task:1 takes closures");
    assert_int_equal(status_of(path, "worker/1", "pid")->valueint, again);
    assert_int_equal(status_of(path, "worker/1", "restarts")->valueint, 1);
    assert_string_equal(status_of(path, "worker/1", "state")->valuestring, "running");
    assert_non_null(status_of(path, "worker/1", "address"));

    pids[3] = again;
    cli_stop(&run);
    expect_gone(pids);
    assert_string_equal(status_of(path, "worker/1", "state")->valuestring, "ended");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST(test_restart)
{
    check_restart("tcp", "on-failure");
}

/* A killed task leaves its socket file, and the next one listens there all the same. The
 * folder of the sockets is gone in the end. */
TEST(test_restart_over_ipc)
{
    const char *at;
    char folder[128];

    check_restart("ipc", "worker=always,ps=never");
    at = cli_expect(&run, NULL, "started at ipc://");
    (void)snprintf(folder, sizeof folder, "%.*s", (int)strcspn(at, "\n"), at);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(access(folder, F_OK), -1);
}

TEST(test_no_restart_unless_asked)
{
    pid_t pids[TASKS];

    cli_start(&run, NULL, "run", "--restart", "ps=always", NULL);
    find_pids(pids);
    expect_cluster(NULL);
    assert_int_equal(kill(pids[2], SIGKILL), 0);
    (void)cli_expect(&run, NULL, "worker/0 was killed by signal 9 (Killed)\n");
    assert_int_equal(kill(pids[0], SIGKILL), 0);
    cli_expect_code(&run, 128 + SIGKILL);
    assert_null(strstr(run.text, "restart"));
    expect_gone(pids);
}

/* A task that the job cannot do without takes it with it; one that may be lost does not.
 */
TEST(test_failure_of_the_job)
{
    pid_t pids[TASKS];

    cli_start(&run, NULL, "run", "--restart", "ps=fail-job", NULL);
    find_pids(pids);
    expect_cluster(NULL);
    assert_int_equal(kill(pids[2], SIGKILL), 0);
    (void)cli_expect(&run, NULL, "worker/0 was killed by signal 9 (Killed)\n");
    assert_int_equal(kill(pids[1], SIGKILL), 0);
    cli_expect_code(&run, 128 + SIGKILL);
    (void)cli_expect(&run, NULL, "the job fails with ps/0 (--restart ps=fail-job)");
    expect_gone(pids);
}

TEST(test_restarts_have_a_limit)
{
    const char *from = NULL;

    cli_start(&run, NULL, "run", "--workers", "1", "--ps", "0", "--chief", "0",
              "--restart", "always", "--restart-max", "2", NULL);
    for (int i = 0; i < 3; i++) {
        pid_t pid = cli_task_pid(&run, from, "worker/0");

        from = cli_expect(&run, from, "node: is up at");
        assert_int_equal(kill(pid, SIGKILL), 0);
    }
    cli_expect_code(&run, 128 + SIGKILL);
    (void)cli_expect(&run, NULL, "given up after 2 restarts");
}

/* What would only fail again is not started again, and says so with its code. */
TEST(test_run_with_a_bad_plugin)
{
    cli_start(&run, NULL, "run", "--plugin", "./nothing.so", "--restart", "always", NULL);
    cli_expect_code(&run, 2);
    (void)cli_expect(&run, NULL, "\"./nothing.so\" does not load");
    assert_null(strstr(run.text, "; restart"));
}

/* Settings are looked at before anything is started. */
TEST(test_bad_setting_starts_nothing)
{
    static const char *const variables[] = {"MUSTER_SET=a=1;novalue", NULL};

    cli_start(&run, NULL, "run", "--set", "a=1", "--set", "novalue", NULL);
    cli_expect_code(&run, 2);
    assert_string_equal(run.text,
                        "muster run: --set: expected KEY=VALUE, got \"novalue\"\n");
    cli_start(&run, variables, "run", NULL);
    cli_expect_code(&run, 2);
    assert_null(strstr(run.text, "started"));
    (void)cli_expect(&run, NULL, "MUSTER_SET: expected KEY=VALUE, got \"novalue\"");
}

/* Without a wish, a cluster without trouble says when it starts and ends. An empty
 * variable is none. */
TEST(test_quiet_by_default)
{
    static const char *const variables[] = {"MUSTER_LOG_LEVEL=", NULL};

    cli_start(&run, variables, "run", "--workers", "1", "--ps", "1", "--mode", "local",
              NULL);
    (void)cli_expect(&run, NULL, "muster: 1 task is started; --log-level info says more");
    cli_stop(&run);
    (void)cli_expect(&run, NULL, "signal 2 (Interrupt): the tasks are stopped\n");
    (void)cli_expect(&run, NULL, "muster: ended with exit code 130 after ");
    assert_null(strstr(run.text, "INFO"));
    assert_null(strstr(run.text, " pid "));
}

/* Its tasks are told to end while they are being started: none of that is a signal for
 * `muster run` itself. */
TEST(test_chief_that_fails_at_once)
{
    for (int i = 0; i < 20; i++) {
        cli_start(&run, NULL, "run", "--workers", "3", "--journal", "/nofolder/journal",
                  NULL);
        cli_expect_code(&run, 2);
        (void)cli_expect(&run, NULL, "/nofolder/journal: cannot open it");
        if (strstr(run.text, "again") != NULL || strstr(run.text, "signal 9") != NULL) {
            cli_show(&run);
            fail_msg("a task's signal was taken for one of `muster run`");
        }
    }
}

/* ---- status ---- */

static const cJSON *find_task(const cJSON *list, const char *type, int index)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, list) if (
        strcmp(cJSON_GetObjectItem(item, "type")->valuestring, type) == 0 &&
        cJSON_GetObjectItem(item, "index")->valueint == index) return item;
    return NULL;
}

static void expect_state(const cJSON *list, const char *type, int index, const char *is)
{
    const cJSON *task = find_task(list, type, index);

    if (task == NULL) {
        cli_show(&asked);
        fail_msg("no %s:%d in the status", type, index);
    }
    assert_string_equal(cJSON_GetObjectItem(task, "state")->valuestring, is);
}

/* Which process plays a task, and its version. */
static void expect_process(const cJSON *list, const char *type, const char *name)
{
    const cJSON *task = find_task(list, type, 0);

    assert_int_equal(cJSON_GetObjectItem(task, "pid")->valueint,
                     cli_task_pid(&run, NULL, name));
    assert_string_not_equal(cJSON_GetObjectItem(task, "host")->valuestring, "");
    assert_string_equal(cJSON_GetObjectItem(task, "version")->valuestring, mu_version());
}

/* Asked with the chief's address, and with a cluster spec that has a worker too many. */
static void check_status_json(const char *address)
{
    char cluster[512];
    const char *from;
    cJSON *root;
    const cJSON *list;

    (void)snprintf(cluster, sizeof cluster,
                   "{\"chief\": [\"%s\"], \"worker\": {\"1\": \"127.0.0.1:0\", \"7\": "
                   "\"127.0.0.1:0\"}}",
                   address);
    cli_start(&asked, NULL, "status", "--cluster", cluster, "-o", "json", NULL);
    cli_expect_code(&asked, 0);
    from = strchr(asked.text, '{');
    assert_non_null(from);
    root = cJSON_Parse(from);
    assert_non_null(root);
    list = cJSON_GetObjectItem(root, "tasks");
    expect_state(list, "chief", 0, "up");
    expect_state(list, "ps", 0, "up");
    expect_state(list, "worker", 0, "up");
    expect_state(list, "worker", 1, "up");
    expect_state(list, "worker", 7, "missing");
    expect_process(list, "chief", "chief/0");
    expect_process(list, "ps", "ps/0");
    expect_process(list, "worker", "worker/0");
    assert_int_equal(cJSON_GetArraySize(list), 5);
    assert_ptr_equal(find_task(list, "ps", 0), cJSON_GetArrayItem(list, 1));
    assert_ptr_equal(find_task(list, "worker", 7), cJSON_GetArrayItem(list, 4));
    list = cJSON_GetObjectItem(root, "closures");
    assert_int_equal(cJSON_GetObjectItem(list, "queued")->valueint, 0);
    cJSON_Delete(root);
}

static void check_status_text(const char *address)
{
    static const char *const words[] = {"TASK", "/job:chief/task:0", "/job:worker/task:1",
                                        "IN FLIGHT", "closures"};
    char variable[128];
    const char *const variables[] = {variable, NULL};
    char process[32];

    (void)snprintf(variable, sizeof variable, "MUSTER_CHIEF=%s", address);
    cli_start(&asked, variables, "status", NULL);
    cli_expect_code(&asked, 0);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        (void)cli_expect(&asked, NULL, words[i]);
    (void)snprintf(process, sizeof process, "%d on ",
                   (int)cli_task_pid(&run, NULL, "worker/1"));
    (void)cli_expect(&asked, NULL, process);
}

static void check_status_watch(const char *address)
{
    const char *from = NULL;

    cli_start(&asked, NULL, "status", "--watch", "--address", address, NULL);
    for (int i = 0; i < 3; i++)
        from = cli_expect(&asked, from, "chief at tcp://");
    (void)cli_expect(&asked, NULL, "\n\nchief at tcp://");
    cli_stop(&asked);
    assert_null(strchr(asked.text, '\033'));
}

/* An object a line, until the cluster has ended. */
static void check_status_watch_json(const char *address)
{
    const char *from = NULL;
    char *line;

    cli_start(&asked, NULL, "status", "--watch", "-o", "json", "--timeout-ms", "1000",
              "--address", address, NULL);
    for (int i = 0; i < 2; i++)
        from = cli_expect(&asked, from, "}\n");
    cli_kill(&run, SIGTERM);
    cli_expect_code(&asked, 4);
    line = strtok(asked.text, "\n");
    for (int i = 0; i < 2; i++) {
        cJSON *root = cJSON_Parse(line);

        assert_non_null(root);
        assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "tasks")), TASKS);
        cJSON_Delete(root);
        line = strtok(NULL, "\n");
    }
}

/* With --log-format json what tasks log are objects, with nothing before them. */
TEST(test_json_lines)
{
    int count = 0;

    cli_start(&run, NULL, "run", "--workers", "1", "--ps", "0", "--color", "never",
              "--log-format", "json", "--log-level", "info", NULL);
    (void)cli_expect(&run, NULL, "takes closures");
    cli_stop(&run);
    for (char *line = strtok(run.text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        cJSON *root = strstr(line, "\"who\"") == NULL ? NULL : cJSON_Parse(line);

        assert_true(strstr(line, "\"who\"") == NULL || (root != NULL && line[0] == '{'));
        count += root != NULL;
        cJSON_Delete(root);
    }
    assert_true(count >= 4);
}

/* Places where a resolver would find another cluster than that of `muster run`. */
static const char *const places[][10] = {
    {"SLURM_JOB_ID=7", "SLURM_PROCID=3", "SLURM_STEP_NODELIST=n[1-4]",
     "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_TASKS_PER_NODE=1(x4)", "SLURM_NTASKS=4", NULL},
    {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
     "PMIX_RANK=1", "PMIX_NAMESPACE=123", "MUSTER_RESOLVER=open_mpi", NULL},
    {"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1",
     "JOB_COMPLETION_INDEX=2", "HOSTNAME=job-2", "MUSTER_KUBERNETES_JOB_TASKS=4", NULL},
    {"TF_CONFIG={\"cluster\":{\"worker\":[\"127.0.0.1:1\",\"127.0.0.1:2\"]},"
     "\"task\":{\"type\":\"worker\",\"index\":1}}",
     "MUSTER_HOSTS=127.0.0.1:1", "MUSTER_RANK=0", "MUSTER_ETCD=http://127.0.0.1:1",
     "MUSTER_CLUSTER_DIRECTORY=/nowhere", "SM_HOSTS=[\"a\",\"b\"]", "SM_CURRENT_HOST=a",
     "MUSTER_TASK=worker:1", NULL},
};

/* What the child has of a variable of its parent is not what the parent has. */
static void expect_not_inherited(pid_t pid, const char *entry)
{
    static char text[CLI_TEXT_BYTES];
    char path[64];
    FILE *file;
    size_t size;

    (void)snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    file = fopen(path, "r");
    assert_non_null(file);
    size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    assert_true(size > 0);
    for (const char *at = text; at < text + size; at += strlen(at) + 1)
        if (strcmp(at, entry) == 0)
            fail_msg("a task has %s", entry);
}

/* Whether a variable is the service's that programs reach, or the machine's name. */
static bool may_stay(const char *entry)
{
    return strncmp(entry, "KUBERNETES_SERVICE", 18) == 0 ||
           strncmp(entry, "HOSTNAME", 8) == 0 || strncmp(entry, "SLURM_JOB_ID", 12) == 0;
}

TEST(test_inside_of_others)
{
    pid_t pids[TASKS];

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        cli_start(&run, places[i], "run", "--workers", "2", "--ps", "1", NULL);
        find_pids(pids);
        expect_cluster(NULL);
        for (size_t j = 0; j < TASKS; j++)
            for (size_t k = 0; places[i][k] != NULL; k++)
                if (!may_stay(places[i][k]))
                    expect_not_inherited(pids[j], places[i][k]);
        cli_stop(&run);
        expect_gone(pids);
    }
}

TEST(test_status)
{
    pid_t pids[TASKS];
    char address[64];
    const char *at;

    cli_start(&run, NULL, "run", NULL);
    find_pids(pids);
    expect_cluster(NULL);
    at = cli_expect(&run, NULL, "/job:chief/task:0 node: is up at tcp://");
    (void)snprintf(address, sizeof address, "%.*s", (int)strcspn(at, "\n"), at);
    check_status_json(address);
    check_status_text(address);
    cli_read(&run);
    assert_null(strstr(run.text, "/job:client/")); /* those who asked are not logged */
    check_status_watch(address);
    check_status_watch_json(address);
    cli_expect_code(&run, 128 + SIGTERM);
    expect_gone(pids);
}

TEST(test_status_file_that_cannot_be_written_starts_nothing)
{
    char folder[64];
    char beside[80];

    cli_folder(folder, sizeof folder);
    cli_start(&run, NULL, "run", "--status-file", folder, NULL);
    cli_expect_code(&run, 2);
    (void)cli_expect(&run, NULL, " cannot be written: Is a directory");
    assert_null(strstr(run.text, " pid "));
    (void)snprintf(beside, sizeof beside, "%s.new", folder);
    assert_int_equal(access(beside, F_OK), -1);
    cli_start(&run, NULL, "run", "--status-file", "/no/such/file", NULL);
    cli_expect_code(&run, 2);
    (void)cli_expect(&run, NULL,
                     "--status-file: \"/no/such/file\" cannot be written: No "
                     "such file or directory");
    assert_null(strstr(run.text, " pid "));
    assert_int_equal(rmdir(folder), 0);
}

/* The last line says it, whatever others wrote meanwhile. */
TEST(test_reason_of_a_chief_that_cannot_begin)
{
    const char *end;

    cli_start(&run, NULL, "run", "--journal", "/no/such/file", NULL);
    cli_expect_code(&run, 2);
    end = cli_expect(&run, NULL, "muster: ended with exit code 2 after ");
    assert_non_null(strstr(end, "s: /no/such/file: cannot open it: no such file or "));
}

TEST(test_workers_that_are_done_before_the_chief)
{
    char plugin[256];

    (void)snprintf(plugin, sizeof plugin, "%s/rounds.so",
                   cli_variable("MUSTER_EXAMPLES"));
    cli_start(&run, NULL, "run", "--plugin", plugin, "--set", "rounds=1", NULL);
    (void)cli_expect(&run, NULL,
                     "all workers have ended; other tasks running: 2 (stop: Ctrl-C)");
    cli_stop(&run);
}

TEST_PROGRAM_WITH(adopt, NULL)
