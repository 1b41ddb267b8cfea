/* Connections come and go at a node: with its key, with another one, without TLS, half of
 * a handshake, and now and then a whole client. Afterwards the node has as many
 * descriptors as before, and hardly more memory.
 *
 *     real_connections_soak [COUNT]
 *
 * A fifth of them, and at most 1,000, come before it is looked at first. */
#include "tests/real/cli.h"
#include "tests/real/nodes.h"

#include "transport/wire/tls/endpoint.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/time.h>

enum {
    COUNT = 500,
    WARM_MAX = 1000,
    CLIENT_EVERY = 25,     /* a whole one instead of a connection */
    SOURCES = 200,         /* addresses that the connections come from, in turn */
    GROWTH_KIB_MAX = 2048, /* a session of TLS that stays has some 20 KiB */
    ANSWER_MS = 2000
};

enum kind { RIGHT_KEY, OTHER_KEY, PLAIN, HALF, KINDS };

static uint64_t count = COUNT;

struct soak {
    struct nodes nodes;
    struct cli node;
    char folder[64];
    char key_file[96];
    struct mu__tls_identity *right;
    struct mu__tls_identity *other;
    int port;
    uint64_t refused; /* of those with another key, told so */
    uint64_t greeted;
};

/* ---- the node ---- */

static unsigned descriptors(pid_t pid)
{
    char path[64];
    DIR *folder;
    unsigned found = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        found++;
    (void)closedir(folder);
    return found;
}

/* What it has when nothing comes any more. */
static unsigned rest(struct soak *soak)
{
    unsigned fewest = UINT32_MAX;

    for (int calm = 0; calm < 500; calm++) {
        unsigned now = descriptors(soak->node.pid);

        if (now < fewest) {
            fewest = now;
            calm = 0;
        }
        nodes_pause();
    }
    return fewest;
}

static void begin(struct soak *soak)
{
    struct mu__key key;

    memset(soak, 0, sizeof *soak);
    nodes_init(&soak->nodes, 0, 0);
    soak->port = atoi(strstr(soak->nodes.json, "127.0.0.1:") + strlen("127.0.0.1:"));
    cli_folder(soak->folder, sizeof soak->folder);
    (void)snprintf(soak->key_file, sizeof soak->key_file, "%s/key", soak->folder);
    cli_write_file(soak->key_file, "32 bytes of text are a key, too.");
    assert_int_equal(chmod(soak->key_file, 0600), 0);
    assert_int_equal(
        mu__key_parse("it", "32 bytes of text are a key, too.", 32, NULL, &key), 0);
    assert_int_equal(mu__tls_identity_of_key(&key, NULL, &soak->right), 0);
    assert_int_equal(
        mu__key_parse("it", "32 bytes of text are the other..", 32, NULL, &key), 0);
    assert_int_equal(mu__tls_identity_of_key(&key, NULL, &soak->other), 0);
    cli_start(&soak->node, NULL, "node", "--cluster", soak->nodes.json, "--task",
              "chief:0", "--key-file", soak->key_file, "--log-level", "error",
              "--heartbeat-ms", "200", "--silence-ms", "4000", NULL);
}

static void end(struct soak *soak)
{
    cli_kill(&soak->node, SIGTERM);
    cli_expect_code(&soak->node, 0);
    mu__tls_identity_free(soak->right);
    mu__tls_identity_free(soak->other);
    nodes_done(&soak->nodes);
    assert_int_equal(unlink(soak->key_file), 0);
    assert_int_equal(rmdir(soak->folder), 0);
}

/* ---- connections ---- */

/* From another address of this machine each time. -1: nobody listens yet. */
static int dial(const struct soak *soak, uint64_t which)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)soak->port)};
    const struct timeval limit = {ANSWER_MS / 1000, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 256 + (uint32_t)(which % SOURCES));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) == 0 &&
        connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void flush(int fd, struct mu__tls *tls, size_t part)
{
    struct mu__buf *output = mu__tls_output(tls);

    if (output == NULL)
        return;
    (void)send(fd, output->data, output->size / part, MSG_NOSIGNAL);
    mu__buf_unref(output);
}

/* Until the peer has said something inside of TLS: how much, or how it ended. */
static int hear(int fd, struct mu__tls *tls)
{
    uint8_t heard[256];
    uint8_t came[4096];
    int rv = 0;

    while (rv == 0) {
        ssize_t size = recv(fd, came, sizeof came, 0);

        if (size <= 0)
            return 0;
        assert_true(mu__tls_receive(tls, came, (size_t)size));
        rv = mu__tls_read(tls, heard, sizeof heard);
        assert_true(mu__tls_keep_input(tls));
        flush(fd, tls, 1);
    }
    return rv;
}

static void speak_tls(struct soak *soak, int fd, enum kind kind)
{
    static const uint8_t greeting[] = {0, 'S', 'P', 0, 0, 0x50, 0, 0};
    struct mu__tls *tls =
        mu__tls_new(kind == OTHER_KEY ? soak->other : soak->right, false);
    int rv;

    assert_non_null(tls);
    assert_int_equal(mu__tls_begin(tls), 0);
    flush(fd, tls, kind == HALF ? 2 : 1);
    if (kind == RIGHT_KEY || kind == OTHER_KEY) {
        rv = hear(fd, tls);
        soak->refused += kind == OTHER_KEY && rv < 0;
        soak->greeted += kind == RIGHT_KEY && rv > 0;
    }
    if (kind == RIGHT_KEY && mu__tls_write(tls, greeting, sizeof greeting) == 0)
        flush(fd, tls, 1);
    mu__tls_free(tls);
}

static void speak_plain(int fd)
{
    static const char words[] = "\0SP\0\0\x50\0\0\0\0\0\0\0\0\0\x04plain";
    char came[64];

    (void)send(fd, words, sizeof words - 1, MSG_NOSIGNAL);
    while (recv(fd, came, sizeof came, 0) > 0)
        continue;
}

/* One that comes and goes; every second one without a goodbye. */
static void connect_once(struct soak *soak, uint64_t which)
{
    const struct linger at_once = {1, 0};
    int fd = dial(soak, which);

    if (fd < 0)
        fail_msg("the node does not listen any more");
    if (which % KINDS == PLAIN)
        speak_plain(fd);
    else
        speak_tls(soak, fd, (enum kind)(which % KINDS));
    if (which / KINDS % 2 == 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)close(fd);
}

/* A node of the cluster that joins it, and leaves. */
static void join_once(struct soak *soak)
{
    mu_node_options options;
    mu_value *status = NULL;
    mu_error error = {0};
    mu_node *node;

    nodes_options(&soak->nodes, "client", 0, &options);
    options.key_file = soak->key_file;
    node = nodes_open_with(&soak->nodes, &options);
    if (mu_node_status(node, SOON_MS, &error, &status) != 0)
        fail_msg("%s", error.message);
    mu_value_free(status);
    nodes_close(&soak->nodes, node);
    soak->nodes.log.size = 0;
}

static void come_and_go(struct soak *soak, uint64_t from, uint64_t until)
{
    for (uint64_t i = from; i < until; i++) {
        if (i % CLIENT_EVERY == 0)
            join_once(soak);
        else
            connect_once(soak, i);
        cli_read(&soak->node);
    }
}

/* ---- the test ---- */

TEST(test_nothing_stays)
{
    static struct soak soak; /* it has logs */
    uint64_t warm = count / 5 < WARM_MAX ? count / 5 : WARM_MAX;
    unsigned descriptors_before;
    unsigned long kib_before;
    unsigned long kib;

    begin(&soak);
    join_once(&soak);
    come_and_go(&soak, 0, warm);
    descriptors_before = rest(&soak);
    kib_before = cli_memory_kib(soak.node.pid);
    come_and_go(&soak, warm, count);
    assert_int_equal(rest(&soak), descriptors_before);
    kib = cli_memory_kib(soak.node.pid);
    printf("%" PRIu64 " connections, %" PRIu64 " greeted, %" PRIu64 " refused: "
           "%u descriptors, %lu KiB before, %lu KiB after\n",
           count, soak.greeted, soak.refused, descriptors_before, kib_before, kib);
    assert_true(soak.greeted >= count / (KINDS + 1));
    assert_true(soak.refused >= count / (KINDS + 1));
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    if (kib > kib_before + GROWTH_KIB_MAX)
        fail_msg("%lu KiB have become %lu KiB", kib_before, kib);
#endif
    end(&soak);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        count = strtoull(argv[1], NULL, 10);
    return tests_run(NULL, NULL);
}
