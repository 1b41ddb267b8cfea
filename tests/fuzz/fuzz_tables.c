/* Any messages about tables, rows, slots, initial values and optimizers, to parameter
 * servers: they stay within their memory, and copies stay alike.
 *
 * The input is messages, one after the other; each says by its first bytes of what kind
 * it is and how its fields are chosen: as they should be, or as the input has them.
 * Behind its end numbers go on that follow from it. What a client may send goes to the
 * primary of a partition, which has a backup and a learner; what a primary may send goes
 * to the learner, which may believe it. */
#include "actors/ps/initial/initial.h"
#include "actors/ps/internal.h"
#include "actors/ps/server.h"
#include "actors/ps/tables/lookup_spans.h"
#include "actors/ps/tables/table_writes.h"
#include "actors/ps/tables/write_frame.h"
#include "tests/fuzz/input_bytes.h"
#include "tests/fuzz/must.h"
#include "tests/support/net.h"

#include <string.h>

enum {
    PARTITION = 7,
    SERVERS = 3, /* primary, backup, learner */
    BYTES_MAX = 1 << 20,
    DIM = 3,
    DATA_MAX = 4096,
    ROWS = 8,       /* of the variable */
    MESSAGES = 100, /* of an input */
    ORIGIN = 5
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- The servers ---- */

struct cluster {
    struct net net;
    struct net_process *servers[SERVERS];
    struct net_process *client;
    struct net_process *chief;
    uint64_t view;
    uint64_t generation;
    uint64_t variable; /* of the partition: rows of floats */
    uint64_t token;
    uint64_t effect;
    bool is_forged; /* a replica was told what its primary does not have */
};

static const struct mu__store_limits limits = {.bytes_max = BYTES_MAX,
                                               .variables_max = 16,
                                               .waiting_max = 16,
                                               .transfers_node_max = 4,
                                               .snapshots_max = 4};

static int spawn_server(struct net_process *p)
{
    const struct mu__ps_config config = {.index = p->index,
                                         .incarnation = p->incarnation,
                                         .leader = "chief",
                                         .limits = &limits};

    return mu__spawn(p->kernel, &mu__ps, MU__PS, &config, NULL);
}

static struct cluster *cluster; /* for what the client hears */

static void on_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__var_opened *body = mu__body(msg);

    (void)ctx;
    (void)state;
    if (cluster->variable == 0)
        cluster->variable = body->variable;
}

static const struct mu__handler heard[] = {{MU__VAR_OPENED, on_opened}};
static const struct mu__behavior client = {
    .name = "client", .handlers = heard, .handlers_count = 1};

static int spawn_client(struct net_process *p)
{
    return mu__spawn(p->kernel, &client, MU__VARIABLES, NULL, NULL);
}

static int spawn_chief(struct net_process *p)
{
    return mu__spawn(p->kernel, &client, MU__VIEWS, NULL, NULL);
}

/* As it comes from the network: what has fields beyond their bounds does not. */
static void send_message(struct cluster *c, struct net_process *from, uint32_t actor,
                         struct net_process *to, uint16_t kind, const void *body)
{
    struct mu__msg *msg = mu__msg_heap(kind, mu__messages.rows[kind].body_size);
    struct mu__buf *frame;
    size_t offset = 0;
    char why[128];

    must(msg != NULL, "memory");
    memcpy(msg->body, body, mu__messages.rows[kind].body_size);
    frame = mu__buf_new(mu__encode_bound(&mu__messages, msg));
    must(frame != NULL, "memory");
    if (mu__encode(&mu__messages, msg, frame) == 0) {
        struct mu__msg *arrived = NULL;

        must(mu__decode(&mu__messages, mu__kernel_pool(to->kernel), frame, &offset, why,
                        sizeof why, &arrived) == 0,
             "what was encoded is decoded");
        arrived->from = (mu__pid){to->numbers[from - c->net.processes], actor};
        arrived->to.actor = MU__PS;
        net_deliver(to, arrived);
        net_settle(&c->net);
    }
    mu__buf_unref(frame);
    free(msg);
}

static void say_primary(struct cluster *c, uint16_t kind, const void *body)
{
    send_message(c, c->client, MU__VARIABLES, c->servers[0], kind, body);
}

static struct mu__replica replica_of(const struct net_process *p)
{
    return (struct mu__replica){p->index, p->incarnation};
}

static const struct ps *state_of(const struct net_process *p)
{
    return mu__actor_state(p->kernel, (mu__pid){MU__NODE_SELF, MU__PS});
}

static void set_views(struct cluster *c, bool has_learner)
{
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__views_set body = {.views = {bytes, sizeof bytes}};
    struct mu__partition_view view = {
        .partition = PARTITION,
        .number = ++c->view,
        .store_id = 99,
        .primary = replica_of(c->servers[0]),
        .backup = replica_of(c->servers[1]),
    };

    if (has_learner)
        view.learner = replica_of(c->servers[2]);
    (void)mu__views_put(bytes, &view);
    for (int i = 0; i < SERVERS; i++)
        send_message(c, c->chief, MU__VIEWS, c->servers[i], MU__VIEWS_SET, &body);
    c->generation = state_of(c->servers[0])->partitions[PARTITION]->generation;
}

/* As the chief does it: a learner that differs is filled anew. */
static void fill_anew(struct cluster *c)
{
    const struct partition *p = state_of(c->servers[0])->partitions[PARTITION];
    uint32_t fate = p->streams[TO_LEARNER].fate;

    if (fate != MU__REPLICA_LOST && fate != MU__REPLICA_DIVERGED)
        return;
    set_views(c, false);
    c->is_forged = false;
    set_views(c, true);
}

/* ---- Messages of clients ---- */

/* With other policies and rows in each input. */
static struct mu__table_form form;

static void choose_form(struct input_bytes *in)
{
    static const struct mu__table_policy policies[] = {
        {.admit_after = 0},
        {.admit_after = 2, .candidates = 16, .capacity = 20},
        {.ttl = 8, .unknown_zeros = true},
        {.capacity = 20, .eviction = MU__EVICT_LRU},
        {.admit_chance = 1U << 31, .capacity = 20, .eviction = MU__EVICT_LFU}};

    form = (struct mu__table_form){
        .dim = DIM,
        .dtype = take_byte(in) % 4 == 0 ? MU_BF16 : 0,
        .initial = {.kind = MU__INITIAL_UNIFORM, .a = -1, .b = 1, .seed = 3},
        .rule = {.kind = MU__RULE_ADAGRAD,
                 .numbers = {[MU__RATE] = 1, [MU__EPSILON] = 1}},
        .policy = policies[take_byte(in) % (sizeof policies / sizeof policies[0])]};
}

static uint32_t pack_open(struct input_bytes *in, uint8_t *to)
{
    const struct mu__table_open open = {.mode = (uint32_t)take_byte(in) % MU__TABLE_MODES,
                                        .form = form,
                                        .name = mu__view_str("emb")};

    return mu__table_open_pack(&open, to);
}

/* Ids in rising order, and numbers behind them. */
static uint32_t pack_push(struct input_bytes *in, uint8_t *to, bool deletes)
{
    uint32_t count = 1 + take_byte(in) % 8U;
    uint32_t size = mu__table_push_pack_head(&form.rule, count, to);
    uint64_t id = take_byte(in);

    for (uint32_t i = 0; i < count; i++, id += 1 + take_byte(in) % 4U, size += 8)
        memcpy(to + size, &id, sizeof id);
    for (uint32_t i = 0; i < (deletes ? 0 : count * DIM); i++, size += sizeof(float)) {
        float number = (float)(take_byte(in) - 100);

        memcpy(to + size, &number, sizeof number);
    }
    return size;
}

/* Numbers of rows, and content for them. */
static uint32_t pack_rows(struct input_bytes *in, uint8_t *to)
{
    uint32_t count = 1 + take_byte(in) % 4U;

    memset(to, 0, (size_t)count * (8 + DIM * 4));
    for (uint32_t i = 0; i < count; i++)
        to[(size_t)8 * i] = take_byte(in) % ROWS;
    return count * (8 + DIM * 4);
}

static uint32_t pack_numbers(struct input_bytes *in, uint8_t *to)
{
    uint32_t size = 4 * (take_byte(in) % (ROWS * DIM) + 1U);

    for (uint32_t i = 0; i < size; i++)
        to[i] = take_byte(in);
    return size;
}

static uint32_t pack_initial(struct input_bytes *in, uint8_t *to)
{
    const struct mu__initial initial = {.kind = take_byte(in) % (MU__INITIAL_KINDS + 1U),
                                        .seed = take_byte(in),
                                        .a = take_byte(in) - 100,
                                        .b = take_byte(in)};

    mu__initial_pack(&initial, choose(in, 4 * ROWS * DIM), to);
    return MU__INITIAL_BYTES;
}

static const uint32_t operations[] = {1,
                                      2,
                                      3,
                                      MU__WRITE_GRADIENT,
                                      6,
                                      7,
                                      16,
                                      17,
                                      18,
                                      19,
                                      24,
                                      25,
                                      26,
                                      27,
                                      MU__WRITE_INITIAL,
                                      33,
                                      MU__WRITE_TABLE_OPEN,
                                      MU__WRITE_TABLE_PUSH,
                                      MU__WRITE_TABLE_DELETE,
                                      MU__WRITE_TABLE_EXPIRE,
                                      MU__WRITE_TABLE_CLEAR,
                                      MU__WRITE_TABLE_ROWS,
                                      MU__WRITE_TABLE_INSERT,
                                      MU__WRITE_TABLE_INSERT + 1,
                                      20,
                                      21,
                                      22,
                                      23};

/* Ids, each with what is behind it. */
static uint32_t pack_table_rows(struct input_bytes *in, uint8_t *to, uint32_t each)
{
    uint32_t count = 1 + take_byte(in) % 4U;

    for (uint32_t i = 0; i < count * each; i++)
        to[i] = i % each > 0 && i % each < 8 ? 0 : take_byte(in);
    return count * each;
}

static uint32_t pack_expire(struct input_bytes *in, uint8_t *to)
{
    mu__table_expire_pack(take_byte(in), to);
    return MU__TABLE_EXPIRE_BYTES;
}

static struct mu__view pack_data(struct input_bytes *in, uint32_t operation, uint8_t *to)
{
    switch (operation) {
    case MU__WRITE_TABLE_OPEN:
        return spoil(in, to, pack_open(in, to));
    case MU__WRITE_TABLE_PUSH:
    case MU__WRITE_TABLE_DELETE:
        return spoil(in, to, pack_push(in, to, operation == MU__WRITE_TABLE_DELETE));
    case MU__WRITE_TABLE_EXPIRE:
        return spoil(in, to, pack_expire(in, to));
    case MU__WRITE_TABLE_ROWS:
        return spoil(in, to, pack_table_rows(in, to, mu__table_row_bytes(&form)));
    case MU__WRITE_TABLE_INSERT:
        return spoil(in, to, pack_table_rows(in, to, 8 + DIM * 4));
    case MU__WRITE_INITIAL:
        return spoil(in, to, pack_initial(in, to));
    default:
        return spoil(in, to,
                     take_byte(in) % 2 == 0 ? pack_rows(in, to) : pack_numbers(in, to));
    }
}

static struct mu__view pack_rule(struct input_bytes *in, uint8_t *to)
{
    struct mu__rule rule = mu__rule_defaults(1 + take_byte(in) % (MU__RULE_KINDS - 1U));

    rule.step = take_byte(in) % 4 == 0 ? take_number(in) : 0;
    rule.flags = take_byte(in) % 4U;
    return spoil(in, to, (uint32_t)mu__rule_pack(&rule, to));
}

static bool is_of_table(uint32_t operation)
{
    return operation >= MU__WRITE_TABLE_OPEN;
}

static void send_effect(struct cluster *c, struct input_bytes *in, uint16_t kind)
{
    uint32_t operation = operations[take_byte(in) % (sizeof operations / 4)];
    uint8_t data[DATA_MAX];
    uint8_t rule[MU__RULE_BYTES_MAX];
    const struct mu__effect_write body = {
        .token = ++c->token,
        .batch = choose(in, c->token),
        .variable = choose(in, is_of_table(operation) ? mu__table_id(mu__view_str("emb"))
                                                      : c->variable),
        .operation = (uint32_t)choose(in, operation),
        .offset = choose(in, 0),
        .data = pack_data(in, operation, data),
        .rule = pack_rule(in, rule),
        .last = take_byte(in) % 8 != 0,
        .own = take_byte(in) % 16 != 0,
        .origin = choose(in, ORIGIN),
        .effect = choose(in, ++c->effect),
        .effects_done = choose(in, 0),
        .before = (uint32_t)choose(in, 0),
        .partition = PARTITION,
        .generation = choose(in, c->generation),
    };

    say_primary(c, kind, &body);
}

/* Several, most of them pushes. */
static void send_frame(struct cluster *c, struct input_bytes *in, uint16_t kind)
{
    uint8_t heads[4 * MU__FRAME_HEAD_BYTES];
    uint8_t data[4 * DATA_MAX];
    struct mu__effect_writes body = {.own = take_byte(in) % 16 != 0,
                                     .origin = choose(in, ORIGIN),
                                     .is_record = take_byte(in) % 32 == 0};
    uint32_t count = 1 + take_byte(in) % 4U;
    uint32_t size = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t operation = MU__WRITE_TABLE_OPEN + take_byte(in) % 8U;
        struct mu__view packed = pack_data(in, operation, data + size);
        const struct mu__effect_write write = {
            .token = ++c->token,
            .variable = choose(in, mu__table_id(mu__view_str("emb"))),
            .operation = operation,
            .data = packed,
            .last = take_byte(in) % 8 != 0,
            .effect = choose(in, ++c->effect),
            .partition = (uint32_t)choose(in, PARTITION),
            .generation = choose(in, c->generation),
            .record = choose(in, 0),
        };

        (void)mu__frame_head_put(heads + (size_t)i * MU__FRAME_HEAD_BYTES, &write);
        size += packed.size;
    }
    body.heads = spoil(in, heads, count * MU__FRAME_HEAD_BYTES);
    body.data = (struct mu__view){data, size};
    say_primary(c, kind, &body);
}

static void send_sweep(struct cluster *c, struct input_bytes *in)
{
    const struct mu__table_sweep body = {.table = mu__table_id(mu__view_str("emb")),
                                         .reason = take_byte(in) % 3U,
                                         .score = UINT32_MAX,
                                         .partition = PARTITION,
                                         .generation = c->generation,
                                         .record = choose(in, 0)};

    say_primary(c, MU__TABLE_SWEEP, &body);
}

static void send_snapshot_open(struct cluster *c, struct input_bytes *in)
{
    uint64_t tables[2] = {mu__table_id(mu__view_str("emb")), take_byte(in)};
    uint8_t ids[8];
    const struct mu__snapshot_open body = {
        .token = ++c->token,
        .ids = {ids, 0},
        .tables = spoil(in, (uint8_t *)tables, 8 + 8 * (take_byte(in) % 8 == 0)),
        .only_sizes = take_byte(in) % 2 != 0,
        .since = take_byte(in) % 4U,
        .mark = take_byte(in) % 4U,
        .partition = PARTITION,
        .generation = choose(in, c->generation),
    };

    say_primary(c, MU__SNAPSHOT_OPEN, &body);
}

static void send_var_write(struct cluster *c, struct input_bytes *in)
{
    uint32_t operation = operations[take_byte(in) % (sizeof operations / 4)];
    uint8_t data[DATA_MAX];
    uint8_t rule[MU__RULE_BYTES_MAX];
    const struct mu__var_write body = {
        .token = ++c->token,
        .variable = choose(in, c->variable),
        .operation = operation,
        .transfer = choose(in, c->token),
        .offset = choose(in, 0),
        .data = pack_data(in, operation, data),
        .rule = pack_rule(in, rule),
        .origin = ORIGIN,
        .effect = choose(in, ++c->effect),
        .partition = PARTITION,
        .generation = choose(in, c->generation),
    };

    say_primary(c, MU__VAR_WRITE, &body);
}

static void send_var_read(struct cluster *c, struct input_bytes *in)
{
    uint8_t rows[DATA_MAX];
    const struct mu__var_read body = {
        .token = ++c->token,
        .variable = choose(in, c->variable),
        .offset = choose(in, 0),
        .size = (uint32_t)choose(in, 4 * DIM),
        .partition = PARTITION,
        .generation = choose(in, c->generation),
        .rows = spoil(in, rows, pack_rows(in, rows) / (8 + DIM * 4) * 8),
    };

    say_primary(c, MU__VAR_READ, &body);
}

static void send_lookup(struct cluster *c, struct input_bytes *in)
{
    uint64_t ids[16];
    uint32_t count = 1 + take_byte(in) % 16U;
    uint32_t bag_of[16];
    float weights[16] = {1, 2};
    uint8_t spans[2 * MU__LOOKUP_SPAN_BYTES];
    uint8_t *at = spans;
    struct mu__table_lookup body = {
        .token = ++c->token,
        .table = choose(in, mu__table_id(mu__view_str("emb"))),
        .dim = (uint32_t)choose(in, DIM),
    };

    for (uint32_t i = 0; i < count; i++)
        ids[i] = take_byte(in);
    for (int i = 0; i < 2; i++)
        at = mu__lookup_spans_put(
            at, &(struct mu__lookup_span){(uint32_t)choose(in, PARTITION),
                                          i == 0 ? count / 2 : count - count / 2,
                                          choose(in, c->generation)});
    body.ids = spoil(in, (uint8_t *)ids, count * 8);
    body.spans = spoil(in, spans, sizeof spans);
    if (take_byte(in) % 2 != 0) {
        for (uint32_t i = 0; i < count; i++)
            bag_of[i] = take_byte(in) % 4U;
        body.bags = (uint32_t)choose(in, 4);
        body.bag_of = spoil(in, (uint8_t *)bag_of, count * 4);
        body.weights = spoil(in, (uint8_t *)weights, take_byte(in) % 2U * count * 4);
    }
    body.dtype = (uint32_t)choose(in, form.dtype);
    say_primary(c, MU__TABLE_LOOKUP, &body);
}

/* ---- Messages of a primary ---- */

static void send_learner(struct cluster *c, uint16_t kind, const void *body)
{
    c->is_forged = true;
    send_message(c, c->servers[0], MU__PS, c->servers[2], kind, body);
}

static void send_fill_table(struct cluster *c, struct input_bytes *in)
{
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];
    const struct mu__fill_table body = {.partition = PARTITION,
                                        .view = choose(in, c->view),
                                        .open = spoil(in, bytes, pack_open(in, bytes))};

    send_learner(c, MU__FILL_TABLE, &body);
}

static void send_fill_rows(struct cluster *c, struct input_bytes *in)
{
    uint8_t rows[DATA_MAX];
    uint32_t size = mu__table_row_bytes(&form) * (1 + take_byte(in) % 4U);
    struct mu__fill_rows body = {.partition = PARTITION,
                                 .view = choose(in, c->view),
                                 .table = choose(in, mu__table_id(mu__view_str("emb")))};

    for (uint32_t i = 0; i < size; i++)
        rows[i] = take_byte(in);
    body.rows = spoil(in, rows, size);
    send_learner(c, MU__FILL_ROWS, &body);
}

static void send_fill_data(struct cluster *c, struct input_bytes *in)
{
    uint8_t data[DATA_MAX];
    const struct mu__fill_data body = {.partition = PARTITION,
                                       .view = choose(in, c->view),
                                       .variable = choose(in, c->variable),
                                       .slots = take_byte(in) % 2 != 0,
                                       .offset = choose(in, 0),
                                       .data = spoil(in, data, pack_numbers(in, data))};

    send_learner(c, MU__FILL_DATA, &body);
}

static void send_fill_shard(struct cluster *c, struct input_bytes *in)
{
    static const char *const names[] = {"w", "x", "y", ""};
    uint8_t dims[16] = {ROWS, [8] = DIM};
    const struct mu__fill_shard body = {
        .partition = PARTITION,
        .view = choose(in, c->view),
        .name = mu__view_str(names[take_byte(in) % 4]),
        .dtype = (uint32_t)choose(in, MU_F32),
        .dims = spoil(in, dims, sizeof dims),
        .shard = (uint32_t)choose(in, 0),
        .shards = (uint32_t)choose(in, 1),
        .variable = choose(in, c->variable + take_byte(in) % 4U),
        .ready = take_byte(in) % 2 != 0,
        .rule = take_byte(in) % (MU__RULE_KINDS + 1U),
        .step = choose(in, 0),
    };

    send_learner(c, MU__FILL_SHARD, &body);
}

static void send_fill_begin(struct cluster *c, struct input_bytes *in)
{
    uint8_t bits[16];
    struct mu__fill_begin body = {.partition = PARTITION,
                                  .view = choose(in, c->view),
                                  .record = choose(in, 1),
                                  .base = choose(in, 1),
                                  .end = choose(in, 1)};

    for (size_t i = 0; i < sizeof bits; i++)
        bits[i] = take_byte(in);
    body.applied = spoil(in, bits, take_byte(in) % 2 == 0 ? 0 : sizeof bits);
    send_learner(c, MU__FILL_BEGIN, &body);
}

static void send_one(struct cluster *c, struct input_bytes *in)
{
    switch (take_byte(in) % 24) {
    case 0:
        send_var_write(c, in);
        break;
    case 1:
        send_var_read(c, in);
        break;
    case 2:
    case 3:
        send_lookup(c, in);
        break;
    case 4:
        send_fill_table(c, in);
        break;
    case 5:
        send_fill_rows(c, in);
        break;
    case 6:
        send_fill_data(c, in);
        break;
    case 7:
        send_fill_shard(c, in);
        break;
    case 8:
        send_fill_begin(c, in);
        break;
    case 9:
        send_effect(c, in, MU__EFFECT_WRITE);
        break;
    case 10:
        send_frame(c, in, MU__OWN_WRITES);
        break;
    case 11:
        send_frame(c, in, MU__EFFECT_WRITES);
        break;
    case 12:
        send_sweep(c, in);
        break;
    case 13:
        send_snapshot_open(c, in);
        break;
    default:
        send_effect(c, in, MU__OWN_WRITE);
        break;
    }
}

/* ---- What must be ---- */

/* One replaced content is kept besides. */
static void check_servers(const struct cluster *c)
{
    const struct partition *p[SERVERS];

    for (int i = 0; i < SERVERS; i++) {
        const struct ps *ps = state_of(c->servers[i]);

        must(ps->bytes_used + ps->staged_used <= 2 * BYTES_MAX, "memory is bounded");
        p[i] = ps->partitions[PARTITION];
    }
    must(p[0] != NULL && p[0]->role == SERVING, "the primary serves");
    must(p[0]->streams[TO_BACKUP].fate == 0, "the backup stays");
    must(p[1]->record == p[0]->record && p[1]->sum == p[0]->sum, "and is alike");
    if (p[2] != NULL && !c->is_forged && p[2]->filling.ended &&
        p[2]->record == p[0]->record)
        must(p[2]->sum == p[0]->sum, "the learner is alike");
}

static void open_rows(struct cluster *c)
{
    static const uint8_t dims[16] = {ROWS, [8] = DIM};
    const struct mu__var_open open = {.token = ++c->token,
                                      .name = mu__view_str("w"),
                                      .dtype = MU_F32,
                                      .dims = {dims, sizeof dims},
                                      .shards = 1,
                                      .size = 4 * ROWS * DIM,
                                      .partition = PARTITION,
                                      .generation = c->generation};
    struct mu__var_write zero = {.transfer = c->token,
                                 .operation = MU__WRITE_ZERO,
                                 .partition = PARTITION,
                                 .generation = c->generation};

    say_primary(c, MU__VAR_OPEN, &open);
    must(c->variable != 0, "opened");
    zero.variable = c->variable;
    zero.token = ++c->token;
    say_primary(c, MU__VAR_WRITE, &zero);
}

static void begin_cluster(struct cluster *c)
{
    net_init(&c->net, 1);
    for (uint32_t i = 0; i < SERVERS; i++)
        c->servers[i] = net_add(&c->net, "ps", i, spawn_server);
    c->client = net_add(&c->net, "worker", 0, spawn_client);
    c->chief = net_add(&c->net, "chief", 0, spawn_chief);
    for (size_t i = 0; i < c->net.processes_count; i++)
        net_start(&c->net.processes[i]);
    net_settle(&c->net);
    set_views(c, true);
    open_rows(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input_bytes in = {data, size, {size}};
    struct cluster *c = calloc(1, sizeof *c);

    must(c != NULL, "memory");
    cluster = c;
    choose_form(&in);
    begin_cluster(c);
    for (int i = 0; i < MESSAGES; i++) {
        send_one(c, &in);
        check_servers(c);
        fill_anew(c);
    }
    net_done(&c->net);
    free(c);
    return 0;
}
