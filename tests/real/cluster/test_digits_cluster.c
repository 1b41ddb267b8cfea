/* The examples as a person runs them: `muster run` with the digits plugin, a worker
 * killed on the way, and the program hello.
 *
 * MUSTER_BIN is the program, MUSTER_EXAMPLES the folder of the built examples and
 * MUSTER_SOURCE the repository; CMake sets them. */
#include "tests/support/test.h"

#include <cjson/cJSON.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STEPS = 1500,       /* at 5 ms each on two workers: four seconds at least */
    TIMEOUT_MS = 90000, /* for one program, with sanitizers on a busy machine */
    END_MS = 15000,     /* for it to end after SIGTERM */
    REST_MS = 20,
    TEXT_BYTES_MAX = 1 << 20,
    PATH_BYTES = 512
};

struct fixture {
    char folder[PATH_BYTES];
    char status[PATH_BYTES];
    char output[PATH_BYTES];
    char plugin[PATH_BYTES];
    char data[PATH_BYTES];
    char *text; /* what was read last */
    pid_t pid;  /* the program that runs, 0: none */
};

/* ---- small things ---- */

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void rest(void)
{
    const struct timespec time = {.tv_nsec = REST_MS * 1000000L};

    (void)nanosleep(&time, NULL);
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    if (value == NULL)
        fail_msg("%s is not set: run this test with ctest", name);
    return value;
}

static void join_path(char out[PATH_BYTES], const char *folder, const char *name)
{
    assert_true(snprintf(out, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES);
}

/* The whole file, "" when there is none. Valid until the next call. */
static const char *read_text(struct fixture *f, const char *path)
{
    FILE *file = fopen(path, "r");
    size_t size = 0;

    if (file != NULL) {
        size = fread(f->text, 1, TEXT_BYTES_MAX, file);
        (void)fclose(file);
    }
    f->text[size] = '\0';
    return f->text;
}

/* cmocka cuts long messages, and the end of the output tells most. */
static void fail_with_output(struct fixture *f, const char *what)
{
    (void)fprintf(stderr, "%s\n", read_text(f, f->output));
    fail_msg("%s: the output is above", what);
}

/* ---- processes ---- */

/* Its output, of both kinds, goes to a file. */
static void start(struct fixture *f, const char *const *arguments)
{
    f->pid = fork();
    assert_true(f->pid >= 0);
    if (f->pid == 0) {
        int out = open(f->output, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (out < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
            _exit(126);
        (void)execv(arguments[0], (char *const *)arguments);
        _exit(127);
    }
}

/* 1 once it has ended, with its exit code, or 128 and its signal. */
static int has_ended(struct fixture *f, int *ret_code)
{
    int status;

    if (waitpid(f->pid, &status, WNOHANG) != f->pid)
        return 0;
    f->pid = 0;
    *ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return 1;
}

static int end_of(struct fixture *f, uint64_t until_ms)
{
    int code = -1;

    while (!has_ended(f, &code)) {
        if (now_ms() >= until_ms)
            fail_with_output(f, "not done in time");
        rest();
    }
    return code;
}

/* ---- setting up ---- */

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->text = malloc(TEXT_BYTES_MAX + 1);
    assert_non_null(f->text);
    (void)snprintf(f->folder, sizeof f->folder, "/tmp/muster-digits-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    join_path(f->status, f->folder, "status.json");
    join_path(f->output, f->folder, "output");
    *state = f;
    return 0;
}

/* What still runs was left by a failed test. `muster run` takes its tasks with it. */
static void stop(struct fixture *f)
{
    const uint64_t until_ms = now_ms() + END_MS;
    int code;

    if (f->pid == 0)
        return;
    (void)kill(f->pid, SIGTERM);
    while (!has_ended(f, &code)) {
        if (now_ms() >= until_ms)
            (void)kill(f->pid, SIGKILL);
        rest();
    }
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    stop(f);
    (void)unlink(f->status);
    (void)unlink(f->output);
    assert_int_equal(rmdir(f->folder), 0);
    free(f->text);
    free(f);
    return 0;
}

/* ---- the cluster ---- */

static void start_cluster(struct fixture *f, const char *setting)
{
    char data[PATH_BYTES];
    char steps[32];

    join_path(f->plugin, environment("MUSTER_EXAMPLES"), "digits.so");
    join_path(f->data, environment("MUSTER_SOURCE"), "examples/digits/data/digits.csv");
    assert_true(snprintf(data, sizeof data, "data=%.500s", f->data) < PATH_BYTES);
    (void)snprintf(steps, sizeof steps, "steps=%d", STEPS);
    start(f, (const char *const[]){environment("MUSTER_BIN"),
                                   "run",
                                   "--workers",
                                   "2",
                                   "--ps",
                                   "2",
                                   "--evaluator",
                                   "1",
                                   "--plugin",
                                   f->plugin,
                                   "--restart",
                                   "worker=on-failure",
                                   "--log-level",
                                   "info",
                                   "--status-file",
                                   f->status,
                                   "--set",
                                   data,
                                   "--set",
                                   steps,
                                   "--set",
                                   "slow_ms=5",
                                   "--set",
                                   "target=0.9",
                                   "--set",
                                   setting,
                                   NULL});
}

/* The process of a task, as the status file says; 0 when it says none. */
static pid_t task_pid(struct fixture *f, const char *task)
{
    cJSON *file = cJSON_Parse(read_text(f, f->status));
    const cJSON *entry = cJSON_GetObjectItemCaseSensitive(file, task);
    const cJSON *pid = cJSON_GetObjectItemCaseSensitive(entry, "pid");
    pid_t number = cJSON_IsNumber(pid) ? (pid_t)pid->valuedouble : 0;

    cJSON_Delete(file);
    return number;
}

/* Both workers have closures, and the evaluator has seen what comes of them. */
static bool is_training(struct fixture *f)
{
    const char *text = read_text(f, f->output);

    return strstr(text, "/job:worker/task:0 takes closures") != NULL &&
           strstr(text, "/job:worker/task:1 takes closures") != NULL &&
           strstr(text, ", accuracy ") != NULL;
}

static void wait_for_training(struct fixture *f, uint64_t until_ms)
{
    int code;

    while (!is_training(f)) {
        if (has_ended(f, &code))
            fail_with_output(f, "ended before it began");
        if (now_ms() >= until_ms)
            fail_with_output(f, "no training in time");
        rest();
    }
}

/* ---- the summary ---- */

struct summary {
    uint64_t scheduled;
    uint64_t run;
    uint64_t retried;
    uint64_t failed;
    uint64_t cancelled;
    uint64_t lost;
};

/* The number before ` word`, without the commas in it. */
static uint64_t number_before(const char *line, const char *word)
{
    const char *at = strstr(line, word);
    uint64_t number = 0;
    uint64_t digit = 1;

    if (at == NULL)
        fail_msg("no \"%s\" in: %s", word, line);
    while (at > line && (at[-1] == ',' || (at[-1] >= '0' && at[-1] <= '9'))) {
        at--;
        if (*at == ',')
            continue;
        number += digit * (uint64_t)(*at - '0');
        digit *= 10;
    }
    assert_true(digit > 1);
    return number;
}

static struct summary read_summary(struct fixture *f)
{
    const char *line = strstr(read_text(f, f->output), "digits: closures: ");

    if (line == NULL)
        fail_with_output(f, "no summary");
    return (struct summary){
        .scheduled = number_before(line, " scheduled"),
        .run = number_before(line, " run"),
        .retried = number_before(line, " retried"),
        .failed = number_before(line, " failed"),
        .cancelled = number_before(line, " cancelled"),
        .lost = number_before(line, " lost"),
    };
}

/* ---- tests ---- */

TEST_ON(test_killed_worker_loses_no_step, struct fixture *f, set_up, tear_down)
{
    const uint64_t until_ms = now_ms() + TIMEOUT_MS;
    struct summary summary;
    pid_t victim;
    int code;

    start_cluster(f, "seed=1");
    wait_for_training(f, until_ms);
    victim = task_pid(f, "worker/1");
    assert_true(victim > 0);
    assert_int_equal(kill(victim, SIGKILL), 0);
    code = end_of(f, until_ms);
    if (code != 0)
        fail_with_output(f, "the job has failed");
    summary = read_summary(f);
    assert_int_equal(summary.scheduled, STEPS);
    assert_int_equal(summary.run, STEPS);
    assert_int_equal(summary.failed, 0);
    assert_int_equal(summary.cancelled, 0);
    assert_int_equal(summary.lost, 0);
    /* The window of a worker that has work is never empty. */
    assert_true(summary.retried > 0);
    assert_int_not_equal(task_pid(f, "worker/1"), victim);
}

TEST_ON(test_missed_target_fails_the_job, struct fixture *f, set_up, tear_down)
{
    start_cluster(f, "rate=0");
    assert_int_equal(end_of(f, now_ms() + TIMEOUT_MS), 1);
    assert_non_null(strstr(read_text(f, f->output), "(wanted 0.900: missed)"));
    assert_int_equal(read_summary(f).lost, 0);
}

TEST_ON(test_bad_settings_are_named, struct fixture *f, set_up, tear_down)
{
    static const struct {
        const char *setting;
        const char *words;
    } rows[] = {
        {"steps=many", "setting steps is \"many\", expected a whole number from 1 to"},
        {"steps=0", "setting steps is \"0\", expected a whole number from 1 to"},
        {"batch=-1", "setting batch is \"-1\", expected a whole number from 1 to 1437"},
        {"batch=1438", "setting batch is \"1438\", expected a whole number"},
        {"seed=", "setting seed is \"\", expected a whole number from 0 to"},
        {"rate=fast", "setting rate is \"fast\", expected a number from 0 to 10"},
        {"rate=nan", "setting rate is \"nan\", expected a number from 0 to 10"},
        {"momentum=1", "setting momentum is \"1\", expected a number from 0 to 0.999"},
        {"target=95", "setting target is \"95\", expected a number from 0 to 1"},
        {"slow_ms=1e9", "setting slow_ms is \"1e9\", expected a whole number from 0"},
        {"data=/nowhere", "/nowhere: cannot open"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start_cluster(f, rows[i].setting);
        assert_int_not_equal(end_of(f, now_ms() + TIMEOUT_MS), 0);
        if (strstr(read_text(f, f->output), rows[i].words) == NULL)
            fail_with_output(f, rows[i].words);
    }
}

TEST_ON(test_hello_says_squares, struct fixture *f, set_up, tear_down)
{
    char path[PATH_BYTES];

    join_path(path, environment("MUSTER_EXAMPLES"), "hello");
    start(f, (const char *const[]){path, NULL});
    assert_int_equal(end_of(f, now_ms() + TIMEOUT_MS), 0);
    assert_string_equal(read_text(f, f->output), "0 squared is 0\n"
                                                 "1 squared is 1\n"
                                                 "2 squared is 4\n"
                                                 "3 squared is 9\n"
                                                 "4 squared is 16\n"
                                                 "5 squared is 25\n"
                                                 "6 squared is 36\n"
                                                 "7 squared is 49\n"
                                                 "8 squared is 64\n"
                                                 "9 squared is 81\n");
}

TEST_PROGRAM()
