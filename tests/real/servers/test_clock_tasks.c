/* A clock of processes: workers that tick without end are killed, and parameter servers
 * with backups are, one after the other. Those that are left go on, and nobody is ahead
 * by more than the staleness. Tasks are processes of their own: this very program. */
#include "tests/real/tasks.h"

#include <muster/clock.h>

#include <inttypes.h>

enum { SERVERS = 3, WORKERS = 2, STALENESS = 1, ROUND = 20 };

static void set_options(mu_node_options *options)
{
    options->backups = 1;
    options->heartbeat_ms = 100;
    options->silence_ms = 1000;
}

/* ---- In the task ---- */

static int tick_without_end(char **argv)
{
    mu_cluster *cluster = NULL;
    mu_node_options options;
    mu_node *node = NULL;
    mu_clock *clock = NULL;
    mu_error error = {0};
    int rv = mu_cluster_parse(argv[3], strlen(argv[3]), "test", &error, &cluster);

    mu_node_options_init(&options);
    set_options(&options);
    options.cluster = cluster;
    options.task_type = argv[1];
    options.task_index = atoi(argv[2]);
    options.log_level = MU_LOG_ERROR;
    if (rv == 0)
        rv = mu_node_open(&options, &error, &node);
    if (rv == 0)
        rv = mu_clock_open(node, "train", STALENESS, SOON_MS, &error, &clock);
    while (rv == 0)
        rv = mu_clock_tick(clock, SOON_MS, &error, NULL);
    (void)fprintf(stderr, "%s %s: %s\n", argv[1], argv[2], error.message);
    return 1;
}

static int play(char **argv)
{
    mu_node_options options;

    if (strcmp(argv[1], "worker") == 0)
        return tick_without_end(argv);
    mu_node_options_init(&options);
    set_options(&options);
    return tasks_play(argv, &options, NULL, 0);
}

/* ---- The tasks ---- */

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    pid_t servers[SERVERS];
    pid_t workers[WORKERS];
    mu_clock *clock;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    mu_node_options options;
    mu_error error = {0};

    assert_non_null(f);
    nodes_init(&f->nodes, WORKERS, SERVERS);
    for (int i = 0; i < SERVERS; i++)
        f->servers[i] = tasks_start("ps", i, f->nodes.json);
    nodes_options(&f->nodes, "chief", 0, &options);
    set_options(&options);
    f->chief = nodes_open_with(&f->nodes, &options);
    check(mu_clock_open(f->chief, "train", STALENESS, SOON_MS, &error, &f->clock),
          &error);
    for (int i = 0; i < WORKERS; i++)
        f->workers[i] = tasks_start("worker", i, f->nodes.json);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu_clock_close(f->clock);
    for (int i = 0; i < WORKERS; i++)
        tasks_kill(&f->workers[i]);
    nodes_done(&f->nodes);
    for (int i = 0; i < SERVERS; i++)
        tasks_kill(&f->servers[i]);
    free(f);
    return 0;
}

/* ---- What the status says ---- */

static mu_value *status_of(struct fixture *f)
{
    mu_value *status = NULL;
    mu_error error = {0};

    check(mu_node_status(f->chief, SOON_MS, &error, &status), &error);
    return status;
}

static int64_t number_in(const mu_value *map, const char *key)
{
    int64_t number = -1;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

/* Members of the clock. */
static int64_t members_in(const mu_value *status)
{
    const mu_value *servers = mu_value_find(status, "variables");

    for (size_t i = 0; i < mu_value_count(servers); i++) {
        const mu_value *items = mu_value_find(mu_value_at(servers, i), "variables");

        for (size_t j = 0; j < mu_value_count(items); j++)
            if (mu_value_find(mu_value_at(items, j), "clock") != NULL)
                return number_in(mu_value_at(items, j), "members");
    }
    return 0;
}

static void expect_members(struct fixture *f, int64_t count)
{
    uint64_t limit_ms = cli_now_ms() + SOON_MS;
    int64_t found;

    do {
        mu_value *status = status_of(f);

        found = members_in(status);
        mu_value_free(status);
        nodes_pause();
    } while (found != count && cli_now_ms() < limit_ms);
    assert_int_equal(found, count);
}

static void wait_whole(struct fixture *f)
{
    uint64_t limit_ms = cli_now_ms() + SOON_MS;
    bool is_whole = false;

    while (!is_whole && cli_now_ms() < limit_ms) {
        mu_value *status = status_of(f);
        const mu_value *partitions = mu_value_find(status, "partitions");

        is_whole = number_in(partitions, "placed") == 256 &&
                   number_in(partitions, "degraded") == 0;
        mu_value_free(status);
        nodes_pause();
    }
    assert_true(is_whole);
}

/* ---- Tests ---- */

/* Each is let through, and nobody else is too far behind. */
static void tick_some(struct fixture *f)
{
    for (int i = 0; i < ROUND; i++) {
        mu_error error = {0};
        uint64_t minimum;
        uint64_t step;

        check(mu_clock_tick(f->clock, SOON_MS, &error, &step), &error);
        check(mu_clock_minimum(f->clock, SOON_MS, &error, &minimum), &error);
        assert_true(minimum <= step && step - minimum <= STALENESS);
    }
}

TEST_ON(test_workers_that_are_killed_leave, struct fixture *f, set_up, tear_down)
{
    expect_members(f, 1 + WORKERS);
    tick_some(f);
    for (int i = 0; i < WORKERS; i++) {
        tasks_kill(&f->workers[i]);
        tick_some(f);
        expect_members(f, WORKERS - i);
    }
    f->workers[0] = tasks_start("worker", 0, f->nodes.json);
    expect_members(f, 2);
    tick_some(f);
}

TEST_ON(test_servers_that_are_killed_have_backups, struct fixture *f, set_up, tear_down)
{
    expect_members(f, 1 + WORKERS);
    for (int i = 0; i < SERVERS; i++) {
        wait_whole(f);
        tick_some(f);
        tasks_kill(&f->servers[i]);
        tick_some(f);
        expect_members(f, 1 + WORKERS);
        f->servers[i] = tasks_start("ps", i, f->nodes.json);
    }
    tick_some(f);
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return play(argv);
    return tests_run(NULL, NULL);
}
