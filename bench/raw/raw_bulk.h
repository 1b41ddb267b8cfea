/* Helpers of the two bandwidth programs: their arguments, the memory of the variable that
 * is read or written, malloc thresholds, and counting. */
#ifndef MUSTER_RAW_BULK_H
#define MUSTER_RAW_BULK_H

#include "bench/raw/raw.h"

#include <malloc.h>

/* The variable is larger than the caches, so that copies come from memory. */
#define BULK_VARIABLE_BYTES ((size_t)64 << 20)

/* Above every block that is sent, and enough free memory kept for a whole window. */
#define BULK_MMAP_THRESHOLD (64 << 20)
#define BULK_TRIM_THRESHOLD (512 << 20)

struct bulk {
    bool push;   /* the client sends the data, else it requests them */
    bool echo;   /* the client sends blocks and gets blocks; raw_uv_bandwidth only */
    bool copy;   /* copy between variable and message on both sides */
    bool raised; /* keep large blocks in the heap instead of mapping each anew */
    unsigned depth;
    unsigned megabytes; /* to move, at full size */
    size_t block_bytes;
};

/* One side's variable, walked through block by block. */
struct variable {
    uint8_t *bytes;
    size_t at;
};

static const char *const bulk_directions[] = {"pull", "push", "echo", NULL};
static const char *const bulk_modes[] = {"nocopy", "copy", NULL};
static const char *const bulk_mallocs[] = {"default", "raised", NULL};

static inline void bulk_parse(int argc, char **argv, struct bulk *ret_bulk)
{
    unsigned kib = raw_arg_number(argc, argv, "kib", 1024, 1, 16384);
    unsigned direction = raw_arg_word(argc, argv, "direction", bulk_directions);

    *ret_bulk = (struct bulk){
        .push = direction == 1,
        .echo = direction == 2,
        .megabytes = raw_arg_number(argc, argv, "megabytes", 4096, 1, 65536),
        .copy = raw_arg_word(argc, argv, "mode", bulk_modes) == 1,
        .raised = raw_arg_word(argc, argv, "malloc", bulk_mallocs) == 1,
        .depth = raw_arg_number(argc, argv, "depth", 4, 1, 256),
        .block_bytes = (size_t)kib << 10,
    };
    if (!ret_bulk->raised)
        return;
    raw_check(mallopt(M_MMAP_THRESHOLD, BULK_MMAP_THRESHOLD) == 1, "M_MMAP_THRESHOLD");
    raw_check(mallopt(M_TRIM_THRESHOLD, BULK_TRIM_THRESHOLD) == 1, "M_TRIM_THRESHOLD");
}

/* Allocate and write once, so that every page is mapped. */
static inline void variable_init(struct variable *variable)
{
    variable->bytes = malloc(BULK_VARIABLE_BYTES);
    raw_check(variable->bytes != NULL, "malloc");
    memset(variable->bytes, 0x5a, BULK_VARIABLE_BYTES);
    variable->at = 0;
}

/* The next block of the variable, starting again at its end. */
static inline uint8_t *variable_block(struct variable *variable, size_t bytes)
{
    size_t at = variable->at;

    if (at + bytes > BULK_VARIABLE_BYTES)
        at = 0;
    variable->at = at + bytes;
    return variable->bytes + at;
}

/* Blocks that the client has sent, and those that came back. */
struct tally {
    uint64_t started;
    uint64_t finished;
    uint64_t warm_up;
    uint64_t wanted; /* with the warm-up */
    uint64_t start_ns;
    uint64_t end_ns;
};

static inline void tally_init(struct tally *tally, const struct bulk *bulk)
{
    uint64_t megabytes = bench_size(64, bulk->megabytes);
    uint64_t blocks = (megabytes << 20) / bulk->block_bytes;

    *tally = (struct tally){.warm_up = blocks / 8 + bulk->depth};
    tally->wanted = tally->warm_up + blocks;
}

/* Whether another block may be started: the window has room and some are left. */
static inline bool tally_may_start(const struct tally *tally, const struct bulk *bulk)
{
    return tally->started < tally->wanted &&
           tally->started - tally->finished < bulk->depth;
}

static inline void tally_finish(struct tally *tally)
{
    tally->finished++;
    if (tally->finished == tally->warm_up)
        tally->start_ns = bench_now_ns();
    if (tally->finished == tally->wanted)
        tally->end_ns = bench_now_ns();
}

static inline void bulk_report(const struct bulk *bulk, const struct tally *tally,
                               const char *bench)
{
    uint64_t bytes = (tally->wanted - tally->warm_up) * bulk->block_bytes;
    char extra[160];

    snprintf(extra, sizeof extra,
             "\"direction\":\"%s\",\"mode\":\"%s\",\"malloc\":\"%s\",\"depth\":%u,"
             "\"kib\":%zu",
             bulk_directions[bulk->echo ? 2 : bulk->push], bulk_modes[bulk->copy],
             bulk_mallocs[bulk->raised], bulk->depth, bulk->block_bytes >> 10);
    bench_line_write(stdout,
                     &(struct bench_line){
                         .bench = bench,
                         .metric = "bandwidth",
                         .value = bench_rate(bytes, tally->start_ns, tally->end_ns) / 1e9,
                         .unit = "GB/s",
                         .extra = extra,
                     });
}

#endif
