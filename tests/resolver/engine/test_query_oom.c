/* Every allocation of an query fails once: a resolver with its settings, requests, what
 * they keep, a tree, and what is explained of it. */
#include "resolver/engine/resolver.h"
#include "tests/support/fault.h"
#include "tests/support/slow_sources.h"
#include "tests/support/test.h"

enum { FAULTS_MAX = 3000 };

static mu_resolver *resolver;
static mu_resolution found;

static int resolve(const struct mu__pass *pass, mu_error *ret_error,
                   mu_resolution *ret_resolution)
{
    static const char *const headers[] = {"A: b", NULL};
    const struct mu__request_tls tls = {.ca = "c", .certificate = "d", .key = "e"};
    const struct mu__request request = {
        .kind = MU__REQUEST_HTTP,
        .name = "http://h/x",
        .headers = headers,
        .tls = &tls,
        .body = "body",
        .body_size = 4,
        .secret = "s",
        .dns_server = "d",
        .header = "ETag",
        .method = "POST",
    };
    const struct mu__answer *answer = mu__requests_get(pass->requests, &request);
    int rv;

    rv = mu__answer_check(answer, "it", ret_error);
    if (rv != 0)
        return rv;
    mu__requests_explain(pass->requests, "port %s", mu__setting(pass, 0));
    if (answer->parsed == NULL) {
        void *parsed = malloc(8);

        if (parsed == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
        mu__answer_set_parsed(answer, parsed, free);
    }
    return mu__resolution_add_host(ret_resolution, "it", "worker", 0, "h", 1, ret_error);
}

static const struct mu__setting_spec specs[] = {
    {.name = "port", .initial = "1", .help = "a port"}, {.name = NULL}};

static const struct mu__resolver_kind kind = {
    .name = "it", .settings = specs, .resolve = resolve};

static int run(struct slow_sources *sources, struct mu__requests *requests,
               mu_error *ret_error)
{
    (void)sources;
    return mu__resolver_run(resolver, requests, ret_error, &found);
}

/* The union of what is asked for and of a fixed answer. */
static int make(mu_error *ret_error)
{
    mu_resolver *members[2] = {NULL, NULL};
    mu_cluster *cluster = mu_cluster_new();
    int rv = -MU_ENOMEM;

    if (cluster != NULL)
        rv = mu_cluster_add(cluster, "ps", 0, "p:1", ret_error);
    if (rv == 0)
        rv = mu__resolver_new_kind(&kind, ret_error, &members[0]);
    if (rv == 0)
        rv = mu_resolver_set(members[0], "port", "2", ret_error);
    if (rv == 0)
        rv = mu_resolver_new_static(cluster, "m:1", "worker", 0, ret_error, &members[1]);
    if (rv == 0)
        rv = mu_resolver_new_union(members, 2, ret_error, &resolver);
    if (rv != 0) {
        mu_resolver_free(members[0]);
        mu_resolver_free(members[1]);
    }
    mu_cluster_free(cluster);
    return rv;
}

/* 0, or the error. */
static int work(mu_error *ret_error)
{
    static const struct slow_row rows[] = {{"http://h/x", "503 200", 10},
                                           {NULL, NULL, 0}};
    static struct slow_sources sources;
    mu_value *explained;
    int rv = make(ret_error);

    if (rv != 0)
        return rv;
    rv = slow_query(&sources, rows, run, 5000, ret_error);
    if (rv == 0)
        mu_cluster_free(found.cluster);
    if (sources.notes.requests != NULL) {
        explained = mu__resolver_explained(resolver, sources.notes.requests);
        mu__resolver_set_explained(resolver, explained);
    }
    slow_done(&sources);
    mu_resolver_free(resolver);
    return rv;
}

TEST(test_every_allocation_can_fail)
{
    bool failed = true;
    long n = 0;

    for (; failed; n++) {
        mu_error error = {0};
        int rv;

        fault_arm(n);
        rv = work(&error);
        failed = fault_disarm();
        assert_true(n < FAULTS_MAX);
        if (rv != 0 && rv != -MU_ENOMEM)
            fail_msg("allocation %ld: %d, %s", n, rv, error.message);
        if (!failed)
            assert_int_equal(rv, 0);
    }
    assert_true(n > 40);
}

TEST_PROGRAM()
