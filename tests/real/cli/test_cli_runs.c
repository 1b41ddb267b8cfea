/* A job that is run again and again over the same store, in real processes: `muster run`
 * over a journal and over etcd, and `muster node` by hand. */
#include "tests/real/cli.h"
#include "tests/real/etcd.h"

static struct cli run;
static struct cli other;
static struct etcd etcd;
static char folder[64];
static char plugin[160];
static char store[160];

static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <time.h>\n"
    "static void nap(int ms) {\n"
    "    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};\n"
    "    nanosleep(&t, NULL);\n"
    "}\n"
    /* The last one comes late: whoever waits for all passes after it. */
    "static int meet(mu_context *c, const char *task, int timeout_ms, int late_ms) {\n"
    "    mu_error error;\n"
    "    int rv;\n"
    "    if (strcmp(task, \"/job:worker/task:1\") == 0) {\n"
    "        nap(late_ms);\n"
    "        printf(\"the last arrives\\n\");\n"
    "        fflush(stdout);\n"
    "        nap(100);\n" /* until it is read, before what others print then */
    "    }\n"
    "    rv = mu_context_wait_for_others(c, timeout_ms, &error);\n"
    "    if (rv != 0) return mu_context_fail_with(c, &error);\n"
    "    printf(\"%s passes\\n\", task);\n"
    "    return 0;\n"
    "}\n"
    "static int fail(mu_context *c, const char *task) {\n"
    "    mu_error error;\n"
    "    if (strcmp(task, \"/job:worker/task:0\") == 0)\n"
    "        return mu_context_fail(c, -MU_EABORTED, \"told to fail\");\n"
    "    for (;;) { nap(20); if (mu_context_cancelled(c)) break; }\n"
    "    printf(\"%s heard of it\\n\", task);\n"
    "    nap(20000);\n"
    "    return mu_context_wait_for_others(c, 1, &error);\n"
    "}\n"
    /* From where the last run has stopped. */
    "static int step(mu_context *c, const char *task) {\n"
    "    mu_node *node;\n"
    "    mu_kv_item item;\n"
    "    mu_error error;\n"
    "    uint64_t at = 0;\n"
    "    int rv = mu_context_node(c, &error, &node);\n"
    "    char text[24];\n"
    "    if (rv != 0) return rv;\n"
    "    if (mu_kv_try_get(node, \"step\", 5000, &error, &item) == 0) {\n"
    "        at = strtoull(item.value, NULL, 10);\n"
    "        mu_kv_item_clear(&item);\n"
    "    }\n"
    "    rv = mu_context_wait_for_others(c, 20000, &error);\n"
    "    if (rv != 0) return mu_context_fail_with(c, &error);\n"
    "    printf(\"%s begins at %d\\n\", task, (int)at);\n"
    "    for (uint64_t end = at + 1000; at < end; at++) {\n"
    "        int stop = 0;\n"
    "        rv = mu_preemption_reached(node, at, &error, &stop);\n"
    "        if (rv != 0) return mu_context_fail_with(c, &error);\n"
    "        if (stop || mu_context_cancelled(c)) break;\n"
    "        nap(10);\n"
    "    }\n"
    "    printf(\"%s stops at %d\\n\", task, (int)at);\n"
    "    snprintf(text, sizeof text, \"%d\", (int)at);\n"
    "    return mu_kv_put(node, \"step\", text, strlen(text), MU_KV_OVERWRITE, 0, 5000,\n"
    "                     &error, NULL);\n"
    "}\n"
    "static int work(mu_context *c, void *user) {\n"
    "    const char *does = user;\n"
    "    const char *task = mu_context_task(c);\n"
    "    setvbuf(stdout, NULL, _IOLBF, 0);\n"
    "    if (strcmp(does, \"meet\") == 0) return meet(c, task, 20000, 400);\n"
    "    if (strcmp(does, \"miss\") == 0) return meet(c, task, 200, 1000);\n"
    "    if (strcmp(does, \"fail\") == 0) return fail(c, task);\n"
    "    return step(c, task);\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node) {\n"
    "    mu_distribute_options o;\n"
    "    mu_distribute_options_init(&o);\n"
    "    o.strategy = mu_strategy_parameter_server();\n"
    "    o.worker = work;\n"
    "    o.worker_user = (void *)mu_node_get_setting(node, \"does\");\n"
    "    o.end_timeout_ms = 3000;\n"
    "    return mu_node_set_distribute(node, &o);\n"
    "}\n";

static int set_up_all(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    return cli_compile(folder, plugin_text, plugin, sizeof plugin);
}

static int tear_down_all(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int set_up_journal(void **state)
{
    (void)state;
    (void)snprintf(store, sizeof store, "journal:%s/store", folder);
    return 0;
}

static int tear_down_journal(void **state)
{
    (void)state;
    return unlink(store + strlen("journal:"));
}

static bool etcd_is_here(void)
{
    return needs_programs("etcd", NULL) == NULL;
}

static int set_up_etcd(void **state)
{
    (void)state;
    (void)snprintf(store, sizeof store, "etcd:");
    if (!etcd_is_here())
        return 0;
    etcd_open(&etcd);
    (void)snprintf(store, sizeof store, "etcd:http://127.0.0.1:%d", etcd.port);
    return 0;
}

static int tear_down_etcd(void **state)
{
    (void)state;
    if (etcd_is_here())
        etcd_close(&etcd);
    return 0;
}

/* Over etcd only where there is one. */
static void need_store(void **state)
{
    (void)state;
    if (strncmp(store, "etcd", 4) == 0)
        needs_skip_test(needs_programs("etcd", NULL));
}

static void start_with(const char *const *variables, const char *does)
{
    char setting[32];

    (void)snprintf(setting, sizeof setting, "does=%s", does);
    cli_start(&run, variables, "run", "--workers", "2", "--ps", "0", "--plugin", plugin,
              "--store", store, "--lease-ms", "2000", "--grace-ms", "2000", "--set",
              setting, NULL);
}

static void start(const char *does)
{
    start_with(NULL, does);
}

/* All three have waited for the last. */
static void expect_met(void)
{
    const char *last;

    cli_expect_code(&run, 0);
    last = strstr(run.text, "the last arrives");
    if (last == NULL || strstr(run.text, "/job:chief/task:0 passes") < last ||
        strstr(run.text, "/job:worker/task:0 passes") < last ||
        strstr(run.text, "/job:worker/task:1 passes") < last) {
        cli_show(&run);
        fail_msg("somebody has not waited");
    }
}

static void expect_meeting(void)
{
    start("meet");
    expect_met();
}

/* Processes that were killed may hold it for a moment yet. */
static cJSON *look(void)
{
    const uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    do
        cli_start(&other, NULL, "store", "ls", "--store", store, "-o", "json",
                  "--timeout-ms", "20000", NULL);
    while (cli_wait(&other) == 3 && cli_now_ms() < deadline_ms);
    assert_int_equal(other.code, 0);
    return cli_json(other.text);
}

static const cJSON *run_at(const cJSON *all, int back)
{
    const cJSON *runs = cJSON_GetObjectItem(all, "runs");

    return cJSON_GetArrayItem(runs, cJSON_GetArraySize(runs) - 1 - back);
}

LISTED_TEST(test_barrier_waits_in_each_run)
{
    cJSON *all;

    need_store(state);
    expect_meeting();
    expect_meeting();
    all = look();
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(all, "runs")), 2);
    assert_string_equal(cli_text(run_at(all, 0), "state"), "ended");
    assert_true(cli_number(run_at(all, 0), "barriers") == 1);
    cJSON_Delete(all);
}

LISTED_TEST(test_failed_barrier_does_not_poison_the_next_run)
{
    cJSON *all;

    need_store(state);
    start("miss");
    cli_expect_code(&run, 1);
    expect_meeting();
    all = look();
    assert_string_equal(cli_text(run_at(all, 1), "state"), "failed");
    assert_string_equal(cli_text(run_at(all, 1), "error"), "EDEADLINE");
    cJSON_Delete(all);
}

/* Everything is killed when a function has failed, and nobody could say how it ended. */
LISTED_TEST(test_killed_run_does_not_fail_the_next)
{
    cJSON *all;

    need_store(state);
    start("fail");
    (void)cli_expect(&run, NULL, "/job:worker/task:1 heard of it");
    cli_kill(&run, SIGKILL);
    cli_expect_code(&run, 128 + SIGKILL);
    cJSON_Delete(look());
    expect_meeting();
    all = look();
    assert_string_equal(cli_text(run_at(all, 1), "state"), "failed");
    cJSON_Delete(all);
}

/* All processes are killed behind a barrier and started again in the same run: none lives
 * that has passed it, and each of them waits for the others. */
LISTED_TEST(test_killed_processes_meet_again)
{
    static const char *const named[] = {"MUSTER_RUN=night", NULL};
    cJSON *all;

    need_store(state);
    start_with(named, "step");
    (void)cli_expect(&run, NULL, "/job:worker/task:0 begins at ");
    cli_kill(&run, SIGKILL);
    cli_expect_code(&run, 128 + SIGKILL);
    cJSON_Delete(look());
    start_with(named, "meet");
    expect_met();
    all = look();
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(all, "runs")), 1);
    cJSON_Delete(all);
}

static const char *chief_address(void)
{
    static char address[64];
    const char *at = cli_expect(&run, NULL, "chief/0 pid ");

    at = cli_expect(&run, at, "started at ");
    (void)snprintf(address, sizeof address, "tcp://%.*s", (int)strcspn(at, "\n"), at);
    return address;
}

static int number_after(const char *needle)
{
    const char *at = strstr(run.text, needle);

    if (at == NULL) {
        cli_show(&run);
        fail_msg("\"%s\" was not printed", needle);
        return -1;
    }
    return atoi(at + strlen(needle));
}

/* Returns the step that the run has stopped at, and expects where it begins. */
static int run_until_preempted(int begins)
{
    start("step");
    (void)cli_expect(&run, NULL, "/job:worker/task:1 begins at ");
    cli_start(&other, NULL, "preempt", "maintenance", "--address", chief_address(), NULL);
    cli_expect_code(&other, 0);
    cli_expect_code(&run, 0);
    assert_int_equal(number_after("/job:chief/task:0 begins at "), begins);
    return number_after("/job:chief/task:0 stops at ");
}

LISTED_TEST(test_preempted_job_goes_on_in_the_next_run)
{
    int first;
    int second;

    need_store(state);
    first = run_until_preempted(0);
    second = run_until_preempted(first);
    assert_true(second > first);
    assert_true(run_until_preempted(second) > second);
}

/* ---- by hand ---- */

static void start_alone(struct cli *cli, const char *name, const char *does)
{
    char setting[32];

    (void)snprintf(setting, sizeof setting, "does=%s", does);
    if (name == NULL)
        cli_start(cli, NULL, "node", "--cluster", "{\"chief\":[\"127.0.0.1:0\"]}",
                  "--task", "chief:0", "--plugin", plugin, "--store", store, "--set",
                  setting, "--grace-ms", "500", NULL);
    else
        cli_start(cli, NULL, "node", "--cluster", "{\"chief\":[\"127.0.0.1:0\"]}",
                  "--task", "chief:0", "--plugin", plugin, "--store", store, "--set",
                  setting, "--grace-ms", "500", "--run", name, NULL);
}

static void expect_run(const char *words)
{
    (void)cli_expect(&run, NULL, words);
}

LISTED_TEST(test_by_hand)
{
    start_alone(&run, NULL, "meet");
    expect_run("run \"run-1\" of the job begins");
    cli_expect_code(&run, 0);
    start_alone(&run, NULL, "step"); /* it had ended */
    expect_run("run \"run-2\" of the job begins");
    (void)cli_expect(&run, NULL, "begins at");
    cli_kill(&run, SIGKILL);
    cli_expect_code(&run, 128 + SIGKILL);
    start_alone(&run, NULL, "meet"); /* it had not */
    expect_run("run \"run-2\" of the job goes on");
    cli_expect_code(&run, 0);
    start_alone(&run, "night", "step");
    expect_run("run \"night\" of the job begins");
    (void)cli_expect(&run, NULL, "begins at");
    cli_kill(&run, SIGTERM); /* closed in order, and nobody was there */
    cli_expect_code(&run, 128 + SIGTERM);
    start_alone(&run, "night", "meet");
    expect_run("run \"night\" of the job goes on");
    cli_expect_code(&run, 0);
    start_alone(&run, NULL, "meet");
    expect_run("run \"run-4\" of the job begins");
    cli_expect_code(&run, 0);
    start_alone(&run, "night", "meet");
    expect_run("run \"night\" is over (ended), and the store is in run \"run-4\"");
    cli_kill(&run, SIGKILL);
    cli_expect_code(&run, 128 + SIGKILL);
}

LISTED_TEST(test_bad_name)
{
    start_alone(&run, "a/b", "meet");
    cli_expect_code(&run, 2);
    assert_non_null(strstr(run.text, "option run: the name of a run is \"a/b\", expected "
                                     "1 to 63 letters"));
}

/* ---- showing and clearing ---- */

LISTED_TEST(test_store_with_a_running_service)
{
    const char *address;
    cJSON *all;

    need_store(state);
    expect_meeting();
    start("step");
    (void)cli_expect(&run, NULL, "/job:worker/task:1 begins at ");
    address = chief_address();
    cli_start(&other, NULL, "store", "ls", "--address", address, "-o", "json", NULL);
    cli_expect_code(&other, 0);
    all = cli_json(other.text);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(all, "runs")), 2);
    assert_string_equal(cli_text(run_at(all, 0), "state"), "running");
    cJSON_Delete(all);
    cli_start(&other, NULL, "store", "clear", "--address", address, NULL);
    cli_expect_code(&other, 0);
    assert_string_equal(other.text, "1\n");
    cli_start(&other, NULL, "store", "clear", "--present", "--address", address, NULL);
    cli_expect_code(&other, 0);
    assert_string_equal(other.text, "1\n"); /* the barrier that all have passed */
    cli_start(&other, NULL, "store", "clear", "--run", "nobody", "--address", address,
              NULL);
    cli_expect_code(&other, 1);
    assert_non_null(strstr(other.text, "the store knows no run \"nobody\""));
    cli_start(&other, NULL, "store", "ls", "--address", address, NULL);
    cli_expect_code(&other, 0);
    assert_non_null(strstr(other.text, "running"));
    cli_kill(&run, SIGKILL);
    cli_expect_code(&run, 128 + SIGKILL);
}

LISTED_TEST(test_store_without_a_service)
{
    cJSON *all;

    need_store(state);
    expect_meeting();
    start("step");
    (void)cli_expect(&run, NULL, "/job:worker/task:1 begins at ");
    cli_start(&other, NULL, "store", "ls", "--store", store, "--timeout-ms", "1000",
              NULL);
    assert_int_not_equal(cli_wait(&other), 0); /* somebody holds it */
    assert_non_null(strstr(other.text, "store"));
    cli_kill(&run, SIGKILL);
    cli_expect_code(&run, 128 + SIGKILL);
    all = look();
    assert_string_equal(cli_text(run_at(all, 0), "state"), "running");
    cJSON_Delete(all);
    cli_start(&other, NULL, "store", "clear", "--ended", "--present", "--store", store,
              "--timeout-ms", "20000", "-o", "json", NULL);
    cli_expect_code(&other, 0);
    all = cli_json(other.text);
    assert_true(cli_number(all, "cleared") == 2); /* a run, and a barrier */
    cJSON_Delete(all);
    all = look();
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(all, "runs")), 1);
    assert_true(cli_number(run_at(all, 0), "barriers") == 0);
    cJSON_Delete(all);
}

LISTED_TEST(test_store_that_is_not_there)
{
    cli_start(&other, NULL, "store", "ls", "--store", "journal:/nowhere/store", NULL);
    cli_expect_code(&other, 2);
    assert_non_null(strstr(other.text, "there is no such file"));
    cli_start(&other, NULL, "store", "ls", "--store", "paper:a", NULL);
    cli_expect_code(&other, 2);
    assert_non_null(strstr(other.text, "memory"));
}

#define OVER_BOTH(name)                                                       \
    cmocka_unit_test_setup_teardown(name, set_up_journal, tear_down_journal), \
        cmocka_unit_test_setup_teardown(name, set_up_etcd, tear_down_etcd)
#define OVER_JOURNAL(name) \
    cmocka_unit_test_setup_teardown(name, set_up_journal, tear_down_journal)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH(test_barrier_waits_in_each_run),
        OVER_BOTH(test_failed_barrier_does_not_poison_the_next_run),
        OVER_BOTH(test_killed_run_does_not_fail_the_next),
        OVER_BOTH(test_killed_processes_meet_again),
        OVER_BOTH(test_preempted_job_goes_on_in_the_next_run),
        OVER_JOURNAL(test_by_hand),
        cmocka_unit_test_setup(test_bad_name, set_up_journal),
        OVER_BOTH(test_store_with_a_running_service),
        OVER_BOTH(test_store_without_a_service),
        cmocka_unit_test(test_store_that_is_not_there),
    };

    return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
