/* What every store must do, written once. A test file fills in a struct contract_store,
 * which says how to make one and what can happen to it, and gets the whole suite:
 *
 *     return contract_store_run("journal", &journal_fixture);
 *
 * Stores are held by processes of the simulator: each has a kernel with one actor, which
 * does what the coordination service does with its store: starts it, ticks every 50 ms,
 * writes batches. What it writes follows from the batch's number, so that what the next
 * holder reads says which batches counted. Include it after cmocka.h. */
#ifndef MU_TESTS_CONTRACT_STORE_H
#define MU_TESTS_CONTRACT_STORE_H

#include "actors/coordination/store/store.h"
#include "actors/messages.h"
#include "tests/sim/random.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct contract_store {
    const struct mu__store_kind *kind;

    /* What outlives the processes (a file, servers) in this simulation, with nothing in
     * it. */
    void *(*open)(struct sim *sim, uint64_t seed);
    void (*close)(void *place);

    /* A process begins, or begins again, at that node: what its store is made with, where
     * all but place, storage and http is filled in. Called on the process's begin. */
    void (*begin)(void *place, struct sim_node *node, struct mu__kernel *kernel,
                  struct mu__store_config *config);

    /* The process at that node has gone: its kernel is about to be freed. May be NULL. */
    void (*end)(void *place, struct sim_node *node);

    /* From now on nothing more can be written; or it can again. NULL: it always can. */
    void (*set_full)(void *place, bool full);

    /* A store is held within so long, also after its former holder was killed; and what
     * was written is safe within so long. */
    uint32_t held_ms;
    uint32_t safe_ms;
    uint64_t seeds;             /* of the random runs */
};

enum {
    CONTRACT_NODES = 2,
    CONTRACT_TICK_MS = 50,
    CONTRACT_KEYS = 8,          /* of the numbered batches; the first has their number */
    CONTRACT_AGENTS = 3,
    CONTRACT_TOKENS = 4,        /* that an agent remembers */
    CONTRACT_VALUE_MAX = 200,
    CONTRACT_EXTRAS = 8,
    CONTRACT_TXN_KEYS = 128,    /* as many as a transaction may change */
    CONTRACT_TXN_KILLS = 40
};

/* What a store is found to have. Results are those that `done` has not forgotten. */
struct contract_slot {
    uint64_t revision;          /* 0: not there */
    uint64_t owner;
    uint32_t size;
    uint32_t hash;              /* of the value */
};

struct contract_result {
    uint64_t token;             /* 0: none */
    uint64_t revision;
    uint32_t code;
    uint32_t unused;
    int64_t number;
};

struct contract_content {
    uint64_t batch;             /* value of the first key */
    struct contract_slot slots[CONTRACT_KEYS];
    struct contract_result results[CONTRACT_AGENTS][CONTRACT_TOKENS];
    uint64_t txn[CONTRACT_TXN_KEYS];    /* values of keys of transactions; 0: not there */
};

struct contract_state;

/* A process that has a store. */
struct contract_holder {
    struct contract_state *state;
    struct sim_node *node;
    struct mu__kernel *kernel;
    mu__pid pid;
    struct mu__store *store;    /* of the actor; NULL while there is none */
    bool held;
    unsigned times_held;
    unsigned times_lost;
    unsigned times_read;
    unsigned visits_fail;       /* so many visits to come fail */
    uint64_t epoch;
    uint64_t number;
    uint64_t committed;         /* the last sequence */
    uint64_t records;           /* that were visited */
    char reason[512];
    struct contract_content content;
    struct mu__msg *extra[CONTRACT_EXTRAS];     /* copies of changes of other keys */
    unsigned extras;
};

struct contract_state {
    const struct contract_store *fixture;
    struct sim *sim;
    void *place;
    struct contract_holder holders[CONTRACT_NODES];
};

/* ---- What batch number `batch` has ---- */

/* Views of a record point in here. */
struct contract_made {
    char key[16];
    char value[CONTRACT_VALUE_MAX];
};

typedef void (*contract_visit_fn)(void *owner, uint16_t kind, const void *body);

static void contract_make_change(uint64_t batch, unsigned slot, unsigned order,
                                 contract_visit_fn visit, void *owner)
{
    struct contract_made made;
    struct mu__store_change body = {.revision = batch * 10 + order};

    (void)snprintf(made.key, sizeof made.key, "k/%u", slot);
    body.key = mu__view_str(made.key);
    if (slot == 0) {
        (void)snprintf(made.value, sizeof made.value, "%llu", (unsigned long long)batch);
        body.value = mu__view_str(made.value);
    } else if ((batch + slot) % 5 == 0) {
        body.deleted = true;
    } else {
        memset(made.value, (int)(batch & 0xff), sizeof made.value);
        body.value = (struct mu__view){made.value,
                                       (uint32_t)(batch * 37 % CONTRACT_VALUE_MAX)};
        body.owner = batch % 3;
    }
    visit(owner, MU__STORE_CHANGE, &body);
}

static void contract_make_result(uint64_t batch, contract_visit_fn visit, void *owner)
{
    struct mu__store_result body = {
        .agent = 1 + batch % CONTRACT_AGENTS,
        .token = batch,
        .done = batch < CONTRACT_AGENTS * CONTRACT_TOKENS
            ? 0 : batch - CONTRACT_AGENTS * CONTRACT_TOKENS + 1,
        .code = batch % 4 == 0 ? MU_EEXISTS : 0,
        .revision = batch * 10,
        .number = 1 - (int64_t)batch,
    };

    visit(owner, MU__STORE_RESULT, &body);
}

/* Its records in order: the number, two other keys, a result. */
static void contract_make_batch(uint64_t batch, contract_visit_fn visit, void *owner)
{
    unsigned slot = 1 + (unsigned)(batch % (CONTRACT_KEYS - 1));
    unsigned other = 1 + (unsigned)(batch * 3 % (CONTRACT_KEYS - 1));

    contract_make_change(batch, 0, 0, visit, owner);
    contract_make_change(batch, slot, 1, visit, owner);
    if (other != slot)
        contract_make_change(batch, other, 2, visit, owner);
    contract_make_result(batch, visit, owner);
}

/* ---- What a store is found to have ---- */

static void contract_see_change(struct contract_content *content, unsigned slot,
                                const struct mu__store_change *body)
{
    char text[24] = "";

    assert_true(slot < CONTRACT_KEYS);
    if (body->deleted) {
        content->slots[slot] = (struct contract_slot){0};
        return;
    }
    content->slots[slot] = (struct contract_slot){
        body->revision, body->owner, body->value.size,
        body->value.size == 0 ? 0 : mu__view_hash(body->value)};
    if (slot != 0)
        return;
    mu__view_copy(body->value, text, sizeof text);
    content->batch = strtoull(text, NULL, 10);
}

static void contract_see_txn(struct contract_content *content, unsigned key,
                             const struct mu__store_change *body)
{
    char text[24] = "";

    assert_true(key < CONTRACT_TXN_KEYS);
    if (!body->deleted)
        mu__view_copy(body->value, text, sizeof text);
    content->txn[key] = strtoull(text, NULL, 10);
}

static void contract_see_result(struct contract_content *content,
                                const struct mu__store_result *body)
{
    struct contract_result *results = content->results[body->agent - 1];
    struct contract_result *place = NULL;

    assert_true(body->agent >= 1 && body->agent <= CONTRACT_AGENTS);
    for (unsigned i = 0; i < CONTRACT_TOKENS; i++) {
        if (results[i].token < body->done)
            results[i] = (struct contract_result){0};
        if (results[i].token == 0 || results[i].token == body->token)
            place = &results[i];
    }
    assert_non_null(place);
    *place = (struct contract_result){body->token, body->revision, body->code, 0,
                                      body->number};
}

static void contract_see(void *owner, uint16_t kind, const void *body)
{
    const struct mu__store_change *change = body;
    char key[16] = "";

    if (kind == MU__STORE_RESULT) {
        contract_see_result(owner, body);
        return;
    }
    assert_int_equal(kind, MU__STORE_CHANGE);
    mu__view_copy(change->key, key, sizeof key);
    if (key[0] == 't')
        contract_see_txn(owner, (unsigned)strtoul(key + 2, NULL, 10), change);
    else
        contract_see_change(owner, (unsigned)strtoul(key + 2, NULL, 10), change);
}

/* Places among an agent's results mean nothing. */
static bool contract_has_result(const struct contract_result *results,
                                const struct contract_result *wanted)
{
    for (unsigned i = 0; i < CONTRACT_TOKENS; i++)
        if (memcmp(&results[i], wanted, sizeof *wanted) == 0)
            return true;
    return false;
}

/* A store may still have results that a later `done` forgets only at the agent's next
 * record; so all that are wanted are there. */
static void contract_expect_content(const struct contract_content *content,
                                    uint64_t batches)
{
    struct contract_content wanted = {0};

    for (uint64_t batch = 1; batch <= batches; batch++)
        contract_make_batch(batch, contract_see, &wanted);
    assert_int_equal(content->batch, batches);
    assert_memory_equal(content->slots, wanted.slots, sizeof wanted.slots);
    for (unsigned agent = 0; agent < CONTRACT_AGENTS; agent++)
        for (unsigned i = 0; i < CONTRACT_TOKENS; i++)
            if (wanted.results[agent][i].token != 0)
                assert_true(contract_has_result(content->results[agent],
                                                &wanted.results[agent][i]));
}

/* ---- The holder: its store's upcalls ---- */

static void contract_drop_extras(struct contract_holder *h)
{
    while (h->extras > 0)
        mu__pool_put(mu__kernel_pool(h->kernel), h->extra[--h->extras]);
}

static void contract_up_reading(void *owner)
{
    struct contract_holder *h = owner;

    assert_false(h->held);
    h->times_read++;
    h->records = 0;
    h->content = (struct contract_content){0};
    contract_drop_extras(h);
}

/* Views of the copy point into the same buffer, which it holds. */
static void contract_keep_extra(struct contract_holder *h, struct mu__msg *record)
{
    struct mu__msg *copy = mu__pool_get(mu__kernel_pool(h->kernel), record->kind,
                                        sizeof(struct mu__store_change));

    assert_non_null(copy);
    assert_true(h->extras < CONTRACT_EXTRAS);
    memcpy(copy->body, record->body, sizeof(struct mu__store_change));
    if (record->backing != NULL)
        copy->backing = mu__buf_ref(record->backing);
    h->extra[h->extras++] = copy;
}

static int contract_up_visit(void *owner, struct mu__msg *record)
{
    struct contract_holder *h = owner;
    const struct mu__store_change *change = mu__body(record);

    assert_true(h->times_read > 0 && !h->held);
    if (h->visits_fail > 0) {
        h->visits_fail--;
        return -MU_ENOMEM;
    }
    h->records++;
    if (record->kind == MU__STORE_CHANGE &&
        strchr("kt", ((const char *)change->key.data)[0]) == NULL)
        contract_keep_extra(h, record);
    else
        contract_see(&h->content, record->kind, record->body);
    return 0;
}

static void contract_up_held(void *owner, struct mu__ctx *ctx, uint64_t epoch,
                             uint64_t number)
{
    struct contract_holder *h = owner;

    (void)ctx;
    assert_false(h->held);
    assert_true(epoch > h->epoch && number != 0);
    h->held = true;
    h->times_held++;
    h->epoch = epoch;
    h->number = number;
}

static void contract_up_committed(void *owner, struct mu__ctx *ctx, uint64_t sequence)
{
    struct contract_holder *h = owner;

    (void)ctx;
    assert_true(h->held);
    assert_true(sequence > h->committed);
    h->committed = sequence;
}

static void contract_up_lost(void *owner, struct mu__ctx *ctx, const char *reason)
{
    struct contract_holder *h = owner;

    (void)ctx;
    assert_true(h->held);
    h->held = false;
    h->times_lost++;
    (void)snprintf(h->reason, sizeof h->reason, "%s", reason);
}

/* ---- The holder: an actor, and its process ---- */

static int contract_holder_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct contract_holder *h = *(struct contract_holder *const *)arg;
    const struct contract_store *fixture = h->state->fixture;
    struct mu__store_config config = {
        .location = "",
        .cluster_name = "contract",
        .task = sim_node_name(h->node),
        .incarnation = mu__random(ctx) | 1,
        .schema = &mu__messages,
        .pool = mu__kernel_pool(ctx->kernel),
        .lease_ms = 5000,
        .up = {h, contract_up_visit, contract_up_held, contract_up_committed,
               contract_up_lost, contract_up_reading, NULL},
    };

    *(struct contract_holder **)state = h;
    h->kernel = ctx->kernel;
    fixture->begin(h->state->place, h->node, ctx->kernel, &config);
    assert_int_equal(fixture->kind->open(&config, NULL, &h->store), 0);
    h->store->ops->start(h->store, ctx);
    assert_int_equal(h->times_held, 0);
    assert_true(mu__timer_set(ctx, 0, 0) != 0);
    return 0;
}

static void contract_holder_tick(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct contract_holder *h = *(struct contract_holder **)state;

    (void)msg;
    if (h->store == NULL)
        return;
    h->store->ops->tick(h->store, ctx);
    assert_true(mu__timer_set(ctx, CONTRACT_TICK_MS, 0) != 0);
}

static void contract_holder_heard(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct contract_holder *h = *(struct contract_holder **)state;
    struct mu__http_done *body = mu__body(msg);

    assert_non_null(body->request);
    if (h->store != NULL && h->store->ops->heard != NULL)
        (void)h->store->ops->heard(h->store, ctx, body->request);
}

static void contract_holder_done(struct mu__ctx *ctx, void *state)
{
    struct contract_holder *h = *(struct contract_holder **)state;

    if (h->store != NULL)
        h->store->ops->close(h->store, ctx);
    h->store = NULL;
}

static const struct mu__handler contract_handlers[] = {
    {MU__TIMER, contract_holder_tick},
    {MU__HTTP_DONE, contract_holder_heard},
};

static const struct mu__behavior contract_behavior = {
    .name = "holder",
    .state_size = sizeof(struct contract_holder *),
    .handlers = contract_handlers,
    .handlers_count = sizeof contract_handlers / sizeof contract_handlers[0],
    .init = contract_holder_init,
    .done = contract_holder_done,
};

static void contract_deliver(void *owner, struct mu__msg *msg)
{
    struct contract_holder *h = owner;

    (void)mu__kernel_deliver(h->kernel, msg);
}

static void contract_turn(void *owner)
{
    struct contract_holder *h = owner;

    mu__kernel_turn(h->kernel);
}

static int contract_process_start(void *arg, struct sim_node *node,
                                  struct mu__world *world, struct mu__wire *wire)
{
    struct contract_holder *h = arg;
    struct mu__world_hooks hooks = {h, contract_deliver, contract_turn, NULL};
    int rv;

    (void)wire;
    sim_attach(node, &hooks, NULL, NULL);
    *h = (struct contract_holder){.state = h->state, .node = node,
                                  .visits_fail = h->visits_fail};
    rv = mu__kernel_new(world, &mu__messages, &h->kernel);
    assert_int_equal(rv, 0);
    return mu__spawn(h->kernel, &contract_behavior, 0, &h, &h->pid);
}

/* A crash: what the store does at its close reaches nobody: world and doors are dead. */
static void contract_process_stop(void *arg)
{
    struct contract_holder *h = arg;
    const struct contract_store *fixture = h->state->fixture;

    if (fixture->end != NULL)
        fixture->end(h->state->place, h->node);
    contract_drop_extras(h);
    mu__kernel_free(h->kernel);
    h->kernel = NULL;
    h->held = false;
}

static const struct sim_program contract_program = {contract_process_start,
                                                    contract_process_stop};

/* ---- Doing ---- */

static struct mu__ctx contract_ctx(struct contract_holder *h)
{
    return (struct mu__ctx){h->kernel, h->pid, NULL};
}

static void contract_run_ms(struct contract_state *s, uint64_t ms)
{
    sim_run_until(s->sim, sim_now_ms(s->sim) + ms);
}

static bool contract_is_held(void *arg)
{
    struct contract_holder *h = arg;

    return h->held;
}

static void contract_hold(struct contract_holder *h)
{
    struct contract_state *s = h->state;

    assert_true(h->held || sim_run_to(s->sim, contract_is_held, h, sim_now_ms(s->sim) +
                                      s->fixture->held_ms));
}

/* The process begins, or begins again, and has the store. */
static struct contract_holder *contract_begin(struct contract_state *s, unsigned i)
{
    struct contract_holder *h = &s->holders[i];

    assert_int_equal(sim_restart(h->node), 0);
    contract_hold(h);
    return h;
}

static int contract_write(struct contract_holder *h, uint16_t kind, const void *body)
{
    struct mu__pool *pool = mu__kernel_pool(h->kernel);
    size_t size = mu__messages.rows[kind].body_size;
    struct mu__msg *msg = mu__pool_get(pool, kind, size);
    struct mu__ctx ctx = contract_ctx(h);
    int rv;

    assert_non_null(msg);
    memcpy(msg->body, body, size);
    rv = h->store->ops->write(h->store, &ctx, msg);
    mu__pool_put(pool, msg);
    return rv;
}

static void contract_visit_write(void *owner, uint16_t kind, const void *body)
{
    (void)contract_write(owner, kind, body);
}

static void contract_commit(struct contract_holder *h, uint64_t sequence)
{
    struct mu__ctx ctx = contract_ctx(h);

    h->store->ops->commit(h->store, &ctx, sequence * 10 + 9, sequence);
}

/* Write batch number `batch`, which is the sequence number of its commit, too. */
static void contract_put(struct contract_holder *h, uint64_t batch)
{
    contract_make_batch(batch, contract_visit_write, h);
    contract_commit(h, batch);
}

struct contract_wait {
    struct contract_holder *holder;
    uint64_t sequence;
};

static bool contract_is_safe(void *arg)
{
    const struct contract_wait *wait = arg;

    return wait->holder->committed >= wait->sequence;
}

static void contract_wait_safe(struct contract_holder *h, uint64_t sequence)
{
    struct contract_state *s = h->state;
    struct contract_wait wait = {h, sequence};

    assert_true(contract_is_safe(&wait) ||
                sim_run_to(s->sim, contract_is_safe, &wait,
                           sim_now_ms(s->sim) + s->fixture->safe_ms));
}

static bool contract_may_read(struct contract_holder *h)
{
    struct mu__ctx ctx = contract_ctx(h);

    return h->store->ops->may_read(h->store, &ctx);
}

static void contract_kill(struct contract_holder *h)
{
    sim_crash(h->node);
}

/* As after a whole life: a number for a store that keeps what it has, and nothing there
 * for one that does not. */
static uint64_t contract_expected(struct contract_state *s, uint64_t batches)
{
    return s->fixture->kind->lasting ? batches : 0;
}

/* ---- The suite ---- */

static void contract_store_begins_empty(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    assert_int_equal(h->records, 0);
    assert_int_equal(h->times_read, 1);
    assert_int_equal(h->times_held, 1);
    contract_wait_safe(h, 0);
    assert_true(contract_may_read(h));
    contract_expect_content(&h->content, 0);
}

static void contract_store_keeps_what_is_safe(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    uint64_t number = h->number;
    uint64_t epoch = h->epoch;

    for (uint64_t batch = 1; batch <= 30; batch++) {
        contract_put(h, batch);
        contract_wait_safe(h, batch);
    }
    contract_kill(h);
    contract_run_ms(s, 1);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, contract_expected(s, 30));
    assert_int_equal(h->number == number, s->fixture->kind->lasting);
    assert_true(h->epoch > epoch || !s->fixture->kind->lasting);
}

/* Several batches under way: they are safe in order. */
static void contract_store_commits_in_order(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    for (uint64_t batch = 1; batch <= 20; batch++)
        contract_put(h, batch);
    contract_wait_safe(h, 20);
    contract_commit(h, 21);             /* an empty one is one, too */
    contract_wait_safe(h, 21);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, contract_expected(s, 20));
}

/* A batch without its commit never counts, neither in the next life nor after more was
 * written in that. */
static void contract_store_drops_what_was_not_committed(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    contract_put(h, 1);
    contract_wait_safe(h, 1);
    contract_make_batch(2, contract_visit_write, h);
    contract_run_ms(s, 100);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, contract_expected(s, 1));
    if (!s->fixture->kind->lasting)
        return;
    contract_put(h, 2);
    contract_put(h, 3);
    contract_wait_safe(h, 3);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, 3);
}

static void contract_store_counts_lives(void **state)
{
    struct contract_state *s = *state;
    uint64_t epoch = 0;
    uint64_t number = 0;

    for (unsigned life = 0; life < 5; life++) {
        struct contract_holder *h = contract_begin(s, 0);

        if (s->fixture->kind->lasting) {
            assert_true(h->epoch > epoch);
            assert_true(number == 0 || h->number == number);
        } else {
            assert_true(h->number != number);
        }
        epoch = h->epoch;
        number = h->number;
        contract_kill(h);
    }
}

/* The last one that was visited. */
static const struct mu__store_change *contract_find_extra(struct contract_holder *h,
                                                          struct mu__view key)
{
    for (unsigned i = h->extras; i > 0; i--) {
        const struct mu__store_change *at = mu__body(h->extra[i - 1]);

        if (at->key.size == key.size && memcmp(at->key.data, key.data, key.size) == 0)
            return at;
    }
    return NULL;
}

static void contract_expect_change(const struct mu__store_change *found,
                                   const struct mu__store_change *wanted)
{
    assert_non_null(found);
    assert_false(found->deleted);
    assert_int_equal(found->revision, wanted->revision);
    assert_int_equal(found->owner, wanted->owner);
    assert_int_equal(found->value.size, wanted->value.size);
    if (found->value.size > 0)
        assert_memory_equal(found->value.data, wanted->value.data, wanted->value.size);
}

/* Keys and values of all sizes and bytes. */
static void contract_store_keeps_bytes(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    static char key[MU__KEY_MAX];
    static uint8_t value[MU__KEY_VALUE_MAX];
    struct mu__store_change rows[] = {
        {1, {key, sizeof key}, {value, sizeof value}, false, UINT64_MAX},
        {2, {"\xff\x80 \"\\ \xc3\x28", 8}, {value, 256}, false, 1},
        {3, {"empty", 5}, {NULL, 0}, false, 0},
        {UINT64_MAX - 1, {"gone", 4}, {"x", 1}, false, 0},
    };
    struct mu__store_change gone = {UINT64_MAX, {"gone", 4}, {NULL, 0}, true, 0};

    for (unsigned i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)(i < 256 ? i : i * i >> 5);
    memset(key, '~', sizeof key);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(contract_write(h, MU__STORE_CHANGE, &rows[i]), 0);
    contract_commit(h, 1);
    assert_int_equal(contract_write(h, MU__STORE_CHANGE, &gone), 0);
    contract_commit(h, 2);
    contract_wait_safe(h, 2);
    contract_kill(h);
    h = contract_begin(s, 0);
    for (unsigned i = 0; i < 3 && s->fixture->kind->lasting; i++)
        contract_expect_change(contract_find_extra(h, rows[i].key), &rows[i]);
    assert_true(contract_find_extra(h, gone.key) == NULL ||
                contract_find_extra(h, gone.key)->deleted);
}

static bool contract_has_key(struct contract_holder *h, const char *key)
{
    const struct mu__store_change *found = contract_find_extra(h, mu__view_str(key));

    return found != NULL && !found->deleted;
}

static bool contract_has_results(const struct contract_holder *h)
{
    for (unsigned agent = 0; agent < CONTRACT_AGENTS; agent++)
        for (unsigned i = 0; i < CONTRACT_TOKENS; i++)
            if (h->content.results[agent][i].token != 0)
                return true;
    return false;
}

/* What the beginning of another run writes: the record of the last one stays, what
 * belongs to it goes, and all results of agents. */
static void contract_write_next_run(struct contract_holder *h)
{
    const struct mu__store_change rows[] = {
        {20, mu__view_str("_muster/run/1/barrier/a"), {NULL, 0}, true, 0},
        {21, mu__view_str("_muster/run/1/preemption"), {NULL, 0}, true, 0},
        {21, mu__view_str("_muster/run/2"), {"running", 7}, false, 0},
    };

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(contract_write(h, MU__STORE_CHANGE, &rows[i]), 0);
    for (uint64_t agent = 1; agent <= CONTRACT_AGENTS; agent++)
        assert_int_equal(contract_write(h, MU__STORE_RESULT,
                                        &(struct mu__store_result){
                                            .agent = agent, .done = UINT64_MAX}), 0);
}

/* Another run begins as a whole, or not at all. */
static void contract_store_replaces_a_run(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    const bool lasting = s->fixture->kind->lasting;
    const struct mu__store_change rows[] = {
        {10, mu__view_str("_muster/run/1"), {"running", 7}, false, 0},
        {11, mu__view_str("_muster/run/1/barrier/a"), {"x", 1}, false, 0},
        {12, mu__view_str("_muster/run/1/preemption"), {"x", 1}, false, 0},
    };

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(contract_write(h, MU__STORE_CHANGE, &rows[i]), 0);
    for (uint64_t batch = 1; batch <= CONTRACT_AGENTS; batch++)
        contract_make_result(batch, contract_visit_write, h);
    contract_commit(h, 1);
    contract_wait_safe(h, 1);
    contract_write_next_run(h);
    contract_kill(h);
    h = contract_begin(s, 0);
    assert_false(contract_has_key(h, "_muster/run/2"));
    assert_int_equal(contract_has_key(h, "_muster/run/1/barrier/a"), lasting);
    assert_int_equal(contract_has_results(h), lasting);
    contract_write_next_run(h);
    contract_commit(h, 1);
    contract_wait_safe(h, 1);
    contract_kill(h);
    h = contract_begin(s, 0);
    assert_int_equal(contract_has_key(h, "_muster/run/2"), lasting);
    assert_int_equal(contract_has_key(h, "_muster/run/1"), lasting);
    assert_false(contract_has_key(h, "_muster/run/1/barrier/a"));
    assert_false(contract_has_key(h, "_muster/run/1/preemption"));
    assert_false(contract_has_results(h));
}

/* ---- Transactions ---- */

/* Round `round` of a transaction over many keys, as the service writes it: puts, then
 * what is deleted, then its result. Of an even round every third key is deleted. */
static bool contract_txn_deletes(uint64_t round, unsigned key)
{
    return round % 2 == 0 && key % 3 == 1;
}

static void contract_write_txn_keys(struct contract_holder *h, uint64_t round,
                                    unsigned count, bool deleted)
{
    char key[16];
    char value[24];

    (void)snprintf(value, sizeof value, "%llu", (unsigned long long)round);
    for (unsigned i = 0; i < count; i++) {
        struct mu__store_change body = {.revision = round * 1000 + i,
                                        .deleted = deleted};

        if (contract_txn_deletes(round, i) != deleted)
            continue;
        (void)snprintf(key, sizeof key, "t/%u", i);
        body.key = mu__view_str(key);
        body.value = mu__view_str(deleted ? "" : value);
        assert_int_equal(contract_write(h, MU__STORE_CHANGE, &body), 0);
    }
}

static void contract_write_txn(struct contract_holder *h, uint64_t round, unsigned count)
{
    contract_write_txn_keys(h, round, count, false);
    contract_write_txn_keys(h, round, count, true);
    assert_int_equal(contract_write(h, MU__STORE_RESULT,
                                    &(struct mu__store_result){
                                        .agent = 1, .token = round, .done = round}), 0);
}

static bool contract_has_txn_result(const struct contract_holder *h, uint64_t round)
{
    for (unsigned i = 0; i < CONTRACT_TOKENS; i++)
        if (h->content.results[0][i].token == round)
            return true;
    return false;
}

/* That the store has a round, and all of it. */
static void contract_expect_txn(const struct contract_holder *h, uint64_t round,
                                unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(h->content.txn[i],
                         contract_txn_deletes(round, i) ? 0 : round);
    assert_true(round == 0 || contract_has_txn_result(h, round));
    assert_false(contract_has_txn_result(h, round + 1));
}

/* The holder is killed a while after each transaction, which may not be safe then: the
 * next one has the whole of it, or nothing, and its result likewise. */
static void contract_txn_rounds(struct contract_state *s, unsigned count)
{
    struct contract_holder *h = contract_begin(s, 0);
    uint64_t last = 0;          /* that the store has */
    unsigned cut = 0;           /* before they were safe */

    for (uint64_t round = 1; round <= CONTRACT_TXN_KILLS; round++) {
        bool is_safe;
        bool has_it;

        contract_write_txn(h, round, count);
        contract_commit(h, 1);
        contract_run_ms(s, round * round / 8);
        is_safe = h->committed == 1;
        cut += !is_safe;
        contract_kill(h);
        h = contract_begin(s, 0);
        has_it = h->content.txn[0] == round;
        assert_true(has_it || !is_safe || !s->fixture->kind->lasting);
        last = has_it ? round : s->fixture->kind->lasting ? last : 0;
        contract_expect_txn(h, last, last == 0 ? 0 : count);
    }
    assert_int_equal(last > 0, s->fixture->kind->lasting);
    assert_int_equal(cut > 0 && cut < CONTRACT_TXN_KILLS, s->fixture->kind->shared);
}

static void contract_store_has_whole_transactions(void **state)
{
    contract_txn_rounds(*state, 5);
}

static void contract_store_has_whole_large_transactions(void **state)
{
    contract_txn_rounds(*state, CONTRACT_TXN_KEYS);
}

/* Of one whose end was not written there is nothing, wherever it was cut. */
static void contract_store_drops_half_a_transaction(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    contract_write_txn(h, 1, CONTRACT_TXN_KEYS);
    contract_commit(h, 1);
    contract_wait_safe(h, 1);
    for (unsigned written = 1; written <= CONTRACT_TXN_KEYS; written *= 2) {
        contract_write_txn_keys(h, 2, written, false);
        contract_write_txn_keys(h, 2, written, true);
        contract_run_ms(s, 100);
        contract_kill(h);
        h = contract_begin(s, 0);
        if (s->fixture->kind->lasting)
            contract_expect_txn(h, 1, CONTRACT_TXN_KEYS);
    }
}

/* An owner that cannot take what it is shown is shown all of it again. */
static void contract_store_visits_again(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    for (uint64_t batch = 1; batch <= 3; batch++)
        contract_put(h, batch);
    contract_wait_safe(h, 3);
    contract_kill(h);
    contract_run_ms(s, 1);
    h->visits_fail = s->fixture->kind->lasting ? 2 : 0;
    h = contract_begin(s, 0);
    assert_int_equal(h->visits_fail, 0);
    assert_int_equal(h->times_read, s->fixture->kind->lasting ? 3 : 1);
    contract_expect_content(&h->content, contract_expected(s, 3));
}

/* Writing the same few keys again and again asks for a rewrite at times, and with it what
 * counts is the same. */
static void contract_store_is_rewritten(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    unsigned rewrites = 0;
    uint64_t batch = 0;
    uint64_t sequence = 0;

    if (h->store->ops->wants_rewrite == NULL)
        return;
    while (rewrites < 3 && batch < 60000) {
        struct mu__ctx ctx = contract_ctx(h);

        batch++;
        sequence++;
        contract_make_batch(batch, contract_visit_write, h);
        contract_commit(h, sequence);
        if (!h->store->ops->wants_rewrite(h->store, CONTRACT_KEYS))
            continue;
        rewrites++;
        h->store->ops->rewrite(h->store, &ctx);
        for (uint64_t old = batch < 100 ? 1 : batch - 100; old <= batch; old++)
            contract_make_batch(old, contract_visit_write, h);
        contract_commit(h, ++sequence);
        contract_wait_safe(h, sequence);
        assert_false(h->store->ops->wants_rewrite(h->store, CONTRACT_KEYS));
    }
    assert_int_equal(rewrites, 3);
    contract_make_batch(batch + 1, contract_visit_write, h);
    contract_commit(h, ++sequence);
    contract_wait_safe(h, sequence);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, batch + 1);
    assert_true(h->records < 10000);
}

/* Nothing can be written: the store is lost, with words, and is held again when it can;
 * it has what was safe, and perhaps some of the rest. */
static void contract_store_is_lost_when_full(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    uint64_t epoch;

    if (s->fixture->set_full == NULL)
        return;
    contract_put(h, 1);
    contract_wait_safe(h, 1);
    epoch = h->epoch;
    s->fixture->set_full(s->place, true);
    contract_put(h, 2);
    contract_run_ms(s, s->fixture->held_ms);
    assert_int_equal(h->times_lost, 1);
    assert_false(h->held);
    assert_false(contract_may_read(h));
    assert_int_equal(h->committed, 1);
    assert_true(strlen(h->reason) > 10);
    s->fixture->set_full(s->place, false);
    contract_hold(h);
    assert_true(h->epoch > epoch);
    assert_true(h->content.batch == 1 || h->content.batch == 2);
    contract_expect_content(&h->content, h->content.batch);
    h->committed = 0;
    contract_put(h, 3);
    contract_wait_safe(h, 3);
}

/* Two tasks stand for it: one has it, and when that one ends, the other does. What the
 * first one does not know to be lost changes nothing any more. */
static void contract_store_has_one_holder(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *one = contract_begin(s, 0);
    struct contract_holder *two = &s->holders[1];
    uint64_t epoch;

    if (!s->fixture->kind->shared)
        return;
    assert_int_equal(sim_start(two->node), 0);
    contract_put(one, 1);
    contract_wait_safe(one, 1);
    contract_run_ms(s, 2 * s->fixture->held_ms);
    assert_true(one->held && !two->held);
    assert_false(contract_may_read(two));
    epoch = one->epoch;
    contract_kill(one);
    contract_hold(two);
    assert_true(two->epoch > epoch);
    contract_expect_content(&two->content, 1);
    contract_put(two, 2);
    contract_wait_safe(two, 2);
    assert_int_equal(sim_start(one->node), 0);
    contract_run_ms(s, 2 * s->fixture->held_ms);
    assert_true(two->held && !one->held);
    contract_kill(two);
    contract_hold(one);
    contract_expect_content(&one->content, 2);
}

/* Let go on purpose, and the next one need not wait for long. */
static void contract_store_lets_go(void **state)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    contract_put(h, 1);
    contract_wait_safe(h, 1);
    mu__stop(h->kernel, h->pid);
    contract_run_ms(s, CONTRACT_TICK_MS);
    assert_null(h->store);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, contract_expected(s, 1));
}

/* ---- Random lives ---- */

struct contract_random {
    struct contract_state *s;
    struct sim_random random;
    uint64_t next;          /* batch */
    uint64_t safe;          /* the last that was told safe in any life */
};

static void contract_random_life(struct contract_random *r, unsigned i)
{
    struct contract_holder *h = contract_begin(r->s, i);
    uint64_t batches = sim_between(&r->random, 0, 12);

    assert_true(h->content.batch >= r->safe && h->content.batch < r->next);
    contract_expect_content(&h->content, h->content.batch);
    r->safe = h->content.batch;
    r->next = h->content.batch + 1;
    for (uint64_t k = 0; k < batches && h->held && h->times_lost == 0; k++) {
        if (r->s->fixture->set_full != NULL && sim_chance(&r->random, 5))
            r->s->fixture->set_full(r->s->place, true);
        contract_put(h, r->next++);
        if (sim_chance(&r->random, 50))
            contract_run_ms(r->s, sim_between(&r->random, 0, 30));
    }
    if (h->held && h->times_lost == 0 && sim_chance(&r->random, 30))
        contract_make_batch(r->next, contract_visit_write, h);
    if (h->committed > r->safe)
        r->safe = h->committed;
    contract_kill(h);
    if (r->s->fixture->set_full != NULL)
        r->s->fixture->set_full(r->s->place, false);
}

static void *contract_store_open(const struct contract_store *fixture, uint64_t seed)
{
    struct contract_state *s = calloc(1, sizeof *s);
    static const char *const names[CONTRACT_NODES] = {"chief/0", "ps/0"};
    static const char *const addresses[CONTRACT_NODES] = {"tcp://a:1", "tcp://b:1"};

    assert_non_null(s);
    s->fixture = fixture;
    s->sim = sim_new(seed);
    s->place = fixture->open(s->sim, seed);
    for (unsigned i = 0; i < CONTRACT_NODES; i++) {
        s->holders[i].state = s;
        s->holders[i].node = sim_node_add(s->sim, names[i], addresses[i],
                                          &contract_program, &s->holders[i]);
    }
    return s;
}

static void contract_store_close(struct contract_state *s)
{
    const struct contract_store *fixture = s->fixture;

    sim_free(s->sim);
    fixture->close(s->place);
    free(s);
}

/* Lives of a few batches that end anywhere: the next one finds all that was told safe,
 * and no batch but those that were written, whole, and none without those before it. */
static void contract_store_survives_lives(void **state)
{
    struct contract_state *given = *state;
    const struct contract_store *fixture = given->fixture;

    if (!fixture->kind->lasting)
        return;
    for (uint64_t seed = 1; seed <= fixture->seeds; seed++) {
        struct contract_state *s = contract_store_open(fixture, seed);
        struct contract_random r = {s, sim_stream(seed, 7), 1, 0};

        for (unsigned life = 0; life < 20; life++)
            contract_random_life(&r, fixture->kind->shared
                                     ? (unsigned)sim_between(&r.random, 0, 1) : 0);
        contract_store_close(s);
    }
}

static const struct contract_store *contract_store_fixture;

static int contract_store_set_up(void **state)
{
    *state = contract_store_open(contract_store_fixture, 1);
    return 0;
}

static int contract_store_tear_down(void **state)
{
    contract_store_close(*state);
    return 0;
}

#define CONTRACT_STORE_TEST(name)                                           \
    cmocka_unit_test_setup_teardown(name, contract_store_set_up,            \
                                    contract_store_tear_down)

static inline int contract_store_run(const char *name,
                                     const struct contract_store *fixture)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_STORE_TEST(contract_store_begins_empty),
        CONTRACT_STORE_TEST(contract_store_keeps_what_is_safe),
        CONTRACT_STORE_TEST(contract_store_commits_in_order),
        CONTRACT_STORE_TEST(contract_store_drops_what_was_not_committed),
        CONTRACT_STORE_TEST(contract_store_counts_lives),
        CONTRACT_STORE_TEST(contract_store_keeps_bytes),
        CONTRACT_STORE_TEST(contract_store_replaces_a_run),
        CONTRACT_STORE_TEST(contract_store_has_whole_transactions),
        CONTRACT_STORE_TEST(contract_store_has_whole_large_transactions),
        CONTRACT_STORE_TEST(contract_store_drops_half_a_transaction),
        CONTRACT_STORE_TEST(contract_store_visits_again),
        CONTRACT_STORE_TEST(contract_store_is_rewritten),
        CONTRACT_STORE_TEST(contract_store_is_lost_when_full),
        CONTRACT_STORE_TEST(contract_store_has_one_holder),
        CONTRACT_STORE_TEST(contract_store_lets_go),
        CONTRACT_STORE_TEST(contract_store_survives_lives),
    };

    contract_store_fixture = fixture;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

#endif
