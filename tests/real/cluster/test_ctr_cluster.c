/* Click prediction as a person runs it: `muster run` with the plugin of examples/ctr. A
 * worker and a server are killed on the way, and the model is as good as planted; in
 * synchronous steps it is the same, bit by bit, on any number of servers and workers. */
#include "tests/real/cli.h"

#include <inttypes.h>

enum {
    LINES = 400000,
    TIMEOUT_MS = 240000, /* for one job, with sanitizers on a busy machine */
    SETTINGS = 6,
    PATH_BYTES = 512
};

struct fixture {
    struct cli cli;
    struct cli asked;
    char folder[64];
    char status[PATH_BYTES];
    char plugin[PATH_BYTES];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    cli_folder(f->folder, sizeof f->folder);
    (void)snprintf(f->status, sizeof f->status, "%s/status.json", f->folder);
    (void)snprintf(f->plugin, sizeof f->plugin, "%s/ctr.so",
                   cli_variable("MUSTER_EXAMPLES"));
    f->cli.ended = true;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[PATH_BYTES];

    if (!f->cli.ended)
        cli_stop(&f->cli);
    (void)snprintf(command, sizeof command, "rm -r %s", f->folder);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

/* ---- A job ---- */

/* A job with settings that differ from test to test. */
struct job {
    const char *workers;
    const char *servers;
    const char *settings[SETTINGS]; /* up to NULL */
};

static void start_job(struct fixture *f, const struct job *job)
{
    const char *const *s = job->settings;

    (void)unlink(f->status); /* of the job before, whose chief is gone */
    /* A setting that is NULL ends the arguments. */
    cli_start(&f->cli, NULL, "run", "--workers", job->workers, "--ps", job->servers,
              "--evaluator", "1", "--plugin", f->plugin, "--restart",
              "worker=on-failure,ps=on-failure", "--log-level", "warn", "--status-file",
              f->status, "--set", s[0], s[1] == NULL ? NULL : "--set", s[1],
              s[2] == NULL ? NULL : "--set", s[2], s[3] == NULL ? NULL : "--set", s[3],
              s[4] == NULL ? NULL : "--set", s[4], s[5] == NULL ? NULL : "--set", s[5],
              NULL);
}

static int end_of_job(struct fixture *f)
{
    uint64_t deadline_ms = cli_now_ms() + TIMEOUT_MS;
    int status;

    while (waitpid(f->cli.pid, &status, WNOHANG) != f->cli.pid) {
        cli_read(&f->cli);
        if (cli_now_ms() >= deadline_ms) {
            cli_show(&f->cli);
            fail_msg("the job did not end");
        }
        cli_pause();
    }
    cli_read(&f->cli);
    f->cli.ended = true;
    (void)close(f->cli.fd);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void expect_end(struct fixture *f, int code)
{
    const int found = end_of_job(f);

    if (found == code)
        return;
    cli_show(&f->cli);
    fail_msg("exit code %d instead of %d", found, code);
}

/* The text that was printed after these words, up to the end of the line. */
static void text_after(const struct fixture *f, const char *words, char text[64])
{
    const char *at = strstr(f->cli.text, words);

    if (at == NULL) {
        cli_show(&f->cli);
        fail_msg("\"%s\" was not printed", words);
        return;
    }
    at += strlen(words);
    (void)snprintf(text, 64, "%.*s", (int)strcspn(at, "\n"), at);
}

/* The number that was printed before these words, without the commas in it. */
static uint64_t number_before(const struct fixture *f, const char *words)
{
    const char *at = strstr(f->cli.text, words);
    uint64_t number = 0;

    assert_non_null(at);
    while (at > f->cli.text && (at[-1] == ',' || (at[-1] >= '0' && at[-1] <= '9')))
        at--;
    for (; strncmp(at, words, strlen(words)) != 0; at++)
        number = *at == ',' ? number : number * 10 + (uint64_t)(*at - '0');
    return number;
}

/* ---- Killing ---- */

/* A field of a task in the status file, as a text; "" when there is none. */
static void task_field(const struct fixture *f, const char *task, const char *field,
                       char text[64])
{
    char content[16384] = "";
    const cJSON *value;
    cJSON *file;

    if (access(f->status, R_OK) == 0)
        cli_read_file(f->status, content, sizeof content);
    file = cJSON_Parse(content);
    value = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(file, task),
                                             field);
    text[0] = '\0';
    if (cJSON_IsString(value))
        (void)snprintf(text, 64, "%s", value->valuestring);
    if (cJSON_IsNumber(value))
        (void)snprintf(text, 64, "%.0f", value->valuedouble);
    cJSON_Delete(file);
}

/* A number of the chief's status; -1 while it gives none. */
static double ask_status(struct fixture *f, const char *group, const char *key)
{
    double number = -1;
    char address[64];
    cJSON *status;

    task_field(f, "chief/0", "address", address);
    if (address[0] == '\0')
        return -1;
    cli_start(&f->asked, NULL, "status", "--address", address, "-o", "json", NULL);
    if (cli_wait(&f->asked) != 0)
        return -1;
    status = cJSON_Parse(f->asked.text);
    if (cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(status, group), key)))
        number = cli_number(cJSON_GetObjectItemCaseSensitive(status, group), key);
    cJSON_Delete(status);
    return number;
}

/* Wait until this number is at least `low`, and at most `high`. */
static void expect_status(struct fixture *f, const char *group, const char *key,
                          double low, double high)
{
    uint64_t deadline_ms = cli_now_ms() + TIMEOUT_MS;
    double number;

    do {
        cli_read(&f->cli);
        number = ask_status(f, group, key);
        if (number >= low && number <= high)
            return;
        cli_pause();
    } while (cli_now_ms() < deadline_ms && strstr(f->cli.text, "muster: ended") == NULL);
    cli_show(&f->cli);
    fail_msg("%s.%s is %g", group, key, number);
}

static void kill_task(struct fixture *f, const char *task)
{
    char pid[64];

    task_field(f, task, "pid", pid);
    assert_true(pid[0] != '\0');
    assert_int_equal(kill((pid_t)strtol(pid, NULL, 10), SIGKILL), 0);
}

/* A worker, and then a server, each when all parameters are on both servers. */
static void kill_both(struct fixture *f, double first, double second)
{
    expect_status(f, "closures", "finished", first, 1e9);
    kill_task(f, "worker/1");
    expect_status(f, "closures", "finished", second, 1e9);
    expect_status(f, "partitions", "degraded", 0, 0);
    kill_task(f, "ps/1");
}

/* ---- Tests ---- */

TEST_ON(test_model_is_as_good_as_planted_although_tasks_are_killed, struct fixture *f,
        set_up, tear_down)
{
    char lines[32];
    char text[64];

    (void)snprintf(lines, sizeof lines, "lines=%d", LINES);
    start_job(f, &(struct job){"2", "2", {lines, "slow_ms=10", "gap=0.005"}});
    kill_both(f, 50, 200);
    expect_end(f, 0);
    text_after(f, "ctr: planted: ", text);
    assert_non_null(strstr(text, "0.0050"));
    assert_null(strstr(f->cli.text, "not within"));
    text_after(f, "ctr: closures: ", text);
    assert_null(strstr(text, " 0 retried"));
    assert_non_null(strstr(text, "782 scheduled, 782 finished"));
}

/* Of a synchronous job of 30 steps of 4 closures: what the rows' checksum is. */
static void train_synchronously(struct fixture *f, const char *workers,
                                const char *servers, bool killing, char sum[64])
{
    start_job(f, &(struct job){workers,
                               servers,
                               {"sync=1", "sum=1", "lines=61440",
                                killing ? "slow_ms=100" : "factors=2", NULL}});
    if (killing)
        kill_both(f, 20, 60);
    expect_end(f, 1); /* the AUC is not there yet */
    text_after(f, "checksum of the rows: ", sum);
    assert_int_equal(strlen(sum), 16);
}

TEST_ON(test_synchronous_model_is_the_same_on_any_number_of_servers, struct fixture *f,
        set_up, tear_down)
{
    static const struct {
        const char *workers;
        const char *servers;
    } rows[] = {{"1", "1"}, {"2", "2"}, {"3", "4"}};
    char sums[3][64];

    for (size_t i = 0; i < 3; i++) {
        train_synchronously(f, rows[i].workers, rows[i].servers, false, sums[i]);
        assert_string_equal(sums[i], sums[0]);
    }
}

/* The same job with one worker and one server. */
static void train_alone(struct fixture *f, char sum[64])
{
    start_job(f, &(struct job){"1", "1", {"sync=1", "sum=1", "lines=61440"}});
    expect_end(f, 1);
    text_after(f, "checksum of the rows: ", sum);
}

TEST_ON(test_synchronous_model_is_the_same_although_tasks_are_killed, struct fixture *f,
        set_up, tear_down)
{
    char sums[2][64];

    train_alone(f, sums[0]);
    train_synchronously(f, "2", "2", true, sums[1]);
    assert_string_equal(sums[0], sums[1]);
}

/* All processes are stopped on the way, and the job is started again. */
static void train_in_two_runs(struct fixture *f, const struct job *job, int code)
{
    start_job(f, job);
    expect_status(f, "closures", "finished", 60, 1e9);
    cli_stop(&f->cli);
    start_job(f, job);
    expect_end(f, code);
    assert_non_null(strstr(f->cli.text, "ctr: goes on behind batch "));
}

TEST_ON(test_job_goes_on_from_its_checkpoint_bit_by_bit, struct fixture *f, set_up,
        tear_down)
{
    char directory[PATH_BYTES];
    char sums[2][64];

    (void)snprintf(directory, sizeof directory, "checkpoint=%s/saved", f->folder);
    train_alone(f, sums[0]);
    train_in_two_runs(f,
                      &(struct job){"2",
                                    "2",
                                    {"sync=1", "sum=1", "lines=61440", "slow_ms=100",
                                     directory, "checkpoint_each=20"}},
                      1);
    text_after(f, "checksum of the rows: ", sums[1]);
    assert_string_equal(sums[0], sums[1]);
}

/* The program fails if a line was not trained on exactly once. */
TEST_ON(test_each_line_counts_once_in_two_runs, struct fixture *f, set_up, tear_down)
{
    char directory[PATH_BYTES];

    (void)snprintf(directory, sizeof directory, "checkpoint=%s/saved", f->folder);
    train_in_two_runs(f,
                      &(struct job){"2",
                                    "2",
                                    {"lines=102400", "gap=1", "slow_ms=50", directory,
                                     "checkpoint_each=40"}},
                      0);
    assert_int_equal(number_before(f, " lines in "), 102400);
}

/* Whole checkpoints and increments are read without a cluster: the score of held-out
 * lines, here those behind the 51,200 that are trained on, is that of the cluster. */
TEST_ON(test_served_model_is_the_trained_one, struct fixture *f, set_up, tear_down)
{
    char command[3 * PATH_BYTES];
    char directory[PATH_BYTES];
    char served[PATH_BYTES];
    char trained[64];
    char *at;

    (void)snprintf(directory, sizeof directory, "checkpoint=%s/saved", f->folder);
    start_job(f, &(struct job){"2",
                               "2",
                               {"lines=51200", "gap=1", "factors=2", directory,
                                "checkpoint_each=20"}});
    expect_end(f, 0);
    text_after(f, "ctr: AUC ", trained);
    (void)snprintf(command, sizeof command,
                   "%s/ctr_lines 71680 2>/dev/null | tail -n 20480 | "
                   "%s/ctr_serve %s/saved 2>%s/served | grep -c '^0[.]' >%s/lines",
                   cli_variable("MUSTER_EXAMPLES"), cli_variable("MUSTER_EXAMPLES"),
                   f->folder, f->folder, f->folder);
    assert_int_equal(system(command), 0);
    (void)snprintf(command, sizeof command, "%s/served", f->folder);
    cli_read_file(command, served, sizeof served);
    assert_non_null(strstr(served, "batch 100, "));
    at = strstr(served, "AUC ");
    assert_non_null(at);
    trained[strcspn(trained, "o")] = '\0';
    if (strncmp(at + strlen("AUC "), trained, strlen(trained)) != 0)
        fail_msg("%s, expected %s", served, trained);
}

TEST_ON(test_bad_settings_are_named, struct fixture *f, set_up, tear_down)
{
    static const struct {
        const char *setting;
        const char *words;
    } rows[] = {
        {"lines=0", "setting lines is \"0\", expected a whole number from 1 to"},
        {"factors=65", "setting factors is \"65\", expected a whole number from 0 to 64"},
        {"rate=fast", "setting rate is \"fast\", expected a number from 0 to 10"},
        {"sync=2", "setting sync is \"2\", expected a whole number from 0 to 1"},
        {"data=/nowhere", "/nowhere: No such file or directory"},
        {"data=/dev/null", "/dev/null is too short for batches of 512 lines"},
        {"curve=/nowhere/at/all", "/nowhere/at/all: No such file or directory"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start_job(f, &(struct job){"1", "1", {rows[i].setting}});
        assert_int_not_equal(end_of_job(f), 0);
        if (strstr(f->cli.text, rows[i].words) == NULL) {
            cli_show(&f->cli);
            fail_msg("%s", rows[i].words);
        }
    }
}

/* A file of lines, some of which are damaged, is read as the generator's are: what is
 * trained on is counted once, and damaged lines are named. */
TEST_ON(test_lines_of_a_file_count_once, struct fixture *f, set_up, tear_down)
{
    char command[2 * PATH_BYTES];
    char data[PATH_BYTES];

    (void)snprintf(data, sizeof data, "data=%s/lines", f->folder);
    (void)snprintf(command, sizeof command,
                   "%s/ctr_lines 20000 2>/dev/null | sed '100s/^./7/; 3000s/\\t/ /' > %s",
                   cli_variable("MUSTER_EXAMPLES"), data + strlen("data="));
    assert_int_equal(system(command), 0);
    start_job(f, &(struct job){"2", "2", {data, "batch=64"}});
    expect_end(f, 0);
    assert_non_null(strstr(f->cli.text, "; 2 damaged"));
    assert_int_equal(
        number_before(f, " lines in ") + number_before(f, " held-out lines") + 2, 20000);
    assert_non_null(strstr(f->cli.text, "column 1 is \"7\", expected 0 or 1"));
}

TEST_PROGRAM()
