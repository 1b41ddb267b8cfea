/* Peers that are wrong, broken or hostile, against real nodes. Whatever they do, it is
 * said in the log, and the cluster goes on. */
#include "tests/real/nodes.h"

#include "runtime/message/codec.h"
#include "transport/link/frames.h"
#include "transport/wire/sp.h"
#include "transport/wire/wire.h"

#include <stdbool.h>
#include <sys/time.h>

static int square(mu_run *run, void *user)
{
    int64_t number = 0;

    (void)user;
    if (mu_value_get_int(mu_run_args(run), &number) != 0)
        return mu_run_fail(run, -MU_EINVALID, "square wants an int");
    mu_run_return(run, mu_value_int(number * number));
    return 0;
}

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_node *worker;
    mu_coordinator *coordinator;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    nodes_init(&f->nodes, 2, 0);
    f->nodes.insecure = 1;
    f->chief = nodes_open(&f->nodes, "chief", 0);
    f->worker = nodes_open(&f->nodes, "worker", 0);
    assert_int_equal(mu_node_register_function(f->worker, "square", square, NULL, 0), 0);
    assert_int_equal(mu_node_serve(f->worker), 0);
    f->coordinator = nodes_coordinator(f->chief);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    free(f);
    return 0;
}

/* The cluster still works. */
static void check_square(struct fixture *f, int64_t number)
{
    mu_value *argument = mu_value_int(number);
    mu_remote_value *value = NULL;
    mu_value *result = NULL;
    int64_t got = 0;
    mu_error error = {0};

    assert_int_equal(mu_coordinator_schedule(f->coordinator, "square", argument, SOON_MS,
                                             &error, &value),
                     0);
    if (mu_remote_value_fetch(value, SOON_MS, &error, &result) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_value_get_int(result, &got), 0);
    assert_int_equal(got, number * number);
    mu_value_free(result);
    mu_value_free(argument);
    mu_remote_value_free(value);
}

/* ---- nodes that do not belong ---- */

TEST_ON(test_other_clusters_name, struct fixture *f, setup, teardown)
{
    mu_node_options options;

    nodes_options(&f->nodes, "worker", 1, &options);
    options.cluster_name = "other";
    (void)nodes_open_with(&f->nodes, &options);
    nodes_wait_log(&f->nodes,
                   "/job:chief/task:0 links: /job:worker/task:1: it refused "
                   "us: cluster name \"muster\", but /job:worker/task:1 belongs "
                   "to cluster \"other\"");
    nodes_wait_log(&f->nodes, "/job:worker/task:1 links: refused /job:chief/task:0 at ");
    check_square(f, 7);
}

TEST_ON(test_refusal_is_told_to_who_waits, struct fixture *f, setup, teardown)
{
    mu_node_options options;
    mu_coordinator *mine = NULL;
    mu_node *impostor;
    mu_error error = {0};

    nodes_options(&f->nodes, "evaluator", 0, &options);
    options.cluster_name = "other";
    impostor = nodes_open_with(&f->nodes, &options);
    assert_int_equal(mu_coordinator_open(impostor, 1000, &error, &mine), -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "/job:chief/task:0 at tcp://127.0.0.1:"));
    assert_non_null(strstr(error.message, "it refused us: cluster name \"other\""));
    check_square(f, 8);
}

/* A client is told so at once, whatever its timeout. */
TEST_ON(test_refusal_ends_a_clients_wait, struct fixture *f, setup, teardown)
{
    mu_node_options options;
    mu_coordinator *mine = NULL;
    mu_node *impostor;
    mu_error error = {0};

    nodes_options(&f->nodes, "client", 7, &options);
    options.cluster_name = "other";
    options.bind_address = "tcp://127.0.0.1:0";
    impostor = nodes_open_with(&f->nodes, &options);
    assert_int_equal(mu_coordinator_open(impostor, 60000, &error, &mine),
                     -MU_EUNAVAILABLE);
    assert_non_null(strstr(error.message, "it refused us: cluster name \"other\""));
    check_square(f, 10);
}

TEST_ON(test_port_in_use, struct fixture *f, setup, teardown)
{
    mu_node_options options;
    mu_node *node = NULL;
    mu_error error = {0};

    nodes_options(&f->nodes, "worker", 0, &options);
    assert_int_equal(mu_node_open(&options, &error, &node), -MU_EEXISTS);
    assert_non_null(strstr(error.message, mu_node_address(f->worker)));
    assert_null(node);
    check_square(f, 9);
}

TEST(test_chief_that_is_not_there)
{
    struct nodes nodes;
    mu_coordinator *coordinator = NULL;
    mu_error error = {0};
    mu_node *client;

    nodes_init(&nodes, 1, 0);
    client = nodes_open(&nodes, "client", 0);
    assert_int_equal(mu_coordinator_open(client, 100, &error, &coordinator),
                     -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "/job:chief/task:0 at tcp://127.0.0.1:"));
    assert_non_null(strstr(error.message, "was not reached within 100 ms"));
    nodes_wait_log(&nodes, "waiting for /job:chief/task:0 at tcp://127.0.0.1:");
    assert_int_equal(mu_coordinator_open(client, 100, &error, &coordinator),
                     -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "within 100 ms: connection refused"));
    nodes_done(&nodes);
}

TEST(test_options_that_make_no_sense)
{
    static const struct {
        const char *type;
        int index;
        unsigned threads;
        unsigned heartbeat_ms;
        const char *bind;
        int code;
        const char *words;
    } rows[] = {
        {"Baker", 0, 1, 1000, NULL, -MU_EINVALID, "Baker"},
        {"worker", 9, 1, 1000, NULL, -MU_ERANGE, "9"},
        {"worker", 0, 0, 1000, NULL, -MU_EINVALID, "threads is 0, expected"},
        {"worker", 0, 1, 1, NULL, -MU_EINVALID, "heartbeat_ms is 1, expected"},
        {"worker", 0, 1, 3000, NULL, -MU_EINVALID, "silence_ms is 5000, expected"},
        {"worker", 0, 1, 1000, "nonsense", -MU_EINVALID, "nonsense"},
    };
    struct nodes nodes;

    nodes_init(&nodes, 1, 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_node_options options;
        mu_node *node = NULL;
        mu_error error = {0};

        mu_node_options_init(&options);
        options.cluster = nodes.cluster;
        options.task_type = rows[i].type;
        options.task_index = rows[i].index;
        options.threads = rows[i].threads;
        options.heartbeat_ms = rows[i].heartbeat_ms;
        options.bind_address = rows[i].bind;
        assert_int_equal(mu_node_open(&options, &error, &node), rows[i].code);
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("row %zu: \"%s\" lacks \"%s\"", i, error.message, rows[i].words);
        assert_null(node);
    }
    nodes_done(&nodes);
}

/* ---- bytes that make no sense ---- */

static void write_all(int fd, const void *data, size_t size)
{
    const uint8_t *at = data;

    while (size > 0) {
        ssize_t written = send(fd, at, size, MSG_NOSIGNAL);

        if (written <= 0)
            return; /* the chief has had enough of it */
        at += written;
        size -= (size_t)written;
    }
}

static int connect_to_chief(struct fixture *f)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *port = strrchr(mu_node_address(f->chief), ':') + 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* A peer that greets as it should. */
static int dial_chief(struct fixture *f)
{
    static const uint8_t greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    int fd = connect_to_chief(f);

    write_all(fd, greeting, sizeof greeting);
    return fd;
}

static void send_bytes(int fd, const void *data, size_t size)
{
    uint8_t head[8 + MU__SP_PREFACE_BYTES];
    uint64_t length = size + MU__SP_PREFACE_BYTES;

    for (int i = 0; i < 8; i++)
        head[i] = (uint8_t)(length >> (56 - 8 * i));
    mu__sp_write(head + 8, &(struct mu__sp_preface){.frames = 0});
    write_all(fd, head, sizeof head);
    write_all(fd, data, size);
}

TEST_ON(test_garbage_in_frames, struct fixture *f, setup, teardown)
{
    int fd = dial_chief(f);

    send_bytes(fd, "nothing that anybody understands, but long enough for a header", 62);
    nodes_wait_log(&f->nodes, "dropped a connection from 127.0.0.1:");
    nodes_wait_log(&f->nodes, ": bad bytes: no frame of muster's");
    (void)close(fd);
    check_square(f, 10);
}

/* The same a hundred times is one line. */
TEST_ON(test_garbage_does_not_fill_the_log, struct fixture *f, setup, teardown)
{
    static const char words[] = "dropped a connection from ";
    unsigned lines = 0;

    for (int i = 0; i < 100; i++) {
        int fd = dial_chief(f);
        char byte;

        send_bytes(fd, "nothing that anybody understands, but long enough for a header",
                   62);
        while (recv(fd, &byte, 1, 0) > 0)
            ;
        (void)close(fd);
    }
    check_square(f, 16);
    (void)pthread_mutex_lock(&f->nodes.log.lock);
    for (const char *at = f->nodes.log.text; (at = strstr(at, words)) != NULL; at++)
        lines++;
    (void)pthread_mutex_unlock(&f->nodes.log.lock);
    assert_in_range(lines, 1, 2);
}

/* A HELLO with the given version and name; returns the frame. */
static struct mu__buf *hello_frame(uint16_t version, const char *cluster,
                                   const char *address)
{
    struct mu__buf *frame = mu__buf_new(1024);
    struct mu__msg *msg = mu__msg_heap(MU__FRAME_HELLO, sizeof(struct mu__hello));
    const struct mu__frame_header header = {version, MU__FRAME_HELLO, 4711, 0, 1};
    struct mu__hello *body;

    assert_non_null(frame);
    assert_non_null(msg);
    body = (void *)msg->body;
    body->cluster = mu__view_str(cluster);
    body->type = mu__view_str("client");
    body->index = 5;
    body->address = mu__view_str(address);
    frame->size = MU__FRAME_HEADER_BYTES;
    mu__frame_write(frame, &header);
    assert_int_equal(mu__encode(&mu__frame_messages, msg, frame), 0);
    free(msg);
    return frame;
}

TEST_ON(test_hello_of_another_version, struct fixture *f, setup, teardown)
{
    int fd = dial_chief(f);
    struct mu__buf *frame = hello_frame(77, "muster", "tcp://127.0.0.1:9");

    send_bytes(fd, frame->data, frame->size);
    nodes_wait_log(&f->nodes, "refused /job:client/task:5 (`muster check` or another "
                              "client, no task) at tcp://127.0.0.1:9: protocol "
                              "version 77, but /job:chief/task:0 speaks version 1");
    mu__buf_unref(frame);
    (void)close(fd);
    check_square(f, 11);
}

TEST_ON(test_hello_with_an_address_that_is_none, struct fixture *f, setup, teardown)
{
    int fd = dial_chief(f);
    struct mu__buf *frame = hello_frame(MU__FRAME_VERSION, "muster", "around the corner");
    uint8_t answer[8 + 8 + MU__SP_PREFACE_BYTES + MU__FRAME_HEADER_BYTES];
    const struct timeval limit = {20, 0};

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    send_bytes(fd, frame->data, frame->size);
    assert_int_equal(recv(fd, answer, sizeof answer, MSG_WAITALL), sizeof answer);
    assert_int_equal(answer[8 + 8 + MU__SP_PREFACE_BYTES + 6], MU__FRAME_HELLO);
    assert_false(nodes_has_logged(&f->nodes, "around the corner"));
    mu__buf_unref(frame);
    (void)close(fd);
    check_square(f, 12);
}

/* What a stranger says of itself neither ends a line of the log nor steers a terminal. */
TEST_ON(test_hello_that_forges_a_line, struct fixture *f, setup, teardown)
{
    int fd = dial_chief(f);
    struct mu__buf *frame = hello_frame(MU__FRAME_VERSION, "x\nERROR all is lost\x1b[2J",
                                        "tcp://127.0.0.1:9");

    send_bytes(fd, frame->data, frame->size);
    nodes_wait_log(&f->nodes, "x\\nERROR all is lost\\x1b[2J");
    assert_false(nodes_has_logged(&f->nodes, "\nERROR all"));
    assert_false(nodes_has_logged(&f->nodes, "\x1b"));
    mu__buf_unref(frame);
    (void)close(fd);
    check_square(f, 17);
}

/* A right header, and nonsense behind it. */
TEST_ON(test_hello_with_nonsense_inside, struct fixture *f, setup, teardown)
{
    int fd = dial_chief(f);
    struct mu__buf *frame = hello_frame(MU__FRAME_VERSION, "muster", "tcp://127.0.0.1:9");

    memset(frame->data + MU__FRAME_HEADER_BYTES + 8, 0xc1, 8);
    send_bytes(fd, frame->data, frame->size);
    nodes_wait_log(&f->nodes, ": bad bytes: ");
    mu__buf_unref(frame);
    (void)close(fd);
    check_square(f, 13);
}

TEST_ON(test_frame_beyond_the_limit, struct fixture *f, setup, teardown)
{
    int fd = dial_chief(f);
    size_t size = MU__FRAME_BYTES_MAX + 1;
    void *data = calloc(1, size);

    assert_non_null(data);
    send_bytes(fd, data, size);
    check_square(f, 14);
    free(data);
    (void)close(fd);
}

/* Not even nng's protocol. */
TEST_ON(test_plain_bytes_on_the_port, struct fixture *f, setup, teardown)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: chief\r\n\r\n";
    char answer[64];

    for (int i = 0; i < 20; i++) {
        int fd = connect_to_chief(f);

        (void)send(fd, request, sizeof request - 1, MSG_NOSIGNAL);
        while (recv(fd, answer, sizeof answer, 0) > 0)
            ;
        (void)close(fd);
    }
    check_square(f, 15);
}

/* ---- plugins ---- */

TEST_ON(test_plugins_that_do_not_load, struct fixture *f, setup, teardown)
{
    mu_error error = {0};

    assert_int_equal(mu_node_load_plugin(f->worker, "./no-such-plugin.so", &error),
                     -MU_ENOTFOUND);
    assert_non_null(strstr(error.message, "./no-such-plugin.so"));
    assert_int_equal(mu_node_load_plugin(f->worker, "libm.so.6", &error), -MU_ENOTFOUND);
    assert_non_null(strstr(error.message, "has no function \"mu_plugin_open\""));
    assert_int_equal(mu_node_register_function(f->worker, "square", square, NULL, 0),
                     -MU_EEXISTS);
    assert_int_equal(mu_node_register_function(f->worker, "", square, NULL, 0),
                     -MU_EINVALID);
    check_square(f, 16);
}

TEST_PROGRAM()
