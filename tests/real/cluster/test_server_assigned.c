/* Servers over real sockets whose cluster specs clients bring, clients that are killed in
 * the middle among them. */
#include "tests/real/cluster/server_fixture.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* ---- Helpers ---- */

/* A thread that starts a server, which may wait for its cluster. */
struct starter {
    pthread_t thread;
    mu_node_options node;
    mu_server_options options;
    mu_server *server;
    int rv;
    mu_error error;
};

static void *start_server(void *arg)
{
    struct starter *starter = arg;

    starter->rv = mu_server_start(&starter->options, &starter->error, &starter->server);
    return NULL;
}

static void begin_start(struct starter *starter)
{
    starter->rv = 1;
    assert_int_equal(pthread_create(&starter->thread, NULL, start_server, starter), 0);
}

static mu_server *end_start(struct starter *starter)
{
    assert_int_equal(pthread_join(starter->thread, NULL), 0);
    if (starter->rv != 0)
        fail_msg("%s", starter->error.message);
    return starter->server;
}

static void offer_options(struct nodes *nodes, const char *type, int index,
                          mu_node_options *node, mu_server_options *offer)
{
    mu_node_options_init(node);
    node->cluster = nodes->cluster;
    node->task_type = type;
    node->task_index = index;
    node->log = nodes_note;
    node->log_user = &nodes->log;
    mu_server_options_init(offer);
    offer->node = node;
}

static void make_offer(struct nodes *nodes, const char *type, int index)
{
    mu_node_options node;
    mu_server_options offer;
    mu_error error = {0};

    offer_options(nodes, type, index, &node, &offer);
    if (mu_server_assign_cluster(&offer, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
}

/* ---- Servers that are told their cluster ---- */

TEST(test_told)
{
    static const char *const filters[] = {"/job:ps"};
    struct nodes nodes;
    struct starter starter = {.rv = 0};
    struct joiner joiner;
    mu_node_options node;
    mu_session_config config;
    mu_server_options offer;
    mu_server *server;
    mu_error error = {0};
    mu_node *chief;

    nodes_init(&nodes, 1, 1);
    chief = nodes_open(&nodes, "chief", 0);
    waiting_options(&nodes, "ps", 0, &starter.node, &starter.options);
    begin_start(&starter);
    offer_options(&nodes, "ps", 0, &node, &offer);
    mu_session_config_init(&config);
    config.inter_op_threads = 2;
    config.intra_op_threads = 5;
    config.device_filters = filters;
    config.device_filters_count = 1;
    offer.config = &config;
    assert_int_equal(mu_server_assign_cluster(&offer, SOON_MS, &error), 0);
    server = end_start(&starter);
    assert_string_equal(mu_server_task(server), "/job:ps/task:0");
    assert_int_equal(mu_cluster_task_count(mu_server_cluster(server), NULL), 3);
    assert_int_equal(mu_server_config(server)->intra_op_threads, 5);
    assert_string_equal(mu_node_get_setting(mu_server_node(server), "intra_op_threads"),
                        "5");

    /* It is the one: the chief finds it, and the same offer again is fine. */
    begin_join(&joiner, server);
    make_offer(&nodes, "ps", 0);
    nodes_wait_log(&nodes, "/job:chief/task:0 links: /job:ps/task:0 is up");
    (void)mu_node_finish_job(chief, 0, "", 0, &error);
    end_join(&joiner);
    mu_server_free(server);
    nodes_done(&nodes);
}

TEST(test_told_limit)
{
    struct nodes nodes;
    mu_node_options node;
    mu_server_options options;
    mu_server *server = NULL;
    mu_server_options offer;
    mu_error error;

    nodes_init(&nodes, 1, 1);
    waiting_options(&nodes, "ps", 0, &node, &options);
    options.timeout_ms = 50;
    assert_int_equal(mu_server_start(&options, &error, &server), -MU_EDEADLINE);
    assert_string_equal(error.message, "no client has offered a cluster spec to "
                                       "/job:server/task:0 within 50 ms");
    offer_options(&nodes, "ps", 0, &node, &offer);
    assert_int_equal(mu_server_assign_cluster(&offer, 50, &error), -MU_EDEADLINE);
    assert_true(is_in(error.message, "did not get its cluster spec within 50 ms"));
    node.task_index = 7;
    assert_int_equal(mu_server_assign_cluster(&offer, 50, &error), -MU_ERANGE);
    offer_options(&nodes, "client", 0, &node, &offer);
    assert_int_equal(mu_server_assign_cluster(&offer, 50, &error), -MU_EINVALID);
    node.cluster = NULL;
    assert_int_equal(mu_server_assign_cluster(&offer, 50, &error), -MU_EINVALID);
    nodes_done(&nodes);
}

/* Two clients with specs of their own, at a time. */
struct rival {
    pthread_t thread;
    mu_node_options node;
    mu_server_options offer;
    int rv;
    mu_error error;
};

static void *offer_as_rival(void *arg)
{
    struct rival *rival = arg;

    rival->rv = mu_server_assign_cluster(&rival->offer, SOON_MS, &rival->error);
    return NULL;
}

TEST(test_two_specs)
{
    for (int round = 0; round < 5; round++) {
        struct nodes nodes;
        struct starter starter = {.rv = 0};
        struct rival rivals[2] = {{.rv = 0}};
        mu_cluster *other;
        mu_server *server;
        int winner;

        nodes_init(&nodes, 1, 1);
        other = mu_cluster_copy(nodes.cluster);
        assert_int_equal(mu_cluster_add(other, "worker", 1, "127.0.0.1:1", NULL), 0);
        waiting_options(&nodes, "ps", 0, &starter.node, &starter.options);
        begin_start(&starter);
        for (int i = 0; i < 2; i++) {
            offer_options(&nodes, "ps", 0, &rivals[i].node, &rivals[i].offer);
            if (i == 1)
                rivals[i].node.cluster = other;
            assert_int_equal(
                pthread_create(&rivals[i].thread, NULL, offer_as_rival, &rivals[i]), 0);
        }
        server = end_start(&starter);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_join(rivals[i].thread, NULL), 0);
        winner = mu_cluster_task_count(mu_server_cluster(server), NULL) == 4;
        if (rivals[winner].rv != 0)
            fail_msg("%s", rivals[winner].error.message);
        if (rivals[!winner].rv != -MU_EPRECONDITION)
            fail_msg("%d %s", rivals[!winner].rv, rivals[!winner].error.message);
        mu_server_free(server);
        mu_cluster_free(other);
        nodes_done(&nodes);
    }
}

/* A process that offers once it is told to. It is made before the server is, whose
 * sockets it would have otherwise. */
struct doomed {
    pid_t pid;
    int go;
};

static void doomed_init(struct doomed *doomed, struct nodes *nodes)
{
    int ends[2];
    char byte;

    assert_int_equal(pipe(ends), 0);
    doomed->pid = fork();
    doomed->go = ends[1];
    assert_true(doomed->pid >= 0);
    if (doomed->pid == 0) {
        mu_node_options node;
        mu_server_options offer;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[1]);
        if (read(ends[0], &byte, 1) != 1)
            _exit(1);
        offer_options(nodes, "ps", 0, &node, &offer);
        node.log_level = -1;
        (void)mu_server_assign_cluster(&offer, SOON_MS, NULL);
        _exit(0);
    }
    (void)close(ends[0]);
}

static void doomed_offers(struct doomed *doomed, int after_ms)
{
    const struct timespec wait = {0, after_ms * 1000000L};

    assert_int_equal(write(doomed->go, "x", 1), 1);
    (void)nanosleep(&wait, NULL);
    (void)kill(doomed->pid, SIGKILL);
    assert_int_equal(waitpid(doomed->pid, NULL, 0), doomed->pid);
    (void)close(doomed->go);
}

TEST(test_killed_clients)
{
    for (int round = 0; round < 12; round++) {
        struct nodes nodes;
        struct starter starter = {.rv = 0};
        struct doomed doomed[2];
        mu_server *server;

        nodes_init(&nodes, 1, 1);
        doomed_init(&doomed[0], &nodes);
        doomed_init(&doomed[1], &nodes);
        waiting_options(&nodes, "ps", 0, &starter.node, &starter.options);
        begin_start(&starter);
        doomed_offers(&doomed[0], 1 + round);
        doomed_offers(&doomed[1], 12 - round);
        make_offer(&nodes, "ps", 0);
        server = end_start(&starter);
        assert_string_equal(mu_server_task(server), "/job:ps/task:0");
        mu_server_free(server);
        nodes_done(&nodes);
    }
}

/* Bytes that are no protocol, connections that say nothing, and ones that end. */
static void throw_garbage(int port, const void *data, size_t size)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
    };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < SOON_MS; i++) {
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            break;
        nodes_pause();
    }
    (void)send(fd, data, size, MSG_NOSIGNAL);
    (void)close(fd);
}

TEST(test_garbage)
{
    static const char get[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    static const unsigned char sp[] = {0,    'S',  'P',  0,    0,    0x51, 0,
                                       0,    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                       0xFF, 0xFF, 1,    2,    3};
    static const unsigned char hello[] = {0,   'S', 'P', 0,   0, 0x50, 0, 0,
                                          0,   0,   0,   0,   0, 0,    0, 32,
                                          'M', 'U', 'S', 'T', 1, 0,    1, 0};
    struct nodes nodes;
    struct starter starter = {.rv = 0};
    mu_server *server;
    const char *address;
    int port;

    nodes_init(&nodes, 1, 1);
    address = mu_cluster_address(nodes.cluster, "ps", 0);
    port = (int)strtol(strchr(address, ':') + 1, NULL, 10);
    waiting_options(&nodes, "ps", 0, &starter.node, &starter.options);
    begin_start(&starter);
    for (int i = 0; i < 20; i++) {
        throw_garbage(port, get, sizeof get);
        throw_garbage(port, sp, sizeof sp);
        throw_garbage(port, hello, sizeof hello);
        throw_garbage(port, "", 0);
    }
    make_offer(&nodes, "ps", 0);
    server = end_start(&starter);
    assert_string_equal(mu_server_task(server), "/job:ps/task:0");
    mu_server_free(server);
    nodes_done(&nodes);
}

TEST_PROGRAM()
