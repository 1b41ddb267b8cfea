/* The store that is etcd, in virtual time: what every store must do; elections, leases,
 * answers that are lost, and former holders that do not know it yet. */
#include "tests/support/store_etcd.h"
#include "tests/support/test.h"

#include <cjson/cJSON.h>

/* ---- What stories are told with ---- */

static struct contract_holder *begin_other(struct contract_state *s)
{
    assert_int_equal(sim_start(s->holders[1].node), 0);
    return &s->holders[1];
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

/* ---- The etcd of the simulator answers as a real one did ---- */

LISTED_TEST(test_rows)
{
    struct etcd_data *data = etcd_data_new();

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

LISTED_TEST(test_places)
{
    static const struct {
        const char *place;
        const char *words; /* NULL: it is fine */
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

LISTED_TEST(test_place_bounds)
{
    char text[20 * 20] = "";
    char url[400];
    struct mu__http http = {NULL};
    struct mu__store_config config = {
        .location = text, .cluster_name = "c", .task = "t", .http = &http};
    struct mu__store *store = NULL;
    mu_error error;

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
    assert_non_null(strstr(error.message, "needs HTTP"));
}

/* ---- Stories ---- */

/* What stands in etcd for those who look. */
LISTED_TEST(test_keys)
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
LISTED_TEST(test_replaced)
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
LISTED_TEST(test_paused_holder)
{
    struct contract_state *s = *state;
    struct contract_holder *one = contract_begin(s, 0);
    struct contract_holder *two = begin_other(s);

    put_safe(one, 1);
    sim_pause(one->node, 20000);
    contract_run_ms(s, 1);
    contract_put(one, 2); /* it was just about to send this */
    contract_hold(two);
    contract_expect_content(&two->content, two->content.batch);
    put_safe(two, two->content.batch + 1);
    assert_true(one->held);
    assert_false(contract_may_read(one));
    contract_put(one, 7); /* and does not know yet */
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
LISTED_TEST(test_paused_holder_of_the_same_version)
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
LISTED_TEST(test_leader_key_overwritten)
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
LISTED_TEST(test_leader_key_deleted)
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
LISTED_TEST(test_slow_answers)
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
LISTED_TEST(test_election_answer_lost)
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
LISTED_TEST(test_etcd_away)
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
LISTED_TEST(test_etcd_away_for_a_moment)
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

LISTED_TEST(test_endpoints_in_turn)
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

static void put_some(struct contract_holder *h, uint64_t first, uint64_t end)
{
    for (uint64_t batch = first; batch < end; batch++)
        put_safe(h, batch);
    assert_int_equal(h->times_held, 1);
}

/* What the holder writes goes by gRPC: one request each. An etcd that has none is asked
 * for it once in ten seconds, and gets the rest by its gateway. */
LISTED_TEST(test_by_grpc)
{
    struct contract_state *s = *state;
    struct sim_etcd *etcd = etcd_of(s);
    struct contract_holder *h = contract_begin(s, 0);
    uint64_t grpc;

    put_some(h, 1, 2);
    grpc = sim_etcd_grpc_requests(etcd);
    put_some(h, 2, 12);
    assert_int_equal(sim_etcd_grpc_requests(etcd), grpc + 10);
    sim_etcd_settings(etcd)->lacks_grpc = true;
    put_some(h, 12, 32);
    assert_int_equal(sim_etcd_grpc_requests(etcd), grpc + 11);
    contract_run_ms(s, 10000);
    put_some(h, 32, 42);
    assert_int_equal(sim_etcd_grpc_requests(etcd), grpc + 12);
    sim_etcd_settings(etcd)->lacks_grpc = false;
    contract_run_ms(s, 10000);
    put_some(h, 42, 52);
    assert_int_equal(sim_etcd_grpc_requests(etcd), grpc + 22);
    contract_kill(h);
    contract_expect_content(&contract_begin(s, 0)->content, 51);
}

/* Half of all answers are lost: what was done counts once. */
LISTED_TEST(test_lost_answers)
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
LISTED_TEST(test_late_requests)
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
LISTED_TEST(test_group_commit)
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

int main(void)
{
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_place_bounds),
    };
    static const struct CMUnitTest stories[] = {
        CONTRACT_STORE_TEST(test_keys),
        CONTRACT_STORE_TEST(test_replaced),
        CONTRACT_STORE_TEST(test_paused_holder),
        CONTRACT_STORE_TEST(test_paused_holder_of_the_same_version),
        CONTRACT_STORE_TEST(test_leader_key_overwritten),
        CONTRACT_STORE_TEST(test_leader_key_deleted),
        CONTRACT_STORE_TEST(test_slow_answers),
        CONTRACT_STORE_TEST(test_election_answer_lost),
        CONTRACT_STORE_TEST(test_etcd_away),
        CONTRACT_STORE_TEST(test_etcd_away_for_a_moment),
        CONTRACT_STORE_TEST(test_endpoints_in_turn),
        CONTRACT_STORE_TEST(test_by_grpc),
        CONTRACT_STORE_TEST(test_lost_answers),
        CONTRACT_STORE_TEST(test_late_requests),
        CONTRACT_STORE_TEST(test_group_commit),
    };
    int failed = contract_store_run("etcd", &fixture);

    failed += cmocka_run_group_tests(stories, NULL, NULL);
    return failed + cmocka_run_group_tests(plain, NULL, NULL);
}
