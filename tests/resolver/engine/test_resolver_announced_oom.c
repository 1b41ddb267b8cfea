/* Memory that is missing anywhere while the resolvers file, directory and etcd find out
 * who is there, or tell where this task is: an error, and nothing leaks or breaks. */
#include "resolver/kinds.h"
#include "tests/support/fault.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

enum { STEPS_MAX = 5000 };

static const struct script_row *rows;

/* The same as the script's, but for memory: strdup() is not counted. */
static void answer(struct fake_sources *sources, struct mu__exchange *exchange)
{
    const struct script_row *row = rows;

    (void)sources;
    while (row->name != NULL && (row->kind != exchange->request.kind ||
                                 strcmp(row->name, exchange->request.name) != 0))
        row++;
    if (row->name == NULL) {
        exchange->answer.code =
            mu_error_set(&exchange->answer.error, -MU_ENOTFOUND, "none");
    } else {
        exchange->answer.data = strdup(row->text);
        assert_non_null(exchange->answer.data);
        exchange->answer.size = strlen(row->text);
        exchange->answer.status = row->kind == MU__REQUEST_HTTP ? 200 : 0;
    }
}

static int told(const struct mu__resolver_kind *kind, const struct mu__pass *pass,
                mu_error *error)
{
    mu_announcement any = {"muster", "worker", -1, "me:1", "0abc"};
    uint32_t again_ms;
    void *own = NULL;
    int rv = kind->announce(pass, &any, error, &own, &any.index, &again_ms);

    if (rv == 0)
        rv = kind->withdraw(pass, &any, error, &own);
    free(own);
    return rv;
}

static int work(const struct mu__resolver_kind *kind, bool announces)
{
    struct fake_sources sources;
    struct mu__settings settings;
    struct mu__requests *requests = NULL;
    mu_resolution resolution;
    mu_error error = {0};
    int rv;

    fake_sources_init(&sources, answer);
    rv = mu__requests_new(&sources.base, NULL, &requests);
    if (rv != 0)
        return rv;
    mu_resolution_init(&resolution);
    rv = mu__settings_init(&settings, kind->name, kind->settings);
    if (rv == 0) {
        rv = announces ? told(kind, &(struct mu__pass){requests, &settings}, &error)
                       : kind->resolve(&(struct mu__pass){requests, &settings}, &error,
                                       &resolution);
        assert_true(rv == 0 || error.message[0] != '\0');
        mu__settings_done(&settings);
    }
    mu_cluster_free(resolution.cluster);
    mu__requests_free(requests);
    return rv;
}

/* A variable that there is no memory to ask for reads as absent, and some of what is
 * missing is answered with another error than "out of memory". */
static void walk(const struct mu__resolver_kind *kind, bool announces,
                 const struct script_row *with)
{
    long n = 0;

    rows = with;
    for (;; n++) {
        int rv;

        assert_true(n < STEPS_MAX);
        fault_arm(n);
        rv = work(kind, announces);
        if (!fault_disarm()) {
            assert_int_equal(rv, 0);
            break;
        }
        assert_true(rv <= 0);
    }
    assert_true(n > 5);
}

TEST(test_file)
{
    static const struct script_row cluster[] = {
        SCRIPT_VARIABLE("MUSTER_CLUSTER_FILE", "/x"),
        SCRIPT_FILE("/x", "{\"worker\":[\"a:1\",\"b:1\"]}"), SCRIPT_END};
    static const struct script_row config[] = {
        SCRIPT_VARIABLE("MUSTER_CLUSTER_FILE", "/x"),
        SCRIPT_FILE("/x", "{\"cluster\":{\"ps\":[\"a:1\"]}}"), SCRIPT_END};

    walk(&mu__resolver_file, false, cluster);
    walk(&mu__resolver_file, false, config);
    assert_false(fault_happened);
}

TEST(test_directory)
{
    static const struct script_row with[] = {
        SCRIPT_VARIABLE("MUSTER_CLUSTER_DIRECTORY", "/d"),
        {.kind = MU__REQUEST_CLOCK, .name = "", .text = "1700000000"},
        {.kind = MU__REQUEST_FOLDER, .name = "/d", .text = "chief-0\nworker-0\n"},
        SCRIPT_FILE("/d/chief-0", "c:1\nx\nuntil 1700000009\n"),
        SCRIPT_FILE("/d/worker-0", "a:1\n"),
        {.kind = MU__REQUEST_WRITE, .name = "/d/worker-1", .text = ""},
        {.kind = MU__REQUEST_REMOVE, .name = "/d/worker-1", .text = ""},
        SCRIPT_END,
    };

    walk(&mu__resolver_directory, false, with);
    walk(&mu__resolver_directory, true, with);
    assert_false(fault_happened);
}

TEST(test_etcd)
{
    static const struct script_row with[] = {
        SCRIPT_VARIABLE("MUSTER_ETCD", "http://a"),
        {.kind = MU__REQUEST_HTTP,
         .name = "http://a/v3/kv/range",
         .text = "{\"header\":{},\"kvs\":[{\"key\":"
                 "\"L211c3Rlci9tdXN0ZXIvdGFza3Mvd29ya2VyLzA=\",\"create_revision\":\"2\","
                 "\"mod_revision\":\"2\",\"version\":\"1\",\"value\":\"YToxCngK\","
                 "\"lease\":\"1234\"}],\"count\":\"1\"}"},
        {.kind = MU__REQUEST_HTTP,
         .name = "http://a/v3/lease/keepalive",
         .text = "{\"result\":{\"ID\":\"1\"}}"},
        {.kind = MU__REQUEST_HTTP,
         .name = "http://a/v3/lease/grant",
         .text = "{\"header\":{},\"ID\":\"1\",\"TTL\":\"10\"}"},
        {.kind = MU__REQUEST_HTTP,
         .name = "http://a/v3/kv/txn",
         .text = "{\"header\":{},\"succeeded\":true}"},
        {.kind = MU__REQUEST_HTTP,
         .name = "http://a/v3/lease/revoke",
         .text = "{\"header\":{}}"},
        SCRIPT_END,
    };

    walk(&mu__resolver_etcd, false, with);
    walk(&mu__resolver_etcd, true, with);
    assert_false(fault_happened);
}

TEST_PROGRAM()
