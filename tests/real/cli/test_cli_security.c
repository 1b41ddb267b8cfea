/* A real cluster whose nodes prove themselves: with a key, with keys for one right, with
 * certificates; who is refused, and what both sides say. */
#include "tests/real/cli.h"

#include "tests/real/certificates.h"

#include <sys/stat.h>

static struct cli run;
static struct cli asked;
static char folder[64];
static char address[64]; /* of the chief */

static int make_folder(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

/* "FOLDER/NAME". Valid for the four calls that follow. */
static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void expect(int code, const char *words)
{
    cli_expect_code(&asked, code);
    if (strstr(asked.text, words) == NULL)
        fail_msg("no \"%s\" in: %s", words, asked.text);
}

#define MUSTER(code, words, ...)                    \
    do {                                            \
        cli_start(&asked, NULL, __VA_ARGS__, NULL); \
        expect(code, words);                        \
    } while (0)

/* A chief and a worker with this key. */
static void start(const char *key)
{
    cli_start(&run, NULL, "run", "--workers", "1", "--ps", "0", "--color", "never",
              "--key-file", key, NULL);
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
    (void)cli_expect(&run, NULL, "takes closures");
}

static void make_key(const char *name)
{
    MUSTER(0, "cluster key ", "key", "new", in_folder(name));
}

/* ---- the verbs ---- */

TEST_WITH(test_keys, make_folder, remove_folder)
{
    struct stat status;
    cJSON *shown;
    cJSON *derived;

    make_key("key");
    assert_int_equal(stat(in_folder("key"), &status), 0);
    assert_int_equal(status.st_size, 32);
    assert_int_equal(status.st_mode & 0777, 0600);
    MUSTER(1, "is there already, and is not overwritten", "key", "new", in_folder("key"));
    MUSTER(0, "", "key", "show", in_folder("key"), "-o", "json");
    shown = cli_json(asked.text);
    MUSTER(0, "", "key", "derive", "use", "--key-file", in_folder("key"), "-o", "json");
    derived = cli_json(asked.text);
    assert_string_equal(cli_text(shown, "right"), "cluster");
    assert_string_equal(cli_text(derived, "right"), "use");
    assert_string_equal(cli_text(shown, "fingerprint"), cli_text(derived, "fingerprint"));
    MUSTER(0, "use key ", "key", "derive", "use", in_folder("use"), "--key-file",
           in_folder("key"));
    MUSTER(0, cli_text(shown, "fingerprint"), "key", "show", in_folder("use"));
    MUSTER(1, "cannot be made from a key for use", "key", "derive", "operate",
           "--key-file", in_folder("use"));
    MUSTER(2, "expected RIGHT to be observe, use, operate or task", "key", "derive",
           "root", "--key-file", in_folder("key"));
    MUSTER(1, "No such file", "key", "show", in_folder("none"));
    cJSON_Delete(shown);
    cJSON_Delete(derived);
}

/* What a node cannot prove itself with, it says before it does anything. */
TEST_WITH(test_bad_files, make_folder, remove_folder)
{
    make_key("open");
    assert_int_equal(chmod(in_folder("open"), 0644), 0);
    MUSTER(1, "others may read", "key", "show", in_folder("open"));
    cli_write_file(in_folder("garbage"), "this is no key\n");
    assert_int_equal(chmod(in_folder("garbage"), 0600), 0);
    MUSTER(3, "others may read", "node", "--cluster", "{\"chief\": [\"127.0.0.1:0\"]}",
           "--task", "chief:0", "--key-file", in_folder("open"));
    MUSTER(2, "is no key: expected 32 bytes", "node", "--cluster",
           "{\"chief\": [\"127.0.0.1:0\"]}", "--task", "chief:0", "--key-file",
           in_folder("garbage"));
    MUSTER(2, "insecure, got a key file and certificates", "node", "--cluster",
           "{\"chief\": [\"127.0.0.1:0\"]}", "--task", "chief:0", "--key-file",
           in_folder("garbage"), "--tls-ca", in_folder("garbage"));
    MUSTER(2, "option tls_certificate is missing", "node", "--cluster",
           "{\"chief\": [\"127.0.0.1:0\"]}", "--task", "chief:0", "--tls-ca",
           in_folder("garbage"));
}

/* ---- a cluster with a key ---- */

static void derive(const char *right)
{
    MUSTER(0, right, "key", "derive", right, in_folder(right), "--key-file",
           in_folder("key"));
}

/* What a key may not do, the client says at once. */
TEST_WITH(test_a_cluster_with_a_key, make_folder, remove_folder)
{
    static const char no_put[] = "key_put needs the right \"use\", and this node has a "
                                 "key or a certificate for \"observe\"";
    static const char no_reset[] = "task_mark needs the right \"operate\"";
    static const struct {
        const char *right;
        int put; /* exit codes */
        const char *put_words;
        const char *reset_words;
    } rows[] = {
        {"observe", 1, no_put, no_reset},
        {"use", 0, "", no_reset},
        {"operate", 0, "", "is connected: a task is reset from being in error"},
        {"task", 0, "", "is connected: a task is reset from being in error"},
        {"key", 0, "", "is connected: a task is reset from being in error"},
    };

    make_key("key");
    make_key("other");
    start(in_folder("key"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *key = rows[i].right;

        if (strcmp(key, "key") != 0)
            derive(key);
        MUSTER(0, "/job:worker/task:0", "status", "--address", address, "--key-file",
               in_folder(key));
        MUSTER(rows[i].put, rows[i].put_words, "kv", "put", "a", key, "--address",
               address, "--key-file", in_folder(key));
        if (rows[i].put == 0)
            MUSTER(0, key, "kv", "get", "a", "--address", address, "--key-file",
                   in_folder(key));
        MUSTER(1, rows[i].reset_words, "task", "reset", "worker:0", "--address", address,
               "--key-file", in_folder(key));
    }
    MUSTER(1, "drain needs the right \"operate\"", "drain", "worker:0", "--address",
           address, "--key-file", in_folder("use"));
    MUSTER(1, "server_stop needs the right \"operate\"", "stop", "worker:0", "--address",
           address, "--key-file", in_folder("use"));
    MUSTER(1, "preempt_notice needs the right \"operate\"", "preempt", "worker:0",
           "--address", address, "--key-file", in_folder("use"));
    MUSTER(4, "the peer has another key", "status", "--address", address, "--timeout-ms",
           "1000", "--key-file", in_folder("other"));
    MUSTER(4, "the peer has another key", "status", "--address", address, "--timeout-ms",
           "1000");
    MUSTER(4, "speaks TLS, and this node does not", "status", "--address", address,
           "--timeout-ms", "1000", "--insecure");
    (void)cli_expect(&run, NULL, "every node of a cluster needs the same key");
    cli_stop(&run);
}

/* ---- the user's own key ---- */

/* The variables with which a process has another user's folder. */
static const char *const *user(const char *name)
{
    static char text[160];
    static const char *const variables[] = {text, NULL};

    (void)snprintf(text, sizeof text, "XDG_CONFIG_HOME=%s", in_folder(name));
    return variables;
}

#define MUSTER_OF(name, code, words, ...)                 \
    do {                                                  \
        cli_start(&asked, user(name), __VA_ARGS__, NULL); \
        expect(code, words);                              \
    } while (0)

static void start_of(const char *name, const char *more)
{
    cli_start(&run, user(name), "run", "--workers", "4", "--ps", "0", "--color", "never",
              more, NULL);
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
    for (int i = 0; i < 4; i++)
        (void)cli_expect(&run, NULL, "takes closures");
}

/* All tasks need it at the same moment, and it is not there. */
TEST_WITH(test_a_user_has_a_key, make_folder, remove_folder)
{
    struct stat status;

    MUSTER_OF("own", 1, "No such file", "key", "show");
    start_of("own", NULL);
    assert_int_equal(stat(in_folder("own/muster/key"), &status), 0);
    assert_int_equal(status.st_size, 32);
    assert_int_equal(status.st_mode & 0777, 0600);
    MUSTER_OF("own", 0, "cluster key ", "key", "show");
    MUSTER_OF("own", 1, "is there already", "key", "new");
    MUSTER_OF("own", 0, "/job:worker/task:3", "status", "--address", address);
    assert_null(strstr(asked.text, "insecure"));
    MUSTER_OF("other", 4, "the peer has another key", "status", "--address", address,
              "--timeout-ms", "1000");
    (void)cli_expect(&run, NULL, "every node of a cluster needs the same key");
    MUSTER_OF("own", 4, "speaks TLS, and this node does not", "status", "--address",
              address, "--timeout-ms", "1000", "--insecure");
    cli_stop(&run);
    assert_int_equal(chmod(in_folder("own/muster/key"), 0644), 0);
    MUSTER_OF("own", 3, "chmod 600 it", "node", "--cluster",
              "{\"chief\": [\"127.0.0.1:0\"]}", "--task", "chief:0");
}

TEST_WITH(test_insecure, make_folder, remove_folder)
{
    struct stat status;

    start_of("none", "--insecure");
    (void)cli_expect(&run, NULL,
                     "insecure: nothing is encrypted, and whoever reaches "
                     "tcp://127.0.0.1:");
    MUSTER_OF("none", 0, "insecure: nothing is encrypted", "status", "--address", address,
              "--insecure");
    assert_int_equal(stat(in_folder("none"), &status), -1);
    MUSTER_OF("own", 4, "the peer speaks without TLS", "status", "--address", address,
              "--timeout-ms", "1000");
    cli_stop(&run);
    MUSTER_OF("own", 2, "got insecure and a key file", "status", "--address", address,
              "--insecure", "--key-file", in_folder("own/muster/key"));
}

TEST_WITH(test_a_user_without_a_place, make_folder, remove_folder)
{
    make_key("key");
    MUSTER_OF("key/below/a/file", 2, "tcp needs a key", "node", "--cluster",
              "{\"chief\": [\"127.0.0.1:0\"]}", "--task", "chief:0");
    assert_null(strstr(asked.text, "is up at"));
}

/* Clients listen beside the tasks, so that nothing of it is spoken over tcp. */
TEST_WITH(test_unix_sockets_need_no_key, make_folder, remove_folder)
{
    const char *at;

    make_key("key");
    cli_start(&run, user("key/below/a/file"), "run", "--transport", "ipc", "--workers",
              "1", "--ps", "0", "--color", "never", NULL);
    at = cli_expect(&run, NULL, "/job:chief/task:0 node: is up at ipc://");
    (void)cli_expect(&run, at, "\n");
    (void)snprintf(address, sizeof address, "ipc://%.*s", (int)strcspn(at, "\n"), at);
    (void)cli_expect(&run, NULL, "takes closures");
    MUSTER_OF("key/below/a/file", 0, "/job:worker/task:0", "status", "--address",
              address);
    cli_stop(&run);
}

/* Who may use the cluster is no task of it. */
TEST_WITH(test_a_client_plays_no_task, make_folder, remove_folder)
{
    char cluster[200];

    make_key("key");
    derive("operate");
    start(in_folder("key"));
    (void)snprintf(
        cluster, sizeof cluster,
        "{\"chief\": [\"%s\"], \"worker\": [\"127.0.0.1:1\", \"127.0.0.1:0\"]}",
        address + strlen("tcp://"));
    cli_start(&asked, NULL, "node", "--cluster", cluster, "--task", "worker:1",
              "--key-file", in_folder("operate"), NULL);
    (void)cli_expect(&run, NULL,
                     "it has proven the right \"operate\", and says to be "
                     "/job:worker/task:1");
    cli_kill(&asked, SIGKILL);
    (void)cli_wait(&asked);
    cli_stop(&run);
}

/* ---- certificates ---- */

static void write_certified(const char *name, const struct certified *ca,
                            const char *names, const char *unit)
{
    struct certified own;
    char file[64];

    certified_make(&own, ca, names, unit, -60, 3600);
    (void)snprintf(file, sizeof file, "%s.pem", name);
    cli_write_file(in_folder(file), own.pem);
    (void)snprintf(file, sizeof file, "%s.key", name);
    cli_write_file(in_folder(file), own.key_pem);
    assert_int_equal(chmod(in_folder(file), 0600), 0);
    certified_free(&own);
}

static void start_node(struct cli *cli, const char *cluster, const char *task,
                       const char *name)
{
    char certificate[64];
    char key[64];

    (void)snprintf(certificate, sizeof certificate, "%s.pem", name);
    (void)snprintf(key, sizeof key, "%s.key", name);
    cli_start(cli, NULL, "node", "--cluster", cluster, "--task", task, "--tls-ca",
              in_folder("ca.pem"), "--tls-certificate", in_folder(certificate),
              "--tls-private-key", in_folder(key), NULL);
}

TEST_WITH(test_certificates, make_folder, remove_folder)
{
    static struct cli worker;
    char cluster[200];
    struct certified ca;

    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    cli_write_file(in_folder("ca.pem"), ca.pem);
    write_certified("chief", &ca, "URI:muster:/job:chief/task:0", NULL);
    write_certified("worker0", &ca, "URI:muster:/job:worker/task:0", NULL);
    write_certified("worker1", &ca, "URI:muster:/job:worker/task:1", NULL);
    write_certified("watcher", &ca, NULL, "observe");
    start_node(&run, "{\"chief\": [\"127.0.0.1:0\"]}", "chief:0", "chief");
    (void)snprintf(address, sizeof address, "%s",
                   cli_expect(&run, NULL, "is up at tcp://"));
    address[strcspn(address, "\n")] = '\0';
    (void)snprintf(cluster, sizeof cluster,
                   "{\"chief\": [\"%s\"], \"worker\": [\"127.0.0.1:0\"]}", address);

    start_node(&worker, cluster, "worker:0", "worker1");
    (void)cli_expect(&run, NULL,
                     "its certificate is that of /job:worker/task:1, and it "
                     "says to be /job:worker/task:0");
    cli_kill(&worker, SIGKILL);
    (void)cli_wait(&worker);
    start_node(&worker, cluster, "worker:0", "worker0");
    (void)cli_expect(&worker, NULL, "/job:chief/task:0 is up at");

    MUSTER(0, "/job:worker/task:0", "status", "--address", address, "--tls-ca",
           in_folder("ca.pem"), "--tls-certificate", in_folder("watcher.pem"),
           "--tls-private-key", in_folder("watcher.key"));
    MUSTER(1, "key_put needs the right", "kv", "put", "a", "b", "--address", address,
           "--tls-ca", in_folder("ca.pem"), "--tls-certificate", in_folder("watcher.pem"),
           "--tls-private-key", in_folder("watcher.key"));
    cli_kill(&worker, SIGKILL);
    cli_kill(&run, SIGKILL);
    (void)cli_wait(&worker);
    (void)cli_wait(&run);
    certified_free(&ca);
}

/* ---- files that change ---- */

/* A worker that was given another key is let in once its file has the right one. */
TEST_WITH(test_a_key_that_comes_later, make_folder, remove_folder)
{
    char command[300];
    char cluster[200];

    make_key("key");
    make_key("later");
    start(in_folder("key"));
    (void)snprintf(
        cluster, sizeof cluster,
        "{\"chief\": [\"%s\"], \"worker\": [\"127.0.0.1:1\", \"127.0.0.1:0\"]}",
        address + strlen("tcp://"));
    cli_start(&asked, NULL, "node", "--cluster", cluster, "--task", "worker:1", "--bind",
              "tcp://127.0.0.1:0", "--key-file", in_folder("later"), NULL);
    (void)cli_expect(&run, NULL, "every node of a cluster needs the same key");
    (void)snprintf(command, sizeof command, "cp '%s' '%s'", in_folder("key"),
                   in_folder("later"));
    assert_int_equal(system(command), 0);
    (void)cli_expect(&asked, NULL, "which was read again");
    (void)cli_expect(&asked, NULL, "/job:chief/task:0 is up at");
    cli_kill(&asked, SIGKILL);
    (void)cli_wait(&asked);
    cli_stop(&run);
}

TEST_PROGRAM()
