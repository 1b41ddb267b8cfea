/* Copies of partitions: records to a backup, the loss of either, filling of a learner.
 * The chief and a client are played by the test, message by message. */
#include "actors/ps/ps.h"
#include "actors/ps/variable_store.h"
#include "tests/support/net.h"
#include "tests/support/test.h"

enum { PARTITION = 7, ELEMENTS = 4, ANSWERS_MAX = 64, SERVERS = 3 };

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
    uint64_t generation; /* that was served last, */
    uint32_t served_by;  /* by the node that the client knows under this number */
    uint64_t effect;
    struct answer answers[ANSWERS_MAX];
    size_t answers_count;
    uint32_t news;
    uint64_t news_number;
    size_t held; /* views in the last VIEWS_HELD */
};

static struct fixture *fixture;

/* ---- What is heard ---- */

static struct answer *add_answer(uint16_t kind, uint64_t token, uint32_t code)
{
    struct answer *answer = &fixture->answers[fixture->answers_count++];

    assert_true(fixture->answers_count <= ANSWERS_MAX);
    *answer = (struct answer){.kind = kind, .token = token, .code = code};
    return answer;
}

static void on_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__var_opened *body = mu__body(msg);

    (void)ctx;
    (void)state;
    add_answer(msg->kind, body->token, body->code)->variable = body->variable;
}

static void on_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__var_written *body = mu__body(msg);

    (void)ctx;
    (void)state;
    (void)add_answer(msg->kind, body->token, body->code);
}

static void on_data(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
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

static void on_effect_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__effect_written *body = mu__body(msg);

    (void)ctx;
    (void)state;
    (void)add_answer(msg->kind, body->token, body->code + 1000 * body->again);
}

static void on_serves(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
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
    {MU__SERVES, on_serves},
};

static const struct mu__behavior client_behavior = {
    .name = "client",
    .handlers = client_handlers,
    .handlers_count = sizeof client_handlers / sizeof client_handlers[0],
};

static void on_held(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__views_held *body = mu__body(msg);

    (void)ctx;
    (void)state;
    fixture->held += mu__views_count(body->views);
}

static void on_news(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__replica_news *body = mu__body(msg);
    struct mu__numbered entry;

    (void)ctx;
    (void)state;
    assert_int_equal(mu__numbered_count(body->partitions), 1);
    assert_true(mu__numbered_at(body->partitions, 0, &entry));
    assert_int_equal(entry.partition, PARTITION);
    fixture->news = body->news;
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

static int spawn_server(struct net_process *p)
{
    const struct mu__ps_config config = {p->index, p->incarnation, "chief", NULL};

    return mu__spawn(p->kernel, &mu__ps, MU__PS, &config, NULL);
}

static int spawn_client(struct net_process *p)
{
    return mu__spawn(p->kernel, &client_behavior, MU__VARIABLES, NULL, NULL);
}

static int spawn_chief(struct net_process *p)
{
    return mu__spawn(p->kernel, &chief_behavior, MU__VIEWS, NULL, NULL);
}

static int set_up(void **state)
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

static int tear_down(void **state)
{
    struct fixture *f = *state;

    net_done(&f->net);
    free(f);
    return 0;
}

/* ---- What is said ---- */

static void say(struct net_process *from, uint32_t actor, struct net_process *to,
                uint16_t kind, const void *body)
{
    struct mu__msg *msg = mu__msg_heap(kind, mu__messages.rows[kind].body_size);

    assert_non_null(msg);
    memcpy(msg->body, body, mu__messages.rows[kind].body_size);
    msg->from = (mu__pid){to->numbers[from - from->net->processes], actor};
    msg->to.actor = MU__PS;
    net_deliver(to, msg);
}

static struct mu__replica replica_of(const struct net_process *p)
{
    return p == NULL ? (struct mu__replica){0, 0}
                     : (struct mu__replica){p->index, p->incarnation};
}

/* A view of the partition, which the chief tells one of the servers. */
static void set_view(struct fixture *f, struct net_process *to,
                     struct mu__partition_view view)
{
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__views_set body = {.views = {bytes, sizeof bytes}};

    view.partition = PARTITION;
    view.store_id = 99;
    (void)mu__views_put(bytes, &view);
    say(f->chief, MU__VIEWS, to, MU__VIEWS_SET, &body);
}

/* A next view, which the chief tells all its members that are there. */
static void change_view(struct fixture *f, struct net_process *primary,
                        struct net_process *backup, struct net_process *learner)
{
    const struct mu__partition_view view = {.number = ++f->number,
                                            .primary = replica_of(primary),
                                            .backup = replica_of(backup),
                                            .learner = replica_of(learner)};

    set_view(f, primary, view);
    if (backup != NULL)
        set_view(f, backup, view);
    if (learner != NULL)
        set_view(f, learner, view);
    net_settle(&f->net);
}

static const struct answer *answer_to(const struct fixture *f, uint64_t token)
{
    for (size_t i = 0; i < f->answers_count; i++)
        if (f->answers[i].token == token)
            return &f->answers[i];
    return NULL;
}

static const struct answer *need_answer(const struct fixture *f, uint64_t token)
{
    const struct answer *answer = answer_to(f, token);

    assert_non_null(answer);
    return answer;
}

static const uint8_t dims[8] = {ELEMENTS};

static void open_variable(struct fixture *f, struct net_process *server)
{
    struct mu__var_open open = {.token = ++f->token,
                                .name = {"w", 1},
                                .dtype = MU_I64,
                                .dims = {dims, sizeof dims},
                                .shards = 1,
                                .size = 8 * ELEMENTS,
                                .partition = PARTITION,
                                .generation = f->generation};
    struct mu__var_write zero = {.token = ++f->token,
                                 .operation = MU__WRITE_ZERO,
                                 .transfer = open.token,
                                 .partition = PARTITION,
                                 .generation = f->generation};

    say(f->client, MU__VARIABLES, server, MU__VAR_OPEN, &open);
    net_settle(&f->net);
    f->variable = need_answer(f, open.token)->variable;
    assert_int_equal(need_answer(f, open.token)->code, 0);
    zero.variable = f->variable;
    say(f->client, MU__VARIABLES, server, MU__VAR_WRITE, &zero);
    net_settle(&f->net);
    assert_int_equal(need_answer(f, zero.token)->code, 0);
}

/* Add 1 to all elements, as write `effect` of the client; returns the token. */
static uint64_t post_write(struct fixture *f, struct net_process *server, uint64_t effect)
{
    static const int64_t ones[ELEMENTS] = {1, 1, 1, 1};
    const struct mu__var_write write = {.token = ++f->token,
                                        .variable = f->variable,
                                        .operation = MU__WRITE_ADD,
                                        .data = {ones, sizeof ones},
                                        .origin = 5,
                                        .effect = effect,
                                        .partition = PARTITION,
                                        .generation = f->generation};

    say(f->client, MU__VARIABLES, server, MU__VAR_WRITE, &write);
    net_settle(&f->net);
    return write.token;
}

static uint64_t add_once(struct fixture *f, struct net_process *server)
{
    return post_write(f, server, ++f->effect);
}

static uint64_t post_read(struct fixture *f, struct net_process *server)
{
    const struct mu__var_read read = {.token = ++f->token,
                                      .variable = f->variable,
                                      .size = 8 * ELEMENTS,
                                      .partition = PARTITION,
                                      .generation = f->generation};

    say(f->client, MU__VARIABLES, server, MU__VAR_READ, &read);
    net_settle(&f->net);
    return read.token;
}

static void assert_content(struct fixture *f, struct net_process *server,
                           int64_t expected)
{
    const struct answer *answer = need_answer(f, post_read(f, server));

    assert_int_equal(answer->code, 0);
    for (size_t i = 0; i < ELEMENTS; i++)
        assert_int_equal(answer->data[i], expected);
}

/* A partition with a backup, and a variable in it. */
static void begin_two(struct fixture *f)
{
    change_view(f, f->servers[0], f->servers[1], NULL);
    assert_int_equal(f->generation, 1);
    open_variable(f, f->servers[0]);
}

/* ---- Records ---- */

TEST_ON(test_a_write_is_answered_when_the_backup_has_it, struct fixture *f, set_up,
        tear_down)
{
    uint64_t write;
    uint64_t read;

    begin_two(f);
    f->servers[1]->deaf = true;
    write = add_once(f, f->servers[0]);
    read = post_read(f, f->servers[0]);
    assert_null(answer_to(f, write));
    assert_null(answer_to(f, read));
    f->servers[1]->deaf = false;
    assert_null(answer_to(f, add_once(f, f->servers[0])));
    assert_int_equal(f->news, MU__REPLICA_DIVERGED);
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(need_answer(f, write)->code, 0);
    assert_int_equal(need_answer(f, read)->data[0], 1);
    assert_content(f, f->servers[0], 2);
}

TEST_ON(test_what_was_answered_survives_the_primary, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    assert_int_equal(f->generation, 2);
    assert_content(f, f->servers[1], 3);
    assert_int_equal(need_answer(f, post_write(f, f->servers[1], f->effect))->code, 0);
    assert_content(f, f->servers[1], 3);
    assert_int_equal(need_answer(f, add_once(f, f->servers[1]))->code, 0);
    assert_content(f, f->servers[1], 4);
}

/* The backup has it, and the client has not heard so. */
TEST_ON(test_a_write_that_is_sent_again_counts_once, struct fixture *f, set_up, tear_down)
{
    uint64_t write;

    begin_two(f);
    f->client->deaf = true;
    write = add_once(f, f->servers[0]);
    f->client->deaf = false;
    assert_null(answer_to(f, write));
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    write = post_write(f, f->servers[1], f->effect);
    assert_int_equal(need_answer(f, write)->code, 0);
    assert_content(f, f->servers[1], 1);
}

TEST_ON(test_a_lost_backup_is_reported_and_waited_for, struct fixture *f, set_up,
        tear_down)
{
    uint64_t write;

    begin_two(f);
    net_crash(f->servers[1]);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LOST);
    assert_int_equal(f->news_number, 1);
    write = add_once(f, f->servers[0]);
    net_run_for(&f->net, 5000);
    assert_null(answer_to(f, write));
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(need_answer(f, write)->code, 0);
    assert_int_equal(f->generation, 1);
    assert_content(f, f->servers[0], 1);
}

/* The former primary is alive, and knows nothing of it. */
TEST_ON(test_a_cut_off_primary_completes_nothing, struct fixture *f, set_up, tear_down)
{
    uint64_t write;
    uint64_t read;

    begin_two(f);
    net_link_down(f->servers[0], f->chief);
    set_view(f, f->servers[1],
             (struct mu__partition_view){.number = ++f->number,
                                         .primary = replica_of(f->servers[1])});
    net_settle(&f->net);
    f->generation = 1;
    write = add_once(f, f->servers[0]);
    read = post_read(f, f->servers[0]);
    net_run_for(&f->net, 5000);
    assert_null(answer_to(f, write));
    assert_null(answer_to(f, read));
    f->generation = 2;
    assert_content(f, f->servers[1], 0);
}

/* Nor does it read, without a link to anybody who would know. */
TEST_ON(test_a_primary_without_news_reads_nothing, struct fixture *f, set_up, tear_down)
{
    uint64_t read;

    begin_two(f);
    net_link_down(f->servers[0], f->servers[1]);
    net_settle(&f->net);
    assert_content(f, f->servers[0], 0);
    net_link_down(f->servers[0], f->chief);
    read = post_read(f, f->servers[0]);
    assert_null(answer_to(f, read));
    net_link_up(f->servers[0], f->chief);
    net_run_for(&f->net, 10);
    assert_int_equal(need_answer(f, read)->code, 0);
}

TEST_ON(test_requests_of_another_generation_are_dropped, struct fixture *f, set_up,
        tear_down)
{
    begin_two(f);
    f->generation = 7;
    assert_null(answer_to(f, add_once(f, f->servers[0])));
    assert_null(answer_to(f, post_read(f, f->servers[0])));
    f->generation = 1;
    assert_content(f, f->servers[0], 0);
}

TEST_ON(test_a_backup_serves_nobody, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    assert_null(answer_to(f, post_read(f, f->servers[1])));
    assert_null(answer_to(f, add_once(f, f->servers[1])));
    assert_null(answer_to(f, add_once(f, f->servers[2])));
}

/* ---- Learners ---- */

TEST_ON(test_a_learner_is_filled_and_promoted, struct fixture *f, set_up, tear_down)
{
    change_view(f, f->servers[0], NULL, NULL);
    open_variable(f, f->servers[0]);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    change_view(f, f->servers[0], NULL, f->servers[2]);
    assert_int_equal(f->generation, 2);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    assert_int_equal(f->news_number, 2);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    change_view(f, f->servers[0], f->servers[2], NULL);
    assert_int_equal(f->generation, 2);
    assert_int_equal(need_answer(f, add_once(f, f->servers[0]))->code, 0);
    net_crash(f->servers[0]);
    change_view(f, f->servers[2], NULL, NULL);
    assert_content(f, f->servers[2], 3);
    assert_int_equal(need_answer(f, post_write(f, f->servers[2], 2))->code, 0);
    assert_content(f, f->servers[2], 3);
}

/* From the moment at which the chief is asked. */
TEST_ON(test_a_level_learner_is_waited_for, struct fixture *f, set_up, tear_down)
{
    uint64_t write;

    change_view(f, f->servers[0], NULL, NULL);
    open_variable(f, f->servers[0]);
    change_view(f, f->servers[0], NULL, f->servers[2]);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    f->servers[2]->deaf = true;
    write = add_once(f, f->servers[0]);
    assert_null(answer_to(f, write));
    net_crash(f->servers[2]);
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LOST);
    change_view(f, f->servers[0], NULL, NULL);
    assert_int_equal(need_answer(f, write)->code, 0);
}

TEST_ON(test_a_learner_is_never_promoted, struct fixture *f, set_up, tear_down)
{
    change_view(f, f->servers[0], NULL, NULL);
    open_variable(f, f->servers[0]);
    f->servers[2]->deaf = true;
    change_view(f, f->servers[0], NULL, f->servers[2]);
    f->servers[2]->deaf = false;
    net_crash(f->servers[0]);
    change_view(f, f->servers[2], NULL, NULL);
    assert_int_equal(f->generation, 2);
    assert_null(answer_to(f, post_read(f, f->servers[2])));
}

/* ---- Views ---- */

TEST_ON(test_older_views_are_ignored, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    change_view(f, f->servers[0], NULL, NULL);
    set_view(
        f, f->servers[0],
        (struct mu__partition_view){.number = 1, .primary = replica_of(f->servers[1])});
    assert_content(f, f->servers[0], 0);
}

static void say_view(struct fixture *f, struct net_process *from, uint32_t actor,
                     uint16_t kind)
{
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__views_set views = {.views = {bytes, sizeof bytes}};
    const struct mu__replica_view view = {.view = views.views};
    const struct mu__partition_view other = {.partition = PARTITION,
                                             .number = 50,
                                             .store_id = 3,
                                             .primary = replica_of(f->servers[2])};

    (void)mu__views_put(bytes, &other);
    say(from, actor, f->servers[0], kind,
        kind == MU__VIEWS_SET ? (const void *)&views : &view);
    net_settle(&f->net);
}

TEST_ON(test_views_of_strangers_are_ignored, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    say_view(f, f->client, MU__VIEWS, MU__VIEWS_SET);
    say_view(f, f->servers[1], MU__PS, MU__VIEWS_SET);
    say_view(f, f->client, MU__PS, MU__REPLICA_VIEW);
    assert_content(f, f->servers[0], 0);
}

/* By another server, which has heard of it from the chief. */
TEST_ON(test_a_primary_learns_that_it_was_replaced, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    say_view(f, f->servers[1], MU__PS, MU__REPLICA_VIEW);
    assert_null(answer_to(f, post_read(f, f->servers[0])));
}

TEST_ON(test_another_chief_hears_what_is_held, struct fixture *f, set_up, tear_down)
{
    begin_two(f);
    f->held = 0;
    net_restart(f->chief);
    net_settle(&f->net);
    assert_int_equal(f->held, 2);
}

TEST_PROGRAM()
