/* Every allocation of the resolver dns and of the text of records fails once. */
#include "resolver/engine/dns_records.h"
#include "resolver/kinds.h"
#include "tests/support/fault.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

static int read_text(char **ret_text)
{
    struct mu__dns_records records = {0};
    size_t size;
    int rv = mu__dns_records_add_service(&records, 1, 7, 80, "z.A.b");

    if (rv == 0)
        rv = mu__dns_records_add_service(&records, 1, 7, 80, "y.a.b");
    if (rv == 0)
        *ret_text = mu__dns_records_text(&records, &size);
    if (rv == 0 && *ret_text == NULL)
        rv = -MU_ENOMEM;
    mu__dns_records_done(&records);
    return rv;
}

TEST(test_answers)
{
    char *text = NULL;
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        int rv;

        fault_arm(n);
        rv = read_text(&text);
        failed = fault_disarm();
        assert_int_equal(rv, failed ? -MU_ENOMEM : 0);
    }
    assert_int_equal(n, 3); /* the records, the text, and nothing */
    assert_string_equal(text, "1 7 80 y.a.b\n1 7 80 z.a.b\n");
    free(text);
}

static int resolve_with(const struct mu__pass *pass, mu_resolution *resolution)
{
    const struct mu__resolver_kind *kind = &mu__resolver_dns;
    mu_error error = {0};
    int rv;

    mu_resolution_init(resolution);
    rv = kind->resolve(pass, &error, resolution);
    assert_int_equal(rv, error.code);
    if (rv != 0) {
        mu_cluster_free(resolution->cluster);
        resolution->cluster = NULL;
    }
    return rv;
}

static int resolve(struct script *script, mu_resolution *resolution)
{
    static const char *const texts[][2] = {
        {"names", "worker=w.test:1,ps=_ps.test"}, {"address", "ip"}, {"host", "w-0"}};
    struct mu__settings settings;
    struct mu__requests *requests;
    int rv = mu__requests_new(&script->sources.base, NULL, &requests);

    if (rv != 0)
        return rv;
    rv = mu__settings_init(&settings, "dns", mu__resolver_dns.settings);
    if (rv == 0) {
        for (size_t i = 0; i < sizeof texts / sizeof texts[0] && rv == 0; i++)
            rv = mu__settings_set(&settings, texts[i][0], texts[i][1], NULL);
        if (rv == 0)
            rv = resolve_with(&(struct mu__pass){requests, &settings}, resolution);
        mu__settings_done(&settings);
    }
    mu__requests_free(requests);
    return rv;
}

/* What stands in no setting is as it is by default, also when there is no memory to ask
 * for its variable; the outcome is the whole one or none. */
TEST(test_resolver)
{
    static const struct script_row rows[] = {
        SCRIPT(ADDRESSES, .name = "w.test", .text = "10.0.0.1\n10.0.0.2\n"),
        SCRIPT(SERVICES, .name = "_ps.test", .text = "0 0 7 ps-0.test\n"),
        SCRIPT(ADDRESSES, .name = "ps-0.test", .text = "10.0.0.3\n"),
        SCRIPT(ADDRESSES, .name = "w-0", .text = "10.0.0.2\n"),
        SCRIPT_END,
    };
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        struct script script;
        mu_resolution resolution;
        char *json;
        int rv;

        script_init(&script, rows);
        fault_arm(n);
        rv = resolve(&script, &resolution);
        failed = fault_disarm();
        assert_true(n < 1000);
        if (rv != 0) {
            assert_true(failed && rv == -MU_ENOMEM);
            continue;
        }
        json = mu_cluster_to_json(resolution.cluster);
        assert_string_equal(json, "{\"ps\":[\"10.0.0.3:7\"],\"worker\":[\"10.0.0.1:1\","
                                  "\"10.0.0.2:1\"]}");
        assert_string_equal(resolution.task_type, "worker");
        assert_int_equal(resolution.task_index, 1);
        free(json);
        mu_cluster_free(resolution.cluster);
    }
    assert_true(n > 20);
}

TEST_PROGRAM()
