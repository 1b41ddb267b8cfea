/* One coordination service and many simulated tasks: what it takes until they are
 * registered, what their heartbeats cost, and one barrier of all of them. The real actor
 * over the kernel, in virtual time; a world counts what it says.
 *
 * Times are the processor's. They hold the codec, both ways and for both sides, and not
 * what links cost; that is measured beside it for heartbeats, as a read and a write of a
 * tcp socket for each, which is what a message alone on its connection needs. */
#include "bench/bench.h"

#include "actors/coordination/coordination.h"
#include "actors/messages.h"
#include "runtime/kernel/kernel.h"
#include "runtime/message/codec.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum {
    MANY = 10000,
    AT_BARRIER = 1000,
    ROUNDS = 20,
    SUSPECT_MS = 5000, /* the default; a heartbeat comes three times in it */
    BEAT_MS = SUSPECT_MS / 3,
    BEATS = 12,
    PAIRS = 64,
    FRAME_BYTES = 48 /* of a link, with one heartbeat or its answer in it */
};

/* ---- A world that counts what is said ---- */

struct world {
    struct mu__world world;
    struct mu__kernel *kernel;
    uint64_t now_ms;
    uint64_t due_ms; /* the earliest turn that was asked for */
    uint64_t drawn;
    uint64_t heard;    /* answers to heartbeats, without a code */
    uint64_t answered; /* registrations, without a code */
    uint64_t passed;   /* arrivals, without a code */
};

static void *need(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static uint64_t now_ms(struct mu__world *world)
{
    return ((struct world *)world)->now_ms;
}

static uint64_t draw(struct mu__world *world)
{
    return ++((struct world *)world)->drawn * UINT64_C(0x9E3779B97F4A7C15);
}

static void wake_at(struct mu__world *world, uint64_t due_ms)
{
    struct world *w = (struct world *)world;

    if (due_ms < w->due_ms)
        w->due_ms = due_ms;
}

static void no_log(struct mu__world *world, enum mu__log_level level, const char *who,
                   const char *line)
{
    (void)world;
    (void)level;
    (void)who;
    (void)line;
}

/* Through the codec, as over a link. The kernel's pool gets the copy. */
static struct mu__msg *travel(struct world *w, const struct mu__msg *msg)
{
    struct mu__buf *frame = need(mu__buf_new(mu__encode_bound(&mu__messages, msg)));
    struct mu__msg *copy = NULL;
    size_t offset = 0;

    if (mu__encode(&mu__messages, msg, frame) != 0 ||
        mu__decode(&mu__messages, mu__kernel_pool(w->kernel), frame, &offset, NULL, 0,
                   &copy) != 0)
        abort();
    mu__buf_unref(frame);
    return copy;
}

static int transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct world *w = (struct world *)world;
    struct mu__msg *copy = travel(w, msg);
    const struct mu__task_heard *heard = mu__body(copy);
    const struct mu__tasks_answer *answer = mu__body(copy);
    const struct mu__barrier_passed *passed = mu__body(copy);

    w->heard += copy->kind == MU__TASK_HEARD && heard->code == 0;
    w->answered += copy->kind == MU__TASKS_ANSWER && answer->code == 0;
    w->passed += copy->kind == MU__BARRIER_PASSED && passed->code == 0;
    mu__pool_put(mu__kernel_pool(w->kernel), copy);
    mu__pool_put(mu__kernel_pool(w->kernel), msg);
    return 0;
}

static const struct mu__world_ops ops = {.now_ms = now_ms,
                                         .random = draw,
                                         .wake_at = wake_at,
                                         .transmit = transmit,
                                         .log = no_log};

static void run_until(struct world *w, uint64_t until_ms)
{
    while (w->due_ms <= until_ms) {
        if (w->due_ms > w->now_ms)
            w->now_ms = w->due_ms;
        w->due_ms = UINT64_MAX;
        mu__kernel_turn(w->kernel);
    }
    w->now_ms = until_ms;
}

static void tell(struct world *w, uint32_t task, uint16_t kind, const void *body,
                 size_t size)
{
    struct mu__msg *msg = need(mu__pool_get(mu__kernel_pool(w->kernel), kind, size));
    struct mu__msg *copy;

    memcpy(msg->body, body, size);
    copy = travel(w, msg);
    mu__pool_put(mu__kernel_pool(w->kernel), msg);
    copy->from = (mu__pid){task + 1, MU__AGENT};
    copy->to = (mu__pid){MU__NODE_SELF, MU__COORDINATION};
    if (mu__kernel_deliver(w->kernel, copy) != 0)
        abort();
    w->due_ms = 0;
}

#define TELL(w, task, KIND, name, ...)                           \
    tell(w, task, MU__##KIND, &(struct mu__##name){__VA_ARGS__}, \
         sizeof(struct mu__##name))

/* ---- A service and its tasks ---- */

static void make(struct world *w, uint32_t count)
{
    char tasks[32];
    const struct mu__coordination_config config = {
        .store = &mu__store_memory,
        .store_location = "",
        .cluster_name = "bench",
        .task = "/job:chief/task:0",
        .incarnation = 1,
        .tasks = tasks,
        .recoverable = "all",
        .suspect_ms = SUSPECT_MS,
        .dead_ms = 2 * SUSPECT_MS,
        .reconnect_ms = 1000,
        .lease_ms = 5000,
    };

    (void)snprintf(tasks, sizeof tasks, "worker:0-%u", count - 1);
    *w = (struct world){.world.ops = &ops, .due_ms = UINT64_MAX};
    if (mu__kernel_new(&w->world, &mu__messages, &w->kernel) != 0 ||
        mu__spawn(w->kernel, &mu__coordination, MU__COORDINATION, &config, NULL) != 0)
        abort();
    for (uint32_t i = 0; i < count; i++)
        mu__kernel_node_up(w->kernel, i + 1, "worker", i, i + 2, "tcp://10.0.0.1:7000");
    run_until(w, 0);
}

static double cpu_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Until all are told that all are there. */
static double register_all(struct world *w, uint32_t count)
{
    double begin_ms = cpu_ms();

    for (uint32_t i = 0; i < count; i++)
        TELL(w, i, TASK_REGISTER, task_register, .token = 1, .barrier = true,
             .timeout_ms = 60000);
    run_until(w, w->now_ms);
    if (w->answered != count)
        abort();
    return cpu_ms() - begin_ms;
}

/* So many of each task, evenly over the time. The processor's share, in percent. */
static double beat_all(struct world *w, uint32_t count, uint32_t beats)
{
    uint64_t first_ms = w->now_ms;
    uint64_t heard = w->heard;
    double begin_ms = cpu_ms();
    uint32_t next = 0;

    for (uint64_t ms = 1; ms <= (uint64_t)BEAT_MS * beats; ms++) {
        uint64_t wanted = ms * count / BEAT_MS;

        run_until(w, first_ms + ms);
        for (; next < wanted; next++)
            TELL(w, next % count, TASK_HEARTBEAT, task_heartbeat, .progress = next);
        run_until(w, first_ms + ms);
    }
    if (w->heard - heard != (uint64_t)count * beats)
        abort();
    return 100 * (cpu_ms() - begin_ms) / (double)(w->now_ms - first_ms);
}

static double pass_barrier(struct world *w, uint32_t count, uint64_t generation)
{
    uint64_t passed = w->passed;
    double begin_ms = cpu_ms();

    for (uint32_t i = 0; i < count; i++)
        TELL(w, i, BARRIER_ARRIVE, barrier_arrive, .token = 2 + generation,
             .name = mu__view_str("bench"), .generation = generation,
             .timeout_ms = 60000);
    run_until(w, w->now_ms);
    if (w->passed - passed != count)
        abort();
    return cpu_ms() - begin_ms;
}

/* ---- What a link adds ---- */

static void connect_pair(int listener, const struct sockaddr_in *at, int pair[2])
{
    int one = 1;

    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (pair[0] < 0 || connect(pair[0], (const struct sockaddr *)at, sizeof *at) != 0)
        abort();
    pair[1] = accept(listener, NULL, NULL);
    if (pair[1] < 0)
        abort();
    for (int i = 0; i < 2; i++)
        (void)setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void connect_pairs(int pairs[PAIRS][2])
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(listener, PAIRS) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0)
        abort();
    for (int i = 0; i < PAIRS; i++)
        connect_pair(listener, &at, pairs[i]);
    close(listener);
}

static void move_frame(int from, int to)
{
    char frame[FRAME_BYTES] = {0};

    if (from >= 0 && read(from, frame, sizeof frame) != FRAME_BYTES)
        abort();
    if (to >= 0 && write(to, frame, sizeof frame) != FRAME_BYTES)
        abort();
}

/* The service's side of one heartbeat: a read and a write, in milliseconds. */
static double link_ms(uint64_t rounds)
{
    int pairs[PAIRS][2];
    double sum_ms = 0;

    connect_pairs(pairs);
    for (uint64_t round = 0; round < rounds; round++) {
        double begin_ms;

        for (int i = 0; i < PAIRS; i++)
            move_frame(-1, pairs[i][0]);
        begin_ms = cpu_ms();
        for (int i = 0; i < PAIRS; i++)
            move_frame(pairs[i][1], pairs[i][1]);
        sum_ms += cpu_ms() - begin_ms;
        for (int i = 0; i < PAIRS; i++)
            move_frame(pairs[i][0], -1);
    }
    for (int i = 0; i < PAIRS; i++) {
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    return sum_ms / (double)(rounds * PAIRS);
}

/* ---- Measuring ---- */

static void report(const char *metric, double value, const char *unit, double target)
{
    struct bench_line line = {.bench = "coordination_tasks",
                              .metric = metric,
                              .value = value,
                              .unit = unit,
                              .target = target,
                              .less_is_more = true};

    bench_report(&line);
}

static void bench_many(void)
{
    uint32_t count = (uint32_t)bench_size(1000, MANY);
    struct world world;
    double share;
    double links;

    make(&world, count);
    report("registration, 10,000 tasks, until all know", register_all(&world, count),
           "ms", 1000);
    share = beat_all(&world, count, (uint32_t)bench_size(2, BEATS));
    links = 100 * link_ms(bench_size(2, 2000)) * count / BEAT_MS;
    report("heartbeats, 10,000 tasks, of one core", share, "%", 2);
    report("heartbeats, 10,000 tasks, with a read and a write each", share + links, "%",
           0);
    mu__kernel_free(world.kernel);
}

static void bench_barrier(void)
{
    uint64_t samples[ROUNDS];
    struct world world;

    make(&world, AT_BARRIER);
    (void)register_all(&world, AT_BARRIER);
    for (uint64_t i = 0; i < ROUNDS; i++)
        samples[i] = (uint64_t)(pass_barrier(&world, AT_BARRIER, i) * 1e6);
    report("barrier, 1,000 tasks, median", (double)bench_median(samples, ROUNDS) / 1e6,
           "ms", 20);
    mu__kernel_free(world.kernel);
}

int main(void)
{
    bench_many();
    bench_barrier();
    return 0;
}
