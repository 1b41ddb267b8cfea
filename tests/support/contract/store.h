/* What every store must do, written once. A test file fills in a struct contract_store,
 * which says how to make one and what can happen to it, and gets the whole suite:
 *
 *     return contract_store_run("journal", &journal_fixture);
 *
 * Stores are held by processes of the simulator: each has a kernel with one actor, which
 * does what the coordination service does with its store: starts it, ticks every 50 ms,
 * writes batches. What it writes follows from the batch's number, so that what the next
 * holder reads says which batches counted. Include it after cmocka.h. */
#ifndef MU_TESTS_CONTRACT_STORE_H
#define MU_TESTS_CONTRACT_STORE_H

#include "tests/support/contract/store_stories.h"

/* ---- Random lives ---- */

struct contract_random {
    struct contract_state *s;
    struct sim_random random;
    uint64_t next; /* batch */
    uint64_t safe; /* the last that was told safe in any life */
};

static void contract_random_life(struct contract_random *r, unsigned i)
{
    struct contract_holder *h = contract_begin(r->s, i);
    uint64_t batches = sim_between(&r->random, 0, 12);

    assert_true(h->content.batch >= r->safe && h->content.batch < r->next);
    contract_expect_content(&h->content, h->content.batch);
    r->safe = h->content.batch;
    r->next = h->content.batch + 1;
    for (uint64_t k = 0; k < batches && h->held && h->times_lost == 0; k++) {
        if (r->s->fixture->set_full != NULL && sim_chance(&r->random, 5))
            r->s->fixture->set_full(r->s->place, true);
        contract_put(h, r->next++);
        if (sim_chance(&r->random, 50))
            contract_run_ms(r->s, sim_between(&r->random, 0, 30));
    }
    if (h->held && h->times_lost == 0 && sim_chance(&r->random, 30))
        contract_make_batch(r->next, contract_visit_write, h);
    if (h->committed > r->safe)
        r->safe = h->committed;
    contract_kill(h);
    if (r->s->fixture->set_full != NULL)
        r->s->fixture->set_full(r->s->place, false);
}

static void *contract_store_open(const struct contract_store *fixture, uint64_t seed)
{
    struct contract_state *s = calloc(1, sizeof *s);
    static const char *const names[CONTRACT_NODES] = {"chief/0", "ps/0"};
    static const char *const addresses[CONTRACT_NODES] = {"tcp://a:1", "tcp://b:1"};

    assert_non_null(s);
    s->fixture = fixture;
    s->sim = sim_new(seed);
    s->place = fixture->open(s->sim, seed);
    for (unsigned i = 0; i < CONTRACT_NODES; i++) {
        s->holders[i].state = s;
        s->holders[i].node = sim_node_add(s->sim, names[i], addresses[i],
                                          &contract_program, &s->holders[i]);
    }
    return s;
}

static void contract_store_close(struct contract_state *s)
{
    const struct contract_store *fixture = s->fixture;

    sim_free(s->sim);
    fixture->close(s->place);
    free(s);
}

/* Lives of a few batches that end anywhere: the next one finds all that was told safe,
 * and no batch but those that were written, whole, and none without those before it. */
LISTED_TEST(contract_store_survives_lives)
{
    struct contract_state *given = *state;
    const struct contract_store *fixture = given->fixture;

    if (!fixture->kind->lasting)
        return;
    for (uint64_t seed = 1; seed <= fixture->seeds; seed++) {
        struct contract_state *s = contract_store_open(fixture, seed);
        struct contract_random r = {s, sim_stream(seed, 7), 1, 0};

        for (unsigned life = 0; life < 20; life++)
            contract_random_life(
                &r, fixture->kind->shared ? (unsigned)sim_between(&r.random, 0, 1) : 0);
        contract_store_close(s);
    }
}

static const struct contract_store *contract_store_fixture;

static int contract_store_set_up(void **state)
{
    *state = contract_store_open(contract_store_fixture, 1);
    return 0;
}

static int contract_store_tear_down(void **state)
{
    contract_store_close(*state);
    return 0;
}

#define CONTRACT_STORE_TEST(name) \
    cmocka_unit_test_setup_teardown(name, contract_store_set_up, contract_store_tear_down)

static inline int contract_store_run(const char *name,
                                     const struct contract_store *fixture)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_STORE_TEST(contract_store_begins_empty),
        CONTRACT_STORE_TEST(contract_store_keeps_what_is_safe),
        CONTRACT_STORE_TEST(contract_store_commits_in_order),
        CONTRACT_STORE_TEST(contract_store_drops_what_was_not_committed),
        CONTRACT_STORE_TEST(contract_store_counts_lives),
        CONTRACT_STORE_TEST(contract_store_keeps_bytes),
        CONTRACT_STORE_TEST(contract_store_replaces_a_run),
        CONTRACT_STORE_TEST(contract_store_has_whole_transactions),
        CONTRACT_STORE_TEST(contract_store_has_whole_large_transactions),
        CONTRACT_STORE_TEST(contract_store_drops_half_a_transaction),
        CONTRACT_STORE_TEST(contract_store_visits_again),
        CONTRACT_STORE_TEST(contract_store_is_rewritten),
        CONTRACT_STORE_TEST(contract_store_is_lost_when_full),
        CONTRACT_STORE_TEST(contract_store_has_one_holder),
        CONTRACT_STORE_TEST(contract_store_lets_go),
        CONTRACT_STORE_TEST(contract_store_survives_lives),
    };

    contract_store_fixture = fixture;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

#endif
