/* The smallest closure and its reply, packed by hand: [op, id, bin32] out and [op, id,
 * bin8] back, in msgpack. All have the same length, so a batch is a plain sequence of
 * them. */
#ifndef MUSTER_RAW_CLOSURE_H
#define MUSTER_RAW_CLOSURE_H

#include "bench/raw/raw.h"

/* array of 3, op, uint32, and bin of 32 or 8 bytes with its header */
#define CLOSURE_BYTES 41
#define REPLY_BYTES 17

#define CLOSURE_OP 0x01
#define REPLY_OP 0x02

/* The records that one side is about to send. */
struct batch {
    uint8_t *bytes;
    size_t used;
    size_t capacity;
};

static inline uint8_t *batch_grow(struct batch *batch, size_t more)
{
    uint8_t *at;

    if (batch->used + more > batch->capacity) {
        batch->capacity = 2 * (batch->used + more) + 4096;
        batch->bytes = realloc(batch->bytes, batch->capacity);
        raw_check(batch->bytes != NULL, "realloc");
    }
    at = batch->bytes + batch->used;
    batch->used += more;
    return at;
}

/* Write one record of `length` bytes whose binary part holds its id again. */
static inline void record_pack(uint8_t *at, uint8_t op, uint32_t id, size_t length)
{
    at[0] = 0x93;
    at[1] = op;
    at[2] = 0xce;
    at[3] = (uint8_t)(id >> 24);
    at[4] = (uint8_t)(id >> 16);
    at[5] = (uint8_t)(id >> 8);
    at[6] = (uint8_t)id;
    at[7] = 0xc4;
    at[8] = (uint8_t)(length - 9);
    memset(at + 9, (int)(id & 0xff), length - 9);
}

/* The id of a record, after checking that it is what it should be. */
static inline uint32_t record_unpack(const uint8_t *at, uint8_t op, size_t length)
{
    raw_check(at[0] == 0x93 && at[1] == op && at[2] == 0xce && at[7] == 0xc4 &&
                  at[8] == length - 9,
              "record");
    return (uint32_t)at[3] << 24 | (uint32_t)at[4] << 16 | (uint32_t)at[5] << 8 | at[6];
}

static inline void closure_pack(struct batch *batch, uint32_t id)
{
    record_pack(batch_grow(batch, CLOSURE_BYTES), CLOSURE_OP, id, CLOSURE_BYTES);
}

/* The worker's part: answer every closure in `bytes`, which has whole ones only. */
static inline void closures_answer(const uint8_t *bytes, size_t length,
                                   struct batch *replies)
{
    raw_check(length % CLOSURE_BYTES == 0, "length of a batch of closures");
    for (size_t i = 0; i < length; i += CLOSURE_BYTES) {
        uint32_t id = record_unpack(bytes + i, CLOSURE_OP, CLOSURE_BYTES);

        record_pack(batch_grow(replies, REPLY_BYTES), REPLY_OP, id, REPLY_BYTES);
    }
}

/* The chief's counts. Ids ascend, and the worker of an id is its remainder; the sums of
 * ids sent and received must agree. */
struct account {
    unsigned workers;
    unsigned window;
    unsigned in_flight[RAW_PEERS_MAX];
    uint32_t next_round[RAW_PEERS_MAX];
    uint64_t sum_out;
    uint64_t sum_back;
    uint64_t done;
    uint64_t done_at_start;
    uint64_t done_at_end;
    bool started;
    bool stopped;
    uint64_t start_ns;
    uint64_t end_ns;
};

static inline void account_init(struct account *account, unsigned workers,
                                unsigned window)
{
    uint64_t now = bench_now_ns();

    *account = (struct account){.workers = workers, .window = window};
    account->start_ns = now + UINT64_C(1000000) * bench_size(20, 300);
    account->end_ns = account->start_ns + UINT64_C(1000000) * bench_size(100, 2000);
}

/* Fill the window of one worker. */
static inline void account_fill(struct account *account, unsigned worker,
                                struct batch *batch)
{
    while (account->in_flight[worker] < account->window) {
        uint32_t id = account->next_round[worker]++ * account->workers + worker;

        closure_pack(batch, id);
        account->sum_out += id;
        account->in_flight[worker]++;
    }
}

/* Count the replies in `bytes`, which has whole ones only. */
static inline void account_settle(struct account *account, const uint8_t *bytes,
                                  size_t length)
{
    raw_check(length % REPLY_BYTES == 0, "length of a batch of replies");
    for (size_t i = 0; i < length; i += REPLY_BYTES) {
        uint32_t id = record_unpack(bytes + i, REPLY_OP, REPLY_BYTES);
        unsigned worker = id % account->workers;

        raw_check(account->in_flight[worker] > 0, "reply that nobody waits for");
        account->in_flight[worker]--;
        account->sum_back += id;
        account->done++;
    }
}

static inline unsigned account_in_flight(const struct account *account)
{
    unsigned total = 0;

    for (unsigned i = 0; i < account->workers; i++)
        total += account->in_flight[i];
    return total;
}

/* Called once a turn, after settling. True while new closures are to be given out. The
 * measurement lasts from the end of the warm-up to the first turn after the time is over;
 * later replies are not counted. */
static inline bool account_running(struct account *account)
{
    uint64_t now = bench_now_ns();

    if (account->stopped)
        return false;
    if (!account->started && now >= account->start_ns) {
        account->started = true;
        account->start_ns = now;
        account->done_at_start = account->done;
    }
    if (now < account->end_ns)
        return true;
    account->stopped = true;
    account->end_ns = now;
    account->done_at_end = account->done;
    return false;
}

static inline void account_report(const struct account *account, const char *bench)
{
    char extra[96];
    uint64_t done = account->done_at_end - account->done_at_start;

    raw_check(account->sum_back == account->sum_out, "sum of the ids that came back");
    snprintf(extra, sizeof extra, "\"workers\":%u,\"outstanding\":%u", account->workers,
             account->window);
    bench_line_write(stdout,
                     &(struct bench_line){
                         .bench = bench,
                         .metric = "rate",
                         .value = bench_rate(done, account->start_ns, account->end_ns),
                         .unit = "closures/s",
                         .extra = extra,
                     });
}

#endif
