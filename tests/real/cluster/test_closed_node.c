/* Threads that are inside calls of the coordination service when their node is closed, or
 * call afterwards: they are told that it is closed, and nothing is used after it was
 * freed (which the sanitizers see). */
#include "tests/real/nodes.h"

#include <muster/coordination.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum { ROUNDS = 100, WAITERS = 16 };

struct waiter {
    mu_node *node;
    pthread_t thread;
    atomic_int tid;
    int code;
};

static void *wait_for_key(void *arg)
{
    struct waiter *waiter = arg;
    char self[64] = "";
    mu_kv_item item;
    mu_error error;

    self[readlink("/proc/thread-self", self, sizeof self - 1)] = '\0';
    atomic_store(&waiter->tid, atoi(strrchr(self, '/') + 1));
    waiter->code = mu_kv_get(waiter->node, "never", -1, &error, &item);
    return NULL;
}

/* Whether it sleeps: inside the call, since it does nothing else. */
static bool sleeps(struct waiter *waiter)
{
    char path[64];
    char state = '?';
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat",
                   atomic_load(&waiter->tid));
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    if (fscanf(file, "%*d %*[^)]) %c", &state) != 1)
        state = '?';
    (void)fclose(file);
    return state == 'S';
}

static mu_node *open_alone(void)
{
    mu_node_options options;
    mu_node *node = NULL;
    mu_error error;

    mu_node_options_init(&options);
    mu_cluster *cluster = mu_cluster_new();
    assert_int_equal(mu_cluster_add(cluster, "chief", 0, "127.0.0.1:0", &error), 0);
    options.cluster = cluster;
    options.task_type = "chief";
    options.log_level = MU_LOG_ERROR;
    assert_int_equal(mu_node_open(&options, &error, &node), 0);
    mu_cluster_free(cluster);
    assert_int_equal(mu_agent_register(node, 0, 10000, &error), 0);
    return node;
}

TEST(test_a_thread_that_waits_for_a_key_is_told_that_the_node_closed)
{
    for (int round = 0; round < ROUNDS; round++) {
        mu_node *node = mu_node_ref(open_alone());
        struct waiter waiters[WAITERS];

        for (int i = 0; i < WAITERS; i++) {
            waiters[i].node = node;
            atomic_init(&waiters[i].tid, 0);
            assert_int_equal(
                pthread_create(&waiters[i].thread, NULL, wait_for_key, &waiters[i]), 0);
        }
        for (int i = 0; i < WAITERS; i++)
            while (!sleeps(&waiters[i]))
                nodes_pause();
        if (round % 2 == 0)
            mu_node_unref(node); /* the calls hold it while they are under way */
        assert_int_equal(mu_node_close(node, 1000, NULL), 0);
        for (int i = 0; i < WAITERS; i++) {
            assert_int_equal(pthread_join(waiters[i].thread, NULL), 0);
            assert_int_equal(waiters[i].code, -MU_ECLOSED);
        }
        if (round % 2 != 0)
            mu_node_unref(node);
    }
}

TEST(test_calls_on_a_closed_node_that_is_held_say_so)
{
    mu_node *node = mu_node_ref(open_alone());
    mu_barrier_options barrier;
    mu_value *value = NULL;
    mu_preemption preemption;
    mu_error error;
    int64_t number;

    assert_int_equal(mu_node_close(node, 1000, &error), 0);
    assert_int_equal(mu_kv_put(node, "k", "v", 1, MU_KV_OVERWRITE, 0, 1000, &error, NULL),
                     -MU_ECLOSED);
    assert_int_equal(mu_kv_increment(node, "k", 1, 1000, &error, &number), -MU_ECLOSED);
    assert_int_equal(mu_tasks_states(node, NULL, 1000, &error, &value), -MU_ECLOSED);
    assert_int_equal(mu_node_status(node, 1000, &error, &value), -MU_ECLOSED);
    mu_barrier_options_init(&barrier);
    barrier.timeout_ms = 1000;
    assert_int_equal(mu_barrier_wait(node, "b", &barrier, &error), -MU_ECLOSED);
    assert_int_equal(mu_preemption_wait(node, 0, 0, 1000, &error, &preemption),
                     -MU_ECLOSED);
    assert_int_equal(mu_node_wait_job(node, 1000, &error), -MU_ECLOSED);
    assert_string_equal(mu_node_task(node), "/job:chief/task:0");
    mu_node_unref(node);
    mu_node_unref(NULL);
    assert_null(mu_node_ref(NULL));
}

TEST_PROGRAM()
