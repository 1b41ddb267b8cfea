/* The resolver etcd, by rows. The answers have the form that etcd 3.4 gives. */
#include "resolver/kinds.h"
#include "tests/support/script.h"

#include "runtime/base/base64.h"
#include "tests/support/test.h"

static const struct mu__resolver_kind *const kind = &mu__resolver_etcd;

#define A "http://a:2379"
#define B "http://b:2379"
#define HEADER                                             \
    "\"header\":{\"cluster_id\":\"10144879847569953045\"," \
    "\"member_id\":\"12428976124636271536\",\"revision\":\"2\",\"raft_term\":\"2\"}"
#define ENDPOINTS(urls)                                                     \
    {                                                                       \
        .kind = MU__REQUEST_VARIABLE, .name = "MUSTER_ETCD", .text = (urls) \
    }
#define POST(url, ...)                                              \
    {                                                               \
        .kind = MU__REQUEST_HTTP, .name = (url), .method = "POST",  \
        .has_header = "Content-Type: application/json", __VA_ARGS__ \
    }

enum { TEXT_BYTES = 4096 };

static const char *base64(const char *text, char *out)
{
    size_t size = mu__base64_size(strlen(text));

    mu__base64_encode(text, strlen(text), out);
    out[size] = '\0';
    return out;
}

struct pair {
    const char *key;
    const char *value;
};

/* "\"kvs\":[...],\"count\":\"N\"", with a NULL key at the end of `pairs`. */
static void write_kvs(const struct pair *pairs, char *out)
{
    size_t at = 0;
    int count = 0;
    char key[512];
    char value[512];

    for (; pairs[count].key != NULL; count++)
        at += (size_t)snprintf(out + at, TEXT_BYTES - at,
                               "%s{\"key\":\"%s\",\"create_revision\":\"2\","
                               "\"mod_revision\":\"2\",\"version\":\"1\","
                               "\"value\":\"%s\",\"lease\":\"1234\"}",
                               count == 0 ? "\"kvs\":[" : ",",
                               base64(pairs[count].key, key),
                               base64(pairs[count].value, value));
    (void)snprintf(out + at, TEXT_BYTES - at, "%s\"count\":\"%d\"",
                   count == 0 ? "" : "],", count);
}

static const char *range_answer(const struct pair *pairs, char *out)
{
    char kvs[TEXT_BYTES - 256];

    write_kvs(pairs, kvs);
    (void)snprintf(out, TEXT_BYTES, "{" HEADER ",%s}", kvs);
    return out;
}

static const char *taken_answer(const struct pair *pair, char *out)
{
    char kvs[TEXT_BYTES - 256];

    write_kvs(pair, kvs);
    (void)snprintf(out, TEXT_BYTES,
                   "{" HEADER ",\"responses\":[{\"response_range\":{\"header\":"
                   "{\"revision\":\"2\"},%s}}]}",
                   kvs);
    return out;
}

/* ---- Who is there ---- */

#define KEY(task) "/muster/muster/tasks/" task

TEST(test_who_is_there)
{
    static const struct pair pairs[] = {{KEY("chief/0"), "c:1\nx\n"},
                                        {KEY("worker/0"), "a:1\ny\n"},
                                        {KEY("worker/10"), "b:1\nz\n"},
                                        {NULL, NULL}};
    static const char *const settings[] = {"tasks=chief=1,worker=2", NULL};
    char text[TEXT_BYTES];
    const struct script_row rows[] = {
        ENDPOINTS(A), POST(A "/v3/kv/range", .text = range_answer(pairs, text)),
        SCRIPT_VARIABLE("MUSTER_TYPE", "worker"), SCRIPT_END};
    mu_error why;

    script_expect(kind, rows, NULL,
                  "{\"chief\":[\"c:1\"],\"worker\":{\"0\":\"a:1\",\"10\":\"b:1\"}}",
                  "worker:-1");
    script_expect_error(kind, rows, settings, -MU_EUNAVAILABLE,
                        "etcd: /muster/muster/tasks/: 1 of 3 tasks is not there yet: "
                        "/job:worker/task:1");
    assert_int_equal(script_detect(kind, rows, NULL, &why), 1);
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_string_equal(why.message, "MUSTER_ETCD is not set");
}

/* Of many only the newest is read, and all where that or their number is another one. */
TEST(test_crowd)
{
    static const struct pair pairs[] = {{KEY("worker/0"), "a:1\ny\n"}, {NULL, NULL}};
    static const char *const settings[] = {"tasks=worker=65", NULL};
    char text[TEXT_BYTES];
    const struct script_row rows[] = {
        ENDPOINTS(A),
        POST(A "/v3/kv/range", .text = range_answer(pairs, text),
             .body = "\"1\",\"sort_order\":\"DESCEND\",\"sort_target\":\"MOD\""),
        POST(A "/v3/kv/range", .text = text, .body = "\"limit\":\"16385\"}"), SCRIPT_END};
    static const struct script_row nobody[] = {
        ENDPOINTS(A),
        POST(A "/v3/kv/range", .text = "{" HEADER "}", .body = "\"limit\":\"1\""),
        POST(A "/v3/kv/range", .text = "{" HEADER "}", .body = "\"limit\":\"4096\""),
        SCRIPT_END};

    script_expect_error(kind, rows, settings, -MU_EUNAVAILABLE,
                        "64 of 65 tasks are not there yet: /job:worker/task:1 to 64");
    script_expect_error(kind, nobody, settings, -MU_EUNAVAILABLE,
                        "65 of 65 tasks are not there yet");
}

TEST(test_nobody_is_there)
{
    static const struct script_row rows[] = {
        ENDPOINTS(A), POST(A "/v3/kv/range", .text = "{" HEADER "}"), SCRIPT_END};

    script_expect_error(kind, rows, NULL, -MU_EUNAVAILABLE, "no task is there yet");
}

/* The key of another cluster, with a name that needs care. */
TEST(test_names_in_keys)
{
    static const struct pair pairs[] = {{"/p/a%2Fb%25/tasks/ps/0", "a:1\n"},
                                        {NULL, NULL}};
    static const char *const settings[] = {"prefix=/p", "cluster_name=a/b%", NULL};
    char text[TEXT_BYTES];
    char key[128];
    char body[192];
    const struct script_row rows[] = {
        ENDPOINTS(A), POST(A "/v3/kv/range", .text = text, .body = body), SCRIPT_END};

    (void)range_answer(pairs, text);
    (void)snprintf(body, sizeof body, "{\"key\":\"%s\"",
                   base64("/p/a%2Fb%25/tasks/", key));
    script_expect(kind, rows, settings, "{\"ps\":[\"a:1\"]}", "");
}

/* The first one is down, the second has no leader, the third answers. */
TEST(test_next_endpoint)
{
    static const struct pair pairs[] = {{KEY("ps/0"), "a:1\n"}, {NULL, NULL}};
    char text[TEXT_BYTES];
    const struct script_row rows[] = {
        ENDPOINTS("http://x:1," B "/," A),
        POST("http://x:1/v3/kv/range", .code = -MU_EUNAVAILABLE,
             .text = "connection refused"),
        POST(B "/v3/kv/range", .status = 503,
             .text = "{\"error\":\"etcdserver: no leader\",\"code\":14}"),
        POST(A "/v3/kv/range", .text = range_answer(pairs, text)), SCRIPT_END};
    const struct script_row down[] = {
        ENDPOINTS("http://x:1," B),
        POST("http://x:1/v3/kv/range", .code = -MU_EDEADLINE, .text = "no answer"),
        POST(B "/v3/kv/range", .code = -MU_EUNAVAILABLE, .text = "connection refused"),
        SCRIPT_END};

    script_expect(kind, rows, NULL, "{\"ps\":[\"a:1\"]}", "");
    script_expect_error(kind, down, NULL, -MU_EUNAVAILABLE,
                        "etcd at http://b:2379: connection refused");
}

static const struct {
    struct pair pair;
    const char *words;
    int code;
} bad[] = {
    {{KEY("wroker/0"), "a:1"}, "expected TYPE/INDEX, as in \"worker/0\"", -MU_EINVALID},
    {{KEY("worker/x"), "a:1"}, "expected worker/ and an index", -MU_EINVALID},
    {{KEY("worker"), "a:1"}, "expected worker/ and an index", -MU_EINVALID},
    {{KEY("worker/0"), ""}, "tasks/worker/0: line 1: expected", -MU_EINVALID},
    {{KEY("worker/0"), "a"}, "tasks/worker/0: ", -MU_EINVALID},
    {{"/muster/x", "a:1"}, "expected keys below /muster/muster/tasks/", -MU_EDATALOSS},
    {{KEY("chief/1"), "a:1"}, "etcd: /muster/muster/tasks/: ", -MU_EINVALID},
};

TEST(test_bad_entries)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct pair pairs[] = {bad[i].pair, {NULL, NULL}};
        char text[TEXT_BYTES];
        const struct script_row rows[] = {
            ENDPOINTS(A), POST(A "/v3/kv/range", .text = range_answer(pairs, text)),
            SCRIPT_END};

        script_expect_error(kind, rows, NULL, bad[i].code, bad[i].words);
    }
}

TEST(test_bad_answers)
{
    static const struct script_row html[] = {
        ENDPOINTS(A), POST(A "/v3/kv/range", .text = "<html>"), SCRIPT_END};
    static const struct script_row old[] = {
        ENDPOINTS(A), POST(A "/v3/kv/range", .status = 404, .text = "404"), SCRIPT_END};

    script_expect_error(kind, html, NULL, -MU_EDATALOSS, "etcd at http://a:2379: ");
    script_expect_error(kind, old, NULL, -MU_EUNIMPLEMENTED, "status 404");
}

static const struct {
    const char *setting;
    const char *words;
} bad_settings[] = {
    {"endpoints=a:2379", "expected urls with commas between"},
    {"endpoints=http://a,", "expected urls with commas between"},
    {"endpoints=http://me:secret@a", "got one with a user"},
    {"endpoints=http://1,http://2,http://3,http://4,http://5,http://6,http://7,http://8,"
     "http://9,http://10,http://11,http://12,http://13,http://14,http://15,http://16,"
     "http://17",
     "expected at most 16"},
    {"prefix=/x/", "prefix: expected 1 to 128 bytes without \"/\" at the end"},
    {"tasks=worker=x", "job 1: expected TYPE=COUNT"},
    {"tasks=chief=2", "the job \"chief\" has 2 tasks; expected at most 1"},
    {"server_name=http://me:secret@a", "server_name: expected the name of a host"},
    {"server_name=a\xff", "server_name: expected the name of a host"},
    {"server_name=a b", "server_name: expected the name of a host"},
    {"user=u", "a user is set, and no password; expected setting password_file"},
    {"password=x", "a password is set, and no user"},
    {"key_file=/k", "key_file is set alone, expected certificate_file with it"},
    {"certificate_file=/k", "certificate_file is set alone, expected key_file"},
};

TEST(test_bad_settings)
{
    static const struct script_row rows[] = {ENDPOINTS(A), SCRIPT_FILE("/k", "pem"),
                                             SCRIPT_END};

    for (size_t i = 0; i < sizeof bad_settings / sizeof bad_settings[0]; i++) {
        const char *const settings[] = {bad_settings[i].setting, NULL};

        script_expect_error(kind, rows, settings, -MU_EINVALID, bad_settings[i].words);
    }
    script_expect_error(kind, NULL, NULL, -MU_EINVALID, "MUSTER_ETCD");
}

/* ---- Users ---- */

#define AUTH "/v3/auth/authenticate"
#define RENEWED 1000
#define ERROR(code, words) "{\"error\":\"etcdserver: " words "\",\"code\":" #code "}"

static const char *const user[] = {"user=me", "password=se\"cret\\", NULL};

#define LOGIN(url, ...)                                                               \
    POST(url AUTH, .body = "{\"name\":\"me\",\"password\":\"se\\u0022cret\\u005c\"}", \
         __VA_ARGS__)

TEST(test_user)
{
    static const struct pair pairs[] = {{KEY("ps/0"), "a:1\n"}, {NULL, NULL}};
    static const char *const from_file[] = {"user=me", "password_file=/p", NULL};
    static const char *const too_long[] = {"user=me", "password_file=/empty", NULL};
    char text[TEXT_BYTES];
    const struct script_row rows[] = {ENDPOINTS(A),
                                      SCRIPT_FILE("/p", "se\"cret\\\r\n"),
                                      SCRIPT_FILE("/empty", "\n"),
                                      LOGIN(A, .text = "{" HEADER ",\"token\":\"TT.1\"}"),
                                      {.kind = MU__REQUEST_HTTP,
                                       .name = A "/v3/kv/range",
                                       .method = "POST",
                                       .has_header = "Authorization: TT.1",
                                       .text = range_answer(pairs, text)},
                                      SCRIPT_END};

    script_expect(kind, rows, user, "{\"ps\":[\"a:1\"]}", "");
    script_expect(kind, rows, from_file, "{\"ps\":[\"a:1\"]}", "");
    script_expect_error(kind, rows, too_long, -MU_EINVALID,
                        "etcd: password: expected 1 to 4096 bytes, got 0");
}

/* A token that is not known any more is replaced, once in a run. */
TEST(test_token_ended)
{
    static const char *const words[] = {ERROR(16, "invalid auth token"),
                                        ERROR(3, "revision of auth store is old")};
    static const struct pair pairs[] = {{KEY("ps/0"), "a:1\n"}, {NULL, NULL}};
    char text[TEXT_BYTES];

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct script_row rows[] = {
            ENDPOINTS(A),
            LOGIN(A, .text = "{\"token\":\"old\"}"),
            LOGIN(A, .text = "{\"token\":\"new\"}", .again = RENEWED),
            {.kind = MU__REQUEST_HTTP,
             .name = A "/v3/kv/range",
             .method = "POST",
             .has_header = "Authorization: old",
             .text = words[i],
             .status = 401},
            {.kind = MU__REQUEST_HTTP,
             .name = A "/v3/kv/range",
             .method = "POST",
             .has_header = "Authorization: new",
             .again = RENEWED},
            SCRIPT_END};

        rows[4].text = range_answer(pairs, text);
        script_expect(kind, rows, user, "{\"ps\":[\"a:1\"]}", "");
        rows[4].text = words[0];
        rows[4].status = 401;
        script_expect_error(kind, rows, user, -MU_EUNAUTHENTICATED, "invalid auth token");
    }
}

/* An etcd whose users were switched off needs no token. */
TEST(test_no_users)
{
    static const struct pair pairs[] = {{KEY("ps/0"), "a:1\n"}, {NULL, NULL}};
    char text[TEXT_BYTES];
    const struct script_row rows[] = {
        ENDPOINTS(A),
        LOGIN(A, .text = ERROR(9, "authentication is not enabled"), .status = 412),
        POST(A "/v3/kv/range", .text = range_answer(pairs, text)), SCRIPT_END};

    script_expect(kind, rows, user, "{\"ps\":[\"a:1\"]}", "");
}

static const struct {
    const char *login;
    const char *range;
    int code;
    const char *words;
} refusals[] = {
    {ERROR(3, "authentication failed, invalid user ID or password"), NULL,
     -MU_EUNAUTHENTICATED, "etcd at http://a:2379 does not take user \"me\" with this"},
    {ERROR(3, "bad body {me se\\\"cret\\\\}"), NULL, -MU_EUNAUTHENTICATED,
     "with this password: etcd answered with status 400; its words are not shown"},
    {ERROR(14, "no user se\\\"cret\\\\"), NULL, -MU_EUNAVAILABLE,
     "etcd at http://a:2379: etcd answered with status 400; its words are not shown"},
    {ERROR(3, "CommonName of client sending"), NULL, -MU_EUNAUTHENTICATED,
     "expected one without it in certificate_file"},
    {ERROR(14, "no leader"), NULL, -MU_EUNAVAILABLE, "no leader"},
    {"{\"token\":7}", NULL, -MU_EDATALOSS, "has no \"token\" of 1 to"},
    {"{\"token\":\"a\\r\\nb\"}", NULL, -MU_EDATALOSS, "has no \"token\" of 1 to"},
    {"{\"token\":\"t\"}", ERROR(7, "permission denied"), -MU_EPERMISSION,
     "expected a role with readwrite for the keys that begin with /muster/muster/tasks/"},
};

TEST(test_refused_users)
{
    static const struct script_row nobody[] = {
        ENDPOINTS(A),
        POST(A "/v3/kv/range", .status = 400, .text = ERROR(3, "user name is empty")),
        SCRIPT_END};

    script_expect_error(kind, nobody, NULL, -MU_EUNAUTHENTICATED,
                        "has users; expected settings user and password_file");
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        bool is_token = strstr(refusals[i].login, "token") != NULL;
        const struct script_row rows[] = {
            ENDPOINTS(A),
            LOGIN(A, .text = refusals[i].login, .status = is_token ? 200 : 400),
            POST(A "/v3/kv/range", .text = refusals[i].range, .status = 403), SCRIPT_END};

        script_expect_error(kind, rows, user, refusals[i].code, refusals[i].words);
    }
}

/* One of several endpoints has a certificate that has run out. */
TEST(test_one_bad_certificate)
{
    static const struct pair pairs[] = {{KEY("ps/0"), "a:1\n"}, {NULL, NULL}};
    char text[TEXT_BYTES];
    const struct script_row rows[] = {
        ENDPOINTS(B "," A),
        POST(B "/v3/kv/range", .code = -MU_EUNAUTHENTICATED, .text = "it has expired"),
        POST(A "/v3/kv/range", .text = range_answer(pairs, text)), SCRIPT_END};

    script_expect(kind, rows, NULL, "{\"ps\":[\"a:1\"]}", "");
}

/* ---- Telling ---- */

static const mu_announcement one = {"muster", "worker", 1, "me:1", "0abc"};
static const mu_announcement any = {"muster", "worker", -1, "me:1", "0abc"};

#define GONE "{\"result\":{" HEADER ",\"ID\":\"1\"}}"
#define KEPT "{\"result\":{" HEADER ",\"ID\":\"1\",\"TTL\":\"10\"}}"
#define GRANTED "{" HEADER ",\"ID\":\"1\",\"TTL\":\"10\"}"
#define TAKEN "{" HEADER ",\"succeeded\":true,\"responses\":[{\"response_put\":{}}]}"

static int announce(const struct script_row *rows, const char *const *settings,
                    const mu_announcement *announcement, void **own, mu_error *error,
                    int *index)
{
    uint32_t again_ms = 0;
    int rv =
        script_announce(kind, rows, settings, announcement, own, error, index, &again_ms);

    assert_int_equal(again_ms, rv == 0 ? 10000 / 3 : 0);
    return rv;
}

TEST(test_takes_a_place)
{
    static const struct pair mine[] = {{KEY("worker/1"), "me:1\n0abc\n"}, {NULL, NULL}};
    char value[128];
    char mine_text[TEXT_BYTES];
    const struct script_row rows[] = {
        ENDPOINTS(A), POST(A "/v3/lease/keepalive", .text = GONE),
        POST(A "/v3/lease/grant", .text = GRANTED, .body = "\"TTL\":\"10\""),
        POST(A "/v3/kv/txn", .text = TAKEN, .body = base64("me:1\n0abc\n", value)),
        SCRIPT_END};
    const struct script_row again[] = {
        ENDPOINTS(A), POST(A "/v3/lease/keepalive", .text = KEPT),
        POST(A "/v3/kv/txn", .text = taken_answer(mine, mine_text)),
        POST(A "/v3/lease/revoke", .text = "{" HEADER "}"), SCRIPT_END};
    /* The answer to the first grant was lost. */
    const struct script_row exists[] = {
        ENDPOINTS(A), POST(A "/v3/lease/keepalive", .text = GONE),
        POST(A "/v3/lease/grant", .status = 400,
             .text = "{\"error\":\"etcdserver: lease already exists\",\"message\":"
                     "\"etcdserver: lease already exists\",\"code\":9}"),
        POST(A "/v3/kv/txn", .text = TAKEN), SCRIPT_END};
    const struct script_row ended[] = {
        ENDPOINTS(A),
        POST(A "/v3/lease/revoke", .status = 404,
             .text = "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}"),
        SCRIPT_END};
    void *own = NULL;
    mu_error error;
    int index;

    assert_int_equal(announce(rows, NULL, &one, &own, &error, &index), 0);
    assert_int_equal(index, 1);
    assert_int_equal(announce(again, NULL, &one, &own, &error, &index), 0);
    assert_int_equal(announce(exists, NULL, &one, &own, &error, &index), 0);
    assert_int_equal(script_withdraw(kind, again, NULL, &one, &own, &error), 0);
    assert_int_equal(script_withdraw(kind, ended, NULL, &one, &own, &error), 0);
    free(own);
}

/* Index 1 was free when it was looked for, and is not any more. */
TEST(test_first_free_place)
{
    static const struct pair there[] = {{KEY("worker/0"), "a:1\nx\n"}, {NULL, NULL}};
    static const struct pair other[] = {{KEY("worker/1"), "b:1\ny\n"}, {NULL, NULL}};
    static const char *const small[] = {"tasks=worker=2", NULL};
    char there_text[TEXT_BYTES];
    char other_text[TEXT_BYTES];
    char first[128];
    char second[128];
    const struct script_row rows[] = {
        ENDPOINTS(A),
        POST(A "/v3/lease/keepalive", .text = KEPT),
        POST(A "/v3/kv/range", .text = range_answer(there, there_text)),
        POST(A "/v3/kv/txn", .text = taken_answer(other, other_text),
             .body = base64(KEY("worker/1"), first)),
        POST(A "/v3/kv/txn", .text = TAKEN, .body = base64(KEY("worker/2"), second)),
        SCRIPT_END};
    void *own = NULL;
    mu_error error;
    int index;

    assert_int_equal(announce(rows, NULL, &any, &own, &error, &index), 0);
    assert_int_equal(index, 2);
    assert_int_equal(announce(rows, small, &any, &own, &error, &index), -MU_EUNAVAILABLE);
    assert_non_null(strstr(error.message, "all places of /muster/muster/tasks/worker/"));
    free(own);
}

#define TTL_AT(term, n)                                     \
    "{\"header\":{\"revision\":\"9\",\"raft_term\":\"" term \
    "\"},\"ID\":\"1234\",\"TTL\":\"" n "\",\"grantedTTL\":\"10\"}"
#define TTL(n) "{" HEADER ",\"ID\":\"1234\",\"TTL\":\"" n "\",\"grantedTTL\":\"10\"}"

static int announce_at(const char *other, const char *ttl, const char *clock, void **own,
                       mu_error *error)
{
    const struct script_row rows[] = {
        ENDPOINTS(A),
        POST(A "/v3/lease/keepalive", .text = KEPT),
        POST(A "/v3/kv/txn", .text = other),
        POST(A "/v3/lease/timetolive", .text = ttl, .body = "1234"),
        {.kind = MU__REQUEST_CLOCK, .name = "", .text = clock},
        SCRIPT_END};
    int index;

    return announce(rows, NULL, &one, own, error, &index);
}

/* Whoever keeps his lease while we look lives. */
TEST(test_taken_place)
{
    static const struct pair pair[] = {{KEY("worker/1"), "a:1\nx\n"}, {NULL, NULL}};
    char other[TEXT_BYTES];
    void *own = NULL;
    void *slow = NULL;
    mu_error error;

    (void)taken_answer(pair, other);
    assert_int_equal(announce_at(other, TTL("9"), "1000", &own, &error),
                     -MU_EUNAVAILABLE);
    assert_non_null(strstr(error.message,
                           "worker/1 is another process's, at a:1: it is not known yet "
                           "whether it lives, for 9 s at most"));
    assert_int_equal(announce_at(other, TTL("8"), "1001", &own, &error),
                     -MU_EUNAVAILABLE);
    assert_int_equal(announce_at(other, TTL("10"), "1002", &own, &error), -MU_EEXISTS);
    assert_non_null(strstr(error.message, "at a:1, which lives"));

    assert_int_equal(announce_at(other, TTL("2"), "1000", &slow, &error),
                     -MU_EUNAVAILABLE);
    assert_int_equal(announce_at(other, TTL("2"), "1003", &slow, &error),
                     -MU_EUNAVAILABLE);
    assert_int_equal(announce_at(other, TTL("2"), "1004", &slow, &error), -MU_EEXISTS);
    assert_int_equal(announce_at(TAKEN, TTL("2"), "1005", &slow, &error), 0);
    assert_int_equal(announce_at(other, TTL("2"), "1006", &slow, &error), -MU_EEXISTS);
    assert_non_null(strstr(error.message, "has taken this one's place"));
    free(own);
    free(slow);
}

/* What fails while etcd starts or stands still is tried again. */
TEST(test_passing_failures)
{
    static const char closing[] =
        "{\"error\":\"grpc: the client connection is closing\",\"code\":1}";
    static const struct script_row stops[] = {
        ENDPOINTS(A), POST(A "/v3/lease/keepalive", .status = 408, .text = closing),
        SCRIPT_END};
    static const struct script_row ended[] = {
        ENDPOINTS(A), POST(A "/v3/lease/keepalive", .text = KEPT),
        POST(A "/v3/kv/txn", .status = 404,
             .text = "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}"),
        SCRIPT_END};
    void *own = NULL;
    mu_error error;
    int index;

    assert_int_equal(announce(stops, NULL, &one, &own, &error, &index), -MU_EUNAVAILABLE);
    assert_non_null(strstr(error.message, "status 408"));
    assert_int_equal(announce(ended, NULL, &one, &own, &error, &index), -MU_EUNAVAILABLE);
    assert_non_null(strstr(error.message,
                           "lease for /muster/muster/tasks/worker/1 has ended"));
    free(own);
}

/* An etcd that was started again has given each lease its whole time, and one that stood
 * still has not ended those whose time is over: it is not their owners who live. */
TEST(test_taken_place_and_etcd_away)
{
    static const struct pair pair[] = {{KEY("worker/1"), "a:1\nx\n"}, {NULL, NULL}};
    static const struct {
        const char *answer;
        const char *clock;
        int code;
    } looks[] = {
        {TTL_AT("2", "3"), "1000", -MU_EUNAVAILABLE},
        {TTL_AT("3", "10"), "1001", -MU_EUNAVAILABLE},
        {TTL_AT("3", "9"), "1010", -MU_EUNAVAILABLE},
        {TTL_AT("4", "8"), "1013", -MU_EUNAVAILABLE},
        {TTL_AT("4", "-1"), "1030", -MU_EUNAVAILABLE},
        {TTL_AT("4", "0"), "1031", -MU_EUNAVAILABLE},
        {TTL_AT("4", "10"), "1032", -MU_EEXISTS},
        {"{\"header\":7}", "1033", -MU_EDATALOSS},
    };
    char other[TEXT_BYTES];
    void *own = NULL;
    mu_error error;

    (void)taken_answer(pair, other);
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        int rv = announce_at(other, looks[i].answer, looks[i].clock, &own, &error);

        if (rv != looks[i].code)
            fail_msg("look %zu: %d, expected %d: %s", i, rv, looks[i].code,
                     error.message);
    }
    free(own);
}

TEST_PROGRAM()
