/* Values and the codec when memory runs out: every allocation fails once, and nothing is
 * lost or half done. The leak checker is part of the test. */
#include "actors/messages.h"
#include "runtime/message/codec.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

enum { KEYS = 40 }; /* past the first growth of a map's arrays and of its tree */

static int fill(mu_value *map, mu_value *list)
{
    static const uint64_t dims[] = {5};
    char key[2] = "a";
    int rv = 0;

    for (int i = 0; rv == 0 && i < KEYS; i++) {
        key[0] = (char)('0' + i);
        rv = mu_value_set(map, key, mu_value_int(i));
    }
    if (rv == 0)
        rv = mu_value_append(list, mu_value_nil());
    if (rv == 0)
        rv = mu_value_append(list, mu_value_bool(1));
    if (rv == 0)
        rv = mu_value_append(list, mu_value_float(1.5));
    if (rv == 0)
        rv = mu_value_append(list, mu_value_string("text"));
    if (rv == 0)
        rv = mu_value_append(list, mu_value_bytes("bytes", 5));
    if (rv == 0)
        rv = mu_value_append(list, mu_value_tensor(MU_U8, 1, dims, "12345"));
    if (rv == 0)
        rv = mu_value_append(list, mu_value_tensor(MU_F32, 1, dims, NULL));
    return rv;
}

/* One of everything, or NULL: there was no memory. What was put in before stays found. */
static mu_value *build(void)
{
    mu_value *map = mu_value_map();
    mu_value *list = mu_value_list();
    int rv = map == NULL || list == NULL ? -MU_ENOMEM : fill(map, list);

    if (rv == 0)
        rv = mu_value_set(map, "list", mu_value_ref(list));
    for (size_t i = 0; i < mu_value_count(map); i++)
        assert_ptr_equal(mu_value_find(map, mu_value_key(map, i)), mu_value_at(map, i));
    mu_value_free(list);
    if (rv == 0)
        return map;
    assert_int_equal(rv, -MU_ENOMEM);
    mu_value_free(map);
    return NULL;
}

TEST(test_building)
{
    long n = 0;

    for (bool failed = true; failed; n++) {
        mu_value *value;

        fault_arm(n);
        value = build();
        failed = fault_disarm();
        assert_int_equal(failed, value == NULL);
        mu_value_free(value);
        assert_true(n < 1000);
    }
    assert_true(n > 2 * KEYS);
}

/* Refused or whole, and never a word about bad bytes when it is memory that lacks. */
TEST(test_unpacking)
{
    mu_value *value = build();
    mu_value *back = NULL;
    struct mu__packed packed = {.head = NULL};
    uint8_t *head;
    struct mu__buf *tail;
    char why[64] = "";
    long n = 0;

    assert_non_null(value);
    assert_int_equal(mu__value_measure(value, &packed.head_size, &packed.tail_size), 0);
    head = malloc(packed.head_size);
    tail = mu__buf_new(packed.tail_size);
    assert_non_null(head);
    assert_non_null(tail);
    mu__value_pack(value, head, packed.head_size, tail->data, packed.tail_size);
    packed.head = head;
    packed.tail = tail->data;

    for (; back == NULL; n++) {
        int rv;

        fault_arm(n);
        rv = mu__value_unpack(&packed, why, sizeof why, &back);
        assert_int_equal(rv, fault_disarm() ? -MU_ENOMEM : 0);
        assert_int_equal(back == NULL, rv != 0);
        assert_string_equal(why, "");
        assert_true(n < 1000);
    }
    assert_true(n > 2 * KEYS);
    assert_int_equal(mu_value_equal(value, back), 1);
    mu_value_free(back);
    mu_value_free(value);
    mu__buf_unref(tail);
    free(head);
}

TEST(test_messages)
{
    struct mu__buf *frame = mu__buf_new(64);
    struct mu__msg *msg = NULL;
    struct mu__pool pool;
    size_t offset = 0;

    mu__pool_init(&pool);
    assert_non_null(frame);
    fault_arm(0);
    assert_null(mu__buf_new(10));
    fault_arm(0);
    assert_null(mu__msg_heap(1, 8));
    fault_arm(0);
    assert_null(mu__pool_get(&pool, MU__CANCEL, sizeof(struct mu__cancel)));
    fault_arm(0);
    assert_null(mu__pool_get(&pool, MU__CANCEL, 5000));
    assert_int_equal(pool.live, 0);

    msg = mu__pool_get(&pool, MU__CANCEL, sizeof(struct mu__cancel));
    assert_non_null(msg);
    assert_int_equal(mu__encode(&mu__messages, msg, frame), 0);
    fault_arm(0);
    assert_int_equal(mu__decode(&mu__messages, &pool, frame, &offset, NULL, 0, &msg),
                     -MU_ENOMEM);
    assert_true(fault_disarm());
    assert_int_equal(offset, 0);
    assert_int_equal(pool.live, 1);
    mu__pool_put(&pool, msg);
    mu__pool_done(&pool);
    mu__buf_unref(frame);
}

TEST_PROGRAM()
