/* Actors of the program's own: sends and calls on one thread and between two processes,
 * one call at a time from a thread, streams beside them, and the memory of an actor that
 * does nothing. */
#include "bench/bench.h"
#include "bench/cluster.h"

#include <malloc.h>
#include <muster.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { OUTSTANDING = 64, TIMEOUT_MS = 60000 };

/* ---- what is called ---- */

static int count_one(mu_actor *self, void *state, const mu_value *args)
{
    int64_t number = 0;

    (void)self;
    (void)mu_value_get_int(args, &number);
    *(int64_t *)state += number;
    return 0;
}

static int show_count(mu_actor *self, void *state, const mu_value *args)
{
    (void)args;
    mu_actor_reply(self, mu_value_int(*(int64_t *)state));
    return 0;
}

static const mu_actor_method counter_methods[] = {
    {"count", count_one}, {"show", show_count}, {NULL, NULL}};
static const mu_actor_type counter_type = {
    .name = "counter",
    .state_size = sizeof(int64_t),
    .methods = counter_methods,
};

/* ---- who calls: [address, number, 1 for calls or 0 for sends] ---- */

struct driver {
    mu_address to;
    mu_reply *reply;
    mu_value *one;
    int64_t left;       /* to be sent */
    int64_t unanswered; /* calls */
    bool calls;
};

static int drive(mu_actor *self, struct driver *driver)
{
    int rv = 0;

    while (rv == 0 && driver->left > 0 &&
           (!driver->calls || driver->unanswered < OUTSTANDING)) {
        rv = driver->calls
                 ? mu_actor_call(self, &driver->to, "count", driver->one, TIMEOUT_MS, 1)
                 : mu_actor_send(self, &driver->to, "count", driver->one);
        if (rv == 0)
            driver->left--;
        if (rv == 0 && driver->calls)
            driver->unanswered++;
    }
    if (rv != 0 && rv != -MU_EAGAIN)
        return rv;
    /* What was sent last has arrived when this is answered. */
    if (driver->left == 0 && driver->unanswered == 0) {
        driver->left = -1;
        rv = mu_actor_call(self, &driver->to, "show", NULL, TIMEOUT_MS, 2);
        if (rv == -MU_EAGAIN)
            driver->left = 0;
    }
    return 0;
}

static int begin_driving(mu_actor *self, void *state, const mu_value *args)
{
    struct driver *driver = state;
    int64_t calls = 0;

    if (mu_value_get_actor(mu_value_at(args, 0), &driver->to) != 0 ||
        mu_value_get_int(mu_value_at(args, 1), &driver->left) != 0 ||
        mu_value_get_int(mu_value_at(args, 2), &calls) != 0)
        return mu_actor_fail(self, -MU_EINVALID,
                             "drive expects [address, number, calls]");
    driver->calls = calls != 0;
    driver->one = mu_value_int(1);
    driver->reply = mu_actor_reply_later(self);
    return drive(self, driver);
}

static void go_on(mu_actor *self, void *state, const mu_notice *notice)
{
    struct driver *driver = state;

    if (notice->kind == MU_NOTICE_ANSWER && notice->token == 2) {
        mu_reply_give(driver->reply, NULL, notice->error);
        mu_value_free(driver->one);
        return;
    }
    if (notice->kind == MU_NOTICE_ANSWER)
        driver->unanswered--;
    (void)drive(self, driver);
}

static const mu_actor_method driver_methods[] = {{"drive", begin_driving}, {NULL, NULL}};
static const mu_actor_type driver_type = {
    .name = "driver",
    .state_size = sizeof(struct driver),
    .methods = driver_methods,
    .notice = go_on,
};

/* ---- streams: who gives one, and who reads it ---- */

struct spring {
    mu_stream *stream;
    mu_value *one;
    int64_t left;
};

static int give(struct spring *spring)
{
    int rv = 0;

    while (rv == 0 && spring->left > 0) {
        rv = mu_stream_give(spring->stream, spring->one);
        spring->left -= rv == 0;
    }
    if (spring->left > 0)
        return rv == -MU_EAGAIN ? 0 : rv;
    mu_value_free(spring->one);
    return mu_stream_end(spring->stream, NULL);
}

static int flow(mu_actor *self, void *state, const mu_value *args)
{
    struct spring *spring = state;

    if (mu_value_get_int(args, &spring->left) != 0)
        return mu_actor_fail(self, -MU_EINVALID, "flow expects a number");
    spring->one = mu_value_int(1);
    spring->stream = mu_actor_stream(self, 1024, 1);
    return spring->stream == NULL ? -MU_ENOMEM : give(spring);
}

static void give_on(mu_actor *self, void *state, const mu_notice *notice)
{
    (void)self;
    if (notice->kind == MU_NOTICE_STREAM_ROOM)
        (void)give(state);
}

static const mu_actor_method spring_methods[] = {{"flow", flow}, {NULL, NULL}};
static const mu_actor_type spring_type = {
    .name = "spring",
    .state_size = sizeof(struct spring),
    .methods = spring_methods,
    .notice = give_on,
};

struct reader {
    mu_reply *reply;
    int64_t items;
};

/* [address, number] */
static int begin_reading(mu_actor *self, void *state, const mu_value *args)
{
    struct reader *reader = state;
    mu_address from;

    if (mu_value_get_actor(mu_value_at(args, 0), &from) != 0)
        return mu_actor_fail(self, -MU_EINVALID, "read expects [address, number]");
    reader->reply = mu_actor_reply_later(self);
    return mu_actor_call(self, &from, "flow", mu_value_at(args, 1), TIMEOUT_MS, 1);
}

static void read_on(mu_actor *self, void *state, const mu_notice *notice)
{
    struct reader *reader = state;

    (void)self;
    reader->items += notice->kind == MU_NOTICE_ITEM;
    if (notice->kind == MU_NOTICE_ANSWER)
        mu_reply_give(reader->reply, mu_value_int(reader->items), notice->error);
}

static const mu_actor_method reader_methods[] = {{"read", begin_reading}, {NULL, NULL}};
static const mu_actor_type reader_type = {
    .name = "reader",
    .state_size = sizeof(struct reader),
    .methods = reader_methods,
    .notice = read_on,
};

/* ---- nodes ---- */

static void must(int rv, const mu_error *error)
{
    if (rv == 0)
        return;
    (void)fprintf(stderr, "bench_user_actors: %s: %s\n", mu_err_name(rv), error->message);
    exit(1);
}

static mu_node *open_node(const mu_cluster *cluster, const char *type)
{
    mu_node_options options;
    mu_error error = {0};
    mu_node *node = NULL;

    mu_node_options_init(&options);
    options.cluster = cluster;
    options.task_type = type;
    options.log_level = MU_LOG_ERROR;
    must(mu_node_open(&options, &error, &node), &error);
    must(mu_node_register_actor(node, &counter_type), &error);
    must(mu_node_register_actor(node, &driver_type), &error);
    must(mu_node_register_actor(node, &spring_type), &error);
    must(mu_node_register_actor(node, &reader_type), &error);
    return node;
}

static mu_address spawn(mu_node *node, const char *type, const char *task_type)
{
    mu_actor_options options;
    mu_error error = {0};
    mu_address address;

    mu_actor_options_init(&options);
    options.task_type = task_type;
    must(mu_node_spawn(node, type, NULL, &options, TIMEOUT_MS, &error, &address), &error);
    return address;
}

static void request(mu_node *node, const mu_address *to, const char *method,
                    const mu_value *args)
{
    mu_remote_value *value = NULL;
    mu_error error = {0};

    must(mu_actor_request(node, to, method, args, TIMEOUT_MS, &error, &value), &error);
    must(mu_remote_value_fetch(value, -1, &error, NULL), &error);
    mu_remote_value_free(value);
}

/* Messages a second, from a new driver to a new counter on a task of this type. */
static double rate_of(mu_node *node, const char *task_type, uint64_t count, bool calls)
{
    mu_address driver = spawn(node, "driver", NULL);
    mu_address counter = spawn(node, "counter", task_type);
    mu_value *args = mu_value_list();
    uint64_t start_ns;

    (void)mu_value_append(args, mu_value_actor(&counter));
    (void)mu_value_append(args, mu_value_int((int64_t)count));
    (void)mu_value_append(args, mu_value_int(calls));
    start_ns = bench_now_ns();
    request(node, &driver, "drive", args);
    mu_value_free(args);
    return bench_rate(count, start_ns, bench_now_ns());
}

/* Items a second, of a new spring on a task of this type to an actor here. */
static double stream_rate_of(mu_node *node, const char *task_type, uint64_t count)
{
    mu_address reader = spawn(node, "reader", NULL);
    mu_address spring = spawn(node, "spring", task_type);
    mu_value *args = mu_value_list();
    uint64_t start_ns;

    (void)mu_value_append(args, mu_value_actor(&spring));
    (void)mu_value_append(args, mu_value_int((int64_t)count));
    start_ns = bench_now_ns();
    request(node, &reader, "read", args);
    mu_value_free(args);
    return bench_rate(count, start_ns, bench_now_ns());
}

/* The same to a thread. */
static double thread_rate_of(mu_node *node, const char *task_type, uint64_t count)
{
    mu_address spring = spawn(node, "spring", task_type);
    mu_value *args = mu_value_int((int64_t)count);
    uint64_t start_ns = bench_now_ns();
    mu_stream_reader *reader = NULL;
    mu_error error = {0};
    mu_value *item;
    uint64_t items = 0;

    must(mu_actor_open_stream(node, &spring, "flow", args, TIMEOUT_MS, &error, &reader),
         &error);
    while (mu_stream_next(reader, TIMEOUT_MS, &error, &item) == 0) {
        mu_value_free(item);
        items++;
    }
    if (items != count)
        must(error.code, &error);
    mu_stream_close(reader);
    mu_value_free(args);
    return bench_rate(count, start_ns, bench_now_ns());
}

static double latency_us(mu_node *node, const char *task_type, size_t count)
{
    mu_address counter = spawn(node, "counter", task_type);
    uint64_t *samples = calloc(count, sizeof *samples);
    double median;

    for (size_t i = 0; samples != NULL && i < count; i++) {
        uint64_t start_ns = bench_now_ns();

        request(node, &counter, "count", NULL);
        samples[i] = bench_now_ns() - start_ns;
    }
    median = samples == NULL ? 0 : (double)bench_median(samples, count) / 1000;
    free(samples);
    return median;
}

static double idle_bytes(mu_node *node, size_t count)
{
    size_t before = mallinfo2().uordblks;

    for (size_t i = 0; i < count; i++)
        (void)spawn(node, "counter", NULL);
    return (double)(mallinfo2().uordblks - before) / (double)count;
}

/* ---- the lines ---- */

static void report(const char *metric, const char *unit, double value, double target,
                   bool less_is_more)
{
    const struct bench_line line = {
        .bench = "user_actors",
        .metric = metric,
        .unit = unit,
        .value = value,
        .target = target,
        .less_is_more = less_is_more,
    };

    bench_report(&line);
}

static void measure(mu_node *node)
{
    uint64_t many = bench_size(2000, 4000000);
    uint64_t few = bench_size(2000, 1000000);

    report("sends on one thread", "messages/s", rate_of(node, NULL, many, false), 20e6,
           false);
    report("calls on one thread, 64 outstanding", "calls/s",
           rate_of(node, NULL, few, true), 8e6, false);
    report("one call from a thread", "us", latency_us(node, NULL, bench_size(50, 20000)),
           0, true);
    report("sends to another process", "messages/s", rate_of(node, "worker", few, false),
           1e6, false);
    report("calls to another process, 64 outstanding", "calls/s",
           rate_of(node, "worker", few, true), 600e3, false);
    report("one call to another process", "us",
           latency_us(node, "worker", bench_size(50, 10000)), 45, true);
    report("items of a stream on one thread", "items/s", stream_rate_of(node, NULL, many),
           0, false);
    report("items of a stream from another process", "items/s",
           stream_rate_of(node, "worker", few), 1e6, false);
    report("items of a stream from another process, to a thread", "items/s",
           thread_rate_of(node, "worker", few), 0, false);
    report("an idle actor, beside its state of 8 bytes", "bytes",
           idle_bytes(node, bench_size(100, 20000)), 300, true);
}

static void add_task(mu_cluster *cluster, const char *type)
{
    mu_error error = {0};
    char address[32];
    int held = -1;

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", cluster_free_port(&held));
    must(mu_cluster_add(cluster, type, 0, address, &error), &error);
    (void)close(held);
}

int main(void)
{
    mu_cluster *cluster = mu_cluster_new();
    mu_error error = {0};
    mu_node *node;
    pid_t worker;

    add_task(cluster, "worker");
    add_task(cluster, "chief");
    worker = fork();
    if (worker == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)open_node(cluster, "worker");
        for (;;)
            (void)pause();
    }
    node = open_node(cluster, "chief");
    measure(node);
    must(mu_node_close(node, 5000, &error), &error);
    mu_cluster_free(cluster);
    (void)kill(worker, SIGKILL);
    return waitpid(worker, NULL, 0) == worker ? 0 : 1;
}
