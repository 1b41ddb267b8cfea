/* What runs write to the servers, applied once: the actors of workers and parameter
 * servers as they are, on several kernels. */
#include "actors/effects/effects.h"

#include "actors/worker/run.h"
#include "tests/support/var_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- A run whose writes are sent ---- */

struct writes {
    struct mu_run run;      /* first: the actors know it by that */
    bool sent;
};

/* The worker of these tests: it waits for EFFECTS_SENT, once for each run. */
static void on_sent(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__effects_sent *body = mu__body(msg);
    struct writes *writes = (struct writes *)body->run;

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

/* ---- The fixture: two servers, two workers, a chief ---- */

enum { TIMEOUT_MS = 2000 };

struct fixture {
    struct net net;
    struct net_process *servers[2];
    struct net_process *workers[2];
    struct net_process *chief;
};

static int spawn_worker(struct net_process *p)
{
    const struct mu__effects_config config = {.timeout_ms = TIMEOUT_MS};
    int rv = mu__spawn(p->kernel, &probe, MU__WORKER, NULL, NULL);

    if (rv == 0)
        rv = var_spawn_program(p);
    if (rv == 0)
        rv = mu__spawn(p->kernel, &mu__effects_actor, MU__EFFECTS, &config, NULL);
    return rv;
}

static int spawn_nothing(struct net_process *p)
{
    (void)p;
    return 0;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    net_init(&f->net, 1);
    for (uint32_t i = 0; i < 2; i++)
        f->servers[i] = net_add(&f->net, "ps", i, var_spawn_server);
    for (uint32_t i = 0; i < 2; i++)
        f->workers[i] = net_add(&f->net, "worker", i, spawn_worker);
    f->chief = net_add(&f->net, "chief", 0, spawn_nothing);
    for (size_t i = 0; i < f->net.processes_count; i++)
        net_start(&f->net.processes[i]);
    net_settle(&f->net);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    net_done(&f->net);
    free(f);
    return 0;
}

/* As from `from`, to the server. */
static void fence_server(struct net_process *from, struct net_process *server,
                         uint64_t origin)
{
    struct mu__msg *msg = mu__msg_heap(MU__FENCE, sizeof(struct mu__fence));
    struct mu__fence *body;

    assert_non_null(msg);
    body = mu__body(msg);
    body->origin = origin;
    body->epoch = 1;
    msg->from = (mu__pid){server->numbers[from - from->net->processes], MU__SUPERVISOR};
    msg->to.actor = MU__PS;
    net_deliver(server, msg);
}

static void fence(struct fixture *f, uint64_t origin)
{
    fence_server(f->chief, f->servers[0], origin);
    fence_server(f->chief, f->servers[1], origin);
}

/* ---- Variables ---- */

/* Zeros of 64 bits: "w" has its home on server 0. */
static void open_variable(struct net_process *p, struct var_request *v, uint64_t count,
                          uint32_t shards)
{
    *v = (struct var_request){.call = {.name = "w", .servers_count = 2},
                              .shape = {MU_I64, 1, {count}, shards}};
    var_aim(v);
    assert_int_equal(mu__name_hash(mu__view_str("w")) % 2, 0);
    var_ask_ok(p, v, MU__VARIABLE_OPEN);
}

static int64_t *read_variable(struct net_process *p, struct var_request *v)
{
    int64_t *data = malloc((size_t)mu__shape_bytes(&v->shape));

    assert_non_null(data);
    v->call.target = data;
    var_ask_ok(p, v, MU__VARIABLE_READ);
    return data;
}

/* All elements have this content. */
static void assert_all(struct net_process *p, struct var_request *v, int64_t expected)
{
    int64_t *data = read_variable(p, v);

    for (uint64_t i = 0; i < v->shape.dims[0]; i++)
        if (data[i] != expected)
            fail_msg("element %d is %d", (int)i, (int)data[i]);
    free(data);
}

static struct mu__ps_effects effects_of(struct net_process *server)
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
static void write_all(struct writes *writes, const struct var_request *v,
                      uint32_t operation, int64_t content)
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

static void post(struct net_process *p, struct writes *writes)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECTS_SEND, sizeof(struct mu__effects_send));
    struct mu__effects_send *body;

    assert_non_null(msg);
    body = mu__body(msg);
    body->run = &writes->run;
    msg->from.actor = MU__WORKER;
    msg->to.actor = MU__EFFECTS;
    net_deliver(p, msg);
}

/* A run that adds one to all elements. */
static struct writes *post_add(struct net_process *p, const struct var_request *v,
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
    struct var_request v;
    struct writes *writes;

    open_variable(f->workers[0], &v, 4, 1);
    writes = post_add(f->workers[0], &v, 0, 0);
    assert_false(writes->sent);
    net_settle(&f->net);
    assert_fine(writes);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITE], 1);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITTEN], 1);
    assert_all(f->workers[1], &v, 1);
    writes = run_of(0, 0);
    post(f->workers[0], writes);
    net_settle(&f->net);
    assert_fine(writes);
}

/* Plain writes are applied as often as they come. */
static void test_plain_is_repeated(void **state)
{
    struct fixture *f = *state;
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 2);
    for (int i = 0; i < 3; i++) {
        struct writes *writes = post_add(f->workers[0], &v, 7, 0);

        net_settle(&f->net);
        assert_fine(writes);
    }
    assert_all(f->workers[1], &v, 3);
}

static void test_order(void **state)
{
    struct fixture *f = *state;
    struct writes *writes = run_of(0, 0);
    struct var_request v;

    open_variable(f->workers[0], &v, 5, 4);
    write_all(writes, &v, MU__WRITE_ADD, 100);
    write_all(writes, &v, MU__WRITE_ASSIGN, 5);
    write_all(writes, &v, MU__WRITE_ADD, 2);
    write_all(writes, &v, MU__WRITE_ADD, 3);
    post(f->workers[0], writes);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[1], &v, 10);
}

/* Several shards of several pieces. What is under way is bounded. */
static void test_large(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 3 << 20, 4);
    f->net.bytes_peak = 0;
    writes = post_add(f->workers[0], &v, 0, 0);
    net_settle(&f->net);
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
    struct var_request v;

    open_variable(f->workers[0], &v, 2 << 20, 1);
    for (size_t i = 0; i < 6; i++)
        large[i] = post_add(f->workers[0], &v, 0, 0);
    assert_int_equal(mu__effects_add(&small->run.effects,
                                     &(struct mu__effect){.operation = MU__WRITE_ASSIGN,
                                                          .variable = v.ids[0],
                                                          .size = 8},
                                     &(int64_t){0}), 0);
    post(f->workers[0], small);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    for (int i = 0; !small->sent && i < 40; i++)
        assert_true(net_step(&f->net));
    assert_fine(small);
    assert_false(large[0]->sent);
    net_settle(&f->net);
    for (size_t i = 0; i < 6; i++)
        assert_fine(large[i]);
    assert_all(f->workers[0], &v, 6);
}

/* A link without room is tried again. */
static void test_full_link(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 19, 2);
    f->servers[0]->full = f->servers[1]->full = true;
    writes = post_add(f->workers[0], &v, 0, 0);
    net_run_for(&f->net, 100);
    assert_false(writes->sent);
    f->servers[0]->full = f->servers[1]->full = false;
    net_run_for(&f->net, 10);
    assert_fine(writes);
    assert_all(f->workers[1], &v, 1);
}

/* More than windows and slots hold at first, all at once. */
static void test_many(void **state)
{
    enum { MANY = 40000 };
    struct fixture *f = *state;
    struct writes **writes = calloc(MANY, sizeof(struct writes *));
    struct var_request v;

    assert_non_null(writes);
    open_variable(f->workers[0], &v, 1, 1);
    fence(f, 7);
    for (uint64_t i = 0; i < MANY; i++)
        writes[i] = post_add(f->workers[i % 2], &v, 7, i / 2 + 1);
    net_settle(&f->net);
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
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 19, 2);
    fence(f, 7);
    a = post_add(f->workers[0], &v, 7, 1);
    b = post_add(f->workers[1], &v, 7, 1);
    net_settle(&f->net);
    assert_fine(a);
    assert_fine(b);
    a = post_add(f->workers[1], &v, 7, 1);
    net_settle(&f->net);
    assert_fine(a);
    assert_all(f->workers[0], &v, 1);
    a = post_add(f->workers[1], &v, 7, 2);
    net_settle(&f->net);
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
    struct var_request v;

    open_variable(f->workers[0], &v, 2, 1);
    fence(f, 7);
    writes->run.effects.effects_done = 10;
    write_all(writes, &v, MU__WRITE_ADD, 1);
    post(f->workers[0], writes);
    net_settle(&f->net);
    assert_fine(writes);
    writes = post_add(f->workers[1], &v, 7, 9);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
    writes = post_add(f->workers[1], &v, 7, 10);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 2);
}

/* A server that knows no supervisor yet is asked again. */
static void test_no_fence(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 19, 2);
    writes = post_add(f->workers[0], &v, 7, 1);
    net_run_for(&f->net, 220);
    assert_false(writes->sent);
    assert_all(f->workers[0], &v, 0);
    fence(f, 7);
    net_run_for(&f->net, 50);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
    net_crash(f->servers[0]);
    net_start(f->servers[0]);
    writes = post_add(f->workers[0], &v, 7, 2);
    net_run_for(&f->net, TIMEOUT_MS);
    assert_ended(writes, -MU_EUNAVAILABLE, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://ps0:1) knows no supervisor "
                 "and has refused it for 2.0 s");
}

static void test_former_supervisor(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 2, 1);
    fence(f, 7);
    fence(f, 8);
    writes = post_add(f->workers[0], &v, 7, 1);
    net_settle(&f->net);
    assert_ended(writes, -MU_EABORTED, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://ps0:1) refused it: it was "
                 "asked for by a supervisor of a former life");
    assert_all(f->workers[0], &v, 0);
    writes = post_add(f->workers[0], &v, 8, 1);
    net_settle(&f->net);
    assert_fine(writes);
    fence(f, 8);
    writes = post_add(f->workers[0], &v, 8, 1);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* In the middle of a batch. The run of the one server takes nothing of the other back. */
static void test_fenced_midway(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct writes *plain;
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 20, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    plain = post_add(f->workers[1], &v, 7, 0);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    fence(f, 8);
    net_settle(&f->net);
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
    struct var_request v;

    open_variable(f->workers[0], &v, 2, 1);
    fence_server(f->workers[1], f->servers[0], 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    net_run_for(&f->net, 200);
    assert_false(writes->sent);
    fence(f, 7);
    net_crash(f->chief);
    fence_server(f->chief, f->servers[0], 9);
    fence_server(f->workers[1], f->servers[0], 9);
    net_run_for(&f->net, 50);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* ---- Servers that are lost ---- */

static void test_lost_answer(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct writes *plain;
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    plain = post_add(f->workers[0], &v, 7, 0);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    net_link_down(f->workers[0], f->servers[0]);
    net_run_for(&f->net, 100);
    assert_ended(plain, -MU_EUNAVAILABLE, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://ps0:1) was lost before it "
                 "answered: the outcome is unknown");
    assert_false(writes->sent);
    net_link_up(f->workers[0], f->servers[0]);
    net_settle(&f->net);
    assert_fine(writes);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITE], 3);
}

/* Cut before the last piece: nothing was applied, so plain writes are sent again too. */
static void test_cut_midway(void **state)
{
    for (uint64_t effect = 0; effect < 2; effect++) {
        struct fixture *f = *state;
        struct writes *writes;
        struct var_request v;

        open_variable(f->workers[0], &v, 4 << 20, 2);
        fence(f, 7);
        writes = post_add(f->workers[0], &v, 7, effect);
        net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
        net_link_down(f->workers[0], f->servers[0]);
        net_link_down(f->workers[0], f->servers[1]);
        assert_all(f->workers[1], &v, (int64_t)effect);
        assert_false(writes->sent);
        net_link_up(f->workers[0], f->servers[0]);
        net_link_up(f->workers[0], f->servers[1]);
        net_settle(&f->net);
        assert_fine(writes);
        assert_all(f->workers[0], &v, (int64_t)effect + 1);
    }
}

/* A server that comes back without the variable. */
static void test_restart(void **state)
{
    struct fixture *f = *state;
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 2 << 20, 2);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    net_crash(f->servers[1]);
    net_run_for(&f->net, 100);
    assert_false(writes->sent);
    net_start(f->servers[1]);
    net_run_for(&f->net, 100);
    assert_false(writes->sent);
    fence(f, 7);
    net_run_for(&f->net, 50);
    assert_ended(writes, -MU_ENOTFOUND, "/job:ps/task:1",
                 "what the run wrote: /job:ps/task:1 (tcp://ps1:1) refused it: the "
                 "server was restarted, or the variable created anew: it does not have "
                 "it");
}

static void test_missing(void **state)
{
    struct fixture *f = *state;
    struct writes *writes = run_of(7, 1);
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 2);
    fence(f, 7);
    net_crash(f->servers[1]);
    net_run_for(&f->net, 500);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    post(f->workers[0], writes);
    net_run_for(&f->net, TIMEOUT_MS - 1);
    assert_false(writes->sent);
    net_run_for(&f->net, 1);
    assert_ended(writes, -MU_EUNAVAILABLE, "/job:ps/task:1",
                 "what the run wrote: /job:ps/task:1 (tcp://ps1:1) not reached for 2.5 s "
                 "(connection lost)");
    writes = run_of(7, 2);
    assert_int_equal(mu__effects_add(&writes->run.effects,
                                     &(struct mu__effect){.server = 5, .size = 1}, "x"),
                     0);
    post(f->workers[0], writes);
    net_run_for(&f->net, TIMEOUT_MS);
    assert_ended(writes, -MU_EUNAVAILABLE, "/job:ps/task:5",
                 "what the run wrote: /job:ps/task:5 not reached for 2.0 s");
}

/* One server refuses what it gets while the other has a part of what it is to get. */
static void test_abandoned(void **state)
{
    struct fixture *f = *state;
    struct writes *writes = run_of(7, 1);
    struct writes *next;
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 20, 1);
    fence(f, 7);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    assert_int_equal(mu__effects_add(&writes->run.effects,
                                     &(struct mu__effect){.server = 1, .size = 1}, "x"),
                     0);
    post(f->workers[0], writes);
    next = post_add(f->workers[0], &v, 7, 2);
    net_settle(&f->net);
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
    struct var_request v;

    open_variable(f->workers[0], &v, 4 << 20, 2);
    fence(f, 7);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    writes->run.effects.last->variable++;
    post(f->workers[0], writes);
    next = post_add(f->workers[0], &v, 7, 2);
    net_settle(&f->net);
    assert_ended(writes, -MU_ENOTFOUND, "/job:ps/task:1",
                 "what the run wrote: /job:ps/task:1 (tcp://ps1:1) refused it: the "
                 "server was restarted, or the variable created anew: it does not have "
                 "it");
    assert_fine(next);
    assert_int_equal(effects_of(f->servers[0]).staged_batches, 0);
    assert_int_equal(effects_of(f->servers[1]).staged_batches, 0);
    writes = run_of(7, 3);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    post(f->workers[0], writes);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    net_crash(f->servers[1]);
    net_run_for(&f->net, TIMEOUT_MS);
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
    struct var_request v;

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
        net_settle(&f->net);
        if (writes->run.code != bads[i].code)
            fail_msg("row %zu: %d", i, writes->run.code);
        run_free(writes);
        assert_all(f->workers[0], &v, 0);
    }
    writes = post_add(f->workers[0], &v, 7, 1);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* What was refused takes no room of what follows. */
static void test_refused_leave_room(void **state)
{
    struct fixture *f = *state;
    struct writes *writes[12];
    struct var_request v;

    open_variable(f->workers[0], &v, MU__PIECE_BYTES_MAX / 8, 1);
    v.ids[0]++;
    for (size_t i = 0; i < 12; i++)
        writes[i] = post_add(f->workers[0], &v, 0, 0);
    net_settle(&f->net);
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
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, UINT64_C(1) << 40);
    net_run_for(&f->net, TIMEOUT_MS);
    assert_ended(writes, -MU_EEXHAUSTED, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://ps0:1) has no room and has "
                 "refused it for 2.0 s");
    assert_all(f->workers[0], &v, 0);
}

static void deliver_write(struct net_process *from, struct net_process *server,
                          const struct mu__effect_write *write)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECT_WRITE, sizeof *write);

    assert_non_null(msg);
    *(struct mu__effect_write *)mu__body(msg) = *write;
    msg->from = (mu__pid){server->numbers[from - from->net->processes], MU__EFFECTS};
    msg->to.actor = MU__PS;
    net_deliver(server, msg);
}

/* Beginnings of two batches: one of supervisor 7, and a plain one. */
static void stage_some(struct fixture *f, const struct var_request *v)
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
    struct var_request v;

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
    net_settle(&f->net);
    assert_all(f->workers[0], &v, 0);
    stage_some(f, &v);
    fence(f, 8);
    assert_int_equal(effects_of(f->servers[1]).staged_batches, 1);
    net_link_down(f->workers[1], f->servers[0]);
    net_link_down(f->workers[1], f->servers[1]);
    net_settle(&f->net);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(effects_of(f->servers[i]).staged_batches, 0);
        assert_int_equal(effects_of(f->servers[i]).staged_bytes, 0);
    }
    writes = post_add(f->workers[0], &v, 8, 1);
    net_settle(&f->net);
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
    struct var_request v;

    assert_non_null(data);
    open_variable(f->workers[0], &v, 1 << 19, 1);
    write.variable = v.ids[0];
    for (write.batch = 1; write.batch <= 4; write.batch++)
        for (write.before = 0; write.before < 65; write.before++)
            deliver_write(f->workers[1], f->servers[0], &write);
    net_drop_all(&f->net);
    writes = post_add(f->workers[0], &v, 0, 0);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
    free(data);
}

/* ---- Answers that nobody asked for ---- */

static void deliver_answer(struct net_process *server, struct net_process *worker,
                           const struct mu__effect_written *answer)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECT_WRITTEN, sizeof *answer);

    assert_non_null(msg);
    *(struct mu__effect_written *)mu__body(msg) = *answer;
    msg->from = (mu__pid){worker->numbers[server - server->net->processes], MU__PS};
    msg->to.actor = MU__EFFECTS;
    net_deliver(worker, msg);
}

static void test_any_answers(void **state)
{
    struct fixture *f = *state;
    struct sim_random random = sim_stream(6, 6);
    struct writes *writes;
    struct var_request v;

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
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* ---- Chaos: cuts at any time, each effect by two workers ---- */

enum { EFFECTS = 60 };

static void disturb(struct fixture *f)
{
    struct net_process *worker = f->workers[sim_between(&f->net.random, 0, 1)];
    struct net_process *server = f->servers[sim_between(&f->net.random, 0, 1)];

    net_link_down(worker, server);
    if (sim_chance(&f->net.random, 50))
        net_run_for(&f->net, sim_between(&f->net.random, 0, 3));
    net_link_up(worker, server);
}

static void check_chaos(struct fixture *f, uint64_t count)
{
    struct writes *writes[2 * EFFECTS];
    struct var_request v;

    open_variable(f->workers[0], &v, count, 4);
    fence(f, 7);
    for (uint64_t i = 0; i < 2 * EFFECTS; i++) {
        writes[i] = post_add(f->workers[i % 2], &v, 7, i / 2 + 1);
        for (uint64_t n = sim_between(&f->net.random, 0, 8); n > 0; n--)
            (void)net_step(&f->net);
        if (sim_chance(&f->net.random, 60))
            disturb(f);
    }
    net_settle(&f->net);
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
