/* The coordination service over a real etcd that has certificates and users. */
#include "tests/real/etcd.h"
#include "tests/real/https.h"
#include "tests/real/service.h"

static struct service service;
static struct etcd etcd;

/* ---- Certificates ---- */

static char secure_folder[64];

static void set_variable(const char *name, const char *file)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", secure_folder, file);
    assert_int_equal(setenv(name, path, 1), 0);
}

static int set_up_secure(void **state)
{
    static char certificate[128];
    static char ca[128];

    memset(&service, 0, sizeof service);
    memset(&etcd, 0, sizeof etcd);
    for (int i = 0; i < SERVICE_HOSTS_MAX; i++)
        service.hosts[i].ended = true;
    (void)snprintf(secure_folder, sizeof secure_folder, "/tmp/muster-secure-XXXXXX");
    assert_non_null(mkdtemp(secure_folder));
    https_certificates(secure_folder);
    (void)snprintf(certificate, sizeof certificate, "%s/server", secure_folder);
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", secure_folder);
    etcd.certificate = certificate;
    etcd.client_ca = ca;
    etcd_open(&etcd);
    set_variable("MUSTER_ETCD_CA_FILE", "ca.pem");
    set_variable("MUSTER_ETCD_CERTIFICATE_FILE", "client.pem");
    set_variable("MUSTER_ETCD_KEY_FILE", "client.key");
    *state = &service;
    return 0;
}

static int tear_down_secure(void **state)
{
    static const char *const variables[] = {
        "MUSTER_ETCD_CA_FILE", "MUSTER_ETCD_CERTIFICATE_FILE", "MUSTER_ETCD_KEY_FILE",
        "MUSTER_ETCD_SERVER_NAME"};
    char command[128];

    if (((struct service *)*state)->hosts_count > 0)
        service_close(*state);
    etcd_close(&etcd);
    memset(&etcd, 0, sizeof etcd);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        assert_int_equal(unsetenv(variables[i]), 0);
    (void)snprintf(command, sizeof command, "rm -r %s", secure_folder);
    return system(command);
}

static void secure_store(char *out, size_t size)
{
    (void)snprintf(out, size, "etcd:https://127.0.0.1:%d", etcd.port);
}

LISTED_TEST(test_https)
{
    struct service *s = *state;
    char store[64];
    mu_error error = {0};
    mu_kv_item item;

    secure_store(store, sizeof store);
    service_open(s, 1, store);
    assert_int_equal(service_leader(s, NULL), 0);
    check(mu_kv_put(s->workers[0], "a", "1", 1, 0, 0, SOON_MS, &error, NULL), &error);
    check(mu_kv_get(s->workers[0], "a", SOON_MS, &error, &item), &error);
    mu_kv_item_clear(&item);
}

/* A host whose files are not there, or not both, does not begin. */
LISTED_TEST(test_https_files)
{
    struct service *s = *state;
    mu_node_options options;
    mu_node *node = NULL;
    mu_error error = {0};
    char store[64];

    secure_store(store, sizeof store);
    nodes_init(&s->nodes, 1, 0);
    nodes_options(&s->nodes, "chief", 0, &options);
    options.service_hosts = "chief:0";
    options.store = store;
    set_variable("MUSTER_ETCD_KEY_FILE", "nothing.key");
    assert_int_equal(mu_node_open(&options, &error, &node), -MU_EINVALID);
    assert_non_null(strstr(error.message, "option store: MUSTER_ETCD_KEY_FILE: \""));
    assert_non_null(strstr(error.message, "cannot be read: No such file"));
    assert_int_equal(unsetenv("MUSTER_ETCD_KEY_FILE"), 0);
    assert_int_equal(mu_node_open(&options, &error, &node), -MU_EINVALID);
    assert_non_null(strstr(error.message, "expected both or none"));
    assert_int_equal(setenv("MUSTER_ETCD_SERVER_NAME", "a/b", 1), 0);
    assert_int_equal(mu_node_open(&options, &error, &node), -MU_EINVALID);
    assert_non_null(strstr(error.message, "option store: MUSTER_ETCD_SERVER_NAME: "
                                          "expected the name of a host"));
    nodes_done(&s->nodes);
}

/* ---- Users ---- */

/* etcdctl, without users: what it does comes before `auth enable`. */
static void ctl(const char *arguments)
{
    char command[512];

    (void)snprintf(command, sizeof command,
                   "ETCDCTL_API=3 etcdctl --endpoints http://127.0.0.1:%d %s"
                   " > %s/ctl.log 2>&1",
                   etcd.port, arguments, etcd.folder);
    if (system(command) != 0)
        fail_msg("%s: see %s/ctl.log", command, etcd.folder);
}

static int set_up_users(void **state)
{
    static const char *const steps[] = {
        "role add root",
        "user add root:root-word",
        "user grant-role root root",
        "role add muster",
        "role grant-permission muster readwrite --prefix=true /muster/",
        "user add job:job-word",
        "user grant-role job muster",
        "user add poor:poor-word",
        "auth enable",
    };

    memset(&service, 0, sizeof service);
    memset(&etcd, 0, sizeof etcd);
    for (int i = 0; i < SERVICE_HOSTS_MAX; i++)
        service.hosts[i].ended = true;
    etcd.token_ttl_s = "1";
    etcd_open(&etcd);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        ctl(steps[i]);
    *state = &service;
    return 0;
}

static int tear_down_users(void **state)
{
    if (((struct service *)*state)->hosts_count > 0)
        service_close(*state);
    etcd_close(&etcd);
    memset(&etcd, 0, sizeof etcd);
    (void)unsetenv("MUSTER_ETCD_USER");
    (void)unsetenv("MUSTER_ETCD_PASSWORD");
    (void)unsetenv("MUSTER_ETCD_PASSWORD_FILE");
    return 0;
}

static void users_store(char *out, size_t size)
{
    (void)snprintf(out, size, "etcd:http://127.0.0.1:%d", etcd.port);
}

static void set_user(const char *user, const char *password)
{
    assert_int_equal(setenv("MUSTER_ETCD_USER", user, 1), 0);
    assert_int_equal(setenv("MUSTER_ETCD_PASSWORD", password, 1), 0);
}

static void write_password(void)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/word", etcd.folder);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("job-word\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(setenv("MUSTER_ETCD_USER", "job", 1), 0);
    assert_int_equal(setenv("MUSTER_ETCD_PASSWORD_FILE", path, 1), 0);
}

static mu_node *open_host(struct service *s, unsigned lease_ms)
{
    mu_node_options options;
    char store[64];

    users_store(store, sizeof store);
    nodes_init(&s->nodes, 1, 0);
    nodes_options(&s->nodes, "chief", 0, &options);
    options.service_hosts = "chief:0";
    options.store = store;
    options.lease_ms = lease_ms;
    return nodes_open_with(&s->nodes, &options);
}

static void put(mu_node *node, const char *key)
{
    mu_error error = {0};

    check(mu_kv_put(node, key, "1", 1, 0, 0, SOON_MS, &error, NULL), &error);
}

/* Tokens end a second after their last use, and the lease is kept every two: each time
 * another one is needed. Nothing is said of it; also not of those that an etcd which
 * began anew has forgotten. */
LISTED_TEST(test_tokens_end)
{
    struct service *s = *state;
    uint64_t end_ms = cli_now_ms() + 5000;
    mu_node *node;

    write_password();
    node = open_host(s, 6000);
    put(node, "before");
    while (cli_now_ms() < end_ms)
        cli_pause();
    put(node, "behind");
    assert_false(nodes_has_logged(&s->nodes, "etcd at"));
    assert_false(nodes_has_logged(&s->nodes, "has lost"));
    etcd_kill(&etcd);
    etcd_start(&etcd);
    put(node, "anew");
    assert_false(nodes_has_logged(&s->nodes, "token"));
    assert_false(nodes_has_logged(&s->nodes, "job-word"));
    nodes_done(&s->nodes);
}

static void expect_not_held(struct service *s, const char *words)
{
    mu_node_options options;
    mu_node *node = NULL;
    mu_error error = {0};
    char store[64];

    users_store(store, sizeof store);
    nodes_init(&s->nodes, 1, 0);
    nodes_options(&s->nodes, "chief", 0, &options);
    options.service_hosts = "chief:0";
    options.store = store;
    if (mu_node_open(&options, &error, &node) == 0)
        nodes_wait_log(&s->nodes, words);
    else if (strstr(error.message, words) == NULL)
        fail_msg("%s", error.message);
    if (strstr(s->nodes.log.text, "guessed") != NULL)
        fail_msg("%s", s->nodes.log.text);
    (void)mu_node_close(node, SOON_MS, NULL);
    nodes_done(&s->nodes);
}

LISTED_TEST(test_users_refused)
{
    struct service *s = *state;

    assert_non_null(s);
    expect_not_held(s, "it has users, expected MUSTER_ETCD_USER");
    assert_int_equal(setenv("MUSTER_ETCD_USER", "job", 1), 0);
    expect_not_held(s, "MUSTER_ETCD_USER is set, and no password");
    assert_int_equal(setenv("MUSTER_ETCD_PASSWORD", "guessed", 1), 0);
    expect_not_held(s, "does not take user \"job\" with this password");
    assert_int_equal(unsetenv("MUSTER_ETCD_USER"), 0);
    expect_not_held(s, "password is set, and no user; expected MUSTER_ETCD_USER");
    set_user("poor", "poor-word");
    expect_not_held(s, "expected a role with readwrite");
}

/* A user is of no harm where there are none, and is one as soon as there are. */
LISTED_TEST(test_users_come)
{
    struct service *s = *state;
    char store[64];
    mu_error error = {0};

    set_user("job", "job-word");
    ctl("--user root:root-word auth disable");
    users_store(store, sizeof store);
    service_open(s, 1, store);
    assert_int_equal(service_leader(s, NULL), 0);
    ctl("auth enable");
    check(mu_kv_put(s->workers[0], "a", "1", 1, 0, 0, SOON_MS, &error, NULL), &error);
    cli_read(&s->hosts[0]);
    assert_null(strstr(s->hosts[0].text, "no longer leads"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name, what) \
    cmocka_unit_test_setup_teardown(name, set_up_##what, tear_down_##what)
        CASE(test_https, secure),     CASE(test_https_files, secure),
        CASE(test_tokens_end, users), CASE(test_users_refused, users),
        CASE(test_users_come, users),
    };
    const char *missing = needs_programs("etcd", "etcdctl", "openssl", "python3", NULL);

    if (missing != NULL)
        return needs_skip(missing);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
