/* A chief whose cluster changes: 10,000 workers are added at once, move, and are removed,
 * each compared with the start of a chief that has them from the begin. What the loop
 * thread does, with all turns that follow: links, the supervisor, the coordination
 * service; and the longest of these turns, for which heartbeats and results wait. A wire
 * swallows frames and opens no sockets; the peers say HELLO and REGISTER, and nothing
 * else.
 *
 * "apart" is every third worker, so that what is left has no ranges of neighbours. */
#include "bench/bench.h"

#include "actors/coordination/store/store.h"
#include "actors/messages.h"
#include "node/member/member.h"
#include "runtime/message/codec.h"
#include "transport/link/frames.h"

enum { MANY = 10000, ROUNDS = 5, CHIEF = 0xa };

/* ---- A world and a wire without a system below ---- */

struct place {
    struct mu__world world;
    struct mu__wire wire;
    struct mu__member member;
    uint64_t now_ms;
    uint64_t drawn;
    bool wanted;
    uint64_t heard;        /* frames that the chief has said */
    uint64_t incarnations; /* of peers, so far */
    uint32_t *outs;        /* of each worker's last dial */
    uint32_t workers;
};

static void *need(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static struct place *place_of(struct mu__wire *wire)
{
    return (struct place *)((char *)wire - offsetof(struct place, wire));
}

static uint64_t now_ms(struct mu__world *world)
{
    return ((struct place *)world)->now_ms;
}

static uint64_t draw(struct mu__world *world)
{
    return ++((struct place *)world)->drawn * UINT64_C(0x9E3779B97F4A7C15);
}

static void wake_at(struct mu__world *world, uint64_t due_ms)
{
    struct place *p = (struct place *)world;

    p->wanted = p->wanted || due_ms <= p->now_ms;
}

static int transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct place *p = (struct place *)world;

    return mu__links_transmit(p->member.links, msg);
}

static void no_log(struct mu__world *world, enum mu__log_level level, const char *who,
                   const char *line)
{
    (void)world;
    (void)level;
    (void)who;
    (void)line;
}

static const struct mu__world_ops world_ops = {.now_ms = now_ms,
                                               .random = draw,
                                               .wake_at = wake_at,
                                               .transmit = transmit,
                                               .log = no_log};

static struct mu__buf *buffer(struct mu__wire *wire, size_t capacity)
{
    (void)wire;
    return mu__buf_new(capacity);
}

/* "tcp://w17:7000" */
static int dial(struct mu__wire *wire, uint32_t out, const char *url)
{
    unsigned long worker = strtoul(url + strlen("tcp://w"), NULL, 10);

    if (worker >= place_of(wire)->workers)
        abort();
    place_of(wire)->outs[worker] = out;
    return 0;
}

static void forget(struct mu__wire *wire, uint32_t number)
{
    (void)wire;
    (void)number;
}

static int swallow(struct mu__wire *wire, uint32_t connection, struct mu__buf *frame)
{
    (void)connection;
    place_of(wire)->heard++;
    mu__buf_unref(frame);
    return 0;
}

static const char *last_error(struct mu__wire *wire, uint32_t out)
{
    (void)wire;
    (void)out;
    return NULL;
}

static const struct mu__wire_ops wire_ops = {.buffer = buffer,
                                             .dial = dial,
                                             .hangup = forget,
                                             .send = swallow,
                                             .last_error = last_error};

static void run_turns(struct place *p)
{
    do {
        p->wanted = false;
        mu__member_events.burst_end(&p->member);
    } while (p->wanted);
}

/* ---- Peers ---- */

static struct mu__buf *frame_of(uint8_t type, uint64_t from, uint64_t to)
{
    const struct mu__frame_header header = {MU__FRAME_VERSION, type, from, to, 1};
    struct mu__buf *frame = need(mu__buf_new(512));

    mu__frame_write(frame, &header);
    frame->size = MU__FRAME_HEADER_BYTES;
    return frame;
}

static void say(struct place *p, uint32_t in, const struct mu__schema *schema,
                const struct mu__msg *msg, struct mu__buf *frame)
{
    if (mu__encode(schema, msg, frame) != 0)
        abort();
    (void)mu__member_events.frame(&p->member, in, frame);
    mu__buf_unref(frame);
}

static void say_hello(struct place *p, uint32_t in, uint64_t incarnation, uint32_t worker,
                      const char *url)
{
    struct mu__msg *msg = need(mu__msg_heap(MU__FRAME_HELLO, sizeof(struct mu__hello)));

    *(struct mu__hello *)mu__body(msg) = (struct mu__hello){
        .cluster = mu__view_str("bench"),
        .type = mu__view_str("worker"),
        .index = worker,
        .address = mu__view_str(url),
    };
    say(p, in, &mu__frame_messages, msg,
        frame_of(MU__FRAME_HELLO, incarnation, p->member.incarnation));
    free(msg);
}

static void say_register(struct place *p, uint32_t in, uint64_t incarnation)
{
    struct mu__msg *msg = need(mu__msg_heap(MU__REGISTER, sizeof(struct mu__register)));

    msg->to.actor = MU__SUPERVISOR;
    ((struct mu__register *)mu__body(msg))->threads = 1;
    say(p, in, &mu__messages, msg,
        frame_of(MU__FRAME_DATA, incarnation, p->member.incarnation));
    free(msg);
}

static void name_url(char *out, size_t size, uint32_t worker, uint32_t port)
{
    (void)snprintf(out, size, "tcp://w%u:%u", worker, port);
}

/* Each of them answers. */
static void answer_all(struct place *p, uint32_t port)
{
    char url[64];

    for (uint32_t i = 0; i < p->workers; i++) {
        uint64_t incarnation = ++p->incarnations + 1000;

        name_url(url, sizeof url, i, port);
        mu__member_events.up(&p->member, p->outs[i]);
        run_turns(p);
        say_hello(p, p->outs[i], incarnation, i, url);
        run_turns(p);
        say_register(p, p->outs[i], incarnation);
        run_turns(p);
    }
    if (mu__links_count_up(p->member.links) != p->workers)
        abort();
}

/* ---- Clusters ---- */

/* The chief, and workers at a port; without every third of them, or with no worker. */
static mu_cluster *cluster_of(uint32_t workers, uint32_t port, bool third)
{
    mu_cluster *cluster = need(mu_cluster_new());
    char url[64];
    int rv = mu_cluster_add(cluster, "chief", 0, "tcp://chief:7000", NULL);

    for (uint32_t i = 0; rv == 0 && i < workers; i++) {
        name_url(url, sizeof url, i, port);
        if (!third || i % 3 != 0)
            rv = mu_cluster_add(cluster, "worker", (int)i, url, NULL);
    }
    if (rv != 0)
        abort();
    return cluster;
}

/* Nanoseconds. */
static uint64_t start(struct place *p, uint32_t workers, uint32_t listed)
{
    mu_cluster *cluster = cluster_of(listed, 7000, false);
    char tasks[64] = "chief:0";
    const mu_node_options options = {
        .cluster = cluster,
        .cluster_name = "bench",
        .task_type = "chief",
        .threads = 1,
        .queue_max = 1000,
        .attempts_max = 5,
        .heartbeat_ms = 1000,
        .silence_ms = 5000,
    };
    struct mu__member_config config = {
        .options = &options,
        .address = "tcp://chief:7000",
        .hosts = "chief:0",
        .coordination = {.store = &mu__store_memory,
                         .tasks = tasks,
                         .suspect_ms = 5000,
                         .dead_ms = 60000,
                         .reconnect_ms = 60000,
                         .lease_ms = 5000},
    };
    uint64_t begin_ns;
    mu_error error;

    if (listed > 0)
        (void)snprintf(tasks, sizeof tasks, "chief:0,worker:0-%u", listed - 1);
    *p = (struct place){
        .world.ops = &world_ops, .wire.ops = &wire_ops, .now_ms = 1, .workers = workers};
    p->outs = need(calloc(workers, sizeof *p->outs));
    begin_ns = bench_now_ns();
    if (mu__member_start(&p->member, &config, &p->world, &p->wire, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    run_turns(p);
    begin_ns = bench_now_ns() - begin_ns;
    mu_cluster_free(cluster);
    return begin_ns;
}

static void stop(struct place *p)
{
    mu__member_stop(&p->member);
    free(p->outs);
}

struct spent {
    uint64_t ns;
    uint64_t longest_ns; /* of its turns */
};

/* Takes the cluster. */
static struct spent change(struct place *p, mu_cluster *cluster)
{
    struct spent spent = {0};
    uint64_t begin_ns = bench_now_ns();

    p->wanted = true;
    if (mu__member_set_cluster(&p->member, cluster, NULL) != 0)
        abort();
    while (p->wanted) {
        uint64_t ns;

        p->wanted = false;
        mu__member_events.burst_end(&p->member);
        ns = bench_now_ns() - begin_ns;
        spent.longest_ns =
            ns - spent.ns > spent.longest_ns ? ns - spent.ns : spent.longest_ns;
        spent.ns = ns;
    }
    mu_cluster_free(cluster);
    return spent;
}

/* ---- Measuring ---- */

enum { STARTED, ADDED, MOVED, REMOVED_APART, ADDED_APART, REMOVED, STEPS_COUNT };

static const char *const names[STEPS_COUNT] = {
    "start", "added", "moved", "removed, apart", "added, apart", "removed"};

static uint64_t one_round(uint32_t workers, struct spent spent[STEPS_COUNT])
{
    struct place p;
    uint64_t heard;

    spent[STARTED].ns = start(&p, workers, workers);
    stop(&p);
    (void)start(&p, workers, 0);
    spent[ADDED] = change(&p, cluster_of(workers, 7000, false));
    answer_all(&p, 7000);
    spent[MOVED] = change(&p, cluster_of(workers, 7001, false));
    answer_all(&p, 7001);
    spent[REMOVED_APART] = change(&p, cluster_of(workers, 7001, true));
    spent[ADDED_APART] = change(&p, cluster_of(workers, 7001, false));
    spent[REMOVED] = change(&p, cluster_of(0, 0, false));
    heard = p.heard;
    if (mu__links_count_up(p.member.links) != 0)
        abort();
    stop(&p);
    return heard;
}

static void report(int step, const char *what, uint64_t *samples, uint64_t rounds,
                   double start_ms)
{
    char metric[64];

    (void)snprintf(metric, sizeof metric, "%s%s", names[step], what);
    bench_report(&(struct bench_line){
        .bench = "changes",
        .metric = metric,
        .value = (double)bench_median(samples, rounds) / 1e6,
        .unit = "ms",
        .limit = start_ms,
        .target = 50,
        .less_is_more = true,
    });
}

int main(void)
{
    uint64_t rounds = bench_size(1, ROUNDS);
    uint32_t workers = (uint32_t)bench_size(300, MANY);
    uint64_t ns[STEPS_COUNT][ROUNDS];
    uint64_t longest_ns[STEPS_COUNT][ROUNDS];
    struct spent spent[STEPS_COUNT] = {0};
    double start_ms = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        if (one_round(workers, spent) == 0)
            abort();
        for (int step = 0; step < STEPS_COUNT; step++) {
            ns[step][i] = spent[step].ns;
            longest_ns[step][i] = spent[step].longest_ns;
        }
    }
    for (int step = 0; step < STEPS_COUNT; step++) {
        report(step, "", ns[step], rounds, start_ms);
        if (step == STARTED)
            start_ms = (double)bench_median(ns[step], rounds) / 1e6;
        else
            report(step, ", longest turn", longest_ns[step], rounds, 0);
    }
    return 0;
}
