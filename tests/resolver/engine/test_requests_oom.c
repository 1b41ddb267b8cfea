/* No memory for a request: what comes of the run is nothing, or the whole. */
#include "resolver/engine/resolver.h"
#include "resolver/kinds.h"
#include "tests/support/fault.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

/* Once there was no memory, nothing that is new is asked any more. */
TEST(test_out_of_memory_stays)
{
    static const struct script_row rows[] = {SCRIPT_FILE("/a", "x"),
                                             SCRIPT_FILE("/b", "y"), SCRIPT_END};
    struct mu__requests *requests;
    struct script script;

    script_init(&script, rows);
    assert_int_equal(mu__requests_new(&script.sources.base, NULL, &requests), 0);
    assert_string_equal(mu__request_file(requests, "/a")->data, "x");
    assert_false(mu__requests_out_of_memory(requests));
    fault_arm(0);
    assert_int_equal(mu__request_file(requests, "/b")->code, -MU_ENOMEM);
    assert_true(fault_disarm());
    assert_int_equal(mu__request_file(requests, "/b")->code, -MU_ENOMEM);
    assert_string_equal(mu__request_file(requests, "/a")->data, "x");
    assert_true(mu__requests_out_of_memory(requests));
    mu__requests_free(requests);
}

static int resolve(struct script *script, mu_resolution *resolution)
{
    mu_resolver *resolver = NULL;
    struct mu__requests *requests = NULL;
    int rv = mu__resolver_new_auto(mu__resolver_kinds, NULL, &resolver);

    if (rv == 0)
        rv = mu__requests_new(&script->sources.base, NULL, &requests);
    if (rv == 0)
        rv = mu__resolver_run_detect(resolver, requests, NULL);
    if (rv == 0)
        rv = mu__resolver_run(resolver, requests, NULL, resolution);
    mu__requests_free(requests);
    mu_resolver_free(resolver);
    return rv;
}

/* A variable that there is no memory for is not one that is not set: an auto-detection
 * would take another resolver, or find none. */
TEST(test_auto_detection)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("TF_CONFIG",
                        "{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\"]},"
                        "\"task\":{\"type\":\"worker\",\"index\":0}}"),
        SCRIPT_VARIABLE("MUSTER_FILE", "/other"), SCRIPT_END};
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        struct script script;
        mu_resolution resolution;
        int rv;

        script_init(&script, rows);
        fault_arm(n);
        rv = resolve(&script, &resolution);
        failed = fault_disarm();
        assert_true(n < 5000);
        if (rv != 0) {
            assert_true(failed);
            assert_int_equal(rv, -MU_ENOMEM);
            continue;
        }
        assert_string_equal(resolution.source, "tf_config");
        assert_string_equal(resolution.task_type, "worker");
        assert_int_equal(mu_cluster_task_count(resolution.cluster, NULL), 2);
        mu_cluster_free(resolution.cluster);
    }
    assert_true(n > 20);
}

/* ---- A resolver of the program's own ---- */

static int own_detect(void *user, mu_error *ret_why)
{
    (void)user;
    (void)ret_why;
    return 1;
}

static int own_resolve(void *user, int64_t timeout_ms, mu_error *ret_error,
                       mu_resolution *ret_resolution)
{
    (void)user;
    (void)timeout_ms;
    ret_resolution->cluster = mu_cluster_new();
    if (ret_resolution->cluster == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    return mu_cluster_add(ret_resolution->cluster, "chief", 0, "a:1", ret_error);
}

static void own_ref(struct mu__own_kind *own)
{
    own->refs++;
}

static void own_unref(struct mu__own_kind *own)
{
    own->refs--;
}

static int resolve_own(struct mu__own_kind *own, mu_resolution *resolution)
{
    struct mu__own_kind *const kinds[] = {own};
    mu_resolver *resolver = NULL;
    struct mu__requests *requests = NULL;
    struct script script;
    int rv = mu__resolver_new_auto(mu__resolver_kinds, NULL, &resolver);

    script_init(&script, NULL);
    if (rv == 0)
        rv = mu__resolver_offer_own(resolver, kinds, 1);
    if (rv == 0)
        rv = mu__requests_new(&script.sources.base, NULL, &requests);
    if (rv == 0)
        rv = mu__resolver_run(resolver, requests, NULL, resolution);
    mu__requests_free(requests);
    mu_resolver_free(resolver);
    return rv;
}

/* Its functions are called or not, and nothing of a call stays. */
TEST(test_own)
{
    struct mu__own_kind own = {
        .name = "mine",
        .ref = own_ref,
        .unref = own_unref,
        .refs = 1,
        .kind = {.name = "mine", .detect = own_detect, .resolve = own_resolve}};
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        mu_resolution resolution;
        int rv;

        fault_arm(n);
        rv = resolve_own(&own, &resolution);
        failed = fault_disarm();
        assert_int_equal(own.refs, 1);
        assert_true(n < 5000);
        if (rv != 0) {
            assert_true(failed);
            assert_int_equal(rv, -MU_ENOMEM);
            continue;
        }
        assert_string_equal(resolution.source, "mine");
        assert_int_equal(mu_cluster_task_count(resolution.cluster, NULL), 1);
        mu_cluster_free(resolution.cluster);
    }
    assert_true(n > 20);
}

TEST_PROGRAM()
