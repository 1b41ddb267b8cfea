/* What was sent to a worker and has not begun there is still the chief's: with workers
 * that are processes of their own. This program is its own worker: `<this> worker INDEX
 * SPEC FILE`.
 *
 * Workers have one thread. What holds it up ends when FILE is there or when it is
 * cancelled, so that nothing here depends on how fast the machine is. */
#include "tests/real/tasks.h"

enum {
    WORKERS = 2,
    BEHIND = 50, /* closures behind one that holds up */
    QUICK = 200,
    MANY = 5000,
    SLOW = 20,
    SLOW_MS = 200,
    PART_MIN = 5, /* of SLOW, for a worker that joins */
    HOLD = -1,    /* these: arguments of "work", which are a time in ms */
    HANG = -2
};

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_coordinator *coordinator;
    pid_t workers[WORKERS]; /* by task index; 0: none */
    char folder[40];
    char file[80];
};

static struct fixture fixture;

/* ---- What workers run ---- */

static int64_t runs_begun; /* in this process */

static bool goes_on(int64_t ms, const char *file, mu_run *run)
{
    return (ms == HOLD && access(file, F_OK) != 0) ||
           (ms == HANG && !mu_run_cancelled(run));
}

/* One function for all: of what it takes nobody knows anything before. Returns the
 * process and how many it has begun before. */
static int run_work(mu_run *run, void *user)
{
    const char *file = user;
    int64_t number = runs_begun++;
    mu_value *result = mu_value_list();
    int64_t ms = 0;

    (void)mu_value_get_int(mu_run_args(run), &ms);
    if (ms > 0) {
        const struct timespec time = {0, (long)ms * 1000000};

        (void)nanosleep(&time, NULL);
    }
    while (goes_on(ms, file, run))
        cli_pause();
    (void)mu_value_append(result, mu_value_int((int64_t)getpid()));
    (void)mu_value_append(result, mu_value_int(number));
    mu_run_return(run, result);
    return 0;
}

static int be_worker(char **argv)
{
    static const struct tasks_function work = {"work", run_work, 0};
    mu_node_options options;

    mu_node_options_init(&options);
    options.threads = 1;
    return tasks_play(argv, &options, &work, 1);
}

/* ---- Processes ---- */

static void wait_for_worker(struct fixture *f, int index)
{
    char words[64];

    (void)snprintf(words, sizeof words, "/job:worker/task:%d takes closures", index);
    nodes_wait_log(&f->nodes, words);
}

static void start_worker(struct fixture *f, int index)
{
    char number[16];
    char *arguments[] = {"test", "worker", number, f->nodes.json, f->file, NULL};

    (void)snprintf(number, sizeof number, "%d", index);
    f->workers[index] = tasks_start_program(arguments, -1);
}

/* Whatever holds a worker up ends. */
static void release(struct fixture *f)
{
    int fd = open(f->file, O_CREAT | O_WRONLY, 0600);

    assert_true(fd >= 0);
    (void)close(fd);
}

static int set_up(void **state)
{
    struct fixture *f = &fixture;

    memset(f, 0, sizeof *f);
    (void)snprintf(f->folder, sizeof f->folder, "/tmp/muster-recall-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    (void)snprintf(f->file, sizeof f->file, "%.39s/go-on", f->folder);
    nodes_init(&f->nodes, WORKERS, 0);
    f->chief = nodes_open(&f->nodes, "chief", 0);
    f->coordinator = nodes_coordinator(f->chief);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < WORKERS; i++)
        tasks_kill(&f->workers[i]);
    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    (void)unlink(f->file);
    (void)rmdir(f->folder);
    return 0;
}

/* ---- Closures ---- */

static mu_remote_value *schedule(struct fixture *f, int64_t ms, int priority)
{
    mu_value *args = mu_value_int(ms);
    mu_remote_value *value = NULL;
    mu_closure_options options;
    mu_error error = {0};

    mu_closure_options_init(&options);
    options.priority = priority;
    if (mu_coordinator_schedule_with(f->coordinator, "work", args, &options, SOON_MS,
                                     &error, &value) != 0)
        fail_msg("%s", error.message);
    mu_value_free(args);
    return value;
}

static void schedule_many(struct fixture *f, int64_t ms, mu_remote_value **ret_values,
                          int count)
{
    for (int i = 0; i < count; i++)
        ret_values[i] = schedule(f, ms, MU_PRIORITY_DEFAULT);
}

struct ran {
    int64_t pid;
    int64_t number;
};

/* Takes `value`. */
static struct ran fetch(mu_remote_value *value)
{
    struct ran ran = {-1, -1};
    mu_value *result = NULL;
    mu_error error = {0};

    if (mu_remote_value_fetch(value, CLI_SOON_MS, &error, &result) != 0)
        fail_msg("%s: %s: %s", error.task, mu_err_name(error.code), error.message);
    assert_int_equal(mu_value_get_int(mu_value_at(result, 0), &ran.pid), 0);
    assert_int_equal(mu_value_get_int(mu_value_at(result, 1), &ran.number), 0);
    mu_value_free(result);
    mu_remote_value_free(value);
    return ran;
}

/* How many of them that process ran. */
static int fetch_many(mu_remote_value **values, int count, int64_t pid)
{
    int part = 0;

    for (int i = 0; i < count; i++)
        part += fetch(values[i]).pid == pid;
    return part;
}

/* So that much is sent ahead: the function is known to be quick. */
static void run_quick_ones(struct fixture *f, int count)
{
    mu_remote_value **values = calloc((size_t)count, sizeof(mu_remote_value *));

    assert_non_null(values);
    schedule_many(f, 0, values, count);
    (void)fetch_many(values, count, 0);
    free(values);
}

/* Whether that is what `muster explain` says of it: "queued", "sent", "running". */
static bool is_in_state(struct fixture *f, const mu_remote_value *value,
                        const char *wanted)
{
    mu_value *reasons = NULL;
    const char *text = "";
    size_t size = 0;
    mu_error error = {0};
    bool is;

    if (mu_coordinator_explain(f->coordinator, value, NULL, SOON_MS, &error, &reasons) !=
        0)
        fail_msg("%s", error.message);
    (void)mu_value_get_string(mu_value_find(reasons, "state"), &text, &size);
    is = size == strlen(wanted) && memcmp(text, wanted, size) == 0;
    mu_value_free(reasons);
    return is;
}

static void wait_for_state(struct fixture *f, const mu_remote_value *value,
                           const char *wanted)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    while (!is_in_state(f, value, wanted)) {
        if (cli_now_ms() >= deadline_ms)
            fail_msg("a closure is not %s", wanted);
        cli_pause();
    }
}

/* One worker, which is held up, and what was sent there behind that. */
static mu_remote_value *hold_up(struct fixture *f, mu_remote_value **ret_behind)
{
    mu_remote_value *first;

    start_worker(f, 0);
    wait_for_worker(f, 0);
    run_quick_ones(f, MANY);
    first = schedule(f, HOLD, MU_PRIORITY_DEFAULT);
    wait_for_state(f, first, "running");
    schedule_many(f, 0, ret_behind, BEHIND);
    return first;
}

static uint64_t count_retried(struct fixture *f)
{
    mu_coordinator_stats counts;

    mu_coordinator_get_stats(f->coordinator, &counts);
    return counts.retried;
}

/* ---- Stories ---- */

TEST_ON(test_quick_ones_pass_a_hanging_one, struct fixture *f, set_up, tear_down)
{
    static mu_remote_value *quick[QUICK];
    mu_remote_value *hanging;
    mu_error error = {0};

    for (int i = 0; i < WORKERS; i++) {
        start_worker(f, i);
        wait_for_worker(f, i);
    }
    run_quick_ones(f, MANY);
    hanging = schedule(f, HANG, MU_PRIORITY_DEFAULT);
    schedule_many(f, 0, quick, QUICK);
    (void)fetch_many(quick, QUICK, 0);
    assert_int_equal(mu_remote_value_state(hanging), MU_REMOTE_NOT_READY);
    assert_int_equal(mu_remote_value_cancel(hanging), 0);
    schedule_many(f, 0, quick, QUICK);
    (void)fetch_many(quick, QUICK, 0);
    assert_int_equal(mu_remote_value_fetch(hanging, CLI_SOON_MS, &error, NULL),
                     -MU_ECANCELLED);
    mu_remote_value_free(hanging);
    assert_int_equal(count_retried(f), 0);
}

/* It comes when all has been sent to the other one. */
TEST_ON(test_worker_that_joins_takes_its_part, struct fixture *f, set_up, tear_down)
{
    static mu_remote_value *slow[SLOW];
    mu_remote_value *first;
    int part;

    start_worker(f, 0);
    wait_for_worker(f, 0);
    run_quick_ones(f, MANY);
    first = schedule(f, HOLD, MU_PRIORITY_DEFAULT);
    wait_for_state(f, first, "running");
    schedule_many(f, SLOW_MS, slow, SLOW);
    start_worker(f, 1);
    wait_for_worker(f, 1);
    release(f);
    part = fetch_many(slow, SLOW, f->workers[1]);
    assert_in_range(part, PART_MIN, SLOW);
    assert_int_equal(fetch(first).pid, f->workers[0]);
    assert_int_equal(count_retried(f), 0);
}

static bool are_queued(struct fixture *f, mu_remote_value *const *values, int count)
{
    for (int i = 0; i < count; i++)
        if (!is_in_state(f, values[i], "queued"))
            return false;
    return true;
}

/* They come back, since what runs there takes too long: it is the first that is sent. */
TEST_ON(test_urgent_one_overtakes_what_was_sent, struct fixture *f, set_up, tear_down)
{
    static mu_remote_value *behind[BEHIND];
    mu_remote_value *first = hold_up(f, behind);
    mu_remote_value *urgent = schedule(f, 0, MU_PRIORITY_HIGHEST);
    int64_t number;
    int before = 0;
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    while (!are_queued(f, behind, BEHIND)) {
        assert_true(cli_now_ms() < deadline_ms);
        cli_pause();
    }
    release(f);
    number = fetch(urgent).number;
    assert_int_equal(fetch(first).pid, f->workers[0]);
    for (int i = 0; i < BEHIND; i++)
        before += fetch(behind[i]).number < number;
    assert_int_equal(before, 0);
    assert_int_equal(count_retried(f), 0);
}

static void *drain_first(void *arg)
{
    struct fixture *f = arg;
    mu_error error = {0};

    return (void *)(intptr_t)mu_coordinator_drain(f->coordinator, 0, CLI_SOON_MS, &error);
}

/* What runs there ends there, and nothing else. */
TEST_ON(test_draining_worker_gives_back, struct fixture *f, set_up, tear_down)
{
    static mu_remote_value *behind[BEHIND];
    mu_remote_value *first = hold_up(f, behind);
    int64_t pid = f->workers[0];
    pthread_t drain;
    void *drained = NULL;

    assert_int_equal(pthread_create(&drain, NULL, drain_first, f), 0);
    nodes_wait_log(&f->nodes, "and leaves");
    for (int i = 0; i < BEHIND; i++)
        wait_for_state(f, behind[i], "queued");
    release(f);
    assert_int_equal(pthread_join(drain, &drained), 0);
    assert_int_equal((int)(intptr_t)drained, 0);
    assert_int_equal(tasks_end(&f->workers[0]), 0);
    assert_int_equal(fetch(first).pid, pid);
    start_worker(f, 1);
    assert_int_equal(fetch_many(behind, BEHIND, f->workers[1]), BEHIND);
    assert_int_equal(count_retried(f), 0);
}

/* It stands still when it is asked, and is killed before it has answered. */
TEST_ON(test_killed_while_it_is_asked, struct fixture *f, set_up, tear_down)
{
    static mu_remote_value *behind[BEHIND];
    mu_remote_value *first = hold_up(f, behind);

    assert_int_equal(kill(f->workers[0], SIGSTOP), 0);
    start_worker(f, 1);
    wait_for_worker(f, 1);
    run_quick_ones(f, 10);
    assert_int_equal(kill(f->workers[0], SIGKILL), 0);
    assert_int_equal(tasks_end(&f->workers[0]), 128 + SIGKILL);
    release(f);
    assert_int_equal(fetch_many(behind, BEHIND, f->workers[1]), BEHIND);
    assert_int_equal(fetch(first).pid, f->workers[1]);
    assert_int_equal(count_retried(f) > 0, 1);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "worker") == 0)
        return be_worker(argv);
    return tests_run(NULL, NULL);
}
