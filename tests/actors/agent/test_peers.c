/* Whom a node reaches and whom not, as it says it, and as it hears it from others. */
#include "tests/support/story.h"

static const mu_value *find(const mu_value *list, const char *type, int64_t index)
{
    for (size_t i = 0; i < mu_value_count(list); i++) {
        const mu_value *map = mu_value_at(list, i);
        const char *text = "";
        int64_t number = -1;
        size_t size;

        (void)mu_value_get_string(mu_value_find(map, "type"), &text, &size);
        (void)mu_value_get_int(mu_value_find(map, "index"), &number);
        if (strcmp(text, type) == 0 && number == index)
            return map;
    }
    return NULL;
}

static const char *text_of(const mu_value *map, const char *key)
{
    const char *text = NULL;
    size_t size;

    assert_int_equal(mu_value_get_string(mu_value_find(map, key), &text, &size), 0);
    return text;
}

static int64_t ms_of(const mu_value *map, const char *key)
{
    int64_t number = -1;

    assert_int_equal(mu_value_get_int(mu_value_find(map, key), &number), 0);
    return number;
}

static int truth_of(const mu_value *map, const char *key)
{
    int truth = -1;

    assert_int_equal(mu_value_get_bool(mu_value_find(map, key), &truth), 0);
    return truth;
}

static mu_value *ask(struct cluster_task *task, enum mu__peers_operation operation)
{
    struct cluster_call *call = cluster_peers(task, operation, 1000);

    assert_int_equal(cluster_wait(call), 0);
    assert_non_null(call->of.peers.found);
    return call->of.peers.found;
}

TEST(test_own_links)
{
    struct cluster *cluster = BEGIN(.workers = 2, .servers = 1);
    const mu_value *peer;
    mu_value *own;

    run_for(cluster, 1000);
    own = ask(cluster->chief, MU__PEERS_OWN);
    assert_int_equal(mu_value_count(own), 3);
    peer = find(own, "worker", 1);
    assert_string_equal(text_of(peer, "state"), "up");
    assert_string_equal(text_of(peer, "why"), "");
    assert_true(truth_of(peer, "dialled"));
    assert_in_range(ms_of(peer, "for_ms"), 1000, 1160);
    mu_value_free(own);

    /* The other side did not begin it. */
    own = ask(cluster->workers[1], MU__PEERS_OWN);
    assert_string_equal(text_of(find(own, "chief", 0), "state"), "up");
    assert_false(truth_of(find(own, "chief", 0), "dialled"));
    assert_true(truth_of(find(own, "ps", 0), "dialled"));
    mu_value_free(own);
    end(cluster);
}

/* A cut that two of them do not get over. Both say so, and since when. */
TEST(test_who_cannot_reach_whom)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 1);
    const mu_value *peers;
    const mu_value *peer;
    mu_value *all;

    sim_block(cluster->sim, cluster->workers[0]->node, cluster->servers[0]->node);
    run_for(cluster, 3000);
    all = ask(cluster->chief, MU__PEERS_ALL);
    assert_int_equal(mu_value_count(all), 2);
    peers = mu_value_find(find(all, "worker", 0), "peers");
    peer = find(peers, "ps", 0);
    assert_string_not_equal(text_of(peer, "state"), "up");
    assert_string_not_equal(text_of(peer, "why"), "");
    assert_in_range(ms_of(peer, "for_ms"), 2000, 3000);
    assert_string_equal(text_of(find(peers, "chief", 0), "state"), "up");
    peers = mu_value_find(find(all, "ps", 0), "peers");
    assert_null(find(peers, "worker", 0));
    mu_value_free(all);
    sim_unblock(cluster->sim, cluster->workers[0]->node, cluster->servers[0]->node);
    end(cluster);
}

/* One dies while it is asked: the limit ends it, and the others have answered. */
TEST(test_no_answer)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_call *call;
    const mu_value *found;

    sim_crash(cluster->workers[1]->node);
    call = cluster_peers(cluster->chief, MU__PEERS_ALL, 300);
    assert_int_equal(cluster_wait(call), 0);
    found = call->of.peers.found;
    assert_int_equal(mu_value_count(found), 2);
    assert_non_null(mu_value_find(find(found, "worker", 0), "peers"));
    assert_null(mu_value_find(find(found, "worker", 1), "peers"));
    mu_value_free(call->of.peers.found);
    sim_start(cluster->workers[1]->node);
    end(cluster);
}

/* Nothing more is to come from one that is lost: it does not cost the whole limit. */
TEST(test_dies_while_it_is_asked)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_call *call;
    uint64_t began_ms;

    run_for(cluster, 1000);
    sim_pause(cluster->workers[1]->node, 100000);
    began_ms = sim_now_ms(cluster->sim);
    call = cluster_peers(cluster->chief, MU__PEERS_ALL, 60000);
    assert_int_equal(cluster_wait(call), 0);
    assert_in_range(sim_now_ms(cluster->sim) - began_ms, 1, 5000);
    assert_non_null(mu_value_find(find(call->of.peers.found, "worker", 0), "peers"));
    assert_null(mu_value_find(find(call->of.peers.found, "worker", 1), "peers"));
    mu_value_free(call->of.peers.found);
    sim_resume(cluster->workers[1]->node);
    end(cluster);
}

/* Two ask at the same time, and each gets its own answers. */
TEST(test_two_at_once)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    struct cluster_call *calls[2];

    for (int i = 0; i < 2; i++)
        calls[i] = cluster_peers(cluster->chief, MU__PEERS_ALL, 1000);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cluster_wait(calls[i]), 0);
        assert_int_equal(mu_value_count(calls[i]->of.peers.found), 2);
        for (size_t j = 0; j < 2; j++)
            assert_non_null(mu_value_find(mu_value_at(calls[i]->of.peers.found, j),
                                          "peers"));
        mu_value_free(calls[i]->of.peers.found);
    }
    end(cluster);
}

/* Nobody is there: an empty list at once. */
TEST(test_alone)
{
    struct cluster *cluster = MAKE(.workers = 1);
    mu_value *all;

    sim_start(cluster->chief->node);
    run_for(cluster, 100);
    all = ask(cluster->chief, MU__PEERS_ALL);
    assert_int_equal(mu_value_count(all), 0);
    mu_value_free(all);
    all = ask(cluster->chief, MU__PEERS_OWN);
    assert_string_equal(text_of(find(all, "worker", 0), "state"), "dialling");
    mu_value_free(all);
    cluster_free(cluster);
}

TEST_PROGRAM()
