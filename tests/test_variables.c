/* Programs and parameter servers: the actors on several kernels, joined by a small world
 * of this file. It keeps frames in one queue: a test can stop between any two. */
#include "actors/messages.h"
#include "actors/ps.h"
#include "actors/variable_store.h"
#include "actors/variables.h"
#include "runtime/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- The world ---- */

enum { PROCESSES_MAX = 6, NEVER = -1 };

struct frame {
    struct frame *next;
    struct process *from;
    struct process *to;
    struct mu__buf *bytes;
};

struct process {
    struct mu__world world;     /* first: a world is its process */
    struct net *net;
    struct mu__kernel *kernel;  /* NULL: not running */
    bool is_ps;
    uint32_t index;             /* among its type */
    char address[32];
    uint64_t wake_ms;           /* UINT64_MAX: none asked for */
    uint32_t numbers[PROCESSES_MAX];    /* what it calls the others; 0: not connected */
    bool deaf;                  /* what is sent to it is lost without a word */
    bool full;                  /* its link has no room */
    const struct mu__store_limits *limits;
};

struct net {
    uint64_t now_ms;
    uint64_t random;
    uint32_t number_last;
    size_t processes_count;
    struct process processes[PROCESSES_MAX];
    struct frame *first;
    struct frame **last;
    uint64_t raw_bytes;         /* in the queue now, */
    uint64_t raw_bytes_peak;    /* and at most */
};

static uint64_t world_now_ms(struct mu__world *world)
{
    return ((struct process *)world)->net->now_ms;
}

static uint64_t draw(struct net *net)
{
    net->random ^= net->random << 13;
    net->random ^= net->random >> 7;
    net->random ^= net->random << 17;
    return net->random;
}

static uint64_t world_random(struct mu__world *world)
{
    return draw(((struct process *)world)->net);
}

static void world_wake_at(struct mu__world *world, uint64_t due_ms)
{
    struct process *p = (struct process *)world;

    if (due_ms < p->wake_ms)
        p->wake_ms = due_ms;
}

static struct process *find_peer(struct process *p, uint32_t number)
{
    for (size_t i = 0; i < p->net->processes_count; i++)
        if (number != 0 && p->numbers[i] == number)
            return &p->net->processes[i];
    return NULL;
}

static void push(struct process *from, struct process *to, struct mu__buf *bytes)
{
    struct net *net = from->net;
    struct frame *frame = calloc(1, sizeof *frame);

    assert_non_null(frame);
    *frame = (struct frame){NULL, from, to, bytes};
    *net->last = frame;
    net->last = &frame->next;
    net->raw_bytes += bytes->size;
    if (net->raw_bytes > net->raw_bytes_peak)
        net->raw_bytes_peak = net->raw_bytes;
}

static int transmit(struct process *from, const struct mu__msg *msg)
{
    struct process *to = find_peer(from, msg->to.node);
    struct mu__buf *bytes;

    if (to == NULL)
        return -MU_EUNAVAILABLE;
    if (to->full)
        return -MU_EEXHAUSTED;
    bytes = mu__buf_new(mu__encode_bound(&mu__messages, msg));
    assert_non_null(bytes);
    assert_int_equal(mu__encode(&mu__messages, msg, bytes), 0);
    push(from, to, bytes);
    return 0;
}

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct process *from = (struct process *)world;
    int rv = transmit(from, msg);

    mu__pool_put(mu__kernel_pool(from->kernel), msg);
    return rv;
}

static void world_submit(struct mu__world *world, struct mu__work *work)
{
    (void)world;
    (void)work;
    fail_msg("nothing here needs the executor");
}

static void world_log(struct mu__world *world, enum mu__log_level level, const char *who,
                      const char *line)
{
    (void)world;
    (void)level;
    (void)who;
    (void)line;
}

static const struct mu__world_ops world_ops = {
    world_now_ms, world_random, world_wake_at, world_transmit, world_submit, world_log};

/* ---- Processes and links ---- */

static void link_one_way(struct process *p, struct process *peer)
{
    size_t i = (size_t)(peer - p->net->processes);

    p->numbers[i] = ++p->net->number_last;
    mu__kernel_node_up(p->kernel, p->numbers[i], peer->is_ps ? "ps" : "worker",
                       peer->index, 1, peer->address);
    world_wake_at(&p->world, 0);
}

static void link_up(struct process *a, struct process *b)
{
    link_one_way(a, b);
    link_one_way(b, a);
}

static void unlink_one_way(struct process *p, struct process *peer)
{
    size_t i = (size_t)(peer - p->net->processes);
    uint32_t number = p->numbers[i];

    p->numbers[i] = 0;
    if (p->kernel == NULL || number == 0)
        return;
    mu__kernel_node_down(p->kernel, number, "connection lost");
    world_wake_at(&p->world, 0);
}

static void drop_frame(struct net *net, struct frame **link)
{
    struct frame *frame = *link;

    *link = frame->next;
    if (frame->next == NULL)
        net->last = link;
    net->raw_bytes -= frame->bytes->size;
    mu__buf_unref(frame->bytes);
    free(frame);
}

static bool is_between(const struct frame *frame, const struct process *a,
                       const struct process *b)
{
    return (frame->from == a && frame->to == b) || (frame->from == b && frame->to == a);
}

/* What is under way is lost. */
static void drop_between(struct process *a, struct process *b)
{
    struct frame **link = &a->net->first;

    while (*link != NULL) {
        if (is_between(*link, a, b))
            drop_frame(a->net, link);
        else
            link = &(*link)->next;
    }
}

static void link_down(struct process *a, struct process *b)
{
    drop_between(a, b);
    unlink_one_way(a, b);
    unlink_one_way(b, a);
}

static void start(struct process *p)
{
    struct net *net = p->net;

    p->wake_ms = UINT64_MAX;
    assert_int_equal(mu__kernel_new(&p->world, &mu__messages, &p->kernel), 0);
    assert_int_equal(mu__spawn(p->kernel, p->is_ps ? &mu__ps : &mu__variables,
                               p->is_ps ? MU__PS : MU__VARIABLES, p->limits, NULL), 0);
    for (size_t i = 0; i < net->processes_count; i++)
        if (&net->processes[i] != p && net->processes[i].kernel != NULL)
            link_up(p, &net->processes[i]);
}

static void crash(struct process *p)
{
    struct mu__kernel *kernel = p->kernel;
    struct net *net = p->net;

    p->kernel = NULL;
    for (size_t i = 0; i < net->processes_count; i++)
        link_down(p, &net->processes[i]);
    p->kernel = kernel;     /* for what is still sent, to nobody */
    mu__kernel_free(kernel);
    p->kernel = NULL;
}

static void cut(struct process *p)
{
    for (size_t i = 0; i < p->net->processes_count; i++)
        if (p->numbers[i] != 0)
            link_down(p, &p->net->processes[i]);
}

static void heal(struct process *p)
{
    for (size_t i = 0; i < p->net->processes_count; i++)
        if (&p->net->processes[i] != p && p->net->processes[i].kernel != NULL)
            link_up(p, &p->net->processes[i]);
}

static struct process *add_process(struct net *net, bool is_ps, uint32_t index)
{
    struct process *p = &net->processes[net->processes_count];

    *p = (struct process){.world = {&world_ops}, .net = net, .is_ps = is_ps,
                          .index = index};
    (void)snprintf(p->address, sizeof p->address, "tcp://%s%u:1", is_ps ? "ps" : "w",
                   index);
    net->processes_count++;
    return p;
}

/* ---- Time ---- */

static void turn(struct process *p)
{
    p->wake_ms = UINT64_MAX;
    mu__kernel_turn(p->kernel);
}

static bool turn_one(struct net *net)
{
    for (size_t i = 0; i < net->processes_count; i++) {
        struct process *p = &net->processes[i];

        if (p->kernel == NULL || p->wake_ms > net->now_ms)
            continue;
        turn(p);
        return true;
    }
    return false;
}

static void take_in(struct frame *frame)
{
    struct process *to = frame->to;
    struct mu__msg *msg;
    size_t offset = 0;
    char why[128];

    if (mu__decode(&mu__messages, mu__kernel_pool(to->kernel), frame->bytes, &offset, why,
                   sizeof why, &msg) != 0)
        fail_msg("%s", why);
    msg->from.node = to->numbers[frame->from - to->net->processes];
    (void)mu__kernel_deliver(to->kernel, msg);
    turn(to);
}

/* The next thing that happens now: a turn or the arrival of a frame. */
static bool step(struct net *net)
{
    struct frame *frame = net->first;
    bool arrives;

    if (turn_one(net))
        return true;
    if (frame == NULL)
        return false;
    arrives = !frame->to->deaf;
    net->first = frame->next;
    if (net->first == NULL)
        net->last = &net->first;
    net->raw_bytes -= frame->bytes->size;
    if (arrives)
        take_in(frame);
    mu__buf_unref(frame->bytes);
    free(frame);
    return true;
}

static void settle(struct net *net)
{
    for (int i = 0; step(net); i++)
        assert_true(i < 1000000);
}

static void run_until(struct net *net, uint64_t until_ms)
{
    settle(net);
    while (net->now_ms < until_ms) {
        uint64_t next_ms = until_ms;

        for (size_t i = 0; i < net->processes_count; i++)
            if (net->processes[i].kernel != NULL && net->processes[i].wake_ms < next_ms)
                next_ms = net->processes[i].wake_ms;
        net->now_ms = next_ms;
        settle(net);
    }
}

/* ---- Programs' calls ---- */

/* What a thread would wait for. */
struct request {
    struct mu__variable_call call;
    struct mu__shape shape;
    uint64_t ids[16];
    bool done;
};

static void set_done(struct mu__call *call)
{
    struct request *request = (struct request *)call;

    assert_false(request->done);
    request->done = true;
}

static void post(struct process *p, struct request *request, int operation,
                 int64_t limit_ms)
{
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));
    struct mu__call_msg *body;

    assert_non_null(msg);
    request->done = false;
    request->call.call.complete = set_done;
    request->call.call.operation = operation;
    request->call.call.limit_ms = limit_ms;
    body = mu__body(msg);
    body->call = request;
    msg->to.actor = MU__VARIABLES;
    assert_int_equal(mu__kernel_deliver(p->kernel, msg), 0);
    turn(p);
}

static struct request request_of(const struct net *net, const char *name,
                                 struct mu__shape shape)
{
    uint32_t servers = 0;

    for (size_t i = 0; i < net->processes_count; i++)
        servers += net->processes[i].is_ps;
    return (struct request){.call = {.name = name, .servers_count = servers},
                            .shape = shape};
}

/* Fill in what points into the request itself. */
static void aim(struct request *request)
{
    request->call.shape = &request->shape;
    request->call.ids = request->ids;
}

/* Post, run until it is done, tell the code. */
static int ask(struct process *p, struct request *request, int operation,
               int64_t limit_ms)
{
    post(p, request, operation, limit_ms);
    for (int i = 0; !request->done && i < 1000000; i++)
        if (!step(p->net))
            run_until(p->net, p->net->now_ms + 1);
    assert_true(request->done);
    return request->call.call.code;
}

static void ask_ok(struct process *p, struct request *request, int operation)
{
    if (ask(p, request, operation, NEVER) != 0)
        fail_msg("%s", request->call.call.error.message);
}

/* ---- The fixture: two programs, three servers ---- */

struct fixture {
    struct net net;
    struct process *servers[3];
    struct process *alice;
    struct process *bob;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    f->net.random = 88172645463325252;
    f->net.last = &f->net.first;
    for (uint32_t i = 0; i < 3; i++)
        f->servers[i] = add_process(&f->net, true, i);
    f->alice = add_process(&f->net, false, 0);
    f->bob = add_process(&f->net, false, 1);
    for (size_t i = 0; i < f->net.processes_count; i++)
        start(&f->net.processes[i]);
    settle(&f->net);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < f->net.processes_count; i++)
        if (f->net.processes[i].kernel != NULL)
            crash(&f->net.processes[i]);
    assert_null(f->net.first);
    free(f);
    return 0;
}

static const float ones[5] = {1, 1, 1, 1, 1};

/* One small shard; "w" lives on server 0. */
static const struct mu__shape four = {MU_F32, 1, {4}, 1};

/* Five pieces and some, in three shards of two pieces each. */
static const struct mu__shape large = {MU_F32, 2, {1500, 1024}, 3};
enum { LARGE_COUNT = 1500 * 1024 };

static float *numbers(size_t count, float first)
{
    float *data = malloc(count * sizeof *data);

    assert_non_null(data);
    for (size_t i = 0; i < count; i++)
        data[i] = first + (float)(i % 1000);
    return data;
}

static void assert_reads(struct process *p, struct request *request,
                         const float *expected)
{
    size_t bytes = (size_t)mu__shape_bytes(&request->shape);
    float *data = malloc(bytes);

    assert_non_null(data);
    memset(data, 0xFF, bytes);
    request->call.target = data;
    ask_ok(p, request, MU__VARIABLE_READ);
    assert_memory_equal(data, expected, bytes);
    free(data);
}

static struct request opened(struct process *p, const char *name, struct mu__shape shape,
                             const float *initial)
{
    struct request request = request_of(p->net, name, shape);

    aim(&request);
    request.call.source = initial;
    ask_ok(p, &request, MU__VARIABLE_OPEN);
    return request;
}

static struct process *server_of(struct fixture *f, const char *name)
{
    return f->servers[mu__name_hash(mu__view_str(name)) % 3];
}

/* ---- Ordinary life ---- */

static const struct mu__shape shapes[] = {
    {MU_F32, 0, {0}, 1},
    {MU_F32, 1, {7}, 1},
    {MU_F32, 1, {7}, 3},
    {MU_F32, 2, {8, 3}, 8},                     /* several shards on one server */
    {MU_F32, 1, {MU__PIECE_BYTES_MAX / 4}, 1},  /* one piece exactly */
    {MU_F32, 1, {MU__PIECE_BYTES_MAX / 4 + 1}, 1},
    {MU_F32, 2, {1500, 1024}, 3},
};

static void check_shape(struct fixture *f, struct mu__shape shape)
{
    size_t count = (size_t)mu__shape_bytes(&shape) / sizeof(float);
    float *first = numbers(count, 1);
    float *second = numbers(count, 5);
    struct request a = opened(f->alice, "v", shape, first);
    struct request b = opened(f->bob, "v", shape, second);

    aim(&a);
    aim(&b);
    assert_reads(f->bob, &b, first);
    b.call.source = second;
    ask_ok(f->bob, &b, MU__VARIABLE_ASSIGN);
    assert_reads(f->alice, &a, second);
    a.call.source = first;
    ask_ok(f->alice, &a, MU__VARIABLE_ADD);
    for (size_t i = 0; i < count; i++)
        second[i] += first[i];
    assert_reads(f->bob, &b, second);
    ask_ok(f->bob, &b, MU__VARIABLE_VERSION);
    assert_int_equal(b.call.version, 3);
    free(first);
    free(second);
}

static void test_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        void *f;

        assert_int_equal(set_up(&f), 0);
        check_shape(f, shapes[i]);
        assert_int_equal(tear_down(&f), 0);
    }
}

static void test_zeros_and_gradients(void **state)
{
    struct fixture *f = *state;
    struct request r = opened(f->alice, "w", four, NULL);
    const float gradient[4] = {1, 2, 3, 4};

    aim(&r);
    assert_reads(f->alice, &r, (const float[4]){0, 0, 0, 0});
    r.call.source = gradient;
    r.call.rate = 0.5;
    ask_ok(f->alice, &r, MU__VARIABLE_APPLY);
    assert_reads(f->alice, &r, (const float[4]){-0.5F, -1, -1.5F, -2});
    r.call.momentum = 0.5;
    ask_ok(f->alice, &r, MU__VARIABLE_APPLY);
    ask_ok(f->alice, &r, MU__VARIABLE_APPLY);
    assert_reads(f->alice, &r, (const float[4]){-1.75F, -3.5F, -5.25F, -7});
}

/* Whoever comes second waits until the first has written every piece. */
static void test_second_waits(void **state)
{
    struct fixture *f = *state;
    float *content = numbers(LARGE_COUNT, 3);
    struct request a = request_of(&f->net, "w", large);
    struct request b = request_of(&f->net, "w", large);

    aim(&a);
    aim(&b);
    a.call.source = content;
    post(f->alice, &a, MU__VARIABLE_OPEN, NEVER);
    post(f->bob, &b, MU__VARIABLE_OPEN, NEVER);
    for (int i = 0; i < 8; i++) {
        assert_true(step(&f->net));
        assert_false(b.done);
    }
    settle(&f->net);
    assert_true(a.done && b.done);
    assert_int_equal(b.call.call.code, 0);
    assert_reads(f->bob, &b, content);
    free(content);
}

static void test_mismatch(void **state)
{
    struct fixture *f = *state;
    struct request r = request_of(&f->net, "w", (struct mu__shape){MU_F32, 1, {5}, 1});

    aim(&r);
    (void)opened(f->alice, "w", four, NULL);
    assert_int_equal(ask(f->bob, &r, MU__VARIABLE_OPEN, NEVER), -MU_EPRECONDITION);
    assert_string_equal(r.call.call.error.message,
                        "variable w: open: on /job:ps/task:0: it is float32[4] in 1 "
                        "shard; opened as float32[5] in 1 shard");
    assert_string_equal(r.call.call.error.task, "/job:ps/task:0");
}

/* The program runs on the server's node itself: no frames, but mailboxes. */
static void test_on_the_same_node(void **state)
{
    struct fixture *f = *state;
    struct process *p = add_process(&f->net, false, 2);
    float *content = numbers(LARGE_COUNT, 1);
    float *other = numbers(LARGE_COUNT, 2);
    struct request r = {.call = {.name = "w", .servers_count = 1},
                        .shape = {MU_F32, 2, {1500, 1024}, 1}};
    const char *const addresses[1] = {"tcp://me:1"};
    const struct mu__variables_options options = {1, addresses, true, 0};

    p->wake_ms = UINT64_MAX;
    assert_int_equal(mu__kernel_new(&p->world, &mu__messages, &p->kernel), 0);
    assert_int_equal(mu__spawn(p->kernel, &mu__ps, MU__PS, NULL, NULL), 0);
    assert_int_equal(mu__spawn(p->kernel, &mu__variables, MU__VARIABLES, &options, NULL),
                     0);
    aim(&r);
    r.call.source = content;
    ask_ok(p, &r, MU__VARIABLE_OPEN);
    r.call.source = other;
    assert_int_equal(ask(p, &r, MU__VARIABLE_ASSIGN, 1000), 0);
    assert_reads(p, &r, other);
    free(content);
    free(other);
}

/* ---- Servers that are missing or slow ---- */

static void test_missing_server_is_named(void **state)
{
    struct fixture *f = *state;
    struct request r = request_of(&f->net, "w", large);

    aim(&r);
    crash(f->servers[1]);
    assert_int_equal(ask(f->alice, &r, MU__VARIABLE_OPEN, 5000), -MU_EDEADLINE);
    assert_int_equal(f->net.now_ms, 5000);
    assert_string_equal(r.call.call.error.message,
                        "variable w: open: /job:ps/task:1 (tcp://ps1:1) not reached for "
                        "5.0 s (connection lost)");
    assert_string_equal(r.call.call.error.task, "/job:ps/task:1");
}

static void test_missing_servers_are_all_named(void **state)
{
    struct fixture *f = *state;
    struct request r = request_of(&f->net, "w", large);

    aim(&r);
    crash(f->servers[0]);
    crash(f->servers[2]);
    assert_int_equal(ask(f->alice, &r, MU__VARIABLE_OPEN, 1250), -MU_EDEADLINE);
    assert_string_equal(r.call.call.error.message,
                        "variable w: open: /job:ps/task:0 (tcp://ps0:1) not reached for "
                        "1.2 s (connection lost), /job:ps/task:2 (tcp://ps2:1) not "
                        "reached for 1.2 s (connection lost)");
}

static void test_slow_server_is_named(void **state)
{
    struct fixture *f = *state;
    struct request r = opened(f->alice, "w", large, NULL);
    float *data = numbers(LARGE_COUNT, 0);

    aim(&r);
    f->servers[2]->deaf = true;
    r.call.target = data;
    assert_int_equal(ask(f->alice, &r, MU__VARIABLE_READ, 300), -MU_EDEADLINE);
    assert_string_equal(r.call.call.error.message,
                        "variable w: read: /job:ps/task:2 (tcp://ps2:1) has not answered "
                        "for 0.3 s");
    free(data);
}

static void test_late_server_is_waited_for(void **state)
{
    struct fixture *f = *state;
    struct request r = request_of(&f->net, "w", large);

    aim(&r);
    crash(f->servers[1]);
    post(f->alice, &r, MU__VARIABLE_OPEN, 60000);
    run_until(&f->net, 30000);
    assert_false(r.done);
    start(f->servers[1]);
    settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
}

/* A link that has no room is tried again soon. */
static void test_full_link(void **state)
{
    struct fixture *f = *state;
    struct request r = request_of(&f->net, "w", large);

    aim(&r);
    f->servers[0]->full = true;
    post(f->alice, &r, MU__VARIABLE_OPEN, 1000);
    run_until(&f->net, 500);
    assert_false(r.done);
    f->servers[0]->full = false;
    run_until(&f->net, 510);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
}

/* ---- Servers that are lost in the middle ---- */

/* Let a call begin and be cut after some events. */
static void begin(struct process *p, struct request *r, int operation, int events)
{
    post(p, r, operation, 60000);
    for (int i = 0; i < events; i++)
        assert_true(step(p->net));
    assert_false(r->done);
}

/* Cut anywhere in a read or an assign: it goes on when the server is back. */
static void test_repeated_after_a_cut(void **state)
{
    static const int operations[] = {MU__VARIABLE_READ, MU__VARIABLE_ASSIGN,
                                     MU__VARIABLE_VERSION};
    float *content = numbers(LARGE_COUNT, 1);
    float *data = numbers(LARGE_COUNT, 0);

    (void)state;
    for (size_t o = 0; o < sizeof operations / sizeof operations[0]; o++)
        for (int events = 0; events < (o < 2 ? 12 : 4); events++) {
            void *fixture;
            struct fixture *f;
            struct request r;

            assert_int_equal(set_up(&fixture), 0);
            f = fixture;
            r = opened(f->alice, "w", large, o == 0 ? content : NULL);
            aim(&r);
            r.call.source = content;
            r.call.target = data;
            begin(f->alice, &r, operations[o], events);
            cut(f->servers[events % 3]);
            settle(&f->net);
            heal(f->servers[events % 3]);
            settle(&f->net);
            assert_true(r.done);
            assert_int_equal(r.call.call.code, 0);
            if (o < 2)
                assert_reads(f->alice, &r, content);
            assert_int_equal(tear_down(&fixture), 0);
        }
    free(content);
    free(data);
}

/* False when the open is over before the server is lost. What a server loses after it has
 * done all that the open wants of it is found out later. */
static bool check_open_is_repeated(const float *content, int server, int events,
                                   int *ret_late)
{
    void *fixture;
    struct fixture *f;
    struct request r;
    float *data = numbers(LARGE_COUNT, 0);
    bool in_time;

    assert_int_equal(set_up(&fixture), 0);
    f = fixture;
    r = request_of(&f->net, "w", large);
    aim(&r);
    r.call.source = content;
    post(f->alice, &r, MU__VARIABLE_OPEN, 60000);
    for (int i = 0; i < events / 2 && !r.done; i++)
        (void)step(&f->net);
    in_time = !r.done;
    if (events % 2 == 0) {
        cut(f->servers[server]);
        heal(f->servers[server]);
    } else if (in_time) {
        crash(f->servers[server]);
        start(f->servers[server]);
    }
    settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    r.call.target = data;
    if (ask(f->alice, &r, MU__VARIABLE_READ, NEVER) == 0)
        assert_memory_equal(data, content, LARGE_COUNT * sizeof *data);
    else
        assert_true(events % 2 == 1 && r.call.call.code == -MU_ENOTFOUND);
    *ret_late += r.call.call.code != 0;
    free(data);
    assert_int_equal(tear_down(&fixture), 0);
    return in_time;
}

/* Opening goes on too, whether the server comes back with or without its memory. */
static void test_open_is_repeated(void **state)
{
    float *content = numbers(LARGE_COUNT, 1);
    int moments = 0;
    int late = 0;

    (void)state;
    for (int server = 0; server < 3; server++)
        for (int events = 0; check_open_is_repeated(content, server, events, &late);
             events++)
            moments++;
    assert_true(moments > 3 * 2 * 20);
    assert_true(late < moments / 6);
    free(content);
}

/* A server that comes back empty is not asked for zeros. */
static void test_restarted_server(void **state)
{
    static const int operations[] = {MU__VARIABLE_READ, MU__VARIABLE_VERSION,
                                     MU__VARIABLE_ASSIGN, MU__VARIABLE_ADD,
                                     MU__VARIABLE_APPLY};
    struct fixture *f = *state;
    struct request r = opened(f->alice, "w", four, NULL);
    float data[4] = {0};

    aim(&r);
    r.call.source = data;
    r.call.target = data;
    crash(server_of(f, "w"));
    start(server_of(f, "w"));
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        assert_int_equal(ask(f->alice, &r, operations[i], NEVER), -MU_ENOTFOUND);
        assert_non_null(strstr(r.call.call.error.message,
                               "on /job:ps/task:0: the server was restarted, or the "
                               "variable created anew: it does not have it"));
        assert_string_equal(r.call.call.error.task, "/job:ps/task:0");
    }
}

/* Sent and not answered: nobody knows, so nothing is repeated. */
static void test_unknown_outcome(void **state)
{
    struct fixture *f = *state;
    struct request r = opened(f->alice, "w", four, NULL);

    aim(&r);
    r.call.source = ones;
    begin(f->alice, &r, MU__VARIABLE_ADD, 1);
    cut(server_of(f, "w"));
    settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, -MU_EUNAVAILABLE);
    assert_string_equal(r.call.call.error.message,
                        "variable w: add: /job:ps/task:0 (tcp://ps0:1) was lost before "
                        "it answered: the outcome is unknown");
    heal(server_of(f, "w"));
    settle(&f->net);
    assert_reads(f->alice, &r, ones);
}

/* A server that comes anew before its loss was told has forgotten what it was asked. */
static void test_new_link_without_loss(void **state)
{
    struct fixture *f = *state;
    float *content = numbers(LARGE_COUNT, 1);
    float *data = numbers(LARGE_COUNT, 0);
    struct request r = opened(f->alice, "w", large, content);

    aim(&r);
    r.call.target = data;
    begin(f->alice, &r, MU__VARIABLE_READ, 0);
    drop_between(f->alice, f->servers[2]);
    link_up(f->alice, f->servers[2]);
    settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    assert_memory_equal(data, content, LARGE_COUNT * sizeof *data);
    free(content);
    free(data);
}

/* Nothing was sent yet: the add waits for the server and is done once. */
static void test_unsent_add_waits(void **state)
{
    struct fixture *f = *state;
    struct request r = opened(f->alice, "w", four, NULL);

    aim(&r);
    r.call.source = ones;
    cut(server_of(f, "w"));
    settle(&f->net);
    begin(f->alice, &r, MU__VARIABLE_ADD, 0);
    heal(server_of(f, "w"));
    settle(&f->net);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    assert_reads(f->alice, &r, ones);
}

/* ---- Creators that are lost or give up ---- */

/* The variable is as a whole what the one or the other has written. */
static void test_creator_dies(void **state)
{
    float *content = numbers(LARGE_COUNT, 1);
    float *other = numbers(LARGE_COUNT, 2);
    float *data = numbers(LARGE_COUNT, 0);
    bool in_time = true;

    (void)state;
    for (int events = 0; in_time; events++) {
        void *fixture;
        struct fixture *f;
        struct request a;
        struct request b;

        assert_int_equal(set_up(&fixture), 0);
        f = fixture;
        a = request_of(&f->net, "w", large);
        b = request_of(&f->net, "w", large);
        aim(&a);
        aim(&b);
        a.call.source = content;
        b.call.source = other;
        post(f->alice, &a, MU__VARIABLE_OPEN, NEVER);
        for (int i = 0; i < events && !a.done; i++)
            (void)step(&f->net);
        in_time = !a.done;
        post(f->bob, &b, MU__VARIABLE_OPEN, NEVER);
        crash(f->alice);
        assert_true(a.done);
        settle(&f->net);
        assert_true(b.done);
        b.call.target = data;
        ask_ok(f->bob, &b, MU__VARIABLE_READ);
        assert_true(memcmp(data, content, LARGE_COUNT * sizeof *data) == 0 ||
                    memcmp(data, other, LARGE_COUNT * sizeof *data) == 0);
        assert_int_equal(tear_down(&fixture), 0);
    }
    free(content);
    free(other);
    free(data);
}

/* The creator cannot finish on server 1, and gives up at its limit. What it made and did
 * not fill is free for the next, although the link had no room to say so at first. */
static void test_creator_gives_up(void **state)
{
    struct fixture *f = *state;
    float *content = numbers(LARGE_COUNT, 1);
    struct request a = request_of(&f->net, "w", large);
    struct request b = request_of(&f->net, "w", large);

    aim(&a);
    aim(&b);
    a.call.source = content;
    b.call.source = content;
    post(f->alice, &a, MU__VARIABLE_OPEN, 100);
    for (int i = 0; i < 3; i++)
        assert_true(step(&f->net));
    f->servers[1]->full = true;
    post(f->bob, &b, MU__VARIABLE_OPEN, NEVER);
    run_until(&f->net, 100);
    assert_true(a.done);
    assert_int_equal(a.call.call.code, -MU_EDEADLINE);
    run_until(&f->net, 200);
    assert_false(b.done);
    f->servers[1]->full = false;
    run_until(&f->net, 210);
    assert_true(b.done);
    assert_int_equal(b.call.call.code, 0);
    assert_reads(f->bob, &b, content);
    free(content);
}

/* More opens give up than may wait at once: each gives its place back. The creator's
 * server hears nothing from it meanwhile. */
static void test_waiting_opens_give_up(void **state)
{
    struct fixture *f = *state;
    struct request a = request_of(&f->net, "w", four);

    aim(&a);
    begin(f->alice, &a, MU__VARIABLE_OPEN, 1);
    f->alice->deaf = true;
    for (int i = 0; i < MU__OPENS_MAX + 10; i++) {
        struct request b = request_of(&f->net, "w", four);

        aim(&b);
        assert_int_equal(ask(f->bob, &b, MU__VARIABLE_OPEN, 1), -MU_EDEADLINE);
        settle(&f->net);
    }
    (void)opened(f->bob, "x", four, NULL);
    f->alice->deaf = false;
    cut(f->alice);
    heal(f->alice);
    settle(&f->net);
    assert_true(a.done);
    assert_int_equal(a.call.call.code, 0);
}

/* Made the creator after it gave up: it hands that on. */
static void test_creator_hears_too_late(void **state)
{
    struct fixture *f = *state;
    struct request a = request_of(&f->net, "w", four);

    aim(&a);
    post(f->alice, &a, MU__VARIABLE_OPEN, 10);
    assert_true(step(&f->net));
    f->net.now_ms = 10;
    settle(&f->net);
    assert_true(a.done);
    assert_int_equal(a.call.call.code, -MU_EDEADLINE);
    (void)opened(f->bob, "w", four, NULL);
}

/* What was given up is not told for ever to a server that is gone. */
static void test_nothing_is_owed_to_the_lost(void **state)
{
    struct fixture *f = *state;
    struct request a = request_of(&f->net, "w", large);
    struct mu__kernel_counters counters;

    aim(&a);
    post(f->alice, &a, MU__VARIABLE_OPEN, 100);
    for (int i = 0; i < 3; i++)
        assert_true(step(&f->net));
    f->servers[1]->full = true;
    run_until(&f->net, 200);
    assert_true(a.done);
    mu__kernel_counters(f->alice->kernel, &counters);
    assert_int_equal(counters.timers, 1);
    crash(f->servers[1]);
    run_until(&f->net, 300);
    mu__kernel_counters(f->alice->kernel, &counters);
    assert_int_equal(counters.timers, 0);
}

/* ---- Who does not create, and shards that are lost ---- */

static struct request asked(struct process *p, struct mu__shape shape, unsigned flags,
                            const float *initial)
{
    struct request request = request_of(p->net, "w", shape);

    request.call.flags = flags;
    request.call.source = initial;
    return request;
}

static void assert_fails(const struct request *r, int code, const char *message)
{
    assert_true(r->done);
    assert_string_equal(r->call.call.error.message, message);
    assert_int_equal(r->call.call.code, code);
    assert_int_equal(r->call.call.error.code, code);
}

static void restart(struct process *p)
{
    crash(p);
    start(p);
    settle(p->net);
}

static void test_existing_waits_for_its_creator(void **state)
{
    struct fixture *f = *state;
    float *content = numbers(LARGE_COUNT, 3);
    struct request b = asked(f->bob, large, MU_VARIABLE_EXISTING, NULL);
    struct request a = asked(f->alice, large, 0, content);

    aim(&a);
    aim(&b);
    post(f->bob, &b, MU__VARIABLE_OPEN, 60000);
    run_until(&f->net, 30000);
    assert_false(b.done);
    ask_ok(f->alice, &a, MU__VARIABLE_OPEN);
    settle(&f->net);
    assert_true(b.done);
    assert_int_equal(b.call.call.code, 0);
    assert_reads(f->bob, &b, content);
    free(content);
}

/* Each one that gives up gives its place back, here and on the server. */
static void test_existing_gives_up(void **state)
{
    static const struct mu__store_limits limits = {
        .bytes_max = 1 << 30, .variables_max = 1, .waiting_max = 2,
        .transfers_node_max = 1};
    struct fixture *f = *state;

    crash(f->servers[0]);
    f->servers[0]->limits = &limits;
    start(f->servers[0]);
    for (int i = 0; i < MU__OPENS_MAX + 10; i++) {
        struct request r = asked(f->bob, large, MU_VARIABLE_EXISTING, NULL);

        aim(&r);
        assert_int_equal(ask(f->bob, &r, MU__VARIABLE_OPEN, 100), -MU_EDEADLINE);
        assert_fails(&r, -MU_EDEADLINE,
                     "variable \"w\" does not exist on /job:ps/task:0 (it waits for its "
                     "creator)");
        assert_string_equal(r.call.call.error.task, "/job:ps/task:0");
        settle(&f->net);
    }
    assert_int_equal(f->net.now_ms, 100 * (MU__OPENS_MAX + 10));
}

/* More wait than may at once: the creator on their node finds room all the same. */
static void test_existing_leave_room_for_the_creator(void **state)
{
    enum { COUNT = MU__OPENS_MAX + 10 };
    struct fixture *f = *state;
    struct request *waiting = calloc(COUNT, sizeof *waiting);

    assert_non_null(waiting);
    for (int i = 0; i < COUNT; i++) {
        waiting[i] = asked(f->alice, four, MU_VARIABLE_EXISTING, NULL);
        aim(&waiting[i]);
        post(f->alice, &waiting[i], MU__VARIABLE_OPEN, NEVER);
    }
    settle(&f->net);
    (void)opened(f->alice, "w", four, ones);
    settle(&f->net);
    for (int i = 0; i < COUNT; i++)
        assert_true(waiting[i].done && waiting[i].call.call.code == 0);
    free(waiting);
}

/* A server that says nothing is not taken for one that says no. */
static void test_existing_and_a_slow_server(void **state)
{
    struct fixture *f = *state;
    struct request r = asked(f->bob, four, MU_VARIABLE_EXISTING, NULL);

    aim(&r);
    f->servers[0]->deaf = true;
    (void)ask(f->bob, &r, MU__VARIABLE_OPEN, 300);
    assert_fails(&r, -MU_EDEADLINE,
                 "variable w: open: /job:ps/task:0 (tcp://ps0:1) has not answered for "
                 "0.3 s");
}

static void test_existing_and_another_shape(void **state)
{
    struct fixture *f = *state;
    struct request r = asked(f->bob, large, MU_VARIABLE_EXISTING, NULL);

    aim(&r);
    post(f->bob, &r, MU__VARIABLE_OPEN, 60000);
    (void)opened(f->alice, "w", four, ones);
    settle(&f->net);
    assert_fails(&r, -MU_EPRECONDITION,
                 "variable w: open: on /job:ps/task:0: it was created with another "
                 "dtype, shape or number of shards");
}

/* The creator gives up: who does not create goes on waiting, and says for what. */
static void test_existing_outlives_a_creator(void **state)
{
    struct fixture *f = *state;
    struct request a = asked(f->alice, four, 0, ones);
    struct request b = asked(f->bob, four, MU_VARIABLE_EXISTING, NULL);
    struct request c = b;

    aim(&a);
    aim(&b);
    aim(&c);
    begin(f->alice, &a, MU__VARIABLE_OPEN, 1);
    post(f->bob, &b, MU__VARIABLE_OPEN, 100);
    post(f->bob, &c, MU__VARIABLE_OPEN, NEVER);
    assert_true(step(&f->net) && step(&f->net));
    crash(f->alice);
    run_until(&f->net, 100);
    assert_fails(&b, -MU_EDEADLINE,
                 "variable \"w\" does not exist on /job:ps/task:0 (it waits for its "
                 "creator)");
    assert_false(c.done);
    start(f->alice);
    (void)opened(f->alice, "w", four, ones);
    settle(&f->net);
    assert_true(c.done);
    assert_reads(f->bob, &c, ones);
}

/* Whichever server comes back empty, opening says so and leaves all as it was, until
 * somebody is asked to create the variable anew; handles from before find nothing. */
static void test_lost_shards(void **state)
{
    static const char *const lost[] = {
        "variable \"w\" lost its shards on /job:ps/task:0 in a restart; others have "
        "theirs (MU_VARIABLE_RECREATE writes all of it anew)",
        "variable \"w\" lost its shards on /job:ps/task:1 in a restart; others have "
        "theirs (MU_VARIABLE_RECREATE writes all of it anew)",
        "variable \"w\" lost its shards on /job:ps/task:2 in a restart; others have "
        "theirs (MU_VARIABLE_RECREATE writes all of it anew)"};
    static const char *const missing[] = {
        "variable \"w\" does not exist on /job:ps/task:0 (it waits for its creator)",
        "variable \"w\" does not exist on /job:ps/task:1 (it waits for its creator)",
        "variable \"w\" does not exist on /job:ps/task:2 (it waits for its creator)"};
    float *content = numbers(LARGE_COUNT, 1);
    float *other = numbers(LARGE_COUNT, 2);
    float *data = numbers(LARGE_COUNT, 0);

    (void)state;
    for (int server = 0; server < 3; server++) {
        struct request old;
        struct request r;
        struct request waits;
        void *fixture;
        struct fixture *f;

        assert_int_equal(set_up(&fixture), 0);
        f = fixture;
        old = opened(f->alice, "w", large, content);
        aim(&old);
        old.call.source = content;
        old.call.momentum = 0.5;
        ask_ok(f->alice, &old, MU__VARIABLE_APPLY);
        restart(f->servers[server]);
        for (int i = 0; i < 3; i++) {
            r = asked(f->bob, large, 0, other);
            aim(&r);
            (void)ask(f->bob, &r, MU__VARIABLE_OPEN, 1000);
            assert_fails(&r, -MU_EDATALOSS, lost[server]);
        }
        r = asked(f->bob, large, MU_VARIABLE_EXISTING, NULL);
        aim(&r);
        (void)ask(f->bob, &r, MU__VARIABLE_OPEN, 1000);
        assert_fails(&r, -MU_EDEADLINE, missing[server]);

        waits = asked(f->alice, large, MU_VARIABLE_EXISTING, NULL);
        aim(&waits);
        post(f->alice, &waits, MU__VARIABLE_OPEN, NEVER);
        settle(&f->net);
        assert_false(waits.done);
        r = asked(f->bob, large, MU_VARIABLE_RECREATE, other);
        aim(&r);
        ask_ok(f->bob, &r, MU__VARIABLE_OPEN);
        settle(&f->net);
        assert_true(waits.done);
        assert_reads(f->alice, &waits, other);
        assert_reads(f->bob, &r, other);
        ask_ok(f->bob, &r, MU__VARIABLE_VERSION);
        assert_int_equal(r.call.version, 1);
        old.call.target = data;
        assert_int_equal(ask(f->alice, &old, MU__VARIABLE_READ, NEVER), -MU_ENOTFOUND);
        assert_int_equal(ask(f->alice, &old, MU__VARIABLE_ADD, NEVER), -MU_ENOTFOUND);
        assert_reads(f->bob, &r, other);
        assert_int_equal(tear_down(&fixture), 0);
    }
    free(content);
    free(other);
    free(data);
}

/* All is made anew while an open, which has found shard 0, is cut off from another one's
 * server: it does not end up with shards of both. */
static void test_made_anew_during_an_open(void **state)
{
    static const unsigned flags[] = {0, MU_VARIABLE_EXISTING, MU_VARIABLE_RECREATE};
    const struct mu__shape shape = {MU_F32, 1, {3}, 3};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct request a;
        struct request b;
        void *fixture;
        struct fixture *f;

        assert_int_equal(set_up(&fixture), 0);
        f = fixture;
        (void)opened(f->alice, "w", shape, NULL);
        restart(f->servers[1]);
        link_down(f->bob, f->servers[1]);
        settle(&f->net);
        b = asked(f->bob, shape, flags[i], NULL);
        aim(&b);
        post(f->bob, &b, MU__VARIABLE_OPEN, NEVER);
        settle(&f->net);
        a = asked(f->alice, shape, MU_VARIABLE_RECREATE, ones);
        aim(&a);
        ask_ok(f->alice, &a, MU__VARIABLE_OPEN);
        assert_false(b.done);
        link_up(f->bob, f->servers[1]);
        settle(&f->net);
        assert_true(b.done);
        assert_int_equal(b.call.call.code, 0);
        assert_reads(f->bob, &b, ones);
        assert_int_equal(tear_down(&fixture), 0);
    }
}

/* Two of three are named; and when all have lost it, it is simply created. */
static void test_more_are_lost(void **state)
{
    struct fixture *f = *state;
    const struct mu__shape shape = {MU_F32, 1, {6}, 6};     /* two on each server */
    const float content[6] = {1, 2, 3, 4, 5, 6};
    struct request r = asked(f->alice, shape, 0, content);

    aim(&r);
    ask_ok(f->alice, &r, MU__VARIABLE_OPEN);
    restart(f->servers[1]);
    restart(f->servers[2]);
    (void)ask(f->alice, &r, MU__VARIABLE_OPEN, NEVER);
    assert_fails(&r, -MU_EDATALOSS,
                 "variable \"w\" lost its shards on /job:ps/task:1, /job:ps/task:2 in "
                 "a restart; others have theirs (MU_VARIABLE_RECREATE writes all of it "
                 "anew)");
    restart(f->servers[0]);
    ask_ok(f->alice, &r, MU__VARIABLE_OPEN);
    assert_reads(f->alice, &r, content);
    r.call.flags = MU_VARIABLE_RECREATE;
    r.call.source = NULL;
    ask_ok(f->alice, &r, MU__VARIABLE_OPEN);
    assert_reads(f->alice, &r, content);
}

/* More shards are lost than the tables of the program have room for, and one waits for
 * them: others read meanwhile. */
static void test_many_are_lost(void **state)
{
    enum { SHARDS = 2 * MU__FLIGHTS_MAX };
    struct fixture *f = *state;
    const struct mu__shape shape = {MU_F32, 1, {SHARDS}, SHARDS};
    struct request x = opened(f->alice, "x", four, ones);
    struct request a = asked(f->bob, shape, 0, NULL);
    struct request waits = asked(f->alice, shape, MU_VARIABLE_EXISTING, NULL);
    uint64_t *ids = calloc(2 * SHARDS, sizeof *ids);

    assert_non_null(ids);
    aim(&x);
    aim(&a);
    aim(&waits);
    a.call.ids = ids;
    waits.call.ids = ids + SHARDS;
    ask_ok(f->bob, &a, MU__VARIABLE_OPEN);
    for (size_t i = 0; i < 3; i++)
        if (f->servers[i] != server_of(f, "w") && f->servers[i] != server_of(f, "x"))
            restart(f->servers[i]);
    (void)ask(f->bob, &a, MU__VARIABLE_OPEN, NEVER);
    assert_int_equal(a.call.call.code, -MU_EDATALOSS);
    post(f->alice, &waits, MU__VARIABLE_OPEN, NEVER);
    settle(&f->net);
    assert_reads(f->alice, &x, ones);
    assert_false(waits.done);
    a.call.flags = MU_VARIABLE_RECREATE;
    ask_ok(f->bob, &a, MU__VARIABLE_OPEN);
    settle(&f->net);
    assert_true(waits.done);
    assert_int_equal(waits.call.call.code, 0);
    ask_ok(f->alice, &waits, MU__VARIABLE_VERSION);
    free(ids);
}

/* Two create it anew at once: one does, and both have its content. */
static void test_two_recreate(void **state)
{
    float *contents[2] = {numbers(LARGE_COUNT, 1), numbers(LARGE_COUNT, 2)};
    float *data = numbers(LARGE_COUNT, 0);

    (void)state;
    for (int i = 0; i < 3 * 40; i++) {
        struct request a;
        struct request b;
        void *fixture;
        struct fixture *f;

        assert_int_equal(set_up(&fixture), 0);
        f = fixture;
        (void)opened(f->alice, "w", large, NULL);
        restart(f->servers[i % 3]);
        a = asked(f->alice, large, MU_VARIABLE_RECREATE, contents[0]);
        b = asked(f->bob, large, MU_VARIABLE_RECREATE, contents[1]);
        aim(&a);
        aim(&b);
        post(f->alice, &a, MU__VARIABLE_OPEN, NEVER);
        for (int j = 0; j < i / 3; j++)
            (void)step(&f->net);
        post(f->bob, &b, MU__VARIABLE_OPEN, NEVER);
        settle(&f->net);
        assert_true(a.done && a.call.call.code == 0);
        assert_true(b.done && b.call.call.code == 0);
        a.call.target = data;
        ask_ok(f->alice, &a, MU__VARIABLE_READ);
        assert_reads(f->bob, &b, data);
        assert_true(memcmp(data, contents[0], LARGE_COUNT * sizeof *data) == 0 ||
                    memcmp(data, contents[1], LARGE_COUNT * sizeof *data) == 0);
        assert_int_equal(tear_down(&fixture), 0);
    }
    free(contents[0]);
    free(contents[1]);
    free(data);
}

/* ---- Bounds ---- */

/* Reads and writes have a window of data under way, and no more. */
static void test_window(void **state)
{
    struct fixture *f = *state;
    const struct mu__shape shape = {MU_F32, 2, {16, MU__PIECE_BYTES_MAX / 4}, 1};
    float *data = numbers(16 * (MU__PIECE_BYTES_MAX / 4), 1);
    struct request r = opened(f->alice, "w", shape, data);
    const uint64_t most = MU__WINDOW_BYTES + MU__PIECE_BYTES_MAX + 4096;

    aim(&r);
    assert_true(f->net.raw_bytes_peak >= MU__WINDOW_BYTES);
    assert_true(f->net.raw_bytes_peak < most);
    r.call.source = data;
    ask_ok(f->alice, &r, MU__VARIABLE_ASSIGN);
    assert_true(f->net.raw_bytes_peak < most);
    assert_reads(f->alice, &r, data);
    assert_true(f->net.raw_bytes_peak < most);
    free(data);
}

/* Ten shards on one server are not all staged at once: the server would refuse. */
static void test_staged_at_once(void **state)
{
    static const struct mu__store_limits limits = {
        .bytes_max = 1 << 30, .variables_max = 100, .waiting_max = 100,
        .transfers_node_max = MU__STAGED_MAX};
    const struct mu__shape shape = {MU_F32, 2, {10, MU__PIECE_BYTES_MAX / 4 + 1}, 10};
    struct fixture *f = *state;
    float *data = numbers((size_t)mu__shape_bytes(&shape) / sizeof(float), 1);
    struct request r = {.call = {.name = "w", .servers_count = 1}, .shape = shape};

    crash(f->servers[0]);
    f->servers[0]->limits = &limits;
    start(f->servers[0]);
    aim(&r);
    ask_ok(f->alice, &r, MU__VARIABLE_OPEN);
    r.call.source = data;
    ask_ok(f->alice, &r, MU__VARIABLE_ASSIGN);
    assert_reads(f->alice, &r, data);
    free(data);
}

/* Calls to one server fill the table of all: one to another server is not forgotten. */
static void test_full_table_blocks_nobody(void **state)
{
    enum { COUNT = MU__FLIGHTS_MAX * 2 };
    struct fixture *f = *state;
    struct request *r = calloc(COUNT, sizeof *r);
    struct request w = opened(f->alice, "w", four, NULL);
    struct request x = opened(f->alice, "x", four, NULL);

    assert_non_null(r);
    assert_ptr_not_equal(server_of(f, "w"), server_of(f, "x"));
    for (int i = 0; i < COUNT; i++) {
        r[i] = w;
        aim(&r[i]);
        post(f->alice, &r[i], MU__VARIABLE_VERSION, NEVER);
    }
    aim(&x);
    post(f->alice, &x, MU__VARIABLE_VERSION, NEVER);
    settle(&f->net);
    assert_true(x.done);
    for (int i = 0; i < COUNT; i++)
        assert_true(r[i].done);
    free(r);
}

/* A thousand small calls at once, and a large one: all are done. */
static void test_many_at_once(void **state)
{
    enum { COUNT = 3000 };
    struct fixture *f = *state;
    struct request *r = calloc(COUNT, sizeof *r);
    float *content = numbers(LARGE_COUNT, 1);
    struct request big = opened(f->alice, "b", large, content);
    struct request small = opened(f->alice, "w", four, NULL);

    assert_non_null(r);
    aim(&big);
    aim(&small);
    big.call.source = content;
    post(f->alice, &big, MU__VARIABLE_ASSIGN, NEVER);
    for (int i = 0; i < COUNT; i++) {
        r[i] = small;
        aim(&r[i]);
        r[i].call.source = ones;
        post(f->alice, &r[i], MU__VARIABLE_ADD, NEVER);
    }
    settle(&f->net);
    for (int i = 0; i < COUNT; i++)
        assert_true(r[i].done && r[i].call.call.code == 0);
    assert_true(big.done);
    assert_reads(f->alice, &small, (const float[4]){COUNT, COUNT, COUNT, COUNT});
    free(content);
    free(r);
}

/* ---- What the network may bring ---- */

/* An actor that lets a test speak for itself, and keeps the last answer. */
struct probe {
    uint32_t kind;
    uint64_t token;
    uint32_t code;
    uint64_t variable;
    char message[512];
    mu_value *status;
};

static struct probe heard;

static void on_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__var_opened *body = mu__body(msg);

    (void)ctx;
    (void)state;
    heard = (struct probe){MU__VAR_OPENED, body->token, body->code, body->variable, "",
                           NULL};
    mu__view_copy(body->message, heard.message, sizeof heard.message);
}

static void on_data(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__var_data *body = mu__body(msg);

    (void)ctx;
    (void)state;
    heard = (struct probe){MU__VAR_DATA, body->token, body->code, 0, "", NULL};
    mu__view_copy(body->message, heard.message, sizeof heard.message);
}

static void on_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__var_written *body = mu__body(msg);

    (void)ctx;
    (void)state;
    heard = (struct probe){MU__VAR_WRITTEN, body->token, body->code, 0, "", NULL};
    mu__view_copy(body->message, heard.message, sizeof heard.message);
}

static void on_status(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__status *body = mu__body(msg);
    char why[128];

    (void)ctx;
    (void)state;
    heard = (struct probe){.kind = MU__STATUS, .token = body->token};
    if (mu__value_unpack(&body->status, why, sizeof why, &heard.status) != 0)
        fail_msg("%s", why);
}

static const struct mu__handler probe_handlers[] = {
    {MU__VAR_OPENED, on_opened},
    {MU__VAR_DATA, on_data},
    {MU__VAR_WRITTEN, on_written},
    {MU__STATUS, on_status},
};

static const struct mu__behavior probe_behavior = {
    .name = "probe",
    .handlers = probe_handlers,
    .handlers_count = sizeof probe_handlers / sizeof probe_handlers[0],
};

/* Send a body of a kind from Alice's probe to a server, and hear the answer. */
static void tell(struct fixture *f, mu__pid probe, struct process *server, uint16_t kind,
                 const void *body)
{
    struct mu__ctx ctx = {f->alice->kernel, probe, NULL};
    struct mu__msg *msg = mu__msg_new(&ctx, kind);
    mu__pid to = {f->alice->numbers[server - f->net.processes], MU__PS};

    assert_non_null(msg);
    memcpy(msg->body, body, mu__messages.rows[kind].body_size);
    heard = (struct probe){.kind = 0};
    assert_int_equal(mu__send(&ctx, to, msg), 0);
    settle(&f->net);
}

static mu__pid spawn_probe(struct fixture *f)
{
    mu__pid probe;

    assert_int_equal(mu__spawn(f->alice->kernel, &probe_behavior, 0, NULL, &probe), 0);
    return probe;
}

static const uint8_t dims_16[8] = {16};
static const uint8_t dims_huge[16] = {0, 0, 0, 0, 0, 0, 0, 0x80, 4};

#define NAME(text) {(text), sizeof(text) - 1}

static const struct bad_open {
    struct mu__var_open body;
    uint32_t code;
    const char *message;
} bad_opens[] = {
    {{1, NAME("v"), MU_F32, {dims_16, 8}, 0, 1, 64, false, 0}, 0, ""},
    {{2, NAME(""), MU_F32, {dims_16, 8}, 0, 1, 64, false, 0}, MU_EINVALID,
     "a variable's name has 0 bytes: expected 1 to 255"},
    {{3, NAME("v\x01"), MU_F32, {dims_16, 8}, 0, 1, 64, false, 0}, MU_EINVALID,
     "a variable's name has a control character at byte 1"},
    {{4, NAME("v"), 77, {dims_16, 8}, 0, 1, 64, false, 0}, MU_EINVALID,
     "dtype 77 is none"},
    {{5, NAME("v"), MU_F32, {dims_16, 7}, 0, 1, 64, false, 0}, MU_EINVALID,
     "dims of 7 bytes: expected 8 for each"},
    {{6, NAME("v"), MU_F32, {dims_huge, 16}, 0, 1, 64, false, 0}, MU_ERANGE,
     "dimension 0 is 9223372036854775808: the variable would have more than "
     "4398046511104 bytes"},
    {{7, NAME("v"), MU_F32, {dims_16, 8}, 0, 0, 64, false, 0}, MU_ERANGE,
     "0 shards of 16 rows: expected 1 to the number of rows"},
    {{8, NAME("v"), MU_F32, {dims_16, 8}, 9, 4, 16, false, 0}, MU_EINVALID,
     "shard 9 of 4"},
    {{9, NAME("v"), MU_F32, {dims_16, 8}, 0, 1, UINT64_MAX, false, 0}, MU_EINVALID,
     "shard of 18446744073709551615 bytes: expected 64"},
};

static void test_bad_opens(void **state)
{
    struct fixture *f = *state;
    mu__pid probe = spawn_probe(f);

    for (size_t i = 0; i < sizeof bad_opens / sizeof bad_opens[0]; i++) {
        tell(f, probe, f->servers[0], MU__VAR_OPEN, &bad_opens[i].body);
        assert_int_equal(heard.kind, MU__VAR_OPENED);
        assert_int_equal(heard.token, bad_opens[i].body.token);
        assert_string_equal(heard.message, bad_opens[i].message);
        assert_int_equal(heard.code, bad_opens[i].code);
    }
}

/* Ids are filled in: 0 stands for the variable's own. */
static const struct bad_read {
    struct mu__var_read body;
    uint32_t code;
} bad_reads[] = {
    {{1, 0, 0, 16}, 0},
    {{2, 0, 16, 0}, 0},
    {{3, 0, 0, 17}, MU_ERANGE},
    {{4, 0, 16, 1}, MU_ERANGE},
    {{5, 0, UINT64_MAX, 16}, MU_ERANGE},
    {{6, 1, 0, 16}, MU_ENOTFOUND},
    {{7, UINT64_MAX, 0, 16}, MU_ENOTFOUND},
};

static const struct bad_write {
    struct mu__var_write body;
    uint32_t code;
} bad_writes[] = {
    {{1, 0, MU__WRITE_ADD, 0, 0, {ones, 16}, 0, 0}, 0},
    {{2, 0, MU__WRITE_ASSIGN, 0, 0, {ones, 16}, 0, 0}, 0},
    {{3, 0, MU__WRITE_ASSIGN, 9, 4, {ones, 4}, 0, 0}, MU_EABORTED},
    {{4, 0, MU__WRITE_ASSIGN, 9, 0, {ones, 20}, 0, 0}, MU_ERANGE},
    {{5, 0, MU__WRITE_ASSIGN, 9, 0, {ones, 0}, 0, 0}, MU_EINVALID},
    {{6, 0, MU__WRITE_ADD, 0, UINT64_MAX - 3, {ones, 4}, 0, 0}, MU_ERANGE},
    {{7, 0, MU__WRITE_ADD, 0, 2, {ones, 4}, 0, 0}, MU_EINVALID},
    {{8, 0, MU__WRITE_ADD, 0, 0, {ones, 3}, 0, 0}, MU_EINVALID},
    {{9, 0, 0, 0, 0, {ones, 16}, 0, 0}, MU_EINVALID},
    {{10, 0, 255, 0, 0, {ones, 16}, 0, 0}, MU_EINVALID},
    {{11, 0, MU__WRITE_ZERO, 0, 0, {ones, 16}, 0, 0}, MU_EINVALID},
    {{12, 1, MU__WRITE_ADD, 0, 0, {ones, 16}, 0, 0}, MU_ENOTFOUND},
    {{13, 0, MU__WRITE_SGD, 0, 0, {ones, 16}, (double)__builtin_nanf(""), 0}, 0},
    {{14, 0, MU__WRITE_MOMENTUM, 0, 0, {ones, 16}, 1e308, -1e308}, 0},
};

static void test_bad_reads_and_writes(void **state)
{
    struct fixture *f = *state;
    mu__pid probe = spawn_probe(f);
    uint64_t id = opened(f->alice, "w", four, NULL).ids[0];

    for (size_t i = 0; i < sizeof bad_reads / sizeof bad_reads[0]; i++) {
        struct mu__var_read body = bad_reads[i].body;

        body.variable = body.variable == 0 ? id : body.variable;
        tell(f, probe, server_of(f, "w"), MU__VAR_READ, &body);
        assert_int_equal(heard.kind, MU__VAR_DATA);
        assert_int_equal(heard.token, body.token);
        assert_int_equal(heard.code, bad_reads[i].code);
        assert_true((heard.message[0] == '\0') == (heard.code == 0));
    }
    for (size_t i = 0; i < sizeof bad_writes / sizeof bad_writes[0]; i++) {
        struct mu__var_write body = bad_writes[i].body;

        body.variable = body.variable == 0 ? id : body.variable;
        tell(f, probe, server_of(f, "w"), MU__VAR_WRITE, &body);
        assert_int_equal(heard.kind, MU__VAR_WRITTEN);
        assert_int_equal(heard.token, body.token);
        assert_int_equal(heard.code, bad_writes[i].code);
        assert_true((heard.message[0] == '\0') == (heard.code == 0));
    }
}

/* Data from a server to Alice, under a token. */
static void answer_data(struct fixture *f, struct process *server, uint64_t token,
                        struct mu__view data)
{
    mu__pid to = {server->numbers[f->alice - f->net.processes], MU__VARIABLES};
    struct mu__ctx ctx = {server->kernel, {MU__NODE_SELF, MU__PS}, NULL};
    struct mu__msg *msg = mu__msg_new(&ctx, MU__VAR_DATA);
    struct mu__var_data *body = mu__body(msg);

    body->token = token;
    body->data = data;
    assert_int_equal(mu__send(&ctx, to, msg), 0);
    settle(&f->net);
}

static void assert_nonsense(const struct request *r)
{
    assert_true(r->done);
    assert_int_equal(r->call.call.code, -MU_EDATALOSS);
    assert_string_equal(r->call.call.error.message,
                        "variable w: read: /job:ps/task:0 (tcp://ps0:1) answered "
                        "something else than was asked");
}

/* Answers that nobody waits for change nothing, nor do those of somebody else; one that
 * is too short ends the call. */
static void test_bad_answers(void **state)
{
    struct fixture *f = *state;
    struct request r = opened(f->alice, "w", four, NULL);
    float data[4];

    aim(&r);
    r.call.target = data;
    f->servers[0]->deaf = true;
    post(f->alice, &r, MU__VARIABLE_READ, NEVER);
    settle(&f->net);
    for (uint64_t token = 0; token < 20; token++)
        answer_data(f, f->servers[1], token, (struct mu__view){ones, 16});
    assert_false(r.done);
    for (uint64_t token = 0; token < 20; token++)
        answer_data(f, f->servers[0], token, (struct mu__view){ones, 12});
    assert_nonsense(&r);
}

/* The second piece before the first, which no server does. */
static void test_answers_out_of_order(void **state)
{
    struct fixture *f = *state;
    const struct mu__shape shape = {MU_F32, 1, {MU__PIECE_BYTES_MAX / 2}, 1};
    float *data = numbers(MU__PIECE_BYTES_MAX / 2, 0);
    struct request r = opened(f->alice, "w", shape, NULL);

    aim(&r);
    r.call.target = data;
    f->servers[0]->deaf = true;
    post(f->alice, &r, MU__VARIABLE_READ, NEVER);
    settle(&f->net);
    for (uint64_t token = 20; token > 0; token--)
        answer_data(f, f->servers[0], token,
                    (struct mu__view){data, MU__PIECE_BYTES_MAX});
    assert_nonsense(&r);
    free(data);
}

/* ---- Status and end ---- */

static int64_t number_in(const mu_value *map, const char *key)
{
    int64_t number = -1;

    assert_int_equal(mu_value_get_int(mu_value_find(map, key), &number), 0);
    return number;
}

static void test_status(void **state)
{
    struct fixture *f = *state;
    mu__pid probe = spawn_probe(f);
    struct request r = opened(f->alice, "w", four, NULL);
    const struct mu__status_get get = {.token = 77};
    const mu_value *map;
    const char *text;
    size_t size;

    aim(&r);
    assert_reads(f->alice, &r, (const float[4]){0, 0, 0, 0});
    tell(f, probe, server_of(f, "w"), MU__STATUS_GET, &get);
    assert_int_equal(heard.token, 77);
    assert_int_equal(mu_value_count(heard.status), 1);
    map = mu_value_at(heard.status, 0);
    assert_int_equal(mu_value_get_string(mu_value_find(map, "name"), &text, &size), 0);
    assert_string_equal(text, "w");
    assert_int_equal(mu_value_get_string(mu_value_find(map, "dtype"), &text, &size), 0);
    assert_string_equal(text, "float32");
    assert_int_equal(mu_value_count(mu_value_find(map, "dims")), 1);
    assert_int_equal(number_in(map, "shard"), 0);
    assert_int_equal(number_in(map, "shards"), 1);
    assert_int_equal(number_in(map, "bytes"), 16);
    assert_int_equal(number_in(map, "version"), 1);
    assert_int_equal(number_in(map, "reads"), 1);
    assert_int_equal(number_in(map, "bytes_read"), 16);
    mu_value_free(heard.status);
}

static void test_status_has_an_end(void **state)
{
    struct fixture *f = *state;
    mu__pid probe = spawn_probe(f);
    const struct mu__status_get get = {.token = 78};
    char name[32];

    for (int i = 0; i < MU__PS_STATUS_MAX + 3; i++) {
        struct mu__var_open open = {.token = 1, .dtype = MU_F32, .dims = {dims_16, 8},
                                    .shards = 1, .size = 64};

        (void)snprintf(name, sizeof name, "v%d", i);
        open.name = mu__view_str(name);
        tell(f, probe, f->servers[0], MU__VAR_OPEN, &open);
        assert_int_equal(heard.code, 0);
    }
    tell(f, probe, f->servers[0], MU__STATUS_GET, &get);
    assert_int_equal(mu_value_count(heard.status), MU__PS_STATUS_MAX + 1);
    assert_int_equal(number_in(mu_value_at(heard.status, MU__PS_STATUS_MAX), "left_out"),
                     3);
    mu_value_free(heard.status);
}

static void test_closing_completes_calls(void **state)
{
    struct fixture *f = *state;
    struct request r = request_of(&f->net, "w", large);

    aim(&r);
    begin(f->alice, &r, MU__VARIABLE_OPEN, 2);
    crash(f->alice);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, -MU_ECLOSED);
    assert_string_equal(r.call.call.error.message,
                        "variable w: open: the node is being closed");
}

/* ---- Many runs ---- */

enum { STORM_CALLS = 40 };

/* What a run of adds came to: the sum lies between what was acknowledged and that plus
 * what is unknown. */
struct storm {
    struct fixture *f;
    struct request counter;
    float acknowledged;
    float unknown;
    uint64_t digest;
};

static void storm_event(struct storm *s)
{
    struct net *net = &s->f->net;
    struct process *server = s->f->servers[draw(net) % 3];

    if (draw(net) % 8 == 0) {
        cut(server);
        settle(net);
        run_until(net, net->now_ms + draw(net) % 50);
        heal(server);
    } else if (draw(net) % 8 == 0) {
        server->full = !server->full;
    }
}

static void storm_call(struct storm *s)
{
    static const float one[4] = {1, 1, 1, 1};
    struct net *net = &s->f->net;
    struct request r = s->counter;
    int events = 0;

    aim(&r);
    r.call.source = one;
    post(s->f->alice, &r, MU__VARIABLE_ADD, 30);
    while (!r.done) {
        storm_event(s);
        if (!step(net))
            run_until(net, net->now_ms + 1);
        assert_true(++events < 10000);
    }
    if (r.call.call.code == 0)
        s->acknowledged += 1;
    else
        s->unknown += 1;
    s->digest = s->digest * 31 + (uint64_t)-r.call.call.code + net->now_ms;
}

static uint64_t run_storm(uint64_t seed, float *ret_failed)
{
    struct storm s = {.digest = 0};
    void *fixture;
    float data[4];

    assert_int_equal(set_up(&fixture), 0);
    s.f = fixture;
    s.f->net.random = seed * UINT64_C(0x9e3779b97f4a7c15);
    s.counter = opened(s.f->alice, "w", four, NULL);
    for (int i = 0; i < STORM_CALLS; i++)
        storm_call(&s);
    for (int i = 0; i < 3; i++)
        s.f->servers[i]->full = false;
    aim(&s.counter);
    s.counter.call.target = data;
    ask_ok(s.f->bob, &s.counter, MU__VARIABLE_READ);
    if (data[0] < s.acknowledged || data[0] > s.acknowledged + s.unknown)
        fail_msg("seed %llu: %g acknowledged, %g unknown, sum %g",
                 (unsigned long long)seed, (double)s.acknowledged, (double)s.unknown,
                 (double)data[0]);
    s.digest = s.digest * 31 + (uint64_t)data[0];
    *ret_failed += s.unknown;
    assert_int_equal(tear_down(&fixture), 0);
    return s.digest;
}

static void test_storm(void **state)
{
    uint64_t differ = 0;
    uint64_t before = 0;
    float failed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t digest = run_storm(seed, &failed);

        assert_true(digest == run_storm(seed, &failed));
        differ += digest != before;
        before = digest;
    }
    assert_true(differ > 90);
    assert_true(failed > 100);
}

/* ---- Many opens ---- */

/* Programs that open one variable again and again, two of which may create it, while
 * servers and programs are cut off, lost and restarted. Each content is one number all
 * over: whatever is read is all of one opener. At the end all is well. */
enum { OPENERS = 3, OPENING_ROUNDS = 6, OPENING_EVENTS_MAX = 20000 };

struct opening_storm {
    struct fixture *f;
    struct process *programs[OPENERS];
    struct mu__shape shape;
    size_t count;               /* of elements */
    float *contents[OPENERS];
    float *data;
    struct request requests[OPENERS];
    float number;               /* of the last content */
    uint64_t digest;
    unsigned succeeded;
    unsigned lost;
};

static void opening_event(struct opening_storm *s)
{
    struct net *net = &s->f->net;
    struct process *server = s->f->servers[draw(net) % 3];
    struct process *program = s->programs[draw(net) % OPENERS];

    if (draw(net) % 16 == 0) {
        cut(server);
        for (uint64_t i = draw(net) % 4; i > 0; i--)
            (void)step(net);
        heal(server);
    }
    if (draw(net) % 32 == 0)
        server->full = !server->full;
    if (draw(net) % 64 == 0)
        restart(server);
    if (draw(net) % 128 == 0)
        restart(program);
    if (draw(net) % 32 == 0) {
        link_down(server, program);
        link_up(server, program);
    }
}

static void fill_with(float *content, size_t count, float number)
{
    for (size_t i = 0; i < count; i++)
        content[i] = number;
}

/* The last one never creates, the others create anew every other time. */
static void post_open(struct opening_storm *s, size_t i)
{
    struct request *r = &s->requests[i];
    struct net *net = &s->f->net;
    unsigned flags = draw(net) % 2 == 0 ? MU_VARIABLE_RECREATE : 0;

    s->number += 1;
    fill_with(s->contents[i], s->count, s->number);
    *r = asked(s->programs[i], s->shape, i == OPENERS - 1 ? MU_VARIABLE_EXISTING : flags,
               s->contents[i]);
    aim(r);
    post(s->programs[i], r, MU__VARIABLE_OPEN, (int64_t)(draw(net) % 200));
    while (r->call.call.timer == 0)     /* a crash would lose a call that nobody took */
        turn(s->programs[i]);
}

static bool all_done(const struct opening_storm *s)
{
    for (size_t i = 0; i < OPENERS; i++)
        if (!s->requests[i].done)
            return false;
    return true;
}

static void assert_of_one(struct opening_storm *s, size_t i)
{
    for (size_t j = 1; j < s->count; j++)
        if (s->data[j] < s->data[0] || s->data[j] > s->data[0])
            fail_msg("opener %zu reads %g and %g", i, (double)s->data[0],
                     (double)s->data[j]);
    assert_true(s->data[0] >= 1 && s->data[0] <= s->number);
}

static void check_opened(struct opening_storm *s, size_t i)
{
    struct request *r = &s->requests[i];
    int code = r->call.call.code;

    s->digest = s->digest * 31 + (uint64_t)-code;
    if (code != 0 && code != -MU_EDEADLINE && code != -MU_EDATALOSS &&
        code != -MU_ECLOSED)
        fail_msg("%s", r->call.call.error.message);
    assert_true(code != -MU_EDATALOSS || r->call.flags == 0);
    s->lost += code == -MU_EDATALOSS;
    if (code != 0)
        return;
    r->call.flags = 0;
    r->call.target = s->data;
    code = ask(s->programs[i], r, MU__VARIABLE_READ, NEVER);
    assert_true(code == 0 || code == -MU_ENOTFOUND);
    if (code != 0)
        return;
    s->succeeded++;
    assert_of_one(s, i);
    s->digest = s->digest * 31 + (uint64_t)s->data[0];
}

static void opening_round(struct opening_storm *s)
{
    struct net *net = &s->f->net;
    int events = 0;

    for (size_t i = 0; i < OPENERS; i++)
        post_open(s, i);
    while (!all_done(s)) {
        opening_event(s);
        if (!step(net))
            run_until(net, net->now_ms + 1 + draw(net) % 20);
        assert_true(++events < OPENING_EVENTS_MAX);
    }
    for (size_t i = 0; i < 3; i++)
        s->f->servers[i]->full = false;
    settle(net);
    for (size_t i = 0; i < OPENERS; i++)
        check_opened(s, i);
}

/* Once nothing more happens, who waits gets what the others create. */
static void check_all_is_well(struct opening_storm *s)
{
    struct request *waits = &s->requests[OPENERS - 1];
    struct request *creates = &s->requests[0];

    *waits = asked(s->programs[OPENERS - 1], s->shape, MU_VARIABLE_EXISTING, NULL);
    aim(waits);
    post(s->programs[OPENERS - 1], waits, MU__VARIABLE_OPEN, NEVER);
    *creates = asked(s->programs[0], s->shape, MU_VARIABLE_RECREATE, s->contents[0]);
    aim(creates);
    assert_int_equal(ask(s->programs[0], creates, MU__VARIABLE_OPEN, 10000), 0);
    settle(&s->f->net);
    assert_true(waits->done);
    check_opened(s, OPENERS - 1);
    assert_int_equal(waits->call.call.code, 0);
    check_opened(s, 0);
    assert_int_equal(creates->call.call.code, 0);
}

static void run_opening_storm(uint64_t seed, struct opening_storm *s)
{
    void *fixture;

    assert_int_equal(set_up(&fixture), 0);
    s->f = fixture;
    s->f->net.random = seed * UINT64_C(0x9e3779b97f4a7c15);
    s->programs[0] = s->f->alice;
    s->programs[1] = s->f->bob;
    s->programs[2] = add_process(&s->f->net, false, 2);
    start(s->programs[2]);
    s->shape = large;
    if (seed % 16 != 0)
        s->shape = (struct mu__shape){MU_F32, 1, {6}, (uint32_t)(1 + seed % 6)};
    s->count = (size_t)mu__shape_bytes(&s->shape) / sizeof(float);
    s->data = numbers(s->count, 0);
    for (size_t i = 0; i < OPENERS; i++)
        s->contents[i] = numbers(s->count, 0);
    for (int i = 0; i < OPENING_ROUNDS; i++)
        opening_round(s);
    check_all_is_well(s);
    for (size_t i = 0; i < OPENERS; i++)
        free(s->contents[i]);
    free(s->data);
    assert_int_equal(tear_down(&fixture), 0);
}

static void test_opening_storm(void **state)
{
    unsigned succeeded = 0;
    unsigned lost = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct opening_storm first = {.number = 0};
        struct opening_storm again = {.number = 0};

        run_opening_storm(seed, &first);
        if (seed % 20 == 1) {
            run_opening_storm(seed, &again);
            assert_true(first.digest == again.digest);
        }
        succeeded += first.succeeded;
        lost += first.lost;
    }
    assert_true(succeeded > 1000);
    assert_true(lost > 100);
}

#define WITH_NET(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        WITH_NET(test_zeros_and_gradients),
        WITH_NET(test_second_waits),
        WITH_NET(test_mismatch),
        WITH_NET(test_on_the_same_node),
        WITH_NET(test_missing_server_is_named),
        WITH_NET(test_missing_servers_are_all_named),
        WITH_NET(test_slow_server_is_named),
        WITH_NET(test_late_server_is_waited_for),
        WITH_NET(test_full_link),
        cmocka_unit_test(test_repeated_after_a_cut),
        cmocka_unit_test(test_open_is_repeated),
        WITH_NET(test_restarted_server),
        WITH_NET(test_unknown_outcome),
        WITH_NET(test_new_link_without_loss),
        WITH_NET(test_unsent_add_waits),
        cmocka_unit_test(test_creator_dies),
        WITH_NET(test_creator_gives_up),
        WITH_NET(test_waiting_opens_give_up),
        WITH_NET(test_creator_hears_too_late),
        WITH_NET(test_nothing_is_owed_to_the_lost),
        WITH_NET(test_existing_waits_for_its_creator),
        WITH_NET(test_existing_gives_up),
        WITH_NET(test_existing_leave_room_for_the_creator),
        WITH_NET(test_existing_and_a_slow_server),
        WITH_NET(test_existing_and_another_shape),
        WITH_NET(test_existing_outlives_a_creator),
        cmocka_unit_test(test_lost_shards),
        cmocka_unit_test(test_made_anew_during_an_open),
        WITH_NET(test_more_are_lost),
        WITH_NET(test_many_are_lost),
        cmocka_unit_test(test_two_recreate),
        WITH_NET(test_window),
        WITH_NET(test_staged_at_once),
        WITH_NET(test_full_table_blocks_nobody),
        WITH_NET(test_many_at_once),
        WITH_NET(test_bad_opens),
        WITH_NET(test_bad_reads_and_writes),
        WITH_NET(test_bad_answers),
        WITH_NET(test_answers_out_of_order),
        WITH_NET(test_status),
        WITH_NET(test_status_has_an_end),
        WITH_NET(test_closing_completes_calls),
        cmocka_unit_test(test_storm),
        cmocka_unit_test(test_opening_storm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
