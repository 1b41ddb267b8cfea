/* Every allocation of the resolvers of Google's cloud fails once: an error, nothing
 * leaked. The answers are there from a script that keeps its own memory. */
#include "resolver/engine/exchange.h"
#include "resolver/engine/kind.h"
#include "resolver/kinds.h"
#include "tests/support/fake_sources.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#define MEMBER(name) "{\"instance\": \"zones/z/instances/" name "\"}"
#define INSTANCE(name, ip) \
    "{\"name\": \"" name "\", \"networkInterfaces\": [{\"networkIP\": \"" ip "\"}]}"

/* What a request is answered with: the first whose word stands in its name. */
static const struct {
    enum mu__request_kind kind;
    const char *word;
    const char *text;
} answers[] = {
    {MU__REQUEST_CLOCK, "", "1700000000"},
    {MU__REQUEST_VARIABLE, "GCE_METADATA_HOST", "h"},
    {MU__REQUEST_FILE, "/account",
     "{\"type\": \"service_account\", \"client_email\": \"a\", \"private_key\": \"k\", "
     "\"private_key_id\": \"i\"}"},
    {MU__REQUEST_FILE, "/user",
     "{\"type\": \"authorized_user\", \"client_id\": \"a\", \"client_secret\": \"b\", "
     "\"refresh_token\": \"c\"}"},
    {MU__REQUEST_SIGNATURE, "RS256", "signature"},
    {MU__REQUEST_HTTP, "oauth2.googleapis.com/token", "{\"access_token\": \"t\"}"},
    {MU__REQUEST_HTTP, "default/token", "{\"access_token\": \"t\"}"},
    {MU__REQUEST_HTTP, "project-id", "p"},
    {MU__REQUEST_HTTP, "instance/zone", "projects/1/zones/z"},
    {MU__REQUEST_HTTP, "instance/name", "b"},
    {MU__REQUEST_HTTP, "created-by", "projects/1/zones/z/instanceGroupManagers/g"},
    {MU__REQUEST_HTTP, "agent-worker-number", "1"},
    {MU__REQUEST_HTTP, "worker-network-endpoints", "a:b:10.0.0.2,a:b:10.0.0.3"},
    {MU__REQUEST_HTTP, "accelerator-type", "v2-16"},
    {MU__REQUEST_HTTP, "tpu-env", ""},
    {MU__REQUEST_HTTP, "network-interfaces", "10.0.0.1"},
    {MU__REQUEST_PROGRAM, "/bin/sh", "t\n"},
    {MU__REQUEST_HTTP, "pageToken=x", "{\"items\": [" MEMBER("b") "]}"},
    {MU__REQUEST_HTTP, "listInstances",
     "{\"items\": [" MEMBER("a") "], \"nextPageToken\": \"x\"}"},
    {MU__REQUEST_HTTP, "/instances?",
     "{\"items\": [" INSTANCE("a", "10.0.0.1") "," INSTANCE("b", "10.0.0.2") "]}"},
    {MU__REQUEST_HTTP, "discovery", "{\"rootUrl\": \"https://r/\"}"},
    {MU__REQUEST_HTTP, "/queuedResources/q",
     "{\"state\": {\"state\": \"ACTIVE\"}, "
     "\"tpu\": {\"nodeSpec\": [{\"nodeId\": \"n\"}]}}"},
    {MU__REQUEST_HTTP, "/queuedResources?",
     "{\"queuedResources\": [{\"tpu\": {\"nodeSpec\": [{\"nodeId\": \"m\"}]}}]}"},
    {MU__REQUEST_HTTP, "/nodes/n",
     "{\"state\": \"READY\", \"networkEndpoints\": [{\"ipAddress\": \"10.0.0.1\"}]}"},
};

/* Out of memory here counts like out of memory anywhere. */
static void answer_one(struct fake_sources *sources, struct mu__exchange *exchange)
{
    struct mu__answer *answer = &exchange->answer;
    size_t i = 0;

    (void)sources;
    while (i < sizeof answers / sizeof answers[0] &&
           (answers[i].kind != exchange->request.kind ||
            strstr(exchange->request.name, answers[i].word) == NULL))
        i++;
    if (i == sizeof answers / sizeof answers[0]) {
        answer->code = mu_error_set(&answer->error, -MU_ENOTFOUND, "not there");
    } else {
        answer->size = strlen(answers[i].text);
        answer->data = malloc(answer->size + 1);
        if (answer->data == NULL)
            answer->code = mu_error_set(&answer->error, -MU_ENOMEM, "out of memory");
        else
            memcpy(answer->data, answers[i].text, answer->size + 1);
        answer->status = exchange->request.kind == MU__REQUEST_HTTP ? 200 : 0;
        (void)snprintf(answer->content_type, sizeof answer->content_type,
                       "application/json");
        (void)snprintf(answer->header, sizeof answer->header, "Google");
    }
}

/* One query with settings as pairs. */
static int evaluate(const struct mu__resolver_kind *kind, const char *const *settings,
                    mu_error *ret_error)
{
    struct fake_sources sources;
    struct mu__settings set = {0};
    struct mu__requests *requests = NULL;
    mu_resolution resolution;
    int rv = mu__settings_init(&set, kind->name, kind->settings);

    fake_sources_init(&sources, answer_one);
    mu_resolution_init(&resolution);
    for (; rv == 0 && *settings != NULL; settings += 2)
        rv = mu__settings_set(&set, settings[0], settings[1], ret_error);
    if (rv == 0)
        rv = mu__requests_new(&sources.base, NULL, &requests);
    if (rv == 0) {
        rv = kind->resolve(&(struct mu__pass){requests, &set}, ret_error, &resolution);
        if (rv != 0)
            assert_int_equal(ret_error->code, rv);
    }
    mu_cluster_free(resolution.cluster);
    mu__requests_free(requests);
    if (set.values != NULL)
        mu__settings_done(&set);
    return rv;
}

/* An absent variable and one that there is no memory for look alike, and what is said
 * beside may be missing: so a failure may also go unnoticed, or lead to another error. */
static void walk_and_check(const struct mu__resolver_kind *kind,
                           const char *const *settings)
{
    unsigned short_of_memory = 0;
    bool failed = true;

    for (long n = 0; failed; n++) {
        mu_error error = {0};
        int rv;

        fault_arm(n);
        rv = evaluate(kind, settings, &error);
        failed = fault_disarm();
        if (!failed && rv != 0)
            fail_msg("%s", error.message);
        short_of_memory += rv == -MU_ENOMEM;
        assert_true(n < 10000);
        assert_true(failed || n >= 20);
    }
    assert_true(short_of_memory > 10);
}

TEST(test_gce)
{
    static const char *const by_itself[] = {NULL};
    static const char *const account[] = {"credentials", "/account", NULL};
    static const char *const user[] = {"credentials", "/user", NULL};
    static const char *const command[] = {"token_command", "c", NULL};

    walk_and_check(&mu__resolver_gce, by_itself);
    walk_and_check(&mu__resolver_gce, account);
    walk_and_check(&mu__resolver_gce, user);
    walk_and_check(&mu__resolver_gce, command);
}

TEST(test_tpu)
{
    static const char *const by_itself[] = {NULL};
    static const char *const named[] = {
        "tpu",   "n,grpc://10.0.0.9",   "coordinator_name",
        "chief", "coordinator_address", "a:1",
        NULL};
    static const char *const discovered[] = {"tpu", "projects/p/locations/z/nodes/n",
                                             "discovery_url", "https://discovery", NULL};
    static const char *const queued[] = {
        "tpu", "projects/p/locations/z/queuedResources/q,grpc://10.0.0.9", NULL};

    walk_and_check(&mu__resolver_tpu, by_itself);
    walk_and_check(&mu__resolver_tpu, named);
    walk_and_check(&mu__resolver_tpu, discovered);
    walk_and_check(&mu__resolver_tpu, queued);
}

TEST_PROGRAM()
