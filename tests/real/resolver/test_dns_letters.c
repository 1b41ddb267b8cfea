/* Names with letters beyond ASCII, looked up by the system. In a network and a file
 * system of the test's own, where this machine's DNS server is the test's. The locale is
 * that of a program which has set none. */
#define _GNU_SOURCE /* unshare */

#include "tests/real/machine.h"

#include <muster/resolver.h>

#include <dlfcn.h>
#include <locale.h>
#include <netdb.h>

static const char hosts[] = "127.0.0.1 ready.test\n127.0.0.7 xn--bcher-kva.test\n";

static int open_dns(void **state)
{
    static struct dnsmasq dnsmasq;

    dnsmasq_open(&dnsmasq, 53, "", hosts);
    *state = &dnsmasq;
    return 0;
}

static int close_dns(void **state)
{
    dnsmasq_close(*state);
    return 0;
}

static int resolve(const char *names, int64_t timeout_ms, mu_error *ret_error,
                   mu_cluster **ret_cluster)
{
    mu_resolver *resolver;
    int rv = mu_resolver_new("dns", ret_error, &resolver);

    if (rv != 0)
        return rv;
    rv = mu_resolver_set(resolver, "names", names, ret_error);
    if (rv == 0)
        rv = mu_resolver_cluster(resolver, timeout_ms, ret_error, ret_cluster);
    mu_resolver_free(resolver);
    return rv;
}

TEST_WITH(test_letters, open_dns, close_dns)
{
    mu_cluster *cluster = NULL;
    mu_error error = {0};

    if (resolve("worker=b\xC3\xBC"
                "cher.test:1,ps=xn--bcher-kva.test:2",
                SOON_MS, &error, &cluster) != 0)
        fail_msg("%s", error.message);
    assert_string_equal(mu_cluster_address(cluster, "worker", 0), "127.0.0.7:1");
    assert_string_equal(mu_cluster_address(cluster, "ps", 0), "127.0.0.7:2");
    mu_cluster_free(cluster);
}

/* What is no UTF-8, or what nobody has: an error that names it. */
TEST_WITH(test_other_letters, open_dns, close_dns)
{
    static const char *const names[] = {"b\xFC"
                                        "cher.test",
                                        "b\xC3\xA4"
                                        "cher.test"};
    mu_cluster *cluster;
    char setting[64];
    mu_error error;

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(setting, sizeof setting, "worker=%s:1", names[i]);
        assert_int_not_equal(resolve(setting, 0, &error, &cluster), 0);
        assert_non_null(strstr(error.message, "cher.test: "));
    }
}

/* NULL, or what is missing. The system loads it when it is first needed. */
static const char *check_letters(void)
{
    void *library = NULL;
    const char *missing;
    locale_t letters;

#ifdef AI_IDN
    library = dlopen("libidn2.so.0", RTLD_NOW);
#endif
    if (library == NULL)
        return "the system's look-ups have ASCII alone";
    (void)dlclose(library);
    letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (letters == (locale_t)0)
        return "there is no locale C.UTF-8";
    freelocale(letters);
    missing = needs_programs("dnsmasq", NULL);
    return missing == NULL ? machine_make_names() : missing;
}

NEEDS_PROGRAM(check_letters(), NULL, NULL)
