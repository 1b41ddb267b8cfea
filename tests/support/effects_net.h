/* Runs whose writes are sent to two servers over the simulated network. */
#ifndef MU_TESTS_EFFECTS_NET_H
#define MU_TESTS_EFFECTS_NET_H

#include "actors/variables/effects.h"

#include "actors/worker/function_run.h"
#include "tests/support/test.h"
#include "tests/support/var_net.h"
#include "tests/support/writes_probe.h"

enum { TIMEOUT_MS = 2000 };

struct fixture {
    struct net net;
    struct net_process *servers[2];
    struct net_process *workers[2];
    struct net_process *chief;
};

static inline int spawn_worker(struct net_process *p)
{
    static const char *const unknown[2];
    const struct mu__variables_options options = {
        .addresses_count = 2, .addresses = unknown, .effect_wait_ms = TIMEOUT_MS};
    int rv = mu__spawn(p->kernel, &probe, MU__WORKER, NULL, NULL);

    if (rv == 0)
        rv = mu__spawn(p->kernel, &mu__variables, MU__VARIABLES, &options, NULL);
    return rv;
}

static inline int set_up_with(void **state, bool backups)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    net_init(&f->net, 1);
    for (uint32_t i = 0; i < 2; i++)
        f->servers[i] = net_add(&f->net, "ps", i, var_spawn_server);
    for (uint32_t i = 0; i < 2; i++)
        f->workers[i] = net_add(&f->net, "worker", i, spawn_worker);
    f->chief = var_start(&f->net, backups);
    *state = f;
    return 0;
}

static inline int set_up(void **state)
{
    return set_up_with(state, false);
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    net_done(&f->net);
    free(f);
    return 0;
}

/* As from `from`, to the server. */
static inline void fence_server(struct net_process *from, struct net_process *server,
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

static inline void fence(struct fixture *f, uint64_t origin)
{
    fence_server(f->chief, f->servers[0], origin);
    fence_server(f->chief, f->servers[1], origin);
}

/* Of a shard of "w"; even shards are on server 0. */
static inline uint32_t partition_of(uint32_t shard)
{
    return mu__partition_of(mu__view_str("w"), shard);
}

/* Zeros of 64 bits: "w" has its home on server 0. */
static inline void open_variable(struct net_process *p, struct var_request *v,
                                 uint64_t count, uint32_t shards)
{
    *v = (struct var_request){.call = {.name = "w", .servers_count = 2},
                              .shape = {MU_I64, 1, {count}, shards}};
    var_aim(v);
    assert_int_equal(partition_of(0) % 2, 0);
    var_ask_ok(p, v, MU__VARIABLE_OPEN);
}

static inline int64_t *read_variable(struct net_process *p, struct var_request *v)
{
    int64_t *data = malloc((size_t)mu__shape_bytes(&v->shape));

    assert_non_null(data);
    v->call.target = data;
    var_ask_ok(p, v, MU__VARIABLE_READ);
    return data;
}

/* All elements have this content. */
static inline void assert_all(struct net_process *p, struct var_request *v,
                              int64_t expected)
{
    int64_t *data = read_variable(p, v);

    for (uint64_t i = 0; i < v->shape.dims[0]; i++)
        if (data[i] != expected)
            fail_msg("element %d is %d", (int)i, (int)data[i]);
    free(data);
}

static inline struct mu__ps_effects effects_of(struct net_process *server)
{
    struct mu__ps_effects effects;

    mu__ps_effects(mu__actor_state(server->kernel, (mu__pid){0, MU__PS}), &effects);
    return effects;
}

static inline struct writes *run_of(uint64_t origin, uint64_t effect)
{
    struct writes *writes = calloc(1, sizeof *writes);

    assert_non_null(writes);
    writes->run.effects.origin = origin;
    writes->run.effects.effect = effect;
    return writes;
}

static inline void run_free(struct writes *writes)
{
    assert_true(writes->sent);
    mu__effects_clear(&writes->run.effects);
    free(writes->run.failure);
    free(writes);
}

/* A run writes the whole variable, every element alike. */
static inline void write_all(struct writes *writes, const struct var_request *v,
                             uint32_t operation, int64_t content)
{
    for (uint32_t shard = 0; shard < v->shape.shards; shard++) {
        struct mu__effect effect = {.partition = partition_of(shard),
                                    .operation = operation,
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

static inline void post(struct net_process *p, struct writes *writes)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECTS_SEND, sizeof(struct mu__effects_send));
    struct mu__effects_send *body;

    assert_non_null(msg);
    body = mu__body(msg);
    body->run = &writes->run;
    msg->from.actor = MU__WORKER;
    msg->to.actor = MU__VARIABLES;
    net_deliver(p, msg);
}

/* A run that adds one to all elements. */
static inline struct writes *post_add(struct net_process *p, const struct var_request *v,
                                      uint64_t origin, uint64_t effect)
{
    struct writes *writes = run_of(origin, effect);

    write_all(writes, v, MU__WRITE_ADD, 1);
    post(p, writes);
    return writes;
}

/* The run has ended so. */
static inline void assert_ended(struct writes *writes, int code, const char *task,
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

static inline void assert_fine(struct writes *writes)
{
    if (writes->sent && writes->run.failure != NULL)
        fail_msg("%s", writes->run.failure->message);
    assert_ended(writes, 0, NULL, NULL);
}

#endif
