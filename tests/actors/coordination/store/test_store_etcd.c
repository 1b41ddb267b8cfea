/* The store that is etcd, in virtual time: what every store must do; elections, leases,
 * answers that are lost, and former holders that do not know it yet. */
#include "actors/coordination/store/etcd_store.h"
#include "actors/coordination/store/etcd_batch.h"
#include "tests/sim/etcd.h"
#include "tests/support/etcd_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "tests/support/contract_store.h"

enum {
    TTL_MS = 5000,          /* what the contract's holders ask for */
    HELD_MS = 9000,
    FAST_MS = 100           /* an election with nobody in the way: some ten requests */
};

#define PREFIX "/muster/contract"

/* ---- The place ---- */

struct place {
    struct sim *sim;
    struct sim_etcd *etcd;
    bool visits_any;        /* records that the contract does not know, too */
    struct {
        struct sim_node *node;
        struct mu__http *door;
    } doors[CONTRACT_NODES];
};

static void *place_open(struct sim *sim, uint64_t seed)
{
    struct place *place = calloc(1, sizeof *place);

    assert_non_null(place);
    place->sim = sim;
    place->etcd = sim_etcd_new(sim, seed);
    return place;
}

static void place_close(void *arg)
{
    struct place *place = arg;

    sim_etcd_free(place->etcd);
    free(place);
}

static int visit_any(void *owner, struct mu__msg *record)
{
    struct contract_holder *h = owner;

    assert_int_equal(record->kind, MU__STORE_CHANGE);
    h->records++;
    return 0;
}

static void place_begin(void *arg, struct sim_node *node, struct mu__kernel *kernel,
                        struct mu__store_config *config)
{
    struct place *place = arg;
    unsigned i = 0;

    (void)kernel;
    while (place->doors[i].node != NULL && place->doors[i].node != node)
        i++;
    assert_true(i < CONTRACT_NODES);
    place->doors[i].node = node;
    place->doors[i].door = sim_etcd_door(place->etcd, node);
    config->location = SIM_ETCD_PLACE;
    config->http = place->doors[i].door;
    if (place->visits_any)
        config->up.visit = visit_any;
}

static void place_end(void *arg, struct sim_node *node)
{
    struct place *place = arg;

    for (unsigned i = 0; i < CONTRACT_NODES; i++)
        if (place->doors[i].node == node)
            sim_etcd_door_end(place->doors[i].door);
}

static void place_set_full(void *arg, bool full)
{
    struct place *place = arg;

    etcd_data_set_full(sim_etcd_data(place->etcd), full);
}

static const struct contract_store fixture = {
    .kind = &mu__store_etcd,
    .open = place_open,
    .close = place_close,
    .begin = place_begin,
    .end = place_end,
    .set_full = place_set_full,
    .held_ms = HELD_MS,
    .safe_ms = 2000,
    .seeds = 10,
};

/* ---- What stories are told with ---- */

static struct sim_etcd *etcd_of(struct contract_state *s)
{
    return ((struct place *)s->place)->etcd;
}

static struct etcd_data *data_of(struct contract_state *s)
{
    return sim_etcd_data(etcd_of(s));
}

static struct contract_holder *begin_other(struct contract_state *s)
{
    assert_int_equal(sim_start(s->holders[1].node), 0);
    return &s->holders[1];
}

static void put_safe(struct contract_holder *h, uint64_t batch)
{
    contract_put(h, batch);
    contract_wait_safe(h, batch);
}

static void expect_key(struct contract_state *s, const char *key, const char *text)
{
    size_t size = 0;
    const char *value = etcd_data_value(data_of(s), key, &size);

    if (text == NULL) {
        assert_null(value);
        return;
    }
    assert_non_null(value);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(value, text, size);
}

static bool begins_with(struct contract_state *s, const char *key, const char *text)
{
    size_t size = 0;
    const char *value = etcd_data_value(data_of(s), key, &size);

    return value != NULL && size >= strlen(text) &&
           memcmp(value, text, strlen(text)) == 0;
}

static unsigned count_lines(const char *trace, const char *words)
{
    unsigned count = 0;

    for (const char *at = strstr(trace, words); at != NULL; at = strstr(at + 1, words))
        count++;
    return count;
}

static void spoil(struct contract_state *s, const char *ask)
{
    int status = 0;
    char *text = etcd_data_ask(data_of(s), "/v3/kv/txn", ask, strlen(ask), &status);

    assert_int_equal(status, 200);
    free(text);
}

/* ---- The etcd of the simulator answers as a real one did ---- */

static void test_rows(void **state)
{
    struct etcd_data *data = etcd_data_new();

    (void)state;
    for (size_t i = 0; i < ETCD_ROWS; i++) {
        int status = 0;
        char *text = etcd_data_ask(data, etcd_rows[i].path, etcd_rows[i].ask,
                                   strlen(etcd_rows[i].ask), &status);
        cJSON *answer = cJSON_Parse(text);
        cJSON *wanted = cJSON_Parse(etcd_rows[i].answer);

        if (status != etcd_rows[i].status ||
            (wanted != NULL && !cJSON_Compare(answer, wanted, 1)))
            fail_msg("row %zu: %s\nanswered %d %s\nexpected %d %s", i, etcd_rows[i].ask,
                     status, text, etcd_rows[i].status, etcd_rows[i].answer);
        cJSON_Delete(answer);
        cJSON_Delete(wanted);
        free(text);
    }
    etcd_data_free(data);
}

/* ---- Places ---- */

static void test_places(void **state)
{
    static const struct {
        const char *place;
        const char *words;      /* NULL: it is fine */
    } rows[] = {
        {"http://h:2379", NULL},
        {"https://h", NULL},
        {"http://h:2379/", NULL},
        {"http://h:2379/a/b,http://[::1]:2379", NULL},
        {"", "begin with http://"},
        {"h:2379", "begin with http://"},
        {"ftp://h:2379", "begin with http://"},
        {"http://", "no host"},
        {"http:///a", "no host"},
        {"http://:2379", "no host"},
        {"http://h:2379,", "begin with http://"},
        {"http://h:2379,,http://i", "begin with http://"},
        {"http://user:secret@h", "more than scheme"},
        {"http://h?a", "more than scheme"},
        {"http://h#a", "more than scheme"},
        {"http://h b", "a character"},
        {"http://h\x01", "a character"},
        {"http://h\xc3\xa4", "a character"},
    };
    struct mu__http http = {NULL};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mu__store_config config = {.location = rows[i].place,
                                                .cluster_name = "a/b%",
                                                .task = "t",
                                                .http = &http};
        struct mu__store *store = NULL;
        mu_error error = {.message = ""};
        int rv = mu__store_etcd.open(&config, &error, &store);

        assert_int_equal(rv, rows[i].words == NULL ? 0 : -MU_EINVALID);
        assert_int_equal(store == NULL, rv != 0);
        if (rv != 0 && strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s", error.message);
        if (rv == 0)
            store->ops->close(store, NULL);
    }
}

static void test_place_bounds(void **state)
{
    char text[20 * 20] = "";
    char url[400];
    struct mu__http http = {NULL};
    struct mu__store_config config = {
        .location = text, .cluster_name = "c", .task = "t", .http = &http};
    struct mu__store *store = NULL;
    mu_error error;

    (void)state;
    for (int i = 0; i < 17; i++)
        strncat(text, i == 0 ? "http://h" : ",http://h", 10);
    assert_int_equal(mu__store_etcd.open(&config, &error, &store), -MU_EINVALID);
    assert_non_null(strstr(error.message, "too many"));
    memset(url, 'h', sizeof url);
    memcpy(url, "http://", 7);
    url[sizeof url - 1] = '\0';
    config.location = url;
    assert_int_equal(mu__store_etcd.open(&config, &error, &store), -MU_EINVALID);
    assert_non_null(strstr(error.message, "too long"));
    config.location = "http://h";
    config.http = NULL;
    assert_int_equal(mu__store_etcd.open(&config, &error, &store), -MU_EINVALID);
    assert_non_null(strstr(error.message, "no door"));
}

/* ---- Stories ---- */

/* What stands in etcd for those who look. */
static void test_keys(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    assert_true(sim_now_ms(s->sim) < FAST_MS);
    assert_true(begins_with(s, PREFIX "/leader", "chief/0 "));
    put_safe(h, 1);
    put_safe(h, 2);
    assert_int_equal(etcd_data_count(data_of(s), PREFIX "/keys/k/0"), 1);
    assert_int_equal(etcd_data_count(data_of(s), PREFIX "/results/"), 2);
    assert_int_equal(etcd_data_count(data_of(s), PREFIX "/staged/"), 0);
    expect_key(s, PREFIX "/meta/staged", NULL);
    mu__stop(h->kernel, h->pid);
    contract_run_ms(s, CONTRACT_TICK_MS);
    expect_key(s, PREFIX "/leader", NULL);
}

/* A holder that dies is replaced when its lease has ended; one that lets go, at once. */
static void test_replaced(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *one = contract_begin(s, 0);
    struct contract_holder *two = begin_other(s);
    uint64_t before_ms;

    put_safe(one, 1);
    contract_run_ms(s, 10000);
    assert_true(one->held && !two->held);
    before_ms = sim_now_ms(s->sim);
    contract_kill(one);
    contract_hold(two);
    assert_in_range(sim_now_ms(s->sim) - before_ms, TTL_MS * 2 / 3 - 100,
                    TTL_MS + TTL_MS / 4 + FAST_MS);
    contract_expect_content(&two->content, 1);

    assert_int_equal(sim_start(one->node), 0);
    contract_run_ms(s, 3000);
    before_ms = sim_now_ms(s->sim);
    mu__stop(two->kernel, two->pid);
    contract_hold(one);
    assert_true(sim_now_ms(s->sim) - before_ms <= TTL_MS / 4 + FAST_MS);
    contract_expect_content(&one->content, 1);
}

/* Longer than its lease: another one has it meanwhile, and what the first one writes when
 * it goes on changes nothing. */
static void test_paused_holder(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *one = contract_begin(s, 0);
    struct contract_holder *two = begin_other(s);

    put_safe(one, 1);
    sim_pause(one->node, 20000);
    contract_run_ms(s, 1);
    contract_put(one, 2);       /* it was just about to send this */
    contract_hold(two);
    contract_expect_content(&two->content, two->content.batch);
    put_safe(two, two->content.batch + 1);
    assert_true(one->held);
    assert_false(contract_may_read(one));
    contract_put(one, 7);       /* and does not know yet */
    contract_put(one, 8);
    sim_resume(one->node);
    contract_run_ms(s, 1000);
    assert_false(one->held);
    assert_int_equal(one->times_lost, 1);
    assert_true(one->committed < 7);
    assert_true(two->held);
    put_safe(two, two->committed + 1);
    contract_kill(two);
    contract_hold(one);
    contract_expect_content(&one->content, two->committed);
}

/* That the other one has written as often as this one makes no difference. */
static void test_paused_holder_of_the_same_version(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *one = contract_begin(s, 0);
    struct contract_holder *two = begin_other(s);

    put_safe(one, 1);
    sim_pause(one->node, 20000);
    contract_hold(two);
    put_safe(two, 2);
    contract_put(one, 7);
    sim_resume(one->node);
    contract_run_ms(s, 1000);
    assert_int_equal(one->committed, 1);
    assert_int_equal(one->times_lost, 1);
    contract_kill(two);
    contract_hold(one);
    contract_expect_content(&one->content, 2);
}

/* Somebody else has written the leader's key: whatever that means, it is not ours. */
static void test_leader_key_overwritten(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    put_safe(h, 1);
    spoil(s, "{\"success\":[{\"request_put\":{\"key\":"
             "\"L211c3Rlci9jb250cmFjdC9sZWFkZXI=\",\"value\":\"YWJj\"}}]}");
    contract_put(h, 2);
    contract_run_ms(s, 100);
    assert_int_equal(h->committed, 1);
    assert_int_equal(h->times_lost, 1);
    assert_non_null(strstr(h->reason, "is now of \"abc\""));
}

/* And when somebody has deleted it, so that another one holds the store: our lease holds
 * still, and that one may have written as often as we have. */
static void test_leader_key_deleted(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *one = contract_begin(s, 0);
    struct contract_holder *two = begin_other(s);

    put_safe(one, 1);
    spoil(s, "{\"success\":[{\"request_delete_range\":{\"key\":"
             "\"L211c3Rlci9jb250cmFjdC9sZWFkZXI=\"}}]}");
    contract_hold(two);
    put_safe(two, 2);
    contract_put(one, 7);
    contract_run_ms(s, 100);
    assert_int_equal(one->committed, 1);
    assert_int_equal(one->times_lost, 1);
    contract_kill(two);
    contract_hold(one);
    contract_expect_content(&one->content, 2);
}

/* What counts is when the request was sent that kept the lease, not when its answer
 * came. */
static void test_slow_answers(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    contract_run_ms(s, 1000);
    sim_etcd_settings(etcd_of(s))->way = (struct sim_range){600000, 600000};
    contract_run_ms(s, 2500);
    sim_etcd_settings(etcd_of(s))->lose_percent = 100;
    while (begins_with(s, PREFIX "/leader", "chief/0"))
        contract_run_ms(s, 1);
    assert_false(contract_may_read(h));
}

/* The answer that says it is elected is lost: it asks again, and sees that it is. */
static void test_election_answer_lost(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = &s->holders[0];

    assert_int_equal(sim_start(h->node), 0);
    contract_run_ms(s, 7);
    sim_etcd_settings(etcd_of(s))->lose_answer_percent = 100;
    contract_run_ms(s, 4);
    sim_etcd_settings(etcd_of(s))->lose_answer_percent = 0;
    assert_true(begins_with(s, PREFIX "/leader", "chief/0"));
    contract_run_ms(s, 150);
    assert_true(h->held);
}

/* It may not answer from its memory when its lease may have ended, and it has lost the
 * store when it has. */
static void test_etcd_away(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    uint64_t epoch = h->epoch;
    const char *trace;

    put_safe(h, 1);
    contract_run_ms(s, 10000);
    (void)sim_trace(s->sim);
    sim_etcd_set_away(etcd_of(s), true);
    contract_run_ms(s, 2000);
    assert_true(h->held && contract_may_read(h));
    contract_put(h, 2);
    contract_run_ms(s, TTL_MS);
    assert_false(h->held);
    assert_false(contract_may_read(h));
    assert_non_null(strstr(h->reason, "could not be kept for 5000 ms: etcd at http://"));
    contract_run_ms(s, 60000);
    trace = sim_trace(s->sim);
    assert_int_equal(count_lines(trace, "it is tried again"), SIM_ETCD_ENDPOINTS);
    assert_int_equal(count_lines(trace, "has lost /muster/contract"), 1);
    assert_int_equal(count_lines(trace, "\n"), SIM_ETCD_ENDPOINTS + 1);
    sim_etcd_set_away(etcd_of(s), false);
    contract_hold(h);
    assert_non_null(strstr(sim_trace(s->sim), "answers again"));
    assert_true(h->epoch > epoch);
    assert_true(h->content.batch == 1 || h->content.batch == 2);
    contract_expect_content(&h->content, h->content.batch);
}

/* For less than the lease: nobody notices, but for what had to wait. */
static void test_etcd_away_for_a_moment(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    put_safe(h, 1);
    sim_etcd_set_away(etcd_of(s), true);
    contract_put(h, 2);
    contract_run_ms(s, 2000);
    assert_int_equal(h->committed, 1);
    sim_etcd_set_away(etcd_of(s), false);
    contract_wait_safe(h, 2);
    assert_int_equal(h->times_held, 1);
    assert_true(contract_may_read(h));
}

static void test_endpoints_in_turn(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h;

    sim_etcd_set_down(etcd_of(s), 0, true);
    h = contract_begin(s, 0);
    put_safe(h, 1);
    sim_etcd_set_down(etcd_of(s), 0, false);
    for (uint64_t batch = 2; batch < 8; batch++) {
        unsigned endpoint = (unsigned)batch % SIM_ETCD_ENDPOINTS;

        sim_etcd_set_down(etcd_of(s), endpoint, true);
        put_safe(h, batch);
        sim_etcd_set_down(etcd_of(s), endpoint, false);
    }
    assert_int_equal(h->times_held, 1);
}

/* Half of all answers are lost: what was done counts once. */
static void test_lost_answers(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    sim_etcd_settings(etcd_of(s))->lose_answer_percent = 50;
    for (uint64_t batch = 1; batch <= 30; batch++) {
        contract_put(h, batch);
        contract_run_ms(s, 5);
    }
    contract_run_ms(s, 30000);
    assert_int_equal(h->committed, 30);
    assert_int_equal(h->times_held, 1);
    contract_kill(h);
    sim_etcd_settings(etcd_of(s))->lose_answer_percent = 0;
    contract_expect_content(&contract_begin(s, 0)->content, 30);
}

/* A transaction that arrives after the one that was sent again, and after others, does
 * nothing. */
static void test_late_requests(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    sim_etcd_settings(etcd_of(s))->late_percent = 30;
    sim_etcd_settings(etcd_of(s))->late = (struct sim_range){1800000, 9000000};
    for (uint64_t batch = 1; batch <= 20; batch++) {
        contract_put(h, batch);
        contract_run_ms(s, 20);
    }
    contract_run_ms(s, 60000);
    sim_etcd_settings(etcd_of(s))->late_percent = 0;
    contract_run_ms(s, 20000);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, h->content.batch);
    assert_true(h->content.batch >= h->committed);
}

/* What is committed while a transaction is under way goes together into the next. */
static void test_group_commit(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    uint64_t before = sim_etcd_requests(etcd_of(s));

    for (uint64_t batch = 1; batch <= 20; batch++)
        contract_put(h, batch);
    contract_wait_safe(h, 20);
#ifndef MUSTER_TINY
    assert_int_equal(sim_etcd_requests(etcd_of(s)) - before, 2);
#else
    assert_int_equal(sim_etcd_requests(etcd_of(s)) - before, 20); /* none fits */
#endif
}

/* ---- Large batches ---- */

#ifdef MUSTER_TINY
enum { LARGE_KEYS = 400, LARGE_MS = 720 };
#else
enum { LARGE_KEYS = 400, LARGE_MS = 60 };    /* which it takes in all, about */
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
static void test_large_batch_is_whole(void **state)
{
    unsigned seen[3] = {0};

    (void)state;
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
static void test_large_batch_with_losses(void **state)
{
    (void)state;
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
static void test_huge_batch(void **state)
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
static void test_too_much_waits(void **state)
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

static void test_many_pages(void **state)
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
static void test_last_deleted(void **state)
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
static void test_results_are_forgotten(void **state)
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
static void test_spoilt(void **state)
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

    (void)state;
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
    uint64_t safe;              /* the last batch that was told safe to anybody */
    uint64_t epoch;             /* the highest */
    unsigned held[CONTRACT_NODES];      /* times that were looked at */
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
static void test_paused_while_it_begins(void **state)
{
    (void)state;
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

static void test_seeds(void **state)
{
    uint64_t first;
    uint64_t end;
    unsigned holds = 0;

    (void)state;
    sim_seeds(60, &first, &end);
    for (uint64_t seed = first; seed < end; seed++)
        holds += run_seed(seed);
    assert_true(holds >= 2 * (end - first));
}

int main(void)
{
#define STORY(name) CONTRACT_STORE_TEST(name)
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_place_bounds),
        cmocka_unit_test(test_large_batch_is_whole),
        cmocka_unit_test(test_large_batch_with_losses),
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_paused_while_it_begins),
        cmocka_unit_test(test_seeds),
    };
    static const struct CMUnitTest stories[] = {
        STORY(test_keys),
        STORY(test_replaced),
        STORY(test_paused_holder),
        STORY(test_paused_holder_of_the_same_version),
        STORY(test_leader_key_overwritten),
        STORY(test_leader_key_deleted),
        STORY(test_slow_answers),
        STORY(test_election_answer_lost),
        STORY(test_etcd_away),
        STORY(test_etcd_away_for_a_moment),
        STORY(test_endpoints_in_turn),
        STORY(test_lost_answers),
        STORY(test_late_requests),
        STORY(test_group_commit),
        STORY(test_huge_batch),
        STORY(test_too_much_waits),
        STORY(test_many_pages),
        STORY(test_last_deleted),
        STORY(test_results_are_forgotten),
    };
    int failed = contract_store_run("etcd", &fixture);

    failed += cmocka_run_group_tests(stories, NULL, NULL);
    return failed + cmocka_run_group_tests(plain, NULL, NULL);
}
