/* A client that stands still while results come: it loses none of them, none is there
 * twice, and the chief holds a bounded part of them. The chief and its worker are in this
 * process, whose memory is measured; the client is `<this> client SPEC`. */
#include "tests/real/slow.h"
#include "tests/real/tasks.h"

#include <stdatomic.h>
#include <sys/wait.h>

enum {
    CLOSURES = 15000,
    EARLY = CLOSURES / 100, /* run before the client stands still, */
    SCHEDULED = 10000,    /* and so many are there by then: more than there is room for */
    RESULT_BYTES = 20000, /* 286 MiB together */
    PAUSED_MIB = 64,      /* kept for it, says include/muster/coordinator.h, */
    SLACK_MIB = 64,       /* and what was on its way, and the allocator's */
    SILENCE_MS = 60000
};

/* ---- The worker ---- */

static atomic_bool is_paused; /* the client stands still */

/* All but the early ones wait for that, so that no machine is too fast. */
static int run_make(mu_run *run, void *user)
{
    char content[RESULT_BYTES] = {0};
    int64_t number = 0;

    (void)user;
    (void)mu_value_get_int(mu_run_args(run), &number);
    while (number >= EARLY && !atomic_load(&is_paused))
        cli_pause();
    memcpy(content, &number, sizeof number);
    mu_run_return(run, mu_value_bytes(content, sizeof content));
    return 0;
}

/* ---- The client ---- */

static int schedule_all(mu_coordinator *coordinator, mu_remote_value **ret_values,
                        mu_error *ret_error)
{
    int rv = 0;

    for (int64_t i = 0; rv == 0 && i < CLOSURES; i++) {
        mu_value *number = mu_value_int(i);

        rv = mu_coordinator_schedule(coordinator, "make", number, CLI_SOON_MS, ret_error,
                                     &ret_values[i]);
        mu_value_free(number);
    }
    return rv;
}

/* How many of the results are what they should be. */
static int fetch_all(mu_remote_value **values, mu_error *ret_error)
{
    int right = 0;

    for (int64_t i = 0; i < CLOSURES; i++) {
        mu_value *result = NULL;
        const void *data = NULL;
        size_t size = 0;

        if (mu_remote_value_fetch(values[i], CLI_SOON_MS, ret_error, &result) != 0)
            break;
        right += mu_value_get_bytes(result, &data, &size) == 0 && size == RESULT_BYTES &&
                 memcmp(data, &i, sizeof i) == 0;
        mu_value_free(result);
        mu_remote_value_free(values[i]);
    }
    return right;
}

static int be_client(const char *json)
{
    static mu_remote_value *values[CLOSURES];
    struct nodes nodes = {.open_count = 0};
    mu_node_options options;
    mu_coordinator_stats stats = {0};
    mu_coordinator *coordinator = NULL;
    mu_node *node = NULL;
    mu_error error = {0};
    int right = 0;
    int rv = mu_cluster_parse(json, strlen(json), "test", &error, &nodes.cluster);

    nodes_options(&nodes, "client", 0, &options);
    options.log = NULL;
    options.silence_ms = SILENCE_MS;
    if (rv == 0)
        rv = mu_node_open(&options, &error, &node);
    if (rv == 0)
        rv = mu_coordinator_open(node, CLI_SOON_MS, &error, &coordinator);
    if (rv == 0)
        rv = schedule_all(coordinator, values, &error);
    if (rv == 0)
        right = fetch_all(values, &error);
    if (coordinator != NULL)
        mu_coordinator_get_stats(coordinator, &stats);
    if (right != CLOSURES || stats.finished != CLOSURES)
        (void)fprintf(stderr,
                      "client: of %d results %d are right, %d have finished: %s\n",
                      CLOSURES, right, (int)stats.finished, error.message);
    mu_coordinator_close(coordinator);
    (void)mu_node_close(node, SOON_MS, NULL);
    mu_cluster_free(nodes.cluster);
    return right == CLOSURES && stats.finished == CLOSURES ? 0 : 1;
}

/* ---- The chief ---- */

static int64_t closures_number(mu_node *chief, const char *key)
{
    mu_value *status = NULL;
    mu_error error = {0};
    int64_t number = -1;

    if (mu_node_status(chief, SOON_MS, &error, &status) != 0)
        fail_msg("%s", error.message);
    (void)mu_value_get_int(mu_value_find(mu_value_find(status, "closures"), key),
                           &number);
    mu_value_free(status);
    return number;
}

static void wait_for_number(mu_node *chief, const char *key, int64_t least)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    while (closures_number(chief, key) < least) {
        if (cli_now_ms() >= deadline_ms)
            fail_msg("%s is %d, and not %d", key, (int)closures_number(chief, key),
                     (int)least);
        cli_pause();
    }
}

TEST(test_client_that_stands_still)
{
    static struct nodes nodes;
    mu_node_options options;
    mu_node *chief;
    mu_node *worker;
    char *arguments[] = {"test", "client", nodes.json, NULL};
    pid_t client;
    unsigned long before_kib;
    unsigned long after_kib;

    nodes_init(&nodes, 1, 0);
    nodes_options(&nodes, "chief", 0, &options);
    options.silence_ms = SILENCE_MS;
    chief = nodes_open_with(&nodes, &options);
    worker = nodes_open(&nodes, "worker", 0);
    assert_int_equal(mu_node_register_function(worker, "make", run_make, NULL, 0), 0);
    assert_int_equal(mu_node_serve(worker), 0);
    client = tasks_start_program(arguments, -1);
    wait_for_number(chief, "finished", EARLY);
    wait_for_number(chief, "queued", SCHEDULED);
    assert_int_equal(kill(client, SIGSTOP), 0);
    assert_int_equal(waitpid(client, NULL, WUNTRACED), client);
    atomic_store(&is_paused, true);
    before_kib = cli_memory_kib(getpid());
    wait_for_number(chief, "unread_bytes", PAUSED_MIB << 20);
    while (closures_number(chief, "in_flight") > 0)
        cli_pause();
    after_kib = cli_memory_kib(getpid());
    assert_in_range(closures_number(chief, "finished"), EARLY, CLOSURES / 2);
    if (COUNTS_MEMORY && after_kib > before_kib + ((PAUSED_MIB + SLACK_MIB) << 10))
        fail_msg("the chief had %lu KiB, and has %lu", before_kib, after_kib);
    assert_int_equal(kill(client, SIGCONT), 0);
    assert_int_equal(tasks_end(&client), 0);
    assert_int_equal(closures_number(chief, "finished"), CLOSURES);
    assert_int_equal(closures_number(chief, "unread_bytes"), 0);
    nodes_done(&nodes);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "client") == 0)
        return be_client(argv[2]);
    return tests_run(NULL, NULL);
}
