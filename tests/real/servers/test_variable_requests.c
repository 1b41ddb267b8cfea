/* Requests of a variable that nobody waits for; its server is a process that is stopped
 * and killed. */
#include "tests/real/cli.h"
#include "tests/real/nodes.h"

#include <sched.h>
#include <stdatomic.h>

enum { ROWS = 8, MANY = 100, LOST_MS = 60000 };

/* One that is under way. */
struct asked {
    struct fixture *f;
    atomic_uint ends;
    int code;
    mu_error error;
    float data[ROWS];
};

struct fixture {
    struct nodes nodes;
    struct cli server;
    mu_node *chief;
    mu_variable *variable;
    atomic_uint ended;
    atomic_uint elsewhere; /* ends on another thread than the first one's */
    pthread_t loop;
    unsigned chain; /* requests that are still to be begun, each by an end */
    struct asked asked[2 * MANY];
};

static int set_up(void **state)
{
    static const uint64_t dims[1] = {ROWS};
    const mu_variable_spec spec = {.name = "w", .dtype = MU_F32, .rank = 1, .dims = dims};
    struct fixture *f = calloc(1, sizeof *f);
    mu_node_options options;
    mu_error error = {.message = ""};

    assert_non_null(f);
    nodes_init(&f->nodes, 0, 1);
    nodes_options(&f->nodes, "chief", 0, &options);
    options.server_lost_ms = LOST_MS;
    options.silence_ms = 2000;
    f->chief = nodes_open_with(&f->nodes, &options);
    cli_start(&f->server, NULL, "node", "--cluster", f->nodes.json, "--task", "ps:0",
              "--heartbeat-ms", "200", "--silence-ms", "2000", NULL);
    check(mu_variable_open(f->chief, &spec, SOON_MS, &error, &f->variable), &error);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mu_variable_close(f->variable);
    cli_kill(&f->server, SIGKILL);
    (void)cli_wait(&f->server);
    nodes_done(&f->nodes);
    free(f);
    return 0;
}

/* It answers nothing any more, when this has returned. */
static void stop_server(struct fixture *f)
{
    int status;

    cli_kill(&f->server, SIGSTOP);
    assert_int_equal(waitpid(f->server.pid, &status, WUNTRACED), f->server.pid);
    assert_true(WIFSTOPPED(status));
}

static void note_end(void *user, int code, const mu_error *error)
{
    struct asked *asked = user;
    struct fixture *f = asked->f;

    if (atomic_load(&f->ended) == 0)
        f->loop = pthread_self();
    else if (pthread_equal(f->loop, pthread_self()) == 0)
        atomic_fetch_add(&f->elsewhere, 1);
    asked->code = code;
    if (error != NULL)
        asked->error = *error;
    atomic_fetch_add(&asked->ends, 1);
    atomic_fetch_add(&f->ended, 1);
}

static void await_ends(struct fixture *f, unsigned count)
{
    while (atomic_load(&f->ended) < count)
        nodes_pause();
    assert_int_equal(atomic_load(&f->ended), count);
    assert_int_equal(atomic_load(&f->elsewhere), 0);
}

static void ask(struct fixture *f, unsigned number, mu_variable_request request)
{
    struct asked *asked = &f->asked[number];
    mu_error error = {.message = ""};

    asked->f = f;
    if (request.timeout_ms == 0)
        request.timeout_ms = SOON_MS;
    request.bytes = request.bytes == 0 ? sizeof asked->data : request.bytes;
    if (request.operation == MU_VARIABLE_READ)
        request.target = asked->data;
    else
        request.source = asked->data;
    check(mu_variable_request_async(f->variable, &request, note_end, asked, &error),
          &error);
}

/* Alternately reads and adds of 1. */
static void ask_many(struct fixture *f, int64_t timeout_ms)
{
    for (unsigned i = 0; i < MANY; i++) {
        for (unsigned k = 0; k < ROWS; k++)
            f->asked[i].data[k] = 1;
        ask(f, i,
            (mu_variable_request){.operation =
                                      i % 2 == 0 ? MU_VARIABLE_READ : MU_VARIABLE_ADD,
                                  .timeout_ms = timeout_ms});
    }
}

static void expect_content(struct fixture *f, const float *expected)
{
    float data[ROWS] = {0};
    mu_error error = {.message = ""};

    check(mu_variable_read(f->variable, data, sizeof data, SOON_MS, &error), &error);
    assert_memory_equal(data, expected, sizeof data);
}

static void expect_all_ok(const struct fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        check(f->asked[i].code, &f->asked[i].error);
}

/* Each request that the calls that wait can make, one after the other. */
TEST_ON(test_each_operation, struct fixture *f, set_up, tear_down)
{
    const mu_optimizer sgd = mu_optimizer_make(MU_OPTIMIZER_SGD, 2);
    static const int64_t list[] = {7, 0, 7};
    static const mu_rows some = {.first = 2, .count = 2};
    static const mu_rows listed = {.count = 3, .list = list};
    static const mu_rows none = {.count = 0};
    const mu_variable_request requests[] = {
        {.operation = MU_VARIABLE_ASSIGN},
        {.operation = MU_VARIABLE_ADD},
        {.operation = MU_VARIABLE_APPLY, .optimizer = &sgd},
        {.operation = MU_VARIABLE_ASSIGN, .rows = &some, .bytes = 8},
        {.operation = MU_VARIABLE_ADD, .rows = &listed, .bytes = 12},
        {.operation = MU_VARIABLE_UPDATE,
         .update = MU_ROWS_MAX,
         .rows = &some,
         .bytes = 8},
        {.operation = MU_VARIABLE_READ, .rows = &listed, .bytes = 12},
        {.operation = MU_VARIABLE_READ, .is_cached = 1, .max_age_ms = 1000000},
        {.operation = MU_VARIABLE_READ, .is_cached = 1, .max_age_ms = 1000000},
    };
    static const float expected[ROWS] = {10, 0, 6, 6, 0, 0, 0, 12};
    const unsigned count = sizeof requests / sizeof requests[0];

    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < ROWS; k++)
            f->asked[i].data[k] = (float)(i < 3 ? i + 1 : 2 * i);
        for (unsigned k = 0; k < ROWS && i == 2; k++)
            f->asked[2].data[k] = k == 0 || k == 7 ? 0.5F : 1.5F;
        if (i == 3)
            f->asked[3].data[0] = f->asked[3].data[1] = 6;
        if (i == 4)
            f->asked[4].data[1] = 8;
        if (i == 4)
            f->asked[4].data[0] = f->asked[4].data[2] = 5;
        if (i == 5)
            f->asked[5].data[0] = f->asked[5].data[1] = 1;
        ask(f, i, requests[i]);
        await_ends(f, i + 1);
    }
    expect_all_ok(f, count);
    expect_content(f, expected);
    assert_memory_equal(f->asked[7].data, expected, sizeof expected);
    assert_memory_equal(f->asked[8].data, expected, sizeof expected);
    assert_int_equal((int)f->asked[6].data[0], 12);
    assert_int_equal((int)f->asked[6].data[1], 10);
    assert_int_equal((int)f->asked[6].data[2], 12);
    f->asked[count].f = f;
    assert_int_equal(
        mu_variable_request_async(f->variable,
                                  &(mu_variable_request){.operation = MU_VARIABLE_READ,
                                                         .rows = &none,
                                                         .target = f->asked[count].data},
                                  note_end, &f->asked[count], NULL),
        0);
    await_ends(f, count + 1);
}

/* What has begun goes on without the handle. */
TEST_ON(test_the_variable_is_closed_meanwhile, struct fixture *f, set_up, tear_down)
{
    stop_server(f);
    ask_many(f, SOON_MS);
    mu_variable_close(f->variable);
    f->variable = NULL;
    cli_kill(&f->server, SIGCONT);
    await_ends(f, MANY);
    expect_all_ok(f, MANY);
}

static void go_on(void *user, int code, const mu_error *error)
{
    struct asked *asked = user;
    struct fixture *f = asked->f;

    if (f->chain > 0) {
        f->chain--;
        ask(f, f->chain, (mu_variable_request){.operation = MU_VARIABLE_READ});
    }
    note_end(user, code, error);
}

TEST_ON(test_an_end_begins_others, struct fixture *f, set_up, tear_down)
{
    const mu_variable_request request = {.operation = MU_VARIABLE_READ,
                                         .target = f->asked[MANY].data,
                                         .bytes = sizeof f->asked[MANY].data,
                                         .timeout_ms = SOON_MS};

    f->asked[MANY].f = f;
    f->chain = 1;
    assert_int_equal(mu_variable_request_async(f->variable, &request, go_on,
                                               &f->asked[MANY], NULL),
                     0);
    await_ends(f, 2);
    assert_int_equal(f->asked[MANY].code, 0);
    assert_int_equal(f->asked[0].code, 0);
    assert_int_equal(pthread_equal(f->loop, pthread_self()), 0);
}

/* Each ends once: with an answer, or an error that names the server. */
TEST_ON(test_the_server_is_killed, struct fixture *f, set_up, tear_down)
{
    unsigned failed = 0;

    ask_many(f, 3000);
    stop_server(f);
    for (unsigned i = MANY; i < 2 * MANY; i++)
        ask(f, i,
            (mu_variable_request){.operation = MU_VARIABLE_READ, .timeout_ms = 3000});
    cli_kill(&f->server, SIGKILL);
    await_ends(f, 2 * MANY);
    for (unsigned i = 0; i < 2 * MANY; i++) {
        const struct asked *asked = &f->asked[i];

        assert_int_equal(atomic_load(&asked->ends), 1);
        if (asked->code == 0)
            continue;
        failed++;
        assert_true(asked->code == -MU_EUNAVAILABLE || asked->code == -MU_EDEADLINE);
        assert_int_equal(asked->error.code, asked->code);
        assert_non_null(strstr(asked->error.message, "/job:ps/task:0"));
    }
    assert_true(failed >= MANY);
}

TEST_ON(test_the_node_is_closed, struct fixture *f, set_up, tear_down)
{
    mu_error error = {.message = ""};

    stop_server(f);
    ask_many(f, -1);
    nodes_close(&f->nodes, f->chief);
    await_ends(f, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(atomic_load(&f->asked[i].ends), 1);
        assert_int_equal(f->asked[i].code, -MU_ECLOSED);
        assert_non_null(strstr(f->asked[i].error.message, "variable w"));
    }
    assert_int_equal(mu_variable_request_async(
                         f->variable,
                         &(mu_variable_request){.operation = MU_VARIABLE_READ,
                                                .target = f->asked[0].data,
                                                .bytes = sizeof f->asked[0].data},
                         note_end, &f->asked[0], &error),
                     -MU_ECLOSED);
    assert_string_equal(error.message, "/job:chief/task:0 is closed");
    assert_int_equal(atomic_load(&f->ended), MANY);
}

/* One has a short limit, the others go on. */
TEST_ON(test_each_has_its_limit, struct fixture *f, set_up, tear_down)
{
    stop_server(f);
    ask(f, 0, (mu_variable_request){.operation = MU_VARIABLE_READ});
    ask(f, 1, (mu_variable_request){.operation = MU_VARIABLE_READ, .timeout_ms = 100});
    await_ends(f, 1);
    assert_int_equal(f->asked[1].code, -MU_EDEADLINE);
    assert_non_null(strstr(f->asked[1].error.message, "/job:ps/task:0"));
    cli_kill(&f->server, SIGCONT);
    await_ends(f, 2);
    assert_int_equal(f->asked[0].code, 0);
}

static void expect_refused(struct fixture *f, mu_variable_request request, int code,
                           const char *words)
{
    mu_error error = {.message = ""};

    assert_int_equal(
        mu_variable_request_async(f->variable, &request, note_end, NULL, &error), code);
    assert_int_equal(error.code, code);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" has no \"%s\"", error.message, words);
    if (code == -MU_EAGAIN)
        return;
    assert_int_equal(mu_variable_request_wait(f->variable, &request, &error), code);
    assert_non_null(strstr(error.message, words));
}

TEST_ON(test_what_is_not_begun, struct fixture *f, set_up, tear_down)
{
    static const mu_rows far = {.first = 7, .count = 2};
    static const mu_rows two = {.first = 0, .count = 2};
    static const int64_t wrong[] = {0, 8};
    static const mu_rows listed = {.count = 2, .list = wrong};
    const mu_optimizer sgd = mu_optimizer_make(MU_OPTIMIZER_SGD, 1);
    float data[ROWS] = {0};
    mu_variable_request request = {.source = data, .target = data, .bytes = sizeof data};

    expect_refused(f, request, -MU_EINVALID, "no operation 0");
    request.operation = MU_VARIABLE_UPDATE + 1;
    expect_refused(f, request, -MU_EINVALID, "no operation 6");
    request.operation = MU_VARIABLE_UPDATE;
    expect_refused(f, request, -MU_EINVALID, "an update is of rows");
    request.rows = &two;
    expect_refused(f, request, -MU_EINVALID, "no update 0");
    request.operation = MU_VARIABLE_APPLY;
    expect_refused(f, request, -MU_EINVALID, "without an optimizer");
    request.optimizer = &sgd;
    expect_refused(f, request, -MU_EINVALID, "is not of rows");
    request.operation = MU_VARIABLE_ADD;
    expect_refused(f, request, -MU_EINVALID, "a buffer of 32 bytes for 2 rows of 4");
    request.bytes = 2 * sizeof data[0];
    request.rows = &far;
    expect_refused(f, request, -MU_ERANGE, "2 rows from 7 on: it has 8");
    request.rows = &listed;
    expect_refused(f, request, -MU_ERANGE, "w");
    request.source = NULL;
    request.rows = &two;
    expect_refused(f, request, -MU_EINVALID, "the buffer is NULL");
    request.rows = NULL;
    expect_refused(f, request, -MU_EINVALID, "a buffer of 8 bytes: expected 32");
    assert_int_equal(atomic_load(&f->ended), 0);
}

/* Writes of 16 MiB: the handle has copied as much as it may. */
TEST_ON(test_no_more_than_the_bound, struct fixture *f, set_up, tear_down)
{
    enum { LISTED = 256, ROW = 16 << 10, BEGUN = 16 };
    static const uint64_t dims[2] = {4, ROW};
    static const int64_t list[LISTED];
    const mu_variable_spec spec = {
        .name = "large", .dtype = MU_F32, .rank = 2, .dims = dims};
    const mu_rows rows = {.count = LISTED, .list = list};
    float *data = calloc(LISTED * ROW, sizeof *data);
    mu_variable_request request = {.operation = MU_VARIABLE_ASSIGN,
                                   .rows = &rows,
                                   .source = data,
                                   .bytes = LISTED * ROW * sizeof *data,
                                   .timeout_ms = SOON_MS};
    mu_error error = {.message = ""};

    assert_non_null(data);
    mu_variable_close(f->variable);
    check(mu_variable_open(f->chief, &spec, SOON_MS, &error, &f->variable), &error);
    stop_server(f);
    for (unsigned i = 0; i < BEGUN - 1; i++) {
        f->asked[i].f = f;
        assert_int_equal(mu_variable_request_async(f->variable, &request, note_end,
                                                   &f->asked[i], NULL),
                         0);
    }
    expect_refused(f, request, -MU_EAGAIN, "variable large");
    cli_kill(&f->server, SIGCONT);
    await_ends(f, BEGUN - 1);
    expect_all_ok(f, BEGUN - 1);
    f->asked[BEGUN].f = f;
    assert_int_equal(mu_variable_request_async(f->variable, &request, note_end,
                                               &f->asked[BEGUN], NULL),
                     0);
    await_ends(f, BEGUN);
    free(data);
}

TEST_PROGRAM()
