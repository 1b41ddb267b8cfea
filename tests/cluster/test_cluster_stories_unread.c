/* Clients that do not read their results: they lose nothing, and the chief holds no more
 * than it may for them. */
#include "tests/support/story.h"

#include "actors/supervisor/state/unread_results.h"

enum {
    MIB = 1 << 20,
    CLOSURES = 200,
    IN_FLIGHT = 2 * 4 /* results that may come when the chief holds enough */
};

static struct cluster *begin_reading(void)
{
    struct cluster *cluster =
        BEGIN(.workers = 2, .clients = 2, .window = 4, .silence_ms = 15000);

    sim_settings(cluster->sim)->connection_bytes_max = MIB;
    open_at(cluster->clients[0]);
    open_at(cluster->clients[1]);
    return cluster;
}

static void make(struct cluster_task *client, const struct cluster_ask *ask, size_t count,
                 struct cluster_closure **ret_closures)
{
    for (size_t i = 0; i < count; i++)
        ret_closures[i] = call_with(client, "make", MIB, ask);
}

static int64_t closures_number(const struct cluster *cluster, const char *key)
{
    return status_number(cluster->chief, "closures", key);
}

static void expect_bounded(const struct cluster *cluster)
{
    int64_t bytes = closures_number(cluster, "unread_bytes");

    assert_true(bytes >= MU__UNREAD_BYTES);
    assert_true(bytes < MU__UNREAD_BYTES + (IN_FLIGHT + 1) * MIB);
    assert_true(closures_number(cluster, "queued") > 0);
    assert_int_equal(closures_number(cluster, "in_flight"), 0);
}

static void expect_made(struct cluster_closure *const *closures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const void *data;
        size_t size = 0;

        assert_true(is_resolved(closures[i]));
        assert_int_equal(mu_value_get_bytes(closures[i]->future->result, &data, &size),
                         0);
        assert_int_equal(size, MIB);
    }
}

/* Some of its closures may run on one worker only, some are urgent. */
TEST(test_client_that_stands_still)
{
    struct cluster *cluster = begin_reading();
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[CLOSURES];

    make(client, NULL, CLOSURES / 2, closures);
    make(client, ASK(.worker = 2), CLOSURES / 4, closures + CLOSURES / 2);
    make(client, ASK(.priority = 1), CLOSURES / 4, closures + CLOSURES * 3 / 4);
    run_for(cluster, 100);
    sim_pause(client->node, 12000);
    run_for(cluster, 11000);
    expect_bounded(cluster);
    assert_int_equal(join(client), 0);
    expect_made(closures, CLOSURES);
    expect_counts(client, CLOSURES, 0, 0);
    assert_int_equal(closures_number(cluster, "finished"), CLOSURES);
    assert_int_equal(closures_number(cluster, "unread_bytes"), 0);
    end(cluster);
}

/* Its closures are passed over: those of others run meanwhile. */
TEST(test_others_go_on)
{
    struct cluster *cluster = begin_reading();
    struct cluster_closure *closures[CLOSURES];
    struct cluster_closure *others[40];

    make(cluster->clients[0], NULL, CLOSURES, closures);
    run_for(cluster, 100);
    sim_pause(cluster->clients[0]->node, 12000);
    run_for(cluster, 2000);
    expect_bounded(cluster);
    schedule(cluster->clients[1], "square", 40, others);
    assert_true(joined_after(cluster->clients[1], sim_now_ms(cluster->sim)) < 2000);
    expect_squares(others, 40);
    expect_bounded(cluster);
    assert_int_equal(join(cluster->clients[0]), 0);
    expect_made(closures, CLOSURES);
    end(cluster);
}

/* With it goes all that was kept for it. */
TEST(test_client_that_never_reads_again)
{
    struct cluster *cluster = begin_reading();
    struct cluster_closure *closures[CLOSURES];
    struct cluster_closure *others[4];

    make(cluster->clients[0], NULL, CLOSURES, closures);
    run_for(cluster, 100);
    sim_pause(cluster->clients[0]->node, 12000);
    run_for(cluster, 2000);
    expect_bounded(cluster);
    sim_crash(cluster->clients[0]->node);
    run_for(cluster, 100);
    assert_int_equal(closures_number(cluster, "unread_bytes"), 0);
    assert_int_equal(closures_number(cluster, "queued"), 0);
    schedule(cluster->clients[1], "square", 4, others);
    assert_int_equal(join(cluster->clients[1]), 0);
    expect_squares(others, 4);
    end(cluster);
}

/* Results that stay on their workers until they are fetched. */
TEST(test_fetches_that_are_not_read)
{
    struct cluster *cluster = begin_reading();
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[CLOSURES];
    struct cluster_call *calls[CLOSURES];

    make(client, ASK(.flags = MU__CLOSURE_KEEP), CLOSURES, closures);
    assert_int_equal(join(client), 0);
    for (int i = 0; i < CLOSURES; i++)
        calls[i] = cluster_fetch(closures[i], -1);
    run_for(cluster, 20);
    sim_pause(client->node, 12000);
    run_for(cluster, 11000);
    assert_true(closures_number(cluster, "unread_bytes") > MU__UNREAD_BYTES);
    for (int i = 0; i < CLOSURES; i++)
        assert_int_equal(cluster_wait(calls[i]), 0);
    expect_made(closures, CLOSURES);
    end(cluster);
}

TEST_PROGRAM()
