/* Blocks of memory: classes, the bound, giving back what is not needed, threads, and what
 * ends the process. */
#include "runtime/message/block_pool.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POOL_BYTES = 8 << 20 };

static int setup(void **state)
{
    struct mu__block_pool *pool = malloc(sizeof *pool);

    if (pool == NULL)
        return -1;
    mu__block_pool_init(pool, POOL_BYTES);
    mu__block_pool_join(pool);
    *state = pool;
    return 0;
}

static int teardown(void **state)
{
    struct mu__block_pool *pool = *state;
    struct mu__block_counts counts;

    mu__block_pool_leave(pool);
    counts = mu__block_pool_counts(pool);
    free(pool);
    return counts.cached_bytes == 0 && counts.allocated == counts.released ? 0 : -1;
}

static void *get(struct mu__block_pool *pool, size_t size)
{
    uint8_t *block = mu__block_pool_get(pool, size);

    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 16, 0);
    memset(block, 0x5a, size);
    return block;
}

TEST_ON(block_given_back_is_given_out_again_for_sizes_of_its_class,
        struct mu__block_pool *pool, setup, teardown)
{
    for (size_t size = MU__BLOCK_BYTES_MIN; size < POOL_BYTES; size += size / 3) {
        uint64_t reused = mu__block_pool_counts(pool).reused;
        void *block = get(pool, size);

        mu__block_pool_put(pool, block);
        if (mu__block_pool_cached(pool) == 0)
            continue; /* beyond the bound of this pool */
        assert_ptr_equal(get(pool, size), block);
        assert_int_equal(mu__block_pool_counts(pool).reused, reused + 1);
        assert_int_equal(mu__block_pool_cached(pool), 0);
        mu__block_pool_put(pool, block);
        mu__block_pool_clear(pool);
    }
}

/* A class wastes a quarter at most. */
TEST_ON(kept_block_is_hardly_larger_than_what_was_asked_for, struct mu__block_pool *pool,
        setup, teardown)
{
    for (size_t size = MU__BLOCK_BYTES_MIN; size < POOL_BYTES / 2; size += 4093) {
        uint64_t kept;

        mu__block_pool_put(pool, get(pool, size));
        kept = mu__block_pool_cached(pool);
        assert_true(kept >= size);
        assert_true(kept <= (size + MU__BLOCK_HEADER_BYTES) * 5 / 4 + 1024);
        mu__block_pool_clear(pool);
    }
}

TEST_ON(blocks_that_are_too_small_or_too_large_are_not_kept, struct mu__block_pool *pool,
        setup, teardown)
{
    const size_t sizes[] = {0, 1, MU__BLOCK_BYTES_MIN - MU__BLOCK_HEADER_BYTES - 1,
                            MU__BLOCK_BYTES_MAX - MU__BLOCK_HEADER_BYTES + 1};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        mu__block_pool_put(pool, get(pool, sizes[i]));
        assert_int_equal(mu__block_pool_cached(pool), 0);
    }
    assert_int_equal(mu__block_pool_counts(pool).allocated, 0);
    assert_null(mu__block_pool_get(pool, SIZE_MAX));
    assert_null(mu__block_pool_get(pool, PTRDIFF_MAX));
    mu__block_pool_put(pool, NULL);
}

/* Whether the mapping of an address is one that large pages are asked for. */
static bool asks_for_large_pages(const void *data)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    uintptr_t range[2];
    char line[512];
    bool is_there = false;
    bool asks = false;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &range[0], &range[1]) == 2)
            is_there = (uintptr_t)data >= range[0] && (uintptr_t)data < range[1];
        if (is_there && strncmp(line, "VmFlags:", 8) == 0)
            asks = strstr(line, " hg") != NULL;
    }
    (void)fclose(file);
    return asks;
}

/* With pages of 4 KiB, whoever writes to a block of 160 MiB first takes 40,960 faults. */
TEST_ON(large_blocks_ask_for_large_pages, struct mu__block_pool *pool, setup, teardown)
{
    static const size_t sizes[] = {4 << 20, 64 << 20, 160 << 20};

    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0)
        skip();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *large = get(pool, sizes[i]);

        assert_true(asks_for_large_pages(large));
        mu__block_pool_put(pool, large);
    }
}

/* Any number of blocks of any sizes: what is kept never passes the bound. */
TEST_ON(kept_bytes_stay_below_the_bound_whatever_the_sizes, struct mu__block_pool *pool,
        setup, teardown)
{
    enum { BLOCKS = 64, ROUNDS = 40 };
    uint32_t random = 1;
    uint64_t most = 0;

    for (int round = 0; round < ROUNDS; round++) {
        void *blocks[BLOCKS];

        for (int i = 0; i < BLOCKS; i++) {
            random = random * 1664525 + 1013904223;
            blocks[i] = mu__block_pool_get(pool, (size_t)4096 + random % (1 << 20));
            assert_non_null(blocks[i]);
        }
        for (int i = 0; i < BLOCKS; i++) {
            mu__block_pool_put(pool, blocks[i]);
            if (mu__block_pool_cached(pool) > most)
                most = mu__block_pool_cached(pool);
        }
    }
    assert_true(most > POOL_BYTES / 2 && most <= POOL_BYTES);
}

TEST_ON(idle_pool_gives_everything_back, struct mu__block_pool *pool, setup, teardown)
{
    void *blocks[4];
    uint64_t now_ms = 10 * MU__BLOCKS_TRIM_MS;

    for (int i = 0; i < 4; i++)
        blocks[i] = get(pool, 100000u << i);
    for (int i = 0; i < 4; i++)
        mu__block_pool_put(pool, blocks[i]);
    assert_true(mu__block_pool_trim(pool, now_ms));
    assert_true(mu__block_pool_trim(pool, now_ms + MU__BLOCKS_TRIM_MS - 1));
    assert_false(mu__block_pool_trim(pool, now_ms + MU__BLOCKS_TRIM_MS));
    assert_int_equal(mu__block_pool_counts(pool).released, 4);
}

/* Two are in use at a time and four are there: two are too many. */
TEST_ON(trim_leaves_what_was_needed_since_the_last_one, struct mu__block_pool *pool,
        setup, teardown)
{
    void *blocks[4];
    uint64_t now_ms = 10 * MU__BLOCKS_TRIM_MS;

    for (int i = 0; i < 4; i++)
        blocks[i] = get(pool, 50000);
    for (int i = 0; i < 4; i++)
        mu__block_pool_put(pool, blocks[i]);
    (void)mu__block_pool_trim(pool, now_ms);
    for (int round = 1; round < 4; round++) {
        blocks[0] = get(pool, 50000);
        blocks[1] = get(pool, 50000);
        mu__block_pool_put(pool, blocks[0]);
        mu__block_pool_put(pool, blocks[1]);
        now_ms += MU__BLOCKS_TRIM_MS;
        assert_true(mu__block_pool_trim(pool, now_ms));
        assert_int_equal(mu__block_pool_counts(pool).released, 2);
    }
}

TEST_ON(pool_without_users_keeps_nothing, struct mu__block_pool *pool, setup, teardown)
{
    void *before = get(pool, 100000);
    void *after;

    mu__block_pool_leave(pool);
    after = get(pool, 100000);
    mu__block_pool_put(pool, before);
    mu__block_pool_put(pool, after);
    assert_int_equal(mu__block_pool_cached(pool), 0);
    mu__block_pool_join(pool);
}

/* What ends the process, in a child of its own. */
static bool is_aborted_by(void (*what)(struct mu__block_pool *pool),
                          struct mu__block_pool *pool)
{
    pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO);
        what(pool);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void put_twice(struct mu__block_pool *pool)
{
    void *block = mu__block_pool_get(pool, 100000);

    mu__block_pool_put(pool, block);
    mu__block_pool_put(pool, block);
}

static void put_what_is_no_block(struct mu__block_pool *pool)
{
    static max_align_t memory[64];

    mu__block_pool_put(pool, memory + 8);
}

TEST_WITH(second_put_of_a_block_ends_the_process, setup, teardown)
{
    assert_true(is_aborted_by(put_twice, *state));
    assert_true(is_aborted_by(put_what_is_no_block, *state));
}

/* ---- threads: blocks go round a ring of mailboxes, and are put where they end ---- */

enum { THREADS = 4, MAILBOXES = 16, STEPS = 5000 };

struct worker {
    pthread_t thread;
    struct mu__block_pool *pool;
    _Atomic(void *) *mailboxes;
    uint32_t random;
    bool mixed;
};

static void *work(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < STEPS; i++) {
        size_t size;
        uint8_t *block;

        w->random = w->random * 1664525 + 1013904223;
        size = (size_t)4096 << (w->random >> 8) % 4;
        block = mu__block_pool_get(w->pool, size);
        if (block == NULL) {
            w->mixed = true;
            break;
        }
        /* Nobody else has it: what is written at both ends stays. */
        memset(block, (int)(w->random & 0xff), 64);
        memset(block + size - 64, (int)(w->random & 0xff), 64);
        if (block[0] != (uint8_t)w->random || block[size - 1] != (uint8_t)w->random)
            w->mixed = true;
        block = atomic_exchange(&w->mailboxes[(w->random >> 16) % MAILBOXES], block);
        if (block != NULL && memcmp(block, block + 32, 32) != 0)
            w->mixed = true;
        mu__block_pool_put(w->pool, block);
    }
    return NULL;
}

TEST_ON(threads_share_blocks_and_none_is_given_out_twice, struct mu__block_pool *pool,
        setup, teardown)
{
    static _Atomic(void *) mailboxes[MAILBOXES];
    struct worker workers[THREADS];

    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.pool = pool, .mailboxes = mailboxes, .random = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint64_t now_ms = 0; now_ms < 100 * MU__BLOCKS_TRIM_MS; now_ms += 1000)
        (void)mu__block_pool_trim(pool, now_ms);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        assert_false(workers[i].mixed);
    }
    for (int i = 0; i < MAILBOXES; i++)
        mu__block_pool_put(pool, atomic_exchange(&mailboxes[i], NULL));
    assert_true(mu__block_pool_counts(pool).reused > 0);
}

TEST_PROGRAM()
