/* What runs write to the servers, applied once: the real actors of workers and parameter
 * servers on several kernels, joined by a small world of this file. It keeps frames in
 * one queue, so that a test can stop, cut and crash between any two. */
#include "actors/effects.h"

#include "actors/messages.h"
#include "actors/ps.h"
#include "actors/run.h"
#include "actors/variable_store.h"
#include "actors/variables.h"
#include "tests/sim/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- The world ---- */

enum { PROCESSES = 5, LIMIT_MS = 2000 };

enum role { PS, WORKER, CHIEF };

static const char *const role_names[] = {"ps", "worker", "chief"};

struct frame {
    struct frame *next;
    struct process *from;
    struct process *to;
    uint16_t kind;
    struct mu__buf *bytes;
};

struct process {
    struct mu__world world;     /* first: a world is its process */
    struct net *net;
    struct mu__kernel *kernel;  /* NULL: not running */
    enum role role;
    uint32_t index;
    uint64_t wake_ms;
    uint32_t numbers[PROCESSES];    /* what it calls the others; 0: not connected */
    bool full;                  /* its links have no room */
};

struct net {
    uint64_t now_ms;
    struct sim_random random;
    uint32_t number_last;
    struct process processes[PROCESSES];
    struct frame *first;
    struct frame **last;
    uint64_t bytes;             /* in the queue now, */
    uint64_t bytes_peak;        /* and at most */
    uint64_t counts[MU__KINDS_END];     /* of frames sent */
};

static uint64_t world_now_ms(struct mu__world *world)
{
    return ((struct process *)world)->net->now_ms;
}

static uint64_t world_random(struct mu__world *world)
{
    return sim_draw(&((struct process *)world)->net->random);
}

static void world_wake_at(struct mu__world *world, uint64_t due_ms)
{
    struct process *p = (struct process *)world;

    if (due_ms < p->wake_ms)
        p->wake_ms = due_ms;
}

static struct process *find_peer(struct process *p, uint32_t number)
{
    for (size_t i = 0; i < PROCESSES; i++)
        if (number != 0 && p->numbers[i] == number)
            return &p->net->processes[i];
    return NULL;
}

static void push(struct process *from, struct process *to, uint16_t kind,
                 struct mu__buf *bytes)
{
    struct net *net = from->net;
    struct frame *frame = calloc(1, sizeof *frame);

    assert_non_null(frame);
    *frame = (struct frame){NULL, from, to, kind, bytes};
    *net->last = frame;
    net->last = &frame->next;
    net->counts[kind]++;
    net->bytes += bytes->size;
    if (net->bytes > net->bytes_peak)
        net->bytes_peak = net->bytes;
}

static int transmit(struct process *from, const struct mu__msg *msg)
{
    struct process *to = find_peer(from, msg->to.node);
    struct mu__buf *bytes;

    if (to == NULL)
        return -MU_EUNAVAILABLE;
    if (from->full)
        return -MU_EEXHAUSTED;
    bytes = mu__buf_new(mu__encode_bound(&mu__messages, msg));
    assert_non_null(bytes);
    assert_int_equal(mu__encode(&mu__messages, msg, bytes), 0);
    push(from, to, msg->kind, bytes);
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

/* ---- A run whose writes are sent ---- */

struct writes {
    struct mu_run run;      /* first: the actors know it by that */
    bool sent;
};

/* The worker of these tests: it waits for EFFECTS_SENT, once for each run. */
static void on_sent(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__effects_sent *body = mu__body(msg);
    struct writes *writes = body->run;

    (void)ctx;
    (void)state;
    assert_false(writes->sent);
    writes->sent = true;
}

static const struct mu__handler probe_handlers[] = {{MU__EFFECTS_SENT, on_sent}};

static const struct mu__behavior probe = {
    .name = "probe",
    .state_size = 1,
    .handlers = probe_handlers,
    .handlers_count = 1,
};

/* ---- Processes and links ---- */

static void link_one_way(struct process *p, struct process *peer)
{
    size_t i = (size_t)(peer - p->net->processes);

    p->numbers[i] = ++p->net->number_last;
    mu__kernel_node_up(p->kernel, p->numbers[i], role_names[peer->role], peer->index, 1,
                       "tcp://x:1");
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
    net->bytes -= frame->bytes->size;
    mu__buf_unref(frame->bytes);
    free(frame);
}

/* What is under way between them is lost. */
static void link_down(struct process *a, struct process *b)
{
    struct frame **link = &a->net->first;

    while (*link != NULL) {
        bool is_theirs = ((*link)->from == a && (*link)->to == b) ||
                         ((*link)->from == b && (*link)->to == a);

        if (is_theirs)
            drop_frame(a->net, link);
        else
            link = &(*link)->next;
    }
    unlink_one_way(a, b);
    unlink_one_way(b, a);
}

static void start(struct process *p)
{
    const struct mu__effects_config config = {.limit_ms = LIMIT_MS};
    struct net *net = p->net;
    int rv = 0;

    p->wake_ms = UINT64_MAX;
    assert_int_equal(mu__kernel_new(&p->world, &mu__messages, &p->kernel), 0);
    if (p->role == PS)
        rv = mu__spawn(p->kernel, &mu__ps, MU__PS, NULL, NULL);
    if (p->role == WORKER) {
        assert_int_equal(mu__spawn(p->kernel, &probe, MU__WORKER, NULL, NULL), 0);
        assert_int_equal(mu__spawn(p->kernel, &mu__variables, MU__VARIABLES, NULL, NULL),
                         0);
        rv = mu__spawn(p->kernel, &mu__effects_actor, MU__EFFECTS, &config, NULL);
    }
    assert_int_equal(rv, 0);
    for (size_t i = 0; i < PROCESSES; i++)
        if (&net->processes[i] != p && net->processes[i].kernel != NULL)
            link_up(p, &net->processes[i]);
}

static void crash(struct process *p)
{
    struct mu__kernel *kernel = p->kernel;

    p->kernel = NULL;
    for (size_t i = 0; i < PROCESSES; i++)
        if (&p->net->processes[i] != p)
            link_down(p, &p->net->processes[i]);
    p->kernel = kernel;     /* for what is still sent, to nobody */
    mu__kernel_free(kernel);
    p->kernel = NULL;
}

/* ---- Time ---- */

static void turn(struct process *p)
{
    p->wake_ms = UINT64_MAX;
    mu__kernel_turn(p->kernel);
}

static bool turn_one(struct net *net)
{
    for (size_t i = 0; i < PROCESSES; i++) {
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

    if (turn_one(net))
        return true;
    if (frame == NULL)
        return false;
    net->first = frame->next;
    if (net->first == NULL)
        net->last = &net->first;
    net->bytes -= frame->bytes->size;
    take_in(frame);
    mu__buf_unref(frame->bytes);
    free(frame);
    return true;
}

static void settle(struct net *net)
{
    for (int i = 0; step(net); i++)
        assert_true(i < 10000000);
}

static void run_until(struct net *net, uint64_t until_ms)
{
    settle(net);
    while (net->now_ms < until_ms) {
        uint64_t next_ms = until_ms;

        for (size_t i = 0; i < PROCESSES; i++)
            if (net->processes[i].kernel != NULL && net->processes[i].wake_ms < next_ms)
                next_ms = net->processes[i].wake_ms;
        net->now_ms = next_ms;
        settle(net);
    }
}

static void run_for(struct net *net, uint64_t ms)
{
    run_until(net, net->now_ms + ms);
}

/* Until a frame of this kind would be the next to arrive. */
static void run_to_frame(struct net *net, uint16_t kind)
{
    while (turn_one(net))
        ;
    for (int i = 0; net->first == NULL || net->first->kind != kind; i++) {
        assert_true(i < 100000);
        assert_true(step(net));
        while (turn_one(net))
            ;
    }
}

/* ---- The fixture: two servers, two workers, a chief ---- */

struct fixture {
    struct net net;
    struct process *servers[2];
    struct process *workers[2];
    struct process *chief;
};

static int set_up(void **state)
{
    static const enum role roles[PROCESSES] = {PS, PS, WORKER, WORKER, CHIEF};
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    f->net.random = sim_stream(1, 1);
    f->net.last = &f->net.first;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        f->net.processes[i] = (struct process){
            .world = {&world_ops}, .net = &f->net, .role = roles[i], .index = i % 2};
        start(&f->net.processes[i]);
    }
    f->servers[0] = &f->net.processes[0];
    f->servers[1] = &f->net.processes[1];
    f->workers[0] = &f->net.processes[2];
    f->workers[1] = &f->net.processes[3];
    f->chief = &f->net.processes[4];
    settle(&f->net);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < PROCESSES; i++)
        if (f->net.processes[i].kernel != NULL)
            crash(&f->net.processes[i]);
    assert_null(f->net.first);
    free(f);
    return 0;
}

/* As from `from`, to the server. */
static void fence_server(struct process *from, struct process *server, uint64_t origin)
{
    struct mu__msg *msg = mu__msg_heap(MU__FENCE, sizeof(struct mu__fence));
    struct mu__fence *body;

    assert_non_null(msg);
    body = mu__body(msg);
    body->origin = origin;
    body->epoch = 1;
    msg->from = (mu__pid){server->numbers[from - from->net->processes], MU__SUPERVISOR};
    msg->to.actor = MU__PS;
    assert_int_equal(mu__kernel_deliver(server->kernel, msg), 0);
    turn(server);
}

static void fence(struct fixture *f, uint64_t origin)
{
    fence_server(f->chief, f->servers[0], origin);
    fence_server(f->chief, f->servers[1], origin);
}

/* ---- Variables ---- */

struct variable {
    struct mu__variable_call call;
    struct mu__shape shape;
    uint64_t ids[4];
    bool done;
};

static void set_done(struct mu__call *call)
{
    ((struct variable *)call)->done = true;
}

static void call_variable(struct process *p, struct variable *v, int operation)
{
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));
    struct mu__call_msg *body;

    assert_non_null(msg);
    v->done = false;
    v->call.call.complete = set_done;
    v->call.call.operation = operation;
    v->call.call.limit_ms = -1;
    v->call.shape = &v->shape;
    v->call.ids = v->ids;
    body = mu__body(msg);
    body->call = v;
    msg->to.actor = MU__VARIABLES;
    assert_int_equal(mu__kernel_deliver(p->kernel, msg), 0);
    turn(p);
    for (int i = 0; !v->done && i < 100; i++)
        run_for(p->net, 10);
    assert_true(v->done);
    if (v->call.call.code != 0)
        fail_msg("%s", v->call.call.error.message);
}

/* Zeros of 64 bits: "w" has its home on server 0. */
static void open_variable(struct process *p, struct variable *v, uint64_t count,
                          uint32_t shards)
{
    *v = (struct variable){.call = {.name = "w", .servers_count = 2},
                           .shape = {MU_I64, 1, {count}, shards}};
    assert_int_equal(mu__name_hash(mu__view_str("w")) % 2, 0);
    call_variable(p, v, MU__VARIABLE_OPEN);
}

static int64_t *read_variable(struct process *p, struct variable *v)
{
    int64_t *data = malloc((size_t)mu__shape_bytes(&v->shape));

    assert_non_null(data);
    v->call.target = data;
    call_variable(p, v, MU__VARIABLE_READ);
    return data;
}

/* All elements have this content. */
static void assert_all(struct process *p, struct variable *v, int64_t expected)
{
    int64_t *data = read_variable(p, v);

    for (uint64_t i = 0; i < v->shape.dims[0]; i++)
        if (data[i] != expected)
            fail_msg("element %d is %d", (int)i, (int)data[i]);
    free(data);
}

static struct mu__ps_effects effects_of(struct process *server)
{
    struct mu__ps_effects effects;

    mu__ps_effects(mu__actor_state(server->kernel, (mu__pid){0, MU__PS}), &effects);
    return effects;
}

/* ---- Runs ---- */

static struct writes *run_of(uint64_t origin, uint64_t effect)
{
    struct writes *writes = calloc(1, sizeof *writes);

    assert_non_null(writes);
    writes->run.effects.origin = origin;
    writes->run.effects.effect = effect;
    return writes;
}

static void run_free(struct writes *writes)
{
    assert_true(writes->sent);
    mu__effects_clear(&writes->run.effects);
    free(writes->run.failure);
    free(writes);
}

/* A run writes the whole variable, every element alike. */
static void write_all(struct writes *writes, const struct variable *v, uint32_t operation,
                      int64_t content)
{
    for (uint32_t shard = 0; shard < v->shape.shards; shard++) {
        struct mu__effect effect = {.server = shard % 2, .operation = operation,
                                    .variable = v->ids[shard]};
        uint64_t offset;
        int64_t *data;

        mu__shape_shard(&v->shape, shard, &offset, &effect.size);
        data = malloc((size_t)effect.size);
        assert_non_null(data);
        for (uint64_t i = 0; i < effect.size / 8; i++)
            data[i] = content;
        assert_int_equal(mu__effects_add(&writes->run.effects, &effect, data), 0);
        free(data);
    }
}

static void post(struct process *p, struct writes *writes)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECTS_SEND, sizeof(struct mu__effects_send));
    struct mu__effects_send *body;

    assert_non_null(msg);
    body = mu__body(msg);
    body->run = &writes->run;
    msg->from.actor = MU__WORKER;
    msg->to.actor = MU__EFFECTS;
    assert_int_equal(mu__kernel_deliver(p->kernel, msg), 0);
    turn(p);
}

/* A run that adds one to all elements. */
static struct writes *post_add(struct process *p, const struct variable *v,
                               uint64_t origin, uint64_t effect)
{
    struct writes *writes = run_of(origin, effect);

    write_all(writes, v, MU__WRITE_ADD, 1);
    post(p, writes);
    return writes;
}

/* The run has ended so. */
static void assert_ended(struct writes *writes, int code, const char *task,
                         const char *words)
{
    assert_true(writes->sent);
    assert_int_equal(writes->run.code, code);
    if (code == 0) {
        assert_null(writes->run.failure);
    } else {
        assert_non_null(writes->run.failure);
        assert_int_equal(writes->run.failure->code, code);
        assert_int_equal(writes->run.failure->kind, MU_ERROR_SERVER);
        assert_string_equal(writes->run.failure->task, task);
        assert_string_equal(writes->run.failure->message, words);
    }
    run_free(writes);
}

static void assert_fine(struct writes *writes)
{
    if (writes->sent && writes->run.failure != NULL)
        fail_msg("%s", writes->run.failure->message);
    assert_ended(writes, 0, NULL, NULL);
}

/* ---- Ordinary life ---- */

/* A small write is one message, and one that answers. */
static void test_small(void **state)
{
    struct fixture *f = *state;
    struct variable v;
    struct writes *writes;

    open_variable(f->workers[0], &v, 4, 1);
    writes = post_add(f->workers[0], &v, 0, 0);
    assert_false(writes->sent);
    settle(&f->net);
    assert_fine(writes);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITE], 1);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITTEN], 1);
    assert_all(f->workers[1], &v, 1);
    writes = run_of(0, 0);
    post(f->workers[0], writes);
    settle(&f->net);
    assert_fine(writes);
}

/* Plain writes are applied as often as they come. */
static void test_plain_is_repeated(void **state)
{
    struct fixture *f = *state;
    struct variable v;

    open_variable(f->workers[0], &v, 4, 2);
    for (int i = 0; i < 3; i++) {
        struct writes *writes = post_add(f->workers[0], &v, 7, 0);

        settle(&f->net);
        assert_fine(writes);
    }
    assert_all(f->workers[1], &v, 3);
}

static void test_order(void **state)
{
    struct fixture *f = *state;
    struct writes *writes = run_of(0, 0);
    struct variable v;

    open_variable(f->workers[0], &v, 5, 4);
    write_all(writes, &v, MU__WRITE_ADD, 100);
    write_all(writes, &v, MU__WRITE_ASSIGN, 5);
    write_all(writes, &v, MU__WRITE_ADD, 2);
    write_all(writes, &v, MU__WRITE_ADD, 3);
    post(f->workers[0], writes);
    settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[1], &v, 10);
}

/* Several shards of several pieces. What is under way is bounded. */
static void test_large(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct variable v;

    open_variable(f->workers[0], &v, 3 << 20, 4);
    f->net.bytes_peak = 0;
    writes = post_add(f->workers[0], &v, 0, 0);
    settle(&f->net);
    assert_fine(writes);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITE], 24);
    assert_true(f->net.bytes_peak > MU__WINDOW_BYTES);
    assert_true(f->net.bytes_peak < 2 * (MU__WINDOW_BYTES + (1 << 20) + (1 << 16)));
    assert_all(f->workers[1], &v, 1);
}

/* A small run does not wait for the large ones before it. */
static void test_fair(void **state)
{
    struct fixture *f = *state;
    struct writes *large[6];
    struct writes *small = run_of(0, 0);
    struct variable v;

    open_variable(f->workers[0], &v, 2 << 20, 1);
    for (size_t i = 0; i < 6; i++)
        large[i] = post_add(f->workers[0], &v, 0, 0);
    assert_int_equal(mu__effects_add(&small->run.effects,
                                     &(struct mu__effect){.operation = MU__WRITE_ASSIGN,
                                                          .variable = v.ids[0],
                                                          .size = 8},
                                     &(int64_t){0}), 0);
    post(f->workers[0], small);
    run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    for (int i = 0; !small->sent && i < 40; i++)
        assert_true(step(&f->net));
    assert_fine(small);
    assert_false(large[0]->sent);
    settle(&f->net);
    for (size_t i = 0; i < 6; i++)
        assert_fine(large[i]);
    assert_all(f->workers[0], &v, 6);
}

/* A link without room is tried again. */
static void test_full_link(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct variable v;

    open_variable(f->workers[0], &v, 1 << 19, 2);
    f->workers[0]->full = true;
    writes = post_add(f->workers[0], &v, 0, 0);
    run_for(&f->net, 100);
    assert_false(writes->sent);
    f->workers[0]->full = false;
    run_for(&f->net, 10);
    assert_fine(writes);
    assert_all(f->workers[1], &v, 1);
}

/* More than windows and slots hold at first, all at once. */
static void test_many(void **state)
{
    enum { MANY = 40000 };
    struct fixture *f = *state;
    struct writes **writes = calloc(MANY, sizeof(struct writes *));
    struct variable v;

    assert_non_null(writes);
    open_variable(f->workers[0], &v, 1, 1);
    fence(f, 7);
    for (uint64_t i = 0; i < MANY; i++)
        writes[i] = post_add(f->workers[i % 2], &v, 7, i / 2 + 1);
    settle(&f->net);
    for (size_t i = 0; i < MANY; i++)
        assert_fine(writes[i]);
    assert_all(f->workers[0], &v, MANY / 2);
    free(writes);
}

/* ---- Once ---- */

static void test_once(void **state)
{
    struct fixture *f = *state;
    struct writes *a;
    struct writes *b;
    struct variable v;

    open_variable(f->workers[0], &v, 1 << 19, 2);
    fence(f, 7);
    a = post_add(f->workers[0], &v, 7, 1);
    b = post_add(f->workers[1], &v, 7, 1);
    settle(&f->net);
    assert_fine(a);
    assert_fine(b);
    a = post_add(f->workers[1], &v, 7, 1);
    settle(&f->net);
    assert_fine(a);
    assert_all(f->workers[0], &v, 1);
    a = post_add(f->workers[1], &v, 7, 2);
    settle(&f->net);
    assert_fine(a);
    assert_all(f->workers[0], &v, 2);
    assert_int_equal(effects_of(f->servers[0]).origin, 7);
    assert_int_equal(effects_of(f->servers[0]).batches, 2);
    assert_true(effects_of(f->servers[0]).repeated >= 2);
    assert_int_equal(effects_of(f->servers[0]).span, 2);
    assert_int_equal(effects_of(f->servers[0]).staged_bytes, 0);
}

static void test_finished_with(void **state)
{
    struct fixture *f = *state;
    struct writes *writes = run_of(7, 20);
    struct variable v;

    open_variable(f->workers[0], &v, 2, 1);
    fence(f, 7);
    writes->run.effects.effects_done = 10;
    write_all(writes, &v, MU__WRITE_ADD, 1);
    post(f->workers[0], writes);
    settle(&f->net);
    assert_fine(writes);
    writes = post_add(f->workers[1], &v, 7, 9);
    settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
    writes = post_add(f->workers[1], &v, 7, 10);
    settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 2);
}

/* A server that knows no supervisor yet is asked again. */
static void test_no_fence(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct variable v;

    open_variable(f->workers[0], &v, 1 << 19, 2);
    writes = post_add(f->workers[0], &v, 7, 1);
    run_for(&f->net, 220);
    assert_false(writes->sent);
    assert_all(f->workers[0], &v, 0);
    fence(f, 7);
    run_for(&f->net, 50);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
    crash(f->servers[0]);
    start(f->servers[0]);
    writes = post_add(f->workers[0], &v, 7, 2);
    run_for(&f->net, LIMIT_MS);
    assert_ended(writes, -MU_EUNAVAILABLE, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://x:1) knows no supervisor and "
                 "has refused it for 2.0 s");
}

static void test_former_supervisor(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct variable v;

    open_variable(f->workers[0], &v, 2, 1);
    fence(f, 7);
    fence(f, 8);
    writes = post_add(f->workers[0], &v, 7, 1);
    settle(&f->net);
    assert_ended(writes, -MU_EABORTED, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://x:1) refused it: it was "
                 "asked for by a supervisor of a former life");
    assert_all(f->workers[0], &v, 0);
    writes = post_add(f->workers[0], &v, 8, 1);
    settle(&f->net);
    assert_fine(writes);
    fence(f, 8);
    writes = post_add(f->workers[0], &v, 8, 1);
    settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* In the middle of a batch. The run of the one server takes nothing of the other back. */
static void test_fenced_midway(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct writes *plain;
    struct variable v;

    open_variable(f->workers[0], &v, 1 << 20, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    plain = post_add(f->workers[1], &v, 7, 0);
    run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    fence(f, 8);
    settle(&f->net);
    assert_int_equal(writes->run.code, -MU_EABORTED);
    run_free(writes);
    assert_fine(plain);
    assert_all(f->workers[0], &v, 1);
}

/* Only a chief fences, and what it said lasts when it is gone. */
static void test_who_fences(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct variable v;

    open_variable(f->workers[0], &v, 2, 1);
    fence_server(f->workers[1], f->servers[0], 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    run_for(&f->net, 200);
    assert_false(writes->sent);
    fence(f, 7);
    crash(f->chief);
    fence_server(f->chief, f->servers[0], 9);
    fence_server(f->workers[1], f->servers[0], 9);
    run_for(&f->net, 50);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* ---- Servers that are lost ---- */

static void test_lost_answer(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct writes *plain;
    struct variable v;

    open_variable(f->workers[0], &v, 4, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    plain = post_add(f->workers[0], &v, 7, 0);
    run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    link_down(f->workers[0], f->servers[0]);
    run_for(&f->net, 100);
    assert_ended(plain, -MU_EUNAVAILABLE, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://x:1) was lost before it "
                 "answered: the outcome is unknown");
    assert_false(writes->sent);
    link_up(f->workers[0], f->servers[0]);
    settle(&f->net);
    assert_fine(writes);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITE], 3);
}

/* Cut before the last piece: nothing was applied, so plain writes are sent again too. */
static void test_cut_midway(void **state)
{
    for (uint64_t effect = 0; effect < 2; effect++) {
        struct fixture *f = *state;
        struct writes *writes;
        struct variable v;

        open_variable(f->workers[0], &v, 4 << 20, 2);
        fence(f, 7);
        writes = post_add(f->workers[0], &v, 7, effect);
        run_to_frame(&f->net, MU__EFFECT_WRITTEN);
        link_down(f->workers[0], f->servers[0]);
        link_down(f->workers[0], f->servers[1]);
        assert_all(f->workers[1], &v, (int64_t)effect);
        assert_false(writes->sent);
        link_up(f->workers[0], f->servers[0]);
        link_up(f->workers[0], f->servers[1]);
        settle(&f->net);
        assert_fine(writes);
        assert_all(f->workers[0], &v, (int64_t)effect + 1);
    }
}

/* A server that comes back without the variable. */
static void test_restart(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct variable v;

    open_variable(f->workers[0], &v, 2 << 20, 2);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    crash(f->servers[1]);
    run_for(&f->net, 100);
    assert_false(writes->sent);
    start(f->servers[1]);
    run_for(&f->net, 100);
    assert_false(writes->sent);
    fence(f, 7);
    run_for(&f->net, 50);
    assert_ended(writes, -MU_ENOTFOUND, "/job:ps/task:1",
                 "what the run wrote: /job:ps/task:1 (tcp://x:1) refused it: the server "
                 "was restarted, or the variable created anew: it does not have it");
}

static void test_missing(void **state)
{
    struct fixture *f = *state;
    struct writes *writes = run_of(7, 1);
    struct variable v;

    open_variable(f->workers[0], &v, 4, 2);
    fence(f, 7);
    crash(f->servers[1]);
    run_for(&f->net, 500);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    post(f->workers[0], writes);
    run_for(&f->net, LIMIT_MS - 1);
    assert_false(writes->sent);
    run_for(&f->net, 1);
    assert_ended(writes, -MU_EUNAVAILABLE, "/job:ps/task:1",
                 "what the run wrote: /job:ps/task:1 (tcp://x:1) not reached for 2.5 s "
                 "(connection lost)");
    writes = run_of(7, 2);
    assert_int_equal(mu__effects_add(&writes->run.effects,
                                     &(struct mu__effect){.server = 5, .size = 1}, "x"),
                     0);
    post(f->workers[0], writes);
    run_for(&f->net, LIMIT_MS);
    assert_ended(writes, -MU_EUNAVAILABLE, "/job:ps/task:5",
                 "what the run wrote: /job:ps/task:5 not reached for 2.0 s");
}

/* One server refuses what it gets while the other has a part of what it is to get. */
static void test_abandoned(void **state)
{
    struct fixture *f = *state;
    struct writes *writes = run_of(7, 1);
    struct writes *next;
    struct variable v;

    open_variable(f->workers[0], &v, 1 << 20, 1);
    fence(f, 7);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    assert_int_equal(mu__effects_add(&writes->run.effects,
                                     &(struct mu__effect){.server = 1, .size = 1}, "x"),
                     0);
    post(f->workers[0], writes);
    next = post_add(f->workers[0], &v, 7, 2);
    settle(&f->net);
    assert_int_equal(writes->run.code, -MU_ENOTFOUND);
    run_free(writes);
    assert_fine(next);
    assert_all(f->workers[0], &v, 1);
    assert_int_equal(effects_of(f->servers[0]).staged_batches, 0);
    assert_int_equal(effects_of(f->servers[0]).staged_bytes, 0);
}

/* A run that failed leaves nothing behind on the servers that had not all of it, and
 * holds up nobody. */
static void test_orphans(void **state)
{
    struct fixture *f = *state;
    struct writes *writes = run_of(7, 1);
    struct writes *next;
    struct variable v;

    open_variable(f->workers[0], &v, 4 << 20, 2);
    fence(f, 7);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    writes->run.effects.last->variable++;
    post(f->workers[0], writes);
    next = post_add(f->workers[0], &v, 7, 2);
    settle(&f->net);
    assert_ended(writes, -MU_ENOTFOUND, "/job:ps/task:1",
                 "what the run wrote: /job:ps/task:1 (tcp://x:1) refused it: the server "
                 "was restarted, or the variable created anew: it does not have it");
    assert_fine(next);
    assert_int_equal(effects_of(f->servers[0]).staged_batches, 0);
    assert_int_equal(effects_of(f->servers[1]).staged_batches, 0);
    writes = run_of(7, 3);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    post(f->workers[0], writes);
    run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    crash(f->servers[1]);
    run_for(&f->net, LIMIT_MS);
    assert_int_equal(writes->run.code, -MU_EUNAVAILABLE);
    run_free(writes);
}

/* ---- Refusals ---- */

/* Of a batch with one bad write nothing is applied, and its number is free. */
static const struct bad {
    uint32_t operation;
    uint64_t size;
    uint64_t variable;      /* added to the id */
    int code;
} bads[] = {
    {0, 8, 0, -MU_EINVALID},
    {MU__WRITE_ZERO, 8, 0, -MU_EINVALID},
    {MU__WRITE_COMMIT, 8, 0, -MU_EINVALID},
    {99, 8, 0, -MU_EINVALID},
    {MU__WRITE_ADD, 7, 0, -MU_EINVALID},
    {MU__WRITE_ADD, 40, 0, -MU_ERANGE},
    {MU__WRITE_SGD, 8, 0, -MU_EINVALID},
    {MU__WRITE_MOMENTUM, 8, 0, -MU_EINVALID},
    {MU__WRITE_ADD, 8, 1, -MU_ENOTFOUND},
};

static void test_bad_writes(void **state)
{
    struct fixture *f = *state;
    const int64_t data[5] = {1, 1, 1, 1, 1};
    struct writes *writes;
    struct variable v;

    open_variable(f->workers[0], &v, 4, 1);
    fence(f, 7);
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        const struct mu__effect bad = {.operation = bads[i].operation,
                                       .variable = v.ids[0] + bads[i].variable,
                                       .size = bads[i].size};

        writes = run_of(7, 1);
        write_all(writes, &v, MU__WRITE_ADD, 1);
        assert_int_equal(mu__effects_add(&writes->run.effects, &bad, data), 0);
        write_all(writes, &v, MU__WRITE_ADD, 1);
        post(f->workers[0], writes);
        settle(&f->net);
        if (writes->run.code != bads[i].code)
            fail_msg("row %zu: %d", i, writes->run.code);
        run_free(writes);
        assert_all(f->workers[0], &v, 0);
    }
    writes = post_add(f->workers[0], &v, 7, 1);
    settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* What was refused takes no room of what follows. */
static void test_refused_leave_room(void **state)
{
    struct fixture *f = *state;
    struct writes *writes[12];
    struct variable v;

    open_variable(f->workers[0], &v, MU__PIECE_BYTES_MAX / 8, 1);
    v.ids[0]++;
    for (size_t i = 0; i < 12; i++)
        writes[i] = post_add(f->workers[0], &v, 0, 0);
    settle(&f->net);
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(writes[i]->run.code, -MU_ENOTFOUND);
        run_free(writes[i]);
    }
}

/* Far ahead of what is finished with. */
static void test_too_far(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct variable v;

    open_variable(f->workers[0], &v, 4, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, UINT64_C(1) << 40);
    run_for(&f->net, LIMIT_MS);
    assert_ended(writes, -MU_EEXHAUSTED, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://x:1) has no room and has "
                 "refused it for 2.0 s");
    assert_all(f->workers[0], &v, 0);
}

static void deliver_write(struct process *from, struct process *server,
                          const struct mu__effect_write *write)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECT_WRITE, sizeof *write);

    assert_non_null(msg);
    *(struct mu__effect_write *)mu__body(msg) = *write;
    msg->from = (mu__pid){server->numbers[from - from->net->processes], MU__EFFECTS};
    msg->to.actor = MU__PS;
    assert_int_equal(mu__kernel_deliver(server->kernel, msg), 0);
    turn(server);
}

/* Beginnings of two batches: one of supervisor 7, and a plain one. */
static void stage_some(struct fixture *f, const struct variable *v)
{
    static const uint8_t data[8];
    struct mu__effect_write write = {.token = 1, .variable = v->ids[0], .batch = 5,
                                     .operation = MU__WRITE_ADD, .data = {data, 8}};

    deliver_write(f->workers[1], f->servers[1], &write);
    write.batch = 6;
    write.effect = 1000;
    write.origin = 7;
    deliver_write(f->workers[1], f->servers[1], &write);
    assert_int_equal(effects_of(f->servers[1]).staged_batches, 2);
}

/* Whatever a peer says: the server lives, answers, and lets nobody else's batch go. */
static void test_any_fields(void **state)
{
    static const uint8_t data[64];
    struct fixture *f = *state;
    struct sim_random random = sim_stream(5, 5);
    struct writes *writes;
    struct variable v;

    open_variable(f->workers[0], &v, 4, 1);
    fence(f, 7);
    for (int i = 0; i < 50000; i++) {
        const struct mu__effect_write write = {
            .token = sim_draw(&random),
            .batch = sim_between(&random, 0, 3),
            .variable = sim_chance(&random, 80) ? v.ids[0] : sim_draw(&random),
            .operation = (uint32_t)sim_between(&random, 0, 9),
            .offset = sim_chance(&random, 90) ? sim_between(&random, 0, 40)
                                              : sim_draw(&random),
            .data = {data, (uint32_t)sim_between(&random, 0, 48)},
            .last = sim_chance(&random, 30),
            .origin = sim_between(&random, 6, 7),
            .effect = sim_chance(&random, 90) ? sim_between(&random, 0, 5)
                                              : sim_draw(&random),
            .effects_done = sim_chance(&random, 90) ? 0 : sim_draw(&random),
            .before = (uint32_t)sim_between(&random, 0, 4),
        };

        deliver_write(f->workers[1], f->servers[0], &write);
    }
    settle(&f->net);
    assert_all(f->workers[0], &v, 0);
    stage_some(f, &v);
    fence(f, 8);
    assert_int_equal(effects_of(f->servers[1]).staged_batches, 1);
    link_down(f->workers[1], f->servers[0]);
    link_down(f->workers[1], f->servers[1]);
    settle(&f->net);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(effects_of(f->servers[i]).staged_batches, 0);
        assert_int_equal(effects_of(f->servers[i]).staged_bytes, 0);
    }
    writes = post_add(f->workers[0], &v, 8, 1);
    settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* One node cannot fill a server with pieces. */
static void test_staged_bound(void **state)
{
    struct fixture *f = *state;
    uint8_t *data = calloc(1, MU__PIECE_BYTES_MAX);
    struct mu__effect_write write = {
        .token = 1, .operation = MU__WRITE_ADD,
        .data = {data, MU__PIECE_BYTES_MAX}};
    struct writes *writes;
    struct variable v;

    assert_non_null(data);
    open_variable(f->workers[0], &v, 1 << 19, 1);
    write.variable = v.ids[0];
    for (write.batch = 1; write.batch <= 4; write.batch++)
        for (write.before = 0; write.before < 65; write.before++)
            deliver_write(f->workers[1], f->servers[0], &write);
    while (f->net.first != NULL)
        drop_frame(&f->net, &f->net.first);
    writes = post_add(f->workers[0], &v, 0, 0);
    settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
    free(data);
}

/* ---- Answers that nobody asked for ---- */

static void deliver_answer(struct process *server, struct process *worker,
                           const struct mu__effect_written *answer)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECT_WRITTEN, sizeof *answer);

    assert_non_null(msg);
    *(struct mu__effect_written *)mu__body(msg) = *answer;
    msg->from = (mu__pid){worker->numbers[server - server->net->processes], MU__PS};
    msg->to.actor = MU__EFFECTS;
    assert_int_equal(mu__kernel_deliver(worker->kernel, msg), 0);
    turn(worker);
}

static void test_any_answers(void **state)
{
    struct fixture *f = *state;
    struct sim_random random = sim_stream(6, 6);
    struct writes *writes;
    struct variable v;

    open_variable(f->workers[0], &v, 1 << 20, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    for (uint64_t i = 0; i < 20000; i++) {
        const struct mu__effect_written answer = {
            .token = i < 100 ? i : sim_draw(&random) >> sim_between(&random, 0, 63),
            .code = (uint32_t)sim_between(&random, 0, 3),
            .again = sim_chance(&random, 50),
            .staged = sim_chance(&random, 50) ? sim_draw(&random) : 0,
        };

        if (answer.token != UINT64_C(1) << 24)
            deliver_answer(f->servers[0], f->workers[0], &answer);
        deliver_answer(f->servers[1], f->workers[0], &answer);
    }
    assert_false(writes->sent);
    deliver_answer(f->servers[0], f->workers[0],
                   &(struct mu__effect_written){.token = UINT64_C(1) << 24,
                                                .staged = UINT64_MAX});
    settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* ---- Chaos: cuts at any time, each effect by two workers ---- */

enum { EFFECTS = 60 };

static void disturb(struct fixture *f)
{
    struct process *worker = f->workers[sim_between(&f->net.random, 0, 1)];
    struct process *server = f->servers[sim_between(&f->net.random, 0, 1)];

    link_down(worker, server);
    if (sim_chance(&f->net.random, 50))
        run_for(&f->net, sim_between(&f->net.random, 0, 3));
    link_up(worker, server);
}

static void check_chaos(struct fixture *f, uint64_t count)
{
    struct writes *writes[2 * EFFECTS];
    struct variable v;

    open_variable(f->workers[0], &v, count, 4);
    fence(f, 7);
    for (uint64_t i = 0; i < 2 * EFFECTS; i++) {
        writes[i] = post_add(f->workers[i % 2], &v, 7, i / 2 + 1);
        for (uint64_t n = sim_between(&f->net.random, 0, 8); n > 0; n--)
            (void)step(&f->net);
        if (sim_chance(&f->net.random, 60))
            disturb(f);
    }
    settle(&f->net);
    for (size_t i = 0; i < 2 * EFFECTS; i++)
        assert_fine(writes[i]);
    assert_all(f->workers[0], &v, EFFECTS);
}

static void test_chaos(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        void *f;

        assert_int_equal(set_up(&f), 0);
        ((struct fixture *)f)->net.random = sim_stream(seed, 2);
        check_chaos(f, seed % 4 == 0 ? 1 << 18 : 7);
        assert_int_equal(tear_down(&f), 0);
    }
}

/* ---- A run's writes ---- */

static void test_bound_of_run(void **state)
{
    struct mu__effects effects = {.first = NULL};
    char *data = calloc(1, MU__EFFECTS_BYTES_MAX);
    struct mu__effect *last;
    uint64_t bytes;

    (void)state;
    assert_non_null(data);
    assert_int_equal(mu__effects_add(&effects,
                                     &(struct mu__effect){
                                         .size = MU__EFFECTS_BYTES_MAX - 64}, data), 0);
    last = effects.last;
    bytes = effects.bytes;
    assert_int_equal(mu__effects_add(&effects, &(struct mu__effect){.size = 65}, data),
                     -MU_EEXHAUSTED);
    assert_int_equal(mu__effects_add(&effects, &(struct mu__effect){.size = 1}, data), 0);
    assert_int_equal(mu__effects_add(&effects, &(struct mu__effect){.size = 1}, data),
                     -MU_EEXHAUSTED);
    mu__effects_cut(&effects, last, bytes);
    assert_ptr_equal(effects.last, last);
    assert_int_equal(mu__effects_add(&effects, &(struct mu__effect){.size = 64}, data),
                     0);
    mu__effects_clear(&effects);
    assert_null(effects.first);
    assert_int_equal(mu__effects_add(&effects,
                                     &(struct mu__effect){.size = MU__EFFECTS_BYTES_MAX},
                                     data), 0);
    mu__effects_clear(&effects);
    free(data);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_small),
        WITH_FIXTURE(test_plain_is_repeated),
        WITH_FIXTURE(test_order),
        WITH_FIXTURE(test_large),
        WITH_FIXTURE(test_fair),
        WITH_FIXTURE(test_full_link),
        WITH_FIXTURE(test_many),
        WITH_FIXTURE(test_once),
        WITH_FIXTURE(test_finished_with),
        WITH_FIXTURE(test_no_fence),
        WITH_FIXTURE(test_former_supervisor),
        WITH_FIXTURE(test_fenced_midway),
        WITH_FIXTURE(test_who_fences),
        WITH_FIXTURE(test_lost_answer),
        WITH_FIXTURE(test_cut_midway),
        WITH_FIXTURE(test_restart),
        WITH_FIXTURE(test_missing),
        WITH_FIXTURE(test_abandoned),
        WITH_FIXTURE(test_orphans),
        WITH_FIXTURE(test_bad_writes),
        WITH_FIXTURE(test_refused_leave_room),
        WITH_FIXTURE(test_too_far),
        WITH_FIXTURE(test_any_fields),
        WITH_FIXTURE(test_staged_bound),
        WITH_FIXTURE(test_any_answers),
        cmocka_unit_test(test_chaos),
        cmocka_unit_test(test_bound_of_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
