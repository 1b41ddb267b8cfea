/* A thread that fetches a value looks for it before it asks for it: what comes while it
 * spins needs no call. */
#include "actors/client/future.h"
#include "node/node.h"
#include "tests/real/nodes.h"

#include <stdbool.h>

enum { ROUNDS = 30, FETCH_MS = 200, COMES_AFTER_US = 500, SPIN_US = 100000 };

struct coming {
    mu_node *node;
    mu_remote_value *value;
    atomic_bool wanted; /* the other thread is about to fetch it */
};

/* The node knows nothing of this value: a call for it would end at its timeout. Until the
 * value comes the loop has handled what was posted before. */
static void *come_later(void *arg)
{
    struct coming *coming = arg;
    mu_value *status = NULL;
    mu_error error = {0};

    while (!atomic_load(&coming->wanted))
        nodes_pause();
    (void)nanosleep(&(struct timespec){.tv_nsec = COMES_AFTER_US * 1000}, NULL);
    assert_int_equal(mu_node_status(coming->node, SOON_MS, &error, &status), 0);
    mu_value_free(status);
    atomic_store(&coming->value->state, MU_REMOTE_READY);
    return NULL;
}

static void expect_short_waits(struct mu__spin *spin)
{
    mu__spin_init(spin, SPIN_US);
    for (int i = 0; i < 8; i++)
        mu__spin_slept(spin, uv_hrtime());
}

static bool comes_in_spin(mu_node *node)
{
    struct coming coming = {.node = node, .value = mu__future_new(&node->future_owner)};
    uint64_t begun_ns;
    uint64_t took_ms;
    pthread_t thread;
    mu_error error;
    int rv;

    assert_non_null(coming.value);
    expect_short_waits(&node->calls.spin);
    assert_int_equal(pthread_create(&thread, NULL, come_later, &coming), 0);
    begun_ns = uv_hrtime();
    atomic_store(&coming.wanted, true);
    rv = mu_remote_value_fetch(coming.value, FETCH_MS, &error, NULL);
    took_ms = (uv_hrtime() - begun_ns) / 1000000;
    assert_int_equal(pthread_join(thread, NULL), 0);
    mu__held_unref(&coming.value->held);
    mu_remote_value_free(coming.value);
    return rv == 0 && took_ms < FETCH_MS / 2;
}

/* Another thread that wants the core may end a spin, but not each of them. */
TEST(test_fetch)
{
    struct nodes nodes;
    mu_node *node;
    bool came = false;

    nodes_init(&nodes, 0, 0);
    node = nodes_open(&nodes, "chief", 0);
    for (int i = 0; i < ROUNDS && !came; i++)
        came = comes_in_spin(node);
    assert_true(came);
    nodes_done(&nodes);
}

TEST(test_by_hand)
{
    struct nodes nodes;
    mu_remote_value *value;
    uint64_t since;

    nodes_init(&nodes, 0, 0);
    value = mu__future_new(&nodes_open(&nodes, "chief", 0)->future_owner);
    assert_non_null(value);
    since = mu_remote_value_spin(value);
    assert_int_not_equal(since, 0);
    mu_remote_value_slept(value, since);
    atomic_store(&value->state, MU_REMOTE_ABORTED);
    assert_int_equal(mu_remote_value_spin(value), 0);
    mu_remote_value_slept(value, 0);
    assert_int_equal(mu_remote_value_spin(NULL), 0);
    mu_remote_value_slept(NULL, since);
    mu__held_unref(&value->held);
    mu_remote_value_free(value);
    nodes_done(&nodes);
}

TEST_PROGRAM()
