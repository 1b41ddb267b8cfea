/* Runs of a job whose host is a node of a program: closed in order, on a thread of its
 * own and on the program's loop; one that says that the job is done; and one whose task
 * leaves before. */
#include "tests/real/cli.h"

#include <muster.h>

#include <stdatomic.h>
#include <uv.h>

static char folder[64];
static char store[96];
static char began[64];    /* the words of the log about the run */
static atomic_bool is_up; /* its task is registered */

static void note_line(void *user, int level, const char *task, const char *who,
                      const char *line)
{
    (void)user;
    (void)level;
    (void)task;
    (void)who;
    if (strncmp(line, "run \"", 5) == 0 && strstr(line, " of the job ") != NULL)
        (void)snprintf(began, sizeof began, "%s", line);
    if (strncmp(line, "registered", 10) == 0)
        atomic_store(&is_up, true);
}

static mu_cluster *make_cluster(void)
{
    mu_cluster *cluster = mu_cluster_new();

    assert_non_null(cluster);
    assert_int_equal(mu_cluster_add(cluster, "chief", 0, "127.0.0.1:0", NULL), 0);
    return cluster;
}

static mu_node *open_node(struct uv_loop_s *loop)
{
    mu_cluster *cluster = make_cluster();
    mu_node_options options;
    mu_error error = {0};
    mu_node *node;

    mu_node_options_init(&options);
    options.cluster = cluster;
    options.task_type = "chief";
    options.store = store;
    options.log = note_line;
    options.loop = loop;
    atomic_store(&is_up, false);
    if (mu_node_open(&options, &error, &node) != 0)
        fail_msg("%s", error.message);
    mu_cluster_free(cluster);
    return node;
}

/* How the program says goodbye before it closes its node. */
enum goodbye { SAYS_NOTHING, JOB_IS_DONE, TASK_LEAVES };

static void check_run_on_a_thread(const char *words, enum goodbye goodbye)
{
    mu_node *node = open_node(NULL);
    mu_error error = {0};

    assert_int_equal(mu_agent_register(node, 0, CLI_SOON_MS, &error), 0);
    if (goodbye == JOB_IS_DONE)
        assert_int_equal(mu_node_finish_job(node, 0, "", CLI_SOON_MS, &error), 0);
    else if (goodbye == TASK_LEAVES)
        assert_int_equal(mu_agent_leave(node, CLI_SOON_MS, &error), 0);
    assert_int_equal(mu_node_close(node, CLI_SOON_MS, &error), 0);
    assert_string_equal(began, words);
}

LISTED_TEST(test_on_a_thread)
{
    check_run_on_a_thread("run \"run-1\" of the job begins", SAYS_NOTHING);
    check_run_on_a_thread("run \"run-2\" of the job begins", SAYS_NOTHING);
    check_run_on_a_thread("run \"run-3\" of the job begins", JOB_IS_DONE);
    check_run_on_a_thread("run \"run-4\" of the job begins", TASK_LEAVES);
    check_run_on_a_thread("run \"run-5\" of the job begins", SAYS_NOTHING);
}

static void on_closed(void *user)
{
    *(bool *)user = true;
}

static void check_run_on_a_loop(const char *words)
{
    const uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;
    bool closed = false;
    uv_loop_t loop;
    mu_node *node;

    assert_int_equal(uv_loop_init(&loop), 0);
    node = open_node(&loop);
    while (!atomic_load(&is_up) && cli_now_ms() < deadline_ms)
        (void)uv_run(&loop, UV_RUN_ONCE);
    mu_node_close_async(node, on_closed, &closed);
    while (!closed && cli_now_ms() < deadline_ms)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_true(closed);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_string_equal(began, words);
}

LISTED_TEST(test_on_the_programs_loop)
{
    check_run_on_a_loop("run \"run-1\" of the job begins");
    check_run_on_a_loop("run \"run-2\" of the job begins");
}

static int set_up(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    (void)snprintf(store, sizeof store, "journal:%s/store", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cli_remove_store(store + strlen("journal:"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_on_a_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_on_the_programs_loop, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
