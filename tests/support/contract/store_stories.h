/* Stories that every store passes; store.h runs them. */
#ifndef MU_TESTS_CONTRACT_STORE_STORIES_H
#define MU_TESTS_CONTRACT_STORE_STORIES_H

#include "tests/support/contract/store_holder.h"

/* ---- Doing ---- */

static struct mu__ctx contract_ctx(struct contract_holder *h)
{
    return (struct mu__ctx){h->kernel, h->pid, NULL};
}

static void contract_run_ms(struct contract_state *s, uint64_t ms)
{
    sim_run_until(s->sim, sim_now_ms(s->sim) + ms);
}

static bool contract_is_held(void *arg)
{
    struct contract_holder *h = arg;

    return h->held;
}

static void contract_hold(struct contract_holder *h)
{
    struct contract_state *s = h->state;

    assert_true(h->held || sim_run_to(s->sim, contract_is_held, h,
                                      sim_now_ms(s->sim) + s->fixture->held_ms));
}

/* The process begins, or begins again, and has the store. */
static struct contract_holder *contract_begin(struct contract_state *s, unsigned i)
{
    struct contract_holder *h = &s->holders[i];

    assert_int_equal(sim_restart(h->node), 0);
    contract_hold(h);
    return h;
}

static int contract_write(struct contract_holder *h, uint16_t kind, const void *body)
{
    struct mu__pool *pool = mu__kernel_pool(h->kernel);
    size_t size = mu__messages.rows[kind].body_size;
    struct mu__msg *msg = mu__pool_get(pool, kind, size);
    struct mu__ctx ctx = contract_ctx(h);
    int rv;

    assert_non_null(msg);
    memcpy(msg->body, body, size);
    rv = h->store->ops->write(h->store, &ctx, msg);
    mu__pool_put(pool, msg);
    return rv;
}

static void contract_visit_write(void *owner, uint16_t kind, const void *body)
{
    (void)contract_write(owner, kind, body);
}

static void contract_commit(struct contract_holder *h, uint64_t sequence)
{
    struct mu__ctx ctx = contract_ctx(h);

    h->store->ops->commit(h->store, &ctx, sequence * 10 + 9, sequence);
}

/* Write batch number `batch`, which is the sequence number of its commit, too. */
static void contract_put(struct contract_holder *h, uint64_t batch)
{
    contract_make_batch(batch, contract_visit_write, h);
    contract_commit(h, batch);
}

struct contract_wait {
    struct contract_holder *holder;
    uint64_t sequence;
};

static bool contract_is_safe(void *arg)
{
    const struct contract_wait *wait = arg;

    return wait->holder->committed >= wait->sequence;
}

static void contract_wait_safe(struct contract_holder *h, uint64_t sequence)
{
    struct contract_state *s = h->state;
    struct contract_wait wait = {h, sequence};

    assert_true(contract_is_safe(&wait) ||
                sim_run_to(s->sim, contract_is_safe, &wait,
                           sim_now_ms(s->sim) + s->fixture->safe_ms));
}

static bool contract_may_read(struct contract_holder *h)
{
    struct mu__ctx ctx = contract_ctx(h);

    return h->store->ops->may_read(h->store, &ctx);
}

static void contract_kill(struct contract_holder *h)
{
    sim_crash(h->node);
}

/* As after a whole life: a number for a store that keeps what it has, and nothing there
 * for one that does not. */
static uint64_t contract_expected(struct contract_state *s, uint64_t batches)
{
    return s->fixture->kind->lasting ? batches : 0;
}

/* ---- The suite ---- */

LISTED_TEST(contract_store_begins_empty)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    assert_int_equal(h->records, 0);
    assert_int_equal(h->times_read, 1);
    assert_int_equal(h->times_held, 1);
    contract_wait_safe(h, 0);
    assert_true(contract_may_read(h));
    contract_expect_content(&h->content, 0);
}

LISTED_TEST(contract_store_keeps_what_is_safe)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    uint64_t number = h->number;
    uint64_t epoch = h->epoch;

    for (uint64_t batch = 1; batch <= 30; batch++) {
        contract_put(h, batch);
        contract_wait_safe(h, batch);
    }
    contract_kill(h);
    contract_run_ms(s, 1);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, contract_expected(s, 30));
    assert_int_equal(h->number == number, s->fixture->kind->lasting);
    assert_true(h->epoch > epoch || !s->fixture->kind->lasting);
}

/* Several batches under way: they are safe in order. */
LISTED_TEST(contract_store_commits_in_order)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    for (uint64_t batch = 1; batch <= 20; batch++)
        contract_put(h, batch);
    contract_wait_safe(h, 20);
    contract_commit(h, 21); /* an empty one is one, too */
    contract_wait_safe(h, 21);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, contract_expected(s, 20));
}

/* A batch without its commit never counts, neither in the next life nor after more was
 * written in that. */
LISTED_TEST(contract_store_drops_what_was_not_committed)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    contract_put(h, 1);
    contract_wait_safe(h, 1);
    contract_make_batch(2, contract_visit_write, h);
    contract_run_ms(s, 100);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, contract_expected(s, 1));
    if (!s->fixture->kind->lasting)
        return;
    contract_put(h, 2);
    contract_put(h, 3);
    contract_wait_safe(h, 3);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, 3);
}

LISTED_TEST(contract_store_counts_lives)
{
    struct contract_state *s = *state;
    uint64_t epoch = 0;
    uint64_t number = 0;

    for (unsigned life = 0; life < 5; life++) {
        struct contract_holder *h = contract_begin(s, 0);

        if (s->fixture->kind->lasting) {
            assert_true(h->epoch > epoch);
            assert_true(number == 0 || h->number == number);
        } else {
            assert_true(h->number != number);
        }
        epoch = h->epoch;
        number = h->number;
        contract_kill(h);
    }
}

/* The last one that was visited. */
static const struct mu__store_change *contract_find_extra(struct contract_holder *h,
                                                          struct mu__view key)
{
    for (unsigned i = h->extras; i > 0; i--) {
        const struct mu__store_change *at = mu__body(h->extra[i - 1]);

        if (at->key.size == key.size && memcmp(at->key.data, key.data, key.size) == 0)
            return at;
    }
    return NULL;
}

static void contract_expect_change(const struct mu__store_change *found,
                                   const struct mu__store_change *wanted)
{
    assert_non_null(found);
    assert_false(found->deleted);
    assert_int_equal(found->revision, wanted->revision);
    assert_int_equal(found->owner, wanted->owner);
    assert_int_equal(found->value.size, wanted->value.size);
    if (found->value.size > 0)
        assert_memory_equal(found->value.data, wanted->value.data, wanted->value.size);
}

/* Keys and values of all sizes and bytes. */
LISTED_TEST(contract_store_keeps_bytes)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    static char key[MU__KEY_MAX];
    static uint8_t value[MU__KEY_VALUE_MAX];
    struct mu__store_change rows[] = {
        {1, {key, sizeof key}, {value, sizeof value}, false, UINT64_MAX},
        {2, {"\xff\x80 \"\\ \xc3\x28", 8}, {value, 256}, false, 1},
        {3, {"empty", 5}, {NULL, 0}, false, 0},
        {UINT64_MAX - 1, {"gone", 4}, {"x", 1}, false, 0},
    };
    struct mu__store_change gone = {UINT64_MAX, {"gone", 4}, {NULL, 0}, true, 0};

    for (unsigned i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)(i < 256 ? i : i * i >> 5);
    memset(key, '~', sizeof key);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(contract_write(h, MU__STORE_CHANGE, &rows[i]), 0);
    contract_commit(h, 1);
    assert_int_equal(contract_write(h, MU__STORE_CHANGE, &gone), 0);
    contract_commit(h, 2);
    contract_wait_safe(h, 2);
    contract_kill(h);
    h = contract_begin(s, 0);
    for (unsigned i = 0; i < 3 && s->fixture->kind->lasting; i++)
        contract_expect_change(contract_find_extra(h, rows[i].key), &rows[i]);
    assert_true(contract_find_extra(h, gone.key) == NULL ||
                contract_find_extra(h, gone.key)->deleted);
}

static bool contract_has_key(struct contract_holder *h, const char *key)
{
    const struct mu__store_change *found = contract_find_extra(h, mu__view_str(key));

    return found != NULL && !found->deleted;
}

static bool contract_has_results(const struct contract_holder *h)
{
    for (unsigned agent = 0; agent < CONTRACT_AGENTS; agent++)
        for (unsigned i = 0; i < CONTRACT_TOKENS; i++)
            if (h->content.results[agent][i].token != 0)
                return true;
    return false;
}

/* What the beginning of another run writes: the record of the last one stays, what
 * belongs to it goes, and all results of agents. */
static void contract_write_next_run(struct contract_holder *h)
{
    const struct mu__store_change rows[] = {
        {20, mu__view_str("_muster/run/1/barrier/a"), {NULL, 0}, true, 0},
        {21, mu__view_str("_muster/run/1/preemption"), {NULL, 0}, true, 0},
        {21, mu__view_str("_muster/run/2"), {"running", 7}, false, 0},
    };

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(contract_write(h, MU__STORE_CHANGE, &rows[i]), 0);
    for (uint64_t agent = 1; agent <= CONTRACT_AGENTS; agent++)
        assert_int_equal(contract_write(h, MU__STORE_RESULT,
                                        &(struct mu__store_result){.agent = agent,
                                                                   .done = UINT64_MAX}),
                         0);
}

/* Another run begins as a whole, or not at all. */
LISTED_TEST(contract_store_replaces_a_run)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    const bool lasting = s->fixture->kind->lasting;
    const struct mu__store_change rows[] = {
        {10, mu__view_str("_muster/run/1"), {"running", 7}, false, 0},
        {11, mu__view_str("_muster/run/1/barrier/a"), {"x", 1}, false, 0},
        {12, mu__view_str("_muster/run/1/preemption"), {"x", 1}, false, 0},
    };

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(contract_write(h, MU__STORE_CHANGE, &rows[i]), 0);
    for (uint64_t batch = 1; batch <= CONTRACT_AGENTS; batch++)
        contract_make_result(batch, contract_visit_write, h);
    contract_commit(h, 1);
    contract_wait_safe(h, 1);
    contract_write_next_run(h);
    contract_kill(h);
    h = contract_begin(s, 0);
    assert_false(contract_has_key(h, "_muster/run/2"));
    assert_int_equal(contract_has_key(h, "_muster/run/1/barrier/a"), lasting);
    assert_int_equal(contract_has_results(h), lasting);
    contract_write_next_run(h);
    contract_commit(h, 1);
    contract_wait_safe(h, 1);
    contract_kill(h);
    h = contract_begin(s, 0);
    assert_int_equal(contract_has_key(h, "_muster/run/2"), lasting);
    assert_int_equal(contract_has_key(h, "_muster/run/1"), lasting);
    assert_false(contract_has_key(h, "_muster/run/1/barrier/a"));
    assert_false(contract_has_key(h, "_muster/run/1/preemption"));
    assert_false(contract_has_results(h));
}

/* ---- Transactions ---- */

/* Round `round` of a transaction over many keys, as the service writes it: puts, then
 * what is deleted, then its result. Of an even round every third key is deleted. */
static bool contract_txn_deletes(uint64_t round, unsigned key)
{
    return round % 2 == 0 && key % 3 == 1;
}

static void contract_write_txn_keys(struct contract_holder *h, uint64_t round,
                                    unsigned count, bool deleted)
{
    char key[16];
    char value[24];

    (void)snprintf(value, sizeof value, "%llu", (unsigned long long)round);
    for (unsigned i = 0; i < count; i++) {
        struct mu__store_change body = {.revision = round * 1000 + i, .deleted = deleted};

        if (contract_txn_deletes(round, i) != deleted)
            continue;
        (void)snprintf(key, sizeof key, "t/%u", i);
        body.key = mu__view_str(key);
        body.value = mu__view_str(deleted ? "" : value);
        assert_int_equal(contract_write(h, MU__STORE_CHANGE, &body), 0);
    }
}

static void contract_write_txn(struct contract_holder *h, uint64_t round, unsigned count)
{
    contract_write_txn_keys(h, round, count, false);
    contract_write_txn_keys(h, round, count, true);
    assert_int_equal(contract_write(h, MU__STORE_RESULT,
                                    &(struct mu__store_result){
                                        .agent = 1, .token = round, .done = round}),
                     0);
}

static bool contract_has_txn_result(const struct contract_holder *h, uint64_t round)
{
    for (unsigned i = 0; i < CONTRACT_TOKENS; i++)
        if (h->content.results[0][i].token == round)
            return true;
    return false;
}

/* That the store has a round, and all of it. */
static void contract_expect_txn(const struct contract_holder *h, uint64_t round,
                                unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(h->content.txn[i], contract_txn_deletes(round, i) ? 0 : round);
    assert_true(round == 0 || contract_has_txn_result(h, round));
    assert_false(contract_has_txn_result(h, round + 1));
}

/* The holder is killed a while after each transaction, which may not be safe then: the
 * next one has the whole of it, or nothing, and its result likewise. */
static void contract_txn_rounds(struct contract_state *s, unsigned count)
{
    struct contract_holder *h = contract_begin(s, 0);
    uint64_t last = 0; /* that the store has */
    unsigned cut = 0;  /* before they were safe */

    for (uint64_t round = 1; round <= CONTRACT_TXN_KILLS; round++) {
        bool is_safe;
        bool has_it;

        contract_write_txn(h, round, count);
        contract_commit(h, 1);
        contract_run_ms(s, round * round / 8);
        is_safe = h->committed == 1;
        cut += !is_safe;
        contract_kill(h);
        h = contract_begin(s, 0);
        has_it = h->content.txn[0] == round;
        assert_true(has_it || !is_safe || !s->fixture->kind->lasting);
        last = has_it ? round : s->fixture->kind->lasting ? last : 0;
        contract_expect_txn(h, last, last == 0 ? 0 : count);
    }
    assert_int_equal(last > 0, s->fixture->kind->lasting);
    assert_int_equal(cut > 0 && cut < CONTRACT_TXN_KILLS, s->fixture->kind->shared);
}

LISTED_TEST(contract_store_has_whole_transactions)
{
    contract_txn_rounds(*state, 5);
}

LISTED_TEST(contract_store_has_whole_large_transactions)
{
    contract_txn_rounds(*state, CONTRACT_TXN_KEYS);
}

/* Of one whose end was not written there is nothing, wherever it was cut. */
LISTED_TEST(contract_store_drops_half_a_transaction)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    contract_write_txn(h, 1, CONTRACT_TXN_KEYS);
    contract_commit(h, 1);
    contract_wait_safe(h, 1);
    for (unsigned written = 1; written <= CONTRACT_TXN_KEYS; written *= 2) {
        contract_write_txn_keys(h, 2, written, false);
        contract_write_txn_keys(h, 2, written, true);
        contract_run_ms(s, 100);
        contract_kill(h);
        h = contract_begin(s, 0);
        if (s->fixture->kind->lasting)
            contract_expect_txn(h, 1, CONTRACT_TXN_KEYS);
    }
}

/* An owner that cannot take what it is shown is shown all of it again. */
LISTED_TEST(contract_store_visits_again)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    for (uint64_t batch = 1; batch <= 3; batch++)
        contract_put(h, batch);
    contract_wait_safe(h, 3);
    contract_kill(h);
    contract_run_ms(s, 1);
    h->visits_fail = s->fixture->kind->lasting ? 2 : 0;
    h = contract_begin(s, 0);
    assert_int_equal(h->visits_fail, 0);
    assert_int_equal(h->times_read, s->fixture->kind->lasting ? 3 : 1);
    contract_expect_content(&h->content, contract_expected(s, 3));
}

/* Writing the same few keys again and again asks for a rewrite at times, and with it what
 * counts is the same. */
LISTED_TEST(contract_store_is_rewritten)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    unsigned rewrites = 0;
    uint64_t batch = 0;
    uint64_t sequence = 0;

    if (h->store->ops->needs_rewrite == NULL)
        return;
    while (rewrites < 3 && batch < 60000) {
        struct mu__ctx ctx = contract_ctx(h);

        batch++;
        sequence++;
        contract_make_batch(batch, contract_visit_write, h);
        contract_commit(h, sequence);
        if (!h->store->ops->needs_rewrite(h->store, CONTRACT_KEYS))
            continue;
        rewrites++;
        h->store->ops->rewrite(h->store, &ctx);
        for (uint64_t old = batch < 100 ? 1 : batch - 100; old <= batch; old++)
            contract_make_batch(old, contract_visit_write, h);
        contract_commit(h, ++sequence);
        contract_wait_safe(h, sequence);
        assert_false(h->store->ops->needs_rewrite(h->store, CONTRACT_KEYS));
    }
    assert_int_equal(rewrites, 3);
    contract_make_batch(batch + 1, contract_visit_write, h);
    contract_commit(h, ++sequence);
    contract_wait_safe(h, sequence);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, batch + 1);
    assert_true(h->records < 10000);
}

/* Nothing can be written: the store is lost, with words, and is held again when it can;
 * it has what was safe, and perhaps some of the rest. */
LISTED_TEST(contract_store_is_lost_when_full)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    uint64_t epoch;

    if (s->fixture->set_full == NULL)
        return;
    contract_put(h, 1);
    contract_wait_safe(h, 1);
    epoch = h->epoch;
    s->fixture->set_full(s->place, true);
    contract_put(h, 2);
    contract_run_ms(s, s->fixture->held_ms);
    assert_int_equal(h->times_lost, 1);
    assert_false(h->held);
    assert_false(contract_may_read(h));
    assert_int_equal(h->committed, 1);
    assert_true(strlen(h->reason) > 10);
    s->fixture->set_full(s->place, false);
    contract_hold(h);
    assert_true(h->epoch > epoch);
    assert_true(h->content.batch == 1 || h->content.batch == 2);
    contract_expect_content(&h->content, h->content.batch);
    h->committed = 0;
    contract_put(h, 3);
    contract_wait_safe(h, 3);
}

/* Two tasks stand for it: one has it, and when that one ends, the other does. What the
 * first one does not know to be lost changes nothing any more. */
LISTED_TEST(contract_store_has_one_holder)
{
    struct contract_state *s = *state;
    struct contract_holder *one = contract_begin(s, 0);
    struct contract_holder *two = &s->holders[1];
    uint64_t epoch;

    if (!s->fixture->kind->shared)
        return;
    assert_int_equal(sim_start(two->node), 0);
    contract_put(one, 1);
    contract_wait_safe(one, 1);
    contract_run_ms(s, 2 * s->fixture->held_ms);
    assert_true(one->held && !two->held);
    assert_false(contract_may_read(two));
    epoch = one->epoch;
    contract_kill(one);
    contract_hold(two);
    assert_true(two->epoch > epoch);
    contract_expect_content(&two->content, 1);
    contract_put(two, 2);
    contract_wait_safe(two, 2);
    assert_int_equal(sim_start(one->node), 0);
    contract_run_ms(s, 2 * s->fixture->held_ms);
    assert_true(two->held && !one->held);
    contract_kill(two);
    contract_hold(one);
    contract_expect_content(&one->content, 2);
}

/* Let go on purpose, and the next one need not wait for long. */
LISTED_TEST(contract_store_lets_go)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    contract_put(h, 1);
    contract_wait_safe(h, 1);
    mu__stop(h->kernel, h->pid);
    contract_run_ms(s, CONTRACT_TICK_MS);
    assert_null(h->store);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, contract_expected(s, 1));
}

#endif
