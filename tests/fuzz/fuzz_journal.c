/* Any bytes as a journal that was found: it is refused and left as it is, or read and
 * repaired; what was repaired is read again without a cut, and takes more.
 *
 * Sums keep random bytes out, so the input is used twice: as the file, and as the bytes
 * of one record whose sum is right. */
#include "actors/journal.h"
#include "actors/messages.h"
#include "runtime/crc32c.h"
#include "tests/sim/storage.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 12, PREFIX_BYTES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), stays in every build. */
static void must(bool truth, const char *what)
{
    if (truth)
        return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

static int count_visit(void *owner, struct mu__msg *msg)
{
    must(msg->backing != NULL && msg->backing->refs >= 1, "backed");
    must(mu__messages.rows[msg->kind].travels, "travels");
    ++*(unsigned *)owner;
    return 0;
}

static void append_one(struct mu__pool *pool, struct mu__journal *journal)
{
    struct mu__msg *msg = mu__pool_get(pool, MU__JOURNAL_GONE,
                                       sizeof(struct mu__journal_gone));

    must(msg != NULL, "memory");
    ((struct mu__journal_gone *)(void *)msg->body)->number = 5;
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
                          &error, &cut, &journal) == 0, "read again");
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

/* A file of one record around the input. */
static void check_record(struct mu__pool *pool, const uint8_t *data, size_t size)
{
    uint8_t *file = calloc(1, HEADER_BYTES + PREFIX_BYTES + size);
    struct mu__crc32c crc;
    uint32_t sum;

    must(file != NULL, "memory");
    mu__crc32c_init(&crc);
    memcpy(file, "mustrjnl\1", 9);
    store_little32(file + HEADER_BYTES, (uint32_t)size);
    if (size > 0)
        memcpy(file + HEADER_BYTES + PREFIX_BYTES, data, size);
    sum = mu__crc32c_add(&crc, 0, file + HEADER_BYTES, 4);
    sum = mu__crc32c_add(&crc, sum, data, size);
    store_little32(file + HEADER_BYTES + 4, sum);
    check_file(pool, file, HEADER_BYTES + PREFIX_BYTES + size);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mu__pool pool;

    mu__pool_init(&pool);
    check_file(&pool, data, size);
    check_record(&pool, data, size);
    must(pool.live == 0, "no message is lost");
    mu__pool_done(&pool);
    return 0;
}
