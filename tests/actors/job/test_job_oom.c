/* Memory runs out while a task is stopped or a cluster spec is offered: in the pure parts
 * each allocation fails once; in the actors all allocations of one node fail for a while.
 * Nothing breaks, and once there is memory again all of it works. */
#include "node/member/offer_check.h"
#include "node/member/session_config.h"
#include "resolver/spec/cluster.h"
#include "runtime/document/manifest.h"
#include "tests/support/alloc_failure.h"
#include "tests/support/story.h"
#include "tests/support/wrap_malloc.h"

/* ---- Memory ---- */

static long countdown = -1; /* of the pure parts: which one fails, once */
static bool happened;

static bool malloc_fails(void)
{
    if (countdown >= 0 && countdown-- == 0) {
        happened = true;
        return true;
    }
    return alloc_failure_due();
}

static bool disarm(void)
{
    countdown = -1;
    return happened;
}

static void arm(long n)
{
    happened = false;
    countdown = n;
}

/* ---- Pure parts ---- */

static const char spec_text[] = "{\"worker\":[\"s0:1\",\"w1:1\"],\"ps\":[\"p0:1\"]}";

TEST(test_checks)
{
    static const char *const filters[] = {"/job:ps", "/job:worker/task:0"};
    const mu_session_config config = {sizeof config, 1, 2, filters, 2};
    mu_value *value = mu__session_config_value(&config);
    struct mu__packed packed;
    struct mu__buf *buf = mu__pack_value(value, &packed);
    const struct mu__offer offer = {mu__view_str(spec_text), mu__view_str("worker"), 0,
                                    packed};
    struct mu__offer_urls place = {"tcp://s0:1", NULL};
    mu_cluster *cluster = NULL;
    struct mu__offer_own own;
    long n = 0;

    assert_int_equal(
        mu_cluster_parse(spec_text, strlen(spec_text), "test", NULL, &cluster), 0);
    own = (struct mu__offer_own){cluster, "worker", 0};
    for (bool failed = true; failed; n++) {
        mu_error error = {0};
        int rvs[2];

        arm(n);
        rvs[0] = mu__offer_check_new(&place, &offer, &error);
        rvs[1] = mu__offer_check_own(&own, &offer, &error);
        failed = disarm();
        for (size_t i = 0; i < 2; i++)
            assert_true(rvs[i] == 0 || (failed && rvs[i] == -MU_ENOMEM));
    }
    assert_true(n > 10);
    mu_cluster_free(cluster);
    mu__buf_unref(buf);
    mu_value_free(value);
}

TEST(test_configs)
{
    static const char *const filters[] = {"/job:ps", "/job:worker/task:0"};
    const mu_session_config config = {sizeof config, 1, 2, filters, 2};
    long n = 0;

    for (bool failed = true; failed; n++) {
        mu_session_config copy = {0};
        mu_session_config read = {0};
        mu_value *value;
        char *text;
        int rvs[2];

        arm(n);
        value = mu__session_config_value(&config);
        rvs[0] = mu__session_config_copy(&config, &copy);
        rvs[1] = mu__session_config_read(value, NULL, &read);
        text = mu__session_config_filters(&config);
        failed = disarm();
        if (!failed) {
            assert_true(value != NULL && text != NULL && rvs[0] == 0 && rvs[1] == 0);
            assert_true(mu__session_config_same(&copy, &read));
        }
        mu__session_config_done(&copy);
        mu__session_config_done(&read);
        mu_value_free(value);
        free(text);
    }
    assert_true(n > 10);
}

TEST(test_manifest)
{
    struct mu__manifest_variable variable = {
        .name = "v", .dtype = MU_F32, .shards = 1, .parts_count = 1};
    struct mu__manifest_part part = {.end_row = 1};
    struct mu__manifest_file file = {.bytes = 80};
    const struct mu__manifest manifest = {.files = &file,
                                          .files_count = 1,
                                          .variables = &variable,
                                          .variables_count = 1,
                                          .parts = &part,
                                          .parts_count = 1};
    struct mu__build text = {0};
    struct mu__crc32c crc;
    long n = 0;

    mu__crc32c_init(&crc);
    mu__manifest_write(&crc, &manifest, "[\"x\"]", &text);
    assert_true(mu__build_whole(&text));
    for (bool failed = true; failed; n++) {
        struct mu__manifest read;
        mu_error error = {0};
        int rv;

        arm(n);
        rv = mu__manifest_read(&crc, text.text, text.size, &error, &read);
        failed = disarm();
        assert_int_equal(rv, failed ? -MU_ENOMEM : 0);
        assert_int_equal(error.code, rv);
        if (rv == 0)
            mu__manifest_done(&read);
    }
    assert_true(n > 4);
    mu__build_done(&text);
}

/* ---- Actors ---- */

static struct cluster_call *stop(struct cluster_task *task, const char *type,
                                 uint32_t index, int64_t timeout_ms)
{
    struct mu__job_call wanted = {
        .call.operation = MU__JOB_STOP,
        .call.timeout_ms = timeout_ms,
        .message = "memory",
        .index = index,
    };

    (void)snprintf(wanted.type, sizeof wanted.type, "%s", type);
    return cluster_job_ask(task, &wanted);
}

/* Chief, worker and server have no memory, one after the other, while a client wants the
 * worker and the server stopped. */
TEST(test_stops)
{
    alloc_failure.failed = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct cluster *cluster =
            BEGIN(.workers = 1, .servers = 1, .clients = 1, .allocs_fail = true);
        struct cluster_task *const victims[] = {cluster->chief, cluster->workers[0],
                                                cluster->servers[0]};
        struct cluster_call *calls[2];

        alloc_failure.random = sim_stream(seed, 7);
        alloc_failure.percent = 20 + 20 * (unsigned)(seed % 5);
        alloc_failure_begin(victims[seed % 3]);
        calls[0] = stop(cluster->clients[0], "worker", 0, 1000);
        calls[1] = stop(cluster->clients[0], "ps", 0, 1000);
        run_for(cluster, 300);
        alloc_failure_end();
        for (size_t i = 0; i < 2; i++) {
            int rv = cluster_wait(calls[i]);

            if (rv != 0 && rv != -MU_EDEADLINE && rv != -MU_EEXHAUSTED &&
                rv != -MU_EUNAVAILABLE)
                fail_msg("seed %llu: %d %s", (unsigned long long)seed, rv,
                         calls[i]->of.call.error.message);
        }
        assert_int_equal(sim_restart(victims[seed % 3]->node), 0);
        assert_int_equal(cluster_wait(stop(cluster->clients[0], "worker", 0, 20000)), 0);
        assert_int_equal(cluster_wait(stop(cluster->clients[0], "ps", 0, 20000)), 0);
        cluster_free(cluster);
    }
    assert_true(alloc_failure.failed > 100);
}

/* The server that is told has no memory; then it has. */
static void offer_with_alloc_failures(uint64_t seed)
{
    struct cluster *cluster = MAKE(.workers = 0, .allocs_fail = true);
    struct cluster_task *server = cluster_add(cluster, MU__LINK_UNKNOWN, 0, "s0");
    struct cluster_task *offerer = cluster_add(cluster, MU__OFFER_TYPE, 5, "o0");
    struct mu__offer_urls place = {"tcp://s0:1", NULL};
    mu_cluster *none = mu_cluster_new();
    struct mu__job_call taking = {.call.operation = MU__JOB_TAKE,
                                  .call.timeout_ms = 60000};
    struct mu__job_call offering = {
        .call.operation = MU__JOB_OFFER,
        .call.timeout_ms = 500,
        .offer = {mu__view_str(spec_text), mu__view_str("worker"), 0, {.head = NULL}},
        .recipient = "it",
    };
    struct cluster_call *take;
    int rv;

    server->spec = offerer->spec = none;
    server->offer_check = mu__offer_check_new;
    server->offer_owner = &place;
    server->takes_offer = true;
    server->only = MU__OFFER_TYPE;
    server->only_why = "it waits";
    offerer->dials_any = "tcp://s0:1";
    cluster_start(server);
    cluster_start(offerer);
    sim_run_until(cluster->sim, 500);
    alloc_failure.random = sim_stream(seed, 7);
    take = cluster_job_ask(server, &taking);
    alloc_failure.percent = 10 + 10 * (unsigned)(seed % 9);
    alloc_failure_begin(server);
    rv = cluster_wait(cluster_job_ask(offerer, &offering));
    alloc_failure_end();
    if (rv != 0 && rv != -MU_EDEADLINE && rv != -MU_ENOMEM && rv != -MU_EUNAVAILABLE)
        fail_msg("seed %llu: %d", (unsigned long long)seed, rv);
    if (take->done && take->of.call.code == 0)
        free(take->of.job.cluster);

    /* It is started again, and has memory. */
    assert_int_equal(sim_restart(server->node), 0);
    take = cluster_job_ask(server, &taking);
    offering.call.timeout_ms = 20000;
    assert_int_equal(cluster_wait(cluster_job_ask(offerer, &offering)), 0);
    assert_int_equal(cluster_wait(take), 0);
    assert_string_equal(take->of.job.cluster, spec_text);
    free(take->of.job.cluster);
    cluster_free(cluster);
    mu_cluster_free(none);
}

TEST(test_offers)
{
    alloc_failure.failed = 0;
    for (uint64_t seed = 0; seed < 90; seed++)
        offer_with_alloc_failures(seed);
    assert_true(alloc_failure.failed > 100);
}

TEST_PROGRAM()
