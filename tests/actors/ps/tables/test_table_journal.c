/* Tables of a server with a journal, over its restarts: what was answered is there, once,
 * be it in records or in what was written anew. */
#include "actors/ps/server.h"
#include "actors/ps/tables/table_writes.h"
#include "sim/world/storage.h"
#include "tests/support/replicas.h"

enum { DIM = 4, IDS = 200 };

static const struct mu__table_form emb = {
    .dim = DIM,
    .rule = {.kind = MU__RULE_ADAGRAD,
             .numbers = {[MU__RATE] = 1, [MU__INITIAL] = 0.5, [MU__EPSILON] = 1e-7}}};

static struct sim_storage *begin_journal(struct fixture *f, uint64_t spare_bytes)
{
    struct sim_storage *storage = sim_storage_new("server.journal", 5);

    net_crash(f->servers[0]);
    f->spare_bytes = spare_bytes;
    f->servers[0]->arg = storage;
    net_start(f->servers[0]);
    net_settle(&f->net);
    change_view(f, f->servers[0], NULL, NULL);
    return storage;
}

static void restart(struct fixture *f, struct sim_storage *storage)
{
    net_crash(f->servers[0]);
    sim_storage_crash(storage);
    net_start(f->servers[0]);
    net_settle(&f->net);
    change_view(f, f->servers[0], NULL, NULL);
}

static void write_table(struct fixture *f, uint32_t operation, const uint8_t *bytes,
                        uint32_t size, uint64_t effect)
{
    uint64_t token;

    f->answers_count = 0;
    token = say_table_write(f, f->servers[0], operation, (struct mu__view){bytes, size},
                            effect);
    net_run_for(&f->net, 10);
    assert_int_equal(need_answer(f, token)->code, 0);
}

static void open_emb(struct fixture *f)
{
    const struct mu__table_open open = {
        .mode = MU__TABLE_CREATE, .form = emb, .name = mu__view_str("emb")};
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];

    write_table(f, MU__WRITE_TABLE_OPEN, bytes, mu__table_open_pack(&open, bytes),
                ++f->effect);
}

static void push_all(struct fixture *f, uint64_t effect)
{
    uint8_t bytes[256 + IDS * (8 + 4 * DIM)];
    uint32_t size = mu__table_push_pack_head(&emb.rule, IDS, bytes);
    const float one = 1;

    for (uint64_t id = 0; id < IDS; id++, size += sizeof id)
        memcpy(bytes + size, &id, sizeof id);
    for (int i = 0; i < IDS * DIM; i++, size += sizeof one)
        memcpy(bytes + size, &one, sizeof one);
    write_table(f, MU__WRITE_TABLE_PUSH, bytes, size, effect);
}

static const struct mu__table *emb_of(struct net_process *server)
{
    struct ps *ps = mu__actor_state(server->kernel, (mu__pid){0, MU__PS});

    assert_non_null(ps->partitions[PARTITION]);
    return &mu__tables_first(mu__store_tables(ps->partitions[PARTITION]->store))->part;
}

/* Pushes, restarts, and pushes sent again, beside a server that never stops. */
static uint64_t pushes_after_restarts(struct fixture *f, uint64_t spare_bytes, int rounds)
{
    struct sim_storage *storage = begin_journal(f, spare_bytes);
    uint32_t pushes;
    uint64_t sum = 0;

    open_emb(f);
    for (int i = 0; i < rounds; i++) {
        push_all(f, ++f->effect);
        net_run_for(&f->net, 2000); /* it may be written anew */
        if (i % 3 == 2) {
            restart(f, storage);
            push_all(f, f->effect); /* again: it counts once */
        }
    }
    assert_int_equal(emb_of(f->servers[0])->rows, IDS);
    for (uint32_t i = 0; i < IDS; i++) {
        memcpy(&pushes, mu__table_row_at(emb_of(f->servers[0]), i) + sizeof(uint64_t),
               sizeof pushes);
        sum += pushes;
    }
    net_crash(f->servers[0]);
    sim_storage_free(storage);
    return sum;
}

TEST_ON(test_tables_in_records, struct fixture *f, set_up, tear_down)
{
    assert_int_equal(pushes_after_restarts(f, 1 << 30, 9), 9 * IDS);
}

TEST_ON(test_tables_in_a_journal_that_is_written_anew, struct fixture *f, set_up,
        tear_down)
{
    assert_int_equal(pushes_after_restarts(f, 1, 30), 30 * IDS);
}

/* ---- Damage ---- */

/* Of all rows, as copies have them. */
static uint64_t sum_of_rows(const struct ps *ps)
{
    const struct partition *p = ps->partitions[PARTITION];
    struct mu__table_cursor cursor = {.table = 0};
    uint64_t sum = p == NULL ? 0 : p->record;
    struct mu__table_piece piece;

    while (p != NULL &&
           mu__tables_next_piece(mu__store_tables(p->store), &cursor, &piece))
        for (uint32_t i = 0; i < piece.bytes.size; i++)
            sum =
                (sum ^ ((const uint8_t *)piece.bytes.data)[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Of what a process finds that begins with the file; 0: it refuses it, and names it. */
static uint64_t sum_of_file(struct fixture *f, struct sim_storage *storage)
{
    const struct mu__ps_config config = {.index = 0,
                                         .incarnation = ++f->servers[0]->incarnation,
                                         .leader = "chief",
                                         .journal = &storage->base,
                                         .cluster_name = "job",
                                         .error = &f->error};
    struct mu__kernel *kernel;
    uint64_t sum = 0;

    assert_int_equal(mu__kernel_new(&f->servers[0]->world, &mu__messages, &kernel), 0);
    if (mu__spawn(kernel, &mu__ps, MU__PS, &config, NULL) == 0)
        sum = sum_of_rows(mu__actor_state(kernel, (mu__pid){0, MU__PS}));
    else
        assert_non_null(strstr(f->error.message, "server.journal"));
    mu__kernel_free(kernel);
    return sum;
}

/* Each byte is damaged in turn, in the middle, too: the file is refused, or the same.
 * Returns how many percent of these files are refused. */
static size_t damage_each_byte(struct fixture *f, uint64_t spare_bytes)
{
    struct sim_storage *storage = begin_journal(f, spare_bytes);
    size_t refused = 0;
    uint64_t sum;
    uint8_t *whole;
    size_t size;

    open_emb(f);
    push_all(f, ++f->effect);
    net_run_for(&f->net, 2000);
    push_all(f, ++f->effect);
    net_crash(f->servers[0]);
    sim_storage_crash(storage);
    size = storage->size;
    whole = malloc(size);
    assert_non_null(whole);
    memcpy(whole, storage->content, size);
    sum = sum_of_file(f, storage);
    assert_true(sum != 0);
    for (size_t i = 0; i < size; i++) {
        uint64_t found;

        whole[i] ^= (uint8_t)(1 << i % 8);
        sim_storage_set(storage, whole, size);
        whole[i] ^= (uint8_t)(1 << i % 8);
        found = sum_of_file(f, storage);
        refused += found == 0;
        if (found != 0 && found != sum)
            fail_msg("byte %zu of %zu is damaged, and other rows are found", i, size);
    }
    free(whole);
    sim_storage_free(storage);
    return refused * 100 / size;
}

TEST_ON(test_damaged_records_are_refused, struct fixture *f, set_up, tear_down)
{
    assert_true(damage_each_byte(f, 1 << 30) > 50);
}

TEST_ON(test_a_damaged_snapshot_is_refused, struct fixture *f, set_up, tear_down)
{
    assert_true(damage_each_byte(f, 1) > 50);
}

TEST_PROGRAM()
