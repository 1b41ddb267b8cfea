/* Threads that add ones to a variable without end, while its servers are hurt: each add
 * counts once, none fails. */
#ifndef MUSTER_TESTS_REAL_WRITERS_H
#define MUSTER_TESTS_REAL_WRITERS_H

#include "tests/real/tasks.h"

#include <inttypes.h>
#include <stdatomic.h>

enum {
    WRITERS = 4,
    ROWS = 64, /* each is a shard */
    ROW = 512,
    COUNT = ROWS * ROW
};

static inline mu_variable *open_counts(mu_node *node)
{
    static const uint64_t dims[2] = {ROWS, ROW};
    const mu_variable_spec spec = {
        .name = "counts", .dtype = MU_I64, .rank = 2, .dims = dims, .shards = ROWS};
    mu_variable *variable = NULL;
    mu_error error = {0};

    check(mu_variable_open(node, &spec, SOON_MS, &error, &variable), &error);
    return variable;
}

struct writers {
    pthread_t threads[WRITERS];
    mu_variable *variable;
    int64_t *ones;
    atomic_bool stop;
    atomic_int_least64_t adds;
    atomic_int failure; /* code of the first one, with its */
    char words[512];
    atomic_uint_least64_t longest_ms;
};

static inline void note_failure(struct writers *writers, int code, const char *words)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&writers->failure, &none, code))
        (void)snprintf(writers->words, sizeof writers->words, "%s", words);
}

static inline void note_time(struct writers *writers, uint64_t ms)
{
    uint_least64_t longest = atomic_load(&writers->longest_ms);

    while (ms > longest &&
           !atomic_compare_exchange_weak(&writers->longest_ms, &longest, ms))
        continue;
}

static inline void *add_ones(void *arg)
{
    struct writers *writers = arg;

    while (!atomic_load(&writers->stop)) {
        uint64_t began_ms = cli_now_ms();
        mu_error error = {0};
        int rv = mu_variable_add(writers->variable, writers->ones,
                                 COUNT * sizeof *writers->ones, SOON_MS, &error);

        note_time(writers, cli_now_ms() - began_ms);
        if (rv == 0)
            atomic_fetch_add(&writers->adds, 1);
        else
            note_failure(writers, rv, error.message);
    }
    return NULL;
}

static inline void begin_writers(struct writers *writers, mu_variable *variable)
{
    memset(writers, 0, sizeof *writers);
    writers->variable = variable;
    writers->ones = calloc(COUNT, sizeof *writers->ones);
    assert_non_null(writers->ones);
    for (size_t i = 0; i < COUNT; i++)
        writers->ones[i] = 1;
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers->threads[i], NULL, add_ones, writers),
                         0);
}

static inline void end_writers(struct writers *writers)
{
    if (writers->ones == NULL)
        return;
    atomic_store(&writers->stop, true);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writers->threads[i], NULL), 0);
    free(writers->ones);
    writers->ones = NULL;
    if (writers->failure != 0)
        fail_msg("an add failed: %s", writers->words);
}

/* Until more adds have succeeded than up to now. */
static inline void wait_adds(struct writers *writers)
{
    int64_t enough = atomic_load(&writers->adds) + 2 * WRITERS;

    for (int i = 0; i < SOON_MS && atomic_load(&writers->adds) < enough; i++)
        nodes_pause();
    assert_true(atomic_load(&writers->adds) >= enough);
}

/* Each add is there once. */
static inline void assert_exact(struct writers *writers, const char *what)
{
    int64_t *data = calloc(COUNT, sizeof *data);
    mu_error error = {0};

    end_writers(writers);
    assert_non_null(data);
    check(mu_variable_read(writers->variable, data, COUNT * sizeof *data, SOON_MS,
                           &error),
          &error);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(data[i], atomic_load(&writers->adds));
    free(data);
    (void)printf("%s: %" PRIdLEAST64 " adds, the longest took %" PRIuLEAST64 " ms\n",
                 what, atomic_load(&writers->adds), atomic_load(&writers->longest_ms));
}

#endif
