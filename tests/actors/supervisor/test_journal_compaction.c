/* The chief's journal is compacted while it is used. */
#include "tests/support/journal_story.h"

/* The chief dies in each of the storage's operations in turn, from the compaction's first
 * on, while a closure is scheduled: what had finished is known to each next chief, and
 * never runs again. */
TEST(test_crash_in_a_compaction_loses_nothing)
{
    enum { NAMES = 30, LOADED = 4 };
    static char names[2 * NAMES + 200][16];
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[NAMES];
    struct cluster_closure *more;
    unsigned died = 0;
    int count = NAMES;

    open_at(client);
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%d", i);
        closures[i] = named(client, names[i], i % 4);
    }
    assert_int_equal(join(client), 0);
    for (unsigned operation = LOADED; operation < 150; operation++) {
        sim_crash(cluster->chief->node);
        sim_storage_die_after(storage, operation);
        cluster_start(cluster->chief);
        (void)snprintf(names[count], sizeof names[count], "c%d", count);
        (void)named(client, names[count++], 1);
        for (int ms = 0; ms < 300 && !storage->dead; ms++)
            run_for(cluster, 1);
        died += storage->dead;
        restart_chief(cluster);
        (void)join(client);
    }
    assert_true(died > 2 * NAMES);
    assert_true(storage->counts[SIM_STORAGE_REPLACE] > 10);
    for (int i = 0; i < NAMES; i++) {
        uint32_t runs = cluster->runs[i % 4];

        more = named(client, names[i], i % 4);
        assert_int_equal(join(client), 0);
        expect_squares(&more, 1);
        assert_int_equal(cluster->runs[i % 4], runs);
    }
    expect_squares(closures, NAMES);
    end_with(cluster, storage);
}

/* What ends while the journal is compacted is in the new file, too. */
TEST(test_what_ends_in_a_compaction_counts)
{
    enum { NAMES = 1000 };
    static char names[NAMES][16];
    struct sim_storage *storage;
    struct cluster *cluster = BEGIN_WITH(&storage, .workers = 4, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;
    uint64_t replaced;

    open_at(client);
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%d", i);
        (void)named(client, names[i], 0);
    }
    assert_int_equal(join(client), 0);
    run_for(cluster, 1000);
    restart_chief(cluster);
    replaced = storage->counts[SIM_STORAGE_REPLACE];
    (void)named(client, "x", 1);
    assert_int_equal(join(client), 0);
    assert_int_equal(storage->counts[SIM_STORAGE_REPLACE], replaced);
    run_for(cluster, 5000);
    assert_true(storage->counts[SIM_STORAGE_REPLACE] > replaced);
    restart_chief(cluster);
    closure = named(client, "x", 1);
    assert_int_equal(join(client), 0);
    expect_squares(&closure, 1);
    assert_int_equal(cluster->runs[1], 1);
    assert_int_equal(cluster->runs[0], NAMES);
    end_with(cluster, storage);
}

/* Only the youngest are known, also to the next chief. */
TEST(test_keep)
{
    enum { NAMES = 50, KEPT = 20 };
    static char names[NAMES][16];
    struct sim_storage *storage;
    struct cluster *cluster =
        BEGIN_WITH(&storage, .workers = 1, .clients = 1, .node.journal_keep = KEPT);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;

    open_at(client);
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%d", i);
        (void)named(client, names[i], 0);
        assert_int_equal(join(client), 0);
    }
    restart_chief(cluster);
    assert_int_equal(cluster->runs[0], NAMES);
    for (int i = NAMES - KEPT; i < NAMES; i++) {
        closure = named(client, names[i], 0);
        assert_int_equal(join(client), 0);
        expect_squares(&closure, 1);
    }
    assert_int_equal(cluster->runs[0], NAMES);
    (void)named(client, names[NAMES - KEPT - 1], 0);
    assert_int_equal(join(client), 0);
    assert_int_equal(cluster->runs[0], NAMES + 1);
    end_with(cluster, storage);
}

TEST_PROGRAM()
