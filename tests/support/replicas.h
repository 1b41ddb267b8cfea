/* Servers of which one partition is used, in the views that a test tells them. The chief
 * and a client are played by the test, message by message. */
#ifndef MU_TESTS_REPLICAS_H
#define MU_TESTS_REPLICAS_H

#include "actors/ps/ps.h"
#include "actors/ps/tables/table_writes.h"
#include "actors/ps/variable_store.h"
#include "runtime/base/byte_order.h"
#include "tests/support/net.h"
#include "tests/support/test.h"

enum {
    PARTITION = 7,
    ELEMENTS = 4,
    LARGE_BYTES = 1 << 20, /* filled in many pieces */
    ANSWERS_MAX = 64,
    SERVERS = 3
};

struct answer {
    uint16_t kind;
    uint64_t token;
    uint32_t code;
    uint64_t variable;
    uint32_t size;
    int64_t data[ELEMENTS];
};

struct fixture {
    struct net net;
    struct net_process *servers[SERVERS];
    struct net_process *chief;
    struct net_process *client;
    uint64_t number; /* of the last view */
    uint64_t token;
    uint64_t variable;
    uint64_t offset;     /* in it, of writes and reads */
    uint64_t generation; /* that was served last, */
    uint32_t served_by;  /* by the node that the client knows under this number */
    uint64_t effect;
    struct answer answers[ANSWERS_MAX];
    size_t answers_count;
    uint32_t news;
    bool learner_news; /* of the learner */
    uint64_t news_number;
    uint64_t
        spare_number;  /* of the last view whose backup is spare, apart from the news */
    size_t held;       /* views in the last VIEWS_HELD, */
    uint32_t restored; /* and partitions from a journal, */
    uint32_t former;   /* of so many processes, */
    bool draining;     /* and whether some server knows that it is drained */
    const char *run;   /* of servers that are started, as are */
    uint64_t spare_bytes; /* these two */
    const struct mu__store_limits *limits;
    mu_error error;
    bool strict;
};

static struct fixture *fixture;

/* ---- What is heard ---- */

static inline struct answer *add_answer(uint16_t kind, uint64_t token, uint32_t code)
{
    struct answer *answer = &fixture->answers[fixture->answers_count++];

    assert_true(fixture->answers_count <= ANSWERS_MAX);
    *answer = (struct answer){.kind = kind, .token = token, .code = code};
    return answer;
}

static inline void on_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__var_opened *body = mu__body(msg);

    (void)ctx;
    (void)state;
    add_answer(msg->kind, body->token, body->code)->variable = body->variable;
}

static inline void on_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__var_written *body = mu__body(msg);

    (void)ctx;
    (void)state;
    (void)add_answer(msg->kind, body->token, body->code);
}

static inline void on_data(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__var_data *body = mu__body(msg);
    struct answer *answer = add_answer(msg->kind, body->token, body->code);

    (void)ctx;
    (void)state;
    answer->size = body->data.size;
    assert_true(body->data.size <= sizeof answer->data);
    if (body->data.size > 0)
        memcpy(answer->data, body->data.data, body->data.size);
}

static inline void on_rows(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__table_rows *body = mu__body(msg);
    struct answer *answer = add_answer(msg->kind, body->token, body->code);

    (void)ctx;
    (void)state;
    answer->size = body->rows.size;
    assert_true(body->rows.size <= sizeof answer->data);
    if (body->rows.size > 0)
        memcpy(answer->data, body->rows.data, body->rows.size);
}

static inline void on_effect_written(struct mu__ctx *ctx, void *state,
                                     struct mu__msg *msg)
{
    const struct mu__effect_written *body = mu__body(msg);

    (void)ctx;
    (void)state;
    (void)add_answer(msg->kind, body->token, body->code + 1000 * body->again);
}

static inline void on_effects_written(struct mu__ctx *ctx, void *state,
                                      struct mu__msg *msg)
{
    const struct mu__effects_written *body = mu__body(msg);

    (void)ctx;
    (void)state;
    for (uint32_t at = 0; at < body->tokens.size; at += 8)
        (void)add_answer(msg->kind,
                         mu__load_little64((const uint8_t *)body->tokens.data + at), 0);
}

static inline void on_serves(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__serves *body = mu__body(msg);
    struct mu__numbered entry;

    (void)ctx;
    (void)state;
    for (uint32_t i = 0; i < mu__numbered_count(body->partitions); i++) {
        assert_true(mu__numbered_at(body->partitions, i, &entry));
        if (entry.partition != PARTITION || entry.number < fixture->generation)
            continue;
        fixture->generation = entry.number;
        fixture->served_by = msg->from.node;
    }
}

static const struct mu__handler client_handlers[] = {
    {MU__VAR_OPENED, on_opened},   {MU__VAR_DATA, on_data},
    {MU__VAR_WRITTEN, on_written}, {MU__EFFECT_WRITTEN, on_effect_written},
    {MU__TABLE_ROWS, on_rows},     {MU__EFFECTS_WRITTEN, on_effects_written},
    {MU__SERVES, on_serves},
};

static const struct mu__behavior client_behavior = {
    .name = "client",
    .handlers = client_handlers,
    .handlers_count = sizeof client_handlers / sizeof client_handlers[0],
};

static inline void on_held(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__views_held *body = mu__body(msg);

    (void)ctx;
    (void)state;
    fixture->held += mu__views_count(body->views);
    fixture->restored = mu__numbered_count(body->restored);
    fixture->former = body->former.size / 8;
    fixture->draining |= body->draining;
}

static inline void on_news(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__replica_news *body = mu__body(msg);
    struct mu__numbered entry;

    (void)ctx;
    (void)state;
    assert_int_equal(mu__numbered_count(body->partitions), 1);
    assert_true(mu__numbered_at(body->partitions, 0, &entry));
    assert_int_equal(entry.partition, PARTITION);
    if (body->news == MU__REPLICA_SPARE) {
        fixture->spare_number = entry.number;
        return;
    }
    fixture->news = body->news;
    fixture->learner_news = body->learner;
    fixture->news_number = entry.number;
}

static const struct mu__handler chief_handlers[] = {
    {MU__VIEWS_HELD, on_held},
    {MU__REPLICA_NEWS, on_news},
};

static const struct mu__behavior chief_behavior = {
    .name = "chief",
    .handlers = chief_handlers,
    .handlers_count = sizeof chief_handlers / sizeof chief_handlers[0],
};

/* ---- The fixture ---- */

static inline int spawn_server(struct net_process *p)
{
    const struct mu__ps_config config = {.index = p->index,
                                         .incarnation = p->incarnation,
                                         .leader = "chief",
                                         .limits = fixture->limits,
                                         .journal = (struct mu__storage *)p->arg,
                                         .cluster_name = "job",
                                         .run = fixture->run,
                                         .spare_bytes = fixture->spare_bytes,
                                         .error = &fixture->error};

    return mu__spawn(p->kernel, &mu__ps, MU__PS, &config, NULL);
}

static inline int spawn_client(struct net_process *p)
{
    return mu__spawn(p->kernel, &client_behavior, MU__VARIABLES, NULL, NULL);
}

static inline int spawn_chief(struct net_process *p)
{
    return mu__spawn(p->kernel, &chief_behavior, MU__VIEWS, NULL, NULL);
}

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    fixture = f;
    net_init(&f->net, 1);
    for (uint32_t i = 0; i < SERVERS; i++)
        f->servers[i] = net_add(&f->net, "ps", i, spawn_server);
    f->client = net_add(&f->net, "worker", 0, spawn_client);
    f->chief = net_add(&f->net, "chief", 0, spawn_chief);
    for (size_t i = 0; i < f->net.processes_count; i++)
        net_start(&f->net.processes[i]);
    net_settle(&f->net);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    net_done(&f->net);
    free(f);
    return 0;
}

/* ---- What is said ---- */

static inline void say(struct net_process *from, uint32_t actor, struct net_process *to,
                       uint16_t kind, const void *body)
{
    struct mu__msg *msg = mu__msg_heap(kind, mu__messages.rows[kind].body_size);

    assert_non_null(msg);
    memcpy(msg->body, body, mu__messages.rows[kind].body_size);
    msg->from = (mu__pid){to->numbers[from - from->net->processes], actor};
    msg->to.actor = MU__PS;
    net_deliver(to, msg);
}

/* A write to a table, of the run with that effect, to be settled. Returns its token. */
static inline uint64_t say_table_write(struct fixture *f, struct net_process *server,
                                       uint32_t operation, struct mu__view data,
                                       uint64_t effect)
{
    const struct mu__effect_write write = {.token = ++f->token,
                                           .batch = f->token,
                                           .variable = mu__table_id(mu__view_str("emb")),
                                           .operation = operation,
                                           .data = data,
                                           .last = true,
                                           .own = true,
                                           .origin = 5,
                                           .effect = effect,
                                           .partition = PARTITION,
                                           .generation = f->generation};

    say(f->client, MU__VARIABLES, server, MU__EFFECT_WRITE, &write);
    return write.token;
}

static inline struct mu__replica replica_of(const struct net_process *p)
{
    return p == NULL ? (struct mu__replica){0, 0}
                     : (struct mu__replica){p->index, p->incarnation};
}

/* A view of the partition, which the chief tells one of the servers. */
static inline void set_view(struct fixture *f, struct net_process *to,
                            struct mu__partition_view view)
{
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__views_set body = {.views = {bytes, sizeof bytes},
                                       .strict = f->strict};

    view.partition = PARTITION;
    view.store_id = 99;
    (void)mu__views_put(bytes, &view);
    say(f->chief, MU__VIEWS, to, MU__VIEWS_SET, &body);
}

static inline struct mu__partition_view next_view(struct fixture *f,
                                                  struct net_process *primary,
                                                  struct net_process *backup,
                                                  struct net_process *learner)
{
    return (struct mu__partition_view){.number = ++f->number,
                                       .primary = replica_of(primary),
                                       .backup = replica_of(backup),
                                       .learner = replica_of(learner)};
}

/* A next view, which the chief tells all its members that are there. */
static inline void change_view(struct fixture *f, struct net_process *primary,
                               struct net_process *backup, struct net_process *learner)
{
    const struct mu__partition_view view = next_view(f, primary, backup, learner);

    set_view(f, primary, view);
    if (backup != NULL)
        set_view(f, backup, view);
    if (learner != NULL)
        set_view(f, learner, view);
    net_settle(&f->net);
}

static inline const struct answer *answer_to(const struct fixture *f, uint64_t token)
{
    for (size_t i = 0; i < f->answers_count; i++)
        if (f->answers[i].token == token)
            return &f->answers[i];
    return NULL;
}

static inline const struct answer *need_answer(const struct fixture *f, uint64_t token)
{
    const struct answer *answer = answer_to(f, token);

    assert_non_null(answer);
    return answer;
}

static const uint8_t dims[8] = {ELEMENTS};
static const uint8_t large_dims[8] = {0, 0, LARGE_BYTES / 8 >> 16};
static const struct mu__var_open small = {
    .name = {"w", 1}, .dtype = MU_I64, .dims = {dims, sizeof dims}, .size = 8 * ELEMENTS};
static const struct mu__var_open large = {.name = {"large", 5},
                                          .dtype = MU_I64,
                                          .dims = {large_dims, sizeof large_dims},
                                          .size = LARGE_BYTES};

static inline void say_open(struct fixture *f, struct net_process *server,
                            struct mu__var_open open)
{
    open.token = ++f->token;
    open.shards = 1;
    open.partition = PARTITION;
    open.generation = f->generation;
    say(f->client, MU__VARIABLES, server, MU__VAR_OPEN, &open);
}

static inline void open_as(struct fixture *f, struct net_process *server,
                           const struct mu__var_open *open)
{
    struct mu__var_write zero = {
        .operation = MU__WRITE_ZERO, .partition = PARTITION, .generation = f->generation};

    say_open(f, server, *open);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, f->token)->code, 0);
    f->variable = need_answer(f, f->token)->variable;
    zero.variable = f->variable;
    zero.transfer = f->token;
    zero.token = ++f->token;
    say(f->client, MU__VARIABLES, server, MU__VAR_WRITE, &zero);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, zero.token)->code, 0);
}

static inline void open_variable(struct fixture *f, struct net_process *server)
{
    open_as(f, server, &small);
}

static const int64_t ones[ELEMENTS] = {1, 1, 1, 1};

/* Add 1 to some elements, as write `effect` of the client. */
static inline struct mu__var_write write_of(struct fixture *f, uint64_t effect)
{
    return (struct mu__var_write){.token = ++f->token,
                                  .variable = f->variable,
                                  .operation = MU__WRITE_ADD,
                                  .offset = f->offset,
                                  .data = {ones, sizeof ones},
                                  .origin = 5,
                                  .effect = effect,
                                  .partition = PARTITION,
                                  .generation = f->generation};
}

/* Returns the token. */
static inline uint64_t post_write(struct fixture *f, struct net_process *server,
                                  uint64_t effect)
{
    const struct mu__var_write write = write_of(f, effect);

    say(f->client, MU__VARIABLES, server, MU__VAR_WRITE, &write);
    net_settle(&f->net);
    return write.token;
}

static inline uint64_t add_once(struct fixture *f, struct net_process *server)
{
    return post_write(f, server, ++f->effect);
}

static inline uint64_t post_read(struct fixture *f, struct net_process *server)
{
    const struct mu__var_read read = {.token = ++f->token,
                                      .variable = f->variable,
                                      .offset = f->offset,
                                      .size = 8 * ELEMENTS,
                                      .partition = PARTITION,
                                      .generation = f->generation};

    say(f->client, MU__VARIABLES, server, MU__VAR_READ, &read);
    net_settle(&f->net);
    return read.token;
}

static inline void assert_content(struct fixture *f, struct net_process *server,
                                  int64_t expected)
{
    const struct answer *answer = need_answer(f, post_read(f, server));

    assert_int_equal(answer->code, 0);
    for (size_t i = 0; i < ELEMENTS; i++)
        assert_int_equal(answer->data[i], expected);
}

/* A partition with a backup, and a variable in it. */
static inline void begin_two(struct fixture *f)
{
    change_view(f, f->servers[0], f->servers[1], NULL);
    assert_int_equal(f->generation, mu__generation_of(1));
    open_variable(f, f->servers[0]);
}

/* Told as runs' fences are, to one server. */
static inline void fence(struct fixture *f, struct net_process *server, uint64_t origin)
{
    const struct mu__fence body = {.origin = origin, .epoch = 1};

    say(f->chief, MU__VIEWS, server, MU__FENCE, &body);
    net_settle(&f->net);
}

/* Add 1 to some elements, as an effect of a run; returns the token. */
static inline uint64_t post_effect(struct fixture *f, struct net_process *server,
                                   uint64_t origin, uint64_t effect)
{
    const struct mu__effect_write write = {.token = ++f->token,
                                           .batch = f->token,
                                           .variable = f->variable,
                                           .operation = MU__WRITE_ADD,
                                           .offset = f->offset,
                                           .data = {ones, sizeof ones},
                                           .last = true,
                                           .origin = origin,
                                           .effect = effect,
                                           .partition = PARTITION,
                                           .generation = f->generation};

    say(f->client, MU__VARIABLES, server, MU__EFFECT_WRITE, &write);
    net_settle(&f->net);
    return write.token;
}

#endif
