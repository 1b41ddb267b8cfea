/* A chief starts over a journal that is too large for one turn: it reads some of it in
 * each turn, lives meanwhile, and lets wait what needs the journal. */
#include "tests/support/journal_rows.h"
#include "tests/support/journal_story.h"

#include "actors/supervisor/internal.h"

#ifdef MUSTER_TINY
enum { NAMES = 20000, TURN_RECORDS = 200 };
#else
enum { NAMES = 200000, TURN_RECORDS = 2000 };
#endif

enum { TURNS = 2 * NAMES / TURN_RECORDS, UNFINISHED = 6 };

static const struct supervisor *supervisor_of(const struct cluster *cluster)
{
    const struct supervisor *s = mu__actor_state(
        cluster->chief->member.kernel, (mu__pid){MU__NODE_SELF, MU__SUPERVISOR});

    assert_non_null(s);
    return s;
}

/* The chief has died with some closures under way, one that has finished, and all those.
 * It begins to start. */
static struct cluster *begin_large(struct sim_storage **ret_storage)
{
    static const char *const names[UNFINISHED] = {"a", "b", "c", "d", "e", "f"};
    struct cluster *cluster =
        BEGIN_WITH(ret_storage, .workers = 2, .servers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];

    open_at(client);
    (void)named(client, "first", 100);
    assert_int_equal(join(client), 0);
    set_work_ms(cluster, 5000);
    for (int i = 0; i < UNFINISHED; i++)
        (void)named(client, names[i], i);
    run_for(cluster, 100);
    sim_crash(cluster->chief->node);
    (void)join(client);
    set_work_ms(cluster, 10);
    journal_add_finished(&(*ret_storage)->base, NAMES);
    cluster_start(cluster->chief);
    assert_true(mu__supervisor_reads(supervisor_of(cluster)));
    return cluster;
}

static void expect_status(struct cluster *cluster, bool reads)
{
    struct cluster_call *call = cluster_ask(cluster->chief, MU__CLIENT_STATUS, 200);
    const mu_value *journal;
    int64_t bytes = 0;
    int64_t all = 0;

    assert_int_equal(cluster_wait(call), 0);
    journal = mu_value_find(call->of.client.status, "journal");
    assert_true((journal != NULL) == reads);
    if (reads) {
        assert_int_equal(mu_value_get_int(mu_value_find(journal, "read_bytes"), &bytes),
                         0);
        assert_int_equal(mu_value_get_int(mu_value_find(journal, "bytes"), &all), 0);
        assert_true(bytes > 0 && bytes < all);
    }
    mu_value_free(call->of.client.status);
    call->of.client.status = NULL;
}

static uint64_t turns_of(const struct cluster *cluster)
{
    struct mu__kernel_counters counters;

    mu__kernel_counters(cluster->chief->member.kernel, &counters);
    return counters.turns;
}

/* No turn reads more than its part; the status says how far it is; workers and clients
 * are linked, and what they ask for waits. At the end nothing is lost, and what had
 * finished does not run again. */
TEST(test_reads_a_part_in_each_turn)
{
    struct sim_storage *storage;
    struct cluster *cluster = begin_large(&storage);
    struct cluster_task *client = cluster->clients[0];
    const struct supervisor *s = supervisor_of(cluster);
    struct cluster_closure *again = NULL;
    uint64_t records = s->opening.progress.records;
    unsigned turns = 1;
    unsigned linked = 0;
    uint64_t before;

    assert_int_equal(records, TURN_RECORDS);
    for (; mu__supervisor_reads(s); turns++) {
        if (turns == TURNS / 2)
            expect_status(cluster, true);
        if (s->nodes.count == 4 && ++linked == 20) /* the client knows it, too */
            again = named(client, "first", 100);
        records = s->opening.progress.records;
        before = turns_of(cluster);
        assert_int_equal(s->members.count, 0);
        run_for(cluster, 1);
        assert_true(s->opening.progress.records - records <=
                    TURN_RECORDS * (turns_of(cluster) - before));
        assert_true(turns < 2 * TURNS);
    }
    assert_true(turns >= TURNS / 2);
    expect_status(cluster, false);
    assert_non_null(again);
    assert_int_equal(join(client), 0);
    expect_squares(&again, 1);
    run_for(cluster, 20000); /* workers end what they ran for the former chief */
    assert_int_equal(s->members.count, 2);
    assert_int_equal(cluster->runs[100], 1);
    for (int i = 0; i < UNFINISHED; i++)
        assert_true(cluster->runs[i] >= 1);
    assert_int_equal(s->journal.finished.count, NAMES + UNFINISHED + 1);
    end_with(cluster, storage);
}

/* Damage that is found late: the chief is of no use, and says why. Whoever reads the file
 * when it is mended finds all. */
TEST(test_damage_is_found_late)
{
    struct sim_storage *storage;
    struct cluster *cluster = begin_large(&storage);
    size_t at = storage->flushed * 3 / 4;
    const struct supervisor *s = supervisor_of(cluster);

    storage->content[at] ^= 4;
    run_for(cluster, 2 * TURNS);
    assert_int_equal(s->opening.phase, JOURNAL_FAILED);
    assert_int_equal(s->opening.error.code, -MU_EDATALOSS);
    assert_non_null(strstr(s->opening.error.message, "is damaged"));
    assert_int_equal(s->members.count, 0);
    storage->content[at] ^= 4;
    restart_chief(cluster);
    run_for(cluster, 2 * TURNS);
    assert_false(mu__supervisor_reads(supervisor_of(cluster)));
    end_with(cluster, storage);
}

/* A chief that dies while it reads, with messages that wait, leaves all as it was. */
TEST(test_dies_while_it_reads)
{
    struct sim_storage *storage;
    struct cluster *cluster = begin_large(&storage);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *again;

    for (int i = 0; i < 3; i++) {
        run_for(cluster, TURNS / 2);
        assert_true(mu__supervisor_reads(supervisor_of(cluster)));
        assert_int_equal(sim_restart(cluster->chief->node), 0);
    }
    run_for(cluster, 2 * TURNS + 500);
    (void)join(client);
    again = named(client, "first", 100);
    assert_int_equal(join(client), 0);
    expect_squares(&again, 1);
    assert_int_equal(cluster->runs[100], 1);
    end_with(cluster, storage);
}

TEST_PROGRAM()
