/* What `muster node` does at signals: SIGHUP opens its log again and reads its key again,
 * SIGQUIT ends it with the stacks of its threads in the log, others end it in order.
 * SIGTERM of a task that has work: test_cli_explain.c. */
#include "tests/real/cli.h"
#include "tests/real/nodes.h"

static struct cli task;

static void start_chief(const struct nodes *nodes, const char *flag, const char *value)
{
    cli_start(&task, NULL, "node", "--cluster", nodes->json, "--task", "chief:0", flag,
              value, NULL);
}

static bool file_has(const char *path, const char *words)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    size_t size;

    if (file == NULL)
        return false;
    size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    return strstr(text, words) != NULL;
}

static void await_in(const char *path, const char *words)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    for (int i = 0; i < 2000; i++) {
        if (file_has(path, words))
            return;
        (void)nanosleep(&pause, NULL);
    }
    fail_msg("%s lacks \"%s\"", path, words);
}

TEST(test_hup_opens_the_log_again)
{
    char folder[] = "/tmp/muster-signals-XXXXXX";
    struct nodes nodes;
    char path[64];
    char old[64];

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/log", folder);
    (void)snprintf(old, sizeof old, "%s/log.1", folder);
    nodes_init(&nodes, 1, 0);
    start_chief(&nodes, "--log-file", path);
    await_in(path, " is up at ");
    assert_int_equal(rename(path, old), 0);
    cli_kill(&task, SIGHUP);
    await_in(path, "SIGHUP: the log is opened again");
    cli_kill(&task, SIGTERM);
    cli_expect_code(&task, 0);
    await_in(path, "signal 15");
    assert_false(file_has(old, "signal 15"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(old), 0);
    assert_int_equal(rmdir(folder), 0);
    nodes_done(&nodes);
}

/* A key file that holds another key is said at once, without any new connection; so is
 * one that cannot be used, and the task goes on with the key it had. */
TEST(test_hup_reads_the_key_again)
{
    char folder[] = "/tmp/muster-signals-XXXXXX";
    struct nodes nodes;
    const char *from;
    char path[64];

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/key", folder);
    cli_start(&task, NULL, "key", "new", path, NULL);
    cli_expect_code(&task, 0);
    nodes_init(&nodes, 1, 0);
    start_chief(&nodes, "--key-file", path);
    (void)cli_expect(&task, NULL, " is up at ");
    cli_kill(&task, SIGHUP);
    from = cli_expect(&task, NULL, "new connections use the cluster key ");
    from = cli_expect(&task, from, "which was read again");
    cli_write_file(path, "no key\n");
    cli_kill(&task, SIGHUP);
    from = cli_expect(&task, from, " stays in use, though its file cannot be: ");
    (void)cli_expect(&task, from, "is no key");
    cli_kill(&task, SIGTERM);
    cli_expect_code(&task, 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    nodes_done(&nodes);
}

/* Each thread is named; at least one frame is of the library's loop. */
TEST(test_quit_leaves_with_stacks)
{
    struct nodes nodes;
    const char *from;

    nodes_init(&nodes, 1, 0);
    start_chief(&nodes, "--threads", "2");
    (void)cli_expect(&task, NULL, " registered with "); /* its loop runs */
    cli_kill(&task, SIGQUIT);
    from = cli_expect(&task, NULL, "thread ");
    from = cli_expect(&task, from, "uv_run");
    (void)cli_expect(&task, NULL, "ends within");
    cli_expect_code(&task, 128 + SIGQUIT);
    nodes_done(&nodes);
}

TEST(test_others_end_it_in_order)
{
    static const int numbers[] = {SIGINT, SIGUSR1, SIGUSR2, SIGALRM};
    struct nodes nodes;

    nodes_init(&nodes, 1, 0);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        start_chief(&nodes, "--threads", "1");
        (void)cli_expect(&task, NULL, " is up at ");
        cli_kill(&task, numbers[i]);
        (void)cli_expect(&task, NULL, "ends within");
        cli_expect_code(&task, 128 + numbers[i]);
    }
    nodes_done(&nodes);
}

TEST_PROGRAM()
