/* Any bytes as a journal that was found: it is refused and left as it is, or read and
 * its torn end cut off; what is left is read again without a cut, and takes more.
 *
 * Sums keep random bytes out, so the input is used three times: as the file, as the bytes
 * of one record whose sum is right, in both formats, and as what is written over a file
 * of whole records at a place that the input names: then each record that it leaves
 * untouched is found. */
#include "actors/coordination/store/journal.h"
#include "actors/coordination/store/journal_scan.h"
#include "actors/messages.h"
#include "runtime/base/crc32c.h"
#include "sim/world/storage.h"
#include "tests/fuzz/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = MU__JOURNAL_HEADER_BYTES, OLD_HEAD_BYTES = 8, RECORDS = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count_visit(void *owner, struct mu__msg *msg)
{
    must(msg->backing != NULL && msg->backing->refs >= 1, "backed");
    must(msg->kind < MU__LOCAL_KINDS_BEGIN, "travels");
    ++*(unsigned *)owner;
    return 0;
}

static void append_one(struct mu__pool *pool, struct mu__journal *journal)
{
    struct mu__msg *msg =
        mu__pool_get(pool, MU__JOURNAL_REMOVED, sizeof(struct mu__journal_removed));

    must(msg != NULL, "memory");
    ((struct mu__journal_removed *)(void *)msg->body)->number = 5;
    must(mu__journal_append(journal, msg, NULL) == 0, "appended");
    must(mu__journal_flush(journal, NULL) == 0, "flushed");
    mu__pool_put(pool, msg);
}

static void check_file(struct mu__pool *pool, const uint8_t *data, size_t size)
{
    struct sim_storage *storage = sim_storage_new("fuzz", 1);
    struct mu__journal *journal = NULL;
    unsigned first = 0;
    unsigned second = 0;
    uint64_t cut = 0;
    mu_error error = {0};
    int rv;

    sim_storage_set(storage, data, size);
    rv = mu__journal_open(&storage->base, &mu__messages, pool, count_visit, &first,
                          &error, &cut, &journal);
    if (rv != 0) {
        must(rv == -MU_EDATALOSS && error.code == rv, "refused with a reason");
        must(storage->flushed == size, "left as it is");
        must(size == 0 || memcmp(storage->content, data, size) == 0, "unchanged");
        sim_storage_free(storage);
        return;
    }
    must(cut <= size, "no more was cut than there was");
    append_one(pool, journal);
    mu__journal_close(journal);
    must(mu__journal_open(&storage->base, &mu__messages, pool, count_visit, &second,
                          &error, &cut, &journal) == 0,
         "read again");
    must(cut == 0 && second == first + 1, "what was repaired is whole");
    must(mu__journal_bytes(journal) == storage->flushed, "counted");
    mu__journal_close(journal);
    sim_storage_free(storage);
}

static void store_little32(uint8_t *out, uint32_t number)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(number >> (8 * i));
}

/* A file of one record around the input, as it was written in format 1. */
static void check_old_record(struct mu__pool *pool, const uint8_t *data, size_t size)
{
    uint8_t *file = calloc(1, HEADER_BYTES + OLD_HEAD_BYTES + size);
    struct mu__crc32c crc;
    uint32_t sum;

    must(file != NULL, "memory");
    mu__crc32c_init(&crc);
    memcpy(file, "mustrjnl\1", 9);
    store_little32(file + HEADER_BYTES, (uint32_t)size);
    if (size > 0)
        memcpy(file + HEADER_BYTES + OLD_HEAD_BYTES, data, size);
    sum = mu__crc32c_add(&crc, 0, file + HEADER_BYTES, 4);
    sum = mu__crc32c_add(&crc, sum, data, size);
    store_little32(file + HEADER_BYTES + 4, sum);
    check_file(pool, file, HEADER_BYTES + OLD_HEAD_BYTES + size);
    free(file);
}

static void check_record(struct mu__pool *pool, const uint8_t *data, size_t size)
{
    size_t bytes = HEADER_BYTES + MU__JOURNAL_HEAD_BYTES + size + MU__JOURNAL_FOOT_BYTES;
    uint8_t *file = calloc(1, bytes);
    struct mu__crc32c crc;

    must(file != NULL, "memory");
    mu__crc32c_init(&crc);
    mu__journal_put_header(file);
    if (size > 0)
        memcpy(file + HEADER_BYTES + MU__JOURNAL_HEAD_BYTES, data, size);
    mu__journal_put_frame(&crc, file + HEADER_BYTES, 1, (uint32_t)size);
    check_file(pool, file, bytes);
    free(file);
}

/* ---- Whole records with the input over some of them ---- */

enum { RECORD_BYTES = MU__JOURNAL_HEAD_BYTES + 13 + MU__JOURNAL_FOOT_BYTES };

static size_t make_records(uint8_t *file)
{
    static const uint8_t message[13] = {5, 0, 0, 0, 0, 0, 0, 0, 0x94, 57, 0, 0, 6};
    struct mu__crc32c crc;

    mu__crc32c_init(&crc);
    mu__journal_put_header(file);
    for (size_t i = 0; i < RECORDS; i++) {
        uint8_t *record = file + HEADER_BYTES + i * RECORD_BYTES;

        memcpy(record + MU__JOURNAL_HEAD_BYTES, message, sizeof message);
        mu__journal_put_frame(&crc, record, i + 1, sizeof message);
    }
    return HEADER_BYTES + (size_t)RECORDS * RECORD_BYTES;
}

/* Records at places where one was written are still the same bytes. */
static size_t count_untouched(const uint8_t *file, const uint8_t *whole)
{
    size_t count = 0;

    for (size_t i = 0; i < RECORDS; i++) {
        size_t at = HEADER_BYTES + i * RECORD_BYTES;

        count += memcmp(file + at, whole + at, RECORD_BYTES) == 0;
    }
    return count;
}

static void check_damage(struct mu__pool *pool, const uint8_t *data, size_t size)
{
    uint8_t whole[HEADER_BYTES + RECORDS * RECORD_BYTES];
    uint8_t file[sizeof whole];
    size_t bytes = make_records(whole);
    struct mu__journal_scan scan;
    struct mu__journal_piece piece;
    size_t records = 0;
    size_t at;
    mu_error error;

    if (size < 3)
        return;
    memcpy(file, whole, bytes);
    at = HEADER_BYTES + (data[0] | (size_t)data[1] << 8) % (bytes - HEADER_BYTES);
    memcpy(file + at, data + 2, size - 2 < bytes - at ? size - 2 : bytes - at);
    must(mu__journal_scan_begin(&scan, file, bytes, "fuzz", &error) == 0, "the header");
    do {
        mu__journal_scan_next(&scan, &piece);
        records += piece.kind == MU__JOURNAL_RECORD;
    } while (piece.kind != MU__JOURNAL_END);
    must(records >= count_untouched(file, whole), "what is untouched is found");
    check_file(pool, file, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mu__pool pool;

    mu__pool_init(&pool);
    check_file(&pool, data, size);
    check_record(&pool, data, size);
    check_old_record(&pool, data, size);
    check_damage(&pool, data, size);
    must(pool.live == 0, "no message is lost");
    mu__pool_done(&pool);
    return 0;
}
