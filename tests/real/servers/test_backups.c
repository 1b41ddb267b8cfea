/* Parameter servers with backups that are killed, or stopped for a while, one after the
 * other, or drained, under threads that add to a variable without end: each add counts
 * once, none fails. Servers are processes of their own: this very program, started with a
 * task as arguments. */
#include "tests/real/servers/writers.h"

enum {
    SERVERS = 3,
    HEARTBEAT_MS = 100,
    SILENCE_MS = 1000,
    STOPPED_MS = 2 * SILENCE_MS,
    KILLING_MS = 8000,
    IN_VAIN_MS = 3000
};

static void set_options(mu_node_options *options)
{
    options->backups = 1;
    options->heartbeat_ms = HEARTBEAT_MS;
    options->silence_ms = SILENCE_MS;
}

static int play(char **argv)
{
    mu_node_options options;

    mu_node_options_init(&options);
    set_options(&options);
    return tasks_play(argv, &options, NULL, 0);
}

/* ---- Three servers ---- */

struct fixture {
    struct nodes nodes;
    char address[64]; /* the chief's */
    mu_node *chief;
    pid_t servers[SERVERS];
    mu_variable *variable;
    struct writers writers;
    struct cli cli;
};

static void start_server(struct fixture *f, int server)
{
    f->servers[server] = tasks_start("ps", server, f->nodes.json);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    mu_node_options options;

    assert_non_null(f);
    nodes_init(&f->nodes, 0, SERVERS);
    for (int i = 0; i < SERVERS; i++)
        start_server(f, i);
    nodes_options(&f->nodes, "chief", 0, &options);
    set_options(&options);
    f->chief = nodes_open_with(&f->nodes, &options);
    (void)snprintf(f->address, sizeof f->address, "tcp://%s",
                   mu_cluster_address(f->nodes.cluster, "chief", 0));
    f->variable = open_counts(f->chief);
    begin_writers(&f->writers, f->variable);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    end_writers(&f->writers); /* of a test that has failed */
    mu_variable_close(f->variable);
    nodes_done(&f->nodes);
    for (int i = 0; i < SERVERS; i++)
        tasks_kill(&f->servers[i]);
    free(f);
    return 0;
}

/* ---- What the status says ---- */

static int64_t number_in(const mu_value *map, const char *key)
{
    int64_t number = -1;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

static int64_t roles_of(const mu_value *partitions, int server)
{
    const mu_value *servers = mu_value_find(partitions, "servers");

    for (size_t i = 0; i < mu_value_count(servers); i++) {
        const mu_value *own = mu_value_at(servers, i);

        if (number_in(own, "ps") == server)
            return number_in(own, "primary") + number_in(own, "backup") +
                   number_in(own, "learner");
    }
    return 0;
}

/* Every partition has a backup, and none is on server `without`; -1: on any. */
static bool is_whole(struct fixture *f, int without)
{
    mu_value *status = NULL;
    mu_error error = {0};
    const mu_value *partitions;
    bool is;

    check(mu_node_status(f->chief, SOON_MS, &error, &status), &error);
    partitions = mu_value_find(status, "partitions");
    assert_int_equal(number_in(partitions, "lost"), 0);
    is = number_in(partitions, "placed") == 256 &&
         number_in(partitions, "degraded") == 0 &&
         (without < 0 || roles_of(partitions, without) == 0);
    mu_value_free(status);
    return is;
}

static void wait_whole(struct fixture *f, int without)
{
    uint64_t limit_ms = cli_now_ms() + SOON_MS;

    while (!is_whole(f, without)) {
        if (cli_now_ms() > limit_ms)
            fail_msg("the partitions do not become whole without server %d", without);
        nodes_pause();
    }
}

/* `muster status` says so, soon. */
static void expect_status(struct fixture *f, const char *words)
{
    uint64_t limit_ms = cli_now_ms() + SOON_MS;

    do {
        cli_start(&f->cli, NULL, "status", "--address", f->address, NULL);
        cli_expect_code(&f->cli, 0);
    } while (strstr(f->cli.text, words) == NULL && cli_now_ms() < limit_ms);
    if (strstr(f->cli.text, words) == NULL) {
        cli_show(&f->cli);
        fail_msg("no status says \"%s\"", words);
    }
}

/* ---- Tests ---- */

/* One server is killed, then a second one, once the others have copies of all: each comes
 * back empty. */
static void kill_two(struct fixture *f, int first)
{
    int second = (first + 1) % SERVERS;

    tasks_kill(&f->servers[first]);
    wait_whole(f, first);
    tasks_kill(&f->servers[second]);
    expect_status(f, "256 partitions on 1 server, 256 without a backup, of which 0 are "
                     "being copied\n");
    start_server(f, first);
    wait_whole(f, second);
    expect_status(f, "256 partitions on 2 servers, each with a backup\n");
    start_server(f, second); /* which gets its share at once */
    wait_adds(&f->writers);
}

/* ---- A thread that reads snapshots ---- */

struct snapshots {
    pthread_t thread;
    struct writers *writers;
    int64_t *data;
    atomic_bool stop;
    atomic_int read;
    int failure; /* code of the first one, with its */
    char words[512];
};

/* All that was acknowledged before is in it, and nothing that nobody has begun. */
static int check_snapshot(const struct snapshots *snapshots, int64_t before,
                          mu_error *ret_error)
{
    int64_t begun = atomic_load(&snapshots->writers->adds) + WRITERS;

    for (size_t i = 0; i < COUNT; i++)
        if (snapshots->data[i] < before || snapshots->data[i] > begun)
            return mu_error_set(ret_error, -MU_EDATALOSS,
                                "it has %" PRId64 ", expected %" PRId64 " to %" PRId64,
                                snapshots->data[i], before, begun);
    return 0;
}

static void *read_snapshots(void *arg)
{
    struct snapshots *snapshots = arg;
    mu_error error = {0};

    while (!atomic_load(&snapshots->stop) && snapshots->failure == 0) {
        void *buffer = snapshots->data;
        int64_t before = atomic_load(&snapshots->writers->adds);

        snapshots->failure =
            mu_variables_read(&snapshots->writers->variable, &buffer, 1, SOON_MS, &error);
        if (snapshots->failure == 0)
            snapshots->failure = check_snapshot(snapshots, before, &error);
        atomic_fetch_add(&snapshots->read, 1);
    }
    (void)snprintf(snapshots->words, sizeof snapshots->words, "%s", error.message);
    return NULL;
}

/* Until another one has been read, or has failed. */
static void wait_snapshot(struct snapshots *snapshots)
{
    int read = atomic_load(&snapshots->read);

    for (int i = 0; i < SOON_MS && atomic_load(&snapshots->read) == read; i++)
        nodes_pause();
    assert_true(atomic_load(&snapshots->read) > read);
}

TEST_ON(test_snapshots_while_a_server_is_killed, struct fixture *f, set_up, tear_down)
{
    struct snapshots snapshots = {.writers = &f->writers,
                                  .data = calloc(COUNT, sizeof(int64_t))};

    assert_non_null(snapshots.data);
    wait_whole(f, -1);
    assert_int_equal(pthread_create(&snapshots.thread, NULL, read_snapshots, &snapshots),
                     0);
    for (int i = 0; i < SERVERS; i++) {
        wait_snapshot(&snapshots);
        tasks_kill(&f->servers[i]);
        wait_snapshot(&snapshots);
        wait_whole(f, i);
        start_server(f, i);
        wait_snapshot(&snapshots);
    }
    atomic_store(&snapshots.stop, true);
    assert_int_equal(pthread_join(snapshots.thread, NULL), 0);
    if (snapshots.failure != 0)
        fail_msg("a snapshot: %s", snapshots.words);
    free(snapshots.data);
    assert_exact(&f->writers, "snapshots");
}

TEST_ON(test_killed_servers, struct fixture *f, set_up, tear_down)
{
    uint64_t end_ms = cli_now_ms() + KILLING_MS;

    wait_whole(f, -1);
    expect_status(f, "256 partitions on 3 servers, each with a backup\n");
    wait_adds(&f->writers);
    for (int round = 0; round < SERVERS || cli_now_ms() < end_ms; round++)
        kill_two(f, round % SERVERS);
    assert_exact(&f->writers, "killed");
}

static int primary_of_some(struct fixture *f)
{
    mu_value *status = NULL;
    mu_error error = {0};
    const mu_value *servers;
    int found = -1;

    check(mu_node_status(f->chief, SOON_MS, &error, &status), &error);
    servers = mu_value_find(mu_value_find(status, "partitions"), "servers");
    for (size_t i = 0; i < mu_value_count(servers); i++)
        if (number_in(mu_value_at(servers, i), "primary") > 0)
            found = (int)number_in(mu_value_at(servers, i), "ps");
    mu_value_free(status);
    assert_true(found >= 0);
    return found;
}

/* A primary that stands still is replaced; when it goes on, it completes nothing. */
TEST_ON(test_stopped_servers, struct fixture *f, set_up, tear_down)
{
    for (int i = 0; i < SERVERS; i++) {
        uint64_t end_ms;
        int server;

        wait_whole(f, -1);
        wait_adds(&f->writers);
        server = primary_of_some(f);
        assert_int_equal(kill(f->servers[server], SIGSTOP), 0);
        end_ms = cli_now_ms() + STOPPED_MS;
        wait_whole(f, server);
        wait_adds(&f->writers);
        while (cli_now_ms() < end_ms)
            nodes_pause();
        assert_int_equal(kill(f->servers[server], SIGCONT), 0);
        wait_adds(&f->writers);
    }
    assert_exact(&f->writers, "stopped");
}

/* ---- Moves ---- */

/* Every server is the primary of as many partitions as the others, or one more. */
static bool is_spread(struct fixture *f)
{
    mu_value *status = NULL;
    mu_error error = {0};
    const mu_value *partitions;
    const mu_value *servers;
    bool is;

    check(mu_node_status(f->chief, SOON_MS, &error, &status), &error);
    partitions = mu_value_find(status, "partitions");
    servers = mu_value_find(partitions, "servers");
    is = number_in(partitions, "degraded") == 0 && number_in(partitions, "moving") == 0 &&
         mu_value_count(servers) == SERVERS;
    for (size_t i = 0; i < mu_value_count(servers); i++) {
        const mu_value *server = mu_value_at(servers, i);

        is = is && number_in(server, "primary") >= 256 / SERVERS &&
             number_in(server, "backup") >= 256 / SERVERS;
    }
    mu_value_free(status);
    return is;
}

static void wait_spread(struct fixture *f)
{
    uint64_t limit_ms = cli_now_ms() + SOON_MS;

    while (!is_spread(f)) {
        if (cli_now_ms() > limit_ms)
            fail_msg("the partitions are not spread over all servers");
        nodes_pause();
    }
}

/* One that was killed is started again, and gets its share. */
TEST_ON(test_a_server_that_comes_back, struct fixture *f, set_up, tear_down)
{
    for (int i = 0; i < SERVERS; i++) {
        wait_spread(f);
        tasks_kill(&f->servers[i]);
        wait_whole(f, i);
        start_server(f, i);
    }
    wait_spread(f);
    wait_adds(&f->writers);
    assert_exact(&f->writers, "come back");
}

static int drain(struct fixture *f, int server, int64_t timeout_ms, mu_error *ret_error)
{
    mu_coordinator *coordinator;
    int rv;

    check(mu_coordinator_open(f->chief, SOON_MS, ret_error, &coordinator), ret_error);
    rv = mu_coordinator_drain_task(coordinator, "ps", server, timeout_ms, ret_error);
    mu_coordinator_close(coordinator);
    return rv;
}

/* It has nothing: its end is no loss, even if another one dies with it. */
TEST_ON(test_drained_servers, struct fixture *f, set_up, tear_down)
{
    for (int i = 0; i < SERVERS; i++) {
        mu_error error = {0};

        wait_spread(f);
        check(drain(f, i, SOON_MS, &error), &error);
        assert_true(is_whole(f, i));
        tasks_kill(&f->servers[i]);
        tasks_kill(&f->servers[(i + 1) % SERVERS]);
        wait_adds(&f->writers);
        start_server(f, i);
        start_server(f, (i + 1) % SERVERS);
    }
    wait_spread(f);
    assert_exact(&f->writers, "drained");
}

/* The backups of the last but one stay where they are; what the last one has stays, too,
 * and that is an error. */
TEST_ON(test_a_drain_in_vain, struct fixture *f, set_up, tear_down)
{
    mu_error error = {0};

    wait_spread(f);
    check(drain(f, 2, SOON_MS, &error), &error);
    check(drain(f, 1, SOON_MS, &error), &error);
    assert_int_equal(drain(f, 0, IN_VAIN_MS, &error), -MU_EDEADLINE);
    assert_string_equal(error.message,
                        "/job:ps/task:0 still has 256 primaries and 0 backups: there are "
                        "too few other servers to take them");
    wait_adds(&f->writers);
    assert_exact(&f->writers, "in vain");
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return play(argv);
    return tests_run(NULL, NULL);
}
