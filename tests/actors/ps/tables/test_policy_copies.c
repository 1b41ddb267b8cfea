/* Policies of tables at replicas: the backup, a learner that is filled while work goes
 * on, and a server that comes back with its journal have the same as the primary, bit by
 * bit: rows, candidates, and what was counted. */
#include "actors/ps/server.h"
#include "actors/ps/tables/table_writes.h"
#include "tests/sim/storage.h"
#include "tests/support/replicas.h"

enum { DIM = 32, PUSHED = 8 };

/* ---- Writes ---- */

static const struct mu__table_form plain = {
    .dim = DIM,
    .initial = {.kind = MU__INITIAL_NORMAL, .b = 1, .seed = 17},
    .rule = {.kind = MU__RULE_ADAGRAD,
             .numbers = {[MU__RATE] = 1, [MU__INITIAL] = 0.5, [MU__EPSILON] = 1e-7}}};

static uint64_t post_to_table(struct fixture *f, uint32_t operation, const uint8_t *bytes,
                              uint32_t size)
{
    f->answers_count = 0;
    return say_table_write(f, f->servers[0], operation, (struct mu__view){bytes, size},
                           ++f->effect);
}

static void open_with(struct fixture *f, const struct mu__table_policy *policy,
                      uint32_t dtype)
{
    struct mu__table_open open = {
        .mode = MU__TABLE_CREATE, .form = plain, .name = mu__view_str("emb")};
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];
    uint64_t token;

    open.form.policy = *policy;
    open.form.dtype = dtype;
    token =
        post_to_table(f, MU__WRITE_TABLE_OPEN, bytes, mu__table_open_pack(&open, bytes));
    net_settle(&f->net);
    assert_int_equal(need_answer(f, token)->code, 0);
}

static uint64_t draw_seed = 1;

static uint64_t draw_below(uint64_t end)
{
    draw_seed = draw_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (draw_seed >> 33) % end;
}

/* Some ids below `end`, of which small ones are more common, with some gradients. */
static uint64_t post_random_push(struct fixture *f, uint32_t time, uint64_t end)
{
    uint8_t bytes[2048];
    uint32_t size = mu__table_push_pack_head_at(&plain.rule, time, PUSHED, bytes);
    uint64_t id = 0;

    for (int i = 0; i < PUSHED; i++, size += sizeof id) {
        id += 1 + draw_below(draw_below(end) + 1) / PUSHED;
        memcpy(bytes + size, &id, sizeof id);
    }
    for (int i = 0; i < PUSHED * DIM; i++, size += sizeof(float)) {
        const float gradient = (float)draw_below(100) / 64;

        memcpy(bytes + size, &gradient, sizeof gradient);
    }
    return post_to_table(f, MU__WRITE_TABLE_PUSH, bytes, size);
}

static void push_many(struct fixture *f, int pushes, uint32_t time, uint64_t end)
{
    for (int i = 0; i < pushes; i++) {
        uint64_t token = post_random_push(f, time == 0 ? 0 : time + (uint32_t)i / 4, end);

        net_settle(&f->net);
        assert_int_equal(need_answer(f, token)->code, 0);
    }
}

/* ---- What servers have ---- */

static struct mu__table *part_of(struct net_process *server)
{
    struct ps *ps = mu__actor_state(server->kernel, (mu__pid){0, MU__PS});

    assert_non_null(ps->partitions[PARTITION]);
    return &mu__tables_first(mu__store_tables(ps->partitions[PARTITION]->store))->part;
}

static const unsigned char *find_row(const struct mu__table *part, uint64_t id)
{
    for (uint32_t i = 0; i < part->rows; i++)
        if (mu__table_row_id(mu__table_row_at(part, i)) == id)
            return mu__table_row_at(part, i);
    fail_msg("no row of %d", (int)id);
    return NULL;
}

static void assert_same_parts(const struct mu__table *a, const struct mu__table *b)
{
    assert_memory_equal(&a->state, &b->state, sizeof a->state);
    assert_int_equal(a->rows, b->rows);
    for (uint32_t i = 0; i < a->rows; i++) {
        const unsigned char *row = mu__table_row_at(a, i);

        assert_memory_equal(row, find_row(b, mu__table_row_id(row)), a->row_bytes);
    }
    assert_int_equal(a->candidates.count, b->candidates.count);
    if (a->candidates.count > 0)
        assert_memory_equal(a->candidates.buckets, b->candidates.buckets,
                            a->candidates.count * sizeof *a->candidates.buckets);
}

static const struct {
    const char *what;
    struct mu__table_policy policy;
    uint32_t time; /* of the first push; 0: none is given */
    uint32_t dtype;
} rows[] = {
    {"none", {.ttl = 0}, 0, 0},
    {"narrow rows", {.ttl = 0}, 0, MU_BF16},
    {"by count", {.admit_after = 3, .candidates = 64}, 0, 0},
    {"by chance", {.admit_chance = UINT32_C(1) << 31}, 0, 0},
    {"time to live", {.ttl = 20}, 1000, 0},
    {"least recent", {.capacity = 40, .eviction = MU__EVICT_LRU}, 1000, 0},
    {"least frequent", {.capacity = 40, .eviction = MU__EVICT_LFU}, 0, 0},
    {"all of it",
     {.admit_after = 2,
      .candidates = 100,
      .ttl = 12,
      .capacity = 30,
      .eviction = MU__EVICT_LFU},
     500,
     MU_F16},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* A policy that did nothing in a test would be tested by nothing. */
static void assert_at_work(const struct mu__table *part)
{
    const struct mu__table_policy *policy = &part->form.policy;

    assert_int_equal(part->state.dropped > 0, !mu__table_policy_admits_all(policy));
    assert_int_equal(part->state.expired > 0, policy->ttl > 0);
    assert_int_equal(part->state.evicted > 0, policy->capacity > 0);
    if (policy->capacity > 0)
        assert_true(part->rows <= policy->capacity);
    assert_int_equal(part->state.made - part->state.expired - part->state.evicted,
                     part->rows);
}

static int begin_row(struct fixture **f)
{
    void *state = NULL;
    int rv = set_up(&state);

    *f = state;
    return rv;
}

static void end_row(struct fixture *f)
{
    void *state = f;

    (void)tear_down(&state);
}

/* ---- A backup ---- */

TEST(test_a_backup_has_the_same)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct fixture *f;

        assert_int_equal(begin_row(&f), 0);
        change_view(f, f->servers[0], f->servers[1], NULL);
        open_with(f, &rows[i].policy, rows[i].dtype);
        push_many(f, 400, rows[i].time, 200);
        assert_at_work(part_of(f->servers[0]));
        assert_same_parts(part_of(f->servers[0]), part_of(f->servers[1]));
        assert_int_equal(f->news, 0);
        end_row(f);
    }
}

/* A backup that becomes primary goes on with what was counted. */
TEST(test_a_new_primary_goes_on)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct mu__table_state expected;
        uint64_t seed = draw_seed;

        for (int fails = 0; fails < 2; fails++) {
            struct fixture *f;

            draw_seed = seed;
            assert_int_equal(begin_row(&f), 0);
            change_view(f, f->servers[0], f->servers[1], NULL);
            open_with(f, &rows[i].policy, rows[i].dtype);
            push_many(f, 100, rows[i].time, 200);
            if (fails) {
                struct net_process *former = f->servers[0];

                net_crash(former);
                f->servers[0] = f->servers[1];
                f->servers[1] = former;
                change_view(f, f->servers[0], NULL, NULL);
            }
            push_many(f, 100, rows[i].time == 0 ? 0 : rows[i].time + 25, 200);
            if (!fails)
                expected = part_of(f->servers[0])->state;
            else
                assert_memory_equal(&part_of(f->servers[0])->state, &expected,
                                    sizeof expected);
            end_row(f);
        }
    }
}

/* ---- A learner ---- */

/* So large that it is filled in many pieces. */
static struct mu__table_policy large_of(struct mu__table_policy policy)
{
    if (policy.candidates > 0)
        policy.candidates = 8000;
    if (policy.capacity > 0)
        policy.capacity = 2000;
    if (policy.ttl > 0)
        policy.ttl = 300;
    return policy;
}

static void begin_learner(struct fixture *f)
{
    set_view(f, f->servers[0], next_view(f, f->servers[0], NULL, f->servers[1]));
    set_view(f, f->servers[1],
             (struct mu__partition_view){.number = f->number,
                                         .primary = replica_of(f->servers[0]),
                                         .learner = replica_of(f->servers[1])});
    f->generation = mu__generation_of(f->number);
}

/* Pushes come between the pieces. */
static int push_while_filling(struct fixture *f, uint32_t time)
{
    int pushes = 0;

    for (; f->news != MU__REPLICA_LEVEL && pushes < 20000; pushes++) {
        (void)post_random_push(f, time == 0 ? 0 : time + (uint32_t)pushes / 4, 20000);
        if (pushes % 32 == 31)
            net_run_for(&f->net, 1);
    }
    net_settle(&f->net);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    return pushes;
}

TEST(test_a_learner_gets_the_same_while_work_goes_on)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct mu__table_policy policy = large_of(rows[i].policy);
        struct fixture *f;

        assert_int_equal(begin_row(&f), 0);
        change_view(f, f->servers[0], NULL, NULL);
        open_with(f, &policy, rows[i].dtype);
        push_many(f, 1500, rows[i].time, 20000);
        begin_learner(f);
        assert_true(push_while_filling(f, rows[i].time) >= 32);

        change_view(f, f->servers[0], f->servers[1], NULL);
        push_many(f, 400, rows[i].time == 0 ? 0 : rows[i].time + 400, 20000);
        assert_same_parts(part_of(f->servers[0]), part_of(f->servers[1]));
        assert_int_equal(f->news, MU__REPLICA_LEVEL);
        end_row(f);
    }
}

/* ---- A journal ---- */

static void restart(struct fixture *f, struct sim_storage *storage)
{
    net_crash(f->servers[0]);
    sim_storage_crash(storage);
    net_start(f->servers[0]);
    net_settle(&f->net);
    change_view(f, f->servers[0], NULL, NULL);
}

static void assert_journal_has_all(size_t row, uint64_t spare_bytes)
{
    struct sim_storage *storage = sim_storage_new("server.journal", 5);
    struct mu__table_state expected;
    struct fixture *f;

    assert_int_equal(begin_row(&f), 0);
    net_crash(f->servers[0]);
    f->spare_bytes = spare_bytes;
    f->servers[0]->arg = storage;
    net_start(f->servers[0]);
    net_settle(&f->net);
    change_view(f, f->servers[0], NULL, NULL);
    open_with(f, &rows[row].policy, rows[row].dtype);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 60; k++) {
            (void)post_random_push(f, rows[row].time + (uint32_t)(i * 25 + k / 4), 200);
            net_run_for(&f->net, 20); /* it may be written anew meanwhile */
        }
        net_run_for(&f->net, 2000);
        expected = part_of(f->servers[0])->state;
        restart(f, storage);
        assert_memory_equal(&part_of(f->servers[0])->state, &expected, sizeof expected);
    }
    assert_int_equal(expected.pushes, 180);
    net_crash(f->servers[0]);
    sim_storage_free(storage);
    end_row(f);
}

TEST(test_a_journal_has_the_same)
{
    for (size_t i = 0; i < ROWS; i++) {
        assert_journal_has_all(i, 1 << 30);
        assert_journal_has_all(i, 1);
    }
}

/* ---- Requests ---- */

static uint32_t expire_before(struct fixture *f, uint32_t before)
{
    uint8_t bytes[MU__TABLE_EXPIRE_BYTES];
    uint64_t token;

    mu__table_expire_pack(before, bytes);
    token = post_to_table(f, MU__WRITE_TABLE_EXPIRE, bytes, sizeof bytes);
    net_settle(&f->net);
    return need_answer(f, token)->code;
}

/* By time, or of a table without times by the number of pushes. */
TEST(test_rows_expire_when_asked)
{
    static const struct {
        struct mu__table_policy policy;
        uint32_t before;
        bool is_refused;
    } asked[] = {
        {{.eviction = MU__EVICT_LRU}, 1020, false},
        {{.eviction = MU__EVICT_LFU}, 3, false},
        {{.ttl = 1 << 20}, 1020, false},
        {{.admit_after = 1}, 3, true},
    };

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        const struct mu__table *part;
        struct fixture *f;
        uint32_t before;

        assert_int_equal(begin_row(&f), 0);
        change_view(f, f->servers[0], f->servers[1], NULL);
        open_with(f, &asked[i].policy, 0);
        push_many(f, 100, 1000, 200);
        part = part_of(f->servers[0]);
        before = part->rows;
        assert_int_equal(expire_before(f, asked[i].before),
                         asked[i].is_refused ? MU_EPRECONDITION : 0);
        assert_int_equal(part->rows < before, !asked[i].is_refused);
        assert_int_equal(part->state.expired, before - part->rows);
        for (uint32_t k = 0; k < part->rows && !asked[i].is_refused; k++)
            assert_true((asked[i].policy.eviction == MU__EVICT_LFU
                             ? mu__table_row_pushes(mu__table_row_at(part, k))
                             : mu__table_row_time(part, mu__table_row_at(part, k))) >=
                        asked[i].before);
        assert_same_parts(part, part_of(f->servers[1]));
        end_row(f);
    }
}

/* A push with NaN or infinity changes no row, and is counted, here and there. */
TEST_ON(test_refused_pushes_are_counted, struct fixture *f, set_up, tear_down)
{
    const float infinite = (float)1e38 * 100;
    const uint64_t id = 4;
    uint8_t bytes[256] = {0};
    uint32_t size = mu__table_push_pack_head(&plain.rule, 1, bytes);
    uint64_t token;

    change_view(f, f->servers[0], f->servers[1], NULL);
    open_with(f, &rows[0].policy, 0);
    memcpy(bytes + size, &id, sizeof id);
    memcpy(bytes + size + sizeof id + sizeof infinite, &infinite, sizeof infinite);
    size += (uint32_t)(sizeof id + DIM * sizeof infinite);
    for (int i = 0; i < 3; i++) {
        token = post_to_table(f, MU__WRITE_TABLE_PUSH, bytes, size);
        net_settle(&f->net);
        assert_int_equal(need_answer(f, token)->code, MU_EINVALID);
    }
    assert_int_equal(part_of(f->servers[0])->state.refused, 3);
    assert_int_equal(part_of(f->servers[0])->rows, 0);
    assert_same_parts(part_of(f->servers[0]), part_of(f->servers[1]));
}

/* Only a primary decides about sweeps. */
TEST_ON(test_a_client_cannot_sweep, struct fixture *f, set_up, tear_down)
{
    struct mu__table_sweep sweep = {.table = mu__table_id(mu__view_str("emb")),
                                    .reason = MU__SWEEP_CAPACITY,
                                    .score = UINT32_MAX,
                                    .partition = PARTITION};
    uint32_t before;

    change_view(f, f->servers[0], f->servers[1], NULL);
    open_with(f, &(struct mu__table_policy){.eviction = MU__EVICT_LFU}, 0);
    push_many(f, 3, 0, 200);
    before = part_of(f->servers[0])->rows;
    sweep.generation = f->generation;
    say(f->client, MU__VARIABLES, f->servers[0], MU__TABLE_SWEEP, &sweep);
    net_settle(&f->net);
    assert_true(before > 0);
    assert_int_equal(part_of(f->servers[0])->rows, before);
}

/* Pieces of copies that are none. */
TEST(test_pieces_that_are_refused)
{
    static const uint8_t bytes[96 * 2];
    static const struct {
        uint32_t kind;
        uint32_t size;
        int rv;
    } pieces[] = {
        {MU__PIECE_CANDIDATES, 96, 0},
        {MU__PIECE_CANDIDATES, 192, -MU_EINVALID},
        {MU__PIECE_CANDIDATES, 95, -MU_EINVALID},
        {MU__PIECE_STATE, 64, 0},
        {MU__PIECE_STATE, 63, -MU_EINVALID},
        {MU__PIECE_ROWS, 13, -MU_EINVALID},
        {MU__TABLE_PIECES, 64, -MU_EINVALID},
    };

    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct mu__table_open open = {.form = plain, .name = mu__view_str("emb")};
        uint64_t used = 0;
        struct mu__table_set set;
        struct mu__table_piece piece = {
            mu__table_id(open.name), pieces[i].kind, {bytes, pieces[i].size}};

        open.form.policy = (struct mu__table_policy){.admit_after = 2, .candidates = 8};
        mu__tables_init(&set, &(struct mu__table_memory){1 << 20, &used, NULL}, 1);
        assert_int_equal(mu__tables_put(&set, &open, (struct mu__view){NULL, 0}, NULL),
                         0);
        assert_int_equal(mu__tables_put_piece(&set, &piece, NULL), pieces[i].rv);
        piece.table++;
        assert_int_equal(mu__tables_put_piece(&set, &piece, NULL), -MU_ENOTFOUND);
        mu__tables_done(&set);
        assert_int_equal(used, 0);
    }
}

TEST_PROGRAM()
