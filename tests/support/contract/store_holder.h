/* Who holds a store in the contract of stores (store.h): an actor, and what it
 * finds the store to have. */
#ifndef MU_TESTS_CONTRACT_STORE_HOLDER_H
#define MU_TESTS_CONTRACT_STORE_HOLDER_H

#include "actors/coordination/store/store.h"
#include "actors/messages.h"
#include "sim/world/random.h"
#include "sim/world/sim.h"

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
    uint64_t seeds; /* of the random runs */
};

enum {
    CONTRACT_NODES = 2,
    CONTRACT_TICK_MS = 50,
    CONTRACT_KEYS = 8, /* of the numbered batches; the first has their number */
    CONTRACT_AGENTS = 3,
    CONTRACT_TOKENS = 4, /* that an agent remembers */
    CONTRACT_VALUE_MAX = 200,
    CONTRACT_EXTRAS = 8,
    CONTRACT_TXN_KEYS = 128, /* as many as a transaction may change */
    CONTRACT_TXN_KILLS = 40
};

/* What a store is found to have. Results are those that `done` has not forgotten. */
struct contract_slot {
    uint64_t revision; /* 0: not there */
    uint64_t owner;
    uint32_t size;
    uint32_t hash; /* of the value */
};

struct contract_result {
    uint64_t token; /* 0: none */
    uint64_t revision;
    uint32_t code;
    uint32_t unused;
    int64_t number;
};

struct contract_content {
    uint64_t batch; /* value of the first key */
    struct contract_slot slots[CONTRACT_KEYS];
    struct contract_result results[CONTRACT_AGENTS][CONTRACT_TOKENS];
    uint64_t txn[CONTRACT_TXN_KEYS]; /* values of keys of transactions; 0: not there */
};

struct contract_state;

/* A process that has a store. */
struct contract_holder {
    struct contract_state *state;
    struct sim_node *node;
    struct mu__kernel *kernel;
    mu__pid pid;
    struct mu__store *store; /* of the actor; NULL while there is none */
    bool held;
    unsigned times_held;
    unsigned times_lost;
    unsigned times_read;
    unsigned visits_fail; /* so many visits to come fail */
    uint64_t epoch;
    uint64_t number;
    uint64_t committed; /* the last sequence */
    uint64_t records;   /* that were visited */
    char reason[512];
    struct contract_content content;
    struct mu__msg *extra[CONTRACT_EXTRAS]; /* copies of changes of other keys */
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
        body.value =
            (struct mu__view){made.value, (uint32_t)(batch * 37 % CONTRACT_VALUE_MAX)};
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
                    ? 0
                    : batch - CONTRACT_AGENTS * CONTRACT_TOKENS + 1,
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
    content->slots[slot] =
        (struct contract_slot){body->revision, body->owner, body->value.size,
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
    *h = (struct contract_holder){
        .state = h->state, .node = node, .visits_fail = h->visits_fail};
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

#endif
