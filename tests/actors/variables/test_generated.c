/* Variables whose initial content their servers generate: the same on any number of
 * shards, whoever is lost meanwhile; and what servers refuse. */
#include "actors/ps/initial/initial.h"
#include "tests/support/test.h"
#include "tests/support/var_net.h"

static const struct mu__initial normal = {MU__INITIAL_NORMAL, 42, 0.5, 2};

static float *expected_of(const struct mu__shape *shape)
{
    size_t bytes = (size_t)mu__shape_bytes(shape);
    float *content = malloc(bytes);

    assert_non_null(content);
    mu__initial_fill(&normal, mu__view_str("v"), shape->dtype, 0, bytes / 4, content);
    return content;
}

static const struct mu__shape shapes[] = {
    {MU_F32, 0, {0}, 1},     {MU_F32, 2, {33, 3}, 1},      {MU_F32, 2, {33, 3}, 2},
    {MU_F32, 2, {33, 3}, 5}, {MU_F32, 2, {1500, 1024}, 3}, /* several pieces each */
};

TEST(test_servers_generate)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        float *expected = expected_of(&shapes[i]);
        struct var_request r;
        struct var_net *f;
        void *made = NULL;

        assert_int_equal(var_set_up(&made), 0);
        f = made;
        r = var_request_of(&f->net, "v", shapes[i]);
        var_aim(&r);
        r.call.initial = &normal;
        f->net.bytes_peak = 0;
        var_ask_ok(f->alice, &r, MU__VARIABLE_OPEN);
        assert_true(f->net.bytes_peak < 64 << 10);
        var_assert_reads(f->bob, &r, expected);
        var_ask_ok(f->bob, &r, MU__VARIABLE_VERSION);
        assert_int_equal(r.call.version, 1);
        assert_int_equal(var_tear_down(&made), 0);
        free(expected);
    }
}

struct fixture {
    struct net net;
    struct net_process *servers[2];
    struct net_process *alice;
};

/* With backups. False: it was open before the server was lost. */
static bool check_lost(const float *expected, int events)
{
    struct fixture f = {.alice = NULL};
    struct var_request r;
    bool in_time;

    net_init(&f.net, 1);
    for (uint32_t i = 0; i < 2; i++)
        f.servers[i] = net_add(&f.net, "ps", i, var_spawn_server);
    f.alice = net_add(&f.net, "worker", 0, var_spawn_program);
    (void)var_start(&f.net, true);
    r = var_request_of(&f.net, "v", var_large);
    var_aim(&r);
    r.call.initial = &normal;
    var_post(f.alice, &r, MU__VARIABLE_OPEN, VAR_NEVER);
    for (int i = 0; i < events && !r.done; i++)
        (void)net_step(&f.net);
    in_time = !r.done;
    net_crash(f.servers[0]);
    for (int i = 0; i < 10000 && !r.done; i++)
        net_run_for(&f.net, 1);
    assert_true(r.done);
    assert_int_equal(r.call.call.code, 0);
    var_assert_reads(f.alice, &r, expected);
    net_done(&f.net);
    return in_time;
}

TEST(test_a_server_is_lost_meanwhile)
{
    float *expected = expected_of(&var_large);
    int moments = 0;

    for (int events = 0; check_lost(expected, events); events += 1 + events / 4)
        moments++;
    assert_true(moments >= 8);
    free(expected);
}

/* ---- What a server refuses ---- */

static const struct bad_piece {
    struct mu__initial initial;
    uint64_t offset;
    uint64_t size;
    uint32_t bytes;
    int code;
} bad_pieces[] = {
    {{MU__INITIAL_NORMAL, 0, 0, 1}, 0, 64, 39, MU_EINVALID},
    {{MU__INITIAL_NORMAL, 0, 0, 1}, 0, 0, 40, MU_EINVALID},
    {{MU__INITIAL_NORMAL, 0, 0, 1}, 0, 62, 40, MU_EINVALID},
    {{MU__INITIAL_NORMAL, 0, 0, 1}, 2, 4, 40, MU_EINVALID},
    {{MU__INITIAL_NORMAL, 0, 0, 1}, 0, 68, 40, MU_ERANGE},
    {{MU__INITIAL_NORMAL, 0, 0, 1}, 0, UINT64_MAX - 3, 40, MU_EINVALID},
    {{MU__INITIAL_NORMAL, 0, 0, 1}, 4, 60, 40, MU_EABORTED},
    {{MU__INITIAL_NORMAL, 0, 0, -1}, 0, 64, 40, MU_EINVALID},
    {{MU__INITIAL_KINDS, 0, 0, 1}, 0, 64, 40, MU_EINVALID},
    {{MU__INITIAL_CONSTANT, 0, 1e39, 0}, 0, 64, 40, MU_ERANGE},
};

static struct mu__variable_store *store_with(uint64_t *ret_id)
{
    static const struct mu__store_open open = {.name = {"v", 1},
                                               .shape = {MU_F32, 1, {16}, 1},
                                               .bytes = 64,
                                               .requester = {{7, 5}, 1}};
    struct mu__variable_store *store = mu__store_new(&mu__store_limits_default, 1);
    struct mu__store_opened opened;

    assert_non_null(store);
    assert_int_equal(mu__store_open(store, &open, NULL), 0);
    assert_true(mu__store_next_opened(store, &opened));
    *ret_id = opened.id;
    return store;
}

static int write_piece(struct mu__variable_store *store, uint64_t id,
                       const struct bad_piece *piece)
{
    uint8_t data[MU__INITIAL_BYTES];
    const struct mu__store_write write = {.id = id,
                                          .operation = MU__WRITE_INITIAL,
                                          .transfer = 1,
                                          .offset = piece->offset,
                                          .data = {data, piece->bytes},
                                          .writer = {7, 5}};
    uint64_t version;

    mu__initial_pack(&piece->initial, piece->size, data);
    return mu__store_write(store, &write, NULL, &version);
}

TEST(test_bad_pieces)
{
    const struct bad_piece whole = {{MU__INITIAL_NORMAL, 0, 0, 1}, 0, 64, 40, 0};
    uint64_t id;
    struct mu__variable_store *store = store_with(&id);

    for (size_t i = 0; i < sizeof bad_pieces / sizeof bad_pieces[0]; i++)
        assert_int_equal(-write_piece(store, id, &bad_pieces[i]), bad_pieces[i].code);
    assert_int_equal(write_piece(store, id, &whole), 0);
    assert_int_equal(mu__store_version(store, id), 1);
    assert_int_equal(write_piece(store, id, &whole), -MU_EPRECONDITION);
    mu__store_free(store);
}

TEST_PROGRAM()
