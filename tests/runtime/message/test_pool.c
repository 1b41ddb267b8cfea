/* Message memory: what is handed out is clean, what comes back is used again. */
#include "runtime/message/block_pool.h"
#include "runtime/message/pool.h"
#include "tests/support/test.h"

struct size_row {
    size_t body_size;
    unsigned pool_class;
};

static const struct size_row sizes[] = {
    {0, 0},
    {64 - sizeof(struct mu__msg), 0},
    {65 - sizeof(struct mu__msg), 1},
    {128 - sizeof(struct mu__msg), 1},
    {129 - sizeof(struct mu__msg), 2},
    {192 - sizeof(struct mu__msg), 2},
    {193 - sizeof(struct mu__msg), 3},
    {256 - sizeof(struct mu__msg), 3},
    {257 - sizeof(struct mu__msg), 4},
    {512 - sizeof(struct mu__msg), 4},
    {513 - sizeof(struct mu__msg), MU__POOL_LARGE},
    {5000, MU__POOL_LARGE},
};

enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void assert_clean(const struct mu__msg *msg, size_t body_size)
{
    assert_null(msg->next);
    assert_null(msg->backing);
    assert_int_equal(msg->from.node, 0);
    assert_int_equal(msg->from.actor, 0);
    assert_int_equal(msg->to.node, 0);
    assert_int_equal(msg->to.actor, 0);
    for (size_t i = 0; i < body_size; i++)
        assert_int_equal(msg->body[i], 0);
}

static void make_dirty(struct mu__msg *msg, size_t body_size)
{
    msg->from = (mu__pid){1, 2};
    msg->to = (mu__pid){3, 4};
    memset(msg->body, 0xa5, body_size);
}

/* Sizes and classes, and the same memory again, clean, when it was put back. */
TEST(test_sizes)
{
    struct mu__pool pool;

    mu__pool_init(&pool);
    for (size_t i = 0; i < SIZES; i++) {
        for (int again = 0; again < 2; again++) {
            struct mu__msg *msg = mu__pool_get(&pool, 7, sizes[i].body_size);

            assert_non_null(msg);
            assert_int_equal(msg->kind, 7);
            assert_int_equal(msg->pool_class, sizes[i].pool_class);
            assert_int_equal((uintptr_t)msg->body % 16, 0);
            assert_clean(msg, sizes[i].body_size);
            make_dirty(msg, sizes[i].body_size);
            assert_int_equal(pool.live, 1);
            mu__pool_put(&pool, msg);
            assert_int_equal(pool.live, 0);
        }
    }
    mu__pool_done(&pool);
}

TEST(test_last_back_is_first_out)
{
    struct mu__pool pool;
    struct mu__msg *one;
    struct mu__msg *two;

    mu__pool_init(&pool);
    one = mu__pool_get(&pool, 1, 40);
    two = mu__pool_get(&pool, 1, 40);
    assert_int_equal(pool.live, 2);
    mu__pool_put(&pool, one);
    mu__pool_put(&pool, two);
    assert_int_equal(pool.free_count[1], 2);

    assert_ptr_equal(mu__pool_get(&pool, 1, 40), two);
    assert_ptr_equal(mu__pool_get(&pool, 1, 64), one);
    assert_int_equal(pool.free_count[1], 0);
    mu__pool_put(&pool, one);
    mu__pool_put(&pool, two);
    mu__pool_put(&pool, NULL);
    mu__pool_done(&pool);
}

/* A free list keeps so many and gives the others back. */
TEST(test_keeps_no_more_than_its_bound)
{
    struct mu__msg *all = NULL;
    struct mu__pool pool;

    mu__pool_init(&pool);
    for (int i = 0; i < MU__POOL_KEEP_MAX + 3; i++) {
        struct mu__msg *msg = mu__pool_get(&pool, 1, 8);

        assert_non_null(msg);
        msg->next = all;
        all = msg;
    }
    assert_int_equal(pool.live, MU__POOL_KEEP_MAX + 3);
    while (all != NULL) {
        struct mu__msg *msg = all;

        all = msg->next;
        mu__pool_put(&pool, msg);
    }
    assert_int_equal(pool.live, 0);
    assert_int_equal(pool.free_count[0], MU__POOL_KEEP_MAX);
    mu__pool_done(&pool);
    assert_int_equal(pool.free_count[0], 0);
}

/* What another thread made is freed through the pool, which never counted it. */
TEST(test_heap_messages)
{
    struct mu__pool pool;
    struct mu__msg *msg;

    mu__pool_init(&pool);
    for (size_t i = 0; i < SIZES; i++) {
        msg = mu__msg_heap(9, sizes[i].body_size);
        assert_non_null(msg);
        assert_int_equal(msg->kind, 9);
        assert_clean(msg, sizes[i].body_size);
        make_dirty(msg, sizes[i].body_size);
        mu__pool_put(&pool, msg);
        assert_int_equal(pool.live, 0);
    }
    for (unsigned i = 0; i < MU__POOL_CLASSES; i++)
        assert_int_equal(pool.free_count[i], 0);
    mu__pool_done(&pool);
}

/* What the loop frees of other threads' messages is theirs again, while there are loops
 * of the real world; afterwards nothing of it is left. */
TEST(test_heap_messages_come_back)
{
    enum { COUNT = 2 * MU__POOL_RETURNED };
    const void *freed[COUNT];
    struct mu__msg *msgs[COUNT];
    struct mu__pool pool;
    unsigned again = 0;

    mu__block_pool_join(&mu__blocks);
    mu__pool_init(&pool);
    for (unsigned i = 0; i < COUNT; i++) {
        msgs[i] = mu__msg_heap(9, 100);
        assert_non_null(msgs[i]);
        make_dirty(msgs[i], 100);
        freed[i] = msgs[i];
    }
    for (unsigned i = 0; i < COUNT; i++)
        mu__pool_put(&pool, msgs[i]);
    for (unsigned i = 0; i < COUNT; i++) {
        msgs[i] = mu__msg_heap(10, 90);
        assert_non_null(msgs[i]);
        assert_int_equal(msgs[i]->kind, 10);
        assert_clean(msgs[i], 90);
        for (unsigned j = 0; j < COUNT; j++)
            again += freed[j] == msgs[i];
    }
    if (mu__blocks_pooled()) /* not with the address sanitizer */
        assert_int_equal(again, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        mu__pool_put(&pool, msgs[i]);
    assert_int_equal(pool.live, 0);
    mu__block_pool_leave(&mu__blocks);
    mu__pool_done(&pool);
    for (unsigned i = 0; i < MU__POOL_CLASSES; i++)
        assert_null(pool.returned[i]);
}

TEST(test_put_drops_the_backing)
{
    struct mu__buf *buf = mu__buf_new(10);
    struct mu__pool pool;
    struct mu__msg *msg;

    mu__pool_init(&pool);
    assert_non_null(buf);
    msg = mu__pool_get(&pool, 1, 8);
    msg->backing = mu__buf_ref(buf);
    assert_int_equal(buf->refs, 2);
    mu__pool_put(&pool, msg);
    assert_int_equal(buf->refs, 1);
    mu__buf_unref(buf);
    mu__pool_done(&pool);
}

TEST(test_buffers)
{
    struct mu__buf *buf = mu__buf_new(100);

    assert_non_null(buf);
    assert_int_equal((uintptr_t)buf->data % 16, 0);
    assert_int_equal(buf->size, 0);
    assert_int_equal(buf->capacity, 100);
    assert_int_equal(buf->refs, 1);
    memset(buf->data, 1, buf->capacity);
    mu__buf_unref(buf);
    mu__buf_unref(NULL);

    buf = mu__buf_new(0);
    assert_non_null(buf);
    assert_int_equal(buf->capacity, 0);
    mu__buf_unref(buf);
    assert_null(mu__buf_new((size_t)UINT32_MAX + 1));
}

struct cut_row {
    const char *text;
    size_t size;
    const char *cut;
};

static const struct cut_row cuts[] = {
    {"muster", 10, "muster"},
    {"muster", 7, "muster"},
    {"muster", 6, "muste"},
    {"muster", 1, ""},
    {"", 4, ""},
    {"a\xc3\xa9", 4, "a\xc3\xa9"},
    {"a\xc3\xa9", 3, "a"},
    {"\xe2\x82\xac", 3, ""},
    {"\x80\x80\x80\x80\x80\x80", 6, "\x80\x80\x80\x80\x80"},
};

TEST(test_views)
{
    struct mu__view none = mu__view_str(NULL);
    char out[16];

    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        struct mu__view view = mu__view_str(cuts[i].text);

        assert_int_equal(view.size, strlen(cuts[i].text));
        mu__view_copy(view, out, cuts[i].size);
        assert_string_equal(out, cuts[i].cut);
    }

    assert_null(none.data);
    assert_int_equal(none.size, 0);
    mu__view_copy(none, out, sizeof out);
    assert_string_equal(out, "");
    out[0] = 'x';
    mu__view_copy(mu__view_str("y"), out, 0);
    assert_int_equal(out[0], 'x');

    assert_true(mu__view_is(mu__view_str("run"), "run"));
    assert_false(mu__view_is(mu__view_str("run"), "runs"));
    assert_false(mu__view_is(mu__view_str("run"), "ran"));
    assert_true(mu__view_is(none, ""));
    assert_false(mu__view_is(none, "a"));
}

TEST_PROGRAM()
