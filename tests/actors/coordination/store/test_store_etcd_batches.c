/* The etcd store: large batches, many entries, foreign content, seeds. */
#include "tests/support/store_etcd.h"
#include "tests/support/test.h"

#include <cjson/cJSON.h>

/* ---- Large batches ---- */

#ifdef MUSTER_TINY
enum { LARGE_KEYS = 400, LARGE_MS = 720 };
#else
enum { LARGE_KEYS = 400, LARGE_MS = 60 }; /* which it takes in all, about */
#endif

/* Every key has the batch's number. */
static void write_large(struct contract_holder *h, uint64_t number, unsigned keys)
{
    for (unsigned i = 0; i < keys; i++) {
        char key[16];
        char value[16];
        struct mu__store_change change = {.revision = number};

        (void)snprintf(key, sizeof key, "k/1%u", i);
        (void)snprintf(value, sizeof value, "%llu", (unsigned long long)number);
        change.key = mu__view_str(key);
        change.value = mu__view_str(value);
        change.deleted = i % 10 == number % 10;
        assert_int_equal(contract_write(h, MU__STORE_CHANGE, &change), 0);
    }
}

/* The number that all keys have; fails when they do not agree. Reads what is in etcd. */
static uint64_t large_number(struct contract_state *s)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < LARGE_KEYS; i++) {
        char key[64];
        size_t size = 0;
        const char *packed;
        unsigned digit;

        (void)snprintf(key, sizeof key, PREFIX "/keys/k/1%u", i);
        packed = etcd_data_value(data_of(s), key, &size);
        if (packed == NULL)
            continue;
        digit = (unsigned)(packed[size - 1] - '0');
        if (number == 0)
            number = digit;
        assert_int_equal(digit, number);
        assert_true(i % 10 != number % 10);
    }
    return number;
}

/* The holder dies at any moment of a batch that needs many transactions: the next one
 * finds all of it or nothing, and all of it when it was told safe. */
LISTED_TEST(test_large_batch_is_whole)
{
    unsigned seen[3] = {0};

    for (uint64_t ms = 0; ms < LARGE_MS; ms += LARGE_MS / 30) {
        struct contract_state *s = contract_store_open(&fixture, ms);
        struct contract_holder *h;
        uint64_t committed;
        uint64_t number;

        ((struct place *)s->place)->visits_any = true;
        h = contract_begin(s, 0);
        write_large(h, 1, LARGE_KEYS);
        contract_commit(h, 1);
        contract_wait_safe(h, 1);
        contract_run_ms(s, 1000);
        assert_int_equal(large_number(s), 1);
        write_large(h, 2, LARGE_KEYS);
        contract_commit(h, 2);
        contract_run_ms(s, ms);
        committed = h->committed;
        contract_kill(h);
        h = contract_begin(s, 0);
        number = large_number(s);
        assert_true(number >= committed);
        assert_int_equal(etcd_data_count(data_of(s), PREFIX "/staged/"), 0);
        expect_key(s, PREFIX "/meta/staged", NULL);
        assert_int_equal(h->records, LARGE_KEYS * 9 / 10 + 1);
        seen[number]++;
        contract_store_close(s);
    }
    assert_true(seen[1] > 0 && seen[2] > 0);
}

/* The same when requests are lost. */
LISTED_TEST(test_large_batch_with_losses)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct contract_state *s = contract_store_open(&fixture, seed);
        struct contract_holder *h;
        uint64_t committed;

        ((struct place *)s->place)->visits_any = true;
        h = contract_begin(s, 0);
        sim_etcd_settings(etcd_of(s))->lose_percent = 15;
        write_large(h, 1, LARGE_KEYS);
        contract_commit(h, 1);
        contract_run_ms(s, seed * 100);
        committed = h->committed;
        contract_kill(h);
        sim_etcd_settings(etcd_of(s))->lose_percent = 0;
        (void)contract_begin(s, 0);
        assert_true(large_number(s) >= committed);
        contract_store_close(s);
    }
}

/* Values of the largest size, more than any request may have, in one batch. */
LISTED_TEST(test_huge_batch)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    static uint8_t value[MU__KEY_VALUE_MAX];

    for (unsigned i = 0; i < 5; i++) {
        char key[16];
        struct mu__store_change change = {.revision = i + 1,
                                          .value = {value, sizeof value}};

        (void)snprintf(key, sizeof key, "large%u", i);
        change.key = mu__view_str(key);
        assert_int_equal(contract_write(h, MU__STORE_CHANGE, &change), 0);
        if (i == 0)
            contract_make_batch(1, contract_visit_write, h);
    }
    contract_commit(h, 1);
    contract_wait_safe(h, 1);
    contract_kill(h);
    h = contract_begin(s, 0);
    assert_int_equal(h->extras, 5);
    contract_expect_content(&h->content, 1);
}

/* More than may wait: the batch is void, and the store is lost. */
LISTED_TEST(test_too_much_waits)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    static uint8_t value[MU__KEY_VALUE_MAX];
    struct mu__store_change change = {.revision = 1, .value = {value, sizeof value}};
    unsigned taken = 0;
    int rv = 0;

    sim_etcd_set_away(etcd_of(s), true);
    while (rv == 0 && taken < 100) {
        char key[16];

        (void)snprintf(key, sizeof key, "k%u", taken++);
        change.key = mu__view_str(key);
        rv = contract_write(h, MU__STORE_CHANGE, &change);
        contract_commit(h, taken);
    }
    assert_int_equal(rv, -MU_EEXHAUSTED);
    assert_in_range(taken, 60, 70);
    assert_true(h->held);
    contract_run_ms(s, CONTRACT_TICK_MS);
    assert_false(h->held);
    assert_non_null(strstr(h->reason, "too slow"));
}

/* ---- Many entries ---- */

LISTED_TEST(test_many_pages)
{
    struct contract_state *s = *state;
    struct contract_holder *h;

    ((struct place *)s->place)->visits_any = true;
    h = contract_begin(s, 0);
    write_large(h, 1, LARGE_KEYS);
    contract_commit(h, 1);
    contract_wait_safe(h, 1);
    contract_run_ms(s, 1000);
    contract_kill(h);
    h = contract_begin(s, 0);
    assert_int_equal(h->records, LARGE_KEYS * 9 / 10 + 1);
}

/* The revision of what was deleted last is not forgotten. */
LISTED_TEST(test_last_deleted)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    struct mu__store_change change = {.revision = 900, .key = {"gone", 4}};
    const struct mu__store_change *found;

    assert_int_equal(contract_write(h, MU__STORE_CHANGE, &change), 0);
    contract_commit(h, 1);
    change.revision = 901;
    change.deleted = true;
    assert_int_equal(contract_write(h, MU__STORE_CHANGE, &change), 0);
    contract_commit(h, 2);
    contract_wait_safe(h, 2);
    contract_kill(h);
    h = contract_begin(s, 0);
    found = contract_find_extra(h, change.key);
    assert_non_null(found);
    assert_true(found->deleted);
    assert_int_equal(found->revision, 901);
    assert_int_equal(h->records, 1);
}

/* What an agent is done with is deleted, and so is what it has no results of. */
LISTED_TEST(test_results_are_forgotten)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    struct mu__store_result result = {.agent = 1};

    for (uint64_t token = 1; token <= 1000; token++) {
        result.token = token;
        assert_int_equal(contract_write(h, MU__STORE_RESULT, &result), 0);
    }
    contract_commit(h, 1);
    contract_wait_safe(h, 1);
    assert_int_equal(etcd_data_count(data_of(s), PREFIX "/results/"), 4);
    result.token = 1001;
    result.done = 900;
    assert_int_equal(contract_write(h, MU__STORE_RESULT, &result), 0);
    contract_commit(h, 2);
    contract_wait_safe(h, 2);
    assert_int_equal(etcd_data_count(data_of(s), PREFIX "/results/"), 1);
    result.token = 0;
    result.done = UINT64_MAX;
    assert_int_equal(contract_write(h, MU__STORE_RESULT, &result), 0);
    contract_commit(h, 3);
    contract_wait_safe(h, 3);
    assert_int_equal(etcd_data_count(data_of(s), PREFIX "/results/"), 0);
}

/* ---- What is in etcd and should not be ---- */

/* Bytes that are no record: words, again and again no holder, no crash. */
LISTED_TEST(test_spoilt)
{
    static const struct {
        const char *ask;
        const char *words;
    } rows[] = {
        {"{\"success\":[{\"request_put\":{\"key\":"
         "\"L211c3Rlci9jb250cmFjdC9rZXlzL2E=\",\"value\":\"AAAA\"}}]}",
         "a record below /muster/contract/keys/ cannot be read"},
        {"{\"success\":[{\"request_put\":{\"key\":"
         "\"L211c3Rlci9jb250cmFjdC9tZXRhL3N0YWdlZA==\",\"value\":\"Nw==\"}}]}",
         "has 0 changes, and /muster/contract/meta/staged says 7"},
        {"{\"success\":[{\"request_put\":{\"key\":"
         "\"L211c3Rlci9jb250cmFjdC9tZXRhL251bWJlcg==\",\"value\":\"YWJj\"}}]}",
         "/muster/contract/meta/number is no number"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct contract_state *s = contract_store_open(&fixture, 1);
        const char *trace;

        spoil(s, rows[i].ask);
        assert_int_equal(sim_start(s->holders[0].node), 0);
        contract_run_ms(s, 30000);
        assert_false(s->holders[0].held);
        trace = sim_trace(s->sim);
        if (strstr(trace, rows[i].words) == NULL)
            fail_msg("expected %s in\n%s", rows[i].words, trace);
        contract_store_close(s);
    }
}

/* ---- Seeds ---- */

struct chaos {
    struct contract_state *s;
    struct sim_random random;
    uint64_t safe;                 /* the last batch that was told safe to anybody */
    uint64_t epoch;                /* the highest */
    unsigned held[CONTRACT_NODES]; /* times that were looked at */
    uint64_t next[CONTRACT_NODES];
    unsigned holds;
};

/* After each event: whoever has come to hold the store has all that was safe, and is the
 * only one that may answer from its memory. */
static void check(struct sim *sim, void *arg)
{
    struct chaos *c = arg;
    unsigned may_read = 0;

    (void)sim;
    for (unsigned i = 0; i < CONTRACT_NODES; i++) {
        struct contract_holder *h = &c->s->holders[i];

        if (!sim_alive(h->node) || h->store == NULL)
            continue;
        may_read += contract_may_read(h);
        if (h->held && h->times_held != c->held[i]) {
            c->held[i] = h->times_held;
            c->holds++;
            assert_true(h->epoch > c->epoch);
            c->epoch = h->epoch;
            assert_true(h->content.batch >= c->safe);
            contract_expect_content(&h->content, h->content.batch);
            c->next[i] = h->content.batch + 1;
            h->committed = 0;
        }
        if (h->held && h->committed > c->safe)
            c->safe = h->committed;
    }
    assert_true(may_read <= 1);
}

/* A process that stands still while it comes to hold the store, at any moment. */
LISTED_TEST(test_paused_while_it_begins)
{
    for (uint64_t ms = 1; ms < 40; ms++) {
        struct chaos c = {.s = contract_store_open(&fixture, ms)};
        struct contract_state *s = c.s;
        struct contract_holder *one = contract_begin(s, 0);
        struct contract_holder *two = &s->holders[1];

        put_safe(one, 1);
        mu__stop(one->kernel, one->pid);
        contract_run_ms(s, CONTRACT_TICK_MS);
        c.held[0] = one->times_held;
        sim_set_check(s->sim, check, &c);
        assert_int_equal(sim_restart(one->node), 0);
        c.held[0] = 0;
        contract_run_ms(s, ms);
        sim_pause(one->node, 20000);
        assert_int_equal(sim_start(two->node), 0);
        contract_hold(two);
        put_safe(two, 2);
        sim_resume(one->node);
        contract_run_ms(s, 3000);
        assert_true(!one->held && two->held);
        sim_set_check(s->sim, NULL, NULL);
        contract_store_close(s);
    }
}

static void something_happens(struct chaos *c)
{
    struct contract_state *s = c->s;
    unsigned i = (unsigned)sim_between(&c->random, 0, CONTRACT_NODES - 1);
    struct sim_node *node = s->holders[i].node;
    uint64_t what = sim_between(&c->random, 0, 99);

    if (what < 4) {
        c->held[i] = 0;
        assert_int_equal(sim_restart(node), 0);
    } else if (what < 8) {
        sim_pause(node, sim_between(&c->random, 1, 15000));
    } else if (what < 11) {
        sim_etcd_set_away(etcd_of(s), true);
        contract_run_ms(s, sim_between(&c->random, 1, 12000));
        sim_etcd_set_away(etcd_of(s), false);
    } else if (what < 15) {
        sim_etcd_set_down(etcd_of(s), (unsigned)what % SIM_ETCD_ENDPOINTS,
                          sim_chance(&c->random, 50));
    }
}

static void batches_are_put(struct chaos *c)
{
    for (unsigned i = 0; i < CONTRACT_NODES; i++) {
        struct contract_holder *h = &c->s->holders[i];
        uint64_t count = sim_between(&c->random, 0, 5);

        if (!sim_alive(h->node) || h->store == NULL || !h->held ||
            c->held[i] != h->times_held)
            continue;
        for (uint64_t k = 0; k < count; k++)
            contract_put(h, c->next[i]++);
    }
}

static void nasty(struct chaos *c)
{
    struct sim_etcd_settings *settings = sim_etcd_settings(etcd_of(c->s));

    settings->way = (struct sim_range){500, sim_between(&c->random, 500, 40000)};
    settings->lose_percent = (unsigned)sim_between(&c->random, 0, 15);
    settings->lose_answer_percent = (unsigned)sim_between(&c->random, 0, 15);
    settings->late_percent = (unsigned)sim_between(&c->random, 0, 10);
    settings->late = (struct sim_range){100000, 12000000};
}

static void calm(struct chaos *c)
{
    struct sim_etcd_settings *settings = sim_etcd_settings(etcd_of(c->s));

    *settings = (struct sim_etcd_settings){.way = {1000, 2000}};
    for (unsigned i = 0; i < SIM_ETCD_ENDPOINTS; i++)
        sim_etcd_set_down(etcd_of(c->s), i, false);
    sim_heal(c->s->sim);
}

static unsigned run_seed(uint64_t seed)
{
    struct chaos c = {.s = contract_store_open(&fixture, seed),
                      .random = sim_stream(seed, 99)};
    unsigned batches = 0;

    sim_set_check(c.s->sim, check, &c);
    nasty(&c);
    for (unsigned i = 0; i < CONTRACT_NODES; i++)
        assert_int_equal(sim_start(c.s->holders[i].node), 0);
    for (unsigned step = 0; step < 150; step++) {
        something_happens(&c);
        batches_are_put(&c);
        contract_run_ms(c.s, sim_between(&c.random, 0, 700));
    }
    calm(&c);
    contract_run_ms(c.s, 40000);
    for (unsigned i = 0; i < CONTRACT_NODES; i++)
        batches += c.s->holders[i].held;
    assert_int_equal(batches, 1);
    sim_set_check(c.s->sim, NULL, NULL);
    contract_store_close(c.s);
    return c.holds;
}

LISTED_TEST(test_seeds)
{
    uint64_t first;
    uint64_t end;
    unsigned holds = 0;

    sim_seeds(60, &first, &end);
    for (uint64_t seed = first; seed < end; seed++)
        holds += run_seed(seed);
    assert_true(holds >= 2 * (end - first));
}

int main(void)
{
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(test_large_batch_is_whole),
        cmocka_unit_test(test_large_batch_with_losses),
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_paused_while_it_begins),
        cmocka_unit_test(test_seeds),
    };
    static const struct CMUnitTest stories[] = {
        CONTRACT_STORE_TEST(test_huge_batch),
        CONTRACT_STORE_TEST(test_too_much_waits),
        CONTRACT_STORE_TEST(test_many_pages),
        CONTRACT_STORE_TEST(test_last_deleted),
        CONTRACT_STORE_TEST(test_results_are_forgotten),
    };
    int failed;

    contract_store_fixture = &fixture;
    failed = cmocka_run_group_tests(stories, NULL, NULL);
    return failed + cmocka_run_group_tests(plain, NULL, NULL);
}
