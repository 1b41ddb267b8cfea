/* What is said to etcd's gateway, letter by letter, and what its answers mean. */
#include "runtime/document/etcd.h"
#include "tests/support/etcd_rows.h"
#include "tests/support/test.h"

static struct mu__view view(const char *text)
{
    return mu__view_str(text);
}

/* ---- Requests ---- */

static void expect_body(struct mu__build *body, const char *text)
{
    char *got = calloc(1, body->size + 1);

    assert_non_null(got);
    assert_false(body->failed);
    memcpy(got, body->text, body->size);
    assert_string_equal(got, text);
    free(got);
    mu__build_done(body);
    assert_int_equal(body->size, 0);
}

/* What is answered to a password may have it, also in part, or written otherwise. */
TEST(test_hidden_words)
{
    static const struct {
        int status;
        const char *text;
        const char *shown;
    } rows[] = {
        {400, "{\"error\":\"no {\\\"password\\\":\\\"horse\\\"}\",\"code\":3}",
         "etcd answered with status 400; its words are not shown, since they may have "
         "the password in them"},
        {502, "{\"name\":\"me\",\"password\":\"horse\"}",
         "etcd answered with status 502; its words are not shown, since they may have "
         "the password in them"},
        {200, "horse",
         "etcd's answer is no JSON object (or there is no memory to read it); its words "
         "are not shown, since they may have the password in them"},
        {400,
         "{\"error\":\"etcdserver: authentication failed, invalid user ID or "
         "password: horse\",\"code\":3}",
         "etcd answered with status 400: authentication failed, invalid user ID or "
         "password"},
        {503, "{\"error\":\"etcdserver: no leader\",\"code\":14}",
         "etcd answered with status 503: no leader"},
    };
    mu_error other = {.code = 1, .message = "cannot connect: \"a\""};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__etcd_answer *answer = NULL;
        mu_error error = {.message = ""};

        assert_int_not_equal(mu__etcd_answer_read(rows[i].status, rows[i].text,
                                                  strlen(rows[i].text), &error, &answer),
                             0);
        mu__etcd_hide(&error);
        assert_string_equal(error.message, rows[i].shown);
    }
    mu__etcd_hide(&other);
    assert_string_equal(other.message, "cannot connect: \"a\"");
}

TEST(test_leases)
{
    struct mu__build body = {0};

    mu__etcd_grant(&body, 0, 5);
    expect_body(&body, "{\"ID\":\"0\",\"TTL\":\"5\"}");
    mu__etcd_keep(&body, INT64_MAX);
    expect_body(&body, "{\"ID\":\"9223372036854775807\"}");
    mu__etcd_revoke(&body, 77);
    expect_body(&body, "{\"ID\":\"77\"}");
}

TEST(test_ranges)
{
    struct mu__build body = {0};

    mu__etcd_range(&body, view("a"), view(""), 0);
    expect_body(&body, "{\"key\":\"YQ==\"}");
    mu__etcd_range(&body, (struct mu__view){"k/b\0", 4}, view("k0"), 2);
    expect_body(&body, "{\"key\":\"ay9iAA==\",\"range_end\":\"azA=\",\"limit\":\"2\"}");
}

/* The same as rows of the table, which a real etcd took. */
TEST(test_transactions)
{
    struct mu__build body = {0};

    mu__etcd_txn_begin(&body);
    mu__etcd_txn_compare(&body, MU__ETCD_CREATE, view("lead"), 0);
    mu__etcd_txn_then(&body);
    mu__etcd_txn_put(&body, view("lead"), view("one"), 77);
    mu__etcd_txn_else(&body);
    mu__etcd_txn_range(&body, view("lead"));
    mu__etcd_txn_end(&body);
    expect_body(&body, etcd_rows[7].ask);

    mu__etcd_txn_begin(&body);
    mu__etcd_txn_compare(&body, MU__ETCD_CREATE, view("a"), 2);
    mu__etcd_txn_compare(&body, MU__ETCD_VERSION, view("a"), 1);
    mu__etcd_txn_then(&body);
    mu__etcd_txn_put(&body, view("b"), view(""), 0);
    mu__etcd_txn_delete(&body, view("c"), view(""));
    mu__etcd_txn_delete(&body, view("d"), view("e"));
    mu__etcd_txn_else(&body);
    mu__etcd_txn_end(&body);
    expect_body(&body,
                "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"YQ==\","
                "\"create_revision\":\"2\"},{\"target\":\"VERSION\",\"key\":\"YQ==\","
                "\"version\":\"1\"}],\"success\":[{\"request_put\":{\"key\":\"Yg==\","
                "\"value\":\"\"}},{\"request_delete_range\":{\"key\":\"Yw==\"}},"
                "{\"request_delete_range\":{\"key\":\"ZA==\",\"range_end\":\"ZQ==\"}}],"
                "\"failure\":[]}");
}

/* ---- Answers ---- */

static struct mu__etcd_answer *read_ok(const char *text)
{
    struct mu__etcd_answer *answer = NULL;
    mu_error error = {.message = ""};

    if (mu__etcd_answer_read(200, text, strlen(text), &error, &answer) != 0)
        fail_msg("%s", error.message);
    return answer;
}

TEST(test_good_answers)
{
    struct mu__etcd_answer *answer =
        read_ok("{\"header\":{\"revision\":\"9\"},\"ID\":\"7\",\"TTL\":5}\n");
    struct mu__etcd_entries entries = {0};
    struct mu__etcd_entry entry;
    uint64_t number = 0;
    uint64_t ttl_s = 0;
    bool flag = true;

    assert_int_equal(mu__etcd_revision(answer, NULL, &number), 0);
    assert_int_equal(number, 9);
    assert_int_equal(mu__etcd_granted(answer, NULL, &number, &ttl_s), 0);
    assert_true(number == 7 && ttl_s == 5);
    assert_int_equal(mu__etcd_succeeded(answer, NULL, &flag), 0);
    assert_false(flag);
    assert_int_equal(mu__etcd_ranged(answer, NULL, &entries), 0);
    assert_int_equal(mu__etcd_next_entry(&entries, NULL, &entry), 0);
    mu__etcd_answer_free(answer);

    answer = read_ok("{\"result\":{\"ID\":\"7\"}}");
    assert_int_equal(mu__etcd_lease_ttl(answer, NULL, &ttl_s), 0);
    assert_int_equal(ttl_s, 0);
    mu__etcd_answer_free(answer);
    mu__etcd_answer_free(NULL);
}

/* An answer with entries, of which one lacks what is empty. */
TEST(test_entries)
{
    struct mu__etcd_answer *answer =
        read_ok("{\"header\":{},\"succeeded\":false,\"responses\":[{\"response_put\":{}},"
                "{\"response_range\":{\"more\":true,\"kvs\":[{\"key\":\"YQA=\","
                "\"value\":\"/w==\",\"create_revision\":\"3\",\"version\":\"2\","
                "\"lease\":\"9223372036854775807\"},"
                "{\"key\":\"Yg==\"}]}}]}");
    struct mu__etcd_entries entries;
    struct mu__etcd_entry entry;
    mu_error error;

    assert_int_equal(mu__etcd_txn_ranged(answer, 1, &error, &entries), 0);
    assert_true(entries.more);
    assert_int_equal(mu__etcd_next_entry(&entries, &error, &entry), 1);
    assert_true(entry.key.size == 2 && memcmp(entry.key.data, "a", 2) == 0);
    assert_true(entry.value.size == 1 && memcmp(entry.value.data, "\xff", 1) == 0);
    assert_true(entry.create_revision == 3 && entry.version == 2);
    assert_true(entry.lease == INT64_MAX);
    assert_int_equal(mu__etcd_next_entry(&entries, &error, &entry), 1);
    assert_true(entry.value.size == 0 && entry.lease == 0);
    assert_int_equal(mu__etcd_next_entry(&entries, &error, &entry), 0);
    assert_int_equal(mu__etcd_txn_ranged(answer, 0, &error, &entries), -MU_EDATALOSS);
    assert_int_equal(mu__etcd_txn_ranged(answer, 2, &error, &entries), -MU_EDATALOSS);
    mu__etcd_answer_free(answer);
}

/* What is no good answer, and in which words. */
TEST(test_errors)
{
    static const struct {
        int status;
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {404, "{\"error\":\"e\",\"message\":\"lease not found\",\"code\":5}",
         -MU_ENOTFOUND, "status 404: \"lease not found\""},
        {412, "{\"message\":\"exists\",\"code\":9,\"details\":[]}", -MU_EPRECONDITION,
         "exists"},
        {400, "{\"error\":\"only this\",\"code\":3}", -MU_EINVALID, "only this"},
        {200, "{\"error\":{\"grpc_code\":14,\"message\":\"no leader\"}}",
         -MU_EUNAVAILABLE, "no leader"},
        {503, "{\"error\":\"x\",\"code\":99}", -MU_EUNAVAILABLE, "status 503"},
        {404, "Not Found\n", -MU_EUNIMPLEMENTED, "\"Not Found"},
        {405, "", -MU_EUNIMPLEMENTED, "status 405"},
        {429, "slow down", -MU_EUNAVAILABLE, "slow down"},
        {502, "<html>\x01</html>", -MU_EUNAVAILABLE, "<html>"},
        {302, "", -MU_EUNKNOWN, "status 302"},
        {400, "[]", -MU_EUNKNOWN, "status 400"},
        {200, "", -MU_EDATALOSS, "no JSON object"},
        {200, "[]", -MU_EDATALOSS, "no JSON object"},
        {200, "{", -MU_EDATALOSS, "no JSON object"},
        {200, "{} {}", -MU_EDATALOSS, "no JSON object"},
        {200, "{\"a\":1}x", -MU_EDATALOSS, "no JSON object"},
        {200, "null", -MU_EDATALOSS, "no JSON object"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__etcd_answer *answer = NULL;
        mu_error error = {.message = ""};
        int rv = mu__etcd_answer_read(rows[i].status, rows[i].text, strlen(rows[i].text),
                                      &error, &answer);

        assert_null(answer);
        if (rv != rows[i].code || error.code != rv ||
            strstr(error.message, rows[i].words) == NULL)
            fail_msg("row %zu: %d %s", i, rv, error.message);
    }
}

static int read_granted(struct mu__etcd_answer *answer, mu_error *error)
{
    uint64_t lease = 99;
    uint64_t ttl_s = 99;
    int rv = mu__etcd_granted(answer, error, &lease, &ttl_s);

    assert_true(rv == 0 || (lease == 99 && ttl_s == 99));
    return rv;
}

static int read_kept(struct mu__etcd_answer *answer, mu_error *error)
{
    uint64_t ttl_s;

    return mu__etcd_lease_ttl(answer, error, &ttl_s);
}

static int read_succeeded(struct mu__etcd_answer *answer, mu_error *error)
{
    bool succeeded;

    return mu__etcd_succeeded(answer, error, &succeeded);
}

static int read_revision(struct mu__etcd_answer *answer, mu_error *error)
{
    uint64_t revision;

    return mu__etcd_revision(answer, error, &revision);
}

static int read_range(struct mu__etcd_answer *answer, mu_error *error)
{
    struct mu__etcd_entries entries;
    struct mu__etcd_entry entry;
    int rv = mu__etcd_ranged(answer, error, &entries);

    while (rv == 0 && (rv = mu__etcd_next_entry(&entries, error, &entry)) == 1)
        rv = 0;
    return rv;
}

static int read_txn_range(struct mu__etcd_answer *answer, mu_error *error)
{
    struct mu__etcd_entries entries;

    return mu__etcd_txn_ranged(answer, 0, error, &entries);
}

TEST(test_wrong_parts)
{
    static const struct {
        int (*read)(struct mu__etcd_answer *answer, mu_error *error);
        const char *text;
        const char *words;
    } rows[] = {
        {read_granted, "{}", "without ID"},
        {read_granted, "{\"ID\":\"1\"}", "without TTL"},
        {read_granted, "{\"ID\":\"1\",\"TTL\":[]}", "a list as \"TTL\""},
        {read_granted, "{\"ID\":\"-1\",\"TTL\":\"1\"}", "text \"-1\" as \"ID\""},
        {read_granted, "{\"ID\":\"\",\"TTL\":\"1\"}", "whole number"},
        {read_granted, "{\"ID\":\"1x\",\"TTL\":\"1\"}", "whole number"},
        {read_granted, "{\"ID\":\"9223372036854775808\",\"TTL\":\"1\"}", "63 bits"},
        {read_granted, "{\"ID\":\"99999999999999999999999\",\"TTL\":\"1\"}", "63 bits"},
        {read_granted, "{\"ID\":1.5,\"TTL\":\"1\"}", "number 1.5"},
        {read_granted, "{\"ID\":-1,\"TTL\":\"1\"}", "number -1"},
        {read_granted, "{\"ID\":1e300,\"TTL\":\"1\"}", "whole number"},
        {read_granted, "{\"ID\":true,\"TTL\":\"1\"}", "true as \"ID\""},
        {read_kept, "{}", "no \"result\""},
        {read_kept, "{\"result\":1}", "expected an object"},
        {read_kept, "{\"result\":{\"TTL\":null}}", "null as \"TTL\""},
        {read_succeeded, "{}", "no \"header\""},
        {read_succeeded, "{\"header\":{},\"succeeded\":\"true\"}", "true or false"},
        {read_revision, "{\"header\":[]}", "expected an object"},
        {read_range, "{}", "no \"header\""},
        {read_range, "{\"header\":{},\"kvs\":{}}", "expected a list"},
        {read_range, "{\"header\":{},\"more\":1}", "true or false"},
        {read_range, "{\"header\":{},\"more\":true}", "says there are more"},
        {read_range, "{\"header\":{},\"kvs\":[1]}", "a list of objects"},
        {read_range, "{\"header\":{},\"kvs\":[{}]}", "without a key"},
        {read_range, "{\"header\":{},\"kvs\":[{\"key\":\"a\"}]}", "expected base64"},
        {read_range, "{\"header\":{},\"kvs\":[{\"key\":7}]}", "expected base64"},
        {read_range, "{\"header\":{},\"kvs\":[{\"key\":\"YQ==\",\"value\":\"=\"}]}",
         "expected base64"},
        {read_range, "{\"header\":{},\"kvs\":[{\"key\":\"YQ==\",\"lease\":\"x\"}]}",
         "as \"lease\""},
        {read_txn_range, "{}", "no \"response_range\" for operation 1"},
        {read_txn_range, "{\"responses\":{}}", "no \"response_range\""},
        {read_txn_range, "{\"responses\":[1]}", "no \"response_range\""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__etcd_answer *answer = read_ok(rows[i].text);
        mu_error error = {.message = ""};
        int rv = rows[i].read(answer, &error);

        if (rv != -MU_EDATALOSS || strstr(error.message, rows[i].words) == NULL)
            fail_msg("row %zu: %d %s", i, rv, error.message);
        mu__etcd_answer_free(answer);
    }
}

/* Everything that a real one answered can be read. */
TEST(test_real_answers)
{
    unsigned good = 0;

    for (size_t i = 0; i < ETCD_ROWS; i++) {
        struct mu__etcd_answer *answer = NULL;
        mu_error error = {.message = ""};
        int rv = mu__etcd_answer_read(etcd_rows[i].status, etcd_rows[i].answer,
                                      strlen(etcd_rows[i].answer), &error, &answer);

        assert_int_equal(rv == 0, etcd_rows[i].status == 200);
        assert_true(rv == 0 || error.message[0] != '\0');
        if (rv != 0)
            continue;
        good++;
        if (strcmp(etcd_rows[i].path, MU__ETCD_RANGE) == 0)
            assert_int_equal(read_range(answer, &error), 0);
        if (strcmp(etcd_rows[i].path, MU__ETCD_TXN) == 0)
            assert_int_equal(read_succeeded(answer, &error), 0);
        if (strcmp(etcd_rows[i].path, MU__ETCD_KEEP) == 0)
            assert_int_equal(read_kept(answer, &error), 0);
        mu__etcd_answer_free(answer);
    }
    assert_true(good > 15);
}

TEST_PROGRAM()
