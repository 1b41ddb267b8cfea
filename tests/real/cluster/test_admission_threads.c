/* Threads that schedule on one coordinator with little room: none of their closures fails
 * for that, none is lost, and none of the threads starves. */
#include "tests/real/nodes.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS = 8, SMALL_EACH = 300, MANY_EACH = 40000, WAIT_MS = 60000 };

struct crew {
    mu_coordinator *coordinator;
    const mu_value *args;
    unsigned each;
    uint64_t most; /* outstanding at a time */
    atomic_uint scheduled[THREADS];
    atomic_uint over; /* looks that found more outstanding than allowed */
    atomic_uint failed;
    char words[512];
    atomic_uint next;
};

static int no_op(mu_run *run, void *user)
{
    (void)run;
    (void)user;
    return 0;
}

static void *schedule_some(void *arg)
{
    struct crew *crew = arg;
    unsigned self = atomic_fetch_add(&crew->next, 1);
    mu_coordinator_stats counts;
    mu_error error = {0};

    for (unsigned i = 0; i < crew->each; i++) {
        if (mu_coordinator_schedule(crew->coordinator, "no_op", crew->args, WAIT_MS,
                                    &error, NULL) != 0) {
            if (atomic_fetch_add(&crew->failed, 1) == 0)
                (void)snprintf(crew->words, sizeof crew->words, "%s", error.message);
            return NULL;
        }
        atomic_fetch_add(&crew->scheduled[self], 1);
        if (i % 16 != 0)
            continue;
        mu_coordinator_get_stats(crew->coordinator, &counts);
        if (counts.outstanding > crew->most + THREADS)
            atomic_fetch_add(&crew->over, 1);
    }
    return NULL;
}

static void check_crew(struct crew *crew)
{
    pthread_t threads[THREADS];
    mu_coordinator_stats counts;
    mu_error error = {0};

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, schedule_some, crew), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    if (atomic_load(&crew->failed) != 0)
        fail_msg("%u threads failed: %s", atomic_load(&crew->failed), crew->words);
    if (mu_coordinator_join(crew->coordinator, WAIT_MS, &error) != 0)
        fail_msg("%s", error.message);
    mu_coordinator_get_stats(crew->coordinator, &counts);
    assert_int_equal(counts.finished, (uint64_t)THREADS * crew->each);
    assert_int_equal(counts.scheduled, counts.finished);
    assert_int_equal(counts.failed + counts.cancelled, 0);
    assert_int_equal(atomic_load(&crew->over), 0);
}

static void expect_all_run(const mu_node_options *wanted, struct crew *crew)
{
    static struct nodes nodes;
    mu_node_options options;
    mu_node *chief;
    mu_node *worker;
    mu_error error = {0};

    nodes_init(&nodes, 1, 0);
    worker = nodes_open(&nodes, "worker", 0);
    assert_int_equal(
        mu_node_register_function(worker, "no_op", no_op, NULL, MU_FUNCTION_INLINE), 0);
    assert_int_equal(mu_node_serve(worker), 0);
    nodes_options(&nodes, "chief", 0, &options);
    if (wanted->queue_max != 0)
        options.queue_max = wanted->queue_max;
    if (wanted->queue_bytes_max != 0)
        options.queue_bytes_max = wanted->queue_bytes_max;
    chief = nodes_open_with(&nodes, &options);
    if (mu_coordinator_open(chief, SOON_MS, &error, &crew->coordinator) != 0)
        fail_msg("%s", error.message);
    check_crew(crew);
    mu_coordinator_close(crew->coordinator);
    nodes_done(&nodes);
}

TEST(test_two_places_for_eight_threads)
{
    struct crew crew = {.each = SMALL_EACH, .most = 2};

    expect_all_run(&(mu_node_options){.queue_max = 2}, &crew);
}

TEST(test_few_bytes_for_eight_threads)
{
    struct crew crew = {.each = SMALL_EACH, .most = 1 << 20};
    mu_value *args = mu_value_bytes("0123456789012345678901234567890123456789", 40);

    crew.args = args;
    expect_all_run(&(mu_node_options){.queue_bytes_max = 100}, &crew);
    mu_value_free(args);
}

/* More than the default bound of 262,144 in all. */
TEST(test_default_bound)
{
    struct crew crew = {.each = MANY_EACH, .most = 262144};

    expect_all_run(&(mu_node_options){0}, &crew);
}

/* While one thread waits with others in front, no limit of 0 gets in between; and one
 * whose limit passes leaves its place in the line to the next. */
TEST(test_limits)
{
    static struct nodes nodes;
    mu_node_options options;
    mu_coordinator *coordinator;
    mu_node *chief;
    mu_error error = {0};

    nodes_init(&nodes, 1, 0);
    nodes_options(&nodes, "chief", 0, &options);
    options.queue_max = 2;
    chief = nodes_open_with(&nodes, &options);
    assert_int_equal(mu_coordinator_open(chief, SOON_MS, &error, &coordinator), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            mu_coordinator_schedule(coordinator, "no_op", NULL, 0, &error, NULL), 0);
    assert_int_equal(mu_coordinator_schedule(coordinator, "no_op", NULL, 0, &error, NULL),
                     -MU_EAGAIN);
    assert_string_equal(error.message,
                        "2 closures are scheduled and not resolved, 2 is the most");
    assert_int_equal(mu_coordinator_schedule(coordinator, "no_op", NULL, 50, &error,
                                             NULL),
                     -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "2 closures are outstanding after"));
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
}

TEST_PROGRAM()
