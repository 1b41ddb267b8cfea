/* What a server is asked and answers, one message at a time: nonsense, and its status. */
#include "actors/ps/server.h"
#include "tests/support/var_net.h"

#include "runtime/message/codec.h"
#include "tests/support/test.h"

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
    heard =
        (struct probe){MU__VAR_OPENED, body->token, body->code, body->variable, "", NULL};
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

/* The partition of "w", or another one that the server serves. */
static const struct partition *partition_at(const struct net_process *server)
{
    const struct ps *ps = mu__actor_state(server->kernel, (mu__pid){0, MU__PS});
    const struct partition *p =
        ps->partitions[mu__partition_of((struct mu__view){"w", 1}, 0)];

    for (uint32_t i = 0; p == NULL && i < MU__PARTITIONS; i++)
        p = ps->partitions[i];
    assert_non_null(p);
    return p;
}

static void route(void *body, uint16_t kind, const struct partition *p)
{
    struct mu__var_open *open = body;
    struct mu__var_read *read = body;
    struct mu__var_write *write = body;

    if (kind == MU__VAR_OPEN) {
        open->partition = p->view.partition;
        open->generation = p->generation;
    } else if (kind == MU__VAR_READ) {
        read->partition = p->view.partition;
        read->generation = p->generation;
    } else if (kind == MU__VAR_WRITE) {
        write->partition = p->view.partition;
        write->generation = p->generation;
    }
}

/* Send a body of a kind from Alice's probe to a server, and hear the answer. */
static void tell(struct var_net *f, mu__pid probe, struct net_process *server,
                 uint16_t kind, const void *body)
{
    struct mu__ctx ctx = {f->alice->kernel, probe, NULL};
    struct mu__msg *msg = mu__msg_new(&ctx, kind);
    mu__pid to = {f->alice->numbers[server - f->net.processes], MU__PS};

    assert_non_null(msg);
    memcpy(msg->body, body, mu__messages.rows[kind].body_size);
    route(msg->body, kind, partition_at(server));
    heard = (struct probe){.kind = 0};
    assert_int_equal(mu__send(&ctx, to, msg), 0);
    net_settle(&f->net);
}

static mu__pid spawn_probe(struct var_net *f)
{
    mu__pid probe;

    assert_int_equal(mu__spawn(f->alice->kernel, &probe_behavior, 0, NULL, &probe), 0);
    return probe;
}

static const uint8_t dims_16[8] = {16};
static const uint8_t dims_huge[16] = {0, 0, 0, 0, 0, 0, 0, 0x80, 4};

/* The partition and the generation: as said by tell(). No record. */
#define ROUTE 0, 0, 0, 0
#define ROUTE_OF_READ \
    0, 0,             \
    {                 \
        NULL, 0       \
    } /* and no list of rows */
#define ROUTE_OF_WRITE 0, 0, 0, ROUTE
#define NAME(text)               \
    {                            \
        (text), sizeof(text) - 1 \
    }

static const struct bad_open {
    struct mu__var_open body;
    uint32_t code;
    const char *message;
} bad_opens[] = {
    {{1, NAME("v"), MU_F32, {dims_16, 8}, 0, 1, 64, false, 0, 0, ROUTE}, 0, ""},
    {{2, NAME(""), MU_F32, {dims_16, 8}, 0, 1, 64, false, 0, 0, ROUTE},
     MU_EINVALID,
     "a variable's name has 0 bytes: expected 1 to 255"},
    {{3, NAME("v\x01"), MU_F32, {dims_16, 8}, 0, 1, 64, false, 0, 0, ROUTE},
     MU_EINVALID,
     "a variable's name has a control character at byte 1"},
    {{4, NAME("v"), 77, {dims_16, 8}, 0, 1, 64, false, 0, 0, ROUTE},
     MU_EINVALID,
     "dtype 77 is unknown"},
    {{5, NAME("v"), MU_F32, {dims_16, 7}, 0, 1, 64, false, 0, 0, ROUTE},
     MU_EINVALID,
     "dims of 7 bytes: expected 8 for each"},
    {{6, NAME("v"), MU_F32, {dims_huge, 16}, 0, 1, 64, false, 0, 0, ROUTE},
     MU_ERANGE,
     "dimension 0 is 9223372036854775808: the variable would have more than "
     "4398046511104 bytes"},
    {{7, NAME("v"), MU_F32, {dims_16, 8}, 0, 0, 64, false, 0, 0, ROUTE},
     MU_ERANGE,
     "0 shards of 16 rows: expected 1 to the number of rows"},
    {{8, NAME("v"), MU_F32, {dims_16, 8}, 9, 4, 16, false, 0, 0, ROUTE},
     MU_EINVALID,
     "shard 9 of 4"},
    {{9, NAME("v"), MU_F32, {dims_16, 8}, 0, 1, UINT64_MAX, false, 0, 0, ROUTE},
     MU_EINVALID,
     "shard of 18446744073709551615 bytes: expected 64"},
};

TEST_ON(test_bad_opens, struct var_net *f, var_set_up, var_tear_down)
{
    mu__pid probe = spawn_probe(f);

    for (size_t i = 0; i < sizeof bad_opens / sizeof bad_opens[0]; i++) {
        tell(f, probe, f->servers[0], MU__VAR_OPEN, &bad_opens[i].body);
        assert_int_equal(heard.kind, MU__VAR_OPENED);
        assert_int_equal(heard.token, bad_opens[i].body.token);
        assert_string_equal(heard.message, bad_opens[i].message);
        assert_int_equal(heard.code, bad_opens[i].code);
    }
}

/* Two rows that are there, and one that is not. */
static const uint8_t rows_3_0[24] = {[0] = 3, [16] = 4};

/* Ids are filled in: 0 stands for the variable's own. */
static const struct bad_read {
    struct mu__var_read body;
    uint32_t code;
} bad_reads[] = {
    {{1, 0, 0, 16, ROUTE_OF_READ}, 0},
    {{2, 0, 16, 0, ROUTE_OF_READ}, 0},
    {{3, 0, 0, 17, ROUTE_OF_READ}, MU_ERANGE},
    {{4, 0, 16, 1, ROUTE_OF_READ}, MU_ERANGE},
    {{5, 0, UINT64_MAX, 16, ROUTE_OF_READ}, MU_ERANGE},
    {{6, 1, 0, 16, ROUTE_OF_READ}, MU_ENOTFOUND},
    {{7, UINT64_MAX, 0, 16, ROUTE_OF_READ}, MU_ENOTFOUND},
    {{8, 0, 0, 8, 0, 0, {rows_3_0, 16}}, 0},
    {{9, 0, 0, 12, 0, 0, {rows_3_0, 24}}, MU_ERANGE},
    {{10, 0, 0, 8, 0, 0, {rows_3_0, 15}}, MU_EINVALID},
    {{11, 0, 0, 16, 0, 0, {rows_3_0, 16}}, MU_EINVALID},
    {{12, 1, 0, 8, 0, 0, {rows_3_0, 16}}, MU_ENOTFOUND},
};

static const struct bad_write {
    struct mu__var_write body;
    uint32_t code;
} bad_writes[] = {
    {{1, 0, MU__WRITE_ADD, 0, 0, {var_ones, 16}, {NULL, 0}, ROUTE_OF_WRITE}, 0},
    {{2, 0, MU__WRITE_ASSIGN, 0, 0, {var_ones, 16}, {NULL, 0}, ROUTE_OF_WRITE}, 0},
    {{3, 0, MU__WRITE_ASSIGN, 9, 4, {var_ones, 4}, {NULL, 0}, ROUTE_OF_WRITE},
     MU_EABORTED},
    {{4, 0, MU__WRITE_ASSIGN, 9, 0, {var_ones, 20}, {NULL, 0}, ROUTE_OF_WRITE},
     MU_ERANGE},
    {{5, 0, MU__WRITE_ASSIGN, 9, 0, {var_ones, 0}, {NULL, 0}, ROUTE_OF_WRITE},
     MU_EINVALID},
    {{6, 0, MU__WRITE_ADD, 0, UINT64_MAX - 3, {var_ones, 4}, {NULL, 0}, ROUTE_OF_WRITE},
     MU_ERANGE},
    {{7, 0, MU__WRITE_ADD, 0, 2, {var_ones, 4}, {NULL, 0}, ROUTE_OF_WRITE}, MU_EINVALID},
    {{8, 0, MU__WRITE_ADD, 0, 0, {var_ones, 3}, {NULL, 0}, ROUTE_OF_WRITE}, MU_EINVALID},
    {{9, 0, 0, 0, 0, {var_ones, 16}, {NULL, 0}, ROUTE_OF_WRITE}, MU_EINVALID},
    {{10, 0, 255, 0, 0, {var_ones, 16}, {NULL, 0}, ROUTE_OF_WRITE}, MU_EINVALID},
    {{11, 0, MU__WRITE_ZERO, 0, 0, {var_ones, 16}, {NULL, 0}, ROUTE_OF_WRITE},
     MU_EINVALID},
    {{12, 1, MU__WRITE_ADD, 0, 0, {var_ones, 16}, {NULL, 0}, ROUTE_OF_WRITE},
     MU_ENOTFOUND},
    {{13, 0, MU__WRITE_GRADIENT, 0, 0, {var_ones, 16}, {NULL, 0}, ROUTE_OF_WRITE},
     MU_EINVALID},
    {{14, 0, MU__WRITE_GRADIENT, 0, 0, {var_ones, 16}, {var_ones, 3}, ROUTE_OF_WRITE},
     MU_EINVALID},
    {{15, 0, 5, 0, 0, {var_ones, 16}, {NULL, 0}, ROUTE_OF_WRITE}, MU_EINVALID},
};

TEST_ON(test_bad_reads_and_writes, struct var_net *f, var_set_up, var_tear_down)
{
    mu__pid probe = spawn_probe(f);
    uint64_t id = var_opened(f->alice, "w", var_four, NULL).ids[0];

    for (size_t i = 0; i < sizeof bad_reads / sizeof bad_reads[0]; i++) {
        struct mu__var_read body = bad_reads[i].body;

        body.variable = body.variable == 0 ? id : body.variable;
        tell(f, probe, var_server_of(f, "w"), MU__VAR_READ, &body);
        assert_int_equal(heard.kind, MU__VAR_DATA);
        assert_int_equal(heard.token, body.token);
        assert_int_equal(heard.code, bad_reads[i].code);
        assert_true((heard.message[0] == '\0') == (heard.code == 0));
    }
    for (size_t i = 0; i < sizeof bad_writes / sizeof bad_writes[0]; i++) {
        struct mu__var_write body = bad_writes[i].body;

        body.variable = body.variable == 0 ? id : body.variable;
        tell(f, probe, var_server_of(f, "w"), MU__VAR_WRITE, &body);
        assert_int_equal(heard.kind, MU__VAR_WRITTEN);
        assert_int_equal(heard.token, body.token);
        assert_int_equal(heard.code, bad_writes[i].code);
        assert_true((heard.message[0] == '\0') == (heard.code == 0));
    }
}

/* Data from a server to Alice, under a token. */
static void answer_data(struct var_net *f, struct net_process *server, uint64_t token,
                        struct mu__view data)
{
    mu__pid to = {server->numbers[f->alice - f->net.processes], MU__VARIABLES};
    struct mu__ctx ctx = {server->kernel, {MU__NODE_SELF, MU__PS}, NULL};
    struct mu__msg *msg = mu__msg_new(&ctx, MU__VAR_DATA);
    struct mu__var_data *body = mu__body(msg);

    body->token = token;
    body->data = data;
    assert_int_equal(mu__send(&ctx, to, msg), 0);
    net_settle(&f->net);
}

static void assert_nonsense(const struct var_request *r)
{
    assert_true(r->done);
    assert_int_equal(r->call.call.code, -MU_EDATALOSS);
    assert_string_equal(r->call.call.error.message,
                        "variable w: read: /job:ps/task:2 (tcp://ps2:1) answered "
                        "something else than was asked");
}

/* Answers that nobody waits for change nothing, nor do those of somebody else; one that
 * is too short ends the call. */
TEST_ON(test_bad_answers, struct var_net *f, var_set_up, var_tear_down)
{
    struct var_request r = var_opened(f->alice, "w", var_four, NULL);
    float data[4];

    var_aim(&r);
    r.call.target = data;
    var_server_of(f, "w")->deaf = true;
    var_post(f->alice, &r, MU__VARIABLE_READ, VAR_NEVER);
    net_settle(&f->net);
    for (uint64_t token = 0; token < 20; token++)
        answer_data(f, f->servers[1], token, (struct mu__view){var_ones, 16});
    assert_false(r.done);
    for (uint64_t token = 0; token < 20; token++)
        answer_data(f, var_server_of(f, "w"), token, (struct mu__view){var_ones, 12});
    assert_nonsense(&r);
}

/* The second piece before the first, which no server does. */
TEST_ON(test_answers_out_of_order, struct var_net *f, var_set_up, var_tear_down)
{
    const struct mu__shape shape = {MU_F32, 1, {MU__PIECE_BYTES_MAX / 2}, 1};
    float *data = var_numbers(MU__PIECE_BYTES_MAX / 2, 0);
    struct var_request r = var_opened(f->alice, "w", shape, NULL);

    var_aim(&r);
    r.call.target = data;
    var_server_of(f, "w")->deaf = true;
    var_post(f->alice, &r, MU__VARIABLE_READ, VAR_NEVER);
    net_settle(&f->net);
    for (uint64_t token = 20; token > 0; token--)
        answer_data(f, var_server_of(f, "w"), token,
                    (struct mu__view){data, MU__PIECE_BYTES_MAX});
    assert_nonsense(&r);
    free(data);
}

/* ---- Status ---- */

static int64_t number_in(const mu_value *map, const char *key)
{
    int64_t number = -1;

    assert_int_equal(mu_value_get_int(mu_value_find(map, key), &number), 0);
    return number;
}

TEST_ON(test_status, struct var_net *f, var_set_up, var_tear_down)
{
    mu__pid probe = spawn_probe(f);
    struct var_request r = var_opened(f->alice, "w", var_four, NULL);
    const struct mu__status_get get = {.token = 77};
    const mu_value *map;
    const char *text;
    size_t size;

    var_aim(&r);
    var_assert_reads(f->alice, &r, (const float[4]){0, 0, 0, 0});
    tell(f, probe, var_server_of(f, "w"), MU__STATUS_GET, &get);
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
    assert_int_equal(number_in(map, "partition"), mu__partition_of(mu__view_str("w"), 0));
    assert_int_equal(number_in(map, "bytes"), 16);
    assert_int_equal(number_in(map, "version"), 1);
    assert_int_equal(number_in(map, "reads"), 1);
    assert_int_equal(number_in(map, "bytes_read"), 16);
    mu_value_free(heard.status);
}

TEST_ON(test_status_has_an_end, struct var_net *f, var_set_up, var_tear_down)
{
    mu__pid probe = spawn_probe(f);
    const struct mu__status_get get = {.token = 78};
    char name[32];

    for (int i = 0; i < MU__PS_STATUS_MAX + 3; i++) {
        struct mu__var_open open = {
            .token = 1, .dtype = MU_F32, .dims = {dims_16, 8}, .shards = 1, .size = 64};

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

TEST_PROGRAM()
