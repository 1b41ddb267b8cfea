/* The journal over the simulated storage: what was kept is read again, whatever happened
 * to the end of it. */
#include "tests/support/journal_file.h"
#include "tests/support/test.h"

/* ---- What is kept ---- */

TEST_ON(test_new_journal, struct fixture *f, set_up, tear_down)
{
    open_and_expect(f, 0);
    assert_int_equal(f->cut, 0);
    assert_int_equal(mu__journal_bytes(f->journal), HEADER_BYTES);
    assert_memory_equal(f->storage->content, "mustrjnl\2\0\0\0", HEADER_BYTES);
    reopen(f);
    assert_int_equal(f->storage->counts[SIM_STORAGE_REPLACE], 1);
}

TEST_ON(test_messages_come_back, struct fixture *f, set_up, tear_down)
{
    open_and_expect(f, 0);
    for (uint64_t id = 0; id < 40; id++) {
        append(f, id);
        if (id % 3 == 0)
            flush(f);
    }
    flush(f);
    reopen(f);
    append(f, 1000);
    flush(f);
    reopen(f);
    assert_int_equal(f->storage->counts[SIM_STORAGE_REPLACE], 1);
}

/* Nothing is asked of the disk when there is nothing to flush. */
TEST_ON(test_flush_of_nothing, struct fixture *f, set_up, tear_down)
{
    open_and_expect(f, 0);
    flush(f);
    append(f, 1);
    assert_int_equal(mu__journal_bytes(f->journal), f->storage->size);
    flush(f);
    flush(f);
    assert_int_equal(f->storage->counts[SIM_STORAGE_FLUSH], 1);
}

/* A megabyte of arguments and as much behind them, kept by the visitor beyond the
 * journal's life. */
TEST_ON(test_large_message, struct fixture *f, set_up, tear_down)
{
    struct mu__msg *msg = make(&f->pool, 4);
    struct mu__journal_scheduled *body = (void *)msg->body;

    open_and_expect(f, 0);
    append(f, 1);
    body->args = blob_value(BLOB_BYTES, BLOB_BYTES);
    assert_int_equal(mu__journal_append(f->journal, msg, &f->error), 0);
    mu__pool_put(&f->pool, msg);
    want(f, 4);
    append(f, 2);
    flush(f);
    f->keep = 4;
    reopen(f);
    leave(f);
    sim_storage_set(f->storage, NULL, 0);
    assert_non_null(f->kept);
    assert_true(f->kept->capacity < 2 * BLOB_BYTES + 1000);
    assert_int_equal(f->kept_args.head_size, BLOB_BYTES);
    assert_int_equal(f->kept_args.tail_size, BLOB_BYTES);
    assert_memory_equal(f->kept_args.head, blob, BLOB_BYTES);
    assert_memory_equal(f->kept_args.tail, blob, BLOB_BYTES);
    assert_int_equal((uintptr_t)f->kept_args.tail % 16, 0);
    assert_int_equal(f->kept->refs, 1);
    mu__buf_unref(f->kept);
}

/* ---- In parts ---- */

/* A journal of some megabytes, with messages of all sizes. The caller knows its ids. */
static void write_large(struct fixture *f)
{
    open_and_expect(f, 0);
    for (uint64_t id = 0; id < 2000; id++) {
        struct mu__msg *msg;

        append(f, id);
        if (id % 400 != 4)
            continue;
        f->keep = 1000000 + id;
        msg = make(&f->pool, f->keep);
        ((struct mu__journal_scheduled *)(void *)msg->body)->args =
            blob_value(BLOB_BYTES - (uint32_t)id, id % 800 == 4 ? BLOB_BYTES : 0);
        assert_int_equal(mu__journal_append(f->journal, msg, &f->error), 0);
        mu__pool_put(&f->pool, msg);
        want(f, f->keep);
    }
    flush(f);
    leave(f);
}

static int note_id(void *owner, struct mu__msg *msg)
{
    struct fixture *f = owner;

    f->seen.at[f->seen.count++] = id_of(msg);
    return 0;
}

/* Read it by steps of so many messages and bytes. Returns how many there were. */
static unsigned read_by_steps(struct fixture *f, size_t records_max, size_t bytes_max)
{
    const struct mu__journal_step step = {note_id, f, records_max, bytes_max};
    struct mu__journal_reading *reading = NULL;
    unsigned steps = 0;
    int rv;

    f->seen.count = 0;
    assert_int_equal(mu__journal_read_begin(&f->storage->base, &mu__messages, &f->pool,
                                            &f->error, &reading),
                     0);
    do {
        size_t before = f->seen.count;
        uint64_t bytes = mu__journal_read_progress(reading).bytes;
        struct mu__journal_progress progress;

        rv = mu__journal_read_step(reading, &step, &f->error, &f->cut, &f->journal);
        steps++;
        assert_true(f->seen.count - before <= records_max);
        if (rv == 0)
            break;
        assert_int_equal(rv, MU__STORAGE_NOT_YET);
        progress = mu__journal_read_progress(reading);
        assert_int_equal(progress.records, f->seen.count);
        assert_int_equal(progress.bytes_all, f->storage->flushed);
        assert_true(progress.bytes - bytes < bytes_max ||
                    progress.bytes - bytes < bytes_max + 2 * BLOB_BYTES + 1000);
    } while (true);
    return steps;
}

/* Messages that lie in two parts of the file, and one that is larger than any, come as
 * they were written. */
TEST_ON(test_reads_in_parts, struct fixture *f, set_up, tear_down)
{
    write_large(f);
    assert_true(f->storage->flushed > 7 * BLOB_BYTES);
    assert_true(read_by_steps(f, 1, SIZE_MAX) > 2000);
    expect_ids(&f->seen, &f->wanted, f->wanted.count);
    assert_int_equal(mu__journal_bytes(f->journal), f->storage->flushed);
    leave(f);
    assert_true(read_by_steps(f, 100, SIZE_MAX) > 20);
    leave(f);
    assert_true(read_by_steps(f, SIZE_MAX, 1) > 2000);
    leave(f);
    f->storage->counts[SIM_STORAGE_LOAD] = 0;
    assert_int_equal(read_by_steps(f, SIZE_MAX, SIZE_MAX), 1);
    assert_true(f->storage->counts[SIM_STORAGE_LOAD] > 5);
    expect_ids(&f->seen, &f->wanted, f->wanted.count);
}

/* A torn end is cut off and nothing before it is written again. What is appended then
 * comes back. */
TEST_ON(test_torn_end_of_many_parts, struct fixture *f, set_up, tear_down)
{
    uint64_t appended;

    write_large(f);
    f->storage->size = f->storage->flushed -= 5;
    appended = f->storage->counts[SIM_STORAGE_APPEND];
    (void)read_by_steps(f, 300, SIZE_MAX);
    f->wanted.count--;
    expect_ids(&f->seen, &f->wanted, f->wanted.count);
    assert_true(f->cut > 0);
    assert_int_equal(mu__journal_bytes(f->journal), f->storage->flushed);
    assert_int_equal(f->storage->counts[SIM_STORAGE_APPEND], appended);
    append(f, 5000);
    flush(f);
    leave(f);
    (void)read_by_steps(f, 300, SIZE_MAX);
    expect_ids(&f->seen, &f->wanted, f->wanted.count);
    assert_int_equal(f->cut, 0);
}

/* Damage in the midst of a large file is told with what is whole behind it. One that is
 * not read to its end leaves nothing behind. */
TEST_ON(test_damage_in_a_part, struct fixture *f, set_up, tear_down)
{
    const struct mu__journal_step step = {note_id, f, 10, SIZE_MAX};
    struct mu__journal_reading *reading = NULL;
    int rv;

    write_large(f);
    f->storage->content[3 * BLOB_BYTES] ^= 1;
    assert_int_equal(
        mu__journal_verify(&f->storage->base, MU__JOURNAL_OF_CHIEF, 1000, &f->error), 0);
    assert_int_equal(mu__journal_verify(&f->storage->base, MU__JOURNAL_OF_CHIEF,
                                        UINT64_MAX, &f->error),
                     -MU_EDATALOSS);
    f->seen.count = 0;
    assert_int_equal(mu__journal_read_begin(&f->storage->base, &mu__messages, &f->pool,
                                            &f->error, &reading),
                     0);
    do
        rv = mu__journal_read_step(reading, &step, &f->error, &f->cut, &f->journal);
    while (rv == MU__STORAGE_NOT_YET);
    assert_int_equal(rv, -MU_EDATALOSS);
    assert_non_null(strstr(f->error.message, "is damaged: its "));
    assert_non_null(strstr(f->error.message, " whole records stand behind it"));
    assert_true(f->seen.count > 400 && f->seen.count < 2000);
    assert_int_equal(mu__journal_read_begin(&f->storage->base, &mu__messages, &f->pool,
                                            &f->error, &reading),
                     0);
    assert_int_equal(mu__journal_read_step(reading, &step, &f->error, &f->cut,
                                           &f->journal),
                     MU__STORAGE_NOT_YET);
    mu__journal_read_drop(reading);
}

/* ---- Torn and damaged ends ---- */

static uint32_t little32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

/* Where the records of a good journal end: ends[0] is behind the header. */
static size_t find_ends(const uint8_t *content, size_t size, size_t *ends)
{
    size_t count = 0;

    for (size_t at = HEADER_BYTES;; at += 28 + little32(content + at + 4)) {
        ends[count] = at;
        if (at >= size)
            return count;
        count++;
    }
}

/* The first `count` messages are found, and what is appended then is found, too. */
static void expect_repaired(struct fixture *f, size_t count)
{
    size_t all = f->wanted.count;
    uint64_t displaced = f->wanted.at[count];

    open_and_expect(f, count);
    f->wanted.count = count;
    append(f, 777);
    flush(f);
    reopen(f);
    leave(f);
    f->wanted.count = all;
    f->wanted.at[count] = displaced;
}

TEST_ON(test_every_cut, struct fixture *f, set_up, tear_down)
{
    size_t ends[16];
    uint8_t *whole;
    size_t size;
    size_t count = 0;

    write_some(f, 9);
    size = f->storage->size;
    whole = malloc(size);
    assert_non_null(whole);
    memcpy(whole, f->storage->content, size);
    assert_int_equal(find_ends(whole, size, ends), 9);
    for (size_t cut = 0; cut <= size; cut++) {
        size_t good;

        while (count < 9 && ends[count + 1] <= cut)
            count++;
        good = cut < HEADER_BYTES ? 0 : ends[count];
        sim_storage_set(f->storage, whole, cut);
        open_and_expect(f, count);
        assert_int_equal(f->cut, cut - good);
        leave(f);
        sim_storage_set(f->storage, whole, cut);
        expect_repaired(f, count);
    }
    assert_int_equal(count, 9);
    free(whole);
}

/* Every bit of every byte, also of the last record: what was flushed is never cut off. */
TEST_ON(test_every_flip, struct fixture *f, set_up, tear_down)
{
    uint8_t *whole;
    size_t size;

    write_some(f, 6);
    size = f->storage->size;
    whole = malloc(size);
    assert_non_null(whole);
    memcpy(whole, f->storage->content, size);
    for (size_t bit = 0; bit < size * 8; bit++) {
        whole[bit / 8] ^= (uint8_t)(1U << bit % 8);
        sim_storage_set(f->storage, whole, size);
        assert_int_equal(try_open(f), -MU_EDATALOSS);
        assert_int_equal(f->storage->flushed, size);
        assert_memory_equal(f->storage->content, whole, size);
        whole[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    free(whole);
}

/* What a disk may give for bytes that never reached it. */
TEST_ON(test_zeros_at_the_end, struct fixture *f, set_up, tear_down)
{
    static const uint8_t zeros[5000];
    struct mu__storage *storage = &f->storage->base;

    for (size_t count = 1; count < sizeof zeros; count = count * 3 + 1) {
        write_some(f, 3);
        assert_int_equal(storage->ops->append(storage, zeros, count, NULL), 0);
        assert_int_equal(storage->ops->flush(storage, NULL), 0);
        open_and_expect(f, 3);
        assert_int_equal(f->cut, count);
        reopen(f);
        leave(f);
    }
}

TEST_ON(test_repair_that_fails, struct fixture *f, set_up, tear_down)
{
    write_some(f, 3);
    f->storage->size = f->storage->flushed -= 1;
    sim_storage_fail(f->storage, SIM_STORAGE_REPLACE, 1, -MU_EEXHAUSTED);
    assert_int_equal(try_open(f), -MU_EEXHAUSTED);
    open_and_expect(f, 2);
}

TEST_ON(test_storage_that_fails, struct fixture *f, set_up, tear_down)
{
    sim_storage_fail(f->storage, SIM_STORAGE_LOAD, 1, -MU_EUNAVAILABLE);
    assert_int_equal(try_open(f), -MU_EUNAVAILABLE);
    sim_storage_fail(f->storage, SIM_STORAGE_REPLACE, 1, -MU_EPERMISSION);
    assert_int_equal(try_open(f), -MU_EPERMISSION);
    assert_int_equal(f->error.code, -MU_EPERMISSION);
    open_and_expect(f, 0);
}

/* ---- What is not ours ---- */

TEST_ON(test_foreign_files, struct fixture *f, set_up, tear_down)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *words;
    } rows[] = {
        {"hello, world, how are you", 25, "expected a journal of muster"},
        {"m\0", 2, "expected a journal of muster"},
        {"mustrjnl\1\0\0\1", 12, "format 16777217, expected 1 to 2"},
        {"mustrjnl\3\0\0\0 and more", 21, "format 3, expected 1 to 2"},
        {"mustrjnl\3", 9, "expected a journal of muster"},
        {"mustrjnk\1\0\0\0", 12, "expected a journal of muster"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sim_storage_set(f->storage, rows[i].bytes, rows[i].size);
        assert_int_equal(try_open(f), -MU_EDATALOSS);
        if (strstr(f->error.message, rows[i].words) == NULL)
            fail_msg("row %zu: %s", i, f->error.message);
        assert_non_null(strstr(f->error.message, "sim:journal"));
        assert_int_equal(f->storage->flushed, rows[i].size);
        assert_memory_equal(f->storage->content, rows[i].bytes, rows[i].size);
    }
}

/* A table of another version: `kind` is what `like` is here. */
static struct mu__schema other_schema(struct mu__row *rows, uint16_t kind, uint16_t like)
{
    memcpy(rows, mu__messages.rows, MU__KINDS_END * sizeof *rows);
    rows[kind] = mu__messages.rows[like];
    return (struct mu__schema){.rows = rows, .rows_count = MU__KINDS_END};
}

/* One more message, by another version that calls it `kind`. */
static void append_as(struct fixture *f, const struct mu__schema *schema, uint16_t kind,
                      uint64_t id)
{
    struct mu__msg *msg = make(&f->pool, id);

    f->seen.count = 0;
    assert_int_equal(mu__journal_open(&f->storage->base, schema, &f->pool, visit, f,
                                      &f->error, NULL, &f->journal),
                     0);
    msg->kind = kind;
    assert_int_equal(mu__journal_append(f->journal, msg, &f->error), 0);
    mu__pool_put(&f->pool, msg);
    flush(f);
    leave(f);
}

/* A kind of a newer muster is skipped and stays, until a rewrite. */
TEST_ON(test_unknown_kind, struct fixture *f, set_up, tear_down)
{
    struct mu__row rows[MU__KINDS_END];
    struct mu__schema newer = other_schema(rows, MU__KINDS_END - 1, MU__JOURNAL_REMOVED);

    write_some(f, 2);
    append_as(f, &newer, MU__KINDS_END - 1, 2);
    open_and_expect(f, 2);
    append(f, 3);
    flush(f);
    reopen(f);
    assert_int_equal(mu__journal_skipped(f->journal), 1);
    mu__journal_rewrite_begin(f->journal);
    assert_int_equal(try_append(f, 3), 0);
    assert_int_equal(mu__journal_rewrite_commit(f->journal, &f->error), 0);
    f->wanted = (struct ids){.at = {3}, .count = 1};
    reopen(f);
    assert_int_equal(mu__journal_skipped(f->journal), 0);
}

/* Its sum is right, so somebody meant it: it is not for us to cut it off. */
TEST_ON(test_whole_message_that_does_not_fit, struct fixture *f, set_up, tear_down)
{
    struct mu__row rows[MU__KINDS_END];
    struct mu__schema other = other_schema(rows, MU__JOURNAL_BEGIN, MU__JOURNAL_REMOVED);
    size_t size;

    write_some(f, 2);
    append_as(f, &other, MU__JOURNAL_BEGIN, 2);
    size = f->storage->size;
    assert_int_equal(try_open(f), -MU_EDATALOSS);
    assert_non_null(strstr(f->error.message, "the message at byte "));
    assert_non_null(strstr(f->error.message, "journal_begin"));
    assert_int_equal(f->seen.count, 2);
    assert_int_equal(f->storage->flushed, size);
}

/* A record of format 1 with a right sum around these bytes. */
static void set_record(struct fixture *f, const uint8_t *bytes, size_t size)
{
    uint8_t content[HEADER_BYTES + 8 + 64] = "mustrjnl\1";
    struct mu__crc32c crc;
    uint32_t sum;

    assert_true(size <= 64);
    mu__crc32c_init(&crc);
    content[HEADER_BYTES] = (uint8_t)size;
    memcpy(content + HEADER_BYTES + 8, bytes, size);
    sum = mu__crc32c_add(&crc, 0, content + HEADER_BYTES, 4);
    sum = mu__crc32c_add(&crc, sum, bytes, size);
    for (unsigned i = 0; i < 4; i++)
        content[HEADER_BYTES + 4 + i] = (uint8_t)(sum >> (8 * i));
    sim_storage_set(f->storage, content, HEADER_BYTES + 8 + size);
}

/* [57, 0, 0, 6], the message journal_removed, and what is wrong with other bytes. */
TEST_ON(test_records_made_by_hand, struct fixture *f, set_up, tear_down)
{
    static const struct {
        uint8_t bytes[20];
        size_t size;
        int rv;
        const char *words;
    } rows[] = {
        {{5, 0, 0, 0, 0, 0, 0, 0, 0x94, 57, 0, 0, 6}, 13, 0, ""},
        {{4, 0, 0, 0, 0, 0, 0, 0, 0x93, 57, 0, 0}, 12, -MU_EDATALOSS, "journal_removed"},
        {{7, 0, 0, 0, 0, 0, 0, 0, 0x94, 0xcd, 1, 16, 0, 0, 6},
         15,
         -MU_EDATALOSS,
         "call_msg does not travel"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_record(f, rows[i].bytes, rows[i].size);
        assert_int_equal(try_open(f), rows[i].rv);
        if (rows[i].rv != 0 && strstr(f->error.message, rows[i].words) == NULL)
            fail_msg("row %zu: %s", i, f->error.message);
        assert_int_equal(f->seen.count, rows[i].rv == 0 ? 1 : 0);
        leave(f);
    }
}

TEST_ON(test_visit_ends_it, struct fixture *f, set_up, tear_down)
{
    write_some(f, 5);
    f->visit_rv = -MU_EPRECONDITION;
    f->visit_rv_at = 3;
    assert_int_equal(try_open(f), -MU_EPRECONDITION);
    assert_int_equal(f->error.code, -MU_EPRECONDITION);
    assert_int_equal(f->seen.count, 3);
    f->visit_rv = 0;
    open_and_expect(f, 5);
}

/* ---- Sums ---- */

TEST(test_crc32c)
{
    static const uint8_t ones[32] = {
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    static const uint8_t zeros[32];
    struct mu__crc32c crc;

    mu__crc32c_init(&crc);
    assert_int_equal(mu__crc32c_add(&crc, 0, "", 0), 0);
    assert_int_equal(mu__crc32c_add(&crc, 0, "123456789", 9), 0xE3069283);
    assert_int_equal(mu__crc32c_add(&crc, 0, zeros, 32), 0x8A9136AA);
    assert_int_equal(mu__crc32c_add(&crc, 0, ones, 32), 0x62A8AB43);
    for (size_t cut = 0; cut <= 9; cut++)
        assert_int_equal(mu__crc32c_add(&crc, mu__crc32c_add(&crc, 0, "123456789", cut),
                                        &"123456789"[cut], 9 - cut),
                         0xE3069283);
}

TEST_PROGRAM()
