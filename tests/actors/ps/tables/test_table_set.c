/* Writes to the tables of a partition as bytes, whole and broken: what is refused changes
 * nothing, whatever the bytes are. */
#include "actors/ps/tables/table_set.h"
#include "tests/support/test.h"

#include <math.h>

enum { DIM = 3, ROUNDS = 200000 };

struct fixture {
    struct mu__table_set set;
    uint64_t used;
    uint64_t seed;
};

static uint32_t random_below(struct fixture *f, uint32_t end)
{
    f->seed = f->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(f->seed >> 33) % end;
}

static int set_set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    if (f == NULL)
        return -1;
    f->seed = 7;
    mu__tables_init(&f->set, &(struct mu__table_memory){1 << 20, &f->used, NULL}, 1);
    return 0;
}

static int set_tear_down(void **state)
{
    struct fixture *f = *state;

    mu__tables_done(&f->set);
    assert_int_equal(f->used, 0);
    free(f);
    return 0;
}

static uint32_t pack_open_of(uint8_t *bytes, enum mu__table_open_mode mode,
                             struct mu__table_policy policy)
{
    const struct mu__table_open open = {.mode = mode,
                                        .form = {.dim = DIM,
                                                 .dtype = MU_BF16,
                                                 .rule = mu__rule_defaults(MU__RULE_ADAM),
                                                 .policy = policy},
                                        .name = mu__view_str("emb")};

    return mu__table_open_pack(&open, bytes);
}

/* With every policy. */
static uint32_t pack_open(uint8_t *bytes, enum mu__table_open_mode mode)
{
    return pack_open_of(bytes, mode,
                        (struct mu__table_policy){.admit_after = 2,
                                                  .candidates = 64,
                                                  .ttl = 1 << 20,
                                                  .capacity = 90,
                                                  .eviction = MU__EVICT_LFU});
}

static uint32_t pack_expire(struct fixture *f, uint8_t *bytes)
{
    mu__table_expire_pack(random_below(f, 3000), bytes);
    return MU__TABLE_EXPIRE_BYTES;
}

static uint32_t pack_push(struct fixture *f, uint8_t *bytes)
{
    const struct mu__rule rule = mu__rule_defaults(MU__RULE_ADAM);
    uint32_t count = 1 + random_below(f, 4);
    uint32_t size = mu__table_push_pack_head(&rule, count, bytes);
    uint64_t id = random_below(f, 100);

    for (uint32_t i = 0; i < count; i++, id += 1 + random_below(f, 9), size += sizeof id)
        memcpy(bytes + size, &id, sizeof id);
    for (uint32_t i = 0; i < count * DIM; i++, size += sizeof(float)) {
        const float gradient = (float)random_below(f, 100);

        memcpy(bytes + size, &gradient, sizeof gradient);
    }
    return size;
}

/* The ids of a push are found without the rest of it, and of what is none no bytes behind
 * it are read. */
static void check_ids(struct mu__view bytes)
{
    struct mu__table_push push;
    uint32_t count = 0;
    const uint8_t *ids = mu__table_push_ids(bytes, DIM, &count);

    if (mu__table_push_unpack(bytes, DIM, &push, NULL) != 0)
        return;
    assert_ptr_equal(ids, push.ids);
    assert_int_equal(count, push.count);
}

static int check_and_apply(struct fixture *f, uint32_t operation, const uint8_t *bytes,
                           uint32_t size)
{
    /* of exactly that size, so that a sanitizer sees who reads beyond it */
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    const struct mu__table_write write = {
        mu__table_id(mu__view_str("emb")), operation, {copy, size}};
    mu_error error = {.code = 0};
    int rv;

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    check_ids(write.data);
    mu__tables_begin_batch(&f->set);
    rv = mu__tables_check(&f->set, &write, &error);
    assert_int_equal(rv, error.code);
    if (rv == 0)
        mu__tables_apply(&f->set, &write);
    free(copy);
    return rv;
}

TEST_ON(test_broken_bytes_are_refused_or_applied, struct fixture *f, set_set_up,
        set_tear_down)
{
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX + 256];
    uint32_t refused = 0;

    assert_int_equal(check_and_apply(f, MU__WRITE_TABLE_OPEN, bytes,
                                     pack_open(bytes, MU__TABLE_CREATE)),
                     0);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t operation = MU__WRITE_TABLE_OPEN + random_below(f, 4);
        uint32_t size = operation == MU__WRITE_TABLE_OPEN
                            ? pack_open(bytes, random_below(f, MU__TABLE_MODES))
                        : operation == MU__WRITE_TABLE_EXPIRE ? pack_expire(f, bytes)
                                                              : pack_push(f, bytes);
        uint32_t rows = mu__tables_first(&f->set)->part.rows;

        for (uint32_t k = random_below(f, 4); k > 0; k--)
            bytes[random_below(f, size)] ^= (uint8_t)(1 << random_below(f, 8));
        if (random_below(f, 8) == 0)
            size = random_below(f, size);
        if (check_and_apply(f, operation, bytes, size) == 0)
            continue;
        refused++;
        assert_int_equal(mu__tables_first(&f->set)->part.rows, rows);
    }
    assert_true(refused > ROUNDS / 10 && refused < ROUNDS / 10 * 9);
    assert_int_equal(f->set.count, 1);
    assert_true(f->used <= 1 << 20);
}

/* The writes of a batch are checked one after the other, and then cannot fail: rows of
 * the first are not counted on by the second. */
TEST_ON(test_a_batch_is_reserved_as_a_whole, struct fixture *f, set_set_up, set_tear_down)
{
    uint8_t bytes[2][512];
    uint32_t sizes[2];
    struct mu__table_write writes[2];
    int rv = 0;
    uint32_t rows = 0;

    assert_int_equal(check_and_apply(f, MU__WRITE_TABLE_OPEN, bytes[0],
                                     pack_open(bytes[0], MU__TABLE_CREATE)),
                     0);
    mu__tables_first(&f->set)->part.form.rows_max = 5;
    for (int i = 0; i < 100 && rv == 0; i++) {
        mu__tables_begin_batch(&f->set);
        for (int k = 0; k < 2 && rv == 0; k++) {
            sizes[k] = pack_push(f, bytes[k]);
            writes[k] = (struct mu__table_write){mu__table_id(mu__view_str("emb")),
                                                 MU__WRITE_TABLE_PUSH,
                                                 {bytes[k], sizes[k]}};
            rv = mu__tables_check(&f->set, &writes[k], NULL);
        }
        for (int k = 0; k < 2 && rv == 0; k++)
            mu__tables_apply(&f->set, &writes[k]);
        if (rv == 0)
            rows = mu__tables_first(&f->set)->part.rows;
    }
    assert_int_equal(rv, -MU_EEXHAUSTED);
    assert_true(rows <= 5);
    assert_int_equal(mu__tables_first(&f->set)->part.rows, rows);
}

/* A copy is walked while rows come and go: none is left out. */
TEST_ON(test_a_copy_lacks_nothing, struct fixture *f, set_set_up, set_tear_down)
{
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];
    struct mu__table_cursor cursor = {.table = 0};
    bool seen[128] = {false};
    struct mu__table_piece piece;
    uint64_t id;

    assert_int_equal(check_and_apply(f, MU__WRITE_TABLE_OPEN, bytes,
                                     pack_open(bytes, MU__TABLE_CREATE)),
                     0);
    mu__tables_first(&f->set)->part.slab_rows = 2;
    for (int i = 0; i < 100; i++)
        assert_int_equal(
            check_and_apply(f, MU__WRITE_TABLE_PUSH, bytes, pack_push(f, bytes)), 0);
    while (mu__tables_next_piece(&f->set, &cursor, &piece)) {
        struct mu__table *part = &mu__tables_first(&f->set)->part;

        if (piece.kind != MU__PIECE_ROWS)
            continue;
        for (uint32_t at = 0; at < piece.bytes.size; at += part->row_bytes) {
            memcpy(&id, (const uint8_t *)piece.bytes.data + at, sizeof id);
            seen[id] = true;
        }
        memcpy(&id, mu__table_row_at(part, random_below(f, part->rows)), sizeof id);
        seen[id] = true;
        assert_true(mu__table_delete(part, id));
    }
    for (uint32_t i = 0; i < mu__tables_first(&f->set)->part.rows; i++) {
        memcpy(&id, mu__table_row_at(&mu__tables_first(&f->set)->part, i), sizeof id);
        assert_true(seen[id]);
    }
}

static bool has_row(const struct mu__table *part, uint64_t id)
{
    uint64_t found;

    for (uint32_t i = 0; i < part->rows; i++) {
        memcpy(&found, mu__table_row_at(part, i), sizeof found);
        if (found == id)
            return true;
    }
    return false;
}

/* More rows go than were copied: what is left of them is not in the copy. */
TEST_ON(test_a_copy_has_no_deleted_row, struct fixture *f, set_set_up, set_tear_down)
{
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];
    struct mu__table_cursor cursor = {.table = 0};
    struct mu__table *part;
    struct mu__table_piece piece;
    uint64_t id;

    assert_int_equal(check_and_apply(f, MU__WRITE_TABLE_OPEN, bytes,
                                     pack_open_of(bytes, MU__TABLE_CREATE,
                                                  (struct mu__table_policy){0})),
                     0);
    part = &mu__tables_first(&f->set)->part;
    part->slab_rows = 2;
    for (int i = 0; i < 20; i++)
        assert_int_equal(
            check_and_apply(f, MU__WRITE_TABLE_PUSH, bytes, pack_push(f, bytes)), 0);
    assert_true(mu__tables_next_piece(&f->set, &cursor, &piece));
    while (part->rows > cursor.left - 1) {
        memcpy(&id, mu__table_row_at(part, part->rows - 1), sizeof id);
        assert_true(mu__table_delete(part, id));
    }
    while (mu__tables_next_piece(&f->set, &cursor, &piece))
        for (uint32_t at = 0; piece.kind == MU__PIECE_ROWS && at < piece.bytes.size;
             at += part->row_bytes) {
            memcpy(&id, (const uint8_t *)piece.bytes.data + at, sizeof id);
            assert_true(has_row(part, id));
        }
}

/* Of one gradient with NaN or infinity none is applied; unless its rule says so. */
TEST_ON(test_numbers_that_are_none_are_refused, struct fixture *f, set_set_up,
        set_tear_down)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    uint8_t bytes[MU__TABLE_OPEN_BYTES_MAX];

    assert_int_equal(check_and_apply(f, MU__WRITE_TABLE_OPEN, bytes,
                                     pack_open_of(bytes, MU__TABLE_CREATE,
                                                  (struct mu__table_policy){0})),
                     0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct mu__rule rule = mu__rule_defaults(MU__RULE_ADAM);
        uint64_t ids[2] = {4, 5};
        float gradients[2 * DIM] = {1, 1, 1, 1, bad[i], 1};

        for (int any = 0; any < 2; any++) {
            uint32_t size;

            rule.flags = any ? MU__RULE_ANY_NUMBER : 0;
            size = mu__table_push_pack_head(&rule, 2, bytes);
            memcpy(bytes + size, ids, sizeof ids);
            memcpy(bytes + size + sizeof ids, gradients, sizeof gradients);
            size += sizeof ids + sizeof gradients;
            assert_int_equal(check_and_apply(f, MU__WRITE_TABLE_PUSH, bytes, size),
                             any ? 0 : -MU_EINVALID);
            assert_int_equal(mu__tables_first(&f->set)->part.rows, any || i > 0 ? 2 : 0);
        }
    }
}

TEST_PROGRAM()
