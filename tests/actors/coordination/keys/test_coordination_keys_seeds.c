/* Random lives of the coordination service: agents that ask, ask again, die; links that
 * break, a host that is killed, a file that fails. All that was answered can be explained
 * by one order of the operations, each done once. Some of them are asked as transactions,
 * which count up two other keys, too: those are always equal. */
#include "tests/support/linear/linear.h"
#include "tests/support/service/keys.h"

enum {
    CLIENTS = 4,
    KEYS = 3,
    OPEN_MAX = 3, /* operations of a client under way */
    STEPS = 400,
    SEEDS = 40
};

/* ---- A journal that says later that something is safe ---- */

struct slow {
    struct mu__store base;
    struct mu__store *inner;
    struct mu__store_upcalls up;
    uint64_t sequence; /* that is safe, and was not told */
};

static struct slow *slow_of(struct mu__store *base)
{
    return (struct slow *)base; /* the base is its first member */
}

static void slow_start(struct mu__store *base, struct mu__ctx *ctx)
{
    struct mu__store *inner = slow_of(base)->inner;

    inner->ops->start(inner, ctx);
}

static int slow_write(struct mu__store *base, struct mu__ctx *ctx,
                      const struct mu__msg *record)
{
    struct mu__store *inner = slow_of(base)->inner;

    return inner->ops->write(inner, ctx, record);
}

static void slow_commit(struct mu__store *base, struct mu__ctx *ctx, uint64_t revision,
                        uint64_t sequence)
{
    struct mu__store *inner = slow_of(base)->inner;

    inner->ops->commit(inner, ctx, revision, sequence);
}

static bool slow_may_read(struct mu__store *base, struct mu__ctx *ctx)
{
    struct mu__store *inner = slow_of(base)->inner;

    return inner->ops->may_read(inner, ctx);
}

static void slow_tick(struct mu__store *base, struct mu__ctx *ctx)
{
    struct slow *slow = slow_of(base);
    uint64_t sequence = slow->sequence;

    slow->sequence = 0;
    if (sequence != 0)
        slow->up.committed(slow->up.owner, ctx, sequence);
    slow->inner->ops->tick(slow->inner, ctx);
}

static bool slow_wants_rewrite(struct mu__store *base, uint64_t records)
{
    struct mu__store *inner = slow_of(base)->inner;

    return inner->ops->needs_rewrite(inner, records);
}

static void slow_rewrite(struct mu__store *base, struct mu__ctx *ctx)
{
    struct mu__store *inner = slow_of(base)->inner;

    inner->ops->rewrite(inner, ctx);
}

static void slow_close(struct mu__store *base, struct mu__ctx *ctx)
{
    struct slow *slow = slow_of(base);

    slow->inner->ops->close(slow->inner, ctx);
    free(slow);
}

static const struct mu__store_ops slow_ops = {
    .start = slow_start,
    .write = slow_write,
    .commit = slow_commit,
    .may_read = slow_may_read,
    .tick = slow_tick,
    .needs_rewrite = slow_wants_rewrite,
    .rewrite = slow_rewrite,
    .close = slow_close,
};

static int slow_visit(void *owner, struct mu__msg *record)
{
    struct slow *slow = owner;

    return slow->up.visit(slow->up.owner, record);
}

static void slow_held(void *owner, struct mu__ctx *ctx, uint64_t epoch, uint64_t number)
{
    struct slow *slow = owner;

    slow->up.held(slow->up.owner, ctx, epoch, number);
}

static void slow_committed(void *owner, struct mu__ctx *ctx, uint64_t sequence)
{
    (void)ctx;
    ((struct slow *)owner)->sequence = sequence;
}

static void slow_lost(void *owner, struct mu__ctx *ctx, const char *reason)
{
    struct slow *slow = owner;

    slow->sequence = 0;
    slow->up.lost(slow->up.owner, ctx, reason);
}

static void slow_reading(void *owner)
{
    struct slow *slow = owner;

    slow->up.reading(slow->up.owner);
}

static int slow_open(const struct mu__store_config *config, mu_error *ret_error,
                     struct mu__store **ret_store)
{
    struct slow *slow = calloc(1, sizeof *slow);
    struct mu__store_config inner = *config;

    assert_non_null(slow);
    slow->base.ops = &slow_ops;
    slow->up = config->up;
    inner.up = (struct mu__store_upcalls){
        slow, slow_visit, slow_held, slow_committed, slow_lost, slow_reading, NULL};
    assert_int_equal(mu__store_journal.open(&inner, ret_error, &slow->inner), 0);
    *ret_store = &slow->base;
    return 0;
}

static const struct mu__store_kind slow_kind = {
    .name = "slow", .has_location = true, .lasting = true, .open = slow_open};

/* ---- Clients ---- */

struct asked {
    uint64_t token; /* 0: none */
    size_t number;  /* in the history */
    struct linear_op op;
    bool is_txn;
};

struct client {
    struct service_agent *agent;
    struct asked asked[OPEN_MAX];
    bool registered;
};

struct run {
    struct service *s;
    struct client clients[CLIENTS];
    struct linear history;
    struct sim_random random;
    int64_t value; /* the last that was put: all differ */
    uint64_t answers;
    uint64_t txns;  /* that were done */
    uint64_t again; /* asked again */
    uint64_t lives;
};

static bool is_change(const struct asked *asked)
{
    return asked->op.kind != LINEAR_GET;
}

/* All changes below it were answered. */
static uint64_t done_floor(const struct client *client)
{
    uint64_t floor = client->agent->token + 1;

    for (unsigned i = 0; i < OPEN_MAX; i++)
        if (client->asked[i].token != 0 && is_change(&client->asked[i]) &&
            client->asked[i].token < floor)
            floor = client->asked[i].token;
    return floor;
}

static const char *const keys[KEYS] = {"a", "b", "c/d"};

static void tell_as_txn(struct client *client, const struct asked *asked, uint64_t done)
{
    const struct linear_op *op = &asked->op;
    struct mu__view key = mu__view_str(keys[op->key]);
    static struct mu__txn txn;
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRId64, op->value);
    txn = (struct mu__txn){
        .changes = {{.operation =
                         op->kind == LINEAR_INCREMENT ? MU_KV_INCREMENT : MU_KV_PUT,
                     .key = key,
                     .value = mu__view_str(text),
                     .by = op->value},
                    {.operation = MU_KV_INCREMENT, .key = mu__view_str("t/x"), .by = 1},
                    {.operation = MU_KV_INCREMENT, .key = mu__view_str("t/y"), .by = 1}},
        .changes_count = 3,
        .checks = {{.type =
                        op->kind == LINEAR_COMPARE ? MU_KV_IF_REVISION : MU_KV_IF_ABSENT,
                    .key = key,
                    .revision = op->expected}},
        .checks_count = op->kind == LINEAR_COMPARE || op->kind == LINEAR_INSERT,
    };
    tell_txn(client->agent, asked->token, done, &txn);
}

static void tell_asked(struct client *client, const struct asked *asked)
{
    static const uint32_t flags[] = {[LINEAR_PUT] = MU__PUT_OVERWRITE,
                                     [LINEAR_INSERT] = 0,
                                     [LINEAR_COMPARE] = MU__PUT_COMPARE};
    const struct linear_op *op = &asked->op;
    struct mu__view key = mu__view_str(keys[op->key]);
    uint64_t done = done_floor(client);
    char text[32];

    if (asked->is_txn) {
        tell_as_txn(client, asked, done);
    } else if (op->kind == LINEAR_GET) {
        TELL(client->agent, KEY_GET, key_get, .token = asked->token, .key = key,
             .wait = op->value != 0);
    } else if (op->kind == LINEAR_INCREMENT) {
        TELL(client->agent, KEY_INCREMENT, key_increment, .token = asked->token,
             .done = done, .key = key, .by = op->value);
    } else if (op->kind == LINEAR_DELETE) {
        TELL(client->agent, KEY_DELETE, key_delete, .token = asked->token, .done = done,
             .key = key);
    } else {
        (void)snprintf(text, sizeof text, "%" PRId64, op->value);
        TELL(client->agent, KEY_PUT, key_put, .token = asked->token, .done = done,
             .key = key, .value = mu__view_str(text), .flags = flags[op->kind],
             .revision = op->expected);
    }
}

/* The revision of some answer about that key, for COMPARE. */
static uint64_t some_revision(struct run *r, unsigned key)
{
    for (unsigned tries = 0; tries < 10 && r->history.count > 0; tries++) {
        uint64_t back =
            sim_between(&r->random, 1, r->history.count < 20 ? r->history.count : 20);
        const struct linear_op *op = &r->history.ops[r->history.count - back];

        if (op->key == key && op->end != LINEAR_UNKNOWN && op->revision != 0)
            return op->revision;
    }
    return 0;
}

static void ask(struct run *r, struct client *client)
{
    struct asked *asked = NULL;

    for (unsigned i = 0; i < OPEN_MAX; i++)
        if (client->asked[i].token == 0)
            asked = &client->asked[i];
    if (asked == NULL)
        return;
    asked->op = (struct linear_op){
        .kind = (enum linear_kind)sim_between(&r->random, LINEAR_GET, LINEAR_DELETE),
        .key = (unsigned)sim_between(&r->random, 0, KEYS - 1),
    };
    if (asked->op.kind == LINEAR_INCREMENT)
        asked->op.value = 1;
    else if (asked->op.kind == LINEAR_GET)
        asked->op.value = sim_chance(&r->random, 20);
    else
        asked->op.value = r->value += 1000000;
    if (asked->op.kind == LINEAR_COMPARE)
        asked->op.expected = some_revision(r, asked->op.key);
    asked->is_txn = asked->op.kind != LINEAR_GET && asked->op.kind != LINEAR_DELETE &&
                    sim_chance(&r->random, 30);
    asked->token = ++client->agent->token;
    asked->number = linear_begin(&r->history, &asked->op);
    tell_asked(client, asked);
}

static int64_t number_in(struct mu__view value)
{
    char text[32];

    mu__view_copy(value, text, sizeof text);
    return strtoll(text, NULL, 10);
}

/* What a transaction says in the words of the single operation: its revision is that of
 * its last change, two behind the one of its first. */
static void end_asked(struct run *r, const struct asked *asked,
                      const struct mu__key_done *done)
{
    int code = -(int)done->code;
    bool failed = asked->is_txn && code == -MU_EPRECONDITION && done->number == 1;
    int64_t number = asked->op.kind == LINEAR_GET ? number_in(done->value) : done->number;

    if (failed && asked->op.kind == LINEAR_INSERT)
        code = -MU_EEXISTS;
    r->txns += asked->is_txn && code == 0;
    linear_end(&r->history, asked->number, code, number,
               !asked->is_txn ? done->revision
               : code == 0    ? done->revision - 2
                              : 0);
}

static void take_answer(struct run *r, struct client *client,
                        const struct mu__key_done *done)
{
    for (unsigned i = 0; i < OPEN_MAX; i++) {
        struct asked *asked = &client->asked[i];
        char words[64];

        if (asked->token != done->token)
            continue;
        if (done->code == MU_EUNAVAILABLE) {
            client->registered = false; /* it was lost */
            return;
        }
        mu__view_copy(done->message, words, sizeof words);
        if (strstr(words, "is not registered") != NULL)
            return; /* it is asked again when it is */
        end_asked(r, asked, done);
        asked->token = 0;
        r->answers++;
        return;
    }
}

static void listen(struct run *r)
{
    for (unsigned c = 0; c < CLIENTS; c++) {
        const struct service_said *said;

        while ((said = service_next(r->clients[c].agent, 0)) != NULL) {
            const void *body = said->msg->body;

            if (said->msg->kind == MU__KEY_DONE)
                take_answer(r, &r->clients[c], body);
            else if (said->msg->kind == MU__TASK_ERROR)
                r->clients[c].registered = false;
        }
    }
}

/* Register, and ask again in order of tokens what was not answered. */
static void come_back(struct run *r, struct client *client)
{
    uint64_t last = 0;

    service_link_up(client->agent, 0);
    (void)service_register(client->agent, false, 0);
    client->registered = true;
    for (;;) {
        struct asked *next = NULL;

        for (unsigned i = 0; i < OPEN_MAX; i++) {
            struct asked *asked = &client->asked[i];

            if (asked->token > last && (next == NULL || asked->token < next->token))
                next = asked;
        }
        if (next == NULL)
            return;
        last = next->token;
        r->again++;
        tell_asked(client, next);
    }
}

static bool host_leads(const struct run *r)
{
    return r->s->hosts[0].kernel != NULL && service_state(r->s, 0)->leads;
}

static void come_back_all(struct run *r)
{
    for (unsigned c = 0; c < CLIENTS; c++)
        if (host_leads(r) &&
            (!r->clients[c].registered || r->clients[c].agent->nodes[0] == 0))
            come_back(r, &r->clients[c]);
}

/* ---- What happens ---- */

static void kill_host(struct run *r)
{
    service_crash(r->s, 0);
    service_run(r->s, sim_between(&r->random, 0, 300));
    service_start(r->s, 0);
    for (unsigned c = 0; c < CLIENTS; c++)
        r->clients[c].registered = false;
    r->lives++;
}

static void cut(struct run *r)
{
    struct client *client = &r->clients[sim_between(&r->random, 0, CLIENTS - 1)];

    service_link_down(client->agent, 0, "cut");
    client->registered = false;
    service_run(r->s, sim_between(&r->random, 0, 1) * sim_between(&r->random, 0, 1500));
}

/* What it had asked may happen or not; nobody will know. */
static void restart_client(struct run *r)
{
    struct client *client = &r->clients[sim_between(&r->random, 0, CLIENTS - 1)];

    for (unsigned i = 0; i < OPEN_MAX; i++)
        client->asked[i].token = 0;
    service_agent_restart(client->agent);
    client->registered = false;
}

static void fail_storage(struct run *r)
{
    enum sim_storage_op op = (enum sim_storage_op)sim_between(
        &r->random, SIM_STORAGE_APPEND, SIM_STORAGE_REPLACE);

    if (sim_chance(&r->random, 50))
        sim_storage_fail(r->s->hosts[0].storage, op, 1, -MU_EEXHAUSTED);
    else
        sim_storage_die_after(r->s->hosts[0].storage,
                              (unsigned)sim_between(&r->random, 0, 6));
}

/* A service whose store was lost in between knows nobody. */
static void notice_epoch(struct run *r, uint64_t *epoch)
{
    uint64_t now = host_leads(r) ? service_state(r->s, 0)->epoch : *epoch;

    for (unsigned c = 0; c < CLIENTS && now != *epoch; c++)
        r->clients[c].registered = false;
    *epoch = now;
}

static void step(struct run *r, const unsigned chances[4])
{
    static void (*const events[4])(struct run * r) = {kill_host, cut, restart_client,
                                                      fail_storage};

    for (unsigned i = 0; i < 4; i++)
        if (sim_chance(&r->random, chances[i]))
            events[i](r);
    if (r->s->hosts[0].storage->dead)
        kill_host(r);
    for (unsigned i = 0; i < 3; i++)
        ask(r, &r->clients[sim_between(&r->random, 0, CLIENTS - 1)]);
    if (sim_chance(&r->random, 60))
        service_run(r->s, sim_between(&r->random, 0, 60));
}

/* Whatever the host has read or done: both are there, and equal. */
static void check_pair(struct run *r)
{
    struct mu__key_value x = {.revision = 0};
    struct mu__key_value y = {.revision = 0};
    const struct mu__key_values *kv = service_state(r->s, 0)->keys->kv;
    bool there;

    there = mu__key_values_find(kv, mu__view_str("t/x"), &x);
    assert_int_equal(mu__key_values_find(kv, mu__view_str("t/y"), &y), there);
    assert_int_equal(number_in(x.value), number_in(y.value));
    assert_int_equal(y.revision, x.revision + there);
}

/* Once nothing fails any more everything is answered, but for gets that wait. */
static void calm_down(struct run *r)
{
    sim_storage_die_after(r->s->hosts[0].storage, 1u << 30);
    kill_host(r);
    come_back_all(r);
    service_run(r->s, 1000);
    come_back_all(r);
    listen(r);
    for (unsigned c = 0; c < CLIENTS; c++)
        for (unsigned i = 0; i < OPEN_MAX; i++) {
            const struct asked *asked = &r->clients[c].asked[i];

            if (is_change(asked) || asked->op.value == 0)
                assert_int_equal(asked->token, 0);
        }
}

static struct run live(uint64_t seed, const struct mu__store_kind *store)
{
    struct run r = {.random = sim_stream(seed, 9)};
    unsigned chances[4];
    uint64_t epoch = 0;

    r.s = SERVICE(.tasks = "worker:0-3", .store = store, .seed = seed);
    for (unsigned i = 0; i < 4; i++)
        chances[i] =
            (unsigned)(sim_between(&r.random, 0, 1) * sim_between(&r.random, 1, 6));
    for (unsigned c = 0; c < CLIENTS; c++) {
        r.clients[c].agent = service_agent(r.s, "worker", c);
        r.clients[c].agent->beats = true;
    }
    for (unsigned i = 0; i < STEPS; i++) {
        notice_epoch(&r, &epoch);
        come_back_all(&r);
        step(&r, chances);
        listen(&r);
        if (host_leads(&r))
            check_pair(&r);
    }
    calm_down(&r);
    service_end(r.s);
    return r;
}

static void check_seeds(const struct mu__store_kind *store)
{
    static char why[163840];
    uint64_t answers = 0;
    uint64_t again = 0;
    uint64_t lives = 0;
    uint64_t txns = 0;
    uint64_t first;
    uint64_t end;

    sim_seeds(SEEDS, &first, &end);
    for (uint64_t seed = first; seed < end; seed++) {
        struct run r = live(seed, store);

        if (!linear_check(r.history.ops, r.history.count, why, sizeof why))
            fail_msg("MUSTER_SIM_SEED=%" PRIu64 ", store %s: %s", seed, store->name, why);
        answers += r.answers;
        again += r.again;
        lives += r.lives;
        txns += r.txns;
        linear_done(&r.history);
    }
    if (end - first < SEEDS)
        return;
    assert_true(answers > (end - first) * STEPS);
    assert_true(again > 100 && lives > 100 && txns > (end - first) * STEPS / 20);
}

TEST(test_journal)
{
    check_seeds(&mu__store_journal);
}

TEST(test_slow_journal)
{
    check_seeds(&slow_kind);
}

/* The same seed lives the same life, and others live others. */
TEST(test_seeds_decide)
{
    unsigned differ = 0;
    uint64_t moments = 0;

    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct run one = live(seed, &slow_kind);
        struct run two = live(seed, &slow_kind);

        assert_int_equal(one.history.count, two.history.count);
        assert_memory_equal(one.history.ops, two.history.ops,
                            one.history.count * sizeof one.history.ops[0]);
        differ += one.history.moment != moments;
        moments = one.history.moment;
        linear_done(&one.history);
        linear_done(&two.history);
    }
    assert_true(differ >= 3);
}

TEST_PROGRAM()
