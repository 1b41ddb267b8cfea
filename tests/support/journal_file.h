/* Journals of records in the storage of the simulator. */
#ifndef MU_TESTS_JOURNAL_FILE_H
#define MU_TESTS_JOURNAL_FILE_H

#include "actors/coordination/store/journal.h"
#include "actors/messages.h"
#include "runtime/base/crc32c.h"
#include "sim/world/sim.h"
#include "sim/world/storage.h"
#include "tests/support/test.h"

enum { HEADER_BYTES = 12, IDS_MAX = 4096, BLOB_BYTES = 1 << 20 };

/* Messages in order, each by the number that it was made from. */
struct ids {
    uint64_t at[IDS_MAX];
    size_t count;
};

struct fixture {
    struct sim_storage *storage;
    struct mu__pool pool;
    struct mu__journal *journal; /* NULL while no process has it */
    struct ids seen;             /* by the last open */
    struct ids wanted;
    uint64_t cut;
    int visit_rv; /* of the message visit_rv_at */
    size_t visit_rv_at;
    struct mu__buf *kept; /* of a message that was asked to be kept */
    struct mu__packed kept_args;
    uint64_t keep;
    mu_error error;
};

static uint8_t blob[BLOB_BYTES];

/* A value of any sizes: the journal does not look into it. */
static inline struct mu__packed blob_value(uint32_t head_size, uint32_t tail_size)
{
    struct mu__packed packed = {blob, blob, head_size, tail_size};

    return packed;
}

static inline void fill_scheduled(struct mu__journal_scheduled *body, uint64_t id)
{
    body->number = id;
    body->name = mu__view_str("epoch/1");
    body->function = mu__view_str("train_step");
    body->args = blob_value(1 + (uint32_t)(id % 50), (uint32_t)(id % 7 * 11));
    body->effect = id % 3;
    body->worker = (uint32_t)(id % 5);
}

/* The same number makes the same message. The caller puts it back. */
static inline struct mu__msg *make(struct mu__pool *pool, uint64_t id)
{
    static const uint16_t kinds[] = {MU__JOURNAL_SCHEDULED, MU__JOURNAL_FINISHED,
                                     MU__JOURNAL_REMOVED, MU__JOURNAL_BEGIN};
    uint16_t kind = kinds[id % 4];
    struct mu__msg *msg = mu__pool_get(pool, kind, mu__messages.rows[kind].body_size);
    void *body;

    assert_non_null(msg);
    body = msg->body;
    if (kind == MU__JOURNAL_SCHEDULED)
        fill_scheduled(body, id);
    else if (kind == MU__JOURNAL_FINISHED)
        *(struct mu__journal_finished *)body = (struct mu__journal_finished){
            .number = id,
            .result = id % 8 == 1 ? blob_value(9, 33) : (struct mu__packed){0},
        };
    else if (kind == MU__JOURNAL_REMOVED)
        ((struct mu__journal_removed *)body)->number = id;
    else
        *(struct mu__journal_begin *)body = (struct mu__journal_begin){
            .origin = id, .epoch = id + 1, .effect_next = id << 32};
    return msg;
}

/* In all of these the number comes first. */
static inline uint64_t id_of(const struct mu__msg *msg)
{
    uint64_t id;

    memcpy(&id, msg->body, sizeof id);
    return id;
}

static inline struct mu__buf *encode(const struct mu__msg *msg)
{
    struct mu__buf *frame = mu__buf_new(mu__encode_bound(&mu__messages, msg));

    assert_non_null(frame);
    assert_int_equal(mu__encode(&mu__messages, msg, frame), 0);
    return frame;
}

/* Field by field: packed, they are the same bytes. */
static inline void expect_same(struct mu__pool *pool, const struct mu__msg *msg)
{
    struct mu__msg *twin = make(pool, id_of(msg));
    struct mu__buf *left = encode(msg);
    struct mu__buf *right = encode(twin);

    assert_int_equal(left->size, right->size);
    assert_memory_equal(left->data, right->data, left->size);
    mu__buf_unref(left);
    mu__buf_unref(right);
    mu__pool_put(pool, twin);
}

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    for (size_t i = 0; i < BLOB_BYTES; i++)
        blob[i] = (uint8_t)(i * i >> 3);
    f->storage = sim_storage_new("sim:journal", 11);
    f->keep = UINT64_MAX;
    mu__pool_init(&f->pool);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    mu__journal_close(f->journal);
    assert_int_equal(f->pool.live, 0);
    mu__pool_done(&f->pool);
    sim_storage_free(f->storage);
    free(f);
    return 0;
}

static inline int visit(void *owner, struct mu__msg *msg)
{
    struct fixture *f = owner;

    assert_non_null(msg->backing);
    if (f->visit_rv != 0 && f->seen.count == f->visit_rv_at)
        return f->visit_rv;
    if (id_of(msg) == f->keep && msg->kind == MU__JOURNAL_SCHEDULED) {
        f->kept = mu__buf_ref(msg->backing);
        f->kept_args = ((struct mu__journal_scheduled *)(void *)msg->body)->args;
    } else {
        expect_same(&f->pool, msg);
    }
    assert_true(f->seen.count < IDS_MAX);
    f->seen.at[f->seen.count++] = id_of(msg);
    return 0;
}

static inline int try_open(struct fixture *f)
{
    assert_null(f->journal);
    f->seen.count = 0;
    f->cut = 0;
    return mu__journal_open(&f->storage->base, &mu__messages, &f->pool, visit, f,
                            &f->error, &f->cut, &f->journal);
}

static inline void leave(struct fixture *f)
{
    mu__journal_close(f->journal);
    f->journal = NULL;
}

static inline void expect_ids(const struct ids *seen, const struct ids *wanted,
                              size_t count)
{
    assert_int_equal(seen->count, count);
    assert_memory_equal(seen->at, wanted->at, count * sizeof wanted->at[0]);
}

/* Open it, and find the first `count` of what is wanted. */
static inline void open_and_expect(struct fixture *f, size_t count)
{
    if (try_open(f) != 0)
        fail_msg("%s", f->error.message);
    expect_ids(&f->seen, &f->wanted, count);
    assert_int_equal(mu__journal_bytes(f->journal), f->storage->flushed);
}

/* Another process finds all that is wanted, with nothing to cut. */
static inline void reopen(struct fixture *f)
{
    leave(f);
    sim_storage_crash(f->storage);
    open_and_expect(f, f->wanted.count);
    assert_int_equal(f->cut, 0);
}

static inline int try_append(struct fixture *f, uint64_t id)
{
    struct mu__msg *msg = make(&f->pool, id);
    int rv = mu__journal_append(f->journal, msg, &f->error);

    mu__pool_put(&f->pool, msg);
    return rv;
}

static inline void want(struct fixture *f, uint64_t id)
{
    assert_true(f->wanted.count < IDS_MAX);
    f->wanted.at[f->wanted.count++] = id;
}

static inline void append(struct fixture *f, uint64_t id)
{
    assert_int_equal(try_append(f, id), 0);
    want(f, id);
}

static inline void flush(struct fixture *f)
{
    assert_int_equal(mu__journal_flush(f->journal, &f->error), 0);
}

/* A journal of messages 0 to `count` - 1, flushed, that nobody has open. */
static inline void write_some(struct fixture *f, size_t count)
{
    sim_storage_set(f->storage, NULL, 0);
    f->wanted.count = 0;
    assert_int_equal(try_open(f), 0);
    for (uint64_t id = 0; id < count; id++)
        append(f, id);
    flush(f);
    leave(f);
}

#endif
