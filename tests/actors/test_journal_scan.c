/* Where a journal file is damaged: what is whole is found, what is lost is counted, and
 * a torn end is told from damage. Files are made by hand here, in both formats. */
#include "actors/coordination/store/journal.h"
#include "actors/coordination/store/journal_scan.h"
#include "actors/messages.h"
#include "sim/world/random.h"
#include "sim/world/storage.h"
#include "tests/support/test.h"

enum { FILE_BYTES = 64 << 10, RECORDS_MAX = 64, SEEDS = 400 };

/* A file and where its records end; ends[0] is behind the header. */
struct file {
    uint8_t bytes[FILE_BYTES];
    size_t size;
    size_t ends[RECORDS_MAX + 1];
    size_t records;
    uint32_t format;
    struct mu__crc32c crc;
};

static void begin_file(struct file *f, uint32_t format)
{
    memset(f, 0, sizeof *f);
    mu__crc32c_init(&f->crc);
    mu__journal_put_header(f->bytes);
    f->bytes[MU__JOURNAL_MAGIC_BYTES] = (uint8_t)format;
    f->format = format;
    f->size = f->ends[0] = MU__JOURNAL_HEADER_BYTES;
}

static void put_little32(uint8_t *out, uint32_t number)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(number >> (8 * i));
}

/* A message JOURNAL_REMOVED of that number: [57, 0, 0, number]. */
static size_t make_message(uint8_t *out, uint16_t number)
{
    /* clang-format off */
    const uint8_t bytes[] = {7, 0, 0, 0, 0, 0, 0, 0, 0x94, 57, 0, 0, 0xCD,
                             (uint8_t)(number >> 8), (uint8_t)number};
    /* clang-format on */

    memcpy(out, bytes, sizeof bytes);
    return sizeof bytes;
}

static void add_bytes(struct file *f, uint64_t number, size_t size)
{
    uint8_t *record = f->bytes + f->size;

    if (f->format == MU__JOURNAL_FORMAT) {
        mu__journal_put_frame(&f->crc, record, number, (uint32_t)size);
        f->size += MU__JOURNAL_HEAD_BYTES + size + MU__JOURNAL_FOOT_BYTES;
    } else {
        uint32_t sum;

        put_little32(record, (uint32_t)size);
        sum = mu__crc32c_add(&f->crc, 0, record, 4);
        put_little32(record + 4, mu__crc32c_add(&f->crc, sum, record + 8, size));
        f->size += 8 + size;
    }
    assert_true(f->size < FILE_BYTES);
    f->ends[++f->records] = f->size;
}

static uint8_t *message_place(struct file *f)
{
    return f->bytes + f->size +
           (f->format == MU__JOURNAL_FORMAT ? MU__JOURNAL_HEAD_BYTES : 8);
}

static void add_records(struct file *f, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t number = f->records + 1;

        add_bytes(f, number, make_message(message_place(f), (uint16_t)(300 + number)));
    }
}

static void make_file(struct file *f, uint32_t format, size_t count)
{
    begin_file(f, format);
    add_records(f, count);
}

/* ---- What a scan says ---- */

struct seen {
    size_t records;
    size_t damages;
    uint64_t lost;
    size_t torn_bytes;
    size_t bytes;                    /* of all pieces */
    struct mu__journal_piece damage; /* the first */
};

/* The next piece of a file of which the scan has `part` bytes at a time, or so many as it
 * asks for. */
static void next_piece(struct mu__journal_scan *scan, const uint8_t *bytes, size_t size,
                       size_t part, struct mu__journal_piece *piece)
{
    for (;;) {
        size_t left = size - (scan->base + scan->at);
        size_t given;

        mu__journal_scan_next(scan, piece);
        if (piece->kind != MU__JOURNAL_MORE)
            return;
        assert_true(scan->has_more);
        given = piece->bytes > part ? piece->bytes : part;
        mu__journal_scan_move(scan, bytes + piece->offset, given < left ? given : left,
                              given < left);
    }
}

static struct seen scan_by_parts(const uint8_t *bytes, size_t size, size_t part)
{
    struct mu__journal_scan scan;
    struct mu__journal_piece piece;
    struct seen seen = {0};
    mu_error error;

    assert_int_equal(
        mu__journal_scan_begin(&scan, bytes, part < size ? part : size, "f", &error), 0);
    scan.has_more = part < size;
    seen.bytes = scan.at;
    do {
        next_piece(&scan, bytes, size, part, &piece);
        assert_int_equal(piece.offset, seen.bytes);
        seen.bytes += piece.bytes;
        if (piece.kind == MU__JOURNAL_RECORD)
            seen.records++;
        else if (piece.kind == MU__JOURNAL_TORN)
            seen.torn_bytes = piece.bytes;
        else if (piece.kind == MU__JOURNAL_DAMAGED) {
            if (seen.damages++ == 0)
                seen.damage = piece;
            seen.lost += piece.records;
        }
    } while (piece.kind != MU__JOURNAL_END);
    assert_int_equal(seen.bytes, size);
    return seen;
}

/* However large the parts are in which a file is scanned, the same is seen. */
static struct seen scan_all(const uint8_t *bytes, size_t size)
{
    struct seen seen = scan_by_parts(bytes, size, SIZE_MAX);

    for (size_t part = 40; part < 400; part += 61) {
        struct seen by_parts = scan_by_parts(bytes, size, part);

        assert_int_equal(by_parts.records, seen.records);
        assert_int_equal(by_parts.damages, seen.damages);
        assert_int_equal(by_parts.lost, seen.lost);
        assert_int_equal(by_parts.torn_bytes, seen.torn_bytes);
        assert_int_equal(by_parts.damage.offset, seen.damage.offset);
        assert_int_equal(by_parts.damage.bytes, seen.damage.bytes);
        assert_string_equal(by_parts.damage.what, seen.damage.what);
    }
    return seen;
}

static struct seen scan_file(const struct file *f)
{
    return scan_all(f->bytes, f->size);
}

/* ---- Properties, of both formats ---- */

/* A file that ends too early has a torn end, and all records before it. */
static void expect_cuts(uint32_t format)
{
    struct file f;
    size_t whole = 0;

    make_file(&f, format, 7);
    for (size_t size = MU__JOURNAL_HEADER_BYTES; size <= f.size; size++) {
        struct seen seen = scan_all(f.bytes, size);

        while (whole < f.records && f.ends[whole + 1] <= size)
            whole++;
        assert_int_equal(seen.records, whole);
        assert_int_equal(seen.damages, 0);
        assert_int_equal(seen.torn_bytes, size - f.ends[whole]);
    }
}

/* Any bit of any record: exactly that record is lost, it is damage also when it is the
 * last one, and the ones behind it are found. */
static void expect_flips(uint32_t format)
{
    struct file f;

    make_file(&f, format, 7);
    for (size_t bit = MU__JOURNAL_HEADER_BYTES * 8; bit < f.size * 8; bit++) {
        struct seen seen;

        f.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        seen = scan_file(&f);
        f.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_int_equal(seen.records, 6);
        assert_int_equal(seen.damages, 1);
        assert_int_equal(seen.torn_bytes, 0);
        assert_true(seen.damage.offset <= bit / 8 &&
                    seen.damage.offset + seen.damage.bytes > bit / 8);
        assert_int_not_equal(seen.damage.what[0], '\0');
    }
}

TEST(test_cut_at_every_byte)
{
    expect_cuts(1);
    expect_cuts(2);
}

TEST(test_flip_of_every_bit)
{
    expect_flips(1);
    expect_flips(2);
}

/* Bytes become others, in up to three places: what is untouched in front of the first
 * place is read, nothing untouched is lost behind it, and it is never taken for torn. */
static void expect_holes(uint32_t format, uint64_t seed)
{
    struct sim_random random = sim_stream(seed, format);
    struct file f;
    size_t places = (size_t)sim_between(&random, 1, 3);
    bool hit[RECORDS_MAX + 1] = {false};
    size_t untouched = 0;
    struct seen seen;

    make_file(&f, format, 40);
    for (size_t i = 0; i < places; i++) {
        size_t record = (size_t)sim_between(&random, 1, 39);
        size_t size = f.ends[record] - f.ends[record - 1];
        size_t at = f.ends[record - 1] + (size_t)sim_between(&random, 0, size - 1);
        uint8_t was = f.bytes[at];

        f.bytes[at] = (uint8_t)sim_between(&random, 0, 255);
        hit[record] |= f.bytes[at] != was;
    }
    for (size_t i = 1; i <= 40; i++)
        untouched += !hit[i];
    seen = scan_file(&f);
    assert_int_equal(seen.records, untouched);
    assert_int_equal(seen.damages > 0, untouched < 40);
    assert_int_equal(seen.torn_bytes, 0);
}

TEST(test_holes)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        expect_holes(1, seed);
        expect_holes(2, seed);
    }
}

/* ---- What file systems leave ---- */

/* A file that has its length but not all of its bytes: zeros from any byte on. */
TEST(test_zeros_from_every_byte)
{
    struct file f;

    make_file(&f, 2, 7);
    for (size_t from = f.ends[3]; from + MU__JOURNAL_FOOT_BYTES <= f.size; from++) {
        struct file zeroed = f;
        struct seen seen;
        size_t whole = 3;

        while (whole < f.records && f.ends[whole + 1] <= from)
            whole++;
        memset(zeroed.bytes + from, 0, f.size - from);
        seen = scan_file(&zeroed);
        assert_int_equal(seen.records, whole);
        assert_int_equal(seen.damages, 0);
        assert_int_equal(seen.torn_bytes, f.size - f.ends[whole]);
    }
}

/* Zeros with something whole behind them were not left by a crash. */
TEST(test_zeros_in_the_middle)
{
    struct file f;
    struct seen seen;

    make_file(&f, 2, 7);
    memset(f.bytes + f.ends[2], 0, f.ends[4] - f.ends[2]);
    seen = scan_file(&f);
    assert_int_equal(seen.records, 5);
    assert_int_equal(seen.damages, 1);
    assert_int_equal(seen.lost, 2);
    assert_int_equal(seen.damage.number, 3);
}

/* A record's own zeros at its end are not a crash's. */
TEST(test_damaged_record_that_ends_in_zeros)
{
    struct file f;
    struct seen seen;

    make_file(&f, 2, 3);
    memset(message_place(&f), 0, 2000);
    *message_place(&f) = 9;
    add_bytes(&f, 4, 2000);
    assert_int_equal(scan_file(&f).records, 4);
    f.bytes[f.ends[3] + MU__JOURNAL_HEAD_BYTES] ^= 1;
    seen = scan_file(&f);
    assert_int_equal(seen.records, 3);
    assert_int_equal(seen.damages, 1);
    assert_int_equal(seen.torn_bytes, 0);
}

/* A block that was written to another place, too. */
TEST(test_doubled_and_missing_records)
{
    struct file f;
    struct file other;
    struct seen seen;
    size_t size;

    make_file(&f, 2, 7);
    other = f;
    size = f.ends[3] - f.ends[2];
    memcpy(other.bytes + f.ends[4], f.bytes + f.ends[2], size);
    seen = scan_file(&other);
    assert_int_equal(seen.records, 6);
    assert_int_equal(seen.damages, 2);
    assert_int_equal(seen.lost, 1);
    assert_non_null(strstr(seen.damage.what, "expected record 5, found record 3"));
    other = f;
    memmove(other.bytes + f.ends[2], f.bytes + f.ends[3], f.size - f.ends[3]);
    other.size -= size;
    seen = scan_file(&other);
    assert_int_equal(seen.records, 6);
    assert_int_equal(seen.damages, 1);
    assert_int_equal(seen.lost, 1);
    assert_int_equal(seen.damage.bytes, 0);
}

/* A record that is missing before a torn one is no torn end. */
TEST(test_missing_before_torn)
{
    struct file f;
    struct seen seen;

    make_file(&f, 2, 5);
    memmove(f.bytes + f.ends[3], f.bytes + f.ends[4], f.size - f.ends[4]);
    f.size -= f.ends[4] - f.ends[3] + 2;
    seen = scan_file(&f);
    assert_int_equal(seen.records, 3);
    assert_int_equal(seen.damages, 1);
    assert_int_equal(seen.lost, 1);
    assert_int_not_equal(seen.torn_bytes, 0);
}

/* A copy of a journal as somebody's value: it stands in a record that was torn, and none
 * of its records is one of ours. */
TEST(test_a_journal_within_a_torn_record)
{
    struct file inner;
    struct file f;
    struct seen seen;

    make_file(&inner, 2, 9);
    make_file(&f, 2, 3);
    memcpy(message_place(&f), inner.bytes, inner.size);
    add_bytes(&f, 4, inner.size + 100);
    assert_int_equal(scan_file(&f).records, 4);
    f.size -= 50;
    seen = scan_file(&f);
    assert_int_equal(seen.records, 3);
    assert_int_equal(seen.damages, 0);
    assert_int_not_equal(seen.torn_bytes, 0);
}

/* ---- Opening ---- */

static int count(void *owner, struct mu__msg *msg)
{
    size_t *records = owner;

    assert_int_equal(((struct mu__journal_removed *)(void *)msg->body)->number,
                     300 + ++*records);
    return 0;
}

static int try_open(struct sim_storage *storage, struct mu__pool *pool, size_t *records,
                    mu_error *error, uint64_t *cut)
{
    struct mu__journal *journal;
    int rv;

    *records = 0;
    rv = mu__journal_open(&storage->base, &mu__messages, pool, count, records, error, cut,
                          &journal);
    if (rv == 0)
        mu__journal_close(journal);
    return rv;
}

/* A file of the former format is read, also with a torn end, and is of today's format
 * from then on. */
TEST(test_former_format_is_read)
{
    struct sim_storage *storage = sim_storage_new("f", 1);
    struct mu__pool pool;
    struct file f;
    mu_error error;
    uint64_t cut;
    size_t records;

    mu__pool_init(&pool);
    make_file(&f, 1, 9);
    for (size_t torn = 0; torn < 5; torn++) {
        sim_storage_set(storage, f.bytes, f.size - torn);
        assert_int_equal(try_open(storage, &pool, &records, &error, &cut), 0);
        assert_int_equal(records, torn == 0 ? 9 : 8);
        assert_int_equal(cut, torn == 0 ? 0 : f.ends[9] - f.ends[8] - torn);
        assert_int_equal(storage->content[MU__JOURNAL_MAGIC_BYTES], 2);
        assert_int_equal(scan_all(storage->content, storage->size).records,
                         torn == 0 ? 9 : 8);
        assert_int_equal(try_open(storage, &pool, &records, &error, &cut), 0);
        assert_int_equal(records, torn == 0 ? 9 : 8);
    }
    mu__pool_done(&pool);
    sim_storage_free(storage);
}

/* The words name the file, the record, the place, what is behind it, and what to do. */
TEST(test_damage_is_refused_in_words)
{
    struct sim_storage *storage = sim_storage_new("/var/keys.jnl", 1);
    struct mu__pool pool;
    struct file f;
    mu_error error;
    uint64_t cut;
    size_t records;
    char place[64];

    mu__pool_init(&pool);
    make_file(&f, 2, 9);
    f.bytes[f.ends[4] + MU__JOURNAL_HEAD_BYTES + 3] ^= 4;
    sim_storage_set(storage, f.bytes, f.size);
    assert_int_equal(try_open(storage, &pool, &records, &error, &cut), -MU_EDATALOSS);
    (void)snprintf(place, sizeof place, "/var/keys.jnl: record 5 at byte %zu is damaged",
                   f.ends[4]);
    assert_non_null(strstr(error.message, place));
    assert_non_null(strstr(error.message, ", expected "));
    assert_non_null(strstr(error.message, "4 whole records stand behind it"));
    assert_non_null(strstr(error.message, "muster journal repair"));
    assert_int_equal(storage->flushed, f.size);
    assert_memory_equal(storage->content, f.bytes, f.size);
    mu__pool_done(&pool);
    sim_storage_free(storage);
}

TEST_PROGRAM()
