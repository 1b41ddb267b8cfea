/* Actors of the program's own: sends and calls on one thread and between two processes,
 * one call at a time from a thread, streams beside them, the memory of an actor that does
 * nothing, and calls to kept actors, beside a bare append to the disk. Limits are those
 * of Erlang's processes, where that is installed. */
#include "bench/bench.h"
#include "bench/cluster.h"

#include <fcntl.h>
#include <malloc.h>
#include <muster.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
    OUTSTANDING = 64,
    KEPT_OUTSTANDING = 1000,
    TIMEOUT_MS = 60000,
    RECORD_BYTES = 128
};

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

/* ---- the same, kept ---- */

static int add_record(void *state, const mu_value *record)
{
    int64_t number = 0;
    int rv = mu_value_get_int(record, &number);

    *(int64_t *)state += number;
    return rv;
}

static int count_kept(mu_actor *self, void *state, const mu_value *args)
{
    mu_value *one = args == NULL ? mu_value_int(1) : mu_value_ref((mu_value *)args);
    int rv = mu_actor_record(self, one);

    (void)state;
    mu_value_free(one);
    return rv;
}

static int save_count(void *state, mu_value **ret_saved)
{
    *ret_saved = mu_value_int(*(int64_t *)state);
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static int load_count(mu_actor *self, void *state, const mu_value *saved,
                      unsigned version)
{
    (void)self;
    (void)version;
    return mu_value_get_int(saved, state);
}

static const mu_actor_method kept_methods[] = {
    {"count", count_kept}, {"show", show_count}, {NULL, NULL}};
static const mu_actor_type kept_type = {
    .name = "kept",
    .state_size = sizeof(int64_t),
    .methods = kept_methods,
    .save = save_count,
    .load = load_count,
    .replay = add_record,
};

/* ---- who calls: [address, number, how many calls may be outstanding; 0: sends] ---- */

struct driver {
    mu_address to;
    mu_reply *reply;
    mu_value *one;
    int64_t left;       /* to be sent */
    int64_t unanswered; /* calls */
    int64_t window;     /* 0: they are sends */
};

static int drive(mu_actor *self, struct driver *driver)
{
    int rv = 0;

    while (rv == 0 && driver->left > 0 &&
           (driver->window == 0 || driver->unanswered < driver->window)) {
        rv = driver->window > 0
                 ? mu_actor_call(self, &driver->to, "count", driver->one, TIMEOUT_MS, 1)
                 : mu_actor_send(self, &driver->to, "count", driver->one);
        if (rv == 0)
            driver->left--;
        if (rv == 0 && driver->window > 0)
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

    if (mu_value_get_actor(mu_value_at(args, 0), &driver->to) != 0 ||
        mu_value_get_int(mu_value_at(args, 1), &driver->left) != 0 ||
        mu_value_get_int(mu_value_at(args, 2), &driver->window) != 0)
        return mu_actor_fail(self, -MU_EINVALID,
                             "drive expects [address, number, window]");
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

/* `store` NULL: nothing is kept. */
static mu_node *open_node(const mu_cluster *cluster, const char *type, const char *store,
                          unsigned sync)
{
    mu_node_options options;
    mu_error error = {0};
    mu_node *node = NULL;

    mu_node_options_init(&options);
    options.cluster = cluster;
    options.task_type = type;
    options.log_level = MU_LOG_ERROR;
    options.store = store;
    options.store_sync = sync;
    must(mu_node_open(&options, &error, &node), &error);
    must(mu_node_register_actor(node, &counter_type), &error);
    must(mu_node_register_actor(node, &kept_type), &error);
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

static mu_address spawn_kept(mu_node *node, const char *name, const char *task_type)
{
    mu_actor_options options;
    mu_error error = {0};
    mu_address address;

    mu_actor_options_init(&options);
    options.name = name;
    options.task_type = task_type;
    options.flags = MU_ACTOR_KEPT;
    must(mu_node_spawn(node, "kept", NULL, &options, TIMEOUT_MS, &error, &address),
         &error);
    return address;
}

/* Messages a second, from a new driver. */
static double rate_of(mu_node *node, const mu_address *counter, uint64_t count,
                      int64_t window)
{
    mu_address driver = spawn(node, "driver", NULL);
    mu_value *args = mu_value_list();
    uint64_t start_ns;

    (void)mu_value_append(args, mu_value_actor(counter));
    (void)mu_value_append(args, mu_value_int((int64_t)count));
    (void)mu_value_append(args, mu_value_int(window));
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

/* To a new counter on a task of this type. */
static double plain_rate(mu_node *node, const char *task_type, uint64_t count,
                         int64_t window)
{
    mu_address counter = spawn(node, "counter", task_type);

    return rate_of(node, &counter, count, window);
}

/* The same by the processor time of this process, of which its loop needs nearly all:
 * what else runs on the machine counts less. */
static double busy_rate(mu_node *node, uint64_t count, int64_t window)
{
    clock_t start = clock();

    (void)plain_rate(node, NULL, count, window);
    return (double)count * CLOCKS_PER_SEC / (double)(clock() - start);
}

static double latency_us(mu_node *node, const mu_address *counter, size_t count)
{
    uint64_t *samples = calloc(count, sizeof *samples);
    double median;

    for (size_t i = 0; samples != NULL && i < count; i++) {
        uint64_t start_ns = bench_now_ns();

        request(node, counter, "count", NULL);
        samples[i] = bench_now_ns() - start_ns;
    }
    median = samples == NULL ? 0 : (double)bench_median(samples, count) / 1000;
    free(samples);
    return median;
}

static double plain_latency_us(mu_node *node, const char *task_type, size_t count)
{
    mu_address counter = spawn(node, "counter", task_type);

    return latency_us(node, &counter, count);
}

/* A record that is appended, and waited for until the disk has it. */
static double append_us(const char *path, size_t count)
{
    static const char record[RECORD_BYTES];
    uint64_t *samples = calloc(count, sizeof *samples);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    double median;

    if (samples == NULL || fd < 0) {
        (void)fprintf(stderr, "bench_user_actors: %s cannot be made\n", path);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t start_ns = bench_now_ns();

        if (write(fd, record, sizeof record) != sizeof record || fdatasync(fd) != 0)
            exit(1);
        samples[i] = bench_now_ns() - start_ns;
    }
    median = (double)bench_median(samples, count) / 1000;
    (void)close(fd);
    (void)unlink(path);
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

/* `limit` 0: none is known. */
static void report_beside(const char *metric, const char *unit, double value,
                          double target, bool less_is_more, double limit)
{
    const struct bench_line line = {
        .bench = "user_actors",
        .metric = metric,
        .unit = unit,
        .value = value,
        .limit = limit,
        .target = target,
        .less_is_more = less_is_more,
    };

    bench_report(&line);
}

static void report(const char *metric, const char *unit, double value, double target,
                   bool less_is_more)
{
    report_beside(metric, unit, value, target, less_is_more, 0);
}

/* What Erlang's processes do; 0: it is not installed. */
static double erlang(bool is_there, const char *args)
{
    double value = 0;

    if (is_there && bench_raw("raw_erlang", args, &value) != 0)
        (void)fprintf(stderr, "bench_user_actors: raw_erlang %s failed\n", args);
    return value;
}

static void measure(mu_node *node)
{
    uint64_t many = bench_size(2000, 4000000);
    uint64_t few = bench_size(2000, 1000000);
    bool has_erlang = bench_has("erl");

    report_beside("sends on one thread", "messages/s", plain_rate(node, NULL, many, 0),
                  20e6, false, erlang(has_erlang, "sends 4000000"));
    report_beside("calls on one thread, 64 outstanding", "calls/s",
                  plain_rate(node, NULL, few, OUTSTANDING), 8e6, false,
                  erlang(has_erlang, "calls 1000000"));
    report("sends on one thread, in a second of processor time", "messages/s",
           busy_rate(node, many, 0), 20e6, false);
    report("calls on one thread, in a second of processor time", "calls/s",
           busy_rate(node, few, OUTSTANDING), 8e6, false);
    report("one call from a thread", "us",
           plain_latency_us(node, NULL, bench_size(50, 20000)), 0, true);
    report_beside("sends to another process", "messages/s",
                  plain_rate(node, "worker", few, 0), 1e6, false,
                  erlang(has_erlang, "sends 1000000 far"));
    report_beside("calls to another process, 64 outstanding", "calls/s",
                  plain_rate(node, "worker", few, OUTSTANDING), 600e3, false,
                  erlang(has_erlang, "calls 300000 far"));
    report("one call to another process", "us",
           plain_latency_us(node, "worker", bench_size(50, 10000)), 45, true);
    report("items of a stream on one thread", "items/s", stream_rate_of(node, NULL, many),
           0, false);
    report("items of a stream from another process", "items/s",
           stream_rate_of(node, "worker", few), 1e6, false);
    report("items of a stream from another process, to a thread", "items/s",
           thread_rate_of(node, "worker", few), 0, false);
    report_beside("an idle actor, beside its state of 8 bytes", "bytes",
                  idle_bytes(node, bench_size(100, 20000)), 300, true,
                  erlang(has_erlang, "idle 20000"));
}

static void measure_kept(mu_node *node)
{
    mu_address here = spawn_kept(node, "here", "chief");
    mu_address there = spawn_kept(node, "there", "worker");
    uint64_t count = bench_size(2000, 300000);

    report("calls to a kept actor beside its keeper, not synced, pipelined", "calls/s",
           rate_of(node, &here, count, KEPT_OUTSTANDING), 100e3, false);
    report("calls to a kept actor of another process, not synced, pipelined", "calls/s",
           rate_of(node, &there, count, KEPT_OUTSTANDING), 100e3, false);
}

static void measure_synced(mu_node *node, const char *folder)
{
    size_t count = bench_size(50, 2000);
    mu_address here = spawn_kept(node, "here", "chief");
    mu_address there = spawn_kept(node, "there", "worker");
    char path[128];
    double bare_us;

    (void)snprintf(path, sizeof path, "%s/bare", folder);
    bare_us = append_us(path, count);
    report("a bare append that is synced", "us", bare_us, 0, true);
    report("one call to a kept actor beside its keeper, synced", "us",
           latency_us(node, &here, count), 2 * bare_us, true);
    report("one call to a kept actor of another process, synced", "us",
           latency_us(node, &there, count), 2 * bare_us, true);
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

/* A chief, which is this process, with its service's journal, and a worker. */
static void run_cluster(const char *folder, unsigned sync)
{
    mu_cluster *cluster = mu_cluster_new();
    mu_error error = {0};
    char store[128];
    mu_node *node;
    pid_t worker;

    add_task(cluster, "worker");
    add_task(cluster, "chief");
    worker = fork();
    if (worker == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        must(mu_node_serve(open_node(cluster, "worker", NULL, 0)), &error);
        for (;;)
            (void)pause();
    }
    (void)snprintf(store, sizeof store, "journal:%s/store-%u", folder, sync);
    node = open_node(cluster, "chief", store, sync);
    if (sync) {
        measure_synced(node, folder);
    } else {
        measure(node);
        measure_kept(node);
    }
    must(mu_node_close(node, 5000, &error), &error);
    mu_cluster_free(cluster);
    (void)kill(worker, SIGKILL);
    if (waitpid(worker, NULL, 0) != worker)
        exit(1);
}

int main(void)
{
    char folder[] = "./bench-actors-XXXXXX";
    char command[64];

    if (mkdtemp(folder) == NULL)
        return 1;
    run_cluster(folder, 0);
    run_cluster(folder, 1);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}
