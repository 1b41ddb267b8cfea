/* A pod as Kubernetes makes it: the API's address in two variables, and token, CA and
 * namespace in files at fixed paths, which is why the test has a file system of its
 * own. */
#define _GNU_SOURCE /* unshare */

#include "tests/real/cli.h"
#include "tests/real/https.h"
#include "tests/real/machine.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define PODS "/api/v1/namespaces/training/pods"
#define POD(name, ip)                                                                 \
    "{'metadata': {'name': '" name "'}, 'status': {'phase': 'Running', 'podIP': '" ip \
    "'}}"

static struct cli cli;

struct fixture {
    char folder[64];
    struct https https;
    char port[64];
};

/* From the folder of certificates into that of the account. */
static void put_ca(const struct fixture *f)
{
    char *text = https_read(f->folder, "ca.pem");

    https_write(ACCOUNT, "ca.crt", text);
    free(text);
}

static int set_up(void **state)
{
    static struct fixture f;

    (void)snprintf(f.folder, sizeof f.folder, "/tmp/muster-pod-XXXXXX");
    assert_non_null(mkdtemp(f.folder));
    https_certificates(f.folder);
    https_start(&f.https, f.folder, "api",
                "{'certificate': '%F/server.pem', 'key': '%F/server.key', 'routes': ["
                "{'path': '" PODS "?limit=500&labelSelector=app%3Dtrain', 'answers': ["
                "{'body': {'kind': 'PodList', 'apiVersion': 'v1', 'metadata': {}, "
                "'items': [" POD("b", "10.2.0.2") "," POD("a", "10.2.0.1") "]}}]}]}");
    (void)snprintf(f.port, sizeof f.port, "KUBERNETES_SERVICE_PORT=%d", f.https.port);
    https_write(ACCOUNT, "token", "secret-1\n");
    https_write(ACCOUNT, "namespace", "training");
    put_ca(&f);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[96];

    https_stop(&f->https);
    (void)snprintf(command, sizeof command, "rm -rf %s", f->folder);
    return system(command);
}

static void resolve(const struct fixture *f, const char *resolver)
{
    const char *variables[] = {"KUBERNETES_SERVICE_HOST=127.0.0.1", f->port,
                               "MUSTER_KUBERNETES_SELECTORS=worker:app=train", NULL};

    cli_start(&cli, variables, "resolve", "--resolve-ms", "0", "-o", "json", "--explain",
              "--resolver", resolver, NULL);
}

static void expect_text(const char *words)
{
    if (strstr(cli.text, words) == NULL) {
        cli_show(&cli);
        fail_msg("\"%s\" was not printed", words);
    }
}

/* By name, and recognised by itself. */
TEST_ON(test_pods, struct fixture *f, set_up, tear_down)
{
    static const char *const resolvers[] = {"kubernetes", "auto"};

    for (unsigned i = 0; i < 2; i++) {
        resolve(f, resolvers[i]);
        cli_expect_code(&cli, 0);
        expect_text("[\"10.2.0.1:8470\", \"10.2.0.2:8470\"]");
        expect_text("\"source\":\t\"kubernetes\"");
        assert_null(strstr(cli.text, "secret-1"));
        assert_int_equal(https_asked(&f->https, PODS, "Bearer secret-1", NULL), i + 1);
    }
    assert_int_equal(https_asked(&f->https, "unexpected", NULL), 0);
}

/* The file that is not there is named; without its CA, the server is not asked. */
TEST_ON(test_missing_files, struct fixture *f, set_up, tear_down)
{
    static const char *const files[] = {ACCOUNT "/token", ACCOUNT "/ca.crt",
                                        ACCOUNT "/namespace"};

    for (size_t i = 0; i < 3; i++) {
        https_write(ACCOUNT, "token", "secret-1\n");
        https_write(ACCOUNT, "namespace", "training");
        put_ca(f);
        assert_int_equal(unlink(files[i]), 0);
        resolve(f, "kubernetes");
        assert_int_not_equal(cli_wait(&cli), 0);
        expect_text(files[i]);
        assert_null(strstr(cli.text, "secret-1"));
    }
    assert_int_equal(https_asked(&f->https, "method", NULL), 0);
}

/* NULL, or what is not permitted here. */
static const char *make_pod(void)
{
    const char *reason = machine_make();

    if (reason != NULL)
        return reason;
    if (mount("none", "/var/run", "tmpfs", 0, NULL) != 0 ||
        system("mkdir -p " ACCOUNT) != 0)
        return "there is no /var/run of one's own";
    return NULL;
}

int main(void)
{
    const char *reason = https_missing() == NULL ? make_pod() : https_missing();

    if (reason != NULL)
        return needs_skip(reason);
    (void)unsetenv("KUBECONFIG");
    (void)setenv("HOME", "/nonexistent", 1);
    return tests_run(NULL, NULL);
}
