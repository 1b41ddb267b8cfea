/* Transactions over several keys: all of it or nothing, once, and never half of it. */
#include "tests/support/service/keys.h"

#include "actors/coordination/tasks.h"

static struct mu__txn txn;

static void begin_txn(void)
{
    txn = (struct mu__txn){.checks_count = 0};
}

static void add_check(int type, const char *key, uint64_t revision, const char *value)
{
    txn.checks[txn.checks_count++] =
        (struct mu__txn_check){type, mu__view_str(key), revision, mu__view_str(value)};
}

static void add_change(int operation, const char *key, const char *value, int64_t by)
{
    txn.changes[txn.changes_count++] =
        (struct mu__txn_change){.operation = operation,
                                .key = mu__view_str(key),
                                .value = mu__view_str(value),
                                .by = by};
}

static void transact(struct service_agent *agent)
{
    agent->token++;
    tell_txn(agent, agent->token, agent->token, &txn);
}

/* Put, increment and delete at one moment: those who watch hear of it at once. */
TEST(test_all_of_it)
{
    struct pair p = begin(&mu__store_memory);

    (void)put(p.w0, "old/a", "1", ONCE);
    (void)put(p.w0, "old/b", "2", ONCE);
    (void)put(p.w0, "x", "before", ONCE);
    (void)watch(p.w1, "", true);
    (void)service_text(p.w0);
    (void)service_text(p.w1);
    begin_txn();
    add_check(MU_KV_IF_REVISION, "x", 3, "");
    add_check(MU_KV_IF_VALUE, "old/a", 0, "1");
    add_check(MU_KV_IF_PRESENT, "old/b", 0, "");
    add_check(MU_KV_IF_ABSENT, "n", 0, "");
    add_check(MU_KV_IF_REVISION, "n", 0, "");
    add_change(MU_KV_DELETE, "old", "", 0);
    add_change(MU_KV_PUT, "x", "after", 0);
    add_change(MU_KV_INCREMENT, "n", "", 42);
    transact(p.w0);
    expect_said(p.w0, "[    0] key_done token=5 revision=7 number=42\n");
    expect_said(p.w1, "[    0] key_event token=2 key=\"x\" value=\"after\" revision=4\n"
                      "[    0] key_event token=2 key=\"n\" value=\"42\" revision=5\n"
                      "[    0] key_event token=2 key=\"old/a\" revision=6 deleted=yes\n"
                      "[    0] key_event token=2 key=\"old/b\" revision=7 deleted=yes\n");
    expect_key(p.w1, "old/a", "");
    expect_key(p.w1, "x", "after");
    expect_key(p.w1, "n", "42");
    service_end(p.s);
}

/* The first comparison that does not hold is named, and nothing has changed. */
TEST(test_a_comparison_that_does_not_hold)
{
    static const struct {
        int type;
        const char *key;
        uint64_t revision;
        const char *value;
        const char *words;
    } rows[] = {
        {MU_KV_IF_REVISION, "x", 2, "", "key \"x\" has revision 1, expected 2"},
        {MU_KV_IF_REVISION, "x", 0, "", "key \"x\" has revision 1, expected 0"},
        {MU_KV_IF_REVISION, "y", 1, "", "key \"y\" has revision 0, expected 1"},
        {MU_KV_IF_ABSENT, "x", 0, "", "key \"x\" is there already"},
        {MU_KV_IF_PRESENT, "y", 0, "", "key \"y\" is not there"},
        {MU_KV_IF_VALUE, "x", 0, "valu", "key \"x\" has another value"},
        {MU_KV_IF_VALUE, "x", 0, "", "key \"x\" has another value"},
        {MU_KV_IF_VALUE, "y", 0, "", "key \"y\" is not there"},
    };
    struct pair p = begin(&mu__store_memory);

    (void)put(p.w0, "x", "value", ONCE);
    (void)service_text(p.w0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char wanted[256];

        begin_txn();
        add_check(MU_KV_IF_VALUE, "x", 0, "value");
        add_check(rows[i].type, rows[i].key, rows[i].revision, rows[i].value);
        add_check(MU_KV_IF_ABSENT, "x", 0, "");
        add_change(MU_KV_PUT, "x", "other", 0);
        add_change(MU_KV_PUT, "y", "other", 0);
        transact(p.w0);
        (void)snprintf(wanted, sizeof wanted,
                       "[    0] key_done token=%" PRIu64
                       " code=9 number=2 message=\"%s\"\n",
                       p.w0->token, rows[i].words);
        expect_said(p.w0, wanted);
        expect_key(p.w0, "x", "value");
        expect_key(p.w0, "y", "");
    }
    assert_int_equal(service_state(p.s, 0)->revision, 1);
    service_end(p.s);
}

/* Comparisons alone are answered, too, and change nothing. */
TEST(test_comparisons_alone)
{
    struct pair p = begin(&mu__store_memory);

    (void)put(p.w0, "x", "1", ONCE);
    (void)service_text(p.w0);
    begin_txn();
    add_check(MU_KV_IF_PRESENT, "x", 0, "");
    transact(p.w0);
    expect_said(p.w0, "[    0] key_done token=3 revision=1\n");
    service_end(p.s);
}

/* A change that cannot be made undoes those before it: values, revisions and leases are
 * as they were. */
TEST(test_nothing_of_it)
{
    struct pair p = begin(&mu__store_memory);
    uint64_t bytes;

    put_sized(p.w0, "leased", "mine", 4, OVER | MU__PUT_LEASE, 0);
    (void)put(p.w0, "empty", "", ONCE);
    (void)put(p.w0, "word", "many", ONCE);
    (void)put(p.w0, "most", "9223372036854775807", ONCE);
    (void)service_text(p.w0);
    (void)watch(p.w0, "", true);
    (void)service_text(p.w0);
    bytes = mu__key_values_bytes(service_state(p.s, 0)->keys->kv);
    for (int i = 0; i < 2; i++) {
        begin_txn();
        add_change(MU_KV_PUT, "leased", "theirs", 0);
        add_change(MU_KV_PUT, "new", "x", 0);
        add_change(MU_KV_PUT, "empty", "full", 0);
        add_change(MU_KV_INCREMENT, i == 0 ? "word" : "most", "", 1);
        transact(p.w1);
    }
    expect_said(
        p.w1,
        "[    0] key_done token=2 code=9 message=\"key \"word\" has no decimal number of "
        "64 bits to increment\"\n"
        "[    0] key_done token=3 code=11 message=\"key \"most\" would exceed 64 "
        "bits\"\n");
    expect_said(p.w0, "");
    assert_int_equal(service_state(p.s, 0)->revision, 4);
    assert_int_equal(mu__key_values_bytes(service_state(p.s, 0)->keys->kv), bytes);
    expect_key(p.w1, "leased", "mine");
    expect_key(p.w1, "new", "");
    (void)service_leave_now(p.w0);
    expect_key(p.w1, "leased", "");
    service_end(p.s);
}

/* When there is no room for the last put, the first ones are undone. */
TEST(test_no_room_for_the_last)
{
    struct pair p = begin(&mu__store_memory);
    struct coord_keys *keys = service_state(p.s, 0)->keys;
    struct mu__key_values *whole = keys->kv;

    keys->kv = mu__key_values_new(1, 3, 0);
    put_sized(p.w0, "a", "0", 1, OVER | MU__PUT_LEASE, 0);
    (void)put(p.w0, "b", "", ONCE);
    (void)service_text(p.w0);
    begin_txn();
    add_change(MU_KV_PUT, "a", "1", 0);
    add_change(MU_KV_PUT, "b", "1", 0);
    add_change(MU_KV_PUT, "c", "1", 0);
    add_change(MU_KV_PUT, "d", "1", 0);
    transact(p.w1);
    expect_said(p.w1, "[    0] key_done token=2 code=8 message=\"there are 3 keys, as "
                      "many as there may be\"\n");
    assert_int_equal(mu__key_values_count(keys->kv), 2);
    assert_int_equal(mu__key_values_bytes(keys->kv), 3);
    assert_int_equal(service_state(p.s, 0)->revision, 2);
    expect_key(p.w0, "a", "0");
    expect_key(p.w0, "b", "");
    (void)service_leave_now(p.w0);
    assert_int_equal(mu__key_values_count(keys->kv), 1);
    mu__key_values_free(keys->kv);
    keys->kv = whole;
    service_end(p.s);
}

static void expect_last_eighth_kept(struct service_agent *client)
{
    char words[256];

    (void)snprintf(words, sizeof words,
                   "[    0] key_done token=%" PRIu64 " code=8 "
                   "message=\"there are 7 keys of 8 that there may be, and 7 bytes of "
                   "1073741824: the last eighth is kept for tasks\"\n",
                   client->token);
    expect_said(client, words);
}

/* Clients cannot take the last eighth; they can delete, and tasks have room. */
TEST(test_last_eighth_is_for_tasks)
{
    struct pair p = begin(&mu__store_memory);
    struct service_agent *client = service_task(p.s, "client", 3);
    struct coord_keys *keys = service_state(p.s, 0)->keys;
    struct mu__key_values *whole = keys->kv;
    char name[2] = "a";

    keys->kv = mu__key_values_new(1, 8, 0);
    for (; name[0] <= 'g'; name[0]++)
        (void)put(client, name, "", ONCE);
    assert_int_equal(mu__key_values_count(keys->kv), 7);
    (void)service_text(client);
    (void)put(client, "h", "", ONCE);
    expect_last_eighth_kept(client);
    client->token++;
    TELL(client, KEY_INCREMENT, key_increment, .token = client->token,
         .done = client->token, .key = mu__view_str("n"), .by = 1);
    expect_last_eighth_kept(client);
    begin_txn();
    add_change(MU_KV_PUT, "h", "", 0);
    transact(client);
    expect_last_eighth_kept(client);
    (void)put(p.w0, "h", "", ONCE);
    assert_int_equal(mu__key_values_count(keys->kv), 8);
    begin_txn();
    add_change(MU_KV_DELETE, "a", "", 0);
    add_change(MU_KV_DELETE, "b", "", 0);
    transact(client);
    assert_int_equal(mu__key_values_count(keys->kv), 6);
    (void)put(client, "a", "", ONCE);
    assert_int_equal(mu__key_values_count(keys->kv), 7);
    mu__key_values_free(keys->kv);
    keys->kv = whole;
    service_end(p.s);
}

/* A lease that a transaction put goes with its task. */
TEST(test_leases)
{
    struct pair p = begin(&mu__store_memory);

    begin_txn();
    add_change(MU_KV_PUT, "leased", "x", 0);
    txn.changes[0].flags = MU_KV_LEASE;
    add_change(MU_KV_PUT, "stays", "x", 0);
    transact(p.w0);
    expect_key(p.w1, "leased", "x");
    (void)service_leave_now(p.w0);
    expect_key(p.w1, "leased", "");
    expect_key(p.w1, "stays", "x");
    service_end(p.s);
}

/* ---- What cannot be asked ---- */

static void refuse(struct service_agent *agent, const char *words, unsigned code)
{
    char wanted[512];

    transact(agent);
    (void)snprintf(wanted, sizeof wanted,
                   "[    0] key_done token=%" PRIu64 " code=%u message=\"%s\"\n",
                   agent->token, code, words);
    expect_said(agent, wanted);
}

TEST(test_changes_that_collide)
{
    static const char same[] = "changes 1 and 2 of the transaction are of the same key "
                               "\"%s\", or one deletes what the other changes";
    static const struct {
        int first;
        const char *first_key;
        int second;
        const char *second_key;
        bool fine;
    } rows[] = {
        {MU_KV_PUT, "a", MU_KV_PUT, "a", false},
        {MU_KV_PUT, "a", MU_KV_INCREMENT, "a", false},
        {MU_KV_PUT, "a", MU_KV_DELETE, "a", false},
        {MU_KV_PUT, "a/b", MU_KV_DELETE, "a", false},
        {MU_KV_DELETE, "a", MU_KV_INCREMENT, "a/b/c", false},
        {MU_KV_DELETE, "a", MU_KV_DELETE, "a/b", false},
        {MU_KV_PUT, "a", MU_KV_PUT, "a/b", true},
        {MU_KV_PUT, "a", MU_KV_DELETE, "a/b", true},
        {MU_KV_PUT, "ab", MU_KV_DELETE, "a", true},
    };
    struct pair p = begin(&mu__store_memory);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char words[256];

        begin_txn();
        add_change(rows[i].first, rows[i].first_key, "1", 1);
        add_change(rows[i].second, rows[i].second_key, "1", 1);
        (void)snprintf(words, sizeof words, same, rows[i].second_key);
        if (!rows[i].fine) {
            refuse(p.w0, words, MU_EINVALID);
            continue;
        }
        transact(p.w0);
        assert_null(strstr(service_text(p.w0), "code="));
    }
    service_end(p.s);
}

TEST(test_bounds)
{
    static char large[MU__KEY_VALUE_MAX + 1];
    static char keys[MU_KV_TRANSACTION_MAX][16];
    struct pair p = begin(&mu__store_memory);

    begin_txn();
    refuse(p.w0, "a transaction has neither comparisons nor changes", MU_EINVALID);
    begin_txn();
    add_change(MU_KV_PUT, "a", "", 0);
    txn.changes[0].value = (struct mu__view){large, MU__KEY_VALUE_MAX + 1};
    refuse(p.w0, "change 1 of the transaction has a value of more than 1 MiB",
           MU_EEXHAUSTED);
    begin_txn();
    add_change(MU_KV_PUT, "a", "", 0);
    add_change(MU_KV_PUT, "b", "", 0);
    txn.changes[0].value = (struct mu__view){large, MU__KEY_VALUE_MAX};
    txn.changes[1].value = (struct mu__view){large, MU__KEY_VALUE_MAX - 1};
    refuse(p.w0,
           "a transaction has 2097153 bytes of keys and values, and may have 2097152",
           MU_EEXHAUSTED);
    txn.changes[1].value.size--;
    transact(p.w0);
    expect_said(p.w0, "[    0] key_done token=5 revision=2\n");
    begin_txn();
    for (unsigned i = 0; i < MU_KV_TRANSACTION_MAX; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k/%u", i);
        add_check(MU_KV_IF_ABSENT, keys[i], 0, "");
        add_change(MU_KV_PUT, keys[i], "x", 0);
    }
    transact(p.w0);
    expect_said(p.w0, "[    0] key_done token=6 revision=130\n");
    service_end(p.s);
}

TEST(test_parts_that_are_wrong)
{
    struct pair p = begin(&mu__store_memory);

    begin_txn();
    add_change(MU_KV_GET, "a", "", 0);
    refuse(p.w0, "change 1 of the transaction is no put, increment or delete",
           MU_EINVALID);
    begin_txn();
    add_change(MU_KV_PUT, "a", "", 0);
    txn.changes[0].flags = MU_KV_OVERWRITE;
    refuse(p.w0, "change 1 of the transaction has flags other than MU_KV_LEASE of a put",
           MU_EINVALID);
    begin_txn();
    add_change(MU_KV_DELETE, "a", "", 0);
    txn.changes[0].flags = MU_KV_LEASE;
    refuse(p.w0, "change 1 of the transaction has flags other than MU_KV_LEASE of a put",
           MU_EINVALID);
    begin_txn();
    add_check(7, "a", 0, "");
    refuse(
        p.w0,
        "comparison 1 of the transaction has a type that is not a valid mu_kv_check_type",
        MU_EINVALID);
    begin_txn();
    add_check(MU_KV_IF_ABSENT, "_muster/run", 0, "");
    add_change(MU_KV_PUT, "fine", "", 0);
    add_change(MU_KV_PUT, "_muster/run", "", 0);
    refuse(p.w0,
           "key \"_muster/run\" is the service's own: keys below _muster are for reading",
           MU_EPERMISSION);
    begin_txn();
    add_check(MU_KV_IF_ABSENT, "a//b", 0, "");
    refuse(p.w0,
           "comparison 1 of the transaction has a key that is not in its normal "
           "form: it is empty, too long, has slashes too many or control characters",
           MU_EINVALID);
    expect_key(p.w0, "fine", "");
    service_end(p.s);
}

/* Another process may send anything. */
TEST(test_what_is_no_transaction)
{
    struct pair p = begin(&mu__store_memory);
    mu_value *made[6] = {mu_value_nil(), mu_value_map(), mu_value_list(),
                         mu_value_map(), mu_value_map(), mu_value_map()};
    mu_value *list = mu_value_list();
    mu_value *many = mu_value_list();

    assert_int_equal(mu_value_append(list, mu_value_int(1)), 0);
    assert_int_equal(mu_value_set(made[3], "do", mu_value_ref(list)), 0);
    assert_int_equal(mu_value_set(made[4], "if", list), 0);
    for (int i = 0; i <= MU_KV_TRANSACTION_MAX; i++)
        assert_int_equal(mu_value_append(many, mu_value_nil()), 0);
    assert_int_equal(mu_value_set(made[5], "if", many), 0);
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        struct mu__packed packed;
        struct mu__buf *buf = mu__pack_value(made[i], &packed);
        const char *words;

        assert_non_null(buf);
        TELL(p.w0, KEY_TXN, key_txn, .token = ++p.w0->token, .content = packed);
        words = service_text(p.w0);
        assert_non_null(strstr(words, i == 5 ? "code=8" : "code=3"));
        assert_non_null(strstr(words, "transaction"));
        mu__buf_unref(buf);
        mu_value_free(made[i]);
    }
    assert_int_equal(service_state(p.s, 0)->revision, 0);
    service_end(p.s);
}

/* ---- Once, and whole ---- */

static void count_up(struct service_agent *agent, uint64_t token)
{
    begin_txn();
    add_change(MU_KV_INCREMENT, "a", "", 1);
    add_change(MU_KV_INCREMENT, "b", "", 1);
    tell_txn(agent, token, 0, &txn);
}

TEST(test_once)
{
    struct pair p = begin(&mu__store_memory);

    count_up(p.w0, 10);
    count_up(p.w0, 10);
    count_up(p.w1, 10);
    count_up(p.w0, 10);
    expect_said(p.w0, "[    0] key_done token=10 revision=2 number=1\n"
                      "[    0] key_done token=10 revision=2 number=1\n"
                      "[    0] key_done token=10 revision=2 number=1\n");
    expect_said(p.w1, "[    0] key_done token=10 revision=4 number=2\n");
    expect_key(p.w0, "b", "2");
    service_end(p.s);
}

static void start_again(struct pair *p)
{
    service_crash(p->s, 0);
    service_start(p->s, 0);
    service_link_up(p->w0, 0);
    (void)service_register(p->w0, false, 0);
    (void)service_text(p->w0);
}

/* The next life of the host has read what was answered, and does not do it again. */
TEST(test_once_over_lives)
{
    struct pair p = begin(&mu__store_journal);

    count_up(p.w0, 10);
    expect_said(p.w0, "[    0] key_done token=10 revision=2 number=1\n");
    start_again(&p);
    count_up(p.w0, 10);
    expect_said(p.w0, "[    0] key_done token=10 revision=2 number=1\n");
    expect_key(p.w0, "a", "1");
    expect_key(p.w0, "b", "1");
    service_end(p.s);
}

/* Wherever the file ends after a crash, the next host finds all of a transaction or
 * nothing, and asked again it is done once. */
TEST(test_torn_anywhere)
{
    struct pair p = begin(&mu__store_journal);
    struct sim_storage *storage = p.s->hosts[0].storage;
    static uint8_t whole[1 << 16];
    size_t before = storage->size;
    size_t size;
    unsigned halves[2] = {0, 0};

    count_up(p.w0, 1 << 20);
    (void)service_text(p.w0);
    size = storage->size;
    assert_true(size > before && size <= sizeof whole);
    memcpy(whole, storage->content, size);
    for (size_t cut = before; cut <= size; cut++) {
        char a[128];

        service_crash(p.s, 0);
        sim_storage_set(storage, whole, cut);
        service_start(p.s, 0);
        service_link_up(p.w0, 0);
        (void)service_register(p.w0, false, 0);
        (void)service_text(p.w0);
        (void)snprintf(a, sizeof a, "%s", value_of(p.w0, "a"));
        expect_key(p.w0, "b", a);
        halves[a[0] == '1']++;
        count_up(p.w0, 1 << 20);
        expect_key(p.w0, "a", "1");
        expect_key(p.w0, "b", "1");
    }
    assert_true(halves[0] > 50 && halves[1] >= 1);
    service_end(p.s);
}

/* Notice of a preemption is that, too, when it comes with other keys. */
TEST(test_notice_of_a_preemption)
{
    struct pair p = begin(&mu__store_memory);

    begin_txn();
    add_change(MU_KV_PUT, "reason", "moved", 0);
    add_change(MU_KV_PUT, MU__KEY_PREEMPTION, "/job:worker/task:1", 0);
    transact(p.w0);
    assert_non_null(strstr(service_text(p.w1), "preempt_request"));
    service_end(p.s);
}

TEST_PROGRAM()
