/* Every allocation of a journal fails once: what was acknowledged is there, what was
 * refused is not, and nothing leaks (the address sanitizer counts). */
#include "actors/coordination/store/journal.h"
#include "actors/messages.h"
#include "tests/support/test.h"

#include "tests/support/fault.h"

enum { APPENDS = 5, REWRITTEN = 400 };

/* ---- A storage that allocates nothing of its own ---- */

struct fixed {
    struct mu__storage base;
    size_t size;
    uint8_t bytes[1 << 16];
};

static int fixed_load(struct mu__storage *base, uint64_t offset, uint32_t bytes_max,
                      mu_error *ret_error, struct mu__buf **ret_content)
{
    struct fixed *fixed = (struct fixed *)base;

    assert_true(offset == 0 && fixed->size < bytes_max);
    *ret_content = NULL;
    if (fixed->size == 0)
        return 0;
    *ret_content = mu__buf_new(fixed->size);
    if (*ret_content == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory");
    memcpy((*ret_content)->data, fixed->bytes, fixed->size);
    (*ret_content)->size = (uint32_t)fixed->size;
    return 0;
}

static int fixed_append(struct mu__storage *base, const void *data, size_t size,
                        mu_error *ret_error)
{
    struct fixed *fixed = (struct fixed *)base;

    (void)ret_error;
    assert_true(size <= sizeof fixed->bytes - fixed->size);
    memcpy(fixed->bytes + fixed->size, data, size);
    fixed->size += size;
    return 0;
}

static int fixed_flush(struct mu__storage *base, mu_error *ret_error)
{
    (void)base;
    (void)ret_error;
    return 0;
}

static int fixed_replace(struct mu__storage *base, const void *data, size_t size,
                         mu_error *ret_error)
{
    ((struct fixed *)base)->size = 0;
    return fixed_append(base, data, size, ret_error);
}

static const struct mu__storage_ops fixed_ops = {
    .load = fixed_load,
    .append = fixed_append,
    .flush = fixed_flush,
    .replace = fixed_replace,
};

/* ---- One session ---- */

struct session {
    struct fixed *storage;
    struct mu__pool pool;
    struct mu__journal *journal;
    struct mu__msg *gone; /* what is appended */
    unsigned seen;
    unsigned acknowledged;
    mu_error error;
};

static int visit(void *owner, struct mu__msg *msg)
{
    struct session *s = owner;

    assert_int_equal(msg->kind, MU__JOURNAL_REMOVED);
    s->seen++;
    return 0;
}

static int open_journal(struct session *s)
{
    s->seen = 0;
    return mu__journal_open(&s->storage->base, &mu__messages, &s->pool, visit, s,
                            &s->error, NULL, &s->journal);
}

static int append(struct session *s)
{
    int rv = mu__journal_append(s->journal, s->gone, &s->error);

    assert_true(rv == 0 || (rv == -MU_ENOMEM && s->error.code == rv));
    return rv;
}

static void rewrite(struct session *s)
{
    int rv;

    mu__journal_rewrite_begin(s->journal);
    for (unsigned i = 0; i < REWRITTEN; i++)
        (void)append(s);
    rv = mu__journal_rewrite_commit(s->journal, &s->error);
    assert_true(rv == 0 || rv == -MU_ENOMEM);
    if (rv == 0)
        s->acknowledged = REWRITTEN;
}

static void run_session(struct session *s)
{
    int rv = open_journal(s);

    assert_true(rv == 0 || rv == -MU_ENOMEM);
    if (rv != 0)
        return;
    for (unsigned i = 0; i < APPENDS; i++)
        s->acknowledged += append(s) == 0;
    rewrite(s);
    s->acknowledged += append(s) == 0;
    assert_int_equal(mu__journal_flush(s->journal, &s->error), 0);
    mu__journal_close(s->journal);
}

/* A journal of two messages is there before. */
static void begin_session(struct session *s, struct fixed *storage)
{
    *s = (struct session){.storage = storage, .acknowledged = 2};
    storage->base = (struct mu__storage){&fixed_ops, "fixed"};
    storage->size = 0;
    s->gone = mu__msg_heap(MU__JOURNAL_REMOVED, sizeof(struct mu__journal_removed));
    assert_non_null(s->gone);
    mu__pool_init(&s->pool);
    assert_int_equal(open_journal(s), 0);
    assert_int_equal(append(s), 0);
    assert_int_equal(append(s), 0);
    mu__journal_close(s->journal);
    mu__pool_done(&s->pool);
    mu__pool_init(&s->pool);
}

TEST(test_every_allocation_fails_once)
{
    static struct fixed storage;
    struct session s;
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        begin_session(&s, &storage);
        fault_arm(n);
        run_session(&s);
        failed = fault_disarm();
        assert_int_equal(open_journal(&s), 0);
        assert_int_equal(s.seen, s.acknowledged);
        mu__journal_close(s.journal);
        assert_int_equal(s.pool.live, 0);
        mu__pool_put(&s.pool, s.gone);
        mu__pool_done(&s.pool);
    }
    assert_int_equal(s.acknowledged, REWRITTEN + 1);
    assert_true(n > 8);
}

TEST_PROGRAM()
