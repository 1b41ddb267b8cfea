/* The resolver etcd and a real etcd that has certificates and users. */
#include "tests/real/etcd.h"
#include "tests/real/https.h"

enum { NAME_BYTES = 128 };

struct fixture {
    char folder[64]; /* of certificates and passwords */
    struct etcd etcd;
    char endpoint[64];
    char certificate[NAME_BYTES];
    char ca[NAME_BYTES];
    mu_resolver *resolver;
};

static struct fixture fixture;
static struct nodes nodes;

static int set_up(void **state)
{
    memset(&fixture, 0, sizeof fixture);
    memset(&nodes, 0, sizeof nodes);
    (void)pthread_mutex_init(&nodes.log.lock, NULL);
    *state = &fixture;
    (void)snprintf(fixture.folder, sizeof fixture.folder, "/tmp/muster-secure-XXXXXX");
    assert_non_null(mkdtemp(fixture.folder));
    https_certificates(fixture.folder);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[NAME_BYTES];

    mu_resolver_free(f->resolver);
    if (f->etcd.pid > 0)
        etcd_close(&f->etcd);
    if (f->folder[0] != '\0') {
        (void)snprintf(command, sizeof command, "rm -r %s", f->folder);
        assert_int_equal(system(command), 0);
    }
    (void)pthread_mutex_destroy(&nodes.log.lock);
    return 0;
}

static const char *in_folder(const struct fixture *f, const char *name, char *out)
{
    (void)snprintf(out, NAME_BYTES, "%s/%s", f->folder, name);
    return out;
}

/* `server` names its certificate; NULL: http. */
static void begin(struct fixture *f, const char *server, bool checks_clients)
{
    if (server != NULL)
        f->etcd.certificate = in_folder(f, server, f->certificate);
    if (checks_clients)
        f->etcd.client_ca = in_folder(f, "ca.pem", f->ca);
    etcd_open(&f->etcd);
    (void)snprintf(f->endpoint, sizeof f->endpoint, "%s://127.0.0.1:%d",
                   server == NULL ? "http" : "https", f->etcd.port);
}

static void set(mu_resolver *resolver, const char *name, const char *value)
{
    mu_error error = {0};

    if (mu_resolver_set(resolver, name, value, &error) != 0)
        fail_msg("%s", error.message);
}

static mu_resolver *make(struct fixture *f)
{
    mu_error error = {0};
    mu_resolver *resolver = NULL;

    if (mu_resolver_new("etcd", &error, &resolver) != 0)
        fail_msg("%s", error.message);
    set(resolver, "endpoints", f->endpoint);
    set(resolver, "ttl", "3");
    set(resolver, "tasks", "chief=1");
    return resolver;
}

static void make_resolver(struct fixture *f)
{
    mu_resolver_free(f->resolver);
    f->resolver = make(f);
}

static void set_file(struct fixture *f, const char *name, const char *file)
{
    char path[NAME_BYTES];

    set(f->resolver, name, in_folder(f, file, path));
}

static mu_node *open_chief(struct fixture *f, unsigned resolve_ms, mu_error *ret_error)
{
    mu_node_options options;
    mu_node *node = NULL;

    *ret_error = (mu_error){0};
    nodes_options(&nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = f->resolver;
    options.resolve_ms = resolve_ms;
    options.bind_address = "tcp://127.0.0.1:0";
    (void)mu_node_open(&options, ret_error, &node);
    return node;
}

static void expect_open(struct fixture *f)
{
    mu_error error;
    mu_node *node = open_chief(f, SOON_MS, &error);

    if (node == NULL || error.code != 0)
        fail_msg("%s; the log:\n%s", error.message, nodes.log.text);
    assert_int_equal(mu_node_task_count(node, "chief"), 1);
    assert_int_equal(mu_node_close(node, SOON_MS, &error), 0);
}

static const char *expect_refused(struct fixture *f, unsigned resolve_ms, int code,
                                  const char *words)
{
    static mu_error error;
    mu_node *node = open_chief(f, resolve_ms, &error);

    if (error.code != code || strstr(error.message, words) == NULL)
        fail_msg("%d: %s", error.code, error.message);
    (void)mu_node_close(node, SOON_MS, NULL);
    return error.message;
}

/* ---- Certificates ---- */

TEST_ON(test_https, struct fixture *f, set_up, tear_down)
{
    assert_non_null(f);
    begin(f, "server", false);
    make_resolver(f);
    (void)expect_refused(f, SOON_MS, -MU_EUNAUTHENTICATED, "certificate");
    set_file(f, "ca_file", "ca.pem");
    expect_open(f);
    set_file(f, "ca_file", "other_ca.pem");
    (void)expect_refused(f, SOON_MS, -MU_EUNAUTHENTICATED, "certificate");
    set_file(f, "ca_file", "not_there.pem");
    (void)expect_refused(f, SOON_MS, -MU_ENOTFOUND, "etcd: ca_file: file ");
}

/* etcd cuts the connection. Its reason comes with that, or too late to be read; then it
 * looks as if etcd went away, and is tried again. */
static void expect_no_entrance(struct fixture *f)
{
    mu_error error;
    mu_node *node = open_chief(f, 2000, &error);

    assert_true(error.code == -MU_EUNAUTHENTICATED || error.code == -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "etcd at https://127.0.0.1:"));
    (void)mu_node_close(node, SOON_MS, NULL);
}

TEST_ON(test_client_certificate, struct fixture *f, set_up, tear_down)
{
    assert_non_null(f);
    begin(f, "server", true);
    make_resolver(f);
    set_file(f, "ca_file", "ca.pem");
    expect_no_entrance(f);
    set_file(f, "certificate_file", "client.pem");
    (void)expect_refused(f, SOON_MS, -MU_EINVALID,
                         "certificate_file is set alone, expected key_file with it");
    set_file(f, "key_file", "client.key");
    expect_open(f);
}

TEST_ON(test_expired_certificate, struct fixture *f, set_up, tear_down)
{
    assert_non_null(f);
    begin(f, "expired", false);
    make_resolver(f);
    set_file(f, "ca_file", "ca.pem");
    (void)expect_refused(f, SOON_MS, -MU_EUNAUTHENTICATED, "certificate has expired");
}

TEST_ON(test_server_name, struct fixture *f, set_up, tear_down)
{
    assert_non_null(f);
    begin(f, "elsewhere", false);
    make_resolver(f);
    set_file(f, "ca_file", "ca.pem");
    (void)expect_refused(f, SOON_MS, -MU_EUNAUTHENTICATED, "127.0.0.1");
    set(f->resolver, "server_name", "elsewhere.example");
    expect_open(f);
}

/* ---- Users ---- */

/* etcdctl, as etcd's root once it has users. */
static void ctl(struct fixture *f, const char *arguments)
{
    char command[512];

    (void)snprintf(command, sizeof command,
                   "cd %s && ETCDCTL_API=3 etcdctl --cacert ca.pem --cert client.pem "
                   "--key client.key --endpoints %s %s > ctl.log 2>&1",
                   f->folder, f->endpoint, arguments);
    if (system(command) != 0)
        fail_msg("%s: see %s/ctl.log", command, f->folder);
}

static void make_users(struct fixture *f)
{
    static const char *const steps[] = {
        "user add root:'root word'",
        "user grant-role root root",
        "role add muster",
        "role grant-permission muster readwrite --prefix=true /muster/",
        "user add job:'pass \"word\"'",
        "user grant-role job muster",
        "user add poor:'poor word'",
        "auth enable",
    };

    ctl(f, "role add root");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        ctl(f, steps[i]);
}

TEST_ON(test_users, struct fixture *f, set_up, tear_down)
{
    const char *words;

    assert_non_null(f);
    begin(f, NULL, false);
    make_users(f);
    make_resolver(f);
    (void)expect_refused(f, SOON_MS, -MU_EUNAUTHENTICATED, "has users; expected");
    set(f->resolver, "user", "job");
    (void)expect_refused(f, SOON_MS, -MU_EINVALID, "a user is set, and no password");
    set(f->resolver, "password", "guessed word");
    words = expect_refused(f, SOON_MS, -MU_EUNAUTHENTICATED,
                           "does not take user \"job\" with this password");
    assert_null(strstr(words, "guessed"));
    https_write(f->folder, "word", "pass \"word\"\n");
    set(f->resolver, "password", NULL);
    set_file(f, "password_file", "word");
    expect_open(f);
    set(f->resolver, "user", "poor");
    set(f->resolver, "password", "poor word");
    (void)expect_refused(f, SOON_MS, -MU_EPERMISSION,
                         "expected a role with readwrite for the keys that begin with "
                         "/muster/muster/tasks/");
}

/* Add all texts of a value to `out`, line by line. */
static void add_texts(const mu_value *value, char *out, size_t size)
{
    const char *text;
    size_t length;

    if (mu_value_get_string(value, &text, &length) == 0)
        (void)snprintf(out + strlen(out), size - strlen(out), "%s\n", text);
    for (size_t i = 0; i < mu_value_count(value); i++)
        add_texts(mu_value_at(value, i), out, size);
}

/* Nothing of what is explained has the password or a token in it. */
static void expect_nothing_secret(struct fixture *f)
{
    char text[8192] = "";
    mu_resolution resolution;
    mu_error error = {0};
    mu_value *explained;

    mu_resolution_init(&resolution);
    (void)mu_resolver_resolve(f->resolver, 0, &error, &resolution);
    mu_cluster_free(resolution.cluster);
    explained = mu_resolver_explain(f->resolver);
    assert_non_null(explained);
    add_texts(explained, text, sizeof text);
    mu_value_free(explained);
    assert_non_null(strstr(text, "/v3/auth/authenticate: status 200"));
    assert_null(strstr(text, "word\""));
    assert_null(strstr(text, "uthorization"));
}

/* etcd's gateway takes no users from clients whose certificate has a CommonName. */
static void make_nameless(struct fixture *f)
{
    char command[512];

    (void)snprintf(command, sizeof command,
                   "cd %s && openssl req -new -newkey rsa:2048 -nodes"
                   " -keyout nameless.key -subj /O=muster -out nameless.csr"
                   " > nameless.log 2>&1 && openssl x509 -req -in nameless.csr -CA ca.pem"
                   " -CAkey ca.key -CAcreateserial -days 2 -out nameless.pem"
                   " >> nameless.log 2>&1",
                   f->folder);
    if (system(command) != 0)
        fail_msg("no certificate: see %s/nameless.log", f->folder);
}

/* Tokens that end are replaced while a node is open, and the node says nothing of it.
 * They live long enough for an answer on a loaded machine. */
TEST_ON(test_tokens_end, struct fixture *f, set_up, tear_down)
{
    mu_error error;
    mu_node *node;

    assert_non_null(f);
    f->etcd.token_ttl_s = "3";
    begin(f, "server", true);
    make_resolver(f);
    set_file(f, "ca_file", "ca.pem");
    set_file(f, "certificate_file", "client.pem");
    set_file(f, "key_file", "client.key");
    make_users(f);
    set(f->resolver, "user", "job");
    set(f->resolver, "password", "pass \"word\"");
    (void)expect_refused(f, SOON_MS, -MU_EUNAUTHENTICATED, "expected one without it in");
    make_nameless(f);
    set_file(f, "certificate_file", "nameless.pem");
    set_file(f, "key_file", "nameless.key");
    node = open_chief(f, SOON_MS, &error);
    if (error.code != 0)
        fail_msg("%s", error.message);
    for (int i = 0; i < 8000; i++)
        nodes_pause();
    assert_int_equal(mu_node_close(node, SOON_MS, &error), 0);
    /* Where a busy machine lets a request time out, that alone is said. */
    if (nodes_has_logged(&nodes, "resolver") && !nodes_has_logged(&nodes, "timed out"))
        fail_msg("it was said:\n%s", nodes.log.text);
    expect_nothing_secret(f);
}

NEEDS_PROGRAM(needs_programs("etcd", "etcdctl", "openssl", "python3", NULL), NULL, NULL)
