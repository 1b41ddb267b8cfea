/* One parameter server with a journal, and no backup, that is killed again and again,
 * alone and together with the chief, under threads that add to a variable without end:
 * each add counts once, none fails. The tasks are processes of their own: this very
 * program, started with a task as arguments. */
#include "tests/real/files.h"
#include "tests/real/servers/writers.h"

#include <sys/resource.h>
#include <sys/stat.h>

enum { HEARTBEAT_MS = 100, SILENCE_MS = 1000, KILLING_MS = 8000, EACH_MS = 1000 };

static const char folder_variable[] = "TEST_PS_JOURNAL_FOLDER";
static const char limit_variable[] = "TEST_PS_JOURNAL_LIMIT";

static void set_options(mu_node_options *options)
{
    options->heartbeat_ms = HEARTBEAT_MS;
    options->silence_ms = SILENCE_MS;
    options->ps_journal = getenv(folder_variable);
}

/* A disk that is full, as far as this process knows. */
static void limit_files(void)
{
    const char *bytes = getenv(limit_variable);
    struct rlimit limit;

    if (bytes == NULL)
        return;
    limit.rlim_cur = limit.rlim_max = strtoul(bytes, NULL, 10);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &limit);
}

static int play(char **argv)
{
    mu_node_options options;

    limit_files();
    mu_node_options_init(&options);
    set_options(&options);
    return tasks_play(argv, &options, NULL, 0);
}

struct fixture {
    struct nodes nodes;
    char folder[64];
    mu_node *worker;
    pid_t chief;
    pid_t server;
    struct writers writers;
};

static void start_server(struct fixture *f)
{
    f->server = tasks_start("ps", 0, f->nodes.json);
}

static void start_chief(struct fixture *f)
{
    f->chief = tasks_start("chief", 0, f->nodes.json);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    (void)snprintf(f->folder, sizeof f->folder, "/tmp/muster-test-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    (void)setenv(folder_variable, f->folder, 1);
    nodes_init(&f->nodes, 1, 1);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    if (f->writers.variable != NULL)
        mu_variable_close(f->writers.variable);
    nodes_done(&f->nodes);
    tasks_kill(&f->server);
    tasks_kill(&f->chief);
    files_remove_folder(f->folder);
    free(f);
    return 0;
}

/* The threads are those of a worker, which is this process. */
static void begin_tasks(struct fixture *f)
{
    mu_node_options options;

    start_server(f);
    start_chief(f);
    nodes_options(&f->nodes, "worker", 0, &options);
    set_options(&options);
    f->worker = nodes_open_with(&f->nodes, &options);
    begin_writers(&f->writers, open_counts(f->worker));
}

static void pause_for(uint64_t ms)
{
    uint64_t end_ms = cli_now_ms() + ms;

    while (cli_now_ms() < end_ms)
        nodes_pause();
}

TEST_ON(test_killed_server, struct fixture *f, set_up, tear_down)
{
    uint64_t end_ms = cli_now_ms() + KILLING_MS;

    begin_tasks(f);
    while (cli_now_ms() < end_ms) {
        wait_adds(&f->writers);
        pause_for(EACH_MS);
        tasks_kill(&f->server);
        start_server(f);
    }
    wait_adds(&f->writers);
    assert_exact(&f->writers, "killed server");
}

TEST_ON(test_killed_chief, struct fixture *f, set_up, tear_down)
{
    uint64_t end_ms = cli_now_ms() + KILLING_MS;

    begin_tasks(f);
    for (int round = 0; cli_now_ms() < end_ms; round++) {
        wait_adds(&f->writers);
        pause_for(EACH_MS / 2);
        if (round % 3 != 0)
            tasks_kill(&f->server);
        tasks_kill(&f->chief);
        if (round % 3 == 2)
            pause_for(EACH_MS / 2);
        start_chief(f);
        if (f->server == 0)
            start_server(f);
    }
    wait_adds(&f->writers);
    assert_exact(&f->writers, "killed chief");
}

/* ---- Disks ---- */

/* What is answered is in the file, and nothing else is answered. */
TEST_ON(test_full_disk, struct fixture *f, set_up, tear_down)
{
    int64_t adds;
    int64_t again;

    (void)setenv(limit_variable, "4000000", 1);
    begin_tasks(f);
    (void)unsetenv(limit_variable);
    do {
        again = atomic_load(&f->writers.adds);
        pause_for(EACH_MS);
        adds = atomic_load(&f->writers.adds);
    } while (adds == 0 || adds > again);
    tasks_kill(&f->server);
    start_server(f);
    wait_adds(&f->writers);
    assert_exact(&f->writers, "full disk");
}

/* ---- What is refused ---- */

static void expect_refused(struct fixture *f, int code, const char *words)
{
    mu_node_options options;
    mu_error error = {0};
    mu_node *node = NULL;

    nodes_options(&f->nodes, "ps", 0, &options);
    set_options(&options);
    options.run = "tuesday";
    assert_int_equal(mu_node_open(&options, &error, &node), code);
    if (strstr(error.message, words) == NULL)
        fail_msg("expected \"%s\", got \"%s\"", words, error.message);
}

static void write_journal(struct fixture *f, int task, const char *run)
{
    struct nodes nodes;
    mu_node_options options;

    nodes_init(&nodes, 0, 2);
    nodes_options(&nodes, "ps", task, &options);
    options.ps_journal = f->folder;
    options.run = run;
    nodes_close(&nodes, nodes_open_with(&nodes, &options));
    nodes_done(&nodes);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

TEST_ON(test_refused_files, struct fixture *f, set_up, tear_down)
{
    char path[96];
    char other[96];
    mu_node_options options;
    mu_node *node;

    (void)snprintf(path, sizeof path, "%s/ps-0.journal", f->folder);
    (void)snprintf(other, sizeof other, "%s/ps-1.journal", f->folder);
    write_text(path, "mustrjnl nonsense");
    expect_refused(f, -MU_EDATALOSS, path);
    assert_int_equal(unlink(path), 0);
    write_journal(f, 0, "monday");
    expect_refused(f, -MU_EPRECONDITION,
                   "is the journal of the job's run \"monday\", and this is run "
                   "\"tuesday\": set MUSTER_RUN=monday to go on with that one");
    assert_int_equal(unlink(path), 0);
    write_journal(f, 1, "tuesday");
    assert_int_equal(rename(other, path), 0);
    expect_refused(f, -MU_EPRECONDITION, "is the journal of /job:ps/task:1");
    assert_int_equal(unlink(path), 0);
    nodes_options(&f->nodes, "ps", 0, &options);
    set_options(&options);
    node = nodes_open_with(&f->nodes, &options);
    expect_refused(f, -MU_EEXISTS, path);
    nodes_close(&f->nodes, node);
    assert_int_equal(mkdir(other, 0), 0);
    (void)setenv(folder_variable, "/nowhere/at/all", 1);
    expect_refused(f, -MU_ENOTFOUND, "/nowhere/at/all/ps-0.journal");
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return play(argv);
    return tests_run(NULL, NULL);
}
