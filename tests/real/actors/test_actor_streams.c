/* Streams of actors on real nodes: read by threads, with what is under way bounded, and
 * when the process at either end is killed. */
#include "tests/real/nodes.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

/* ---- a type ---- */

enum { AHEAD = 8, FOR_EVER = -1 };

struct spring {
    mu_stream *stream;
    int64_t given;
    int64_t total; /* FOR_EVER: without end */
    int64_t closed;
};

static int give_more(struct spring *spring)
{
    int rv = 0;

    while (rv == 0 && spring->given != spring->total) {
        mu_value *item = mu_value_int(spring->given + 1);

        rv = mu_stream_give(spring->stream, item);
        mu_value_free(item);
        spring->given += rv == 0;
    }
    if (spring->given != spring->total)
        return rv == -MU_EAGAIN ? 0 : rv;
    rv = mu_stream_end(spring->stream, NULL);
    spring->stream = NULL;
    return rv;
}

static int flow(mu_actor *self, void *state, const mu_value *args)
{
    struct spring *spring = state;

    spring->given = 0;
    if (mu_value_get_int(args, &spring->total) != 0)
        return mu_actor_fail(self, -MU_EINVALID, "flow expects a number");
    spring->stream = mu_actor_stream(self, AHEAD, 1);
    return spring->stream == NULL ? -MU_ENOMEM : give_more(spring);
}

/* Nothing comes of it. */
static int drip(mu_actor *self, void *state, const mu_value *args)
{
    struct spring *spring = state;

    (void)args;
    spring->stream = mu_actor_stream(self, AHEAD, 1);
    return 0;
}

static int drop_one(mu_actor *self, void *state, const mu_value *args)
{
    struct spring *spring = state;

    (void)self;
    (void)args;
    return mu_stream_give(spring->stream, NULL);
}

static int count_given(mu_actor *self, void *state, const mu_value *args)
{
    (void)args;
    mu_actor_reply(self, mu_value_int(((struct spring *)state)->given));
    return 0;
}

static int count_closed(mu_actor *self, void *state, const mu_value *args)
{
    (void)args;
    mu_actor_reply(self, mu_value_int(((struct spring *)state)->closed));
    return 0;
}

static void hear(mu_actor *self, void *state, const mu_notice *notice)
{
    struct spring *spring = state;

    (void)self;
    if (notice->kind == MU_NOTICE_STREAM_ROOM) {
        assert_int_equal(give_more(spring), 0);
        return;
    }
    assert_int_equal(notice->kind, MU_NOTICE_STREAM_CLOSED);
    assert_int_equal(mu_stream_end(spring->stream, NULL), 0);
    spring->stream = NULL;
    spring->closed++;
}

static const mu_actor_method methods[] = {
    {"flow", flow},         {"drip", drip},           {"drop", drop_one},
    {"given", count_given}, {"closed", count_closed}, {NULL, NULL}};

static const mu_actor_type spring_type = {
    .name = "spring",
    .state_size = sizeof(struct spring),
    .methods = methods,
    .notice = hear,
};

/* ---- nodes ---- */

static mu_node *open_task(struct nodes *nodes, const char *type, int index)
{
    mu_node *node = nodes_open(nodes, type, index);

    assert_int_equal(mu_node_register_actor(node, &spring_type), 0);
    return node;
}

/* On the task of this type, once it is there. */
static mu_address spawn_soon(mu_node *node, const char *type)
{
    mu_actor_options options;
    mu_error error = {0};
    mu_address address;
    int rv = -1;

    mu_actor_options_init(&options);
    options.task_type = type;
    for (int i = 0; i < SOON_MS && rv != 0; i++) {
        rv = mu_node_spawn(node, "spring", NULL, &options, SOON_MS, &error, &address);
        if (rv != 0)
            nodes_pause();
    }
    check(rv, &error);
    return address;
}

static int64_t number_of(mu_node *node, const mu_address *to, const char *method)
{
    mu_remote_value *value = NULL;
    mu_value *result = NULL;
    mu_error error = {0};
    int64_t number = -1;

    check(mu_actor_request(node, to, method, NULL, SOON_MS, &error, &value), &error);
    check(mu_remote_value_fetch(value, SOON_MS, &error, &result), &error);
    assert_int_equal(mu_value_get_int(result, &number), 0);
    mu_value_free(result);
    mu_remote_value_free(value);
    return number;
}

static mu_stream_reader *read_from(mu_node *node, const mu_address *to,
                                   const char *method, int64_t total)
{
    mu_stream_reader *reader = NULL;
    mu_value *args = mu_value_int(total);
    mu_error error = {0};

    check(mu_actor_open_stream(node, to, method, args, SOON_MS, &error, &reader), &error);
    mu_value_free(args);
    return reader;
}

static int64_t next_of(mu_stream_reader *reader)
{
    mu_value *item = NULL;
    mu_error error = {0};
    int64_t number = -1;

    check(mu_stream_next(reader, SOON_MS, &error, &item), &error);
    assert_int_equal(mu_value_get_int(item, &number), 0);
    mu_value_free(item);
    return number;
}

static mu_error end_of(mu_stream_reader *reader)
{
    mu_value *item = NULL;
    mu_error error = {0};
    int rv = mu_stream_next(reader, SOON_MS, &error, &item);

    assert_null(item);
    assert_int_not_equal(rv, 0);
    assert_int_equal(rv, error.code);
    return error;
}

static void expect_closed_soon(mu_node *node, const mu_address *spring)
{
    int64_t closed = 0;

    for (int i = 0; i < SOON_MS && closed == 0; i++) {
        closed = number_of(node, spring, "closed");
        nodes_pause();
    }
    assert_int_equal(closed, 1);
}

/* ---- tests ---- */

static void read_all(mu_node *node, const mu_address *spring, int64_t total)
{
    mu_stream_reader *reader = read_from(node, spring, "flow", total);

    for (int64_t i = 1; i <= total; i++)
        assert_int_equal(next_of(reader), i);
    assert_int_equal(end_of(reader).code, -MU_ERANGE);
    assert_int_equal(end_of(reader).code, -MU_ERANGE);
    mu_stream_close(reader);
}

TEST(test_threads_read)
{
    struct nodes nodes;
    mu_node *chief;
    mu_address spring;
    mu_stream_reader *reader;
    mu_value *item = NULL;
    mu_remote_value *value = NULL;
    mu_error error = {0};

    nodes_init(&nodes, 0, 0);
    chief = open_task(&nodes, "chief", 0);
    spring = spawn_soon(chief, NULL);
    read_all(chief, &spring, 0);
    read_all(chief, &spring, 1);
    read_all(chief, &spring, 5000);

    reader = read_from(chief, &spring, "drip", 0);
    assert_int_equal(mu_stream_next(reader, 0, &error, &item), -MU_EDEADLINE);
    assert_int_equal(mu_stream_next(reader, 20, &error, &item), -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "no item of drip of /job:chief/task:0#"));
    check(mu_actor_request(chief, &spring, "drop", NULL, SOON_MS, &error, &value),
          &error);
    mu_remote_value_free(value);
    check(mu_stream_next(reader, SOON_MS, &error, &item), &error);
    assert_int_equal(mu_value_type(item), MU_VALUE_NIL);
    mu_value_free(item);
    mu_stream_close(reader);
    expect_closed_soon(chief, &spring);
    nodes_done(&nodes);
}

TEST(test_what_is_no_stream)
{
    struct nodes nodes;
    mu_node *chief;
    mu_address spring;
    mu_stream_reader *reader;
    mu_remote_value *value = NULL;
    mu_error error = {0};

    nodes_init(&nodes, 0, 0);
    chief = open_task(&nodes, "chief", 0);
    spring = spawn_soon(chief, NULL);

    reader = read_from(chief, &spring, "given", 0);
    assert_int_equal(next_of(reader), 0);
    assert_int_equal(end_of(reader).code, -MU_ERANGE);
    mu_stream_close(reader);

    reader = read_from(chief, &spring, "none", 0);
    error = end_of(reader);
    assert_int_equal(error.code, -MU_ENOTFOUND);
    assert_int_equal(error.ran, MU_RAN_NO);
    mu_stream_close(reader);

    check(mu_actor_open_stream(chief, &spring, "flow", NULL, SOON_MS, &error, &reader),
          &error);
    error = end_of(reader);
    assert_int_equal(error.code, -MU_EINVALID);
    assert_int_equal(error.ran, MU_RAN_YES);
    mu_stream_close(reader);

    /* A remote value is one value. */
    check(mu_actor_request(chief, &spring, "drip", NULL, SOON_MS, &error, &value),
          &error);
    assert_int_equal(mu_remote_value_fetch(value, SOON_MS, &error, NULL),
                     -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "mu_actor_open_stream"));
    mu_remote_value_free(value);
    expect_closed_soon(chief, &spring);
    nodes_done(&nodes);
}

TEST(test_a_slow_reader_bounds_what_is_given)
{
    struct nodes nodes;
    mu_node *chief;
    mu_node *worker;
    mu_address spring;
    mu_stream_reader *reader;

    nodes_init(&nodes, 1, 0);
    worker = open_task(&nodes, "worker", 0);
    chief = open_task(&nodes, "chief", 0);
    spring = spawn_soon(chief, "worker");
    reader = read_from(chief, &spring, "flow", 1000);
    for (int64_t i = 1; i <= 1000; i++) {
        assert_int_equal(next_of(reader), i);
        if (i % 50 == 0)
            assert_in_range(number_of(worker, &spring, "given"), i, i + AHEAD);
    }
    assert_int_equal(end_of(reader).code, -MU_ERANGE);
    mu_stream_close(reader);
    assert_int_equal(number_of(chief, &spring, "closed"), 0);
    nodes_done(&nodes);
}

/* A child process plays the worker, until it is killed: it has springs, or reads without
 * end from one of the chief's, whose address comes in a pipe. */
static pid_t play_worker(struct nodes *nodes, int reads_from)
{
    pid_t child = fork();
    mu_address spring;
    mu_node *node;
    mu_stream_reader *reader;

    assert_true(child >= 0);
    if (child > 0)
        return child;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    node = open_task(nodes, "worker", 0);
    if (reads_from < 0)
        for (;;)
            (void)pause();
    if (read(reads_from, &spring, sizeof spring) != (ssize_t)sizeof spring)
        exit(1);
    reader = read_from(node, &spring, "flow", FOR_EVER);
    for (;;)
        (void)next_of(reader);
}

static void kill_child(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(test_the_process_that_gives_is_killed)
{
    struct nodes nodes;
    mu_node *chief;
    mu_address spring;
    mu_stream_reader *reader;
    mu_value *item = NULL;
    mu_error error = {0};
    int64_t last = 100;
    int64_t number = 0;
    pid_t child;

    nodes_init(&nodes, 1, 0);
    child = play_worker(&nodes, -1);
    chief = open_task(&nodes, "chief", 0);
    spring = spawn_soon(chief, "worker");
    reader = read_from(chief, &spring, "flow", FOR_EVER);
    for (int64_t i = 1; i <= last; i++)
        assert_int_equal(next_of(reader), i);
    kill_child(child);
    while (mu_stream_next(reader, SOON_MS, &error, &item) == 0) {
        assert_int_equal(mu_value_get_int(item, &number), 0);
        assert_int_equal(number, ++last);
        mu_value_free(item);
    }
    assert_in_range(last, 100, 100 + AHEAD);
    assert_int_equal(error.code, -MU_EUNAVAILABLE);
    assert_int_equal(error.ran, MU_RAN_MAYBE);
    assert_string_equal(error.task, "/job:worker/task:0");
    assert_int_equal(end_of(reader).code, -MU_EUNAVAILABLE);
    mu_stream_close(reader);
    nodes_done(&nodes);
}

TEST(test_the_process_that_reads_is_killed)
{
    struct nodes nodes;
    mu_node *chief;
    mu_address spring;
    int ends[2];
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    nodes_init(&nodes, 1, 0);
    child = play_worker(&nodes, ends[0]);
    chief = open_task(&nodes, "chief", 0);
    spring = spawn_soon(chief, NULL);
    assert_int_equal(write(ends[1], &spring, sizeof spring), sizeof spring);
    while (number_of(chief, &spring, "given") < 1000)
        nodes_pause();
    assert_int_equal(number_of(chief, &spring, "closed"), 0);
    kill_child(child);
    expect_closed_soon(chief, &spring);
    (void)close(ends[0]);
    (void)close(ends[1]);
    nodes_done(&nodes);
}

TEST(test_a_node_that_closes_ends_its_readers)
{
    struct nodes nodes;
    mu_node *chief;
    mu_address spring;
    mu_stream_reader *reader;
    mu_stream_reader *unread;

    nodes_init(&nodes, 0, 0);
    chief = open_task(&nodes, "chief", 0);
    spring = spawn_soon(chief, NULL);
    reader = read_from(chief, &spring, "flow", FOR_EVER);
    assert_int_equal(next_of(reader), 1);
    spring = spawn_soon(chief, NULL);
    unread = read_from(chief, &spring, "drip", 0);
    nodes_close(&nodes, chief);
    for (int64_t i = 2; i <= AHEAD / 2; i++)
        assert_int_equal(next_of(reader), i); /* it had these already */
    assert_int_equal(end_of(reader).code, -MU_ECLOSED);
    assert_int_equal(end_of(unread).code, -MU_ECLOSED);
    mu_stream_close(reader);
    mu_stream_close(unread);
    nodes_done(&nodes);
}

TEST_PROGRAM()
